"""Finds the layer, the neuron and the example that each value of a graph belongs to.

A scope is a tuple of full names, the outermost part first:
``("example 2", "example 2: layers.0", "example 2: layers.0.neurons.3")``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import takewhile

from wengert.graph import Graph
from wengert.ops import BY_NAME

__all__ = ["Scope", "assigned", "common", "edges", "levels"]

Scope = tuple[str, ...]

DOT = BY_NAME["dot"].code
DEEPEST = 8  # the largest number of nested modules
MIXED = -1  # in place of an example's number: the value belongs to several


def edges(graph: Graph, place: int) -> list[tuple[int, int]]:
    """List the operands of a value that are not constants, each as its index in `Graph.operands` and its node's."""
    ats = range(graph.starts[place], graph.starts[place + 1])
    return [(at, graph.operands[at]) for at in ats if graph.operands[at] >= 0]


def levels(name: str, inner: Sequence[str], prefix: str = "") -> Scope:
    """Return the scope of a parameter: the modules that contain it, and its list or dict.

    Args:
        name: the parameter's name in the outermost module.
        inner: its names in the modules inside that one, which `name` ends with; others are ignored.
        prefix: the beginning of each name.

    >>> levels("layers.0.neurons.3.w.17", ["neurons.3.w.17", "w.17"])
    ('layers.0', 'layers.0.neurons.3', 'layers.0.neurons.3.w')
    """
    ends = [len(name) - len(end) - 1 for end in inner if name.endswith(f".{end}")]
    last = name[max(ends, default=-1) + 1 :]
    for part in last.split(".")[:-1]:
        ends.append(max(ends, default=-1) + 1 + len(part))
    return tuple([prefix + name[:end] for end in sorted(set(ends))][:DEEPEST])


def common(scopes: Iterable[Scope]) -> Scope:
    """Return the innermost scope that contains all of these.

    >>> common([("a", "a.b"), ("a", "a.c")])
    ('a',)
    """
    names = takewhile(lambda level: len(set(level)) == 1, zip(*scopes, strict=False))
    return tuple([level[0] for level in names])


def assigned(graph: Graph, known: dict[int, Scope]) -> tuple[list[Scope], bytearray]:
    """Return the scope of every value of a graph, and 1 for each that is computed, but not from parameters alone, as a
    penalty is.

    Args:
        graph: the computation.
        known: the scopes of the parameters, by index.
    """
    scopes, uses, weight, steps = _forward(graph, known)
    _backward(graph, uses)
    made = bytearray([bool(code) and not alone for code, alone in zip(graph.codes, weight, strict=True)])
    if max(uses) < 2:
        return scopes, made
    word = "step" if steps else "example"

    @cache  # many values share a scope
    def inside(outer: str, start: str, scope: Scope) -> Scope:
        return (outer, *[start + name for name in scope])

    for place, scope in enumerate(scopes):
        if uses[place] > 0:
            outer = f"{word} {uses[place]}"
            scopes[place] = inside(outer, f"{outer}: ", scope)
        elif weight[place]:
            scopes[place] = inside("parameters", "parameters of ", scope)
    return scopes, made


def _forward(graph: Graph, known: dict[int, Scope]) -> tuple[list[Scope], array[int], bytearray, bool]:
    """Return for each value its module, the number of the use of parameters that it belongs to (0 for none), and 1 if
    it depends on parameters only; and True if a use depends on another.

    A value belongs to the module whose parameters it is computed with, or to that of its operands if it is a sum of
    several values of one module, or to that of its only operand, like an activation. Values that depend on parameters
    only, such as a penalty, count as parameters.
    """
    n = len(graph)
    scopes: list[Scope] = [known.get(place, ()) for place in range(n)]
    uses = array("q", [0]) * n
    weight = bytearray([place in known for place in range(n)])  # 1 for values that depend on parameters only
    summed = bytearray(n)  # 1 for values computed with parameters, and for sums of such values
    counts: dict[int, int] = {}
    steps = False
    for place in range(n):
        own = [operand for _, operand in edges(graph, place)]
        weights = [x for x in own if weight[x]]
        others = [x for x in own if not weight[x]]
        count = graph.starts[place + 1] - graph.starts[place]
        is_square = graph.codes[place] == DOT and own[: count // 2] == own[count // 2 :]  # as in `losses.l2`
        numbers = len(own) < count and not (graph.values[place]._is_constant_power() or is_square)
        before = {uses[x] for x in others if uses[x]}
        if weights and not others and not (numbers and any(not graph.codes[x] for x in weights)):
            weight[place] = True
            scopes[place] = common([scopes[x] for x in weights])
        elif weights and (not before or any(not graph.codes[x] for x in weights)):
            use = counts[weights[0]] = counts.get(weights[0], 0) + 1
            steps |= len(before) == 1 and before != {MIXED} and before != {use}
            uses[place] = max([use, *before])
            scopes[place] = common([scopes[x] for x in weights])
            summed[place] = True
        elif others:  # perhaps with a penalty added
            uses[place] = before.pop() if len(before) == 1 else MIXED if before else 0
            makers = {scopes[x] for x in others}
            whole = common(makers)  # one of them, if the others are parts of it, as a list of weights is of its neuron
            if uses[place] > 0 and whole in makers and all(summed[x] for x in others):
                if len(others) > 1 or count == 1:
                    scopes[place] = whole
                summed[place] = len(others) > 1
    return scopes, uses, weight, steps


def _backward(graph: Graph, uses: array[int]) -> None:
    """Assign values that only one use depends on to that use, such as the inputs of one example."""
    served = array("q", [0]) * len(graph)  # the use to which all values that use this one belong, so far
    for place in range(len(graph) - 1, -1, -1):
        if uses[place] <= 0 and served[place] > 0:
            uses[place] = served[place]
        use = uses[place]
        for _, operand in edges(graph, place):
            if uses[operand] <= 0:
                served[operand] = use if served[operand] in (0, use) and use > 0 else MIXED
