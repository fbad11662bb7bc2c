"""Settings that hang on what the language has anyway: modules, globals, closures, defaults, the environment."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import sys
import types
from contextvars import ContextVar

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value

XS = [0.1 * i - 0.4 for i in range(9)]
MANY = [0.03 * i - 1.0 for i in range(64)]


@scenario
def environment_variable_is_read_as_a_float(compile):
    os.environ["SCENARIO_RATE"] = "0.5"
    w = Value(2.0)
    f = compile(lambda x: w * x * float(os.environ["SCENARIO_RATE"]))
    for k in range(20):
        if k in (5, 12):
            os.environ["SCENARIO_RATE"] = str(0.25 * k)
        yield f(0.5), w


@scenario
def environment_variable_is_a_switch(compile):
    os.environ.pop("SCENARIO_DEBUG", None)
    w = Value(2.0)
    f = compile(lambda x: w * x if os.getenv("SCENARIO_DEBUG") is None else w * x + 100.0)
    for k in range(20):
        if k == 5:
            os.environ["SCENARIO_DEBUG"] = "1"
        if k == 13:
            del os.environ["SCENARIO_DEBUG"]
        yield f.map(XS)
        yield f(0.5), w


@scenario
def environment_is_read_by_a_helper_with_a_default(compile):
    def setting(name, default):
        return type(default)(os.environ.get(f"SCENARIO_{name}", default))

    w = Value(2.0)
    f = compile(lambda x: w * x ** setting("POWER", 2) + setting("SHIFT", 0.0))
    for k in range(20):
        if k == 5:
            os.environ.update(SCENARIO_POWER="3")
        if k == 12:
            os.environ.setdefault("SCENARIO_SHIFT", "1.5")
        yield f(0.5), w


SCALE: ContextVar[float] = ContextVar("SCALE", default=1.0)


@scenario
def context_variable_is_set_and_reset(compile):
    w = Value(2.0)
    f = compile(lambda x: w * x * SCALE.get())
    for k in range(22):
        if k == 5:
            token = SCALE.set(3.0)
        if k == 13:
            SCALE.reset(token)
        yield f(0.5), w


@scenario
def call_runs_in_another_context(compile):
    w, other = Value(2.0), contextvars.copy_context()
    other.run(SCALE.set, 5.0)
    f = compile(lambda x: w * x * SCALE.get())
    for k in range(20):
        yield (other.run(f, 0.5) if k in (5, 6, 9, 12) else f(0.5)), w


@contextlib.contextmanager
def scaled(number):
    token = SCALE.set(number)
    try:
        yield
    finally:
        SCALE.reset(token)


@scenario
def context_manager_sets_a_variable_around_a_batch(compile):
    w = Value(2.0)
    f = compile(lambda x: w * x * SCALE.get() if SCALE.get(0.0) else w * x)
    for k in range(16):
        with scaled(1.0 + k) if k in (5, 6, 12) else contextlib.nullcontext():
            yield f.mean(MANY), w
            yield f.map(XS)


RATE, MODE, TABLE = 0.5, "plain", [1.0, 2.0]


@scenario
def globals_are_assigned(compile):
    global RATE, MODE
    w = Value(2.0)
    f = compile(lambda x: w * x * RATE if MODE == "plain" else (w * x * RATE).tanh())
    for k in range(20):
        if k == 5:
            RATE = 1.5
        if k == 12:
            MODE = "tanh"
        yield f(0.5), w


@scenario
def globals_are_written_through_their_dict(compile):
    w = Value(2.0)
    f = compile(lambda x: w * x + sum(TABLE))
    for k in range(22):
        if k == 5:
            globals()["TABLE"] = [5.0]
        if k == 11:
            TABLE.append(1.0)
        if k == 17:
            globals().update(TABLE=())
        yield f(0.5), w


@scenario
def global_is_deleted_and_comes_back(compile):
    global LATE
    w, LATE = Value(2.0), 1.0
    f = compile(lambda x: (w * x * LATE).data)
    for k in range(20):
        if k == 5:
            del LATE
        if k == 12:
            LATE = 3.0
        yield attempt(f, 0.5)


@scenario
def settings_module_is_assigned_to(compile):
    settings = types.ModuleType("settings")
    settings.RATE, settings.NESTED = 0.5, types.ModuleType("settings.nested")
    settings.NESTED.SHIFT = 0.0
    w = Value(2.0)
    f = compile(lambda x: w * x * settings.RATE + settings.NESTED.SHIFT)
    for k in range(22):
        if k == 5:
            settings.RATE = 1.0
        if k == 11:
            settings.NESTED.SHIFT = 2.0
        if k == 17:
            settings.NESTED = types.SimpleNamespace(SHIFT=-1.0)
        yield f(0.5), w


@scenario
def settings_module_is_looked_up_and_replaced(compile):
    def installed(rate):
        module = types.ModuleType("scenario_settings")
        module.rate = rate
        sys.modules["scenario_settings"] = module

    def current():
        return sys.modules["scenario_settings"].rate

    installed(1.0)
    w = Value(2.0)
    f = compile(lambda x: w * x * current())
    for k in range(20):
        if k in (5, 12):
            installed(1.0 + k)
        yield f(0.5), w


@scenario
def settings_module_is_imported_inside(compile):
    sys.modules["scenario_late"] = module = types.ModuleType("scenario_late")
    module.rate = 1.0
    w = Value(2.0)

    @compile
    def f(x):
        import scenario_late

        return w * x * scenario_late.rate

    for k in range(20):
        if k in (5, 12):
            module.rate += 1.0
        yield f(0.5), w


@scenario
def code_of_a_settings_module_is_run_again(compile):
    module, w = types.ModuleType("reloaded"), Value(2.0)
    exec("rate = 1.0\ndef scale(x): return rate * x", vars(module))
    f = compile(lambda x: w * module.scale(x))
    for k in range(20):
        if k == 5:
            exec("rate = 2.0", vars(module))
        if k == 12:
            exec("def scale(x): return rate * x * x", vars(module))
        yield f(0.3), w


@scenario
def module_with_a_getattr_of_its_own(compile):
    store, module, w = {"rate": 1.0}, types.ModuleType("dynamic"), Value(2.0)
    module.__getattr__ = lambda name: store[name]
    f = compile(lambda x: w * x * module.rate)
    for k in range(20):
        if k == 5:
            store["rate"] = 2.0
        if k == 12:
            module.rate = 7.0
        yield f(0.5), w


def counter(start):
    count = start

    def bump(by):
        nonlocal count
        count += by

    return bump, lambda: count


@scenario
def nonlocal_number_is_bumped_by_a_sibling(compile):
    bump, count = counter(1.0)
    w = Value(2.0)
    f = compile(lambda x: w * x * count())
    for k in range(20):
        if k in (5, 12):
            bump(0.5)
        yield f(0.5), w


@scenario
def cell_of_a_closure_is_written(compile):
    def made(rate):
        return lambda x: rate * x

    scale, w = made(1.0), Value(2.0)
    f = compile(lambda x: w * scale(x))
    for k in range(20):
        if k in (5, 12):
            scale.__closure__[0].cell_contents = 1.0 + k
        yield f.mean(MANY), w


@scenario
def closure_three_functions_deep(compile):
    rate, w = 1.0, Value(2.0)

    def outer(x):
        def middle(y):
            def inner(z):
                return rate * z

            return inner(y) + rate

        return middle(x) * w

    f = compile(outer)
    for k in range(20):
        if k in (5, 12):
            rate += 1.5
        yield f(0.5), w


@scenario
def defaults_are_replaced(compile):
    def scale(x, by=1.0, *, shift=0.0):
        return by * x + shift

    w = Value(2.0)
    f = compile(lambda x: w * scale(x))
    for k in range(22):
        if k == 5:
            scale.__defaults__ = (2.0,)
        if k == 11:
            scale.__kwdefaults__ = {"shift": 1.0}
        if k == 17:
            scale.__kwdefaults__["shift"] = -1.0
        yield f(0.5), w


@scenario
def defaults_of_the_compiled_function_itself(compile):
    def f(x, scale=1.0, table=[1.0]):
        return x * scale + sum(table)

    g = compile(f)
    for k in range(22):
        if k == 5:
            f.__defaults__[1].append(2.0)
        if k == 11:
            f.__defaults__ = (3.0, [4.0])
        yield g(Value(0.5))
        yield g(0.5, 2.0)


@scenario
def default_is_a_sentinel_that_stands_for_a_setting(compile):
    settings, missing, w = {"scale": 1.0}, object(), Value(2.0)

    def scale(x, by=missing):
        return x * (settings["scale"] if by is missing else by)

    f = compile(lambda x: w * scale(x))
    for k in range(20):
        if k == 5:
            settings["scale"] = 4.0
        if k == 12:
            scale.__defaults__ = (0.5,)
        yield f(0.5), w


@scenario
def attribute_of_a_function(compile):
    def scale(x):
        return x * scale.by

    scale.by, w = 1.0, Value(2.0)
    f = compile(lambda x: w * scale(x))
    for k in range(20):
        if k == 5:
            scale.by = 3.0
        if k == 12:
            scale.__dict__["by"] = "x"
        yield attempt(lambda: f(0.5).data)


@scenario
def setting_in_a_partial(compile):
    def scale(by, x, *, shift=0.0):
        return by * x + shift

    step, w = functools.partial(scale, 1.0, shift=0.5), Value(2.0)
    f = compile(lambda x: w * step(x))
    for k in range(22):
        if k == 5:
            step = functools.partial(scale, 3.0, shift=0.5)
        if k == 11:
            step.keywords["shift"] = 2.0
        if k == 17:
            step = functools.partial(step, shift=-1.0)
        yield f(0.5), w


@scenario
def setting_is_kept_in_a_list_of_one(compile):
    rate, w = [1.0], Value(2.0)

    def scaled(x):
        return x * rate[0]

    f = compile(lambda x: w * scaled(x))
    for k in range(22):
        if k == 5:
            rate[0] = 2.0
        if k == 11:
            rate[:] = [3.0, 4.0]
        if k == 17:
            rate.insert(0, Value(5.0))
        yield f(0.5), w


@scenario
def stack_of_settings_is_pushed_and_popped(compile):
    stack, w = [{"scale": 1.0}], Value(2.0)
    f = compile(lambda x: w * x * stack[-1]["scale"])
    for k in range(22):
        if k == 5:
            stack.append({"scale": 2.0})
        if k == 11:
            stack[0]["scale"] = 9.0
        if k == 17:
            stack.pop()
        yield f.map(XS)
        yield f(0.5), w


@scenario
def state_of_wengert_itself_is_switched(compile):
    """Under `no_grad` the result has no graph; the recording was made with one."""
    w = Value(2.0)
    f = compile(lambda x: (w * x).tanh())
    for k in range(20):
        with wengert.no_grad() if k in (5, 9, 10) else contextlib.nullcontext():
            result = f(0.1 * k)
        yield result, w
