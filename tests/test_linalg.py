"""`solve`, `inv` and `det` with Values, beside NumPy, PyTorch, mpmath and formulas."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from wengert import Value, det, grad, hessian, inv, jacobian, solve  # noqa: E402
from wengert.errors import LengthError, OperandError  # noqa: E402

EPS = np.finfo(float).eps


def values(x: Any) -> Any:
    return np.frompyfunc(Value, 1, 1)(np.asarray(x, float))


def data(x: Any) -> Any:
    return np.frompyfunc(lambda v: v.data, 1, 1)(x).astype(float)


def hilbert(n: int) -> Any:
    return 1.0 / (1.0 + np.add.outer(np.arange(n), np.arange(n)))


MATRICES = {
    "one": np.array([[-3.0]]),
    "random": np.random.default_rng(0).normal(size=(5, 5)),
    "pivots of 0": np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 3.0], [4.0, 5.0, 0.0]]),
    "a tiny pivot": np.array([[1e-20, 1.0], [1.0, 1.0]]),
    "ill-conditioned": hilbert(8),
    "scaled badly": np.random.default_rng(1).normal(size=(4, 4)) * 10.0 ** np.array([[-9], [7], [0], [3]]),
    "ten": np.random.default_rng(2).normal(size=(10, 10)),
}


@pytest.mark.parametrize("a", MATRICES.values(), ids=MATRICES)
def test_values_are_those_of_numpy(a: Any) -> None:
    b = np.random.default_rng(3).normal(size=len(a))
    two = np.stack([b, b[::-1]], axis=1)
    assert np.array_equal(data(solve(values(a), b)), solve(a, b))
    assert np.array_equal(data(solve(a.tolist(), values(two))), solve(a, two))
    close = 10.0 * EPS * np.linalg.cond(a)
    for got, want in ((solve(a, two), np.linalg.solve(a, two)), (data(inv(values(a))), np.linalg.inv(a))):
        assert np.abs(got - want).max() <= close * np.abs(want).max()
    assert det(values(a)).data == det(a) == pytest.approx(np.linalg.det(a), rel=close)


def test_large_systems_are_numpys() -> None:
    a = np.random.default_rng(4).normal(size=(20, 20))
    assert np.array_equal(data(solve(values(a), a[0])), np.linalg.solve(a, a[0]))
    assert det(values(a)).data == np.linalg.det(a)
    want = np.linalg.det(a) * np.linalg.inv(a).T
    assert grad(lambda a: det(a))(a) == pytest.approx(want, rel=1e-9, abs=1e-9 * np.abs(want).max())
    inverse = np.linalg.inv(a)
    assert grad(lambda a: solve(a, np.ones(20)).sum())(a) == pytest.approx(
        -np.outer(inverse.sum(0), inverse.sum(1)), rel=1e-8, abs=1e-9
    )


def test_stacks_of_numbers_are_numpys() -> None:
    a = np.random.default_rng(0).normal(size=(2, 3, 3))
    assert np.array_equal(solve(a, np.ones((2, 3, 1))), np.linalg.solve(a, np.ones((2, 3, 1))))
    assert np.array_equal(inv(a), np.linalg.inv(a))
    assert np.array_equal(det(a), np.linalg.det(a))
    assert solve(np.array([[2]], dtype=object), [4]).tolist() == [2.0]


@pytest.mark.torch
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_first_and_second_derivatives_are_those_of_pytorch(n: int) -> None:
    import torch

    draw = np.random.default_rng(n)
    a, b, w = draw.normal(size=(n, n)), draw.normal(size=n), draw.normal(size=n)
    functions = [
        (
            lambda a, b: (solve(a, b) ** 3 * w).sum(),
            lambda a, b: (torch.linalg.solve(a, b) ** 3 * torch.tensor(w)).sum(),
        ),
        (lambda a, b: (b @ inv(a) @ b) ** 2, lambda a, b: (b @ torch.linalg.inv(a) @ b) ** 2),
        (lambda a, b: det(a) ** 2 * b[0], lambda a, b: torch.linalg.det(a) ** 2 * b[0]),
    ]
    for ours, theirs in functions:
        pair = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
        slopes = torch.autograd.grad(theirs(*pair), pair)
        for got, want in zip(grad(ours, argnums=(0, 1))(a, b), slopes, strict=True):
            assert got == pytest.approx(want.numpy(), rel=1e-9, abs=1e-12)
        second = torch.autograd.functional.hessian(theirs, pair)
        for got, want in zip(hessian(ours, argnums=(0, 1))(a, b), second, strict=True):
            for x, y in zip(got, want, strict=True):
                assert x == pytest.approx(y.numpy(), rel=1e-8, abs=1e-10)


def test_derivatives_of_any_order() -> None:
    """[[x, 1], [1, x]] y = [1, 0] has y0 = x / (x**2 - 1), half of 1 / (x - 1) + 1 / (x + 1)."""
    derivative: Any = lambda x: solve([[x, 1.0], [1.0, x]], [1.0, 0.0])[0]  # noqa: E731
    of_det: Any = lambda x: det([[x, 1.0, 0.0], [1.0, x, 2.0], [3.0, 0.0, x]])  # noqa: E731  (x**3 - x + 6)
    factor, x = 0.5, 1.75
    for order in range(5):
        want = factor * ((x - 1.0) ** (-1 - order) + (x + 1.0) ** (-1 - order))
        assert derivative(x) == pytest.approx(want, rel=1e-13)
        polynomial = np.polynomial.Polynomial([6.0, -1.0, 0.0, 1.0])
        assert of_det(x) == pytest.approx((polynomial.deriv(order) if order else polynomial)(x), abs=1e-12)
        derivative, of_det, factor = grad(derivative), grad(of_det), -factor * (order + 1)


def test_what_comes_back_from_backward_and_under_no_grad() -> None:
    a, b = values([[2.0, 1.0], [1.0, 3.0]]), values([1.0, 2.0])
    x = solve(a, b)
    (x[0] * 2.0 + x[1]).backward()
    adjoint = np.linalg.solve(data(a).T, [2.0, 1.0])
    assert np.array([v.grad for v in b]) == pytest.approx(adjoint, rel=1e-14)
    assert np.array([[v.grad for v in row] for row in a]) == pytest.approx(-np.outer(adjoint, data(x)), rel=1e-14)
    with wengert.no_grad():
        assert all(v.is_leaf for v in solve(a, b))
    assert "solve" in wengert.tree(x[0])


def test_inputs_may_be_lists_and_mix_numbers_and_values() -> None:
    k = Value(4.0)
    assert [v.data for v in solve([[k, 1], [0, 2.0]], (6, 4))] == [1.0, 2.0]
    assert np.array_equal(jacobian(lambda b: solve([[2.0, 0.0], [0.0, 4.0]], b))([1.0, 1.0]), np.diag([0.5, 0.25]))


@pytest.mark.mpmath
@pytest.mark.parametrize("name", ["random", "pivots of 0", "a tiny pivot", "ill-conditioned", "ten"])
def test_gradients_are_as_accurate_as_the_condition_allows(name: str) -> None:
    import mpmath

    a = MATRICES[name]
    n = len(a)
    b = np.arange(1.0, n + 1.0)
    with mpmath.workdps(50):
        exact = mpmath.matrix(a.tolist())
        x, adjoint = (mpmath.lu_solve(m, mpmath.matrix(y.tolist())) for m, y in ((exact, b), (exact.T, np.ones(n))))
        want = -np.array((adjoint * x.T).tolist(), float)
    got = grad(lambda a: solve(a, b).sum())(a)
    assert np.abs(got - want).max() <= 10.0 * n * EPS * np.linalg.cond(a) * np.abs(want).max()


@pytest.mark.parametrize("a", [np.outer([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), np.diag([2.0, 0.0, 3.0]), np.zeros((3, 3))])
def test_the_determinant_of_a_singular_matrix_has_derivatives(a: Any) -> None:
    """They are the cofactors, and second derivatives signed entries."""

    def cofactor(i: int, j: int) -> float:
        (p, q), (r, s) = np.delete(np.delete(a, i, 0), j, 1)
        return float((-1) ** (i + j) * (p * s - q * r))

    want = np.array([[cofactor(i, j) for j in range(3)] for i in range(3)])
    assert grad(lambda a: det(a))(a) == pytest.approx(want, abs=1e-12)
    second = hessian(lambda a: det(a))(a)
    assert second[0, 0, 1, 1] == pytest.approx(a[2, 2], abs=1e-12)
    assert second[0, 1, 1, 0] == pytest.approx(-a[2, 2], abs=1e-12)


def test_a_singular_system_is_numpys_error() -> None:
    a = values([[1.0, 2.0], [2.0, 4.0]])
    for call in (lambda: solve(a, [1.0, 1.0]), lambda: inv(a)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            call()


def test_bad_inputs_are_named() -> None:
    v = Value(1.0)
    with pytest.raises(LengthError, match=r"solve: a has the shape \(1, 2\); expected a square matrix"):
        solve([[v, v]], [1.0])
    with pytest.raises(LengthError, match=r"det: a has the shape \(1,\)"):
        det([v])
    with pytest.raises(LengthError, match=r"solve: b has the shape \(3,\); expected 2 numbers, or 2 rows"):
        solve([[v, 0.0], [0.0, v]], [1.0, 2.0, 3.0])
    with pytest.raises(OperandError, match="expected one real number, not str 'two'"):
        solve([[v, 0.0], [0.0, "two"]], [1.0, 2.0])


def test_numpys_own_functions_are_recorded_or_say_what_to_write() -> None:
    point = np.array([[3.0, 1.0], [0.5, 2.0]])
    for f, like in (
        (lambda a: np.linalg.solve(a, np.ones(2)).sum(), lambda a: wengert.sum(wengert.solve(a, [1.0, 1.0]))),
        (np.linalg.det, wengert.det),
    ):
        for derivative in (grad(lambda a, f=f: f(a)), wengert.compile(grad(lambda a, f=f: f(a)))):
            for _ in range(3):
                assert derivative(point) == pytest.approx(grad(like)(point), rel=1e-12)
    with pytest.raises(TypeError, match=r"dtype\('O'\)") as raised:
        grad(lambda a: (np.linalg.det(a), print("changes nothing"))[0])(point)
    assert "write wengert.solve, wengert.inv or wengert.det" in raised.value.__notes__[0]


def test_an_array_of_floats_that_is_filled() -> None:
    """It takes no Values: the function is recorded."""

    def filled(x: Any, kind: Any) -> Any:
        z = np.zeros(2, dtype=kind)
        z[0], z[1] = x[0] * x[1], x[1]
        return (z * z).sum()

    point = np.array([2.0, 3.0])
    for f in (grad(filled), wengert.compile(grad(filled))):
        assert f(point, object).tolist() == f(point, float).tolist() == [36.0, 30.0]
    for kind in (object, float):
        assert hessian(filled)(point, kind).tolist() == [[18.0, 24.0], [24.0, 10.0]]
    with pytest.raises(OperandError, match=r"objects, np\.zeros\(n, dtype=object\), or a list. \(The Value is 6"):
        filled([Value(2.0), Value(3.0)], float)
