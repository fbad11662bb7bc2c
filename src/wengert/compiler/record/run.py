"""One run of a function on proxies of its arguments: what it computed, compared and returned."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import CodeType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from wengert import modes
from wengert.compiler import policy
from wengert.compiler.arguments import Arguments
from wengert.compiler.code import BY_TYPE, bytecode_of, constants_of, is_standard, place_of
from wengert.compiler.lift import CONST, INPUT, PARAM, VALUE, Lifted, Pick, Unliftable, lift
from wengert.compiler.reach import CallTrace, Places, Proxies, PurityCheck, is_alone
from wengert.compiler.record.choices import Choices
from wengert.compiler.record.inputs import Inputs
from wengert.compiler.record.layout import ResultLayout
from wengert.compiler.record.nested import differentiated_call, with_derivatives
from wengert.compiler.record.outputs import Outputs
from wengert.compiler.record.rules import follow_rules, record_rules
from wengert.compiler.record.specialization import in_words
from wengert.compiler.traced import Guard, Recorder, TooLarge, Undecided, Unrecordable, operations_since, tracing
from wengert.derivatives import result_of
from wengert.engine import Value
from wengert.graph import Graph

__all__ = ["RecordedRun", "seen_in_caches"]

ERRORS = ("ArithmeticError", "BaseException", "Exception", "OverflowError", "ValueError", "ZeroDivisionError")

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Identities(NamedTuple):
    """Which objects a function has that may ask which of several equal ones one is.

    `elsewhere` are those that it did not read from its arguments; `constants` the identities of all that are not
    captured floats, None where floats are constants; `shares_floats` is True if a captured float is one of several.
    """

    elsewhere: list[Any]
    constants: frozenset[int] | None
    shares_floats: bool


class Comparisons(NamedTuple):
    """The guards that compare what depends on Values, the positions of their sides in `nodes`, or -1, and the nodes."""

    guards: list[Guard]
    sides: list[tuple[int, int]]
    nodes: list[Value]


class Nodes:
    """The graph of a recorded run.

    Args:
        roots: its nodes that are asked for: inputs, results, sides of comparisons.
        items: what integers choose from.
        results: the results and the sides of comparisons.
        began: when the run began: older Values come first.

    Attributes:
        graph: the graph.
        size: the number of operations on which the results depend.
        place: the place of each root in the graph, by identity.
        given: the number of Values that are older than the run.
    """

    def __init__(self, roots: list[Any], items: list[Any], results: list[Any], began: int) -> None:
        distinct = {id(x): x for x in roots}
        self.graph: Graph = Graph(*distinct.values())
        self.size: int = len(Graph(*results)) if items else len(self.graph)
        self.place: dict[int, int] = dict(zip(distinct, self.graph.outputs, strict=True))
        self.given: int = bisect_left(self.graph.values, began, key=_age)
        self._alive: Any = (distinct, items)  # so that no id is reused


class RecordedRun:
    """One recorded run of a function.

    Args:
        function: the function.
        arguments: the arguments of the call.
        example: the numbers among them.
        watch: the run of the function itself.
        layout: what `map` makes of the result; None for an array, and for one example.
        integers: other integers in place of those that were passed.
        fixed: True to make integers part of the specialization where they choose an item.
        nests: True if derivatives that the function returns become programs of their own.
        fixes_floats: see `Proxies`.
        room: the operations after which the run is broken off; None for any number.
        given: by name Values that are the nodes of an input.
        differentiates: the run is differentiated with respect to numbers that the function gets as floats.
        for_values: the names of inputs that are floats in place of the Values that the function has run with; it may
            not ask which they are. Else None.

    Attributes:
        places: what it read outside of its arguments.
        recorded: the number of operations, also of those on which the result does not depend.
        uses_numpy: what NumPy computes in it may raise errors, as `np.seterr` says.

    Raises:
        Unrecordable: it cannot be recorded.
        TooLarge: it was broken off.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        example: Sequence[Any],
        watch: PurityCheck,
        layout: ResultLayout | None,
        integers: Sequence[int] = (),
        fixed: bool = False,
        nests: bool = False,
        fixes_floats: bool = False,
        room: int | None = None,
        given: Mapping[str, Sequence[Value]] = MappingProxyType({}),
        differentiates: bool = False,
        for_values: Collection[str] | None = None,
    ) -> None:
        signature = arguments.signature
        self.example: list[Any] = arguments.numbers(example)
        self.batched: bool = signature.batched
        self.recorder: Recorder = Recorder(observes_bools=watch.asks.observes_bools, room=room)
        self.recorder.rules, self.recorder.nested = record_rules, differentiated_call
        self.recorder.nests, self.recorder.differentiates = nests, differentiates
        self.recorder.for_values = for_values is not None
        follow_rules(watch.ran)
        proxies = Proxies(self.recorder, watch, signature.objects(), signature.tells_objects, fixes_floats)
        self.recorder.proxies = proxies
        self.places: Places = proxies.places
        self.recorder.catches_errors = any(map(_catches_errors, watch.ran))
        self.inputs: Inputs = Inputs(self.recorder, arguments, integers, fixed, given, for_values or ())
        result = self._run(function, arguments, example, watch, proxies)
        self.uses_numpy: bool = self.recorder.uses_numpy or watch.before.uses_numpy
        if self.uses_numpy:
            self.places.note_errors()
        self.recorder.open = True  # to make operands of the last results
        self.choices: Choices = Choices(self.recorder, self.inputs)
        self.outputs: Outputs = Outputs(result, self.inputs, self.recorder, layout, self.batched, self.choices.chosen)
        self.comparisons: Comparisons = self._comparisons()
        for nodes in (self.outputs.values, self.outputs.auxiliary, self.comparisons.nodes):
            nodes[:] = [x * 1.0 if id(x) in self.choices.chosen else x for x in nodes]
        self.recorder.open = False
        self.identities: Identities = Identities([], None, False)
        if signature.tells_objects:
            self.identities = self._identities(arguments, watch, fixes_floats)
        proxies.release()
        self._write_graphs()

    def _run(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        example: Sequence[Any],
        watch: PurityCheck,
        proxies: Proxies,
    ) -> Any:
        """Run the function, and return its result."""

        def call() -> Any:
            clone = proxies.root(function)
            return arguments.call(clone, example, self.inputs.proxy, lambda x: proxies.proxy(x, "an argument"))

        path = self.recorder.path = CallTrace(watch.path.cached, proxies)
        alone = is_alone()
        try:
            with tracing(self.recorder):
                result = result_of(path.follow(call))
        finally:
            self.recorder.open = False
            changed = proxies.restore(alone and is_alone())
        self.recorded: int = operations_since(self.recorder.began)
        if self.recorder.is_broken_off:  # whatever the function has made of it
            raise TooLarge
        if self.recorder.fallback_reason:
            raise (Undecided if self.recorder.is_undecided else Unrecordable)(self.recorder.fallback_reason)
        if changed:
            raise Unrecordable(
                f"it changes {changed} while it is recorded, of which no copy can be made: let it be a plain dict, "
                "list, set or object"
            )
        if path.steps != watch.path.steps:
            pairs = itertools.zip_longest(watch.path.steps, path.steps)
            step = next(plain or traced for plain, traced in pairs if plain != traced)
            at = f"an error of {step}" if isinstance(step, str) else f"the call of {place_of(step)}"
            is_library = not isinstance(step, str) and is_standard(step)
            instead = "call it before, and pass its result" if is_library else BY_TYPE
            raise Unrecordable(f"control flow differed while it was recorded, at {at}: {instead}")
        return result

    def _comparisons(self) -> Comparisons:
        every = self.recorder.guards.values()
        guards = [guard for guard in every if isinstance(guard.left, Value) or isinstance(guard.right, Value)]
        nodes = [side for guard in guards for side in (guard.left, guard.right) if isinstance(side, Value)]
        distinct = {id(side): side for side in nodes}
        number = {each: n for n, each in enumerate(distinct)}
        sides = [(number.get(id(guard.left), -1), number.get(id(guard.right), -1)) for guard in guards]
        return Comparisons(guards, sides, list(distinct.values()))

    def _identities(self, arguments: Arguments, watch: PurityCheck, fixes_floats: bool) -> Identities:
        constants, floats = constants_of(watch.ran), self.places.floats()
        counts = Counter(map(id, [*self.places.objects(()), *constants]))
        others = None if fixes_floats else frozenset(counts.keys() - set(map(id, floats)))
        elsewhere = [*self.places.objects(arguments.identities()), *constants]
        return Identities(elsewhere, others, any(counts[id(x)] > 1 for x in floats))

    def _write_graphs(self) -> None:
        """Write down the graph of the run, and those of the derivatives that became programs of their own."""
        inputs, nested, began = self.inputs.every, self.outputs.nested, self.recorder.began
        self.of_nested: list[Graph] = [each.graph(inputs) for each in nested]
        captured = self.places.values() if nested else ()
        of_nested = [x for each in nested for _, before in each.inputs.values() for x in before]
        every = [x for graph in self.of_nested for x in graph.values]
        of_nested += [x for x in every if x._made < began or id(x) in captured]
        results = [*self.outputs.values, *self.comparisons.nodes]
        roots = [*inputs, *self.results, *self.choices.items, *of_nested]
        self.nodes: Nodes = Nodes(roots, self.choices.items, results, began)

    @property
    def results(self) -> list[Value]:
        """All nodes that the run has come to: the results, the auxiliary ones, and those that it compares."""
        return [*self.outputs.values, *self.outputs.auxiliary, *self.comparisons.nodes]

    def wraps(self, name: str) -> bool:
        """Return True if negative integers of an argument may count from the end: all lists have one length, and the
        argument is not used otherwise.
        """
        place = self.nodes.place
        places = {place[id(x)] for x in self.inputs.nodes[name].reshape(-1)}
        sizes = {len(items) for index, items in self.recorder.picked if place[id(index._node)] in places}
        elsewhere = [place[id(x)] for x in self.results]
        elsewhere += np.frombuffer(self.nodes.graph.operands or b"", np.int64).tolist()
        return len(sizes) == 1 and places.isdisjoint(elsewhere)

    def guards_in_words(self) -> list[Guard]:
        """Return the guards for keeping, described in words: inputs and captures by name, other numbers by value."""
        names, described = self.inputs.names, []
        for guard in self.comparisons.guards:
            sides = (guard.left, guard.right)
            both = [names.get(id(x)) or (isinstance(x, Value) and self.places.name_of(x)) or x for x in sides]
            left, right = [side._data if isinstance(side, Value) else side for side in both]
            described.append(guard.without_values(in_words(guard.how, left, right, guard.outcome)))
        return described

    # -- to an array program ------------------------------------------------------------------------------------------

    def lift(self, picks: list[Pick]) -> Lifted:
        """Lift the run to an array program; `picks` are the operands that integers choose.

        Raises:
            Unliftable: there is none.
        """
        run = self.outputs
        if run.shape is None:
            raise Unliftable("its result is neither a number nor a regular array of numbers: return rows of one length")
        if not run.values:
            raise Unliftable("its result holds no number: return numbers, or leave it uncompiled")
        outputs: dict[str, Any] = {"out": (run.values, run.shape)}
        if run.nested:  # without the places of their numbers
            outputs["out"] = run.own, _squeezed(run.own)
        if run.auxiliary_shape is not None:
            outputs["auxiliary"] = run.auxiliary, run.auxiliary_shape
        if self.comparisons.nodes:
            outputs["sides"] = self.comparisons.nodes, (len(self.comparisons.nodes),)
        for n, each in enumerate(run.nested):
            for name, (_, before) in each.inputs.items():
                outputs[f"{name} of {n}"] = before, _squeezed(before)
        lifted = self._lift(self.nodes.graph, {}, outputs, picks)
        if not run.nested:
            return lifted
        parts = []
        for each, graph in zip(run.nested, self.of_nested, strict=True):
            inputs = {name: values for name, (values, _) in each.inputs.items()}
            part = self._lift(graph, inputs, {"out": (each.results, _squeezed(each.results))}, [])
            parameters = [self.nodes.place[id(graph.values[place])] for place in part.parameters]
            parts.append((replace(part, parameters=parameters), each))
        return with_derivatives(lifted, parts, run.at, tuple([n for n in run.shape if n > 1]))

    def _lift(self, graph: Graph, inputs: dict[str, list[Value]], outputs: dict[str, Any], picks: list[Pick]) -> Lifted:
        """Lift a graph that this run recorded.

        Args:
            graph: the graph.
            inputs: the Values that are inputs besides the arguments, by name.
            outputs: the Values of each result, and its shape, by name.
            picks: the operands that integers choose.
        """
        is_leaf = np.frombuffer(graph.codes, np.uint16) == 0
        place = {id(graph.values[n]): n for n in np.flatnonzero(is_leaf).tolist()}
        for values in (*inputs.values(), *[values for values, _ in outputs.values()]):
            place |= {id(x): bisect_left(graph.values, _age(x), key=_age) for x in values if id(x) not in place}
        source = np.where(is_leaf, CONST, VALUE)
        source[: bisect_left(graph.values, self.recorder.began, key=_age)] = PARAM  # older Values come first
        captured = self.places.values()
        source[[place[x] for x in captured.intersection(place)]] = PARAM
        places: dict[str, Ints] = {}
        arrays = [(name, [id(x) for x in array.reshape(-1)], array.shape) for name, array in self.inputs.nodes.items()]
        arrays += [(name, [id(x) for x in values], _squeezed(values)) for name, values in inputs.items()]
        for name, ids, shape in arrays:
            places[name] = np.array([place[x] for x in ids], np.int64).reshape(shape)
            source[places[name]] = INPUT
        wanted = {
            name: np.array([place[id(x)] for x in values], np.int64).reshape(shape)
            for name, (values, shape) in outputs.items()
        }
        blocks = self.places.blocks(place)
        indices = self.inputs.indices
        return lift(graph, source, places, wanted, batched=self.batched, picks=picks, indices=indices, blocks=blocks)


def seen_in_caches(trace: Callable[[], RecordedRun], watch: PurityCheck) -> RecordedRun:
    """Record a run; for a derivative again where it finds results in caches, once the functions that computed them have
    run in the watch, too.

    Raises:
        Unrecordable: one of them has an effect.
    """
    run = trace()
    for _ in range(policy.SPECIALIZATIONS):  # each time one function deeper
        if not run.recorder.unseen:
            break
        for call in run.recorder.unseen:
            with modes.watched():
                watch.run(call)
        watch.leave_out_caches()
        if watch.effect or watch.change:
            raise Unrecordable(watch.effect or f"{watch.change}: {watch.instead}")
        run = trace()
    return run


def _catches_errors(code: CodeType) -> bool:
    """Return True for code that may go on after an error of arithmetic, or let a `with` statement do so."""
    if code.co_name == "__exit__":
        return not is_standard(code) or code.co_qualname == "suppress.__exit__"
    reads = bytecode_of(code)
    return reads.catches_errors and not (is_standard(code) and reads.attributes.isdisjoint(ERRORS))


def _squeezed(values: Sequence[Any]) -> tuple[int, ...]:
    return (len(values),) if len(values) > 1 else ()


def _age(value: Any) -> int:
    return int(value._made)
