"""Every operation of the table in a compiled function: on parameters, on inputs, with a constant."""

from __future__ import annotations

import random
from typing import Any

import pytest

import wengert
from tests.compiler.checks import Numbers
from tests.compiler.models import lifted, normal, same
from wengert import Value, ops

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

ROWS = [row for row in ops.TABLE[: ops.BUILT_IN] if row.value is not None]


def operands(row: ops.Op, count: int) -> list[list[float]]:
    """So many draws of the operands, each from its domain; of an operation on many, five."""
    generator = random.Random(f"lifting {row.name}")
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    return [[generator.uniform(low, high) for low, high in domain] for _ in range(count)]


@pytest.mark.sampled(10)  # the same expressions as on inputs, which all are tried
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_operation_on_parameters(row: ops.Op) -> None:
    drawn = operands(row, 6)
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    # An operand that the domain fixes, the order of polygamma, has no derivative: it is a constant.
    made = [[Value(x) if low < high else x for x, (low, high) in zip(xs, domain, strict=True)] for xs in drawn]
    parameters = [x for xs in made for x in xs if isinstance(x, Value)]

    @wengert.compile
    def total(x: Numbers) -> Any:
        return sum(row(*xs) * xi for xs, xi in zip(made, x, strict=True)) + 0.1 * sum(p * p for p in parameters)

    X = normal(1, 4, 6)
    same(total(X[0].tolist()), total.function(X[0].tolist()), parameters)
    same(total.mean(X), wengert.mean([total.function(x) for x in X.tolist()]), parameters)
    lifted(total, 20)


@pytest.mark.sampled(5)  # rows are compiled in test_accuracy.py and test_native.py too
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_operation_on_inputs(row: ops.Op) -> None:
    w = [Value(0.7), Value(1.3)]

    @wengert.compile
    def total(xs: Numbers) -> Any:
        return w[0] * row(*xs) + w[1] * row(*xs) ** 2 + w[0] * w[1]

    X = np.array(operands(row, 7))
    same(total(X[0].tolist()), total.function(X[0].tolist()), w)
    same(total.mean(X), wengert.mean([total.function(x) for x in X.tolist()]), w)
    lifted(total, 20)


def test_several_orders_of_polygamma() -> None:
    """Each is a part of the program, those that are read outside too."""
    orders = [0.0, 1.0, 2.0, 5.0]
    w = [Value(0.5 + n) for n in range(4)]

    @wengert.compile
    def total(x: float) -> Any:
        return sum(wengert.polygamma(order, wi * x) for order, wi in zip(orders, w, strict=True)) + sum(
            wengert.polygamma(n, wi * x) for n, wi in enumerate(w)
        )

    for x in (1.5, 0.7, 2.5):
        same(total(x), total.function(x), w)
    orders[3] = 3.0
    same(total(0.9), total.function(0.9), w)
    assert all(made.kernel.code for entry in total._server.entries.values() for made in entry.specializations)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", [row for row in ROWS if row.arity == 2], ids=lambda row: row.name)
@pytest.mark.parametrize("left", [True, False], ids=["constant on the left", "constant on the right"])
def test_every_operation_with_a_constant(row: ops.Op, left: bool) -> None:
    if row.name == "polygamma" or row.shapes:
        pytest.skip("its order or its shape is always a constant")
    drawn = operands(row, 6)
    parameters = [Value(xs[1] if left else xs[0]) for xs in drawn]

    @wengert.compile
    def total(scale: float) -> Any:
        made = [row(xs[0], p) if left else row(p, xs[1]) for xs, p in zip(drawn, parameters, strict=True)]
        return sum(made) * scale + sum(parameters)

    same(total(1.7), total.function(1.7), parameters)
    same(total.mean([0.3, -0.4]), wengert.mean([total.function(0.3), total.function(-0.4)]), parameters)
    lifted(total, 20)


@pytest.mark.parametrize("row", [row for row in ROWS if row.arity is not None], ids=lambda row: row.name)
def test_the_function_of_an_operation_itself(row: ops.Op) -> None:
    """`wengert.tanh` takes `*operands`, and says how many there are; its derivatives do as well."""
    function = getattr(wengert, row.name)
    moving = [n for n, (low, high) in enumerate(row.domain) if n >= len(row.shapes) and low < high]
    compiled = wengert.compile(function)
    slopes = [(wengert.grad(function, argnums=n), wengert.compile(wengert.grad(function, argnums=n))) for n in moving]
    for xs in operands(row, 3):
        assert compiled(*xs) == pytest.approx(function(*xs), rel=1e-14)
        for eager, other in slopes:
            assert other(*xs) == pytest.approx(eager(*xs), rel=1e-12)
    if row.defaults:
        assert compiled(*xs[: -len(row.defaults)]) == function(*xs[: -len(row.defaults)])
    assert "uncompiled" not in compiled.report()


def test_a_table_itself_and_its_derivatives() -> None:
    table = wengert.Table([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], kind="cubic")
    surface = wengert.Table(([0.0, 1.0], [0.0, 1.0, 2.0]), [[0.0, 1.0, 2.0], [3.0, 5.0, 9.0]])
    for function, points in ((table, [(0.5,), (1.5,)]), (surface, [(0.5, 0.25), (0.75, 1.5)])):
        compiled, slope = wengert.compile(function), wengert.compile(wengert.grad(function))
        for xs in points:
            assert compiled(*xs) == pytest.approx(function(*xs), rel=1e-14)
            assert slope(*xs) == pytest.approx(wengert.grad(function)(*xs), rel=1e-12)
        with pytest.raises(wengert.errors.ArgumentError, match=f"the table has {len(points[0])} arguments, and got 3"):
            compiled(0.5, 0.5, 0.5)


@pytest.mark.parametrize("function", [np.sin, np.hypot, np.maximum, np.arctan2], ids=lambda f: f.__name__)
def test_a_function_of_numpy_itself(function: Any) -> None:
    compiled = wengert.compile(function)
    for xs in ((0.5, 1.25), (2.0, 1.5), (1.0, 3.0)):
        assert compiled(*xs[: function.nin]) == pytest.approx(function(*xs[: function.nin]), rel=1e-14)
    assert compiled(*xs[: function.nin], dtype=np.float32) == function(*xs[: function.nin], dtype=np.float32)
