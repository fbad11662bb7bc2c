"""The backward pass of a graph, written down: what each operand's gradient was before a node's turn, and after it."""

from __future__ import annotations

from array import array
from math import isclose
from typing import Any, NamedTuple

from wengert import engine
from wengert.engine import Value
from wengert.graph import Graph
from wengert.view import naming
from wengert.view.graph.read import edges, is_by_hand, silent
from wengert.view.naming import clean, number

__all__ = ["Move", "Pass"]

LONGEST = 200  # characters of what a closure raised


class Move(NamedTuple):
    """What a node's turn did to the gradient of one operand.

    Attributes:
        operand: the operand's place in the computation.
        at: its place in `Graph.operands`.
        partial: the local derivative by it.
        before: its gradient before the turn,
        after: and after it.
        how: "added" the node's gradient times `partial`, "replaced" what was there by it, or did something "else".
    """

    operand: int
    at: int
    partial: float
    before: float
    after: float
    how: str


class Pass:
    """The pass, in the order in which `backward()` goes, so that the bits are the same; no gradient is touched.

    A node made by hand has its closure run, and every gradient is put back: what it does stands here, whatever it is.

    Attributes:
        graph: the computation.
        names: what its nodes are called.
        data: the number of each node.
        partials: the local derivatives, as `Graph.partials` gives them.
        gradients: of each node, when all have had their turn.
        before: for each of `Graph.operands`, its gradient before the turn of its node,
        after: and after it.
        is_first: for each, whether that turn was the first to reach it.
        silent: the places of the nodes made by hand without a closure.
        broken: what the closure of a node raised, by the node's place.
    """

    def __init__(self, root: Value) -> None:
        self.graph: Graph = Graph(root)
        self.names: list[str] = naming.names(self.graph)
        self.data: array[float] = array("d", [value.data for value in self.graph.values])
        self.partials: array[float] = self.graph.partials
        self.gradients: array[float] = array("d", [0.0]) * len(self.graph)
        self.before: array[float] = array("d", [0.0]) * len(self.graph.operands)
        self.after: array[float] = array("d", [0.0]) * len(self.graph.operands)
        self.is_first: bytearray = bytearray(len(self.graph.operands))
        self.silent: frozenset[int] = silent(self.graph)
        self.broken: dict[int, str] = {}
        self._met = bytearray(len(self.graph))
        self.gradients[-1] += 1.0
        for place in range(len(self.graph) - 1, -1, -1):
            if is_by_hand(self.graph, place):
                self._turn(place)
                continue
            for at, operand in edges(self.graph, place):
                self._write(at, operand, self.gradients[operand] + self.partials[at] * self.gradients[place])

    def _write(self, at: int, operand: int, gradient: float) -> None:
        """An operand's gradient, as it is from now on."""
        self.before[at], self.after[at] = self.gradients[operand], gradient
        self.is_first[at], self._met[operand] = not self._met[operand], True
        self.gradients[operand] = gradient

    def _turn(self, place: int) -> None:
        """Run the closure of a node made by hand."""
        values, slots = self.graph.values, self._slots(place)
        if place in self.silent:
            return
        node: Any = values[place]
        kept = [(x, x.grad) for x in (node, *(values[x] for x in slots))]
        with engine.walking:
            try:
                node.grad = self.gradients[place]
                for x in slots:
                    values[x].grad = self.gradients[x]
                node._push()
                found = [values[x].grad for x in slots]
            except Exception as error:  # whatever a closure of the user's raises is what there is to say of it
                self.broken[place] = clean(f"{type(error).__name__}: {error}", LONGEST)
                return
            finally:
                for value, gradient in kept:
                    value.grad = gradient
        for (x, (at, *_)), gradient in zip(slots.items(), found, strict=True):
            self._write(at, x, gradient)

    def _slots(self, place: int) -> dict[int, list[int]]:
        """The operands of a node made by hand, each once, and all its places in `Graph.operands`."""
        slots: dict[int, list[int]] = {}
        for at, operand in edges(self.graph, place):
            slots.setdefault(operand, []).append(at)
        return slots

    def moves(self, place: int) -> list[Move]:
        """What a node's turn did. A closure adds to an operand that is there twice at once: it stands here once."""
        if not is_by_hand(self.graph, place):
            return [self._move(place, x, at, self.partials[at]) for at, x in edges(self.graph, place)]
        if place in self.silent or place in self.broken:
            return []
        slots = self._slots(place).items()
        return [self._move(place, x, ats[0], sum([self.partials[at] for at in ats])) for x, ats in slots]

    def _move(self, place: int, operand: int, at: int, partial: float) -> Move:
        product, before, after = partial * self.gradients[place], self.before[at], self.after[at]
        how = "replaced" if _agree(after, product) else "else"
        if not is_by_hand(self.graph, place) or _agree(after, before + product):
            how = "added"
        return Move(operand, at, partial, before, after, how)

    def faults(self, way: bytearray) -> list[str]:
        """What closures do that they should not, in sentences; of the nodes on a way from the result."""
        found = []
        for place in range(len(self.names) - 1, -1, -1):
            if not way[place] or not is_by_hand(self.graph, place):
                continue
            closure = f"the _backward of {self.names[place]}"
            if place in self.broken:
                found.append(f"T{closure[1:]} raises {self.broken[place]}.")
            for move in self.moves(place):
                target = self.names[move.operand]
                if way[move.operand] and move.how == "replaced":
                    lost = number(move.before)
                    found.append(f"T{closure[1:]} has = where += belongs: the {lost} that {target} held is lost.")
                elif way[move.operand] and move.how == "else":
                    found.append(f"What {closure} adds to {target} is not its gradient times a local derivative.")
        return found

    def computation(self, place: int) -> str:
        """A node's forward step: ``d = a*b + a = -6 + 2 = -4``."""
        name, formula = self.names[place], naming.formula(self.graph, self.names, place)
        texts = [number(x) for _, x in self.operands(place)]
        parts = [name] if name == formula else [name, formula]
        parts.append(naming.fill(naming.template(naming.spelled(self.graph, place), len(texts), " × "), texts))
        return " = ".join([*parts, number(self.data[place])])

    def operands(self, place: int) -> list[tuple[str, float]]:
        """The name and the number of each operand; the name of a constant is the number itself."""
        operands = self.graph[place].operands
        return [(self.names[x], self.data[x]) if isinstance(x, int) else (number(x), x) for x in operands]

    def passed(self, place: int, at: int) -> float:
        """What a node passes on to an operand."""
        partial = self.partials[at]
        if partial != partial and is_by_hand(self.graph, place):
            return self.after[at] - self.before[at]
        return partial * self.gradients[place]


def _agree(x: float, y: float) -> bool:
    return x == y or (x != x and y != y) or isclose(x, y, rel_tol=1e-9, abs_tol=1e-12)
