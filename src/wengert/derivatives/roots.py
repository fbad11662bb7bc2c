"""Roots and fixed points of functions, with derivatives of any order by the implicit function theorem.

The root x(a) of f(x, a) = 0 is found in floats, and is then one node. If a changes, f stays 0, so the derivative with
respect to a is -f_a / f_x at the root, however x was found; of that, the table's rules have every further derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import isfinite, nan
from typing import Any

from wengert import modes
from wengert.derivatives.linearize import LinearMap, number_of
from wengert.engine import Value
from wengert.errors import ArgumentError, OperandError, RootError, counted
from wengert.node import is_many, refuse, settle
from wengert.ops import BUILT_IN, FLOATS, coerce, implicit, interpret

__all__ = ["AGAIN", "fixed_point", "root"]

INLINE = ("pow", "where")  # operations whose constants are part of the function: other forms, other branches
_begin, _turn = interpret(implicit.begin, FLOATS), interpret(implicit.turn, FLOATS)


def root(
    function: Callable[..., Any],
    x0: Any,
    *args: Any,
    bracket: Sequence[Any] | None = None,
    tol: float = 1e-12,
    max_steps: int = 100,
    missing: str = "raise",
) -> Any:
    """Return the x for which ``function(x, *args)`` is 0, near x0.

    The derivatives of x, of any order, are with respect to the Values among `args` and to those that the function uses
    from outside; with respect to x0 and the bracket they are 0. The method is Newton's, and its steps are halved until
    the function's size decreases. Once the function has been seen on both sides of 0, as it is at once with a bracket,
    the root stays enclosed, and steps that gain little are replaced by bisection. In a compiled function the search is
    one operation, for each example as long as it takes.

    Args:
        function: called with a Value for x; returns one number. It may have branches; a compiled function with branches
            that depend on x runs uncompiled: write `wengert.where`.
        x0: where to begin, a number. If it is outside of the bracket, its middle is taken.
        *args: passed to the function.
        bracket: two numbers between which the function changes its sign.
        tol: the size of the last step relative to x. Newton's last step leaves an error that is far smaller.
        max_steps: how often the function may be evaluated.
        missing: "raise" an error if there is no root, or return "nan".

    Returns:
        A Value, or a float if nothing that x depends on is a Value.

    Raises:
        RootError: no root was found; the message has the best point and the residual there.
        ArgumentError: an argument is not valid, or the function does not return one number that depends on x.

    >>> round(root(lambda x, a: x * x - a, 1.0, 2.0), 12)
    1.414213562373
    >>> a = Value(4.0)
    >>> x = root(lambda x: x**3 - a * x, 1.5, bracket=(1.0, 3.0))
    >>> x.backward()
    >>> x.data, a.grad
    (2.0, 0.25)
    """
    _check(function, x0, bracket, tol, max_steps, missing)
    given = [number_of(x) for x in (x0, *(bracket or ()))]
    starts = settle([*given])  # Values for numbers that are traced
    how = (bracket is not None, float(tol), max_steps)
    numbers = [x._data if isinstance(x, Value) else x for x in starts]
    if not all(map(isfinite, numbers)):
        raise ArgumentError(f"x0 and the bracket are {numbers}; expected finite numbers")
    first = _Run(function, _begin(nan, *numbers)[1], args)
    if first.recorder is not None:
        return _recorded(first, starts, how, missing)
    found, best, last, taken = _search(first, numbers, how)
    operands, written = (first if found != found else _again(first, found)).written(INLINE)
    if found != found and missing == "raise":
        raise _not_found(first, best, last, taken, numbers, max_steps)
    row = implicit.root_row(written, *how)._replace(value=lambda *_: found)
    return row(*numbers, *operands)


def fixed_point(function: Callable[..., Any], x0: Any, *args: Any, **options: Any) -> Any:
    """Return the x for which ``function(x, *args)`` is x, near x0: the root of their difference; see `root`.

    As the method is Newton's, it also finds fixed points from which plain iteration moves away. Arguments, derivatives
    and errors are those of `root`; a bracket is of the difference ``function(x) - x``.

    >>> from wengert import cos
    >>> round(fixed_point(cos, 1.0), 12)
    0.739085133215
    """
    if not callable(function):
        raise ArgumentError(f"the function is {coerce.named(function)}; expected a function of x")

    def difference(x: Any, *args: Any) -> Any:
        return _one_number(function(x, *args), function) - x

    return root(difference, x0, *args, **options)


class _Run:
    """One evaluation of a function, with its graph."""

    def __init__(self, function: Callable[..., Any], x: float, args: tuple[Any, ...], is_first: bool = True) -> None:
        self.function = function
        self.args = args
        with modes.suspended(), modes.recorded(True):
            self.x = Value(x)
            self.recorder = getattr(self.x.data, "recorder", None)
            if self.recorder is not None:
                self.recorder.unknowns.append((self.x, len(self.recorder.guards)))
            try:
                self.out = _one_number(function(self.x, *args), function)
            except RootError:  # of a root in the function: Newton's step went too far
                if is_first:
                    raise
                self.out = nan
        self.run = LinearMap([self.x], [self.out], self.x._made)
        self.residual: float = settle([self.out])[0]._data if isinstance(self.out, Value) else float(self.out)

    def slope(self) -> float:
        sums = {id(self.x): 1.0}
        for node, operands, places in self.run.between():
            if is_many(node):
                xs = [x._data if isinstance(x, Value) else x for x in operands]
                partials: Any = node._row.partials_at(node._data, xs)
            elif node._b is None:
                partials = dict.fromkeys(places, node._da)
            else:
                partials = node._da, node._db
            sums[id(node)] = sum([partials[k] * sums[id(operands[k])] for k in places])
        return sums.get(id(self.out), 0.0)

    def written(self, inlined: Collection[str] | None = None) -> tuple[list[Any], implicit.StepList]:
        """Return the function's operands besides x, and the function as steps, in which the constants of the operations
        `inlined` stay, by default of all.

        Raises:
            ArgumentError: the function does not depend on x.
        """
        between = self.run.between()
        number = {id(self.x): 0}
        operands = []
        for node, xs, _ in between:
            for x in xs:
                is_operand = isinstance(x, Value) or not (inlined is None or node._row.name in inlined)
                if is_operand and id(x) not in number:
                    operands.append(x)
                    number[id(x)] = len(operands)
            number[id(node)] = -1  # not an operand
        arity = 1 + len(operands)
        number.update({id(node): arity + n for n, (node, *_) in enumerate(between)})
        if id(self.out) not in number:
            raise ArgumentError(f"{_name(self.function)} does not depend on its first argument")
        steps = [(node._row, tuple([number.get(id(x), x) for x in xs])) for node, xs, _ in between]
        return operands, implicit.StepList(arity, steps, [number[id(self.out)]])


def _again(first: _Run, x: float) -> _Run:
    return _Run(first.function, x, first.args, False)


AGAIN = _again.__code__  # `compile` does not count the calls that the search makes


def _search(first: _Run, numbers: list[float], how: tuple[bool, float, int]) -> tuple[float, float, float, int]:
    """Return the root, nan if it is not found; the best point, its residual, and the number of evaluations."""
    taken, residual = len(numbers) // 2, first.residual
    state = _begin(_again(first, numbers[1]).residual if taken else nan, *numbers)
    for _ in range(how[2]):
        taken += 1
        at = first if state[1] == first.x._data else _again(first, state[1])
        state = _turn(how[1], state, at.residual, at.slope())
        residual = at.residual if state[3] == abs(at.residual) else residual
        if not state[0] > 0.0:
            break
    return (state[2] if state[0] == 0.0 else nan), state[2], residual, taken


def _recorded(first: _Run, starts: list[Any], how: tuple[bool, float, int], missing: str) -> Any:
    operands, written = first.written()
    if any(op.code >= BUILT_IN and not op.written_out for op, _ in written.steps):
        refuse("has an operation of its own in the function of a root: write it with the functions of wengert")
    recorder: Any = first.recorder
    return recorder.root(implicit.root_row(written, *how), [*starts, *operands], first.x, missing == "raise")


def _not_found(first: _Run, x: float, residual: float, taken: int, numbers: list[float], most: int) -> RootError:
    name, ends = _name(first.function), numbers[1:]
    why = f"{name} has no root near x0 = {numbers[0]:g}; after {counted(taken, 'evaluation')} it is {residual:g} at {x}"
    other = "another bracket" if ends else "a bracket, two points between which it changes its sign"
    more = ", or a larger max_steps" if taken >= most else ""
    advice = f"Try another x0, or {other}{more}; missing='nan' returns nan"
    if ends:
        sides = [_again(first, end).residual for end in ends]
        if not sides[0] * sides[1] <= 0.0:
            why = f"{name} is {sides[0]:g} and {sides[1]:g} at the ends of the bracket {tuple(ends)}"
            advice = "Choose two points between which it changes its sign"
    return RootError(f"{why}. {advice}", x, residual, taken)


def _name(function: Any) -> str:
    return getattr(function, "__name__", "the function")


def _one_number(x: Any, function: Any) -> Any:
    if isinstance(x, Value):
        return x
    try:
        return settle([x])[0]
    except OperandError:
        raise ArgumentError(f"{_name(function)} returned {coerce.named(x)}; expected one number") from None


def _check(function: Any, x0: Any, bracket: Any, tol: Any, max_steps: Any, missing: Any) -> None:
    coerce.within("tol", tol, 1e-15, 1.0)
    if type(max_steps) is not int or max_steps < 1:
        raise ArgumentError(f"max_steps is {max_steps!r}; expected an int >= 1")
    if missing not in ("raise", "nan"):
        raise ArgumentError(f"missing is {missing!r}; expected 'raise' or 'nan'")
    if not callable(function):
        raise ArgumentError(f"the function is {coerce.named(function)}; expected a function of x")
    if hasattr(type(x0), "__len__") and getattr(x0, "shape", None) != ():
        raise ArgumentError("x0 holds several numbers; a root is one number: solve for one after the other")
    if bracket is not None and (not hasattr(type(bracket), "__len__") or len(bracket) != 2):
        raise ArgumentError(f"the bracket is {bracket!r:.40}; expected two numbers, as in (0.0, 1.0)")
