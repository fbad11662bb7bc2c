"""After the comparisons the faster way serves: the program, or the function itself; `report()` says which."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

import wengert
from tests.compiler.checks import batch_of, lifted, same, warned
from wengert import Value
from wengert.compiler import Compiled
from wengert.compiler.backends import preferred
from wengert.compiler.entry import Entry, Size

pytest.importorskip("numpy")

W = Value(0.5)


@pytest.fixture
def programs_serve() -> None:
    """Here they serve only where they are faster."""


def count_calls(compiled: Any, call: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the function itself runs in ten calls, in which one check may be due."""
    calls = 0
    function = compiled.function

    def counted(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return function(*args)

    with monkeypatch.context() as patch:
        patch.setattr(compiled._runtime, "function", counted)
        patch.setattr(compiled, "function", counted)
        for _ in range(10):
            call()
    return calls


def timed(compiled: Any, plain: float, program: float) -> None:
    """As if the function itself, and its program, had taken so long."""
    compiled.direct.clear()
    compiled._runtime.short.clear()
    for entry in compiled._runtime.entries.values():
        entry.trusted, entry.plain = 0, plain
        entry.engine = dict.fromkeys(entry.seconds, (9, plain))
        entry.seconds = dict.fromkeys(entry.seconds, program)


def checked(loss: Any, how: str) -> None:
    """A call of the compiled tanh(w x) is that of the function."""
    if how == "single":
        same(loss(2.0), (W * 2.0).tanh(), [W])
    else:
        same(loss.mean([2.0, 3.0]), batch_of(lambda x: (W * x).tanh(), [2.0, 3.0]), [W])


@pytest.mark.parametrize("how", ["single", "batch"])
@pytest.mark.parametrize("faster", ["engine", "program"])
@pytest.mark.parametrize("pinned", [False, True])
def test_the_faster_way_serves(how: str, faster: str, pinned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Compiled(lambda x: (W * x).tanh(), backend=preferred() if pinned else None)

    call = partial(checked, loss, how)
    assert warned(*[call] * 17) == []
    timed(loss, *((1e-9, 1.0) if faster == "engine" else (1.0, 1e-9)))
    by_engine = faster == "engine" and not pinned
    assert (count_calls(loss, call, monkeypatch) > 5) is by_engine
    assert ("by the engine, in" in loss.report()) is by_engine
    lifted(loss)


@pytest.mark.parametrize("how", ["single", "batch"])
def test_machine_code_is_tried_where_the_engine_served(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy was slower than the engine: of what machine code takes nothing is known by that."""
    pytest.importorskip("llvmlite")
    loss = wengert.compile(lambda x: (W * x).tanh())

    call = partial(checked, loss, how)
    assert warned(*[call] * 17) == []
    timed(loss, 1e-9, 1.0)
    assert count_calls(loss, call, monkeypatch) > 5
    (entry,) = loss._runtime.entries.values()
    (made,) = entry.specializations
    news = iter([True])
    monkeypatch.setattr(made.kernel, "want", lambda spent: True)  # it is on its way
    monkeypatch.setattr(made, "adopt", lambda: next(news, False))
    entry.pending = True
    loss.direct.clear()
    loss._runtime.short.clear()
    monkeypatch.setattr(Entry, "note", lambda entry, size, seconds: entry.seconds.update({size.key: 0.0}))
    assert count_calls(loss, call, monkeypatch) in (4, 5)  # the comparisons
    assert count_calls(loss, call, monkeypatch) < 2


def test_a_program_is_never_preferred_before_it_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first four calls give what the function itself gives, whatever was measured."""
    loss = wengert.compile(lambda x: W * x)
    for _ in range(3):
        loss(2.0)
        timed(loss, 1.0, 1e-9)
    assert count_calls(loss, lambda: loss(2.0), monkeypatch) == 2  # the fourth, and the eighth


class Point(NamedTuple):
    """An argument with parts."""

    x: float
    y: float


COLUMN, OTHER, ROWS = [1.0, -2.0, 3.0], [0.5, 0.25, -1.0], [[1.0, 2.0], [3.0, -4.0], [0.5, 0.0]]
LAYOUTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "by name": (lambda x, y: W * x + y, (), {"y": OTHER, "x": COLUMN}),
    "by name alone": (lambda x, *, k: W * x * k, (COLUMN,), {"k": OTHER}),
    "a default": (lambda x, k=2.0, y=1.0: W * x * k + y, (COLUMN,), {"y": OTHER}),
    "rows": (lambda xs: W * xs[0] + xs[1], (ROWS,), {}),
    "tuples": (lambda p: W * p[0] + p[1], ((COLUMN, OTHER),), {}),
    "a named tuple": (lambda p: W * p.x + p.y, (Point(COLUMN, OTHER),), {}),  # type: ignore[arg-type]
    "a dict": (lambda d: W * d["a"] + d["b"], ({"a": COLUMN, "b": OTHER},), {}),
    "a text": (lambda x, how: W * x if how == "once" else W * x * x, (COLUMN, "once"), {}),
    "the same twice": (lambda a, b: W * a[0] * (2.0 if a is b else 3.0), (ROWS, ROWS), {}),
}


def examples_of(layout: Any, n: int) -> Any:
    """The arguments of an example, from those of a batch."""
    if isinstance(layout, dict):
        return {name: examples_of(x, n) for name, x in layout.items()}
    if isinstance(layout, tuple):
        return getattr(type(layout), "_make", type(layout))([examples_of(x, n) for x in layout])
    return layout[n] if isinstance(layout, list) else layout


@pytest.mark.parametrize("as_arrays", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_batch_that_the_engine_does_faster_is_taken_apart(name: str, as_arrays: bool) -> None:
    """Every layout comes to what a loop over the examples comes to, on the long way and on the short one."""
    np = pytest.importorskip("numpy")
    function, args, named = LAYOUTS[name]
    compiled = wengert.compile(function)
    examples = [(examples_of(args, n), examples_of(named, n)) for n in range(3)]
    if as_arrays and name != "the same twice":
        arrays = {id(x): np.array(x) for x in (COLUMN, OTHER, ROWS)}
        args = tuple([arrays.get(id(x), x) for x in args])
        named = {key: arrays.get(id(x), x) for key, x in named.items()}

    def check() -> None:
        want = wengert.mean([function(*each, **by_name) for each, by_name in examples])
        same(compiled.mean(*args, **named), want, [W])
        assert compiled.map(*args, **named).tolist() == [function(*x, **by_name).data for x, by_name in examples]

    for _ in range(9):
        check()
    timed(compiled, 1e-9, 1.0)
    for _ in range(9):
        check()
    assert compiled._runtime.short


@pytest.mark.parametrize("held", [list, "a list of arrays", "an array"])
def test_a_function_that_changes_its_rows_changes_those_that_were_passed(held: Any) -> None:
    """As a loop over them does, at every call."""
    np = pytest.importorskip("numpy")
    rows: Any = [[1.0, 2.0], [3.0, 4.0]]
    rows = rows if held is list else np.array(rows) if held == "an array" else [*map(np.array, rows)]

    @wengert.compile
    def function(xs: Any) -> Value:
        xs[0] += 1.0
        return W * xs[0]

    results: list[float] = []
    assert "changes xs" in warned(*[lambda: results.append(function.mean(rows).data)] * 9)[0]
    assert results == [0.5 * (2.0 + 1.0 + n) for n in range(9)]
    assert [row[0] for row in rows] == [10.0, 12.0]
    assert function._runtime.short


def test_a_batch_of_another_look_is_read() -> None:
    """What was a list is a number: an error, although such batches went to the function itself."""
    compiled = wengert.compile(lambda d: W * d["a"] + d["b"])
    for _ in range(9):
        compiled.mean({"a": COLUMN, "b": OTHER})
    timed(compiled, 1e-9, 1.0)
    for _ in range(2):
        compiled.mean({"a": COLUMN, "b": OTHER})
    assert compiled._runtime.short
    with pytest.raises(wengert.errors.DataError, match="one number"):
        compiled.mean({"a": COLUMN, "b": 2.0})
    with pytest.raises(wengert.errors.DataError, match="as many examples"):
        compiled.mean({"a": COLUMN, "b": [1.0]})


def test_a_refused_function_reads_no_batch() -> None:
    import random

    compiled = wengert.compile(lambda x: W * x * random.random())
    with pytest.warns(UserWarning, match="random"):
        compiled.mean(COLUMN)
    compiled.mean(COLUMN)
    assert compiled._runtime.short
    random.seed(1)
    got = compiled.map(COLUMN).tolist()
    random.seed(1)
    assert got == [(W * x * random.random()).data for x in COLUMN]


def test_a_recording_holds_for_the_example_that_it_was_made_of() -> None:
    """NumPy takes sums out, which an array program adds up in another order: that is found before it is recorded at
    each call anew.
    """
    np = pytest.importorskip("numpy")
    compiled = wengert.compile(lambda x: W * np.linalg.det(x @ x.T + np.eye(3)))
    x = np.linspace(-1.0, 1.3, 9).reshape(3, 3)
    want = compiled.function(x)
    for _ in range(6):
        same(compiled(x), want, [W])
    assert len(compiled._runtime.last.specializations) <= 1


def test_what_is_never_finite_is_left_to_the_engine_at_once() -> None:
    """A program that cannot serve takes time for nothing."""
    compiled = wengert.compile(lambda x: W * x * 1e99 * 1e-99)
    for _ in range(40):
        assert compiled(1e250).data == float("inf")
        assert compiled.mean([1e250, 1e250]).data == float("inf")
    (one,) = [entry for form, entry in compiled._runtime.entries.items() if not form.batched]
    assert one.calls < 20
    assert compiled.direct
    assert compiled._runtime.short
    same(compiled(2.0), W * 2.0, [W])


def test_ever_more_kinds_of_arguments_of_what_is_not_compiled() -> None:
    """They go to the function itself unseen, once there are too many to tell apart."""
    kept: list[float] = []

    @wengert.compile
    def function(xs: list[float], rest: list[float]) -> Value:
        xs.append(1.0)
        return W * len(xs)

    assert len(warned(*[lambda n=n: function(kept, [0.0] * n) for n in range(100)])) <= 2  # type: ignore[misc]
    assert len(kept) == 100
    assert function.direct[0] == (None, None)
    assert function.passed > 30


@pytest.mark.parametrize("kind", [dict, tuple, Point])
def test_rows_that_are_made_of_columns_are_of_their_kind(kind: Any) -> None:
    made = (
        {"x": COLUMN, "y": OTHER} if kind is dict else kind([COLUMN, OTHER]) if kind is tuple else Point(COLUMN, OTHER)
    )  # type: ignore[arg-type]
    seen: list[Any] = []

    @wengert.compile
    def function(p: Any) -> Value:
        seen.append(p)
        return W

    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function.mean(made)
    assert function._runtime.short
    assert {type(p) for p in seen} == {kind}
    assert seen[-3:] == seen[:3]
    assert len(seen) == 6


def test_what_is_faster_for_numbers_alone_need_not_be_for_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """`map` and `mean` are timed each by itself, and so are calls without derivatives."""
    compiled = wengert.compile(lambda x: (W * x).tanh())
    for _ in range(9):
        compiled.map([2.0, 3.0])
        compiled.mean([2.0, 3.0])
    (entry,) = compiled._runtime.entries.values()
    values, gradients = Size(2, False), Size(2, True)
    entry.seconds = {values.key: 1.0, gradients.key: 1.0}
    entry.engine = {values.key: (9, 2.0), gradients.key: (9, 0.5)}
    assert entry.prefers_engine(gradients)
    assert not entry.prefers_engine(values)
    entry.trusted = 0
    compiled._runtime.short.clear()
    for name in ("note", "note_engine"):  # what is measured here is not asked
        monkeypatch.setattr(entry, name, lambda size, seconds: None)
    for _ in range(3):
        assert compiled.map([2.0, 3.0]).tolist() == pytest.approx([(W * x).tanh().data for x in (2.0, 3.0)])
        same(compiled.mean([2.0, 3.0]), batch_of(lambda x: (W * x).tanh(), [2.0, 3.0]), [W])
    assert [slopes for slopes, _ in compiled._runtime.short] == [True]
    with wengert.no_grad():
        compiled.mean([2.0, 3.0])
    assert [slopes for slopes, _ in compiled._runtime.short] == [True]
