"""The reverse sweep of the steps of a Program, by one rule.

The cotangent of each operand of a step receives, through the access that read it, the sum of ``g * d expr / d operand``
over the axes that the access does not depend on: again a Compute. Sums over the batch, the adjoints of broadcasts and
both adjoints of a matrix product are special cases.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from wengert.compiler.derive.taken import Companions
from wengert.compiler.ir import (
    BATCH,
    ONE,
    SYMBOLS,
    ZERO,
    Access,
    Array,
    Assemble,
    Compute,
    Expr,
    Numbering,
    Program,
    compact,
    cotangents,
    has_mask,
    rename,
    rewrite_masks,
    whole,
)

__all__ = ["Sweep", "covers"]

ADDENDS = 16  # the most parts that one step adds


@dataclass
class Sweep:
    """The cotangents of the arrays of some steps, and the steps that compute them."""

    forward: Program
    wanted: tuple[str, ...]
    program: Program = field(default_factory=Program)
    parts: dict[int, list[tuple[Access, Array]]] = field(default_factory=dict)
    constant: dict[int, Expr] = field(default_factory=dict)  # by the id of an array: its value, if all cells are equal
    needed: set[int] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)
    part_of: dict[int, Array] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=lambda: SYMBOLS)  # see `cotangents`
    again: bool = False  # likewise
    numbering: Numbering = field(default_factory=Numbering)  # of expressions that may be shared
    only: set[int] | None = None  # the arrays that receive cotangents from a step; None for all
    companions: Companions = None  # type: ignore[assignment]  # a sweep begins with them

    def array(self, of: Array, shape: tuple[int, ...]) -> Array:
        number = self.names[of.name] = self.names.get(of.name, -1) + 1
        new = Array(f"{self.name_of(of)}_{number}", shape, "value")
        self.program.arrays.append(new)
        self.part_of[id(new)] = of
        return new

    def name_of(self, array: Array) -> str:
        """Return the name of an array's cotangent, or of a companion's count."""
        return array.name if id(array) in self.companions.original else f"d{array.name}"

    def add(self, of: Array, axes: tuple[int, ...], operands: list[Access], expr: Expr, rank: int = -1) -> Array:
        """Add a step that computes a part of an array's cotangent, summed over the axes after the first `rank`."""
        rank = len(axes) if rank < 0 else rank
        out = self.array(of, axes[:rank])
        self.program.steps.append(Compute(out, axes, operands, expr, "sum" if rank < len(axes) else ""))
        return out

    def finish(self, array: Array) -> Expr | Array | None:
        """Return the cotangent of an array from the parts that its readers contributed; None if there are none."""
        parts = self.parts.pop(id(array), [])
        if not parts:
            return None
        whole_parts: list[Array] = []
        others: list[tuple[Access, Array]] = []
        is_count = id(array) in self.companions.original
        for access, part in parts:
            if covers(access, part) or (is_count and part.shape == array.shape and array.size == 1):
                whole_parts.append(part)
            else:
                others.append((access, part))
        if is_count:  # a reader counts as much as two
            whole_parts = list({id(part): part for part in whole_parts}.values())
        if len(whole_parts) == 1 and not others and whole_parts[0].shape == array.shape:
            if self.part_of.get(id(whole_parts[0])) is array:
                whole_parts[0].name = self.name_of(array)
            return self.constant.get(id(whole_parts[0]), whole_parts[0])
        if whole_parts:
            total = self.total(array, whole_parts[:ADDENDS])
            for at in range(ADDENDS, len(whole_parts), ADDENDS - 1):
                total = self.total(array, [total, *whole_parts[at : at + ADDENDS - 1]])
            if not others:
                total.name = self.name_of(array)
                return total
            others.insert(0, (whole(array), total))
        out = self.array(array, array.shape)
        out.name = self.name_of(array)
        for access, _ in others:
            access.array = out
        self.program.steps.append(Assemble(out, others))
        return out

    def total(self, array: Array, parts: list[Array]) -> Array:
        """Add parts that each cover an array, constant ones as numbers."""
        reads = [Access(part, 0, array.strides) for part in parts if id(part) not in self.constant]
        number = count()
        terms = [self.constant.get(id(part)) or ("in", next(number)) for part in parts]
        expr: Expr = terms[0]
        for term in terms[1:]:
            expr = ("add", expr, term)
        return self.add(array, array.shape, reads, expr)

    def count(self, array: Array, gradient: Expr | Array) -> None:
        """Note the cotangent of a companion that is not always taken: its array's number of readers that take it."""
        companions = self.companions
        if id(array) in companions.original and id(array) not in companions.always:
            companions.counts[companions.original[id(array)]] = gradient

    def asks(self, array: Array) -> bool:
        return id(array) in self.needed and (self.only is None or id(array) in self.only)

    def assemble(self, step: Assemble, gradient: Expr | Array) -> None:
        for access, part in step.parts:
            if not self.asks(part):
                continue
            if isinstance(gradient, tuple):
                received = self.add(part, part.shape, [], gradient)
            else:
                over = (BATCH,) if gradient.batched and not part.batched else ()  # sum over the examples
                read = Access(gradient, access.base, access.strides + (1,) * len(over), access.table, access.index)
                received = self.add(part, part.shape + over, [read], ("in", 0), len(part.shape))
            self.give(part, whole(part), received)

    def compute(self, step: Compute, gradient: Expr | Array) -> None:
        place = len(step.operands)
        operands = list(step.operands)
        reach: Expr = gradient if isinstance(gradient, tuple) else ("in", place)
        absent = (0,) * len(step.reduced)
        own = Access(step.out, 0, step.out.strides + absent)
        if isinstance(gradient, Array):
            strides = own.strides if gradient.shape == step.out.shape else (0,) * len(step.axes)
            operands += [Access(gradient, 0, strides), own]
        else:
            operands += [own, own]
        if step.reduce in ("max", "min"):
            exprs, operands = self.extreme(step, reach, operands)
        else:
            out = None if step.reduce else ("in", place + 1)
            nonnegative, has_choices = lambda k: operands[k].array.nonnegative, self.forward.has_choices
            exprs = cotangents(step.expr, reach, out, nonnegative, self.rules, has_choices, self.again)
            if step.mask is not None:
                exprs = {k: ("where", ("mask", step.mask), expr, ZERO) for k, expr in exprs.items()}
        count = self.companions.counts.get(id(step.out))
        if isinstance(count, Array):
            operands = [*operands, replace(own, array=count)]
            is_taken: Expr = ("ne", ("in", len(operands) - 1), ZERO)
            fragile = [k for k, expr in exprs.items() if self.companions.is_fragile(expr, operands)]
            exprs |= {k: ("where", is_taken, exprs[k], ZERO) for k in fragile}
        shared: dict[Any, Array] = {}
        asked = [k for k in exprs if self.asks(step.operands[k].array)]
        missing = {k: _missing(step.operands[k], step.axes) for k in asked}
        for k in sorted(asked, key=lambda k: len(missing[k])):
            self.contribute(step, k, operands, exprs[k], missing[k], shared if any(missing.values()) else None)

    def extreme(self, step: Compute, reach: Expr, operands: list[Access]) -> tuple[dict[int, Expr], list[Access]]:
        """Share the cotangent of a maximum or minimum evenly among the operands that attain it."""
        out: Expr = ("in", 1)
        hit: Expr = ("where", ("eq", ("in", 0), out), ONE, ZERO)
        own = operands[2]
        ties = self.array(step.out, step.out.shape)
        self.program.steps.append(Compute(ties, step.axes, [operands[0], own], hit, "sum", step.mask))
        share: Expr = ("div", ("mul", rename(hit, {0: 0, 1: 2}), reach), ("in", 3))
        if step.mask is not None:
            share = ("where", ("mask", step.mask), share, ZERO)
        return {0: share}, [*operands, Access(ties, 0, own.strides)]

    def contribute(
        self,
        step: Compute,
        k: int,
        operands: list[Access],
        expr: Expr,
        missing: list[int],
        shared: dict[Any, Array] | None,
    ) -> None:
        """Pass to operand k of a step its part of the cotangent.

        Args:
            step: the step.
            k: the number of the operand.
            operands: what `expr` reads.
            expr: the cotangent, element by element.
            missing: the axes that the operand does not depend on.
            shared: elementwise parts of other operands, to reuse; None if no operand is summed.
        """
        access, axes = step.operands[k], step.axes
        own_axes = [i for i in range(len(axes)) if i not in missing]
        if access.table is None and access.index is None:  # in the array's memory order
            own_axes.sort(key=lambda i: (axes[i] != BATCH, -abs(access.strides[i])))
        order = own_axes + missing
        expr, operands = compact(expr, operands)
        reads = [x.permuted(order, axes) for x in operands]
        masked = has_mask(expr)
        if masked:
            expr = _with_masks(expr, order, axes)
        shape = tuple([axes[i] for i in order])
        through = access.permuted(own_axes, axes)
        if expr == ("in", 0) and not missing and reads[0].is_whole(shape):
            self.give(access.array, through, reads[0].array)
            return
        if shared is None or masked or any(x.table is not None or x.index is not None for x in reads):
            part = self.add(access.array, shape, reads, expr, len(own_axes))
        else:
            key = self.numbering.of(expr), tuple([(id(x.array), x.base, x.strides) for x in reads]), tuple(order)
            if missing and key in shared:  # another operand has the same elements
                reads, expr = [Access(shared[key], 0, shared[key].strides)], ("in", 0)
            part = self.add(access.array, shape, reads, expr, len(own_axes))
            if not missing:
                shared[key] = part
        if expr[0] == "const" and not missing:
            self.constant[id(part)] = expr
        self.give(access.array, through, part)

    def give(self, array: Array, through: Access, part: Array) -> None:
        self.parts.setdefault(id(array), []).append((through, part))


def _missing(access: Access, axes: tuple[int, ...]) -> list[int]:
    return [i for i in range(len(axes)) if not access.depends_on(i, axes)]


def covers(access: Access, part: Array) -> bool:
    """Return True if a part fills its array in memory order."""
    return (
        access.base == 0
        and part.size == access.array.size
        and part.batched == access.array.batched
        and access.is_in_order(part)
    )


def _with_masks(expr: Expr, order: list[int], axes: tuple[int, ...]) -> Expr:
    """Permute the axes of the masks in an expression."""
    plain = [i for i in range(len(axes)) if axes[i] != BATCH]
    permutation = [plain.index(i) for i in order if axes[i] != BATCH]
    return rewrite_masks(expr, len(plain), lambda mask: mask.transpose(permutation))
