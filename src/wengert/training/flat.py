"""Training steps on flat arrays: what `fit` does with a compiled loss while nobody looks at the parameters.

To gather the parameters from their Values for each batch, and to give each its gradient, takes longer than the array
program of a small batch. So the numbers, the gradients and the optimizer's state stay in arrays from step to step, in
the order in which the program has the parameters, and go back to the Values when somebody may read them: after an
epoch, before the function itself is run to compare, and for a batch that the program cannot do. Until then `Batches`
makes one step after another. The steps are those of the optimizer to the bit; the gradients are those of the compiled
loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler import Compiled, gather, scatter
from wengert.compiler.tracing import Specialization
from wengert.optim import Optimizer
from wengert.training.batches import Batches
from wengert.training.metrics import Right

__all__ = ["FlatSteps", "Recorded", "places", "recorded"]

# In operations, of which machine code does some 1,000 in a microsecond:
PAUSE = 5_000_000  # between two looks at what else there is to do: Ctrl-C, other threads, the progress bar
SHOWN = 100_000_000  # after so many another thread, which draws them, say, sees the numbers of an epoch


class Recorded(NamedTuple):
    """A compiled function, and the recordings that its calls here run by."""

    runtime: Any
    entry: Any  # what the runtime knows of them
    paths: tuple[Specialization, ...]

    def is_old(self) -> bool:
        """Whether its calls run by others by now."""
        return bool(self.entry.is_eager) or tuple(self.entry.specializations) != self.paths

    def parameters(self) -> set[int]:
        """The identities of all their parameters."""
        return {id(p) for path in self.paths for p in path.parameters}


def recorded(compiled: Compiled, batch: Sequence[Any]) -> Recorded | None:
    """The recordings of a compiled function for such arguments: of a batch, or none; None if it runs uncompiled."""
    runtime: Any = compiled._runtime
    entry = runtime.entry_for(runtime.arguments(batch, {}, bool(batch)), 1)
    paths = tuple(entry.specializations)
    return Recorded(runtime, entry, paths) if paths and not entry.is_eager else None


class FlatSteps(Batches):
    """The steps of an optimizer, with the parameters of a loss and the optimizer's state in arrays.

    Args:
        losses: the loss, and where there is a metric the predictions.
        penalty: the regularization, or None.
        optimizer: whose rule the steps follow.
        metric: counts what is right among the predictions, or None.
        piece: how many examples are computed at once.
        data: an array for each argument of the loss, with a row for each example.
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
        self.held: bool = False  # whether the numbers of now are in the arrays; else they are in the Values
        self.unseen: int = 0  # how many operations ago the Values had them last
        self.pause: int = PAUSE  # operations between two looks
        self.number: int = 0  # of the batch that comes next
        self.meanwhile: Callable[[], None] = lambda: None  # what there is to do while devices compute
        self.first: int = 0  # from which example on there are predictions
        self.stop: int = 0  # and up to which
        self.right: float = 0.0  # how many of those before were right
        first = losses.paths[0]
        self.nodes: int = max(path.nodes for path in losses.paths)  # operations of an example
        # Those of the first recording, as it has them, then what it does not reach.
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
        """Whether such steps are the same as any others: all parameters are leaves, and the optimizer's."""
        moved = {id(p) for p in optimizer.parameters}
        if penalty is not None and (len(penalty.paths) > 1 or not penalty.parameters() <= moved):
            return False
        shapes = {getattr(path.kernel.program.outputs.get("auxiliary"), "cell_shape", None) for path in losses.paths}
        return len(shapes) == 1 and all(path.leaves for path in losses.paths) and losses.parameters() <= moved

    def is_old(self) -> bool:
        """Whether something else is recorded by now."""
        return any(each is not None and each.is_old() for each in self.task[:2])

    def goes_on(self, optimizer: Optimizer) -> bool:
        """Whether they serve for one more epoch of an optimizer."""
        return self.task[2] is optimizer and not self.is_old()

    def end(self, goes_on: bool = False) -> float:
        """The epoch is over: give the Values what the arrays hold; not each time where the next epoch goes on with it,
        and nothing of the user's runs in between. Returns how many of the predictions were right.
        """
        if not goes_on:
            self.release()
        elif self.held and self.unseen > SHOWN:
            self.store()
        self.count_right(0)
        right, self.right = self.right, 0.0
        return right

    def release(self) -> None:
        """Give the Values what the arrays hold, and let them have it."""
        pressed = None
        while self.held:
            try:
                self.store()
                self.held = False
            except KeyboardInterrupt as interrupt:  # it comes once, and waits until all is written
                pressed = interrupt
        if pressed is not None:
            raise pressed

    def count_right(self, start: int) -> None:
        """Look at the predictions that there are; the next ones are from an example on."""
        span = slice(self.first, self.stop)
        if self.metric is not None and self.first < self.stop:  # of many, for NumPy's calls take longer than its sums
            self.right += self.metric.count(self.predictions[span], self.data[-1][self.order[span]])
        self.first = self.stop = start

    def load(self) -> None:
        """Read the Values and the optimizer's state as they are now."""
        gather(self.parameters, self.numbers)
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.task[2]._state.items()}
        self.held, self.unseen = True, 0

    def store(self) -> None:
        """Write everything back to where it came from, the gradients of the last batch too."""
        scatter(self.parameters, self.numbers, self.gradients)
        for name, numbers in self.state.items():
            np.frombuffer(self.task[2]._state[name])[self.places] = numbers
        self.unseen = 0

    def step(self, number: int, start: int, loss: float) -> tuple[int, float]:
        """Make some steps of the optimizer, on the batches from one on: as many as there are before the next look.

        Args:
            number: of that batch.
            start: the example that it begins with.
            loss: that of the epoch so far.

        Returns:
            How many were made, and `loss` with that of each batch, by its share of the epoch, added. None are made if
            the program does not hold for the next batch or comes to what is not finite; then the numbers are in the
            Values.
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
        """How many steps can be made from an example on until something is compared, or somebody may look."""

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
    """Where some parameters stand among others."""
    place = {id(p): number for number, p in enumerate(among)}
    return np.array([place[id(p)] for p in these], np.int64)
