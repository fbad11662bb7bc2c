"""Functions of one float that Python's `math` lacks: polygamma, exp(-x*x), and `math` made to follow IEEE 754."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, nan, pi

__all__ = ["atanh", "cbrt", "floor", "gaussian", "guarded", "lgamma", "log1p", "logarithm", "normal_cdf"]
__all__ += ["normal_pdf", "polygamma", "remainder", "rounded", "sign", "to_multiple"]

# B_2, B_4, ... B_26: the Bernoulli numbers, https://dlmf.nist.gov/24.2
BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]
BERNOULLI += [-174611 / 330, 854513 / 138, -236364091 / 2730, 8553103 / 6]

# zeta(k) - 1 for k = 2, 3, ..., 30: https://dlmf.nist.gov/25.2
ZETA = [0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993, 0.01734306198444914]
ZETA += [0.008349277381922827, 0.00407735619794434, 0.0020083928260822143, 0.0009945751278180853]
ZETA += [0.0004941886041194645, 0.0002460865533080483, 0.00012271334757848915, 6.124813505870483e-05]
ZETA += [3.058823630702049e-05, 1.528225940865187e-05, 7.637197637899763e-06, 3.81729326499984e-06]
ZETA += [1.908212716553939e-06, 9.539620338727962e-07, 4.769329867878064e-07, 2.38450502727733e-07]
ZETA += [1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08, 1.4901554828365043e-08]
ZETA += [7.45071178983543e-09, 3.725334024788457e-09, 1.862659723513049e-09, 9.313274324196682e-10]
ONE_LESS_EULER = 0.42278433509846713  # 1 - Euler's constant

# 1 / sqrt(2) and 1 / sqrt(2 pi), each as a float and its rounding error; the first also as two halves of 26 bits
SPLIT = 2.0**27 + 1.0
ROOT, ROOT_REST = math.sqrt(0.5), -4.833646656726457e-17
ROOT_UPPER = ROOT * SPLIT - (ROOT * SPLIT - ROOT)
ROOT_LOWER = ROOT - ROOT_UPPER
PEAK, PEAK_REST = 0.3989422804014327, -2.4923272022777433e-17


def guarded(function: Callable[..., float], overflow: float = inf) -> Callable[..., float]:
    """Wrap a function of `math` so that it returns the IEEE 754 result where `math` raises.

    `overflow` is the result beyond the largest float; outside the domain the result is nan.

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
    """Wrap a logarithm of `math` so that it returns -inf at its pole and nan below."""

    def call(x: float) -> float:
        return function(x) if x > pole else -inf if x == pole else nan

    return call


def atanh(x: float) -> float:
    """Return the inverse of tanh, with +-inf at +-1 and nan beyond."""
    return math.atanh(x) if -1.0 < x < 1.0 else math.copysign(inf, x) if abs(x) == 1.0 else nan


log1p: Callable[[float], float] = logarithm(math.log1p, -1.0)


def sign(x: float) -> float:
    """Return the sign of x: -1, 0 or 1; nan for nan."""
    return math.copysign(1.0, x) if x < 0.0 or x > 0.0 else x


def floor(x: float) -> float:
    """Return the greatest integer that is not above x, as a float; -0, infinities and nan are returned unchanged."""
    return x // 1.0 if abs(x) < inf else x


def rounded(x: float) -> float:
    """Return the nearest integer as a float, the even one on a tie; -0, infinities and nan are returned unchanged."""
    return round(x, 0)


def remainder(x: float, y: float) -> float:
    """Return x % y, with nan for y = 0."""
    return x % y if y else nan


to_multiple: Callable[..., float] = guarded(math.remainder)  # the distance of x from the nearest multiple of y
_lgamma = guarded(math.lgamma)


def gaussian(x: float) -> float:
    """Return exp(-x*x), accurate also in the tails, where the rounding of x*x would cost 500 ulp."""
    power, rest = _bell(x, 1.0)
    return power + power * rest


def normal_pdf(x: float) -> float:
    """Return the normal density exp(-x*x / 2) / sqrt(2 pi), accurate also in the tails."""
    power, rest = _bell(x, 0.5)
    return power * (PEAK + (PEAK * rest + PEAK_REST))


def _bell(x: float, factor: float) -> tuple[float, float]:
    """Return exp(-factor * x*x) as a float and its relative error, by splitting x.

    The upper part has 26 bits, so that its square is exact; the rest gives the relative error.
    """
    if not -40.0 < x < 40.0:
        return (x if x != x else 0.0), 0.0
    upper = math.ldexp(round(math.ldexp(x, 20)), -20)
    return math.exp(-factor * (upper * upper)), math.expm1(factor * ((upper - x) * (upper + x)))


def normal_cdf(x: float) -> float:
    """Return the normal distribution function, erfc(-x / sqrt(2)) / 2, accurate also in the lower tail.

    There the rounding of x / sqrt(2) would cost 700 ulp. So Dekker's product (https://doi.org/10.1007/BF01397083)
    computes the rounding error, and a linear term corrects for it.
    """
    if not -38.6 < x < 8.3:
        return x if x != x else float(x > 0.0)
    t = -x * ROOT
    upper = x * SPLIT - (x * SPLIT - x)
    lower = x - upper
    rest = upper * ROOT_UPPER + t + upper * ROOT_LOWER + lower * ROOT_UPPER + lower * ROOT_LOWER + x * ROOT_REST
    return 0.5 * math.erfc(t) + rest * gaussian(t) / math.sqrt(pi)


def cbrt(x: float) -> float:
    """Return the cube root: the C library's, which can be 3 ulp off, improved by one Newton step."""
    y = math.cbrt(x)
    return y - (y - x / (y * y)) / 3.0 if 0.0 < abs(x) < inf else y


def lgamma(x: float) -> float:
    """Return log|gamma(x)|, with inf at 0, -1, -2, ...

    `math.lgamma` is 20 ulp off near its zeros 1 and 2, so up to 12 a series computes it.
    """
    if not -inf < x < 12.0:
        return inf if x == -inf else _lgamma(x)
    if x <= 0.0 and x == math.floor(x):
        return inf
    if x < -0.5:  # the reflection
        nearest = x - round(x)
        return -math.log(abs(x * math.sin(pi * nearest)) / pi) - lgamma(-x)
    if x < 1.5:
        t = x if x <= 0.5 else x - 1.0
        return math.fsum((*_near_two(t), -math.log1p(t), -math.log(abs(x)) if x <= 0.5 else 0.0))
    steps = round(x) - 2
    return math.fsum((*_near_two(x - round(x)), math.log(math.prod(x - k for k in range(1, steps + 1)))))


def _near_two(t: float) -> list[float]:
    """Return terms whose sum is lgamma(2 + t), for |t| <= 0.5: https://dlmf.nist.gov/5.7.E3."""
    return [t * ONE_LESS_EULER, *((-t) ** k * zeta / k for k, zeta in enumerate(ZETA, 2))]


def polygamma(order: float, x: float) -> float:
    """Return the derivative of lgamma of order `order` + 1: 0 is digamma, 1 trigamma; nan at the poles -1, -2, ...

    `order` is an integer from 0 to 100; for others the result is nan, as their factorials overflow. Below 0 it sums
    over the poles, up to 20 it uses the recurrence, and above the asymptotic series (https://dlmf.nist.gov/5.15).

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
    if n == 0 and 0.5 <= x <= 2.5:  # the derivative of _near_two, accurate at the zero at 1.46
        t = x - 1.0 if x < 1.5 else x - 2.0
        terms = [ONE_LESS_EULER, *(-((-t) ** (k - 1)) * zeta for k, zeta in enumerate(ZETA, 2))]
        return math.fsum(terms if x >= 1.5 else [*terms, -1.0 / x])
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
    """Return factor / x**power without overflow or underflow of x**power."""
    return float(factor) * x ** -(power // 2) * x ** (power // 2 - power)


def _quotient(n: int, x: float) -> float:
    """Return n! / x**(n + 1), one term of the recurrence."""
    try:
        return math.factorial(n) / x ** (n + 1)
    except ZeroDivisionError:
        return math.copysign(inf, x) if n % 2 == 0 else inf
    except OverflowError:
        return 0.0


def _reflected(n: int, x: float) -> float:
    """Return polygamma(n, x) for x < 0: for n = 0 by the cotangent, else as the nearest pole's term and the others'."""
    d = x - round(x)  # the distance from the nearest pole, exact
    if n == 0:
        c = 1.0 / math.tan(pi * d) if abs(d) <= 0.25 else math.tan(pi * (math.copysign(0.5, d) - d))
        return polygamma(0, 1.0 - x) - pi * c
    sign = -1.0 if n % 2 == 0 else 1.0
    above, below = _beside(n, d), _beside(n, -d) - polygamma(n, 1.0 - x)  # below: between the nearest pole and 0
    return math.fsum((sign * _quotient(n, d), above, sign * below))


def _beside(n: int, d: float) -> float:
    """Return polygamma(n, 1 + d), its first term corrected for the rounding of 1 + d."""
    x = 1.0 + d
    rest = d - (x - 1.0)
    return polygamma(n, x) + (-1.0 if n % 2 else 1.0) * rest * (n + 1) * _quotient(n, x) / x
