"""A recorded computation run again with another number in one of its leaves, its kinks made straight.

At relu(0) or max(a, a) there is no derivative, and a convention says what counts as one (the page Conventions lists
them). Replayed, such an operation is the straight line through its recorded point with the slopes of the convention,
written down here a second time, apart from the table. Everything else is computed by its row's value rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.engine import Value
from wengert.graph import Graph
from wengert.ops import coerce

__all__ = ["Replay"]


def _shares(reach: Sequence[bool]) -> list[float]:
    """One slope, shared evenly among those that reach an extreme."""
    return [float(one) / max(1, sum(reach)) for one in reach]


def _clip(x: float, low: float, high: float) -> list[float]:
    return [float(low <= x <= high), float(x < low < high), float(x > high or (low > high and x <= high))]


CONVENTIONS: dict[str, Callable[..., list[float]]] = {
    "relu": lambda x: [float(x > 0.0)],
    "abs": lambda x: [float(x > 0.0) - float(x < 0.0)],
    "sign": lambda x: [0.0],
    "leaky_relu": lambda x, slope: [1.0, 0.0] if x > 0.0 else [slope, x],
    "minimum": lambda *xs: _shares([x <= min(xs) for x in xs]),
    "maximum": lambda *xs: _shares([x >= max(xs) for x in xs]),
    "min": lambda *xs: _shares([x <= min(xs) for x in xs]),
    "max": lambda *xs: _shares([x >= max(xs) for x in xs]),
    "clip": _clip,
    "where": lambda condition, x, y: [0.0, float(bool(condition)), float(not condition)],
}
"""The slopes of the operations that have kinks, by each operand."""


class Replay:
    """A graph that can be run again.

    Args:
        graph: of those of the outputs that are Values.
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
        """Whether an operation that depends on a leaf stands exactly at a kink."""
        for place in self._above(leaf):
            op, known, _ = self.graph[place]
            xs = [x if isinstance(x, float) else self.numbers[x] for x in known]
            if op.name in CONVENTIONS and _is_tied(op.name, xs):
                return True
        return False

    def moved(self, leaf: Value) -> Callable[[float], list[float]]:
        """The outputs as a function of the number in one leaf."""
        above = [(*self.graph[place][:2], place) for place in self._above(leaf)]
        start = self.places.get(id(leaf))
        base = self.numbers

        def function(x: float) -> list[float]:
            numbers = list(base)
            if start is not None:
                numbers[start] = x
            for op, known, place in above:
                xs = [x if isinstance(x, float) else numbers[x] for x in known]
                if op.name in CONVENTIONS:
                    before = [x if isinstance(x, float) else base[x] for x in known]
                    bends = CONVENTIONS[op.name](*before)
                    numbers[place] = base[place] + sum(
                        [bend * (new - old) for bend, new, old in zip(bends, xs, before, strict=True) if new != old]
                    )
                else:
                    numbers[place] = float(op.value(*xs))
            return [numbers[self.places[id(x)]] if isinstance(x, Value) else coerce.number(x) for x in self.outputs]

        return function

    def _above(self, leaf: Value) -> list[int]:
        """The places of what was computed from a leaf."""
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


def _is_tied(name: str, xs: list[float]) -> bool:
    """Whether an operation stands where its slope jumps."""
    if name in ("relu", "abs", "sign", "leaky_relu"):
        return xs[0] == 0.0
    if name in ("maximum", "max"):
        return xs.count(max(xs)) > 1
    if name in ("minimum", "min"):
        return xs.count(min(xs)) > 1
    return name == "clip" and xs[0] in xs[1:]
