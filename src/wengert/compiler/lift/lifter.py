"""Turns groups of numbers into arrays, and the operations into steps of a Program.

Each number is stored in a cell of an array. A group's layout is chosen so that its operands are read with strides: a
sum of products over shared rows becomes a matrix product, and the parameters in it become a named matrix. Operands
without strides are read through a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from wengert.compiler.ir import (
    COMPARISONS,
    ONE,
    ZERO,
    Access,
    Array,
    Expr,
    Grid,
    Index,
    addresses,
    contiguous,
    distinct,
    fit_strides,
    grid_rows,
    nested,
    without_broadcast,
)
from wengert.compiler.lift.flatten import Group
from wengert.compiler.lift.simplify import CONST, VARYING
from wengert.compiler.lift.storage import Storage
from wengert.compiler.lift.sums import SHORT, SumPlan, Terms, plan_of, short_sum
from wengert.ops import TABLE

__all__ = ["Lifter"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
ONE_NUMBER = Grid.of(np.zeros((), np.int64), 1)
PIECES = 8  # the most pieces, by the arrays of its factors, that a sum is cut into


@dataclass
class Lifter(Storage):
    # By the first number of a group: the terms of a short sum, or the plan of a longer one.
    short_sums: dict[int, list[tuple[int, int, float]]] = field(default_factory=dict)
    plans: dict[int, SumPlan] = field(default_factory=dict)
    in_loop: bool = False

    def plan(self, groups: Sequence[Group]) -> None:
        """Analyze groups of sums, and allocate the parameters of matrix products."""
        sums = {int(group.nodes[0]): group for group in groups if group.reduce == "sum"}
        self.short_sums.update({n: short_sum(self.flat, group, in_loop=self.in_loop) for n, group in sums.items()})
        plans = {n: plan_of(self.flat, group) for n, group in sums.items() if not self.short_sums[n]}
        self.plans.update(plans)
        for plan in plans.values():
            self.allocate_matrices(plan)
        for plan in plans.values():
            self.allocate_vectors(plan)

    def make(self, group: Group) -> None:
        number = int(group.nodes[0])
        if number in self.plans:
            self.sum_of(self.plans[number])
        elif group.reduce == "sum":
            self.short_sum_of(group, self.short_sums[number])
        elif group.reduce:
            self.extreme_of(group)
        elif TABLE[group.code].name == "pick":
            self.pick_of(group)
        else:
            self.map_of(group)

    def allocate_matrices(self, plan: SumPlan) -> None:
        if plan.grid is None or plan.product is None or plan.product.right is None:
            return
        left, right = grid_rows(plan.grid, plan.product.left, plan.product.right)
        for rows in (left, right):
            node_ids, _ = without_broadcast(rows)
            if node_ids.ndim > 1:
                self.allocate("W", node_ids)

    def allocate_vectors(self, plan: SumPlan) -> None:
        """Make the parameters of a one-row product, and those added to a product, arrays of their own."""
        if plan.grid is None or plan.product is None:
            return
        for part in plan.parts:
            if part is plan.product:
                if part.right is not None and not np.array_equal(part.left, part.right):
                    for rows in grid_rows(plan.grid, part.left, part.right):
                        self.allocate("w", rows)
            elif part.right is not None and not self.is_short(part, plan.grid):
                for rows in (part.left, part.right):
                    self.allocate("W", rows[plan.grid.rows])
            elif part.left.shape[1] <= SHORT and part.right is None:
                for column in range(part.left.shape[1]):
                    self.allocate("b", part.left[:, column][plan.grid.rows])

    def sum_of(self, plan: SumPlan) -> None:
        nodes, parts = plan.group.nodes, plan.parts
        terms = sum(part.left.shape[1] for part in parts)
        if plan.grid is not None:
            grid = plan.grid
        else:
            columns = [
                side[:, c]
                for part in parts
                for side in (part.left, part.right)
                if side is not None
                for c in (range(side.shape[1]) if terms <= SHORT else (0,))
            ]
            grid = self.grid(columns, len(nodes))
        addends: list[tuple[Access | float, Access | float | None, float]] = []
        for part in sorted(parts, key=lambda part: part.left.shape[1] <= SHORT and part is not plan.product):
            if self.is_short(part, grid) and part is not plan.product:
                addends += self.written_out(part, grid)
            else:
                addends += [
                    (self.read(array, grid), None, 1.0) for array in self.reduced(part, grid, part is plan.product)
                ]
        self.finish(plan.group, grid, addends)

    def short_sum_of(self, group: Group, terms: list[tuple[int, int, float]]) -> None:
        addends = [(self.number_at(x), self.number_at(y) if y >= 0 else None, c) for x, y, c in terms]
        self.finish(group, ONE_NUMBER, addends)

    def is_short(self, part: Terms, grid: Grid) -> bool:
        """Return True if the terms of a part are written out: there are few, and they form no matrix product."""
        if part.left.shape[1] > SHORT or part.mask is not None:
            return False
        if part.right is None or part.left.shape[1] == 1 or len(part.left) == 1:
            return True
        rows = np.maximum(grid.rows, 0)
        return without_broadcast(part.left[rows])[1] == without_broadcast(part.right[rows])[1]

    def written_out(self, part: Terms, grid: Grid) -> list[tuple[Any, Any, float]]:
        """Return the terms of a part as operands over the grid."""
        rows = np.maximum(grid.rows, 0)
        terms = []
        for c in range(part.left.shape[1]):
            left = self.operand(part.left[:, c][rows], grid.mask)
            right = None if part.right is None else self.operand(part.right[:, c][rows], grid.mask)
            coefficient = np.ascontiguousarray(part.coefficient[:, c][rows])
            if (coefficient == coefficient.flat[0]).all():
                terms.append((left, right, float(coefficient.flat[0])))
            elif right is None:
                terms.append((left, self.numbers(coefficient), 1.0))
            else:
                scaled = self.compute(
                    "u", grid.shape, [left, right, self.numbers(coefficient)], lambda x, y, c: ("mul", c, ("mul", x, y))
                )
                terms.append((self.read(scaled, grid), None, 1.0))
        return terms

    def read(self, array: Array, grid: Grid) -> Access:
        return Access(array, 0, contiguous(grid.shape))

    def reduced(self, part: Terms, grid: Grid, is_product: bool) -> list[Array]:
        """Sum the terms of a part, in as few steps as the arrays of its factors allow."""
        rows = np.maximum(grid.rows, 0)
        left: Any
        right: Any
        if is_product:
            assert part.right is not None
            left, right = grid_rows(grid, part.left, part.right)
        else:
            left, right = part.left[rows], None if part.right is None else part.right[rows]
        shape = (*grid.shape, part.left.shape[1])
        mask = grid.mask if part.mask is None else part.mask[rows]
        if mask is not None and part.mask is None:
            mask = np.broadcast_to(mask[..., None], shape)
        if part.mask is not None and grid.mask is not None:
            mask = mask & grid.mask[..., None]
        sums = []
        for columns in self.pieces(part):
            over = (len(columns),)
            part_mask = None if mask is None else mask[..., columns]
            operands = []
            for side, name in ((left, "left"), (right, "right")):
                if side is None:
                    continue
                node_ids = side[..., columns]
                valid = part_mask
                if part.mask is not None and is_product:
                    own = part.left_mask if name == "left" else part.right_mask
                    valid = np.broadcast_to(grid_rows(grid, own, own)[0 if name == "left" else 1], shape)[..., columns]
                operands.append(self.operand(np.broadcast_to(node_ids, (*grid.shape, *over)), valid))
            coefficient = np.ascontiguousarray(part.coefficient[:, columns][rows])
            scale = float(coefficient.flat[0])
            if not (coefficient == scale).all():
                operands.append(self.numbers(coefficient))
                scale = 1.0
            self.program.padded |= mask is not None
            masked = part.mask is not None and not self.padding_is_zero(operands, part_mask)
            sums.append(self.product_step(grid, operands, over, part_mask if masked else None, scale))
        return sums

    def product_step(self, grid: Grid, operands: list[Any], over: Sequence[int], mask: Any, scale: float) -> Array:
        shape = grid.shape
        own = {x.array.cell_shape if isinstance(x, Access) and _is_all(x, over) else () for x in operands}
        if np.prod(shape, dtype=int) == 1 and len(own) == 1 and mask is None and own != {()}:
            over = own.pop()  # a sum over a whole array uses its axes
            lead = (0,) * len(shape)
            operands = [Access(x.array, 0, (*lead, *contiguous(over))) for x in operands]
        stem = "z" if len(operands) > 1 else "s"
        out = self.compute(stem, shape, operands, _times, over=over, reduce="sum", mask=mask)
        if scale != 1.0:
            strides = contiguous([n for n in shape if n > 1])
            out = self.compute(
                stem,
                out.cell_shape,
                [Access(out, 0, strides), scale],
                lambda x, c: ("mul", x, c) if scale != -1.0 else ("neg", x),
            )
        if grid.mask is not None:
            out.mask, out.clean = grid.mask.reshape(out.cell_shape), False
        return out

    def padding_is_zero(self, operands: list[Access | float], mask: Any) -> bool:
        """Return True if an operand is clean padding, that is 0, wherever the mask is False."""
        for x in operands:
            if isinstance(x, Access) and x.array.mask is not None and x.array.clean and x.table is None:
                cells = addresses(x.base, x.strides, mask.shape)
                if not x.array.mask.reshape(-1)[cells[~mask]].any():
                    return True
        return False

    def pieces(self, part: Terms) -> list[Ints]:
        """Split the columns of a part by the arrays that store their factors."""
        width = part.left.shape[1]
        every = [np.arange(width)]
        sides = [side for side in (part.left, part.right) if side is not None]
        places = [np.where(self.flat.source[side] == CONST, -2, self.place[side]) for side in sides]
        if part.mask is not None or any((place != place[:1]).any() for place in places):
            return every
        key = np.stack([place[0] for place in places])
        if (key == key[:, :1]).all():
            pieces = every
        else:
            first, number = distinct(key.T)
            if len(first) > PIECES:
                return every
            pieces = [np.flatnonzero(number == n) for n in range(len(first))]
        if len(part.left) == 1:  # the terms of a single sum are put in memory order
            pieces = [columns[np.argsort(self.cell[part.left[0, columns]], kind="stable")] for columns in pieces]
        return pieces

    def finish(self, group: Group, grid: Grid, addends: list[tuple[Any, Any, float]]) -> None:
        only = addends[0][0] if len(addends) == 1 and addends[0][1:] == (None, 1.0) else None
        if (
            isinstance(only, Access)
            and self.program.steps
            and only.array in self.program.steps[-1].makes
            and _is_fresh(only, grid)
        ):
            self.assign(group.nodes, only.array, grid.cell)
            return
        operands = [x for addend in addends for x in addend[:2] if x is not None]

        def write(*branches: Expr) -> Expr:
            left = list(branches)
            expr: Expr | None = None
            for _, second, scale in addends:
                term = left.pop(0)
                if second is not None:
                    term = ("mul", term, left.pop(0))
                if abs(scale) != 1.0:
                    term = ("mul", term, ("const", scale if expr is None else abs(scale)))
                elif scale < 0 and expr is None:
                    term = ("neg", term)
                expr = term if expr is None else ("add" if scale > 0 else "sub", expr, term)
            assert expr is not None
            return expr

        self.elementwise(group, grid, operands, write, "u")

    def elementwise(self, group: Group, grid: Grid, operands: list[Any], write: Callable[..., Expr], stem: str) -> None:
        """Add a step that computes a group element by element, with 0 in padding."""
        mask = grid.mask
        varying = bool(self.flat.source[group.nodes[0]] == VARYING)  # the same for the whole group

        def masked(*branches: Expr) -> Expr:
            expr = write(*branches)
            return (
                expr
                if mask is None
                else ("where", ("mask", mask.reshape([n for n in mask.shape if n > 1])), expr, ZERO)
            )

        out = self.compute(stem, grid.shape, operands, masked, batched=varying and self.batched)
        if mask is not None:
            out.mask, self.program.padded = mask.reshape(out.cell_shape), True
        self.assign(group.nodes, out, grid.cell)

    def grid(self, columns: list[Ints], count: int) -> Grid:
        """Choose the order and the shape of a group whose operands are these columns of numbers."""
        if count == 1:
            return ONE_NUMBER
        cells = [self.cell[c] for c in columns]
        places = [self.place[c] for c in columns]
        usable = [k for k in range(len(columns)) if places[k][0] >= 0 and (places[k] == places[k][0]).all()]
        many = {k: len(np.unique(cells[k])) for k in usable}
        usable.sort(key=lambda k: (-many[k], self.flat.source[columns[k][0]] != VARYING))
        if not usable:
            return Grid.of(np.arange(count), count)
        main, order = usable[0], np.arange(count)
        hint: tuple[int, ...] = ()
        array = self.program.arrays[int(places[main][0])]
        if many[main] == count:
            order = np.argsort(cells[main], kind="stable")
            if array.mask is not None and np.array_equal(cells[main][order], np.flatnonzero(array.mask)):
                rows = np.full(array.size, -1)
                rows[cells[main][order]] = order
                return Grid(rows.reshape(array.cell_shape), cells[main], array.mask)
            if count == array.size:
                hint = array.cell_shape
        shape = nested([cells[k][order] for k in usable], count, hint)
        return Grid.of(order.reshape(shape), count)

    def map_of(self, group: Group) -> None:
        flat, nodes = self.flat, group.nodes
        row = TABLE[group.code]
        grid, operands = ONE_NUMBER, list[Access | float]()
        if len(nodes) == 1:
            only = flat.operands[flat.starts[nodes[0]] : flat.starts[nodes[0] + 1]].tolist()
            operands = [self.number_at(x) for x in only]
        else:
            columns = [flat.operands[flat.starts[nodes] + k] for k in range(row.arity or 0)]
            grid = self.grid([c for c in columns if (flat.source[c] != CONST).any()], len(nodes))
            rows = np.maximum(grid.rows, 0)
            operands = [self.operand(c[rows], grid.mask) for c in columns]
        self.elementwise(group, grid, operands, lambda *branches: _special(row.name, branches), "h")

    def pick_of(self, group: Group) -> None:
        """Add the step of a group of numbers that integers choose among equally many candidates.

        The group is split if its indices are of several arguments, or read without strides.
        """
        flat, nodes = self.flat, group.nodes
        extent = int(flat.starts[nodes[0] + 1] - flat.starts[nodes[0]]) - 1
        table = flat.operands[flat.starts[nodes][:, None] + np.arange(extent + 1)]
        candidates, index = table[:, :-1], table[:, -1]
        first, kind = distinct(candidates)
        if not self.is_one_value(self.place[index]):
            self.picks_of(group, self.place[index])
            return
        self.allocate("T", candidates[first].T)
        grid = self.grid([index], len(nodes)) if len(first) == 1 else self.grid([index, candidates[:, 0]], len(nodes))
        self.operand(candidates[grid.rows])  # allocates new parameters
        array, cells = self.joint(candidates)
        if extent > 1 and not self.is_one_value(np.diff(cells, axis=1)):  # copy them side by side
            array = self.compute("t", (len(first), extent), [self.operand(candidates[first])], lambda x: x)
            cells = kind[:, None] * extent + np.arange(extent)
        base, chosen = fit_strides(cells[:, 0][grid.rows]), fit_strides(self.cell[index][grid.rows])
        if base is None or chosen is None:
            self.picks_of(group, kind if len(first) > 1 else index)
            return
        step = int(cells[0, 1] - cells[0, 0]) if extent > 1 else 0
        by = Index(self.program.arrays[int(self.place[index[0]])], step, chosen[0], chosen[1], extent)
        access = Access(array, base[0], base[1], None, by)
        out = self.compute("g", grid.shape, [access], lambda x: x, batched=self.batched)
        self.assign(nodes, out, grid.cell)

    def picks_of(self, group: Group, part: Ints) -> None:
        for each in dict.fromkeys(part.tolist()):
            self.pick_of(Group(group.nodes[part == each], group.code))

    @staticmethod
    def is_one_value(numbers: Ints) -> bool:
        return bool((numbers == numbers.flat[0]).all())

    def extreme_of(self, group: Group) -> None:
        plan = plan_of(self.flat, group)
        part = plan.parts[0]
        left = np.concatenate([p.left for p in plan.parts], axis=1)
        grid = self.grid([left[:, 0]], len(left))
        rows = np.maximum(grid.rows, 0)
        mask = None if part.mask is None else part.mask[rows]
        if grid.mask is not None:
            grid = Grid.of(np.arange(len(left)), len(left))
            rows, mask = grid.rows, part.mask
        operand = self.operand(left[rows], mask)
        out = self.compute(
            "m", grid.shape, [operand], lambda x: x, over=(left.shape[1],), reduce=group.reduce, mask=mask
        )
        self.program.padded |= mask is not None
        self.assign(group.nodes, out, grid.cell)


def _special(name: str, branches: Sequence[Expr]) -> Expr:
    """Write an operation as an expression: short forms of powers, comparisons as choices."""
    if name == "pow" and branches[1][0] == "const":
        exponent = branches[1][1]
        if exponent == 2.0:
            return ("square", branches[0])
        if exponent == -1.0:
            return ("reciprocal", branches[0])
    if name == "where":
        return ("where", ("ne", branches[0], ZERO), *branches[1:])
    if name.endswith(" by rule"):  # the same for all user-written operations
        return ("by rule", *branches)
    if name in COMPARISONS:
        return ("where", (name, *branches), ONE, ZERO)
    return (name, *branches)


def _times(*branches: Expr) -> Expr:
    return reduce(lambda x, y: ("mul", x, y), branches)


def _is_all(x: Access, over: Sequence[int]) -> bool:
    """Return True if a sum of one row runs over a whole array in order."""
    return x.table is None and x.base == 0 and x.strides[-1:] == (1,) and over[0] == x.array.size > 1


def _is_fresh(x: Access, grid: Grid) -> bool:
    return x.table is None and x.base == 0 and x.array.size == np.prod(grid.shape, dtype=int)
