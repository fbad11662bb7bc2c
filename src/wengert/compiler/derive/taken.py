"""Keeps derivatives out of the sides of choices that are not taken.

The cotangent of a side that `where` does not take is 0, but 0 times an infinite partial derivative is nan. So what an
operation contributes is selected, if only sides of choices read it, and if its partial may be infinite or nan. Whether
its value is taken is the "or" over its readers, which a reverse sweep computes as a sum: each array in question gets a
companion, whose cotangent counts the readers that take the element. Companions are read by companions of the steps that
read the arrays; these steps never run, and are removed after the sweep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.compiler.ir import (
    CHOICES,
    COMPARISONS,
    LEAVES,
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
    fold,
    inputs,
    is_choice,
    parts,
)

__all__ = ["Companions"]

ALWAYS: frozenset[Any] = frozenset(["always"])
# Operations whose value is finite if their operands are, and not huge.
FINITE = {"add", "sub", "mul", "neg", "square", "relu", "abs", "sign", "minimum", "maximum", "clip", "floor", "round"}
FINITE |= {"sin", "cos", "tanh", "atan", "asinh", "cbrt", "hypot", "norm", "stop_gradient", "leaky_relu", "softplus"}
FINITE |= {"sigmoid", "logistic_pdf", "logsigmoid", "gelu", "silu", "erf", "erfc", "gaussian", "sinc", "j0", "j1"}
FINITE |= {"normal_cdf", "normal_pdf", *CHOICES, *COMPARISONS, *LEAVES}
LINEAR = {"add", "sub", "neg", "stop_gradient", *CHOICES, *COMPARISONS, *LEAVES}
STEEP = {"cbrt", "hypot", "norm"}  # of these, the derivatives may be infinite or nan
Sides = frozenset[Any]  # pairs of a choice and its side, of which one is taken where the value is; or ALWAYS


def _may_be_infinite(expr: Expr) -> bool:
    """Return True if an expression may be infinite or nan although its operands are finite."""

    def generates(part: Expr) -> bool:
        if part[0] == "div":
            return bool(part[2][0] != "const" or part[2][1] == 0.0)
        if part[0] == "pow":
            return bool(part[2][0] != "const" or part[2][1] < 0.0 or part[2][1] % 1.0 != 0.0)
        return part[0] not in FINITE

    return any(map(generates, parts(expr)))


def _cells(access: Access, step: Compute) -> Any:
    """Return the cells of an array that a step reads at every point of some axes; none if it is not known which."""
    if access.index is not None or step.mask is not None:
        return np.zeros(0, np.int64)
    own = [i for i in range(len(step.axes)) if access.depends_on(i, step.axes)]
    return np.unique(access.permuted(own, step.axes).places([step.axes[i] for i in own]))


class Companions:
    """The companions of arrays that only sides of choices read.

    Args:
        program: the program that is differentiated; companions are added to it, until `remove`, if it has choices.

    Attributes:
        of: the companion of an array, by its id.
        original: by the id of a companion, the id of its array.
        always: the ids of the companions of arrays that are always taken.
        suspect: the ids of the arrays that may be infinite or nan.
        counts: by the id of an array the cotangent of its companion, once it is known.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.of: dict[int, Array] = {}
        self.original: dict[int, int] = {}
        self.always: set[int] = set()
        self.suspect: set[int] = set()
        self.counts: dict[int, Any] = {}
        self.sides: dict[int, Sides] = defaultdict(frozenset)  # by the id of an array
        self._outer: dict[int, Sides] = {}  # by the id of a choice: those of its own value
        self._parts: dict[int, list[Any]] = defaultdict(list)  # by the id of an array: cells that are always taken
        self._steps: set[int] = set()
        if program.has_choices:
            self._add()

    def _add(self) -> None:
        self.sides[id(self.program.outputs["out"])] = ALWAYS
        for step in reversed(self.program.steps):
            self._take(step)
        self._suspect()
        masked = {
            id(step.out)
            for step in self.program.each_step()
            if isinstance(step, Compute) and self._is_optional(step.out) and self._has_fragile_slope(step)
        }
        if not masked:
            return
        wanted = self._readers(masked)
        self.program.steps = [each for step in self.program.steps for each in self._accompanied(step, wanted)]

    def remove(self) -> None:
        """Remove what was added to the program."""
        if self._steps:
            self.program.steps = [step for step in self.program.steps if id(step) not in self._steps]
            for step in self.program.steps:
                if isinstance(step, Loop):
                    step.steps = [each for each in step.steps if id(each) not in self._steps]
                    step.outputs = [output for output in step.outputs if id(output.out) not in self.original]

    # -- which sides read an array ------------------------------------------------------------------------------------

    def _is_optional(self, array: Array) -> bool:
        return bool(self.sides[id(array)]) and self.sides[id(array)] is not ALWAYS

    def _take(self, step: Any) -> None:
        """Tell the arrays that a step reads which sides read them; its own readers have told it."""
        if isinstance(step, Compute):
            for k, sides in self._operand_sides(step):
                access = step.operands[k]
                cells = None if access.is_whole(step.axes) and step.mask is None else _cells(access, step)
                if cells is not None and len(cells) < access.array.size:
                    self._parts[id(access.array)] += [cells] if sides is ALWAYS else []
                    sides = frozenset([(id(step), -k)])  # other cells are read by other sides
                self._join(access.array, sides)
        elif isinstance(step, Assemble):
            for _, part in step.parts:
                self._join(part, self.sides[id(step.out)])
        else:
            self._take_loop(step)

    def _take_loop(self, loop: Loop) -> None:
        """Do so for a loop. What iterations read is always taken if the last one is, and each that takes its own result
        takes that of the one before.
        """
        outside = {id(output.out): self.sides[id(output.out)] for output in loop.outputs}
        always = {id(output.out) for output in loop.outputs if self._takes_last(loop, output)}
        carried: dict[int, Sides] = {}
        inner = [*loop.slices, *[step.out for step in loop.steps]]
        while True:
            self.sides.update({id(array): frozenset() for array in inner})
            for part, out, _ in loop.outputs:
                self._join(part, ALWAYS if id(out) in always else outside[id(out)] | carried.get(id(out), frozenset()))
            for step in reversed(loop.steps):
                self._take(step)
            before, carried = carried, {}
            for piece in loop.slices:
                carried[id(piece.origin)] = carried.get(id(piece.origin), frozenset()) | self.sides[id(piece)]
            kept = {out for out, sides in carried.items() if sides >= ALWAYS}
            broken = {out for out in always - kept if outside[out] is not ALWAYS}
            if not broken and carried == before:
                break
            always -= broken
            carried = {} if broken else carried
        for part, out, initial in loop.outputs:
            self.sides[id(out)] = ALWAYS if id(out) in always else self.sides[id(part)]
            if initial is not None:
                self._join(initial, outside[id(out)] | carried.get(id(out), frozenset()))
        for piece in loop.slices:
            seen = piece.slice
            if seen is not None and id(seen.array) not in outside and self.sides[id(piece)]:
                is_whole = seen.step == piece.size and loop.count * piece.size == seen.array.size
                self._join(seen.array, self.sides[id(piece)] if is_whole else frozenset([(id(loop), id(piece))]))

    def _takes_last(self, loop: Loop, output: LoopOutput) -> bool:
        """Return True if the last iteration's result is always taken by steps after the loop."""
        if self.sides[id(output.out)] is ALWAYS:
            return True
        size = output.part.size
        last = (loop.first_row(output) + (0 if loop.backward else loop.count - 1)) * size
        return any(np.isin(np.arange(last, last + size), cells).all() for cells in self._parts[id(output.out)])

    def _join(self, array: Array, sides: Sides) -> None:
        """Unite the sides that read an array; if both sides of a choice do, it is read where the choice is."""
        united = self.sides[id(array)] | sides
        for choice, _ in [side for side in united if side != "always"]:
            if {(choice, 2), (choice, 3)} <= united:
                united |= self._outer[choice]
        self.sides[id(array)] = ALWAYS if united >= ALWAYS else united

    def _operand_sides(self, step: Compute) -> Iterator[tuple[int, Sides]]:
        own = self.sides[id(step.out)]
        if not own:
            return
        sides: dict[int, Sides] = defaultdict(frozenset, {id(step.expr): own})
        for part in reversed(parts(step.expr)):
            if part[0] == "in":
                if sides[id(part)]:
                    yield part[1], sides[id(part)] if not sides[id(part)] >= ALWAYS else ALWAYS
            elif part[0] in LEAVES or part[0] in COMPARISONS or part[0] == "stop_gradient":
                continue
            elif is_choice(part):
                self._outer[id(part)] = sides[id(part)]
                for place in (2, 3):
                    sides[id(part[place])] |= {(id(part), place)}
            else:
                for x in part[2 if part[0] in CHOICES else 1 :]:
                    sides[id(x)] |= sides[id(part)]

    def _passes_to(self, step: Any) -> set[int]:
        """Return the ids of the arrays that a step passes its cotangent to."""
        if not self.sides[id(step.out)]:
            return set()
        if isinstance(step, Assemble):
            return {id(part.origin) for _, part in step.parts}
        return {id(step.operands[k].array.origin) for k, _ in self._operand_sides(step)}

    # -- what may be infinite -----------------------------------------------------------------------------------------

    def _suspect(self) -> None:
        """Find the arrays that may be infinite or nan: what a condition is computed from, element by element, may be
        anything.
        """
        steps = [step for step in self.program.each_step() if isinstance(step, Compute)]
        made = {id(step.out): step for step in steps if not step.reduce}
        tested = [
            step.operands[k].array
            for step in steps
            for part in parts(step.expr)
            if is_choice(part)
            for k in inputs(part[1])
        ]
        while tested:
            array = tested.pop()
            if id(array.origin) not in self.suspect:
                self.suspect.add(id(array.origin))
                tested += made[id(array)].reads if id(array) in made else ()
        count = -1
        while count < len(self.suspect):
            count = len(self.suspect)
            for step in self.program.steps:
                for each in step.steps if isinstance(step, Loop) else [step]:
                    is_source = isinstance(each, Compute) and _may_be_infinite(each.expr)
                    if is_source or any(id(array.origin) in self.suspect for array in each.reads):
                        self.suspect.add(id(each.out))
                for part, out, initial in step.outputs if isinstance(step, Loop) else ():
                    if id(part) in self.suspect or id(initial) in self.suspect:
                        self.suspect.add(id(out))

    def is_fragile(self, expr: Expr, operands: Sequence[Access]) -> bool:
        """Return True if an expression may be infinite or nan."""
        return _may_be_infinite(expr) or any(id(operands[k].array.origin) in self.suspect for k in inputs(expr))

    def _has_fragile_slope(self, step: Compute) -> bool:
        """Return True if a step's partial derivatives may be infinite or nan."""
        names = {part[0] for part in parts(step.expr)}
        if names <= LINEAR and step.reduce in ("", "sum"):
            return False
        return not names.isdisjoint(STEEP) or self.is_fragile(step.expr, step.operands)

    # -- companions ---------------------------------------------------------------------------------------------------

    def _readers(self, wanted: set[int]) -> set[int]:
        """Return the ids of some arrays and of all those that are computed from them and not always taken."""
        count = -1
        while count < len(wanted):
            count = len(wanted)
            for step in self.program.steps:
                for each in step.steps if isinstance(step, Loop) else [step]:
                    if self._is_optional(each.out) and not wanted.isdisjoint(self._passes_to(each)):
                        wanted.add(id(each.out))
                for part, out, initial in step.outputs if isinstance(step, Loop) else ():
                    if {id(part), id(initial), id(out)} & wanted and self._is_optional(out):
                        wanted |= {id(part), id(out)}
        return wanted

    def _accompanied(self, step: Any, wanted: set[int]) -> list[Any]:
        """Return a step, and its companion if that reads companions."""
        if isinstance(step, Loop):
            step.steps = [each for inner in step.steps for each in self._accompanied(inner, wanted)]
            for part, out, initial in [*step.outputs]:
                if id(out) in wanted:
                    first = None if initial is None or id(initial) not in wanted else self._companion(initial)
                    step.outputs.append(LoopOutput(self._companion(part), self._companion(out), first))
            return [step]
        if id(step.out) not in wanted and wanted.isdisjoint(self._passes_to(step)):
            return [step]
        out = self._companion(step.out)
        if id(step.out) not in wanted:
            self.always.add(id(out))
        if isinstance(step, Assemble):
            shares = [(access, part) for access, part in step.parts if id(part.origin) in wanted]
            own: Any = Assemble(out, [(replace(x, array=out), self._companion(part)) for x, part in shares])
        else:
            operands, expr = self._counted(step, wanted)
            own = Compute(out, step.axes, operands, expr or ZERO, "sum" if step.reduce else "", step.mask)
        self._steps.add(id(own))
        return [step, own]

    def _counted(self, step: Compute, wanted: set[int]) -> tuple[list[Access], Expr | None]:
        """Return what the companion of a step computes: of each operation the sum over its operands."""
        operands = [*step.operands]
        places: dict[int, Expr] = {}
        for k, access in enumerate(step.operands):
            if id(access.array.origin) in wanted:
                places[k] = ("in", len(operands))
                operands.append(replace(access, array=self._companion(access.array)))

        def combine(part: Expr, inner: list[Expr | None]) -> Expr | None:
            if part[0] == "in":
                return places.get(part[1])
            if part[0] in LEAVES or part[0] in COMPARISONS or part[0] == "stop_gradient":
                return None
            terms = [x for x in inner[1 if part[0] in CHOICES else 0 :] if x is not None]
            if part[0] in CHOICES and terms:
                return (part[0], part[1], *[x or ZERO for x in inner[1:]])
            total = terms[0] if terms else None
            for term in terms[1:]:
                total = ("add", total, term)
            return total

        return operands, fold(step.expr, combine)

    def _companion(self, array: Array) -> Array:
        if id(array) not in self.of:
            seen = array.slice and Slice(self._companion(array.slice.array), array.slice.base, array.slice.step)
            self.of[id(array)] = Array(f"{array.name}_taken", array.shape, array.role if seen else "value", slice=seen)
            self.original[id(self.of[id(array)])] = id(array)
        return self.of[id(array)]
