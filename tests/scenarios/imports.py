"""Scenarios of imports inside functions, and of attributes that are there only once they are asked for."""

from __future__ import annotations

import importlib
import pathlib
import random
import sys
import tempfile

import wengert
from tests.scenarios.kit import scenario
from wengert import Value, nn


@scenario
def numpy_imported_in_a_helper(compile):
    def norm(row):
        import numpy as np

        return float(np.linalg.norm(np.array(row)))

    row, w = [3.0, 4.0], Value(1.0)
    f = compile(lambda x: w * x * norm(row))
    for call in range(1, 16):
        if call == 6:
            row[0] = 0.0
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def sine_imported_from_math_inside(compile):
    phase, w = [0.0], Value(0.5)

    def wave(x):
        from math import pi, sin

        return w * sin(pi * x + phase[0])

    f = compile(wave)
    for call in range(1, 18):
        if call == 6:
            phase[0] = 0.5
        yield f(0.1 * call), w
    yield f.map([0.1 * k for k in range(9)])


@scenario
def functions_of_the_library_imported_inside(compile):
    w, b = Value(0.5), Value(0.1)

    def value(x):
        from wengert import maximum, softplus
        from wengert.losses import mse

        return mse(maximum(w * x, softplus(b)), 0.3)

    f = compile(value)
    for call in range(1, 16):
        yield f(0.3 * call - 1.5), w, b


@scenario
def jacobian_read_from_the_package_for_the_first_time(compile):
    scale, w = [1.0], Value(2.0)

    def value(x):
        rows = wengert.jacobian(lambda p: [scale[0] * p[0] * p[1], p[1] ** 2])([x, 3.0])
        return w * (rows[0][0] + rows[1][1])

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            scale[0] = 4.0
        yield f(0.2 * call), w


@scenario
def gradient_of_a_helper_read_by_attribute(compile):
    k, w = {"power": 2}, Value(1.5)
    f = compile(lambda x: w * wengert.grad(lambda t: t ** k["power"])(x))
    for call in range(1, 18):
        if call == 6:
            k["power"] = 3
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def import_of_a_module_of_the_project_for_the_first_time(compile):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "late_settings.py").write_text("loads = []\nfactor = 2.0\nloads.append(1)\n")
        sys.path.insert(0, folder)
        w = Value(1.0)

        def value(x):
            import late_settings

            return w * x * late_settings.factor

        f = compile(value)
        for call in range(1, 18):
            if call == 6:
                sys.modules["late_settings"].factor = 0.5
            yield f(0.3 * call), w
            yield sys.modules["late_settings"].loads


@scenario
def import_in_a_branch_that_comes_late(compile):
    w = Value(1.0)

    def value(x):
        if x > 1.0:
            import colorsys

            return w * colorsys.rgb_to_hsv(x, 0.5, 0.25)[2]
        return w * x

    f = compile(value)
    for call in range(1, 20):
        yield f(0.2 * call), w


@scenario
def import_by_name_from_a_setting(compile):
    setting, w = {"module": "math", "name": "sqrt"}, Value(2.0)

    def value(x):
        module = importlib.import_module(setting["module"])
        return w * getattr(module, setting["name"])(x)

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            setting["name"] = "log1p"
        if call == 12:
            setting.update(module="operator", name="neg")
        yield f(0.5 * call), w
        yield f.map([0.5 * call + 0.3 * k for k in range(9)])


@scenario
def optional_dependency_tried_in_a_helper(compile):
    w = Value(1.0)

    def scale():
        try:
            import surely_not_installed_anywhere as fast
        except ImportError:
            return 2.0
        return fast.scale

    f = compile(lambda x: w * x * scale())
    import types

    fast = types.ModuleType("surely_not_installed_anywhere")
    fast.scale = 10.0
    for call in range(1, 18):
        if call == 6:
            sys.modules["surely_not_installed_anywhere"] = fast
        if call == 12:
            fast.scale = -1.0
        yield f(0.1 * call), w


@scenario
def import_in_the_method_of_a_module_class(compile):
    class Scaled(nn.Module):
        def __init__(self):
            self.inner = nn.Neuron(2, rng=random.Random(5))
            self.temperature = 1.0

        def __call__(self, x):
            import wengert.nn

            assert isinstance(self.inner, wengert.nn.Neuron)
            return self.inner(x) / self.temperature

    model = Scaled()
    f = compile(lambda x: model(x))
    for call in range(1, 14):
        if call == 6:
            model.temperature = 2.0
        if call == 7:
            model.inner = nn.Neuron(2, rng=random.Random(6))
        yield f.mean([[0.01 * k, 0.1 * call] for k in range(64)]), model


@scenario
def module_level_lazy_loader(compile):
    class Lazy:
        def __init__(self, name):
            self._name, self._module = name, None

        def __getattr__(self, attribute):
            if self._module is None:
                self._module = importlib.import_module(self._name)
            return getattr(self._module, attribute)

    statistics, history, w = Lazy("statistics"), [1.0, 2.0, 6.0], Value(1.0)
    f = compile(lambda x: w * x * statistics.median(history))
    for call in range(1, 16):
        if call == 6:
            history[1] = 5.0
        if call == 12:
            history.extend([9.0, 9.5])
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.1 * k for k in range(9)])


@scenario
def global_import_statement_in_an_init_function(compile):
    w = Value(1.0)

    def setup():
        global fractions
        import fractions

    def value(x):
        if "fractions" not in globals():
            setup()
        return w * x * float(fractions.Fraction(1, 4))

    f = compile(value)
    for call in range(1, 14):
        yield f(1.0 * call), w
        yield "fractions" in globals()
