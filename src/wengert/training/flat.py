"""Training steps on flat arrays, for `fit` with a compiled loss while nothing reads the parameters.

Gathering the parameters from their Values for each batch, and writing the gradients back, takes longer than the array
program of a small batch. So the parameters, the gradients and the optimizer's state stay in arrays from step to step,
in the order of the program's parameters. They are written back to the Values when something may read them: after an
epoch, before the function itself is run for a check, and for a batch that the program cannot run. Until then `Batches`
makes one step after the other. The steps have the bits of the optimizer's; the gradients are those of the compiled
loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler import Compiled, gather, scatter
from wengert.compiler.trace import Specialization
from wengert.optim import Optimizer
from wengert.training.batches import Batches
from wengert.training.metrics import Right

__all__ = ["FlatSteps", "Recorded", "places", "recorded"]

# In operations, of which machine code runs about 1,000 in a microsecond:
PAUSE = 5_000_000  # between two returns to Python, for Ctrl-C, other threads and the progress bar
SHOWN = 100_000_000  # between two updates of the Values, for other threads that read them


class Recorded(NamedTuple):
    """A compiled function with the specializations that run its calls here."""

    runtime: Any
    entry: Any  # the runtime's cache entry
    paths: tuple[Specialization, ...]

    def is_old(self) -> bool:
        """Return True if other specializations run its calls by now."""
        return bool(self.entry.is_eager) or tuple(self.entry.specializations) != self.paths

    def parameters(self) -> set[int]:
        """Return the ids of all their parameters."""
        return {id(p) for path in self.paths for p in path.parameters}


def recorded(compiled: Compiled, batch: Sequence[Any]) -> Recorded | None:
    """Return a compiled function's specializations for a batch, or for no arguments; None if it runs uncompiled."""
    runtime: Any = compiled._runtime
    entry = runtime.entry_for(runtime.arguments(batch, {}, bool(batch)), 1)
    paths = tuple(entry.specializations)
    return Recorded(runtime, entry, paths) if paths and not entry.is_eager else None


class FlatSteps(Batches):
    """The steps of an optimizer, with the parameters of a loss and the optimizer's state in arrays.

    Args:
        losses: the loss and, if there is a metric, the predictions.
        penalty: the regularization, or None.
        optimizer: the optimizer.
        metric: counts the correct predictions, or None.
        piece: the number of examples computed at once.
        data: an array for each argument of the loss, with one row per example.
    """

    def __init__(
        self,
        losses: Recorded,
        penalty: Recorded | None,
        optimizer: Optimizer,
        metric: Right | None,
        piece: int,
        data: list[Any],
    ) -> None:
        self.task: tuple[Recorded, Recorded | None, Optimizer] = (losses, penalty, optimizer)
        self.metric: Right | None = metric
        self.state: dict[str, Any] = {}
        self.held: bool = False  # True while the arrays have the current numbers, and False while the Values do
        self.unseen: int = 0  # the number of operations since the Values were updated
        self.pause: int = PAUSE  # operations between two returns to Python
        self.number: int = 0  # the index of the next batch
        self.meanwhile: Callable[[], None] = lambda: None  # called while devices compute
        self.first: int = 0  # the first example whose prediction has not been counted
        self.stop: int = 0  # the end of these
        self.right: float = 0.0  # the number of correct predictions counted so far
        first = losses.paths[0]
        self.nodes: int = max(path.nodes for path in losses.paths)  # operations per example
        # The parameters of the first specialization in its order, then the others.
        known = {id(p): p for p in (*first.parameters, *optimizer.parameters)}
        self.parameters: tuple[Any, ...] = tuple(known.values())
        self.places: Any = places(self.parameters, optimizer.parameters)
        self.open(
            list(losses.paths),
            [places(path.parameters, self.parameters) for path in losses.paths],
            data,
            penalty and penalty.paths[0],
            places(penalty.paths[0].parameters if penalty else (), self.parameters),
            optimizer,
            None if metric is None else first.kernel.program.outputs["auxiliary"].cell_shape,
            piece,
            np,
        )

    @staticmethod
    def serve(losses: Recorded, penalty: Recorded | None, optimizer: Optimizer) -> bool:
        """Return True if steps on arrays are equivalent: all parameters are leaves and belong to the optimizer."""
        moved = {id(p) for p in optimizer.parameters}
        if penalty is not None and (len(penalty.paths) > 1 or not penalty.parameters() <= moved):
            return False
        shapes = {getattr(path.kernel.program.outputs.get("auxiliary"), "cell_shape", None) for path in losses.paths}
        return len(shapes) == 1 and all(path.leaves for path in losses.paths) and losses.parameters() <= moved

    def is_old(self) -> bool:
        """Return True if other specializations run by now."""
        return any(each is not None and each.is_old() for each in self.task[:2])

    def goes_on(self, optimizer: Optimizer) -> bool:
        """Return True if the steps can be reused for another epoch of an optimizer."""
        return self.task[2] is optimizer and not self.is_old()

    def end(self, goes_on: bool = False) -> float:
        """End an epoch and return the number of correct predictions. The Values are updated, but less often if
        `goes_on`, when the next epoch follows without any user code in between.
        """
        if not goes_on:
            self.release()
        elif self.held and self.unseen > SHOWN:
            self.store()
        self.count_right(0)
        right, self.right = self.right, 0.0
        return right

    def release(self) -> None:
        """Update the Values, which have the current numbers from then on."""
        pressed = None
        while self.held:
            try:
                self.store()
                self.held = False
            except KeyboardInterrupt as interrupt:  # raised again once everything is written
                pressed = interrupt
        if pressed is not None:
            raise pressed

    def count_right(self, start: int) -> None:
        """Count the correct predictions so far; the next ones begin at the example `start`."""
        span = slice(self.first, self.stop)
        if self.metric is not None and self.first < self.stop:  # many at once, as NumPy's calls are slow
            self.right += self.metric.count(self.predictions[span], self.data[-1][self.order[span]])
        self.first = self.stop = start

    def load(self) -> None:
        """Read the Values and the optimizer's state into the arrays."""
        gather(self.parameters, self.numbers)
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.task[2]._state.items()}
        self.held, self.unseen = True, 0

    def store(self) -> None:
        """Write the arrays back to the Values and the optimizer, with the gradients of the last batch."""
        scatter(self.parameters, self.numbers, self.gradients)
        for name, numbers in self.state.items():
            np.frombuffer(self.task[2]._state[name])[self.places] = numbers
        self.unseen = 0

    def step(self, number: int, start: int, loss: float) -> tuple[int, float]:
        """Make some steps of the optimizer on the batches from `number` on, up to the next check or return to Python.

        Args:
            number: the index of the first batch.
            start: the index of its first example.
            loss: the epoch's loss so far.

        Returns:
            The number of steps, and `loss` plus that of each batch, weighted by its fraction of the epoch. The number
            is 0 if the program is not valid for the next batch or a number is not finite; the Values are current then.
        """
        self.number = number
        if start != self.stop:
            self.count_right(start)
        if not self.held:
            self.load()
        done = 0
        try:
            steps = self.steps_until_check(start)
            if steps:
                with np.errstate(all="ignore"):
                    done, loss = self.run(start, steps, loss, self.state)
                self.unseen += done * self.size * self.nodes
        finally:
            if not done:
                self.store()
                self.held = False
        for each in self.task[:2]:
            if each is not None:
                each.entry.calls += max(0, done - 1)
        self.stop = min(start + done * self.size, len(self.order))
        return done, loss

    def steps_until_check(self, start: int) -> int:
        """Return the number of steps from an example on until the next check or return to Python."""

        def ready(batch: list[Any]) -> list[Any]:
            self.store()
            return batch

        losses, penalty, _ = self.task
        rows = self.order[start : start + self.size]
        steps: int = losses.runtime.calls_until_check(
            *losses[1:], lambda: ready([column[rows] for column in self.data])
        )
        if steps and penalty is not None:
            steps = min(steps, penalty.runtime.calls_until_check(*penalty[1:], lambda: ready([])))
        return min(max(1, self.pause // (self.size * self.nodes)), steps)


def places(these: Iterable[Any], among: Iterable[Any]) -> Any:
    """Return the indices of some parameters among others."""
    place = {id(p): number for number, p in enumerate(among)}
    return np.array([place[id(p)] for p in these], np.int64)
