"""How NumPy writes an Access: a reshape, a slice, a transpose, and None where an axis is broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.compiler.ir.program import BATCH, Access, contiguous
from wengert.compiler.ir.strides import addresses

__all__ = ["view"]

Keep = Callable[[Any], str]  # gives a constant array a name


def view(access: Access, axes: Sequence[int], order: Sequence[int], keep: Keep) -> str:
    """The text of the array that an access reads, with these axes of its Compute in this order.

    Axes that the access does not depend on are broadcast: they become None, or nothing in front.
    """
    present = [i for i in order if access.depends_on(i, axes)]
    text = _gathered(access, axes, present, keep) if access.table is not None or access.index is not None else None
    if text is None:
        text, stored = _sliced(access, axes) or _gathered_affine(access, axes, keep)
        text += _transposed([stored.index(i) for i in present])
    lead = next((n for n, i in enumerate(order) if i in present), len(order))
    places = [":" if i in present else "None" for i in order][lead:]
    while places and places[-1] == ":":
        places.pop()
    return f"{text}[{', '.join(places)}]" if places else text


def _transposed(order: list[int]) -> str:
    if order == sorted(order):
        return ""
    if order == [1, 0]:
        return ".T"
    return f".transpose({', '.join(map(str, order))})"


def _sliced(access: Access, axes: Sequence[int]) -> tuple[str, list[int]] | None:
    """The array cut into the strides of the access, and which axes stand where; None if strides do not nest."""
    array = access.array
    moving = [i for i in range(len(axes)) if axes[i] != BATCH and access.strides[i]]
    moving.sort(key=lambda i: -access.strides[i])
    strides = [access.strides[i] for i in moving]
    if len(set(strides)) < len(strides) or (strides and strides[-1] < 0):
        return None
    own = contiguous(array.cell_shape)
    for cuts in (sorted({*own, *strides}, reverse=True), strides or [1]):
        found = _cut(access, axes, moving, list(cuts))
        if found is not None:
            return found
    if strides and strides[-1] != 1:
        return _cut(access, axes, moving, [*strides, 1])
    return None


def _cut(access: Access, axes: Sequence[int], moving: list[int], cuts: list[int]) -> tuple[str, list[int]] | None:
    array = access.array
    lengths, length = [], array.size
    for cut in cuts:
        if length % cut:
            return None
        lengths.append(length // cut)
        length = cut
    if length != 1:
        return None
    strides = {access.strides[i]: i for i in moving}
    rest, places, stored = access.base, [], []
    for cut, room in zip(cuts, lengths, strict=True):
        start, rest = divmod(rest, cut)
        if cut not in strides:
            if start >= room:
                return None
            places.append(str(start))
            continue
        axis = strides[cut]
        stop = start + axes[axis]
        if stop > room:
            return None
        stored.append(axis)
        places.append(":" if (start, stop) == (0, room) else f"{start or ''}:{'' if stop == room else stop}")
    text = array.name
    if tuple(lengths) != array.cell_shape and places:
        text += f".reshape({', '.join([*(['-1'] if array.batched else []), *map(str, lengths)])})"
    while places and places[-1] == ":":
        places.pop()
    if places:
        text += f"[{', '.join([*([':'] if array.batched else []), *places])}]"
    batch = [i for i in range(len(axes)) if axes[i] == BATCH and access.strides[i]]
    return text, batch + stored


def _gathered_affine(access: Access, axes: Sequence[int], keep: Keep) -> tuple[str, list[int]]:
    """Strides that do not nest: through a table."""
    moving = [i for i in range(len(axes)) if axes[i] != BATCH and access.strides[i]]
    table = addresses(access.base, tuple([access.strides[i] for i in moving]), tuple([axes[i] for i in moving]))
    batch = [i for i in range(len(axes)) if axes[i] == BATCH and access.strides[i]]
    return _flat(access, keep(table)), batch + moving


def _gathered(access: Access, axes: Sequence[int], present: list[int], keep: Keep) -> str:
    """An access through a table, its axes in the order asked for."""
    if access.index is not None:
        return _indexed(access, axes, present, keep)
    assert access.table is not None
    plain = [i for i in range(len(axes)) if axes[i] != BATCH]
    batch = [i for i in present if axes[i] == BATCH]
    table = access.table.transpose([plain.index(i) for i in present if axes[i] != BATCH])
    text = _flat(access, keep(np.ascontiguousarray(table)))
    if batch and present[0] != batch[0]:
        at = present.index(batch[0])
        text += f".transpose({', '.join(map(str, [*range(1, at + 1), 0, *range(at + 1, len(present))]))})"
    return text


def _flat(access: Access, table: str) -> str:
    array = access.array
    if array.batched:
        return f"{array.name}{'' if len(array.shape) == 2 else f'.reshape(-1, {array.size})'}[:, {table}]"
    return f"{array.name}{'' if len(array.shape) == 1 else '.reshape(-1)'}[{table}]"


def _indexed(access: Access, axes: Sequence[int], present: list[int], keep: Keep) -> str:
    """Places that are known only at run time: rows of a table, one of each row, or an address."""
    index, array = access.index, access.array
    assert index is not None
    own = Access(index.array, index.base, index.strides)
    moving = [i for i in present if access.strides[i] and axes[i] != BATCH]
    chosen = [i for i in present if own.depends_on(i, axes)]
    width = array.cell_shape[-1] if array.cell_shape else 1
    two = len(array.cell_shape) == 2 and access.base == 0 and not array.batched
    runs = [(access.strides[i], axes[i]) for i in moving]
    if two and index.step == width and present == chosen + moving and runs == [(1, width)]:  # whole rows
        return f"{array.name}[{view(own, axes, chosen, keep)}]"
    if two and index.step == 1 and present == chosen == moving and [s for s, _ in runs] == [width]:  # one of each row
        return f"{array.name}[np.arange({runs[0][1]}), {view(own, axes, chosen, keep)}]"
    places = view(own, axes, present, keep) + (f" * {index.step}" if index.step != 1 else "")
    if access.base or moving:
        strides, lengths = tuple([access.strides[i] for i in moving]), tuple([axes[i] for i in moving])
        shape = [axes[i] if i in moving else 1 for i in present]
        while shape and shape[0] == 1:
            shape.pop(0)
        places = f"{keep(addresses(access.base, strides, lengths).reshape(shape))} + {places}"
    if not array.batched:
        return f"{array.name}{'' if len(array.shape) == 1 else '.reshape(-1)'}[{places}]"
    examples = f"np.arange(len({array.name}))"
    if len(present) > 1:
        examples += f"[:{', None' * (len(present) - 1)}]"
    return f"{array.name}{'' if len(array.shape) == 2 else f'.reshape(-1, {array.size})'}[{examples}, {places}]"
