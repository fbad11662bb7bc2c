"""Random functions with choices, and the same functions with Python's `if` in place of `where`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import wengert

# Operations whose derivative is infinite or nan at some operand.
STEEP: list[Callable[[Any], Any]] = [
    wengert.sqrt,
    wengert.log,
    wengert.log2,
    wengert.log10,
    wengert.log1p,
    wengert.reciprocal,
    wengert.asin,
    wengert.acos,
    wengert.atanh,
    wengert.acosh,
    wengert.cbrt,
    wengert.entr,
    wengert.lgamma,
    wengert.normal_ppf,
    lambda x: wengert.exp(900.0 * x),
    lambda x: wengert.sinh(900.0 * x),
    lambda x: wengert.expm1(900.0 * x),
    lambda x: wengert.exp2(2000.0 * x),
    lambda x: x**0.5,
    lambda x: x**-1,
    lambda x: x**1.5,
    lambda x: 1.0 / x,
    lambda x: x / (x - 1.0),
    lambda x: x * wengert.log(x),
    lambda x: wengert.xlogy(x, x),
    lambda x: wengert.sqrt(x) ** 3,
    lambda x: wengert.sqrt(1.0 - x * x),
    lambda x: wengert.digamma(x),
    lambda x: wengert.logsumexp([wengert.log(x), x]),
    lambda x: wengert.norm([wengert.log(x), x]),
]
SMOOTH: list[Callable[[Any], Any]] = [wengert.tanh, wengert.sin, wengert.sigmoid, wengert.atan]
SMOOTH += [wengert.square, abs, wengert.relu, lambda x: 0.5 * x + 0.2]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x * y,
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x / y,
    lambda x, y: abs(x) ** y,
    wengert.hypot,
    wengert.atan2,
    wengert.maximum,
]
CONDITIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x > 0.0,
    lambda x, y: x >= 0.5,
    lambda x, y: x < y,
    lambda x, y: x != 0.0,
    lambda x, y: x < 1.0,
]
POINTS = (-1.5, -1.0, 0.0, 0.25, 0.5, 1.0, 2.0)
Where = Callable[[Any, Any, Any], Any]


def taken(condition: Any, x: Any, y: Any) -> Any:
    """Choose as Python's `if` does: the other operand is no part of the result."""
    return x if condition else y


def function(seed: int, size: int = 8, loops: bool = True) -> Callable[..., Any]:
    """Return a function of a list of numbers: choices of random numbers, in each other, of shared parts, in loops."""

    def run(xs: Any, where: Where = wengert.where) -> Any:
        draw = random.Random(seed)
        numbers = list(xs)
        for _ in range(size):
            numbers.append(_next(draw, numbers, where, loops))
        total = numbers[-1]
        for x in draw.sample(numbers, 2):
            total = total + where(draw.choice(CONDITIONS)(x, 0.3), wengert.tanh(x), 0.1)
        return total

    return run


def _next(draw: random.Random, numbers: list[Any], where: Where, loops: bool) -> Any:
    x, y, z = draw.choices(numbers, k=3)
    condition, steep = draw.choice(CONDITIONS), draw.choice(STEEP)
    kind = draw.randrange(8 if loops else 7)
    if kind == 0:
        return draw.choice(SMOOTH)(x)
    if kind == 1:
        return draw.choice(BINARY)(x, wengert.tanh(y))
    if kind == 2:  # a part that two choices share
        shared = steep(x)
        return where(condition(x, y), shared, y) * 0.5 + where(draw.choice(CONDITIONS)(y, x), z, wengert.tanh(shared))
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


def lists(seed: int, size: int = 6) -> Callable[..., Any]:
    """Return a function of a list of numbers whose result is a list."""
    first, second = function(seed, size), function(seed + 1, size, loops=False)
    return lambda xs, where=wengert.where: [first(xs, where), second(xs, where), xs[0] * xs[1]]


# -- choices over more than single numbers ----------------------------------------------------------------------------


def of_sum(xs: Any, where: Where) -> Any:
    """A sum in a side."""
    return where(xs[0] > 0, sum([wengert.log(x) * x for x in xs]), xs[1] * 0.5)


def of_loop(xs: Any, where: Where) -> Any:
    """A recurrence in a side."""
    y = xs[1]
    for _ in range(25):
        y = wengert.sqrt(y) * 0.9 + 0.01 * y
    return where(xs[0] > 0, y, xs[1] * 2)


def in_loop(xs: Any, where: Where) -> Any:
    """Choices in a recurrence of two numbers, which reads others."""
    y, z = xs[0], xs[1]
    for x in xs * 8:
        y = where(x > 0, wengert.sqrt(x) * y * xs[2], y * 0.5 + z)
        z = where(y > 0.3, z * wengert.log(y), y * xs[3])
    return y + z


def two_back(xs: Any, where: Where) -> Any:
    """A recurrence that looks back two iterations, with a choice in a choice."""
    u, v = xs[0], xs[1]
    for _ in range(20):
        inner = where(v > 0, v**0.5, u * u)
        u, v = v, where(u > 0.1, wengert.sqrt(u) + 0.1 * wengert.log(v), inner) * 0.5
    return v


def of_products(xs: Any, where: Where) -> Any:
    """Products with sums in their sides, over rows."""
    rows = [[x * (j + 1) for x in xs] for j in range(5)]
    h = [wengert.tanh(sum(row)) for row in rows]
    total = 0.0
    for row in rows:
        side = sum([wengert.log(x * y) for x, y in zip(row, h, strict=False)])
        total = total + where(row[0] > 0, side, sum(row))
    return total


def of_pairs(xs: Any, where: Where) -> Any:
    """A choice for each pair."""
    total = 0.0
    for x in xs * 5:
        for y in xs:
            total = total + where(x > y, wengert.sqrt(x - y), where(x < y, wengert.log(y - x), 0.0))
    return total


def of_states(xs: Any, where: Where) -> Any:
    """A recurrence of a list."""
    state = list(xs)
    for _ in range(15):
        beside = [*state[1:], state[0]]
        state = [where(q > 0.2, wengert.sqrt(q) * 0.9, r * 0.7 + 0.05) for q, r in zip(state, beside, strict=True)]
    return sum(state)


def after_loop(xs: Any, where: Where) -> Any:
    """A choice in a loop, and choices of what it ends with."""
    y = xs[0]
    for _ in range(20):
        y = where(y > 0.4, wengert.sqrt(y - 0.4), y + xs[1] * xs[1] * 0.1)
    r = wengert.log(y - xs[2])
    return where(xs[2] < y, r * r, where(xs[3] > 0, wengert.sqrt(xs[3]) + r, xs[3]))


def of_greatest(xs: Any, where: Where) -> Any:
    """Choices below and above a maximum and a sum of exponentials."""
    m = wengert.max(xs)
    side = where(m > 1, wengert.log(m - 1) * wengert.sqrt(m), 0.0)
    return side + wengert.logsumexp([where(x > 0, wengert.log(x), x) for x in xs])


def resets(xs: Any, where: Where) -> Any:
    """A recurrence that begins anew."""
    y = xs[0]
    for x in xs * 6:
        y = where(x > 0.3, wengert.sqrt(y) + 0.2 * x, x)
    return y


SHAPES = [resets, of_sum, of_loop, in_loop, two_back, of_products, of_pairs, of_states, after_loop, of_greatest]
