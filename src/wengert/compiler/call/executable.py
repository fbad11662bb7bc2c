"""How one recording runs, by machine code or by the functions of its kernel.

An `Executable` does not change while it runs: each run takes a `Workspace` of it, which holds all that is written.

Like the engine, this file runs as it stands and is compiled by Cython, with `executable.pxd`.
"""

from __future__ import annotations

from math import prod
from typing import Any

from wengert.compiler import policy
from wengert.compiler.call import memory
from wengert.compiler.call.captures import Captures
from wengert.compiler.call.fused import SavedCall, gather, results_of
from wengert.engine import Many, Value, _many
from wengert.errors import OperationError
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Int, cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["EVERY", "Executable", "Workspace", "share"]

COMPILED = BY_NAME["compiled"].code
EVERY = 1 << 62  # more examples than there are
UNSEEN, READY, STALE = range(3)  # what is known of a workspace's captures, while a batch runs
HOWS = ("lt", "le", "gt", "ge", "eq", "ne", "is", "within")  # how guards compare: see `memory.compare`


@cython.cclass
class Executable:
    """How a recording runs; it is one, which says what its fields mean.

    Threads share it, and the code that a run itself calls: a run works in a `Workspace`, of which there are as many as
    there ever were runs at once. One that is in the pool is at rest, in a forked child too.
    """

    arity: Any
    forward_backward_code: Any
    dtype: Any
    forward_code: Any
    gathered: Any
    gathered_at: Any
    kernel: Any
    kind: Any
    leaves: Any
    left: Any
    left_at: Any
    lefts: Any
    numpy: Any
    parameters: Any
    right: Any
    right_at: Any
    rights: Any
    shape: Any

    def bind(self, made: Any, numpy: Any) -> None:
        """Make ready to run this recording, which is given as Python sees it."""
        kernel, parameters, own = made.kernel, made.parameters, made.own
        self.kernel, self.parameters, self.shape, self.leaves = kernel, parameters, made.shape, made.leaves
        self.numpy, self.kind, self.dtype = numpy, made.kind, made.dtype
        self.is_number: Any = made.kind is not Value  # on which no Value has a say
        self.captures: Captures = made.captures
        others = numpy.setdiff1d(numpy.arange(len(parameters)), made.captures.read())
        self.gathered = tuple([parameters[n] for n in others])
        self.gathered_at = None if len(others) == len(parameters) else others.astype(numpy.int64)
        self.arity = arity = len(kernel.inputs)
        chosen = [made.extents.get(n, 0) if a.role == "index" else -1 for n, a in enumerate(kernel.inputs)]
        self.chooses: Any = max(chosen, default=0) > 0
        self.bounds: Any = numpy.array(chosen, numpy.int64)  # 0 of integers that choose nothing, -1 of no integers
        self.from_end: Any = numpy.array([n in made.wraps for n in range(arity)], numpy.int64)
        outputs = [(name, a.batched, a.cell_shape) for name, a in kernel.program.outputs.items()]
        outputs += [("", a.batched, a.cell_shape) for a in kernel.wanted]  # the derivatives with respect to inputs
        self.outputs: Any = outputs
        self.gives_rows: Any = outputs[0][1]  # whether each example of a batch has a result of its own,
        self.width: Any = prod(outputs[0][2])  # of so many numbers
        guards, sides = made.guards
        self.hows: Any = numpy.array([HOWS.index(guard.how) for guard in guards], numpy.int64)
        self.outcomes: Any = numpy.array([guard.outcome for guard in guards], numpy.int64)
        self.guard_count: Any = len(guards)
        self.lefts, self.rights = numpy.array(sides or numpy.zeros((0, 2)), numpy.int64).T.copy()
        self.left, self.right = [numpy.array([getattr(guard, n) for guard in guards], float) for n in ("left", "right")]
        self.left_at, self.right_at = self.left.ctypes.data, self.right.ctypes.data
        self.places: Any = numpy.arange(len(parameters), dtype=numpy.int64) if own is None else own.astype(numpy.int64)
        self.operands: Any = parameters if own is None else tuple([parameters[n] for n in own])
        self.is_own: Any = own is None  # whether all parameters are the user's
        self.is_one: Any = made.shape == ()
        structure = made.structure
        self.build: Any = None if structure is None else structure.build
        self.needs_leaves: Any = structure is not None and structure.needs_leaves
        self.needs_numbers: Any = structure is not None and structure.needs_numbers
        self.computed: Any = numpy.zeros(0, numpy.uint8) if structure is None else structure.computed
        self.cells: Any = [a.cell_shape for a in kernel.inputs]
        self.batched: Any = [a.batched for a in kernel.inputs]
        self.widths: Any = numpy.array([prod(a.cell_shape) for a in kernel.inputs], numpy.int64)  # of an example
        self.row: Any = sum([prod(a.cell_shape) for a in kernel.inputs])  # numbers in all inputs of an example
        code = kernel.code
        self.forward_code = 0 if code is None else code.forward
        self.forward_backward_code = 0 if code is None else code.forward_backward
        self.limit: Any = 0 if code is None else EVERY  # from so many examples on the kernel's own functions run
        self.unlocked_from: Any = policy.unlocked_from(made.nodes)  # from so many on other threads run meanwhile,
        self.pause: Any = policy.pause(made.nodes, self.row)  # and after so many it is seen to what else there is to do
        given = self.row + sum([prod(cell) for _, _, cell in outputs])
        self.strip: Any = policy.strip((kernel.work(1024) - kernel.work(0)) // 1024 + given)  # examples at once,
        self.python_strip: Any = policy.python_strip(kernel.row() + given) if kernel.is_cut else EVERY
        self.least: Any = 0  # for fewer examples than so many the function itself serves
        self.checked: Any = 0  # on how many examples it was compared with the function
        self.pool: list[Any] = []

    def acquire(self) -> Workspace:
        """A workspace that is nobody else's; who does not `release` it leaves it to the collector."""
        space = memory.pop(self.pool)
        return Workspace(self) if space is None else space

    def buffers(self) -> Any:
        """The parameters as they are now, in buffers of their own."""
        space = Workspace(self)
        space.stale_capture()
        space.load()
        return space.buffers

    def pull_back(self, arrays: list[Any], params: Any, cotangents: Any) -> Any:
        """The derivatives of several results, weighted by cotangents, with respect to the parameters and the Values
        among the arguments.

        Args:
            arrays: the arguments.
            params: the parameters' numbers.
            cotangents: one for each result.
        """
        with self.acquire() as space:
            space.params[...] = params
            space.weigh(cotangents)
            if not space.run(arrays, 1, True, 1.0):  # the rule of an operation of the user's has raised
                raise OperationError("the derivatives of a compiled function's results cannot be computed again")
            grads = space.grads if self.is_own else space.grads[self.numpy.asarray(self.places)]
            return self.numpy.concatenate([grads, space.input_grads])

    def stale_capture(self) -> str:
        """The name of what is not as it was found outside of the function, else nothing."""
        with self.acquire() as space:
            return space.stale_capture()


@cython.cclass
class Workspace:
    """What a run of an executable writes.

    Machine code works at addresses: of the inputs, of the parameters and their derivatives, of what it is to fill.

    Attributes:
        made: the executable.
        params: the parameters' numbers, end to end.
        grads: the derivatives with respect to them.
        input_grads: those with respect to inputs, end to end.
        is_bounded: whether all indices of the last run were in bounds.
    """

    count: Any
    grads_at: Any
    input_grads: Any
    input_grads_at: Any
    input_grads_count: Any
    inputs: Any
    inputs_at: Any
    is_copied: Any
    params_at: Any
    reals: Any
    reals_at: Any
    room: Any
    sides_at: Any
    sides_step: Any
    targets: Any
    targets_at: Any
    ints: Any
    ints_at: Any
    work: Any

    def __init__(self, made: Executable) -> None:
        self.made: Executable = made
        numpy, arity = made.numpy, made.arity
        self.buffers: Any = made.kernel.buffers()
        self.params: Any = self.buffers.params
        self.grads: Any = self.buffers.grads
        self.x: Any = self.params  # as C sees them
        self.g: Any = self.grads
        self.params_at, self.grads_at = self.params.ctypes.data, self.grads.ctypes.data
        reals, ints, inputs = numpy.zeros(arity), numpy.zeros(arity, numpy.int64), numpy.zeros(arity + 1, numpy.int64)
        targets = numpy.zeros(len(made.outputs), numpy.int64)
        self.reals, self.ints, self.inputs, self.targets = reals, ints, inputs, targets
        self.reals_at, self.ints_at = reals.ctypes.data, ints.ctypes.data
        self.inputs_at, self.targets_at = inputs.ctypes.data, targets.ctypes.data
        cotangents = numpy.zeros(len(made.computed))  # of several results, behind the inputs
        self.cotangents: Any = cotangents
        inputs[arity] = cotangents.ctypes.data
        self.held: Any = [None] * arity
        self.steady: Any = self.held[:]  # arrays of a call's own, which never move: see `Call.run_one`
        self.memory: list[Any] = []
        self.input_grads, self.input_grads_at, self.input_grads_count = numpy.zeros(0), 0, 0
        self.work = self.sides_at = self.sides_step = 0
        self.room = self.count = 0  # for how many examples there is memory, and how many there were in the last run
        self.results: Any = None
        self.is_bounded: Any = False
        self.rows: Any = None  # room for copies of inputs, those of so many examples
        self.row_room: Any = 0
        self.by_python: Any = False  # of a batch: whether the kernel's own functions run,
        self.strip: Any = 0  # how many examples run at once,
        self.runs: Any = 0  # how often some ran whose guards passed,
        self.total: Any = 0.0  # the sum of their results,
        self.sums: Any = None  # and those of the derivatives, where they are more than one strip
        self.sums_at: Any = 0
        self.state: int = UNSEEN

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give it back."""
        memory.push(self.made.pool, self)

    def stale_capture(self) -> str:
        """Read what is read anew; the name of what is not as it was found, else nothing."""
        return self.made.captures.stale(self.params_at)

    def load(self) -> None:
        """Read the parameters' numbers as they are now, but for those that `stale_capture` reads."""
        made = self.made
        if made.gathered_at is None:
            gather(made.parameters, self.x)
            return
        for n in range(len(made.gathered)):
            value: Value = made.gathered[n]
            self.x[made.gathered_at[n]] = value._data

    def run(self, arrays: list[Any], count: Int, with_grads: bool, seed: float) -> bool:
        """Run on some arguments, whether the guards hold or not; False if an index is out of bounds or nothing can be
        computed.

        Args:
            arrays: the arguments: floats, ints, arrays.
            count: how many examples these are.
            with_grads: whether derivatives are asked for: of ``seed * out.sum()``.
            seed: see there.
        """
        made = self.made
        self.is_bounded = False
        if made.build is not None:
            seed = self.cotangents[0]  # what one result alone is weighted by; several are by the array of all
        if count >= made.limit:
            return self._computed_by_python(arrays, count, with_grads, seed)
        is_unlocked = count >= made.unlocked_from
        if count != self.room or is_unlocked:
            self._reserve(count, is_unlocked)  # before anything is pointed at, for this may let other code run
        self.is_copied = False
        for n in range(made.arity):
            if not self._point(n, arrays[n], count):
                return False
        if self.is_copied and not self._point_again(arrays, count):
            return False
        if is_unlocked:
            self._copy_inputs(count)
        self.run_code(self.inputs_at, count, with_grads, seed)
        return True

    def weigh(self, cotangents: Any) -> None:
        """Set what several results are weighted by in the sum that the next derivatives are of."""
        for n in range(len(self.cotangents)):
            self.cotangents[n] = cotangents[n]

    def run_code(self, inputs: Int, count: Int, with_grads: bool, seed: float) -> None:
        """Run machine code on inputs, the addresses of which are at an address; whatever they choose is there, and
        where other threads run meanwhile they change none of it.
        """
        made = self.made
        if count != self.room:
            self._reserve(count, False)
        self.count = count
        self.results, self.is_bounded = None, True
        code = made.forward_backward_code if with_grads else made.forward_code
        memory.call(
            code, count, seed, inputs, self.params_at, self.grads_at, self.targets_at, self.work,
            count >= made.unlocked_from,
        )  # fmt: skip

    def _reserve(self, count: Int, with_rows: bool) -> None:
        """Have room for so many examples, with rows for copies of the inputs too."""
        if with_rows:
            self._room_for(count)
        if count > self.room or (count < self.room and self.input_grads_count):  # they lie end to end
            self._make_room(count)

    def _make_room(self, count: Int) -> None:
        made, numpy = self.made, self.made.numpy
        self.room, self.memory = 0, [None] * (len(made.outputs) + 1)
        shapes = [(count, *shape) if batched else shape for _, batched, shape in made.outputs]
        sizes = [prod(shape) for (name, _, _), shape in zip(made.outputs, shapes, strict=True) if not name]
        self.input_grads_count = sum(sizes)
        self.input_grads = numpy.zeros(self.input_grads_count)
        start = self.input_grads_at = memory.address(self.input_grads, False, self.input_grads.shape, 0)
        for n, (name, batched, _) in enumerate(made.outputs):
            if not name:
                self.targets[n] = start
                start += 8 * sizes.pop(0)
                continue
            left = self.memory[n] = numpy.empty(shapes[n])
            self.targets[n] = memory.address(left, False, left.shape, 0)
            if name == "sides":
                self.sides_at = self.targets[n]
                self.sides_step = left.size // count if batched else 0
        scratch = self.memory[-1] = numpy.zeros(made.kernel.work(count) + 8)
        self.work = (memory.address(scratch, False, scratch.shape, 0) + 63) // 64 * 64
        self.room = count

    def _point(self, n: Int, x: Any, count: Int) -> bool:
        """Put down where machine code finds an input; False if an index is out of bounds."""
        made = self.made
        extent = made.bounds[n]
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
            self.ints[n] = number
        except OverflowError:
            return False
        if extent == 0 and not memory.is_exact(number):
            return False
        if extent > 0:
            number = self.ints[n]
            if number < 0 and made.from_end[n]:
                number += extent
            if not 0 <= number < extent:
                return False
            self.ints[n] = number
        self.inputs[n] = self.ints_at + 8 * n
        return True

    def _point_array(self, n: Int, x: Any, whole: bool, count: Int) -> bool:
        """Put down where an array lies, if it has the input's shape by now: another thread may have resized it."""
        made, numpy = self.made, self.made.numpy
        if x is self.held[n] and x is self.steady[n] and made.bounds[n] <= 0:
            return True  # it is where it was
        if whole and x.dtype.kind == "f":  # integers beyond all bounds
            return False
        rows = count if made.batched[n] else 0
        at = memory.address(x, whole, made.cells[n], rows)
        if not at:
            x, self.is_copied = numpy.array(x, numpy.int64 if whole else float, order="C"), True
            at = memory.address(x, whole, made.cells[n], rows)
            if not at:
                return False
        self.held[n] = x
        size = made.widths[n] * (count if made.batched[n] else 1)
        if made.bounds[n] == 0 and not memory.are_exact(at, size):
            return False
        if made.bounds[n] > 0:  # a copy: what was looked at is what is used
            inside, self.is_copied = numpy.empty(size, numpy.int64), True
            target = memory.address(inside, True, (size,), 0)
            source = memory.address(x, whole, made.cells[n], rows)
            if not source or not memory.indices(source, target, size, made.bounds[n], made.from_end[n] != 0):
                return False
            at, self.held[n] = target, inside
        self.inputs[n] = at
        return True

    def _point_again(self, arrays: list[Any], count: Int) -> bool:
        """Put down where the arguments' own arrays lie: to make a copy of one may have let other code run, which may
        have resized another one.
        """
        made = self.made
        for n in range(made.arity):
            x = arrays[n]
            if x is self.held[n]:
                at = memory.address(x, made.bounds[n] >= 0, made.cells[n], count if made.batched[n] else 0)
                if not at:
                    return False
                self.inputs[n] = at
        return True

    def _copy_inputs(self, count: Int) -> None:
        """Copy what another thread might change or free while the code runs, in rows that there is room for."""
        made = self.made
        free = self._room_for(count)
        for n in range(made.arity):
            if self.held[n] is not None:
                size = made.widths[n] * (count if made.batched[n] else 1)
                memory.copy(self.inputs[n], free, size)
                self.inputs[n] = free
                self.held[n] = None  # it does not lie there
                free += 8 * size

    def _computed_by_python(self, arrays: list[Any], count: Int, with_grads: bool, seed: float) -> bool:
        """The same by the kernel's own functions.

        Nothing can be computed where an operation of the user's own raises, such as a root by `math` of a number below
        0: the program may also compute it for examples of another specialization, or where its result is masked out.
        Whether the function itself raises is for the engine to find out.
        """
        made, numpy = self.made, self.made.numpy
        given = list(arrays)
        for n in range(made.arity):
            x = given[n]
            shape = (count, *made.cells[n]) if made.batched[n] else made.cells[n]
            if type(x) is numpy.ndarray and x.shape != shape:
                return False  # by now: see `_point_array`
            if made.bounds[n] > 0:
                if not self._point(n, x, count):
                    return False
                given[n] = self.ints[n] if type(x) is int else self.held[n].reshape(x.shape)
            elif made.bounds[n] == 0:
                given[n] = ieee.whole(x) if isinstance(x, int) else x.astype(float)
                if not numpy.all(abs(given[n]) < 2.0**53):
                    return False
        self.room, self.is_bounded = 0, True
        try:
            with numpy.errstate(all="ignore"):
                if with_grads:
                    out = made.kernel.program.outputs["out"]
                    weights = seed if made.build is None else numpy.array(self.cotangents).reshape(out.shape)
                    self.results, by = made.kernel.forward_backward(given, weights, self.buffers)
                else:
                    self.results, by = made.kernel.forward(given, self.buffers), ()
                if by:
                    self.input_grads = numpy.concatenate([numpy.asarray(x, float).reshape(-1) for x in by])
                    self.input_grads_at = memory.address(self.input_grads, False, self.input_grads.shape, 0)
                    self.input_grads_count = len(self.input_grads)
                if made.guard_count:
                    self.memory = [numpy.ascontiguousarray(self.results["sides"], float)]  # or they are complex
        except Exception:  # an operation of the user's own may raise anything, and so may numbers beyond all bounds
            return False
        if made.guard_count:
            sides = self.memory[0]
            self.sides_at = memory.address(sides, False, sides.shape, 0)
            self.sides_step = sides.size // count if self._is_batched("sides") else 0
        return True

    def _is_batched(self, name: str) -> bool:
        return any(batched for its, batched, _ in self.made.outputs if its == name)

    def output(self, name: str) -> Any:
        """What the last run gave, as an array that is good until the next one."""
        if self.results is not None:
            return self.results[name]
        kept = zip(self.memory, self.made.outputs, strict=False)
        return next(array[: self.count] if batched else array for array, (its, batched, _) in kept if its == name)

    def value(self) -> float:
        """The result of the last run on one example."""
        return memory.get(self.targets[0]) if self.results is None else float(self.results["out"])

    def added(self, count: Int) -> float:
        """The sum of the results of the last run on a batch, of one number each."""
        if self.results is not None:
            return float(self.made.numpy.add.reduce(self.values(count), axis=None))
        return memory.total(self.targets[0], count) if self.made.gives_rows else count * memory.get(self.targets[0])

    def values(self, count: Int) -> Any:
        """The results of the last run on a batch, in an array that is good until the next one."""
        made, shape = self.made.numpy.asarray(self.output("out"), float), (count, *(self.made.shape or ()))
        if made.shape == shape:
            return made
        return made.reshape(shape) if made.size == prod(shape) else self.made.numpy.broadcast_to(made, shape)

    def guards_pass(self, row: Int, count: Int) -> bool:
        """Return True if the last run came to the same comparisons as the recorded one on so many examples, from one
        on.
        """
        step = self.sides_step
        at = self.sides_at + 8 * row * step
        count = count if step else 1
        for n in range(self.made.guard_count):
            left, left_step = at + 8 * self.made.lefts[n], step
            right, right_step = at + 8 * self.made.rights[n], step
            if self.made.lefts[n] < 0:
                left, left_step = self.made.left_at + 8 * n, 0
            if self.made.rights[n] < 0:
                right, right_step = self.made.right_at + 8 * n, 0
            how, outcome = self.made.hows[n], self.made.outcomes[n] != 0
            if not memory.compare(how, left, left_step, right, right_step, count, outcome):
                return False
        return True

    def is_finite(self) -> bool:
        """Whether all derivatives of the last run are finite, and their squares too: what is so large is left to the
        engine like infinity.
        """
        made = self.made
        if made.is_own:
            total = memory.squares(self.grads_at, len(self.g))
        else:  # with respect to what is read anew there are none
            total = 0.0
            for n in range(len(made.places)):
                total += self.g[made.places[n]] * self.g[made.places[n]]
        if self.input_grads_count:
            total += memory.squares(self.input_grads_at, self.input_grads_count)
        return memory.isfinite(total)

    def node(self, value: float, values: list[Any]) -> Any:
        """A node with this value, and the last run's derivatives with respect to the parameters and these Values."""
        made = self.made
        many: Many = _many(
            COMPILED, (*made.operands, *values) if values else made.operands, None, made.leaves and not values
        )
        many._data = value
        count = len(made.places)
        for n in range(count):
            many._partials[n] = float(self.g[made.places[n]])
        for n in range(len(values)):
            many._partials[count + n] = memory.get(self.input_grads_at + 8 * n)
        return many

    def several(self, arrays: list[Any], values: list[Any], with_grads: bool) -> Any:
        """The result of the last run as the function gives it; None if a number in it is not finite.

        Args:
            arrays: the arguments.
            values: the Values among them.
            with_grads: whether derivatives are asked for.
        """
        made = self.made
        count, numbers = len(made.computed), None
        at = self.targets[0] if self.results is None else 0
        if at == 0 or made.needs_numbers:
            numbers = self.values(1).reshape(-1).copy()
            at = memory.address(numbers, False, numbers.shape, 0)
        if not memory.finite(at, count):
            return None
        leaves: list[Any] = []
        if with_grads:
            kept = [x.copy() if isinstance(x, made.numpy.ndarray) else x for x in arrays]
            operands = (*made.operands, *values) if values else made.operands
            saved = SavedCall(made, kept, self.params.copy(), count)
            leaves = results_of(saved, at, made.computed, operands, made.leaves and not values)
        elif made.needs_leaves:
            for n in range(count):
                number: float = memory.get(at + 8 * n)
                leaves.append(Value(number) if made.computed[n] else number)
        return made.build(leaves, values, numbers)

    # -- batches ------------------------------------------------------------------------------------------------------

    def begin(self, count: Int, strip: Int, with_grads: bool) -> None:
        """Run on so many examples from now on: so many at once, or for 0 as many as stay in the cache."""
        made = self.made
        self.by_python = count >= made.limit  # whatever is cut
        strip = strip or (made.python_strip if self.by_python else made.strip)
        self.strip = strip if strip < count else count
        self.runs, self.total, self.state, self.sums_at = 0, 0.0, UNSEEN, 0
        if with_grads and self.strip < count:
            if self.sums is None:
                self.sums = made.numpy.empty(len(self.g))
            self.sums[...] = 0.0
            self.sums_at = memory.address(self.sums, False, self.sums.shape, 0)

    def is_ready(self, load: Any) -> bool:
        """Look at what is read outside, and read the parameters, once for a batch; False if something has changed.

        Args:
            load: gives it its parameters; None if they are as the Values have them.
        """
        if self.state == UNSEEN:
            self.state = STALE if self.stale_capture() else READY
            if self.state == READY:
                if load is None:
                    self.load()
                else:
                    load(self)
        return bool(self.state == READY)

    def run_strips(self, arrays: list[Any], start: Int, count: Int, with_grads: bool, seed: float, results: Any) -> Int:
        """Run on the examples of a batch from one on, strip by strip, as long as the guards pass.

        Args:
            arrays: the arguments, of all examples.
            start: the example.
            count: how many there are.
            with_grads: see `run`.
            seed: see there.
            results: takes what each comes to; None if their sum is asked for, which is added to the `total`.

        Returns:
            The example up to which they pass.
        """
        if self.by_python:
            return self._strips_by_python(arrays, start, count, with_grads, seed, results)
        made = self.made
        unlocked, results_at = count >= made.unlocked_from, 0
        if results is not None and made.gives_rows and results.size == count * made.width:
            results_at = memory.address(results, False, results.shape, 0)
        at_once = made.pause if unlocked else count  # examples between two looks at what else there is to do
        if at_once < self.strip or (results is not None and not results_at):
            at_once = self.strip
        at_once = at_once // self.strip * self.strip
        code = made.forward_backward_code if with_grads else made.forward_code
        self._reserve(self.strip, False)
        while start < count:
            end = start + at_once if start + at_once < count else count
            if not self._point_rows(arrays, start, end, count, unlocked):
                others = self._row_by_row(arrays, count)
                if others is not arrays:
                    arrays = others
                elif at_once > self.strip:
                    at_once = self.strip  # perhaps it is in one strip alone
                else:
                    return start
                continue
            self.results, self.is_bounded = None, True
            if unlocked:
                with cython.nogil:
                    at = self._strips(start, end, code, seed, results_at, True)
                memory.check_signals()
            else:
                at = self._strips(start, end, code, seed, results_at, False)
            if at < end:
                return at
            if results is not None and not results_at:
                results[start:end] = self.values(end - start)
            start = end
        return start

    def _strips_by_python(
        self, arrays: list[Any], start: Int, count: Int, with_grads: bool, seed: float, results: Any
    ) -> Int:
        """The same by the kernel's own functions."""
        while start < count:
            end = start + self.strip if start + self.strip < count else count
            given = arrays if end - start == count else [x[start:end] for x in arrays]
            if not self._computed_by_python(given, end - start, with_grads, seed):
                return start
            if not self.guards_pass(0, end - start):
                return start
            if results is None:
                self.total += self.added(end - start)
            else:
                results[start:end] = self.values(end - start)
            self.add_grads()
            start = end
        return start

    def _strips(self, at: Int, end: Int, code: Int, seed: float, results_at: Int, unlocked: bool) -> Int:
        """Run machine code on strips of the examples that are pointed at; where the guards do not pass."""
        left_at = self.targets[0]
        while at < end:
            count = end - at if end - at < self.strip else self.strip
            if results_at:
                self.targets[0] = results_at + 8 * at * self.made.width
            memory.call(
                code, count, seed, self.inputs_at, self.params_at, self.grads_at, self.targets_at, self.work,
                unlocked and not ieee.COMPILED,  # where the lock is released for all strips
            )  # fmt: skip
            if not self.guards_pass(0, count):
                break
            if not results_at:
                if self.made.gives_rows:
                    self.total += memory.total(self.targets[0], count)
                else:
                    self.total += count * memory.get(self.targets[0])
            self.add_grads()
            for n in range(self.made.arity):
                self.inputs[n] += 8 * count * self.made.widths[n]
            self.count = count
            at += count
        self.targets[0] = left_at
        return at

    def add_grads(self) -> None:
        """Add the derivatives of the last run, on some examples of a batch."""
        self.runs += 1
        if self.sums_at:
            memory.accumulate(self.grads_at, self.sums_at, len(self.g))

    def end(self) -> None:
        """The batch is over: the derivatives are those of all examples."""
        if self.sums_at:
            memory.copy(self.sums_at, self.grads_at, len(self.g))

    def _point_rows(self, arrays: list[Any], start: Int, end: Int, count: Int, with_copies: bool) -> bool:
        """Put down where some examples of a batch lie, or copies of them; False if they do not lie row after row, or an
        index is out of bounds.
        """
        made = self.made
        rows = end - start
        free = self._room_for(rows) if with_copies or made.chooses else 0
        for n in range(made.arity):
            extent, size = made.bounds[n], rows * made.widths[n]
            at = memory.address(arrays[n], extent >= 0, made.cells[n], count)
            if not at:
                return False
            at += 8 * start * made.widths[n]
            if with_copies or extent > 0:  # what is looked at is what is used
                memory.copy(at, free, size)
                at = free
                free += 8 * size
            if extent > 0 and not memory.indices(at, at, size, extent, made.from_end[n] != 0):
                return False
            if extent == 0 and not memory.are_exact(at, size):
                return False
            self.held[n] = None
            self.inputs[n] = at
        return True

    def _row_by_row(self, arrays: list[Any], count: Int) -> list[Any]:
        """The arguments with copies of those that do not lie row after row; the list itself if all do, or cannot."""
        made, numpy = self.made, self.made.numpy
        others = arrays
        for n in range(made.arity):
            x, whole = arrays[n], made.bounds[n] >= 0
            if not memory.address(x, whole, made.cells[n], count) and not (whole and x.dtype.kind == "f"):
                copied = numpy.array(x, numpy.int64 if whole else float, order="C")
                if copied.shape == (count, *made.cells[n]):
                    others = list(others) if others is arrays else others
                    others[n] = copied
        return others

    def run_rows(self, arrays: list[Any], places: Any, with_grads: bool, seed: float) -> bool:
        """`run` for some of the examples of a batch: those at these places."""
        made = self.made
        count = len(places)
        if self.by_python:
            return self._computed_by_python([x[places] for x in arrays], count, with_grads, seed)
        self.is_bounded = False
        self._reserve(count, True)
        at, free = memory.address(places, True, (count,), 0), self._room_for(count)
        for n in range(made.arity):
            x, extent = arrays[n], made.bounds[n]
            size = count * made.widths[n]
            source = memory.address(x, extent >= 0, made.cells[n], -1)
            if not source:
                if extent >= 0 and x.dtype.kind == "f":  # integers beyond all bounds
                    return False
                x = made.numpy.array(x[places], made.numpy.int64 if extent >= 0 else float, order="C")
                source = memory.address(x, extent >= 0, made.cells[n], count)
                if not source:
                    return False
                memory.copy(source, free, size)
            elif not memory.rows(source, free, at, count, made.widths[n], len(x)):
                return False
            if extent > 0 and not memory.indices(free, free, size, extent, made.from_end[n] != 0):
                return False
            if extent == 0 and not memory.are_exact(free, size):
                return False
            self.held[n] = None
            self.inputs[n] = free
            free += 8 * size
        self.run_code(self.inputs_at, count, with_grads, seed)
        return True

    def _room_for(self, count: Int) -> Int:
        """Where there are rows for copies of the inputs of so many examples."""
        if count > self.row_room:
            self.rows = self.made.numpy.empty(count * max(1, self.made.row))
            self.row_room = count
        return memory.address(self.rows, False, self.rows.shape, 0)

    def divide(self, arrays: list[Any], rows: Any, waiting: Any, results: Any) -> Int:
        """Run on some examples, and put the numbers of those whose guards pass before those of the others.

        Args:
            arrays: the arguments, of all examples.
            rows: the place of each number among these; None where it is the number.
            waiting: the numbers, in ascending order, as both parts are then.
            results: takes what each comes to; None if nobody asks.

        Returns:
            For how many they pass; -1 if that cannot be computed.
        """
        numpy = self.made.numpy
        count, first = len(waiting), 0
        places = waiting if rows is None else rows[waiting]
        if not self.run_rows(arrays, places, False, 1.0):
            inside = self.inside([x[places] for x in arrays], count)
            if len(inside) == count:
                return -1
            waiting[...] = numpy.concatenate([waiting[inside], numpy.delete(waiting, inside)])
            first = self.divide(arrays, rows, waiting[: len(inside)], results) if len(inside) else 0
            waiting[max(first, 0) :].sort()
            return first
        if results is not None and results.shape[1:] == self.made.shape:
            results[waiting] = self.values(count)
        at, others = memory.address(waiting, True, (count,), 0), self._room_for(count)
        for row in range(count):
            if self.guards_pass(row, 1):
                memory.copy(at + 8 * row, at + 8 * first, 1)
                first += 1
            else:
                memory.copy(at + 8 * row, others + 8 * (row - first), 1)
        memory.copy(others, at + 8 * first, count - first)
        return first

    def inside(self, arrays: list[Any], count: Int) -> Any:
        """The numbers of the examples of which every index is in bounds."""
        made, numpy = self.made, self.made.numpy
        fits = numpy.ones(count, bool)
        for n in range(made.arity):
            extent = made.bounds[n]
            if extent > 0:
                low = -extent if made.from_end[n] else 0
                fits &= ((arrays[n] >= low) & (arrays[n] < extent)).reshape(count, -1).all(1)
        return numpy.flatnonzero(fits)


def share(
    several: list[Any], arrays: list[Any], rows: Any, count: Int, with_grads: bool, seed: float, load: Any = None,
    results: Any = None,
) -> Any:  # fmt: skip
    """Run each of some rows of a batch by the first of several executables whose guards pass for it.

    Args:
        several: a workspace of each, in the order in which they are asked: see `Workspace.begin`.
        arrays: the arguments, of all rows.
        rows: the places of those that are run; None for the first ones.
        count: how many these are.
        with_grads: whether derivatives are asked for.
        seed: see `Workspace.run`.
        load: see `Workspace.is_ready`.
        results: see `Workspace.divide`.

    Yields:
        A workspace that has just run on its rows, and their numbers among `rows`. In the end None, and the numbers of
        those for which no guards pass; None for these too if something cannot be computed.
    """
    space: Workspace
    waiting = None  # all of them
    for space in several:
        if not space.is_ready(load):
            continue
        waiting = space.made.numpy.arange(count) if waiting is None else waiting
        first = space.divide(arrays, rows, waiting, results)
        taken, waiting = waiting[: max(first, 0)], waiting[max(first, 0) :]
        places = taken if rows is None else rows[taken]
        if first < 0 or (first and with_grads and not space.run_rows(arrays, places, True, seed)):
            yield None, None
            return
        if first:
            yield space, taken
        if not len(waiting):
            break
    yield None, () if waiting is None else waiting  # of none all are left
