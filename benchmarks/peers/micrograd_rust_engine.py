"""micrograd-rust: the same programs on its Value, where it is installed and as far as it takes them."""

from __future__ import annotations

from functools import partial
from typing import Any

from micrograd_rust import Value

from benchmarks import problems, scalar

__all__ = ["CHAIN", "PROGRAMS", "TITLE"]

TITLE = "micrograd-rust"
PROGRAMS = {
    "expression": partial(scalar.expression, Value),
    **{name: partial(lambda make: scalar.network(Value, make()), make) for name, make in problems.NETWORKS.items()},
}


def CHAIN() -> Any:  # noqa: N802
    """The kind of number."""
    return Value
