"""Reads the arguments of a call into arrays.

Like the engine, this file runs as it stands and is compiled by Cython, with `argument_reader.pxd`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from wengert.engine import Value
from wengert.ops.ieee import cython

if False:  # Cython compiles with its own module
    import cython  # type: ignore[no-redef]

__all__ = ["ArgumentReader", "are_equal", "reference_to"]

BY_VALUE = (str, int, bytes)  # compared by value, other objects by identity
KINDS = ("fixed", "float", "int", "value", "numbers", "values", "items", "keyed")


@cython.cclass
class ArgumentReader:
    """Describes one argument, or an item of one, and says into which array its numbers go.

    Args:
        kind: "fixed" for a part of the program; "float", "int" and "value" for one number; "numbers" and "values" for
            arrays or nested lists of numbers; "items" for a list or tuple of readers, "keyed" for a dict of them.
        expected: the fixed object, or the type of the number or container.
        place: the position of its array among those of a call.
        shape: the shape for one example.
        held: for each axis of nested lists, list or tuple.
        children: the readers of the items.
        keys: the keys of a dict.
        dtype_kind: "f" for floats, "i" for integers, "b" for bools.
        takes_arrays: True if a NumPy array may hold the numbers.
        checks_identity: True if the signature depends on whether the same object is passed elsewhere too.
    """

    # Fields that are set several at a time; C types are in the .pxd.
    expected: Any
    place: Any
    shape: Any
    held: Any
    children: Any
    keys: Any
    dtype_kind: Any
    is_int: Any
    takes_arrays: Any
    checks_identity: Any

    def __init__(
        self,
        kind: str,
        expected: Any = None,
        place: int = 0,
        shape: tuple[int, ...] = (),
        held: tuple[Any, ...] = (),
        children: Sequence[Any] = (),
        keys: Sequence[Any] = (),
        dtype_kind: str = "f",
        takes_arrays: bool = False,
        checks_identity: bool = False,
    ) -> None:
        self.kind: Any = KINDS.index(kind)
        self.expected, self.place, self.shape, self.held = expected, place, shape, held
        self.children, self.keys = list(children), tuple(keys)
        self.dtype_kind, self.is_int = dtype_kind, dtype_kind == "i"
        self.takes_arrays, self.checks_identity = takes_arrays, checks_identity
        self.size: Any = 1
        for n in shape:
            self.size *= n

    def resembles(self, x: Any, numpy: Any, batched: bool) -> bool:
        """Return True if an argument has the expected type and shape; its numbers are not read."""
        kind = KINDS[self.kind]
        if kind in ("float", "int"):
            return type(x) is self.expected
        if kind == "value":
            return isinstance(x, Value)
        if kind == "fixed":
            return are_equal(x, self.expected)
        if kind == "numbers":
            if type(x) is numpy.ndarray:
                wide = x.dtype.kind == self.dtype_kind and (self.dtype_kind == "b" or x.dtype.itemsize == 8)
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
        """Return True if nested lists have the expected types and lengths, judged by the first item of each."""
        for axis, kind in enumerate(self.held):
            if type(x) is not kind or len(x) != self.shape[axis]:
                return False
            x = x[0]
        return type(x) is int or (type(x) is float and self.dtype_kind == "f")

    def widened(self, x: Any, numpy: Any) -> Any:
        """Convert an array to contiguous float64 or int64; None if it holds another kind of number."""
        if x.dtype.kind != self.dtype_kind:
            return None
        return numpy.array(x, numpy.int64 if self.is_int else numpy.float64, order="C")


class Reference(ref[Any]):
    """A weak reference of our own class: users may pass weak references too."""

    __slots__ = ()


def reference_to(x: Any) -> Reference | None:
    """Return a weak reference to an object, or None if its type allows none."""
    try:
        return Reference(x)
    except TypeError:
        return None


def are_equal(x: Any, y: Any) -> bool:
    """Return True if two objects are the same to a program: identical, or equal strings, integers or bytes. `y` may be
    a reference.
    """
    if x is y:
        return True
    return y() is x if type(y) is Reference else type(x) is type(y) and type(x) in BY_VALUE and bool(x == y)
