"""What one element of an array is computed from: rows of the operation table, and their derivatives.

An expression is a tuple: ``("in", k)`` is the k-th operand of a Compute, ``("const", c)`` a number, ``("mask", m)`` an
array of bools over its axes, ``("lt", a, b)`` and the like a comparison, ``("where", condition, a, b)`` a choice,
``("guarded", condition, a, b)`` one that is seldom for a, ``("by rule", x, a, p, ...)`` x, whose derivative with
respect to a is p, and ``("tanh", a)`` the row of that name. Derivatives are the rows' own rules, read over such
expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from wengert.ops import AS_OPERANDS, NONNEGATIVE, Operators, interpret, namespace, table

__all__ = ["COMPARISONS", "LEAVES", "ONE", "ZERO", "Expr", "cotangents", "expand", "has_mask", "inputs"]
__all__ += ["is_nonnegative", "may_fold", "rename", "repeated", "rewrite", "times"]

Expr = tuple[Any, ...]
LEAVES = ("in", "const", "mask")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
CHEAP = ("add", "sub", "mul", "neg", "square", "where", "stop_gradient", "relu", *COMPARISONS)
MODERATE = 2.0**64  # numbers up to this may be multiplied before what they are factors of
ONE: Expr = ("const", 1.0)
ZERO: Expr = ("const", 0.0)


class Symbolic(Operators):
    """An expression with arithmetic, so that a rule of the table can be read over it."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr: Expr = expr

    def _operated(self, name: str, *operands: Any) -> Any:
        return _made(name, *operands)

    def _apply_op(self, op: table.Op, operands: Any) -> Any:
        return _made(op.name, *operands)


def _expr(x: Any) -> Expr:
    return x.expr if isinstance(x, Symbolic) else ("const", float(x))


def _made(name: str, *operands: Any) -> Any:
    """The expression of an operation, without what multiplies by 1. (Never without what multiplies by 0: 0 * inf is
    nan; nor what adds 0: -0.0 + 0.0 is 0.0.)
    """
    a, b = operands[0], operands[-1]
    if name == "mul":
        for x, other in ((a, b), (b, a)):
            if isinstance(x, float):
                if x == 1.0:
                    return other
                if x == -1.0:
                    return -other
            if isinstance(x, Symbolic) and x.expr[0] == "div" and x.expr[1] == ("const", 1.0):
                return Symbolic(("div", _expr(other), x.expr[2]))
            known = other.expr[1] if isinstance(other, Symbolic) and other.expr[0] == "mul" else ZERO
            if isinstance(x, float) and known[0] == "const" and may_fold(x, known[1]):
                return _made("mul", x * known[1], Symbolic(other.expr[2]))
    elif name == "neg" and a.expr[0] == "neg":
        return Symbolic(a.expr[1])
    return Symbolic((name, *map(_expr, operands)))


def may_fold(a: Any, b: Any) -> Any:
    """Whether to multiply by the product of two numbers, or arrays of them, is to multiply by both: it is not where the
    one leaves the range of floats and the other comes back.
    """
    larger = (abs(a) >= 1.0) & (abs(b) >= 1.0) & (abs(a * b) <= MODERATE)
    smaller = (abs(a) <= 1.0) & (abs(b) <= 1.0) & (abs(a * b) >= 1.0 / MODERATE)
    return larger | smaller


def _choice(condition: Any, x: Any, y: Any, name: str = "where") -> Any:
    """`where`, decided at once if the condition is known."""
    if not isinstance(condition, Symbolic):
        return x if condition else y
    return Symbolic((name, condition.expr, _expr(x), _expr(y)))


def _guarded_form(condition: Any, careful: Callable[[], Any], plain: Any) -> Any:
    """`where`, of which what is rare is computed where it is needed."""
    return _choice(condition, careful(), plain, "guarded")


# What the names in a rule of the table mean when it is read over expressions: one form for all elements.
SYMBOLS: dict[str, Any] = namespace(where=_choice, _guarded_form=_guarded_form)


def expand(expr: Expr) -> Expr | None:
    """The same by the rows that its own row is written with; None for C's rows, series and a user's Python."""
    if expr[0] == "by rule":
        return expr[1]  # type: ignore[no-any-return]
    row = table.BY_NAME[expr[0]]
    rule = row.value
    if row.series is not None or row.code >= table.BUILT_IN or not isinstance(rule, FunctionType):
        return None
    try:
        return _expr(interpret(rule, SYMBOLS)(*[_symbolic(x) for x in expr[1:]]))
    except TypeError:  # it needs floats: math.sin(x), if x > 0
        return None


def _symbolic(expr: Expr) -> Any:
    return expr[1] if expr[0] == "const" else Symbolic(expr)


def partials(expr: Expr, out: Expr, nonnegative: Callable[[int], bool]) -> list[Any]:
    """The partial derivative of a row by each of its operands, as symbols; `out` stands for its value."""
    name, *operands = expr
    xs = [_symbolic(x) for x in operands]
    if name == "by rule":
        return [None, *[y for slope in xs[2::2] for y in (slope, None)]]
    if name == "relu":
        return [_choice(_made("ne", Symbolic(out), 0.0), 1.0, 0.0)]  # of nan 1, as the row says
    if name == "log" and is_nonnegative(operands[0], nonnegative):
        return [_made("div", 1.0, xs[0])]
    if name == "pow" and isinstance(xs[1], float):
        return [_power(xs[0], xs[1], Symbolic(out) if out[0] == "in" else None), None]
    row = table.BY_NAME[name]
    try:
        slopes = interpret(row.partials, SYMBOLS)(Symbolic(out), *xs)
    except TypeError:  # a user's rule that needs floats is called on each element
        code = ("const", float(row.code))
        slopes = [Symbolic(("partial", code, ("const", float(k)), out, *operands)) for k in range(len(xs))]
    return list(slopes) if isinstance(slopes, (tuple, list)) else [slopes]


def _power(x: Any, exponent: float, out: Any) -> Any:
    """The derivative of x**exponent by x: from its value where that is kept and is no help only where the derivative is
    not finite either, of small powers by products, of the rest by a power.
    """
    if exponent == 2.0:
        return 2.0 * x
    if exponent in (3.0, 4.0):
        return exponent * (x * x) if exponent == 3.0 else exponent * (x * (x * x))
    if out is not None and (exponent < 0.0 or exponent == 0.5):
        return exponent * (out / x) if exponent < 0.0 else exponent / out
    return exponent * x ** (exponent - 1.0) if exponent else 0.0


def cotangents(
    expr: Expr, gradient: Expr, out: Expr | None = None, nonnegative: Callable[[int], bool] = lambda operand: False
) -> dict[int, Expr]:
    """What each operand of an expression receives when it receives `gradient`.

    Args:
        expr: what is computed.
        gradient: the cotangent of its value.
        out: what stands for its value, if that is kept.
        nonnegative: whether an operand can only be 0, positive or nan.

    >>> cotangents(("mul", ("in", 0), ("in", 1)), ("in", 2))
    {0: ('mul', ('in', 2), ('in', 1)), 1: ('mul', ('in', 2), ('in', 0))}
    """
    received: dict[int, Any] = {}
    _spread(expr, _symbolic(gradient), out, received, nonnegative)
    return {k: _expr(total) for k, total in received.items()}


def _spread(expr: Expr, gradient: Any, out: Expr | None, received: dict[int, Any], nonnegative: Any) -> None:
    name = expr[0]
    if name == "in":
        received[expr[1]] = received[expr[1]] + gradient if expr[1] in received else gradient
    elif name == "where":
        condition, x, y = expr[1:]
        if condition[0] == "mask" and x[0] == "exp" and out is not None:  # where it is masked out it is 0, as out is
            _spread(x[1], gradient * _symbolic(out), None, received, nonnegative)
            return
        _spread(x, _choice(Symbolic(condition), gradient, 0.0), None, received, nonnegative)
        _spread(y, _choice(Symbolic(condition), 0.0, gradient), None, received, nonnegative)
    elif name == "mul" and expr[1] == expr[2]:
        _spread(expr[1], gradient * (2.0 * _symbolic(expr[1])), None, received, nonnegative)
    elif name not in LEAVES and name not in COMPARISONS and name != "stop_gradient":
        for x, slope in zip(expr[1:], partials(expr, out or expr, nonnegative), strict=True):
            if x[0] not in ("const", "mask") and slope is not None:
                _spread(x, gradient * slope, None, received, nonnegative)


def repeated(expr: Expr) -> list[Expr]:
    """The largest parts with a function in them that occur more than once.

    >>> e = ("exp", ("in", 0))
    >>> repeated(("div", e, ("add", ("const", 1.0), e)))
    [('exp', ('in', 0))]
    """
    seen: dict[Expr, int] = {}
    _count(expr, seen)
    return [part for part, times in seen.items() if times > 1]


def _count(expr: Expr, seen: dict[Expr, int]) -> bool:
    """Count the parts that hold a function; what stands in one that was met before is not looked at again."""
    if expr[0] in LEAVES:
        return False
    if expr in seen:
        seen[expr] += 1
        return True
    branches = expr[1::2] if expr[0] == "guarded" else expr[1:]  # what is seldom computed counts for nothing
    inner = [_count(branch, seen) for branch in branches]  # all of them, so that each is counted
    costly = any(inner) or expr[0] not in CHEAP
    if costly:
        seen[expr] = 1
    return costly


def leaves(expr: Expr) -> list[Expr]:
    """The operands, numbers and masks of an expression, as often as they stand there, in order of appearance."""
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if part[0] in LEAVES:
            found.append(part)
        else:
            waiting.extend(part[:0:-1])
    return found


def inputs(expr: Expr) -> list[int]:
    """The operands that an expression reads, each once, in order of appearance.

    >>> inputs(("add", ("in", 1), ("mul", ("in", 0), ("in", 1))))
    [1, 0]
    """
    return list(dict.fromkeys([leaf[1] for leaf in leaves(expr) if leaf[0] == "in"]))


def times(expr: Expr, k: int) -> int:
    """How often an expression reads an operand.

    >>> times(("mul", ("in", 0), ("add", ("in", 1), ("in", 0))), 0)
    2
    """
    return [leaf[1] for leaf in leaves(expr) if leaf[0] == "in"].count(k)


def has_mask(expr: Expr) -> bool:
    """Whether an expression names an array of bools over its axes."""
    return "mask" in [leaf[0] for leaf in leaves(expr)]


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """The expression with each leaf replaced by what `leaf` makes of it."""
    if expr[0] in LEAVES:
        return leaf(expr)
    return (expr[0], *(rewrite(branch, leaf) for branch in expr[1:]))


def rename(expr: Expr, names: dict[int, int]) -> Expr:
    """The expression with its operands renumbered."""
    return rewrite(expr, lambda leaf: ("in", names[leaf[1]]) if leaf[0] == "in" else leaf)


def is_nonnegative(expr: Expr, nonnegative: Callable[[int], bool] = lambda operand: False) -> bool:
    """Whether an expression can only be 0, positive or nan; `nonnegative` says so of an operand."""
    name, *branches = expr
    if name == "in":
        return nonnegative(branches[0])
    if name == "const":
        return bool(branches[0] >= 0.0)
    if name == "mul" and branches[0] == branches[1]:
        return True
    if name in ("where", "guarded"):
        return all(is_nonnegative(branch, nonnegative) for branch in branches[1:])
    sign = table.BY_NAME[name].sign if name in table.BY_NAME else ""
    if sign == AS_OPERANDS:
        return all(is_nonnegative(branch, nonnegative) for branch in branches)
    return sign == NONNEGATIVE
