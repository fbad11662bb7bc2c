"""What an expression comes to at one point: the rows of the operation table, and comparisons, by an emitter."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi, sqrt

from wengert.compiler.backends.native.emitter import Emitter, Register
from wengert.compiler.backends.spellings import Library
from wengert.compiler.ir import COMPARISONS, LEAVES, Expr
from wengert.errors import WengertError
from wengert.ops import special

__all__ = ["C_FUNCTIONS", "Unsupported", "evaluate", "expanded", "extreme"]

FORMS = ("gaussian", "erf", "erfc", "normal_cdf", "normal_pdf")
LIBRARY = Library(
    "c", "", dict.fromkeys(FORMS, "x")
)  # which rows stay as they are, the others being written by their rules
SAME = """exp log tanh exp2 expm1 log2 log10 log1p sqrt floor hypot sin cos tan sinh cosh asin acos atan atan2 asinh
acosh atanh erf erfc"""
SIGNS = ("add", "sub", "mul", "div")


expanded: Callable[..., Expr] = LIBRARY.expanded  # an expression by the rows that are written here, as far as they are


class Unsupported(WengertError):  # noqa: N818  (as the lifter has Unliftable)
    """Something that machine code is not made of: the program runs as NumPy."""


Truth = Register | bool  # a mask is known where the point is


def evaluate(to: Emitter, expr: Expr, leaf: Callable[[Expr], Truth]) -> Register:
    """The number that an expression comes to; `leaf` gives its operands and masks.

    Raises:
        Unsupported: part of it can only be computed in Python.
    """
    memo: dict[int, Truth] = {}

    def value(part: Expr) -> Truth:
        if part[0] == "const":
            return to.number(part[1])
        if part[0] in LEAVES:
            return leaf(part)
        found = memo.get(id(part))
        if found is None:
            found = memo[id(part)] = _made(to, part, value)
        return found

    return _number(to, value(expr))


def _number(to: Emitter, x: Truth) -> Register:
    if isinstance(x, bool):
        return to.number(float(x))
    return to.select(x, to.number(1.0), to.number(0.0)) if x.kind == "b" else x


def _made(to: Emitter, expr: Expr, value: Callable[[Expr], Truth]) -> Truth:
    name = expr[0]
    if name == "where":
        condition = value(expr[1])
        if isinstance(condition, bool):
            return value(expr[2] if condition else expr[3])
        if condition.kind != "b":
            condition = to.compare("ne", condition, to.number(0.0))
        return to.select(condition, _number(to, value(expr[2])), _number(to, value(expr[3])))
    if name == "pow" and expr[2][0] == "const" and expr[2][1] in (-1.0, 1.0, 2.0, 3.0, 4.0):
        return _power(to, _number(to, value(expr[1])), expr[2][1])
    row = ROWS.get(name)
    if row is None and name not in COMPARISONS:
        what = "a rule of the user's own" if name == "partial" else name
        raise Unsupported(f"{what} is computed in Python")
    xs = [_number(to, value(part)) for part in expr[1:]]
    return row(to, *xs) if row else to.compare(name, *xs)


def _power(to: Emitter, x: Register, exponent: float) -> Register:
    if exponent == -1.0:
        return to.arithmetic("div", to.number(1.0), x)
    if exponent == 1.0:
        return x
    squared = to.arithmetic("mul", x, x)
    return squared if exponent == 2.0 else to.arithmetic("mul", squared, x if exponent == 3.0 else squared)


def extreme(to: Emitter, name: str, x: Register, y: Register) -> Register:
    """maximum or minimum; nan if either is."""
    beyond = to.compare("gt" if name == "maximum" else "lt", x, y)
    return to.select(to.either(beyond, to.compare("ne", x, x)), x, y)


def _relu(to: Emitter, x: Register) -> Register:
    return to.select(to.compare("le", x, to.number(0.0)), to.number(0.0), x)


def _clip(to: Emitter, x: Register, low: Register, high: Register) -> Register:
    return extreme(to, "minimum", extreme(to, "maximum", x, low), high)


def _sign(to: Emitter, x: Register) -> Register:
    one = to.call("copysign", to.number(1.0), x)
    return to.select(to.compare("gt", to.call("fabs", x), to.number(0.0)), one, x)


def _remainder(to: Emitter, x: Register, y: Register) -> Register:
    zero = to.number(0.0)
    rest = to.call("fmod", x, y)
    moved = to.arithmetic("add", rest, y)
    above = to.select(to.compare("lt", y, zero), moved, rest)
    below = to.select(to.compare("gt", y, zero), moved, rest)
    whole = to.select(to.compare("eq", rest, zero), to.call("copysign", zero, y), rest)
    return to.select(to.compare("gt", rest, zero), above, to.select(to.compare("lt", rest, zero), below, whole))


def _cbrt(to: Emitter, x: Register) -> Register:
    y, size = to.call("cbrt", x), to.call("fabs", x)
    step = to.arithmetic("sub", y, to.arithmetic("div", x, to.arithmetic("mul", y, y)))
    better = to.arithmetic("sub", y, to.arithmetic("div", step, to.number(3.0)))
    ordinary = to.select(to.compare("lt", size, to.number(inf)), better, y)
    return to.select(to.compare("gt", size, to.number(0.0)), ordinary, y)


def _bell(to: Emitter, x: Register, factor: float) -> tuple[Register, Register]:
    """As `special._bell`: exp(-factor * x*x), and the relative error of that."""
    low = to.select(to.compare("lt", x, to.number(-40.0)), to.number(-40.0), x)
    x = to.select(to.compare("gt", low, to.number(40.0)), to.number(40.0), low)
    upper = to.arithmetic("mul", to.call("rint", to.arithmetic("mul", x, to.number(2.0**20))), to.number(2.0**-20))
    power = to.call("exp", to.arithmetic("mul", to.number(-factor), to.arithmetic("mul", upper, upper)))
    rest = to.arithmetic("mul", to.arithmetic("sub", upper, x), to.arithmetic("add", upper, x))
    return power, to.call("expm1", to.arithmetic("mul", to.number(factor), rest))


def _gaussian(to: Emitter, x: Register) -> Register:
    power, rest = _bell(to, x, 1.0)
    return to.arithmetic("add", power, to.arithmetic("mul", power, rest))


def _normal_pdf(to: Emitter, x: Register) -> Register:
    power, rest = _bell(to, x, 0.5)
    peak = to.number(special.PEAK)
    small = to.arithmetic("add", to.arithmetic("mul", peak, rest), to.number(special.PEAK_REST))
    return to.arithmetic("mul", power, to.arithmetic("add", peak, small))


def _normal_cdf(to: Emitter, x: Register) -> Register:
    """As `special.normal_cdf`."""
    root, split = to.number(special.ROOT), to.number(special.SPLIT)
    upper_root, lower_root = to.number(special.ROOT_UPPER), to.number(special.ROOT_LOWER)
    far = to.select(to.compare("lt", x, to.number(-38.6)), to.number(-38.6), x)
    y = to.select(to.compare("gt", far, to.number(8.3)), to.number(8.3), far)

    def mul(a: Register, b: Register) -> Register:
        return to.arithmetic("mul", a, b)

    def add(a: Register, b: Register) -> Register:
        return to.arithmetic("add", a, b)

    t = mul(to.negative(y), root)
    large = mul(y, split)
    upper = to.arithmetic("sub", large, to.arithmetic("sub", large, y))
    lower = to.arithmetic("sub", y, upper)
    rest = add(add(mul(upper, upper_root), t), mul(upper, lower_root))
    rest = add(add(add(rest, mul(lower, upper_root)), mul(lower, lower_root)), mul(y, to.number(special.ROOT_REST)))
    tail = to.arithmetic("div", mul(rest, _gaussian(to, t)), to.number(sqrt(pi)))
    made = add(mul(to.number(0.5), to.call("erfc", t)), tail)
    made = to.select(to.compare("le", x, to.number(-38.6)), to.number(0.0), made)
    return to.select(to.compare("ge", x, to.number(8.3)), to.number(1.0), made)


def _in_c(name: str) -> Callable[..., Register]:
    return lambda to, *xs: to.call(name, *xs)


def _signed(sign: str) -> Callable[..., Register]:
    return lambda to, a, b: to.arithmetic(sign, a, b)


ROWS: dict[str, Callable[..., Register]] = {
    **{name: _in_c(name) for name in (*SAME.split(), "pow")},
    **{sign: _signed(sign) for sign in SIGNS},
    "abs": _in_c("fabs"),
    "round": _in_c("rint"),
    "neg": lambda to, x: to.negative(x),
    "square": lambda to, x: to.arithmetic("mul", x, x),
    "reciprocal": lambda to, x: to.arithmetic("div", to.number(1.0), x),
    "stop_gradient": lambda to, x: x,
    "maximum": lambda to, x, y: extreme(to, "maximum", x, y),
    "minimum": lambda to, x, y: extreme(to, "minimum", x, y),
    "relu": _relu,
    "clip": _clip,
    "sign": _sign,
    "remainder": _remainder,
    "cbrt": _cbrt,
    "gaussian": _gaussian,
    "normal_pdf": _normal_pdf,
    "normal_cdf": _normal_cdf,
}

C_FUNCTIONS = sorted({*SAME.split(), "pow", "cbrt", "fmod"} - {"sqrt", "floor"})
"""What is called of the C library."""
