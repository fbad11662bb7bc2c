"""Wengert with `compile` on the loss of one example, called on the batch: machine code, or NumPy for wide layers.

A whole step is what a user writes: `loss.mean(X, Y)`, `zero_grad`, `backward`, `optimizer.step()`. The kernel is the
lifted array program alone, forward and reverse: without the parameters that are read before it, and without what hands
the gradients out and moves the parameters after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks import gpt, problems, scalar
from benchmarks.peers.wengert_library import mlp
from wengert import Value, losses, optim
from wengert.compiler.backends import BACKENDS
from wengert.compiler.function import Compiled

__all__ = ["KERNELS", "LIFTS", "PROGRAMS", "TITLE"]

TITLE = "Wengert, compiled loss"

compiled: Any = partial(Compiled, backend=BACKENDS.get(os.environ.get("WENGERT_BACKEND", "")))  # None: by the rule
Pair = tuple[Callable[[], list[float]], Callable[[], Any]]  # a whole step; its kernel


def network(problem: problems.Network) -> Pair:
    """A training step of the network from `nn.MLP`, and its kernel."""
    model = mlp(problem)
    optimizer = optim.SGD(model, problem.lr)
    parameters = optimizer.parameters
    X, Y = np.array(problem.X), np.array(problem.Y)

    @compiled
    def hinge(x: Any, y: Any) -> Any:
        return (1 - y * model(x)).relu() + losses.l2(parameters, 1e-4)

    @compiled
    def squared(x: Any, y: Any) -> Any:
        return (model(x) - y) ** 2

    @compiled
    def crossentropy(x: Any, label: Any) -> Any:
        return losses.cross_entropy(model(x), label)

    loss = {"hinge": hinge, "squared": squared, "crossentropy": crossentropy}[problem.loss]
    batch, seed = (loss.sum, 1.0) if problem.loss == "squared" else (loss.mean, 1.0 / len(X))

    def step() -> list[float]:
        optimizer.zero_grad()
        total = batch(X, Y)
        total.backward()
        optimizer.step()
        return [total.data]

    return step, kernel(loss, (X, Y), True, seed)


def kernel(loss: Any, arguments: Sequence[Any], batched: bool, seed: float) -> Callable[[], Any]:
    """The lifted program of a loss for these arguments.

    Raises:
        ArgumentError: the function was not lifted.
    """
    (loss.sum if batched else loss)(*arguments)
    space = loss._server.latest().acquire()
    space.load()
    given = loss._server.specializer.read(arguments, {}, batched)
    arrays, count = given.numbers(given.arrays), given.count() if batched else 1

    def run() -> float:
        space.run(arrays, count, True, seed)
        return float(space.added(count))

    return run


def gpt_loss() -> tuple[problems.Names, list[Value], Any]:
    """The names, the parameters, and the compiled loss of one name."""
    problem = problems.names()
    matrices = {name: [[Value(x) for x in row] for row in rows] for name, rows in problem.matrices.items()}
    heads = problem.heads

    @compiled
    def loss(tokens: Sequence[int]) -> Any:
        return gpt.loss(tokens, matrices, heads)

    return problem, [p for rows in matrices.values() for row in rows for p in row], loss


def names() -> Pair:
    """A training step of the GPT, and its kernel; both are recorded once for each length of a name, before the race."""
    problem, parameters, loss = gpt_loss()
    for tokens in problem.documents:
        loss.prepare(tokens)
    optimizer = optim.Adam(parameters, problem.lr, betas=(problem.beta1, problem.beta2), eps=problem.eps)
    kernels = cycle([kernel(loss, (tokens,), False, 1.0) for tokens in problem.documents])  # before it is timed

    def step() -> list[float]:
        tokens = problem.documents[optimizer.steps % len(problem.documents)]
        optimizer.zero_grad()
        total = loss(tokens)
        total.backward()
        optimizer.step()
        return [total.data]

    return step, lambda: next(kernels)()


KERNELS: dict[str, Any] = {
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}
PROGRAMS = {name: partial(lambda make: make()[0], make) for name, make in KERNELS.items()}


# -- what is recorded and lifted, every sum written out: a compiled function and its first arguments ------------------


def lift_moons() -> tuple[Any, tuple[Any, ...]]:
    """One example, and the squares of all parameters."""
    problem = problems.moons()
    model, parameters = scalar.model(Value, problem)

    @compiled
    def loss(x: Any, y: Any) -> Any:
        return (1 - y * model(x)[0]).relu() + 1e-4 * sum(p * p for p in parameters)

    return loss, (problem.X[0], problem.Y[0])


def lift_classes(make: Callable[[], problems.Network], count: int) -> tuple[Any, tuple[Any, ...]]:
    """The mean of the cross-entropies of so many examples, in a Python loop."""
    problem = make()
    model, _ = scalar.model(Value, problem)

    @compiled
    def loss(X: Any, Y: Any) -> Any:
        return sum(losses.cross_entropy(model(x), y) for x, y in zip(X, Y, strict=True)) * (1.0 / count)

    return loss, (problem.X[:count], problem.Y[:count])


def lift_names() -> tuple[Any, tuple[Any, ...]]:
    """One name."""
    problem, _, loss = gpt_loss()
    return loss, (next(tokens for tokens in problem.documents if len(tokens) == 9),)


LIFTS: dict[str, Any] = {
    "moons": lift_moons,
    "digits": partial(lift_classes, problems.digits, 1),
    "names": lift_names,
    "mnist-size": partial(lift_classes, problems.mnist, 1),
    "mnist-size x 5": partial(lift_classes, problems.mnist, 5),
}
