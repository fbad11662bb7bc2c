"""CasADi: the scalar program once as SX symbols; its gradient as a function that a virtual machine runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import casadi
import numpy as np

from benchmarks import problems

__all__ = ["PROGRAMS", "TITLE"]

TITLE = "CasADi SX"


def expression() -> Callable[[], list[float]]:
    """The expression of micrograd's README."""
    a, b = casadi.SX.sym("a"), casadi.SX.sym("b")
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + casadi.fmax(b + a, 0)
    d += 3 * d + casadi.fmax(b - a, 0)
    f = (c - d) ** 2
    g = f / 2.0 + 10.0 / f
    function = casadi.Function("expression", [a, b], [g, *casadi.vertsplit(casadi.gradient(g, casadi.vertcat(a, b)))])
    return lambda: [float(number) for number in function(-4.0, 2.0)]


def network(problem: problems.Network) -> Callable[[], list[float]]:
    """One example's loss in scalars, its gradient, mapped over the batch and summed."""
    parameters = casadi.SX.sym("p", problem.parameters)
    x = casadi.SX.sym("x", problem.sizes[0])
    y = casadi.SX.sym("y", problem.sizes[-1] if problem.loss == "crossentropy" else 1)
    at, signal = 0, list(casadi.vertsplit(x))
    functions = {"relu": lambda z: casadi.fmax(z, 0), "tanh": casadi.tanh, "linear": lambda z: z}
    start: list[float] = []
    for i, (weights, biases) in enumerate(zip(problem.weights, problem.biases, strict=True)):
        activation = functions[problem.hidden if i + 1 < len(problem.weights) else problem.output]
        neurons = []
        for row, bias in zip(weights, biases, strict=True):
            total = parameters[at + len(row)]
            for k, number in enumerate(signal):
                total = total + parameters[at + k] * number
            neurons.append(activation(total))
            start += [*row, bias]
            at += len(row) + 1
        signal = neurons
    scores = casadi.vertcat(*signal)
    count = len(problem.X)
    losses = {
        "hinge": lambda: casadi.fmax(1 - y * scores, 0) / count,
        "squared": lambda: (scores - y) ** 2,
        "crossentropy": lambda: (casadi.log(casadi.sum1(casadi.exp(scores))) - casadi.dot(y, scores)) / count,
    }
    loss = losses[problem.loss]()
    example = casadi.Function("example", [parameters, x, y], [loss, casadi.gradient(loss, parameters)])
    batch = example.map("batch", "serial", count, [0], [0, 1])
    X = np.array(problem.X).T
    Y = np.eye(problem.sizes[-1])[problem.Y].T if problem.loss == "crossentropy" else np.array([problem.Y])
    p = np.array(start)
    decay = 1e-4 if problem.loss == "hinge" else 0.0

    def step() -> list[float]:
        nonlocal p
        value, gradient = batch(p, X, Y)
        total = float(value) + decay * float(p @ p)
        p = p - problem.lr * (np.asarray(gradient).ravel() + 2 * decay * p)
        return [total]

    return step


PROGRAMS: dict[str, Any] = {
    "expression": expression,
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
}
