"""Whole training steps, one after the other: gather rows, run a specialization, check its guards, clip the gradient,
and update the parameters by the optimizer's rule. No other code runs between two steps.

Like the engine, this file runs as plain Python or compiled by Cython, with `batches.pxd`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan, prod
from typing import Any

import numpy as np

from wengert import optim
from wengert.compiler.call import executable, memory
from wengert.ops import ieee
from wengert.ops.ieee import Int, cython
from wengert.training.metrics import Greatest, SameSide

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["Batches", "places"]


def places(these: Iterable[Any], among: Iterable[Any]) -> Any:
    """Return the indices of some parameters among others."""
    place = {id(p): number for number, p in enumerate(among)}
    return np.array([place[id(p)] for p in these], np.int64)


@cython.cclass
class Batches:
    """The batches of an epoch and the buffers of their steps: the compiled base class of `FlatSteps`.

    It gets the specializations of the loss, and that of the regularization or None. The metric counts the correct
    predictions, or is None.
    """

    def __init__(
        self, plans: Sequence[Any], penalty: Any, optimizer: Any, metric: Any, piece: Int, data: list[Any]
    ) -> None:
        made: executable.Executable = plans[0]
        self.made: executable.Executable = made
        # The parameters of the first specialization in its order, then the others.
        self.parameters: tuple[Any, ...] = tuple({id(p): p for p in (*made.parameters, *optimizer.parameters)}.values())
        self.spaces: list[Any] = [its.acquire() for its in plans]  # which nobody else gets
        space: executable.Workspace = self.spaces[0]
        self.space: executable.Workspace = space
        spots = [places(its.parameters, self.parameters) for its in plans]
        self.spots: dict[int, Any] = {id(its): at for its, at in zip(self.spaces, spots, strict=True)}
        self.data: list[Any] = data
        self.is_single: bool = len(plans) == 1
        self.penalty: executable.Workspace | None = None if penalty is None else penalty.acquire()
        self.penalized: Any = places(() if penalty is None else penalty.parameters, self.parameters)
        self.penalized_at: int = self.penalized.ctypes.data
        self.optimizer: Any = optimizer
        count = len(self.parameters)
        self.is_all: bool = self.is_single and len(made.parameters) == count  # then its arrays are used for all
        self.numbers: Any = space.params if self.is_all else np.zeros(count)
        self.gradients: Any = space.grads if self.is_all else np.zeros(count)
        self.rest: Any = self.gradients[len(made.parameters) :]
        self.sums: Any = np.zeros(count)
        self.x: Any = self.numbers
        self.g: Any = self.gradients
        self.numbers_at: int = self.numbers.ctypes.data
        self.gradients_at: int = self.gradients.ctypes.data
        self.is_penalty_in_place: bool = len(self.penalized) == count and self._share_numbers(penalty)
        self.is_inside: bool = True  # True if all indices in the data are in range
        self.columns: list[Any] = [self._column(made, n, column) for n, column in enumerate(data)]
        self.piece: int = min(piece, len(data[0]))
        self.rows: list[Any] = [np.empty((self.piece, *column.shape[1:]), column.dtype) for column in self.columns]
        self.sources: Any = np.array([column.ctypes.data for column in self.columns], np.int64)
        targets = np.array([row.ctypes.data for row in self.rows], np.int64)
        self.targets: Any = targets
        self.targets_at: int = targets.ctypes.data
        self.widths: Any = np.array([prod(column.shape[1:]) for column in self.columns], np.int64)
        self.metric: Any = metric
        self.is_shown: bool = metric is not None
        cell = plans[0].kernel.program.outputs["auxiliary"].cell_shape if self.is_shown else ()
        self.predictions: Any = np.empty((len(data[0]), *cell))
        self.predictions_at: int = self.predictions.ctypes.data
        self.shown: int = -1  # the output with the predictions, if machine code writes one row per example
        for n, (name, batched, _) in enumerate(made.outputs):
            if name == "auxiliary" and batched:
                self.shown = n
        self.width: int = prod(cell)
        self.right: float = 0.0  # the number of correct predictions counted so far
        self.found: float = 0.0  # those of the last batch, if they are counted batch by batch
        self.goals: Any = None  # the classes of a batch, if correct ones are counted in C,
        self.has_cut: bool = False  # or True if those are counted that are on the same side
        row, is_counted = self.rows[-1], ieee.COMPILED and self.is_single and made.limit and self.shown >= 0
        if is_counted and row.ndim == 1 and type(metric) is Greatest and row.dtype.kind == "i" and data[-1].min() >= 0:
            self.goals = row
        elif is_counted and row.ndim == 1 and type(metric) is SameSide and row.dtype.kind == "f" and not cell:
            self.has_cut = True
            self.cut: float = metric.cut
            self.target_cut: float = metric.target_cut
        self.counts: bool = self.goals is not None or self.has_cut
        self.room: int = 0
        self.given: list[Any] = []

    def _share_numbers(self, made: executable.Executable) -> bool:
        """Let the machine code of a regularization of all parameters read them where they are; False if their order
        matters.
        """
        penalty = self.penalty
        if penalty is None or made.limit == 0 or not made.kernel.program.is_symmetric():
            return False
        penalty.params_at = self.numbers_at
        return True

    def _column(self, made: executable.Executable, n: Int, column: Any) -> Any:
        """Convert the data of an input for machine code, and check indices against their bound."""
        bound = made.bounds[n]
        if bound < 0 or column.dtype.kind != "i":
            self.is_inside = self.is_inside and bound < 0  # floats in place of indices are out of range
            return np.ascontiguousarray(column, np.float64)
        whole = np.array(column, np.int64, order="C")
        at = whole.ctypes.data
        if bound > 0 and not memory.indices(at, at, whole.size, bound, made.from_end[n] != 0):
            self.is_inside = False
        return whole

    def begin(self, order: Any, size: Int, clip_norm: float) -> None:
        """Begin an epoch with this order of examples and batch size; a `clip_norm` of 0 does not clip."""
        self.order: Any = order
        self.order_at: int = order.ctypes.data
        self.count: int = len(order)
        if not memory.are_below(self.order_at, self.count, len(self.data[0])):
            raise IndexError("the order has an index that is no example's")
        self.size: int = size
        self.clip_norm: float = clip_norm

    def run(self, start: Int, steps: Int, loss: float, state: Any) -> tuple[int, float]:
        """Make steps from an example on; only one with an optimizer's rule in Python, which may read anything.

        Args:
            start: the index of the first example.
            steps: the largest number of steps.
            loss: the loss of the batches so far, weighted by their fraction of the epoch.
            state: the optimizer's state, in arrays.

        Returns:
            The number of steps and the loss. It stops before a step in which a number is not finite or no
            specialization is valid; that step has changed nothing.
        """
        done, lr = 0, self.optimizer.lr
        loop: optim.UpdateLoop | None = self.optimizer._loop(state) if ieee.COMPILED else None
        if self.changed():
            return 0, loss
        while start < self.count and done < (1 if loop is None else steps):
            end = min(start + self.size, self.count)
            if not self.compute(start, end):
                break
            if loop is None:
                self.optimizer._step_arrays(self.numbers, self.gradients, state)
            else:
                loop.move(None, self.x, self.g, lr)
                self.optimizer.steps += 1
            self.right += self.found
            loss += 1.0 * (end - start) / self.count * self.loss  # 1.0, since these are C integers
            start = end
            done += 1
        return done, loss

    def changed(self) -> bool:
        """Return True if a captured object has changed; several specializations check this when they run."""
        if self.is_single and self.space.stale_capture():
            return True
        return self.penalty is not None and self.penalty.stale_capture() != ""

    def compute(self, start: Int, end: Int) -> bool:
        """Compute the mean loss of a batch with the regularization, and the clipped gradient; return False if no
        specialization is valid or a number is not finite.
        """
        cut, scale, pieces = start, 1.0 / (end - start), end - start > self.piece
        self.loss: float = 0.0
        self.found = 0.0
        if pieces:
            self.sums[...] = 0.0
        while cut < end:
            count = min(end - cut, self.piece)
            if not (self.by_one(cut, count, scale) if self.is_single else self.by_several(cut, count, scale)):
                return False
            if pieces:
                self.sums += self.gradients
                memory.let_others()
            cut += count
        if pieces:
            self.gradients[...] = self.sums
        self.loss /= end - start
        penalty = self.penalty
        squares = memory.squares(self.gradients_at, len(self.g)) if penalty is None else self.penalize(penalty)
        if not (memory.isfinite(self.loss) and memory.isfinite(squares)):
            return False
        if self.clip_norm:  # as `clip_grad_norm`
            factor = self.clip_norm / (ieee.sqrt(self.gradients.dot(self.gradients)) + 1e-6)
            if factor < 1.0:
                self.gradients *= factor
        return True

    def by_one(self, cut: Int, count: Int, scale: float) -> bool:
        """Compute the losses of some examples and the gradient of `scale` times their sum; return False if the only
        specialization is not valid for all of them.
        """
        made, space = self.made, self.space
        for n in range(len(self.widths)):
            memory.rows(self.sources[n], self.targets[n], self.order_at + 8 * cut, count, self.widths[n])
        if not self.is_all:
            memory.copy(self.numbers_at, space.params_at, len(made.parameters))
        if count < made.limit and self.is_inside:
            space.run_code(self.targets_at, count, True, scale)
        else:
            if count != self.room:
                self.room, self.given = count, [row[:count] for row in self.rows]
            if not space.run(self.given, count, True, scale):
                return False
        if not space.guards_pass(0, count):
            return False
        if not self.is_all:
            memory.copy(space.grads_at, self.gradients_at, len(made.parameters))
            self.rest[...] = 0.0
        self.loss += space.added(count)
        if self.is_shown:  # copied at once, as they may be parameters, which the step changes
            if self.counts and space.results is None:
                self.found += self.classes(count) if self.goals is not None else self.sides(count)
            elif self.shown >= 0 and space.results is None:
                to = self.predictions_at + 8 * cut * self.width
                memory.copy(space.targets[self.shown], to, count * self.width)
            else:
                self.predictions[cut : cut + count] = space.output("auxiliary")
                if self.counts:
                    self.found += self.metric.count(self.predictions[cut : cut + count], self.rows[-1][:count])
        return True

    def classes(self, count: Int) -> Int:
        """Return in how many of the last run's predictions the first greatest number, or the first nan, is that of the
        target, as by `argmax`.
        """
        at, right = self.space.targets[self.shown], 0
        for n in range(count):
            goal = self.goals[n]
            if goal < self.width:
                x = memory.get(at + 8 * goal)
                is_nan, wrong = x != x, False
                for k in range(goal):
                    y = memory.get(at + 8 * k)
                    wrong |= (y != y) if is_nan else not y < x
                for k in range(goal + 1, self.width):
                    wrong |= not (is_nan or memory.get(at + 8 * k) <= x)
                right += not wrong
            at += 8 * self.width
        return right

    def sides(self, count: Int) -> Int:
        """Return how many of the last run's predictions are on the same side of their threshold as the targets."""
        predictions, aims = self.space.targets[self.shown], self.targets[len(self.targets) - 1]
        return memory.same_side(predictions, self.cut, aims, self.target_cut, count)

    def by_several(self, cut: Int, count: Int, scale: float) -> bool:
        """Do the same as `by_one`, with the valid specialization for each example."""
        space: executable.Workspace
        rows = self.order[cut : cut + count]
        self.gradients[...] = 0.0
        for space in self.spaces:
            space.begin(count, count, False)
        for space, taken in executable.share(self.spaces, self.data, rows, count, True, scale, self.give_numbers):
            if space is None:
                return taken is not None and not len(taken)
            self.loss += space.added(len(taken))
            self.gradients[self.spots[id(space)]] += space.grads
            if self.is_shown:
                self.predictions[cut + taken] = space.output("auxiliary")
        return True

    def give_numbers(self, space: Any) -> None:
        """Copy the current parameters to a specialization."""
        space.params[...] = self.numbers[self.spots[id(space)]]

    def penalize(self, penalty: executable.Workspace) -> float:
        """Add the regularization and its gradient; return the sum of squares of the gradient, nan if that failed."""
        count = len(penalty.made.parameters)
        if not self.is_penalty_in_place:
            memory.rows(self.numbers_at, penalty.params_at, self.penalized_at, count, 1)
        if not (penalty.run([], 1, True, 1.0) and penalty.guards_pass(0, 1)):
            return nan
        self.loss += penalty.added(1)
        if self.is_penalty_in_place:
            return memory.add_squares(penalty.grads_at, self.gradients_at, count)
        memory.add(penalty.grads_at, self.gradients_at, self.penalized_at, count)
        return memory.squares(self.gradients_at, len(self.g))
