"""NumPy by hand: the forward pass, and the backward pass that its author derived on paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.peers import arrays

__all__ = ["PROGRAMS", "TITLE"]

TITLE = "NumPy by hand"


def network(problem: problems.Network) -> Callable[[], list[float]]:
    """A training step of the network."""
    parameters, X, Y = arrays.cast(np, problem)
    count, last = len(X), len(parameters) - 2

    def step() -> list[float]:
        signals = [X]
        for i in range(0, len(parameters), 2):
            z = signals[-1] @ parameters[i].T
            z += parameters[i + 1]
            kind = problem.output if i == last else problem.hidden
            if kind == "relu":
                np.maximum(z, 0.0, out=z)
            elif kind == "tanh":
                np.tanh(z, out=z)
            signals.append(z)
        out = signals[-1]
        if problem.loss == "hinge":
            margins = 1.0 - Y * out[:, 0]
            wrong = margins > 0.0
            loss = margins[wrong].sum() / count + 1e-4 * sum(float(p.ravel() @ p.ravel()) for p in parameters)
            gradient = np.where(wrong, -Y / count, 0.0)[:, None]
        elif problem.loss == "squared":
            error = out[:, 0] - Y
            loss = error @ error
            gradient = 2.0 * error[:, None]
        else:
            shifted = out - out.max(axis=1, keepdims=True)
            exps = np.exp(shifted)
            totals = exps.sum(axis=1)
            loss = (np.log(totals).sum() - (shifted * Y).sum()) / count
            gradient = (exps / totals[:, None] - Y) / count
        for i in range(last, -1, -2):
            y = signals[i // 2 + 1]
            kind = problem.output if i == last else problem.hidden
            if kind == "relu":
                gradient = gradient * (y > 0.0)
            elif kind == "tanh":
                gradient = gradient * (1.0 - y * y)
            dw, db = gradient.T @ signals[i // 2], gradient.sum(axis=0)
            if i:
                gradient = gradient @ parameters[i]
            if problem.loss == "hinge":
                dw += 2e-4 * parameters[i]
                db += 2e-4 * parameters[i + 1]
            dw *= problem.lr
            db *= problem.lr
            parameters[i] -= dw
            parameters[i + 1] -= db
        return [float(loss)]

    return step


PROGRAMS: dict[str, Any] = {
    name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()
}
