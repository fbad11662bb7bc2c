"""What is read and changed in ways that no name in the code tells: methods of C, computed names, late ones."""

from __future__ import annotations

import cmath
import enum
import functools
import math
import operator
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import specializations
from wengert import Value, losses
from wengert.nn import MLP
from wengert.optim import SGD

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed, and when, is decided in Python

w = Value(1.0)


class Box:
    """Holds what it is given."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)


class Items(list):  # type: ignore[type-arg]
    """A list of a class of its own."""


class Names(dict):  # type: ignore[type-arg]
    """A dict of a class of its own."""


space: dict[str, Any] = {}
exec(
    "def late(x):\n    try:\n        return x * LATE\n    except NameError:\n        return x\n"
    "def settings(x):\n    return x * 2.0 if getattr(module, 'DEBUG', False) else x\n",
    space,
)


def late_cell() -> tuple[Any, Any]:
    def function(x: float) -> Any:
        try:
            return x * scale
        except NameError:
            return x

    def change() -> None:
        nonlocal scale
        scale = 4.0

    if not function:
        scale = 0.0
    return function, change


def late_global() -> tuple[Any, Any]:
    space.pop("LATE", None)
    return space["late"], lambda: space.update(LATE=4.0)


def late_attribute_of_a_module() -> tuple[Any, Any]:
    module = space["module"] = types.ModuleType("settings")
    return space["settings"], lambda: setattr(module, "DEBUG", True)


def method_of_an_array() -> tuple[Any, Any]:
    held = np.array([1, 2])
    get = held.__getitem__
    return lambda x: x * int(get(0)), lambda: held.__setitem__(0, 9)


def length_of_a_list() -> tuple[Any, Any]:
    held = [1, 2]
    length = held.__len__
    return lambda x: x * length(), lambda: held.append(3)


def method_in_a_list_of_ones_own() -> tuple[Any, Any]:
    held = {"lr": 2}
    items = Items([held.get])
    return lambda x: x * items[0]("lr"), lambda: held.update(lr=7)


def cleared_cache() -> tuple[Any, Any]:
    held = {"a": 2}

    @functools.lru_cache
    def load(key: str) -> int:
        return held[key]

    def change() -> None:
        held["a"] = 9
        load.cache_clear()
        load("a")

    return lambda x: x * load("a"), change


def objects_in_an_array() -> tuple[Any, Any]:
    box = Box(lr=2)
    held = np.array([box], dtype=object)
    return lambda x: x * held[0].lr, lambda: setattr(box, "lr", 8)


def value_of_an_enum_member() -> tuple[Any, Any]:
    held = Box(lr=2)
    mode = enum.Enum("mode", {"A": held})  # type: ignore[misc]
    return lambda x: x * mode.A.value.lr, lambda: setattr(held, "lr", 7)  # type: ignore[attr-defined]


def weak_values() -> tuple[Any, Any]:
    box = Box(lr=2)
    held = weakref.WeakValueDictionary(k=box)
    return lambda x: x * held["k"].lr, lambda: setattr(box, "lr", 5)


def computed_name_in_a_dict_of_ones_own() -> tuple[Any, Any]:
    box = Box(qq=2)
    held, name = Names(o=box), "q"
    return lambda x: x * getattr(held["o"], name + name), lambda: setattr(box, "qq", 5)


def computed_name_of_a_function() -> tuple[Any, Any]:
    def helper(x: float) -> float:
        return x

    name = "rate"
    return lambda x: helper(x) * getattr(helper, name, 1.0), lambda: setattr(helper, "rate", 6.0)


def computed_name_that_a_module_class_comes_to_define() -> tuple[Any, Any]:
    class Model(wengert.nn.Module):
        def __call__(self, x: float) -> Any:
            return x * getattr(self, "sc" + "ale", 1.0)

    model = Model()
    return lambda x: model(x), lambda: setattr(Model, "scale", 3.0)


def computed_name_of_a_class() -> tuple[Any, Any]:
    class Settings:
        pass

    for name, value in (("rate", 2), ("text", "ab"), ("rates", [1.5])):
        setattr(Settings, name, value)

    def function(x: float) -> Any:
        found = [getattr(Settings, start + end) for start, end in (("ra", "te"), ("te", "xt"), ("ra", "tes"))]
        return x * found[0] * len(found[1]) * found[2][0]

    def change() -> None:
        for name, value in (("rate", 3), ("text", "abc"), ("rates", [2.5])):
            setattr(Settings, name, value)

    return function, change


def computed_name_by_an_attrgetter() -> tuple[Any, Any]:
    class Settings:
        pass

    setattr(Settings, "rate", 2)  # noqa: B010
    return lambda x: x * operator.attrgetter("ra" + "te")(Settings), lambda: setattr(Settings, "rate", 7)


def record_of_an_array() -> tuple[Any, Any]:
    held = np.array([(2.0,)], dtype=[("a", "f8")])
    row = held[0]
    return lambda x: x * float(row["a"]), lambda: held["a"].__setitem__(0, 5.0)


def sign_of_a_zero() -> tuple[Any, Any]:
    held = {"z": complex(-4, 0.0)}
    return lambda x: x * cmath.sqrt(held["z"]).imag, lambda: held.update(z=complex(-4, -0.0))


def arguments_of_a_methodcaller() -> tuple[Any, Any]:
    held = [2.0, 3.0]
    call = operator.methodcaller("__getitem__", 0)
    return lambda x: x * call(held), lambda: held.__setitem__(0, 9.0)


CASES: list[Callable[[], tuple[Any, Any]]] = [
    late_cell, late_global, late_attribute_of_a_module, method_of_an_array, length_of_a_list,
    method_in_a_list_of_ones_own, cleared_cache, objects_in_an_array, value_of_an_enum_member, weak_values,
    computed_name_in_a_dict_of_ones_own, computed_name_of_a_function, computed_name_of_a_class,
    computed_name_by_an_attrgetter,
    computed_name_that_a_module_class_comes_to_define, record_of_an_array, sign_of_a_zero, arguments_of_a_methodcaller,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("how", ["single", "map"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_changes_is_seen(case: Any, how: str) -> None:
    function, change = case()
    compiled = wengert.compile(lambda x: w * function(x))

    def results() -> Any:
        return compiled.map([0.5, 2.0]).tolist() if how == "map" else compiled(2.0).data

    def wanted() -> Any:
        return [0.5 * function(1.0), 2.0 * function(1.0)] if how == "map" else 2.0 * function(1.0)

    for call in range(9):
        if call == 5:
            change()
        assert results() == pytest.approx(wanted(), rel=1e-14), call


def effects() -> dict[str, tuple[Any, list[Any]]]:
    """Functions that append, in ways that no name tells, and where to."""
    found: dict[str, tuple[Any, list[Any]]] = {}

    def add(name: str, function: Any, log: list[Any]) -> None:
        found[name] = function, log

    log: list[Any] = []
    push = log.append
    add("method of C", lambda x: (push(1.0), x * 2)[1], log)
    log2: list[Any] = []
    table = (log2.append,)
    add("in a tuple", lambda x: (table[0](1.0), x * 2)[1], log2)
    log3: list[Any] = []
    held = Items([log3.append])
    add("in a list of one's own", lambda x: (held[0](1.0), x * 2)[1], log3)
    box = Box(buffer=[])
    add("computed name", lambda x: (getattr(box, "buf" + "fer").append(1.0), x * 2)[1], box.buffer)
    box2, get = Box(buffer=[]), operator.attrgetter("buffer")
    add("attrgetter", lambda x: (get(box2).append(1.0), x * 2)[1], box2.buffer)
    return found


def imported(x: float) -> float:
    import tests.hidden as module

    module.LOG.append(x)  # type: ignore[attr-defined]
    return 2.0 * x


@pytest.mark.parametrize("name", [*effects(), "module that is imported inside"])
def test_effects_that_no_name_tells_are_done_as_often(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import tests.hidden

    monkeypatch.setattr(tests.hidden, "LOG", [], raising=False)
    function, log = {**effects(), "module that is imported inside": (imported, tests.hidden.LOG)}[name]  # type: ignore[attr-defined]
    compiled = wengert.compile(lambda x: w * function(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert compiled.map([0.5 * n for n in range(10)]).tolist() == [1.0 * n for n in range(10)]
    assert len(log) == 30


def test_a_missing_attribute_of_a_module_is_missing() -> None:
    module = types.ModuleType("settings")
    compiled = wengert.compile(lambda x: w * x if not hasattr(module, "DEBUG") else w)
    assert [compiled(2.0).data for _ in range(6)] == [2.0] * 6
    assert specializations(compiled) == [1]


def test_the_parameters_of_an_optimizer_are_read_without_its_count_of_steps() -> None:
    model = MLP(2, [3, 1], rng=1)
    optimizer = SGD(model, 0.1)
    compiled = wengert.compile(lambda: losses.l2(optimizer.parameters, 0.5))
    for _ in range(8):
        optimizer.zero_grad()
        penalty = compiled()
        assert penalty.data == pytest.approx(0.5 * sum(p.data**2 for p in model.parameters()), rel=1e-14)
        penalty.backward()
        optimizer.step()
    assert specializations(compiled) == [1]
    optimizer.parameters.append(Value(2.0))
    assert compiled().data == pytest.approx(0.5 * sum(p.data**2 for p in [*model.parameters(), 2.0 * w]), rel=1e-14)


OPTIONS = types.SimpleNamespace(scale=2.0, offset=1.0)


class Slotted:
    __slots__ = ("number",)


class Computed(Slotted):
    """Its slot is hidden by a property, as that of a constant of mpmath, which computes digits when it is asked."""

    __slots__ = ("asked",)
    limit = 1

    @property
    def number(self) -> float:  # type: ignore[override]
        self.asked += 1
        return 1.5


def test_a_property_that_hides_a_slot_is_not_read_by_looking() -> None:
    """Where the code reads all attributes of an object, those of every object are looked at."""
    of_settings = {"computed": Computed()}
    of_settings["computed"].asked = 0
    compiled = wengert.compile(lambda x: math.exp(x) * len(vars(OPTIONS)) * of_settings["computed"].limit)
    for _ in range(4):
        assert compiled(0.5) == pytest.approx(math.exp(0.5) * len(vars(OPTIONS)))
    assert of_settings["computed"].asked == 0


class Cell:
    __slots__ = ("width",)
    KINDS, scale = ("a", "b"), 2.0

    def area(self) -> float:
        return self.width * self.width * self.scale


def test_an_object_with_slots_alone_has_the_attributes_of_its_class() -> None:
    cell = Cell()
    cell.width = 3.0
    compiled = wengert.compile(lambda x: math.exp(x) * cell.scale * len(cell.KINDS) + x * cell.area())
    for x in (0.5, 0.6, 0.7):
        assert compiled(x) == pytest.approx(math.exp(x) * 4.0 + x * 18.0)
    Cell.scale = 3.0
    try:
        assert [compiled(x) for x in (0.5, 0.6)] == pytest.approx([math.exp(x) * 6.0 + x * 27.0 for x in (0.5, 0.6)])
    finally:
        Cell.scale = 2.0
    assert specializations(compiled) == [1]
