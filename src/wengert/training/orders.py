"""The order of the examples in each epoch.

Like the engine, this file runs as plain Python or compiled by Cython, with `orders.pxd`.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from typing import Any

from wengert.training.task import Places

__all__ = ["Orders", "shuffle"]

ALL = (1 << 64) - 1  # keeps a Python int to 64 bits, as a C integer is by itself


def shuffle(order: Any, state: Any) -> None:
    """Shuffle by the algorithm of Fisher and Yates, from the last place on, with the numbers of SplitMix64 (Steele, Lea
    and Flood 2014) from a state of 64 bits.
    """
    step, first, second = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
    for last in range(len(order) - 1, 0, -1):
        state = (state + step) & ALL
        mixed = ((state ^ (state >> 30)) * first) & ALL
        mixed = ((mixed ^ (mixed >> 27)) * second) & ALL
        other = (((mixed ^ (mixed >> 31)) >> 32) * (last + 1)) >> 32
        order[last], order[other] = order[other], order[last]


class Orders:
    """The order of the examples in each epoch of a run, as indices of examples.

    Args:
        count: the number of examples.
        shuffle: True draws a new order for each epoch; False keeps the order of the data.
        seed: makes the orders reproducible; None uses Python's module `random`.
        passed: the number of earlier epochs, whose orders are skipped if there is a seed.
    """

    def __init__(self, count: int, shuffle: bool, seed: int | None, passed: int) -> None:
        self.count: int = count
        self.shuffle: bool = shuffle
        self.own: Any = random if seed is None else random.Random(seed)
        self.draw: Callable[[int], int] = self.own.getrandbits
        self.following: Places | None = None  # the next order, if it is prepared
        for _ in range(passed if seed is not None and shuffle else 0):
            self.draw(64)

    def next(self, arrays: bool) -> Places:
        """Return the order of the next epoch; with `arrays`, as a NumPy array if it is shuffled."""
        if not self.shuffle:
            return range(self.count)
        order, self.following = self.following, None
        return self._drawn(arrays) if order is None else order

    def prepare(self) -> None:
        """Draw the order of the next epoch in advance, while a device computes; not from the module `random`, from
        which the user may draw numbers before the epoch begins.
        """
        if self.shuffle and self.following is None and self.own is not random:
            self.following = self._drawn(True)

    def _drawn(self, arrays: bool) -> Places:
        """Draw an order: a random number, from which the others follow."""
        if arrays:
            import numpy as np

            order: Any = np.arange(self.count, dtype=np.int64)
        else:
            order = array("q", range(self.count))
        shuffle(memoryview(order), self.draw(64))
        return order  # type: ignore[no-any-return]
