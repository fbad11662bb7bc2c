"""Replacements for those parts of Python that would silently turn a traced number into a constant.

`max`, `min` and the functions of `math` become rows of the table; `float`, `int`, `type` and `Value` become classes
that behave like them. The recorded function finds them under the original names (`proxies.py`); nothing else sees them.
"""

from __future__ import annotations

import functools
import math
import operator
import statistics
import sys
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from random import Random
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from wengert import interpolation, linalg
from wengert.compiler.code import bytecode_of, constants_of
from wengert.compiler.traced.arrays import ASKED, FEW, TracedArray, choice, fillable, presented, quantile, refuse_layout
from wengert.compiler.traced.recorder import recorder_of_thread
from wengert.compiler.traced.tracers import (
    FINITE,
    FLOATS,
    Bool,
    Integer,
    computed,
    concrete,
    converted,
    either,
    is_alone,
    is_for_value,
    is_traced,
    number_of,
    one_of,
    recorded,
)
from wengert.engine import Value
from wengert.errors import running
from wengert.ops import BY_NAME

__all__ = ["OF_PYTHON", "STANDINS", "ModuleView"]

ROWS = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos",
        "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma"]  # fmt: skip

LAYOUT = frozenset(  # attributes and functions that tell how an array lies in memory
    ["__array_interface__", "ctypes", "data", "flags", "isfortran", "memoryview", "nditer", "strides", "tobytes"]
)
LEAST_SQUARES = 2.0**-900  # a smaller sum of squares has lost digits, or all of them
UNIT = Value(1.0)
ONE_FAULT = frozenset(ROWS) - {"lgamma", "atan2"}  # for a finite number they raise at most one kind of error


def _function(function: Any, row: str) -> Callable[..., Any]:
    """Return a function of `math` for traced numbers; the recording is not valid for numbers for which it raises."""

    def call(*xs: Any) -> Any:
        follow_again = getattr(sys.getprofile(), "start", None)
        if follow_again is None:
            return recorded_call(xs)
        sys.setprofile(None)  # nothing of it has to be followed, and it has a hundred events
        try:
            return recorded_call(xs)
        finally:
            follow_again()

    def recorded_call(xs: Any) -> Any:
        if row == "atan2":  # it tells -0.0 from 0.0; an integer zero has no sign
            for x in xs:
                if is_traced(x) and x.doubt and not x:
                    x.doubt()
            xs = tuple([0 if is_traced(x) and isinstance(x.number, (int, np.integer)) and not x else x for x in xs])
        if not any(map(is_traced, xs)) or BY_NAME[row].arity not in (None, len(xs)):
            return function(*map(concrete, xs))
        numbers = [*map(number_of, xs)]
        tracer = recorded(row, BY_NAME[row](*numbers), *xs)
        if not is_traced(tracer):  # the run has ended
            return function(*numbers)
        finite = tracer.recorder.guard("within", tracer, FINITE)
        if not finite and row in ONE_FAULT and tracer.recorder.guard("within", xs[0], FINITE):
            function(*numbers)  # raises, as for every such number
        if not finite or row == "pow":
            computed(function, *xs)  # raises, or the result is exact
        tracer.number = function(*numbers)
        tracer.recorder.uses_numpy |= type(tracer.number) is np.float64
        return tracer

    return call


def _hypot(*xs: Any) -> Any:
    """Return `math.hypot`, which takes any number of operands."""
    return _function(math.hypot, "hypot" if len(xs) == 2 else "norm")(*xs)


def _extreme(builtin: Any, row: str) -> Callable[..., Any]:
    """Return Python's max or min, as one operation on traced numbers instead of a chain of comparisons."""

    def extreme(*xs: Any, **options: Any) -> Any:
        if options and options.keys() != {"default"}:  # a key is asked of each item before the next one is made
            return builtin(*xs, **options)
        items = list(xs[0]) if len(xs) == 1 else xs  # a generator is read once
        if options and not items:
            return builtin(items, **options)
        numbers = [number_of(x) for x in items]
        kinds = set(map(type, numbers))
        mixed = any(isinstance(x, Value) for x in items) or any(n is NotImplemented for n in numbers)
        mixed = mixed or (len(kinds) > 1 and not kinds.isdisjoint((bool, np.bool_)))
        traced = next((x for x in items if is_traced(x)), None)
        # With a nan the result depends on the order of the arguments; if the function may ask for identity, the result
        # has to be one of them, and no new number.
        if mixed or traced is None or any(n != n for n in numbers) or traced.recorder.observes_bools:
            return builtin(items)
        if len(numbers) == 1 and isinstance(numbers[0], int):  # stays an index
            return items[0]
        extremum = _of_values(row, builtin(numbers), items) if is_for_value(items) else None
        extremum = one_of(recorded(row, builtin(numbers), *items), items) if extremum is None else extremum
        doubts = [x.doubt for x in items if is_traced(x) and x.doubt]
        if len(kinds) > 1 and is_traced(extremum):  # it has the type of the extreme argument
            doubts.append(functools.partial(_asked_at, running(), extremum.recorder, builtin, items))
        if doubts and is_traced(extremum):
            extremum.doubt, extremum.recorder.type_uncertain = lambda: [doubt() for doubt in doubts], True
        return extremum

    return extreme


def _of_values(row: str, result: Any, items: Sequence[Any]) -> Any:
    """Return the extreme number of several in place of Values, which is the first one of those that are equal; None, if
    one of many is alone.
    """
    if len(items) > FEW and is_alone(recorded(row, result, *items), items):
        return None
    how = "gt" if row == "max" else "lt"
    return functools.reduce(lambda extremum, x: either(how, x, extremum), items)


def _asked_at(line: Any, recorder: Any, builtin: Any, items: Any) -> None:
    """Let Python compare, and attribute the guards to a line of the user's."""
    recorder.line = line
    builtin(items)
    recorder.line = None


def _identity(function: Any) -> Callable[[Any, Any], Any]:
    """Return `operator.is_` or `is_not` for traced bools, each of which is one of two objects."""

    def call(x: Any, y: Any) -> Any:
        if type(x) is Bool or type(y) is Bool:
            return function(*[each.concrete() if type(each) is Bool else each for each in (x, y)])
        if is_traced(x) and is_traced(y):  # one may be a result of `max`, which stands for either operand
            x.recorder.refuse(f"asks by operator.{function.__name__} which number an object is: write == or !=")
        return function(x, y)

    return call


def _log(natural: Callable[..., Any]) -> Callable[..., Any]:
    """Return `math.log`, which divides two logarithms for another base."""

    def log(*xs: Any) -> Any:
        if len(xs) != 2 or not any(type(number_of(x)) in FLOATS for x in xs if is_traced(x)):
            return natural(*xs)
        return natural(xs[0]) / natural(xs[1])

    return log


class _Elementwise:
    """A function of NumPy that takes each number of an array, also of a list of traced numbers: those it would not ask
    how they are computed.
    """

    def __init__(self, real: Any) -> None:
        self.real: Any = real

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ufunc

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.real

    def __hash__(self) -> int:
        return hash(self.real)

    def __call__(self, *xs: Any, **named: Any) -> Any:
        return self.real(*map(_as_array, xs), **named)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.real, name)
        if name not in ("reduce", "accumulate", "reduceat", "outer"):
            return attribute
        return lambda *xs, **named: attribute(*map(_as_array, xs), **named)

    def __repr__(self) -> str:
        return repr(self.real)


def _as_array(x: Any) -> Any:
    return presented(np.array(x)) if type(x) in (list, tuple) and _holds_traced(x) else x


def _number_of_object(x: Any) -> Any:
    recorder = recorder_of_thread()
    if recorder is not None:
        recorder.refuse("asks by id(x) which object one is, and others are there at each call: write a number in it")
    return id(x)


def _asks(how: Callable[[Any], Any], function: Any) -> Callable[[Any], Any]:
    return lambda x: how(converted(x, float)) if is_traced(x) else function(x)


class _Kind(type):
    """A class that behaves like another one, and makes traced numbers of traced ones."""

    real: Any
    make: Any

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return cls.make(*args, **named)

    def __instancecheck__(cls, x: Any) -> bool:
        return _told(isinstance, x, cls.real)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(getattr(kind, "real", kind), cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.real is other

    def __hash__(cls) -> int:
        return hash(cls.real)


def _float(*args: Any) -> Any:
    args = tuple(map(_item, args))
    if len(args) != 1 or not is_traced(args[0]):
        return float(*args)
    return args[0] if type(args[0].number) is float and args[0].doubt is None else converted(args[0], float)


def _item(x: Any) -> Any:
    """Return the number in an array without axes; anything else as it is."""
    return x.view(np.ndarray)[()] if type(x) is TracedArray and not x.ndim else x


def _int(*args: Any) -> Any:
    args = tuple(map(_item, args))
    if len(args) != 1 or not is_traced(args[0]):
        return int(*map(concrete, args))
    number = args[0].number
    if isinstance(number, (bool, np.bool_, np.integer)):
        return converted(args[0], int)
    return args[0] if type(number) is int else math.trunc(args[0])


def _type(*args: Any, **named: Any) -> Any:
    if len(args) == 1 and is_traced(args[0]):
        args[0].tell_type()
    kind = type(*args, **named) if len(args) != 1 else args[0].__class__ if is_traced(args[0]) else type(args[0])
    return np.ndarray if kind is TracedArray else KINDS.get(kind, kind)


def _told(asks: Any, x: Any, what: Any) -> bool:
    """Return what `hasattr` or `isinstance` says of an object; of a number that may be an int or a float, only what is
    the same for both.
    """
    if is_traced(x) and x.doubt and asks(1, what) != asks(1.0, what):
        x.doubt()
    if is_traced(x) and asks(x.number, what) != asks(UNIT, what):
        x.recorder.tell_type(x.number)
    return bool(asks(x.number if is_traced(x) else x, what))


def _is_scalar(x: Any) -> bool:
    if is_traced(x):
        x.recorder.tell_type(x.number)  # a Value is none to NumPy
    return bool(np.isscalar(x.number if is_traced(x) else x))


def _distance(p: Any, q: Any) -> Any:
    p, q = list(p), list(q)
    if not any(map(is_traced, (*p, *q))) or len(p) != len(q):
        return math.dist([*map(concrete, p)], [*map(concrete, q)])
    away = [a - b for a, b in zip(p, q, strict=True)]
    return STANDINS[id(math.sqrt)](sum(x * x for x in away))


def _copysign(x: Any, y: Any) -> Any:
    signed = is_traced(y) and y != 0.0  # a zero has a sign, too
    sign = recorded("sign", BY_NAME["sign"](y.number), y) if signed else math.copysign(1.0, concrete(y))
    return abs(x) * sign if is_traced(x) or signed else math.copysign(x, sign)


def _fmod(x: Any, y: Any) -> Any:
    if not any(map(is_traced, (x, y))):
        return math.fmod(x, y)
    computed(math.fmod, x, y)
    return _copysign(abs(x) % abs(y), x) if x != 0.0 else converted(x, float)  # there abs has no derivative


def _remainder(x: Any, y: Any) -> Any:
    """Return `math.remainder`, by the steps of Python's own, which are exact; which multiple is the nearest one is
    chosen by a number and is no branch, except halfway between two of them.
    """
    if not any(map(is_traced, (x, y))):
        return math.remainder(x, y)
    computed(math.remainder, x, y)
    if x == 0.0:
        return converted(x, float)
    size, period = abs(x), abs(y)
    above = size % period
    below = period - above
    if below - above == 0.0:  # of two nan too it may be asked
        return _copysign(1.0, x) * (above - 2.0 * ((0.5 * (size - above)) % period))
    return _copysign(1.0, x) * choice(above < below, above, -below)[()]


def _fsum(xs: Any) -> Any:
    """Return `math.fsum`, which rounds once: a sum that is compensated by its rounding errors. It is the same where the
    compensation is exact, as for terms of about one size, or guards that what it rounds away cannot change the result.
    (From Python 3.12 on `sum` of floats is compensated; its
    replacement adds one by one, which differs by rounding on the scale of the terms.)
    """
    terms = list(xs)
    if not any(map(is_traced, terms)):
        return math.fsum(terms)
    if not all(type(number_of(x)) in (*FLOATS, int) and not isinstance(x, Value) for x in terms):
        return math.fsum(map(concrete, terms))
    total, errors, lost = converted(terms[0], float), 0.0, 0.0
    for x in terms[1:]:
        total, error = _with_error(total, converted(x, float))
        errors, rest = _with_error(errors, error)
        lost = lost + abs(rest)
    if (of := next(filter(is_traced, (lost, total)), None)) is not None and of.recorder.guard("eq", lost, 0.0):
        total = total + errors
        if not is_traced(total) or total.recorder.guard("within", total, FINITE):
            return total
        return math.fsum(map(concrete, terms))
    total, error, bound = _sum_of_floats(terms)
    if is_traced(total):
        recorder = total.recorder
        certain = recorder.guard("within", total, FINITE) and recorder.guard("eq", total + (error + bound), total)
        if certain and recorder.guard("eq", total + (error - bound), total):
            return total
    return math.fsum(map(concrete, terms))


def _sum_of_floats(xs: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Return the sum of numbers as in twice the digits, what it was rounded by, and a bound for the rest."""
    terms = [converted(x, float) for x in xs]
    total, errors, size = terms[0], 0.0, 0.0
    for x in terms[1:]:
        total, error = _with_error(total, x)
        errors, size = errors + error, size + abs(error)
    return *_with_error(total, errors), size * (len(terms) * 2.0**-51)


def _with_error(x: Any, y: Any) -> tuple[Any, Any]:
    """Return a sum of floats and its rounding error, which is a float (Knuth)."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


def _mean(function: Any) -> Callable[..., Any]:
    """Return `mean` or `fmean` of `statistics`."""

    def mean(data: Any, *weights: Any, **named: Any) -> Any:
        items = list(data)
        if function is statistics.fmean and len(weights) == 1 and not named and _are_floats(items):
            shares = list(weights[0])
            if len(shares) == len(items) and _are_plain(shares) and (total := _fsum(shares)) != 0.0:
                return _fsum([x * share for x, share in zip(items, shares, strict=True)]) / total
            weights = (shares,)
        if weights or named or not _are_floats(items):
            weights = tuple([[*map(concrete, each)] if type(each) is list else concrete(each) for each in weights])
            return function([*map(concrete, items)], *weights, **named)
        if function is statistics.fmean:
            return _fsum(items) / len(items)
        average = _sum_of_floats(items)[0] / len(items)
        if is_traced(average) and not average.recorder.guard("within", average, FINITE):
            return function([*map(concrete, items)])
        return converted(average, np.float64) if type(number_of(items[0])) is np.float64 else average

    return mean


def _harmonic_mean(data: Any, weights: Any = None) -> Any:
    items = list(data)
    shares = [1] * len(items) if weights is None else list(weights)
    can = len(shares) == len(items) > 1 and _are_floats(items) and _are_plain(shares)
    if not can or any(x <= 0.0 for x in items) or any(share <= 0.0 for share in shares):
        weights = None if weights is None else [*map(concrete, shares)]
        return statistics.harmonic_mean([*map(concrete, items)], weights)
    total = len(items) if weights is None else _sum_of_floats(shares)[0]
    mean = total / _sum_of_floats([share / x for x, share in zip(items, shares, strict=True)])[0]
    if is_traced(mean) and not mean.recorder.guard("within", mean, FINITE):
        return statistics.harmonic_mean([*map(concrete, items)], [*map(concrete, shares)])
    return converted(mean, np.float64) if type(number_of(items[0])) is np.float64 else mean


def _mean_and_stdev(data: Any) -> Any:
    """Return what `statistics` makes a normal distribution of."""
    items = list(data)
    return converted(OF_PYTHON[statistics.mean](items), float), OF_PYTHON[statistics.stdev](items)


def _normal_ppf(p: Any, mean: Any, stdev: Any) -> Any:
    """Return the function in C behind `NormalDist.inv_cdf`, which has checked its operands."""
    if not is_traced(p) and not any(map(is_traced, (mean, stdev))):
        return statistics.NormalDist(mean, stdev).inv_cdf(p)
    return _standard_ppf(p) * stdev + mean


def _spread(function: Any, of_sample: bool, is_root: bool) -> Callable[..., Any]:
    """Return the variance or the standard deviation of `statistics`, of a sample or of a population."""

    def spread(data: Any, *center: Any, **named: Any) -> Any:
        items = list(data)
        about = [x for x in center if x is not None]
        if named or len(items) <= of_sample or not _are_floats(items) or not _are_plain(about):
            return function([*map(concrete, items)], *map(concrete, center), **named)
        recorder = next(filter(is_traced, items)).recorder
        is_alike = not about and all(number_of(x) == number_of(items[0]) for x in items)
        if is_alike and all(recorder.guard("eq", x, items[0]) for x in items[1:]):  # their spread is 0, unrounded
            away = [x - items[0] for x in items]
            away = [x - sum(away) / len(items) for x in away]
            variance = sum(x * x for x in away) / max(len(items) - of_sample, 1)
            return _as_spread(variance, is_root, items)
        mean = about[0] if about else _sum_of_floats(items)[0] / len(items)
        away = [x - mean for x in items]
        squares, rest = _sum_of_floats([x * x for x in away])[0], 0.0
        if not about:  # the mean was rounded
            rest = _sum_of_floats(away)[0]
        variance = (squares - rest * rest / len(items)) / (len(items) - of_sample)
        exact = is_traced(variance) and variance.recorder.guard("ge", squares, LEAST_SQUARES)
        exact = exact and variance.recorder.guard("le", 1024.0 * rest * rest, squares)
        if not (exact and variance.recorder.guard("within", variance, FINITE)):
            return function([*map(concrete, items)])
        return _as_spread(variance, is_root, items)

    return spread


def _as_spread(variance: Any, is_root: bool, items: Sequence[Any]) -> Any:
    """Return a variance, or its root, as a number of the type that `statistics` gives for these."""
    if is_root:
        return STANDINS[id(math.sqrt)](variance)
    return converted(variance, np.float64) if type(number_of(items[0])) is np.float64 else variance


def _are_floats(items: list[Any]) -> bool:
    """Return True for floats and constant integers, if one is traced: where `statistics` returns a float."""
    kinds = {type(number_of(x)) for x in items}
    constant = all(type(x) is not Integer for x in items) and not any(isinstance(x, Value) for x in items)
    are_floats = {float} <= kinds <= {float, int} or kinds == {np.float64}
    return constant and are_floats and any(map(is_traced, items)) and not any(is_traced(x) and x.doubt for x in items)


def _are_plain(numbers: list[Any]) -> bool:
    """Return True for ints and floats, traced or not, whose types do not matter for the type of a result."""
    return all(type(number_of(x)) in (int, float) and not isinstance(x, Value) for x in numbers)


def _taking(real: Any) -> Callable[..., Any]:
    """Wrap a function of C, so that it gets plain numbers."""
    return lambda *args, **named: real(*map(concrete, args), **{name: concrete(x) for name, x in named.items()})


def _methods(real: Any) -> dict[str, Any]:
    """Return the methods of float or int, as in `float.__mul__(x, y)`."""
    return {
        name: staticmethod(_taking(getattr(real, name)))
        for name in vars(real)
        if name not in ("__new__", "__getattribute__") and callable(getattr(real, name))
    }


def _value(x: Any, *args: Any, **named: Any) -> Any:
    return x.operand() * 1.0 if is_traced(x) and not args and not named else Value(x, *args, **named)


_OF_C = [(real, _taking(real)) for real in (deque, timedelta, Decimal, Random)]
KINDS: dict[Any, Any] = {
    real: _Kind(
        real.__name__,
        (real,) if real in (float, int) else (),
        (_methods(real) if real in (float, int) else {})
        | {"real": real, "make": staticmethod(make), "__doc__": real.__doc__},
    )
    for real, make in ((float, _float), (int, _int), (type, _type), (Value, _value), *_OF_C)
}
STANDINS: dict[int, Any] = {id(real): standin for real, standin in KINDS.items()}
STANDINS |= {id(getattr(math, row)): _function(getattr(math, row), row) for row in ROWS if hasattr(math, row)}
STANDINS |= {id(f): _function(f, row) for f, row in ((math.fabs, "abs"), (math.pow, "pow"))}
STANDINS[id(math.hypot)] = _hypot
STANDINS |= {id(getattr(math, name)): _asks(how, getattr(math, name)) for name, how in ASKED.items()}
STANDINS |= {
    id(np.where): choice,
    id(hasattr): lambda x, name: _told(hasattr, x, name),  # a tracer answers to more
    id(isinstance): lambda x, kind: _told(isinstance, x, kind) if is_traced(x) else isinstance(x, kind),
}
STANDINS |= {id(math.dist): _distance, id(math.copysign): _copysign, id(math.fsum): _fsum}
STANDINS |= {id(math.fmod): _fmod, id(math.remainder): _remainder}
STANDINS[id(math.log)] = _log(STANDINS[id(math.log)])
STANDINS |= {id(f): _Elementwise(f) for f in vars(np).values() if isinstance(f, np.ufunc)}
STANDINS |= {id(math.radians): lambda x: x * (math.pi / 180.0), id(math.degrees): lambda x: x * (180.0 / math.pi)}
STANDINS[id(id)] = _number_of_object
STANDINS |= {id(f): _identity(f) for f in (operator.is_, operator.is_not)}
_standard_ppf = _function(statistics.NormalDist().inv_cdf, "normal_ppf")
OF_PYTHON: dict[Any, Any] = {f: _mean(f) for f in (statistics.mean, statistics.fmean)}  # by functions in Python
OF_PYTHON[statistics.harmonic_mean] = _harmonic_mean
for _name, _standin in (("_mean_stdev", _mean_and_stdev), ("_fail_neg", None), ("_normal_dist_inv_cdf", _normal_ppf)):
    _helper = getattr(statistics, _name, None)
    if type(_helper) is FunctionType:  # that of the harmonic mean is a generator, which is closed after it
        OF_PYTHON[_helper] = _standin or _helper
    elif _helper is not None:
        STANDINS[id(_helper)] = _standin
OF_PYTHON |= {
    f: _spread(f, of_sample, is_root)
    for f, of_sample, is_root in (
        (statistics.variance, True, False),
        (statistics.stdev, True, True),
        (statistics.pvariance, False, False),
        (statistics.pstdev, False, True),
    )
}
STANDINS |= {id(f): standin for f, standin in OF_PYTHON.items()}
STANDINS |= {id(max): _extreme(max, "max"), id(min): _extreme(min, "min")}


class ModuleView(ModuleType):
    """A module whose attributes are looked up by a function."""

    def __init__(self, module: ModuleType, find: Callable[[str], Any]) -> None:
        super().__init__(module.__name__)
        vars(self).clear()  # its name and its docstring are looked up, too
        self.__find = find

    def __getattr__(self, name: str) -> Any:
        return self.__find(name)


def _in_place_of(function: Any, own: Any) -> Callable[..., Any]:
    """Return a function of this package that is called for one of NumPy's if something traced is passed."""

    def call(*args: Any, **named: Any) -> Any:
        if not any(map(_holds_traced, (*args, *named.values()))):
            return function(*args, **named)
        result = own(*args, **named)
        if isinstance(result, np.ndarray):
            return presented(np.frompyfunc(lambda x: converted(x, np.float64) if is_traced(x) else x, 1, 1)(result))
        return converted(result, np.float64) if is_traced(result) else result

    return call


def _holds_traced(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_holds_traced, x))
    return is_traced(x) or isinstance(x, Value) or type(x) is TracedArray


def _fills(code: CodeType) -> bool:
    """Return True for code that may assign items of an array, change it in place, or pass it as ``out=``."""
    passes = "out" in code.co_names or any(isinstance(x, tuple) and "out" in x for x in code.co_consts)
    return passes or bytecode_of(code).assigns_items


def _filled(function: Any) -> Callable[..., Any]:
    """Wrap a function of NumPy that makes an array: one of floats takes traced numbers if the caller changes it."""

    def call(*args: Any, **named: Any) -> Any:
        is_like = any(type(x) is TracedArray for x in args)  # the new array has the memory layout of this one
        args = tuple([np.empty(x.shape, x.dtype) if type(x) is TracedArray else concrete(x) for x in args])
        array = function(*args, **named)
        if type(array) is not np.ndarray or not array.ndim:
            return array
        if array.dtype != np.float64:
            if is_like and _asks_layout():
                refuse_layout(f"np.{function.__name__}")
            return array
        return fillable(array) if is_like or _fills(sys._getframe(1).f_code) else array

    return call


def _asks_layout() -> bool:
    """Return True if the code that is recorded may ask how an array lies in memory."""
    recorder = recorder_of_thread()
    if recorder is None:
        return False
    names, ran = recorder.proxies.mentioned, recorder.proxies.ran
    return not LAYOUT.isdisjoint(names) or any(x in ("A", "K") for x in constants_of(ran))


def _presenting(function: Any) -> Callable[..., Any]:
    """Wrap a function of NumPy that makes an array, perhaps of floats, which would take the numbers out."""
    takes_dtype = function in (np.array, np.asanyarray, np.asarray)  # after the object

    def call(*args: Any, **named: Any) -> Any:
        if takes_dtype and len(args) == 2:
            args, named["dtype"] = args[:1], args[-1]
        kind = named.get("dtype")
        if kind is None or not _holds_traced(args) or not _is_float64(kind):
            return presented(function(*args, **named))
        array = presented(function(*args, **{name: x for name, x in named.items() if name != "dtype"}))
        if type(array) is not TracedArray or array.kind is None or array.kind.kind not in "if":
            return presented(function(*args, **named))
        if array.kind != np.float64:
            array = presented(np.frompyfunc(lambda x: converted(x, np.float64), 1, 1)(array.view(np.ndarray)))
        return array

    return call


def _is_float64(kind: Any) -> bool:
    try:
        return bool(np.dtype(kind.real if type(kind) is _Kind else kind) == np.float64)
    except TypeError:
        return False


def _of_arrays(function: Any, becomes_one: Callable[[Any], bool] | None = None) -> Callable[..., Any]:
    """Wrap a function of NumPy, so that a list of traced bools, or another one if told so, becomes an array first."""
    asked = becomes_one or _lists_bools
    return lambda *args, **named: function(
        *[presented(np.array(x)) if type(x) in (list, tuple) and asked(x) else x for x in args], **named
    )


def _lists_bools(x: Any) -> bool:
    return any(map(_lists_bools, x)) if type(x) in (list, tuple) else type(x) is Bool


def _laying_out(function: Any) -> Callable[..., Any]:
    """Wrap a function of NumPy that returns its argument itself if that lies in memory as it is to."""

    def call(x: Any, *args: Any, **named: Any) -> Any:
        array = presented(function(x, *args, **named))
        if type(x) is TracedArray and x.of_argument:
            if None in bytecode_of(sys._getframe(1).f_code).identities:
                refuse_layout(f"np.{function.__name__}(x) is x")
            array.of_argument = array.perhaps_copied = True
        return array

    return call


def _result_type(*xs: Any) -> Any:
    """Return NumPy's `result_type`, which asks for types alone."""

    def plain(x: Any) -> Any:
        if is_traced(x) and x.doubt:
            x.doubt()
        return x.number if is_traced(x) else x.dtype if type(x) is TracedArray else x

    return np.result_type(*map(plain, xs))


def _memoryview(x: Any) -> Any:
    if type(x) is TracedArray:
        refuse_layout("memoryview")
    return memoryview(x)


for _name in ("asfortranarray", "ascontiguousarray", "require"):
    STANDINS[id(getattr(np, _name))] = _laying_out(getattr(np, _name))
STANDINS |= {id(np.isscalar): _is_scalar, id(memoryview): _memoryview, id(np.result_type): _result_type}
for _name in ("all", "any", "cumsum", "mean", "prod", "sum"):
    STANDINS[id(getattr(np, _name))] = _of_arrays(getattr(np, _name))
for _name in ("std", "var"):  # of a list NumPy would take the numbers out
    STANDINS[id(getattr(np, _name))] = _of_arrays(getattr(np, _name), _holds_traced)
STANDINS |= {id(np.quantile): quantile(np.quantile, 1), id(np.percentile): quantile(np.percentile, 100)}
for _own, _numpy in (
    *[(getattr(linalg, name), getattr(np.linalg, name)) for name in ("det", "inv", "solve")],
    (interpolation.interp, np.interp),
):
    STANDINS |= {id(f): _in_place_of(f, _own) for f in (_own, _numpy)}
for _name in ("empty", "empty_like", "ones", "ones_like", "zeros", "zeros_like"):
    STANDINS[id(getattr(np, _name))] = _filled(getattr(np, _name))
for _name in ("array", "asanyarray", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "concatenate", "full",
              "hstack", "stack", "vstack"):  # fmt: skip
    STANDINS[id(getattr(np, _name))] = _presenting(getattr(np, _name))
