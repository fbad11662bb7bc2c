"""Whole steps, one after another: rows are gathered, a recording runs on them, its guards are looked at, the gradient
is clipped, and the optimizer's rule moves the parameters. Between two steps nothing else runs.

Like the engine, this file runs as it stands and is compiled by Cython, with `batches.pxd`.
"""

from __future__ import annotations

from math import prod
from typing import Any

from wengert import optim
from wengert.compiler import executable, memory
from wengert.ops import ieee
from wengert.ops.ieee import Int, cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["Batches"]


@cython.cclass
class Batches:
    """The batches of an epoch, and what steps on them take; a `FlatSteps` is one, which says what it is for."""

    def open(
        self, plans: list[Any], spots: list[Any], data: list[Any], penalty: Any, penalized: Any, optimizer: Any,
        shown: Any, piece: Int, numpy: Any,
    ) -> None:  # fmt: skip
        """Say what runs on what.

        Args:
            plans: the recordings of the loss. The parameters of the first one are the first of all, in their order.
            spots: for each of them, where its parameters stand among all.
            data: an array for each argument of the loss, with a row for each example.
            penalty: the recording of the regularization, or None.
            penalized: where its parameters stand among all.
            optimizer: whose rule the steps follow.
            shown: the shape of a prediction, or None if nobody asks for them.
            piece: how many examples are computed at once, at most.
            numpy: the library.
        """
        made: executable.Executable = plans[0]
        self.made: executable.Executable = made
        self.spaces: list[Any] = [its.acquire() for its in plans]  # which nobody else gets
        space: executable.Workspace = self.spaces[0]
        self.space: executable.Workspace = space
        self.spots: dict[int, Any] = {id(its): places for its, places in zip(self.spaces, spots, strict=True)}
        self.data: list[Any] = data
        self.is_one: bool = len(plans) == 1
        self.penalty: executable.Workspace | None = None if penalty is None else penalty.acquire()
        self.penalized: Any = penalized
        self.penalized_at: int = penalized.ctypes.data
        self.optimizer: Any = optimizer
        self.numpy: Any = numpy
        count = len(optimizer.parameters)
        self.is_all: bool = self.is_one and len(made.parameters) == count  # then its arrays are those of all
        self.numbers: Any = space.params if self.is_all else numpy.zeros(count)
        self.gradients: Any = space.grads if self.is_all else numpy.zeros(count)
        self.rest: Any = self.gradients[len(made.parameters) :]
        self.sums: Any = numpy.zeros(count)
        self.x: Any = self.numbers
        self.g: Any = self.gradients
        self.numbers_at: int = self.numbers.ctypes.data
        self.gradients_at: int = self.gradients.ctypes.data
        self.is_inside: bool = True  # whether all that is chosen by the data is there
        self.columns: list[Any] = [self._column(made, n, column) for n, column in enumerate(data)]
        self.piece: int = min(piece, len(data[0]))
        self.rows: list[Any] = [numpy.empty((self.piece, *column.shape[1:]), column.dtype) for column in self.columns]
        self.sources: Any = numpy.array([column.ctypes.data for column in self.columns], numpy.int64)
        targets = numpy.array([row.ctypes.data for row in self.rows], numpy.int64)
        self.targets: Any = targets
        self.targets_at: int = targets.ctypes.data
        self.widths: Any = numpy.array([prod(column.shape[1:]) for column in self.columns], numpy.int64)
        self.is_shown: bool = shown is not None
        self.predictions: Any = numpy.empty((len(data[0]), *(shown or ())))
        self.predictions_at: int = self.predictions.ctypes.data
        self.shown: int = -1  # which output they are, where machine code may write a row for each example
        for n, (name, batched, _) in enumerate(made.outputs):
            if name == "auxiliary" and batched:
                self.shown = n
        self.width: int = prod(shown or ())
        self.room: int = 0
        self.given: list[Any] = []

    def _column(self, made: executable.Executable, n: Int, column: Any) -> Any:
        """The data of an input as machine code takes them, if it can."""
        bound = made.bounds[n]
        if bound < 0 or column.dtype.kind != "i":
            self.is_inside = self.is_inside and bound < 0  # floats in the place of integers are beyond all bounds
            return self.numpy.ascontiguousarray(column, self.numpy.float64)
        whole = self.numpy.array(column, self.numpy.int64, order="C")
        at = whole.ctypes.data
        if bound > 0 and not memory.indices(at, at, whole.size, bound, made.from_end[n] != 0):
            self.is_inside = False
        return whole

    def begin(self, order: Any, size: Int, clip_norm: float) -> None:
        """An epoch follows, in this order, with so many examples in a batch; a norm of 0 is any."""
        self.order: Any = order
        self.order_at: int = order.ctypes.data
        self.count: int = len(order)
        self.size: int = size
        self.clip_norm: float = clip_norm

    def run(self, start: Int, steps: Int, loss: float, state: Any) -> tuple[int, float]:
        """Make steps from an example on; of a rule that is not compiled, and may look at anything, one.

        Args:
            start: the example.
            steps: how many.
            loss: of the batches so far, each by its share of the epoch.
            state: the optimizer's, in arrays.

        Returns:
            How many were made, and the loss. The step after these comes to what is not finite, or no recording holds
            there; it has changed nothing.
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
            loss += 1.0 * (end - start) / self.count * self.loss  # 1.0, for these are integers of C
            start = end
            done += 1
        return done, loss

    def changed(self) -> bool:
        """Whether something outside is not as it was recorded; of several recordings, it is seen where they run."""
        if self.is_one and self.space.stale_capture():
            return True
        return self.penalty is not None and self.penalty.stale_capture() != ""

    def compute(self, start: Int, end: Int) -> bool:
        """The mean loss of a batch, with the regularization, and its gradient, clipped; False if no recording holds or
        something is not finite.
        """
        cut, scale, pieces = start, 1.0 / (end - start), end - start > self.piece
        self.loss: float = 0.0
        if pieces:
            self.sums[...] = 0.0
        while cut < end:
            count = min(end - cut, self.piece)
            if not (self.by_one(cut, count, scale) if self.is_one else self.by_several(cut, count, scale)):
                return False
            if pieces:
                self.sums += self.gradients
            cut += count
        if pieces:
            self.gradients[...] = self.sums
        self.loss /= end - start
        if self.penalty is not None and not self.penalize(self.penalty):
            return False
        if not (memory.isfinite(self.loss) and memory.isfinite(memory.squares(self.gradients_at, len(self.g)))):
            return False
        if self.clip_norm:  # as `clip_grad_norm`
            factor = self.clip_norm / (ieee.sqrt(self.gradients.dot(self.gradients)) + 1e-6)
            if factor < 1.0:
                self.gradients *= factor
        return True

    def by_one(self, cut: Int, count: Int, scale: float) -> bool:
        """The losses of some examples and the gradient of `scale` times their sum; False if the recording does not hold
        for all of them.
        """
        made, space = self.made, self.space
        for n in range(len(self.widths)):
            memory.rows(
                self.sources[n], self.targets[n], self.order_at + 8 * cut, count, self.widths[n], len(self.data[n])
            )
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
        self.loss += space.total(count)
        if self.is_shown:  # at once: they may be parameters, which the step changes
            if self.shown >= 0 and space.results is None:
                to = self.predictions_at + 8 * cut * self.width
                memory.copy(space.targets[self.shown], to, count * self.width)
            else:
                self.predictions[cut : cut + count] = space.output("auxiliary")
        return True

    def by_several(self, cut: Int, count: Int, scale: float) -> bool:
        """The same, each example by the recording that holds for it."""
        space: executable.Workspace
        rows = self.order[cut : cut + count]
        self.gradients[...] = 0.0
        for space, taken in executable.share(self.spaces, self.data, rows, count, True, scale, self.give_numbers):
            if space is None:
                return taken is not None and not len(taken)
            self.loss += space.total(len(taken))
            self.gradients[self.spots[id(space)]] += space.grads
            if self.is_shown:
                self.predictions[cut + taken] = space.output("auxiliary")
        return True

    def give_numbers(self, space: Any) -> None:
        """Give a recording its parameters as they are now."""
        space.params[...] = self.numbers[self.spots[id(space)]]

    def penalize(self, penalty: executable.Workspace) -> bool:
        """Add the regularization and its gradient."""
        count = len(penalty.made.parameters)
        memory.rows(self.numbers_at, penalty.params_at, self.penalized_at, count, 1, len(self.x))
        if not (penalty.run([], 1, True, 1.0) and penalty.guards_pass(0, 1)):
            return False
        memory.add(penalty.grads_at, self.gradients_at, self.penalized_at, count)
        self.loss += penalty.total(1)
        return True
