"""A scalar engine in plain Python, as compact as they come: the measure for `names`.

A node has slots for its number, its gradient, its operands and the partial derivative with respect to each, taken when
it is made; `backward` is iterative, with an iterator over the operands of each open node. This is what a careful Python
programmer writes without a compiler.

The loops are as fast as they were found to be: marking a node where it is met, not where it is left, and `zip` without
a keyword take a quarter of a step away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

__all__ = ["Adam", "Value"]


class Value:
    """A number that remembers how it was computed."""

    __slots__ = ("data", "grad", "operands", "partials")

    def __init__(self, data: float, operands: tuple[Value, ...] = (), partials: tuple[float, ...] = ()) -> None:
        self.data = data
        self.grad = 0.0
        self.operands = operands
        self.partials = partials

    def __add__(self, other: Any) -> Value:
        if isinstance(other, Value):
            return Value(self.data + other.data, (self, other), (1.0, 1.0))
        return Value(self.data + other, (self,), (1.0,))

    def __mul__(self, other: Any) -> Value:
        if isinstance(other, Value):
            return Value(self.data * other.data, (self, other), (other.data, self.data))
        return Value(self.data * other, (self,), (other,))

    def __sub__(self, other: Any) -> Value:
        if isinstance(other, Value):
            return Value(self.data - other.data, (self, other), (1.0, -1.0))
        return Value(self.data - other, (self,), (1.0,))

    def __truediv__(self, other: Any) -> Value:
        if isinstance(other, Value):
            out = self.data / other.data
            return Value(out, (self, other), (1.0 / other.data, -out / other.data))
        return Value(self.data / other, (self,), (1.0 / other,))

    def __pow__(self, power: float) -> Value:
        return Value(self.data**power, (self,), (power * self.data ** (power - 1.0),))

    def __neg__(self) -> Value:
        return Value(-self.data, (self,), (-1.0,))

    def __rsub__(self, other: float) -> Value:
        return Value(other - self.data, (self,), (-1.0,))

    def __rtruediv__(self, other: float) -> Value:
        out = other / self.data
        return Value(out, (self,), (-out / self.data,))

    __radd__ = __add__
    __rmul__ = __mul__

    def relu(self) -> Value:
        """max(x, 0)."""
        return Value(self.data, (self,), (1.0,)) if self.data > 0.0 else Value(0.0, (self,), (0.0,))

    def exp(self) -> Value:
        """e**x."""
        out = math.exp(self.data)
        return Value(out, (self,), (out,))

    def log(self) -> Value:
        """The natural logarithm."""
        return Value(math.log(self.data), (self,), (1.0 / self.data,))

    def tanh(self) -> Value:
        """The hyperbolic tangent."""
        out = math.tanh(self.data)
        return Value(out, (self,), (1.0 - out * out,))

    def backward(self) -> None:
        """The chain rule over every node under this one, in reverse topological order."""
        order: list[Value] = []
        visited = {self}
        path: list[tuple[Value, Iterator[Value]]] = []  # the nodes above this one, each with its operands to come
        node, rest = self, iter(self.operands)
        while True:
            for operand in rest:
                if operand not in visited:
                    visited.add(operand)
                    if operand.operands:
                        path.append((node, rest))
                        node, rest = operand, iter(operand.operands)
                        break
            else:
                order.append(node)
                if not path:
                    break
                node, rest = path.pop()
        self.grad = 1.0
        for node in reversed(order):
            gradient = node.grad
            for operand, partial in zip(node.operands, node.partials):  # noqa: B905  (`strict` takes a third longer)
                operand.grad += partial * gradient


class Adam:
    """Kingma and Ba's optimizer as a loop over the parameters, which also clears their gradients."""

    def __init__(self, parameters: list[Value], lr: float, beta1: float, beta2: float, eps: float) -> None:
        self.parameters = parameters
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.mean = [0.0] * len(parameters)
        self.square = [0.0] * len(parameters)
        self.steps = 0

    def step(self) -> None:
        """Move each parameter by its gradient, and set that to 0."""
        self.steps += 1
        correction1 = 1.0 - self.beta1**self.steps
        correction2 = 1.0 - self.beta2**self.steps
        lr, eps, beta1, beta2, rest1, rest2 = self.lr, self.eps, self.beta1, self.beta2, 1 - self.beta1, 1 - self.beta2
        mean, square = self.mean, self.square
        for i, p in enumerate(self.parameters):
            g = p.grad
            mean[i] = m = beta1 * mean[i] + rest1 * g
            square[i] = s = beta2 * square[i] + rest2 * g * g
            p.data -= lr * (m / correction1) / ((s / correction2) ** 0.5 + eps)
            p.grad = 0.0
