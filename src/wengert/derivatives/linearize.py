"""Forward and reverse sweeps over one run of a function, in floats or in Values that can be differentiated further.

`linearize` runs a function on fresh Values and returns a `LinearMap`: from small changes of the inputs to those of the
outputs. `jvp` applies it (forward mode), `vjp` applies its transpose (reverse mode). What it computes is

- floats, if everything that the outputs depend on is a float. Each sweep is then a loop over the flat arrays of a
  `Graph`, and no `grad` of anybody's Value is touched.
- Values, if the function was given Values, or depends on some from outside: then so does its derivative. The partials
  are the rules of the table read over Values, and a gradient is the same kind of graph as what it came from.

Nested derivatives are kept apart by this: a Value comes into a run as a fresh node, made from it by the factor 1, and
sweeps of that run end at this node, not at what the Value was before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from operator import attrgetter, is_, itemgetter
from typing import Any

from wengert import handmade, modes
from wengert.engine import Value
from wengert.errors import OperationError
from wengert.graph import Graph
from wengert.node import settle
from wengert.ops import BY_NAME, coerce

__all__ = ["LinearMap", "linearize"]

HAND = BY_NAME["by hand"].code
Links = list[tuple[int, list[tuple[int, Any]]]]  # for each node, by id, its operands by id and the partials by them
Nodes = list[tuple[Any, tuple[Any, ...], list[int]]]  # nodes, their operands, and the places of some of these
_age = attrgetter("_made")


class _OpaqueError(OperationError):
    """A node stands for more than an operation of the table: no rule says what its partials depend on."""


def linearize(call: Callable[[list[Any]], list[Any]], points: Sequence[Any]) -> LinearMap:
    """Run a function at some numbers or Values.

    Args:
        call: takes one Value for each point, returns a list of Values and floats.
        points: floats and Values. A result depends on a Value among them, unless `no_grad()` is on.

    Raises:
        OperationError: a result has to be a Value, and an operation on the way has a rule for floats only.
        HandmadeNodeError: a node on the way was made by hand.
    """
    given = any(isinstance(point, Value) for point in points)
    kind = "floats" if not given else "leaves" if modes.grad_disabled() else "values"
    run = _run(call, points, kind, kind == "values")
    if kind == "floats" and not run.closed and not modes.grad_disabled():
        run.kind = "values"  # a derivative that depends on Values from outside
    try:  # a node of a compiled function shows itself only here
        run.prepare()
    except _OpaqueError:
        run = _run(call, points, run.kind, True)
        run.prepare()
    if not run.linked and HAND in run.graph.codes[run._first() :]:
        raise handmade.no_rule()
    return run


def _run(call: Callable[[list[Any]], list[Any]], points: Sequence[Any], kind: str, eager_only: bool) -> LinearMap:
    with modes.recorded(eager_only):
        began = Value(0.0)
        observed = type(began.data) is not float  # by a compiler, which is to see every operation
        linked = kind == "values" or observed
        inputs = [x * 1.0 if linked and isinstance(x, Value) else Value(_number(x)) for x in settle([*points])]
        return LinearMap(inputs, call(inputs), began._made, kind, observed)


class LinearMap:
    """What lies between the inputs and the outputs of one run of a function.

    Args:
        inputs: Values, none of them made from another.
        outputs: Values and floats.
        began: the tick before which nothing is of this run.
        kind: what a sweep gives: "floats"; "values", which can be differentiated; "leaves", Values that cannot.
        observed: whether the run is being recorded by a compiler: the numbers must then be computed in its sight.
    """

    def __init__(
        self, inputs: list[Any], outputs: list[Any], began: int, kind: str = "floats", observed: bool = False
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.began = began
        self.kind = kind
        self.observed = observed
        self._graph: Graph | None = None
        self._inputs: list[int] | None = None  # their places in it
        self._links: Links | None = None

    @property
    def graph(self) -> Graph:
        """What the outputs were computed by, and what that was computed by before this run."""
        if self._graph is None:
            self._graph = Graph(*[x for x in self.outputs if isinstance(x, Value)])
        return self._graph

    @property
    def closed(self) -> bool:
        """Whether the outputs depend on no Value from outside."""
        values = self.graph.values
        return not values or values[0]._made >= self.began

    @property
    def linked(self) -> bool:
        """Whether the partials are Values."""
        return self.kind == "values" or (self.observed and not self.closed)

    def prepare(self) -> None:
        """Work out the partials of a run whose partials are Values, while it can still be run again: each node's, by
        its row's rule read over Values.
        """
        if self.linked:
            self._links = []
            for node, operands_, places in self._between():
                partials = _rule(node, operands_)
                self._links.append((id(node), [(id(operands_[place]), partials[place]) for place in places]))

    def vjp(self, cotangents: Mapping[int, Any]) -> list[Any]:
        """The cotangent of each input, from those of some outputs, by their number: reverse mode."""
        if self.linked or any(isinstance(x, Value) for x in cotangents.values()):
            return self._finished(self._vjp_of_values(cotangents), cotangents)
        seeds: dict[int, float] = {}
        for place, number in zip(self.graph.outputs, self._numbers_of_outputs(), strict=True):
            if number in cotangents:
                seeds[place] = seeds.get(place, 0.0) + cotangents[number]
        sums = self.graph.pull_back(seeds, self._first())
        return self._finished([0.0 if place < 0 else sums[place] for place in self._places], cotangents)

    def jvp(self, tangents: Mapping[int, Any]) -> list[Any]:
        """The tangent of each output, from those of some inputs, by their number: forward mode."""
        if self.linked or any(isinstance(x, Value) for x in tangents.values()):
            return self._finished(self._jvp_of_values(tangents), tangents)
        places = self._places
        sums = self.graph.push_forward({places[number]: t for number, t in tangents.items() if places[number] >= 0})
        outputs = [0.0] * len(self.outputs)
        for place, number in zip(self.graph.outputs, self._numbers_of_outputs(), strict=True):
            outputs[number] = sums[place]
        return self._finished(outputs, tangents)

    def jacobian(self) -> list[list[Any]]:
        """For each output its derivative by each input, in as few sweeps as either mode needs."""
        if len(self.outputs) <= len(self.inputs):
            return [self.vjp({number: 1.0}) for number in range(len(self.outputs))]
        columns = [self.jvp({number: 1.0}) for number in range(len(self.inputs))]
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in self.outputs]

    def values(self) -> list[Any]:
        """The outputs themselves."""
        return self._finished(self.outputs, {})

    # -- floats -------------------------------------------------------------------------------------------------------

    def _first(self) -> int:
        """The place in the graph of the first node of this run."""
        return bisect_left(self.graph.values, self.began, key=_age)

    @property
    def _places(self) -> list[int]:
        """The place of each input in the graph; -1 where no output depends on it."""
        if self._inputs is None:
            self._inputs = self._find()
        return self._inputs

    def _find(self) -> list[int]:
        values, first = self.graph.values, self._first()
        count = len(self.inputs)
        if len(values) - first >= count and all(map(is_, values[first : first + count], self.inputs)):
            return list(range(first, first + count))  # all of them are used, as is usual
        known = {id(x): place for place, x in enumerate(values)}
        return [known.get(id(x), -1) for x in self.inputs]

    def _numbers_of_outputs(self) -> list[int]:
        """Which of the outputs are in the graph."""
        return [number for number, x in enumerate(self.outputs) if isinstance(x, Value)]

    # -- Values -------------------------------------------------------------------------------------------------------

    def _between(self) -> Nodes:
        """The nodes that an output depends on and that depend on an input, each with its operands, and the places of
        those that do; in the order in which they were made.
        """
        active = set(map(id, self.inputs))
        seen = set(active)
        found: list[tuple[int, Any, tuple[Any, ...]]] = []
        waiting = [x for x in self.outputs if isinstance(x, Value)]
        while waiting:
            node = waiting.pop()
            if node._made >= self.began and id(node) not in seen:
                seen.add(id(node))
                operands_ = node._operands
                found.append((node._made, node, operands_))
                waiting += [x for x in operands_ if isinstance(x, Value)]
        found.sort(key=itemgetter(0))
        between = []
        for _, node, operands_ in found:
            places = [place for place, x in enumerate(operands_) if id(x) in active]
            if places:
                active.add(id(node))
                between.append((node, operands_, places))
        return between

    def _steps(self) -> Links:
        """The partials, as Values or as the floats that they are where nothing depends on them."""
        if self._links is None:
            graph, first = self.graph, self._first()
            self._links = []
            for place in range(first, len(graph)):
                span = range(graph.starts[place], graph.starts[place + 1])
                known = [(graph.operands[at], graph.partials[at]) for at in span if graph.operands[at] >= first]
                self._links.append((id(graph.values[place]), [(id(graph.values[x]), slope) for x, slope in known]))
        return self._links

    def _vjp_of_values(self, cotangents: Mapping[int, Any]) -> list[Any]:
        sums: dict[int, Any] = {}
        for number, cotangent in cotangents.items():
            _add(sums, id(self.outputs[number]), cotangent)
        for node, links in reversed(self._steps()):
            g = sums.get(node)
            if g is not None:
                for x, partial in links:
                    _add(sums, x, _times(partial, g))
        return [sums.get(id(x), 0.0) for x in self.inputs]

    def _jvp_of_values(self, tangents: Mapping[int, Any]) -> list[Any]:
        sums = {id(self.inputs[number]): tangent for number, tangent in tangents.items()}
        for node, links in self._steps():
            for x, partial in links:
                if x in sums:
                    _add(sums, node, _times(partial, sums[x]))
        return [sums.get(id(x), 0.0) if isinstance(x, Value) else 0.0 for x in self.outputs]

    def _finished(self, results: list[Any], given: Mapping[int, Any]) -> list[Any]:
        """Results as what they are promised to be."""
        if self.kind == "values" or (self.kind == "floats" and any(isinstance(x, Value) for x in given.values())):
            return [x if isinstance(x, Value) else Value(x) for x in results]
        if self.kind == "leaves":
            return [x.detach() if isinstance(x, Value) else Value(x) for x in results]
        return [x.data if isinstance(x, Value) else x for x in results]


def _number(x: Any) -> Any:
    return x.data if isinstance(x, Value) else x


def _rule(node: Any, operands_: tuple[Any, ...]) -> list[Any]:
    """The partials of a node as Values, and floats where they are constant."""
    row = node._row
    if row.code == HAND:
        raise handmade.no_rule()
    xs = [x if isinstance(x, Value) or type(x) is float else coerce.number(x) for x in operands_]
    if row.graph_partials is None:
        raise _OpaqueError(f"a node of the kind {row.name} has no further derivative: it stands for a whole function")
    try:
        partials = row.graph_partials(node, *xs)
        listed = list(partials) if isinstance(partials, (tuple, list)) else [partials]
        listed = [p if isinstance(p, Value) else float(p) for p in listed]
    except Exception as problem:  # whatever a rule of the user's raises that was not written for Values
        raise OperationError(
            f"{row.name} has no further derivative: its partials cannot be computed with Values ({problem}). Write "
            "them with + - * / ** and the functions of wengert, such as wengert.cos for math.cos"
        ) from problem
    if len(listed) != len(xs):
        raise OperationError(
            f"{row.name}: the partials by {len(xs)} operands are as many numbers, not {partials!r:.60}"
        )
    return listed


def _times(partial: Any, g: Any) -> Any:
    """partial * g; None for a constant 0, whose product with what is finite is 0 to any order."""
    for one, other in ((partial, g), (g, partial)):
        if not isinstance(one, Value):
            if one == 1.0:
                return other
            number = _number(other)
            if one == 0.0 and type(number) is float and isfinite(number):
                return None
    return partial * g


def _add(sums: dict[int, Any], key: int, term: Any) -> None:
    """Add a term to one of the sums."""
    if term is not None:
        sums[key] = sums[key] + term if key in sums else term
