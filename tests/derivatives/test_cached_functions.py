"""Derivatives through functions whose results `functools.lru_cache` keeps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value, grad, hessian, jacobian, value_and_grad
from wengert.errors import OperandError


def plain() -> tuple[Callable[[float], float], list[Any]]:
    @functools.cache
    def cached(x: float) -> float:
        return math.exp(x)

    return lambda x: cached(x) * x + cached(x + 1.0), [cached]


def nested() -> tuple[Callable[[float], float], list[Any]]:
    @functools.cache
    def inner(x: float, scale: float) -> float:
        return math.exp(x) * scale

    @functools.lru_cache(maxsize=2)
    def cached(x: float, *, scale: float) -> float:
        return inner(x, scale) * x + inner(x + 1.0, scale)

    return lambda x: cached(x, scale=1.0), [inner, cached]


def of_tuples() -> tuple[Callable[[float], float], list[Any]]:
    @functools.lru_cache
    def cached(pair: tuple[float, float], name: str) -> tuple[float, float]:
        return math.exp(pair[0]) * pair[1] if name else 0.0, math.exp(pair[1] + pair[0])

    return lambda x: sum(cached((x, x), "a")) - math.exp(2.0 * x) + math.exp(x + 1.0), [cached]


def method() -> tuple[Callable[[float], float], list[Any]]:
    class Model:
        scale = 1.0

        @functools.cache  # noqa: B019
        def cached(self, x: float) -> float:
            return math.exp(x) * self.scale

        def loss(self, x: float) -> float:
            return self.cached(x) * x + self.cached(x + 1.0)

    return Model().loss, [Model.cached]


CASES = [plain, nested, of_tuples, method]
POINTS = (1.0, 1.0, 0.5, 1.0, 0.75, 0.25, 0.5, 1.25)


def value(x: float) -> float:
    return math.exp(x) * x + math.exp(x + 1.0)


def first(x: float) -> float:
    return value(x) + math.exp(x)


def second(x: float) -> float:
    return first(x) + math.exp(x)


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_derivatives_through_caches(case: Any, filled: bool) -> None:
    """With results in the cache before, between and after; they stay those of floats."""
    ways: list[tuple[Any, Callable[[float], Any]]] = [
        (grad, first), (jacobian, first), (hessian, second), (value_and_grad, lambda x: (value(x), first(x))),
        (lambda f: wengert.compile(grad(f)), first), (lambda f: wengert.compile(hessian(f)), second),
        (lambda f: grad(wengert.compile(f)), first),
    ]  # fmt: skip
    for way, want in ways:
        function, caches = case()
        derivative = way(function)
        for n, x in enumerate(POINTS):
            if filled or n > 4:
                assert function(x) == pytest.approx(value(x), rel=1e-14)
            assert derivative(x) == pytest.approx(want(x), rel=1e-12)
            result = function(x)
            assert type(result) is float
            assert result == pytest.approx(value(x), rel=1e-14)
        if hasattr(derivative, "report"):
            assert "specialization 2" not in derivative.report()
            assert "uncompiled" not in derivative.report()
        for cached in caches:
            assert cached.cache_info().currsize <= 2 * len(POINTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_compiled_function_keeps_its_cache(case: Any) -> None:
    function, _ = case()
    compiled = wengert.compile(function)
    for x in (1.0, 1.0, 1.0, 1.0, 1.0):
        assert compiled(x) == pytest.approx(value(x), rel=1e-14)
    assert grad(function)(1.0) == pytest.approx(first(1.0), rel=1e-12)
    assert compiled(1.0) == pytest.approx(value(1.0), rel=1e-14)


def test_caches_of_functions_of_values() -> None:
    @functools.cache
    def cached(x: Any) -> Any:
        return wengert.exp(x)

    slope = wengert.compile(grad(lambda x: cached(x) * x + cached(x + 1.0)))
    for x in POINTS:
        assert slope(x) == pytest.approx(first(x), rel=1e-12)
        assert type(cached(x)) is float
    assert "specialization 2" not in slope.report()
    assert "uncompiled" not in slope.report()


def test_a_parameter_in_a_cached_function_is_followed() -> None:
    w = Value(2.0)

    @functools.cache
    def cached(x: float) -> float:
        return math.exp(x)

    slope = wengert.compile(grad(lambda x: cached(x) * w))
    for x in POINTS:
        w.grad = 0.0
        result = slope(x)
        result.backward()
        assert (result.data, w.grad) == pytest.approx((2.0 * math.exp(x), math.exp(x)), rel=1e-12)


def test_a_cached_function_with_an_effect_is_refused() -> None:
    seen: list[float] = []

    @functools.cache
    def cached(x: float) -> float:
        seen.append(x)
        return math.exp(x)

    assert cached(1.0) == math.exp(1.0)
    for _ in range(3):
        with pytest.raises(OperandError) as raised:
            grad(lambda x: cached(x) * x)(1.0)
        assert any("it changes seen" in note for note in raised.value.__notes__)
