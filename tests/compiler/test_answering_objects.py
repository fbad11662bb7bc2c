"""Objects that answer to every name, lie about what they are, or never end: the compiler asks them nothing that the
function does not ask.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

import wengert
from wengert import Value
from wengert.compiler import policy

pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed is decided in Python

MOST = 2_000  # questions: far more than a few calls ask
ASKED = [0]
THING: Any = None


class Endless(BaseException):
    """An object was asked too often. No `except Exception` catches it."""


def asked() -> None:
    ASKED[0] += 1
    if ASKED[0] > MOST:
        raise Endless


class Answering:
    """Has every attribute, a new object each time."""

    def __getattr__(self, name: str) -> Any:
        asked()
        return type(self)()

    def __call__(self, *args: Any) -> float:
        return 3.0


class Keeping(Answering):
    """Has every attribute, and keeps it."""

    def __getattr__(self, name: str) -> Any:
        asked()
        self.__dict__[name] = child = Keeping()
        return child


class Remote(Answering):
    """As a proxy of a library for remote calls: names become a path."""

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        object.__setattr__(self, "path", path)

    def __getattribute__(self, name: str) -> Any:
        asked()
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        return Remote((*object.__getattribute__(self, "path"), name))


class Everything(Answering):
    def __getattribute__(self, name: str) -> Any:
        asked()
        return Everything()


class MetaAnswering(type):
    def __getattr__(cls, name: str) -> Any:
        asked()
        return Answering()


class OfAnsweringClass(metaclass=MetaAnswering):
    def __call__(self, *args: Any) -> float:
        return 3.0


class OwnDict(Answering):
    """Its `__dict__` is a property."""

    __slots__ = ()

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        asked()
        return {f"n{ASKED[0]}": OwnDict()}


class CountedMock(Mock):
    def _get_child_mock(self, /, **named: Any) -> Any:
        asked()
        return super()._get_child_mock(**named)


class CountedMagicMock(MagicMock):
    def _get_child_mock(self, /, **named: Any) -> Any:
        asked()
        return super()._get_child_mock(**named)


def lying(kind: Any) -> Any:
    class Lying(Answering):
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            return kind

    return Lying()


class Cyclic(Answering):
    def __init__(self) -> None:
        self.own: Any = self
        self.items: Any = [self]
        self.items.append(self.items)
        self.named: Any = {"x": self.items, "y": (self, self.items)}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Wrapping(Answering):
    """What it wraps wraps something too, without end; so do its `__func__`, `fget` and `__self__`."""

    def _wrapped(self) -> Any:
        asked()
        return Wrapping()

    __wrapped__ = __func__ = fget = __self__ = func = property(_wrapped)


def own_wrapper() -> Any:
    def function(*args: Any) -> float:
        return 3.0

    function.__wrapped__ = function  # type: ignore[attr-defined]
    return function


class LazyModule(types.ModuleType):
    """Imports what it is asked for."""

    def __getattr__(self, name: str) -> Any:
        asked()
        child = LazyModule(f"{self.__name__}.{name}")
        self.__dict__[name] = child
        return child

    def __call__(self, *args: Any) -> float:
        return 3.0


class EndlessList(list[Any]):
    """Each time it is iterated it has new items."""

    def __iter__(self) -> Any:
        asked()
        return iter([EndlessList([1])])

    def __call__(self, *args: Any) -> float:
        return 3.0


class EndlessDict(dict[Any, Any]):
    def items(self) -> Any:
        asked()
        return [("k", EndlessDict(k=1))]

    def __call__(self, *args: Any) -> float:
        return 3.0

    values = keys = items


class EndlessTuple(tuple[Any, ...]):
    __slots__ = ()

    def __iter__(self) -> Any:
        asked()
        return iter([EndlessTuple((1,))])

    def __call__(self, *args: Any) -> float:
        return 3.0


KINDS: dict[str, Callable[[], Any]] = {
    "MagicMock": lambda: CountedMagicMock(return_value=3.0),
    "Mock": lambda: CountedMock(return_value=3.0),
    "mock of a function": lambda: CountedMagicMock(spec=own_wrapper(), return_value=3.0),
    "answers": Answering,
    "keeps": Keeping,
    "remote": Remote,
    "everything": Everything,
    "metaclass": OfAnsweringClass,
    "own __dict__": OwnDict,
    "lies: list": lambda: lying(list),
    "lies: tuple": lambda: lying(tuple),
    "lies: dict": lambda: lying(dict),
    "lies: function": lambda: lying(types.FunctionType),
    "lies: type": lambda: lying(type),
    "lies: module": lambda: lying(types.ModuleType),
    "cyclic": Cyclic,
    "wraps": Wrapping,
    "wraps itself": own_wrapper,
    "lazy module": lambda: LazyModule("lazy"),
    "list": lambda: EndlessList([1]),
    "dict": lambda: EndlessDict(k=1),
    "tuple": lambda: EndlessTuple((1,)),
}


def in_global(thing: Any, w: Value) -> Any:
    globals()["THING"] = thing
    return lambda x: w * x * (THING() + 1.0)


def in_global_read(thing: Any, w: Value) -> Any:
    globals()["THING"] = thing
    return lambda x: w * x if getattr(THING, "rate", None) is not None else w + x


def in_cell(thing: Any, w: Value) -> Any:
    return lambda x: w * x + thing(x)


def in_cell_read(thing: Any, w: Value) -> Any:
    return lambda x: w * x if hasattr(thing, "rate") else w + x


def in_argument(thing: Any, w: Value) -> Any:
    return lambda x, m: w * x * m()


def in_argument_read(thing: Any, w: Value) -> Any:
    return lambda x, m: w * x if hasattr(m, "rate") else w + x


def in_attribute(thing: Any, w: Value) -> Any:
    settings = SimpleNamespace(rate=thing)
    return lambda x: w * x * settings.rate()


def in_attribute_read(thing: Any, w: Value) -> Any:
    settings = SimpleNamespace(rate=thing)
    return lambda x: w * x if hasattr(settings.rate, "deep") else w + x


def in_default(thing: Any, w: Value) -> Any:
    def function(x: float, m: Any = thing) -> Any:
        return w * x * m()

    return function


def in_items(thing: Any, w: Value) -> Any:
    held = {"k": [(thing,)]}
    return lambda x: w * x * held["k"][0][0]()


def in_class(thing: Any, w: Value) -> Any:
    holder = type("Holder", (), {"thing": thing, "other": property(lambda self: 2.0)})()
    return lambda x: w * x * holder.other if hasattr(holder, "thing") else w


PLACES = [in_global, in_global_read, in_cell, in_cell_read, in_argument, in_argument_read, in_attribute,
          in_attribute_read, in_default, in_items, in_class]  # fmt: skip


def outcomes(kind: str, place: Callable[..., Any], compile: Callable[..., Any]) -> list[Any]:
    """What some calls give: results and gradients, or the exception."""
    ASKED[0] = 0
    w, thing = Value(2.0), KINDS[kind]()
    function = compile(place(thing, w))
    given = (thing,) if "argument" in place.__name__ else ()
    results: list[Any] = []
    for call in range(6):
        w.grad = 0.0
        try:
            result = function(0.5 + call, *given)
            result.backward()
            results.append((result.data, w.grad))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    return results


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "place"),
    # Whether an argument is a tuple is asked where arguments are read, which is another matter.
    [
        (kind, place)
        for kind in KINDS
        for place in PLACES
        if not (kind.endswith("tuple") and "argument" in place.__name__)
    ],
)
def test_objects_are_not_asked_what_the_function_does_not_ask(kind: str, place: Callable[..., Any]) -> None:
    assert outcomes(kind, place, wengert.compile) == outcomes(kind, place, lambda function: function)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torch_classes_are_not_asked() -> None:
    torch = pytest.importorskip("torch")
    w = Value(2.0)
    settings = SimpleNamespace(rate=torch.classes)
    f = wengert.compile(lambda x: w * x if settings.rate is not None else w)
    assert [f(0.5 + call).data for call in range(4)] == [1.0, 3.0, 5.0, 7.0]


def test_a_function_that_reaches_too_much_runs_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk through what a function can reach ends at a stated number of objects, and the reason says what to do."""
    monkeypatch.setattr(policy, "REACHED", 1_000)
    w, rows = Value(2.0), [[float(n)] for n in range(2_000)]
    f = wengert.compile(lambda x: w * x * rows[1][0])
    with pytest.warns(UserWarning, match=r"can reach more than 1,000 objects .*pass what it needs as an argument"):
        assert f(3.0).data == 6.0
    numbers = [float(n) for n in range(2_000)]
    g = wengert.compile(lambda x: w * x * numbers[1])  # numbers are not counted
    assert [g(3.0).data, g(4.0).data] == [6.0, 8.0]
    assert "uncompiled" not in g.report()
