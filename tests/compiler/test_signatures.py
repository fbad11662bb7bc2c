"""Signatures: how many a compiled function knows, which of them go, and that nothing of those stays."""

from __future__ import annotations

import functools
import gc
import random
import re
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import wengert
from tests.compiler.checks import same, warned
from wengert import Value, nn
from wengert.compiler import policy

np = pytest.importorskip("numpy")
pytest.importorskip("llvmlite")

from wengert.compiler.code.keys import key_of, objects_in  # noqa: E402

W, B = Value(0.7), Value(-0.2)


@pytest.fixture
def programs_serve() -> None:
    """Here the counts decide."""


def test_the_least_recently_used_signature_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SIGNATURES", 3)
    compiled = wengert.compile(lambda xs: W * xs[0] + B)
    for length in (1, 2, 3):
        compiled([1.0] * length)
    for _ in range(20):
        compiled([1.0])
    compiled([1.0] * 4)  # the second makes room
    assert sorted(form.shapes["xs"].shape[0] for form in compiled._server.entries) == [1, 3, 4]
    assert compiled([2.0, 0.0]).data == (W * 2.0 + B).data


def test_signatures_that_keep_coming_back_run_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SIGNATURES", 3)
    compiled = wengert.compile(lambda xs: W * xs[0] + B)

    def calls() -> None:
        for n in range(200):
            assert compiled([float(n)] * (1 + n % 5)).data == pytest.approx((W * n + B).data)

    (said,) = warned(calls)
    assert "runs uncompiled: it is called with more than 3 kinds of arguments in turn" in said
    assert len(compiled._server.entries) == 3


@pytest.fixture(scope="module", autouse=True)
def a_young_heap() -> Iterator[None]:
    """The collector looks at what a test makes, and not at all that others have imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Weighted:
    """A model with a compiled method."""

    def __init__(self, weight: float) -> None:
        self.weight = Value(weight)
        self.offsets = [Value(1.0), Value(2.0)]

    def scaled(self, x: float) -> Value:
        return self.weight * x

    @property
    def offset(self) -> Value:
        return self.offsets[0] + self.offsets[1]

    def plain(self, x: float) -> Value:
        return (self.scaled(x) + self.offset).tanh()


@pytest.fixture
def method() -> Any:
    """Its method, compiled, with nothing recorded."""
    return wengert.compile(Weighted.plain)


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What functions return in the runs that are recorded, run by run."""
    from wengert.compiler.specialize import Specializer

    made: list[Any] = []
    record = Specializer.record

    def noted(self: Any, entry: Any, arguments: Any, example: Any, result: Any, *rest: Any) -> bool:
        made.append(result)
        return record(self, entry, arguments, example, result, *rest)

    monkeypatch.setattr(Specializer, "record", noted)
    return made


def compare(method: Any, model: Weighted, x: float) -> None:
    """A call gives what the method itself gives, and so do its gradients."""
    same(method(model, x), model.plain(x), [model.weight, *model.offsets])


def test_many_models_in_turn_are_recorded_once_each(
    method: Any, recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "FREE", 100 * policy.FREE)
    models = [Weighted(0.1 * n) for n in range(40)]
    for _ in range(5):
        for n, model in enumerate(models):
            compare(method, model, 0.1 * n - 2.0)
    assert len(recordings) == len(method._server.entries) == 40
    assert all(entry.specializations for entry in method._server.entries.values())


def test_more_models_in_turn_than_there_is_room_for(
    method: Any, recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "SIGNATURES", 12)
    monkeypatch.setattr(policy, "FREE", 100 * policy.FREE)
    models = [Weighted(0.1 * n) for n in range(13)]

    def calls() -> None:
        for _ in range(20):
            for n, model in enumerate(models):
                compare(method, model, 0.1 * n - 1.0)

    (said,) = warned(calls)
    assert "plain runs uncompiled: it is called with more than 12 kinds of arguments in turn" in said
    assert len(recordings) == 13 + policy.RETURNS - 1
    assert sum(bool(entry.specializations) for entry in method._server.entries.values()) == 12


def test_entries_of_objects_that_are_gone_go_first(
    method: Any, recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "SIGNATURES", 3)
    oldest, passing, other = Weighted(0.1), Weighted(0.2), Weighted(0.3)
    for model in (oldest, passing, other):
        for _ in range(6):
            compare(method, model, 0.5)
    del passing, model
    gc.collect()
    for model in (Weighted(0.4), oldest, other):
        compare(method, model, 0.5)
    assert len(recordings) == 4
    assert len(method._server.entries) == 3
    assert not method._server.cache.evicted


def made_as(kind: str, n: int) -> tuple[Any, Any]:
    """A thing that is passed, and what it weighs."""
    weight = Value(0.5 + n)
    if kind == "a model":
        model = Weighted(0.0)
        model.weight = weight
        return model, weight
    if kind == "a function":
        return (lambda x: weight * x), weight
    if kind == "a method":
        return made_as("a model", n)[0].scaled, weight
    if kind == "a partial":
        return functools.partial(lambda w, x: w * x, weight), weight
    layers = nn.MLP(1, [2, 1], rng=random.Random(n))
    return layers, layers.parameters()[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["a model", "a function", "a method", "a partial", "a network"])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_what_is_passed_is_not_kept_alive(kind: str, count: int) -> None:
    """Whether its run is only recorded, or compiled and compared."""

    def use(thing: Any, x: float) -> Any:
        if isinstance(thing, Weighted):
            return thing.plain(x)
        return thing([x]) * 2.0 if isinstance(thing, nn.MLP) else thing(x) * 2.0

    compiled = wengert.compile(use, static="thing")
    gone = []
    for n in range(4):
        thing, weight = made_as(kind, n)
        for k in range(count):
            same(compiled(thing, 0.5 - k), use(thing, 0.5 - k), [weight])
        gone.append(weakref.ref(thing.__self__ if kind == "a method" else thing))
        entry = weakref.ref(next(reversed(compiled._server.entries)))
        del thing, weight
        gc.collect()
        assert gone[-1]() is None
    compiled(made_as(kind, 9)[0], 0.5)
    assert len(compiled._server.entries) == 1
    gc.collect()
    assert entry() is None


def test_an_identity_that_another_thing_gets() -> None:
    thing, other = Weighted(1.0), Weighted(2.0)
    key = key_of((thing, "a"))
    assert key == key_of((thing, "a"))
    assert hash(key) == hash(key_of((thing, "a")))
    del thing
    gc.collect()
    later = key_of((other, "a"))
    later[1][0].number = key[1][0].number  # as Python may have it
    assert hash(later) == hash(key)
    assert later != key
    assert key[1][0] == key[1][0]
    assert [x.is_alive() for x in objects_in((key, later))] == [False, True]


def test_what_cannot_be_referred_to_weakly_is_kept() -> None:
    class Slotted:
        __slots__ = ("weight",)

        def __init__(self, weight: float) -> None:
            self.weight = Value(weight)

    compiled = wengert.compile(lambda thing, x: thing.weight * x)
    for n in range(6):
        thing = Slotted(float(n))
        for _ in range(6):
            assert compiled(thing, 2.0).data == 2.0 * n
    assert len(compiled._server.entries) == 6


def test_an_entry_that_goes_takes_what_was_compiled_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SIGNATURES", 3)
    compiled = wengert.compile(lambda xs: W * xs[0] + B)
    gone = []
    for length in range(1, 9):
        for _ in range(4):
            compiled([1.0] * length)
        entry = compiled._server.last
        gone.append((weakref.ref(entry.signature), weakref.ref(entry.specializations[0])))
    del entry
    gc.collect()
    assert [(a() is None, b() is None) for a, b in gone] == [(True, True)] * 5 + [(False, False)] * 3
    assert len(compiled._server.specializer.read.__self__.signatures) == 3


def test_things_made_for_a_call_are_not_recorded_for_ever(
    recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lambda that is made at each call is another thing each time: after many such, one is recorded when it comes
    again.
    """
    monkeypatch.setattr(policy, "SIGNATURES", 20)
    compiled = wengert.compile(lambda f, x: f(x) * 2.0)
    for n in range(200):
        assert compiled(lambda x, n=n: W * x + n, 0.5).data == (W * 0.5 + n).data * 2.0
        if not n % 10:
            gc.collect()
    assert 20 <= len(recordings) <= 40
    before = len(recordings)
    served = r"<lambda>: the function itself served 180 calls whose kind of arguments came for the first time, .*"
    first, second = compiled.report().splitlines()
    assert re.fullmatch(served, first)
    assert second.startswith("<lambda>: 200 calls of f, with a new function: each is recorded anew")

    def stays(x: float) -> Value:
        return W * x

    for n in range(6):
        assert compiled(stays, 0.5 * n).data == W.data * n
    assert len(recordings) == before + 1
    (entry,) = compiled._server.entries.values()
    assert entry.specializations


def test_what_is_refused_for_its_arguments_says_nothing_of_others() -> None:
    compiled = wengert.compile(lambda x: W * len(x) if isinstance(x[0], str) else W * x[0])

    def strings() -> None:
        for n in range(1, policy.SPECIALIZATIONS + 4):
            assert compiled(np.array(["a"] * n)).data == W.data * n

    warned(strings)
    for _ in range(6):
        assert compiled([2.0]).data == (W * 2.0).data
    assert compiled._server.last.specializations


def test_what_is_refused_for_all_arguments_alike_is_read_no_more() -> None:
    compiled = wengert.compile(lambda x: W * (random.random() * 0.0 + len(x)))

    def calls() -> None:
        for n in range(1, policy.SPECIALIZATIONS + 4):
            assert compiled([1.0] * n).data == W.data * n

    assert len(warned(calls)) == 1
    assert compiled.is_eager
    assert len(compiled._server.entries) == policy.SPECIALIZATIONS
