"""Classes that somebody could have written on the way to an engine, stage by stage, and in other ways."""

from __future__ import annotations

import enum
import math
from typing import Any

from tests.view.drawn import NEURON


class One:
    """A number that computes."""

    def __init__(self, data: float) -> None:
        self.data = data

    def __add__(self, other: Any) -> One:
        return One(self.data + other.data)

    def __mul__(self, other: Any) -> One:
        return One(self.data * other.data)

    def tanh(self) -> One:
        return One(math.tanh(self.data))


class Two:
    """A number that knows where it came from."""

    def __init__(self, data: float, _children: Any = (), _op: str = "", label: str = "") -> None:
        self.data = data
        self._prev = set(_children)
        self._op = _op
        self.label = label

    def __add__(self, other: Any) -> Any:
        return type(self)(self.data + other.data, (self, other), "+")

    def __mul__(self, other: Any) -> Any:
        return type(self)(self.data * other.data, (self, other), "*")

    def tanh(self) -> Any:
        return type(self)(math.tanh(self.data), (self,), "tanh")


class Three(Two):
    """One whose gradient is written by hand."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.grad = 0.0


class Four(Three):
    """One with closures, called one by one. It has mistakes that can be chosen."""

    mistake = ""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._backward: Any = lambda: None

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Four) else type(self)(other)
        out = super().__add__(other)

        def _backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Four) else type(self)(other)
        out = super().__mul__(other)

        def _backward() -> None:
            if self.mistake == "=":
                self.grad = other.data * out.grad
                other.grad = self.data * out.grad
            else:
                self.grad += other.data * out.grad
                other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self) -> Any:
        out = super().tanh()
        t = out.data

        def _backward() -> None:
            if self.mistake == "affine":
                self.grad += 1 - t**2 * out.grad
            elif self.mistake == "raises":
                self.grad += (1 - tt**2) * out.grad  # type: ignore[name-defined]  # noqa: F821  (the mistake)
            elif self.mistake == "data":
                self.data += 1.0
                self.grad += (1 - t**2) * out.grad
            else:
                self.grad += (1 - t**2) * out.grad

        if self.mistake != "none":
            out._backward = _backward
        return out


class Five(Four):
    """One with `backward()`."""

    def backward(self) -> None:
        order: list[Any] = []
        visited = set()

        def build(v: Any) -> None:
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build(child)
                order.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(order):
            v._backward()


class Op(enum.Enum):
    """The operations of `Node`."""

    TIMES = 1
    PLUS = 2
    TANH = 3


class Node:
    """One in other words: `parents` in a list, an enum for the operation, a name, one method for all rules."""

    def __init__(self, data: float, parents: Any = (), op: Op | None = None, name: str | None = None) -> None:
        self.data, self.parents, self.op, self.name, self.grad = data, list(parents), op, name, None

    def _backward(self) -> None:
        x, y = self.parents[0], self.parents[-1]
        if self.op is Op.TANH:
            x.grad += (1 - self.data**2) * self.grad  # type: ignore[operator]
        elif self.op is Op.PLUS:
            x.grad += self.grad
            y.grad += self.grad
        elif self.op is Op.TIMES:
            x.grad += y.data * self.grad
            y.grad += x.data * self.grad

    def __add__(self, other: Any) -> Node:
        return Node(self.data + other.data, (self, other), Op.PLUS)

    def __mul__(self, other: Any) -> Node:
        return Node(self.data * other.data, (self, other), Op.TIMES)

    def tanh(self) -> Node:
        return Node(math.tanh(self.data), (self,), Op.TANH)


class Local:
    """One that keeps its partials, and no closure; without room for anything else."""

    __slots__ = ("_children", "_local_grads", "data", "grad")

    def __init__(self, data: float, children: Any = (), local_grads: Any = ()) -> None:
        self.data, self.grad, self._children, self._local_grads = data, 0, children, local_grads

    def __add__(self, other: Any) -> Local:
        return Local(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other: Any) -> Local:
        return Local(self.data * other.data, (self, other), (other.data, self.data))

    def tanh(self) -> Local:
        t = math.tanh(self.data)
        return Local(t, (self,), (1 - t**2,))


def tanh(x: Any) -> Any:
    """For a class that has none, as micrograd's: a node that is put together beside the class."""
    t = math.tanh(x.data)
    out = type(x)(t, (x,), "tanh")

    def _backward() -> None:
        x.grad += (1 - t**2) * out.grad

    out._backward = _backward
    return out


def labelled(kind: Any, data: float, name: str) -> Any:
    """A leaf of a class, with its label where there is room for one."""
    leaf = kind(data)
    for attribute in ("label", "name"):
        if hasattr(leaf, attribute):
            setattr(leaf, attribute, name)
    return leaf


def neuron_of(kind: Any) -> tuple[Any, dict[str, Any]]:
    """The neuron of the tutorials, E5 of the list of cases, in a class; and what is in it."""
    v = {name: labelled(kind, number, name) for name, number in NEURON.items()}
    v["n"] = v["x1"] * v["w1"] + v["x2"] * v["w2"] + v["b"]
    v["o"] = v["n"].tanh() if hasattr(v["n"], "tanh") else tanh(v["n"])
    for name in ("n", "o"):
        for attribute in ("label", "name"):
            if hasattr(v[name], attribute):
                setattr(v[name], attribute, name)
    return v["o"], v


GRADIENTS = {"x1": -1.5, "w1": 1.0, "x2": 0.5, "w2": 0.0, "b": 0.5, "n": 0.5, "o": 1.0}
