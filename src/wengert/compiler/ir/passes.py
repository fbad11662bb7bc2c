"""Passes over a Program, which change how results are computed, and not their values.

They propagate copies, drop dead steps, merge equal ones, compute once what is the same for all examples, inline
elementwise steps into their only reader, and leave padding undefined where no reader needs zeros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from wengert.compiler.ir.expression import ZERO, Expr, Numbering, has_mask, operations, rename, rewrite, times
from wengert.compiler.ir.program import BATCH, Access, Array, Assemble, Compute, Loop, Program, Step, contiguous, whole
from wengert.compiler.ir.strides import fit_strides

__all__ = ["compute_once", "drop_unread", "fuse", "inline", "merge_equal_steps", "take_factors_out", "unmask"]

X: Expr = ("in", 0)
LARGEST = 48  # operations and operands of an expression that others are inlined into


def fuse(program: Program) -> None:
    """Make the readers of a copy read its source, then drop the steps that nothing reads."""
    copies: dict[int, Compute] = {}
    _take_from_parts(program)
    for step in program.steps:
        if isinstance(step, Loop):
            continue
        if isinstance(step, Assemble):
            for n, (access, part) in enumerate(step.parts):
                copy = copies.get(id(part))
                if copy is not None and copy.operands[0].is_whole(part.shape):
                    step.parts[n] = access, copy.operands[0].array
            continue
        step.operands = [_through(x, step.axes, copies) for x in step.operands]
        if _is_copy(step):
            copies[id(step.out)] = step
    _put_in_place(program)
    drop_unread(program)


def _put_in_place(program: Program) -> None:
    """Put the parts of an array where a copy has them, if it is the only reader and keeps each in order."""
    uses = Counter(map(id, (*program.outputs.values(), *program.gradients.values())))
    uses.update([id(array) for step in program.steps for array in step.reads])
    makers = {id(step.out): step for step in program.steps if isinstance(step, Assemble)}
    for n, step in enumerate(program.steps):
        if isinstance(step, Compute) and _is_copy(step) and step.out.mask is None and uses[id(step.reads[0])] == 1:
            maker = makers.get(id(step.reads[0]))
            parts = None if maker is None else _moved(maker, step)
            if parts is not None:
                program.steps[n] = makers[id(step.out)] = Assemble(step.out, parts)


def _moved(maker: Assemble, copy: Compute) -> list[tuple[Access, Array]] | None:
    """Return the parts of an array where a copy has them; None if it has some elsewhere, in part or twice."""
    cells = copy.operands[0].places(copy.axes)
    places = np.full(maker.out.size, -1)
    places[cells] = np.arange(len(cells))
    parts = []
    if maker.out.batched != copy.out.batched or maker.out.mask is not None or np.sum(places >= 0) < len(cells):
        return None
    for access, part in maker.parts:
        there = places[access.places(part.shape).reshape(part.cell_shape)]
        if access.index is not None or (there.min() < 0 <= there.max()):
            return None
        fit = fit_strides(there)
        if fit is None:
            return None
        if there.max() >= 0:
            lead = access.strides[: part.batched]
            parts.append((Access(copy.out, fit[0], (*lead, *fit[1])), part))
    return parts or None


def _take_from_parts(program: Program) -> None:
    """Copy a few elements of an assembled array from its parts: the last states of a loop need no array of all."""
    assembled: dict[int, Assemble] = {}
    places: dict[int, list[Any]] = {}  # of the elements of their parts, where they are asked for
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Assemble) and not step.out.batched and all(x.index is None for x, _ in step.parts):
            assembled[id(step.out)] = step
        taken: list[Step] = []
        if isinstance(step, Compute) and _is_copy(step) and not step.out.batched:
            maker = assembled.get(id(step.operands[0].array))
            taken = [] if maker is None else _taken(program, step, maker, places)
        steps += taken or [step]
    program.steps = steps


def _is_copy(step: Compute) -> bool:
    return not step.reduce and step.expr == X and step.operands[0].index is None


def _taken(program: Program, step: Compute, maker: Assemble, places: dict[int, list[Any]]) -> list[Step]:
    """Return the steps that copy elements from the parts; none if most are copied, or a part overwrites another."""
    size = sum(prod(part.shape) for _, part in maker.parts)
    if 2 * prod(step.axes) > size:
        return []
    if id(maker) not in places:
        places[id(maker)] = [access.places(part.shape) for access, part in maker.parts]
    if len(np.unique(np.concatenate(places[id(maker)]))) < size:
        return []
    cells = step.operands[0].places(step.axes)
    steps: list[Step] = []
    parts = []
    for number, ((_, part), part_cells) in enumerate(zip(maker.parts, places[id(maker)], strict=True)):
        order = np.argsort(part_cells)
        at = np.minimum(np.searchsorted(part_cells, cells, sorter=order), len(part_cells) - 1)
        here = np.flatnonzero(part_cells[order[at]] == cells)
        there = order[at[here]]
        if len(here):
            taken = Array(f"{step.out.name}_{number}", (len(here),) if len(here) > 1 else (), "value")
            program.arrays.append(taken)
            steps.append(Compute(taken, taken.shape, [_access(part, there.reshape(taken.shape))], X))
            parts.append((_access(step.out, here.reshape(taken.shape)), taken))
    return [*steps, Assemble(step.out, parts) if parts else Compute(step.out, step.axes, [], ZERO)]


def _access(array: Array, cells: Any) -> Access:
    """Return the access to some cells, by a stride if they lie at one."""
    fit = fit_strides(cells)
    return Access(array, 0, (0,), cells) if fit is None else Access(array, *fit)


def _through(access: Access, axes: tuple[int, ...], copies: dict[int, Compute]) -> Access:
    """Return the access to the source of a copy; the same access if there is none, or it is not read axis by axis."""
    copy = copies.get(id(access.array))
    if copy is None or access.table is not None or access.index is not None or access.base:
        return access
    source = copy.operands[0]
    if source.table is not None:
        return _through_table(access, axes, source)
    order = _order(access, axes)
    if order is None or len({k for k in order if k >= 0}) < len(copy.axes):
        return access
    strides = tuple([source.strides[k] if k >= 0 else 0 for k in order])
    return Access(source.array, source.base, strides)


def _through_table(access: Access, axes: tuple[int, ...], source: Access) -> Access:
    """Return the access to the source of a copy through a table, if all elements are read in order."""
    lead, table = int(axes[:1] == (BATCH,)), source.table
    assert table is not None
    shape = axes[lead:]
    whole_row = BATCH not in shape and access.strides[lead:] == contiguous(shape) and table.size == prod(shape)
    if not whole_row or access.strides[:lead] != (int(access.array.batched),) * lead:
        return access
    return Access(source.array, source.base, (*source.strides[:lead], *[0] * len(shape)), table.reshape(shape))


def inline(program: Program) -> None:
    """Write an elementwise step that one other reads, point by point, into the expression of that one: its numbers then
    stay in registers. What is computed, and in which order, does not change.
    """
    stay = {id(array) for array in (*program.outputs.values(), *program.gradients.values())}
    for step in program.steps:
        if isinstance(step, Loop):
            _inline(step.steps, {id(output.part) for output in step.outputs})
            stay.update(map(id, (*step.reads, *[array for each in step.steps for array in each.reads])))
    _inline(program.steps, stay)


def _inline(steps: list[Any], stay: set[int]) -> None:
    uses: dict[int, int] = {}
    for step in steps:
        for array in () if isinstance(step, Loop) else (*step.reads, *step.chosen_by):
            uses[id(array)] = uses.get(id(array), 0) + 1
    makers: dict[int, Compute] = {}
    gone: set[int] = set()
    for step in steps:
        if not isinstance(step, Compute) or has_mask(step.expr):
            continue
        if not step.reduce:
            step.operands, step.expr = _inlined(step, makers, gone)
            if uses.get(id(step.out)) == 1 and id(step.out) not in stay and step.out.mask is None:
                makers[id(step.out)] = step
    steps[:] = [step for step in steps if isinstance(step, Loop) or id(step.out) not in gone]


def _inlined(step: Compute, makers: dict[int, Compute], gone: set[int]) -> tuple[list[Access], Expr]:
    """Return the operands and the expression of a step with those of its operands' makers; note these as `gone`."""
    operands: list[Access] = []
    exprs: dict[int, Expr] = {}
    count = operations(step.expr) + len(step.operands)
    for k, access in enumerate(step.operands):
        maker = makers.get(id(access.array))
        order = _order(access, step.axes)
        if maker is not None and order is not None and sorted(order) == [*range(len(maker.axes))]:
            size = operations(maker.expr) + len(maker.operands)
            if count + size <= LARGEST and times(step.expr, k) == 1:
                names = {n: len(operands) + n for n in range(len(maker.operands))}
                operands += [x.permuted(order, maker.axes) for x in maker.operands]
                exprs[k] = rename(maker.expr, names)
                gone.add(id(maker.out))
                count += size
                continue
        exprs[k] = ("in", len(operands))
        operands.append(access)
    return operands, rewrite(step.expr, lambda leaf: exprs[leaf[1]] if leaf[0] == "in" else leaf)


def _order(access: Access, axes: tuple[int, ...]) -> list[int] | None:
    """Return for each axis of a reader the axis of the array that it runs along, -1 for none; None if it does not read
    the array axis by axis.
    """
    if access.table is not None or access.index is not None or access.base:
        return None
    array_axes = [*zip(access.array.strides, access.array.shape, strict=True)]
    pairs = [*zip(access.strides, axes, strict=True)]
    if any(pair[0] and pair not in array_axes for pair in pairs):
        return None
    return [array_axes.index(pair) if pair[0] else -1 for pair in pairs]


def merge_equal_steps(program: Program) -> None:
    """Let the readers of a step that computes what an earlier one has computed read that one."""
    numbering = Numbering()
    by_key: dict[Any, Array] = {}
    first: dict[int, Array] = {}  # by the id of an array that a later step makes
    in_loops = {id(array) for step in program.steps if isinstance(step, Loop) for array in step.reads}
    for step in program.steps:
        if isinstance(step, Loop):
            continue
        if isinstance(step, Assemble):
            step.parts = [(access, first.get(id(part), part)) for access, part in step.parts]
            key: Any = (step.out.shape, *[(_key(access), id(part)) for access, part in step.parts])
        else:
            step.operands = [replace(x, array=first.get(id(x.array), x.array)) for x in step.operands]
            number = numbering.of(step.expr)
            key = (step.out.shape, step.axes, step.reduce, number, _bytes(step.mask), *map(_key, step.operands))
            key = (*key, *[id(x.array) for x in step.operands])
        by_index = isinstance(step, Compute) and any(x.index is not None for x in step.operands)
        by_mask = step.out.mask is not None or (isinstance(step, Compute) and has_mask(step.expr))
        if id(step.out) in in_loops or by_index or by_mask:
            continue
        if by_key.setdefault(key, step.out) is not step.out:
            first[id(step.out)] = by_key[key]
    program.outputs = {name: first.get(id(array), array) for name, array in program.outputs.items()}
    drop_unread(program)


def compute_once(program: Program) -> None:
    """Compute once what is the same for all examples of a batch, such as products with a constant direction."""
    stay = {id(array) for array in (*program.outputs.values(), *program.gradients.values())}  # these have a batch
    shared: dict[int, Array] = {}
    for step in program.steps:
        if isinstance(step, Loop) or (isinstance(step, Compute) and BATCH in step.axes[1:]):
            stay.update(map(id, step.reads))
        elif isinstance(step, Assemble):  # each example may choose other cells
            stay.update(id(part) for access, part in step.parts if access.index is not None)
    for step in program.steps:
        if isinstance(step, Loop) or not step.out.batched or id(step.out) in stay:
            continue
        if not any(array.batched and id(array) not in shared for array in (*step.reads, *step.chosen_by)):
            shared[id(step.out)] = step.out
    for step in program.steps:
        if isinstance(step, Compute) and step.axes[:1] == (BATCH,):
            for access in step.operands:
                if id(access.array) in shared:
                    access.strides = (0, *access.strides[1:])
            if id(step.out) in shared:
                step.operands = [x.permuted(range(1, len(step.axes)), step.axes) for x in step.operands]
                step.axes = step.axes[1:]
        elif isinstance(step, Assemble):
            step.parts = [
                (x.permuted(range(1, len(x.strides)), part.shape), part) if id(part) in shared else (x, part)
                for x, part in step.parts
            ]
    for array in shared.values():
        array.shape = array.shape[1:]
        array.__post_init__()


def _key(access: Access) -> Any:
    return access.base, access.strides, _bytes(access.table)


def _bytes(x: Any) -> Any:
    return None if x is None else (x.shape, x.tobytes())


def take_factors_out(program: Program, before: Program) -> None:
    """Write the sum of ``a[i] * x[i, j]`` over j as a times the sum of x, if an earlier step computes that sum.

    The derivative of a softmax has this form.

    Args:
        program: a reverse sweep.
        before: the program that it differentiates.
    """
    steps = [step for step in (*before.steps, *program.steps) if isinstance(step, Compute)]
    makers = {id(step.out): step for step in steps}
    own = set(map(id, program.steps))
    sums: dict[tuple[int, tuple[int, ...]], Array] = {}  # by the array and the shape of the sum
    for step in steps:
        plain = step.reduce == "sum" and step.mask is None and step.expr in (X, ("neg", X))
        if not plain or not step.operands[0].is_whole(step.axes):
            continue
        array = step.operands[0].array
        split = _factor_and_sum(makers.get(id(array)), step, sums) if id(step) in own else None
        if split is not None:
            step.operands, step.axes, step.reduce = split, step.out.shape, ""
            step.expr = rewrite(step.expr, lambda leaf: ("mul", X, ("in", 1)))
        if step.expr[0] != "neg":
            sums[id(array), step.out.shape] = step.out
    drop_unread(program)


def _factor_and_sum(
    maker: Compute | None, step: Compute, sums: dict[tuple[int, tuple[int, ...]], Array]
) -> list[Access] | None:
    """Return accesses to the factor that all terms of a sum share, and to the known sum of the other factor."""
    if maker is None or maker.reduce or maker.expr not in (("mul", X, ("in", 1)), ("mul", ("in", 1), X)):
        return None
    for factor, rest in permutations(maker.operands):
        total = sums.get((id(rest.array), step.out.shape))
        varies = any(factor.depends_on(i, step.axes) for i in step.reduced)
        if total is not None and rest.is_whole(step.axes) and not varies:
            return [factor.permuted(range(len(step.out.shape)), step.axes), whole(total)]
    return None


def unmask(program: Program) -> None:
    """Leave the padding of an array undefined if no reader relies on its being 0.

    Sums without a mask of their own and Assembles rely on it. A product with a clean array, or a quotient of one, is
    clean by itself, up to 0 times infinity; such a result is not finite, so the engine computes it.
    """
    needs_zeros = {id(array) for array in program.outputs.values()}
    for step in program.steps:
        if isinstance(step, Assemble):
            needs_zeros.update(id(part) for _, part in step.parts)
        elif isinstance(step, Loop):
            needs_zeros.update(id(array) for array in step.reads)
        elif step.reduce and step.mask is None:
            needs_zeros.update(id(x.array) for x in step.operands)
    for step in reversed(program.steps):
        if (
            not isinstance(step, Compute)
            or step.out.mask is None
            or step.expr[0] != "where"
            or step.expr[1][0] != "mask"
        ):
            continue
        inner = step.expr[2]
        if id(step.out) not in needs_zeros:
            step.expr, step.out.clean = inner, False
            continue
        factor = _clean_factor(step, inner)
        if factor is not None:
            needs_zeros.add(id(factor))
            step.expr = inner


def _clean_factor(step: Compute, expr: Expr) -> Array | None:
    """Return an array with the same padding that makes a product or a quotient 0 there."""
    branches: tuple[Expr, ...] = expr[1:3] if expr[0] == "mul" else expr[1:2] if expr[0] == "div" else ()
    for branch in branches:
        if branch[0] == "in":
            access: Access = step.operands[branch[1]]
            mask = access.array.mask
            clean = mask is not None and access.array.clean and access.is_whole(step.axes)
            if clean and np.array_equal(mask, step.out.mask):
                return access.array
    return None


def drop_unread(program: Program, results: Iterable[Array] = ()) -> None:
    """Drop the steps that neither the outputs nor some other results need."""
    read = {id(array) for array in (*program.outputs.values(), *program.gradients.values(), *results)}
    live: list[Step] = []
    for step in reversed(program.steps):  # in reverse, so that the sources of a dropped step go too
        if isinstance(step, Loop):
            _drop_from_loop(step, read)
        if any(id(array) in read for array in step.makes):
            live.append(step)
            read.update(map(id, step.reads))
    program.steps = live[::-1]


def _drop_from_loop(loop: Loop, read: set[int]) -> None:
    """Drop the steps and outputs that neither other steps nor later iterations read."""
    by_out = {id(output.out): output for output in loop.outputs}
    needed = {id(output.part) for output in loop.outputs if id(output.out) in read}
    count = -1
    while count < len(needed):  # an array may be needed by the next iteration alone
        count = len(needed)
        for step in reversed(loop.steps):
            for array in step.reads if id(step.out) in needed else ():
                output = by_out.get(id(array.slice.array)) if array.slice else None
                needed.update([id(array), id(array if output is None else output.part)])
    loop.steps = [step for step in loop.steps if id(step.out) in needed]
    seen = {id(array.slice.array) for array in loop.slices if array.slice}
    loop.outputs = [output for output in loop.outputs if id(output.out) in read or id(output.out) in seen]
