"""Shortens a long loop before it is lifted: most iterations are left out, and the loop found is lengthened by them.

Iterations are alike if each instruction has the operation of its counterpart an iteration before, and reads the
counterparts of its operands, or the same constants and numbers from before the loop. What lifting decides about a
number depends on its neighbours and its level only, so it decides alike for all iterations once levels grow evenly by
iteration. Any other recording is lifted whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["UNIT", "Cut", "Whole", "cut_of"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
LEAST = 1 << 12  # instructions: less takes no time
KEPT = 96  # iterations that stay, and up to UNIT - 1 more:
UNIT = 12  # a multiple of it is left out, as one iteration of the loop that is found may span several recorded ones
BLOCK = 1 << 15  # numbers that are compared at once, as they fit in the processor's cache
SAMPLE, TRIES = 64, 16  # instructions by which the next iteration is found, and how often


class Whole(Exception):  # noqa: N818  (no error)
    """A recording must be lifted whole."""


class Cut(NamedTuple):
    """Where iterations of a loop are left out."""

    low: int  # where the first iteration begins
    at: int  # the first instruction that is left out, and the first one behind them in the short recording
    high: int  # where the last iteration ends in the short recording
    size: int  # instructions of an iteration
    iterations: int  # left out
    near: int  # instructions on either side of the cut in which everything must be regular

    def apply(self, codes: Ints, starts: Ints, operands: Ints, constants: Any) -> tuple[Ints, Ints, Ints, Any, Ints]:
        """Return the short recording, and the new place of each instruction; for one left out an earlier one's."""
        out = self.iterations * self.size
        end = self.at + out
        first, last = starts[self.at], starts[end]
        later = operands[last:]
        operands = np.concatenate([operands[:first], np.where(later >= self.low, later - out, later)])
        fixed = operands < 0
        constants = constants[-1 - operands[fixed]]
        operands[fixed] = -1 - np.arange(len(constants))
        moved = np.arange(len(codes))
        moved[end:] -= out
        moved[self.at : end].reshape(self.iterations, self.size)[:] = moved[self.at - self.size : self.at]
        codes = np.concatenate([codes[: self.at], codes[end:]])
        return codes, np.concatenate([starts[: self.at], starts[end:] - (last - first)]), operands, constants, moved

    def check(self, level: Ints, computed: Any, top: Ints) -> None:
        """Raise Whole unless levels grow evenly around the cut, no number from outside the loop has a level of the
        iterations next to the cut, and no sum absorbs the sums of many iterations (see `top` in `Sums`).
        """
        begin, end, place = self.at - self.near, self.at + self.near, np.arange(len(computed))
        flags, levels = computed[begin:end].reshape(-1, self.size), level[begin:end].reshape(-1, self.size)
        growth = levels[UNIT:, flags[0]] - levels[:-UNIT, flags[0]]
        is_even = growth.size and growth[0, 0] > 0 and (growth == growth[0, 0]).all() and (flags == flags[0]).all()
        if not is_even or (top[begin:end] - place[begin:end] > self.near).any():
            raise Whole
        around = slice(self.at - self.size, self.at + self.size)
        low, high = level[around][computed[around]].min(), level[around][computed[around]].max()
        others = level[: len(computed)][computed & ((place < self.low) | (place >= self.high))]
        if ((others >= low) & (others <= high)).any():
            raise Whole


def cut_of(codes: Ints, starts: Ints, operands: Ints, constants: Any, wanted: Ints) -> Cut | None:
    """Return where iterations can be left out of a recording; None if its middle is no long loop."""
    middle, place = len(codes) // 2, 0  # `place` counts bytes, of which an operation has two
    text = codes[middle : middle + len(codes) // (2 * KEPT) + SAMPLE].astype(np.uint16).tobytes()
    for _ in range(TRIES if len(codes) >= LEAST else 0):  # parts of an iteration may have the same operations
        place = text.find(text[: 2 * SAMPLE], place + 1)
        cut = None if place < 0 or place % 2 else _cut(codes, starts, operands, constants, wanted, middle, place // 2)
        if cut is not None or place < 0:
            return cut
    return None


def _cut(codes: Ints, starts: Ints, operands: Ints, constants: Any, wanted: Ints, middle: int, size: int) -> Cut | None:
    """Return the cut of the loop whose iterations have `size` instructions, one of which begins in the middle."""
    begin, here = middle % size, middle // size
    # How the operands move from this iteration to the next: not at all, or by one. What else they do is no loop.
    first, second, third = starts[middle : middle + 2 * size + 1 : size].tolist()
    read, count = operands[first:second], second - first
    fixed, bits = read < 0, constants.view(np.int64)
    constant_bits = bits[-1 - read[fixed]]
    step = np.where(fixed, 0, operands[second:third] - read) if third - second == count else np.array([-1])
    if not np.isin(step, (0, size)).all() or not codes[middle : middle + size].all():
        return None
    # The iterations around it that have the same operations with as many operands, then of them those that are alike.
    rows = (len(codes) - begin) // size
    done, has = [x[begin : begin + rows * size].reshape(rows, size) for x in (codes, np.diff(starts))]
    start, end = _around(lambda at: ((done[at] == done[here]) & (has[at] == has[here])).all(1), here, rows, size)
    reads = operands[starts[begin + start * size] : starts[begin + end * size]].reshape(end - start, count)

    def moved(at: slice) -> Any:
        numbers = reads[1:][at][:, fixed]
        same = ((reads[1:][at] - reads[:-1][at] == step) | fixed).all(1) & (numbers < 0).all(1)
        return same & (bits[-1 - np.minimum(numbers, -1)] == constant_bits).all(1)

    first, last = [start + n for n in _around(moved, here - start, end - start - 1, count)]
    outside = read[(step == 0) & ~fixed]  # was there before the first iteration
    first = max(first, -((begin - 1 - int(outside.max(initial=-1))) // size))
    total = last + 1 - first
    stay = KEPT + (total - KEPT) % UNIT
    low, near = begin + first * size, stay // 4 * size
    cut = Cut(low, low + stay // 2 * size, low + stay * size, size, total - stay, near)
    # What comes later reads the last iterations only, and an iteration those just before it.
    late = np.concatenate([operands[starts[low + total * size] :], wanted])
    inside = (late >= low) & (late < cut.at + cut.iterations * size + near)
    is_far = (np.repeat(middle + np.arange(size), has[here]) - read)[step != 0].max(initial=0) > near // 2
    return None if cut.iterations < stay or is_far or inside.any() else cut


def _around(test: Callable[[slice], Any], here: int, rows: int, width: int) -> tuple[int, int]:
    """Return the range of rows around one of them that pass a test; the range ends with it if it does not."""
    height = max(BLOCK // width, 1)
    fails = [n + np.flatnonzero(~test(slice(n, n + height))) for n in range(0, rows, height)]
    others = np.concatenate([[-1], *fails, [rows]]).astype(np.int64)
    place = int(np.searchsorted(others, here))
    return int(others[place - 1]) + 1, int(others[place])
