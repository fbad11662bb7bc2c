"""Settings in namespaces and mappings: argparse, SimpleNamespace, dicts and what resembles them, configparser."""

from __future__ import annotations

import argparse
import collections
import configparser
import json
import types
from collections.abc import Mapping, MutableMapping

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses

XS = [0.1 * i - 0.4 for i in range(9)]
MANY = [0.03 * i - 1.0 for i in range(64)]


# ------------------------------------------------------------------------------------------------ namespaces


@scenario
def argparse_namespace_attribute_is_raised(compile):
    args, w = argparse.Namespace(lr=1.0), Value(1.0)
    f = compile(lambda x: w * x * args.lr)
    for k in range(24):
        if k in (5, 11, 21):
            args.lr += 0.5
        yield f(0.5), w


@scenario
def argparse_namespace_in_batches(compile):
    args, w = argparse.Namespace(lr=1.0), Value(1.0)
    f = compile(lambda x: w * x * args.lr)
    for k in range(24):
        if k in (5, 11, 21):
            args.lr += 0.5
        yield f.map(XS)
        yield f.mean(MANY), w


def parsed(*words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--power", type=int, default=1)
    parser.add_argument("--negate", action="store_true")
    parser.add_argument("--loss", choices=["mse", "mae"], default="mse")
    return parser.parse_args(words)


@scenario
def arguments_are_parsed_anew(compile):
    args, w = parsed(), Value(0.5)

    @compile
    def f(x):
        y = args.scale * (w * x) ** args.power
        return -y if args.negate else y

    for k in range(24):
        if k == 5:
            args = parsed("--scale", "2.5")
        if k == 11:
            args = parsed("--power", "3")
        if k == 17:
            args = parsed("--negate", "--scale", "0.5")
        yield f(0.3 + 0.1 * k), w


@scenario
def arguments_are_parsed_into_the_same_namespace(compile):
    args, w = parsed(), Value(0.5)
    f = compile(lambda x, y: getattr(losses, args.loss)(w * x, y) * args.scale)
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss")
    parser.add_argument("--scale", type=float)
    for k in range(20):
        if k == 5:
            parser.parse_args(["--loss", "mae", "--scale", "1"], namespace=args)
        if k == 12:
            parser.parse_args(["--scale", "3", "--loss", "mse"], namespace=args)
        yield f(XS[k % 9], 1.0), w


@scenario
def namespace_attribute_is_deleted_and_a_default_used(compile):
    args, w = argparse.Namespace(clip=0.5), Value(2.0)
    f = compile(lambda x: wengert.clip(w * x, -getattr(args, "clip", 9.0), getattr(args, "clip", 9.0)))
    for k in range(22):
        if k == 5:
            del args.clip
        if k == 13:
            setattr(args, "clip", 0.1)  # noqa: B010
        yield f(0.4), w


@scenario
def vars_of_a_namespace(compile):
    args, w = argparse.Namespace(a=1.0, b=2.0), Value(1.5)
    f = compile(lambda x: w * sum(vars(args).values()) * x)
    for k in range(22):
        if k == 5:
            args.a = 5.0
        if k == 11:
            vars(args)["c"] = 3.0
        if k == 17:
            del args.b
        yield f(0.5), w


@scenario
def simple_namespace_three_deep(compile):
    cfg = types.SimpleNamespace(train=types.SimpleNamespace(optim=types.SimpleNamespace(lr=0.1)))
    w = Value(3.0)
    f = compile(lambda x: w * x * cfg.train.optim.lr)
    for k in range(22):
        if k == 5:
            cfg.train.optim.lr = 0.2
        if k == 11:
            cfg.train.optim = types.SimpleNamespace(lr=0.3)
        if k == 17:
            cfg = types.SimpleNamespace(train=types.SimpleNamespace(optim=types.SimpleNamespace(lr=0.4)))
        yield f.mean(MANY), w
        yield f(0.5), w


@scenario
def simple_namespace_whose_dict_is_updated(compile):
    cfg, w = types.SimpleNamespace(gain=1.0, mode="plain"), Value(1.0)
    f = compile(lambda x: (w * x).tanh() * cfg.gain if cfg.mode == "tanh" else w * x * cfg.gain)
    for k in range(20):
        if k == 5:
            cfg.__dict__.update(mode="tanh")
        if k == 12:
            cfg.__dict__["gain"] = 4.0
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ dicts


@scenario
def dict_of_dicts_of_dicts(compile):
    cfg, w = {"train": {"loss": {"weight": 1.0}}}, Value(2.0)
    f = compile(lambda x: cfg["train"]["loss"]["weight"] * (w * x) ** 2)
    for k in range(22):
        if k == 5:
            cfg["train"]["loss"]["weight"] = 2.0
        if k == 11:
            cfg["train"] = {"loss": {"weight": 3.0}}
        if k == 17:
            cfg["train"]["loss"] = {"weight": 5}
        yield f.map(XS)
        yield f(0.5), w


@scenario
def key_that_is_missing_has_a_default(compile):
    cfg, w = {}, Value(2.0)
    f = compile(lambda x: w * x + cfg.get("shift", 0.0))
    for k in range(22):
        if k == 5:
            cfg["shift"] = 1.0
        if k == 11:
            cfg.pop("shift")
        if k == 17:
            cfg.setdefault("shift", -1.0)
        yield f(0.5), w


@scenario
def key_decides_by_being_there(compile):
    cfg, w = {"l2": 0.1}, Value(2.0)

    @compile
    def f(x):
        loss = w * x
        if "l2" in cfg:
            loss = loss + cfg["l2"] * w * w
        return loss

    for k in range(20):
        if k == 5:
            del cfg["l2"]
        if k == 13:
            cfg["l2"] = 0.5
        yield f(0.5), w


@scenario
def missing_key_raises(compile):
    cfg, w = {"scale": 2.0}, Value(1.0)
    f = compile(lambda x: (w * x * cfg["scale"]).data)
    for k in range(20):
        if k == 6:
            scale = cfg.pop("scale")
        if k == 12:
            cfg["scale"] = scale + 1.0
        yield attempt(f, 0.5)


@scenario
def items_of_a_dict_are_summed_in_order(compile):
    terms, w = {"a": 1.0, "b": -2.0}, Value(0.5)

    @compile
    def f(x):
        total = 0.0
        for n, (name, factor) in enumerate(terms.items()):
            total += factor * w * x ** (n + 1) + len(name)
        return total

    for k in range(22):
        if k == 5:
            terms["ccc"] = 3.0
        if k == 11:
            terms["a"] = terms.pop("a")  # now the last
        if k == 17:
            terms.clear()
        yield f(0.5) + w, w


@scenario
def overrides_are_merged_at_each_call(compile):
    base, override, w = {"a": 1.0, "b": 2.0}, {}, Value(1.5)

    @compile
    def f(x):
        cfg = {**base, **override}
        return w * x * cfg["a"] + cfg["b"]

    for k in range(22):
        if k == 5:
            override["b"] = 7.0
        if k == 11:
            base |= {"a": 3.0}
        if k == 17:
            override.clear()
        yield f.mean(MANY), w


@scenario
def configuration_is_loaded_from_json(compile):
    texts = ['{"layers": [1.0, 2.0], "on": true}', '{"layers": [3.0], "on": true}', '{"layers": [], "on": null}']
    cfg, w = json.loads(texts[0]), Value(1.0)
    f = compile(lambda x: w * x + sum(cfg["layers"]) if cfg["on"] else w * x - 1)
    for k in range(22):
        if k == 6:
            cfg = json.loads(texts[1])
        if k == 12:
            cfg.update(json.loads(texts[2]))
        yield f(0.5), w


@scenario
def default_dict_makes_what_is_missing(compile):
    rates, w = collections.defaultdict(lambda: 1.0, {"a": 2.0}), Value(1.0)
    name = "a"
    f = compile(lambda x: w * x * rates[name])
    for k in range(22):
        if k == 5:
            name = "b"
        if k == 11:
            rates["b"] = 5.0
        if k == 17:
            name = "c"
        yield f(0.5), w
        yield rates


@scenario
def counter_of_words(compile):
    counts, w = collections.Counter("abca"), Value(1.0)
    f = compile(lambda x: w * x * counts["a"] / counts.total())
    for k in range(20):
        if k in (5, 12):
            counts.update("aab")
        yield f(0.5), w


@scenario
def ordered_dict_moves_a_key_to_the_end(compile):
    stages, w = collections.OrderedDict(double=2.0, shift=3.0), Value(1.0)

    @compile
    def f(x):
        y = w * x
        for name, number in stages.items():
            y = y * number if name == "double" else y + number
        return y

    for k in range(20):
        if k in (5, 12):
            stages.move_to_end("double", last=k == 5)
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ other mappings


@scenario
def chain_map_of_defaults_and_overrides(compile):
    defaults, overrides, w = {"lr": 1.0}, {}, Value(2.0)
    cfg = collections.ChainMap(overrides, defaults)
    f = compile(lambda x: w * x * cfg["lr"])
    for k in range(22):
        if k == 5:
            cfg["lr"] = 2.0
        if k == 11:
            del cfg["lr"]
        if k == 17:
            cfg = cfg.new_child({"lr": 3.0})
        yield f(0.5), w


@scenario
def chain_map_whose_last_map_is_changed(compile):
    defaults, w = {"lr": 1.0, "decay": 0.0}, Value(2.0)
    cfg = collections.ChainMap({}, {"decay": 0.1}, defaults)
    f = compile(lambda x: w * x * cfg.get("lr", 9.0) - cfg["decay"])
    for k in range(20):
        if k == 5:
            defaults["lr"] = 5.0
        if k == 12:
            cfg.maps[1]["decay"] = 0.3
        yield f.map(XS)
        yield f.mean(MANY), w


@scenario
def mapping_proxy_shows_what_is_below(compile):
    settings, w = {"scale": 1.0}, Value(2.0)
    view = types.MappingProxyType(settings)
    f = compile(lambda x: w * x * view["scale"])
    for k in range(20):
        if k in (5, 12):
            settings["scale"] += 1.5
        yield f(0.5), w


@scenario
def user_dict_is_updated(compile):
    cfg, w = collections.UserDict(scale=1.0), Value(2.0)
    f = compile(lambda x: w * x * cfg["scale"])
    for k in range(22):
        if k == 5:
            cfg["scale"] = 2.0
        if k == 11:
            cfg.update(scale=3.0)
        if k == 17:
            cfg.data = {"scale": 4.0}
        yield f(0.5), w


class Conf(MutableMapping):
    """A node of a configuration, as omegaconf's are: items are attributes too, and dicts become nodes."""

    def __init__(self, content):
        object.__setattr__(self, "_content", {})
        for key, item in content.items():
            self[key] = item

    def __getitem__(self, key):
        return self._content[key]

    def __setitem__(self, key, item):
        self._content[key] = Conf(item) if isinstance(item, Mapping) and not isinstance(item, Conf) else item

    def __delitem__(self, key):
        del self._content[key]

    def __iter__(self):
        return iter(self._content)

    def __len__(self):
        return len(self._content)

    def __getattr__(self, name):
        try:
            return self._content[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, item):
        self[name] = item


@scenario
def node_with_attributes_three_deep(compile):
    cfg, w = Conf({"model": {"head": {"scale": 1.0}}, "seed": 1}), Value(2.0)
    f = compile(lambda x: w * x * cfg.model.head.scale)
    for k in range(22):
        if k == 5:
            cfg.model.head.scale = 2.0
        if k == 11:
            cfg["model"]["head"] = {"scale": 3.0}
        if k == 17:
            cfg.model = Conf({"head": {"scale": 4.0}})
        yield f(0.5), w


@scenario
def node_whose_attribute_is_missing(compile):
    cfg, w = Conf({"dropout": 0.5}), Value(2.0)
    f = compile(lambda x: w * x * (1.0 - getattr(cfg, "dropout", 0.0)))
    for k in range(20):
        if k == 5:
            del cfg["dropout"]
        if k == 13:
            cfg.dropout = 0.25
        yield f.mean(MANY), w


class Interpolated(Conf):
    """Texts such as "${base}" are looked up when they are read."""

    def __getattr__(self, name):
        item = super().__getattr__(name)
        if isinstance(item, str) and item.startswith("${"):
            return getattr(self, item[2:-1])
        return item


@scenario
def interpolated_setting_follows_another(compile):
    cfg, w = Interpolated({"base": 1.0, "other": 5.0, "rate": "${base}"}), Value(2.0)
    f = compile(lambda x: w * x * cfg.rate)
    for k in range(20):
        if k == 5:
            cfg.base = 3.0
        if k == 12:
            cfg.rate = "${other}"
        yield f(0.5), w


# ------------------------------------------------------------------------------------------------ configparser


def ini(text):
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser


@scenario
def config_parser_gives_a_float(compile):
    parser, w = ini("[train]\nlr = 0.5\n"), Value(2.0)
    f = compile(lambda x: w * x * parser.getfloat("train", "lr"))
    for k in range(20):
        if k in (5, 12):
            parser.set("train", "lr", f"{k / 4}")
        yield f(0.5), w


@scenario
def section_of_a_config_parser(compile):
    parser, w = ini("[train]\nlr = 0.5\nflip = no\n"), Value(2.0)
    section = parser["train"]

    @compile
    def f(x):
        y = w * x * float(section["lr"])
        return -y if section.getboolean("flip") else y

    for k in range(20):
        if k == 5:
            parser["train"]["lr"] = "1.25"
        if k == 12:
            section["flip"] = "yes"
        yield f.map(XS)
        yield f(0.5), w


@scenario
def option_is_removed_and_the_fallback_used(compile):
    parser, w = ini("[DEFAULT]\nmomentum = 0.9\n[train]\nmomentum = 0.5\nsteps = 3\n"), Value(2.0)

    @compile
    def f(x):
        m = parser.getfloat("train", "momentum", fallback=0.0)
        return w * x * m ** parser.getint("train", "steps")

    for k in range(22):
        if k == 5:
            parser.remove_option("train", "momentum")
        if k == 11:
            parser.remove_option("DEFAULT", "momentum")
        if k == 17:
            parser.read_dict({"train": {"momentum": "0.25", "steps": "1"}})
        yield f(0.5), w


@scenario
def interpolation_of_a_config_parser(compile):
    parser, w = ini("[p]\nbase = 2\nscale = %(base)s.5\n"), Value(1.0)
    f = compile(lambda x: w * x * parser.getfloat("p", "scale"))
    for k in range(20):
        if k == 5:
            parser["p"]["base"] = "7"
        if k == 12:
            parser = ini("[p]\nscale = 0.125\n")
        yield f(0.5), w
