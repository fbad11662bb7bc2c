"""Operations on numbers and arrays, where a later call differs from those before in what no signature says.

`python -m tests.compiler.later_calls FROM TO STEP` compares the cases with these numbers and prints a line for each
that differs. A case is an operation on an argument of some kind. It is called six times with like arguments, and then
with others that differ in sign, in being zero, whole, even, huge, infinite or nan, in the kinds of the items of a list,
or in how an array lies in memory.
"""

from __future__ import annotations

import math
import operator
import struct
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import wengert
from tests.compiler.numbered import main
from wengert import Value

__all__ = ["CASES", "Case", "case", "differences"]

W = Value(0.75)
INF, NAN = math.inf, math.nan
SIGNED = False


# -- what is done -----------------------------------------------------------------------------------------------------


def _matched(x: Any) -> str:
    match x:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
    return "other"


OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    **{f"{n}**x": lambda x, n=n: n**x for n in (2, 0, 1, -2, 2.0, 0.5, -0.5, True, 10)},
    **{f"x**{n}": lambda x, n=n: x**n for n in (2, 3, 0, 1, -1, -2, 0.5, 1.5, True)},
    "x**x": lambda x: x**x,
    **{f"{n}//x": lambda x, n=n: n // x for n in (7, -7, 7.5, 0)},
    **{f"{n}%x": lambda x, n=n: n % x for n in (7, -7, 7.5, 0)},
    **{f"{n}/x": lambda x, n=n: n / x for n in (7, 0, 1.5)},
    **{f"x//{n}": lambda x, n=n: x // n for n in (3, -3, 2.5, 0)},
    **{f"x%{n}": lambda x, n=n: x % n for n in (3, -3, 2.5, 0, INF)},
    "x/3": lambda x: x / 3,
    "x/0": lambda x: x / 0,
    "divmod(x, 3)": lambda x: divmod(x, 3),
    "divmod(7, x)": lambda x: divmod(7, x),
    "x << 2": lambda x: x << 2,
    "x >> 1": lambda x: x >> 1,
    "1 << x": lambda x: 1 << x,
    "9 >> x": lambda x: 9 >> x,
    "x & 3": lambda x: x & 3,
    "x | 4": lambda x: x | 4,
    "x ^ 1": lambda x: x ^ 1,
    "~x": lambda x: ~x,
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "0 - x": lambda x: 0 - x,
    "x * -1": lambda x: x * -1,
    "x * 0": lambda x: x * 0,
    "x * x": lambda x: x * x,
    "x * 3": lambda x: x * 3,
    "x + 1": lambda x: x + 1,
    "x - 1": lambda x: x - 1,
    "x + x": lambda x: x + x,
    "x * 2.5": lambda x: x * 2.5,
    "x + True": lambda x: x + True,
    "x * x * x * x": lambda x: x * x * x * x,
    "abs": abs,
    "round": round,
    **{f"round {n}": lambda x, n=n: round(x, n) for n in (0, 1, -1)},
    "int": int,
    "float": float,
    "bool": bool,
    "not": lambda x: not x,
    "str": str,
    "repr": repr,
    "format": lambda x: f"{x}",
    "format .2f": lambda x: f"{x:.2f}",
    "hash": hash,
    "x and 1.5": lambda x: x and 1.5,
    "x or 1": lambda x: x or 1,
    "max(x, 1)": lambda x: max(x, 1),
    "min(x, 1.0)": lambda x: min(x, 1.0),
    "max(x, 0.0)": lambda x: max(x, 0.0),
    "max(0, x)": lambda x: max(0, x),
    "x == int(x)": lambda x: x == int(x),
    "sum": lambda x: sum([x, 1]),
    "copysign(1, x)": lambda x: math.copysign(1, x),
    "copysign(x, -1)": lambda x: math.copysign(x, -1),
    "copysign(1, -x)": lambda x: math.copysign(1, -x),
    "copysign(1, x * -1)": lambda x: math.copysign(1, x * -1),
    "atan2(x, -1)": lambda x: math.atan2(x, -1),
    "atan2(x * 0, -1)": lambda x: math.atan2(x * 0, -1),
    "isinstance int": lambda x: isinstance(x, int),
    "isinstance float": lambda x: isinstance(x, float),
    "type is float": lambda x: type(x) is float,
    "type name": lambda x: type(x).__name__,
    "class name": lambda x: x.__class__.__name__,
    "match": _matched,
    "is_integer": lambda x: x.is_integer(),
    "bit_length": lambda x: x.bit_length(),
    "as_integer_ratio": lambda x: x.as_integer_ratio(),
    "hex": lambda x: x.hex(),
    "imag": lambda x: x.imag,
    "real": lambda x: x.real,
    "conjugate": lambda x: x.conjugate(),
    "hasattr": lambda x: hasattr(x, "numerator"),
    "getattr": lambda x: getattr(x, "numerator", -1),
    "np.issubdtype": lambda x: bool(np.issubdtype(type(x), np.integer)),
    "index": operator.index,
    "range": lambda x: len(range(x)),
    "[..][x]": lambda x: [1.0, 2.0, 3.0, 4.0][x],
    "pow(x, 2, 5)": lambda x: pow(x, 2, 5),
    "pow(2, x, 5)": lambda x: pow(2, x, 5),
    "x > 2": lambda x: 1.5 if x > 2 else 2,
    "parity": lambda x: 1 if x % 2 else 2.5,
    "x * 2**60": lambda x: x * 2**60,
    "x + 2**53": lambda x: x + 2**53,
    "x*1e200*1e200": lambda x: x * 1e200 * 1e200,
    "x * 1e-320": lambda x: x * 1e-320,
    "modf": math.modf,
    "frexp": math.frexp,
    "ldexp": lambda x: math.ldexp(x, 3),
    "ldexp(1, x)": lambda x: math.ldexp(1.0, x),
    "fmod(x, 2)": lambda x: math.fmod(x, 2),
    "fmod(7, x)": lambda x: math.fmod(7, x),
    "remainder(x, 2)": lambda x: math.remainder(x, 2),
    "remainder(7, x)": lambda x: math.remainder(7, x),
    "gcd": lambda x: math.gcd(x, 6),
    "comb": lambda x: math.comb(5, x),
    "perm": lambda x: math.perm(x, 2),
    "math.pow(x, 2)": lambda x: math.pow(x, 2),
    "math.pow(2, x)": lambda x: math.pow(2, x),
    "math.pow(x, .5)": lambda x: math.pow(x, 0.5),
    "math.pow(x, -1)": lambda x: math.pow(x, -1),
    "hypot": lambda x: math.hypot(x, 1),
    "isclose": lambda x: math.isclose(x, 2),
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "log(x, 2)": lambda x: math.log(x, 2),
    "log(2, x)": lambda x: math.log(2, x),
    "prod": lambda x: math.prod([x, x, 2]),
    "fsum": lambda x: math.fsum([x, 0.5, x]),
    "nextafter": lambda x: math.nextafter(x, 9),
    "ulp": math.ulp,
    "complex": lambda x: complex(x, 1).real,
    **{
        f"math.{name}": getattr(math, name)
        for name in (
            *("isqrt", "factorial", "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "floor", "ceil", "trunc"),
            *("fabs", "sin", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
            *("gamma", "lgamma", "erf", "erfc", "radians", "degrees"),
        )
    },
    **{
        f"np.{name}": getattr(np, name)
        for name in (
            *("sqrt", "exp", "log", "abs", "sign", "floor", "rint", "reciprocal", "square", "isnan", "signbit", "cbrt"),
            *("negative", "positive", "isfinite", "iscomplexobj", "nan_to_num", "spacing", "trunc", "arccos"),
        )
    },
    "np.power(x, 2)": lambda x: np.power(x, 2),
    "np.power(2, x)": lambda x: np.power(2, x),
    "np.float64(x) / 0": lambda x: np.float64(x) / 0,
    "1 / np.float64(x)": lambda x: 1 / np.float64(x),
    "np.maximum(x, 1)": lambda x: np.maximum(x, 1),
    "np.copysign": lambda x: np.copysign(1.0, x),
    "np.where": lambda x: np.where(x > 1, x, 1),
    "np.array dtype": lambda x: np.array([x]).dtype.name,
    "np.array * 2": lambda x: (np.array([x]) * 2)[0],
}

OF_LISTS: dict[str, Callable[[Any], Any]] = {
    "first": lambda x: x[0],
    "sum of list": sum,
    "sum of squares": lambda x: sum(v * v for v in x),
    "dot": lambda x: sum(W * v for v in x),
    "kinds": lambda x: [isinstance(v, int) for v in x],
    "floats": lambda x: sum(type(v) is float for v in x),
    "names": lambda x: [type(v).__name__ for v in x],
    "classes": lambda x: [v.__class__ is float for v in x],
    "numbers": lambda x: [isinstance(v, (int, float)) for v in x],
    "matches": lambda x: [*map(_matched, x)],
    "texts": lambda x: [*map(str, x)],
    "f-string": lambda x: f"{x[0]} and {x[1]!r}",
    "join": lambda x: ", ".join(f"{v:g}" for v in x),
    "repr of list": repr,
    "whole": lambda x: [v.is_integer() for v in x if isinstance(v, float)],
    "is_integer of all": lambda x: [v.is_integer() for v in x],
    "bit lengths": lambda x: [v.bit_length() if hasattr(v, "bit_length") else -1 for v in x],
    "try bit_length": lambda x: [_bits(v) for v in x],
    "largest": max,
    "least": min,
    "largest type": lambda x: type(max(x)).__name__,
    "sorted": sorted,
    "reversed": lambda x: x[::-1],
    "products": lambda x: [v * 2 for v in x],
    "halves": lambda x: [v / 2 for v in x],
    "wholes": lambda x: [v // 2 for v in x],
    "squares": lambda x: [v**2 for v in x],
    "powers": lambda x: [2**v for v in x],
    "negated": lambda x: [-v for v in x],
    "abs of all": lambda x: [*map(abs, x)],
    "ints": lambda x: [*map(int, x)],
    "rounded": lambda x: [*map(round, x)],
    "rounded 1": lambda x: [round(v, 1) for v in x],
    "as floats": lambda x: [*map(float, x)],
    "array dtype": lambda x: np.array(x).dtype.name,
    "part dtype": lambda x: np.array(x[:1]).dtype.name,
    "array": lambda x: np.array(x) * 2,
    "part": lambda x: np.array(x[1:]) * 2,
    "np.sum": np.sum,
    "np.mean": np.mean,
    "np.sum of a part": lambda x: np.sum(x[:1]),
    "product": math.prod,
    "fsum of list": math.fsum,
    "index of": lambda x: [1.0, 2.0, 3.0, 4.0][x[0]],
    "weights": lambda x: [W * v for v in x],
    "where int": lambda x: sum(W * v * (3 if isinstance(v, int) else 1) for v in x),
    "difference": lambda x: x[0] - x[1],
    "extreme item": lambda x: max(x[0], x[1]) * 1,
    "copysign of all": lambda x: [math.copysign(1, -v) for v in x],
    "atan2 of all": lambda x: [math.atan2(v * 0, -1) for v in x],
}


def _bits(v: Any) -> int:
    try:
        return int(v.bit_length())
    except AttributeError:
        return -1


def _written(x: Any, y: Any) -> Any:
    y[0] = 9.0
    return x.flat[0] * 1.0


OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "total": lambda x: (x * 2).sum() * W,
    "ordered": lambda x: sum(W * v * (n + 1) for n, v in enumerate(x.ravel())),
    "ravel": lambda x: x.ravel(),
    **{f"ravel {order}": lambda x, order=order: x.ravel(order) for order in "CFAK"},
    **{f"ravel order={order}": lambda x, order=order: x.ravel(order=order) for order in "CFAK"},
    **{f"flatten {order}": lambda x, order=order: x.flatten(order) for order in "CFAK"},
    **{f"np.ravel {order}": lambda x, order=order: np.ravel(x, order) for order in "CFAK"},
    **{f"reshape {order}": lambda x, order=order: x.reshape(-1, order=order) for order in "CFA"},
    **{f"np.reshape {order}": lambda x, order=order: np.reshape(x, -1, order=order) for order in "CFA"},
    **{f"copy {order}": lambda x, order=order: x.copy(order) * 2 for order in "CFAK"},
    **{f"copy {order}, flags": lambda x, order=order: x.copy(order).flags.c_contiguous for order in "CFAK"},
    "np.copy, ravel K": lambda x: np.copy(x).ravel("K"),
    "np.array, ravel K": lambda x: np.array(x).ravel("K"),
    "sum, ravel K": lambda x: (x + 1).ravel("K"),
    "astype, ravel K": lambda x: x.astype(np.int64).ravel("K"),
    "transposed, ravel K": lambda x: x.T.ravel("K"),
    "zeros_like, ravel K": lambda x: np.zeros_like(x).ravel("K"),
    **{f"{f.__name__}, flags": lambda x, f=f: f(x).flags.c_contiguous for f in (np.empty_like, np.ones_like)},
    "zeros_like of bools, strides": lambda x: np.zeros_like(x, bool).strides,
    "zeros_like as C, flags": lambda x: np.zeros_like(x, order="C").flags.c_contiguous,
    "full_like, flags": lambda x: np.full_like(x, 1).flags.c_contiguous,
    "compared, flags": lambda x: (x > 1).flags.c_contiguous,
    "of ints, flags": lambda x: x.astype(np.int32).flags.c_contiguous,
    "where, flags": lambda x: np.where(x > 1, 1, 0).flags.c_contiguous,
    "indices, flags": lambda x: x.argsort(0).flags.c_contiguous,
    "clip, strides": lambda x: np.clip(x, 0, 1).strides,
    "flags": lambda x: x.flags.f_contiguous,
    "flags item": lambda x: x.flags["C_CONTIGUOUS"],
    "writeable": lambda x: x.flags.writeable,
    "owndata": lambda x: x.flags.owndata,
    "strides": lambda x: x.strides,
    "base": lambda x: x.base is None,
    "interface": lambda x: x.__array_interface__["strides"],
    "ctypes": lambda x: x.ctypes.strides[0],
    "data": lambda x: x.data.c_contiguous,
    "memoryview": lambda x: memoryview(x).c_contiguous,
    "shares": lambda x: np.shares_memory(x, x.ravel()),
    "may share": lambda x: np.may_share_memory(x, x.reshape(-1)),
    "asfortran": lambda x: np.asfortranarray(x) is x,
    "ascontiguous": lambda x: np.ascontiguousarray(x) is x,
    "ascontiguous, flags": lambda x: np.ascontiguousarray(x).flags.f_contiguous,
    "require": lambda x: np.require(x, requirements="F") is x,
    "isfortran": lambda x: bool(np.isfortran(x)),
    "nditer": lambda x: [float(v) for v in np.nditer(x)],
    "flat": lambda x: [*x.flat],
    "ndenumerate": lambda x: [v for _, v in np.ndenumerate(x)],
    "tobytes": lambda x: x.tobytes(),
    **{f"tobytes {order}": lambda x, order=order: x.tobytes(order) for order in "CFAK"},
    "tolist": lambda x: x.tolist(),
    "written ravel": lambda x: _written(x, x.ravel()),
    "written reshape": lambda x: _written(x, x.reshape(-1)),
    "written ascontiguous": lambda x: _written(x, np.ascontiguousarray(x).ravel()),
    "view": lambda x: x.view(np.int64).ravel()[1],
    "byteswap": lambda x: x.byteswap().view(x.dtype).flat[0],
    "transpose": lambda x: x.T * 2,
    "item 1": lambda x: x.item(1),
    "take": lambda x: x.take([1]),
    "argmax": lambda x: int(x.argmax()),
    "cumsum": lambda x: x.cumsum(),
    "sorted rows": lambda x: np.sort(x, axis=None),
    "dtype": lambda x: x.dtype.str,
    "nbytes": lambda x: x.nbytes,
    "pow -1": lambda x: x.ravel()[1:] ** -1,
    "power of 2": lambda x: 2**x,
    "divided": lambda x: 1 / x,
    "floordiv": lambda x: 7 // x,
    "remainder": lambda x: 7 % x,
    "sqrt": np.sqrt,
    "int of item": lambda x: int(x.flat[0]) * W,
    "item is": lambda x: isinstance(x.flat[0], np.integer),
    "truth of any": lambda x: bool(x.any()),
    "minimum": lambda x: x.min() * W,
    "abs of all": abs,
    "negative of all": lambda x: -x,
}


# -- to what ----------------------------------------------------------------------------------------------------------

FLOATS: list[Any] = [2.5, -2.5, 2.0, -2.0, 0.0, -0.0, 0.5, 1e4, 2.0**53 + 2, 1e300, INF, -INF, NAN, 3.0, 1.0]
INTS: list[Any] = [2, -2, 3, 0, 1, -1, 5, 1000, 2**31, 2**53 - 1, 2**53 + 1, 2**63, -(2**63), 10**400]
GROWING = ("2**x", "10**x", "-2**x", "x**x", "1 << x", "math.factorial", "ldexp(1, x)", "pow(2, x, 5)", "perm", "range")
GROWING += ("powers",)


def _of(kind: Any, numbers: list[Any]) -> list[Any]:
    made = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for x in numbers:
            try:
                made.append(kind(x))
            except (OverflowError, ValueError):
                continue
    return made


SCALARS: dict[str, list[Any]] = {
    "float": FLOATS,
    "int": INTS,
    "bool": [True, False],
    **{kind.__name__: _of(kind, FLOATS) for kind in (np.float64, np.float32)},
    **{kind.__name__: _of(kind, INTS) for kind in (np.int64, np.int32, np.uint8, np.bool_)},
}
LISTS: dict[str, list[Any]] = {
    "mixed": [[1.5, 2], [1, 2.5], [0.0, -2], [0, -2.5], [2, 2.0], [2.0, 2], [-0.0, 0], [0, -0.0]],
    "mixed and like": [[1.0, 2.0], [1, 2.0], [1.0, 2], [1, 2], [True, 2.0]],
    "tuples": [(1.5, 2), (1, 2.5), (1.5, 2.5), (1, 2), (-2, 0.5)],
    "rows": [[[1.5, 2], [1, 1]], [[1, 2], [1.5, 1]], [[1, 2], [1, 0.5]], [[1.5, 2.5], [1.5, 0.5]]],
    "infinite": [[1, INF], [INF, 1], [NAN, 2], [1, NAN], [2**53 - 1, 0.5], [0.5, 2**53 + 1]],
    "three": [[1, 2, 0.5], [1, 0.5, 2], [0.5, 2, 1], [1, 2, 2.0]],
}
BASE = np.array([[1, 2, 3], [4, 5, 6]])


def _layouts(kind: str) -> list[Callable[[], Any]]:
    x = BASE.astype(kind)

    def read_only() -> Any:
        made = x.copy()
        made.setflags(write=False)
        return made

    return [
        lambda: x.copy(),
        lambda: np.asfortranarray(x),
        lambda: np.repeat(x, 2, axis=1)[:, ::2],
        lambda: x[::-1].copy()[::-1],
        read_only,
        lambda: np.vstack([x, x])[:2],
        lambda: np.lib.stride_tricks.as_strided(x.copy(), x.shape, x.strides),
        lambda: x.T.copy().T,
        lambda: np.zeros_like(x),
        lambda: -x,
    ]


ARRAYS: dict[str, list[Callable[[], Any]]] = {
    kind: _layouts(kind) for kind in ("float64", "int64", "float32", "uint8", "bool")
}


# -- cases ------------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A function, and the makers of its arguments: the first one's is called with six times, then the others."""

    name: str
    function: Callable[[Any], Any]
    makers: tuple[Callable[[], Any], ...]
    how: str  # empty for single calls

    def __str__(self) -> str:
        return self.name


def _copied(x: Any) -> Callable[[], Any]:
    return lambda: [_copied(item)() for item in x] if isinstance(x, list) else x


def _weighted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def weighted(x: Any) -> Any:
        found = function(x)
        return [W * v for v in found] if isinstance(found, (list, tuple)) else W * found

    return weighted


def _called(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: operation(x)


def _kinds() -> Iterator[tuple[str, dict[str, Callable[[Any], Any]], list[Callable[[], Any]]]]:
    for name, numbers in SCALARS.items():
        yield name, OF_NUMBERS, [*map(_copied, numbers)]
    for name, numbers in LISTS.items():
        yield name, OF_LISTS, [*map(_copied, numbers)]
    for name, makers in ARRAYS.items():
        yield name, OF_ARRAYS, makers


def _cases() -> Iterator[Case]:
    for kind, operations, makers in _kinds():
        for name, operation in operations.items():
            function = operation if isinstance(operation, types.FunctionType) else _called(operation)
            those = [make for make in makers if name not in GROWING or np.all(np.abs(np.ravel(make())) < 2000)]
            for start in range(min(len(those), 5)):
                order = (those[start], *those[:start], *those[start + 1 :])
                yield Case(f"{name} of {kind}, from {start}", function, order, "")
                if operations is OF_NUMBERS:
                    yield Case(f"W * {name} of {kind}, from {start}", _weighted(function), order, "")
                if start < 2:
                    yield Case(f"{name} of {kind}, from {start}, mapped", function, order, "map")


ALL = [*_cases()]
CASES = len(ALL)


def case(number: int) -> Case:
    """Return one case."""
    return ALL[number]


def _leaf(x: Any) -> Any:
    """What is compared of a result: exact types, and all bits of numbers."""
    if isinstance(x, Value):
        return "Value", _leaf(x.data)
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, *map(_leaf, x))
    if isinstance(x, np.ndarray):
        items = [x.data if isinstance(x, Value) else x for x in x.ravel().tolist()]
        return "array", x.dtype.str, x.shape, tuple([_leaf(item) for item in items])
    if isinstance(x, (float, np.floating)):
        x = x if SIGNED or x else abs(x)
        return type(x).__name__, "nan" if x != x else struct.pack("d", x).hex(), repr(x)
    return type(x).__name__, repr(x)


def _outcome(call: Callable[[], Any]) -> Any:
    W.grad = 0.0
    try:
        made = call()
    except Exception as error:
        return "raises", type(error).__name__, str(error)
    values = [x for x in np.ravel(np.array(made, object)).tolist() if isinstance(x, Value)]
    told = _leaf(made)
    total = None
    for n, x in enumerate(values):
        total = x * (n + 1.0) if total is None else total + x * (n + 1.0)
    if total is not None:
        total.backward()
    return told, _leaf(W.grad)


def _near(got: Any, want: Any) -> bool:
    """Compare two outcomes; floats may differ in their last digits, as between two libraries of functions."""
    if type(got) is tuple and type(want) is tuple and len(got) == len(want):
        if len(got) == 3 and got[0] == want[0] and got[1] != want[1] and "float" in str(got[0]):
            x, y = (struct.unpack("d", bytes.fromhex(each[1]))[0] if each[1] != "nan" else NAN for each in (got, want))
            return bool(x != 0 and y != 0 and abs(x - y) <= 1e-13 * abs(y))
        if len(got) == 2 and got[0] == want[0] == "complex":  # a row of `map`, where the sign of a zero may differ
            x, y = map(complex, (got[1], want[1]))
            return x == y or got[1] == want[1] or bool(abs(x - y) <= 1e-13 * abs(y))
        return all(map(_near, got, want))
    return bool(got == want)


def differences(case: Case, backend: str = "numpy") -> list[str]:
    """Say what differs between a compiled function and the function itself, call by call."""
    first, *others = case.makers
    compiled = wengert.compile(case.function, backend=backend)
    found = []
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        for number, make in enumerate([first] * 6 + others + [first]):
            if case.how:
                want = _outcome(lambda make=make: [*_flat([case.function(x) for x in (make(), first())])])
                got = _outcome(lambda make=make: [*_flat(compiled.map([make(), first()]))])
                if got[0] == "raises" and got[1] in ("DataError", "ArgumentError"):  # no batch, or no such results
                    continue
            else:
                want = _outcome(lambda make=make: case.function(make()))
                got = _outcome(lambda make=make: compiled(make()))
            if not _near(got, want):
                found.append(f"call {number + 1}, {make()!r}: {got}, the function itself {want}")
    return found + [str(w.message) for w in caught if "error in the compiler" in str(w.message)]


def _flat(x: Any) -> Iterator[Any]:
    """The numbers of what `map` gives, as floats: an array has one type for all rows."""
    x = x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _flat(item)
    elif isinstance(x, (bool, int, float, Value)):
        number = x.data if isinstance(x, Value) else x
        yield complex(number if abs(number) < 1e308 or number != number else math.copysign(INF, number))
    else:
        yield x.rstrip(b"\0") if isinstance(x, bytes) else x  # as NumPy does


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)
    main(sys.modules[__name__], *sys.argv[1:])
