"""Numbers that are not finite, ties and kinks: a compiled function treats them as eager code does."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, Numbers, batch_of, difference, lifted, same
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what runs are the back ends


# ------------------------------------------------------------------------------------- what is not finite


@pytest.mark.parametrize("poison", [inf, -inf, nan, 1e308, -0.0], ids=repr)
def test_numbers_that_are_not_finite_travel_as_in_eager_code(poison: float) -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        v = [wi * xi for wi, xi in zip(w, x, strict=True)]
        sums = [sum(v[: n + 1]) for n in range(3)]
        return wengert.relu(sums[0]) + wengert.tanh(sums[1]) + wengert.maximum(sums[2], 0.0) * 1e10

    rows = [[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]]
    same(loss(rows[0]), loss.function(rows[0]), w)
    same(loss.mean(rows), batch_of(loss.function, rows), w)
    for n in range(3):
        poisoned = [list(row) for row in rows]
        poisoned[1][n] = poison
        same(loss(poisoned[1]), loss.function(poisoned[1]), w)
        same(loss.mean(poisoned), batch_of(loss.function, poisoned), w)
        mapped = loss.map(poisoned)
        with np.errstate(invalid="ignore"):
            assert difference(mapped, [loss.function(x).data for x in poisoned]) < CLOSE
        before, w[n].data = w[n].data, poison
        same(loss(rows[1]), loss.function(rows[1]), w)
        same(loss.mean(rows), batch_of(loss.function, rows), w)
        w[n].data = before


def attend(w: Any, xs: list[Numbers]) -> Any:
    """Causal attention; only the first outputs count, which see nothing of what comes last."""
    total: Any = 0.0
    for t in range(len(xs)):
        scores = [sum(wi * a * b for wi, a, b in zip(w, xs[t], xs[s], strict=True)) for s in range(t + 1)]
        weights = wengert.softmax(scores)
        out = [sum(p * xs[s][c] for s, p in enumerate(weights)) for c in range(2)]
        total = total + (sum(out) if t < 3 else wengert.tanh(sum(out)) * 0.1)
    return total


@pytest.mark.parametrize("poison", [inf, -inf, nan])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_causal_attention_of_numbers_that_are_not_finite(poison: float, place: int) -> None:
    w = [Value(0.3), Value(-0.2)]
    early = wengert.compile(lambda xs: attend(w, xs))
    each = wengert.compile(lambda xs: [attend(w, xs[: n + 1]) for n in range(5)])
    X = np.random.default_rng(7).normal(size=(3, 5, 2))
    for _ in range(2):
        same(early.mean(X), batch_of(early.function, X.tolist()), w)
        mapped = each.map(X)
        with np.errstate(invalid="ignore"):
            assert difference(mapped, [[v.data for v in each.function(x)] for x in X.tolist()]) < CLOSE
        X[1, place, 0] = poison


def test_recorded_on_numbers_that_are_not_finite() -> None:
    """The first example is the poisoned one."""
    w = [Value(0.3), Value(-0.2)]
    for poison in (nan, inf, -inf):
        loss = wengert.compile(lambda x: sum((wi * x).tanh() for wi in w) * x)
        for x in (poison, 0.5, poison, -0.5, 0.1):
            same(loss(x), loss.function(x), w)
        same(loss.mean([poison, 0.5]), batch_of(loss.function, [poison, 0.5]), w)
        same(loss.mean([0.25, 0.5]), batch_of(loss.function, [0.25, 0.5]), w)


def test_overflow_on_the_way_that_ends_finite() -> None:
    w = Value(1.0)
    loss = wengert.compile(lambda x: 1.0 / (1.0 + (w * x).exp()) + wengert.where(x > 0, 0.0, w * x))
    for x in (0.5, 800.0, -800.0):
        same(loss(x), loss.function(x), [w])
    same(loss.mean([0.5, 800.0, -800.0]), batch_of(loss.function, [0.5, 800.0, -800.0]), [w])


SCALED: dict[str, tuple[Callable[..., Any], float]] = {  # what leaves the range of floats on the way, and where
    "up and down": (lambda w, x: w * x * 1e99 * 1e-99, 1e250),
    "down and up": (lambda w, x: w * x * 1e-200 * 1e200, 1e-200),
    "in front": (lambda w, x: 1e-99 * (1e99 * (w * x)), 1e250),
    "in between": (lambda w, x: w * 1e99 * (x * 1e99) * 1e-180, 1e180),
    "in a sum": (lambda w, x: w * x * 1e99 * 1e-99 + w + 3.0 * w * x * 1e-9, 1e250),
    "in a sum, downwards": (lambda w, x: w + w * x * 1e-200 * 1e200, 1e-200),
    "in each term": (lambda w, x: sum(w * (x + k) * 1e80 * 1e-70 for k in range(5)), 1e250),
    "negative": (lambda w, x: -(w * x * -1e99) * 1e-99, 1e250),
    "by small factors": (lambda w, x: w * x * 8.0 * 0.25, 1.5e308),
    "a difference": (lambda w, x: w * x * 1e99 * 1e-99 - w * x * 1e98 * 1e-98, 1e250),
}


@pytest.mark.parametrize("name", SCALED)
def test_constants_are_not_multiplied_past_the_range_of_floats(name: str) -> None:
    function, extreme = SCALED[name]
    w = Value(0.75)
    scaled = wengert.compile(lambda x: function(w, x))
    for x in (0.5, extreme, -extreme):
        with np.errstate(invalid="ignore"):
            got, want = scaled(x).data, scaled.function(x).data
            assert difference(got, want) < CLOSE
            mapped = scaled.map([0.5, x])
            assert difference(mapped, [scaled.function(0.5).data, want]) < CLOSE
    lifted(scaled)


# ------------------------------------------------------------------------------------- ties and kinks


def ties() -> dict[str, Callable[..., Any]]:
    """What has a kink, at the kink."""
    return {
        "max": lambda w, x: wengert.max([wi * x for wi in w]) * 2.0,
        "maximum": lambda w, x: wengert.maximum(w[0] * x, w[1] * x),
        "relu": lambda w, x: (w[0] * x - w[1] * x).relu() + abs(w[0] - w[1]) * x,
        "min with constants": lambda w, x: wengert.min([w[0] * x, 1.0 * x, w[1] * x]),
        "clip": lambda w, x: wengert.clip(w[0] * x, -1.0, 1.0),
        "prod with a zero": lambda w, x: wengert.prod([w[0] - 1, w[1] * x, w[2]]),
        "powers of zero": lambda w, x: ((w[0] - w[1]) * x) ** 2 + (w[0] - w[1]) ** 0.0 + (w[0] - w[2]) ** 1.0,
        "hypot": lambda w, x: wengert.hypot(w[0] - w[1], w[0] - w[2]) * x + w[1],
        "sign": lambda w, x: (w[0] - w[1]).sign() + w[0] * x,
        "one twice": lambda w, x: wengert.max([w[0], w[0], w[1]]) * x,
    }


@pytest.mark.parametrize("name", ties())
def test_ties_and_kinks(name: str) -> None:
    w = [Value(1.0), Value(1.0), Value(1.0)]
    loss = wengert.compile(lambda x: ties()[name](w, x))
    for _ in range(2):
        same(loss(1.0), loss.function(1.0), w)
        same(loss.mean([1.0, 2.0, 0.0]), batch_of(loss.function, [1.0, 2.0, 0.0]), w)
    lifted(loss)


# ------------------------------------------------------------------------------------- whole numbers


WHOLE: dict[str, Callable[..., Any]] = {  # whose derivatives are whole numbers, until others are added to them
    "ones and products": lambda u: sum(u) + sum(u[i] * u[i + 1] for i in (1, 2, 3)),
    "ones and a function": lambda u: sum(u) + sum((3 * a).sin() for a in u[1:4]) + u[5] * u[0],
    "minus ones": lambda u: -sum(u) - sum(a * a for a in u[2:4]),
    "chosen": lambda u: sum(a.relu() for a in u) + 0.3 * sum(a.exp() for a in u[3:]),
    "chosen twice": lambda u: sum((2 * (3 * a).relu()).relu() for a in u) + 0.3 * sum(a * a for a in u[:4]),
    "greatest": lambda u: wengert.max(u) + wengert.min(u) + 0.5 * sum(u[2:]) * u[0],
    "a wave": lambda u: sum(u) + sum((u[i - 1] - 2 * u[i] + u[i + 1]) ** 2 for i in range(1, len(u) - 1)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_derivatives_that_are_whole_numbers_take_up_others(name: str) -> None:
    c = [Value(0.5), Value(-0.3)]
    loss = wengert.compile(lambda xs: WHOLE[name]([(c[0] * x + c[1]).tanh() for x in xs]))
    X = np.random.default_rng(0).normal(size=(3, 8))
    for _ in range(2):
        same(loss(X[0].tolist()), loss.function(X[0].tolist()), c)
        same(loss.mean(X), batch_of(loss.function, X.tolist()), c)
    lifted(loss)


def test_whole_factors_beyond_what_integers_hold() -> None:
    w = Value(0.5)

    @wengert.compile
    def loss(xs: Numbers) -> Any:
        ys = [w * x for x in xs]
        for _ in range(4):
            ys = [(y * 999999.0).relu() for y in ys]
        return sum(ys)

    for xs in ([-1.0, -2.0], [1.0, 2.0], [-1.0, 3.0]):
        same(loss(xs), loss.function(xs), [w])
    lifted(loss)
