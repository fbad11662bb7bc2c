"""What the rows of the table are compared with: mpmath's arithmetic of many digits, PyTorch, JAX.

mpmath's truth is written here once more from the calculus book: the value and each partial derivative in a form
that does not cancel, so that 60 digits of working precision are 60 digits of the result. Differences of the values
check the derivatives (test_accuracy.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wengert import Value, ops

try:
    import mpmath  # type: ignore[import-untyped]
    from mpmath import mp
except ImportError:  # the tests that need it are marked
    mpmath = mp = None

__all__ = [
    "CONSTANT",
    "DIGITS",
    "ROWS",
    "Truth",
    "jax_rows",
    "leaves_of",
    "mp",
    "mp_oracle",
    "mpmath",
    "torch_rows",
    "truths",
]

DIGITS = 60
ROWS = [row for row in ops.TABLE[: ops.BUILT_IN] if row.value]
CONSTANT = {("where", 0), ("polygamma", 0), ("stop_gradient", 0)}
CONSTANT |= {(row.name, k) for row in ROWS for k in range(len(row.shapes))}
"""Operands by which there is no derivative to compare with: a condition, the order of a derivative, a constant."""

Exact = Callable[..., Any]


@dataclass(frozen=True)
class Truth:
    """A row in many digits: None stands for a partial derivative that has no meaning.

    Where the value or a partial crosses zero because terms cancel, `value_terms` and `terms` give these: the largest
    sets the unit of the error there.
    """

    value: Exact
    partials: tuple[Exact | None, ...] = ()
    value_terms: Callable[..., Sequence[Any]] | None = None
    terms: Callable[..., Sequence[Any]] | None = None


def truths() -> dict[str, Truth]:
    """The truth of each row by its name. To be called, and used, at the precision that is wanted."""
    one, two, half = mpmath.mpf(1), mpmath.mpf(2), mpmath.mpf(1) / 2
    exp, log, sqrt, log1p = mpmath.exp, mpmath.log, mpmath.sqrt, mpmath.log1p
    ln2, ln10 = mpmath.ln2, mpmath.ln10

    def sigmoid(x: Any) -> Any:
        return one / (one + exp(-x)) if x > 0 else exp(x) / (one + exp(x))

    def sigmoid_slope(x: Any) -> Any:
        return exp(-abs(x)) / (one + exp(-abs(x))) ** 2

    def softplus(x: Any) -> Any:
        return max(x, 0 * x) + log1p(exp(-abs(x)))

    def power(x: Any, y: Any) -> Any:
        if x > 0:
            return exp(y * log(x)) if abs(y * log(x)) < 1e6 else mpmath.inf if y * log(x) > 0 else 0 * x
        if x == 0:
            return one if y == 0 else 0 * x if y > 0 else mpmath.nan
        whole = power(-x, y)  # over the reals for whole exponents only
        return mpmath.nan if y != mpmath.floor(y) else whole if y % 2 == 0 else -whole

    def normal_cdf(x: Any) -> Any:
        return half * mpmath.erfc(-x / sqrt(two))

    def normal(x: Any) -> Any:
        return exp(-half * x * x) / sqrt(two * mpmath.pi)

    def lgamma(x: Any) -> Any:
        return log(abs(mpmath.gamma(x))) if abs(x) < 1e5 else mpmath.loggamma(x).real

    known: dict[Any, Any] = {}
    series: dict[int, list[Any]] = {}

    def psi(n: Any, x: Any) -> Any:
        if (n, x) not in known:
            known[n, x] = new_psi(int(n), x)
        return known[n, x]

    def new_psi(n: int, x: Any) -> Any:
        sign = (-1) ** (n + 1)
        if n == 0 and x < 1e8:
            return mpmath.psi(0, x)
        if -1 < x < 60:
            return psi(n, x + 1) + sign * mpmath.factorial(n) / x ** (n + 1)
        if x < 0:  # what is left of the poles, from both sides of them
            rest = x - mpmath.floor(x)
            return psi(n, rest) + sign * (psi(n, 1 - rest) - psi(n, 1 - x))
        # the asymptotic series, https://dlmf.nist.gov/5.15: its terms fall below 1e-60 at 60
        terms = (
            [-log(x), half / x] if n == 0 else [mpmath.factorial(n - 1) / x**n, mpmath.factorial(n) / 2 / x ** (n + 1)]
        )
        if n not in series:
            series[n] = [
                mpmath.bernoulli(2 * k) * mpmath.factorial(2 * k + n - 1) / mpmath.factorial(2 * k)
                for k in range(1, 40)
            ]
        terms += [factor / x ** (2 * k + n) for k, factor in enumerate(series[n], 1)]
        return sign * mpmath.fsum(terms)

    def psi_terms(n: Any, x: Any) -> Sequence[Any]:
        n = int(n)
        if x > 0:
            return psi(n, x + 1), mpmath.factorial(n) / x ** (n + 1)
        if n == 0:
            return psi(0, 2 - x), one / (1 - x), psi(0, x) - psi(0, 1 - x)
        return (mpmath.factorial(n) / (x - mpmath.nint(x)) ** (n + 1),)

    def lgamma_terms(x: Any) -> Sequence[Any]:
        if x > 0:
            return (x - half) * log(x), x
        return lgamma(1 - x), log(abs(mpmath.sinpi(x)) / mpmath.pi)

    @functools.cache
    def normal_ppf(p: Any) -> Any:
        if not 0 < p < 1:
            return mpmath.nan
        if p >= half:
            return 0 * p if p == half else -normal_ppf(1 - p)
        x = -sqrt(-two * log(p)) if p < 0.2 else (p - half) * sqrt(two * mpmath.pi)
        for _ in range(200):  # Newton's method on the logarithm
            step = (log(normal_cdf(x)) - log(p)) * normal_cdf(x) / normal(x)
            x -= step
            if abs(step) < max(one, abs(x)) * mpmath.mpf(10) ** (5 - mp.dps):
                break
        return x

    def bessel(order: int, x: Any) -> Any:
        if abs(x) < 1e4:
            return mpmath.besselj(order, x)
        z, turn, terms = abs(x), mpmath.pi * (2 * order + 1) / 4, [one]
        for k in range(1, 60):  # https://dlmf.nist.gov/10.17.E3
            terms.append(terms[-1] * (4 * order - (2 * k - 1) ** 2) / (k * 8 * z))
        even = mpmath.fsum((-1) ** k * t for k, t in enumerate(terms[::2]))
        odd = mpmath.fsum((-1) ** k * t for k, t in enumerate(terms[1::2]))
        c = mpmath.cos(z) * mpmath.cos(turn) + mpmath.sin(z) * mpmath.sin(turn)
        s = mpmath.sin(z) * mpmath.cos(turn) - mpmath.cos(z) * mpmath.sin(turn)
        return (mpmath.sign(x) if order else one) * sqrt(two / (mpmath.pi * z)) * (even * c - odd * s)

    def bessel_slope(x: Any) -> Any:
        return bessel(0, x) - bessel(1, x) / x if abs(x) > 1e-9 else half - 3 * x * x / 16

    def height(x: Any) -> Sequence[Any]:  # of the oscillation: the unit from the first zero on
        return () if abs(x) < 1.5 else (sqrt(two / (mpmath.pi * abs(x))),)

    def bessel_terms(x: Any) -> Sequence[Any]:
        return bessel(0, x), bessel(1, x) / (x or 1), *height(x)

    def gamma_pdf(a: Any, x: Any) -> Any:
        return exp((a - 1) * log(x) - x - mpmath.loggamma(a)) if x > 0 else mpmath.nan

    def beta_pdf(a: Any, b: Any, x: Any) -> Any:
        scale = mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)
        return exp((a - 1) * log(x) + (b - 1) * log1p(-x) + scale) if 0 < x < 1 else mpmath.nan

    def summed(x: Any, factor: Callable[[int], Any]) -> Any:
        total = term = one
        k = 0
        while term > total * mpmath.mpf(10) ** (-mp.dps - 3):
            k += 1
            term *= factor(k) * x
            total += term
        return total

    @functools.cache
    def gamma_parts(a: Any, x: Any) -> tuple[Any, Any]:
        if not x > 0:
            return mpmath.nan, mpmath.nan
        if x < a + 1:
            lower = x / a * gamma_pdf(a, x) * summed(x, lambda k: 1 / (a + k))
            return lower, 1 - lower
        f, steps = x, int(mp.dps**2 / x / 2.5 + 20 * sqrt(a) + 60)
        for k in range(steps, 0, -1):  # https://dlmf.nist.gov/8.9.E2
            f = x + 2 * k - 1 - a + k * (a - k) / (f if k < steps else x + 2 * k + 1 - a)
        return 1 - x * gamma_pdf(a, x) / f, x * gamma_pdf(a, x) / f

    @functools.cache
    def beta_cdf(a: Any, b: Any, x: Any) -> Any:
        if not 0 < x < 1:
            return mpmath.nan
        if x > a / (a + b):
            return 1 - beta_cdf(b, a, 1 - x)
        return x * (1 - x) / a * beta_pdf(a, b, x) * mpmath.hyp2f1(a + b, 1, a + 1, x)  # 8.17.8

    def beta_terms(a: Any, b: Any, x: Any) -> Sequence[Any]:
        size = (abs(a - 1) / x + abs(b - 1) / (1 - x)) * (1 + (b + 1) / 8)  # of neighbours of x
        return [(y + least) * size for y in logarithmic(beta_pdf(a, b, x), x * (1 - x))]

    least = two**-1022  # of a subnormal density a slope has as few digits

    def logarithmic(value: Any, width: Any = 1) -> Sequence[Any]:  # the unit of what is computed by its logarithm
        return (value * (3 + abs(log(value * width))) * 5 / 4,) if value > 0 else ()

    unary: dict[str, tuple[Exact, Exact]] = {
        "neg": (lambda x: -x, lambda x: -one),
        "relu": (lambda x: max(x, 0 * x), lambda x: one if x > 0 else 0 * x),
        "exp": (exp, exp),
        "log": (log, lambda x: one / x),
        "tanh": (mpmath.tanh, lambda x: 4 * exp(-2 * abs(x)) / (1 + exp(-2 * abs(x))) ** 2),
        "abs": (abs, lambda x: one if x > 0 else -one),
        "sign": (lambda x: one if x > 0 else -one, lambda x: 0 * x),
        "floor": (mpmath.floor, lambda x: 0 * x),
        "round": (mpmath.nint, lambda x: 0 * x),
        "exp2": (lambda x: two**x, lambda x: ln2 * two**x),
        "expm1": (mpmath.expm1, exp),
        "log2": (lambda x: log(x) / ln2, lambda x: one / (ln2 * x)),
        "log10": (lambda x: log(x) / ln10, lambda x: one / (ln10 * x)),
        "log1p": (log1p, lambda x: one / (one + x)),
        "sqrt": (sqrt, lambda x: half / sqrt(x)),
        "cbrt": (
            lambda x: mpmath.cbrt(x) if x > 0 else -mpmath.cbrt(-x),
            lambda x: one / (3 * mpmath.cbrt(abs(x)) ** 2),
        ),
        "square": (lambda x: x * x, lambda x: two * x),
        "reciprocal": (lambda x: one / x, lambda x: -one / (x * x)),
        "sin": (mpmath.sin, mpmath.cos),
        "cos": (mpmath.cos, lambda x: -mpmath.sin(x)),
        "tan": (mpmath.tan, lambda x: one / mpmath.cos(x) ** 2),
        "asin": (mpmath.asin, lambda x: one / sqrt((one - x) * (one + x))),
        "acos": (mpmath.acos, lambda x: -one / sqrt((one - x) * (one + x))),
        "atan": (mpmath.atan, lambda x: one / (one + x * x)),
        "sinh": (mpmath.sinh, mpmath.cosh),
        "cosh": (mpmath.cosh, mpmath.sinh),
        "asinh": (
            lambda x: mpmath.asinh(abs(x)) * (one if x >= 0 else -one),
            lambda x: one / sqrt(one + x * x),
        ),
        "acosh": (mpmath.acosh, lambda x: one / sqrt((x - one) * (x + one))),
        "atanh": (
            lambda x: half * (log1p(x) - log1p(-x)),
            lambda x: one / ((one - x) * (one + x)),
        ),
        "entr": (
            lambda x: -x * log(x) if x > 0 else 0 * x if x == 0 else -mpmath.inf,
            lambda x: -one - log(x) if x > 0 else mpmath.nan,
        ),
        "sigmoid": (sigmoid, sigmoid_slope),
        "logistic_pdf": (sigmoid_slope, lambda x: -mpmath.tanh(half * x) * sigmoid_slope(x)),
        "logsigmoid": (lambda x: -softplus(-x), lambda x: sigmoid(-x)),
        "softplus": (softplus, sigmoid),
        "erf": (mpmath.erf, lambda x: 2 / sqrt(mpmath.pi) * exp(-x * x)),
        "erfc": (mpmath.erfc, lambda x: -2 / sqrt(mpmath.pi) * exp(-x * x)),
        "normal_cdf": (normal_cdf, normal),
        "normal_pdf": (normal, lambda x: -x * normal(x)),
        "gaussian": (lambda x: exp(-x * x), lambda x: -2 * x * exp(-x * x)),
    }
    binary: dict[str, tuple[Exact, Exact | None, Exact | None]] = {
        "add": (lambda x, y: x + y, lambda x, y: one, lambda x, y: one),
        "sub": (lambda x, y: x - y, lambda x, y: one, lambda x, y: -one),
        "mul": (lambda x, y: x * y, lambda x, y: y, lambda x, y: x),
        "div": (lambda x, y: x / y, lambda x, y: one / y, lambda x, y: -x / (y * y)),
        "pow": (
            power,
            lambda x, y: y * power(x, y) / x if y else 0 * x,
            lambda x, y: power(x, y) * log(x) if x > 0 else 0 * x if x == 0 and y >= 0 else mpmath.nan,
        ),
        "remainder": (
            lambda x, y: x % y if y else mpmath.nan,
            lambda x, y: one,
            lambda x, y: -mpmath.floor(x / y),
        ),
        "minimum": (min, lambda x, y: (x < y) + half * (x == y), lambda x, y: (y < x) + half * (x == y)),
        "maximum": (max, lambda x, y: (x > y) + half * (x == y), lambda x, y: (y > x) + half * (x == y)),
        "atan2": (mpmath.atan2, lambda y, x: x / (x * x + y * y), lambda y, x: -y / (x * x + y * y)),
        "hypot": (
            lambda x, y: sqrt(x * x + y * y),
            lambda x, y: x / sqrt(x * x + y * y),
            lambda x, y: y / sqrt(x * x + y * y),
        ),
        "xlogy": (
            lambda x, y: x * log(y) if x else 0 * x,
            lambda x, y: log(y) if y else -mpmath.inf,
            lambda x, y: (x / y if x else 0 * x) if y >= 0 else mpmath.nan,
        ),
        "xlog1py": (
            lambda x, y: x * log1p(y) if x else 0 * x,
            lambda x, y: log1p(y) if y != -1 else -mpmath.inf,
            lambda x, y: (x / (one + y) if x else 0 * x) if y >= -1 else mpmath.nan,
        ),
        "leaky_relu": (
            lambda x, slope: x if x > 0 else slope * x,
            lambda x, slope: one if x > 0 else slope,
            lambda x, slope: 0 * x if x > 0 else x,
        ),
        "elu": (
            lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x),
            lambda x, alpha: one if x > 0 else alpha * exp(x),
            lambda x, alpha: 0 * x if x > 0 else mpmath.expm1(x),
        ),
    }
    found = {name: Truth(value, tuple(slopes)) for name, (value, *slopes) in {**unary, **binary}.items()}
    found["stop_gradient"] = Truth(lambda x: x, (None,))
    found["silu"] = Truth(
        lambda x: x * sigmoid(x),
        (lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),),
        terms=lambda x: (sigmoid(x), x * sigmoid_slope(x)) if x < 0 else (),
    )
    found["gelu"] = Truth(
        lambda x: x * normal_cdf(x),
        (lambda x: normal_cdf(x) + x * normal(x),),
        terms=lambda x: (normal_cdf(x), x * normal(x)) if x < 0 else (),
    )

    def quantile_slope(p: Any) -> Any:
        return 1 / normal(normal_ppf(p))

    found["normal_ppf"] = Truth(normal_ppf, (quantile_slope,), None, lambda p: (quantile_slope(p) * 5 / 4,))

    def sinc(x: Any) -> Any:
        return mpmath.sinpi(x) / (mpmath.pi * x) if x else one

    def sinc_slope(x: Any) -> Any:
        if abs(x) < mpmath.mpf(10) ** -20:  # where the difference would cancel
            return -(mpmath.pi**2) * x / 3
        return (mpmath.cospi(x) - sinc(x)) / x

    def sinc_terms(x: Any) -> Sequence[Any]:  # of the difference, whose zeros begin with 1.43
        return (one / x,) if abs(x) > 1 else ()

    found["sinc"] = Truth(sinc, (sinc_slope,), None, sinc_terms)
    found["j0"] = Truth(lambda x: bessel(0, x), (lambda x: -bessel(1, x),), height, height)
    found["j1"] = Truth(lambda x: bessel(1, x), (bessel_slope,), height, bessel_terms)
    for name, k, sign in (("gammainc", 0, 1), ("gammaincc", 1, -1)):
        found[name] = Truth(
            lambda a, x, k=k: gamma_parts(a, x)[k],
            (None, lambda a, x, sign=sign: sign * gamma_pdf(a, x)),
            lambda a, x, k=k: logarithmic(gamma_parts(a, x)[k]),
            lambda a, x: logarithmic(gamma_pdf(a, x), x),
        )
    found["gamma_pdf"] = Truth(
        gamma_pdf,
        (None, lambda a, x: gamma_pdf(a, x) * ((a - 1) / x - 1)),
        lambda a, x: logarithmic(gamma_pdf(a, x), x),
        lambda a, x: [(y + least) * max(1, abs(a - 1) / x) for y in logarithmic(gamma_pdf(a, x), x)],
    )
    found["betainc"] = Truth(
        beta_cdf,
        (None, None, beta_pdf),
        lambda a, b, x: logarithmic(beta_cdf(a, b, x)),
        lambda a, b, x: logarithmic(beta_pdf(a, b, x), x * (1 - x)),
    )
    found["beta_pdf"] = Truth(
        beta_pdf,
        (None, None, lambda a, b, x: beta_pdf(a, b, x) * ((a - 1) / x - (b - 1) / (1 - x))),
        lambda a, b, x: logarithmic(beta_pdf(a, b, x), x * (1 - x)),
        beta_terms,
    )
    found["lgamma"] = Truth(lgamma, (lambda x: psi(0, x),), lgamma_terms, lambda x: psi_terms(0, x))
    found["digamma"] = Truth(
        lambda x: psi(0, x), (lambda x: psi(1, x),), lambda x: psi_terms(0, x), lambda x: psi_terms(1, x)
    )
    found["polygamma"] = Truth(psi, (None, lambda n, x: psi(n + 1, x)), psi_terms, lambda n, x: psi_terms(n + 1, x))
    found["where"] = Truth(
        lambda c, x, y: x if c else y, (None, lambda c, x, y: one * bool(c), lambda c, x, y: one * (not c))
    )
    found["clip"] = Truth(
        lambda x, low, high: min(max(x, low), high),
        (
            lambda x, low, high: one * (low < x < high),
            lambda x, low, high: one * (x < low < high),
            lambda x, low, high: one * (x > high or low > high),
        ),
    )
    found |= {
        "sum": Truth(lambda *xs: mpmath.fsum(xs)),
        "mean": Truth(lambda *xs: mpmath.fsum(xs) / len(xs)),
        "prod": Truth(lambda *xs: mpmath.fprod(xs)),
        "dot": Truth(lambda *xs: mpmath.fsum(_pairs(xs)) + xs[-1]),
        "norm": Truth(lambda *xs: mpmath.sqrt(mpmath.fsum(x * x for x in xs))),
        "max": Truth(max),
        "min": Truth(min),
        "logsumexp": Truth(lambda *xs: mpmath.log(mpmath.fsum(mpmath.exp(x) for x in xs))),
    }
    return found


def leaves_of(row: ops.Op, numbers: Sequence[float]) -> list[Any]:
    """Operands of a row as Values, but numbers where it takes only these."""
    fixed = len(row.shapes)
    return [*numbers[:fixed], *map(Value, numbers[fixed:])]


def mp_oracle(row: ops.Op) -> Exact | None:
    """The value of a row in many digits; None if nothing says what it is. To be called at the precision wanted."""
    truth = truths().get(row.name)
    return truth and truth.value


def _pairs(xs: Sequence[Any]) -> list[Any]:
    """w1 x1, w2 x2, ... of operands that stand as (w1, w2, ..., x1, x2, ..., bias)."""
    half = len(xs) // 2
    return [w * x for w, x in zip(xs[:half], xs[half:-1], strict=True)]


def torch_rows() -> dict[str, Callable[..., Any]]:
    """PyTorch's operation for each row that it has."""
    import torch
    from torch.nn import functional

    same_name = "add sub mul div pow neg relu exp log tanh abs sign minimum maximum exp2 expm1 log2 log10 log1p sqrt"
    same_name += " square reciprocal sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh hypot sigmoid"
    same_name += " floor round remainder erf erfc lgamma digamma xlogy sinc"
    found: dict[str, Callable[..., Any]] = {name: getattr(torch, name) for name in same_name.split()}
    found |= {name: getattr(functional, name) for name in ("logsigmoid", "softplus", "gelu", "silu")}
    found["normal_cdf"], found["normal_ppf"] = torch.special.ndtr, torch.special.ndtri
    found["entr"], found["xlog1py"] = torch.special.entr, torch.special.xlog1py
    found["clip"] = torch.clamp
    found["where"] = lambda c, x, y: torch.where(c.detach() != 0, x, y)
    found["elu"] = lambda x, alpha: functional.elu(x, alpha.item())
    found["leaky_relu"] = lambda x, slope: functional.leaky_relu(x, slope.item())
    found["sum"] = lambda *xs: torch.stack(xs).sum()
    found["mean"] = lambda *xs: torch.stack(xs).mean()
    found["prod"] = lambda *xs: torch.stack(xs).prod()
    found["norm"] = lambda *xs: torch.linalg.vector_norm(torch.stack(xs))
    found["max"] = lambda *xs: torch.stack(xs).amax()
    found["min"] = lambda *xs: torch.stack(xs).amin()
    found["logsumexp"] = lambda *xs: torch.logsumexp(torch.stack(xs), 0)
    return found


def jax_rows() -> dict[str, Callable[..., Any]]:
    """JAX's operation for each row of one or two operands that it has, in double precision."""
    import jax
    from jax import numpy as jnp
    from jax.scipy import special

    jax.config.update("jax_enable_x64", True)
    names = "exp log tanh abs sign minimum maximum exp2 expm1 log2 log10 log1p sqrt cbrt square reciprocal sin cos tan"
    names += " floor round remainder atan2 sinh cosh hypot asin acos atan asinh acosh atanh sinc"
    found: dict[str, Callable[..., Any]] = {name: getattr(jnp, name) for name in names.split()}
    found |= {"add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide, "pow": jnp.power}
    found |= {"neg": jnp.negative, "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu}
    found |= {"logsigmoid": jax.nn.log_sigmoid, "softplus": jax.nn.softplus, "elu": jax.nn.elu}
    found |= {"leaky_relu": jax.nn.leaky_relu, "gelu": lambda x: jax.nn.gelu(x, approximate=False)}
    found |= {"erf": special.erf, "erfc": special.erfc, "normal_cdf": special.ndtr, "normal_ppf": special.ndtri}
    found |= {"lgamma": special.gammaln, "digamma": special.digamma}
    found |= {"xlogy": special.xlogy, "xlog1py": special.xlog1py, "entr": special.entr}
    return found
