"""Training steps on flat arrays: what `fit` does with a compiled loss while nobody looks at the parameters.

To gather the parameters from their Values for each batch, and to give each its gradient, takes longer than the array
program of a small batch. So the numbers, the gradients and the optimizer's state stay in arrays from step to step, in
the order in which the program has the parameters, and go back to the Values when somebody may read them: after an
epoch, before the function itself is run to compare, and for a batch that the program cannot do. The steps are those of
the optimizer to the bit; the gradients are those of the compiled loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler import Compiled, gather, scatter
from wengert.compiler.backends import all_finite
from wengert.compiler.tracing import Recording, Result
from wengert.optim import Optimizer
from wengert.training.metrics import Right

__all__ = ["FlatSteps", "Recorded", "recorded"]

Batch = Sequence[Any]  # an array for each argument, or none


class Recorded(NamedTuple):
    """A compiled function, and the recording that its calls here run by."""

    runtime: Any
    entry: Any  # what the runtime knows of it
    path: Recording


def recorded(compiled: Compiled, batch: Batch) -> Recorded | None:
    """The only recording of a compiled function for such arguments: of a batch, or none; None if it has more, or runs
    uncompiled.
    """
    runtime: Any = compiled._runtime
    found = runtime.only(batch)
    return None if found is None else Recorded(runtime, *found)


class FlatSteps:
    """The steps of an optimizer, with the parameters of a loss and the optimizer's state in arrays.

    Args:
        losses: the loss, and where there is a metric the predictions.
        penalty: the regularization, or None.
        optimizer: whose rule the steps follow.
        metric: counts what is right among the predictions, or None.
        piece: how many examples are computed at once.
    """

    def __init__(
        self, losses: Recorded, penalty: Recorded | None, optimizer: Optimizer, metric: Right | None, piece: int
    ) -> None:
        self.task: tuple[Recorded, Recorded | None, Optimizer] = (losses, penalty, optimizer)
        self.losses: Recorded = losses
        self.penalty: Recorded | None = penalty
        self.optimizer: Optimizer = optimizer
        self.metric: Right | None = metric
        self.piece: int = piece
        self.numbers: Any = losses.path.kernel.numbers
        self.gradients: Any = losses.path.kernel.slopes
        self.state: dict[str, Any] = {}
        self.held: bool = False  # whether the numbers of now are in the arrays; else they are in the Values
        self.data: Batch = ()  # the examples of an epoch, in its order
        self.shown: list[tuple[Any, Any]] = []  # predictions and targets of which the metric is still to be counted
        place = {id(p): number for number, p in enumerate(optimizer.parameters)}
        self.places: Any = np.array([place[id(p)] for p in losses.path.parameters])
        here = {id(p): number for number, p in enumerate(losses.path.parameters)}
        penalized = penalty.path.parameters if penalty is not None else ()
        self.penalized: Any = np.array([here[id(p)] for p in penalized], int)

    @staticmethod
    def serve(losses: Recorded, penalty: Recorded | None, optimizer: Optimizer) -> bool:
        """Whether such steps are the same as any others: all parameters are leaves, of the loss and the optimizer."""
        known = {id(p) for p in losses.path.parameters}
        moved = {id(p) for p in optimizer.parameters}
        penalized = map(id, penalty.path.parameters) if penalty is not None else ()
        return losses.path.leaves and known == moved and known.issuperset(penalized)

    def begin(self, data: Batch) -> FlatSteps:
        """An epoch follows, on these examples in their order; returns these steps."""
        self.data, self.shown = data, []
        return self

    def end(self) -> float:
        """The epoch is over: give the Values what the arrays hold. Returns how many of the predictions were right."""
        pressed = None
        while self.held:
            try:
                self.store()
                self.held = False
            except KeyboardInterrupt as interrupt:  # it comes once, and waits until all is written
                pressed = interrupt
        if pressed is not None:
            raise pressed
        if self.metric is None or not self.shown:
            return 0.0
        predictions, targets = map(np.concatenate, zip(*self.shown, strict=True))
        return self.metric.count(predictions, targets)  # at once: NumPy's calls take longer than a batch's sums

    def load(self) -> None:
        """Read the Values and the optimizer's state as they are now."""
        gather(self.losses.path.parameters, self.numbers)
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.optimizer._state.items()}
        self.held = True

    def store(self) -> None:
        """Write everything back to where it came from, the gradients of the last batch too."""
        scatter(self.losses.path.parameters, self.numbers, self.gradients)
        for name, numbers in self.state.items():
            np.frombuffer(self.optimizer._state[name])[self.places] = numbers

    def step(self, start: int, count: int, clip_norm: float | None) -> tuple[float, ...] | None:
        """One step of the optimizer on the batch of so many examples from `start` on.

        Returns:
            The mean loss, regularization included, and where there is a metric a 0, for `end` gives it; None if the
            program does not hold for these examples or comes to what is not finite. Then no step was made, and the
            numbers are in the Values.
        """
        if not self.held:
            self.load()
        made = None
        try:
            with np.errstate(all="ignore"):
                made = self._step(start, start + count, clip_norm)
        finally:
            if made is None:
                self.store()
                self.held = False
        return made if self.metric is None or made is None else (*made, 0.0)

    def _step(self, start: int, end: int, clip_norm: float | None) -> tuple[float] | None:
        loss, shown, total = 0.0, [], None
        cuts = range(start, end, self.piece)
        for cut in cuts:
            piece = [column[cut : min(cut + self.piece, end)] for column in self.data]
            ran = self._run(self.losses, piece, 1.0 / (end - start))
            if ran is None:
                return None
            loss += ran.total
            if self.metric is not None:
                predictions = ran.outputs["auxiliary"]
                own = predictions.base is None  # else they may be parameters, which the step changes
                shown.append((predictions if own else predictions.copy(), piece[-1]))
            if len(cuts) > 1:
                total = self.gradients + (0.0 if total is None else total)
        if total is not None:
            self.gradients[...] = total
        loss /= end - start
        if self.penalty is not None:
            ran = self._penalize(self.penalty)
            if ran is None:
                return None
            loss += ran.total
        if not isfinite(loss) or ((len(cuts) > 1 or self.penalty is not None) and not all_finite(self.gradients)):
            return None
        if clip_norm is not None:  # as `clip_grad_norm`
            factor = clip_norm / (sqrt(self.gradients.dot(self.gradients)) + 1e-6)
            if factor < 1.0:
                self.gradients *= factor
        self.optimizer._step_arrays(self.numbers, self.gradients, self.state)
        self.shown += shown
        return (loss,)

    def _run(self, recorded: Recorded, batch: Batch, seed: float) -> Result | None:
        """What a run comes to; the gradients are left in its kernel."""
        runtime, entry, path = recorded
        if not runtime.trusts(entry, path, batch, self.store):
            return None
        ran = path.run(batch, seed)
        return ran if ran is not None and ran.finite else None

    def _penalize(self, penalty: Recorded) -> Result | None:
        """Add the gradient of the regularization."""
        kernel = penalty.path.kernel
        kernel.numbers[...] = self.numbers[self.penalized]
        ran = self._run(penalty, [], 1.0)
        self.gradients[self.penalized] += kernel.slopes
        return ran
