"""Numbers of the graph decide in a compiled function: branches, loops, guards and what is read as data."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, Numbers, batch_of, difference, lifted, line_of, same, warned
from wengert import Value

np = pytest.importorskip("numpy")


# ------------------------------------------------------------------------------------- branches


def test_branches_are_taken_by_each_example() -> None:
    a, b = Value(0.7), Value(-0.4)

    @wengert.compile
    def loss(x: float) -> Any:
        v = a * x + b
        if v.data > 0:
            return v * v
        if v < -1.0:
            return v.exp() * b
        return -v

    X = np.random.default_rng(4).normal(scale=3.0, size=40)
    for turn in range(3):
        same(loss.mean(X), batch_of(loss.function, X.tolist()), [a, b])
        same(loss.sum(X), wengert.sum([loss.function(x) for x in X.tolist()]), [a, b])
        a.grad = b.grad = 0.0
        loss.mean(X).backward()
        assert type(a.grad) is type(b.grad) is float
        assert difference(loss.map(X), [loss.function(x).data for x in X.tolist()]) < CLOSE
        for x in X[:6].tolist():
            same(loss(x), loss.function(x), [a, b])
        b.data += 0.3 * turn
    lifted(loss)
    assert {len(entry.specializations) for entry in loss._server.entries.values()} == {3}
    assert "v.data > 0" in loss.report()


def test_paths_that_touch_different_parameters() -> None:
    table = {True: Value(2.0), False: Value(-3.0)}
    loss = wengert.compile(lambda x: table[bool(x > 0)] * x)
    X = [1.0, -1.0, 2.0, -2.5, 0.0]
    for _ in range(2):
        same(loss.mean(X), batch_of(loss.function, X), [*table.values()])
        assert difference(loss.map(X), [loss.function(x).data for x in X]) < CLOSE


def test_loops_whose_length_depends_on_numbers() -> None:
    rate = Value(1.5)

    @wengert.compile
    def doublings(x: float) -> Any:
        v = rate * x
        steps = 0
        while v.data < 10.0:
            v = v * rate
            steps += 1
        return v + steps

    X = [1.0, 5.0, 0.3, 20.0, 2.0, 1.1, 0.2]
    for _ in range(2):
        same(doublings.mean(X), batch_of(doublings.function, X), [rate])
        assert difference(doublings.map(X), [doublings.function(x).data for x in X]) < CLOSE
        for x in X:
            same(doublings(x), doublings.function(x), [rate])
        rate.data = 1.7
    lifted(doublings)


@pytest.mark.parametrize("how", ["==", "!=", "<=", ">="])
def test_every_comparison_is_a_guard(how: str) -> None:
    w = Value(1.0)
    holds: Callable[[Any, Any], Any] = {
        "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b
    }[how]  # fmt: skip
    loss = wengert.compile(lambda x: w * x * 2.0 if holds((w * x).data, 1.0) else w + x)
    X = [0.5, 1.0, 2.0, 1.0]
    same(loss.mean(X), batch_of(loss.function, X), [w])
    for x in (*X, nan):
        same(loss(x), loss.function(x), [w])


def test_a_comparison_with_nan_takes_the_other_course() -> None:
    w = Value(1.0)
    loss = wengert.compile(lambda x: w * 2.0 if (w * x).data < 1.0 else w * 3.0)
    loss(0.5)
    assert [loss(x).data for x in (nan, 0.5, inf, -inf)] == [3.0, 2.0, 3.0, 2.0]
    same(loss.mean([0.5, nan, 0.1, inf]), batch_of(loss.function, [0.5, nan, 0.1, inf]), [w])


def test_a_branch_on_an_integer_argument() -> None:
    w = [Value(0.3), Value(-0.2)]
    loss = wengert.compile(lambda x, n: w[0] * x if n == 0 else w[1] ** n)
    X, counts = [0.5, 1.5, 2.5, 0.1], [0, 1, 2, 0]
    for _ in range(2):
        same(loss.mean(X, counts), batch_of(loss.function, X, counts), w)
        for x, n in zip(X, counts, strict=True):
            same(loss(x, n), loss.function(x, n), w)


def test_range_of_an_integer_argument() -> None:
    w = Value(0.9)

    @wengert.compile
    def power(n: int) -> Any:
        v: Any = 1.0
        for _ in range(n):
            v = v * w
        return v + w * n

    for n in (1, 3, 0, 2, 3):
        same(power(n), power.function(n), [w])
    same(power.mean([1, 3, 2, 2]), batch_of(power.function, [1, 3, 2, 2]), [w])


@pytest.mark.once  # what is recorded does not depend on which engine runs
def test_more_than_32_courses_are_left_to_the_engine() -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: Numbers) -> Any:
        total: Any = 0.0
        for xi in x:
            total = total + (w * xi if (w * xi).data > 0 else xi - w)
        return total

    X = np.random.default_rng(5).normal(size=(90, 7))
    want = batch_of(loss.function, X.tolist())
    said = warned(lambda: same(loss.mean(X), want, [w]), lambda: same(loss.mean(X), want, [w]))
    assert len(said) == 1
    assert line_of(loss.function, 4) in said[0]
    assert "wengert.maximum" in said[0]
    assert "wengert.where" in said[0]
    assert "32" in said[0]


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_a_path_of_leaves_beside_one_of_nodes(first: float) -> None:
    """What one path captures is a leaf, what another does was computed: its gradient goes on to what it came from."""
    w, v = Value(0.7), Value(1.0)
    double = w * 2.0
    loss = wengert.compile(lambda x: v * x if x > 0 else double * x)
    for X in ([first, -first, 2.0, -3.0], [first, first], [-first]):
        same(loss.mean(X), batch_of(loss.function, X), [w, v])
    for x in (first, -first):
        same(loss(x), loss.function(x), [w, v])


def test_arguments_that_are_values_decide_too() -> None:
    a, w = Value(1.0), Value(0.7)
    loss = wengert.compile(lambda a: w * a if a.data > 0 else a * a - w)
    for number in (1.0, -1.0, 2.0, -3.0, nan, 0.0):
        a.data = number
        same(loss(a), loss.function(a), [a, w])
    xs = [Value(1.0), Value(2.0), Value(3.0)]
    chosen = wengert.compile(lambda xs, n: xs[n] * w + xs[0])
    for n in (1, 0, 2, -1):
        same(chosen(xs, n), chosen.function(xs, n), [*xs, w])


# ------------------------------------------------------------------------------------- numbers that are read


def test_max_and_min_of_data_are_no_branches() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        v = [wi * xi for wi, xi in zip(w, x, strict=True)]
        return v[0] * max(vi.data for vi in v) + v[1] * min(v[0].data, v[2].data, 0.1) + v[2] * max([1, 2])

    X = np.random.default_rng(6).normal(size=(20, 3))
    same(loss.mean(X), batch_of(loss.function, X.tolist()), w)
    lifted(loss)
    assert not loss._server.latest().guards


def sort(v: Numbers) -> Any:
    return sorted(v, key=lambda x: x.data)[0] * 2.0


def greatest_by_key(v: Numbers) -> Any:
    return v[max(range(3), key=lambda n: v[n].data)] * 3.0


def greatest_value(v: Numbers) -> Any:
    return max(v) * 3.0


def place_of_the_greatest(v: Numbers) -> Any:
    data = [x.data for x in v]
    return v[data.index(max(data))]


def of_data(v: Numbers) -> Any:
    return v[0] * abs(v[1].data) + v[1] * v[2].data ** 2 + v[2] * sum(x.data for x in v) - v[0] * (-v[1].data) / 3


def of_items(v: Numbers) -> Any:
    return v[0] * v[1].item() + v[1].detach() * v[2]


def under_no_grad(v: Numbers) -> Any:
    with wengert.no_grad():
        scale = v[0] * v[1]
    return scale * v[2] + v[0]


@pytest.mark.parametrize(
    "function",
    [sort, greatest_by_key, greatest_value, place_of_the_greatest, of_data, of_items, under_no_grad],
    ids=lambda function: function.__name__,
)
def test_numbers_that_are_read(function: Callable[[Numbers], Any]) -> None:
    """Data decides, or is computed with: the same as in eager code, without a gradient through it."""
    w = [Value(0.3), Value(-0.5), Value(0.9)]
    loss = wengert.compile(lambda x: function([wi * xi for wi, xi in zip(w, x, strict=True)]))
    X = np.random.default_rng(11).normal(size=(20, 3))
    for turn in range(2):
        same(loss.mean(X), batch_of(loss.function, X.tolist()), w)
        for x in X[:4].tolist():
            same(loss(x), loss.function(x), w)
        w[0].data += 0.4 * turn + 0.1
    lifted(loss)
