"""The order of the examples in each epoch."""

from __future__ import annotations

import random
import struct
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
        self.state: Any = None  # that of `own`, in an array, once arrays are drawn
        self.following: Places | None = None  # the next order, if it is prepared
        for _ in range(passed if seed is not None and shuffle else 0):
            self.own.randbytes(8 * count)

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
        """Sort the examples by random numbers, which takes a tenth of the time of `random.shuffle`."""
        if self.state is None and not arrays:
            keys = struct.unpack(f"<{self.count}Q", self.own.randbytes(8 * self.count))
            return sorted(range(self.count), key=keys.__getitem__)
        import numpy as np

        from wengert.training.batches import drawn, ordered

        if self.own is random:
            order = ordered(np.frombuffer(random.randbytes(8 * self.count), "<u8"))
        else:
            if self.state is None:
                self.state = np.array(self.own.getstate()[1], np.uint32)
            order = ordered(drawn(self.state, self.count))
        return order if arrays else order.tolist()  # type: ignore[no-any-return]
