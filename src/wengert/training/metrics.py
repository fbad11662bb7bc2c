"""The metric of each loss: the fraction of correct predictions, for one example and for arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.engine import Value
from wengert.losses import binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, hinge

__all__ = ["METRICS", "Metric", "Right"]

Metric = Callable[[Any, Any], float]


class Right:
    """A metric that also works on arrays of predictions and targets, one example per row."""

    def __call__(self, prediction: Any, target: Any) -> float:
        """Return 1 if a prediction is correct, else 0; for a list the fraction of correct ones."""
        raise NotImplementedError

    def rows(self, predictions: Any, targets: Any) -> Any:
        """Return the metric of each row, as an array of the same library."""
        raise NotImplementedError

    def count(self, predictions: Any, targets: Any) -> float:
        """Return the sum of the metric over the rows."""
        return float(self.rows(predictions, targets).sum())


class Greatest(Right):
    """Correct if the greatest logit is the target's."""

    def __call__(self, prediction: Sequence[Value], target: int) -> float:
        return max(range(len(prediction)), key=prediction.__getitem__) == target

    def rows(self, predictions: Any, targets: Any) -> Any:
        return predictions.argmax(1) == targets


class SameSide(Right):
    """Correct if prediction and target are on the same side of their thresholds."""

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
