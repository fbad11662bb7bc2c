"""Settings in classes: dataclasses, attrs, pydantic, named tuples, enums, class attributes, properties."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
from collections import namedtuple
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses

XS = [0.1 * i - 0.4 for i in range(9)]
MANY = [0.03 * i - 1.0 for i in range(64)]


# ------------------------------------------------------------------------------------------------ dataclasses


@dataclass
class Optim:
    lr: float = 0.1
    power: int = 1


@dataclass
class Train:
    optim: Optim = field(default_factory=Optim)
    names: list[str] = field(default_factory=lambda: ["mse"])


@dataclass
class Config:
    train: Train = field(default_factory=Train)
    scale: float = 1.0


@scenario
def dataclass_is_assigned_to(compile):
    cfg, w = Optim(), Value(2.0)
    f = compile(lambda x: cfg.lr * (w * x) ** cfg.power)
    for k in range(22):
        if k == 5:
            cfg.lr = 0.5
        if k == 11:
            cfg.power = 2
        if k == 17:
            cfg = Optim(lr=1.0, power=3)
        yield f(0.5), w


@scenario
def dataclasses_three_deep(compile):
    cfg, w = Config(), Value(2.0)

    @compile
    def f(x, y):
        total = cfg.scale * w * x * cfg.train.optim.lr
        return total + sum(getattr(losses, name)(w * x, y) for name in cfg.train.names)

    for k in range(22):
        if k == 5:
            cfg.train.optim.lr = 1.0
        if k == 11:
            cfg.train.names.append("mae")
        if k == 17:
            cfg.train = Train(names=["huber"])
        yield f(XS[k % 9], 0.5), w


@dataclass(frozen=True)
class Frozen:
    lr: float = 0.1
    inner: Optim = field(default_factory=Optim)

    @property
    def rate(self):
        return self.lr * self.inner.lr


@scenario
def frozen_dataclass_is_replaced(compile):
    cfg, w = Frozen(), Value(2.0)
    f = compile(lambda x: w * x * cfg.lr)
    for k in range(20):
        if k in (5, 12):
            cfg = replace(cfg, lr=cfg.lr * 2.0)
        yield f.mean(MANY), w
        yield f(0.5), w


@scenario
def frozen_dataclass_with_something_mutable_inside(compile):
    cfg, w = Frozen(), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate)
    for k in range(20):
        if k == 5:
            cfg.inner.lr = 0.7
        if k == 12:
            object.__setattr__(cfg, "lr", 3.0)
        yield f(0.5), w


@dataclass(slots=True)
class Slotted:
    lr: float
    schedule: list[float]
    note: str | None = None


@scenario
def dataclass_with_slots(compile):
    cfg, w = Slotted(0.1, [1.0, 0.5]), Value(2.0)
    f = compile(lambda x: w * x * cfg.lr * cfg.schedule[-1] + (0.0 if cfg.note is None else len(cfg.note)))
    for k in range(22):
        if k == 5:
            cfg.lr = 0.3
        if k == 11:
            cfg.schedule.append(0.25)
        if k == 17:
            cfg.note = "abc"
        yield f(0.5), w


@dataclass
class Derived:
    steps: int
    warm: dataclasses.InitVar[float] = 0.5
    rate: float = field(init=False)

    def __post_init__(self, warm):
        self.rate = warm / self.steps


@scenario
def field_that_is_computed_after_init(compile):
    cfg, w = Derived(4), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate)
    for k in range(22):
        if k == 5:
            cfg.steps = 8  # which the rate does not follow
        if k == 11:
            cfg.__post_init__(1.0)
        if k == 17:
            cfg = Derived(2, warm=3.0)
        yield f(0.5), w


@scenario
def dataclass_is_taken_apart(compile):
    cfg, w = Optim(2.0, 3), Value(2.0)
    f = compile(lambda x: w * x * sum(dataclasses.astuple(cfg)) + len(dataclasses.fields(cfg)))
    for k in range(20):
        if k == 5:
            cfg.lr = 5.0
        if k == 12:
            cfg.power = 10
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ attrs, pydantic


def with_attrs():
    import attrs

    @attrs.define
    class Inner:
        lr: float = attrs.field(default=0.1, converter=float)

    @attrs.define
    class Outer:
        inner: Inner = attrs.field(factory=Inner)
        tags: list = attrs.field(factory=list)

    return attrs, Inner, Outer


@scenario(needs="attrs")
def attrs_class_with_slots(compile):
    _, inner, outer = with_attrs()
    cfg, w = outer(), Value(2.0)
    f = compile(lambda x: w * x * cfg.inner.lr + len(cfg.tags))
    for k in range(22):
        if k == 5:
            cfg.inner.lr = "0.5"  # converted when it is set
        if k == 11:
            cfg.inner = inner(lr=3)
        if k == 17:
            cfg.tags.append("new")
        yield f(0.5), w


@scenario(needs="attrs")
def attrs_class_is_evolved(compile):
    attrs, inner, _ = with_attrs()
    cfg, w = inner(), Value(2.0)
    f = compile(lambda x: w * x * cfg.lr)
    for k in range(20):
        if k in (5, 12):
            cfg = attrs.evolve(cfg, lr=cfg.lr + 1.0)
        yield f.map(XS)
        yield f.mean(MANY), w


@scenario(needs="attrs")
def frozen_attrs_class_without_slots(compile):
    import attrs

    @attrs.frozen(slots=False)
    class Point:
        scale: float
        shift: float = attrs.field(default=0.0, validator=attrs.validators.le(5.0))

        @property
        def total(self):
            return self.scale + self.shift

    cfg, w = Point(1.0), Value(2.0)
    f = compile(lambda x: w * x * cfg.total)
    for k in range(20):
        if k == 5:
            cfg = Point(1.0, 4.0)
        if k == 12:
            vars(cfg)["scale"] = 9.0
        yield f(0.5), w


def with_pydantic():
    pydantic = importlib.import_module("pydantic")
    inner = pydantic.create_model("Inner", lr=(float, 0.1), steps=(int, 2))
    return pydantic, inner, pydantic.create_model("Outer", inner=(inner, inner()), name=(str | None, None))


@scenario(needs="pydantic")
def pydantic_model_is_assigned_to(compile):
    _, inner, outer = with_pydantic()
    cfg, w = outer(), Value(2.0)
    f = compile(lambda x: w * x**cfg.inner.steps * cfg.inner.lr + (1.0 if cfg.name else 0.0))
    for k in range(22):
        if k == 5:
            cfg.inner.lr = 0.5
        if k == 11:
            cfg.inner = inner(lr=2.0, steps=3)
        if k == 17:
            cfg.name = "run"
        yield f(0.5), w


@scenario(needs="pydantic")
def pydantic_model_is_copied_with_an_update(compile):
    _, inner, _ = with_pydantic()
    cfg, w = inner(), Value(2.0)
    f = compile(lambda x: w * x * cfg.lr)
    for k in range(20):
        if k in (5, 12):
            cfg = cfg.model_copy(update={"lr": cfg.lr + 1.0})
        yield f.mean(MANY), w


@scenario(needs="pydantic")
def pydantic_model_that_validates_assignments(compile):
    pydantic, _, _ = with_pydantic()

    class Bounded(pydantic.BaseModel, validate_assignment=True):
        scale: float = pydantic.Field(default=1.0, ge=0.0)

    cfg, w = Bounded(), Value(2.0)
    f = compile(lambda x: w * x * cfg.scale)
    for k in range(20):
        if k == 5:
            cfg.scale = "2.5"
        if k == 12:
            attempt(setattr, cfg, "scale", -1.0)
            cfg.scale = 7
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ named tuples


class Schedule(NamedTuple):
    base: float
    decay: float = 0.5
    power: int = 1

    def at(self, x):
        return self.base * x**self.power + self.decay


@scenario
def named_tuple_is_replaced(compile):
    cfg, w = Schedule(1.0), Value(2.0)
    f = compile(lambda x: w * cfg.at(x))
    for k in range(22):
        if k == 5:
            cfg = cfg._replace(decay=3.0)
        if k == 11:
            cfg = Schedule(*reversed(cfg[:2]))
        if k == 17:
            cfg = cfg._replace(power=2)
        yield f(0.5), w


@scenario
def named_tuple_in_a_dict_in_a_list(compile):
    pair = namedtuple("pair", "a b")
    cfg, w = [{"weights": pair(1.0, [2.0])}], Value(2.0)
    f = compile(lambda x: w * x * cfg[0]["weights"].a + sum(cfg[0]["weights"].b))
    for k in range(22):
        if k == 5:
            cfg[0]["weights"].b[0] = 5.0
        if k == 11:
            cfg[0]["weights"] = pair(3.0, [])
        if k == 17:
            cfg[0] = {"weights": pair(b=[1.0], a=0.25)}
        yield f.mean(MANY), w
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ enums


class Mode(enum.Enum):
    PLAIN = "plain"
    TANH = "tanh"
    SQUARE = "square"

    def apply(self, x):
        return x * x if self is Mode.SQUARE else x.tanh() if self is Mode.TANH else x


@scenario
def enum_member_is_chosen(compile):
    mode, w = Mode.PLAIN, Value(2.0)
    f = compile(lambda x: mode.apply(w * x))
    for k in range(22):
        if k == 5:
            mode = Mode.TANH
        if k == 11:
            mode = Mode("square")
        if k == 17:
            mode = Mode["PLAIN"]
        yield f(0.5), w


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Features(enum.Flag):
    SHIFT = enum.auto()
    SCALE = enum.auto()


@scenario
def int_enum_and_flags(compile):
    cfg, w = {"level": Level.LOW, "on": Features.SHIFT}, Value(2.0)

    @compile
    def f(x):
        y = (w * x) ** cfg["level"]
        if Features.SCALE in cfg["on"]:
            y = 10.0 * y
        return y + 1.0 if cfg["on"] & Features.SHIFT else y

    for k in range(22):
        if k == 5:
            cfg["on"] |= Features.SCALE
        if k == 11:
            cfg["level"] = Level.HIGH
        if k == 17:
            cfg["on"] = Features(0)
        yield f(0.5), w


class Planet(enum.Enum):
    EARTH = ("earth", 1.0)
    MARS = ("mars", 0.1)

    def __init__(self, label, mass):
        self.label, self.mass = label, mass


@scenario
def enum_member_with_an_attribute_that_changes(compile):
    planet, w = Planet.EARTH, Value(2.0)
    f = compile(lambda x: w * x * planet.mass)
    for k in range(22):
        if k == 5:
            Planet.EARTH.mass = 2.0
        if k == 11:
            planet = Planet.MARS
        if k == 17:
            Planet.MARS.mass = 0.5
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ plain classes


@scenario
def class_itself_is_the_configuration(compile):
    class Settings:
        RATE = 1.0
        POWERS = (1, 2)

    w = Value(2.0)
    f = compile(lambda x: w * Settings.RATE * sum(x**p for p in Settings.POWERS))
    for k in range(22):
        if k == 5:
            Settings.RATE = 2.0
        if k == 11:
            Settings.POWERS = (3,)
        if k == 17:
            setattr(Settings, "RATE", 0.5)  # noqa: B010
        yield f.mean(MANY), w


class Base:
    rate = 1.0
    shift = 0.0


@scenario
def derived_class_hides_what_is_inherited(compile):
    class Child(Base):
        pass

    cfg, w = Child(), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate)
    for k in range(24):
        if k == 5:
            Child.rate = 2.0
        if k == 11:
            cfg.rate = 3.0
        if k == 17:
            del cfg.rate, Child.rate
        yield f(0.5), w


@scenario
def bases_of_a_class_are_exchanged(compile):
    class Fast(Base):
        rate = 5.0

    class Slow(Base):
        rate = 0.5

    class Mine(Fast):
        pass

    cfg, w = Mine(), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate + cfg.shift)
    for k in range(20):
        if k == 5:
            Mine.__bases__ = (Slow,)
        if k == 12:
            cfg.__class__ = Fast
        yield f(0.5), w


class Meta(type):
    store = {"rate": 1.0}

    @property
    def rate(cls):
        return cls.store["rate"]


@scenario
def property_of_a_metaclass(compile):
    class Settings(metaclass=Meta):
        pass

    w = Value(2.0)
    f = compile(lambda x: w * x * Settings.rate)
    for k in range(20):
        if k == 5:
            Meta.store["rate"] = 2.0
        if k == 12:
            Settings.store = {"rate": 3.0}
        yield f(0.5), w


class Thermostat:
    offset = 1.0

    def __init__(self):
        self._celsius = 20.0

    @property
    def kelvin(self):
        return self._celsius + self.offset

    @kelvin.setter
    def kelvin(self, number):
        self._celsius = number - self.offset


@scenario
def property_with_a_setter(compile):
    room, w = Thermostat(), Value(0.1)
    f = compile(lambda x: w * x * room.kelvin)
    for k in range(22):
        if k == 5:
            room.kelvin = 30.0
        if k == 11:
            room._celsius = 0.0
        if k == 17:
            Thermostat.offset = 273.15
        yield f(0.5), w


class Lazy:
    def __init__(self, base):
        self.base = base

    @functools.cached_property
    def rate(self):
        return self.base * 2.0


@scenario
def cached_property_is_dropped_and_computed_again(compile):
    cfg, w = Lazy(1.0), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate)
    for k in range(22):
        if k == 5:
            cfg.base = 5.0  # not yet seen: it is cached
        if k == 11:
            del cfg.rate
        if k == 17:
            cfg.rate = 0.5
        yield f(0.5), w


class Positive:
    """A descriptor that keeps its number in the instance, and refuses what is not positive."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, number):
        if number <= 0:
            raise ValueError(f"{number} is not positive")
        setattr(instance, self.name, number)


class Checked:
    rate = Positive()

    def __init__(self, rate):
        self.rate = rate


@scenario
def descriptor_that_checks_what_is_set(compile):
    cfg, w = Checked(1.0), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate)
    for k in range(20):
        if k == 5:
            attempt(setattr, cfg, "rate", -1.0)
            cfg.rate = 2.0
        if k == 12:
            cfg._rate = 3.0
        yield f.map(XS)
        yield f(0.5), w


class Layered:
    """Asks one settings object after another."""

    def __init__(self, *layers):
        self.layers = list(layers)

    def __getattr__(self, name):
        for layer in self.layers:
            if name in layer:
                return layer[name]
        raise AttributeError(f"no setting {name}")


@scenario
def attributes_are_found_in_layers_of_dicts(compile):
    cfg, w = Layered({}, {"rate": 1.0}), Value(2.0)
    f = compile(lambda x: (w * x * cfg.rate).data)
    for k in range(24):
        if k == 5:
            cfg.layers[0]["rate"] = 2.0
        if k == 11:
            cfg.layers.insert(0, {"rate": 3.0})
        if k == 17:
            cfg.layers.clear()
        yield attempt(f, 0.5)


class Slots:
    __slots__ = ("rate", "table")

    def __init__(self):
        self.rate, self.table = 1.0, {"a": 1.0}


@scenario
def slots_are_set_deleted_and_set_again(compile):
    cfg, w = Slots(), Value(2.0)
    f = compile(lambda x: (w * x * cfg.rate + cfg.table["a"]).data)
    for k in range(24):
        if k == 5:
            cfg.table["a"] = 7.0
        if k == 11:
            del cfg.rate
        if k == 17:
            cfg.rate = 0.25
        yield attempt(f, 0.5)


@scenario
def method_with_settings_in_its_object(compile):
    class Engine:
        gain, _limit = 1.0, None

        def step(self, x):
            y = self.gain * w * x
            return y if self._limit is None else wengert.minimum(y, self._limit)

    engine, w = Engine(), Value(2.0)
    f = compile(engine.step)
    for k in range(22):
        if k == 5:
            engine._limit = 0.5
        if k == 11:
            Engine.gain = 0.25
        if k == 17:
            engine._limit = Value(0.1)
        yield f.mean(MANY), w
        yield f(0.5), w


class Singleton:
    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only.rate = 1.0
        return cls._only


@scenario
def singleton_is_asked_for_at_each_call(compile):
    Singleton._only = None
    w = Value(2.0)
    f = compile(lambda x: w * x * Singleton().rate)
    for k in range(20):
        if k == 5:
            Singleton().rate = 4.0
        if k == 12:
            Singleton._only = None
        yield f(0.5), w
