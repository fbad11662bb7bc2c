"""Derivatives by differences of values alone: what gradients are checked against.

Steps are divided by 4 from a large one down, and the differences extrapolated to a step of 0 (Ridders, *Accurate
computation of F'(x) and F'(x) F''(x)*, Advances in Engineering Software 4, 1982). The step is thereby chosen for each
input: the answer is the one of the least estimated error, between the truncation of large steps and the rounding of
small ones. A kink shows in the slopes ahead and behind, whose difference then does not vanish with the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan
from typing import NamedTuple

__all__ = ["Slope", "slopes"]

EPSILON = 2.0**-52
STEPS = 22  # from 0.1 to 2e-14
DEPTH = 6  # how often is extrapolated: beyond, nothing is gained
RATIO = 4.0


class Slope(NamedTuple):
    """The derivative of one output with respect to one input, by differences."""

    slope: float  # nan where no two points could be evaluated
    error: float  # an estimate of how far it may be off
    jump: float  # by how much the slope ahead exceeds the slope behind; nan where one side is not there
    jump_error: float


Vector = Sequence[float]


class _Limit:
    """A limit for steps to 0, extrapolated: the best so far, and an estimate of its error."""

    def __init__(self, order: int) -> None:
        self.order = order  # the first power of the step in the error; the next ones follow by `order` each
        self.row: list[float] = []
        self.value, self.error = nan, inf

    def add(self, number: float, rounding: float) -> None:
        """Take in the number at the next step."""
        if not isfinite(number):
            self.row = []
            return
        row = [number]
        for k, before in enumerate(self.row[:DEPTH], 1):
            factor = RATIO ** (self.order * k)
            row.append(row[-1] + (row[-1] - before) / (factor - 1.0))
            error = max(abs(row[-1] - row[-2]), abs(row[-1] - before)) + rounding
            if error <= self.error:
                self.value, self.error = row[-1], error
        self.row = row


def slopes(
    function: Callable[[float], Vector],
    x: float,
    step: float,
    enough: Callable[[list[Slope]], bool] = lambda found: False,
) -> list[Slope]:
    """The derivatives of the outputs of a function of one number.

    Args:
        function: takes a float, returns the outputs. An ArithmeticError or ValueError says: outside the domain.
        x: where.
        step: the first and largest step.
        enough: told what was found after each step, says whether to stop.

    >>> from math import exp
    >>> (found,) = slopes(lambda x: [exp(x)], 1.0, 0.1)
    >>> abs(found.slope - exp(1.0)) < 1e-10
    True
    """
    base = function(x)
    count = len(base)
    central, ahead, behind, jump = ([_Limit(order) for _ in base] for order in (2, 1, 1, 1))
    found: list[Slope] = []
    h = step
    for _ in range(STEPS):
        above, below = x + h, x - h
        if above == x or below == x:
            break
        up, down = (_at(function, at, count) for at in (above, below))
        for k in range(count):
            after, before = (up[k] - base[k]) / (above - x), (base[k] - down[k]) / (x - below)
            rounding = EPSILON * max(abs(base[k]), abs(up[k]), abs(down[k])) / h
            central[k].add((up[k] - down[k]) / (above - below), rounding)
            ahead[k].add(after, 2.0 * rounding)
            behind[k].add(before, 2.0 * rounding)
            jump[k].add(after - before, 4.0 * rounding)
        found = [_chosen(*limits) for limits in zip(central, ahead, behind, jump, strict=True)]
        if enough(found):
            break
        h /= RATIO
    return found or [Slope(nan, inf, nan, inf)] * count


def _chosen(central: _Limit, ahead: _Limit, behind: _Limit, jump: _Limit) -> Slope:
    """The central slope; at the end of a domain, that from the side that is there."""
    best = central if central.error < inf else min(ahead, behind, key=lambda limit: limit.error)
    return Slope(best.value, best.error, jump.value, jump.error)


def _at(function: Callable[[float], Vector], x: float, count: int) -> Vector:
    """The outputs at x; nan where there are none."""
    try:
        outputs = function(x)
    except (ArithmeticError, ValueError):
        return [nan] * count
    return outputs if len(outputs) == count else [nan] * count
