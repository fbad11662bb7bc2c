"""Rows made at run time: roots of recorded functions, and the derivatives of such roots.

A function is a list of operations of the table, which runs over any kind of number. The root x(a) of f(x, a) = 0 is one
row. Its derivative with respect to a is -f_a / f_x at the root: again a function of x and a, whose derivatives are
functions too, so that every order exists. Compiled programs call rows of such functions by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from hashlib import sha256
from math import inf, nan
from typing import Any

from wengert._forks import Lock
from wengert.ops.op import BY_NAME, FLOATS, TABLE, VALUES, Op, Operators, Rule, _listed, interpret, namespace, row
from wengert.ops.table import COMPARED, _finite, div, maximum, where

__all__ = ["Residual", "StepList", "begin", "root_row", "turn"]

Step = tuple[Op, tuple[Any, ...]]  # an operation and its operands: an int is the place of a number, a float a constant
HOLDS = {op.name: getattr(operator, op.name) for op in COMPARED}
_lock = Lock()
_rows: dict[Any, Op] = {}  # the rows of roots, by their function and how it is solved


class StepList:
    """A function of `arity` numbers: the places of numbers count these first, then the results of the steps."""

    def __init__(self, arity: int, steps: Sequence[Step], outs: Sequence[Any]) -> None:
        self.arity: int = arity
        self.steps: Sequence[Step] = steps
        self.outs: Sequence[Any] = outs
        self._partials: list[Any] | None = None

    def named(self, *parts: Any) -> str:
        """Return a name that begins with the first part, and says which function it is: machine code is kept on disk
        by the names of its operations.
        """
        content = repr((parts, self.arity, self.outs, [(op.name, operands) for op, operands in self.steps]))
        return f"{parts[0]} {sha256(content.encode()).hexdigest()[:16]}"

    def __call__(self, meanings: dict[str, Any], *xs: Any) -> list[Any]:
        """Return the results over a kind of number, which the globals of its rules tell."""
        values = self._run(meanings, xs)
        return [x if type(x) is float else values[x] for x in self.outs]

    def _run(self, meanings: dict[str, Any], xs: Sequence[Any]) -> list[Any]:
        values = [*xs]
        for op, operands in self.steps:
            values.append(_applied(meanings, op, [x if type(x) is float else values[x] for x in operands]))
        return values

    def gradient(self, meanings: dict[str, Any], *xs: Any) -> list[Any]:
        """Return the derivatives of the first result with respect to the operands, in reverse mode."""
        values = self._run(meanings, xs)
        sums: dict[Any, Any] = {self.outs[0]: 1.0}
        for place in range(len(values) - 1, self.arity - 1, -1):
            if place in sums:
                op, operands = self.steps[place - self.arity]
                known = [x if type(x) is float else values[x] for x in operands]
                terms = _terms(meanings, op, operands, values[place], known, sums[place])
                for x, term in zip(operands, terms, strict=True):
                    if type(x) is not float and term is not None:
                        sums[x] = sums[x] + term if x in sums else term
        return [sums.get(k, 0.0) for k in range(self.arity)]

    def partials(self, meanings: dict[str, Any], out: Any, *xs: Any) -> list[Any]:
        """Return the same for a row that computes this function; in programs each is a row of its own."""
        if meanings is FLOATS or meanings is VALUES:
            return self.gradient(meanings, *xs)
        if self._partials is None:
            terms = _Terms(self.arity)
            self._partials = terms.rows(self.gradient(TERMS, *terms.inputs))
        return _called(self._partials, xs, xs)

    def value(self, meanings: dict[str, Any], *xs: Any) -> Any:
        """Return the first result."""
        return self(meanings, *xs)[0]


def _called(rows: Sequence[Any], xs: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """Return the results of rows, and constants as they are; 0 with respect to a constant."""
    pairs = zip(rows, wanted, strict=True)
    return [0.0 if isinstance(x, float) else slope if type(slope) is float else slope(*xs) for slope, x in pairs]


def _applied(meanings: dict[str, Any], op: Op, xs: list[Any]) -> Any:
    if op.name in HOLDS:
        return meanings["where"](HOLDS[op.name](*xs), 1.0, 0.0)
    if op.name == "where":
        return meanings["where"](xs[0] != 0.0, *xs[1:])
    if op.arity is None:
        return interpret(op.value, meanings)(*xs)
    return meanings["_of_row"](op)(*xs)


def _terms(meanings: dict[str, Any], op: Op, operands: Any, out: Any, xs: list[Any], g: Any) -> list[Any]:
    """Return what each operand of a step receives when the step receives `g`; None for nothing."""
    if op.name in HOLDS:
        return [None, None]
    if op.name == "where":
        chosen = xs[0] != 0.0
        return [None, meanings["where"](chosen, g, 0.0), meanings["where"](chosen, 0.0, g)]
    if op.name == "pow" and type(operands[1]) is float and (xs[1] - 1.0) + 1.0 == xs[1]:
        power = xs[0] if xs[1] == 2.0 else meanings["pow_"](xs[0], xs[1] - 1.0)
        return [_times(xs[1], _times(power, g)) if xs[1] else None, None]
    return [_times(slope, g) for slope in _listed(interpret(op.partials, meanings)(out, *xs))]


def _times(slope: Any, g: Any) -> Any:
    if type(slope) is float and slope in (0.0, 1.0):
        return g if slope else None
    if type(slope) is float and slope == -1.0:
        return -g
    return slope if type(g) is float and g == 1.0 else slope * g


# -- the operations that rules compute, as steps ----------------------------------------------------------------------


class _Term(Operators):
    """A number of a function that is being written."""

    __slots__ = ("place", "terms")

    def __init__(self, terms: _Terms, place: int) -> None:
        self.terms = terms
        self.place = place

    def _operated(self, name: str, *operands: Any) -> Any:
        return self.terms.add(BY_NAME[name], operands)

    def _apply_op(self, op: Op, operands: Any) -> Any:
        return self.terms.add(op, operands)


class _Terms:
    """Writes functions of some operands; equal steps are written once."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.steps: list[Step] = []
        self.inputs = [_Term(self, k) for k in range(arity)]
        self._known: dict[Any, _Term] = {}

    def add(self, op: Op, operands: Sequence[Any]) -> _Term:
        places = tuple([_place(x) for x in operands])
        key = (op.name, repr(places))  # 3 is a place, and 3.0 a number
        if key not in self._known:
            self._known[key] = _Term(self, self.arity + len(self.steps))
            self.steps.append((op, places))
        return self._known[key]

    def function(self, *outs: Any) -> StepList:
        """Return the function of these results, without the steps that they do not need."""
        needed, waiting = set[int](), [_place(x) for x in outs]
        while waiting:
            x = waiting.pop()
            if type(x) is int and x >= self.arity and x not in needed:
                needed.add(x)
                waiting += self.steps[x - self.arity][1]
        places: dict[Any, Any] = {k: k for k in range(self.arity)}
        places.update({x: self.arity + n for n, x in enumerate(sorted(needed))})
        steps = [self.steps[x - self.arity] for x in sorted(needed)]
        moved = [(op, tuple([x if type(x) is float else places[x] for x in xs])) for op, xs in steps]
        return StepList(self.arity, moved, [x if type(x) is float else places[x] for x in map(_place, outs)])

    def rows(self, outs: Sequence[Any]) -> list[Any]:
        """Return a row for each of these results, and constants as floats."""
        made: list[Any] = []
        for out in outs:
            if not isinstance(out, _Term):
                made.append(float(out))
                continue
            steps = self.function(out)
            name = steps.named("slope")
            if name not in BY_NAME:
                value, partials, about = Rule(steps.value), Rule(steps.partials), "a derivative of a root"
                float_value = value.over(FLOATS)
                BY_NAME[name] = Op(name, self.arity, name, about, float_value, partials, series=value, written_out=True)
            made.append(BY_NAME[name])
        return made


def _place(x: Any) -> Any:
    return x.place if isinstance(x, _Term) else float(x)


def _where(condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(condition, _Term):
        return x if condition else y
    return x if x is y else condition.terms.add(where, (condition, x, y))


TERMS: dict[str, Any] = namespace(
    where=_where,
    _guarded_form=lambda condition, careful, plain: plain,
    **{name: VALUES[name] for name in ("abs", "_one_less_square")},
)

# -- roots ------------------------------------------------------------------------------------------------------------


class Residual:
    """A function whose root with respect to its first operand is a row.

    The row's operands are the start, the two ends of the bracket if there is one, and the other operands.

    Args:
        steps: the function.
        bracketed: whether a bracket is given.
        tol: the relative step at which the root is found.
        max_steps: how often the function is evaluated at most, after the start.
    """

    def __init__(self, steps: StepList, bracketed: bool, tol: float, max_steps: int) -> None:
        self.steps: StepList = steps
        self.lead: int = 3 if bracketed else 1
        self.tol: float = tol
        self.max_steps: int = max_steps
        self._partials: list[Any] | None = None
        terms = _Terms(steps.arity)
        out, slope = steps(TERMS, *terms.inputs)[0], steps.gradient(TERMS, *terms.inputs)[0]
        self.with_slope: StepList = terms.function(out, slope)

    def solve(self, meanings: dict[str, Any], *xs: Any) -> Any:
        """Return the root; nan if it is not found."""
        low = self.steps(meanings, xs[1], *xs[self.lead :])[0] if self.lead > 1 else nan
        state = interpret(begin, meanings)(low, *xs[: self.lead])

        def again(state: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
            known = self.with_slope(meanings, state[1], *xs[self.lead :])
            moved: list[Any] = interpret(turn, meanings)(self.tol, state, *known)
            for k in (0, 2):  # what is read at the end stays when another example goes on
                moved[k] = meanings["where"](state[0] > 0.0, moved[k], state[k])
            return moved

        end = meanings.get("_repeat", _repeat)(again, state, xs, self.max_steps)
        return meanings["where"](end[0] == 0.0, end[2], nan)

    def partials(self, meanings: dict[str, Any], out: Any, *xs: Any) -> list[Any]:
        """Return the derivatives of the root by the implicit function theorem; the start has none."""
        operands = xs[self.lead :]
        if meanings is FLOATS or meanings is VALUES:
            by_x, *others = self.steps.gradient(meanings, out, *operands)
            return [0.0] * self.lead + [-meanings["div"](x, by_x) for x in others]
        if self._partials is None:
            terms = _Terms(self.steps.arity)
            by_x, *others = self.steps.gradient(TERMS, *terms.inputs)
            self._partials = terms.rows([0.0, *[-TERMS["div"](x, by_x) for x in others]])
        return [0.0] * self.lead + _called(self._partials, (out, *operands), (0.0, *operands))[1:]


def root_row(steps: StepList, *how: Any) -> Op:
    """Return the row for the roots of a function; `how` are the other arguments of `Residual`.

    Raises:
        OperationError: the table is full.
    """
    name = steps.named("root", *how)
    key = name, tuple([op.code for op, _ in steps.steps])  # a name of a user's operation may be used again
    with _lock:
        known = _rows.get(key)
        if known is None or TABLE[known.code : known.code + 1] != [known]:  # another took its place
            made = Residual(steps, *how)
            value, partials, about = Rule(made.solve), Rule(made.partials), "the root of a function, by Newton's method"
            arity = made.lead + steps.arity - 1
            _rows[key] = row(name, arity, "root", about, value, partials, series=value, written_out=True)
        return _rows[key]


def _repeat(again: Callable[..., Any], state: Sequence[Any], xs: Sequence[Any], most: int) -> Sequence[Any]:
    for _ in range(most):
        if not state[0] > 0.0:
            break
        state = again(state, xs)
    return state


def begin(residual: Any, x: Any, low: Any = nan, high: Any = nan) -> list[Any]:
    """Return the state before the first evaluation; `residual` is that at the first end of the bracket.

    The state: going on, found or lost; where to evaluate next; the best point so far, the size of its residual and its
    Newton step; the last step tried; points with a residual below and above 0 (nan: none is known); the largest |x|.
    """
    below, above = low, high
    if low is not nan:
        inside = where(low < high, where(x > low, x < high, False), where(x < low, x > high, False))
        x = where(residual == 0.0, low, where(inside, x, 0.5 * low + 0.5 * high))
        below, above = where(residual < 0.0, low, high), where(residual < 0.0, high, low)
    return [1.0, x, x, inf, inf, inf, below, above, abs(x)]


def turn(tol: float, state: Sequence[Any], residual: Any, slope: Any) -> list[Any]:
    """Return the state after an evaluation.

    Newton's method, whose steps are halved until the residual decreases; between points of opposite sign it bisects
    where Newton leaves the interval or gains less than a factor of 2. It ends when the step is at most `tol` times x,
    when the last two steps tell that the next would vanish, as convergence is quadratic, or when a step that was nearly
    that small gains nothing: there the function rounds.
    """
    _, x, best, least, newton, step, below, above, size = state
    better = abs(residual) < least
    halved = abs(residual) < 0.5 * least
    own = where(residual == 0.0, 0.0, where(slope == 0.0, 1.0 + abs(x), -div(residual, slope)))
    size = maximum(size, abs(x))
    stalled = where(better, False, abs(newton) <= tol**0.5 * size)
    below, above = where(residual < 0.0, x, below), where(residual > 0.0, x, above)
    between, gain = _finite(below, above), div(own, newton)
    vanishes = where(least < inf, gain * gain * abs(own) <= 1e-17 * abs(x), False)
    step = where(better, own, 0.5 * step)
    lost = where(better, False, where(least == inf, True, where(between, False, abs(step) <= 1e-16 * size)))
    best, least, newton = where(better, x, best), where(better, abs(residual), least), where(better, own, newton)
    to = best + step
    inside = where(below < above, where(to > below, to < above, False), where(to > above, to < below, False))
    ahead = where(between, where(where(halved, inside, False), to, 0.5 * below + 0.5 * above), to)
    small = where(vanishes, tol**0.5, tol) * abs(to)
    found = where(better, abs(own) <= small, stalled)
    best = where(better, where(found, to, best), best)
    return [where(found, 0.0, where(lost, -1.0, 1.0)), ahead, best, least, newton, step, below, above, size]
