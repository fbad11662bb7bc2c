"""Scenarios of installed packages: what they keep in modules, classes, defaults and lists, and what they do."""

from __future__ import annotations

import contextlib
import importlib
import pathlib
import site
import sys
import tempfile
import textwrap
import warnings
import zipfile

from tests.scenarios.kit import scenario
from wengert import Value

SITE = "lib/python3.11/site-packages"


@contextlib.contextmanager
def installed(files, where=SITE, on_path=None):
    """The files written below a folder of their own, as pip would write them, and importable until the end."""
    tops = {name.split("/")[0].removesuffix(".py") for name in files}
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root, where)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in tops}
        path = list(sys.path)
        sys.path[:0] = on_path(folder) if on_path else [str(folder)]
        importlib.invalidate_caches()
        try:
            yield folder
        finally:
            sys.path[:] = path
            for name in [name for name in sys.modules if name.split(".")[0] in tops]:
                del sys.modules[name]
            sys.modules.update(hidden)


# ------------------------------------------------------------------------------------------------ installed, read


@scenario
def package_function_reads_a_global_of_its_module(compile):
    with installed({"acme/__init__.py": "", "acme/gains.py": "GAIN = 1.0\n\ndef amplify(x):\n    return GAIN * x\n"}):
        from acme import gains

        w = Value(0.7)
        f = compile(lambda x: gains.amplify(w * x) + x)
        for call in range(1, 25):
            if call in (6, 12, 21):
                gains.GAIN += 1.5
            yield f(0.1 * call), w
            yield f.map([0.1 * call + 0.1 * k for k in range(9)])


@scenario
def package_is_configured_by_a_function_with_global(compile):
    text = """
        _scale = 1.0

        def configure(*, scale):
            global _scale
            _scale = scale

        def scaled(x):
            return x * _scale
    """
    with installed({"tuner.py": text}):
        import tuner

        w = Value(-1.2)
        f = compile(lambda xs: sum(tuner.scaled(w * x) for x in xs))
        for call in range(1, 22):
            if call == 6:
                tuner.configure(scale=4.0)
            if call == 13:
                tuner.configure(scale=-0.5)
            yield f([0.5, 0.25 * call, -1.0]), w


@scenario
def package_class_with_a_damping_of_class_and_instance(compile):
    text = """
        class Oscillator:
            damping = 0.1

            def __init__(self, stiffness):
                self.stiffness = stiffness

            def energy(self, x, v):
                return self.stiffness * x * x + v * v * (1.0 - self.damping)
    """
    with installed({"springs/__init__.py": "from springs.core import Oscillator\n", "springs/core.py": text}):
        import springs

        k = Value(2.0)
        spring = springs.Oscillator(k)
        f = compile(lambda x, v: spring.energy(x, v))
        for call in range(1, 24):
            if call == 6:
                springs.Oscillator.damping = 0.4
            if call == 12:
                spring.damping = 0.9
            if call == 18:
                del spring.damping
            yield f(0.3 * call, 1.0 - 0.1 * call), k


@scenario
def package_instance_is_edited_between_batches(compile):
    text = """
        class Scaler:
            def __init__(self):
                self.centre, self.spread = 0.0, 1.0

            def transform(self, x):
                return (x - self.centre) / self.spread
    """
    with installed({"prep/scalers.py": text, "prep/__init__.py": ""}):
        from prep.scalers import Scaler

        scaler, w = Scaler(), Value(1.5)
        f = compile(lambda x: (w * scaler.transform(x)).tanh())
        for call in range(1, 14):
            if call == 6:
                scaler.centre = 0.5
            if call == 7:
                scaler.spread = 2.5
            yield f.map([0.1 * call * k for k in range(9)])
            yield f.mean([0.02 * k - 0.1 * call for k in range(64)]), w


@scenario
def package_helper_gets_another_default(compile):
    text = "def soften(x, slope=0.1):\n    return x if x > 0 else slope * x\n"
    with installed({"activations.py": text}):
        import activations

        w = Value(-0.8)
        f = compile(lambda x: activations.soften(w * x) * 2)
        for call in range(1, 20):
            if call == 7:
                activations.soften.__defaults__ = (0.75,)
            yield f(0.2 * call), w


@scenario
def package_model_has_one_of_its_weights_replaced(compile):
    text = """
        class Linear:
            def __init__(self, weights):
                self.weights = weights

            def __call__(self, xs):
                return sum(w * x for w, x in zip(self.weights, xs))
    """
    with installed({"tinynet/linear.py": text, "tinynet/__init__.py": ""}):
        from tinynet.linear import Linear

        a, b, c, d = Value(1.0), Value(-2.0), Value(0.5), Value(7.0)
        model = Linear([a, b, c])
        f = compile(lambda xs: model(xs).tanh())
        for call in range(1, 22):
            if call == 6:
                model.weights[1] = d
            if call == 12:
                model.weights.reverse()
            yield f([0.1, 0.02 * call, 0.3]), a, b, c, d


@scenario
def package_mode_is_a_string_of_its_module(compile):
    text = """
        MODE = "linear"

        def shape(x):
            if MODE == "linear":
                return x
            if MODE == "square":
                return x * x
            return x ** 3
    """
    with installed({"curves/__init__.py": text}):
        import curves

        w = Value(0.9)
        f = compile(lambda x: curves.shape(w * x) + w)
        for call in range(1, 24):
            curves.MODE = "linear" if call < 6 else "square" if call < 13 else "cube"
            yield f.mean([0.3 * call + 0.01 * k for k in range(64)]), w


@scenario
def package_registry_gets_another_function(compile):
    text = """
        REGISTRY = {}

        def register(name):
            def keep(function):
                REGISTRY[name] = function
                return function
            return keep

        @register("kernel")
        def first(x):
            return 1.0 / (1.0 + x * x)

        def apply(x):
            return REGISTRY["kernel"](x)
    """
    with installed({"kernels.py": text}):
        import kernels

        w = Value(1.1)
        f = compile(lambda x: w * kernels.apply(x * w))
        for call in range(1, 20):
            if call == 6:
                kernels.register("kernel")(lambda x: 3.0 - x)
            if call == 12:
                kernels.REGISTRY["kernel"] = abs
            yield f(-0.2 * call), w


@scenario
def package_has_its_backend_swapped(compile):
    files = {
        "multi/__init__.py": "from . import cpu as backend\n\ndef run(x):\n    return backend.kernel(x)\n",
        "multi/cpu.py": "def kernel(x):\n    return 2.0 * x\n",
        "multi/gpu.py": "def kernel(x):\n    return 2.5 * x + 1.0\n",
    }
    with installed(files):
        import multi
        import multi.gpu

        w = Value(0.3)
        f = compile(lambda x: multi.run(w * x).exp())
        for call in range(1, 18):
            if call == 7:
                multi.backend = multi.gpu
            yield f(0.1 * call), w


@scenario
def package_option_as_a_context_manager(compile):
    text = """
        import contextlib

        options = {"scale": 1.0}

        @contextlib.contextmanager
        def option_context(**changes):
            before = dict(options)
            options.update(changes)
            try:
                yield
            finally:
                options.clear()
                options.update(before)

        def scaled(x):
            return options["scale"] * x
    """
    with installed({"framelike/__init__.py": "from framelike._config import *\n", "framelike/_config.py": text}):
        import framelike

        w = Value(2.2)
        f = compile(lambda x: framelike.scaled(x) * w)
        for call in range(1, 22):
            if call in (6, 7, 13, 19):
                with framelike.option_context(scale=0.1 * call):
                    yield f(1.0 + call), w
            else:
                yield f(1.0 + call), w


@scenario
def package_config_is_a_frozen_dataclass_that_is_replaced(compile):
    text = """
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Config:
            rate: float = 0.5
            power: int = 1

        config = Config()

        def decay(x):
            return x ** config.power * config.rate
    """
    with installed({"schedules/config.py": text, "schedules/__init__.py": ""}):
        import dataclasses

        from schedules import config as module

        w = Value(1.3)
        f = compile(lambda x: module.decay(w + x))
        for call in range(1, 22):
            if call == 6:
                module.config = dataclasses.replace(module.config, rate=0.25)
            if call == 12:
                module.config = dataclasses.replace(module.config, power=3)
            yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def package_traits_keep_their_numbers_in_a_weak_dictionary(compile):
    text = """
        import weakref

        class Trait:
            def __init__(self, default):
                self.default, self.values = default, weakref.WeakKeyDictionary()

            def __get__(self, owner, kind=None):
                return self if owner is None else self.values.get(owner, self.default)

            def __set__(self, owner, value):
                self.values[owner] = value

        class HasTraits:
            gain = Trait(1.0)
    """
    with installed({"traitkit.py": text}):
        import traitkit

        thing, w = traitkit.HasTraits(), Value(0.4)
        f = compile(lambda x: w * x * thing.gain)
        for call in range(1, 20):
            if call in (6, 12):
                thing.gain = thing.gain + 2.0
            yield f.mean([0.5 * call + 0.02 * k for k in range(64)]), w


@scenario
def package_hooks_are_added_while_it_runs(compile):
    text = """
        hooks = []

        def forward(x):
            for hook in hooks:
                x = hook(x)
            return x
    """
    with installed({"hooked/__init__.py": text}):
        import hooked

        w = Value(0.6)
        f = compile(lambda x: hooked.forward(w * x))
        for call in range(1, 22):
            if call == 6:
                hooked.hooks.append(lambda y: y + 1.0)
            if call == 12:
                hooked.hooks.append(lambda y: y * y)
            if call == 18:
                hooked.hooks.pop(0)
            yield f.mean([0.1 * call + 0.05 * k for k in range(64)]), w


@scenario
def package_base_class_whose_template_method_reads_a_class_attribute(compile):
    text = """
        class Penalty:
            strength = 0.1

            def __call__(self, values):
                return self.strength * sum(self.term(v) for v in values)

            def term(self, v):
                raise NotImplementedError
    """
    with installed({"penalties/base.py": text, "penalties/__init__.py": ""}):
        from penalties.base import Penalty

        class Ridge(Penalty):
            def term(self, v):
                return v * v

        a, b, ridge = Value(1.0), Value(-3.0), Ridge()
        f = compile(lambda x: (a * x + b) ** 2 + ridge([a, b]))
        for call in range(1, 22):
            if call == 6:
                Penalty.strength = 2.0
            if call == 12:
                Ridge.strength = 0.0
            if call == 18:
                Ridge.term = lambda self, v: abs(v)
                Ridge.strength = 1.0
            yield f(0.2 * call), a, b


@scenario
def package_attribute_that_its_module_computes(compile):
    text = """
        _table = {"gravity": 9.81}

        def __getattr__(name):
            try:
                return _table[name]
            except KeyError:
                raise AttributeError(name) from None
    """
    with installed({"constants_of_nature.py": text}):
        import constants_of_nature as nature

        m = Value(0.2)
        f = compile(lambda h: m * nature.gravity * h)
        for call in range(1, 18):
            if call == 6:
                nature._table["gravity"] = 1.62
            if call == 12:
                nature.gravity = 3.71
            yield f(1.0 * call), m


@scenario
def package_generator_of_window_weights(compile):
    text = """
        width = 3

        def window():
            for k in range(width):
                yield 1.0 / (1 + k)
    """
    with installed({"windows/__init__.py": text}):
        import windows

        w = Value(1.0)
        f = compile(lambda xs: sum(g * w * x for g, x in zip(windows.window(), xs)))
        for call in range(1, 18):
            if call == 6:
                windows.width = 2
            if call == 12:
                windows.width = 4
            yield f([1.0, 0.1 * call, -1.0, 2.0]), w


# ------------------------------------------------------------------------------------------------ installed, effects


@scenario
def package_appends_to_its_log(compile):
    text = "log = []\n\ndef traced(x):\n    log.append('called')\n    return x + 1.0\n"
    with installed({"tracer_pkg/__init__.py": text}):
        import tracer_pkg

        w = Value(1.0)
        f = compile(lambda x: w * tracer_pkg.traced(x))
        for call in range(1, 21):
            yield f(0.1 * call), w
            yield len(tracer_pkg.log)


@scenario
def package_counts_its_calls_in_a_batch(compile):
    text = "calls = 0\n\ndef counted(x):\n    global calls\n    calls += 1\n    return x * 0.5\n"
    with installed({"meters.py": text}):
        import meters

        w = Value(-1.0)
        f = compile(lambda x: meters.counted(w * x))
        for call in range(1, 13):
            yield f.map([0.1 * call * k for k in range(9)])
            yield meters.calls
            yield f(0.1 * call), w
            yield meters.calls


@scenario
def package_memo_is_filled_key_by_key(compile):
    text = """
        memo = {}

        def factorial(n):
            if n not in memo:
                memo[n] = 1.0 if n < 2 else n * factorial(n - 1)
            return memo[n]
    """
    with installed({"memoised/__init__.py": text}):
        import memoised

        w = Value(2.0)
        f = compile(lambda x, n: w * x / memoised.factorial(n))
        for call in range(1, 24):
            yield f(0.5, (call * 3) % 7 if call > 5 else 2), w
            yield sorted(memoised.memo.items())


@scenario
def package_decorator_counts_and_scales(compile):
    text = """
        import functools

        def metered(function):
            @functools.wraps(function)
            def wrapper(*args):
                wrapper.calls += 1
                return wrapper.scale * function(*args)
            wrapper.calls, wrapper.scale = 0, 1.0
            return wrapper
    """
    with installed({"metering/__init__.py": text}):
        import metering

        w = Value(0.3)

        @metering.metered
        def helper(x):
            return w * x

        f = compile(lambda x: helper(x) + x)
        for call in range(1, 20):
            if call == 7:
                helper.scale = 5.0
            yield f(0.25 * call), w
            yield f.map([0.25 * call + 0.3 * k for k in range(9)])
            yield helper.calls


@scenario
def package_warns_at_each_call(compile):
    text = "import warnings\n\ndef old(x):\n    warnings.warn('old', DeprecationWarning, 2)\n    return 3 * x\n"
    with installed({"ageing.py": text}):
        import ageing

        w = Value(1.0)
        f = compile(lambda x: w * ageing.old(x))
        for call in range(1, 15):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                y = f(0.1 * call)
            yield y, w
            yield sum(issubclass(s.category, DeprecationWarning) for s in said)


@scenario
def package_draws_a_slot_from_its_pool(compile):
    text = """
        from collections import deque

        pool = deque([1.0, 2.0, 3.0])

        def next_factor():
            pool.rotate(1)
            return pool[0]
    """
    with installed({"pools/__init__.py": text}):
        import pools

        w = Value(1.0)
        f = compile(lambda x: w * x * pools.next_factor())
        for call in range(1, 18):
            yield f(0.5 + call), w
            yield list(pools.pool)


# ------------------------------------------------------------------------------------------------ editable, plain paths


@scenario
def editable_package_behind_a_pth_file(compile):
    def behind_a_pth(folder):
        packages = folder.parent / SITE
        packages.mkdir(parents=True)
        (packages / "__editable__.myproject.pth").write_text(str(folder) + "\n")
        before = list(sys.path)
        site.addsitedir(str(packages))
        return [path for path in sys.path if path not in before]

    text = "class Rates:\n    lr = 0.1\n\nrates = Rates()\n\ndef step(g):\n    return -rates.lr * g\n"
    with installed({"myproject/__init__.py": "", "myproject/rates.py": text}, "src", behind_a_pth):
        from myproject.rates import rates, step

        w = Value(3.0)
        f = compile(lambda x: (w + step(2 * x)) ** 2)
        for call in range(1, 20):
            if call == 6:
                rates.lr = 0.5
            if call == 12:
                type(rates).lr = 9.0
            if call == 13:
                del rates.lr
            yield f.mean([0.1 * call + 0.05 * k for k in range(64)]), w


@scenario
def source_folder_on_the_path(compile):
    text = """
        SETTINGS = {"model": {"alpha": 1.0, "layers": [0.5, 0.25]}}

        def alpha():
            return SETTINGS["model"]["alpha"]
    """
    with installed({"project_settings.py": text}, "home/me/project/src"):
        import project_settings as ps

        w = Value(1.0)
        f = compile(lambda x: w * x * ps.alpha() + sum(ps.SETTINGS["model"]["layers"]))
        for call in range(1, 22):
            if call == 6:
                ps.SETTINGS["model"]["alpha"] = -1.0
            if call == 12:
                ps.SETTINGS["model"] = {"alpha": 2.0, "layers": [8.0]}
            if call == 18:
                ps.SETTINGS["model"]["layers"].append(0.125)
            yield f(0.3 * call), w
            yield f.map([0.3 * call + 0.25 * k for k in range(9)])


@scenario
def namespace_package_in_two_folders(compile):
    with tempfile.TemporaryDirectory() as root:
        for part, text in {
            "one": "from corp.limits import bounds\n\ndef clip(x):\n    return min(max(x, bounds[0]), bounds[1])\n",
            "two": "bounds = [-1.0, 1.0]\n",
        }.items():
            folder = pathlib.Path(root, part, "corp")
            folder.mkdir(parents=True)
            (folder / ("clipping.py" if part == "one" else "limits.py")).write_text(text)
        sys.path[:0] = [root + "/one", root + "/two"]
        try:
            import corp.clipping
            import corp.limits

            w = Value(2.0)
            f = compile(lambda x: w * corp.clipping.clip(x))
            for call in range(1, 20):
                if call == 6:
                    corp.limits.bounds[1] = 0.25
                if call == 12:
                    corp.clipping.bounds = (-3.0, 3.0)
                yield f(0.3 * call - 2.0), w
        finally:
            del sys.path[:2]
            for name in ("corp", "corp.clipping", "corp.limits"):
                sys.modules.pop(name, None)


@scenario
def zipped_package(compile):
    with tempfile.TemporaryDirectory() as root:
        archive = root + "/wheelhouse.zip"
        with zipfile.ZipFile(archive, "w") as z:
            z.writestr("zipped/__init__.py", "OFFSET = 1.0\n\ndef shifted(x):\n    return x + OFFSET\n")
        sys.path.insert(0, archive)
        try:
            import zipped

            w = Value(0.5)
            f = compile(lambda x: zipped.shifted(w * x) ** 2)
            for call in range(1, 16):
                if call == 6:
                    zipped.OFFSET = -2.0
                yield f(0.4 * call), w
                yield f.map([0.4 * call + 0.3 * k for k in range(9)])
        finally:
            sys.path.remove(archive)
            sys.modules.pop("zipped", None)


# ------------------------------------------------------------------------------------------------ names of Python's own


@scenario
def own_module_named_code(compile):
    with installed({"code.py": "k = 1.0\n\ndef coded(x):\n    return k * x\n"}, "home/me/thesis"):
        import code

        w = Value(1.0)
        f = compile(lambda x: code.coded(w * x))
        for call in range(1, 18):
            if call == 6:
                code.k = 3.0
            yield f(0.1 * call), w


@scenario
def own_module_named_trace_with_a_class(compile):
    text = """
        class Trace:
            def __init__(self, decay):
                self.decay, self.values = decay, [1.0, 0.5]

            def eligibility(self, x):
                total = 0.0
                for value in self.values:
                    total = total * self.decay + value * x
                return total
    """
    with installed({"trace.py": text}, "home/me/rl"):
        from trace import Trace

        w, trace = Value(0.9), Trace(0.5)
        f = compile(lambda x: trace.eligibility(w * x))
        for call in range(1, 20):
            if call == 6:
                trace.decay = 0.9
            if call == 12:
                trace.values.append(0.25)
            yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def own_module_named_sched_counts_its_steps(compile):
    text = "steps = 0\n\ndef rate():\n    global steps\n    steps += 1\n    return 1.0 / (1 + steps)\n"
    with installed({"sched.py": text}):
        import sched

        w = Value(1.0)
        f = compile(lambda x: w * x * sched.rate())
        for call in range(1, 16):
            yield f(2.0), w
            yield sched.steps


@scenario
def own_module_named_sunau_in_a_mean(compile):
    with installed({"sunau.py": "gains = [1.0, 1.0]\n\ndef apply(x):\n    return gains[0] * x + gains[1]\n"}):
        import sunau

        w = Value(0.4)
        f = compile(lambda x: sunau.apply((w * x).tanh()))
        for call in range(1, 15):
            if call == 6:
                sunau.gains[0] = -2.0
            if call == 7:
                sunau.gains = [0.5, 0.25]
            yield f.mean([0.05 * k - 0.1 * call for k in range(64)]), w


@scenario
def own_package_with_a_module_named_types(compile):
    files = {
        "numbers_/__init__.py": "from .types import Unit\n",
        "numbers_/types.py": "class Unit:\n    factor = 1.0\n",
    }
    with installed(files):
        import numbers_
        import numbers_.types

        w = Value(1.0)
        f = compile(lambda x: w * x / numbers_.Unit.factor)
        for call in range(1, 18):
            if call == 6:
                numbers_.types.Unit.factor = 1000.0
            if call == 12:
                numbers_.Unit = type("Other", (), {"factor": 0.1})
            yield f(1.0 * call), w


# ------------------------------------------------------------------------------------------------ installed for real


@scenario
def attrs_class_with_slots(compile):
    import attrs

    @attrs.define
    class Config:
        lr: float = 0.1
        decay: float = attrs.field(default=0.5, converter=float)

    config, w = Config(), Value(2.0)
    f = compile(lambda x: w * x * config.lr - config.decay)
    for call in range(1, 20):
        if call == 6:
            config.lr = 0.3
        if call == 12:
            config.decay = "4"
        yield f.mean([1.0 * call + 0.05 * k for k in range(64)]), w


@scenario
def yaml_settings_loaded_anew(compile):
    import yaml

    state = {"cfg": yaml.safe_load("{opt: {lr: 0.1, betas: [0.9, 0.99]}, kind: adam}")}
    w = Value(1.0)

    def update(x):
        cfg = state["cfg"]
        step = cfg["opt"]["lr"] * x if cfg["kind"] == "adam" else -x
        return w * cfg["opt"]["betas"][0] - step

    f = compile(update)
    for call in range(1, 22):
        if call == 6:
            state["cfg"] = yaml.safe_load("{opt: {lr: 0.7, betas: [0.5, 0.99]}, kind: adam}")
        if call == 13:
            state["cfg"]["kind"] = "sgd"
        yield f(0.2 * call), w


@scenario
def pandas_row_read_inside(compile):
    import pandas as pd

    table = pd.DataFrame({"low": [0.0, 1.0], "high": [2.0, 3.0]}, index=["a", "b"])
    w = Value(0.5)
    f = compile(lambda x: w * x + float(table.loc["b", "high"]) * x)
    for call in range(1, 14):
        if call == 6:
            table.loc["b", "high"] = 30.0
        yield f(0.1 * call), w


@scenario
def scipy_interpolator_whose_table_changes(compile):
    from scipy.interpolate import interp1d

    held = [interp1d([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])]
    w = Value(1.0)
    f = compile(lambda x: w * float(held[0](x)))
    for call in range(1, 14):
        if call == 6:
            held[0] = interp1d([0.0, 1.0, 2.0], [5.0, 1.0, 0.0])
        yield f(0.5 * (call % 3)), w
