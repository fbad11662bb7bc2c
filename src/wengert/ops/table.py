"""The table of operations: one row each.

A row can be compared with a calculus book: the value, then the partial derivative with respect to each operand, which
may use the value as `out` (the derivative of exp is `out`). A rule uses only other rows and + - *, so that one rule
serves every kind of number: over floats it computes floats, and over Values it records a graph, which gives second
derivatives. Two conventions follow: `div(a, b)` in place of Python's `/`, which would raise, and
`where(condition, a, b)` in place of `if`.

To add an operation, add a row. `wengert.op` adds one of your own at run time.
"""

from __future__ import annotations

import math
from functools import reduce
from math import inf, nan
from typing import Any

from wengert.ops import ieee, incomplete, special
from wengert.ops.incomplete import beta_pdf_slope, gamma_pdf_slope
from wengert.ops.op import AS_OPERANDS, BY_NAME, FLOATS, LEFT, NONNEGATIVE, TABLE, UNARY, VALUES, Op, complete
from wengert.ops.op import row as _row
from wengert.ops.special import (
    _guarded_form,
    entr_slope,
    gaussian_slope,
    gelu_slope,
    guarded,
    j1_slope,
    norm_partials,
    normal_pdf_slope,
    quantile_slope,
    sinc_slope,
    xlogy_slope,
)

__all__ = ["BUILT_IN", "BY_NAME", "FLOATS", "LEFT", "TABLE", "UNARY", "VALUES", "Op"]

# -- functions that several rules share -------------------------------------------------------------------------------


def _bell(e: Any) -> Any:
    """e / (1 + e)^2."""
    return div(e, 1.0 + e * (2.0 + e))


def _one_less_square(x: Any) -> Any:
    """1 - x^2, without the rounding of x^2."""
    return (1.0 - x) * (1.0 + x)


def _finite(x: Any, y: Any) -> Any:
    return x * 0.0 + y * 0.0 == 0.0


def _kept(out: Any) -> Any:
    """Return True if a result is neither near underflow nor infinite."""
    return where(abs(out) > TINY, abs(out) < inf, False)


def _lost(out: Any, x: Any, y: Any) -> Any:
    """Return True if out = x**y of finite numbers is too small or too large to compute its derivatives from."""
    return where(where(_kept(out), _kept(div(out, x)), False), False, where(x == 0.0, False, _finite(x, y)))


def _power_by_base(out: Any, x: Any, y: Any) -> Any:
    """Return y * x^(y-1) as y * (out / x), since y - 1 may round; where out is lost, by x^(y/2) twice (x * k is normal)."""
    k = where(abs(x) < 1.0, 2.0**100, 1.0)
    slope = where(_kept(out), y * div(out, x), y * pow_(x, y - 1.0))
    by_halves = lambda: div(y * _root(x, y), x * k) * (_root(x, y) * k) * pow_(sign(x), y)  # noqa: E731  (a form)
    return where(y == 0.0, 0.0, _guarded_form(_lost(out, x, y), by_halves, slope))


def _to_any_order(by_base: Any) -> Any:
    """Wrap `by_base` for Values: the fourth derivative of x**3 is then exactly 0, and not a rounding error."""

    def by_base_again(out: Any, x: Any, y: Any) -> Any:
        if isinstance(y, float) and (y - 1.0) + 1.0 == y:
            return y * pow_(x, y - 1.0) if y else 0.0
        return 0.0 + y * div(out, x) if y == 0.0 and x != 0.0 else by_base(out, x, y)  # 0, which depends on y

    return by_base_again


def _power_by_exponent(out: Any, x: Any, y: Any) -> Any:
    slope = _guarded_form(_lost(out, x, y), lambda: log(x) * _root(x, y) * _root(x, y), out * log(x))
    return where(x == 0.0, where(y >= 0.0, 0.0, slope), slope)


def _root(x: Any, y: Any) -> Any:
    """Return the square root of |x|^y."""
    return pow_(abs(x), 0.5 * y)


def _share(x: Any, y: Any) -> Any:
    """Return the share of a maximum's gradient that goes to x: all to the greater operand, half to each on a tie."""
    return where(x < y, 0.0, where(x <= y, 0.5, 1.0))


def _atan_slope(x: Any) -> Any:
    """Return 1 / (1 + x^2), also where x^2 overflows, or where its square would vanish in a second derivative."""
    return _guarded_form(abs(x) > 1e50, lambda: div(div(1.0, x), x), div(1.0, 1.0 + x * x))


def _cbrt_slope(out: Any, x: Any) -> Any:
    """Return 1 / (3 out^2) as out / x / 3, since out is rounded."""
    return where(x == 0.0, inf, where(abs(x) < inf, div(div(out, x), 3.0), div(div(1.0, out), out)))


def _slope_of_quotient(out: Any, x: Any, y: Any) -> Any:
    """Return -x / y^2 as -out / y."""
    lost = where(out == 0.0, False, abs(out) < TINY)
    return _guarded_form(lost, lambda: -div(div(x * HUGE, y), y) * (1.0 / HUGE), -div(out, y))


def _cosine(x: Any, y: Any, h: Any) -> Any:
    """Return x / h, and 0 at the origin, where h = hypot(x, y) is 0."""
    k = where(h < 1.0, HUGE, 1.0 / HUGE)
    slope = where(h == 0.0, 0.0, div(x, where(h == 0.0, 1.0, h)))
    return _guarded_form(_lost_length(x, y, h), lambda: div(x * k, hypot(x * k, y * k)), slope)


def _cosine_by_length(x: Any, y: Any, h: Any) -> Any:
    """Return (x / h) / h, and 0 at the origin."""
    length, k = where(h == 0.0, 1.0, h), where(h < 1.0, HUGE, 1.0 / HUGE)
    slope = div(div(x, length), length)
    tiny = where(h > 1e-20, abs(x) < TINY, False)
    slope = _guarded_form(tiny, lambda: div(div(x * HUGE, h), h) * (1.0 / HUGE), slope)
    slope = _guarded_form(_lost_length(x, y, h), lambda: div(_cosine(x, y, h), hypot(x * k, y * k)) * k, slope)
    return where(h == 0.0, 0.0, slope)


def _lost_length(x: Any, y: Any, h: Any) -> Any:
    return where(h == 0.0, False, where(_kept(h), False, _finite(x, y)))


def _times_exp(factor: Any, x: Any) -> Any:
    """Return factor * e^x, which may be large although e^x underflows."""
    return factor * exp(0.5 * x) * exp(0.5 * x)


def _silu(x: Any) -> Any:
    return _guarded_form(x < -700.0, lambda: _times_exp(x, x), x * sigmoid(x))


def _silu_slope(x: Any) -> Any:
    """Return sigmoid(x) * (1 + x * sigmoid(-x)), over a common denominator."""
    e = exp(-abs(x))
    plain = div(where(x > 0.0, 1.0 + e * (1.0 + x), e * (1.0 + x + e)), 1.0 + e * (2.0 + e))
    return _guarded_form(x < -700.0, lambda: _times_exp(1.0 + x, x), plain)


def _total(*xs: Any) -> Any:
    """Add from left to right, with the bits that a loop gives."""
    total = 0.0
    for x in xs:
        total = total + x
    return total


def _gap(*xs: Any) -> Any:
    """Return the difference of the greatest and the next one."""
    best, *others = sorted(xs, reverse=True)
    return where(best == others[0], 0.0, best - others[0]) if others else inf


def _ties(out: Any, *xs: Any) -> Any:
    """Return the gradient of a maximum, shared evenly among the operands that reach it."""
    reach = [where(x >= out, where(x <= out, 1.0, 0.0), 0.0) for x in xs]
    return [div(r, sum(reach)) for r in reach]


def _products_of_others(out: Any, *xs: Any) -> Any:
    """Return for each x the product of all others, those before times those behind: correct at zeros too."""
    before, behind = [1.0], [1.0]
    for x in xs[:-1]:
        before.append(before[-1] * x)
    for x in xs[:0:-1]:
        behind.append(behind[-1] * x)
    return [a * b for a, b in zip(before, reversed(behind), strict=True)]


def _dot(*operands: Any) -> Any:
    """Return bias + w1 x1 + w2 x2 + ...; the operands are (w1, w2, ..., x1, x2, ..., bias)."""
    half = len(operands) // 2
    total = operands[-1]
    for w, x in zip(operands[:half], operands[half:], strict=False):
        total = total + w * x
    return total


def _dot_partials(out: Any, *operands: Any) -> Any:
    half = len(operands) // 2
    return (*operands[half:-1], *operands[:half], 1.0)


def _logsumexp(*xs: Any) -> Any:
    """Return log(e^x1 + e^x2 + ...), shifted by the greatest so that nothing overflows."""
    greatest = max_(*xs)
    shift = where(abs(greatest) < inf, greatest, 0.0)
    return shift + log(sum_(*[exp(x - shift) for x in xs]))


LN2, LN10 = math.log(2.0), math.log(10.0)
TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
TINY, HUGE = 1e-290, 2.0**600  # below TINY digits may be lost to underflow; multiplying by HUGE avoids it
POSITIVE, UNIT, ABOVE_ONE, REAL = (0.1, 4.0), (-0.95, 0.95), (1.05, 4.0), (-3.0, 3.0)

# fmt: off
# -- the table: name, number of operands, symbol, value, partial derivatives, domain; the other fields are Op's --------

leaf: Op   = _row("leaf", 0, "", "a number that no operation made",
       None, None)
add: Op    = _row("add", 2, "+", "x + y",
       lambda x, y: x + y,              lambda out, x, y: (1.0, 1.0), infix="+", sign=AS_OPERANDS)
sub: Op    = _row("sub", 2, "-", "x - y",
       lambda x, y: x - y,              lambda out, x, y: (1.0, -1.0), infix="-")
mul: Op    = _row("mul", 2, "*", "x * y",
       lambda x, y: x * y,              lambda out, x, y: (y, x), infix="*", sign=AS_OPERANDS)
div: Op    = _row("div", 2, "/", "x / y by IEEE 754: 1/0 is inf",
       ieee.divide,                   lambda out, x, y: (div(1.0, y), _slope_of_quotient(out, x, y)), REAL, POSITIVE, infix="/", sign=AS_OPERANDS)
pow_: Op   = _row("pow", 2, "**", "x**y over the reals: nan for a negative base with a fractional exponent",
       ieee.power,                    lambda out, x, y: (_power_by_base(out, x, y), _power_by_exponent(out, x, y)), POSITIVE, REAL, infix="**")
neg: Op    = _row("neg", 1, "neg", "-x",
       lambda x: -x,                    lambda out, x: -1.0, infix="-")
relu: Op   = _row("relu", 1, "ReLU", "the positive part of x: max(x, 0)",
       lambda x: where(x <= 0.0, 0.0, x), lambda out, x: where(x <= 0.0, 0.0, 1.0), kinks=lambda x: x, sign=NONNEGATIVE)
exp: Op    = _row("exp", 1, "exp", "e**x",
       ieee.exp,                      lambda out, x: out, sign=NONNEGATIVE)
log: Op    = _row("log", 1, "log", "the natural logarithm; -inf at 0, nan below",
       ieee.log,                      lambda out, x: where(x >= 0.0, div(1.0, x), nan), POSITIVE)
tanh: Op   = _row("tanh", 1, "tanh", "the hyperbolic tangent",
       ieee.tanh,                     lambda out, x: 4.0 * logistic_pdf(2.0 * x))

abs_: Op   = _row("abs", 1, "abs", "the absolute value",
       abs,                             lambda out, x: where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0)), kinks=lambda x: x,
       sign=NONNEGATIVE, aliases=("absolute",))
sign: Op   = _row("sign", 1, "sign", "-1, 0 or 1, as x is negative, zero or positive",
       special.sign,                    lambda out, x: 0.0, kinks=lambda x: x)
minimum: Op = _row("minimum", 2, "min", "the smaller of x and y; nan if either is",
       lambda x, y: where(x < y, x, where(x != x, x, y)), lambda out, x, y: (_share(y, x), _share(x, y)), kinks=_gap)
maximum: Op = _row("maximum", 2, "max", "the greater of x and y; nan if either is",
       lambda x, y: where(x > y, x, where(x != x, x, y)), lambda out, x, y: (_share(x, y), _share(y, x)), kinks=_gap)
where: Op  = _row("where", 3, "where", "x where the condition holds, else y",
       lambda c, x, y: x if c else y,   lambda out, c, x, y: (0.0, where(c, 1.0, 0.0), where(c, 0.0, 1.0)), kinks=lambda c, x, y: c)
clip: Op   = _row("clip", 3, "clip", "x limited to the range from low to high",
       lambda x, low, high: minimum(maximum(x, low), high),
              lambda out, x, low, high: (where(x >= low, where(x <= high, 1.0, 0.0), 0.0),
                                         where(x < low, where(low < high, 1.0, 0.0), 0.0),
                                         where(x > high, 1.0, where(low > high, 1.0, 0.0))), REAL, (-2.0, -1.0), (1.0, 2.0),
              aliases=("clamp",), kinks=lambda x, low, high: minimum(abs(x - low), abs(x - high)))

floor: Op  = _row("floor", 1, "floor", "the greatest integer that is not above x",
       special.floor,                   lambda out, x: 0.0, kinks=lambda x: special.to_multiple(x, 1.0))
round_: Op = _row("round", 1, "round", "the nearest integer, the even one on a tie",
       special.round_,                  lambda out, x: 0.0, kinks=lambda x: special.to_multiple(x - 0.5, 1.0))
remainder: Op = _row("remainder", 2, "mod", "x - y * floor(x / y), Python's x % y: it has the sign of y; nan for y = 0",
       special.remainder,     lambda out, x, y: (1.0, where(abs(out) >= inf, 1.0, -round_(div(x, y) - div(out, y)))), REAL, ABOVE_ONE,
              aliases=("mod",), kinks=lambda x, y: div(special.to_multiple(x, y), maximum(1.0, abs(div(x, y)))))  # with respect to y -floor(x / y), also where x / y itself rounds up

stop_gradient: Op = _row("stop_gradient", 1, "stop", "x as a constant: no gradient flows back through it",
       lambda x: x,                     lambda out, x: 0.0)

exp2: Op   = _row("exp2", 1, "exp2", "2**x",
       guarded(math.exp2),              lambda out, x: out * LN2, sign=NONNEGATIVE)
expm1: Op  = _row("expm1", 1, "expm1", "e**x - 1, accurate near 0",
       guarded(math.expm1),             lambda out, x: exp(x))
log2: Op   = _row("log2", 1, "log2", "the logarithm to base 2",
       special.logarithm(math.log2),    lambda out, x: where(x >= 0.0, div(1.0 / LN2, x), nan), POSITIVE)
log10: Op  = _row("log10", 1, "log10", "the logarithm to base 10",
       special.logarithm(math.log10),   lambda out, x: where(x >= 0.0, div(1.0 / LN10, x), nan), POSITIVE)
log1p: Op  = _row("log1p", 1, "log1p", "log(1 + x), accurate near 0",
       special.log1p,                   lambda out, x: where(x >= -1.0, div(1.0, 1.0 + x), nan), UNIT)
sqrt: Op   = _row("sqrt", 1, "sqrt", "the square root; nan below 0",
       guarded(math.sqrt),              lambda out, x: div(0.5, out), POSITIVE, sign=NONNEGATIVE)
cbrt: Op   = _row("cbrt", 1, "cbrt", "the cube root, of negative numbers too",
       special.cbrt,                    lambda out, x: _cbrt_slope(out, x), POSITIVE)
square: Op = _row("square", 1, "square", "x * x",
       lambda x: x * x,               lambda out, x: 2.0 * x, sign=NONNEGATIVE)
reciprocal: Op = _row("reciprocal", 1, "1/", "1 / x",
       lambda x: div(1.0, x),     lambda out, x: -out * out, POSITIVE)

sin: Op    = _row("sin", 1, "sin", "the sine of x radians",
       guarded(math.sin),               lambda out, x: cos(x))
cos: Op    = _row("cos", 1, "cos", "the cosine of x radians",
       guarded(math.cos),               lambda out, x: -sin(x))
tan: Op    = _row("tan", 1, "tan", "the tangent of x radians",
       guarded(math.tan),               lambda out, x: 1.0 + out * out, (-1.2, 1.2))
asin: Op   = _row("asin", 1, "asin", "the inverse sine, in radians",
       guarded(math.asin),              lambda out, x: div(1.0, sqrt(_one_less_square(x))), UNIT, aliases=("arcsin",))
acos: Op   = _row("acos", 1, "acos", "the inverse cosine, in radians",
       guarded(math.acos),              lambda out, x: div(-1.0, sqrt(_one_less_square(x))), UNIT, aliases=("arccos",))
atan: Op   = _row("atan", 1, "atan", "the inverse tangent, in radians",
       math.atan,                       lambda out, x: _atan_slope(x), aliases=("arctan",))
atan2: Op  = _row("atan2", 2, "atan2", "the angle of the point (x, y), in radians: atan2(y, x)",
       math.atan2,                      lambda out, y, x: (_cosine_by_length(x, y, hypot(x, y)), -_cosine_by_length(y, x, hypot(x, y))), REAL, POSITIVE, aliases=("arctan2",))
sinh: Op   = _row("sinh", 1, "sinh", "the hyperbolic sine",
       guarded(math.sinh, nan),         lambda out, x: cosh(x))
cosh: Op   = _row("cosh", 1, "cosh", "the hyperbolic cosine",
       guarded(math.cosh),              lambda out, x: sinh(x), sign=NONNEGATIVE)
asinh: Op  = _row("asinh", 1, "asinh", "the inverse hyperbolic sine",
       math.asinh,                      lambda out, x: div(1.0, hypot(1.0, x)), aliases=("arcsinh",))
acosh: Op  = _row("acosh", 1, "acosh", "the inverse hyperbolic cosine; nan below 1",
       guarded(math.acosh),             lambda out, x: div(1.0, sqrt(x - 1.0) * sqrt(x + 1.0)), ABOVE_ONE, aliases=("arccosh",))
atanh: Op  = _row("atanh", 1, "atanh", "the inverse hyperbolic tangent; nan beyond -1 and 1",
       special.atanh,                  lambda out, x: where(abs(x) <= 1.0, div(1.0, _one_less_square(x)), nan), UNIT, aliases=("arctanh",))
hypot: Op  = _row("hypot", 2, "hypot", "sqrt(x*x + y*y), without overflow",
       math.hypot,                      lambda out, x, y: (_cosine(x, y, out), _cosine(y, x, out)),
              kinks=lambda x, y: maximum(abs(x), abs(y)), sign=NONNEGATIVE, more="norm")

sigmoid: Op = _row("sigmoid", 1, "sigmoid", "the logistic function 1 / (1 + e**-x)",
       lambda x: div(where(x >= 0.0, 1.0, exp(-abs(x))), 1.0 + exp(-abs(x))), lambda out, x: logistic_pdf(x), sign=NONNEGATIVE)
logistic_pdf: Op = _row("logistic_pdf", 1, "logistic pdf", "the slope of sigmoid, e**-x / (1 + e**-x)**2, accurate in the tails",
       lambda x: _bell(exp(-abs(x))),   lambda out, x: -out * tanh(0.5 * x), sign=NONNEGATIVE)
logsigmoid: Op = _row("logsigmoid", 1, "logsigmoid", "log(sigmoid(x)), without overflow",
       lambda x: -softplus(-x), lambda out, x: sigmoid(-x))
softplus: Op = _row("softplus", 1, "softplus", "log(1 + e**x), without overflow",
       lambda x: maximum(x, 0.0) + log1p(exp(-abs(x))), lambda out, x: sigmoid(x), sign=NONNEGATIVE)
leaky_relu: Op = _row("leaky_relu", 2, "leaky ReLU", "x above 0, slope * x below",
       lambda x, slope: where(x > 0.0, x, slope * x),
                  lambda out, x, slope: (where(x > 0.0, 1.0, slope), where(x > 0.0, 0.0, x)), REAL, (0.01, 0.5),
                  defaults=(0.01,), kinks=lambda x, slope: x)
elu: Op    = _row("elu", 2, "ELU", "x above 0, alpha * (e**x - 1) below (Clevert et al. 2015)",
       lambda x, alpha: where(x <= 0.0, alpha * expm1(x), x),
              lambda out, x, alpha: (where(x <= 0.0, _times_exp(alpha, x), 1.0), where(x <= 0.0, expm1(x), 0.0)), REAL, POSITIVE,
              defaults=(1.0,), kinks=lambda x, alpha: x)
gelu: Op   = _row("gelu", 1, "GELU", "x times the normal distribution function of x (Hendrycks and Gimpel 2016), exact",
       special.gelu,                    lambda out, x: gelu_slope(x))
silu: Op   = _row("silu", 1, "SiLU", "x * sigmoid(x), also called swish",
       lambda x: _silu(x),              lambda out, x: _silu_slope(x), aliases=("swish",))
erf: Op    = _row("erf", 1, "erf", "the error function",
       math.erf,                        lambda out, x: TWO_OVER_SQRT_PI * gaussian(x), series=special.erf)
erfc: Op   = _row("erfc", 1, "erfc", "1 - erf(x), accurate for large x",
       math.erfc,                       lambda out, x: -TWO_OVER_SQRT_PI * gaussian(x), series=special.erfc)
normal_cdf: Op = _row("normal_cdf", 1, "Φ", "the normal distribution function, accurate in the lower tail",
       special.normal_cdf,              lambda out, x: normal_pdf(x), series=special.normal_cdf, aliases=("norm_cdf",))
normal_ppf: Op = _row("normal_ppf", 1, "Φ⁻¹", "the inverse of normal_cdf, the normal quantile: nan outside 0 to 1", special.normal_ppf, lambda out, p: quantile_slope(out, p), (0.1, 0.9), series=special.normal_ppf, aliases=("norm_ppf",))
normal_pdf: Op = _row("normal_pdf", 1, "φ", "the normal density exp(-x*x / 2) / sqrt(2 pi), accurate in the tails",
       special.normal_pdf,              lambda out, x: normal_pdf_slope(out, x), series=special.normal_pdf)
gaussian: Op = _row("gaussian", 1, "gaussian", "exp(-x*x), accurate in the tails",
       special.gaussian,                lambda out, x: gaussian_slope(out, x), sign=NONNEGATIVE, series=special.gaussian)
lgamma: Op = _row("lgamma", 1, "lgamma", "log|gamma(x)|",
       special.lgamma,                lambda out, x: polygamma(0.0, x), POSITIVE, series=special.lgamma, aliases=("gammaln",))
digamma: Op = _row("digamma", 1, "digamma", "the derivative of lgamma",
       lambda x: polygamma(0.0, x), lambda out, x: polygamma(1.0, x), POSITIVE)
polygamma: Op = _row("polygamma", 2, "polygamma", "the derivative of digamma of order n: polygamma(n, x)",
       special.polygamma,    lambda out, n, x: (nan, polygamma(n + 1.0, x)), (2.0, 2.0), POSITIVE, series=special.polygamma)

gammainc: Op = _row("gammainc", 2, "P", "the regularized lower incomplete gamma function P(a, x), the cdf of a gamma distribution", incomplete.gammainc, lambda out, a, x: (nan, gamma_pdf(a, x)), (2.5, 2.5), POSITIVE, series=incomplete.gammainc, shapes=("a",))
gammaincc: Op = _row("gammaincc", 2, "Q", "1 - gammainc(a, x), accurate in the upper tail", incomplete.gammaincc, lambda out, a, x: (nan, -gamma_pdf(a, x)), (2.5, 2.5), POSITIVE, series=incomplete.gammaincc, shapes=("a",))
gamma_pdf: Op = _row("gamma_pdf", 2, "gamma pdf", "the density of a gamma distribution, x**(a - 1) e**-x / gamma(a): the slope of gammainc", incomplete.gamma_pdf, lambda out, a, x: (nan, gamma_pdf_slope(out, a, x)), (2.5, 2.5), POSITIVE, series=incomplete.gamma_pdf, shapes=("a",))
betainc: Op = _row("betainc", 3, "I", "the regularized incomplete beta function I_x(a, b), the cdf of a beta distribution", incomplete.betainc, lambda out, a, b, x: (nan, nan, beta_pdf(a, b, x)), (2.5, 2.5), (3.5, 3.5), (0.05, 0.95), series=incomplete.betainc, shapes=("a", "b"))
beta_pdf: Op = _row("beta_pdf", 3, "beta pdf", "the density of a beta distribution, x**(a - 1) (1 - x)**(b - 1) / B(a, b): the slope of betainc", incomplete.beta_pdf, lambda out, a, b, x: (nan, nan, beta_pdf_slope(out, a, b, x)), (2.5, 2.5), (3.5, 3.5), (0.05, 0.95), series=incomplete.beta_pdf, shapes=("a", "b"))
j0: Op     = _row("j0", 1, "J₀", "the Bessel function of the first kind of order 0", special.j0, lambda out, x: -j1(x), series=special.j0)
j1: Op     = _row("j1", 1, "J₁", "the Bessel function of the first kind of order 1", special.j1, lambda out, x: j1_slope(out, x), series=special.j1)

xlogy: Op  = _row("xlogy", 2, "xlogy", "x * log(y), and 0 where x is 0",
       special.xlogy,                   lambda out, x, y: (log(y), xlogy_slope(x, y)), REAL, POSITIVE)
xlog1py: Op = _row("xlog1py", 2, "xlog1py", "x * log(1 + y), accurate for small y, and 0 where x is 0",
       special.xlog1py,                 lambda out, x, y: (log1p(y), xlogy_slope(x, 1.0 + y)), REAL, UNIT)
entr: Op   = _row("entr", 1, "entr", "-x * log(x), the entropy of an event of probability x: 0 at 0, -inf below",
       special.entr,                    lambda out, x: entr_slope(x), POSITIVE)
sinc: Op   = _row("sinc", 1, "sinc", "sin(pi x) / (pi x), 1 at 0",
       special.sinc,                    lambda out, x: sinc_slope(out, x))

sum_: Op   = _row("sum", None, "sum", "the sum of the values; 0 of none",
       _total,                          lambda out, *xs: [1.0] * len(xs))
mean: Op   = _row("mean", None, "mean", "the arithmetic mean of the values",
       lambda *xs: div(_total(*xs), float(len(xs))), lambda out, *xs: [1.0 / len(xs)] * len(xs))
prod: Op   = _row("prod", None, "prod", "the product of the values; 1 of none",
       lambda *xs: reduce(mul, xs, 1.0), _products_of_others)  # type: ignore[arg-type]  # a tuple with a __call__
dot: Op    = _row("dot", None, "dot", "bias + w1 x1 + w2 x2 + ...",
       _dot,                            _dot_partials)
max_: Op   = _row("max", None, "max", "the greatest of the values; a tie shares the gradient evenly",
       lambda *xs: reduce(maximum, xs), _ties, kinks=_gap)  # type: ignore[arg-type]  # a tuple with a __call__
min_: Op   = _row("min", None, "min", "the least of the values; a tie shares the gradient evenly",
       lambda *xs: reduce(minimum, xs), _ties, kinks=lambda *xs: _gap(*[-x for x in xs]))  # type: ignore[arg-type]  # as above
norm: Op   = _row("norm", None, "norm", "the Euclidean length, the root of the sum of the squares, without overflow",
       special.norm,                    lambda out, *xs: norm_partials(out, *xs), kinks=lambda *xs: reduce(maximum, map(abs, xs), 0.0), sign=NONNEGATIVE)  # type: ignore[arg-type]  # as above
logsumexp: Op = _row("logsumexp", None, "logsumexp", "log(e**v1 + e**v2 + ...), without overflow",
       _logsumexp,        lambda out, *xs: [exp(x - where(out == -inf, 0.0, out)) for x in xs])
pick: Op   = _row("pick", None, "pick", "the value at an index, which is the last operand",
       None, None)
COMPARED: list[Op] = [_row(name, 2, name, "1 if the comparison of x and y holds, else 0", None, lambda out, x, y: (0.0, 0.0)) for name in ("lt", "le", "gt", "ge", "eq", "ne")]
by_hand: Op = _row("by hand", None, "", "a node made by hand: Value(data, children, symbol)",
       None, None)
compiled: Op = _row("compiled", None, "compiled", "a call of a compiled function, as one node",
       None, None)
# fmt: on


BUILT_IN = complete(globals())
# Over Values three names differ. Rules use |x| in even functions that are smooth at 0: there either slope is right, 0 not.
VALUES["abs"] = lambda x: leaky_relu(x, -1.0)
# and the slope of 1 - x^2 is -2 x, not what (1 + x) - (1 - x) leaves of that.
VALUES["_one_less_square"] = lambda x: 1.0 - x * x + stop_gradient((1.0 - x) * (1.0 + x) - (1.0 - x * x))
VALUES["_power_by_base"] = _to_any_order(VALUES["_power_by_base"])
_by_exponent = VALUES["_power_by_exponent"]  # with respect to a constant there is none, and no 0 / 0 on the way to it
VALUES["_power_by_exponent"] = lambda out, x, y: 0.0 if isinstance(y, float) else _by_exponent(out, x, y)
