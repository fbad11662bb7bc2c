"""norm, and hypot of any number: beside `math`, NumPy, mpmath and PyTorch, to second order, uncompiled and compiled."""

from __future__ import annotations

import math
import random
from math import inf, nan
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

POINTS = [
    [1.0, 2.0, 2.0],
    [-0.3, 0.0, 1e-9],
    [0.0, 0.0, 5.0],
    [0.0, 0.0, 0.0],
    [-0.0, 1e-200, 3.0],
    [3e300, 4e300, 1.2e301],
    [3e-300, -4e-300, 1.2e-299],
    [1e-60, 1e-50, -1e-55],
    [1e60, 1e50, 1e55],
    [1.2e308, -1.1e308, 1.0],
]
SUBNORMAL = [[3e-320, 4e-320, 0.0], [5e-324, 0.0, 0.0]]


def slopes(xs: list[float], function: Any = wengert.norm) -> tuple[float, list[float]]:
    leaves = [Value(x) for x in xs]
    y = function(leaves)
    y.backward()
    return y.data, [x.grad for x in leaves]


def test_it_is_the_length_of_a_vector() -> None:
    rng = random.Random(1)
    for n in (1, 2, 3, 10, 300):
        xs = [rng.gauss(0.0, 1.0) * 10.0 ** rng.uniform(-3, 3) for _ in range(n)]
        expected = float(np.linalg.norm(xs))
        value, gradient = slopes(xs)
        assert wengert.norm(xs) == wengert.norm(np.array(xs)) == wengert.norm(iter(xs)) == value
        assert value == pytest.approx(expected, rel=1e-14)
        assert gradient == pytest.approx([x / expected for x in xs], rel=1e-14)
    assert (wengert.norm([]), wengert.norm([-3.0]), wengert.norm(3, 4)) == (0.0, 3.0, 5.0)


def test_hypot_takes_any_number() -> None:
    x = Value(3.0)
    assert (wengert.hypot(3, 4, 12), wengert.hypot(-3.0), wengert.hypot()) == (13.0, 3.0, 0.0)
    for y in (wengert.hypot(x, 4.0, 12.0), x.hypot(4.0, 12.0), wengert.hypot(4.0, 12.0, x)):
        x.grad = 0.0
        y.backward()
        assert (y.data, x.grad) == (13.0, pytest.approx(3 / 13))
    assert wengert.hypot(x, 4.0)._op == "hypot"
    assert abs(x).data == x.hypot().data
    with pytest.raises(ArgumentError, match="atan2 takes 2 operands, got 3"):
        wengert.atan2(1.0, 2.0, 3.0)  # type: ignore[call-overload]


@pytest.mark.mpmath
@pytest.mark.parametrize("xs", [*POINTS[:3], *POINTS[4:-1]], ids=str)
def test_second_derivatives_are_mpmaths(xs: list[float]) -> None:
    import mpmath

    with mpmath.workdps(60):
        at = [mpmath.mpf(x) for x in xs]
        h = mpmath.sqrt(mpmath.fsum(x * x for x in at))
        expected = [[float(((i == j) - x * y / h / h) / h) for j, y in enumerate(at)] for i, x in enumerate(at)]
        gradient = [float(x / h) for x in at]
    size = 1.0 / float(h)
    for result in (wengert.hessian(wengert.norm)(xs), wengert.hessian(lambda a: wengert.hypot(*a))(xs)):
        assert np.allclose(np.array(result) / size, np.array(expected) / size, rtol=1e-13, atol=1e-15)
    assert wengert.grad(wengert.norm)(xs) == pytest.approx(gradient, rel=1e-14)


def test_there_is_no_overflow_and_no_underflow_on_the_way() -> None:
    for scale in (1e-323, 1e-310, 1e-200, 1e-160, 1.0, 1e150, 1e200, 1e307):
        value, gradient = slopes([3.0 * scale, 4.0 * scale])
        assert value == pytest.approx(5.0 * scale, rel=1e-15, abs=5e-324)
        if scale > 1e-320:
            assert gradient == pytest.approx([0.6, 0.8], rel=1e-12)
    value, gradient = slopes([1.7e308, 1.7e308])  # too long for a float
    assert (value, gradient) == (inf, pytest.approx([math.sqrt(0.5)] * 2))


def test_at_the_origin_the_gradient_is_zero() -> None:
    """As PyTorch's; a distance of equal points does not spoil what it is a term of."""
    assert slopes([0.0, -0.0, 0.0]) == (0.0, [0.0, 0.0, 0.0])
    assert wengert.hessian(wengert.norm)([0.0, 0.0]) == [[0.0, 0.0], [0.0, 0.0]]
    p, q = [Value(1.0), Value(2.0)], [Value(1.0), Value(2.0)]
    y = wengert.norm([a - b for a, b in zip(p, q, strict=True)]) + p[0] * p[0]
    y.backward()
    assert [x.grad for x in (*p, *q)] == [2.0, 0.0, 0.0, 0.0]


@pytest.mark.torch
@pytest.mark.parametrize("xs", [*POINTS[:5], *POINTS[7:9], [inf, 1.0], [nan, 1.0], [inf, nan]], ids=str)
def test_values_and_gradients_are_pytorchs(xs: list[float]) -> None:
    import torch

    leaves = torch.tensor(xs, dtype=torch.float64, requires_grad=True)
    y = torch.linalg.vector_norm(leaves)
    y.backward()
    value, gradient = slopes(xs)
    assert value == pytest.approx(y.item(), rel=1e-15, nan_ok=True)
    assert gradient == pytest.approx(leaves.grad.tolist(), rel=1e-14, nan_ok=True)  # type: ignore[union-attr]


@pytest.mark.once  # arrays and machine code
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("xs", [*POINTS, *SUBNORMAL, [inf, 1.0, 2.0], [nan, 1.0, 0.0]], ids=str)
def test_compiled_it_is_the_same(xs: list[float], backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    second = wengert.hessian(wengert.norm) if max(map(abs, xs)) < 1e307 and xs not in SUBNORMAL else None
    for function in (wengert.norm, wengert.grad(wengert.norm), second):
        if function is None:
            continue
        f: Any = lambda a, function=function: function(a)  # noqa: E731
        compiled = wengert.compile(f, backend=backend)
        compiled([1.0, 0.5, 2.0])
        expected = np.array(f(xs))
        size = float(np.max(np.abs(expected), initial=0.0)) if np.isfinite(expected).all() else 0.0
        for _ in range(2):
            result = np.array(compiled(xs))
            assert np.allclose(result, expected, rtol=1e-12, atol=1e-15 * size, equal_nan=True)
        assert "left to the engine" not in compiled.report()


@pytest.mark.once
def test_compiled_with_values_and_batches() -> None:
    ws = [Value(0.5), Value(-2.0)]
    compiled = wengert.compile(lambda xs: wengert.norm([w * x for w, x in zip(ws, xs, strict=True)] + [xs[0] - 1.0]))
    for xs in ([1.0, 2.0], [1.0, 0.0], [0.0, 0.0], [1e200, 1e200]):
        grads = []
        for f in (compiled, compiled.function):
            ws[0].grad = ws[1].grad = 0.0
            y = f(xs)
            y.backward()
            grads.append((y.data, ws[0].grad, ws[1].grad))
        assert grads[0] == pytest.approx(grads[1], rel=1e-14)
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [3e300, 4e300], [5e-324, 0.0]])
    assert wengert.compile(lambda x: wengert.norm(x)).map(rows).tolist() == pytest.approx([0.0, 5.0, 5e300, 5e-324])


@pytest.mark.once
def test_hypot_of_math_is_followed() -> None:
    compiled = wengert.compile(lambda x, y, z: math.hypot(x, y, z) + math.hypot(x) + math.hypot(x, y))
    for xs in ((1.0, 2.0, 2.0), (-3.0, 4.0, 12.0), (0.0, 0.0, 0.0), (3e300, 4e300, 1.2e301)):
        assert compiled(*xs) == pytest.approx(math.hypot(*xs) + math.hypot(xs[0]) + math.hypot(*xs[:2]), rel=1e-15)
    assert compiled.report().count("specialization") == 1
    assert compiled(inf, 1.0, 2.0) == inf
