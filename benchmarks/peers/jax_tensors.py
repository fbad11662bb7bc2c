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


def names() -> Callable[[], list[float]]:
    """A training step of the GPT; it is compiled once for each length of a name."""
    problem = problems.names()
    parameters = {name: jnp.array(rows) for name, rows in problem.matrices.items()}
    mean = {name: jnp.zeros_like(p) for name, p in parameters.items()}
    state = (parameters, mean, dict(mean))
    documents = [arrays.masks(jnp, document, 27) for document in problem.documents]
    steps = 0

    @jax.jit
    def update(state: Any, step: Any, tokens: Any, targets: Any, mask: Any) -> Any:
        parameters, mean, square = state
        value, gradient = jax.value_and_grad(
            lambda ps: arrays.gpt(jnp, jax.nn.softmax, ps, tokens, targets, mask, problem.heads)
        )(parameters)
        tree = jax.tree_util.tree_map
        mean = tree(lambda m, g: problem.beta1 * m + (1 - problem.beta1) * g, mean, gradient)
        square = tree(lambda s, g: problem.beta2 * s + (1 - problem.beta2) * g * g, square, gradient)
        rate, scale = problem.lr / (1 - problem.beta1**step), (1 - problem.beta2**step) ** -0.5
        parameters = tree(lambda p, m, s: p - rate * m / (jnp.sqrt(s) * scale + problem.eps), parameters, mean, square)
        return value, (parameters, mean, square)

    def step() -> list[float]:
        nonlocal state, steps
        steps += 1
        value, state = update(state, float(steps), *documents[(steps - 1) % len(documents)])
        jax.block_until_ready(state)
        return [float(value)]

    for document in documents:  # compiled for each length before it is timed
        update(state, 1.0, *document)
    return step


PROGRAMS: dict[str, Any] = {
    "expression": expression,
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}
