"""Turns a recurrence into a Loop: lifts one iteration by itself, and gives arrays of all iterations an axis."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from wengert.compiler.ir import (
    BATCH,
    Access,
    Array,
    Assemble,
    Compute,
    Loop,
    LoopOutput,
    Slice,
    contiguous,
    distinct,
    fuse,
    without_broadcast,
)
from wengert.compiler.lift.flatten import FlatGraph, Group, Groups
from wengert.compiler.lift.lifter import Lifter
from wengert.compiler.lift.loops.periods import Recurrence
from wengert.compiler.lift.shorten import Whole
from wengert.compiler.lift.simplify import CONST, INPUT, PARAM, VALUE, VARYING

__all__ = ["LoopLifter"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


class _Straight(Exception):  # noqa: N818  (no error)
    """A recurrence cannot become a loop: it is lifted iteration by iteration."""


class LoopLifter:
    def __init__(self, outer: Lifter, run: Recurrence) -> None:
        self.outer = outer
        self.run = run
        self.iteration: _Iteration = _Iteration(outer, run)

    def plan(self) -> None:
        self.iteration.plan(self.iteration.flat.groups)

    def make(self) -> None:
        """Add the loop, or its iterations one by one if it cannot be one."""
        outer, count = self.outer, len(self.outer.program.steps)
        try:
            self.loop()
        except _Straight:
            if self.run.rows[-1] >= self.run.iterations:
                raise Whole from None
            del outer.program.steps[count:]
            groups = outer.flat.groups[self.run.first : self.run.last]
            outer.plan(groups)
            for group in groups:
                outer.make(group)

    def loop(self) -> None:
        run, iteration, outer = self.run, self.iteration, self.outer
        iteration.place_all()
        carried = iteration.carry()
        for group in iteration.flat.groups:
            iteration.make(group)
        for piece, group in carried:
            iteration.lay_out(group, piece)
        program = iteration.program
        stored = [iteration.number[id(step.out)] for step in program.each_step()]
        stored = [place for place in stored if (iteration.place[: run.size] == place).any()]
        parts = [program.arrays[place] for place in stored]
        outer.program.padded |= program.padded
        outputs: list[LoopOutput] = []
        node_ids, count = run.node_ids, int(run.rows[-1]) + 1
        for place, part in zip(stored, parts, strict=True):
            members = np.flatnonzero(iteration.place[: run.size] == place)
            back = max((lag for q, lag in run.carried if iteration.place[q] == place), default=0)
            initial = self.initial(part, members, back)
            shape = (*part.shape[: int(part.batched)], back + count, *part.cell_shape)
            out = outer.add_array(Array(f"{part.name}s", shape, "value", nonnegative=part.nonnegative and not back))
            outputs.append(LoopOutput(part, out, initial))
            rows = (back + run.rows)[:, None] * part.size
            outer.assign(node_ids[:, members], out, rows + iteration.cell[members])
        program.outputs = {str(n): part for n, part in enumerate(parts)}
        fuse(program)
        iteration.read_through_slices({place: entry.out for place, entry in zip(stored, outputs, strict=True)})
        for array in program.of_role("const"):
            outer.add_array(array)
        outer.program.steps += self.by_batch(Loop(count, program.each_step(), outputs))

    def by_batch(self, loop: Loop) -> list[Loop]:
        """Move the steps without a batch to a loop of their own, in front."""
        alone = {id(step.out): step.out for step in loop.steps if not step.out.batched}
        if len(alone) in (0, len(loop.steps)):
            return [loop]
        first = Loop(loop.count, [step for step in loop.steps if id(step.out) in alone], [])
        first.outputs = [output for output in loop.outputs if id(output.part) in alone]
        loop.steps = [step for step in loop.steps if id(step.out) not in alone]
        loop.outputs = [output for output in loop.outputs if id(output.part) not in alone]
        rows = {id(output.part): output for output in first.outputs}
        seen: dict[int, Array] = {}

        def piece(array: Array) -> Array:
            if id(array) not in alone:
                return array
            if id(array) not in rows:
                rows[id(array)] = LoopOutput(
                    array, self.outer.add_array(Array(f"{array.name}s", (loop.count, *array.shape), "value"))
                )
                first.outputs.append(rows[id(array)])
            if id(array) not in seen:
                output = rows[id(array)]
                start = first.first_row(output) * array.size
                seen[id(array)] = replace(array, role="slice", slice=Slice(output.out, start, array.size))
            return seen[id(array)]

        for step in loop.steps:
            if isinstance(step, Compute):
                for access in step.operands:
                    access.array = piece(access.array)
            else:
                step.parts = [(access, piece(part)) for access, part in step.parts]
        return [first, loop]

    def initial(self, part: Array, members: Ints, back: int) -> Array | None:
        """Return the array of the `back` rows before the first iteration; None for zeros."""
        run, outer, flat = self.run, self.outer, self.outer.flat
        if not back:
            return None
        nodes = {key: node for key, node in run.initial.items() if key[0] in set(members.tolist())}
        ids = np.full((back, part.size), next(iter(nodes.values())))
        for (q, lag), node in nodes.items():
            ids[back - lag, self.iteration.cell[q]] = node
        if (flat.source[ids] == CONST).all() and not flat.constants[ids - flat.n].any():
            return None
        shape = (back, *part.cell_shape)
        operand = outer.operand(ids.reshape(shape))
        if isinstance(operand, Access) and operand.array.batched == part.batched and operand.array.size == ids.size:
            in_order = [stride if n > 1 else 0 for stride, n in zip(contiguous(shape), shape, strict=True)]
            if operand.table is None and operand.base == 0 and list(operand.strides) == in_order:
                return operand.array
        return outer.compute("c", shape, [operand], lambda x: x)


def _flat_iteration(flat: FlatGraph, run: Recurrence) -> FlatGraph:
    """Return one iteration as a flat graph: its numbers, then what it reads of earlier iterations and from outside."""
    size, listing = run.size, run.listing
    low = int(listing.begin[run.first])
    of_iteration = listing.nodes[low : low + size]
    count = size + len(run.carried) + run.columns.shape[1] + run.scales.shape[1]
    columns = flat.source[run.columns]
    source = np.full(count, VALUE)
    source[:size] = flat.source[of_iteration]
    source[size : size + len(run.carried)] = flat.source[of_iteration[[q for q, _ in run.carried]]]
    outside = np.where(((columns == VARYING) | (columns == INPUT)).any(0), VARYING, VALUE)
    outside[(columns == PARAM).all(0)] = PARAM
    fixed = (columns[0] == CONST) & (run.columns == run.columns[0]).all(0)
    source[size + len(run.carried) : size + len(run.carried) + len(outside)] = outside
    numbers = np.flatnonzero(fixed)
    names = np.arange(count + 1)  # a constant that is equal in all iterations is a constant of the iteration
    names[size + len(run.carried) + numbers] = count + np.arange(len(numbers))
    constants = flat.constants[run.columns[0, numbers] - flat.n] if len(numbers) else np.zeros(0)
    start = listing.start[low : low + size + 1] - listing.start[low]
    left, right = [np.where(side < 0, -1, names[side]) for side in run.names]
    starts = np.concatenate([start, np.full(count - size, start[-1])])
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    first[:size], last[:size] = start[:-1], start[1:]
    begin = listing.begin[run.first : run.first + run.period + 1]
    groups = Groups(np.arange(size), begin - low, listing.code[run.first : run.first + run.period])
    source = np.concatenate([source, np.full(len(constants), CONST)])
    places = np.arange(count)
    return FlatGraph(count, constants, source, first, last, left, right, run.scale, left, starts, groups, places)


class _Iteration(Lifter):
    """One iteration. It reads arrays from outside, and rows of earlier iterations, through slices."""

    def __init__(self, outer: Lifter, run: Recurrence) -> None:
        super().__init__(
            _flat_iteration(outer.flat, run), outer.batched, counts=outer.counts, given=outer.given, in_loop=True
        )
        self.outer = outer
        self.run = run
        self.leaf: int = run.size + len(run.carried)  # the first number from outside
        self.groups: dict[int, Group] = {}  # by the id of a slice: the carried group that it shows

    # -- reads from outside -------------------------------------------------------------------------------------------

    def columns(self, node_ids: Ints) -> Ints:
        """Return the number outside that each leaf is in each iteration."""
        return self.run.columns[:, node_ids - self.leaf]

    def allocate(self, stem: str, node_ids: Ints) -> bool:
        """Store parameters in arrays of their own; those that differ between iterations get an axis of iterations."""
        if not node_ids.size or not self.is_loose(node_ids).all():
            return False
        node_ids, _ = without_broadcast(node_ids)
        columns = self.columns(node_ids)
        same = (columns == columns[0]).reshape(len(columns), -1).all(0)
        allocated = same.all() and self.outer.allocate(stem, columns[0])
        allocated = allocated or (not same.any() and self.outer.allocate(stem, columns))
        if allocated or stem == "p":
            self.put(node_ids.reshape(-1))
        return bool(allocated) or stem == "p"

    def place_all(self) -> None:
        """Place all leaves from outside, except for parameters that `allocate` is still to place."""
        leaves = np.arange(self.leaf, self.flat.n)
        numbers = leaves >= self.leaf + self.run.columns.shape[1]  # coefficients
        if numbers.any():
            self.put_numbers(leaves[numbers], self.run.scales)
        leaves = leaves[~numbers]
        columns = self.columns(leaves)
        is_const = (self.outer.flat.source[columns] == CONST).all(0)
        changing = is_const & (columns != columns[0]).any(0)
        if changing.any():
            self.put_numbers(leaves[changing], self.outer.flat.constants[columns[:, changing] - self.outer.flat.n])
        self.put(leaves[~is_const & (self.flat.source[leaves] != PARAM)])

    def put_numbers(self, leaves: Ints, values: Any) -> None:
        array = self.outer.array("k", values.shape if values.shape[1] > 1 else values.shape[:1], "const")
        array.value = np.ascontiguousarray(values).reshape(array.shape)
        self.show(leaves, array, np.arange(len(leaves)), len(leaves))

    def put(self, leaves: Ints) -> None:
        """Place leaves in an array outside, if their cells are fixed or move evenly, else in a new stacked array."""
        leaves = leaves[self.place[leaves] < 0]
        if not len(leaves):
            return
        outer, columns = self.outer, self.columns(leaves)
        outer.allocate("p", np.unique(columns[outer.is_loose(columns)]))
        places, cells = outer.place[columns], outer.cell[columns]
        steps = np.diff(cells, axis=0)
        even = (places[0] >= 0) & (places == places[0]).all(0) & (steps == steps[0]).all(0)
        where = np.stack([places[0], steps[0]], 1)[even]
        kinds, number = distinct(where) if len(where) else (where, where)
        for n, kind in enumerate(kinds):
            place, step = where[kind].tolist()
            members = np.flatnonzero(even)[number == n]
            self.show(leaves[members], outer.program.arrays[place], cells[0, members], step)
        if not even.all():
            ids = columns[:, ~even]
            indices = [place for place, array in enumerate(outer.program.arrays) if array.role == "index"]
            if np.isin(outer.place[ids], indices).any():
                raise _Straight
            stacked = outer.compute("c", ids.shape, [outer.operand(ids)], lambda x: x)
            if stacked.size != ids.size:
                raise _Straight
            self.show(leaves[~even], stacked, np.arange(ids.shape[1]), ids.shape[1])

    def show(self, leaves: Ints, array: Array, cells: Ints, step: int) -> None:
        """Place leaves at cells of an array outside that move by `step` in each iteration."""
        if not step:
            if id(array) not in self.number:
                self.add_array(array)
            self.assign(leaves, array, cells)
            return
        row = abs(step) if _is_row(array, step) else 1
        low, high = int(cells.min()) // row * row, (int(cells.max()) // row + 1) * row
        lead = array.shape[: int(array.batched)]
        shape = array.cell_shape[1:] if _is_row(array, step) and high - low == row else (high - low,) * (high - low > 1)
        piece = self.array(f"{array.name}_t", (*lead, *shape), "slice")
        piece.slice = Slice(array, low, step)
        self.assign(leaves, piece, cells - low)

    # -- carries ------------------------------------------------------------------------------------------------------

    def carry(self) -> list[tuple[Array, Group]]:
        """Place the leaves of earlier iterations: each group is a slice of rows, one for each iteration."""
        run, groups, carried = self.run, self.groups, []
        for group in self.flat.groups:
            lags = [lag for q, lag in run.carried if group.nodes[0] <= q <= group.nodes[-1]]
            if not lags:
                continue
            width, rows = len(group.nodes), max(lags) - min(lags) + 1
            leaves = [n for n, (q, _) in enumerate(run.carried) if group.nodes[0] <= q <= group.nodes[-1]]
            batch = (BATCH,) if self.batched and self.flat.source[group.nodes[0]] == VARYING else ()
            piece = self.array("w", (*batch, *[n for n in (rows, width) if n > 1]), "slice")
            piece.slice = Slice(piece, -max(lags) * width, width)  # its array and base are set at the end
            for leaf in leaves:
                q, lag = run.carried[leaf]
                at = (max(lags) - lag) * width + q - int(group.nodes[0])
                self.assign(np.array([run.size + leaf]), piece, np.array([at]))
            groups[id(piece)] = group
            carried.append((piece, group))
        return carried

    def lay_out(self, group: Group, piece: Array) -> None:
        """Store the numbers of a group one behind another, as later iterations read them."""
        places, cells = self.place[group.nodes], self.cell[group.nodes]
        array = self.program.arrays[int(places[0])]
        as_listed = (places == places[0]).all() and np.array_equal(cells, np.arange(len(cells)))
        if not as_listed or array.size != len(cells):
            out = self.compute("u", (len(cells),), [self.operand(group.nodes)], lambda x: x)
            self.assign(group.nodes, out, np.arange(len(cells)))
            array = out
        if array.batched != piece.batched:
            raise _Straight

    # -- slices -------------------------------------------------------------------------------------------------------

    def read_through_slices(self, outs: dict[int, Array]) -> None:
        """Narrow the slice of each operand to the rows that it reads."""
        slices: dict[tuple[int, int, int, tuple[int, ...]], Array] = {}

        def seen(array: Array, low: int, high: int) -> tuple[Array, int]:
            piece = array.slice
            assert piece is not None
            of, base = piece.array, piece.base
            if id(array) in self.groups:
                of = outs[int(self.place[self.groups[id(array)].nodes[0]])]
                base += (of.cell_shape[0] - int(self.run.rows[-1]) - 1) * piece.step
            row = abs(piece.step) if _is_row(of, piece.step) else 1
            start, end = (base + low) // row * row, ((base + high) // row + 1) * row
            shape: tuple[int, ...] = of.cell_shape[1:] if _is_row(of, piece.step) else ()
            if end - start > row:
                shape = ((end - start) // row, *shape)
            key = id(of), start, piece.step, shape
            if key not in slices:
                slices[key] = self.array("w", (*of.shape[: int(of.batched)], *shape), "slice")
                slices[key].slice = Slice(of, start, piece.step)
                slices[key].nonnegative = of.nonnegative
            return slices[key], start - base

        for step in self.program.steps:
            if isinstance(step, Compute):
                for x in step.operands:
                    if x.array.slice is None:
                        continue
                    x.array, first = seen(x.array, *x.reach(step.axes))
                    x.base -= first
                    x.table = None if x.table is None else x.table - first
            elif isinstance(step, Assemble):
                for n, (access, part) in enumerate(step.parts):
                    if part.slice is None:
                        continue
                    piece, first = seen(part, 0, part.size - 1)
                    if first or piece.size != part.size:
                        raise _Straight
                    step.parts[n] = Access(step.out, access.base, piece.strides), piece


def _is_row(array: Array, step: int) -> bool:
    return len(array.cell_shape) > 0 and abs(step) == prod(array.cell_shape[1:])
