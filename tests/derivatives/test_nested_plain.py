"""Plain functions that take derivatives of plain functions: Newton's method, sensitivities of gradients, and so on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import wengert
from wengert import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from wengert.errors import OperandError

Function = Callable[[Any], Any]


class Plain:
    """Functions of numbers, and derivatives of plain functions."""

    exp, sin, log, sqrt, hypot = math.exp, math.sin, math.log, math.sqrt, math.hypot
    first = staticmethod(grad)

    @staticmethod
    def second(f: Function) -> Function:
        return grad(grad(f))

    @staticmethod
    def partial(f: Function, p: list[Any], n: int) -> Any:
        return grad(f)(p)[n]


class Exact(Plain):
    """The same in as many digits as it takes."""

    exp, sin, log, sqrt, hypot = mpmath.exp, mpmath.sin, mpmath.log, mpmath.sqrt, mpmath.hypot

    @staticmethod
    def first(f: Function) -> Function:
        return lambda x: mpmath.diff(f, x)

    @staticmethod
    def second(f: Function) -> Function:
        return lambda x: mpmath.diff(f, x, 2)

    @staticmethod
    def partial(f: Function, p: list[Any], n: int) -> Any:
        return mpmath.diff(lambda *xs: f(list(xs)), tuple(p), tuple([int(k == n) for k in range(len(p))]))


def product(x: Any, m: Any) -> Any:
    return m.exp(x) * m.first(lambda t: m.sin(t) * t)(x)


def newton(x: Any, m: Any) -> Any:
    f, t = lambda t: m.exp(t) - 3.0 * x, x * 0.0 + 1.0
    for _ in range(8):
        t = t - f(t) / m.first(f)(t)
    return m.sin(t)


def newton_until(x: Any, m: Any) -> Any:
    f, t = lambda t: m.exp(t) - 3.0 * x, x * 0.0 + 1.0
    while abs(f(t)) > 1e-13:
        t -= f(t) / m.first(f)(t)
    return t * t


def halley(x: Any, m: Any) -> Any:
    f, t = lambda t: m.exp(t) - 3.0 * x, x * 0.0 + 1.0
    for _ in range(5):
        a, b, c = f(t), m.first(f)(t), m.second(f)(t)
        t -= 2.0 * a * b / (2.0 * b * b - a * c)
    return m.sqrt(t)


def from_outside(x: Any, m: Any) -> Any:
    return m.first(lambda t: m.exp(t * x))(x) + m.first(lambda t: m.exp(t) * x)(2.0)


def into_another(x: Any, m: Any) -> Any:
    return m.exp(0.1 * m.first(lambda t: m.sin(t) * x)(x))


def of_operators_alone(x: Any, m: Any) -> Any:
    return m.exp(0.01 * m.first(lambda t: t * t * t * x)(x))


def twice(x: Any, m: Any) -> Any:
    return m.second(lambda t: m.exp(t * x))(x) / m.sqrt(x)


def inside_another(x: Any, m: Any) -> Any:
    return m.first(lambda t: m.sin(t) * m.first(lambda s: m.log(s) * t)(x * t))(x)


def of_two(x: Any, m: Any) -> Any:
    f = lambda p: m.hypot(p[0], p[1]) * m.exp(p[0])  # noqa: E731
    return m.partial(f, [x, x * 2.0], 0) * m.sin(m.partial(f, [x, x * 2.0], 1))


def branching(x: Any, m: Any) -> Any:
    slope = m.first(lambda t: m.sin(t) * t)(x)
    return m.exp(slope) if slope > 0.0 else m.exp(-slope) * x


CASES = [product, newton, newton_until, halley, from_outside, into_another, of_operators_alone, twice]
CASES += [inside_another, of_two, branching]
POINTS = (1.25, 2.0, 2.75)


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_plain_function_takes_derivatives_of_plain_functions(case: Any) -> None:
    def plain(x: float) -> float:
        return case(x, Plain)  # type: ignore[no-any-return]

    def exact(x: Any) -> Any:
        return case(x, Exact)

    compiled, slope, curvature = wengert.compile(plain), wengert.compile(grad(plain)), wengert.compile(hessian(plain))
    for x in POINTS:
        with mpmath.workdps(40 if case is inside_another else 60):
            value, first, second = (float(mpmath.diff(exact, mpmath.mpf(x), n)) for n in range(3))
        for each in (plain, compiled, compiled, compiled):
            got = each(x)
            assert type(got) is float
            assert got == pytest.approx(value, rel=1e-12)
        for each in (grad(plain), grad(plain), jacobian(plain), slope, slope, slope, grad(compiled)):
            assert each(x) == pytest.approx(first, rel=1e-10)
        for each in (grad(grad(plain)), hessian(plain), curvature, curvature):
            assert each(x) == pytest.approx(second, rel=1e-9)
        assert hvp(plain)(x, 2.0) == pytest.approx(2.0 * second, rel=1e-9)
        assert jvp(plain, (x,), (2.0,)) == pytest.approx((value, 2.0 * first), rel=1e-10)
        assert value_and_grad(plain)(x) == pytest.approx((value, first), rel=1e-10)
    for each in (compiled, slope, curvature):
        assert "uncompiled" not in each.report()


def of_hvp(x: float) -> float:
    of_two = hvp(lambda v: math.exp(v[0] * v[1]))
    return math.exp(0.1 * hvp(lambda t: math.sin(t) * t)(2.0, x)) + of_two([x, 0.5], [1.0, 0.5])[1]


def of_jvp(x: float) -> float:
    value, tangent = jvp(lambda t: math.sin(t) * t, (x,), (x,))
    return math.exp(0.1 * value) * tangent


def of_vjp(x: float) -> float:
    value, pullback = vjp(lambda t: math.sin(t) * t, 2.0)
    return math.exp(0.1 * pullback(x)[0]) * value


def of_jacobian(x: float) -> float:
    (a, b), (c, d) = jacobian(lambda p: [math.exp(p[0]) * p[1], p[0] * math.sin(p[1])])([x, 0.5])
    return math.log(abs(a * d - b * c))


def of_hessian(x: float) -> float:
    rows = hessian(lambda p: math.exp(p[0] * p[1]))(np.array([x, 0.5]))
    return float(np.sum(rows)) * math.sqrt(rows[0][1])


def of_several(x: float) -> float:
    a, b = grad(lambda s, t: math.exp(s * t) + math.sin(s), (0, 1))(x, 2.0 * x)
    return math.atan2(a, b)


def of_names(x: float) -> float:
    slopes = grad(lambda p: math.exp(p["a"]) * p["b"][0])({"a": x, "b": [x, 2.0]})
    return math.sin(slopes["a"]) + math.sqrt(slopes["b"][0])


OTHERS = [of_hvp, of_jvp, of_vjp, of_jacobian, of_hessian, of_several, of_names]


@pytest.mark.parametrize("plain", OTHERS, ids=lambda case: case.__name__)
def test_each_kind_of_derivative_inside_a_plain_function(plain: Any) -> None:
    compiled, slope = wengert.compile(plain), wengert.compile(grad(plain))
    for x in (0.75, 1.25, 1.5):
        step = 1e-5
        first = (plain(x + step) - plain(x - step)) / (2.0 * step)
        for _ in range(3):
            assert compiled(x) == pytest.approx(plain(x), rel=1e-12)
            assert slope(x) == pytest.approx(first, rel=1e-7)
            assert grad(plain)(x) == pytest.approx(first, rel=1e-7)
        second = (grad(plain)(x + step) - grad(plain)(x - step)) / (2.0 * step)
        assert hessian(plain)(x) == pytest.approx(second, rel=1e-6)
        assert wengert.compile(hessian(plain))(x) == pytest.approx(second, rel=1e-6)
    assert "uncompiled" not in compiled.report()
    assert "uncompiled" not in slope.report()


def test_a_function_of_values_takes_derivatives_of_a_plain_function() -> None:
    w = Value(0.5)

    def of_values(x: Any) -> Any:
        return wengert.exp(x) * grad(lambda t: math.sin(t) * t)(x) * w

    compiled = wengert.compile(of_values)
    for x in (0.75, 1.25):
        want = math.exp(x) * (math.cos(x) * x + math.sin(x)) * 0.5
        for _ in range(4):
            w.grad = 0.0
            result = compiled(x)
            result.backward()
            assert (result.data, w.grad) == pytest.approx((want, 2.0 * want), rel=1e-13)
        step = 1e-5
        first = (of_values(x + step).data - of_values(x - step).data) / (2.0 * step)
        for derivative in (grad(of_values), wengert.compile(grad(of_values))):
            slope = derivative(x)
            assert isinstance(slope, Value)
            assert slope.data == pytest.approx(first, rel=1e-8)


def test_a_derivative_that_depends_on_a_parameter_consists_of_values() -> None:
    w = Value(0.5)

    def loss(x: float) -> Any:
        return grad(lambda t: math.exp(t) * t * w)(x) * float(x)

    compiled = wengert.compile(loss)
    for _ in range(4):
        w.grad = 0.0
        result = compiled(1.25)
        assert isinstance(result, Value)
        result.backward()
        assert w.grad == pytest.approx(math.exp(1.25) * 2.25 * 1.25, rel=1e-13)
        assert result.data == pytest.approx(0.5 * w.grad, rel=1e-13)


def test_a_function_with_an_effect_has_no_derivative_inside_either() -> None:
    seen: list[float] = []

    def inner(t: float) -> float:
        seen.append(t)
        return math.exp(t)

    def outer(x: float) -> float:
        return math.sin(x) * grad(inner)(x)

    for each in (outer, wengert.compile(outer), grad(outer), wengert.compile(grad(outer))):
        for _ in range(3):
            with pytest.raises(OperandError, match="a Value is not a float") as raised:
                each(0.5)
            assert any("it changes seen" in note for note in raised.value.__notes__)
