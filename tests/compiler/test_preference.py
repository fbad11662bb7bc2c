"""After the comparisons the faster way serves: the program, or the function itself; `report()` says which."""

from __future__ import annotations

from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, lifted, same, warned
from wengert import Value
from wengert.compiler import Compiled
from wengert.compiler.backends import preferred

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


@pytest.mark.parametrize("how", ["single", "batch"])
@pytest.mark.parametrize("faster", ["engine", "program"])
@pytest.mark.parametrize("pinned", [False, True])
def test_the_faster_way_serves(how: str, faster: str, pinned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Compiled(lambda x: (W * x).tanh(), backend=preferred() if pinned else None)

    def call() -> None:
        if how == "single":
            same(loss(2.0), (W * 2.0).tanh(), [W])
        else:
            same(loss.mean([2.0, 3.0]), batch_of(lambda x: (W * x).tanh(), [2.0, 3.0]), [W])

    assert warned(*[call] * 17) == []
    timed(loss, *((1e-9, 1.0) if faster == "engine" else (1.0, 1e-9)))
    by_engine = faster == "engine" and not pinned
    assert (count_calls(loss, call, monkeypatch) > 5) is by_engine
    assert ("by the engine, in" in loss.report()) is by_engine
    lifted(loss)


def test_a_program_is_never_preferred_before_it_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first four calls give what the function itself gives, whatever was measured."""
    loss = wengert.compile(lambda x: W * x)
    for _ in range(3):
        loss(2.0)
        timed(loss, 1.0, 1e-9)
    assert count_calls(loss, lambda: loss(2.0), monkeypatch) == 2  # the fourth, and the eighth
