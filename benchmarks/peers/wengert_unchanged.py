"""Wengert, the program unchanged: micrograd's own text with another import."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks import gpt, problems, scalar
from wengert import Value, optim

__all__ = ["CHAIN", "PROGRAMS", "TITLE", "names"]

TITLE = "Wengert, program unchanged"


def names(**engine: Any) -> Any:
    """The GPT of `benchmarks.gpt` with the library's optimizer, and its `dot` where it is passed."""
    problem = problems.names()
    matrices = {name: [[Value(x) for x in row] for row in rows] for name, rows in problem.matrices.items()}
    parameters = [p for rows in matrices.values() for row in rows for p in row]
    optimizer = optim.Adam(parameters, problem.lr, betas=(problem.beta1, problem.beta2), eps=problem.eps)

    def step() -> list[float]:
        tokens = problem.documents[optimizer.steps % len(problem.documents)]
        optimizer.zero_grad()
        loss = gpt.loss(tokens, matrices, problem.heads, **engine)
        loss.backward()
        optimizer.step()
        return [loss.data]

    return step


PROGRAMS = {
    "expression": partial(scalar.expression, Value),
    **{name: partial(lambda make: scalar.network(Value, make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}


def CHAIN() -> Any:  # noqa: N802  (a constant of the module, computed when asked for)
    """The kind of number."""
    return Value
