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

from wengert.compiler.backends.base import all_finite
from wengert.compiler.function import Compiled
from wengert.compiler.fused import gather, scatter
from wengert.compiler.tracing.trace import Recording
from wengert.optim import Optimizer

__all__ = ["Flat", "Task", "flat", "task"]

Batch = Sequence[Any]  # an array for each argument, or none


class Task(NamedTuple):
    """A compiled function, and the recording that its calls here run by."""

    runtime: Any
    path: Recording


def flat(losses: Task, penalty: Task | None, optimizer: Optimizer, before: Flat | None = None) -> Flat | None:
    """Such steps for a loss and a regularization; None where they would not be the same as any others.

    Those of `before`, an earlier epoch, serve again if nothing has changed: to pair all parameters takes time.
    """
    own = callable(optimizer._lr) or {"step", "zero_grad"} & vars(optimizer).keys()  # code of the user's, at each step
    if own or not optimizer._updates_arrays():
        return None
    if before is not None and (before.losses, before.penalty, before.optimizer) == (losses, penalty, optimizer):
        before.load()
        return before
    known = {id(p) for p in losses.path.parameters}
    if len(known) != len(optimizer.parameters) or not known.issuperset(map(id, optimizer.parameters)):
        return None
    if not losses.path.leaves or (penalty is not None and not known.issuperset(map(id, penalty.path.parameters))):
        return None
    return Flat(losses, penalty, optimizer)


def task(compiled: Compiled, batch: Batch) -> Task | None:
    """The only recording of a compiled function for such arguments: of a batch, or none; None if it has more, or runs
    uncompiled.
    """
    runtime: Any = compiled._runtime
    entry, path = runtime.specialization_for(runtime.arguments(batch, {}, bool(batch)))
    return Task(runtime, path) if path is not None and len(entry.specializations) == 1 else None


class Flat:
    """The parameters of a loss and the state of their optimizer, in arrays."""

    def __init__(self, losses: Task, penalty: Task | None, optimizer: Optimizer) -> None:
        self.losses: Task = losses
        self.penalty: Task | None = penalty
        self.optimizer: Optimizer = optimizer
        self.numbers: Any = losses.path.kernel.numbers
        self.gradients: Any = losses.path.kernel.slopes
        place = {id(p): number for number, p in enumerate(optimizer.parameters)}
        self.places: Any = np.array([place[id(p)] for p in losses.path.parameters])
        here = {id(p): number for number, p in enumerate(losses.path.parameters)}
        penalized = penalty.path.parameters if penalty is not None else ()
        self.penalized: Any = np.array([here[id(p)] for p in penalized], int)
        self.state: dict[str, Any] = {}
        self.load()

    def load(self, gradients: bool = False) -> None:
        """Read the Values and the optimizer's state as they are now; their `gradients` too, if no step follows."""
        gather(self.losses.path.parameters, self.numbers)
        if gradients:
            self.gradients[...] = [p.grad for p in self.losses.path.parameters]
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.optimizer._state.items()}

    def store(self) -> None:
        """Write everything back to where it came from, the gradients of the last batch too."""
        scatter(self.losses.path.parameters, self.numbers, self.gradients)
        for name, numbers in self.state.items():
            np.frombuffer(self.optimizer._state[name])[self.places] = numbers

    def step(self, pieces: Sequence[Batch], count: int, clip_norm: float | None) -> tuple[float, list[Any]] | None:
        """One step of the optimizer on a batch of so many examples, given as the arrays of each of its pieces.

        Returns:
            The mean loss, regularization included, and each piece's predictions; None if the program does not hold for
            these examples or comes to what is not finite, and then no step was made.
        """
        with np.errstate(all="ignore"):
            return self._step(pieces, count, clip_norm)

    def _step(self, pieces: Sequence[Batch], count: int, clip_norm: float | None) -> tuple[float, list[Any]] | None:
        loss, predictions, total = 0.0, [], None
        for piece in pieces:
            outputs = self._run(self.losses, piece, 1.0 / count)
            if outputs is None:
                return None
            loss += float(np.add.reduce(outputs["out"], axis=None))
            shown = outputs.get("auxiliary")
            predictions.append(shown if shown is None or shown.base is None else shown.copy())  # of the parameters?
            if len(pieces) > 1:
                total = self.gradients + (0.0 if total is None else total)
        if total is not None:
            self.gradients[...] = total
        loss /= count
        if self.penalty is not None:
            outputs = self._penalize(self.penalty)
            if outputs is None:
                return None
            loss += float(outputs["out"])
        if not isfinite(loss) or ((len(pieces) > 1 or self.penalty is not None) and not all_finite(self.gradients)):
            return None
        if clip_norm is not None:
            self._clip(clip_norm)
        self._move()
        return loss, predictions

    def _run(self, task: Task, batch: Batch, seed: float) -> dict[str, Any] | None:
        """The outputs of a run; the gradients are left in the task's kernel."""
        ran = task.path.run(batch, seed)
        if ran is None or not ran.finite or not task.runtime.ran(batch, ran.outputs["out"], self.store):
            return None
        return ran.outputs

    def _penalize(self, penalty: Task) -> dict[str, Any] | None:
        """Add the gradient of the regularization."""
        kernel = penalty.path.kernel
        kernel.numbers[...] = self.numbers[self.penalized]
        outputs = self._run(penalty, [], 1.0)
        self.gradients[self.penalized] += kernel.slopes
        return outputs

    def _clip(self, max_norm: float) -> None:
        """As `clip_grad_norm`."""
        factor = max_norm / (sqrt(self.gradients.dot(self.gradients)) + 1e-6)
        if factor < 1.0:
            self.gradients *= factor

    def _move(self) -> None:
        """One step of the optimizer."""
        optimizer, numbers = self.optimizer, self.numbers
        kept, moves, state = optimizer._moves(optimizer.lr, numbers, self.gradients, self.state)
        # From here on nothing is called, so Ctrl-C cannot come between the parameters, the state and the count.
        if kept != 1.0:
            numbers *= kept
        numbers -= moves
        self.state = state
        optimizer.steps += 1
