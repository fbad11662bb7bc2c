"""Calls that take turns, what they are compared by before, and the tables that they come to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["agree", "in_turns", "off", "per_call", "table"]

SECONDS = 0.03  # that a turn takes


def off(got: Sequence[float], want: Sequence[float]) -> float:
    """By how much some numbers differ, relative to the largest."""
    return float(np.abs(np.subtract(got, want)).max() / max(np.abs(want).max(), 1e-300))


def agree(what: str, got: tuple[float, Sequence[float]], want: tuple[float, Sequence[float]], close: float) -> None:
    """See that a value and its derivatives are those that are expected.

    Raises:
        SystemExit: they are not as close as that.
    """
    wrong = max(off([got[0]], [want[0]]), off(got[1], want[1]))
    if not wrong < close:
        raise SystemExit(f"{what} by {wrong:.1e}")


def per_call(call: Callable[[], Any]) -> float:
    """Seconds of the processor a call, of as many as fill a turn: other processes matter less then."""
    calls = 1
    while True:
        began = time.process_time()
        for _ in range(calls):
            call()
        taken = time.process_time() - began
        if taken >= SECONDS:
            return taken / calls
        calls = max(2 * calls, int(calls * SECONDS / max(taken, 1e-7)))


def in_turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median seconds of each call, which take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(per_call(call))
    return {name: statistics.median(each) for name, each in times.items()}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells as Markdown."""
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])
