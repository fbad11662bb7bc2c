"""Compares calls that specializations serve with the function itself, and drops a specialization that differs.

The first calls of a specialization run both, and so does each call of a signature whose number is a power of two: if
they agree, the program's result is returned; if not, the function's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert import modes
from wengert.compiler import check, policy
from wengert.compiler.arguments import Arguments
from wengert.compiler.call import CacheEntry
from wengert.compiler.fallback import Fallback
from wengert.compiler.log import log
from wengert.compiler.reach import PurityCheck
from wengert.compiler.record import Specialization
from wengert.compiler.specialize import Specializer
from wengert.derivatives import result_of
from wengert.engine import Value
from wengert.errors import HandmadeNodeError, OperationError

__all__ = ["Checks", "OwnResults", "row_due"]

STRIDE = 7919  # between the examples that are compared; a prime, so that it reaches all of nearly every batch


def row_due(calls: int, count: int) -> int:
    """Return the row of a batch of so many that is compared at the call with this number."""
    return calls.bit_length() * STRIDE % count


class OwnResults:
    """What the function itself returns for the examples of one call, each of which it computes at most once.

    Args:
        function: the function.
        read: returns the arguments, which are read when something asks for them.
        call: the call, if it is on one example.

    Attributes:
        results: by row.
        runs: for a derivative, runs of its function by row: the derivative is computed from such a run.
        watch: the watch of the last run.
    """

    def __init__(self, function: Any, read: Callable[[], Arguments], call: Callable[[], Any] | None = None) -> None:
        self.function: Any = function
        self._read: Callable[[], Arguments] = read
        self._arguments: Arguments | None = None
        self._call: Callable[[], Any] | None = call
        self.results: dict[int, Any] = {}
        self.runs: dict[int, Any] = {}
        self.watch: PurityCheck | None = None

    @property
    def arguments(self) -> Arguments:
        """The arguments of the call."""
        if self._arguments is None:
            self._arguments = self._read()
        return self._arguments

    def __contains__(self, row: int) -> bool:
        return row in self.results or row in self.runs

    def add(self, row: int, result: Any, run: Any, watch: PurityCheck | None) -> None:
        """Note what was returned for an example, or for a derivative the run of its function."""
        self.watch = watch
        if run is None:
            self.results[row] = result
        else:
            self.runs[row] = run
            if self.arguments.signature.batched:
                self.results[row] = self.arguments.prepared(run.derivative, row)()

    def of(self, row: int) -> Any:
        """Return the result for an example."""
        if row in self.results:
            return self.results[row]
        if row in self.runs:
            return self.arguments.prepared(self.runs[row].derivative, row)()
        if self._call is not None:
            return self._call()
        return self.arguments.prepared(self.function, row)()


class Checks:
    """Compares specializations of one compiled function with the function.

    Args:
        function: the function.
        specializer: runs it, and knows which derivative it is.
        fallback: drops specializations.
    """

    def __init__(self, function: Any, specializer: Specializer, fallback: Fallback) -> None:
        self.function: Any = function
        self.specializer: Specializer = specializer
        self.fallback: Fallback = fallback

    def single(self, entry: CacheEntry, served_by: Specialization, own: OwnResults, result: Any) -> Any:
        """Compare the result of a call on one example with the function, and return the right one; a derivative with a
        product of it with a vector, from a run of its function if there was one.
        """
        derived = self.specializer.derived(entry.signature)
        if derived is not None:
            _, of_program = self.specializer.recorded_for(own.arguments)
            sampled = derived.sample(served_by.checked, own.runs.get(0), of_program is not None)
            sample = self.specializer.observe(entry, functools.partial(own.arguments.eager, sampled))
            if not check.of_sample(served_by, derived, result, sample).difference():
                self._count(entry, served_by)
                return result
        wanted = self.specializer.observe(entry, functools.partial(own.of, 0))
        if not check.of_results(served_by, result, result_of(wanted)).difference():  # nearly always
            self._count(entry, served_by)
            return wanted if entry.is_eager else result
        return result if self.matches(entry, served_by, own.arguments, 0, wanted) else wanted

    def batch(self, entry: CacheEntry, shares: list[Any], arguments: Arguments, own: dict[int, Any]) -> bool:
        """Compare some examples of a batch with the function, and add its results to `own`: the first distinct ones of
        each specialization, later another one each time. False if one of them differs.
        """
        count = arguments.count()
        is_due = entry.is_milestone()
        for specialization, rows in shares:
            rows = range(count) if rows is None else rows
            chosen = arguments.distinct(rows, policy.CHECKED_CALLS - specialization.checked)
            if is_due and not chosen:
                chosen = [int(rows[row_due(entry.calls, len(rows))])]
            for row in chosen:
                if row not in own:
                    call = arguments.prepared(self.function, row)
                    try:
                        own[row] = self.specializer.observe(entry, call)
                    except Exception as error:  # the batch raises the error of its first example
                        raised = f"the function raises {type(error).__name__}, the array program does not"
                        self.fallback.drop(entry, specialization, raised)
                        return False
                if not self.matches(entry, specialization, arguments, row, own[row]):
                    return False
        return True

    def example(self, entry: CacheEntry, arguments: Arguments, row: int) -> bool:
        """Compare on one example; False if no specialization serves it, or that one is dropped."""
        example = arguments.example(row)
        batch = [np.asarray(x)[None] for x in example]
        serving = None
        for specialization in entry.specializations:
            with specialization.acquire() as space:
                if serving is None and not space.load():
                    serves = space.run(batch, 1, False, 1.0) and space.guards_pass(0, 1)
                    serving = specialization if serves else None
        if serving is None:
            return False
        result = self.specializer.observe(entry, arguments.prepared(self.function, row))
        return self.matches(entry, serving, arguments, row, result)

    def matches(
        self,
        entry: CacheEntry,
        specialization: Specialization,
        arguments: Arguments,
        row: int,
        result: Any,
    ) -> bool:
        """Return True if a specialization gives the function's result for an example, given its row in a batch; else
        drop it.
        """
        example, of_values = arguments.example(row), None
        if self.specializer.derived(entry.signature) is not None:
            of_values = functools.partial(self._of_values, entry, arguments, row)
        layout = entry.layout
        reason = check.of_example(specialization, layout, arguments, example, result_of(result), of_values)
        if not reason:
            self._count(entry, specialization)
            return not entry.is_eager
        if self._differs_in_kind(entry, specialization, result):
            entry.specializations, entry.latest = [], None
            self.specializer.record_directly(entry)
        else:
            self.specializer.record_with_values()
            self.fallback.drop(entry, specialization, reason)
        return False

    def _of_values(self, entry: CacheEntry, arguments: Arguments, row: int) -> Any:
        """Return what a derivative is of Values in place of numbers; an empty list if its rules take floats only."""
        derived: Any = self.specializer.derived(entry.signature)
        try:
            with modes.recorded(eager_only=True):
                run = self.specializer.observe(entry, arguments.prepared(derived.of_values, row))
        except (HandmadeNodeError, OperationError):
            return []
        return run.result

    def _count(self, entry: CacheEntry, specialization: Specialization) -> None:
        specialization.checked += 1
        entry.checks += 1
        log.debug("%s agrees with the function at call %d of %s", self.fallback.name, entry.calls, entry.signature)

    def _differs_in_kind(self, entry: CacheEntry, specialization: Specialization, result: Any) -> bool:
        """Return True if the program of a derivative gives Values where the derivative itself consists of floats, or
        the other way round: on one side of a choice, as in `relu`, it does not depend on the parameters. Recorded
        directly, the derivative branches there.
        """
        derived = self.specializer.derived(entry.signature)
        if derived is None or entry.signature in self.specializer.recorded_directly:
            return False
        return any(isinstance(x, Value) for x in derived.leaves(result)) is not (specialization.kind is Value)
