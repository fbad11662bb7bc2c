"""PyTorch with a tensor of no dimensions for each number: define-by-run in the same granularity."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from benchmarks import problems, scalar

__all__ = ["CHAIN", "PROGRAMS", "TITLE"]

TITLE = "PyTorch, 0-d tensors"
torch.set_num_threads(1)


def leaf(number: float) -> Any:
    """A number that keeps its gradient."""
    return torch.tensor(float(number), dtype=torch.float64, requires_grad=True)


PROGRAMS = {
    "expression": partial(scalar.expression, leaf),
    **{
        name: partial(lambda make: scalar.network(leaf, make(), no_gradient=None), make)
        for name, make in problems.NETWORKS.items()
    },
}


def CHAIN() -> Any:  # noqa: N802
    """The kind of number."""
    return leaf
