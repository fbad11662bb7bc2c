"""micrograd 0.1.0, with the functions that its lecture adds to it."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from micrograd.engine import Value

from benchmarks import problems, scalar

__all__ = ["CHAIN", "PROGRAMS", "TITLE"]

TITLE = "micrograd"


def _unary(name: str, function: Any, derivative: Any) -> Any:
    """A method put together by hand, as the lecture does for tanh and exp."""

    def method(self: Any) -> Any:
        y = function(self.data)
        out = Value(y, (self,), name)

        def _backward() -> None:
            self.grad += derivative(self.data, y) * out.grad

        out._backward = _backward
        return out

    return method


Value.tanh = _unary("tanh", math.tanh, lambda x, y: 1 - y * y)
Value.exp = _unary("exp", math.exp, lambda x, y: y)
Value.log = _unary("log", math.log, lambda x, y: 1 / x)

PROGRAMS = {
    "expression": partial(scalar.expression, Value),
    **{name: partial(lambda make: scalar.network(Value, make()), make) for name, make in problems.NETWORKS.items()},
}


def CHAIN() -> Any:  # noqa: N802
    """The kind of number."""
    return Value
