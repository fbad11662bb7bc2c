"""Scenarios of objects: descriptors, properties, attributes by name, slots, metaclasses, weak references, protocols."""

from __future__ import annotations

import abc
import collections.abc
import contextlib
import copy
import random
import types
import weakref

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, nn

# ------------------------------------------------------------------------------------------------ attributes


@scenario
def property_over_a_private_number(compile):
    class Temperature:
        def __init__(self, celsius):
            self._celsius = celsius

        @property
        def kelvin(self):
            return self._celsius + 273.15

        @kelvin.setter
        def kelvin(self, value):
            self._celsius = value - 273.15

    t, w = Temperature(0.0), Value(0.01)
    f = compile(lambda x: w * x * t.kelvin)
    for call in range(1, 20):
        if call == 6:
            t.kelvin = 1000.0
        if call == 12:
            Temperature.kelvin = property(lambda self: 1.0)
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def data_descriptor_with_validation(compile):
    class Positive:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, instance, owner=None):
            return getattr(instance, self.name)

        def __set__(self, instance, value):
            if value <= 0:
                raise ValueError(self.name)
            setattr(instance, self.name, value)

    class Gamma:
        shape = Positive()
        rate = Positive()

        def __init__(self, shape, rate):
            self.shape, self.rate = shape, rate

    prior, w = Gamma(2.0, 1.0), Value(0.7)
    f = compile(lambda x: (prior.shape - 1) * wengert.log(w * x) - prior.rate * w * x)
    for call in range(1, 20):
        if call == 6:
            prior.rate = 3.0
        if call == 12:
            prior.shape = 1.5
        if call == 13:
            yield attempt(setattr, prior, "rate", -1.0)
        yield f(0.2 * call), w


@scenario
def non_data_descriptor_hidden_by_the_instance(compile):
    class Computed:
        def __get__(self, instance, owner=None):
            return 2.0 * instance.base

    class Thing:
        double = Computed()
        base = 1.0

    thing, w = Thing(), Value(1.0)
    f = compile(lambda x: w * x + thing.double)
    for call in range(1, 22):
        if call == 6:
            thing.base = 3.0
        if call == 12:
            thing.__dict__["double"] = -1.0
        if call == 18:
            del thing.double
        yield f(0.3 * call), w


@scenario
def getattr_that_falls_through_to_a_dict(compile):
    class Record:
        def __init__(self, **values):
            self.values = values

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return self.values[name]

    record, w = Record(slope=1.0, level=0.5), Value(2.0)
    f = compile(lambda x: record.slope * w * x + record.level)
    for call in range(1, 20):
        if call == 6:
            record.values["slope"] = -1.0
        if call == 12:
            record.level = 9.0  # found before __getattr__ is asked
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.1 * k for k in range(9)])


@scenario
def getattribute_that_counts_nothing_but_scales(compile):
    class Scaled:
        unit = 1.0

        def __init__(self, length):
            self.length = length

        def __getattribute__(self, name):
            found = object.__getattribute__(self, name)
            return found * type(self).unit if name == "length" else found

    rod, w = Scaled(2.0), Value(1.0)
    f = compile(lambda x: w * x * rod.length)
    for call in range(1, 20):
        if call == 6:
            Scaled.unit = 0.01
        if call == 12:
            rod.length = 500.0
        yield f(0.4 * call), w


@scenario
def proxy_that_delegates_everything(compile):
    class Proxy:
        def __init__(self, target):
            object.__setattr__(self, "_target", target)

        def __getattr__(self, name):
            return getattr(object.__getattribute__(self, "_target"), name)

        def __setattr__(self, name, value):
            setattr(self._target, name, value)

    target, w = types.SimpleNamespace(k=1.0, power=2), Value(1.1)
    proxy = Proxy(target)
    f = compile(lambda x: proxy.k * (w * x) ** proxy.power)
    for call in range(1, 22):
        if call == 6:
            proxy.k = 4.0
        if call == 12:
            target.power = 3
        if call == 18:
            object.__setattr__(proxy, "_target", types.SimpleNamespace(k=-1.0, power=1))
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.25 * k for k in range(9)])


@scenario
def slots_and_a_slot_that_is_deleted(compile):
    class Point:
        __slots__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    point, w = Point(1.0, 2.0), Value(0.5)
    f = compile(lambda t: w * (point.x + t * getattr(point, "y", 100.0)))
    for call in range(1, 20):
        if call == 6:
            point.x = -3.0
        if call == 12:
            del point.y
        if call == 14:
            point.y = 0.25
        yield f(0.1 * call), w


@scenario
def slots_of_base_and_dict_of_derived(compile):
    class Base:
        __slots__ = ("gain",)

    class Derived(Base):
        bias = 0.0

    thing, w = Derived(), Value(-1.0)
    thing.gain = 1.0
    f = compile(lambda x: thing.gain * w * x + thing.bias)
    for call in range(1, 16):
        if call == 6:
            thing.gain = 2.0
        if call == 7:
            thing.bias = 5.0
        yield f.map([0.1 * k + call for k in range(9)])


@scenario
def class_attribute_shadowed_and_uncovered(compile):
    class Annealer:
        temperature = 1.0

        def accept(self, v):
            return wengert.exp(-v / self.temperature)

    annealer, w = Annealer(), Value(0.3)
    f = compile(lambda x: annealer.accept(w * x))
    for call in range(1, 24):
        if call == 6:
            annealer.temperature = 0.5
        if call == 12:
            del annealer.temperature
        if call == 18:
            Annealer.temperature = 10.0
        yield f.mean([0.5 * call + 0.01 * k for k in range(64)]), w


@scenario
def metaclass_holds_the_rate(compile):
    class Configurable(type):
        rate = 1.0

        @property
        def scaled_rate(cls):
            return cls.rate * 10

    class Step(metaclass=Configurable):
        pass

    w = Value(1.0)
    f = compile(lambda g: w - Step.scaled_rate * g)
    for call in range(1, 20):
        if call == 6:
            Configurable.rate = 0.5
        if call == 12:
            Step.rate = 0.125
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def class_registry_filled_by_init_subclass(compile):
    class Term:
        registry = []

        def __init_subclass__(cls, **named):
            super().__init_subclass__(**named)
            Term.registry.append(cls())

    class Square(Term):
        def of(self, v):
            return v * v

    w = Value(1.2)
    f = compile(lambda x: sum(term.of(w * x) for term in Term.registry))
    for call in range(1, 20):
        if call == 6:

            class Linear(Term):
                def of(self, v):
                    return 3.0 * v

        if call == 12:
            Term.registry.reverse()
            Term.registry.pop()
        yield f(0.1 * call), w


@scenario
def mixins_and_super(compile):
    class Model:
        def forward(self, x):
            return self.w * x

    class Offset:
        offset = 1.0

        def forward(self, x):
            return super().forward(x) + self.offset

    class Squared:
        def forward(self, x):
            return super().forward(x) ** self.power

        power = 2

    class Both(Squared, Offset, Model):
        def __init__(self):
            self.w = Value(0.5)

    both = Both()
    f = compile(lambda x: both.forward(x))
    for call in range(1, 20):
        if call == 6:
            Offset.offset = -2.0
        if call == 12:
            both.power = 3
        yield f.mean([0.2 * call + 0.05 * k for k in range(64)]), both.w


@scenario
def abstract_class_with_a_template_method(compile):
    class Kernel(abc.ABC):
        scale = 1.0

        @abc.abstractmethod
        def shape(self, r): ...

        def __call__(self, a, b):
            return self.scale * self.shape(abs(a - b) / self.length)

    class Exponential(Kernel):
        def __init__(self, length):
            self.length = length

        def shape(self, r):
            return wengert.exp(-r)

    length = Value(1.5)
    kernel, points = Exponential(length), [0.0, 1.0, 2.5]
    f = compile(lambda x: sum(kernel(x, p) for p in points))
    for call in range(1, 22):
        if call == 6:
            Kernel.scale = 3.0
        if call == 12:
            points[1] = -1.0
        if call == 18:
            Exponential.shape = lambda self, r: 1.0 / (1.0 + r)
        yield f.mean([0.3 * call + 0.05 * k for k in range(64)]), length


@scenario
def weak_reference_to_the_settings(compile):
    class Settings:
        k = 1.0

    settings = Settings()
    ref, w = weakref.ref(settings), Value(1.0)
    f = compile(lambda x: w * x * (ref().k if ref() is not None else -1.0))
    for call in range(1, 22):
        if call == 6:
            settings.k = 3.0
        if call == 18:
            del settings
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.1 * k for k in range(9)])


@scenario
def weak_proxy_and_weak_value_dictionary(compile):
    class Part:
        def __init__(self, load):
            self.load = load

    first, second = Part(1.0), Part(2.0)
    proxy, parts = weakref.proxy(first), weakref.WeakValueDictionary(second=second)
    w = Value(0.5)
    f = compile(lambda x: w * x * proxy.load + sum(part.load for part in parts.values()))
    for call in range(1, 20):
        if call == 6:
            first.load = 7.0
        if call == 12:
            second.load = -7.0
        if call == 14:
            third = parts["third"] = Part(0.125)
        yield f(0.2 * call), w
    del third


@scenario
def weak_method_of_a_listener(compile):
    class Listener:
        weight = 1.0

        def on(self, x):
            return self.weight * x

    listener, w = Listener(), Value(1.0)
    signal = [weakref.WeakMethod(listener.on)]
    f = compile(lambda x: w * sum(m()(x) for m in signal if m() is not None))
    for call in range(1, 18):
        if call == 6:
            listener.weight = 2.0
        if call == 12:
            other = Listener()
            signal.append(weakref.WeakMethod(other.on))
        yield f(0.3 * call), w


# ------------------------------------------------------------------------------------------------ protocols


@scenario
def container_with_getitem_and_len(compile):
    class Layers:
        def __init__(self, *gains):
            self.gains = list(gains)

        def __getitem__(self, k):
            return self.gains[k]

        def __len__(self):
            return len(self.gains)

    layers, w = Layers(1.0, 2.0), Value(0.9)

    def value(x):
        for k in range(len(layers)):
            x = (w * layers[k] * x).tanh()
        return x

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            layers.gains[0] = -0.5
        if call == 12:
            layers.gains.append(3.0)
        yield f.mean([0.2 * call + 0.02 * k for k in range(64)]), w


@scenario
def contains_and_a_set_behind_it(compile):
    class Active:
        def __init__(self, names):
            self.names = set(names)

        def __contains__(self, name):
            return name in self.names

    active, a, b = Active({"a"}), Value(1.0), Value(-2.0)
    f = compile(lambda x: (a * x if "a" in active else 0.0) + (b * x if "b" in active else 0.0) + x * a * b)
    for call in range(1, 20):
        if call == 6:
            active.names.add("b")
        if call == 12:
            active.names.discard("a")
        yield f(0.2 * call), a, b


@scenario
def iterator_protocol_made_anew_by_iter(compile):
    class Countdown:
        def __init__(self, start):
            self.start = start

        def __iter__(self):
            k = self.start
            while k > 0:
                yield k
                k -= 1

    countdown, w = Countdown(3), Value(0.5)
    f = compile(lambda x: sum(w * x / k for k in countdown))
    for call in range(1, 20):
        if call == 6:
            countdown.start = 5
        if call == 12:
            countdown.start = 0
        if call == 13:
            countdown.start = 2
        yield f(1.0 * call)
    yield f.map([0.1 * k for k in range(9)])


@scenario
def iterator_object_that_remembers_where_it_is(compile):
    class Stream:
        def __init__(self):
            self.k = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.k += 1
            return 1.0 / self.k

    stream, w = Stream(), Value(1.0)
    f = compile(lambda x: w * x * next(stream))
    for call in range(1, 16):
        yield f(1.0), w
        yield stream.k


@scenario
def equality_and_hash_of_keys(compile):
    class Key:
        def __init__(self, name, fold):
            self.name, self.fold = name, fold

        def __eq__(self, other):
            return (self.name.lower() if self.fold else self.name) == other.name

        def __hash__(self):
            return 1

    key, table, w = Key("LR", True), {Key("lr", False): 0.5}, Value(1.0)
    f = compile(lambda x: w * x * table.get(key, 10.0))
    for call in range(1, 18):
        if call == 6:
            key.fold = False
        if call == 12:
            key.name = "lr"
        yield f(0.1 * call), w


@scenario
def truth_of_a_switch(compile):
    class Switch:
        on = False

        def __bool__(self):
            return self.on

    switch, w = Switch(), Value(1.5)
    f = compile(lambda x: w * x if switch else w - x)
    for call in range(1, 20):
        if call == 6:
            switch.on = True
        if call == 12:
            Switch.__bool__ = lambda self: not self.on
        yield f(0.3 * call), w
        yield f.map([0.3 * call + 0.3 * k for k in range(9)])


@scenario
def numeric_protocol_of_a_unit(compile):
    class Metres:
        def __init__(self, n):
            self.n = n

        def __float__(self):
            return float(self.n)

        def __rmul__(self, other):
            return other * self.n

        def __index__(self):
            return int(self.n)

    length, table, w = Metres(2), [1.0, 10.0, 100.0, 1000.0], Value(0.5)
    f = compile(lambda x: (w * x) * length + table[length] + float(length))
    for call in range(1, 16):
        if call == 6:
            length.n = 3
        if call == 12:
            length.n = 0
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.3 * k for k in range(9)])


@scenario
def callable_object_with_state_as_the_function(compile):
    class Polynomial:
        def __init__(self, *coefficients):
            self.coefficients = coefficients

        def __call__(self, x):
            total = 0.0
            for c in reversed(self.coefficients):
                total = total * x + c
            return total

    a, b, c = Value(1.0), Value(-1.0), Value(0.5)
    polynomial = Polynomial(a, b)
    f = compile(polynomial)
    for call in range(1, 18):
        if call == 6:
            polynomial.coefficients = (a, b, c)
        if call == 12:
            polynomial.coefficients = (c, 2.0, a, 1.0)
        yield f(0.2 * call), a, b, c


@scenario
def compiled_method_of_two_instances(compile):
    class Line:
        def __init__(self, slope, lift):
            self.slope, self.lift = slope, lift

        def at(self, x):
            return self.slope * x + self.lift

    Line.at = compile(Line.at)
    a, b = Value(2.0), Value(-3.0)
    one, two = Line(a, 0.0), Line(b, 1.0)
    for call in range(1, 18):
        if call == 6:
            one.lift = 10.0
        if call == 12:
            two.slope = a
        yield one.at(0.1 * call), a, b
        yield two.at(0.1 * call), a, b


@scenario
def sequence_from_the_abstract_base_class(compile):
    class Grid(collections.abc.Sequence):
        def __init__(self, low, high, count):
            self.low, self.high, self.count = low, high, count

        def __len__(self):
            return self.count

        def __getitem__(self, k):
            if not 0 <= k < self.count:
                raise IndexError(k)
            return self.low + k * (self.high - self.low) / (self.count - 1)

    grid, w = Grid(0.0, 1.0, 3), Value(1.0)
    f = compile(lambda x: sum((w * x - g) ** 2 for g in grid) + (1.0 if 0.5 in grid else 0.0))
    for call in range(1, 20):
        if call == 6:
            grid.high = 2.0
        if call == 12:
            grid.count = 5
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.25 * k for k in range(9)])


@scenario
def mutable_mapping_of_ones_own(compile):
    class Layered(collections.abc.MutableMapping):
        def __init__(self):
            self.stores = [{}, {"k": 1.0}]

        def __getitem__(self, key):
            for store in self.stores:
                if key in store:
                    return store[key]
            raise KeyError(key)

        def __setitem__(self, key, value):
            self.stores[0][key] = value

        def __delitem__(self, key):
            del self.stores[0][key]

        def __iter__(self):
            return iter({**self.stores[1], **self.stores[0]})

        def __len__(self):
            return sum(1 for _ in self)

    layered, w = Layered(), Value(1.0)
    f = compile(lambda x: w * x * layered["k"] + len(layered) + layered.get("extra", 0.0))
    for call in range(1, 22):
        if call == 6:
            layered["k"] = 4.0
        if call == 12:
            layered.update(extra=0.5)
        if call == 18:
            layered.pop("k")
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def format_protocol_picks_a_key(compile):
    class Stage:
        number = 1

        def __format__(self, spec):
            return f"stage{self.number:{spec}}"

    stage, rates, w = Stage(), {"stage01": 0.1, "stage02": 0.2, "stage12": 1.2}, Value(1.0)
    f = compile(lambda x: w * x * rates[f"{stage:02d}"])
    for call in range(1, 18):
        if call == 6:
            stage.number = 2
        if call == 12:
            Stage.number, stage.number = 5, 12
        yield f(1.0 * call), w


@scenario
def context_manager_with_a_stack_of_scales(compile):
    class Scope:
        stack = [1.0]

        def __init__(self, scale):
            self.scale = scale

        def __enter__(self):
            Scope.stack.append(self.scale)

        def __exit__(self, *error):
            Scope.stack.pop()

    w = Value(1.0)
    f = compile(lambda x: w * x * Scope.stack[-1])
    for call in range(1, 20):
        with Scope(0.5 * call) if call in (6, 7, 13) else contextlib.nullcontext():
            y = f(0.2 * call)
        yield y, w


@scenario
def context_manager_entered_inside(compile):
    state = {"depth": 0}

    @contextlib.contextmanager
    def deeper():
        state["depth"] += 1
        try:
            yield state["depth"]
        finally:
            state["depth"] -= 1

    w = Value(2.0)

    def value(x):
        with deeper() as one, deeper() as two:
            return w * x * one + two

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            state["depth"] = 4
        yield f(0.1 * call), w
        yield state["depth"]


@scenario
def copy_hooks_of_a_model_used_inside(compile):
    class Template:
        def __init__(self, gain):
            self.gain = gain

        def __copy__(self):
            return Template(self.gain * self.factor)

        factor = 1.0

    template, w = Template(2.0), Value(0.5)
    f = compile(lambda x: w * x * copy.copy(template).gain)
    for call in range(1, 18):
        if call == 6:
            Template.factor = 3.0
        if call == 12:
            template.gain = -1.0
        yield f(0.2 * call), w


@scenario
def linked_list_of_stages(compile):
    class Stage:
        def __init__(self, gain, following=None):
            self.gain, self.following = gain, following

    a, b, c = Value(1.1), Value(0.9), Value(-2.0)
    head = Stage(a, Stage(b))

    def run(x):
        stage = head
        while stage is not None:
            x = (stage.gain * x).tanh()
            stage = stage.following
        return x

    f = compile(run)
    for call in range(1, 20):
        if call == 6:
            head.following = Stage(c, head.following)
        if call == 12:
            head = head.following
        yield f(0.3 * call), a, b, c


@scenario
def tree_walked_by_recursion(compile):
    class Tree:
        def __init__(self, weight, *children):
            self.weight, self.children = weight, list(children)

        def total(self, x):
            return self.weight * x + sum(child.total(x * x) for child in self.children)

    a, b, c = Value(1.0), Value(2.0), Value(3.0)
    tree = Tree(a, Tree(b))
    f = compile(lambda x: tree.total(x))
    for call in range(1, 20):
        if call == 6:
            tree.children[0].children.append(Tree(c))
        if call == 12:
            tree.children[0].weight = 0.5
        if call == 14:
            tree.children.clear()
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), a, b, c


@scenario
def observer_that_recomputes_when_set(compile):
    class Cell:
        def __init__(self, value):
            self.value, self.watchers = value, []

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            for watcher in self.__dict__.get("watchers", ()):
                watcher()

    cell, derived, w = Cell(1.0), {}, Value(1.0)
    cell.watchers.append(lambda: derived.update(square=cell.value**2))
    cell.value = 2.0
    f = compile(lambda x: w * x * derived["square"])
    for call in range(1, 16):
        if call in (6, 12):
            cell.value = 1.0 * call
        yield f(0.1 * call), w


@scenario
def module_list_that_freezes_a_layer(compile):
    class Net(nn.Module):
        def __init__(self):
            self.layers = [nn.Neuron(2, rng=random.Random(k)) for k in range(3)]
            self.frozen = set()

        def __call__(self, x):
            outputs = [layer(x) for layer in self.layers]
            return sum(wengert.stop_gradient(o) if k in self.frozen else o for k, o in enumerate(outputs))

    net = Net()
    f = compile(lambda x: net(x))
    for call in range(1, 15):
        if call == 6:
            net.frozen.add(1)
        if call == 12:
            net.frozen.clear()
        yield f([0.1 * call, 0.5]), net
        yield f.mean([[0.01 * k, -0.3] for k in range(64)]), net
