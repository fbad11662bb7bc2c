"""Where the numbers of an argument go.

Like the engine, this file runs as it stands and is compiled by Cython, with `argument_reader.pxd`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from wengert.engine import Value
from wengert.ops.ieee import cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["ArgumentReader", "are_equal", "reference_to"]

ALIKE = (str, int, bytes)  # equal ones of these are one to a program
KINDS = ("fixed", "float", "whole", "value", "numbers", "values", "items", "keyed")  # what readers are for


@cython.cclass
class ArgumentReader:
    """What an argument is to be, or an item of one, and where its numbers go.

    Args:
        kind: fixed is part of the program; float, whole and value are one number, numbers and values arrays or nested
            lists of them; items is a list or tuple of readers, keyed a dict of them.
        expected: the thing that is fixed, or the type of the number or of the items.
        place: of its array among those of a call.
        shape: of an example of it.
        held: the type of each axis of nested lists: list or tuple.
        children: the readers in it.
        keys: of these.
        of: what numbers these are: f for floats, i for integers, b for bools.
        takes_arrays: whether they may be in an array of NumPy.
        is_one: whether it matters if the same thing is passed elsewhere too.
    """

    children: Any
    held: Any
    is_one: Any
    keys: Any
    kind: Any
    of: Any
    place: Any
    shape: Any
    size: Any
    takes_arrays: Any
    expected: Any
    is_int: Any

    def __init__(
        self,
        kind: str,
        expected: Any = None,
        place: int = 0,
        shape: tuple[int, ...] = (),
        held: tuple[Any, ...] = (),
        children: Sequence[Any] = (),
        keys: Sequence[Any] = (),
        of: str = "f",
        takes_arrays: bool = False,
        is_one: bool = False,
    ) -> None:
        self.kind, self.expected, self.place, self.shape, self.held = KINDS.index(kind), expected, place, shape, held
        self.children, self.keys, self.of, self.is_int = list(children), tuple(keys), of, of == "i"
        self.takes_arrays, self.is_one = takes_arrays, is_one
        self.size = 1
        for n in shape:
            self.size *= n

    def resembles(self, x: Any, numpy: Any, batched: bool) -> bool:
        """Return True if an argument looks like this one from outside; the numbers in it are not read."""
        kind = KINDS[self.kind]
        if kind in ("float", "whole"):
            return type(x) is self.expected
        if kind == "value":
            return isinstance(x, Value)
        if kind == "fixed":
            return are_equal(x, self.expected)
        if kind == "numbers":
            if type(x) is numpy.ndarray:
                wide = x.dtype.kind == self.of and (self.of == "b" or x.dtype.itemsize == 8)
                return bool(self.takes_arrays and wide and x.shape[1 if batched else 0 :] == self.shape)
            if batched and (type(x) is not list or not x):
                return False
            return self._resembles_list(x[0] if batched else x)
        if type(x) is not self.expected or len(x) != len(self.children) + self.size * (kind == "values"):
            return False
        items = list(x.values() if kind == "keyed" else x)
        if kind == "keyed" and tuple(x) != self.keys:
            return False
        for n in range(len(self.children)):
            child: ArgumentReader = self.children[n]
            if not child.resembles(items[n], numpy, batched):
                return False
        return True

    def _resembles_list(self, x: Any) -> bool:
        """The same of nested lists of numbers, by the first item of each."""
        for axis, kind in enumerate(self.held):
            if type(x) is not kind or len(x) != self.shape[axis]:
                return False
            x = x[0]
        return type(x) is int or (type(x) is float and self.of == "f")

    def widened(self, x: Any, numpy: Any) -> Any:
        """An array of such numbers as wide ones, one row behind the other; None if it holds others."""
        if x.dtype.kind != self.of:
            return None
        return numpy.array(x, numpy.int64 if self.is_int else numpy.float64, order="C")


class Reference(ref[Any]):
    """What stands for a thing that is part of the program, and is not kept alive for that."""

    __slots__ = ()


def reference_to(x: Any) -> Reference | None:
    """A weak reference to a thing, if there are such."""
    try:
        return Reference(x)
    except TypeError:
        return None


def are_equal(x: Any, y: Any) -> bool:
    """Return True if two things are one to a program: the same, or equal ones of the kinds that are told by value.

    Args:
        x: what is passed.
        y: what is expected, or a reference to it.
    """
    if x is y:
        return True
    return y() is x if type(y) is Reference else type(x) is type(y) and type(x) in ALIKE and bool(x == y)
