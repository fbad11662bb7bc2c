"""Steps that a Program does not need: copies are read through, and what nothing reads is dropped."""

from __future__ import annotations

from wengert.lifting.program import BATCH, Access, Array, Assemble, Compute, Program, contiguous

__all__ = ["fuse"]


def fuse(program: Program) -> None:
    """Let the readers of a copy read what it copies, then drop the steps that nothing reads."""
    copies: dict[int, Compute] = {}
    for step in program.steps:
        if not isinstance(step, Compute):
            continue
        step.operands = [_through(x, step.axes, copies) for x in step.operands]
        if not step.reduce and step.tree == ("in", 0) and step.operands[0].index is None:
            copies[id(step.out)] = step
    _drop_unread(program)


def _through(access: Access, axes: tuple[int, ...], copies: dict[int, Compute]) -> Access:
    """The access to what a copy copies; the same access if the copy is none, or is not read axis by axis."""
    copy = copies.get(id(access.array))
    if copy is None or access.table is not None or access.index is not None or access.base:
        return access
    own = contiguous(access.array.cell_shape)
    lead = int(access.array.batched)
    inner: list[int] = []  # for each axis of the reader, the axis of the copy that it runs along; -1 for none
    for length, stride in zip(axes, access.strides, strict=True):
        if not stride:
            inner.append(-1)
        elif length == BATCH:
            inner.append(0)
        else:
            which = [k for k, s in enumerate(own) if s == stride and access.array.cell_shape[k] == length]
            if not which:
                return access
            inner.append(which[0] + lead)
    if len({k for k in inner if k >= 0}) < len(copy.axes):
        return access
    source = copy.operands[0]
    strides = tuple([source.strides[k] if k >= 0 else 0 for k in inner])
    table = source.table
    if table is not None:
        return access
    return Access(source.array, source.base, strides)


def _drop_unread(program: Program) -> None:
    """Drop steps backwards, so that what only a dropped step read goes too."""
    read = {id(array) for array in (*program.outputs.values(), *program.gradients.values())}
    kept: list[Compute | Assemble] = []
    for step in reversed(program.steps):
        if id(step.out) in read:
            kept.append(step)
            used: list[Array] = (
                [x.array for x in step.operands] if isinstance(step, Compute) else [p for _, p in step.parts]
            )
            read.update(map(id, used))
    program.steps = kept[::-1]
