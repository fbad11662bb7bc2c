"""Simplifies a recording: merges equal computations, expands rare operations, and turns choices into instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from wengert.compiler.ir import concat_ranges
from wengert.graph import Graph
from wengert.ops import BY_NAME, TABLE

__all__ = ["CONST", "INPUT", "PARAM", "VALUE", "VARYING", "Pick", "Unliftable", "instructions", "merge_equal"]
__all__ += ["one_by_one", "share_constants"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
PARAM, VALUE, INPUT, VARYING, CONST = range(5)  # sources of numbers; the factors of a product are in this order
EQUAL_ROUNDS = 64  # of merging equal computations, each one level deeper


class Unliftable(Exception):  # noqa: N818  (no error: a reason to run the engine)
    """The recording cannot become an array program; the engine runs the function."""


@dataclass(frozen=True)
class Pick:
    """An operand that an integer input chooses at run time."""

    user: int  # the place of the instruction that reads the operand
    position: int  # among its operands
    index: int  # the place of the integer
    candidates: tuple[Any, ...]  # their places, or (*candidates, index) for a nested choice


def instructions(graph: Graph, source: Ints, picks: list[Pick]) -> tuple[Ints, Ints, Ints, Any, Ints]:
    """Return the arrays of a graph, with the rarer n-ary operations expanded.

    What was computed before the recording is a parameter: its history is left out.
    """
    codes = np.frombuffer(graph.codes, np.uint16).astype(np.int64)
    starts = np.frombuffer(graph.starts, np.int64)
    operands = np.frombuffer(graph.operands, np.int64) if graph.operands else np.zeros(0, np.int64)
    constants = np.frombuffer(graph.constants, np.float64) if graph.constants else np.zeros(0)
    codes, starts, operands = _without((source != VALUE) & (codes > 0), codes, starts, operands)
    many = [row.code for row in TABLE if row.arity is None and row.name not in ("sum", "dot", "max", "min", "pick")]
    written_out = np.flatnonzero(np.isin(codes, many)).tolist()
    powers = _even_powers(codes, starts, operands, constants, {pick.user for pick in picks})
    if not (written_out or picks or powers):
        return codes, starts, operands, constants, np.arange(len(codes))
    numbers: list[float] = constants.tolist()
    pieces: dict[int, list[tuple[int, list[int]]]] = {}
    by_user: dict[int, list[Pick]] = {}
    for pick in picks:
        by_user.setdefault(pick.user, []).append(pick)
    picked: dict[tuple[Any, ...], int] = {}  # shares each choice

    def choose(writer: _Expansion, choice: tuple[Any, ...]) -> int:
        if choice not in picked:
            picked[choice] = writer("pick", *[choose(writer, x) if isinstance(x, tuple) else x for x in choice])
        return picked[choice]

    for place in sorted({*written_out, *by_user, *powers}):
        writer = _Expansion(numbers, place)
        if place in powers:
            _even_power(writer, *powers[place])
            pieces[place] = writer.steps
            continue
        xs = operands[starts[place] : starts[place + 1]].tolist()
        for pick in by_user.get(place, ()):
            xs[pick.position] = choose(writer, (*pick.candidates, pick.index))
        row = TABLE[codes[place]]
        if row.arity is None and row.name not in ("sum", "dot", "max", "min"):
            if row.name not in WRITTEN_OUT:
                raise Unliftable(
                    f"{row.name} takes any number of operands, and is not built in: register it with a fixed number"
                )
            WRITTEN_OUT[row.name](writer, xs)
        else:
            writer(row.name, *xs)
        pieces[place] = writer.steps
    return *_spliced(codes, starts, operands, pieces), np.array(numbers), _shifted(len(codes), pieces)[1]


def _even_powers(
    codes: Ints, starts: Ints, operands: Ints, constants: Any, but: set[int]
) -> dict[int, tuple[str, list[int], float]]:
    """Return by their places the even powers of a length: its name, its operands and the exponent. Written as powers of
    a sum of squares they have no kink. `but` are places where operands are chosen at run time.
    """
    powers = np.flatnonzero(IS_POWER[codes])
    bases = operands[starts[powers]] if len(powers) else powers
    powers = powers[(bases >= 0) & IS_LENGTH[codes[np.maximum(bases, 0)]]]
    even = {}
    for place in powers.tolist():
        name, (base, *rest) = TABLE[codes[place]].name, operands[starts[place] : starts[place + 1]].tolist()
        own, exponent = operands[starts[base] : starts[base + 1]].tolist(), 2.0
        if name == "pow":
            exponent = float(constants[-1 - rest[0]]) if rest[0] < 0 else 0.0
        elif name == "mul" and rest != [base]:
            other = rest[0]
            is_equal = other >= 0 and codes[other] == codes[base] and other not in but
            exponent *= is_equal and own == operands[starts[other] : starts[other + 1]].tolist()
        if own and exponent >= 2.0 and exponent % 2.0 == 0.0 and but.isdisjoint((place, base)):
            even[place] = TABLE[codes[base]].name, own, exponent
    return even


def _even_power(write: _Expansion, name: str, xs: list[int], exponent: float) -> None:
    """Write an even power of the length of some numbers."""
    if name == "abs" and exponent != 2.0:
        write("pow", xs[0], write.constant(exponent))
        return
    squares = [write("square", x) for x in xs]
    total = write("sum", *squares) if len(xs) > 1 else squares[0]
    if exponent != 2.0:
        write("pow", total, write.constant(0.5 * exponent))


def _shifted(count: int, pieces: dict[int, Any]) -> tuple[Ints, Ints]:
    """Return how far each instruction moves when `pieces` are spliced in, and its new place."""
    extra = np.zeros(count + 1, np.int64)
    for place, steps in pieces.items():
        extra[place] = len(steps) - 1
    shift = np.cumsum(extra)
    return shift, np.arange(count) + shift[:-1]


def _spliced(codes: Ints, starts: Ints, operands: Ints, pieces: dict[int, Any]) -> tuple[Ints, Ints, Ints]:
    """Replace the instruction at each place of `pieces` by several, the last of which has its value."""
    shift, places = _shifted(len(codes), pieces)
    moved = np.where(operands >= 0, operands + shift[np.maximum(operands, 0)], operands)
    new_codes: list[Any] = []
    new_operands: list[Any] = []
    lengths: list[Any] = []
    at = 0
    for place in [*pieces, len(codes)]:
        new_codes.append(codes[at:place])
        lengths.append(np.diff(starts[at : place + 1]))
        new_operands.append(moved[starts[at] : starts[place]])
        if place < len(codes):
            for code, inner in pieces[place]:
                new_codes.append([code])
                lengths.append([len(inner)])
                new_operands.append([_resolve(x, pieces, places) for x in inner])
        at = place + 1
    joined = [np.concatenate([np.asarray(x, np.int64) for x in part]) for part in (new_codes, lengths, new_operands)]
    return joined[0], np.concatenate([[0], np.cumsum(joined[1])]), joined[2]


IS_POWER, IS_LENGTH = [
    np.isin(np.arange(1 << 16), [BY_NAME[name].code for name in names])
    for names in (("pow", "mul", "square"), ("abs", "hypot", "norm"))
]
STEP = 1 << 40  # an inserted step is named STEP + place * STEPS + number
STEPS = 1 << 20


def _resolve(x: int, pieces: dict[int, Any], places: Ints) -> int:
    if x < STEP:
        return int(places[x]) if x >= 0 else x
    place, number = divmod(x - STEP, STEPS)
    return int(places[place]) - len(pieces[place]) + 1 + number


class _Expansion:
    def __init__(self, constants: list[float], place: int) -> None:
        self.constants, self.place = constants, place
        self.steps: list[tuple[int, list[int]]] = []

    def __call__(self, name: str, *operands: int) -> int:
        self.steps.append((BY_NAME[name].code, list(operands)))
        return STEP + self.place * STEPS + len(self.steps) - 1

    def constant(self, c: float) -> int:
        self.constants.append(c)
        return -len(self.constants)


def _mean(write: _Expansion, xs: list[int]) -> None:
    write("div", write("sum", *xs), write.constant(float(len(xs))))


def _product(write: _Expansion, xs: list[int]) -> None:
    total = write("mul", xs[0], write.constant(1.0))
    for x in xs[1:]:
        total = write("mul", total, x)


def _logsumexp(write: _Expansion, xs: list[int]) -> None:
    shift = write("stop_gradient", write("max", *xs))
    powers = [write("exp", write("sub", x, shift)) for x in xs]
    write("add", shift, write("log", write("sum", *powers)))


def _norm(write: _Expansion, xs: list[int]) -> None:
    """Write the root of a sum of squares, with gradient 0 at 0: ordinary numbers as they are, others over a scale."""
    greatest = write("stop_gradient", write("max", *[write("abs", x) for x in xs]))
    one, tiny, large = (write.constant(c) for c in (1.0, 2.0**-150, 2.0**150))  # their fifth powers are ordinary
    above = write("minimum", greatest, write.constant(2.0**1000))
    below = write("maximum", greatest, write.constant(2.0**-1000))
    scale = write("where", write("lt", greatest, tiny), below, one)
    scale = write("where", write("gt", greatest, large), above, scale)
    total = write("sum", *[write("square", write("div", x, scale)) for x in xs])
    root = write("sqrt", write("where", total, total, one))
    write("abs", write("where", total, write("mul", root, scale), total))  # a length, with the derivatives of one


WRITTEN_OUT: dict[str, Callable[[_Expansion, list[int]], None]] = {
    "mean": _mean,
    "prod": _product,
    "logsumexp": _logsumexp,
    "norm": _norm,
}


def one_by_one(codes: Ints, starts: Ints, operands: Ints, count: int, at: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Write some sums out as binary additions; return the new places of all numbers and of the `count` constants."""
    n, pieces = len(codes), dict[int, Any]()
    operands = np.where(operands >= n, n - 1 - operands, operands)  # constants are below 0, as in a graph
    for place in at.tolist():
        writer, xs = _Expansion([], place), operands[starts[place] : starts[place + 1]].tolist()
        half = len(xs) // 2 if codes[place] == BY_NAME["dot"].code else 0
        terms = xs[2 * half :] + [writer("mul", *pair) for pair in zip(xs[:half], xs[half : 2 * half], strict=True)]
        reduce(lambda x, y: writer("add", x, y), terms)
        pieces[place] = writer.steps
    codes, starts, operands = _spliced(codes, starts, operands, pieces)
    moved = np.append(_shifted(n, pieces)[1], np.arange(count) + len(codes))
    return codes, starts, np.where(operands < 0, len(codes) - 1 - operands, operands), moved


def share_constants(operands: Ints, constants: Any, source: Ints, data: Any) -> tuple[Ints, Any, Ints]:
    """Merge equal constants, numbered from n on, and make constant leaves constants."""
    n = len(source)
    leaves = np.flatnonzero(source == CONST)
    bits = np.concatenate([constants, data[leaves]]).view(np.int64)
    distinct = np.unique(bits)
    number = np.searchsorted(distinct, bits) + n
    stands_for = np.arange(n)
    stands_for[leaves] = number[len(constants) :]
    if len(constants):
        of_constant = number[np.maximum(-1 - operands, 0)] if len(operands) else operands
        operands = np.where(operands < 0, of_constant, stands_for[np.maximum(operands, 0)])
    else:
        operands = stands_for[operands]
    return operands, distinct.view(np.float64), stands_for


def _without(gone: Any, codes: Ints, starts: Ints, operands: Ints) -> tuple[Ints, Ints, Ints]:
    if not gone.any():
        return codes, starts, operands
    length = np.diff(starts)
    operands = operands[~np.repeat(gone, length)]
    return np.where(gone, 0, codes), np.concatenate([[0], np.cumsum(np.where(gone, 0, length))]), operands


def merge_equal(codes: Ints, starts: Ints, operands: Ints, stands_for: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Merge equal operations on the same operands into the first of them."""
    for _ in range(EQUAL_ROUNDS):
        length = np.diff(starts)
        nodes = np.flatnonzero(length > 0)
        if not len(nodes):
            break
        position = np.arange(len(operands)) - np.repeat(starts[:-1], length)
        mixed = (operands + 1) * np.int64(0x5851F42D4C957F2D) + position * np.int64(0x2545F4914F6CDD1D)
        mixed = (mixed ^ (mixed >> 31)) * np.int64(0x369DEA0F31A53F85)
        key = np.add.reduceat(mixed, starts[nodes]) + codes[nodes] * np.int64(0x1B873593CC9E2D51)
        ordered = np.sort(key)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(twice):
            break
        alike = twice[np.minimum(np.searchsorted(twice, key), len(twice) - 1)] == key  # usually few
        nodes = nodes[alike]
        _, first, number = np.unique(key[alike], return_index=True, return_inverse=True)
        keeper = nodes[first[number.reshape(-1)]]
        keeper = np.where((codes[keeper] == codes[nodes]) & (length[keeper] == length[nodes]), keeper, nodes)
        merged = np.flatnonzero(keeper != nodes)
        if len(merged):  # compare operands, as different ones may have the same hash
            of, by = nodes[merged], keeper[merged]
            same = operands[concat_ranges(starts[of], length[of])] == operands[concat_ranges(starts[by], length[of])]
            merged = merged[np.logical_and.reduceat(same, np.cumsum(length[of]) - length[of])]
        if not len(merged):
            break
        rename = np.arange(max(len(codes), int(operands.max()) + 1, int(stands_for.max()) + 1))
        rename[nodes[merged]] = keeper[merged]
        gone = np.zeros(len(codes), bool)
        gone[nodes[merged]] = True
        codes, starts, operands = _without(gone, codes, starts, operands)
        operands, stands_for = rename[operands], rename[stands_for]
    return codes, starts, operands, stands_for
