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
    Kept,
    Loop,
    ProgramError,
    Step,
    Window,
    contiguous,
    cotangents,
    fuse,
    rewrite,
    whole,
)

__all__ = ["ReverseLoop"]


class ReverseLoop(Sweep):
    """The reverse sweep of a loop: a loop that runs the other way round, in which the cotangents of a turn come to
    those before it. What the turns give to arrays outside is computed behind it, for all of them at once.
    """

    def __init__(self, outer: Sweep, loop: Loop) -> None:
        shared = {name: getattr(outer, name) for name in ("constant", "needed", "names", "part_of")}
        super().__init__(outer.forward, outer.wanted, **shared)
        self.outer = outer
        self.loop = loop
        self.reached: set[int] = set()
        self.made: dict[int, Array] = {id(step.out): step.out for step in loop.steps}
        self.kept: dict[int, Kept] = {id(kept.out): kept for kept in loop.kept}
        self.kept_parts: dict[int, Kept] = {id(kept.part): kept for kept in loop.kept}
        self.back: Loop = Loop(loop.count, [], [], backward=True)
        self.rows: dict[int, Array] = {}  # by the id of an array of a turn: the window on the row that it is kept in
        self.stand_ins: dict[int, Array] = {}
        self.stood_for: dict[int, Array] = {}
        self.then: list[Step] = []  # what is done when the sweep's loop is done

    def run(self) -> None:
        """Write it."""
        outer, loop = self.outer, self.loop
        seen_before = [kept for kept in loop.kept if self.is_seen_before(kept)]
        given = [kept for kept in loop.kept if id(kept.out) in self.needed and id(kept.out) in outer.parts]
        self.reached = self.reaches({id(kept.part) for kept in given})
        carried = [window for window in loop.windows if self.asks(window)]
        begins = {id(window): self.begin(window) for window in carried}
        for kept in given:
            if id(kept.out) not in outer.parts:  # the loop begins with it
                continue
            first = loop.first_row(kept) if self.is_behind(kept, loop.first_row(kept)) else 0
            rows = self.from_behind(kept, first, loop.rows_before(kept) + loop.count - first)
            if kept in seen_before:
                self.to_before(kept, 0, rows, 0, kept.part.size)
            if id(kept.part) in self.needed:
                self.give(kept.part, whole(kept.part), self.row(rows, loop.first_row(kept) - first, kept.part))
        received = {id(window): self.from_later_turns(window) for window in carried}
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
        for window in carried:
            part = self.slope(window)
            if part.window is not None:
                part = self.add(window, window.shape, [whole(part)], ("in", 0))
            self.back.kept.append(Kept(part, received[id(window)], begins[id(window)]))
        outward = [(step, slope) for step, slope in found if any(map(self.is_outside, step.reads))]
        slopes_of = [(step, self.of_all_turns(gradient)) for step, gradient in outward]
        for step in self.program.each_step():
            for access in step.operands if isinstance(step, Compute) else ():
                if id(access.array) in self.made:  # of the turn as it was done forward
                    access.array = self.row_of(access.array)
        self.program.outputs = {str(n): kept.part for n, kept in enumerate(self.back.kept)}
        fuse(self.program)
        self.back.steps = self.program.each_step()
        if self.back.kept:
            outer.program.steps.append(self.back)
        outer.program.steps += self.then
        for window in carried:
            self.to_first_rows(window, received[id(window)])
        for step, slope in slopes_of:
            self.behind(step, slope)

    def slope(self, array: Array) -> Array:
        """The cotangent of an array that the results depend on."""
        slope = self.finish(array)
        if slope is None:
            raise ProgramError(f"nothing comes back to {array.name}")
        return slope if isinstance(slope, Array) else self.add(array, array.shape, [], slope)

    # -- within the turns ---------------------------------------------------------------------------------------------

    def asks(self, array: Array) -> bool:
        """Whether it is an array of a turn, or seen of an earlier turn."""
        if id(array) not in self.needed:
            return False
        if array.window is not None:
            return id(array) in self.reached and id(array.window.array) in self.kept
        return id(array) in self.made

    def reaches(self, reached: set[int]) -> set[int]:
        """What the results depend on, of what turns make and of what they see of earlier ones."""
        known = -1
        while known < len(reached):
            known = len(reached)
            for step in reversed(self.loop.steps):
                if id(step.out) not in reached:
                    continue
                for array in self.receivers(step):
                    reached.add(id(array))
                    kept = self.kept.get(id(array.window.array)) if array.window else None
                    if kept is not None:
                        reached.add(id(kept.part))
        return reached

    def receivers(self, step: Compute | Assemble) -> list[Array]:
        """The arrays that a step gives something to."""
        if isinstance(step, Assemble) or step.reduce in ("max", "min"):
            return step.reads
        return [step.operands[k].array for k in cotangents(step.expr, ("in", len(step.operands)))]

    @staticmethod
    def row(array: Array, first: int, like: Array) -> Array:
        """A window that shows the row of each turn of an array outside."""
        seen = Array(f"{array.name}_t", array.shape[: int(array.batched)] + like.cell_shape, "window")
        seen.window = Window(array, first * like.size, like.size)
        return seen

    def row_of(self, array: Array) -> Array:
        """A window on what the turn made forward, which is kept for this."""
        if id(array) not in self.rows:
            kept = self.keep(array)
            self.rows[id(array)] = self.row(kept.out, self.loop.first_row(kept), array)
            self.rows[id(array)].nonnegative = array.nonnegative
        return self.rows[id(array)]

    def keep(self, part: Array) -> Kept:
        """See that the forward loop keeps an array."""
        if id(part) not in self.kept_parts:
            shape = (*part.shape[: int(part.batched)], self.loop.count, *part.cell_shape)
            kept = Kept(part, Array(f"{part.name}s", shape, "value", nonnegative=part.nonnegative))
            self.outer.forward.arrays.append(kept.out)
            self.loop.kept.append(kept)
            self.kept_parts[id(part)] = kept
        return self.kept_parts[id(part)]

    # -- from behind the loop -----------------------------------------------------------------------------------------

    def begin(self, window: Array) -> Array | None:
        """What the last turns get, where no other gets anything: the rows that are there before the sweep's first turn.
        Else None, for zeros, and each turn gets its row.
        """
        loop, seen = self.loop, window.window
        assert seen is not None
        kept = self.kept[id(seen.array)]
        lag = loop.first_row(kept) - seen.base // kept.part.size
        first = loop.first_row(kept) + loop.count - lag
        if window.size != kept.part.size or lag > loop.count or not self.is_behind(kept, first):
            return None
        return self.from_behind(kept, first, lag)

    def is_behind(self, kept: Kept, first: int) -> bool:
        """Whether something comes from behind the loop to what it keeps, and nothing to the rows before one of them."""
        parts = self.outer.parts.get(id(kept.out), ())
        return bool(parts) and all(_lowest(access, part) >= first * kept.part.size for access, part in parts)

    def from_behind(self, kept: Kept, first: int, count: int) -> Array:
        """What comes from there to so many rows."""
        outer, out, part = self.outer, kept.out, kept.part
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

    def from_later_turns(self, window: Array) -> Array:
        """What each turn gives to what it sees of earlier ones, kept, and received by these."""
        seen = window.window
        assert seen is not None
        kept = self.kept[id(seen.array)]
        size, part = kept.part.size, kept.part
        rows, low = window.size // size, seen.base // size
        first = self.loop.first_row(kept) - low  # how many turns the first row is back; the last one so many
        last = first - rows + 1
        lead = window.shape[: int(window.batched)]
        out = self.outer.array(kept.out, (*lead, self.loop.count + first, *window.cell_shape))
        own = self.outer.array(kept.out, (*lead, *[n for n in (rows,) if n > 1], *window.cell_shape))
        own.role, own.window = "window", Window(out, last * window.size, window.size)
        if rows == 1:
            self.give(part, whole(part), own)
            return out
        strides = (*part.strides, (rows - 1) * size)
        read = Access(own, (rows - 1) * size, strides)
        self.give(part, whole(part), self.add(part, (*part.shape, rows), [read], ("in", 0), len(part.shape)))
        return out

    def to_first_rows(self, window: Array, received: Array) -> None:
        """What the first turns give to what was there before them."""
        seen = window.window
        assert seen is not None
        kept = self.kept[id(seen.array)]
        size = kept.part.size
        for row in range(window.size // size):
            self.to_before(kept, seen.base // size + row, received, row * size, window.size)

    def is_seen_before(self, kept: Kept) -> bool:
        """Whether others see the rows that are there before the first turn, as the turns of another loop do."""
        cells, parts = self.loop.first_row(kept) * kept.part.size, self.outer.parts.get(id(kept.out), ())
        return any(_lowest(access, part) < cells for access, part in parts if not covers(access, part))

    def to_before(self, kept: Kept, first: int, received: Array, base: int, step: int) -> None:
        """What the rows before the first turn, from one of them on, get from cells that stand so far apart."""
        before, part = kept.before, kept.part
        count = self.loop.rows_before(kept) - first
        if before is None or id(before) not in self.needed or count <= 0:
            return
        batch = (1,) * received.batched
        over = (BATCH,) if received.batched and not before.batched else ()  # each example has read it
        lead, strides = [n for n in (count,) if n > 1], contiguous(part.cell_shape)
        axes = (*received.shape[: len(batch)], *lead, *part.cell_shape)
        read = Access(received, base, (*batch, *[step] * len(lead), *strides))
        if over:
            read, axes = read.permuted([*range(1, len(axes)), 0], axes), (*axes[1:], BATCH)
        given = self.outer.add(before, axes, [read], ("in", 0), len(axes) - len(over))
        own = (*batch[len(over) :], *[part.size] * len(lead), *strides)
        self.outer.give(before, Access(before, first * part.size, own), given)

    # -- behind the loop ----------------------------------------------------------------------------------------------

    def behind(self, step: Compute | Assemble, slope: Array) -> None:
        """What all turns of a step give to arrays outside, the turns being an axis."""
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
            outer.compute(Compute(self.stand_in(step.out), axes, operands, expr, step.reduce, mask), slope)
            outer.only = None
        for made in outer.program.steps[start:]:
            for access in made.operands if isinstance(made, Compute) else ():
                own = self.stood_for.get(id(access.array))
                if own is not None:
                    kept = self.keep(own)
                    shift = self.loop.first_row(kept) * own.size
                    access.array, access.base = kept.out, access.base + shift
                    access.table = None if access.table is None else access.table + shift

    def is_outside(self, array: Array) -> bool:
        """Whether the cotangent of what a turn reads is asked for, and it is none of a turn's."""
        seen = array if array.window is None else array.window.array
        return id(seen) in self.needed and id(seen) not in self.kept and id(array) not in self.made

    def of_all_turns(self, gradient: Array) -> Array:
        """The cotangents that an array of a turn of this sweep is, in all turns."""
        seen = gradient.window
        shape = (*gradient.shape[: int(gradient.batched)], self.loop.count, *gradient.cell_shape)
        if seen is None:
            known = [kept.out for kept in self.back.kept if kept.part is gradient and kept.out.shape == shape]
            if known:
                return known[0]
            made = self.outer.array(self.part_of.get(id(gradient), gradient), shape)
            self.back.kept.append(Kept(gradient, made))
            return made
        if seen.array.shape == shape:
            return seen.array
        batch = (1,) * gradient.batched
        rows = Access(seen.array, seen.base, (*batch, seen.step, *contiguous(gradient.cell_shape)))
        made = self.outer.add(self.part_of.get(id(seen.array), seen.array), shape, [rows], ("in", 0))
        self.then.append(self.outer.program.steps.pop())  # it may read what this sweep's loop leaves
        return made

    def stand_in(self, part: Array) -> Array:
        """What stands for the array of a turn with the turns as an axis, until it is known whether that is read."""
        if id(part) not in self.stand_ins:
            shape = (*part.shape[: int(part.batched)], self.loop.count, *part.cell_shape)
            made = self.stand_ins[id(part)] = replace(part, shape=shape)
            self.stood_for[id(made)] = part
        return self.stand_ins[id(part)]

    def in_each_turn(self, values: Any) -> Any:
        """A mask or a table with the turns as an axis, along which it does not change."""
        return np.broadcast_to(values, (self.loop.count, *values.shape))

    def over_turns(self, access: Access, axes: Sequence[int]) -> Access:
        """An access with the turns as an axis, behind that of the batch."""
        array, base, step = access.array, access.base, 0
        table, start = access.table, 0
        seen = array.window
        if seen is not None:
            array, start, step = seen.array, seen.base, seen.step
        elif id(array) in self.made:
            array, step = self.stand_in(array), array.size
        if table is not None:
            rows = table + start + step * np.arange(self.loop.count).reshape(-1, *[1] * table.ndim)
            table, base = rows if step else self.in_each_turn(table + start), 0
        lead = int(tuple(axes[:1]) == (BATCH,))
        strides = (*access.strides[:lead], step, *access.strides[lead:])
        index = access.index
        if index is not None:
            seen = index.array.window
            own = (*index.strides[:lead], seen.step if seen else 0, *index.strides[lead:])
            first = index.base + (seen.base if seen else 0)
            index = replace(index, array=seen.array if seen else index.array, base=first, strides=own)
        return Access(array, base + start if table is None else 0, strides, table, index)

    def part_of_all_turns(self, access: Access, part: Array, slope: Array) -> None:
        """What the turns give to a part from outside that they put together with others."""
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
        if part.window is None:  # the same in each turn
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
