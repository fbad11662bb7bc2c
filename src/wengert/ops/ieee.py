"""Python versions of the C functions of the compiled engine: arithmetic that never raises, arrays of floats, ticks.

The interpreted engine imports this file; for the compiled one Cython reads `ieee.pxd` beside it instead and calls C
functions. IEEE 754 defines 1/0, exp(1000) and log(-1), where Python raises an exception, so each function below
returns the IEEE result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from math import fabs, inf, nan, sqrt, tanh
from operator import attrgetter
from typing import Any, TypeVar

__all__ = ["COMPILED", "Array", "Int", "Nodes", "at", "contents", "cython", "divide", "end_alike", "exp", "fabs"]
__all__ += ["floats", "held", "identity", "is_bare", "is_float", "log", "new", "new_many", "no_error", "power"]
__all__ += ["recycle", "room", "root", "sort", "sqrt", "take", "tanh", "tick", "untrack", "whole"]

COMPILED = False  # True in ieee.pxd

Int = int  # annotations whose C types engine.pxd declares: a C int,
Nodes = list[Any]  # a list
Array = Any  # and a view of an array of C numbers
Class = TypeVar("Class", bound=type)


class cython:  # noqa: N801  (replaces the module of this name when the engine is not compiled)
    """Cython's decorators, which do nothing in Python."""

    nogil: Any = nullcontext()  # a block in which other threads run

    @staticmethod
    def cclass(marked: Class) -> Class:
        """Mark a class whose fields are C numbers."""
        return marked

    @staticmethod
    def binding(yes: bool) -> Callable[[Any], Any]:
        """Mark a method whose source can be found by `inspect`."""
        return lambda method: method

    @staticmethod
    def no_gc(marked: Class) -> Class:
        """Mark a class whose objects the garbage collector need not track."""
        return marked

    @staticmethod
    def cast(kind: Any, x: Any) -> Any:
        """Take an object for one of another class, unchecked, for the fields that it has in C."""
        return x


def divide(x: float, y: float) -> float:
    """Return x / y, with 1/0 = inf and 0/0 = nan.

    >>> divide(1.0, -0.0), divide(0.0, 0.0)
    (-inf, nan)
    """
    try:
        return x / y
    except ZeroDivisionError:
        return nan if x == 0.0 or x != x else math.copysign(inf, x) * math.copysign(1.0, y)


def exp(x: float) -> float:
    """Return e**x, with inf above 709.78."""
    try:
        return math.exp(x)
    except OverflowError:
        return inf


def log(x: float) -> float:
    """Return the natural logarithm, with log(0) = -inf and nan below 0."""
    if x > 0.0:
        return math.log(x)
    return -inf if x == 0.0 else nan


def power(x: float, y: float) -> float:
    """Return x**y over the reals: a negative base with a fractional exponent gives nan, never a complex number.

    >>> power(-8.0, 1 / 3), power(0.0, -1.0), power(1e200, 2.0)
    (nan, inf, inf)
    """
    try:
        return math.pow(x, y)
    except OverflowError:
        return -inf if x < 0.0 and y % 2.0 == 1.0 else inf
    except ValueError:
        if x != 0.0:
            return nan
        return math.copysign(inf, x) if y % 2.0 == 1.0 else inf


def root(x: Any) -> Any:
    """Return the square root of a float, or of each item of a NumPy array, whose ** 0.5 has the bits of sqrt."""
    return sqrt(x) if isinstance(x, float) else x**0.5


def is_float(x: object) -> bool:
    """Return True if the type of x is float or a subclass, as NumPy's float64 is."""
    return issubclass(type(x), float)


def whole(n: Any) -> float:
    """Convert an int, or another real number, to a float, with inf beyond the largest float."""
    try:
        return float(n)
    except OverflowError:
        return inf if n > 0 else -inf


# Each node takes one tick. Its low 16 bits stay free for the code of the node's operation.
tick: Callable[[], int] = count(1 << 16, 1 << 16).__next__

new: Callable[[type], Any] = object.__new__  # makes an object whose fields are still to be set


def new_many(value: type) -> Any:
    """Make a Value with room for the fields of `Many`."""
    node = new(value)
    node._all, node._partials = (), []
    return node


_made = attrgetter("_made")


def sort(nodes: list[Any]) -> None:
    """Sort nodes by the tick of their creation."""
    nodes.sort(key=_made)


def at(items: Any, i: int, value: type) -> Any:
    """Return an item of a list or tuple, for loops over many parameters; None if it is not a Value."""
    item = items[i]
    return item if isinstance(item, value) else None


def held(item: object) -> bool:
    """Return True if `at` found a Value."""
    return item is not None


def room(n: int) -> Nodes:
    """Return an empty list; the compiled version reserves memory for n items."""
    return []


def contents(attributes: dict[str, Any]) -> Nodes:
    """List the values of a dict."""
    return list(attributes.values())


def is_bare(items: Nodes, i: int) -> bool:
    """Return True if an item cannot contain others, as a number or a string cannot."""
    return isinstance(items[i], (float, int, str, type(None)))


identity = id


def take(found: Nodes, items: Nodes, i: int, value: Any) -> int:
    """Append the items from the i-th on as long as they are leaves of rising age; return the index of the next one.
    The compiled version also skips items that cannot contain others.
    """
    last = found[-1]._made if found else -1
    for place in range(i, len(items)):
        x = items[place]
        if not isinstance(x, value) or x._made & 0xFFFF or x._made <= last:
            return place
        last = x._made
        found.append(x)
    return len(items)


def floats(n: int) -> list[float]:
    """Return an array of n floats."""
    return [0.0] * n


def recycle(value: Any, many: Any, kind: Callable[..., Any]) -> None:
    """Make ``Value(...)`` create a leaf before any ``__init__`` runs; with children, `kind` chooses the class.

    The compiled version also frees nodes of these two classes in a loop, without recursion, and reuses their memory.
    """

    def make(cls: type, data: Any = 0.0, _children: Any = (), *rest: Any, **named: Any) -> Any:
        node = new(kind(cls, (data, _children), named) if (_children or named) and not issubclass(cls, many) else cls)
        node._made, node._mark, node._a, node._b = tick(), 0, None, None
        node._data = node._grad = node._da = node._db = 0.0
        if isinstance(node, many):
            node._all, node._partials = (), []
        return node

    value.__new__ = make


def end_alike(derived: type) -> None:
    """Free the objects of a class that derives from these, and adds no fields, in the same way."""


def no_error() -> bool:
    """Return True. The compiled version raises the exception that is set already, if there is one: NumPy's `at` goes on
    after an error, and Python lets no function that is called then return a result.
    """
    return True


def untrack(container: object) -> None:
    """Exempt a tuple of numbers from garbage collection, in the compiled version."""
