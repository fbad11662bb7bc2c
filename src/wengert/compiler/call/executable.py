"""Runs a specialization, as machine code or by the functions of its kernel.

An `Executable` does not change while it runs: each run takes a `Workspace` of it, which holds all that is written.

Like the engine, this file runs as it stands and is compiled by Cython, with `executable.pxd`.
"""

from __future__ import annotations

from math import prod
from typing import Any

from wengert.compiler import policy
from wengert.compiler.call import memory
from wengert.compiler.call.captures import Captures
from wengert.compiler.call.fused import SavedCall, results_of
from wengert.engine import Many, Value, _many
from wengert.errors import OperationError
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Int, cython

if False:  # Cython compiles with its own module
    import cython  # type: ignore[no-redef]

__all__ = ["EVERY", "Executable", "Workspace", "partition_by_guards"]

COMPILED = BY_NAME["compiled"].code
EVERY = 1 << 62  # more examples than any batch has
UNSEEN, READY, STALE = range(3)  # the state of a workspace's captures while a batch runs
HOWS = ("lt", "le", "gt", "ge", "eq", "ne", "is", "within")  # how guards compare: see `memory.compare`


@cython.cclass
class Executable:
    """The base class of `Specialization`, which documents the fields.

    Threads share it, and so do nested calls: each run works in a `Workspace` of its own. The pool holds only workspaces
    that are not in use, also in a forked child.
    """

    # Fields that are set several at a time; C types are in the .pxd.
    kernel: Any
    parameters: Any
    shape: Any
    leaves: Any
    numpy: Any
    kind: Any
    dtype: Any
    arity: Any
    lefts: Any
    rights: Any
    left: Any
    right: Any
    left_at: Any
    right_at: Any

    def bind(self, spec: Any, numpy: Any) -> None:
        """Prepare to run a specialization."""
        kernel, parameters, own = spec.kernel, spec.parameters, spec.own
        self.kernel, self.parameters, self.shape, self.leaves = kernel, parameters, spec.shape, spec.leaves
        self.numpy, self.kind, self.dtype = numpy, spec.kind, spec.dtype
        self.is_number: Any = spec.kind is not Value  # the result is a plain number without derivatives
        self.captures: Captures = spec.captures
        self.captures.bind(parameters)
        self.arity = arity = len(kernel.inputs)
        chosen = [spec.extents.get(n, 0) if a.role == "index" else -1 for n, a in enumerate(kernel.inputs)]
        self.chooses: Any = max(chosen, default=0) > 0
        self.bounds: Any = numpy.array(chosen, numpy.int64)  # of indices; 0 for other integers, -1 for floats
        self.from_end: Any = numpy.array([n in spec.wraps for n in range(arity)], numpy.int64)
        outputs = [(name, a.batched, a.cell_shape) for name, a in kernel.program.outputs.items()]
        outputs += [("", a.batched, a.cell_shape) for a in kernel.wanted]  # derivatives with respect to inputs
        self.outputs: Any = outputs
        self.gives_rows: Any = outputs[0][1]  # False if all examples of a batch have the same result
        self.width: Any = prod(outputs[0][2])  # numbers per result
        guards, sides = spec.guards
        self.hows: Any = numpy.array([HOWS.index(guard.how) for guard in guards], numpy.int64)
        self.outcomes: Any = numpy.array([guard.outcome for guard in guards], numpy.int64)
        self.guard_count: Any = len(guards)
        self.lefts, self.rights = numpy.array(sides or numpy.zeros((0, 2)), numpy.int64).T.copy()
        self.left, self.right = [numpy.array([getattr(guard, n) for guard in guards], float) for n in ("left", "right")]
        self.left_at, self.right_at = self.left.ctypes.data, self.right.ctypes.data
        self.places: Any = numpy.arange(len(parameters), dtype=numpy.int64) if own is None else own.astype(numpy.int64)
        self.operands: Any = parameters if own is None else tuple([parameters[n] for n in own])
        self.is_scalar: Any = spec.shape == ()
        structure = spec.structure
        self.build: Any = None if structure is None else structure.build
        self.needs_leaves: Any = structure is not None and structure.needs_leaves
        self.needs_numbers: Any = structure is not None and structure.needs_numbers
        self.computed: Any = numpy.zeros(0, numpy.uint8) if structure is None else structure.computed
        self.cells: Any = [a.cell_shape for a in kernel.inputs]
        self.batched: Any = [a.batched for a in kernel.inputs]
        self.widths: Any = numpy.array([prod(a.cell_shape) for a in kernel.inputs], numpy.int64)  # numbers per example
        self.offsets: Any = numpy.cumsum(self.widths) - self.widths  # those of the inputs before it
        self.row: Any = sum([prod(a.cell_shape) for a in kernel.inputs])  # numbers per example in all inputs
        code = kernel.code
        self.forward_code: Any = 0 if code is None else code.forward
        self.forward_backward_code: Any = 0 if code is None else code.forward_backward
        self.limit: Any = 0 if code is None else EVERY  # from this many examples on the kernel's own functions run
        self.unlocked_from: Any = policy.unlocked_from(spec.nodes)  # from this many on the lock is released,
        self.pause: Any = policy.pause(spec.nodes, self.row)  # and after this many Ctrl-C is checked
        given = self.row + sum([prod(cell) for _, _, cell in outputs])
        self.strip: Any = policy.strip((kernel.work(1024) - kernel.work(0)) // 1024 + given)  # examples at once
        self.python_strip: Any = policy.python_strip(kernel.row() + given) if kernel.is_cut else EVERY
        self.uncompiled: Any = spec.uncompiled
        self.min_examples: Any = 0  # with fewer examples the function itself runs
        self.checked: Any = 0  # examples on which it was compared with the function
        self.pool: list[Any] = []

    def acquire(self) -> Workspace:
        """Return a workspace that nobody else uses; one that is never released goes to the garbage collector."""
        space = memory.pop(self.pool)
        return Workspace(self) if space is None else space

    def buffers(self) -> Any:
        """Return the current numbers of the parameters, in new buffers."""
        space = Workspace(self)
        space.load()
        return space.buffers

    def pull_back(self, arrays: list[Any], params: Any, cotangents: Any) -> Any:
        """Return the derivatives of several results, weighted by cotangents, with respect to the parameters and the
        Values among the arguments. The cotangent of a result that no gradient reaches is None.
        """
        space: Workspace = Executable.acquire(self)
        own, count = len(self.places), len(space.x)
        memory.copy(memory.address(params, False, params.shape, 0), space.params_at, count)
        space.set_cotangents(cotangents)
        ran = space.run(arrays, 1, True, 1.0)
        gradients = self.numpy.empty(own + space.input_grads_count)
        at = memory.address(gradients, False, gradients.shape, 0)
        for n in range(own):
            memory.put(at + 8 * n, space.g[self.places[n]])
        memory.copy(space.input_grads_at, at + 8 * own, space.input_grads_count)
        space.release()
        if self.uncompiled is not None and not (ran and memory.finite(at, len(gradients))):
            return self.uncompiled.pull_back(arrays, params, cotangents)
        if not ran:  # a user-defined rule raised an error
            raise OperationError("the derivatives of a compiled function's results cannot be computed again")
        return gradients

    def stale_capture(self) -> str:
        """Return the name of a capture that has changed, or an empty string."""
        with self.acquire() as space:
            return space.stale_capture()


@cython.cclass
class Workspace:
    """The memory that a run of an executable writes: machine code works at addresses in it.

    Many fields: memory and addresses that each run reads at once, without asking anything else for them.

    Attributes:
        spec: the specialization that it runs.
        params: the parameters' numbers, end to end.
        grads: the derivatives with respect to them.
        input_grads: the derivatives with respect to inputs, end to end.
        is_bounded: True if all indices of the last run were in bounds.
        error: what the last run raised, of a run by the kernel's own functions; else empty.
    """

    # Fields that are set several at a time; C types are in the .pxd.
    params_at: Any
    grads_at: Any
    reals: Any
    ints: Any
    inputs: Any
    targets: Any
    reals_at: Any
    ints_at: Any
    inputs_at: Any
    targets_at: Any
    work: Any
    is_copied: Any
    room: Any
    input_grads: Any
    input_grads_at: Any
    input_grads_count: Any
    sides_at: Any
    sides_step: Any
    count: Any

    def __init__(self, spec: Executable) -> None:
        self.spec: Executable = spec
        numpy, arity = spec.numpy, spec.arity
        self.buffers: Any = spec.kernel.buffers()
        self.params: Any = self.buffers.params
        self.grads: Any = self.buffers.grads
        self.x: Any = self.params  # the same as typed memoryviews
        self.g: Any = self.grads
        self.params_at, self.grads_at = self.params.ctypes.data, self.grads.ctypes.data
        reals, ints, inputs = numpy.zeros(arity), numpy.zeros(arity, numpy.int64), numpy.zeros(arity + 1, numpy.int64)
        targets = numpy.zeros(len(spec.outputs), numpy.int64)
        self.reals, self.ints, self.inputs, self.targets = reals, ints, inputs, targets
        self.reals_at, self.ints_at = reals.ctypes.data, ints.ctypes.data
        self.inputs_at, self.targets_at = inputs.ctypes.data, targets.ctypes.data
        cotangents = numpy.zeros(len(spec.computed))  # of several results; passed after the inputs
        self.cotangents: Any = cotangents
        inputs[arity] = cotangents.ctypes.data
        self.keepalive: Any = [None] * arity  # the arrays that the addresses point to
        self.reused: Any = self.keepalive[:]  # the reused arrays of a `Call`, which never move, and their addresses
        self.reused_at: Any = numpy.zeros(arity, numpy.int64)
        self.validated: Any = self.keepalive[:]  # those of them whose shape and type have been checked
        self.memory: list[Any] = []
        self.input_grads, self.input_grads_at, self.input_grads_count = numpy.zeros(0), 0, 0
        self.work = self.sides_at = self.sides_step = 0
        self.room = self.count = 0  # examples that there is memory for, and those of the last run
        self.results: Any = None
        self.is_bounded: Any = False
        self.error: str = ""
        self.rows: Any = None  # memory for copies of inputs,
        self.rows_at: int = 0
        self.row_room: Any = 0  # of this many examples
        self.by_python: Any = False  # the kernel's own functions run the batch
        self.strip: Any = 0  # examples at once
        self.finite: Any = 0  # examples of the batch whose results are known to be finite
        self.runs: Any = 0  # runs on parts of the batch whose guards passed,
        self.total: Any = 0.0  # the sum of their results,
        self.sums: Any = None  # and of the derivatives, if the batch is more than one strip
        self.sums_at: Any = 0
        self.state: int = UNSEEN

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        memory.push(self.spec.pool, self)

    def load(self) -> str:
        """Read the current numbers of all parameters; return the name of a capture that has changed, or an empty
        string.
        """
        return self.spec.captures.load(self.params_at, True)

    def stale_capture(self) -> str:
        """Read the captured floats alone; return the name of a capture that has changed, or an empty string."""
        return self.spec.captures.load(self.params_at, False)

    def run(self, arrays: list[Any], count: Int, with_grads: bool, seed: float) -> bool:
        """Run, whether or not the guards pass; with derivatives of ``seed * out.sum()`` if asked. Return False if an
        index is out of bounds or an operation raised an error.
        """
        spec = self.spec
        self.results, self.is_bounded = None, False
        if spec.build is not None:
            seed = self.cotangents[0]  # for one result; the code reads those of several from the array
        if count >= spec.limit:
            return self._run_by_python(arrays, count, with_grads, seed)
        is_unlocked = count >= spec.unlocked_from
        if count != self.room or is_unlocked or (spec.chooses and count > self.row_room):
            self._reserve(count, is_unlocked or spec.chooses)  # before addresses are set, as it may run other code
        self.is_copied = False
        for n in range(spec.arity):
            if not self._point(n, arrays[n], count):
                return False
        if self.is_copied and not self._point_again(arrays, count):
            return False
        if is_unlocked:
            self._copy_inputs(count)
        self.count, self.is_bounded = count, True
        memory.call(
            spec.forward_backward_code if with_grads else spec.forward_code, count, seed, self.inputs_at,
            self.params_at, self.grads_at, self.targets_at, self.work, is_unlocked,
        )  # fmt: skip
        return True

    def set_cotangents(self, cotangents: Any) -> None:
        """Set the cotangents of several results for the next derivatives; None for those that no gradient reaches."""
        for n in range(len(self.cotangents)):
            cotangent = cotangents[n]
            self.cotangents[n] = 0.0 if cotangent is None else cotangent

    def run_code(self, inputs: Int, count: Int, with_grads: bool, seed: float) -> None:
        """Run machine code, like `run`, on inputs whose addresses are at an address. Indices have been checked, and no
        other thread may change the inputs.
        """
        spec = self.spec
        if count != self.room:
            self._reserve(count, False)
        self.count = count
        self.results, self.is_bounded = None, True
        code = spec.forward_backward_code if with_grads else spec.forward_code
        memory.call(
            code, count, seed, inputs, self.params_at, self.grads_at, self.targets_at, self.work,
            count >= spec.unlocked_from,
        )  # fmt: skip

    def _reserve(self, count: Int, with_rows: bool) -> None:
        """Make room for `count` examples, and for copies of their inputs if asked."""
        if with_rows:
            self._room_for(count)
        if count > self.room or (count < self.room and self.input_grads_count):  # input_grads lie end to end
            self._make_room(count)

    def _make_room(self, count: Int) -> None:
        spec, numpy = self.spec, self.spec.numpy
        self.room, self.memory = 0, [None] * (len(spec.outputs) + 1)
        shapes = [(count, *shape) if batched else shape for _, batched, shape in spec.outputs]
        sizes = [prod(shape) for (name, _, _), shape in zip(spec.outputs, shapes, strict=True) if not name]
        self.input_grads_count = sum(sizes)
        self.input_grads = numpy.zeros(self.input_grads_count)
        start = self.input_grads_at = memory.address(self.input_grads, False, self.input_grads.shape, 0)
        for n, (name, batched, _) in enumerate(spec.outputs):
            if not name:
                self.targets[n] = start
                start += 8 * sizes.pop(0)
                continue
            left = self.memory[n] = numpy.empty(shapes[n])
            self.targets[n] = memory.address(left, False, left.shape, 0)
            if name == "sides":
                self.sides_at = self.targets[n]
                self.sides_step = left.size // count if batched else 0
        scratch = self.memory[-1] = numpy.zeros(spec.kernel.work(count) + 8)
        self.work = (memory.address(scratch, False, scratch.shape, 0) + 63) // 64 * 64
        self.room = count

    def _point(self, n: Int, x: Any, count: Int) -> bool:
        """Set the address of an input; False if an index is out of bounds."""
        spec = self.spec
        extent = spec.bounds[n]
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
            if number < 0 and spec.from_end[n]:
                number += extent
            if not 0 <= number < extent:
                return False
            self.ints[n] = number
        self.inputs[n] = self.ints_at + 8 * n
        return True

    def _point_array(self, n: Int, x: Any, is_int: bool, count: Int) -> bool:
        """Set the address of an array, if it still has the input's shape: another thread may have resized it."""
        spec, numpy = self.spec, self.spec.numpy
        size = spec.widths[n] * (count if spec.batched[n] else 1)
        target = self._room_for(count) + 8 * count * spec.offsets[n] if spec.bounds[n] > 0 else 0
        if x is self.validated[n] and x is self.reused[n]:
            at, self.keepalive[n] = self.reused_at[n], x
        else:
            if is_int and x.dtype.kind == "f":  # integers beyond int64
                return False
            rows = count if spec.batched[n] else 0
            at = memory.address(x, is_int, spec.cells[n], rows)
            if not at:
                x, self.is_copied = numpy.array(x, numpy.int64 if is_int else float, order="C"), True
                at = memory.address(x, is_int, spec.cells[n], rows)
                if not at:
                    return False
            self.keepalive[n] = x
            if x is self.reused[n]:
                self.validated[n] = x
        if spec.bounds[n] == 0 and not memory.are_exact(at, size):
            return False
        if spec.bounds[n] > 0:  # a copy, so that the indices checked are the indices used
            if not memory.indices(at, target, size, spec.bounds[n], spec.from_end[n] != 0):
                return False
            at, self.keepalive[n] = target, None
        self.inputs[n] = at
        return True

    def _point_again(self, arrays: list[Any], count: Int) -> bool:
        """Set the addresses of the arguments' own arrays again: copying one may have run other code, which may have
        resized another one.
        """
        spec = self.spec
        for n in range(spec.arity):
            x = arrays[n]
            if x is self.keepalive[n]:
                at = memory.address(x, spec.bounds[n] >= 0, spec.cells[n], count if spec.batched[n] else 0)
                if not at:
                    return False
                self.inputs[n] = at
        return True

    def _copy_inputs(self, count: Int) -> None:
        """Copy the inputs, which another thread might change or free while the code runs without the lock."""
        spec = self.spec
        rows = self._room_for(count)
        for n in range(spec.arity):
            if self.keepalive[n] is not None:
                copied = rows + 8 * count * spec.offsets[n]
                memory.copy(self.inputs[n], copied, spec.widths[n] * (count if spec.batched[n] else 1))
                self.inputs[n] = copied
                self.keepalive[n] = None

    def _run_by_python(self, arrays: list[Any], count: Int, with_grads: bool, seed: float) -> bool:
        """Run by the kernel's own functions, like `run`.

        Return False if a user-defined operation raises, such as a root by `math` of a number below 0: the program may
        also compute it for examples of another specialization, or where its result is masked out. The engine finds out
        whether the function itself raises.
        """
        spec, numpy = self.spec, self.spec.numpy
        given = list(arrays)
        for n in range(spec.arity):
            x = given[n]
            shape = (count, *spec.cells[n]) if spec.batched[n] else spec.cells[n]
            if type(x) is numpy.ndarray and x.shape != shape:
                return False  # see `_point_array`
            if spec.bounds[n] > 0:
                if not self._point(n, x, count):
                    return False
                start = count * spec.offsets[n]
                if type(x) is int:
                    given[n] = self.ints[n]
                else:  # a copy, see `_point_array`
                    given[n] = self.rows.view(numpy.int64)[start : start + x.size].reshape(x.shape)
            elif spec.bounds[n] == 0:
                given[n] = numpy.float64(ieee.whole(x)) if isinstance(x, int) else x.astype(float)
                if not numpy.all(abs(given[n]) < 2.0**53):
                    return False
            elif type(x) is float:
                given[n] = numpy.float64(x)  # by whose rules 1 / 0 is inf, and (-1) ** 0.5 nan
        self.room, self.is_bounded, self.error = 0, True, ""
        try:
            with numpy.errstate(all="ignore"):
                if with_grads:
                    out = spec.kernel.program.outputs["out"]
                    weights = seed if spec.build is None else numpy.array(self.cotangents).reshape(out.shape)
                    self.results, grads = spec.kernel.forward_backward(given, weights, self.buffers)
                else:
                    self.results, grads = spec.kernel.forward(given, self.buffers), ()
                if grads:
                    self.input_grads = numpy.concatenate([numpy.asarray(x, float).reshape(-1) for x in grads])
                    self.input_grads_at = memory.address(self.input_grads, False, self.input_grads.shape, 0)
                    self.input_grads_count = len(self.input_grads)
                out = numpy.ascontiguousarray(self.results["out"], float)
                sides = numpy.ascontiguousarray(self.results["sides"], float) if spec.guard_count else out
        except Exception as error:  # a user-defined operation may raise anything
            self.error = f"{type(error).__name__}: {error}"
            return False
        self.memory = [out, sides]  # which the addresses point to
        self.targets[0] = memory.address(out, False, out.shape, 0)
        if spec.guard_count:
            self.sides_at = memory.address(sides, False, sides.shape, 0)
            self.sides_step = sides.size // count if self._is_batched("sides") else 0
        return True

    def _is_batched(self, name: str) -> bool:
        return any(batched for its, batched, _ in self.spec.outputs if its == name)

    def output(self, name: str) -> Any:
        """Return an output of the last run, as an array that is valid until the next one."""
        if self.results is not None:
            return self.results[name]
        kept = zip(self.memory, self.spec.outputs, strict=False)
        return next(array[: self.count] if batched else array for array, (its, batched, _) in kept if its == name)

    def added(self, count: Int) -> float:
        """Return the sum of the results of the last run on a batch of scalars."""
        if self.results is not None:
            return float(self.spec.numpy.add.reduce(self.values(count), axis=None))
        return memory.total(self.targets[0], count) if self.spec.gives_rows else count * memory.get(self.targets[0])

    def values(self, count: Int) -> Any:
        """Return the results of the last run on a batch, in an array that is valid until the next one."""
        array, shape = self.spec.numpy.asarray(self.output("out"), float), (count, *(self.spec.shape or ()))
        if array.shape == shape:
            return array
        return array.reshape(shape) if array.size == prod(shape) else self.spec.numpy.broadcast_to(array, shape)

    def guards_pass(self, row: Int, count: Int) -> bool:
        """Return True if all guards pass for `count` examples of the last run, from `row` on."""
        step = self.sides_step
        at = self.sides_at + 8 * row * step
        count = count if step else 1
        for n in range(self.spec.guard_count):
            left, left_step = at + 8 * self.spec.lefts[n], step
            right, right_step = at + 8 * self.spec.rights[n], step
            if self.spec.lefts[n] < 0:
                left, left_step = self.spec.left_at + 8 * n, 0
            if self.spec.rights[n] < 0:
                right, right_step = self.spec.right_at + 8 * n, 0
            how, outcome = self.spec.hows[n], self.spec.outcomes[n] != 0
            if not memory.compare(how, left, left_step, right, right_step, count, outcome):
                return False
        return True

    def node(self, value: float, values: list[Any], with_grads: bool) -> Any:
        """Make a Value with this value and, if asked, the last run's derivatives with respect to the parameters and
        Values. Return None if a number is not finite, or the sum of the derivatives' squares: those beyond 1e154 are
        left to the engine.
        """
        spec = self.spec
        if not memory.isfinite(value):
            return None
        if not with_grads:
            return Value(value)
        many: Many = _many(
            COMPILED, (*spec.operands, *values) if values else spec.operands, None, spec.leaves and not values
        )
        many._data = value
        count, at, squares = len(spec.places), self.grads_at, 0.0
        for n in range(count):
            grad: float = memory.get(at + 8 * spec.places[n])  # captured floats have no derivatives
            many._partials[n] = grad
            squares += grad * grad
        at = self.input_grads_at
        for n in range(len(values)):
            grad = memory.get(at + 8 * n)
            many._partials[count + n] = grad
            squares += grad * grad
        return many if memory.isfinite(squares) else None

    def are_grads_finite(self) -> bool:
        """Return True if the last run's derivatives are small enough for a `node`."""
        squares = memory.squares(self.input_grads_at, self.input_grads_count)
        for n in range(len(self.spec.places)):
            grad: float = memory.get(self.grads_at + 8 * self.spec.places[n])
            squares += grad * grad
        return memory.isfinite(squares)

    def build_result(self, arrays: list[Any], values: list[Any], with_grads: bool, has_swept: bool) -> Any:
        """Build the function's result from several numbers of the last run; None if one is not finite, or, if the run
        has swept backward, one of the derivatives. `values` are the Values among the arguments.
        """
        spec = self.spec
        if has_swept and not self.are_grads_finite():
            return None
        count, numbers = len(spec.computed), None
        at = self.targets[0] if self.results is None else 0
        if at == 0:
            numbers = self.values(1).reshape(-1).copy()
            at = memory.address(numbers, False, numbers.shape, 0)
        elif spec.needs_numbers:
            numbers = spec.numpy.empty(count)
            memory.copy(at, memory.address(numbers, False, numbers.shape, 0), count)
        if not memory.finite(at, count):
            return None
        leaves: list[Any] = []
        if with_grads:
            kept = [x.copy() if isinstance(x, spec.numpy.ndarray) else x for x in arrays]
            operands = (*spec.operands, *values) if values else spec.operands
            saved = SavedCall(spec, kept, self.params.copy(), count)
            leaves = results_of(saved, at, spec.computed, operands, spec.leaves and not values)
        elif spec.needs_leaves:
            for n in range(count):
                number: float = memory.get(at + 8 * n)
                leaves.append(Value(number) if spec.computed[n] else number)
        return spec.build(leaves, values, numbers)

    # -- batches ------------------------------------------------------------------------------------------------------

    def begin(self, count: Int, strip: Int, with_grads: bool) -> None:
        """Prepare for a batch that runs in strips of this many examples, or for 0 of as many as fit in the cache."""
        spec = self.spec
        self.by_python = count >= spec.limit
        strip = strip or (spec.python_strip if self.by_python else spec.strip)
        self.strip = strip if strip < count else count
        self.runs, self.total, self.state, self.sums_at, self.finite = 0, 0.0, UNSEEN, 0, 0
        if with_grads and self.strip < count:
            if self.sums is None:
                self.sums = spec.numpy.empty(len(self.g))
            self.sums[...] = 0.0
            self.sums_at = memory.address(self.sums, False, self.sums.shape, 0)

    def is_ready(self, load: Any) -> bool:
        """Check the captures and fill the parameters (by `load`, if it is not None), once per batch; False if a capture
        has changed.
        """
        if self.state == UNSEEN:
            self.state = STALE if self.spec.captures.load(self.params_at, load is None) else READY
            if self.state == READY and load is not None:
                load(self)
        return bool(self.state == READY)

    def run_strips(self, arrays: list[Any], start: Int, count: Int, with_grads: bool, seed: float, results: Any) -> Int:
        """Run the examples of a batch from `start` on, strip by strip, while the guards pass. The results go into
        `results`; if it is None, their sum is added to `total`.

        Returns:
            The first example of the strip whose guards did not pass, or `count`.
        """
        if self.by_python:
            return self._strips_by_python(arrays, start, count, with_grads, seed, results)
        spec = self.spec
        unlocked, results_at = count >= spec.unlocked_from, 0
        if results is not None and spec.gives_rows and results.size == count * spec.width:
            results_at = memory.address(results, False, results.shape, 0)
        at_once = spec.pause if unlocked else count  # examples between two checks for Ctrl-C
        if at_once < self.strip or (results is not None and not results_at):
            at_once = self.strip
        at_once = at_once // self.strip * self.strip
        code = spec.forward_backward_code if with_grads else spec.forward_code
        self._reserve(self.strip, False)
        while start < count:
            end = start + at_once if start + at_once < count else count
            if not self._point_rows(arrays, start, end, count, unlocked):
                others = self._row_by_row(arrays, count)
                if others is not arrays:
                    arrays = others
                elif at_once > self.strip:
                    at_once = self.strip  # an index may be out of bounds in one strip only
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
        """Run like `run_strips`, by the kernel's own functions."""
        while start < count:
            end = start + self.strip if start + self.strip < count else count
            given = arrays if end - start == count else [x[start:end] for x in arrays]
            if not self._run_by_python(given, end - start, with_grads, seed):
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
        """Run machine code on strips of the examples between `at` and `end`; return where the guards did not pass."""
        left_at = self.targets[0]
        while at < end:
            count = end - at if end - at < self.strip else self.strip
            if results_at:
                self.targets[0] = results_at + 8 * at * self.spec.width
            memory.call(
                code, count, seed, self.inputs_at, self.params_at, self.grads_at, self.targets_at, self.work,
                unlocked and not ieee.COMPILED,  # compiled, `run_strips` has released the lock
            )  # fmt: skip
            if not self.guards_pass(0, count):
                break
            if results_at:  # looked at while they are in the cache
                self.finite += count if memory.finite(self.targets[0], count * self.spec.width) else 0
            elif self.spec.gives_rows:
                self.total += memory.total(self.targets[0], count)
            else:
                self.total += count * memory.get(self.targets[0])
            self.add_grads()
            for n in range(self.spec.arity):
                self.inputs[n] += 8 * count * self.spec.widths[n]
            self.count = count
            at += count
        self.targets[0] = left_at
        return at

    def add_grads(self) -> None:
        """Add the derivatives of the last run to those of the batch."""
        self.runs += 1
        if self.sums_at:
            memory.accumulate(self.grads_at, self.sums_at, len(self.g))

    def end(self) -> None:
        """Finish a batch: `grads` are now the derivatives of all examples."""
        if self.sums_at:
            memory.copy(self.sums_at, self.grads_at, len(self.g))

    def _point_rows(self, arrays: list[Any], start: Int, end: Int, count: Int, with_copies: bool) -> bool:
        """Set the addresses of some examples of a batch, or of copies of them; False if an array is not contiguous or
        an index is out of bounds.
        """
        spec = self.spec
        rows = end - start
        free = self._room_for(rows) if with_copies or spec.chooses else 0
        for n in range(spec.arity):
            extent, size = spec.bounds[n], rows * spec.widths[n]
            at = memory.address(arrays[n], extent >= 0, spec.cells[n], count)
            if not at:
                return False
            at += 8 * start * spec.widths[n]
            if with_copies or extent > 0:  # a copy, so that the indices checked are the indices used
                memory.copy(at, free, size)
                at = free
                free += 8 * size
            if extent > 0 and not memory.indices(at, at, size, extent, spec.from_end[n] != 0):
                return False
            if extent == 0 and not memory.are_exact(at, size):
                return False
            self.keepalive[n] = None
            self.inputs[n] = at
        return True

    def _row_by_row(self, arrays: list[Any], count: Int) -> list[Any]:
        """Copy those arguments that are not contiguous; return the same list if there is none that can be copied."""
        spec, numpy = self.spec, self.spec.numpy
        others = arrays
        for n in range(spec.arity):
            x, is_int = arrays[n], spec.bounds[n] >= 0
            if not memory.address(x, is_int, spec.cells[n], count) and not (is_int and x.dtype.kind == "f"):
                copied = numpy.array(x, numpy.int64 if is_int else float, order="C")
                if copied.shape == (count, *spec.cells[n]):
                    others = list(others) if others is arrays else others
                    others[n] = copied
        return others

    def run_rows(self, arrays: list[Any], places: Any, with_grads: bool, seed: float) -> bool:
        """Run like `run` on the given rows of a batch."""
        spec = self.spec
        count = len(places)
        if self.by_python:
            return self._run_by_python([x[places] for x in arrays], count, with_grads, seed)
        self.is_bounded = False
        self._reserve(count, True)
        at, free = memory.address(places, True, (count,), 0), self._room_for(count)
        for n in range(spec.arity):
            x, extent = arrays[n], spec.bounds[n]
            size = count * spec.widths[n]
            source = memory.address(x, extent >= 0, spec.cells[n], -1)
            if not source:
                if extent >= 0 and x.dtype.kind == "f":  # integers beyond int64
                    return False
                x = spec.numpy.array(x[places], spec.numpy.int64 if extent >= 0 else float, order="C")
                source = memory.address(x, extent >= 0, spec.cells[n], count)
                if not source:
                    return False
                memory.copy(source, free, size)
            elif memory.are_below(at, count, len(x)):
                memory.rows(source, free, at, count, spec.widths[n])
            else:
                return False
            if extent > 0 and not memory.indices(free, free, size, extent, spec.from_end[n] != 0):
                return False
            if extent == 0 and not memory.are_exact(free, size):
                return False
            self.keepalive[n] = None
            self.inputs[n] = free
            free += 8 * size
        self.run_code(self.inputs_at, count, with_grads, seed)
        return True

    def _room_for(self, count: Int) -> Int:
        """Return the address of memory for copies of the inputs of `count` examples."""
        if count > self.row_room:
            self.rows = self.spec.numpy.empty(count * max(1, self.spec.row))
            self.row_room, self.rows_at = count, memory.address(self.rows, False, self.rows.shape, 0)
        return self.rows_at

    def split_matching(self, arrays: list[Any], rows: Any, unmatched: Any, results: Any) -> Int:
        """Run some examples, and move the numbers of those whose guards pass to the front.

        Args:
            arrays: the arguments, of all examples.
            rows: maps each number to a row of the arguments; None if it is the row.
            unmatched: the numbers, in ascending order; both parts stay in ascending order.
            results: an array for the result of each example, or None.

        Returns:
            How many pass; -1 if an operation raised an error.
        """
        numpy = self.spec.numpy
        count, first = len(unmatched), 0
        places = unmatched if rows is None else rows[unmatched]
        if not self.run_rows(arrays, places, False, 1.0):
            inside = self.inside([x[places] for x in arrays], count)
            if len(inside) == count:
                return -1
            unmatched[...] = numpy.concatenate([unmatched[inside], numpy.delete(unmatched, inside)])
            first = self.split_matching(arrays, rows, unmatched[: len(inside)], results) if len(inside) else 0
            unmatched[max(first, 0) :].sort()
            return first
        if results is not None and results.shape[1:] == self.spec.shape:
            results[unmatched] = self.values(count)
        at, others = memory.address(unmatched, True, (count,), 0), self._room_for(count)
        for row in range(count):
            if self.guards_pass(row, 1):
                memory.copy(at + 8 * row, at + 8 * first, 1)
                first += 1
            else:
                memory.copy(at + 8 * row, others + 8 * (row - first), 1)
        memory.copy(others, at + 8 * first, count - first)
        return first

    def inside(self, arrays: list[Any], count: Int) -> Any:
        """Return the numbers of the examples whose indices are all in bounds."""
        spec, numpy = self.spec, self.spec.numpy
        fits = numpy.ones(count, bool)
        for n in range(spec.arity):
            extent = spec.bounds[n]
            if extent > 0:
                low = -extent if spec.from_end[n] else 0
                fits &= ((arrays[n] >= low) & (arrays[n] < extent)).reshape(count, -1).all(1)
        return numpy.flatnonzero(fits)


def partition_by_guards(
    several: list[Any], arrays: list[Any], rows: Any, count: Int, with_grads: bool, seed: float, load: Any = None,
    results: Any = None,
) -> Any:  # fmt: skip
    """Run each of some rows of a batch by the first executable whose guards pass for it.

    Args:
        several: a workspace of each executable, in the order in which they are tried: see `Workspace.begin`.
        arrays: the arguments, of all rows.
        rows: the rows to run; None for the first `count` ones.
        count: the number of rows.
        with_grads: True to compute derivatives.
        seed: see `Workspace.run`.
        load: see `Workspace.is_ready`.
        results: see `Workspace.split_matching`.

    Yields:
        A workspace that has just run its rows, and their numbers among `rows`. At the end None, and the numbers of the
        rows for which no guards pass, or None if an operation raised an error.
    """
    space: Workspace
    unmatched = None  # all of them
    for space in several:
        if not space.is_ready(load):
            continue
        unmatched = space.spec.numpy.arange(count) if unmatched is None else unmatched
        first = space.split_matching(arrays, rows, unmatched, results)
        matched, unmatched = unmatched[: max(first, 0)], unmatched[max(first, 0) :]
        places = matched if rows is None else rows[matched]
        if first < 0 or (first and with_grads and not space.run_rows(arrays, places, True, seed)):
            yield None, None
            return
        if first:
            yield space, matched
        if not len(unmatched):
            break
    if unmatched is None:  # a capture of each of them has changed
        space = several[0]
        unmatched = space.spec.numpy.arange(count)
    yield None, unmatched
