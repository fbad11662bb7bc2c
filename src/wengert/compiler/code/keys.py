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

__all__ = ["DEPTH", "PARTS", "Itself", "key_of", "objects_in", "parts_of_key"]

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


def fields_of(x: Any) -> list[Any] | None:
    """Return the fields of a frozen dataclass; None for any other object, and for one that has more or less than its
    fields.
    """
    params = vars(type(x)).get("__dataclass_params__")
    if params is None or not params.frozen:
        return None
    names = [field.name for field in fields(x)]
    if getattr(x, "__dict__", {}).keys() - set(names) or not all(hasattr(x, name) for name in names):
        return None
    return [getattr(x, name) for name in names]


def _parts_by_value(x: Any) -> Any:
    """Return the parts by which an object is compared, if it is: not by its identity."""
    kind = type(x)
    if issubclass(kind, tuple):
        return tuple.__iter__(x)
    if kind is set or kind is frozenset:
        return x
    if kind is range:
        return x.start, x.stop, x.step
    if kind is datetime:
        return repr(x.replace(tzinfo=None)), x.tzinfo  # equal ones may differ in their time zone
    if kind is MethodType or vars(kind).get("_is_method") is True:  # a compiled one
        return x.__func__, x.__self__
    return fields_of(x)


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
    if depth > DEPTH:
        return Itself(x)
    parts = _parts_by_value(x)
    if parts is not None:
        return kind, tuple([key_of(part, depth + 1) for part in parts])
    if _has(kind, "__next__") or issubclass(kind, GENERATORS):
        return kind  # a new one at each call, and none can be part of a program
    return Itself(x)


def parts_of_key(x: Any, depth: int = 0) -> Iterator[Any]:
    """Yield an object, and the parts of it that its key tells by value, and theirs: each may be another object in
    another call that has the same key.
    """
    if x is None or type(x) is bool:
        return
    yield x
    parts = None if depth > DEPTH or type(x) is datetime else _parts_by_value(x)
    for part in parts or ():
        yield from parts_of_key(part, depth + 1)
