"""The processes that train together, each with its share of the examples; most often this one alone.

They are those of `jax.distributed.initialize`. What they tell each other is little: numbers that each of them gives,
and all of them get, in one order, so that all come to the same decisions and the same bits.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

from wengert.errors import ArgumentError
from wengert.training.task import Outcome

__all__ = ["Hosts", "is_first"]


def is_first() -> bool:
    """Whether this process is the first of those that `jax.distributed.initialize` has brought together, or alone."""
    jax = sys.modules.get("jax")
    return jax is None or not jax.distributed.is_initialized() or jax.process_index() == 0


class Hosts:
    """This process among those that train together.

    Args:
        counts: how many examples each of them has.
        here: which of them this is.
        exchange: gives all of them the numbers of each, a row for each process; None if there is one.
    """

    def __init__(
        self, counts: Sequence[int], here: int = 0, exchange: Callable[[Sequence[float]], Any] | None = None
    ) -> None:
        self.counts: Sequence[int] = counts
        self.here: int = here
        self.exchange: Callable[[Sequence[float]], Any] | None = exchange
        self.total: int = sum(counts)
        self.several: bool = exchange is not None
        self._batches: dict[int, tuple[list[list[int]], list[float]]] = {}  # by their size

    def batches(self, size: int) -> tuple[list[list[int]], list[float]]:
        """Where the batches of an epoch begin among the examples of each process, with their end; and what share of all
        examples each batch is. Each process has its share of each batch.

        Raises:
            ArgumentError: there are fewer examples in a batch than processes.
        """
        if self.several and size < len(self.counts):
            raise ArgumentError(f"batch_size is {size}; expected at least one example for each of the processes")
        if size not in self._batches:
            ends = [*range(0, self.total, size), self.total]
            cuts = [[count * end // self.total for end in ends] for count in self.counts]
            sizes = zip(*[[end - start for start, end in pairwise(at)] for at in cuts], strict=True)
            self._batches[size] = cuts, [sum(parts) / self.total for parts in sizes]
        return self._batches[size]

    def least(self, steps: int, mark: int = 0) -> int:
        """The least of the numbers of steps that each process can make at once; 0 if they are not marked alike."""
        if self.exchange is None:
            return steps
        rows = self.exchange([steps, mark])
        return int(min(rows[:, 0])) if len(set(rows[:, 1])) == 1 else 0

    def any(self, wish: bool) -> bool:
        """Whether any process wishes something."""
        return wish if self.exchange is None else bool(max(self.exchange([wish])[:, 0]))

    def mean(self, numbers: Sequence[float], count: int) -> Sequence[float]:
        """The mean of some numbers over the examples of all processes, each of which gives its own and their count."""
        if self.exchange is None:
            return numbers
        rows = self.exchange([count, *(numbers if count else [0.0] * len(numbers))])
        made: Sequence[float] = (rows[:, 0] / rows[:, 0].sum() @ rows[:, 1:]).tolist()
        return made

    def step(self, outcome: Outcome, count: int, parameters: Sequence[Any]) -> Outcome:
        """The outcome of a batch of which this process has learnt so many examples, and the parameters' gradients."""
        if self.exchange is None:
            return outcome
        numbers = self.mean([outcome[0], *[p.grad for p in parameters]], count)
        for p, gradient in zip(parameters, numbers[1:], strict=True):
            p.grad = gradient
        return (numbers[0], *[float(self.exchange([score])[:, 0].sum()) for score in outcome[1:]])

    def agree(self, numbers: Sequence[float]) -> None:
        """See that all processes begin with the same numbers.

        Raises:
            ArgumentError: they have not.
        """
        if self.exchange is None:
            return
        rows = self.exchange([len(numbers), crc32(array("d", numbers))])
        if (rows != rows[0]).any():
            raise ArgumentError(
                "the processes differ in what they begin with: give each of them the same arguments but for the data, "
                "and a model, an optimizer and a history of the same numbers, by a seed or a checkpoint"
            )
