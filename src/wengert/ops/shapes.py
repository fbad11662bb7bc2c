"""Incomplete gamma and beta functions whose shapes are Values: derivatives of any order with respect to the shapes.

A shape becomes a power series in what is added to it, cut off at the order that is asked for: so a sum and the
continued fractions of `incomplete.py` give the derivatives, of the smaller of the probabilities below and above x.
docs/accuracy.md says how many digits they have. The densities are written with rows of the table, which have
derivatives of any order. Equations are those of https://dlmf.nist.gov.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import nan
from typing import Any

from wengert.ops import table
from wengert.ops.incomplete import _beta_fraction, _beta_weight, _by_fraction, _depth, _excess, _gamma_weight, _middle
from wengert.ops.op import Op, of_shapes, row
from wengert.ops.special import BEYOND

__all__ = ["Jet"]

HIGHEST = 20  # the order of a derivative
SMALLEST, LARGEST = 1e-6, 1e6  # shapes that have derivatives: the number of terms grows with the root


class Jet:
    """A power series in one or two small numbers, by their exponents, up to a total order."""

    __slots__ = ("order", "terms")

    def __init__(self, order: int, terms: dict[tuple[int, int], float]) -> None:
        self.order: int = order
        self.terms: dict[tuple[int, int], float] = terms

    def __add__(self, other: Any) -> Jet:
        terms = dict(self.terms)
        for powers, c in other.terms.items() if isinstance(other, Jet) else [((0, 0), other)]:
            terms[powers] = terms.get(powers, 0.0) + c
        return Jet(self.order, terms)

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.order, {powers: c * other for powers, c in self.terms.items()})
        terms: dict[tuple[int, int], float] = {}
        for (i, j), c in self.terms.items():
            for (k, n), d in other.terms.items():
                if i + j + k + n <= self.order:
                    terms[i + k, j + n] = terms.get((i + k, j + n), 0.0) + c * d
        return Jet(self.order, terms)

    def __radd__(self, other: float) -> Jet:
        return self + other

    def __rmul__(self, other: float) -> Jet:
        return self * other

    def __neg__(self) -> Jet:
        return self * -1.0

    def __sub__(self, other: Any) -> Jet:
        difference: Jet = self + -other
        return difference

    def __rsub__(self, other: Any) -> Jet:
        difference: Jet = -self + other
        return difference

    def __truediv__(self, other: Any) -> Jet:
        return self * (other.inverse() if isinstance(other, Jet) else 1.0 / other)

    def __rtruediv__(self, other: float) -> Jet:
        return self.inverse() * other

    def inverse(self) -> Jet:
        """Return 1 over it, by a geometric series."""
        first = self.terms[0, 0]
        rest = self * (-1.0 / first) + 1.0
        return self.summed(rest, [1.0] * self.order) * (1.0 / first)

    def exp(self) -> Jet:
        """Return e to it, where it has no constant term."""
        return self.summed(self, [1.0 / k for k in range(1, self.order + 1)])

    def summed(self, x: Jet, ratios: list[float]) -> Jet:
        """Return the sum of powers of x, each of which has a ratio to the one before, by Horner's rule."""
        total = Jet(self.order, {(0, 0): 1.0})
        for ratio in reversed(ratios):
            total = total * x * ratio + 1.0
        return total


def _log_gamma(order: int, shape: float, step: Jet, least: int = 1) -> Jet:
    """Return lgamma(shape + step) - lgamma(shape), its powers of step from `least` on."""
    total = Jet(order, {})
    for k in range(order, least - 1, -1):
        total = (total + table.polygamma.value(k - 1.0, shape) / math.factorial(k)) * step
    return total * step if least == 2 else total


def _digamma_gap(a: float, b: float) -> float:
    """Return digamma(a + b) - digamma(a) > 0 without cancellation, by the recurrence and Stirling's series (5.11.2)."""
    total = 0.0
    while a < 10.0:
        total += b / (a * (a + b))
        a += 1.0
    rest = sum(c * (a ** (-2 * k) - (a + b) ** (-2 * k)) for k, c in enumerate(BEYOND, 1))
    return total + math.log1p(b / a) + b / (2.0 * a * (a + b)) + rest


def _derivative(jet: Jet, m: int, n: int) -> float:
    return jet.terms.get((m, n), 0.0) * math.factorial(m) * math.factorial(n)


def _steps(converges: Callable[[int], float]) -> int:
    """Return the number of terms of a fraction; its derivatives need some more than its value."""
    return _depth(converges) * 3 // 2 + 10


def _gamma_in_shape(n: int, a: float, x: float) -> float:
    """Return the derivative of order n >= 1 of P(a, x) with respect to a (8.7.1, 8.9.2)."""
    if not (SMALLEST <= a <= LARGEST and x >= 0.0):
        return nan
    if x == 0.0 or x > 2000.0 + 1000.0 * a:  # beyond, the density is 0
        return 0.0
    step = Jet(n, {(1, 0): 1.0})
    weight, change = _gamma_weight(a, 0.0, x), step * math.log(x)
    if x < a + 1.0:
        total = term = Jet(n, {(0, 0): 1.0})
        k = 0
        while max(map(abs, term.terms.values()), default=0.0) > 1e-19 * abs(total.terms[0, 0]):
            k += 1
            term = term * x / (step + (a + k))
            total = total + term
        return _derivative((change - _log_gamma(n, a + 1.0, step)).exp() * total * weight, n, 0)
    shape: Any = step + a
    fraction = _by_fraction(shape, x, _steps(lambda terms: _by_fraction(a, x, terms)))
    return -_derivative((change - _log_gamma(n, a, step)).exp() * fraction * (weight * a), n, 0)


def _beta_in_shapes(m: int, n: int, a: float, b: float, x: float) -> float:
    """Return the derivative of order m in a and n in b of I_x(a, b), for m + n >= 1."""
    if not (min(a, b) >= SMALLEST and max(a, b) <= LARGEST and 0.0 <= x <= 1.0):
        return nan
    if x == 0.0 or x == 1.0:
        return 0.0
    order, y = m + n, 1.0 - x
    in_a, in_b = Jet(order, {(1, 0): 1.0}), Jet(order, {(0, 1): 1.0})
    change = in_a * (math.log(x) + _digamma_gap(a, b)) + in_b * (math.log1p(-x) + _digamma_gap(b, a))
    change = change + _log_gamma(order, a + b, in_a + in_b, 2)
    change = change - _log_gamma(order, a, in_a, 2) - _log_gamma(order, b, in_b, 2)
    excess = _excess(a, b, x)
    excesses, below = in_a * y - in_b * x + excess, x <= _middle(a, b)
    near, far, p, q = (a, b, x, y) if below else (b, a, y, x)
    nears: Any
    fars: Any
    nears, fars = (in_a + a, in_b + b) if below else (in_b + b, in_a + a)
    own, owns = (excess, excesses) if below else (-excess, -excesses)
    steps = _steps(lambda terms: _beta_fraction(near, far, p, q, own, terms))
    fraction = _beta_fraction(nears, fars, p, q, owns, steps)
    slope = _derivative(change.exp() * fraction * _beta_weight(a, b, 0.0, x), m, n)
    return slope if below else -slope


def _slopes(m: int, n: int, density: Any, cumulant: Callable[[int, int], Any]) -> Any:
    """Return the derivative of order m in a and n in b of a density whose logarithm has the derivatives `cumulant`."""
    slopes: dict[tuple[int, int], Any] = {(0, 0): density}
    for i, j in [(i, j) for i in range(m + 1) for j in range(n + 1) if i or j]:
        p, q = (i - 1, j) if i else (i, j - 1)  # one order less, by the product rule of the last one
        terms = [
            math.comb(p, k) * math.comb(q, r) * slopes[p - k, q - r] * cumulant(k + (i > 0), r + (i == 0))
            for k in range(p + 1)
            for r in range(q + 1)
        ]
        slopes[i, j] = sum(terms[1:], terms[0])
    return slopes[m, n]


def gamma_pdf(a: Any, x: Any) -> Any:
    """Return x^(a - 1) e^-x / gamma(a) with derivatives with respect to both."""
    return table.exp(table.xlogy(a - 1.0, x) - x - table.lgamma(a))


def beta_pdf(a: Any, b: Any, x: Any) -> Any:
    """Return x^(a - 1) (1 - x)^(b - 1) / B(a, b) with derivatives with respect to all three."""
    scale = table.lgamma(a + b) - table.lgamma(a) - table.lgamma(b)
    return table.exp(table.xlogy(a - 1.0, x) + table.xlog1py(b - 1.0, -x) + scale)


def _gamma_slopes(n: int, a: Any, x: Any) -> Any:
    """Return the derivative of order n in a of the gamma density."""

    def cumulant(k: int, _: int) -> Any:
        return table.log(x) - table.polygamma(0.0, a) if k == 1 else -table.polygamma(k - 1.0, a)

    density = table.gamma_pdf(a, x)
    return _slopes(n, 0, density, cumulant) if density != 0.0 else 0.0


def _beta_slopes(m: int, n: int, a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of order m in a and n in b of the beta density."""

    def cumulant(k: int, r: int) -> Any:
        total = table.polygamma(k + r - 1.0, a + b)
        if not r:
            total = total - table.polygamma(k - 1.0, a)
        if not k:
            total = total - table.polygamma(r - 1.0, b)
        return total + (table.log(x) if (k, r) == (1, 0) else table.log1p(-x) if (k, r) == (0, 1) else 0.0)

    density = table.beta_pdf(a, b, x)
    return _slopes(m, n, density, cumulant) if density != 0.0 else 0.0


def _numbers(*xs: Any) -> list[Any]:
    """Return the operands, floats or Values, of a rule that no symbol can stand for: it is called number by number."""
    for x in xs:
        if hasattr(x, "_apply_op") and not hasattr(x, "backward"):
            raise TypeError("a power series in a shape needs numbers")
    return [x if hasattr(x, "backward") else float(x) for x in xs]


def _are_orders(*orders: float) -> bool:
    """Return True for orders of derivatives, which are numbers among a row's operands."""
    return all(0.0 <= n <= HIGHEST and n == int(n) for n in orders)


def _gamma_row(name: str, symbol: str, value: Callable[[float, float], float], sign: float) -> Op:
    """Register the derivative of order n of P or Q in its shape, as a row of n, a and x."""

    def ours(n: float, a: float, x: float) -> float:
        n, a, x = _numbers(n, a, x)
        if not _are_orders(n):
            return nan
        return sign * _gamma_in_shape(int(n), a, x) if n else value(a, x)

    def partials(out: Any, n: float, a: Any, x: Any) -> tuple[Any, Any, Any]:
        n, a, x = _numbers(n, a, x)
        if not _are_orders(n):
            return nan, nan, nan
        return nan, own(n + 1.0, a, x), sign * _gamma_slopes(int(n), a, x)

    own = row(f"{name} by shape", 3, symbol, f"the derivative of order n of {name} in its shape", ours, partials)
    return own


def _beta_value(m: float, n: float, a: float, b: float, x: float) -> float:
    m, n, a, b, x = _numbers(m, n, a, b, x)
    if not _are_orders(m, n):
        return nan
    return _beta_in_shapes(int(m), int(n), a, b, x) if m or n else table.betainc.value(a, b, x)


def _beta_partials(out: Any, m: float, n: float, a: Any, b: Any, x: Any) -> tuple[Any, ...]:
    m, n, a, b, x = _numbers(m, n, a, b, x)
    if not _are_orders(m, n):
        return (nan,) * 5
    slope = _beta_slopes(int(m), int(n), a, b, x)
    return nan, nan, _BETA(m + 1.0, n, a, b, x), _BETA(m, n + 1.0, a, b, x), slope


_GAMMA = {
    name: _gamma_row(name, symbol, value, sign)
    for name, symbol, value, sign in (
        ("gammainc", "P", table.gammainc.value, 1.0),
        ("gammaincc", "Q", table.gammaincc.value, -1.0),
    )
}
_BETA = row("betainc by shapes", 5, "I", "the derivative of betainc in its shapes", _beta_value, _beta_partials)
of_shapes["gammainc"] = lambda a, x: _GAMMA["gammainc"](0.0, a, x)
of_shapes["gammaincc"] = lambda a, x: _GAMMA["gammaincc"](0.0, a, x)
of_shapes["betainc"] = lambda a, b, x: _BETA(0.0, 0.0, a, b, x)
of_shapes |= {"gamma_pdf": gamma_pdf, "beta_pdf": beta_pdf}
