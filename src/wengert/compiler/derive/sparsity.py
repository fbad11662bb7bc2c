"""The pattern of a Jacobian, from a Program: which derivatives are not 0 at every point.

Each cell of an array has the ascending list of the inputs that it depends on, and each step unites those of the cells
that it reads; lists are freed after their last use. An index that is known only at run time may be any within its
extent, and both sides of a choice count, except where a mask has chosen already. The iterations of a loop are alike:
the pattern of one, in terms of what it reads, is computed once, and applied iteration by iteration, as the lists of a
recurrence grow. An iteration that reads the same lists as the one before reuses its result.

That of a Hessian is the pattern of the Jacobian of the gradient's program.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from wengert.compiler.ir import (
    BATCH,
    COMPARISONS,
    ONE,
    ZERO,
    Array,
    Assemble,
    Compute,
    Expr,
    Index,
    Loop,
    LoopOutput,
    Program,
    Step,
    concat_ranges,
    cotangents,
    fold,
    has_mask,
    rewrite_masks,
)
from wengert.derivatives import coloring

__all__ = ["PatternSweep", "edges_of", "jacobian_pattern"]

Pattern = coloring.Pattern
Ints = coloring.Ints
ROOM = 1 << 22  # inputs of cells, with repetitions, that are united at once
DENSE = 1 << 26  # entries of a matrix of bools that is filled instead of sorting places
Points = Any  # the points of a step: True for all, or an array of bools over its axes
Edges = tuple[Ints, Ints, Pattern]  # for each reader a cell that is read, and the inputs of cells


def jacobian_pattern(program: Program, inputs: Sequence[Array]) -> Pattern:
    """Return which numbers of the output "out", of one example, depend on which numbers of some inputs.

    The columns are the cells of the inputs, end to end in the given order.
    """
    sweep = PatternSweep.over(inputs)
    return sweep.run(program.steps, program.outputs["out"])


# -- which partial derivatives of an expression are identically 0 -----------------------------------------------------


@lru_cache(1024)
def _slopes(operation: Expr) -> dict[int, Expr]:
    """Return the partial derivatives of an operation on ``("in", k)`` and constants that are not identically 0."""
    return {k: slope for k, slope in cotangents(operation, ONE).items() if slope != ZERO}


def _operation(expr: Expr) -> Expr:
    return (expr[0], *[x if x[0] == "const" else ("in", k) for k, x in enumerate(expr[1:])])


def _dependence(expr: Expr) -> dict[int, Points]:
    """Return the operands that an expression depends on, with the points where it does."""
    nonzero: dict[int, Points] = {}
    fold(expr, _nonzero, nonzero)

    def combine(part: Expr, inner: list[dict[int, Points]]) -> dict[int, Points]:
        if part[0] == "in":
            return {part[1]: True}
        if part[0] == "partial":  # of a user's rule, which nothing is known of
            return dict.fromkeys([k for each in inner for k in each], True)
        dependence: dict[int, Points] = {}
        for place, points in _branches(part, nonzero):
            for k, own in inner[place].items():
                dependence[k] = dependence.get(k, False) | (own & points)
        return dependence

    return fold(expr, combine)


def _branches(expr: Expr, nonzero: dict[int, Points]) -> list[tuple[int, Points]]:
    """Return the operands with respect to which an operation has a derivative, with the points where it does."""
    name = expr[0]
    if name in ("const", "mask", "stop_gradient", *COMPARISONS):
        return []
    if name in ("where", "guarded"):
        chosen = expr[1][1] if expr[1][0] == "mask" else None
        return [(1, True if chosen is None else chosen), (2, True if chosen is None else ~chosen)]
    return [(k, nonzero[id(expr[2 - k])] if name == "mul" else True) for k in _slopes(_operation(expr))]


def _nonzero(part: Expr, inner: list[Points]) -> Points:
    """Return the points where no mask makes a part of an expression 0."""
    if part[0] == "mul":
        return inner[0] & inner[1]
    return part[1][1] if part[0] == "where" and part[1][0] == "mask" and part[3] == ZERO else True


# -- the points of a step ---------------------------------------------------------------------------------------------


def _valid(step: Compute, owners: Ints, places: Sequence[Ints]) -> Points:
    """Return the points of a Compute that contribute to real cells: `owners` are these, `places` what they read."""
    valid: Points = True if step.mask is None else step.mask.reshape(-1)
    if step.out.mask is not None:
        valid = valid & step.out.mask.reshape(-1)[owners]
    for access, cells in zip(step.operands, places, strict=True):  # a product with padding is 0
        if access.array.mask is not None and access.index is None and not has_mask(step.expr):
            valid = valid & access.array.mask.reshape(-1)[cells]
    return valid


def _spread(numbers: Ints, cells: Ints, index: Index | None) -> tuple[Ints, Ints]:
    """Return numbers and the cells that belong to them: with an index, each one that it may choose."""
    if index is None:
        return numbers, cells
    chosen = cells[:, None] + index.step * np.arange(index.extent)
    return np.repeat(numbers, index.extent), chosen.reshape(-1)


def edges_of(step: Compute | Assemble, ids: Container[int]) -> Iterator[tuple[Ints, Ints, Array]]:
    """Yield for each operand or part whose id is in `ids`: cells of the output, the cell that each of these depends
    on, and the operand.
    """
    if isinstance(step, Assemble):
        for access, part in step.parts:
            if id(part) in ids:
                own, cells = _spread(np.arange(part.size), access.places(part.shape), access.index)
                yield cells, own, part
        return
    axes = tuple([n for n in step.axes if n != BATCH])
    places = [access.places(step.axes) for access in step.operands]
    owners = np.repeat(np.arange(step.out.size), prod(axes) // max(step.out.size, 1))
    valid = _valid(step, owners, places)
    for k, points in _dependence(rewrite_masks(step.expr, len(axes), lambda mask: mask)).items():
        access = step.operands[k]
        if id(access.array) in ids:
            chosen = valid if points is True else valid & np.broadcast_to(points, axes).reshape(-1)
            at = slice(None) if chosen is True else np.flatnonzero(chosen)
            readers, cells = _spread(owners[at], places[k][at], access.index)
            yield readers, cells, access.array


# -- lists of inputs --------------------------------------------------------------------------------------------------


def _none(size: int, width: int) -> Pattern:
    return Pattern(np.zeros(size + 1, np.int64), np.zeros(0, np.int64), width)


def _united(edges: list[Edges], size: int, width: int) -> Pattern:
    """Return for each of `size` readers the inputs of all cells that it reads."""
    counts = [np.diff(pattern.indptr)[cells] for _, cells, pattern in edges]
    ends = np.cumsum(sum([np.bincount(x[0], n, size) for x, n in zip(edges, counts, strict=True)], np.zeros(size)))
    if not size or not ends[-1]:
        return _none(size, width)
    bounds = np.unique(np.searchsorted(ends, np.arange(ROOM, ends[-1], ROOM))).tolist()
    chunks = []
    for low, high in pairwise([0, *bounds, size]):
        codes = [np.zeros(0, np.int64)]
        for (owners, cells, pattern), n in zip(edges, counts, strict=True):
            here = (owners >= low) & (owners < high) if bounds else slice(None)
            starts = pattern.indptr[cells[here]]
            codes.append(np.repeat(owners[here] * width, n[here]) + pattern.indices[concat_ranges(starts, n[here])])
        chunks.append(_distinct(np.concatenate(codes), low * width, high * width))
    return Pattern.of_codes(np.concatenate(chunks), (size, width))


def _distinct(codes: Ints, low: int, high: int) -> Ints:
    """Return the different ones among codes from a range, in order."""
    if high - low > min(8 * len(codes), DENSE):
        return coloring.distinct(codes)
    seen = np.zeros(high - low, bool)
    seen[codes - low] = True
    return np.flatnonzero(seen) + low


# -- the sweep --------------------------------------------------------------------------------------------------------


@dataclass
class PatternSweep:
    """The inputs of each cell."""

    width: int
    patterns: dict[int, Pattern] = field(default_factory=dict)  # by the id of an array

    @classmethod
    def over(cls, inputs: Iterable[Array]) -> PatternSweep:
        """Begin with arrays whose cells are the inputs, end to end."""
        arrays = list(inputs)
        ends = np.cumsum([0, *[array.size for array in arrays]]).tolist()
        sweep = cls(ends[-1])
        for array, first in zip(arrays, ends, strict=False):
            own = np.arange(first, first + array.size)
            sweep.patterns[id(array)] = Pattern(np.arange(array.size + 1), own, sweep.width)
        return sweep

    def run(self, steps: Sequence[Step], out: Array) -> Pattern:
        last = {id(array): number for number, step in enumerate(steps) for array in step.reads}
        for number, step in enumerate(steps):
            self.step(step)
            for array in step.reads:
                if last[id(array)] == number and array is not out:
                    self.patterns.pop(id(array), None)
        return self.rows_of(out)

    def rows_of(self, array: Array) -> Pattern:
        return self.patterns.get(id(array), _none(array.size, self.width))

    def step(self, step: Step) -> None:
        if isinstance(step, Loop):
            self.patterns.update(_Iterations(step, self).rows())
            return
        edges = [(owners, cells, self.patterns[id(x)]) for owners, cells, x in edges_of(step, self.patterns)]
        pattern = _united(edges, step.out.size, self.width)
        if len(pattern.indices):
            self.patterns[id(step.out)] = pattern


class _Iterations:
    """The pattern of an iteration, in terms of the arrays that it reads and does not make."""

    def __init__(self, loop: Loop, sweep: PatternSweep) -> None:
        self.loop = loop
        self.sweep = sweep
        self.own: dict[int, LoopOutput] = {id(output.out): output for output in loop.outputs}
        read = {id(array): array for step in loop.steps for array in step.reads}
        self.leaves = [x for x in read.values() if {id(x.origin)} & {*sweep.patterns, *self.own}]
        self.local = PatternSweep.over(self.leaves)
        for step in loop.steps:
            self.local.step(step)

    def rows(self) -> dict[int, Pattern]:
        """Return the inputs of the outputs' cells, iteration by iteration."""
        loop, width, outputs = self.loop, self.sweep.width, self.loop.outputs
        patterns = [self.local.rows_of(output.part) for output in outputs]
        starts = np.cumsum([0, *[output.part.size for output in outputs]]).tolist()
        owners = np.concatenate([first + x.rows for first, x in zip(starts, patterns, strict=False)])
        cells = np.concatenate([x.indices for x in patterns])
        rows_by_output = {id(output.out): self.initial(output) for output in outputs}
        before: list[Lists] = []
        new_rows: list[Lists] = []
        for iteration in reversed(range(loop.count)) if loop.backward else range(loop.count):
            read = [self.read(leaf, iteration, rows_by_output) for leaf in self.leaves]
            if not new_rows or not all(map(_equal, read, before)):
                united = _united([(owners, cells, _stacked(read, width))], starts[-1], width)
                new_rows = [_lists(united, *span) for span in pairwise(starts)]
            for output, lists in zip(outputs, new_rows, strict=True):
                rows_by_output[id(output.out)][loop.first_row(output) + iteration] = lists
            before = read
        return {number: _stacked(rows, width) for number, rows in rows_by_output.items()}

    def initial(self, output: LoopOutput) -> list[Lists]:
        """Return the rows of an output before the first iteration, with room for the others."""
        rows, size = self.loop.initial_rows(output), output.part.size
        initial = output.initial
        pattern = _none(rows * size, self.sweep.width) if initial is None else self.sweep.rows_of(initial)
        given = [_lists(pattern, row * size, row * size + size) for row in range(rows)]
        room = [(pattern.indptr[:0], pattern.indices[:0])] * self.loop.count
        return [*room, *given] if self.loop.backward else [*given, *room]

    def read(self, leaf: Array, iteration: int, rows_by_output: dict[int, list[Lists]]) -> Lists:
        piece = leaf.slice
        if piece is None:
            return _lists(self.sweep.patterns[id(leaf)], 0, leaf.size)
        start = piece.base + piece.step * iteration
        output = self.own.get(id(piece.array))
        if output is None:
            return _lists(self.sweep.patterns[id(piece.array)], start, start + leaf.size)
        first, count = start // output.part.size, leaf.size // output.part.size
        rows = rows_by_output[id(piece.array)][first : first + count]
        return rows[0] if count == 1 else (np.concatenate([n for n, _ in rows]), np.concatenate([x for _, x in rows]))


Lists = tuple[Ints, Ints]  # of some cells: how many inputs each has, and the inputs


def _lists(pattern: Pattern, first: int, last: int) -> Lists:
    ends = pattern.indptr[first : last + 1]
    return np.diff(ends), pattern.indices[ends[0] : ends[-1]]


def _stacked(lists: Sequence[Lists], width: int) -> Pattern:
    counts = np.concatenate([np.zeros(1, np.int64), *[n for n, _ in lists]])
    return Pattern(np.cumsum(counts), np.concatenate([counts[:0], *[x for _, x in lists]]), width)


def _equal(a: Lists, b: Lists) -> bool:
    return a is b or all(map(np.array_equal, a, b))
