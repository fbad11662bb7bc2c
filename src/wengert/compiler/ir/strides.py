"""Memory layouts: find the order and the shape in which the operands of a group are read with strides.

All of this is arithmetic on arrays of integers: rows of numbers' ids, or of cells within an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["Grid", "components", "concat_ranges", "fit_strides", "nested", "product_grid", "without_broadcast"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
DENSE = 0.4  # a matrix product is computed whole if at least this share of its elements is used
ROUNDS = 64  # rounds of spreading labels before the search for components is given up


@dataclass
class Grid:
    """The rows of a group in the order and the shape in which an array stores them."""

    rows: Ints  # over the array's shape: the row; any row in padding
    cell: Ints  # the cell of each row
    mask: Any  # over the array's shape: False in padding; None if there is none

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.rows.shape)

    @classmethod
    def of(cls, rows: Ints, count: int) -> Grid:
        cell = np.empty(count, np.int64)
        cell[rows.reshape(-1)] = np.arange(count)
        return cls(rows, cell, None)


def fit_strides(cells: Ints, mask: Any = None) -> tuple[int, tuple[int, ...]] | None:
    """Return the base and the strides that give these cells over their axes; None if there are none.

    >>> fit_strides(np.array([[5, 7], [1, 3]]))
    (5, (-4, 2))
    """
    if mask is None:
        corner = (0,) * cells.ndim
        base = int(cells[corner])
        strides = [
            int(cells[(*corner[:i], 1, *corner[i + 1 :])]) - base if n > 1 else 0 for i, n in enumerate(cells.shape)
        ]
    else:
        strides = []
        for axis in range(cells.ndim):
            here, there = np.moveaxis(cells, axis, 0)[:-1], np.moveaxis(cells, axis, 0)[1:]
            both = np.moveaxis(mask, axis, 0)
            pairs = np.flatnonzero((both[:-1] & both[1:]).reshape(-1))
            strides.append(int(there.reshape(-1)[pairs[0]] - here.reshape(-1)[pairs[0]]) if len(pairs) else 0)
        point = np.argwhere(mask)[0]
        base = int(cells[tuple(point)]) - sum(s * int(p) for s, p in zip(strides, point, strict=True))
    fitted = addresses(base, tuple(strides), cells.shape)
    right = fitted == cells
    if not (right if mask is None else right | ~mask).all():
        return None
    return base, tuple(strides)


def addresses(base: int, strides: tuple[int, ...], shape: tuple[int, ...]) -> Ints:
    cells = np.full(shape, base)
    for axis, (stride, length) in enumerate(zip(strides, shape, strict=True)):
        if stride:
            cells += (np.arange(length) * stride).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return cells


def nested(columns: list[Ints], count: int, hint: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the shape over which as many columns of cells as possible have strides, the most important column first.

    >>> nested([np.array([0, 1, 2, 8, 9, 10]), np.array([4, 4, 4, 5, 5, 5])], 6)
    (2, 3)
    """
    lengths: list[int] = []
    columns, hints = list(columns), [n for n in hint if n > 1]
    while count > 1:
        run = count
        for column in list(columns):
            length = _run(column)
            if length == 1 or count % length or not _repeats(column, length):
                columns = [c for c in columns if c is not column]
            else:
                run = min(run, length)
        if hints and run % hints[-1] == 0:
            run = hints.pop()
        if count % run or not all(_repeats(column, run) for column in columns):
            run, columns = count, columns[:1]
            if columns and not _repeats(columns[0], run):
                columns = []
        lengths.append(run)
        columns = [column.reshape(-1, run)[:, 0] for column in columns]
        count //= run
    return tuple(reversed(lengths))


def _run(column: Ints) -> int:
    """Count the leading cells that are equally far apart."""
    steps = np.diff(column)
    change = np.flatnonzero(steps != steps[0])
    return len(column) if not len(change) else int(change[0]) + 1


def _repeats(column: Ints, length: int) -> bool:
    """Return True if all stretches of a length have the same steps, all equal."""
    table = column.reshape(-1, length)
    steps = table - table[:, :1]
    return bool((steps == steps[0]).all()) and bool((np.diff(steps[0], 2) == 0).all())


def concat_ranges(starts: Ints, counts: Ints) -> Ints:
    """Return ``start, start + 1, ...`` of each of some ranges, end to end.

    >>> concat_ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    begin = np.cumsum(counts) - counts
    places: Ints = np.arange(counts.sum(), dtype=np.int64) + np.repeat(starts - begin, counts)
    return places


def without_broadcast(table: Ints) -> tuple[Ints, tuple[int, ...]]:
    """Return the table without the axes along which it is constant, and the numbers of the other axes.

    >>> without_broadcast(np.array([[1, 2], [1, 2]]))
    (array([1, 2]), (1,))
    """
    stay = []
    for axis in range(table.ndim):
        first = table[(slice(None),) * axis + (slice(1),)]
        if table.shape[axis] == 1 or (table == first).all():
            table = first
        else:
            stay.append(axis)
    return table.reshape([table.shape[axis] for axis in stay]), tuple(stay)


def distinct(rows: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each kind, in order of appearance, and the kind of each row."""
    if len(rows) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    mixed = rows * np.int64(0x9E3779B97F4A7C15 - (1 << 64))
    keys = ((mixed ^ (mixed >> 29)) * _weights(rows.shape[1])).sum(1)
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    first, kind = first[order], rank[kind.reshape(-1)]
    if not np.array_equal(rows[first[kind]], rows):  # a hash collision
        _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
    return first, kind


@lru_cache(16)
def _weights(count: int) -> Ints:
    return np.random.default_rng(1964).integers(1, 2**62, count, dtype=np.int64)


def product_grid(left: Ints, right: Ints) -> Grid | None:
    """Arrange rows of two factors as (batches of) one matrix product, [block, kinds of right rows, kinds of left rows].

    Each number is a pair of a left and a right row. Pairs that share rows are connected; a connected block that uses
    most of its pairs is a matrix product. None if rows are not shared, or not regularly.
    """
    count = len(left)
    if count == 1:
        return Grid(np.zeros((1, 1, 1), np.int64), np.zeros(1, np.int64), None)
    first_left, kind_left = distinct(left)
    first_right, kind_right = distinct(right)
    many_left, many_right = len(first_left), len(first_right)
    if many_left == count and many_right == count:
        return None
    block = np.zeros(count, np.int64)
    if many_left > 1 and many_right > 1 and count < many_left * many_right:
        labels = components([(kind_left, many_left + kind_right)], many_left + many_right, ROUNDS)
        if labels is None:
            return None
        _, block = distinct(labels[kind_left][:, None])
    blocks = int(block.max()) + 1
    block_of_left, block_of_right = np.zeros(many_left, np.int64), np.zeros(many_right, np.int64)
    block_of_left[kind_left], block_of_right[kind_right] = block, block
    lefts, rights = np.bincount(block_of_left, minlength=blocks), np.bincount(block_of_right, minlength=blocks)
    if (lefts != lefts[0]).any() or (rights != rights[0]).any():
        return None
    wide, high = int(lefts[0]), int(rights[0])
    place_left, place_right = _rank_within(block_of_left, wide), _rank_within(block_of_right, high)
    cell = (block * high + place_right[kind_right]) * wide + place_left[kind_left]
    rows = np.full(blocks * high * wide, -1)
    rows[cell] = np.arange(count)
    padding = rows < 0
    used = ~padding.reshape(blocks, -1)
    if used.mean(1).min() < DENSE:
        return None
    mask = None
    if padding.any():
        mask = ~padding.reshape(blocks, high, wide)
    return Grid(rows.reshape(blocks, high, wide), cell, mask)


def grid_rows(grid: Grid, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the rows of both factors over a product grid: left rows vary along its last axis, right rows before it."""
    filled = grid.rows >= 0
    by_wide = np.where(filled, grid.rows, -1).max(1)  # any row of the column
    by_high = np.where(filled, grid.rows, -1).max(2)
    return left[by_wide][:, None], right[by_high][:, :, None]


def _rank_within(block: Ints, size: int) -> Ints:
    order = np.argsort(block, kind="stable")
    rank = np.empty(len(block), np.int64)
    rank[order] = np.tile(np.arange(size), len(block) // size)
    return rank


def components(edges: Sequence[tuple[Ints, Ints]], count: int, rounds: int) -> Ints | None:
    """Return for each of `count` numbers the smallest one that edges connect it to; None if that takes more rounds."""
    labels = np.arange(count)
    for _ in range(rounds):
        spread = labels.copy()
        for pair in edges:
            least = np.minimum(*[spread[ends] for ends in pair])
            for ends in pair:
                np.minimum.at(spread, ends, least)
        spread = spread[spread]
        if np.array_equal(spread, labels):
            return labels
        labels = spread
    return None
