"""Compares two results of one call, the array program's and the function's: their numbers and their gradients.

`Check.difference` applies the tolerances, and puts a difference into words. What is compared comes from

- `of_results`: a result that a call was given, and the function's own,
- `of_sample`: a derivative, and its product with a vector, from a run of its function,
- `of_example`: a run of the program for an example, and the function's own result.
"""

from __future__ import annotations

import functools
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from wengert import modes
from wengert.compiler.arguments import Arguments
from wengert.compiler.backends import Kernel, all_finite
from wengert.compiler.call import are_near, partials_of
from wengert.compiler.record import (
    Derived,
    Parts,
    Specialization,
    flat_result,
    kind_of,
    largest_number,
    numbers_in,
    primal_of,
)
from wengert.derivatives import largest_term
from wengert.engine import Value
from wengert.graph import Graph
from wengert.node import is_many

__all__ = ["Check", "of_example", "of_results", "of_run", "of_sample"]

LOST = "the derivative of the array program is 0 for a Value that the function's result depends on"
ONE_SIDED = "only one of the results of the array program and of the function depends on Values"
ROUNDING = 1e-9  # relative to the terms that were added up
_age = attrgetter("_made")


class Gradients(NamedTuple):
    """What two results pull back to the same Values.

    Attributes:
        ours: the derivatives by the program.
        theirs: derivatives by the function's graph, with respect to each of its nodes.
        places: those of the Values.
        largest: returns the largest term of what was added up to the derivative with respect to one of the Values.
    """

    ours: Any
    theirs: Any
    places: tuple[int, ...]
    largest: Callable[[int], float]


class Check:
    """Two results of one call: ours by a program, theirs by the function.

    Args:
        kernel: the program's, which tells the tolerances.
        ours: the numbers of the program's result.
        theirs: those of the function's.
        gradients: returns what both pull back; None if neither depends on Values, or a text that says how they differ.
        terms: the absolute values that each number was added up from, if both were: it may differ relative to these.
        largest: returns, for the position of one of the function's numbers, the largest number that it was computed
            from, times the derivative with respect to that: where digits have cancelled, rounding is relative to it.
        are_alone: True to judge each number on its own scale; else those of a derivative on that of the largest.
        again: yields the program's numbers and gradients at inputs that are moved by slightly more than rounding.
        reason: how they differ in kind; then nothing else is compared.
    """

    def __init__(
        self,
        kernel: Kernel,
        ours: Any = (),
        theirs: Any = (),
        gradients: Callable[[], Gradients | str | None] = lambda: None,
        terms: Any = None,
        largest: Callable[[int], float] | None = None,
        are_alone: bool = False,
        again: Callable[[], Iterator[list[Any]]] = lambda: iter(()),
        reason: str = "",
    ) -> None:
        self.kernel: Kernel = kernel
        self.ours: Any = ours
        self.theirs: Any = theirs
        self.gradients: Callable[[], Gradients | str | None] = gradients
        self.terms: Any = terms
        self.largest: Callable[[int], float] | None = largest
        self.are_alone: bool = are_alone
        self.again: Callable[[], Iterator[list[Any]]] = again
        self.reason: str = reason

    def difference(self) -> str:
        """Say how the program's result differs from the function's; empty if it does not.

        Each number is compared on its own scale, or a derivative's on that of the largest. Where digits have cancelled,
        a difference counts as rounding if it is far smaller than a number that the result comes from, or if the result
        moves as much when its inputs change by slightly more than rounding; but not in a program of compensated sums,
        which keep these digits.
        """
        if self.reason:
            return self.reason
        if len(self.ours) != len(self.theirs):
            return "the array program gives another kind of result"
        agree = self.kernel.agree
        ours, theirs = [*map(float, self.ours)], array("d", self.theirs)
        terms = None if self.terms is None else array("d", self.terms)
        gradients = self.gradients()
        if isinstance(gradients, str):
            return gradients
        if are_near(ours, theirs, tuple(range(len(ours))), agree, terms, agree) and (
            gradients is None or are_near(gradients.ours, gradients.theirs, gradients.places, agree, None, 0.0)
        ):  # nearly always
            return ""
        return self._difference(gradients)

    @np.errstate(all="ignore")
    def _difference(self, gradients: Gradients | None) -> str:
        kernel, program = self.kernel, self.kernel.program
        got, want = np.array(self.ours, float), np.array(self.theirs, float)
        if not all(map(all_finite, [got] if gradients is None else [got, np.array(gradients.ours)])):
            return ""  # the function itself will run
        away = np.abs(got - want)
        close = away <= kernel.agree * np.abs(want) + kernel.floor
        if self.terms is not None:
            close |= away <= kernel.agree * np.array(self.terms)
        keeps_digits = program.as_written and not program.is_derivative
        are_alike = program.is_derivative and not self.are_alone  # the numbers, which may cancel altogether
        if are_alike and np.isfinite(want).any():
            close |= away <= kernel.agree * np.abs(want[np.isfinite(want)]).max()
        if self.largest is not None and not keeps_digits:
            for n in sorted(np.flatnonzero(~close), key=lambda n: -away[n]):
                rounding = 0.0 if close[n] else kernel.nudge * self.largest(int(n))
                close |= (away <= rounding) & (are_alike | (np.arange(len(away)) == n))
                if not close[n]:
                    break
        pairs = [("result", got, want, close)]
        if gradients is not None:
            slopes, wanted = np.array(gradients.ours), np.array(gradients.theirs)[list(gradients.places)]
            near = np.abs(slopes - wanted) <= kernel.agree * np.abs(wanted) + kernel.floor
            for n in np.flatnonzero(~near):
                near[n] = abs(slopes[n] - wanted[n]) <= kernel.nudge * gradients.largest(int(n))
                if not near[n]:
                    break
            pairs.append(("derivative", slopes, wanted, near))
        if all(near.all() for *_, near in pairs):
            return ""
        room = [np.zeros_like(x) for _, x, _, _ in pairs]
        for moved in () if keeps_digits else self.again():
            room = [r + 8.0 * np.abs(m - x) for r, m, (_, x, _, _) in zip(room, moved, pairs, strict=True)]
        for (name, x, y, near), r in zip(pairs, room, strict=True):
            wrong = np.flatnonzero(~near & ~(np.abs(x - y) <= r))
            if len(wrong):
                return f"the {name} of the array program is {x[wrong[0]]}, that of the function {y[wrong[0]]}"
        return ""


# -- what is compared -------------------------------------------------------------------------------------------------


def of_results(specialization: Specialization, served: Any, result: Any) -> Check:
    """Compare a specialization's result of one example with the function's."""
    ours, theirs = _leaves(specialization, None, served), _leaves(specialization, None, result)
    for each in (ours, theirs):
        if isinstance(each, str):
            return Check(specialization.kernel, reason=each)
    (our_leaves, weights), (their_leaves, _) = ours, theirs
    pulled = functools.partial(_pulled_back_by_both, specialization, our_leaves, weights, their_leaves, weights)
    return Check(specialization.kernel, numbers_in(our_leaves), numbers_in(their_leaves), pulled, are_alone=True)


def of_sample(specialization: Specialization, derived: Derived, result: Any, sample: Any) -> Check:
    """Compare a specialization's derivative with what `Derived.sample` gives: what both give for a vector."""
    ours, theirs, terms, largest = derived.products(result, sample)
    weighted = derived.weighted(result, sample, specialization.checked)
    pulled = functools.partial(_pulled_back_by_both, specialization, *weighted)
    return Check(specialization.kernel, ours, theirs, pulled, terms, largest, are_alone=True)


@np.errstate(all="ignore")
def of_example(
    specialization: Specialization,
    layout: Any,
    arguments: Arguments,
    example: Sequence[Any],
    result: Any,
    of_values: Callable[[], Any] | None = None,
) -> str:
    """Say how a run of a specialization for an example differs from the function's result. `of_values` returns a result
    with a graph, where this one has none.
    """
    weighted = _leaves(specialization, layout, result, arguments.values())
    if isinstance(weighted, str):
        return weighted
    leaves, cotangents = weighted
    want: Any = np.asarray(numbers_in(leaves), float)
    terms = functools.cache(lambda: _terms(specialization, layout, result, want.size, of_values))
    if modes.grad_disabled():
        leaves, cotangents = [], []
    with specialization.acquire() as space:
        if space.load():  # a capture has changed since
            return ""
        arrays, values = arguments.numbers(example), arguments.values()
        batched = arguments.signature.batched
        return of_run(specialization, space, arrays, values, batched, want, leaves, cotangents, terms)


def of_run(
    specialization: Specialization,
    space: Any,
    arrays: list[Any],
    values: Sequence[Any],
    batched: bool,
    want: Any,
    leaves: Sequence[Any],
    cotangents: Sequence[float],
    terms: Callable[[], Sequence[Any]] | None = None,
) -> str:
    """Say how a run of a specialization differs from one of the function; empty if it does not.

    Args:
        specialization: the specialization.
        space: a workspace of it, with the parameters' numbers.
        arrays: the arguments of the run.
        values: the Values among them.
        batched: True if it computes batches.
        want: the numbers of the function's result.
        leaves: its Values, with their graph, and numbers; none if derivatives are not compared.
        cotangents: their weights.
        terms: returns the Values and numbers with a graph; by default the leaves.
    """
    count, size = (2 if batched else 1), max(want.size, 1)
    pulled = _pulled_back_to(specialization, leaves, cotangents, [*specialization.parameters, *values])
    if isinstance(pulled, str):
        return pulled
    if batched:  # one example would not show how examples are added
        arrays = [np.repeat(np.asarray(x)[None], 2, 0) for x in arrays]
        want = np.tile(want.reshape(-1), 2)
    if pulled is not None:
        space.set_cotangents(cotangents)
    got = _numbers(specialization, space, arrays, count, pulled is not None)
    if got is None:
        return f"the array program raises {space.error}" if space.is_bounded else ""

    def gradients() -> Gradients | None:
        if pulled is None:
            return None
        theirs, largest = pulled
        return Gradients(got[1].tolist(), array("d", count * theirs), tuple(range(len(theirs))), largest)

    def largest(place: int) -> float:
        with_graph = leaves if terms is None else terms()
        return largest_number(with_graph[place % size]) if place % size < len(with_graph) else 0.0

    def again() -> Iterator[list[Any]]:
        nudge, rng, numbers = specialization.kernel.nudge, np.random.default_rng(0), space.params.copy()
        for _ in range(2):
            pairs = [(x, rng.choice((-1.0, 1.0), np.shape(x))) for x in arrays]
            shaken = [x * (1.0 + nudge * sign) if np.asarray(x).dtype.kind == "f" else x for x, sign in pairs]
            space.params[...] = numbers * (1.0 + nudge * rng.choice((-1.0, 1.0), numbers.shape))
            moved = _numbers(specialization, space, shaken, count, pulled is not None)
            if moved is not None:
                yield moved
        space.params[...] = numbers

    return Check(
        specialization.kernel, got[0], np.asarray(want, float).reshape(-1), gradients, None, largest, not batched, again
    ).difference()


def _leaves(specialization: Specialization, layout: Any, result: Any, values: Sequence[Any] | None = None) -> Any:
    """Return the leaves of a result (Values and numbers) and their cotangents; a text if its structure differs from the
    recorded one, or if it returns another argument or parameter than the recorded run did.
    """
    structure, x = specialization.structure, primal_of(result)
    if structure is not None:
        leaves = structure.leaves_of(result)
        if leaves is None:
            return "the structure of its result, or a type of number in it, differs between calls"
        if values is not None and structure.are_others(leaves, values):
            return "a Value in its result is not the same argument or parameter at each call"
        return leaves, structure.cotangents(specialization.checked)
    if layout is not None:
        leaves = layout.leaves(result)
        unlike = "the structure of its result differs between calls"
        return unlike if leaves is None else (leaves, [0.0] * len(leaves))
    if specialization.shape == () and kind_of(x) is not specialization.kind:
        return f"its result was a {specialization.kind.__name__}, and is a {kind_of(x).__name__}"
    return [x], [float(specialization.shape == ())]


def _terms(
    specialization: Specialization, layout: Any, result: Any, count: int, of_values: Callable[[], Any] | None
) -> Any:
    """Return the Values and numbers of a result, with a graph if it has one or if `of_values` returns one that has."""

    def flat(x: Any) -> list[Any]:
        if layout is not None:
            return layout.leaves(x) or []
        return flat_result(primal_of(x))[1] if specialization.structure is None else Parts(x).leaves

    leaves = flat(result)
    if of_values is not None and not any(isinstance(x, Value) for x in leaves):
        leaves = flat(of_values())
    return leaves if len(leaves) == count else []


def _numbers(specialization: Specialization, space: Any, arrays: Sequence[Any], count: int, with_grads: bool) -> Any:
    """Run a specialization, and return the results and the derivatives of their weighted sum; None if it cannot run."""
    if not space.run([*arrays], count, with_grads, 1.0):
        return None
    results = space.values(count).reshape(-1).copy()  # the next run overwrites them
    if not with_grads:
        return [results]
    grads = space.grads
    if specialization.own is not None:  # captured floats have no derivatives
        grads = np.zeros_like(grads)
        grads[specialization.own] = space.grads[specialization.own]
    return [results, np.concatenate([grads, space.input_grads])]


# -- pull-backs -------------------------------------------------------------------------------------------------------


def _pulled_back_by_both(
    specialization: Specialization,
    ours: Sequence[Any],
    weights: Sequence[float],
    theirs: Sequence[Any],
    others: Sequence[float],
) -> Gradients | str | None:
    """Pull back the Values among a specialization's results, weighted, and those of the function, with their own
    weights, to each operand of the former.
    """
    our_pairs = [(x, weight) for x, weight in zip(ours, weights, strict=True) if weight and isinstance(x, Value)]
    their_pairs = [(x, weight) for x, weight in zip(theirs, others, strict=True) if weight and isinstance(x, Value)]
    if not our_pairs or not their_pairs or modes.grad_disabled():
        return None if bool(our_pairs) == bool(their_pairs) else ONE_SIDED
    first, weight = our_pairs[0]
    operands: Any = first._operands if is_many(first) else ()
    are_leaves = operands is specialization.operands and specialization.leaves
    pulled = _pulled_back(their_pairs, operands, are_leaves, specialization.began)
    if pulled is None or pulled.lost:
        return LOST
    got: list[Any] = []
    if is_many(first):
        call = first._b  # of several results
        got = [weight * x for x in partials_of(first)] if call is None else call._pull_back(our_pairs).tolist()
    return Gradients(got, pulled.grads, pulled.places, lambda n: pulled.largest(pulled.places[n]))


def _pulled_back_to(
    specialization: Specialization, results: Sequence[Any], cotangents: Sequence[float], wanted: Sequence[Any]
) -> Any:
    """Return the derivatives of the function's own results, weighted by cotangents, with respect to a specialization's
    parameters and Values among the arguments, and a function that returns the largest term of one. None if the results
    have no graph, and `LOST` if they depend on another Value.
    """
    pairs = [(x, weight) for x, weight in zip(results, cotangents, strict=True) if weight]
    if not pairs or not all(isinstance(x, Value) for x, _ in pairs):
        return None
    own: Sequence[int] = range(len(wanted))  # captured floats have no derivatives
    if specialization.own is not None:
        own = [*specialization.own, *range(len(specialization.parameters), len(wanted))]
    pulled = _pulled_back(pairs, [wanted[n] for n in own], False, specialization.began)
    if pulled is None:
        return None
    if pulled.lost:
        return LOST

    grads = np.zeros(len(wanted))
    grads[list(own)] = [pulled.grads[place] for place in pulled.places]
    place_of = dict(zip(own, pulled.places, strict=True))
    return grads, lambda n: pulled.largest(place_of[n]) if n in place_of else 0.0


class PullBack(NamedTuple):
    """Cotangents pulled back from results.

    Attributes:
        graph: the graph of the results.
        places: the positions in it of the Values that are asked for.
        grads: the derivatives with respect to each position.
        lost: whether the results depend on a Value that was there before, and is not among those asked for.
    """

    graph: Graph
    places: tuple[int, ...]
    grads: Any
    lost: bool = False

    def largest(self, place: int) -> float:
        """Return the largest term of what was added up to the derivative with respect to a position."""
        return largest_term(self.graph, self.graph.push_forward({place: 1.0}), self.grads)


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
    pulled = PullBack(graph, places, _swept(graph, weights, first))
    before = pulled.grads[: bisect_left(graph.values, began, key=_age)].tolist()
    for place in places:
        if place < len(before):
            before[place] = 0.0
    if not any(before):
        return pulled
    others = [(place, abs(slope)) for place, slope in enumerate(before) if slope and isfinite(slope)]
    return pulled._replace(lost=any(slope > ROUNDING * pulled.largest(place) for place, slope in others))


def _swept(graph: Graph, cotangents: dict[int, float], first: int) -> Any:
    """Pull cotangents back to the operations from `first` on, and from these to the operands that come before."""
    grads: Any = graph.pull_back(cotangents, first)
    if first:
        grads, partials = np.array(grads), np.array(graph.partials)
        _add_to_computed(graph, first, grads, partials)
    return grads


def _add_to_computed(graph: Graph, first: int, grads: Any, partials: Any) -> None:
    """Add the contributions of operations from `first` on to the derivatives with respect to positions before it."""
    operands, starts = np.array(graph.operands, np.int64), np.array(graph.starts, np.int64)
    users = np.repeat(np.arange(len(graph)), np.diff(starts))
    at = np.flatnonzero((operands >= 0) & (operands < first) & (users >= first))
    at = at[grads[users[at]] != 0.0]  # 0 times infinity would be nan
    with np.errstate(all="ignore"):
        np.add.at(grads, operands[at], partials[at] * grads[users[at]])
