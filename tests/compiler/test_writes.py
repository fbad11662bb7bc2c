"""What a function puts into objects that are no argument: a recorded run leaves nothing of its own there.

A recorded run finds proxies of objects and classes. Where a function fills a cache that has no proxy, such as one of a
subclass of `dict`, the run would put these there, for the user to find. Each combination of a holder, of what is put
and of how runs eleven times plain and compiled: results and contents have to be the same.
"""

from __future__ import annotations

import collections
import functools
import itertools
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

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
