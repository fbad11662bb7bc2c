"""Derivatives of the incomplete gamma and beta functions, and of their densities, in their shapes: beside mpmath."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.ops import BY_NAME, shapes
from wengert.ops.finite_differences import slopes

mpmath = pytest.importorskip("mpmath")
pytestmark = pytest.mark.mpmath

SHAPES = (0.01, 0.1, 0.5, 1.0, 2.5, 9.0, 63.5, 150.5, 2000.0)


def exact_gamma(a: Any, x: Any, upper: bool) -> Any:
    """P or -Q, whichever is small: they have the same derivatives."""
    return -mpmath.gammainc(a, x, regularized=True) if upper else mpmath.gammainc(a, 0, x, regularized=True)


def exact_beta(a: Any, b: Any, x: Any, upper: bool) -> Any:
    """I or I - 1 (https://dlmf.nist.gov/8.17.E8)."""
    weight = x**a * (1 - x) ** b / mpmath.beta(a, b)
    if upper:
        return -weight / b * mpmath.hyp2f1(a + b, 1, b + 1, 1 - x)
    return weight / a * mpmath.hyp2f1(a + b, 1, a + 1, x)


def differences(f: Callable[..., Any], *at: Any) -> dict[tuple[int, ...], Any]:
    """First and second derivatives with respect to each, and the mixed one, by tiny steps in 80 digits."""
    steps = [x * mpmath.mpf(10) ** -14 for x in at]

    def moved(*by: int) -> Any:
        return f(*[x + k * step for x, k, step in zip(at, by, steps, strict=True)])

    if len(at) == 1:
        (h,) = steps
        return {(1,): (moved(1) - moved(-1)) / (2 * h), (2,): (moved(1) - 2 * moved(0) + moved(-1)) / h**2}
    h, k = steps
    mixed = (moved(1, 1) - moved(1, -1) - moved(-1, 1) + moved(-1, -1)) / (4 * h * k)
    return {
        (1, 0): (moved(1, 0) - moved(-1, 0)) / (2 * h),
        (0, 1): (moved(0, 1) - moved(0, -1)) / (2 * k),
        (2, 0): (moved(1, 0) - 2 * moved(0, 0) + moved(-1, 0)) / h**2,
        (1, 1): mixed,
    }


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.nightly)])
def test_gammainc_in_its_shape(count: int) -> None:
    rng = random.Random(count)
    for _ in range(count):
        a = rng.choice(SHAPES) * rng.uniform(0.8, 1.25)
        x = abs(rng.choice((rng.gauss(a, 3.0 * math.sqrt(a)), a * 10.0 ** rng.uniform(-4.0, 0.5))))
        with mpmath.workdps(80):
            wanted = differences(lambda a, x=x, upper=x > a: exact_gamma(a, mpmath.mpf(x), upper), mpmath.mpf(a))
        value, slope = Value(a), Value(a)
        for row, leaf, sign in ((wengert.gammainc, value, 1.0), (wengert.gammaincc, slope, -1.0)):
            y = row(leaf, x)
            y.backward()
            assert y.data == row(a, x)
            assert leaf.grad == pytest.approx(sign * float(wanted[1,]), rel=1e-12, abs=1e-290), (a, x)
        second = wengert.grad(wengert.grad(lambda a, x=x: wengert.gammainc(a, x)))(a)
        assert second == pytest.approx(float(wanted[2,]), rel=1e-11, abs=1e-290), (a, x)


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.nightly)])
def test_betainc_in_its_shapes(count: int) -> None:
    rng = random.Random(count)
    for _ in range(count):
        a, b = (rng.choice(SHAPES) * rng.uniform(0.8, 1.25) for _ in range(2))
        mean = a / (a + b)
        x = rng.choice((rng.gauss(mean, 3.0 * math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))), rng.random()))
        x = min(max(x, 1e-12), 1.0 - 1e-12)
        with mpmath.workdps(80):
            wanted = differences(
                lambda a, b, x=x, upper=x > mean: exact_beta(a, b, mpmath.mpf(x), upper), mpmath.mpf(a), mpmath.mpf(b)
            )
        p, q = Value(a), Value(b)
        y = wengert.betainc(p, q, x)
        y.backward()
        assert y.data == wengert.betainc(a, b, x)
        assert p.grad == pytest.approx(float(wanted[1, 0]), rel=1e-12, abs=1e-290), (a, b, x)
        assert q.grad == pytest.approx(float(wanted[0, 1]), rel=1e-12, abs=1e-290), (a, b, x)
        curvature = wengert.hessian(lambda s, x=x: wengert.betainc(s[0], s[1], x))([a, b])
        assert curvature[0][0] == pytest.approx(float(wanted[2, 0]), rel=1e-10, abs=1e-290), (a, b, x)
        assert curvature[0][1] == pytest.approx(float(wanted[1, 1]), rel=1e-10, abs=1e-290), (a, b, x)


CASES: list[tuple[Callable[..., Any], Callable[..., Any], list[float]]] = [
    (wengert.gammainc, lambda a, x: exact_gamma(a, x, False), [2.5, 1.7]),
    (wengert.gammaincc, lambda a, x: -exact_gamma(a, x, True), [0.4, 5.7]),
    (wengert.gamma_pdf, lambda a, x: x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a), [2.5, 1.7]),
    (wengert.betainc, lambda a, b, x: exact_beta(a, b, x, False), [2.5, 3.5, 0.3]),
    (wengert.betainc, lambda a, b, x: 1 + exact_beta(a, b, x, True), [0.7, 3.5, 0.7]),
    (wengert.beta_pdf, lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b), [2.5, 0.5, 0.3]),
]


@pytest.mark.parametrize("place", range(len(CASES)))
def test_derivatives_with_respect_to_everything(place: int) -> None:
    """The Hessian, with shapes and x together, and a third derivative in each of them."""
    row, exact, at = CASES[place]
    count = range(len(at))

    def derivative(*orders: int) -> float:
        with mpmath.workdps(60):
            return float(mpmath.diff(exact, tuple(map(mpmath.mpf, at)), orders))

    result = wengert.hessian(lambda xs: row(*xs))(at)
    for i in count:
        for j in count:
            expected = derivative(*[(k == i) + (k == j) for k in count])
            assert result[i][j] == pytest.approx(expected, rel=1e-11), (i, j)
        third: Any = lambda t, i=i: row(*at[:i], t, *at[i + 1 :])  # noqa: E731
        for _ in range(3):
            third = wengert.grad(third)
        assert third(at[i]) == pytest.approx(derivative(*[3 * (k == i) for k in count]), rel=1e-9), i


def test_a_shape_is_fitted() -> None:
    """The most likely shapes of a beta distribution, by Newton's method: a check that needs their derivatives."""
    data = [0.11, 0.29, 0.33, 0.42, 0.47, 0.52, 0.61, 0.64, 0.72, 0.91]
    loss: Any = lambda s: -sum(wengert.log(wengert.beta_pdf(s[0], s[1], x)) for x in data)  # noqa: E731
    at = [2.0, 2.0]
    for _ in range(12):
        (p, q), (r, s) = wengert.hessian(loss)(at)
        u, v = wengert.grad(loss)(at)
        at = [at[0] - (s * u - q * v) / (p * s - q * r), at[1] - (p * v - r * u) / (p * s - q * r)]
    stats = pytest.importorskip("scipy.stats")
    assert at == pytest.approx(stats.beta.fit(data, floc=0, fscale=1)[:2], rel=1e-4)


def test_edges() -> None:
    def slope(row: Any, a: float, *rest: float) -> float:
        leaf = Value(a)
        row(leaf, *rest).backward()
        return leaf.grad

    for x in (0.0, 1e5, 1e300, inf):
        assert slope(wengert.gammainc, 2.5, x) == 0.0
    for x in (5e-324, 1e-300, 1e-10):
        assert slope(wengert.gammainc, 0.001, x) < 0.0
        assert slope(wengert.betainc, 0.001, 3.5, x) < 0.0
    for x in (0.0, 1.0):
        assert slope(wengert.betainc, 2.5, 3.5, x) == 0.0
    for a, x in ((0.0, 1.0), (-1.0, 1.0), (1e7, 1e7), (2.5, -1.0), (2.5, nan), (nan, 1.0), (inf, 1.0)):
        assert math.isnan(slope(wengert.gammainc, a, x)), (a, x)
        assert math.isnan(slope(wengert.betainc, a, 2.5, x / 2e7)) == (not (1e-6 <= a <= 1e6 and x >= 0.0))
    assert slope(wengert.gammainc, 1e6, 1e6) == pytest.approx(-1e-3 / math.sqrt(2.0 * math.pi), rel=1e-5)
    assert type(wengert.gammainc(2.5, 1.0)) is float
    assert not hasattr(Value(1.0), "gammainc")
    y = wengert.gammainc(Value(2.5), Value(1.5))
    assert (y._op, wengert.gammainc(2.5, Value(1.5))._op) == ("P", "P")


def test_power_series() -> None:
    x, y = shapes.Jet(3, {(1, 0): 1.0}), shapes.Jet(3, {(0, 1): 1.0})
    quotient = (x + 2.0) * (3.0 - y) / (x * y + 2.0)
    for powers, expected in {(0, 0): 3.0, (1, 0): 1.5, (0, 1): -1.0, (1, 1): -2.0, (1, 2): 0.5, (2, 1): -0.75}.items():
        assert quotient.terms[powers] == expected
    assert (1.0 / (x + 1.0)).terms == {(0, 0): 1.0, (1, 0): -1.0, (2, 0): 1.0, (3, 0): -1.0}
    assert (x + y).exp().terms[1, 2] == pytest.approx(0.5)


@pytest.mark.once  # what is compiled calls Python
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_in_a_compiled_function(backend: str) -> None:
    pytest.importorskip("numpy")
    a = Value(2.5)
    compiled = wengert.compile(
        lambda x: wengert.gammainc(a, x) * wengert.betainc(2.0, a, x / 3.0) + wengert.gamma_pdf(a, x), backend=backend
    )
    for x in (1.0, 1.2, 2.0):
        result = []
        for f in (compiled, compiled.function):
            a.grad = 0.0
            y = f(x)
            y.backward()
            result.append((y.data, a.grad))
        assert result[0] == pytest.approx(result[1], rel=1e-13)
    slopes = wengert.compile(wengert.grad(lambda a, x: wengert.gammainc(a, x), argnums=(0, 1)), backend=backend)
    for a_, x in ((2.0, 1.0), (2.5, 1.5)):
        assert slopes(a_, x) == pytest.approx(slopes.function(a_, x), rel=1e-13)
    assert "uncompiled" not in compiled.report() + slopes.report()


def test_orders_are_whole_numbers_and_operands_are_numbers() -> None:
    """The rows of derivatives have their orders among their operands."""
    gamma, beta = BY_NAME["gammainc by shape"], BY_NAME["betainc by shapes"]
    for order in (0.5, -1.0, math.inf, math.nan, 21.0):
        assert math.isnan(gamma.value(order, 2.0, 1.0))
        assert all(map(math.isnan, gamma.partials(0.0, order, 2.0, 1.0)))
        assert math.isnan(beta.value(order, 0.0, 2.0, 1.0, 0.5))
        assert all(map(math.isnan, beta.partials(0.0, 0.0, order, 2.0, 1.0, 0.5)))

    class Symbol:
        _apply_op = None

    with pytest.raises(TypeError, match="needs numbers"):
        gamma.value(1.0, Symbol(), 1.0)


def test_a_step_that_does_not_move_the_number_tells_nothing() -> None:
    (slope,) = slopes(lambda x: [x * x], 1e20, 1.0)
    assert math.isnan(slope.slope)
    assert slope.error == inf
