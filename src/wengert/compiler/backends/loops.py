"""Writes a Loop as NumPy: memory for its outputs, and a for loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from wengert.compiler.backends.indexing import Names
from wengert.compiler.backends.syntax import call, infix, item, method, path, written
from wengert.compiler.ir import Array, Assemble, Compute, Loop, LoopOutput, Slice

__all__ = ["Write", "indented", "initial_rows", "iterations", "store_row"]

ALL = slice(None)


Write = Callable[[Sequence[Compute | Assemble], Mapping[int, Sequence[Any]]], list[str]]


def iterations(loop: Loop, names: Names, uses: Mapping[int, int], write: Write) -> list[str]:
    """Return the lines of a loop.

    Args:
        loop: the loop.
        names: the names of arrays.
        uses: by the id of an array how often it is used; unused outputs are left out.
        write: returns the lines of some steps, given the rows, by the ids of arrays, that store these.
    """
    outputs = [entry for entry in loop.outputs if uses.get(id(entry.out))]
    lines = _memory(names, loop, outputs)
    for piece in loop.slices:
        assert piece.slice is not None
        names.stands_for[id(piece)] = _sliced(piece.slice, piece.cell_shape, piece.size, names)
    rows: dict[int, list[Any]] = {}
    for part, out, _ in outputs:
        own = Slice(out, loop.first_row(LoopOutput(part, out)) * part.size, part.size)
        rows.setdefault(id(part), []).append(_sliced(own, part.cell_shape, part.size, names))
    plain = {
        id(array): array for step in loop.steps for array in step.reads if array.role == "param" and not array.shape
    }
    for key in [key for key in plain if key not in names.plain]:  # floats are much faster than arrays of shape ()
        given = names.of(plain[key])
        names.stands_for[key] = path(names.free(f"{given.id}_"))
        lines.append(f"{names.stands_for[key].id} = {written(item(given, ()))}")
    names.plain.update(plain)
    count = call("range", loop.count)
    lines.append(f"for {names.counter().id} in {written(call('reversed', count) if loop.backward else count)}:")
    lines += [indented(line) for line in write(loop.steps, rows)]
    return lines


def indented(line: str) -> str:
    """Indent a line, and keep the comment with its shape in place if there is room."""
    text, mark, shape = line.rpartition("  # ")
    return f"    {text.rstrip()}".ljust(len(text)) + mark + shape if mark else f"    {line}"


def store_row(rows: Sequence[Any], value: Any) -> list[str]:
    return [" = ".join(map(written, (*rows, value)))] if rows else []


def _memory(names: Names, loop: Loop, outputs: list[LoopOutput]) -> list[str]:
    lines = []

    def kind(entry: LoopOutput) -> tuple[str, tuple[int, ...]]:
        is_zero = entry.initial is None and loop.initial_rows(entry) > 0
        return "zeros" if is_zero else "empty", entry.out.shape

    for (how, shape), entries in groupby(sorted(outputs, key=kind), kind):
        outs = [names.of(entry.out).id for entry in entries]
        lengths = names.shape(shape if len(outs) == 1 else (len(outs), *shape))
        lines.append(f"{', '.join(outs)} = {written(call(names.library.function(how), lengths))}")
    for part, out, initial in outputs:
        rows = loop.initial_rows(LoopOutput(part, out))
        if initial is not None:
            start = loop.count if loop.backward else 0
            place = start if rows == 1 else slice(start or None, start + rows)
            value = initial_rows(initial, part, rows, names)
            lines.append(f"{written(item(names.of(out), *[ALL] * out.batched, place))} = {written(value)}")
    return lines


def initial_rows(initial: Array, part: Array, count: int, names: Names) -> Any:
    own = part.cell_shape if count == 1 else (count, *part.cell_shape)
    value = names.of(initial)
    return value if initial.cell_shape == own else method(value, "reshape", *[-1] * initial.batched, *own)


def _sliced(seen: Slice, shape: tuple[int, ...], size: int, names: Names) -> Any:
    """Write what a slice shows in an iteration: rows of an array, or some of its cells."""
    of, iteration = seen.array, names.counter()
    row = of.strides[int(of.batched)] if of.cell_shape else 1
    array, step, start = names.of(of), seen.step, seen.base
    by_row = shape == of.cell_shape[1:]
    if step % row == 0 and start % row == 0 and (by_row or shape[1:] == of.cell_shape[1:]):
        step, start, size = step // row, start // row, size // row
    else:
        array, by_row = method(array, "reshape", *[names.length] * of.batched, -1), not shape
    low, high = _offset(iteration, step, start), _offset(iteration, step, start + size)
    return item(array, *[ALL] * of.batched, low if by_row else slice(low, high))


def _offset(iteration: Any, step: int, start: int) -> Any:
    if step < 0:
        scaled = iteration if step == -1 else infix(iteration, "*", -step)
        return infix(start, "-", scaled)
    scaled = iteration if step == 1 else infix(iteration, "*", step)
    return infix(scaled, "+", start) if start > 0 else infix(scaled, "-", -start) if start else scaled
