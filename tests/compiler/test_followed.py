"""What is written in Python is followed, wherever its file lies: whatever a function reads, and is changed between its
calls, is seen. Each case runs beside itself uncompiled, on things of its own; the change comes after the fifth call, at
which no comparison would find it.

The lines of "What is seen, and what is not" in `docs/lifting.md` are shown here.
"""

from __future__ import annotations

import argparse
import builtins
import configparser
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import io
import itertools
import math
import operator
import os
import random
import re
import subprocess
import sys
import threading
import time
import types
import weakref
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, difference, lifted, specializations, warned
from tests.hidden import Hidden
from wengert import Value, nn, optim

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed, and when, is decided in Python

X = [0.3, -0.8, 1.7]
W = Value(0.7)
HOWS = ("single", "map", "mean")
BACKENDS = ("auto", "numpy", "native", "xla")


def in_every_way(names: Iterable[str]) -> pytest.MarkDecorator:
    """A test of some cases, in single calls and batches, with each back end. JAX takes its time to compile: it has the
    first case in single calls, the second in `map`, and so on.
    """
    ways = [
        pytest.param(name, how, backend, id=f"{name}-{how}-{backend}", marks=[pytest.mark.jax] * (backend == "xla"))
        for k, name in enumerate(names)
        for how in HOWS
        for backend in BACKENDS
        if backend != "xla" or how == HOWS[k % 3]
    ]
    return pytest.mark.parametrize(("name", "how", "backend"), ways)


# ------------------------------------------------------------------------------------- beside itself


def parameters(thing: Any) -> list[Value]:
    """The Values in a thing, and the one that all functions use."""

    def found(x: Any) -> list[Value]:
        if isinstance(x, (list, tuple)):
            return [value for item in x for value in found(item)]
        return x.parameters() if isinstance(x, nn.Module) else [x] if isinstance(x, Value) else []

    return [W, *found(thing)]


def plainly(function: Any, how: str) -> Any:
    """What a batch gives, as a loop does it; of one example the function."""
    if how == "single":
        return function(X[0])
    results = [function(x) for x in X]
    return [y.data for y in results] if how == "map" else wengert.mean(results)


def by_program(compiled: Any, how: str) -> Any:
    return compiled(X[0]) if how == "single" else getattr(compiled, how)(X)


class Beside:
    """A function as it stands and compiled, each with a thing of its own that it reads.

    Args:
        make: makes the thing.
        of: the function, of a thing and an argument; where it is None the thing is the function.
    """

    def __init__(self, make: Callable[[], Any], of: Any, how: str, backend: str) -> None:
        if backend == "native":
            pytest.importorskip("llvmlite")
        self.how, self.made = how, make
        self.things = make(), make()
        functions = [thing if of is None else reading(of, thing) for thing in self.things]
        self.function = functions[0]
        self.compiled = wengert.compile(functions[1], backend=backend)

    def call(self, count: int = 1) -> Any:
        """Call both: they give the same, and the same gradients; the last result."""
        for _ in range(count):
            got = self.seen(by_program(self.compiled, self.how), self.things[1])  # first: it fills what both share
            want = self.seen(plainly(self.function, self.how), self.things[0])
            assert difference(got, want) < CLOSE
        return want

    def seen(self, result: Any, thing: Any) -> Any:
        """A result in numbers, with the derivatives with respect to what is in a thing."""
        if self.how == "map":
            return list(result)
        values = parameters(thing)
        result.backward()
        numbers = [result.data, *[value.grad for value in values]]
        for value in values:
            value.grad = 0.0
        return numbers

    def change(self, change: Callable[[Any], Any], *things: Any) -> None:
        for thing in things or self.things:
            change(thing)


def reading(of: Any, thing: Any) -> Callable[[float], Any]:
    return lambda x: of(thing, x)


def followed(beside: Beside, change: Callable[[Any], Any], *things: Any) -> None:
    """It is compiled, gives after a change what the function gives, and still is compiled; nobody is warned."""
    before = beside.call(5)
    lifted(beside.compiled)
    beside.change(change, *things)
    assert beside.call(2) != before
    beside.call(2)
    lifted(beside.compiled)
    assert "dropped" not in beside.compiled.report()


def sets(**named: Any) -> Callable[[Any], None]:
    """Sets attributes."""

    def change(thing: Any) -> None:
        for name, x in named.items():
            setattr(thing, name, x)

    return change


def puts(key: Any, x: Any) -> Callable[[Any], None]:
    return lambda thing: operator.setitem(thing, key, x)


# ------------------------------------------------------------------------------------- numbers that are read


class Config:
    """Holds what changes."""

    lr: float = 1.5
    shared: float = 1.5

    def __init__(self) -> None:
        self.steps = 0

    def rate(self) -> float:
        return 1.5 / (1 + self.steps)


class OtherConfig(Config):
    def rate(self) -> float:
        return 4.0


class Slotted:
    __slots__ = ("lr",)

    def __init__(self) -> None:
        self.lr = 1.5


@dataclass
class Record:
    lr: float = 1.5

    @property
    def doubled(self) -> float:
        return 2.0 * self.lr


class Kind(enum.Enum):
    FAST = 1.5
    SLOW = 3.0


class Answering:
    """Has attributes that it is asked for."""

    def __init__(self) -> None:
        self.known = {"lr": 1.5}

    def __getattr__(self, name: str) -> float:
        return self.known[name]


class Descriptor:
    def __get__(self, thing: Any, kind: Any = None) -> Any:
        return thing.inner * 2.0


class Described:
    lr = Descriptor()

    def __init__(self) -> None:
        self.inner = 1.5


def parsed() -> configparser.ConfigParser:
    made = configparser.ConfigParser()
    made.read_string("[train]\nlr = 1.5")
    return made


def environment() -> str:
    os.environ["WENGERT_TEST_RATE"] = "1.5"
    return "WENGERT_TEST_RATE"


def referred() -> tuple[Config, Any]:
    made = Config()
    return made, weakref.ref(made)


def enclosed() -> Any:
    """A function that reads a variable around it, and one that sets that."""
    lr = 1.5

    def read() -> float:
        return lr

    def write(x: float) -> None:
        nonlocal lr
        lr = x

    return read, write


def imported(lr: float = 1.5) -> None:
    """Put another module in the place of the one that is imported."""
    made: Any = types.ModuleType("wengert_test_settings")
    made.lr = lr
    sys.modules["wengert_test_settings"] = made


def by_import() -> Any:
    import wengert_test_settings  # type: ignore[import-not-found]

    return wengert_test_settings.lr


def lr_of(thing: Any) -> Any:
    return thing.lr


LR, FIRST, RATE = operator.attrgetter("lr"), operator.itemgetter(0), operator.methodcaller("rate")
READ: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "argparse": (lambda: argparse.Namespace(lr=1.5), lr_of, sets(lr=3.0)),
    "SimpleNamespace": (lambda: types.SimpleNamespace(lr=1.5), lr_of, sets(lr=3.0)),
    "optimizer.lr": (lambda: optim.SGD([Value(1.0)], lr=1.5), lr_of, sets(lr=3.0)),
    "optimizer with a schedule": (
        lambda: optim.SGD([Value(1.0)], lr=lambda step: 1.5 / (1 + step)),
        lr_of,
        lambda t: t.step(),
    ),
    "scheduler": (Config, lambda t: t.rate(), sets(steps=4)),
    "scheduler, another method": (Config, lambda t: t.rate(), sets(rate=lambda: 3.0)),
    "attribute by its class": (Config, lr_of, sets(lr=3.0)),
    "slot": (Slotted, lr_of, sets(lr=3.0)),
    "dataclass": (Record, lr_of, sets(lr=3.0)),
    "property": (Record, lambda t: t.doubled, sets(lr=3.0)),
    "descriptor": (Described, lr_of, sets(inner=3.0)),
    "__getattr__": (Answering, lr_of, lambda t: t.known.update(lr=3.0)),
    "getattr": (Config, lambda t: getattr(t, "l" + "r"), sets(lr=3.0)),
    "vars": (Record, lambda t: vars(t)["lr"], sets(lr=3.0)),
    "class": (lambda: type("Own", (), {"lr": 1.5})(), lr_of, lambda t: setattr(type(t), "lr", 3.0)),
    "__class__": (Config, lambda t: t.rate(), sets(__class__=OtherConfig)),
    "attrgetter": (Config, lambda t: LR(t), sets(lr=3.0)),
    "itemgetter": (lambda: [1.5], lambda t: FIRST(t), puts(0, 3.0)),
    "methodcaller": (Config, lambda t: RATE(t), sets(steps=4)),
    "nested dicts": (
        lambda: {"train": {"lr": [1.5]}},
        lambda t: t["train"]["lr"][0],
        lambda t: t["train"]["lr"].__setitem__(0, 3.0),
    ),
    "dict in a nested dict": (
        lambda: {"train": {"lr": 1.5}},
        lambda t: t["train"]["lr"],
        lambda t: t.update(train={"lr": 3.0}),
    ),
    "dict.get": (lambda: {"lr": 1.5}, lambda t: t.get("momentum", t["lr"]), puts("momentum", 0.5)),
    "deque": (lambda: deque([1.0, 1.5]), lambda t: t[-1], lambda t: t.append(3.0)),
    "UserDict": (lambda: UserDict(lr=1.5), lambda t: t["lr"], puts("lr", 3.0)),
    "UserList": (lambda: UserList([1.5]), lambda t: t[0], puts(0, 3.0)),
    "ChainMap": (lambda: ChainMap({}, {"lr": 1.5}), lambda t: t["lr"], puts("lr", 3.0)),
    "ConfigParser": (parsed, lambda t: t.getfloat("train", "lr"), lambda t: t.set("train", "lr", "3.0")),
    "os.environ": (environment, lambda t: float(os.environ[t]), lambda t: operator.setitem(os.environ, t, "3.0")),
    "array.array": (lambda: array("d", [1.5]), lambda t: t[0], puts(0, 3.0)),
    "array": (lambda: np.array([1.5, 2.0]), lambda t: t[0] * t.sum(), puts(0, 3.0)),
    "many floats": (lambda: [1.5] * 20, sum, puts(7, 3.0)),
    "many floats of an array": (lambda: np.ones((4, 5)), lambda t: (t * t).sum(), lambda t: t.fill(2.0)),
    "integers of an array": (lambda: np.arange(5), lambda t: float(t[3]), puts(3, 9)),
    "variable around": (enclosed, lambda t: t[0](), lambda t: t[1](3.0)),
    "integer": (lambda: types.SimpleNamespace(lr=2), lr_of, sets(lr=3)),
    "bool": (lambda: types.SimpleNamespace(lr=True), lambda t: 1.5 if t.lr else 3.0, sets(lr=False)),
    "text": (lambda: types.SimpleNamespace(lr="a"), lambda t: 1.5 if t.lr == "a" else 3.0, sets(lr="b")),
    "None": (lambda: types.SimpleNamespace(lr=None), lambda t: 1.5 if t.lr is None else t.lr, sets(lr=3.0)),
    "imported module": (imported, lambda t: by_import(), lambda t: imported(3.0)),
    "tuple": (lambda: types.SimpleNamespace(lr=(1.5, 2)), lambda t: t.lr[0], sets(lr=(3.0, 2))),
    "keys of a dict": (lambda: {"a": 1.5}, len, puts("b", 1.5)),
    "set": (lambda: {1, 2}, lambda t: float(sum(t)), lambda t: t.add(3)),
    "threading.Event": (threading.Event, lambda t: 1.5 if t.is_set() else 3.0, lambda t: t.set()),
}


@pytest.fixture(autouse=True)
def environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_TEST_RATE", "")
    monkeypatch.setitem(sys.modules, "wengert_test_settings", types.ModuleType("wengert_test_settings"))


@pytest.mark.sampled(12)  # each case in one way or another
@in_every_way(READ)
def test_numbers_that_are_read(name: str, how: str, backend: str) -> None:
    make, read, change = READ[name]
    followed(Beside(make, lambda thing, x: W * x * read(thing), how, backend), change)


# ------------------------------------------------------------------------------------- Values and models


def network() -> nn.MLP:
    return nn.MLP(2, [3, 2, 1], rng=random.Random(1))


def by_network(net: Any, x: Any) -> Any:
    return net([x, 0.5]) * W


def polynomial(weights: Any, x: Any) -> Any:
    result = W * 0.0
    for weight in weights:
        result = result * x + weight
    return result


def layer(nin: int, nout: int, **named: Any) -> nn.Layer:
    return nn.Layer(nin, nout, rng=random.Random(5), **named)


def tied(net: Any) -> None:
    net.layers[0].neurons[1].w = net.layers[0].neurons[0].w


def values() -> list[Value]:
    return [Value(0.5), Value(-1.0), Value(2.0)]


CHANGED: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "layers": (network, by_network, lambda t: setattr(t, "layers", [layer(2, 1, activation="tanh")])),
    "a layer": (network, by_network, lambda t: operator.setitem(t.layers, 1, layer(3, 2))),
    "a layer is removed": (
        network,
        by_network,
        lambda t: t.layers.__delitem__(slice(1, 3)) or t.layers.append(layer(3, 1)),
    ),
    "a layer is added": (network, by_network, lambda t: t.layers.insert(1, layer(3, 3))),
    "a neuron": (network, by_network, lambda t: operator.setitem(t.layers[0].neurons, 0, nn.Neuron(2, rng=3))),
    "neurons are reordered": (network, by_network, lambda t: t.layers[1].neurons.reverse()),
    "a neuron is removed": (
        lambda: nn.MLP(2, [3], rng=random.Random(1)),
        lambda t, x: sum(t([x, 0.5])),
        lambda t: t.layers[0].neurons.pop(),
    ),
    "a list of weights": (
        network,
        by_network,
        lambda t: setattr(t.layers[0].neurons[1], "w", [Value(3.0), Value(-1.0)]),
    ),
    "a weight": (network, by_network, lambda t: operator.setitem(t.layers[0].neurons[0].w, 0, Value(3.0))),
    "weights are reordered": (network, by_network, lambda t: t.layers[0].neurons[0].w.reverse()),
    "weights are tied": (network, by_network, tied),
    "a bias": (network, by_network, lambda t: setattr(t.layers[0].neurons[0], "b", Value(3.0))),
    "the head": (network, by_network, lambda t: operator.setitem(t.layers, -1, layer(2, 1))),
    "data": (network, by_network, lambda t: setattr(t.layers[0].neurons[0].b, "data", 3.0)),
    "a Value in a list": (values, polynomial, puts(0, Value(9.0))),
    "Values are reversed": (values, polynomial, lambda t: t.reverse()),
    "a Value is appended": (values, polynomial, lambda t: t.append(Value(0.1))),
    "a Value in a dict": (
        lambda: {"a": Value(0.5)},
        lambda t, x: W * x * t["a"],
        puts("a", Value(9.0)),
    ),
    "a Value of an object": (
        lambda: types.SimpleNamespace(a=Value(0.5)),
        lambda t, x: W * x * t.a,
        sets(a=Value(9.0)),
    ),
}


@pytest.mark.sampled(18)  # each case in one way or another
@in_every_way(CHANGED)
def test_values_and_models(name: str, how: str, backend: str) -> None:
    make, of, change = CHANGED[name]
    followed(Beside(make, of, how, backend), change)


# ------------------------------------------------------------------------------------- functions, and other people's


def scaling() -> Any:
    def scaled(x: Any, k: float = 1.5, *, shift: float = 0.5) -> Any:
        return W * x * k + shift

    return scaled


def other_scaled(x: Any, k: float = 1.5, *, shift: float = 0.5) -> Any:
    return W * x * x * k - shift


def by_helper(helper: Any, x: Any) -> Any:
    return helper(x) * 2.0


REDEFINED: dict[str, Callable[[Any], Any]] = {
    "__defaults__": sets(__defaults__=(3.0,)),
    "__kwdefaults__": sets(__kwdefaults__={"shift": -2.0}),
    "__kwdefaults__ in place": lambda t: t.__kwdefaults__.update(shift=-2.0),
}


@pytest.mark.sampled(5)
@in_every_way([*REDEFINED, "__code__"])
@pytest.mark.parametrize("of", [None, by_helper], ids=["own", "helper"])
def test_functions_that_are_defined_anew(name: str, of: Any, how: str, backend: str) -> None:
    def make() -> Any:
        if name != "__code__":
            return scaling()
        return types.FunctionType(first_scaled.__code__, globals(), "scaled", (1.5,))

    followed(Beside(make, of, how, backend), REDEFINED.get(name, sets(__code__=second_scaled.__code__)))


def first_scaled(x: Any, k: float = 1.5) -> Any:
    return W * x * k


def second_scaled(x: Any, k: float = 1.5) -> Any:
    return W * x * x - k


HERE = sys.modules[__name__]
NEURON: Any = nn.Neuron(1, rng=random.Random(1))
PATCHED: dict[str, tuple[Callable[[Any], Any], Any, str, Any]] = {
    "math.sin": (lambda x: W * math.sin(x), math, "sin", lambda x: 2.0 * x),
    "math.sin is math.cos": (lambda x: W * math.sin(x), math, "sin", math.cos),
    "math.pi": (lambda x: W * x * math.pi, math, "pi", 3.0),
    "Value.tanh": (lambda x: (W * x).tanh(), Value, "tanh", lambda self: self * 2.0),
    "Value.__mul__": (lambda x: Value(0.5) * W, Value, "__mul__", lambda self, other: self + other),
    "wengert.sin": (lambda x: wengert.sin(W * x), wengert, "sin", lambda x: x * 2.0),
    "a global": (lambda x: other_scaled(x), HERE, "other_scaled", lambda x: W * x * 9.0),
    "a builtin is shadowed": (lambda x: W * max(x, 0.1), HERE, "max", lambda x, y: x + y + 2.0),
    "a builtin": (lambda x: W * divmod(x, 2.0)[1], builtins, "divmod", lambda x, y: (x, x + y)),
    "a method": (lambda x: W * x * Config().rate(), Config, "rate", lambda self: 9.0),
    "an attribute of a class": (lambda x: W * x * Config.shared, Config, "shared", 9.0),
    "nn.Neuron.__call__": (lambda x: NEURON([x]), nn.Neuron, "__call__", lambda self, x: self.b + x[0] + 2.0),
}


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(PATCHED)
def test_names_that_are_patched(name: str, how: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, owner, key, new = PATCHED[name]
    beside = Beside(lambda: function, None, how, backend)
    followed(beside, lambda patch: patch.setattr(owner, key, new, raising=False), monkeypatch)
    monkeypatch.undo()
    beside.call(2)
    lifted(beside.compiled)


# ------------------------------------------------------------------------------------- wherever the file lies

LIBRARY = """
import functools
from wengert import Value

RATE, TABLE, LOG, SHIFT = 1.5, {"lr": [1.5]}, [], Value(0.5)


class Layer:
    shared = 1.5

    def __init__(self):
        self.k, self.weights = 1.5, [Value(0.5), Value(-1.0)]

    def __call__(self, x):
        return self.weights[0] * x * self.k + self.weights[1]


LAYER = Layer()


def scaled(x, k=1.5):
    return x * k


def logged(x):
    LOG.append(1)
    return x


@functools.lru_cache
def table():
    return [1.5, 2.5]
"""
PLACES = {
    "installed": ("lib/site-packages", "helping"),
    "editable": ("src", "helping"),
    "code": ("scripts", "code"),
    "sunau": ("scripts", "sunau"),
    "trace": ("lib/site-packages", "trace"),
}


def of_library(t: Any, x: Any) -> Any:
    return W * t.scaled(x) * t.RATE * t.TABLE["lr"][0] * t.Layer.shared + t.SHIFT * t.LAYER(x)


CHANGES_OF_LIBRARY: list[Callable[[Any], Any]] = [
    sets(RATE=3.0),
    lambda t: t.TABLE.update(lr=[3.0]),
    lambda t: setattr(t.LAYER, "k", 3.0),
    lambda t: t.LAYER.weights.reverse(),
    lambda t: setattr(t.Layer, "shared", 3.0),
    sets(SHIFT=Value(3.0)),
    lambda t: setattr(t.scaled, "__defaults__", (3.0,)),
    sets(scaled=lambda x: x + 3.0),
]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Writes a library to a place; what that gives imports it, another copy each time."""

    def written(place: str) -> Callable[[], Any]:
        folder, name = tmp_path / PLACES[place][0], PLACES[place][1]
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(LIBRARY, encoding="utf-8")
        monkeypatch.syspath_prepend(folder)

        def imported() -> Any:
            monkeypatch.setitem(sys.modules, name, None)  # restored when the test ends
            del sys.modules[name]
            return importlib.import_module(name)

        return imported

    return written


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(PLACES)
def test_libraries_are_followed(library: Any, name: str, how: str, backend: str) -> None:
    beside = Beside(library(name), of_library, how, backend)
    for change in CHANGES_OF_LIBRARY:
        followed(beside, change)


# ------------------------------------------------------------------------------------- caches and effects


class Lazy:
    """Computes its table when it is first asked for."""

    def __init__(self) -> None:
        self.rows = [1.5, 2.5]

    @functools.cached_property
    def table(self) -> list[float]:
        return [row * 2.0 for row in self.rows]


class ByHand:
    """The same with None for what is not there yet."""

    def __init__(self) -> None:
        self.table: Any = None

    def rows(self) -> Any:
        if self.table is None:
            self.table = [1.5, 2.5]
        return self.table


def lru() -> Any:
    return functools.lru_cache(lambda n: [1.5 * n, 2.5])


def dispatched() -> Any:
    @functools.singledispatch
    def rate(x: Any) -> float:
        return 1.5

    rate.register(str, lambda x: 2.5)
    return rate


def patterned() -> Any:
    re.purge()
    return "1.5 and 2.5"


def lazy_module() -> str:
    sys.modules.pop("colorsys", None)
    return "colorsys"


def with_a_lazy_import(_: Any, x: Any) -> Any:
    import colorsys

    return W * x * colorsys.ONE_THIRD


def with_numpy(_: Any, x: Any) -> Any:
    import numpy as xp

    return W * x * float(xp.linalg.norm([3.0, 4.0]))


def with_jacobian(_: Any, x: Any) -> Any:
    rows = wengert.jacobian(lambda p: [p[0] * p[1], p[1] ** 2])([x, 3.0])
    return W * (rows[0][0] + rows[1][1])


def without_jacobian() -> None:
    vars(wengert).pop("jacobian", None)


CACHES: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "lru_cache": (lru, lambda t, x: W * x * t(2)[0]),
    "cached_property": (Lazy, lambda t, x: W * x * t.table[1]),
    "None until it is asked for": (ByHand, lambda t, x: W * x * t.rows()[1]),
    "dict of what was computed": (dict, lambda t, x: W * x * t.setdefault("rate", 1.5)),
    "re": (patterned, lambda t, x: W * x * float(re.findall(r"\d\.\d", t)[1])),
    "singledispatch": (dispatched, lambda t, x: W * x * t("word")),
    "import": (lazy_module, with_a_lazy_import),
    "import of NumPy": (lambda: None, with_numpy),
    "wengert.jacobian": (without_jacobian, with_jacobian),
}


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(CACHES)
def test_caches_are_filled_before_a_recording_is_made(name: str, how: str, backend: str) -> None:
    beside = Beside(*CACHES[name], how, backend)
    beside.call(9)
    lifted(beside.compiled)
    (entry,) = beside.compiled._server.entries.values()
    assert entry.changes < 4
    assert specializations(beside.compiled) == [1]


IMPORTING = """
import sys, warnings
warnings.simplefilter("error")
import wengert
w = wengert.Value(2.0)

def by_helper(x):
    def length(row):
        import colorsys
        import numpy as np
        return float(np.linalg.norm(np.array(row))) * colorsys.ONE_THIRD
    return w * x * length([3.0, 4.0])

def by_jacobian(x):
    return w * wengert.jacobian(lambda p: [x * p[0]])([3.0])[0][0]

assert "colorsys" not in sys.modules and "jacobian" not in vars(wengert)
for function in by_helper, by_jacobian:
    f = wengert.compile(function, backend="numpy")
    for x in (0.5, 1.0, 2.0):  # the first imports; the second is recorded; the third is the program's
        assert abs(f(x).data - function(x).data) < 1e-12
        print(len(f._server.last.specializations), f._server.last.changes)
"""


def test_imports_are_no_effect_once_the_module_is_there() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["0 1", "0 1", "1 1"] * 2


class Counting:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked, self.log = 0, [0.0]

    def rate(self) -> float:
        self.asked += 1
        return 1.5


def appended(log: list[float], x: Any) -> Any:
    log.append(1.5)
    return W * x * log[0]


def counted(asked: dict[str, int], x: Any) -> Any:
    asked["n"] = asked.get("n", 0) + 1
    return W * x


def by_class(counting: Any, x: Any) -> Any:
    type(counting).lr = 1.5 + type(counting).lr
    return W * x


def noting() -> Any:
    def noted(x: Any) -> Any:
        made.count += 1
        return W * x

    made: Any = noted
    made.count = 0
    return made


EFFECTS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any], Any], str]] = {
    "append": (lambda: [1.5], appended, len, "it changes "),
    "count": (dict, counted, dict, "it changes "),
    "attribute": (Counting, lambda t, x: W * x * t.rate(), lambda t: t.asked, "it changes "),
    "method of a list": (
        Counting,
        lambda t, x: t.log.append(t.log[-1] + 1.0) or W * x,
        lambda t: len(t.log),
        "it changes ",
    ),
    "class": (lambda: type("Own", (), {"lr": 1.5})(), by_class, lambda t: t.lr, "it changes Own"),
    "deque": (deque, lambda t, x: t.appendleft(1.5) or W * x, len, "it changes "),
    "attribute of a function": (noting, lambda t, x: t(x), lambda t: t.count, "it changes "),
    "set": (set, lambda t, x: t.add(len(t)) or W * x, len, "it changes "),
}


def with_effects(beside: Beside, state: Callable[[Any], Any], says: str) -> None:
    """It is done at each call, by the function itself; one warning says so, after four watched runs that did it."""
    assert warned(lambda: beside.call(3)) == []
    (said,) = warned(beside.call)
    assert f" runs uncompiled: {says}" in said
    beside.call(5)
    plain, compiled = map(state, beside.things)
    assert plain == compiled
    assert plain != state(beside.made())


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(EFFECTS)
def test_effects_leave_a_function_uncompiled(name: str, how: str, backend: str) -> None:
    make, of, state, says = EFFECTS[name]
    with_effects(Beside(make, of, how, backend), state, says)


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(PLACES)
def test_effects_of_libraries_are_seen(library: Any, name: str, how: str, backend: str) -> None:
    beside = Beside(library(name), lambda t, x: W * t.logged(x), how, backend)
    with_effects(beside, lambda t: len(t.LOG), "it changes thing.LOG")


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(PLACES)
def test_caches_of_libraries_are_filled(library: Any, name: str, how: str, backend: str) -> None:
    beside = Beside(library(name), lambda t, x: W * x * t.table()[1], how, backend)
    beside.call(9)
    lifted(beside.compiled)


# ------------------------------------------------------------------------------------- taken as it is

TAKEN: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "bytes": (b"\2", lambda t: float(t[0])),
    "range": (range(3), lambda t: float(sum(t))),
    "slice": (slice(1, 3), lambda t: [1.0, 2.0, 3.0][t][0]),
    "date": (date(2001, 2, 3), lambda t: float(t.day)),
    "duration": (timedelta(seconds=1.5), lambda t: t.total_seconds()),
    "decimal": (decimal.Decimal("1.5"), float),
    "fraction": (fractions.Fraction(3, 2), float),
    "pattern": (re.compile("[0-9]+"), lambda t: float(len(t.findall("1 and 2")))),
    "match": (re.match("([0-9]+)", "15"), lambda t: float(t.group(1))),
    "function of C": (math.sqrt, lambda t: t(2.25)),
    "method of C": (str.upper, lambda t: float(len(t("word")))),
    "function of NumPy": (np.mean, lambda t: float(t([1.0, 2.0]))),
    "ufunc": (np.exp, lambda t: float(t(0.5))),
    "scalar": (np.int64(3), float),
    "dtype": (np.dtype("f8"), lambda t: float(t.itemsize)),
    "enum": (Kind.FAST, lambda t: 1.5 if t is Kind.FAST else t.value),
}


@pytest.mark.sampled(6)
@in_every_way(TAKEN)
def test_what_never_changes_is_taken_as_it_is(name: str, how: str, backend: str) -> None:
    thing, read = TAKEN[name]
    beside = Beside(lambda: thing, lambda t, x: W * x * read(t), how, backend)
    beside.call(6)
    lifted(beside.compiled)
    assert specializations(beside.compiled) == [1]


# ------------------------------------------------------------------------------------- what is written in C


OwnArray: Any = type("OwnArray", (np.ndarray,), {})


class Local(threading.local):
    lr = 1.5


REFUSED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any], str]] = {
    "weakref": (referred, lambda t: t[1]().lr, lambda t: setattr(t[0], "lr", 3.0), "a weak reference: let it read the"),
    "threading.local": (Local, lr_of, sets(lr=3.0), "Local, which is written in C"),
    "bytearray": (
        lambda: bytearray(b"\2"),
        lambda t: float(t[0]),
        puts(0, 9),
        "a builtins.bytearray, which is written in C",
    ),
    "memoryview": (
        lambda: memoryview(bytearray(b"\2")),
        lambda t: float(t[0]),
        puts(0, 9),
        "a builtins.memoryview, which",
    ),
    "array's subclass": (
        lambda: np.array([1.5]).view(OwnArray),
        lambda t: t[0],
        puts(0, 3.0),
        "OwnArray, which is more than its numbers",
    ),
    "recarray": (
        lambda: np.rec.array([(1.5, 2)], names="lr,n"),
        lambda t: float(t.lr[0]),
        lambda t: operator.setitem(t.lr, 0, 3.0),
        "recarray, which is more than its numbers",
    ),
    "ctypes": (
        lambda: ctypes.c_double(1.5),
        lambda t: t.value,
        sets(value=3.0),
        "a ctypes.c_double, which is written in C",
    ),
    "cell": (lambda: types.CellType(1.5), lambda t: t.cell_contents, sets(cell_contents=3.0), "a builtins.cell, which"),
    "count": (lambda: itertools.count(2), lambda t: float(next(t)), next, "an iterator, which can be read once"),
    "iterator": (lambda: iter(range(99)), lambda t: float(next(t)), next, "an iterator, which can be read once"),
    "generator": (
        lambda: (k for k in range(99)),
        lambda t: float(next(t)),
        next,
        "an iterator, which can be read once",
    ),
    "context variable": (lambda: ContextVar("lr", default=1.5), lambda t: t.get(), lambda t: t.set(3.0), "it calls "),
    "StringIO": (
        lambda: io.StringIO("word"),
        lambda t: len(t.getvalue()),
        lambda t: t.write("longer"),
        "an iterator, which can be read once",
    ),
    "decimal context": (
        decimal.Context,
        lambda t: float(t.prec),
        sets(prec=3),
        "decimal.Context, which is written in C",
    ),
    "tensor": (
        lambda: importlib.import_module("torch").tensor([1.5]),
        lambda t: float(t[0]),
        puts(0, 3.0),
        "a torch.Tensor, which is written in C",
    ),
}


@pytest.mark.sampled(6)  # each case in one way or another
@in_every_way(REFUSED)
def test_types_of_c_leave_a_function_uncompiled(name: str, how: str, backend: str) -> None:
    make, read, change, says = REFUSED[name]
    if name == "tensor":
        pytest.importorskip("torch")
    beside = Beside(make, lambda thing, x: W * x * read(thing), how, backend)
    seen = []

    def calls() -> None:
        seen.append(beside.call(5))
        beside.change(change)
        seen.append(beside.call(2))

    (said,) = warned(calls)
    assert " runs uncompiled: " in said
    assert says in said
    assert seen[0] != seen[1]


# ------------------------------------------------------------------------------------- what is not seen


def effect_of_later_calls(thing: tuple[Hidden, list[float]], x: Any) -> Any:
    if thing[0].value > 2.0:
        thing[1].append(1.0)
    return W * x


def hour(_: Any, x: Any) -> Any:
    return W * x * (1.0 + datetime.datetime.fromtimestamp(0).hour)


def zone(name: str) -> Callable[[Any], None]:
    def change(_: Any) -> None:
        os.environ["TZ"] = name
        time.tzset()

    return change


@pytest.fixture
def _time_zone(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


UNSEEN: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "the time zone": (lambda: None, hour, zone("UTC-3")),
    "handlers of errors": (lambda: Hidden(1.5), lambda t, x: W * x * t.value, sets(value=3.0)),
}


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("_time_zone")
@in_every_way(UNSEEN)
def test_what_is_not_seen_is_found_at_the_next_comparison(name: str, how: str, backend: str) -> None:
    make, of, change = UNSEEN[name]
    beside = Beside(make, of, how, backend)
    before = beside.call(5)
    beside.change(change)
    for _ in range(2):
        assert difference(beside.seen(by_program(beside.compiled, how), beside.things[1]), before) < CLOSE
    (said,) = warned(beside.call)  # the eighth
    assert said.startswith("a recording of ")
    beside.call(5)
    lifted(beside.compiled)


def test_effects_of_later_calls_are_seen_from_the_next_comparison_on() -> None:
    hidden, log, done = Hidden(1.0), list[float](), list[int]()
    loss = wengert.compile(reading(effect_of_later_calls, (hidden, log)))

    def calls() -> None:
        for number in range(1, 17):
            hidden.value = 3.0 if number > 5 else 1.0
            loss(0.5)
            done.append(len(log))

    (said,) = warned(calls)
    assert " runs uncompiled: it changes thing[1]" in said
    assert done == [*[0] * 7, *range(1, 10)]  # of the sixth and the seventh nothing is known


def test_the_page_lists_the_modules_that_are_not_followed() -> None:
    from wengert.compiler.code.known import MODULES, PACKAGES

    page = Path(__file__).parents[2].joinpath("docs", "lifting.md").read_text(encoding="utf-8")
    assert ", ".join([f"`{name}`" for name in sorted(MODULES | PACKAGES)]) in " ".join(page.split())
