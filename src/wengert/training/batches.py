"""The step loop: gather the rows of a batch, run the kernel of the loss, update the parameters by the optimizer's rule.
No other code runs between two steps.

Like the engine, this file runs as plain Python or compiled by Cython, with `batches.pxd`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, prod
from typing import Any

import numpy as np

from wengert import optim
from wengert.compiler.backends import places
from wengert.compiler.call import executable, memory
from wengert.ops import ieee
from wengert.ops.ieee import Int, cython
from wengert.training import correct

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["Batches"]


def _zeros(count: int) -> tuple[Any, Any]:
    return np.zeros(count), np.zeros(count)


@cython.cclass
class Arrays:
    """The parameters of a run with their numbers and the gradient, each end to end in one array."""

    def __init__(self, parameters: tuple[Any, ...], numbers: Any, gradients: Any) -> None:
        self.parameters: tuple[Any, ...] = parameters
        self.numbers: Any = numbers
        self.gradients: Any = gradients
        self.x: Any = numbers  # the same as typed memoryviews
        self.g: Any = gradients
        self.numbers_at: int = numbers.ctypes.data
        self.gradients_at: int = gradients.ctypes.data


@cython.cclass
class BatchRows:
    """The examples of an epoch in its order, and memory in which the rows of a piece of a batch are gathered.

    Args:
        loss: the specialization whose inputs they are; several have the same.
        data: an array for each input, with one row per example.
        piece: the largest number of rows that are gathered at once.
    """

    def __init__(self, loss: executable.Executable, data: list[Any], piece: Int) -> None:
        self.data: list[Any] = data
        self.is_inside: bool = True  # True if all indices in the data are in range
        self.columns: list[Any] = [self._column(loss, n, column) for n, column in enumerate(data)]
        self.piece: int = min(piece, len(data[0]))
        self.gathered: list[Any] = [np.empty((self.piece, *x.shape[1:]), x.dtype) for x in self.columns]
        self.sources: Any = np.array([column.ctypes.data for column in self.columns], np.int64)
        targets = np.array([rows.ctypes.data for rows in self.gathered], np.int64)
        self.targets: Any = targets
        self.targets_at: int = targets.ctypes.data
        self.widths: Any = np.array([prod(column.shape[1:]) for column in self.columns], np.int64)

    def _column(self, loss: executable.Executable, n: Int, column: Any) -> Any:
        """Convert the data of an input for machine code, and check indices against their bound."""
        bound = loss.bounds[n]
        if bound < 0 or column.dtype.kind != "i":
            self.is_inside = self.is_inside and bound < 0  # floats in place of indices are out of range
            return np.ascontiguousarray(column, np.float64)
        whole = np.array(column, np.int64, order="C")
        at = whole.ctypes.data
        if bound > 0 and not memory.indices(at, at, whole.size, bound, loss.from_end[n] != 0):
            self.is_inside = False
        return whole

    def begin(self, order: Any) -> None:
        """Begin an epoch with this order of the examples."""
        self.order: Any = order
        self.order_at: int = order.ctypes.data
        self.count: int = len(order)
        if not memory.are_below(self.order_at, self.count, len(self.data[0])):
            raise IndexError("the order has an index that is no example's")

    def gather(self, start: Int, count: Int) -> None:
        """Copy some rows, from a place in the order on, to where machine code reads them."""
        for n in range(len(self.widths)):
            memory.rows(self.sources[n], self.targets[n], self.order_at + 8 * start, count, self.widths[n])


@cython.cclass
class Scores:
    """Counts the correct predictions of a run.

    Args:
        loss: the specialization that runs.
        metric: the rule.
        targets: the target of each example.
        piece: the largest number of examples of a run.
    """

    def __init__(self, loss: executable.Executable, metric: correct.Correct, targets: Any, piece: Int) -> None:
        cell, target = loss.kernel.program.outputs["auxiliary"].cell_shape, targets.shape[1:]
        self.metric: correct.Correct = metric
        self.targets: Any = targets
        self.columns: tuple[Any, ...] = np.ascontiguousarray(targets, np.float64), np.empty((piece, *target))
        self.targets_at: int = self.columns[0].ctypes.data
        self.gathered_at: int = self.columns[1].ctypes.data
        self.predictions: Any = np.empty((piece, *cell))
        self.predictions_at: int = self.predictions.ctypes.data
        self.width: int = prod(cell)
        self.target_width: int = prod(target)
        self.is_fast: bool = ieee.COMPILED and metric.fits(cell, target)
        self.output: int = -1  # that has the predictions, if machine code writes a row for each example
        for n, (name, is_batched, _) in enumerate(loss.outputs):
            if name == "auxiliary" and is_batched and loss.limit:
                self.output = n

    def count(self, space: executable.Workspace, order: Any, order_at: Int, count: Int) -> float:
        """Return the sum of the metric over the examples of a run, given by their indices and where these are."""
        at = self.predictions_at
        if self.output >= 0 and space.results is None:
            at = space.targets[self.output]
        else:
            self.predictions[:count] = space.output("auxiliary")
        if not self.is_fast:
            predictions = space.output("auxiliary") if at != self.predictions_at else self.predictions[:count]
            return self.metric.count(predictions, self.targets[order])
        memory.rows(self.targets_at, self.gathered_at, order_at, count, self.target_width)
        return self.metric.count_at(at, self.width, self.gathered_at, count)


@cython.cclass
class Losses:
    """Computes the losses of some rows with their gradient: the kernel of a step."""

    arrays: Any
    rows: Any
    scores: Any
    loss: Any  # the sum since a batch began, as is the number of correct predictions
    correct: Any

    def is_stale(self) -> bool:
        """Return True if a captured object has changed."""
        raise NotImplementedError

    def compute(self, start: Int, count: Int, scale: float) -> bool:
        """Add the losses of some rows and set the gradient of `scale` times their sum; return False if no
        specialization is valid for all of them.
        """
        raise NotImplementedError


@cython.cclass
class OneLoss(Losses):
    """By one specialization, without a copy of its parameters if it has all."""

    def __init__(self, losses: Sequence[Any], parameters: tuple[Any, ...], rows: BatchRows, metric: Any) -> None:
        self.specialization: executable.Executable = losses[0]
        self.space: executable.Workspace = losses[0].acquire()  # which nobody else gets
        self.is_all: bool = len(losses[0].parameters) == len(parameters)
        numbers, gradients = (self.space.params, self.space.grads) if self.is_all else _zeros(len(parameters))
        self.arrays: Arrays = Arrays(parameters, numbers, gradients)
        self.rest: Any = gradients[len(losses[0].parameters) :]  # of parameters that it does not read
        self.rows: BatchRows = rows
        self.scores: Scores | None = None if metric is None else Scores(losses[0], metric, rows.data[-1], rows.piece)
        self.loss: float = 0.0
        self.correct: float = 0.0
        self.room: int = 0
        self.arguments: list[Any] = []  # of so many rows

    def is_stale(self) -> bool:
        return self.space.stale_capture() != ""

    def compute(self, start: Int, count: Int, scale: float) -> bool:
        space, rows, arrays, scores = self.space, self.rows, self.arrays, self.scores
        loss = self.specialization
        rows.gather(start, count)
        if not self.is_all:
            memory.copy(arrays.numbers_at, space.params_at, len(loss.parameters))
        if count < loss.limit and rows.is_inside:
            space.run_code(rows.targets_at, count, True, scale)
        else:
            if count != self.room:
                self.room, self.arguments = count, [x[:count] for x in rows.gathered]
            if not space.run(self.arguments, count, True, scale):
                return False
        if not space.guards_pass(0, count):
            return False
        if not self.is_all:
            memory.copy(space.grads_at, arrays.gradients_at, len(loss.parameters))
            self.rest[...] = 0.0
        self.loss += space.added(count)
        if scores is not None:  # at once, as predictions may be parameters, which the step changes
            order = None if scores.is_fast else rows.order[start : start + count]
            self.correct += scores.count(space, order, rows.order_at + 8 * start, count)
        return True


@cython.cclass
class SeveralLosses(Losses):
    """By the valid specialization for each row."""

    def __init__(self, losses: Sequence[Any], parameters: tuple[Any, ...], rows: BatchRows, metric: Any) -> None:
        self.spaces: list[Any] = [loss.acquire() for loss in losses]  # which nobody else gets
        spots = [places(loss.parameters, parameters) for loss in losses]
        self.spots: dict[int, Any] = {id(space): at for space, at in zip(self.spaces, spots, strict=True)}
        self.arrays: Arrays = Arrays(parameters, *_zeros(len(parameters)))
        self.rows: BatchRows = rows
        self.scores: Scores | None = None if metric is None else Scores(losses[0], metric, rows.data[-1], rows.piece)
        if self.scores is not None:
            self.scores.output = -1  # each has its own
        self.loss: float = 0.0
        self.correct: float = 0.0

    def is_stale(self) -> bool:
        return False  # each is looked at when it runs

    def compute(self, start: Int, count: Int, scale: float) -> bool:
        space: executable.Workspace
        rows, arrays, scores = self.rows, self.arrays, self.scores
        order = rows.order[start : start + count]
        arrays.gradients[...] = 0.0
        for space in self.spaces:
            space.begin(count, count, False)
        parts = executable.partition_by_guards(self.spaces, rows.data, order, count, True, scale, self.load)
        for space, numbers in parts:
            if space is None:
                return numbers is not None and not len(numbers)
            self.loss += space.added(len(numbers))
            arrays.gradients[self.spots[id(space)]] += space.grads
            if scores is not None:
                taken = order[numbers]
                self.correct += scores.count(space, taken, taken.ctypes.data, len(taken))
        return True

    def load(self, space: Any) -> None:
        """Copy the current parameters to a specialization."""
        space.params[...] = self.arrays.numbers[self.spots[id(space)]]


@cython.cclass
class Penalty:
    """Adds the regularization and its gradient to those of a batch.

    Args:
        penalty: its specialization.
        arrays: the numbers and the gradient of all parameters. Its machine code reads the numbers there, if it has all
            parameters and their order does not matter.
    """

    def __init__(self, penalty: executable.Executable, arrays: Arrays) -> None:
        self.space: executable.Workspace = penalty.acquire()
        self.arrays: Arrays = arrays
        self.places: Any = places(penalty.parameters, arrays.parameters)
        self.places_at: int = self.places.ctypes.data
        self.loss: float = 0.0
        is_all = len(self.places) == len(arrays.parameters)
        self.is_in_place: bool = is_all and penalty.limit != 0 and penalty.kernel.program.is_symmetric()
        if self.is_in_place:
            self.space.params_at = arrays.numbers_at

    def add(self) -> float:
        """Add the gradient, and return the sum of squares of the whole one; nan if that failed."""
        space, arrays, count = self.space, self.arrays, len(self.places)
        if not self.is_in_place:
            memory.rows(arrays.numbers_at, space.params_at, self.places_at, count, 1)
        if not (space.run([], 1, True, 1.0) and space.guards_pass(0, 1)):
            return nan
        self.loss = space.added(1)
        if self.is_in_place:
            return memory.add_squares(space.grads_at, arrays.gradients_at, count)
        memory.add(space.grads_at, arrays.gradients_at, self.places_at, count)
        return memory.squares(arrays.gradients_at, len(arrays.g))


@cython.cclass
class Batches:
    """The steps of an epoch's batches, one after the other, on this computer: a kernel of `FlatSteps`.

    Args:
        losses: the specializations of the loss.
        penalty: the specialization of the regularization, or None.
        optimizer: makes the updates.
        metric: counts the correct predictions, or is None.
        piece: the number of examples computed at once.
        data: an array for each argument of the loss, with one row per example.
    """

    def __init__(
        self, losses: Sequence[Any], penalty: Any, optimizer: Any, metric: Any, piece: Int, data: list[Any]
    ) -> None:
        # The parameters of the first specialization in its order, then the others.
        parameters = tuple({id(p): p for p in (*losses[0].parameters, *optimizer.parameters)}.values())
        self.rows: BatchRows = BatchRows(losses[0], data, piece)
        kind: Any = OneLoss if len(losses) == 1 else SeveralLosses
        self.losses: Losses = kind(losses, parameters, self.rows, metric)
        self.arrays: Arrays = self.losses.arrays
        self.parameters: tuple[Any, ...] = parameters
        self.numbers: Any = self.arrays.numbers
        self.gradients: Any = self.arrays.gradients
        self.penalty: Penalty | None = None if penalty is None else Penalty(penalty, self.arrays)
        self.optimizer: Any = optimizer
        self.sums: Any = np.zeros(len(parameters))
        self.correct: float = 0.0  # predictions so far

    @property
    def is_penalty_in_place(self) -> bool:
        """True if the regularization reads the parameters where the loss has them."""
        return self.penalty is not None and self.penalty.is_in_place

    def begin(self, order: Any, size: Int, clip_norm: float, meanwhile: Callable[[], None]) -> None:
        """Begin an epoch with this order of examples and batch size; a `clip_norm` of 0 does not clip."""
        self.rows.begin(order)
        self.size: int = size
        self.clip_norm: float = clip_norm

    def load(self, state: dict[str, Any]) -> None:
        """Nothing is copied: the numbers are used where they are."""

    def store(self, state: dict[str, Any]) -> bool:
        """Return True: the numbers are where they are used."""
        return True

    def is_stale(self) -> bool:
        """Return True if a captured object has changed."""
        return self.losses.is_stale() or (self.penalty is not None and self.penalty.space.stale_capture() != "")

    def run(self, number: Int, steps: Int, loss: float, state: Any) -> tuple[int, float]:
        """Make steps from a batch on; only one with an optimizer's rule in Python, which may read anything.

        Args:
            number: the index of the first batch.
            steps: the largest number of steps.
            loss: the loss of the batches so far, weighted by their fraction of the epoch.
            state: the optimizer's state, in arrays.

        Returns:
            The number of steps and the loss. It stops before a step in which a number is not finite or no
            specialization is valid; that step has changed nothing.
        """
        arrays, losses, start, total = self.arrays, self.losses, number * self.size, self.rows.count
        done, lr = 0, self.optimizer.lr
        loop: optim.UpdateLoop | None = self.optimizer._loop(state) if ieee.COMPILED else None
        while start < total and done < (1 if loop is None else steps):
            end = min(start + self.size, total)
            if not self.compute(start, end):
                break
            if loop is None:
                self.optimizer._step_arrays(arrays.numbers, arrays.gradients, state)
            else:
                loop.move(None, arrays.x, arrays.g, lr)
                self.optimizer.steps += 1
            self.correct += losses.correct
            loss += 1.0 * (end - start) / total * losses.loss  # 1.0, since these are C integers
            start = end
            done += 1
        return done, loss

    def compute(self, start: Int, end: Int) -> bool:
        """Compute the mean loss of a batch with the regularization, and the clipped gradient; return False if no
        specialization is valid or a number is not finite.
        """
        arrays, losses, penalty = self.arrays, self.losses, self.penalty
        at, scale, piece = start, 1.0 / (end - start), self.rows.piece
        is_cut = end - start > piece
        losses.loss = 0.0
        losses.correct = 0.0
        if is_cut:
            self.sums[...] = 0.0
        while at < end:
            count = min(end - at, piece)
            if not losses.compute(at, count, scale):
                return False
            if is_cut:
                self.sums += arrays.gradients
                memory.let_others()
            at += count
        if is_cut:
            arrays.gradients[...] = self.sums
        losses.loss /= end - start
        squares = memory.squares(arrays.gradients_at, len(arrays.g)) if penalty is None else penalty.add()
        if penalty is not None:
            losses.loss += penalty.loss
        if not (memory.isfinite(losses.loss) and memory.isfinite(squares)):
            return False
        if self.clip_norm:  # as `clip_grad_norm`
            factor = self.clip_norm / (ieee.sqrt(arrays.gradients.dot(arrays.gradients)) + 1e-6)
            if factor < 1.0:
                arrays.gradients *= factor
        return True
