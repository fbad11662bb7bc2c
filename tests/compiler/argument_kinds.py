"""Arguments of every type that Python and the usual libraries have, nested in each other, beside the plain function.

`python -m tests.compiler.argument_kinds FROM TO STEP` compares the cases with these numbers and prints a line for each
that differs. A case is run again and again: with the same object, an equal one, and others; in single calls or batches.
The comparisons run in a process of their own, since what is wrong here may end it.
"""

from __future__ import annotations

import array
import collections
import enum
import itertools
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import wengert
from tests.compiler.numbered import in_processes, main
from wengert import Value
from wengert.errors import DataError

__all__ = ["CASES", "WHOLE", "Case", "case", "compare_all", "differences"]

W = Value(0.75)
Pair = collections.namedtuple("Pair", ["first", "second"])


class Point(NamedTuple):
    """A named tuple with a class of its own."""

    x: Any
    y: Any


@dataclass
class Record:
    """Two attributes."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Frozen:
    """Two attributes that stay."""

    x: Any
    y: Any


class Items(list):  # type: ignore[type-arg]
    """A list of a class of its own."""


class Odd(list):  # type: ignore[type-arg]
    """A list that iterates over its items in reverse."""

    def __iter__(self) -> Iterator[Any]:
        return reversed(self[:])


class Parts(tuple):  # type: ignore[type-arg]
    """A tuple of a class of its own."""

    __slots__ = ()


class Names(dict):  # type: ignore[type-arg]
    """A dict of a class of its own."""


class Real(float):
    """A float of a class of its own."""


class Count(int):
    """An int of a class of its own."""


class Rows(np.ndarray):  # type: ignore[misc]
    """An array of a class of its own."""


class Color(enum.Enum):
    """Members that are no numbers."""

    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    """Members that are integers."""

    LOW = 1
    HIGH = 2


class Lazy:
    """A sequence by `__getitem__` and `__len__` alone."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __getitem__(self, place: int) -> Any:
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)


def _array(kind: str, order: str = "C") -> Callable[[float], Any]:
    return lambda s: np.array([s, s + 1, 3]).astype(kind, order=order)


def _values(s: float) -> Any:
    made = np.empty(2, object)
    made[:] = Value(s), Value(s + 1)
    return made


def _structured(s: float) -> Any:
    return np.array([(s, 1), (s + 1, 2)], dtype=[("x", float), ("n", int)])


SCALARS: dict[str, Callable[[float], Any]] = {
    "float": lambda s: s + 0.25,
    "int": lambda s: int(s),
    "bool": lambda s: s > 1.5,
    "None": lambda s: None,
    "complex": lambda s: complex(s, 1),
    "Fraction": lambda s: Fraction(int(s), 3),
    "Decimal": lambda s: Decimal(int(s)),
    "str": lambda s: "abc"[: int(s)],
    "bytes": lambda s: bytes([int(s), 7]),
    "bytearray": lambda s: bytearray([int(s), 7]),
    "memoryview": lambda s: memoryview(bytes([int(s), 7])),
    "enum": lambda s: Color(1 + (s > 1.5)),
    "IntEnum": lambda s: Level(1 + (s > 1.5)),
    "Value": lambda s: Value(s),
    "Real": lambda s: Real(s),
    "Count": lambda s: Count(s),
    "huge": lambda s: 2**60 + int(s),
    "nan": lambda s: float("nan"),
    **{
        f"np.{kind}": lambda s, kind=kind: np.dtype(kind).type(s)
        for kind in (
            "bool",
            "int8",
            "uint8",
            "int16",
            "int32",
            "int64",
            "uint64",
            "float16",
            "float32",
            "float64",
            "longdouble",
            "complex64",
            "str",
        )
    },
}
ROWS: dict[str, Callable[[float], Any]] = {
    "range": lambda s: range(int(s), int(s) + 3),
    "array.d": lambda s: array.array("d", [s, s + 1]),
    "array.i": lambda s: array.array("i", [int(s), 4]),
    "array.f": lambda s: array.array("f", [s / 3, 4]),
    "memoryview.d": lambda s: memoryview(array.array("d", [s, s + 1])),
    "iterator": lambda s: iter([s, s + 1]),
    "generator": lambda s: (x for x in (s, s + 1)),
    "map": lambda s: map(abs, [s, s + 1]),
    "zip": lambda s: zip([s], [s + 1], strict=True),
    "bools": lambda s: [s > 1.5, True],
    "tuple of bools": lambda s: (s > 1.5, False),
    "empty": lambda s: [],
    "mixed": lambda s: [int(s), s + 0.5],
    "numbers and text": lambda s: [s, "a"],
    "floats and None": lambda s: [s, None],
    "ints": lambda s: [int(s), 5],
    "floats": lambda s: [s, 2.5],
    "numbers and bools": lambda s: [s + 0.5, True],
    "values and floats": lambda s: [Value(s), s],
    "np.float64s": lambda s: [np.float64(s), np.float64(2)],
    "np.float32s": lambda s: [np.float32(s / 3), np.float32(2)],
    "np.uint8s": lambda s: [np.uint8(s), np.uint8(200)],
    "ragged": lambda s: [[s], [s, s + 1]],
    "huge ints": lambda s: [2**60 + int(s), 1],
    "view of a list": lambda s: [s, 1][:],
    "array": _array("float64"),
    "ints array": _array("int64"),
    "fortran": lambda s: np.asfortranarray(np.full((2, 3), s)),
    "strides": lambda s: np.arange(s, s + 8)[::2],
    "reversed": lambda s: np.arange(s, s + 3)[::-1],
    "0-d": lambda s: np.array(s),
    "2-d": lambda s: np.full((2, 3), s),
    "empty array": lambda s: np.zeros(0),
    "values array": _values,
    "object array": lambda s: np.array([s, None], object),
    "structured": _structured,
    "masked": lambda s: np.ma.array([s, 2.0], mask=[False, True]),
    "own array": lambda s: np.array([s, 1.0]).view(Rows),
    "matrix": lambda s: np.asmatrix([[s, 1.0]]),
    "dates": lambda s: np.array(["2001-01-01"], "M8[D]"),
    "read-only": lambda s: np.broadcast_to(s, (3,)),
    **{
        f"array of {kind}": _array(kind)
        for kind in (
            "bool",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "longdouble",
            "complex128",
            ">f8",
            ">i8",
            ">f4",
            "<U3",
        )
    },
}
CONTAINERS: dict[str, Callable[[Any, Any], Any]] = {
    "list": lambda x, y: [x, y],
    "tuple": lambda x, y: (x, y),
    "dict": lambda x, y: {"a": x, "b": y},
    "dict by number": lambda x, y: {0: x, 1: y},
    "OrderedDict": lambda x, y: collections.OrderedDict(a=x, b=y),
    "defaultdict": lambda x, y: collections.defaultdict(list, a=x, b=y),
    "Counter": lambda x, y: collections.Counter(a=x, b=y),
    "namedtuple": lambda x, y: Pair(x, y),
    "NamedTuple": lambda x, y: Point(x, y),
    "dataclass": lambda x, y: Record(x, y),
    "frozen": lambda x, y: Frozen(x, y),
    "set": lambda x, y: {x},
    "frozenset": lambda x, y: frozenset([x]),
    "deque": lambda x, y: collections.deque([x, y]),
    "UserList": lambda x, y: collections.UserList([x, y]),
    "UserDict": lambda x, y: collections.UserDict(a=x, b=y),
    "mappingproxy": lambda x, y: types.MappingProxyType({"a": x, "b": y}),
    "ChainMap": lambda x, y: collections.ChainMap({"a": x}, {"b": y}),
    "own list": lambda x, y: Items([x, y]),
    "odd list": lambda x, y: Odd([x, y]),
    "own tuple": lambda x, y: Parts([x, y]),
    "own dict": lambda x, y: Names(a=x, b=y),
    "namespace": lambda x, y: types.SimpleNamespace(a=x, b=y),
    "lazy": lambda x, y: Lazy(x, y),
    "views": lambda x, y: {"a": x, "b": y}.values(),
    "object array of": lambda x, y: _objects(x, y),
    "array of": lambda x, y: np.array([x, y]),
}


def _objects(*xs: Any) -> Any:
    made = np.empty(len(xs), object)
    for place, x in enumerate(xs):
        made[place] = x
    return made


try:
    import torch

    ROWS["tensor"] = lambda s: torch.tensor([s, s + 1], dtype=torch.float64)
    ROWS["float tensor"] = lambda s: torch.tensor([s / 3, s + 1])
    ROWS["0-d tensor"] = lambda s: torch.tensor(s)
except ImportError:
    pass
try:
    import pandas

    ROWS["Series"] = lambda s: pandas.Series([s, s + 1])
    ROWS["named Series"] = lambda s: pandas.Series({"a": s, "b": s + 1})
    ROWS["DataFrame"] = lambda s: pandas.DataFrame({"a": [s, 1.0], "b": [s + 1, 2.0]})
    ROWS["row"] = lambda s: next(pandas.DataFrame({"a": [s], "b": [s + 1]}).itertuples())
except ImportError:
    pass
try:
    import jax.numpy

    ROWS["jax array"] = lambda s: jax.numpy.array([s, s + 1])
except ImportError:
    pass


# -- functions that read anything -------------------------------------------------------------------------------------


def parts_of(x: Any) -> Any:
    """Iterate over what is in a thing; a number gives None."""
    if isinstance(x, (Value, float, int, complex, str, np.generic, Fraction, Decimal, enum.Enum)) or x is None:
        return None
    if hasattr(x, "values") and hasattr(x, "keys"):
        return [*x.values()]
    if hasattr(x, "items") and isinstance(x, Lazy):
        return [x[0], x[len(x) - 1]]
    if isinstance(x, (Record, Frozen)):
        return [x.x, x.y]
    if isinstance(x, types.SimpleNamespace):
        return [x.a, x.b]
    return [*x]


def total(x: Any) -> Any:
    """The sum of all numbers, weighted by where they are."""
    parts = parts_of(x)
    if parts is None:
        return W * x
    made = 0.5 * W
    for place, part in enumerate(parts):
        made = made + total(part) * (place + 1)
    return made


def kinds(x: Any) -> Any:
    """A number that tells the types that are seen."""
    code, parts = float(sum(map(ord, type(x).__name__))), parts_of(x)
    for place, part in enumerate([] if parts is None else parts):
        code += kinds(part) * (place + 2) * 0.5
    return code


def typed(x: Any) -> Any:
    """As `total`, and the types."""
    return total(x) * 1e-3 + kinds(x)


def leading(x: Any) -> Any:
    """What is first in what is first."""
    for _ in range(5):
        if isinstance(x, (Value, float, int, np.generic)):
            break
        x = x[0] if hasattr(x, "__getitem__") and not hasattr(x, "keys") else parts_of(x)[0]
    return x


def first(x: Any) -> Any:
    """What is first in what is first."""
    x = leading(x)
    return x * W if x else W


def plain(x: Any) -> Any:
    """Arithmetic on what is first, without parameters, and with itself."""
    x = leading(x)
    return x * x + x / 3


def doubled(x: Any) -> Any:
    """What multiplication makes of it, which repeats a list and doubles an array."""
    return total(x * 2)


def measured(x: Any) -> Any:
    """Its length, its last item and its truth."""
    return W * len(x) + (total(x[-1]) if x else 1.0)


FUNCTIONS = (total, typed, first, plain, doubled, measured)


# -- cases ------------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A thing to make of a number, a function of it, and how it is called."""

    name: str
    make: Callable[[float], Any]
    function: Callable[[Any], Any]
    how: str  # empty for single calls

    def __str__(self) -> str:
        return f"{self.name}, {self.function.__name__} {self.how}"


def _within(kind: str, inner: Callable[[float], Any]) -> Callable[[float], Any]:
    container = CONTAINERS[kind]
    return lambda s: container(inner(s), inner(s + 1))


def _things() -> Iterator[tuple[str, Callable[[float], Any]]]:
    leaves = {**SCALARS, **ROWS}
    yield from leaves.items()
    for kind in CONTAINERS:
        for name, make in leaves.items():
            yield f"{kind} of {name}", _within(kind, make)
    for outer, inner in itertools.product(CONTAINERS, CONTAINERS):
        for name, make in leaves.items():
            yield f"{outer} of {inner} of {name}", _within(outer, _within(inner, make))


THINGS = [*_things()]
HOWS = ("", "map", "mean", "sum")


def case(number: int) -> Case:
    """Return one case. The first are of one level and two, in every way; each of three levels is tried in two ways."""
    ways = len(FUNCTIONS) * len(HOWS)
    whole = (len(SCALARS) + len(ROWS)) * (1 + len(CONTAINERS))
    if number < whole * ways:
        thing, way = divmod(number, ways)
    else:
        thing = whole + (number - whole * ways) // 2
        draw = random.Random(number)
        way = draw.randrange(len(FUNCTIONS)) + (len(FUNCTIONS) * draw.randrange(1, 4) if number % 2 else 0)
    name, make = THINGS[thing]
    function = FUNCTIONS[way % len(FUNCTIONS)]
    return Case(name, make, function, HOWS[way // len(FUNCTIONS)])


CASES = (len(SCALARS) + len(ROWS)) * (1 + len(CONTAINERS)) * len(FUNCTIONS) * len(HOWS)
CASES += 2 * (len(SCALARS) + len(ROWS)) * len(CONTAINERS) ** 2


ONE = (len(SCALARS) + len(ROWS)) * len(FUNCTIONS) * len(HOWS)
WHOLE = ONE, ONE * (1 + len(CONTAINERS))  # the first case of two levels, and of three


def _outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """What a call gives, to compare: the type and the number, the derivative; or the type of its exception."""
    W.grad = 0.0
    try:
        made = call()
    except Exception as error:
        return ("raises", type(error).__name__, error)
    if isinstance(made, Value):
        made.backward()
        return ("Value", made.data, W.grad)
    return (type(made).__name__, made, 0.0)


def _same(got: tuple[Any, ...], want: tuple[Any, ...]) -> bool:
    if got[0] != want[0]:
        return False
    if got[0] == "raises":
        return bool(got[1] == want[1])
    try:
        near = [
            bool(np.allclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True))
            for x, y in zip(got[1:], want[1:], strict=True)
        ]
        return all(near)
    except (TypeError, ValueError):
        return repr(got[1:]) == repr(want[1:])


def _plain(case: Case, things: list[Any]) -> Any:
    if not case.how:
        return case.function(things[0])
    made = [case.function(x) for x in things]
    if case.how == "map":
        numbers = [x.data if isinstance(x, Value) else x for x in made]
        return np.array(numbers)
    made = [x if isinstance(x, Value) else Value(x) for x in made]
    return sum(made[1:], made[0]) * (1.0 / len(made) if case.how == "mean" else 1.0)


def _calls(make: Callable[[float], Any], how: str) -> Iterator[tuple[list[Any], list[Any]]]:
    """The arguments of the calls: of the compiled function, and of the plain one."""
    width = 3 if how else 1
    kept: dict[int, tuple[list[Any], list[Any]]] = {}
    for which, start in ((0, 1.0), (0, 1.0), (1, 1.0), (2, 2.0), (0, 1.0), (3, 1.0), (4, 2.0), (5, 3.0)):
        if which not in kept:
            kept[which] = tuple([make(start + k % 2) for k in range(width)] for _ in range(2))  # type: ignore[assignment]
        yield kept[which]


def differences(case: Case, backend: str = "numpy") -> list[str]:
    """Say what differs between a compiled function and the function itself, call by call."""
    found = []
    compiled = wengert.compile(case.function, backend=backend)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            calls = [*_calls(case.make, case.how)]
        except Exception:  # there is no such thing: a set of lists
            return []
        for number, (given, others) in enumerate(calls):
            want = _outcome(lambda others=others: _plain(case, others))
            got = _outcome(lambda given=given: getattr(compiled, case.how)(given) if case.how else compiled(given[0]))
            refused = case.how and got[0] == "raises" and isinstance(got[2], DataError)
            if refused and number == 0:
                return []  # a batch that is none
            if case.how and "raises" in (got[0], want[0]):
                if got[0] == want[0] or refused:
                    continue
                reduced = got[0] == "raises" and "no Value" not in str(got[2])
                if not reduced:
                    continue
            if not _same(got, want):
                found.append(f"call {number + 1}: {got}, the function itself {want}")
    found += [
        str(w.message) for w in caught if "is dropped" in str(w.message) or "error in the compiler" in str(w.message)
    ]
    found += [str(w.message) for w in caught if "runs uncompiled: the result" in str(w.message)]
    return found


def compare_all(numbers: list[int]) -> list[str]:
    """Compare some cases in processes of their own, by runs of the same step."""
    found, at = [], 0
    while at < len(numbers):
        step = numbers[at + 1] - numbers[at] if at + 1 < len(numbers) else 1
        end = at + 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        found += in_processes(sys.modules[__name__], numbers[at], numbers[end - 1] + 1, step)
        at = end
    return found


if __name__ == "__main__":
    main(sys.modules[__name__], *sys.argv[1:])
