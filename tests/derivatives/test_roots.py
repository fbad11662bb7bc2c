"""Roots and fixed points, and their derivatives: beside mpmath, SciPy, closed forms and differences."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from math import nan
from typing import Any

import pytest

import wengert
from wengert import Value, cos, exp, fixed_point, grad, hessian, jvp, log, normal_cdf, root, sin, sqrt
from wengert.errors import ArgumentError, OperandError, RootError
from wengert.graph import Graph
from wengert.ops import BY_NAME, FLOATS, implicit


def derivatives(f: Callable[..., Any], x: float, orders: int) -> list[float]:
    found = []
    for _ in range(orders + 1):
        found.append(float(f(x)))
        f = grad(f)
    return found


EQUATIONS: list[Any] = [  # a residual by a module, with x, a; the start; the point a
    (lambda m, x, a: x * x - a, 1.0, 2.0),
    (lambda m, x, a: x - a * m.sin(x) - 1.2, 1.0, 0.4),
    (lambda m, x, a: x * m.exp(x) - a, 0.5, 1.7),
    (lambda m, x, a: m.cos(a * x) - x, 0.5, 0.8),
    (lambda m, x, a: x**3 + a * x - 1.0, 1.0, 0.3),
    (lambda m, x, a: m.log(x) + x * a, 0.5, 1.3),
    (lambda m, x, a: m.tanh(x) * a + x / 3.0 - 0.5, 0.0, 0.9),
    (lambda m, x, a: x**a - 2.0 + 0.1 * x, 1.5, 2.5),
]


@pytest.mark.mpmath
@pytest.mark.parametrize("number", range(len(EQUATIONS)))
def test_derivatives_to_third_order(number: int) -> None:
    """mpmath finds the root in 40 digits, also at points beside the given one, whose differences are derivatives."""
    import mpmath

    f, start, a = EQUATIONS[number]
    found = derivatives(lambda a: root(lambda x: f(wengert, x, a), start), a, 3)
    with mpmath.workdps(40):
        solved = lambda a: mpmath.findroot(lambda x: f(mpmath, x, a), found[0], tol=1e-70)  # noqa: E731
        expected = [mpmath.diff(solved, mpmath.mpf(a), n, h=mpmath.mpf(10) ** -8) for n in range(4)]
    assert found == pytest.approx([float(x) for x in expected], rel=1e-10, abs=1e-12)


def test_beside_brentq() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = random.Random(1)
    for f, *_ in EQUATIONS:
        a = rng.uniform(0.5, 1.5)
        low, high = 0.01, 3.0
        if f(math, low, a) * f(math, high, a) < 0.0:
            want = optimize.brentq(lambda x, f=f, a=a: f(math, x, a), low, high, xtol=1e-15)
            found = root(lambda x, a, f=f: f(wengert, x, a), 1.0, a, bracket=(low, high))
            assert found == pytest.approx(want, rel=1e-13)


def price(spot: Any, strike: Any, years: Any, rate: Any, sigma: Any) -> Any:
    d = (log(spot / strike) + (rate + sigma * sigma / 2.0) * years) / (sigma * sqrt(years))
    return spot * normal_cdf(d) - strike * exp(-rate * years) * normal_cdf(d - sigma * sqrt(years))


def volatility(spot: Any, strike: Any, years: Any, rate: Any, paid: Any) -> Any:
    return root(lambda sigma: price(spot, strike, years, rate, sigma) - paid, 0.3)


def test_implied_volatility() -> None:
    """The derivative with respect to the price is 1 / vega, and those with respect to the others -greek / vega."""
    for sigma in (0.05, 0.2, 0.7):
        point = (100.0, 105.0, 0.75, 0.03)
        paid = price(*point, sigma)
        greeks = grad(price, argnums=(0, 1, 2, 3, 4))(*point, sigma)
        assert volatility(*point, paid) == pytest.approx(sigma, rel=1e-12)
        found = grad(volatility, argnums=(0, 1, 2, 3, 4))(*point, paid)
        expected = [-greek / greeks[4] for greek in greeks[:4]] + [1.0 / greeks[4]]
        assert found == pytest.approx(expected, rel=1e-9)


def test_kepler() -> None:
    """At its pericentre dE/dM is 1 / (1 - e); differences of the gradient are the Hessian."""
    anomaly: Any = lambda p: root(lambda x: x - p[0] * sin(x) - p[1], p[1])  # noqa: E731
    assert grad(anomaly)([0.5, 0.0]) == pytest.approx([0.0, 2.0])
    h, second = 1e-5, hessian(anomaly)([0.9, 0.7])
    for k in range(2):
        sides = [grad(anomaly)([0.9 + s * h * (k == 0), 0.7 + s * h * (k == 1)]) for s in (1.0, -1.0)]
        assert second[k] == pytest.approx([(x - y) / (2.0 * h) for x, y in zip(*sides, strict=True)], rel=1e-6)


def test_values_from_outside_and_arguments() -> None:
    a, b, c = Value(3.0), Value(2.0), Value(5.0)
    x = root(lambda x, b: a * x * x - b * c, 1.0, b)
    x.backward()
    assert x.data == pytest.approx(math.sqrt(10.0 / 3.0), rel=1e-15)
    assert [v.grad for v in (a, b, c)] == pytest.approx([-x.data / 6.0, x.data / 4.0, x.data / 10.0])
    start = Value(1.0)
    y = root(lambda x: x * x - a, start)
    y.backward()
    assert start.grad == 0.0
    assert type(root(lambda x: x * x - 2.0, start)) is float
    with wengert.no_grad():
        assert root(lambda x: x * x - a, 1.0).is_leaf
    assert jvp(lambda a: root(lambda x: x * x - a, 1.0), (4.0,), (1.0,)) == (2.0, 0.25)


def test_a_root_is_one_node_and_its_history_is_not_walked() -> None:
    y = Value(1.0)
    for _ in range(300):
        y = root(lambda z, y=y: z - y + 0.01 * z * z, y)
    assert len(Graph(y)) == 301
    assert y.data == pytest.approx(1.0 / 4.0, rel=0.02)  # of y' = -y * y, from 1 to time 3


def test_a_root_of_a_root() -> None:
    """Inside, y with y**3 + y = x * a: for x * y = 1 it is x**4 * a = 1 + x * x."""
    nested = lambda a: root(lambda x: x * root(lambda y: y**3 + y - x * a, 1.0) - 1.0, 1.0)  # noqa: E731
    plain = lambda a: root(lambda x: x**4 * a - 1.0 - x * x, 1.0)  # noqa: E731
    for a in (0.7, 2.5):
        assert derivatives(nested, a, 3) == pytest.approx(derivatives(plain, a, 3), rel=1e-9)
    node: Any = nested(Value(2.5))
    numbers = [x.data if isinstance(x, Value) else x for x in node._operands]
    assert node._row.value(*numbers) == pytest.approx(node.data, rel=1e-14)  # by the recorded steps alone


def test_slopes_are_rows_with_slopes() -> None:
    """What programs call: a row for each derivative, which has rows for its own derivatives."""
    a = Value(0.8)
    x: Any = root(lambda x: wengert.maximum(x, -1.0) * exp(a * x) + wengert.where(x > 0.0, x**1.5, x) - a, 0.5)
    numbers = [x.data, *[y.data if isinstance(y, Value) else y for y in x._operands]]
    terms = implicit._Terms(len(numbers))
    first = x._row.partials.over(implicit.TERMS)(*terms.inputs)
    assert first[0] == 0.0
    h = 1e-6
    for number, slope in enumerate(terms.rows(first[1:]), 1):
        assert slope.value(*numbers) == pytest.approx(x._row.partials(*numbers)[number], rel=1e-14)
        more = implicit._Terms(len(numbers))
        for k, of in enumerate(more.rows(slope.partials.over(implicit.TERMS)(None, *more.inputs))):
            sides = [slope.value(*[y + s * h * (j == k) for j, y in enumerate(numbers)]) for s in (1.0, -1.0)]
            expected = (sides[0] - sides[1]) / (2.0 * h)
            assert (of if type(of) is float else of.value(*numbers)) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_branches_of_the_function() -> None:
    """The derivative is that of the branch at the root."""

    def kinked(x: Any, a: Any) -> Any:
        return x * x - a if x > 1.0 else x - a

    for a, want, slope in ((0.5, 0.5, 1.0), (4.0, 2.0, 0.25)):
        for start in (0.2, 7.0):
            assert root(kinked, start, a) == pytest.approx(want, rel=1e-12)
            assert grad(lambda a, start=start: root(kinked, start, a))(a) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(
    ("f", "start", "want"),
    [
        (lambda x: x**3 - 2.0 * x + 2.0, 0.0, -1.7692923542386314),  # Newton's own steps go round from 0 to 1
        (lambda x: wengert.atan(x - 1.0), 9.0, 1.0),  # and away from here
        (lambda x: wengert.cbrt(x - 0.25), 1.0, 0.25),
        (lambda x: x * x - 1e-20, 1.0, 1e-10),
        (lambda x: exp(x) - 1.0, 3.0, 0.0),
        (lambda x: log(x), 50.0, 1.0),
        (lambda x: cos(x), 0.0, None),  # a slope of 0 at the start
        (lambda x: 1e30 * (x - 1e-12), 5.0, 1e-12),
        (lambda x: x, 3.0, 0.0),
    ],
)
def test_hard_starts(f: Any, start: float, want: float | None) -> None:
    found = root(f, start)
    if want is None:
        assert f(found) == pytest.approx(0.0, abs=1e-15 * abs(found))
    else:
        assert found == pytest.approx(want, rel=1e-12, abs=1e-16)


@pytest.mark.parametrize(
    ("f", "bracket"),
    [
        (lambda x: (x - 0.3) ** 3, (-1.0, 1.3)),
        (lambda x: exp(40.0 * x) - 2.0, (-1.0, 1.0)),
        (lambda x: wengert.sign(x - 0.3) * sqrt(abs(x - 0.3)), (1.0, 0.0)),
        (lambda x: 1.0 / (x - 2.0) + 1e-3, (-3000.0, 1.9)),
        (lambda x: x - 1.0, (1.0, 2.0)),
        (lambda x: x - 2.0, (1.0, 2.0)),
    ],
)
def test_brackets(f: Any, bracket: tuple[float, float]) -> None:
    found = root(f, 0.5, bracket=bracket)
    assert min(bracket) <= found <= max(bracket)
    assert f(Value(found)).data == pytest.approx(0.0, abs=1e-7)


def test_rounding_is_no_failure() -> None:
    """A function that rounds more than the tolerance has a root as exact as it can say."""
    found = root(lambda x: ((x + 1e8) - 1e8) * ((x + 1e8) - 1e8) - 2.0, 1.0)
    assert found == pytest.approx(math.sqrt(2.0), abs=1e-7)


def test_fixed_points() -> None:
    assert fixed_point(cos, 1.0) == pytest.approx(0.7390851332151607, rel=1e-15)
    assert fixed_point(lambda x: 4.0 * x * (1.0 - x), 0.8) == pytest.approx(0.75, rel=1e-15)  # from which it moves away
    square = derivatives(lambda a: fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, a), 2.0, 3)
    assert square == pytest.approx([2.0**0.5, 0.5 * 2.0**-0.5, -0.25 * 2.0**-1.5, 0.375 * 2.0**-2.5], rel=1e-12)


def test_what_is_not_found() -> None:
    with pytest.raises(RootError, match=r"has no root near x0 = 1; after \d+ evaluations it is 1 at .* a bracket, two"):
        root(lambda x: x * x + 1.0, 1.0)
    with pytest.raises(RootError, match="or a larger max_steps") as raised:
        root(lambda x: x * x - 2.0, 100.0, max_steps=3)
    assert (raised.value.steps, raised.value.x > 1.0, raised.value.residual > 0.0) == (3, True, True)
    with pytest.raises(RootError, match=r"is 0.5 and 0.2 at the ends of the bracket \(2.0, 5.0\). Choose"):
        root(lambda x: 1.0 / x, 3.0, bracket=(2.0, 5.0))
    with pytest.raises(RootError, match="another bracket"):  # a pole is no root
        root(lambda x: 1.0 / x, 0.3, bracket=(-1.0, 2.0))
    with pytest.raises(RootError):
        root(lambda x: wengert.where(x > 0.4, 1.0, -1.0) + 0.0 * x, 0.3, bracket=(0.0, 1.0))  # nor is a jump
    with pytest.raises(RootError):
        root(lambda x: log(x), -1.0)
    a = Value(-1.0)
    missing = root(lambda x: x * x - a, 1.0, missing="nan")
    missing.backward()
    assert math.isnan(missing.data)
    assert math.isnan(a.grad)
    assert math.isnan(root(lambda x: x * x + 1.0, 1.0, missing="nan"))


def test_an_inner_root_that_is_lost_shortens_the_step() -> None:
    def outer(x: Any) -> Any:
        return root(lambda y: y * y - x, 1.0) + 10.0 * (x - 1.0)  # no y if x < 0, as in the first step

    assert root(lambda x: outer(x) - 0.01, 3.0) == pytest.approx(root(lambda x: sqrt(x) + 10.0 * x - 10.01, 1.0))
    with pytest.raises(RootError, match="near x0 = 1"):
        root(outer, -3.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: root(lambda x: x, [1.0, 2.0]), "x0 holds several numbers"),
        (lambda: root(lambda x: [x, x], 1.0), "returned list .*; expected one number"),
        (lambda: fixed_point(lambda x: None, 1.0), "returned None; expected one number"),
        (lambda: root(lambda x: 2.0, 1.0), "does not depend on its first argument"),
        (lambda: root(1.0, 1.0), "the function is float 1.0"),  # type: ignore[arg-type]
        (lambda: fixed_point(1.0, 1.0), "the function is float 1.0"),  # type: ignore[arg-type]
        (lambda: root(sin, nan), "expected finite numbers"),
        (lambda: root(sin, 1.0, bracket=1.0), "the bracket is 1.0; expected two numbers"),  # type: ignore[arg-type]
        (lambda: root(sin, 1.0, bracket=(1.0,)), "expected two numbers"),
        (lambda: root(sin, 1.0, tol=0.0), "tol is 0.0"),
        (lambda: root(sin, 1.0, max_steps=0), "max_steps is 0; expected an int >= 1"),
        (lambda: root(sin, 1.0, missing="none"), "missing is 'none'; expected 'raise' or 'nan'"),
    ],
)
def test_bad_arguments(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
    with pytest.raises(OperandError):
        root(sin, None)


def test_a_list_of_steps_is_a_function_and_has_its_gradient() -> None:
    """Also of sums, whose operands are any number, and of comparisons, which have no derivative."""
    less, total, times = (BY_NAME[name] for name in ("lt", "sum", "mul"))
    steps = implicit.StepList(2, [(less, (0, 1)), (total, (0, 1, 0.5)), (times, (2, 3))], [4])
    for x, a in ((1.0, 2.0), (3.0, 2.0)):
        holds = float(x < a)
        assert steps.value(FLOATS, x, a) == holds * (x + a + 0.5)
        assert steps.partials(FLOATS, 0.0, x, a) == [holds, holds]
