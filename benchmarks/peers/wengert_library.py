"""Wengert with its own networks, losses and optimizers, as its documentation writes them."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks import problems
from benchmarks.peers.wengert_unchanged import names
from wengert import dot, losses, nn, optim

__all__ = ["PROGRAMS", "TITLE", "mlp"]

TITLE = "Wengert, its own MLP, dot and optimizer"


def mlp(problem: problems.Network) -> nn.MLP:
    """The network from `nn.MLP`, with the starting weights that all peers have."""
    activations = {"activation": problem.hidden, "output": problem.output}
    model = nn.MLP(problem.sizes[0], list(problem.sizes[1:]), **activations)
    for layer, weights, biases in zip(model.layers, problem.weights, problem.biases, strict=True):
        for neuron, row, bias in zip(layer.neurons, weights, biases, strict=True):
            neuron.b.data = bias
            for w, number in zip(neuron.w, row, strict=True):
                w.data = number
    return model


def network(problem: problems.Network) -> Any:
    """The same network from `nn.MLP`, moved by `optim.SGD`."""
    model = mlp(problem)
    optimizer = optim.SGD(model, problem.lr)
    backward = {"hinge": hinge, "squared": squared, "crossentropy": crossentropy}[problem.loss]

    def step() -> list[float]:
        optimizer.zero_grad()
        total = backward(model, problem, optimizer)
        optimizer.step()
        return [total]

    return step


def hinge(model: Any, problem: problems.Network, optimizer: Any) -> float:
    """The mean hinge loss and the squares of the parameters; runs the backward pass."""
    total = sum(losses.hinge(model(x), y) for x, y in zip(problem.X, problem.Y, strict=True)) * (1.0 / len(problem.X))
    total = total + losses.l2(optimizer.parameters, 1e-4)
    total.backward()
    return total.data


def squared(model: Any, problem: problems.Network, optimizer: Any) -> float:
    """The sum of squared errors; runs the backward pass."""
    total = sum((model(x) - y) ** 2 for x, y in zip(problem.X, problem.Y, strict=True))
    total.backward()
    return total.data


def crossentropy(model: Any, problem: problems.Network, optimizer: Any) -> float:
    """The mean cross-entropy, one example after the other."""
    total = 0.0
    for x, label in zip(problem.X, problem.Y, strict=True):
        loss = losses.cross_entropy(model(x), label) * (1.0 / len(problem.X))
        loss.backward()
        total += loss.data
    return total


PROGRAMS = {name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()}
PROGRAMS["names"] = partial(names, dot=dot)
