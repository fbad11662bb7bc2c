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


PROGRAMS: dict[str, Any] = {
    "expression": expression,
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
}
