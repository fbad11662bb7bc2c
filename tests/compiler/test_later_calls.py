"""A later call that differs in what no signature says of numbers and arrays: a compiled function is the function."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")

from tests.compiler import later_calls  # noqa: E402
from tests.compiler.numbered import in_processes  # noqa: E402

W = Value(0.5)
PARTS = 240


@pytest.mark.sampled(40)
@pytest.mark.parametrize("part", range(PARTS))
def test_what_later_calls_give(part: int) -> None:
    """Cases of each kind, in a process of their own."""
    assert in_processes(later_calls, part, later_calls.CASES, PARTS) == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sum(W * v for v in x),
        lambda x: (np.array(x) * W).sum(),
        lambda x: W * sum(v * v for v in x if isinstance(v, (int, float))),
        lambda x: W * max(x) + sum(x) * W / 3,
    ],
)
def test_lists_that_stay_mixed_have_one_signature(function: Any) -> None:
    """One for floats, one for ints, one for lists that mix them; and what does not ask for types is compiled."""
    compiled = wengert.compile(function)
    for _ in range(4):
        for x in ([1.5, 2], [1, 2.5], [1.5, 2.5], [1, 2], [0, -2.5]):
            assert compiled(x).data == function(x).data
    assert len(compiled._server.entries) <= 3
    assert "uncompiled" not in compiled.report()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.ravel() * W).sum(),
        lambda x: x.reshape(3, 2)[1, 1] * W + x.copy("K")[0, 1],
        lambda x: W * np.asfortranarray(x)[1, 1] + np.ascontiguousarray(x).sum(),
        lambda x: W * x.T.flatten()[1],
        lambda x: W * np.roll(x, 1)[0, 1],
        lambda x: W * np.roll(x.ravel(), 2)[1] + np.gradient(x.ravel())[2],
        lambda x: W * np.pad(x, 1)[1, 2] + np.flip(x)[0, 0] + np.tile(x, 2)[1, 4],
        lambda x: W * np.diff(x.ravel())[2] + np.trapezoid(x.ravel()) + np.convolve(x.ravel(), x.ravel())[3],
        lambda x: W * np.insert(x.ravel(), 1, 2.0)[2] + np.delete(x.ravel(), 1)[1] + np.append(x, x)[7],
        lambda x: W * np.interp(1.5, x.ravel(), x.ravel()) + np.cross(x[0], x[1])[0],
    ],
)
def test_uses_of_arrays_that_do_not_depend_on_their_layout_are_compiled(function: Any) -> None:
    compiled = wengert.compile(function)
    x = np.arange(6.0).reshape(2, 3)
    for _ in range(3):
        for given in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
            assert compiled(given).data == function(given).data
    assert len(compiled._server.entries) == 1
    assert "uncompiled" not in compiled.report()


def test_an_opcode_that_nobody_has_seen_may_ask_for_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.code import bytecode

    frame = sys._getframe()
    assert not bytecode.asks_class(frame)  # it calls
    monkeypatch.setattr(bytecode, "LISTED", frozenset())
    assert bytecode.asks_class(frame)
