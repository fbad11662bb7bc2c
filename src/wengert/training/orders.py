"""The orders in which examples are learnt, epoch after epoch."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
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
        self.own: Any = random if seed is None else random.Random(seed)
        self.draw: Callable[[int], bytes] = self.own.randbytes
        self.following: Places | None = None  # the next one, if it is prepared
        for _ in range(passed if seed is not None and shuffle else 0):
            self.draw(8 * count)

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
        if self.shuffle and self.following is None and self.own is not random:
            self.following = self._drawn(True)

    def _drawn(self, arrays: bool) -> Places:
        """By a random number for each example, the order of which is the new order: a tenth of a shuffle's time."""
        if not arrays:
            keys = struct.unpack(f"<{self.count}Q", self.draw(8 * self.count))
            return sorted(range(self.count), key=keys.__getitem__)
        import numpy as np

        if isinstance(self.own, random.Random):  # the same numbers from NumPy, in a third of the time
            *numbers, place = self.own.getstate()[1]
            self.own = np.random.RandomState()
            self.own.set_state(("MT19937", numbers, place))
            self.draw = self.own.bytes
        drawn: Any = np.frombuffer(self.draw(8 * self.count), "<u8")
        # By 16 bits it is a radix sort, and what is nearly in order is soon merged: 7 ns an example for 50.
        rough = (drawn >> np.uint64(48)).astype(np.uint16).argsort(kind="stable")
        return rough[drawn[rough].argsort(kind="stable")]  # type: ignore[no-any-return]
