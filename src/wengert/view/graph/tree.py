"""`tree` writes the graph of a Value as indented text, for a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from wengert.errors import ArgumentError, counted
from wengert.graph import Graph
from wengert.view.graph.read import NOT_COMPUTED, alone, computed, constants, edges, graph_of, has_gradients, stopping
from wengert.view.naming import clean, number, placed

__all__ = ["Tree", "tree"]

DEEPEST = 20  # the largest number of indented levels; deeper values continue at the left margin
BELOW = {"": "", "├─ ": "│  ", "└─ ": "   "}  # the margin below a branch


class Tree(str):
    """A text tree, whose repr is the text, so that a notebook shows it as printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def tree(root: Any, *, limit: int | None = 40) -> Tree:
    """Write the graph of a Value as a text tree: each value with its operation, and its operands below it.

    A value without a label is called by its place in a model, if it has one, as in `draw` and `steps`. A value that is
    used several times is written once, with a number, and then referred to by this number, so that there is one line
    for each value and each repeated use. Gradients are shown if a backward pass has computed them.

    Args:
        root: the result.
        limit: the largest number of lines; a last line counts the values that are left out. None for all.

    Raises:
        OperandError: `root` is not a Value.
        ArgumentError: `limit` is neither an int >= 1 nor None.

    >>> x, w = Value(2.0, "x"), Value(-3.0, "w")
    >>> y = x * w + x
    >>> y.backward()
    >>> tree(y)
    +  data -4  grad 1
    ├─ *  data -6  grad 1
    │  ├─ #1 x  data 2  grad -2
    │  └─ w  data -3  grad 2
    └─ see #1 x
    """
    graph = graph_of(root)
    if limit is None:
        limit = sys.maxsize
    elif type(limit) is not int or limit < 1:
        raise ArgumentError(f"limit is {limit!r:.40}; expected an int >= 1, the number of lines, or None for all")
    written = _Lines(graph)
    return Tree("\n".join([*written.lines(limit), *([] if written.stops else written.notes), *alone(root)]))


class _Lines:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known = computed(graph, [value.grad for value in graph.values])
        self.stops, self.notes = stopping(graph, self.known)
        self.has_gradients = has_gradients(graph)
        self.placed = placed(graph)[0]
        self.numbers: dict[int, int] = {}  # the numbers of values that are referred to
        self.shared = {operand for operand, uses in Counter(graph.operands).items() if uses > 1}

    def lines(self, limit: int) -> list[str]:
        """Write the tree, with a stack in place of recursion, since graphs can be millions of nodes deep."""
        lines: list[str] = []
        met = bytearray(len(self.graph))
        starts = [len(self.graph) - 1]  # the root, and values that are too deep to be indented
        written = 0
        for start in starts:  # the list grows while it is read
            stack: list[tuple[int | str, int, str, str]] = [(start, 0, "", "")]
            while stack and len(lines) < limit:
                item, depth, margin, branch = stack.pop()
                if isinstance(item, str):  # constants
                    lines.append(margin + branch + item)
                elif met[item] and depth:
                    lines.append(f"{margin}{branch}see #{self.number(item)} {self.name(item)}")
                elif depth == DEEPEST and self.graph.codes[item]:
                    lines.append(f"{margin}{branch}below: #{self.number(item)} {self.name(item)}")
                    met[item] = True
                    starts.append(item)
                else:
                    lines.append(margin + branch + self.line(item))
                    met[item] = True
                    written += 1
                    stack += reversed(self.below(item, depth + 1, margin + BELOW[branch], limit))
        if written < len(self.graph):
            more = len(self.graph) - written
            lines.append(f"… and {counted(more, 'more value')}: tree(…, limit=None) shows all, draw(…) folds them")
        return lines

    def below(self, place: int, depth: int, margin: str, limit: int) -> list[tuple[int | str, int, str, str]]:
        """Return the operands of a value as items of the stack."""
        drawn: dict[int, int | str] = {at: text for at, text, _ in constants(self.graph, place)}
        drawn.update(edges(self.graph, place))
        items = [drawn[at] for at in sorted(drawn)][: limit + 1]
        branches = ["├─ "] * (len(items) - 1) + ["└─ "]
        return [(item, depth, margin, branch) for item, branch in zip(items, branches, strict=False)]

    def line(self, place: int) -> str:
        value = self.graph.values[place]
        mark = f"#{self.number(place)} " if place in self.shared or place in self.numbers else ""
        grad = f"  grad {number(value.grad) if self.known[place] else NOT_COMPUTED}" if self.has_gradients else ""
        stops = "  no _backward" if place in self.stops else ""
        return f"{mark}{self.name(place)}  data {number(value.data)}{grad}{stops}"

    def name(self, place: int) -> str:
        """Write a value's label, or its name in a model, and its operation, if that is not part of the name."""
        value = self.graph.values[place]
        name, op = self.placed.get(place, clean(value.label)), clean(value._op)
        parts = [part for part in (name, "" if name.endswith(f" ({op})") else op) if part]
        return " = ".join(parts) or ("by hand" if self.graph.codes[place] else "leaf")

    def number(self, place: int) -> int:
        return self.numbers.setdefault(place, len(self.numbers) + 1)
