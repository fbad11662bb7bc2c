"""What pictures read off a graph: which gradients were computed, where the largest flows, which constants are alone."""

from __future__ import annotations

from array import array
from math import inf, log
from typing import Any

from wengert.engine import Value
from wengert.errors import OperandError
from wengert.graph import Graph

__all__ = ["NOT_COMPUTED", "computed", "constants", "graph_of", "steepest"]

FEW = 3  # constants of one operation that are drawn one by one
NOT_COMPUTED = "not computed"


def graph_of(root: Any) -> Graph:
    """The graph of a Value.

    Raises:
        OperandError: `root` is not a Value.
    """
    if issubclass(type(root), Value):  # not isinstance, which a mock can pass
        return Graph(root)
    hint = ""
    if issubclass(type(root), (list, tuple)):
        hint = ": draw one of them, or their sum"
    elif callable(getattr(root, "parameters", None)):
        hint = ": draw what it computes, model(x), or the model itself by wengert.view.plots.plot_network"
    raise OperandError(f"only the graph of a Value can be drawn, not that of a {type(root).__name__}{hint}")


def constants(graph: Graph, place: int) -> list[list[int]]:
    """The constants that a value is computed with, in the groups that they are drawn in, as places in `operands`."""
    ats = [at for at in range(graph.starts[place], graph.starts[place + 1]) if graph.operands[at] < 0]
    if not ats or graph.values[place]._is_constant_power():
        return []  # the exponent of x**2 belongs to the symbol
    return [[at] for at in ats] if len(ats) <= FEW else [ats]


def computed(graph: Graph, partials: array[float], gradients: list[float]) -> bytearray:
    """For each value whether its gradient was computed, though it may be 0.

    A gradient that is not 0 was. A gradient of 0 was if some result that uses the value has one, and if what these
    results pass on adds up to 0: before that, as when `_backward()` is called by hand, it is still to come.
    """
    starts, places = graph.starts, graph.operands
    known = bytearray(len(graph))
    received: dict[int, tuple[float, float]] = {}  # of values whose gradient is 0: the sum, and the largest term
    for place in range(len(graph) - 1, -1, -1):
        gradient = gradients[place]
        if gradient == 0.0:
            total, largest = received.pop(place, (0.0, -1.0))
            known[place] = abs(total) <= 1e-9 * largest
        else:
            known[place] = True
        if known[place]:
            for at in range(starts[place], starts[place + 1]):
                operand = places[at]
                if operand >= 0 and gradients[operand] == 0.0:
                    total, largest = received.get(operand, (0.0, 0.0))
                    passed = partials[at] * gradient
                    received[operand] = total + passed, max(largest, abs(passed))
    return known


def steepest(graph: Graph, partials: array[float], gradients: list[float]) -> list[int]:
    """The path of the largest gradient from the root to a leaf, as places in `Graph.operands`.

    A gradient is the sum over all paths of the product of the partials along each (Bauer 1974); this is the path whose
    product is the largest, whatever its sign. A path of nan is larger than any. Empty before a backward pass, and if
    every path has a partial of 0 on it.
    """
    if gradients[-1] == 0.0:
        return []
    sizes = array("d", [0.0]) * len(graph)  # the logarithm of the largest product below each value
    ways = array("q", [-1]) * len(graph)
    starts, operands = graph.starts, graph.operands
    for place in range(len(graph)):
        first, end = starts[place], starts[place + 1]
        most = 0.0 if first == end else -inf
        for at in range(first, end):
            operand, partial = operands[at], partials[at]
            if operand >= 0 and partial != 0.0:
                size = sizes[operand] + (log(abs(partial)) if partial == partial else inf)
                if size > most:
                    most, ways[place] = size, at
        sizes[place] = most
    path: list[int] = []
    place = len(graph) - 1
    while ways[place] >= 0:
        path.append(ways[place])
        place = operands[ways[place]]
    return path
