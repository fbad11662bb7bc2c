"""Forward and reverse sweeps over one run of a function, in floats or in Values that can be differentiated further.

`linearize` runs a function on new Values and returns a `LinearMap`, the linear map from small changes of the inputs to
those of the outputs. `jvp` applies it (forward mode), `vjp` applies its transpose (reverse mode). The results are

- floats, if the outputs depend on floats only. A sweep is then a loop over the flat arrays of a `Graph`, and no Value's
  `grad` is read or written.
- Values, if the function was given Values or depends on others. The rules of the table over Values then compute the
  partials, so that the gradient is a graph of the same kind as the function's own.

`linearize_gradient` returns the linear map of a gradient from the run of the function itself: Hessians in floats.

To keep nested derivatives apart, a Value enters a run as a new node, the Value times 1, and sweeps of the run end at
this node and do not reach the Value itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import isfinite
from operator import attrgetter, is_, itemgetter
from typing import TYPE_CHECKING, Any

from wengert import handmade, modes
from wengert.derivatives.lengths import (
    even_power,
    gradient_of,
    is_at_kink,
    is_zero_length,
    is_zero_root,
    joined,
    operands_of,
    partials_of,
)
from wengert.engine import Value
from wengert.errors import OperationError
from wengert.graph import Curvature, Graph, is_untaken
from wengert.node import settle
from wengert.ops import BY_NAME, coerce

if TYPE_CHECKING:
    from wengert.derivatives import coloring

__all__ = ["LinearMap", "OpaqueError", "largest_term", "linear_map", "linearize", "linearize_gradient", "number_of"]

HAND = BY_NAME["by hand"].code
FLAT = {BY_NAME[name].code for name in ("sign", "floor", "round", "stop_gradient")}  # whose slope is 0 everywhere
Links = list[tuple[int, list[tuple[int, Any]]]]  # for each node's id, the ids of its operands and the partials
Nodes = list[tuple[Any, tuple[Any, ...], list[int]]]  # nodes, their operands, and the indices of some operands
Reads = dict[int, Any]  # for each place those that it reads
Numbered = set[int] | frozenset[int]
_age = attrgetter("_made")


class OpaqueError(OperationError):
    """A node of a compiled function has no rule that could be differentiated."""


def linearize(call: Callable[[list[Any]], list[Any]], points: Sequence[Any], order: int = 1) -> LinearMap:
    """Run a function at some numbers or Values.

    Args:
        call: takes one Value for each point, returns a list of Values and floats.
        points: floats and Values; the results depend on the Values among them, unless `no_grad()` is on.
        order: above 1, compiled functions run operation by operation, since their nodes have no further derivative.

    Raises:
        OperationError: the results have to be Values, but the rule of an operation works on floats only.
        HandmadeNodeError: the function made a node by hand.
    """
    given = any(isinstance(point, Value) for point in points)
    if given and type(Value(0.0).data) is not float:  # of a number that is traced, too
        given = _recorder().depends_on_values(points)
    kind = "floats" if not given else "leaves" if modes.grad_disabled() else "values"
    run = _run(call, points, kind, kind == "values" or order > 1)
    try:  # nodes of compiled functions are found only here
        return _prepared(run)
    except OpaqueError:
        return _prepared(_run(call, points, run.kind, True))


def linear_map(inputs: list[Any], outputs: list[Any], began: int) -> LinearMap:
    """Return the derivative of a run that is over, of new Values made from floats; arguments as for `LinearMap`."""
    return _prepared(LinearMap(inputs, outputs, began))


def _prepared(run: LinearMap) -> LinearMap:
    if run.kind == "floats" and not run.closed and not modes.grad_disabled() and run.depends_on_values(run.outputs):
        run.kind = "values"  # the derivative depends on Values from outside
    run.prepare()
    if not run.linked and HAND in run.graph.codes[run._first() :]:
        raise handmade.no_rule()
    return run


def _run(call: Callable[[list[Any]], list[Any]], points: Sequence[Any], kind: str, eager_only: bool) -> LinearMap:
    with modes.recorded(eager_only):
        began = Value(0.0)
        observed = type(began.data) is not float  # while a function is traced, all operations have to be recorded
        linked = kind == "values" or observed
        inputs = [x * 1.0 if linked and isinstance(x, Value) else Value(number_of(x)) for x in settle([*points])]
        if observed:
            _recorder().lifted_values += inputs
        return LinearMap(inputs, call(inputs), began._made, kind, observed)


class LinearMap:
    """The derivative of one run of a function, from its inputs to its outputs.

    Args:
        inputs: Values, none of them made from another.
        outputs: Values and floats.
        began: the tick at which the run began.
        kind: the results of a sweep: "floats"; "values", which can be differentiated; "leaves", Values that cannot.
        observed: the run is being traced by `compile`, so that all arithmetic has to be done with Values.
    """

    is_symmetric = False  # whatever the function is

    def __init__(
        self, inputs: list[Any], outputs: list[Any], began: int, kind: str = "floats", observed: bool = False
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.began = began
        self.kind = kind
        self.observed = observed
        self._graph: Graph | None = None
        self._inputs: list[int] | None = None  # the indices of the inputs in the graph
        self._links: Links | None = None
        self._lengths: dict[int, Any] = {}  # by id the lengths that are 0, between inputs and outputs
        self._kinks: dict[int, Any] = {}  # and all nodes at kinks, if a mode asks for them
        self._same: dict[int, int] = {}  # the ids of lengths that have been computed before, and theirs

    @property
    def graph(self) -> Graph:
        """The graph below the outputs, including nodes made before this run."""
        if self._graph is None:
            self._graph = Graph(*[x for x in self.outputs if isinstance(x, Value)])
        return self._graph

    @property
    def closed(self) -> bool:
        """True if the outputs depend on no Value from outside."""
        values = self.graph.values
        return not values or values[0]._made >= self.began

    def depends_on_values(self, xs: Iterable[Any]) -> bool:
        """Return True if there are Values among these; of a traced function, that are not numbers for it."""
        values = [x for x in xs if isinstance(x, Value)]
        if not self.observed:
            return len(values) > 0
        return _recorder().depends_on_values(values, own=map(id, self.inputs))  # type: ignore[no-any-return]

    @property
    def linked(self) -> bool:
        """True if the partials are Values."""
        return self.kind == "values" or (self.observed and not self.closed)

    def prepare(self) -> None:
        """Compute the partials if they are Values, by the rules of the table; on an error the run can be repeated."""
        if self.linked:
            self._links, watches = [], modes.watches_kinks() and not self.observed
            between = self.between()
            self._same = self._same or joined([node for node, _, _ in between])
            for node, operands_, places in between:
                power = even_power(node)
                partials = _rule(node, operands_) if power is None else partials_of(power, operands_)
                keys, code = [id(x) for x in operands_], node._row.code
                taken = [n for n in places if isinstance(partials[n], Value) or not is_untaken(code, partials[n])]
                self._links.append((id(node), [(self._same.get(keys[n], keys[n]), partials[n]) for n in taken]))
                if is_zero_length(node) and node == 0.0:  # while a function is traced, this is a guard
                    self._lengths[id(node)] = node
                if watches and is_at_kink(node):
                    self._kinks[id(node)] = node

    def vjp(self, cotangents: Mapping[int, Any]) -> list[Any]:
        """Reverse mode: return the cotangent of each input, given those of some outputs by their number."""
        if self.linked or any(isinstance(x, Value) for x in cotangents.values()):
            return self._finished(self._vjp_of_values(cotangents), cotangents)
        seeds: dict[int, float] = {}
        for place, number in zip(self.graph.outputs, self._numbers_of_outputs(), strict=True):
            if number in cotangents:
                seeds[place] = seeds.get(place, 0.0) + cotangents[number]
        sums = self.graph.pull_back(seeds, self._first())
        return self._finished([0.0 if place < 0 else sums[place] for place in self._places], cotangents)

    def jvp(self, tangents: Mapping[int, Any]) -> list[Any]:
        """Forward mode: return the tangent of each output, given those of some inputs by their number."""
        if self.linked or any(isinstance(x, Value) for x in tangents.values()):
            return self._finished(self._jvp_of_values(tangents), tangents)
        return self._finished(self._moved(tangents), tangents)

    def largest(self, number: int, tangents: Mapping[int, float]) -> float:
        """Return the largest term of what `jvp` computes for one output: a partial, times the tangent of its operand,
        times the derivative of the output with respect to the node. If the output's tangent is far smaller, digits have
        cancelled.
        """
        graph, output = self.graph, self.outputs[number]
        if not isinstance(output, Value):
            return 0.0
        place = graph.outputs[self._numbers_of_outputs().index(number)]
        moved = graph.push_forward(self._known(tangents))
        return largest_term(graph, moved, graph.pull_back({place: 1.0}, self._first()))

    def jacobian(self) -> list[list[Any]]:
        """Return for each output its derivatives with respect to the inputs, by the mode that needs fewer sweeps."""
        if len(self.outputs) <= len(self.inputs):
            return [self.vjp({number: 1.0}) for number in range(len(self.outputs))]
        columns = [self.jvp({number: 1.0}) for number in range(len(self.inputs))]
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in self.outputs]

    def entries(self) -> tuple[coloring.Pattern, list[Any]]:
        """Return the pattern of the Jacobian, and the entries that may be nonzero: from a sweep for each colour of the
        columns and rows.
        """
        import numpy as np

        from wengert.derivatives import coloring

        shape = len(self.inputs if self.is_symmetric else self.outputs), len(self.inputs)
        rows, columns = np.array(self.nonzeros(), np.int64).reshape(-1, 2).T
        pattern = coloring.Pattern.of(rows, columns, shape)
        colors = (coloring.star_coloring if self.is_symmetric else coloring.two_sided)(pattern)
        sweeps: list[list[Any]] = []
        for sweep, of, count in zip((self.jvp, self.vjp), (colors.columns, colors.rows), colors.counts, strict=True):
            sweeps += [sweep(dict.fromkeys((of == n).nonzero()[0].tolist(), 1.0)) for n in range(count)]
        places = zip(colors.direction.tolist(), colors.place.tolist(), strict=True)
        return pattern, [sweeps[n][place] for n, place in places]

    def nonzeros(self) -> list[tuple[int, int]]:
        """List the row and the column of each entry of the Jacobian that the operations of this run do not make 0.

        Each instruction has the set of the inputs below it, or of the outputs above it if they are fewer.
        """
        reads, turned = self._reads(), len(self.outputs) <= len(self.inputs)
        inputs = [(place, number) for number, place in enumerate(self._places) if place >= 0]
        outputs = list(zip(self.graph.outputs, self._numbers_of_outputs(), strict=True))
        ends, starts = (inputs, outputs) if turned else (outputs, inputs)
        given: dict[int, list[Numbered]] = defaultdict(list)
        for place, number in starts:
            given[place].append(frozenset([number]))
        found = _united(_turned(reads) if turned else reads, given, [place for place, _ in ends])
        pairs = [(number, x) for place, number in ends for x in found.get(place, ())]
        return [(row, column) for column, row in pairs] if turned else pairs

    def _reads(self, weights: Sequence[float] = ()) -> Reads:
        """Return for each instruction of this run the operands that its result may change with, and constants."""
        graph, first = self.graph, self._first()
        ends, operands, codes = graph.starts.tolist(), tuple(graph.operands), graph.codes.tolist()
        is_finite = all(map(isfinite, chain(graph.partials, weights)))  # else 0 * inf reaches beyond a slope of 0
        flat = FLAT if is_finite else ()
        return {n: () if codes[n] in flat else operands[ends[n] : ends[n + 1]] for n in range(first, len(codes))}

    def values(self) -> list[Any]:
        """Return the outputs themselves."""
        return self._finished(self.outputs, {})

    def of_gradient(self) -> LinearMap:
        """Return the derivative of this run's gradient, which the rules of the table make of Values."""
        with modes.recorded(True):
            run = LinearMap(self.inputs, self.outputs, self.began, "values")
            run.prepare()
            made = LinearMap(self.inputs, run.vjp({0: 1.0}), self.began)
        return _prepared(made)

    # -- floats -------------------------------------------------------------------------------------------------------

    def _known(self, tangents: Mapping[int, float]) -> dict[int, float]:
        """Return the tangents by the places of the inputs that an output depends on."""
        places = self._places
        return {places[number]: t for number, t in tangents.items() if places[number] >= 0}

    def _moved(self, tangents: Mapping[int, float]) -> list[float]:
        """Push tangents forward to the outputs."""
        sums = self.graph.push_forward(self._known(tangents))
        outputs = [0.0] * len(self.outputs)
        for place, number in zip(self.graph.outputs, self._numbers_of_outputs(), strict=True):
            outputs[number] = sums[place]
        return outputs

    def _first(self) -> int:
        """Return the index in the graph of the first node of this run."""
        return bisect_left(self.graph.values, self.began, key=_age)

    @property
    def _places(self) -> list[int]:
        """The index of each input in the graph; -1 if no output depends on it."""
        if self._inputs is None:
            self._inputs = self._find()
        return self._inputs

    def _find(self) -> list[int]:
        values, first = self.graph.values, self._first()
        count = len(self.inputs)
        if len(values) - first >= count and all(map(is_, values[first : first + count], self.inputs)):
            return list(range(first, first + count))  # usually all inputs are used
        known = {id(x): place for place, x in enumerate(values)}
        return [known.get(id(x), -1) for x in self.inputs]

    def _numbers_of_outputs(self) -> list[int]:
        """List the numbers of the outputs that are in the graph."""
        return [number for number, x in enumerate(self.outputs) if isinstance(x, Value)]

    # -- Values -------------------------------------------------------------------------------------------------------

    def between(self) -> Nodes:
        """List the nodes between inputs and outputs in the order of creation, each with its operands and the indices of
        those that depend on an input.
        """
        active = set(map(id, self.inputs))
        seen = set(active)
        found: list[tuple[int, Any, tuple[Any, ...]]] = []
        waiting = [x for x in self.outputs if isinstance(x, Value)]
        while waiting:
            node = waiting.pop()
            if node._made >= self.began and id(node) not in seen:
                seen.add(id(node))
                operands_ = operands_of(node)
                found.append((node._made, node, operands_))
                waiting += [x for x in operands_ if isinstance(x, Value)]
        found.sort(key=itemgetter(0))
        between = []
        for _, node, operands_ in found:
            places = [place for place, x in enumerate(operands_) if id(x) in active]
            if places and node._row.name != "stop_gradient":
                active.add(id(node))
                between.append((node, operands_, places))
        return between

    def _steps(self) -> Links:
        """List the partials of each node: Values if the run is linked, else floats."""
        if self._links is None:
            graph, first = self.graph, self._first()
            self._links = []
            for place in range(first, len(graph)):
                span = range(graph.starts[place], graph.starts[place + 1])
                known = [(graph.operands[at], graph.partials[at]) for at in span if graph.operands[at] >= first]
                taken = [(x, slope) for x, slope in known if not is_untaken(graph.codes[place], slope)]
                self._links.append((id(graph.values[place]), [(id(graph.values[x]), slope) for x, slope in taken]))
        return self._links

    def _vjp_of_values(self, cotangents: Mapping[int, Any]) -> list[Any]:
        sums: dict[int, Any] = {}
        for number, cotangent in cotangents.items():
            _add(sums, id(self.outputs[number]), cotangent)
        for node, links in reversed(self._steps()):
            g = sums.get(node)
            if g is None:
                continue
            length: Any = self._lengths.get(node)
            slope = None if length is None else self._slope_at(length, g)
            if node in self._kinks and (slope is None or self._varies_beside(length, g)):
                modes.at_kink(self._kinks[node])
            if slope is None:
                for x, partial in links:
                    _add(sums, x, _times(partial, g))
            elif isinstance(slope, Value) or slope != 0.0:
                gradient = gradient_of(length, slope)
                for x, _ in links:
                    _add(sums, x, gradient[x])
        return [sums.get(id(x), 0.0) for x in self.inputs]

    def _slope_at(self, length: Value, cotangent: Any) -> Any:
        """Return the derivative of a length's cotangent with respect to the length, which is 0. None if there is none,
        or if the cotangent is not 0: then the result has a kink there, too.
        """
        if not isinstance(cotangent, Value) or cotangent != 0.0:
            return None
        slope = self._along(length, cotangent)[-1]
        if not isinstance(slope, Value):
            return slope
        curvature = self._along(length, slope)[-1]
        if isfinite(curvature._data if isinstance(curvature, Value) else curvature):
            return slope
        return slope._data if isfinite(slope._data) else None

    def _varies_beside(self, length: Any, cotangent: Value) -> bool:
        """Return True if a length's cotangent changes with an input or another length while the length stays 0."""
        others = [x for x in self._lengths.values() if x is not length]
        return any(number_of(slope) != 0.0 for slope in self._along(length, cotangent, others)[:-1])

    def _along(self, length: Value, of: Value, others: Sequence[Value] = ()) -> list[Any]:
        """Return the derivatives of a Value with respect to the inputs, other lengths and a length, as if they were
        independent.
        """
        run = LinearMap([*self.inputs, *others, length], [of], self.began, "values")
        run._same = self._same
        run.prepare()
        run._lengths, run._kinks = {}, {}
        return run._vjp_of_values({0: 1.0})

    def _jvp_of_values(self, tangents: Mapping[int, Any]) -> list[Any]:
        sums = {id(self.inputs[number]): tangent for number, tangent in tangents.items()}
        for node, links in self._steps():
            for x, partial in links:
                if x in sums:
                    if node in self._kinks:
                        modes.at_kink(self._kinks[node])
                    _add(sums, node, _times(partial, sums[x]))
        return [sums.get(id(x), 0.0) if isinstance(x, Value) else 0.0 for x in self.outputs]

    def _finished(self, results: list[Any], given: Mapping[int, Any]) -> list[Any]:
        """Convert results to the run's kind."""
        if self.kind == "values" or (self.kind == "floats" and self.depends_on_values(given.values())):
            return [x if isinstance(x, Value) else Value(x) for x in results]
        if self.observed and self.kind == "floats" and not self.depends_on_values(results):
            recorder = _recorder()
            return [recorder.number(x) if isinstance(x, Value) else x for x in results]
        if self.kind == "leaves":
            return [x.detach() if isinstance(x, Value) else Value(x) for x in results]
        return [*map(number_of, results)]


class GradientMap(LinearMap):
    """The derivative of a run's gradient, in floats: forward over reverse in the graph of the run.

    Args:
        run: that of the function, linearized to order 2.
        graph: its graph, and the partials that `curvature` names.
        curvature: how the partials change.
    """

    is_symmetric = True

    def __init__(self, run: LinearMap, graph: Graph, curvature: Curvature) -> None:
        super().__init__(run.inputs, run.outputs, run.began)
        self._run, self._graph, self._curvature = run, graph, curvature

    def values(self) -> list[Any]:
        """Return the gradient."""
        return self._run.vjp({0: 1.0})

    def vjp(self, cotangents: Mapping[int, Any]) -> list[Any]:
        """Reverse mode, which is reverse over reverse: the rules of the table make the gradient of Values."""
        return self._run.of_gradient().vjp(cotangents)

    def jvp(self, tangents: Mapping[int, Any]) -> list[Any]:
        """Forward mode: return the tangent of the gradient, given those of some inputs by their number."""
        if any(isinstance(x, Value) for x in tangents.values()):
            return self._run.of_gradient().jvp(tangents)
        sums = self.graph.curve(self._known(tangents), self._curvature, self._first(), self.graph.outputs[0])
        return [0.0 if place < 0 else sums[place] for place in self._places]

    def largest(self, number: int, tangents: Mapping[int, float]) -> float:
        """Return the largest term of one number of the gradient's tangent: what changes with a partial of the graph."""
        import numpy as np

        graph, first, root, place = self.graph, self._first(), self.graph.outputs[0], self._places[number]
        if place < 0:
            return 0.0
        starts, columns, weights = map(np.array, self._curvature)
        edges = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        users = np.repeat(np.arange(len(graph)), np.diff(np.array(graph.starts)))[edges]
        cotangents = np.array(graph.pull_back({root: 1.0}, first))[users]
        along = np.array(graph.push_forward(self._known(tangents)))[columns[: len(edges)]]
        toward = np.array(graph.push_forward({place: 1.0}))[np.array(graph.operands)[edges]]
        with np.errstate(all="ignore"):
            return float(np.abs(cotangents * weights[: len(edges)] * along * toward).max(initial=0.0))

    def nonzeros(self) -> list[tuple[int, int]]:
        """List the row and the column of each entry of the Hessian that the operations of this run do not make 0: an
        input's cotangent changes with what the partials above it change with.
        """
        graph, first, root = self.graph, self._first(), self.graph.outputs[0]
        reads = self._reads(self._curvature.weights)
        inputs = {place: number for number, place in enumerate(self._places) if place >= 0}
        terms, operands = self._curvature.starts.tolist(), graph.operands.tolist()
        columns = self._curvature.columns[: terms[-1]].tolist()
        given: dict[int, list[Numbered]] = defaultdict(list, {n: [frozenset([x])] for n, x in inputs.items()})
        below = _united(reads, given, columns)
        given.clear()
        for at in range(graph.starts[first], graph.starts[root + 1]):
            if terms[at] < terms[at + 1]:
                given[operands[at]] += [below[x] for x in columns[terms[at] : terms[at + 1]] if x in below]
        found = _united(_turned({place: reads[place] for place in range(first, root + 1)}), given, inputs)
        pairs = [(number, x) for place, number in inputs.items() for x in found.get(place, ())]
        return pairs + [(x, number) for number, x in pairs]

    def jacobian(self) -> list[list[Any]]:
        """Return the Hessian, a column in each sweep."""
        return [list(row) for row in zip(*[self.jvp({number: 1.0}) for number in range(len(self.inputs))], strict=True)]


def largest_term(graph: Graph, tangents: Any, cotangents: Any) -> float:
    """Return the largest product of a partial, the tangent of its operand and the cotangent of its node: each is a term
    of the sum of all of them over a cut through the graph, which is what the cotangents make of the tangents.
    """
    import numpy as np

    operands = np.array(graph.operands, np.int64)
    users = np.repeat(np.arange(len(graph)), np.diff(np.array(graph.starts)))
    at = np.flatnonzero(operands >= 0)
    terms = np.array(graph.partials)[at] * np.array(tangents)[operands[at]] * np.array(cotangents)[users[at]]
    return float(np.abs(terms[np.isfinite(terms)]).max(initial=0.0))


def linearize_gradient(run: LinearMap) -> LinearMap:
    """Return the derivative of a run's gradient.

    Args:
        run: that of a function with one number as its result, linearized to order 2.

    Raises:
        OperationError, HandmadeNodeError: as for `linearize`.
    """
    if run.kind != "floats" or not isinstance(run.outputs[0], Value) or modes.watches_kinks():
        return run.of_gradient()
    lengths: list[Value] = []

    def rule(node: Value) -> list[Any]:
        lengths.extend([node] * is_zero_length(node))
        return _rule(node, node._operands)

    with modes.recorded(True):
        given = [place for place in run._places if place >= 0]
        curvature, terms = run.graph.curvature(given, rule)
    if lengths and _is_smooth_in_one(run, lengths):
        return run.of_gradient()
    graph = Graph(run.outputs[0], *[partial for _, partial in terms]) if terms else run.graph
    for (term, _), place in zip(terms, graph.outputs[1:], strict=False):
        curvature.columns[term] = place
    made = GradientMap(run, graph, curvature)
    if made._first() != run._first():  # a user's rule depends on Values from outside
        return run.of_gradient()
    if HAND in graph.codes[run._first() :]:
        raise handmade.no_rule()
    return made


def _is_smooth_in_one(run: LinearMap, lengths: list[Value]) -> bool:
    """Return True if the derivative of a run with respect to one of its lengths that are 0 is 0: it may be smooth."""
    graph = run.graph
    cotangents = graph.pull_back({graph.outputs[0]: 1.0}, run._first())
    places, same = {id(x): place for place, x in enumerate(graph.values)}, joined(graph.values)
    sums: dict[int, float] = defaultdict(float)
    for length in lengths:
        sums[same.get(id(length), id(length))] += cotangents[places[id(length)]]
    return 0.0 in sums.values()


def _turned(reads: Reads) -> Reads:
    """Return for each place, the last one first, those that read it."""
    turned: Reads = {place: [] for place in reversed(reads)}
    for place, operands in reads.items():
        for x in operands:
            if x in turned:
                turned[x].append(place)
    return turned


def _united(reads: Reads, given: Mapping[int, list[Numbered]], kept: Iterable[int]) -> dict[int, Numbered]:
    """Return for each place to be kept the union of the sets given for it and for all that it reads, directly or not.

    A set that is read once is its reader's to add to, so that a long sum takes as long as its terms. Others do not
    change, and places that have the same one share it. All are freed after their last use.
    """
    uses = Counter(chain.from_iterable(reads.values()))
    uses.update(dict.fromkeys(kept, 2))
    found: dict[int, Numbered] = {}
    for place, operands in reads.items():
        parts = [*given.get(place, ())]
        for x in operands:
            uses[x] -= 1
            part = found.get(x) if uses[x] else found.pop(x, None)
            if part is not None:
                parts.append(part)
        if parts:
            most = max(parts, key=len) if len(parts) > 1 else parts[0]
            if len(parts) > 1 and not all(part is most or part <= most for part in parts):
                most = most if type(most) is set else {*most}
                most.update(*parts)
            found[place] = most if uses[place] == 1 else frozenset(most)
    return found


def number_of(x: Any) -> Any:
    """Return the number of a Value, traced or not, and other numbers as they are."""
    return x.data if isinstance(x, Value) else x


def _recorder() -> Any:
    """Return what records the traced function that runs."""
    number: Any = Value(0.0).data
    return number.recorder


def _rule(node: Any, operands_: tuple[Any, ...]) -> list[Any]:
    """List the partials of a node as Values, or as floats where they are constant."""
    row = node._row
    if row.code == HAND:
        raise handmade.no_rule()
    if is_zero_root(node):
        return [0.0] * len(operands_)
    xs = [x if isinstance(x, Value) or type(x) is float else coerce.number(x) for x in operands_]
    if row.graph_partials is None:
        raise OpaqueError(f"a {row.name} node has no further derivative, as it is a whole function")
    try:
        partials = row.graph_partials(node, *xs)
        listed = list(partials) if isinstance(partials, (tuple, list)) else [partials]
        listed = [p if isinstance(p, Value) else float(p) for p in listed]
    except Exception as problem:  # a user's rule that was not written for Values can raise anything
        raise OperationError(
            f"{row.name} has no further derivative: its partials cannot be computed with Values ({problem}). Write "
            "them with + - * / ** and the functions of wengert, such as wengert.cos for math.cos"
        ) from problem
    if len(listed) != len(xs):
        raise OperationError(f"{row.name}: expected a partial derivative for each operand, not {partials!r:.60}")
    return listed


def _times(partial: Any, g: Any) -> Any:
    """Return partial * g; None if one is a constant 0 and the other is finite: then all derivatives are 0 too."""
    for one, other in ((partial, g), (g, partial)):
        if not isinstance(one, Value):
            if one == 1.0:
                return other
            number = number_of(other)
            if one == 0.0 and type(number) is float and isfinite(number):
                return None
    return partial * g


def _add(sums: dict[int, Any], key: int, term: Any) -> None:
    if term is not None:
        sums[key] = sums[key] + term if key in sums else term
