"""What stands for any object where recordings are told apart: its key."""

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

__all__ = ["Itself", "key_of", "objects_in"]

BY_VALUE = (str, bytes, bool, int, complex, range, frozenset, Fraction, Decimal, date, datetime)


class Itself:
    """An object as a key: equal to that object alone, which it does not keep alive where it can be referred to weakly.
    Once it is gone the key is equal to itself alone, whatever gets its identity then.
    """

    __slots__ = ("number", "reference", "thing")

    def __init__(self, thing: Any) -> None:
        self.number: int = id(thing)
        self.reference: Any = reference_to(thing)
        self.thing: Any = thing if self.reference is None else None  # which is kept alive then

    def is_alive(self) -> bool:
        """Whether the object is still there."""
        return self.reference is None or self.reference() is not None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is Itself and self.number == other.number and self.is_alive() and other.is_alive()

    def __hash__(self) -> int:
        return self.number


def objects_in(key: Any) -> Iterator[Itself]:
    """The objects that a key stands for."""
    if type(key) is Itself:
        yield key
    elif type(key) is tuple:
        for part in key:
            yield from objects_in(part)


def key_of(x: Any) -> Any:
    """What stands for an object where recordings are told apart: for numbers, strings and None type and value; for
    tuples, frozen dataclasses and bound methods, which are often made anew, their parts; else the object itself.

    >>> key_of(1) == key_of(True), key_of(0.0) == key_of(-0.0), key_of((1, "a")) == key_of((1, "a"))
    (False, False, True)
    """
    kind = type(x)
    if x is None or kind in BY_VALUE:
        return kind, x
    if kind is float or isinstance(x, np.generic):
        return kind, repr(x)  # in which nan is equal to itself, and -0.0 not to 0.0
    parts: Any
    if isinstance(x, tuple):
        parts = x
    elif kind is MethodType:
        parts = x.__func__, x.__self__
    elif "__dataclass_params__" in vars(kind) and kind.__dataclass_params__.frozen:
        parts = [getattr(x, field.name) for field in fields(x)]
    elif kind is set:
        return kind, frozenset(x)
    elif hasattr(kind, "__next__") or isinstance(x, (random.Random, np.random.Generator)):
        return kind  # another at each call, and none of them can be part of a program
    else:
        return Itself(x)
    return kind, tuple([key_of(part) for part in parts])
