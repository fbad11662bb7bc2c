"""Vector functions, written with the operations of LLVM: exp, log and functions based on them.

Their error is at most two units in the last place, where the C library has half of one. The methods are those of the C
libraries: a power of 2 times a polynomial on a short interval (W. J. Cody and W. Waite, Software Manual for the
Elementary Functions, 1980), and for logarithms a series in (m - 1) / (m + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, log, nan

from wengert.compiler.backends.native.emitter import BitEmitter, Register

__all__ = ["VECTOR_FUNCTIONS"]

LN2_UPPER, LN2_LOWER = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # of the first a multiple is exact
SHIFTER = 6755399441055744.0  # 1.5 * 2**52: added to an integer, it moves that to the lowest bits
SHIFTER_BITS = 0x4338000000000000
HALF_BITS = 0x3FE6A09E667F3BCD  # of the square root of 1/2


def _clamped(to: BitEmitter, x: Register, low: float, high: float) -> Register:
    x = to.select(to.compare("lt", x, to.number(low)), to.number(low), x)
    return to.select(to.compare("gt", x, to.number(high)), to.number(high), x)


def _reduced(to: BitEmitter, x: Register) -> tuple[Register, Register]:
    """Return the integer nearest to x / log 2, and e**r - 1 for the remainder r."""
    whole = to.call("rint", to.arithmetic("mul", x, to.number(1.0 / log(2.0))))
    minus = to.negative(whole)
    rest = to.fma(minus, to.number(LN2_LOWER), to.fma(minus, to.number(LN2_UPPER), x))
    total = to.number(1.0 / factorial(13))
    for k in range(12, 1, -1):
        total = to.fma(total, rest, to.number(1.0 / factorial(k)))
    power = to.fma(to.arithmetic("mul", rest, rest), total, rest)
    shifted = to.reread(to.arithmetic("add", whole, to.number(SHIFTER)), "i")
    return to.bits("sub", shifted, to.integer(SHIFTER_BITS)), power


def _power_of_two(to: BitEmitter, exponent: Register) -> Register:
    return to.reread(to.bits("shl", to.bits("add", exponent, to.integer(1023)), to.integer(52)), "f")


def exp(to: BitEmitter, x: Register) -> Register:
    """Compute e**x, in two steps of the exponent so that subnormal results are right."""
    whole, power = _reduced(to, _clamped(to, x, -760.0, 711.0))
    half = to.bits("ashr", whole, to.integer(1))
    result = to.arithmetic("mul", to.arithmetic("add", power, to.number(1.0)), _power_of_two(to, half))
    return to.arithmetic("mul", result, _power_of_two(to, to.bits("sub", whole, half)))


def expm1(to: BitEmitter, x: Register) -> Register:
    """Compute e**x - 1; tiny numbers and zeros are returned as they are."""
    whole, power = _reduced(to, _clamped(to, x, -50.0, 709.7))
    scale = _power_of_two(to, whole)
    result = to.fma(power, scale, to.arithmetic("sub", scale, to.number(1.0)))
    result = to.select(to.compare("lt", to.call("fabs", x), to.number(1e-300)), x, result)
    return to.select(to.compare("gt", x, to.number(709.7)), exp(to, x), result)


def tanh(to: BitEmitter, x: Register) -> Register:
    size = to.call("fabs", x)
    whole, power = _reduced(to, _clamped(to, to.arithmetic("mul", size, to.number(-2.0)), -50.0, 1.0))
    scale = _power_of_two(to, whole)
    less = to.fma(power, scale, to.arithmetic("sub", scale, to.number(1.0)))
    result = to.arithmetic("div", less, to.arithmetic("add", less, to.number(2.0)))
    result = to.select(to.compare("lt", size, to.number(1e-300)), x, result)
    return to.call("copysign", result, x)


def logarithm(to: BitEmitter, x: Register) -> Register:
    """Compute the natural logarithm; -inf at 0, nan below."""
    tiny = to.compare("lt", x, to.number(2.3e-308))
    scaled = to.select(tiny, to.arithmetic("mul", x, to.number(2.0**54)), x)
    bits = to.reread(scaled, "i")
    exponent = to.bits("ashr", to.bits("sub", bits, to.integer(HALF_BITS)), to.integer(52))
    mantissa = to.reread(to.bits("sub", bits, to.bits("shl", exponent, to.integer(52))), "f")
    e = to.arithmetic("sub", to.as_float(exponent), to.select(tiny, to.number(54.0), to.number(0.0)))
    a = to.arithmetic("sub", mantissa, to.number(1.0))
    s = to.arithmetic("div", a, to.arithmetic("add", mantissa, to.number(1.0)))
    z = to.arithmetic("mul", s, s)
    total = to.number(2.0 / 21.0)
    for k in range(19, 1, -2):
        total = to.fma(total, z, to.number(2.0 / k))
    # log m = s (2 + z q) = a - s (a - z q), whose first term is exact
    less = to.arithmetic("mul", s, to.arithmetic("sub", a, to.arithmetic("mul", total, z)))
    low = to.arithmetic("sub", to.arithmetic("mul", e, to.number(LN2_LOWER)), less)
    result = to.fma(e, to.number(LN2_UPPER), to.arithmetic("add", low, a))
    result = to.select(to.compare("lt", x, to.number(inf)), result, x)
    pole = to.select(to.compare("eq", x, to.number(0.0)), to.number(-inf), to.number(nan))
    return to.select(to.compare("gt", x, to.number(0.0)), result, pole)


def log1p(to: BitEmitter, x: Register) -> Register:
    """Compute log(1 + x), correcting the rounding of 1 + x."""
    above = to.arithmetic("add", x, to.number(1.0))
    plain = logarithm(to, above)
    ratio = to.arithmetic("div", x, to.arithmetic("sub", above, to.number(1.0)))
    result = to.select(to.compare("eq", above, to.number(1.0)), x, to.arithmetic("mul", plain, ratio))
    result = to.select(to.compare("eq", x, to.number(inf)), x, result)
    return to.select(to.compare("le", above, to.number(0.0)), plain, result)


VECTOR_FUNCTIONS: dict[str, Callable[[BitEmitter, Register], Register]] = {
    "exp": exp,
    "expm1": expm1,
    "tanh": tanh,
    "log": logarithm,
    "log1p": log1p,
}
