"""A training task, and the types of its parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from wengert.engine import Value
from wengert.training.metrics import Metric

__all__ = ["CHUNK", "Example", "Loss", "Model", "Outcome", "Places", "RefusedError", "Task", "same_random_numbers"]

CHUNK = 128  # the number of examples whose graphs are alive at once; more would cost memory and gain no time

Model = Callable[[Any], Any]
Loss = Callable[[Any, Any], Value]
Example = tuple[Any, Any]
Outcome = tuple[float, ...]  # a mean loss, then the sum of the metric if there is one
Places = Sequence[int]  # indices of examples


class RefusedError(Exception):
    """The task cannot be compiled; the message says why."""


class Task(NamedTuple):
    """A model, its loss and its data."""

    model: Model  # (row) -> prediction
    loss: Loss  # (prediction, target) -> Value
    metric: Metric | None  # (prediction, target) -> number
    regularization: Callable[[], Value] | None  # called for each batch, unless it is compiled
    examples: list[Example]  # (row, target) pairs for training
    held_out: list[Example]  # (row, target) pairs for validation


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """Restore the state of the module `random` after a block, such as a trial run of a model with dropout."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
