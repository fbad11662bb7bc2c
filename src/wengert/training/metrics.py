"""The metric of each loss: the fraction of correct predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.losses import binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, hinge
from wengert.training.correct import Greatest, SameSide

__all__ = ["METRICS", "Metric"]

Metric = Callable[[Any, Any], float]

METRICS: dict[Any, Metric] = {
    cross_entropy: Greatest(),
    hinge: SameSide(0.0, 0.0),
    binary_cross_entropy: SameSide(0.5, 0.5),
    binary_cross_entropy_with_logits: SameSide(0.0, 0.5),
}
