"""Tracers: numbers that record what is computed from them.

A `Number` stands for an argument, the `.data` of a Value, a captured float, and what is computed from those. Arithmetic
on numbers is Python's, and recorded; with a Value it gives a Value, as in the function itself. A comparison gives a
`Bool`, which can be computed with, and becomes a guard when its truth value is needed. For anything else the tracer
becomes its number in the recorded run, and the recording is valid for that number only. A tracer claims to be a float,
an int or a bool, but is no subclass of those, which C functions would read silently.

Like the engine, this file runs as plain Python or compiled by Cython, with `tracers.pxd`.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.code import asks_class
from wengert.compiler.ir import COMPARISONS
from wengert.compiler.traced.comparisons import HOLDS
from wengert.engine import Value
from wengert.ops import BY_NAME, Op, coerce, ieee

__all__ = ["EXACT", "FINITE", "FLOATS", "NARROW", "PYTHON", "Bool", "Integer", "Nesting", "Number"]
__all__ += ["Pending", "as_operand"]
__all__ += ["compared", "computed", "concrete", "converted", "either", "form_of", "is_alone", "is_bool"]
__all__ += ["TooLarge", "is_for_value", "is_traced", "number_of", "one_of", "recorded", "values_in"]

EXACT = 2.0**53 - 1.0  # up to here each integer is a float of its own
FINITE = sys.float_info.max
LONGEST = 1_000_000  # bits of an integer that is computed while a function is recorded
FLOATS = (float, np.float64)
PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "remainder": operator.mod, "floordiv": operator.floordiv, "neg": operator.neg, "abs": abs,
}  # fmt: skip
CONDITIONS: dict[str, Any] = {  # operations for comparisons, which only recordings use
    how: BY_NAME[how]._replace(
        value=lambda x, y, holds=HOLDS[how]: float(holds(x, y)), partials=lambda out, x, y: (0.0, 0.0)
    )
    for how in COMPARISONS
}
NARROW = tuple([np.dtype(code).type for code in "efgbhilBHILQ" if np.dtype(code) not in (np.int64, np.float64)])
EXACTLY = ("neg", "abs")  # operations that are exact in every type of floats
BITS: dict[str, Callable[..., Any]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
BOOLEAN: dict[str, Any] = {"and": operator.mul, "or": BY_NAME["maximum"], "xor": CONDITIONS["ne"]}  # on 0.0 and 1.0
CALLER = 0 if ieee.COMPILED else 1  # compiled functions have no frames
UNTOUCHED = frozenset(["dtype", "itemsize", "nbytes", "ndim", "shape", "size"])  # the same for all scalars of a type


# fmt: off
class Number:

    __slots__ = ("_attached", "_node", "doubt", "for_value", "most", "number", "recorder", "silent")

    def __init__(self, recorder: Any, number: Any, node: Any, attached: bool = False) -> None:
        self.recorder: Any = recorder
        self.number: Any = number  # its value in the recorded run
        self._node: Any = node  # the Value that is recorded for it
        self._attached: bool = attached  # gradients would flow through the node
        self.most: float = math.inf  # a bound for its absolute value
        self.doubt: Callable[[], Any] | None = None  # adds the guards that decide its type, if that can vary
        self.for_value: bool = False  # in place of a Value, or one of several numbers of which one is
        self.silent: bool = False  # arithmetic raises no errors: surely in place of a Value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if (self.doubt is not None or self.recorder.for_values) and asks_class(sys._getframe(CALLER)):
            self.tell_type()
        return type(self.number)

    def tell_type(self) -> None:
        """Add the guards that decide its type, if that can vary, as the function asks for it."""
        if self.doubt is not None:
            self.doubt()
        self.recorder.tell_type(self.number)

    def operand(self) -> Any:
        """Return the operand to record: a Value through which no gradient flows; after the run the number."""
        if not self.recorder.open:
            return self.number
        return self.recorder.detached(self._node) if self._attached else self._node

    def concrete(self) -> Any:
        """Return the number itself; a guard makes the recording valid for that number only."""
        self.tell_type()
        self.recorder.guard("eq" if isinstance(self.number, (int, np.integer)) else "is", self, float(self.number))
        return self.number

    def __add__(self, other: Any) -> Any: return _binary("add", self, other)
    def __radd__(self, other: Any) -> Any: return _binary("add", other, self)
    def __sub__(self, other: Any) -> Any: return _binary("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return _binary("sub", other, self)
    def __mul__(self, other: Any) -> Any: return _binary("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return _binary("mul", other, self)
    def __truediv__(self, other: Any) -> Any: return _binary("div", self, other)
    def __rtruediv__(self, other: Any) -> Any: return _binary("div", other, self)
    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return _computed("pow", self, other) if modulus is None else pow(*map(concrete, (self, other, modulus)))
    def __rpow__(self, other: Any) -> Any: return _computed("pow", other, self)
    def __mod__(self, other: Any) -> Any: return _computed("remainder", self, other)
    def __rmod__(self, other: Any) -> Any: return _computed("remainder", other, self)
    def __floordiv__(self, other: Any) -> Any: return _computed("floordiv", self, other)
    def __rfloordiv__(self, other: Any) -> Any: return _computed("floordiv", other, self)
    def __divmod__(self, other: Any) -> Any: return self // other, self % other
    def __rdivmod__(self, other: Any) -> Any: return other // self, other % self
    def __neg__(self) -> Any: return _computed("neg", self)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return _computed("abs", self)
    def __lt__(self, other: Any) -> Any: return _compared("lt", self, other)
    def __le__(self, other: Any) -> Any: return _compared("le", self, other)
    def __gt__(self, other: Any) -> Any: return _compared("gt", self, other)
    def __ge__(self, other: Any) -> Any: return _compared("ge", self, other)
    def __eq__(self, other: Any) -> Any: return _compared("eq", self, other)
    def __ne__(self, other: Any) -> Any: return _compared("ne", self, other)
    def __bool__(self) -> bool: return self.recorder.answer("ne", self, 0.0)  # type: ignore[no-any-return]
    def __copy__(self) -> Any: return self.__deepcopy__(None)
    def __deepcopy__(self, memo: Any) -> Any:
        self.recorder.tell_type(self.number)  # the copy of a Value is another one
        return self
    def __hash__(self) -> int: return _hashed(self)
    def __float__(self) -> float: return float(self.concrete())
    def __complex__(self) -> complex: return complex(self.concrete())
    def __str__(self) -> str: return str(self.concrete())
    def __repr__(self) -> str: return repr(self.concrete())
    def __format__(self, spec: Any) -> str: return format(self.concrete(), spec)
    def __reduce_ex__(self, protocol: Any) -> Any: return self.concrete().__reduce_ex__(protocol)
    def __dir__(self) -> Any:
        self.recorder.tell_type(self.number)
        return dir(self.number)
    def __floor__(self) -> Any: return _whole("floor", self)
    def __ceil__(self) -> Any: return -_whole("floor", -self)
    def __trunc__(self) -> Any: return self.__floor__() if self >= 0.0 else self.__ceil__()
    def __int__(self) -> Any: return math.trunc(self.concrete())
    def __index__(self) -> Any: return operator.index(self.concrete())
    def __and__(self, other: Any) -> Any: return self.concrete() & concrete(other)
    def __rand__(self, other: Any) -> Any: return concrete(other) & self.concrete()
    def __or__(self, other: Any) -> Any: return self.concrete() | concrete(other)
    def __ror__(self, other: Any) -> Any: return concrete(other) | self.concrete()
    def __xor__(self, other: Any) -> Any: return self.concrete() ^ concrete(other)
    def __rxor__(self, other: Any) -> Any: return concrete(other) ^ self.concrete()
    def __lshift__(self, other: Any) -> Any:
        return self * (type(self.number)(1) << _not_huge(self.recorder, 1, concrete(other)))
    def __rlshift__(self, other: Any) -> Any: return concrete(other) << _not_huge(self.recorder, 1, self.concrete())
    def __rshift__(self, other: Any) -> Any: return self // (type(self.number)(1) << concrete(other))
    def __rrshift__(self, other: Any) -> Any: return concrete(other) >> self.concrete()
    def __invert__(self) -> Any: return ~self.concrete()
    # fmt: on

    def __round__(self, digits: Any = None) -> Any:
        if digits is None and isinstance(self.number, (float, int)):
            return _whole("round", self)
        return round(self.concrete(), concrete(digits))

    def __getattr__(self, name: Any) -> Any:  # Any: Cython would refuse a subclass of str
        if name.startswith("__array"):  # NumPy would convert it to a constant
            raise AttributeError(name)
        if name not in ("real", "conjugate"):
            self.tell_type()
        if name in UNTOUCHED or not hasattr(self.number, name):
            return getattr(self.number, name)
        if name in ("real", "numerator"):
            return self
        if name == "imag":
            return self.number.imag
        return functools.partial(self._method, name) if callable(getattr(self.number, name)) else self._method(name)

    def _method(self, name: Any, *args: Any, **named: Any) -> Any:
        if name == "item":
            return converted(self, type(self.number.item()))
        if name == "conjugate":
            return self
        if name == "is_integer":
            finite = self.recorder.guard("within", self, FINITE)
            return finite and self == recorded("floor", BY_NAME["floor"](self.number), self)
        attribute = getattr(self.concrete(), name)
        return attribute(*map(concrete, args), **named) if callable(attribute) else attribute

    def _apply_op(self, op: Op, xs: Any) -> Any:
        """Apply a function of the table: the result is a Value if an operand is one."""
        if op.series is not None:  # an order before the operand is part of the program
            xs = (*map(concrete, xs[:-1]), xs[-1])
        if any(isinstance(x, Value) for x in xs):
            return op(*map(as_operand, xs))
        return recorded(op.name, op(*map(number_of, xs)), *xs)


def _hashed(x: Number) -> int:
    if x.number != x.number:  # Python's nan is hashed by its identity
        x.recorder.refuse("looks up nan, of which Python asks whether it is the same object: write math.isnan(x)")
    return hash(x.concrete())


class Integer(Number):
    """An integer argument, or one a constant offset from it. As an index it chooses an item of a list at run time."""

    __slots__ = ("base", "extent", "fixed", "name", "steps")

    def __init__(
        self, recorder: Any, number: Any, node: Any, name: str, fixed: bool = False, base: Any = None, steps: int = 0
    ) -> None:
        super().__init__(recorder, number, node)
        self.name: str = name  # of its input
        self.fixed: bool = fixed  # as an index it is part of the specialization
        self.base: Any = self if base is None else base  # the argument,
        self.steps: int = steps  # and the offset from it
        self.extent: int = 0  # the length of the shortest list that it chooses from

    def __add__(self, other: Any) -> Any:
        return self._moved(super().__add__(other), other)

    def __sub__(self, other: Any) -> Any:
        return self._moved(super().__sub__(other), -other if type(other) is int else other)

    def __radd__(self, other: Any) -> Any:
        return self._moved(super().__radd__(other), other)

    def _moved(self, shifted: Any, by: Any) -> Any:
        if type(by) is not int or not is_traced(shifted):
            return shifted
        return Integer(self.recorder, shifted.number, shifted._node, self.name, self.fixed, self.base, self.steps + by)

    def select(self, items: Any) -> Any:
        """Return the item of a list at this index, for the library's own functions."""
        return items[self.chosen(items)]

    def chosen(self, items: Any) -> int:
        """Return the index of a list's item, chosen at run time if possible."""
        number = int(self.number)
        count = len(items) - self.steps  # the argument may be below this
        forms = {*map(form_of, items)}  # items must have one structure
        inside = -len(items) <= number < len(items) and (not self.steps or 0 <= self.base.number < count)
        if self.fixed or not inside or len(forms) != 1 or None in forms:
            return operator.index(self.concrete())
        reached = [items[n + self.steps] for n in range(count)] if self.steps else list(items)
        self.recorder.note_choice(self.base, reached)
        return number

    def __index__(self) -> int:
        items = None if self.fixed else self.recorder.indexed(sys._getframe(CALLER), int(self.number))
        return operator.index(self.concrete()) if items is None else self.chosen(items)  # range(n), a slice


class Bool(Number):
    """A traced bool: the outcome of a comparison, or a combination of outcomes."""

    __slots__ = ("asked",)

    def __init__(self, recorder: Any, number: Any, node: Any, asked: Any = None) -> None:
        super().__init__(recorder, number, node)
        self.asked: Any = asked  # for a comparison: a name in HOLDS, and both sides
        self.most: float = 1.0

    def operand(self) -> Any:
        """Return the operand, which for a comparison is made now."""
        if self._node is None and self.recorder.open:
            how, left, right = self.asked
            self._node = CONDITIONS[how](as_operand(left), as_operand(right))
        return super().operand()

    def concrete(self) -> Any:
        """Return the bool itself; a guard makes the recording valid for that bool only."""
        return type(self.number)(bool(self))

    def __bool__(self) -> bool:
        return self.recorder.answer(*(self.asked or ("ne", self, 0.0)))  # type: ignore[no-any-return]

    # fmt: off
    def __int__(self) -> Any: return int(self.concrete())
    def __pos__(self) -> Any: return self + 0 if type(self.number) is bool else +self.concrete()
    def __invert__(self) -> Any: return -1 - self if type(self.number) is bool else _inverted(self)
    def __and__(self, other: Any) -> Any: return _logic("and", self, other)
    def __or__(self, other: Any) -> Any: return _logic("or", self, other)
    def __xor__(self, other: Any) -> Any: return _logic("xor", self, other)
    def __rand__(self, other: Any) -> Any: return _logic("and", other, self)
    def __ror__(self, other: Any) -> Any: return _logic("or", other, self)
    def __rxor__(self, other: Any) -> Any: return _logic("xor", other, self)
    # fmt: on

    def __getattr__(self, name: Any) -> Any:
        is_int = type(self.number) is bool and name in ("real", "numerator")
        return +self if is_int else super().__getattr__(name)

    def _method(self, name: Any, *args: Any, **named: Any) -> Any:
        is_int = type(self.number) is bool and name == "conjugate"
        return +self if is_int else super()._method(name, *args, **named)


class Pending(Number):
    """A number of a derivative whose program is made later: see `nested`. The recorded function may only return it."""

    __slots__ = ("place", "source")

    def __init__(self, source: Any, place: int) -> None:
        self.source: Any = source  # the derivative
        self.place: int = place  # among its numbers
        self.doubt: Callable[[], Any] | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return float

    @property
    def recorder(self) -> Any:
        raise Nesting

    @property
    def number(self) -> Any:
        raise Nesting

    @property
    def most(self) -> Any:  # type: ignore[override]
        raise Nesting

    def operand(self) -> Any:
        raise Nesting

    def concrete(self) -> Any:
        raise Nesting


class Nesting(BaseException):
    """A recorded function computes with a derivative, so that it has to be recorded operation by operation."""


class TooLarge(BaseException):
    """A recording has more operations than may be recorded by now."""


TRACED = frozenset((Number, Integer, Bool, Pending))
PYTHON_KINDS = frozenset((float, int, bool))
PLAIN_KINDS = TRACED | PYTHON_KINDS  # no Values among them
coerce.OWN.update(TRACED)


# -- operations on numbers --------------------------------------------------------------------------------------------


def is_traced(x: Any) -> bool:
    """Return True for a tracer, by its real type."""
    return type(x) in TRACED


def as_operand(x: Any) -> Any:
    """Return the operand to record for a number or a Value."""
    return x.operand() if type(x) in TRACED else x


def number_of(x: Any) -> Any:
    """Return the number of an operand in the recorded run; `NotImplemented` for other objects."""
    kind = type(x)
    if kind in TRACED:
        return x.number
    if kind is float or kind is int:
        return x
    if issubclass(kind, Value):
        return x._data
    return x if coerce.is_number(x) else NotImplemented


def concrete(x: Any) -> Any:
    """Return a tracer's number, for which alone the recording is then valid; other objects as they are."""
    return x.concrete() if is_traced(x) else x


def recorded(name: str, result: Any, *xs: Any) -> Any:
    """Record an operation on numbers, one of which is traced, and return its result."""
    recorder = _recorder_of(xs)
    if not recorder.open:
        return result
    recorder.uses_numpy |= type(result) is np.float64
    node = BY_NAME[name](*map(as_operand, xs))
    if node._made > recorder.last:
        recorder.break_off()
    return _bool(recorder, result, node) if is_bool(result) else _number(recorder, result, node, xs)


def _number(recorder: Any, result: Any, node: Any, xs: Any) -> Any:
    """Return the traced result of an operation."""
    tracer = Number(recorder, result, node)
    if recorder.for_values:
        for x in xs:
            if type(x) in TRACED:
                tracer.for_value, tracer.silent = tracer.for_value or x.for_value, tracer.silent or x.silent
    return tracer


def either(how: str, x: Any, y: Any) -> Any:
    """Return x if it compares so with y, else y, as Python's `max` chooses one of its arguments: at run time, and with
    the derivative of the one that is chosen.
    """
    outcome = HOLDS[how](number_of(x), number_of(y))
    if not (type(x) in TRACED or type(y) in TRACED):
        return x if outcome else y
    condition = Bool(_recorder_of((x, y)), outcome, None, (how, x, y))
    return one_of(recorded("where", number_of(x if outcome else y), condition, x, y), (x, y))


def is_for_value(xs: Any) -> bool:
    """Return True if one of several numbers is in place of a Value."""
    return any(type(x) in TRACED and x.for_value for x in xs)


def _is_silent(xs: Any) -> bool:
    """Return True if arithmetic with several numbers raises no errors, as one of them is surely in place of a Value."""
    return any(type(x) in TRACED and x.silent for x in xs)


def one_of(result: Any, xs: Any) -> Any:
    """Return what Python or NumPy has chosen among several numbers: surely a Value only if each of them is one."""
    if type(result) in TRACED:
        result.silent = all(type(x) in TRACED and x.silent for x in xs)
    return result


def is_alone(extremum: Any, xs: Any) -> bool:
    """Return True if one number alone is the extreme one of several, with a guard: the derivative flows to the first of
    equal ones.
    """
    count = sum(converted(x == extremum, float) for x in xs)
    return count == 1.0 if not is_traced(count) else bool(count.recorder.guard("eq", count, 1.0))


def _bool(recorder: Any, number: Any, node: Any, asked: Any = None) -> Any:
    """Return a traced bool; the bool itself, with a guard, if the function may ask which of the two it is."""
    tracer = Bool(recorder, number, node, asked)
    return tracer.concrete() if recorder.observes_bools else tracer


def converted(x: Any, kind: Any) -> Any:
    """Convert a traced or plain number to another type that can represent it."""
    if not is_traced(x) or not x.recorder.open:
        return kind(number_of(x))
    if is_bool(kind()):
        return _bool(x.recorder, kind(x.number), x._node, x.asked)
    if type(x) is Integer and kind is int:
        return Integer(x.recorder, int(x.number), x._node, x.name, x.fixed, x.base, x.steps)
    tracer = _number(x.recorder, kind(x.number), x.operand(), (x,))
    tracer.most = x.most
    return tracer


def is_bool(x: Any) -> bool:
    return type(x) is bool or type(x) is np.bool_


def _recorder_of(xs: Any) -> Any:
    for x in xs:
        if type(x) in TRACED:
            return x.recorder
    raise TypeError("none of the operands is traced")


def computed(function: Any, *xs: Any) -> Any:
    """Call a function on numbers; if it raises, the recording is valid for these numbers only."""
    try:
        return function(*map(number_of, xs))
    except Exception:  # of any type of number
        for x in xs:
            concrete(x)
        raise


def _not_huge(recorder: Any, bits: int, times: Any) -> Any:
    """Return how many times so many bits are wanted of Python's integers; NumPy, which may be what computes with lists
    of them while nothing is recorded, has 64.

    Raises:
        Unrecordable: they are very many.
    """
    if bits * times > LONGEST:
        recorder.refuse("computes an integer of over a million bits: compute it before, and pass what you need of it")
    return times


def _binary(name: str, x: Any, y: Any) -> Any:
    """Compute a sum, difference, product or quotient; the usual ones without further checks."""
    if issubclass(type(x), Value) or issubclass(type(y), Value):
        return PYTHON[name](as_operand(x), as_operand(y))
    a, b = number_of(x), number_of(y)
    first, second = type(a), type(b)
    plain = (first in FLOATS and (second in FLOATS or second is int)) or (first is int and second in FLOATS)
    if not plain or (name == "div" and (first is not float or type(y) in TRACED or not b)):
        return _computed(name, x, y)
    try:
        result = PYTHON[name](a, b)
    except Exception:  # as NumPy is set, or a filter of warnings
        return computed(PYTHON[name], x, y)
    recorder = x.recorder if type(x) in TRACED else y.recorder
    if not recorder.open:
        return result
    recorder.uses_numpy |= type(result) is np.float64
    node = PYTHON[name](as_operand(x), as_operand(y))
    if node._made > recorder.last:
        recorder.break_off()
    tracer = _number(recorder, result, node, (x, y))
    return _doubted(tracer, (x, y)) if recorder.type_uncertain and name != "div" else tracer


def _computed(name: str, *xs: Any) -> Any:
    """Compute an operation of Python's arithmetic; guard against numbers for which it would raise."""
    kinds = [*map(type, xs)]
    if not PLAIN_KINDS.issuperset(kinds) and any(issubclass(kind, Value) for kind in kinds):
        return PYTHON[name](*map(as_operand, xs))
    numbers = [*map(number_of, xs)]
    if not PYTHON_KINDS.issuperset(map(type, numbers)) and any(x is NotImplemented for x in numbers):
        has_complex_or_text = any(isinstance(x, (complex, str, bytes)) for x in xs)
        return PYTHON[name](*map(concrete, xs)) if has_complex_or_text else NotImplemented
    recorder = _recorder_of(xs)
    if not recorder.open:
        return PYTHON[name](*numbers)
    by_numpy = not PYTHON_KINDS.issuperset(map(type, numbers)) and any(isinstance(x, np.generic) for x in numbers)
    if name == "pow" and type(numbers[0]) is type(numbers[1]) is int:
        _not_huge(recorder, numbers[0].bit_length() - 1, numbers[1])
    divides = name in ("remainder", "floordiv") or (name == "div" and not by_numpy)
    if name == "div" and numbers[1] and _is_silent(xs):
        divides = False
    if divides and not recorder.guard("ne", xs[1], 0.0):  # Python raises, NumPy does not
        return PYTHON[name](*(map(concrete, xs) if by_numpy else numbers))
    if name == "pow" and not by_numpy and float in map(type, numbers):
        power = BY_NAME["pow"](*map(float, numbers))
        if abs(power) > FINITE and not recorder.guard("within", recorded("pow", power, *xs), FINITE):
            PYTHON[name](*numbers)  # it raises, unless one of them is infinite
    result = computed(PYTHON[name], *xs)
    if type(result) is np.bool_ and name == "add":
        recorder.refuse("adds bools of NumPy, where they may count or not: write a | b, or int(a) + int(b)")
    if type(result) is np.bool_ and name == "mul":
        return _logic("and", *xs)
    if isinstance(result, complex):
        return PYTHON[name](*map(concrete, xs))
    if type(result) in NARROW and isinstance(result, np.floating) and name not in EXACTLY:
        computes_in(recorder, type(result))
    if isinstance(result, (int, np.integer)) and any(abs(x) > EXACT for x in numbers):
        return PYTHON[name](*map(concrete, xs))  # one of them is not exact as a float
    if name == "floordiv":
        x, y = map(as_operand, xs)
        multiple = x - BY_NAME["remainder"](x, y)
        exactly = Number(recorder, numbers[0] - numbers[0] % numbers[1], multiple)
        if isinstance(result, (int, np.integer)) and not recorder.guard("within", exactly, EXACT):
            return PYTHON[name](*map(concrete, xs))
        tracer = Number(recorder, result, BY_NAME["round"](multiple / y))
    else:
        tracer = recorded(name, result, *xs)
    if isinstance(result, (int, np.integer)):
        tracer.most = _most(name, *xs)
        if isinstance(result, np.integer):
            if not _fits(recorder, tracer, type(result)):
                return PYTHON[name](*map(concrete, xs))
        elif not tracer.most <= EXACT and not recorder.guard("within", tracer, EXACT):
            return PYTHON[name](*map(concrete, xs))
        if name == "pow":
            recorder.guard("ge", xs[1], 0.0)  # else a float
    elif name == "pow" and not by_numpy:
        if not tracer.silent:
            recorder.guard("within", tracer, FINITE)
        if all(isinstance(x, int) for x in numbers):
            recorder.guard("ge", xs[1], 0.0)  # else an int
    return _doubted(tracer, xs) if recorder.type_uncertain and name != "div" else tracer


def computes_in(recorder: Any, kind: Any) -> None:
    """Stop the recording, as numbers of a narrow type of NumPy are rounded as no program does.

    Raises:
        Unrecordable: always, during the run.
    """
    recorder.refuse(f"computes in {kind.__name__}, which rounds: pass float64, as x.astype(float) is")


def _fits(recorder: Any, tracer: Any, kind: Any) -> bool:
    """Return True if an integer fits in a type of NumPy, with guards that it does; beyond, NumPy's wrap around."""
    most = min(float(np.iinfo(kind).max), EXACT)
    if float(tracer.number) != tracer._node._data:
        return False
    if not tracer.most <= most and not recorder.guard("within", tracer, most):
        return False
    return bool(np.iinfo(kind).min) or bool(recorder.guard("ge", tracer, 0.0))


def _doubted(result: Any, xs: tuple[Any, ...]) -> Any:
    """Mark a result whose type depends on those of its operands, unless one is a float."""
    doubts = [x.doubt for x in xs if is_traced(x) and x.doubt]
    certain = [x for x in xs if type(number_of(x)) is float and not (is_traced(x) and x.doubt)]
    if doubts and not certain and is_traced(result):
        result.doubt = lambda: [doubt() for doubt in doubts]
        if type(result.number) is float and not result.recorder.guard("within", result, EXACT):
            result.doubt()  # beyond, ints are exact and floats are not
    return result


def _most(name: str, *xs: Any) -> float:
    """Return a bound for the size of the result of an operation on integers."""
    sizes = [x.most if is_traced(x) else float(abs(x)) for x in xs]
    if name in ("add", "sub"):
        return sum(sizes)
    return math.prod(sizes) if name in ("mul", "neg", "abs") else math.inf


def _compared(how: str, x: Number, other: Any) -> Any:
    if isinstance(other, np.ndarray):
        return NotImplemented
    y = number_of(other)
    if y is NotImplemented:
        return y
    if type(x.number) in NARROW and type(y) in (float, int) and isinstance(x.number, np.floating):
        if is_traced(other):  # NumPy rounds it first
            computes_in(x.recorder, type(x.number))
        else:
            y = other = float(computed(type(x.number), y))
    elif type(y) in NARROW and isinstance(y, np.floating) and type(x.number) in (float, int):
        computes_in(x.recorder, type(y))
    return compared(x.recorder, how, x, other, HOLDS[how](x.number, y))


def compared(recorder: Any, how: str, x: Any, other: Any, outcome: Any) -> Any:
    """Return the outcome of a comparison, also of Values."""
    if not recorder.open or recorder.observes_bools:
        return recorder.answer(how, x, other)
    return Bool(recorder, outcome, None, (how, x, other))


def _logic(name: str, x: Any, y: Any) -> Any:
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return NotImplemented
    numbers = number_of(x), number_of(y)
    if not all(map(is_bool, numbers)):
        return BITS[name](concrete(x), concrete(y))
    recorder, result = _recorder_of((x, y)), BITS[name](*numbers)
    return Bool(recorder, result, BOOLEAN[name](as_operand(x), as_operand(y))) if recorder.open else result


def _inverted(x: Any) -> Any:
    result = type(x.number)(not x.number)
    return Bool(x.recorder, result, CONDITIONS["eq"](x.operand(), 0.0)) if x.recorder.open else result


def _whole(name: str, x: Any) -> Any:
    """Round a number to an int."""
    if not is_traced(x):
        return int(BY_NAME[name](x))
    whole = recorded(name, computed(lambda number: int(BY_NAME[name](float(number))), x), x)
    if not x.recorder.guard("within", whole, EXACT):
        concrete(x)
    return whole


# -- lists of them ---------------------------------------------------------------------------------------------------


def form_of(x: Any) -> Any:
    """Return the structure of nested lists of Values and traced numbers; None if they hold anything else."""
    if isinstance(x, (list, tuple, np.ndarray)):
        forms = [form_of(item) for item in x]
        return None if None in forms else (x.__class__, *forms)
    return x.__class__ if isinstance(x, Value) or is_traced(x) else None


def values_in(x: Any) -> list[Value]:
    """List the Values in nested lists, and the operands of the traced numbers."""
    if isinstance(x, (list, tuple, np.ndarray)):
        return [value for item in x for value in values_in(item)]
    x = as_operand(x)
    return [x] if isinstance(x, Value) else []
