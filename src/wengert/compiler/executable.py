"""How one recording runs, by machine code or by the functions of its kernel.

Like the engine, this file runs as it stands and is compiled by Cython, with `executable.pxd`.
"""

from __future__ import annotations

from math import prod
from typing import Any

from wengert.compiler import memory
from wengert.compiler.captures import Captures
from wengert.compiler.fused import gather
from wengert.engine import Many, Value, _many
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Int, cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["EVERY", "Executable", "share"]

COMPILED = BY_NAME["compiled"].code
EVERY = 1 << 62  # more examples than there are
HOWS = ("lt", "le", "gt", "ge", "eq", "ne", "is", "within")  # how guards compare: see `memory.compare`


@cython.cclass
class Executable:
    """How a recording runs; it is one, which says what its fields mean.

    Machine code works at addresses: of the inputs, of the parameters and their derivatives, of what it is to fill.
    """

    arity: Any
    both_code: Any
    by: Any
    by_at: Any
    by_count: Any
    count: Any
    forward_code: Any
    gathered: Any
    gathered_at: Any
    inputs: Any
    inputs_at: Any
    is_copied: Any
    dtype: Any
    kernel: Any
    kind: Any
    leaves: Any
    left: Any
    left_at: Any
    lefts: Any
    numbers: Any
    numbers_at: Any
    numpy: Any
    parameters: Any
    reals: Any
    reals_at: Any
    right: Any
    right_at: Any
    rights: Any
    room: Any
    shape: Any
    sides_at: Any
    sides_step: Any
    slopes: Any
    slopes_at: Any
    targets: Any
    targets_at: Any
    wholes: Any
    wholes_at: Any
    work: Any

    def prepare(self, made: Any, numpy: Any) -> None:
        """Make ready to run this recording, which is given as Python sees it."""
        kernel, parameters, own = made.kernel, made.parameters, made.own
        self.kernel, self.parameters, self.shape, self.leaves, self.numpy = (
            kernel,
            parameters,
            made.shape,
            made.leaves,
            numpy,
        )
        self.kind, self.dtype = made.kind, made.dtype
        self.is_number: Any = made.kind is not Value  # on which no Value has a say
        self.captures: Captures = made.captures
        bulk = [numbers.places[numbers.places >= 0] for numbers in made.captures.numbers]
        others = numpy.setdiff1d(numpy.arange(len(parameters)), numpy.concatenate([*bulk, [-1]]))
        self.gathered = tuple([parameters[n] for n in others])
        self.gathered_at = None if len(others) == len(parameters) else others.astype(numpy.int64)
        self.numbers, self.slopes = kernel.numbers, kernel.slopes
        self.numbers_at, self.slopes_at = kernel.numbers.ctypes.data, kernel.slopes.ctypes.data
        self.arity = arity = len(kernel.inputs)
        chosen = [made.extents.get(n, 0) if a.role == "index" else -1 for n, a in enumerate(kernel.inputs)]
        self.bounds: Any = numpy.array(chosen, numpy.int64)  # 0 of integers that choose nothing, -1 of no integers
        self.from_end: Any = numpy.array([n in made.wraps for n in range(arity)], numpy.int64)
        outputs = [(name, a.batched, a.cell_shape) for name, a in kernel.program.outputs.items()]
        outputs += [("", a.batched, a.cell_shape) for a in kernel.wanted]  # the derivatives by inputs
        reals, wholes, inputs = numpy.zeros(arity), numpy.zeros(arity, numpy.int64), numpy.zeros(arity, numpy.int64)
        targets = numpy.zeros(len(outputs), numpy.int64)
        self.reals, self.wholes, self.inputs, self.targets = reals, wholes, inputs, targets
        self.reals_at, self.wholes_at = reals.ctypes.data, wholes.ctypes.data
        self.inputs_at, self.targets_at = inputs.ctypes.data, targets.ctypes.data
        self.kept: Any = [None] * arity
        self.steady: Any = self.kept[:]  # arrays of the path's own, which never move: see `CacheEntry.run_one`
        guards, sides = made.guards
        self.hows: Any = numpy.array([HOWS.index(guard.how) for guard in guards], numpy.int64)
        self.outcomes: Any = numpy.array([guard.outcome for guard in guards], numpy.int64)
        self.lefts, self.rights = numpy.array(sides or numpy.zeros((0, 2)), numpy.int64).T.copy()
        self.left, self.right = [numpy.array([getattr(guard, n) for guard in guards], float) for n in ("left", "right")]
        self.left_at, self.right_at = self.left.ctypes.data, self.right.ctypes.data
        self.outputs = outputs
        self.memory: list[Any] = []
        self.by, self.by_at, self.by_count = numpy.zeros(0), 0, 0
        self.places: Any = numpy.arange(len(parameters), dtype=numpy.int64) if own is None else own.astype(numpy.int64)
        self.operands: Any = parameters if own is None else tuple([parameters[n] for n in own])
        self.is_own: Any = own is None  # whether all parameters are the user's
        self.is_one: Any = made.shape == ()
        self.work = self.sides_at = self.sides_step = 0
        self.room = self.count = 0  # for how many examples there is memory, and how many there were in the last run
        self.results: Any = None
        self.shapes: list[Any] = []  # of the outputs, for the examples that there is memory for
        self.is_given: Any = False  # whether the array of results is somebody else's by now
        self.is_bounded: Any = False  # whether all indices of the last run were in bounds
        self.cells: Any = [a.cell_shape for a in kernel.inputs]
        self.batched: Any = [a.batched for a in kernel.inputs]
        self.least: Any = 0  # for fewer examples than so many the function itself serves
        self.checked: Any = 0  # on how many examples it was compared with the function
        self.widths: Any = numpy.array([prod(a.cell_shape) for a in kernel.inputs], numpy.int64)  # of an example
        self.rows: Any = None  # room for those of so many examples of a batch
        self.row_room: Any = 0
        code = kernel.code
        self.forward_code, self.both_code = (0, 0) if code is None else (code.forward, code.both)
        self.limit: Any = 0 if code is None else EVERY  # from so many examples on the kernel's own functions run

    def stale_capture(self) -> str:
        """Read what is read anew; the name of what is not as it was found, else nothing."""
        return self.captures.stale(self.numbers_at)

    def load(self) -> None:
        """Read the parameters' numbers as they are now, but for those that `stale_capture` reads in bulk."""
        if self.gathered_at is None:
            gather(self.parameters, self.numbers)
            return
        for n in range(len(self.gathered)):
            value: Value = self.gathered[n]
            self.numbers[self.gathered_at[n]] = value._data

    def compute(self, arrays: list[Any], count: Int, slopes: bool, seed: float) -> bool:
        """What `run_on` does, for who is not compiled."""
        return self.run_on(arrays, count, slopes, seed)

    def run_on(self, arrays: list[Any], count: Int, slopes: bool, seed: float) -> bool:
        """Run on some arguments, whether the guards hold or not; False if an index is out of bounds or nothing can be
        computed.

        Args:
            arrays: the arguments: floats, ints, arrays.
            count: how many examples these are.
            slopes: whether derivatives are asked for: of ``seed * out.sum()``.
            seed: see there.
        """
        self.is_bounded = False
        if count >= self.limit:
            return self._computed_by_python(arrays, count, slopes, seed)
        self.is_copied = False
        for n in range(self.arity):
            if not self._point(n, arrays[n], count):
                return False
        if self.is_copied and not self._point_again(arrays, count):
            return False
        self.run_code(self.inputs_at, count, slopes, seed)
        return True

    def run_code(self, inputs: Int, count: Int, slopes: bool, seed: float) -> None:
        """Run machine code on inputs, the addresses of which are at an address; whatever they choose is there."""
        if count > self.room or (count < self.room and self.by_count):  # derivatives by these lie end to end
            self._make_room(count)
        elif self.is_given:
            self._make_output(0)
        self.count = count
        self.results, self.is_bounded = None, True
        memory.call(
            self.both_code if slopes else self.forward_code, count, seed, inputs, self.numbers_at, self.slopes_at,
            self.targets_at, self.work,
        )  # fmt: skip

    def _make_room(self, count: Int) -> None:
        self.room, self.memory = 0, [None] * (len(self.outputs) + 1)
        self.shapes = [(count, *shape) if batched else shape for _, batched, shape in self.outputs]
        sizes = [prod(shape) for (name, _, _), shape in zip(self.outputs, self.shapes, strict=True) if not name]
        self.by_count = sum(sizes)
        self.by = self.numpy.zeros(self.by_count)
        start = self.by_at = memory.address(self.by, False, self.by.shape, 0)
        for n, (name, batched, _) in enumerate(self.outputs):
            if not name:
                self.targets[n] = start
                start += 8 * sizes.pop(0)
                continue
            self._make_output(n)
            if name == "sides":
                self.sides_at = self.targets[n]
                self.sides_step = self.memory[n].size // count if batched else 0
        scratch = self.memory[-1] = self.numpy.zeros(self.kernel.work(count) + 8)
        self.work = (memory.address(scratch, False, scratch.shape, 0) + 63) // 64 * 64
        self.room = count

    def _make_output(self, n: Int) -> None:
        made = self.memory[n] = self.numpy.empty(self.shapes[n])
        self.targets[n] = memory.address(made, False, made.shape, 0)
        self.is_given = False

    def _point(self, n: Int, x: Any, count: Int) -> bool:
        """Put down where machine code finds an input; False if an index is out of bounds."""
        extent = self.bounds[n]
        if extent < 0:
            if type(x) is float or isinstance(x, (float, int)):
                self.reals[n] = x
                self.inputs[n] = self.reals_at + 8 * n
                return True
            return self._point_array(n, x, False, count)
        if type(x) is not int:
            return self._point_array(n, x, True, count)
        try:
            number: int = x
            self.wholes[n] = number
        except OverflowError:
            return False
        if extent == 0 and not memory.is_exact(number):
            return False
        if extent > 0:
            number = self.wholes[n]
            if number < 0 and self.from_end[n]:
                number += extent
            if not 0 <= number < extent:
                return False
            self.wholes[n] = number
        self.inputs[n] = self.wholes_at + 8 * n
        return True

    def _point_array(self, n: Int, x: Any, whole: bool, count: Int) -> bool:
        """Put down where an array lies, if it has the input's shape by now: another thread may have resized it."""
        if x is self.kept[n] and x is self.steady[n] and self.bounds[n] <= 0:
            return True  # it is where it was
        if whole and x.dtype.kind == "f":  # integers beyond all bounds
            return False
        rows = count if self.batched[n] else 0
        at = memory.address(x, whole, self.cells[n], rows)
        if not at:
            x, self.is_copied = self.numpy.array(x, self.numpy.int64 if whole else float, order="C"), True
            at = memory.address(x, whole, self.cells[n], rows)
            if not at:
                return False
        self.kept[n] = x
        size = self.widths[n] * (count if self.batched[n] else 1)
        if self.bounds[n] == 0 and not memory.are_exact(at, size):
            return False
        if self.bounds[n] > 0:  # a copy: what was looked at is what is used
            inside, self.is_copied = self.numpy.empty(size, self.numpy.int64), True
            target = memory.address(inside, True, (size,), 0)
            source = memory.address(x, whole, self.cells[n], rows)
            if not source or not memory.indices(source, target, size, self.bounds[n], self.from_end[n] != 0):
                return False
            at, self.kept[n] = target, inside
        self.inputs[n] = at
        return True

    def _point_again(self, arrays: list[Any], count: Int) -> bool:
        """Put down where the arguments' own arrays lie: to make a copy of one may have let other code run, which may
        have resized another one.
        """
        for n in range(self.arity):
            x = arrays[n]
            if x is self.kept[n]:
                at = memory.address(x, self.bounds[n] >= 0, self.cells[n], count if self.batched[n] else 0)
                if not at:
                    return False
                self.inputs[n] = at
        return True

    def _computed_by_python(self, arrays: list[Any], count: Int, slopes: bool, seed: float) -> bool:
        """The same by the kernel's own functions.

        Nothing can be computed where an operation of the user's own raises, such as a root by `math` of a number below
        0: the program may also compute it for examples of another specialization, or where its result is masked out.
        Whether the function itself raises is for the engine to find out.
        """
        given = list(arrays)
        for n in range(self.arity):
            x = given[n]
            shape = (count, *self.cells[n]) if self.batched[n] else self.cells[n]
            if type(x) is self.numpy.ndarray and x.shape != shape:
                return False  # by now: see `_point_array`
            if self.bounds[n] > 0:
                if not self._point(n, x, count):
                    return False
                given[n] = self.wholes[n] if type(x) is int else self.kept[n].reshape(x.shape)
            elif self.bounds[n] == 0:
                given[n] = ieee.whole(x) if isinstance(x, int) else x.astype(float)
                if not self.numpy.all(abs(given[n]) < 2.0**53):
                    return False
        self.room, self.is_bounded = 0, True
        try:
            with self.numpy.errstate(all="ignore"):
                self.results, by = self.kernel.both(given, seed) if slopes else (self.kernel.forward(given), ())
                if by:
                    self.by = self.numpy.concatenate([self.numpy.asarray(x, float).reshape(-1) for x in by])
                    self.by_at, self.by_count = memory.address(self.by, False, self.by.shape, 0), len(self.by)
                if len(self.hows):
                    self.memory = [self.numpy.ascontiguousarray(self.results["sides"], float)]  # or they are complex
        except Exception:  # an operation of the user's own may raise anything, and so may numbers beyond all bounds
            return False
        if len(self.hows):
            sides = self.memory[0]
            self.sides_at = memory.address(sides, False, sides.shape, 0)
            self.sides_step = sides.size // count if self._is_batched("sides") else 0
        return True

    def _is_batched(self, name: str) -> bool:
        return any(batched for its, batched, _ in self.outputs if its == name)

    def output(self, name: str) -> Any:
        """What the last run gave, as an array that is good until the next one."""
        if self.results is not None:
            return self.results[name]
        kept = zip(self.memory, self.outputs, strict=False)
        return next(array[: self.count] if batched else array for array, (its, batched, _) in kept if its == name)

    def value(self) -> float:
        """The result of the last run on one example."""
        return memory.get(self.targets[0]) if self.results is None else float(self.results["out"])

    def total(self, count: Int) -> float:
        """The sum of the results of the last run on a batch, of one number each."""
        if self.results is not None:
            return float(self.numpy.add.reduce(self.values(count), axis=None))
        return memory.total(self.targets[0], count) if self.outputs[0][1] else count * memory.get(self.targets[0])

    def values(self, count: Int) -> Any:
        """The results of the last run on a batch, in an array of their own."""
        if self.results is not None:
            made = self.numpy.array(self.results["out"], float, order="C")
        elif count == self.room:
            made, self.is_given = self.memory[0], True
        else:
            made = self.output("out").copy()
        shape = (count, *(self.shape or ()))
        if made.shape == shape:
            return made
        return made.reshape(shape) if made.size == prod(shape) else self.numpy.broadcast_to(made, shape).copy()

    def holds(self, row: Int) -> bool:
        """Whether the last run came to the same comparisons as the recorded one on an example."""
        return self._hold(row, 1)

    def _hold(self, row: Int, count: Int) -> bool:
        at = self.sides_at + 8 * row * self.sides_step
        for n in range(len(self.hows)):
            left, right = at + 8 * self.lefts[n], at + 8 * self.rights[n]
            left_step = right_step = self.sides_step
            if self.lefts[n] < 0:
                left, left_step = self.left_at + 8 * n, 0
            if self.rights[n] < 0:
                right, right_step = self.right_at + 8 * n, 0
            if not memory.compare(self.hows[n], left, left_step, right, right_step, count, self.outcomes[n] != 0):
                return False
        return True

    def hold(self, count: Int) -> bool:
        """Whether it came to them on all examples."""
        return self._hold(0, count if self.sides_step else 1)

    def is_finite(self) -> bool:
        """Whether all derivatives of the last run are finite, and their squares too: what is so large is left to the
        engine like infinity.
        """
        if self.is_own:
            total = memory.squares(self.slopes_at, len(self.slopes))
        else:  # of what is read anew there are none
            total = 0.0
            for n in range(len(self.places)):
                total += self.slopes[self.places[n]] * self.slopes[self.places[n]]
        if self.by_count:
            total += memory.squares(self.by_at, self.by_count)
        return memory.isfinite(total)

    def node(self, value: float, values: list[Any]) -> Any:
        """A node with this value, and the derivatives of the last run by the parameters and these Values."""
        many: Many = _many(
            COMPILED, (*self.operands, *values) if values else self.operands, None, self.leaves and not values
        )
        many._data = value
        count = len(self.places)
        for n in range(count):
            many._partials[n] = float(self.slopes[self.places[n]])
        for n in range(len(values)):
            many._partials[count + n] = memory.get(self.by_at + 8 * n)
        return many

    def run_rows(self, arrays: list[Any], places: Any, slopes: bool, seed: float) -> bool:
        """`run_on` for some of the examples of a batch: those at these places."""
        count = len(places)
        if count >= self.limit:
            return self._computed_by_python([x[places] for x in arrays], count, slopes, seed)
        self.is_bounded = False
        at, free = memory.address(places, True, (count,), 0), self._room_for(count)
        for n in range(self.arity):
            x, extent = arrays[n], self.bounds[n]
            source = memory.address(x, extent >= 0, self.cells[n], -1)
            if not source:
                if not self._point_array(n, x[places], extent >= 0, count):
                    return False
                continue
            size = count * self.widths[n]
            if not memory.rows(source, free, at, count, self.widths[n], len(x)):
                return False
            if extent > 0 and not memory.indices(free, free, size, extent, self.from_end[n] != 0):
                return False
            if extent == 0 and not memory.are_exact(free, size):
                return False
            self.inputs[n] = free
            free += 8 * size
        self.run_code(self.inputs_at, count, slopes, seed)
        return True

    def _room_for(self, count: Int) -> Int:
        if count > self.row_room:
            self.rows = self.numpy.empty(count * max(1, sum(self.widths)))
            self.row_room = count
        return memory.address(self.rows, False, self.rows.shape, 0)

    def divide(self, arrays: list[Any], rows: Any, waiting: Any, results: Any) -> Int:
        """Run on some examples, and put the numbers of those that it holds for before those of the others.

        Args:
            arrays: the arguments, of all examples.
            rows: the place of each number among these; None where it is the number.
            waiting: the numbers, in ascending order, as both parts are then.
            results: takes what each comes to; None if nobody asks.

        Returns:
            For how many it holds; -1 if that cannot be computed.
        """
        count, first = len(waiting), 0
        places = waiting if rows is None else rows[waiting]
        if not self.run_rows(arrays, places, False, 1.0):
            inside = self.inside([x[places] for x in arrays], count)
            if len(inside) == count:
                return -1
            waiting[...] = self.numpy.concatenate([waiting[inside], self.numpy.delete(waiting, inside)])
            first = self.divide(arrays, rows, waiting[: len(inside)], results) if len(inside) else 0
            waiting[max(first, 0) :].sort()
            return first
        if results is not None and results.shape[1:] == self.shape:
            results[waiting], self.is_given = self.values(count), False
        at, others = memory.address(waiting, True, (count,), 0), self._room_for(count)
        for row in range(count):
            if self.holds(row):
                memory.copy(at + 8 * row, at + 8 * first, 1)
                first += 1
            else:
                memory.copy(at + 8 * row, others + 8 * (row - first), 1)
        memory.copy(others, at + 8 * first, count - first)
        return first

    def inside(self, arrays: list[Any], count: Int) -> Any:
        """The numbers of the examples of which every index is in bounds."""
        fits = self.numpy.ones(count, bool)
        for n in range(self.arity):
            extent = self.bounds[n]
            if extent > 0:
                low = -extent if self.from_end[n] else 0
                fits &= ((arrays[n] >= low) & (arrays[n] < extent)).reshape(count, -1).all(1)
        return self.numpy.flatnonzero(fits)


def share(
    several: list[Any], arrays: list[Any], rows: Any, count: Int, slopes: bool, seed: float, load: Any = None,
    results: Any = None,
) -> Any:  # fmt: skip
    """Run each of some rows of a batch by the first of several executables that holds for it.

    Args:
        several: in the order in which they are asked.
        arrays: the arguments, of all rows.
        rows: the places of those that are run; None for the first ones.
        count: how many these are.
        slopes: whether derivatives are asked for.
        seed: see `Executable.run_on`.
        load: gives an executable its parameters; None if they are as the Values have them.
        results: see `Executable.divide`.

    Yields:
        An executable that has just run on its rows, and their numbers among `rows`. In the end None, and the numbers of
        those for which none holds; None for these too if something cannot be computed.
    """
    made: Executable
    waiting = None  # all of them
    for made in several:
        if made.captures.stale(made.numbers_at):
            continue
        if load is None:
            made.load()
        else:
            load(made)
        waiting = made.numpy.arange(count) if waiting is None else waiting
        first = made.divide(arrays, rows, waiting, results)
        taken, waiting = waiting[: max(first, 0)], waiting[max(first, 0) :]
        places = taken if rows is None else rows[taken]
        if first < 0 or (first and slopes and not made.run_rows(arrays, places, True, seed)):
            yield None, None
            return
        if first:
            yield made, taken
        if not len(waiting):
            break
    yield None, () if waiting is None else waiting  # of none all are left
