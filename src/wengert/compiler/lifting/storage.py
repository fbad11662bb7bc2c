"""Where the numbers of a recording live: each in a cell of an array of the Program that is being made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wengert.compiler.ir.expression import Expr, is_nonnegative
from wengert.compiler.ir.program import BATCH, Access, Array, Assemble, Compute, Program, ProgramError, contiguous
from wengert.compiler.ir.strides import fit, without_broadcast
from wengert.compiler.lifting.flatten import Flat
from wengert.compiler.lifting.simplify import CONST, PARAM

__all__ = ["Homes"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Homes:
    """A Program in the making, and the home of each number: an array, and a cell there."""

    flat: Flat
    batched: bool
    program: Program = field(default_factory=Program)
    counts: dict[str, int] = field(default_factory=dict)
    constants: dict[Any, Array] = field(default_factory=dict)
    joined: dict[tuple[int, ...], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home: Ints = np.full(len(self.flat.source), -1)  # for each number the place of its array in the program
        self.cell: Ints = np.zeros(len(self.flat.source), np.int64)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def array(self, stem: str, shape: Sequence[int], role: str = "value", **more: Any) -> Array:
        """A new array, named by its kind and a number."""
        self.counts[stem] = self.counts.get(stem, 0) + 1
        name = stem if role in ("input", "index") else f"{stem}{self.counts[stem]}"
        new = Array(name, tuple([int(n) for n in shape]), role, **more)
        self.program.arrays.append(new)
        return new

    def settle(self, names: Ints, array: Array, cells: Ints) -> None:
        """Let numbers live in an array."""
        self.home[names] = self.program.arrays.index(array)
        self.cell[names] = cells

    def input(self, name: str, names: Ints, role: str) -> None:
        """An array that the caller gives."""
        batch = (BATCH,) if self.batched else ()
        self.settle(names.reshape(-1), self.array(name, batch + names.shape, role), np.arange(names.size))

    def claim(self, stem: str, names: Ints) -> bool:
        """Make parameters that have no home yet an array of their own, of the shape in which they are used."""
        if not names.size:
            return False
        names, _ = without_broadcast(names)
        free = (self.flat.source[names] == PARAM) & (self.home[names] < 0)
        if not free.all():
            return False
        seen = np.zeros(len(self.home), bool)
        seen[names] = True
        if int(seen.sum()) != names.size:
            return False
        array = self.array(stem, names.shape, "param", slots=names)
        self.settle(names.reshape(-1), array, np.arange(names.size))
        return True

    def homes_of(self, names: Ints) -> Ints:
        """The places of the arrays in which these numbers live, each once."""
        homes = self.home[names]
        low, high = homes.min(), homes.max()
        return np.array([low]) if low == high else np.unique(homes)

    # -- operands -----------------------------------------------------------------------------------------------------

    def operand(self, names: Ints, known: Any = None) -> Access | float:
        """How the numbers with these names are read over the axes of the table that holds the names."""
        flat = self.flat
        real = names if known is None else names[known]
        if (flat.source[real] == CONST).all():
            return self.constant(names, known)
        if (flat.source[real] == CONST).any():
            return self.mixed(names, known)
        if not self.claim("p", np.where(known, names, real.flat[0]) if known is not None else names):
            left = np.unique(real)
            left = left[(self.home[left] < 0) & (flat.source[left] == PARAM)]
            if len(left):
                self.claim("p", left)
        homes = self.homes_of(real)
        if homes[0] < 0:
            raise ProgramError("a number is read that no step has made")
        if len(homes) > 1:
            array, cells = self.joint(homes, names)
        else:
            array, cells = self.program.arrays[int(homes[0])], self.cell[names]
        return self.access(array, cells, known)

    def access(self, array: Array, cells: Ints, known: Any = None) -> Access:
        """How cells of an array are read over the axes of the table that holds them."""
        found = fit(cells, known)
        if found is not None:
            base, strides = found
            reach = [s * (n - 1) for s, n in zip(strides, cells.shape, strict=True)]
            if base + sum(min(0, r) for r in reach) >= 0 and base + sum(max(0, r) for r in reach) < array.size:
                return Access(array, base, strides)
        table = cells if known is None else np.where(known, cells, cells[known][0])
        return Access(array, 0, (0,) * cells.ndim, table)

    def constant(self, names: Ints, known: Any) -> Access | float:
        """Numbers that never change: one, or an array of them."""
        values: Any = self.flat.constants[names - self.flat.n]
        return self.numbers(values if known is None else np.where(known, values, values[known][0]))

    def numbers(self, values: Any) -> Access | float:
        """Constants over the axes of the table that holds them: one number, or an array that equal ones share."""
        if (values.view(np.int64) == values.reshape(-1)[:1].view(np.int64)).all():
            return float(values.flat[0])
        kept, axes = without_broadcast(values)
        key = (kept.shape, kept.tobytes())
        if key not in self.constants:
            self.constants[key] = self.array("k", kept.shape, "const", value=kept)
        strides = [0] * values.ndim
        for axis, stride in zip(axes, contiguous(kept.shape), strict=True):
            strides[axis] = stride
        return Access(self.constants[key], 0, tuple(strides))

    def mixed(self, names: Ints, known: Any) -> Access | float:
        """Numbers of which some are constants: those get a home too."""
        fixed = np.unique(names[self.flat.source[names] == CONST])
        homeless = fixed[self.home[fixed] < 0]
        if len(homeless):
            array = self.array("k", (len(homeless),) if len(homeless) > 1 else (), "const")
            array.value = self.flat.constants[homeless - self.flat.n].reshape(array.shape)
            self.settle(homeless, array, np.arange(len(homeless)))
        self.claim("p", np.unique(names[(self.flat.source[names] == PARAM) & (self.home[names] < 0)]))
        homes = self.homes_of(names)
        array, cells = self.joint(homes, names)
        return self.access(array, cells, known)

    def joint(self, homes: Ints, names: Ints) -> tuple[Array, Ints]:
        """One array of several laid end to end, and the cells of these numbers in it."""
        arrays = [self.program.arrays[h] for h in homes.tolist()]
        begin = np.cumsum([0] + [array.size for array in arrays])
        key = tuple(homes.tolist())
        if key not in self.joined:
            batch = (BATCH,) if any(array.batched for array in arrays) else ()
            new = self.array("c", (*batch, int(begin[-1])))
            parts = []
            for array, at in zip(arrays, begin.tolist(), strict=False):
                strides = contiguous(array.cell_shape)
                axes = (1, *strides) if array.batched else strides
                parts.append((Access(new, at, axes), array))
            self.program.steps.append(Assemble(new, parts))
            self.joined[key] = new
        lookup = np.zeros(len(self.program.arrays), np.int64)
        lookup[homes] = begin[:-1]
        return self.joined[key], lookup[self.home[names]] + self.cell[names]

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
        """A step: an array of a shape, from operands over `shape` and the axes `over` that are reduced."""
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
    """Whether two operands read the same."""
    if x.array is not y.array or (x.base, x.strides) != (y.base, y.strides) or x.index or y.index:
        return False
    return x.table is y.table if x.table is None or y.table is None else np.array_equal(x.table, y.table)
