"""How a compiled function behaves: as the function itself does, for all that it was recorded once."""

from __future__ import annotations

import builtins
import math
import random
import threading
import warnings
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

import wengert
from wengert import Value, nn, optim
from wengert.errors import ArgumentError, DataError, StaleRecordingError

np = pytest.importorskip("numpy")
fuzz = pytest.importorskip("lifting_fuzz")  # needs NumPy
difference, gradients = fuzz.difference, fuzz.gradients

CLOSE = 1e-12
Numbers = list[Any]

FACTOR = 2.0
WORD = "plus"
FLAG = True
FACTORS = [2.0, 3.0]


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Any:
    """After each test, whatever it raised: Python's own functions, plain numbers, and the globals of this module."""
    functions = builtins.max, builtins.min
    before = FACTOR, WORD, FLAG, list(FACTORS)
    yield
    globals().update(FACTOR=before[0], WORD=before[1], FLAG=before[2])
    FACTORS[:] = before[3]
    assert (builtins.max, builtins.min) == functions
    assert type(Value(1.0).data) is float


def same(got: Any, want: Any, parameters: list[Value]) -> None:
    """The same number and the same gradients of all parameters."""
    slopes, wanted = gradients(got, parameters), gradients(want, parameters)
    with np.errstate(invalid="ignore"):  # infinities are compared too
        assert difference(got.data, want.data) < CLOSE
        assert difference(slopes, wanted) < CLOSE


def batch_of(function: Callable[..., Any], *columns: Any) -> Value:
    """The mean by the engine."""
    return wengert.mean([function(*example) for example in zip(*columns, strict=True)])


def lifted(compiled: Any) -> None:
    """Nothing was left to the engine."""
    assert "uncompiled" not in compiled.report()
    assert all(entry.paths for entry in compiled._runtime.entries.values())


def warned(*calls: Callable[[], Any]) -> list[str]:
    """What these calls warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in calls:
            call()
    return [str(w.message) for w in caught]


def line_of(function: Callable[..., Any], further: int) -> str:
    """As a message names a line of a function: so many lines below its first, the decorator's included."""
    return f"test_lifting.py, line {function.__code__.co_firstlineno + further}"


def linear() -> tuple[Any, Value, Value]:
    """A compiled squared error, and its two parameters."""
    w, b = Value(0.7), Value(-0.2)

    @wengert.compile
    def loss(x: float, y: float) -> Any:
        return (w * x + b - y).tanh() ** 2

    return loss, w, b


# ------------------------------------------------------------------------------------- results


def test_a_result_is_a_value_among_values() -> None:
    loss, w, b = linear()
    for function in (loss, loss.function):
        scale = Value(3.0)
        result = (function(0.5, 0.1) * scale + w * w).exp() - function(1.0, 2.0) * w
        result.backward()
        slopes = [w.grad, b.grad, scale.grad]
        w.grad = b.grad = 0.0
        if function is loss:
            first = result.data, slopes
    assert difference(first[0], result.data) < CLOSE
    assert difference(first[1], slopes) < CLOSE


def test_two_results_are_alive_at_once() -> None:
    loss, w, b = linear()
    X, Y = [0.1, 0.2, 0.3], [1.0, 2.0, 3.0]
    results = [(loss(0.5, 0.1), loss(1.5, 0.4), loss.mean(X, Y), loss.sum(X, Y)) for _ in range(2)]
    wants = loss.function(0.5, 0.1), loss.function(1.5, 0.4), batch_of(loss.function, X, Y), None
    for got in results:
        for a, want in reversed(list(zip(got, wants, strict=True))[:3]):
            same(a, want, [w, b])
    assert results[0][3].data == pytest.approx(3 * wants[2].data, rel=1e-13)  # type: ignore[union-attr]


def test_backward_twice_adds_up() -> None:
    loss, w, b = linear()
    for batch in (False, True):
        result = loss.mean([0.5, 0.2], [0.1, 0.3]) if batch else loss(0.5, 0.1)
        once = gradients(result, [w, b])
        result.backward()
        assert [w.grad, b.grad] == pytest.approx(2 * once, rel=1e-14)


def test_gradients_add_to_what_is_there() -> None:
    loss, w, b = linear()
    slopes = gradients(loss(0.5, 0.1), [w, b])
    w.grad, b.grad = 10.0, 20.0
    loss(0.5, 0.1).backward()
    assert [w.grad, b.grad] == pytest.approx([10.0 + slopes[0], 20.0 + slopes[1]], rel=1e-14)


def test_recording_leaves_gradients_alone() -> None:
    loss, w, b = linear()
    w.grad, b.grad = 1.5, -2.5
    loss(0.5, 0.1)
    loss.mean([0.5, 0.1], [0.5, 0.1])
    assert (w.grad, b.grad) == (1.5, -2.5)


def test_parameters_that_change_are_seen() -> None:
    loss, w, b = linear()
    for step in range(20):
        w.data, b.data = 0.1 * step - 1.0, 0.5 - 0.05 * step
        same(loss(0.5, 0.1), loss.function(0.5, 0.1), [w, b])
        same(loss.mean([0.5, -0.3], [0.1, 0.9]), batch_of(loss.function, [0.5, -0.3], [0.1, 0.9]), [w, b])
    lifted(loss)


def test_a_result_keeps_its_slopes_when_numbers_change_after_it() -> None:
    """Arguments are read at the call: an array that is written over afterwards changes nothing."""
    loss, w, b = linear()
    X, Y = np.array([0.5, -0.3]), np.array([0.1, 0.9])
    want = gradients(loss.mean(X, Y), [w, b])
    result = loss.mean(X, Y)
    X[:] = 100.0
    assert gradients(result, [w, b]).tolist() == want.tolist()


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, 0.1), lambda p: optim.SGD(p, 0.05, momentum=0.9),
                                  lambda p: optim.Adam(p, 0.02)], ids=["SGD", "momentum", "Adam"])  # fmt: skip
@pytest.mark.parametrize("how", ["batch", "single"])
def test_training_gives_the_same_curve(make: Callable[..., Any], how: str) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 3)), rng.normal(size=12)
    curves = []
    for compiling in (True, False):
        model = nn.MLP(3, [6, 1], activation="tanh", rng=random.Random(1))
        optimizer = make(model.parameters())

        def loss(x: Any, y: Any) -> Any:
            return (model(x) - y) ** 2  # noqa: B023

        compiled = wengert.compile(loss)
        curve = []
        for step in range(20):
            optimizer.zero_grad()
            if how == "batch":
                result = compiled.mean(X, Y) if compiling else batch_of(loss, X.tolist(), Y.tolist())
            else:
                x, y = X[step % 12].tolist(), float(Y[step % 12])
                result = compiled(x, y) if compiling else loss(x, y)
            result.backward()
            optimizer.step()
            curve.append(result.data)
        if compiling:
            lifted(compiled)
        curves.append(curve)
    assert curves[0] == pytest.approx(curves[1], rel=1e-10, abs=1e-12)
    assert curves[0][0] != curves[0][-1]


def test_without_gradients_a_result_is_a_leaf() -> None:
    loss, w, b = linear()
    for _ in range(2):
        with wengert.no_grad():
            results = [loss(0.5, 0.1), loss.mean([0.5], [0.1]), loss.sum([0.5], [0.1])]
        assert all(r.is_leaf for r in results)
        assert [r.data for r in results] == pytest.approx([loss.function(0.5, 0.1).data] * 3, rel=1e-13)
    assert not loss(0.5, 0.1).is_leaf  # a recording made without gradients has them
    same(loss(0.5, 0.1), loss.function(0.5, 0.1), [w, b])
    same(loss.mean([0.5], [0.1]), loss.function(0.5, 0.1), [w, b])


def test_captured_nodes_pass_their_gradients_on() -> None:
    w, x0 = Value(0.7), [0.2, -0.4, 0.9]
    w2 = w * 2.0
    w3 = w2.exp()
    loss = wengert.compile(lambda x: (w2 * x + w3) ** 2 + w)
    for _ in range(2):
        same(loss(0.3), loss.function(0.3), [w])
        same(loss.mean(x0), batch_of(loss.function, x0), [w])
    lifted(loss)


def test_a_captured_node_made_anew_is_the_new_one() -> None:
    """A closure cell holds another Value now: its number and its gradient count."""
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x)
    loss(2.0)
    old, w = w, Value(5.0)
    for _ in range(5):
        try:
            result = loss(2.0)
        except StaleRecordingError:
            return
    result.backward()
    assert (result.data, w.grad, old.grad) == (10.0, 2.0, 0.0)


# ------------------------------------------------------------------------------------- arguments


def test_static_arguments() -> None:
    w = [Value(0.3), Value(0.5), Value(-0.8)]

    @wengert.compile(static=("k", "how"))
    def loss(x: float, k: int, how: str = "sum") -> Any:
        terms = [wi * x**n for n, wi in enumerate(w[:k])]
        return sum(terms) if how == "sum" else wengert.prod(terms)

    for _ in range(2):
        for k in (1, 2, 3):
            for how in ("sum", "prod"):
                same(loss(1.5, k, how), loss.function(1.5, k, how), w)
                same(loss(1.5, how=how, k=k), loss.function(1.5, k, how), w)
                got = loss.mean([0.5, 1.5], k, how)
                same(got, wengert.mean([loss.function(x, k, how) for x in (0.5, 1.5)]), w)
    lifted(loss)
    assert len(loss._runtime.entries) == 12


def test_static_names_an_argument() -> None:
    with pytest.raises(ArgumentError, match="k"):
        wengert.compile(lambda x: x, static=("k",))
    assert wengert.compile(lambda x, k: x, static="k").static == ("k",)


def test_default_and_named_arguments() -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float, scale: float = 2.0, *, shift: float = 0.5) -> Any:
        return (w * x * scale + shift) ** 2

    for _ in range(2):
        for args, named in [((0.3,), {}), ((0.3, 1.5), {}), ((0.3,), {"shift": 1.0}), ((), {"scale": 3.0, "x": 0.1})]:
            same(loss(*args, **named), loss.function(*args, **named), [w])
    with pytest.raises(TypeError):
        loss()
    with pytest.raises(TypeError):
        loss(1.0, nothing=2.0)
    lifted(loss)


def test_a_default_is_one_number_for_a_whole_batch_if_it_is_static() -> None:
    w = Value(0.7)

    def function(x: float, scale: float = 2.0) -> Any:
        return (w * x * scale) ** 2

    with pytest.raises(DataError, match=r"scale.*static"):
        wengert.compile(function).mean([0.3, 0.4])
    loss = wengert.compile(function, static="scale")
    same(loss.mean([0.3, 0.4]), batch_of(function, [0.3, 0.4]), [w])
    same(loss.mean([0.3, 0.4], scale=3.0), wengert.mean([function(x, 3.0) for x in (0.3, 0.4)]), [w])


def test_flags_and_strings_and_nothing() -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float, flag: bool, word: str | None = None) -> Any:
        y = w * x if flag else w - x
        return y.exp() if word == "exp" else y

    for _ in range(2):
        for flag in (True, False):
            for word in ("exp", None, "other"):
                same(loss(0.3, flag, word), loss.function(0.3, flag, word), [w])
    lifted(loss)


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


# ------------------------------------------------------------------------------------- what functions return


def test_functions_that_return_lists() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]
    both = wengert.compile(lambda x: [[wi * x, wi + x] for wi in w])
    X = [0.5, 1.5]
    for _ in range(2):
        assert difference(both.map(X), [[[v.data for v in row] for row in both.function(x)] for x in X]) < CLOSE
        assert both.map(X).shape == (2, 3, 2)
    with pytest.raises(ArgumentError, match="map"):
        both.mean(X)
    result = both(0.5)
    same(result[1][0], w[1] * 0.5, w)


def test_functions_that_return_a_constant() -> None:
    w = Value(0.7)
    for function in (lambda x: 3.0, lambda x: Value(3.0), lambda x: x * 0 + 3.0):
        constant = wengert.compile(function)
        for _ in range(2):
            result = constant(1.0)
            assert getattr(result, "data", result) == 3.0
            assert constant.mean([1.0, 2.0, 4.0]).data == pytest.approx(3.0, rel=1e-15)
            assert constant.sum([1.0, 2.0, 4.0]).data == 9.0
            assert constant.map([1.0, 2.0, 4.0]).tolist() == [3.0] * 3
    without = wengert.compile(lambda x: w * 2.0)
    for _ in range(2):
        same(without(1.0), w * 2.0, [w])
        same(without.mean([1.0, 2.0, 4.0]), w * 2.0, [w])
        same(without.sum([1.0, 2.0, 4.0]), w * 6.0, [w])
        assert without.map([1.0, 2.0, 4.0]).tolist() == [1.4] * 3


def test_functions_that_return_what_they_are_given() -> None:
    w = Value(0.7)
    identity = wengert.compile(lambda x: x)
    assert identity.map([1.0, 2.0]).tolist() == [1.0, 2.0]
    same(identity(w), w, [w])
    parameter = wengert.compile(lambda x: w)
    same(parameter.sum([1.0, 2.0]), w * 2.0, [w])
    same(parameter(1.0), w * 1.0, [w])


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
        assert difference(loss.map(X), [loss.function(x).data for x in X.tolist()]) < CLOSE
        for x in X[:6].tolist():
            same(loss(x), loss.function(x), [a, b])
        b.data += 0.3 * turn
    lifted(loss)
    assert {len(entry.paths) for entry in loss._runtime.entries.values()} == {3}
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


def test_max_and_min_of_data_are_no_branches() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        v = [wi * xi for wi, xi in zip(w, x, strict=True)]
        return v[0] * max(vi.data for vi in v) + v[1] * min(v[0].data, v[2].data, 0.1) + v[2] * max([1, 2])

    X = np.random.default_rng(6).normal(size=(20, 3))
    same(loss.mean(X), batch_of(loss.function, X.tolist()), w)
    lifted(loss)
    assert len(loss._runtime.latest().guards) == 0


# ------------------------------------------------------------------------------------- what is left to the engine


def leaking() -> list[tuple[str, Callable[..., Any]]]:
    """Functions that take a number out of the graph, each on the line after its first."""
    w = Value(0.7)

    def to_float(x: float) -> Any:
        return w * float((w * x).data)

    def to_math(x: float) -> Any:
        return w * math.exp((w * x).data)

    def to_text(x: float) -> Any:
        return w * float(f"{(w * x).data}")

    def to_str(x: float) -> Any:
        return w * float(str((w * x).data))

    def to_int(x: float) -> Any:
        return w * int((w * x * 10).data)

    def to_round(x: float) -> Any:
        return w * round((w * x * 10).data)

    def to_index(x: float) -> Any:
        return w * {0.7: 1.0}.get((w * x).data, 2.0)

    def to_repr(x: float) -> Any:
        return w * float(f"{(w * x).data!r}")

    functions = to_float, to_math, to_text, to_str, to_int, to_round, to_index, to_repr
    return [(function.__name__, function) for function in functions]


@pytest.mark.parametrize("name", [name for name, _ in leaking()])
def test_numbers_that_leave_the_graph(name: str) -> None:
    """The engine computes, and one warning says where the number was taken out."""
    function = dict(leaking())[name]
    loss = wengert.compile(function)
    w = function.__closure__[0].cell_contents  # type: ignore[index]
    X = [0.5, 1.5, 2.5]

    def check() -> None:
        for x in X:
            same(loss(x), function(x), [w])
        same(loss.mean(X), batch_of(function, X), [w])
        assert difference(loss.map(X), [function(x).data for x in X]) < CLOSE

    said = warned(check, check)
    assert len(set(said)) == len(said) == 1
    assert line_of(function, 1) in said[0]
    assert line_of(function, 1) in loss.report()
    assert name in said[0]


def test_a_gradient_that_is_read() -> None:
    w = Value(0.7)
    w.grad = 3.0
    loss = wengert.compile(lambda x: w * x * w.grad)
    said = warned(lambda: loss(2.0), lambda: loss(2.0))
    assert len(said) == 1
    assert "gradient" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w.grad = 5.0
        assert loss(2.0).data == pytest.approx(7.0)


@pytest.mark.parametrize("draw", [random.random, np.random.random], ids=["random", "numpy"])
def test_random_numbers_are_refused(draw: Callable[[], float]) -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x * float(draw()))
    said = warned(lambda: loss(2.0), lambda: loss(2.0))
    assert len(said) == 1
    assert "random" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert loss(2.0).data != loss(2.0).data


def test_a_counter_is_refused() -> None:
    w, calls = Value(0.7), [0]

    @wengert.compile
    def loss(x: float) -> Any:
        calls[0] += 1
        return w * x * calls[0]

    assert len(warned(lambda: loss(2.0))) == 1


def test_a_backward_inside_is_left_to_the_engine() -> None:
    """A derivative of a derivative by hand."""
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        inner = Value(2.0)
        (inner * inner * w).backward()
        return w * x * inner.grad

    want = loss.function(2.0).data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert loss(2.0).data == pytest.approx(want)


# ------------------------------------------------------------------------------------- what a function sees outside


@pytest.mark.parametrize("when", [1, 3, 5, 9])
@pytest.mark.parametrize("how", ["single", "batch"])
def test_a_changed_list_is_found_out(when: int, how: str) -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x * FACTORS[0])
    call = (lambda: loss(2.0)) if how == "single" else (lambda: loss.mean([2.0, 3.0]))
    for _ in range(when):
        call()
    FACTORS[0] = 5.0
    due = next(n for n in (2, 4, 8, 16) if n > when)
    for _ in range(when + 1, due):
        call()
    with pytest.raises(StaleRecordingError, match="decorate"):
        call()


def factor_alone(w: Value) -> Callable[[float], Any]:
    return lambda x: w * x * FACTOR


def factor_in_a_list(w: Value) -> Callable[[float], Any]:
    return lambda x: sum([w * x * FACTOR for _ in range(2)])


def factor_in_a_generator(w: Value) -> Callable[[float], Any]:
    return lambda x: sum(w * x * FACTOR for _ in range(2))


def factor_in_an_inner_function(w: Value) -> Callable[[float], Any]:
    def function(x: float) -> Any:
        def scaled(v: Any) -> Any:
            return v * FACTOR

        return scaled(w * x)

    return function


@pytest.mark.parametrize(
    "make",
    [factor_alone, factor_in_a_list, factor_in_a_generator, factor_in_an_inner_function],
    ids=lambda make: make.__name__,
)
def test_a_changed_global_number_is_recorded_anew(make: Callable[..., Any]) -> None:
    global FACTOR
    w = Value(0.7)
    loss = wengert.compile(make(w))
    for number in (2.0, 3.0, -1.0, 2.0, 4):
        FACTOR = number
        same(loss(1.5), loss.function(1.5), [w])
        same(loss.mean([1.5, 2.5]), batch_of(loss.function, [1.5, 2.5]), [w])
    lifted(loss)


def test_a_changed_global_string_or_flag_is_recorded_anew() -> None:
    global WORD, FLAG
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        v = w + x if WORD == "plus" else w - x
        return v if FLAG else -v

    for WORD in ("plus", "minus", "plus"):  # noqa: B007
        for FLAG in (True, False):  # noqa: B007
            same(loss(1.5), loss.function(1.5), [w])
    lifted(loss)


def test_a_changed_closure_number_is_recorded_anew() -> None:
    w = Value(0.7)
    factor: Any = 2.0
    loss = wengert.compile(lambda x: w * x * factor)
    for factor in (2.0, 3.0, True, 7):  # noqa: B007
        same(loss(1.5), loss.function(1.5), [w])
        same(loss.mean([1.5, 2.5]), batch_of(loss.function, [1.5, 2.5]), [w])
    lifted(loss)


def test_a_number_that_changes_at_every_call_is_left_to_the_engine() -> None:
    w = Value(0.7)
    step = 0
    loss = wengert.compile(lambda x: w * x * step)

    def calls() -> None:
        nonlocal step
        for step in range(60):
            same(loss(1.5), w * 1.5 * step, [w])

    said = warned(calls)
    assert len(said) == 1
    assert "step, changes from call to call" in said[0]


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


# ------------------------------------------------------------------------------------- functions of all kinds


def test_a_compiled_function_calls_another() -> None:
    w, b = Value(0.7), Value(-0.2)
    neuron = wengert.compile(lambda x: (w * x + b).tanh())

    @wengert.compile
    def loss(x: float, y: float) -> Any:
        return (neuron(neuron(x)) - y) ** 2

    X, Y = [0.5, 1.5], [0.1, 0.2]
    for _ in range(2):
        want = [(neuron.function(neuron.function(x)) - y) ** 2 for x, y in zip(X, Y, strict=True)]
        same(loss(X[0], Y[0]), want[0], [w, b])
        same(neuron(0.5), neuron.function(0.5), [w, b])
        same(loss.mean(X, Y), wengert.mean(want), [w, b])
    assert all(entry.paths for entry in neuron._runtime.entries.values())


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_a_compiled_function_calls_another_on_a_batch(how: str) -> None:
    """While the outer one is recorded, its numbers are Values, and a batch of them is as good as one of floats."""
    w, b = Value(0.7), Value(-0.2)
    neuron = wengert.compile(lambda x: (w * x + b).tanh())
    loss = wengert.compile(lambda x, y: getattr(neuron, how)([x, 2.0 * y]) ** 2)
    for _ in range(2):
        pair = [neuron.function(x) for x in (0.5, 0.2)]
        same(loss(0.5, 0.1), (wengert.mean(pair) if how == "mean" else wengert.sum(pair)) ** 2, [w, b])
    lifted(loss)


def test_a_function_that_calls_its_compiled_self() -> None:
    w = Value(0.7)

    @wengert.compile(static=("n",))
    def power(x: float, n: int) -> Any:
        return w * x if n == 0 else power(x, n - 1) * w + x

    def eager(x: float, n: int) -> Any:
        return w * x if n == 0 else eager(x, n - 1) * w + x

    for n in (0, 1, 5):
        same(power(0.5, n), eager(0.5, n), [w])
        same(power.mean([0.5, 0.25], n), wengert.mean([eager(x, n) for x in (0.5, 0.25)]), [w])
    lifted(power)


class Line(nn.Module):
    """A module with a compiled method."""

    def __init__(self, slope: float) -> None:
        self.slope, self.offset = Value(slope), Value(0.1)

    @wengert.compile
    def loss(self, x: float, y: float) -> Any:
        return (self.slope * x + self.offset - y) ** 2


def test_a_compiled_method() -> None:
    lines = [Line(0.5), Line(-0.7)]
    for _ in range(3):
        for line in lines:
            want = [(line.slope * x + line.offset - 1.0) ** 2 for x in (0.3, 0.6)]
            same(line.loss(0.3, 1.0), want[0], line.parameters())
            same(line.loss.mean([0.3, 0.6], [1.0, 1.0]), wengert.mean(want), line.parameters())
            line.slope.data += 0.5


def test_a_bound_method_that_is_compiled() -> None:
    class Bare:
        def __init__(self) -> None:
            self.w = Value(0.4)
            self.loss = wengert.compile(self.plain)

        def plain(self, x: float) -> Any:
            return self.w * x

    for made in (Bare(), Bare()):
        same(made.loss(2.0), made.w * 2.0, [made.w])
        same(made.loss.mean([2.0, 4.0]), made.w * 3.0, [made.w])
        lifted(made.loss)


def test_an_object_with_call() -> None:
    model = nn.MLP(2, [3, 1], rng=random.Random(1))
    compiled = wengert.compile(model)
    X = [[0.1, 0.2], [0.3, -0.4]]
    for _ in range(2):
        same(compiled.mean(X), batch_of(model, X), model.parameters())
        same(compiled(X[0]), model(X[0]), model.parameters())
    assert "calls" in compiled.report()


def test_what_a_compiled_function_says_of_itself() -> None:
    loss, *_ = linear()
    assert loss.__name__ == "loss"
    assert "loss" in repr(loss)
    assert "not called yet" in loss.report()
    with pytest.raises(ArgumentError, match="call"):
        loss.source()
    loss.mean([1.0], [2.0])
    report = loss.report()
    assert "a batch: 1 calls" in report
    with pytest.raises(ArgumentError, match="fortran"):
        loss.source("fortran")


def test_a_captured_model_does_not_outlive_its_compiled_function() -> None:
    import gc
    import weakref

    class Watched(Value):
        """A Value that can be watched."""

        __slots__ = ("__weakref__",)

    w = Watched(0.7)
    gone = weakref.ref(w)
    loss = (lambda w: wengert.compile(lambda x: w * x))(w)
    loss(2.0).backward()
    loss.mean([2.0, 3.0]).backward()
    del loss, w
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------------------------- threads and faults


def test_threads() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        v = [wi * xi for wi, xi in zip(w, x, strict=True)]
        return sum(vi.tanh() for vi in v) * (v[0] if v[0].data > 0 else v[1])

    X = np.random.default_rng(8).normal(size=(40, 3))
    wants = [loss.function(x).data for x in X.tolist()]
    faults: list[Any] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            start.wait()
            for turn in range(60):
                n = (turn * 7 + number * 11) % 40
                results = [loss(X[n].tolist()).data, loss.mean(X[n : n + 1]).data, loss.map(X[[n, 0]])[0]]
                eager = loss.function(X[n].tolist())
                assert type(eager.data) is float
                assert results == pytest.approx([wants[n]] * 3, rel=1e-12)
        except BaseException as fault:  # told in the main thread
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not faults
    lifted(loss)


@pytest.mark.parametrize("kind", [ValueError, KeyError, ZeroDivisionError, KeyboardInterrupt])
def test_what_the_function_raises_comes_out(kind: type[BaseException]) -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        if x > 5.0:
            raise kind("too much")
        return w * x

    plain = builtins.max, builtins.min
    for call in (
        lambda: loss(6.0),
        lambda: loss.mean([6.0, 1.0]),
        lambda: loss.mean([1.0, 6.0]),
        lambda: loss.map([1.0, 7.0]),
    ):
        with pytest.raises(kind, match="too much"):
            call()
        assert (builtins.max, builtins.min) == plain
        assert type(w.data) is float
        assert type((w * 2.0).data) is float
        same(loss(2.0), w * 2.0, [w])
        same(loss.mean([2.0, 4.0]), w * 3.0, [w])
    with pytest.raises(kind, match="too much"):
        loss(6.0)
    lifted(loss)


def test_a_chain_of_100_000_terms() -> None:
    ws = [Value(0.001 * (n % 100)) for n in range(200)]

    @wengert.compile
    def total(x: float) -> Any:
        made: Any = 0.0
        for n in range(100_000):
            made = made + ws[n % 200]
        return made * x

    for x in (1.0, 2.0):
        result = total(x)
        slopes = gradients(result, ws)
        assert result.data == pytest.approx(x * 500 * sum(w.data for w in ws), rel=1e-10)
        assert difference(slopes, [500.0 * x] * 200) < CLOSE
    lifted(total)


def test_a_sum_of_100_000_terms_of_its_own() -> None:
    ws = [Value(0.001 * (n % 100)) for n in range(100_000)]
    total = wengert.compile(lambda x: sum(w * x for w in ws))
    slopes = gradients(total(2.0), ws)
    assert difference(slopes, [2.0] * len(ws)) < CLOSE
    lifted(total)


def test_a_deep_chain() -> None:
    w = Value(0.999)

    @wengert.compile
    def deep(x: float) -> Any:
        v: Any = x
        for _ in range(1500):
            v = v * w
        return v

    result = deep(1.0)
    assert result.data == pytest.approx(0.999**1500, rel=1e-11)
    assert gradients(result, [w])[0] == pytest.approx(1500 * 0.999**1499, rel=1e-11)


# ------------------------------------------------------------------------------------- the printed program


def printed(compiled: Any, arguments: list[Any]) -> tuple[float, list[float]]:
    """What the printed program gives: its value, and the gradients in the order of the recording's parameters."""
    space: dict[str, Any] = {}
    text = compiled.source("numpy")
    exec(text, space)
    path = compiled._runtime.latest()
    numbers = np.array([p.data for p in path.parameters])
    arrays, place = [], 0
    for array in path.lifted.program.of_role("param"):
        size = math.prod(array.shape)
        arrays.append(numbers[place : place + size].reshape(array.shape))
        place += size
    value, slopes = next(f for name, f in space.items() if name.endswith("_and_gradients"))(*arguments, *arrays)
    return float(value), np.concatenate([np.ravel(s) for s in slopes]).tolist()


def test_the_printed_program_by_exec() -> None:
    model = nn.MLP(3, [4, 2], activation="gelu", bias="uniform", rng=random.Random(1))

    @wengert.compile
    def loss(x: Numbers, label: int) -> Any:
        return wengert.losses.cross_entropy(model(x), label) + 0.01 * sum(p * p for p in model.parameters())

    X, Y = np.random.default_rng(9).normal(size=(5, 3)), np.array([0, 1, 1, 0, 1])
    got = loss.mean(X, Y)
    value, slopes = printed(loss, [X, Y])
    want = batch_of(loss.function, X.tolist(), Y.tolist())
    parameters = list(loss._runtime.latest().parameters)
    assert difference(value, want.data) < CLOSE
    assert difference(slopes, gradients(want, parameters)) < CLOSE
    assert difference(slopes, gradients(got, parameters)) < CLOSE
    forward: dict[str, Any] = {}
    exec(loss.source("numpy", gradient=False), forward)
    assert "loss" in forward


def test_the_printed_program_of_one_example() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        return wengert.softmax([wi * xi for wi, xi in zip(w, x, strict=True)])[1].log()

    x = [0.5, 1.5, -0.5]
    loss(x)
    value, slopes = printed(loss, [np.array(x)])
    want = loss.function(x)
    assert difference(value, want.data) < CLOSE
    assert difference(slopes, gradients(want, list(loss._runtime.latest().parameters))) < CLOSE


# ------------------------------------------------------------------------------------- corners


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


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("count", [3, 4, 8])
def test_indices_of_every_kind_of_integer(kind: str, count: int) -> None:
    rows = [[Value(0.1 * n + m) for n in range(3)] for m in range(4)]
    parameters = [p for row in rows for p in row]
    loss = wengert.compile(lambda i, x: wengert.dot(rows[i], x))
    X = np.random.default_rng(10).normal(size=(count, 3))
    indices = np.array([0, 3, 1, 2, 2, 3, 0, 1][:count], kind)
    for _ in range(2):
        same(loss.mean(indices, X), batch_of(loss.function, indices.tolist(), X.tolist()), parameters)
        same(loss(indices[1], X[1]), loss.function(3, X[1].tolist()), parameters)
    lifted(loss)
    several = wengert.compile(lambda context: sum(rows[t][0] * rows[t][1] for t in context))
    for given in (indices, indices[::-1]):
        same(several(given), several.function(given.tolist()), parameters)
    lifted(several)


def test_indices_that_are_not_contiguous() -> None:
    rows = [[Value(0.1 * n + m) for n in range(3)] for m in range(4)]
    parameters = [p for row in rows for p in row]
    loss = wengert.compile(lambda pair: rows[pair[0]][1] * rows[pair[1]][2])
    pairs = np.array([[0, 9, 3], [1, 9, 2], [3, 9, 3]])[:, ::2]
    same(loss.mean(pairs), batch_of(loss.function, pairs.tolist()), parameters)
    same(loss.mean(pairs.T[:, :2].T), batch_of(loss.function, pairs.tolist()[:2]), parameters)


def test_a_batch_of_bools() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x, flag: w * x if flag else w + x)
    X, flags = [1.0, 2.0, 3.0], [True, False, True]
    same(loss.mean(X, np.array(flags)), batch_of(loss.function, X, flags), [w])
    same(loss.mean(X, flags), batch_of(loss.function, X, flags), [w])


def test_results_that_are_no_array_come_back_as_they_are() -> None:
    w = Value(0.7)
    results: list[tuple[Callable[[float], Any], Callable[[Any], Any]]] = [
        (lambda x: {"a": w * x}, lambda r: r["a"].data),
        (lambda x: [[w * x], [w, w]], lambda r: r[0][0].data),
        (lambda x: (w * x, w), lambda r: r[0].data if type(r) is tuple else None),
        (lambda x: [w * x, [w]], lambda r: r[0].data),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, read in results:
            compiled = wengert.compile(function)
            for x in (2.0, 3.0):
                assert read(compiled(x)) == read(function(x))
        assert wengert.compile(lambda x: None)(2.0) is None
        assert wengert.compile(lambda x: "text")(2.0) == "text"


def test_arguments_of_any_number_are_refused() -> None:
    w = Value(0.7)
    with pytest.raises(ArgumentError, match="xs"):
        wengert.compile(lambda *xs: w * xs[0])(1.0, 2.0)
    loss = wengert.compile(lambda x, **options: w * x)
    same(loss(2.0), w * 2.0, [w])
    with pytest.raises(ArgumentError, match="options"):
        loss(1.0, scale=2.0)


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


def test_single_numbers_of_every_kind() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x + 0.5)
    for x in (2.0, 2, True, np.float64(2.0), np.float32(2.5), np.int64(2), np.int8(3), np.array(2.0), Value(2.0)):
        for _ in range(2):
            same(loss(x), loss.function(x), [w])
    many = wengert.compile(lambda xs: sum((w * x for x in xs), w))
    given: list[Any] = [[], [1.0, Value(2.0)], [1, 2.5], (1.0, 2.0), [np.float64(1.0), 3]]
    for xs in given:
        for _ in range(2):
            same(many(xs), many.function(xs), [w])


def test_a_value_argument_that_is_not_used() -> None:
    w, a, b = Value(0.7), Value(1.0), Value(2.0)
    loss = wengert.compile(lambda a, b: w * a)
    for _ in range(2):
        same(loss(a, b), w * a, [w, a, b])
        same(loss(b, a), w * b, [w, a, b])


def test_a_generator_of_examples_is_read_by_no_one() -> None:
    loss = wengert.compile(lambda x: Value(2.0) * x)
    with pytest.raises((DataError, TypeError)):
        loss.mean(x for x in [1.0, 2.0])


@pytest.mark.parametrize("indices", [[9, 2, 5, 8, 1, 4], [9, -1, -6, -10, 2, 0]])
def test_tables_of_several_sizes_on_several_paths(indices: list[int]) -> None:
    """An index that one path's table has no row for is of no concern where an example takes another path."""
    large, middle, small = ([Value(0.1 * n + size) for n in range(size)] for size in (10, 6, 3))

    @wengert.compile
    def loss(x: float, i: int) -> Any:
        if x > 1.0:
            return large[i] * x
        return small[i] * x if x < 0.0 else middle[i] * x

    X = [2.0, -1.0, 0.5, 3.0, -2.0, 0.1]
    for _ in range(2):
        same(loss.mean(X, indices), batch_of(loss.function, X, indices), [*large, *middle, *small])
        assert difference(loss.map(X, indices), [loss.function(*e).data for e in zip(X, indices, strict=True)]) < CLOSE
        for x, i in zip(X, indices, strict=True):
            same(loss(x, i), loss.function(x, i), [*large, *middle, *small])


def by_type(w: Value, x: float, k: Any) -> Any:
    """1, True and 1.0 are equal, and not the same."""
    return w * x if k is True else w + x if isinstance(k, int) else w - x


def test_static_arguments_that_are_equal_and_of_other_types() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x, k: by_type(w, x, k), static="k")
    for k in (1, True, 1.0, 1):
        same(loss(2.0, k), loss.function(2.0, k), [w])
    lifted(loss)


def test_numbers_outside_that_are_equal_and_of_other_types() -> None:
    w, k = Value(0.7), None
    loss = wengert.compile(lambda x: by_type(w, x, k))
    for k in (1, True, 1.0, 1):  # noqa: B007
        same(loss(2.0), loss.function(2.0), [w])
    lifted(loss)


def test_a_model_as_an_argument() -> None:
    models = [nn.MLP(2, [3, 1], rng=random.Random(n)) for n in range(2)]
    loss = wengert.compile(lambda model, x: model(x) ** 2)
    X = [[0.1, 0.2], [0.3, 0.4]]
    for model in models * 2:
        same(loss(model, X[0]), loss.function(model, X[0]), model.parameters())
        same(loss.mean(model, X), wengert.mean([loss.function(model, x) for x in X]), model.parameters())
    lifted(loss)


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


@pytest.mark.parametrize(("step", "said"), [("data", "sets the data"), ("grad", "reads the gradient")])
def test_a_function_that_writes_or_reads_state_stays_with_the_engine(step: str, said: str) -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        if step == "data":
            w.data = 0.25
        return w * x if step == "data" else w * x + w.grad

    with pytest.warns(UserWarning, match=said):
        assert loss(2.0).data == (0.5 if step == "data" else 1.4)
    assert said in loss.report()


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
