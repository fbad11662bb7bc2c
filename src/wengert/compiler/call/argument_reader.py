"""Describes how the arguments of a call are read into arrays, which `Call` in `callpath.py` does.

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

__all__ = ["ArgumentReader", "are_equal", "are_in_order", "reference_to"]

BY_VALUE = (str, int, bytes)  # compared by value, other objects by identity
KINDS = ("fixed", "float", "int", "value", "numbers", "values", "items", "keyed")


@cython.cclass
class ArgumentReader:
    """Describes one argument, or an item of one, and says into which array its numbers go.

    Many fields, set once: what a reader of any kind needs, in one class, so that reading is C without a method
    call.

    Args:
        kind: "fixed" for a part of the program; "float", "int" and "value" for one number; "numbers" and "values" for
            arrays or nested lists of numbers; "items" for a list or tuple of readers, "keyed" for a dict of them.
        expected: the fixed object, or the type of the number, of each of several numbers, or of the container.
        place: the position of its array among those of a call.
        shape: the shape for one example.
        held: for each axis of nested lists, list or tuple; None if no lists may hold the numbers.
        children: the readers of the items.
        keys: the keys of a dict.
        dtype_kind: "f" for floats, "i" for integers, "b" for bools.
        takes_arrays: True if a NumPy array may hold the numbers.
        checks_identity: True if the signature depends on whether the same object is passed elsewhere too.
        dtype: that of an array; None for one of any real numbers of the kind.
        is_mixed: True if there may be whole numbers beside the floats of lists.

    Raises:
        ValueError: the axes of nested lists are not those of the shape, or the keys not those of the items.
    """

    # Fields that are set several at a time; C types are in the .pxd.
    expected: Any
    place: Any
    shape: Any
    held: Any
    children: Any
    keys: Any
    dtype_kind: Any
    dtype: Any
    is_int: Any
    takes_arrays: Any
    checks_identity: Any
    is_mixed: Any

    def __init__(
        self,
        kind: str,
        expected: Any = None,
        place: int = 0,
        shape: tuple[int, ...] = (),
        held: tuple[Any, ...] | None = None,
        children: Sequence[Any] = (),
        keys: Sequence[Any] = (),
        dtype_kind: str = "f",
        takes_arrays: bool = False,
        checks_identity: bool = False,
        dtype: Any = None,
        is_mixed: bool = False,
    ) -> None:
        if (held is not None and len(held) != len(shape)) or (kind == "keyed" and len(keys) != len(children)):
            raise ValueError(f"a reader of {kind} with the shape {shape}, {held} and {len(keys)} keys")
        self.kind: Any = KINDS.index(kind)
        self.expected, self.place, self.shape, self.held = expected, place, shape, held
        self.children, self.keys = list(children), tuple(keys)
        self.dtype_kind, self.is_int = dtype_kind, dtype_kind == "i"
        self.takes_arrays, self.checks_identity, self.dtype = takes_arrays, checks_identity, dtype
        self.is_mixed = is_mixed
        self.is_wide: Any = dtype_kind != "b" and (dtype is None or dtype.itemsize == 8)  # its memory is read as it is
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
                return bool(self.takes_arrays and self.takes(x) and x.shape[1 if batched else 0 :] == self.shape)
            if batched and (type(x) is not list or not x):
                return False
            return self.held is not None and self._resembles_list(x[0] if batched else x)
        if type(x) is not self.expected:
            return False
        items = list(x.values() if kind == "keyed" else x)
        if len(items) != len(self.children) + self.size * (kind == "values"):
            return False
        if kind == "keyed" and not _are_keys(tuple(x), self.keys):
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
            x = x[0]  # there is one: no axis of numbers in lists is empty
        return type(x) is self.expected or (type(x) is int and self.is_mixed)

    def takes(self, x: Any) -> bool:
        """Return True if an array holds numbers of the expected type."""
        if self.dtype is not None:
            return bool(x.dtype == self.dtype)
        return bool(x.dtype.kind == self.dtype_kind and x.dtype.itemsize <= 8)

    def widened(self, x: Any, numpy: Any) -> Any:
        """Convert an array to contiguous float64 or int64; None if it holds another type of number."""
        if not self.takes(x):
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


def _are_keys(given: tuple[Any, ...], keys: tuple[Any, ...]) -> bool:
    """Return True if the keys of a dict are these, in this order and of these types."""
    for n in range(len(keys)):
        if n >= len(given) or not are_equal(given[n], keys[n]):
            return False
    return len(given) == len(keys)


def are_in_order(named: dict[str, Any], keys: tuple[Any, ...]) -> bool:
    """Return True if the arguments by name that have these keys come in this order, perhaps with others."""
    at = 0
    for name in named:
        if at < len(keys) and name == keys[at]:
            at += 1
    return at == len(keys)
