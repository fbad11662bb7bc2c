"""HIPS autograd: the array program, its gradient by tracing each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import autograd.numpy as np
from autograd import value_and_grad

from benchmarks import problems
from benchmarks.peers import arrays

__all__ = ["PROGRAMS", "TITLE"]

TITLE = "HIPS autograd, arrays"


def expression() -> Callable[[], list[float]]:
    """The expression of micrograd's README."""
    function = value_and_grad(lambda x: arrays.expression(x[0], x[1], lambda z: np.maximum(z, 0.0)))
    start = np.array([-4.0, 2.0])

    def step() -> list[float]:
        value, gradient = function(start)
        return [float(value), *map(float, gradient)]

    return step


def network(problem: problems.Network) -> Callable[[], list[float]]:
    """A training step of the network."""
    parameters, X, Y = arrays.cast(np, problem)
    function = value_and_grad(lambda ps: arrays.loss(np, problem, ps, X, Y))

    def step() -> list[float]:
        value, gradients = function(parameters)
        for p, gradient in zip(parameters, gradients, strict=True):
            p -= problem.lr * gradient
        return [float(value)]

    return step


def softmax(x: Any) -> Any:
    """Of the last axis."""
    exps = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exps / np.sum(exps, axis=-1, keepdims=True)


def names() -> Callable[[], list[float]]:
    """A training step of the GPT."""
    problem = problems.names()
    parameters = {name: np.array(rows) for name, rows in problem.matrices.items()}
    mean = {name: np.zeros_like(p) for name, p in parameters.items()}
    square = {name: np.zeros_like(p) for name, p in parameters.items()}
    documents = [arrays.masks(np, document, 27) for document in problem.documents]
    function = value_and_grad(lambda ps, *document: arrays.gpt(np, softmax, ps, *document, problem.heads))
    steps = 0

    def step() -> list[float]:
        nonlocal steps
        value, gradient = function(parameters, *documents[steps % len(documents)])
        steps += 1
        rate, scale = problem.lr / (1 - problem.beta1**steps), (1 - problem.beta2**steps) ** -0.5
        for name, p in parameters.items():
            g, m, s = gradient[name], mean[name], square[name]
            m += (1 - problem.beta1) * (g - m)
            s += (1 - problem.beta2) * (g * g - s)
            p -= rate * m / (np.sqrt(s) * scale + problem.eps)
        return [float(value)]

    return step


PROGRAMS: dict[str, Any] = {
    "expression": expression,
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}
