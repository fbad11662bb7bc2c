"""The arguments of a compiled function: arrays in, as the function's own numbers, lists and tuples out.

An argument is a number, an array, or lists, tuples and dicts of them. Its `Shape` says what it is made of, and is part
of what a recording holds for; its numbers come as one or more NumPy arrays.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.engine import Value
from wengert.errors import DataError
from wengert.ops import BY_NAME

__all__ = ["Leaf", "Shape", "build", "flatten_argument", "identifiers", "leaves"]

# What the text of a program calls by itself: arrays by a letter and a number, their cotangents with a d in front.
OWN_NAMES = re.compile(r"d?([TWbcghkmpstuwz]|mask|index|slope)\d+(_\d+)?|rows\d*|len|np|seed|wengert|jax|jnp|torch")


@dataclass(frozen=True)
class Leaf:
    """One array of numbers: ``kind`` is f for floats, i for integers, b for bools, v for Values; ``held`` says in what
    the function gets them.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    held: str  # scalar | list | tuple | ndarray


@dataclass(frozen=True)
class Fixed:
    """An argument that is part of the program: a string, a bool, an object."""

    key: Any


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
        return Leaf(name, "f", (), "scalar"), [x]
    if kind is bool or isinstance(x, np.bool_):
        return Fixed(bool(x)), []
    if kind is int or isinstance(x, np.integer):
        return Leaf(name, "i", (), "scalar"), [x]
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
    try:
        hash(x)
    except TypeError:
        return Fixed(id(x)), []
    return Fixed(x if isinstance(x, (str, bytes, type(None))) else id(x)), []


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
    kind = {"b": "b", "f": "f"}.get(x.dtype.kind, "i")
    shape = x.shape[1:] if batched else x.shape
    wanted = np.int64 if kind == "i" else np.float64
    if x.dtype != wanted:
        x = x.astype(wanted)
    return _leaf(name, kind, shape, held if shape or not batched else "scalar"), [x]


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
        shape = made.shape[1:] if batched else made.shape
        kind = {"b": "b", "f": "f"}.get(made.dtype.kind, "i")
        made = made.astype(np.int64 if kind == "i" else np.float64, copy=False)
        inner = (("tuple" if isinstance(x[0], tuple) else "list") if shape else "scalar") if batched else held
        return Leaf(name, kind, shape, inner), [made]
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
    if shape.held == "scalar":
        return made
    if shape.held == "ndarray":
        return made
    rows = made.tolist()
    return tuple(rows) if shape.held == "tuple" else rows
