"""What a compiled function makes of its arguments: they are what they are without `compile`, and never others."""

from __future__ import annotations

import copy
import functools
import random
import threading
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

import wengert
from tests.compiler.checks import batch_of, by_type, entries, lifted, same
from tests.threads import together
from wengert import Value, nn
from wengert.errors import ArgumentError, DataError

np = pytest.importorskip("numpy")

W = Value(2.0)


# ------------------------------------------------------------------------------------- static arguments


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
    assert len(loss._server.entries) == 12


def test_static_names_an_argument() -> None:
    with pytest.raises(ArgumentError, match="k"):
        wengert.compile(lambda x: x, static=("k",))
    assert wengert.compile(lambda x, k: x, static="k").static == ("k",)


def test_static_arguments_that_are_equal_and_of_other_types() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x, k: by_type(w, x, k), static="k")
    for k in (1, True, 1.0, 1):
        same(loss(2.0, k), loss.function(2.0, k), [w])
    lifted(loss)


@dataclass(frozen=True)
class Config:
    """Equal to others of its size, whatever its weight."""

    size: int
    weight: Any = field(compare=False)


def test_static_objects_that_are_equal_are_not_the_same() -> None:
    loss = wengert.compile(lambda x, config: config.weight * x * config.size, static="config")
    configs = [Config(2, Value(3.0)), Config(2, Value(5.0))]
    for config in configs * 2:
        same(loss(1.5, config), config.weight * 3.0, [c.weight for c in configs])
    lifted(loss)


def test_static_tuples_are_told_apart_by_what_is_in_them() -> None:
    def kind(x: float, sizes: tuple[Any, ...]) -> Any:
        return W * x * (1.0 if sizes[1] is True else 2.0 if type(sizes[1]) is int else 3.0)

    loss = wengert.compile(kind, static="sizes")
    for sizes in ((1, True), (1, 1), (1, 1.0), (1, 1)):
        assert loss(1.0, tuple(sizes)).data == kind(1.0, sizes).data
    assert entries(loss) == 3
    lifted(loss)


@pytest.mark.parametrize("given", [[2.0], {"a": 1}, {2.0}, ([2.0],)], ids=repr)
def test_static_arguments_are_hashable(given: Any) -> None:
    loss = wengert.compile(lambda x, k: Value(2.0) * x, static="k")
    with pytest.raises(ArgumentError, match=r"static argument k .* hashable; pass a tuple"):
        loss(1.0, given)
    with pytest.raises(ArgumentError, match=r"static argument k .* hashable; pass a tuple"):
        loss.mean([1.0], given)


class Sizes(NamedTuple):
    """As a tuple."""

    width: int
    weight: Any


class Model:
    """Has a method, which is another object each time that it is read."""

    def __init__(self, weight: Value) -> None:
        self.weight = weight

    def factor(self) -> Value:
        return self.weight * 2


def test_static_arguments_that_are_made_anew_and_are_the_same() -> None:
    weight = Value(3.0)
    model = Model(weight)
    of_size = wengert.compile(lambda x, size: size.weight * x, static="size")
    of_method = wengert.compile(lambda x, factor: factor() * x, static="factor")
    for _ in range(3):
        same(of_size(2.0, Config(2, weight)), weight * 2.0, [weight])
        same(of_size(2.0, Sizes(2, weight)), weight * 2.0, [weight])
        same(of_method(2.0, model.factor), weight * 4.0, [weight])
    assert entries(of_size) == 2
    assert entries(of_method) == 1
    same(of_method(2.0, Model(Value(1.0)).factor), Value(4.0), [weight])


# ------------------------------------------------------------------------------------- numbers of NumPy


def test_integers_do_not_overflow() -> None:
    w = Value(1.0)
    for function in (lambda x: w * (x * x * x), lambda x: w * x**3, lambda x: x * x * x * w):
        loss = wengert.compile(function)
        for X in (np.array([1, 2, 3_000_000]), [1, 2, 3_000_000]):
            assert loss.map(X).tolist() == [1.0, 8.0, 2.7e19]
            assert loss.sum(X).data == 2.7e19
        assert loss(3_000_000).data == 2.7e19
        lifted(loss)
        assert loss(10**40).data == pytest.approx(1e120)


@pytest.mark.parametrize("given", [np.array([2**63 + 8, 4], np.uint64), [2**63 + 8, 4]], ids=["array", "list"])
def test_unsigned_integers_are_not_negative(given: Any) -> None:
    loss = wengert.compile(lambda x: Value(1.0) * x)
    assert loss.map(given).tolist() == [float(2**63 + 8), 4.0]


def test_an_index_beyond_all_bounds() -> None:
    rows = [Value(1.0), Value(2.0)]
    loss = wengert.compile(lambda i: rows[i] * 2.0)
    assert loss(1).data == 4.0
    for index in (10**30, -(10**30), 2**63):
        with pytest.raises(IndexError):
            loss(index)
    assert loss(-1).data == 4.0


# ------------------------------------------------------------------------------------- the arguments as they are


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


@pytest.mark.parametrize("static", [(), ("scale",)], ids=["argument", "static"])
def test_a_default_is_one_number_for_a_whole_batch(static: tuple[str, ...]) -> None:
    w = Value(0.7)

    def function(x: float, scale: float = 2.0) -> Any:
        return (w * x * scale) ** 2

    loss = wengert.compile(function, static=static)
    for _ in range(2):
        same(loss.mean([0.3, 0.4]), batch_of(function, [0.3, 0.4]), [w])
        passed: Any = 3.0 if static else [3.0, 3.0]
        same(loss.mean([0.3, 0.4], scale=passed), wengert.mean([function(x, 3.0) for x in (0.3, 0.4)]), [w])
    if not static:
        with pytest.raises(DataError, match=r"scale.*static"):
            loss.mean([0.3, 0.4], 2.0)
    lifted(loss)
    assert entries(loss) == 2


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
    ("args", "named"),
    [((), {}), ((1.0,), {}), ((1.0, 2.0, 3.0), {}), ((1.0, 2.0), {"z": 1.0}), ((1.0,), {"x": 2.0}), ((), {"y": 1.0})],
)
def test_too_few_and_too_many_arguments(args: Any, named: Any) -> None:
    """The function itself says so, in a batch too."""

    def function(x: float, y: float, *, k: float = 1.0) -> Any:
        return W * x * y * k

    loss = wengert.compile(function)
    with pytest.raises(TypeError) as want:
        function(*args, **named)
    rows: Any = [[x] * 2 for x in args]
    for _ in range(2):
        for call in (loss, loss.prepare, lambda *a, **n: wengert.compile(lambda s: loss(*a, **n) * s)(1.0)):
            with pytest.raises(TypeError) as got:
                call(*args, **named)
            assert str(got.value) == str(want.value)
        for how in (loss.map, loss.mean, loss.sum):
            with pytest.raises(TypeError) as got:
                how(*rows, **{name: [x, x] for name, x in named.items()})
            assert str(got.value) == str(want.value)
        loss(1.0, 2.0)
        loss.mean([1.0], [2.0])


def test_a_wrapper_that_takes_other_arguments_than_it_says() -> None:
    def function(x: float, scale: float) -> Any:
        return W * x * scale

    @functools.wraps(function)
    def scaled(x: float) -> Any:
        return function(x, 3.0)

    loss = wengert.compile(scaled)
    for _ in range(3):
        same(loss(2.0), scaled(2.0), [W])
        same(loss.mean([1.0, 2.0]), batch_of(scaled, [1.0, 2.0]), [W])
        assert loss.map([1.0, 2.0]).tolist() == [6.0, 12.0]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x: W * float(x[0].real + x[1].imag), np.array([1 + 2j, 3j])),
        (lambda x: W * len(x[1]), np.array(["a", "bcd"])),
        (lambda x: W * int((x[1] - x[0]) / np.timedelta64(1, "D")), np.array(["2020-01-01", "2020-01-03"], "M8[D]")),
        (lambda x: W * float(x["a"][1]), np.array([(1.0, 2), (3.0, 4)], [("a", float), ("b", int)])),
        (lambda x: W * float(abs(x)), np.array(1j)),
    ],
    ids=["complex", "str", "dates", "records", "one complex"],
)
def test_arrays_of_what_is_no_real_number_go_to_the_function(function: Any, given: Any) -> None:
    loss = wengert.compile(function)
    with pytest.warns(UserWarning, match=r"an argument is an array of \w+, and only real numbers are compiled"):
        same(loss(given), function(given), [W])
    for _ in range(3):
        same(loss(given), function(given), [W])
    with pytest.raises(TypeError) as want:
        function(None)
    with pytest.raises(TypeError) as got:
        loss(None)
    assert str(got.value) == str(want.value)


def test_arguments_of_any_number_beside_parameters() -> None:
    w = Value(0.7)
    of_several = wengert.compile(lambda *xs: w * xs[0] + xs[-1])
    loss = wengert.compile(lambda x, **options: w * x * sum(options.values(), 1.0))
    for _ in range(3):
        same(of_several(1.0, 2.0), w * 1.0 + 2.0, [w])
        same(of_several(1.5), w * 1.5 + 1.5, [w])
        same(loss(2.0), w * 2.0, [w])
        same(loss(1.0, scale=2.0), w * 3.0, [w])


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


def test_a_model_as_an_argument() -> None:
    models = [nn.MLP(2, [3, 1], rng=random.Random(n)) for n in range(2)]
    loss = wengert.compile(lambda model, x: model(x) ** 2)
    X = [[0.1, 0.2], [0.3, 0.4]]
    for model in models * 2:
        same(loss(model, X[0]), loss.function(model, X[0]), model.parameters())
        same(loss.mean(model, X), wengert.mean([loss.function(model, x) for x in X]), model.parameters())
    lifted(loss)


def test_whole_numbers_beside_others_may_choose() -> None:
    w = [Value(1.0), Value(2.0), Value(3.0)]
    for given in ([2, 0.5], (2, 0.5)):
        loss = wengert.compile(lambda x: w[x[0]] * x[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                same(loss(given), w[2] * 0.5, w)
    numbers = wengert.compile(lambda x: w[0] * x[0] + w[1] * x[1])
    for both in ([1, 0.5], [0.5, 1], [0.25, 0.5]):
        same(numbers(both), w[0] * both[0] + w[1] * both[1], w)
    assert entries(numbers) <= 2  # floats alone may have a signature of their own
    lifted(numbers)


@pytest.mark.parametrize(
    "given",
    [((1.0, 2.0), (3.0, 4.0)), [(1.0, 2.0)], ([1.0], [2.0]), (((1.0,),),), [np.array([1.0, 2.0])] * 2],
    ids=["tuples", "tuples in a list", "lists in a tuple", "deep", "arrays in a list"],
)
def test_lists_and_tuples_within_each_other(given: Any) -> None:
    w, kinds = Value(2.0), (type(given), type(given[0]))

    @wengert.compile
    def loss(x: Any) -> Any:
        kept = (type(x), type(x[0])) == kinds
        while isinstance(x, (list, tuple)) or getattr(x, "ndim", 0):
            x = x[0]
        return w * x * (1.0 if kept else 7.0)

    for _ in range(2):
        same(loss(given), w * 1.0, [w])
        same(loss.mean([given, given]), w * 1.0, [w])
    lifted(loss)


def test_a_function_that_is_not_compiled_gets_what_it_is_given() -> None:
    w, seen = Value(2.0), []

    @wengert.compile
    def loss(x: Any) -> Any:
        seen.append(x)
        return w * x[0]

    given = [np.float32(2.0), 1]
    with pytest.warns(UserWarning, match="changes seen"):
        [loss(given) for _ in range(4)]
    for _ in range(2):
        same(loss(given), w * 2.0, [w])
        assert seen[-1] is given
    assert len(seen) == 6


def test_arguments_by_place_and_by_name() -> None:
    w = Value(2.0)

    def function(x: float, /, y: float = 1.0, *, k: float = 3.0) -> Any:
        return w * x * y * k

    loss = wengert.compile(function)
    for args, named in [((2.0,), {}), ((2.0, 4.0), {}), ((2.0,), {"k": 1.0}), ((2.0,), {"y": 5.0})]:
        same(loss(*args, **named), function(*args, **named), [w])
    for call in (lambda: loss(1.0, 2.0, 3.0), lambda: loss(x=1.0), lambda: loss.mean([1.0], [2.0], [3.0])):
        with pytest.raises(TypeError):
            call()
    static = wengert.compile(function, static=("y", "k"))
    same(static.mean([1.0, 2.0], k=2.0), w * 3.0, [w])
    lifted(loss)


def test_an_uncompiled_function_runs_in_several_threads_at_once() -> None:
    w, both, waiting, seen = Value(1.0), threading.Barrier(2), threading.Event(), []

    @wengert.compile
    def loss(x: float) -> Any:
        if waiting.is_set():
            both.wait(10)
        seen.append(x)
        return w * x

    for call in (lambda: loss(1.0), lambda: loss.map([1.0])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(4):
                call()
    assert loss.report().count("uncompiled") == 2
    for call in (lambda: loss(1.0), lambda: loss.map([1.0])):
        waiting.set()
        together(call, call)
        waiting.clear()


# ------------------------------------------------------------------------------------- functions in functions


class Scaled(nn.Module):
    """A module with a compiled method, and a compiled function that refers to it."""

    def __init__(self) -> None:
        self.w = Value(3.0)
        self.bound = wengert.compile(self.plain)

    def plain(self, x: float) -> Any:
        return self.w * x

    @wengert.compile(static="mode")
    def loss(self, x: float, mode: str = "one") -> Any:
        return self.w * x * (1.0 if mode == "one" else 2.0)


def test_a_batch_in_another_function_has_static_arguments_too() -> None:
    scaled, X = Scaled(), np.array([1.0, 2.0])
    for named in ({}, {"mode": "two"}):
        outer = wengert.compile(lambda s: scaled.loss.mean(X, **named) * s)  # noqa: B023
        same(outer(2.0), scaled.loss.mean(X, **named) * 2.0, [scaled.w])
        lifted(outer)
    each = wengert.compile(lambda s: wengert.sum([scaled.loss.sum([s]), scaled.loss.sum([2.0 * s])]))
    same(each(2.0), scaled.w * 6.0, [scaled.w])
    for wrong in ([], [1.0, 2.0]):
        with pytest.raises(DataError):
            wengert.compile(lambda s: scaled.loss.mean((X[:1], wrong)) * s)(1.0)  # noqa: B023


def test_copies_of_compiled_functions() -> None:
    scaled = Scaled()
    twin = copy.deepcopy(scaled)
    twin.w.data = 10.0
    assert (scaled.bound(2.0).data, twin.bound(2.0).data) == (6.0, 20.0)
    assert (scaled.loss(2.0).data, twin.loss(2.0).data) == (6.0, 20.0)
    for made in (copy.copy(scaled.loss), copy.deepcopy(scaled.loss), copy.copy(scaled.bound)):
        assert made(2.0).data == 6.0
    alone = wengert.compile(lambda x: W * x)
    assert copy.deepcopy(alone)(2.0).data == alone(2.0).data
    assert copy.deepcopy(alone).function is alone.function


def test_a_batch_that_has_lost_an_example_says_so() -> None:
    rows = [1.0, 2.0, 3.0]
    compiled = wengert.compile(lambda x: Value(2.0) * x)
    arguments = compiled._server.specializer.read([rows], {}, True)
    assert arguments.prepared(compiled.function, 2)().data == 6.0
    rows.pop()
    with pytest.raises(wengert.errors.DataError, match="has changed during the call: it has no example 2 any more"):
        arguments.prepared(compiled.function, 2)
