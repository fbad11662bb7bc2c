"""The reverse sweep of a Loop: a Loop in the other direction, and steps after it over all iterations at once.

The loop may run in either direction, as it may be a reverse sweep itself. Here "earlier", "later" and "initial" mean
the order in which its iterations run: the later ones of a backward loop have smaller numbers, and its initial rows are
last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.compiler.derive.sweep import Sweep
from wengert.compiler.ir import (
    BATCH,
    ONE,
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
    """The reverse sweep of a loop."""

    def __init__(self, outer: Sweep, loop: Loop) -> None:
        names = "constant", "needed", "names", "part_of", "rules", "again", "companions"
        shared = {name: getattr(outer, name) for name in names}
        super().__init__(outer.forward, outer.wanted, **shared)
        self.outer = outer
        self.loop = loop
        self.reached: set[int] = set()
        self.loop_arrays: dict[int, Array] = {id(step.out): step.out for step in loop.steps}
        self.by_out: dict[int, LoopOutput] = {id(output.out): output for output in loop.outputs}
        self.output_of: dict[int, LoopOutput] = {id(output.part): output for output in loop.outputs}
        self.loop_back: Loop = Loop(loop.count, [], [], backward=not loop.backward)
        self.rows: dict[int, Array] = {}  # by the id of an array of the loop: the slice of its output's row
        self.placeholders: dict[int, Array] = {}
        self.array_of_placeholder: dict[int, Array] = {}
        self.later_steps: list[Step] = []  # steps that run after the sweep's loop

    def run(self) -> None:
        outer, loop = self.outer, self.loop
        initial_read = [output for output in loop.outputs if self.reads_initial_rows(output)]
        given = [output for output in loop.outputs if id(output.out) in self.needed and id(output.out) in outer.parts]
        always = {id(step.out) for step in loop.steps} & self.companions.always
        self.reached = self.reaches({id(output.part) for output in given} | always)
        carried = [piece for piece in loop.slices if self.asks(piece)]
        initial = {id(piece): self.initial_rows_of(piece) for piece in carried}
        for output in given:
            if id(output.out) not in outer.parts:  # the loop begins with it
                continue
            first, count = loop.first_row(output), loop.count
            if not self.is_to_rows(output, first, count):
                first, count = 0, output.out.cell_shape[0]
            rows = self.from_after(output, first, count)
            if output in initial_read:
                size = output.part.size
                self.to_initial_rows(output, 0, loop.initial_rows(output), rows, self.initial_row(output) * size, size)
            if id(output.part) in self.needed:
                self.give(output.part, whole(output.part), self.row(rows, loop.first_row(output) - first, output.part))
        received = {id(piece): self.from_later_iterations(piece) for piece in carried}
        gradients = []
        for step in reversed(loop.steps):
            if id(step.out) not in self.needed or id(step.out) not in self.reached:
                continue
            is_always = id(step.out) in self.companions.always and isinstance(step, Compute)
            gradient: Any = ONE if is_always else self.cotangent(step.out)
            gradients.append((step, gradient))
            self.count(step.out, gradient)
            if isinstance(step, Compute):
                self.compute(step, gradient)
            else:
                self.assemble(step, gradient)
        for piece in carried:
            part = self.cotangent(piece)
            if part.slice is not None:
                part = self.add(piece, piece.shape, [whole(part)], ("in", 0))
            self.loop_back.outputs.append(LoopOutput(part, received[id(piece)], initial[id(piece)]))
        outward = [(step, cotangent) for step, cotangent in gradients if any(map(self.is_outside, step.reads))]
        cotangents_of = [(step, x if x is ONE else self.all_iterations_of(x)) for step, x in outward]
        counts = self.companions.counts
        counted = {step: counts[id(step.out)] for step, _ in outward if id(step.out) in counts}
        counts_of = {id(step.out): self.all_iterations_of(count) for step, count in counted.items()}
        for step in self.program.each_step():
            for access in step.operands if isinstance(step, Compute) else ():
                if id(access.array) in self.loop_arrays:  # an array of the forward iteration
                    access.array = self.row_of(access.array)
        self.program.outputs = {str(n): output.part for n, output in enumerate(self.loop_back.outputs)}
        fuse(self.program)
        self.loop_back.steps = self.program.each_step()
        if self.loop_back.outputs:
            outer.program.steps.append(self.loop_back)
        outer.program.steps += self.later_steps
        for piece in carried:
            self.from_first_iterations(piece, received[id(piece)])
        for step, cotangent in cotangents_of:
            if id(step.out) in counts_of:
                counts[id(self.placeholder(step.out))] = counts_of[id(step.out)]
            self.after_loop(step, cotangent)

    def cotangent(self, array: Array) -> Array:
        """Return the cotangent of an array that the results depend on."""
        cotangent = ONE if id(array) in self.companions.always else self.finish(array)
        if cotangent is None:
            raise ProgramError(f"{array.name} receives no cotangent")
        return cotangent if isinstance(cotangent, Array) else self.add(array, array.shape, [], cotangent)

    # -- within the iterations -----------------------------------------------------------------------------------------

    def asks(self, array: Array) -> bool:
        """Return True for needed arrays of an iteration, and for slices of earlier ones that the results depend on."""
        if id(array) not in self.needed:
            return False
        if array.slice is not None:
            return id(array) in self.reached and id(array.slice.array) in self.by_out
        return id(array) in self.loop_arrays

    def reaches(self, reached: set[int]) -> set[int]:
        """Return the arrays of the loop, and its slices of earlier iterations, that the results depend on."""
        count = -1
        while count < len(reached):
            count = len(reached)
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
        if isinstance(step, Assemble) or step.reduce in ("max", "min"):
            return step.reads
        return [step.operands[k].array for k in cotangents(step.expr, ("in", len(step.operands)))]

    @staticmethod
    def row(array: Array, first: int, like: Array) -> Array:
        """Return a slice that shows each iteration its row of an array outside."""
        seen = Array(f"{array.name}_t", array.shape[: int(array.batched)] + like.cell_shape, "slice")
        seen.slice = Slice(array, first * like.size, like.size)
        return seen

    def row_of(self, array: Array) -> Array:
        """Return a slice of an array's values in the forward iterations, which therefore become an output."""
        if id(array) not in self.rows:
            output = self.keep(array)
            self.rows[id(array)] = self.row(output.out, self.loop.first_row(output), array)
            self.rows[id(array)].nonnegative = array.nonnegative
        return self.rows[id(array)]

    def keep(self, part: Array) -> LoopOutput:
        if id(part) not in self.output_of:
            shape = (*part.shape[: int(part.batched)], self.loop.count, *part.cell_shape)
            output = LoopOutput(part, Array(f"{part.name}s", shape, "value", nonnegative=part.nonnegative))
            self.outer.forward.arrays.append(output.out)
            self.loop.outputs.append(output)
            self.output_of[id(part)] = output
        return self.output_of[id(part)]

    # -- from after the loop ------------------------------------------------------------------------------------------

    def initial_rows_of(self, piece: Array) -> Array | None:
        """Return the initial rows of the sweep, if only the last iterations receive cotangents from outside.

        Otherwise None, for zeros, and each iteration receives its own row.
        """
        loop, seen = self.loop, piece.slice
        assert seen is not None
        output = self.by_out[id(seen.array)]
        lag = self.lag(output, seen)
        first = 0 if loop.backward else loop.first_row(output) + loop.count - lag
        if piece.size != output.part.size or lag > loop.count or not self.is_to_rows(output, first, lag):
            return None
        return self.from_after(output, first, lag)

    def lag(self, output: LoopOutput, seen: Slice) -> int:
        """Return how many iterations back the first row of a slice is."""
        return abs(self.loop.first_row(output) - seen.base // output.part.size)

    def is_to_rows(self, output: LoopOutput, first: int, count: int) -> bool:
        """Return True if steps after the loop give cotangents to an output, and to no row but `count` from `first`
        on.
        """
        low, high, size = first, first + count, output.part.size
        parts = self.outer.parts.get(id(output.out), ())
        reached = [access.reach(part.shape) for access, part in parts]
        return bool(parts) and all(low * size <= least and most < high * size for least, most in reached)

    def from_after(self, output: LoopOutput, first: int, count: int) -> Array:
        """Return the cotangents that steps after the loop give to `count` rows of an output, from `first` on."""
        outer, out, part = self.outer, output.out, output.part
        rows = out
        if first or count < out.cell_shape[0]:
            shape = (*part.shape[: int(part.batched)], *[n for n in (count,) if n > 1], *part.cell_shape)
            rows, start = replace(out, shape=shape), first * part.size
            outer.parts[id(rows)] = []
            for access, each in outer.parts.pop(id(out)):
                table = None if access.table is None else access.table - start
                base = access.base - start if table is None else 0
                outer.give(rows, replace(access, array=rows, base=base, table=table), each)
        cotangent = outer.finish(rows)
        assert cotangent is not None
        return cotangent if isinstance(cotangent, Array) else outer.add(rows, rows.shape, [], cotangent)

    def from_later_iterations(self, piece: Array) -> Array:
        """Return the cotangents that iterations give to earlier ones through a slice, and pass these their rows."""
        seen = piece.slice
        assert seen is not None
        output = self.by_out[id(seen.array)]
        size, part = output.part.size, output.part
        rows, lag, backward = piece.size // size, self.lag(output, seen), self.loop.backward
        least, most = (lag, lag + rows - 1) if backward else (lag - rows + 1, lag)  # over the slice's rows
        lead = piece.shape[: int(piece.batched)]
        out = self.outer.array(output.out, (*lead, self.loop.count + most, *piece.cell_shape))
        own = self.outer.array(output.out, (*lead, *[n for n in (rows,) if n > 1], *piece.cell_shape))
        own.role, own.slice = "slice", Slice(out, 0 if backward else least * piece.size, piece.size)
        if rows == 1:
            self.give(part, whole(part), own)
            return out
        strides = (*part.strides, (rows - 1) * size)
        read = Access(own, (rows - 1) * size, strides)
        self.give(part, whole(part), self.add(part, (*part.shape, rows), [read], ("in", 0), len(part.shape)))
        return out

    def from_first_iterations(self, piece: Array, received: Array) -> None:
        """Pass to the initial rows what the iterations that read them through a slice give them."""
        seen, loop = piece.slice, self.loop
        assert seen is not None
        output = self.by_out[id(seen.array)]
        size, count = output.part.size, loop.initial_rows(output)
        for row in range(piece.size // size):
            at = seen.base // size + row  # iteration t reads row `at + t`
            if loop.backward:
                base = (received.cell_shape[0] - at) * piece.size  # `received` ends with the last iteration
                self.to_initial_rows(output, 0, min(at, count), received, base + row * size, piece.size)
            else:
                self.to_initial_rows(output, at, count - at, received, row * size, piece.size)

    def reads_initial_rows(self, output: LoopOutput) -> bool:
        """Return True if steps outside read the initial rows, as the iterations of another loop do."""
        first, count = self.loop.first_row(output), self.loop.count
        return id(output.out) in self.outer.parts and not self.is_to_rows(output, first, count)

    def initial_row(self, output: LoopOutput) -> int:
        """Return the first of the rows of an output that exist before the first iteration."""
        return self.loop.count if self.loop.backward else 0

    def to_initial_rows(
        self, output: LoopOutput, first: int, count: int, received: Array, base: int, step: int
    ) -> None:
        """Pass cotangents, cells of `received` from `base` on, `step` apart, to `count` initial rows from `first`."""
        initial, part = output.initial, output.part
        if initial is None or id(initial) not in self.needed or count <= 0:
            return
        batch = (1,) * received.batched
        over = (BATCH,) if received.batched and not initial.batched else ()  # sum over the examples
        lead, strides = [n for n in (count,) if n > 1], contiguous(part.cell_shape)
        axes = (*received.shape[: len(batch)], *lead, *part.cell_shape)
        read = Access(received, base, (*batch, *[step] * len(lead), *strides))
        if over:
            read, axes = read.permuted([*range(1, len(axes)), 0], axes), (*axes[1:], BATCH)
        given = self.outer.add(initial, axes, [read], ("in", 0), len(axes) - len(over))
        own = (*batch[len(over) :], *[part.size] * len(lead), *strides)
        self.outer.give(initial, Access(initial, first * part.size, own), given)

    # -- after the loop -----------------------------------------------------------------------------------------------

    def after_loop(self, step: Compute | Assemble, cotangent: Any) -> None:
        """Add what a step contributes to arrays outside in all iterations, with the iterations as an axis."""
        outer, outside = self.outer, [array for array in step.reads if self.is_outside(array)]
        start = len(outer.program.steps)
        if isinstance(step, Assemble):
            for access, part in step.parts:
                if part in outside:
                    self.part_over_iterations(access, part, cotangent)
        else:
            lead = int(step.axes[:1] == (BATCH,))
            axes = (*step.axes[:lead], self.loop.count, *step.axes[lead:])
            operands = [self.access_over_iterations(access, step.axes) for access in step.operands]
            outer.only = {
                id(all_of.array) for x, all_of in zip(step.operands, operands, strict=True) if x.array in outside
            }
            expr = rewrite(step.expr, lambda leaf: ("mask", self.repeated(leaf[1])) if leaf[0] == "mask" else leaf)
            mask = None if step.mask is None else self.repeated(step.mask)
            outer.compute(Compute(self.placeholder(step.out), axes, operands, expr, step.reduce, mask), cotangent)
            outer.only = None
        for new_step in outer.program.steps[start:]:
            for access in new_step.operands if isinstance(new_step, Compute) else ():
                own = self.array_of_placeholder.get(id(access.array))
                if own is not None:
                    output = self.keep(own)
                    shift = self.loop.first_row(output) * own.size
                    access.array, access.base = output.out, access.base + shift
                    access.table = None if access.table is None else access.table + shift

    def is_outside(self, array: Array) -> bool:
        """Return True if an array that an iteration reads comes from outside, and its cotangent is needed."""
        origin = id(array.origin)
        return origin in self.needed and origin not in self.by_out and id(array) not in self.loop_arrays

    def all_iterations_of(self, gradient: Array) -> Array:
        """Return the values that an array of the sweep's iterations takes in all of them."""
        seen = gradient.slice
        shape = (*gradient.shape[: int(gradient.batched)], self.loop.count, *gradient.cell_shape)
        if seen is None:
            existing = [
                output.out for output in self.loop_back.outputs if output.part is gradient and output.out.shape == shape
            ]
            if existing:
                return existing[0]
            stacked = self.outer.array(self.part_of.get(id(gradient), gradient), shape)
            self.loop_back.outputs.append(LoopOutput(gradient, stacked))
            return stacked
        if seen.array.shape == shape:
            return seen.array
        batch = (1,) * gradient.batched
        rows = Access(seen.array, seen.base, (*batch, seen.step, *contiguous(gradient.cell_shape)))
        stacked = self.outer.add(self.part_of.get(id(seen.array), seen.array), shape, [rows], ("in", 0))
        self.later_steps.append(self.outer.program.steps.pop())  # it may read outputs of the sweep's loop
        return stacked

    def placeholder(self, part: Array) -> Array:
        """Return an array for the values of an array in all iterations; it becomes an output if a step reads it."""
        if id(part) not in self.placeholders:
            shape = (*part.shape[: int(part.batched)], self.loop.count, *part.cell_shape)
            new = self.placeholders[id(part)] = replace(part, shape=shape)
            self.array_of_placeholder[id(new)] = part
            if id(part) in self.companions.suspect:
                self.companions.suspect.add(id(new))
        return self.placeholders[id(part)]

    def repeated(self, values: Any) -> Any:
        return np.broadcast_to(values, (self.loop.count, *values.shape))

    def access_over_iterations(self, access: Access, axes: Sequence[int]) -> Access:
        """Insert the iterations as an axis after the batch."""
        array, base, step = access.array, access.base, 0
        table, start = access.table, 0
        seen = array.slice
        if seen is not None:
            array, start, step = seen.array, seen.base, seen.step
        elif id(array) in self.loop_arrays:
            array, step = self.placeholder(array), array.size
        if table is not None:
            rows = table + start + step * np.arange(self.loop.count).reshape(-1, *[1] * table.ndim)
            table, base = rows if step else self.repeated(table + start), 0
        lead = int(tuple(axes[:1]) == (BATCH,))
        strides = (*access.strides[:lead], step, *access.strides[lead:])
        index = access.index
        if index is not None:
            seen = index.array.slice
            own = (*index.strides[:lead], seen.step if seen else 0, *index.strides[lead:])
            first = index.base + (seen.base if seen else 0)
            index = replace(index, array=seen.array if seen else index.array, base=first, strides=own)
        return Access(array, base + start if table is None else 0, strides, table, index)

    def part_over_iterations(self, access: Access, part: Array, cotangent: Array) -> None:
        """Pass to a part of an Assemble its cotangent from all iterations."""
        outer, count, lead = self.outer, self.loop.count, int(part.batched)
        over = (BATCH,) if cotangent.batched and not part.batched else ()
        size, own = access.array.size, whole(part)
        through = self.access_over_iterations(own, part.shape)
        table = access.table
        if table is not None:
            table = table + size * np.arange(count).reshape(-1, *[1] * table.ndim)
        strides = (*access.strides[:lead], size, *access.strides[lead:], *[1] * len(over))
        axes = (*part.shape[:lead], count, *part.shape[lead:], *over)
        read = Access(cotangent, access.base if table is None else 0, strides, table)
        order = list(range(len(part.shape) + 1))
        if part.slice is None:  # all iterations read the same array
            order.remove(lead)
            through = own
        summed = [n for n in range(len(axes)) if n not in order]
        read = read.permuted(order + summed, axes)
        received = outer.add(through.array, tuple([axes[n] for n in order + summed]), [read], ("in", 0), len(order))
        outer.give(through.array, through, received)
