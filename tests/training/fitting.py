"""What the tests of fit() train: twelve points, targets of each kind, a small network, and no progress printed."""

from __future__ import annotations

import random
from typing import Any

from wengert.nn import MLP
from wengert.optim import SGD
from wengert.training import History, fit

__all__ = ["BITS", "CLASSES", "SIGNS", "X", "make", "quiet"]

X = [[random.Random(i).uniform(-1, 1), random.Random(-1 - i).uniform(-1, 1)] for i in range(12)]
CLASSES = [int(a > 0) + int(b > 0) for a, b in X]
SIGNS = [1 if a > b else -1 for a, b in X]
BITS = [int(a > b) for a, b in X]


def make(outputs: int = 1, seed: int = 0) -> MLP:
    return MLP(2, [4, outputs], activation="tanh", rng=random.Random(seed))


def quiet(
    model: Any, loss: Any, inputs: Any, targets: Any, optimizer: Any = None, *numbers: int, **more: Any
) -> History:
    return fit(model, loss, inputs, targets, optimizer or SGD(model, 0.1), *numbers, progress=False, **more)
