"""PyTrees: leaves in lists, tuples and dicts, however deep; taken apart, and put together again. The names are JAX's.

The one walker serves all who are given such objects: `compile` finds arrays in them, a Module its parameters, and
derivatives the `Numbers` that they are taken by. NumPy is needed only by who passes an array, and has imported it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from math import prod
from numbers import Integral
from typing import Any, NamedTuple

from wengert.engine import Value
from wengert.errors import ArgumentError, LengthError, OperandError
from wengert.node import settle
from wengert.ops import coerce

__all__ = ["Block", "KeyPath", "Numbers", "PyTree", "argument_names", "array_of", "is_array", "keys_of"]
__all__ += ["tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]

KeyPath = tuple[Any, ...]  # (the path of what holds it, how it is reached from there); () at the top


class Field(int):
    """The place of an item of a named tuple, which a path writes as .name."""

    name: str

    def __new__(cls, place: int, name: str) -> Field:
        """The place, and the name that the tuple has for it."""
        made = super().__new__(cls, place)
        made.name = name
        return made


class PyTree(NamedTuple):
    """What a list, tuple or dict is made of: PyTrees, and what stands for its leaves. Equal ones have equal hashes."""

    kind: type
    keys: Sequence[Any]
    children: tuple[Any, ...]
    like: Any = None  # of a list or dict of a kind of the user's: what to copy

    def rebuild(self, children: list[Any]) -> Any:
        """Such a list, tuple or dict, of other children."""
        if self.kind is list:
            return children
        if issubclass(self.kind, tuple):
            return getattr(self.kind, "_make", self.kind)(children)
        made: Any = {} if self.kind is dict else copy.copy(self.like)
        if isinstance(made, list):
            made[:] = children
            return made
        for key, child in zip(self.keys, children, strict=True):  # the update of a Counter would add
            made[key] = child
        return made


def tree_flatten(x: Any, leaf: Callable[[Any, KeyPath], Any], path: KeyPath = ()) -> Any:
    """What an object is made of: PyTrees, and what `leaf` gives in the place of each leaf.

    Args:
        x: the object.
        leaf: is shown everything, with the path to it; it gives None for what is to be taken apart: a list, tuple or
            dict, or another object by its attributes.
        path: how x is reached.

    >>> tree_flatten({"a": [1, 2], "b": 3}, lambda x, path: "*" if isinstance(x, int) else None).children[1]
    '*'
    """
    found = leaf(x, path)
    return _taken_apart(x, leaf, path) if found is None else found


def _taken_apart(x: Any, leaf: Callable[[Any, KeyPath], Any], path: KeyPath) -> PyTree:
    tree = _container(x)
    parts = x if isinstance(x, (list, tuple)) else (x if isinstance(x, dict) else vars(x)).values()
    children = []
    for key, part in zip(tree.keys, parts, strict=False):  # a list of the user's may show fewer than it has
        here = (path, key)
        found = leaf(part, here)
        children.append(_taken_apart(part, leaf, here) if found is None else found)
    return tree._replace(children=tuple(children))


def _container(x: Any) -> PyTree:
    """The tree of an object that is to be taken apart, without its children."""
    kind = type(x)
    if not isinstance(x, (list, tuple)):
        keys: Sequence[Any] = tuple(x if isinstance(x, dict) else vars(x))
    elif hasattr(kind, "_fields"):
        keys = tuple(map(Field, range(len(x)), kind._fields))
    else:
        keys = range(len(x))
    return PyTree(kind, keys, (), None if kind in (list, dict) or issubclass(kind, tuple) else x)


def tree_leaves(tree: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """What stands for each leaf, and the path to it."""
    if not isinstance(tree, PyTree):
        yield path, tree
        return
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield from tree_leaves(child, (path, key))


def tree_unflatten(tree: Any, make: Callable[..., Any], *others: Any) -> Any:
    """The object again, with what `make` gives for each leaf.

    Args:
        tree: from `tree_flatten`.
        make: is given what stands for the leaf, and what stands in its place in the others.
        others: objects of the same shape.
    """
    if not isinstance(tree, PyTree):
        return make(tree, *others)
    children = [
        tree_unflatten(child, make, *[x[key] for x in others])
        for key, child in zip(tree.keys, tree.children, strict=True)
    ]
    return tree.rebuild(children)


def tree_map(make: Callable[[Any], Any], x: Any, kinds: tuple[type, ...] = (list, tuple, dict)) -> Any:
    """An object of these kinds again, with what `make` gives for all that is of none of them.

    >>> tree_map(abs, [-1, (2, {"a": -3})])
    [1, (2, {'a': 3})]
    """
    kind = type(x)
    if kind not in kinds:
        return make(x)
    if kind is dict:
        return {key: tree_map(make, item, kinds) for key, item in x.items()}
    return kind([tree_map(make, item, kinds) for item in x])


def spelt(path: KeyPath, name: str) -> str:
    """x['w'][2].b, from the path ((((), 'w'), 2), 'b')."""
    return name + "".join(f".{key.name}" if isinstance(key, Field) else f"[{key!r}]" for key in keys_of(path))


def keys_of(path: KeyPath) -> list[Any]:
    """The steps of a path, from the top on."""
    keys = []
    while path:
        path, key = path
        keys.append(key)
    return keys[::-1]


# -- numbers ----------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A leaf: one number, or the numbers of one array."""

    shape: tuple[int, ...] | None  # None for a number by itself

    def names(self, here: str) -> list[str]:
        """What to call each of the numbers."""
        if not self.shape:
            return [here]
        import numpy as np  # which an array is one of

        return [f"{here}[{', '.join(map(str, index))}]" for index in np.ndindex(self.shape)]


class NumberRow(NamedTuple):
    """A list or tuple of numbers alone, as most are: one leaf for all of them."""

    tree: PyTree  # without children


class Constant(NamedTuple):
    """A leaf that holds no number."""

    x: Any


NUMBER = Block(None)


class Numbers:
    """The numbers in an object, in one flat list, and the tree that they are the leaves of.

    Args:
        x: a number, a Value, an array, or lists, tuples, named tuples and dicts of them, however deep; None holds no
            number.
        name: what messages call it.
        floats_only: whether what is no float, array of floats or Value stays as it is, as the index of a class does.

    Attributes:
        leaves: the numbers as floats, and the Values, in their order.

    Raises:
        OperandError: something in it is neither; the message names its place.

    >>> x = Numbers({"w": [1, 2.0], "b": 3.0})
    >>> x.leaves, x.names()
    ([1.0, 2.0, 3.0], ["x['w'][0]", "x['w'][1]", "x['b']"])
    >>> x.unflatten([10.0, 20.0, 30.0])
    {'w': [10.0, 20.0], 'b': 30.0}
    """

    def __init__(self, x: Any, name: str = "x", floats_only: bool = False) -> None:
        self.name: str = name
        self._floats_only = floats_only
        self.leaves: list[Any] = []
        self.tree: Any = tree_flatten(x, self._leaf)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The same shape with other numbers."""
        return self.map(
            lambda at, shape: leaves[at.start] if shape is None else array_of(leaves[at], shape),
            lambda start, end: list(leaves[start:end]),
        )

    def map(
        self,
        make: Callable[[slice, tuple[int, ...] | None], Any],
        row: Callable[[int, int], list[Any]] | None = None,
    ) -> Any:
        """The same shape, with what `make` gives in the place of each number and array: it is told where in the flat
        list the numbers stand, and the array's shape. `row` makes those of several numbers at once, where it is given.
        """
        end = 0

        def made(leaf: Block | NumberRow | Constant) -> Any:
            nonlocal end
            if isinstance(leaf, Constant):
                return leaf.x
            start = end
            if isinstance(leaf, Block):
                end += prod(leaf.shape or ())
                return make(slice(start, end), leaf.shape)
            end += len(leaf.tree.keys)
            if row is None:
                return leaf.tree.rebuild([make(slice(place, place + 1), None) for place in range(start, end)])
            return leaf.tree.rebuild(row(start, end))

        return tree_unflatten(self.tree, made)

    def names(self) -> list[str]:
        """What to call each of the numbers: x[2], x['w'][0, 1]."""
        found: list[str] = []
        for path, leaf in tree_leaves(self.tree):
            if isinstance(leaf, NumberRow):
                found += [spelt((path, key), self.name) for key in leaf.tree.keys]
            elif isinstance(leaf, Block):
                found += leaf.names(spelt(path, self.name))
        return found

    def is_number(self) -> bool:
        """Whether it is one number by itself."""
        return isinstance(self.tree, Block) and not self.tree.shape

    def match(self, y: Any, name: str) -> list[Any]:
        """The numbers of another object of this shape, in this order.

        Raises:
            LengthError, ArgumentError: it has another shape.
            OperandError: something in it is not a number.
        """
        return list(_matched(self.tree, y, (), name))

    def _leaf(self, x: Any, path: KeyPath) -> Block | NumberRow | Constant | None:
        if isinstance(x, (float, int)) and not coerce.is_number(x):
            x = settle([x])[0]  # the Value that a recording has for a number
        if type(x) is float or isinstance(x, Value):
            self.leaves.append(x)
            return NUMBER
        if isinstance(x, (list, tuple)) and all(type(item) is float or isinstance(item, Value) for item in x):
            self.leaves += x
            return NumberRow(_container(x))
        if isinstance(x, (dict, list, tuple)):
            return None
        if x is None or (self._floats_only and _is_no_float(x)):
            return Constant(x)
        if is_array(x):
            self.leaves += _items(x, spelt(path, self.name))
            return Block(x.shape)
        if not coerce.is_number(x):
            raise OperandError(
                f"{spelt(path, self.name)} is {coerce.named(x)}; expected a number, a Value, an array, or a list, "
                "tuple or dict of them"
            )
        self.leaves.append(coerce.number(x))
        return NUMBER


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """What a function calls the first arguments; x0, x1, ... (or x, of one) where it does not tell.

    >>> argument_names(lambda a, *rest: a, 3), argument_names(lambda *xs: xs, 1)
    (['a', 'x1', 'x2'], ['x'])
    """
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD][:count]
    except (TypeError, ValueError):  # of a function written in C
        names = []
    return names + (["x"] if count == 1 else [f"x{place}" for place in range(count)])[len(names) :]


def is_array(x: Any) -> bool:
    """Whether x is an array of NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray)


def array_of(numbers: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """An array of NumPy: of floats, or of objects where Values are among them."""
    import numpy as np

    if not any(isinstance(x, Value) for x in numbers):
        return np.array(numbers, dtype=float).reshape(shape)
    made = np.empty(len(numbers), dtype=object)
    made[:] = numbers
    return made.reshape(shape)


def _is_no_float(x: Any) -> bool:
    """Whether x is something else than a number that is not whole by its kind, or an array of such."""
    if is_array(x):
        return x.dtype.kind not in "fO"
    return isinstance(x, Integral) or not coerce.is_number(x) or type(x).__name__ in ("bool", "bool_")


def _items(x: Any, name: str) -> list[Any]:
    """The numbers of an array, one after the other."""
    if x.dtype.kind in "fiub":
        return list(x.astype(float).reshape(-1).tolist())
    if x.dtype != object:
        raise OperandError(f"{name} is an array of {x.dtype}: derivatives are taken by real numbers")
    return [item if isinstance(item, Value) else coerce.data(item) for item in x.reshape(-1).tolist()]


def _matched(tree: Any, y: Any, path: KeyPath, name: str) -> Iterator[Any]:
    """The numbers of y, which is to have the shape of a tree."""
    if isinstance(tree, NumberRow):
        tree = tree.tree._replace(children=(NUMBER,) * len(tree.tree.keys))
    if isinstance(tree, Block):
        yield from _matched_block(tree.shape, y, spelt(path, name))
    if not isinstance(tree, PyTree):
        return
    if issubclass(tree.kind, dict):
        if not isinstance(y, dict) or set(y) != set(tree.keys):
            here = f"has the keys {list(y)}" if isinstance(y, dict) else f"is {coerce.named(y)}"
            raise ArgumentError(f"{spelt(path, name)} {here}; expected a dict with the keys {list(tree.keys)}")
    elif not (isinstance(y, (list, tuple)) or is_array(y)) or len(y) != len(tree.keys):
        here = f"has {len(y)} items" if isinstance(y, (list, tuple)) or is_array(y) else f"is {coerce.named(y)}"
        raise LengthError(f"{spelt(path, name)} {here}; expected {len(tree.keys)}, in a list or tuple")
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield from _matched(child, y[key], (path, key), name)


def _matched_block(shape: tuple[int, ...] | None, y: Any, name: str) -> list[Any]:
    """The numbers of y for one number or array."""
    if shape is None:
        number = y.item() if is_array(y) and y.shape == () else y
        return [number if isinstance(number, Value) else coerce.data(number)]
    if not is_array(y):
        import numpy as np

        y = np.array(y, dtype=object)
    if y.shape != shape:
        raise LengthError(f"{name} has the shape {y.shape}; expected {shape}")
    return _items(y, name)
