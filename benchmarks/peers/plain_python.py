"""The plain Python Value of `benchmarks.plain`, and its optimizer in Python."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks import gpt, problems, scalar
from benchmarks.plain import Adam, Value

__all__ = ["CHAIN", "PROGRAMS", "TITLE"]

TITLE = "plain Python Value with slots"


def names() -> Any:
    """The GPT of `benchmarks.gpt`, and Adam as a Python loop."""
    problem = problems.names()
    matrices = {name: [[Value(x) for x in row] for row in rows] for name, rows in problem.matrices.items()}
    parameters = [p for rows in matrices.values() for row in rows for p in row]
    optimizer = Adam(parameters, problem.lr, problem.beta1, problem.beta2, problem.eps)

    def step() -> list[float]:
        tokens = problem.documents[optimizer.steps % len(problem.documents)]
        loss = gpt.loss(tokens, matrices, problem.heads)
        loss.backward()
        optimizer.step()
        return [loss.data]

    return step


PROGRAMS = {
    "expression": partial(scalar.expression, Value),
    **{name: partial(lambda make: scalar.network(Value, make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}


def CHAIN() -> Any:  # noqa: N802
    """The kind of number."""
    return Value
