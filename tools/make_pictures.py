"""Write the drawings that the documentation shows: `python tools/make_pictures.py`. A test holds them to the code."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from wengert import Value, draw, losses, mean, nn
from wengert.view.graph.draw import Drawing

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"


def neuron() -> Drawing:
    """The neuron of the tutorials, after its backward pass."""
    x1, x2 = Value(2.0, "x1"), Value(0.0, "x2")
    w1, w2, b = Value(-3.0, "w1"), Value(1.0, "w2"), Value(6.8813735870195432, "b")
    n = x1 * w1 + x2 * w2 + b
    n.label = "n"
    o = n.tanh()
    o.label = "o"
    o.backward()
    return draw(o)


def first() -> Drawing:
    """The first computation of docs/getting-started.md."""
    a, b, c = Value(2.0, "a"), Value(-3.0, "b"), Value(10.0, "c")
    d = a * b + c
    d.label = "d"
    d.backward()
    return draw(d)


def shared() -> Drawing:
    """A value that is used twice, before its backward pass."""
    x = Value(3.0, "x")
    return draw(x + x)


def one_example() -> Drawing:
    """A network at one point, folded into its neurons."""
    model = nn.MLP(2, [8, 8, 1], rng=random.Random(7))
    loss = losses.hinge(model([0.5, -1.0]), 1)
    loss.backward()
    return draw(loss, limit=100)


def batch() -> Drawing:
    """A network at four points: folded into examples, layers and parameters."""
    rng = random.Random(7)
    model = nn.MLP(2, [16, 16, 1], rng=rng)
    points = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(4)]
    loss = mean([losses.hinge(model(x), 1) for x in points])
    loss.label = "loss"
    loss.backward()
    return draw(loss)


class Number:
    """What a reader may have written so far, in docs/pictures.md."""

    def __init__(self, data: float, _children: Any = (), _op: str = "", label: str = "") -> None:
        self.data, self.grad = data, 0.0
        self._prev, self._op, self.label = set(_children), _op, label
        self._backward: Any = lambda: None

    def __mul__(self, other: Number) -> Number:
        out = Number(self.data * other.data, (self, other), "*")

        def _backward() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def double(self) -> Number:
        """An operation without a rule so far."""
        return Number(2 * self.data, (self,), "double")


def own() -> Drawing:
    """The graph of a class of a reader's own."""
    root = (Number(2.0, label="a") * Number(-3.0, label="b")).double()
    root.label, root.grad = "L", 1.0
    return draw(root)


def pictures() -> dict[str, str]:
    """The files, by their names."""
    drawn = {"first": first(), "neuron": neuron(), "shared": shared(), "network": one_example()}
    drawn |= {"batch": batch(), "own": own()}
    return {f"draw-{name}.svg": drawing.svg + "\n" for name, drawing in drawn.items()}


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)
