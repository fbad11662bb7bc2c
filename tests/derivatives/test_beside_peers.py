"""Derivatives beside what else computes them: compiled functions, PyTorch, SciPy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.derivatives.test_grad import data, rosenbrock
from wengert import Value, grad, hessian, hvp, jacobian, jvp, nn, value_and_grad

pytestmark = pytest.mark.once  # what is compared are other libraries' numbers

# ------------------------------------------------------------------------------------- compiled functions


def test_compiled_functions() -> None:
    pytest.importorskip("numpy")

    @wengert.compile(backend="numpy")
    def f(x: Any, y: Any) -> Any:
        return wengert.sin(x * y) + x**2

    x, y = 1.0, 2.0
    sine, cosine = math.sin(2.0), math.cos(2.0)
    assert grad(f, (0, 1))(x, y) == pytest.approx((2.0 * cosine + 2.0, cosine), rel=1e-14)
    for _ in range(3):  # checks come at the second call, and later
        second = hessian(f, (0, 1))(x, y)
        assert second[0] == pytest.approx((2.0 - 4.0 * sine, cosine - 2.0 * sine), rel=1e-14)
        assert second[1] == pytest.approx((cosine - 2.0 * sine, -sine), rel=1e-14)
    assert grad(grad(grad(f)))(x, y) == pytest.approx(-8.0 * cosine, rel=1e-14)
    assert hvp(f)(x, 1.0, y) == pytest.approx(2.0 - 4.0 * sine, rel=1e-14)
    assert jvp(f, (x, y), (1.0, 0.0))[1] == pytest.approx(2.0 * cosine + 2.0, rel=1e-14)
    assert "compiled" in [f(Value(x), y)._row.name for _ in range(6)]  # nothing of it is left behind


def test_compiled_functions_with_parameters() -> None:
    pytest.importorskip("numpy")
    model = nn.MLP(2, [3, 1], activation="tanh", rng=random.Random(1))

    @wengert.compile
    def score(x: Any) -> Any:
        return model(x)

    compiled, eager = grad(score)([0.5, -1.0]), grad(model)([0.5, -1.0])
    assert all(isinstance(v, Value) for v in compiled)
    assert data(compiled) == pytest.approx(data(eager), rel=1e-13)

    def slopes(gradient: list[Value]) -> list[float]:
        model.zero_grad()
        gradient[0].backward()
        return [p.grad for p in model.parameters()]

    assert slopes(compiled) == pytest.approx(slopes(eager), rel=1e-13)
    with wengert.no_grad():
        assert grad(score)([0.5, -1.0]) == pytest.approx(data(eager), rel=1e-13)
    xs, ys = [[0.1, 0.2], [0.3, -0.4]], [1.0, -1.0]

    @wengert.compile
    def loss(x: Any, y: Any) -> Any:
        return (model(x) - y) ** 2

    def total(factor: Any) -> Any:
        return factor * factor * loss.mean(xs, ys)

    mean = loss.mean(xs, ys).data
    assert data(grad(total)(3.0)) == pytest.approx(6.0 * mean, rel=1e-12)
    assert data(hessian(total)(3.0)) == pytest.approx(2.0 * mean, rel=1e-12)


def test_derivatives_are_compiled() -> None:
    pytest.importorskip("numpy")

    def f(x: Any, y: Any) -> Any:
        return x**3 * y + x.tanh()

    slope = wengert.compile(grad(f))
    for x, y in ((2.0, 5.0), (0.5, -1.0), (0.1, 2.0)):
        assert data(slope(x, y)) == pytest.approx(grad(f)(x, y), rel=1e-13)
    assert "runs uncompiled" not in slope.report()
    xs, ys = [0.5, 1.5, 2.5], [1.0, 2.0, 3.0]
    each = [grad(f)(x, y) for x, y in zip(xs, ys, strict=True)]
    assert slope.mean(xs, ys).data == pytest.approx(math.fsum(each) / 3.0, rel=1e-13)

    @wengert.compile
    def captured(x: Any) -> Any:
        """The inner argument is a float, and the result depends on what is being recorded all the same."""
        return grad(lambda y: x * y * y)(3.0) + x * grad(lambda y: y * y)(2.0)

    for x in (2.0, 5.0, -1.0):
        assert data(captured(x)) == pytest.approx(10.0 * x, rel=1e-14)
    w = Value(2.0)

    @wengert.compile
    def quiet(x: Any) -> Any:
        with wengert.no_grad():
            factor = grad(lambda y: w * x * y * y)(3.0)
        return factor * x

    for x in (2.0, 5.0):
        leaf = Value(x)
        result = quiet(leaf)
        result.backward()
        assert (result.data, leaf.grad) == pytest.approx((12.0 * x * x, 12.0 * x), rel=1e-14)


# ------------------------------------------------------------------------------------- PyTorch


def network(parameters: list[Any], x: list[Any], tanh: Callable[[Any], Any]) -> list[Any]:
    """Two tanh units, three outputs."""
    hidden = [tanh(parameters[2 * k] * x[0] + parameters[2 * k + 1] * x[1]) for k in range(2)]
    return [parameters[4 + 2 * k] * hidden[0] + parameters[5 + 2 * k] * hidden[1] for k in range(3)]


@pytest.mark.torch
def test_hessians_are_pytorchs() -> None:
    import torch

    def cross_entropy(z: Any) -> Any:
        return wengert.losses.cross_entropy(network(z[:10], z[10:], wengert.tanh), 1)

    def theirs(z: Any) -> Any:
        logits = torch.stack(network(list(z[:10]), list(z[10:]), torch.tanh))
        return torch.nn.functional.cross_entropy(logits[None], torch.tensor([1]))

    functions: list[tuple[Callable[[Any], Any], Callable[[Any], Any], int]] = [
        (cross_entropy, theirs, 12),
        (lambda x: wengert.logsumexp(x), lambda x: torch.logsumexp(x, 0), 4),
        (lambda x: wengert.prod(x), torch.prod, 4),
        (lambda x: wengert.softmax(x)[1] * x[0], lambda x: torch.softmax(x, 0)[1] * x[0], 3),
        (lambda x: wengert.sum([v.gelu() * v.silu() for v in x]),
         lambda x: (torch.nn.functional.gelu(x) * torch.nn.functional.silu(x)).sum(), 3),
        (lambda x: (x[0] * x[1] - 1.0).relu() ** 2, lambda x: torch.relu(x[0] * x[1] - 1.0) ** 2, 2),
    ]  # fmt: skip
    for ours, expected, n in functions:
        for seed in range(3):
            rng = random.Random(seed)
            x, v = ([rng.gauss(0.0, 1.0) for _ in range(n)] for _ in range(2))
            tensor, vector = torch.tensor(x, dtype=torch.float64), torch.tensor(v, dtype=torch.float64)
            theirs_h = torch.autograd.functional.hessian(expected, tensor)
            ours_h = torch.tensor(hessian(ours)(x), dtype=torch.float64)
            torch.testing.assert_close(ours_h, theirs_h, rtol=1e-10, atol=1e-12)
            product = torch.autograd.functional.hvp(expected, tensor, vector)[1]
            torch.testing.assert_close(
                torch.tensor(hvp(ours)(x, v), dtype=torch.float64), product, rtol=1e-10, atol=1e-12
            )


@pytest.mark.torch
def test_jacobians_are_pytorchs() -> None:
    import torch

    rng = random.Random(3)
    x = [rng.gauss(0.0, 1.0) for _ in range(12)]
    expected = torch.autograd.functional.jacobian(
        lambda z: torch.stack(network(list(z[:10]), list(z[10:]), torch.tanh)), torch.tensor(x, dtype=torch.float64)
    )
    ours = torch.tensor(jacobian(lambda z: network(z[:10], z[10:], wengert.tanh))(x), dtype=torch.float64)
    torch.testing.assert_close(ours, expected, rtol=1e-13, atol=1e-14)
    few = jacobian(lambda p: network(x[:10], p, wengert.tanh))(x[10:])  # forward mode: 2 inputs, 3 outputs
    torch.testing.assert_close(torch.tensor(few, dtype=torch.float64), expected[:, 10:], rtol=1e-13, atol=1e-14)


# ------------------------------------------------------------------------------------- SciPy


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-ncg", "trust-krylov"])
def test_minimize_takes_them_as_they_are(method: str) -> None:
    np = pytest.importorskip("numpy")
    optimize = pytest.importorskip("scipy.optimize")
    second = {"hessp": hvp(rosenbrock)} if method in ("Newton-CG", "trust-ncg", "trust-krylov") else {}
    start = np.array([-1.2, 1.0, 0.8])
    found = optimize.minimize(value_and_grad(rosenbrock), start, jac=True, method=method, **second)
    assert found.success
    assert found.x == pytest.approx([1.0, 1.0, 1.0], abs=1e-3)


def test_scipys_other_arguments_and_hessian() -> None:
    np = pytest.importorskip("numpy")
    optimize = pytest.importorskip("scipy.optimize")

    def f(x: Any, scale: Any, shift: Any) -> Any:
        return rosenbrock([scale * (v - shift) for v in x])

    given: Any = {"args": (2.0, 0.5), "jac": True, "method": "Newton-CG"}
    for second in ({"hessp": hvp(f)}, {"hess": hessian(f)}):
        found = optimize.minimize(value_and_grad(f), np.array([0.3, 0.4]), **given, **second)
        assert found.x == pytest.approx([1.0, 1.0], abs=1e-4)
    at = np.array([1.3, 0.7, 0.8])
    assert grad(rosenbrock)(at) == pytest.approx(optimize.rosen_der(at), rel=1e-12)
    assert hessian(rosenbrock)(at).ravel() == pytest.approx(optimize.rosen_hess(at).ravel(), rel=1e-12)
