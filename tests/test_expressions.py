"""The expressions E1 to E14 of the tutorials that Wengert descends from, as a learner types them.

Every number below is either exact in binary, or was computed here with Python's own floats or in closed form.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from wengert import Value

TIGHT: dict[str, Any] = {"rel": 1e-15, "abs": 1e-16}


def test_E1_the_expression_with_every_operator() -> None:
    a = Value(-4.0)
    b = Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert e.data == -7.0
    assert g.data == pytest.approx(49 / 2 + 10 / 49, **TIGHT)
    by_e = -7.0 - 20.0 / (-7.0) ** 3  # g is e^2 / 2 + 10 / e^2
    assert a.grad == pytest.approx(by_e * e_slopes()[0], **TIGHT)
    assert b.grad == pytest.approx(by_e * e_slopes()[1], **TIGHT)
    assert [f"{x:.4f}" for x in (g.data, a.grad, b.grad)] == ["24.7041", "138.8338", "645.5773"]


def e_slopes() -> tuple[float, float]:
    """The derivatives of E1's e at a = -4, b = 2, where relu(b + a) is off and relu(b - a) is on.

    c ends as 4 c0 + 3 - a with c0 = a + b, and d as 12 d0 + relu(b - a) with d0 = a b + b^3.
    """
    a, b = -4.0, 2.0
    return 4 - 1 - (12 * b - 1), 4 - (12 * (a + 3 * b * b) + 1)


def test_E2_the_sanity_check() -> None:
    x = Value(-4.0)
    z = 2 * x + 2 + x
    q = z.relu() + z * x
    h = (z * z).relu()
    y = h + q + q * x
    y.backward()
    assert (y.data, x.grad) == (-20.0, 46.0)


def test_E3_the_first_graph() -> None:
    a = Value(2.0, label="a")
    b = Value(-3.0, label="b")
    c = Value(10.0, label="c")
    e = a * b
    e.label = "e"
    d = e + c
    d.label = "d"
    f = Value(-2.0, label="f")
    L = d * f
    L.label = "L"
    L.backward()
    assert (e.data, d.data, L.data) == (-6.0, 4.0, -8.0)
    assert (a.grad, b.grad, c.grad, f.grad) == (6.0, -4.0, -2.0, 4.0)
    assert (e.grad, d.grad, L.grad) == (-2.0, -2.0, 1.0)
    assert [v.label for v in (a, b, c, d, e, f, L)] == list("abcdefL")


def test_E4_one_step_up_the_gradient() -> None:
    a, b, c, f = Value(2.0), Value(-3.0), Value(10.0), Value(-2.0)
    L = (a * b + c) * f
    L.backward()
    for leaf in (a, b, c, f):
        leaf.data += 0.01 * leaf.grad
    L = (a * b + c) * f
    assert L.data == pytest.approx(-7.286496, **TIGHT)


BIAS = 6.8813735870195432  # so that n is the inverse hyperbolic tangent of the root of one half


def neuron() -> tuple[Value, Value, Value, Value, Value, Value]:
    x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
    w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
    b = Value(BIAS, label="b")
    x1w1 = x1 * w1
    x2w2 = x2 * w2
    x1w1x2w2 = x1w1 + x2w2
    n = x1w1x2w2 + b
    n.label = "n"
    return x1, x2, w1, w2, b, n


def check_neuron(x1: Value, x2: Value, w1: Value, w2: Value, b: Value, n: Value, o: Value) -> None:
    assert n.data == BIAS - 6.0
    assert o.data == pytest.approx(math.sqrt(0.5), rel=1e-15)
    slope = 1 / math.cosh(BIAS - 6.0) ** 2
    assert slope == pytest.approx(0.5, rel=1e-15)
    near: dict[str, Any] = {"rel": 2e-15, "abs": 0.0}
    assert n.grad == pytest.approx(slope, **near)
    assert x1.grad == pytest.approx(-3 * slope, **near)
    assert x2.grad == pytest.approx(slope, **near)
    assert w1.grad == pytest.approx(2 * slope, **near)
    assert w2.grad == 0.0
    assert b.grad == pytest.approx(slope, **near)


def test_E5_the_neuron() -> None:
    x1, x2, w1, w2, b, n = neuron()
    o = n.tanh()
    o.label = "o"
    o.backward()
    check_neuron(x1, x2, w1, w2, b, n, o)


def test_E6_the_neuron_with_tanh_taken_apart() -> None:
    x1, x2, w1, w2, b, n = neuron()
    e = (2 * n).exp()
    o = (e - 1) / (e + 1)
    o.backward()
    check_neuron(x1, x2, w1, w2, b, n, o)


def test_E7_the_neuron_by_hand_node_by_node() -> None:
    x1, x2 = Value(2.0), Value(0.0)
    w1, w2 = Value(-3.0), Value(1.0)
    b = Value(BIAS)
    x1w1 = x1 * w1
    x2w2 = x2 * w2
    x1w1x2w2 = x1w1 + x2w2
    n = x1w1x2w2 + b
    o = n.tanh()
    o.grad = 1.0
    o._backward()
    n._backward()
    b._backward()
    x1w1x2w2._backward()
    x2w2._backward()
    x1w1._backward()
    check_neuron(x1, x2, w1, w2, b, n, o)
    assert x1w1.grad == x2w2.grad == x1w1x2w2.grad == n.grad


def test_E8_a_leaf_in_a_product_and_a_power() -> None:
    a, b = Value(2.0), Value(3.0)
    y = a * b + b**2
    y.backward()
    assert (y.data, a.grad, b.grad) == (15.0, 3.0, 8.0)


def test_E9_a_leaf_added_to_itself() -> None:
    a = Value(3.0, label="a")
    b = a + a
    b.backward()
    assert (b.data, a.grad) == (6.0, 2.0)


def test_E10_backward_twice_without_zeroing() -> None:
    a = Value(3.0)
    b = a * 2
    b.backward()
    assert a.grad == 2.0
    b = a * 2
    b.backward()
    assert a.grad == 4.0


def test_E11_a_square_of_a_sum() -> None:
    a, b, c = Value(2.0), Value(3.0), Value(1.0)
    y = (a * b + c) ** 2
    y.backward()
    assert (y.data, a.grad, b.grad, c.grad) == (49.0, 42.0, 28.0, 14.0)


def test_E12_a_shared_leaf() -> None:
    a, b = Value(2.0), Value(3.0)
    c = a * b
    d = c + b
    L = d * 2
    L.backward()
    assert (c.data, d.data, L.data) == (6.0, 9.0, 18.0)
    assert (a.grad, b.grad) == (6.0, 6.0)


def test_E13_the_parabola_and_its_forward_difference() -> None:
    def f(x: Any) -> Any:  # for floats and Values alike
        return 3 * x**2 - 4 * x + 5

    x = Value(3.0)
    y = f(x)
    y.backward()
    assert (y.data, x.grad) == (20.0, 14.0)
    h = 1e-8
    assert f"{(f(3.0 + h) - f(3.0)) / h:.8f}" == "14.00000009"


def test_E14_differences_of_a_product_and_a_sum() -> None:
    h = 1e-4
    numbers = {"a": 2.0, "b": -3.0, "c": 10.0}
    leaves = {name: Value(number, label=name) for name, number in numbers.items()}
    d = leaves["a"] * leaves["b"] + leaves["c"]
    d.backward()
    assert d.data == 4.0
    assert [leaf.grad for leaf in leaves.values()] == [-3.0, 2.0, 1.0]
    for name, leaf in leaves.items():
        moved = {**numbers, name: numbers[name] + h}
        assert (moved["a"] * moved["b"] + moved["c"] - d.data) / h == pytest.approx(leaf.grad, rel=1e-10)
