"""Greenlets switch within a thread: what another one does while a function is watched or recorded is not its doing."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.hidden import Hidden
from wengert import Value

pytest.importorskip("numpy")
greenlet = pytest.importorskip("greenlet", reason="greenlet is not installed")

pytestmark = pytest.mark.once


class Other:
    """Another greenlet, which computes and differentiates, each time it is switched to."""

    def __init__(self, work: Callable[[Value], Any]) -> None:
        self.v, self.seen, self.main = Value(3.0), list[Any](), greenlet.getcurrent()
        self.back = functools.partial(self.main.switch)  # a partial calls it without an event for a profiler
        self.work = work
        self.turn = functools.partial(greenlet.greenlet(self.run).switch)

    def run(self) -> None:
        while True:
            try:
                self.seen.append(self.work(self.v))
            except Exception as error:
                self.seen.append(repr(error))
            self.back()


def differentiates(v: Value) -> Any:
    v.grad = 0.0
    y = v * v + 1.0
    y.backward()
    return y.data, v.grad


def compares(v: Value) -> Any:
    return (v > 2.0) is True, float(v.data), bool(v)


def calls_compiled(v: Value) -> Any:
    return wengert.compile(lambda x: v * x)(2.0).data


def detaches(v: Value) -> Any:
    with wengert.no_grad():
        return (v * 2.0).data, v.detach().data


WORK = {"differentiates": ((10.0, 6.0), differentiates), "compares": ((True, 3.0, True), compares),
        "calls compiled": (6.0, calls_compiled), "detaches": ((6.0, 3.0), detaches)}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("when", [range(10), [0], [1], [2], [3], [1, 3], [2, 5]], ids=str)
@pytest.mark.parametrize("name", WORK)
def test_what_another_greenlet_does(name: str, when: Any) -> None:
    """The function switches in some of its runs: the watched one, those to be recorded (the second try is), those that
    are compared.
    """
    wanted, work = WORK[name]
    other, w = Other(work), Value(2.0)
    runs = iter([other.turn if run in when else functools.partial(int) for run in range(100)])
    hidden = Hidden(functools.partial(next, runs))  # no event tells a profiler of either call

    def value(x: Any) -> Any:
        before = w * x
        hidden.value()()
        return before + w

    f = wengert.compile(value)
    for call in range(8):
        w.grad = 0.0
        result = f(1.0 + call)
        result.backward()
        assert (result.data, w.grad) == (2.0 * (1.0 + call) + 2.0, 2.0 + call)
    assert other.seen == [wanted] * len(other.seen)
    assert other.seen
    assert sys.getprofile() is None
    assert ("switches to another greenlet" in f.report()) == (0 in when)


def test_a_tracer_of_greenlets_stays() -> None:
    seen: list[str] = []
    before = greenlet.settrace(lambda event, greenlets: seen.append(event))
    try:
        tracer = greenlet.gettrace()
        w, other = Value(2.0), Other(differentiates)
        f = wengert.compile(lambda x: w * x)
        assert [f(1.0).data, f(2.0).data] == [2.0, 4.0]
        assert greenlet.gettrace() is tracer
        with pytest.warns(UserWarning, match="switches to another greenlet|calls greenlet.switch"):
            wengert.compile(lambda x: w * x + (other.turn() or 0.0))(1.0)
        assert greenlet.gettrace() is tracer
        assert len(seen) >= 2
    finally:
        greenlet.settrace(before)
