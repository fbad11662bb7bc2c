"""Expressions share their parts, and may be deep: what is done with them is counted, and grows with the parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import difference
from wengert import Value

np = pytest.importorskip("numpy")

from wengert.compiler.backends.native.llvm import LLVM  # noqa: E402  (they need NumPy)
from wengert.compiler.backends.native.rows import Register, evaluate, expanded  # noqa: E402
from wengert.compiler.backends.numpy import NumPyKernel, Writer  # noqa: E402
from wengert.compiler.derive.directions import _calls  # noqa: E402
from wengert.compiler.derive.sparsity import _dependence  # noqa: E402
from wengert.compiler.ir import (  # noqa: E402
    FURTHER,
    ONE,
    Access,
    Array,
    Compute,
    Expr,
    Numbering,
    Program,
    compact,
    cotangents,
    fold,
    has_mask,
    inputs,
    is_nonnegative,
    parts,
    rename,
    repeated,
    tangent,
    times,
)

pytestmark = pytest.mark.once  # nothing of it is compiled

X: Expr = ("in", 0)
ROWS: dict[str, Expr] = {
    "gelu": ("gelu", X),
    "normal_cdf": ("normal_cdf", X),
    "erf": ("erf", X),
    "erfc": ("erfc", X),
    "gammainc": ("gammainc", ("const", 2.5), X),
    "gammaincc": ("gammaincc", ("const", 2.5), X),
    "gamma_pdf": ("gamma_pdf", ("const", 2.5), X),
    "betainc": ("betainc", ("const", 2.5), ("const", 3.5), X),
    "pow": ("pow", X, ("const", 2.7)),
    "pow of two": ("pow", X, ("in", 1)),
    "softplus": ("softplus", X),
    "two of them": ("mul", ("gelu", ("erf", X)), ("gelu", ("erf", X))),
}
MOST = 60  # calls of Python functions for each part: a rule of the table makes some for each operation


def calls_of(work: Callable[[], Any]) -> int:
    """Count the Python functions that are called."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def compiled_to_llvm(expr: Expr) -> Any:
    to = LLVM(2)
    return evaluate(to, expr, lambda leaf: Register(f"%x{leaf[1]}", "f", 2)), to


WALKS: dict[str, Callable[[Expr], Any]] = {
    "cotangents": lambda e: cotangents(e, ("in", 2), rules=FURTHER),
    "tangent": lambda e: tangent(e, {0: ("in", 2)}),
    "expanded": expanded,
    "machine code": lambda e: compiled_to_llvm(expanded(e)),
    "repeated": repeated,
    "numbering": lambda e: Numbering().of(e),
    "inputs": inputs,
    "times": lambda e: times(e, 0),
    "has_mask": has_mask,
    "rename": lambda e: rename(e, {0: 1, 1: 0}),
    "compact": lambda e: compact(e, ["x", "y"]),
    "is_nonnegative": is_nonnegative,
    "directions": lambda e: fold(e, _calls),
    "sparsity": _dependence,
}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_done_with_a_derivative_grows_with_its_parts(name: str) -> None:
    """Of rational approximations, continued fractions and powers, up to the third order, operations written out."""
    expr = expanded(ROWS[name])
    for order in range(3):
        expr = expanded(cotangents(expr, ONE, rules=FURTHER)[0])
        size = len(parts(expr))
        for walk, work in WALKS.items():
            count = calls_of(lambda work=work, expr=expr: work(expr))
            assert count < MOST * (size + 10), (order, walk, count, size)


def doubling(levels: int) -> Expr:
    """An expression of few parts that would be two to the power of so many as a tree."""
    expr: Expr = ("mul", X, ("in", 1))
    for level in range(levels):
        expr = ("add" if level % 2 else "mul", expr, ("mul", expr, ("const", 0.5)))
    return expr


@pytest.mark.parametrize("walk", WALKS)
def test_a_part_is_looked_at_once_however_often_it_occurs(walk: str) -> None:
    counts = [calls_of(lambda levels=levels: WALKS[walk](doubling(levels))) for levels in (50, 100, 200)]
    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0]) + 10, counts


@pytest.mark.parametrize("walk", WALKS)
def test_an_expression_may_be_thousands_of_levels_deep(walk: str) -> None:
    expr = X
    for level in range(3 * sys.getrecursionlimit()):
        expr = ("sin", expr) if level % 2 else ("mul", ("in", 1), expr)
    WALKS[walk](expr)


def test_equal_expressions_that_are_not_the_same_object_have_one_number() -> None:
    numbering = Numbering()
    assert numbering.of(doubling(100)) == numbering.of(doubling(100)) != numbering.of(doubling(99))
    assert numbering.of(("const", 0.0)) != numbering.of(("const", -0.0))
    received = cotangents(("mul", doubling(60), doubling(60)), ONE)  # a square
    assert len(parts(received[0])) < 20 * 60


def test_what_numpy_runs_is_as_long_as_the_parts() -> None:
    """Large parts that occur often are written once, so that the text has no two to the power of the levels."""
    sizes = []
    for levels in (40, 80):
        x, out = Array("x", (3,), "input"), Array("out", (3,), "value")
        expr, operands = compact(rename(doubling(levels), {0: 0, 1: 0}), [Access(x, 0, (1,))])
        program = Program([x, out], [Compute(out, (3,), operands, expr)], {"out": out})
        kernel = NumPyKernel(program, Program())
        numbers = np.array([0.3, -0.2, 0.7])
        want = numbers * numbers
        for level in range(levels):
            want = want + want * 0.5 if level % 2 else want * (want * 0.5)
        assert difference(kernel.forward([numbers], kernel.buffers())["out"], want) < 1e-12
        sizes.append(len("\n".join(Writer(program, None).lines)))
    assert sizes[1] < 2.5 * sizes[0]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("function", [wengert.gelu, wengert.normal_cdf, wengert.erf])
def test_third_derivatives_are_compiled(function: Callable[[Any], Any], backend: str) -> None:
    """With a parameter, whose gradient is a derivative of the fourth order."""
    if backend == "native":
        pytest.importorskip("llvmlite")
    scale = Value(0.8)
    third = wengert.grad(wengert.grad(wengert.grad(lambda x: function(scale * x))))
    compiled = wengert.compile(third, backend=backend)
    for x in (0.3, -1.7, 2.5):
        got, want = compiled(x), third(x)
        assert got.data == pytest.approx(want.data, rel=1e-9)
        slopes = []
        for result in (got, want):
            scale.grad = 0.0
            result.backward()
            slopes.append(scale.grad)
        assert slopes[0] == pytest.approx(slopes[1], rel=1e-9)
    assert "uncompiled" not in compiled.report()
