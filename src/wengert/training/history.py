"""The `History` of a training run, and its `Progress` on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from math import inf, isfinite
from typing import Any

from wengert.compiler.backends import BACKENDS
from wengert.errors import ArgumentError, counted

__all__ = ["History", "Progress"]

CURVES = ("loss", "val_loss", "accuracy", "val_accuracy")
ENDS = ("interrupted", "stopped_early", "diverged")


@dataclass(eq=False, repr=False)
class History:
    """The losses and metrics of each epoch of a training run, and how the run ended."""

    loss: list[float] = field(default_factory=list)
    """The training loss with regularization, averaged over the epoch's batches, each before its step."""
    val_loss: list[float] = field(default_factory=list)
    """The mean loss over the validation data after the epoch, without regularization; empty without such data."""
    accuracy: list[float] = field(default_factory=list)
    """The metric, averaged like `loss`: a fraction from 0 to 1; empty without a metric."""
    val_accuracy: list[float] = field(default_factory=list)
    """The metric over the validation data after the epoch."""
    seconds: float = 0.0
    """The duration of the run."""
    interrupted: bool = False
    """True if Ctrl-C ended it."""
    stopped_early: bool = False
    """True if patience or the callback ended it."""
    diverged: bool = False
    """True if a loss that was not finite ended it."""
    backend: str = ""
    """The back end that ran it, such as "numpy", or "eager" for the engine."""
    fallback: str = ""
    """Why it ran on the engine although backend="eager" was not passed; else empty."""
    best_parameters: list[float] = field(default_factory=list, init=False)
    """With `patience`, the data of the optimizer's parameters after the best epoch."""

    def __post_init__(self) -> None:
        for name in CURVES:  # copied, as they grow
            setattr(self, name, [*getattr(self, name)])

    def __len__(self) -> int:
        """Return the number of completed epochs."""
        return len(self.loss)

    @property
    def best_epoch(self) -> int | None:
        """The index of the epoch with the smallest validation loss, or training loss without validation data."""
        losses = [number if number == number else inf for number in self.val_loss or self.loss]  # nan is never best
        return losses.index(min(losses)) if losses else None

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes as strings, numbers and lists of numbers, for `wengert.checkpoint`.

        >>> History([0.5], seconds=2.0, backend="eager").state_dict()["seconds"]
        2.0
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: [*part] if isinstance(part, list) else part for name, part in parts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`; on an error nothing is changed.

        Raises:
            ArgumentError: it is not such a state.
        """
        if not isinstance(state, Mapping) or set(state) != set(self.state_dict()):
            raise ArgumentError(f"not a state of History: {state!r:.60}")
        lists: dict[str, list[float]] = {}
        for name in (*CURVES, "best_parameters"):
            try:
                lists[name] = [float(number) for number in state[name]]
            except (TypeError, ValueError):
                told = f"{name} is {state[name]!r:.60}; expected a list of numbers"
                raise ArgumentError(f"not a state of History: {told}") from None
        epochs = len(lists["loss"])
        for name in CURVES:
            if len(lists[name]) not in (0, epochs):
                raise ArgumentError(f"not a state of History: {name} has the length {len(lists[name])}, loss {epochs}")
        if any(state[name] not in (0, 1) for name in ENDS):
            raise ArgumentError(f"not a state of History: expected True or False for {', '.join(ENDS)}")
        seconds = state["seconds"]
        if not (isinstance(seconds, (int, float)) and isfinite(seconds) and seconds >= 0.0):
            raise ArgumentError(f"not a state of History: seconds is {seconds!r:.40}")
        if state["backend"] not in ("", "eager", *BACKENDS):
            raise ArgumentError(f"not a state of History: backend is {state['backend']!r:.40}")
        if not isinstance(state["fallback"], str):
            raise ArgumentError(f"not a state of History: fallback is {state['fallback']!r:.40}; expected a string")
        for name, numbers in lists.items():
            setattr(self, name, numbers)
        for name in ENDS:
            setattr(self, name, bool(state[name]))
        self.seconds, self.backend = float(seconds), state["backend"]
        self.fallback = "".join([c if c.isprintable() else " " for c in state["fallback"]])

    def plot(self, axes: Any = None) -> Any:
        """Plot the curves with matplotlib, and return the axes.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from wengert.view.plots import plot_history  # the only import of view

        return plot_history(self, axes)

    def __repr__(self) -> str:
        how = [word for word in ENDS if getattr(self, word)]
        where = f" ({self.backend})" if self.backend else ""
        how_long = f"{counted(len(self), 'epoch')} in {self.seconds:.1f} s{where}"
        parts = [how_long, *([self.last()] if self.loss else []), *how]
        return f"History({', '.join(parts)})"

    def last(self, brief: bool = False) -> str:
        """Write the numbers of the last epoch in one line: all, or the first and the last of them."""
        curves = [name for name in ("loss", "accuracy", "val_loss", "val_accuracy") if getattr(self, name)]
        if brief:
            curves[1:-1] = []
        return ", ".join(f"{curve} {self.written(curve)}" for curve in curves)

    def is_stuck(self) -> bool:
        """Return True if the loss is more than half of the first one, and fell by less than 1 % in the second half of
        the epochs, of which there are 20 or more.

        >>> History([4.0, *[3.9] * 19]).is_stuck(), History([4.0, *[0.1] * 19]).is_stuck()
        (True, False)
        """
        middle = len(self) // 2
        return middle >= 10 and self.loss[-1] > max(0.99 * self.loss[middle], 0.5 * self.loss[0])

    def is_fraction(self, curve: str) -> bool:
        """Return True if a curve is the fraction of correct predictions; a metric can be another number."""
        return curve.endswith("accuracy") and all(0.0 <= x <= 1.0 for x in getattr(self, curve))

    def written(self, curve: str, epoch: int = -1) -> str:
        """Write a number of a curve; a fraction of correct predictions as a percentage.

        >>> History([0.5, 0.25], accuracy=[0.75, 1.0]).written("accuracy", 0)
        '75.0 %'
        """
        number = getattr(self, curve)[epoch]
        return f"{100.0 * number:.1f} %" if self.is_fraction(curve) else f"{number:.4g}"


class Progress:
    """Progress on stderr: a bar if tqdm is installed, else a line that is rewritten.

    If stderr is not a terminal, about ten lines are written in a run.

    Args:
        shown: False writes nothing.
        epochs: the number of epochs.
        batches: the number of batches in an epoch.
    """

    def __init__(self, shown: bool, epochs: int, batches: int) -> None:
        self._shown, self._epochs = shown, epochs
        self._bar: Any = None
        try:
            if shown and sys.stderr.isatty():
                form = "{percentage:3.0f}%|{bar}| {remaining} left{postfix}"  # leaves room for numbers in 80 columns
                self._bar = import_module("tqdm").tqdm(total=epochs * batches, bar_format=form, file=sys.stderr)
        except ImportError:
            pass  # the plain line is used

    def batches(self, count: int) -> None:
        """Count batches that are done."""
        if self._bar is not None:
            self._bar.update(count)

    def epoch(self, history: History) -> None:
        """Show the numbers of an epoch that is done."""
        if not self._shown:
            return
        place, is_rewritten = f"epoch {len(history)}/{self._epochs}:", sys.stderr.isatty()
        if self._bar is not None:
            self._bar.set_postfix_str(f"{place} {history.last(brief=True)}")
        elif is_rewritten or len(history) == self._epochs or len(history) % -(-self._epochs // 10) == 0:
            taken = f"{history.seconds:.0f}" if history.seconds >= 10.0 else f"{history.seconds:.2g}"
            line = f"{place} {history.last()}, {taken} s ({history.backend})"
            begin, end = ("\r", " ") if is_rewritten else ("", "\n")
            print(begin + line, end=end, file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Write a line that is not overwritten."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        elif self._shown:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Close the bar, or end the line."""
        if self._bar is not None:
            self._bar.close()
        elif self._shown and sys.stderr.isatty():
            print(file=sys.stderr)
