"""Calls that differ only in which objects are the same object: a compiled function answers as the function does.

Each function asks in one way whether two objects are the same, and takes them from two places. It is called with
different objects of equal contents, then with one object in both places, and the other way round.
"""

from __future__ import annotations

import enum
import gc
import itertools
import json
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

W = Value(0.7)


# -- ways of asking ---------------------------------------------------------------------------------------------------


def by_is(a: Any, b: Any) -> bool:
    return a is b


def by_is_not(a: Any, b: Any) -> bool:
    return a is not b


def by_equality(a: Any, b: Any) -> bool:
    return bool(a == b)


def by_lists(a: Any, b: Any) -> bool:
    return [a] == [b]


def by_tuples(a: Any, b: Any) -> bool:
    return (1.0, a) != (1.0, b)


def by_in(a: Any, b: Any) -> bool:
    return a in [None, b]


def by_index(a: Any, b: Any) -> bool:
    return [b, a].index(a) == 0


def by_count(a: Any, b: Any) -> bool:
    return [a, b].count(a) == 2


def by_remove(a: Any, b: Any) -> bool:
    rest = [b, None, a]
    rest.remove(a)
    return rest[0] is None


def by_set(a: Any, b: Any) -> bool:
    return len({a, b}) == 1


def by_dict(a: Any, b: Any) -> bool:
    return a in {b: 1}


def by_id(a: Any, b: Any) -> bool:
    return id(a) == id(b)


def by_ids(a: Any, b: Any) -> bool:
    return len({*map(id, (a, b))}) == 1


def by_operator(a: Any, b: Any) -> bool:
    return operator.is_(a, b)


def by_mapped_operator(a: Any, b: Any) -> bool:
    return any(map(operator.is_not, [a], [b]))


def by_any(a: Any, b: Any) -> bool:
    return any(a is each for each in [None, b])


def by_memo(a: Any, b: Any) -> bool:
    seen: list[Any] = []
    for each in (a, b):
        if not any(each is other for other in seen):
            seen.append(each)
    return len(seen) == 1


WAYS: list[Callable[[Any, Any], bool]] = [
    by_is,
    by_is_not,
    by_equality,
    by_lists,
    by_tuples,
    by_in,
    by_index,
    by_count,
    by_remove,
    by_set,
    by_dict,
    by_id,
    by_ids,
    by_operator,
    by_mapped_operator,
    by_any,
    by_memo,
]


# -- kinds of objects, and a number in each ---------------------------------------------------------------------------


class Thing:
    def __init__(self, x: Any = None) -> None:
        self.n = 1.5
        self.x = x


class Row(tuple[Any, ...]):
    __slots__ = ()


class Named(NamedTuple):
    x: float


@dataclass(frozen=True)
class Frozen:
    x: float


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "Value": (lambda: Value(1.5), lambda x: x),
    "float": (lambda: float("1.5"), lambda x: x),
    "nan": (lambda: float("nan"), lambda x: 1.0),
    "large int": (lambda: int("123456789"), lambda x: x / 1e9),
    "list": (lambda: [1.5, 2.0], lambda x: x[0]),
    "list of Values": (lambda: [Value(1.5)], lambda x: x[0]),
    "tuple": (lambda: (float("1.5"), 2.0), lambda x: x[0]),
    "dict": (lambda: {"n": 1.5}, lambda x: x["n"]),
    "array": (lambda: np.array([1.5, 2.0]), lambda x: x[0]),
    "object": (Thing, lambda x: x.n),
}


# -- places: how arguments are made of two objects, and how both are taken from them --------------------------------

CELL: list[Any] = [None]  # for a captured object
CAPTURED = Thing()


def of_global(x: Any) -> Any:
    return CELL[0], x


def of_attribute(x: Any) -> Any:
    return CAPTURED.x, x


PLACES: dict[str, tuple[Callable[[Any, Any], tuple[Any, ...]], Callable[..., Any]]] = {
    "two arguments": (lambda a, b: (a, b), lambda x, y: (x, y)),
    "a list": (lambda a, b: ([a, b],), lambda x: (x[0], x[1])),
    "a mixed list": (lambda a, b: ([a, 2.5, "s", b],), lambda x: (x[0], x[3])),
    "nested lists": (lambda a, b: ([[a], [b]],), lambda x: (x[0][0], x[1][0])),
    "a tuple": (lambda a, b: ((a, b),), lambda x: (x[0], x[1])),
    "a list of tuples": (lambda a, b: ([(a, 1.0), (b, 2.0)],), lambda x: (x[0][0], x[1][0])),
    "a dict": (lambda a, b: ({"a": a, "b": b},), lambda x: (x["a"], x["b"])),
    "a dict of lists": (lambda a, b: ({"a": [a], "b": [b, 1.0]},), lambda x: (x["a"][0], x["b"][0])),
    "two lists": (lambda a, b: ([a, a], [b, 1.0]), lambda x, y: (x[1], y[0])),
    "a list and an argument": (lambda a, b: ([1.0, a], b), lambda x, y: (x[1], y)),
    "an object and an argument": (lambda a, b: (Thing(a), b), lambda x, y: (x.x, y)),
    "a captured list": (lambda a, b: (b,), of_global),
    "a captured object": (lambda a, b: (b,), of_attribute),
    "a captured object and a list": (lambda a, b: ([1.0, b],), lambda x: (CAPTURED.x, x[1])),
}


def gradients(args: Any) -> Iterator[Value]:
    for x in args:
        if isinstance(x, Value):
            yield x
        elif isinstance(x, (list, tuple, dict)):
            yield from gradients(x.values() if isinstance(x, dict) else x)


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    every = {id(x): x for x in (W, *gradients((*args, CELL)))}.values()
    for x in every:
        x.grad = 0.0
    try:
        y = function(*args)
    except (TypeError, ValueError) as error:
        return type(error)
    y.backward()
    return y.data, [x.grad for x in every]


def asking(way: Callable[[Any, Any], bool], take: Callable[..., Any], number: Callable[[Any], Any]) -> Any:
    def one(x: Any) -> Any:
        a, b = take(x)
        return W * number(a) if way(a, b) else W * number(b) * 2.0

    def two(x: Any, y: Any) -> Any:
        a, b = take(x, y)
        return W * number(a) if way(a, b) else W * number(b) * 2.0

    return two if take.__code__.co_argcount == 2 else one


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_which_objects_are_the_same(way: Callable[[Any, Any], bool], kind: str) -> None:
    make, number = KINDS[kind]
    wrong = []
    for place, (arguments, take) in PLACES.items():
        for order in ("ddddds dss", "ssssssd ssd"):
            function = asking(way, take, number)
            compiled = wengert.compile(function)
            a = make()
            CELL[0] = CAPTURED.x = a
            for call, which in enumerate(order.replace(" ", "")):
                if "captured" not in place:
                    a = make()
                args = arguments(a, a if which == "s" else make())
                expected = outcome(function, args)
                got = outcome(compiled, args)
                if got != expected and got is not expected:
                    wrong.append((place, order, call, got, expected))
                    break
    assert not wrong


# -- batches ----------------------------------------------------------------------------------------------------------


def of_one(x: Any) -> Any:
    return x[0], x[1]


def of_two(x: Any, y: Any) -> Any:
    return x, y


def mapped(rows: Callable[[], Any]) -> Any:
    try:
        return rows()
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("kind", ["float", "nan", "list", "tuple"])
@pytest.mark.parametrize("way", WAYS)
def test_which_objects_are_the_same_in_a_batch(way: Callable[[Any, Any], bool], kind: str) -> None:
    make, number = KINDS[kind]
    wrong = []
    for take in (of_one, of_two):
        for order in ("dddd dddd dsdd dddd", "ssss ssss ssds ssss", "sdsd dsds"):
            function = asking(way, take, number)
            compiled = wengert.compile(function)
            for call, which in enumerate(order.split()):
                rows = [(a, a if same == "s" else make()) for same, a in [(same, make()) for same in which]]
                batch = [[*map(list, rows)]] if take is of_one else [*map(list, zip(*rows, strict=True))]
                expected = mapped(lambda: [function(*row).data for row in zip(*batch, strict=True)])  # noqa: B023
                got = mapped(lambda: compiled.map(*batch).tolist())  # noqa: B023
                if got != expected:
                    wrong.append((take.__name__, order, call, got, expected))
                    break
    assert not wrong


# -- numbers of which the function has one itself ---------------------------------------------------------------------

OWN_NUMBERS = """
def of_two_branches(n, m=True):
    return n is (ONE if m else TWO)

def of_a_variable(n, m=True):
    own = ONE
    return n is own

def of_a_generator(n, m=True):
    return any(n is each for each in (TWO, ONE))

def of_a_loop(n, m=True):
    for each in (TWO, ONE):
        if n is each:
            return True
    return False

def of_a_dict(n, m=True):
    return {"a": ONE}["a"] is n

def of_and(n, m=True):
    return n is (m and ONE)

def of_a_nested_tuple(n, m=True):
    table = ((TWO, (ONE, "a")),)
    return table[0][1][0] is n

def of_an_inner_function(n, m=True):
    def inner():
        return ONE
    return inner() is n

def by_function(n, m=True):
    return is_(n, ONE)

def by_identity(n, m=True):
    return id(n) == id(ONE)

def of_a_computation(n, m=True):
    return n is m + ONE - 1

def of_a_length(n, m=True):
    return n is len([m] * (int(ONE) % 99))

same, other = ONE, TWO
"""
NUMBERS = {"small ints": ("1", "2"), "large ints": ("123456789", "987654321"), "floats": ("1.5", "2.5")}
OWN = [line[4:].partition("(")[0] for line in OWN_NUMBERS.splitlines() if line.startswith("def ")]


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("order", ["oooooooosso", "sssssssooso", "sosososo"])
def test_numbers_that_are_the_function_s_own(name: str, numbers: str, order: str) -> None:
    """Python has one object of each small int, and one of equal constants in a file."""
    one, two = NUMBERS[numbers]
    namespace: dict[str, Any] = {"is_": operator.is_}
    exec(OWN_NUMBERS.replace("ONE", one).replace("TWO", two), namespace)
    asks = namespace[name]

    def function(n: Any) -> Any:
        return W * n if asks(n) else W + n

    compiled, mapped = wengert.compile(function), wengert.compile(function)
    for call, which in enumerate(order):
        n = namespace["same" if which == "s" else "other"]
        assert outcome(compiled, (n,)) == outcome(function, (n,)), call
        assert mapped.map([n, n + 1]).tolist() == [function(x).data for x in (n, n + 1)], call


# -- equal objects of all kinds, which are compared by value unless the function asks ---------------------------------

HELD = Thing()
GLOBAL: list[Any] = [None]


def is_global(x: Any, m: Any = None) -> Any:
    return x * 2.0 if m is GLOBAL[0] else x * 3.0


def is_held(x: Any, m: Any = None) -> Any:
    return x * 2.0 if m is HELD.x else x * 3.0


def are_one(x: Any, m: Any, n: Any) -> Any:
    return x * 2.0 if m is n else x * 3.0


def has_one(x: Any, several: Any) -> Any:
    for each in several:
        if each is HELD.x:
            return x * 2.0
    return x * 3.0


def both_held(x: Any) -> Any:
    return x * 2.0 if GLOBAL[0] is HELD.x else x * 3.0


NAMED_GLOBAL: dict[str, Any] = {}
exec("def is_named(x, m):\n    return x * 2.0 if m is NAME else x * 3.0", NAMED_GLOBAL)
EQUAL: dict[str, Callable[[], Any]] = {
    "str": lambda: "".join(["te", "xt"]),
    "bytes": lambda: bytes([116, 101]),
    "int": lambda: int("123456789"),
    "float": lambda: float("1.5"),
    "complex": lambda: complex("1.5j"),
    "Fraction": lambda: Fraction(1, 3),
    "Decimal": lambda: Decimal("1.5"),
    "date": lambda: date(2020, 1, 1),
    "datetime": lambda: datetime(2020, 1, 1, 12),
    "named tuple": lambda: Named(float("1.5")),
    "frozen dataclass": lambda: Frozen(float("1.5")),
    "tuple": lambda: (float("1.5"), "a"),
    "range": lambda: range(5),
    "set": lambda: {1.5},
    "frozenset": lambda: frozenset([1.5]),
    "list": lambda: [1.5],
    "dict": lambda: {"a": 1.5},
    "slice": lambda: slice(1, 2),
    "float64": lambda: np.float64(1.5),
    "float32": lambda: np.float32(1.5),
    "int64": lambda: np.int64(3),
    "array": lambda: np.arange(3.0),
    "array of ints": lambda: np.arange(3),
}


def with_equals(p: Any, q: Any) -> Iterator[tuple[str, Callable[..., Any], list[tuple[Any, Any, tuple[Any, ...]]]]]:
    """Yield cases: what is asked, the function, and in turn what is held globally, what by an object, and arguments."""
    for way, function in (("global", is_global), ("held", is_held), ("named", NAMED_GLOBAL["is_named"])):
        yield way, function, [(p, p, (p,)), (p, p, (q,)), (p, p, (p,))]
    yield "what is held changes", is_held, [(p, p, (p,)), (p, q, (p,)), (p, p, (p,))]
    yield "what is held changes back", is_held, [(p, q, (p,)), (p, p, (p,)), (p, q, (p,))]
    yield "both are held", both_held, [(p, p, ()), (p, q, ()), (q, q, ()), (q, p, ())]
    yield "two arguments", are_one, [(p, p, (p, p)), (p, p, (p, q)), (p, p, (q, q)), (p, p, (q, p))]
    yield "a list", has_one, [(p, p, ([p],)), (p, p, ([q],))]
    yield "a tuple", has_one, [(p, p, ((p,),)), (p, p, ((q,),))]
    if not isinstance(p, (list, dict, set, slice, np.ndarray)):
        yield "keys", has_one, [(p, p, ({p: 1.0},)), (p, p, ({q: 1.0},))]
        yield "a set", has_one, [(p, p, ({p},)), (p, p, ({q},))]


@pytest.mark.parametrize("kind", EQUAL)
@pytest.mark.parametrize("is_traced", [False, True])
def test_equal_objects_that_are_not_the_same(kind: str, is_traced: bool) -> None:
    """Eleven calls with one of them, so that the checks of the first calls are over; then with the others."""
    wrong, a, b = [], EQUAL[kind](), EQUAL[kind]()
    for p, q in ((a, b), (b, a)):
        for way, function, turns in with_equals(p, q):
            compiled, call = wengert.compile(function), 0
            for turn, (name, held, args) in enumerate(turns):
                for _ in range(3 if turn else 11):
                    GLOBAL[0] = NAMED_GLOBAL["NAME"] = name
                    HELD.x = held
                    call += 1
                    expected, got = function(call, *args), compiled(Value(call) if is_traced else float(call), *args)
                    if got != expected and getattr(got, "data", None) != expected:
                        wrong.append((way, turn, call, got, expected))
    assert not wrong


def tagged(x: Any, tag: Any = None) -> Any:
    return x * 2.0 if tag is GLOBAL[0] else x * 3.0


def named(x: Any, *, tag: Any = None) -> Any:
    return x * 2.0 if tag is GLOBAL[0] else x * 3.0


@pytest.mark.parametrize("kind", EQUAL)
@pytest.mark.parametrize("inner", [tagged, named])
def test_defaults_that_are_equal_and_not_the_same(kind: str, inner: Any) -> None:
    def function(x: Any) -> Any:
        return inner(x)

    wrong, a, b = [], EQUAL[kind](), EQUAL[kind]()
    compiled = wengert.compile(function)
    GLOBAL[0] = a
    for call, tag in enumerate([*[a] * 20, *[b] * 3, *[a] * 3], 1):
        inner.__defaults__, inner.__kwdefaults__ = ((tag,), None) if inner is tagged else (None, {"tag": tag})
        if (got := compiled(float(call))) != function(float(call)):
            wrong.append((call, got))
    assert not wrong


@dataclass(frozen=True, eq=False)
class Node:
    v: float
    children: Any
    parent: Any = None


@dataclass(frozen=True)
class Hidden:
    x: float
    unset: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", next(NUMBERED))


NUMBERED = itertools.count(1)


def test_a_frozen_object_that_reaches_itself_or_shares_its_parts() -> None:
    def function(x: Any, n: Any, y: Any) -> Any:
        return x * n.v if x is not y else x

    root = Node(1.0, [])
    root.children.append(Node(2.0, [], root))
    shared = Node(1.0, [])
    for _ in range(30):
        shared = Node(1.0, [shared, shared])
    for n in (root, shared):
        compiled = wengert.compile(function)
        assert [compiled(1.5 + k, n, 2.25) for k in range(9)] == [1.5 + k for k in range(9)]
        assert "uncompiled" not in compiled.report()


@pytest.mark.parametrize("asks", [False, True])
def test_a_frozen_object_that_has_more_or_less_than_its_fields(asks: bool) -> None:
    def function(x: Any, d: Any) -> Any:
        return x * d.hidden if not asks or x is not d else x

    compiled = wengert.compile(function)
    for d in (Hidden(1.5), Hidden(1.5)):
        for k in range(9):
            assert compiled(1.5 + k, d) == function(1.5 + k, d)


# -- what an ordinary program with an `is` keeps: one specialization, compiled ----------------------------------------


@dataclass(frozen=True)
class Settings:
    rate: float = 0.1
    steps: int = 3
    mode: str = "fast"
    sizes: tuple[float, ...] = (1.5, 2.5)


RATE = 0.1


class Model:
    def __init__(self) -> None:
        self.rate, self.parts = 0.1, [0.5, 0.25]


MODEL = Model()


def by_settings(x: Any, settings: Any, first: Any) -> Any:
    return x * settings.rate + settings.steps * settings.sizes[0] if settings is not first else x


def by_text(x: Any, options: Any, mode: Any) -> Any:
    return x * options["rate"] if mode is not options else x


def by_rate(x: Any, other: Any) -> Any:
    return x - RATE * 2.0 * x * MODEL.rate - MODEL.parts[1] if x is not other else x


ORDINARY: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "the same settings": (by_settings, lambda k, kept=Settings(): (kept, None)),
    "new settings": (by_settings, lambda k: (Settings(), None)),
    "two settings": (by_settings, lambda k, kept=Settings(): (kept, Settings(0.5))),
    "new keys": (by_text, lambda k: (json.loads('{"rate": 0.5}'), "".join(["fa", "st"]))),
    "floats that change": (by_rate, lambda k: (0.25,)),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_program_that_asks_by_is_is_compiled_once(name: str) -> None:
    global RATE
    function, arguments = ORDINARY[name]
    compiled = wengert.compile(function)
    for k in range(40):
        RATE, MODEL.rate, MODEL.parts[1] = 0.1 / (1 + k), 0.2 / (1 + k), 0.3 / (2 + k)
        given = (1.5 + k, *arguments(k))
        assert compiled(*given) == pytest.approx(function(*given), rel=1e-14)
    entries = compiled._server.entries.values()
    assert sum(len(entry.specializations) for entry in entries) == 1
    assert "uncompiled" not in compiled.report()


def test_captured_floats_that_become_the_same_object() -> None:
    """Once they are, each is a constant; the functions have traced numbers, of which none is another, before."""

    def two(x: Any) -> Any:
        return x * 2.0 if MODEL.rate is MODEL.parts[0] else x * MODEL.rate

    def beside(x: Any, y: Any) -> Any:
        return x * 2.0 if y is MODEL.rate else x * MODEL.rate

    for function, arguments in ((two, lambda: ()), (beside, lambda: (MODEL.parts[0],))):
        compiled = wengert.compile(function)
        for k in range(60):
            MODEL.rate, MODEL.parts[0] = 0.5 / (1 + k), float(f"{k}.5")
            if k % 20 > 17:
                MODEL.rate = MODEL.parts[0]
            given = (1.5 + k, *arguments())
            assert compiled(*given) == pytest.approx(function(*given), rel=1e-14), k


# -- what stays as fast as it was -------------------------------------------------------------------------------------

MISSING = object()


class Layer:
    def __init__(self, w: float) -> None:
        self.w = Value(w)

    def __call__(self, x: list[Any]) -> list[Any]:
        return [self.w * each for each in x]


LAYERS = [Layer(0.5), Layer(-0.25), Layer(2.0)]


def with_defaults(x: Any, y: Any = None) -> Any:
    return W * x[0] if y is None else W * y


def with_a_constant(x: Any, y: Any = MISSING) -> Any:
    return W * x[0] if y is MISSING or type(x) is tuple else W * y


def all_but_the_last(x: Any) -> Any:
    for layer in LAYERS:
        x = layer(x)
        if layer is not LAYERS[-1]:
            x = [each.tanh() for each in x]
    return sum(x)


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


class Drive:
    def __init__(self) -> None:
        self.mode, self.speed = Mode.FAST, 0.5


DRIVE = Drive()


def moved(x: Any) -> Any:
    return W * x[0] * DRIVE.speed if DRIVE.mode is Mode.FAST else W * x[0]


def pairs(x: Any) -> Any:
    return sum(a.w * b.w * x[0] for a in LAYERS for b in LAYERS if a is not b)


@pytest.mark.parametrize("function", [with_defaults, with_a_constant, all_but_the_last, moved, pairs])
def test_what_asks_for_no_argument_is_read_as_before(function: Callable[..., Any]) -> None:
    compiled = wengert.compile(function)
    for n in range(8):
        x = [0.25, 0.5 + n]
        DRIVE.speed = 0.5 + n
        assert compiled(x).data == pytest.approx(function(x).data)
    assert not compiled._server.specializer.tells_objects
    assert "uncompiled" not in compiled.report()


def pairs_of_points(points: Any) -> Any:
    return W * sum(p.x * q.x for p in points for q in points if p is not q)


def two_points(p: Any, q: Any) -> Any:
    return W * p.x if p is not q else W * 2.0


@pytest.mark.parametrize("kind", [Named, Frozen])
@pytest.mark.parametrize("order", ["ddddddss", "ssssssdd"])
def test_objects_that_are_equal_by_their_attributes(kind: Any, order: str) -> None:
    several, two = wengert.compile(pairs_of_points), wengert.compile(two_points)
    for which in order:
        a = kind(1.5)
        b = a if which == "s" else kind(1.5)
        same = several([a, b, kind(2.0)]), pairs_of_points([a, b, kind(2.0)])
        assert same[0].data == pytest.approx(same[1].data)
        assert two(a, b).data == two_points(a, b).data


def pairs_of_rows(rows: Any) -> Any:
    return sum(W * a[0] * b[1] for a in rows for b in rows if a is not b)


def test_pairs_of_rows_are_compiled() -> None:
    compiled = wengert.compile(pairs_of_rows)
    first, second = [1.0, 2.0], [1.5, 2.5]
    for n in range(12):
        rows = [first, [float(f"{n}.5"), float(f"{n}.25")], first if n in (4, 5, 9) else second]
        assert compiled(rows).data == pytest.approx(pairs_of_rows(rows).data)
    assert "uncompiled" not in compiled.report()
    assert len(compiled._server.entries) == 2  # with a row twice, and without


def test_what_is_evicted_is_not_looked_at_any_more() -> None:
    """A function that asks, with a new object at each call, keeps as many captures as it has kinds of arguments."""
    from wengert.compiler.call import Captures

    def function(x: Any, thing: Any, y: Any) -> Any:
        return x * MODEL.rate * thing.n if x is not y else x

    compiled = wengert.compile(function)
    before = sum(type(x) is Captures for x in gc.get_objects())
    for k in range(150):
        thing = Thing()
        for _ in range(3):
            compiled(1.5 + k, thing, 0.25)
        del thing
    gc.collect()
    entries = compiled._server.entries
    assert sum(type(x) is Captures for x in gc.get_objects()) - before <= len(entries) <= 32
