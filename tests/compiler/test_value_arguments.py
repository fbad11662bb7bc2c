"""Values as the arguments of a compiled function: gradients flow to them and through them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import wengert
from tests.compiler.models import flat, lifted, move, same, values
from wengert import Value

np = pytest.importorskip("numpy")


def test_gradients_flow_to_arguments_and_through_them() -> None:
    generator = random.Random(26)
    w = values(generator, 3, 4)
    inner = values(generator, 4)
    scale = Value(0.8)

    def score(x: list[Value], factor: Value) -> Any:
        return sum((wengert.dot(row, x) * factor).tanh() for row in w)

    compiled = wengert.compile(score)
    for _ in range(3):
        everything = [*flat(w), *inner, scale]
        results = []
        for function in (compiled, score):
            before = [(v * v).exp() * 0.3 for v in inner]
            results.append(function(before, scale * scale) ** 2 * 3.0 + inner[0])
        same(*results, everything)
        move(everything, 27)
    lifted(compiled, 10)


def test_a_value_argument_twice() -> None:
    x = Value(1.3)
    compiled = wengert.compile(lambda a, b: a * b + a.exp())
    same(compiled(x, x), x * x + x.exp(), [x])
    same(compiled([x, x][0], 2.0 * x), x * (2.0 * x) + x.exp(), [x])


def test_a_value_argument_that_is_a_captured_parameter_too() -> None:
    w, v = Value(1.3), Value(0.4)
    compiled = wengert.compile(lambda a: w * a + a * a * v)
    for x in (v, w, v):
        same(compiled(x), w * x + x * x * v, [w, v])


def test_a_numpy_array_of_values() -> None:
    xs = np.array([Value(0.5), Value(-0.3), Value(0.9)], dtype=object)
    w = values(random.Random(28), 3)
    compiled = wengert.compile(lambda x: sum(a * b * b for a, b in zip(w, x, strict=True)))
    for _ in range(2):
        same(compiled(xs), compiled.function(xs), [*w, *xs])
        move([*w, *xs], 3)
    lifted(compiled, 6)


def test_compiled_calls_in_a_chain() -> None:
    """The result of one is the argument of the next."""
    w = values(random.Random(29), 3)
    compiled = wengert.compile(lambda h, x: (w[0] * h + w[1] * x + w[2]).tanh())
    results = []
    for function in (compiled, compiled.function):
        h = Value(0.1)
        for x in (0.5, -0.2, 0.9, 0.3):
            h = function(h, x)
        results.append(h * h)
    same(*results, w)


def test_a_value_argument_that_is_not_used() -> None:
    w, a, b = Value(0.7), Value(1.0), Value(2.0)
    loss = wengert.compile(lambda a, b: w * a)
    for _ in range(2):
        same(loss(a, b), w * a, [w, a, b])
        same(loss(b, a), w * b, [w, a, b])
