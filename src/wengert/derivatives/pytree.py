"""Numbers in lists, tuples, dicts and arrays: taken out in a fixed order, and others put in their places.

Derivatives are taken of functions of many numbers, which may stand in any nesting of these; inside they are one flat
list. NumPy is needed only by who passes an array, and has imported it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from wengert.engine import Value
from wengert.errors import ArgumentError, LengthError, OperandError
from wengert.ops import coerce

__all__ = ["Block", "Structure", "argument_names", "array_of", "is_array"]

Path = tuple[Any, ...]  # (the path of what holds it, how it is reached from there); () at the top


class Field(str):
    """The name of an item of a named tuple: written .name, where the key of a dict is written ['name']."""

    __slots__ = ()


class Block(NamedTuple):
    """One number, or the numbers of one array: where they stand in the flat list."""

    start: int
    stop: int
    shape: tuple[int, ...] | None  # None for a number by itself
    path: Path


class Numbers(NamedTuple):
    """A list or tuple of numbers, as most are."""

    start: int
    stop: int
    keys: Sequence[Any]
    path: Path
    rebuild: Callable[[list[Any]], Any]

    def blocks(self) -> list[Block]:
        """Each of the numbers by itself."""
        return [Block(k, k + 1, None, (self.path, key)) for k, key in enumerate(self.keys, self.start)]


class Container(NamedTuple):
    """A list, tuple or dict of other parts."""

    kind: str  # sequence | mapping | nothing
    keys: Sequence[Any]
    parts: list[Any]
    rebuild: Callable[[list[Any]], Any]


class Structure:
    """The numbers in an object, and the shape that they stand in.

    Args:
        x: a number, a Value, an array, or lists, tuples, named tuples and dicts of them, however deep; None holds no
            number.
        name: what messages call it.
        floats_only: whether what is no float, array of floats or Value stays as it is, as the index of a class does.

    Attributes:
        leaves: the numbers as floats, and the Values, in their order.

    Raises:
        OperandError: something in it is neither; the message names its place.

    >>> s = Structure({"w": [1, 2.0], "b": 3.0})
    >>> s.leaves, s.names()
    ([1.0, 2.0, 3.0], ["x['w'][0]", "x['w'][1]", "x['b']"])
    >>> s.build([10.0, 20.0, 30.0])
    {'w': [10.0, 20.0], 'b': 30.0}
    """

    def __init__(self, x: Any, name: str = "x", floats_only: bool = False) -> None:
        self.name: str = name
        self._floats_only = floats_only
        self.leaves: list[Any] = []
        self._top: Block | Numbers | Container = self._read(x, ())

    def build(self, leaves: Sequence[Any]) -> Any:
        """The same shape with other numbers."""
        return _built(self._top, leaves)

    def map(self, make: Callable[[Block], Any]) -> Any:
        """The same shape, with what `make` gives in the place of each number and array."""
        return _mapped(self._top, make)

    def blocks(self) -> list[Block]:
        """The numbers and arrays that it is made of."""
        found: list[Block] = []
        self.map(found.append)
        return found

    def names(self) -> list[str]:
        """What to call each of the numbers: x[2], x['w'][0, 1]."""
        return [name for block in self.blocks() for name in _names(block, self.name)]

    def is_number(self) -> bool:
        """Whether it is one number by itself."""
        return isinstance(self._top, Block) and self._top.shape in (None, ())

    def match(self, y: Any, name: str) -> list[Any]:
        """The numbers of another object of this shape, in this order.

        Raises:
            LengthError, ArgumentError: it has another shape.
            OperandError: something in it is not a number.
        """
        found: list[Any] = []
        _match(self._top, y, (), name, found)
        return found

    def _read(self, x: Any, path: Path) -> Block | Numbers | Container:
        kind = type(x)
        if kind is float or isinstance(x, Value):
            return self._number(x, path)
        if isinstance(x, dict):
            keys = list(x)
            return Container("mapping", keys, [self._read(x[key], (path, key)) for key in keys], _dict_like(x))
        if isinstance(x, (list, tuple)):
            names: Sequence[Any] = [*map(Field, getattr(x, "_fields", ()))] or range(len(x))
            if all(type(item) is float or isinstance(item, Value) for item in x):
                start = len(self.leaves)
                self.leaves += x
                return Numbers(start, len(self.leaves), names, path, _list_like(x))
            items = [self._read(item, (path, at)) for at, item in zip(names, x, strict=True)]
            return Container("sequence", list(range(len(x))), items, _list_like(x))
        if x is None or (self._floats_only and _is_no_float(x)):
            return Container("nothing", [], [], lambda parts: x)
        if is_array(x):
            start = len(self.leaves)
            block = Block(start, start + x.size, x.shape, path)
            self.leaves += _items(x, _spelt(path, self.name))
            return block
        if coerce.is_number(x):
            return self._number(coerce.number(x), path)
        raise OperandError(
            f"{_spelt(path, self.name)} is {coerce.named(x)}; expected a number, a Value, an array, or a list, tuple "
            "or dict of them"
        )

    def _number(self, x: Any, path: Path) -> Block:
        self.leaves.append(x)
        return Block(len(self.leaves) - 1, len(self.leaves), None, path)


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


def _is_no_float(x: Any) -> bool:
    """Whether x is something else than a number that is not whole by its kind, or an array of such."""
    if is_array(x):
        return x.dtype.kind not in "fO"
    return isinstance(x, Integral) or not coerce.is_number(x) or type(x).__name__ in ("bool", "bool_")


def array_of(numbers: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """An array of NumPy: of floats, or of objects where Values are among them."""
    import numpy as np

    if not any(isinstance(x, Value) for x in numbers):
        return np.array(numbers, dtype=float).reshape(shape)
    made = np.empty(len(numbers), dtype=object)
    made[:] = numbers
    return made.reshape(shape)


def _items(x: Any, name: str) -> list[Any]:
    """The numbers of an array, one after the other."""
    if x.dtype.kind in "fiub":
        return list(x.astype(float).reshape(-1).tolist())
    if x.dtype != object:
        raise OperandError(f"{name} is an array of {x.dtype}: derivatives are taken by real numbers")
    return [item if isinstance(item, Value) else coerce.data(item) for item in x.reshape(-1).tolist()]


def _built(part: Block | Numbers | Container, leaves: Sequence[Any]) -> Any:
    if isinstance(part, Numbers):
        return part.rebuild(list(leaves[part.start : part.stop]))
    if isinstance(part, Container):
        return part.rebuild([_built(inner, leaves) for inner in part.parts])
    return leaves[part.start] if part.shape is None else array_of(leaves[part.start : part.stop], part.shape)


def _mapped(part: Block | Numbers | Container, make: Callable[[Block], Any]) -> Any:
    if isinstance(part, Block):
        return make(part)
    if isinstance(part, Numbers):
        return part.rebuild([make(block) for block in part.blocks()])
    return part.rebuild([_mapped(inner, make) for inner in part.parts])


def _match(part: Block | Numbers | Container, y: Any, path: Path, name: str, found: list[Any]) -> None:
    """Add the numbers of y, which is to have the shape of a part."""
    if isinstance(part, Block):
        found += _matched_block(part, y, _spelt(path, name))
        return
    kind = "sequence" if isinstance(part, Numbers) else part.kind
    if kind == "mapping":
        if not isinstance(y, dict) or set(y) != set(part.keys):
            here = f"has the keys {list(y)}" if isinstance(y, dict) else f"is {coerce.named(y)}"
            raise ArgumentError(f"{_spelt(path, name)} {here}; expected a dict with the keys {part.keys}")
    elif kind == "nothing":
        return
    elif not (isinstance(y, (list, tuple)) or is_array(y)) or len(y) != len(part.keys):
        here = f"has {len(y)} items" if isinstance(y, (list, tuple)) or is_array(y) else f"is {coerce.named(y)}"
        raise LengthError(f"{_spelt(path, name)} {here}; expected {len(part.keys)}, in a list or tuple")
    parts: Sequence[Any] = part.blocks() if isinstance(part, Numbers) else part.parts
    keys = part.keys if kind == "mapping" else range(len(part.keys))
    for key, inner in zip(keys, parts, strict=True):
        _match(inner, y[key], (path, key), name, found)


def _matched_block(block: Block, y: Any, name: str) -> list[Any]:
    """The numbers of y for one number or array."""
    if block.shape is None:
        number = y.item() if is_array(y) and y.shape == () else y
        return [number if isinstance(number, Value) else coerce.data(number)]
    if not is_array(y):
        import numpy as np

        y = np.array(y, dtype=object)
    if y.shape != block.shape:
        raise LengthError(f"{name} has the shape {y.shape}; expected {block.shape}")
    return _items(y, name)


def _list_like(x: Any) -> Callable[[list[Any]], Any]:
    """What makes a list or tuple of the same kind."""
    if type(x) is list:
        return list
    if isinstance(x, tuple):
        return getattr(type(x), "_make", type(x))

    def rebuilt(parts: list[Any]) -> Any:
        made = copy.copy(x)
        made[:] = parts
        return made

    return rebuilt


def _dict_like(x: Any) -> Callable[[list[Any]], Any]:
    """What makes a dict of the same kind and keys."""
    keys = list(x)

    def rebuilt(parts: list[Any]) -> Any:
        made = {} if type(x) is dict else copy.copy(x)
        for key, part in zip(keys, parts, strict=True):  # the update of a Counter would add
            made[key] = part
        return made

    return rebuilt


def _names(block: Block, name: str) -> Iterator[str]:
    """The names of the numbers of a block."""
    here = _spelt(block.path, name)
    if block.shape is None or block.shape == ():
        yield here
        return
    for number in range(block.stop - block.start):
        indices = []
        for extent in reversed(block.shape):
            number, index = divmod(number, extent)
            indices.append(str(index))
        yield f"{here}[{', '.join(reversed(indices))}]"


def _spelt(path: Path, name: str) -> str:
    """x['w'][2].b, from the path ((((), 'w'), 2), 'b')."""
    keys = []
    while path:
        path, key = path
        keys.append(key)
    return name + "".join(f".{key}" if isinstance(key, Field) else f"[{key!r}]" for key in reversed(keys))
