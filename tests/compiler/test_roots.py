"""Roots in compiled functions: one operation on every back end, beside the same function uncompiled."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from tests.compiler.checks import lifted, warned  # noqa: E402
from tests.compiler.test_sources_c import called, needs_gcc  # noqa: E402
from wengert import Value, exp, fixed_point, grad, hessian, jacobian, root, sin, where  # noqa: E402
from wengert.errors import ArgumentError, RootError  # noqa: E402

pytestmark = pytest.mark.once  # what computes is the array program


def tree(f: Any, *columns: Any) -> Any:
    return np.array([f(*map(float, row)) for row in zip(*columns, strict=True)])


def kepler(e: Any, m: Any) -> Any:
    return root(lambda x: x - e * sin(x) - m, m)


def cubic(a: Any, b: Any) -> Any:
    return root(lambda x: x**3 + a * x - b, 1.0, bracket=(-9.0, 9.0))


def fixed(a: Any, b: Any) -> Any:
    return fixed_point(lambda x, a: 0.5 * (x + a / x) + b * 0.01, 1.0, a)


def chosen(a: Any, b: Any) -> Any:
    return root(lambda x: where(x > b, x * x - a, 2.0 * x - a) + wengert.maximum(x, a), a)


def nested(a: Any, b: Any) -> Any:
    return root(lambda x: x * root(lambda y: y**3 + b * y - x * a, 1.0) - 1.0, 1.0)


def stepped(a: Any, b: Any) -> Any:
    """The implicit Euler method: a loop, whose every step is a root."""
    y = a
    for _ in range(25):
        y = root(lambda z, y=y: z - y + 0.05 * b * z * exp(z), y)
    return y


FUNCTIONS = [kepler, cubic, fixed, chosen, nested, stepped]
A, B = np.linspace(0.1, 0.8, 23), np.linspace(0.3, 2.1, 23)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_batches_and_their_gradients(f: Any, backend: str) -> None:
    beside(f, backend)


@pytest.mark.jax
@pytest.mark.parametrize(
    "f",
    [kepler, *(pytest.param(f, marks=pytest.mark.nightly) for f in FUNCTIONS[1:])],  # XLA takes seconds to compile each
    ids=lambda f: f.__name__,
)
def test_by_xla(f: Any) -> None:
    beside(f, "xla")


def beside(f: Any, backend: str) -> None:
    """Compare a function and its gradient with what they are uncompiled."""
    compiled = wengert.compile(f, backend=backend)
    assert compiled.map(A, B) == pytest.approx(tree(f, A, B), rel=1e-13)
    slopes = wengert.compile(grad(lambda p: f(*p)), backend=backend)
    rows = np.stack([A, B], 1)
    assert slopes.map(rows) == pytest.approx(np.array([grad(lambda p: f(*p))(row.tolist()) for row in rows]), rel=1e-9)
    for each in (compiled, slopes):
        lifted(each)
        assert each.map(*([rows] if each is slopes else [A, B])) is not None
        assert "specialization 2" not in each.report()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [kepler, cubic, chosen, nested], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_further_orders(f: Any, backend: str) -> None:
    second, rows = hessian(lambda p: f(*p)), np.stack([A, B], 1)[:5]
    compiled = wengert.compile(second, backend=backend)
    assert compiled.map(rows) == pytest.approx(np.array([second(row.tolist()) for row in rows]), rel=1e-8, abs=1e-12)
    third = grad(grad(grad(f)))
    compiled = wengert.compile(third, backend=backend)
    assert compiled.map(A[:4], B[:4]) == pytest.approx(tree(third, A[:4], B[:4]), rel=1e-7, abs=1e-12)
    lifted(compiled)


def test_a_loop_of_roots_stays_a_loop() -> None:
    """So twice as many steps are as many operations."""
    sizes = set()
    for count in (60, 120):  # of fewer, `compile` keeps the steps apart

        def stepped(a: Any, b: Any, count: int = count) -> Any:
            y = a
            for _ in range(count):
                y = root(lambda z, y=y: z - y + 0.05 * (b * z - sin(z)), y)
            return y

        compiled = wengert.compile(grad(stepped), backend="native")
        for _ in range(3):
            assert compiled(1.0, 2.0) == pytest.approx(grad(stepped)(1.0, 2.0), rel=1e-12)
        lifted(compiled)
        sizes.add(compiled.report().partition("became ")[2].split()[0])
    assert len(sizes) == 1


def test_parameters_and_values_among_the_arguments() -> None:
    w, u = Value(2.0), Value(2.0)

    def loss(w: Any, a: Any) -> Any:
        return (root(lambda x: x**3 + w * x - a, 1.0) - 0.3 * w) ** 2

    compiled = wengert.compile(lambda a: loss(w, a))
    for _ in range(3):
        w.grad = 0.0
        got = compiled.mean(B)
        got.backward()
    want = wengert.mean([loss(u, b) for b in B.tolist()])
    want.backward()
    assert (got.data, w.grad) == pytest.approx((want.data, u.grad), rel=1e-12)
    single = wengert.compile(loss)
    for _ in range(3):
        v = Value(0.7)
        single(w, v).backward()
    x = Value(0.7)
    loss(u, x).backward()
    assert v.grad == pytest.approx(x.grad, rel=1e-12)
    lifted(compiled)
    lifted(single)


def test_derivatives_inside_of_the_function() -> None:
    """Of a root, alone and beside its value, and in the function whose root is sought."""
    functions = [
        lambda e: [kepler(e, 1.0), grad(kepler)(e, 1.0)],
        lambda e: grad(kepler)(e, 1.0) * 2.0 + kepler(e, 1.0),
        lambda e: root(lambda x: grad(lambda y: exp(y) - e * y)(x), 1.0),
    ]
    for f in functions:
        compiled = wengert.compile(f)
        for _ in range(2):
            assert compiled.map(A) == pytest.approx(tree(f, A), rel=1e-12)
        lifted(compiled)


def test_a_float_stays_a_float() -> None:
    compiled = wengert.compile(kepler)
    assert [type(compiled(0.5, 1.0)) for _ in range(3)] == [float] * 3
    assert isinstance(compiled(Value(0.5), 1.0), Value)
    lifted(compiled)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_is_not_found_raises_as_uncompiled(backend: str) -> None:
    """Also where the root makes no difference, and where it is not found for one example alone."""
    functions = [
        lambda a: root(lambda x: x * x - a, 1.0),
        lambda a: where(a > 0.0, root(lambda x: x * x - a, 1.0), 0.0),
        lambda a: [a, root(lambda x: x * x - a, 1.0)][0],
    ]
    for f in functions:
        compiled = wengert.compile(f, backend=backend)
        for _ in range(2):
            assert compiled.map(B) == pytest.approx(tree(f, B))
            assert compiled(4.0) == f(4.0)
        lifted(compiled)
        for call in (lambda c=compiled: c(-4.0), lambda c=compiled: c.map(np.append(B, -4.0))):
            with pytest.raises(RootError, match=r"has no root near x0 = 1; .* it is 4 at"):
                call()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_missing_roots_are_nan_for_their_examples(backend: str) -> None:
    compiled = wengert.compile(lambda a: root(lambda x: x * x - a, 1.0, missing="nan"), backend=backend)
    points = np.array([4.0, -1.0, 9.0, -2.0, 16.0, 25.0, 36.0, 49.0])
    for _ in range(3):
        found = compiled.map(points)
        assert found == pytest.approx(np.sqrt(np.where(points < 0.0, np.nan, points)), nan_ok=True)
    assert not np.isnan(compiled(4.0))
    assert np.isnan(compiled(-4.0))
    lifted(compiled)


def test_a_branch_on_the_root_runs_uncompiled() -> None:
    def kinked(x: Any, a: Any) -> Any:
        return x * x - a if x > 1.0 else x - a

    compiled = wengert.compile(lambda a: root(kinked, 2.0, a))
    assert any("branches on the root that it looks for: write wengert.where" in text
               for text in warned(lambda: compiled.map([0.5, 4.0])))  # fmt: skip
    assert compiled.map([0.5, 4.0]).tolist() == pytest.approx([0.5, 2.0])
    other = wengert.compile(lambda a: root(lambda x: x * x - (a if a > 1.0 else 1.0), 2.0))  # not on the root
    assert other.map([0.5, 4.0]).tolist() == pytest.approx([1.0, 2.0])
    lifted(other)


def test_an_operation_of_ones_own_runs_uncompiled() -> None:
    wengert.op("cubed", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    compiled = wengert.compile(lambda a: root(lambda x: x.cubed() - a, 1.0))
    assert any("has an operation of its own" in text for text in warned(lambda: compiled.map([1.0, 8.0])))
    assert compiled.map([1.0, 8.0]).tolist() == pytest.approx([1.0, 2.0])
    assert compiled(Value(8.0)).data == pytest.approx(2.0)


def test_random_programs() -> None:
    """Sums of operations of the table with a root, at other starts, with derivatives."""
    rng = random.Random(5)
    rows = [wengert.tanh, wengert.sin, wengert.exp, wengert.softplus, wengert.atan, wengert.erf, wengert.sigmoid]
    for first, second in itertools.islice(itertools.combinations(rows, 2), 0, None, 3):
        k = rng.uniform(0.5, 2.0)

        def f(a: Any, b: Any, first: Any = first, second: Any = second, k: float = k) -> Any:
            return root(lambda x: k * x + first(x * a) + second(x - b) * 0.3 - b, b)

        compiled = wengert.compile(f, backend="native")
        assert compiled.map(A, B) == pytest.approx(tree(f, A, B), rel=1e-12)
        lifted(compiled)


def test_sparse_jacobians() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    f: Any = lambda x: [root(lambda z, a=a, b=b: z**3 + a * z - b, 1.0) for a, b in itertools.pairwise(x)]  # noqa: E731
    x = np.linspace(0.5, 2.0, 8)
    found = jacobian(f, sparse=True)(x)
    assert sparse.issparse(found)
    assert found.nnz == 14
    assert found.toarray() == pytest.approx(np.array(jacobian(f)(x)), rel=1e-10)


@needs_gcc
@pytest.mark.parametrize("f", [kepler, cubic, nested], ids=lambda f: f.__name__)
def test_in_c(f: Any, tmp_path: Any) -> None:
    compiled = wengert.compile(f)
    compiled.map(A, B)
    recording = compiled._server.latest()
    value, _ = called(compiled.source("c", gradient=False), tmp_path, recording, [A, B], False)
    assert value == pytest.approx(tree(f, A, B).mean(), rel=1e-12)
    for language in ("numpy", "torch", "jax"):
        with pytest.raises(ArgumentError, match=r'it looks for a root.*choose the language "c"'):
            compiled.source(language)


def test_machine_code_on_disk_is_told_apart(tmp_path: Any) -> None:
    """Another process, whose first root is another one, finds no code of this one's."""
    program = (
        "import wengert\n"
        "f = wengert.compile(lambda a: wengert.root(lambda x: x**{} - a, 1.0), backend='native')\n"
        "print(*f.map([8.0, 8.0]), *f.map([8.0, 8.0]))\n"
    )
    for power in (2, 3):
        done = subprocess.run(
            [sys.executable, "-c", program.format(power)],
            env={**os.environ, "WENGERT_CACHE": str(tmp_path)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert [float(x) for x in done.stdout.split()] == pytest.approx([8.0 ** (1.0 / power)] * 4)
        assert done.stderr == ""
