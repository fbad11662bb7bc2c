"""What is to be learnt, and the words in which it is spoken of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from wengert.engine import Value
from wengert.training.metrics import Metric

__all__ = ["CHUNK", "Example", "Loss", "Model", "Outcome", "Places", "RefusedError", "Task", "same_random_numbers"]

CHUNK = 128  # how many examples' graphs are alive at once; more would cost memory and gain no time

Model = Callable[[Any], Any]
Loss = Callable[[Any, Any], Value]
Example = tuple[Any, Any]
Outcome = tuple[float, ...]  # a mean loss, then the sum of the metric where there is one
Places = Sequence[int]  # numbers of examples


class RefusedError(Exception):
    """Why there is no array program."""


class Task(NamedTuple):
    """What is to be learnt."""

    model: Model  # called with a row, gives a prediction
    loss: Loss  # called with a prediction and a target, gives a Value
    metric: Metric | None  # called with the same, gives a number
    regularization: Callable[[], Value] | None  # called once a batch, gives a Value
    examples: list[Example]  # (row, target) pairs to learn from
    held_out: list[Example]  # such pairs that are only measured


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """A model that draws random numbers draws the same ones after the block, which is an attempt."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
