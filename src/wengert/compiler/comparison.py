"""Compares what a program gives with the function itself: numbers, and the derivatives that the engine computes."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from wengert import modes
from wengert.compiler.call import are_near, partials_of
from wengert.compiler.trace import (
    Arguments,
    Parts,
    Specialization,
    flat_result,
    kind_of,
    largest_term,
    number_of,
    numbers_in,
    primal_of,
)
from wengert.engine import Value
from wengert.graph import Graph
from wengert.node import is_many

__all__ = ["difference", "matches", "pulls_back_alike", "run_differs"]

LOST = "the derivative of the array program is 0 for a Value that the function's result depends on"
ROUNDING = 1e-9  # relative to the terms that were added up
_age = attrgetter("_made")


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
    weights = [1.0] if structure is None else structure.cotangents(made.checked)
    return pulls_back_alike(made, ours, weights, theirs, weights)


def pulls_back_alike(
    made: Specialization, ours: Sequence[Any], weights: Sequence[float], theirs: Sequence[Any], others: Sequence[float]
) -> bool:
    """Return True if the Values among a specialization's results, weighted, have the derivatives that the engine
    computes of Values with their own weights, with respect to each operand, up to rounding; also if neither has Values.
    """
    found = [(x, weight) for x, weight in zip(ours, weights, strict=True) if weight and isinstance(x, Value)]
    pairs = [(x, weight) for x, weight in zip(theirs, others, strict=True) if weight and isinstance(x, Value)]
    if not found or not pairs or modes.grad_disabled():
        return bool(found) == bool(pairs)
    first, weight = found[0]
    operands: Any = first._operands if is_many(first) else ()
    are_leaves = operands is made.operands and made.leaves
    pulled = _pulled_back(pairs, operands, are_leaves, made.began)
    if pulled is None or pulled.lost:
        return False
    got: list[Any] = []
    if is_many(first):
        call = first._b  # of several results
        got = [weight * x for x in partials_of(first)] if call is None else call._pull_back(found).tolist()
    agree, places = made.kernel.agree, pulled.places
    if are_near(got, pulled.grads, places, agree, None, 0.0):
        return True
    return are_near(got, pulled.grads, places, agree, pulled.sizes(), made.kernel.nudge)  # digits may have cancelled


def _are_close(ours: Sequence[Any], theirs: Sequence[Any], agree: float) -> bool:
    for x, y in zip(ours, theirs, strict=True):
        if x is not y and not abs(number_of(x) - number_of(y)) <= agree * abs(number_of(y)):
            return False
    return True


@np.errstate(all="ignore")
def difference(
    made: Specialization,
    layout: Any,
    arguments: Arguments,
    example: Sequence[Any],
    result: Any,
    of_values: Callable[[], Any] | None = None,
) -> str:
    """Say how a specialization differs from the function's result for an example; empty if it does not. `of_values`
    returns a result with a graph, where this one has none.
    """
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
    largest = _largest(functools.cache(lambda: _terms(made, layout, result, want.size, of_values)))
    if modes.grad_disabled():
        leaves, cotangents = [], []
    with made.acquire() as space:
        if space.stale_capture():  # it has changed since
            return ""
        space.load()
        arrays, values = arguments.numbers(example), arguments.values()
        batched = arguments.signature.batched
        return run_differs(made, space, arrays, values, batched, want, leaves, cotangents, largest)


def run_differs(
    made: Specialization,
    space: Any,
    arrays: list[Any],
    values: Sequence[Any],
    batched: bool,
    want: Any,
    leaves: Sequence[Any],
    cotangents: Sequence[float],
    largest: Callable[[int], float] | None = None,
) -> str:
    """Say how a specialization differs from a run of the function; empty if it does not.

    Args:
        made: the specialization.
        space: a workspace of it, with the parameters' numbers.
        arrays: the arguments of the run.
        values: the Values among them.
        batched: True if it computes batches.
        want: the numbers of the function's result.
        leaves: its Values, with their graph, and numbers; none if derivatives are not compared.
        cotangents: their weights.
        largest: see `Specialization.mismatch`; by default, of the leaves.
    """
    largest = _largest(lambda: leaves) if largest is None else largest
    count = max(want.size, 1)
    grads: Any = _grads_of(leaves, cotangents, made, values)
    if isinstance(grads, str):
        return grads
    if batched:  # one example would not show how examples are added
        arrays = [np.repeat(np.asarray(x)[None], 2, 0) for x in arrays]
        want, grads = np.tile(want.reshape(-1), 2), grads and (2.0 * grads[0], grads[1])
    weights = None if grads is None else cotangents
    return made.mismatch(space, arrays, 2 if batched else 1, want, grads, weights, lambda n: largest(n % count))


def _terms(made: Specialization, layout: Any, result: Any, count: int, of_values: Callable[[], Any] | None) -> Any:
    """Return the Values and numbers of a result, with a graph if it has one or if `of_values` returns one that has."""

    def flat(x: Any) -> list[Any]:
        if layout is not None:
            return layout.leaves(x) or []
        return flat_result(primal_of(x))[1] if made.structure is None else Parts(x).leaves

    leaves = flat(result)
    if of_values is not None and not any(isinstance(x, Value) for x in leaves):
        leaves = flat(of_values())
    return leaves if len(leaves) == count else []


def _largest(terms: Callable[[], Sequence[Any]]) -> Callable[[int], float]:
    """Return a function that finds the largest number that one of some Values comes from, given its position."""

    def largest(place: int) -> float:
        leaves = terms()
        return largest_term(leaves[place]) if place < len(leaves) else 0.0

    return largest


class PullBack(NamedTuple):
    """Cotangents pulled back from results.

    Attributes:
        graph: the graph of the results.
        places: the positions in it of the Values that are asked for.
        first: the first position that is not skipped.
        weights: the cotangent of each result, by its position.
        grads: the derivatives with respect to each position.
        lost: whether the results depend on a Value that was there before, and is not among those asked for.
    """

    graph: Graph
    places: tuple[int, ...]
    first: int
    weights: dict[int, float]
    grads: Any
    lost: bool = False

    def sizes(self) -> Any:
        """Return the sums of the absolute values that were added up to each derivative."""
        return _swept(self.graph, self.weights, self.first, absolute=True)


def _pulled_back(
    results: Sequence[tuple[Value, float]], wanted: Sequence[Any], are_leaves: bool, began: int
) -> PullBack | None:
    """Pull cotangents back from results to Values; None if a Value is given twice.

    Args:
        results: the results, each with its cotangent.
        wanted: the Values.
        are_leaves: whether these are known to be distinct leaves.
        began: when the run that was recorded began: older Values were there before.
    """
    if not are_leaves and len(set(map(id, wanted))) < len(wanted):
        return None
    graph = Graph(*[x for x, _ in results], *wanted)
    places = graph.outputs[len(results) :]
    weights: dict[int, float] = {}
    for place, (_, weight) in zip(graph.outputs, results, strict=False):
        weights[place] = weights.get(place, 0.0) + weight
    first = 0
    if not are_leaves:  # the rest of their graphs is skipped
        first = max([place for place, x in zip(places, wanted, strict=True) if not x.is_leaf], default=-1) + 1
    pulled = PullBack(graph, places, first, weights, _swept(graph, weights, first))
    before = pulled.grads[: bisect_left(graph.values, began, key=_age)].tolist()
    for place in places:
        if place < len(before):
            before[place] = 0.0
    if not any(before):
        return pulled
    before = np.array(before)
    if (before[np.isfinite(before)] == 0.0).all():
        return pulled
    sizes = np.array(pulled.sizes())[: len(before)]
    return pulled._replace(lost=bool((np.abs(before) > ROUNDING * sizes).any()))


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
    up to each. None if the results have no graph, and `LOST` if they depend on another Value.
    """
    pairs = [(x, weight) for x, weight in zip(results, cotangents, strict=True) if weight]
    if not pairs or not all(isinstance(x, Value) for x, _ in pairs):
        return None
    every = [*recording.parameters, *arguments]
    own: Sequence[int] = range(len(every))  # captured floats have no derivatives
    if recording.own is not None:
        own = [*recording.own, *range(len(recording.parameters), len(every))]
    pulled = _pulled_back(pairs, [every[n] for n in own], False, recording.began)
    if pulled is None:
        return None
    if pulled.lost:
        return LOST

    def spread(numbers: Any) -> Any:
        made = np.zeros(len(every))
        made[list(own)] = [numbers[place] for place in pulled.places]
        return made

    return spread(pulled.grads), lambda: spread(pulled.sizes())


def _add_to_computed(graph: Graph, first: int, grads: Any, partials: Any) -> None:
    """Add the contributions of operations from `first` on to the derivatives with respect to positions before it."""
    operands, starts = np.array(graph.operands, np.int64), np.array(graph.starts, np.int64)
    users = np.repeat(np.arange(len(graph)), np.diff(starts))
    at = np.flatnonzero((operands >= 0) & (operands < first) & (users >= first))
    at = at[grads[users[at]] != 0.0]  # 0 times infinity would be nan
    with np.errstate(all="ignore"):
        np.add.at(grads, operands[at], partials[at] * grads[users[at]])
