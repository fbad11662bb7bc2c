"""A Loop as `jax.lax.scan`: a turn is a function of what earlier turns have left, and of its row of what is outside."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from wengert.compiler.backends.indexing import Names, view
from wengert.compiler.backends.loops import Write, indented, rows_before
from wengert.compiler.backends.syntax import call, item, method, node, path, written
from wengert.compiler.ir import Access, Array, Compute, Kept, Loop, contiguous

__all__ = ["Scan"]

ALL = slice(None)


class Scan:
    """A loop.

    Args:
        loop: what is written.
        names: what arrays are called.
        uses: by the id of an array how often it is used; what the turns return is noted here.
    """

    def __init__(self, loop: Loop, names: Names, uses: dict[int, int]) -> None:
        self.loop = loop
        self.names = names
        own, inside = {id(entry.out): entry for entry in loop.kept}, dict[int, int]()
        for step in loop.steps:
            for window in [array.window for array in step.reads if array.window is not None]:
                count = 1 if isinstance(step, Compute) else 2
                inside[id(window.array)] = inside.get(id(window.array), 0) + count
        self.carried: dict[int, Kept] = {key: own[key] for key in inside if key in own}
        self.kept: list[Kept] = [
            entry for key, entry in own.items() if uses.get(key, 0) > (inside[key] if key in self.carried else 0)
        ]
        for entry in (*self.carried.values(), *self.kept):
            uses[id(entry.part)] = uses.get(id(entry.part), 0) + 2  # what is returned has a name
        self.state: dict[int, Any] = {
            key: path(names.free(f"{entry.part.name}_before")) for key, entry in self.carried.items()
        }
        self.rows: dict[tuple[int, ...], tuple[Any, Any]] = {}  # what a turn is given, and what it is a row of

    def lines(self, write: Write) -> list[str]:
        """Its lines; `write` gives those of some steps."""
        loop, names = self.loop, self.names
        lines: list[str] = []
        begins: dict[int, Any] = {}
        for entry in loop.kept:
            if loop.rows_before(entry) and (id(entry.out) in self.carried or entry in self.kept):
                begin = self.begin(entry)
                if not isinstance(begin, ast.Name):
                    name = path(names.free(f"{entry.part.name}_begin"))
                    lines.append(f"{name.id} = {written(begin)}")
                    begin = name
                begins[id(entry.out)] = begin
        for window in loop.windows:
            names.stands_for[id(window)] = self.seen(window)
        body, arguments = [], []
        for given, stem in (([*self.state.values()], "before"), ([row for row, _ in self.rows.values()], "rows")):
            argument = given[0] if len(given) == 1 else path(names.free(stem) if given else "_")
            arguments.append(argument.id)
            if len(given) > 1:
                body.append(f"{', '.join([name.id for name in given])} = {argument.id}")
        body += write(loop.steps, {})
        left = [self.moved_on(entry) for entry in self.carried.values()]
        made = [names.of(entry.part) for entry in self.kept]
        body.append(f"return {written(_together(left))}, {written(_together(made))}")
        turn = names.free("turn")
        lines += [f"def {turn}({', '.join(arguments)}):", *map(indented, body)]
        given = [_together([begins[key] for key in self.carried]), _together([rows for _, rows in self.rows.values()])]
        backward = {"reverse": True} if loop.backward else {}
        scanned = call("jax.lax.scan", path(turn), *given, length=loop.count, **backward)
        outs = _together([names.of(entry.out) for entry in self.kept])
        lines.append(f"_, {written(outs) if self.kept else '_'} = {written(scanned)}")
        for entry in self.kept:
            out = names.of(entry.out)
            rows = method(out, "swapaxes", 0, 1) if entry.out.batched else out
            if loop.rows_before(entry):
                begin = begins[id(entry.out)]
                rows = self.joined(entry, self.as_rows(entry, begin, loop.rows_before(entry)), rows)
            if rows is not out:
                lines.append(f"{out.id} = {written(rows)}")
        return lines

    def begin(self, entry: Kept) -> Any:
        """What is there before the first turn: a row, or several."""
        part, out, before = entry
        names, count = self.names, self.loop.rows_before(entry)
        shape = (*part.shape[: int(part.batched)], *[n for n in (count,) if n > 1], *part.cell_shape)
        if before is None:
            return call(names.library.function("zeros"), names.shape(shape))
        made = rows_before(before, part, count, names)
        if out.batched and not before.batched:
            made = call(names.library.function("broadcast_to"), made, names.shape(shape))
        return made

    def seen(self, window: Array) -> Any:
        """What stands for a window in a turn."""
        of = window.window
        assert of is not None
        if id(of.array) not in self.carried:
            key = id(of.array), of.base, of.step, *window.shape
            if key not in self.rows:
                self.rows[key] = self.names.of(window), self.all_rows(window)
            return self.rows[key][0]
        entry, state = self.carried[id(of.array)], self.state[id(of.array)]
        there, size = self.loop.rows_before(entry), entry.part.size
        first, count = of.base // size - int(self.loop.backward), window.size // size
        if there == count:
            return state
        return item(state, *[ALL] * window.batched, first if count == 1 else slice(first, first + count))

    def all_rows(self, window: Array) -> Any:
        """What all turns see through a window, the turns standing first."""
        of, count, lead = window.window, self.loop.count, int(window.batched)
        assert of is not None
        base = of.base + min(0, of.step * (count - 1))
        strides = (*[1] * lead, abs(of.step), *contiguous(window.cell_shape))
        axes = (*window.shape[:lead], count, *window.cell_shape)
        order = [lead, *range(lead), *range(lead + 1, len(axes))]
        made = view(Access(of.array, base, strides), axes, order, self.names)
        return call(self.names.library.function("flip"), made, 0) if of.step < 0 else made

    def moved_on(self, entry: Kept) -> Any:
        """What a turn leaves to the next: its own row in the place of the one that is furthest back."""
        part, there = self.names.of(entry.part), self.loop.rows_before(entry)
        if there == 1:
            return part
        rest = slice(None, -1) if self.loop.backward else slice(1, None)
        others = item(self.state[id(entry.out)], *[ALL] * entry.part.batched, rest)
        return self.joined(entry, others, self.as_rows(entry, part, 1))

    def as_rows(self, entry: Kept, rows: Any, count: int) -> Any:
        """Some rows, one of them with an axis of its own."""
        if count > 1:
            return rows
        return call(self.names.library.function("expand_dims"), rows, int(entry.part.batched))

    def joined(self, entry: Kept, before: Any, behind: Any) -> Any:
        """Rows one behind the other, in the order in which they lie."""
        pieces = [behind, before] if self.loop.backward else [before, behind]
        axis = {"axis": 1} if entry.part.batched else {}
        return call(self.names.library.function("concatenate"), pieces, **axis)


def _together(nodes: Sequence[Any]) -> Any:
    """Several as a tuple, one as it is, and none as None."""
    return nodes[0] if len(nodes) == 1 else node(tuple(nodes) or None)
