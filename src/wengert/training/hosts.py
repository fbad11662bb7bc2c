"""The processes that train together, each with its share of the examples; usually there is only one.

They are those of `jax.distributed.initialize`. They exchange a few numbers, which all processes get in the same order,
so that all make the same decisions and get the same bits.
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
    """Return True if this is the first process of `jax.distributed.initialize`, or the only process."""
    jax = sys.modules.get("jax")
    return jax is None or not jax.distributed.is_initialized() or jax.process_index() == 0


class Hosts:
    """This process among those that train together.

    Args:
        counts: the number of examples of each process.
        here: the index of this process.
        exchange: gathers numbers from all processes, one row each; None if there is only one.
    """

    def __init__(
        self, counts: Sequence[int], here: int = 0, exchange: Callable[[Sequence[float]], Any] | None = None
    ) -> None:
        self.counts: Sequence[int] = counts
        self.here: int = here
        self.exchange: Callable[[Sequence[float]], Any] | None = exchange
        self.total: int = sum(counts)
        self.several: bool = exchange is not None
        self._batches: dict[int, tuple[list[list[int]], list[float]]] = {}  # by size

    def batches(self, size: int) -> tuple[list[list[int]], list[float]]:
        """Return where the batches of an epoch begin and end in the examples of each process, which all have a share of
        each batch, and each batch's fraction of all examples.

        Raises:
            ArgumentError: a batch has fewer examples than there are processes.
        """
        if self.several and size < len(self.counts):
            raise ArgumentError(f"batch_size is {size}; expected at least one example for each process")
        if size not in self._batches:
            ends = [*range(0, self.total, size), self.total]
            cuts = [[count * end // self.total for end in ends] for count in self.counts]
            sizes = zip(*[[end - start for start, end in pairwise(at)] for at in cuts], strict=True)
            self._batches[size] = cuts, [sum(parts) / self.total for parts in sizes]
        return self._batches[size]

    def least(self, steps: int, mark: int = 0) -> int:
        """Return the smallest number of steps that a process can make; 0 if the marks of their programs differ."""
        if self.exchange is None:
            return steps
        rows = self.exchange([steps, mark])
        return int(min(rows[:, 0])) if len(set(rows[:, 1])) == 1 else 0

    def any(self, wish: bool) -> bool:
        """Return True if `wish` is True in any process."""
        return wish if self.exchange is None else bool(max(self.exchange([wish])[:, 0]))

    def mean(self, numbers: Sequence[float], count: int) -> Sequence[float]:
        """Return the mean of numbers over the examples of all processes, from each process's own means and count."""
        if self.exchange is None:
            return numbers
        rows = self.exchange([count, *(numbers if count else [0.0] * len(numbers))])
        means: Sequence[float] = (rows[:, 0] / rows[:, 0].sum() @ rows[:, 1:]).tolist()
        return means

    def step(self, outcome: Outcome, count: int, parameters: Sequence[Any]) -> Outcome:
        """Combine the outcomes and gradients of all processes for a batch; this one computed `count` examples of it."""
        if self.exchange is None:
            return outcome
        numbers = self.mean([outcome[0], *[p.grad for p in parameters]], count)
        for p, gradient in zip(parameters, numbers[1:], strict=True):
            p.grad = gradient
        return (numbers[0], *[float(self.exchange([score])[:, 0].sum()) for score in outcome[1:]])

    def agree(self, numbers: Sequence[float]) -> None:
        """Check that all processes begin with the same numbers.

        Raises:
            ArgumentError: they do not.
        """
        if self.exchange is None:
            return
        rows = self.exchange([len(numbers), crc32(array("d", numbers))])
        if (rows != rows[0]).any():
            raise ArgumentError(
                "the processes begin with different numbers: pass each of them the same arguments except for the data, "
                "and equal models, optimizers and histories, made by a seed or a checkpoint"
            )
