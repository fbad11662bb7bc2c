"""The Python version of `memory.pxd`: machine code is called, and numbers are read and written at addresses.

Interpreted, the modules of this package import this file; compiled, Cython reads `memory.pxd` instead. An address is an
int, of numbers of 8 bytes each that lie end to end; the caller keeps the memory alive.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from math import copysign, isfinite
from types import CellType
from typing import Any

__all__ = ["add", "add_squares", "address", "are_below", "are_bytes", "are_distinct", "are_exact"]
__all__ += ["are_floats"]
__all__ += ["are_identical", "are_items", "are_names", "are_same", "attribute", "call", "compare", "contents", "copy"]
__all__ += ["finite", "first_changed", "get", "indices", "is_exact", "isfinite", "pop", "push", "put", "put_int"]
__all__ += ["rows", "same_side", "scatter", "scatter_list", "squares", "total", "version"]

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@functools.lru_cache(256)
def _function(code: int, unlocked: bool) -> Any:
    kind = ctypes.CFUNCTYPE if unlocked else ctypes.PYFUNCTYPE
    return kind(None, ctypes.c_int64, ctypes.c_double, *[ctypes.c_void_p] * 5)(code)


def call(
    code: int, n: int, seed: float, inputs: int, params: int, grads: int, outputs: int, work: int, unlocked: bool
) -> None:
    """Run machine code on `n` examples.

    Unlocked, it lets other threads run meanwhile, which might change or resize any array of theirs.
    """
    _function(int(code), bool(unlocked))(int(n), seed, *map(int, (inputs, params, grads, outputs, work)))


def _view(at: int, n: int, is_int: bool = False) -> Any:
    import numpy as np

    kind: Any = ctypes.c_int64 if is_int else ctypes.c_double
    return np.frombuffer((kind * int(n)).from_address(int(at)), kind) if n else np.zeros(0, kind)


def address(x: Any, is_int: bool, shape: tuple[int, ...], rows: int) -> int:
    """Return the address of an array's numbers; 0 if they are not contiguous, or of another kind or shape.

    Args:
        x: the array.
        is_int: True if its numbers must be int64, False for float64.
        shape: its shape, or that of a row.
        rows: the number of rows along a first axis: 0 if there is no such axis, -1 for any number.
    """
    fits = x.dtype.isnative and x.dtype.kind == ("i" if is_int else "f") and x.dtype.itemsize == 8
    fits = fits and x.flags.c_contiguous and x.flags.aligned
    fits = fits and x.shape[rows != 0 :] == shape and (rows <= 0 or x.shape[0] == rows)
    return int(x.ctypes.data) if fits and x.ndim == (rows != 0) + len(shape) else 0


def indices(source: int, target: int, n: int, extent: int, wraps: bool) -> bool:
    """Copy indices; with `wraps` negative ones count from the end. Return False if one is out of bounds."""
    index = _view(source, n, True)
    index = index + extent * (index < 0) if wraps else index
    inside = bool(((index >= 0) & (index < extent)).all())
    if inside:
        _view(target, n, True)[...] = index
    return inside


def is_exact(x: int) -> bool:
    """Return True if a float can hold this integer exactly, and no other integer is that float: -2**53 <= x < 2**53."""
    return -(1 << 53) <= x < 1 << 53


def are_exact(at: int, n: int) -> bool:
    """Return True if `is_exact` holds for n integers."""
    integers = _view(at, n, True)
    return bool(((integers >= -(1 << 53)) & (integers < 1 << 53)).all())


def are_same(left: int, right: int, n: int) -> bool:
    """Return True if n numbers at two addresses have the same bits."""
    return ctypes.string_at(left, 8 * n) == ctypes.string_at(right, 8 * n)


def copy(source: int, target: int, n: int) -> None:
    """Copy n floats or integers."""
    ctypes.memmove(int(target), int(source), 8 * int(n))


def are_below(places: int, n: int, count: int) -> bool:
    """Return True if n integers are from 0 to below `count`."""
    chosen = _view(places, n, True)
    return bool(((chosen >= 0) & (chosen < count)).all())


def rows(source: int, target: int, places: int, n: int, width: int) -> None:
    """Copy rows of `width` numbers, those at some places, which the caller has checked."""
    chosen = _view(places, n, True)
    there = _view(source, (chosen.max(initial=-1) + 1) * width, True).reshape(-1, int(width))
    _view(target, n * width, True).reshape(-1, int(width))[...] = there[chosen]


def add(source: int, target: int, places: int, n: int) -> None:
    chosen = _view(places, n, True)
    _view(target, chosen.max(initial=-1) + 1)[chosen] += _view(source, n)


def accumulate(source: int, target: int, n: int) -> None:
    sums = _view(target, n)
    sums += _view(source, n)


def let_others() -> None:
    """Let threads run that wait for the interpreter's lock; interpreted, Python does so by itself."""


def check_signals() -> None:
    """Raise KeyboardInterrupt after Ctrl-C; interpreted, Python does so by itself."""


def finite(at: int, n: int) -> bool:
    import numpy as np

    return bool(np.isfinite(_view(at, n)).all())


def squares(at: int, n: int) -> float:
    """Return the sum of squares of n floats; not finite if one is not, or beyond 1e154."""
    import numpy as np

    floats = _view(at, n)
    with np.errstate(all="ignore"):
        return float(floats.dot(floats))


def add_squares(source: int, target: int, n: int) -> float:
    """Add n floats to others, and return the sum of squares of these."""
    accumulate(source, target, n)
    return squares(target, n)


def same_side(left: int, least: float, right: int, other: float, n: int) -> int:
    """Count the pairs of n floats that are both above their threshold, or both not."""
    return int(((_view(left, n) > least) == (_view(right, n) > other)).sum())


def total(at: int, n: int) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(_view(at, n).sum())


def get(at: int) -> float:
    return ctypes.c_double.from_address(int(at)).value


def pop(pool: list[Any]) -> Any:
    """Take an object out of a pool; None if it is empty. No two threads get the same one."""
    try:
        return pool.pop()
    except IndexError:
        return None


def push(pool: list[Any], x: Any) -> None:
    pool.append(x)


def put(at: int, x: float) -> None:
    ctypes.c_double.from_address(int(at)).value = x


def put_int(at: int, x: int) -> None:
    ctypes.c_int64.from_address(int(at)).value = x


def contents(cell: CellType, missing: Any) -> Any:
    """Return the contents of a closure cell; `missing` before the variable is assigned."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return missing


def attribute(x: Any, name: str, missing: Any) -> Any:
    """Return an attribute of an object or its class without calling `__getattr__`."""
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return missing


def first_changed(rows: int, row: int, count: int, target: int, missing: Any) -> int:
    """Return the first of `count` rows, from `row` on, whose capture may have changed; `count` if there is none.

    A row is four integers: how it is compared (NAME, CELL, ROW_OF_FUNCTION and so on in captures.py); the identity of
    the source; that of the key, of a function's defaults, or 0; and that of the object found, of a function's code or
    of what a counter holds, the version of a class, or the position of a float among the parameters at `target`.

    Interpreted, it returns `row`, so that each is looked at in Python.
    """
    return row


def version(kind: type) -> int:
    """Return the number that CPython changes when a class or one of its bases changes; 0 if it has none."""
    return 0


def are_identical(now: list[Any], then: list[Any]) -> bool:
    return len(now) == len(then) and all(map(operator.is_, now, then))


def are_items(now: dict[Any, Any], keys: list[Any], then: list[Any]) -> bool:
    """Return True if a dict holds the same objects under the same keys, in the same order."""
    return are_identical(list(now), keys) and are_identical(list(now.values()), then)


def are_names(x: Any, then: tuple[Any, ...]) -> bool:
    """Return True if the names in an object's own dict are these, in this order."""
    return tuple(getattr(x, "__dict__", ())) == then


def are_bytes(now: Any, then: Any) -> bool:
    """Return True if two arrays have the same dtype, shape and bytes."""
    return bool((now.dtype, now.shape) == (then.dtype, then.shape) and now.tobytes() == then.tobytes())


def are_distinct(things: list[Any]) -> bool:
    """Return True if no object is in a list twice; in C, False also if there is no memory to find out."""
    return len({*map(id, things)}) == len(things)


def are_floats(items: list[Any] | tuple[Any, ...], target: int, n: int) -> bool:
    """Write the n items of a list or tuple to an address; return False, and write a part, unless all are floats."""
    if len(items) != n or {*map(type, items)} - {float}:
        return False
    floats: Any = (ctypes.c_double * int(n)).from_address(int(target))
    floats[:] = items
    return True


def scatter(source: int, target: int, places: int, n: int) -> None:
    """Write n floats to the given places; skip those whose place is -1."""
    chosen = _view(places, n, True)
    _view(target, chosen.max(initial=-1) + 1)[chosen[chosen >= 0]] = _view(source, n)[chosen >= 0]


def scatter_list(source: list[Any], target: int, places: int, n: int) -> bool:
    """Write the floats of a list to the given places; False if its length differs, or it holds anything else."""
    import numpy as np

    if len(source) != n or {*map(type, source)} - {float}:
        return False
    numbers = np.array(source, float)
    scatter(numbers.ctypes.data, target, places, n)
    return True


def compare(how: int, left: int, left_step: int, right: int, right_step: int, n: int, outcome: bool) -> bool:
    """Return True if n comparisons all have this outcome. `how` numbers Python's comparisons, then "the same bits, or
    both nan", then "within"; a step is the distance between numbers on one side.
    """
    for i in range(n):
        x, y = get(left + 8 * left_step * i), get(right + 8 * right_step * i)
        if how < len(COMPARISONS):
            holds = COMPARISONS[how](x, y)
        elif how == len(COMPARISONS):
            holds = (x == y and copysign(1.0, x) == copysign(1.0, y)) or (x != x and y != y)
        else:
            holds = -y <= x <= y
        if holds != outcome:
            return False
    return True
