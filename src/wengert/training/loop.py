"""Trains on a task for `fit`: the engine computes each batch example by example, or the compiled model and loss do.

Both give the same losses up to rounding. `choose` decides at the start of a run and the run keeps to it, so that a
resumed run gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from wengert.compiler import Compiled
from wengert.compiler.backends import BACKENDS, default_backend
from wengert.engine import Value
from wengert.errors import ArgumentError, MissingExtraError, StaleRecordingError, warn
from wengert.functions import sum as total
from wengert.modes import eager_only, no_grad
from wengert.optim import Optimizer, clip_grad_norm
from wengert.training.history import Progress
from wengert.training.hosts import Hosts
from wengert.training.orders import Orders
from wengert.training.task import CHUNK, Outcome, Places, RefusedError, Task

if TYPE_CHECKING:
    from wengert.training.program import CompiledTask  # which needs NumPy, as does
    from wengert.training.steps import ArraySteps

__all__ = ["DivergedError", "Trainer", "choose", "uncompiled"]

Answer = TypeVar("Answer")
EVERY = 1 << 60  # more examples than any run has


class DivergedError(Exception):
    """The loss of a batch is not finite."""


def choose(
    backend: str,
    *task: Any,
    dtype: str = "float64",
    mesh: Any = None,
    epochs: int = 1,
    size: int | None = None,
    settled: str = "",
) -> Trainer:
    """Choose what trains on `Task(*task)`.

    Args:
        backend: "eager" takes the engine, and the name of a back end its array program. "auto" takes the array program,
            as machine code or by NumPy, if the loss and the data can be compiled and the rule of counts says so for all
            examples of all epochs (see `compile`), else the engine; `Trainer.fallback` says why it is the engine, and
            is empty if the counts decided.
        *task: the fields of a Task.
        epochs: the number of epochs.
        size: the number of examples in a batch; None takes all of them.
        settled: the back end of the earlier run that this one continues; empty if there is none.
        dtype: the type of numbers that a back end computes with.
        mesh: the devices of a back end that uses devices; None takes its default.

    Raises:
        MissingExtraError: a library that the given back end needs is not installed.
        ArgumentError: a back end is given, and the loss or the data cannot be compiled.
    """
    asked, wanted, fallback = Task(*task), settled if backend == "auto" else backend, ""
    row = BACKENDS.get(wanted)
    if mesh is not None and (row is None or not row.device or backend == "auto"):
        raise ArgumentError(f'mesh needs backend="xla", which runs on devices; backend is {backend!r}')
    if wanted == "eager":
        if dtype != "float64":
            raise ArgumentError(f"dtype is {dtype!r}, but the engine computes in double precision: pass 'float64'")
        return Trainer(asked)
    try:
        chosen = (default_backend() if row is None else row).typed(dtype)
        chosen.require()
        if eager_only():
            raise RefusedError("strict() and detect_anomaly() check every operation")
        from wengert.training.program import CompiledTask  # needs NumPy
        from wengert.training.steps import ArraySteps

        count = len(asked.examples)
        hosts, devices, work = Hosts([count]), None, None
        if chosen.device:
            from wengert.compiler.backends import mesh_of, processes_of  # need JAX

            hosts, devices = Hosts(*processes_of(count)), mesh_of(mesh)
        if backend == "auto" and chosen == default_backend():
            work = (EVERY, EVERY) if settled else (epochs * count, min(size or count, count))
        compiled = CompiledTask(asked, chosen, work)
        if compiled.serves:
            return Trainer(asked, ArraySteps(compiled, hosts, devices))
    except MissingExtraError as error:
        if backend != "auto":
            raise
        fallback = str(error)
    except RefusedError as reason:
        if backend != "auto":
            raise ArgumentError(f"backend is {backend!r}, but the loss cannot be compiled: {reason}") from None
        fallback = str(reason)
    return Trainer(asked, fallback=fallback)


class Trainer:
    """A task in training: by array programs as long as they are valid, else by the engine.

    Attributes:
        task: the task.
        steps: makes steps on arrays by the task's array programs; None if there are none, or no longer.
        fallback: why the engine runs although it was not asked for; else empty.
        hosts: the processes that train together.
    """

    def __init__(self, task: Task, steps: ArraySteps | None = None, fallback: str = "") -> None:
        self.task: Task = task
        self.steps: ArraySteps | None = steps
        self.fallback: str = fallback
        self.hosts: Hosts = Hosts([len(task.examples)]) if steps is None else steps.hosts

    @property
    def compiled(self) -> CompiledTask | None:
        """The array programs; None if there are none, or no longer."""
        return None if self.steps is None else self.steps.program

    @property
    def name(self) -> str:
        """The back end that runs now, or "eager" for the engine."""
        return "eager" if self.steps is None else self.steps.program.backend.name

    def _ask(self, program: Callable[[ArraySteps], Answer], engine: Callable[[], Answer]) -> Answer:
        """Return the result of the array programs, or of the engine if there are none or they are stale."""
        if self.steps is None:
            return engine()
        try:
            answer, why = program(self.steps), self.steps.program.fallback_reason()  # it has warned itself
        except StaleRecordingError as error:
            self.release()
            self.steps, self.fallback = None, str(error)
            warn(f"fit continues on the engine: {error}", RuntimeWarning)
            return engine()
        if why:
            self.release()
            self.steps, self.fallback = None, why
        return answer

    def learn(
        self,
        orders: Orders,
        size: int,
        optimizer: Optimizer,
        clip_norm: float | None,
        progress: Progress,
        goes_on: bool = False,
    ) -> Outcome:
        """Train for one epoch, one step per batch; return the mean loss, each batch's before its step, and the mean
        metric if there is one.

        Args:
            orders: has the order of the examples.
            size: the number of examples in a batch.
            optimizer: makes the steps.
            clip_norm: the largest norm of the gradient, or None.
            progress: counts the batches.
            goes_on: True if the next epoch follows without any user code in between, so that the Values of the
                parameters can be updated later: see `release`.

        Raises:
            DivergedError: a loss is not finite; its step was not made.
        """
        steps, number, loss, score = self.steps, 0, 0.0, 0.0
        order = orders.next(steps is not None)
        every, shares = self.hosts.batches(size)
        cuts = every[self.hosts.here]
        if steps is not None:
            steps.begin(order, size, optimizer, clip_norm, orders.prepare)
        try:
            while number < len(shares):
                done, loss = self._steps(number, cuts[number], loss)
                if not done:
                    batch, done = order[cuts[number] : cuts[number + 1]], 1
                    try:
                        outcome = self._step(batch, optimizer, clip_norm)
                    except DivergedError as reason:
                        raise DivergedError(f"batch {number}: {reason}") from None
                    loss += shares[number] * outcome[0]
                    score += sum(outcome[1:])
                number += done
                progress.batches(done)
        finally:
            score += steps.end(goes_on) if steps is not None else 0.0
        return (loss,) if self.task.metric is None else (loss, score / self.hosts.total)

    def _steps(self, number: int, start: int, loss: float) -> tuple[int, float]:
        """Make some steps on arrays from a batch on, if possible; see `FlatSteps.step`."""
        return self._ask(lambda steps: steps.run(number, start, loss), lambda: (self.hosts.least(0), loss))

    def _step(self, batch: Places, optimizer: Optimizer, clip_norm: float | None) -> Outcome:
        """Make one step on a batch; return its outcome before the step."""
        optimizer.zero_grad()
        outcome: Outcome = (0.0,) if self.task.metric is None else (0.0, 0.0)
        if len(batch):  # one of several processes may have no example in it
            outcome = self.gradient(batch)
        outcome = self.hosts.step(outcome, len(batch), optimizer.parameters)
        if not isfinite(outcome[0]):
            raise DivergedError(
                f"the loss is {outcome[0]}: training ended before the step that would spoil "
                f"the parameters. Try a learning rate below {optimizer.lr:g}"
            )
        if clip_norm is not None:
            clip_grad_norm(optimizer.trainable, clip_norm)
        optimizer.step()
        return outcome

    def gradient(self, batch: Places) -> Outcome:
        """Add the gradient of the batch's mean loss, and of the regularization, to the parameters."""
        penalty = 0.0
        if self.task.regularization is not None:
            added = self.task.regularization()
            added.backward()
            penalty = added.data
        loss, *score = self._sums(batch)
        return (loss / len(batch) + penalty, *score)

    def measure(self) -> Outcome:
        """Return the mean loss of the validation examples, and the mean metric if there is one."""
        count = len(self.task.held_out)
        sums = self._sums(range(count), held_out=True)
        return tuple(self.hosts.mean([number / count for number in sums], count))

    def _sums(self, places: Places, held_out: bool = False) -> list[float]:
        """Return the sums over some examples of the loss and of the metric if there is one. The gradient of their mean
        loss is added to the parameters, unless they are held out.
        """
        outcomes: list[Outcome] = []
        rest = places
        while len(rest):
            count = CHUNK if self.steps is None else self.steps.program.chunk
            losses, new = self._piece(rest[:count], held_out)
            if not held_out:
                losses.backward(1.0 / len(places))
            outcomes += new
            rest = rest[count:]
        return [*map(sum, zip(*outcomes, strict=True))]

    def _piece(self, places: Places, held_out: bool) -> tuple[Value, list[Outcome]]:
        """Return the sum of the losses of these examples, and one outcome for all of them or one for each."""
        return self._ask(
            lambda steps: steps.program.piece(places, held_out), lambda: self._eager_piece(places, held_out)
        )

    def _eager_piece(self, places: Places, held_out: bool) -> tuple[Value, list[Outcome]]:
        model, loss_of, metric = self.task[:3]
        examples = self.task.held_out if held_out else self.task.examples
        losses: list[Value] = []
        outcomes: list[Outcome] = []
        with no_grad() if held_out else nullcontext():
            for x, y in [examples[i] for i in places]:
                prediction = model(x)
                losses.append(loss_of(prediction, y))
                outcomes.append((losses[-1].data, *([] if metric is None else [float(metric(prediction, y))])))
            return total(losses), outcomes

    def release(self) -> None:
        """Update the Values of the parameters and the optimizer from arrays."""
        if self.steps is not None:
            self.steps.release()

    def cross_check(self) -> None:
        """Compare the array program with the user's code, after other user code has run."""
        self.release()
        self._ask(lambda steps: steps.program.cross_check(), lambda: None)


def uncompiled(function: Any) -> Any:
    """Return the user's function without the decorator `compile`, since fit compiles model and loss together."""
    return function.function if isinstance(function, Compiled) else function
