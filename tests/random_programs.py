"""Random programs: what the engine is compared on with PyTorch, mpmath, another engine and other runs of itself.

A `RandomProgram` is straight-line code over operations of the table, with the point at which it is evaluated. It runs
on any kind of number: `program(*numbers)`. `programs` is a strategy for Hypothesis, which shrinks what fails to the
shortest program that does; `random_program` draws the same kind from a seed, some thousand a second.

Programs are grown together with their numbers, so that each operation meets operands from the domain that its row
names, and an error of rounding stays one. A step is left out, and another one comes next, when

- all its operands would be constants,
- it would stand within `MARGIN` of a kink, where rounding decides which way it goes (both operands of a maximum may be
  the same number: a tie in any arithmetic),
- its value, or its derivative with respect to an input, would be larger than `LARGE` in size.

Values are those of the rows and derivatives are taken by differences of them: a wrong partial cannot hide itself.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from math import fabs
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.qa.oracles import CONSTANT
from wengert.engine import Value, dot
from wengert.ops import BUILT_IN, BY_NAME, TABLE, Op

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["LARGE", "MARGIN", "OPERATIONS", "ProgramStep", "RandomProgram", "programs", "random_program"]

LARGE = 1e3
MARGIN = 1e-5
DIFFERENCE = 1e-7  # how far a derivative looks to either side
OPERATIONS: tuple[str, ...] = tuple([row.name for row in TABLE[:BUILT_IN] if row.value is not None])
"""The names of all operations that programs are made of."""

REAL, POSITIVE, NEGATIVE = (-3.0, 3.0), (0.1, 4.0), (-4.0, -0.1)
MORE_DOMAINS: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {  # beside the row's own
    "div": ((REAL, NEGATIVE),),
    "reciprocal": ((NEGATIVE,),),
    "remainder": ((REAL, NEGATIVE),),
    "cbrt": ((NEGATIVE,),),
    "atan2": ((POSITIVE, REAL), (NEGATIVE, REAL)),
    "pow": tuple([(NEGATIVE, (whole, whole)) for whole in (-2.0, -1.0, 2.0, 3.0)]),
}
FIXED = {*CONSTANT, ("pow", 1)}  # where a domain of one point stands for a constant, not for what may be equal
WRITTEN: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": operator.abs,
    **{name: operator.methodcaller(name) for name in ("relu", "exp", "log", "tanh")},
    "dot": lambda *xs: dot(xs[: len(xs) // 2], xs[len(xs) // 2 : -1], xs[-1]),
}


class ProgramStep(NamedTuple):
    """An operation, by its name in the table, and its operands: the place of an earlier number, or a constant."""

    operation: str
    operands: tuple[int | float, ...]


class RandomProgram(NamedTuple):
    """Straight-line code. Printed, it is a Python function.

    Attributes:
        point: the inputs' numbers: places 0, 1 and so on.
        steps: each makes the number of the next place.
        results: the places whose sum is the result.
        left_out: why steps were left out while it was drawn: "constant", "kink" or "large", for each of them.
    """

    point: tuple[float, ...]
    steps: tuple[ProgramStep, ...] = ()
    results: tuple[int, ...] = (0,)
    left_out: tuple[str, ...] = ()

    def __call__(self, *numbers: Any, operations: Mapping[str, Callable[..., Any]] | None = None) -> Any:
        """The result for these inputs.

        Args:
            *numbers: of any kind, as many as the point has.
            operations: what computes an operation, by its name. The others are written as one writes them, ``x + y``
                and ``x.tanh()``, or are the functions of the table.
        """
        known = WRITTEN if operations is None else {**WRITTEN, **operations}
        found = list(numbers)
        for name, operands in self.steps:
            compute = known.get(name) or BY_NAME[name]
            found.append(compute(*[found[x] if type(x) is int else x for x in operands]))
        total = found[self.results[0]]
        for place in self.results[1:]:
            total = known["add"](total, found[place])
        return total

    def value_and_gradient(
        self, operations: Mapping[str, Callable[..., Any]] | None = None, kind: Callable[[float], Any] = Value
    ) -> tuple[float, list[float]]:
        """The value at the point and the derivative with respect to each input.

        Args:
            operations: as of a call.
            kind: makes a number of `data`, `grad` and `backward()`: a Value, or that of another engine.
        """
        leaves = [kind(x) for x in self.point]
        result = self(*leaves, operations=operations)
        result.backward()
        return result.data, [leaf.grad for leaf in leaves]

    def __str__(self) -> str:
        names = [f"x{place}" for place in range(len(self.point))]
        names += [f"v{place}" for place in range(len(names), len(names) + len(self.steps))]
        given = zip(names, self.point, strict=False)
        lines = [f"def program({', '.join(f'{name}={number!r}' for name, number in given)}):"]
        for name, (operation, operands) in zip(names[len(self.point) :], self.steps, strict=True):
            xs = [names[x] if type(x) is int else repr(x) for x in operands]
            lines.append(f"    {name} = {_written(operation, xs)}")
        return "\n".join([*lines, f"    return {' + '.join(names[place] for place in self.results)}"])


def _written(operation: str, xs: Sequence[str]) -> str:
    """An operation as Python writes it."""
    sign = BY_NAME[operation].infix if operation in OPERATIONS and len(xs) == 2 else ""
    if sign:
        left, right = (f"({x})" if x[0] == "-" else x for x in xs)
        return f"{left} {sign} {right}"
    if operation == "dot":
        half = len(xs) // 2
        return f"wengert.dot([{', '.join(xs[:half])}], [{', '.join(xs[half:-1])}], {xs[-1]})"
    known = operation in OPERATIONS
    return f"{'wengert.' if known else ''}{operation}({', '.join(xs)})"


# -- growing ----------------------------------------------------------------------------------------------------------


MOST = 4  # operands of an operation that takes any number of them
PICKS = 1 << 16


def _counts(row: Op) -> tuple[int, ...]:
    """How many operands it may have."""
    if row.name == "dot":
        return 3, 5  # weights, as many inputs, the bias
    return tuple(range(1, MOST + 1)) if row.arity is None else (row.arity,)


def _operands(
    row: Op, domain: tuple[tuple[float, float], ...], picks: Sequence[int], values: Sequence[float]
) -> tuple[int | float, ...]:
    """The operands of a step: numbers that are there and fit the domain, or constants."""
    found: list[int | float] = []
    for number, pick in enumerate(picks):
        low, high = domain[0 if row.arity is None else number]
        fit = [place for place in range(len(values) - 1, -1, -1) if low <= values[place] <= high]
        if not fit or pick % 8 == 7 or (low == high and (row.name, number) in FIXED):
            found.append(round(low + (high - low) * (pick // 8 / (PICKS // 8 - 1)), 4))
        else:
            found.append(fit[int(len(fit) * (pick / PICKS) ** 2)])  # rather a late one, so that programs are deep
    return tuple(found)


def _judged(
    row: Op, operands: tuple[int | float, ...], values: Sequence[float], slopes: Sequence[float]
) -> tuple[str, float, float]:
    """Why a step is left out, if it is; its value; and how large its derivative with respect to an input may be."""
    xs = [values[x] if type(x) is int else float(x) for x in operands]
    places = [(number, x) for number, x in enumerate(operands) if type(x) is int]
    if not places:
        return "constant", 0.0, 0.0
    if row.kink_distance(operands, xs) < MARGIN:
        return "kink", 0.0, 0.0
    value = float(row.value(*xs))
    slope = 0.0
    for number, place in places:
        x = xs[number]
        xs[number] = x + DIFFERENCE
        above = row.value(*xs)
        xs[number] = x - DIFFERENCE
        slope += slopes[place] * fabs(above - row.value(*xs)) / (2.0 * DIFFERENCE)
        xs[number] = x
    return "large" if fabs(value) > LARGE or slope > LARGE else "", value, slope


# -- drawing ----------------------------------------------------------------------------------------------------------


def random_program(
    seed: int | random.Random, operations: Sequence[str] = OPERATIONS, *, inputs: int = 4, steps: int = 24
) -> RandomProgram:
    """A program by chance: the same one for the same seed.

    Args:
        seed: a seed, or the generator of random numbers to draw from.
        operations: the names of the operations that it may have; all by default. `+` may come as well, at the end.
        inputs: how many inputs it has at most.
        steps: how many steps it has at most.
    """
    rows = [BY_NAME[name] for name in operations]
    draw = seed if isinstance(seed, random.Random) else random.Random(seed)
    point = tuple([draw.uniform(*REAL) for _ in range(draw.randint(1, inputs))])
    values, slopes = list(point), [1.0] * len(point)
    grown: list[ProgramStep] = []
    used: set[int] = set()
    left_out: list[str] = []
    for _ in range(draw.randint(1, steps)):
        row = draw.choice(rows)
        picks = [draw.randrange(PICKS) for _ in range(draw.choice(_counts(row)))]
        domains = [row.domain, *MORE_DOMAINS.get(row.name, ())]
        operands = _operands(row, domains[draw.randrange(len(domains))], picks, values)
        reason, value, slope = _judged(row, operands, values, slopes)
        if reason:
            left_out.append(reason)
            continue
        grown.append(ProgramStep(row.name, operands))
        values.append(value)
        slopes.append(slope)
        used.update(x for x in operands if type(x) is int)
    results = [place for place in range(len(point), len(values)) if place not in used] or [0]
    return RandomProgram(point, tuple(grown), tuple(results), tuple(left_out))


def programs(
    operations: Sequence[str] = OPERATIONS, *, inputs: int = 4, steps: int = 24
) -> SearchStrategy[RandomProgram]:
    """A strategy for Hypothesis; arguments as of `random_program`."""
    import hypothesis.strategies as st

    return st.randoms(use_true_random=False).map(
        lambda draw: random_program(draw, operations, inputs=inputs, steps=steps)
    )
