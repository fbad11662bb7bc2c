"""Evaluates an expression at one point, by an emitter: rows of the operation table, and comparisons."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from math import inf
from typing import Any

from wengert.compiler.backends.native.emitter import Emitter, Register
from wengert.compiler.backends.spellings import Library
from wengert.compiler.ir import COMPARISONS, LEAVES, Expr
from wengert.errors import WengertError
from wengert.ops import BUILT_IN, BY_NAME, Op, Operators, interpret, namespace

__all__ = ["C_FUNCTIONS", "Unsupported", "evaluate", "expanded", "extreme", "read"]

LIBRARY = Library("c", "", guarded="x")  # rows without a function of C are expanded by their rules
SAME = """exp log tanh exp2 expm1 log2 log10 log1p sqrt floor hypot sin cos tan sinh cosh asin acos atan atan2 asinh
acosh atanh erf erfc"""
SIGNS = ("add", "sub", "mul", "div")
LETTERS = str.maketrans(".-+", "dmp")  # of a number in a name


expanded: Callable[..., Expr] = LIBRARY.expanded


class Unsupported(WengertError):  # noqa: N818  (as the lifter has Unliftable)
    """Machine code cannot compute an operation: the program runs as NumPy."""


Truth = Register | bool  # a bool if a mask is known at compile time


def evaluate(to: Emitter, expr: Expr, leaf: Callable[[Expr], Truth]) -> Register:
    """Evaluate an expression; `leaf` returns its operands and masks.

    Raises:
        Unsupported: part of it can only be computed in Python.
    """
    return _number(to, _Values(to, leaf, {}).of(expr))


class _Values:
    """Evaluates the parts of an expression, each once."""

    def __init__(self, to: Emitter, leaf: Callable[[Expr], Truth], memo: MutableMapping[int, Truth]) -> None:
        self.to = to
        self.leaf = leaf
        self.memo = memo  # by the identity of a part

    def of(self, part: Expr) -> Truth:
        if part[0] == "const":
            return self.to.number(part[1])
        stack = [part]
        while stack:
            part = stack[-1]
            if id(part) in self.memo:
                stack.pop()
                continue
            below = None if part[0] in LEAVES else self.unevaluated(part)
            if below is not None:
                stack.append(below)
            else:
                self.memo[id(part)] = self.leaf(part) if part[0] in LEAVES else self.compute(part)
                stack.pop()
        return self.memo[id(part)]

    def unevaluated(self, part: Expr) -> Expr | None:
        """Return the first operand that an operation needs and that is not yet computed, in order of evaluation."""
        operands = part[1:]
        if part[0] == "where" and isinstance(self.memo.get(id(part[1])), bool):
            operands = (part[2 if self.memo[id(part[1])] else 3],)
        elif part[0] == "guarded" and part[3][0] != "const":
            operands = part[3], part[1]
        return next((x for x in operands if x[0] != "const" and id(x) not in self.memo), None)

    def number(self, part: Expr) -> Register:
        return _number(self.to, self.of(part))

    def compute(self, expr: Expr) -> Truth:
        name, *branches = expr
        to = self.to
        if name == "where" or (name == "guarded" and branches[2][0] == "const"):  # what is derived of a rare branch
            condition = self.of(branches[0])
            if isinstance(condition, bool):
                return self.of(branches[1 if condition else 2])
            return _selected(to, condition, *[self.of(branch) for branch in branches[1:]])
        if name == "guarded":
            plain, condition = self.number(branches[2]), self.of(branches[0])
            inside = _Values(to, self.leaf, ChainMap({}, self.memo))  # its values exist in this branch only
            if isinstance(condition, bool):
                return inside.number(branches[1]) if condition else plain
            return to.branch(_truth(to, condition), lambda: inside.number(branches[1]), plain)
        if name in COMPARISONS:
            return to.compare(name, self.number(branches[0]), self.number(branches[1]))
        if name == "partial":
            raise Unsupported("a user-written rule is computed in Python")
        return _applied(to, BY_NAME[name], [x[1] if x[0] == "const" else self.number(x) for x in branches])


def _number(to: Emitter, x: Truth) -> Register:
    if isinstance(x, bool):
        return to.number(float(x))
    return to.select(x, to.number(1.0), to.number(0.0)) if x.kind == "b" else x


def _truth(to: Emitter, x: Register) -> Register:
    return x if x.kind == "b" else to.compare("ne", x, to.number(0.0))


def _selected(to: Emitter, condition: Register, x: Truth, y: Truth) -> Register:
    return to.select(_truth(to, condition), _number(to, x), _number(to, y))


def _applied(to: Emitter, row: Op, xs: list[Any]) -> Register:
    """Apply a row to registers and floats: as it is written here, else by its own rule."""
    if row.name == "pow" and xs[1] in (-1.0, 1.0, 2.0, 3.0, 4.0):
        return _power(to, xs[0] if isinstance(xs[0], Register) else to.number(xs[0]), xs[1])
    function, registers = ROWS.get(row.name), [x for x in xs if isinstance(x, Register)]
    if function is not None:
        return function(to, *[x if isinstance(x, Register) else to.number(x) for x in xs])
    if row.written_out:
        return read(to, row.series, xs)
    if row.code >= BUILT_IN:
        raise Unsupported(f"{row.name} is computed in Python")
    if row.series is None:
        return read(to, row.value, xs)
    if len(registers) != 1:
        raise Unsupported(f"{row.name} of an order known only at run time is computed in Python")
    written = "_".join([repr(x).removesuffix(".0") for x in xs if x is not registers[0]])
    name = "_".join([row.name, *written.translate(LETTERS).split()])

    def body(inner: Emitter, x: Register) -> Register:
        try:
            return read(inner, row.series, [x if y is registers[0] else y for y in xs])
        except OverflowError as why:
            raise Unsupported(f"{row.name}: {why}; it is computed in Python") from why

    return to.outlined(name, body, registers[0])


# -- rules read over registers ----------------------------------------------------------------------------------------


class Lane(Operators):
    """A register with operators, so that a rule can be called with it."""

    __slots__ = ("register", "to")

    def __init__(self, to: Emitter, register: Register) -> None:
        self.to: Emitter = to
        self.register: Register = register

    def _operated(self, name: str, *operands: Any) -> Any:
        if name not in COMPARISONS:
            return self._apply_op(BY_NAME[name], operands)
        x, y = (_register(self.to, operand) for operand in operands)
        return Lane(self.to, self.to.compare(name, x, y))

    def _apply_op(self, op: Op, operands: Any) -> Any:
        xs = [_number(self.to, x.register) if isinstance(x, Lane) else float(x) for x in operands]
        return Lane(self.to, _applied(self.to, op, xs))


def read(to: Emitter, rule: Any, xs: list[Any]) -> Register:
    """Call a rule of the table with registers and floats."""
    return _register(to, interpret(rule, MEANINGS)(*[Lane(to, x) if isinstance(x, Register) else x for x in xs]))


def _register(to: Emitter, x: Any) -> Register:
    return _number(to, x.register) if isinstance(x, Lane) else to.number(float(x))


def _where(condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(condition, Lane):
        return x if condition else y
    to = condition.to
    return Lane(to, _selected(to, condition.register, _register(to, x), _register(to, y)))


def _chosen(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    if not isinstance(condition, Lane):
        return x() if condition else y()
    to = condition.to
    truth = _truth(to, condition.register)
    return Lane(to, to.branch(truth, lambda: _register(to, x()), lambda: _register(to, y())))


def _repeat(again: Callable[..., Any], state: Sequence[Any], xs: Sequence[Any], most: int) -> list[Any]:
    """Write the loop of a search."""
    to = next(x.to for x in xs if isinstance(x, Lane))
    first = [_register(to, x) for x in (*state, *xs)]
    lanes = max([x.lanes for x in first])

    def body(_: Any, carried: list[Register]) -> list[Register]:
        return [_register(to, x) for x in again([Lane(to, x) for x in carried], xs)]

    return [Lane(to, x) for x in to.loop(0, most, 1, body, first[: len(state)], lanes, asks=True)]


MEANINGS: dict[str, Any] = namespace(
    _repeat=_repeat,
    where=_where,
    choose=_chosen,
    _guarded_form=lambda condition, careful, plain: _chosen(condition, careful, lambda: plain),
)

# -- rows -------------------------------------------------------------------------------------------------------------


def _power(to: Emitter, x: Register, exponent: float) -> Register:
    if exponent == -1.0:
        return to.arithmetic("div", to.number(1.0), x)
    if exponent == 1.0:
        return x
    squared = to.arithmetic("mul", x, x)
    return squared if exponent == 2.0 else to.arithmetic("mul", squared, x if exponent == 3.0 else squared)


def extreme(to: Emitter, name: str, x: Register, y: Register) -> Register:
    """Compute the maximum or minimum; nan if either is."""
    beyond = to.compare("gt" if name == "maximum" else "lt", x, y)
    return to.select(to.either(beyond, to.compare("ne", x, x)), x, y)


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
    "relu": lambda to, x: to.select(to.compare("le", x, to.number(0.0)), to.number(0.0), x),
    "clip": lambda to, x, low, high: extreme(to, "minimum", extreme(to, "maximum", x, low), high),
    "sign": _sign,
    "remainder": _remainder,
    "cbrt": _cbrt,
}

C_FUNCTIONS = sorted({*SAME.split(), "pow", "cbrt", "fmod"} - {"sqrt", "floor"})
