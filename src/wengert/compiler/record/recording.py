"""From a run of the user's function to a specialization: the array program that it computed, and its guards."""

from __future__ import annotations

import itertools
import math
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wengert import modes
from wengert.compiler import policy
from wengert.compiler.arguments import Arguments, ArraySpec
from wengert.compiler.backends import Kernel
from wengert.compiler.call import Captures
from wengert.compiler.code import BY_TYPE, constants_of, is_standard, place_of
from wengert.compiler.derive import reverse
from wengert.compiler.ir import Program, verify
from wengert.compiler.lift import CONST, INPUT, PARAM, VALUE, Lifted, Pick, Unliftable, lift
from wengert.compiler.reach import CallTrace, Proxies, PurityCheck
from wengert.compiler.record.differentiate import operations
from wengert.compiler.record.layout import ResultLayout, flat_result
from wengert.compiler.record.nested import Nested, differentiated_call, with_derivatives
from wengert.compiler.record.rules import follow_rules, record_rules
from wengert.compiler.record.specialization import Guards, Specialization, in_words
from wengert.compiler.record.structure import GIVEN, Aux, Parts, Structure, kind_of, take_apart
from wengert.compiler.record.uncompiled import Uncompiled
from wengert.compiler.traced import (
    EXACT,
    HOLDS,
    Bool,
    Guard,
    Integer,
    Mixed,
    Nesting,
    Number,
    Pending,
    Recorder,
    TooLarge,
    Undecided,
    Unrecordable,
    as_operand,
    is_traced,
    number_of,
    operations_since,
    presented,
    tracing,
    values_in,
)
from wengert.derivatives import result_of
from wengert.engine import Value
from wengert.errors import Line
from wengert.graph import Graph

__all__ = ["Candidate", "numbers_in", "primal_of", "record"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
EQUAL = (("eq", True), ("ne", False), ("is", True))  # guards that two numbers are equal
ATTEMPTS = 3  # how many choices of other integers are tried
AXES = 8  # a result with more axes is flattened
SPARE = 64  # sequences of steps beyond one for each integer


class Candidate:
    """A recorded run of a function, from which a specialization is made once it is lifted.

    Args:
        run: the recorded run, a `_Trace`.
        picks: the operands that integers choose in it.
        result: the result of the function itself.
        parts: the flattened result; None for one number, and for a batch.
        structure: the structure of the result.

    Attributes:
        nodes: the number of operations.
        recorded: the same, with those on which the result does not depend.
        shape: the shape of the program's output; () for one number; None for an irregular result.
        kind: the class of the result; Value also for subclasses, and for a structure that holds some.
        dtype: the dtype of the array that `map` returns.
        layout: what `map` makes of the output; None for an array.
        result: the numbers of the result; None if it is not known.
        leaves: its Values and numbers, with the graph of the function's own run; none if it has no derivatives.
        values: the Values among the arguments.
        uses_numpy: what NumPy computes in it may raise errors, as `np.seterr` says.
    """

    def __init__(
        self, run: Any, picks: list[Pick], result: Any, parts: Parts | None, structure: Structure | None
    ) -> None:
        self.nodes: int = run.size
        self.recorded: int = max(run.recorded, run.size)
        self.structure: Structure | None = structure
        self.shape: tuple[int, ...] | None = run.shape
        self.layout: ResultLayout | None = run.layout
        self.kind: Any = kind_of(primal_of(result))
        if structure is not None:
            self.kind = Value if structure.computed.any() else float
        leaves = result if parts is None else parts.leaves
        if run.layout is not None:
            self.kind, leaves = float, run.layout.leaves(result)
        numbers = None if run.shape is None else np.asarray(numbers_in(leaves))
        self.dtype: Any = np.dtype(float) if numbers is None or run.is_doubtful else numbers.dtype
        self.result: Any = None if numbers is None else numbers.astype(float)
        one = [primal_of(result)] if run.layout is None and run.shape == () else []
        self.leaves: list[Any] = one if parts is None else [*parts.leaves]
        self.values: list[Any] = []
        self.example: list[Any] = [x.copy() if isinstance(x, np.ndarray) else x for x in run.example]
        self.guards: Guards = Guards(run.guards_in_words(), run.sides)
        self.differentiation: Any = None  # of the program, if a derivative is compiled: see `derived`
        self.began: int = 0  # when the function itself began, in ticks
        self.has_nested: bool = bool(run.nested)
        self.uses_numpy: bool = run.uses_numpy
        self.elsewhere: list[Any] = run.elsewhere  # what it read, but not from its arguments, if it may tell
        self._before: list[float] = [value._data for value in run.graph.values[: run.given]]
        self._picks: list[Pick] = picks
        self._run: _Trace | None = run
        self._backward: Program | None = None

    @property
    def is_derivative(self) -> bool:
        """True if it takes many times longer uncompiled."""
        return self.differentiation is not None or self.has_nested

    @property
    def is_lifted(self) -> bool:
        return self._run is None

    def forget_graph(self) -> None:
        """Let go of the graph of the function's own run: only numbers are compared with it then."""
        self.leaves, self.values = numbers_in(self.leaves), []

    def lift(self) -> Lifted:
        """Lift the run to an array program.

        Raises:
            Unrecordable, Unliftable: there is none; the message says why.
        """
        if self._run is None:
            return self.lifted
        with _faults(), np.errstate(all="ignore"):
            run = self._run
            self.lifted: Lifted = run.lift(self._picks)
            verify(self.lifted.program)
            values, places = run.graph.values, self.lifted.parameters
            self.parameters: tuple[Any, ...] = tuple([values[place] for place in places])
            # The numbers at the recording: the user may have changed them since.
            self.numbers: Any = np.array([self._before[n] if n < run.given else values[n]._data for n in places])
            captured = run.proxies.places.values()
            self.captures: Captures = run.proxies.places.captures(self.parameters, run.constants)
            own = [n for n, p in enumerate(self.parameters) if id(p) not in captured]
            self.own: Any = np.array(own, np.int64)
            arrays = self.lifted.program.of_role("param")
            ends = np.cumsum([array.size for array in arrays])
            with_own = {*np.searchsorted(ends, self.own, "right").tolist()}
            self.fixed: set[str] = {array.name for n, array in enumerate(arrays) if n not in with_own}
            self.extents: dict[str, int] = run.extents
            self.wraps: set[str] = {name for name in run.extents if run.wraps(name)}
            self.value_inputs: tuple[str, ...] = tuple(run.value_inputs)
            self.uncompiled: Uncompiled | None = self._uncompiled(run, captured)
            if self.differentiation is not None:
                self.differentiation.apply(self)
                verify(self.lifted.program)
            elif self.has_nested:
                self.nodes = max(self.nodes, operations(self.lifted.program))
            self.forward: int = self.lifted.program.size
            self._run, self._before = None, []  # frees the graph
        return self.lifted

    def _uncompiled(self, run: _Trace, captured: set[int]) -> Uncompiled | None:
        """Keep the operations, for derivatives that are not finite; None if not all can be computed again so."""
        one_or_none = self.structure is None or self.kind is not Value
        if self.nodes < policy.AGAIN or one_or_none or self.is_derivative or run.extents:
            return None
        given = [(x, id(x) not in captured) for x in self.parameters]
        given += [(x, name in run.value_inputs) for name, nodes in run.inputs.items() for x in nodes.reshape(-1)]
        uncompiled = Uncompiled(run.results, given, captured, run.recorder.began)
        return uncompiled if uncompiled.is_whole else None

    @property
    def has_derivatives(self) -> bool:
        """True if calls compute derivatives with the result: of one number or several Values, not of rows of `map`."""
        return self.kind is Value and (self.structure is not None or self.shape == ())

    def backward(self) -> Program:
        """Derive the reverse sweep of the lifted program; empty if the result has no derivatives, as that of `map`."""
        if self._backward is None:
            with _faults():
                self._backward = Program()
                several = self.structure is not None
                if self.kind is Value if several else self.shape == ():
                    self._backward = reverse(self.lifted.program, self.value_inputs, several, self.fixed)
                verify(self._backward, self.lifted.program.arrays)
        return self._backward

    @property
    def steps(self) -> int:
        """The number of steps of the program, forward and reverse."""
        return self.forward + self.backward().size

    def specialization(self, kind: Callable[..., Kernel]) -> Specialization:
        program = self.lifted.program
        with _faults():
            wanted = [a for a in program.of_role("input") if a.name in self.value_inputs]
            kernel = kind(program, self.backward(), wanted)
            places = {n: a.name for n, a in enumerate(kernel.inputs) if a.name in self.extents}
            return Specialization(
                *(kernel, self.lifted, self.parameters, self.guards, self.captures),
                *(self.shape, self.nodes, self.kind, self.dtype),
                leaves=all(parameter.is_leaf for parameter in self.parameters),
                extents={n: self.extents[name] for n, name in places.items()},
                wraps=frozenset([n for n, name in places.items() if name in self.wraps]),
                own=self.own if len(self.own) < len(self.parameters) else None,
                structure=self.structure,
                uncompiled=self.uncompiled,
            )


@contextmanager
def _faults() -> Iterator[None]:
    """Turn an error of the compiler itself into a reason to run uncompiled."""
    try:
        yield
    except (Unrecordable, Unliftable):
        raise
    except Exception as fault:
        raise Unliftable(f"there was an error in the compiler, please report it ({fault!r})") from fault


@modes.suspended()  # no_grad() makes no difference to a recording
@np.errstate(all="ignore")
def record(
    function: Callable[..., Any],
    arguments: Arguments,
    example: Sequence[Any],
    result: Any,
    watch: PurityCheck,
    keep_tuples: bool = False,
    nests: bool = True,
    room: int | None = None,
) -> Candidate:
    """Run a function on an example, and record it; `result` and `watch` come from the run of the function itself.

    A batch may `keep_tuples`. If it `nests`, derivatives that the function returns become programs of their own. With
    more operations than there is `room` for, the recording is broken off.

    Raises:
        Unrecordable: it cannot be recorded; the message says why.
        TooLarge: it was broken off.
    """
    layout = ResultLayout.of(result, keep_tuples) if arguments.signature.batched else None
    trace = partial(_Trace, function, arguments, example, watch, layout, room=room)
    parts = None if arguments.signature.batched else take_apart(result)
    try:
        run = _nested(trace) if nests else None
        run = trace() if run is None else run
        if run.shares_floats:
            trace = partial(trace, fixes_floats=True)
            run = trace()
    except (Unrecordable, Unliftable):
        raise
    except Exception as problem:
        raise Unrecordable(_stopped(problem)) from problem
    results = flat_result(result)[1] if parts is None else parts.leaves
    for got, want in zip(run.kinds, map(kind_of, results), strict=False):
        if got != np.dtype(float if want is Value else want).kind:
            raise Unrecordable(
                f"its result is of type {want.__name__}, but another kind of number while it is recorded: return "
                "float(x)"
            )
    picks: list[Pick] = []
    if any(integer.extent and integer.number < 0 and not run.wraps(integer.name) for integer in run.integers):
        run = trace(fixed=True)
    for attempt in range(ATTEMPTS if run.extents else 0):
        try:
            picks = run.compare([trace(others) for others in run.other_integers(attempt)])
            break
        except Exception:  # other integers take another branch, or raise: then each gets a specialization
            if attempt == ATTEMPTS - 1:
                run = trace(fixed=True)
    structure = None
    if run.parts is not None:
        parts = Parts(result) if parts is None else parts
        with _faults():
            structure = Structure(parts, run.parts, run.passed, run.chosen, run.recorder.began, watch.before.objects)
    return Candidate(run, picks, result, parts, structure)


def _nested(trace: Callable[..., _Trace]) -> _Trace | None:
    """Record with programs of their own for derivatives that are returned; None if that is impossible."""
    try:
        run = trace(nests=True)
    except (Nesting, Exception):  # the run that is recorded operation by operation tells why, if it is not for them
        return None
    return run if run.recorder.nests and not (run.nested and run.recorder.picked) else None


def _stopped(problem: Exception) -> str:
    """Say where and why tracing stopped with an error that the function itself does not raise."""
    frames = traceback.walk_tb(problem.__traceback__)  # of compiled modules too, whose files are named otherwise
    outside = [(frame, n) for frame, n in frames if str(frame.f_globals.get("__name__")).partition(".")[0] != "wengert"]
    lines = [Line(frame.f_code.co_filename, n) for frame, n in outside]
    at = next((f" at {line}" for line in reversed(lines) if line.file == lines[0].file), "")  # not in a library
    why = ", which takes plain numbers only" if at and isinstance(problem, (TypeError, AttributeError)) else ""
    return (
        f"recording stopped{at}{why} ({type(problem).__name__}: {problem}): call this before, and pass its result, or "
        "write it with operators and the functions of math, numpy and wengert"
    )


class _Trace:
    """One run of the function on proxies of its inputs."""

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
    ) -> None:
        self.example, self.batched = arguments.numbers(example), arguments.signature.batched
        self.recorder = Recorder(observes_bools=watch.asks.observes_bools, room=room)
        follow_rules(watch.ran)
        tells = arguments.signature.tells_objects
        self.proxies = self.recorder.proxies = Proxies(
            self.recorder, watch, arguments.signature.objects(), tells, fixes_floats
        )
        self.recorder.rules, self.recorder.nested = record_rules, differentiated_call
        self.recorder.nests = nests
        self.inputs: dict[str, Any] = {}
        self.distinguished: set[int] | None = arguments.distinguished()
        self.mixed: dict[str, Mixed] = {}
        self.integers: list[Integer] = []
        self.value_inputs: list[str] = []
        given = iter(integers)

        def proxy(leaf: ArraySpec, array: Any) -> Any:
            proxy_array = np.empty(leaf.shape, dtype=object)
            name = arguments.signature.names[len(self.inputs)]
            flat = np.asarray(array, dtype=object).reshape(-1).tolist() if leaf.shape else [array]
            self.inputs[name] = np.empty(leaf.shape, dtype=object)
            nodes, tracers = self.inputs[name].reshape(-1), proxy_array.reshape(-1)
            for place, x in enumerate(flat):
                nodes[place], tracers[place] = self.input(leaf, name, x, given, fixed)
            if leaf.kind == "v":
                self.value_inputs.append(name)
            else:
                self.recorder.plain.update(map(id, nodes))
            if leaf.is_scalar:
                return proxy_array.item()
            if np.ndarray in leaf.held:
                proxy_array = presented(proxy_array)
                proxy_array.of_argument = True
            return proxy_array

        def run() -> Any:
            clone = self.proxies.root(function)
            return arguments.call(clone, example, proxy, lambda x: self.proxies.proxy(x, "an argument"))

        path = self.recorder.path = CallTrace(watch.path.cached, self.proxies)
        try:
            with tracing(self.recorder):
                self.result = result_of(path.follow(run))
        finally:
            self.recorder.open = False
            changed = self.proxies.restore()
        self.recorded = operations_since(self.recorder.began)
        if self.recorder.is_broken_off:  # whatever the function has made of it
            raise TooLarge
        if self.recorder.fallback_reason:
            raise (Undecided if self.recorder.is_undecided else Unrecordable)(self.recorder.fallback_reason)
        self.uses_numpy: bool = self.recorder.uses_numpy or watch.before.uses_numpy
        if self.uses_numpy:
            self.proxies.places.note_errors()
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
        self.recorder.open = True  # to make operands of the last results
        self.extents = self.bounds()
        self.choices = [(index, list(map(values_in, items))) for index, items in self.recorder.picked]
        items = [x for _, rows in self.choices for row in rows for x in row]
        self.chosen = {*map(id, items)}  # a chosen item becomes an operand, even as a result
        passed = [x for name in self.value_inputs for x in self.inputs[name].reshape(-1)]
        self.passed = {id(x): number for number, x in enumerate(passed) if id(x) not in self.chosen}
        self.parts = None if arguments.signature.batched else take_apart(self.result)
        if not arguments.signature.batched and isinstance(self.result, Value):
            is_known = id(self.result) in self.passed or self.result._made < self.recorder.began
            self.parts = (
                Parts(self.result) if is_known and id(self.result) not in self.chosen else None
            )  # returned as it is
        self.shape, results = flat_result(self.result)
        self.layout = layout
        if layout is not None:
            if layout.leaves(self.result) is None:
                raise Unrecordable(f"its result has another structure while it is recorded: {BY_TYPE}")
            self.shape = (len(results),)
        if self.parts is not None:  # a regular array, or end to end
            is_regular = self.shape is not None and len(results) == len(self.parts.leaves)
            results = self.parts.leaves
            if not self.shape or not is_regular or len(self.shape) > AXES:
                self.shape = (len(results),)
        self.kinds = [self.kind(x) for x in results]
        self.is_doubtful = self.shape != () and any(is_traced(x) and x.doubt for x in results)
        guards = self.recorder.guards.values()
        self.guards = [guard for guard in guards if isinstance(guard.left, Value) or isinstance(guard.right, Value)]
        aux = self.result.auxiliary if isinstance(self.result, Aux) else None
        self.auxiliary_shape, auxiliary = (None, []) if aux is None else flat_result(aux)
        self.auxiliary = [_as_value(x) for x in auxiliary]
        sources = {id(x.source): x.source for x in results if type(x) is Pending}
        self.nested: list[Nested] = list(sources.values())
        number = {each: n for n, each in enumerate(sources)}
        places = itertools.count()
        self.at = [(number[id(x.source)], x.place) if type(x) is Pending else (None, next(places)) for x in results]
        self.results = [Value(0.0) if type(x) is Pending else _as_value(x) for x in results]
        nodes = [side for guard in self.guards for side in (guard.left, guard.right) if isinstance(side, Value)]
        self.compared_sides = list({id(side): side for side in nodes}.values())
        number = {id(side): n for n, side in enumerate(self.compared_sides)}
        self.sides = [(number.get(id(guard.left), -1), number.get(id(guard.right), -1)) for guard in self.guards]
        inputs = [x for a in self.inputs.values() for x in a.reshape(-1)]
        for nodes in (self.results, self.auxiliary, self.compared_sides):
            nodes[:] = [x * 1.0 if id(x) in self.chosen else x for x in nodes]
        self.recorder.open = False
        self.elsewhere: list[Any] = []
        self.constants: frozenset[int] | None = None
        self.shares_floats: bool = False
        if tells:
            constants, floats = constants_of(watch.ran), self.proxies.places.floats()
            self.elsewhere = [*self.proxies.places.objects(arguments.identities()), *constants]
            counts = Counter(map(id, [*self.proxies.places.objects(()), *constants]))
            self.shares_floats = any(counts[id(x)] > 1 for x in floats)
            self.constants = None if fixes_floats else frozenset(counts.keys() - set(map(id, floats)))
        self.proxies.release()
        self.graphs = [each.graph(inputs) for each in self.nested]
        began, captured = self.recorder.began, self.proxies.places.values() if self.nested else ()
        of_nested = [x for each in self.nested for _, before in each.inputs.values() for x in before]
        every = [x for graph in self.graphs for x in graph.values]
        of_nested += [x for x in every if x._made < began or id(x) in captured]
        roots = {id(x): x for x in (*inputs, *self.results, *self.auxiliary, *self.compared_sides, *items, *of_nested)}
        self.graph = Graph(*roots.values())
        self.size = len(Graph(*self.results, *self.compared_sides)) if items else len(self.graph)
        self.place = dict(zip(roots, self.graph.outputs, strict=True))
        self.given = bisect_left(self.graph.values, self.recorder.began, key=_age)  # older Values come first
        self.keep = (roots, items)  # keeps them alive, so that no id is reused

    def input(self, leaf: ArraySpec, name: str, x: Any, integers: Any, fixed: bool) -> tuple[Value, Any]:
        """Return the node for one number of an argument, and its proxy."""
        if leaf.kind == "v":
            node = Value(x._data)
            self.recorder.arguments[id(node)] = node
            if self.distinguished is not None and id(x) not in self.distinguished:
                self.recorder.listed.add(id(node))
            return node, node
        number = leaf.number(next(integers, int(x)) if leaf.kind == "i" else x)
        node = Value(float(number))
        if leaf.kind == "i":
            self.integers.append(Integer(self.recorder, number, node, name, fixed))
            return node, self.integers[-1]
        if leaf.kind == "b":
            outcome = Bool(self.recorder, number, node)
            return node, outcome.concrete() if self.recorder.observes_bools else outcome
        proxy = Number(self.recorder, number, node)
        if leaf.is_mixed:
            proxy.doubt = self.mixed.setdefault(name, Mixed(self.recorder, math.prod(leaf.shape)))
            self.recorder.type_uncertain = True
        return node, proxy

    def guards_in_words(self) -> list[Guard]:
        """Return the guards for keeping, described in words: inputs and captures by name, other numbers by value."""
        names = {
            id(node): f"{name}[{', '.join(map(str, place))}]" if place else name
            for name, nodes in self.inputs.items()
            for place, node in np.ndenumerate(nodes)
        }
        described = []
        for guard in self.guards:
            sides = (guard.left, guard.right)
            both = [names.get(id(x)) or (isinstance(x, Value) and self.proxies.places.name_of(x)) or x for x in sides]
            left, right = [side._data if isinstance(side, Value) else side for side in both]
            described.append(guard.without_values(in_words(guard.how, left, right, guard.outcome)))
        return described

    def kind(self, x: Any) -> str:
        """Return the dtype kind of a result, and guard it.

        Raises:
            Unrecordable: it is not a number that a float can represent.
        """
        if type(x) is Pending:
            return "f"
        number = number_of(x)
        if type(number) not in GIVEN:
            raise Unrecordable(
                f"its result is a {type(x).__name__}: return a Value, float, int or bool, or lists of these"
            )
        if is_traced(x) and x.doubt and (self.shape == () or self.parts is not None or self.mixed):
            x.doubt()
        kind = np.asarray(number).dtype.kind
        inside = kind in "fb" or abs(number) <= EXACT
        if kind == "i" and is_traced(x) and not x.most <= EXACT:
            inside = self.recorder.guard("within", x, EXACT)
        if not inside:
            raise Unrecordable("its result is an integer beyond 2**53, which no float is exactly: return float(n)")
        return kind

    def bounds(self) -> dict[str, int]:
        """Return the number of items that each input of indices chooses from; guard indices into shorter lists."""
        for index, items in self.recorder.picked:
            index.extent = min(len(items), index.extent or len(items))
        choosing = [integer for integer in self.integers if integer.extent]
        extents: dict[str, int] = {}
        for integer in choosing:
            extents[integer.name] = max(integer.extent, extents.get(integer.name, 0))
        for integer in choosing:
            if integer.extent < extents[integer.name]:
                self.recorder.guard("lt", integer, integer.extent)
        return extents

    def wraps(self, name: str) -> bool:
        """Return True if negative integers of an argument may count from the end: all lists have one length, and the
        argument is not used otherwise.
        """
        places = {self.place[id(x)] for x in self.inputs[name].reshape(-1)}
        sizes = {len(items) for index, items in self.recorder.picked if self.place[id(index._node)] in places}
        elsewhere = [self.place[id(x)] for x in (*self.results, *self.auxiliary, *self.compared_sides)]
        elsewhere += np.frombuffer(self.graph.operands or b"", np.int64).tolist()
        return len(sizes) == 1 and places.isdisjoint(elsewhere)

    def other_integers(self, attempt: int) -> list[list[int]]:
        """Choose other indices for some more runs, to see which integer has chosen each operand: each integer moves by
        its own sequence of steps. The guards have the same outcomes: integers that must be equal move together, and one
        that must equal a constant stays.

        Raises:
            Unrecordable: there are none.
        """
        place_of = {id(integer._node): place for place, integer in enumerate(self.integers)}
        sides = [
            [place_of.get(id(x), x if isinstance(x, Value) else float(x)) for x in (guard.left, guard.right)]
            for guard in self.guards
        ]
        between = [(g, x) for g, x in zip(self.guards, sides, strict=True) if not any(isinstance(y, Value) for y in x)]
        equal = [{y for y in x if type(y) is int} for g, x in between if (g.how, g.outcome) in EQUAL]
        held = {place for places in equal if len(places) == 1 for place in places}
        moving = [n for n, integer in enumerate(self.integers) if integer.extent > 1 and n not in held]
        moving += sorted({n for places in equal if not places.isdisjoint(moving) for n in places} - {*moving})
        extents = [self.integers[n].extent for n in moving]
        radix = min([extent for extent in extents if extent], default=2)
        count = next(n for n in itertools.count(1) if radix**n > len(moving))
        codes = range(1, min(radix**count, len(moving) + SPARE))
        free = [[code // radix**n % radix for n in range(count)] for code in (*codes[attempt:], *codes[:attempt])]
        others = [[int(integer.number) for integer in self.integers] for _ in range(count)]
        for at, (place, extent) in enumerate(zip(moving, extents, strict=True)):
            touching = [(g, x) for g, x in between if place in x and not {*moving[at + 1 :]}.intersection(x)]
            twins = [n for places in equal if place in places for n in moving[:at] if n in places]
            number = others[0][place]
            for step in free:
                for other, by in zip(others, step, strict=True):
                    other[place] = other[twins[0]] if twins else (number + by) % extent
                if all(_comes_out(guard, x, other) for other in others for guard, x in touching):
                    break
            else:
                raise Unrecordable("other integers take another branch")
            free = free if twins else [each for each in free if each is not step]
        return others

    def compare(self, others: list[_Trace]) -> list[Pick]:
        """Find the operands that an integer has chosen, by runs with different integers.

        Raises:
            Unrecordable: the runs differ in another way.
        """
        a = self.graph
        graphs = [run.graph for run in others]
        if any((a.codes, a.starts, a.constants) != (b.codes, b.starts, b.constants) for b in graphs):
            raise Unrecordable(
                "the function takes another branch for other integers: declare the argument static=(name,)"
            )
        runs = (self, *others)
        chosen: dict[tuple[int, ...], tuple[Any, ...]] = {}  # by the operand in each run: (*candidates, index)
        for event in zip(*[run.choices for run in runs], strict=True):
            lists = [
                [[run.place[id(x)] for x in row] for row in rows] for run, (_, rows) in zip(runs, event, strict=True)
            ]
            if len(set(map(len, lists))) > 1:
                raise Unrecordable("the length of a list depends on an integer argument")
            first, numbers = event[0][0], [int(index.number) for index, _ in event]
            extent = self.extents[first.name]  # beyond the end of its own list a guard fails
            for columns in zip(*[zip(*rows, strict=False) for rows in lists], strict=False):
                here = list(zip(*columns, strict=True))  # in each run; they may have been chosen before: rows[i][j]
                candidates = [places[0] if len(set(places)) == 1 else chosen.get(places) for places in here]
                if None not in candidates:
                    candidates = (candidates + candidates[-1:] * extent)[:extent]
                    key = tuple([column[number] for column, number in zip(columns, numbers, strict=True)])
                    chosen[key] = *candidates, self.place[id(first._node)]
        operands = np.array([np.frombuffer(run.graph.operands or b"", np.int64) for run in runs])
        starts = np.frombuffer(a.starts, np.int64)
        picks = []
        for at in np.flatnonzero((operands != operands[0]).any(0)).tolist():
            pair = tuple(operands[:, at].tolist())
            if pair not in chosen:
                raise Unrecordable("an integer argument changes more than which item of a list is read")
            user = int(np.searchsorted(starts, at, "right")) - 1
            *candidates, index = chosen[pair]
            picks.append(Pick(user, at - int(starts[user]), index, tuple(candidates)))
        outs = [[run.place[id(x)] for x in (*run.results, *run.auxiliary, *run.compared_sides)] for run in runs]
        asked = [
            [(str(g.without_values()), *side) for g, side in zip(run.guards, run.sides, strict=True)] for run in runs
        ]
        if any(out != outs[0] for out in outs) or any(guards != asked[0] for guards in asked):
            raise Unrecordable("an integer argument chooses the result itself, or what is compared")
        return picks

    def lift(self, picks: list[Pick]) -> Lifted:
        if self.shape is None:
            raise Unliftable("its result is neither a number nor a regular array of numbers: return rows of one length")
        outputs: dict[str, Any] = {"out": (self.results, self.shape)}
        if self.nested:  # without the places of their numbers
            own = [x for x, (which, _) in zip(self.results, self.at, strict=True) if which is None] or self.results[:1]
            outputs["out"] = own, _squeezed(own)
        if self.auxiliary_shape is not None:
            outputs["auxiliary"] = self.auxiliary, self.auxiliary_shape
        if self.compared_sides:
            outputs["sides"] = self.compared_sides, (len(self.compared_sides),)
        for n, each in enumerate(self.nested):
            for name, (_, before) in each.inputs.items():
                outputs[f"{name} of {n}"] = before, _squeezed(before)
        lifted = self.lift_graph(self.graph, {}, outputs, picks)
        if not self.nested:
            return lifted
        parts = []
        for each, graph in zip(self.nested, self.graphs, strict=True):
            inputs = {name: values for name, (values, _) in each.inputs.items()}
            part = self.lift_graph(graph, inputs, {"out": (each.results, _squeezed(each.results))}, [])
            parameters = [self.place[id(graph.values[place])] for place in part.parameters]
            parts.append((replace(part, parameters=parameters), each))
        return with_derivatives(lifted, parts, self.at, tuple([n for n in self.shape if n > 1]))

    def lift_graph(
        self, graph: Graph, inputs: dict[str, list[Value]], outputs: dict[str, Any], picks: list[Pick]
    ) -> Lifted:
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
        captured = self.proxies.places.values()
        source[[place[x] for x in captured.intersection(place)]] = PARAM
        places: dict[str, Ints] = {}
        arrays = [(name, [id(x) for x in array.reshape(-1)], array.shape) for name, array in self.inputs.items()]
        arrays += [(name, [id(x) for x in values], _squeezed(values)) for name, values in inputs.items()]
        for name, ids, shape in arrays:
            places[name] = np.array([place[x] for x in ids], np.int64).reshape(shape)
            source[places[name]] = INPUT
        nodes = {id(integer._node) for integer in self.integers}
        indices = [name for name, array in self.inputs.items() if array.size and id(array.flat[0]) in nodes]
        wanted = {
            name: np.array([place[id(x)] for x in values], np.int64).reshape(shape)
            for name, (values, shape) in outputs.items()
        }
        blocks = self.proxies.places.blocks(place)
        return lift(graph, source, places, wanted, batched=self.batched, picks=picks, indices=indices, blocks=blocks)


def _squeezed(values: Sequence[Any]) -> tuple[int, ...]:
    return (len(values),) if len(values) > 1 else ()


def primal_of(result: Any) -> Any:
    """Return a result without auxiliary numbers, or out of an array without axes."""
    result = result.result if isinstance(result, Aux) else result
    return result.item() if isinstance(result, np.ndarray) and not result.ndim else result


def _age(value: Any) -> int:
    return int(value._made)


def _comes_out(guard: Guard, sides: list[Any], integers: Sequence[int]) -> bool:
    """Return True if a guard has the same outcome for other integers."""
    x, y = (float(integers[side] if type(side) is int else side) for side in sides)
    return bool(HOLDS[guard.how](x, y) == guard.outcome)


def numbers_in(x: Any) -> Any:
    """Replace Values by their numbers, also in nested lists."""
    if isinstance(x, Value):
        return x.data
    if isinstance(x, Aux):
        return numbers_in(x.result)
    if isinstance(x, np.ndarray) and x.dtype == object:
        return numbers_in(x.tolist())
    if isinstance(x, (list, tuple)):
        return [item.data if type(item) is Value else numbers_in(item) for item in x]
    return x


def _as_value(x: Any) -> Any:
    x = as_operand(x)
    return x if isinstance(x, Value) else Value(float(x))
