"""What counts as right: the metric that goes with a loss, of one prediction and of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.engine import Value
from wengert.losses import binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, hinge

__all__ = ["METRICS", "Metric", "Right"]

Metric = Callable[[Any, Any], float]


class Right:
    """A metric that also counts over arrays of predictions and targets, an example in each row."""

    def __call__(self, prediction: Any, target: Any) -> float:
        """Whether one prediction is right; for a list of them, the share that is."""
        raise NotImplementedError

    def rows(self, predictions: Any, targets: Any) -> Any:
        """The same of each row, in an array of the library that these are of."""
        raise NotImplementedError

    def count(self, predictions: Any, targets: Any) -> float:
        """The same, summed over the rows."""
        return float(self.rows(predictions, targets).sum())


class Greatest(Right):
    """Whether the greatest logit is the target's."""

    def __call__(self, prediction: Sequence[Value], target: int) -> float:
        return max(range(len(prediction)), key=prediction.__getitem__) == target

    def rows(self, predictions: Any, targets: Any) -> Any:
        return predictions.argmax(1) == targets


class SameSide(Right):
    """Whether prediction and target lie on the same side, each of its own cut; for lists, how many do."""

    def __init__(self, cut: float, target_cut: float) -> None:
        self.cut: float = cut
        self.target_cut: float = target_cut

    def __call__(self, prediction: Any, target: Any) -> float:
        if not hasattr(prediction, "__len__"):
            return float((prediction > self.cut) == (target > self.target_cut))
        right = [self(p, t) for p, t in zip(prediction, target, strict=True)]
        return sum(right) / len(right)

    def rows(self, predictions: Any, targets: Any) -> Any:
        same = (predictions > self.cut) == (targets > self.target_cut)
        return same if same.ndim == 1 else same.reshape(len(same), -1).mean(1)


METRICS: dict[Any, Metric] = {
    cross_entropy: Greatest(),
    hinge: SameSide(0.0, 0.0),
    binary_cross_entropy: SameSide(0.5, 0.5),
    binary_cross_entropy_with_logits: SameSide(0.0, 0.5),
}
