"""What runs when a compiled function is called: the recording for these arguments is found or made, run and watched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from wengert import modes
from wengert.compiler.backends.base import all_finite
from wengert.compiler.backends.export import source_of
from wengert.compiler.fused import fused
from wengert.compiler.lifting.simplify import Unliftable
from wengert.compiler.tracing.arguments import Arguments, Form, Reader, called, examples
from wengert.compiler.tracing.closure import CapturedEnvironment
from wengert.compiler.tracing.recorder import Unrecordable, recording
from wengert.compiler.tracing.trace import AGREE, Auxiliary, Recording, numbers_in, record
from wengert.engine import Value
from wengert.errors import ArgumentError, StaleRecordingError, warn_once
from wengert.functions import mean
from wengert.functions import sum as total

__all__ = ["Runtime"]

PATHS = 32  # how many courses of one function are recorded, and for how many states of what it sees outside
STRIDE = 7919  # between the examples that are compared: a prime, so that it visits all of nearly every batch


class Entry:
    """The recordings for one shape of arguments."""

    def __init__(self) -> None:
        self.paths: list[Recording] = []
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
        self.arguments: Callable[..., Arguments] = Reader(compiled.signature, compiled.static).read
        self.environment: CapturedEnvironment = CapturedEnvironment(compiled.function, PATHS)

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """One example."""
        if recording() or modes.eager_only():
            return self.function(*args, **named)
        with self.lock:
            arguments = self.arguments(args, named, False)
            entry, path = self.path_for(arguments)
            if path is not None and path.shape == ():
                entry.calls += 1
                made = self.run(entry, path, arguments)
        if path is None or path.shape != ():
            return self.function(*args, **named)
        return arguments.plainly(self.function, arguments.arrays) if made is None else made

    def run(self, entry: Entry, path: Recording, arguments: Arguments) -> Any:
        """A call on one example, by the path that holds for it; None if the engine has to take over."""
        quiet = modes.grad_disabled()
        path.load()
        with np.errstate(all="ignore"):
            ran = path.run(arguments.numbers(arguments.arrays), None if quiet else 1.0)
        if ran is None:
            other = self.another(entry, arguments, arguments.arrays, path)
            return None if other is None or other.shape != () else self.run(entry, other, arguments)
        value, partials, operands = float(ran.outputs["out"]), path.kernel.slopes, path.parameters
        if ran.by_inputs:
            operands += arguments.values()
            partials = np.concatenate([partials, *[np.asarray(x, float).reshape(-1) for x in ran.by_inputs]])
        if not (ran.finite and isfinite(value)):
            entry.not_finite += 1
            return None
        if _is_due(entry) and not self.audit(entry, arguments, arguments.arrays, value):
            return None
        return Value(value) if quiet else fused(value, operands, partials, path.leaves and not ran.by_inputs)

    def batch(self, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """A batch of examples: their mean, their sum, or each of them."""
        if recording():  # by another compiled function
            signature = self.compiled.signature
            rows = examples(signature, self.compiled.static, args, named)
            results = [called(self.function, signature, row) for row in rows]
            return results if how == "map" else _combined(results, how)
        made = None
        with self.lock:
            arguments = self.arguments(args, named, True)
            count = arguments.count()
            entry, path = (None, None) if modes.eager_only() else self.path_for(arguments)
            if entry is not None and path is not None:
                if how != "map" and path.shape != ():
                    raise ArgumentError(
                        f"{how} needs one Value an example, and the function gives {path.shape}: use map"
                    )
                entry.calls += 1
                made = self.run_batch(entry, arguments, count, how)
        return self.eagerly(arguments, count, how) if made is None else made

    def run_batch(self, entry: Entry, arguments: Arguments, count: int, how: str) -> Any:
        """The paths' programs on the examples that take them; None if the engine has to take over.

        What is not finite is left to the engine: an array program also computes what is then masked out, and there
        0 times infinity would not be 0.
        """
        seed = 1.0 / count if how == "mean" else 1.0
        if how == "map":
            found = self.by_paths(entry, arguments, count, None)
            if found is None:
                return None
            if not np.isfinite(found[0]).all():
                entry.not_finite += 1
                return None
            return found[0] if self.agrees(entry, arguments, found[0]) else None
        path, quiet = entry.paths[0], modes.grad_disabled()
        path.load()
        with np.errstate(all="ignore"):
            ran = path.run(arguments.arrays, None if quiet else seed)
            if ran is not None:
                values, finite = ran.outputs["out"], ran.finite
                operands, partials, leaves = path.parameters, path.kernel.slopes, path.leaves
            else:
                found = self.by_paths(entry, arguments, count, None if quiet else seed)
                if found is None:
                    return None
                values, slopes = found
                operands, partials = tuple([p for p, _ in slopes.values()]), np.array([s for _, s in slopes.values()])
                leaves, finite = all(path.leaves for path in entry.paths), all_finite(partials)
            value = float(np.add.reduce(values, axis=None)) * seed
        if not (finite and isfinite(value)):
            entry.not_finite += 1
            return None
        if not self.agrees(entry, arguments, values):
            return None
        return Value(value) if quiet else fused(value, operands, partials, leaves)

    def by_paths(self, entry: Entry, arguments: Arguments, count: int, seed: float | None) -> Any:
        """Each example by its own path: the values, and with a `seed` the parameters and their slopes by id; None if
        there are too many paths, or not all of them can be computed, or their results differ in shape.
        """
        waiting = np.arange(count)
        values: Any = None
        slopes: dict[int, tuple[Any, float]] = {}
        tried = 0
        while len(waiting):
            if tried == len(entry.paths) and not self.another(
                entry, arguments, arguments.example(int(waiting[0])), None
            ):
                return None
            path = entry.paths[tried]
            tried += 1
            if path.shape != entry.paths[0].shape:
                return None
            path.load()
            with np.errstate(all="ignore"):
                share = path.share([array[waiting] for array in arguments.arrays], len(waiting))
                if share is None:
                    return None
                taken = waiting[share[0]]
                if not len(taken):
                    continue
                values = np.zeros((count, *share[1].shape[1:])) if values is None else values
                values[taken] = share[1]
                if seed is not None:
                    if path.run([array[taken] for array in arguments.arrays], seed) is None:
                        return None
                    for parameter, slope in zip(path.parameters, path.kernel.slopes.tolist(), strict=True):
                        slopes[id(parameter)] = parameter, slopes.get(id(parameter), (None, 0.0))[1] + slope
            waiting = np.setdiff1d(waiting, taken)
        return values, slopes

    def eagerly(self, arguments: Arguments, count: int, how: str) -> Any:
        """The same by the engine, example by example."""
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

    def path_for(self, arguments: Arguments) -> tuple[Entry, Recording | None]:
        """The recordings for such arguments, the first of them made if there are none; None to stay with the engine."""
        key = arguments.form, self.environment.state()
        entry = self.entries.get(key)
        if entry is None or not (entry.paths or entry.refusal):  # the last may have raised what the function raises
            entry = self.entries[key] = Entry()
            if key[1] == PATHS:
                self.leave(
                    entry,
                    f"what it reads outside of itself, {self.environment.changed}, changes from call to call: pass "
                    "it as an argument",
                )
            elif not arguments.batched or arguments.count():
                self.another(entry, arguments, arguments.example(0), None)
        self.last = key, entry
        return entry, None if entry.refusal or not entry.paths else entry.paths[0]

    def another(
        self, entry: Entry, arguments: Arguments, example: Sequence[Any], tried: Recording | None
    ) -> Recording | None:
        """A path that holds for an example: one of those that are there, or a new one."""
        numbers = arguments.numbers(example)
        if not arguments.batched:
            for path in entry.paths:
                if path is not tried:
                    path.load()
                    with np.errstate(all="ignore"):
                        if path.run(numbers, None) is not None:
                            return path
        if len(entry.paths) == PATHS:
            lines = sorted({guard.line for path in entry.paths for guard in path.guards})
            self.leave(
                entry,
                f"it takes more than {PATHS} courses, by comparing at {'; '.join(lines[:3])}: write wengert.maximum, "
                "wengert.where or wengert.softmax, which are the same course for all numbers (and wengert.pick(values, "
                "index) where an integer argument chooses)",
            )
            return None
        try:
            made = record(self.function, arguments, example, self.compiled.backend)
        except (Unrecordable, Unliftable) as reason:
            self.leave(entry, str(reason))
            return None
        if not made.in_bounds(numbers):
            return None  # a negative index, or one that the function itself will refuse: for the engine, this once
        entry.paths.append(made)
        return made

    def agrees(self, entry: Entry, arguments: Arguments, values: Any) -> bool:
        """Whether an example of a batch, another each time, agrees with the function, when it is time to look."""
        if not _is_due(entry):
            return True
        number = entry.calls.bit_length() * STRIDE % len(values)  # which of the powers of 2 it is, in large steps
        return self.audit(entry, arguments, arguments.example(number), values[number])

    def audit(self, entry: Entry, arguments: Arguments, example: Sequence[Any], value: Any) -> bool:
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
            self.leave(entry, str(reason))
            return False
        name = getattr(self.function, "__name__", "the function")
        raise StaleRecordingError(
            f"{name} gives {want.tolist()!r} now, and its recording {np.asarray(value).tolist()!r}: something that "
            "was recorded as fixed has changed, such as a list or an object that it reads, a file, a clock or a random "
            "number. Pass it as an argument, or decorate the function anew"
        )

    def leave(self, entry: Entry, why: str) -> None:
        """Leave such calls to the engine, and say so once."""
        entry.refusal = why
        name = getattr(self.function, "__name__", "the function")
        warn_once(self.said, f"{name} runs uncompiled: {why}")

    def sole_path(self) -> Recording | None:
        """The recording of the last call, if such calls have no other path and do not run uncompiled."""
        entry = self.last[1] if self.last is not None else None
        return entry.paths[0] if entry is not None and len(entry.paths) == 1 and not entry.refusal else None

    def ran(self, args: Sequence[Any], values: Any, before: Callable[[], None]) -> bool:
        """Note a run of the sole path that was made elsewhere; False if the engine has to take over.

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
        if args:
            return self.agrees(entry, self.arguments(args, {}, True), values)
        return self.audit(entry, self.arguments(args, {}, False), [], values)

    # -- what is shown ------------------------------------------------------------------------------------------------

    def latest(self) -> Recording:
        """The recording of the last call."""
        if self.last is None:
            raise ArgumentError("call the function first: nothing has been compiled yet")
        entry = self.last[1]
        if not entry.paths:
            raise ArgumentError(f"nothing has been compiled yet{': ' * bool(entry.refusal)}{entry.refusal}")
        return entry.paths[0]

    def source(self, language: str, gradient: bool) -> str:
        """The program as text."""
        path = self.latest()
        return source_of(path.kernel, getattr(self.function, "__name__", "lifted"), language, gradient)

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
            for number, path in enumerate(entry.paths):
                program = path.lifted.program
                lines.append(
                    f"  path {number + 1}: {path.nodes:,} scalar operations became {len(program.steps)} array "
                    f"operations and {len(path.kernel.back.steps)} of the reverse sweep"
                )
                lines.append(
                    f"    {path.lifted.products} products of arrays, {path.lifted.table_reads} operands through "
                    f"tables, {len(path.parameters):,} parameters in {len(program.of_role('param'))} arrays"
                )
                if program.padded:
                    lines.append("    sums of different lengths share arrays, with masks")
                lines += [f"    guarded: {line}" for line in dict.fromkeys(guard.line for guard in path.guards)]
        return "\n".join(lines)


def _is_due(entry: Entry) -> bool:
    """Whether this call is the 2nd, 4th, 8th, 16th and so on: one that is compared with the function itself."""
    return entry.calls > 1 and not entry.calls & (entry.calls - 1)


def _combined(values: Sequence[Any], how: str) -> Value:
    """The mean or the sum of Values, by the engine."""
    made = mean(values) if how == "mean" else total(values)
    return made if isinstance(made, Value) else Value(made)
