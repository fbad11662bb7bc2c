"""A task compiled for `fit`: array programs of its losses, predictions and regularization, and steps on flat arrays.

Gathering the parameters from their Values for each batch, and writing the gradients back, takes longer than the array
program of a small batch. So while nothing reads the parameters, they, the gradients and the optimizer's state stay in
arrays from step to step (`FlatSteps`). They are written back to the Values when something may read them: after an
epoch, before the function itself is run for a check, and for a batch that the program cannot run. Until then `Batches`
makes one step after the other. The steps have the bits of the optimizer's; the gradients are those of the compiled
loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler import Compiled, gather, policy, scatter
from wengert.compiler.backends import Backend
from wengert.compiler.trace import Aux, Specialization, flatten_argument
from wengert.engine import Value
from wengert.errors import DataError, StaleRecordingError, counted
from wengert.modes import no_grad
from wengert.optim import Optimizer
from wengert.training.batches import Batches, places
from wengert.training.hosts import Hosts
from wengert.training.metrics import Right
from wengert.training.task import CHUNK, Example, Outcome, Places, RefusedError, Task, same_random_numbers

__all__ = ["CompiledTask", "FlatSteps", "Recorded"]

PIECE = 1024  # the number of examples computed at once; more would cost memory and gain no time
CHANGED = ("steps", "_state")  # what a step changes in an optimizer: a loss that reads it makes each step by Values
# In operations, of which machine code runs from 1,000 to 5,000 in a microsecond:
PAUSE = 20_000_000  # between two returns to Python, for Ctrl-C, other threads and the progress bar
SHOWN = 100_000_000  # between two updates of the Values, for other threads that read them


class CompiledTask:
    """A task whose losses, predictions and regularization are computed by array programs.

    Args:
        task: the task.
        backend: the back end of the programs.
        hosts: the processes that train together.
        steps: makes steps on arrays from the arguments of `FlatSteps`, or returns None; None is `FlatSteps` itself.
        work: the number of examples in all epochs and in a batch, for the rule of counts; None uses the programs in any
            case.

    Attributes:
        chunk: the number of examples computed at once.
        serves: True if the array programs run, False if by the rule of counts the engine does.
        became: a sentence about the size of the program.
        hosts: the processes that train together.

    Raises:
        RefusedError: the loss or the data cannot be compiled.
    """

    def __init__(
        self,
        task: Task,
        backend: Backend,
        hosts: Hosts,
        steps: Callable[..., FlatSteps | None] | None = None,
        work: tuple[int, int] | None = None,
    ) -> None:
        self.task: Task = task
        self.backend: Backend = backend
        self.hosts: Hosts = hosts
        self._make_steps: Callable[..., FlatSteps | None] = steps or FlatSteps
        self._work: tuple[int, int] | None = work
        self.chunk: int = PIECE
        self._data, self._held_out = _arrays(task.examples), _arrays(task.held_out)
        self._cross_checked = 0
        self.serves: bool = False
        self._flat: FlatSteps | None = None  # usually those of an earlier epoch, as matching all parameters takes time
        self._epoch: tuple[Any, ...] = ()  # what it began with
        self._right: float = 0.0  # the number of correct predictions of steps that others have replaced in this epoch
        model, loss, metric = task[:3]  # local names, for the trace

        def example(x: Any, y: Any) -> Any:
            """Compute the loss of an example and, if there is a metric, the prediction."""
            prediction = model(_listed(x))
            made = loss(prediction, _listed(y))
            return made if metric is None else Aux(made, prediction)

        self._losses = self._compiled(_named(loss, example))
        self._predictions = self._compiled(_named(model, lambda x: model(_listed(x))))
        self._penalties: Compiled | None = None
        few = [column[:CHUNK] for column in self._data]
        server = self._losses._server
        try:
            with warnings.catch_warnings(), same_random_numbers():
                warnings.simplefilter("ignore")  # the reason is reported in one line
                for n in range(1 + policy.CHANGES):  # two examples, since with one the first call only records
                    self._losses.sum(*[column[:2] for column in few])
                    reason, waits = self.fallback_reason(), server.last_waits()
                    if n and (self._is_compiled() or reason or waits):
                        break
                if self._is_compiled():
                    self._losses.sum(*few)
                    reason = self.fallback_reason()
                elif work is not None and waits and not reason:
                    return  # this run is too small to be compiled
                if not reason:
                    if metric is not None:
                        self._predictions.map(few[0])
                    if task.regularization is not None:
                        self._penalties = self._compiled_penalty(task.regularization)
        except Exception as error:  # user code that fails with traced numbers runs on the engine
            reason = f"{type(error).__name__}: {error}"
        last = server.last
        if not reason and (last is None or (last.candidate is None and not last.specializations)):
            reason = "functions are not traced while a profiler or debugger is active"
        if reason:
            raise RefusedError(reason)
        path = server.latest()
        self.serves = self._is_compiled() and (work is None or path.least <= work[1])
        self.close: float = path.kernel.agree  # the tolerance, since the engine sums in another order
        arrays = counted(path.lifted.program.size, "array operation")
        self.became: str = f"{counted(path.nodes, 'scalar operation')} became {arrays}"

    def _compiled(self, function: Callable[..., Any]) -> Compiled:
        """Compile a function for the back end, or by the rule of counts."""
        made = Compiled(function, backend=self.backend if self._work is None else None)
        made._server.cache.budget.expected = 0 if self._work is None else self._work[0]
        return made

    def _compiled_penalty(self, regularization: Callable[[], Value]) -> Compiled | None:
        """Compile the regularization; None if that fails, and the engine runs it."""
        try:
            made = self._compiled(regularization)
            made.prepare()
        except Exception:  # user code that fails with traced numbers
            return None
        return None if _fallback_reason(made) else made

    def _is_compiled(self) -> bool:
        last = self._losses._server.last
        return last is not None and bool(last.specializations)

    def fallback_reason(self) -> str:
        """Return why the loss runs uncompiled by now, of which it has warned; empty if it runs compiled."""
        return _fallback_reason(self._losses)

    def source(self) -> str:
        """Return the array program as text."""
        return self._losses.source()

    def piece(self, places: Places, held_out: bool) -> tuple[Value, list[Outcome]]:
        """Return the sum of the losses of these examples and the outcome of all of them. If they are held out, the sum
        has no graph.

        Raises:
            StaleRecordingError: the program is no longer valid; `cross_check` raises it too.
        """
        rows: Any = slice(places.start, places.stop) if isinstance(places, range) else places
        x, y = (column[rows] for column in (self._held_out if held_out else self._data))
        made = Value(float(self._losses.map(x, y).sum())) if held_out else self._losses.sum(x, y)
        if self.task.metric is None:
            return made, [(made.data,)]
        return made, [(made.data, self._score(self.task.metric, x, y, places, held_out))]

    def _score(self, metric: Any, x: Any, y: Any, places: Places, held_out: bool) -> float:
        """Return the sum of the metric over some examples, given as arrays and as indices."""
        predictions = None if _fallback_reason(self._predictions) else self._predictions.map(x)
        if isinstance(metric, Right) and predictions is not None:
            return metric.count(predictions, y)
        examples = self.task.held_out if held_out else self.task.examples
        pairs = [examples[i] for i in places]
        with no_grad():  # a user's metric gets Values, as on the engine
            shown = [self.task.model(x) for x, _ in pairs] if predictions is None else _values(predictions.tolist())
            return sum(float(metric(p, target)) for p, (_, target) in zip(shown, pairs, strict=True))

    def cross_check(self) -> None:
        """Compare one example with the engine, a different one each time."""
        place = self._cross_checked = (self._cross_checked + 1) % len(self.task.examples)
        x, y = self.task.examples[place]
        with no_grad():
            penalized, penalties = self.task.regularization, self._penalties
            if penalized is not None and penalties is not None and self._differ(penalized().data, penalties().data):
                self._penalties = self._flat = None  # perhaps a schedule: the engine runs it from now on
            want = self.task.loss(self.task.model(x), y).data
        got = float(self._losses.map(*[column[place : place + 1] for column in self._data])[0])
        last = self._losses._server.last
        if self._differ(want, got) or (last is not None and last.invalidations):
            raise StaleRecordingError("something that the loss or the model reads has changed during the run")

    def _differ(self, want: float, got: float) -> bool:
        return abs(want - got) > self.close * max(1.0, abs(want))

    # -- steps on flat arrays -----------------------------------------------------------------------------------------

    def begin(
        self, order: Places, size: int, optimizer: Optimizer, clip_norm: float | None, meanwhile: Callable[[], None]
    ) -> None:
        """Begin an epoch of steps on arrays, if they are possible now; `meanwhile` is called while devices compute."""
        flat = self._flat
        if flat is not None and (flat.optimizer is not optimizer or flat.is_old()):
            flat.release()
            flat = None
        if not ((flat is not None and flat.held) or optimizer._takes_arrays()):  # held arrays have not been changed
            flat = None
        elif flat is None:
            flat = self._new_steps(optimizer)
        self._flat, self._epoch = flat, (order, size, optimizer, clip_norm, meanwhile)
        if flat is not None:
            flat.meanwhile = meanwhile
            places = np.arange(len(order)) if isinstance(order, range) else order
            flat.begin(np.ascontiguousarray(places, np.int64), size, clip_norm or 0.0)

    def _new_steps(self, optimizer: Optimizer) -> FlatSteps | None:
        """Make steps on arrays; None if they are not equivalent."""
        metric, functions = self.task.metric, [(self._losses, [column[:1] for column in self._data])]
        if not (metric is None or isinstance(metric, Right)):
            return None  # a user's metric may read the parameters before each step
        if self.task.regularization is not None:
            if self._penalties is None:
                return None
            functions.append((self._penalties, []))
        programs = [each for each in starmap(Recorded.of, functions) if each is not None]
        if len(programs) < len(functions) or not FlatSteps.serve(programs, optimizer):
            return None
        return self._make_steps(programs, optimizer, metric, self.chunk, self._data)

    def steps(self, number: int, start: int, loss: float) -> tuple[int, float]:
        """Make some steps on arrays (see `FlatSteps.step`); none if this or another process cannot make any."""
        if self._flat is not None and self._flat.is_old():
            self._right += self._flat.end()
            self.begin(*self._epoch)
        return (self.hosts.least(0), loss) if self._flat is None else self._flat.step(number, start, loss)

    def end(self, goes_on: bool) -> float:
        """End an epoch of steps on arrays; see `FlatSteps.end`."""
        right, self._right = self._right, 0.0
        return right if self._flat is None else right + self._flat.end(goes_on)

    def release(self) -> None:
        """Update the Values of the parameters and the optimizer from arrays."""
        if self._flat is not None:
            self._flat.release()


class Recorded(NamedTuple):
    """A compiled function with the specializations that run its calls here."""

    server: Any
    entry: Any  # the server's cache entry
    paths: tuple[Specialization, ...]

    @classmethod
    def of(cls, compiled: Compiled, batch: Sequence[Any]) -> Recorded | None:
        """Look these up for a batch, or for no arguments; None if the function runs uncompiled."""
        server: Any = compiled._server
        entry = server.cache.entry_for(server.specializer.read(batch, {}, bool(batch)), 1)
        paths = tuple(entry.specializations)
        return cls(server, entry, paths) if paths and not entry.is_eager else None

    def is_old(self) -> bool:
        """Return True if other specializations run its calls by now."""
        return bool(self.entry.is_eager) or tuple(self.entry.specializations) != self.paths


class FlatSteps(Batches):
    """The steps of an optimizer, with the parameters of a loss and the optimizer's state in arrays.

    Args:
        programs: the loss, with the predictions if there is a metric, and the regularization if there is one.
        optimizer: the optimizer.
        metric: counts the correct predictions, or None.
        piece: the number of examples computed at once.
        data: an array for each argument of the loss, with one row per example.
    """

    right: float  # correct predictions counted so far

    def __init__(
        self, programs: list[Recorded], optimizer: Optimizer, metric: Right | None, piece: int, data: list[Any]
    ) -> None:
        losses, *penalties = [each.paths for each in programs]
        super().__init__(losses, penalties[0][0] if penalties else None, optimizer, metric, piece, data)
        self.programs: list[Recorded] = programs
        self.places: Any = places(self.parameters, optimizer.parameters)
        self.state: dict[str, Any] = {}
        self.held: bool = False  # True while the arrays have the current numbers, and False while the Values do
        self.unseen: int = 0  # the number of operations since the Values were updated
        self.pause: int = PAUSE  # operations between two returns to Python
        self.nodes: int = max(path.nodes for path in losses)  # operations per example
        self.number: int = 0  # the index of the next batch
        self.meanwhile: Callable[[], None] = lambda: None  # called while devices compute
        self.first: int = 0  # the first example whose prediction has not been counted
        self.stop: int = 0  # the end of these

    @staticmethod
    def serve(programs: list[Recorded], optimizer: Optimizer) -> bool:
        """Return True if steps on arrays are equivalent: all parameters are leaves and belong to the optimizer, and
        nothing reads what a step changes in it, such as its count of steps.
        """
        (_, _, losses), *penalties = programs
        moved = {id(p) for p in optimizer.parameters}
        if any(len(penalty.paths) > 1 for penalty in penalties) or not all(path.leaves for path in losses):
            return False
        shapes = {getattr(path.kernel.program.outputs.get("auxiliary"), "cell_shape", None) for path in losses}
        paths = [path for each in programs for path in each.paths]
        if len(shapes) > 1 or any(path.captures.reads(optimizer, name) for path in paths for name in CHANGED):
            return False
        return all(id(p) in moved for path in paths for p in path.parameters)

    def is_old(self) -> bool:
        """Return True if other specializations run by now."""
        return any(each.is_old() for each in self.programs)

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
        if self.metric is not None and not self.counts and self.first < self.stop:
            # Many at once, as NumPy's calls are slow.
            self.right += self.metric.count(self.predictions[span], self.data[-1][self.order[span]])
        self.first = self.stop = start

    def load(self) -> None:
        """Read the Values and the optimizer's state into the arrays."""
        gather(self.parameters, self.numbers)
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.optimizer._state.items()}
        self.held, self.unseen = True, 0

    def store(self) -> None:
        """Write the arrays back to the Values and the optimizer, with the gradients of the last batch."""
        scatter(self.parameters, self.numbers, self.gradients)
        for name, numbers in self.state.items():
            np.frombuffer(self.optimizer._state[name])[self.places] = numbers
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
                self.release()
        for each in self.programs:
            each.entry.calls += max(0, done - 1)
        self.stop = min(start + done * self.size, len(self.order))
        return done, loss

    def steps_until_check(self, start: int) -> int:
        """Return the number of steps from an example on until the next check or return to Python."""

        def ready(data: list[Any]) -> list[Any]:
            self.store()
            rows = self.order[start : start + self.size]
            return [column[rows] for column in data]

        steps = max(1, self.pause // (self.size * self.nodes))
        for each, data in zip(self.programs, (self.data, []), strict=False):
            if steps:
                steps = min(steps, each.server.calls_until_check(*each[1:], partial(ready, data)))
        return steps


def _arrays(examples: list[Example]) -> list[Any]:
    """Convert the rows and the targets to arrays; no arrays without examples.

    Raises:
        RefusedError: they are not numbers, or the rows differ in length.
    """
    try:
        columns = zip(("X", "Y"), zip(*examples, strict=True), strict=False)
        flat = [flatten_argument(name, list(column), batched=True) for name, column in columns]
    except DataError as error:
        raise RefusedError(str(error)) from None
    for shape, made in flat:
        if not made:
            raise RefusedError(shape.key)
    return [array for _, made in flat for array in made]


def _fallback_reason(function: Compiled) -> str:
    """Return why the last call of a compiled function ran uncompiled; empty if it ran compiled, or without a call."""
    last = function._server.last
    return "" if last is None else last.fallback_reason


def _named(source: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function the name of the user's, for messages."""
    function.__name__ = getattr(source, "__name__", type(source).__name__)
    return function


def _listed(x: Any) -> Any:
    """Convert a row of an array to the lists that the user's code expects."""
    return x.tolist() if hasattr(x, "tolist") else x


def _values(predictions: Any) -> Any:
    return [_values(p) for p in predictions] if isinstance(predictions, list) else Value(predictions)
