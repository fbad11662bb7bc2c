"""Functions of floats that Python's `math` lacks: the gamma functions, exp(-x*x), and `math` made to follow IEEE 754.

The functions from `where` on are rules like those of the table, which can run over any kind of number: names of rows
then mean these rows, `where` computes both of its sides, and `choose` only the side that is needed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from math import expm1, inf, nan, pi, sin, tan
from typing import Any

from wengert.ops.ieee import divide as div
from wengert.ops.ieee import exp, log
from wengert.ops.ieee import power as pow_

__all__ = ["atanh", "cbrt", "choose", "erf", "erfc", "floor", "gaussian", "guarded", "lgamma", "log1p", "logarithm"]
__all__ += ["normal_cdf", "normal_pdf", "polygamma", "remainder", "round_", "sign", "to_multiple", "where"]

# B_2, B_4, ... B_26: the Bernoulli numbers, https://dlmf.nist.gov/24.2
BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]
BERNOULLI += [-174611 / 330, 854513 / 138, -236364091 / 2730, 8553103 / 6]
STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:8], 1)]  # lgamma's series in 1 / x
BEYOND = [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]  # digamma's

# Polynomials that interpolate exact values at Chebyshev points, with errors below 1e-17: coefficients of 1, t, t*t, ...
# lgamma(x) / ((x - 1) * (x - 2)) and digamma(x) / (x - its zero) from 1 to 2.5, in t = x - 1.75
LGAMMA = [
    0.4501393121092563, -0.11948158662524275, 0.04452044719850941, -0.019053957830247412, 0.008776370425277888,
    -0.004226194125928346, 0.0020955338792364464, -0.0010605660749412342, 0.0005448970025495887,
    -0.0002831906297104388, 0.00014851664114522942, -7.846167352252309e-05, 4.170624738675929e-05,
    -2.228191217665965e-05, 1.194597872164936e-05, -6.434822788014993e-06, 3.516434844428187e-06,
    -1.9066804238023735e-06, 9.424957587698116e-07, -5.128211509102332e-07, 4.346200532078776e-07,
    -2.386040832536453e-07, -3.336913537804954e-08, 1.8847734392676648e-08, 9.11277895517167e-08,
    -5.0333679908980265e-08,
]  # fmt: skip
DIGAMMA = [
    0.8581832171262995, -0.3262546278681057, 0.15712011335204287, -0.08228558635577836, 0.04479965445273985,
    -0.024890048488912565, 0.01398578618617086, -0.007910468781929783, 0.00449181364672186, -0.002556686367507804,
    0.0014573755956349848, -0.0008314991405858443, 0.0004746724618090757, -0.00027107414127335234,
    0.00015488023513747138, -8.848107178256062e-05, 5.037306922478186e-05, -2.8781726259309088e-05,
    1.699656557302208e-05, -9.711942635667115e-06, 4.363954155587837e-06, -2.493637963206625e-06,
    3.176783869523677e-06, -1.8152982571215072e-06, -6.553134477930105e-07, 3.744655461967921e-07,
    7.489345618425701e-07, -4.279624085203948e-07,
]  # fmt: skip
ZERO, ZERO_REST = 1.4616321449683622, 9.549995429965697e-17  # of digamma, as a float and its rounding error
# erf(x) / x up to 1, in t = x*x - 0.5; (x + 0.75) erfc(x) exp(x*x) from 0.45 to 28, in t = (x - 3) / (x + 3) - 1/16
ERF = [
    0.9654687386698673, -0.2810721780454342, 0.07940998675593483, -0.018283884489152538, 0.0034802744966656173,
    -0.0005611894221277441, 7.829649525455377e-05, -9.614808525709598e-06, 1.0536449530013862e-06,
    -1.0420476859445043e-07, 9.38762931097412e-09, -7.764167415589177e-10, 5.958930343261137e-11,
    -4.230945824295338e-12,
]  # fmt: skip
ERFC = [
    0.6620717633345614, -0.1443852841808494, 0.04182558106034126, 0.017907423613223884, -0.0335736507772901,
    0.024127542922272222, -0.01010815267298151, 0.0017851582045277305, 0.0005780704542733994,
    -0.00038878498499102747, 3.6899694827124075e-06, 5.681936472580054e-05, -7.08841817717599e-06,
    -8.863557604005712e-06, 1.5130109243905226e-06, 1.5813788065975153e-06, -2.282261819413751e-07,
    -2.869359886917421e-07, 2.0902164233586402e-08, 3.5884239034335214e-08, -7.150891145404653e-11,
]  # fmt: skip

# 1 / sqrt(2) and 1 / sqrt(2 pi), each as a float and its rounding error; the first also as two halves of 26 bits
SPLIT = 2.0**27 + 1.0
ROOT, ROOT_REST = math.sqrt(0.5), -4.833646656726457e-17
ROOT_UPPER = ROOT * SPLIT - (ROOT * SPLIT - ROOT)
ROOT_LOWER = ROOT - ROOT_UPPER
PEAK, PEAK_REST = 0.3989422804014327, -2.4923272022777433e-17
ONE_LESS_EULER, ONE_OVER_SQRT_PI, HALF_LOG_2PI_LESS_HALF = 0.42278433509846713, 0.5641895835477563, 0.4189385332046727


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


def round_(x: float) -> float:
    """Return the nearest integer as a float, the even one on a tie; -0, infinities and nan are returned unchanged."""
    return math.copysign(round(x), x) if abs(x) < 2.0**52 else x


def remainder(x: float, y: float) -> float:
    """Return x % y, with nan for y = 0."""
    return x % y if y else nan


to_multiple: Callable[..., float] = guarded(math.remainder)  # the distance of x from the nearest multiple of y


def cbrt(x: float) -> float:
    """Return the cube root: the C library's, which can be 3 ulp off, improved by one Newton step."""
    y = math.cbrt(x)
    return y - (y - x / (y * y)) / 3.0 if 0.0 < abs(x) < inf else y


# -- rules ------------------------------------------------------------------------------------------------------------


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x if the condition holds, else y."""
    return x if condition else y


def choose(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    """Return x() if the condition holds, else y(); other kinds of numbers may have to compute both."""
    return x() if condition else y()


def _polynomial(coefficients: Sequence[float], t: Any) -> Any:
    """Evaluate a polynomial by Horner's rule."""
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * t + coefficient
    return total


def _exp_of_square(x: Any, factor: float) -> tuple[Any, Any]:
    """A float and its relative error as an approximation of exp(-factor * x*x): its exponent is exact.

    x is split into its upper 26 bits, whose square is exact, and the rest.
    """
    x = where(abs(x) > 40.0, 40.0, x)  # beyond, the result is 0
    upper = round_(x * 2.0**20) * 2.0**-20
    return exp(-factor * (upper * upper)), expm1(factor * ((upper - x) * (upper + x)))


def gaussian(x: Any) -> Any:
    """exp(-x*x), accurate in the tails too: there the rounding of x*x would cost 500 units in the last place."""
    power, rest = _exp_of_square(x, 1.0)
    return power + power * rest


def normal_pdf(x: Any) -> Any:
    """The normal density exp(-x*x / 2) / sqrt(2 pi), accurate in the tails too."""
    power, rest = _exp_of_square(x, 0.5)
    return power * (PEAK + (PEAK * rest + PEAK_REST))


def normal_cdf(x: Any) -> Any:
    """The normal distribution function, erfc(-x / sqrt(2)) / 2, accurate in the lower tail too.

    There the rounding of x / sqrt(2) would cost 700 units in the last place. So what that leaves out is found by
    Dekker's product of halves (https://doi.org/10.1007/BF01397083), and a linear term accounts for it.
    """
    x = where(x < -38.6, -38.6, where(x > 8.3, 8.3, x))  # beyond, the result is 0 or 1
    t = -x * ROOT
    upper = x * SPLIT - (x * SPLIT - x)
    lower = x - upper
    rest = upper * ROOT_UPPER + t + upper * ROOT_LOWER + lower * ROOT_UPPER + lower * ROOT_LOWER + x * ROOT_REST
    return 0.5 * erfc(t) + rest * gaussian(t) * ONE_OVER_SQRT_PI


def erf(x: Any) -> Any:
    """Return the error function, where the C library has none."""
    size = abs(x)
    beyond = lambda: where(x < 0.0, erfc(size) - 1.0, 1.0 - erfc(size))  # noqa: E731  (a form)
    return choose(size < 1.0, lambda: x * _polynomial(ERF, x * x - 0.5), beyond)


def erfc(x: Any) -> Any:
    """Return 1 - erf(x), where C has none; the tail is exp(-x*x) times a smooth factor: doi.org/10.2307/2006488."""
    size = abs(x)

    def beyond() -> Any:
        above = where(size > 28.0, 28.0, size)
        power, rest = _exp_of_square(above, 1.0)
        t, scale = (above - 3.0) / (above + 3.0) - 0.0625, above + 0.75
        varying = t * _polynomial(ERFC[1:], t)
        scaled = (ERFC[0] + varying) / scale
        lost = (ERFC[0] - (ERFC[0] + varying) + varying) / scale  # the rounding error of that sum
        tail = power * (scaled + (scaled * rest + lost))
        return where(x < 0.0, 2.0 - tail, tail)

    return choose(size < 0.5, lambda: 1.0 - x * _polynomial(ERF, x * x - 0.5), beyond)


def lgamma(x: Any) -> Any:
    """Return log|gamma(x)|, with inf at 0, -1, -2, ...

    It uses a polynomial from 1 to 2.5, the recurrence up to 12, Stirling's series beyond, and the reflection formula
    below -0.5. `math.lgamma` is 20 ulp off near its zeros 1 and 2.
    """
    above = where(x < -0.5, -x, x)
    value = choose(above < 12.0, lambda: _lgamma_by_recurrence(above), lambda: _stirling(above))
    return choose(x < -0.5, lambda: _lgamma_reflected(x, value), lambda: value)


def _lgamma_by_recurrence(x: Any) -> Any:
    """Return lgamma(x) from -0.5 to 12."""

    def below() -> Any:  # one or two steps up; the rounding error of a step matters near the zero at 1
        low = where(x < 0.0, x + 1.0, x)
        rest = where(x < 0.0, 0.0, x - (low + 1.0 - 1.0))
        return _lgamma_near(low + 1.0) + ONE_LESS_EULER * rest - log(abs(where(x < 0.0, x * low, x)))

    def beyond() -> Any:
        steps = where(x < 2.5, 0.0, floor(x - 1.5))
        factors = 1.0
        for k in range(1, 11):
            factors = where(steps >= float(k), factors * (x - float(k)), factors)
        return _lgamma_near(x - steps) + log(factors)

    return choose(x < 1.0, below, beyond)


def _lgamma_near(x: Any) -> Any:
    return (x - 1.0) * (x - 2.0) * _polynomial(LGAMMA, x - 1.75)


def _stirling(x: Any) -> Any:
    """Return lgamma(x) for x >= 12: https://dlmf.nist.gov/5.11.E1."""
    r = div(1.0, x)
    return (x - 0.5) * (log(x) - 1.0) + (HALF_LOG_2PI_LESS_HALF + r * _polynomial(STIRLING, r * r))


def _lgamma_reflected(x: Any, above: Any) -> Any:
    nearest = where(x > -(2.0**53), x - round_(x), 0.0)
    return where(nearest == 0.0, inf, -log(abs(x * sin(pi * nearest)) / pi) - above)


def polygamma(order: Any, x: Any) -> Any:
    """Return the derivative of lgamma of order `order` + 1: 0 is digamma, 1 trigamma; nan at the poles -1, -2, ...

    `order` is an integer from 0 to 100; for others the result is nan, as their factorials overflow. Below 0 it sums
    over the poles, up to 8 or more it uses the recurrence, and above a series (https://dlmf.nist.gov/5.15).

    >>> round(polygamma(0, 1.0), 12), round(polygamma(1, 1.0), 12)   # minus Euler's constant; pi**2 / 6
    (-0.577215664902, 1.644934066848)
    """
    if not 0.0 <= order <= 100.0 or order != int(order):
        return nan
    n = int(order)
    above = (lambda: _digamma(x)) if n == 0 else lambda: _polygamma(n, x)
    return choose(x > 0.0, above, lambda: _at_poles(n, x))


def _digamma(x: Any) -> Any:
    """Return polygamma(0, x) for x > 0, with all digits correct also near its zero."""

    def by_recurrence() -> Any:
        steps = where(x < 2.5, 0.0, floor(x - 1.5))
        above = where(x < 1.0, x + 1.0, x - steps)
        rest = where(x < 1.0, x - (above - 1.0), 0.0)  # the rounding error of the step
        total = rest - where(x < 1.0, div(1.0, x), 0.0)
        for k in range(6, 0, -1):
            total = total + where(steps >= float(k), div(1.0, x - float(k)), 0.0)
        return total + (above - ZERO - ZERO_REST) * _polynomial(DIGAMMA, above - 1.75)

    def by_series() -> Any:
        z = div(1.0, x * x)
        return log(x) - (div(0.5, x) + z * _polynomial(BEYOND, z))

    return choose(x < 8.0, by_recurrence, by_series)


def _polygamma(n: int, x: Any, first: float = 0.0) -> Any:
    """Return polygamma(n, x + first) for n >= 1 and x + first > 0, without rounding x + first."""

    def by_recurrence() -> Any:
        steps = range(int(first), 8 + n)
        total = _moved(lambda y: _polygamma_by_series(n, y), n, x, 8.0 + n)
        for k in steps[:0:-1]:
            total = total + _moved(lambda y: div(float(math.factorial(n)), _power(y, n + 1)), n + 1, x, float(k))
        return total + _moved(lambda y: _ratio(float(math.factorial(n)), y, n + 1), n + 1, x, first)

    size = choose(x < 8.0 + n, by_recurrence, lambda: _polygamma_by_series(n, x))
    return size if n % 2 else -size


def _moved(function: Callable[[Any], Any], power: int, x: Any, by: float) -> Any:
    """Return function(x + by), nearly a negative power, corrected for the rounding of x + by if the power is large."""
    y = x + by
    value = function(y)
    return value if by == 0.0 or (power < 6 and by != 1.0) else value - value * (power * div(x - (y - by), y))


def _polygamma_by_series(n: int, x: Any) -> Any:
    r = div(1.0, x)
    return _ratio(float(math.factorial(n - 1)), x, n) * (1.0 + r * (0.5 * n + r * _polynomial(_terms(n), r * r)))


@functools.cache
def _terms(n: int) -> list[float]:
    return [b * math.comb(2 * k + n - 1, n - 1) for k, b in enumerate(BERNOULLI, 1)]


def _power(x: Any, n: int) -> Any:
    """Return x**n, for small n by products, which is faster."""
    if n > 4:
        return pow_(x, float(n))
    root = _power(x, n // 2) if n > 1 else 1.0
    return root * root * x if n % 2 else root * root


def _ratio(factor: float, x: Any, n: int) -> Any:
    """Return factor / x**n without overflow or underflow of x**n."""
    power = pow_ if n > 4 else _power
    return div(div(factor, power(x, n // 2)) if n > 1 else factor, power(x, n - n // 2))


def _at_poles(n: int, x: Any) -> Any:
    """Return polygamma(n, x) for x <= 0: for n = 0 by the cotangent, else the nearest pole's term plus the others."""
    d = where(x > -(2.0**53), x - round_(x), 0.0)  # the distance from the nearest pole, exact
    if n == 0:
        steep = abs(d) > 0.25
        t = tan(pi * where(steep, where(d > 0.0, 0.5, -0.5) - d, d))
        value = _digamma(1.0 - x) - pi * where(steep, t, div(1.0, t))
    else:
        sign = 1.0 if n % 2 else -1.0
        below = _polygamma(n, -d, 1.0) - _polygamma(n, 1.0 - x)  # the poles between the nearest one and 0
        value = _ratio(sign * math.factorial(n), d, n + 1) + (_polygamma(n, d, 1.0) + sign * below)
    at_zero = -div(1.0, x) if n % 2 == 0 else inf
    return where(x == 0.0, at_zero, where(d == 0.0, nan, value))
