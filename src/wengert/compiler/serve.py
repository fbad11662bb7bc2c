"""Serves the calls of a compiled function that its `CallPath` cannot serve alone.

It runs the specializations; compares what they give with the function where a check is due; where none of them serves
an example, it compiles the recording that waits, or records the function on this example, and tries again; or it leaves
the example to the function. `specialize` records and compiles, `checks` compares, `fallback` has the reasons.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import modes
from wengert.compiler import policy, report
from wengert.compiler.arguments import Arguments, copied, rows_of
from wengert.compiler.backends import BACKENDS, source_of
from wengert.compiler.cache import Cache
from wengert.compiler.call import CacheEntry, Call
from wengert.compiler.checks import Checks, OwnResults, row_due
from wengert.compiler.fallback import Fallback
from wengert.compiler.lift import Unliftable
from wengert.compiler.log import log
from wengert.compiler.record import Specialization
from wengert.compiler.results import reduce_results, reduce_values, rows_of_numbers
from wengert.compiler.specialize import Specializer
from wengert.compiler.traced import is_watched, recorder_of_thread
from wengert.derivatives import derivations_of
from wengert.errors import ArgumentError

__all__ = ["Server"]


class Server:
    """Serves the calls of one compiled function."""

    def __init__(self, compiled: Any, function: Any) -> None:
        self.compiled = compiled
        self.function: Any = function
        self.name: str = getattr(function, "__name__", "the function")
        self.entries: dict[Any, CacheEntry] = {}
        self.fallback: Fallback = Fallback(compiled, self.name, self.entries)
        self.cache: Cache = Cache(compiled, self.entries, self.fallback)
        self.specializer: Specializer = Specializer(compiled, function, self.cache, self.fallback)
        self.checks: Checks = Checks(function, self.specializer, self.fallback)

    def mode(self) -> bool | None:
        """Return whether this thread wants no derivatives; None if no recording may serve."""
        return None if self.must_be_eager() else modes.grad_disabled()

    def must_be_eager(self) -> bool:
        """Return True while another function is recorded or watched, and for a derivative that consists of Values as it
        depends on parameters, in `no_grad()`: there it consists of floats.
        """
        if recorder_of_thread() is not None or is_watched() or modes.eager_only():
            return True
        return modes.grad_disabled() and self.specializer.on_parameters

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, args: Sequence[Any], named: dict[str, Any], how: str = "") -> Any:
        """Serve a call on one example or, if `how` is mean, sum or map, on a batch."""
        recorder = recorder_of_thread()
        if recorder is not None:  # another function calls this one
            return self.eager(recorder.proxies.proxy(self.function, self.name), args, named, how)
        if self.must_be_eager():
            modal = report.MODES if modes.eager_only() else report.NO_GRAD
            self.fallback.count(report.WITHIN if is_watched() else modal)
            return self.eager(self.function, args, named, how)
        self.specializer.follow_definition()
        arguments = self.specializer.read(args, named, bool(how))
        if arguments is None:
            self.fallback.count(report.ARGUMENTS)
            return self.eager(self.function, args, named, how)
        if how:
            return self.batch(arguments, arguments.count(), how)
        return self.single(arguments)

    def eager(self, function: Any, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """Serve a call by a function that is not compiled."""
        if not how:
            return function(*args, **named)
        recorder = recorder_of_thread()
        if recorder is not None and how == "map":
            recorder.refuse(
                "calls map of a compiled function, which gives numbers without derivatives: call the function for each "
                "example, in a list"
            )
        call, rows = rows_of(function, *self.specializer.reader.of_calls(len(args)), args, named)
        results = [call(*row) for row in rows]
        if recorder is None:
            return reduce_results(results, how, self.specializer.keeps_tuples)
        return reduce_values(results, how)

    def single(self, arguments: Arguments) -> Any:
        """Serve a call on one example."""
        entry, own = self.cache.entry_for(arguments, 1), self.own_results(arguments)
        ran = self.serve(entry, own, 1, "")
        if ran is None or ran.result is None:
            return own.of(0)
        must_check = ran.is_unproven or entry.is_milestone()
        return self.checks.single(entry, ran.ran, own, ran.result) if must_check else ran.result

    def batch(self, arguments: Arguments, count: int, how: str) -> Any:
        """Serve a call on a batch."""
        entry, own = self.cache.entry_for(arguments, count), self.own_results(arguments)
        ran = self.serve(entry, own, count, how)
        if ran is None or (ran.result is None and ran.partial is None):
            return self.each(arguments, how, own.results)
        results = dict(own.results)
        must_check = ran.is_unproven or entry.is_milestone()
        if must_check and not self.checks.batch(entry, _shares(ran, count), arguments, results):
            return self.each(arguments, how, results)
        result = ran.result
        if result is None:
            result = self.mixed(entry, arguments, how, ran.partial, ran.left, own)
        return entry.finished(result, how)

    def serve(self, entry: CacheEntry, own: OwnResults, count: int, how: str, at_once: bool = False) -> Call | None:
        """Run the specializations, record the first example that none of them serves, or compile the recording that
        waits, and so on.

        Returns the last run: its result, or else the `partial` one, and which rows are `left` to the function itself.
        None if all are.
        """
        while at_once or len(own.results) < count:
            if entry.is_eager or count < entry.min_examples or self.must_be_eager():
                break
            ran = self.run(entry, own.arguments, count, how)
            entry.not_finite += not (ran.was_finite or at_once)  # `prepare` counts no call
            if ran.result is not None or not (ran.was_finite and ran.was_computed):
                return ran
            left = ran.left if ran.shares else range(count)
            row = next((int(n) for n in left if int(n) not in own.results), 0 if at_once else None)
            if row is None:
                return ran
            before = self.before(entry, own.arguments, row, how, ran.partial)
            if self.advance(entry, row, own, ran, at_once):
                continue
            has_effects = entry.is_eager or row in own
            # Later rows may depend on the effects of a run, which nobody watches while the next one waits.
            if entry.candidate is not None or entry.compile_after or has_effects:
                ran.partial, ran.left = before, [*[n for n in own.results if n < row and n in left], *range(row, count)]
                ran.shares = [] if has_effects else ran.shares
            return ran
        return None

    def advance(self, entry: CacheEntry, row: int, own: OwnResults, ran: Call, at_once: bool = False) -> bool:
        """Compile the recording that waits, or record the function on an example that no specialization serves. Return
        False if the function itself serves this example and those that are left.
        """
        log.debug("%s: no specialization serves call %d of %s", self.name, entry.calls, entry.signature)
        if entry.candidate is not None:
            return self.specializer.compile(entry, at_once)
        if not (at_once or self.specializer.may_record(entry)):
            return False
        with self.specializer.turn_to_record() as turn:
            if not turn and not at_once:
                self.cache.uncount(entry, own.arguments.count() if entry.signature.batched else 1)
            if not turn or row in own:  # its own specialization does not serve it
                return False
            if not entry.is_current(ran):
                return True
            began = self.specializer.began
            result, run, watch = self.specializer.first_run(entry, own.arguments, row)
            if own.results:  # results of earlier rows are compared, too
                self.specializer.began = min(began, self.specializer.began)
            own.add(row, result, run, watch)
            if watch is None:
                return False
            return self.specializer.record(entry, own.arguments, row, result, watch, run, at_once)

    def before(self, entry: CacheEntry, arguments: Arguments, row: int, how: str, partial: Any) -> Any:
        """Return the results of specializations for the rows before one, which may have side effects; None for no rows.

        For a mean or a sum it is a `partial` result of these rows.
        """
        if partial is None or how == "map":
            return partial
        if not row:
            return None
        ran = self.run(entry, arguments, row, "sum")
        total = ran.partial if ran.result is None else ran.result
        return total if total is None or how == "sum" else total * (1.0 / arguments.count())

    def own_results(self, arguments: Arguments) -> OwnResults:
        """Return the function's own results for the examples of a call, of which none is computed yet."""
        return OwnResults(self.function, lambda: arguments)

    def run(self, entry: CacheEntry, arguments: Arguments, count: int, how: str) -> Call:
        """Run the specializations, and return the call with their results."""
        arrays = [x[:count] for x in arguments.arrays] if how else arguments.numbers(arguments.arrays)
        call = Call(entry)
        call.run(arrays, [] if how else arguments.values(), count, how, modes.grad_disabled())
        return call

    def each(self, arguments: Arguments, how: str, own: dict[int, Any]) -> Any:
        """Serve a batch by the function itself, except for the examples whose own results there are."""
        results = arguments.all_eager(self.function, own)
        return reduce_results(results, how, self.specializer.keeps_tuples)

    def mixed(self, entry: CacheEntry, arguments: Arguments, how: str, partial: Any, left: Any, own: OwnResults) -> Any:
        """Serve the rows of a batch that are left by the function itself, and return the whole result. `partial` has
        the specializations' results for the other rows.
        """
        results = [own.of(row) for row in map(int, left)]
        if how != "map":
            return partial + reduce_values(results, "sum") * (1.0 / arguments.count() if how == "mean" else 1.0)
        rows = rows_of_numbers(results, entry.layout)
        if rows.shape[1:] != partial.shape[1:]:
            return rows_of_numbers([partial[0], *results], None)  # raises an error
        partial = partial.astype(np.promote_types(partial.dtype, rows.dtype), copy=False)
        partial[left] = rows
        return partial

    def check(
        self, entry: CacheEntry, shares: list[Any], args: Sequence[Any], named: dict[str, Any], how: str, result: Any
    ) -> Any:
        """Compare the result of a call that the call path has served with the function, and return the right one."""
        if not how:
            call = functools.partial(self.function, *args, **named)
            own = OwnResults(self.function, lambda: self.specializer.read(args, named, False), call)
            return self.checks.single(entry, shares[0][0], own, result)
        arguments = self.specializer.read(args, named, True)
        results: dict[int, Any] = {}
        if not self.checks.batch(entry, shares, arguments, results):
            return self.each(arguments, how, results)
        return entry.finished(result, how)

    # -- ahead of time, and for loops that run specializations themselves ---------------------------------------------

    def prepare(self, args: Sequence[Any], named: dict[str, Any]) -> None:
        """Record, compile and compare for copies of such arguments; no call is counted.

        A run that changes an argument gets other copies than the next one. After one that changes anything else, which
        cannot be undone, the function does not run again; nor does it where another run would be recorded in the same
        way.
        """
        directly = self.specializer.recorded_directly
        for _ in range(2 + policy.SPECIALIZATIONS):
            (given, others), copies = copied((tuple(args), named))
            arguments = self.specializer.read(given, others, False)
            if arguments is None:
                self.function(*given, **others)
                return
            entry, own = self.cache.entry_for(arguments, 0), self.own_results(arguments)
            if entry.changes >= policy.CHANGES:
                return
            was_direct = entry.signature in directly
            ran = self.serve(entry, own, 1, "", at_once=True)
            if ran is not None and ran.ran is not None:
                if ran.result is not None:
                    self.checks.single(entry, ran.ran, own, ran.result)
                    ran.ran.checked = policy.CHECKED_CALLS
                return
            watch = own.watch
            if watch is None or entry.is_eager:
                return
            if watch.change and not (watch.is_cache_filled() or id(watch.changed) in copies):
                return
            is_forgotten = self.entries.get(entry.signature) is not entry  # signatures tell which objects are the same
            if not (watch.change or is_forgotten or (entry.signature in directly and not was_direct)):
                return

    def calls_until_check(
        self, entry: CacheEntry, several: Sequence[Specialization], ready: Callable[[], Sequence[Any]]
    ) -> int:
        """Count a call that a loop serves by running specializations itself, and return for how many calls it may do so
        until the next comparison, for which `ready` returns the arguments: those of a batch, or none. Return 0 if the
        function itself must serve.
        """
        entry.calls += 1
        if any(each not in entry.specializations for each in several):
            return 0
        unproven = entry.checks < policy.CHECKED_CALLS * len(several)
        if unproven or policy.is_milestone(entry.calls):
            args = ready()
            row = row_due(entry.calls, len(args[0])) if args else 0
            if not self.checks.example(entry, self.specializer.read(args, {}, bool(args)), row):
                return 0
        return 1 if unproven else (1 << entry.calls.bit_length()) - entry.calls

    # -- what the last call used --------------------------------------------------------------------------------------

    @property
    def last(self) -> CacheEntry | None:
        """The cache entry of the last call."""
        last: CacheEntry | None = self.compiled.last
        return last

    def last_waits(self) -> bool:
        """Return True if what the last call needs waits to be recorded or compiled."""
        last = self.last
        return last is not None and (last.candidate is not None or last.compile_after > 0) and not last.specializations

    def latest(self) -> Any:
        """Return the `Specialization` of the last call; before it is compiled, one by NumPy."""
        entry = self.last
        if entry is None:
            raise ArgumentError("call the function first: nothing has been compiled yet")
        why = entry.fallback_reason or entry.clause
        with entry.lock:
            if entry.candidate is not None:
                try:
                    entry.candidate.lift()
                    return entry.candidate.specialization(BACKENDS["numpy"].kernel())
                except Unliftable as problem:
                    why = str(problem)
        if entry.latest is None and not entry.specializations:
            raise ArgumentError(f"nothing has been compiled yet{': ' * bool(why)}{why}")
        return entry.latest or entry.specializations[-1]

    def source(self, language: str, gradient: bool) -> str:
        """Return the program as text."""
        base, derivations = derivations_of(self.function)
        kinds = [{"sparse": "jacobian"}.get(each.kind, each.kind) for each in reversed(derivations)]
        name = "_of_".join([*kinds, getattr(base, "__name__", "lifted").strip("<>")])
        latest = self.latest()
        pattern = None if latest.structure is None else latest.structure.pattern
        if language == "c" and pattern is not None and not len(pattern.indices):
            raise ArgumentError(
                f"source(): the derivative of {self.name} has no entries, as all of it is 0: leave sparse=True out"
            )
        return source_of(latest, name.replace("jacobian_of_grad_of", "hessian_of"), language, gradient)

    def report(self) -> str:
        """Describe the function, line by line."""
        name = getattr(self.function, "__name__", "function")
        entries = list(self.entries.values())
        expected = self.cache.budget.expected
        return report.described(name, entries, expected, self.fallback.counts, self.cache.new_objects)


def _shares(ran: Call, count: int) -> list[tuple[Specialization, Any]]:
    """List the specializations that served a batch and their rows, without those that are left."""
    if ran.result is not None:
        return ran.served()
    rows = [(each, np.setdiff1d(range(count) if x is None else x, ran.left)) for each, x in ran.served()]
    return [(each, x) for each, x in rows if len(x)]
