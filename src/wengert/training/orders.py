"""The orders in which examples are learnt, epoch after epoch."""

from __future__ import annotations

import random
import sys
from array import array
from typing import Any

from wengert.training.task import Places

__all__ = ["Orders"]


class Orders:
    """The order of the examples in each epoch of a run, as numbers of examples.

    Args:
        count: how many examples there are.
        shuffle: whether each epoch has an order of its own; else it is that in which they stand.
        seed: what decides the orders; None leaves it to Python's module `random`.
        passed: how many epochs came before, whose orders are passed over where there is a seed.
    """

    def __init__(self, count: int, shuffle: bool, seed: int | None, passed: int) -> None:
        self.count: int = count
        self.shuffle: bool = shuffle
        self.draw: Any = random if seed is None else random.Random(seed)
        self.following: Places | None = None  # the next one, if it is prepared
        for _ in range(passed if seed is not None and shuffle else 0):
            self._keys()

    def next(self, arrays: bool) -> Places:
        """The order of the next epoch; as an array if there is NumPy."""
        if not self.shuffle:
            return range(self.count)
        order, self.following = self.following, None
        return self._drawn(arrays) if order is None else order

    def prepare(self) -> None:
        """Draw the order of the next epoch while something else computes this one: as an array, and not from numbers
        that are the user's too, who may draw some before it begins.
        """
        if self.shuffle and self.following is None and self.draw is not random:
            self.following = self._drawn(True)

    def _drawn(self, arrays: bool) -> Places:
        keys = self._keys()
        if not arrays:
            return sorted(range(self.count), key=keys.__getitem__)
        import numpy as np

        drawn: Any = np.frombuffer(keys, np.uint64)
        # By 16 bits it is a radix sort, and what is nearly in order is soon merged: 7 ns an example for 50.
        rough = (drawn >> np.uint64(48)).astype(np.uint16).argsort(kind="stable")
        return rough[drawn[rough].argsort(kind="stable")]  # type: ignore[no-any-return]

    def _keys(self) -> array[int]:
        """A random number for each example: their order is the new order. It takes a tenth of the time of a shuffle."""
        keys = array("Q", self.draw.randbytes(8 * self.count))
        if sys.byteorder == "big":
            keys.byteswap()
        return keys
