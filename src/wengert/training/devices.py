"""Training steps on devices: many batches in one loop of XLA, on one device or on several, of one process or of many.

The data, the parameters and the optimizer's state lie on each device. Of each batch every device has a share of the
rows, each row with a weight, so that a share may be smaller than another; the derivatives are added up over all
devices, and each of them makes the same step by the optimizer's own rule. The loop ends before a step of which a row is
of no known specialization, or a number is not finite: that one has changed nothing, and is made by itself.
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
from wengert.compiler.ir import Array, reverse
from wengert.compiler.tracing import Specialization
from wengert.errors import ArgumentError
from wengert.optim import Optimizer
from wengert.training.flat import FlatSteps, Recorded, places
from wengert.training.hosts import Hosts

__all__ = ["DeviceSteps", "hosts_of", "mesh_of"]

AXIS = "examples"
untyped: Any = jax  # for what JAX declares no types of
WHOLE = untyped.sharding.PartitionSpec()  # of what each device has all of,
ROWS = untyped.sharding.PartitionSpec(AXIS)  # a part along the first axis,
PARTS = untyped.sharding.PartitionSpec(None, AXIS)  # and along the second
PIECE = 1 << 13  # how many examples a device computes at once; more would cost memory and gain no time
ALONE = 1 << 12  # numbers: larger arrays of parameters are moved as they are, without a copy, and smaller ones together
PAUSE = 500_000_000  # operations between two looks at what else there is to do: on devices a call takes longer


def hosts_of(count: int) -> Hosts:
    """The processes that `jax.distributed.initialize` has brought together, of which this one has so many examples."""
    if jax.process_count() == 1:
        return Hosts([count])

    def exchange(numbers: Sequence[float]) -> Any:
        with precision(False):
            return np.asarray(multihost_utils.process_allgather(np.array(numbers, float)))

    return Hosts(exchange([count])[:, 0].astype(int).tolist(), jax.process_index(), exchange)


def mesh_of(asked: Any) -> Mesh:
    """The devices that a run is asked to use: a number of them or a mesh of JAX's, of which all axes are one here; with
    None, those of all processes, or the one that JAX would choose.

    Raises:
        ArgumentError: there are not so many, or a process has none of them.
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
        raise ArgumentError("mesh leaves out the devices of a process: each needs at least one")
    return Mesh(np.array(devices), (AXIS,))


@cache
def _rules() -> dict[str, Any]:
    """What the optimizers' own text says, as Python runs it: compiled, their rules take C's numbers alone."""
    return runpy.run_path(str(Path(str(optim.__file__)).with_name("optim.py")))


def _rule_of(optimizer: Optimizer) -> Callable[..., Any]:
    """The `_moved` of an optimizer, for JAX's arrays."""
    owner = next(kind for kind in type(optimizer).__mro__ if "_moved" in vars(kind))
    rule: Callable[..., Any] = vars(_rules()[owner.__name__])["_moved"]
    return rule


class Losses(NamedTuple):
    """A recording of the loss, or of the regularization, as functions of JAX."""

    made: Specialization
    spots: Any  # where its parameters stand among all; None where these are just its own, in its order
    forward: Callable[..., Any]  # its outputs
    forward_backward: Callable[..., Any]  # and its derivatives

    @classmethod
    def of(
        cls, made: Specialization, parameters: Sequence[Any], pieces: Sequence[Sequence[Array]] | None = None
    ) -> Losses:
        """Those of a recording, with its parameters among all, or with the pieces in which all are."""
        program = made.lifted.program
        back, spots = reverse(program, (), weighted=True), places(made.parameters, parameters)
        if pieces is not None or np.array_equal(spots, np.arange(len(parameters))):
            spots = None
        return cls(made, spots, traced(program, None, (), pieces), traced(program, back, (), pieces))

    def run(self, x: Sequence[Any], columns: Sequence[Any], weights: Any = None) -> tuple[dict[str, Any], Any, Any]:
        """The outputs for some rows; the derivatives, if these have weights; and for which rows it holds."""
        inputs = self.made.kernel.inputs
        columns = [c if a.role == "index" else c.astype(x[0].dtype) for c, a in zip(columns, inputs, strict=True)]
        counted, inside = self.made.counted(columns, jnp)
        numbers = x if self.spots is None else [x[0][self.spots]]
        outputs, grads, _ = (self.forward if weights is None else self.forward_backward)(numbers, weights, counted)
        held: Any = True if inside is None else inside
        if self.made.guards:
            held = held & self.made.guards.hold(outputs, jnp)
        return outputs, grads, held

    def added(self, grads: Sequence[Any], by: Sequence[Any]) -> list[Any]:
        """The derivatives by all parameters, with those by its own added."""
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
        losses, penalty, optimizer = self.task
        self.single: bool = losses.paths[0].kernel.single  # type: ignore[attr-defined]
        first, pieces = losses.paths[0], None
        self.cuts: list[int] = []  # where the parameters are cut into pieces, if one recording has them all
        if len(losses.paths) == 1 and penalty is None and len(first.parameters) == len(self.parameters):
            params = first.lifted.program.of_role("param")
            pieces = [[*some] for _, some in groupby(params, lambda array: array.name if array.size > ALONE else "")]
            self.cuts = [*accumulate(sum(array.size for array in piece) for piece in pieces)][:-1]
        self.losses: list[Losses] = [Losses.of(path, self.parameters, pieces) for path in losses.paths]
        self.penalties: list[Losses] = [Losses.of(path, self.parameters) for path in (penalty.paths if penalty else ())]
        self.optimizer: Optimizer = optimizer
        self.settings: Any = None  # of the optimizer, and how the batches are cut, for which the loop was made
        self.loop: Any = None
        self.mark: int = 0  # of its text
        self.carry: Any = ()  # on the devices: of each piece the numbers, the gradients and the state,
        self.since: int = 0  # and how many steps these are ahead of the arrays
        self.unread: list[Any] = []  # what a run comes to that has not been noted yet
        self.is_filled: bool = False  # whether there are rows in each piece of each batch
        with precision(self.single):
            self.columns: list[Any] = [self._on_each(column) for column in self.data]

    @staticmethod
    def serve_there(losses: Recorded, optimizer: Optimizer, data: Sequence[Any]) -> bool:
        """Whether such steps can be made on devices: by a rule of ours, on integers where the data choose."""
        inputs = [zip(path.kernel.inputs, data, strict=True) for path in losses.paths]
        whole = all(array.role != "index" or x.dtype.kind == "i" for pairs in inputs for array, x in pairs)
        return whole and optimizer._loop(optimizer._state) is not None

    def _on_each(self, column: Any) -> Any:
        """This process's examples on each of its devices, filled up to the greatest number of any process."""
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
        """Numbers of which the devices have a part each, along the second axis; given are those of this process."""
        shape = (len(numbers), self.mesh.size, *numbers.shape[2:])
        split = NamedSharding(self.mesh, PARTS)
        return untyped.make_array_from_process_local_data(split, self._typed(numbers), shape)

    def _typed(self, numbers: Any) -> Any:
        numbers = np.asarray(numbers)
        return numbers.astype({"f": "f4", "i": "i4"}.get(numbers.dtype.kind, numbers.dtype)) if self.single else numbers

    def begin(self, order: Any, size: int, clip_norm: float) -> None:
        """See `Batches.begin`: the rows of each batch go to the devices that compute them, each with its weight."""
        super().begin(order, size, clip_norm)
        settings = ([getattr(self.optimizer, name) for name in self.optimizer._settings], size, len(order), clip_norm)
        with precision(self.single):
            if self.settings != settings:
                self.settings, self.mark = settings, 0
                self._cut(size)
                self.loop = self._compiled(clip_norm)
            rows = order.astype(np.int32)[self.taken]
            self.rows: Any = self._shared(rows) if self.hosts.several else rows  # these go along with the call

    def _cut(self, size: int) -> None:
        """Share the batches out: which of the examples in order each device gets, in pieces, and their weights."""
        (cuts, shares), here = self.hosts.batches(size), self.hosts.here
        devices = [sum(d.process_index == n for d in self.mesh.devices.flat) for n in range(len(cuts))]
        each = max(-(-(end - start) // n) for n, at in zip(devices, cuts, strict=True) for start, end in pairwise(at))
        pieces = -(-each // PIECE)
        width = -(-each // pieces)
        room = devices[here] * pieces * width
        starts, counts = np.array(cuts[here][:-1]), np.diff(cuts[here])
        column = np.arange(room)
        taken = np.minimum(column, np.maximum(counts, 1)[:, None] - 1) + starts[:, None]  # then the last one, again
        shape = (len(counts), devices[here], pieces, -1)
        weights = (column < counts[:, None]) / (np.array(shares)[:, None] * self.hosts.total)
        self.taken: Any = taken.reshape(shape)
        self.shares: Any = self._everywhere(shares)  # what part of all examples each batch is
        self.is_filled = self.mesh.size == 1 and bool((counts > (pieces - 1) * width).all())
        self.weights: Any = self._shared(weights.reshape(shape))

    def load(self) -> None:
        """See there; from the arrays to the devices."""
        super().load()
        if "age" in self.state:  # of all the same
            self.state["age"] = self.state["age"][:1]
        whole = [self.numbers, np.zeros(len(self.numbers)), *self.state.values()]
        cut = [[x] * (len(self.cuts) + 1) if len(x) < len(self.numbers) else np.split(x, self.cuts) for x in whole]
        with precision(self.single):
            self.carry = [[*map(self._everywhere, piece)] for piece in zip(*cut, strict=True)]
        self.since = 0

    def store(self) -> None:
        """See there; what is on the devices first."""
        if self.unread:
            self._noted()
        if any(x.is_deleted() for x in jax.tree.leaves(self.carry)):
            # A run was interrupted that had begun to overwrite them: what others see is still as it was.
            self.optimizer.steps, self.since = self.optimizer.steps - self.since, 0
            return
        numbers, gradients, *state = zip(*jax.device_get(self.carry), strict=True)
        self.numbers[...], self.gradients[...] = np.concatenate(numbers), np.concatenate(gradients)
        for (name, old), new in zip(self.state.items(), state, strict=True):
            self.state[name] = np.asarray(new[0] if name == "age" else np.concatenate(new), old.dtype)
        self.since = 0
        super().store()

    def count_right(self, start: int) -> None:
        """What is right is counted on the devices."""
        self.first: int = start
        self.stop: int = start

    def steps_until_check(self, start: int) -> int:
        """See there; as many as all processes can make, if they make the same ones."""
        changed = any(each.made.stale_capture() for each in (*self.losses, *self.penalties))
        return self.hosts.least(0 if changed else super().steps_until_check(start), self._marked())

    def run(self, start: int, steps: int, loss: float, state: Any) -> tuple[int, float]:
        """See `Batches.run`."""
        given = self._given(steps, loss)
        with precision(self.single):
            # The run overwrites what it begins with. So what it comes to is put down in the same call that starts it:
            # Ctrl-C comes before that, or when it is noted.
            self.unread.extend(starmap(self.loop, [given]))
            self.meanwhile()
            return self._noted()

    def _noted(self) -> tuple[int, float]:
        """Wait for a run, and note what it came to: how many steps it made, and the loss of the epoch so far."""
        told, carry = self.unread[0]
        try:
            made, loss, right = np.asarray(told).tolist()
        except Exception:  # of another process, which ended: the numbers are those from before
            self.unread = []
            raise
        self.right: float = self.right + right
        since, steps = self.since + int(made), self.optimizer.steps + int(made)
        self.carry, self.since, self.optimizer.steps, self.unread = carry, since, steps, []
        return int(made), loss

    def _given(self, steps: int, loss: float) -> tuple[Any, ...]:
        """What the loop takes, for so many steps from the next batch on, with the loss of the epoch so far."""
        end = min(self.number + steps, len(self.taken))
        lr, age = self.optimizer.lr, float(self.state["age"][0]) + self.since if "age" in self.state else 0.0
        factors = [self.optimizer._factors(lr, age + 1.0 + n) for n in range(end - self.number)]
        now = np.zeros(3 + len(self.taken) * len(factors[0]))  # one array for all, for each takes some microseconds
        now[:3] = self.number, end, loss
        now[3:].reshape(len(self.taken), -1)[self.number : end] = factors
        return self._typed(now), self.carry, self.columns, self.rows, self.weights, self.shares

    def _marked(self) -> int:
        """A number that tells the text of the loop from others, where there are several processes."""
        if self.hosts.several and not self.mark:
            with precision(self.single):
                text = self.loop.lower(*self._given(1, 0.0)).as_text()
            self.mark = int.from_bytes(sha256(text.encode()).digest()[:6], "big")
        return self.mark

    # -- what runs on each device -------------------------------------------------------------------------------------

    def _compiled(self, clip_norm: float) -> Any:
        """The loop, for the optimizer's settings of now."""
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
            # The derivatives of a batch that did not fit are none.
            grads = jax.lax.cond(fits, lambda grads: grads, lambda grads: [*map(jnp.zeros_like, grads)], grads)
            carry = [[x, part, *state] for (x, *state), part in zip(moving, grads, strict=True)]
            return jnp.stack([(last - start).astype(total.dtype), total, right]), carry

        specs = (WHOLE, WHOLE, ROWS, PARTS, PARTS, WHOLE)
        each = jax.shard_map(loop, mesh=self.mesh, in_specs=specs, out_specs=WHOLE, check_vma=False)
        # What goes on from step to step is overwritten, but where other processes may end: then the numbers stay.
        return jax.jit(each, donate_argnums=() if self.hosts.several else 1)

    def _batch(self, x: Any, columns: Any, rows: Any, weights: Any) -> Any:
        """Of this device's share of a batch, the weighted loss and its gradient, how many predictions are right, and
        how many rows are of no recording.
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
        """The same of some rows: each by the recording that holds for it, as on the other ways."""
        given = [column[rows] for column in columns]
        loss = right = jnp.zeros((), x[0].dtype)
        grads, unmatched = [*map(jnp.zeros_like, x)], weights > 0
        for each in self.losses:
            taken, its = unmatched, given
            if len(self.losses) > 1:  # other rows give way to one that it holds for, lest they come to nan
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
