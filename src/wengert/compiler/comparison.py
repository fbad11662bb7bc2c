"""Compares what a program gives with the function itself: numbers, and the derivatives that the engine computes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from wengert import modes
from wengert.compiler.call import are_near, partials_of
from wengert.compiler.trace import Arguments, Specialization, kind_of, number_of, numbers_in, primal_of
from wengert.engine import Many, Value
from wengert.graph import Graph

__all__ = ["difference", "matches"]


def matches(found: Any, result: Any, made: Specialization) -> bool:
    """Return True if a specialization's result has the function's numbers and derivatives, up to rounding."""
    structure, agree = made.structure, made.kernel.agree
    theirs: list[Any] | None = [primal_of(result)]
    ours: list[Any] | None = [found]
    if structure is not None:
        ours, theirs = structure.leaves_of(found), structure.leaves_of(result)
    elif kind_of(primal_of(result)) is not made.kind:
        return False
    if ours is None or theirs is None or not _are_close(ours, theirs, agree):
        return False
    weights = repeat(1.0) if structure is None else structure.cotangents(made.checked)
    triples = [each for each in zip(ours, theirs, weights, strict=False) if each[2] and isinstance(each[0], Many)]
    if not triples:  # plain numbers, or no graph
        return True
    ours, theirs, weights = map(list, zip(*triples, strict=True))
    pulled = _pulled_back(theirs, weights, ours[0]._operands, ours[0]._operands is made.operands and made.leaves)
    if pulled is None:
        return False
    graph, places, first, weighted, grads = pulled
    got = partials_of(found) if structure is None else ours[0]._pull_back(zip(ours, weights, strict=True)).tolist()
    if are_near(got, grads, places, agree, None, 0.0):
        return True
    sizes = _swept(graph, weighted, first, absolute=True)  # digits may have cancelled
    return are_near(got, grads, places, agree, sizes, made.kernel.nudge)


def _are_close(ours: Sequence[Any], theirs: Sequence[Any], agree: float) -> bool:
    for x, y in zip(ours, theirs, strict=True):
        if x is not y and not abs(number_of(x) - number_of(y)) <= agree * abs(number_of(y)):
            return False
    return True


@np.errstate(all="ignore")
def difference(made: Specialization, layout: Any, arguments: Arguments, example: Sequence[Any], result: Any) -> str:
    """Say how a specialization differs from the function's result for an example; empty if it does not."""
    arrays: Any = arguments.numbers(example)
    structure, leaves, cotangents = made.structure, [primal_of(result)], [1.0]
    if structure is not None:
        parts = structure.leaves_of(result)
        if parts is None:
            return "the structure of its result, or a type of number in it, differs between calls"
        if structure.are_others(parts, arguments.values()):
            return "a Value in its result is not the same argument or parameter at each call"
        leaves, cotangents = parts, structure.cotangents(made.checked)
    elif layout is not None:
        numbers = layout.leaves(result)
        if numbers is None:
            return "the structure of its result differs between calls"
        leaves, cotangents = numbers, [0.0] * len(numbers)
    elif made.shape != ():
        cotangents = [0.0]
    elif kind_of(leaves[0]) is not made.kind:
        return f"its result was a {made.kind.__name__}, and is a {kind_of(leaves[0]).__name__}"
    want: Any = np.asarray(numbers_in(leaves), float)
    grads = None if modes.grad_disabled() else _grads_of(leaves, cotangents, made, arguments.values())
    if arguments.signature.batched:  # one example would not show how examples are added
        arrays = [np.repeat(np.asarray(x)[None], 2, 0) for x in arrays]
        want, grads = np.tile(want.reshape(-1), 2), grads and (2.0 * grads[0], grads[1])
    with made.acquire() as space:
        if space.stale_capture():  # it has changed since
            return ""
        space.load()
        return made.mismatch(space, arrays, 2 if arguments.signature.batched else 1, want, grads, cotangents)


def _pulled_back(
    results: Sequence[Any], cotangents: Sequence[float], wanted: Sequence[Any], are_leaves: bool = False
) -> Any:
    """Pull cotangents back from results to Values; `are_leaves` if these are known to be distinct leaves.

    Returns:
        The graph of the results; the positions of the Values in it; the first position that is not skipped; the weight
        of each result, by its position; and the derivatives with respect to each position. None if a Value is given
        twice.
    """
    if not are_leaves and len(set(map(id, wanted))) < len(wanted):
        return None
    graph = Graph(*results, *wanted)
    places = graph.outputs[len(results) :]
    weights: dict[int, float] = {}
    for place, weight in zip(graph.outputs, cotangents, strict=False):
        weights[place] = weights.get(place, 0.0) + weight
    first = 0
    if not are_leaves:  # the rest of their graphs is skipped
        first = max([place for place, x in zip(places, wanted, strict=True) if not x.is_leaf], default=-1) + 1
    return graph, places, first, weights, _swept(graph, weights, first)


def _swept(graph: Graph, cotangents: dict[int, float], first: int, absolute: bool = False) -> Any:
    """Pull cotangents back to the operations from `first` on, and from these to the operands that come before."""
    grads: Any = graph.pull_back(cotangents, first, absolute)
    if first:
        grads, partials = np.array(grads), np.array(graph.partials)
        _add_to_computed(graph, first, grads, np.abs(partials) if absolute else partials)
    return grads


def _grads_of(
    results: Sequence[Any], cotangents: Sequence[float], recording: Specialization, arguments: Sequence[Any]
) -> Any:
    """Return the derivatives of the function's own results, weighted by cotangents, with respect to a specialization's
    parameters, then Values among the arguments, and a function that returns the sums of absolute values that were added
    up to each. None if the results have no graph.
    """
    pairs = [(x, weight) for x, weight in zip(results, cotangents, strict=True) if weight]
    if not pairs or not all(isinstance(x, Value) for x, _ in pairs):
        return None
    results, cotangents = zip(*pairs, strict=True)
    every = [*recording.parameters, *arguments]
    own: Sequence[int] = range(len(every))  # captured floats have no derivatives
    if recording.own is not None:
        own = [*recording.own, *range(len(recording.parameters), len(every))]
    pulled = _pulled_back(results, cotangents, [every[n] for n in own])
    if pulled is None:
        return None
    graph, places, first, weighted, grads = pulled

    def sizes() -> Any:
        return spread(_swept(graph, weighted, first, absolute=True))

    def spread(numbers: Any) -> Any:
        made = np.zeros(len(every))
        made[list(own)] = [numbers[place] for place in places]
        return made

    return spread(grads), sizes


def _add_to_computed(graph: Graph, first: int, grads: Any, partials: Any) -> None:
    """Add the contributions of operations from `first` on to the derivatives with respect to positions before it."""
    operands, starts = np.array(graph.operands, np.int64), np.array(graph.starts, np.int64)
    users = np.repeat(np.arange(len(graph)), np.diff(starts))
    at = np.flatnonzero((operands >= 0) & (operands < first) & (users >= first))
    at = at[grads[users[at]] != 0.0]  # 0 times infinity would be nan
    with np.errstate(all="ignore"):
        np.add.at(grads, operands[at], partials[at] * grads[users[at]])
