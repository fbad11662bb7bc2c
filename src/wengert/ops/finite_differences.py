"""Derivatives from finite differences: of operations that have no partials, and for the check of gradients.

Starting from a large step, steps are divided by 4 and the differences extrapolated to a step of 0 (Ridders, *Accurate
computation of F'(x) and F'(x) F''(x)*, Advances in Engineering Software 4, 1982). Of these estimates the one with the
smallest estimated error is taken, a balance of the truncation error of large steps and the rounding error of small
ones. At a kink the slopes on both sides differ, however small the step is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan
from typing import Any, NamedTuple

from wengert.errors import OperandError

__all__ = ["Slope", "by_differences", "slopes"]

EPSILON = 2.0**-52
STEPS = 22  # from 0.1 to 2e-14
DEPTH = 6  # the number of extrapolations; more gain nothing
RATIO = 4.0
ENOUGH = 2.0**-38  # of a partial derivative: the estimated error at which no more steps are taken


class Slope(NamedTuple):
    """The derivative of one output with respect to one input, by differences."""

    slope: float  # nan if no two points could be evaluated
    error: float  # an estimate of its error
    jump: float  # the slope above x minus the slope below; nan if one side is outside the domain
    jump_error: float


Vector = Sequence[float]


class _Limit:
    """The extrapolated limit for steps to 0: the best estimate so far, and an estimate of its error."""

    def __init__(self, order: int) -> None:
        self.order = order  # the error's powers of the step are order, 2 * order, ...
        self.row: list[float] = []
        self.value, self.error = nan, inf

    def add(self, number: float, rounding: float) -> None:
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
    """Compute the derivatives of the outputs of a function of one number.

    Args:
        function: takes a float, returns the outputs; an ArithmeticError or ValueError means outside the domain.
        x: the point.
        step: the first and largest step.
        enough: called with the results after each step; returns True to stop.

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
    """Return the central slope, or at the end of the domain the one-sided slope."""
    best = central if central.error < inf else min(ahead, behind, key=lambda limit: limit.error)
    return Slope(best.value, best.error, jump.value, jump.error)


def _at(function: Callable[[float], Vector], x: float, count: int) -> Vector:
    """Return the outputs at x; nan outside the domain."""
    try:
        outputs = function(x)
    except (ArithmeticError, ValueError):
        return [nan] * count
    return outputs if len(outputs) == count else [nan] * count


def by_differences(value: Callable[..., float]) -> Callable[..., list[float]]:
    """Return the partial derivatives of an operation by differences of its value; see `wengert.op`.

    >>> (slope,) = by_differences(lambda x: x**3)(8.0, 2.0)
    >>> abs(slope - 12.0) < 1e-11
    True
    """

    def partials(out: Any, *xs: Any) -> list[float]:
        if any(hasattr(x, "_apply_op") for x in xs):
            raise OperandError("they are differences of its values")
        return [_partial(value, xs, place) for place in range(len(xs))]

    return partials


def _partial(value: Callable[..., float], xs: Sequence[float], place: int) -> float:
    if not isfinite(xs[place]):
        return nan

    def along(x: float) -> Vector:
        return [float(value(*xs[:place], x, *xs[place + 1 :]))]

    def enough(estimates: list[Slope]) -> bool:
        return estimates[0].error <= ENOUGH * abs(estimates[0].slope)

    return slopes(along, xs[place], 0.1 * max(1.0, abs(xs[place])), enough)[0].slope
