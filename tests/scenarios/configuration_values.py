"""What a setting is: a float, an int, a str, a bool, None, a list, a Value, an array; and it becomes another kind."""

from __future__ import annotations

import collections
import datetime
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses

XS = [0.1 * i - 0.4 for i in range(9)]
MANY = [0.03 * i - 1.0 for i in range(64)]
HOLDERS = {
    "namespace": lambda: types.SimpleNamespace(it=None),
    "class": lambda: type("Holder", (), {"it": None}),
    "instance": lambda: type("Holder", (), {})(),
    "function": lambda: lambda: None,
    "module": lambda: types.ModuleType("holder"),
}


@scenario(each=HOLDERS)
def kind_of_a_setting_changes(compile, holder):
    """A float becomes an int, a bool, a Value, a number of NumPy, a fraction."""
    cfg, w, learnt = holder(), Value(2.0), Value(0.3)
    kinds = [1.5, 2, True, learnt, np.float64(0.7), Fraction(1, 4)]
    cfg.it = kinds[0]
    f = compile(lambda x: w * x * cfg.it)
    for k in range(36):
        if k and k % 6 == 0:
            cfg.it = kinds[k // 6]
        yield f(0.5), w, learnt


@scenario
def exponent_is_an_int_and_then_a_float(compile):
    cfg, w = {"p": 2}, Value(1.5)
    f = compile(lambda x: (w * x) ** cfg["p"])
    for k in range(22):
        if k == 5:
            cfg["p"] = 3
        if k == 11:
            cfg["p"] = 2.5
        if k == 17:
            cfg["p"] = -1
        yield f(0.5 + 0.1 * k), w


@scenario
def number_of_rounds_is_a_setting(compile):
    cfg, w = types.SimpleNamespace(rounds=2), Value(0.9)

    @compile
    def f(x):
        for _ in range(cfg.rounds):
            x = (w * x).sin()
        return x

    for k in range(22):
        if k in (5, 11):
            cfg.rounds += 1
        if k == 17:
            cfg.rounds = 1
        yield f.mean([0.1 + x * x for x in MANY]), w
        yield f(Value(0.4)), w


@scenario
def result_is_an_int_or_a_float_by_setting(compile):
    cfg = {"exact": True}
    f = compile(lambda n: n // 2 if cfg["exact"] else n / 2)
    for k in range(20):
        if k in (5, 12):
            cfg["exact"] = not cfg["exact"]
        yield f(k)


@scenario
def flag_is_none_then_true_then_false(compile):
    cfg, w = {"flip": None}, Value(2.0)
    f = compile(lambda x: w * x if cfg["flip"] is None else -w * x if cfg["flip"] else w * x * x)
    for k in range(20):
        if k == 5:
            cfg["flip"] = True
        if k == 12:
            cfg["flip"] = False
        yield f(0.4), w


@scenario
def loss_is_named_by_a_string(compile):
    cfg, w = {"loss": "mse"}, Value(0.8)
    f = compile(lambda x, y: getattr(losses, cfg["loss"])(w * x, y))
    targets = [0.5 * (i % 3) for i in range(64)]
    for k in range(18):
        if k == 5:
            cfg["loss"] = "huber"
        if k == 11:
            cfg["loss"] = "mae"
        yield f.mean(MANY, targets), w
        yield f(0.7, 0.1), w


OPERATIONS = {"tanh": wengert.tanh, "exp": wengert.exp}


@scenario
def operation_is_looked_up_by_name(compile):
    cfg, w = {"name": "tanh"}, Value(0.8)
    f = compile(lambda x: OPERATIONS[cfg["name"]](w * x))
    for k in range(22):
        if k == 5:
            cfg["name"] = "exp"
        if k == 11:
            OPERATIONS["exp"] = wengert.sin
        if k == 17:
            OPERATIONS.update(exp=lambda z: z * z)
        yield f(0.5), w


@scenario
def pipeline_is_a_list_of_names(compile):
    steps, w = ["double", "shift"], Value(0.8)
    known = {"double": lambda z: 2.0 * z, "shift": lambda z: z + 1.0, "square": lambda z: z * z}

    @compile
    def f(x):
        y = w * x
        for name in steps:
            y = known[name](y)
        return y

    for k in range(22):
        if k == 5:
            steps.reverse()
        if k == 11:
            steps.append("square")
        if k == 17:
            known["shift"] = lambda z: z - 1.0
        yield f(0.5), w
        yield f.map(XS)


@scenario
def list_of_numbers_grows_and_shrinks(compile):
    coefficients, w = [1.0, 2.0], Value(0.8)
    f = compile(lambda x: sum(c * (w * x) ** i for i, c in enumerate(coefficients)))
    for k in range(24):
        if k == 5:
            coefficients.append(3.0)
        if k == 11:
            coefficients[0] = -1.0
        if k == 17:
            del coefficients[1:]
        yield f(0.5) + w, w


@scenario
def list_of_numbers_gets_a_value(compile):
    coefficients, w, extra = [1.0, 2.0, 3.0], Value(0.8), Value(0.5)
    f = compile(lambda x: wengert.dot([c * w for c in coefficients], [x, x * x, 1.0]))
    for k in range(22):
        if k == 5:
            coefficients[1] = extra
        if k == 11:
            coefficients[2] = 7
        if k == 17:
            coefficients.sort(key=lambda c: float(getattr(c, "data", c)))
        yield f(0.5), w, extra


@scenario
def tuple_of_bounds_is_replaced(compile):
    cfg, w = types.SimpleNamespace(bounds=(-1.0, 1.0)), Value(2.0)
    f = compile(lambda x: wengert.clip(w * x, *cfg.bounds))
    for k in range(20):
        if k == 5:
            cfg.bounds = (-0.5, 0.5)
        if k == 12:
            cfg.bounds = (0, 10)
        yield f(0.4), w
        yield f.map(XS)


@scenario
def set_of_active_features(compile):
    active, w = {0, 2}, [Value(1.0), Value(2.0), Value(3.0)]
    f = compile(lambda x: sum(wi * xi for i, (wi, xi) in enumerate(zip(w, x, strict=True)) if i in active))
    for k in range(22):
        if k == 5:
            active.add(1)
        if k == 11:
            active.discard(0)
        if k == 17:
            active ^= {0, 1}
        yield f([0.5, 0.1 * k, -1.0]), w


@scenario
def frozen_set_is_replaced(compile):
    cfg, w = {"skip": frozenset({1})}, Value(2.0)
    f = compile(lambda x: w * sum(x**i for i in range(4) if i not in cfg["skip"]))
    for k in range(20):
        if k == 5:
            cfg["skip"] |= {2}
        if k == 12:
            cfg["skip"] = frozenset()
        yield f(0.5), w


@scenario
def array_is_changed_in_place(compile):
    table, w = np.array([1.0, 2.0, 3.0]), Value(2.0)
    f = compile(lambda x: w * x * table[1] + table.sum())
    for k in range(24):
        if k == 5:
            table[1] = 5.0
        if k == 11:
            table *= 2.0
        if k == 17:
            table.fill(0.5)
        yield f(0.5), w


@scenario
def array_is_replaced_by_one_of_another_shape(compile):
    cfg, w = {"kernel": np.ones(3)}, Value(0.5)

    @compile
    def f(xs):
        kernel = cfg["kernel"]
        return sum(w * xs[i] * kernel[i] for i in range(len(kernel)))

    rows = np.arange(45.0).reshape(9, 5)
    for k in range(22):
        if k == 5:
            cfg["kernel"] = np.linspace(0.0, 1.0, 5)
        if k == 11:
            cfg["kernel"] = np.array([2, 3])
        if k == 17:
            cfg["kernel"] = [1.0, -1.0, 1.0]
        yield f(rows[k % 9]), w
        yield f.map(rows)


@scenario
def array_of_integers_chooses(compile):
    order, w = np.array([0, 1, 2]), [Value(1.0), Value(2.0), Value(3.0)]
    f = compile(lambda x: sum(w[i] * xi for i, xi in zip(order.tolist(), x, strict=True)))
    for k in range(20):
        if k == 5:
            order[:] = [2, 1, 0]
        if k == 12:
            order = np.roll(order, 1)
        yield f([1.0, 10.0, 100.0 + k]), w


@scenario
def boolean_mask_of_numpy(compile):
    mask, w = np.array([True, False, True]), [Value(1.0), Value(2.0), Value(3.0)]
    f = compile(lambda x: sum(wi * x for wi, on in zip(w, mask, strict=True) if on))
    for k in range(20):
        if k == 5:
            mask[1] = True
        if k == 12:
            np.logical_not(mask, out=mask)
            mask[2] = True
        yield f(0.1 * k + 0.1), w


@scenario
def view_of_an_array_follows_it(compile):
    data, w = np.zeros((4, 3)), Value(2.0)
    row = data[1]
    f = compile(lambda x: w * x + row[2])
    for k in range(20):
        if k == 5:
            data[1, 2] = 9.0
        if k == 12:
            data += 1.0
        yield f.mean(MANY), w


@scenario
def setting_is_a_value_whose_number_moves(compile):
    cfg, w = types.SimpleNamespace(temperature=Value(1.0)), Value(2.0)
    f = compile(lambda x: w * x / cfg.temperature)
    for k in range(24):
        cfg.temperature.data += 0.01
        if k == 5:
            cfg.temperature = Value(3.0)
        if k == 11:
            cfg.temperature = 2.0
        if k == 17:
            cfg.temperature = w
        yield f(0.5), w, [cfg.temperature, Value(0.0)]
        if not isinstance(cfg.temperature, Value):
            cfg.temperature = Value(cfg.temperature)


@scenario
def list_of_dicts_describes_the_terms(compile):
    terms, w = [{"power": 1, "factor": 2.0}, {"power": 2, "factor": -1.0, "off": True}], Value(0.5)
    f = compile(lambda x: sum(t["factor"] * (w * x) ** t["power"] for t in terms if not t.get("off")))
    for k in range(24):
        if k == 5:
            terms[1]["off"] = False
        if k == 11:
            terms[0].update(power=3, factor=0.5)
        if k == 17:
            terms.append(dict(terms[0], power=4))
        yield f(0.5), w


@scenario
def text_decides_by_its_length_and_its_letters(compile):
    cfg, w = {"name": "ab"}, Value(2.0)
    f = compile(lambda x: w * x * len(cfg["name"]) + (1.0 if cfg["name"].startswith("a") else 0.0))
    for k in range(22):
        if k == 5:
            cfg["name"] += "c"
        if k == 11:
            cfg["name"] = cfg["name"][::-1]
        if k == 17:
            cfg["name"] = ""
        yield f(0.5), w


@scenario
def date_and_timedelta(compile):
    cfg, w = {"start": datetime.date(2024, 1, 1), "end": datetime.date(2024, 2, 1)}, Value(0.01)
    f = compile(lambda x: w * x * (cfg["end"] - cfg["start"]).days)
    for k in range(20):
        if k == 5:
            cfg["end"] = datetime.date(2024, 3, 1)
        if k == 12:
            cfg["start"] += datetime.timedelta(days=10)
        yield f(2.0), w


@scenario
def decimal_is_turned_into_a_float(compile):
    cfg, w = {"price": Decimal("1.10")}, Value(2.0)
    f = compile(lambda x: w * x * float(cfg["price"]))
    for k in range(20):
        if k in (5, 12):
            cfg["price"] += Decimal("0.25")
        yield f(0.5), w


@scenario
def slice_and_range_are_settings(compile):
    cfg, w = {"window": slice(0, 3), "lags": range(1, 3)}, [Value(0.1 * i) for i in range(6)]
    f = compile(lambda x: x * sum(w[cfg["window"]]) + sum(w[lag] for lag in cfg["lags"]))
    for k in range(20):
        if k == 5:
            cfg["window"] = slice(2, None, 2)
        if k == 12:
            cfg["lags"] = range(0, 6, 2)
        yield f(0.5), w


@scenario
def window_in_a_deque_slides(compile):
    history, w = collections.deque([1.0, 2.0, 3.0], maxlen=3), Value(0.5)
    f = compile(lambda x: w * x * sum(history) / len(history))
    for k in range(22):
        if k in (5, 11):
            history.append(float(k))
        if k == 17:
            history.clear()
            history.append(1.0)
        yield f(0.5), w


@scenario
def number_becomes_nan_and_infinite(compile):
    cfg, w = {"scale": 1.0}, Value(2.0)
    f = compile(lambda x: w * x * cfg["scale"])
    for k in range(24):
        if k == 5:
            cfg["scale"] = float("inf")
        if k == 11:
            cfg["scale"] = float("nan")
        if k == 17:
            cfg["scale"] = -0.0
        yield f(0.5), w


@scenario
def wrong_kind_raises_what_it_raised(compile):
    cfg, w = {"scale": 1.0}, Value(2.0)
    f = compile(lambda x: (w * x * cfg["scale"]).data)
    for k in range(30):
        if k == 5:
            cfg["scale"] = "two"
        if k == 11:
            cfg["scale"] = 3
        if k == 17:
            cfg["scale"] = None
        if k == 23:
            cfg["scale"] = [1.0]
        yield attempt(f, 0.5)


@scenario
def large_integer_setting(compile):
    cfg, w = {"seed": 7}, Value(2.0)
    f = compile(lambda x: w * x + cfg["seed"] % 10)
    for k in range(20):
        if k == 5:
            cfg["seed"] = 2**70 + 3
        if k == 12:
            cfg["seed"] = -(2**64)
        yield f(0.5), w
