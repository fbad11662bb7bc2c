"""Steps of training on devices: many batches in one XLA loop, on one or several devices, of one or several processes.

Each device has a copy of the data, the parameters and the optimizer's state. Each batch is split over the devices, with
a weight for each row, so that the parts may differ in size; the gradients are summed over all devices, and each device
makes the same step by the optimizer's own rule. The loop ends before a step in which a row has no valid specialization
or a number is not finite: that step has changed nothing, and is made outside the loop.

The optimizer, its rule, the metric and the processes are those of `wengert.training`, which passes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import accumulate, groupby, pairwise, starmap
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding

from wengert.compiler.backends.base import places
from wengert.compiler.backends.xla.kernel import precision, traced
from wengert.compiler.derive import reverse
from wengert.compiler.ir import Array
from wengert.errors import ArgumentError

__all__ = ["DeviceBatches", "mesh_of", "processes_of"]

AXIS = "examples"
untyped: Any = jax  # for parts of JAX without types
WHOLE = untyped.sharding.PartitionSpec()  # replicated
ROWS = untyped.sharding.PartitionSpec(AXIS)  # split along the first axis
PARTS = untyped.sharding.PartitionSpec(None, AXIS)  # split along the second axis
PIECE = 1 << 13  # the number of examples that a device computes at once; more would cost memory and gain no time
ALONE = 1 << 12  # larger arrays of parameters are updated separately, without a copy, and smaller ones together


def processes_of(count: int) -> tuple[list[int], int, Callable[[Sequence[float]], Any] | None]:
    """Return how many examples each process of `jax.distributed.initialize` has, of which this one has `count`, the
    index of this one, and what gathers numbers from all, one row each; None if there is only one.
    """
    if jax.process_count() == 1:
        return [count], 0, None

    def exchange(numbers: Sequence[float]) -> Any:
        with precision(False):
            return np.asarray(multihost_utils.process_allgather(np.array(numbers, float)))

    return exchange([count])[:, 0].astype(int).tolist(), jax.process_index(), exchange


def mesh_of(asked: Any) -> Mesh:
    """Return the devices of a run as a mesh with one axis, given a number of devices or a JAX mesh; None is JAX's
    default device, or with several processes all their devices.

    Raises:
        ArgumentError: there are fewer devices, or a process has none of them.
    """
    if isinstance(asked, Mesh):
        devices = list(asked.devices.flat)
    elif asked is None:
        devices = jax.devices() if jax.process_count() > 1 else list(jnp.zeros(()).devices())
    elif isinstance(asked, int) and 0 < asked <= len(jax.devices()):
        devices = jax.devices()[:asked]
    else:
        raise ArgumentError(
            f"mesh is {asked!r}; expected a number of devices from 1 to {len(jax.devices())}, or a jax.sharding.Mesh"
        )
    if {device.process_index for device in devices} != set(range(jax.process_count())):
        raise ArgumentError("mesh has no device of some process: expected at least one for each")
    return Mesh(np.array(devices), (AXIS,))


class DeviceLoss(NamedTuple):
    """A specialization of the loss, or of the regularization, as JAX functions."""

    specialization: Any
    spots: Any  # the indices of its parameters among all; None if they are all, in its order
    forward: Callable[..., Any]  # computes its outputs
    forward_backward: Callable[..., Any]  # computes its outputs and derivatives

    @classmethod
    def of(
        cls, specialization: Any, parameters: Sequence[Any], pieces: Sequence[Sequence[Array]] | None = None
    ) -> DeviceLoss:
        """Make the functions of a specialization; `pieces` has the parameters as several arrays."""
        program = specialization.lifted.program
        back, spots = reverse(program, (), weighted=True), places(specialization.parameters, parameters)
        if pieces is not None or np.array_equal(spots, np.arange(len(parameters))):
            spots = None
        return cls(specialization, spots, traced(program, None, (), pieces), traced(program, back, (), pieces))

    def run(self, x: Sequence[Any], columns: Sequence[Any], weights: Any = None) -> tuple[dict[str, Any], Any, Any]:
        """Compute the outputs for some rows, the derivatives if there are weights, and a mask of the valid rows."""
        inputs, guards = self.specialization.kernel.inputs, self.specialization.guards
        columns = [c if a.role == "index" else c.astype(x[0].dtype) for c, a in zip(columns, inputs, strict=True)]
        counted, inside = self.specialization.counted(columns, jnp)
        numbers = x if self.spots is None else [x[0][self.spots]]
        outputs, grads, _ = (self.forward if weights is None else self.forward_backward)(numbers, weights, counted)
        is_valid: Any = True if inside is None else inside
        return outputs, grads, is_valid & guards.guards_pass(outputs, jnp) if guards else is_valid

    def added(self, grads: Sequence[Any], by: Sequence[Any]) -> list[Any]:
        """Add the derivatives with respect to its own parameters to those with respect to all."""
        if self.spots is None:
            return [whole + part for whole, part in zip(grads, by, strict=True)]
        return [grads[0].at[self.spots].add(by[0])]


class Devices(NamedTuple):
    """Puts arrays on the devices of a mesh."""

    mesh: Mesh
    is_single: bool  # in single precision

    def copies(self, column: Any, count: int) -> Any:
        """Copy this process's examples to each of its devices, padded to `count`, the largest number of any process."""
        padded = self.typed(np.resize(column, (count, *column.shape[1:])))
        shape = (self.mesh.size * count, *column.shape[1:])
        parts = [jax.device_put(padded, device) for device in self.mesh.local_devices]
        return jax.make_array_from_single_device_arrays(shape, NamedSharding(self.mesh, ROWS), parts)

    def everywhere(self, numbers: Any) -> Any:
        """Copy numbers that all processes have to each device."""
        numbers = self.typed(numbers)
        return jax.make_array_from_callback(
            numbers.shape, NamedSharding(self.mesh, WHOLE), lambda place: numbers[place]
        )

    def split(self, numbers: Any) -> Any:
        """Distribute this process's numbers over its devices, split along the second axis."""
        shape = (len(numbers), self.mesh.size, *numbers.shape[2:])
        sharding = NamedSharding(self.mesh, PARTS)
        return untyped.make_array_from_process_local_data(sharding, self.typed(numbers), shape)

    def typed(self, numbers: Any) -> Any:
        """Convert numbers to the precision of the run."""
        numbers, kinds = np.asarray(numbers), {"f": "f4", "i": "i4"}
        return numbers.astype(kinds.get(numbers.dtype.kind, numbers.dtype)) if self.is_single else numbers


class Shares(NamedTuple):
    """How the batches of an epoch are split over the devices, in pieces."""

    places: Any  # in the order of the examples, for each batch, device of this process and piece
    weights: Any  # of these rows; 0 for padding
    fractions: Any  # of each batch in all examples
    is_filled: bool  # True if each piece of each batch has rows

    @classmethod
    def of(cls, size: int, devices: Devices, hosts: Any) -> Shares:
        """Split batches of a size."""
        (cuts, fractions), here = hosts.batches(size), hosts.here
        counts = [sum(d.process_index == n for d in devices.mesh.devices.flat) for n in range(len(cuts))]
        each = max(-(-(end - start) // n) for n, at in zip(counts, cuts, strict=True) for start, end in pairwise(at))
        pieces = -(-each // PIECE)
        width = -(-each // pieces)
        starts, sizes = np.array(cuts[here][:-1]), np.diff(cuts[here])
        column = np.arange(counts[here] * pieces * width)
        places = np.minimum(column, np.maximum(sizes, 1)[:, None] - 1) + starts[:, None]  # padded with the last one
        shape = (len(sizes), counts[here], pieces, -1)
        weights = (column < sizes[:, None]) / (np.array(fractions)[:, None] * hosts.total)
        is_filled = devices.mesh.size == 1 and bool((sizes > (pieces - 1) * width).all())
        weights = devices.split(weights.reshape(shape))
        return cls(places.reshape(shape), weights, devices.everywhere(fractions), is_filled)


class DeviceBatches:
    """The steps of an epoch's batches on the devices of a mesh: a kernel of `FlatSteps`, as `Batches` is.

    Many fields: the numbers on the devices, `since`, `unread` and `correct` change during an epoch; the loop and the
    rows are those of an epoch, and everything else is set once.

    Args:
        losses: the specializations of the loss.
        penalty: the specialization of the regularization, or None.
        optimizer: makes the updates.
        rule: its `_moved`, for JAX arrays.
        metric: counts the correct predictions, or is None.
        data: an array for each argument of the loss, with one row per example of this process.
        mesh: the devices.
        hosts: the processes whose devices these are.
    """

    def __init__(
        self, losses: Sequence[Any], penalty: Any, optimizer: Any, rule: Callable[..., Any], metric: Any,
        data: Sequence[Any], mesh: Mesh, hosts: Any,
    ) -> None:  # fmt: skip
        self.parameters: tuple[Any, ...] = tuple(
            {id(p): p for p in (*losses[0].parameters, *optimizer.parameters)}.values()
        )
        self.numbers: Any = np.zeros(len(self.parameters))
        self.gradients: Any = np.zeros(len(self.parameters))
        self.optimizer: Any = optimizer
        self.hosts: Any = hosts
        self.devices: Devices = Devices(mesh, losses[0].kernel.single)
        self.program: StepProgram = StepProgram.of(losses, penalty, self.parameters, optimizer, rule, metric)
        with precision(self.devices.is_single):
            self.columns: list[Any] = [self.devices.copies(column, max(hosts.counts)) for column in data]
        self.correct: float = 0.0  # predictions so far
        self.settings: Any = (
            None  # the optimizer's settings and the split of the batches that the loop was compiled for
        )
        self.loop: Any = None
        self.mark_of_loop: int = 0  # a hash of its text; 0 until it is asked for
        self.carry: Any = ()  # on the devices: the parameters, the gradients and the state of each piece
        self.since: int = 0  # the number of steps these are ahead of the arrays
        self.unread: list[Any] = []  # results of a run that have not been read yet

    @staticmethod
    def serve(losses: Sequence[Any], data: Sequence[Any]) -> bool:
        """Return True if the data can be used: indices are integers."""
        inputs = [zip(path.kernel.inputs, data, strict=True) for path in losses]
        return all(array.role != "index" or x.dtype.kind == "i" for pairs in inputs for array, x in pairs)

    def begin(self, order: Any, size: int, clip_norm: float, meanwhile: Callable[[], None]) -> None:
        """Begin an epoch as `Batches.begin` does, and send the rows of each batch to their devices with weights."""
        self.meanwhile: Callable[[], None] = meanwhile
        settings = ([getattr(self.optimizer, name) for name in self.optimizer._settings], size, len(order), clip_norm)
        with precision(self.devices.is_single):
            if self.settings != settings:
                self.settings, self.mark_of_loop = settings, 0
                self.shares: Shares = Shares.of(size, self.devices, self.hosts)
                self.loop = self.program.compiled(self.devices.mesh, self.shares, clip_norm, self.hosts.several)
            rows = order.astype(np.int32)[self.shares.places]
            # Plain rows are passed with the call.
            self.rows: Any = self.devices.split(rows) if self.hosts.several else rows

    def load(self, state: dict[str, Any]) -> None:
        """Copy the arrays to the devices."""
        cuts, count = self.program.cuts, len(self.numbers)
        ages = {name: x[:1] if name == "age" else x for name, x in state.items()}  # an age is equal for all parameters
        whole = [self.numbers, np.zeros(count), *ages.values()]
        cut = [[x] * (len(cuts) + 1) if len(x) < count else np.split(x, cuts) for x in whole]
        with precision(self.devices.is_single):
            self.carry = [[*map(self.devices.everywhere, piece)] for piece in zip(*cut, strict=True)]
        self.since = 0

    def store(self, state: dict[str, Any]) -> bool:
        """Copy the numbers from the devices; return False if an interrupted run has donated them: the Values still have
        the numbers from before.
        """
        if self.unread:
            self._read()
        if any(x.is_deleted() for x in jax.tree.leaves(self.carry)):
            self.optimizer.steps, self.since = self.optimizer.steps - self.since, 0
            return False
        numbers, gradients, *columns = zip(*jax.device_get(self.carry), strict=True)
        self.numbers[...], self.gradients[...] = np.concatenate(numbers), np.concatenate(gradients)
        for name, column in zip(state, columns, strict=True):
            state[name][...] = column[0] if name == "age" else np.concatenate(column)
        self.since = 0
        return True

    def is_stale(self) -> bool:
        """Return True if a captured object has changed."""
        each = (*self.program.losses, *self.program.penalties)
        return any(loss.specialization.stale_capture() for loss in each)

    def mark(self) -> int:
        """Return a hash of the loop's text, which several processes compare."""
        if not self.mark_of_loop:
            with precision(self.devices.is_single):
                text = self.loop.lower(*self._arguments(0, 1, 0.0, 0.0)).as_text()
            self.mark_of_loop = int.from_bytes(sha256(text.encode()).digest()[:6], "big")
        return self.mark_of_loop

    def run(self, number: int, steps: int, loss: float, state: dict[str, Any]) -> tuple[int, float]:
        """Make steps on the devices; see `Batches.run`."""
        arguments = self._arguments(number, steps, loss, float(state["age"][0]) if "age" in state else 0.0)
        with precision(self.devices.is_single):
            # The run overwrites its arguments. So its results are stored by the same call that starts it: Ctrl-C is
            # raised before the call, or when the results are read.
            self.unread.extend(starmap(self.loop, [arguments]))
            self.meanwhile()
            return self._read()

    def _read(self) -> tuple[int, float]:
        """Wait for a run, and store its results; return the number of steps and the epoch's loss so far."""
        numbers, carry = self.unread[0]
        try:
            count, loss, correct = np.asarray(numbers).tolist()
        except Exception:  # another process has ended: the numbers stay those from before
            self.unread = []
            raise
        self.correct += correct
        since, steps = self.since + int(count), self.optimizer.steps + int(count)
        self.carry, self.since, self.optimizer.steps, self.unread = carry, since, steps, []
        return int(count), loss

    def _arguments(self, number: int, steps: int, loss: float, age: float) -> tuple[Any, ...]:
        """Return the arguments of the loop, for `steps` steps from a batch on."""
        count = len(self.shares.places)
        end, lr = min(number + steps, count), self.optimizer.lr
        ages = [age + self.since + 1.0 + n for n in range(end - number)]
        factors = [self.optimizer._factors(lr, its_age) for its_age in ages]
        now = np.zeros(3 + count * len(factors[0]))  # one array for all, as each takes some microseconds
        now[:3] = number, end, loss
        now[3:].reshape(count, -1)[number:end] = factors
        weights, fractions = self.shares.weights, self.shares.fractions
        return self.devices.typed(now), self.carry, self.columns, self.rows, weights, fractions


class StepProgram(NamedTuple):
    """The loop that each device runs."""

    losses: list[DeviceLoss]
    penalties: list[DeviceLoss]
    cuts: list[int]  # where the parameters are split into pieces, if one specialization has them all
    optimizer: Any
    rule: Callable[..., Any]
    metric: Any

    @classmethod
    def of(
        cls, losses: Sequence[Any], penalty: Any, parameters: Sequence[Any], optimizer: Any, rule: Any, metric: Any
    ) -> StepProgram:
        """Derive the functions of the loop from specializations."""
        pieces, cuts = None, []
        if len(losses) == 1 and penalty is None and len(losses[0].parameters) == len(parameters):
            params = losses[0].lifted.program.of_role("param")
            pieces = [[*some] for _, some in groupby(params, lambda array: array.name if array.size > ALONE else "")]
            cuts = [*accumulate(sum(array.size for array in piece) for piece in pieces)][:-1]
        penalties = [] if penalty is None else [DeviceLoss.of(penalty, parameters)]
        functions = [DeviceLoss.of(path, parameters, pieces) for path in losses]
        return cls(functions, penalties, cuts, optimizer, rule, metric)

    def compiled(self, mesh: Mesh, shares: Shares, clip_norm: float, several_processes: bool) -> Any:
        """Compile the loop for the optimizer's current settings."""
        rule, optimizer, is_filled = self.rule, self.optimizer, shares.is_filled

        def loop(now: Any, carry: Any, columns: Any, rows: Any, weights: Any, fractions: Any) -> Any:
            (start, end), loss, factors = now[:2].astype(jnp.int32), now[2], now[3:].reshape(len(fractions), -1)

            def goes_on(at: Any) -> Any:
                return (at[0] < end) & at[1]

            def step(at: Any) -> Any:
                n, _, moving, _, total, correct = at
                x = [piece[0] for piece in moving]
                part = self._batch(x, columns, rows[n, 0], weights[n, 0], is_filled)
                loss, grads, score, missed = untyped.lax.psum(part, AXIS) if mesh.size > 1 else part
                loss, grads, missed = self._penalized(x, loss, grads, missed)
                squares = sum(part @ part for part in grads)
                fits = (missed == 0) & jnp.isfinite(loss) & jnp.isfinite(squares)
                if clip_norm:  # as `clip_grad_norm`
                    factor = jnp.minimum(1.0, clip_norm / (jnp.sqrt(squares) + 1e-6))
                    grads = [part * factor for part in grads]
                total += jnp.where(fits, fractions[n] * loss, 0.0)
                correct += jnp.where(fits, score, 0.0)

                def moved(moving: Any) -> Any:
                    pairs = zip(moving, grads, strict=True)
                    return [[*rule(optimizer, tuple(factors[n]), x, part, *state)] for (x, *state), part in pairs]

                moving = jax.lax.cond(fits, moved, lambda moving: moving, moving)
                return n + fits, fits, moving, grads, total, correct

            moving, grads = [[x, *state] for x, _, *state in carry], [piece[1] for piece in carry]
            begun = start, True, moving, grads, loss, jnp.zeros_like(loss)
            last, fits, moving, grads, total, correct = jax.lax.while_loop(goes_on, step, begun)
            # A step that was not made leaves no gradients.
            grads = jax.lax.cond(fits, lambda grads: grads, lambda grads: [*map(jnp.zeros_like, grads)], grads)
            carry = [[x, part, *state] for (x, *state), part in zip(moving, grads, strict=True)]
            return jnp.stack([(last - start).astype(total.dtype), total, correct]), carry

        specs = (WHOLE, WHOLE, ROWS, PARTS, PARTS, WHOLE)
        each = jax.shard_map(loop, mesh=mesh, in_specs=specs, out_specs=WHOLE, check_vma=False)
        # The arguments are donated, except with several processes: one may end, and the others keep their numbers.
        return jax.jit(each, donate_argnums=() if several_processes else 1)

    def _batch(self, x: Any, columns: Any, rows: Any, weights: Any, is_filled: bool) -> Any:
        """Compute for this device's part of a batch the weighted loss, its gradient, the number of correct predictions,
        and the number of rows without a valid specialization.
        """

        def piece(so_far: Any, now: Any) -> Any:
            rows, weights = now
            return jax.tree.map(jnp.add, so_far, self._piece(x, columns, rows, weights, is_filled)), None

        zero = jnp.zeros((), jnp.result_type(float))
        begun = zero, [*map(jnp.zeros_like, x)], zero, zero
        if len(rows) == 1:
            return self._piece(x, columns, rows[0], weights[0], is_filled)
        return jax.lax.scan(piece, begun, (rows, weights))[0]

    def _piece(self, x: Any, columns: Any, rows: Any, weights: Any, is_filled: bool) -> Any:
        """Do the same for some rows, each by its valid specialization."""
        given = [column[rows] for column in columns]
        loss = correct = jnp.zeros((), x[0].dtype)
        grads, unmatched = [*map(jnp.zeros_like, x)], weights > 0
        for each in self.losses:
            taken, its = unmatched, given
            if len(self.losses) > 1:  # other rows are replaced by a valid one, as they might give nan
                taken = unmatched & each.run(x, given)[2]
                its = [column[jnp.where(taken, jnp.arange(len(rows)), taken.argmax())] for column in given]
            share = jnp.where(taken, weights, 0.0)
            outputs, by, is_valid = each.run(x, its, share)
            out = outputs["out"]
            by = by if out.ndim else [part * share.sum() for part in by]
            if len(self.losses) > 1 or not is_filled:
                is_any = taken.any()
                out, by = jnp.where(is_any, out, 0.0), [jnp.where(is_any, part, 0.0) for part in by]
            loss, grads = loss + (share * out).sum(), each.added(grads, by)
            if self.metric is not None:
                cell = each.specialization.lifted.program.outputs["auxiliary"].cell_shape
                shown = jnp.broadcast_to(outputs["auxiliary"], (len(rows), *cell))
                correct += jnp.where(taken, self.metric.rows(shown, its[-1]), 0.0).sum()
            unmatched &= ~(taken & is_valid)
        return loss, grads, correct, unmatched.sum().astype(loss.dtype)

    def _penalized(self, x: Any, loss: Any, grads: Any, missed: Any) -> Any:
        for each in self.penalties:
            outputs, by, is_valid = each.run(x, [], jnp.ones(()))
            loss, grads = loss + outputs["out"], each.added(grads, by)
            missed += 1 - jnp.asarray(is_valid)
        return loss, grads, missed
