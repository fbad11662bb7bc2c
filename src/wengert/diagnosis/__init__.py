"""`diagnose` finds out why a network does not learn, from its losses, gradients and data.

`evidence.py` reads the graph below a loss, `findings.py` has a function for each fault, and `report.py` has `diagnose`.

>>> import random
>>> from wengert.nn import MLP
>>> model = MLP(2, [4, 1], output="relu", rng=random.Random(0))
>>> X, Y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 0.0]
>>> model.layers[1].neurons[0].b.data = -3.0
>>> loss = sum((model(x) - y) ** 2 for x, y in zip(X, Y))
>>> diagnose(model, loss)
dead output ReLU: layers.1.neurons.0
    seen: it is 0 for all 4 examples, though the loss asks for more for 2 of them: no gradient passes
    do:   leave the last layer linear, as MLP(..., output="linear") does, and train again from new weights
"""

from __future__ import annotations

from wengert.diagnosis.findings import Finding
from wengert.diagnosis.report import Diagnosis, diagnose

__all__ = ["Diagnosis", "Finding", "diagnose"]
