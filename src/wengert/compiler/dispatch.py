"""What runs when a compiled function is called: a recording that holds for these arguments, or the function itself.

The first call is the function's own, watched (`PlainRun`); it is recorded afterwards. Until a recording has agreed with
the function on four examples, and then at every call whose number is a power of two, both run: they are compared, and
timed, and from then on the faster one serves. A recording that does not agree is dropped.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from time import perf_counter
from typing import Any
from weakref import WeakSet

import numpy as np

from wengert import modes
from wengert._forks import in_child
from wengert.compiler.backends import all_finite, source_of
from wengert.compiler.entry import PROBATION, STALE, Entry, combined, together
from wengert.compiler.fused import fused
from wengert.compiler.lifting import Unliftable
from wengert.compiler.tracing import (
    DRAWS,
    Arguments,
    Form,
    PlainRun,
    Reader,
    Recording,
    Unrecordable,
    called,
    examples,
    is_watched,
    main_of,
    numbers_in,
    random_state,
    record,
    recorder_of_thread,
    slopes_of,
)
from wengert.engine import Value
from wengert.errors import ArgumentError, warn_once

__all__ = ["Entry", "Runtime"]

SPECIALIZATIONS = 32  # how many are recorded for one form of arguments, and how many forms are told apart
STRIDE = 7919  # between the examples that are compared: a prime, so that it visits all of nearly every batch


class Runtime:
    """The memory of one compiled function."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.function: Any = compiled.function
        self.name: str = getattr(compiled.function, "__name__", "the function")
        self.entries: dict[Form, Entry] = {}
        self.last: Entry | None = None
        self.said: set[str] = set()
        self.lock: Any = threading.Lock()  # over a kernel's arrays; no code of the user's runs under it
        self.direct: set[tuple[Any, ...]] = set()  # calls on one example that go to the function itself, by `_alike`;
        self.short: set[int] = set()  # and those on batches of lists, by their size
        _runtimes.add(self)
        self.arguments: Callable[..., Arguments] = Reader(compiled.signature, compiled.static).read

    # -- calls --------------------------------------------------------------------------------------------------------

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
            if modes.eager_only() or (self.direct and not named and _alike(args) in self.direct):
                return self.function(*args, **named)
            return self.one(perf_counter(), self.arguments(args, named, False), args, named)
        if self.short and not named and set(map(type, args)) == {list}:
            sizes = set(map(len, args))
            if len(sizes) == 1 and next(iter(sizes)).bit_length() in self.short:
                return together([self.function(*row) for row in zip(*args, strict=True)], how)
        began = perf_counter()
        arguments = self.arguments(args, named, True)
        if modes.eager_only():
            return self.eagerly(arguments, arguments.count(), how)
        return self.batch(began, arguments, arguments.count(), how)

    def inline(self, function: Any, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """The same as part of another function, which is being recorded."""
        if not how:
            return function(*args, **named)
        signature = self.compiled.signature
        rows = examples(signature, self.compiled.static, args, named)
        results = [called(function, signature, row) for row in rows]
        return results if how == "map" else combined(results, how)

    def one(self, began: float, arguments: Arguments, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """A call on one example."""
        entry = self.entry_for(arguments)

        def plainly() -> Any:
            if arguments.is_wide():
                return self.function(*args, **named)
            return arguments.plainly(self.function, arguments.arrays)

        if entry.refusal:
            return plainly()
        due = entry.is_due()
        if not due and entry.prefers_engine(1, self.compiled.pinned):
            if arguments.is_wide() and not named:
                self.direct.add(_alike(args))
            return plainly()
        if entry.specializations and entry.specializations[0].shape != ():
            return plainly()  # a list, which is recorded for `map` and for what is shown
        made, value, free = self.run(entry, arguments)
        seconds = perf_counter() - began
        if not free or (made is not None and not due):
            return plainly() if value is None else value

        result, watch = self.watched(entry, plainly, arguments, made is None)
        if watch is not None:
            self.another(entry, arguments, arguments.arrays, result, watch)
        elif made is not None and self.agrees(entry, made, arguments, arguments.arrays, result):
            entry.note(1, seconds)
        return result

    def run(self, entry: Entry, arguments: Arguments) -> tuple[Recording | None, Any, bool]:
        """The specialization that holds for an example, and what it gives; None for the engine to take over. And
        whether no other thread was at the kernels, else nobody knows.
        """
        disabled = modes.grad_disabled()
        numbers = arguments.numbers(arguments.arrays)
        with self.alone() as free, np.errstate(all="ignore"):
            for place, made in enumerate(entry.specializations if free else ()):
                if made.shape != () or made.surroundings.changed():
                    continue
                made.load()
                ran = made.run(numbers, None if disabled or made.is_number else 1.0)
                if ran is None:
                    continue
                if place:  # the next call is likely to be of this kind too
                    entry.specializations.insert(0, entry.specializations.pop(place))
                value = float(ran.outputs["out"])
                if not (ran.finite and isfinite(value)):
                    entry.not_finite += 1
                    return made, None, True
                if disabled or made.is_number:
                    return made, value if made.is_number else Value(value), True
                operands, partials = made.derivatives()
                if ran.by_inputs:
                    operands += arguments.values()
                    partials = np.concatenate([partials, *[np.asarray(x, float).reshape(-1) for x in ran.by_inputs]])
                return made, fused(value, operands, partials, made.leaves and not ran.by_inputs), True
        return None, None, free

    # -- batches ------------------------------------------------------------------------------------------------------

    def batch(self, began: float, arguments: Arguments, count: int, how: str) -> Any:
        """A call on a batch."""
        entry = self.entry_for(arguments)
        known: dict[int, Any] = {}  # what the function itself gave for some of the examples
        due = entry.is_due()
        if due and not entry.refusal:
            self.compare_some(entry, arguments, count, known)
        pinned = self.compiled.pinned
        by_engine = not due and (entry.prefers_engine(count, pinned) or entry.tries_engine(count, pinned))
        if not entry.refusal and not by_engine:
            found = self.by_programs(entry, arguments, count, how, known)
            if found is not None:
                if not due:  # then it would have taken longer
                    entry.note(count, perf_counter() - began)
                return found
        if not due and all(each.refusal or each.prefers_engine(count, pinned) for each in self.entries.values()):
            self.short.add(count.bit_length())
        ready = perf_counter()
        made = self.eagerly(arguments, count, how, known)
        if by_engine:
            entry.note_engine(count, perf_counter() - ready)
        return made

    def by_programs(self, entry: Entry, arguments: Arguments, count: int, how: str, known: dict[int, Any]) -> Any:
        """The result by the specializations that hold for the examples, some of them recorded now; None for the engine
        to take over.
        """
        scale = 1.0 / count if how == "mean" else 1.0
        seed = None if how == "map" or modes.grad_disabled() else scale
        while True:
            with self.alone() as free, np.errstate(all="ignore"):
                task = entry, arguments, count, seed
                ran = (self.at_once(*task) or self.shares(*task)) if free else None
            if ran is None:
                return None
            values, operands, partials, leaves, waiting = ran
            if not len(waiting):
                break
            if not self.example(entry, arguments, int(waiting[0]), known):
                return None
        if how == "map":
            entry.not_finite += not np.isfinite(values).all()
            return values if np.isfinite(values).all() else None
        if values.ndim > 1:
            raise ArgumentError(f"{how} needs one Value an example, and the function gives {values.shape[1:]}: use map")
        value = float(np.add.reduce(values)) * scale
        with np.errstate(over="ignore"):
            finite = isfinite(value) and all_finite(partials)
        if not finite:  # what is masked out is computed too, as 0 times infinity
            entry.not_finite += 1
            return None
        return Value(value) if seed is None else fused(value, operands, partials, leaves)

    def at_once(self, entry: Entry, arguments: Arguments, count: int, seed: float | None) -> Any:
        """As `shares`, where the first specialization holds for all examples, as it mostly does; else None."""
        made = next((made for made in entry.specializations if not made.surroundings.changed()), None)
        if made is None:
            return None
        made.load()
        ran = made.run(arguments.arrays, seed)
        if ran is None:
            return None
        values = np.asarray(ran.outputs["out"], float)
        shape = (count, *(made.shape or ()))
        if values.shape != shape:
            values = np.broadcast_to(values, shape).copy()
        return values, *made.derivatives(), made.leaves, ()

    @np.errstate(all="ignore")
    def shares(self, entry: Entry, arguments: Arguments, count: int, seed: float | None) -> Any:
        """Each example by the specialization that holds for it: the values, the parameters, the derivatives by them,
        whether all those are leaves, and the examples that are left; None if one cannot be computed.
        """
        waiting, arrays = np.arange(count), arguments.arrays
        values: Any = None
        slopes: dict[int, tuple[Any, float]] = {}
        leaves = True
        for made in [made for made in entry.specializations if not made.surroundings.changed()]:
            made.load()
            share = made.share([array[waiting] for array in arrays], len(waiting))
            if share is None:
                return None
            taken, out = waiting[share[0]], share[1]
            if not len(taken):
                continue
            if seed is not None and made.run([array[taken] for array in arrays], seed) is None:
                return None
            if values is None:
                values = np.zeros((count, *out.shape[1:]))
            if out.shape[1:] != values.shape[1:]:
                return None
            values[taken] = out
            if seed is not None:
                leaves = leaves and made.leaves
                operands, partials = made.derivatives()
                for p, slope in zip(operands, partials.tolist(), strict=True):
                    slopes[id(p)] = p, slopes.get(id(p), (None, 0.0))[1] + slope
            waiting = np.setdiff1d(waiting, taken)
            if not len(waiting):
                break
        if values is None:
            return np.zeros(0), (), np.zeros(0), True, waiting
        found = list(slopes.values())
        return values, tuple([p for p, _ in found]), np.array([slope for _, slope in found]), leaves, waiting

    def eagerly(self, arguments: Arguments, count: int, how: str, known: dict[int, Any] | None = None) -> Any:
        """The same by the engine, example by example; of some it is known already."""
        return together(arguments.all_plainly(self.function, count, known or {}), how)

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
        with self.alone() as free, np.errstate(all="ignore"):
            if not free:
                return False
            for made in entry.specializations:
                if holding is None and not made.surroundings.changed():
                    made.load()
                    share = made.share(batch, 1)
                    holding = made if share is not None and len(share[0]) else None
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
        entry = self.last = self.entries.get(arguments.form) or Entry()
        entry.calls += 1
        if arguments.form not in self.entries:
            if len(self.entries) < SPECIALIZATIONS:
                self.entries[arguments.form] = entry
            else:
                self.fall_back(entry, f"it is called with more than {SPECIALIZATIONS} kinds of arguments")
        return entry

    def another(self, entry: Entry, arguments: Arguments, example: Sequence[Any], result: Any, watch: PlainRun) -> bool:
        """Make a recording that holds for an example; False if there can be none."""
        if len(entry.specializations) == SPECIALIZATIONS:
            watch.effect = watch.effect or self.too_many(entry)
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
        if reason:
            self.fall_back(entry, reason)
            return False
        entry.compared += 1
        entry.specializations.insert(0, made)
        return True

    def too_many(self, entry: Entry) -> str:
        """Why there are so many specializations, and what to write instead."""
        names = {made.surroundings.changed() for made in entry.specializations} - {""}
        if names:
            return f"what it reads outside of itself, {', '.join(sorted(names))}, changes from call to call: pass it"
        lines = sorted({line for made in entry.specializations for line in made.guards.lines})
        return (
            f"it takes more than {SPECIALIZATIONS} specializations, by comparing or taking numbers out at "
            f"{'; '.join(lines[:3])}: write wengert.maximum, wengert.where or wengert.softmax, which are the same for "
            "all numbers (and wengert.pick(values, index) where an integer argument chooses)"
        )

    def agrees(self, entry: Entry, made: Recording, arguments: Arguments, example: Sequence[Any], result: Any) -> bool:
        """Whether a recording comes to what the function itself gave; else it is dropped."""
        reason = self.difference(made, arguments, example, result)
        if not reason:
            entry.compared += 1
            return not entry.refusal
        if made in entry.specializations:
            entry.specializations.remove(made)
        entry.stale += 1
        entry.compared = 0
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
            return made.differs(arrays, want, slopes)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether no other thread is at the kernels now, and nobody else until this ends; it never waits."""
        lock = self.lock
        free = lock.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                lock.release()

    def fall_back(self, entry: Entry, why: str) -> None:
        """Leave such calls to the engine, and say so once."""
        entry.refusal = why
        warn_once(self.said, f"{self.name} runs uncompiled: {why}")

    # -- for loops that run a recording themselves --------------------------------------------------------------------

    def only(self, batch: Sequence[Any]) -> tuple[Entry, Recording] | None:
        """The recording for such arguments, if there is one alone, and what is known of it."""
        entry = self.entry_for(self.arguments(batch, {}, bool(batch)))
        return (entry, entry.specializations[0]) if len(entry.specializations) == 1 and not entry.refusal else None

    def trusts(self, entry: Entry, made: Recording, args: Sequence[Any], before: Callable[[], None]) -> bool:
        """Whether a recording may be run elsewhere, by a loop of its own; False if the engine has to take over.

        Args:
            entry: what is known of it.
            made: the recording.
            args: the arguments: a batch, or none.
            before: called before the function itself is, if it is time to compare.
        """
        entry.calls += 1
        if made.surroundings.changed() or made not in entry.specializations:
            return False
        if not entry.is_due():
            return True
        before()
        number = entry.calls.bit_length() * STRIDE % len(args[0]) if args else 0
        return self.example(entry, self.arguments(args, {}, bool(args)), number, {})

    # -- what is shown ------------------------------------------------------------------------------------------------

    def latest(self) -> Recording:
        """The recording of the last call."""
        if self.last is None:
            raise ArgumentError("call the function first: nothing has been compiled yet")
        if not self.last.specializations:
            raise ArgumentError(f"nothing has been compiled yet{': ' * bool(self.last.refusal)}{self.last.refusal}")
        return self.last.specializations[0]

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
            lines += entry.report(self.compiled.pinned)
        return "\n".join(lines)


def _alike(args: Sequence[Any]) -> tuple[Any, ...]:
    """What arguments look like from outside: their types, and how long they are."""
    return tuple([(type(x), len(x)) if hasattr(x, "__len__") else type(x) for x in args])


_runtimes: WeakSet[Runtime] = WeakSet()


def _in_child() -> None:
    """In a forked child the call of another thread never comes to its end."""
    for runtime in _runtimes:
        runtime.lock = threading.Lock()


in_child(_in_child)
