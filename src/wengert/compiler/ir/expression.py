"""The elementwise expressions of a Compute, and their derivatives.

An expression is a tuple: ``("in", k)`` is the k-th operand of a Compute, ``("const", c)`` a number, ``("mask", m)`` an
array of bools over its axes, ``("lt", a, b)`` and the like a comparison, ``("where", condition, a, b)`` a choice,
``("guarded", condition, a, b)`` a choice that rarely takes a, ``("by rule", x, a, p, ...)`` x, whose derivative with
respect to a is p, and ``("tanh", a)`` the row of that name in the operation table. Derivatives come from the rules of
these rows, called with symbols.

Expressions share their parts: a rule that uses a number twice has it once in memory. So everything here looks at each
part once, however often it occurs, and keeps it shared; and nothing recurs, as they may be thousands of levels deep.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from wengert.ops import AS_OPERANDS, NONNEGATIVE, VALUES, Operators, interpret, namespace, table

__all__ = ["CHEAP", "CHOICES", "COMPARISONS", "FURTHER", "LEAVES", "ONE", "ZERO", "Expr", "compact", "cotangents"]
__all__ += ["Numbering", "equal", "expand", "fold", "has_mask", "inputs", "is_choice", "is_nonnegative", "may_fold"]
__all__ += ["operations", "parts", "rename", "repeated", "rewrite", "rewrite_masks", "tangent", "times"]

Expr = tuple[Any, ...]
Operand = TypeVar("Operand")
Result = TypeVar("Result")
LEAVES = ("in", "const", "mask")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
CHOICES = ("where", "guarded")
LENGTHS = ("abs", "hypot")  # which have a kink at 0; `norm` is written out to end with the first
CHEAP = ("add", "sub", "mul", "neg", "square", "where", "stop_gradient", "relu", *COMPARISONS)
MODERATE = 2.0**64  # constant factors may be folded while their product stays within this range
ONE: Expr = ("const", 1.0)
ZERO: Expr = ("const", 0.0)
LARGE = 48  # operations: such a part is written once, even if all of them are cheap
DEEP = 64  # levels: a part is written by itself at each such depth, as printers and parsers recur


# -- the parts of an expression ---------------------------------------------------------------------------------------


def parts(expr: Expr, but: Container[int] = ()) -> list[Expr]:
    """Return the parts of an expression, each object once and after what it is computed from; `but` has the ids of
    parts to leave out.
    """
    order: list[Expr] = []
    seen: set[int] = set()
    entered: set[int] = set()
    stack = [expr]
    while stack:
        part = stack[-1]
        if id(part) in seen or id(part) in but:
            stack.pop()
        elif part[0] in LEAVES or id(part) in entered:
            seen.add(id(part))
            order.append(part)
            stack.pop()
        else:
            entered.add(id(part))
            stack.extend([x for x in part[:0:-1] if id(x) not in seen])
    return order


def fold(
    expr: Expr, combine: Callable[[Expr, list[Result]], Result], results: dict[int, Result] | None = None
) -> Result:
    """Compute something of an expression: ``combine(part, of its operands)`` for each part; leaves have none.

    Args:
        expr: the expression.
        combine: computes it for a part.
        results: what is known, by the id of a part, of an expression that is alive; what is computed is added.
    """
    results = {} if results is None else results
    for part in parts(expr, results):
        inner = [] if part[0] in LEAVES else [results[id(x)] for x in part[1:]]
        results[id(part)] = combine(part, inner)
    return results[id(expr)]


class Numbering:
    """Gives expressions numbers: the same to those that are equal, though they are several objects."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.parts: list[Expr] = []  # the first object of each number
        self._results: dict[int, int] = {}
        self._alive: list[Expr] = []  # an id stays that of one object

    def of(self, expr: Expr) -> int:
        """Return the number of an expression."""
        if id(expr) not in self._results:
            self._alive.append(expr)
            fold(expr, self._number, self._results)
        return self._results[id(expr)]

    def _number(self, part: Expr, inner: list[int]) -> int:
        key: Any = (part[0], *inner)
        if part[0] == "const":
            key = "const", float(part[1]).hex()  # -0.0 is another constant than 0.0, which it equals
        elif part[0] in LEAVES:
            key = part[0], part[1] if part[0] == "in" else id(part[1])
        number = self.numbers.setdefault(key, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number


def is_choice(expr: Expr) -> bool:
    """Return True for a choice of the function's own: its condition is a number. Those of rules have comparisons."""
    return bool(expr[0] == "where" and expr[1][0] == "ne" and expr[1][2] == ZERO)


def equal(a: Expr, b: Expr) -> bool:
    """Return True if two expressions are equal."""
    pairs, seen = [(a, b)], set[tuple[int, int]]()
    while pairs:
        x, y = pairs.pop()
        if x is y or (id(x), id(y)) in seen:
            continue
        if x[0] != y[0] or len(x) != len(y):
            return False
        if x[0] in LEAVES:
            if x[1] is not y[1] and (x[0] == "mask" or x[1] != y[1]):
                return False
            continue
        seen.add((id(x), id(y)))
        pairs += zip(x[1:], y[1:], strict=True)
    return True


# -- the rules of the table, called with symbols ----------------------------------------------------------------------


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
            factor = other.expr[1] if isinstance(other, Symbolic) and other.expr[0] == "mul" else ZERO
            if isinstance(x, float) and factor[0] == "const" and may_fold(x, factor[1]):
                return _operation("mul", x * factor[1], Symbolic(other.expr[2]))
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


def partials(
    expr: Expr, out: Expr, nonnegative: Callable[[int], bool], rules: dict[str, Any], signs: dict[int, bool]
) -> list[Any]:
    """Return the partial derivatives of an operation with respect to its operands; `out` is an expression for its
    value, `rules` the globals of its rule, and `signs` what `is_nonnegative` has found out of the expression.
    """
    name, *operands = expr
    xs = [_symbolic(x) for x in operands]
    if name == "by rule":
        return [None, *[y for slope in xs[2::2] for y in (slope, None)]]
    if name == "relu":
        return [_choice(_operation("ne", Symbolic(out), 0.0), 1.0, 0.0)]  # 1 at nan, like the row's own rule
    if name == "log" and is_nonnegative(operands[0], nonnegative, signs):
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
    choices: bool = False,
    again: bool = False,
) -> dict[int, Expr]:
    """Return the cotangent that each operand receives when the expression receives `gradient`.

    Args:
        expr: the expression.
        gradient: the cotangent of its value.
        out: an expression for its value, if that is stored.
        nonnegative: whether an operand is known to be 0, positive or nan.
        rules: FURTHER for cotangents that may be differentiated again.
        choices: whether the function has choices, whose sides may be infinite where they are not taken.
        again: whether they are. A length that is 0 and receives 0 may be that of a smooth function, whose second
            derivative these rules do not know: then it is not finite, and the engine computes the call.

    >>> cotangents(("mul", ("in", 0), ("in", 1)), ("in", 2))
    {0: ('mul', ('in', 2), ('in', 1)), 1: ('mul', ('in', 2), ('in', 0))}
    """
    times = _quotient if rules is SYMBOLS else _product
    in_branches = functools.partial(_in_branches, choices=choices)
    received: dict[int, Any] = {}
    pending: dict[Any, Any] = {id(expr): _symbolic(gradient)}  # by the id of a part, or the place of a leaf
    signs: dict[int, bool] = {}

    def give(owner: Expr, place: int, share: Any) -> None:
        part = owner[place]
        key = (id(owner), place) if part[0] == "in" else id(part)
        pending[key] = _added(pending[key], share) if key in pending else share

    for part, key in _receivers(expr):
        share = pending.pop(key, None)
        if share is None:
            continue
        name, own = part[0], out if part is expr else None
        if name == "in":
            received[part[1]] = received[part[1]] + share if part[1] in received else share
        elif name in CHOICES:
            condition, x, _ = part[1:]
            if (
                condition[0] == "mask" and x[0] == "exp" and own is not None
            ):  # it is 0 where it is masked out, as out is
                give(x, 1, share * _symbolic(own))
                continue
            test = Symbolic(condition)
            give(part, 2, in_branches(share, functools.partial(_choice, test, y=0.0, name=name)))
            give(part, 3, in_branches(share, functools.partial(_choice, test, 0.0)))
        elif name == "mul" and equal(part[1], part[2]):
            twice = 2.0 * _symbolic(part[1])
            give(part, 1, in_branches(share, functools.partial(_product, slope=twice)))
        else:
            if again and name in LENGTHS:
                is_hidden = _operation("eq", _choice(_is_zero(own or part), share, 1.0), 0.0)
                share = in_branches(share, functools.partial(_at_kink, is_hidden))
            for place, derivative in enumerate(partials(part, own or part, nonnegative, rules, signs), 1):
                if part[place][0] not in ("const", "mask") and derivative is not None:
                    give(part, place, in_branches(share, functools.partial(times, slope=derivative)))
    return {k: _expr(total) for k, total in received.items()}


def _is_zero(expr: Expr) -> Any:
    return _operation("eq", Symbolic(expr), 0.0)


def _at_kink(condition: Any, x: Any) -> Any:
    """Return a number that is 0 if the condition holds, with a derivative that is not finite there."""
    return _choice(condition, _operation("sqrt", x), x, "guarded")


def _product(x: Any, slope: Any) -> Any:
    return x * slope


def _quotient(x: Any, slope: Any) -> Any:
    """Return x * slope; x / y for x * (1 / y), which is one operation less. Not if it is differentiated again: the
    derivative of 1 / y may be infinite, and 0 times that is nan, where that of x / y is 0.
    """
    if isinstance(slope, Symbolic) and slope.expr[:2] == ("div", ONE):
        return Symbolic(("div", _expr(x), slope.expr[2]))
    return x * slope


def _added(x: Any, y: Any) -> Any:
    """Return the sum of two cotangents; of branches of one rule that of each branch."""
    both = isinstance(x, Symbolic) and isinstance(y, Symbolic) and x.expr[0] == y.expr[0] == "guarded"
    if not both or x.expr[1] is not y.expr[1]:
        return x + y
    taken, other = [
        _symbolic(b) if a == ZERO else _symbolic(a) if b == ZERO else _added(_symbolic(a), _symbolic(b))
        for a, b in zip(x.expr[2:], y.expr[2:], strict=True)
    ]
    return _choice(Symbolic(x.expr[1]), taken, other, "guarded")


def _in_branches(share: Any, change: Callable[[Any], Any], choices: bool) -> Any:
    """Change a cotangent; that of one side of a choice or branch of a rule stays 0 where the other one is taken: what
    it is changed with may be infinite there, as no run of the function computes it.
    """
    if isinstance(share, Symbolic):
        name, *operands = share.expr
        if (name == "guarded" or (choices and is_choice(share.expr))) and ZERO in operands[1:]:
            x, y = [0.0 if x == ZERO else _in_branches(_symbolic(x), change, choices) for x in operands[1:]]
            return _choice(Symbolic(operands[0]), x, y, name)
        if choices and name == "add" and any(map(_is_of_one_side, operands)):
            x, y = [_in_branches(_symbolic(operand), change, choices) for operand in operands]
            return x + y
    return change(share)


def _is_of_one_side(expr: Expr) -> bool:
    """Return True if a cotangent is a sum with a part of one side of a choice."""
    return any(is_choice(part) and ZERO in part[2:] for part in _terms(expr))


def _terms(expr: Expr) -> list[Expr]:
    """List the terms of a sum."""
    terms, stack = list[Expr](), [expr]
    while stack:
        part = stack.pop()
        if part[0] == "add":
            stack += part[1:]
        else:
            terms.append(part)
    return terms


def _receivers(expr: Expr) -> list[tuple[Expr, Any]]:
    """Return the parts of an expression that may receive cotangents, each after all that give it some, with keys: the
    id of a part, but of an operand that of its owner and the place, as operands are added up in order of appearance.
    """
    order: list[tuple[Expr, Any]] = []
    entered: set[int] = set()
    stack: list[tuple[Expr, Any, bool]] = [(expr, id(expr), False)]
    while stack:
        part, key, has_all = stack.pop()
        if part[0] == "in" or has_all:
            order.append((part, key))
        elif part[0] not in LEAVES and part[0] not in COMPARISONS and part[0] != "stop_gradient" and key not in entered:
            entered.add(key)
            stack.append((part, key, True))
            for place in range(2 if part[0] in CHOICES else 1, len(part)):
                x = part[place]
                stack.append((x, (id(part), place) if x[0] == "in" else id(x), False))
    return order[::-1]


def tangent(
    expr: Expr,
    tangents: Mapping[int, Expr],
    out: Expr | None = None,
    nonnegative: Callable[[int], bool] = lambda operand: False,
    again: bool = False,
) -> Expr | None:
    """Return the tangent of an expression; None if it is 0 as no operand has one.

    Args:
        expr: the expression.
        tangents: the tangents of its operands, by number.
        out: an expression for its value, if that is stored.
        nonnegative: whether an operand is known to be 0, positive or nan.
        again: whether it is differentiated again: see `cotangents`.

    >>> tangent(("mul", ("in", 0), ("in", 1)), {0: ("in", 2)})
    ('mul', ('in', 1), ('in', 2))
    """
    signs: dict[int, bool] = {}

    def combine(part: Expr, along: list[Expr | None]) -> Expr | None:
        name = part[0]
        if name == "in":
            return tangents.get(part[1])
        if name in COMPARISONS or name == "stop_gradient" or not any(along):
            return None
        if name in CHOICES:
            return (name, part[1], *[t or ZERO for t in along[1:]])
        total: Any = None
        of_part = out if part is expr and out else part
        for partial, t in zip(partials(part, of_part, nonnegative, FURTHER, signs), along, strict=True):
            if t is not None and partial is not None:
                term = partial * _symbolic(t)
                total = term if total is None else total + term
        if again and name in LENGTHS and isinstance(total, Symbolic):
            total = _choice(_is_zero(of_part), total * _operation("sqrt", Symbolic(of_part)), total, "guarded")
        return None if total is None else _expr(total)

    return fold(expr, combine)


def repeated(expr: Expr, numbering: Numbering | None = None, large: bool = False) -> list[Expr]:
    """Return what is to be written once, and before the expression: the largest parts that call a function, or are
    large, and occur more than once; and parts at which it would otherwise be too deep. If `large`, none that just calls
    a function.

    >>> e = ("exp", ("in", 0))
    >>> repeated(("div", e, ("add", ("const", 1.0), e)))
    [('exp', ('in', 0))]
    """
    numbering = numbering or Numbering()
    root = numbering.of(expr)
    operands: dict[int, list[int]] = {}  # by the number of a part, of those that are written
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    costly: set[int] = set()
    counts: dict[int, int] = {}
    stack = [root]
    while stack:
        number = stack[-1]
        part = numbering.parts[number]
        if number in sizes or part[0] in LEAVES:
            stack.pop()
        elif number not in operands:
            branches = part[1::2] if part[0] == "guarded" else part[1:]  # not the rare branch
            operands[number] = [numbering.of(x) for x in branches]
            stack.extend(operands[number][::-1])
        else:
            stack.pop()
            inner = operands[number]
            sizes[number] = min(LARGE, 1 + sum([sizes.get(n, 0) for n in inner]))
            depths[number] = 1 + max([depths.get(n, 0) for n in inner])
            calls = not large and (part[0] not in CHEAP or not costly.isdisjoint(inner))
            if calls or sizes[number] == LARGE:
                costly.add(number)
                counts[number] = 1 if number == root else 0
    for inner in operands.values():
        for number in costly.intersection(inner):
            counts[number] += inner.count(number)
    written = [n for n, count in counts.items() if count > 1 or (depths[n] % DEEP == 0 and n != root)]
    return [numbering.parts[n] for n in written]


def inputs(expr: Expr) -> list[int]:
    """Return the operands that an expression reads, each once, in order of appearance.

    >>> inputs(("add", ("in", 1), ("mul", ("in", 0), ("in", 1))))
    [1, 0]
    """
    return list(dict.fromkeys([part[1] for part in parts(expr) if part[0] == "in"]))


def times(expr: Expr, k: int) -> int:
    """Count how often an expression reads operand k.

    >>> times(("mul", ("in", 0), ("add", ("in", 1), ("in", 0))), 0)
    2
    """
    return fold(expr, lambda part, inner: sum(inner) if part[0] != "in" else int(part[1] == k))


def has_mask(expr: Expr) -> bool:
    return any(part[0] == "mask" for part in parts(expr))


def operations(expr: Expr) -> int:
    """Count the operations of an expression, those of a part as often as it occurs."""
    return fold(expr, lambda part, inner: 0 if part[0] in LEAVES else 1 + sum(inner))


def rewrite(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """Replace each leaf of an expression by ``leaf(it)``."""
    return fold(expr, lambda part, inner: leaf(part) if part[0] in LEAVES else (part[0], *inner))


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


def is_nonnegative(
    expr: Expr, nonnegative: Callable[[int], bool] = lambda operand: False, signs: dict[int, bool] | None = None
) -> bool:
    """Return True if an expression can only be 0, positive or nan; `nonnegative` says so of its operands, and `signs`,
    by their ids, of parts of an expression that is alive.
    """

    def combine(part: Expr, inner: list[bool]) -> bool:
        name, *branches = part
        if name == "in":
            return nonnegative(branches[0])
        if name == "const":
            return bool(branches[0] >= 0.0)
        if name == "mul" and equal(*branches):
            return True
        if name in CHOICES:
            return all(inner[1:])
        sign = table.BY_NAME[name].sign if name in table.BY_NAME else ""
        return all(inner) if sign == AS_OPERANDS else sign == NONNEGATIVE

    return fold(expr, combine, signs)
