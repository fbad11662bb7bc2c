"""What C gives the path of a call, in Python: machine code that is called, numbers at an address.

Interpreted, `callpath.py` imports this file. Compiled, Cython reads `memory.pxd` beside it instead. An address is an
int, of numbers of 8 bytes each that lie one behind the other; whoever passes one keeps alive what lies there.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from math import copysign, isfinite
from types import CellType
from typing import Any

__all__ = ["add", "address", "are_bytes", "are_exact", "are_identical", "are_items", "are_names", "attribute", "call"]
__all__ += ["compare", "contents", "copy", "finite", "get"]
__all__ += [
    "indices",
    "is_defined",
    "is_exact",
    "isfinite",
    "pop",
    "push",
    "put",
    "put_whole",
    "rows",
    "scatter",
    "scatter_list",
]
__all__ += ["squares", "total", "version"]

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@functools.lru_cache(256)
def _function(code: int, unlocked: bool) -> Any:
    """Machine code as `MachineCode` has it: what it takes, and that it gives nothing."""
    kind = ctypes.CFUNCTYPE if unlocked else ctypes.PYFUNCTYPE
    return kind(None, ctypes.c_int64, ctypes.c_double, *[ctypes.c_void_p] * 5)(code)


def call(
    code: int, n: int, seed: float, inputs: int, params: int, grads: int, outputs: int, work: int, unlocked: bool
) -> None:
    """Run machine code on so many examples.

    Unlocked, it lets other threads run meanwhile, which might change or resize any array that is theirs.
    """
    _function(int(code), bool(unlocked))(int(n), seed, *map(int, (inputs, params, grads, outputs, work)))


def _view(at: int, n: int, whole: bool = False) -> Any:
    import numpy as np

    kind: Any = ctypes.c_int64 if whole else ctypes.c_double
    return np.ctypeslib.as_array((kind * int(n)).from_address(int(at))) if n else np.zeros(0, kind)


def address(x: Any, whole: bool, shape: tuple[int, ...], rows: int) -> int:
    """Where the numbers of an array lie, one row behind the other; 0 if they do not, or are of another kind or shape.

    Args:
        x: the array.
        whole: whether its numbers are to be integers, else floats.
        shape: its shape, or that of a row.
        rows: how many rows it is to have along a first axis: 0 if there is no such axis, -1 for any number.
    """
    fits = x.dtype.isnative and x.dtype.kind == ("i" if whole else "f") and x.dtype.itemsize == 8
    fits = fits and x.flags.c_contiguous and x.flags.aligned
    fits = fits and x.shape[rows != 0 :] == shape and (rows <= 0 or x.shape[0] == rows)
    return int(x.ctypes.data) if fits and x.ndim == (rows != 0) + len(shape) else 0


def indices(source: int, target: int, n: int, extent: int, wraps: bool) -> bool:
    """Copy indices, negative ones counted from the end if that `wraps`; False if one is out of bounds."""
    made = _view(source, n, True)
    made = made + extent * (made < 0) if wraps else made
    inside = bool(((made >= 0) & (made < extent)).all())
    if inside:
        _view(target, n, True)[...] = made
    return inside


def is_exact(x: int) -> bool:
    """Whether an integer is a float, as all are from -2**53 on and below 2**53."""
    return -(1 << 53) <= x < 1 << 53


def are_exact(at: int, n: int) -> bool:
    """Whether integers are."""
    made = _view(at, n, True)
    return bool(((made >= -(1 << 53)) & (made < 1 << 53)).all())


def copy(source: int, target: int, n: int) -> None:
    """Copy numbers of either kind."""
    ctypes.memmove(int(target), int(source), 8 * int(n))


def rows(source: int, target: int, places: int, n: int, width: int, count: int) -> bool:
    """Copy n rows of so many numbers each, of either kind, from these places; False if there are too few for one."""
    chosen = _view(places, n, True)
    if not ((chosen >= 0) & (chosen < count)).all():
        return False
    there = _view(source, (chosen.max(initial=-1) + 1) * width, True).reshape(-1, int(width))
    _view(target, n * width, True).reshape(-1, int(width))[...] = there[chosen]
    return True


def add(source: int, target: int, places: int, n: int) -> None:
    """Add n numbers to those at these places, which are different ones."""
    chosen = _view(places, n, True)
    _view(target, chosen.max(initial=-1) + 1)[chosen] += _view(source, n)


def accumulate(source: int, target: int, n: int) -> None:
    """Add n numbers to as many others."""
    made = _view(target, n)
    made += _view(source, n)


def let_others() -> None:
    """Let other threads run that wait for the interpreter's lock; interpreted, Python does so by itself."""


def check_signals() -> None:
    """Raise KeyboardInterrupt if there was Ctrl-C; the same."""


def finite(at: int, n: int) -> bool:
    """Whether all of these numbers are finite."""
    import numpy as np

    return bool(np.isfinite(_view(at, n)).all())


def squares(at: int, n: int) -> float:
    """The sum of the squares of numbers; not finite where one is not, or beyond 1e154."""
    import numpy as np

    made = _view(at, n)
    with np.errstate(all="ignore"):
        return float(made.dot(made))


def total(at: int, n: int) -> float:
    """The sum of numbers."""
    import numpy as np

    with np.errstate(all="ignore"):
        return float(_view(at, n).sum())


def get(at: int) -> float:
    """The number at an address."""
    return ctypes.c_double.from_address(int(at)).value


def pop(pool: list[Any]) -> Any:
    """Take something out of a pool; None if nothing is in it. No two threads get the same."""
    try:
        return pool.pop()
    except IndexError:
        return None


def push(pool: list[Any], x: Any) -> None:
    """Put something into a pool."""
    pool.append(x)


def put(at: int, x: float) -> None:
    """Write a number to an address."""
    ctypes.c_double.from_address(int(at)).value = x


def put_whole(at: int, x: int) -> None:
    """Write an integer there."""
    ctypes.c_int64.from_address(int(at)).value = x


def contents(cell: CellType, missing: Any) -> Any:
    """What a variable of an enclosing function holds, or what stands for nothing."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return missing


def attribute(x: Any, name: str, missing: Any) -> Any:
    """What an object has under a name, by itself or by its class, without any `__getattr__`."""
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return missing


def is_defined(function: Any, then: tuple[Any, ...]) -> bool:
    """Return True if a function has this very code, and these defaults."""
    return function.__code__ is then[0] and function.__defaults__ is then[1] and function.__kwdefaults__ is then[2]


def version(kind: type) -> int:
    """The number that Python gives a class anew when it or one of its bases has changed; 0 where there is none."""
    return 0


def are_identical(now: list[Any], then: list[Any]) -> bool:
    """Return True if two lists hold the same objects."""
    return len(now) == len(then) and all(map(operator.is_, now, then))


def are_items(now: dict[Any, Any], keys: list[Any], then: list[Any]) -> bool:
    """Return True if a dict holds the same objects under the same keys, in the same order."""
    return are_identical(list(now), keys) and are_identical(list(now.values()), then)


def are_names(x: Any, then: tuple[Any, ...]) -> bool:
    """Return True if the names in an object's own dict are these, in their order."""
    return tuple(getattr(x, "__dict__", ())) == then


def are_bytes(now: Any, then: Any) -> bool:
    """Return True if two arrays are alike: in the kind of their elements, their shape and each byte."""
    return bool((now.dtype, now.shape) == (then.dtype, then.shape) and now.tobytes() == then.tobytes())


def scatter(source: int, target: int, places: int, n: int) -> None:
    """Write n numbers to these places; those whose place is -1 to none."""
    chosen = _view(places, n, True)
    _view(target, chosen.max(initial=-1) + 1)[chosen[chosen >= 0]] = _view(source, n)[chosen >= 0]


def scatter_list(source: list[Any], target: int, places: int, n: int) -> bool:
    """Write the floats of a list there; False if there are not as many, or something else is among them."""
    import numpy as np

    if len(source) != n or {*map(type, source)} - {float}:
        return False
    numbers = np.array(source, float)
    scatter(numbers.ctypes.data, target, places, n)
    return True


def compare(how: int, left: int, left_step: int, right: int, right_step: int, n: int, outcome: bool) -> bool:
    """Whether n comparisons, of numbers so many apart on either side, all come out so; `how` counts those of Python,
    then "the same bits, or nan both" and "within".
    """
    for i in range(n):
        x, y = get(left + 8 * left_step * i), get(right + 8 * right_step * i)
        if how < len(COMPARISONS):
            made = COMPARISONS[how](x, y)
        elif how == len(COMPARISONS):
            made = (x == y and copysign(1.0, x) == copysign(1.0, y)) or (x != x and y != y)
        else:
            made = -y <= x <= y
        if made != outcome:
            return False
    return True
