"""The path of a call: from what is passed to a compiled function to the node that it gives.

A `Slot` says what an argument is to be, and a `Plan` runs one recording. A `Served` has the slots of one form of
arguments and its plans, and a `CallPath` has all of those. What none of them knows goes to `dispatch.py`, which alone
records, compares and falls back. Like the engine, this file runs as it stands and is compiled by Cython, with
`callpath.pxd`.

While a call is under way it has the function's one seat. Who finds it taken, another thread or code that the call
itself runs, goes to `dispatch.py`, and from there to the engine; nobody ever waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.compiler import memory
from wengert.compiler.fused import gather
from wengert.compiler.plan import Plan
from wengert.compiler.slot import Slot
from wengert.engine import Many, Value, _many
from wengert.errors import ArgumentError
from wengert.modes import in_force
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Int, cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["CallPath", "Served", "alike"]

COMPILED = BY_NAME["compiled"].code
FIXED, FLOAT, WHOLE, VALUE, NUMBERS, VALUES, ITEMS, KEYED = range(8)  # what a slot is for: see `Slot`
ALIKE = (str, int, bytes)  # equal ones of these are one to a program
SIZES = 31  # so many lengths of counts, with derivatives and without, have a bit each in 64
FEW = 16  # among so many things it is quickly seen whether two are one
NONE: list[Any] = []  # the Values among the arguments of a batch
MISSING = object()  # what stands for an argument that was not passed


@cython.cclass
class Served:
    """The calls with one form of arguments, and the plans that there are for them."""

    batched: Any
    count: Any
    first: Any
    last: Any
    pending: Any
    is_split: Any
    was_finite: Any

    def __init__(self, numpy: Any) -> None:
        self.numpy = numpy
        self.ndarray: Any = numpy.ndarray
        self.specializations: list[Any] = []
        self.calls = 0
        self.was_finite = True  # what the last call came to
        self.pending = False  # whether machine code of a plan is on its way
        self.trusted = 0  # what calls the plans serve: a bit each, by the length of the count in bits, and `slopes`
        self.waiting: Any = ()  # examples of the last batch that no plan holds for
        self.is_split = False  # whether the last batch was shared out among several plans
        self.ran: Any = None  # the plan that held in the last call on one example
        self.slots: list[Any] = []
        self.names: tuple[str, ...] = ()
        self.first = self.last = self.count = 0
        self.batched = False
        self.arrays: list[Any] = []
        self.memory: list[Any] = []
        self.values: list[Any] = []
        self.seen: list[Any] = []

    def open(self, slots: list[Any], names: Sequence[str], first: Int, last: Int, batched: bool) -> None:
        """Say how the arguments are read: the first ones by place alone, from the last on by name alone."""
        self.slots, self.names, self.first, self.last, self.batched = slots, tuple(names), first, last, batched
        self.arrays = [None] * _length(slots)
        self.memory = [None] * len(self.arrays)

    def is_served(self, count: Int, slopes: bool) -> bool:
        """Whether the plans serve the next call, which is not one at which they are compared with the function."""
        if self.pending and self.is_ready():
            return False
        size = 0
        while count >> size:
            size += 1
        following = self.calls + 1
        return size < SIZES and self.trusted >> (2 * size + slopes) & 1 != 0 and following & self.calls != 0

    def is_ready(self) -> bool:
        """Whether there is machine code that a plan does not know of."""
        return any(made.both_code == 0 and made.kernel.code is not None for made in self.specializations)

    def read(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Read the arguments; False if they are not of this form, or this cannot tell."""
        given = len(args)
        if given + len(named) != len(self.slots) or not self.first <= given <= self.last:
            return False
        self.count = -1
        if self.values:
            self.values = []
        if self.seen:
            self.seen = []
        for n in range(len(self.slots)):
            if n < given:
                x = args[n]
            else:
                x = named.get(self.names[n], MISSING)
                if x is MISSING:
                    return False
            if not self._take(self.slots[n], x):
                return False
        return len(self.seen) < 2 or _are_different(self.seen)

    def _take(self, slot: Slot, x: Any) -> bool:
        """Read one argument, or one item of it."""
        kind = slot.kind
        if kind == FLOAT:
            if type(x) is not float:
                if type(x) is not self.numpy.float64:
                    return False
                x = float(x)
            self.arrays[slot.place] = x
            return True
        if kind == WHOLE:
            self.arrays[slot.place] = x
            return type(x) is int
        if slot.is_one:
            self.seen.append(x)
        if kind == VALUE:
            if not isinstance(x, Value):
                return False
            value: Value = x
            self.values.append(x)
            self.arrays[slot.place] = value._data
            return True
        if kind == FIXED:
            return x is slot.want or (type(x) is type(slot.want) and type(x) in ALIKE and x == slot.want)
        if kind == NUMBERS:
            return self._take_numbers(slot, x)
        if type(x) is not slot.want or len(x) != len(slot.children) + slot.size * (kind == VALUES):
            return False
        if kind == VALUES:
            return self._take_values(slot, x)
        if kind == KEYED:
            for n, (key, item) in enumerate(x.items()):
                wanted = slot.keys[n]
                if key is not wanted and not (type(key) is type(wanted) and type(key) in ALIKE and key == wanted):
                    return False
                if not self._take(slot.children[n], item):
                    return False
            return True
        for n in range(len(slot.children)):  # noqa: SIM110  (a generator takes longer than all the rest)
            if not self._take(slot.children[n], x[n]):
                return False
        return True

    def _take_numbers(self, slot: Slot, x: Any) -> bool:
        """Read an array, or nested lists of numbers."""
        if type(x) is self.ndarray:
            if not slot.takes_arrays:
                return False
            if slot.of == "b" or not memory.address(x, slot.whole, slot.shape, self.batched):
                x = slot.widened(x, self.numpy)
                if x is None or not memory.address(x, slot.whole, slot.shape, self.batched):
                    return False
            self.arrays[slot.place] = x
            return not self.batched or self._is_count(len(x))
        if not ieee.COMPILED or slot.of == "b" or not (slot.held or (self.batched and not slot.shape)):
            return False  # interpreted, NumPy is the faster one to read lists
        if not self.batched:
            made = self.memory[slot.place]
        elif type(x) is not list or not self._is_count(len(x)):
            return False
        else:
            made = None
        if made is None:
            shape = (len(x), *slot.shape) if self.batched else slot.shape
            made = self.numpy.empty(shape, self.numpy.int64 if slot.whole else self.numpy.float64)
            slot.at = memory.address(made, slot.whole, slot.shape, self.batched)
            if not self.batched:
                self.memory[slot.place] = made  # and the slot's address is its, from now on
        self.arrays[slot.place] = made
        slot.has_float = False
        end = slot.fill_rows(x) if self.batched else slot.fill(x, 0, slot.at)
        return end != 0 and (slot.whole or slot.has_float)

    def _take_values(self, slot: Slot, x: Any) -> bool:
        numbers = []
        for item in x:
            if not isinstance(item, Value):
                return False
            value: Value = item
            numbers.append(value._data)
        self.values += x
        if type(x) is tuple:
            self.seen += x
        self.arrays[slot.place] = self.numpy.array(numbers)
        return True

    def _is_count(self, count: Int) -> bool:
        if self.count < 0:
            self.count = count
        return self.count == count and count > 0

    # -- the plans ----------------------------------------------------------------------------------------------------

    def one(self, arrays: list[Any], values: list[Any], disabled: bool) -> Any:
        """What `run_one` does, for who is not compiled; so for `batch`."""
        return self.run_one(arrays, values, disabled)

    def batch(self, arrays: list[Any], count: Int, how: str, disabled: bool) -> Any:
        """See `run_batch`."""
        return self.run_batch(arrays, count, how, disabled)

    def run_one(self, arrays: list[Any], values: list[Any], disabled: bool) -> Any:
        """What the plan that holds for an example gives, which `ran` then names; None for the engine to take over."""
        made: Plan
        self.ran, self.was_finite = None, True
        place = 0
        while place < len(self.specializations):  # it may change while what is outside is read
            made = self.specializations[place]
            place += 1
            if not made.is_one or made.outside.changed():
                continue
            gather(made.parameters, made.numbers)
            if arrays is self.arrays:
                made.steady = self.memory
            slopes = not (disabled or made.is_number)
            if not made.run_on(arrays, 1, slopes, 1.0) or not made.holds(0):
                continue
            if place > 1:  # the next call is likely to be of this kind too
                self.specializations.remove(made)
                self.specializations.insert(0, made)
            self.ran = made
            value = made.value()
            if not memory.isfinite(value) or (slopes and not made.is_finite()):
                self.was_finite = False
                return None
            if slopes:
                return made.node(value, values)
            return value if made.is_number else Value(value)
        return None

    def run_batch(self, arrays: list[Any], count: Int, how: str, disabled: bool) -> Any:
        """The mean, the sum or each of the results; None for the engine to take over, or because the plans hold for all
        but those that are then `waiting`.

        Raises:
            ArgumentError: there is more than one Value an example.
        """
        made: Plan
        self.waiting, self.was_finite = (), True
        slopes, scale = how != "map" and not disabled, 1.0 / count if how == "mean" else 1.0
        place = 0
        while place < len(self.specializations) and not self.is_split:
            made = self.specializations[place]
            place += 1
            if made.outside.changed():
                continue
            gather(made.parameters, made.numbers)
            if not made.run_on(arrays, count, slopes, scale) or not Plan.hold(made, count):  # by the class: see `run`
                break
            if how == "map":
                return self._each(made.values(count))
            if not made.is_one:
                raise self._refused(how, made.shape)
            node = made.node(0.0, NONE) if slopes else None
            return self._combined(made.total(count) * scale, node, node is None or made.is_finite())
        found = self._shares(arrays, count, slopes, scale)
        if found is None or len(self.waiting):
            return None
        values, sums, leaves = found
        if how == "map":
            return self._each(values)
        if values.ndim > 1:
            raise self._refused(how, values.shape[1:])
        value = float(self.numpy.add.reduce(values)) * scale
        if not slopes:
            return self._combined(value, None, True)
        many: Many = _many(COMPILED, [p for p, _ in sums], None, leaves)
        for n in range(len(sums)):
            many._partials[n] = float(sums[n][1])
        return self._combined(value, many, memory.isfinite(sum([slope * slope for _, slope in sums])))

    def _each(self, values: Any) -> Any:
        """The result of each example, if all are finite."""
        if memory.finite(memory.address(values, False, values.shape, False), values.size):
            return values
        self.was_finite = False
        return None

    def _combined(self, value: float, node: Any, finite: bool) -> Any:
        """A node with this value, or a leaf, if all is finite."""
        if not finite or not memory.isfinite(value):
            self.was_finite = False
            return None
        if node is None:
            return Value(value)
        many: Many = node
        many._data = value
        return many

    def _refused(self, how: str, shape: Any) -> ArgumentError:
        return ArgumentError(f"{how} needs one Value an example, and the function gives {shape}: use map")

    def _shares(self, arrays: list[Any], count: Int, slopes: bool, seed: float) -> Any:
        """Each example by the plan that holds for it: the values, the parameters with the derivatives by them, whether
        all those are leaves; None if one cannot be computed. Those that are left are `waiting`.
        """
        made: Plan
        waiting, values, leaves = self.numpy.arange(count), None, True
        sums: dict[int, Any] = {}
        for made in [made for made in self.specializations if not made.outside.changed()]:
            gather(made.parameters, made.numbers)
            held = made.holding(arrays, waiting)
            if held is None:
                return None
            taken, waiting, results = waiting[held[0]], waiting[held[1]], held[2]
            if not len(taken):
                continue
            self.is_split = len(taken) < count
            if slopes and not made.run_rows(arrays, taken, True, seed):
                return None
            if values is None:
                values = self.numpy.zeros((count, *results.shape[1:]))
            if results.shape[1:] != values.shape[1:]:
                return None
            values[taken] = results
            if slopes:
                leaves = leaves and made.leaves
                for n in range(len(made.places)):
                    p, slope = made.operands[n], made.slopes[made.places[n]]
                    sums[id(p)] = p, sums.get(id(p), (None, 0.0))[1] + slope
            if not len(waiting):
                break
        self.waiting = waiting
        return values, list(sums.values()), leaves


def _length(slots: Sequence[Any]) -> Int:
    """How many arrays slots make."""
    slot: Slot
    count = 0
    for slot in slots:
        count += _length(slot.children) if slot.kind in (ITEMS, KEYED) else slot.kind != FIXED
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
    is_taken: Any
    passed: Any
    runtime: Any

    def begin(self, function: Any, runtime: Any) -> None:
        """Say what runs, and who takes over."""
        self.function, self.runtime = function, runtime
        self.ones: list[Any] = []  # the forms of single calls that are known here,
        self.batches: list[Any] = []  # and those of batches
        self.direct: list[Any] = []  # how arguments look that go to the function itself: see `alike`
        self.passed = 0  # how many did so; each whose number is a power of two does not
        self.seat: list[Any] = [None]
        self.is_taken = False  # whether somebody has it: so it is for who is compiled, see `take`
        self.last: Any = None  # the form of the last call

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's value for one example, a Value like that of the function itself."""
        disabled = False
        if in_force:
            mode = self.runtime.mode()
            if mode is None:
                return self.runtime.call(args, named)
            disabled = mode
        if self.direct and self.goes_direct(args, named):
            self.passed += 1
            if self.passed & (self.passed - 1):
                return self.function(*args, **named)
        found = self.run(args, named, "", disabled, False)
        return self.runtime.call(args, named) if found is None else found

    def call_batch(self, args: tuple[Any, ...], named: dict[str, Any], how: str) -> Any:
        """The same for a batch: the mean, the sum, or each of the results."""
        found = None
        if not in_force:
            found = self.run(args, named, how, False, False)
        return self.runtime.call(args, named, how) if found is None else found

    def serve(self, args: tuple[Any, ...], named: dict[str, Any], how: str, disabled: bool) -> Any:
        """What a plan gives for a call that is tried out."""
        return self.run(args, named, how, disabled, True)

    def run(self, args: tuple[Any, ...], named: dict[str, Any], how: str, disabled: bool, asked: bool) -> Any:
        """What a plan gives; None if the call is none that plans serve.

        Args:
            args: of the call.
            named: of the call, by name.
            how: empty for one example.
            disabled: whether nobody asks for derivatives.
            asked: whether it is tried out, and not the call itself.
        """
        form: Served
        if not CallPath.take(self):  # by the class: else Cython looks whether a class of Python's has another one
            return None
        try:
            for form in self.batches if how else self.ones:
                if (asked or form.trusted) and form.read(args, named):
                    count, slopes = (form.count, how != "map") if how else (1, True)
                    if not asked:
                        if not form.is_served(count, slopes and not disabled):
                            return None
                        if self.last is not form:
                            self.last = form
                        form.calls += 1
                    if how:
                        found = form.run_batch(form.arrays, count, how, disabled)
                    else:
                        found = form.run_one(form.arrays, form.values, disabled)
                    if found is None and not asked:
                        form.calls -= 1  # it is counted there
                    return found
            return None
        finally:
            CallPath.leave(self)

    def take(self) -> bool:
        """Take the seat, if it is free; it never waits."""
        if ieee.COMPILED:  # no other thread runs between these lines
            is_free = not self.is_taken
            self.is_taken = True
            return is_free
        try:
            self.seat.pop()
        except IndexError:
            return False
        return True

    def leave(self) -> None:
        """Leave the seat; a child that was forked meanwhile has one by now."""
        self.is_taken = False
        if not self.seat:
            self.seat.append(None)

    def goes_direct(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether arguments look like those that go to the function itself."""
        for places, names in self.direct:
            if places is None:  # all do
                return True
            if _looks_like(args, places) and ((not named and not names) or alike((), named)[1] == names):
                return True
        return False


def alike(args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, Any]:
    """What arguments look like from outside: their types, and how long lists are, and of what arrays."""
    return tuple([(type(x), _size(x)) for x in args]), tuple([(n, type(x), _size(x)) for n, x in named.items()])


def _size(x: Any) -> Any:
    kind = type(x)
    if kind is list or kind is tuple or kind is dict or kind is str:
        return len(x)
    return x.dtype if kind.__module__ == "numpy" and hasattr(kind, "dtype") else None


def _looks_like(args: tuple[Any, ...], places: tuple[Any, ...]) -> bool:
    if len(args) != len(places):
        return False
    for n in range(len(args)):
        x = args[n]
        kind, size = places[n]
        if type(x) is not kind or (size is not None and _size(x) != size):
            return False
    return True
