"""Keys by which the signatures of calls are compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from types import MethodType
from typing import Any

import numpy as np

from wengert.compiler.call import reference_to

__all__ = ["DEPTH", "PARTS", "Itself", "is_frozen", "key_of", "objects_in"]

DEPTH, PARTS = 32, 1 << 16  # an argument that is nested deeper, or has more parts, is left to the function
GENERATORS = (random.Random, np.random.Generator)
BY_VALUE = (str, bytes, bool, int, Fraction, date)
AS_TEXT = (float, complex, Decimal)  # as text nan equals nan, and -0.0 differs from 0.0, and 1.0 from 1.00


class Itself:
    """A key for an object: equal to the key of that object only. It does not keep the object alive if a weak reference
    is possible; once the object is gone, the key equals only itself, even if another object gets the same id.
    """

    __slots__ = ("kind", "number", "reference", "thing")

    def __init__(self, thing: Any) -> None:
        self.number: int = id(thing)
        self.kind: str = type(thing).__name__
        self.reference: Any = reference_to(thing)
        self.thing: Any = thing if self.reference is None else None  # kept alive then

    def is_alive(self) -> bool:
        return self.reference is None or self.reference() is not None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is Itself and self.number == other.number and self.is_alive() and other.is_alive()

    def __hash__(self) -> int:
        return self.number


def objects_in(key: Any) -> Iterator[Itself]:
    """Yield the objects in a key."""
    if type(key) is Itself:
        yield key
    elif type(key) is tuple:
        for part in key:
            yield from objects_in(part)


def _has(kind: type, name: str) -> bool:
    """Return True if a class defines a name; it is not asked, as it may answer to every name."""
    return any(name in vars(base) for base in kind.__mro__)


def is_frozen(kind: type) -> bool:
    """Return True for a class of frozen dataclasses, which are compared by their fields."""
    return "__dataclass_params__" in vars(kind) and bool(vars(kind)["__dataclass_params__"].frozen)


def key_of(x: Any, depth: int = 0) -> Any:
    """Return a hashable key of an object: type and value for numbers, strings and None; the keys of the parts, in their
    order, for tuples, sets, ranges, frozen dataclasses and bound methods, which are often created anew; else, and for
    parts that are nested too deep, the object's identity.

    >>> key_of(1) == key_of(True), key_of(0.0) == key_of(-0.0), key_of((1, "a")) == key_of((1, "a"))
    (False, False, True)
    >>> key_of(range(0, 3, 2)) == key_of(range(0, 4, 2)), key_of({1}) == key_of({True})
    (False, False)
    """
    kind = type(x)
    if x is None or kind in BY_VALUE:
        return kind, x
    if kind in AS_TEXT or issubclass(kind, np.generic):
        return kind, repr(x)
    parts: Any
    if depth > DEPTH:
        return Itself(x)
    if issubclass(kind, tuple):
        parts = tuple.__iter__(x)
    elif kind is set or kind is frozenset:
        parts = x
    elif kind is range:
        parts = x.start, x.stop, x.step
    elif kind is datetime:
        parts = repr(x.replace(tzinfo=None)), x.tzinfo  # equal ones may differ in their time zone
    elif kind is MethodType or vars(kind).get("_is_method") is True:  # a compiled one
        parts = x.__func__, x.__self__
    elif is_frozen(kind):
        parts = [getattr(x, field.name) for field in fields(kind)]
    elif _has(kind, "__next__") or issubclass(kind, GENERATORS):
        return kind  # a new one at each call, and none can be part of a program
    else:
        return Itself(x)
    return kind, tuple([key_of(part, depth + 1) for part in parts])
