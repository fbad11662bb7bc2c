"""Writes a Loop as `jax.lax.scan`: an iteration is a function of the carry, and of its rows of arrays from outside."""

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
    """A loop as a scan.

    Args:
        loop: the loop.
        names: the names of arrays.
        uses: by the id of an array how often it is used; returned arrays are added.
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
            uses[id(entry.part)] = uses.get(id(entry.part), 0) + 2  # so that it gets a name
        self.state: dict[int, Any] = {
            key: path(names.free(f"{entry.part.name}_before")) for key, entry in self.carried.items()
        }
        self.rows: dict[tuple[int, ...], tuple[Any, Any]] = {}  # a row that an iteration receives, and all rows

    def lines(self, write: Write) -> list[str]:
        loop, names = self.loop, self.names
        lines: list[str] = []
        initials: dict[int, Any] = {}
        for entry in loop.outputs:
            if loop.initial_rows(entry) and (id(entry.out) in self.carried or entry in self.stacked):
                initial = self.initial(entry)
                if not isinstance(initial, ast.Name):
                    name = path(names.free(f"{entry.part.name}_begin"))
                    lines.append(f"{name.id} = {written(initial)}")
                    initial = name
                initials[id(entry.out)] = initial
        for piece in loop.slices:
            names.stands_for[id(piece)] = self.sliced(piece)
        body, arguments = [], []
        for given, stem in (([*self.state.values()], "before"), ([row for row, _ in self.rows.values()], "rows")):
            argument = given[0] if len(given) == 1 else path(names.free(stem) if given else "_")
            arguments.append(argument.id)
            if len(given) > 1:
                body.append(f"{', '.join([name.id for name in given])} = {argument.id}")
        body += write(loop.steps, {})
        carry = [self.next_carry(entry) for entry in self.carried.values()]
        outputs = [names.of(entry.part) for entry in self.stacked]
        body.append(f"return {written(_pytree(carry))}, {written(_pytree(outputs))}")
        iteration = names.free("iteration")
        lines += [f"def {iteration}({', '.join(arguments)}):", *map(indented, body)]
        given = [_pytree([initials[key] for key in self.carried]), _pytree([rows for _, rows in self.rows.values()])]
        backward = {"reverse": True} if loop.backward else {}
        scanned = call("jax.lax.scan", path(iteration), *given, length=loop.count, **backward)
        outs = _pytree([names.of(entry.out) for entry in self.stacked])
        lines.append(f"_, {written(outs) if self.stacked else '_'} = {written(scanned)}")
        for entry in self.stacked:
            out = names.of(entry.out)
            rows = method(out, "swapaxes", 0, 1) if entry.out.batched else out
            if loop.initial_rows(entry):
                initial = initials[id(entry.out)]
                rows = self.joined(entry, self.as_rows(entry, initial, loop.initial_rows(entry)), rows)
            if rows is not out:
                lines.append(f"{out.id} = {written(rows)}")
        return lines

    def initial(self, entry: LoopOutput) -> Any:
        part, out, initial = entry
        names, count = self.names, self.loop.initial_rows(entry)
        shape = (*part.shape[: int(part.batched)], *[n for n in (count,) if n > 1], *part.cell_shape)
        if initial is None:
            return call(names.library.function("zeros"), names.shape(shape))
        rows = initial_rows(initial, part, count, names)
        if out.batched and not initial.batched:
            rows = call(names.library.function("broadcast_to"), rows, names.shape(shape))
        return rows

    def sliced(self, piece: Array) -> Any:
        of = piece.slice
        assert of is not None
        if id(of.array) not in self.carried:
            key = id(of.array), of.base, of.step, *piece.shape
            if key not in self.rows:
                row = self.names.of(piece)
                if not isinstance(row, ast.Name):  # what another loop sees through the same slice
                    row = path(self.names.free(piece.name))
                self.rows[key] = row, self.all_rows(piece)
            return self.rows[key][0]
        entry, state = self.carried[id(of.array)], self.state[id(of.array)]
        rows_back, size = self.loop.initial_rows(entry), entry.part.size
        first, count = of.base // size - int(self.loop.backward), piece.size // size
        if rows_back == count:
            return state
        return item(state, *[ALL] * piece.batched, first if count == 1 else slice(first, first + count))

    def all_rows(self, piece: Array) -> Any:
        """Write what all iterations see through a slice, with the iterations as the first axis."""
        of, count, lead = piece.slice, self.loop.count, int(piece.batched)
        assert of is not None
        base = of.base + min(0, of.step * (count - 1))
        strides = (*[1] * lead, abs(of.step), *contiguous(piece.cell_shape))
        axes = (*piece.shape[:lead], count, *piece.cell_shape)
        order = [lead, *range(lead), *range(lead + 1, len(axes))]
        rows = view(Access(of.array, base, strides), axes, order, self.names)
        return call(self.names.library.function("flip"), rows, 0) if of.step < 0 else rows

    def next_carry(self, entry: LoopOutput) -> Any:
        """Write the carry for the next iteration: the own row replaces the oldest."""
        part, rows_back = self.names.of(entry.part), self.loop.initial_rows(entry)
        if rows_back == 1:
            return part
        rest = slice(None, -1) if self.loop.backward else slice(1, None)
        others = item(self.state[id(entry.out)], *[ALL] * entry.part.batched, rest)
        return self.joined(entry, others, self.as_rows(entry, part, 1))

    def as_rows(self, entry: LoopOutput, rows: Any, count: int) -> Any:
        """Write rows; a single one gets an axis of its own."""
        if count > 1:
            return rows
        return call(self.names.library.function("expand_dims"), rows, int(entry.part.batched))

    def joined(self, entry: LoopOutput, earlier: Any, later: Any) -> Any:
        pieces = [later, earlier] if self.loop.backward else [earlier, later]
        axis = {"axis": 1} if entry.part.batched else {}
        return call(self.names.library.function("concatenate"), pieces, **axis)


def _pytree(nodes: Sequence[Any]) -> Any:
    return nodes[0] if len(nodes) == 1 else node(tuple(nodes) or None)
