"""Difference quotients of functions of a list of numbers, which derivatives are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from wengert import Value

__all__ = ["differences", "near", "number"]

Numbers = list[float]


def number(x: Any) -> float:
    return float(x.data if isinstance(x, Value) else x)


def differences(function: Callable[[Numbers], Any], point: Numbers, steps: tuple[float, ...] = (1e-3,)) -> Numbers:
    """Difference quotients, extrapolated (Richardson): of several steps, relative to the size of large and small
    numbers, the one that changes least when it is halved.
    """

    def along(n: int, step: float) -> float:
        low, high = list(point), list(point)
        low[n], high[n] = point[n] - step, point[n] + step
        return (number(function(high)) - number(function(low))) / (2 * step)

    def extrapolated(n: int) -> float:
        size = 1.0 if len(steps) == 1 else abs(point[n]) or 1.0
        pairs = [(along(n, step * size), along(n, step * size / 2)) for step in steps]
        rough, fine = min(pairs, key=lambda pair: abs(pair[1] - pair[0]))
        return (4 * fine - rough) / 3

    return [extrapolated(n) for n in range(len(point))]


def near(want: Any) -> Any:
    return pytest.approx(want, rel=1e-6, abs=1e-7)
