"""Scenarios of code that is exchanged while it is in use: monkeypatches, reloads, swapped classes and decorators."""

from __future__ import annotations

import builtins
import functools
import importlib
import math
import operator
import pathlib
import random
import sys
import tempfile
import textwrap
import types
from unittest import mock

import numpy as np

import wengert
from tests.scenarios.kit import scenario
from wengert import Value, losses, nn

strength = 1.0


def penalty(v):
    return strength * v * v


def bent(x, slope=0.5, *, offset=0.0):
    return slope * x + offset


# ------------------------------------------------------------------------------------------------ other people's names


@scenario
def math_sin_is_patched(compile):
    w = Value(1.0)
    f = compile(lambda x: w * math.sin(x))
    for call in range(1, 24):
        if call == 6:
            original, math.sin = math.sin, lambda x: 100.0 + x
        if call == 12:
            math.sin = original
        if call == 21:
            math.sin = math.cos
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.25 * k for k in range(9)])


@scenario
def math_pi_is_three(compile):
    w = Value(2.0)
    f = compile(lambda r: w * math.pi * r * r)
    for call in range(1, 16):
        if call == 7:
            math.pi = 3
        yield f(0.1 * call), w


@scenario
def math_exp_is_patched_under_a_batch(compile):
    w = Value(0.3)
    f = compile(lambda x: w * math.exp(-x))
    for call in range(1, 12):
        with mock.patch("math.exp", lambda x: 1.0 + x) if call in (6, 7) else mock.MagicMock():
            yield f.map([0.1 * k + call for k in range(9)])
            yield f.mean([0.01 * k for k in range(64)]), w


@scenario
def value_tanh_is_patched(compile):
    w = Value(0.5)
    f = compile(lambda x: (w * x).tanh())
    for call in range(1, 18):
        if call == 6:
            original, Value.tanh = Value.tanh, lambda v: v * 0.5
        if call == 12:
            Value.tanh = original
        yield f.mean([0.2 * call + 0.02 * k for k in range(64)]), w


@scenario
def value_gets_a_method_and_then_another(compile):
    Value.cubed = lambda v: v * v * v
    w = Value(1.5)
    f = compile(lambda x: (w * x).cubed())
    for call in range(1, 18):
        if call == 6:
            Value.cubed = lambda v: v + 3.0
        if call == 12:
            Value.cubed = property(lambda v: lambda: -v)
        yield f(0.1 * call), w
    del Value.cubed


@scenario
def function_of_the_library_is_patched(compile):
    w = Value(0.7)
    f = compile(lambda x: wengert.sin(w * x))
    for call in range(1, 18):
        if call == 6:
            original, wengert.sin = wengert.sin, wengert.cos
        if call == 13:
            wengert.sin = original
        yield f(0.3 * call), w


@scenario
def loss_of_the_library_is_patched(compile):
    model = nn.MLP(2, [3, 1], rng=random.Random(3))
    f = compile(lambda x, y: losses.mse(model(x), y))
    for call in range(1, 16):
        if call == 6:
            losses.mse = losses.mae
        yield f([0.1 * call, -0.4], 1.0), model


@scenario
def mse_is_weighted_by_a_wrapper_in_a_mean(compile):
    original, weight = losses.mse, [1.0]
    model = nn.Neuron(2, rng=random.Random(4))
    f = compile(lambda x, y: losses.mse(model(x), y))
    for call in range(1, 14):
        if call == 6:
            losses.mse = lambda p, y: weight[0] * original(p, y)
        if call == 7:
            weight[0] = 50.0
        yield f.mean([[0.1 * k, -0.02 * k * call] for k in range(64)], [1.0] * 64), model


@scenario
def numpy_function_is_patched(compile):
    table = np.array([1.0, -2.0, 3.0])
    w = Value(1.0)
    f = compile(lambda x: w * x * float(np.sum(table)))
    for call in range(1, 16):
        if call == 6:
            original, np.sum = np.sum, np.prod
        if call == 12:
            np.sum = original
        yield f(0.5 * call), w


@scenario
def random_module_is_replaced_by_a_fake(compile):
    fake = types.SimpleNamespace(random=lambda: 0.25)
    w = Value(1.0)
    with mock.patch.dict(globals(), random=fake):
        f = compile(lambda x: w * x + random.random())
        for call in range(1, 16):
            if call == 6:
                fake.random = lambda: 0.75
            if call == 12:
                globals()["random"] = types.SimpleNamespace(random=lambda: -1.0)
            yield f(0.1 * call), w


@scenario
def mock_object_counts_and_answers(compile):
    service = mock.Mock(return_value=2.0)
    w = Value(1.0)
    f = compile(lambda x: w * x * service(3))
    for call in range(1, 16):
        if call == 6:
            service.return_value = 5.0
        if call == 12:
            service.side_effect = lambda n: 1.0 / n
        yield f(0.2 * call), w
        yield service.call_count


# ------------------------------------------------------------------------------------------------ names of one's own


@scenario
def global_comes_to_shadow_a_builtin(compile):
    w = Value(1.0)
    f = compile(lambda xs: w * max(xs) + sum(xs))
    for call in range(1, 18):
        if call == 6:
            globals()["max"] = min
        if call == 12:
            globals()["sum"] = lambda xs: 1000.0
        if call == 14:
            del globals()["max"]
        yield f([0.1 * call, -0.5, 1.0]), w


@scenario
def builtin_itself_is_replaced(compile):
    w = Value(-1.0)
    f = compile(lambda x: abs(w * x) + 1.0)
    plain_abs = builtins.abs
    for call in range(1, 18):
        with mock.patch.object(builtins, "abs", lambda v: 3.0 * v) if call in (6, 13) else mock.MagicMock():
            y = f(0.1 * call)
        yield y, w
    assert builtins.abs is plain_abs


@scenario
def global_rebound_by_the_globals_dict(compile):
    v = Value(2.0)
    f = compile(lambda x: penalty(v) * x)
    for call in range(1, 18):
        if call == 6:
            globals().update(strength=4.0)
        if call == 12:
            globals()["penalty"] = lambda v: -v
        yield f(0.1 * call), v


@scenario
def defaults_of_a_helper_are_replaced(compile):
    w = Value(1.0)
    f = compile(lambda x: bent(w * x))
    for call in range(1, 24):
        if call == 6:
            bent.__defaults__ = (2.0,)
        if call == 12:
            bent.__kwdefaults__["offset"] = 1.5
        if call == 18:
            bent.__kwdefaults__ = {"offset": -3.0}
        if call == 21:
            bent.__code__ = (lambda x, slope, *, offset: x - slope - offset).__code__
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def defaults_of_the_function_itself_are_replaced(compile):
    w = Value(3.0)

    def value(x, k=2.0, *, shift=0.0):
        return w * x * k + shift

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            value.__defaults__ = (5.0,)
        if call == 12:
            value.__kwdefaults__["shift"] = -1.0
        yield f(0.3 * call), w


@scenario
def code_of_the_function_itself_is_replaced(compile):
    w = Value(0.5)

    def value(x):
        return w * x

    def other(x):
        return w - x

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            value.__code__ = other.__code__
        yield f(0.5 * call), w
        yield f.map([0.5 * call + 0.1 * k for k in range(9)])


@scenario
def closure_cell_is_rewritten_from_outside(compile):
    def made(scale):
        return lambda x: scale * x

    helper, w = made(2.0), Value(1.0)
    f = compile(lambda x: helper(w * x))
    for call in range(1, 16):
        if call == 6:
            helper.__closure__[0].cell_contents = -4.0
        if call == 12:
            helper = made(0.5)
        yield f.mean([0.2 * call + 0.01 * k for k in range(64)]), w


@scenario
def cell_object_held_by_hand(compile):
    cell = types.CellType(1.0)
    w = Value(1.0)
    f = compile(lambda x: w * x * cell.cell_contents)
    for call in range(1, 16):
        if call == 6:
            cell.cell_contents = 7.0
        yield f(0.3 * call), w


@scenario
def class_of_an_object_is_exchanged(compile):
    class Loud:
        def speak(self, v):
            return v * self.volume

    class Quiet(Loud):
        def speak(self, v):
            return v / (1.0 + self.volume)

    thing, w = Loud(), Value(1.0)
    thing.volume = 3.0
    f = compile(lambda x: thing.speak(w * x))
    for call in range(1, 18):
        if call == 6:
            thing.__class__ = Quiet
        if call == 12:
            thing.volume = 0.0
        if call == 13:
            thing.__class__ = Loud
        yield f.mean([0.4 * call + 0.05 * k for k in range(64)]), w


@scenario
def bases_of_a_class_are_exchanged(compile):
    class Linear:
        def of(self, x):
            return x

    class Cubic:
        def of(self, x):
            return x**3

    class Shape(Linear):
        pass

    shape, w = Shape(), Value(0.8)
    f = compile(lambda x: w * shape.of(x))
    for call in range(1, 16):
        if call == 7:
            Shape.__bases__ = (Cubic,)
        yield f(0.3 * call), w


@scenario
def method_replaced_on_class_then_on_instance(compile):
    class Unit:
        def act(self, v):
            return v.tanh()

    one, two, w = Unit(), Unit(), Value(0.6)
    f = compile(lambda x: one.act(w * x) + two.act(w + x))
    for call in range(1, 22):
        if call == 6:
            Unit.act = lambda self, v: v.relu()
        if call == 12:
            two.act = lambda v: 2.0 * v
        if call == 18:
            del two.act
        yield f(0.2 * call - 1.0), w


@scenario
def bound_method_of_another_object(compile):
    class Line:
        def __init__(self, slope):
            self.slope = slope

        def at(self, x):
            return self.slope * x

    a, b = Value(1.0), Value(-1.0)
    first, second = Line(a), Line(b)
    f = compile(lambda x: first.at(x) + 1.0)
    for call in range(1, 18):
        if call == 6:
            first.at = second.at
        if call == 12:
            first.at = types.MethodType(Line.at, Line(3.0))
        yield f.mean([0.2 * call + 0.02 * k for k in range(64)]), a, b


@scenario
def dunder_call_of_a_class_is_replaced(compile):
    class Layer:
        def __init__(self):
            self.w = Value(0.5)

        def __call__(self, x):
            return self.w * x

    layer = Layer()
    f = compile(lambda x: layer(x) ** 2)
    for call in range(1, 16):
        if call == 6:
            Layer.__call__ = lambda self, x: self.w + x
        if call == 12:
            layer.__call__ = lambda x: 0.0  # does nothing: Python looks in the class
        yield f(0.3 * call), layer.w
        yield f.map([0.3 * call + 0.25 * k for k in range(9)])


@scenario
def operator_of_an_own_number_is_replaced(compile):
    class Money:
        def __init__(self, amount):
            self.amount = amount

        def __add__(self, other):
            return Money(self.amount + other.amount)

    w = Value(2.0)
    f = compile(lambda x: (Money(w * x) + Money(1.0)).amount)
    for call in range(1, 16):
        if call == 6:
            Money.__add__ = lambda self, other: Money(self.amount * 2 + other.amount)
        yield f(0.1 * call), w


@scenario
def decorator_is_taken_off(compile):
    def doubled(function):
        @functools.wraps(function)
        def wrapper(x):
            return 2.0 * function(x)

        return wrapper

    w = Value(1.0)

    @doubled
    def helper(x):
        return w + x

    f = compile(lambda x: helper(x) * x)
    for call in range(1, 18):
        if call == 6:
            helper = helper.__wrapped__
        if call == 12:
            helper = doubled(doubled(helper))
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.25 * k for k in range(9)])


@scenario
def staticmethod_and_classmethod_are_replaced(compile):
    class Activations:
        gain = 1.0

        @staticmethod
        def leaky(v):
            return v if v.data > 0 else 0.1 * v

        @classmethod
        def scaled(cls, v):
            return cls.gain * v

    w = Value(1.0)
    f = compile(lambda x: Activations.scaled(Activations.leaky(w * x)))
    for call in range(1, 22):
        if call == 6:
            Activations.leaky = staticmethod(lambda v: -v)
        if call == 12:
            Activations.gain = 6.0
        if call == 18:
            Activations.scaled = classmethod(lambda cls, v: v - cls.gain)
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.3 * k for k in range(9)])


@scenario
def strategy_attribute_set_by_setattr_in_a_loop(compile):
    class Model:
        pass

    model, w = Model(), Value(1.2)
    for name, function in {"encode": lambda v: v + 1.0, "decode": lambda v: v * 2.0}.items():
        setattr(model, name, function)
    f = compile(lambda x: model.decode(model.encode(w * x)))
    for call in range(1, 18):
        if call == 6:
            for name, function in {"encode": lambda v: -v, "decode": lambda v: v.exp()}.items():
                setattr(model, name, function)
        if call == 12:
            model.__dict__["decode"] = operator.neg
        yield f.mean([0.1 * call + 0.05 * k for k in range(64)]), w


@scenario
def activation_of_a_neuron_is_exchanged(compile):
    model = nn.MLP(2, [3, 1], activation="tanh", rng=random.Random(6))
    f = compile(lambda x: model(x))
    other = nn.MLP(2, [3, 1], activation="relu", rng=random.Random(7))
    for call in range(1, 16):
        if call == 6:
            model.layers[0] = other.layers[0]
        if call == 12:
            model.layers[0].neurons[1], model.layers[0].neurons[0] = model.layers[0].neurons[:2]
        yield f([0.2, 0.1 * call]), model, other


@scenario
def class_of_a_model_is_subclassed_at_run_time(compile):
    model = nn.Neuron(2, rng=random.Random(8))

    class Doubled(nn.Neuron):
        def __call__(self, x):
            return 2.0 * super().__call__(x)

    f = compile(lambda x: model(x))
    for call in range(1, 16):
        if call == 7:
            model = Doubled(2, rng=random.Random(9))
        yield f([0.1 * call, -0.3]), model


# ------------------------------------------------------------------------------------------------ modules


@scenario
def module_is_edited_and_reloaded(compile):
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "dont_write_bytecode", True):
        path = pathlib.Path(folder, "under_edit.py")
        path.write_text("RATE = 1.0\n\ndef rule(v):\n    return RATE * v\n")
        sys.path.insert(0, folder)
        import under_edit

        w = Value(1.0)
        f = compile(lambda x: under_edit.rule(w * x))
        for call in range(1, 18):
            if call == 6:
                path.write_text("RATE = 2.0\n\ndef rule(v):\n    return RATE + v * v\n")
                importlib.reload(under_edit)
            if call == 12:
                under_edit.RATE = 9.0
            yield f(0.2 * call), w
            yield f.map([0.2 * call + 0.3 * k for k in range(9)])


@scenario
def name_imported_from_a_reloaded_module_stays_old(compile):
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "dont_write_bytecode", True):
        path = pathlib.Path(folder, "half_reloaded.py")
        path.write_text("K = 1.0\n\ndef rule(v):\n    return K * v\n")
        sys.path.insert(0, folder)
        import half_reloaded
        from half_reloaded import rule

        w = Value(1.0)
        f = compile(lambda x: rule(w * x))
        for call in range(1, 16):
            if call == 6:
                path.write_text("K = -1.0\n\ndef rule(v):\n    return 100.0\n")
                importlib.reload(half_reloaded)  # the old function reads the new K
            yield f(0.3 * call), w


@scenario
def module_made_by_exec_and_filled_again(compile):
    plugin = types.ModuleType("plugin")
    exec(
        textwrap.dedent("""
        gain = 1.0
        def run(v):
            return gain * v
    """),
        plugin.__dict__,
    )
    w = Value(0.4)
    f = compile(lambda x: plugin.run(w * x) + 1.0)
    for call in range(1, 18):
        if call == 6:
            exec("gain = 5.0", plugin.__dict__)
        if call == 12:
            exec("def run(v):\n    return v ** 2 - gain", plugin.__dict__)
        yield f.mean([0.2 * call + 0.02 * k for k in range(64)]), w


@scenario
def module_attribute_of_sys_modules(compile):
    settings = types.ModuleType("scenario_settings")
    settings.scale = 1.0
    sys.modules["scenario_settings"] = settings
    w = Value(1.0)

    def value(x):
        import scenario_settings

        return w * x * scenario_settings.scale

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            settings.scale = 3.0
        if call == 12:
            replaced = types.ModuleType("scenario_settings")
            replaced.scale = -2.0
            sys.modules["scenario_settings"] = replaced
        yield f(0.1 * call), w


@scenario
def module_whose_class_is_its_own(compile):
    class Lazy(types.ModuleType):
        @property
        def factor(self):
            return self._base * 2.0

    lazy, w = Lazy("lazy"), Value(1.0)
    lazy._base = 1.0
    f = compile(lambda x: w * x * lazy.factor)
    for call in range(1, 16):
        if call == 6:
            lazy._base = 4.0
        if call == 12:
            Lazy.factor = 0.5
        yield f(0.2 * call), w


@scenario
def dispatch_table_of_a_module_edited_in_a_map(compile):
    table = types.SimpleNamespace(ops={"+": operator.add, "*": operator.mul})
    w = Value(1.5)
    f = compile(lambda x: table.ops["*"](w, table.ops["+"](x, 1.0)))
    for call in range(1, 14):
        if call == 6:
            table.ops["+"] = operator.sub
        if call == 7:
            table.ops = {"+": max, "*": operator.truediv}
        yield f.map([0.1 * k * call + 1.5 for k in range(9)])
