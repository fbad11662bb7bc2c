"""PyTorch as people use it: nn.Linear, a batch as one tensor, torch.optim.SGD."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from benchmarks import problems
from benchmarks.peers import arrays

__all__ = ["KERNELS", "PROGRAMS", "TITLE"]

TITLE = "PyTorch, nn.Linear"
torch.set_num_threads(1)

Pair = tuple[Callable[[], list[float]], Callable[[], Any]]  # a whole step; its part without the update


def network(problem: problems.Network) -> Pair:
    """A training step of the network, and its part without the update."""
    kinds: dict[str, Any] = {"relu": nn.ReLU, "tanh": nn.Tanh, "linear": nn.Identity}
    parts: list[Any] = []
    for i, (weights, biases) in enumerate(zip(problem.weights, problem.biases, strict=True)):
        linear = nn.Linear(len(weights[0]), len(weights), dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weights, dtype=torch.float64))
            linear.bias.copy_(torch.tensor(biases, dtype=torch.float64))
        last = i + 1 == len(problem.weights)
        parts += [linear, kinds[problem.output if last else problem.hidden]()]
    model = nn.Sequential(*parts)
    X = torch.tensor(problem.X, dtype=torch.float64)
    Y = torch.tensor(problem.Y, dtype=torch.int64 if problem.loss == "crossentropy" else torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=problem.lr)
    parameters = list(model.parameters())
    losses: dict[str, Callable[[Any], Any]] = {
        "hinge": lambda out: torch.relu(1 - Y * out[:, 0]).mean() + 1e-4 * sum((p * p).sum() for p in parameters),
        "squared": lambda out: ((out[:, 0] - Y) ** 2).sum(),
        "crossentropy": lambda out: nn.functional.cross_entropy(out, Y),
    }

    def kernel() -> Any:
        optimizer.zero_grad()
        loss = losses[problem.loss](model(X))
        loss.backward()
        return loss

    def step() -> list[float]:
        loss = kernel()
        optimizer.step()
        return [loss.item()]

    return step, kernel


def names() -> Pair:
    """A training step of the GPT, and its part without Adam."""
    problem = problems.names()
    parameters = {
        name: torch.tensor(rows, dtype=torch.float64, requires_grad=True) for name, rows in problem.matrices.items()
    }
    optimizer = torch.optim.Adam(
        parameters.values(), lr=problem.lr, betas=(problem.beta1, problem.beta2), eps=problem.eps
    )
    documents = []
    for document in problem.documents:
        hidden = torch.full((len(document) - 1, len(document) - 1), -1e30, dtype=torch.float64).triu(1)
        documents.append((torch.tensor(document[:-1]), torch.eye(27, dtype=torch.float64)[document[1:]], hidden))
    steps = 0

    def kernel() -> Any:
        nonlocal steps
        document = documents[steps % len(documents)]
        steps += 1
        optimizer.zero_grad()
        loss = arrays.gpt(torch, lambda x: torch.softmax(x, -1), parameters, *document, problem.heads)
        loss.backward()
        return loss

    def step() -> list[float]:
        loss = kernel()
        optimizer.step()
        return [loss.item()]

    return step, kernel


KERNELS: dict[str, Any] = {
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}
PROGRAMS = {name: partial(lambda make: make()[0], make) for name, make in KERNELS.items()}
