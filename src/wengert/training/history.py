"""What a training run tells: a `History` of it when it is over, and `Progress` while it goes on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from math import inf, isfinite
from typing import Any

from wengert.compiler.backends import BACKENDS
from wengert.errors import ArgumentError

__all__ = ["History", "Progress"]

CURVES = ("loss", "val_loss", "accuracy", "val_accuracy")
ENDS = ("interrupted", "stopped_early", "diverged")


@dataclass(eq=False, repr=False)
class History:
    """What happened in each epoch of a training run, and how the run ended."""

    loss: list[float] = field(default_factory=list)
    """What was minimised, averaged over the epoch's batches while they were learnt: regularization included."""
    val_loss: list[float] = field(default_factory=list)
    """The mean loss over the validation data after the epoch, without regularization; empty without such data."""
    accuracy: list[float] = field(default_factory=list)
    """The metric, averaged like `loss`: a share from 0 to 1; empty if the loss has no metric of its own."""
    val_accuracy: list[float] = field(default_factory=list)
    """The metric over the validation data after the epoch."""
    seconds: float = 0.0
    """How long the run took."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""
    stopped_early: bool = False
    """Whether patience, or the callback, ended it."""
    diverged: bool = False
    """Whether a loss that was not finite ended it."""
    backend: str = ""
    """What computed it: "eager" for the engine, else the back end of the array program: "numpy"."""
    fallback: str = ""
    """Why it was the engine, where it was not asked for; else empty."""
    best_parameters: list[float] = field(default_factory=list, init=False)
    """The data of the optimizer's parameters after the best epoch, where `patience` asked for them."""

    def __post_init__(self) -> None:
        for name in CURVES:  # which grow, and are not the caller's
            setattr(self, name, [*getattr(self, name)])

    def __len__(self) -> int:
        """The number of epochs that were completed."""
        return len(self.loss)

    @property
    def best_epoch(self) -> int | None:
        """The epoch, from 0, of the least validation loss (of the least loss without validation data)."""
        losses = [number if number == number else inf for number in self.val_loss or self.loss]  # nan is no best
        return losses.index(min(losses)) if losses else None

    def state_dict(self) -> dict[str, Any]:
        """All that it holds, as strings, numbers and lists of numbers: `wengert.checkpoint` saves it.

        >>> History([0.5], seconds=2.0, backend="eager").state_dict()["seconds"]
        2.0
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: [*part] if isinstance(part, list) else part for name, part in parts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` of another gave, or change nothing at all.

        Raises:
            ArgumentError: it is no such state.
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
                raise ArgumentError(f"not a state of History: {name} is of {len(lists[name])} epochs, loss of {epochs}")
        if any(state[name] not in (0, 1) for name in ENDS):
            raise ArgumentError("not a state of History: it does not tell how the run ended")
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
        """Draw the curves with matplotlib; returns its axes.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from wengert.view.plots import plot_history  # the one import of view: a History draws itself

        return plot_history(self, axes)

    def __repr__(self) -> str:
        how = [word for word in ENDS if getattr(self, word)]
        how_long = f"{len(self)} epochs in {self.seconds:.1f} s{f' ({self.backend})' if self.backend else ''}"
        parts = [how_long, *([self.last()] if self.loss else []), *how]
        return f"History({', '.join(parts)})"

    def last(self) -> str:
        """The numbers of the last epoch, in one line."""
        curves = [(name, getattr(self, name)) for name in ("loss", "accuracy", "val_loss", "val_accuracy")]
        return ", ".join(f"{name} {numbers[-1]:.4g}" for name, numbers in curves if numbers)


class Progress:
    """Progress on stderr: a bar of tqdm's where it is installed, else a line that is rewritten.

    Where stderr is no terminal a line is written about ten times in a run.

    Args:
        shown: whether anything is written.
        epochs: how many there will be.
        batches: how many each of them has.
    """

    def __init__(self, shown: bool, epochs: int, batches: int) -> None:
        self._shown, self._epochs = shown, epochs
        self._bar: Any = None
        try:
            if shown and sys.stderr.isatty():
                form = "{percentage:3.0f}%|{bar}| {remaining} left{postfix}"  # room for the numbers on 80 columns
                self._bar = import_module("tqdm").tqdm(total=epochs * batches, bar_format=form, file=sys.stderr)
        except ImportError:
            pass  # the plain line does

    def batches(self, count: int) -> None:
        """So many batches more are done."""
        if self._bar is not None:
            self._bar.update(count)

    def epoch(self, history: History) -> None:
        """One epoch more is done."""
        text = f"epoch {len(history)}/{self._epochs}: {history.last()}"
        taken = f"{history.seconds:.0f}" if history.seconds >= 10.0 else f"{history.seconds:.2g}"
        line = f"{text}, {taken} s ({history.backend})"
        if self._bar is not None:
            self._bar.set_postfix_str(f"{history.backend} {text}")
        elif self._shown and sys.stderr.isatty():
            print(f"\r{line}", end=" ", file=sys.stderr, flush=True)
        elif self._shown and (len(history) == self._epochs or len(history) % -(-self._epochs // 10) == 0):
            print(line, file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Write a line that stays."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        elif self._shown:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """The run is over."""
        if self._bar is not None:
            self._bar.close()
        elif self._shown and sys.stderr.isatty():
            print(file=sys.stderr)
