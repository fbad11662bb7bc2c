"""What C gives the compiled engine, in Python: arithmetic that never raises, room for floats, a clock.

Interpreted, `engine.py` imports this file. Compiled, Cython reads `ieee.pxd` beside it instead and
calls C's own functions. IEEE 754 says what 1/0, exp(1000) and log(-1) are; Python raises an exception
there, so each function below puts back the IEEE answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from math import fabs, inf, nan, sqrt, tanh
from operator import attrgetter
from typing import Any, TypeVar

__all__ = ["COMPILED", "Array", "Int", "Nodes", "at", "contents", "cython", "divide", "end_alike", "exp", "fabs"]
__all__ += ["floats", "held", "identity", "is_bare", "is_float", "log", "new", "power", "recycle", "room", "root"]
__all__ += ["sort", "sqrt", "take", "tanh", "tick", "untrack", "whole"]

COMPILED = False  # ieee.pxd says True

Int = int  # annotations of the engine that are left to engine.pxd: there it is a C int,
Nodes = list[Any]  # this a list,
Array = Any  # and this a view of an array of C numbers
Class = TypeVar("Class", bound=type)


class cython:  # noqa: N801  (it stands where the module of that name stands when Cython reads the engine)
    """The marks that the compiler reads on a class; to Python they mean nothing."""

    @staticmethod
    def cclass(marked: Class) -> Class:
        """A class whose fields are C numbers."""
        return marked

    @staticmethod
    def binding(yes: bool) -> Callable[[Any], Any]:
        """A method as an object that can be asked for its source."""
        return lambda method: method

    @staticmethod
    def no_gc(marked: Class) -> Class:
        """A class that Python's collector of cycles need not look at."""
        return marked


def divide(x: float, y: float) -> float:
    """x / y, with 1/0 = inf and 0/0 = nan.

    >>> divide(1.0, -0.0), divide(0.0, 0.0)
    (-inf, nan)
    """
    try:
        return x / y
    except ZeroDivisionError:
        return nan if x == 0.0 or x != x else math.copysign(inf, x) * math.copysign(1.0, y)


def exp(x: float) -> float:
    """e**x, with inf above 709.78."""
    try:
        return math.exp(x)
    except OverflowError:
        return inf


def log(x: float) -> float:
    """The natural logarithm, with log(0) = -inf and nan below."""
    if x > 0.0:
        return math.log(x)
    return -inf if x == 0.0 else nan


def power(x: float, y: float) -> float:
    """x**y over the reals: a negative base with a fractional exponent is nan, never complex.

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
    """The square root of a float, or of each number of a NumPy array: its power 0.5 is the root, to the bit."""
    return sqrt(x) if isinstance(x, float) else x**0.5


def is_float(x: object) -> bool:
    """Whether x is a float, perhaps of a subclass as NumPy's are; not what only says so."""
    return issubclass(type(x), float)


def whole(n: int) -> float:
    """An int as a float, with inf beyond the largest float."""
    try:
        return float(n)
    except OverflowError:
        return inf if n > 0 else -inf


# One tick a node. Its low 16 bits are left free for the code of the node's operation.
tick: Callable[[], int] = count(1 << 16, 1 << 16).__next__

new: Callable[[type], Any] = object.__new__  # an object of a type, its fields still to be filled

_made = attrgetter("_made")


def sort(nodes: list[Any]) -> None:
    """Sort nodes by the tick at which they were made."""
    nodes.sort(key=_made)


def at(items: Any, i: int, value: type) -> Any:
    """An item of a list or tuple, for loops over many parameters; nothing if it is no Value."""
    item = items[i]
    return item if isinstance(item, value) else None


def held(item: object) -> bool:
    """Whether `at` gave a Value."""
    return item is not None


def room(n: int) -> Nodes:
    """An empty list, with room for n items."""
    return []


def contents(attributes: dict[str, Any]) -> Nodes:
    """What a dict holds, without its keys."""
    return list(attributes.values())


def is_bare(items: Nodes, i: int) -> bool:
    """Whether an item holds nothing, as a number or a text does."""
    return isinstance(items[i], (float, int, str, type(None)))


identity = id  # an int for an object, which no other has while it lives


def take(found: Nodes, items: Nodes, i: int, value: Any) -> int:
    """Append items from the i-th on, as long as they are leaves and each is younger than the last; where that ends.
    Compiled, it passes over what holds nothing, too.
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
    """Room for n floats."""
    return [0.0] * n


def recycle(value: Any, many: Any, kind: Callable[..., Any]) -> None:
    """Free the nodes of these two classes in a loop, not in a recursion, and use their memory again.

    And have ``Value(...)`` make a leaf before any ``__init__`` runs; of more than a number, `kind` says of which class.
    """

    def make(cls: type, data: Any = 0.0, _children: Any = (), *rest: Any, **named: Any) -> Any:
        node = new(kind(cls, (data, _children), named) if _children and not issubclass(cls, many) else cls)
        node._made, node._mark, node._a, node._b = tick(), 0, None, None
        node._data = node._grad = node._da = node._db = 0.0
        if isinstance(node, many):
            node._all, node._partials = (), []
        return node

    value.__new__ = make


def end_alike(derived: type) -> None:
    """Free the objects of a class that derives from these, and adds no fields, in the same way."""


def untrack(container: object) -> None:
    """Take a tuple of numbers out of the sight of Python's collector of cycles."""
