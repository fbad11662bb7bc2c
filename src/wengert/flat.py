"""Training steps on flat arrays: what `fit` does with a compiled loss while nobody looks at the parameters.

To gather the parameters from their Values for each batch, and to give each its gradient, takes longer than the array
program of a small batch. So the numbers, the gradients and the optimizer's state stay in arrays from step to step, in
the order in which the program has the parameters, and go back to the Values when somebody may read them: after an
epoch, before a comparison with the function, and for a batch that the program cannot do. What comes out is the same to
rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

import numpy as np

from wengert.fused import gather, scatter
from wengert.lifting.function import Compiled
from wengert.lifting.recording import Recording
from wengert.optim import Optimizer

__all__ = ["Flat", "flat"]


def flat(losses: Compiled, penalty: Compiled | None, optimizer: Optimizer, before: Flat | None = None) -> Flat | None:
    """Such steps for a compiled loss and regularization; None where they would not be the same as any others.

    Those of `before`, an earlier epoch, serve again if nothing has changed: to pair all parameters takes time.
    """
    path = losses._runtime.sole_path()
    second = penalty._runtime.sole_path() if penalty is not None else None
    if path is None or (penalty is not None and second is None) or not optimizer._updates_arrays():
        return None
    if before is not None and before.path is path and before.penalty is second and before.optimizer is optimizer:
        before.load()
        return before
    own = {id(p) for p in path.parameters}
    if len(own) != len(optimizer.parameters) or not own.issuperset(map(id, optimizer.parameters)) or not path.leaves:
        return None
    if second is not None and not own.issuperset(map(id, second.parameters)):
        return None
    return Flat(losses, penalty, optimizer)


class Flat:
    """The parameters of a loss and the state of their optimizer, in arrays."""

    def __init__(self, losses: Compiled, penalty: Compiled | None, optimizer: Optimizer) -> None:
        self.losses: Any = losses._runtime
        self.penalties: Any = None if penalty is None else penalty._runtime
        self.path: Recording = self.losses.latest()
        self.penalty: Recording | None = None if penalty is None else penalty._runtime.latest()
        self.optimizer: Optimizer = optimizer
        place = {id(p): number for number, p in enumerate(optimizer.parameters)}
        self.places: Any = np.array([place[id(p)] for p in self.path.parameters])
        here = {id(p): number for number, p in enumerate(self.path.parameters)}
        penalized = self.penalty.parameters if self.penalty is not None else ()
        self.penalized: Any = np.array([here[id(p)] for p in penalized], int)
        self.gradients: Any = self.path.kernel.slopes
        self.state: dict[str, Any] = {}
        self.load()

    def load(self, gradients: bool = False) -> None:
        """Read the Values and the optimizer's state as they are now; their `gradients` too, if no step follows."""
        gather(self.path.parameters, self.path.kernel.numbers)
        if gradients:
            self.gradients[...] = [p.grad for p in self.path.parameters]
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.optimizer._state.items()}

    def store(self) -> None:
        """Write everything back to where it came from, the gradients of the last batch too."""
        scatter(self.path.parameters, self.path.kernel.numbers, self.gradients)
        for name, numbers in self.state.items():
            np.frombuffer(self.optimizer._state[name])[self.places] = numbers

    def step(
        self, pieces: Sequence[Sequence[Any]], count: int, clip_norm: float | None
    ) -> tuple[float, list[Any]] | None:
        """One step of the optimizer on a batch of so many examples, given as the arrays of each of its pieces.

        Returns:
            The mean loss, regularization included, and each piece's predictions; None if the program does not hold for
            these examples or comes to what is not finite, and then no step was made.
        """
        with np.errstate(all="ignore"):
            return self._step(pieces, count, clip_norm)

    def _step(
        self, pieces: Sequence[Sequence[Any]], count: int, clip_norm: float | None
    ) -> tuple[float, list[Any]] | None:
        loss, predictions, total = 0.0, [], None
        for piece in pieces:
            ran = self._run(piece, 1.0 / count)
            if ran is None:
                return None
            loss += ran[0]
            predictions.append(ran[1])
            if len(pieces) > 1:
                total = self.path.kernel.slopes + (0.0 if total is None else total)
        if total is not None:
            self.gradients[...] = total
        loss = loss / count + self._penalty()
        if not isfinite(loss + float(self.gradients.sum())):
            return None
        if clip_norm is not None:
            self._clip(clip_norm)
        optimizer = self.optimizer
        optimizer._update_arrays(optimizer.lr, self.path.kernel.numbers, self.gradients, self.state)
        optimizer.steps += 1
        return loss, predictions

    def _run(self, piece: Sequence[Any], seed: float) -> tuple[float, Any] | None:
        """The sum of a piece's losses and its predictions; the gradients are left in the kernel."""
        path = self.path
        if not path.in_bounds(piece):
            return None
        outputs, _ = path.kernel.both(piece, seed)
        if path.guards and not np.all(path.holds(outputs)):
            return None
        if not self.losses.ran(piece, outputs["out"], self.store):
            return None
        return float(outputs["out"].sum()), outputs.get("auxiliary")

    def _penalty(self) -> float:
        """Add the gradient of the regularization; returns its size, or nan if its program does not hold."""
        if self.penalty is None or self.penalties is None:
            return 0.0
        kernel = self.penalty.kernel
        kernel.numbers[...] = self.path.kernel.numbers[self.penalized]
        outputs, _ = kernel.both([], 1.0)
        if self.penalty.guards and not np.all(self.penalty.holds(outputs)):
            return nan
        if not self.penalties.ran([], outputs["out"], self.store):
            return nan
        self.gradients[self.penalized] += kernel.slopes
        return float(outputs["out"])

    def _clip(self, max_norm: float) -> None:
        """As `clip_grad_norm`."""
        greatest = float(np.abs(self.gradients).max(initial=0.0)) or 1.0  # so that no square overflows
        norm = greatest * float(np.sqrt(np.square(self.gradients / greatest).sum()))
        factor = max_norm / (norm + 1e-6)
        if factor < 1.0:
            self.gradients *= factor
