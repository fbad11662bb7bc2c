"""Steps on flat arrays: the parameters, the gradient and the optimizer's state stay in arrays from step to step.

Gathering the parameters from their Values for each batch, and writing the gradients back, takes longer than the array
program of a small batch. So while nothing reads the parameters, they stay in arrays. They are written back to the
Values when something may read them: after an epoch, before the function itself is run for a check, and for a batch that
the program cannot run. Until then a kernel makes one step after the other: `Batches`, or on devices `DeviceBatches` of
`compiler.backends.xla.mesh`. The steps have the bits of the optimizer's; the gradients are those of the
compiled loss.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wengert import optim
from wengert.compiler import Compiled, gather, scatter
from wengert.compiler.backends import places
from wengert.compiler.record import Specialization
from wengert.optim import Optimizer
from wengert.training.batches import Batches
from wengert.training.correct import Correct
from wengert.training.hosts import Hosts
from wengert.training.program import CompiledTask
from wengert.training.task import Places

__all__ = ["ArraySteps", "FlatSteps"]

CHANGED = ("steps", "_state")  # what a step changes in an optimizer: a loss that reads it makes each step by Values
# In operations, of which machine code runs from 1,000 to 5,000 in a microsecond:
PAUSE = 20_000_000  # between two returns to Python, for Ctrl-C, other threads and the progress bar
DEVICE_PAUSE = 500_000_000  # the same on devices, as a call takes longer
SHOWN = 100_000_000  # between two updates of the Values, for other threads that read them


class ArraySteps:
    """The steps of a run on arrays, as long as they are equivalent to those of the optimizer on Values.

    Args:
        program: the array programs of the task.
        hosts: the processes that train together.
        mesh: the devices that compute, a `jax.sharding.Mesh`; None if this computer's processor does.
    """

    def __init__(self, program: CompiledTask, hosts: Hosts, mesh: Any = None) -> None:
        self.program: CompiledTask = program
        self.hosts: Hosts = hosts
        self.mesh: Any = mesh
        self._flat: FlatSteps | None = None  # usually those of an earlier epoch, as matching all parameters takes time
        self._epoch: tuple[Any, ...] = ()  # the arguments of `begin`
        self._correct: float = 0.0  # predictions in steps of this epoch by others, which `_flat` has replaced

    def begin(
        self, order: Places, size: int, optimizer: Optimizer, clip_norm: float | None, meanwhile: Callable[[], None]
    ) -> None:
        """Begin an epoch, if steps on arrays are possible now; `meanwhile` is called while devices compute."""
        flat, functions = self._flat, self.program.functions()
        if flat is not None and (flat.optimizer is not optimizer or flat.is_old() or not flat.runs(functions)):
            flat.release()
            flat = None
        if not ((flat is not None and flat.held) or optimizer._takes_arrays()):  # held arrays have not been changed
            flat = None
        elif flat is None:
            flat = self._new(functions, optimizer)
        self._flat, self._epoch = flat, (order, size, optimizer, clip_norm, meanwhile)
        if flat is not None:
            places = np.arange(len(order)) if isinstance(order, range) else order
            flat.begin(np.ascontiguousarray(places, np.int64), size, clip_norm or 0.0, meanwhile)

    def _new(self, functions: list[Compiled] | None, optimizer: Optimizer) -> FlatSteps | None:
        """Return new steps; None if they are not equivalent."""
        task, data = self.program.task, self.program.data
        if functions is None or not (task.metric is None or isinstance(task.metric, Correct)):
            return None  # the engine's penalty, or a user's metric, may read the parameters before each step
        pairs = zip(functions, (data, ()), strict=False)
        programs = [each for each in starmap(Recorded.of, pairs) if each is not None]
        if len(programs) < len(functions) or not FlatSteps.serve(programs, optimizer):
            return None
        kernel = self._kernel([each.paths for each in programs], optimizer, task.metric, data)
        if kernel is None:
            return None
        return FlatSteps(programs, optimizer, kernel, self.hosts, PAUSE if self.mesh is None else DEVICE_PAUSE)

    def _kernel(
        self, paths: list[tuple[Specialization, ...]], optimizer: Optimizer, metric: Correct | None, data: list[Any]
    ) -> Any:
        """Return what makes the steps: devices if the optimizer's rule and the data allow it; None for none."""
        losses, penalty = paths[0], paths[1][0] if paths[1:] else None
        if self.mesh is not None:
            from wengert.compiler.backends import DeviceBatches  # needs JAX

            is_builtin = optimizer._loop(optimizer._state) is not None
            if is_builtin and DeviceBatches.serve(losses, data):
                rule = _rule_of(optimizer)
                return DeviceBatches(losses, penalty, optimizer, rule, metric, data, self.mesh, self.hosts)
        if self.hosts.several:
            return None
        return Batches(losses, penalty, optimizer, metric, self.program.chunk, data)

    def run(self, number: int, start: int, loss: float) -> tuple[int, float]:
        """Make some steps (see `FlatSteps.step`); none if this or another process cannot make any."""
        if self._flat is not None and self._flat.is_old():
            self._correct += self._flat.end()
            self.begin(*self._epoch)
        return (self.hosts.least(0), loss) if self._flat is None else self._flat.step(number, start, loss)

    def end(self, goes_on: bool) -> float:
        """End an epoch; see `FlatSteps.end`."""
        correct, self._correct = self._correct, 0.0
        return correct if self._flat is None else correct + self._flat.end(goes_on)

    def release(self) -> None:
        """Update the Values of the parameters and the optimizer from arrays."""
        if self._flat is not None:
            self._flat.release()


class Recorded(NamedTuple):
    """A compiled function with the specializations that run its calls here."""

    function: Compiled
    server: Any
    entry: Any  # the server's cache entry
    paths: tuple[Specialization, ...]
    data: Sequence[Any]  # an array for each argument, with one row per example; none without arguments

    @classmethod
    def of(cls, function: Compiled, data: Sequence[Any]) -> Recorded | None:
        """Look these up; None if the function runs uncompiled."""
        server: Any = function._server
        batch = [column[:1] for column in data]
        entry = server.cache.entry_for(server.specializer.read(batch, {}, bool(batch)), 1)
        paths = tuple(entry.specializations)
        return cls(function, server, entry, paths, data) if paths and not entry.is_eager else None

    def is_old(self) -> bool:
        """Return True if other specializations run its calls by now."""
        return bool(self.entry.is_eager) or tuple(self.entry.specializations) != self.paths


class FlatSteps:
    """The steps of an optimizer by a kernel, with the parameters and the optimizer's state in arrays.

    Args:
        programs: the loss, with the predictions if there is a metric, and the regularization if there is one.
        optimizer: the optimizer.
        kernel: gathers rows, computes and updates: `Batches`, or another class with the same methods.
        hosts: the processes that train together.
        pause: the number of operations between two returns to Python.
    """

    def __init__(self, programs: list[Recorded], optimizer: Optimizer, kernel: Any, hosts: Hosts, pause: float) -> None:
        self.programs: list[Recorded] = programs
        self.optimizer: Optimizer = optimizer
        self.kernel: Any = kernel
        self.hosts: Hosts = hosts
        self.pause: float = pause
        self.nodes: int = max(path.nodes for path in programs[0].paths)  # operations per example
        self.places: Any = places(kernel.parameters, optimizer.parameters)
        self.state: dict[str, Any] = {}
        self.held: bool = False  # True while the arrays have the current numbers, and False while the Values do
        self.unseen: int = 0  # the number of operations since the Values were updated
        self.order: Any = ()
        self.size: int = 0  # of a batch

    @staticmethod
    def serve(programs: list[Recorded], optimizer: Optimizer) -> bool:
        """Return True if steps on arrays are equivalent: all parameters are leaves and belong to the optimizer, and
        nothing reads what a step changes in it, such as its count of steps.
        """
        losses, *penalties = [each.paths for each in programs]
        moved = {id(p) for p in optimizer.parameters}
        if any(len(paths) > 1 for paths in penalties) or not all(path.leaves for path in losses):
            return False
        shapes = {getattr(path.kernel.program.outputs.get("auxiliary"), "cell_shape", None) for path in losses}
        paths = [path for each in programs for path in each.paths]
        if len(shapes) > 1 or any(path.captures.reads(optimizer, name) for path in paths for name in CHANGED):
            return False
        return all(id(p) in moved for path in paths for p in path.parameters)

    def is_old(self) -> bool:
        """Return True if other specializations run by now."""
        return any(each.is_old() for each in self.programs)

    def runs(self, functions: list[Compiled] | None) -> bool:
        """Return True if the programs are those of these functions."""
        return functions is not None and [each.function for each in self.programs] == functions

    def begin(self, order: Any, size: int, clip_norm: float, meanwhile: Callable[[], None]) -> None:
        """Begin an epoch with this order of examples and batch size; a `clip_norm` of 0 does not clip."""
        self.order, self.size = order, size
        self.kernel.begin(order, size, clip_norm, meanwhile)

    def end(self, goes_on: bool = False) -> float:
        """End an epoch and return the number of correct predictions. The Values are updated, but less often if
        `goes_on`, when the next epoch follows without any user code in between.
        """
        if not goes_on:
            self.release()
        elif self.held and self.unseen > SHOWN:
            self.store()
        correct: float = self.kernel.correct
        self.kernel.correct = 0.0
        return correct

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

    def load(self) -> None:
        """Read the Values and the optimizer's state into the arrays."""
        gather(self.kernel.parameters, self.kernel.numbers)
        self.state = {name: np.array(numbers)[self.places] for name, numbers in self.optimizer._state.items()}
        self.kernel.load(self.state)
        self.held, self.unseen = True, 0

    def store(self) -> None:
        """Write the arrays back to the Values and the optimizer, with the gradients of the last batch."""
        if self.kernel.store(self.state):
            scatter(self.kernel.parameters, self.kernel.numbers, self.kernel.gradients)
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
        if not self.held:
            self.load()
        done = 0
        try:
            steps = self.steps_until_check(start)
            if steps:
                with np.errstate(all="ignore"):
                    done, loss = self.kernel.run(number, steps, loss, self.state)
                self.unseen += done * self.size * self.nodes
        finally:
            if not done:
                self.release()
        for each in self.programs:
            each.entry.calls += max(0, done - 1)
        return done, loss

    def steps_until_check(self, start: int) -> int:
        """Return the number of steps from an example on until the next check or return to Python, of all processes."""

        def ready(data: Sequence[Any]) -> list[Any]:
            self.store()
            rows = self.order[start : start + self.size]
            return [column[rows] for column in data]

        steps = max(1, int(self.pause // (self.size * self.nodes)))
        for each in self.programs:
            if steps:
                steps = min(steps, each.server.calls_until_check(each.entry, each.paths, partial(ready, each.data)))
        if steps and self.kernel.is_stale():
            steps = 0
        return self.hosts.least(steps, self.kernel.mark()) if self.hosts.several else steps


@cache
def _rules() -> dict[str, Any]:
    """Run the source of `optim.py` as Python, since the compiled rules take C numbers only."""
    return runpy.run_path(str(Path(str(optim.__file__)).with_name("optim.py")))


def _rule_of(optimizer: Optimizer) -> Callable[..., Any]:
    """Return the `_moved` of an optimizer, for JAX arrays."""
    owner = next(kind for kind in type(optimizer).__mro__ if "_moved" in vars(kind))
    rule: Callable[..., Any] = vars(_rules()[owner.__name__])["_moved"]
    return rule
