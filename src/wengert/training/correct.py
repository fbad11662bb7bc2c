"""Which predictions are correct: each rule for one example, for arrays of any library, and for numbers in memory.

Like the engine, this file runs as plain Python or compiled by Cython, with `correct.pxd`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.compiler.call import memory
from wengert.engine import Value
from wengert.ops.ieee import Int, cython

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["Correct"]


@cython.cclass
class Correct:
    """A metric that also counts the correct predictions of many examples at once, one row each."""

    def __call__(self, prediction: Any, target: Any) -> float:
        """Return 1 if a prediction is correct, else 0; for a list the fraction of correct ones."""
        raise NotImplementedError

    def rows(self, predictions: Any, targets: Any) -> Any:
        """Return the metric of each row, as an array of the same library."""
        raise NotImplementedError

    def count(self, predictions: Any, targets: Any) -> float:
        """Return the sum of the metric over the rows."""
        return float(self.rows(predictions, targets).sum())

    def count_at(self, predictions: Int, width: Int, targets: Int, count: Int) -> float:
        """Return the same for rows of doubles at addresses; see `fits`."""
        raise NotImplementedError

    def fits(self, cell: tuple[int, ...], target: tuple[int, ...]) -> bool:
        """Return True if `count_at` takes predictions and targets of these shapes."""
        return False


@cython.cclass
class Greatest(Correct):
    """Correct if the greatest logit is the target's."""

    def __call__(self, prediction: Sequence[Value], target: int) -> float:
        return max(range(len(prediction)), key=prediction.__getitem__) == target

    def rows(self, predictions: Any, targets: Any) -> Any:
        return predictions.argmax(1) == targets

    def count_at(self, predictions: Int, width: Int, targets: Int, count: Int) -> float:
        correct = 0
        for n in range(count):
            place, greatest = 0, memory.get(predictions)
            for k in range(1, width):
                if greatest != greatest:  # the first nan is the greatest, as by `argmax`
                    break
                x = memory.get(predictions + 8 * k)
                if not x <= greatest:
                    place, greatest = k, x
            correct += place == memory.get(targets + 8 * n)
            predictions += 8 * width
        return correct

    def fits(self, cell: tuple[int, ...], target: tuple[int, ...]) -> bool:
        return len(cell) == 1 and cell[0] > 0 and target == ()


@cython.cclass
class SameSide(Correct):
    """Correct if prediction and target are on the same side of their thresholds."""

    def __init__(self, threshold: float, target_threshold: float) -> None:
        self.threshold: float = threshold
        self.target_threshold: float = target_threshold

    def __call__(self, prediction: Any, target: Any) -> float:
        if not hasattr(prediction, "__len__"):
            return float((prediction > self.threshold) == (target > self.target_threshold))
        correct = [self(p, t) for p, t in zip(prediction, target, strict=True)]
        return sum(correct) / len(correct)

    def rows(self, predictions: Any, targets: Any) -> Any:
        same = (predictions > self.threshold) == (targets > self.target_threshold)
        return same if same.ndim == 1 else same.reshape(len(same), -1).mean(1)

    def count(self, predictions: Any, targets: Any) -> float:
        same = (predictions > self.threshold) == (targets > self.target_threshold)
        return float(same.sum() * len(same) / max(1, same.size))

    def count_at(self, predictions: Int, width: Int, targets: Int, count: Int) -> float:
        same = memory.same_side(predictions, self.threshold, targets, self.target_threshold, count * width)
        return 1.0 * same / width  # 1.0, since these are C integers

    def fits(self, cell: tuple[int, ...], target: tuple[int, ...]) -> bool:
        return cell == target and 0 not in cell
