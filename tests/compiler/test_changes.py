"""What changes about a class, and about objects of libraries, between two calls: the function's results, each time."""

from __future__ import annotations

import abc
import array
import collections
import contextlib
import copy
import decimal
import enum
import functools
import inspect
import numbers
import os
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed, and when, is decided in Python

CASES: dict[str, Callable[[Any], Any]] = {}
CHANGED = (2, 5)  # the calls before which something changes: once it is recorded, and once it is compiled


def case(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A case takes a Value, and returns a function and how to change what it reads, given 0 or 1."""
    CASES[make.__name__.strip("_")] = make
    return make


class Refused(NamedTuple):
    """A case that the compiler refuses by name, as what changes is state inside C."""

    case: Any
    why: str


# ------------------------------------------------------------------------------------- special methods of a class


def special(name: str, methods: tuple[Any, Any], use: Callable[[Any, Any, Any], Any], base: Any = object) -> None:
    """A special method comes to be, then is another one; and the same in the other direction."""

    def comes(w: Any) -> Any:
        kind = type("M", (base,), {})
        m = kind()
        return (lambda x: use(w, m, x)), lambda k: setattr(kind, name, methods[k])

    def goes(w: Any) -> Any:
        kind = type("M", (base,), {name: methods[0]})
        m = kind()
        return (lambda x: use(w, m, x)), lambda k: delattr(kind, name) if not k else setattr(kind, name, methods[1])

    def inherited(w: Any) -> Any:
        parent = type("P", (base,), {})
        kind = type("M", (parent,), {})
        m = kind()
        return (lambda x: use(w, m, x)), lambda k: setattr((parent, kind)[k], name, methods[k])

    def of_argument(w: Any) -> Any:
        kind = type("M", (base,), {})
        m = kind()
        return (lambda x, m: use(w, m, x)), lambda k: setattr(kind, name, methods[k]), (m,)

    # Which tuples among the arguments are read as such is another matter.
    for make in (comes, goes, inherited, of_argument)[: 3 if base is tuple else 4]:
        CASES[" ".join([name, make.__name__, base.__name__, "again" * (f"{name} {make.__name__} object" in CASES)])] = (
            make
        )


def attempt(call: Callable[[], Any], default: Any) -> Any:
    try:
        return call()
    except (TypeError, AttributeError, KeyError, IndexError):
        return default


special("__bool__", (lambda self: False, lambda self: True), lambda w, m, x: w * x if m else w + x)
special("__len__", (lambda self: 0, lambda self: 2), lambda w, m, x: w * x if m else w + x)
special("__call__", (lambda self: 2.0, lambda self: 3.0), lambda w, m, x: w * x * attempt(lambda: m(), 5.0))
special("__eq__", (lambda self, o: True, lambda self, o: False), lambda w, m, x: w * x if m == 1 else w + x)
special(
    "__lt__",
    (lambda self, o: True, lambda self, o: False),
    lambda w, m, x: w * attempt(lambda: x if m < 1 else 3, x + 5.0),
)
special(
    "__contains__",
    (lambda self, o: True, lambda self, o: False),
    lambda w, m, x: w * attempt(lambda: x if 1 in m else 3, x + 5.0),
)
special("__getitem__", (lambda self, n: 2.0, lambda self, n: 3.0), lambda w, m, x: w * x * attempt(lambda: m[0], 5.0))
special(
    "__iter__",
    (lambda self: iter([1.0]), lambda self: iter([1.0, 2.0])),
    lambda w, m, x: w * x * attempt(lambda: sum(m), 5.0),
)
special("__float__", (lambda self: 2.0, lambda self: 3.0), lambda w, m, x: w * x * attempt(lambda: float(m), 5.0))
special("__int__", (lambda self: 2, lambda self: 3), lambda w, m, x: w * x * attempt(lambda: int(m), 5))
special("__index__", (lambda self: 0, lambda self: 1), lambda w, m, x: w * x * attempt(lambda: [2.0, 3.0][m], 5.0))
special("__add__", (lambda self, o: o + 2.0, lambda self, o: o + 3.0), lambda w, m, x: w * attempt(lambda: m + x, x))
special("__radd__", (lambda self, o: o + 2.0, lambda self, o: o + 3.0), lambda w, m, x: w * attempt(lambda: 1.0 + m, x))
special("__neg__", (lambda self: 2.0, lambda self: 3.0), lambda w, m, x: w * x * attempt(lambda: -m, 5.0))
special("__hash__", (lambda self: 7, lambda self: 8), lambda w, m, x: w * x if hash(m) == 7 else w + x)
special("__str__", (lambda self: "a", lambda self: "b"), lambda w, m, x: w * x if str(m) == "a" else w + x)
special("__repr__", (lambda self: "a", lambda self: "b"), lambda w, m, x: w * x if repr(m) == "a" else w + x)
special("__format__", (lambda self, s: "a", lambda self, s: "b"), lambda w, m, x: w * x if f"{m}" == "a" else w + x)
special("__getattr__", (lambda self, n: 2.0, lambda self, n: 3.0), lambda w, m, x: w * x * getattr(m, "rate", 5.0))
special("__getattribute__", (lambda self, n: 2.0, lambda self, n: 3.0), lambda w, m, x: w * x * getattr(m, "rate", 5.0))
special(
    "__getattribute__", (lambda self, n: 2.0, lambda self, n: 3.0), lambda w, m, x: w * x * attempt(lambda: m.rate, 5.0)
)
special("__enter__", (lambda self: 2.0, lambda self: 3.0), lambda w, m, x: w * x * entered(m),
        type("B", (), {"__exit__": lambda self, *e: None}))  # fmt: skip
special("__iter__", (lambda self: iter([1.0]), lambda self: iter([3.0])), lambda w, m, x: w * x * sum([2.0, *m]), list)
special("__len__", (lambda self: 3, lambda self: 4), lambda w, m, x: w * x * (2.0 + len(m)), list)
special(
    "__missing__",
    (lambda self, k: 2.0, lambda self, k: 3.0),
    lambda w, m, x: w * x * attempt(lambda: m["k"], 5.0),
    dict,
)
special("__eq__", (lambda self, o: True, lambda self, o: False), lambda w, m, x: w * x if m == (1,) else w + x, tuple)


def entered(m: Any) -> Any:
    try:
        with m as found:
            return found
    except (TypeError, AttributeError):
        return 5.0


# ------------------------------------------------------------------------------------- what else a class is


@case
def class_attribute(w: Any) -> Any:
    class M:
        rate = 2.0

    m = M()
    return (lambda x: w * x * m.rate), lambda k: setattr(M, "rate", 3.0 + k)


@case
def class_attribute_comes_to_be(w: Any) -> Any:
    class M:
        pass

    m = M()
    return (lambda x: w * x * getattr(m, "rate", 1.0)), lambda k: setattr(M, "rate", 3.0 + k)


@case
def class_attribute_becomes_a_property(w: Any) -> Any:
    class M:
        rate: Any = 2.0

    m = M()
    return (lambda x: w * x * m.rate), lambda k: setattr(M, "rate", property(lambda self: 5.0 + k))


class Layout:
    """The bases of a class can change to those of the same layout."""


def three_classes() -> Any:
    class A(Layout):
        def of(self) -> float:
            return 2.0

    class B(Layout):
        def of(self) -> float:
            return 3.0

    class C(Layout):
        def of(self) -> float:
            return 5.0

    return A, B, C


@case
def bases_with_super(w: Any) -> Any:
    a, b, c = three_classes()

    class M(a):  # type: ignore[misc,valid-type]
        def of(self) -> Any:
            return super().of() * 2.0

    m = M()
    return (lambda x: w * x * m.of()), lambda k: setattr(M, "__bases__", ((b,), (c,))[k])


@case
def bases(w: Any) -> Any:
    a, b, c = three_classes()
    kind = type("M", (a,), {})
    m = kind()
    return (lambda x: w * x * m.of()), lambda k: setattr(kind, "__bases__", ((b,), (c,))[k])


@case
def bases_of_a_base(w: Any) -> Any:
    a, b, c = three_classes()
    parent = type("P", (a,), {})

    class M(parent):  # type: ignore[misc,valid-type]
        def of(self) -> Any:
            return super().of() + 1.0

    m = M()
    return (lambda x: w * x * m.of()), lambda k: setattr(parent, "__bases__", ((b,), (c,))[k])


@case
def bases_and_isinstance(w: Any) -> Any:
    a, b, _ = three_classes()
    kind = type("M", (a,), {})
    m = kind()
    return (lambda x: w * x if isinstance(m, b) else w + x), lambda k: setattr(kind, "__bases__", ((b,), (a,))[k])


@case
def bases_and_issubclass(w: Any) -> Any:
    a, b, _ = three_classes()
    kind = type("M", (a,), {})
    return (lambda x: w * x if issubclass(kind, b) else w + x), lambda k: setattr(kind, "__bases__", ((b,), (a,))[k])


@case
def bases_of_a_class_that_is_called(w: Any) -> Any:
    a, b, c = three_classes()
    kind = type("M", (a,), {})
    return (lambda x: w * x * kind().of()), lambda k: setattr(kind, "__bases__", ((b,), (c,))[k])


def registered(use: Callable[[Any, Any], bool]) -> Callable[[Any], Any]:
    def make(w: Any) -> Any:
        class Shape(abc.ABC):  # noqa: B024
            pass

        class Other(abc.ABC):  # noqa: B024
            pass

        class M:
            pass

        m = M()
        return (lambda x: w * x if use(m, Shape) else w + x), lambda k: (Other, Shape)[k].register(M)

    return make


CASES["ABC.register isinstance"] = registered(isinstance)
CASES["ABC.register issubclass"] = registered(lambda m, kind: issubclass(type(m), kind))


def of_kind(m: Any, kind: Any) -> bool:
    match m:
        case kind():
            return True
    return False


@case
def abc_register_match(w: Any) -> Any:
    class Shape(abc.ABC):  # noqa: B024
        pass

    class M:
        pass

    m = M()

    def f(x: Any) -> Any:
        match m:
            case Shape():
                return w * x
        return w + x

    return f, lambda k: Shape.register(M) if k else None


@case
def abc_register_of_numbers(w: Any) -> Any:
    class M:
        pass

    m = M()
    return (lambda x: w * x if isinstance(m, numbers.Real) else w + x), lambda k: numbers.Real.register(M)


@case
def abc_register_of_argument(w: Any) -> Any:
    class Shape(abc.ABC):  # noqa: B024
        pass

    class M:
        pass

    return (lambda x, m: w * x if isinstance(m, Shape) else w + x), lambda k: Shape.register(M), (M(),)


@case
def abc_subclasshook(w: Any) -> Any:
    class M:
        pass

    m = M()
    return (
        lambda x: w * x if isinstance(m, collections.abc.Sized) else w + x,
        lambda k: setattr(M, "__len__", lambda self: 3) if not k else delattr(M, "__len__"),
    )


@case
def singledispatch_register(w: Any) -> Any:
    @functools.singledispatch
    def of(m: Any) -> float:
        return 2.0

    class M:
        pass

    m = M()
    return (lambda x: w * x * of(m)), lambda k: of.register(M, lambda m: 3.0 + k)


def names(attribute: str, after: tuple[Any, Any], use: Callable[[Any, Any], Any]) -> None:
    """An attribute of the class itself, of which an object is asked, or the class."""

    def of_object(w: Any) -> Any:
        class M:
            """Doc."""

        m = M()
        return (lambda x: w * x if use(type(m), m) else w + x), lambda k: setattr(M, attribute, after[k])

    def of_argument(w: Any) -> Any:
        class M:
            """Doc."""

        m = M()
        return (lambda x, m: w * x if use(type(m), m) else w + x), lambda k: setattr(M, attribute, after[k]), (m,)

    def of_global(w: Any) -> Any:
        class M:
            """Doc."""

        return (lambda x: w * x if use(M, M()) else w + x), lambda k: setattr(M, attribute, after[k])

    def of_list(w: Any) -> Any:
        kind = type("M", (list,), {"__doc__": "Doc."})
        m = kind([1.0])
        return (lambda x: w * x if use(type(m), m) else w + x), lambda k: setattr(kind, attribute, after[k])

    for make in (of_object, of_argument, of_global, of_list):
        CASES[f"{attribute} {make.__name__} {use.__name__}"] = make


def asks_name(kind: Any, m: Any) -> Any:
    return kind.__name__ == "M"


def asks_name_of_class(kind: Any, m: Any) -> Any:
    return m.__class__.__name__ == "M"


def asks_name_computed(kind: Any, m: Any) -> Any:
    return getattr(kind, "__na" + "me__") == "M"


def asks_qualname(kind: Any, m: Any) -> Any:
    return kind.__qualname__.endswith("M")


def asks_module(kind: Any, m: Any) -> Any:
    return kind.__module__ == __name__


def asks_module_of_object(kind: Any, m: Any) -> Any:
    return m.__module__ == __name__


def asks_doc(kind: Any, m: Any) -> Any:
    return kind.__doc__ == "Doc."


def asks_doc_of_object(kind: Any, m: Any) -> Any:
    return m.__doc__ == "Doc."


names("__name__", ("N", "M"), asks_name)
names("__name__", ("N", "M"), asks_name_of_class)
names("__name__", ("N", "M"), asks_name_computed)
names("__qualname__", ("N", "M"), asks_qualname)
names("__module__", ("elsewhere", __name__), asks_module)
names("__module__", ("elsewhere", __name__), asks_module_of_object)
names("__doc__", ("Other.", "Doc."), asks_doc)
names("__doc__", ("Other.", "Doc."), asks_doc_of_object)
names("rate", (1.0, 2.0), lambda kind, m: hasattr(kind, "rate"))


@case
def class_of_an_object(w: Any) -> Any:
    class M:
        def of(self) -> float:
            return 2.0

    class N:
        def of(self) -> float:
            return 3.0

    m = M()
    return (lambda x: w * x * m.of()), lambda k: setattr(m, "__class__", (N, M)[k])


@case
def metaclass_attribute(w: Any) -> Any:
    class Meta(type):
        rate = 2.0

    class M(metaclass=Meta):
        pass

    return (lambda x: w * x * M.rate), lambda k: setattr(Meta, "rate", 3.0 + k)


@case
def metaclass_special_method(w: Any) -> Any:
    class Meta(type):
        pass

    class M(metaclass=Meta):
        pass

    return (
        lambda x: w * x * attempt(lambda: len(M), 5.0),  # type: ignore[arg-type]
        lambda k: setattr(Meta, "__len__", lambda cls: 2 + k),
    )


@case
def metaclass_call(w: Any) -> Any:
    class Meta(type):
        pass

    class M(metaclass=Meta):
        rate = 2.0

    class N:
        rate = 3.0

    return (
        lambda x: w * x * M().rate,
        lambda k: setattr(Meta, "__call__", (lambda cls: N()) if not k else (lambda cls: type.__call__(cls))),
    )


@case
def slots(w: Any) -> Any:
    class M:
        __slots__ = ("items", "rate")

    m: Any = M()
    m.rate, m.items = 2.0, [1.0]

    def change(k: int) -> None:
        m.rate, m.items = 3.0 + k, [5.0 + k]

    return (lambda x: w * x * m.rate + m.items[0]), change


@case
def slot_goes(w: Any) -> Any:
    class M:
        __slots__ = ("rate",)

    m: Any = M()
    m.rate = 2.0
    return (
        lambda x: w * x * getattr(m, "rate", 5.0),
        lambda k: delattr(m, "rate") if not k else setattr(m, "rate", 3.0),
    )


@case
def init(w: Any) -> Any:
    class M:
        def __init__(self) -> None:
            self.rate = 2.0

    def other(self: Any) -> None:
        self.rate = 3.0

    return (lambda x: w * x * M().rate), lambda k: setattr(M, "__init__", other)


@case
def init_comes_to_be(w: Any) -> Any:
    class M:
        rate = 2.0

    def other(self: Any) -> None:
        self.rate = 3.0

    return (lambda x: w * x * M().rate), lambda k: setattr(M, "__init__", other)


@case
def new_comes_to_be(w: Any) -> Any:
    class M:
        rate = 2.0

    class N:
        rate = 3.0

    return (lambda x: w * x * M().rate), lambda k: setattr(M, "__new__", lambda cls: N())


@case
def setattr_comes_to_be(w: Any) -> Any:
    class M:
        def __init__(self) -> None:
            self.rate = 2.0

    def other(self: Any, n: str, x: Any) -> None:
        object.__setattr__(self, n, x + 1.0)

    return (lambda x: w * x * M().rate), lambda k: setattr(M, "__setattr__", other)


@case
def match_args(w: Any) -> Any:
    class M:
        __match_args__ = ("a",)
        a, b = 2.0, 3.0

    m = M()

    def f(x: Any) -> Any:
        match m:
            case M(found):
                return w * x * found
        return w

    return f, lambda k: setattr(M, "__match_args__", (("b",), ("a",))[k])


@case
def annotations_of_a_class(w: Any) -> Any:
    class M:
        a: float
        b: float

    def change(k: int) -> None:
        M.__annotations__[f"c{k}"] = "float"

    return (lambda x: w * x * len(M.__annotations__)), change


@case
def enum_value(w: Any) -> Any:
    class Mode(enum.Enum):
        FAST = 2.0
        SLOW = 3.0

    return (lambda x: w * x * Mode.FAST.value), lambda k: setattr(Mode.FAST, "_value_", 5.0 + k)


@case
def class_decorated_method(w: Any) -> Any:
    class M:
        @staticmethod
        def of() -> float:
            return 2.0

    return (lambda x: w * x * M.of()), lambda k: setattr(M, "of", staticmethod(lambda: 3.0 + k))


@case
def descriptor_class_changes(w: Any) -> Any:
    class Rate:
        def __get__(self, x: Any, kind: Any = None) -> float:
            return 2.0

    class M:
        rate = Rate()

    m = M()
    return (lambda x: w * x * m.rate), lambda k: setattr(Rate, "__get__", lambda self, x, kind=None: 3.0 + k)


@case
def descriptor_that_keeps_in_the_dict(w: Any) -> Any:
    class Rate:
        def __set_name__(self, kind: Any, name: str) -> None:
            self.name = name

        def __get__(self, x: Any, kind: Any = None) -> Any:
            return x.__dict__[self.name]

        def __set__(self, x: Any, to: Any) -> None:
            x.__dict__[self.name] = to

    class M:
        rate = Rate()

    m = M()
    m.rate = 2.0
    return (lambda x: w * x * m.rate), lambda k: setattr(m, "rate", 3.0 + k)


# ------------------------------------------------------------------------------------- functions and modules


def of_function(attribute: str, after: tuple[Any, Any], use: Callable[[Any], Any]) -> None:
    def make(w: Any) -> Any:
        def g(a: float = 2.0, *, b: float = 3.0) -> float:
            """Doc."""
            return a * b

        return (lambda x: w * x * g() if use(g) else w + x), lambda k: setattr(g, attribute, after[k])

    CASES[f"{attribute} of a function"] = make


of_function("__name__", ("h", "g"), lambda g: g.__name__ == "g")
of_function("__qualname__", ("h", "g"), lambda g: g.__qualname__.endswith("g"))
of_function("__doc__", ("Other.", "Doc."), lambda g: g.__doc__ == "Doc.")
of_function("__module__", ("elsewhere", __name__), lambda g: g.__module__ == __name__)
of_function("__defaults__", ((5.0,), (7.0,)), lambda g: True)
of_function("__kwdefaults__", ({"b": 5.0}, {"b": 7.0}), lambda g: True)
of_function("__annotations__", ({"a": int}, {}), lambda g: len(g.__annotations__) > 2)
of_function("rate", (5.0, 0.0), lambda g: getattr(g, "rate", 0.0))


@case
def default_by_signature(w: Any) -> Any:
    def g(a: float = 2.0) -> float:
        return a

    return (
        lambda x: w * x * inspect.signature(g).parameters["a"].default,
        lambda k: setattr(g, "__defaults__", (3.0 + k,)),
    )


@case
def keyword_default_by_signature(w: Any) -> Any:
    def g(*, a: float = 2.0) -> float:
        return a

    return (
        lambda x: w * x * inspect.signature(g).parameters["a"].default,
        lambda k: setattr(g, "__kwdefaults__", {"a": 3.0 + k}),
    )


@case
def defaults_read(w: Any) -> Any:
    def g(a: float = 2.0) -> float:
        return a

    of: Any = g
    return (lambda x: w * x * of.__defaults__[0]), lambda k: setattr(g, "__defaults__", (3.0 + k,))


@case
def keyword_defaults_in_place(w: Any) -> Any:
    def g(*, a: float = 2.0) -> float:
        return a

    of: Any = g
    return (lambda x: w * x * of()), lambda k: of.__kwdefaults__.update(a=3.0 + k)


@case
def keywords_of_a_partial(w: Any) -> Any:
    p = functools.partial(lambda x, rate: w * x * rate, rate=2.0)
    return p, lambda k: p.keywords.update(rate=3.0 + k)


@case
def keywords_of_a_partial_that_is_read(w: Any) -> Any:
    p = functools.partial(lambda x, rate: x * rate, rate=2.0)
    return (lambda x: w * p(x)), lambda k: p.keywords.update(rate=3.0 + k)


@case
def attribute_of_a_partial(w: Any) -> Any:
    p = functools.partial(lambda x: x)
    p.rate = 2.0  # type: ignore[attr-defined]
    return (lambda x: w * x * p.rate), lambda k: setattr(p, "rate", 3.0 + k)  # type: ignore[attr-defined]


@case
def default_of_a_method(w: Any) -> Any:
    class M:
        def of(self, x: Any, rate: float = 2.0, *, more: float = 1.0) -> Any:
            return w * x * rate + more

    def change(k: int) -> None:
        M.of.__defaults__, M.of.__kwdefaults__ = (3.0 + k,), {"more": 5.0 + k}

    return M().of, change


@case
def default_of_an_object_that_is_called(w: Any) -> Any:
    class M:
        def __call__(self, x: Any, rate: float = 2.0) -> Any:
            return w * x * rate

    return M(), lambda k: setattr(M.__call__, "__defaults__", (3.0 + k,))


@case
def default_of_itself(w: Any) -> Any:
    def f(x: Any, rate: float = 2.0) -> Any:
        return w * x * rate

    return f, lambda k: setattr(f, "__defaults__", (3.0 + k,))


@case
def default_of_what_a_partial_calls(w: Any) -> Any:
    def f(x: Any, rate: float = 2.0, more: float = 1.0) -> Any:
        return w * x * rate + more

    return functools.partial(f, more=3.0), lambda k: setattr(f, "__defaults__", (3.0 + k, 5.0))


@case
def module_doc(w: Any) -> Any:
    module = types.ModuleType("settings", "Doc.")
    return (lambda x: w * x if module.__doc__ == "Doc." else w + x), lambda k: setattr(module, "__doc__", "Other.")


@case
def module_name(w: Any) -> Any:
    module = types.ModuleType("settings", "Doc.")
    return (lambda x: w * x if module.__name__ == "settings" else w + x), lambda k: setattr(module, "__name__", "o")


@case
def module_getattr_comes_to_be(w: Any) -> Any:
    module = types.ModuleType("settings")
    return (lambda x: w * x * getattr(module, "rate", 2.0)), lambda k: setattr(module, "__getattr__", lambda n: 3.0 + k)


# ------------------------------------------------------------------------------------- objects of libraries


@case
def poly1d_item(w: Any) -> Any:
    p = np.poly1d([1.0, 2.0])
    return (lambda x: w * p(1.5) + x), lambda k: p.__setitem__(0, 5.0 + k)


@case
def poly1d_coefficients(w: Any) -> Any:
    p = np.poly1d([1.0, 2.0])
    return (lambda x: w * p.c[0] + x), lambda k: p.coeffs.__setitem__(0, 5.0 + k)


@case
def polynomial(w: Any) -> Any:
    p = np.polynomial.Polynomial([1.0, 2.0])
    return (lambda x: w * p(1.5) + x), lambda k: p.coef.__setitem__(0, 5.0 + k)


@case
def default_factory(w: Any) -> Any:
    rates: Any = collections.defaultdict(lambda: 2.0, {"a": 1.0})
    return (
        lambda x: w * x * copy.copy(rates)["b"] if x > 1e9 else w * x * rates.default_factory(),
        lambda k: setattr(rates, "default_factory", lambda: 3.0 + k),
    )


@case
def default_factory_of_a_subclass(w: Any) -> Any:
    class Rates(collections.defaultdict[Any, Any]):
        pass

    rates: Any = Rates(lambda: 2.0, {"a": 1.0})
    return (lambda x: w * x * rates.default_factory()), lambda k: setattr(rates, "default_factory", lambda: 3.0 + k)


@case
def ordered_dict(w: Any) -> Any:
    rates = collections.OrderedDict(a=2.0, b=3.0)
    return (lambda x: w * x * next(iter(rates.values()))), lambda k: rates.move_to_end(("a", "b")[k])


@case
def counter(w: Any) -> Any:
    counts = collections.Counter("aab")
    return (lambda x: w * x * counts["a"] + counts["z"]), lambda k: counts.update("az")


@case
def deque(w: Any) -> Any:
    rates = collections.deque([2.0, 3.0], maxlen=2)
    return (lambda x: w * x * rates[0]), lambda k: rates.append(5.0 + k)


@case
def chain_map(w: Any) -> Any:
    rates = collections.ChainMap({"a": 2.0}, {"b": 3.0})
    return (lambda x: w * x * rates["b"]), lambda k: rates.maps.insert(0, {"b": 5.0 + k})


@case
def user_dict(w: Any) -> Any:
    rates = collections.UserDict(a=2.0)
    return (lambda x: w * x * rates["a"]), lambda k: rates.update(a=3.0 + k)


@case
def user_list(w: Any) -> Any:
    rates = collections.UserList([2.0])
    return (lambda x: w * x * rates[0]), lambda k: rates.insert(0, 3.0 + k)


@case
def array_of_python(w: Any) -> Any:
    rates = array.array("d", [2.0, 3.0])
    return (lambda x: w * x * rates[0]), lambda k: rates.__setitem__(0, 5.0 + k)


@case
def array_in_place(w: Any) -> Any:
    rates = np.array([2.0, 3.0])
    return (lambda x: w * x * rates[0]), lambda k: rates.__setitem__(0, 5.0 + k)


@case
def array_of_integers_in_place(w: Any) -> Any:
    rates = np.array([2, 3])
    return (lambda x: w * x * rates[0]), lambda k: rates.__setitem__(0, 5 + k)


@case
def array_of_objects_in_place(w: Any) -> Any:
    rates = np.array([2.0, "a"], object)
    return (lambda x: w * x * rates[0]), lambda k: rates.__setitem__(0, 5.0 + k)


@case
def bytes_in_place(w: Any) -> Any:
    rates = bytearray(b"ab")
    return (lambda x: w * x * rates[0]), lambda k: rates.__setitem__(0, 5 + k)


@case
def view_of_memory(w: Any) -> Any:
    held = bytearray(b"ab")
    rates = memoryview(held)
    return (lambda x: w * x * rates[0]), lambda k: held.__setitem__(0, 5 + k)


@case
def error_arguments(w: Any) -> Any:
    error = ValueError(2.0)
    return (lambda x: w * x * error.args[0]), lambda k: setattr(error, "args", (3.0 + k,))


@case
def dataclass_default(w: Any) -> Any:
    @dataclass
    class M:
        rate: float = 2.0

    m = M()
    return (lambda x: w * x * m.rate + M.rate), lambda k: setattr(M, "rate", 3.0 + k)


@case
def fraction_in_place(w: Any) -> Any:
    half = Fraction(1, 2)
    return (lambda x: w * x * half.numerator), lambda k: setattr(half, "_numerator", 3 + k)


@case
def decimal_precision(w: Any) -> Any:
    one, three = decimal.Decimal(1), decimal.Decimal(3)
    return (lambda x: w * x * float(one / three)), lambda k: setattr(decimal.getcontext(), "prec", 2 + k)


@case
def decimal_rounding(w: Any) -> Any:
    decimal.getcontext().prec = 2
    return (
        lambda x: w * x * float(decimal.Decimal("2.5") / decimal.Decimal("1.17")),
        lambda k: setattr(decimal.getcontext(), "rounding", (decimal.ROUND_UP, decimal.ROUND_DOWN)[k]),
    )


@case
def environment(w: Any) -> Any:
    os.environ["WENGERT_RATE_OF_A_TEST"] = "2.0"
    return (
        lambda x: w * x * float(os.environ["WENGERT_RATE_OF_A_TEST"]),
        lambda k: os.environ.update(WENGERT_RATE_OF_A_TEST=str(3.0 + k)),
    )


@case
def warning_filters(w: Any) -> Any:
    return (lambda x: w * x * len(warnings.filters)), lambda k: warnings.simplefilter("ignore", ImportWarning)


@case
def path_of_modules(w: Any) -> Any:
    return (lambda x: w * x * len(sys.path)), lambda k: sys.path.append("/nowhere")


@case
def arguments_of_the_process(w: Any) -> Any:
    return (lambda x: w * x * len(sys.argv)), lambda k: sys.argv.append("x")


# ------------------------------------------------------------------------------------- state inside C: refused by name


def refused(why: str) -> Callable[[Callable[[Any], Any]], None]:
    def keep(make: Callable[[Any], Any]) -> None:
        CASES[make.__name__] = Refused(make, why)  # type: ignore[assignment]

    return keep


@refused("getrecursionlimit")
def recursion_limit(w: Any) -> Any:
    return (lambda x: w * x * sys.getrecursionlimit()), lambda k: sys.setrecursionlimit(3000 + k)


@refused("geterr")
def error_settings(w: Any) -> Any:
    return (
        lambda x: w * x if np.geterr()["over"] == "ignore" else w + x,
        lambda k: np.seterr(over=("ignore", "warn")[k]),
    )


@refused("get_printoptions")
def print_options(w: Any) -> Any:
    return (
        lambda x: w * x * np.get_printoptions()["precision"],
        lambda k: np.set_printoptions(precision=3 + k),
    )


@refused("prints")
def printed_array(w: Any) -> Any:
    rates = np.array([1.0 / 3.0])
    return (lambda x: w * x * len(str(rates))), lambda k: np.set_printoptions(precision=2 + k)


@refused("prints")
def printed_array_by_name(w: Any) -> Any:
    rates = np.array([1.0 / 3.0])
    return (lambda x: w * x * len(np.array2string(rates))), lambda k: np.set_printoptions(precision=2 + k)


@refused("getbufsize")
def buffer_size(w: Any) -> Any:
    return (lambda x: w * x * np.getbufsize()), lambda k: np.setbufsize(16 * (100 + k))


@refused("getstate")
def state_of_random(w: Any) -> Any:
    return (lambda x: w * x * (random.getstate()[1][0] % 7)), lambda k: random.seed(k)


@refused("get_state")
def state_of_numpy_random(w: Any) -> Any:
    return (lambda x: w * x * (int(np.random.get_state()[1][0]) % 7)), lambda k: np.random.seed(k)


@case
def decimal_context(w: Any) -> Any:
    return (lambda x: w * x * decimal.getcontext().prec), lambda k: setattr(decimal.getcontext(), "prec", 2 + k)


@refused("getswitchinterval")
def switch_interval(w: Any) -> Any:
    return (lambda x: w * x * sys.getswitchinterval()), lambda k: sys.setswitchinterval(0.005 * (2 + k))


@refused("getcwd")
def working_directory(w: Any) -> Any:
    return (lambda x: w * x * len(os.getcwd())), lambda k: os.chdir(("/", "/tmp")[k])


# ------------------------------------------------------------------------------------- trying them


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """Put back what is not a case's own."""
    held = [*sys.argv], [*sys.path], sys.getrecursionlimit(), sys.getswitchinterval(), os.getcwd()
    errors, printing, size, state = np.geterr(), np.get_printoptions(), np.getbufsize(), random.getstate()
    of_numpy, environ = np.random.get_state(), dict(os.environ)
    try:
        with warnings.catch_warnings(), decimal.localcontext():
            yield
    finally:
        sys.argv[:], sys.path[:] = held[:2]
        sys.setrecursionlimit(held[2])
        sys.setswitchinterval(held[3])
        os.chdir(held[4])
        np.seterr(**errors)
        np.set_printoptions(**printing)
        np.setbufsize(size)
        random.setstate(state)
        np.random.set_state(of_numpy)
        for name in {*os.environ} - {*environ}:
            del os.environ[name]


def outcomes(make: Callable[[Any], Any], compile: Callable[..., Any]) -> list[Any]:
    """What calls give before and after changes: results and gradients, or the exception."""
    w, results = Value(2.0), []
    with surroundings():
        function, change, *given = make(w)
        called = compile(function)
        for call in range(12):
            if call in CHANGED:
                change(CHANGED.index(call))
            w.grad = 0.0
            try:
                result = called(0.5 + 0.25 * call, *(given[0] if given else ()))
                result.backward()
                results.append((result.data, w.grad))
            except Exception as error:
                results.append((type(error).__name__, str(error)))
    return results


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_what_changes_between_calls_is_seen(name: str) -> None:
    make = CASES[name]
    why = make.why if isinstance(make, Refused) else ""
    make = make.case if isinstance(make, Refused) else make
    said: list[str] = []

    def compile(function: Any) -> Any:
        compiled = wengert.compile(function)
        said.append(compiled)
        return compiled

    assert outcomes(make, compile) == outcomes(make, lambda function: function)
    report = said[0].report()  # type: ignore[attr-defined]
    assert ("runs uncompiled" in report and why in report) if why else "dropped" not in report
