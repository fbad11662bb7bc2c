"""The elementwise expressions of a Compute, and their derivatives.

An expression is a tuple: ``("in", k)`` is the k-th operand of a Compute, ``("const", c)`` a number, ``("mask", m)`` an
array of bools over its axes, ``("lt", a, b)`` and the like a comparison, ``("where", condition, a, b)`` a choice,
``("guarded", condition, a, b)`` a choice that rarely takes a, ``("by rule", x, a, p, ...)`` x, whose derivative with
respect to a is p, and ``("tanh", a)`` the row of that name in the operation table. Derivatives come from the rules of
these rows, called with symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from wengert.ops import AS_OPERANDS, NONNEGATIVE, VALUES, Operators, interpret, namespace, table

__all__ = ["CHEAP", "CHOICES", "COMPARISONS", "FURTHER", "LEAVES", "ONE", "ZERO", "Expr", "compact", "cotangents"]
__all__ += ["expand", "has_mask", "inputs", "is_nonnegative", "may_fold", "rename", "repeated", "rewrite"]
__all__ += ["rewrite_masks", "tangent", "times"]

Expr = tuple[Any, ...]
Operand = TypeVar("Operand")
LEAVES = ("in", "const", "mask")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
CHOICES = ("where", "guarded")
CHEAP = ("add", "sub", "mul", "neg", "square", "where", "stop_gradient", "relu", *COMPARISONS)
MODERATE = 2.0**64  # constant factors may be folded while their product stays within this range
ONE: Expr = ("const", 1.0)
ZERO: Expr = ("const", 0.0)


class Symbolic(Operators):
    """An expression with operators, so that a rule of the table can be called with it."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr: Expr = expr

    def _operated(self, name: str, *operands: Any) -> Any:
        return _operation(name, *operands)

    def _apply_op(self, op: table.Op, operands: Any) -> Any:
        return _operation(op.name, *operands)


def _expr(x: Any) -> Expr:
    return x.expr if isinstance(x, Symbolic) else ("const", float(x))


def _operation(name: str, *operands: Any) -> Any:
    """Build an operation, dropping factors of 1, but no factor of 0 (0 * inf is nan) and no + 0 (-0.0 + 0.0 is 0.0)."""
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
                return _operation("mul", x * known[1], Symbolic(other.expr[2]))
    elif name == "neg" and a.expr[0] == "neg":
        return Symbolic(a.expr[1])
    return Symbolic((name, *map(_expr, operands)))


def may_fold(a: Any, b: Any) -> Any:
    """Return True if two constant factors, or arrays of them, may be multiplied first without over- or underflow."""
    larger = (abs(a) >= 1.0) & (abs(b) >= 1.0) & (abs(a * b) <= MODERATE)
    smaller = (abs(a) <= 1.0) & (abs(b) <= 1.0) & (abs(a * b) >= 1.0 / MODERATE)
    return larger | smaller


def _choice(condition: Any, x: Any, y: Any, name: str = "where") -> Any:
    if not isinstance(condition, Symbolic):
        return x if condition else y
    return Symbolic((name, condition.expr, _expr(x), _expr(y)))


def _guarded_form(condition: Any, careful: Callable[[], Any], plain: Any) -> Any:
    return _choice(condition, careful(), plain, "guarded")


# The globals of a rule that is called with symbols: one form for all elements.
SYMBOLS: dict[str, Any] = namespace(where=_choice, _guarded_form=_guarded_form)
# and of one whose derivative is differentiated again: see the end of the table.
FURTHER: dict[str, Any] = namespace(
    where=_choice, _guarded_form=_guarded_form, **{name: VALUES[name] for name in ("abs", "_one_less_square")}
)


def expand(expr: Expr) -> Expr | None:
    """Rewrite an operation by the rows that its rule calls; None for C functions, series and user-written Python."""
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


def partials(expr: Expr, out: Expr, nonnegative: Callable[[int], bool], rules: dict[str, Any]) -> list[Any]:
    """Return the partial derivatives of an operation with respect to its operands; `out` is an expression for its
    value, and `rules` the globals of its rule.
    """
    name, *operands = expr
    xs = [_symbolic(x) for x in operands]
    if name == "by rule":
        return [None, *[y for slope in xs[2::2] for y in (slope, None)]]
    if name == "relu":
        return [_choice(_operation("ne", Symbolic(out), 0.0), 1.0, 0.0)]  # 1 at nan, like the row's own rule
    if name == "log" and is_nonnegative(operands[0], nonnegative):
        return [_operation("div", 1.0, xs[0])]
    if name == "pow" and isinstance(xs[1], float):
        return [_power(xs[0], xs[1], Symbolic(out) if out[0] == "in" else None), None]
    row = table.BY_NAME[name]
    try:
        derivatives = interpret(row.partials, rules)(Symbolic(out), *xs)
    except TypeError:  # a user's rule that needs floats: call it element by element
        code = ("const", float(row.code))
        derivatives = [Symbolic(("partial", code, ("const", float(k)), out, *operands)) for k in range(len(xs))]
    return list(derivatives) if isinstance(derivatives, (tuple, list)) else [derivatives]


def _power(x: Any, exponent: float, out: Any) -> Any:
    """Return the derivative of x**exponent with respect to x.

    It uses the stored value of the power where that loses nothing, products for small powers, and else another power.
    """
    if exponent == 2.0:
        return 2.0 * x
    if exponent in (3.0, 4.0):
        return exponent * (x * x) if exponent == 3.0 else exponent * (x * (x * x))
    if out is not None and (exponent < 0.0 or exponent == 0.5):
        return exponent * (out / x) if exponent < 0.0 else exponent / out
    return exponent * x ** (exponent - 1.0) if exponent else 0.0


def cotangents(
    expr: Expr,
    gradient: Expr,
    out: Expr | None = None,
    nonnegative: Callable[[int], bool] = lambda operand: False,
    rules: dict[str, Any] = SYMBOLS,
) -> dict[int, Expr]:
    """Return the cotangent that each operand receives when the expression receives `gradient`.

    Args:
        expr: the expression.
        gradient: the cotangent of its value.
        out: an expression for its value, if that is stored.
        nonnegative: whether an operand is known to be 0, positive or nan.
        rules: FURTHER for cotangents that are differentiated again.

    >>> cotangents(("mul", ("in", 0), ("in", 1)), ("in", 2))
    {0: ('mul', ('in', 2), ('in', 1)), 1: ('mul', ('in', 2), ('in', 0))}
    """
    received: dict[int, Any] = {}
    _spread(expr, _symbolic(gradient), out, received, (nonnegative, rules))
    return {k: _expr(total) for k, total in received.items()}


def _spread(expr: Expr, gradient: Any, out: Expr | None, received: dict[int, Any], known: Any) -> None:
    name = expr[0]
    if name == "in":
        received[expr[1]] = received[expr[1]] + gradient if expr[1] in received else gradient
    elif name in CHOICES:
        condition, x, y = expr[1:]
        if condition[0] == "mask" and x[0] == "exp" and out is not None:  # where it is masked out it is 0, as out is
            _spread(x[1], gradient * _symbolic(out), None, received, known)
            return
        _spread(x, _choice(Symbolic(condition), gradient, 0.0, name), None, received, known)
        _spread(y, _choice(Symbolic(condition), 0.0, gradient), None, received, known)
    elif name == "mul" and expr[1] == expr[2]:
        _spread(expr[1], gradient * (2.0 * _symbolic(expr[1])), None, received, known)
    elif name not in LEAVES and name not in COMPARISONS and name != "stop_gradient":
        for x, derivative in zip(expr[1:], partials(expr, out or expr, *known), strict=True):
            if x[0] not in ("const", "mask") and derivative is not None:
                _spread(x, gradient * derivative, None, received, known)


def tangent(
    expr: Expr,
    tangents: Mapping[int, Expr],
    out: Expr | None = None,
    nonnegative: Callable[[int], bool] = lambda operand: False,
) -> Expr | None:
    """Return the tangent of an expression; None if it is 0 as no operand has one.

    Args:
        expr: the expression.
        tangents: the tangents of its operands, by number.
        out: an expression for its value, if that is stored.
        nonnegative: whether an operand is known to be 0, positive or nan.

    >>> tangent(("mul", ("in", 0), ("in", 1)), {0: ("in", 2)})
    ('mul', ('in', 1), ('in', 2))
    """
    name, *operands = expr
    if name == "in":
        return tangents.get(operands[0])
    if name in LEAVES or name in COMPARISONS or name == "stop_gradient":
        return None
    along = [tangent(x, tangents, None, nonnegative) for x in operands]
    if not any(along):
        return None
    if name in CHOICES:
        return (name, operands[0], *[t or ZERO for t in along[1:]])
    total: Any = None
    for partial, t in zip(partials(expr, out or expr, nonnegative, FURTHER), along, strict=True):
        if t is not None and partial is not None:
            term = partial * _symbolic(t)
            total = term if total is None else total + term
    return None if total is None else _expr(total)


def repeated(expr: Expr) -> list[Expr]:
    """Return the largest subexpressions that call a function and occur more than once.

    >>> e = ("exp", ("in", 0))
    >>> repeated(("div", e, ("add", ("const", 1.0), e)))
    [('exp', ('in', 0))]
    """
    seen: dict[Expr, int] = {}
    _count(expr, seen)
    return [part for part, times in seen.items() if times > 1]


def _count(expr: Expr, seen: dict[Expr, int]) -> bool:
    """Count the subexpressions that call a function, without descending into those counted before."""
    if expr[0] in LEAVES:
        return False
    if expr in seen:
        seen[expr] += 1
        return True
    branches = expr[1::2] if expr[0] == "guarded" else expr[1:]  # not the rare branch
    inner = [_count(branch, seen) for branch in branches]  # a list, as any() alone would stop early
    costly = any(inner) or expr[0] not in CHEAP
    if costly:
        seen[expr] = 1
    return costly


def leaves(expr: Expr) -> list[Expr]:
    """Return the operands, numbers and masks of an expression in order of appearance, with repetitions."""
    found: list[Expr] = []
    stack = [expr]
    while stack:
        part = stack.pop()
        if part[0] in LEAVES:
            found.append(part)
        else:
            stack.extend(part[:0:-1])
    return found


def inputs(expr: Expr) -> list[int]:
    """Return the operands that an expression reads, each once, in order of appearance.

    >>> inputs(("add", ("in", 1), ("mul", ("in", 0), ("in", 1))))
    [1, 0]
    """
    return list(dict.fromkeys([leaf[1] for leaf in leaves(expr) if leaf[0] == "in"]))


def times(expr: Expr, k: int) -> int:
    """Count how often an expression reads operand k.

    >>> times(("mul", ("in", 0), ("add", ("in", 1), ("in", 0))), 0)
    2
    """
    return [leaf[1] for leaf in leaves(expr) if leaf[0] == "in"].count(k)


def has_mask(expr: Expr) -> bool:
    return "mask" in [leaf[0] for leaf in leaves(expr)]


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """Replace each leaf of an expression by ``leaf(it)``."""
    if expr[0] in LEAVES:
        return leaf(expr)
    return (expr[0], *(rewrite(branch, leaf) for branch in expr[1:]))


def rewrite_masks(expr: Expr, rank: int, change: Callable[[Any], Any]) -> Expr:
    """Replace each mask, which may lack the last ones of its `rank` axes, by ``change(it)`` with all of them."""

    def leaf(part: Expr) -> Expr:
        if part[0] != "mask":
            return part
        return ("mask", change(part[1].reshape(part[1].shape + (1,) * (rank - part[1].ndim))))

    return rewrite(expr, leaf)


def rename(expr: Expr, names: dict[int, int]) -> Expr:
    return rewrite(expr, lambda leaf: ("in", names[leaf[1]]) if leaf[0] == "in" else leaf)


def compact(expr: Expr, operands: Sequence[Operand]) -> tuple[Expr, list[Operand]]:
    """Return an expression and the operands that it reads, each once, in order of appearance.

    >>> compact(("mul", ("in", 2), ("in", 0)), ["a", "b", "c"])
    (('mul', ('in', 0), ('in', 1)), ['c', 'a'])
    """
    used = inputs(expr)
    if used != list(range(len(used))):
        expr = rename(expr, {old: new for new, old in enumerate(used)})
    return expr, [operands[k] for k in used]


def is_nonnegative(expr: Expr, nonnegative: Callable[[int], bool] = lambda operand: False) -> bool:
    """Return True if an expression can only be 0, positive or nan; `nonnegative` says so of its operands."""
    name, *branches = expr
    if name == "in":
        return nonnegative(branches[0])
    if name == "const":
        return bool(branches[0] >= 0.0)
    if name == "mul" and branches[0] == branches[1]:
        return True
    if name in CHOICES:
        return all(is_nonnegative(branch, nonnegative) for branch in branches[1:])
    sign = table.BY_NAME[name].sign if name in table.BY_NAME else ""
    if sign == AS_OPERANDS:
        return all(is_nonnegative(branch, nonnegative) for branch in branches)
    return sign == NONNEGATIVE
