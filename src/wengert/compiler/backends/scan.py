"""A Loop as `jax.lax.scan`: an iteration is a function of the carry, and of its row of each array from outside."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from wengert.compiler.backends.indexing import Names, view
from wengert.compiler.backends.loops import Write, indented, initial_rows
from wengert.compiler.backends.syntax import call, item, method, node, path, written
from wengert.compiler.ir import Access, Array, Compute, Loop, LoopOutput, contiguous

__all__ = ["Scan"]

ALL = slice(None)


class Scan:
    """A loop.

    Args:
        loop: what is written.
        names: what arrays are called.
        uses: by the id of an array how often it is used; what the iterations return is noted here.
    """

    def __init__(self, loop: Loop, names: Names, uses: dict[int, int]) -> None:
        self.loop = loop
        self.names = names
        own, inside = {id(entry.out): entry for entry in loop.outputs}, dict[int, int]()
        for step in loop.steps:
            for piece in [array.slice for array in step.reads if array.slice is not None]:
                count = 1 if isinstance(step, Compute) else 2
                inside[id(piece.array)] = inside.get(id(piece.array), 0) + count
        self.carried: dict[int, LoopOutput] = {key: own[key] for key in inside if key in own}
        self.stacked: list[LoopOutput] = [
            entry for key, entry in own.items() if uses.get(key, 0) > (inside[key] if key in self.carried else 0)
        ]
        for entry in (*self.carried.values(), *self.stacked):
            uses[id(entry.part)] = uses.get(id(entry.part), 0) + 2  # what is returned has a name
        self.state: dict[int, Any] = {
            key: path(names.free(f"{entry.part.name}_before")) for key, entry in self.carried.items()
        }
        self.rows: dict[tuple[int, ...], tuple[Any, Any]] = {}  # what an iteration is given, and what it is a row of

    def lines(self, write: Write) -> list[str]:
        """Its lines; `write` gives those of some steps."""
        loop, names = self.loop, self.names
        lines: list[str] = []
        begins: dict[int, Any] = {}
        for entry in loop.outputs:
            if loop.initial_rows(entry) and (id(entry.out) in self.carried or entry in self.stacked):
                begin = self.begin(entry)
                if not isinstance(begin, ast.Name):
                    name = path(names.free(f"{entry.part.name}_begin"))
                    lines.append(f"{name.id} = {written(begin)}")
                    begin = name
                begins[id(entry.out)] = begin
        for piece in loop.slices:
            names.stands_for[id(piece)] = self.seen(piece)
        body, arguments = [], []
        for given, stem in (([*self.state.values()], "before"), ([row for row, _ in self.rows.values()], "rows")):
            argument = given[0] if len(given) == 1 else path(names.free(stem) if given else "_")
            arguments.append(argument.id)
            if len(given) > 1:
                body.append(f"{', '.join([name.id for name in given])} = {argument.id}")
        body += write(loop.steps, {})
        left = [self.moved_on(entry) for entry in self.carried.values()]
        made = [names.of(entry.part) for entry in self.stacked]
        body.append(f"return {written(_together(left))}, {written(_together(made))}")
        iteration = names.free("iteration")
        lines += [f"def {iteration}({', '.join(arguments)}):", *map(indented, body)]
        given = [_together([begins[key] for key in self.carried]), _together([rows for _, rows in self.rows.values()])]
        backward = {"reverse": True} if loop.backward else {}
        scanned = call("jax.lax.scan", path(iteration), *given, length=loop.count, **backward)
        outs = _together([names.of(entry.out) for entry in self.stacked])
        lines.append(f"_, {written(outs) if self.stacked else '_'} = {written(scanned)}")
        for entry in self.stacked:
            out = names.of(entry.out)
            rows = method(out, "swapaxes", 0, 1) if entry.out.batched else out
            if loop.initial_rows(entry):
                begin = begins[id(entry.out)]
                rows = self.joined(entry, self.as_rows(entry, begin, loop.initial_rows(entry)), rows)
            if rows is not out:
                lines.append(f"{out.id} = {written(rows)}")
        return lines

    def begin(self, entry: LoopOutput) -> Any:
        """What is there before the first iteration: a row, or several."""
        part, out, initial = entry
        names, count = self.names, self.loop.initial_rows(entry)
        shape = (*part.shape[: int(part.batched)], *[n for n in (count,) if n > 1], *part.cell_shape)
        if initial is None:
            return call(names.library.function("zeros"), names.shape(shape))
        made = initial_rows(initial, part, count, names)
        if out.batched and not initial.batched:
            made = call(names.library.function("broadcast_to"), made, names.shape(shape))
        return made

    def seen(self, piece: Array) -> Any:
        """What stands for a slice in an iteration."""
        of = piece.slice
        assert of is not None
        if id(of.array) not in self.carried:
            key = id(of.array), of.base, of.step, *piece.shape
            if key not in self.rows:
                self.rows[key] = self.names.of(piece), self.all_rows(piece)
            return self.rows[key][0]
        entry, state = self.carried[id(of.array)], self.state[id(of.array)]
        there, size = self.loop.initial_rows(entry), entry.part.size
        first, count = of.base // size - int(self.loop.backward), piece.size // size
        if there == count:
            return state
        return item(state, *[ALL] * piece.batched, first if count == 1 else slice(first, first + count))

    def all_rows(self, piece: Array) -> Any:
        """What all iterations see through a slice, the iterations standing first."""
        of, count, lead = piece.slice, self.loop.count, int(piece.batched)
        assert of is not None
        base = of.base + min(0, of.step * (count - 1))
        strides = (*[1] * lead, abs(of.step), *contiguous(piece.cell_shape))
        axes = (*piece.shape[:lead], count, *piece.cell_shape)
        order = [lead, *range(lead), *range(lead + 1, len(axes))]
        made = view(Access(of.array, base, strides), axes, order, self.names)
        return call(self.names.library.function("flip"), made, 0) if of.step < 0 else made

    def moved_on(self, entry: LoopOutput) -> Any:
        """What an iteration leaves to the next: its own row in the place of the one that is furthest back."""
        part, there = self.names.of(entry.part), self.loop.initial_rows(entry)
        if there == 1:
            return part
        rest = slice(None, -1) if self.loop.backward else slice(1, None)
        others = item(self.state[id(entry.out)], *[ALL] * entry.part.batched, rest)
        return self.joined(entry, others, self.as_rows(entry, part, 1))

    def as_rows(self, entry: LoopOutput, rows: Any, count: int) -> Any:
        """Some rows, one of them with an axis of its own."""
        if count > 1:
            return rows
        return call(self.names.library.function("expand_dims"), rows, int(entry.part.batched))

    def joined(self, entry: LoopOutput, initial: Any, behind: Any) -> Any:
        """Rows one behind the other, in the order in which they lie."""
        pieces = [behind, initial] if self.loop.backward else [initial, behind]
        axis = {"axis": 1} if entry.part.batched else {}
        return call(self.names.library.function("concatenate"), pieces, **axis)


def _together(nodes: Sequence[Any]) -> Any:
    """Several as a tuple, one as it is, and none as None."""
    return nodes[0] if len(nodes) == 1 else node(tuple(nodes) or None)
