"""`jacobian` and `hessian` with `sparse=True`, beside the dense ones."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

np = pytest.importorskip("numpy")
scipy_sparse = pytest.importorskip("scipy.sparse")

import wengert  # noqa: E402
from wengert import Value, exp, grad, hessian, jacobian, nn, tanh  # noqa: E402
from wengert.derivatives import Numbers  # noqa: E402
from wengert.errors import ArgumentError  # noqa: E402


def dense(x: Any, rows: int) -> Any:
    return np.array([float(getattr(v, "data", v)) for v in Numbers(x).leaves]).reshape(rows, -1)


def same(sparse: Any, plain: Any, *points: Any) -> Any:
    """Compare with the dense derivative at each of some points, twice; returns the last result."""
    for point in points:
        for _ in range(2):
            got = sparse(*point)
            assert isinstance(got, scipy_sparse.csr_array)
            want = dense(plain(*point), got.shape[0])
            assert got.toarray() == pytest.approx(want, rel=1e-9, abs=1e-9 * np.abs(want).max())
    assert "runs uncompiled" not in sparse.report()
    return got


def banded(draw: random.Random, n: int) -> Any:
    width = draw.randint(1, 3)
    return lambda x: [tanh(x[i] * sum(x[max(i - width, 0) : i + width])) for i in range(n)]


def arrow(draw: random.Random, n: int) -> Any:
    return lambda x: [*[x[0] * x[i] + x[i] ** 2 for i in range(1, n)], sum(exp(0.1 * v) for v in x)]


def blocks(draw: random.Random, n: int) -> Any:
    size = draw.randint(2, 4)
    return lambda x: [x[i] * x[j] for i in range(n) for j in range(i - i % size, min(i - i % size + size, n)) if i <= j]


def scattered(draw: random.Random, n: int) -> Any:
    pairs = [(draw.randrange(n), draw.randrange(n)) for _ in range(2 * n)]
    return lambda x: [tanh(x[i]) * x[j] for i, j in pairs]


def recurrence(draw: random.Random, n: int) -> Any:
    def f(x: Any) -> Any:
        state, states = 0.5, []
        for v in x:
            state = 0.9 * state + tanh(state * v)
            states.append(state)
        return states

    return f


STRUCTURES = [banded, arrow, blocks, scattered, recurrence]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.sampled(4)
def test_random_structures(structure: Any, seed: int) -> None:
    draw = random.Random(f"{structure.__name__} {seed}")
    n = draw.randint(4, 12)
    f = structure(draw, n)
    points = [([draw.gauss(0.0, 1.0) for _ in range(n)],) for _ in range(2)]
    same(jacobian(f, sparse=True), jacobian(f), *points)

    def energy(x: Any) -> Any:
        return sum(r * r for r in f(x))

    same(hessian(energy, sparse=True), hessian(energy), *points)


def chain(x: Any) -> Any:
    return sum(100.0 * (x[i + 1] - x[i] * x[i]) ** 2 + (1.0 - x[i]) ** 2 for i in range(len(x) - 1))


def test_few_directions_and_only_what_may_be_nonzero() -> None:
    x = np.linspace(-1.0, 2.0, 200)
    sparse = hessian(chain, sparse=True)
    got = same(sparse, hessian(chain), (x,))
    assert got.nnz == 3 * 200 - 2
    shapes = [array.shape for array in sparse.compiled._runtime.latest().kernel.program.arrays]
    assert any(shape[-1:] == (3,) for shape in shapes), "three colours"
    assert not any(200 in shape[:-1] and shape[-1] == 200 for shape in shapes), "no matrix"


def test_a_large_one_needs_no_matrix() -> None:
    """Nor does the check of its first call."""
    x = np.linspace(-1.0, 2.0, 3_000)
    tracemalloc.start()
    matrix = hessian(chain, sparse=True)(x)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert matrix.nnz == 3 * 3_000 - 2
    assert most < 3_000**2 * 8 / 2
    middle = 1200.0 * x[1500] ** 2 - 400.0 * x[1501] + 202.0
    assert matrix[1500, 1500] == pytest.approx(middle, rel=1e-12)


def test_patterns_are_joined_over_branches() -> None:
    def f(x: Any) -> Any:
        return [x[0] * x[1], x[2] if x[0] > 1.0 else x[1]]

    sparse = jacobian(f, sparse=True)
    counts = [same(sparse, jacobian(f), (point,)).nnz for point in ([2.0, 1.0, 3.0], [0.5, 1.0, 3.0], [2.0, 1.0, 3.0])]
    assert counts == [3, 4, 4]


def test_structures_of_arguments() -> None:
    def f(a: Any, b: Any, scale: float) -> Any:
        return {"p": [scale * a["x"] * b[0], b[1] ** 2], "q": a["y"]}

    point = ({"x": 2.0, "y": 3.0}, [4.0, 5.0], 0.5)
    got = jacobian(f, argnums=(0, 1), sparse=True)(*point)
    assert got.toarray().tolist() == [[2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 10.0], [0.0, 1.0, 0.0, 0.0]]
    assert jacobian(wengert.compile(f), sparse=True)(*point).toarray()[0].tolist() == [2.0, 0.0]
    assert hessian(lambda a, b: a[0] * b * a[1], sparse=True)([2.0, 3.0], b=4.0).toarray().tolist() == [[0, 4], [4, 0]]


def test_of_a_model_and_of_what_cannot_be_compiled() -> None:
    model = nn.MLP(3, [4, 2], activation="tanh", rng=random.Random(1))
    same(jacobian(model, sparse=True), jacobian(model), ([0.1, -0.2, 0.3],))
    seen = []

    def noting(x: Any) -> Any:
        seen.append(x)
        return [x[0] * x[1], x[2]]

    sparse = jacobian(noting, sparse=True)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert [sparse([2.0, 3.0, 4.0]).toarray().tolist() for _ in range(5)] == [
            [[3.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
        ] * 5
    assert jacobian(lambda x: [7.0, 8.0], sparse=True)([1.0, 2.0]).nnz == 0


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="SciPy's matrices hold no Values"):
        jacobian(lambda x: [x[0]], sparse=True)([Value(1.0)])
    with pytest.raises(ArgumentError, match="has_aux"):
        hessian(chain, has_aux=True, sparse=True)
    with pytest.raises(ArgumentError, match="returned a list of 2"):
        hessian(lambda x: [x[0], x[1]], sparse=True)([1.0, 2.0])
    with pytest.raises(wengert.errors.OperandError, match="str"):
        jacobian(lambda x: [x["a"]], sparse=True)({"a": 1.0, "b": "two"})


def test_scipy_takes_them() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    x0 = np.full(30, -1.0)
    found = optimize.minimize(
        wengert.value_and_grad(chain), x0, jac=True, hess=hessian(chain, sparse=True), method="trust-constr",
        options={"maxiter": 300},
    )  # fmt: skip
    assert np.abs(found.x - 1.0).max() < 1e-3
    residuals: Any = lambda x: [10.0 * (x[i + 1] - x[i] * x[i]) for i in range(29)] + [1.0 - v for v in x]  # noqa: E731
    fit = optimize.least_squares(
        lambda x: np.array([float(v) for v in residuals(x)]), x0, jac=jacobian(residuals, sparse=True)
    )
    assert fit.cost < 1e-12
    assert grad(chain)(fit.x.tolist()) == pytest.approx([0.0] * 30, abs=1e-5)
