"""`no_grad()`: results are leaves; per thread, nested, as a decorator, and whatever is raised inside."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.threads import together
from wengert import Value, modes, no_grad
from wengert.node import set_tracing_hook

EVERY_KIND: list[Callable[[Any], Any]] = [
    lambda x: x + x,
    lambda x: x * 2,
    lambda x: 2 - x,
    lambda x: x / 2,
    lambda x: x**2,
    lambda x: 2**x,
    lambda x: -x,
    abs,
    lambda x: x.relu(),
    lambda x: x.exp(),
    lambda x: x.log(),
    lambda x: x.tanh(),
    lambda x: x.sigmoid(),
    lambda x: wengert.hypot(x, 1),
    lambda x: wengert.clip(x, 0, 1),
    lambda x: wengert.dot([x], [x], 1.0),
    lambda x: wengert.mean([x, x]),
    lambda x: wengert.softmax([x, 1.0])[0],
]


@pytest.mark.parametrize("function", EVERY_KIND)
def test_results_are_leaves(function: Callable[[Value], Any]) -> None:
    x = Value(0.5, label="x")
    recorded = function(x)
    with no_grad():
        y = function(x)
    assert (type(y), y.data, y._prev, y._op, y.is_leaf) == (Value, recorded.data, (), "", True)
    y.backward()
    assert (x.grad, y.grad) == (0.0, 1.0)
    assert function(x)._prev


def test_what_was_recorded_before_stays() -> None:
    x = Value(3.0)
    y = x * x
    with no_grad():
        y.backward()
        z = y * 2
        twin = copy.deepcopy(y)
    assert (x.grad, z._prev) == (6.0, ())
    twin.backward()
    assert twin._prev[0].grad == 12.0
    assert (y * x)._prev == (y, x)


def test_nested() -> None:
    x = Value(1.0)
    with no_grad():
        with no_grad():
            assert (x + 1)._prev == ()
        assert (x + 1)._prev == ()
    assert (x + 1)._operands == (x, 1.0)


def test_an_exception_inside_ends_it() -> None:
    x = Value(1.0)
    with pytest.raises(ZeroDivisionError), no_grad():
        1 / 0  # noqa: B018
    assert (x + 1)._prev[0] is x
    with no_grad():
        with pytest.raises(TypeError):
            x + "a"
        assert (x + 1)._prev == ()
    assert (x + 1)._prev[0] is x


def test_a_decorator() -> None:
    @no_grad()
    def predict(x: Value, *, factor: float) -> Value:
        """Predict."""
        return x * factor

    x = Value(2.0)
    for _ in range(2):
        y = predict(x, factor=3)
        assert (y.data, y._prev) == (6.0, ())
    assert (predict.__name__, predict.__doc__) == ("predict", "Predict.")
    assert (x * 3)._prev


def test_per_thread() -> None:
    x = Value(2.0)
    inside, seen = threading.Event(), threading.Event()
    found: dict[str, Any] = {}

    def with_the_mode() -> None:
        with no_grad():
            inside.set()
            seen.wait(10)
            found["with"] = (x * 2)._prev
        found["after"] = (x * 2)._prev

    thread = threading.Thread(target=with_the_mode)
    thread.start()
    assert inside.wait(10)
    found["without"] = (x * 2)._prev  # while the other thread is inside
    with no_grad():
        found["own"] = (x * 2)._prev
    found["left"] = (x * 2)._prev
    seen.set()
    thread.join()
    assert {name: len(operands) for name, operands in found.items()} == {
        "with": 0, "after": 2, "without": 2, "own": 0, "left": 2,
    }  # fmt: skip


def test_many_threads_in_and_out() -> None:
    x = Value(2.0)

    def recorded() -> None:
        for _ in range(300):
            assert not (x * 2).is_leaf

    def unrecorded() -> None:
        for _ in range(300):
            with no_grad():
                assert (x * 2).is_leaf

    together(*[recorded, unrecorded] * 3)
    assert not (x * 2).is_leaf


def no_check(root: Any, gradient: Any) -> None:
    """A pre-backward hook that lets every pass begin."""


def test_a_hook_sees_every_node_once_as_it_was_made_and_the_innermost_first() -> None:
    x = Value(1.0)
    seen: list[tuple[str, Any]] = []

    def noting(name: str) -> Callable[[Any], Any]:
        return lambda node: seen.append((name, node))

    with modes.hooked(noting("outer"), no_check), modes.hooked(noting("inner"), no_check):
        y = x + 1
        z = y.tanh()
        w = wengert.sum([y, z])
        d = wengert.dot([y], [z])
        assert wengert.dot([1.0], [2.0]) == 2.0
    expected = [(name, node) for node in (y, z, w, d) for name in ("inner", "outer")]
    assert seen == expected
    x + 1
    assert len(seen) == 8
    with no_grad(), modes.hooked(noting("under no_grad"), no_check):
        assert (x + 1).is_leaf
    assert not seen[-1][1].is_leaf


def test_what_declines_an_operand_is_not_shown() -> None:
    seen: list[Any] = []
    with modes.hooked(seen.append, no_check), pytest.raises(TypeError):
        Value(1.0) + object()
    assert seen == []


def test_a_recording_is_told_of_a_pass() -> None:
    """Which writes gradients: it is told before one is written, and may raise."""

    class Recording:
        def refuse(self, why: str) -> None:
            raise RuntimeError(why)

    x = Value(2.0)
    set_tracing_hook(Recording())
    try:
        with pytest.raises(RuntimeError, match=r"^calls backward"):
            x.backward()
    finally:
        set_tracing_hook(None)
    assert x.grad == 0.0
