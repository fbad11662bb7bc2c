"""What a compiled function gives: Values among Values, with the gradients of eager code; lists; constants."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import (
    CLOSE,
    batch_of,
    difference,
    gradients,
    lifted,
    linear,
    same,
    specializations,
    warned,
)
from wengert import Value, nn, optim
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs


# ------------------------------------------------------------------------------------- Values


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
    for n in range(40):  # the engine's, whose recording serves map
        result = both(0.5 + n)
        same(result[1][0], w[1] * (0.5 + n), w)
    lifted(both)
    assert specializations(both) == [1, 1]


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


# ------------------------------------------------------------------------------------- kinds

NUMBERS = [0.5, -0.5, 1.5, 2.0, -0.0, 3.0, 0.25, -1.0]
KINDS: dict[str, tuple[Callable[[Any], Any], int]] = {  # of one number; and by how many specializations
    "bool": (lambda x: x > 0, 1),
    "True": (lambda x: True, 1),
    "bool of Values": (lambda x: W * x >= 0.1, 1),
    "bool of bools": (lambda x: (x > 0) & (x < 1) | (x == 3.0), 1),
    "is_integer": (lambda x: x.is_integer(), 1),
    "int": (lambda x: 3, 1),
    "count": (lambda x: (x > 0) + (x > 1) - 1, 1),
    "sum": (lambda x: sum([x > 0, x > 1, x > 2]), 1),
    "rounded": (lambda x: round(x) * 2 + 1, 1),
    "floor": (lambda x: math.floor(x) // 2, 1),
    "quotient": (lambda x: x // 0.5, 1),
    "float": (lambda x: x * 2, 1),
    "float of a bool": (lambda x: float(x > 0), 1),
    "bool by a bool": (lambda x: (x > 0) / (1 + (x > 1)), 1),
    "either": (lambda x: 1 if x > 0 else 2.5, 2),
    "bool or int": (lambda x: x > 1 if x > 0 else 7, 2),
    "Value or int": (lambda x: W * x if x > 0 else 0, 2),
    "the greater": (lambda x: max(x, 0), 2),
    "the least of some": (lambda x: -min(1, x, 2), 2),
    "sum of the greater": (lambda x: max(x, 0) + max(1, x), 3),
    "the greater as a float": (lambda x: max(x, 0) * 1.0, 1),
    "float64": (lambda x: np.array([x, 1.0]).sum(), 1),
    "an item": (lambda x: np.array([x, 1.0])[0], 1),
    "int64": (lambda x: (np.array([x, 1.0]) > 0).sum(), 1),
    "bool_": (lambda x: np.greater(x, 0), 1),
    "all": (lambda x: (np.array([x, 1.0]) > 0).all(), 1),
    "of NumPy, each": (lambda x: np.float64(2.0) if x > 0 else np.int64(3), 2),
    "as far as floats go": (lambda x: 2**53 - 1, 1),
}
W = Value(0.7)


def number_of(x: Any) -> Any:
    return x.data if isinstance(x, Value) else x


@pytest.mark.parametrize("backend", ["numpy", "native", "xla"])
@pytest.mark.parametrize("name", KINDS)
def test_a_number_stays_of_its_kind(name: str, backend: str) -> None:
    f, count = KINDS[name]
    compiled = wengert.compile(f, backend=backend)
    for x in NUMBERS * 2:
        got, want = compiled(x), f(x)
        assert isinstance(got, Value) if isinstance(want, Value) else type(got) is type(want)
        assert difference(float(number_of(got)), float(number_of(want))) < CLOSE
    for columns in (NUMBERS, NUMBERS[:1], NUMBERS[1:2], NUMBERS):
        got, want = compiled.map(columns), np.array([number_of(f(x)) for x in columns])
        assert got.dtype == want.dtype
        assert difference(got.astype(float), want.astype(float)) < CLOSE
        total = compiled.sum(columns)
        assert isinstance(total, Value)
        assert difference(total.data, float(want.sum())) < CLOSE
    lifted(compiled)
    assert specializations(compiled) == [count, count]


def test_kinds_of_arguments_that_are_integers() -> None:
    f = lambda n: n * n - 1  # noqa: E731
    compiled = wengert.compile(f)
    for n in (1, 2, 3, 4, 5, 6, -7):
        assert compiled(n) == f(n)
        assert type(compiled(n)) is int
    assert compiled.map([1, 2, 3]).dtype == np.int64
    lifted(compiled)
    large = 2**30, 94906265, 94906266, 94906267, -(2**27) - 1, 2**40  # the squares of some are beyond 2**53
    found: list[int] = []
    (said,) = warned(lambda: found.extend(map(compiled, large)))
    assert found == [f(n) for n in large]
    assert "its result is an integer beyond 2**53" in said


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_kinds_of_arguments_that_are_numpys(backend: str) -> None:
    """A scalar of NumPy's has its arithmetic, and gives its numbers."""
    functions: list[Callable[..., Any]] = [
        lambda x, n: x * 2 + n, lambda x, n: n - 1, lambda x, n: x, lambda x, n: n // 2 + (x > 0), lambda x, n: x > n,
        lambda x, n: (x > 0) * (x > 1), lambda x, n: -abs(x), lambda x, n: float(x), lambda x, n: int(n),
        lambda x, n: x.item() if hasattr(x, "item") else 2, lambda x, n: max(x, 1.0),
        lambda x, n: [2.0, 3.5, x][int(n)],
    ]  # fmt: skip
    for f in functions:
        compiled = wengert.compile(f, backend=backend)
        for turn in range(7):
            for kind in (float, np.float64):
                for whole in (int, np.int64):
                    args = kind(turn / 2 - 1), whole(turn % 3)
                    got, want = compiled(*args), f(*args)
                    assert type(got) is type(want)
                    assert got == want
        lifted(compiled)
    by_zero = wengert.compile(lambda x, n: x / (n - 1), backend="native")
    assert [by_zero(np.float64(1.0), np.int64(n)) for n in (0, 2, 3, 1, 1)] == [-1.0, 1.0, 0.5, math.inf, math.inf]
    assert by_zero(1.0, 0) == -1.0
    with pytest.raises(ZeroDivisionError):
        by_zero(1.0, 1)


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, -(2**53) - 1, 2**70])
def test_integers_that_no_float_is(number: int) -> None:
    functions: list[Callable[[int], int]] = [lambda n: n + number, lambda n: n - number, lambda n: number]
    for f in functions:
        compiled = wengert.compile(f, backend="numpy")
        calls = [0, 1, 2, 3, 4, number, number - 1, number + 1, 5]
        found: list[int] = []
        warned(lambda compiled=compiled, calls=calls, found=found: found.extend(map(compiled, calls)))  # type: ignore[misc]
        assert found == [f(n) for n in calls]
        assert {*map(type, found)} == {int}
