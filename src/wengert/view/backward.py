"""The backward pass of a graph, written down: what each operand's gradient was before a node's turn, and after it."""

from __future__ import annotations

from array import array
from math import isclose
from typing import Any

from wengert import engine
from wengert.graph import Graph
from wengert.ops.table import by_hand
from wengert.view.graph.read import is_by_hand, silent
from wengert.view.naming import clean, number

__all__ = ["Pass"]

LONGEST = 200  # characters of what a closure raised


class Pass:
    """The pass, in the order in which `backward()` goes, so that the bits are the same; no gradient is touched.

    A node made by hand has its closure run, and every gradient is put back: what it does stands here, whatever it is.

    Attributes:
        gradients: of each node, when all have had their turn.
        before: for each of `Graph.operands`, its gradient before the turn of its node,
        after: and after it.
        is_first: for each, whether that turn was the first to reach it.
        silent: the places of the nodes made by hand without a closure.
        broken: what the closure of a node raised, by the node's place.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph = graph
        self.partials: array[float] = graph.partials
        self.gradients: array[float] = array("d", [0.0]) * len(graph)
        self.before: array[float] = array("d", [0.0]) * len(graph.operands)
        self.after: array[float] = array("d", [0.0]) * len(graph.operands)
        self.is_first: bytearray = bytearray(len(graph.operands))
        self.silent: frozenset[int] = silent(graph)
        self.broken: dict[int, str] = {}
        self._met = bytearray(len(graph))
        self._run()

    def _run(self) -> None:
        starts, operands, codes, partials = self.graph.starts, self.graph.operands, self.graph.codes, self.partials
        gradients, before, after, is_first, met = self.gradients, self.before, self.after, self.is_first, self._met
        gradients[-1] += 1.0
        for place in range(len(self.graph) - 1, -1, -1):
            if codes[place] == by_hand.code:
                self._turn(place)
                continue
            gradient = gradients[place]
            for at in range(starts[place], starts[place + 1]):
                operand = operands[at]
                if operand >= 0:
                    before[at] = gradients[operand]
                    is_first[at], met[operand] = not met[operand], True
                    gradients[operand] += partials[at] * gradient
                    after[at] = gradients[operand]

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
            self.before[at], self.after[at] = self.gradients[x], gradient
            self.is_first[at], self._met[x] = not self._met[x], True
            self.gradients[x] = gradient

    def _slots(self, place: int) -> dict[int, list[int]]:
        """The operands of a node made by hand, each once, and all its places in `Graph.operands`."""
        slots: dict[int, list[int]] = {}
        for at in range(self.graph.starts[place], self.graph.starts[place + 1]):
            slots.setdefault(self.graph.operands[at], []).append(at)
        return slots

    def moves(self, place: int) -> list[tuple[int, int, float]]:
        """What a node's turn changed: each operand, its place in `Graph.operands`, and the local derivative by it.

        A closure adds to an operand that is there twice at once: it stands here once.
        """
        if not is_by_hand(self.graph, place):
            ats, operands = range(self.graph.starts[place], self.graph.starts[place + 1]), self.graph.operands
            return [(operands[at], at, self.partials[at]) for at in ats if operands[at] >= 0]
        if place in self.silent or place in self.broken:
            return []
        return [(x, ats[0], sum([self.partials[at] for at in ats])) for x, ats in self._slots(place).items()]

    def how(self, place: int, at: int, partial: float) -> str:
        """What a turn did to an operand: it "added" the product, "replaced" what was there by it, or did something
        "else".
        """
        product, before, after = partial * self.gradients[place], self.before[at], self.after[at]
        if not is_by_hand(self.graph, place) or _agree(after, before + product):
            return "added"
        return "replaced" if _agree(after, product) else "else"

    def faults(self, names: list[str], way: bytearray) -> list[str]:
        """What closures do that they should not, in sentences; of the nodes on a way from the result."""
        found = []
        for place in range(len(names) - 1, -1, -1):
            if not way[place] or not is_by_hand(self.graph, place):
                continue
            closure = f"the _backward of {names[place]}"
            if place in self.broken:
                found.append(f"T{closure[1:]} raises {self.broken[place]}.")
            for operand, at, partial in self.moves(place):
                how, target = self.how(place, at, partial), names[operand]
                if way[operand] and how == "replaced":
                    lost = number(self.before[at])
                    found.append(f"T{closure[1:]} has = where += belongs: the {lost} that {target} held is lost.")
                elif way[operand] and how == "else":
                    found.append(f"What {closure} adds to {target} is not its gradient times a local derivative.")
        return found

    def passed(self, place: int, at: int) -> float:
        """What a node passes on to an operand."""
        partial = self.partials[at]
        if partial != partial and is_by_hand(self.graph, place):
            return self.after[at] - self.before[at]
        return partial * self.gradients[place]


def _agree(x: float, y: float) -> bool:
    return x == y or (x != x and y != y) or isclose(x, y, rel_tol=1e-9, abs_tol=1e-12)
