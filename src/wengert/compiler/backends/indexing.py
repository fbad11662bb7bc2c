"""Writes an Access as NumPy indexing: reshape, slice, transpose, and None for a broadcast axis."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

import numpy as np

from wengert.compiler.backends.spellings import Library
from wengert.compiler.backends.syntax import call, infix, item, method, node, path, written
from wengert.compiler.ir import BATCH, Access, Array, addresses, contiguous

__all__ = ["Names", "add_at", "are_distinct", "in_memory", "strided", "view"]

ALL = slice(None)
# Names that a text uses itself, and Python's own, which a text that is edited further may want.
RESERVED = ("np", "jax", "jnp", "torch", "numpy", "seed", "by_element", "guarded", *dir(builtins))


@dataclass
class Names:
    library: Library
    length: Any = None  # the number of examples, as a node
    constants: dict[str, Any] = field(default_factory=dict)
    taken: set[str] = field(default_factory=lambda: set(RESERVED))
    by_bytes: dict[Any, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # of constants, by the stem of their names
    ranges: dict[int, str] = field(default_factory=dict)
    stands_for: dict[int, Any] = field(default_factory=dict)  # by the id of an array: its name or inlined expression
    plain: set[int] = field(default_factory=set)  # the ids of arrays without axes that a line has made a float
    iteration: Any = None  # see `counter`

    def of(self, array: Array) -> Any:
        if id(array) not in self.stands_for:
            self.stands_for[id(array)] = path(self.free(array.name))
        return self.stands_for[id(array)]

    def free(self, name: str) -> str:
        """Return an unused name: this one, as far as Python and earlier names allow.

        >>> names = Names(Library("np", "import numpy as np"))
        >>> [names.free(name) for name in ("x_my key", "np", "lambda", "x", "x")]
        ['x_my_key', 'np_', 'lambda_', 'x', 'x_']
        """
        name = normalize("NFKC", name)  # as Python does, which may make two names equal
        if not name.isidentifier():
            name = "".join([c if f"_{c}".isidentifier() else "_" for c in name])
            name = name if name.isidentifier() else f"_{name}"
        while name in self.taken or keyword.iskeyword(name):
            name += "_"
        self.taken.add(name)
        return name

    def counter(self) -> Any:
        """Return the name of the iteration number of loops."""
        if self.iteration is None:
            self.iteration = path(self.free("t"))
        return self.iteration

    def keep(self, values: Any) -> Any:
        """Return a name for an array of constants, which equal ones share."""
        key = (values.shape, values.dtype.str, values.tobytes())
        if key not in self.by_bytes:
            stem = "mask" if values.dtype == bool else "index"
            self.counts[stem] = self.counts.get(stem, 0) + 1
            name = self.free(f"{stem}{self.counts[stem]}")
            self.by_bytes[key], self.constants[name] = path(name), values
        return self.by_bytes[key]

    def range(self, count: int) -> Any:
        if count not in self.ranges:
            self.ranges[count] = self.free(f"rows{len(self.ranges) or ''}")
        return path(self.ranges[count])

    def shape(self, axes: Sequence[int]) -> Any:
        return node(tuple([self.length if n == BATCH else n for n in axes]))

    def transposed(self, array: Any, order: Sequence[int]) -> Any:
        order = list(order)
        if order == sorted(order):
            return array
        if order == [1, 0]:
            return ast.Attribute(array, "T")
        return self.library.method(array, "transpose", *order)


def view(access: Access, axes: Sequence[int], order: Sequence[int], names: Names) -> Any:
    """Write the array that an access reads, with some axes of its Compute in a given order.

    Axes that the access does not depend on are broadcast: they become None, or are left out in front.
    """
    if access.is_whole(axes) and list(order) == list(range(len(axes))):  # the usual case
        return names.of(access.array)
    if not axes and not access.array.batched and access.table is None and access.index is None:
        return item(names.of(access.array), *_point(access.base, access.array.strides))
    present = [i for i in order if access.depends_on(i, axes)]
    sliced = strided(access, axes, names) if access.table is None and access.index is None else None
    if sliced is not None:
        read = names.transposed(sliced[0], [sliced[1].index(i) for i in present])
    else:
        read = (_gathered if access.index is None else _indexed)(access, axes, present, names)
    lead = next((n for n, i in enumerate(order) if i in present), len(order))
    return _at(read, [ALL if i in present else None for i in order][lead:])


def _point(cell: int, strides: Sequence[int]) -> list[int]:
    places = []
    for stride in strides:
        place, cell = divmod(cell, stride)
        places.append(place)
    return places


def _at(array: Any, places: list[Any]) -> Any:
    """Index an array, without full slices at the end."""
    while places and places[-1] == ALL:
        places.pop()
    return item(array, *places) if places else array


def strided(access: Access, axes: Sequence[int], names: Names) -> tuple[Any, list[int]] | None:
    """Cut an array into the strides of an access, and return the order of its axes; None if strides do not nest."""
    array = access.array
    moving = [i for i in range(len(axes)) if axes[i] != BATCH and access.strides[i]]
    moving.sort(key=lambda i: -access.strides[i])
    strides = [access.strides[i] for i in moving]
    if len(set(strides)) < len(strides) or (strides and strides[-1] < 0):
        return None
    own = contiguous(array.cell_shape)
    for cuts in (sorted({*own, *strides}, reverse=True), strides or [1]):
        sliced = _cut(access, axes, moving, list(cuts), names)
        if sliced is not None:
            return sliced
    if strides and strides[-1] != 1:
        return _cut(access, axes, moving, [*strides, 1], names)
    return None


def _cut(
    access: Access, axes: Sequence[int], moving: list[int], cuts: list[int], names: Names
) -> tuple[Any, list[int]] | None:
    array = access.array
    lengths, length = [], array.size
    for cut in cuts:
        if length % cut:
            return None
        lengths.append(length // cut)
        length = cut
    if length != 1:
        return None
    strides = {access.strides[i]: i for i in moving}
    rest, stored = access.base, []
    places: list[Any] = []
    for cut, room in zip(cuts, lengths, strict=True):
        start, rest = divmod(rest, cut)
        if cut not in strides:
            if start >= room:
                return None
            places.append(start)
            continue
        axis = strides[cut]
        stop = start + axes[axis]
        if stop > room:
            return None
        stored.append(axis)
        places.append(slice(start or None, None if stop == room else stop))
    whole = names.of(array)
    if tuple(lengths) != array.cell_shape and places:
        whole = method(whole, "reshape", *[-1] * array.batched, *lengths)
    batch = [i for i in range(len(axes)) if axes[i] == BATCH and access.strides[i]]
    return _at(whole, [*[ALL] * array.batched, *places]), batch + stored


def _gathered(access: Access, axes: Sequence[int], present: list[int], names: Names) -> Any:
    """Write an access through a table, or with strides that do not nest, with its axes in this order."""
    moving = [i for i in present if axes[i] != BATCH]
    if access.table is None:
        table = addresses(access.base, tuple([access.strides[i] for i in moving]), tuple([axes[i] for i in moving]))
    else:
        table = np.ascontiguousarray(access.permuted(moving, axes).table)
    gathered = _cells(access.array, names.keep(table), names)
    at = next((n for n, i in enumerate(present) if axes[i] == BATCH), 0)  # the position of the batch
    return names.transposed(gathered, [*range(1, at + 1), 0, *range(at + 1, len(present))]) if at else gathered


def _cells(array: Array, places: Any, names: Names, examples: Any = ALL) -> Any:
    stored = names.of(array)
    if len(array.cell_shape) != 1:
        stored = method(stored, "reshape", -1, *[array.size] * array.batched)
    return item(stored, examples, places) if array.batched else item(stored, places)


def _indexed(access: Access, axes: Sequence[int], present: list[int], names: Names) -> Any:
    """Write an access with an index known at run time: rows of a table, one item of each row, or an address."""
    index, array = access.index, access.array
    assert index is not None
    own = Access(index.array, index.base, index.strides)
    moving = [i for i in present if access.strides[i] and axes[i] != BATCH]
    chosen = [i for i in present if own.depends_on(i, axes)]
    width = array.cell_shape[-1] if array.cell_shape else 1
    two = len(array.cell_shape) == 2 and access.base == 0 and not array.batched
    runs = [(access.strides[i], axes[i]) for i in moving]
    if two and index.step == width and present == chosen + moving and runs == [(1, width)]:  # rows
        return item(names.of(array), view(own, axes, chosen, names))
    if two and index.step == 1 and present == chosen == moving and [s for s, _ in runs] == [width]:  # items
        return item(names.of(array), names.range(runs[0][1]), view(own, axes, chosen, names))
    places = view(own, axes, present, names)
    if index.step != 1:
        places = infix(places, "*", index.step)
    if access.base or moving:
        strides, lengths = tuple([access.strides[i] for i in moving]), tuple([axes[i] for i in moving])
        shape = [axes[i] if i in moving else 1 for i in present]
        while shape and shape[0] == 1:
            shape.pop(0)
        places = infix(names.keep(addresses(access.base, strides, lengths).reshape(shape)), "+", places)
    examples = names.range(BATCH) if array.batched else ALL
    if array.batched and len(present) > 1:
        examples = item(examples, ALL, *[None] * (len(present) - 1))
    return _cells(array, places, names, examples)


def add_at(target: Any, once: bool, part: Array, out: Array, names: Names) -> str:
    """Return the line that adds a part to places of an array; `once` means that they are distinct."""
    addend = names.of(part)
    if names.library.arrays_change:
        if once:
            return f"{written(target)} += {written(addend)}"
        places = target.slice
        if any(isinstance(inner, ast.Slice) for inner in ast.walk(places)):
            places = item(path("np.s_"), places)
        return written(call("np.add.at", target.value, places, addend))
    result = method(item(ast.Attribute(target.value, "at"), target.slice), "add", addend)
    if not isinstance(target.value, ast.Name):  # the array is reshaped
        result = method(result, "reshape", names.shape(out.shape))
    return f"{names.of(out).id} = {written(result)}"


def in_memory(access: Access, axes_read: list[int], axes: Sequence[int]) -> list[int]:
    return sorted(axes_read, key=lambda i: (axes[i] != BATCH, -access.strides[i]))


def are_distinct(strides: list[tuple[int, int]]) -> bool:
    """Return True if strides of these sizes and lengths never reach a place twice."""
    reach = 0
    for step, length in sorted((abs(step), length) for step, length in strides if length > 1):
        if step <= reach:
            return False
        reach += step * (length - 1)
    return True
