"""Tracers: numbers that record what is computed from them.

A `Number` stands for an argument, the `.data` of a Value, a captured float, and what is computed from those. Arithmetic
on numbers is Python's, and recorded; with a Value it gives a Value, as in the function itself. A comparison gives a
`Bool`, which can be computed with, and becomes a guard when its truth value is needed. For anything else the tracer
becomes its number in the recorded run, and the recording is valid for that number only. A tracer claims to be a float,
an int or a bool, but is no subclass of those, which C functions would read silently.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.compiler.ir import COMPARISONS
from wengert.engine import Value
from wengert.ops import BY_NAME, Op, coerce

__all__ = ["EXACT", "FINITE", "HOLDS", "Bool", "Integer", "Nesting", "Number", "Pending", "TracedArray", "as_operand"]
__all__ += ["choice", "compared", "computed", "concrete", "converted", "fillable", "is_traced", "number_of"]
__all__ += ["presented", "recorded", "values_in"]

EXACT = 2.0**53 - 1.0  # up to here each integer is a float of its own
FINITE = sys.float_info.max
FLOATS = (float, np.float64)
HOLDS: dict[str, Callable[..., Any]] = {  # the comparisons of guards, for numbers and arrays of a library
    "lt": lambda x, y, xp=np: x < y,
    "le": lambda x, y, xp=np: x <= y,
    "gt": lambda x, y, xp=np: x > y,
    "ge": lambda x, y, xp=np: x >= y,
    "eq": lambda x, y, xp=np: x == y,
    "ne": lambda x, y, xp=np: x != y,
    "is": lambda x, y, xp=np: (x == y) & (xp.signbit(x) == xp.signbit(y)) | (x != x) & (y != y),
    "within": lambda x, y, xp=np: xp.abs(x) <= y,
}
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
BITS: dict[str, Callable[..., Any]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
BOOLEAN: dict[str, Any] = {"and": operator.mul, "or": BY_NAME["maximum"], "xor": CONDITIONS["ne"]}  # on 0.0 and 1.0
UFUNCS: dict[str, str] = {  # NumPy's functions that have another name in the table
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow", "float_power": "pow",
    "negative": "neg", "absolute": "abs", "fabs": "abs", "floor_divide": "floordiv", "mod": "remainder",
    "rint": "round",
}  # fmt: skip
COMPARED: dict[str, Callable[..., Any]] = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
LOGIC: dict[str, Callable[..., Any]] = {  # NumPy's functions of bools, or of the truth values of numbers
    "logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "logical_not": operator.invert, "invert": operator.invert,
}  # fmt: skip
OF_BOOLS: dict[str, Callable[..., Any]] = {  # NumPy's functions of numbers that are logic on bools
    "add": operator.or_, "maximum": operator.or_, "multiply": operator.and_, "minimum": operator.and_,
}  # fmt: skip
ASKED: dict[str, Callable[[Any], Any]] = {
    "isnan": lambda x: x != x,
    "isfinite": lambda x: abs(x) <= FINITE,
    "isinf": lambda x: abs(x) > FINITE,
}
UNTOUCHED = frozenset(["dtype", "itemsize", "nbytes", "ndim", "shape", "size"])  # the same for all scalars of a type


# fmt: off
class Number:

    __slots__ = ("_attached", "_node", "doubt", "most", "number", "recorder")

    def __init__(self, recorder: Any, number: Any, node: Any, attached: bool = False) -> None:
        self.recorder: Any = recorder
        self.number: Any = number  # its value in the recorded run
        self._node: Any = node  # the Value that is recorded for it
        self._attached: bool = attached  # gradients would flow through the node
        self.most: float = math.inf  # a bound for its absolute value
        self.doubt: Callable[[], Any] | None = None  # adds the guards that decide its type, if that can vary

    @property  # type: ignore[misc]
    def __class__(self) -> Any: return type(self.number)

    def operand(self) -> Any:
        """Return the operand to record: a Value through which no gradient flows; after the run the number."""
        if not self.recorder.open:
            return self.number
        return self.recorder.detached(self._node) if self._attached else self._node

    def concrete(self) -> Any:
        """Return the number itself; a guard makes the recording valid for that number only."""
        self.recorder.guard("eq" if isinstance(self.number, (int, np.integer)) else "is", self, float(self.number))
        return self.number

    def __add__(self, other: Any) -> Any: return _computed("add", self, other)
    def __radd__(self, other: Any) -> Any: return _computed("add", other, self)
    def __sub__(self, other: Any) -> Any: return _computed("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return _computed("sub", other, self)
    def __mul__(self, other: Any) -> Any: return _computed("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return _computed("mul", other, self)
    def __truediv__(self, other: Any) -> Any: return _computed("div", self, other)
    def __rtruediv__(self, other: Any) -> Any: return _computed("div", other, self)
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
    def __copy__(self) -> Any: return self
    def __deepcopy__(self, memo: Any) -> Any: return self
    def __hash__(self) -> int: return hash(self.concrete())
    def __float__(self) -> float: return float(self.concrete())
    def __complex__(self) -> complex: return complex(self.concrete())
    def __str__(self) -> str: return str(self.concrete())
    def __repr__(self) -> str: return repr(self.concrete())
    def __format__(self, spec: str) -> str: return format(self.concrete(), spec)
    def __reduce_ex__(self, protocol: Any) -> Any: return self.concrete().__reduce_ex__(protocol)
    def __dir__(self) -> Any: return dir(self.number)
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
    def __lshift__(self, other: Any) -> Any: return self * (type(self.number)(1) << concrete(other))
    def __rlshift__(self, other: Any) -> Any: return concrete(other) << self.concrete()
    def __rshift__(self, other: Any) -> Any: return self // (type(self.number)(1) << concrete(other))
    def __rrshift__(self, other: Any) -> Any: return concrete(other) >> self.concrete()
    def __invert__(self) -> Any: return ~self.concrete()
    # fmt: on

    def __round__(self, digits: Any = None) -> Any:
        if digits is None and isinstance(self.number, (float, int)):
            return _whole("round", self)
        return round(self.concrete(), concrete(digits))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):  # NumPy would convert it to a constant
            raise AttributeError(name)
        if name in UNTOUCHED or not hasattr(self.number, name):
            return getattr(self.number, name)
        if name in ("real", "numerator"):
            return self
        if name == "imag":
            return self.number.imag
        return functools.partial(self._method, name) if callable(getattr(self.number, name)) else self._method(name)

    def _method(self, name: str, *args: Any, **named: Any) -> Any:
        if name == "item":
            return converted(self, type(self.number.item()))
        if name == "conjugate":
            return self
        if name == "is_integer":
            finite = self.recorder.guard("within", self, FINITE)
            return finite and self == recorded("floor", BY_NAME["floor"](self.number), self)
        found = getattr(self.concrete(), name)
        return found(*map(concrete, args), **named) if callable(found) else found

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any, **options: Any) -> Any:
        return _by_element(ufunc, method, xs, options)

    def _apply_op(self, op: Op, xs: Any) -> Any:
        """Apply a function of the table: the result is a Value if an operand is one."""
        if op.series is not None:  # an order before the operand is part of the program
            xs = (*map(concrete, xs[:-1]), xs[-1])
        if any(isinstance(x, Value) for x in xs):
            return op(*map(as_operand, xs))
        return recorded(op.name, op(*map(number_of, xs)), *xs)


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

    def _moved(self, made: Any, by: Any) -> Any:
        if type(by) is not int or not is_traced(made):
            return made
        return Integer(self.recorder, made.number, made._node, self.name, self.fixed, self.base, self.steps + by)

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
        items = None if self.fixed else self.recorder.indexed(sys._getframe(1), int(self.number))
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

    def __getattr__(self, name: str) -> Any:
        is_int = type(self.number) is bool and name in ("real", "numerator")
        return +self if is_int else super().__getattr__(name)

    def _method(self, name: str, *args: Any, **named: Any) -> Any:
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


TRACED = frozenset((Number, Integer, Bool, Pending))
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
    return (Bool if _is_bool(result) else Number)(recorder, result, BY_NAME[name](*map(as_operand, xs)))


def converted(x: Any, kind: Any) -> Any:
    """Convert a traced or plain number to another type that can represent it."""
    if not is_traced(x) or not x.recorder.open:
        return kind(number_of(x))
    if _is_bool(kind()):
        return Bool(x.recorder, kind(x.number), x._node, x.asked)
    if type(x) is Integer and kind is int:
        return Integer(x.recorder, int(x.number), x._node, x.name, x.fixed, x.base, x.steps)
    made = Number(x.recorder, kind(x.number), x.operand())
    made.most = x.most
    return made


def _is_bool(x: Any) -> bool:
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


def _computed(name: str, *xs: Any) -> Any:
    """Compute an operation of Python's arithmetic; guard against numbers for which it would raise."""
    for x in xs:  # written with few calls: the profiler makes each three times as slow
        if issubclass(type(x), Value):
            return PYTHON[name](*[each.operand() if type(each) in TRACED else each for each in xs])
    numbers = [*map(number_of, xs)]
    if name in ("add", "sub", "mul") and type(numbers[0]) in FLOATS and type(numbers[1]) in FLOATS:
        recorder = _recorder_of(xs)  # skips the checks below
        try:
            made = PYTHON[name](*numbers)
        except Exception:  # as NumPy is set, or a filter of warnings
            return computed(PYTHON[name], *xs)
        if not recorder.open:
            return made
        made = Number(recorder, made, PYTHON[name](*map(as_operand, xs)))
        return _doubted(made, xs) if recorder.doubts else made
    if any(x is NotImplemented for x in numbers):
        known = any(isinstance(x, (complex, str, bytes)) for x in xs)
        return PYTHON[name](*map(concrete, xs)) if known else NotImplemented
    recorder = _recorder_of(xs)
    by_numpy = any(isinstance(x, np.generic) for x in numbers)
    divides = name in ("remainder", "floordiv") or (name == "div" and not by_numpy)
    if divides and not recorder.guard("ne", xs[1], 0.0):  # Python raises, NumPy does not
        return PYTHON[name](*(map(concrete, xs) if by_numpy else numbers))
    result = computed(PYTHON[name], *xs)
    if type(result) is np.bool_ and name == "add":
        recorder.refuse("adds bools of NumPy, where they may count or not: write a | b, or int(a) + int(b)")
    if type(result) is np.bool_ and name == "mul":
        return _logic("and", *xs)
    if isinstance(result, complex) or (type(result) is not np.bool_ and getattr(result, "itemsize", 8) < 8):
        return PYTHON[name](*map(concrete, xs))
    if isinstance(result, (int, np.integer)) and any(abs(x) > EXACT for x in numbers):
        return PYTHON[name](*map(concrete, xs))  # one of them is not exact as a float
    if name == "floordiv":
        x, y = map(as_operand, xs)
        made = Number(recorder, result, BY_NAME["round"]((x - BY_NAME["remainder"](x, y)) / y))
    else:
        made = recorded(name, result, *xs)
    if isinstance(result, (int, np.integer)):
        if recorder.open:
            made.most = _most(name, *xs)
        if not made.most <= EXACT and not recorder.guard("within", made, EXACT):
            return PYTHON[name](*map(concrete, xs))
        if name == "pow":
            recorder.guard("ge", xs[1], 0.0)  # else a float
    elif name == "pow" and not by_numpy:
        recorder.guard("within", made, FINITE)
    return _doubted(made, xs) if recorder.doubts else made


def _doubted(made: Any, xs: Sequence[Any]) -> Any:
    """Mark a result whose type depends on those of its operands, unless one is a float."""
    doubts = [x.doubt for x in xs if is_traced(x) and x.doubt]
    certain = [x for x in xs if type(number_of(x)) is float and not (is_traced(x) and x.doubt)]
    if doubts and not certain and is_traced(made):
        made.doubt = lambda: [doubt() for doubt in doubts]
    return made


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
    return NotImplemented if y is NotImplemented else compared(x.recorder, how, x, other, HOLDS[how](x.number, y))


def compared(recorder: Any, how: str, x: Any, other: Any, outcome: Any) -> Any:
    """Return the outcome of a comparison, also of Values."""
    if not recorder.open or recorder.tells_bools:
        return recorder.answer(how, x, other)
    return Bool(recorder, outcome, None, (how, x, other))


def _logic(name: str, x: Any, y: Any) -> Any:
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return NotImplemented
    numbers = number_of(x), number_of(y)
    if not all(map(_is_bool, numbers)):
        return BITS[name](concrete(x), concrete(y))
    recorder, result = _recorder_of((x, y)), BITS[name](*numbers)
    return Bool(recorder, result, BOOLEAN[name](as_operand(x), as_operand(y))) if recorder.open else result


def _inverted(x: Any) -> Any:
    result = type(x.number)(not x.number)
    return Bool(x.recorder, result, CONDITIONS["eq"](x.operand(), 0.0)) if x.recorder.open else result


def _truth(x: Any) -> Any:
    return x if _is_bool(number_of(x)) else x != 0.0


def _whole(name: str, x: Any) -> Any:
    """Round a number to an int."""
    if not is_traced(x):
        return int(BY_NAME[name](x))
    made = recorded(name, computed(lambda number: int(BY_NAME[name](float(number))), x), x)
    if not x.recorder.guard("within", made, EXACT):
        concrete(x)
    return made


# -- arrays of them ---------------------------------------------------------------------------------------------------


class TracedArray(np.ndarray):
    """An array of traced numbers, which behaves like the array of their numbers."""

    kind: Any = None  # the dtype of the numbers; None for Values

    def __array_finalize__(self, other: Any) -> None:
        self.kind = getattr(other, "kind", None)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    @property
    def dtype(self) -> Any:
        """The dtype of the array that it stands for."""
        return super().dtype if self.kind is None else self.kind

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any, **options: Any) -> Any:
        return _by_element(ufunc, method, xs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Call a function of NumPy; one that takes no objects gets the numbers."""
        if function is np.where:
            return choice(*args)
        if function is np.count_nonzero and type(args[0]) is TracedArray:
            found = (args[0] != 0).sum(*args[1:], **named)
            return found if isinstance(found, np.ndarray) else converted(found, int)
        try:
            own = tuple([kind for kind in types if issubclass(kind, np.ndarray)])  # a Value names itself, too
            return presented(super().__array_function__(function, own, args, named))
        except TypeError:
            return function(*map(_as_numbers, args), **{name: _as_numbers(x) for name, x in named.items()})

    def __getitem__(self, key: Any) -> Any:
        """Return an item or a part; traced integers choose at run time."""
        parts = key if isinstance(key, tuple) else (key,)
        if not any(is_traced(x) or type(x) is TracedArray for x in parts):
            return presented(super().__getitem__(key))
        rows: Any = self.view(np.ndarray)
        if len(parts) == 1 and type(key) is TracedArray and all(type(x) is Integer for x in key.flat):
            made = np.empty(key.shape + rows.shape[1:], object)
            for place in np.ndindex(key.shape):
                made[place] = rows[key.item(place).chosen(rows)]
            return presented(made)
        if not all(type(x) in (Integer, int, slice) for x in parts):
            return presented(rows[tuple([_as_numbers(x) for x in parts])])
        axis = 0
        for x in parts:
            items = np.moveaxis(rows, axis, 0)
            rows = items[x.chosen(items) if type(x) is Integer else x]
            if isinstance(x, slice):
                rows, axis = np.moveaxis(rows, 0, axis), axis + 1
        return presented(rows)

    def __setitem__(self, key: Any, x: Any) -> None:
        """Assign to a part; a traced mask with one number chooses at run time."""
        if self.kind == np.float64 and not isinstance(x, Value):  # which an array of floats does not take
            x = _each(_as_objects(x), np.float64)
        masked = type(key) is TracedArray and key.kind == np.bool_
        if masked and key.shape == self.shape and np.ndim(x) == 0 and self.kind in (np.float64, None):
            super().__setitem__(..., choice(key, x, self))
        else:
            super().__setitem__(_as_numbers(key) if masked else key, x)

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """Return a copy; conversions to float64, and of bools and integers to wider types, stay traced."""
        target = np.dtype(dtype)
        if target == self.dtype:
            return self.copy()
        if self.kind is not None and target in (np.float64, np.int64) and np.can_cast(self.kind, target):
            return presented(_each(self, target.type))
        return super().astype(dtype, *args, **named)

    def item(self, *args: Any) -> Any:
        x = super().item(*args)
        return x.item() if is_traced(x) else x

    def mean(self, axis: Any = None, *args: Any, **named: Any) -> Any:
        named = {name: x for name, x in named.items() if x is not None}
        count = self.size if axis is None else math.prod(np.take(self.shape, axis, mode="wrap").reshape(-1).tolist())
        return self.sum(axis, **named) / count

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, **named: Any) -> Any:
        count = self.size if axis is None else math.prod(np.take(self.shape, axis, mode="wrap").reshape(-1).tolist())
        away = self - self.mean(axis, keepdims=True)
        return (away * away).sum(axis, **named) / (count - ddof)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, **named: Any) -> Any:
        return np.sqrt(self.var(axis, ddof=ddof, **named))

    def __reduce__(self) -> Any:
        return _as_numbers(self).__reduce__() if self.kind is not None else super().__reduce__()


def _by_element(ufunc: Any, method: str, xs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply a function of NumPy to each traced number: that of the table, or of Python.

    NumPy would call methods of Values, and compare them; Python's operators work for both.
    """
    own = ufunc.__name__
    name = UFUNCS.get(own, own.replace("arc", "a"))
    bools = all(map(_has_bools, xs))
    if bools and own in ("add", "multiply") and method in ("reduce", "accumulate"):  # these count
        xs, bools = tuple([_each(_as_objects(x), np.int64) for x in xs]), False
    plain = [_as_objects(x) for x in xs]
    if "out" in options:
        options["out"] = tuple([_as_objects(x) for x in options["out"]])
    asked = OF_BOOLS.get(own) if bools else None
    asked = asked or COMPARED.get(own) or ASKED.get(own) or (LOGIC.get(own) if bools or "logical" in own else None)
    is_known = method == "__call__" or (method == "reduce" and ufunc.nin == 2)
    if asked and is_known and options.get("where", True) is True:
        if own in LOGIC and not bools:
            plain = [np.frompyfunc(_truth, 1, 1)(x) for x in plain]
        if own in LOGIC or bools:
            plain = [_as_objects(_as_mask(x)) for x in plain]
        mask = np.frompyfunc(asked, ufunc.nin, 1, **({} if method == "__call__" else {"identity": None}))
        return _as_mask((mask if method == "__call__" else mask.reduce)(*plain, **options))
    if bools:  # the result has a narrower dtype
        return getattr(ufunc, method)(*map(_as_numbers, xs), **options)
    function: Any = PYTHON.get(name) if name in BY_NAME else None
    if function is None and not any(isinstance(item, Value) for x in plain for item in np.ravel(x)):
        function = BY_NAME.get(name)
    if method == "__call__" and function and BY_NAME[name].arity == ufunc.nin and "where" not in options:
        made = np.frompyfunc(function, ufunc.nin, 1)(*plain, **options)
    elif method == "reduce" and function and name in ("maximum", "minimum"):
        made = np.frompyfunc(function, 2, 1, identity=None).reduce(*plain, **options)
    else:
        made = getattr(ufunc, method)(*plain, **options)
    made = presented(made)
    is_plain = type(made) is np.ndarray and made.dtype == object and made.size and "out" not in options
    return fillable(made.astype(float)) if is_plain and all(type(x) is np.float64 for x in made.flat) else made


def choice(condition: Any, *choices: Any) -> Any:
    """Replace NumPy's `where`: a traced condition chooses at run time."""
    traced = [x for x in np.ravel(_as_objects(condition)) if is_traced(x)]  # also in a list
    if len(choices) != 2 or not traced:
        return presented(np.where(_as_objects(condition), *map(_as_objects, choices)))
    kind = np.result_type(*map(_kind_of, choices))
    if kind not in (np.float64, np.int64, np.bool_, object):
        return np.where(_as_numbers(condition), *map(_as_numbers, choices))

    def chosen(c: Any, x: Any, y: Any) -> Any:
        if kind != np.object_:
            x, y = converted(x, kind.type), converted(y, kind.type)
        kinds = [Value if isinstance(item, Value) else type(number_of(item)) for item in (x, y)]
        known = kinds[0] is kinds[1] and number_of(x) is not NotImplemented  # else the type of the result depends on c
        if not known or not is_traced(c) or not c.recorder.open:
            return x if c else y
        if kinds[0] is Value:
            return BY_NAME["where"](c.operand(), x, y)
        return recorded("where", number_of(x if c.number else y), c, x, y)

    made = np.frompyfunc(chosen, 3, 1)(*map(_as_objects, (condition, *choices)))
    return presented(made if isinstance(made, np.ndarray) else _as_objects(made))


def _kind_of(x: Any) -> Any:
    """Return the dtype of an array of numbers, or of a number; object if there are Values or other objects."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x.dtype
    items = np.ravel(_as_objects(x))
    if not len(items) or any(isinstance(item, Value) or number_of(item) is NotImplemented for item in items):
        return items.dtype
    return np.result_type(*[np.asarray(kind()).dtype for kind in {type(number_of(item)) for item in items}])


def _has_bools(x: Any) -> bool:
    """Return True for a bool, or an array of bools."""
    return x.dtype == np.bool_ if isinstance(x, np.ndarray) else _is_bool(number_of(x))


def _as_mask(x: Any) -> Any:
    """Convert bools, in an array or alone, to NumPy's."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return converted(x.item() if isinstance(x, np.ndarray) else x, np.bool_)
    if not any(map(is_traced, x.flat)):
        return x.astype(bool)
    made: Any = x if all(type(number_of(item)) is np.bool_ for item in x.flat) else _each(x, np.bool_)
    made = made.view(TracedArray)
    made.kind = np.dtype(bool)
    return made


def _each(x: Any, kind: Any) -> Any:
    return np.frompyfunc(lambda item: converted(item, kind), 1, 1)(np.asarray(x).view(np.ndarray))


def _as_numbers(x: Any) -> Any:
    """Return an array of the numbers themselves, for which alone the recording is then valid."""
    if type(x) is TracedArray and x.kind is None:  # of Values
        return x.view(np.ndarray)
    if type(x) is TracedArray:
        return np.array([concrete(item) for item in x.ravel().tolist()], x.kind).reshape(x.shape)
    return [_as_numbers(item) for item in x] if type(x) in (list, tuple) else concrete(x)


def _as_objects(x: Any) -> Any:
    """Return a view as a plain array of objects."""
    if is_traced(x) or isinstance(x, Value):
        made = np.empty((), object)
        made[()] = x
        return made
    return x.view(np.ndarray) if isinstance(x, TracedArray) else x


def presented(x: Any) -> Any:
    """Return an array of objects as a `TracedArray`, if its first item is a tracer or a Value, or one is traced."""
    first: Any = x.flat[0] if isinstance(x, np.ndarray) and x.size else None
    if not is_traced(first) and not isinstance(first, Value):
        if type(x) is not np.ndarray or x.dtype != object or not any(map(is_traced, x.flat)):
            return x
        kind = _kind_of(x)
        if kind not in (np.float64, np.int64):
            return x
        x = _each(x, kind.type).view(TracedArray)
        x.kind = kind
        return x
    if type(first) is Bool:
        kind = _kind_of(x.view(np.ndarray))  # there may be other numbers, too
        if kind == np.bool_:
            return _as_mask(x)
        if kind in (np.int64, np.float64):
            x = _each(x, kind.type)
            first = x.flat[0]
    made = x.view(TracedArray)
    made.kind = np.dtype(first.__class__) if is_traced(first) else None
    return made


def fillable(x: Any) -> Any:
    """Return an array of floats as one that takes traced numbers too."""
    made = np.frompyfunc(np.float64, 1, 1)(x).view(TracedArray)
    made.kind = x.dtype
    return made


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
