"""Compiled derivatives of `where` flow into the side that is taken, and only there, as with Python's `if`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wengert
from tests.choices import SHAPES, function, lists, point, taken
from tests.test_where import ALONG, FAR, OPERANDS, ROWS, again, agree
from wengert import Value, compile, grad, hessian, hvp, jacobian, jvp, nn, value_and_grad

np = pytest.importorskip("numpy")
CALLS = 5  # the first four are checked, and the last one is not

MODES: dict[str, Callable[..., Any]] = {
    "grad": grad,
    "value_and_grad": value_and_grad,
    "jvp": lambda f: lambda xs: jvp(f, (xs,), (ALONG[: len(xs)],))[1],
    "hvp": lambda f: lambda xs: hvp(f)(xs, ALONG[: len(xs)]),
    "hessian": hessian,
    "second": again,
    "third": lambda f: again(lambda xs: sum([d * c for d, c in zip(grad(f)(xs), ALONG, strict=False)])),
}


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    """A function that ran uncompiled would give the right numbers: it warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            yield


def check(derivative: Callable[..., Any], f: Callable[..., Any], backend: str, count: int, seed: int) -> None:
    run = compile(derivative(lambda xs: f(xs, wengert.where)), backend=backend)
    for at in range(CALLS):
        xs = point(CALLS * seed + at, count)
        assert agree(listed(run(xs)), listed(derivative(lambda xs: f(xs, taken))(xs))), xs


def listed(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray) else [*map(listed, x)] if isinstance(x, (list, tuple)) else x


@pytest.mark.slow
@pytest.mark.sampled(20)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(40))
def test_random_functions_have_the_derivatives_of_their_ifs(seed: int, mode: str) -> None:
    check(MODES[mode], function(seed), "numpy", 3, seed)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("mode", ["grad", "second"])
@pytest.mark.parametrize("seed", range(100, 130))
def test_random_functions_in_machine_code(seed: int, mode: str) -> None:
    check(MODES[mode], function(seed), "native", 3, seed)


@pytest.mark.jax
@pytest.mark.sampled(12)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.__name__))
def test_choices_in_xla(shape: Callable[..., Any]) -> None:
    pytest.importorskip("jax", reason="needs jax")
    check(grad, shape, "xla", 4, 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", ["grad", "second", "hessian"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.__name__))
def test_choices_over_sums_and_loops(shape: Callable[..., Any], mode: str) -> None:
    check(MODES[mode], shape, "numpy", 4, 1)


@pytest.mark.parametrize("seed", range(3))
def test_jacobians_dense_and_sparse(seed: int) -> None:
    pytest.importorskip("scipy", reason="needs scipy")
    f = lists(seed)
    run, sparse = compile(jacobian(f)), compile(jacobian(f, sparse=True))
    for at in range(CALLS):
        xs = point(seed + at)
        want = jacobian(lambda xs: f(xs, taken))(xs)
        assert agree(listed(run(xs)), want)
        assert agree(sparse(xs).toarray().tolist(), want)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(24))
def test_batches(seed: int) -> None:
    f = function(seed)
    parameters = [Value(0.0), Value(0.0)]

    def example(xs: Any, where: Any = wengert.where) -> Any:
        return f([*parameters, *[x + 0.0 * parameters[0] for x in xs]], where)

    loss = compile(example)
    rows_of = compile(grad(lambda xs: f([0.5 + 0.0 * xs[0], *xs])))
    for at in range(CALLS):
        rows = [point(seed + at + row, 2) for row in range(4)]
        for p, x in zip(parameters, point(seed - at, 2), strict=True):
            p.data, p.grad = x, 0.0
        loss.mean(rows).backward()
        got = [p.grad for p in parameters]
        for p in parameters:
            p.grad = 0.0
        (sum([example(row, taken) for row in rows]) / 4.0).backward()
        assert agree(got, [p.grad for p in parameters])
        want = [grad(lambda xs: f([0.5 + 0.0 * xs[0], *xs], taken))(row) for row in rows]
        assert agree(listed(rows_of.map(rows)), want)


def test_no_operation_passes_on_a_gradient_where_it_is_not_taken() -> None:
    unary = [row for row in ROWS if row.arity == 1]

    def sides(x: Any) -> Any:
        return [wengert.where(x > FAR, row(x), 3.0 * x) for row in unary]

    first = compile(jacobian(sides))
    second = compile(jacobian(lambda x: [grad(lambda x, n=n: sides(x)[n])(x) for n in range(len(unary))]))
    for x in OPERANDS[1:-2]:  # of numbers
        assert listed(first(x)) == [3.0] * len(unary)
    for x in OPERANDS[1:-2]:
        assert agree(listed(second(x)), [0.0] * len(unary)), x


def test_arrays_of_numpy() -> None:
    def roots(xs: Any) -> Any:
        return np.sum(np.where(xs > 0, np.sqrt(xs), 0.0))

    xs = np.array([-1.0, 0.0, 4.0])
    run, curved = compile(grad(roots)), compile(hessian(roots))
    for _ in range(CALLS):
        assert run(xs).tolist() == grad(roots)(xs).tolist() == [0.0, 0.0, 0.25]
        assert curved(xs).tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -1.0 / 32.0]]


def test_compiled_results_beside_choices() -> None:
    w = Value(0.0)
    root = compile(lambda x: wengert.sqrt(w) * x)
    for _ in range(CALLS):
        w.grad = 0.0
        wengert.where(w > 1.0, root(2.0), w * 3.0).backward()
        assert w.grad == 3.0


def test_zero_times_infinity_is_still_nan_elsewhere() -> None:
    run = compile(grad(lambda x: wengert.where(x >= 0.0, wengert.sqrt(x) ** 3 / wengert.sqrt(x), 0.0)))
    for _ in range(CALLS):
        assert math.isnan(run(0.0))
        assert run(-1.0) == 0.0


def check_source(f: Callable[..., Any], count: int, seed: int) -> None:
    """The source is what no check of the result stands behind: a compiled call computes anew what is not finite."""
    run = compile(grad(lambda xs: f(xs, wengert.where)), backend="numpy")
    for _ in range(2):
        run([0.5] * count)
    source = str(run.source())
    names: dict[str, Any] = {}
    exec(source, names)
    written = names[source[source.rindex("def grad_of") + 4 :].partition("(")[0]]
    for at in range(8):
        xs = point(8 * seed + at, count)
        want = grad(lambda xs: f(xs, taken))(xs)
        if all(map(math.isfinite, want)):
            assert agree(written(np.array(xs)).tolist(), want), xs


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.__name__))
def test_sources_of_choices_over_sums_and_loops(shape: Callable[..., Any]) -> None:
    check_source(shape, 4, 2)


@pytest.mark.sampled(25)
@pytest.mark.parametrize("seed", range(100))
def test_sources_of_random_functions(seed: int) -> None:
    check_source(function(seed), 3, seed)


def sources(f: Callable[..., Any], count: int) -> str:
    run = compile(f, backend="numpy")
    for _ in range(2):
        run.mean([[0.1, 0.2], [0.3, -0.4]], *[[0.5, -0.6]] * count).backward()
    return str(run.source())


def test_networks_below_a_choice_are_as_without_it() -> None:
    model = nn.MLP(2, [4, 1])

    def loss(x: Any, y: Any) -> Any:
        return (model(x) - y) ** 2

    products = sources(loss, 1).count("@")
    masked = sources(lambda x, y, keep: wengert.where(keep > 0.0, loss(x, y), 0.0), 2)
    assert masked.count("@") == products
    assert "taken" not in masked
    logs = sources(lambda x, y, keep: wengert.where(keep > 0.0, -wengert.log(wengert.sigmoid(model(x))), 0.0), 2)
    assert logs.count("@") == products
