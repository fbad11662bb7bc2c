"""A task compiled for `fit`: array programs of its losses, predictions and regularization."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from wengert.compiler import Compiled, policy
from wengert.compiler.arguments import flatten_argument
from wengert.compiler.backends import Backend
from wengert.compiler.record import Aux
from wengert.engine import Value
from wengert.errors import DataError, StaleRecordingError, counted
from wengert.modes import no_grad
from wengert.training.correct import Correct
from wengert.training.task import CHUNK, Example, Outcome, Places, RefusedError, Task, same_random_numbers

__all__ = ["CompiledTask"]

PIECE = 1024  # the number of examples computed at once; more would cost memory and gain no time


class CompiledTask:
    """A task whose losses, predictions and regularization are computed by array programs.

    Many fields, set once but for the chunk: the programs of a task and their data.

    Args:
        task: the task.
        backend: the back end of the programs.
        work: the number of examples in all epochs and in a batch, for the rule of counts; None uses the programs in any
            case.

    Attributes:
        chunk: the number of examples computed at once.
        serves: True if the array programs run, False if by the rule of counts the engine does.
        became: a sentence about the size of the program.
        data: an array for each argument of the loss, with one row per example.

    Raises:
        RefusedError: the loss or the data cannot be compiled.
    """

    def __init__(self, task: Task, backend: Backend, work: tuple[int, int] | None = None) -> None:
        self.task: Task = task
        self.backend: Backend = backend
        self._work: tuple[int, int] | None = work
        self.chunk: int = PIECE
        self.data: list[Any] = _arrays(task.examples)
        self._held_out: list[Any] = _arrays(task.held_out)
        self._cross_checked: int = 0  # the example that was compared last
        self.serves: bool = False
        model, loss, has_metric = task.model, task.loss, task.metric is not None  # local names, for the trace

        def example(x: Any, y: Any) -> Any:
            """Compute the loss of an example and, if there is a metric, the prediction."""
            prediction = model(_listed(x))
            number = loss(prediction, _listed(y))
            return Aux(number, prediction) if has_metric else number

        self._losses = self._compiled(_named(loss, example))
        self._predictions = self._compiled(_named(model, lambda x: model(_listed(x))))
        self._penalties: Compiled | None = None
        few = [column[:CHUNK] for column in self.data]
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
                    if has_metric:
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
        self.serves = self._is_compiled() and (work is None or path.min_examples <= work[1])
        self.close: float = path.kernel.agree  # the tolerance, since the engine sums in another order
        arrays = counted(path.lifted.program.size, "array operation")
        self.became: str = f"{counted(path.nodes, 'scalar operation')} became {arrays}"

    def _compiled(self, function: Callable[..., Any]) -> Compiled:
        """Compile a function for the back end, or by the rule of counts."""
        compiled = Compiled(function, backend=self.backend if self._work is None else None)
        compiled._server.cache.budget.expected = 0 if self._work is None else self._work[0]
        return compiled

    def _compiled_penalty(self, regularization: Callable[[], Value]) -> Compiled | None:
        """Compile the regularization; None if that fails, and the engine runs it."""
        try:
            penalties = self._compiled(regularization)
            penalties.prepare()
        except Exception:  # user code that fails with traced numbers
            return None
        return None if _fallback_reason(penalties) else penalties

    def _is_compiled(self) -> bool:
        last = self._losses._server.last
        return last is not None and bool(last.specializations)

    def fallback_reason(self) -> str:
        """Return why the loss runs uncompiled by now, of which it has warned; empty if it runs compiled."""
        return _fallback_reason(self._losses)

    def functions(self) -> list[Compiled] | None:
        """Return the loss, and the regularization if there is one; None if the engine runs that."""
        if self.task.regularization is None:
            return [self._losses]
        return None if self._penalties is None else [self._losses, self._penalties]

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
        x, y = (column[rows] for column in (self._held_out if held_out else self.data))
        total = Value(float(self._losses.map(x, y).sum())) if held_out else self._losses.sum(x, y)
        if self.task.metric is None:
            return total, [(total.data,)]
        return total, [(total.data, self._score(self.task.metric, x, y, places, held_out))]

    def _score(self, metric: Any, x: Any, y: Any, places: Places, held_out: bool) -> float:
        """Return the sum of the metric over some examples, given as arrays and as indices."""
        predictions = None if _fallback_reason(self._predictions) else self._predictions.map(x)
        if isinstance(metric, Correct) and predictions is not None:
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
                self._penalties = None  # perhaps a schedule: the engine runs it from now on
            want = self.task.loss(self.task.model(x), y).data
        got = float(self._losses.map(*[column[place : place + 1] for column in self.data])[0])
        last = self._losses._server.last
        if self._differ(want, got) or (last is not None and last.invalidations):
            raise StaleRecordingError("something that the loss or the model reads has changed during the run")

    def _differ(self, want: float, got: float) -> bool:
        return abs(want - got) > self.close * max(1.0, abs(want))


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
    for shape, arrays in flat:
        if not arrays:
            raise RefusedError(shape.key)
    return [array for _, arrays in flat for array in arrays]


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
