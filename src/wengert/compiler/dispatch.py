"""What runs when a compiled function is called: the recording for these arguments is found or made, run and watched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any
from weakref import WeakSet

import numpy as np

from wengert import modes
from wengert._forks import in_child, is_orphaned
from wengert.compiler.backends import all_finite, source_of
from wengert.compiler.fused import fused
from wengert.compiler.lifting import Unliftable
from wengert.compiler.tracing import (
    AGREE,
    Arguments,
    Auxiliary,
    CapturedEnvironment,
    Form,
    Reader,
    Recording,
    Unrecordable,
    called,
    examples,
    numbers_in,
    record,
    recording,
)
from wengert.engine import Value
from wengert.errors import ArgumentError, StaleRecordingError, warn_once
from wengert.functions import mean
from wengert.functions import sum as total

__all__ = ["Runtime"]

SPECIALIZATIONS = 32  # how many are recorded for one form of arguments, and for how many states of what is captured
STRIDE = 7919  # between the examples that are compared: a prime, so that it visits all of nearly every batch


class Entry:
    """The recordings for one shape of arguments."""

    def __init__(self) -> None:
        self.specializations: list[Recording] = []
        self.refusal = ""
        self.calls = 0
        self.not_finite = 0  # how many of them were left to the engine for that


class Runtime:
    """The memory of one compiled function."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.function: Any = compiled.function
        self.entries: dict[tuple[Form, int], Entry] = {}
        self.last: tuple[Any, Entry] | None = None
        self.said: set[str] = set()
        self.lock: Any = threading.RLock()
        _runtimes.add(self)
        self.arguments: Callable[..., Arguments] = Reader(compiled.signature, compiled.static).read
        self.environment: CapturedEnvironment = CapturedEnvironment(compiled.function, SPECIALIZATIONS)

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, args: Sequence[Any], named: dict[str, Any], how: str = "") -> Any:
        """One example; or of a batch the mean, the sum, or each of them (`how`: mean, sum, map).

        Here, and nowhere else, the engine takes over: from a function that is not compiled, and in a call that its
        program cannot do.
        """
        if recording():  # by another compiled function
            return self.inline(args, named, how)
        if modes.eager_only() and not how:
            return self.function(*args, **named)
        made = specialization = None
        with self.lock:
            arguments = self.arguments(args, named, bool(how))
            count = arguments.count() if how else 1
            if not modes.eager_only():
                entry, specialization = self.specialization_for(arguments)
            if specialization is not None and not how and specialization.shape != ():
                specialization = None  # a list of Values has no node
            if specialization is not None:
                entry.calls += 1
                if how:
                    made = self.run_batch(entry, arguments, count, how)
                else:
                    made = self.run(entry, specialization, arguments)
        if made is not None:
            return made
        if not how and specialization is None:
            return self.function(*args, **named)  # of what it was given
        return self.eagerly(arguments, count, how)

    def inline(self, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """The same as part of another function, which is being recorded."""
        if not how:
            return self.function(*args, **named)
        signature = self.compiled.signature
        rows = examples(signature, self.compiled.static, args, named)
        results = [called(self.function, signature, row) for row in rows]
        return results if how == "map" else _combined(results, how)

    def run(self, entry: Entry, specialization: Recording, arguments: Arguments) -> Any:
        """A call on one example, by the specialization that holds for it; None for the engine to take over."""
        disabled = modes.grad_disabled()
        specialization.load()
        with np.errstate(all="ignore"):
            ran = specialization.run(arguments.numbers(arguments.arrays), None if disabled else 1.0)
        if ran is None:
            other = self.another(entry, arguments, arguments.arrays, specialization)
            return None if other is None or other.shape != () else self.run(entry, other, arguments)
        value, partials, operands = float(ran.outputs["out"]), specialization.kernel.slopes, specialization.parameters
        if ran.by_inputs:
            operands += arguments.values()
            partials = np.concatenate([partials, *[np.asarray(x, float).reshape(-1) for x in ran.by_inputs]])
        if not self.holds_up(entry, arguments, ran.finite and isfinite(value), value):
            return None
        leaves = specialization.leaves and not ran.by_inputs
        return Value(value) if disabled else fused(value, operands, partials, leaves)

    def run_batch(self, entry: Entry, arguments: Arguments, count: int, how: str) -> Any:
        """The specializations' programs on the examples that they hold for; None for the engine to take over."""
        first, disabled = entry.specializations[0], modes.grad_disabled()
        if how == "map":
            found = self.by_specializations(entry, arguments, count, None)
            if found is None or not self.holds_up(entry, arguments, np.isfinite(found[0]).all(), found[0]):
                return None
            return found[0]
        if first.shape != ():
            raise ArgumentError(f"{how} needs one Value an example, and the function gives {first.shape}: use map")
        scale = 1.0 / count if how == "mean" else 1.0
        seed = None if disabled else scale
        first.load()
        with np.errstate(all="ignore"):
            ran = first.run(arguments.arrays, seed)
            if ran is not None:
                values, finite = ran.outputs["out"], ran.finite
                operands, partials, leaves = first.parameters, first.kernel.slopes, first.leaves
            else:
                found = self.by_specializations(entry, arguments, count, seed)
                if found is None:
                    return None
                values, slopes = found
                operands, partials = tuple([p for p, _ in slopes.values()]), np.array([s for _, s in slopes.values()])
                leaves, finite = all(each.leaves for each in entry.specializations), all_finite(partials)
            value = float(np.add.reduce(values, axis=None)) * scale
        if not self.holds_up(entry, arguments, finite and isfinite(value), values):
            return None
        return Value(value) if disabled else fused(value, operands, partials, leaves)

    def by_specializations(self, entry: Entry, arguments: Arguments, count: int, seed: float | None) -> Any:
        """Each example by the specialization that holds for it: the values, and with a `seed` the parameters and their
        slopes by id; None if there are too many, or not all of them can be computed, or their results differ in shape.
        """
        waiting = np.arange(count)
        values: Any = None
        slopes: dict[int, tuple[Any, float]] = {}
        tried = 0
        while len(waiting):
            if tried == len(entry.specializations) and not self.another(
                entry, arguments, arguments.example(int(waiting[0])), None
            ):
                return None
            specialization = entry.specializations[tried]
            tried += 1
            if specialization.shape != entry.specializations[0].shape:
                return None
            specialization.load()
            with np.errstate(all="ignore"):
                share = specialization.share([array[waiting] for array in arguments.arrays], len(waiting))
                if share is None:
                    return None
                taken = waiting[share[0]]
                if not len(taken):
                    continue
                values = np.zeros((count, *share[1].shape[1:])) if values is None else values
                values[taken] = share[1]
                if seed is not None:
                    if specialization.run([array[taken] for array in arguments.arrays], seed) is None:
                        return None
                    found = specialization.kernel.slopes.tolist()
                    for parameter, slope in zip(specialization.parameters, found, strict=True):
                        slopes[id(parameter)] = parameter, slopes.get(id(parameter), (None, 0.0))[1] + slope
            waiting = np.setdiff1d(waiting, taken)
        return values, slopes

    def eagerly(self, arguments: Arguments, count: int, how: str) -> Any:
        """The same by the engine, example by example."""
        if not how:
            return arguments.plainly(self.function, arguments.arrays)
        results = [arguments.plainly(self.function, arguments.example(n)) for n in range(count)]
        if how == "map":
            try:
                return np.array([numbers_in(result) for result in results])
            except ValueError:
                raise ArgumentError(
                    "map gives an array: the function's results differ in shape, or are irregular"
                ) from None
        return _combined([x.result if isinstance(x, Auxiliary) else x for x in results], how)

    # -- recordings ---------------------------------------------------------------------------------------------------

    def specialization_for(self, arguments: Arguments) -> tuple[Entry, Recording | None]:
        """The recordings for such arguments, the first of them made if there are none; None to stay with the engine."""
        key = arguments.form, self.environment.state()
        entry = self.entries.get(key)
        known = entry is not None and (entry.specializations or entry.refusal)
        if entry is None or not known:  # the last call may have raised what the function raises
            entry = self.entries[key] = Entry()
            if key[1] == SPECIALIZATIONS:
                self.fall_back(
                    entry,
                    f"what it reads outside of itself, {self.environment.changed}, changes from call to call: pass "
                    "it as an argument",
                )
            elif not arguments.form.batched or arguments.count():
                self.another(entry, arguments, arguments.example(0), None)
        self.last = key, entry
        return entry, None if entry.refusal or not entry.specializations else entry.specializations[0]

    def another(
        self, entry: Entry, arguments: Arguments, example: Sequence[Any], tried: Recording | None
    ) -> Recording | None:
        """A specialization that holds for an example: one of those that are there, or a new one."""
        numbers = arguments.numbers(example)
        if not arguments.form.batched:
            for specialization in entry.specializations:
                if specialization is not tried:
                    specialization.load()
                    with np.errstate(all="ignore"):
                        if specialization.run(numbers, None) is not None:
                            return specialization
        if len(entry.specializations) == SPECIALIZATIONS:
            lines = sorted({guard.line for specialization in entry.specializations for guard in specialization.guards})
            self.fall_back(
                entry,
                f"it takes more than {SPECIALIZATIONS} specializations, by comparing at {'; '.join(lines[:3])}: write "
                "wengert.maximum, wengert.where or wengert.softmax, which are the same for all numbers (and "
                "wengert.pick(values, index) where an integer argument chooses)",
            )
            return None
        try:
            made = record(self.function, arguments, example, self.compiled.backend)
        except (Unrecordable, Unliftable) as reason:
            self.fall_back(entry, str(reason))
            return None
        if not made.in_bounds(numbers):
            return None  # a negative index, or one that the function itself will refuse: for the engine, this once
        entry.specializations.append(made)
        return made

    def holds_up(self, entry: Entry, arguments: Arguments, finite: bool, values: Any) -> bool:
        """Whether what a run came to can be given: it is finite, and agrees with the function when it is time to look.

        What is not finite is left to the engine: an array program also computes what is then masked out, and there
        0 times infinity would not be 0.
        """
        if not finite:
            entry.not_finite += 1
            return False
        if not _is_due(entry):
            return True
        if not arguments.form.batched:
            return self.cross_check(entry, arguments, arguments.arrays, values)
        number = entry.calls.bit_length() * STRIDE % len(values)  # another each time: in large steps
        return self.cross_check(entry, arguments, arguments.example(number), values[number])

    def cross_check(self, entry: Entry, arguments: Arguments, example: Sequence[Any], value: Any) -> bool:
        """Compare with the function itself; False if the engine has to take over.

        Raises:
            StaleRecordingError: the function gives something else now.
        """
        want = np.asarray(numbers_in(arguments.plainly(self.function, example)), float)
        if want.shape == np.shape(value) and (np.abs(want - value) <= AGREE * np.maximum(1.0, np.abs(want))).all():
            return True
        try:
            record(self.function, arguments, example, self.compiled.backend)
        except (Unrecordable, Unliftable) as reason:  # a step at which rounding decides, such as the sign of a zero
            self.fall_back(entry, str(reason))
            return False
        name = getattr(self.function, "__name__", "the function")
        raise StaleRecordingError(
            f"{name} gives {want.tolist()!r} now, and its recording {np.asarray(value).tolist()!r}: something that "
            "was recorded as fixed has changed, such as a list or an object that it reads, a file, a clock or a random "
            "number. Pass it as an argument, or decorate the function anew"
        )

    def fall_back(self, entry: Entry, why: str) -> None:
        """Leave such calls to the engine, and say so once."""
        entry.refusal = why
        name = getattr(self.function, "__name__", "the function")
        warn_once(self.said, f"{name} runs uncompiled: {why}")

    def ran(self, args: Sequence[Any], values: Any, before: Callable[[], None]) -> bool:
        """Note a run of the only specialization that was made elsewhere; False if the engine has to take over.

        Args:
            args: the arguments: a batch, or none.
            values: what the run gave for each example.
            before: called before the function itself is.

        Raises:
            StaleRecordingError: the function gives something else now.
        """
        assert self.last is not None
        entry = self.last[1]
        entry.calls += 1
        if not _is_due(entry):
            return True
        before()
        return self.holds_up(entry, self.arguments(args, {}, bool(args)), True, values)

    # -- what is shown ------------------------------------------------------------------------------------------------

    def latest(self) -> Recording:
        """The recording of the last call."""
        if self.last is None:
            raise ArgumentError("call the function first: nothing has been compiled yet")
        entry = self.last[1]
        if not entry.specializations:
            raise ArgumentError(f"nothing has been compiled yet{': ' * bool(entry.refusal)}{entry.refusal}")
        return entry.specializations[0]

    def source(self, language: str, gradient: bool) -> str:
        """The program as text."""
        specialization = self.latest()
        return source_of(specialization.kernel, getattr(self.function, "__name__", "lifted"), language, gradient)

    def report(self) -> str:
        """What became of the function, line by line."""
        name = getattr(self.function, "__name__", "function")
        if not self.entries:
            return f"{name}: not called yet"
        lines = []
        for (form, _), entry in self.entries.items():
            lines.append(f"{name}, {'a batch' if form.batched else 'one example'}: {entry.calls} calls")
            if entry.refusal:
                lines.append(f"  runs uncompiled: {entry.refusal}")
            if entry.not_finite:
                lines.append(f"  {entry.not_finite} calls were left to the engine: not finite, or beyond 1e154")
            for number, made in enumerate(entry.specializations, 1):
                kernel, lifted = made.kernel, made.lifted
                program = lifted.program
                lines.append(
                    f"  specialization {number}: {made.nodes:,} scalar operations became {len(program.steps)} "
                    f"array operations and {len(kernel.back.steps)} of the reverse sweep"
                )
                lines.append(
                    f"    {lifted.products} products of arrays, {lifted.table_reads} operands through tables, "
                    f"{len(made.parameters):,} parameters in {len(program.of_role('param'))} arrays"
                )
                if program.padded:
                    lines.append("    sums of different lengths share arrays, with masks")
                lines += [f"    guarded: {line}" for line in dict.fromkeys(guard.line for guard in made.guards)]
        return "\n".join(lines)


_runtimes: WeakSet[Runtime] = WeakSet()


def _in_child() -> None:
    """In a forked child the call of another thread never comes to its end."""
    for runtime in _runtimes:
        if is_orphaned(runtime.lock):
            runtime.lock = threading.RLock()


in_child(_in_child)


def _is_due(entry: Entry) -> bool:
    """Whether this call is the 2nd, 4th, 8th, 16th and so on: one that is compared with the function itself."""
    return entry.calls > 1 and not entry.calls & (entry.calls - 1)


def _combined(values: Sequence[Any], how: str) -> Value:
    """The mean or the sum of Values, by the engine."""
    made = mean(values) if how == "mean" else total(values)
    return made if isinstance(made, Value) else Value(made)
