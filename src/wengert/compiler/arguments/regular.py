"""Regularly nested lists: numbers of one type, in lists, tuples and arrays of one length at each level.

What a row is, is decided here alone, by exact types: whatever else NumPy would read as a sequence (a range, a deque, a
tensor) is no list, and is left to the function as it is.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler import policy
from wengert.compiler.code import DEPTH, PARTS

__all__ = ["ARRAYS", "KINDS", "Rows", "Tangled", "has_large", "read_rows", "rows_in", "widened"]

ARRAYS = (np.ndarray, np.memmap)  # arrays that hold nothing but numbers
KINDS: dict[Any, str] = {  # of a type of numbers: f for floats, i for integers, b for bools
    **{np.dtype(code).type: kind for codes, kind in (("efd", "f"), ("bhilqBHILQ", "i")) for code in codes},
    float: "f",
    int: "i",
    bool: "b",
    np.bool_: "b",
}


class Tangled(Exception):  # noqa: N818  (not an error: a reason to leave an argument to the function)
    """Few lists are in each other again and again, so that they look like more and more."""


class Rows(NamedTuple):
    """What nested lists look like: for each axis its type (an array is the last one), the lengths, and the type of the
    numbers; None for the type of anything else.
    """

    held: tuple[Any, ...]
    shape: tuple[int, ...]
    kinds: frozenset[Any]  # the types of what is innermost

    @property
    def is_mixed(self) -> bool:
        """True if there are whole numbers beside floats."""
        return self.kinds == {int, float}

    @property
    def number(self) -> Any:
        """The type of the numbers; whole numbers beside floats count as floats. None if they are of other types."""
        kinds = self.kinds - {int} if float in self.kinds else self.kinds
        (kind,) = kinds if len(kinds) == 1 else (None,)
        return kind if kind in KINDS else None


def rows_in(x: Any) -> Rows | None:
    """Describe a list or tuple; None if its rows differ in type or length, or there are none.

    Raises:
        Tangled: it is too large to describe.
    """
    merged = None
    for piece in _pieces(x):
        rows = _described(piece)
        if rows is None or (merged is not None and (rows.held, rows.shape[1:]) != (merged.held, merged.shape[1:])):
            return None
        merged = rows if merged is None else merged._replace(kinds=merged.kinds | rows.kinds)
    return None if merged is None else merged._replace(shape=(len(x), *merged.shape[1:]))


def read_rows(x: Any, rows: Rows) -> Any:
    """Return the array of a list or tuple that `rows` describes, with float64 or int64; None if an integer in it
    is too large.

    Raises:
        ValueError: it has changed meanwhile.
    """
    array = np.concatenate([np.array(piece) for piece in _pieces(x)])
    kind = KINDS[rows.number]
    if array.dtype == object:  # integers beyond those of NumPy
        return None
    if array.shape != rows.shape or (array.dtype.kind == "b") != (kind == "b"):
        raise ValueError
    if rows.is_mixed:
        beyond = has_large(array) and any(
            type(item) is int and abs(item) >= 1 << 53 for item in np.array(x, object).flat
        )
        return None if beyond else array
    return None if kind == "i" and has_large(array) else widened(array)


def widened(x: Any) -> Any:
    """Convert an array of integers that are not too large to int64, one of floats or bools to float64."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64, copy=False)


def has_large(x: Any) -> bool:
    """Return True if a number in an array is 2**53 or more, up or down."""
    return bool((np.abs(x.astype(float)) >= 2.0**53).any())


def _pieces(x: Any) -> list[Any]:
    """Cut a long list or tuple: other threads and Ctrl-C wait while NumPy reads a piece."""
    size, row = 1, x
    for _ in range(DEPTH):
        if type(row) not in (list, tuple) or not row:
            break
        size, row = size * len(row), row[0]
    rows = len(x) * policy.ROOM // (8 * size) + 1
    return [x] if rows >= len(x) else [x[n : n + rows] for n in range(0, len(x), rows)]


def _described(x: Any) -> Rows | None:
    held: list[Any] = []
    shape: list[int] = []
    level: Any = (x,)
    while True:
        kinds = {*map(type, level)}
        if kinds <= {*ARRAYS}:
            return _of_arrays(held, shape, level)
        if kinds != {list} and kinds != {tuple}:
            return Rows(tuple(held), tuple(shape), frozenset(kinds))
        lengths = {*map(len, level)}
        if len(lengths) != 1 or 0 in lengths or len(held) == DEPTH:
            return None
        if len(held) > 2 and len(level) > PARTS and len({*map(id, level)}) < len(level) // 2:
            raise Tangled
        held += kinds
        shape += lengths
        level = level[0] if len(level) == 1 else [*chain.from_iterable(level)]


def _of_arrays(held: list[Any], shape: list[int], arrays: Any) -> Rows | None:
    """Describe lists whose rows are arrays; None if these differ, or are no rows of numbers."""
    if len({(x.shape, x.dtype) for x in arrays}) != 1 or 0 in arrays[0].shape:
        return None
    if not arrays[0].ndim or not arrays[0].dtype.isnative:
        return None
    return Rows((*held, np.ndarray), (*shape, *arrays[0].shape), frozenset([arrays[0].dtype.type]))
