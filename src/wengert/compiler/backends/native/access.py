"""Reads and writes cells of arrays: addresses, lanes, and values that are still in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

from wengert.compiler.backends.native.emitter import Body, Emitter, Memory, Place, Register, affine, at
from wengert.compiler.ir import BATCH, Access, Array, Slice, contiguous

__all__ = ["Cells", "Location", "Point", "points_of"]


class Location(NamedTuple):
    """The memory of an array: ``memory[base + pitch * example + step * cell]``, for the first example of a block."""

    memory: Memory
    base: int
    pitch: int = 0
    step: int = 1


class Point(NamedTuple):
    """A point in a step's axes, or one for each lane from there on."""

    places: dict[int, Place]
    block: Place | None = None  # the first example
    lane: int = -1  # the vectorized axis
    lanes: int = 1

    def shifted(self, by: int) -> Point:
        moved = affine(by, [(self.places[self.lane], 1)])
        return Point({**self.places, self.lane: moved}, self.block)


def points_of(places: dict[int, list[Place]], block: Place | None, lane: int, lanes: int) -> list[Point]:
    return [Point(dict(zip(places, chosen, strict=True)), block, lane, lanes) for chosen in product(*places.values())]


class Cells:
    """The arrays of one function.

    Args:
        to: the printer.
        storage: the location of each array, by its id.
        rows: the location of each array of integers or batched input as the caller passed it, by its id.
        seed: the array that the argument `seed` holds, unless it is in `storage`.
    """

    def __init__(
        self, to: Emitter, storage: dict[int, Location], rows: dict[int, Location], seed: Array | None
    ) -> None:
        self.to = to
        self.width: int = to.width
        self.storage = storage
        self.rows = rows
        self.seed = seed
        self.registers: dict[int, dict[int, dict[int, Register]]] = {}  # by array, lanes and cell
        self.block: Place | None = None
        self.iteration: Place = at(0)
        self.rows_of: dict[int, Slice] = {}  # by the id of an array of an iteration: its row of a loop's output
        self.unrolled: bool = False

    def at_iteration(self, iteration: Place, registers: dict[int, dict[int, dict[int, Register]]]) -> None:
        """Continue in an iteration of a loop, or after the loop, with these values in registers."""
        self.iteration = iteration
        self.registers = {
            array: {lanes: dict(cells) for lanes, cells in cells_held.items()}
            for array, cells_held in registers.items()
        }

    def unroll(self, points: int) -> None:
        self.unrolled = points <= self.to.unrolled

    # -- loops --------------------------------------------------------------------------------------------------------

    def loop(
        self, low: int, high: int, step: int, body: Body, carried: Sequence[Register] = (), lanes: int = 0
    ) -> list[Register]:
        if not self.unrolled:
            return list(self.to.loop(low, high, step, body, carried, lanes))
        values = list(carried)
        for iteration in range(low, high, step):
            values = list(body(at(iteration), values))
        return values

    def over(
        self, left: list[int], lengths: dict[int, int], lane: int, tiles: dict[int, int],
        body: Callable[[dict[int, list[Place]], int], None],
        places: dict[int, list[Place]] | None = None, lanes: int = 1,
    ) -> None:  # fmt: skip
        """Write loops over some axes: `lane` in vectors, narrower ones for its remainder, and some axes in tiles."""
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

                def iteration(i: Place, _: Any, size: int = size) -> Sequence[Register]:
                    own = [i] if at_lane else [affine(k, [(i, 1)]) for k in range(size)]
                    self.over(left[1:], lengths, lane, tiles, body, {**places, axis: own}, size if at_lane else lanes)
                    return ()

                self.loop(start, end, size, iteration)
                start = end
            size = size // 2 if at_lane else length - start

    # -- cells ---------------------------------------------------------------------------------------------------------

    def seen(self, array: Array) -> Slice | None:
        """Return the slice of another array that an array of an iteration is, if any."""
        return array.slice or self.rows_of.get(id(array))

    def tag(self, array: Array) -> int:
        seen = self.seen(array)
        return id(array if seen is None else seen.array)

    def place(
        self, array: Array, cell: Place, block: Place | None, lanes: int, read: bool = True
    ) -> tuple[Memory, Place]:
        """Return the memory and the place of a cell, and note whether it is read."""
        seen = self.seen(array)
        if seen is not None:
            array, cell = seen.array, affine(seen.base, [(cell, 1), (self.iteration, seen.step)])
        if read:
            self.to.read.add(id(array))
        memory, base, pitch, step = self.storage[id(array)]
        cell = self.to.checked(cell, lanes, array.size)
        if array.batched and block is not None:
            return memory, affine(base, [(cell, step), (block, pitch)])
        return memory, affine(base, [(cell, step)]) if cell[1] else at(base + step * cell[0])

    def held(self, array: Array, cell: int, lanes: int) -> Register | None:
        """Return the value of a cell, or of `lanes` cells from there on, if it is in a register."""
        by_lanes = self.registers.get(id(array))
        cells = by_lanes and by_lanes.get(lanes)
        return cells.get(cell) if cells else None

    def fetch(self, array: Array, cell: Place, block: Place | None, lanes: int = 1) -> Register:
        """Read a cell of an array in all lanes: consecutive cells or, if it is batched, consecutive examples."""
        if array is self.seed and id(array) not in self.storage:
            return self.to.seed
        if not cell[1]:
            register = self.held(array, cell[0], lanes)
            if register is not None:
                return register
        memory, place = self.place(array, cell, block, lanes)
        value = self.to.load(memory, place, self.width if array.batched else lanes)
        return self.to.as_float(value) if memory.kind == "i" else value

    def store(self, array: Array, cell: Place, value: Register, block: Place | None, lanes: int = 1) -> None:
        """Store a value in a cell, or its lanes in consecutive cells."""
        if not cell[1]:
            value = self.to.shared(value)
            self.registers.setdefault(id(array), {}).setdefault(lanes, {})[cell[0]] = value
        memory, place = self.place(array, cell, block, lanes, read=False)
        lanes = self.width if array.batched else lanes
        self.to.store(memory, place, value if value.lanes == lanes else self.to.spread(value, lanes), self.tag(array))

    def cell(self, access: Access, axes: Sequence[int], point: Point) -> Place:
        """Return the cell that an access reads at a point, without its index's part."""
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        table = access.table
        if table is None:
            return affine(access.base, [(point.places[i], access.strides[i]) for i in plain])
        if all(not point.places[i][1] for i in plain):
            return at(int(table[tuple([point.places[i][0] for i in plain])]))
        where = affine(0, list(zip([point.places[i] for i in plain], contiguous(table.shape), strict=True)))
        return self.to.offset(self.to.load(self.to.constant(table), where))

    def read(self, access: Access, axes: Sequence[int], point: Point) -> Register:
        """Read an operand at a point, as one number if it is the same in all lanes."""
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
            values.append(self.to.load(memory, affine(k if access.array.batched else 0, [(place, 1)])))
        return self.to.packed(values)

    def moved(self, cell: Place, access: Access, axes: Sequence[int], point: Point, lane: int) -> Place:
        """Return a cell plus the index's part for the example in a lane."""
        index = access.index
        assert index is not None
        array, seen = index.array, index.array.slice
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        where = affine(index.base, [(point.places[i], index.strides[i]) for i in plain])
        if seen is not None:
            array, where = seen.array, affine(seen.base, [(where, 1), (self.iteration, seen.step)])
        home = self.rows[id(array)]
        where = self.to.checked(where, 1, array.size)
        if array.batched:
            assert point.block is not None
            where = affine(0, [(where, 1), (self.to.row(point.block, lane), home.pitch)])
        chosen = self.to.load(home.memory, affine(home.base, [(where, 1)]))
        return affine(0, [(cell, 1), (self.to.offset(chosen), index.step)])

    def mask(self, values: Any, axes: Sequence[int], point: Point) -> Register | bool:
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        places = [point.places[i] for i in plain[: values.ndim]]
        along = plain.index(point.lane) if point.lane in plain[: values.ndim] else -1
        if along >= 0 and values.shape[along] == 1:
            along = -1
        if along < 0 and all(not number[1] for number in places):
            return bool(values[tuple([0 if n == 1 else p[0] for p, n in zip(places, values.shape, strict=True)])])
        steps = [0 if n == 1 else s for s, n in zip(contiguous(values.shape), values.shape, strict=True)]
        memory = self.to.constant(values)

        def number(shift: int, lanes: int) -> Register:
            moved = [affine(shift if k == along else 0, [(place, 1)]) for k, place in enumerate(places)]
            return self.to.load(memory, affine(0, list(zip(moved, steps, strict=True))), lanes)

        if along >= 0 and steps[along] != 1:
            values_read = self.to.packed([number(k, 1) for k in range(point.lanes)])
        else:
            values_read = number(0, point.lanes if along >= 0 else 1)
        return self.to.compare("ne", values_read, self.to.number(0.0))

    def spill(self, out: Array, point: Point, value: Register) -> None:
        rank = len(out.shape)
        access = Access(out, 0, out.strides)
        places = {i: place for i, place in point.places.items() if i < rank}
        if point.lane < 0 or point.lane >= rank or out.strides[point.lane] == 1:
            self.store(out, self.cell(access, out.shape, Point(places)), value, self.block, point.lanes)
            return
        value = self.to.spread(value, point.lanes)
        for k in range(point.lanes):
            self.store(out, self.cell(access, out.shape, point.shifted(k)), self.to.lane(value, k), self.block)

    def forget(self, out: Array, single: bool = True) -> None:
        """Drop the cells of a changed array from registers; with ``single=False`` keep single numbers."""
        cells_held = self.registers.pop(id(out), {})
        if not single and 1 in cells_held:
            self.registers[id(out)] = {1: cells_held[1]}
