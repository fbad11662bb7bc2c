"""Training steps on devices: many batches in one XLA loop, on one or several devices, of one or several processes.

Each device has a copy of the data, the parameters and the optimizer's state. Each batch is split over the devices, with
a weight for each row, so that the parts may differ in size; the gradients are summed over all devices, and each device
makes the same step by the optimizer's own rule. The loop ends before a step in which a row has no known specialization
or a number is not finite: that step has changed nothing, and is made outside the loop.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from itertools import accumulate, groupby, pairwise, starmap
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding

from wengert import optim
from wengert.compiler.backends import precision, traced
from wengert.compiler.derive import reverse
from wengert.compiler.ir import Array
from wengert.compiler.trace import Specialization
from wengert.errors import ArgumentError
from wengert.optim import Optimizer
from wengert.training.batches import places
from wengert.training.hosts import Hosts
from wengert.training.program import FlatSteps, Recorded

__all__ = ["DeviceSteps", "devices_of"]

AXIS = "examples"
untyped: Any = jax  # for parts of JAX without types
WHOLE = untyped.sharding.PartitionSpec()  # replicated
ROWS = untyped.sharding.PartitionSpec(AXIS)  # split along the first axis
PARTS = untyped.sharding.PartitionSpec(None, AXIS)  # split along the second axis
PIECE = 1 << 13  # the number of examples that a device computes at once; more would cost memory and gain no time
ALONE = 1 << 12  # larger arrays of parameters are updated separately, without a copy, and smaller ones together
PAUSE = 500_000_000  # operations between two returns to Python; more than without devices, as a call takes longer


def devices_of(count: int, asked: Any) -> tuple[Hosts, Callable[..., FlatSteps | None]]:
    """Return the processes of a run, of which this one has `count` examples, and what makes steps on arrays: on the
    devices of `asked` (see `_mesh_of`) if the optimizer's rule and the data allow it.
    """
    hosts, mesh = _hosts_of(count), _mesh_of(asked)

    def steps(programs: list[Recorded], optimizer: Optimizer, *more: Any) -> FlatSteps | None:
        if DeviceSteps.serve_there(programs[0], optimizer, more[-1]):
            return DeviceSteps(programs, optimizer, *more, mesh=mesh, hosts=hosts)
        return None if hosts.several else FlatSteps(programs, optimizer, *more)

    return hosts, steps


def _hosts_of(count: int) -> Hosts:
    """Return the processes of `jax.distributed.initialize`, of which this one has `count` examples."""
    if jax.process_count() == 1:
        return Hosts([count])

    def exchange(numbers: Sequence[float]) -> Any:
        with precision(False):
            return np.asarray(multihost_utils.process_allgather(np.array(numbers, float)))

    return Hosts(exchange([count])[:, 0].astype(int).tolist(), jax.process_index(), exchange)


def _mesh_of(asked: Any) -> Mesh:
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


@cache
def _rules() -> dict[str, Any]:
    """Run the source of `optim.py` as Python, since the compiled rules take C numbers only."""
    return runpy.run_path(str(Path(str(optim.__file__)).with_name("optim.py")))


def _rule_of(optimizer: Optimizer) -> Callable[..., Any]:
    """Return the `_moved` of an optimizer, for JAX arrays."""
    owner = next(kind for kind in type(optimizer).__mro__ if "_moved" in vars(kind))
    rule: Callable[..., Any] = vars(_rules()[owner.__name__])["_moved"]
    return rule


class Losses(NamedTuple):
    """A specialization of the loss, or of the regularization, as JAX functions."""

    made: Specialization
    spots: Any  # the indices of its parameters among all; None if they are all, in its order
    forward: Callable[..., Any]  # computes its outputs
    forward_backward: Callable[..., Any]  # computes its outputs and derivatives

    @classmethod
    def of(
        cls, made: Specialization, parameters: Sequence[Any], pieces: Sequence[Sequence[Array]] | None = None
    ) -> Losses:
        """Make the functions of a specialization; `pieces` has the parameters as several arrays."""
        program = made.lifted.program
        back, spots = reverse(program, (), weighted=True), places(made.parameters, parameters)
        if pieces is not None or np.array_equal(spots, np.arange(len(parameters))):
            spots = None
        return cls(made, spots, traced(program, None, (), pieces), traced(program, back, (), pieces))

    def run(self, x: Sequence[Any], columns: Sequence[Any], weights: Any = None) -> tuple[dict[str, Any], Any, Any]:
        """Compute the outputs for some rows, the derivatives if there are weights, and a mask of the valid rows."""
        inputs = self.made.kernel.inputs
        columns = [c if a.role == "index" else c.astype(x[0].dtype) for c, a in zip(columns, inputs, strict=True)]
        counted, inside = self.made.counted(columns, jnp)
        numbers = x if self.spots is None else [x[0][self.spots]]
        outputs, grads, _ = (self.forward if weights is None else self.forward_backward)(numbers, weights, counted)
        held: Any = True if inside is None else inside
        if self.made.guards:
            held = held & self.made.guards.guards_pass(outputs, jnp)
        return outputs, grads, held

    def added(self, grads: Sequence[Any], by: Sequence[Any]) -> list[Any]:
        """Add the derivatives with respect to its own parameters to those with respect to all."""
        if self.spots is None:
            return [whole + part for whole, part in zip(grads, by, strict=True)]
        return [grads[0].at[self.spots].add(by[0])]


class DeviceSteps(FlatSteps):
    """The steps of an optimizer on the devices of a mesh.

    Args:
        *given: see `FlatSteps`.
        mesh: the devices.
        hosts: the processes whose devices these are.
    """

    def __init__(self, *given: Any, mesh: Mesh, hosts: Hosts) -> None:
        super().__init__(*given)
        self.mesh: Mesh = mesh
        self.hosts: Hosts = hosts
        self.pause: int = PAUSE
        losses, *penalties = self.programs
        self.single: bool = losses.paths[0].kernel.single  # type: ignore[attr-defined]
        first, pieces = losses.paths[0], None
        self.cuts: list[int] = []  # where the parameters are split into pieces, if one specialization has them all
        if len(losses.paths) == 1 and not penalties and len(first.parameters) == len(self.parameters):
            params = first.lifted.program.of_role("param")
            pieces = [[*some] for _, some in groupby(params, lambda array: array.name if array.size > ALONE else "")]
            self.cuts = [*accumulate(sum(array.size for array in piece) for piece in pieces)][:-1]
        self.losses: list[Losses] = [Losses.of(path, self.parameters, pieces) for path in losses.paths]
        self.penalties: list[Losses] = [Losses.of(path, self.parameters) for each in penalties for path in each.paths]
        self.settings: Any = None  # the optimizer's settings and the split of the batches that the loop was made for
        self.loop: Any = None
        self.mark: int = 0  # a hash of its text
        self.carry: Any = ()  # on the devices: the parameters, the gradients and the state of each piece
        self.since: int = 0  # the number of steps these are ahead of the arrays
        self.unread: list[Any] = []  # results of a run that have not been read yet
        self.is_filled: bool = False  # True if each piece of each batch has rows
        with precision(self.single):
            self.columns: list[Any] = [self._on_each(column) for column in self.data]

    @staticmethod
    def serve_there(losses: Recorded, optimizer: Optimizer, data: Sequence[Any]) -> bool:
        """Return True if steps can be made on devices: the optimizer is a built-in one, and indices are integers."""
        inputs = [zip(path.kernel.inputs, data, strict=True) for path in losses.paths]
        whole = all(array.role != "index" or x.dtype.kind == "i" for pairs in inputs for array, x in pairs)
        return whole and optimizer._loop(optimizer._state) is not None

    def _on_each(self, column: Any) -> Any:
        """Copy this process's examples to each of its devices, padded to the largest number of any process."""
        padded = self._typed(np.resize(column, (max(self.hosts.counts), *column.shape[1:])))
        shape = (self.mesh.size * len(padded), *column.shape[1:])
        parts = [jax.device_put(padded, device) for device in self.mesh.local_devices]
        return jax.make_array_from_single_device_arrays(shape, NamedSharding(self.mesh, ROWS), parts)

    def _everywhere(self, numbers: Any) -> Any:
        numbers = self._typed(numbers)
        return jax.make_array_from_callback(
            numbers.shape, NamedSharding(self.mesh, WHOLE), lambda place: numbers[place]
        )

    def _shared(self, numbers: Any) -> Any:
        """Distribute this process's numbers over its devices, split along the second axis."""
        shape = (len(numbers), self.mesh.size, *numbers.shape[2:])
        split = NamedSharding(self.mesh, PARTS)
        return untyped.make_array_from_process_local_data(split, self._typed(numbers), shape)

    def _typed(self, numbers: Any) -> Any:
        numbers = np.asarray(numbers)
        return numbers.astype({"f": "f4", "i": "i4"}.get(numbers.dtype.kind, numbers.dtype)) if self.single else numbers

    def begin(self, order: Any, size: int, clip_norm: float) -> None:
        """Begin an epoch as `Batches.begin` does, and send the rows of each batch to their devices with weights."""
        super().begin(order, size, clip_norm)
        settings = ([getattr(self.optimizer, name) for name in self.optimizer._settings], size, len(order), clip_norm)
        with precision(self.single):
            if self.settings != settings:
                self.settings, self.mark = settings, 0
                self._cut(size)
                self.loop = self._compiled(clip_norm)
            rows = order.astype(np.int32)[self.taken]
            self.rows: Any = self._shared(rows) if self.hosts.several else rows  # plain rows are passed with the call

    def _cut(self, size: int) -> None:
        """Split the batches: the examples that each device gets, in pieces, and their weights."""
        (cuts, shares), here = self.hosts.batches(size), self.hosts.here
        devices = [sum(d.process_index == n for d in self.mesh.devices.flat) for n in range(len(cuts))]
        each = max(-(-(end - start) // n) for n, at in zip(devices, cuts, strict=True) for start, end in pairwise(at))
        pieces = -(-each // PIECE)
        width = -(-each // pieces)
        room = devices[here] * pieces * width
        starts, counts = np.array(cuts[here][:-1]), np.diff(cuts[here])
        column = np.arange(room)
        taken = np.minimum(column, np.maximum(counts, 1)[:, None] - 1) + starts[:, None]  # padded with the last one
        shape = (len(counts), devices[here], pieces, -1)
        weights = (column < counts[:, None]) / (np.array(shares)[:, None] * self.hosts.total)
        self.taken: Any = taken.reshape(shape)
        self.shares: Any = self._everywhere(shares)  # each batch's fraction of all examples
        self.is_filled = self.mesh.size == 1 and bool((counts > (pieces - 1) * width).all())
        self.weights: Any = self._shared(weights.reshape(shape))

    def load(self) -> None:
        """Read the Values into the arrays, and copy these to the devices."""
        super().load()
        if "age" in self.state:  # equal for all parameters
            self.state["age"] = self.state["age"][:1]
        whole = [self.numbers, np.zeros(len(self.numbers)), *self.state.values()]
        cut = [[x] * (len(self.cuts) + 1) if len(x) < len(self.numbers) else np.split(x, self.cuts) for x in whole]
        with precision(self.single):
            self.carry = [[*map(self._everywhere, piece)] for piece in zip(*cut, strict=True)]
        self.since = 0

    def store(self) -> None:
        """Copy the numbers from the devices, and write them to the Values."""
        if self.unread:
            self._noted()
        if any(x.is_deleted() for x in jax.tree.leaves(self.carry)):
            # An interrupted run has donated them; the Values still have the numbers from before.
            self.optimizer.steps, self.since = self.optimizer.steps - self.since, 0
            return
        numbers, gradients, *state = zip(*jax.device_get(self.carry), strict=True)
        self.numbers[...], self.gradients[...] = np.concatenate(numbers), np.concatenate(gradients)
        for (name, old), new in zip(self.state.items(), state, strict=True):
            self.state[name] = np.asarray(new[0] if name == "age" else np.concatenate(new), old.dtype)
        self.since = 0
        super().store()

    def count_right(self, start: int) -> None:
        """Set the next example; the devices count correct predictions."""
        self.first: int = start
        self.stop: int = start

    def steps_until_check(self, start: int) -> int:
        """Return the minimum over all processes; 0 if their programs differ."""
        changed = any(each.made.stale_capture() for each in (*self.losses, *self.penalties))
        return self.hosts.least(0 if changed else super().steps_until_check(start), self._marked())

    def run(self, start: int, steps: int, loss: float, state: Any) -> tuple[int, float]:
        """Make steps on the devices; see `Batches.run`."""
        given = self._given(steps, loss)
        with precision(self.single):
            # The run overwrites its arguments. So its results are stored by the same call that starts it: Ctrl-C is
            # raised before the call, or when the results are read.
            self.unread.extend(starmap(self.loop, [given]))
            self.meanwhile()
            return self._noted()

    def _noted(self) -> tuple[int, float]:
        """Wait for a run, and store its results; return the number of steps and the epoch's loss so far."""
        told, carry = self.unread[0]
        try:
            made, loss, right = np.asarray(told).tolist()
        except Exception:  # another process has ended: the numbers stay those from before
            self.unread = []
            raise
        self.right: float = self.right + right
        since, steps = self.since + int(made), self.optimizer.steps + int(made)
        self.carry, self.since, self.optimizer.steps, self.unread = carry, since, steps, []
        return int(made), loss

    def _given(self, steps: int, loss: float) -> tuple[Any, ...]:
        """Return the arguments of the loop, for `steps` steps from the next batch on."""
        end = min(self.number + steps, len(self.taken))
        lr, age = self.optimizer.lr, float(self.state["age"][0]) + self.since if "age" in self.state else 0.0
        factors = [self.optimizer._factors(lr, age + 1.0 + n) for n in range(end - self.number)]
        now = np.zeros(3 + len(self.taken) * len(factors[0]))  # one array for all, as each takes some microseconds
        now[:3] = self.number, end, loss
        now[3:].reshape(len(self.taken), -1)[self.number : end] = factors
        return self._typed(now), self.carry, self.columns, self.rows, self.weights, self.shares

    def _marked(self) -> int:
        """Return a hash of the loop's text if there are several processes, which compare it."""
        if self.hosts.several and not self.mark:
            with precision(self.single):
                text = self.loop.lower(*self._given(1, 0.0)).as_text()
            self.mark = int.from_bytes(sha256(text.encode()).digest()[:6], "big")
        return self.mark

    # -- the program of each device -----------------------------------------------------------------------------------

    def _compiled(self, clip_norm: float) -> Any:
        """Compile the loop for the optimizer's current settings."""
        rule, optimizer = _rule_of(self.optimizer), self.optimizer

        def loop(now: Any, carry: Any, columns: Any, rows: Any, weights: Any, shares: Any) -> Any:
            (start, end), loss, factors = now[:2].astype(jnp.int32), now[2], now[3:].reshape(len(shares), -1)

            def goes_on(at: Any) -> Any:
                return (at[0] < end) & at[1]

            def step(at: Any) -> Any:
                n, _, moving, _, total, right = at
                x = [piece[0] for piece in moving]
                found = self._batch(x, columns, rows[n, 0], weights[n, 0])
                loss, grads, score, missed = untyped.lax.psum(found, AXIS) if self.mesh.size > 1 else found
                loss, grads, missed = self._penalized(x, loss, grads, missed)
                squares = sum(part @ part for part in grads)
                fits = (missed == 0) & jnp.isfinite(loss) & jnp.isfinite(squares)
                if clip_norm:  # as `clip_grad_norm`
                    factor = jnp.minimum(1.0, clip_norm / (jnp.sqrt(squares) + 1e-6))
                    grads = [part * factor for part in grads]
                total, right = total + jnp.where(fits, shares[n] * loss, 0.0), right + jnp.where(fits, score, 0.0)

                def moved(moving: Any) -> Any:
                    pairs = zip(moving, grads, strict=True)
                    return [[*rule(optimizer, tuple(factors[n]), x, part, *state)] for (x, *state), part in pairs]

                moving = jax.lax.cond(fits, moved, lambda moving: moving, moving)
                return n + fits, fits, moving, grads, total, right

            moving, grads = [[x, *state] for x, _, *state in carry], [piece[1] for piece in carry]
            begun = start, True, moving, grads, loss, jnp.zeros_like(loss)
            last, fits, moving, grads, total, right = jax.lax.while_loop(goes_on, step, begun)
            # A step that was not made leaves no gradients.
            grads = jax.lax.cond(fits, lambda grads: grads, lambda grads: [*map(jnp.zeros_like, grads)], grads)
            carry = [[x, part, *state] for (x, *state), part in zip(moving, grads, strict=True)]
            return jnp.stack([(last - start).astype(total.dtype), total, right]), carry

        specs = (WHOLE, WHOLE, ROWS, PARTS, PARTS, WHOLE)
        each = jax.shard_map(loop, mesh=self.mesh, in_specs=specs, out_specs=WHOLE, check_vma=False)
        # The arguments are donated, except with several processes: one may end, and the others keep their numbers.
        return jax.jit(each, donate_argnums=() if self.hosts.several else 1)

    def _batch(self, x: Any, columns: Any, rows: Any, weights: Any) -> Any:
        """Compute for this device's part of a batch the weighted loss, its gradient, the number of correct predictions,
        and the number of rows without a valid specialization.
        """

        def piece(so_far: Any, now: Any) -> Any:
            found = self._piece(x, columns, *now)
            return jax.tree.map(jnp.add, so_far, found), None

        zero = jnp.zeros((), jnp.result_type(float))
        begun = zero, [*map(jnp.zeros_like, x)], zero, zero
        if len(rows) == 1:
            return self._piece(x, columns, rows[0], weights[0])
        return jax.lax.scan(piece, begun, (rows, weights))[0]

    def _piece(self, x: Any, columns: Any, rows: Any, weights: Any) -> Any:
        """Do the same for some rows, each by its valid specialization."""
        given = [column[rows] for column in columns]
        loss = right = jnp.zeros((), x[0].dtype)
        grads, unmatched = [*map(jnp.zeros_like, x)], weights > 0
        for each in self.losses:
            taken, its = unmatched, given
            if len(self.losses) > 1:  # other rows are replaced by a valid one, as they might give nan
                taken = unmatched & each.run(x, given)[2]
                its = [column[jnp.where(taken, jnp.arange(len(rows)), taken.argmax())] for column in given]
            share = jnp.where(taken, weights, 0.0)
            outputs, by, held = each.run(x, its, share)
            out = outputs["out"]
            by = by if out.ndim else [part * share.sum() for part in by]
            if len(self.losses) > 1 or not self.is_filled:
                known = taken.any()
                out, by = jnp.where(known, out, 0.0), [jnp.where(known, part, 0.0) for part in by]
            loss, grads = loss + (share * out).sum(), each.added(grads, by)
            if self.metric is not None:
                cell = each.made.lifted.program.outputs["auxiliary"].cell_shape
                shown = jnp.broadcast_to(outputs["auxiliary"], (len(rows), *cell))
                right += jnp.where(taken, self.metric.rows(shown, its[-1]), 0.0).sum()
            unmatched &= ~(taken & held)
        return loss, grads, right, unmatched.sum().astype(loss.dtype)

    def _penalized(self, x: Any, loss: Any, grads: Any, missed: Any) -> Any:
        for each in self.penalties:
            outputs, by, held = each.run(x, [], jnp.ones(()))
            loss, grads = loss + outputs["out"], each.added(grads, by)
            missed += 1 - jnp.asarray(held)
        return loss, grads, missed
