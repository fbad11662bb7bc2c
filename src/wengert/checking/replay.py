"""Evaluates a recorded graph with another number in one of its leaves, with its kinks replaced by straight lines.

At relu(0) or max(a, b) of equal numbers there is no derivative, and a convention defines one (the page Conventions
lists them). Here an operation with kinks is replaced by the straight line through its recorded point, with the slopes
that its row has there. Every other operation is computed by its row's value rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.engine import Value
from wengert.graph import Graph
from wengert.ops import coerce

__all__ = ["Replay"]


class Replay:
    """A graph that can be evaluated again.

    Args:
        graph: the graph of the outputs that are Values.
        outputs: Values and floats.

    >>> x = Value(0.0)
    >>> y = x.relu() + x
    >>> replay = Replay(Graph(y), [y])
    >>> replay.moved(x)(0.5)
    [0.5]
    """

    def __init__(self, graph: Graph, outputs: list[Any]) -> None:
        self.graph: Graph = graph
        self.numbers: list[float] = [value.data for value in graph.values]
        self.places: dict[int, int] = {id(value): place for place, value in enumerate(graph.values)}
        self.outputs: list[Any] = outputs

    def has_kink(self, leaf: Value) -> bool:
        """Return True if an operation that depends on a leaf is exactly at a kink."""
        for place in self._above(leaf):
            op, known, _ = self.graph[place]
            xs = [x if isinstance(x, float) else self.numbers[x] for x in known]
            if op.kink_distance(known, xs) == 0.0:
                return True
        return False

    def has_rules(self, leaf: Value) -> bool:
        """Return True if all nodes that depend on a leaf have a value rule; nodes made by hand do not."""
        return all(self.graph[place][0].value is not None for place in self._above(leaf))

    def moved(self, leaf: Value) -> Callable[[float], list[float]]:
        """Return the outputs as a function of the number in one leaf."""
        above = [(*self.graph[place][:2], place) for place in self._above(leaf)]
        start = self.places.get(id(leaf))
        base = self.numbers

        def function(x: float) -> list[float]:
            numbers = list(base)
            if start is not None:
                numbers[start] = x
            for op, known, place in above:
                xs = [x if isinstance(x, float) else numbers[x] for x in known]
                if op.kinks is not None:
                    before = [x if isinstance(x, float) else base[x] for x in known]
                    bends = op.partials_at(base[place], before)
                    numbers[place] = base[place] + sum(
                        [bend * (new - old) for bend, new, old in zip(bends, xs, before, strict=True) if new != old]
                    )
                else:
                    numbers[place] = float(op.value(*xs))
            return [numbers[self.places[id(x)]] if isinstance(x, Value) else coerce.number(x) for x in self.outputs]

        return function

    def _above(self, leaf: Value) -> list[int]:
        """List the indices of the nodes that depend on a leaf."""
        place = self.places.get(id(leaf))
        if place is None:
            return []
        found, active = [], {place}
        starts, known = self.graph.starts, self.graph.operands
        for later in range(place + 1, len(self.graph)):
            if any(x in active for x in known[starts[later] : starts[later + 1]]):
                active.add(later)
                found.append(later)
        return found
