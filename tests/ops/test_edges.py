"""Edges of the real line: zeros, infinities, nan, ties, overflow. PyTorch is the oracle where nothing else is said."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from math import inf, nan
from operator import add, mul, pow, sub, truediv
from typing import Any

import pytest

import wengert
from tools.qa.oracles import ROWS, leaves_of, torch_rows
from tools.qa.special_values import differs, gradients, same, torch_gradients
from wengert import Value, ops

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 1000.0, -1000.0]
SPECIAL += [1e308, -1e308, 5e-324, -5e-324, inf, -inf, nan]
FEW = [-1.0, 0.0, 1.0, 2.0, 1e308, nan, inf, -inf]


# ------------------------------------------------------------------------------------- the published table

TABLE: list[tuple[str, Callable[..., Any], tuple[float, ...], tuple[float, ...]]] = [
    ("relu(0)", lambda x: x.relu(), (0.0,), (0.0, 0.0)),
    ("abs(0)", abs, (0.0,), (0.0, 0.0)),
    ("max(a, a)", wengert.maximum, (3.0, 3.0), (3.0, 0.5, 0.5)),
    ("min(a, a)", wengert.minimum, (3.0, 3.0), (3.0, 0.5, 0.5)),
    ("max of many", lambda *xs: wengert.max(xs), (3.0, 1.0, 3.0, 3.0), (3.0, 1 / 3, 0.0, 1 / 3, 1 / 3)),
    ("log(0)", lambda x: x.log(), (0.0,), (-inf, inf)),
    ("log(-1), differs", lambda x: x.log(), (-1.0,), (nan, nan)),
    ("floor(-0.5)", lambda x: x.floor(), (-0.5,), (-1.0, 0.0)),
    ("round(2.5), a tie", lambda x: x.round(), (2.5,), (2.0, 0.0)),
    ("-7 % 3", wengert.remainder, (-7.0, 3.0), (2.0, 1.0, 3.0)),
    ("6 % -3, a jump", wengert.mod, (6.0, -3.0), (-0.0, 1.0, 2.0)),
    ("1 % 0.1, nine times and not ten", wengert.remainder, (1.0, 0.1), (1.0 % 0.1, 1.0, -9.0)),
    ("-5 % inf", wengert.remainder, (-5.0, inf), (inf, 1.0, 1.0)),
    ("5 % 0, differs", wengert.remainder, (5.0, 0.0), (nan, 1.0, nan)),
    ("sqrt(0)", lambda x: x.sqrt(), (0.0,), (0.0, inf)),
    ("sqrt(x * x + y * y)", lambda x, y: (x * x + y * y).sqrt(), (0.0, 0.0), (0.0, 0.0, 0.0)),
    ("sqrt(x) ** 2", lambda x: x.sqrt() ** 2, (0.0,), (0.0, nan)),
    ("0 ** 0", lambda x, y: x**y, (0.0, 0.0), (1.0, 0.0, 0.0)),
    ("(-2) ** 3.0, a Value", lambda x, y: x**y, (-2.0, 3.0), (-8.0, 12.0, nan)),
    ("(-2) ** 3.0, a constant", lambda x: x**3.0, (-2.0,), (-8.0, 12.0)),
    ("(-2) ** 0.5", lambda x: x**0.5, (-2.0,), (nan, nan)),
    ("(-2) ** 0.5, a Value", lambda x, y: x**y, (-2.0, 0.5), (nan, nan, nan)),
    ("1 / 0", lambda x: 1 / x, (0.0,), (inf, -inf)),
    ("1 / 0, both Values", lambda x, y: x / y, (1.0, 0.0), (inf, inf, -inf)),
    ("1 / -0", lambda x: 1 / x, (-0.0,), (-inf, -inf)),
    ("0 / 0", lambda x, y: x / y, (0.0, 0.0), (nan, inf, nan)),
    ("exp(1000)", lambda x: x.exp(), (1000.0,), (inf, inf)),
    ("exp(-1000)", lambda x: x.exp(), (-1000.0,), (0.0, 0.0)),
    ("tanh(1000)", lambda x: x.tanh(), (1000.0,), (1.0, 0.0)),
    ("tanh(-1000)", lambda x: x.tanh(), (-1000.0,), (-1.0, 0.0)),
    ("tanh(1e308)", lambda x: x.tanh(), (1e308,), (1.0, 0.0)),
    ("sigmoid(1000)", lambda x: x.sigmoid(), (1000.0,), (1.0, 0.0)),
    ("sigmoid(-1000)", lambda x: x.sigmoid(), (-1000.0,), (0.0, 0.0)),
    ("softplus(1000)", lambda x: x.softplus(), (1000.0,), (1000.0, 1.0)),
    ("softplus(-1000)", lambda x: x.softplus(), (-1000.0,), (0.0, 0.0)),
    ("logsigmoid(-1000)", lambda x: x.logsigmoid(), (-1000.0,), (-1000.0, 1.0)),
    ("logsumexp", wengert.logsumexp, (1000.0, 1000.0), (1000.0 + math.log(2.0), 0.5, 0.5)),
    ("logsumexp below", wengert.logsumexp, (-1000.0, -2000.0), (-1000.0, 1.0, 0.0)),
    ("hypot(0, 0), differs", wengert.hypot, (0.0, 0.0), (0.0, 0.0, 0.0)),
    ("hypot(0, 0, 0)", wengert.hypot, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    ("norm of zeros", lambda *xs: wengert.norm(xs), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    ("norm, no overflow", lambda *xs: wengert.norm(xs), (3e300, 4e300, 1.2e301), (1.3e301, 3 / 13, 4 / 13, 12 / 13)),
    ("norm, no underflow", lambda *xs: wengert.norm(xs), (3e-310, 4e-310), (5e-310, 0.6, 0.8)),
    ("atan2(0, 0), differs", wengert.atan2, (0.0, 0.0), (0.0, 0.0, 0.0)),
    ("xlogy(0, 0), differs", wengert.xlogy, (0.0, 0.0), (0.0, -inf, 0.0)),
    ("xlogy(0, -1), differs", wengert.xlogy, (0.0, -1.0), (0.0, nan, 0.0)),
    ("xlogy(2, 0)", wengert.xlogy, (2.0, 0.0), (-inf, -inf, inf)),
    ("xlog1py(0, -1), differs", wengert.xlog1py, (0.0, -1.0), (0.0, -inf, 0.0)),
    ("entr(0)", lambda x: x.entr(), (0.0,), (0.0, inf)),
    ("entr(-1)", lambda x: x.entr(), (-1.0,), (-inf, nan)),
    ("sinc(0)", lambda x: x.sinc(), (0.0,), (1.0, 0.0)),
    ("sinc(3), differs", lambda x: x.sinc(), (3.0,), (0.0, -1 / 3)),
    ("sinc(inf), differs", lambda x: x.sinc(), (inf,), (0.0, 0.0)),
    ("relu(nan)", lambda x: x.relu(), (nan,), (nan, 1.0)),
    ("maximum(nan, 1)", wengert.maximum, (nan, 1.0), (nan, 1.0, 1.0)),
    ("hypot, no overflow", wengert.hypot, (3e300, 4e300), (5e300, 0.6, 0.8)),
    ("prod with a zero", lambda *xs: wengert.prod(xs), (2.0, 0.0, 5.0), (0.0, 0.0, 10.0, 0.0)),
    ("prod with two", lambda *xs: wengert.prod(xs), (0.0, 0.0, 5.0), (0.0, 0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize(("case", "function", "numbers", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_the_published_table(
    case: str, function: Callable[..., Any], numbers: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    actual = gradients(function, *numbers)
    for a, b in zip(actual, expected, strict=True):
        assert same(a, b) or (a == b == 0.0) or a == pytest.approx(b, rel=3e-13, abs=0.0), actual


def test_softmax_does_not_overflow() -> None:
    logits = [Value(1000.0), Value(1000.0), Value(-1000.0)]
    shares = wengert.softmax(logits)
    assert [s.data for s in shares] == [0.5, 0.5, 0.0]
    shares[0].backward()
    assert [x.grad for x in logits] == [0.25, -0.25, 0.0]
    logits = [Value(0.0), Value(-2000.0)]
    logs = wengert.log_softmax(logits)
    assert [s.data for s in logs] == [0.0, -2000.0]
    logs[1].backward()
    assert [x.grad for x in logits] == [-1.0, 1.0]


# ------------------------------------------------------------------------------------- nothing raises

names = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def grid(row: ops.Op) -> itertools.product[tuple[float, ...]]:
    arity = row.arity or 3
    return itertools.product(SPECIAL if arity < 3 else FEW, repeat=arity)


@names
def test_ieee_arithmetic_never_raises(row: ops.Op) -> None:
    """On every pair or triple of special values: floats and Values agree, and so do constants on either side."""
    for numbers in grid(row):
        expected = row(*numbers)
        assert type(expected) is float
        leaves = leaves_of(row, numbers)
        y = row(*leaves)
        y.backward()
        assert same(y.data, expected), numbers
        assert [type(x.grad) for x in leaves[len(row.shapes) :]] == [float] * (len(leaves) - len(row.shapes))
        for place in range(len(row.shapes), len(numbers)):  # one Value among constants
            x = Value(numbers[place])
            y = row(*numbers[:place], x, *numbers[place + 1 :])
            y.backward()
            assert same(y.data, expected), numbers
            assert same(x.grad, leaves[place].grad), (numbers, place)


@names
def test_second_derivatives_never_raise(row: ops.Op) -> None:
    for numbers in grid(row) if row.arity in (1, 2) else [FEW[i : i + 3] for i in range(5)]:
        leaves = leaves_of(row, numbers)
        partials = row.graph_partials(row(*leaves), *leaves)
        for partial in partials if isinstance(partials, (tuple, list)) else [partials]:
            if isinstance(partial, Value):
                partial.backward()
            else:
                assert type(partial) is float


def test_whole_numbers_and_remainders_are_pythons_and_numpys_to_the_bit() -> None:
    """As numbers, and in an array program: -0, ties, subnormals and large numbers too."""
    np = pytest.importorskip("numpy")
    rng = random.Random(9)
    ties = [*SPECIAL, 0.49999999999999994, 1.5, 2.5, -2.5, 2.0**51 + 0.5, 2.0**52 + 1.0]
    pairs = [*itertools.product(ties, repeat=2), *[(rng.uniform(-1e3, 1e3), rng.gauss(0.0, 3.0)) for _ in range(300)]]
    pairs += [(float(rng.randrange(-60, 60)), rng.choice([-3.0, 0.5, 2.0])) for _ in range(100)]

    def by_python(x: float, y: float) -> list[float]:
        wholes = [math.copysign(whole(x), x) if abs(x) < inf else x for whole in (math.floor, round)]
        return [*wholes, x % y if y else nan]

    def rows(x: Any, y: Any) -> list[Any]:
        return [wengert.floor(x), wengert.round(x), wengert.mod(x, y)]

    for x, y in pairs:
        with np.errstate(all="ignore"):
            by_numpy = [np.floor(x), np.round(x), np.mod(x, y)]
        for found in (rows(x, y), by_numpy):
            assert all(map(same, found, by_python(x, y))), (x, y, found)
    w = Value(1.0)
    compiled = wengert.compile(lambda x, y: rows(w * x, y))
    ordinary = [(x, y) for x, y in pairs if abs(x) < 1e150 and 0.0 < abs(y) < 1e150]
    for (x, y), found in zip(ordinary, compiled.map(*map(list, zip(*ordinary, strict=True))).tolist(), strict=True):
        assert all(map(same, found, by_python(x, y))), (x, y, found)
    assert "left to the engine" not in compiled.report()


def both_ways(x: Any, y: Any) -> Any:
    return wengert.dot([x, y], [y, x], x)


def test_operators_never_raise() -> None:
    for a, b in itertools.product(SPECIAL, repeat=2):
        for operator in (add, sub, mul, truediv, pow, both_ways):
            x, y = Value(a), Value(b)
            both, left, right = operator(x, y), operator(x, b), operator(a, y)
            assert same(both.data, left.data)
            assert same(both.data, right.data)
            for result in (both, left, right):
                result.backward()


def test_polygamma_of_any_order() -> None:
    for order in [*SPECIAL, 1.5, 20.0, 100.0, 101.0]:
        for x in [*SPECIAL, -1.5, 1e-200, 1e200, 25.0]:
            assert type(wengert.polygamma(order, x)) is float
    assert math.isnan(wengert.polygamma(0.5, 1.0))
    assert math.isnan(wengert.polygamma(-1.0, 1.0))
    assert [wengert.polygamma(n, 0.0) for n in (0, 1, 2)] == [-inf, inf, -inf]
    assert [wengert.polygamma(n, -0.0) for n in (0, 1, 2)] == [inf, inf, inf]
    assert wengert.polygamma(1, 1e308) == pytest.approx(0.0, abs=1e-300)


# ------------------------------------------------------------------------------------- PyTorch on the same grid


@pytest.mark.torch
@names
def test_as_pytorch(row: ops.Op) -> None:
    function = torch_rows().get(row.name)
    if function is None:
        pytest.skip(f"PyTorch has no {row.name} of scalars")
    rel = 1e-8 if row.name == "digamma" else 1e-12  # PyTorch's trigamma is that coarse
    for numbers in itertools.product(SPECIAL if row.arity in (1, 2) else FEW, repeat=row.arity or 2):
        if differs(row.name, numbers):
            continue
        ours, theirs = gradients(row, *numbers), torch_gradients(function, numbers)
        for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert b is None or same(a, b) or a == pytest.approx(b, rel=rel, abs=1e-320), (numbers, place, a, b)


@pytest.mark.torch
def test_softmax_as_pytorch() -> None:
    import torch

    for numbers in itertools.product([0.0, 1.0, -1000.0, 1000.0, inf, -inf, nan], repeat=3):
        for ours, theirs in ((wengert.softmax, torch.softmax), (wengert.log_softmax, torch.log_softmax)):
            expected = theirs(torch.tensor(numbers, dtype=torch.float64), 0).tolist()
            for a, b in zip(ours(numbers), expected, strict=True):
                assert (a != a and b != b) or a == pytest.approx(b, rel=1e-13, abs=1e-300), numbers
