"""What pictures read off a graph: which gradients were computed, where the largest flows, where none flows on, which
constants are alone.
"""

from __future__ import annotations

from array import array
from math import inf, log
from typing import Any

from wengert.errors import OperandError
from wengert.graph import Graph
from wengert.ops import by_hand
from wengert.view.foreign import EXPECTED, PARTS, ForeignGraph, can_be_seen, has_no_parts
from wengert.view.naming import clean, number

__all__ = ["NOT_COMPUTED", "alone", "computed", "constants", "edges", "graph_of", "is_by_hand", "silent", "steepest"]
__all__ += ["stopping"]

FEW = 3  # constants of one operation that are drawn one by one
NOT_COMPUTED = "not computed"
ROUNDING = 1e-9  # of the largest term: what adds up to no more than that is 0; a sum of a million terms errs by 1e-10


def graph_of(root: Any) -> Graph:
    """The graph of a Value, or of a number of another class that knows its parts.

    Raises:
        OperandError: `root` is neither.
    """
    if can_be_seen(root):
        return Graph(ForeignGraph(root).root)
    hint = f"; of other classes {EXPECTED}"
    if issubclass(type(root), (list, tuple)):
        hint = ": draw one of them, or their sum"
    elif callable(getattr(root, "parameters", None)):
        hint = ": draw what it computes, model(x), or the model itself by wengert.view.plots.plot_network"
    raise OperandError(f"only the graph of a Value can be drawn, not that of a {type(root).__name__}{hint}")


def constants(graph: Graph, place: int) -> list[tuple[int, str, list[float]]]:
    """The constants that a value is computed with, alone or, if there are many, as one: the place in `Graph.operands`
    of the first of them, what is written for them, and they themselves.
    """
    ats = [at for at in range(graph.starts[place], graph.starts[place + 1]) if graph.operands[at] < 0]
    if not ats or graph.values[place]._is_constant_power():
        return []  # the exponent of x**2 belongs to the symbol
    numbers = [graph.constants[-1 - graph.operands[at]] for at in ats]
    if len(ats) > FEW:
        return [(ats[0], f"{len(ats):,} constants", numbers)]
    return [(at, number(x), [x]) for at, x in zip(ats, numbers, strict=True)]


def edges(graph: Graph, place: int) -> list[tuple[int, int]]:
    """The operands of a value that are no constants: of each its place in `Graph.operands`, and its own."""
    ats = range(graph.starts[place], graph.starts[place + 1])
    return [(at, graph.operands[at]) for at in ats if graph.operands[at] >= 0]


def is_by_hand(graph: Graph, place: int) -> bool:
    """Whether a value was made by hand: it has a closure, or none, where others have partial derivatives."""
    return graph.codes[place] == by_hand.code


def silent(graph: Graph) -> frozenset[int]:
    """The values made by hand whose `_backward` was never set: the gradient stops there."""
    values: tuple[Any, ...] = graph.values
    return frozenset([i for i, code in enumerate(graph.codes) if code == by_hand.code and values[i]._closure is None])


def stopping(graph: Graph) -> tuple[frozenset[int], list[str]]:
    """Which values pictures mark as ones where the gradient stops, and what they say below themselves of such."""
    stops = silent(graph)
    if stops and len(stops) == len(graph) - len(graph.leaves):
        return frozenset(), ["no value has a _backward yet: no gradient is passed on"]
    return stops, ["dashed: it has no _backward, and the gradient stops there"] if stops else []


def alone(root: Any) -> list[str]:
    """What pictures say below themselves of a number of a class that has no parts yet."""
    if not has_no_parts(root):
        return []
    return [f"a {clean(type(root).__name__)} does not know what it was made from: {PARTS[0]} would hold that"]


def computed(graph: Graph, gradients: list[float]) -> bytearray:
    """For each value whether its gradient was computed, though it may be 0.

    A gradient that is not 0 was. A gradient of 0 was if some result that uses the value has one, and if what these
    results pass on adds up to 0: before that, as when `_backward()` is called by hand, it is still to come. Where a
    result passes nothing on, gradients may be written by hand: then 0 is one if that beside it is not.
    """
    starts, places = graph.starts, graph.operands
    known = bytearray(len(graph))
    if not any(gradients):
        return known  # and no closure need be asked
    partials, stops = graph.partials, silent(graph)
    received: dict[int, tuple[float, float]] = {}  # of values whose gradient is 0: the sum, and the largest term
    for place in range(len(graph) - 1, -1, -1):
        gradient = gradients[place]
        if gradient == 0.0:
            total, largest = received.pop(place, (0.0, -1.0))
            known[place] = abs(total) <= ROUNDING * largest
        else:
            known[place] = True
        beside = places[starts[place] : starts[place + 1]] if place in stops else ()
        if known[place] and (not beside or any(gradients[x] for x in beside)):
            for at, operand in edges(graph, place):
                if gradients[operand] == 0.0:
                    total, largest = received.get(operand, (0.0, 0.0))
                    passed = partials[at] * gradient
                    received[operand] = total + passed, max(largest, abs(passed))
    return known


def steepest(graph: Graph, gradients: list[float]) -> list[int]:
    """The path of the largest gradient from the root to a leaf, as places in `Graph.operands`.

    A gradient is the sum over all paths of the product of the partials along each (Bauer 1974); this is the path whose
    product is the largest, whatever its sign. A path of nan is larger than any. Empty before a backward pass, and if
    every path has a partial of 0 on it.
    """
    if gradients[-1] == 0.0:
        return []
    partials = graph.partials
    sizes = array("d", [0.0]) * len(graph)  # the logarithm of the largest product below each value
    ways = array("q", [-1]) * len(graph)
    for place in range(len(graph)):
        most = -inf if graph.starts[place] < graph.starts[place + 1] else 0.0
        for at, operand in edges(graph, place):
            partial = partials[at]
            if partial != 0.0:
                size = sizes[operand] + (log(abs(partial)) if partial == partial else inf)
                if size > most:
                    most, ways[place] = size, at
        sizes[place] = most
    path: list[int] = []
    place = len(graph) - 1
    while ways[place] >= 0:
        path.append(ways[place])
        place = graph.operands[ways[place]]
    return path
