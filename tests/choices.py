"""Random functions with choices, and the same functions with Python's `if` in place of `where`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import wengert as W

# Operations whose derivative is infinite or nan at some operand.
STEEP: list[Callable[[Any], Any]] = [
    W.sqrt,
    W.log,
    W.log2,
    W.log10,
    W.log1p,
    W.reciprocal,
    W.asin,
    W.acos,
    W.atanh,
    W.acosh,
    W.cbrt,
    W.entr,
    W.lgamma,
    W.normal_ppf,
    lambda x: W.exp(900.0 * x),
    lambda x: W.sinh(900.0 * x),
    lambda x: W.expm1(900.0 * x),
    lambda x: W.exp2(2000.0 * x),
    lambda x: x**0.5,
    lambda x: x**-1,
    lambda x: x**1.5,
    lambda x: 1.0 / x,
    lambda x: x / (x - 1.0),
    lambda x: x * W.log(x),
    lambda x: W.xlogy(x, x),
    lambda x: W.sqrt(x) ** 3,
    lambda x: W.sqrt(1.0 - x * x),
    lambda x: W.digamma(x),
    lambda x: W.logsumexp([W.log(x), x]),
    lambda x: W.norm([W.log(x), x]),
]
SMOOTH: list[Callable[[Any], Any]] = [W.tanh, W.sin, W.sigmoid, W.atan, W.square, abs, W.relu, lambda x: 0.5 * x + 0.2]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x * y,
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x / y,
    lambda x, y: abs(x) ** y,
    W.hypot,
    W.atan2,
    W.maximum,
]
CONDITIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x > 0.0,
    lambda x, y: x >= 0.5,
    lambda x, y: x < y,
    lambda x, y: x != 0.0,
    lambda x, y: 1.0 > x,
]
POINTS = (-1.5, -1.0, 0.0, 0.25, 0.5, 1.0, 2.0)
Where = Callable[[Any, Any, Any], Any]


def taken(condition: Any, x: Any, y: Any) -> Any:
    """Choose as Python's `if` does: the other operand is no part of the result."""
    return x if condition else y


def function(seed: int, size: int = 8, loops: bool = True) -> Callable[..., Any]:
    """Return a function of a list of numbers: choices of random numbers, in each other, of shared parts, in loops."""

    def run(xs: Any, where: Where = W.where) -> Any:
        draw = random.Random(seed)
        numbers = list(xs)
        for _ in range(size):
            numbers.append(_next(draw, numbers, where, loops))
        total = numbers[-1]
        for x in draw.sample(numbers, 2):
            total = total + where(draw.choice(CONDITIONS)(x, 0.3), W.tanh(x), 0.1)
        return total

    return run


def _next(draw: random.Random, numbers: list[Any], where: Where, loops: bool) -> Any:
    x, y, z = draw.choices(numbers, k=3)
    condition, steep = draw.choice(CONDITIONS), draw.choice(STEEP)
    kind = draw.randrange(8 if loops else 7)
    if kind == 0:
        return draw.choice(SMOOTH)(x)
    if kind == 1:
        return draw.choice(BINARY)(x, W.tanh(y))
    if kind == 2:  # a part that two choices share
        shared = steep(x)
        return where(condition(x, y), shared, y) * 0.5 + where(draw.choice(CONDITIONS)(y, x), z, W.tanh(shared))
    if kind == 3:  # a choice in a choice
        inner = where(draw.choice(CONDITIONS)(y, z), steep(y), draw.choice(BINARY)(x, y))
        return where(condition(x, y), inner, draw.choice(SMOOTH)(x))
    if kind == 4:  # a number that is taken, and is read by a side that is not
        shared = draw.choice(SMOOTH)(x)
        return shared + where(condition(x, 0.1), steep(shared), shared)
    if kind == 5:
        return where(condition(x, y), draw.choice(BINARY)(steep(x), y), draw.choice(STEEP)(z))
    if kind == 6:  # a condition of what it guards against
        shared = steep(x)
        return where(draw.choice(CONDITIONS)(shared, 0.0), shared, z)
    for _ in range(12):
        x = where(condition(x, 0.3), 0.9 * steep(x), draw.choice(SMOOTH[:4])(x) * 0.7 + 0.1)
    return x


def point(seed: int, count: int = 3) -> list[float]:
    """Return numbers of which many are at the end of an operation's domain, or beyond."""
    return random.Random(seed).choices(POINTS, k=count)
