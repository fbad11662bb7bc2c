"""`prepare` does nothing to what it is given, and nothing twice to anything else."""

from __future__ import annotations

import functools
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from wengert import Value  # noqa: E402
from wengert.compiler.arguments.copies import copied  # noqa: E402

pytestmark = [
    pytest.mark.once,  # what is recorded does not depend on which engine runs
    pytest.mark.filterwarnings("ignore:.*runs uncompiled"),
]
Pair = namedtuple("Pair", "items rate")


@dataclass
class Settings:
    n: int = 0


class Row(list):
    """A list of a user's own."""


class Held:
    """An object without a dict."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


def grow(items: Any) -> None:
    items.append(1.0)


def count(thing: Any) -> None:
    thing.n += 1


def write(table: Any) -> None:
    table["n"] = table.get("n", 0.0) + 1.0


def fill(numbers: Any) -> None:
    numbers[0] += 1.0


def n_of(thing: Any) -> float:
    return thing.n


def first(items: Any) -> float:
    return items[0]


# How to make something, what changes it, and what is seen of the changes.
COPIED: dict[str, tuple[Callable[[], Any], Callable[[Any], None], Callable[[Any], Any]]] = {
    "a list": (lambda: [1.0], grow, len),
    "a dict": (dict, write, len),
    "an array": (lambda: np.ones(2), fill, first),
    "an array of Values": (lambda: np.array([Value(1.0)], object), fill, lambda x: x[0].data),
    "a list in a tuple": (lambda: ([1.0], 2.0), lambda x: grow(x[0]), lambda x: len(x[0])),
    "a list in a named tuple": (lambda: Pair([1.0], 2.0), lambda x: grow(x.items), lambda x: len(x.items)),
    "a dict in a list": (lambda: [{"n": 0.0}], lambda x: write(x[0]), lambda x: x[0]["n"]),
    "a list in lists": (lambda: [[[1.0]]], lambda x: grow(x[0][0]), lambda x: len(x[0][0])),
    "a list that is emptied": (lambda: [1.0], lambda x: x.pop(), len),
}
OBJECTS: dict[str, tuple[Callable[[], Any], Callable[[Any], None], Callable[[Any], Any]]] = {
    "an object": (lambda: SimpleNamespace(n=0), count, n_of),
    "a dataclass": (Settings, count, n_of),
    "slots": (Held, count, n_of),
    "a list of an object": (lambda: SimpleNamespace(n=[]), lambda x: grow(x.n), lambda x: len(x.n)),
    "an object in a tuple": (lambda: (Settings(), 1.0), lambda x: count(x[0]), lambda x: x[0].n),
    "a deque": (lambda: deque([0.0]), grow, len),
    "a set": (lambda: {0}, lambda x: x.add(len(x)), len),
    "a defaultdict": (lambda: defaultdict(float), write, lambda x: x["n"]),
    "an ordered dict": (lambda: OrderedDict(n=0.0), write, lambda x: x["n"]),
    "a counter": (Counter, write, lambda x: x["n"]),
    "a list of one's own": (lambda: Row([0.0]), fill, first),
    "a bytearray": (lambda: bytearray(1), lambda x: x.append(1), len),
    "a Value": (lambda: Value(0.0), lambda x: setattr(x, "data", x.data + 1.0), lambda x: x.data),
}


def tried(kind: str, change: Callable[[Any], None]) -> Any:
    """Prepare and call a function that changes its second argument; return what is seen before and after each."""
    make, _, seen = {**COPIED, **OBJECTS}[kind]
    w, thing = Value(0.5), make()

    def f(x: Any, thing: Any) -> Any:
        change(thing)
        return w * x

    before = seen(thing)
    compiled = wengert.compile(f)
    compiled.prepare(2.0, thing)
    prepared = seen(thing)
    assert compiled(2.0, thing).data == 1.0
    return before, prepared, seen(thing)


def plain(kind: str, change: Callable[[Any], None]) -> Any:
    make, _, seen = {**COPIED, **OBJECTS}[kind]
    thing = make()
    change(thing)
    return seen(thing)


@pytest.mark.parametrize("kind", COPIED)
def test_what_is_copied_stays_as_it_is(kind: str) -> None:
    change = COPIED[kind][1]
    before, prepared, called = tried(kind, change)
    assert prepared == before
    assert called == plain(kind, change)


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_is_not_copied_is_changed_once(kind: str) -> None:
    make, change, seen = OBJECTS[kind]
    before, prepared, called = tried(kind, change)
    assert prepared in (before, plain(kind, change))
    thing = make()
    for _ in range(1 + (prepared != before)):
        change(thing)
    assert called == seen(thing)


def test_globals_closures_and_defaults_are_changed_once() -> None:
    w, calls, log = Value(0.5), 0, []

    def f(x: Any, seen: Any = log) -> Any:
        nonlocal calls
        calls += 1
        seen.append(calls)
        return w * x

    compiled = wengert.compile(f)
    compiled.prepare(2.0)
    assert (calls, log) == (1, [1])
    for n in range(2, 8):
        assert compiled(2.0).data == 1.0
        assert calls == n
    assert "runs uncompiled" in compiled.report()


def test_a_cache_is_filled_and_the_function_prepared() -> None:
    """Nobody sees the cache of a function: it is filled, and then all is recorded."""
    w = Value(0.5)

    @functools.lru_cache
    def table(n: int) -> float:
        return n / 4.0

    def f(x: Any, n: int) -> Any:
        return w * x * table(3)

    compiled = wengert.compile(f)
    compiled.prepare(2.0, 1)
    assert "machine code runs" in compiled.report()
    assert compiled(2.0, 1).data == 0.75


def test_what_is_prepared_serves_the_argument_itself() -> None:
    """Also where objects are among the arguments, which are part of what is compiled."""
    w, thing = Value(0.5), Settings(3)
    compiled = wengert.compile(lambda x, s: w * x.items[0] * x.rate * s.n)
    given = Pair([1.0], 2.0)
    compiled.prepare(given, thing)
    assert "machine code runs" in compiled.report()
    assert compiled(given, thing).data == 3.0
    assert compiled.report().count("specialization ") == 1


def test_while_numpy_raises_errors_the_function_runs_once() -> None:
    compiled = wengert.compile(lambda x: np.exp(x) * 2.0)
    with np.errstate(all="raise"):
        compiled.prepare(1.0)
    assert "the function itself served 1 call while" in compiled.report()


def test_a_recording_that_is_dropped_is_not_recorded_again() -> None:
    """Another order of additions breaks a guard of its own example; other examples may be recorded yet."""
    dropped = 0
    for seed in range(12):
        numbers = np.random.default_rng(seed).random(100).tolist()
        limit = functools.reduce(lambda total, x: total + x, numbers)

        def f(xs: Any, limit: float = limit) -> Any:
            total = 0.0
            for x in xs:
                total = total + x
            return total * 2.0 if total <= limit else total * 3.0

        compiled = wengert.compile(f)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled.prepare(numbers)
        assert ["a recording of f is dropped" in str(each.message) for each in caught] == [True] * len(caught)
        assert len(caught) < 2
        assert "runs uncompiled" not in compiled.report()
        dropped += len(caught)
    assert dropped


def test_what_changes_at_each_run_is_left_to_the_calls() -> None:
    w, log = Value(0.5), []

    def f(x: Any) -> Any:
        log.append(x)
        return w * x

    compiled = wengert.compile(f)
    for _ in range(8):
        compiled.prepare(2.0)
    assert len(log) == 4


def test_no_call_is_counted_whose_result_is_infinite() -> None:
    w = Value(1e200)
    compiled = wengert.compile(lambda x: w * x, backend="numpy")
    compiled.prepare(1e200)
    assert "0 calls" in compiled.report()
    assert "fell back" not in compiled.report()


def test_copies() -> None:
    row, thing, w = [1.0, 2.0], Settings(), Value(1.0)
    array, twice = np.ones(2), (row, {"a": row})
    whole = [row, twice, Pair([w], thing), array, {"k": (array,)}, "text", None, (1.0, 2.0), {3}]
    whole.append(whole)
    made, copies = copied(whole)
    assert made is not whole
    assert made[-1] is made
    assert made[0] == row
    assert made[0] is not row
    assert made[1][0] is made[0]
    assert made[1][1]["a"] is made[0]
    assert type(made[2]) is Pair
    assert made[2].items == [w]
    assert made[2].items[0] is w
    assert made[2].items is not whole[2].items
    assert made[2].rate is thing
    assert made[3] is made[4]["k"][0]
    assert made[3] is not array
    assert made[5:7] == ["text", None]
    assert made[8] is whole[8]
    assert {id(made), id(made[0]), id(made[3]), id(made[4])} <= copies
    assert id(thing) not in copies
    assert copied(3.0) == (3.0, set())


@pytest.mark.parametrize("make", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}, lambda x: Pair(x, [])])
def test_copies_of_any_depth(make: Callable[[Any], Any]) -> None:
    bottom = [1.0]
    deep: Any = bottom
    for _ in range(5_000):
        deep = make(deep)
    made, copies = copied(deep)
    assert len(copies) >= 5_000
    for _ in range(5_000):
        made = next(iter(made.values())) if isinstance(made, dict) else made[0]
    assert made == bottom
    assert made is not bottom
