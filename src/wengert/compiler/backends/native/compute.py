"""Lays out the loops of Computes, sums and extremes among them."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from wengert.compiler.backends.native.access import Cells, Point, points_of
from wengert.compiler.backends.native.emitter import Emitter, Place, Register, at
from wengert.compiler.backends.native.rows import evaluate, expanded, extreme
from wengert.compiler.ir import BATCH, Compute, Expr

__all__ = ["Computes"]

SCATTERED = 2.0  # the cost of moving one number into its lane; a vector load costs 1


class Computes(Cells):
    def compute(self, step: Compute) -> None:
        lengths = {i: n for i, n in enumerate(step.axes) if n != BATCH}
        expr = expanded(step.expr, lambda k: step.operands[k].array.nonnegative)
        self.unroll(prod(lengths.values()))
        if self.unrolled and not step.reduce:
            self.written_out(step, expr)
            return
        lane, tiles = self.plan(step)

        def write(places: dict[int, list[Place]], lanes: int) -> None:
            if step.reduce:
                Reduction(self, step, expr, places, lane, lanes).write()
                return
            for point in points_of(places, self.block, lane, lanes):
                self.spill(step.out, point, self.value(step, expr, point))

        self.over([i for i in range(len(step.out.shape)) if i in lengths], lengths, lane, tiles, write)

    def written_out(self, step: Compute, expr: Expr) -> None:
        """Unroll a small step, whose cells are then known."""
        axes, operands, cells = step.axes, step.operands, [access.cells(step.axes) for access in step.operands]
        cell = 0

        def leaf(part: Expr) -> Register | bool:
            if part[0] == "in" and operands[part[1]].index is None:
                return self.fetch(operands[part[1]].array, at(cells[part[1]][cell]), self.block)
            places = np.unravel_index(cell, step.out.cell_shape)
            plain = [i for i, n in enumerate(axes) if n != BATCH]
            point = Point({i: at(int(place)) for i, place in zip(plain, places, strict=True)}, self.block)
            return self.mask(part[1], axes, point) if part[0] == "mask" else self.read(operands[part[1]], axes, point)

        while cell < step.out.size:
            self.store(step.out, at(cell), evaluate(self.to, expr, leaf), self.block)
            cell += 1

    def value(self, step: Compute, expr: Expr, point: Point) -> Register:
        def leaf(part: Expr) -> Register | bool:
            if part[0] == "mask":
                return self.mask(part[1], step.axes, point)
            return self.read(step.operands[part[1]], step.axes, point)

        return evaluate(self.to, expr, leaf)

    def plan(self, step: Compute) -> tuple[int, dict[int, int]]:
        """Choose the vectorized axis, and how many points of other axes are computed at once."""
        out, axes = step.out, step.axes
        free_axes = [i for i in range(len(out.shape)) if axes[i] != BATCH]
        lane = -1 if BATCH in axes or self.unrolled else self.best_lane(step)
        if not step.reduce:
            return lane, {}
        free = [i for i in free_axes if i != lane]
        if not free:
            return lane, {}
        across = (BATCH in axes and not out.batched) or lane >= len(out.shape)
        if across:  # a sum over the lanes: as many sums as there are lanes become one vector
            last = free[-1]
            tiles = {last: self.width if self.width > 1 else self.to.registers // 2 or 1}
            others = sorted(free[:-1], key=lambda i: axes[i])
            if others and self.width > 1:
                tiles[others[-1]] = 2
            return lane, tiles

        def shared(axis: int) -> tuple[int, int]:
            return sum([not x.depends_on(axis, axes) for x in step.operands]), min(axes[axis], self.to.registers)

        best = max(free, key=shared)
        length = axes[best]
        return lane, {
            best: next(
                (n for n in range(self.to.registers, self.to.registers // 2 - 1, -1) if length % n == 0),
                self.to.registers,
            )
        }

    def best_lane(self, step: Compute) -> int:
        """Return the cheapest axis to vectorize in a step without a batch; -1 for none."""
        axes, rank, width = step.axes, len(step.out.shape), self.width
        if width == 1:
            return -1
        summed = prod(axes[rank:])
        best, least = -1, float(len(step.operands) + 1.0 / summed + 1.0)
        for i, length in enumerate(axes):
            if length < 2:
                continue
            cost = 1.0
            for x in step.operands:
                index = x.index is not None and bool(x.index.strides[i])
                plain = x.table is None and not index and x.strides[i] in (0, 1)
                cost += (0.5 + 0.5 * bool(x.strides[i])) if plain else SCATTERED * width
            if i < rank:
                cost += (1.0 if step.out.strides[i] == 1 else SCATTERED * width) / summed
            else:
                cost += 4.0 * width / summed
            iterations = (
                length // width + bin(length % width).count("1") if i < rank else length // width + length % width
            )
            cost *= iterations / length
            if cost < least:
                best, least = i, cost
        return best


class Reduction:
    """A sum, maximum or minimum, for some points of the result at once.

    The lanes are points of the result, or terms: examples, or along a reduced axis. Terms in lanes are reduced at the
    end.
    """

    def __init__(
        self, cells: Computes, step: Compute, expr: Expr, places: dict[int, list[Place]], lane: int, lanes: int
    ) -> None:
        self.cells = cells
        self.to: Emitter = cells.to
        self.step = step
        self.expr = expr
        rank = len(step.out.shape)
        self.lane = lane
        self.inner: bool = lane >= rank
        self.over_batch: bool = BATCH in step.axes and not step.out.batched
        self.points: list[Point] = points_of(places, cells.block, -1 if self.inner else lane, lanes)
        self.lanes: int = cells.width if self.over_batch or self.inner or step.out.batched else lanes
        self.axes: list[int] = sorted(range(rank, len(step.axes)), key=lambda i: step.axes[i] == BATCH)
        last = len(step.out.shape) - 1
        self.makes_vectors: bool = step.reduce == "sum" and len(places.get(last, ())) == cells.width > 1

    def write(self) -> None:
        cells, out, width = self.cells, self.step.out, self.cells.width
        ends = [self.start()] * len(self.points)
        if self.inner:
            length = self.step.axes[self.lane]
            split = length // width * width
            if split < length:
                ends = self.nest(self.axes, {}, cells.block, ends, (split, length, 1))
            if not split:
                self.store(ends)
                return
            totals = self.nest(self.axes, {}, cells.block, [self.start()] * len(self.points), (0, split, width))
        else:
            totals = self.nest(self.axes, {}, cells.block, ends)
        if not (self.inner or self.over_batch):
            self.store(totals)
            return
        if not self.makes_vectors:
            folded = [self.to.folded(self.to.spread(total, width), self.reduced) for total in totals]
            self.store([self.reduced(x, end) for x, end in zip(folded, ends, strict=True)])
            return
        for first in range(0, len(totals), width):
            sums = self.to.sums([self.to.spread(total, width) for total in totals[first : first + width]])
            sums = self.reduced(sums, self.to.packed(ends[first : first + width]))
            point = self.points[first]._replace(lane=len(out.shape) - 1, lanes=width)
            cells.spill(out, point, sums)

    def store(self, totals: list[Register]) -> None:
        for point, total in zip(self.points, totals, strict=True):
            self.cells.spill(self.step.out, point, total)

    def start(self) -> Register:
        return self.to.number({"sum": 0.0, "max": -inf, "min": inf}[self.step.reduce])

    def reduced(self, total: Register, x: Register) -> Register:
        if x == self.start():
            return total
        if self.step.reduce == "sum":
            return self.to.arithmetic("add", total, x)
        return extreme(self.to, "maximum" if self.step.reduce == "max" else "minimum", total, x)

    def nest(
        self,
        axes: list[int],
        places: dict[int, Place],
        block: Place | None,
        totals: list[Register],
        span: tuple[int, int, int] | None = None,
    ) -> list[Register]:
        """Write the loops over some axes; `span` is the range and the step along the vectorized axis."""
        cells, to = self.cells, self.to
        if not axes:
            terms = []
            for total, point in zip(totals, self.points, strict=True):
                here = point._replace(places={**point.places, **places}, block=block)
                if span is not None and span[2] > 1:
                    here = here._replace(lane=self.lane, lanes=span[2])
                terms.append(self.term(total, here))
            return terms
        axis = axes[0]
        lanes = span[2] if span is not None else self.lanes
        if self.step.axes[axis] == BATCH:
            return to.loop(
                0, to.examples, cells.width, lambda i, t: self.nest(axes[1:], places, i, t, span), totals, lanes
            )
        low, high, step = span if span is not None and axis == self.lane else (0, self.step.axes[axis], 1)
        return cells.loop(
            low, high, step, lambda i, t: self.nest(axes[1:], {**places, axis: i}, block, t, span), totals, lanes
        )

    def term(self, total: Register, point: Point) -> Register:
        cells, to, step, expr = self.cells, self.to, self.step, self.expr
        is_included: Register | bool = True if step.mask is None else cells.mask(step.mask, step.axes, point)
        if is_included is False:
            return total
        if step.reduce == "sum" and expr[0] == "mul":
            new_total = to.fma(cells.value(step, expr[1], point), cells.value(step, expr[2], point), total)
        else:
            new_total = self.reduced(total, cells.value(step, expr, point))
        if isinstance(is_included, Register):
            new_total = to.select(is_included, new_total, total)
        if self.over_batch and point.block is not None:
            new_total = to.where_real(point.block, new_total, total)
        return new_total
