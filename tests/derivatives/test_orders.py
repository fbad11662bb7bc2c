"""Derivatives of any order: of every row, of polynomials, at kinks, through long chains, by rules of a user's own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import combinations_with_replacement
from math import nan
from typing import Any

import pytest

import wengert
from tests.ops.test_table import mp_derivative, points
from tools.qa.oracles import CONSTANT, ROWS, mp_oracle
from wengert import Value, grad, hessian, jvp, value_and_grad
from wengert.errors import OperationError

# ------------------------------------------------------------------------------------- any order


def test_sine_to_the_tenth_order() -> None:
    cycle = [math.sin, math.cos, lambda x: -math.sin(x), lambda x: -math.cos(x)]
    f: Callable[..., Any] = wengert.sin
    for order in range(11):
        for x in (0.7, 0.0, -2.5):
            assert f(x) == pytest.approx(cycle[order % 4](x), rel=1e-15, abs=1e-16)
        f = grad(f)


def test_polynomials_end() -> None:
    """The derivative of order n + 1 of a polynomial of degree n is 0, not a rounding error."""
    f: Callable[..., Any] = lambda x: x**3 - 2.0 * x**2  # noqa: E731
    for expected in (0.3**3 - 0.18, 3 * 0.09 - 1.2, 6 * 0.3 - 4.0, 6.0, 0.0, 0.0):
        assert f(0.3) == pytest.approx(expected, rel=1e-14, abs=0.0)
        f = grad(f)
    assert grad(grad(grad(lambda x: x**2)))(0.0) == 0.0
    assert grad(grad(lambda x: x**2))(0.0) == 2.0
    assert grad(grad(lambda x: x**1))(0.0) == 0.0
    assert grad(lambda x: x**0.5)(4.0) == 0.25


@pytest.mark.mpmath
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_second_and_third_derivatives_of_every_row(row: Any) -> None:
    import mpmath

    oracle = mp_oracle(row)
    if oracle is None:
        pytest.skip(f"mpmath has no {row.name}: tests/ops/test_table.py holds it to differences to second order")

    with mpmath.mp.workdps(90):
        for numbers in points(row, 2, seed=7):
            by = [i for i in range(len(numbers)) if (row.name, i) not in CONSTANT]
            for order in (2, 3):
                chosen = list(combinations_with_replacement(by, order))
                for places in random.Random(order).sample(chosen, min(6, len(chosen))):
                    f: Callable[..., Any] = row
                    for place in places:
                        f = grad(f, place)
                    orders = tuple(places.count(i) for i in range(len(numbers)))
                    expected = mp_derivative(oracle, numbers, orders)
                    actual = f(*numbers)
                    assert abs(actual - expected) <= 1e-11 * max(abs(expected), 0.05), (numbers, places, expected)


SMOOTH = (
    "tanh sigmoid logsigmoid softplus silu gelu erf erfc sin cos tan atan asin sinh cosh asinh atanh exp expm1 log1p"
)
SMOOTH += " exp2 gaussian square"


@pytest.mark.mpmath
@pytest.mark.parametrize("name", SMOOTH.split())
def test_every_order_at_zero(name: str) -> None:
    """Where rules branch, or hold an absolute value, though the function is smooth."""
    import mpmath

    row = wengert.ops.BY_NAME[name]
    oracle = mp_oracle(row)
    assert oracle is not None
    with mpmath.mp.workdps(60):
        series = mpmath.taylor(oracle, 0, 5)
        f: Callable[..., Any] = row
        for order in range(1, 6):
            f = grad(f)
            expected = series[order] * mpmath.factorial(order)
            for zero in (0.0, -0.0):
                assert f(zero) == pytest.approx(float(expected), rel=1e-12, abs=1e-14), order


@pytest.mark.mpmath
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "atan", "silu", "gelu", "erf", "logsigmoid"])
def test_higher_orders_in_the_tails(name: str) -> None:
    import mpmath

    row = wengert.ops.BY_NAME[name]
    oracle = mp_oracle(row)
    assert oracle is not None
    with mpmath.mp.workdps(200):
        for x in (-8.0, -6.0, -1.0, 1.0, 6.0, 12.0):
            second, third = (mpmath.diff(oracle, x, n) for n in (2, 3))
            assert grad(grad(row))(x) == pytest.approx(float(second), rel=1e-11, abs=1e-300)
            assert grad(grad(grad(row)))(x) == pytest.approx(float(third), rel=1e-11, abs=1e-300)


def test_powers_at_the_edges() -> None:
    f = lambda x, y: x**y  # noqa: E731
    both = hessian(f, (0, 1))
    assert both(2.0, 0.0)[0] == pytest.approx((0.0, 0.5), rel=1e-15)
    assert both(2.0, 0.0)[1] == pytest.approx((0.5, math.log(2.0) ** 2), rel=1e-15)
    assert both(-2.0, 0.0)[0][0] == 0.0
    assert both(2.0, 3.0)[0] == pytest.approx((12.0, 4.0 * (1.0 + 3.0 * math.log(2.0))), rel=1e-15)
    assert hessian(lambda x: x**2)(0.0) == 2.0
    assert hessian(lambda x: x**-1)(2.0) == pytest.approx(0.25)
    assert grad(grad(lambda x: x**3.0))(-2.0) == -12.0
    assert grad(grad(lambda x: 2.0**x))(3.0) == pytest.approx(8.0 * math.log(2.0) ** 2, rel=1e-15)


def test_kinks_have_no_second_derivative() -> None:
    for f in (wengert.relu, abs, wengert.sign, lambda x: wengert.maximum(x, x), lambda x: wengert.max([x, 0.0, x])):
        assert grad(grad(f))(0.0) == 0.0
    assert grad(abs)(0.0) == grad(wengert.relu)(0.0) == 0.0
    assert grad(lambda x: wengert.max(x))([1.0, 3.0, 3.0]) == [0.0, 0.5, 0.5]
    assert hessian(lambda x: wengert.max(x))([1.0, 3.0, 3.0]) == [[0.0] * 3] * 3
    assert hessian(lambda x: (x[0] * x[1]).relu())([1.0, 2.0]) == [[0.0, 1.0], [1.0, 0.0]]
    assert hessian(lambda x: (x[0] * x[1]).relu())([-1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]


def test_a_branch_that_was_not_taken_poisons_nothing() -> None:
    assert grad(grad(lambda x: wengert.where(x > 0.0, x * x, x.log())))(2.0) == 2.0
    assert grad(grad(lambda x: wengert.where(x > 0.0, x * x, (x - 2.0).log())))(2.0) == 2.0
    for x in (1e-200, 1e200, -1e200, 30.0):
        assert math.isfinite(grad(grad(wengert.atan))(x))
        assert math.isfinite(grad(grad(wengert.sigmoid))(x))
        assert math.isfinite(grad(grad(wengert.softplus))(x))


# ------------------------------------------------------------------------------------- depth


def chain(length: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(length):
            x = x * 0.999999 + 1e-7
        return x * x

    return f


@pytest.mark.slow
def test_a_long_chain() -> None:
    half = 500_000 if wengert.engine.compiled else 50_000
    slope = 0.999999**half
    value, first = value_and_grad(chain(half))(1.0)
    assert first == pytest.approx(2.0 * math.sqrt(value) * slope, rel=1e-9)
    assert jvp(chain(half), (1.0,), (1.0,)) == pytest.approx((value, first), rel=1e-12)


@pytest.mark.slow
def test_a_second_derivative_through_a_long_chain() -> None:
    assert grad(grad(chain(20_000)))(1.0) == pytest.approx(2.0 * 0.999999**40_000, rel=1e-9)


def test_a_loop_of_gradients_stays_linear() -> None:
    """Each step differentiates its own nodes, not the history under the Value that it starts from."""
    steps: list[int] = []

    def descend(x: Any) -> Any:
        for _ in range(40):
            before = wengert.ops.ieee.tick()
            x = x - 0.1 * grad(lambda y: (y * y).sin())(x)
            steps.append((wengert.ops.ieee.tick() - before) >> 16)
        return x

    if not wengert.engine.compiled:  # the extension counts by itself
        descend(Value(0.5))
        assert max(steps) == min(steps)
    assert grad(descend)(0.5) == pytest.approx((descend(0.5 + 1e-6) - descend(0.5 - 1e-6)) / 2e-6, rel=1e-6)


# ------------------------------------------------------------------------------------- operations of one's own


def test_operations_of_ones_own() -> None:
    cube = wengert.op("cube", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    assert [f(2.0) for f in (grad(cube), grad(grad(cube)), grad(grad(grad(cube))))] == [12.0, 12.0, 6.0]
    length = wengert.op(
        "length", value=lambda *xs: math.sqrt(sum(x * x for x in xs)), partials=lambda out, *xs: [x / out for x in xs]
    )
    h = hessian(lambda x: length(x))([3.0, 4.0])
    assert h[0] == pytest.approx([16 / 125, -12 / 125], rel=1e-14)
    assert h[1] == pytest.approx([-12 / 125, 9 / 125], rel=1e-14)


def test_a_rule_for_floats_only_has_no_second_derivative() -> None:
    wave = wengert.op("wave", value=math.sin, partials=lambda out, x: math.cos(x), arity=1)
    assert grad(wave)(0.5) == math.cos(0.5)
    with pytest.raises(OperationError, match=r"wave has no further derivative: .*wengert\.cos for math\.cos"):
        grad(grad(wave))(0.5)
    # Where nothing of a second order passes through it, it may stand.
    assert hessian(lambda x: x * x + wave(0.5))(1.0) == 2.0
    short = wengert.op("short", value=lambda x, y: x + y, partials=lambda out, x, y: [1.0] * (2 - isinstance(x, Value)))
    with pytest.raises(OperationError, match="short: expected a partial derivative for each operand, not"):
        grad(grad(lambda x: short(x, x)))(1.0)


def test_nothing_is_spoilt_by_nan() -> None:
    assert math.isnan(grad(wengert.exp)(nan))
    assert grad(lambda x: x[0] * 2.0 + x[1])([1.0, nan]) == [2.0, 1.0]
