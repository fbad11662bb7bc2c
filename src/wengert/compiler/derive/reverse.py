"""The reverse sweep of a Program, as a Program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from wengert.compiler.derive.directions import dependents
from wengert.compiler.derive.reverse_loop import ReverseLoop
from wengert.compiler.derive.sweep import Sweep
from wengert.compiler.derive.taken import Companions
from wengert.compiler.ir import ONE, Array, Compute, Expr, Loop, Program, fuse, take_factors_out, whole

__all__ = ["Reverse", "reverse"]


def reverse(
    program: Program, wanted: tuple[str, ...] = (), weighted: bool = False, fixed: Collection[str] = ()
) -> Program:
    """Return the program that differentiates the output "out" with respect to the parameters that are not `fixed` and
    the inputs `wanted`.

    It runs after `program` and reads its arrays. If the output is batched, its cotangent is one number, `seed`, for all
    examples: the derivatives are those of ``seed * out.sum()``. If `weighted`, the cotangent is an array like the
    output, batched or not: the derivatives are those of ``(seed * out).sum()``.
    """
    backward = Reverse(program, wanted, weighted=weighted, fixed=fixed).run()
    fuse(backward)
    take_factors_out(backward, program)
    return backward


@dataclass
class Reverse(Sweep):
    """A reverse sweep whose steps are not fused: see `reverse`.

    Args:
        seed: the cotangent of the output; None for 1, or for an array that a run is given.
        each: True for the derivatives of each example's own output with respect to the inputs `wanted` alone.
    """

    weighted: bool = False
    fixed: Collection[str] = ()
    seed: Array | None = None
    each: bool = False

    def run(self) -> Program:
        """Return the program of the sweep."""
        out = self.forward.outputs["out"]
        arrays = self.forward.arrays
        params = [] if self.each else [a for a in arrays if a.role == "param" and a.name not in self.fixed]
        sources = params + [a for a in arrays if a.role != "param" and a.name in self.wanted]
        self.companions: Companions = Companions(self.forward)
        self.needed: set[int] = dependents(self.forward.steps, map(id, sources)) | {*self.companions.original}
        if self.seed is None and not self.each and (out.batched or self.weighted):
            self.program.seed = self.seed = Array("seed", out.shape if self.weighted else (), "const")
        if self.seed is not None and out.cell_shape:
            self.give(out, whole(out), self.seed)
        if id(out) in self.needed:
            for step in reversed(self.forward.steps):
                if isinstance(step, Loop):
                    ReverseLoop(self, step).run()
                    continue
                if id(step.out) not in self.needed:
                    continue
                gradient = self.cotangent(step.out)
                if gradient is not None:
                    self.count(step.out, gradient)
                    if isinstance(step, Compute):
                        self.compute(step, gradient)
                    else:
                        self.assemble(step, gradient)
        self.companions.remove()
        for array in sources:
            gradient = self.cotangent(array)
            if isinstance(gradient, Array):
                self.program.gradients[array.name] = gradient
            elif gradient is not None:
                self.program.gradients[array.name] = self.add(array, array.shape, [], gradient)
        return self.program

    def cotangent(self, array: Array) -> Expr | Array | None:
        """Return the cotangent of an array: 1 or the seed for a scalar output, else what its readers contributed."""
        if id(array) in self.companions.always:
            return ONE
        if array is not self.forward.outputs["out"] or array.cell_shape:
            return self.finish(array)
        return ONE if self.seed is None else self.seed
