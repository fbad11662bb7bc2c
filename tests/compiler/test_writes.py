"""What a function puts into objects that are no argument: a recorded run leaves nothing of its own there.

A recorded run finds proxies of objects and classes. Where a function fills a cache that has no proxy, such as one of a
subclass of `dict`, the run would put these there, for the user to find. Each combination of a holder, of what is put
and of how runs eleven times plain and compiled: results and contents have to be the same.
"""

from __future__ import annotations

import collections
import enum
import functools
import itertools
import math
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

import wengert
from wengert import Value


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


class Answering:
    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class Plain:
    pass


class Dict(dict[Any, Any]):
    pass


class List(list[Any]):
    pass


class Set(set[Any]):
    pass


class Deque(collections.deque[Any]):
    pass


class Ordered(collections.OrderedDict[Any, Any]):
    pass


class Default(collections.defaultdict[Any, Any]):
    pass


class User(collections.UserDict[Any, Any]):
    pass


class Weak(weakref.WeakKeyDictionary[Any, Any]):
    pass


class Missing(dict[Any, Any]):
    def __missing__(self, key: Any) -> float:
        self[key] = 2.0
        return 2.0


class Shape:
    def __init__(self, size: float) -> None:
        self.size = size


def helper(x: Any) -> Any:
    return x * 2.0


PUT: dict[str, Callable[[Any], Any]] = {
    "its class": lambda shape: shape.__class__,
    "its type": type,
    "itself": lambda shape: shape,
    "a function": lambda shape: helper,
    "a tuple with its class": lambda shape: (shape.__class__, "area"),
}


def if_absent(held: Any, key: Any) -> float:
    if key not in held:
        held[key] = 2.0
    return held[key]  # type: ignore[no-any-return]


def on_error(held: Any, key: Any) -> float:
    try:
        return held[key]  # type: ignore[no-any-return]
    except KeyError:
        held[key] = 2.0
        return 2.0


def as_item(held: Any, key: Any) -> float:
    if held.get(helper) != key:
        held[helper] = key
    return 2.0


def by_default(held: Any, key: Any) -> float:
    return held.setdefault(key, 2.0)  # type: ignore[no-any-return]


def by_update(held: Any, key: Any) -> float:
    if key not in held:
        held.update({key: 2.0})
    return 2.0


def by_method(held: Any, key: Any) -> float:
    if key not in held:
        (held.add if isinstance(held, set) else held.append)(key)
    return 2.0


def in_place(held: Any, key: Any) -> float:
    if key not in held:
        if isinstance(held, set):
            held |= {key}
        else:
            held += [key]
    return 2.0


def at_object(held: Any, key: Any) -> float:
    if getattr(held, "last", None) is not key:
        held.last = key
    return 2.0


def at_class(held: Any, key: Any) -> float:
    if vars(type(held)).get("seen") is not key:
        type(held).seen = key
    return 2.0


MAPS: dict[str, Callable[[], Any]] = {
    "dict": dict, "a subclass of dict": Dict, "OrderedDict": collections.OrderedDict, "of OrderedDict": Ordered,
    "defaultdict": lambda: collections.defaultdict(float), "of defaultdict": lambda: Default(float),
    "UserDict": collections.UserDict, "of UserDict": User, "WeakKeyDictionary": weakref.WeakKeyDictionary,
    "of WeakKeyDictionary": Weak, "ChainMap": lambda: collections.ChainMap({}),
    "with __missing__": Missing,
}  # fmt: skip
BAGS: dict[str, Callable[[], Any]] = {
    "list": list, "a subclass of list": List, "set": set, "a subclass of set": Set, "deque": collections.deque,
    "a subclass of deque": Deque, "UserList": collections.UserList,
}  # fmt: skip
OBJECTS: dict[str, Callable[[], Any]] = {
    "object": Plain, "namespace": types.SimpleNamespace, "with a metaclass": WithMeta, "that answers": Answering,
}  # fmt: skip
CASES = [
    *itertools.product(MAPS, (if_absent, on_error, as_item, by_default, by_update)),
    *itertools.product(BAGS, (by_method, in_place)),
    *itertools.product(OBJECTS, (at_object, at_class)),
]
NEW = {**MAPS, **BAGS, **OBJECTS}


def contents(held: Any) -> list[Any]:
    found: list[Any] = [vars(held).get("last")] if hasattr(held, "__dict__") and type(held) is not Weak else []
    found.append(vars(type(held)).get("seen"))
    if hasattr(held, "items"):
        return [*found, *held.items()]
    return [*found, *held] if hasattr(held, "__iter__") else found


def run(
    make: Callable[[], Any], put: Callable[[Any], Any], way: Callable[..., float], compile: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """Return what each call returns or raises, and what the holder has in the end."""
    held, shape, w = make(), Shape(1.5), Value(1.2)
    if "seen" in vars(type(held)):
        del type(held).seen
    f = compile(lambda x: way(held, put(shape)) * shape.size * w * x)
    seen: list[Any] = []
    for n in range(1, 12):
        try:
            seen.append(f(0.1 * n).data)
        except TypeError as error:  # a tuple has no weak reference
            seen.append(str(error))
    known = {id(shape): "the shape", id(Shape): "its class", id(helper): "the function"}

    def spelt(x: Any) -> Any:
        return tuple(map(spelt, x)) if type(x) is tuple else known.get(id(x), x)

    return seen, [spelt(x) for x in contents(held)]


@pytest.mark.parametrize(("holder", "way"), CASES, ids=[f"{holder}-{way.__name__}" for holder, way in CASES])
def test_nothing_of_a_recording_stays_where_the_user_finds_it(holder: str, way: Callable[..., float]) -> None:
    for what, put in PUT.items():
        once = functools.partial(run, NEW[holder], put, way)
        seen, left = once(lambda f: f)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled_seen, compiled_left = once(wengert.compile)
        assert compiled_left == left, what
        assert [x if isinstance(x, str) else pytest.approx(x, rel=1e-14) for x in seen] == compiled_seen, what


def test_a_cache_by_class_is_read_and_compiled() -> None:
    for held in ({}, collections.UserDict(), weakref.WeakKeyDictionary()):
        cache: Any = held
        shape, w = Shape(1.5), Value(1.2)

        @wengert.compile
        def area(x: float) -> Value:
            return w * x * if_absent(cache, type(shape)) * shape.size  # noqa: B023

        assert [area(0.5 * n).data for n in range(6)] == pytest.approx([1.8 * n for n in range(6)])
        assert area._server.last.specializations, type(held)
        cache[type(shape)] = 3.0
        assert area(2.0).data == pytest.approx(10.8)
        assert list(cache) == [Shape]


def test_a_dispatch_on_the_class_is_compiled() -> None:
    """`functools.singledispatch` keeps a `WeakKeyDictionary` by class, and fills it at the first calls."""
    w = Value(1.2)

    @functools.singledispatch
    def area(shape: Any) -> Any:
        raise TypeError(type(shape).__name__)

    @area.register
    def _(shape: Shape) -> Any:
        return shape.size * shape.size

    shapes = [Shape(1.5)]
    f = wengert.compile(lambda x: w * x * sum(area(shape) for shape in shapes))
    assert [f(0.5 * n).data for n in range(8)] == pytest.approx([1.35 * n for n in range(8)])
    assert f._server.last.specializations[0].checked
    area.register(Shape, lambda shape: shape.size)
    assert f(2.0).data == pytest.approx(3.6)
    cells = dict(zip(area.dispatch.__code__.co_freevars, area.dispatch.__closure__ or (), strict=True))
    assert list(cells["dispatch_cache"].cell_contents) == [Shape]


Pair = collections.namedtuple("Pair", "kind number")
WAYS: dict[str, Callable[[Any, Any], float]] = {}


def kept(f: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    WAYS[f.__name__] = f
    return f


@kept
def by_a_named_tuple(held: Any, shape: Any) -> float:
    key = Pair(type(shape), 1)
    if key not in held:
        held[key] = 2.0
    return held[key]  # type: ignore[no-any-return]


@kept
def with_a_function(held: Any, shape: Any) -> float:
    key = type(shape)
    if key not in held:
        held[key] = 1.0
        held["function"] = lambda: key
    return 1.0 * (held["function"]() is key)


@kept
def with_nested_containers(held: Any, shape: Any) -> float:
    key = type(shape)
    if key not in held:
        held[key] = collections.OrderedDict(kind=[key], more=collections.deque([key]), own=Dict(kind=key))
    return float(len(held[key]))


@kept
def with_one_that_goes(held: Any, shape: Any) -> float:
    key = type(shape)
    if key not in held:
        while len(held) >= 2:
            held.pop(next(iter(held)))
        held["kept"] = held[key] = 2.0
    return float(len(held))


@kept
def with_a_cycle(held: Any, shape: Any) -> float:
    if "cycle" not in held:
        held["cycle"] = []
        held["cycle"].append(held["cycle"])
    return float(len(held["cycle"]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [dict, Dict, Ordered, collections.OrderedDict, collections.UserDict, User])
def test_what_else_a_cache_is_filled_with(way: str, make: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held, again, shape, w = make(), make(), Shape(1.5), Value(1.2)
        compiled = wengert.compile(lambda x: w * x * WAYS[way](held, shape))
        for n in range(1, 13):
            wanted = w * (0.1 * n) * WAYS[way](again, shape)
            assert compiled(0.1 * n).data == pytest.approx(wanted.data)
    assert list(held) == list(again)
    for key, item in held.items():
        if callable(item):
            assert item() is Shape
        elif way != "with_a_cycle":
            assert repr(item) == repr(again[key])
            assert Shape not in type.__subclasses__(Shape)


def test_a_result_that_is_kept_by_class_is_kept_once() -> None:
    @functools.lru_cache
    def size(kind: Any) -> float:
        return 2.0

    shape, w = Shape(1.5), Value(1.2)
    for key in (type, lambda x: (type(x), 1), lambda x: frozenset([type(x)]), lambda x: helper):
        size.cache_clear()
        compiled = wengert.compile(lambda x: w * x * size(key(shape)))  # noqa: B023
        for n in range(1, 12):
            assert compiled(0.1 * n).data == pytest.approx(0.24 * n)
        assert size.cache_info().currsize == 1
        assert compiled._server.last.specializations[0].checked


class Attribute:
    """A descriptor that keeps what it is set to by the object."""

    def __init__(self) -> None:
        self.values: Any = weakref.WeakKeyDictionary()

    def __get__(self, x: Any, kind: Any = None) -> Any:
        return self.values[x]

    def __set__(self, x: Any, value: Any) -> None:
        self.values[x] = value


class Tank:
    level = Attribute()


@pytest.mark.parametrize("make", [weakref.WeakKeyDictionary, Weak, collections.UserDict, dict])
def test_what_is_kept_at_each_call_is_kept_by_each(make: Callable[[], Any]) -> None:
    for way in ("number", "double", "list", "count"):
        held, shape, w = make(), Shape(1.5), Value(1.2)
        held[shape] = [] if way == "list" else 0.0

        def f(x: float) -> Any:
            if way == "list":  # noqa: B023
                held[shape].append(x)  # noqa: B023
            elif way == "count":  # noqa: B023
                held[shape] += 1  # noqa: B023
            else:
                held[shape] = x if way == "number" else 2.0 * x  # noqa: B023
            return w * x  # noqa: B023

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = wengert.compile(f)
            for n in range(1, 15):
                assert compiled(0.1 * n).data == pytest.approx(0.12 * n)
        last = [0.1 * n for n in range(1, 15)]
        assert held[shape] == {"number": last[-1], "double": 2.0 * last[-1], "list": last, "count": 14}[way]


def test_an_attribute_that_a_descriptor_keeps() -> None:
    tank, w = Tank(), Value(1.2)

    def f(x: float) -> Any:
        tank.level = x + 1.0
        return w * x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = wengert.compile(f)
        for n in range(1, 15):
            compiled(0.1 * n)
            assert tank.level == 0.1 * n + 1.0


def test_lists_that_are_shared_many_times_are_looked_at_once() -> None:
    shared: list[Any] = [1.5, 2.0]
    for _ in range(60):
        shared = [shared, shared]
    held, w = Dict(shared=shared, factor=2.0), Value(1.2)
    compiled = wengert.compile(lambda x: w * x * held["factor"])
    for n in range(6):
        assert compiled(0.5 * n).data == pytest.approx(1.2 * n)
    assert compiled._server.last.specializations


class Frozen(frozenset[Any]):
    calls = 0.0


class Tuple(tuple[Any, ...]):
    calls = 0.0


class Counting:
    calls = 0.0


class NotedError(Exception):
    calls = 0.0


T = TypeVar("T")


class Typed(Generic[T]):
    calls = 0.0

    def __init__(self) -> None:
        self.unread = itertools.count()


class Number(Value):
    __slots__ = ("__dict__",)


def _own(make: Callable[[], Any]) -> Callable[[], tuple[Any, Callable[[], Any]]]:
    def held() -> tuple[Any, Callable[[], Any]]:
        x = make()
        return x, lambda: x

    return held


def _inside(hold: Callable[[Any], Any], take: Callable[[Any], Any]) -> Callable[[], tuple[Any, Callable[[], Any]]]:
    def held() -> tuple[Any, Callable[[], Any]]:
        x = Counting()
        holder = hold(x)
        return x, lambda: take(holder)

    return held


COUNTED: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {
    "a frozenset": _own(lambda: Frozen([1])),
    "a tuple": _own(lambda: Tuple([1])),
    "a set": _own(lambda: Set([1])),
    "a list": _own(lambda: List([1.0])),
    "a dict": _own(lambda: Dict(a=1.0)),
    "an exception": _own(lambda: NotedError("n")),
    "a Value": _own(lambda: Number(1.0)),
    "in an exception": _inside(ValueError, lambda e: e.args[0]),
    "in a mapping": _inside(lambda x: types.MappingProxyType({"a": x}), lambda m: m["a"]),
    "in a frozenset": _inside(lambda x: Frozen([x]), lambda s: next(iter(s))),
    "in a set of tuples": _inside(lambda x: Set([Tuple([x])]), lambda s: next(iter(s))[0]),
    "a key of a dict": _inside(lambda x: Dict({x: 1}), lambda d: next(iter(d))),
    "a key of a plain dict": _inside(lambda x: {(x, 1): 1}, lambda d: next(iter(d))[0]),
}


@pytest.mark.parametrize("where", COUNTED)
@pytest.mark.parametrize("of_class", [False, True], ids=["attribute", "attribute of the class"])
def test_what_each_call_counts_is_counted_once(where: str, of_class: bool) -> None:
    """Whatever holds what is counted."""
    seen = []
    for compile in (lambda f: f, wengert.compile):
        x, take = COUNTED[where]()
        kind, before = type(x), type(x).__dict__.get("calls")
        w = Value(1.2)

        def f(number: float) -> Any:
            counted = type(take()) if of_class else take()  # noqa: B023
            counted.calls = getattr(counted, "calls", 0.0) + 1.0
            return w * number * counted.calls  # noqa: B023

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = compile(f)
            seen.append(([run(0.5).data for _ in range(9)], getattr(kind if of_class else x, "calls", None)))
        if of_class:
            if before is None:
                del kind.calls
            else:
                kind.calls = before
    assert seen[0] == seen[1]


def test_what_a_generic_class_holds_unread_is_left_alone() -> None:
    held, w = Typed[int](), Value(1.2)
    compiled = wengert.compile(lambda x: w * x + held.calls)
    assert [compiled(0.5 * n).data for n in range(6)] == pytest.approx([0.6 * n for n in range(6)])
    assert compiled._server.last.specializations


def test_no_text_of_a_value_is_asked_for() -> None:
    class Silent(Value):
        def __repr__(self) -> str:
            raise RuntimeError("asked")

    w = Silent(math.nan)
    compiled = wengert.compile(lambda x: w * x)
    for _ in range(6):
        assert math.isnan(compiled(0.5).data)


def test_the_order_of_an_ordered_dict_is_an_effect() -> None:
    held, w = collections.OrderedDict.fromkeys("abc", 1.0), Value(1.2)

    def f(x: float) -> Any:
        held.move_to_end(next(iter(held)))
        return w * x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = wengert.compile(f)
        for n in range(1, 10):
            compiled(0.5)
            assert "".join(held) == ("abc" * 4)[n % 3 : n % 3 + 3]


def test_deeply_nested_lists_have_short_names() -> None:
    held: Any = List([1.5])
    for _ in range(5000):
        held = List([held])
    w = Value(1.2)
    compiled = wengert.compile(lambda x: w * x * len(held))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(4):
            assert compiled(0.5 * n).data == pytest.approx(0.6 * n)
    entry = compiled._server.last
    places = [place for made in entry.specializations for place in made.captures.items]
    assert max([len(place.name) for place in places], default=0) < 400


def test_members_of_an_enumeration_are_read_once() -> None:
    many = enum.Enum("many", {f"member{n}": n for n in range(800)})  # type: ignore[misc]
    w = Value(1.2)
    compiled = wengert.compile(lambda x: w * x * (2.0 if many.member3 is not many.member4 else 1.0))
    for n in range(4):
        assert compiled(0.5 * n).data == pytest.approx(1.2 * n)


def test_another_thread_writes_while_it_is_recorded() -> None:
    """It has ended before the recorded run does: what it wrote stays."""
    log, cache, w = List(["first"]), Dict(a=1.0), Value(1.2)
    runs = [0]

    def f(x: float) -> Any:
        total = w * x * len(log[:1]) * cache["a"]
        for _ in range(50):
            total = total * 1.0
        if runs[0] == 2:  # the recorded one
            thread = threading.Thread(target=lambda: (log.append("from another"), cache.update(b=5.0)))
            thread.start()
            thread.join()
        return total

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = wengert.compile(f)
        for n in range(6):
            runs[0] = n + 1
            compiled(0.5)
    assert log.count("from another") >= 1
    assert cache["b"] == 5.0
