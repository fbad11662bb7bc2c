"""The incomplete gamma and beta functions, regularized: P(a, x), Q(a, x) and I_x(a, b), and their densities.

They are rules as in `special.py`. The shapes a and b are floats, so everything that depends on them alone is computed
once, in Python: how many terms are needed, and the coefficients. Equations are those of https://dlmf.nist.gov.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from math import inf, nan, pi, sqrt
from typing import Any

from wengert.ops.ieee import divide as div
from wengert.ops.ieee import exp, log
from wengert.ops.ieee import power as pow_
from wengert.ops.special import STIRLING, choose, erfc, exact_product, expm1, lgamma, polynomial, where

__all__ = ["beta_pdf", "beta_pdf_slope", "betainc", "gamma_pdf", "gamma_pdf_slope", "gammainc", "gammaincc"]

LARGE = 64.0  # from this shape on powers and the gamma function are scaled by Stirling's formula
SMALLEST, LARGEST = 1e-300, 1e12  # shape of a beta function: the number of terms grows with its root
MOST = 2000  # the most terms that are written out, for machine code or arrays
EULER = 0.5772156649015329
_cached = functools.lru_cache(256)


def gammainc(a: float, x: Any) -> Any:
    """Return P(a, x), the gamma distribution's cdf; a = 0 and inf are its limits; nan below 0 (8.2.4)."""
    return _incomplete_gamma(a, x, False)


def gammaincc(a: float, x: Any) -> Any:
    """Return Q(a, x) = 1 - P(a, x), accurate in the upper tail."""
    return _incomplete_gamma(a, x, True)


def _incomplete_gamma(a: float, x: Any, upper: bool) -> Any:
    if not 0.0 < a < inf:
        edge = float((a == 0.0) != upper)
        inside = where(x > 0.0, edge, nan) if a == 0.0 else where(x >= 0.0, where(x < inf, edge, nan), nan)
        return inside if a >= 0.0 else nan
    top, start = (min(1000.0 * a, 1e308), a) if a >= LARGE else (2000.0, max(a, 0.7))
    x = where(x > top, top, where(x < 0.0, nan, x))
    size = _gamma_weight(a, 0.0, x)
    lower: Callable[[], Any] = lambda: size * _by_series(a, x)  # noqa: E731  (a form)
    above: Callable[[], Any] = lambda: size * a * _by_fraction(a, x)  # noqa: E731  (a form)
    if upper:
        below = (lambda: _small_shape(a, x)) if a < 1.0 else lambda: 1.0 - lower()
        far = choose(x < start, below, above)
    else:
        far = choose(x < start, lower, lambda: 1.0 - above())
    return far if a < LARGE else choose(abs(x - a) < 0.4 * a, lambda: _uniform(a, x, upper), lambda: far)


def _gamma_weight(a: float, less: float, x: Any) -> Any:
    """Return x^(a - less) e^-x / gamma(a + 1 - less), for `less` of 0 or 1."""
    if a < LARGE:
        tail = exp(-0.5 * x)
        return pow_(x, a - less) * tail * tail * ((a if less else 1.0) / _gamma_above(a))
    above = x > 1e-20 * a  # below, it is 0
    inside = where(above, x, a)
    root = exp(-0.5 * a * _less_log(div(inside - a, a), div(inside, a)))  # twice, as their product may be subnormal
    return where(above, root * (_over_gamma(a) * (div(a, inside) if less else 1.0)) * root, where(x >= 0.0, 0.0, nan))


def gamma_pdf(a: float, x: Any) -> Any:
    """Return x^(a - 1) e^-x / gamma(a), the derivative of P(a, x)."""
    if not 0.0 < a < inf:
        return where(x >= 0.0, where(x * a == x * a, 0.0, nan), nan) if a >= 0.0 else nan
    top = min(1000.0 * a, 1e308) if a >= LARGE else 2000.0
    return _gamma_weight(a, 1.0, where(x > top, top, where(x < 0.0, nan, x)))


def gamma_pdf_slope(out: Any, a: float, x: Any) -> Any:
    """Return the derivative of gamma_pdf with respect to x, which has derivatives of any order at 0 too."""
    if not 0.0 < a < LARGE:
        return out * (div(a - 1.0, where(x > 0.0, x, inf)) - 1.0)
    tail, factor = exp(-0.5 * x), a / _gamma_above(a)
    slope = -tail * tail if a == 1.0 else factor * pow_(x, a - 2.0) * tail * (a - 1.0 - x) * tail
    return where(x >= 0.0, where(x > 2000.0, 0.0, slope), nan)


def _less_log(t: Any, ratio: Any) -> Any:
    """Return t - log(ratio), ratio = 1 + t, without cancellation, by the inverse tanh of t / (2 + t) (4.6.6)."""
    r = div(t, 2.0 + t)
    near = t * r - 2.0 * r * (r * r) * polynomial(ODD, r * r)
    return where(abs(t - 0.2) < 0.8, near, t - log(ratio))


ODD = [1.0 / (2 * k + 3) for k in range(22)]


def _rest(a: float) -> float:
    """Return log gamma(a) less Stirling's formula, for a >= 10 (5.11.1)."""
    return polynomial(STIRLING, 1.0 / (a * a)) / a  # type: ignore[no-any-return]


def _over_gamma(a: float) -> float:
    """Return a^a e^-a / gamma(a + 1)."""
    return math.exp(-_rest(a)) / math.sqrt(2.0 * pi * a)


def _steps(x: Any, needed: int) -> int:
    """Return how many terms are needed.

    Raises:
        OverflowError: too many to be written out; only for one float they are computed.
    """
    if needed > MOST and not isinstance(x, float):
        raise OverflowError(f"{needed} terms are too many to write out")
    return needed


def _depth(function: Callable[[int], float]) -> int:
    """Return a number of terms beyond which more change nothing."""
    terms, last, value = 8, inf, function(8)
    while abs(value - last) > 1e-16 * abs(value):
        terms, last = terms + terms // 4, value
        value = function(terms)
    return terms


def _by_series(a: float, x: Any) -> Any:
    """Return gamma(a + 1) e^x x^-a P(a, x): all its terms are positive (8.7.1)."""
    total: Any = 1.0
    for k in range(_steps(x, _series_depth(a)), 0, -1):
        total = 1.0 + x * (1.0 / (a + k)) * total
    return total


@_cached
def _series_depth(a: float) -> int:
    x, term, k = 0.6 * a if a >= LARGE else max(a, 0.7), 1.0, 0
    while term > 1e-18:
        k += 1
        term *= x / (a + k)
    return k


def _by_fraction(a: float, x: Any, terms: int = 0) -> Any:
    """Return gamma(a) e^x x^-a Q(a, x), by a continued fraction from its far end (8.9.2)."""
    terms = terms or _steps(x, _fraction_depth(a))
    f = x + (2.0 * terms + 1.0 - a)
    for k in range(terms, 0, -1):
        f = (x + (2.0 * k - 1.0 - a)) + div(k * (a - k), f)
    return div(1.0, f)


@_cached
def _fraction_depth(a: float) -> int:
    return _depth(lambda n: _by_fraction(a, 1.4 * a if a >= LARGE else max(a, 0.7), n))


def _small_shape(a: float, x: Any) -> Any:
    """Return Q(a, x) for a < 1 and x < 0.7, where it may be small: 1 - P without cancellation (8.7.3)."""
    u = a * log(x) - _log_gamma_above(a)
    terms = [(-1.0) ** (k + 1) / (math.factorial(k) * (a + k)) for k in range(1, 18)]
    return exp(u) * (a * x * polynomial(terms, x)) - expm1(u)


@_cached
def _gamma_above(*shapes: float) -> float:
    """Return gamma(1 + the sum of shapes) up to 170, where `math.gamma` is 100 units off: by exact recurrence."""
    a = sum(map(Fraction, shapes))
    steps = math.floor(a)
    product = math.prod([a - k for k in range(steps)], start=Fraction(1))
    return float(product * Fraction(math.exp(lgamma(float(1 + a - steps)))))


@_cached
def _log_gamma_above(a: float) -> float:
    y = 1.0 + a
    return lgamma(y) - EULER * (a - (y - 1.0))  # type: ignore[no-any-return]  # with the rounding error of y


def _uniform(a: float, x: Any, upper: bool) -> Any:
    """Return P or Q for x near a large a: the normal distribution and a correction (8.12.3, 8.12.4, 8.12.7)."""
    t = div(x - a, a)
    half = _less_log(t, div(x, a))
    root = sqrt(2.0 * half)
    eta = where(t < 0.0, -root, root)
    rest = exp(-a * half) * (1.0 / math.sqrt(2.0 * pi * a)) * polynomial(_correction(a), eta)
    normal = 0.5 * erfc((1.0 if upper else -1.0) * math.sqrt(0.5 * a) * eta)
    return normal + rest if upper else normal - rest


@_cached
def _correction(a: float) -> list[float]:
    """Return the coefficients of powers of eta in 8.12.7, summed over powers of 1 / a."""
    return [math.fsum(row[n] * a**-k for k, row in enumerate(_expansion())) for n in range(20)]


@functools.cache
def _expansion() -> list[list[float]]:
    """Return d(k, n) of 8.12.12, from the series of x / a in powers of eta (8.12.11) and of gamma (5.11.3)."""
    terms, orders = 40, 10
    alpha = [0.0, 1.0]
    for n in range(2, terms + 3):
        alpha.append((alpha[n - 1] - math.fsum(j * alpha[j] * alpha[n + 1 - j] for j in range(2, n))) / (n + 1.0))
    g, log_gamma = [1.0], [x for b in STIRLING for x in (b, 0.0)]
    for k in range(1, orders):
        g.append(math.fsum((j + 1) * log_gamma[j] * g[k - 1 - j] for j in range(k)) / k)
    found = [[-1.0 / 3.0, *[(n + 2.0) * alpha[n + 2] for n in range(1, terms)]]]
    for k in range(1, orders):
        last = found[-1]
        found.append([(-1.0) ** k * g[k] * found[0][n] + (n + 2.0) * last[n + 2] for n in range(len(last) - 2)])
    return found


def betainc(a: float, b: float, x: Any) -> Any:
    """Return I_x(a, b), the beta distribution's cdf; nan where x is not in [0, 1], and for shapes of extreme size."""
    x = where(x >= 0.0, where(x <= 1.0, x, nan), nan)
    if not (0.0 < a < inf and 0.0 < b < inf):
        if not (a >= 0.0 and b >= 0.0) or a == b:
            return x * nan
        at_zero = a == 0.0 or b == inf  # where all the probability is
        return where(x > 0.0, 1.0, x) if at_zero else where(x < 1.0, 0.0, x)
    if max(a, b) > LARGEST or min(a, b) < SMALLEST:
        return x * nan
    weight, excess = _beta_weight(a, b, 0.0, x), _excess(a, b, x)
    return choose(
        x <= _middle(a, b),
        lambda: weight * _beta_fraction(a, b, x, 1.0 - x, excess),
        lambda: 1.0 - weight * _beta_fraction(b, a, 1.0 - x, x, -excess),
    )


def _middle(a: float, b: float) -> float:
    """Return the mean a / (a + b), or for small shapes a point from which fewer terms are needed."""
    return max(a, 0.1) / (max(a, 0.1) + max(b, 0.1))


def beta_pdf(a: float, b: float, x: Any) -> Any:
    """Return x^(a - 1) (1 - x)^(b - 1) / B(a, b), the derivative of I_x(a, b)."""
    x = where(x >= 0.0, where(x <= 1.0, x, nan), nan)
    if not (0.0 < a < inf and 0.0 < b < inf):
        return x * (0.0 if a >= 0.0 and b >= 0.0 and a != b else nan)
    return _beta_weight(a, b, 1.0, x) if max(a, b) <= LARGEST and min(a, b) >= SMALLEST else x * nan


def beta_pdf_slope(out: Any, a: float, b: float, x: Any) -> Any:
    """Return the derivative of beta_pdf with respect to x, which has derivatives of any order at 0 and 1 too."""
    y = 1.0 - x
    if not 0.0 < min(a, b) < 10.0 or max(a, b) > LARGEST:
        inside = where(x > 0.0, where(y > 0.0, x, 0.5), 0.5)
        return out * (div(a - 1.0, inside) - div(b - 1.0, 1.0 - inside))
    powers = [
        1.0 if shape == 1.0 else pow_(base, (0.5 if shape > 20.0 else 1.0) * (shape - 2.0))
        for base, shape in ((x, a), (y, b))
    ]
    high = powers[0] if a > 20.0 else powers[1] if b > 20.0 else 1.0  # twice, as their product may be subnormal
    rest = a - b if a == 1.0 or b == 1.0 else (a - 1.0) * y - (b - 1.0) * x
    return where(x >= 0.0, where(x <= 1.0, powers[0] * powers[1] * (rest * _over_beta(a, b)) * high, nan), nan)


def _excess(a: float, b: float, x: Any) -> Any:
    """Return a (1 - x) - b x, whose rounding errors would otherwise cost digits of a density with large shapes."""
    y = 1.0 - x
    (left, left_rest), (right, right_rest) = exact_product(y, a), exact_product(x, b)
    return (left - right) + (left_rest - right_rest + a * ((1.0 - y) - x))


def _beta_weight(a: float, b: float, less: float, x: Any) -> Any:
    """Return x^(a - less) (1 - x)^(b - less) / B(a, b)."""
    y = 1.0 - x
    if min(a, b) < 10.0 or a + b < 150.0:
        rest = div((b - less) * ((1.0 - y) - x), where(y > 0.0, y, 1.0))  # what the rounding of 1 - x makes
        root = pow_(x, 0.5 * (a - less)) * pow_(y, 0.5 * (b - less))  # twice, as their product may be subnormal
        return root * _over_beta(a, b) * root * (1.0 + rest)
    middle = a / (a + b)
    inside = where(x > 0.0, where(x < 1.0, x, middle), middle)
    excess = _excess(a, b, inside)
    left = _less_log(div(-excess, a), inside * ((a + b) / a))
    right = _less_log(div(excess, b), (1.0 - inside) * ((a + b) / b))
    root = exp(-0.5 * (a * left + b * right))
    factor = _over_beta(a, b) * (div(1.0, inside * (1.0 - inside)) if less else 1.0)
    return where(x > 0.0, where(y > 0.0, root * factor * root, 0.0), 0.0 * x)


@_cached
def _over_beta(a: float, b: float) -> float:
    """Return 1 / B(a, b); for large shapes times a^a b^b / (a + b)^(a + b)."""
    a, b = min(a, b), max(a, b)
    if a + b < 150.0:
        return a * (b / (a + b)) * _gamma_above(a, b) / (_gamma_above(a) * _gamma_above(b))
    if a < 10.0:
        power = math.pow(a + b, a) * math.exp((b - 0.5) * math.log1p(a / b) - a + (_rest(a + b) - _rest(b)))
        return a * power / _gamma_above(a)
    return math.exp(_rest(a + b) - _rest(a) - _rest(b)) * math.sqrt(a / (2.0 * pi) * (b / (a + b)))


def _beta_fraction(a: float, b: float, x: Any, y: Any, excess: Any, terms: int = 0) -> Any:
    """Return B(a, b) x^-a y^-b I_x(a, b) by a continued fraction, whose terms have one sign up to the b-th.

    It is the even part of 8.17.22: DiDonato and Morris 1992, https://doi.org/10.1145/131766.131776.
    """
    terms = terms or _steps(x, _beta_depth(a, b))
    f, above = nan, 0.0
    for n in range(terms, -1, -1):
        own = (a + n) / (a + 2 * n + 1) * (excess + (1.0 + n * (1.0 + y)))
        if n:
            own = own + (n * (b - n) / (a + 2 * n - 1)) * x + float(n)
        f = own if n == terms else own + div(above * x * x, f)
        # n - 1 first, as a may be too small to be added to 1
        above = (a + (n - 1)) / (a + 2 * n - 1) * ((a + b + (n - 1)) / (a + 2 * n - 1)) * (n * (b - n)) if n else 0.0
    return div(1.0, f)


@_cached
def _beta_depth(a: float, b: float) -> int:
    x, y = _middle(a, b), _middle(b, a)
    return _depth(lambda n: _beta_fraction(a, b, x, y, a * y - b * x, n))
