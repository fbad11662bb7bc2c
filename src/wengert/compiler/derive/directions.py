"""A Program for several directions at once: arrays that depend on the direction get an axis for it, the last one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.compiler.derive.local import local_directions
from wengert.compiler.ir import (
    BATCH,
    CHEAP,
    CHOICES,
    LEAVES,
    Access,
    Array,
    Compute,
    Expr,
    Index,
    Loop,
    LoopOutput,
    Program,
    Slice,
    Step,
    compact,
    drop_unread,
    fold,
    rewrite_masks,
    whole,
)

__all__ = ["dependents", "in_directions"]

QUICK = (*CHEAP, *CHOICES, "abs", "div", "leaky_relu", "maximum", "minimum", "reciprocal", "sign", "sqrt")


def in_directions(program: Program, seeds: dict[int, Any], results: Sequence[Array]) -> None:
    """Change a program so that it computes its outputs, and what else depends on some arrays, for several directions
    at once.

    Args:
        program: the program.
        seeds: by the id of each array whose numbers depend on the direction: these numbers, in the shape of its cells
            with a last axis for the directions. The arrays become constants. A single direction gets no axis.
        results: the arrays to compute besides the outputs.
    """
    count = next(iter(seeds.values())).shape[-1]
    for array in program.arrays:
        if id(array) in seeds:
            numbers = seeds[id(array)] if count > 1 else seeds[id(array)][..., 0]
            array.role, array.value = "const", np.asarray(numbers, float, order="C")
    if count == 1:
        return
    drop_unread(program, results)
    wide = dependents(program.steps, seeds, with_parts=True)
    spread = _Spread(count, wide, local_directions(program, seeds, wide, results))
    arrays = {id(array): array for step in program.each_step() for array in (step.out, *step.reads)}
    arrays.update({id(array): array for array in program.arrays})
    arrays.update({id(array): array for step in program.steps for array in step.makes})
    for array in arrays.values():
        if id(array) in spread.wide:
            spread.widen(array)
    program.steps = [each for step in program.steps for each in spread.step(step)]
    read = {id(array) for array in (*results, *[x for step in program.steps for x in step.reads])}
    program.arrays = [array for array in program.arrays if id(array) in read or id(array) not in seeds] + spread.added


def dependents(steps: Iterable[Step], arrays: Iterable[int], with_parts: bool = False) -> set[int]:
    """Return the ids of `arrays` and of all arrays that depend on them; `with_parts` adds the parts of those outputs
    of a loop that depend on them through their initial rows alone.
    """
    reached = set(arrays)
    for step in steps:
        if not isinstance(step, Loop):
            if any(id(array) in reached for array in step.reads):
                reached.add(id(step.out))
            continue
        count = -1
        while count < len(reached):  # to a fixed point: iterations read earlier ones
            count = len(reached)
            reached.update([id(piece) for piece in step.slices if piece.slice and id(piece.slice.array) in reached])
            reached.update([id(each.out) for each in step.steps if any(id(array) in reached for array in each.reads)])
            for output in step.outputs:
                if not reached.isdisjoint([id(output.part), id(output.out), id(output.initial)]):
                    reached.update([id(output.part), id(output.out)] if with_parts else [id(output.out)])
    return reached


def _calls(part: Expr, inner: list[bool]) -> bool:
    """Return True if a part of an expression calls a function that takes far longer than to store its result."""
    return part[0] not in LEAVES and (part[0] not in QUICK or any(inner))


class _Spread:
    """Gives arrays and steps an axis for the directions."""

    def __init__(self, count: int, wide: set[int], local: dict[int, Any]) -> None:
        self.count = count
        self.wide = wide  # the ids of the arrays that get it
        self.local = local  # by the id of an array the directions of each cell, if it has some of them
        self.added: list[Array] = []

    def count_of(self, array: Array) -> int:
        return self.local[id(array)].shape[1] if id(array) in self.local else self.count

    def widen(self, array: Array) -> None:
        count = self.count_of(array)
        array.shape = (*array.shape, count)
        if array.mask is not None:
            array.mask = np.broadcast_to(array.mask[..., None], (*array.mask.shape, count))
        if array.slice is not None:
            array.slice = Slice(array.slice.array, array.slice.base * self.count, array.slice.step * self.count)
        array.__post_init__()

    def step(self, step: Step) -> list[Any]:
        """Return a step with the axis, and before it those that repeat arrays for all directions."""
        if isinstance(step, Loop):
            return self.loop(step)
        if id(step.out) not in self.wide:
            return [step]
        if isinstance(step, Compute):
            shared = [] if step.reduce else self.shared(step)
            self.compute(step)
            return [*shared, step]
        before: list[Any] = []
        for n, (access, part) in enumerate(step.parts):
            repeated = self.repeated(part, before, self.count_of(step.out))
            axes = repeated.shape
            rows = self.local.get(id(part))
            step.parts[n] = self.access(access, axes[:-1], axes, len(axes) - 1, rows), repeated
        return [*before, step]

    def repeated(self, array: Array, before: list[Any], count: int) -> Array:
        """Return an array with the axis; a step that copies one without it is added to `before`."""
        if id(array) in self.wide:
            return array
        repeated = Array(f"{array.name}_each", (*array.shape, count), "value")
        self.wide.add(id(repeated))
        self.added.append(repeated)
        before.append(Compute(repeated, repeated.shape, [Access(array, 0, (*array.strides, 0))], ("in", 0)))
        return repeated

    def loop(self, loop: Loop) -> list[Any]:
        before: list[Any] = []
        loop.steps = [each for step in loop.steps for each in self.step(step)]
        for n, (part, out, initial) in enumerate(loop.outputs):
            if id(out) in self.wide and initial is not None:
                loop.outputs[n] = LoopOutput(part, out, self.repeated(initial, before, self.count))
        return [*before, loop]

    def shared(self, step: Compute) -> list[Any]:
        """Take out of a step what calls a function and is the same for all directions; return the steps for it."""
        wide = {k for k, access in enumerate(step.operands) if id(access.array) in self.wide}
        axes = step.out.shape[:-1]  # it has been widened
        steps: list[Any] = []

        moves: dict[int, bool] = {}
        calls: dict[int, bool] = {}
        fold(step.expr, lambda part, inner: any(inner) if part[0] != "in" else part[1] in wide, moves)
        fold(step.expr, _calls, calls)
        taken: dict[int, Expr] = {}
        seen: set[int] = set()
        stack = [step.expr]
        while stack:
            part = stack.pop()
            if part[0] in LEAVES or id(part) in seen:
                continue
            seen.add(id(part))
            if calls[id(part)] and not moves[id(part)]:
                hoisted = Array(f"{step.out.name}_{len(steps)}", axes, "value")
                self.added.append(hoisted)
                own, operands = compact(part, step.operands)
                steps.append(Compute(hoisted, axes, operands, own))
                step.operands.append(whole(hoisted))
                taken[id(part)] = ("in", len(step.operands) - 1)
            else:
                stack.extend(part[:0:-2] if part[0] == "guarded" else part[:0:-1])  # not of a branch rarely taken
        if steps:
            expr = fold(step.expr, lambda part, inner: part if part[0] in LEAVES else (part[0], *inner), taken)
            step.expr, step.operands = compact(expr, step.operands)
        return steps

    def compute(self, step: Compute) -> None:
        at = len(step.out.shape) - 1  # it has been widened
        plain = at - (step.axes[:1] == (BATCH,))
        axes = (*step.axes[:at], step.out.shape[-1], *step.axes[at:])
        rows = self.local.get(id(step.out))
        step.operands = [self.access(access, step.axes, axes, at, rows) for access in step.operands]
        if step.mask is not None:
            step.mask = self.over(step.mask, plain, axes)
        rank = len(step.axes) - (step.axes[:1] == (BATCH,))
        step.expr = rewrite_masks(step.expr, rank, lambda mask: self.over(mask, plain, axes))
        step.axes = axes

    def over(self, mask: Any, plain: int, axes: tuple[int, ...]) -> Any:
        """Repeat an array over the axes without the batch for all directions."""
        return np.broadcast_to(np.expand_dims(mask, plain), [n for n in axes if n != BATCH])

    def access(self, access: Access, before: Sequence[int], axes: tuple[int, ...], at: int, rows: Any = None) -> Access:
        """Return an access with the axis inserted at a place; `rows` has the directions of each cell of the result
        if these are some of those of the array.
        """
        is_wide = id(access.array) in self.wide
        if rows is not None and is_wide and id(access.array) not in self.local:
            return self.some(access, before, axes, at, rows)
        scale = self.count_of(access.array) if is_wide else 1
        pairs = zip(before, access.strides, strict=True)
        strides = [stride * (1 if length == BATCH else scale) for length, stride in pairs]
        strides.insert(at, int(is_wide))
        table, index = access.table, access.index
        if table is not None:
            plain = at - (axes[:1] == (BATCH,))
            table = np.expand_dims(table * scale, plain)
            if is_wide:
                table = table + np.arange(scale).reshape(-1, *[1] * (table.ndim - plain - 1))
            table = np.broadcast_to(table, [n for n in axes if n != BATCH])
        if index is not None:
            own = (*index.strides[:at], 0, *index.strides[at:])
            index = Index(index.array, index.step * scale, index.base, own, index.extent)
        return Access(access.array, access.base * scale, tuple(strides), table, index)

    def some(self, access: Access, before: Sequence[int], axes: tuple[int, ...], at: int, rows: Any) -> Access:
        """Return an access to an array in some of its directions, other ones for each cell; from a constant these are
        copied into a new one.
        """
        cells = np.expand_dims(access.places(before).reshape(before), at) * self.count
        table = cells + rows.reshape([n if i <= at else 1 for i, n in enumerate(axes)])
        if access.array.role == "const" and access.index is None:
            constant = Array(
                f"{access.array.name}_{len(self.added)}", axes, "const", value=access.array.value.take(table)
            )
            self.added.append(constant)
            return Access(constant, 0, constant.strides)
        index = access.index
        if index is not None:
            own = (*index.strides[:at], 0, *index.strides[at:])
            index = Index(index.array, index.step * self.count, index.base, own, index.extent)
        return Access(access.array, 0, (0,) * len(axes), table, index)
