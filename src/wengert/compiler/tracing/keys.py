"""What stands for any object where recordings are told apart: its key."""

from __future__ import annotations

import random
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from types import MethodType
from typing import Any

import numpy as np

__all__ = ["Itself", "key_of"]

BY_VALUE = (str, bytes, bool, int, complex, range, frozenset, Fraction, Decimal, date, datetime)


class Itself:
    """An object as a key: equal to that object alone, which it keeps alive, so that no other gets its identity."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing: Any = thing

    def __eq__(self, other: object) -> bool:
        return type(other) is Itself and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


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
