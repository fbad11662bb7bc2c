"""What is tried on the functions of the lessons that are about no class: numbers go in, numbers come out.

The process that runs the file loads this one alone: it imports nothing of Wengert's and knows no right answer.
`exercises.py` draws the same arguments again, and judges what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wengert_course.checks.kit import Draw, Kit

__all__ = ["ARGUMENTS", "LETTERS", "PROBES", "TRIALS", "arguments", "flat"]

LETTERS = ".abcdefghijklmnopqrstuvwxyz"
PROBES = 2  # so many times, each function is called

ARGUMENTS: dict[int, dict[str, tuple[str, ...]]] = {
    0: {"slope": ("function", "number"), "slopes": ("function of 3", "3 numbers")},
    10: {
        "softmax": ("3 values",),
        "cross_entropy": ("3 values", "index"),
        "matmul": ("2x2 values", "2x2 values"),
        "summed": ("2x3 numbers", "shape"),
    },
    11: {"loss": ("3 values", "value", "4x3 numbers", "4 numbers")},
    12: {"counts": ("names",), "loss": ("3x3 values", "3x3 counts")},
}
"""Step -> function -> what it is called with."""


def arguments(kinds: tuple[str, ...], numbers: Draw, value: Callable[[float], Any]) -> list[Any]:
    """What a function is called with: numbers as they are drawn, and Values of them."""

    def drawn(kind: str) -> Any:
        size, _, what = kind.rpartition(" ")
        if "x" in size:
            rows, _, columns = size.partition("x")
            return [drawn(f"{columns} {what}") for _ in range(int(rows))]
        if size.isdigit():
            return [drawn(what.removesuffix("s")) for _ in range(int(size))]
        if kind == "value":
            return value(numbers.number())
        if kind == "count":
            return 1 + numbers.below(9)
        if kind == "index":
            return numbers.below(3)
        if kind == "shape":
            return ((3,), (2, 1))[numbers.below(2)]
        if kind == "names":
            return ["".join(LETTERS[1 + numbers.below(5)] for _ in range(2 + k)) for k in range(4)]
        if kind.startswith("function"):
            p, q, r = numbers.numbers(3)
            return (lambda x: p * x * x + q * x + r) if kind == "function" else (lambda a, b, c: p * a * b + q * c + r)
        return numbers.number()

    return [drawn(kind) for kind in kinds]


def flat(thing: Any) -> list[Any]:
    """What a function gave, without its lists."""
    if hasattr(thing, "tolist"):  # an array of NumPy's
        thing = thing.tolist()
    return [one for item in thing for one in flat(item)] if isinstance(thing, (list, tuple)) else [thing]


def _trial(step: int, name: str) -> tuple[Any, ...]:
    kinds = ARGUMENTS[step][name]

    def run(kit: Kit) -> Iterator[tuple[str, str, Any]]:
        """Of each call the numbers that came out, and of each of these the gradients of all Values that went in."""
        function = kit.space.get(name)
        if not callable(function):
            kit.unfit("absent", name)
        numbers, values = kit.draw(f"exercise {step} {name}"), list[Any]()

        def value(x: float) -> Any:
            values.append(kit.space["Value"](x) if "Value" in kit.space else x)
            return values[-1]

        for _ in range(PROBES):
            values.clear()
            given = arguments(kinds, numbers, value)
            outputs, gradients = flat(function(*given)), []
            for i, out in enumerate(outputs if values else ()):
                if hasattr(out, "backward"):
                    for x in values:
                        x.grad = 0.0
                    flat(function(*given))[i].backward()  # made anew, as parts that outputs share keep gradients
                    gradients.append([float(x.grad) for x in values])
            yield "", "", [[float(getattr(out, "data", out)) for out in outputs], gradients]

    return f"{name}()", f"exercise {step} {name}", "own", "", run, "", step


TRIALS: list[tuple[Any, ...]] = [_trial(step, name) for step, functions in ARGUMENTS.items() for name in functions]
