"""What runs when a compiled function is called: the recording for these arguments is found or made, run and watched."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import modes
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, StaleRecordingError
from wengert.fused import fused
from wengert.lifting import function as surface
from wengert.lifting.flatten import Unliftable
from wengert.lifting.record import Unrecordable, recording
from wengert.lifting.recording import AGREE, Arguments, Recording, plain, record
from wengert.lifting.sources import source_of
from wengert.lifting.trees import Fixed, flatten_argument

__all__ = ["Runtime"]

PATHS = 32  # how many courses of one function are recorded


class Entry:
    """The recordings for one shape of arguments."""

    def __init__(self) -> None:
        self.paths: list[Recording] = []
        self.refusal = ""
        self.calls = 0


class Runtime:
    """The memory of one compiled function."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.function = compiled.function
        self.entries: dict[Any, Entry] = {}
        self.last: tuple[Any, Entry] | None = None
        self.said: set[str] = set()
        self.lock = threading.RLock()
        self.kept: list[Any] = []  # arguments that a key names by their identity

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """One example."""
        if recording():
            return self.function(*args, **named)
        with self.lock:
            arguments = self.arguments(args, named, False)
            entry, path = self.path_for(arguments)
            if path is None:
                return self.function(*args, **named)
            return self.run(entry, path, arguments)

    def run(self, entry: Entry, path: Recording, arguments: Arguments) -> Any:
        """A call on one example, by the path that holds for it."""
        if path.shape != ():
            return arguments.call(self.function, arguments.arrays, plain)
        arrays = [_plain(leaf, array) for leaf, array in zip(arguments.leaves, arguments.arrays, strict=True)]
        entry.calls += 1
        path.load()
        if modes.quiet():
            outputs = path.kernel.forward(arrays)
            by_inputs: list[Any] = []
        else:
            outputs, by_inputs = path.kernel.both(arrays, 1.0)
        if not _true(path.holds(outputs)):
            other = self.another(entry, arguments, arguments.arrays, path)
            if other is None:
                return arguments.call(self.function, arguments.arrays, plain)
            return self.run(entry, other, arguments)
        value = float(outputs["out"])
        slopes = path.kernel.slopes
        if not (np.isfinite(value) and np.isfinite(slopes).all()):
            return arguments.call(
                self.function, arguments.arrays, plain
            )  # what padding does to inf is left to the engine
        if not self.audit(entry, arguments, arguments.arrays, value):
            return arguments.call(self.function, arguments.arrays, plain)
        if modes.quiet():
            return Value(value)
        operands, partials = tuple(path.parameters), slopes
        given = [
            x
            for leaf, array in zip(arguments.leaves, arguments.arrays, strict=True)
            if leaf.kind == "v"
            for x in (array if leaf.shape else [array])
        ]
        if given:
            operands += tuple(given)
            flat = [
                np.zeros(a.size) if x is None else np.asarray(x, float).reshape(-1)
                for a, x in zip(path.kernel.wanted, by_inputs, strict=True)
            ]
            partials = np.concatenate([slopes, *flat])
        return fused(value, operands, partials)

    def batch(self, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """A batch of examples: their mean, their sum, or each of them."""
        with self.lock:
            arguments = self.arguments(args, named, True)
            count = _count(arguments)
            if recording():
                return self.eagerly(arguments, count, how)
            entry, path = self.path_for(arguments)
            if path is None:
                return self.eagerly(arguments, count, how)
            if how != "map" and path.shape != ():
                raise ArgumentError(f"{how} needs one Value an example, and the function gives {path.shape}: use map")
            entry.calls += 1
            seed = 1.0 / count if how == "mean" else 1.0
            return self.run_batch(entry, arguments, count, how, seed)

    def run_batch(self, entry: Entry, arguments: Arguments, count: int, how: str, seed: float) -> Any:
        """Run each path on the examples that take it."""
        waiting = np.arange(count)
        values: Any = None
        parameters: dict[int, Any] = {}
        slopes: dict[int, float] = {}
        single: tuple[Recording, Any] | None = None
        tried = 0
        quiet = modes.quiet() or how == "map"
        while len(waiting):
            if tried == len(entry.paths):
                example = arguments.example(int(waiting[0]))
                if self.another(entry, arguments, example, None) is None:
                    return self.eagerly(arguments, count, how)
            path = entry.paths[tried]
            tried += 1
            path.load()
            rows = [array if len(waiting) == count else array[waiting] for array in arguments.arrays]
            outputs, _ = (path.kernel.forward(rows), []) if quiet or path.guards else path.kernel.both(rows, seed)
            held = np.broadcast_to(path.holds(outputs), (len(waiting),))
            if not held.any():
                continue
            taken = waiting[held]
            if path.guards and not quiet:
                rows = rows if held.all() else [array[taken] for array in arguments.arrays]
                outputs, _ = path.kernel.both(rows, seed)
                out = outputs["out"]
            else:
                out = np.asarray(outputs["out"])[held]
            if values is None:
                values = np.zeros((count, *out.shape[1:]))
            values[taken] = out
            if not quiet:
                if len(taken) == count:
                    single = path, path.kernel.slopes
                else:
                    for parameter, slope in zip(path.parameters, path.kernel.slopes.tolist(), strict=True):
                        parameters[id(parameter)] = parameter
                        slopes[id(parameter)] = slopes.get(id(parameter), 0.0) + slope
            waiting = waiting[~held]
        if how == "map":
            return values if np.isfinite(values).all() else self.eagerly(arguments, count, how)
        if single is not None:
            operands, partials = tuple(single[0].parameters), single[1]
        else:
            operands, partials = tuple(parameters.values()), np.array([slopes[key] for key in parameters])
        value = float(values.sum()) * seed
        if not (np.isfinite(value) and np.isfinite(partials).all()):
            return self.eagerly(arguments, count, how)
        number = entry.calls % count
        if not self.audit(entry, arguments, arguments.example(number), float(values[number])):
            return self.eagerly(arguments, count, how)
        return Value(value) if quiet else fused(value, operands, partials)

    def eagerly(self, arguments: Arguments, count: int, how: str) -> Any:
        """The same by the engine, example by example."""
        results = [arguments.call(self.function, arguments.example(n), plain) for n in range(count)]
        if how == "map":
            return np.array([_numbers(result) for result in results])
        return surface.combined(results, how)

    # -- recordings ---------------------------------------------------------------------------------------------------

    def arguments(self, args: Sequence[Any], named: dict[str, Any], batched: bool) -> Arguments:
        """The arguments by name, with their shapes and arrays."""
        bound = self.compiled.signature.bind(*args, **named)
        bound.apply_defaults()
        shapes, arrays, originals = {}, [], {}
        for name, x in bound.arguments.items():
            kind = self.compiled.signature.parameters[name].kind
            if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                if x:
                    raise ArgumentError(f"a compiled function names its arguments: *{name} cannot be compiled")
                continue
            originals[name] = x
            if name in self.compiled.static:
                shapes[name], found = Fixed(_key(x)), []
            else:
                shapes[name], found = flatten_argument(name, x, batched)
            if isinstance(shapes[name], Fixed) and not isinstance(x, (str, bytes, bool, int, float, type(None))):
                self.keep(x)
            arrays += found
        return Arguments(originals, shapes, arrays, batched)

    def keep(self, x: Any) -> None:
        """Keep an object alive whose identity is part of a key."""
        if not any(x is kept for kept in self.kept):
            self.kept.append(x)

    def path_for(self, arguments: Arguments) -> tuple[Entry, Recording | None]:
        """The recordings for such arguments, the first of them made if there are none; None to stay with the engine."""
        key = (arguments.batched, tuple(arguments.shapes.values()), self.surroundings())
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry()
            if not arguments.batched or _count(arguments):
                self.another(entry, arguments, arguments.example(0), None)
        self.last = key, entry
        return entry, None if entry.refusal else entry.paths[0]

    def another(
        self, entry: Entry, arguments: Arguments, example: Sequence[Any], tried: Recording | None
    ) -> Recording | None:
        """A path that holds for an example: one of those that are there, or a new one."""
        if not arguments.batched:
            arrays = [_plain(leaf, array) for leaf, array in zip(arguments.leaves, example, strict=True)]
            for path in entry.paths:
                if path is not tried:
                    path.load()
                    if _true(path.holds(path.kernel.forward(arrays))):
                        return path
        if len(entry.paths) == PATHS:
            lines = sorted({guard.line for path in entry.paths for guard in path.guards})
            self.leave(
                entry,
                f"it takes more than {PATHS} courses, by comparing at {'; '.join(lines[:3])}: write wengert.maximum, "
                "wengert.where or wengert.softmax, which are the same course for all numbers",
            )
            return None
        try:
            made = record(self.function, arguments, example)
        except (Unrecordable, Unliftable) as reason:
            self.leave(entry, str(reason))
            return None
        entry.paths.append(made)
        return made

    def surroundings(self) -> tuple[Any, ...]:
        """Numbers, strings and bools that the function can see without being given them."""
        seen: list[Any] = []
        function = inspect.unwrap(self.function)
        code = getattr(function, "__code__", None)
        if code is None:
            return ()
        for cell in function.__closure__ or ():
            try:
                seen.append(_constant(cell.cell_contents))
            except ValueError:  # not assigned yet
                seen.append(None)
        seen += [_constant(function.__globals__.get(name)) for name in code.co_names]
        return tuple(seen)

    def audit(self, entry: Entry, arguments: Arguments, example: Sequence[Any], value: float) -> bool:
        """On calls 2, 4, 8, 16 and so on, compare with the function itself; False if the engine has to take over.

        Raises:
            StaleRecordingError: the function gives something else now.
        """
        if entry.calls < 2 or entry.calls & (entry.calls - 1):
            return True
        with modes.no_grad():
            result = arguments.call(self.function, example, plain)
        want = float(result.data if isinstance(result, Value) else result)
        if abs(want - value) <= AGREE * max(1.0, abs(want)):
            return True
        try:
            record(self.function, arguments, example)
        except (Unrecordable, Unliftable) as reason:  # a step at which rounding decides, such as the sign of a zero
            self.leave(entry, str(reason))
            return False
        name = getattr(self.function, "__name__", "the function")
        raise StaleRecordingError(
            f"{name} gives {want!r} now, and its recording {value!r}: something that was recorded as fixed has "
            "changed, such as a list or an object that it reads, a file, a clock or a random number. Pass it as an "
            "argument, or decorate the function anew"
        )

    def leave(self, entry: Entry, why: str) -> None:
        """Leave such calls to the engine, and say so once."""
        entry.refusal = why
        name = getattr(self.function, "__name__", "the function")
        surface.warn_once(self.said, f"{name} runs uncompiled: {why}")

    # -- what is shown ------------------------------------------------------------------------------------------------

    def latest(self) -> Recording:
        """The recording of the last call."""
        if self.last is None or not self.last[1].paths:
            why = f": {self.last[1].refusal}" if self.last else ""
            raise ArgumentError(
                f"nothing has been compiled yet{why}"
                if why
                else "call the function first: nothing has been compiled yet"
            )
        return self.last[1].paths[0]

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
        for (batched, *_), entry in self.entries.items():
            lines.append(f"{name}, {'a batch' if batched else 'one example'}: {entry.calls} calls")
            if entry.refusal:
                lines.append(f"  runs uncompiled: {entry.refusal}")
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


def _key(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        return id(x)
    return x


def _constant(x: Any) -> Any:
    return (type(x), x) if isinstance(x, (bool, int, float, str)) else None


def _true(x: Any) -> bool:
    return bool(np.all(x))


def _plain(leaf: Any, array: Any) -> Any:
    if leaf.kind == "v":
        return np.array([v.data for v in array]) if leaf.shape else np.float64(array.data)
    return array


def _numbers(x: Any) -> Any:
    if isinstance(x, Value):
        return x.data
    return [_numbers(item) for item in x] if isinstance(x, (list, tuple)) else x


def _count(arguments: Arguments) -> int:
    counts = {leaf.name: len(array) for leaf, array in zip(arguments.leaves, arguments.arrays, strict=True)}
    if not counts:
        raise DataError("a batch needs an argument with an example in each row")
    if len(set(counts.values())) > 1:
        raise DataError(f"the arguments of a batch have as many examples each, not {counts}")
    count = next(iter(counts.values()))
    if not count:
        raise DataError("a batch of no examples has no mean: expected at least one")
    return count
