"""`jacobian` and `hessian` with `sparse=True`, beside the dense ones."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
scipy_sparse = pytest.importorskip("scipy.sparse")

import wengert  # noqa: E402
from tests.derivatives import test_sparsity  # noqa: E402
from tests.derivatives.test_sparsity import bent  # noqa: E402
from wengert import Value, exp, grad, hessian, jacobian, modes, nn, tanh  # noqa: E402
from wengert.compiler import policy  # noqa: E402
from wengert.compiler.record import derived  # noqa: E402
from wengert.derivatives import Numbers, linearize  # noqa: E402
from wengert.errors import ArgumentError, MissingExtraError, OperandError  # noqa: E402

pytestmark = pytest.mark.once  # a recording and its arrays: the engine takes no part in a pattern


def dense(x: Any, rows: int) -> Any:
    return np.array([float(getattr(v, "data", v)) for v in Numbers(x).leaves]).reshape(rows, -1)


def same(sparse: Any, plain: Any, *points: Any) -> Any:
    """Compare with the dense derivative at each of some points, twice; returns the last result."""
    for point in points:
        want: Any = None
        for _ in range(2):
            got = sparse(*point)
            assert isinstance(got, scipy_sparse.csr_array)
            want = dense(plain(*point), got.shape[0]) if want is None else want
            assert got.toarray() == pytest.approx(want, rel=1e-9, abs=1e-9 * np.abs(want).max())
    assert "runs uncompiled" not in sparse.report()
    return got


uncompiled = functools.partial(modes.recorded, eager_only=True)


@contextlib.contextmanager
def profiled() -> Iterator[None]:
    """Keep functions that are new from being compiled, as a profiler does."""
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        yield
    finally:
        sys.setprofile(before)


def arrow(draw: random.Random) -> Any:
    """A full row, a full column and a diagonal: each side alone has a colour for each number."""
    f = bent(draw)
    return lambda x: [*[f(x[0], v) for v in x[1:]], sum(exp(0.1 * v) for v in x)]


def picked(draw: random.Random) -> Any:
    f = bent(draw)
    return lambda x, i, j: [*[f(wengert.pick(x, i), v) for v in x[:4]], wengert.pick(x[1:5], j) ** 2]


def branched(draw: random.Random) -> Any:
    f, g = bent(draw), bent(draw)
    return lambda x: [f(a, b) if x[0] > 0.0 else g(b, x[-1]) for a, b in itertools.pairwise(x)]


STRUCTURES = (*test_sparsity.STRUCTURES, arrow, picked, branched)


@pytest.mark.sampled(26)  # each second structure; test_sparsity.py has the patterns of the others
@pytest.mark.parametrize(("seed", "structure"), [(seed, s) for s in STRUCTURES for seed in range(13)])
def test_random_structures(structure: Any, seed: int) -> None:
    draw = random.Random(f"{structure.__name__} {seed}")
    f, n = structure(draw), test_sparsity.size_of(structure, draw)

    energy: Any = lambda x: sum(r * r for r in f(x))  # noqa: E731
    if structure is picked:
        energy = lambda x, i, j: sum(r * r for r in f(x, i, j))  # noqa: E731
    points = [
        ([draw.uniform(-1.0, 1.0) for _ in range(n)], *[draw.randrange(4) for _ in range(2 * (structure is picked))])
        for _ in range(2)
    ]
    for sparse, plain in (
        (jacobian(f, sparse=True), jacobian(f)),
        (hessian(energy, sparse=True), hessian(energy)),
    ):
        got = same(sparse, plain, *points)
        for without in (uncompiled, profiled):
            with without():
                again = sparse(*points[-1])
            bound = 1e-9 * np.abs(got.data).max(initial=0.0)
            assert again.toarray() == pytest.approx(got.toarray(), rel=1e-9, abs=bound)
            assert again.nnz == got.nnz, "the pattern of all calls"


def diagonal_and_row(x: Any) -> Any:
    return [*[v * v for v in x], sum(tanh(v) for v in x)]


def diagonal_and_column(x: Any) -> Any:
    return [v * v + x[0] for v in x]


def both(x: Any) -> Any:
    state = 1.0
    for v in x:
        state = tanh(state + v)  # a loop in both modes
    return [*[v * v + x[0] for v in x[1:]], state]


@pytest.mark.parametrize(
    ("derivative", "f", "columns", "rows"),
    [
        (jacobian, lambda x: [b * a - c for a, b, c in zip(x, x[1:], x[2:], strict=False)], 3, 0),
        (jacobian, lambda x: [v * w for v in x[:4] for w in x[:4]], 4, 0),
        (jacobian, lambda x: [x[i] * x[i + 1] + x[i + 2] for i in range(0, len(x) - 2, 3)], 0, 1),
        (jacobian, lambda x: [sum(v * v for v in x), x[0] * x[1]], 0, 2),
        (jacobian, diagonal_and_row, 0, 2),
        (jacobian, diagonal_and_column, 2, 0),
        (jacobian, both, 2, 1),
        (jacobian, lambda x: [*both(x), sum(v * w for v, w in itertools.pairwise(x))], 2, 2),
        (hessian, lambda x: sum(v * w for v, w in zip(x[::2], x[1::2], strict=True)), 2, 0),
        (hessian, lambda x: sum((v * w) ** 2 for v, w in itertools.pairwise(x)), 3, 0),
        (hessian, lambda x: sum(x[0] * v**2 for v in x), 2, 0),
    ],
)
def test_as_few_passes_as_can_be(
    derivative: Any, f: Any, columns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one program, for any number of variables, where each side alone would take as many as there are."""
    colors: list[Any] = []
    apply = derived.compressed
    monkeypatch.setattr(derived, "compressed", lambda *args: (colors.append(args[2]), apply(*args)))
    same(derivative(f, sparse=True), derivative(f), ([0.1 * n - 0.55 for n in range(12)],))
    same(derivative(f, sparse=True), derivative(f), ([0.03 * n - 0.5 for n in range(36)],))
    assert [each.counts for each in colors] == [(columns, rows)] * 2


def chain(x: Any) -> Any:
    return sum(100.0 * (x[i + 1] - x[i] * x[i]) ** 2 + (1.0 - x[i]) ** 2 for i in range(len(x) - 1))


def test_few_directions_and_only_what_may_be_nonzero() -> None:
    x = np.linspace(-1.0, 2.0, 70)
    sparse = hessian(chain, sparse=True)
    got = same(sparse, hessian(chain), (x,))
    assert got.nnz == 3 * 70 - 2
    shapes = [array.shape for array in sparse.compiled._server.latest().kernel.program.arrays]
    assert any(shape[-1:] == (3,) for shape in shapes), "three colours"
    assert not any(70 in shape[:-1] and shape[-1] == 70 for shape in shapes), "no matrix"


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


def by_sign(x: Any) -> Any:
    return [x[0] * x[1], x[2] if x[0] > 1.0 else x[1]]


INSIDE, BEYOND = [0.5, 1.0, 3.0], [2.0, 1.0, 3.0]


def test_patterns_are_joined_over_branches() -> None:
    sparse = jacobian(by_sign, sparse=True)
    counts = [same(sparse, jacobian(by_sign), (point,)).nnz for point in (BEYOND, INSIDE, BEYOND)]
    assert counts == [3, 4, 4]

    def energy(x: Any) -> Any:
        return sum(v * v for v in by_sign(x))

    curvature = hessian(energy, sparse=True)
    assert [same(curvature, hessian(energy), (point,)).nnz for point in (INSIDE, BEYOND, INSIDE)] == [4, 5, 5]
    for without in (uncompiled, profiled):
        with without():
            sparse, curvature = jacobian(by_sign, sparse=True), hessian(energy, sparse=True)
            assert [sparse(point).nnz for point in (BEYOND, INSIDE, BEYOND)] == [3, 4, 4]
            assert [curvature(point).nnz for point in (INSIDE, BEYOND, INSIDE)] == [4, 5, 5]


def zero_beyond(x: Any) -> Any:
    return [x[0] * x[1], x[2] ** 2] if x[0] < 1.0 else [1.0, 2.0]


def test_a_branch_whose_derivative_is_0_everywhere() -> None:
    """It has a program like any other branch, whose pattern has no places."""
    sparse = jacobian(zero_beyond, sparse=True)
    counts = [same(sparse, jacobian(zero_beyond), (point,)).nnz for point in (BEYOND, BEYOND, INSIDE, BEYOND, INSIDE)]
    assert counts == [0, 0, 3, 3, 3]
    assert not sparse.compiled._server.specializer.recorded_directly, sparse.report()
    recordings = sparse.compiled._server.last.specializations
    assert [len(each.structure.pattern.indices) for each in recordings] == [0, 3]


def test_a_pattern_comes_with_the_numbers() -> None:
    """The same one in each call of a program, and an equal one where the function itself runs."""
    derivative = jacobian(by_sign, sparse=True).compiled
    (_, _), (first, numbers), (again, _) = (derivative(INSIDE) for _ in range(3))
    assert first is again
    assert first.shape == (2, 3)
    assert numbers.tolist() == [1.0, 0.5, 1.0]
    with profiled(), uncompiled():
        eager, entries = derivative(INSIDE)
    assert eager is not first
    assert eager == first
    assert entries.tolist() == numbers.tolist()


# -- without a program ------------------------------------------------------------------------------------------------


def band(x: Any, of: Any) -> Any:
    return [of.exp(0.3 * a) * b - c**3 for a, b, c in zip(x, x[1:], x[2:], strict=False)]


def arrowhead(x: Any, of: Any) -> Any:
    return [*[x[0] * of.tanh(v) for v in x[1:]], sum(v * v for v in x)]


def masked(x: Any, of: Any) -> Any:
    return [of.where(a > 0.1, of.sin(a * b), b / (2.0 + a * a)) for a, b in itertools.pairwise(x)]


def forked(x: Any, of: Any) -> Any:
    return [of.sin(a * b) if a > 0.1 else b**2 + x[0] for a, b in itertools.pairwise(x)]


def recurrent(x: Any, of: Any) -> Any:
    states = [x[0]]
    for v in x[1:]:
        states.append(of.tanh(states[-1] + v))
    return [states[-1], sum(s * s for s in states)]


@pytest.mark.parametrize("f", [band, arrowhead, masked, forked, recurrent])
def test_without_a_program_like_pytorch(f: Any) -> None:
    torch = pytest.importorskip("torch")
    jac: Any = jacobian(lambda x: f(x, wengert), sparse=True)
    hess: Any = hessian(lambda x: sum(r * r for r in f(x, wengert)), sparse=True)
    with profiled():
        for seed in range(2):
            x = np.random.default_rng(seed).uniform(-0.9, 0.9, 7)
            point = torch.tensor(x)
            want = torch.autograd.functional.jacobian(lambda x: torch.stack(f(x, torch)), point).numpy()
            assert jac(x).toarray() == pytest.approx(want, rel=1e-12, abs=1e-13)
            want = torch.autograd.functional.hessian(lambda x: sum(r * r for r in f(x, torch)), point).numpy()
            assert hess(x).toarray() == pytest.approx(want, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("derivative", "f", "jvps", "vjps", "nonzeros"),
    [
        (hessian, chain, 3, 0, 3 * 600 - 2),
        (hessian, lambda x: sum(x[0] * v**2 for v in x), 2, 0, 3 * 600 - 2),
        (jacobian, lambda x: [10.0 * (b - a * a) for a, b in itertools.pairwise(x)], 2, 0, 2 * 599),
        (jacobian, lambda x: [x[0] * sum(v * v for v in x[1:]), x[0]], 0, 2, 601),
        (jacobian, diagonal_and_row, 0, 2, 2 * 600),
        (jacobian, both, 2, 1, 3 * 600 - 2),
    ],
)
def test_few_sweeps_without_a_program(
    derivative: Any, f: Any, jvps: int, vjps: int, nonzeros: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"jvp": 0, "vjp": 0}

    def counted(kind: Any, name: str) -> None:
        sweep = getattr(kind, name)

        def count(self: Any, given: Any) -> Any:
            calls[name] += 1
            return sweep(self, given)

        monkeypatch.setattr(kind, name, count)

    for kind, name in itertools.product((linearize.LinearMap, linearize.GradientMap), calls):
        counted(kind, name)
    with profiled():
        matrix = derivative(f, sparse=True)(np.linspace(-1.0, 2.0, 600))
    assert (calls, matrix.nnz) == ({"jvp": jvps, "vjp": vjps}, nonzeros)


def test_operations_and_values_from_outside_without_a_program() -> None:
    weight, model = Value(3.0), nn.MLP(2, [3, 1], activation="tanh", rng=random.Random(1))
    product = wengert.compile(lambda x: [a * b for a, b in itertools.pairwise(x)])
    for f, count in (
        (lambda x: [weight * x[0] * x[1], model(x[1:]), weight], 4),
        (lambda x: [*product(x), x[1], x[1]], 6),  # a compiled function gives several results
        (lambda x: [wengert.root(lambda y, a: y**3 + y - a, 1.0, a) * b for a, b in itertools.pairwise(x)], 4),
        (lambda x: [v / wengert.stop_gradient(sum(x)) for v in x], 3),
        (lambda x: [weight, 2.0], 0),
    ):
        energy = lambda x, f=f: sum(r * r for r in f(x)) + x[2] * x[2]  # noqa: E731
        x = [0.3, 0.7, 1.2]
        with profiled(), wengert.no_grad():
            got, want = jacobian(f, sparse=True)(x), dense(jacobian(f)(x), len(f(x)))
            assert got.toarray() == pytest.approx(want, rel=1e-12)
            assert got.nnz == count
            got, want = hessian(energy, sparse=True)(x), dense(hessian(energy)(x), 3)
            assert got.toarray() == pytest.approx(want, rel=1e-12, abs=1e-12)
        with profiled():
            assert hessian(energy, sparse=True)(x).toarray().tolist() == got.toarray().tolist()


def test_an_infinite_slope_does_not_spread_without_a_program() -> None:
    """The square root of 0 has the slope inf, which times the 0 of `floor` is nan, where that number alone counts."""
    with profiled():
        got = jacobian(lambda x: [wengert.sqrt(wengert.floor(x[0])) + x[1], x[0] * x[2]], sparse=True)([0.5, 2.0, 3.0])
    assert np.array_equal(got.toarray(), [[np.nan, 1.0, 0.0], [3.0, 0.0, 0.5]], equal_nan=True)


def test_each_shape_has_a_pattern_of_its_own_and_a_result_its_own_arrays() -> None:
    sparse = hessian(chain, sparse=True)
    for n in (5, 3, 8, 5):
        matrix = same(sparse, hessian(chain), (np.linspace(-1.0, 2.0, n),))
        assert matrix.nnz == 3 * n - 2
        matrix.data[:] = 0.0
        matrix.eliminate_zeros()


@pytest.mark.parametrize("form", [lambda m: m, lambda m: m.toarray(), lambda m: m.toarray().astype(int).tolist()])
def test_a_given_pattern_is_that_of_each_result(form: Any) -> None:
    pattern = wengert.sparsity(by_sign)
    pattern(INSIDE)
    sparse = jacobian(by_sign, sparsity=form(pattern(BEYOND)))
    for point in (BEYOND, INSIDE):
        assert same(sparse, jacobian(by_sign), (point,)).nnz == 4
        with uncompiled():
            assert same(sparse, jacobian(by_sign), (point,)).nnz == 4
    stored = scipy_sparse.csr_matrix(([0.0, 0.0], ([0, 1], [0, 1])), (2, 2))  # what is stored counts
    assert hessian(lambda x: x[0] ** 2 + x[1] ** 2, sparse=True, sparsity=stored)([1.0, 2.0]).nnz == 2


def test_a_given_pattern_may_leave_out_what_is_0() -> None:
    """Of an integer it is not known from the program alone which item it chooses."""

    def f(x: Any, i: int) -> Any:
        return [wengert.pick(x, i) ** 2, x[0]]

    sparse = jacobian(f, sparsity=[[1, 1, 0], [1, 0, 0]])
    same(sparse, jacobian(f), ([1.0, 2.0, 3.0], 0), ([1.0, 2.0, 3.0], 1))
    with pytest.raises(ArgumentError, match=r"6\.0 in row 0, column 2"):
        sparse([1.0, 2.0, 3.0], 2)


def test_an_entry_outside_a_given_pattern_names_the_branch() -> None:
    pattern = wengert.sparsity(by_sign)(INSIDE)
    line = by_sign.__code__.co_firstlineno
    first = jacobian(by_sign, sparsity=pattern)
    message = rf"Jacobian of by_sign is 1.0 in row 1, column 2.*test_sparse.py, line {line + 1} .*x\[0\] > 1 was True"
    with pytest.raises(ArgumentError, match=message):
        first(BEYOND)
    second = jacobian(by_sign, sparsity=pattern)
    assert second(INSIDE).nnz == 3
    for _ in range(2):
        with pytest.raises(ArgumentError, match=rf"row 1, column 2.*branched at test_sparse.py, line {line + 1} "):
            second(BEYOND)
    assert second(INSIDE).nnz == 3
    with (
        uncompiled(),
        pytest.raises(ArgumentError, match=rf"row 1, column 2.*defined at test_sparse.py, line {line} "),
    ):
        second(BEYOND)
    with pytest.raises(ArgumentError, match=r"Hessian of chain is .* in row 0, column 1"):
        hessian(chain, sparsity=np.eye(3))([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (np.eye(2), r"sparsity has the shape \(2, 2\), and the Jacobian of by_sign has \(2, 3\)"),
        (scipy_sparse.eye_array(3), r"sparsity has the shape \(3, 3\)"),
        (np.ones(3), "expected a sparse matrix of SciPy, or zeros and ones"),
        ("banded", "sparsity is 'banded'; expected"),
        ([[1], [1, 0]], "expected a sparse matrix"),
        (3, "sparsity is 3; expected"),
        (wengert.sparsity(by_sign), r"sparsity is a function; expected a matrix: call it"),
    ],
)
def test_a_given_pattern_is_a_matrix_of_the_same_shape(pattern: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        jacobian(by_sign, sparsity=pattern)(INSIDE)


def test_arguments_of_several_sizes() -> None:
    def f(x: Any) -> Any:
        return sum(x[i] ** 2 * x[i + 1] for i in range(len(x) - 1))

    curvature = hessian(f, sparse=True)
    for n in (3, 5, 2, 5, 3):
        got = curvature(np.arange(1.0, n + 1.0))
        assert (got.shape, got.nnz) == ((n, n), 3 * n - 3)
        assert np.array_equal(got.toarray(), hessian(f)(np.arange(1.0, n + 1.0)))
        got.data[0] = 0.0
        got.eliminate_zeros()  # is of this matrix alone


def test_the_pattern_is_that_of_the_program_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers want the same places in each call, whatever the numbers are."""
    monkeypatch.setattr(policy, "FREE", 420_000)
    draw = random.Random(1)
    chosen = [(draw.choice([wengert.sin, tanh, exp]), draw.randrange(8), draw.randrange(8)) for _ in range(18)]

    def f(x: Any) -> Any:
        total = x[0] * x[0]
        for of, i, j in chosen:
            total = total + of(0.1 * total * x[i]) * x[j] ** 2
        return total

    curvature = hessian(f, sparse=True)
    counts = [curvature(np.zeros(8)).nnz]
    assert "the function itself runs until" in curvature.report()
    for point in (np.full(8, 0.3), *[np.zeros(8)] * 200):
        counts.append(curvature(point).nnz)
    assert set(counts) == {64}
    assert "machine code runs" in curvature.report()


def test_compile_of_a_sparse_derivative_is_one() -> None:
    compiled = wengert.compile(hessian(lambda x: x[0] ** 2 * x[1], sparse=True), checks="first")
    for _ in range(3):
        assert compiled([3.0, 2.0]).toarray().tolist() == [[4.0, 6.0], [6.0, 0.0]]
    assert "uncompiled" not in compiled.report()
    assert compiled.compiled.checks == "first"


def test_structures_of_arguments() -> None:
    def f(a: Any, b: Any, scale: float) -> Any:
        return {"p": [scale * a["x"] * b[0], b[1] ** 2], "q": a["y"]}

    point = ({"x": 2.0, "y": 3.0}, [4.0, 5.0], 0.5)
    got = jacobian(f, argnums=(0, 1), sparse=True)(*point)
    assert got.toarray().tolist() == [[2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 10.0], [0.0, 1.0, 0.0, 0.0]]
    assert jacobian(wengert.compile(f), sparse=True)(*point).toarray()[0].tolist() == [2.0, 0.0]
    assert hessian(lambda a, b: a[0] * b * a[1], sparse=True)([2.0, 3.0], b=4.0).toarray().tolist() == [[0, 4], [4, 0]]


def test_of_derivatives_of_higher_order() -> None:
    """The pattern is that of the program of the derivative before."""

    def f(x: Any, y: Any) -> Any:
        return sum((a * b) ** 2 * y[0] for a, b in itertools.pairwise(x)) + y[1] ** 3

    point = [0.5, -1.0, 2.0, 0.3], [1.5, -0.5]
    got = same(jacobian(hessian(f), sparse=True), jacobian(hessian(f)), point)
    assert got.shape == (16, 4)
    assert got.nnz < 64
    got = same(jacobian(grad(f), argnums=1, sparse=True), jacobian(grad(f), argnums=1), point)
    assert (got.shape, got.nnz) == ((4, 2), 4)


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
    with pytest.raises(OperandError, match="str"):
        jacobian(lambda x: [x["a"]], sparse=True)({"a": 1.0, "b": "two"})
    with pytest.raises(OperandError, match=r"the result\[1\] is str 'two'"):
        jacobian(lambda x: [x[0], "two"], sparse=True)([1.0])
    with (
        pytest.warns(UserWarning, match="returns None"),
        pytest.raises(ArgumentError, match=r"a Jacobian needs numbers, and .* returned None"),
    ):
        jacobian(lambda x: None, sparse=True)([1.0])
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    for derivative, options in itertools.product((jacobian, hessian), ({"sparse": True}, {"sparsity": [[1]]})):
        with pytest.raises(MissingExtraError, match=r'pip install scipy \(the extra "sparse"\)'):
            derivative(chain, **options)


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
