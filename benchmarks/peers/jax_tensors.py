"""JAX: the array program, its gradient and its update compiled together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import problems
from benchmarks.peers import arrays

__all__ = ["PROGRAMS", "TITLE"]

TITLE = "jax.jit, arrays"
jax.config.update("jax_enable_x64", True)


def expression() -> Callable[[], list[float]]:
    """The expression of micrograd's README."""
    function = jax.jit(jax.value_and_grad(lambda a, b: arrays.expression(a, b, jax.nn.relu), argnums=(0, 1)))

    def step() -> list[float]:
        value, (da, db) = function(-4.0, 2.0)
        return [float(value), float(da), float(db)]

    return step


def network(problem: problems.Network) -> Callable[[], list[float]]:
    """A training step of the network."""
    parameters, X, Y = arrays.cast(jnp, problem)

    @partial(jax.jit, donate_argnums=0)
    def update(ps: list[Any]) -> tuple[Any, list[Any]]:
        value, gradients = jax.value_and_grad(lambda ps: arrays.loss(jnp, problem, ps, X, Y))(ps)
        return value, [p - problem.lr * g for p, g in zip(ps, gradients, strict=True)]

    def step() -> list[float]:
        nonlocal parameters
        value, parameters = update(parameters)
        jax.block_until_ready(parameters)
        return [float(value)]

    return step


PROGRAMS: dict[str, Any] = {
    "expression": expression,
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
}
