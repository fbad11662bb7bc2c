"""Serves a call of a compiled function from its specializations.

A `CallPath` finds the `CacheEntry` of the call's signature, which reads the arguments and runs the first specialization
whose guards pass. Everything else goes to `serve.py`. Like the engine, this file runs as it stands and is compiled by
Cython, with `callpath.pxd`.

Any number of calls run at once, in several threads or nested: each has a `Call` for its arguments and results, and
takes a workspace of the specialization to compute in.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

from wengert.compiler import policy
from wengert.compiler.call import memory
from wengert.compiler.call.argument_reader import ArgumentReader, are_equal, are_in_order
from wengert.compiler.call.executable import Executable, Workspace, partition_by_guards
from wengert.engine import Many, Value, _many
from wengert.errors import ArgumentError
from wengert.modes import in_force
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Int, cython

if False:  # Cython compiles with its own module
    import cython  # type: ignore[no-redef]

__all__ = ["CacheEntry", "Call", "CallPath"]

COMPILED = BY_NAME["compiled"].code
CHECKED_CALLS = policy.CHECKED_CALLS
FIXED, FLOAT, INT, VALUE, NUMBERS, VALUES, ITEMS, KEYED = range(8)  # see `ArgumentReader`
NO_VALUES: list[Any] = []  # a batch has no Values among its arguments
MISSING = object()


@cython.cclass
class CacheEntry:
    """The calls with one signature, and the specializations that serve them.

    Many fields: each call reads the readers, the specializations and the counts from one object, in C.

    Attributes:
        signature: see `trace.arguments`.
        specializations: in the order in which they were recorded; the list is replaced, never changed.
        candidate: the recording that is not compiled yet.
        fallback_reason: why the function runs uncompiled; empty if it need not.
        is_eager: True if the function itself runs, for that reason or another.
        calls: the number of calls.
        examples: the number of examples in them.
        is_thorough: True if each call whose number is a power of two is compared with the function.
        latest: the specialization that served last.
        elsewhere: the objects that recorded runs read elsewhere than from the arguments, by their ids, if the function
            may compare an argument with one by identity; else None.
        slow_reading: why no readers read the arguments of its calls; empty if they do.
    """

    def __init__(self, numpy: Any, signature: Any, is_thorough: bool) -> None:
        self.numpy = numpy
        self.ndarray: Any = numpy.ndarray
        self.signature = signature
        self.is_thorough = is_thorough
        self.specializations: list[Any] = []
        self.candidate: Any = None
        self.fallback_reason = ""
        self.slow_reading = ""
        self.clause = ""  # the rule by which the function itself runs
        self.is_eager = False
        self.calls = self.examples = 0
        self.min_examples = 0  # with fewer examples the function itself runs
        self.compile_after = 0  # what is recorded or compiled next waits until this many examples have run
        self.work = 0  # operations that an example takes uncompiled; 0 where it is not known
        self.changes = 0  # the watched runs that changed an object, or raised an exception
        self.used = 0  # the number of the function's call that used it last
        self.checks = 0  # comparisons of its specializations with the function
        self.invalidations = 0  # specializations that were dropped as they differed
        self.not_finite = 0  # calls that fell back as a number was not finite
        self.latest: Any = None
        self.elsewhere: Any = None
        self.layout: Any = None  # what `map` makes of the array of its results; None for the array
        self.lock: Any = RLock()  # held to compile the candidate
        self.pool: list[Any] = []  # each `Call` that nobody uses; after an error it goes to the garbage collector
        self.open([], (), 0, 0, (), False)

    def open(self, readers: list[Any], names: Any, first: Int, last: Int, keys: Any, batched: bool) -> None:
        """Set how arguments are read: the first by position only, from `last` on by name; `**named` takes `keys`."""
        self.readers: list[Any] = readers
        self.names: tuple[str, ...] = tuple(names)
        self.least: Int = first
        self.last: Int = last
        self.batched: bool = batched
        self.keys: tuple[Any, ...] = tuple(keys)
        self.arity: Int = _length(readers)  # the number of arrays that they fill
        self.first: Int = last + 1 if keys else first  # with keys, `read` asks whether it `takes` them

    def takes(self, given: Int, named: dict[str, Any]) -> bool:
        """Return True if these may be the arguments, where `**named` takes some: in the order of the first call."""
        count = given + len(named) if self.least <= given <= self.last else -1
        return len(self.keys) > 0 and count == len(self.readers) and are_in_order(named, self.keys)

    def is_current(self, call: Call) -> bool:
        """Return True if nothing was recorded since the call tried the specializations."""
        return self.candidate is None and self.specializations is call.tried

    def finished(self, result: Any, how: str) -> Any:
        """Return the result of a batch in its structure."""
        return result if self.layout is None or how != "map" else self.layout.build(result)

    def is_milestone(self) -> bool:
        """Return True if the last call is to be compared with the function, whatever served it."""
        return self.is_thorough and not self.calls & (self.calls - 1)


@cython.cclass
class Call:
    """One call: its arguments, and the results of the specializations.

    Many fields: a call is used again and again, so its arrays, their addresses and what came of it stay in one
    object.

    Attributes:
        left: the rows of a batch for which no specialization's guards pass.
        partial: the results of the other rows: see `_in_strips`.
        tried: the list of specializations that the call tried.
        ran: the one that served the whole call, or None.
        shares: if several served a batch, pairs of a specialization and its rows.
        is_unproven: True if one that served was compared with the function fewer than CHECKED_CALLS times.
        was_finite: True if all numbers were finite.
        was_computed: True if no operation raised an error.
        result: of the last `run`; None where `run_one` and `run_batch` return None.
    """

    def __init__(self, entry: CacheEntry) -> None:
        self.entry: CacheEntry = entry
        self.count: Any = 0
        self.arrays: list[Any] = [None] * entry.arity
        self.memory: list[Any] = [None] * entry.arity  # reused arrays for the numbers of lists
        self.memory_at: Any = entry.numpy.zeros(entry.arity, entry.numpy.int64)
        self.values: list[Any] = []
        self.seen: list[Any] = []  # objects of which no two may be the same
        self.has_float: Any = False  # a float was in the list just read
        self.is_split: Any = False  # the last strip needed several specializations
        self.is_unproven: Any = False
        self.was_finite: Any = True
        self.was_computed: Any = True
        self.tried: list[Any] = []
        self.result: Any = None
        self.left: Any = ()
        self.partial: Any = None
        self.ran: Any = None
        self.shares: list[Any] = []

    def served(self) -> list[Any]:
        """List pairs of a specialization and its rows, or None for all rows."""
        return self.shares if self.ran is None else [(self.ran, None)]

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Read the arguments; False if they have another signature, or the readers cannot tell."""
        entry, given = self.entry, len(args)
        if given + len(named) != len(entry.readers) or not entry.first <= given <= entry.last:  # noqa: SIM102
            if not entry.takes(given, named):  # by this branch other calls are as fast as without
                return False
        self.count = -1
        if self.values:
            self.values = []
        while self.seen:
            memory.pop(self.seen)
        # No index below is checked at run time: there is a name for each reader (see `open`), `arity` arrays for the
        # places of the readers, which count from 0, and a key for each child (see `ArgumentReader`).
        for n in range(len(entry.readers)):
            if n < given:
                x = args[n]
            else:
                x = named.get(entry.names[n], MISSING)
                if x is MISSING:
                    return False
            reader: ArgumentReader = entry.readers[n]
            if entry.is_eager:
                if not reader.resembles(x, entry.numpy, entry.batched):
                    return False
            elif not self._read_one(reader, x):
                return False
        if entry.elsewhere is not None and not self._is_apart():
            return False
        return len(self.seen) < 2 or memory.are_distinct(self.seen)

    def _is_apart(self) -> bool:
        """Return True if no argument is an object that recorded runs read elsewhere, too."""
        elsewhere = self.entry.elsewhere
        for x in self.seen:  # noqa: SIM110  (a generator takes longer than all the rest)
            if id(x) in elsewhere:
                return False
        return True

    def _read_one(self, reader: ArgumentReader, x: Any) -> bool:
        kind = reader.kind
        if kind == FLOAT:
            self.arrays[reader.place] = x if type(x) is float else float(x) if type(x) is reader.expected else None
            return type(x) is reader.expected
        if kind == INT:
            self.arrays[reader.place] = x if type(x) is int else int(x) if type(x) is reader.expected else None
            return type(x) is reader.expected
        if reader.checks_identity:
            memory.push(self.seen, x)
        if kind == VALUE:
            if not isinstance(x, Value):
                return False
            value: Value = x
            self.values.append(x)
            self.arrays[reader.place] = value._data
            return True
        if kind == FIXED:
            return are_equal(x, reader.expected)
        if kind == NUMBERS:
            return self._read_numbers(reader, x)
        if type(x) is not reader.expected or len(x) != len(reader.children) + reader.size * (kind == VALUES):
            return False
        if kind == VALUES:
            return self._read_values(reader, x)
        if kind == KEYED:
            for n, (key, item) in enumerate(x.items()):
                if not are_equal(key, reader.keys[n]):
                    return False
                if not self._read_one(reader.children[n], item):
                    return False
            return True
        for n in range(len(reader.children)):
            if n >= len(x) or not self._read_one(reader.children[n], x[n]):  # converting may let others shorten a list
                return False
        return True

    def _read_numbers(self, reader: ArgumentReader, x: Any) -> bool:
        entry = self.entry
        batched = entry.batched
        if type(x) is entry.ndarray:
            if not reader.takes_arrays:
                return False
            rows = -1 if batched else 0
            if not reader.is_wide or not memory.address(x, reader.is_int, reader.shape, rows):
                x = reader.widened(x, entry.numpy)
                if x is None or not memory.address(x, reader.is_int, reader.shape, rows):
                    return False
            self.arrays[reader.place] = x
            return not batched or self._matches_count(len(x))
        if reader.held is None or (batched and not ieee.COMPILED):
            return False  # interpreted, NumPy reads many rows faster
        if batched and (type(x) is not list or not self._matches_count(len(x))):
            return False
        array, at = self.memory[reader.place], self.memory_at[reader.place]
        if array is None or batched:
            shape = (self.count, *reader.shape) if batched else reader.shape
            array = entry.numpy.empty(shape, entry.numpy.int64 if reader.is_int else entry.numpy.float64)
            at = memory.address(array, reader.is_int, reader.shape, -1 if batched else 0)
            if not at:
                return False
            if not batched:
                self.memory[reader.place], self.memory_at[reader.place] = array, at
        self.arrays[reader.place] = array
        self.has_float = False
        end = self._fill_rows(reader, x, at) if batched else self._fill(reader, x, 0, at)
        return end != 0 and (reader.expected is not float or self.has_float)

    def _fill_rows(self, reader: ArgumentReader, x: Any, at: Int) -> Int:
        """Write the numbers of a batch to an address, like `_fill`; between pieces of a long one let other threads run,
        and check for Ctrl-C.
        """
        if len(x) != self.count:  # another thread may change it
            return 0
        rows = max(policy.ROOM // (8 * max(reader.size, 1)), 1)
        for start in range(0, self.count, rows):
            piece = x if rows >= self.count else x[start : start + rows]
            if start:
                memory.let_others()
                memory.check_signals()
            if len(piece) != min(rows, self.count - start):  # another thread has changed it
                return 0
            if not reader.shape:
                at = self._fill_items(reader, piece, at, len(piece))
            else:
                for row in piece:
                    at = self._fill(reader, row, 0, at)
                    if not at:
                        break
            if not at:
                return 0
        return at

    def _fill(self, reader: ArgumentReader, x: Any, axis: Int, at: Int) -> Int:
        """Write the numbers of nested lists to an address; return the address after them, or 0 if they do not fit.

        No more is written than the shape has room for: each list has its length, and none changes meanwhile, since
        exact floats, integers and bools are read without running other code.
        """
        length = reader.shape[axis]  # `held` has as many axes as `shape`, and `axis` is below
        if type(x) is not reader.held[axis] or len(x) != length:
            return 0
        if axis == len(reader.shape) - 1:
            return self._fill_items(reader, x, at, length)
        for row in x:
            at = self._fill(reader, row, axis + 1, at)
            if not at:
                return 0
        return at

    def _fill_items(self, reader: ArgumentReader, x: Any, at: Int, length: Int) -> Int:
        """Write the numbers of one list of this length, like `_fill`."""
        end = at + 8 * length
        if reader.expected is float and memory.are_floats(x, at, length):
            self.has_float = True
            return end
        is_bool = reader.expected is bool
        for item in x:
            if at == end:
                return 0
            if type(item) is float:
                if reader.expected is not float:
                    return 0
                self.has_float = True
                memory.put(at, item)
            elif is_bool:
                if type(item) is not bool:
                    return 0
                memory.put(at, 1.0 if item else 0.0)
            elif type(item) is not int or not (reader.is_int or reader.is_mixed):
                return 0
            else:
                try:
                    number: int = item
                except OverflowError:
                    return 0
                if not memory.is_exact(number):
                    return 0
                if reader.is_int:
                    memory.put_int(at, number)
                else:
                    memory.put(at, number)
            at += 8
        return end if at == end else 0

    def _read_values(self, reader: ArgumentReader, x: Any) -> bool:
        numbers: list[Any] = []
        values: list[Any] = []
        for item in x:
            if not isinstance(item, Value):
                return False
            value: Value = item
            numbers.append(value._data)
            values.append(item)
        if len(values) != reader.size:  # another thread has changed the list
            return False
        self.values += values
        if type(x) is tuple:
            self.seen += values
        self.arrays[reader.place] = self.entry.numpy.array(numbers)
        return True

    def _matches_count(self, count: Int) -> bool:
        if self.count < 0:
            self.count = count
        return self.count == count and count > 0

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, arrays: list[Any], values: list[Any], count: Int, how: str, disabled: bool) -> None:
        """Python-visible wrapper of `run_one`, and of `run_batch` if `how` is not empty."""
        self.tried = self.entry.specializations
        if how:
            self.result = self.run_batch(arrays, count, how, disabled)
        else:
            self.result = self.run_one(arrays, values, disabled)

    def run_one(self, arrays: list[Any], values: list[Any], disabled: bool) -> Any:
        """Return the result of the first specialization whose guards pass, and note that it `ran`; None if there is
        none, or its result is not finite.
        """
        spec: Executable
        space: Workspace
        entry = self.entry
        several, unchanged = entry.specializations, None
        self.was_finite = True
        self.ran = None
        for n in range(len(several)):
            spec = several[n]
            space = memory.pop(spec.pool)
            if space is None:
                space = Workspace(spec)
            if spec.captures.load(space.params_at, True, unchanged):
                memory.push(spec.pool, space)
                continue
            # Machine code that keeps the lock changes no capture: the next specialization skips those checked here.
            unchanged = spec.captures if spec.limit > 1 and spec.unlocked_from > 1 else None
            if arrays is self.arrays and space.reused is not self.memory:
                space.reused, space.reused_at = self.memory, self.memory_at
            with_grads = not (disabled or spec.is_number)
            sweeps = with_grads
            if spec.build is not None:
                with_grads = with_grads and len(spec.places) + len(values) > 0
                # A long call runs backward only when a gradient is asked for; but at once while calls are compared with
                # the function, and with NumPy, whose rules may raise: an error of the call itself.
                later = spec.uncompiled is not None and spec.checked >= CHECKED_CALLS and spec.limit > 1
                sweeps = with_grads and not later
                if sweeps:  # the derivatives of the results' sum, to see whether they are finite
                    space.set_cotangents(spec.computed)
            if not space.run(arrays, 1, sweeps, 1.0) or not space.guards_pass(0, 1):
                memory.push(spec.pool, space)
                continue
            self.ran = entry.latest = spec
            self.is_unproven = spec.checked < CHECKED_CALLS
            value: float = memory.get(space.targets[0])  # the first one, if there are several
            if spec.build is not None:
                result = space.build_result(arrays, values, with_grads, sweeps)
            elif not spec.is_number:
                result = space.node(value, values, with_grads)
            elif memory.isfinite(value):
                result = value if spec.kind is float else spec.kind(value)
            else:
                result = None
            memory.push(spec.pool, space)
            self.was_finite = result is not None
            return result
        return None

    def run_batch(self, arrays: list[Any], count: Int, how: str, disabled: bool) -> Any:
        """Return the mean, the sum or an array of the results; None if a number is not finite, an operation raised, or
        rows are `left` for which no guards pass.

        Raises:
            ArgumentError: the function gives more than one Value per example.
        """
        space: Workspace
        first: Workspace
        self.left, self.partial, self.was_finite, self.was_computed = (), None, True, True
        self.ran, self.shares, self.is_unproven = None, [], False
        with_grads, scale = how != "map" and not disabled, 1.0 / count if how == "mean" else 1.0
        spaces, first = [], None  # type: ignore[assignment]
        for spec in self.entry.specializations:
            # `spec.acquire()` is slower: Cython looks for an override in a Python subclass
            space = Executable.acquire(spec)
            space.begin(count, 0 if first is None else first.strip, with_grads)
            if first is None and space.is_ready(None):
                first = space
            spaces.append(space)
        result = None
        if first is not None:
            result = self._in_strips(spaces, first, arrays, count, how, with_grads, scale)
        for space in spaces:
            space.release()
        return result

    def _in_strips(
        self, spaces: list[Any], first: Workspace, arrays: list[Any], count: Int, how: str, with_grads: bool,
        scale: float,
    ) -> Any:  # fmt: skip
        """Run each example of a batch by the first specialization whose guards pass for it, and return the result. If
        rows are left, `partial` has the array of the other results or, for a mean or a sum, the node of their sum.

        `spaces` has a workspace of each specialization, and `first` is that of the first one whose captures are
        unchanged. The order of additions does not depend on which specialization tried a strip first.
        """
        entry, spec, at = self.entry, first.spec, 0
        results = entry.numpy.empty((count, *(spec.shape or ()))) if how == "map" else None
        left: list[Any] = []
        while at < count:
            start = at
            if not self.is_split:
                at = first.run_strips(arrays, at, count, with_grads, scale, results)
                if at > start:
                    entry.latest = spec
                    if at - start == count:
                        self.ran, self.is_unproven = spec, spec.checked < CHECKED_CALLS
                    else:
                        self._note_share(spec, range(start, at))
            if at < count:
                end = at + first.strip if at + first.strip < count else count
                if not self._split(spaces, first, arrays, at, end, with_grads, scale, results, left):
                    return None
                at = end
                if count >= spec.unlocked_from:
                    memory.let_others()
                    memory.check_signals()
        if self.ran is None and not self.shares:
            self.left = range(count)
            return None
        if results is not None:
            dtype = None if self.shares else spec.dtype
            for other, _ in self.shares:
                dtype = other.dtype if dtype is None else entry.numpy.promote_types(dtype, other.dtype)
            result = self._mapped(results, dtype, first.finite == count)
        elif spec.is_scalar:
            result = self._reduced(first.total * scale, spaces if self.ran is None else None, first, with_grads)
        elif left:  # an example that is left may raise an error, which comes first
            result = None
        else:
            raise ArgumentError(f"{how} needs one Value an example, and the function gives {spec.shape}: use map")
        if not left:
            return result
        self.left, self.partial = entry.numpy.concatenate(left), result
        return None

    def _split(
        self, spaces: list[Any], first: Workspace, arrays: list[Any], at: Int, end: Int, with_grads: bool,
        scale: float, results: Any, left: list[Any],
    ) -> bool:  # fmt: skip
        """Run a strip by several specializations; False if that is impossible."""
        spec: Executable
        space: Workspace
        numpy, shape, count = self.entry.numpy, first.spec.shape or (), end - at
        rows = numpy.arange(at, end) if at else None
        values = numpy.empty((count, *shape)) if results is None else results[at:end]
        is_whole = False
        for space, taken in partition_by_guards(spaces, arrays, rows, count, with_grads, scale, None, values):
            if space is None:
                if taken is None:
                    self.was_computed = False
                    return False
                if len(taken):
                    left.append(at + taken)
                    values[taken] = 0.0
                break
            spec = space.spec
            if (spec.shape or ()) != shape:
                return False
            space.add_grads()
            self.entry.latest = spec
            is_whole = space is first and len(taken) == count
            self._note_share(spec, at + taken if at else taken)
        self.is_split = not is_whole
        if results is None and is_whole:
            first.total += first.added(count)
        elif results is None:
            first.total += memory.total(memory.address(values, False, values.shape, 0), count)
        return True

    def _note_share(self, spec: Executable, rows: Any) -> None:
        """Note which specialization served some rows. Those of its first strip are enough for a check."""
        for other, _ in self.shares:
            if other is spec:
                return
        self.shares.append((spec, rows))
        self.is_unproven = self.is_unproven or spec.checked < CHECKED_CALLS

    def _mapped(self, values: Any, dtype: Any, are_finite: bool) -> Any:
        """Return the array of results in the function's dtype; None if some are not finite: their rows are `left`."""
        if are_finite or memory.finite(memory.address(values, False, values.shape, 0), values.size):
            return values if values.dtype == dtype else values.astype(dtype)
        self.was_finite, numpy = False, self.entry.numpy
        self.partial = values.astype(dtype)
        self.left = numpy.flatnonzero(~numpy.isfinite(values.reshape(len(values), -1)).all(axis=1))
        return None

    def _reduced(self, value: float, spaces: Any, first: Workspace, with_grads: bool) -> Any:
        """Return a node with this value and the derivatives of all specializations that ran (only the first one if
        `spaces` is None), or a leaf; None if a number is not finite.
        """
        space: Workspace
        spec: Executable
        if spaces is None or not with_grads:
            first.end()
            node = first.node(value, NO_VALUES, with_grads)
            self.was_finite = node is not None
            return node
        positions: dict[int, Any] = {}  # the index of each parameter among the operands
        operands: list[Any] = []
        sums: list[float] = []
        leaves = True
        for space in spaces:
            if not space.runs:
                continue
            space.end()
            spec = space.spec
            leaves = leaves and spec.leaves
            for n in range(len(spec.places)):
                p, place = spec.operands[n], n
                if n >= len(operands) or operands[n] is not p:  # nearly always they are the same
                    place = positions.setdefault(id(p), len(operands))
                    if place == len(operands):
                        operands.append(p)
                        sums.append(0.0)
                sums[place] += space.g[spec.places[n]]
        self.was_finite = memory.isfinite(value) and memory.isfinite(sum([grad * grad for grad in sums]))
        if not self.was_finite:
            return None
        many: Many = _many(COMPILED, operands, None, leaves)
        many._data = value
        for n in range(len(sums)):
            many._partials[n] = float(sums[n])
        return many


def _length(readers: Any) -> Int:
    reader: ArgumentReader
    count = 0
    for reader in readers:
        count += _length(reader.children) if reader.kind in (ITEMS, KEYED) else reader.kind != FIXED
    return count


# -- a function -------------------------------------------------------------------------------------------------------


@cython.cclass
class CallPath:
    """The first code that runs when a compiled function is called."""

    def begin(self, function: Any, server: Any) -> None:
        """Set the function and its fallback."""
        self.function: Any = function
        self._server: Any = server
        self.ones: list[Any] = []  # the entries of single calls for which there are readers,
        self.batches: list[Any] = []  # and those of batches
        self.is_eager = False  # the function itself runs for all calls
        self.uses: Any = 0  # calls that found an entry
        self.last: Any = None  # the entry of the last call

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function on one example."""
        disabled = False
        if in_force:
            mode = self._server.mode()
            if mode is None:
                return self._server.call(args, named)
            disabled = mode
        if self.is_eager:
            return self.function(*args, **named)
        return self.serve(args, named, "", disabled)

    def call_batch(self, args: tuple[Any, ...], named: dict[str, Any], how: str) -> Any:
        """Return the mean, the sum or an array of the results for a batch."""
        disabled = False
        if in_force:
            mode = self._server.mode()
            if mode is None:
                return self._server.call(args, named, how)
            disabled = mode
        return self.serve(args, named, how, disabled)

    def serve(self, args: tuple[Any, ...], named: dict[str, Any], how: str, disabled: bool) -> Any:
        """Return the result of the specializations, or let the server take over. `how` is mean, sum or map for a
        batch, and empty for one example; `disabled` is True if no derivatives are wanted.
        """
        entry: CacheEntry
        call: Call
        for entry in self.batches if how else self.ones:
            call = memory.pop(entry.pool)
            if call is None:
                call = Call(entry)
            if call.read(args, named):
                break
            memory.push(entry.pool, call)
        else:
            return self._server.call(args, named, how)
        self.last = entry
        self.uses += 1
        entry.used = self.uses
        result, served, is_eager, count = None, None, entry.is_eager, call.count if how else 1
        if is_eager:
            entry.calls += 1
        elif count >= entry.min_examples:
            if how:
                result = call.run_batch(call.arrays, count, how, disabled)
            else:
                result = call.run_one(call.arrays, call.values, disabled)
                is_eager = result is None and call.ran is None and entry.examples + 1 < entry.compile_after
            if result is not None or is_eager:
                entry.calls += 1
                entry.examples += count
            # `CacheEntry.is_milestone`, without a call
            if result is not None and (call.is_unproven or (entry.is_thorough and not entry.calls & (entry.calls - 1))):
                served = call.served()
        memory.push(entry.pool, call)
        if is_eager:
            return self._server.eager(self.function, args, named, how) if how else self.function(*args, **named)
        if result is None:
            return self._server.call(args, named, how)
        if served is not None:
            return self._server.check(entry, served, args, named, how, result)
        return result if entry.layout is None else entry.finished(result, how)
