"""Unrolls loops, for libraries without them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from wengert.compiler.ir.expression import ZERO, Expr
from wengert.compiler.ir.program import Access, Array, Assemble, Compute, Loop, Program, Step, contiguous, whole

__all__ = ["unrolled"]

COPY: Expr = ("in", 0)


def unrolled(program: Program) -> Program:
    """Return the program with its loops unrolled; the outputs of the loops stay the same arrays."""
    steps: list[Step] = []
    for step in program.steps:
        steps += _Unroller(step).steps() if isinstance(step, Loop) else [step]
    return replace(program, steps=steps)


class _Unroller:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.new_steps: list[Compute | Assemble] = []
        self.rows: dict[int, list[Array | None]] = {}  # by the id of an output: the array of each row
        self.now: dict[int, Array] = {}  # by the id of an array of the loop: its copy for this iteration
        self.numbers = count(1)

    def steps(self) -> list[Compute | Assemble]:
        loop = self.loop
        for output in loop.outputs:
            rows, start = loop.initial_rows(output), loop.count if loop.backward else 0
            self.rows[id(output.out)] = [None] * (rows + loop.count)
            for row in range(rows):
                self.rows[id(output.out)][start + row] = self.initial_row(output.part, output.initial, row)
        for iteration in reversed(range(loop.count)) if loop.backward else range(loop.count):
            for step in loop.steps:
                self.step(step, iteration)
            for output in loop.outputs:
                self.rows[id(output.out)][loop.first_row(output) + iteration] = self.now[id(output.part)]
        for _, out, _ in loop.outputs:
            rows_made = [row for row in self.rows[id(out)] if row is not None]
            self.new_steps += _end_to_end(out, rows_made)
        return self.new_steps

    def new(self, like: Array) -> Array:
        return replace(like, name=f"{like.name}_{next(self.numbers)}", role="value", slice=None)

    def initial_row(self, part: Array, initial: Array | None, row: int) -> Array:
        out = self.new(part)
        operands = []
        if initial is not None:
            batch = (int(initial.batched),) * part.batched
            operands = [Access(initial, row * part.size, (*batch, *contiguous(part.cell_shape)))]
        self.new_steps.append(Compute(out, out.shape, operands, COPY if operands else ZERO))
        return out

    def step(self, step: Compute | Assemble, iteration: int) -> None:
        out = self.now[id(step.out)] = self.new(step.out)
        if isinstance(step, Compute):
            operands = [self.read(access, iteration) for access in step.operands]
            self.new_steps.append(replace(step, out=out, operands=operands))
            return
        parts = []
        for access, part in step.parts:
            source = self.now.get(id(part), part)
            if part.slice is not None:
                source = self.new(part)
                self.new_steps.append(Compute(source, source.shape, [self.read(whole(part), iteration)], COPY))
            parts.append((replace(self.chosen(access, iteration), array=out), source))
        self.new_steps.append(Assemble(out, parts))

    def chosen(self, access: Access, iteration: int) -> Access:
        """Return an access whose index reads the integers of an iteration."""
        index, seen = access.index, access.index and access.index.array.slice
        if not index or not seen:
            return access
        base = index.base + seen.base + seen.step * iteration
        return replace(access, index=replace(index, array=seen.array, base=base))

    def read(self, access: Access, iteration: int) -> Access:
        access = self.chosen(access, iteration)
        array = access.array
        piece = array.slice
        if piece is None:
            return replace(access, array=self.now.get(id(array), array))
        start, rows = piece.base + piece.step * iteration, self.rows.get(id(piece.array))
        if rows is None:
            table = None if access.table is None else access.table + start
            return replace(access, array=piece.array, base=access.base + start, table=table)
        first, number = start // piece.step, array.size // piece.step
        seen = [row for row in rows[first : first + number] if row is not None]
        if number == 1:
            return replace(access, array=seen[0])
        rows_joined = self.new(array)
        self.new_steps += _end_to_end(rows_joined, seen)
        return replace(access, array=rows_joined)


def _end_to_end(out: Array, rows: list[Array]) -> list[Compute | Assemble]:
    """Store rows end to end, and give the result its shape."""
    flat = out
    if len(out.cell_shape) > 1:
        flat = replace(out, name=f"{out.name}_rows", role="value", shape=(*out.shape[: int(out.batched)], out.size))
    laid = Assemble.end_to_end(flat, rows)
    return [laid] if flat is out else [laid, Compute(out, out.shape, [Access(flat, 0, out.strides)], COPY)]
