"""Stores the numbers of a recording in cells of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wengert.compiler.ir import (
    BATCH,
    Access,
    Array,
    Assemble,
    Compute,
    Expr,
    Program,
    ProgramError,
    contiguous,
    fit_strides,
    is_nonnegative,
    without_broadcast,
)
from wengert.compiler.lift.flatten import FlatGraph
from wengert.compiler.lift.simplify import CONST, PARAM

__all__ = ["Storage"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Storage:
    """A Program under construction, and the array and cell of each number."""

    flat: FlatGraph
    batched: bool
    program: Program = field(default_factory=Program)
    counts: dict[str, int] = field(default_factory=dict)
    number: dict[int, int] = field(default_factory=dict)  # by the id of an array: its index in the program
    given: set[str] = field(default_factory=set)  # the names of the inputs
    constants: dict[Any, Array] = field(default_factory=dict)
    joined: dict[tuple[int, ...], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place: Ints = np.full(len(self.flat.source), -1)  # for each number the index of its array, or -1
        self.cell: Ints = np.zeros(len(self.flat.source), np.int64)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def array(self, stem: str, shape: Sequence[int], role: str = "value", **more: Any) -> Array:
        name = stem
        while role not in ("input", "index") and (name == stem or name in self.given):
            self.counts[stem] = self.counts.get(stem, 0) + 1
            name = f"{stem}{self.counts[stem]}"
        return self.add_array(Array(name, tuple([int(n) for n in shape]), role, **more))

    def add_array(self, array: Array) -> Array:
        self.number[id(array)] = len(self.program.arrays)
        self.program.arrays.append(array)
        return array

    def assign(self, node_ids: Ints, array: Array, cells: Ints) -> None:
        self.place[node_ids] = self.number[id(array)]
        self.cell[node_ids] = cells

    def input(self, name: str, node_ids: Ints, role: str) -> None:
        batch = (BATCH,) if self.batched else ()
        self.given.add(name)
        self.assign(node_ids.reshape(-1), self.array(name, batch + node_ids.shape, role), np.arange(node_ids.size))

    def allocate(self, stem: str, node_ids: Ints) -> bool:
        """Store parameters in a new array, of the shape in which they are used; False if one is stored already."""
        if not node_ids.size:
            return False
        if not self.is_loose(node_ids[(0,) * node_ids.ndim]):  # fast path: usually they have a place
            return False
        node_ids, _ = without_broadcast(node_ids)
        if not self.is_loose(node_ids).all():
            return False
        if node_ids.size > 1 and not (np.diff(np.sort(node_ids, axis=None)) > 0).all():  # repeated
            return False
        array = self.array(stem, node_ids.shape, "param", slots=node_ids)
        self.assign(node_ids.reshape(-1), array, np.arange(node_ids.size))
        return True

    def is_loose(self, node_ids: Any) -> Any:
        """Return True for parameters that have no place yet."""
        return (self.flat.source[node_ids] == PARAM) & (self.place[node_ids] < 0)

    # -- operands -----------------------------------------------------------------------------------------------------

    def operand(self, node_ids: Ints, mask: Any = None) -> Access | float:
        """Return how numbers are read over the axes of the table that names them."""
        if mask is None and node_ids.size == 1:
            return self.number_at(int(node_ids.flat[0]), node_ids.ndim)
        flat = self.flat
        real = node_ids if mask is None else node_ids[mask]
        is_const = flat.source[real] == CONST
        if is_const.any():
            return self.constant(node_ids, mask) if is_const.all() else self.mixed(node_ids, mask)
        if not self.allocate("p", np.where(mask, node_ids, real.flat[0]) if mask is not None else node_ids):
            self.allocate("p", np.unique(real[self.is_loose(real)]))
        return self.access(*self.joint(node_ids, mask), mask)

    def number_at(self, node_id: int, axes: int = 0) -> Access | float:
        if self.flat.source[node_id] == CONST:
            return float(self.flat.constants[node_id - self.flat.n])
        if self.place[node_id] < 0:
            self.allocate("p", np.array(node_id))
        place = self.place[node_id]
        if place < 0:
            raise ProgramError("a number is read that no step computes")
        return Access(self.program.arrays[place], int(self.cell[node_id]), (0,) * axes)

    def access(self, array: Array, cells: Ints, mask: Any = None) -> Access:
        """Return how cells of an array are read over the axes of the table that holds them."""
        fit = fit_strides(cells, mask)
        if fit is not None:
            read = Access(array, *fit)
            low, high = read.reach(cells.shape)
            if low >= 0 and high < array.size:
                return read
        table = cells if mask is None else np.where(mask, cells, cells[mask][0])
        return Access(array, 0, (0,) * cells.ndim, table)

    def constant(self, node_ids: Ints, mask: Any) -> Access | float:
        values: Any = self.flat.constants[node_ids - self.flat.n]
        return self.numbers(values if mask is None else np.where(mask, values, values[mask][0]))

    def numbers(self, values: Any) -> Access | float:
        """Return constants over the axes of their table: one number, or an array that equal tables share."""
        if (values.view(np.int64) == values.reshape(-1)[:1].view(np.int64)).all():
            return float(values.flat[0])
        varying, axes = without_broadcast(values)
        key = (varying.shape, varying.tobytes())
        if key not in self.constants:
            self.constants[key] = self.array("k", varying.shape, "const", value=varying)
        strides = [0] * values.ndim
        for axis, stride in zip(axes, contiguous(varying.shape), strict=True):
            strides[axis] = stride
        return Access(self.constants[key], 0, tuple(strides))

    def mixed(self, node_ids: Ints, mask: Any) -> Access | float:
        """Return how numbers are read some of which are constants; these are stored."""
        fixed = np.unique(node_ids[self.flat.source[node_ids] == CONST])
        loose = fixed[self.place[fixed] < 0]
        if len(loose):
            array = self.array("k", (len(loose),) if len(loose) > 1 else (), "const")
            array.value = self.flat.constants[loose - self.flat.n].reshape(array.shape)
            self.assign(loose, array, np.arange(len(loose)))
        self.allocate("p", np.unique(node_ids[self.is_loose(node_ids)]))
        return self.access(*self.joint(node_ids), mask)

    def joint(self, node_ids: Ints, mask: Any = None) -> tuple[Array, Ints]:
        """Return the array that stores these numbers, or several arrays laid end to end, and the cells there."""
        used = self.place[node_ids if mask is None else node_ids[mask]]
        low, high = int(used.min()), int(used.max())
        if low < 0:
            raise ProgramError("a number is read that no step computes")
        if low == high:
            return self.program.arrays[low], self.cell[node_ids]
        places = np.unique(used)
        arrays = [self.program.arrays[place] for place in places.tolist()]
        begin = np.cumsum([0] + [array.size for array in arrays])
        key = tuple(places.tolist())
        if key not in self.joined:
            batch = (BATCH,) if any(array.batched for array in arrays) else ()
            new = self.array("c", (*batch, int(begin[-1])))
            self.program.steps.append(Assemble.end_to_end(new, arrays))
            self.joined[key] = new
        return self.joined[key], begin[np.searchsorted(places, self.place[node_ids])] + self.cell[node_ids]

    # -- steps --------------------------------------------------------------------------------------------------------

    def compute(
        self,
        stem: str,
        shape: Sequence[int],
        operands: list[Access | float],
        write: Callable[..., Expr],
        *,
        over: Sequence[int] = (),
        reduce: str = "",
        mask: Any = None,
        batched: bool = False,
    ) -> Array:
        """Add a step that computes an array over `shape`, reducing the axes `over`."""
        axes = (*shape, *over)
        stay = [i for i, n in enumerate(axes) if n > 1]
        squeezed = [x if isinstance(x, float) else x.permuted(stay, axes) for x in operands]
        if mask is not None:
            mask = np.broadcast_to(mask, axes).reshape([axes[i] for i in stay])
        shape = [n for n in shape if n > 1]
        over = [n for n in over if n > 1]
        reads: list[Access] = []
        branches: list[Expr] = []
        for x in squeezed:
            if isinstance(x, float):
                branches.append(("const", x))
                continue
            same = [k for k, y in enumerate(reads) if _same(x, y)]
            branches.append(("in", same[0] if same else len(reads)))
            if not same:
                reads.append(x)
        batch = (BATCH,) if batched or any(x.array.batched for x in reads) else ()
        if batch:
            for x in reads:
                x.strides = (int(x.array.batched), *x.strides)
                if x.index is not None:
                    x.index.strides = (int(x.index.array.batched), *x.index.strides)
        expr = write(*branches)
        out = self.array(stem, (*batch, *shape))
        out.nonnegative = is_nonnegative(expr, lambda k: reads[k].array.nonnegative)
        if not over:
            reduce, mask = "", None
        self.program.steps.append(Compute(out, (*batch, *shape, *over), reads, expr, reduce, mask))
        return out


def _same(x: Access, y: Access) -> bool:
    if x.array is not y.array or (x.base, x.strides) != (y.base, y.strides) or x.index or y.index:
        return False
    return x.table is y.table if x.table is None or y.table is None else np.array_equal(x.table, y.table)
