"""From a run of the user's function to a specialization: the array program that it computed, and its guards."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from wengert import modes
from wengert.compiler import policy
from wengert.compiler.arguments import Arguments
from wengert.compiler.backends import Kernel
from wengert.compiler.call import Captures
from wengert.compiler.derive import reverse
from wengert.compiler.ir import Program, verify
from wengert.compiler.lift import Lifted, Pick, Unliftable
from wengert.compiler.reach import PurityCheck
from wengert.compiler.record.choices import other_integers, picks_of
from wengert.compiler.record.differentiate import operations
from wengert.compiler.record.layout import ResultLayout, flat_result
from wengert.compiler.record.run import RecordedRun, seen_in_caches
from wengert.compiler.record.specialization import Guards, Specialization
from wengert.compiler.record.structure import Aux, Parts, Structure, kind_of, take_apart
from wengert.compiler.record.uncompiled import Uncompiled
from wengert.compiler.traced import Nesting, Unrecordable
from wengert.engine import Value
from wengert.errors import Line

__all__ = ["Candidate", "numbers_in", "primal_of", "record"]

ATTEMPTS = 3  # how many choices of other integers are tried


class Candidate:
    """A recorded run of a function, from which a specialization is made once it is lifted.

    Many fields: those of the run are set once, those of its program once, by `lift`; none changes after that.

    Args:
        run: the recorded run.
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
        self, run: RecordedRun, picks: list[Pick], result: Any, parts: Parts | None, structure: Structure | None
    ) -> None:
        self.nodes: int = run.nodes.size
        self.recorded: int = max(run.recorded, run.nodes.size)
        self.structure: Structure | None = structure
        self.shape: tuple[int, ...] | None = run.outputs.shape
        self.layout: ResultLayout | None = run.outputs.layout
        self.kind: Any = kind_of(primal_of(result))
        if structure is not None:
            self.kind = Value if structure.computed.any() else float
        leaves = result if parts is None else parts.leaves
        if run.outputs.layout is not None:
            self.kind, leaves = float, run.outputs.layout.leaves(result)
        numbers = None if run.outputs.shape is None else np.asarray(numbers_in(leaves))
        self.dtype: Any = np.dtype(float) if numbers is None or run.outputs.is_doubtful else numbers.dtype
        self.result: Any = None if numbers is None else numbers.astype(float)
        one = [primal_of(result)] if run.outputs.layout is None and run.outputs.shape == () else []
        self.leaves: list[Any] = one if parts is None else [*parts.leaves]
        self.values: list[Any] = []
        self.example: list[Any] = [x.copy() if isinstance(x, np.ndarray) else x for x in run.example]
        self.guards: Guards = Guards(run.guards_in_words(), run.comparisons.sides)
        self.differentiation: Any = None  # of the program, if a derivative is compiled: see `derived`
        self.began: int = 0  # when the function itself began, in ticks
        self.has_nested: bool = bool(run.outputs.nested)
        self.uses_numpy: bool = run.uses_numpy
        self.elsewhere: list[Any] = run.identities.elsewhere  # what it read, but not from its arguments, if it may tell
        self._before: list[float] = [value._data for value in run.nodes.graph.values[: run.nodes.given]]
        self._picks: list[Pick] = picks
        self._run: RecordedRun | None = run
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
            values, places = run.nodes.graph.values, self.lifted.parameters
            self.parameters: tuple[Any, ...] = tuple([values[place] for place in places])
            # The numbers at the recording: the user may have changed them since.
            self.numbers: Any = np.array([self._before[n] if n < run.nodes.given else values[n]._data for n in places])
            captured = run.places.values()
            self.captures: Captures = run.places.captures(self.parameters, run.identities.constants)
            own = [n for n, p in enumerate(self.parameters) if id(p) not in captured]
            self.own: Any = np.array(own, np.int64)
            arrays = self.lifted.program.of_role("param")
            ends = np.cumsum([array.size for array in arrays])
            with_own = {*np.searchsorted(ends, self.own, "right").tolist()}
            self.fixed: set[str] = {array.name for n, array in enumerate(arrays) if n not in with_own}
            self.extents: dict[str, int] = run.choices.extents
            self.wraps: set[str] = {name for name in run.choices.extents if run.wraps(name)}
            self.value_inputs: tuple[str, ...] = tuple(run.inputs.of_values)
            self.uncompiled: Uncompiled | None = self._uncompiled(run, captured)
            if self.differentiation is not None:
                self.differentiation.apply(self)
                verify(self.lifted.program)
            elif self.has_nested:
                self.nodes = max(self.nodes, operations(self.lifted.program))
            self.forward: int = self.lifted.program.size
            self._run, self._before = None, []  # frees the graph
        return self.lifted

    def _uncompiled(self, run: RecordedRun, captured: set[int]) -> Uncompiled | None:
        """Keep the operations, for derivatives that are not finite; None if not all can be computed again so."""
        one_or_none = self.structure is None or self.kind is not Value
        if self.nodes < policy.AGAIN or one_or_none or self.is_derivative or run.choices.extents:
            return None
        given = [(x, id(x) not in captured) for x in self.parameters]
        given += [
            (x, name in run.inputs.of_values) for name, nodes in run.inputs.nodes.items() for x in nodes.reshape(-1)
        ]
        uncompiled = Uncompiled(run.outputs.values, given, captured, run.recorder.began)
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
    differentiates: bool = False,
    for_values: Collection[str] | None = None,
) -> Candidate:
    """Run a function on an example, and record it; `result` and `watch` come from the run of the function itself.

    A batch may `keep_tuples`. If it `nests`, derivatives that the function returns become programs of their own. With
    more operations than there is `room` for, the recording is broken off. `differentiates`, `for_values`: see
    `RecordedRun`.

    Raises:
        Unrecordable: it cannot be recorded; the message says why.
        TooLarge: it was broken off.
    """
    if for_values is not None:
        result = _with_numbers(result)
    layout = ResultLayout.of(result, keep_tuples) if arguments.signature.batched else None
    trace = partial(RecordedRun, function, arguments, example, watch, layout, room=room)
    trace = partial(trace, differentiates=differentiates, for_values=for_values)
    parts = None if arguments.signature.batched else take_apart(result)
    try:
        run = _nested(trace) if nests else None
        run = seen_in_caches(trace, watch) if run is None else run
        if run.identities.shares_floats:
            trace = partial(trace, fixes_floats=True)
            run = trace()
    except (Unrecordable, Unliftable):
        raise
    except Exception as problem:
        raise Unrecordable(_stopped(problem)) from problem
    results = flat_result(result)[1] if parts is None else parts.leaves
    for got, want in zip(run.outputs.kinds, map(kind_of, results), strict=False):
        if got != np.dtype(float if want is Value else want).kind:
            raise Unrecordable(
                f"its result is of type {want.__name__}, but another kind of number while it is recorded: return "
                "float(x)"
            )
    picks: list[Pick] = []
    if any(integer.extent and integer.number < 0 and not run.wraps(integer.name) for integer in run.inputs.integers):
        run = trace(fixed=True)
    for attempt in range(ATTEMPTS if run.choices.extents else 0):
        try:
            others = other_integers(run.inputs.integers, run.comparisons.guards, attempt)
            picks = picks_of([run, *[trace(each) for each in others]])
            break
        except Exception:  # other integers take another branch, or raise: then each gets a specialization
            if attempt == ATTEMPTS - 1:
                run = trace(fixed=True)
    structure = None
    if run.outputs.parts is not None:
        parts = Parts(result) if parts is None else parts
        with _faults():
            structure = Structure(
                *(parts, run.outputs.parts, run.outputs.passed, run.choices.chosen),
                *(run.recorder.began, watch.before.objects),
            )
    return Candidate(run, picks, result, parts, structure)


def _with_numbers(result: Any) -> Any:
    """Return a result with the numbers of the Values in it."""
    parts = take_apart(result)
    if parts is None:
        return result.data if isinstance(result, Value) else result
    return parts.with_leaves([x.data if isinstance(x, Value) else x for x in parts.leaves])


def _nested(trace: Callable[..., RecordedRun]) -> RecordedRun | None:
    """Record with programs of their own for derivatives that are returned; None if that is impossible."""
    try:
        run = trace(nests=True)
    except (Nesting, Exception):  # the run that is recorded operation by operation tells why, if it is not for them
        return None
    return run if run.recorder.nests and not (run.outputs.nested and run.recorder.picked) else None


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


def primal_of(result: Any) -> Any:
    """Return a result without auxiliary numbers, or out of an array without axes."""
    result = result.result if isinstance(result, Aux) else result
    return result.item() if isinstance(result, np.ndarray) and not result.ndim else result


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
