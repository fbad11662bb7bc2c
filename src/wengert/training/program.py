"""A task compiled for `fit`: array programs of its losses and predictions, and steps on flat arrays.

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
# In operations, of which machine code runs from 1,000 to 5,000 in a microsecond:
PAUSE = 20_000_000  # between two returns to Python, for Ctrl-C, other threads and the progress bar
SHOWN = 100_000_000  # between two updates of the Values, for other threads that read them


class CompiledTask:
    """A task whose losses and predictions are computed by array programs.

    A regularization is added to the loss of each example, in a program of its own: a batch computes it once, and its
    mean has it once.

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
        regularizes: True if the regularization is part of a program, False if there is none or the engine computes it.
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
        model = task.model  # a local name, for the trace
        self._losses = self._compiled(_example(*task[:3]))
        self._predictions = self._compiled(_named(model, lambda x: model(_listed(x))))
        self._objective: Compiled | None = self._losses  # what the steps minimize; None if the engine computes a part
        few = [column[:CHUNK] for column in self._data]
        runtime = self._losses._runtime
        try:
            with warnings.catch_warnings(), same_random_numbers():
                warnings.simplefilter("ignore")  # the reason is reported in one line
                self._prepare(self._losses, few)
                reason = self.fallback_reason()
                if work is not None and not _is_compiled(self._losses) and runtime.last_waits() and not reason:
                    return  # this run is too small to be compiled
                if not reason:
                    if task.metric is not None:
                        self._predictions.map(few[0])
                    if task.regularization is not None:
                        self._objective = self._regularized(few)
        except Exception as error:  # user code that fails with traced numbers runs on the engine
            reason = f"{type(error).__name__}: {error}"
        last = runtime.last
        if not reason and (last is None or (last.candidate is None and not last.specializations)):
            reason = "functions are not traced while a profiler or debugger is active"
        if reason:
            raise RefusedError(reason)
        path = runtime.latest()
        self.serves = _is_compiled(self._losses) and (work is None or path.least <= work[1])
        self.close: float = path.kernel.agree  # the tolerance, since the engine sums in another order
        arrays = counted(path.lifted.program.size, "array operation")
        self.became: str = f"{counted(path.nodes, 'scalar operation')} became {arrays}"

    def _compiled(self, function: Callable[..., Any]) -> Compiled:
        """Compile a function for the back end, or by the rule of counts."""
        made = Compiled(function, backend=self.backend if self._work is None else None)
        made._runtime.expected = 0 if self._work is None else self._work[0]
        return made

    def _prepare(self, function: Compiled, few: list[Any]) -> None:
        """Call a function with few examples, until it is compiled or is known to stay uncompiled."""
        for n in range(1 + policy.CHANGES):  # two examples, since with one the first call only records
            function.sum(*[column[:2] for column in few])
            if n and (_is_compiled(function) or _fallback_reason(function) or function._runtime.last_waits()):
                break
        if _is_compiled(function):
            function.sum(*few)

    def _regularized(self, few: list[Any]) -> Compiled | None:
        """Compile the loss with the regularization; None if that fails, and the engine runs the regularization."""
        made = self._compiled(_example(*self.task[:4]))
        try:
            self._prepare(made, few)
        except Exception:  # user code that fails with traced numbers
            return None
        return made if _is_compiled(made) and not _fallback_reason(made) else None

    @property
    def regularizes(self) -> bool:
        """True if the regularization is part of a program, False if there is none or the engine computes it."""
        objective = self._objective
        return objective is not None and objective is not self._losses and not _fallback_reason(objective)

    def fallback_reason(self) -> str:
        """Return why the loss runs uncompiled by now, of which it has warned; empty if it runs compiled."""
        return _fallback_reason(self._losses)

    def source(self) -> str:
        """Return the array program as text."""
        return self._losses.source()

    def piece(self, places: Places, held_out: bool, regularized: bool) -> tuple[Value, list[Outcome]]:
        """Return the sum of the losses of these examples, each with the regularization if asked, and the outcome of all
        of them. If they are held out, the sum has no graph.

        Raises:
            StaleRecordingError: the program is no longer valid; `cross_check` raises it too.
        """
        rows: Any = slice(places.start, places.stop) if isinstance(places, range) else places
        x, y = (column[rows] for column in (self._held_out if held_out else self._data))
        if held_out:
            made = Value(float(self._losses.map(x, y).sum()))
        else:
            made = (self._objective if regularized and self._objective is not None else self._losses).sum(x, y)
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
            want = self.task.loss(self.task.model(x), y).data
            if self._is_mismatch(self._losses, place, want):
                raise StaleRecordingError("something that the loss or the model reads has changed during the run")
            objective, regularization = self._objective, self.task.regularization
            if objective is None or regularization is None or not self.regularizes:
                return
            if self._is_mismatch(objective, place, want + regularization().data):
                self._objective = self._flat = None  # perhaps a schedule: the engine runs it from now on

    def _is_mismatch(self, function: Compiled, place: int, want: float) -> bool:
        """Return True if the program computes another loss of an example, or was recorded anew."""
        got = float(function.map(*[column[place : place + 1] for column in self._data])[0])
        last = function._runtime.last
        return abs(want - got) > self.close * max(1.0, abs(want)) or (last is not None and bool(last.invalidations))

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
        metric, objective = self.task.metric, self._objective
        if objective is None or not (metric is None or isinstance(metric, Right)):
            return None  # a user's metric may read the parameters before each step
        program = Recorded.of(objective, [column[:1] for column in self._data])
        if program is None or not FlatSteps.serve(program, optimizer):
            return None
        return self._make_steps(program, optimizer, metric, self.chunk, self._data)

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

    runtime: Any
    entry: Any  # the runtime's cache entry
    paths: tuple[Specialization, ...]

    @classmethod
    def of(cls, compiled: Compiled, batch: Sequence[Any]) -> Recorded | None:
        """Look these up for a batch; None if the function runs uncompiled."""
        runtime: Any = compiled._runtime
        entry = runtime.entry_for(runtime.arguments(batch, {}, True), 1)
        paths = tuple(entry.specializations)
        return cls(runtime, entry, paths) if paths and not entry.is_eager else None

    def is_old(self) -> bool:
        """Return True if other specializations run its calls by now."""
        return bool(self.entry.is_eager) or tuple(self.entry.specializations) != self.paths


class FlatSteps(Batches):
    """The steps of an optimizer, with the parameters of a loss and the optimizer's state in arrays.

    Args:
        program: the loss with its regularization, and the predictions if there is a metric.
        optimizer: the optimizer.
        metric: counts the correct predictions, or None.
        piece: the number of examples computed at once.
        data: an array for each argument of the loss, with one row per example.
    """

    right: float  # correct predictions counted so far

    def __init__(
        self, program: Recorded, optimizer: Optimizer, metric: Right | None, piece: int, data: list[Any]
    ) -> None:
        super().__init__(program.paths, optimizer, metric, piece, data)
        self.program: Recorded = program
        self.places: Any = places(self.parameters, optimizer.parameters)
        self.state: dict[str, Any] = {}
        self.held: bool = False  # True while the arrays have the current numbers, and False while the Values do
        self.unseen: int = 0  # the number of operations since the Values were updated
        self.pause: int = PAUSE  # operations between two returns to Python
        self.nodes: int = max(path.nodes for path in program.paths)  # operations per example
        self.number: int = 0  # the index of the next batch
        self.meanwhile: Callable[[], None] = lambda: None  # called while devices compute
        self.first: int = 0  # the first example whose prediction has not been counted
        self.stop: int = 0  # the end of these

    @staticmethod
    def serve(program: Recorded, optimizer: Optimizer) -> bool:
        """Return True if steps on arrays are equivalent: all parameters are leaves and belong to the optimizer."""
        moved, paths = {id(p) for p in optimizer.parameters}, program.paths
        shapes = {getattr(path.kernel.program.outputs.get("auxiliary"), "cell_shape", None) for path in paths}
        if len(shapes) > 1 or not all(path.leaves for path in paths):
            return False
        return all(id(p) in moved for path in paths for p in path.parameters)

    def is_old(self) -> bool:
        """Return True if other specializations run by now."""
        return self.program.is_old()

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
        self.program.entry.calls += max(0, done - 1)
        self.stop = min(start + done * self.size, len(self.order))
        return done, loss

    def steps_until_check(self, start: int) -> int:
        """Return the number of steps from an example on until the next check or return to Python."""

        def ready() -> list[Any]:
            self.store()
            rows = self.order[start : start + self.size]
            return [column[rows] for column in self.data]

        runtime, entry, paths = self.program
        steps = max(1, self.pause // (self.size * self.nodes))
        return min(steps, int(runtime.calls_until_check(entry, paths, ready)))


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


def _example(
    model: Callable[..., Any], loss: Any, metric: Any, regularization: Callable[[], Any] | None = None
) -> Callable[..., Any]:
    """Return what computes the loss of an example, with the regularization if there is one, and the prediction if there
    is a metric.
    """

    def example(x: Any, y: Any) -> Any:
        prediction = model(_listed(x))
        made = loss(prediction, _listed(y))
        if regularization is not None:
            made = made + regularization()
        return made if metric is None else Aux(made, prediction)

    return _named(loss, example)


def _is_compiled(function: Compiled) -> bool:
    """Return True if the last call of a compiled function had specializations."""
    last = function._runtime.last
    return last is not None and bool(last.specializations)


def _fallback_reason(function: Compiled) -> str:
    """Return why the last call of a compiled function ran uncompiled; empty if it ran compiled, or without a call."""
    last = function._runtime.last
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
