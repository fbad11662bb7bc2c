"""What runs when a compiled function is called: a recording that holds for these arguments, or the function itself.

The first call is the function's own, watched (`PlainRun`); it is recorded afterwards. Until a recording has agreed with
the function on four examples, and then at every call whose number is a power of two, both run: they are compared, and
timed, and from then on the faster one serves. A recording that does not agree is dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any
from weakref import WeakSet

import numpy as np

from wengert import modes
from wengert._forks import in_child
from wengert.compiler.backends import source_of
from wengert.compiler.callpath import alike
from wengert.compiler.entry import PROBATION, SPECIALIZATIONS, STALE, Entry, Size, combined, together
from wengert.compiler.lifting import Unliftable
from wengert.compiler.tracing import (
    DRAWS,
    Arguments,
    Form,
    PlainRun,
    Reader,
    Recording,
    Unrecordable,
    by_place,
    by_rows,
    examples,
    is_watched,
    look_of,
    main_of,
    numbers_in,
    random_state,
    record,
    recorder_of_thread,
    slopes_of,
    slots_of,
    taker,
)
from wengert.engine import Value
from wengert.errors import ArgumentError, warn_once

__all__ = ["Entry", "Runtime"]

TRIES = 3  # how often a call is timed
WORTH = 1e-3  # seconds; what takes longer is timed as it is
STRIDE = 7919  # between the examples that are compared: a prime, so that it visits all of nearly every batch


class Runtime:
    """The memory of one compiled function."""

    def __init__(self, compiled: Any, function: Any) -> None:
        self.compiled = compiled
        self.function: Any = function
        self.name: str = getattr(function, "__name__", "the function")
        self.entries: dict[Form, Entry] = {}
        self.said: set[str] = set()
        self.short: dict[Any, Any] = {}  # how batches look that go to the function itself, and who takes their rows
        _runtimes.add(self)
        self.arguments: Callable[..., Arguments] = Reader(compiled.signature, compiled.static).read

    # -- calls --------------------------------------------------------------------------------------------------------

    def differentiates(self, how: str) -> bool:
        """Whether derivatives are computed in a call."""
        return how != "map" and not modes.grad_disabled()

    def mode(self) -> bool | None:
        """Whether this thread asks for no derivatives; None where no recording may serve."""
        if recorder_of_thread() is not None or is_watched() or modes.eager_only():
            return None
        return modes.grad_disabled()

    def call(self, args: Sequence[Any], named: dict[str, Any], how: str = "") -> Any:
        """One example; or of a batch the mean, the sum, or each of them (`how`: mean, sum, map).

        Here, and nowhere else, the engine takes over: from a function that is not compiled, and in a call that its
        program cannot do.
        """
        recorder = recorder_of_thread()
        if recorder is not None:  # of another compiled function
            return self.inline(recorder.surroundings.stand_in(self.function, self.name), args, named, how)
        if is_watched():
            return self.inline(self.function, args, named, how)
        if not how:
            if modes.eager_only():
                return self.function(*args, **named)
            return self.one(perf_counter(), self.arguments(args, named, False), args, named)
        if modes.eager_only():
            return self.eagerly(self.arguments(args, named, True), how)
        if self.short:
            look, count = look_of(args, named)
            take = self.short.get((self.differentiates(how), look))
            self.compiled.passed += take is not None
            if take is not None and self.compiled.passed & (self.compiled.passed - 1):
                return together(by_rows(take, args, named, count), how)
        began = perf_counter()
        arguments = self.arguments(args, named, True)
        return self.batch(began, arguments, arguments.count(), how, args, named)

    def inline(self, function: Any, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """The same as part of another function, which is being recorded."""
        if not how:
            return function(*args, **named)
        signature = self.compiled.signature
        names, rows = examples(signature, self.compiled.static, args, named)
        function = by_place(function, signature, names)
        results = [function(*row) for row in rows]
        return results if how == "map" else combined(results, how)

    def one(self, began: float, arguments: Arguments, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """A call on one example."""
        entry, size = self.entry_for(arguments), Size(1, self.differentiates(""))
        is_wide = arguments.is_wide()

        def plainly() -> Any:
            return self.function(*args, **named) if is_wide else arguments.plainly(self.function)

        due, tries = entry.is_due(), entry.tries_engine(size)
        is_list = bool(entry.specializations) and entry.specializations[0].shape != ()  # for `map`, and to be shown
        if entry.refusal or is_list or (not due and entry.prefers_engine(size)):
            look = alike(args, named)
            if is_wide and look not in self.compiled.direct:
                self.pass_by(look)
            if not (entry.refusal or is_list):
                entry.consider(size, self.compiled.passed)
            return plainly()
        if tries and not due:
            began = perf_counter()
            result = plainly()
            entry.note_engine(size, perf_counter() - began)
            return result
        numbers, values = arguments.numbers(arguments.arrays), arguments.values()
        with self.alone() as free:
            value = entry.one(numbers, values, modes.grad_disabled()) if free else None
            made = entry.ran if free else None
            entry.not_finite += free and not entry.was_finite
        seconds = perf_counter() - began
        if value is not None and not due:
            entry.settle(size, True)
            return value
        if not free or (made is not None and not due):
            began = perf_counter()
            result = plainly()
            if free:
                entry.note_left(size, seconds, perf_counter() - began)
            return result

        result, watch = self.watched(entry, plainly, arguments, made is None)
        if watch is not None:
            self.another(entry, arguments, arguments.arrays, result, watch)
        elif made is not None and self.agrees(entry, made, arguments, arguments.arrays, result):
            if value is not None:
                self.choose(entry, arguments, size, "", seconds)
                entry.note(size, self.timed(args, named, "", seconds))
            entry.consider(size, self.compiled.passed)
            entry.settle(size, not (entry.prefers_engine(size) or entry.tries_engine(size)))
        return result

    def pass_by(self, look: Any) -> None:
        """Have calls that look so go to the function itself unseen; all, if none is compiled and each looks new."""
        direct = self.compiled.direct
        if len(direct) < SPECIALIZATIONS:
            direct.append(look)
        elif len(self.entries) == SPECIALIZATIONS and all(entry.refusal for entry in self.entries.values()):
            direct[0] = None, None

    def timed(self, args: Sequence[Any], named: dict[str, Any], how: str, seconds: float) -> float:
        """How long such a call takes where its path is known, else as long as it took."""
        for _ in range(TRIES if seconds < WORTH else 0):
            began = perf_counter()
            if self.compiled.serve(tuple(args), named, how, modes.grad_disabled()) is None:
                break
            seconds = min(seconds, perf_counter() - began)
        return seconds

    def choose(self, entry: Entry, arguments: Arguments, size: Size, how: str, seconds: float) -> None:
        """Time such a call by machine code and by NumPy, where there are both and nobody has said what is to run."""
        if self.compiled.pinned or not any(made.both_code for made in entry.specializations):
            return
        disabled, values = modes.grad_disabled(), arguments.values()
        arrays = arguments.arrays if how else arguments.numbers(arguments.arrays)

        def run() -> Any:
            return entry.batch(arrays, size.examples, how, disabled) if how else entry.one(arrays, values, disabled)

        with self.alone() as free:
            if free:
                entry.time_ways(size, run, TRIES if seconds < WORTH else 1)

    # -- batches ------------------------------------------------------------------------------------------------------

    def batch(
        self, began: float, arguments: Arguments, count: int, how: str, args: Sequence[Any], named: dict[str, Any]
    ) -> Any:
        """A call on a batch."""
        entry, size = self.entry_for(arguments), Size(count, self.differentiates(how))
        known: dict[int, Any] = {}  # what the function itself gave for some of the examples
        due = entry.is_due()
        if due and not entry.refusal:
            self.compare_some(entry, arguments, count, known)
        by_engine = not due and (entry.prefers_engine(size) or entry.tries_engine(size))
        if not entry.refusal and not by_engine:
            found = self.by_programs(entry, arguments, count, how, known)
            if found is not None:
                if not due:  # then it would have taken longer
                    self.choose(entry, arguments, size, how, perf_counter() - began)
                    entry.note(size, self.timed(args, named, how, perf_counter() - began))
                engine = entry.prefers_engine(size) or entry.tries_engine(size)
                entry.consider(size, self.compiled.passed)
                entry.settle(size, not (due or engine))  # after a check it is timed again
                return found
        take = None
        if not self.compiled.static and arguments.is_wide():  # then rows are as they were passed
            take = taker(self.function, self.compiled.signature, args, named)
            if (entry.refusal or not due) and self.is_short(size):
                self.short[size.slopes, look_of(args, named)[0]] = take
        ready = perf_counter()
        if by_engine and take is not None:
            made = together(by_rows(take, args, named, count), how)
        else:
            made = self.eagerly(arguments, how, known)
        if by_engine:
            entry.note_engine(size, perf_counter() - ready)
            entry.consider(size, self.compiled.passed)
        elif not (due or entry.refusal or entry.was_finite):
            entry.note_left(size, ready - began, perf_counter() - ready)
        return made

    def is_short(self, size: Size) -> bool:
        """Whether all batches of a size go to the function itself by the short way."""
        batches = [entry for form, entry in self.entries.items() if form.batched]
        preferred = all(each.refusal or each.prefers_engine(size) for each in batches)
        return preferred and len(self.short) < SPECIALIZATIONS

    def by_programs(self, entry: Entry, arguments: Arguments, count: int, how: str, known: dict[int, Any]) -> Any:
        """The result by the specializations that hold for the examples, some of them recorded now; None for the engine
        to take over.
        """
        while True:
            with self.alone() as free:
                if not free:
                    return None
                found = entry.batch(arguments.arrays, count, how, modes.grad_disabled())
                waiting = entry.waiting
                entry.not_finite += not entry.was_finite
            if found is not None or not len(waiting):
                return found
            if not self.example(entry, arguments, int(waiting[0]), known):
                return None

    def eagerly(self, arguments: Arguments, how: str, known: dict[int, Any] | None = None) -> Any:
        """The same by the engine, example by example; of some it is known already."""
        return together(arguments.all_plainly(self.function, known or {}), how)

    # -- the function itself ------------------------------------------------------------------------------------------

    def watched(
        self, entry: Entry, call: Callable[[], Any], arguments: Arguments, new: bool
    ) -> tuple[Any, PlainRun | None]:
        """What the function itself gives; and what it did besides, if a recording is to be made of it.

        While a profiler is at work, which cannot be watched with, no recording is made.
        """
        watch = None
        if new and sys.getprofile() is None:
            watch = PlainRun(
                self.function, [*arguments.originals.items(), *zip(arguments.form.names, arguments.arrays, strict=True)]
            )
        try:
            if watch is not None:
                with modes.unusual():
                    return watch.run(call), watch
            before, began = random_state(), perf_counter()
            result = call()
            entry.plain = min(entry.plain, perf_counter() - began)
        except AttributeError as error:
            if isinstance(error.obj, (int, float)) and hasattr(Value, error.name or ""):
                error.add_note(f"an argument is a number here: write wengert.{error.name}(x), or pass a Value")
            raise
        if random_state() != before:
            self.fall_back(entry, DRAWS)
        return result, None

    def example(self, entry: Entry, arguments: Arguments, number: int, known: dict[int, Any]) -> bool:
        """Run the function itself on one example of a batch, and compare, or record; False if the engine takes over."""
        example = arguments.example(number)
        batch = [np.asarray(x)[None] for x in example]
        holding = None
        with self.alone() as free:
            if not free:
                return False
            for made in [*entry.specializations]:
                if holding is None and not made.changed():
                    made.load()
                    holding = made if made.compute(batch, 1, False, 1.0) and made.hold(1) else None
        result, watch = self.watched(entry, arguments.prepared(self.function, number), arguments, holding is None)
        known[number] = result
        if watch is not None:
            return self.another(entry, arguments, example, result, watch)
        return holding is not None and self.agrees(entry, holding, arguments, example, result)

    def compare_some(self, entry: Entry, arguments: Arguments, count: int, known: dict[int, Any]) -> None:
        """Compare on some examples of a batch: the first ones that differ, later another one each time."""
        if entry.compared < PROBATION:
            numbers = arguments.distinct(count, PROBATION)
        else:
            numbers = [entry.calls.bit_length() * STRIDE % count]
        for number in numbers:
            if entry.refusal or not self.example(entry, arguments, number, known):
                return

    # -- recordings ---------------------------------------------------------------------------------------------------

    def entry_for(self, arguments: Arguments) -> Entry:
        """What is known of calls with such arguments."""
        entry = self.compiled.last = self.entries.get(arguments.form) or Entry(self.compiled.pinned)
        entry.count_call()
        if entry.pending and entry.adopt():  # until it has been timed nothing is known to be faster
            self.compiled.direct.clear()
            self.short.clear()
        if arguments.form not in self.entries:
            if len(self.entries) < SPECIALIZATIONS:
                self.entries[arguments.form] = entry
                slots = slots_of(arguments)
                if slots is not None:
                    entry.open(*slots, arguments.form.batched)
                    (self.compiled.batches if arguments.form.batched else self.compiled.ones).append(entry)
            else:
                self.fall_back(entry, f"it is called with more than {SPECIALIZATIONS} kinds of arguments")
        return entry

    def another(self, entry: Entry, arguments: Arguments, example: Sequence[Any], result: Any, watch: PlainRun) -> bool:
        """Make a recording that holds for an example; False if there can be none."""
        if len(entry.specializations) == SPECIALIZATIONS:
            watch.effect = watch.effect or entry.too_many()
        if isinstance(result, np.ndarray) and not result.ndim and not arguments.form.batched:
            watch.effect = watch.effect or "its result is an array without axes: return the Value itself"
        if watch.effect:
            self.fall_back(entry, watch.effect)
        if entry.refusal:
            return False
        try:
            made = record(self.function, arguments, example, self.compiled.backend, watch)
            plain = main_of(result)  # a number also where it is one of Values inside
            made.is_number = made.shape == () and not isinstance(plain, Value)
            reason = self.difference(made, arguments, example, result)
        except (Unrecordable, Unliftable) as problem:
            reason = str(problem)
        if not reason and not self.holds(made, arguments, example):
            entry.stale += 1
            if entry.stale < STALE:
                return False
            reason = f"what it compares at {made.guards.lines[0]} comes out otherwise where sums are added up otherwise"
        if reason:
            self.fall_back(entry, reason)
            return False
        entry.compared += 1
        entry.specializations.insert(0, made)
        entry.consider(Size(1, True), self.compiled.passed)
        return True

    def holds(self, made: Recording, arguments: Arguments, example: Sequence[Any]) -> bool:
        """Whether a recording holds for the example that it was made of, so far as it computes at all there.

        It does not where a number that is taken out is a sum: an array program adds in another order.
        """
        with self.alone() as free:
            if not free or made.changed():
                return True
            made.load()
            numbers = arguments.numbers(example)
            batch = [np.asarray(x)[None] for x in numbers] if arguments.form.batched else numbers
            return not made.compute(batch, 1, False, 1.0) or made.hold(1)

    def agrees(self, entry: Entry, made: Recording, arguments: Arguments, example: Sequence[Any], result: Any) -> bool:
        """Whether a recording comes to what the function itself gave; else it is dropped."""
        reason = self.difference(made, arguments, example, result)
        if not reason:
            entry.compared += 1
            return not entry.refusal
        if made in entry.specializations:
            entry.specializations.remove(made)
        entry.stale += 1
        entry.compared = entry.trusted = 0
        why = f"{reason}: something that was recorded as fixed has changed, or is not the same each time"
        if entry.stale == STALE:
            self.fall_back(entry, why)
        else:
            warn_once(self.said, f"a recording of {self.name} is dropped: {why}")
        return False

    @np.errstate(all="ignore")
    def difference(self, made: Recording, arguments: Arguments, example: Sequence[Any], result: Any) -> str:
        """In what a recording differs from what the function itself gave for an example; empty if in nothing."""
        arrays: Any = arguments.numbers(example)
        if isinstance(main_of(result), Value) == made.is_number and made.shape == ():
            return "its result is now a number, now a Value"
        want: Any = np.asarray(numbers_in(result), float)
        slopes = None if modes.grad_disabled() else slopes_of(result, made, arguments.values())
        if arguments.form.batched:  # in a batch of one nothing shows of how examples are added up
            arrays = [np.repeat(np.asarray(x)[None], 2, 0) for x in arrays]
            want, slopes = np.tile(want.reshape(-1), 2), slopes and (2.0 * slopes[0], slopes[1])
        with self.alone() as free:
            if not free:
                return ""
            made.load()
            return made.differs(arrays, 2 if arguments.form.batched else 1, want, slopes)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether no other thread is at the kernels now, and nobody else until this ends; it never waits."""
        is_free = self.compiled.take()
        try:
            yield is_free
        finally:
            if is_free:
                self.compiled.leave()

    def fall_back(self, entry: Entry, why: str) -> None:
        """Leave such calls to the engine, and say so once."""
        entry.refusal, entry.trusted = why, 0
        warn_once(self.said, f"{self.name} runs uncompiled: {why}")

    # -- for loops that run a recording themselves --------------------------------------------------------------------

    def trusts(self, entry: Entry, made: Sequence[Recording], ready: Callable[[], Sequence[Any]]) -> int:
        """For how many calls, of which this one is counted here, recordings may be run elsewhere, by a loop that looks
        at what is outside and at the guards itself: until they are compared again. 0 if the engine has to take over.

        Args:
            entry: what is known of them.
            made: the recordings.
            ready: gives the arguments, a batch or none, where the function itself is about to be called to compare.
        """
        entry.calls += 1
        if any(each not in entry.specializations for each in made):
            return 0
        if entry.is_due():
            args = ready()
            number = entry.calls.bit_length() * STRIDE % len(args[0]) if args else 0
            if not self.example(entry, self.arguments(args, {}, bool(args)), number, {}):
                return 0
        return 1 if entry.compared < PROBATION else (1 << entry.calls.bit_length()) - entry.calls

    # -- what is shown ------------------------------------------------------------------------------------------------

    @property
    def last(self) -> Entry | None:
        """What is known of calls like the last one."""
        last: Entry | None = self.compiled.last
        return last

    def latest(self) -> Recording:
        """The recording of the last call."""
        if self.last is None:
            raise ArgumentError("call the function first: nothing has been compiled yet")
        if not self.last.specializations:
            raise ArgumentError(f"nothing has been compiled yet{': ' * bool(self.last.refusal)}{self.last.refusal}")
        last: Recording = self.last.specializations[0]
        return last

    def source(self, language: str, gradient: bool) -> str:
        """The program as text."""
        return source_of(self.latest().kernel, getattr(self.function, "__name__", "lifted"), language, gradient)

    def report(self) -> str:
        """What became of the function, line by line."""
        name = getattr(self.function, "__name__", "function")
        if not self.entries:
            return f"{name}: not called yet"
        lines = []
        for form, entry in self.entries.items():
            lines.append(f"{name}, {'a batch' if form.batched else 'one example'}: {entry.calls} calls")
            lines += entry.report()
        return "\n".join(lines)


_runtimes: WeakSet[Runtime] = WeakSet()


def _in_child() -> None:
    """In a forked child the call of another thread never comes to its end."""
    for runtime in _runtimes:
        runtime.compiled.leave()


in_child(_in_child)
