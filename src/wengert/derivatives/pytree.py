"""PyTrees: leaves in nested lists, tuples and dicts, flattened and rebuilt. The names are JAX's.

`compile` finds arrays in them, a Module its parameters, and derivatives the `Numbers` to differentiate with respect to.
NumPy is needed only for arrays, and whoever passes one has imported it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from math import prod
from numbers import Integral
from typing import Any, NamedTuple

from wengert._signatures import signature
from wengert.engine import Value
from wengert.errors import ArgumentError, LengthError, OperandError
from wengert.node import settle
from wengert.ops import coerce

__all__ = ["Block", "Constant", "KeyPath", "Numbers", "PyTree", "argument_names", "array_of", "is_array"]
__all__ += ["items_of", "keys_of", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]

KeyPath = tuple[Any, ...]  # (the path of the container, the key in it); () at the top


class Field(int):
    """The index of an item of a named tuple, which a path writes as .name."""

    name: str

    def __new__(cls, place: int, name: str) -> Field:
        """Make an index with the name of the field."""
        made = super().__new__(cls, place)
        made.name = name
        return made


class PyTree(NamedTuple):
    """The structure of a list, tuple or dict, or of an object's attributes; equal trees have equal hashes."""

    kind: type
    keys: Sequence[Any]  # indices, keys or attribute names
    children: tuple[Any, ...]  # for each item a PyTree, or what stands for a leaf
    like: Any = None  # an object of a user's subclass of list or dict, which `rebuild` copies

    def rebuild(self, children: list[Any]) -> Any:
        """Return a list, tuple or dict of this structure with other children."""
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
    """Return the structure of an object as a PyTree, with what `leaf` returns in place of each leaf.

    Args:
        x: the object.
        leaf: called with each part and its path; it returns None for a container to go into: a list, tuple or dict, or
            another object, whose attributes are the parts.
        path: the path to x.

    >>> tree_flatten({"a": [1, 2], "b": 3}, lambda x, path: "*" if isinstance(x, int) else None).children[1]
    '*'
    """
    found = leaf(x, path)
    return _taken_apart(x, leaf, path) if found is None else found


def _taken_apart(x: Any, leaf: Callable[[Any, KeyPath], Any], path: KeyPath) -> PyTree:
    tree = _container(x)
    parts = x if isinstance(x, (list, tuple)) else (x if isinstance(x, dict) else vars(x)).values()
    children = []
    for key, part in zip(tree.keys, parts, strict=False):  # a user's list may iterate over fewer items than its len()
        here = (path, key)
        found = leaf(part, here)
        children.append(_taken_apart(part, leaf, here) if found is None else found)
    return tree._replace(children=tuple(children))


def _container(x: Any) -> PyTree:
    """Return the PyTree of a container, without its children."""
    kind = type(x)
    if not isinstance(x, (list, tuple)):
        keys: Sequence[Any] = tuple(x if isinstance(x, dict) else vars(x))
    elif hasattr(kind, "_fields"):
        keys = tuple(map(Field, range(len(x)), kind._fields))
    else:
        keys = range(len(x))
    return PyTree(kind, keys, (), None if kind in (list, dict) or issubclass(kind, tuple) else x)


def tree_leaves(tree: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield for each leaf its path and what stands for it."""
    if not isinstance(tree, PyTree):
        yield path, tree
        return
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield from tree_leaves(child, (path, key))


def tree_unflatten(tree: Any, make: Callable[..., Any], *others: Any) -> Any:
    """Rebuild an object with what `make` returns for each leaf.

    Args:
        tree: from `tree_flatten`.
        make: called with what stands for the leaf, and the parts of the others at the same path.
        others: objects of the same structure.
    """
    if not isinstance(tree, PyTree):
        return make(tree, *others)
    children = [
        tree_unflatten(child, make, *[x[key] for x in others])
        for key, child in zip(tree.keys, tree.children, strict=True)
    ]
    return tree.rebuild(children)


def tree_map(make: Callable[[Any], Any], x: Any, kinds: tuple[type, ...] = (list, tuple, dict)) -> Any:
    """Copy containers of these kinds, with what `make` returns for everything else in them.

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
    """Write the path ((((), 'w'), 2), 'b') as x['w'][2].b."""
    return name + "".join(f".{key.name}" if isinstance(key, Field) else f"[{key!r}]" for key in keys_of(path))


def keys_of(path: KeyPath) -> list[Any]:
    """List the keys of a path, from the top."""
    keys = []
    while path:
        path, key = path
        keys.append(key)
    return keys[::-1]


# -- numbers ----------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A leaf: one number, or the numbers of one array."""

    shape: tuple[int, ...] | None  # None for a single number

    def names(self, here: str) -> list[str]:
        """Name each of the numbers by its index."""
        if not self.shape:
            return [here]
        import numpy as np  # imported already, as there is an array

        return [f"{here}[{', '.join(map(str, index))}]" for index in np.ndindex(self.shape)]


class NumberRow(NamedTuple):
    """A list or tuple of nothing but numbers, the most frequent case: one leaf for all of them."""

    tree: PyTree  # without children


class Constant(NamedTuple):
    """A leaf without numbers, which stays as it is."""

    x: Any


NUMBER = Block(None)


class Numbers:
    """All numbers in an object as one flat list, and the tree whose leaves they are.

    Args:
        x: a number, a Value, an array, or nested lists, tuples, named tuples and dicts of them; None stays as it is.
        name: its name in messages.
        floats_only: True leaves everything but floats, arrays of floats and Values as it is, such as a class's index.

    Attributes:
        leaves: floats and Values in the order of the object.

    Raises:
        OperandError: something in it is not a number; the message has its path.

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
        """Rebuild the object with other numbers."""
        return self.map(
            lambda at, shape: leaves[at.start] if shape is None else array_of(leaves[at], shape),
            lambda start, end: list(leaves[start:end]),
        )

    def map(
        self, make: Callable[[slice, tuple[int, ...] | None], Any], row: Callable[[int, int], list[Any]] | None = None
    ) -> Any:
        """Rebuild the object with what `make` returns for each number or array, given the slice of its numbers in the
        flat list and the array's shape (None for a number). `row(start, end)` makes a whole list of numbers at once.
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

    def with_arrays(self) -> Numbers:
        """Return the same numbers with an array in place of a list of numbers, or of lists of one length, which is an
        argument itself or one of several, and not inside of a dict.

        >>> Numbers([[1.0, 2.0], [3.0, 4.0]]).with_arrays().map(lambda numbers, shape: shape)
        (2, 2)
        """
        other = copy.copy(self)
        other.tree = _with_arrays(self.tree)
        return other

    def names(self) -> list[str]:
        """Name each number by its path: x[2], x['w'][0, 1]."""
        found: list[str] = []
        for path, leaf in tree_leaves(self.tree):
            if isinstance(leaf, NumberRow):
                found += [spelt((path, key), self.name) for key in leaf.tree.keys]
            elif isinstance(leaf, Block):
                found += leaf.names(spelt(path, self.name))
        return found

    def is_number(self) -> bool:
        """Return True if the object is a single number."""
        return isinstance(self.tree, Block) and not self.tree.shape

    def match(self, y: Any, name: str) -> list[Any]:
        """List the numbers of another object of this structure.

        Raises:
            LengthError, ArgumentError: it has another structure.
            OperandError: something in it is not a number.
        """
        return list(_matched(self.tree, y, (), name))

    def _leaf(self, x: Any, path: KeyPath) -> Block | NumberRow | Constant | None:
        if isinstance(x, (float, int)) and not coerce.is_number(x):
            x = settle([x])[0]  # a traced number becomes a Value
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


def _with_arrays(tree: Any) -> Any:
    if isinstance(tree, NumberRow):
        return Block((len(tree.tree.keys),)) if tree.tree.kind is list else tree
    if not isinstance(tree, PyTree) or tree.kind not in (list, tuple):
        return tree
    children = tuple([_with_arrays(child) for child in tree.children])
    shapes = {_shape_of(child, x) for child, x in zip(children, tree.children, strict=True)}
    if tree.kind is list and len(shapes) == 1 and None not in shapes:
        return Block((len(children), *shapes.pop()))  # type: ignore[misc]
    return tree._replace(children=children)


def _shape_of(tree: Any, before: Any) -> tuple[int, ...] | None:
    """Return the shape of a number, or of what was a list of numbers; None for anything else."""
    was_list = isinstance(before, (PyTree, NumberRow)) or tree is NUMBER
    return (tree.shape or ()) if isinstance(tree, Block) and was_list else None


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """List the names of a function's first arguments; x0, x1, ..., or x for one, where its signature has none.

    >>> argument_names(lambda a, *rest: a, 3), argument_names(lambda *xs: xs, 1)
    (['a', 'x1', 'x2'], ['x'])
    """
    try:
        parameters = signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD][:count]
    except (TypeError, ValueError):  # for some functions written in C
        names = []
    return names + (["x"] if count == 1 else [f"x{place}" for place in range(count)])[len(names) :]


def is_array(x: Any) -> bool:
    """Return True if x is a NumPy array."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray)


def items_of(x: Any) -> list[Any]:
    """List what is in nested lists, tuples and dicts, and in arrays of objects."""
    if is_array(x):
        return list(x.reshape(-1).tolist()) if x.dtype == object else []
    if isinstance(x, (list, tuple, dict)):
        return [item for part in (x.values() if isinstance(x, dict) else x) for item in items_of(part)]
    return [x]


def array_of(numbers: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Make a NumPy array: of floats, or of objects if there are Values among the numbers."""
    import numpy as np

    if not any(isinstance(x, Value) or type(x) in coerce.OWN for x in numbers):
        return np.array(numbers, dtype=float).reshape(shape)
    made = np.empty(len(numbers), dtype=object)
    made[:] = numbers
    return made.reshape(shape)


def _is_no_float(x: Any) -> bool:
    """Return True if x is neither a real number of a non-integer type nor an array of floats or objects."""
    if is_array(x):
        return x.dtype.kind not in "fO"
    return isinstance(x, Integral) or not coerce.is_number(x) or type(x).__name__ in ("bool", "bool_")


def _items(x: Any, name: str) -> list[Any]:
    """List the numbers of an array in C order."""
    if x.dtype.kind in "fiub":
        return list(x.astype(float).reshape(-1).tolist())
    if x.dtype != object:
        raise OperandError(f"{name} is an array of {x.dtype}; expected an array of real numbers")
    return [item if isinstance(item, Value) else coerce.data(item) for item in x.reshape(-1).tolist()]


def _matched(tree: Any, y: Any, path: KeyPath, name: str) -> Iterator[Any]:
    """Yield the numbers of y, which has to have the structure of a tree."""
    if isinstance(tree, NumberRow):
        if type(y) in (list, tuple) and len(y) == len(tree.tree.keys) and all(type(item) is float for item in y):
            yield from y
            return
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
        here = f"has the length {len(y)}" if isinstance(y, (list, tuple)) or is_array(y) else f"is {coerce.named(y)}"
        raise LengthError(f"{spelt(path, name)} {here}; expected {len(tree.keys)}, in a list or tuple")
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield from _matched(child, y[key], (path, key), name)


def _matched_block(shape: tuple[int, ...] | None, y: Any, name: str) -> list[Any]:
    """List the numbers of y, which has to be one number or an array of this shape."""
    if shape is None:
        number = y.item() if is_array(y) and y.shape == () else y
        return [x if isinstance(x, Value) else coerce.data(x) for x in settle([number])]
    if not is_array(y):
        import numpy as np

        y = np.array(y, dtype=object)
    if y.shape != shape:
        raise LengthError(f"{name} has the shape {y.shape}; expected {shape}")
    return _items(y, name)
