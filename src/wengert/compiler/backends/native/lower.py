"""A program and its reverse as loops over numbers: the one lowering, which every printer prints.

What has a batch runs in loops over blocks of examples, as many as a vector has lanes, and one example to each lane;
what has none runs with its lanes along an axis. The last block repeats the last example in what lanes are left: it
computes that once more, and sums over the batch leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.backends.native.emitter import Memory, Place, Value, affine, at
from wengert.compiler.backends.native.rows import Unsupported, evaluate, expanded, extreme
from wengert.compiler.ir import BATCH, Access, Array, Assemble, Compute, Program, addresses, contiguous

__all__ = ["Lowering", "Storage"]

LINES = 1500  # of a function: to generate code takes longer than in proportion


class Storage(NamedTuple):
    """Where an array lies: ``memory[base + pitch * example + step * cell]``, the example being the first of a block."""

    memory: Memory
    base: int
    pitch: int = 0
    step: int = 1


class Point(NamedTuple):
    """Where in a step's axes a number is computed, or one for each lane from there on."""

    places: dict[int, Place]
    block: Place | None = None  # the first example
    lane: int = -1  # the axis that the lanes lie along
    lanes: int = 1

    def shifted(self, by: int) -> Point:
        """That of one lane alone."""
        moved = affine(by, [(self.places[self.lane], 1)])
        return Point({**self.places, self.lane: moved}, self.block)


class Lowering:
    """One function's worth of it.

    Args:
        to: the printer.
        steps: what is computed.
        storage: by the id of an array where it lies.
        rows: by the id of an array of integers, or of a batched input, where its rows lie as they were given.
        seed: the array that is the number `seed`.
    """

    def __init__(
        self,
        to: Any,
        steps: Sequence[Compute | Assemble],
        storage: dict[int, Storage],
        rows: dict[int, Storage],
        seed: Array | None,
    ) -> None:
        self.to = to
        self.width: int = to.width
        self.steps = steps
        self.storage = storage
        self.rows = rows
        self.seed = seed
        self.registers: dict[tuple[int, int, int], Value] = {}
        self.block: Place | None = None
        self.unrolled = False

    # -- the order of the work ----------------------------------------------------------------------------------------

    def run(self, packs: Sequence[Array], copies: Sequence[tuple[Array | None, Array, Memory, int]]) -> list[int]:
        """Write the functions; their numbers.

        Args:
            packs: inputs whose examples are to lie in lanes.
            copies: the results that do not lie where they are to be left: each (None for zeros), an array of its shape,
                and the memory.
        """
        first = len(self.to.functions)
        ready = {id(array) for array in self.given()}
        work: list[tuple[bool, set[int], int, Callable[[], None]]] = []
        for array in packs:
            ready.discard(id(array))
            work.append((True, set(), id(array), lambda array=array: self.pack(array)))
        for step in self.steps:
            needs = {id(array) for array in step.reads}
            action = self.compute if isinstance(step, Compute) else self.assemble
            work.append((step.out.batched, needs, id(step.out), lambda step=step, do=action: do(step)))
        for array, shape, memory, base in copies:
            needs = set() if array is None else {id(array)}
            copy = lambda array=array, shape=shape, memory=memory, base=base: self.copy(array, shape, memory, base)  # noqa: E731
            work.append((shape.batched, needs, 0, copy))
        blocks = False
        while work:
            now, later = [], []
            for one in work:
                if one[0] == blocks and one[1] <= ready:
                    now.append(one[3])
                    ready.add(one[2])
                else:
                    later.append(one)
            if len(later) == len(work) and not any(one[1] <= ready for one in work):
                raise Unsupported("a step reads what is not made")
            self.phase(now, blocks)
            work, blocks = later, not blocks
        return list(range(first, len(self.to.functions)))

    def given(self) -> list[Array]:
        """What is there before the first step."""
        made = {id(step.out) for step in self.steps}
        return [array for step in self.steps for array in self.arrays_of(step) if id(array) not in made]

    @staticmethod
    def arrays_of(step: Compute | Assemble) -> list[Array]:
        """What a step reads, integers too."""
        accesses = step.operands if isinstance(step, Compute) else [access for access, _ in step.parts]
        return [*step.reads, *[access.index.array for access in accesses if access.index is not None]]

    def phase(self, actions: list[Callable[[], None]], blocks: bool) -> None:
        """Steps that run one after another, of a block of examples each time or once."""
        waiting = actions[::-1]

        def some() -> None:
            self.registers = {}
            while waiting and self.to.size < LINES:
                self.unrolled = False
                waiting.pop()()

        def turn(block: Place, _: list[Value]) -> Sequence[Value]:
            self.block = block
            some()
            return ()

        while waiting:
            self.to.begin()
            if blocks:
                self.to.loop(0, self.to.examples, self.width, turn)
            else:
                some()
            self.block = None
            self.to.end()

    def loop(
        self, low: int, high: int, step: int, body: Callable[[Place, list[Value]], Sequence[Value]],
        carried: Sequence[Value] = (), lanes: int = 0,
    ) -> list[Value]:  # fmt: skip
        """A loop, or its turns written out."""
        if not self.unrolled:
            return list(self.to.loop(low, high, step, body, carried, lanes))
        values = list(carried)
        for turn in range(low, high, step):
            values = list(body(at(turn), values))
        return values

    # -- reading and writing ------------------------------------------------------------------------------------------

    def place(self, array: Array, cell: Place, block: Place | None, lanes: int) -> tuple[Memory, Place]:
        """Where a cell of an array lies."""
        home = self.storage[id(array)]
        cell = self.to.checked(cell, lanes, array.size)
        terms = [(cell, home.step)]
        if array.batched and block is not None:
            terms.append((block, home.pitch))
        return home.memory, affine(home.base, terms)

    def fetch(self, array: Array, cell: Place, block: Place | None, lanes: int = 1) -> Value:
        """A cell of an array, and those that follow it; of a batched one that of each example of the block."""
        if array is self.seed:
            return self.to.seed
        if not cell[1]:
            found = self.registers.get((id(array), cell[0], lanes))
            if found is not None:
                return found
        memory, place = self.place(array, cell, block, lanes)
        self.to.read.add(id(array))
        made = self.to.load(memory, place, self.width if array.batched else lanes)
        return self.to.as_float(made) if memory.kind == "i" else made

    def leave(self, array: Array, cell: Place, value: Value, block: Place | None, lanes: int = 1) -> None:
        """Put a value into a cell, or its lanes into those that follow."""
        if not cell[1]:
            value = self.registers[(id(array), cell[0], lanes)] = self.to.shared(value)
        memory, place = self.place(array, cell, block, lanes)
        self.to.store(memory, place, self.to.spread(value, self.width if array.batched else lanes), id(array))

    def cell(self, access: Access, axes: Sequence[int], point: Point) -> Place:
        """The cell that an access names at a point, without what its index adds."""
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        table = access.table
        if table is None:
            return affine(access.base, [(point.places[i], access.strides[i]) for i in plain])
        if all(not point.places[i][1] for i in plain):
            return at(int(table[tuple([point.places[i][0] for i in plain])]))
        where = affine(0, list(zip([point.places[i] for i in plain], contiguous(table.shape), strict=True)))
        return self.to.offset(self.to.load(self.to.constant(table), where))

    def read(self, access: Access, axes: Sequence[int], point: Point) -> Value:
        """What an access gives at a point: one number for all lanes where they do not differ."""
        lanes, index = 1, access.index
        if point.lane >= 0 and access.depends_on(point.lane, axes):
            if access.table is not None or access.strides[point.lane] != 1 or (index and index.strides[point.lane]):
                return self.to.packed([self.read(access, axes, point.shifted(k)) for k in range(point.lanes)])
            lanes = point.lanes
        cell = self.cell(access, axes, point)
        if index is None:
            return self.fetch(access.array, cell, point.block, lanes)
        if not index.array.batched or self.width == 1:
            return self.fetch(access.array, self.moved(cell, access, axes, point, 0), point.block, lanes)
        values = []
        for k in range(self.width):
            memory, place = self.place(access.array, self.moved(cell, access, axes, point, k), point.block, 1)
            self.to.read.add(id(access.array))
            values.append(self.to.load(memory, affine(k if access.array.batched else 0, [(place, 1)])))
        return self.to.packed(values)

    def moved(self, cell: Place, access: Access, axes: Sequence[int], point: Point, lane: int) -> Place:
        """A cell with what the index adds for the example in a lane."""
        index: Any = access.index
        home = self.rows[id(index.array)]
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        where = self.to.checked(affine(index.base, [(point.places[i], index.strides[i]) for i in plain]), 1, index.array.size)
        if index.array.batched:
            where = affine(0, [(where, 1), (self.to.row(point.block, lane), home.pitch)])
        chosen = self.to.load(home.memory, affine(home.base, [(where, 1)]))
        return affine(0, [(cell, 1), (self.to.offset(chosen), index.step)])

    def mask(self, values: Any, axes: Sequence[int], point: Point) -> Value | bool:
        """What a mask says at a point."""
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        places = [point.places[i] for i in plain[: values.ndim]]
        if point.lane in plain[: values.ndim] and values.shape[plain.index(point.lane)] > 1:
            if plain.index(point.lane) < values.ndim - 1:
                found = [self.mask(values, axes, point.shifted(k)) for k in range(point.lanes)]
                numbers = [self.to.number(float(x)) if isinstance(x, bool) else self.to.select(x, self.to.number(1.0), self.to.number(0.0)) for x in found]
                return self.to.compare("ne", self.to.packed(numbers), self.to.number(0.0))
            lanes = point.lanes
        else:
            lanes = 1
            if all(not number[1] for number in places):
                return bool(values[tuple([0 if n == 1 else p[0] for p, n in zip(places, values.shape, strict=True)])])
        steps = [0 if n == 1 else s for s, n in zip(contiguous(values.shape), values.shape, strict=True)]
        where = affine(0, list(zip(places, steps, strict=True)))
        return self.to.compare("ne", self.to.load(self.to.constant(values), where, lanes), self.to.number(0.0))

    # -- Compute ------------------------------------------------------------------------------------------------------

    def compute(self, step: Compute) -> None:
        """A step that fills an array with an expression."""
        out, axes = step.out, step.axes
        kept = len(out.shape)
        lengths = {i: n for i, n in enumerate(axes) if n != BATCH}
        expr = expanded(step.expr, lambda k: step.operands[k].array.nonnegative)
        points = prod(lengths.values())
        self.unrolled = points <= self.to.unrolled
        lane, tiles = self.plan(step)

        def value(expr: Any, point: Point) -> Value:
            def leaf(part: Any) -> Any:
                return self.mask(part[1], axes, point) if part[0] == "mask" else self.read(step.operands[part[1]], axes, point)

            return evaluate(self.to, expr, leaf)

        def write(places: dict[int, list[Place]], lanes: int) -> None:
            if step.reduce:
                self.reduction(step, expr, value, places, lane, lanes)
                return
            for point in _points(places, self.block, lane, lanes):
                self.spill(out, axes, point, value(expr, point))

        self.over([i for i in range(kept) if i in lengths], lengths, lane, tiles, write)

    def spill(self, out: Array, axes: Sequence[int], point: Point, value: Value) -> None:
        """Leave a value in its cell of the result."""
        kept = len(out.shape)
        access = Access(out, 0, out.strides)
        places = {i: place for i, place in point.places.items() if i < kept}
        if point.lane < 0 or point.lane >= kept or out.strides[point.lane] == 1:
            self.leave(out, self.cell(access, out.shape, Point(places)), value, self.block, point.lanes)
            return
        value = self.to.spread(value, point.lanes)
        for k in range(point.lanes):
            self.leave(out, self.cell(access, out.shape, point.shifted(k)), self.to.lane(value, k), self.block)

    def over(
        self, left: list[int], lengths: dict[int, int], lane: int, tiles: dict[int, int],
        body: Callable[[dict[int, list[Place]], int], None],
        places: dict[int, list[Place]] | None = None, lanes: int = 1,
    ) -> None:  # fmt: skip
        """Loops over some axes: one of them in vectors, and ever smaller ones at its end; some in tiles."""
        places = places or {}
        if not left:
            body(places, lanes)
            return
        axis, length, at_lane = left[0], lengths[left[0]], left[0] == lane
        size = self.width if at_lane else min(tiles.get(axis, 1), length)
        start = 0
        while start < length:
            if length - start >= size:
                end = start + (length - start) // size * size

                def turn(i: Place, _: Any, size: int = size) -> Sequence[Value]:
                    own = [i] if at_lane else [affine(k, [(i, 1)]) for k in range(size)]
                    self.over(left[1:], lengths, lane, tiles, body, {**places, axis: own}, size if at_lane else lanes)
                    return ()

                self.loop(start, end, size, turn)
                start = end
            size = size // 2 if at_lane else length - start

    def plan(self, step: Compute) -> tuple[int, dict[int, int]]:
        """The axis that lanes lie along, and how many points of others are computed at once."""
        out, axes = step.out, step.axes
        kept = [i for i in range(len(out.shape)) if axes[i] != BATCH]
        lane = -1 if BATCH in axes or self.unrolled else self.best_lane(step)
        if not step.reduce:
            return lane, {}
        free = [i for i in kept if i != lane]
        if not free:
            return lane, {}
        across = (BATCH in axes and not out.batched) or lane >= len(out.shape)
        if across:  # sums over the lanes: as many at once as there are lanes come out as a vector
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
        return lane, {best: next((n for n in range(self.to.registers, self.to.registers // 2 - 1, -1) if length % n == 0), self.to.registers)}

    def best_lane(self, step: Compute) -> int:
        """The axis of a step without a batch that vectors are read and written along at the least cost; -1 for none."""
        axes, kept, width = step.axes, len(step.out.shape), self.width
        if width == 1:
            return -1
        summed = prod(axes[kept:])
        best, least = -1, float(len(step.operands) + 1.0 / summed + 1.0)
        for i, length in enumerate(axes):
            if length < 2:
                continue
            cost = 1.0
            for x in step.operands:
                index = x.index is not None and bool(x.index.strides[i])
                plain = x.table is None and not index and x.strides[i] in (0, 1)
                cost += (0.5 + 0.5 * bool(x.strides[i])) if plain else 2.0 * width
            if i < kept:
                cost += (1.0 if step.out.strides[i] == 1 else 2.0 * width) / summed
            else:
                cost += 4.0 * width / summed
            turns = length // width + bin(length % width).count("1") if i < kept else length // width + length % width
            cost *= turns / length
            if cost < least:
                best, least = i, cost
        return best

    # -- reductions ---------------------------------------------------------------------------------------------------

    def reduction(
        self, step: Compute, expr: Any, value: Callable[[Any, Point], Value], places: dict[int, list[Place]],
        lane: int, lanes: int,
    ) -> None:  # fmt: skip
        """Sums, or greatest or least ones, for some points of the result at once."""
        to, out, axes = self.to, step.out, step.axes
        kept = len(out.shape)
        start = to.number({"sum": 0.0, "max": -inf, "min": inf}[step.reduce])
        across_batch = BATCH in axes and not out.batched
        inner = lane >= kept
        points = _points(places, self.block, lane if lane < kept else -1, lanes)

        def combined(total: Value, x: Value) -> Value:
            if step.reduce == "sum":
                return to.arithmetic("add", total, x)
            return extreme(to, "maximum" if step.reduce == "max" else "minimum", total, x)

        def term(total: Value, point: Point, real: Value | None) -> Value:
            taken = True if step.mask is None else self.mask(step.mask, axes, point)
            if taken is False:
                return total
            if step.reduce == "sum" and expr[0] == "mul":
                made = to.fma(value(expr[1], point), value(expr[2], point), total)
            else:
                made = combined(total, value(expr, point))
            if taken is not True:
                made = to.select(taken, made, total)
            return made if real is None else to.select(real, made, total)

        def nest(left: list[int], known: dict[int, Place], block: Place | None, totals: list[Value], wide: int, of: int, tail: bool) -> list[Value]:
            if not left:
                real = to.real(block) if across_batch and self.width > 1 else None
                made = []
                for total, point in zip(totals, points, strict=True):
                    here = Point({**point.places, **known}, block, lane, of) if lane >= 0 else Point({**point.places, **known}, block)
                    made.append(term(total, here, real))
                return made
            axis, rest = left[0], left[1:]
            if axes[axis] == BATCH:
                return list(to.loop(0, to.examples, self.width, lambda i, t: nest(rest, known, i, t, wide, of, tail), totals, wide))
            low, high, by = 0, axes[axis], 1
            if axis == lane:
                split = high // self.width * self.width
                low, high, by = (split, high, 1) if tail else (0, split, self.width)
            return self.loop(low, high, by, lambda i, t: nest(rest, {**known, axis: i}, block, t, wide, of, tail), totals, wide)

        left = [i for i in range(kept, len(axes)) if axes[i] != BATCH] + [i for i in range(kept, len(axes)) if axes[i] == BATCH]
        wide = self.width if (BATCH in axes or inner) else lanes
        totals = [start] * len(points)
        if not inner:
            totals = nest(left, {}, self.block, totals, wide, lanes, False)
        else:
            ends: list[Value] | None = None
            if axes[lane] % self.width:
                ends = nest_tail(self, step, left, lane, points, start, term)
            if axes[lane] >= self.width:
                totals = nest(left, {}, self.block, totals, wide, self.width, False)
        if not (across_batch or inner) or self.width == 1:
            for point, total in zip(points, totals, strict=True):
                self.spill(out, axes, point, total)
            return
        width, at_end = self.width, out.shape and len(places.get(len(out.shape) - 1, ())) == self.width
        if at_end and step.reduce == "sum" and not (inner and axes[lane] < width):
            for first in range(0, len(points), width):
                made = to.sums([to.spread(total, width) for total in totals[first : first + width]])
                if inner and ends is not None:
                    made = combined(made, to.packed(ends[first : first + width]))
                self.spill(out, axes, points[first]._replace(lane=len(out.shape) - 1, lanes=width), made)
            return
        for number, (point, total) in enumerate(zip(points, totals, strict=True)):
            if not (inner and axes[lane] < width):
                total = to.spread(total, width)
                while total.lanes > 1:
                    total = combined(*to.halves(total))
            if inner and ends is not None:
                total = combined(total, ends[number])
            self.spill(out, axes, point, total)

    # -- Assemble -----------------------------------------------------------------------------------------------------

    def assemble(self, step: Assemble) -> None:
        """Zeros, and parts stored where they are the first to come, or added."""
        out = step.out
        touched, stored = np.zeros(out.size, bool), np.zeros(out.size, bool)
        adds = []
        for access, part in step.parts:
            shape = part.cell_shape
            if access.index is not None:
                touched[:] = True
                adds.append(True)
                continue
            own = access.strides[int(part.batched) :]
            cells = (access.table if access.table is not None else addresses(access.base, own, shape)).reshape(-1)
            new = len(np.unique(cells)) == len(cells) and not touched[cells].any()
            new = new and (out.batched or not part.batched)
            touched[cells] = True
            if new:
                stored[cells] = True
            adds.append(not new)
        empty = np.flatnonzero(~stored)
        self.unrolled = out.size <= self.to.unrolled
        for run in np.split(empty, np.flatnonzero(np.diff(empty) != 1) + 1) if len(empty) else ():
            first, zero = int(run[0]), self.to.number(0.0)

            def clear(places: dict[int, list[Place]], lanes: int, first: int = first, zero: Value = zero) -> None:
                self.leave(out, affine(first, [(places[0][0], 1)]), zero, self.block, lanes)

            self.over([0], {0: len(run)}, -1 if out.batched or self.unrolled else 0, {}, clear)
        for (access, part), add in zip(step.parts, adds, strict=True):
            self.unrolled = part.size <= self.to.unrolled
            if part.batched and not out.batched:
                self.to.each_example(lambda example, part=part, access=access: self.scatter(access, part, example))
            else:
                self.part(access, part, add)

    def part(self, access: Access, part: Array, add: bool) -> None:
        """One part of an array, lane by lane where each lane is another example."""
        axes, out = part.shape, access.array
        plain = [i for i, n in enumerate(axes) if n != BATCH]
        lane = -1
        if plain and not out.batched and not self.unrolled and self.width > 1 and access.table is None:
            last = plain[-1]
            if access.strides[last] == 1 and (access.index is None or not access.index.strides[last]):
                lane = last
        own = Access(part, 0, part.strides)

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            point = _points(places, self.block, lane, lanes)[0]
            value, index = self.read(own, axes, point), access.index
            cell = self.cell(access, axes, point)
            if index is not None and index.array.batched and self.width > 1:
                value = self.to.spread(value, self.width)
                for k in range(self.width):
                    memory, where = self.place(out, self.moved(cell, access, axes, point, k), self.block, 1)
                    where = affine(k, [(where, 1)])
                    self.to.read.add(id(out))
                    self.to.store(memory, where, self.to.arithmetic("add", self.to.load(memory, where, 1, True), self.to.lane(value, k)), id(out))
                self.forget(out)
                return
            if index is not None:
                cell = self.moved(cell, access, axes, point, 0)
            self.put(out, cell, value, lanes, add)

        self.over(plain, {i: axes[i] for i in plain}, lane, {}, put)

    def put(self, out: Array, cell: Place, value: Value, lanes: int, add: bool) -> None:
        """A value in a cell, or added to it."""
        if add:
            old = None if cell[1] or not self.unrolled else self.registers.get((id(out), cell[0], lanes))
            if old is None:
                memory, place = self.place(out, cell, self.block, lanes)
                self.to.read.add(id(out))
                old = self.to.load(memory, place, self.width if out.batched else lanes, True)
            value = self.to.arithmetic("add", old, value)
        self.forget(out, single=bool(cell[1]) or lanes > 1 or not self.unrolled)
        self.leave(out, cell, value, self.block, lanes)

    def forget(self, out: Array, single: bool = True) -> None:
        """An array changes: the vectors of its cells in registers hold no longer, and unless it is known where, no
        single one does.
        """
        gone = [key for key in self.registers if key[0] == id(out) and (single or key[2] > 1)]
        for key in gone:
            del self.registers[key]

    def scatter(self, access: Access, part: Array, example: tuple[Place, Place, Place]) -> None:
        """One example of a batched part, added to an array without a batch: one after another, as two may meet."""
        axes, out = part.shape, access.array
        whole, block, lane = example
        plain = [i for i, n in enumerate(axes) if n != BATCH]
        own = Access(part, 0, part.strides)

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            point = _points(places, whole, -1, 1)[0]
            memory, place = self.place(part, self.cell(own, axes, point), block, 1)
            self.to.read.add(id(part))
            value = self.to.load(memory, affine(0, [(place, 1), (lane, 1)]))
            cell = self.cell(access, axes, point)
            if access.index is not None:
                cell = self.moved(cell, access, axes, point, 0)
            memory, place = self.place(out, cell, None, 1)
            self.to.read.add(id(out))
            old = self.to.load(memory, place, 1, True)
            self.to.store(memory, place, self.to.arithmetic("add", old, value), id(out))

        self.forget(out)
        self.over(plain, {i: axes[i] for i in plain}, -1, {}, put)

    # -- what is given and what is left -------------------------------------------------------------------------------

    def pack(self, array: Array) -> None:
        """The examples of an input into lanes."""
        home = self.rows[id(array)]
        block: Any = self.block

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            values = []
            for k in range(self.width):
                where = affine(home.base, [(places[0][0], 1), (self.to.row(block, k), home.pitch)])
                value = self.to.load(home.memory, where)
                values.append(self.to.as_float(value) if home.memory.kind == "i" else value)
            self.leave(array, places[0][0], self.to.packed(values), self.block)

        self.unrolled = array.size <= self.to.unrolled
        self.over([0], {0: array.size}, -1, {}, put)

    def copy(self, array: Array | None, shape: Array, memory: Memory, base: int) -> None:
        """A result to where it is to be left."""
        block: Any = self.block

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            cell = places[0][0]
            value = self.to.number(0.0) if array is None else self.fetch(array, cell, block if array.batched else None, lanes)
            if not shape.batched:
                self.to.store(memory, affine(base, [(cell, 1)]), self.to.spread(value, lanes))
                return
            value = self.to.spread(value, self.width)
            for k in range(self.width):
                where = affine(base, [(cell, 1), (self.to.row(block, k), shape.size)])
                self.to.store(memory, where, self.to.lane(value, k))

        self.unrolled = shape.size <= self.to.unrolled
        self.over([0], {0: shape.size}, -1 if shape.batched or self.unrolled else 0, {}, put)


def nest_tail(
    self: Lowering, step: Compute, left: list[int], lane: int, points: list[Point], start: Value,
    term: Callable[[Value, Point, Value | None], Value],
) -> list[Value]:  # fmt: skip
    """What is left of an axis behind its last vector, number by number."""
    axes = step.axes

    def nest(left: list[int], known: dict[int, Place], totals: list[Value]) -> list[Value]:
        if not left:
            return [term(total, Point({**p.places, **known}, self.block), None) for total, p in zip(totals, points, strict=True)]
        low = axes[lane] // self.width * self.width if left[0] == lane else 0
        return self.loop(low, axes[left[0]], 1, lambda i, t: nest(left[1:], {**known, left[0]: i}, t), totals, 1)

    return nest(left, {}, [start] * len(points))


def _points(places: dict[int, list[Place]], block: Place | None, lane: int, lanes: int) -> list[Point]:
    """The points of a tile."""
    return [Point(dict(zip(places, chosen, strict=True)), block, lane, lanes) for chosen in product(*places.values())]
