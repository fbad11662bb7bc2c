"""What a compiled function gives: Values among Values, with the gradients of eager code; lists; constants."""

from __future__ import annotations

import math
import random
import threading
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from itertools import accumulate, product
from typing import Any, NamedTuple

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
backends = pytest.importorskip("wengert.compiler.backends")
NumPyKernel: Any = pytest.importorskip("wengert.compiler.backends.numpy").NumPyKernel

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
    for n in range(40):
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


# ------------------------------------------------------------------------------------- any shape


class Pose(NamedTuple):
    place: Any
    turn: Any


P = [Value(0.7, label="w"), Value(-0.4, label="v"), Value(1.2, label="u")]
OF_NUMBERS = namedtuple("OF_NUMBERS", "low high")


def shared(x: Any) -> Any:
    row, value = [P[0] * x, P[1]], P[2] * x
    return {"rows": [row, row], "value": value, "again": (value, [value]), "other": [P[0] * x, P[1]]}


def by_branch(x: Any) -> Any:
    return {"low": P[0] * x} if x < 1.0 else [P[1] * x, {"high": P[2].exp()}]


SHAPES: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: [P[0] * x, P[1] + x, (P[2] * x).tanh()],
    "one": lambda x: [P[0] * x],
    "tuple": lambda x: (P[0] * x, P[0] * P[1]),
    "nested": lambda x: [[P[0] * x, P[1]], [x, P[2] * x]],
    "ragged": lambda x: [P[0] * x, [P[1] * x, (P[2], [x])], []],
    "dict": lambda x: {"a": P[0] * x, 3: {"b": [P[1] * x], None: x}, ("k", 1.5): P[2]},
    "named": lambda x: Pose([P[0] * x, P[1]], {"z": Pose(P[2].exp(), x)}),
    "named of numbers": lambda x: OF_NUMBERS(x - 1.0, x + 1.0),
    "array": lambda x: np.array([[P[0] * x, P[1]], [P[2] + x, P[0]]]),
    "array of both": lambda x: np.array([P[0] * x, x, 2], dtype=object),
    "arrays of numbers": lambda x: {"x": np.array([x, x * x]), "n": np.array([[True], [False]]), "w": P[0] * x},
    "numbers": lambda x: [x * 2, 3, True, x > 0.5, int(x * 3), [round(x), -0.0]],
    "not numbers": lambda x: [P[0] * x, None, "text", b"bytes", {"empty": (), "list": []}],
    "shared": shared,
    "branches": by_branch,
    "constants": lambda x: [1.0, 2, {"w": P[1]}],
    "many": lambda x: [[wengert.sin(P[0] * x * (i + j)) + P[1] for i in range(9)] for j in range(7)],
    "loop": lambda x: list(accumulate(range(30), lambda y, n: y + 0.1 * (P[0] * x - y * P[1]), initial=P[2] * x)),
}


def leaves_of(x: Any) -> list[Any]:
    """The Values and numbers in a result."""
    if isinstance(x, np.ndarray):
        return list(x.reshape(-1).tolist())
    if isinstance(x, (list, tuple, dict)):
        return [leaf for item in (x.values() if isinstance(x, dict) else x) for leaf in leaves_of(item)]
    return [x] if isinstance(x, (Value, float, int)) else []


def shape_of(x: Any, known: dict[int, int], keep: list[Any]) -> Any:
    """What a result is made of but for its numbers; which Values, lists, dicts and arrays in it are one, by a number;
    which Values were there before, by their labels.
    """
    keep.append(x)  # so that no identity is used again
    number = known.setdefault(id(x), len(known)) if isinstance(x, (Value, list, dict, np.ndarray)) else None
    if isinstance(x, Value):
        return "Value", number, x.label
    if isinstance(x, np.ndarray):
        return number, x.dtype, x.shape, [shape_of(item, known, keep) for item in x.reshape(-1).tolist()]
    if isinstance(x, (list, tuple, dict)):
        items = [shape_of(item, known, keep) for item in (x.values() if isinstance(x, dict) else x)]
        return type(x), number, [*x] if isinstance(x, dict) else (), items
    return (type(x),) if isinstance(x, (float, int)) else x


def alike(got: Any, want: Any, parameters: Sequence[Value], rng: random.Random) -> None:
    """Two results are made alike, of the same numbers, and a gradient through some of their Values is the same."""
    assert shape_of(got, {}, []) == shape_of(want, {}, [])
    pair = leaves_of(got), leaves_of(want)
    numbers = [[float(number_of(x)) for x in leaves] for leaves in pair]
    assert difference(*numbers) < CLOSE
    weights = [rng.uniform(-1.0, 1.0) * (rng.random() < 0.7) for _ in pair[0]]
    slopes = []
    for leaves in pair:
        chosen = [(x, weight) for x, weight in zip(leaves, weights, strict=True) if isinstance(x, Value) and weight]
        loss = sum([x * weight for x, weight in chosen]) + math.prod([x for x, _ in chosen[:2]])
        slopes.append(gradients(loss * P[0], parameters))
    assert difference(*slopes) < CLOSE


BY_XLA = ("one", "nested", "dict", "arrays of numbers", "shared", "loop")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "backend"),
    [*product(SHAPES, ["numpy", "native"]), *product(BY_XLA, ["xla"])],
)
def test_results_of_any_shape(name: str, backend: str) -> None:
    f, rng = SHAPES[name], random.Random(7)
    compiled = wengert.compile(f, backend=backend)
    for n in range(12):
        x = rng.uniform(0.1, 2.0)
        P[0].data = 0.5 + 0.1 * n
        alike(compiled(x), f(x), P, rng)
        with wengert.no_grad():
            alike(compiled(x), f(x), P, rng)
    lifted(compiled)
    assert specializations(compiled) == [2 if name == "branches" else 1]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_random_shapes(backend: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        f = random_function(rng)
        compiled = wengert.compile(f, backend=backend)
        for n in range(6):
            x, v = rng.uniform(-1.0, 1.0), [Value(rng.uniform(0.3, 1.2), label=f"v{n}") for n in range(2)]
            args = (x, v) if seed % 3 else (x, [y.data for y in v])
            alike(compiled(*args), f(*args), [*P, *v], random.Random(n))
        lifted(compiled)


def random_function(rng: random.Random) -> Callable[..., Any]:
    """A function of a number and a list of two, which gives Values, numbers and other things in any shape."""

    def number(depth: int) -> Callable[..., Any]:
        how = rng.randrange(4 if depth == 0 else 8)
        if how < 4:
            n, constant = rng.randrange(3), rng.choice([2.0, 0.5, 3, True])
            return [lambda x, v: P[n], lambda x, v: x, lambda x, v: v[n % 2], lambda x, v: constant][how]
        a, b = number(depth - 1), number(depth - 1)
        return [
            lambda x, v: a(x, v) + b(x, v),
            lambda x, v: a(x, v) * b(x, v),
            lambda x, v: wengert.sin(a(x, v)),
            lambda x, v: wengert.exp(a(x, v) * 0.1) - b(x, v),
        ][how - 4]

    def shape(depth: int) -> Callable[..., Any]:
        how = rng.random()
        if depth == 0 or how < 0.35:
            made = number(rng.randrange(4))
            return lambda x, v, known: made(x, v)
        if how < 0.45:
            constant = rng.choice([None, "text", b"b", 3, 2.5])
            return lambda x, v, known: constant
        if how < 0.52:
            key = rng.randrange(3)
            return lambda x, v, known: known.setdefault(key, [P[0] * x, v[0] * v[1]])
        parts = [shape(depth - 1) for _ in range(rng.randrange(1, 4))]
        if how < 0.65:
            return lambda x, v, known: [part(x, v, known) for part in parts]
        if how < 0.75:
            return lambda x, v, known: tuple([part(x, v, known) for part in parts])
        if how < 0.85:
            return lambda x, v, known: {f"k{n}": part(x, v, known) for n, part in enumerate(parts)}
        if how < 0.92:
            return lambda x, v, known: Pose(parts[0](x, v, known), parts[-1](x, v, known))
        cells = [number(2) for _ in range(2 * len(parts))]
        return lambda x, v, known: np.array([cell(x, v) for cell in cells]).reshape(2, -1)

    top, parts = rng.randrange(3), [shape(2) for _ in range(rng.randrange(1, 4))]

    def function(x: Any, v: Any) -> Any:
        known: dict[int, Any] = {}
        made = [part(x, v, known) for part in parts] + [x]
        return made if top == 0 else tuple(made) if top == 1 else dict(enumerate(made))

    return function


def test_results_that_are_no_shape_come_back_as_they_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert wengert.compile(lambda x: None)(2.0) is None
        assert wengert.compile(lambda x: "text")(2.0) == "text"
        assert wengert.compile(lambda x: [])(2.0) == []
        assert wengert.compile(lambda x: {"a": {1, 2}})(2.0) == {"a": {1, 2}}


# ------------------------------------------------------------------------------------- gradients of several results


class Counted(NumPyKernel):  # type: ignore[misc]
    """A kernel that counts its sweeps."""

    sweeps = 0

    def forward_backward(self, *given: Any) -> Any:
        Counted.sweeps += 1
        return super().forward_backward(*given)


def test_one_sweep_for_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = backends.BACKENDS["numpy"]._replace(kernel=lambda: Counted)
    monkeypatch.setitem(backends.BACKENDS, "numpy", counted)
    f = wengert.compile(SHAPES["many"], backend="numpy", checks="first")
    for _ in range(6):
        rows = f(0.7)

    def swept(call: Callable[[], Any]) -> int:
        before = Counted.sweeps
        call()
        return Counted.sweeps - before

    assert swept(lambda: f(0.7)) == 1  # which shows that no derivative is infinite
    assert swept(lambda: wengert.sum([x * x for row in rows for x in row]).backward()) == 1
    assert swept(lambda: (rows[0][1] * rows[3][2] + rows[0][1].exp()).backward()) == 1
    assert swept(lambda: [x.backward() for x in rows[0]]) == 9
    assert swept(lambda: wengert.grad(lambda v: wengert.sum(rows[1]) * v)(2.0)) == 0
    with wengert.no_grad():
        assert swept(lambda: f(0.7)) == 0
    g = wengert.compile(lambda xs: [xs[0] * xs[1], wengert.sin(xs[1])], backend="numpy", checks="first")
    for _ in range(6):
        wengert.grad(lambda xs: math.prod(g(xs)))([0.3, 0.4])
    assert swept(lambda: wengert.grad(lambda xs: math.prod(g(xs)) + g(xs)[0])([0.3, 0.4])) == 4
    assert swept(lambda: g([0.3, 0.4])) == 0


@pytest.mark.parametrize("name", ["one", "nested", "named"])
def test_a_wrong_derivative_of_several_results_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = NumPyKernel.forward_backward

    def wrong(self: Any, arrays: Any, seed: Any, buffers: Any) -> Any:
        made = both(self, arrays, seed, buffers)
        buffers.grads *= 1.0 + 1e-6
        return made

    monkeypatch.setattr(NumPyKernel, "forward_backward", wrong)
    compiled = wengert.compile(SHAPES[name], backend="numpy")
    (said,) = warned(*[lambda: alike(compiled(0.5), SHAPES[name](0.5), P, random.Random(1))] * 4)
    assert "runs uncompiled: the derivative of the array program is" in said, "on the example that was recorded"


@pytest.mark.parametrize("backend", ["numpy", "native", "xla"])
def test_a_cotangent_that_did_not_come_is_no_zero(backend: str) -> None:
    """Where a derivative is infinite, the function itself serves: 0 times infinity is nan."""
    pairs: list[Callable[[Any], Any]] = [lambda x: [x.log(), x * 1.0], lambda x: [x.sqrt(), x * 1.0]]
    for f in pairs:
        compiled = wengert.compile(f, backend=backend)
        for number in (1.0, 0.5, 2.0, 0.7, 0.9, 0.0, 0.0):
            x = Value(number)
            result = compiled(x)
            result[1].backward()
            assert x.grad == 1.0
        assert "2 calls fell back to the function" in compiled.report()
        (result[0] + result[1]).backward()
        assert math.isinf(x.grad)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_call_owns_what_it_was_called_with(backend: str) -> None:
    w = [Value(0.3), Value(-0.7)]

    def f(xs: Any, k: Any) -> Any:
        return [w[0] * xs[0] + w[1] * xs[1], (w[0] * k).exp() * xs[1], table[k % 3] * w[1]]

    table = [0.5, 1.5, 2.5]
    compiled = wengert.compile(f, backend=backend)
    for kind in (list, np.array):
        for _ in range(6):
            compiled(kind([1.0, 2.0]), 2)
        xs = kind([1.0, 2.0])
        want = gradients(wengert.sum([y * y for y in f([1.0, 2.0], 2)]), w)
        result = compiled(xs, 2)
        xs[0], xs[1], table[2] = 100.0, 200.0, 300.0
        before = [v.data for v in w]
        w[0].data, w[1].data = 9.0, 8.0
        compiled(kind([5.0, 6.0]), 2)
        loss = wengert.sum([y * y for y in result])
        for v, number in zip(w, before, strict=True):
            v.data = number
        assert difference(gradients(loss, w), want) < CLOSE
        table[2] = 2.5


def test_the_values_that_were_there_are_given_back() -> None:
    x, y = Value(0.3), Value(0.5)
    compiled = wengert.compile(lambda a, b: [a, P[0], b[0] * P[1], {"b": b[1]}, a])
    for _ in range(6):
        result = compiled(x, [x, y])
        assert result[0] is x is result[4]
        assert result[1] is P[0]
        assert result[3]["b"] is y
    lifted(compiled)
    twice = wengert.compile(lambda a, b: [a, b, a * b])
    for _ in range(6):
        result = twice(x, x)
        assert result[0] is result[1] is x
    lifted(twice)
    assert gradients(result[2], [x]).tolist() == [0.6]
    alone = wengert.compile(lambda a, b: b if isinstance(a, Value) else P[0])
    for number in range(6):
        assert alone(x, y) is y
        assert alone(0.1 * number, y) is P[0]
    lifted(alone)


HELD, ARRAY, TABLE = [P[0], P[1]], np.array([1.0, 2.0]), {"row": [1.0]}


def test_results_that_integers_choose() -> None:
    table = [Value(0.3 * n, label="") for n in range(5)]

    def f(n: int, m: int, x: float) -> Any:
        return {"rows": [table[n], table[m] * x], "both": (table[m], table[n]), "n": n}

    compiled, rng = wengert.compile(f), random.Random(3)
    for n, m in [(1, 1), (1, 2), (0, 4), (3, 3), (4, 0), (2, 1), (0, 0), (3, 2)]:
        got, want = compiled(n, m, 0.5), f(n, m, 0.5)
        assert difference([number_of(x) for x in leaves_of(got)], [number_of(x) for x in leaves_of(want)]) < CLOSE
        weights = [rng.random() for _ in range(4)]
        slopes = [
            gradients(sum([x * weight for x, weight in zip(leaves_of(made), weights, strict=False)]), table)
            for made in (got, want)
        ]
        assert difference(*slopes) < CLOSE
    lifted(compiled)
    assert specializations(compiled) == [1]


FROM_OUTSIDE: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], Any]] = {  # where in the result what is
    "a list": (lambda x, xs: HELD, lambda result: result, HELD),
    "in a dict": (lambda x, xs: {"y": P[0] * x, "held": HELD}, lambda result: result["held"], HELD),
    "an argument": (lambda x, xs: [P[0] * x, xs], lambda result: result[1], None),
    "an array": (lambda x, xs: (x, np.asarray(ARRAY)), lambda result: result[1], ARRAY),
    "a part of one": (lambda x, xs: ARRAY[1:].reshape(1, 1), lambda result: result.base, ARRAY),
    "an item": (lambda x, xs: TABLE["row"], lambda result: result, TABLE["row"]),
}


@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_what_is_given_back_from_outside_stays_that(name: str) -> None:
    """A list that was there before may be changed by who gets it: the function itself gives it."""
    function, part, outside = FROM_OUTSIDE[name]
    compiled, xs, found = wengert.compile(function), [1.0, 2.0], list[Any]()
    said = warned(*[lambda: found.append(part(compiled(2.0, xs)))] * 6)
    assert all(each is (xs if outside is None else outside) for each in found)
    assert said == [
        "<lambda> runs uncompiled: it returns a list, dict or array that was there before the call, which may be "
        "changed: return a copy"
    ]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_derivatives_through_several_results(backend: str) -> None:
    def f(p: Any) -> Any:
        return {"a": p[0] * p[1] * P[0], "b": [wengert.exp(p[0]), p[1] ** 3]}

    compiled = wengert.compile(f, backend=backend)
    points = [[0.1 * n, 0.5 - 0.1 * n] for n in range(6)]
    for p in points:
        compiled(p)
        compiled([Value(number) for number in p])
        losses = [lambda q, g=g: g(q)["a"] * g(q)["b"][0] + g(q)["b"][1] for g in (compiled, f)]
        got, want = [
            [
                wengert.grad(loss)(p),
                wengert.hessian(loss)(p),
                wengert.hvp(loss)(p, [1.0, -2.0]),
                wengert.jacobian(g)(p)["b"],
                wengert.jvp(g, (p,), ([1.0, 2.0],))[1]["a"],
                wengert.vjp(g, p)[1]({"a": 1.0, "b": [2.0, 3.0]})[0],
            ]
            for loss, g in zip(losses, (compiled, f), strict=True)
        ]
        assert difference(*[[number_of(x) for x in leaves_of(each)] for each in (got, want)]) < CLOSE
    lifted(compiled)


@pytest.mark.parametrize("make", [wengert.jacobian, wengert.grad, wengert.hessian, wengert.value_and_grad])
@pytest.mark.parametrize("kind", [list, np.array])
def test_compiled_derivatives_are_served(make: Callable[..., Any], kind: Callable[..., Any]) -> None:
    def f(p: Any) -> Any:
        y = wengert.sin(p[0] * p[1]) + p[1] * p[1] * p[2]
        return [y, p[2] * y] if make is wengert.jacobian else y

    compiled = wengert.compile(make(f), backend="native")
    for n in range(8):
        p = kind([0.1 * n, 0.3, 1.0 - 0.1 * n])
        got, want = compiled(p), make(f)(p)
        assert shape_of(got, {}, []) == shape_of(want, {}, [])
        assert difference(leaves_of(got), leaves_of(want)) < CLOSE
    lifted(compiled)


@pytest.mark.torch
def test_gradients_of_several_results_against_torch() -> None:
    import torch

    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(4, 3))
    weights = [[Value(x) for x in row] for row in matrix]

    def layer(x: Any) -> Any:
        hidden = [wengert.dot(row, x).tanh() for row in weights]
        return {"out": wengert.softmax(hidden), "norm": wengert.sqrt(sum([h * h for h in hidden])), "n": len(hidden)}

    compiled = wengert.compile(layer)
    for _ in range(6):
        x = rng.normal(size=3)
        made = compiled(x.tolist())
        (made["out"][1] * made["norm"] + made["out"][3].exp()).backward()
        t = torch.tensor(matrix, requires_grad=True)
        h = torch.tanh(t @ torch.tensor(x))
        out = torch.softmax(h, 0)
        (out[1] * h.norm() + out[3].exp()).backward()
        assert difference([[v.grad for v in row] for row in weights], t.grad.numpy()) < CLOSE
        for row in weights:
            for v in row:
                v.grad = 0.0
    lifted(compiled)


def test_threads_share_a_function_of_several_results() -> None:
    def f(x: Any, y: Any) -> Any:
        return [(x * n + y).sin() * y for n in range(6)]

    compiled = wengert.compile(f)
    for _ in range(6):
        compiled(Value(0.1), Value(0.2))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(300):
            numbers = rng.random(), rng.random()
            slopes = []
            for g in (compiled, f):
                x, y = map(Value, numbers)
                results = g(x, y)
                (results[seed % 6] * results[2] + results[5]).backward()
                slopes.append((x.grad, y.grad))
            if difference(*slopes) > CLOSE:
                wrong.append(slopes)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    lifted(compiled)


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


@pytest.mark.sampled(16)
@pytest.mark.parametrize("backend", ["numpy", "native", "xla"])
@pytest.mark.parametrize("name", KINDS)
def test_a_number_stays_of_its_kind(name: str, backend: str) -> None:
    f, count = KINDS[name]
    compiled = wengert.compile(f, backend=backend)
    for x in NUMBERS * 2:
        got, want = compiled(x), f(x)
        assert type(got) is type(want)
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
