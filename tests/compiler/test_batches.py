"""What a batch of examples may be: lists, tuples, trees and arrays of every kind, of any length."""

from __future__ import annotations

from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, batch_of, difference, lifted, linear, same
from wengert import Value
from wengert.errors import DataError

np = pytest.importorskip("numpy")


@pytest.mark.parametrize(
    "kind", ["list", "tuple", "float64", "float32", "int64", "uint8", "list of ints", "rows of tuples"]
)
def test_a_batch_of_each_kind(kind: str) -> None:
    w = [Value(0.7), Value(-0.4)]
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]
    given: Any = {
        "list": rows,
        "tuple": [list(r) for r in rows],
        "list of ints": [[int(x) for x in r] for r in rows],
        "rows of tuples": [tuple(r) for r in rows],
    }.get(kind, rows)
    if kind in ("float64", "float32", "int64", "uint8"):
        given = np.array(rows, kind)
    loss = wengert.compile(lambda x: (w[0] * x[0] + w[1] * x[1]).tanh() * x[0])
    for _ in range(2):
        same(loss.mean(given), batch_of(loss.function, rows), w)
        same(loss(given[1]), loss.function(rows[1]), w)
        assert difference(loss.map(given), [loss.function(r).data for r in rows]) < CLOSE
    lifted(loss)


def test_float32_is_computed_in_float64() -> None:
    w = Value(0.7)
    X = np.array([0.1, 0.2, 0.3], np.float32)
    loss = wengert.compile(lambda x: w * x)
    same(loss.mean(X), batch_of(loss.function, X.astype(float).tolist()), [w])


def test_a_batch_of_bools() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x, flag: w * x if flag else w + x)
    X, flags = [1.0, 2.0, 3.0], [True, False, True]
    same(loss.mean(X, np.array(flags)), batch_of(loss.function, X, flags), [w])
    same(loss.mean(X, flags), batch_of(loss.function, X, flags), [w])


def test_a_batch_of_trees() -> None:
    w = [Value(0.7), Value(-0.4)]

    @wengert.compile
    def loss(pair: Any, named: Any) -> Any:
        (a, b), y = pair
        return (w[0] * a + w[1] * b - y) ** 2 * named["weight"] + w[0] * named["rows"][1][0]

    points, targets, weights = [[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], [0.5, 0.25]
    rows = np.arange(8.0).reshape(2, 2, 2)
    for _ in range(2):
        got = loss.mean((points, targets), {"weight": weights, "rows": rows})
        eager = [
            loss.function((points[n], targets[n]), {"weight": weights[n], "rows": rows[n].tolist()}) for n in range(2)
        ]
        same(got, wengert.mean(eager), w)
        single = (points[1], targets[1]), {"weight": weights[1], "rows": rows[1].tolist()}
        same(loss(*single), loss.function(*single), w)
    lifted(loss)


def test_batches_of_other_lengths() -> None:
    loss, w, b = linear()
    rng = np.random.default_rng(1)
    for count in (1, 5, 2, 64, 1, 3):
        X, Y = rng.normal(size=(2, count))
        same(loss.mean(X, Y), batch_of(loss.function, X.tolist(), Y.tolist()), [w, b])
        assert loss.map(X, Y).shape == (count,)
    assert len(loss._runtime.entries) == 1


def test_map_after_mean_at_another_length() -> None:
    w = [Value(0.1 * n) for n in range(4)]
    loss = wengert.compile(lambda x: sum((wi * x[0] + x[1]).tanh() ** 2 for wi in w))
    X = np.random.default_rng(2).normal(size=(6, 2))
    for count in (4, 6, 1, 5):
        want = [loss.function(x) for x in X[:count].tolist()]
        same(loss.mean(X[:count]), wengert.mean(want), w)
        assert difference(loss.map(X[:count]), [v.data for v in want]) < CLOSE
        same(loss.sum(X[:count]), wengert.sum(want), w)


def test_arrays_that_are_not_contiguous() -> None:
    w = [Value(0.7), Value(-0.4)]
    whole = np.arange(24.0).reshape(4, 6) / 10
    loss = wengert.compile(lambda x: w[0] * x[0] * x[1] + w[1] * x[1])
    loss.mean(whole[:, :2])
    for given in (whole[::2, 1::3], whole.T[:, ::2], whole[::-1, :2], np.asfortranarray(whole[:, 3:5])):
        same(loss.mean(given), batch_of(loss.function, given.tolist()), w)
    read_only = whole[:, :2].copy()
    read_only.flags.writeable = False
    same(loss.mean(read_only), batch_of(loss.function, read_only.tolist()), w)


def test_numpy_in_the_users_code() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]
    weights = np.array(w, dtype=object)

    @wengert.compile
    def loss(x: Any, image: Any) -> Any:
        part = x[1:3]
        return (
            part @ weights[:2] + x[::-1] @ weights + image[0, 1] * w[0] + (image.T * w[1]).sum() + x.sum() * w[2]
        ) ** 2

    rng = np.random.default_rng(3)
    X, images = rng.normal(size=(5, 3)), rng.normal(size=(5, 2, 2))
    for _ in range(2):
        same(loss(X[0], images[0]), loss.function(X[0], images[0]), w)
        same(loss.mean(X, images), batch_of(loss.function, X, images), w)
    lifted(loss)


def test_arrays_that_look_alike_are_told_apart() -> None:
    w = Value(2.0)

    @wengert.compile
    def f(x: Any) -> Any:
        return w * x

    assert f.sum(np.array([1.0, 2.0])).data == 6.0
    assert f.sum(np.array([1.0, 2.0], ">f8")).data == 6.0
    assert f.sum(np.array([1, 2])).data == 6.0
    assert f.sum(np.array([True, True])).data == 4.0
    with pytest.raises(DataError, match="x is one number"):
        f.sum(np.array(1.0))
    assert f(np.array(1.0)).data == 2.0
    with wengert.no_grad():
        result = f.sum(np.array([1.0, 5.0]))
    assert (result.data, result.is_leaf, w.grad) == (12.0, True, 0.0)


# ------------------------------------------------------------------------------------- what is refused


def test_ragged_batches() -> None:
    loss = wengert.compile(lambda points: Value(2.0) * points[0])
    with pytest.raises(DataError, match="points"):
        loss.mean([[1.0, 2.0], [3.0]])
    loss.mean([[1.0, 2.0], [3.0, 4.0]])


def test_lengths_of_a_batch_that_differ() -> None:
    loss, *_ = linear()
    with pytest.raises(DataError, match=r"x.*3.*y.*2"):
        loss.mean([1.0, 2.0, 3.0], [1.0, 2.0])


@pytest.mark.parametrize("empty", [[], np.zeros(0)], ids=["list", "array"])
def test_empty_batches(empty: Any) -> None:
    loss, *_ = linear()
    for how in (loss.mean, loss.sum, loss.map):
        with pytest.raises(DataError):
            how(empty, empty)
    loss.mean([1.0], [1.0])
    lifted(loss)


def test_what_a_batch_cannot_be() -> None:
    loss = wengert.compile(lambda x: Value(2.0) * x)
    for wrong in (np.array(3.0), ["a", "b"], [{"a": 1.0}], np.array(["a"])):
        with pytest.raises(DataError, match="x"):
            loss.mean(wrong)
    with pytest.raises(DataError):
        wengert.compile(lambda: Value(1.0)).mean()


def test_a_generator_of_examples_is_read_by_no_one() -> None:
    loss = wengert.compile(lambda x: Value(2.0) * x)
    with pytest.raises((DataError, TypeError)):
        loss.mean(x for x in [1.0, 2.0])
