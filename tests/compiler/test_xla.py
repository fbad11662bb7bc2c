"""The back end "xla": programs by JAX, the same as the engine, and nothing of JAX's settings is changed."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import wengert
from wengert import Value, losses, nn, optim
from wengert.errors import ArgumentError, MissingExtraError
from wengert.ops import BY_NAME

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax", reason="needs jax")

from tests.compiler.checks import CLOSE, Numbers, batch_of, difference, gradients, lifted, warned  # noqa: E402
from tests.programs import trial as trials  # noqa: E402
from tools.qa import lifting_fuzz  # noqa: E402
from wengert.compiler.backends import BACKENDS, default_backend  # noqa: E402
from wengert.compiler.backends.xla.kernel import SIZES, XLAKernel, _laid_out  # noqa: E402

pytestmark = [pytest.mark.jax, pytest.mark.once]  # what computes is XLA


@pytest.fixture(autouse=True)
def settings_as_they_were() -> Iterator[None]:
    before = jax.config.jax_enable_x64, jax.numpy.ones(1).dtype
    yield
    assert (jax.config.jax_enable_x64, jax.numpy.ones(1).dtype) == before


def same(function: Any, columns: list[Any], parameters: list[Value]) -> Any:
    """A function by XLA: a batch's mean and each of its results, and one example, are the engine's."""
    compiled = wengert.compile(function, backend="xla")
    rows = [column.tolist() for column in columns]
    got, want = compiled.mean(*columns), batch_of(function, *rows)
    assert difference(got.data, want.data) < CLOSE
    assert difference(gradients(got, parameters), gradients(want, parameters)) < CLOSE
    assert difference(compiled.map(*columns), [function(*row).data for row in zip(*rows, strict=True)]) < CLOSE
    lifted(compiled)
    assert compiled._server.latest().kernel.name == "xla"
    return compiled


def test_a_network() -> None:
    model = nn.MLP(2, [5, 1], rng=random.Random(1))

    def loss(x: Numbers, y: float) -> Any:
        return losses.hinge(model(x), y) + losses.l2(model.parameters(), 1e-2)

    X = np.random.default_rng(0).normal(size=(6, 2))
    same(loss, [X, np.sign(X[:, 1])], model.parameters())


def test_gathers_by_integers_of_the_arguments_and_sums_of_all_lengths() -> None:
    """Rows chosen twice add up, and padding is masked."""
    table = [[Value(0.1 * a - 0.3 * b) for b in range(3)] for a in range(4)]

    def loss(word: list[int], x: float) -> Any:
        rows = [table[letter] for letter in word]
        heads = [wengert.softmax([wengert.dot(rows[t], rows[s]) * x for s in range(t + 1)]) for t in range(3)]
        return losses.cross_entropy([sum(row) for row in rows], 1) + sum(h[0] * h[-1] for h in heads)

    words = np.random.default_rng(0).integers(0, 4, (5, 3))
    same(loss, [words, np.linspace(-1, 1, 5)], [p for row in table for p in row])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, 1e200])
def test_kinks_are_the_engines_and_not_jaxs(x: float) -> None:
    w, v = Value(x), Value(x)

    def kinked(scale: float) -> Any:
        tied = wengert.maximum(w, v) + abs(w) + w.relu() + wengert.max([w, v, w * 1.0]) + wengert.clip(v, 0.0, 1.0)
        return tied * scale

    same(kinked, [np.array([1.0, 2.0])], [w, v])


def test_a_row_that_computes_floats_is_called_back() -> None:
    wengert.op("slow_gamma", value=lambda x: math.gamma(x), partials=lambda out, x: out * wengert.digamma(x))
    w = Value(0.4)
    same(lambda x: BY_NAME["slow_gamma"](w * x) ** 2, [np.array([0.5, 2.0, -1.0])], [w])


def test_values_among_the_arguments_get_gradients() -> None:
    w = Value(0.5)
    function = wengert.compile(lambda x, y: w * x * x + y, backend="xla")
    for _ in range(2):
        x, y = Value(3.0), Value(1.0)
        result = function(x, y)
        result.backward()
        assert (result.data, x.grad, y.grad) == (5.5, 3.0, 1.0)


def test_batches_of_any_size_are_cut_into_few() -> None:
    """As of examples that take one of several ways; XLA compiles each size anew."""
    w = Value(0.7)

    def loss(x: float) -> Any:
        return wengert.tanh(w * x) if w * x > 0.0 else w * x * x

    compiled = wengert.compile(loss, backend="xla")
    draw = np.random.default_rng(0)
    for count in (3, 8, 21, 50):
        X = draw.normal(size=count)
        got, want = compiled.mean(X), batch_of(loss, X.tolist())
        assert difference(got.data, want.data) < CLOSE
        assert difference(gradients(got, [w]), gradients(want, [w])) < CLOSE
        assert difference(compiled.map(X), [loss(x).data for x in X.tolist()]) < CLOSE
    for made in compiled._server.last.specializations:
        kernel = made.kernel
        assert len(kernel._sizes) == SIZES
        assert all(run._cache_size() <= SIZES + 6 for run in kernel._compiled.values())


def test_what_is_not_finite_is_the_engines() -> None:
    w = Value(1.0)
    compiled = wengert.compile(lambda x: (w * x).exp(), backend="xla")
    assert compiled(1.0).data == pytest.approx(math.e)
    result = compiled(800.0)
    assert result.data == math.inf
    assert "1 call fell back to the function: numbers were not finite" in compiled.report()


def test_results_may_be_written_into() -> None:
    w = Value(2.0)
    compiled = wengert.compile(lambda x: w * x, backend="xla")
    made = compiled.map(np.array([1.0, 2.0]))
    made[0] = 5.0
    assert compiled.map(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_a_transposed_matrix_is_copied_before_a_product_on_processors() -> None:
    """There XLA takes up to twice the time for one whose rows lie across the memory; the numbers are the same."""
    rows = np.arange(12.0).reshape(3, 4)
    product = jax.jit(lambda x: _laid_out(x.T) @ x)
    assert "optimization_barrier" in product.lower(rows).as_text()
    assert (np.asarray(product(rows)) == rows.T @ rows).all()


@pytest.mark.nightly  # at each change test_backends.py fits by it
def test_fit_learns_the_same() -> None:
    X = np.random.default_rng(0).normal(size=(24, 3))
    Y = (X[:, 0] * X[:, 1] > 0).astype(int)

    def numbers(backend: str) -> list[float]:
        model = nn.MLP(3, [4, 2], rng=random.Random(2))
        how: dict[str, Any] = {"batch_size": 10, "seed": 3, "progress": False, "backend": backend}
        history = wengert.fit(model, losses.cross_entropy, X, Y, optim.Adam(model, 0.05), 3, **how)
        assert (history.backend, history.fallback) == (backend, "")
        return [*history.loss, *history.accuracy, *[p.data for p in model.parameters()]]

    assert numbers("xla") == pytest.approx(numbers("numpy"), rel=1e-9)


def test_nobody_gets_it_unasked() -> None:
    assert default_backend().name != "xla"
    w = Value(0.5)
    compiled = wengert.compile(lambda x: w * x)
    compiled(1.0)
    assert compiled._server.latest().kernel.name != "xla"


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "xla", BACKENDS["xla"]._replace(library="no_such_library"))
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r'no_such_library: pip install no_such_library \(the extra "xla"\)'):
        wengert.compile(lambda x: x, backend="xla")


@pytest.mark.nightly  # ten seconds each; at each change XLA runs the programs below, and random ones run natively
@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs(seed: int) -> None:
    error, refused = lifting_fuzz.run(seed, backend="xla")
    assert not refused
    assert error < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "arguments.list_of_values",
        pytest.param("finance.black_scholes", marks=pytest.mark.nightly),  # ten seconds each
        pytest.param("physics.orbit_by_vectors", marks=pytest.mark.nightly),
    ],
)
def test_programs_as_users_write_them(name: str) -> None:
    if name not in trials.collection():
        pytest.fail(f"there is no program {name}")
    outcome = trials.trial(name, "xla")
    assert outcome.failures == []
    assert outcome.verdict in (trials.LIFTED, "engine")


def test_single_precision_on_request() -> None:
    """Values of NumPy's doubles come out, of single precision; what is checked against the engine is checked so."""
    model = nn.MLP(3, [2], rng=random.Random(0))

    def loss(x: Numbers, y: int) -> Any:
        return losses.cross_entropy(model(x), y)

    single, double = (wengert.compile(loss, backend="xla", dtype=dtype) for dtype in ("float32", "float64"))
    X, Y = np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) % 2
    for _ in range(3):
        got, want = single.mean(X, Y), double.mean(X, Y)
    lifted(single)
    slopes = [gradients(x, model.parameters()) for x in (got, want)]
    assert 1e-9 < difference(*slopes) < 1e-5
    assert single.map(X, Y).dtype == np.float64
    assert (single.map(X, Y) == single.map(X, Y).astype(np.float32)).all()
    for backend in ("auto", "numpy"):
        with pytest.raises(ArgumentError, match='backend="xla"'):
            wengert.compile(loss, backend=backend, dtype="float32")


def test_a_wrong_program_is_found_in_single_precision_too(monkeypatch: pytest.MonkeyPatch) -> None:
    both = XLAKernel.forward_backward

    def wrong(self: Any, arrays: Any, seed: Any, buffers: Any) -> Any:
        made = both(self, arrays, seed, buffers)
        buffers.grads[...] *= 1.001
        return made

    monkeypatch.setattr(XLAKernel, "forward_backward", wrong)
    w = Value(2.0)
    compiled = wengert.compile(lambda x: w * x * x, backend="xla", dtype="float32")
    said = warned(*[lambda: compiled(3.0)] * 3)
    assert all("the derivative of the array program is 9.00" in text for text in said)
    assert "runs uncompiled" in compiled.report()
