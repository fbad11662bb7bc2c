"""Arrays of tracers, and NumPy's functions of tracers: each number by itself, by Python's operators or the table."""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.traced.recorder import Mixed, recorder_of_thread
from wengert.compiler.traced.tracers import (
    FINITE,
    NARROW,
    PYTHON,
    Bool,
    Integer,
    Number,
    Pending,
    concrete,
    converted,
    either,
    is_alone,
    is_bool,
    is_for_value,
    is_traced,
    number_of,
    recorded,
)
from wengert.engine import Value
from wengert.ops import BY_NAME

__all__ = ["ASKED", "TracedArray", "choice", "fillable", "presented", "quantile"]

UFUNCS: dict[str, str] = {  # NumPy's functions that have another name in the table
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow", "float_power": "pow",
    "negative": "neg", "absolute": "abs", "fabs": "abs", "floor_divide": "floordiv", "mod": "remainder",
    "rint": "round", "expit": "sigmoid", "ndtr": "normal_cdf", "psi": "digamma", "gammaln": "lgamma",
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
OF_INTEGERS = (  # NumPy's functions that differ from Python's operators on integers
    "divide", "float_power", "floor_divide", "left_shift", "power", "remainder",
)  # fmt: skip
ASKED: dict[str, Callable[[Any], Any]] = {  # by their names in NumPy and `math`
    "isnan": lambda x: x != x,
    "isfinite": lambda x: abs(x) <= FINITE,
    "isinf": lambda x: abs(x) > FINITE,
}

EXTREMES = {"maximum": "ge", "minimum": "le", "clip": ""}  # how the first one compares
FEW = 8  # numbers whose extreme one is chosen by comparisons, one after the other
OVERLAPPING = (np.shares_memory, np.may_share_memory)
FRESH = (np.empty_like, np.zeros_like, np.ones_like, np.full_like, np.copy)  # what they make has memory of its own
DTYPE: Callable[[Any], Any] = vars(np.ndarray)["dtype"].__get__  # the real one, also of a `TracedArray`


class TracedArray(np.ndarray):
    """An array of traced numbers, which behaves like the array of their numbers."""

    kind: Any = None  # the dtype of the numbers; None for Values, and for an array that holds no traced numbers
    of_argument: bool = False  # an argument, or taken from one: in another call its memory layout may differ
    perhaps_copied: bool = False  # a view of an argument or a copy, which depends on the argument's memory layout

    def __array_finalize__(self, other: Any) -> None:
        self.kind = getattr(other, "kind", None)
        self.of_argument = getattr(other, "of_argument", False)
        self.perhaps_copied = getattr(other, "perhaps_copied", False)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    @property
    def dtype(self) -> Any:
        """The dtype of the array that it stands for."""
        recorder = recorder_of_thread() if self.kind == np.float64 else None
        if recorder is not None and recorder.for_values and _asks_by_user(sys._getframe(1)):
            recorder.tell_type(1.0)
        return super().dtype if self.kind is None else self.kind

    @property
    def itemsize(self) -> Any:
        """The bytes of a number of the array that it stands for."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """The bytes of the numbers of the array that it stands for."""
        return self.size * self.itemsize

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any, **options: Any) -> Any:
        return _by_element(ufunc, method, xs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Call a function of NumPy; one that takes no objects gets the numbers."""
        if function is np.where:
            return choice(*args)
        if function in OVERLAPPING:
            refuse_layout(f"np.{function.__name__}")
        _refuse_narrow(function.__name__, (*args, *named.values()))
        if function is np.count_nonzero and type(args[0]) is TracedArray:
            count = (args[0] != 0).sum(*args[1:], **named)
            return count if isinstance(count, np.ndarray) else converted(count, int)
        try:
            own = tuple([kind for kind in types if issubclass(kind, np.ndarray)])  # a Value names itself, too
            result = presented(super().__array_function__(function, own, args, named))
            if function in FRESH and type(result) is TracedArray:
                result.perhaps_copied = False
            return result
        except TypeError:
            return function(*map(_as_numbers, args), **{name: _as_numbers(x) for name, x in named.items()})

    def __iter__(self) -> Any:
        """Read items one by one, as they are then."""
        items: Any = self.view(np.ndarray)
        if items.ndim != 1 or items.dtype != object:  # `item` makes Python's numbers of NumPy's
            return super().__iter__()
        return map(items.item, range(len(items)))

    def __getitem__(self, key: Any) -> Any:
        """Return an item or a part; traced integers choose at run time."""
        parts = key if isinstance(key, tuple) else (key,)
        if not any(is_traced(x) or type(x) is TracedArray for x in parts):
            return presented(super().__getitem__(key))
        rows: Any = self.view(np.ndarray)
        if len(parts) == 1 and type(key) is TracedArray and all(type(x) is Integer for x in key.flat):
            gathered = np.empty(key.shape + rows.shape[1:], object)
            for place in np.ndindex(key.shape):
                gathered[place] = rows[key.item(place).chosen(rows)]
            return presented(gathered)
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
        self._check_memory()
        if self.kind == np.float64 and not isinstance(x, Value):  # which an array of floats does not take
            x = _each(_as_objects(x), np.float64)
        elif self.kind is not None and not isinstance(x, Value):
            x = np.frompyfunc(self._stored, 1, 1)(_as_objects(x))
        masked = type(key) is TracedArray and key.kind == np.bool_
        if masked and key.shape == self.shape and np.ndim(x) == 0 and self.kind in (np.float64, None):
            super().__setitem__(..., choice(key, x, self))
        else:
            super().__setitem__(_as_numbers(key) if masked else key, x)

    def _stored(self, x: Any) -> Any:
        """Return a number as an array of another type than float64 stores it: cut, or rounded."""
        kind = self.kind.type
        if kind is np.bool_ and is_bool(number_of(x)):
            return converted(x, kind)
        return x if type(number_of(x)) is kind else kind(concrete(x))

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """Return a copy; conversions to float64, and of bools and integers to wider types, stay traced."""
        target = np.dtype(dtype)
        if target == self.dtype:
            return self.copy("K")
        if self.kind is not None and target in (np.float64, np.int64) and np.can_cast(self.kind, target):
            return presented(_each(self, target.type))
        return presented(super().astype(dtype, *args, **named))

    def argmax(self, *args: Any, **named: Any) -> Any:
        return presented(super().argmax(*args, **named))

    def argmin(self, *args: Any, **named: Any) -> Any:
        return presented(super().argmin(*args, **named))

    def argpartition(self, *args: Any, **named: Any) -> Any:
        return presented(super().argpartition(*args, **named))

    def argsort(self, *args: Any, **named: Any) -> Any:
        return presented(super().argsort(*args, **named))

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

    # -- how it lies in memory, which differs between equal arrays ----------------------------------------------------

    def copy(self, order: Any = "C") -> Any:
        """Return a copy, whose layout nobody asks for."""
        copy: Any = super().copy(order)
        copy.of_argument, copy.perhaps_copied = self.of_argument and order in ("A", "K"), False
        return copy

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy of one axis."""
        _check_order(order)
        copy: Any = super().flatten(order)
        copy.of_argument = copy.perhaps_copied = False
        return copy

    def ravel(self, order: Any = "C") -> Any:
        """Return the numbers on one axis; whether in the same memory is not known for an argument."""
        _check_order(order)
        flat: Any = super().ravel(order)
        flat.perhaps_copied = self.of_argument
        return flat

    def reshape(self, *shape: Any, order: Any = "C", **named: Any) -> Any:
        """Return the numbers in another shape; whether in the same memory is not known for an argument."""
        _check_order(order)
        reshaped = super().reshape(*shape, order=order, **named)
        reshaped.perhaps_copied = self.of_argument
        return reshaped

    def fill(self, x: Any) -> None:
        """Set all numbers."""
        self._check_memory()
        super().fill(x)

    def sort(self, *args: Any, **named: Any) -> None:
        """Sort in place."""
        self._check_memory()
        super().sort(*args, **named)

    def _check_memory(self) -> None:
        if self.perhaps_copied and (recorder := recorder_of_thread()) is not None:
            recorder.refuse(
                "writes to an array that is a copy of an argument or not, as that lies in memory: write to a copy, as "
                "x.ravel().copy() is"
            )

    def tobytes(self, order: Any = "C") -> Any:
        """Return the bytes of the numbers."""
        _check_order(order)
        return super().tobytes(order) if self.kind is None else _as_numbers(self).tobytes(order)

    def __reduce__(self) -> Any:
        return _as_numbers(self).__reduce__() if self.kind is not None else super().__reduce__()


def _asking(name: str) -> Any:
    """Return an attribute that says how an array lies in memory: no code that is recorded may read it."""
    real = vars(np.ndarray)[name]

    def read(self: Any) -> Any:
        refuse_layout(f".{name}")
        return real.__get__(self)

    return property(read, real.__set__)


for _name in ("flags", "strides", "base", "ctypes", "data", "__array_interface__", "__array_struct__"):
    setattr(TracedArray, _name, _asking(_name))


def refuse_layout(by: str) -> None:
    """Stop the recording of a function that asks how an array lies in memory.

    Raises:
        Unrecordable: it is recorded.
    """
    if (recorder := recorder_of_thread()) is not None:
        recorder.refuse(
            f"asks by {by} how an array lies in memory, which differs between equal arrays: ask before the call, and "
            "pass the answer"
        )


def _check_order(order: Any) -> None:
    if order is not None and str(order).upper() in ("A", "K") and (recorder := recorder_of_thread()) is not None:
        recorder.refuse("reads an array in the order in which it lies in memory: write order='C' or order='F'")


def _by_element(ufunc: Any, method: str, xs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply a function of NumPy to each traced number: that of the table, or of Python.

    NumPy would call methods of Values, and compare them; Python's operators work for both.
    """
    if ufunc is np.square and method == "__call__":  # of integers it may wrap around
        ufunc, xs = np.multiply, (*xs, *xs)
    own = ufunc.__name__
    if not any(map(_holds_objects, xs)):
        result = getattr(ufunc, method)(*map(_as_objects, xs), **options)
        return result.view(TracedArray) if isinstance(result, np.ndarray) else result
    name = UFUNCS.get(own, own.replace("arc", "a"))
    bools = all(map(_has_bools, xs))
    if bools and own in ("add", "multiply") and method in ("reduce", "accumulate"):  # these count
        xs, bools = tuple([_each(_as_objects(x), np.int64) for x in xs]), False
    if own in OF_INTEGERS:
        xs = _as_taken(xs, np.float64 if own == "float_power" else np.int64)
    narrow, has_values = _narrow_of(xs)
    if narrow and not has_values:
        counts = own in ("add", "multiply") and method in ("reduce", "accumulate")
        if counts and not issubclass(narrow, np.floating):  # in NumPy's widest integers
            xs = tuple([_each(_as_objects(x), np.int64 if np.iinfo(narrow).min else np.uint64) for x in xs])
        elif own in ASKED:
            xs = tuple([_each(_as_objects(x), np.float64) for x in xs])
        elif not (own in COMPARED or own in LOGIC or counts or UFUNCS.get(own, own) in PYTHON):
            _refuse_narrow(own, xs)
    plain = [_as_objects(x) for x in xs]
    are_floats = options.get("dtype") == np.float64 and all(
        type(number_of(item)) is np.float64 for x in plain for item in np.ravel(x)
    )
    if are_floats:  # NumPy would take them out
        options = {name: option for name, option in options.items() if name != "dtype"}
    if "out" in options:
        out, where = options.pop("out"), options.pop("where", True)
        if where is not True and method == "__call__":
            return _into(out, _where(where, ufunc, xs, options, out[0]))
        return _into(out, _by_element(ufunc, method, xs, options if where is True else {**options, "where": where}))
    if own == "divmod" and method == "__call__":
        return _by_element(np.floor_divide, method, xs, options), _by_element(np.remainder, method, xs, options)
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
    if bools or (
        own == "reciprocal" and _are_integers(plain)
    ):  # the result has another dtype than the table's function
        return getattr(ufunc, method)(*map(_as_numbers, xs), **options)
    function: Any = PYTHON.get(name) if name in BY_NAME else None
    if function is None and not any(isinstance(item, Value) for x in plain for item in np.ravel(x)):
        function = BY_NAME.get(name)
    if own in EXTREMES and is_for_value([item for x in plain for item in np.ravel(x)]):
        return presented(_extreme(own, method, plain, options))
    if method == "__call__" and function and BY_NAME[name].arity == ufunc.nin and "where" not in options:
        result = np.frompyfunc(function, ufunc.nin, 1)(*plain, **options)
    elif method == "reduce" and function and name in ("maximum", "minimum"):
        result = np.frompyfunc(function, 2, 1, identity=None).reduce(*plain, **options)
    else:
        result = getattr(ufunc, method)(*plain, **options)
    result = presented(result)
    if is_traced(result) and type(result.number) is float:
        return converted(result, np.float64)
    is_plain = type(result) is np.ndarray and result.dtype == object and result.size
    return fillable(result.astype(float)) if is_plain and all(type(x) is np.float64 for x in result.flat) else result


def _asks_by_user(frame: Any) -> bool:
    """Return True if the code of a frame is none of NumPy's, nor the library's own."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] not in ("numpy", "wengert")


def _extreme(own: str, method: str, plain: list[Any], options: dict[str, Any]) -> Any:
    """Apply NumPy's `maximum`, `minimum` or `clip` to numbers in place of Values, of which it takes the first one of
    equal ones.
    """
    if own == "clip":
        x, low, high = plain
        return _extreme("minimum", method, [_extreme("maximum", method, [x, low], options), high], options)
    choose: Any = functools.partial(either, EXTREMES[own])
    row_of_table: Any = BY_NAME[own]
    if method == "reduce" and type(axis := options.get("axis", 0)) in (int, type(None)):
        rows = plain[0].reshape(-1) if axis is None else np.moveaxis(plain[0], axis, -1)
        row_by_row = rows.reshape(-1, rows.shape[-1]).tolist() if rows.shape[-1] > FEW else ()
        if row_by_row and all(is_alone(functools.reduce(row_of_table, row), row) for row in row_by_row):
            choose = row_of_table
    return getattr(np.frompyfunc(choose, 2, 1, identity=None), method)(*plain, **options)


def _holds_objects(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_holds_objects, x))
    return bool(DTYPE(x).hasobject) if isinstance(x, np.ndarray) else is_traced(x) or isinstance(x, Value)


def _where(where: Any, ufunc: Any, xs: tuple[Any, ...], options: dict[str, Any], otherwise: Any) -> Any:
    """Apply a function of NumPy where a mask is True; elsewhere the result is that of an array."""
    if not any(isinstance(item, Value) for x in xs for item in np.ravel(_as_objects(x))):
        return choice(where, _by_element(ufunc, "__call__", xs, options), otherwise)
    every: Any = np.broadcast_arrays(*map(_as_objects, (*xs, _as_numbers(where), otherwise)))
    mask, merged = every[-2].astype(bool), every[-1].astype(object)
    merged[mask] = _by_element(ufunc, "__call__", tuple([presented(x[mask]) for x in every[:-2]]), options)
    return merged


def _into(out: tuple[Any, ...], results: Any) -> Any:
    """Write a result, or a tuple of several, into the arrays of an argument ``out=``, and return these."""
    for x, result in zip(out, results if isinstance(results, tuple) else (results,), strict=True):
        if x is not None:
            x[...] = result
    written = tuple([x if type(x) is TracedArray else presented(x) for x in out])
    return written[0] if len(written) == 1 else written


def _narrow_of(xs: Any) -> tuple[Any, bool]:
    """Return the narrow type of NumPy that numbers have, or None, and whether there are Values."""
    kinds = set[Any]()
    for x in xs:
        is_plain = isinstance(x, np.ndarray) and x.dtype != object
        items = [] if is_plain else np.ravel(_as_objects(x)).tolist()
        kinds |= {x.dtype.type} if is_plain else {type(item.number if is_traced(item) else item) for item in items}
    return next((kind for kind in NARROW if kind in kinds), None), any(issubclass(kind, Value) for kind in kinds)


def _refuse_narrow(name: str, xs: Any) -> None:
    """Stop the recording if a function of NumPy gets traced numbers of a narrow type, and no Values.

    Raises:
        Unrecordable: it does.
    """
    arrays = [x for x in xs if isinstance(x, np.ndarray) or is_traced(x)]
    traced = next((item for x in arrays for item in np.ravel(_as_objects(x))[:1] if is_traced(item)), None)
    if traced is None or not traced.recorder.open:
        return
    narrow, has_values = _narrow_of(arrays)
    if narrow and not has_values:
        traced.recorder.refuse(f"passes numbers of {narrow.__name__} to np.{name}: pass float64, as x.astype(float) is")


def _truth(x: Any) -> Any:
    return x if is_bool(number_of(x)) else x != 0.0


def quantile(function: Any, parts: float) -> Callable[..., Any]:
    """Return `np.quantile` or `np.percentile`, of so many parts, of traced numbers; NumPy's own would take them out."""

    def call(a: Any, q: Any, *args: Any, **named: Any) -> Any:
        if not (args or named) and isinstance(q, (list, tuple)) and not any(map(np.ndim, q)):
            return presented(np.array([call(a, each) for each in q]))
        rows = presented(np.ravel(_as_objects(np.array(a, object) if isinstance(a, (list, tuple)) else a)))
        plain = args or named or is_traced(q) or np.ndim(q) or not isinstance(q, (int, float)) or not 0 <= q <= parts
        if plain or type(rows) is not TracedArray or rows.kind != np.float64:
            return function(a, q, *args, **named)
        if not all(x.recorder.guard("within", x, FINITE) for x in rows if is_traced(x)):
            return function(_as_numbers(a), q)
        rows = np.sort(rows)
        at = (len(rows) - 1) * np.true_divide(q, parts)
        place = min(int(at), len(rows) - 2) if len(rows) > 1 else 0
        x, y, part = rows[place], rows[min(place + 1, len(rows) - 1)], at - place
        return x + (y - x) * part if part < 0.5 else y - (y - x) * (1 - part)

    return call


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
        is_same_kind = kinds[0] is kinds[1] and number_of(x) is not NotImplemented
        if not is_same_kind or not is_traced(c) or not c.recorder.open:  # else the type of the result depends on c
            return x if c else y
        if kinds[0] is Value:
            return BY_NAME["where"](c.operand(), x, y)
        return recorded("where", number_of(x if c.number else y), c, x, y)

    merged = np.frompyfunc(chosen, 3, 1)(*map(_as_objects, (condition, *choices)))
    if not (isinstance(merged, (np.ndarray, Value)) or is_traced(merged)):
        return np.array(merged, kind)
    return presented(merged if isinstance(merged, np.ndarray) else _as_objects(merged))


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
    return x.dtype == np.bool_ if isinstance(x, np.ndarray) else is_bool(number_of(x))


def _as_taken(xs: tuple[Any, ...], kind: Any) -> tuple[Any, ...]:
    """Return operands with NumPy's integers for Python's, as it takes them beside numbers of 64 bits.

    Python's powers of them do not wrap around, and it raises where NumPy divides by 0.
    """
    items = [x if isinstance(x, np.ndarray) else np.array(_as_objects(x), object) for x in xs]
    kinds = [{type(number_of(item)) for item in x.flat} for x in items]
    if not set().union(*kinds) <= {int, float, bool, np.int64, np.float64, np.bool_}:
        return xs
    taken = []
    for x, of in zip(xs, kinds, strict=True):
        if of.issubset((int, np.int64)):
            x = _each(_as_objects(x), kind)
        elif len(of) > 1 and not of.isdisjoint((float, np.float64)):
            x = _each(_as_objects(x), np.float64)
        taken.append(x)
    return tuple(taken)


def _are_integers(arrays: list[Any]) -> bool:
    """Return True if NumPy computes in integers: of 1 / x they are 0, but for 1 and -1."""
    return all(isinstance(number_of(item), (int, np.integer)) for x in arrays for item in np.ravel(x))


def _as_mask(x: Any) -> Any:
    """Convert bools, in an array or alone, to NumPy's."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return converted(x.item() if isinstance(x, np.ndarray) else x, np.bool_)
    if not any(map(is_traced, x.flat)):
        return x.astype(bool)
    mask: Any = x if all(type(number_of(item)) is np.bool_ for item in x.flat) else _each(x, np.bool_)
    mask = mask.view(TracedArray)
    mask.kind = np.dtype(bool)
    return mask


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
        array = np.empty((), object)
        array[()] = x
        return array
    return x.view(np.ndarray) if isinstance(x, TracedArray) else x


def presented(x: Any) -> Any:
    """Return an array of objects as a `TracedArray`, if its first item is a tracer or a Value, or one is traced. Floats
    become NumPy's.
    """
    if type(x) is TracedArray and not DTYPE(x).hasobject:  # of indices, as those of `argsort`
        x.kind = None
        return x
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
    kind = np.dtype(first.__class__) if is_traced(first) else None
    _settle(x)
    is_float = type(first) is Number and type(first.number) is float
    if is_float and not any(type(item) is Pending for item in x.flat):  # NumPy's numbers have more attributes
        kind = _kind_of(x.view(np.ndarray))
        x = _as_objects(_each(x, np.float64)) if kind == np.float64 else x
    array = x.view(TracedArray)
    array.kind = None if kind is None or kind.hasobject else kind
    return array


def _settle(x: Any) -> None:
    """Settle the dtype of an array of numbers that may be ints or floats. If it holds a whole list of them, one is a
    float, and so is the dtype; else the type of one of them is asked, which adds guards or stops the recording.
    """
    members: dict[Any, set[int]] = {}
    for item in x.flat:
        if is_traced(item) and item.doubt:
            members.setdefault(item.doubt, set()).add(id(item))
    if not members or any(isinstance(number_of(x), float) for x in x.flat if not (is_traced(x) and x.doubt)):
        return
    if not any(type(doubt) is Mixed and len(those) >= doubt.count for doubt, those in members.items()):
        next(iter(members))()


def fillable(x: Any) -> Any:
    """Return an array of floats as one that takes traced numbers too."""
    array = np.frompyfunc(np.float64, 1, 1)(x).view(TracedArray)
    array.kind = x.dtype
    return array


setattr(Number, "__array_ufunc__", TracedArray.__array_ufunc__)  # noqa: B010  (tracers.py is below this module)
