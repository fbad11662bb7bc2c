"""Records a function, and compiles what was recorded to specializations. `budget` and `policy` decide when.

The function itself runs, watched by a `PurityCheck`, and is recorded after that: nothing that it does twice is done
twice. A specialization is added if it gives the recorded result.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.ma  # else `np.unique` imports it late, and a child forked meanwhile waits for the import lock

from wengert import functions, modes
from wengert._forks import in_child, is_orphaned
from wengert._signatures import unwrapped
from wengert.compiler import check, policy, report
from wengert.compiler.arguments import Arguments, Reader, Signature
from wengert.compiler.backends import source_of
from wengert.compiler.cache import Cache
from wengert.compiler.call import CacheEntry, same
from wengert.compiler.fallback import DIFFERS, Fallback
from wengert.compiler.lift import Unliftable
from wengert.compiler.log import log
from wengert.compiler.reach import DRAWS, DrawsCheck, PurityCheck, is_alone, numpy_errors, random_state
from wengert.compiler.record import (
    MARK,
    Candidate,
    Derived,
    NotDifferentiable,
    Specialization,
    derived_from,
    record,
    too_many,
)
from wengert.compiler.results import no_number
from wengert.compiler.traced import Undecided, Unrecordable, operations_since
from wengert.derivatives import CaughtError, codes_of, derivations_of, floats_only, result_of, signature_of
from wengert.engine import Value

__all__ = ["Specializer"]

ON_FLOATS = (
    "it computes with a derivative of a function that takes plain numbers only: write that function with operators and "
    "the functions of wengert"
)


class Specializer:
    """Makes the specializations of one compiled function.

    Args:
        compiled: the compiled function.
        function: the function.
        cache: its entries.
        fallback: gets the calls that cannot be recorded.

    Attributes:
        definition: the code and the defaults that are recorded.
        read: returns the `Arguments` of a call.
        recorded_directly: signatures for which a derivative itself is recorded, operation by operation.
        began: when the last run that was watched began: see `check`.
        tells_objects: the function may ask whether objects are the same: see `Reader`.
        uses_numpy: NumPy computes in it, so that nothing is recorded while `np.seterr` lets it raise errors.
    """

    def __init__(self, compiled: Any, function: Any, cache: Cache, fallback: Fallback) -> None:
        self.compiled: Any = compiled
        self.function: Any = function
        self.cache: Cache = cache
        self.fallback: Fallback = fallback
        self.recorded_directly: WeakSet[Any] = WeakSet()
        self.began: int = 0
        self.tells_objects: bool = False
        self.uses_numpy: bool = False
        self._may_record: list[Any] = [None]  # the thread that pops it records
        self._others_draw: bool = False  # random numbers were drawn meanwhile, perhaps by another thread
        _specializers.add(self)
        self._define()

    def _define(self) -> None:
        self.definition: Any = self.defined()
        _, derivations = derivations_of(self.function)
        numbers = [n for each in derivations for n in np.ravel(each.argnums).tolist()]
        counts = any(type(n) is int and n < 0 for n in numbers)
        own = unwrapped(self.function)
        self.reader: Reader = Reader(self.compiled.signature, self.compiled.static, self.tells_objects, counts, own)
        self.reader.entries = self.cache.entries
        self.read: Callable[..., Any] = self.reader.read
        self.cache.elsewhere = self.reader.elsewhere if self.tells_objects else None
        self._derived: dict[Any, tuple[Any, Derived | None]] = {}  # see `derived`; it keeps what it knows by its id
        self.keeps_tuples: bool = bool(derivations) and derivations[-1].kind == "value_and_grad"  # those of a batch

    def defined(self) -> Any:
        """Return the code and the defaults of the function, which the user may replace."""
        return _defined(self.function)

    def follow_definition(self) -> None:
        """Forget all recordings if the function was redefined."""
        if not same(self.defined(), self.definition):
            self.tells_objects = False
            self.fallback.forget()
            self._define_anew()

    def _define_anew(self) -> None:
        self.compiled.signature = signature_of(self.function)
        self.cache.clear()
        self._define()

    def derived(self, signature: Signature) -> Derived | None:
        """Return how to take the derivative of the program for such calls, if the function is a derivative."""
        of_function = signature.of_function
        key = id(of_function), signature.positional
        if key not in self._derived:
            self._derived[key] = of_function, derived_from(self.function, of_function, signature.positional)
        return self._derived[key][1]

    @property
    def on_parameters(self) -> bool:
        """Whether it is a derivative that consists of Values, as it depends on parameters."""
        return any(derived is not None and derived.on_parameters for _, derived in list(self._derived.values()))

    def recorded_for(self, arguments: Arguments) -> tuple[Any, Derived | None]:
        """Return the function to record for calls with such arguments, and the derivative to take of its program."""
        signature = arguments.signature
        derived = self.derived(signature)
        if derived is None or signature in self.recorded_directly or not derived.takes(signature):
            return self.function, None
        return derived.plain if derived.on_floats else derived.function, derived

    # -- running the function itself ----------------------------------------------------------------------------------

    def first_run(self, entry: CacheEntry, arguments: Arguments, row: int) -> tuple[Any, Any, PurityCheck | None]:
        """Run the function to record on an example, given its row in a batch.

        Nothing is watched, nor recorded, while another profiler runs.

        Returns:
            The result; for a derivative the run of its function, else None; and the watch or None.
        """
        recorded, derived = self.recorded_for(arguments)
        call = arguments.prepared(recorded, row)
        self.began = Value(0.0)._made
        of = recorded if derived is None else recorded.function  # what calls it changes nothing
        watch = PurityCheck(of, arguments.reached_by(call)) if sys.getprofile() is None else None
        if watch is None:
            self.fallback.count(report.PROFILER)
        try:
            result = self.observe(entry, call, watch)
            function_run = None if derived is None else derived.run_of(result, recorded.on_floats)
        except CaughtError:
            return self.observe(entry, arguments.prepared(self.function, row)), None, None
        except Exception as error:
            if hasattr(error, MARK):
                return self._run_on_floats(entry, arguments, row, recorded, getattr(error, MARK))
            if derived is not None and recorded.on_floats and isinstance(error, (AttributeError, TypeError)):
                floats_only.discard(codes_of(recorded.function))  # this time it may take Values only
                return self.first_run(entry, arguments, row)
            if watch is not None and not entry.specializations:  # else these serve the other calls
                entry.changes += 1
                if entry.changes >= policy.CHANGES:
                    self.fallback.rest(
                        entry, f"it raised {type(error).__name__}: check the arguments before the call", warns=False
                    )
            raise
        if watch is not None:
            watch.operations = operations_since(self.began)
        return result, function_run, watch

    def _run_on_floats(
        self, entry: CacheEntry, arguments: Arguments, row: int, recorded: Any, code: Any
    ) -> tuple[Any, Any, PurityCheck | None]:
        """Return what `first_run` does, where a function that is differentiated takes plain numbers only. A watched run
        does not record it: the function itself does, and shows whether that is possible.
        """
        result = self.observe(entry, arguments.prepared(self.function, row))
        if self.recorded_for(arguments)[0] is not recorded or code in floats_only:
            return self.first_run(entry, arguments, row)
        self.fallback.fall_back(entry, ON_FLOATS)
        return result, None, None

    def observe(self, entry: CacheEntry, call: Callable[[], Any], watch: PurityCheck | None = None) -> Any:
        """Call the function itself, watched if the call is to be recorded."""
        try:
            if watch is not None:
                with modes.watched():
                    return watch.run(call)
            draws = DrawsCheck() if self._others_draw and sys.getprofile() is None else None
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
                self.fallback.fall_back(entry, DRAWS)
            elif draws is None:  # the next calls tell whose doing that is
                self._others_draw = True
                for specialization in entry.specializations:
                    specialization.checked = 0
        return result

    # -- recording and compiling --------------------------------------------------------------------------------------

    def may_record(self, entry: CacheEntry) -> bool:
        """Return True if another specialization may be recorded by now."""
        if self.fallback.rests(entry) or self._waits_for_numpy(False):
            return False
        return bool(self.compiled.pinned or self.cache.budget.records(entry))

    def _waits_for_numpy(self, uses_numpy: bool) -> bool:
        """Return True while NumPy raises errors, if the function uses NumPy, and count a call for that reason: infinity
        and nan, which the array program gives instead, may not reach its result.
        """
        self.uses_numpy |= uses_numpy
        if not (self.uses_numpy and numpy_errors()):
            return False
        self.fallback.count(report.NUMPY_ERRORS)
        return True

    @contextmanager
    def turn_to_record(self) -> Iterator[bool]:
        """Let this thread record if no other one does; False otherwise, without waiting."""
        try:
            self._may_record.pop()
        except IndexError:
            yield False
            return
        try:
            yield True
        finally:
            if not self._may_record:  # unless a forked child has put it back
                self._may_record.append(None)

    def record(
        self,
        entry: CacheEntry,
        arguments: Arguments,
        row: int,
        result: Any,
        watch: PurityCheck,
        run: Any = None,
        at_once: bool = False,
    ) -> bool:
        """Record a run of the function on an example, given its row in a batch, and for a derivative the run of its
        function. Return False if that is impossible or, unless it is wanted `at_once`, has to wait.
        """
        result = result_of(result)
        if len(entry.specializations) == policy.SPECIALIZATIONS:
            watch.add_effect(too_many(entry.specializations))
        batched = arguments.signature.batched
        is_one = batched or not isinstance(result, (list, tuple, dict, np.ndarray))  # others are flattened
        if not watch.effect and is_one and (kind := no_number(result)):
            lists = "lists" if batched else "lists, tuples, dicts and arrays"
            watch.add_effect(f"it returns {kind}: a compiled function returns a Value or a number, or {lists} of them")
        if self.recorded_for(arguments)[1] is not None:
            watch.leave_out_caches()
        entry.changes += bool(watch.change)
        entry.clause = f"{watch.change}; the next call is observed again" if watch.change else ""
        if watch.effect:
            self.fallback.fall_back(entry, watch.effect)
        elif watch.change and entry.changes >= policy.CHANGES:
            self.fallback.rest(entry, f"{watch.change} at each call: {watch.instead}")
        if self._waits_for_numpy(watch.before.uses_numpy):
            return False
        if entry.is_eager or watch.change:  # after a change the next call is watched: it may have filled a cache
            return False
        tells = watch.asks.tells_objects or (watch.asks.tells_own and arguments.has_equals())
        if tells and not self.tells_objects:
            return self._record_closely(entry, arguments, row, result, watch, run, at_once)
        try:
            recorded, derived = self.recorded_for(arguments)
            nests = derived is None and arguments.signature not in self.recorded_directly
            example = arguments.example(row)
            is_free = at_once or self.compiled.pinned or derived is not None
            trace = functools.partial(self._traced, recorded, derived, arguments, example, result, watch, nests)
            candidate = self.cache.budget.recording(entry, trace, watch.operations, is_free)
            if candidate is None or self._waits_for_numpy(candidate.uses_numpy):
                return False
            candidate.began, candidate.values = self.began, arguments.values()
            if modes.grad_disabled():
                candidate.forget_graph()
            if derived is not None:
                candidate.differentiation = derived.of(arguments, row, run)
            if self.tells_objects:
                self.reader.add(candidate.elsewhere)
                again = self.read(arguments.args, arguments.named, batched)
                if again is not None and again.signature.reason:
                    raise Unrecordable(again.signature.reason)
                if again is not None and again.signature is not entry.signature:  # it tells more by now
                    entry = self.cache.entry_for(again, 0)
            entry.candidate = candidate
            entry.compile_after, entry.fallback_reason = 0, ""  # if it rested
            log.info("%s is recorded for %s: %d nodes", self.fallback.name, entry.signature, candidate.nodes)
        except NotDifferentiable:
            self.record_directly(entry)
            return False
        except Undecided:
            return self._record_closely(entry, arguments, row, result, watch, run, at_once)
        except (Unrecordable, Unliftable) as problem:
            self.fallback.fall_back(entry, str(problem))
            return False
        return True

    def _traced(
        self,
        recorded: Any,
        derived: Derived | None,
        arguments: Arguments,
        example: Any,
        result: Any,
        watch: PurityCheck,
        nests: bool,
        room: int | None,
    ) -> Candidate:
        """Record a run. A function that is differentiated has run with Values: it is recorded as `compile` records the
        function itself, with floats, unless it tells these from Values or takes Values only.
        """
        further = arguments, example, result, watch, self.keeps_tuples, nests, room
        if derived is not None and recorded is derived.function and derived.is_recorded_on_floats:
            try:
                inputs = [x for name in derived.plain.names for x in arguments.signature.arrays.get(name, ())]
                return record(derived.plain, *further, differentiates=True, for_values=inputs)
            except Unrecordable as reason:
                derived.is_recorded_on_floats = False
                log.info("%s is recorded with Values: %s", self.fallback.name, reason)
        return record(recorded, *further, differentiates=derived is not None)

    def _record_closely(self, entry: CacheEntry, arguments: Arguments, row: int, *how: Any) -> bool:
        """Let signatures tell from now on which objects in the arguments are the same, and record a run. All entries
        are forgotten, so this call, which has one of these, is served by the function itself: return False.
        """
        self.tells_objects = True
        self._define_anew()
        again = self.read(arguments.args, arguments.named, arguments.signature.batched)
        if again is not None:
            count = arguments.count() if arguments.signature.batched else 1
            self.record(self.cache.entry_for(again, count if entry.calls else 0), again, row, *how)
        return False

    def record_with_values(self) -> None:
        """Forget what was recorded on floats of a function that takes Values, whose derivative may be another one."""
        every = [derived for _, derived in list(self._derived.values()) if derived is not None]
        every = [derived for derived in every if derived.is_recorded_on_floats and not derived.on_floats]
        for derived in every:
            derived.is_recorded_on_floats = False
        for entry in list(self.cache.entries.values()) if every else ():
            entry.specializations, entry.latest, entry.candidate = [], None, None

    def record_directly(self, entry: CacheEntry) -> None:
        """Record the derivative itself for such calls from now on, operation by operation."""
        self.recorded_directly.add(entry.signature)
        entry.candidate = None
        log.info("%s is recorded operation by operation for %s", self.fallback.name, entry.signature)

    @contextmanager
    def _turn_to_compile(self, entry: CacheEntry) -> Iterator[bool]:
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

    def compile(self, entry: CacheEntry, at_once: bool = False) -> bool:
        """Compile the recording, if the counts say so; False if the function itself serves."""
        with self._turn_to_compile(entry) as turn:
            candidate = entry.candidate
            if not turn or candidate is None:  # another thread was first
                return turn and not entry.is_eager
            try:
                new = self.specialization(entry, candidate, at_once)
                if new is None:
                    candidate.forget_graph()
                    return False
                self._add(entry, candidate, new)
            except NotDifferentiable:
                self.record_directly(entry)
                return False
            except (Unrecordable, Unliftable) as problem:
                self.fallback.fall_back(entry, str(problem))
            except BaseException:  # such as Ctrl-C: the next call is recorded anew
                entry.candidate = None
                raise
            entry.candidate, entry.compile_after = None, 0  # last: other threads see the specialization first
            return not entry.is_eager

    def specialization(self, entry: CacheEntry, candidate: Candidate, at_once: bool) -> Specialization | None:
        """Make a specialization of a recording by the back end that the rule names; None while it waits.

        Raises:
            Unrecordable, Unliftable: there is none.
        """
        budget = self.cache.budget
        by_rule = not (self.compiled.pinned or at_once)
        nodes, examples = candidate.nodes, entry.examples + budget.expected
        backend = self.compiled.backend
        waits = by_rule and not candidate.is_derivative  # a derivative takes many times longer uncompiled
        if waits and not policy.lifts(nodes, examples):
            entry.compile_after = policy.EXAMPLES - budget.expected
            return None
        candidate.lift()
        nodes = candidate.nodes  # a derivative has more than its function
        if candidate.is_derivative:  # one of plain numbers is recorded each time that it runs uncompiled
            derived = self.derived(entry.signature)
            on_floats = derived is not None and derived.on_floats
            entry.work = policy.records(nodes) if on_floats else nodes
        if by_rule and backend.name == "native" and not budget.compiles(entry, candidate):
            return None
        budget.compiled(entry, candidate)
        specialization = candidate.specialization(backend.kernel())
        specialization.clause = f"{specialization.kernel.name} is named as the back end"
        if self.compiled.pinned:
            return specialization
        if not specialization.forward_backward_code:
            specialization.min_examples = policy.numpy_from(candidate.steps, nodes)
            specialization.clause = report.numpy_serves(specialization, candidate.steps)
            return specialization
        if (limit := policy.products_from(candidate.lifted.multiplications)) > 0:
            specialization.limit = limit
        waited = examples if entry.compile_after else 0
        specialization.clause = report.code_serves(specialization, candidate.steps, waited)
        return specialization

    def _add(self, entry: CacheEntry, candidate: Candidate, specialization: Specialization) -> None:
        """Add a specialization, if it matches the recorded result."""
        if specialization.min_examples > 1 and not entry.signature.batched:
            entry.is_eager, entry.clause, entry.latest = True, specialization.clause, specialization  # for `source`
            return
        if log.isEnabledFor(logging.DEBUG):
            text = source_of(specialization, self.fallback.name, "numpy", True)
            log.debug("%s: the program for %s:\n%s", self.fallback.name, entry.signature, text)
        specialization.began = candidate.began
        guards_pass, fault = self._fault(specialization, candidate, entry)
        if fault:
            if guards_pass:
                self.fallback.fall_back(entry, fault)
            else:
                self.fallback.invalidate(entry, fault)
            return
        if entry.specializations and entry.layout != candidate.layout:
            self.fallback.fall_back(
                entry, "the structure of its result differs between examples: return the same lists for all"
            )
            return
        derived = self.derived(entry.signature)
        if derived is not None and entry.signature in self.recorded_directly and len(candidate.own):
            derived.on_parameters = True
        entry.layout = candidate.layout
        entry.specializations = [*entry.specializations, specialization]
        entry.min_examples = max(entry.min_examples, specialization.min_examples)
        log.info("%s is compiled for %s: %s", self.fallback.name, entry.signature, specialization.clause)

    @np.errstate(all="ignore")
    def _fault(self, specialization: Specialization, candidate: Candidate, entry: CacheEntry) -> tuple[bool, str]:
        """Run a specialization on the example that it was recorded for. Return False if its guards do not pass, and the
        reason why it cannot serve.

        Guards may not pass if a constant that was recorded is a sum: an array program adds in another order.
        """
        with specialization.acquire() as space:
            space.params[...] = candidate.numbers
            batched, arrays = entry.signature.batched, candidate.example
            rows = [np.asarray(x)[None] for x in arrays] if batched else [*arrays]
            ran = space.run(rows, 1, candidate.has_derivatives, 1.0)
            if ran and not space.guards_pass(0, 1):
                return False, f"{specialization.broken(space)} in the array program, which may add in another order"
            differs = ""
            if ran and candidate.result is not None:  # a derivative is compared at the first calls
                structure, leaves = candidate.structure, candidate.leaves
                cotangents = [1.0] * len(leaves) if structure is None else structure.cotangents(0)
                given, wanted = candidate.values, candidate.result
                differs = check.of_run(specialization, space, arrays, given, batched, wanted, leaves, cotangents)
            if space.error:
                return True, f"the array program raises {space.error}, and the function does not"
            return True, f"{differs}: {DIFFERS}" if differs else ""


def _defined(f: Any) -> Any:
    """Return the code and the defaults of a function, or of what a partial, a method or an object calls."""
    if isinstance(f, functools.partial):
        return f.args, tuple(f.keywords.items()), _defined(f.func)
    f = f.__func__ if isinstance(f, MethodType) else f
    f = f if isinstance(f, FunctionType) else vars(type(f)).get("__call__")
    if not isinstance(f, FunctionType):
        return None
    return f.__code__, f.__defaults__, tuple((f.__kwdefaults__ or {}).items())


_specializers: WeakSet[Specializer] = WeakSet()
_thread = threading.local()


def _in_child() -> None:
    """In a forked child, forget what other threads were recording or compiling when it was forked."""
    for specializer in _specializers:
        if not specializer._may_record:
            specializer._may_record.append(None)
        for entry in specializer.cache.entries.values():
            if is_orphaned(entry.lock):
                entry.lock, entry.candidate = threading.RLock(), None


in_child(_in_child)
