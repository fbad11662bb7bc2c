"""Handles the calls of a compiled function that no specialization serves at once: it records, compiles, compares with
the function, or falls back to it. `policy` decides when.

The first call runs the function itself, watched by a `PurityCheck`, and records it. The first calls of a specialization
run both, and so does each call of a signature whose number is a power of two: if they agree, the program's result is
returned; if not, the function's, and the specialization is dropped.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.ma  # else `np.unique` imports it late, and a child forked meanwhile waits for the import lock

from wengert import functions, modes
from wengert._forks import in_child, is_orphaned
from wengert.compiler import policy, report
from wengert.compiler.backends import BACKENDS, source_of
from wengert.compiler.budget import Budget
from wengert.compiler.call import CacheEntry, Call, same
from wengert.compiler.comparison import difference, matches, pulls_back_alike
from wengert.compiler.lift import Unliftable
from wengert.compiler.results import no_number, reduce_results, reduce_values, rows_of_numbers
from wengert.compiler.trace import (
    DRAWS,
    Arguments,
    Candidate,
    Derived,
    DrawsCheck,
    NotDifferentiable,
    PurityCheck,
    Reader,
    Specialization,
    Undecided,
    Unrecordable,
    copied,
    derived_from,
    is_alone,
    is_watched,
    operations_since,
    random_state,
    readers_of,
    record,
    recorder_of_thread,
    rows_of,
    too_many,
    too_many_kinds,
)
from wengert.derivatives import derivations_of, result_of, signature_of
from wengert.engine import Value
from wengert.errors import ArgumentError, warn, warn_once

__all__ = ["Runtime"]

DIFFERS = "something that was recorded as fixed has changed, or differs between calls; pass it as an argument"
STRIDE = 7919  # between the examples that are compared; a prime, so that it reaches all of nearly every batch


class Runtime:
    """The state of one compiled function."""

    def __init__(self, compiled: Any, function: Any) -> None:
        self.compiled = compiled
        self.function: Any = function
        self.name: str = getattr(function, "__name__", "the function")
        self.entries: dict[Any, CacheEntry] = {}
        self.budget: Budget = Budget(self.entries)
        self.evicted: set[Any] = set()  # the keys of signatures that were forgotten,
        self.returns: int = 0  # and how many of these came back
        self.passing: int = 0  # forgotten signatures with one example, as of a lambda that is made for a call;
        self.once: set[Any] = set()  # after many a signature is recorded at its second call: the keys seen once
        self.new_objects: Counter[str] = Counter()  # arguments of signatures that were used once, and how often
        self.said: set[str] = set()
        self.aside: dict[str, int] = {}  # calls that the function itself served, by reasons that are not its own
        self.itself: WeakSet[Any] = WeakSet()  # signatures for which a derivative itself is recorded
        self.began: int = 0  # when the last run that was watched began: see `comparison`
        self.recording: list[Any] = [None]  # the thread that pops it records
        self.tells_objects: bool = False  # it may ask whether objects are the same: see `Reader`
        self.others_draw: bool = False  # random numbers were drawn meanwhile, perhaps by another thread
        _runtimes.add(self)
        self.define()

    def defined(self) -> Any:
        """Return the code and the defaults of the function, which the user may replace."""
        return _defined(self.function)

    def define(self) -> None:
        """Prepare to read arguments, and to record the function."""
        self.definition: Any = self.defined()
        self.reader: Reader = Reader(self.compiled.signature, self.compiled.static, self.tells_objects)
        self.arguments: Callable[..., Any] = self.reader.read
        self.derived: Derived | None = derived_from(self.function, self.compiled.signature)
        _, derivations = derivations_of(self.function)
        self.apart: bool = bool(derivations) and derivations[-1].kind == "value_and_grad"  # the tuples of a batch

    def recorded_for(self, arguments: Arguments) -> tuple[Any, Derived | None]:
        """Return the function to record for calls with such arguments, and the derivative to take of its program."""
        signature = arguments.signature
        if self.derived is None or signature in self.itself or not self.derived.takes(signature):
            return self.function, None
        return self.derived.function, self.derived

    def define_anew(self) -> None:
        """Forget all recordings after the function was redefined."""
        self.entries = {}
        self.budget = Budget(self.entries)
        self.compiled.signature = signature_of(self.function)
        self.define()
        self.compiled.ones.clear()
        self.compiled.batches.clear()

    # -- calls --------------------------------------------------------------------------------------------------------

    def mode(self) -> bool | None:
        """Return whether this thread wants no derivatives; None if no recording may serve."""
        return None if self.must_be_eager() else modes.grad_disabled()

    def must_be_eager(self) -> bool:
        """Return True while another function is recorded or watched, and for a derivative that consists of Values as it
        depends on parameters, in `no_grad()`: there it consists of floats.
        """
        if recorder_of_thread() is not None or is_watched() or modes.eager_only():
            return True
        return self.derived is not None and self.derived.on_parameters and modes.grad_disabled()

    def call(self, args: Sequence[Any], named: dict[str, Any], how: str = "") -> Any:
        """Serve a call on one example or, if `how` is mean, sum or map, on a batch."""
        recorder = recorder_of_thread()
        if recorder is not None:  # another function calls this one
            return self.eager(recorder.proxies.proxy(self.function, self.name), args, named, how)
        if self.must_be_eager():
            modal = report.MODES if modes.eager_only() else report.NO_GRAD
            self.count_aside(report.WITHIN if is_watched() else modal)
            return self.eager(self.function, args, named, how)
        if not same(self.defined(), self.definition):
            self.tells_objects = False
            self.define_anew()
        arguments = self.arguments(args, named, bool(how))
        if arguments is None:
            self.count_aside(report.ARGUMENTS)
            return self.eager(self.function, args, named, how)
        if how:
            return self.batch(arguments, arguments.count(), how)
        return self.single(arguments)

    def eager(self, function: Any, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """Serve a call by a function that is not compiled."""
        if not how:
            return function(*args, **named)
        call, rows = rows_of(function, self.compiled.signature, self.compiled.static, args, named)
        results = [call(*row) for row in rows]
        if recorder_of_thread() is None and not is_watched():
            return reduce_results(results, how, self.apart)
        return results if how == "map" else reduce_values(results, how)

    def single(self, arguments: Arguments) -> Any:
        """Serve a call on one example."""
        entry = self.entry_for(arguments, 1)

        function_run: Any = None  # for a derivative: the run of its function in this call

        def eager() -> Any:
            return arguments.eager(self.function if function_run is None else function_run.derivative)

        while not entry.is_eager and not self.must_be_eager():
            ran = self.run(entry, arguments, 1, "")
            if ran.found is not None:
                if ran.must_check():
                    return self.checked(entry, ran.served(), eager, lambda: arguments, ran.found, function_run)
                return ran.found
            if ran.ran is not None:
                entry.not_finite += 1
                return eager()
            if entry.candidate is not None:
                if not self.compile(entry):
                    return eager()
                continue
            if self.rests(entry) or not self.may_record(entry):
                return eager()
            with self.alone_to_record() as alone:
                if not alone:
                    self.uncount(entry, 1)
                    return eager()
                if entry.is_current(ran):
                    result, function_run, watch = self.first_run(entry, arguments, 0)
                    served = watch is not None and self.record(entry, arguments, 0, result, watch, function_run)
                    if function_run is None:
                        return result
                    if not served:
                        return eager()
        return eager()

    def batch(self, arguments: Arguments, count: int, how: str) -> Any:
        """Serve a call on a batch."""
        entry = self.entry_for(arguments, count)
        known: dict[int, Any] = {}  # the function's results for some examples
        is_pure = True  # no run of the function has changed anything
        while not entry.is_eager and count >= entry.least:
            ran = self.run(entry, arguments, count, how)
            served = ran.served()
            if not (ran.was_finite and ran.was_computed):
                entry.not_finite += not ran.was_finite
                if ran.partial is None:
                    break
                left = [(made, np.setdiff1d(range(count) if x is None else x, ran.left)) for made, x in served]
                served = [(made, rows) for made, rows in left if len(rows)]  # of a map: the function does the others
            elif ran.found is None:
                rows = ran.left if served else range(count)
                row = next((int(n) for n in rows if int(n) not in known), None)
                if row is not None:
                    before = self.before(entry, arguments, row, how, ran.partial)
                    if self.next(entry, arguments, row, known, ran):
                        continue
                    is_pure = not entry.is_eager and row not in known
                    # Later rows may depend on the effects of a run, which nobody watches while the next one waits.
                    if entry.candidate is not None or entry.until or not is_pure:
                        here = [n for n in known if n < row and n in ran.left]
                        ran.partial, ran.left = before, [*here, *range(row, count)]
                if ran.partial is None:
                    break
            compared = dict(known)  # also of later rows
            must_check = is_pure and ran.must_check()
            if must_check and not self.matches_on_some(entry, served, arguments, compared):
                return self.each(arguments, how, compared)
            found = ran.found
            if found is None:
                found = self.mixed(entry, arguments, how, ran.partial, ran.left, known)
            return entry.finished(found, how)
        return self.each(arguments, how, known)

    def before(self, entry: CacheEntry, arguments: Arguments, row: int, how: str, partial: Any) -> Any:
        """Return the results of specializations for the rows before one, which may have side effects; None for no rows.

        For a mean or a sum it is a `partial` result of these rows.
        """
        if partial is None or how == "map":
            return partial
        if not row:
            return None
        ran = self.run(entry, arguments, row, "sum")
        made = ran.partial if ran.found is None else ran.found
        return made if made is None or how == "sum" else made * (1.0 / arguments.count())

    def next(self, entry: CacheEntry, arguments: Arguments, row: int, known: dict[int, Any], ran: Call) -> bool:
        """Compile the recording, or record an example that no specialization serves, and add the function's result for
        it to `known`. Return False if the function itself serves the other rows, too.
        """
        if entry.candidate is not None:
            return self.compile(entry)
        if self.rests(entry) or not self.may_record(entry):
            return False
        with self.alone_to_record() as alone:
            if not alone:
                self.uncount(entry, arguments.count())
            if not alone or row in known:  # its own specialization does not serve it
                return False
            if not entry.is_current(ran):
                return True
            began = self.began
            result, function_run, watch = self.first_run(entry, arguments, row)
            if known:  # results of earlier rows are compared, too
                self.began = min(began, self.began)
            known[row] = result if function_run is None else arguments.prepared(function_run.derivative, row)()
            return watch is not None and self.record(entry, arguments, row, result, watch, function_run)

    def run(self, entry: CacheEntry, arguments: Arguments, count: int, how: str) -> Call:
        """Run the specializations, and return the call with their results."""
        arrays = [x[:count] for x in arguments.arrays] if how else arguments.numbers(arguments.arrays)
        call = Call(entry)
        call.run(arrays, [] if how else arguments.values(), count, how, modes.grad_disabled())
        return call

    def each(self, arguments: Arguments, how: str, known: dict[int, Any]) -> Any:
        """Serve a batch by the function itself, except for the examples whose results are known."""
        return reduce_results(arguments.all_eager(self.function, known), how, self.apart)

    def mixed(
        self, entry: CacheEntry, arguments: Arguments, how: str, partial: Any, left: Any, known: dict[int, Any]
    ) -> Any:
        """Serve the rows of a batch that are left by the function itself, and return the whole result. `partial` has
        the specializations' results for the other rows, `known` the function's for some of these.
        """
        results = [known[n] if n in known else arguments.prepared(self.function, n)() for n in map(int, left)]
        if how != "map":
            return partial + reduce_values(results, "sum") * (1.0 / arguments.count() if how == "mean" else 1.0)
        made = rows_of_numbers(results, entry.layout)
        if made.shape[1:] != partial.shape[1:]:
            return rows_of_numbers([partial[0], *results], None)  # raises an error
        partial = partial.astype(np.promote_types(partial.dtype, made.dtype), copy=False)
        partial[left] = made
        return partial

    # -- running the function itself ----------------------------------------------------------------------------------

    def first_run(self, entry: CacheEntry, arguments: Arguments, number: int) -> tuple[Any, Any, PurityCheck | None]:
        """Run the function to record on an example, given its number in a batch.

        Nothing is watched, nor recorded, while another profiler runs.

        Returns:
            The result; for a derivative the run of its function, else None; and the watch or None.
        """
        recorded, derived = self.recorded_for(arguments)
        call = arguments.prepared(recorded, number)
        self.began = Value(0.0)._made
        watch = PurityCheck(recorded, arguments.reached_by(call)) if sys.getprofile() is None else None
        if watch is None:
            self.count_aside(report.PROFILER)
        try:
            result = self.observe(entry, call, watch)
            function_run = None if derived is None else derived.run_of(result)
        except Exception as error:
            if watch is not None and not entry.specializations:  # else these serve the other calls
                entry.changes += 1
                if entry.changes >= policy.CHANGES:
                    self.rest(
                        entry, f"it raised {type(error).__name__}: check the arguments before the call", warns=False
                    )
            raise
        if watch is not None:
            watch.operations = operations_since(self.began)
        return result, function_run, watch

    def observe(self, entry: CacheEntry, call: Callable[[], Any], watch: PurityCheck | None = None) -> Any:
        """Call the function itself, watched if the call is to be recorded."""
        try:
            if watch is not None:
                with modes.watched():
                    return watch.run(call)
            draws = DrawsCheck() if self.others_draw and sys.getprofile() is None else None
            before, alone = random_state(), is_alone()
            result = call() if draws is None else draws.run(call)
        except AttributeError as error:
            if isinstance(error.obj, (int, float)) and hasattr(functions, error.name or ""):
                error.add_note(f"an argument is a number here: write wengert.{error.name}(x), or pass a Value")
            elif type(error.obj) in (int, float, bool) and hasattr(np.float64, error.name or ""):
                error.add_note("a one-dimensional array is iterated like its tolist(), so these are Python numbers")
            raise
        if random_state() != before:
            if (alone and is_alone()) or (draws is not None and draws.draws):
                self.fall_back(entry, DRAWS)
            elif draws is None:  # the next calls tell whose doing that is
                self.others_draw = True
                for made in entry.specializations:
                    made.checked = 0
        return result

    # -- specializations ----------------------------------------------------------------------------------------------

    def entry_for(self, arguments: Arguments, count: int) -> CacheEntry:
        """Return the cache entry for such arguments, and count a call on `count` examples."""
        signature = arguments.signature
        entry = self.entries.get(signature)
        if entry is None:
            entry = CacheEntry(np, signature, self.compiled.checks == "powers")
            entry.elsewhere = self.reader.elsewhere if self.tells_objects else None
            self.forget([each for each in list(self.entries) if not each.is_alive()])
            if signature.key in self.evicted:
                self.evicted.remove(signature.key)
                self.returns += 1
            if count and self.passing >= policy.SIGNATURES and signature.key not in self.once:
                if len(self.once) >= policy.SIGNATURES:
                    self.once.clear()
                self.once.add(signature.key)
                self.new_objects.update(signature.new_objects())
                entry.is_eager = True
                self.count_aside(report.PASSING)
            elif not self.make_room():
                self.fall_back(entry, too_many_kinds())
            elif self.entries.setdefault(signature, entry) is entry:  # or another thread was first
                readers = readers_of(arguments)
                if readers is not None:
                    entry.open(*readers, signature.batched)
                    (self.compiled.batches if signature.batched else self.compiled.ones).append(entry)
                entry.is_eager, entry.clause = bool(signature.reason), signature.reason
                if signature.is_warned:
                    self.fall_back(entry, signature.reason)
            else:
                entry = self.entries[signature]
        self.compiled.last = entry
        entry.calls += count > 0
        entry.examples += count
        self.compiled.uses += 1
        entry.used = self.compiled.uses
        return entry

    def uncount(self, entry: CacheEntry, count: int) -> None:
        """Undo the count of a call that the function serves while another thread records."""
        entry.calls -= 1
        entry.examples -= count
        self.count_aside(report.THREADS)

    def count_aside(self, why: str) -> None:
        """Count a call that the function itself serves, for a reason that is not its own."""
        self.aside[why] = self.aside.get(why, 0) + 1

    def make_room(self) -> bool:
        """Forget the least recently used entry if there are too many; False if forgotten ones keep coming back."""
        if len(self.entries) < policy.SIGNATURES:
            return True
        if self.returns >= policy.RETURNS:
            return False
        signature, _ = min(list(self.entries.items()), key=lambda pair: pair[1].used)
        self.forget([signature])
        if len(self.evicted) >= policy.SIGNATURES:
            self.evicted.clear()
        self.evicted.add(signature.key)
        return True

    def forget(self, signatures: Sequence[Any]) -> None:
        """Forget the entries of some signatures, and their specializations."""
        gone = [entry for entry in [self.entries.pop(each, None) for each in signatures] if entry is not None]
        self.budget.forgotten += sum([entry.examples * entry.work for entry in gone])
        passing = [entry.signature for entry in gone if entry.examples < 2 or not entry.signature.is_alive()]
        self.passing += sum([entry.examples < 2 for entry in gone])
        self.new_objects.update([name for signature in passing for name in signature.new_objects()])
        for known in (self.compiled.ones, self.compiled.batches) if gone else ():
            known[:] = [each for each in known if each not in gone]

    def record(
        self,
        entry: CacheEntry,
        arguments: Arguments,
        number: int,
        result: Any,
        watch: PurityCheck,
        run: Any = None,
        at_once: bool = False,
    ) -> bool:
        """Record a run of the function on an example, given its number in a batch, and for a derivative the run of its
        function. Return False if that is impossible or, unless it is wanted `at_once`, has to wait.
        """
        result = result_of(result)
        if len(entry.specializations) == policy.SPECIALIZATIONS:
            watch.effect = watch.effect or too_many(entry.specializations)
        batched = arguments.signature.batched
        is_one = batched or not isinstance(result, (list, tuple, dict, np.ndarray))  # others are flattened
        if not watch.effect and is_one and (kind := no_number(result)):
            lists = "lists" if batched else "lists, tuples, dicts and arrays"
            watch.effect = f"it returns {kind}: a compiled function returns a Value or a number, or {lists} of them"
        entry.changes += bool(watch.change)
        entry.clause = f"{watch.change}; the next call is observed again" if watch.change else ""
        if watch.effect:
            self.fall_back(entry, watch.effect)
        elif watch.change and entry.changes >= policy.CHANGES:
            self.rest(entry, f"{watch.change} at each call: {watch.instead}")
        if entry.is_eager or watch.change:  # after a change the next call is watched: it may have filled a cache
            return False
        tells = watch.tells_objects or (watch.tells_own and arguments.has_equals())
        if tells and not self.tells_objects:
            return self.record_closely(entry, arguments, number, result, watch, run, at_once)
        try:
            recorded, derived = self.recorded_for(arguments)
            nests = derived is None and arguments.signature not in self.itself
            example = arguments.example(number)
            is_free = at_once or self.compiled.pinned or derived is not None
            trace = functools.partial(record, recorded, arguments, example, result, watch, self.apart, nests)
            candidate = self.budget.recording(entry, trace, watch.operations, is_free)
            if candidate is None:
                return False
            candidate.began = self.began
            if derived is not None:
                candidate.differentiation = derived.of(arguments, number, run)
            if self.tells_objects:
                self.reader.add(candidate.elsewhere)
                again = self.arguments(arguments.args, arguments.named, batched)
                if again is not None and again.signature.reason:
                    raise Unrecordable(again.signature.reason)
            entry.candidate = candidate
            entry.until, entry.fallback_reason = 0, ""  # if it rested
        except NotDifferentiable:
            self.record_itself(entry)
            return False
        except Undecided:
            return self.record_closely(entry, arguments, number, result, watch, run, at_once)
        except (Unrecordable, Unliftable) as problem:
            self.fall_back(entry, str(problem))
            return False
        return True

    def record_closely(self, entry: CacheEntry, arguments: Arguments, number: int, *how: Any) -> bool:
        """Let signatures tell from now on which objects in the arguments are the same, and record a run. All entries
        are forgotten, so this call, which has one of these, is served by the function itself: return False.
        """
        self.tells_objects = True
        self.define_anew()
        again = self.arguments(arguments.args, arguments.named, arguments.signature.batched)
        if again is not None:
            count = arguments.count() if arguments.signature.batched else 1
            self.record(self.entry_for(again, count if entry.calls else 0), again, number, *how)
        return False

    def compile(self, entry: CacheEntry, at_once: bool = False) -> bool:
        """Compile the recording, if the counts say so; False if the function itself serves."""
        with self.alone_to_compile(entry) as alone:
            candidate = entry.candidate
            if not alone or candidate is None:  # another thread was first
                return alone and not entry.is_eager
            try:
                made = self.specialized(entry, candidate, at_once)
                if made is None:
                    return False
                self.add(entry, candidate, made)
            except NotDifferentiable:
                self.record_itself(entry)
                return False
            except (Unrecordable, Unliftable) as problem:
                self.fall_back(entry, str(problem))
            except BaseException:  # such as Ctrl-C: the next call is recorded anew
                entry.candidate = None
                raise
            entry.candidate, entry.until = None, 0  # last: other threads see the specialization first
            return not entry.is_eager

    def may_record(self, entry: CacheEntry) -> bool:
        """Return True if another specialization may be recorded by now."""
        return self.compiled.pinned or self.budget.records(entry)

    def record_itself(self, entry: CacheEntry) -> None:
        """Record the derivative itself for such calls from now on, operation by operation."""
        self.itself.add(entry.signature)
        entry.candidate = None

    def add(self, entry: CacheEntry, candidate: Candidate, made: Specialization) -> None:
        """Add a specialization, if it matches the recorded result."""
        if made.least > 1 and not entry.signature.batched:
            entry.is_eager, entry.clause, entry.latest = True, made.clause, made  # for `source`
            return
        guards_pass, fault = self.check_recorded_example(made, candidate, entry)
        if fault:
            if guards_pass:
                self.fall_back(entry, f"{fault}: {DIFFERS}")
            else:
                self.invalidate(entry, fault)
            return
        if entry.specializations and entry.layout != candidate.layout:
            self.fall_back(entry, "the structure of its result differs between examples: return the same lists for all")
            return
        if self.derived is not None and entry.signature in self.itself and len(candidate.own):
            self.derived.on_parameters = True
        entry.layout, made.began = candidate.layout, candidate.began
        entry.specializations = [*entry.specializations, made]
        entry.least = max(entry.least, made.least)

    def specialized(self, entry: CacheEntry, candidate: Candidate, at_once: bool) -> Specialization | None:
        """Make a specialization of a recording by the back end that the rule names; None while it waits.

        Raises:
            Unrecordable, Unliftable: there is none.
        """
        by_rule = not (self.compiled.pinned or at_once)
        nodes, examples = candidate.nodes, entry.examples + self.budget.expected
        backend = self.compiled.backend
        waits = by_rule and not candidate.is_derivative  # a derivative takes many times longer uncompiled
        if waits and not policy.lifts(nodes, examples):
            entry.until = policy.EXAMPLES - self.budget.expected
            return None
        candidate.lift()
        nodes = candidate.nodes  # a derivative has more than its function
        if candidate.is_derivative:
            entry.work = nodes
        if by_rule and backend.name == "native" and not self.budget.compiles(entry, candidate):
            return None
        self.budget.compiled(entry, candidate)
        made = candidate.specialization(backend.kernel())
        made.clause = f"{made.kernel.name} is named as the back end"
        if self.compiled.pinned:
            return made
        if not made.forward_backward_code:
            made.least = policy.numpy_from(candidate.steps, nodes)
            made.clause = report.numpy_serves(made, candidate.steps)
            return made
        if (limit := policy.products_from(candidate.lifted.multiplications)) > 0:
            made.limit = limit
        made.clause = report.code_serves(made, candidate.steps, examples if entry.until else 0)
        return made

    @np.errstate(all="ignore")
    def check_recorded_example(self, made: Specialization, candidate: Candidate, entry: CacheEntry) -> tuple[bool, str]:
        """Run a specialization on the example that it was recorded for. Return False if its guards do not pass, and the
        reason why it cannot serve.

        Guards may not pass if a constant that was recorded is a sum: an array program adds in another order.
        """
        with made.acquire() as space:
            space.params[...] = candidate.numbers
            batched = entry.signature.batched
            arrays = [np.asarray(x)[None] for x in candidate.example] if batched else candidate.example
            if space.run([*arrays], 1, False, 1.0) and not space.guards_pass(0, 1):
                return False, f"{made.broken(space)} in the array program, which may add in another order"
            known = candidate.result is not None  # a derivative is compared at the first calls
            return True, made.mismatch(space, arrays, 1, candidate.result, None) if known else ""

    # -- comparing with the function ----------------------------------------------------------------------------------

    def check(
        self, entry: CacheEntry, served: list[Any], args: Sequence[Any], named: dict[str, Any], how: str, found: Any
    ) -> Any:
        """Compare the result of a call with the function, and return the right one."""
        if how:
            arguments = self.arguments(args, named, True)
            known: dict[int, Any] = {}
            if not self.matches_on_some(entry, served, arguments, known):
                return self.each(arguments, how, known)
            return entry.finished(found, how)
        call = functools.partial(self.function, *args, **named)
        return self.checked(entry, served, call, lambda: self.arguments(args, named, False), found)

    def checked(
        self,
        entry: CacheEntry,
        served: list[Any],
        call: Callable[[], Any],
        read: Callable[[], Arguments],
        found: Any,
        function_run: Any = None,
    ) -> Any:
        """Compare the result of a call on one example with the function, and return the right one; for a derivative,
        with the run of its function if there was one.
        """
        ((made, _),) = served
        if self.derived is not None:
            arguments = read()
            _, derived = self.recorded_for(arguments)
            sample = self.derived.sample(made.checked, function_run, derived is not None)
            seen = self.observe(entry, functools.partial(arguments.eager, sample))
            alike = self.derived.matches(found, seen, made.kernel.agree)
            if alike and pulls_back_alike(made, *self.derived.weighted(found, seen, made.checked)):
                made.checked += 1
                entry.checks += 1
                return found
        result = self.observe(entry, call)
        if matches(found, result_of(result), made):  # nearly always
            made.checked += 1
            entry.checks += 1
            return result if entry.is_eager else found
        arguments = read()
        return found if self.matches(entry, made, arguments, arguments.arrays, result) else result

    def matches_on_some(
        self, entry: CacheEntry, served: list[Any], arguments: Arguments, known: dict[int, Any]
    ) -> bool:
        """Compare some examples of a batch with the function, and add its results to `known`: the first distinct ones
        of each specialization, later another one each time.
        """
        count = arguments.count()
        is_due = entry.is_thorough and not entry.calls & (entry.calls - 1)
        for made, rows in served:
            rows = range(count) if rows is None else rows
            numbers = arguments.distinct(rows, policy.CHECKED_CALLS - made.checked)
            if is_due and not numbers:
                numbers = [int(rows[entry.calls.bit_length() * STRIDE % len(rows)])]
            for number in numbers:
                if number not in known:
                    call = arguments.prepared(self.function, number)
                    try:
                        known[number] = self.observe(entry, call)
                    except Exception as error:  # the batch raises the error of its first example
                        self.drop(
                            entry, made, f"the function raises {type(error).__name__}, the array program does not"
                        )
                        return False
                if not self.matches(entry, made, arguments, arguments.example(number), known[number]):
                    return False
        return True

    def matches(
        self, entry: CacheEntry, made: Specialization, arguments: Arguments, example: Sequence[Any], result: Any
    ) -> bool:
        """Return True if a specialization matches the function's result; else drop it."""
        reason = difference(made, entry.layout, arguments, example, result_of(result))
        if not reason:
            made.checked += 1
            entry.checks += 1
            return not entry.is_eager
        if self.derived is not None and self.differs_in_kind(entry, made, result):
            entry.specializations, entry.latest = [], None
            self.record_itself(entry)
        else:
            self.drop(entry, made, reason)
        return False

    def differs_in_kind(self, entry: CacheEntry, made: Specialization, result: Any) -> bool:
        """Return True if a derivative that was taken of a program consists of Values, and of floats at these numbers,
        or the other way round: the parameters drop out of it on one side of a choice, such as `relu`. The derivative
        itself branches there.
        """
        if entry.signature in self.itself:
            return False
        assert self.derived is not None
        return any(isinstance(x, Value) for x in self.derived.leaves(result)) is not (made.kind is Value)

    def drop(self, entry: CacheEntry, made: Specialization, reason: str) -> None:
        """Drop a specialization whose result differs from the function's, and warn."""
        entry.specializations = [each for each in entry.specializations if each is not made]
        entry.latest = None
        self.invalidate(entry, f"{reason}: {DIFFERS}")

    def invalidate(self, entry: CacheEntry, why: str) -> None:
        """Count a dropped recording; after too many the function runs uncompiled."""
        entry.invalidations += 1
        if entry.invalidations >= policy.INVALIDATIONS:
            self.fall_back(entry, why)
        else:
            warn(f"a recording of {self.name} is dropped: {why}")

    @contextmanager
    def alone_to_compile(self, entry: CacheEntry) -> Iterator[bool]:
        """Wait until no other thread compiles for an entry, and let this one compile.

        User code that runs meanwhile, such as the rule of an operation, may call a compiled function. It gets False:
        two threads that waited in such calls would wait for each other.
        """
        if getattr(_thread, "compiles", False):
            yield False
            return
        with entry.lock:
            _thread.compiles = True
            try:
                yield True
            finally:
                _thread.compiles = False

    @contextmanager
    def alone_to_record(self) -> Iterator[bool]:
        """Let this thread record if no other one does; False otherwise, without waiting."""
        try:
            self.recording.pop()
        except IndexError:
            yield False
            return
        try:
            yield True
        finally:
            if not self.recording:  # unless a forked child has put it back
                self.recording.append(None)

    def rest(self, entry: CacheEntry, why: str, warns: bool = True) -> None:
        """Serve such calls by the function itself until the next one whose number is a power of two, which is watched
        again: objects change in it each time, or another thread changes them, or it raises an exception, which a
        warning, where these are errors, would replace.
        """
        entry.fallback_reason, entry.clause = f"{why}; calls whose number is a power of two are observed again", ""
        if not entry.signature.batched:
            entry.until = 1 << entry.examples.bit_length()
        if warns:
            warn_once(self.said, f"{self.name} runs uncompiled: {entry.fallback_reason}")

    def rests(self, entry: CacheEntry) -> bool:
        """Return True if this call is not watched, as too many have changed objects, or raised an exception."""
        return entry.changes >= policy.CHANGES and bool(entry.calls & (entry.calls - 1))

    def fall_back(self, entry: CacheEntry, why: str) -> None:
        """Serve such calls by the function itself from now on, and warn once."""
        entry.is_eager, entry.fallback_reason = True, why
        warn_once(self.said, f"{self.name} runs uncompiled: {why}")
        entries = list(self.entries.values())
        refused = [each for each in entries if each.fallback_reason and not each.signature.reason]
        if len(refused) >= policy.SPECIALIZATIONS and all(each.is_eager for each in entries):
            self.compiled.is_eager = True  # each call would have yet another signature

    # -- ahead of time, and for loops that run specializations themselves ---------------------------------------------

    def prepare(self, args: Sequence[Any], named: dict[str, Any]) -> None:
        """Record, compile and compare for copies of such arguments; no call is counted.

        A run that changes an argument gets other copies than the next one. After one that changes anything else, which
        cannot be undone, the function does not run again.
        """
        (given, others), copies = copied((tuple(args), named))
        arguments = self.arguments(given, others, False)
        if arguments is None:
            self.function(*given, **others)
            return

        function_run: Any = None  # as in `single`
        results: list[Any] = []  # of the function itself, once it has run here

        def eager() -> Any:
            if results:
                return results[0]
            return arguments.eager(self.function if function_run is None else function_run.derivative)

        def read() -> Any:
            return arguments

        entry = self.entry_for(arguments, 0)
        for _ in range(2 + policy.SPECIALIZATIONS):
            if entry.is_eager or entry.changes >= policy.CHANGES:
                return
            ran = self.run(entry, arguments, 1, "")
            if ran.ran is not None:
                if ran.found is not None:
                    self.checked(entry, ran.served(), eager, read, ran.found, function_run)
                    ran.ran.checked = policy.CHECKED_CALLS
                return
            if entry.candidate is not None:
                self.compile(entry, at_once=True)
                continue
            with self.alone_to_record() as alone:
                if not alone:
                    return
                result, function_run, watch = self.first_run(entry, arguments, 0)
                results = [result] if function_run is None else []
                if watch is None:
                    return
                self.record(entry, arguments, 0, result, watch, function_run, at_once=True)
            if self.entries.get(entry.signature) is not entry:  # see `record_closely`
                arguments = self.arguments(given, others, False)
                entry = self.entry_for(arguments, 0)
            if watch.change:
                if not (watch.is_cache_filled() or id(watch.changed) in copies):
                    return
                (given, others), copies = copied((tuple(args), named))
                arguments = self.arguments(given, others, False)

    def calls_until_check(
        self, entry: CacheEntry, made: Sequence[Specialization], ready: Callable[[], Sequence[Any]]
    ) -> int:
        """Count a call that a loop serves by running specializations itself, and return for how many calls it may do so
        until the next comparison, for which `ready` returns the arguments: those of a batch, or none. Return 0 if the
        function itself must serve.
        """
        entry.calls += 1
        if any(each not in entry.specializations for each in made):
            return 0
        unproven = entry.checks < policy.CHECKED_CALLS * len(made)
        if unproven or not entry.calls & (entry.calls - 1):
            args = ready()
            number = entry.calls.bit_length() * STRIDE % len(args[0]) if args else 0
            if not self.check_example(entry, self.arguments(args, {}, bool(args)), number):
                return 0
        return 1 if unproven else (1 << entry.calls.bit_length()) - entry.calls

    def check_example(self, entry: CacheEntry, arguments: Arguments, number: int) -> bool:
        """Compare on one example; False if no specialization serves it, or that one is dropped."""
        example = arguments.example(number)
        batch = [np.asarray(x)[None] for x in example]
        holding = None
        for made in entry.specializations:
            with made.acquire() as space:
                if holding is None and not space.stale_capture():
                    space.load()
                    holding = made if space.run(batch, 1, False, 1.0) and space.guards_pass(0, 1) else None
        if holding is None:
            return False
        result = self.observe(entry, arguments.prepared(self.function, number))
        return self.matches(entry, holding, arguments, example, result)

    # -- reports ------------------------------------------------------------------------------------------------------

    @property
    def last(self) -> CacheEntry | None:
        """The cache entry of the last call."""
        last: CacheEntry | None = self.compiled.last
        return last

    def last_waits(self) -> bool:
        """Return True if what the last call needs waits to be recorded or compiled."""
        last = self.last
        return last is not None and (last.candidate is not None or last.until > 0) and not last.specializations

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
        made = self.latest()
        pattern = None if made.structure is None else made.structure.pattern
        if language == "c" and pattern is not None and not len(pattern.indices):
            raise ArgumentError(
                f"source(): the derivative of {self.name} has no entries, as all of it is 0: leave sparse=True out"
            )
        return source_of(made, name.replace("jacobian_of_grad_of", "hessian_of"), language, gradient)

    def report(self) -> str:
        """Describe the function, line by line."""
        name = getattr(self.function, "__name__", "function")
        entries = list(self.entries.values())
        return report.described(name, entries, self.budget.expected, self.aside, self.new_objects)


def _defined(f: Any) -> Any:
    """Return the code and the defaults of a function, or of what a partial, a method or an object calls."""
    if isinstance(f, functools.partial):
        return f.args, tuple(f.keywords.items()), _defined(f.func)
    f = f.__func__ if isinstance(f, MethodType) else f
    f = f if isinstance(f, FunctionType) else vars(type(f)).get("__call__")
    if not isinstance(f, FunctionType):
        return None
    return f.__code__, f.__defaults__, tuple((f.__kwdefaults__ or {}).items())


_runtimes: WeakSet[Runtime] = WeakSet()
_thread = threading.local()


def _in_child() -> None:
    """In a forked child, forget what other threads were recording or compiling when it was forked."""
    for runtime in _runtimes:
        if not runtime.recording:
            runtime.recording.append(None)
        for entry in runtime.entries.values():
            if is_orphaned(entry.lock):
                entry.lock, entry.candidate = threading.RLock(), None


in_child(_in_child)
