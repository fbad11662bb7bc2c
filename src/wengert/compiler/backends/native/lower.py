"""Lowers a program and its reverse to loops over numbers, for all printers.

Batched steps run in loops over blocks of examples, one example to each lane; other steps are vectorized along an axis.
The last block repeats the last example in its unused lanes, and sums over the batch leave these out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from wengert.compiler.backends.native.access import points_of
from wengert.compiler.backends.native.compute import Computes
from wengert.compiler.backends.native.emitter import Memory, Place, Register, affine, at
from wengert.compiler.ir import BATCH, Access, Array, Assemble, Compute, Loop, LoopOutput, Slice, Step

__all__ = ["Copy", "Lowering", "arrays_made"]

LINES = 1500  # of a function: the time to generate code grows faster than its length
CARRIED = 16  # the most numbers of an output that stay in registers between iterations: most machines have 16
Copy = tuple[Array | None, int, Array, Memory, int]


def arrays_made(steps: Sequence[Step]) -> list[Array]:
    """Return the arrays that need memory: within a loop, those that are not its outputs."""
    arrays = []
    for step in steps:
        arrays += step.makes
        if isinstance(step, Loop):
            stored = {id(output.part) for output in step.outputs}
            arrays += [each.out for each in step.steps if id(each.out) not in stored]
    return arrays


class State(NamedTuple):
    """The carry of a loop in registers: the rows of an output that iterations read, the latest first."""

    output: LoopOutput
    size: int
    slices: list[tuple[Array, list[int]]]  # slices that iterations read, and the number of the carry in each cell


def split(states: Sequence[State], values: Sequence[Register]) -> Iterator[tuple[State, Sequence[Register]]]:
    start = 0
    for state in states:
        yield state, values[start : start + state.size]
        start += state.size


class Lowering(Computes):
    # -- the order of the work ----------------------------------------------------------------------------------------

    def run(self, steps: Sequence[Step], packs: Sequence[Array], copies: Sequence[Copy]) -> list[int]:
        """Write the functions, and return their numbers.

        Args:
            steps: what they compute.
            packs: inputs whose examples are moved into lanes.
            copies: the parts of results to be copied: each (None for zeros), its size, an array of the result's shape,
                and the memory.
        """
        first = len(self.to.functions)
        phases: list[list[Callable[[], None]]] = []  # alternately outside of blocks and in them
        phase_of: dict[int, int] = {}  # by the id of an array

        def enter(blocks: bool, reads: Sequence[Array], makes: Sequence[Array], action: Callable[[], None]) -> None:
            phase = max([phase_of.get(id(array), 0) for array in reads], default=0)
            phase += phase % 2 != blocks
            phases.extend([[] for _ in range(len(phases), phase + 1)])
            phases[phase].append(action)
            phase_of.update([(id(array), phase) for array in makes])

        for array in packs:
            enter(True, (), (array,), partial(self.pack, array))
        for step in steps:
            makes = step.makes
            enter(makes[0].batched, step.reads, makes, partial(self.step, step))
        for result, count, shape, memory, base in copies:
            asked = [] if result is None else [result]
            enter(shape.batched, asked, (), partial(self.copy, result, count, shape, memory, base))
        for number, actions in enumerate(phases):
            self.phase(actions, number % 2 == 1)
        return list(range(first, len(self.to.functions)))

    def phase(self, actions: list[Callable[[], None]], blocks: bool) -> None:
        waiting = actions[::-1]

        def some() -> None:
            self.registers.clear()
            while waiting and self.to.size < LINES:
                waiting.pop()()

        def iteration(block: Place, _: list[Register]) -> Sequence[Register]:
            self.block = block
            some()
            return ()

        while waiting:
            self.to.begin()
            if blocks:
                self.to.loop(0, self.to.examples, self.width, iteration)
            else:
                some()
            self.block: Place | None = None
            self.to.end()

    def step(self, step: Step) -> None:
        if isinstance(step, Loop):
            self.iterations(step)
        elif isinstance(step, Compute):
            self.compute(step)
        else:
            self.assemble(step)

    # -- Loop ---------------------------------------------------------------------------------------------------------

    def iterations(self, loop: Loop) -> None:
        """Write a loop. An array of an iteration is a row of the first output that stores it."""
        further: dict[int, list[tuple[Array, int]]] = {}
        for output in loop.outputs:
            part, out, initial = output
            first = loop.first_row(output) * part.size
            if id(part) in self.rows_of:
                further.setdefault(id(part), []).append((out, first))
            else:
                self.rows_of[id(part)] = Slice(out, first, part.size)
            start = loop.count * part.size if loop.backward else 0
            self.fill(out, at(start), initial, loop.initial_rows(output) * part.size)
        registers, iteration_before = self.registers, self.iteration
        states = self.states(loop)

        def iteration(number: Place, values: list[Register]) -> Sequence[Register]:
            self.at_iteration(affine(loop.count - 1, [(number, -1)]) if loop.backward else number, registers)
            for state, numbers in split(states, values):
                for piece, places in state.slices:
                    self.registers[id(piece)] = {1: {cell: numbers[place] for cell, place in enumerate(places)}}
            for step in loop.steps:
                self.step(step)
                for out, first in further.get(id(step.out), ()):
                    row = affine(first, [(self.iteration, step.out.size)])
                    self.fill(out, row, step.out, step.out.size)
            carry = list[Register]()
            for state, numbers in split(states, values):
                part = state.output.part
                row_values = [self.fetch(part, at(cell), self.block) for cell in range(part.size)]
                carry += [*row_values, *numbers][: state.size]
            return carry

        begin = [value for state in states for value in self.begin(loop, state)]
        end = self.to.loop(0, loop.count, 1, iteration, begin, 0 if states and states[0].output.out.batched else 1)
        self.at_iteration(iteration_before, registers)
        for state, numbers in split(states, end):
            out, size = state.output.out, state.output.part.size
            for place, number in enumerate(numbers):
                row = place // size if loop.backward else out.size // size - 1 - place // size
                self.registers.setdefault(id(out), {}).setdefault(1, {})[row * size + place % size] = number

    def states(self, loop: Loop) -> list[State]:
        """Return what a loop carries in registers: small outputs that later iterations read."""
        states: list[State] = []
        for output in loop.outputs:
            size, slices, far = output.part.size, list[tuple[Array, list[int]]](), 0
            for piece in loop.slices:
                seen = piece.slice
                if seen is None or seen.array is not output.out:
                    continue
                places = []
                for cell in range(seen.base, seen.base + piece.size):
                    row = cell // size - loop.first_row(output)  # relative to the iteration
                    places.append((abs(row) - 1) * size + cell % size)
                slices.append((piece, places))
                far = max(far, -(-(max(places) + 1) // size))
            if 0 < far * size <= CARRIED and size <= self.to.unrolled:
                states.append(State(output, far * size, slices))
        return [state for state in states if state.output.out.batched == states[0].output.out.batched]

    def begin(self, loop: Loop, state: State) -> list[Register]:
        output, size = state.output, state.output.part.size
        initial, values = output.initial, list[Register]()
        for place in range(state.size):
            back, cell = divmod(place, size)
            row = back if loop.backward else loop.initial_rows(output) - 1 - back
            block = self.block if initial is not None and initial.batched else None
            values.append(self.to.number(0.0) if initial is None else self.fetch(initial, at(row * size + cell), block))
        return values

    def fill(self, out: Array, start: Place, source: Array | None, count: int) -> None:
        """Fill cells of an array, from a place on, with those of another, or zeros."""

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            cell = places[0][0]
            block = self.block if source is not None and source.batched else None
            value = self.to.number(0.0) if source is None else self.fetch(source, cell, block, lanes)
            self.store(out, affine(0, [(start, 1), (cell, 1)]), value, self.block, lanes)

        if count:
            self.unroll(count)
            self.over([0], {0: count}, -1 if out.batched or self.unrolled else 0, {}, put)

    # -- Assemble -----------------------------------------------------------------------------------------------------

    def assemble(self, step: Assemble) -> None:
        """Store zeros, and each part: stored if it is the first at its cells, else added."""
        out = step.out
        if self.in_registers(step):
            return
        touched, empty, adds = set[int](), set(range(out.size)), []
        for access, part in step.parts:
            cells = set(access.cells(part.shape)) if access.index is None else empty | touched
            new = access.index is None and len(cells) == part.size and touched.isdisjoint(cells)
            new = new and (out.batched or not part.batched)
            touched |= cells
            if new:
                empty -= cells
            adds.append(not new)
        self.unroll(out.size)
        runs = [[*run] for _, run in groupby(enumerate(sorted(empty)), lambda pair: pair[1] - pair[0])]
        for run in runs if len(runs) <= len(step.parts) + 1 else [[*enumerate(range(out.size))]]:
            self.fill(out, at(run[0][1]), None, len(run))
        for (access, part), add in zip(step.parts, adds, strict=True):
            self.unroll(part.size)
            if part.batched and not out.batched:
                self.to.each_example(partial(self.scatter, access, part))
            else:
                self.part(access, part, add)

    def in_registers(self, step: Assemble) -> bool:
        """Put small parts together in registers, and return True if they are small."""
        out, count = step.out, 0
        for access, part in step.parts:
            if access.index is not None or part.size > self.to.unrolled or part.batched > out.batched:
                return False
            count += part.size
        if out.size > max(self.to.unrolled, 2 * count):
            return False
        values: dict[int, Register] = {}
        zero = self.to.number(0.0)
        for access, part in step.parts:
            cells = access.cells(part.shape)
            is_new = values.keys().isdisjoint(cells) and len({*cells}) == len(cells)
            for number, cell in enumerate(cells):
                value = self.fetch(part, at(number), self.block)
                values[cell] = value if is_new else self.to.arithmetic("add", values.get(cell, zero), value)
        for cell in range(out.size):
            self.store(out, at(cell), values.get(cell, zero), self.block)
        return True

    def part(self, access: Access, part: Array, add: bool) -> None:
        """Store or add a part, lane by lane if each lane chooses its own cells."""
        axes, out = part.shape, access.array
        plain = [i for i, n in enumerate(axes) if n != BATCH]
        lane = -1
        if plain and not out.batched and not self.unrolled and self.width > 1 and access.table is None:
            last = plain[-1]
            if access.strides[last] == 1 and (access.index is None or not access.index.strides[last]):
                lane = last
        own = Access(part, 0, part.strides)

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            point = points_of(places, self.block, lane, lanes)[0]
            value, index = self.read(own, axes, point), access.index
            cell = self.cell(access, axes, point)
            if index is not None and index.array.batched and self.width > 1:
                value = self.to.spread(value, self.width)
                for k in range(self.width):
                    memory, where = self.place(out, self.moved(cell, access, axes, point, k), self.block, 1)
                    where = affine(k, [(where, 1)])
                    self.to.store(
                        memory,
                        where,
                        self.to.arithmetic("add", self.to.load(memory, where, 1, True), self.to.lane(value, k)),
                        self.tag(out),
                    )
                self.forget(out)
                return
            if index is not None:
                cell = self.moved(cell, access, axes, point, 0)
            self.put(out, cell, value, lanes, add)

        self.over(plain, {i: axes[i] for i in plain}, lane, {}, put)

    def put(self, out: Array, cell: Place, value: Register, lanes: int, add: bool) -> None:
        if add:
            old = None if cell[1] or not self.unrolled else self.held(out, cell[0], lanes)
            if old is None:
                memory, place = self.place(out, cell, self.block, lanes)
                old = self.to.load(memory, place, self.width if out.batched else lanes, True)
            value = self.to.arithmetic("add", old, value)
        self.forget(out, single=bool(cell[1]) or lanes > 1 or not self.unrolled)
        self.store(out, cell, value, self.block, lanes)

    def scatter(self, access: Access, part: Array, example: tuple[Place, Place, Place]) -> None:
        """Add one example of a batched part to an unbatched array; one at a time, as two may add to the same cell."""
        axes, out = part.shape, access.array
        whole, block, lane = example
        plain = [i for i, n in enumerate(axes) if n != BATCH]
        own = Access(part, 0, part.strides)

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            point = points_of(places, whole, -1, 1)[0]
            memory, place = self.place(part, self.cell(own, axes, point), block, 1)
            value = self.to.load(memory, affine(0, [(place, 1), (lane, 1)]))
            cell = self.cell(access, axes, point)
            if access.index is not None:
                cell = self.moved(cell, access, axes, point, 0)
            memory, place = self.place(out, cell, None, 1)
            old = self.to.load(memory, place, 1, True)
            self.to.store(memory, place, self.to.arithmetic("add", old, value), self.tag(out))

        self.forget(out)
        self.over(plain, {i: axes[i] for i in plain}, -1, {}, put)

    # -- arguments and results ----------------------------------------------------------------------------------------

    def pack(self, array: Array) -> None:
        """Move the examples of an input into lanes, as many cells at a time as there are lanes."""
        home = self.rows[id(array)]
        block = self.block or at(0)

        def lanes_from(cell: Place, count: int) -> list[Register]:
            """Load so many cells of each lane's example."""
            values = []
            for k in range(self.width):
                where = affine(home.base, [(cell, 1), (self.to.row(block, k), home.pitch)])
                value = self.to.load(home.memory, where, count)
                values.append(self.to.as_float(value) if home.memory.kind == "i" else value)
            return values

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            cells = places[0]
            if len(cells) == self.width:
                values = self.to.transposed(lanes_from(cells[0], self.width))
            else:
                values = [self.to.packed(lanes_from(cell, 1)) for cell in cells]
            for cell, value in zip(cells, values, strict=True):
                self.store(array, cell, value, self.block)

        self.unroll(array.size)
        self.over([0], {0: array.size}, -1, {0: self.width}, put)

    def copy(self, array: Array | None, count: int, shape: Array, memory: Memory, base: int) -> None:
        """Copy a part of a result to the caller's memory: of a batch as many cells at a time as there are lanes."""
        block = self.block or at(0)

        def value(cell: Place, lanes: int) -> Register:
            if array is None:
                return self.to.number(0.0)
            return self.fetch(array, cell, block if array.batched else None, lanes)

        def put(places: dict[int, list[Place]], lanes: int) -> None:
            cells = places[0]
            if not shape.batched:
                self.to.store(memory, affine(base, [(cells[0], 1)]), self.to.spread(value(cells[0], lanes), lanes))
                return
            if len(cells) == self.width and (array is None or not array.batched):
                rows: Sequence[Register] = [self.to.spread(value(cells[0], self.width), self.width)] * self.width
            else:
                values = [self.to.spread(value(cell, lanes), self.width) for cell in cells]
                rows = self.to.transposed(values) if len(cells) == self.width else ()
            for k in range(self.width):
                row = self.to.row(block, k)
                if rows:
                    self.to.store(memory, affine(base, [(cells[0], 1), (row, shape.size)]), rows[k])
                for cell, x in zip(cells, values, strict=True) if not rows else ():
                    self.to.store(memory, affine(base, [(cell, 1), (row, shape.size)]), self.to.lane(x, k))

        self.unroll(count)
        tiles = {0: self.width} if shape.batched else {}
        self.over([0], {0: count}, -1 if shape.batched or self.unrolled else 0, tiles, put)
