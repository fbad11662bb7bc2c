"""Runs a function that takes plain numbers only, so that its result can be differentiated.

A derivative calls its function with Values. Code such as `math.exp(x)` or `float(x)` takes none: then the function is
recorded, as `compile` does, on the numbers, and the operations that were recorded lead to the Values. The engine sweeps
over them as over those of any other function.

What a recording follows, has a derivative. A number that leaves it, into a function written in C, does not: the
recording notes it, and then has to give what the function gives near these numbers too.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import modes
from wengert._signatures import unwrapped
from wengert.compiler import policy
from wengert.compiler.arguments import Arguments, Reader, bound_to
from wengert.compiler.reach import CallTrace, PurityCheck
from wengert.compiler.record.run import RecordedRun, seen_in_caches
from wengert.compiler.record.structure import Parts
from wengert.compiler.traced import (
    HOLDS,
    Guard,
    Number,
    TooLarge,
    Unrecordable,
    as_operand,
    is_watched,
    recorder_of_thread,
    unwatched,
)
from wengert.derivatives import (
    CaughtError,
    Numbers,
    codes_of,
    derivations_of,
    floats_only,
    items_of,
    note_floats_only,
    programs_of,
    signature_of,
)
from wengert.engine import Value
from wengert.errors import OperandError, OperationError, WengertError
from wengert.graph import Graph
from wengert.ops import BY_NAME, Op

__all__ = ["MARK", "run_as_it_catches", "run_on_floats", "run_within"]

MARK = "_of_floats"  # an attribute of errors of a watched run in which a function turns out to take no Values: its code

STEP = 1e-4  # by which a number is moved, relative
ROUNDING = 1e-14  # relative, of a result that is computed in another order
PICK = BY_NAME["pick"]


def run_on_floats(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any], problem: Exception) -> Any:
    """Record a run of a function on the numbers of the Values among its arguments.

    Args:
        function: the function.
        args: its arguments, with Values.
        named: likewise.
        problem: what it raised when it was called with these Values.

    Returns:
        Its result, with Values that depend on those among the arguments.

    Raises:
        OperationError: a number leaves what is recorded, so that the derivative is not known.
        Exception: `problem`, if it cannot be recorded, or raises for plain numbers too.
    """
    if recorder_of_thread() is not None or is_watched() or derivations_of(function)[1]:
        if not hasattr(problem, MARK):
            setattr(problem, MARK, codes_of(function))
        raise problem
    given = _Given(function, args, named)
    if not given.values:
        raise problem
    return _differentiable(function, given, problem)


def run_within(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
    """Run a function that takes plain numbers only for a derivative that a watched or a recorded run takes.

    A recorded run gets numbers that stand for the Values, which record the same. A watched run sees the function run on
    the numbers; its result for the derivative is recorded aside.

    Returns:
        Its result, with Values; `NotImplemented` if no run is watched or recorded.
    """
    recorder = recorder_of_thread()
    if recorder is not None:
        given = _Given(function, args, named)
        recorder.plain.update(map(id, given.values))
        plain, others = given.plain([Number(recorder, x._data, x) for x in given.values])
        result = Parts(function(*plain, **others))
        return result.with_leaves([as_operand(x) for x in result.leaves])
    if not is_watched():
        return NotImplemented
    given = _Given(function, args, named)
    plain, others = given.plain()
    function(*plain, **others)
    trace = sys.getprofile()
    sys.setprofile(None)
    try:
        with unwatched():
            return _differentiable(function, given, TypeError("a float is expected"))
    finally:
        if isinstance(trace, CallTrace):
            trace.start()


def _differentiable(function: Callable[..., Any], given: _Given, problem: Exception) -> Any:
    """Record a run of a function on plain numbers; returns and raises what `run_on_floats` does."""
    try:
        result, leaves, taken_out = _recorded_with_inner(function, given)
    except (Unrecordable, TooLarge) as reason:
        if not hasattr(problem, "__notes__"):
            problem.add_note(
                f"It takes no Values, and cannot be recorded on their numbers: {reason}. Write it with operators and "
                "the functions of wengert, or declare what takes plain numbers only by wengert.op"
            )
        raise problem from None
    except WengertError as inner:  # perhaps of a function whose derivative it takes
        for note in getattr(inner, "__notes__", ()):
            problem.add_note(note)
        raise problem from None
    except (TypeError, AttributeError):
        if isinstance(problem, OperandError):  # of a Value as a plain number, and the function has a fault of its own
            raise
        raise problem from None
    if taken_out and not _holds_around(given, leaves):
        raise OperationError(
            f"{getattr(function, '__name__', 'the function')} takes plain numbers only, and one leaves what is "
            f"recorded at {taken_out[0].line}, perhaps into a function written in C, so that its derivative is not "
            'known: declare that function by wengert.op(name, value=function, partials="differences")'
        )
    note_floats_only(function)
    programs_of(function)  # for the next call
    return result


def run_as_it_catches(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> tuple[bool, Any]:
    """Record a run of a function, which has run with Values, on the numbers of these among its arguments.

    Returns:
        Whether it catches an error that numbers raise, and does not tell numbers from Values; then its result, with
        Values.

    Raises:
        CaughtError: this run is watched.
    """
    if is_watched():
        raise CaughtError
    given = _Given(function, args, named)
    try:
        result, _, taken_out = _recorded(function, given, in_place_of_values=True)
    except (Exception, TooLarge):
        return False, None
    return not taken_out, result


def _holds_values(x: Any) -> bool:
    return any(isinstance(item, Value) for item in items_of(x))


class _Given:
    """The arguments of a call, with numbers in place of the Values among them.

    Attributes:
        values: the Values, in order.
        nodes: the same by the names of the recorded inputs.
        names: of the arguments that hold them.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> None:
        self.function: Callable[..., Any] = function
        self._args: list[Any] = list(args)
        self._named: dict[str, Any] = named
        self.values: list[Value] = [x for x in items_of([*args, *named.values()]) if isinstance(x, Value)]
        self.nodes: dict[str, Sequence[Value]] = {}
        self.names: set[str] = set()

    def plain(self, numbers: Sequence[Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with these numbers in place of the Values; by default those of the Values."""
        left = iter([x.data for x in self.values] if numbers is None else numbers)

        def without_values(x: Any) -> Any:
            if not _holds_values(x):
                return x
            flat = Numbers(x)
            return flat.unflatten([next(left) if isinstance(leaf, Value) else leaf for leaf in flat.leaves])

        return [without_values(x) for x in self._args], {name: without_values(x) for name, x in self._named.items()}

    def arguments(self) -> Arguments:
        """Read the plain arguments, and note the Values by the names that the recording gives its inputs.

        Raises:
            Unrecordable: they cannot be read.
            TypeError: they are not those of the function.
        """
        args, named = self.plain()
        reader = Reader(signature_of(self.function), (), own=unwrapped(self.function))
        arguments = reader.read(args, named, False)
        if arguments is None:
            raise TypeError
        bound = bound_to(arguments.signature.of_function, self._args, self._named)
        if bound is None:
            raise TypeError
        if arguments.signature.reason:
            raise Unrecordable(arguments.signature.reason)
        shapes = {
            each: leaf.shape for each, leaf in zip(arguments.signature.names, arguments.signature.leaves, strict=True)
        }
        for name, x in bound.arguments.items():
            if not _holds_values(x):
                continue
            self.names.add(name)
            leaves = [leaf if isinstance(leaf, Value) else Value(leaf) for leaf in Numbers(x).leaves]
            for each in arguments.signature.arrays[name]:
                size = int(np.prod(shapes[each]))
                self.nodes[each], leaves = leaves[:size], leaves[size:]
            if leaves:
                raise TypeError
        return arguments

    def result(self, numbers: Sequence[float]) -> list[float]:
        """Return the numbers in the result for other numbers."""
        args, named = self.plain(numbers)
        return [float(x.data if isinstance(x, Value) else x) for x in Parts(self.function(*args, **named)).leaves]


def _recorded_with_inner(function: Callable[..., Any], given: _Given) -> tuple[Any, list[Any], list[Guard]]:
    """Do what `_recorded` does, also of a function that takes a derivative of another one which takes no Values:
    its first run, which nobody watches, shows which one does.
    """
    try:
        return _recorded(function, given)
    except Exception as error:
        code = getattr(error, MARK, None)
        if code is None or code in floats_only:
            raise
        args, named = given.plain()
        function(*args, **named)
        if code not in floats_only:
            raise
    return _recorded_with_inner(function, given)


@modes.suspended()
@np.errstate(all="ignore")
def _recorded(
    function: Callable[..., Any], given: _Given, in_place_of_values: bool = False
) -> tuple[Any, list[Any], list[Guard]]:
    """Run the function, and record it; return its result with Values, the leaves of that, and the guards of numbers
    that were taken out: for these alone the recording holds, as if they were constants.

    Raises:
        Unrecordable, TooLarge: it cannot be recorded; the message says why.
    """
    arguments = given.arguments()
    profiler = sys.getprofile()  # the user's
    sys.setprofile(None)
    try:
        for _ in range(policy.CHANGES):
            args, named = given.plain()  # of its own, which it may change
            call = functools.partial(function, *args, **named)
            watch = PurityCheck(
                function, [(name, x) for name, x in arguments.originals.items() if name not in given.names]
            )
            with modes.watched():
                result = watch.run(call)
            if watch.effect or not watch.is_cache_filled():
                break
        if why := watch.effect or watch.change:
            raise Unrecordable(why if watch.effect else f"{why}: {watch.instead}")
        for_values = given.nodes.keys() if in_place_of_values else None
        trace = functools.partial(RecordedRun, function, arguments, arguments.example(0), watch, None)
        trace = functools.partial(trace, fixed=True, given=given.nodes, differentiates=True, for_values=for_values)
        run = seen_in_caches(trace, watch)
    finally:
        sys.setprofile(profiler)
    parts = Parts(result)
    outputs = zip(run.outputs.values, run.outputs.kinds, parts.leaves, strict=True)
    leaves = [node if kind == "f" else x for node, kind, x in outputs]
    return parts.with_leaves(leaves), leaves, [guard for guard in run.recorder.guards.values() if guard.how == "is"]


@np.errstate(all="ignore")
def _holds_around(given: _Given, leaves: list[Any]) -> bool:
    """Return True if a recording that numbers were taken out of, as for a text or a key, gives what the function gives
    where each of its arguments is a little smaller or larger; then these numbers do not matter for its derivatives.
    """
    at = [x.data for x in given.values]
    graph = Graph(*[x if isinstance(x, Value) else Value(float(x)) for x in leaves], *given.values)
    places, results = graph.outputs[len(leaves) :], graph.outputs[: len(leaves)]

    def differences(moved: list[float]) -> Any:
        numbers: list[float] = []
        given_at = dict(zip(places, moved, strict=True))
        for place, (op, operands, value) in enumerate(graph):
            xs = [numbers[x] if type(x) is int else x for x in operands]
            computed = _computed(op, xs) if xs and place not in given_at else value.data
            numbers.append(given_at.get(place, computed))
        want = np.array(given.result(moved))
        return np.abs(np.array([numbers[place] for place in results]) - want), ROUNDING * np.abs(want)

    rounding, _ = differences(at)
    for n, x in enumerate(at):
        for step in (-STEP, STEP):
            try:
                away, allowed = differences([*at[:n], x + step * (abs(x) or 1.0), *at[n + 1 :]])
            except Exception:  # there it may raise anything
                return False
            if not (away <= allowed + 8.0 * rounding).all():
                return False
    return True


def _computed(op: Op, xs: Sequence[float]) -> float:
    """Compute an operation anew; nan for one that is made by hand, whose value is not known elsewhere."""
    if op.value is not None:
        return op.value(*xs)
    if op is PICK:
        return xs[int(xs[-1])]
    return float(HOLDS[op.name](*xs)) if op.name in HOLDS else math.nan
