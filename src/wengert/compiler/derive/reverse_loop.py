"""The reverse sweep of a Loop: again a Loop, which runs the other way round, and what is computed behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.compiler.derive.sweep import Sweep, covers
from wengert.compiler.ir import (
    BATCH,
    Access,
    Array,
    Assemble,
    Compute,
    Loop,
    LoopOutput,
    ProgramError,
    Slice,
    Step,
    contiguous,
    cotangents,
    fuse,
    rewrite,
    whole,
)

__all__ = ["ReverseLoop"]


class ReverseLoop(Sweep):
    """The reverse sweep of a loop: a loop in the other direction, in which each iteration passes cotangents to the
    iterations before it. What all iterations contribute to arrays outside is computed after it, at once.
    """

    def __init__(self, outer: Sweep, loop: Loop) -> None:
        shared = {name: getattr(outer, name) for name in ("constant", "needed", "names", "part_of")}
        super().__init__(outer.forward, outer.wanted, **shared)
        self.outer = outer
        self.loop = loop
        self.reached: set[int] = set()
        self.made: dict[int, Array] = {id(step.out): step.out for step in loop.steps}
        self.by_out: dict[int, LoopOutput] = {id(output.out): output for output in loop.outputs}
        self.output_of: dict[int, LoopOutput] = {id(output.part): output for output in loop.outputs}
        self.loop_back: Loop = Loop(loop.count, [], [], backward=True)
        # By the id of an array of an iteration: the slice on the row of its output.
        self.rows: dict[int, Array] = {}
        self.over_iterations: dict[int, Array] = {}
        self.stood_for: dict[int, Array] = {}
        self.then: list[Step] = []  # what is done when the sweep's loop is done

    def run(self) -> None:
        """Write it."""
        outer, loop = self.outer, self.loop
        seen_before = [output for output in loop.outputs if self.is_seen_before(output)]
        given = [output for output in loop.outputs if id(output.out) in self.needed and id(output.out) in outer.parts]
        self.reached = self.reaches({id(output.part) for output in given})
        carried = [piece for piece in loop.slices if self.asks(piece)]
        begins = {id(piece): self.begin(piece) for piece in carried}
        for output in given:
            if id(output.out) not in outer.parts:  # the loop begins with it
                continue
            first = loop.first_row(output) if self.is_behind(output, loop.first_row(output)) else 0
            rows = self.from_behind(output, first, loop.initial_rows(output) + loop.count - first)
            if output in seen_before:
                self.to_before(output, 0, rows, 0, output.part.size)
            if id(output.part) in self.needed:
                self.give(output.part, whole(output.part), self.row(rows, loop.first_row(output) - first, output.part))
        received = {id(piece): self.from_later_iterations(piece) for piece in carried}
        found = []
        for step in reversed(loop.steps):
            if id(step.out) not in self.needed or id(step.out) not in self.reached:
                continue
            gradient = self.slope(step.out)
            found.append((step, gradient))
            if isinstance(step, Compute):
                self.compute(step, gradient)
            else:
                self.assemble(step, gradient)
        for piece in carried:
            part = self.slope(piece)
            if part.slice is not None:
                part = self.add(piece, piece.shape, [whole(part)], ("in", 0))
            self.loop_back.outputs.append(LoopOutput(part, received[id(piece)], begins[id(piece)]))
        outward = [(step, slope) for step, slope in found if any(map(self.is_outside, step.reads))]
        slopes_of = [(step, self.of_all_turns(gradient)) for step, gradient in outward]
        for step in self.program.each_step():
            for access in step.operands if isinstance(step, Compute) else ():
                if id(access.array) in self.made:  # of the iteration as it was done forward
                    access.array = self.row_of(access.array)
        self.program.outputs = {str(n): output.part for n, output in enumerate(self.loop_back.outputs)}
        fuse(self.program)
        self.loop_back.steps = self.program.each_step()
        if self.loop_back.outputs:
            outer.program.steps.append(self.loop_back)
        outer.program.steps += self.then
        for piece in carried:
            self.to_first_rows(piece, received[id(piece)])
        for step, slope in slopes_of:
            self.behind(step, slope)

    def slope(self, array: Array) -> Array:
        """The cotangent of an array that the results depend on."""
        slope = self.finish(array)
        if slope is None:
            raise ProgramError(f"nothing comes back to {array.name}")
        return slope if isinstance(slope, Array) else self.add(array, array.shape, [], slope)

    # -- within the iterations -----------------------------------------------------------------------------------------

    def asks(self, array: Array) -> bool:
        """Whether it is an array of an iteration, or seen of an earlier iteration."""
        if id(array) not in self.needed:
            return False
        if array.slice is not None:
            return id(array) in self.reached and id(array.slice.array) in self.by_out
        return id(array) in self.made

    def reaches(self, reached: set[int]) -> set[int]:
        """What the results depend on, of what iterations make and of what they see of earlier ones."""
        known = -1
        while known < len(reached):
            known = len(reached)
            for step in reversed(self.loop.steps):
                if id(step.out) not in reached:
                    continue
                for array in self.receivers(step):
                    reached.add(id(array))
                    output = self.by_out.get(id(array.slice.array)) if array.slice else None
                    if output is not None:
                        reached.add(id(output.part))
        return reached

    def receivers(self, step: Compute | Assemble) -> list[Array]:
        """The arrays that a step gives something to."""
        if isinstance(step, Assemble) or step.reduce in ("max", "min"):
            return step.reads
        return [step.operands[k].array for k in cotangents(step.expr, ("in", len(step.operands)))]

    @staticmethod
    def row(array: Array, first: int, like: Array) -> Array:
        """A slice that shows the row of each iteration of an array outside."""
        seen = Array(f"{array.name}_t", array.shape[: int(array.batched)] + like.cell_shape, "slice")
        seen.slice = Slice(array, first * like.size, like.size)
        return seen

    def row_of(self, array: Array) -> Array:
        """A slice on what the iteration made forward, which becomes an output for this."""
        if id(array) not in self.rows:
            output = self.keep(array)
            self.rows[id(array)] = self.row(output.out, self.loop.first_row(output), array)
            self.rows[id(array)].nonnegative = array.nonnegative
        return self.rows[id(array)]

    def keep(self, part: Array) -> LoopOutput:
        """See that the forward loop keeps an array."""
        if id(part) not in self.output_of:
            shape = (*part.shape[: int(part.batched)], self.loop.count, *part.cell_shape)
            output = LoopOutput(part, Array(f"{part.name}s", shape, "value", nonnegative=part.nonnegative))
            self.outer.forward.arrays.append(output.out)
            self.loop.outputs.append(output)
            self.output_of[id(part)] = output
        return self.output_of[id(part)]

    # -- from behind the loop -----------------------------------------------------------------------------------------

    def begin(self, piece: Array) -> Array | None:
        """Return the initial rows of the sweep, if only the last iterations receive cotangents from outside.

        Otherwise None, for zeros, and each iteration receives its own row.
        """
        loop, seen = self.loop, piece.slice
        assert seen is not None
        output = self.by_out[id(seen.array)]
        lag = loop.first_row(output) - seen.base // output.part.size
        first = loop.first_row(output) + loop.count - lag
        if piece.size != output.part.size or lag > loop.count or not self.is_behind(output, first):
            return None
        return self.from_behind(output, first, lag)

    def is_behind(self, output: LoopOutput, first: int) -> bool:
        """Whether something comes from behind the loop to what it keeps, and nothing to the rows before one of them."""
        parts = self.outer.parts.get(id(output.out), ())
        return bool(parts) and all(_lowest(access, part) >= first * output.part.size for access, part in parts)

    def from_behind(self, output: LoopOutput, first: int, count: int) -> Array:
        """What comes from there to so many rows."""
        outer, out, part = self.outer, output.out, output.part
        rows = out
        if first:
            shape = (*part.shape[: int(part.batched)], *[n for n in (count,) if n > 1], *part.cell_shape)
            rows, start = replace(out, shape=shape), first * part.size
            outer.parts[id(rows)] = []
            for access, each in outer.parts.pop(id(out)):
                table = None if access.table is None else access.table - start
                base = access.base - start if table is None else 0
                outer.give(rows, replace(access, array=rows, base=base, table=table), each)
        slope = outer.finish(rows)
        assert slope is not None
        return slope if isinstance(slope, Array) else outer.add(rows, rows.shape, [], slope)

    def from_later_iterations(self, piece: Array) -> Array:
        """What each iteration gives to what it sees of earlier ones, kept, and received by these."""
        seen = piece.slice
        assert seen is not None
        output = self.by_out[id(seen.array)]
        size, part = output.part.size, output.part
        rows, low = piece.size // size, seen.base // size
        first = self.loop.first_row(output) - low  # how many iterations the first row is back; the last one so many
        last = first - rows + 1
        lead = piece.shape[: int(piece.batched)]
        out = self.outer.array(output.out, (*lead, self.loop.count + first, *piece.cell_shape))
        own = self.outer.array(output.out, (*lead, *[n for n in (rows,) if n > 1], *piece.cell_shape))
        own.role, own.slice = "slice", Slice(out, last * piece.size, piece.size)
        if rows == 1:
            self.give(part, whole(part), own)
            return out
        strides = (*part.strides, (rows - 1) * size)
        read = Access(own, (rows - 1) * size, strides)
        self.give(part, whole(part), self.add(part, (*part.shape, rows), [read], ("in", 0), len(part.shape)))
        return out

    def to_first_rows(self, piece: Array, received: Array) -> None:
        """What the first iterations give to what was there before them."""
        seen = piece.slice
        assert seen is not None
        output = self.by_out[id(seen.array)]
        size = output.part.size
        for row in range(piece.size // size):
            self.to_before(output, seen.base // size + row, received, row * size, piece.size)

    def is_seen_before(self, output: LoopOutput) -> bool:
        """Return True if others read the initial rows, as the iterations of another loop do."""
        cells, parts = self.loop.first_row(output) * output.part.size, self.outer.parts.get(id(output.out), ())
        return any(_lowest(access, part) < cells for access, part in parts if not covers(access, part))

    def to_before(self, output: LoopOutput, first: int, received: Array, base: int, step: int) -> None:
        """What the rows before the first iteration, from one of them on, get from cells that stand so far apart."""
        initial, part = output.initial, output.part
        count = self.loop.initial_rows(output) - first
        if initial is None or id(initial) not in self.needed or count <= 0:
            return
        batch = (1,) * received.batched
        over = (BATCH,) if received.batched and not initial.batched else ()  # each example has read it
        lead, strides = [n for n in (count,) if n > 1], contiguous(part.cell_shape)
        axes = (*received.shape[: len(batch)], *lead, *part.cell_shape)
        read = Access(received, base, (*batch, *[step] * len(lead), *strides))
        if over:
            read, axes = read.permuted([*range(1, len(axes)), 0], axes), (*axes[1:], BATCH)
        given = self.outer.add(initial, axes, [read], ("in", 0), len(axes) - len(over))
        own = (*batch[len(over) :], *[part.size] * len(lead), *strides)
        self.outer.give(initial, Access(initial, first * part.size, own), given)

    # -- behind the loop ----------------------------------------------------------------------------------------------

    def behind(self, step: Compute | Assemble, slope: Array) -> None:
        """What all iterations of a step give to arrays outside, the iterations being an axis."""
        outer, outside = self.outer, [array for array in step.reads if self.is_outside(array)]
        start = len(outer.program.steps)
        if isinstance(step, Assemble):
            for access, part in step.parts:
                if part in outside:
                    self.part_of_all_turns(access, part, slope)
        else:
            lead = int(step.axes[:1] == (BATCH,))
            axes = (*step.axes[:lead], self.loop.count, *step.axes[lead:])
            operands = [self.over_turns(access, step.axes) for access in step.operands]
            outer.only = {
                id(all_of.array) for x, all_of in zip(step.operands, operands, strict=True) if x.array in outside
            }
            expr = rewrite(step.expr, lambda leaf: ("mask", self.in_each_turn(leaf[1])) if leaf[0] == "mask" else leaf)
            mask = None if step.mask is None else self.in_each_turn(step.mask)
            outer.compute(Compute(self.over_iterations_of(step.out), axes, operands, expr, step.reduce, mask), slope)
            outer.only = None
        for made in outer.program.steps[start:]:
            for access in made.operands if isinstance(made, Compute) else ():
                own = self.stood_for.get(id(access.array))
                if own is not None:
                    output = self.keep(own)
                    shift = self.loop.first_row(output) * own.size
                    access.array, access.base = output.out, access.base + shift
                    access.table = None if access.table is None else access.table + shift

    def is_outside(self, array: Array) -> bool:
        """Whether the cotangent of what an iteration reads is asked for, and it is none of an iteration's."""
        seen = array if array.slice is None else array.slice.array
        return id(seen) in self.needed and id(seen) not in self.by_out and id(array) not in self.made

    def of_all_turns(self, gradient: Array) -> Array:
        """The cotangents that an array of an iteration of this sweep is, in all iterations."""
        seen = gradient.slice
        shape = (*gradient.shape[: int(gradient.batched)], self.loop.count, *gradient.cell_shape)
        if seen is None:
            known = [
                output.out for output in self.loop_back.outputs if output.part is gradient and output.out.shape == shape
            ]
            if known:
                return known[0]
            made = self.outer.array(self.part_of.get(id(gradient), gradient), shape)
            self.loop_back.outputs.append(LoopOutput(gradient, made))
            return made
        if seen.array.shape == shape:
            return seen.array
        batch = (1,) * gradient.batched
        rows = Access(seen.array, seen.base, (*batch, seen.step, *contiguous(gradient.cell_shape)))
        made = self.outer.add(self.part_of.get(id(seen.array), seen.array), shape, [rows], ("in", 0))
        self.then.append(self.outer.program.steps.pop())  # it may read what this sweep's loop leaves
        return made

    def over_iterations_of(self, part: Array) -> Array:
        """Return what stands for an array of all iterations, with an axis of them, until it is known to be read."""
        if id(part) not in self.over_iterations:
            shape = (*part.shape[: int(part.batched)], self.loop.count, *part.cell_shape)
            made = self.over_iterations[id(part)] = replace(part, shape=shape)
            self.stood_for[id(made)] = part
        return self.over_iterations[id(part)]

    def in_each_turn(self, values: Any) -> Any:
        """A mask or a table with the iterations as an axis, along which it does not change."""
        return np.broadcast_to(values, (self.loop.count, *values.shape))

    def over_turns(self, access: Access, axes: Sequence[int]) -> Access:
        """An access with the iterations as an axis, behind that of the batch."""
        array, base, step = access.array, access.base, 0
        table, start = access.table, 0
        seen = array.slice
        if seen is not None:
            array, start, step = seen.array, seen.base, seen.step
        elif id(array) in self.made:
            array, step = self.over_iterations_of(array), array.size
        if table is not None:
            rows = table + start + step * np.arange(self.loop.count).reshape(-1, *[1] * table.ndim)
            table, base = rows if step else self.in_each_turn(table + start), 0
        lead = int(tuple(axes[:1]) == (BATCH,))
        strides = (*access.strides[:lead], step, *access.strides[lead:])
        index = access.index
        if index is not None:
            seen = index.array.slice
            own = (*index.strides[:lead], seen.step if seen else 0, *index.strides[lead:])
            first = index.base + (seen.base if seen else 0)
            index = replace(index, array=seen.array if seen else index.array, base=first, strides=own)
        return Access(array, base + start if table is None else 0, strides, table, index)

    def part_of_all_turns(self, access: Access, part: Array, slope: Array) -> None:
        """What the iterations give to a part from outside that they put together with others."""
        outer, count, lead = self.outer, self.loop.count, int(part.batched)
        over = (BATCH,) if slope.batched and not part.batched else ()
        size, own = access.array.size, whole(part)
        through = self.over_turns(own, part.shape)
        table = access.table
        if table is not None:
            table = table + size * np.arange(count).reshape(-1, *[1] * table.ndim)
        strides = (*access.strides[:lead], size, *access.strides[lead:], *[1] * len(over))
        axes = (*part.shape[:lead], count, *part.shape[lead:], *over)
        read = Access(slope, access.base if table is None else 0, strides, table)
        order = list(range(len(part.shape) + 1))
        if part.slice is None:  # the same in each iteration
            order.remove(lead)
            through = own
        summed = [n for n in range(len(axes)) if n not in order]
        read = read.permuted(order + summed, axes)
        received = outer.add(through.array, tuple([axes[n] for n in order + summed]), [read], ("in", 0), len(order))
        outer.give(through.array, through, received)


def _lowest(access: Access, part: Array) -> int:
    """The first cell that a part may lie in."""
    if access.table is not None:
        return int(access.table.min())
    steps = zip(access.strides[int(part.batched) :], part.cell_shape, strict=True)
    reach = 0 if access.index is None else access.index.step * (access.index.extent - 1)
    return access.base + min(0, reach) + sum(min(0, step * (length - 1)) for step, length in steps)
