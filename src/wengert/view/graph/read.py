"""Reads from a graph what pictures show: which gradients were computed, the path with the largest product of
derivatives, the nodes where gradients stop, and constants.
"""

from __future__ import annotations

from array import array
from math import inf, log
from typing import Any

from wengert.engine import Value
from wengert.errors import OperandError
from wengert.graph import Graph
from wengert.ops import BY_NAME, by_hand
from wengert.view.foreign import EXPECTED, PARTS, SeenGraph, can_be_seen, has_no_parts
from wengert.view.naming import clean, number
from wengert.view.scopes import edges

__all__ = ["NOT_COMPUTED", "alone", "computed", "constants", "edges", "graph_of", "has_gradients", "is_by_hand"]
__all__ += ["is_untaken_side", "silent", "steepest", "stopping"]

WHERE = BY_NAME["where"].code
FEW = 3  # the largest number of constants of one operation that are drawn one by one
NOT_COMPUTED = "not computed"
ROUNDING = 1e-9  # a sum below this fraction of its largest term is 0; a million terms have a rounding error of 1e-10


def graph_of(root: Any) -> Graph:
    """Return the graph of a Value, or of a number of another engine's class that refers to its operands.

    Raises:
        OperandError: `root` is neither.
    """
    if issubclass(type(root), Value):
        return Graph(root)
    if can_be_seen(root):
        return SeenGraph(root)
    hint = f"; for other classes: {EXPECTED}"
    if issubclass(type(root), (list, tuple)):
        hint = ": draw one of them, or their sum"
    elif callable(getattr(root, "parameters", None)):
        hint = ": draw what it computes, model(x), or the model itself by wengert.view.plots.plot_network"
    raise OperandError(f"only the graph of a Value can be drawn, not that of a {type(root).__name__}{hint}")


def constants(graph: Graph, place: int) -> list[tuple[int, str, list[float]]]:
    """List the constants of an operation, many of them as one entry: the index in `Graph.operands` of the first one,
    the text for them, and the numbers.
    """
    ats = [at for at in range(graph.starts[place], graph.starts[place + 1]) if graph.operands[at] < 0]
    if not ats or graph.values[place]._is_constant_power():
        return []  # the exponent of x**2 is part of the symbol
    numbers = [graph.constants[-1 - graph.operands[at]] for at in ats]
    if len(ats) > FEW:
        return [(ats[0], f"{len(ats):,} constants", numbers)]
    return [(at, number(x), [x]) for at, x in zip(ats, numbers, strict=True)]


def is_by_hand(graph: Graph, place: int) -> bool:
    """Return True if a value was made by hand, so that it has a closure, or none, and no partial derivatives."""
    return graph.codes[place] == by_hand.code


def is_untaken_side(graph: Graph, place: int, at: int) -> bool:
    """Return True for the side of a choice that is not taken, without running any closure."""
    if graph.codes[place] != WHERE:
        return False
    condition = graph[place].operands[0]
    holds = graph.values[condition].data if isinstance(condition, int) else condition
    return at - graph.starts[place] == (2 if holds else 1)


def silent(graph: Graph) -> frozenset[int]:
    """Return the indices of values made by hand whose `_backward` was never set, where the gradient stops."""
    values: tuple[Any, ...] = graph.values
    return frozenset([i for i, code in enumerate(graph.codes) if code == by_hand.code and values[i]._closure is None])


def has_gradients(graph: Graph) -> bool:
    """Return False if the class of a result has no attribute `grad` yet."""
    return getattr(graph, "has_gradients", True)


def stopping(graph: Graph, known: bytearray) -> tuple[frozenset[int], list[str]]:
    """Return the values to mark as ones where the gradient stops, and the note below the picture.

    Args:
        graph: the computation.
        known: what `computed` returns for it.
    """
    stops = silent(graph)
    if stops and len(stops) == len(graph) - len(graph.leaves):
        waits = known[-1] and not all(known)  # else there is nothing to pass on, or it was written by hand
        return frozenset(), ["no value has a _backward yet: no gradient is passed on"] if waits else []
    return stops, ["dashed: it has no _backward, and the gradient stops there"] if stops else []


def alone(root: Any) -> list[str]:
    """Return the note below the picture of a number whose class has no operands yet."""
    if not has_no_parts(root):
        return []
    return [f"a {clean(type(root).__name__)} has no operands: store them in {PARTS[0]}"]


def computed(graph: Graph, gradients: list[float]) -> bytearray:
    """Return for each value 1 if its gradient was computed, else 0.

    A gradient other than 0 was computed. A gradient of 0 was computed if a result that uses the value has a gradient,
    and the contributions of these results add up to 0: otherwise they are still to come, as while `_backward()` is
    called by hand. Where a result has no closure, gradients may be set by hand: then 0 counts if its sibling is not 0.
    """
    starts, places = graph.starts, graph.operands
    known = bytearray(len(graph))
    if not any(gradients):
        return known  # without running any closure
    partials, stops = graph.partials, silent(graph)
    received: dict[int, tuple[float, float]] = {}  # for values with gradient 0: the sum and the largest term
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
                    passed = partials[at] * gradient if gradient else 0.0  # a side that is not taken passes on nothing
                    received[operand] = total + passed, max(largest, abs(passed))
    return known


def steepest(graph: Graph, gradients: list[float]) -> list[int]:
    """Return the path with the largest product of derivatives, as indices in `Graph.operands`.

    A gradient is the sum over all paths of the product of the partials along each (Bauer 1974); this is the path with
    the largest product in absolute value, where nan counts as the largest, among the paths to operands of the first
    operations: the path to the bias of the last layer is short, and its gradient says nothing about the other layers.
    A leaf that is labelled with its own number is a constant, and ends no path. It is empty before a backward pass, and
    if every path has a partial of 0.
    """
    if gradients[-1] == 0.0:
        return []
    first: set[int] = set()
    named = [(x, graph.values[x]) for x in graph.leaves]
    leaves = {x for x, value in named if not value.label or value.label != number(value.data)}
    for place in range(len(graph)):
        operands = [x for _, x in edges(graph, place)]
        if not any(graph.codes[x] for x in operands):
            first.update(operands)
    return _steepest(graph, first & leaves) or _steepest(graph, leaves or set(graph.leaves))


def _steepest(graph: Graph, ends: set[int]) -> list[int]:
    """Return the path with the largest product among those to the given leaves."""
    partials = graph.partials
    sizes = array("d", [-inf]) * len(graph)  # the logarithm of the largest product below each value
    ways = array("q", [-1]) * len(graph)
    for place in range(len(graph)):
        most = 0.0 if place in ends else -inf
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
