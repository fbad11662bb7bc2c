"""Derivatives of derivatives: each rule of the table is differentiated again, in the program as in the engine.

The oracle is the engine. A rule that takes another form where digits would be lost never computes it elsewhere, so its
derivatives are infinite there in a program that does; and 0 times infinity is nan, in a program as in the engine.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from tests.compiler.checks import lifted  # noqa: E402
from tests.compiler.test_broken_derivatives import named, near, rows_of, seen  # noqa: E402
from tools.qa.oracles import ROWS  # noqa: E402
from wengert import Value, grad, hessian, hvp, jacobian  # noqa: E402
from wengert.compiler.ir import Access, Array, Compute, Program, ProgramError, verify  # noqa: E402

pytestmark = pytest.mark.once  # what computes is the array program
BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.nightly)]
Function = Callable[..., Any]


def served(plain: Function, backend: str, several: list[Any], of: list[Value], calls: int = 3) -> None:
    """Call a compiled function: it gives types, numbers and gradients of the engine, and never runs uncompiled."""
    if backend == "native":
        pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")
    compiled = wengert.compile(plain, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for args in several[:calls]:
            got, want = seen(compiled(*args), of), seen(plain(*args), of)
            assert got[0] == want[0]
            assert near(got[1], want[1]), "numbers"
            assert near(got[2], want[2]), "gradients"
    lifted(compiled)
    assert not compiled.last.not_finite, compiled.report()


# ------------------------------------------------------------------------------------------------ rules


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("row", [row for row in ROWS if rows_of(row)[1]], ids=lambda row: row.name)
def test_the_gradient_of_a_hessian_is_finite_where_the_engine_s_is(row: Any, backend: str) -> None:
    several, by = rows_of(row)
    ws = [Value(1.0 + 1e-3 * n) for n in range(len(several[0]))]

    def of_parameters(*xs: Any) -> Any:
        return row(*[w * x if n in by else x for n, (w, x) in enumerate(zip(ws, xs, strict=True))])

    served(hessian(named(len(ws), of_parameters), tuple(by)), backend, several, ws)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("by", [(0, 1, 0), (1, 1, 1), (0, 0, 1)])
def test_a_quotient_to_the_fourth_order(backend: str, by: tuple[int, ...]) -> None:
    ws = [Value(1.0), Value(1.001)]
    made: Function = lambda x, y: (ws[0] * x) / (ws[1] * y)  # noqa: E731
    for place in by:
        made = grad(made, place)
    served(made, backend, [(0.7, 0.9), (-0.3, 1.2), (0.2, -0.4)], ws)


def attention(softmax: Function, masked: float | None) -> tuple[Function, list[Value]]:
    """A block of attention, whose weights are Values; `masked` is the score of what comes later."""
    rng, width = random.Random(3), 2
    matrices = [[[Value(rng.gauss(0.0, 0.6)) for _ in range(width)] for _ in range(width)] for _ in range(3)]

    def block(tokens: Any) -> Any:
        q, k, v = [[[wengert.dot(row, x) for row in rows] for x in tokens] for rows in matrices]
        total = 0.0
        for n, query in enumerate(q):
            scores = [wengert.dot(query, key) / math.sqrt(width) for key in k]
            if masked is not None:
                scores = [score if place <= n else masked for place, score in enumerate(scores)]
            shares = softmax(scores)
            for column in zip(*v, strict=True):
                total = total + wengert.dot(shares, list(column)) ** 2
        return total

    return block, [w for rows in matrices for row in rows for w in row]


def by_hand(scores: Any) -> Any:
    exps = [wengert.exp(score - scores[0]) for score in scores]
    return [x / sum(exps) for x in exps]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("masked", [None, -1e30, -math.inf])
@pytest.mark.parametrize("softmax", [wengert.softmax, by_hand])
def test_the_hessian_of_attention(softmax: Function, masked: float | None, backend: str) -> None:
    block, weights = attention(softmax, masked)
    rng = random.Random(4)
    several = [([[rng.gauss(0.0, 1.0) for _ in range(2)] for _ in range(3)],) for _ in range(3)]
    served(hessian(block), backend, several, weights)


# ------------------------------------------------------------------------------------------------ 0 times infinity

scale = Value(1.3)
AT_ZERO: dict[str, Function] = {
    "entropy": lambda p: scale * p * wengert.log(p * p + 1e-300),
    "logarithm": lambda p: wengert.log(scale * p * p + 1e-200),
    "quotient": lambda p: p * p / (scale * p * p + 1e-300),
    "reciprocal": lambda p: scale * p * p * (1.0 / (p * p + 1e-250)),
    "root": lambda p: scale * p * wengert.sqrt(p * p + 1e-300),
    "power": lambda p: scale * p * (p * p + 1e-300) ** -1.0,
    "arctangent": lambda p: wengert.atan(scale * p / (p * p + 1e-300)),
    "hypot": lambda p: scale * p * wengert.hypot(p, 1e-200),
    "length": lambda p: scale * wengert.sqrt(p * p),
    "softplus": lambda p: scale * p * wengert.log(wengert.exp(p * 1e200) + 1e-300),
}
TINY = (1e-160, 1e-100)
ORDERS: dict[str, Function] = {"grad": grad, "hessian": hessian, "third": lambda f: grad(hessian(f))}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", AT_ZERO)
def test_it_is_nan_where_the_engine_s_is(name: str, order: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")
    plain = ORDERS[order](AT_ZERO[name])
    compiled = wengert.compile(plain, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what differs is left to the function
        for p in (0.3, 0.0, 0.5, 0.0, 0.2, 0.7, 0.0, *TINY, 0.0):
            got, want = seen(compiled(p), [scale]), seen(plain(p), [scale])
            assert got[0] == want[0]
            assert [x != x for x in got[1] + got[2]] == [x != x for x in want[1] + want[2]], p
            assert p in TINY or near(got[1], want[1]), p  # there the third derivatives of roots are rounding


# ------------------------------------------------------------------------------------------------ one direction

p1, p2, p3 = Value(0.3), Value(2.0), Value(0.1)


def damped(x: Any, v: Any) -> Any:
    for _ in range(20):
        v = v + 0.05 * (-p2 * x - p3 * v) * p1
        x = x + 0.05 * v
    return x * x + v * v


def growth(x: Any, v: Any) -> Any:
    for _ in range(12):
        x = x + 0.1 * p1 * x * (p2 - x)
    return x * v * p3


def averaged(x: Any, v: Any) -> Any:
    y = x
    for _ in range(10):
        x, y = p1 * x + p3 * wengert.sin(y), x
    return v * y * p2 + x * x


TURNS = [damped, growth, averaged]
ALONG: dict[str, Function] = {
    "hessian": hessian,
    "hessian by both": lambda f: hessian(f, (0, 1)),
    "hvp": lambda f: lambda x, v: hvp(lambda y: f(y, v))(x, 1.0),
    "jacobian": lambda f: jacobian(lambda x, v: [f(x, v), f(x, v) * x]),
    "third": lambda f: grad(hessian(f)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("turns", TURNS, ids=lambda f: f.__name__)
def test_a_loop_that_begins_with_one_direction(turns: Function, along: str, backend: str) -> None:
    served(ALONG[along](turns), backend, [(1.0 + 0.1 * n, 0.3) for n in range(4)], [p1, p2, p3], calls=4)


def test_a_constant_of_another_shape_is_refused() -> None:
    one, out = Array("one", (), "const", value=np.ones(1)), Array("out", (), "value")
    program = Program([one, out], [Compute(out, (), [Access(one, 0, ())], ("in", 0))], {"out": out})
    with pytest.raises(ProgramError, match="one has other numbers than its shape"):
        verify(program)
