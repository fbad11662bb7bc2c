"""Forward mode for Programs: the tangents of all arrays, as further steps of the program.

The tangent of a step's output is the sum over its operands of ``d expr / d operand`` times the operand's tangent, which
is read through the same access: again a Compute. A loop carries tangents along with the numbers that it carries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wengert.compiler.derive.directions import dependents
from wengert.compiler.ir import (
    ONE,
    ZERO,
    Access,
    Array,
    Assemble,
    Compute,
    Expr,
    Loop,
    LoopOutput,
    Program,
    Slice,
    Step,
    compact,
    tangent,
)

__all__ = ["forward"]


def forward(program: Program, tangents: dict[int, Array], again: bool = False) -> dict[int, Array]:
    """Add to a program, in place, the steps that compute tangents.

    Args:
        program: the program.
        tangents: the tangents of some inputs or parameters, by the id of the array; each has that array's shape.
        again: whether the tangents are differentiated again.

    Returns:
        The tangents of all arrays that have one, by the id of the array. Others do not depend on these inputs.
    """
    sweep = _Forward(program, dict(tangents), again)
    program.steps = [each for step in program.steps for each in sweep.step(step)]
    return sweep.tangents


class _Forward:
    """The tangents of a program's arrays."""

    def __init__(self, program: Program, tangents: dict[int, Array], again: bool) -> None:
        self.program = program
        self.again = again
        self.tangents = tangents
        self.taken = {array.name for array in program.arrays}

    def array(self, of: Array, role: str = "value") -> Array:
        """Return a new array for the tangent of an array."""
        name, count = f"t{of.name}", 1
        while name in self.taken:
            count += 1
            name = f"t{of.name}_{count}"
        self.taken.add(name)
        array = Array(name, of.shape, role, mask=of.mask, clean=of.clean)
        if role == "value":
            self.program.arrays.append(array)
        return array

    def step(self, step: Step) -> list[Any]:
        """Return a step, and those that compute the tangent of what it makes."""
        if isinstance(step, Loop):
            self.loop(step)
            return [step]
        return [step, *(self.assemble(step) if isinstance(step, Assemble) else self.compute(step))]

    def assemble(self, step: Assemble) -> list[Step]:
        parts = [(access, self.tangents[id(part)]) for access, part in step.parts if id(part) in self.tangents]
        if not parts:
            return []
        out = self.tangent_of(step.out)
        return [Assemble(out, [(replace(access, array=out), part) for access, part in parts])]

    def tangent_of(self, array: Array) -> Array:
        """Return the tangent of what a step makes: a new array, or the one that a loop has announced."""
        if id(array) not in self.tangents:
            self.tangents[id(array)] = self.array(array)
        return self.tangents[id(array)]

    def compute(self, step: Compute) -> list[Step]:
        moving = [k for k, access in enumerate(step.operands) if id(access.array) in self.tangents]
        if not moving:
            return []
        count = len(step.operands)
        own = Access(step.out, 0, step.out.strides + (0,) * len(step.reduced))
        operands = [*step.operands, own]
        operands += [replace(step.operands[k], array=self.tangents[id(step.operands[k].array)]) for k in moving]
        along: dict[int, Expr] = {k: ("in", count + 1 + n) for n, k in enumerate(moving)}
        if step.reduce in ("max", "min"):
            return self.extreme(step, operands, along)
        out = None if step.reduce else ("in", count)
        expr = tangent(step.expr, along, out, lambda k: operands[k].array.nonnegative, self.again)
        if expr is None:
            return []
        mask = step.out.mask
        if mask is not None and step.out.clean and not step.reduce:
            expr = ("where", ("mask", mask), expr, ZERO)
        return [_compute(self.tangent_of(step.out), step, operands, expr, step.reduce)]

    def extreme(self, step: Compute, operands: list[Access], along: dict[int, Expr]) -> list[Step]:
        """Return the steps for a maximum or minimum, whose tangent is the mean of those of all that attain it."""
        hit: Expr = ("where", ("eq", ("in", 0), ("in", 1)), ONE, ZERO)
        ties, total = self.array(step.out), self.array(step.out)
        moved: Expr = ("where", ("eq", ("in", 0), ("in", 1)), along[0], ZERO)
        own = step.out.strides
        mean = Compute(self.tangent_of(step.out), step.out.shape, [Access(total, 0, own), Access(ties, 0, own)], ZERO)
        mean.expr = ("div", ("in", 0), ("in", 1))
        return [_compute(ties, step, operands, hit, "sum"), _compute(total, step, operands, moved, "sum"), mean]

    # -- loops --------------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> None:
        moving = dependents([loop], self.tangents)
        outputs = [output for output in loop.outputs if id(output.out) in moving]
        for output in outputs:
            self.tangents[id(output.out)] = self.array(output.out)
        for piece in loop.slices:
            seen = piece.slice
            assert seen is not None
            if id(seen.array) in self.tangents:
                piece_tangent = self.tangents[id(piece)] = self.array(piece, "slice")
                piece_tangent.slice = Slice(self.tangents[id(seen.array)], seen.base, seen.step)
        steps: list[Any] = []
        for step in loop.steps:
            steps += self.step(step)
        for part, out, initial in outputs:
            if id(part) not in self.tangents:  # only the initial rows have one
                steps.append(Compute(self.tangent_of(part), part.shape, [], ZERO))
            own = None if initial is None else self.tangents.get(id(initial))
            loop.outputs.append(LoopOutput(self.tangents[id(part)], self.tangents[id(out)], own))
        loop.steps = steps


def _compute(out: Array, step: Compute, operands: list[Access], expr: Expr, reduce: str) -> Compute:
    """Return a step over the axes of another one that reads those of these operands that its expression uses."""
    expr, operands = compact(expr, operands)
    return Compute(out, step.axes, operands, expr, reduce, step.mask if reduce else None)
