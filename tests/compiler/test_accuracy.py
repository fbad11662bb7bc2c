"""Compiled, every operation is as accurate as is promised of the engine, and makes the same of special operands."""

from __future__ import annotations

import itertools
import math
from math import inf, isfinite, nan
from typing import Any

import pytest

import wengert
from tests.ops.test_accuracy import HARD
from tools.qa.accuracy import KERNELS, compiled_answers, limit, measured, our_answers, points
from tools.qa.oracles import DIGITS, ROWS, mp, truths
from wengert import ops

np = pytest.importorskip("numpy")
pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")

pytestmark = [pytest.mark.mpmath, pytest.mark.once]  # what computes is machine code

ELEMENTARY = [row for row in ROWS if row.arity in (1, 2)]
over_rows = pytest.mark.parametrize("row", ELEMENTARY, ids=lambda row: row.name)
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    1e-300,
    5e-324,
    -5e-324,
    1e300,
    800.0,
    -37.7,
    40.0,
    -40.0,
    1e160,
    inf,
    -inf,
    nan,
]
TAILS: dict[str, list[tuple[float, ...]]] = {
    **HARD,
    "atan": [(1e160,), (-3e154,), (1.7e308,)],
    "gelu": [*HARD["gelu"], (-37.7,), (-38.9,)],
    "pow": [*HARD["pow"], (1e-150, 2.5), (0.9999999967352082, -218736709311.77817)],
    "digamma": [*HARD["digamma"], (1e-300,), (-1e-300,), (7.9,), (-0.5,)],
    "erfc": [(0.5,), (26.5,), (-5.0,)],
    "erf": [(1e-300,), (0.99,), (1.01,), (5.9,)],
}


@pytest.mark.sampled(4)  # test_native.py compiles half of the table at each change
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.nightly)])
@over_rows
def test_values_and_partials(row: ops.Op, count: int) -> None:
    """They are within the bound. At special operands they are finite where the engine's are, and the same; where those
    are not, the compiled result shows that it is not.
    """
    with mp.workdps(DIGITS):
        truth = truths()[row.name]
    orders = [(2.0,)] if row.name == "polygamma" else [()]
    operands = row.arity - len(orders[0])  # type: ignore[operator]
    choice = [
        SPECIAL[2 :: 5 if n < len(row.shapes) and count < 200 else 1] for n in range(operands)
    ]  # each shape has a program
    special = [(*order, *xs) for order in orders for xs in itertools.product(*choice)]
    ordinary = [*points(row, count, seed=5), *TAILS.get(row.name, ())]
    answers = {  # by one program for both
        kind: dict(
            zip(map(repr, [*ordinary, *special]), compiled_answers(row, kind)([*ordinary, *special]), strict=True)
        )
        for kind in KERNELS
    }
    found = measured(
        row,
        truth,
        ordinary,
        {kind: lambda at, made=made: [made[repr(xs)] for xs in at] for kind, made in answers.items()},
    )
    for kind, worst in found.items():
        assert worst[0].count >= count // 7
        for quantity, record in enumerate(worst):
            assert record.ulp <= limit(row.name, quantity), (row.name, kind, quantity, record)
    for kind, made in answers.items():
        for xs, want in zip(special, our_answers(row)(special), strict=True):
            got = made[repr(xs)]
            for quantity, (a, b) in enumerate(zip(want, got, strict=True)):
                if row.name == "polygamma" and quantity == 1:
                    continue
                same = abs(a - b) <= 8 * math.ulp(a) if isfinite(a) and isfinite(b) else isfinite(a) == isfinite(b)
                assert same, (row.name, kind, quantity, xs, a, b)


NEAR = [0.3, 0.61, 0.25, 1e-20, -1e-20, 3e-160, 0.999, 0.5]
SMOOTH = [
    pytest.param(row, marks=[pytest.mark.nightly] * (row.name == "normal_ppf"))  # LLVM compiles it for seconds
    for row in ELEMENTARY
    if row.arity == 1 and row.kinks is None and row.name != "acosh"
]


@pytest.mark.sampled(6)  # the rules of the table, which the engine's tests try whole
@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.name)
def test_derivatives_that_are_compiled(row: ops.Op) -> None:
    """First and second ones, of which the recorded run shows each operation."""
    function: Any = lambda x: row(x)  # noqa: E731  (of one argument with a name)
    xs = np.array([x for x in NEAR if x > 0.0] if row.name in ("log", "log2", "log10", "sqrt") else NEAR)
    for _ in range(2):
        function = wengert.grad(function)
        compiled = wengert.compile(function, backend="native")
        compiled.map(xs)
        for x, got in zip(xs.tolist(), compiled.map(xs).tolist(), strict=True):
            want = float(function(x))
            same = abs(got - want) <= 8 * math.ulp(want) if isfinite(want) else isfinite(got) == isfinite(want)
            assert same, (row.name, x, got, want)
