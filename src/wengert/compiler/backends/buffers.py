"""Finds arrays of a reverse sweep that can be donated: another array takes over their memory."""

from __future__ import annotations

from collections.abc import Callable

from wengert.compiler.ir import Access, Array, Assemble, Compute, Loop, Program, Step

__all__ = ["count_uses", "donated_arrays", "is_view"]


def is_view(step: Compute) -> bool:
    """Return True if a step only copies elements, so that NumPy may return a view."""
    return not step.reduce and step.expr[0] in ("in", "stop_gradient")


def count_uses(program: Program, back: Program | None) -> dict[int, int]:
    """Count by the id of an array how often it is used, twice where it is a part or a result."""
    uses: dict[int, int] = {}
    for part in filter(None, (program, back)):
        iterations = [step for loop in part.steps if isinstance(loop, Loop) for step in loop.steps]
        for step in [*iterations, *[step for step in part.steps if not isinstance(step, Loop)]]:
            count = 1 if isinstance(step, Compute) else 2
            for array in step.reads:
                uses[id(array.origin)] = uses.get(id(array.origin), 0) + count
        begins = [output.initial for loop in part.steps if isinstance(loop, Loop) for output in loop.outputs]
        for array in filter(None, begins):
            uses[id(array)] = uses.get(id(array), 0) + 2
        for array in (*part.outputs.values(), *part.gradients.values()):
            uses[id(array)] = uses.get(id(array), 0) + 2
    return uses


def donated_arrays(
    back: Program, uses: dict[int, int], is_new: Callable[[Compute], bool], is_in_place: Callable[[Access, Array], bool]
) -> tuple[dict[int, Array], set[int]]:
    """Find the arrays that are donated: their last reader is an Assemble whose first part they are, and they cover its
    output, which then takes over their memory under its own name, so that nothing is copied.

    Args:
        back: the reverse sweep.
        uses: by the id of an array how often it is used, twice where it is a part.
        is_new: returns True if a step makes an array of its own.
        is_in_place: returns True if a part is added through a view of the array in any layout. (Results of transposed
            arrays are transposed in memory, so that reshaping them copies.)

    Returns:
        By the ids of the donated arrays the arrays that take them over; and the ids of the arrays that must be
            materialized before.
    """
    donated: dict[int, Array] = {}
    must_materialize: set[int] = set()
    makers: dict[int, Compute] = {}
    readers: dict[int, list[Step]] = {}
    for step in back.steps:
        if isinstance(step, Assemble):
            access, part = step.parts[0]
            maker, before = makers.get(id(part)), readers.get(id(part), [])
            if (
                maker is not None
                and is_new(maker)
                and access.is_whole(part.shape)
                and part.shape == step.out.shape
                and step.reads.count(part) == 1
                and all(is_in_place(*other) for other in step.parts[1:])
                and all(isinstance(reader, Compute) and not is_view(reader) for reader in before)
                and uses[id(part)] == len(before) + 2  # no later reader, and no result
            ):
                donated[id(part)] = step.out
                must_materialize.update(id(array) for reader in before for array in reader.makes)
        elif isinstance(step, Compute):
            makers[id(step.out)] = step
        for array in step.reads:
            readers.setdefault(id(array), []).append(step)
    return donated, must_materialize
