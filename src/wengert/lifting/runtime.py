"""What runs when a compiled function is called: the recording for these arguments is found or made, run and watched."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from wengert import modes
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, StaleRecordingError
from wengert.fused import fused
from wengert.lifting import function as surface
from wengert.lifting.instructions import Unliftable
from wengert.lifting.kernel import all_finite
from wengert.lifting.record import Unrecordable, recording
from wengert.lifting.recording import AGREE, Arguments, Auxiliary, Form, Recording, numbers_in, plain, record
from wengert.lifting.sources import source_of
from wengert.lifting.trees import Fixed, flatten_argument

__all__ = ["Runtime"]

PATHS = 32  # how many courses of one function are recorded, and for how many values of what it sees outside
CONSTANTS = (bool, int, float, str)  # what a function sees outside and is part of the program


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
        self.function: Any = compiled.function
        self.entries: dict[Any, Entry] = {}
        self.last: tuple[Any, Entry] | None = None
        self.forms: dict[Any, Form] = {}
        self.seen: dict[Any, Form] = {}  # by what arrays look like, where that says it all
        self.said: set[str] = set()
        self.lock: Any = threading.RLock()
        parameters = compiled.signature.parameters.values()
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.names: list[str] = [p.name for p in parameters if p.kind not in kinds]
        self.gathering: list[str] = [p.name for p in parameters if p.kind in kinds]
        function = inspect.unwrap(self.function)
        code = getattr(function, "__code__", None)
        self.cells: Any = getattr(function, "__closure__", None) or ()
        self.globals: dict[str, Any] = getattr(function, "__globals__", {})
        self.outside: tuple[str, ...] = _names(code) if code else ()
        self.kept: list[Any] = []  # arguments that a key names by their identity

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """One example."""
        if recording() or modes.op_by_op():
            return self.function(*args, **named)
        with self.lock:
            arguments = self.arguments(args, named, False)
            entry, path = self.path_for(arguments)
            if path is None:
                return self.function(*args, **named)
            return self.run(entry, path, arguments)

    def run(self, entry: Entry, path: Recording, arguments: Arguments) -> Any:
        """A call on one example, by the path that holds for it."""
        arrays = [_numbers_of(leaf, array) for leaf, array in zip(arguments.leaves, arguments.arrays, strict=True)]
        if path.shape != ():
            return arguments.call(self.function, arguments.arrays, plain)
        entry.calls += 1
        quiet = modes.quiet()
        path.load()
        with np.errstate(all="ignore"):
            ran = path.run(arrays, None if quiet else 1.0)
        if ran is None:
            other = self.another(entry, arguments, arguments.arrays, path)
            if other is None:
                return arguments.call(self.function, arguments.arrays, plain)
            return self.run(entry, other, arguments)
        value, partials, operands = float(ran.outputs["out"]), path.kernel.slopes, path.parameters
        if ran.by_inputs:
            operands += arguments.values()
            partials = np.concatenate([partials, *[np.asarray(x, float).reshape(-1) for x in ran.by_inputs]])
        finite = ran.finite and isfinite(value)
        if not finite or (_is_due(entry) and not self.audit(entry, arguments, arguments.arrays, value)):
            return arguments.call(self.function, arguments.arrays, plain)
        return Value(value) if quiet else fused(value, operands, partials, path.leaves and not ran.by_inputs)

    def batch(self, args: Sequence[Any], named: dict[str, Any], how: str) -> Any:
        """A batch of examples: their mean, their sum, or each of them."""
        if recording():  # by another compiled function
            given = self.compiled.signature.bind(*args, **named).arguments
            count = _length(next(iter(given.values())))
            rows = [{name: _row(x, number) for name, x in given.items()} for number in range(count)]
            results = [self.function(**row) for row in rows]
            return results if how == "map" else surface.combined(results, how)
        with self.lock:
            arguments = self.arguments(args, named, True)
            count = _count(arguments)
            if modes.op_by_op():
                return self.eagerly(arguments, count, how)
            entry, path = self.path_for(arguments)
            if path is None:
                return self.eagerly(arguments, count, how)
            if how != "map" and path.shape != ():
                raise ArgumentError(f"{how} needs one Value an example, and the function gives {path.shape}: use map")
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
            if found is None or not np.isfinite(found[0]).all():
                return None
            return found[0] if self.agrees(entry, arguments, found[0]) else None
        path, quiet = entry.paths[0], modes.quiet()
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
            return None
        if not self.agrees(entry, arguments, values):
            return None
        return Value(value) if quiet else fused(value, operands, partials, leaves)

    def by_paths(self, entry: Entry, arguments: Arguments, count: int, seed: float | None) -> Any:
        """Each example by its own path: the values, and with a `seed` the parameters and their slopes by id; None if
        there are too many paths.
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
            path.load()
            inside = path.examples_in_bounds([array[waiting] for array in arguments.arrays], len(waiting))
            reachable = waiting[inside]
            if not len(reachable):
                continue
            with np.errstate(all="ignore"):
                outputs = path.kernel.forward([array[reachable] for array in arguments.arrays])
                held = np.broadcast_to(path.holds(outputs), (len(reachable),))
            if not held.any():
                continue
            out = np.asarray(outputs["out"]).reshape(len(reachable), *(path.shape or ()))
            taken, out = reachable[held], out[held]
            values = np.zeros((count, *out.shape[1:])) if values is None else values
            values[taken] = out
            if seed is not None:
                with np.errstate(all="ignore"):
                    path.kernel.both([array[taken] for array in arguments.arrays], seed)
                for parameter, slope in zip(path.parameters, path.kernel.slopes.tolist(), strict=True):
                    slopes[id(parameter)] = parameter, slopes.get(id(parameter), (None, 0.0))[1] + slope
            waiting = np.setdiff1d(waiting, taken)
        return values, slopes

    def eagerly(self, arguments: Arguments, count: int, how: str) -> Any:
        """The same by the engine, example by example."""
        results = [arguments.call(self.function, arguments.example(n), plain) for n in range(count)]
        if how == "map":
            try:
                return np.array([numbers_in(result) for result in results])
            except ValueError:
                raise ArgumentError(
                    "map gives an array: the function's results differ in shape, or are irregular"
                ) from None
        return surface.combined([x.result if isinstance(x, Auxiliary) else x for x in results], how)

    # -- recordings ---------------------------------------------------------------------------------------------------

    def arguments(self, args: Sequence[Any], named: dict[str, Any], batched: bool) -> Arguments:
        """The arguments by name, with their form and arrays."""
        seen = None
        if not named and len(args) == len(self.names) and set(map(type, args)) == {np.ndarray}:
            seen = (batched, *[(x.dtype, x.shape) for x in args])
            form = self.seen.get(seen)
            if form is not None:
                return Arguments(dict(zip(self.names, args, strict=True)), form, list(args))
        if named or len(args) != len(self.names):
            bound = self.compiled.signature.bind(*args, **named)
            bound.apply_defaults()
            originals = dict(bound.arguments)
            for name in self.gathering:
                if originals.pop(name):
                    raise ArgumentError(
                        f"a compiled function names its arguments: {name} of any number cannot be lifted"
                    )
        else:
            originals = dict(zip(self.names, args, strict=True))
        shapes: dict[str, Any] = {}
        arrays: list[Any] = []
        found: list[Any]
        for name, x in originals.items():
            if name in self.compiled.static:
                shapes[name], found = Fixed(_key(x)), []
            else:
                shapes[name], found = flatten_argument(name, x, batched)
            if isinstance(shapes[name], Fixed) and not isinstance(x, (str, bytes, bool, int, float, type(None))):
                self.keep(x)
            arrays += found
        key = (batched, *shapes.items())
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = Form(shapes, batched)
        if seen is not None and all(x is y for x, y in zip(args, arrays, strict=False)) and len(args) == len(arrays):
            self.seen[seen] = form  # such arrays are taken as they are
        return Arguments(originals, form, arrays)

    def keep(self, x: Any) -> None:
        """Keep an object alive whose identity is part of a key."""
        if not any(x is kept for kept in self.kept):
            self.kept.append(x)

    def path_for(self, arguments: Arguments) -> tuple[Entry, Recording | None]:
        """The recordings for such arguments, the first of them made if there are none; None to stay with the engine."""
        key = (arguments.form, self.surroundings())
        entry = self.entries.get(key)
        if entry is None or not (entry.paths or entry.refusal):  # the last may have raised what the function raises
            entry = self.entries[key] = Entry()
            if len({seen for _, seen in self.entries}) > PATHS:
                self.leave(
                    entry,
                    f"numbers outside of it, of {', '.join(self.outside)}, change from call to call: pass them as "
                    "arguments",
                )
                return entry, None
            if not arguments.batched or _count(arguments):
                self.another(entry, arguments, arguments.example(0), None)
        self.last = key, entry
        return entry, None if entry.refusal or not entry.paths else entry.paths[0]

    def another(
        self, entry: Entry, arguments: Arguments, example: Sequence[Any], tried: Recording | None
    ) -> Recording | None:
        """A path that holds for an example: one of those that are there, or a new one."""
        numbers = [_numbers_of(leaf, array) for leaf, array in zip(arguments.leaves, example, strict=True)]
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
            made = record(self.function, arguments, example)
        except (Unrecordable, Unliftable) as reason:
            self.leave(entry, str(reason))
            return None
        if not made.in_bounds(numbers):
            return None  # a negative index, or one that the function itself will refuse: for the engine, this once
        entry.paths.append(made)
        return made

    def surroundings(self) -> tuple[Any, ...]:
        """Numbers, strings and bools that the function can see without being given them."""
        seen = [self.globals.get(name) for name in self.outside]
        for cell in self.cells:
            try:
                seen.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                seen.append(None)
        return tuple([(type(x), x) if type(x) in CONSTANTS and x == x else None for x in seen])

    def agrees(self, entry: Entry, arguments: Arguments, values: Any) -> bool:
        """Whether an example of a batch, another each time, agrees with the function, when it is time to look."""
        number = entry.calls % len(values)
        return not _is_due(entry) or self.audit(entry, arguments, arguments.example(number), values[number])

    def audit(self, entry: Entry, arguments: Arguments, example: Sequence[Any], value: Any) -> bool:
        """Compare with the function itself; False if the engine has to take over.

        Raises:
            StaleRecordingError: the function gives something else now.
        """
        want = np.asarray(numbers_in(arguments.call(self.function, example, plain)), float)
        if want.shape == np.shape(value) and (np.abs(want - value) <= AGREE * np.maximum(1.0, np.abs(want))).all():
            return True
        try:
            record(self.function, arguments, example)
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
        surface.warn_once(self.said, f"{name} runs uncompiled: {why}")

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
        for (form, _), entry in self.entries.items():
            lines.append(f"{name}, {'a batch' if form.batched else 'one example'}: {entry.calls} calls")
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


def _names(code: Any) -> tuple[str, ...]:
    """The names that code looks up outside of itself, in the functions and comprehensions within it too."""
    inner = [name for constant in code.co_consts if hasattr(constant, "co_names") for name in _names(constant)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _row(x: Any, number: int) -> Any:
    """One example of a batch."""
    if isinstance(x, tuple):
        return tuple([_row(item, number) for item in x])
    return {key: _row(item, number) for key, item in x.items()} if isinstance(x, dict) else x[number]


def _length(x: Any) -> int:
    """How many examples a batch has."""
    if isinstance(x, (tuple, dict)):
        return _length(next(iter(x.values() if isinstance(x, dict) else x)))
    return len(x)


def _is_due(entry: Entry) -> bool:
    """Whether this call is the 2nd, 4th, 8th, 16th and so on: one that is compared with the function itself."""
    return entry.calls > 1 and not entry.calls & (entry.calls - 1)


def _key(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        return id(x)
    return type(x), x


def _numbers_of(leaf: Any, array: Any) -> Any:
    if leaf.kind == "v":
        return np.array([v.data for v in array]) if leaf.shape else np.float64(array.data)
    return array


def _count(arguments: Arguments) -> int:
    """How many examples a batch has."""
    if not arguments.arrays:
        raise DataError("a batch needs an argument with an example in each row")
    lengths = [len(array) for array in arguments.arrays]
    if lengths.count(lengths[0]) != len(lengths):
        counts = {leaf.name: length for leaf, length in zip(arguments.leaves, lengths, strict=True)}
        raise DataError(f"the arguments of a batch have as many examples each, not {counts}")
    if not lengths[0]:
        raise DataError("a batch of no examples has no mean: expected at least one")
    return lengths[0]
