"""What is tried on the Neuron, the Layer and the MLP of a file: numbers go in, numbers come out.

The process that runs the file loads this one alone: it imports nothing of Wengert's and knows no right answer. What it
tells of an object is which Values it holds and where, which of them `parameters()` gives, and, with drawn numbers in
their place, what a call and its backward pass give. `networks.py` reads that stream, and judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import isroutine
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["MOST", "OBJECTS", "PROBES", "TRIALS", "Trial", "drawn", "form_of"]

OBJECTS: dict[str, tuple[Any, ...]] = {
    "Neuron": (3,),
    "Layer": (3, 4),
    "Layer of one": (3, 1),
    "MLP": (3, [4, 4, 1]),
    "MLP of two": (2, [3, 2]),
}
"""What is made: the first word is the name of the class; the arguments."""

PROBES = 6  # so many times, each object is given numbers and called
MOST = 300  # so many Values of an object are looked at


class Trial(NamedTuple):
    """One thing to try, as in `trials.py`."""

    row: str
    id: str
    kind: str
    op: str
    run: Callable[[Any], Iterator[tuple[str, str, float]]]
    needs: str = ""
    step: int = 8


def drawn(draw: Any) -> Iterator[float]:
    """Numbers from -0.8 to 1.2, the same ones on both sides: no ReLU lives where all is as often below 0 as above."""
    while True:
        yield (draw.below(2001) - 800) / 1000.0


def _is_value(kit: Any, thing: Any) -> bool:
    return hasattr(thing, kit.names["data"]) and hasattr(thing, kit.names["grad"])


def _made(kit: Any, name: str) -> Any:
    """A new object of the file's class."""
    of = name.split()[0]
    if not callable(kit.space.get(of)):
        kit.unfit("absent", of)
    return kit.space[of](*OBJECTS[name])


def _held(kit: Any, root: Any) -> tuple[list[tuple[int, int, int]], list[Any], int]:
    """Where in an object Values are, they, and how many plain numbers stand in its lists.

    A place is whose attribute, in which list, at which index. An object, a list and a Value are visited once each.
    """
    seen: dict[int, Any] = {}
    places: list[tuple[int, int, int]] = []
    values: list[Any] = []
    plain = 0

    def visit(thing: Any, owner: int, within: int, at: int, depth: int) -> None:
        nonlocal plain
        plain += within != owner and type(thing) is float
        items: Sequence[Any] = ()
        if id(thing) in seen or depth > 12 or len(values) >= MOST:
            return
        number = len(seen)
        if _is_value(kit, thing):
            places.append((owner, within, at))
            values.append(thing)
        elif isinstance(thing, (list, tuple, dict)):
            items = list(thing.values()) if isinstance(thing, dict) else thing
        elif hasattr(thing, "__dict__") and not (isinstance(thing, (type, ModuleType)) or isroutine(thing)):
            items, owner = [*vars(type(thing)).values(), *vars(thing).values()], number
        else:
            return
        seen[id(thing)] = thing  # kept, so that no other gets its identity
        for i, item in enumerate(items):
            visit(item, owner, number, i, depth + 1)

    visit(root, 0, 0, 0, 0)
    return places, values, plain


def _structure(kit: Any, thing: Any) -> tuple[list[float], list[Any]]:
    """The structure in numbers, and the Values."""
    places, values, plain = _held(kit, thing)
    told: list[float] = [plain, len(values)]
    for place, value in zip(places, values, strict=True):
        told += [*place, kit.value(value), not getattr(value, kit.names.get("_prev", "_prev"), None)]
    return told, values


def _parameters(kit: Any, name: str) -> Iterator[float]:
    """The structure; what kind of thing parameters() gives; which Values held are in it; whether it gives them again.

    -1 stands for another Value, -2 for what is none.
    """
    thing = _made(kit, name)
    if not hasattr(thing, "parameters"):
        kit.unfit("absent", f"{name.split()[0]}.parameters")
    told, values = _structure(kit, thing)
    yield from told
    given = thing.parameters()
    items = list(given) if given is not None else []
    yield 0.0 if given is None else 2.0 if any(isinstance(item, (list, tuple)) for item in items) else 1.0
    known = {id(value): i for i, value in enumerate(values)}
    yield len(items)
    for item in items[: 2 * MOST]:
        yield known.get(id(item), -1) if _is_value(kit, item) else -2
    yield [id(item) for item in items] == [id(item) for item in thing.parameters() or ()]


def form_of(kit: Any, out: Any) -> tuple[int, list[Any]]:
    """What a call gave, and its items: 0 a Value, 1 a list of Values, 2 numbers, 3 None, 4 something else."""
    if _is_value(kit, out):
        return 0, [out]
    items = list(out) if isinstance(out, (list, tuple)) else [out]
    if items and all(_is_value(kit, item) for item in items):
        return 1, items
    if items and all(isinstance(item, (int, float)) for item in items):
        return 2, items
    return (3 if out is None else 4), []


def _calls(kit: Any, name: str) -> Iterator[float]:
    """The structure; then of each probe the form and the numbers of the output, and of each output all gradients."""
    thing = _made(kit, name)
    if not callable(thing):
        kit.unfit("absent", f"{name.split()[0]}.__call__")
    told, values = _structure(kit, thing)
    yield from told
    numbers = drawn(kit.draw(name))
    for _ in range(PROBES):
        x = [next(numbers) for _ in range(OBJECTS[name][0])]
        for value in values:
            kit.put(value, next(numbers))
        form, outputs = form_of(kit, thing(list(x)))
        yield from (form, len(outputs))
        yield from [kit.value(out) if form < 2 else float(out) for out in outputs]
        for i in range(len(outputs) if form < 2 else 0):
            kit.zero(*values)
            kit.backward(form_of(kit, thing(list(x)))[1][i])  # made anew, as parts that outputs share keep gradients
            yield from map(kit.grad, values)


def _trial(name: str, what: Callable[[Any, str], Iterator[float]], ending: str) -> Trial:
    def run(kit: Any) -> Iterator[tuple[str, str, float]]:
        for number in what(kit, name):
            yield "", "", float(number)

    shown = f"{name.split()[0]}({', '.join(map(str, OBJECTS[name]))}){ending}"
    return Trial(shown, name + ending, "core", "", run)


TRIALS: list[Trial] = [
    trial
    for name in OBJECTS
    for trial in (
        _trial(name, _calls, ""),
        *([] if " of " in name else [_trial(name, _parameters, ".parameters()")]),
    )
]
