"""Runs a function that takes plain numbers only, so that its result can be differentiated.

A derivative calls its function with Values. Code such as `math.exp(x)` or `float(x)` takes none: then the function is
recorded, as `compile` does, on the numbers, and the operations that were recorded lead to the Values. The engine sweeps
over them as over those of any other function.

What a recording follows, has a derivative. A number that leaves it, into a function written in C, does not: each
recording is compared with a difference quotient of the function itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CodeType
from typing import Any

import numpy as np

from wengert import modes
from wengert._signatures import signature
from wengert.compiler import policy
from wengert.compiler.arguments import Arguments, Reader, bound_to
from wengert.compiler.reach import PurityCheck
from wengert.compiler.record.run import RecordedRun
from wengert.compiler.record.structure import Parts
from wengert.compiler.traced import TooLarge, Unrecordable, is_watched, recorder_of_thread
from wengert.derivatives import Numbers, code_of, derivations_of, floats_only, items_of
from wengert.engine import Value
from wengert.errors import ArgumentError, OperationError, WengertError
from wengert.graph import Graph

__all__ = ["MARK", "run_on_floats"]

MARK = "_of_floats"  # an attribute of errors of a watched run, in which no other one is recorded

STEP = 6e-6  # of a difference quotient, relative to each number: about the cube root of the rounding of a float
NEAR = 1e-3  # relative, of the derivative along a direction and its difference quotient


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
        OperationError: it has another derivative than its recording.
        Exception: `problem`, if it cannot be recorded, or raises for plain numbers too.
    """
    if recorder_of_thread() is not None or is_watched() or derivations_of(function)[1]:
        setattr(problem, MARK, True)
        raise problem
    given = _Given(function, args, named)
    if not given.values:
        raise problem
    try:
        result, leaves = _recorded(function, given)
    except (Unrecordable, TooLarge) as reason:
        if not hasattr(problem, "__notes__"):
            problem.add_note(
                f"It takes no Values, and cannot be recorded on their numbers: {reason}. Write it with operators and "
                "the functions of wengert, or declare what takes plain numbers only by wengert.op"
            )
        raise problem from None
    except WengertError:
        raise problem from None
    except (ArithmeticError, ValueError) as own:  # as of math.sqrt(-1.0)
        raise own from None
    except Exception:
        raise problem from None
    difference = _difference(given, leaves)
    if difference:
        raise OperationError(
            f"{getattr(function, '__name__', 'the function')} takes plain numbers only, and recording it does not give "
            f"its derivative: {difference}. A number leaves what is recorded, perhaps into a function written in C: "
            'declare that one by wengert.op(name, value=function, partials="differences")'
        )
    code = code_of(function)
    if type(code) in (CodeType, BuiltinFunctionType):
        floats_only.add(code)
    return result


class _Given:
    """The arguments of a call, with numbers in place of the Values among them.

    Attributes:
        arguments: of the function, as `compile` reads them.
        values: the Values, in order.
        nodes: the same by the names of the recorded inputs.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> None:
        self.function: Callable[..., Any] = function
        self._args: list[Any] = list(args)
        self._named: dict[str, Any] = named
        self.values: list[Value] = [x for x in items_of([*args, *named.values()]) if isinstance(x, Value)]
        self.nodes: dict[str, Sequence[Value]] = {}

    def plain(self, numbers: Sequence[float] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with these numbers in place of the Values; by default those of the Values."""
        left = iter([x.data for x in self.values] if numbers is None else numbers)

        def plain(x: Any) -> Any:
            if not any(isinstance(item, Value) for item in items_of(x)):
                return x
            flat = Numbers(x)
            return flat.unflatten([next(left) if isinstance(leaf, Value) else leaf for leaf in flat.leaves])

        return [plain(x) for x in self._args], {name: plain(x) for name, x in self._named.items()}

    def arguments(self) -> Arguments:
        """Read the plain arguments, and note the Values by the names that the recording gives its inputs.

        Raises:
            Unrecordable: they cannot be read.
            TypeError: they are not those of the function.
        """
        args, named = self.plain()
        try:
            arguments = Reader(signature(self.function), ()).read(args, named, False)
        except ArgumentError as reason:
            raise Unrecordable(str(reason)) from None
        bound = bound_to(signature(self.function), self._args, self._named)
        if arguments is None or bound is None:
            raise TypeError
        if arguments.signature.reason:
            raise Unrecordable(arguments.signature.reason)
        for name, x in bound.arguments.items():
            if not any(isinstance(item, Value) for item in items_of(x)):
                continue
            leaves = [leaf if isinstance(leaf, Value) else Value(leaf) for leaf in Numbers(x).leaves]
            for each, leaf in self._leaves(arguments, name):
                size = int(np.prod(leaf.shape))
                self.nodes[each], leaves = leaves[:size], leaves[size:]
            if leaves:
                raise TypeError
        return arguments

    def _leaves(self, arguments: Arguments, name: str) -> list[tuple[str, Any]]:
        leaves = dict(zip(arguments.signature.names, arguments.signature.leaves, strict=True))
        return [(each, leaves[each]) for each in arguments.signature.arrays[name]]

    def result(self, numbers: Sequence[float]) -> list[float]:
        """Return the numbers in the result for other numbers."""
        args, named = self.plain(numbers)
        return [float(x.data if isinstance(x, Value) else x) for x in Parts(self.function(*args, **named)).leaves]


@modes.suspended()
@np.errstate(all="ignore")
def _recorded(function: Callable[..., Any], given: _Given) -> tuple[Any, list[Any]]:
    """Run the function, and record it; return its result with Values, and the leaves of that.

    Raises:
        Unrecordable, TooLarge: it cannot be recorded; the message says why.
    """
    arguments = given.arguments()
    profiler = sys.getprofile()  # the user's
    sys.setprofile(None)
    try:
        for _ in range(policy.CHANGES):
            call = arguments.prepared(function, 0)
            watch = PurityCheck(function, arguments.reached_by(call))
            with modes.watched():
                result = watch.run(call)
            if watch.effect or not watch.is_cache_filled():
                break
        if why := watch.effect or watch.change:
            raise Unrecordable(why if watch.effect else f"{why}: {watch.instead}")
        run = RecordedRun(function, arguments, arguments.example(0), watch, None, fixed=True, given=given.nodes)
    finally:
        sys.setprofile(profiler)
    parts = Parts(result)
    outputs = zip(run.outputs.values, run.outputs.kinds, parts.leaves, strict=True)
    leaves = [node if kind == "f" else x for node, kind, x in outputs]
    return parts.with_leaves(leaves), leaves


@np.errstate(all="ignore")
def _difference(given: _Given, leaves: list[Any]) -> str:
    """Say how the derivative of a recording along a direction differs from the difference quotients of the function;
    empty if it does not, and near a kink, or the edge of where the function is defined, where these do not tell.
    """
    at = np.array([x.data for x in given.values])
    step = STEP * np.maximum(np.abs(at), 1.0) * np.cos(1.0 + np.arange(len(at)))
    try:
        points = [given.result((at + size * step).tolist()) for size in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        low, half_low, middle, half_high, high = map(np.array, points)
        change, halved, bend = high - low, 2.0 * (half_high - half_low), high - 2.0 * middle + low
    except (ArithmeticError, TypeError, ValueError):
        return ""
    graph = Graph(*[x if isinstance(x, Value) else Value(float(x)) for x in leaves], *given.values)
    places = graph.outputs
    tangents: dict[int, float] = {}
    for place, moved in zip(places[len(leaves) :], (2.0 * step).tolist(), strict=True):
        tangents[place] = tangents.get(place, 0.0) + moved
    pushed = graph.push_forward(tangents)
    slopes = np.array([pushed[place] for place in places[: len(leaves)]])
    size = np.maximum(np.abs(change), np.abs(slopes))
    rounding = 1e3 * np.finfo(float).eps * np.abs(points).max(axis=0)
    is_smooth = (np.abs(change - halved) <= NEAR * size + rounding) & (np.abs(bend) <= NEAR * size + rounding)
    for n in np.flatnonzero(is_smooth & (np.abs(slopes - change) > NEAR * size + rounding)):
        unit = float(np.linalg.norm(2.0 * step))
        return (
            f"along a direction the recording changes by {slopes[n] / unit:.6g}, the function by {change[n] / unit:.6g}"
        )
    return ""
