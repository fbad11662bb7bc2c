"""The programs as people write them in scalars, for every engine that has a Value as micrograd has it.

Nothing here calls a library beyond that: neurons are `sum(w * x ...)`, the update is a loop over parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.problems import Network

__all__ = ["expression", "model", "network"]

Step = Callable[[], list[float]]


def expression(Value: Any) -> Step:
    """The expression of micrograd's README: one evaluation and its gradients."""

    def step() -> list[float]:
        a = Value(-4.0)
        b = Value(2.0)
        c = a + b
        d = a * b + b**3
        c += c + 1
        c += 1 + c + (-a)
        d += d * 2 + (b + a).relu()
        d += 3 * d + (b - a).relu()
        e = c - d
        f = e**2
        g = f / 2.0
        g += 10.0 / f
        g.backward()
        return [float(g.data), float(a.grad), float(b.grad)]

    return step


class Neuron:
    """One neuron, as micrograd writes it."""

    def __init__(self, weights: list[Any], bias: Any, activation: Callable[[Any], Any] | None) -> None:
        self.w, self.b, self.activation = weights, bias, activation

    def __call__(self, x: list[Any]) -> Any:
        """The activation of the weighted sum."""
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return self.activation(act) if self.activation else act


def model(Value: Any, problem: Network) -> tuple[Callable[[list[Any]], list[Any]], list[Any]]:
    """The network of these neurons: a function from one example to the scores, and the parameters."""
    kinds = {"relu": lambda x: x.relu(), "tanh": lambda x: x.tanh(), "linear": None}
    layers = []
    for i, (weights, biases) in enumerate(zip(problem.weights, problem.biases)):
        activation = kinds[problem.hidden if i + 1 < len(problem.weights) else problem.output]
        rows = zip(weights, biases)
        layers.append([Neuron([Value(w) for w in row], Value(b), activation) for row, b in rows])
    parameters = [p for layer in layers for neuron in layer for p in (*neuron.w, neuron.b)]

    def scores(x: list[Any]) -> list[Any]:
        for layer in layers:
            x = [neuron(x) for neuron in layer]
        return x

    return scores, parameters


def network(Value: Any, problem: Network, no_gradient: Any = 0.0) -> Step:
    """Training of a network whose every number is a Value.

    Args:
        Value: makes the engine's number from a float.
        problem: sizes, data and starting weights.
        no_gradient: what a parameter's `grad` is set to before a backward pass.
    """
    scores, parameters = model(Value, problem)

    def step() -> list[float]:
        for p in parameters:
            p.grad = no_gradient
        total = BACKWARD[problem.loss](Value, scores, problem, parameters)
        for p in parameters:
            p.data -= problem.lr * p.grad
        return [total]

    return step


def hinge(Value: Any, model: Any, problem: Network, parameters: list[Any]) -> float:
    """The mean of max(0, 1 - y * score) and the squares of the parameters; runs the backward pass."""
    inputs = [[Value(number) for number in row] for row in problem.X]
    scores = [model(x)[0] for x in inputs]
    losses = [(1 + -yi * score).relu() for yi, score in zip(problem.Y, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    total = data_loss + 1e-4 * sum(p * p for p in parameters)
    total.backward()
    return float(total.data)


def squared(Value: Any, model: Any, problem: Network, parameters: list[Any]) -> float:
    """The sum of (score - y)**2; runs the backward pass."""
    total = sum((model(x)[0] - y) ** 2 for x, y in zip(problem.X, problem.Y))
    total.backward()
    return float(total.data)


def crossentropy(Value: Any, model: Any, problem: Network, parameters: list[Any]) -> float:
    """The mean of -log softmax(scores)[label], one example after the other, as memory is finite."""
    total = 0.0
    for x, label in zip(problem.X, problem.Y):
        scores = model(x)
        greatest = max(score.data for score in scores)
        exps = [(score - greatest).exp() for score in scores]
        loss = (sum(exps).log() - scores[label] + greatest) * (1.0 / len(problem.X))
        loss.backward()
        total += float(loss.data)
    return total


BACKWARD = {"hinge": hinge, "squared": squared, "crossentropy": crossentropy}
