"""Functions of all kinds, compiled: that call one another, methods, objects; what they say of themselves."""

from __future__ import annotations

import random
from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, lifted, linear, same
from wengert import Value, nn
from wengert.errors import ArgumentError


def test_a_compiled_function_calls_another() -> None:
    w, b = Value(0.7), Value(-0.2)
    neuron = wengert.compile(lambda x: (w * x + b).tanh())

    @wengert.compile
    def loss(x: float, y: float) -> Any:
        return (neuron(neuron(x)) - y) ** 2

    X, Y = [0.5, 1.5], [0.1, 0.2]
    for _ in range(2):
        want = [(neuron.function(neuron.function(x)) - y) ** 2 for x, y in zip(X, Y, strict=True)]
        same(loss(X[0], Y[0]), want[0], [w, b])
        same(neuron(0.5), neuron.function(0.5), [w, b])
        same(loss.mean(X, Y), wengert.mean(want), [w, b])
    assert all(entry.specializations for entry in neuron._server.entries.values())


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_a_compiled_function_calls_another_on_a_batch(how: str) -> None:
    """While the outer one is recorded, its numbers are Values, and a batch of them is as good as one of floats."""
    w, b = Value(0.7), Value(-0.2)
    neuron = wengert.compile(lambda x: (w * x + b).tanh())
    loss = wengert.compile(lambda x, y: getattr(neuron, how)([x, 2.0 * y]) ** 2)
    for _ in range(2):
        pair = [neuron.function(x) for x in (0.5, 0.2)]
        same(loss(0.5, 0.1), (wengert.mean(pair) if how == "mean" else wengert.sum(pair)) ** 2, [w, b])
    lifted(loss)


def test_what_is_detached_while_it_is_recorded() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: (w * x).tanh() * (w + x).detach() + w.detach())
    for x in (0.5, 0.5, 1.5):
        same(loss(x), loss.function(x), [w])
    lifted(loss)


def test_a_function_that_calls_its_compiled_self() -> None:
    w = Value(0.7)

    @wengert.compile(static=("n",))
    def power(x: float, n: int) -> Any:
        return w * x if n == 0 else power(x, n - 1) * w + x

    def eager(x: float, n: int) -> Any:
        return w * x if n == 0 else eager(x, n - 1) * w + x

    for n in (0, 1, 5):
        same(power(0.5, n), eager(0.5, n), [w])
        same(power.mean([0.5, 0.25], n), wengert.mean([eager(x, n) for x in (0.5, 0.25)]), [w])
    lifted(power)


class Line(nn.Module):
    """A module with a compiled method."""

    def __init__(self, slope: float) -> None:
        self.slope, self.offset = Value(slope), Value(0.1)

    @wengert.compile
    def loss(self, x: float, y: float) -> Any:
        return (self.slope * x + self.offset - y) ** 2


def test_a_compiled_method() -> None:
    lines = [Line(0.5), Line(-0.7)]
    for _ in range(3):
        for line in lines:
            want = [(line.slope * x + line.offset - 1.0) ** 2 for x in (0.3, 0.6)]
            same(line.loss(0.3, 1.0), want[0], line.parameters())
            same(line.loss.mean([0.3, 0.6], [1.0, 1.0]), wengert.mean(want), line.parameters())
            line.slope.data += 0.5


def test_a_compiled_method_shows_what_it_has() -> None:
    bound = Line(0.5).loss
    shown = dir(bound)
    assert {"mean", "sum", "map", "report", "source", "instance"} <= {*shown}
    assert all(hasattr(bound, name) for name in shown if not name.startswith("_"))


def test_a_bound_method_that_is_compiled() -> None:
    class Bare:
        def __init__(self) -> None:
            self.w = Value(0.4)
            self.loss = wengert.compile(self.plain)

        def plain(self, x: float) -> Any:
            return self.w * x

    for made in (Bare(), Bare()):
        same(made.loss(2.0), made.w * 2.0, [made.w])
        same(made.loss.mean([2.0, 4.0]), made.w * 3.0, [made.w])
        lifted(made.loss)


def test_an_object_with_call() -> None:
    model = nn.MLP(2, [3, 1], rng=random.Random(1))
    compiled = wengert.compile(model)
    X = [[0.1, 0.2], [0.3, -0.4]]
    for _ in range(2):
        same(compiled.mean(X), batch_of(model, X), model.parameters())
        same(compiled(X[0]), model(X[0]), model.parameters())
    assert "calls" in compiled.report()


def test_what_a_compiled_function_says_of_itself() -> None:
    loss, *_ = linear()
    assert loss.__name__ == "loss"
    assert "loss" in repr(loss)
    assert "not called yet" in loss.report()
    with pytest.raises(ArgumentError, match="call"):
        loss.source()
    loss.mean([1.0], [2.0])
    report = loss.report()
    assert "a batch: 1 call on" in report
    with pytest.raises(ArgumentError, match="fortran"):
        loss.source("fortran")
