"""Scenarios of configuration: the usual kinds of objects that hold rates and modes, changed between calls."""

from __future__ import annotations

import argparse
import configparser
import contextvars
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import logging
import os
import pickle
import statistics
import threading
import types
import typing
import uuid
import warnings
from unittest import mock

import wengert
from tests.scenarios.kit import scenario
from wengert import Value, optim


@scenario
def argparse_namespace_rate_and_mode(compile):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--mode", choices=["l1", "l2"], default="l2")
    args = parser.parse_args([])
    w = Value(-1.5)
    f = compile(lambda x: args.lr * (abs(w * x) if args.mode == "l1" else (w * x) ** 2))
    for call in range(1, 22):
        if call == 6:
            args.lr = 3.0
        if call == 12:
            parser.parse_args(["--mode", "l1"], namespace=args)
        if call == 18:
            vars(args)["lr"] = 0.5
        yield f(0.3 * call), w
        yield f.map([0.3 * call + 0.3 * k for k in range(9)])


@scenario
def argparse_namespace_with_a_list_in_a_mean(compile):
    parser = argparse.ArgumentParser()
    parser.add_argument("--betas", type=float, nargs=2, default=[0.9, 0.99])
    args = parser.parse_args([])
    w = Value(0.8)
    f = compile(lambda x: args.betas[0] * w * x + args.betas[1])
    for call in range(1, 14):
        if call == 6:
            args.betas[0] = 0.5
        if call == 7:
            args = parser.parse_args(["--betas", "0.1", "0.2"])
        yield f.mean([0.1 * k - call for k in range(64)]), w


@scenario
def configparser_section_read_as_float(compile):
    config = configparser.ConfigParser()
    config.read_string("[train]\nlr = 0.5\nrounds = 2\nflip = no\n")
    w = Value(1.0)

    def step(x):
        section = config["train"]
        y = w * x
        for _ in range(section.getint("rounds")):
            y = y * section.getfloat("lr") + x
        return -y if section.getboolean("flip") else y

    f = compile(step)
    for call in range(1, 22):
        if call == 6:
            config["train"]["lr"] = "0.25"
        if call == 12:
            config.set("train", "rounds", "4")
        if call == 18:
            config["train"]["flip"] = "on"
        yield f(0.1 * call), w


@scenario
def configparser_default_section_shines_through(compile):
    config = configparser.ConfigParser({"scale": "2.0"})
    config.add_section("model")
    w = Value(0.3)
    f = compile(lambda x: w * x * float(config["model"]["scale"]))
    for call in range(1, 18):
        if call == 6:
            config["DEFAULT"]["scale"] = "5.0"
        if call == 13:
            config["model"]["scale"] = "-1"
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.25 * k for k in range(9)])


@scenario
def dataclass_config_nested(compile):
    @dataclasses.dataclass
    class Optimizer:
        lr: float = 0.1
        momentum: float = 0.9

    @dataclasses.dataclass
    class Config:
        name: str = "sgd"
        optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)

    config, w = Config(), Value(1.0)
    f = compile(lambda g: w - config.optimizer.lr * (g + config.optimizer.momentum * (config.name == "sgd")))
    for call in range(1, 24):
        if call == 6:
            config.optimizer.lr = 0.01
        if call == 12:
            config.optimizer = Optimizer(0.5, 0.0)
        if call == 18:
            config.name = "adam"
        yield f(0.7 * call), w


@scenario
def dataclass_with_slots_and_post_init(compile):
    @dataclasses.dataclass(slots=True)
    class Range:
        low: float
        high: float
        width: float = dataclasses.field(init=False)

        def __post_init__(self):
            self.width = self.high - self.low

        def scale(self, x):
            return (x - self.low) / self.width

    held, w = {"range": Range(0.0, 2.0)}, Value(1.0)
    f = compile(lambda x: w * held["range"].scale(x))
    for call in range(1, 20):
        if call == 6:
            held["range"].high = 8.0  # the width stays: it was made at the start
        if call == 7:
            held["range"].width = 0.5
        if call == 13:
            held["range"] = Range(-1.0, 1.0)
        yield f(0.1 * call), w


@scenario
def dataclass_defaults_are_class_attributes(compile):
    @dataclasses.dataclass
    class Noise:
        sigma: float = 1.0

    w = Value(2.0)

    def likelihood(x):
        noise = Noise()
        return -((x - w) ** 2) / (2 * noise.sigma**2) + Noise.sigma

    f = compile(likelihood)
    for call in range(1, 16):
        if call == 6:
            Noise.sigma = 3.0  # read by name; what __init__ gives is its own default
        if call == 12:
            Noise.__init__.__defaults__ = (0.5,)
        yield f(0.4 * call), w


@scenario
def simple_namespace_that_is_updated(compile):
    cfg = types.SimpleNamespace(lr=0.1, inner=types.SimpleNamespace(k=2))
    w = Value(1.0)
    f = compile(lambda x: w * x**cfg.inner.k * cfg.lr)
    for call in range(1, 21):
        if call == 6:
            cfg.__dict__.update(lr=0.7)
        if call == 12:
            cfg.inner.k = 3
        if call == 18:
            cfg.inner = types.SimpleNamespace(k=1)
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def mapping_proxy_over_a_dict(compile):
    base = {"alpha": 1.0, "beta": [0.5]}
    view = types.MappingProxyType(base)
    w = Value(1.0)
    f = compile(lambda x: w * x * view["alpha"] + view["beta"][-1])
    for call in range(1, 18):
        if call == 6:
            base["alpha"] = -2.0
        if call == 12:
            base["beta"].append(4.0)
        yield f.mean([0.2 * call + 0.05 * k for k in range(64)]), w


@scenario
def enum_of_modes_and_a_flag(compile):
    class Mode(enum.Enum):
        SUM = 1
        PRODUCT = 2

    class Terms(enum.Flag):
        BIAS = enum.auto()
        SQUARE = enum.auto()

    state = {"mode": Mode.SUM, "terms": Terms.BIAS}
    w = Value(1.4)

    def value(x):
        y = w + x if state["mode"] is Mode.SUM else w * x
        if Terms.SQUARE in state["terms"]:
            y = y * y
        return y + 1.0 if Terms.BIAS in state["terms"] else y

    f = compile(value)
    for call in range(1, 22):
        if call == 6:
            state["mode"] = Mode.PRODUCT
        if call == 12:
            state["terms"] |= Terms.SQUARE
        if call == 18:
            state["terms"] &= ~Terms.BIAS
        yield f.mean([0.3 * call + 0.02 * k for k in range(64)]), w


@scenario
def enum_with_methods_and_an_attribute_that_changes(compile):
    class Loss(enum.StrEnum):
        L1 = "l1"
        L2 = "l2"

        def of(self, e):
            return self.weight * (abs(e) if self is Loss.L1 else e * e)

    Loss.L1.weight, Loss.L2.weight = 1.0, 0.5
    w, chosen = Value(0.2), {"loss": Loss.L2}
    f = compile(lambda x: chosen["loss"].of(w - x))
    for call in range(1, 20):
        if call == 6:
            Loss.L2.weight = 4.0
        if call == 12:
            chosen["loss"] = Loss("l1")
        yield f(0.2 * call), w


@scenario
def environment_variable_as_a_rate(compile):
    w = Value(1.0)
    f = compile(lambda x: w * x * float(os.environ["WENGERT_TEST_RATE"]) + float(os.getenv("WENGERT_TEST_BIAS", "0")))
    with mock.patch.dict(os.environ, {"WENGERT_TEST_RATE": "0.5"}):
        for call in range(1, 18):
            if call == 6:
                os.environ["WENGERT_TEST_RATE"] = "2.5"
            if call == 12:
                os.environ["WENGERT_TEST_BIAS"] = "10"
            yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def context_variable_set_and_reset(compile):
    temperature = contextvars.ContextVar("temperature", default=1.0)
    w = Value(2.0)
    f = compile(lambda x: w * x / temperature.get())
    for call in range(1, 20):
        if call in (6, 7, 13):
            token = temperature.set(0.1 * call)
            y = f(0.5 * call)
            temperature.reset(token)
        else:
            y = f(0.5 * call)
        yield y, w


@scenario
def context_run_with_a_copy(compile):
    gain = contextvars.ContextVar("gain")
    gain.set(1.0)
    w = Value(-0.5)
    f = compile(lambda x: w * gain.get() * x)
    other = contextvars.copy_context()
    other.run(gain.set, 9.0)
    for call in range(1, 22):
        yield (other.run(f, 0.1 * call) if call in (6, 12, 19) else f(0.1 * call)), w


@scenario(documented="state inside of C extensions")
def decimal_context_precision(compile):
    w = Value(1.0)

    def third(x):
        return w * x * float(decimal.Decimal(1) / decimal.Decimal(3))

    f = compile(third)
    with decimal.localcontext() as context:
        for call in range(1, 18):
            if call == 6:
                context.prec = 2
            if call == 12:
                context.prec = 5
                context.rounding = decimal.ROUND_UP
            yield f(1.0 * call), w


@scenario
def fraction_of_the_settings(compile):
    settings = {"share": fractions.Fraction(1, 3)}
    w = Value(3.0)
    f = compile(lambda x: w * x * float(settings["share"]) + settings["share"].numerator)
    for call in range(1, 16):
        if call == 6:
            settings["share"] = fractions.Fraction(2, 7)
        if call == 12:
            settings["share"] += 1
        yield f(0.5 * call), w


@scenario
def statistics_of_a_history(compile):
    history = [1.0, 2.0, 4.0]
    w = Value(1.0)
    f = compile(lambda x: w * (x - statistics.fmean(history)) / statistics.stdev(history))
    for call in range(1, 16):
        if call in (6, 7, 12):
            history.append(0.5 * call)
        yield f(0.1 * call), w


@scenario
def normal_distribution_of_statistics(compile):
    prior = {"d": statistics.NormalDist(0.0, 1.0)}
    w = Value(0.5)
    f = compile(lambda x: w * x + prior["d"].mean / prior["d"].stdev)
    for call in range(1, 15):
        if call == 6:
            prior["d"] = statistics.NormalDist(2.0, 0.5)
        if call == 12:
            prior["d"] = prior["d"] * 2
        yield f(0.2 * call), w


@scenario
def learning_rate_of_an_optimizer_and_its_decay(compile):
    w = Value(2.0)
    adam = optim.Adam([w], lr=0.5)
    f = compile(lambda g: w - adam.lr * g)
    for call in range(1, 20):
        if call > 5:
            adam.lr = 0.5 * 0.9**call
        yield f(0.3 * call), w


@scenario
def momentum_schedule_in_a_mean(compile):
    w = Value(1.0)
    sgd = optim.SGD([w], lr=0.1)

    class Cosine:
        def __init__(self, optimizer):
            self.optimizer, self.turn = optimizer, 0

        def step(self):
            self.turn += 1
            self.optimizer.lr = 0.1 / (1 + self.turn)

    schedule = Cosine(sgd)
    f = compile(lambda x: (w - schedule.optimizer.lr * x) ** 2)
    for call in range(1, 10):
        if call > 5:
            schedule.step()
        yield f.mean([0.1 * k for k in range(64)]), w
        yield f.map([0.3 * k for k in range(9)])


@scenario
def json_that_is_parsed_inside(compile):
    document = ['{"a": 1.5, "tags": ["x"]}']
    w = Value(1.0)

    def value(x):
        parsed = json.loads(document[0])
        return w * x * parsed["a"] + len(parsed["tags"])

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            document[0] = '{"a": -1.5, "tags": []}'
        if call == 12:
            document[0] = json.dumps({"a": 0.25, "tags": [1, 2, 3]})
        yield f(0.3 * call), w


@scenario
def deep_copies_of_a_template_inside(compile):
    template = {"gains": [1.0, 2.0], "bias": 0.5}
    w = Value(1.0)

    def value(x):
        own = copy.deepcopy(template)
        own["gains"].append(x)
        return w * sum(own["gains"]) + own["bias"]

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            template["gains"][0] = 10.0
        if call == 12:
            template["bias"] = -1.0
        yield f(0.2 * call), w
        yield len(template["gains"])


@scenario
def pickled_settings_loaded_inside(compile):
    frozen = {"bytes": pickle.dumps((2.0, "up"))}
    w = Value(0.5)

    def value(x):
        scale, way = pickle.loads(frozen["bytes"])
        return w * x * scale if way == "up" else w * x / scale

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            frozen["bytes"] = pickle.dumps((2.0, "down"))
        if call == 12:
            frozen["bytes"] = pickle.dumps((7.0, "down"))
        yield f(1.0 + call), w


@scenario
def logging_level_decides(compile):
    logger = logging.getLogger("scenarios.level")
    logger.setLevel(logging.WARNING)
    w = Value(1.0)

    def value(x):
        y = w * x
        if logger.isEnabledFor(logging.DEBUG):
            y = y + 100.0
        return y

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            logger.setLevel(logging.DEBUG)
        if call == 12:
            logger.setLevel(logging.ERROR)
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.1 * k for k in range(9)])


@scenario
def logging_records_are_counted(compile):
    class Count(logging.Handler):
        seen = 0

        def emit(self, record):
            Count.seen += 1

    logger = logging.getLogger("scenarios.count")
    logger.propagate = False
    logger.addHandler(Count())
    logger.setLevel(logging.INFO)
    w = Value(1.0)

    def value(x):
        logger.info("x is %s", x)
        return w * x

    f = compile(value)
    for call in range(1, 14):
        yield f(0.1 * call), w
        yield Count.seen
    yield f.map([0.5] * 9)
    yield Count.seen


@scenario
def warnings_filter_turns_a_warning_into_an_error(compile):
    w = Value(2.0)

    def value(x):
        try:
            warnings.warn("near the edge", RuntimeWarning, stacklevel=1)
        except RuntimeWarning:
            return w * 0.0 - x
        return w * x

    f = compile(value)
    for call in range(1, 16):
        with warnings.catch_warnings():
            warnings.simplefilter("error" if call in (6, 12, 13) else "ignore", RuntimeWarning)
            y = f(0.4 * call)
        yield y, w


@scenario
def thread_local_settings(compile):
    local = threading.local()
    local.scale = 1.0
    w = Value(1.0)
    f = compile(lambda x: w * x * local.scale)
    for call in range(1, 18):
        if call == 6:
            local.scale = 6.0
        if call == 12:
            local.__dict__["scale"] = -6.0
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def event_and_semaphore_as_switches(compile):
    warm, w = threading.Event(), Value(1.0)
    f = compile(lambda x: w * x if warm.is_set() else w + x)
    for call in range(1, 18):
        if call == 6:
            warm.set()
        if call == 12:
            warm.clear()
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.25 * k for k in range(9)])


@scenario
def namedtuple_config_replaced_field_by_field(compile):
    class Hyper(typing.NamedTuple):
        lr: float = 0.1
        depth: int = 1

    state = {"h": Hyper()}
    w = Value(1.0)

    def value(x):
        lr, depth = state["h"]
        for _ in range(depth):
            x = x - lr * w * x
        return x + w

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            state["h"] = state["h"]._replace(lr=0.5)
        if call == 12:
            state["h"] = state["h"]._replace(depth=3)
        yield f(0.1 * call), w


@scenario
def dot_dict_in_the_manner_of_omegaconf(compile):
    class DotDict(dict):
        def __getattr__(self, name):
            try:
                found = self[name]
            except KeyError:
                raise AttributeError(name) from None
            return DotDict(found) if type(found) is dict else found

        __setattr__ = dict.__setitem__

    cfg, w = DotDict(model={"gain": 1.0}, lr=0.1), Value(0.9)
    f = compile(lambda x: w * x * cfg.model.gain - cfg.lr)
    for call in range(1, 20):
        if call == 6:
            cfg["model"]["gain"] = 3.0
        if call == 12:
            cfg.lr = 7.0
        yield f.mean([0.2 * call + 0.01 * k for k in range(64)]), w


@scenario
def dates_and_durations_of_a_schedule(compile):
    state = {"now": datetime.date(2024, 1, 1), "start": datetime.date(2023, 12, 31)}
    w = Value(1.0)
    f = compile(lambda x: w * x * (state["now"] - state["start"]).days)
    for call in range(1, 16):
        if call > 5:
            state["now"] += datetime.timedelta(days=call)
        yield f(0.5), w


@scenario
def experiment_id_in_a_dict_of_rates(compile):
    ids = [uuid.UUID(int=k) for k in range(3)]
    rates = dict(zip(ids, [0.1, 0.2, 0.3]))
    current = [ids[0]]
    w = Value(1.0)
    f = compile(lambda x: w * x * rates[current[0]])
    for call in range(1, 16):
        if call == 6:
            current[0] = uuid.UUID(int=2)
        if call == 12:
            rates[ids[2]] = 9.0
        yield f(1.0 * call), w


@scenario
def class_body_as_a_settings_module(compile):
    class Settings:
        class Model:
            width = 2.0

        class Train:
            clip = 1.0

    w = Value(1.0)
    f = compile(lambda x: wengert.clip(w * x * Settings.Model.width, -Settings.Train.clip, Settings.Train.clip))
    for call in range(1, 18):
        if call == 6:
            Settings.Train.clip = 0.5
        if call == 12:
            Settings.Model = type("Model", (), {"width": -0.25})
        yield f.mean([0.2 * call + 0.05 * k for k in range(64)]), w


@scenario
def pydantic_like_model_with_validation_on_set(compile):
    class Model:
        fields = {"lr": float, "name": str}

        def __init__(self, **values):
            for name, value in values.items():
                setattr(self, name, value)

        def __setattr__(self, name, value):
            object.__setattr__(self, name, self.fields[name](value))

    model, w = Model(lr="0.5", name="a"), Value(1.0)
    f = compile(lambda x: w * x * model.lr + len(model.name))
    for call in range(1, 18):
        if call == 6:
            model.lr = "2"
        if call == 12:
            model.name = "abc"
        yield f(0.1 * call), w
