"""Whatever a number, a Value or an array of them can be asked for is asked while a function is recorded.

The answer is recorded, or the recording holds for it alone, or the function is left to the engine: on other inputs the
compiled function gives what the function itself gives.
"""

from __future__ import annotations

import builtins
import copy
import decimal
import fractions
import json
import math
import operator
import pickle
import statistics
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")

W = Value(0.5)
NOT_ASKED = {
    "dump", "tofile",  # they write where they are told to
    "__array_interface__", "__array_struct__", "ctypes", "__hash__",  # an address; of numbers `hash` is asked below
    "__deepcopy__",  # whose memo goes by addresses
    "__sizeof__", "base",  # of a row of a batch they tell of the batch
}  # fmt: skip
pytestmark = [pytest.mark.slow, pytest.mark.once]  # what a recording sees does not depend on which engine runs
CANDIDATES: list[tuple[Any, ...]] = [
    (), (2,), (1.5,), (True,), (0, 1), (1, 2, 5), (".3f",), ("real",), ("data",), ("x", 1.0), ({},), (float,), (W,),
    ([1],),
]  # fmt: skip
SUITABLE: dict[str, list[tuple[Any, ...]]] = {
    "__array_ufunc__": [(np.add, "__call__", 1.0, 2.0)],
    "__rpow__": [(1.5,), (2,)],
    "clip": [(1.0, 2.0)],
    "pow": [(2, 5), (2,)],
    "put": [(0, 1)],
    "reshape": [(-1,)],
    "round": [(), (1,)],
    "sum": [(), (0,)],
    "where": [(1.0, W)],
}


# ------------------------------------------------------------------------------------- an answer as a number


def number_in(answer: Any, depth: int = 3) -> Any:
    """A number that is another wherever an answer is."""
    if answer is None or answer is NotImplemented or not depth:
        return 0.5
    if isinstance(answer, (str, bytes)):
        return float(
            sum((n + 1) * code for n, code in enumerate(answer.encode() if isinstance(answer, str) else answer))
        )
    if isinstance(answer, (Value, bool, int, float, np.integer, np.floating, np.bool_)):
        return answer
    if isinstance(answer, (complex, np.complexfloating)):
        return answer.real + 2 * answer.imag
    if isinstance(answer, np.ndarray):
        return number_in(answer.tolist(), depth) + 0.25 * answer.ndim
    if isinstance(answer, type):
        return number_in(answer.__name__)
    if isinstance(answer, dict):
        answer = [*answer.keys(), *answer.values()]
    if isinstance(answer, (list, tuple)):
        total: Any = 0.25 * len(answer)
        for n, item in enumerate(answer):
            total = total + (n + 1) * number_in(item, depth - 1)
        return total
    return 1.5


def told(answer: Callable[[], Any]) -> Any:
    """A Value for what is answered, or raised."""
    try:
        return W * number_in(answer())
    except Exception as error:
        return W * number_in(type(error).__name__)


# ------------------------------------------------------------------------------------- the comparison


def same(got: Any, want: Any) -> bool:
    got, want = getattr(got, "data", got), getattr(want, "data", want)
    return bool(np.allclose(got, want, rtol=1e-9, atol=0.0, equal_nan=True))


def faults(function: Callable[[Any], Any], make: Callable[[int], Any]) -> Iterable[str]:
    """In what the compiled function is not the function, on two inputs."""
    first, other = (function(make(n)) for n in (0, 1))
    if not (same(first, function(make(0))) and same(other, function(make(1)))):
        return  # an address, or an identity
    wants = {0: first.data, 1: other.data}
    single, batch = wengert.compile(function), wengert.compile(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for n in (0, 0, 0, 0, 0, 1, 0, 1, 1):  # the recordings are trusted after four calls that were compared
                if not same(got := single(make(n)), wants[n]):
                    yield f"gives {got.data} for {wants[n]}"
                    break
            for rows in ((0, 0),) * 5 + ((0, 1, 1, 0), (1, 0)):
                columns = [make(n) for n in rows]
                if not isinstance(columns[0], Value) and getattr(columns[0], "shape", None) != ():
                    got = batch.map(np.array(columns) if isinstance(columns[0], np.ndarray) else columns)
                    if not same(got, [wants[n] for n in rows]):
                        yield f"gives {got} for {[wants[n] for n in rows]} by map"
                        break
        except Exception as error:
            yield f"raises {error!r}"
    yield from {f"warns: {w.message}" for w in caught if "is dropped" in str(w.message)}


KINDS: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {  # two inputs; what is asked, made of one
    "Value": (lambda n: (0.75, 2.25)[n], lambda x: W * x),
    "argument Value": (lambda n: Value((0.75, 2.25)[n]), lambda x: x),
    "float": (lambda n: (0.75, 2.25)[n], lambda x: x),
    "int": (lambda n: (2, 3)[n], lambda x: x),
    "bool": (lambda n: (True, False)[n], lambda x: x),
    "data": (lambda n: (0.75, 2.25)[n], lambda x: (W * x).data),
    "float of an array": (lambda n: np.array([(0.75, 2.25)[n], 1.0]), lambda x: x[0]),
    "int of an array": (lambda n: np.array([(2, 3)[n], 1]), lambda x: x[0]),
    "bool of an array": (lambda n: np.array([(True, False)[n], True]), lambda x: x[0]),
    "array of floats": (lambda n: np.array([(0.75, 2.25)[n], 1.25]), lambda x: x),
    "array of ints": (lambda n: np.array([(2, 3)[n], 1]), lambda x: x),
    "array of bools": (lambda n: np.array([(True, False)[n], True]), lambda x: x),
    "float64 of NumPy": (lambda n: np.float64((0.75, 2.25)[n]), lambda x: x),
    "one float in an array": (lambda n: np.array((0.75, 2.25)[n]), lambda x: x),
    "array of complexes": (lambda n: np.array([(0.75j, 2.25j)[n], 1.25]), lambda x: x),
    "array of strings": (lambda n: np.array([("ab", "cd")[n], "ef"]), lambda x: x),
    "matrix": (lambda n: np.array([[(0.75, 2.25)[n], 1.25], [0.5, -1.0]]), lambda x: x),
    "comparison": (lambda n: (0.75, 2.25)[n], lambda x: x > 1.5),
    "comparison of ints": (lambda n: (2, 3)[n], lambda x: x == 2),
    "comparison of a Value": (lambda n: (0.75, 2.25)[n], lambda x: W * x <= 0.5),
    "comparison of an item": (lambda n: np.array([(0.75, 2.25)[n], 1.0]), lambda x: x[0] != 0.75),
    "array of comparisons": (lambda n: np.array([(0.75, 2.25)[n], 1.25]), lambda x: x > 1.0),
    "matrix of comparisons": (lambda n: np.array([[(0.75, 2.25)[n], 1.25], [0.5, -1.0]]), lambda x: x < 2.0),
    "comparisons of Values": (lambda n: (0.75, 2.25)[n], lambda x: np.array([W * x, W]) >= 0.5),
    "array of Values": (lambda n: (0.75, 2.25)[n], lambda x: np.array([W * x, W])),
}


def asking(name: str, make: Callable[[int], Any], thing: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that asks for an attribute, and calls it with what suits it, if anything does."""

    def of(args: tuple[Any, ...]) -> Callable[[Any], Any]:
        def ask(x: Any) -> Any:
            found = getattr(thing(x), name)
            return found(*args) if callable(found) and not isinstance(found, type) else found

        return ask

    for args in SUITABLE.get(name, CANDIDATES):
        try:
            for n in (0, 1):
                of(args)(make(n))
        except Exception:  # it wants others
            continue
        break
    else:
        args = ()
    ask = of(args)
    return lambda x: told(lambda: ask(x))


# Of each kind one in ninety-six of the names, of neighbouring kinds others; all of them at night.
share = pytest.mark.parametrize("share", [96, pytest.param(1, marks=pytest.mark.nightly)])


@pytest.mark.filterwarnings("ignore")
@share
@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_is_recorded_guarded_or_refused(kind: str, share: int) -> None:
    make, thing = KINDS[kind]
    names = [name for name in dir(thing(make(0))) if name[0] != "_" or name.startswith("__")]
    assert len(names) > 50
    found = [
        f"{name} {fault}"
        for name in names[[*KINDS].index(kind) % share :: share]
        if name not in NOT_ASKED
        for fault in faults(asking(name, make, thing), make)
    ]
    assert found == []


# ------------------------------------------------------------------------------------- functions of numbers

OF_BUILTINS = """
    abs all any ascii bin bool bytes callable chr complex dict divmod enumerate float format frozenset hash hex int
    isinstance issubclass len list max min oct ord pow range repr reversed round set slice sorted str sum tuple type zip
""".split()  # noqa: SIM905  (names are read more easily than a list of strings)
BY_HAND: dict[str, Callable[[Any], Any]] = {
    "f-string": lambda x: f"{x:.1f} {x!r} {x}",
    "percent": lambda x: "%.2f %d %s" % (x, x, x),  # noqa: UP031
    "str.format": lambda x: f"{x:>8}",
    "join": lambda x: ", ".join(map(str, [x, 2.0])),
    "in a list": lambda x: x in [0.75, 2, True],
    "in a tuple": lambda x: (0.75, 2, False).index(x),
    "in a set": lambda x: x in {0.75, 2, True},
    "key": lambda x: {0.75: 3.0, 2: 4.0, False: 5.0}.get(x, 6.0),
    "count": lambda x: [0.75, x, 2, True].count(x),
    "set": lambda x: len({x, 0.75, 2, True}),
    "Counter": lambda x: Counter([x, 0.75, 2])[x],
    "is": lambda x: (x is True) + 2 * (x is False) + 4 * (x is None),
    "match": lambda x: _matched(x),
    "equal lists": lambda x: [x, 1] == [0.75, 1],
    "less tuples": lambda x: (x, 1) < (2, 1),
    "sorted": lambda x: sorted([x, 1.5, 2.5, 0.5]),
    "key of max": lambda x: max([x, 1.5, 2.75], key=lambda each: -each),
    "chained": lambda x: 1 if 0 < x < 2 else 2,
    "copy": lambda x: copy.copy(x) * 2,
    "deepcopy": lambda x: copy.deepcopy([x, {"a": x}])[1]["a"] * 2,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)) * 2,
    "json": lambda x: json.dumps([x]),
    "struct": lambda x: struct.pack("d", x),
    "Fraction": lambda x: float(fractions.Fraction(x) + 1),
    "Decimal": lambda x: str(decimal.Decimal(x) + 1),
    "statistics": lambda x: statistics.fmean([x, 1.0]) + statistics.median([x, 1.0, 2.0]),
    "isinstance": lambda x: [isinstance(x, kind) for kind in (float, int, bool, Value, np.floating, np.integer)],
    "type": lambda x: [type(x) is float, type(x) is int, type(x) is bool, type(x).__name__, x.__class__.__name__],
    "isscalar": lambda x: np.isscalar(x),
    "full": lambda x: np.full(2, x).sum(),
    "array": lambda x: (np.array([x, 1.0]) * 2).sum(),
    "float array": lambda x: np.array([x, 1.0], float).sum(),
    "item of an array": lambda x: _stored(x),
    "while": lambda x: _halved(x),
    "caught": lambda x: _caught(x),
}


def _matched(x: Any) -> int:
    match x:
        case True:
            return 1
        case 2 | 0.75:
            return 2
        case float():
            return 3
        case _:
            return 4


def _stored(x: Any) -> Any:
    made = np.zeros(2)
    made[0] = x
    return made.sum()


def _halved(x: Any) -> int:
    steps = 0
    while x > 0.1:
        x = x / 2
        steps += 1
    return steps


def _caught(x: Any) -> Any:
    try:
        return math.sqrt(x - 1)
    except (TypeError, ValueError) as error:
        return type(error).__name__


def functions() -> dict[str, Callable[[Any], Any]]:
    """What C and Python offer for numbers."""
    found: dict[str, Callable[[Any], Any]] = {f"builtins.{name}": getattr(builtins, name) for name in OF_BUILTINS}
    for module in (math, operator):
        names = [name for name in dir(module) if name[0] != "_" and callable(getattr(module, name))]
        found.update({f"{module.__name__}.{name}": getattr(module, name) for name in names})
    found.update({f"numpy.{name}": f for name, f in vars(np).items() if isinstance(f, np.ufunc)})
    return found


def calling(function: Callable[..., Any], make: Callable[[int], Any]) -> Callable[[Any], Any] | None:
    """A function that calls another with its argument, and with more if that suits it; None if nothing does."""
    for more in [(), (2,), (1.5,), (1.5, 2), ([1, 2],)]:
        for forward in (True, False) if more else (True,):

            def call(x: Any, more: Any = more, forward: Any = forward) -> Any:
                return function(x, *more) if forward else function(*more, x)

            try:
                answers = [call(make(n)) for n in (0, 1)]
            except Exception:  # it wants others
                continue
            narrow = any(isinstance(answer, (np.float16, np.float32)) for answer in answers)
            return None if narrow else call  # a compiled function takes those as float64
    return None


@pytest.mark.filterwarnings("ignore")
@share
@pytest.mark.parametrize(
    "kind",
    ["float", "int", "bool", "data", "Value", "comparison", "comparison of a Value", "comparison of an item"],
)
def test_every_function_of_numbers_is_recorded_guarded_or_refused(kind: str, share: int) -> None:
    make, thing = KINDS[kind]
    found, tried, first = [], 0, [*KINDS].index(kind) % share
    for name, function in [*functions().items()][first::share]:
        call = calling(function, lambda n: thing(make(n)))
        is_address = kind == "Value" and function is hash
        if call is not None and not is_address:
            tried += 1
            found += [f"{name} {fault}" for fault in faults(lambda x: told(lambda: call(thing(x))), make)]  # noqa: B023
    for name, function in [*BY_HAND.items()][first::share]:
        found += [f"{name} {fault}" for fault in faults(lambda x: told(lambda: function(thing(x))), make)]  # noqa: B023
    assert tried > 80 // share
    assert found == []
