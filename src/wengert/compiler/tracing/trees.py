"""The arguments of a compiled function: arrays in, as the function's own numbers, lists and tuples out.

An argument is a number, an array, or lists, tuples and dicts of them. Its `Shape` says what it is made of, and is part
of what a recording holds for; its numbers come as one or more NumPy arrays.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from types import MethodType
from typing import Any

import numpy as np

from wengert.engine import Value
from wengert.errors import DataError
from wengert.ops.table import BY_NAME

__all__ = ["Fixed", "Leaf", "Shape", "build", "flatten_argument", "identifiers", "key_of", "leaves", "ordinary"]

# What the text of a program calls by itself: arrays by a letter and a number, their cotangents with a d in front.
OWN_NAMES = re.compile(r"d?([TWbcghkmpstuwz]|mask|index|slope)\d+(_\d+)?|rows\d*|len|np|seed|wengert|jax|jnp|torch")
SCALARS: dict[Any, Any] = {np.floating: float, np.integer: int, np.bool_: bool}


@dataclass(frozen=True)
class Leaf:
    """One array of numbers: ``kind`` is f for floats, i for integers, b for bools, v for Values; ``held`` says in what
    the function gets them.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    held: str  # scalar | ndarray | for each axis list or tuple, the last perhaps ndarray: "list tuple"


@dataclass(frozen=True)
class Fixed:
    """An argument that is part of the program: a string, a bool, an object."""

    key: Any


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
    if x is None or kind in (str, bytes, bool, int):
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
    else:
        return Itself(x)
    return kind, tuple([key_of(part) for part in parts])


@dataclass(frozen=True)
class Tree:
    """A list, tuple or dict of arguments."""

    held: str
    keys: tuple[Any, ...]
    items: tuple[Any, ...]


Shape = Leaf | Fixed | Tree


def flatten_argument(name: str, x: Any, batched: bool = False) -> tuple[Shape, list[Any]]:
    """What an argument is made of, and its arrays; with `batched`, of one of the examples along the first axis.

    Raises:
        DataError: the rows of a batch differ in length.
    """
    kind = type(x)
    if kind is np.ndarray:
        return _array(name, x, "ndarray", batched)
    if batched and isinstance(x, (int, float, np.number, Value)):
        raise DataError(f"{name} is one number: a batch has an example in each row (or declare it static=({name!r},))")
    if kind is float or isinstance(x, np.floating):
        return Leaf(name, "f", (), "scalar"), [float(x)]
    if kind is bool or isinstance(x, np.bool_):
        return Fixed(key_of(bool(x))), []
    if kind is int or isinstance(x, np.integer):
        return Leaf(name, "i", (), "scalar"), [int(x)]
    if isinstance(x, Value):
        return Leaf(name, "v", (), "scalar"), [x]
    if isinstance(x, np.ndarray):
        return _array(name, x, "ndarray", batched)
    if kind is list or (kind is tuple and not batched):
        return _sequence(name, x, kind.__name__, batched)
    if kind in (tuple, dict):
        pairs = list(enumerate(x)) if kind is tuple else list(x.items())
        parts = [flatten_argument(f"{name}_{key}", item, batched) for key, item in pairs]
        return Tree(kind.__name__, tuple([key for key, _ in pairs]), tuple([p[0] for p in parts])), _arrays(parts)
    return Fixed(key_of(x)), []


def ordinary(x: Any) -> Any:
    """An argument as it was given, with NumPy's scalars as Python's numbers, and its arrays as wide as those.

    >>> ordinary([np.float32(0.5), 2, (np.int8(3), "a")])
    [0.5, 2, (3, 'a')]
    """
    kind = type(x)
    if kind in (list, tuple):
        return kind([ordinary(item) for item in x])
    if kind is dict:
        return {key: ordinary(item) for key, item in x.items()}
    if isinstance(x, np.ndarray) and x.dtype.kind in "fiu":
        return _widened(x)
    scalar = next((make for numpys, make in SCALARS.items() if isinstance(x, numpys)), None)
    return x if scalar is None else scalar(x)


def _widened(x: Any) -> Any:
    """Integers as int64, all else as float64; and integers as float64 where one of them is too large."""
    if x.dtype.kind in "iu" and not (x.dtype == np.uint64 and x.size and x.max() > np.iinfo(np.int64).max):
        return x.astype(np.int64, copy=False)
    return x.astype(np.float64, copy=False)


@functools.lru_cache(1024)
def _leaf(name: str, kind: str, shape: tuple[int, ...], held: str) -> Leaf:
    return Leaf(name, kind, shape, held)


def _array(name: str, x: Any, held: str, batched: bool) -> tuple[Shape, list[Any]]:
    if x.dtype.kind not in "fiub":
        if x.dtype == object and not batched:
            return _items(name, x.tolist(), "list")
        raise DataError(f"{name} is an array of {x.dtype}: a compiled function takes arrays of floats or integers")
    if batched and not x.ndim:
        raise DataError(f"{name} is one number: a batch has an example in each row")
    shape = x.shape[1:] if batched else x.shape
    made = _widened(x)
    return _leaf(name, _kind(x, made), shape, held if shape or not batched else "scalar"), [made]


def _kind(x: Any, made: Any) -> str:
    """The kind of a leaf, from its array as it was given and as it is taken."""
    return "b" if x.dtype.kind == "b" else "i" if made.dtype.kind == "i" else "f"


def _kinds(x: Any) -> list[str]:
    """What each axis of nested sequences is held in, by its first items."""
    kinds = []
    while isinstance(x, (list, tuple)) and len(x):
        kinds.append("tuple" if isinstance(x, tuple) else "list")
        x = x[0]
    return [*kinds, "ndarray"] if isinstance(x, np.ndarray) else kinds


def _sequence(name: str, x: Any, held: str, batched: bool) -> tuple[Shape, list[Any]]:
    if batched and not len(x):
        raise DataError(f"{name}: a batch of no examples has no mean: expected at least one")
    if batched and isinstance(x[0], dict):
        raise DataError(f"{name}: a batch of dicts is written as a dict of batches")
    try:
        made = np.array(x)
    except ValueError:
        if batched:
            raise DataError(f"{name}: the examples of a batch have one shape; these differ") from None
        return _items(name, x, held)
    if made.dtype.kind in "fiub" and made.size:
        array, kinds = _widened(made), _kinds(x)
        shape, inner = (made.shape[1:], kinds[1:]) if batched else (made.shape, kinds)
        return Leaf(name, _kind(made, array), shape, " ".join(inner[: len(shape)]) or "scalar"), [array]
    if batched:
        raise DataError(f"{name}: a batch is made of numbers, not of {type(x[0]).__name__ if len(x) else 'nothing'}")
    return _items(name, x, held)


def _items(name: str, x: Any, held: str) -> tuple[Shape, list[Any]]:
    if x and all(isinstance(item, Value) for item in x):
        return Leaf(name, "v", (len(x),), held), [x]
    parts = [flatten_argument(f"{name}_{number}", item) for number, item in enumerate(x)]
    return Tree(held, tuple(range(len(x))), tuple([p[0] for p in parts])), _arrays(parts)


def _arrays(parts: list[tuple[Shape, list[Any]]]) -> list[Any]:
    return [array for _, arrays in parts for array in arrays]


def leaves(shape: Shape) -> Iterator[Leaf]:
    """The arrays of a shape, in the order in which `flatten_argument` gives them."""
    if isinstance(shape, Leaf):
        yield shape
    elif isinstance(shape, Tree):
        for item in shape.items:
            yield from leaves(item)


def identifiers(leaves: Sequence[Leaf]) -> list[str]:
    """What the text of a program calls each array: its own name, unless the text has another use for it.

    >>> identifiers([Leaf(name, "f", (), "scalar") for name in ("x", "W1", "x_my key", "dx")])
    ['x', 'W1_', 'x_my_key', 'dx_']
    """
    cotangents = re.compile("|".join([f"d{re.escape(leaf.name)}(_\\d+)?" for leaf in leaves]))
    found: list[str] = []
    for leaf in leaves:
        name = re.sub(r"\W", "_", leaf.name)
        while name in found or name in BY_NAME or OWN_NAMES.fullmatch(name) or cotangents.fullmatch(name):
            name += "_"
        found.append(name)
    return found


def build(shape: Shape, original: Any, take: Callable[[Leaf], Any]) -> Any:
    """An argument of a shape, with what `take` gives for each of its arrays: an object array, or one object.

    What is part of the program comes from the original argument.
    """
    if isinstance(shape, Fixed):
        return original
    if isinstance(shape, Tree):
        if shape.held == "dict":
            return {key: build(item, original[key], take) for key, item in zip(shape.keys, shape.items, strict=True)}
        items = [build(item, original[key], take) for key, item in zip(shape.keys, shape.items, strict=True)]
        return tuple(items) if shape.held == "tuple" else items
    made = take(shape)
    return made if shape.held == "scalar" else _held(made, shape.held.split())


def _held(made: Any, kinds: list[str]) -> Any:
    """An array in what the function gets it in, axis by axis."""
    if kinds[0] == "ndarray":
        return made
    rows = [_held(row, kinds[1:]) for row in made] if set(kinds[1:]) - {"list"} else made.tolist()
    return tuple(rows) if kinds[0] == "tuple" else rows
