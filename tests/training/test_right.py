"""The correct predictions of an epoch are those of the metric, one by one, whatever runs the steps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from wengert import losses
from wengert.compiler.backends import BACKENDS, default_backend
from wengert.engine import Value
from wengert.optim import SGD
from wengert.training import fit
from wengert.training.metrics import METRICS

pytest.importorskip("numpy")

AVAILABLE = [name for name in ("numpy", "native") if BACKENDS[name].is_available()]
NUMBERS = [-1.5, -0.0, 0.0, 0.5, 0.5, 2.0]  # some are equal, and some are thresholds


def trained(model: Callable[[Any], Any], loss: Any, metric: Any, Y: list[Any], size: int, backend: str) -> list[float]:
    """The accuracy of two epochs that change no parameter."""
    rng = random.Random(3)
    X = [[rng.choice(NUMBERS) for _ in range(3)] for _ in Y]
    optimizer = SGD([W, *TABLE], 0.0)
    made = fit(model, loss, X, Y, optimizer, 2, size, metric=metric, seed=1, progress=False, backend=backend)
    assert made.backend == backend
    return made.accuracy


W = Value(1.0)
TABLE = [Value(1.0), Value(2.0), Value(3.0)]


def logits(x: Any) -> list[Value]:
    return [W * number for number in x]


def with_nan(x: Any) -> list[Value]:
    return [(W * x[0]).log(), (W * x[1]).log(), W * x[2]]


def of_the_class(scores: Any, y: Any) -> Value:
    return TABLE[y] * W


@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("size", [7, 50])
def test_the_first_greatest_logit(backend: str, size: int) -> None:
    Y = [n % 3 for n in range(50)]
    want = trained(logits, losses.cross_entropy, "auto", Y, size, "eager")
    assert trained(logits, losses.cross_entropy, "auto", Y, size, backend) == want
    assert 0.2 < want[0] < 0.9


@pytest.mark.parametrize("backend", AVAILABLE)
def test_a_class_counted_from_the_end_is_never_predicted(backend: str) -> None:
    def loss(scores: Any, y: Any) -> Value:
        return -scores[y] + W

    accuracy, Y = METRICS[losses.cross_entropy], [n % 3 - 1 for n in range(48)]
    want = trained(logits, loss, accuracy, Y, 16, "eager")
    assert trained(logits, loss, accuracy, Y, 16, backend) == want
    assert want[0] < 2 / 3


@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (losses.hinge, [-1.0, 1.0]),
        (losses.hinge, [-1, 1]),
        (losses.binary_cross_entropy_with_logits, [0.0, 1.0]),
        (losses.binary_cross_entropy_with_logits, [0.0, 0.5, 0.75]),
    ],
)
def test_the_side_of_a_threshold(loss: Any, targets: list[float], backend: str) -> None:
    Y = [targets[n % len(targets)] for n in range(60)]
    want = trained(lambda x: W * x[0], loss, "auto", Y, 16, "eager")
    assert trained(lambda x: W * x[0], loss, "auto", Y, 16, backend) == want
    assert 0.1 < want[0] < 0.9


@pytest.mark.parametrize("size", range(1, 10))
def test_the_side_of_a_threshold_in_batches_of_each_size(size: int) -> None:
    Y = [(-1.0, 1.0)[n % 2] for n in range(27)]
    want = trained(lambda x: W * x[0], losses.hinge, "auto", Y, size, "eager")
    assert trained(lambda x: W * x[0], losses.hinge, "auto", Y, size, default_backend().name) == want


@pytest.mark.parametrize("backend", AVAILABLE)
def test_several_predictions_with_thresholds(backend: str) -> None:
    def loss(scores: Any, y: Any) -> Value:
        return sum((losses.hinge(score, target) for score, target in zip(scores, y, strict=True)), Value(0.0))

    accuracy, rng = METRICS[losses.hinge], random.Random(1)
    Y = [[rng.choice([-1.0, 1.0]) for _ in range(3)] for _ in range(30)]
    want = trained(logits, loss, accuracy, Y, 8, "eager")
    assert trained(logits, loss, accuracy, Y, 8, backend) == pytest.approx(want, rel=1e-15)


def test_nan_among_logits_counts_as_with_numpy() -> None:
    """As the greatest, which `argmax` finds first."""
    accuracy, Y = METRICS[losses.cross_entropy], [n % 3 for n in range(60)]
    made = [trained(with_nan, of_the_class, accuracy, Y, 16, backend) for backend in AVAILABLE]
    assert all(each == made[0] for each in made)
    assert 0.0 < made[0][0] < 1.0
    assert math.isfinite(made[0][0])
