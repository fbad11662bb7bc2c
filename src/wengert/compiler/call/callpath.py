"""The path of a call: from what is passed to a compiled function to the node that it gives.

A `CallPath` finds the `CacheEntry` of the call's signature, which reads the arguments by its readers and runs the first
specialization whose guards pass. All else goes to `runtime.py`, which alone records, compiles, compares and falls back.
Like the engine, this file runs as it stands and is compiled by Cython, with `callpath.pxd`.

Nothing here is held by one call alone: what a call reads, and what it comes to, is in a `Call` of its own, and what is
computed in a workspace of the specialization. So any number of calls run at once: those of other threads, and those
that code makes which a call itself runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

from wengert.compiler import policy
from wengert.compiler.call import memory
from wengert.compiler.call.argument_reader import ArgumentReader, are_equal
from wengert.compiler.call.executable import Executable, Workspace, share
from wengert.engine import Many, Value, _many
from wengert.errors import ArgumentError
from wengert.modes import in_force
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Int, cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["CacheEntry", "Call", "CallPath"]

COMPILED = BY_NAME["compiled"].code
CHECKED_CALLS = policy.CHECKED_CALLS
FIXED, FLOAT, WHOLE, VALUE, NUMBERS, VALUES, ITEMS, KEYED = range(8)  # what a reader is for: see `ArgumentReader`
FEW = 16  # among so many things it is quickly seen whether two are one
NONE: list[Any] = []  # the Values among the arguments of a batch
MISSING = object()  # what stands for an argument that was not passed


@cython.cclass
class CacheEntry:
    """The calls with one signature of arguments, and the specializations that serve them.

    Attributes:
        signature: see `trace.arguments`.
        specializations: in the order in which they were recorded; the list is replaced, and never changed.
        candidate: what is recorded and no specialization yet.
        fallback_reason: why the function itself serves; empty if it need not.
        is_eager: whether it serves, for that reason or another.
        calls: how many there were, and how many examples.
        is_thorough: whether each call whose number is a power of two is compared.
        latest: the specialization that served last.
    """

    first: Any
    last: Any

    def __init__(self, numpy: Any, signature: Any, is_thorough: bool) -> None:
        self.numpy = numpy
        self.ndarray: Any = numpy.ndarray
        self.signature = signature
        self.is_thorough = is_thorough
        self.specializations: list[Any] = []
        self.candidate: Any = None
        self.fallback_reason = ""
        self.clause = ""  # by which the function itself serves
        self.is_eager = False
        self.calls = self.examples = 0
        self.least = 0  # for fewer examples than so many the function itself serves
        self.until = 0  # until so many examples have run the candidate waits
        self.changes = 0  # how many watched runs changed something
        self.used = 0  # when it was used last, in calls of the function
        self.checks = 0  # how often its specializations were compared with the function,
        self.invalidations = 0  # how many of them were dropped then,
        self.not_finite = 0  # and how many calls the function itself served as something was not finite
        self.latest: Any = None
        self.lock: Any = RLock()  # over making code of the candidate
        self.readers: list[Any] = []
        self.names: tuple[str, ...] = ()
        self.first = self.last = 0
        self.batched: Any = False
        self.arity: Any = 0  # how many arrays the readers give
        self.pool: list[Any] = []

    def open(self, readers: list[Any], names: Sequence[str], first: Int, last: Int, batched: bool) -> None:
        """Say how the arguments are read: the first ones by place alone, from the last on by name alone."""
        self.readers, self.names, self.first, self.last, self.batched = readers, tuple(names), first, last, batched
        self.arity = _length(readers)

    def is_as_asked(self, call: Call) -> bool:
        """Return True if all that there is by now was asked by a call, and nothing is recorded."""
        return self.candidate is None and self.specializations is call.asked

    def acquire(self) -> Call:
        """What a call works with, which is nobody else's; who does not `release` it leaves it to the collector."""
        call = memory.pop(self.pool)
        return Call(self) if call is None else call


@cython.cclass
class Call:
    """One call: its arguments as they were read, and what specializations came to.

    Attributes:
        left: of a batch the rows that no specialization holds for.
        partial: what the others of these came to: see `run_batch`.
        asked: the specializations.
        ran: the one that served the call; None if none did,
        shares: or several did: pairs of one and its rows.
        was_finite: whether all that it came to was,
        was_computed: and whether it could be computed at all.
    """

    count: Any

    def __init__(self, entry: CacheEntry) -> None:
        self.entry: CacheEntry = entry
        self.count = 0
        self.arrays: list[Any] = [None] * entry.arity
        self.memory: list[Any] = [None] * entry.arity  # for the numbers of lists, which lie there each time
        self.memory_at: Any = entry.numpy.zeros(entry.arity, entry.numpy.int64)
        self.values: list[Any] = []
        self.seen: list[Any] = []
        self.has_float: Any = False  # whether a float was among the numbers of a list
        self.is_narrow: Any = False  # whether an array among the arguments has numbers of another width than Python's
        self.is_split: Any = False  # whether the last batch was shared out among several specializations
        self.was_finite: Any = True
        self.was_computed: Any = True
        self.asked: list[Any] = []
        self.found: Any = None
        self.left: Any = ()
        self.partial: Any = None
        self.ran: Any = None
        self.shares: list[Any] = []

    def release(self) -> None:
        """Give it back."""
        memory.push(self.entry.pool, self)

    def must_check(self) -> bool:
        """Return True if this call, which is counted and was just served, is compared with the function."""
        made: Executable
        entry = self.entry
        if entry.is_thorough and not entry.calls & (entry.calls - 1):
            return True
        if self.ran is not None:
            made = self.ran
            return bool(made.checked < CHECKED_CALLS)
        for made, _ in self.shares:  # noqa: SIM110  (a generator takes longer than all the rest)
            if made.checked < CHECKED_CALLS:
                return True
        return False

    def served(self) -> list[Any]:
        """What served the call: pairs of a specialization and its rows, or None for all of them."""
        return self.shares if self.ran is None else [(self.ran, None)]

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Read the arguments; False if they are not of this form, or this cannot tell."""
        entry, given = self.entry, len(args)
        if given + len(named) != len(entry.readers) or not entry.first <= given <= entry.last:
            return False
        self.count = -1
        self.is_narrow = False
        if self.values:
            self.values = []
        if self.seen:
            self.seen = []
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
        return len(self.seen) < 2 or _are_different(self.seen)

    def _read_one(self, reader: ArgumentReader, x: Any) -> bool:
        kind = reader.kind
        if kind == FLOAT:
            self.arrays[reader.place] = x if type(x) is float else float(x) if type(x) is reader.expected else None
            return type(x) is reader.expected
        if kind == WHOLE:
            self.arrays[reader.place] = x if type(x) is int else int(x) if type(x) is reader.expected else None
            return type(x) is reader.expected
        if reader.is_one:
            self.seen.append(x)
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
            return self._take_numbers(reader, x)
        if type(x) is not reader.expected or len(x) != len(reader.children) + reader.size * (kind == VALUES):
            return False
        if kind == VALUES:
            return self._take_values(reader, x)
        if kind == KEYED:
            for n, (key, item) in enumerate(x.items()):
                if not are_equal(key, reader.keys[n]):
                    return False
                if not self._read_one(reader.children[n], item):
                    return False
            return True
        for n in range(len(reader.children)):  # noqa: SIM110  (a generator takes longer than all the rest)
            if not self._read_one(reader.children[n], x[n]):
                return False
        return True

    def _take_numbers(self, reader: ArgumentReader, x: Any) -> bool:
        """Read an array, or nested lists of numbers."""
        entry = self.entry
        batched = entry.batched
        if type(x) is entry.ndarray:
            if not reader.takes_arrays:
                return False
            rows = -1 if batched else 0
            if reader.of == "b" or not memory.address(x, reader.is_int, reader.shape, rows):
                self.is_narrow = self.is_narrow or x.dtype.itemsize < 8 or not x.dtype.isnative
                x = reader.widened(x, entry.numpy)
                if x is None or not memory.address(x, reader.is_int, reader.shape, rows):
                    return False
            self.arrays[reader.place] = x
            return not batched or self._is_count(len(x))
        if not ieee.COMPILED or reader.of == "b" or not (reader.held or (batched and not reader.shape)):
            return False  # interpreted, NumPy is the faster one to read lists
        if batched and (type(x) is not list or not self._is_count(len(x))):
            return False
        made, at = self.memory[reader.place], self.memory_at[reader.place]
        if made is None or batched:
            shape = (len(x), *reader.shape) if batched else reader.shape
            made = entry.numpy.empty(shape, entry.numpy.int64 if reader.is_int else entry.numpy.float64)
            at = memory.address(made, reader.is_int, reader.shape, -1 if batched else 0)
            if not batched:
                self.memory[reader.place], self.memory_at[reader.place] = made, at
        self.arrays[reader.place] = made
        self.has_float = False
        end = self._fill_rows(reader, x, at) if batched else self._fill(reader, x, 0, at)
        return end != 0 and (reader.is_int or self.has_float)

    def _fill_rows(self, reader: ArgumentReader, x: Any, at: Int) -> Int:
        """Write the numbers of a batch, for which there is room for so many examples: see `_fill`.

        Between pieces of a long one, other threads run and Ctrl-C is answered.
        """
        if len(x) != self.count:  # by now
            return 0
        rows = policy.ROOM // (8 * reader.size) if reader.size else self.count
        rows = rows if 0 < rows < self.count else self.count
        for start in range(0, self.count, rows):
            piece = x if rows == self.count else x[start : start + rows]
            if start:
                memory.let_others()
                memory.check_signals()
            if len(piece) != min(rows, self.count - start):  # another thread has changed it
                return 0
            if not reader.shape:
                at = self._fill_items(reader, piece, at)
            else:
                for row in piece:
                    at = self._fill(reader, row, 0, at)
                    if not at:
                        break
            if not at:
                return 0
        return at

    def _fill(self, reader: ArgumentReader, x: Any, axis: Int, at: Int) -> Int:
        """Write the numbers of nested lists to an address; returns the one behind, or 0 if they are others."""
        if type(x) is not reader.held[axis] or len(x) != reader.shape[axis]:
            return 0
        if axis == len(reader.shape) - 1:
            return self._fill_items(reader, x, at)
        for row in x:
            at = self._fill(reader, row, axis + 1, at)
            if not at:
                return 0
        return at

    def _fill_items(self, reader: ArgumentReader, x: Any, at: Int) -> Int:
        """Write the numbers of one list."""
        for item in x:
            if type(item) is float:
                if reader.is_int:
                    return 0
                self.has_float = True
                memory.put(at, item)
            elif type(item) is not int:
                return 0
            else:
                try:
                    whole: int = item
                except OverflowError:
                    return 0
                if not memory.is_exact(whole):
                    return 0
                if reader.is_int:
                    memory.put_whole(at, whole)
                else:
                    memory.put(at, whole)
            at += 8
        return at

    def _take_values(self, reader: ArgumentReader, x: Any) -> bool:
        numbers = []
        for item in x:
            if not isinstance(item, Value):
                return False
            value: Value = item
            numbers.append(value._data)
        self.values += x
        if type(x) is tuple:
            self.seen += x
        self.arrays[reader.place] = self.entry.numpy.array(numbers)
        return True

    def _is_count(self, count: Int) -> bool:
        if self.count < 0:
            self.count = count
        return self.count == count and count > 0

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, arrays: list[Any], values: list[Any], count: Int, how: str, disabled: bool) -> None:
        """Python-visible wrapper of `run_one`, and of `run_batch` where `how` says what is asked of a batch."""
        self.asked = self.entry.specializations
        if how:
            self.found = self.run_batch(arrays, count, how, disabled)
        else:
            self.found = self.run_one(arrays, values, disabled)

    def run_one(self, arrays: list[Any], values: list[Any], disabled: bool) -> Any:
        """The result of the first specialization that holds, which is then the one that `ran`; None if none holds, or
        if that comes to what is not finite.
        """
        made: Executable
        space: Workspace
        entry = self.entry
        several = entry.specializations
        self.was_finite = True
        self.ran = None
        for n in range(len(several)):
            made = several[n]
            space = memory.pop(made.pool)
            if space is None:
                space = Workspace(made)
            if made.captures.stale(space.params_at):
                space.release()
                continue
            space.load()
            if arrays is self.arrays:
                space.steady = self.memory
            with_grads = not (disabled or made.is_number)
            if made.build is not None:
                with_grads = with_grads and len(made.places) + len(values) > 0
                if with_grads:  # all results at once show whether a derivative is not finite: see `SavedCall.turn`
                    space.weigh(made.computed)
            if not space.run(arrays, 1, with_grads, 1.0) or not space.guards_pass(0, 1):
                space.release()
                continue
            self.ran = entry.latest = made
            found = None
            if made.build is not None:
                if not with_grads or space.is_finite():
                    found = space.several(arrays, values, with_grads)
                self.was_finite = found is not None
                space.release()
                return found
            value = space.value()
            if not memory.isfinite(value) or (with_grads and not space.is_finite()):
                self.was_finite = False
            elif with_grads:
                found = space.node(value, values)
            elif not made.is_number:
                found = Value(value)
            else:
                found = value if made.kind is float else made.kind(value)
            space.release()
            return found
        return None

    def run_batch(self, arrays: list[Any], count: Int, how: str, disabled: bool) -> Any:
        """The mean, the sum or each of the results; None if something is not finite or cannot be computed, or if rows
        are `left` that no specialization holds for.

        Raises:
            ArgumentError: there is more than one Value an example.
        """
        space: Workspace
        first: Workspace
        self.left, self.partial, self.was_finite, self.was_computed = (), None, True, True
        self.ran, self.shares = None, []
        with_grads, scale = how != "map" and not disabled, 1.0 / count if how == "mean" else 1.0
        spaces, first = [], None  # type: ignore[assignment]
        for made in self.entry.specializations:
            space = Executable.acquire(made)  # by the class: else Cython looks whether a class of Python's has another
            space.begin(count, 0 if first is None else first.strip, with_grads)
            if first is None and space.is_ready(None):
                first = space
            spaces.append(space)
        found = None
        if first is not None:
            found = self._in_strips(spaces, first, arrays, count, how, with_grads, scale)
        for space in spaces:
            space.release()
        return found

    def _in_strips(
        self, spaces: list[Any], first: Workspace, arrays: list[Any], count: Int, how: str, with_grads: bool,
        scale: float,
    ) -> Any:  # fmt: skip
        """The result of a batch, of which each example runs by the first specialization that holds for it. Where rows
        are left, `partial` has the results in an array or, but for `map`, the sum of them as a node.

        What a number is added to does not depend on which specialization a strip was given to first.

        Args:
            spaces: of all specializations.
            first: of the first one that can run.
            arrays: the arguments.
            count: how many examples there are.
            how: as of `run_batch`.
            with_grads: whether derivatives are asked for.
            scale: of their seed.
        """
        entry, made, at = self.entry, first.made, 0
        results = entry.numpy.empty((count, *(made.shape or ()))) if how == "map" else None
        left: list[Any] = []
        while at < count:
            start = at
            if not self.is_split:
                at = first.run_strips(arrays, at, count, with_grads, scale, results)
                if at > start:
                    entry.latest = made
                    if at - start == count:
                        self.ran = made
                    else:
                        self._note(made, range(start, at))
            if at < count:
                end = at + first.strip if at + first.strip < count else count
                if not self._split(spaces, first, arrays, at, end, with_grads, scale, results, left):
                    return None
                at = end
                if count >= made.unlocked_from:
                    memory.let_others()
                    memory.check_signals()
        if self.ran is None and not self.shares:
            self.left = range(count)
            return None
        if results is not None:
            dtype = None if self.shares else made.dtype
            for other, _ in self.shares:
                dtype = other.dtype if dtype is None else entry.numpy.promote_types(dtype, other.dtype)
            found = self._each(results, dtype)
        elif made.is_one:
            found = self._reduced(first.total * scale, spaces if self.ran is None else None, first, with_grads)
        elif left:  # of which one may raise before
            found = None
        else:
            raise ArgumentError(f"{how} needs one Value an example, and the function gives {made.shape}: use map")
        if not left:
            return found
        self.left, self.partial = entry.numpy.concatenate(left), found
        return None

    def _split(
        self, spaces: list[Any], first: Workspace, arrays: list[Any], at: Int, end: Int, with_grads: bool,
        scale: float, results: Any, left: list[Any],
    ) -> bool:  # fmt: skip
        """Run a strip by several specializations; False if that cannot be."""
        made: Executable
        space: Workspace
        numpy, shape, count = self.entry.numpy, first.made.shape or (), end - at
        rows = numpy.arange(at, end) if at else None
        values = numpy.empty((count, *shape)) if results is None else results[at:end]
        is_whole = False
        for space, taken in share(spaces, arrays, rows, count, with_grads, scale, None, values):
            if space is None:
                if taken is None:
                    self.was_computed = False
                    return False
                if len(taken):
                    left.append(at + taken)
                    values[taken] = 0.0
                break
            made = space.made
            if (made.shape or ()) != shape:
                return False
            space.add_grads()
            self.entry.latest = made
            is_whole = space is first and len(taken) == count
            self._note(made, at + taken if at else taken)
        self.is_split = not is_whole
        if results is None and is_whole:
            first.total += first.added(count)
        elif results is None:
            first.total += memory.total(memory.address(values, False, values.shape, 0), count)
        return True

    def _note(self, made: Any, rows: Any) -> None:
        """Note what served some rows; of each specialization those of one strip are enough to compare."""
        for other, _ in self.shares:
            if other is made:
                return
        self.shares.append((made, rows))

    def _each(self, values: Any, dtype: Any) -> Any:
        """The result of each example, of the kind that the function gives, if all are finite."""
        if memory.finite(memory.address(values, False, values.shape, 0), values.size):
            return values if values.dtype == dtype else values.astype(dtype)
        self.was_finite = False
        return None

    def _reduced(self, value: float, spaces: Any, first: Workspace, with_grads: bool) -> Any:
        """A node with this value, and the derivatives of all that ran; or a leaf. None if not all is finite.

        Args:
            value: of the node.
            spaces: of all specializations; None if but the first one ran.
            first: that of the first one.
            with_grads: whether derivatives are asked for.
        """
        space: Workspace
        made: Executable
        self.was_finite = memory.isfinite(value)
        if not with_grads:
            return Value(value) if self.was_finite else None
        if spaces is None:
            first.end()
            self.was_finite = self.was_finite and first.is_finite()
            return first.node(value, NONE) if self.was_finite else None
        known: dict[int, Any] = {}  # the places of the parameters
        operands: list[Any] = []
        sums: list[float] = []
        leaves = True
        for space in spaces:
            if not space.runs:
                continue
            space.end()
            made = space.made
            leaves = leaves and made.leaves
            for n in range(len(made.places)):
                p, place = made.operands[n], n
                if n >= len(operands) or operands[n] is not p:  # nearly always they are the same ones
                    place = known.setdefault(id(p), len(operands))
                    if place == len(operands):
                        operands.append(p)
                        sums.append(0.0)
                sums[place] += space.g[made.places[n]]
        self.was_finite = self.was_finite and memory.isfinite(sum([grad * grad for grad in sums]))
        if not self.was_finite:
            return None
        many: Many = _many(COMPILED, operands, None, leaves)
        many._data = value
        for n in range(len(sums)):
            many._partials[n] = float(sums[n])
        return many


def _length(readers: Sequence[Any]) -> Int:
    reader: ArgumentReader
    count = 0
    for reader in readers:
        count += _length(reader.children) if reader.kind in (ITEMS, KEYED) else reader.kind != FIXED
    return count


def _are_different(things: list[Any]) -> bool:
    """Whether no two of some things are one; False if they are too many to tell."""
    count = len(things)
    if count > FEW:
        return False
    for n in range(count):
        for k in range(n):
            if things[n] is things[k]:
                return False
    return True


# -- a function -------------------------------------------------------------------------------------------------------


@cython.cclass
class CallPath:
    """What a compiled function does first when it is called."""

    function: Any
    runtime: Any

    def begin(self, function: Any, runtime: Any) -> None:
        """Set the function and its fallback."""
        self.function, self.runtime = function, runtime
        self.ones: list[Any] = []  # the entries of single calls that can be read here,
        self.batches: list[Any] = []  # and those of batches
        self.is_eager = False  # whether the function itself serves all calls
        self.uses: Any = 0  # how often an entry was
        self.last: Any = None  # the entry of the last call

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's value for one example, a Value like that of the function itself."""
        disabled = False
        if in_force:
            mode = self.runtime.mode()
            if mode is None:
                return self.runtime.call(args, named)
            disabled = mode
        if self.is_eager:
            return self.function(*args, **named)
        return self.serve(args, named, "", disabled)

    def call_batch(self, args: tuple[Any, ...], named: dict[str, Any], how: str) -> Any:
        """The same for a batch: the mean, the sum, or each of the results."""
        if in_force:
            return self.runtime.call(args, named, how)
        return self.serve(args, named, how, False)

    def serve(self, args: tuple[Any, ...], named: dict[str, Any], how: str, disabled: bool) -> Any:
        """What the specializations give; else the runtime takes over.

        Args:
            args: of the call.
            named: of the call, by name.
            how: empty for one example.
            disabled: whether nobody asks for derivatives.
        """
        entry: CacheEntry
        call: Call
        found, served, must_check, is_eager = None, None, False, False
        for entry in self.batches if how else self.ones:
            call = entry.acquire()
            if call.read(args, named):
                self.last = entry
                self.uses += 1
                entry.used = self.uses
                if entry.is_eager:
                    is_eager = True
                    entry.calls += 1
                else:
                    count = call.count if how else 1
                    if count < entry.least:
                        call.release()
                        break
                    if how:
                        found = call.run_batch(call.arrays, count, how, disabled)
                    else:
                        found = call.run_one(call.arrays, call.values, disabled)
                    if found is None:
                        waits = call.ran is None and entry.examples + 1 < entry.until
                        is_eager = waits and not (how or call.is_narrow)
                    if found is not None or is_eager:
                        entry.calls += 1
                        entry.examples += count
                    if found is not None and call.must_check():
                        served, must_check = call.served(), True
                call.release()
                break
            call.release()
        if is_eager:
            return self.runtime.eager_batch(args, named, how) if how else self.function(*args, **named)
        if found is None:
            return self.runtime.call(args, named, how)
        return self.runtime.check(entry, served, args, named, how, found) if must_check else found
