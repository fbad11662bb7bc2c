"""The order of the examples in each epoch."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

from wengert.training.task import Places

__all__ = ["Orders"]


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
        self.draw: Callable[[int], bytes] = self.own.randbytes
        self.following: Places | None = None  # the next order, if it is prepared
        for _ in range(passed if seed is not None and shuffle else 0):
            self.draw(4 * (count - 1))

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
        """Shuffle the examples by the algorithm of Fisher and Yates, a random number for each place but one."""
        if not arrays:
            order = list(range(self.count))
            numbers = struct.iter_unpack("<I", self.draw(4 * (self.count - 1)))
            for place, (number,) in zip(reversed(range(1, self.count)), numbers, strict=True):
                other = number * (place + 1) >> 32
                order[place], order[other] = order[other], order[place]
            return order
        import numpy as np

        from wengert.training.batches import shuffle

        if isinstance(self.own, random.Random):  # NumPy draws the same numbers in a fifth of the time
            *words, place = self.own.getstate()[1]
            self.own = np.random.MT19937()
            self.own.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": place}}
        places: Any = np.arange(self.count, dtype=np.int64)
        if self.own is random:
            drawn: Any = np.frombuffer(self.draw(4 * (self.count - 1)), "<u4").astype(np.uint64)
        else:
            drawn = self.own.random_raw(self.count - 1)
        shuffle(memoryview(places), memoryview(drawn))
        return places  # type: ignore[no-any-return]
