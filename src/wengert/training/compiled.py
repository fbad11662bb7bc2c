"""Computes the losses of a task's examples with the compiled model and loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wengert.compiler import Compiled, policy
from wengert.compiler.backends import Backend
from wengert.compiler.trace import Aux, flatten_argument
from wengert.engine import Value
from wengert.errors import DataError, StaleRecordingError, counted
from wengert.modes import no_grad
from wengert.optim import Optimizer
from wengert.training.flat import FlatSteps, Recorded, recorded
from wengert.training.hosts import Hosts
from wengert.training.metrics import Right
from wengert.training.task import CHUNK, Example, Outcome, Places, RefusedError, Task, same_random_numbers

__all__ = ["CompiledLosses"]

PIECE = 1024  # the number of examples computed at once; more would cost memory and gain no time


class CompiledLosses:
    """The losses of a task's examples, computed by an array program.

    Args:
        task: the task.
        backend: the back end of the program.
        mesh: see `fit`.
        work: the number of examples in all epochs and in a batch, for the rule of counts; None uses the program in any
            case.

    Attributes:
        chunk: the number of examples computed at once.
        serves: True if the array program runs, False if by the rule of counts the engine does.
        became: a sentence about the size of the program.
        hosts: the processes that train together.
        mesh: the devices of a back end that runs on devices, else None.

    Raises:
        RefusedError: the loss or the data cannot be compiled.
    """

    def __init__(self, task: Task, backend: Backend, mesh: Any = None, work: tuple[int, int] | None = None) -> None:
        self.task: Task = task
        self.backend: Backend = backend
        self._work: tuple[int, int] | None = work
        self.hosts: Hosts = Hosts([len(task.examples)])
        self.mesh: Any = None
        if backend.device:
            from wengert.training.devices import hosts_of, mesh_of  # need JAX

            self.hosts, self.mesh = hosts_of(len(task.examples)), mesh_of(mesh)
        self.chunk: int = PIECE
        self._data, self._held_out = _arrays(task.examples), _arrays(task.held_out)
        self._cross_checked = 0
        model, loss, metric = task.model, task.loss, task.metric  # local names, for the trace

        def example(x: Any, y: Any) -> Any:
            """Compute the loss of an example and, if there is a metric, the prediction."""
            prediction = model(_listed(x))
            made = loss(prediction, _listed(y))
            return made if metric is None else Aux(made, prediction)

        self._losses = self._compiled(_named(loss, example))
        self._penalties: Compiled | None = None
        self._flat: FlatSteps | None = None  # those of an earlier epoch, which usually can be reused
        self._predictions = self._compiled(_named(model, lambda x: model(_listed(x))))
        few = [column[:CHUNK] for column in self._data]
        try:
            with warnings.catch_warnings(), same_random_numbers():
                warnings.simplefilter("ignore")  # the reason is reported in one line
                for n in range(1 + policy.CHANGES):  # two examples, since with one the first call only records
                    self._losses.sum(*[column[:2] for column in few])
                    if n and (self._is_compiled() or self.fallback_reason() or self._losses._runtime.last_waits()):
                        break
                self.serves: bool = self._is_compiled() or work is None
                if not self.serves and not self.fallback_reason() and self._losses._runtime.last_waits():
                    return  # this run is too small to be compiled
                if self._is_compiled():
                    self._losses.sum(*few)
                if not (reason := self.fallback_reason()) and task.metric is not None:
                    self._predictions.map(few[0])
                if task.regularization is not None and not reason:
                    self._penalties = self._compiled_penalty(task.regularization)
        except Exception as error:  # user code that fails with traced numbers runs on the engine
            reason = f"{type(error).__name__}: {error}"
        last = self._losses._runtime.last
        if not reason and (last is None or (last.candidate is None and not last.specializations)):
            reason = "functions are not traced while a profiler or debugger is active"
        if reason:
            raise RefusedError(reason)
        path = self._losses._runtime.latest()
        size = 1 if work is None else work[1]
        self.serves = self._is_compiled() and (work is None or path.least <= size)
        self.close: float = path.kernel.agree  # the tolerance, since the engine sums in another order
        steps = path.lifted.program.size
        scalars, arrays = counted(path.nodes, "scalar operation"), counted(steps, "array operation")
        self.became: str = f"{scalars} became {arrays}"

    def _compiled(self, function: Callable[..., Any]) -> Compiled:
        """Compile a function for the back end, or by the rule of counts."""
        made = Compiled(function, backend=self.backend if self._work is None else None)
        made._runtime.expected = 0 if self._work is None else self._work[0]
        return made

    def _is_compiled(self) -> bool:
        last = self._losses._runtime.last
        return last is not None and bool(last.specializations)

    def _compiled_penalty(self, regularization: Callable[[], Value]) -> Compiled | None:
        """Compile the regularization; None if that fails, and the engine runs it."""
        try:
            made = self._compiled(regularization)
            made.prepare()
        except Exception:  # user code that fails with traced numbers
            return None
        return None if _fallback_reason(made) else made

    def fallback_reason(self) -> str:
        """Return why the loss runs uncompiled by now, of which it has warned; empty if it runs compiled."""
        return _fallback_reason(self._losses)

    def source(self) -> str:
        """Return the array program as text."""
        return self._losses.source()

    def piece(self, places: Places) -> tuple[Value, list[Outcome]]:
        """Return the sum of the losses of these examples, and the outcome of all of them.

        Raises:
            StaleRecordingError: the program is no longer valid; `measure` and `cross_check` raise it too.
        """
        x, y = (column[places] for column in self._data)
        made = self._losses.sum(x, y)
        score = self._score(x, y, places, self.task.examples)
        return made, [(made.data,) if self.task.metric is None else (made.data, score)]

    def measure(self) -> Outcome:
        """Return the mean loss of the validation examples, and the mean metric if there is one."""
        count, sums = len(self.task.held_out), [0.0, 0.0]
        for start in range(0, count, self.chunk):
            x, y = (column[start : start + self.chunk] for column in self._held_out)
            sums[0] += float(self._losses.map(x, y).sum())
            sums[1] += self._score(x, y, range(start, start + len(x)), self.task.held_out)
        return tuple([number / count for number in sums[: 1 if self.task.metric is None else 2]])

    def release(self) -> None:
        """Update the Values of the parameters and the optimizer from arrays."""
        if self._flat is not None:
            self._flat.release()

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
        last = self._losses._runtime.last
        if self._differ(want, got) or (last is not None and last.invalidations):
            raise StaleRecordingError("something that the loss or the model reads has changed during the run")

    def flat_steps(self, order: Places, size: int, optimizer: Optimizer, clip_norm: float | None) -> FlatSteps | None:
        """Return the steps of an epoch on arrays; None if they are not possible now."""
        metric, flat = self.task.metric, self._flat
        if not (metric is None or isinstance(metric, Right)):
            return None  # a user's metric may read the parameters before each step
        if flat is None or not flat.goes_on(optimizer):  # reused if possible, as matching all parameters takes time
            self.release()
            losses, penalty = recorded(self._losses, [column[:1] for column in self._data]), None
            if self.task.regularization is not None:
                penalty = None if self._penalties is None else recorded(self._penalties, [])
                if penalty is None:
                    return None
            if losses is None or not FlatSteps.serve(losses, penalty, optimizer):
                return None
            flat = self._flat = self._steps(losses, penalty, optimizer, metric, self.chunk, self._data)
        if flat is None or not (flat.held or optimizer._takes_arrays()):  # valid arrays have not been changed
            self.release()
            return None
        places = np.arange(len(order)) if isinstance(order, range) else order
        flat.begin(np.ascontiguousarray(places, np.int64), size, clip_norm or 0.0)
        return flat

    def _steps(self, losses: Recorded, penalty: Recorded | None, optimizer: Optimizer, *more: Any) -> FlatSteps | None:
        """Make steps on arrays, on devices if there are any and the optimizer's rule and the data allow it."""
        if self.mesh is not None:
            from wengert.training.devices import DeviceSteps  # needs JAX

            if DeviceSteps.serve_there(losses, optimizer, self._data):
                return DeviceSteps(losses, penalty, optimizer, *more, mesh=self.mesh, hosts=self.hosts)
        return None if self.hosts.several else FlatSteps(losses, penalty, optimizer, *more)

    def _differ(self, want: float, got: float) -> bool:
        return abs(want - got) > self.close * max(1.0, abs(want))

    def _score(self, x: Any, y: Any, places: Iterable[int], examples: list[Example]) -> float:
        """Return the sum of the metric over some examples, given as arrays and as indices."""
        metric, model = self.task.metric, self.task.model
        if metric is None:
            return 0.0
        predictions = None if _fallback_reason(self._predictions) else self._predictions.map(x)
        if isinstance(metric, Right) and predictions is not None:
            return metric.count(predictions, y)
        pairs = [examples[i] for i in places]
        with no_grad():  # a user's metric gets Values, as on the engine
            shown = [model(row) for row, _ in pairs] if predictions is None else _values(predictions.tolist())
            return sum(float(metric(p, target)) for p, (_, target) in zip(shown, pairs, strict=True))


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
