"""What computes a batch for `fit`: the engine, example by example, or the array program that `compile` makes of it.

Both give the same losses to rounding. `choose` decides at the start of a run, and the run keeps to it, so that one that
is resumed gives the same bits.
"""

from __future__ import annotations

import random
import warnings
from array import array
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

from wengert.compiler.backends import BACKENDS, Backend, preferred
from wengert.compiler.function import Compiled
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, MissingExtraError, StaleRecordingError, warn_once
from wengert.functions import sum as total
from wengert.modes import eager_only, no_grad
from wengert.optim import Optimizer, clip_grad_norm
from wengert.training.history import Progress
from wengert.training.metrics import Metric, Right

__all__ = [
    "DivergedError",
    "Engine",
    "Loss",
    "Model",
    "Program",
    "choose",
    "uncompiled",
]

CHUNK = 128  # how many examples' graphs are alive at once; more would cost memory and gain no time
PIECE = 1024  # how many examples an array program computes at once, for the same reason

Model = Callable[[Any], Any]
Loss = Callable[[Any, Any], Value]
Example = tuple[Any, Any]
Outcome = tuple[float, ...]  # a mean loss, then the sum of the metric where there is one
Places = Sequence[int]  # numbers of examples


class DivergedError(Exception):
    """The loss of a batch is not finite."""


class _RefusedError(Exception):
    """Why there is no array program."""


def choose(backend: str, *task: Any) -> Engine:
    """What computes a task from now on: `Engine(*task)`, or a `Program` of that task.

    Args:
        backend: "eager" is the engine, the name of a back end its array program; "auto" is the first that can run here,
            where the loss and the data can be compiled and the task is not tiny, else the engine. Its `fallback` says
            why, and is empty for a tiny task, which the engine computes in less time.
        *task: the arguments of Engine.

    Raises:
        MissingExtraError: a back end is asked for that needs what is not installed.
        ArgumentError: a back end is asked for, and the loss or the data cannot be compiled.
    """
    engine = Engine(*task)
    if backend == "eager":
        return engine
    try:
        chosen = preferred() if backend == "auto" else BACKENDS[backend]
        chosen.require()
        if eager_only():
            raise _RefusedError("strict() and detect_anomaly() look at each operation by itself")
        program = Program(chosen, *task)
        if backend != "auto" or program.operations >= chosen.overhead:
            return program
    except MissingExtraError as error:
        if backend != "auto":
            raise
        engine.fallback = str(error)
    except _RefusedError as reason:
        if backend != "auto":
            raise ArgumentError(f"backend is {backend!r}, and the loss cannot be compiled: {reason}") from None
        engine.fallback = str(reason)
    return engine


class Engine:
    """A task, computed by the engine.

    Args:
        model: called with a row, gives a prediction.
        loss: called with a prediction and a target, gives a Value.
        metric: called with the same, gives a number; or None.
        regularization: called once a batch, gives a Value; or None.
        examples: (row, target) pairs to learn from.
        held_out: such pairs that are only measured.

    Attributes:
        name: "eager", or the back end's.
        fallback: why it is the engine where an array program would have been welcome; else empty.
    """

    name: str = "eager"
    fallback: str = ""

    def __init__(
        self,
        model: Model,
        loss: Loss,
        metric: Metric | None,
        regularization: Callable[[], Value] | None,
        examples: list[Example],
        held_out: list[Example],
    ) -> None:
        self.model: Model = model
        self.loss: Loss = loss
        self.metric: Metric | None = metric
        self.regularization: Callable[[], Value] | None = regularization
        self.examples: list[Example] = examples
        self.held_out: list[Example] = held_out

    def order(self, keys: array[int]) -> Places:
        """The numbers of the examples in the order of their keys."""
        return sorted(range(len(keys)), key=keys.__getitem__)

    def learn(
        self, order: Places, size: int, optimizer: Optimizer, clip_norm: float | None, progress: Progress
    ) -> Outcome:
        """One step a batch; returns the mean loss of all examples, each as it was when it was learnt, and the mean
        metric where there is one.

        Args:
            order: the numbers of the examples, in the order in which they are learnt.
            size: how many of them make a batch.
            optimizer: what makes the steps.
            clip_norm: the greatest norm of the gradient, or None.
            progress: told of each batch.

        Raises:
            DivergedError: a loss is not finite; its step was not made.
        """
        outcomes, weights = [], []
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            try:
                outcomes.append(self.step(start, batch, optimizer, clip_norm))
            except DivergedError as reason:
                raise DivergedError(f"batch {start // size}: {reason}") from None
            weights.append(len(batch) / len(order))
            progress.batch()
        losses, *scores = zip(*outcomes, strict=True)
        loss = sum(weight * x for weight, x in zip(weights, losses, strict=True))
        return loss, *[sum(column) / len(order) for column in scores]

    def step(self, start: int, batch: Places, optimizer: Optimizer, clip_norm: float | None) -> Outcome:
        """One step on a batch, which begins at `start` in the order of `learn`; returns its outcome as it was before.

        Raises:
            DivergedError: the loss is not finite; the step was not made.
        """
        optimizer.zero_grad()
        outcome = self.gradient(batch)
        if not isfinite(outcome[0]):
            raise DivergedError(
                f"the loss is {outcome[0]}; training ended before the step that would spoil "
                f"the parameters. Try a learning rate below {optimizer.lr:g}"
            )
        if clip_norm is not None:
            clip_grad_norm(optimizer.trainable, clip_norm)
        optimizer.step()
        return outcome

    def measure(self) -> Outcome:
        """The mean loss of the examples that are held out, and the mean metric where there is one."""
        with no_grad():
            outcomes = [self._example(x, y)[1] for x, y in self.held_out]
        return tuple([sum(column) / len(outcomes) for column in zip(*outcomes, strict=True)])

    def report(self) -> str:
        """What became of the loss, as `compile` reports it; empty for the engine."""
        return ""

    def source(self) -> str:
        """The array program as text; empty for the engine."""
        return ""

    def recheck(self) -> None:
        """Look whether what is computed is still what the user's code says, after other code of the user's has run."""

    def gradient(self, batch: Places) -> Outcome:
        """Add the gradient of the batch's mean loss, and of the regularization, to the parameters."""
        penalty = self._penalty()
        outcomes: list[Outcome] = []
        for start in range(0, len(batch), CHUNK):
            results = [self._example(*self.examples[i]) for i in batch[start : start + CHUNK]]
            total(loss for loss, _ in results).backward(1.0 / len(batch))
            outcomes += [outcome for _, outcome in results]
        loss, *score = map(sum, zip(*outcomes, strict=True))
        return (loss / len(batch) + penalty, *score)

    def _penalty(self) -> float:
        """Add the gradient of the regularization; returns its size."""
        if self.regularization is None:
            return 0.0
        added = self.regularization()
        added.backward()
        return added.data

    def _example(self, x: Any, y: Any) -> tuple[Value, Outcome]:
        """The loss of one example, and its outcome."""
        prediction = self.model(x)
        loss = self.loss(prediction, y)
        return loss, (loss.data,) if self.metric is None else (loss.data, float(self.metric(prediction, y)))


class Program(Engine):
    """A task, computed by an array program; by the engine from where the program turns out not to hold.

    Raises:
        _RefusedError: the loss or the data cannot be compiled.
    """

    def __init__(self, backend: Backend, *task: Any) -> None:
        super().__init__(*task)
        self.name: str = backend.name
        self._backend = backend
        self._data, self._held_out = _arrays(self.examples), _arrays(self.held_out)
        self._rechecked = 0
        self._losses = self._compiled(_named(self.loss, lambda x, y: self._loss(x, y)))
        self._penalties: Compiled | None = None
        self._flat: Any = None  # where the parameters are while `learn` runs
        self._last_flat: Any = None  # those of an earlier epoch, which mostly serve again
        self._ordered: list[Any] = []  # the examples in the order in which `learn` goes through them
        self._shown: list[tuple[Any, Any]] = []  # predictions and targets whose metric is still to be counted
        self._predictions = self._compiled(_named(self.model, lambda x: self.model(_listed(x))))
        few = [column[:CHUNK] for column in self._data]
        state = random.getstate()  # a model that draws random numbers draws the same ones after this attempt
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what there is to say is said in one line
                self._losses.sum(*few)
                if not (refusal := _refusal(self._losses)) and self.metric is not None:
                    self._predictions.map(few[0])
                if self.regularization is not None and not refusal:
                    self._penalties = self._compiled_penalty(self.regularization)
        except Exception as error:  # code that a stand-in for a number upsets runs as it always did
            refusal = f"{type(error).__name__}: {error}"
        finally:
            random.setstate(state)
        if refusal:
            raise _RefusedError(refusal)
        self.operations: int = self._losses._runtime.latest().nodes * len(self.examples)

    def _loss(self, x: Any, y: Any) -> Any:
        """What is compiled: the loss of an example and, where there is a metric, the prediction."""
        from wengert.compiler.tracing.trace import Auxiliary  # which needs NumPy

        prediction = self.model(_listed(x))
        loss = self.loss(prediction, _listed(y))
        return loss if self.metric is None else Auxiliary(loss, prediction)

    def order(self, keys: array[int]) -> Places:
        """The numbers of the examples in the order of their keys, as an array."""
        import numpy as np

        places: Any = np.frombuffer(keys, np.uint64).argsort(kind="stable")
        return places  # type: ignore[no-any-return]

    def learn(
        self, order: Places, size: int, optimizer: Optimizer, clip_norm: float | None, progress: Progress
    ) -> Outcome:
        """One step a batch, the parameters kept in arrays from one to the next where that is the same."""
        self._shown = []
        self._flat = self._flat_steps(optimizer)
        if self._flat is not None:
            self._ordered = self._data if isinstance(order, range) else [column[order] for column in self._data]
        try:
            outcome = super().learn(order, size, optimizer, clip_norm, progress)
        finally:
            self._put_back()
        if self._shown and isinstance(self.metric, Right):  # at once: NumPy's calls take longer than a batch's sums
            right = self.metric.count(*map(_joined, zip(*self._shown, strict=True)))
            outcome = outcome[0], outcome[1] + right / len(order)
        return outcome

    def _put_back(self) -> None:
        """Give the Values what the arrays hold."""
        pressed = None
        while self._flat is not None:
            try:
                self._flat.store()
                self._flat = None
            except KeyboardInterrupt as interrupt:  # it comes once, and waits until all is written
                pressed = interrupt
        if pressed is not None:
            raise pressed

    def _flat_steps(self, optimizer: Optimizer) -> Any:
        """The steps on arrays; None if there can be none now."""
        from wengert.training.flat import flat, task  # which needs NumPy

        if self.name == "eager" or not (self.metric is None or isinstance(self.metric, Right)):
            return None  # a metric of the user's own may read the parameters as they are before each step
        if self.regularization is not None and self._penalties is None:
            return None
        losses = task(self._losses, [column[:1] for column in self._data])
        penalty = None if self._penalties is None else task(self._penalties, [])
        if losses is None or (penalty is None and self._penalties is not None):
            return None
        self._last_flat = flat(losses, penalty, optimizer, self._last_flat)
        return self._last_flat

    def step(self, start: int, batch: Places, optimizer: Optimizer, clip_norm: float | None) -> Outcome:
        """One step on a batch; returns its outcome as it was before, without the metric of what is `_shown`."""
        steps, made = self._flat, None
        if steps is None:
            return super().step(start, batch, optimizer, clip_norm)
        cuts = range(start, start + len(batch), PIECE)
        pieces = [[column[cut : min(cut + PIECE, start + len(batch))] for column in self._ordered] for cut in cuts]
        try:
            made = steps.step(pieces, len(batch), clip_norm)
        except StaleRecordingError as error:
            self._leave(str(error))
        if made is None:
            steps.store()
            self._flat = None  # from here on the numbers are in the Values
            outcome = super().step(start, batch, optimizer, clip_norm)
            if self.name != "eager":
                steps.load(gradients=True)
                self._flat = steps
            return outcome
        loss, predictions = made
        if self.metric is None:
            return (loss,)
        for (*_, targets), shown in zip(pieces, predictions, strict=True):
            self._shown.append((shown, targets))
        return loss, 0.0

    def measure(self) -> Outcome:
        """The mean loss of the examples that are held out, and the mean metric where there is one."""
        count, sums = len(self.held_out), [0.0, 0.0]
        for start in range(0, count, PIECE):
            if self.name == "eager":
                return super().measure()
            x, y = (column[start : start + PIECE] for column in self._held_out)
            try:
                sums[0] += float(self._losses.map(x, y).sum())
            except StaleRecordingError as error:
                self._leave(str(error))
                return super().measure()
            self._look()
            sums[1] += self._score(x, y, range(start, start + len(x)), self.held_out)
        return tuple([number / count for number in sums[: 1 if self.metric is None else 2]])

    def report(self) -> str:
        """What became of the loss, as `compile` reports it."""
        return str(self._losses.report())

    def source(self) -> str:
        """The array program as text."""
        return str(self._losses.source())

    def recheck(self) -> None:
        """Compare one example, another each time, with the engine; if they differ, leave the rest to that."""
        if self.name == "eager":
            return
        place = self._rechecked = (self._rechecked + 1) % len(self.examples)
        x, y = self.examples[place]
        try:
            with no_grad():
                penalized, penalties = self.regularization, self._penalties
                if penalized is not None and penalties is not None and _differ(penalized().data, penalties().data):
                    self._penalties = None  # a schedule, perhaps: it stays with the engine from now on
                want = self.loss(self.model(x), y).data
            got = float(self._losses.map(*[column[place : place + 1] for column in self._data])[0])
        except StaleRecordingError as error:
            self._leave(str(error))
            return
        if _differ(want, got):
            self._leave("what the loss or the model reads besides its arguments has changed during the run")

    def gradient(self, batch: Places) -> Outcome:
        """Add the gradient of the batch's mean loss, and of the regularization, to the parameters."""
        if self.name == "eager":
            return super().gradient(batch)
        penalty, loss, score = self._penalty(), 0.0, 0.0
        for start in range(0, len(batch), PIECE):
            piece = batch[start : start + PIECE]
            x, y = (column[piece] for column in self._data)
            made = None
            try:
                made = self._losses.sum(x, y) if self.name != "eager" else None
            except StaleRecordingError as error:
                self._leave(str(error))
            if made is None:
                made = total(self._example(*self.examples[i])[0] for i in piece)
            made.backward(1.0 / len(batch))
            loss += made.data
            score += self._score(x, y, piece, self.examples)
        self._look()
        outcome = loss / len(batch) + penalty, score
        return outcome[:1] if self.metric is None else outcome

    def _score(self, x: Any, y: Any, places: Iterable[int], examples: list[Example]) -> float:
        """The sum of the metric over some examples, given both as arrays and as their places."""
        if self.metric is None:
            return 0.0
        predictions = None if _refusal(self._predictions) else self._predictions.map(x)
        if isinstance(self.metric, Right) and predictions is not None:
            return self.metric.count(predictions, y)
        pairs = [examples[i] for i in places]
        with no_grad():  # a metric of the user's own gets Values, as it does without a program
            shown = [self.model(row) for row, _ in pairs] if predictions is None else _values(predictions.tolist())
            return sum(float(self.metric(p, target)) for p, (_, target) in zip(shown, pairs, strict=True))

    def _compiled(self, function: Callable[..., Any]) -> Compiled:
        return Compiled(function, backend=self._backend)

    def _compiled_penalty(self, regularization: Callable[[], Value]) -> Compiled | None:
        """The regularization as an array program; None if it cannot be one, and then it stays with the engine."""
        try:
            made = self._compiled(regularization)
            made()
        except Exception:  # code of the user's that a stand-in for a number upsets: it runs as it always did
            return None
        return None if _refusal(made) else made

    def _look(self) -> None:
        """Note that the compiled function runs uncompiled by now; it has said so itself."""
        if refusal := _refusal(self._losses):
            self.name, self.fallback = "eager", refusal

    def _leave(self, why: str) -> None:
        """Leave the rest of the run to the engine, and say so."""
        self.name, self.fallback = "eager", why
        warn_once(set(), f"fit goes on with the engine: {why}", RuntimeWarning)


def _arrays(examples: list[Example]) -> list[Any]:
    """The rows and the targets as arrays; none for no examples.

    Raises:
        _RefusedError: they are not numbers, or the rows differ in length.
    """
    from wengert.compiler.tracing.arguments import flatten_argument

    try:
        columns = zip(("X", "Y"), zip(*examples, strict=True), strict=False)
        return [made for name, column in columns for made in flatten_argument(name, list(column), batched=True)[1]]
    except DataError as error:
        raise _RefusedError(str(error)) from None


def _differ(want: float, got: float) -> bool:
    return abs(want - got) > 1e-9 * max(1.0, abs(want))


def _joined(arrays: Iterable[Any]) -> Any:
    """Arrays one behind another."""
    import numpy as np

    return np.concatenate(list(arrays))


def _refusal(function: Compiled) -> str:
    """Why the last call of a compiled function ran uncompiled; empty if it did not, or if there was none."""
    last = function._runtime.last
    return "" if last is None else last[1].refusal


def _named(source: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function under the name of the user's own, which messages then have."""
    function.__name__ = getattr(source, "__name__", type(source).__name__)
    return function


def _listed(x: Any) -> Any:
    """A row of an array as the lists that the user's code gets without arrays."""
    return x.tolist() if hasattr(x, "tolist") else x


def _values(predictions: Any) -> Any:
    """Numbers as Values, in lists too."""
    return [_values(p) for p in predictions] if isinstance(predictions, list) else Value(predictions)


def uncompiled(function: Any) -> Any:
    """A user's function that `compile` has decorated, as it was: fit compiles it together with all that it needs."""
    return function.function if isinstance(function, Compiled) else function
