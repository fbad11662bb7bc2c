"""A Loop as NumPy: memory for what is kept of each turn, and the turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from wengert.compiler.backends.indexing import Names
from wengert.compiler.backends.syntax import call, infix, item, method, path, written
from wengert.compiler.ir import Array, Assemble, Compute, Kept, Loop, Window

__all__ = ["Write", "indented", "row_kept", "rows_before", "turns"]

ALL = slice(None)


Write = Callable[[Sequence[Compute | Assemble], Mapping[int, Sequence[Any]]], list[str]]


def turns(loop: Loop, names: Names, uses: Mapping[int, int], write: Write) -> list[str]:
    """The lines of a loop.

    Args:
        loop: what is written.
        names: what arrays are called.
        uses: by the id of an array how often it is used; what nothing uses is not kept.
        write: the lines of some steps, where the rows are, by their ids, in which what they make is kept.
    """
    kept = [entry for entry in loop.kept if uses.get(id(entry.out))]
    lines = _memory(names, loop, kept)
    for window in loop.windows:
        assert window.window is not None
        names.stands_for[id(window)] = _seen(window.window, window.cell_shape, window.size, names)
    rows: dict[int, list[Any]] = {}
    for part, out, _ in kept:
        own = Window(out, loop.first_row(Kept(part, out)) * part.size, part.size)
        rows.setdefault(id(part), []).append(_seen(own, part.cell_shape, part.size, names))
    plain = {
        id(array): array for step in loop.steps for array in step.reads if array.role == "param" and not array.shape
    }
    for key in [key for key in plain if key not in names.plain]:  # a number is much faster than an array of one
        given = names.of(plain[key])
        names.stands_for[key] = path(names.free(f"{given.id}_"))
        lines.append(f"{names.stands_for[key].id} = {written(item(given, ()))}")
    names.plain.update(plain)
    count = call("range", loop.count)
    lines.append(f"for {names.counter().id} in {written(call('reversed', count) if loop.backward else count)}:")
    lines += [indented(line) for line in write(loop.steps, rows)]
    return lines


def indented(line: str) -> str:
    """A line of a turn; the shape behind it stays where it stands, if there is room."""
    text, mark, shape = line.rpartition("  # ")
    return f"    {text.rstrip()}".ljust(len(text)) + mark + shape if mark else f"    {line}"


def row_kept(rows: Sequence[Any], made: Any) -> list[str]:
    """The line that keeps an array, if it is kept at all."""
    return [" = ".join(map(written, (*rows, made)))] if rows else []


def _memory(names: Names, loop: Loop, kept: list[Kept]) -> list[str]:
    """Arrays for what is kept, and what stands there before the first turn."""
    lines = []

    def kind(entry: Kept) -> tuple[str, tuple[int, ...]]:
        is_zero = entry.before is None and loop.rows_before(entry) > 0
        return "zeros" if is_zero else "empty", entry.out.shape

    for (how, shape), entries in groupby(sorted(kept, key=kind), kind):
        outs = [names.of(entry.out).id for entry in entries]
        lengths = names.shape(shape if len(outs) == 1 else (len(outs), *shape))
        lines.append(f"{', '.join(outs)} = {written(call(names.library.function(how), lengths))}")
    for part, out, before in kept:
        rows = loop.rows_before(Kept(part, out))
        if before is not None:
            start = loop.count if loop.backward else 0
            place = start if rows == 1 else slice(start or None, start + rows)
            value = rows_before(before, part, rows, names)
            lines.append(f"{written(item(names.of(out), *[ALL] * out.batched, place))} = {written(value)}")
    return lines


def rows_before(before: Array, part: Array, count: int, names: Names) -> Any:
    """What stands there before the first turn, in the shape of so many rows."""
    own = part.cell_shape if count == 1 else (count, *part.cell_shape)
    value = names.of(before)
    return value if before.cell_shape == own else method(value, "reshape", *[-1] * before.batched, *own)


def _seen(window: Window, shape: tuple[int, ...], size: int, names: Names) -> Any:
    """What a window shows in a turn: rows of an array, or so many of its cells."""
    of, turn = window.array, names.counter()
    row = of.strides[int(of.batched)] if of.cell_shape else 1
    array, step, start = names.of(of), window.step, window.base
    by_row = shape == of.cell_shape[1:]
    if step % row == 0 and start % row == 0 and (by_row or shape[1:] == of.cell_shape[1:]):
        step, start, size = step // row, start // row, size // row
    else:
        array, by_row = method(array, "reshape", *[names.length] * of.batched, -1), not shape
    low, high = _moving(turn, step, start), _moving(turn, step, start + size)
    return item(array, *[ALL] * of.batched, low if by_row else slice(low, high))


def _moving(turn: Any, step: int, start: int) -> Any:
    """``start + step * turn`` as it is written."""
    if step < 0:
        moved = turn if step == -1 else infix(turn, "*", -step)
        return infix(start, "-", moved)
    moved = turn if step == 1 else infix(turn, "*", step)
    return infix(moved, "+", start) if start > 0 else infix(moved, "-", -start) if start else moved
