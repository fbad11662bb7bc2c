"""Functions of one float that Python's `math` lacks: polygamma, exp(-x*x), and `math` made to follow IEEE 754."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, nan, pi

__all__ = ["atanh", "gaussian", "guarded", "lgamma", "log1p", "logarithm", "polygamma", "sign"]

# B_2, B_4, ... B_26: the Bernoulli numbers, https://dlmf.nist.gov/24.2
BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]
BERNOULLI += [-174611 / 330, 854513 / 138, -236364091 / 2730, 8553103 / 6]


def guarded(function: Callable[..., float], overflow: float = inf) -> Callable[..., float]:
    """A function of `math` that answers as IEEE 754 does where `math` raises.

    `overflow` is what stands for a result beyond the largest float; outside the domain the answer is nan.

    >>> guarded(math.sqrt)(-1.0), guarded(math.cosh)(1000.0)
    (nan, inf)
    """

    def call(*xs: float) -> float:
        try:
            return function(*xs)
        except OverflowError:
            return math.copysign(inf, xs[0]) if overflow is nan else overflow
        except ValueError:
            return nan

    return call


def logarithm(function: Callable[[float], float], pole: float = 0.0) -> Callable[[float], float]:
    """A logarithm of `math` with -inf at its pole and nan below."""

    def call(x: float) -> float:
        return function(x) if x > pole else -inf if x == pole else nan

    return call


def atanh(x: float) -> float:
    """The inverse of tanh, with +-inf at +-1 and nan beyond."""
    return math.atanh(x) if -1.0 < x < 1.0 else math.copysign(inf, x) if abs(x) == 1.0 else nan


log1p: Callable[[float], float] = logarithm(math.log1p, -1.0)


def sign(x: float) -> float:
    """-1, 0 or 1; nan for nan."""
    return math.copysign(1.0, x) if x < 0.0 or x > 0.0 else x


def gaussian(x: float) -> float:
    """exp(-x*x), accurate in the tails too: there the rounding of x*x would cost 500 units in the last place.

    x is split into its upper 26 bits, whose square is exact, and the rest.
    """
    if not -27.5 < x < 27.5:
        return x if x != x else 0.0
    upper = math.ldexp(round(math.ldexp(x, 21)), -21)
    return math.exp(-upper * upper) * math.exp((upper - x) * (upper + x))


def lgamma(x: float) -> float:
    """log|gamma(x)|, with inf at 0, -1, -2, ..."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return inf


def polygamma(order: float, x: float) -> float:
    """The derivative of lgamma of order `order` + 1: 0 is digamma, 1 trigamma. nan at the poles -1, -2, ...

    Whole orders up to 100; nan for others, as the factorials of higher ones leave the range of floats.
    Reflection below 0, recurrence up to 20, then the asymptotic series (https://dlmf.nist.gov/5.15).

    >>> round(polygamma(0, 1.0), 12), round(polygamma(1, 1.0), 12)   # minus Euler's constant; pi**2 / 6
    (-0.577215664902, 1.644934066848)
    """
    if not 0.0 <= order <= 100.0 or order != int(order) or x != x or x == -inf:
        return nan
    n = int(order)
    if x == 0.0:
        return math.copysign(inf, -x) if n % 2 == 0 else inf
    if x < 0.0:
        return nan if x == math.floor(x) else _reflected(n, x)
    if x == inf:
        return inf if n == 0 else 0.0
    below = []
    sign = -1.0 if n % 2 == 0 else 1.0  # (-1)**(n + 1)
    while x < 20.0 + n:
        below.append(_quotient(n, x))
        x += 1.0
    terms = [-math.log(x), 0.5 / x] if n == 0 else [_ratio(math.factorial(n - 1), n, x), 0.5 * _quotient(n, x)]
    for k, bernoulli in enumerate(BERNOULLI, 1):
        terms.append(bernoulli * _ratio(math.factorial(2 * k + n - 1) / math.factorial(2 * k), 2 * k + n, x))
    return sign * math.fsum(below + terms)


def _ratio(factor: float, power: int, x: float) -> float:
    """factor / x**power."""
    return float(factor) * x**-power


def _quotient(n: int, x: float) -> float:
    """n! / x**(n + 1), one term of the recurrence."""
    try:
        return math.factorial(n) / x ** (n + 1)
    except ZeroDivisionError:
        return inf
    except OverflowError:
        return 0.0


def _reflected(n: int, x: float) -> float:
    """polygamma(n, x) for x < 0: the n-th derivative of psi(1 - x) - psi(x) = pi * cot(pi * x).

    Each derivative of the cotangent c is a polynomial in c, as c' = -(1 + c**2).
    """
    nearest = x - round(x)  # exact; the cotangent has period 1 in x
    c = 1.0 / math.tan(pi * nearest) if abs(nearest) <= 0.25 else math.tan(pi * (math.copysign(0.5, nearest) - nearest))
    polynomial = [0.0, 1.0]
    for _ in range(n):
        slopes = [k * a for k, a in enumerate(polynomial)][1:]
        polynomial = [0.0] * (len(slopes) + 2)
        for k, a in enumerate(slopes):
            polynomial[k] -= a
            polynomial[k + 2] -= a
    value = polynomial.pop()
    while polynomial:
        value = value * c + polynomial.pop()
    mirrored = polygamma(n, 1.0 - x)
    return (mirrored if n % 2 == 0 else -mirrored) - pi ** (n + 1) * value
