"""Programs for what they read beside their arguments: settings, models, schedules that change between calls, helpers.

The surroundings of a program change between its calls: `between` ties the change to the drawing of an argument.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import types
from collections import deque, namedtuple
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    program,
    real,
    reals,
    text,
    weights,
    whole,
)
from wengert import Value, nn, optim


def between(change, kind):
    """An argument of a kind; whenever one is drawn, which is between the calls, the surroundings change."""

    def draw(generator):
        change(generator)
        return kind.draw(generator)

    return replace(kind, draw=draw)


def chosen(holder, key, *choices):
    """A change: a setting becomes one of some."""

    def change(generator):
        holder[key] = generator.choice(choices)

    return change


def drifting(holder, key, low=0.5, high=1.5):
    """A change: a setting becomes another number."""

    def change(generator):
        holder[key] = generator.uniform(low, high)

    return change


# ------------------------------------------------------------------------------------------------ numbers and switches

TEMPERATURE = 1.0


@program(xs=between(drifting(globals(), "TEMPERATURE"), reals(3)))
def module_global(a, b):
    def value(xs):
        return wengert.softmax([(a * x + b) / TEMPERATURE for x in xs])[0]

    return value


annealing = {"rate": 0.5, "decay": 0.9}


@program(x=between(drifting(annealing, "rate"), real()), y=real())
def settings_in_a_dict(w, b):
    def loss(x, y):
        error = w * x + b - y
        return annealing["rate"] * error**2 + (1 - annealing["decay"]) * w**2

    return loss


class Settings:
    scale = 1.0
    power = 2


@program(x=between(lambda draw: setattr(Settings, "scale", draw.uniform(0.5, 2.0)), real()))
def attributes_of_a_class(w, b):
    def value(x):
        return Settings.scale * (w * x + b).abs() ** Settings.power

    return value


@dataclass
class Schedule:
    epoch: int = 0
    warm: int = 3

    @property
    def rate(self):
        return min(1.0, (self.epoch + 1) / self.warm) * 0.99**self.epoch


schedule = Schedule()


def next_epoch(draw):
    schedule.epoch = (schedule.epoch + 1) % 5


@program(x=between(next_epoch, real()))
def schedule_as_a_property(w):
    def value(x):
        return schedule.rate * (w * x).tanh()

    return value


optimiser = types.SimpleNamespace(lr=types.SimpleNamespace(now=0.1, factors=[1.0, 0.5]), name="sgd")


@program(x=between(lambda draw: setattr(optimiser.lr, "now", draw.uniform(0.01, 1)), real()), y=real())
def nested_configuration(w):
    def value(x, y):
        lr = optimiser.lr.now * optimiser.lr.factors[1]
        slope = 2 * (w * x - y) * x
        after = w - lr * slope
        return (after * x - y) ** 2

    return value


TABLE = [0.0, 0.5, 1.0, 0.5]


@program(i=between(lambda draw: TABLE.__setitem__(draw.randrange(4), draw.uniform(-1, 1)), whole(0, 3)), x=real())
def entries_of_a_list(w, b):
    def value(i, x):
        return w * x * TABLE[i] + b * TABLE[i - 1] + sum(TABLE) * w

    return value


RUNNING = np.array([0.1, -0.2, 0.3])


def move_the_mean(draw):
    RUNNING[:] = 0.9 * RUNNING + 0.1 * draw.uniform(-1, 1)


@program(x=between(move_the_mean, array(3)))
def array_that_is_updated_in_place(gamma, beta):
    def value(x):
        return (gamma * (x - RUNNING) + beta).sum() ** 2

    return value


mode = {"training": True}


@program(x=between(chosen(mode, "training", True, False), reals(3)), keep=real(0.5, 0.9))
def switch_between_training_and_testing(w, b):
    def output(x, keep):
        h = [(w * v + b).relu() for v in x]
        if mode["training"]:
            h = [v / keep for v in h[::2]]
        return sum(h) + 0 * w

    return output


choices = {"activation": "tanh", "offset": None}


def another_choice(draw):
    choices.update(activation=draw.choice(["tanh", "relu", "silu"]), offset=draw.choice([None, 0.25]))


@program(x=between(another_choice, real()))
def text_and_none_in_settings(w, b):
    def value(x):
        h = w * x if choices["offset"] is None else w * x + choices["offset"] * b
        return getattr(h, choices["activation"])()

    return value


LIMIT = 3


@program(xs=between(chosen(globals(), "LIMIT", 1, 2, 3, 4), reals(4)))
def curriculum(w, b):
    def loss(xs):
        total = 0.0
        for x in xs[:LIMIT]:
            total += (w * x - b) ** 2
        return total / LIMIT

    return loss


Hyper = namedtuple("Hyper", "l1 l2 clip")
state = {"hyper": Hyper(0.1, 0.01, 5.0)}


def another_penalty(draw):
    state["hyper"] = state["hyper"]._replace(l1=draw.uniform(0, 1))


@program(x=between(another_penalty, real()), y=real())
def named_tuple_that_is_replaced(w, b):
    def loss(x, y):
        h = state["hyper"]
        return wengert.clip((w * x + b - y) ** 2, 0.0, h.clip) + h.l1 * abs(w) + h.l2 * w**2

    return loss


precision = ContextVar("precision", default=1.0)


@program(
    x=between(lambda draw: precision.set(draw.choice([0.5, 1.0, 2.0])), real()), engine="it reads a context variable"
)
def context_variable(mu):
    def value(x):
        return precision.get() * (x - mu) ** 2 / 2 - 0.5 * math.log(precision.get())

    return value


class Levels:
    """Answers a name and an index by rules of its own."""

    def __init__(self):
        self.base = 1.0

    def __getattr__(self, name):
        if name.startswith("level_"):
            return self.base * int(name[6:])
        raise AttributeError(name)

    def __getitem__(self, key):
        return self.base + len(key)


levels = Levels()


@program(x=between(lambda draw: setattr(levels, "base", draw.uniform(0.5, 1.5)), real()))
def attributes_by_rule(w, b):
    def value(x):
        return w * x * levels.level_2 + b * levels["abc"]

    return value


class Constant:
    """A descriptor: the same attribute for all, read from one place."""

    number = 2.0

    def __get__(self, instance, owner=None):
        return Constant.number if instance is not None else self


class Probe:
    gain = Constant()

    def measure(self, v):
        return self.gain * v


probe = Probe()


@program(x=between(lambda draw: setattr(Constant, "number", draw.uniform(1, 3)), real()))
def descriptor_of_an_object(w):
    def value(x):
        return probe.measure(w * x) ** 2 + probe.measure(w)

    return value


configuration = types.ModuleType("configuration")
configuration.slope = 0.1


@program(x=between(lambda draw: setattr(configuration, "slope", draw.uniform(0.01, 0.3)), real()))
def setting_of_another_module(w, b):
    def leaky(v):
        return v.maximum(configuration.slope * v)

    def value(x):
        return leaky(w * x - b) + leaky(b * x)

    return value


# ------------------------------------------------------------------------------------------------ models


@program(x=reals(2))
def model_as_a_list_of_layers(layers=weights(3, 2, 2)):
    model = list(layers)

    def output(x):
        for number, layer in enumerate(model):
            x = [sum(w * v for w, v in zip(row, x)) for row in layer]
            if number < len(model) - 1:
                x = [v.relu() + 0.1 * v for v in x]
        return x[0] - x[1]

    return output


class Model:
    """A model with Values as attributes, in a list and in a dict."""

    def __init__(self, w, b, extra):
        self.w, self.b = w, b
        self.scales = extra
        self.named = {"gain": extra[0], "shift": extra[1]}
        self.dropout = 0.0

    def forward(self, x):
        h = self.activate(sum(w * v for w, v in zip(self.w, x)) + self.b)
        return self.named["gain"] * h + self.named["shift"] * (1 - self.dropout)

    def activate(self, v):
        return v.tanh() * self.scales[-1]

    def __call__(self, x):
        return self.forward(x)


@program(x=reals(3), y=real())
def model_as_an_object(b, w=weights(3), extra=weights(3)):
    model = Model(w, b, extra)

    def loss(x, y):
        return (model(x) - y) ** 2 + 0.01 * sum(p**2 for p in model.w)

    return loss


@program(x=reals(3))
def bound_method_as_the_function(b, w=weights(3), extra=weights(3)):
    return Model(w, b, extra).forward


@program(x=reals(3))
def callable_object_as_the_function(b, w=weights(3), extra=weights(3)):
    return Model(w, b, extra)


dropping = {"model": None}


def another_dropout(draw):
    if dropping["model"] is not None:
        dropping["model"].dropout = draw.uniform(0, 0.5)


@program(x=between(another_dropout, reals(3)))
def callable_object_that_changes(b, w=weights(3), extra=weights(3)):
    dropping["model"] = Model(w, b, extra)
    return dropping["model"]


def affine(x, y, w, b, *, power=1, gain=1.0):
    return gain * (w * x + b * y) ** power


@program(x=real(), y=real())
def partial_as_the_function(w, b):
    return functools.partial(affine, w=w, b=b, power=3)


gains = {"gain": 1.0}


def regained(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return gains["gain"] * f(*args, **kwargs)

    return wrapper


@program(x=between(drifting(gains, "gain"), real()), y=real())
def wrapper_as_the_function(w, b):
    @regained
    def value(x, y):
        return (w * x - b * y).sigmoid()

    return value


@program(x=real())
def lambda_as_the_function(w, b):
    return lambda x: (w * x).sin() + b if x > 0 else (b * x).cos() - w


@program(x=reals(2))
def library_layer_as_a_model(scale):
    random.seed(7)
    model = nn.MLP(2, [3, 1])

    def loss(x):
        regulariser = sum(p * p for p in model.parameters())
        return scale * model(x) + 0.01 * regulariser

    return loss


hot = {"index": 0}


@program(x=between(chosen(hot, "index", 0, 1), real()))
def model_that_is_swapped(first=weights(2), second=weights(2)):
    models = [first, second]

    def output(x):
        w, b = models[hot["index"]]
        return (w * x + b).tanh()

    return output


registry = {}


def register(f):
    registry[f.__name__] = f
    return f


@register
def hinge(margin):
    return (1 - margin).relu()


@register
def logistic(margin):
    return (-margin).softplus()


loss_name = ["hinge"]


@program(x=between(chosen(loss_name, 0, "hinge", "logistic"), real()), sign=whole(0, 1))
def function_from_a_registry(w, b):
    def loss(x, sign):
        return registry[loss_name[0]]((2 * sign - 1) * (w * x + b))

    return loss


@program(x=reals(2), y=real())
def frozen_copy_of_the_parameters(online=weights(2), frozen=weights(2)):
    def loss(x, y):
        target = y + 0.9 * sum(p.data * v for p, v in zip(frozen, x))
        return (sum(p * v for p, v in zip(online, x)) - target) ** 2

    return loss


average = [0.1, -0.1]


def step_the_average(draw):
    for i in range(2):
        average[i] = 0.9 * average[i] + 0.1 * draw.uniform(-1, 1)


@program(x=between(step_the_average, reals(2)))
def moving_average_of_a_teacher(w=weights(2)):
    def loss(x):
        student = sum(p * v for p, v in zip(w, x))
        teacher = sum(p * v for p, v in zip(average, x))
        return (student - teacher) ** 2

    return loss


# ------------------------------------------------------------------------------------------------ data and helpers

EXAMPLES = [[0.1, 0.9], [0.4, -0.3], [-0.8, 0.2], [0.7, 0.7]]
LABELS = [1, 0, 0, 1]


@program(i=whole(0, 3))
def data_set_in_the_module(b, w=weights(2)):
    def loss(i):
        score = sum(p * v for p, v in zip(w, EXAMPLES[i])) + b
        return (-score if LABELS[i] else score).softplus()

    return loss


VOCABULARY = {c: i for i, c in enumerate("abc ")}


@program(word=text("abc", "cab", "a b", "bbb"))
def vocabulary_in_the_module(embedding=weights(4, 2)):
    def loss(word):
        ids = [VOCABULARY[c] for c in word]
        total = 0.0
        for i, j in zip(ids, ids[1:]):
            total += sum(p * q for p, q in zip(embedding[i], embedding[j]))
        return total / len(ids)

    return loss


SCALES = {"inner": 1.5, "outer": 0.5}


def outer(v):
    return SCALES["outer"] * middle(v)


def middle(v):
    return innermost(v) + innermost(-v) ** 2


def innermost(v, lift=math.e):
    return (SCALES["inner"] * v + lift).log() if v > -lift / 2 else v * SCALES["inner"]


@program(x=between(drifting(SCALES, "inner", 0.2, 0.9), real()))
def helpers_through_helpers(w):
    def value(x):
        return outer(w * x)

    return value


penalties = [lambda p: abs(p), lambda p: p * p]
chosen_penalty = {"f": penalties[0]}


@program(x=between(chosen(chosen_penalty, "f", *penalties), real()))
def helper_that_is_replaced(w, b):
    def value(x):
        return (w * x + b).tanh() + 0.1 * sum(map(chosen_penalty["f"], (w, b)))

    return value


def memoised(f):
    known = {}

    @functools.wraps(f)
    def wrapper(n):
        if n not in known:
            known[n] = f(n)
        return known[n]

    return wrapper


@memoised
def binomials(n):
    return [math.comb(n, k) for k in range(n + 1)]


@program(n=whole(0, 5), x=real(0.0, 1.0), engine="it fills a cache")
def memo_of_numbers_outside(points=weights(6)):
    def bezier(n, x):
        return sum(c * x**k * (1 - x) ** (n - k) * p for k, (c, p) in enumerate(zip(binomials(n), points)))

    return bezier


@functools.cache
def quadrature(n):
    nodes, shares = np.polynomial.legendre.leggauss(n)
    return nodes.tolist(), shares.tolist()


@program(n=whole(1, 4), width=real(0.5, 2.0))
def cached_table(a, b):
    def integral(n, width):
        nodes, shares = quadrature(n)
        return sum(width / 2 * s * (a * x * width + b).sin() for x, s in zip(nodes, shares))

    return integral


@program(x=real())
def default_values_as_surroundings(w, b):
    def value(x, weights_=(w, b), options={"power": 2}, f=math.cos):  # the defaults are Values, a dict and a function
        p, q = weights_
        return p * f(x) ** options["power"] + q

    return value


# ------------------------------------------------------------------------------------------------ other things in place

seen_so_far = [0.3, -0.7]


def one_more_example(draw):
    seen_so_far.append(draw.uniform(-1, 1))
    del seen_so_far[: len(seen_so_far) // 6 * 4]


@program(x=between(one_more_example, real()))
def training_set_that_grows(w, b):
    def loss(x):
        errors = [(w * x + b - y) ** 2 for y in seen_so_far]
        return sum(errors) / len(errors)

    return loss


stages = []


def another_depth(draw):
    stages[:] = ["scale", "bend", "shift"][: draw.randint(1, 3)]


@program(x=between(another_depth, real()))
def pipeline_that_is_rebuilt(w, b):
    steps = {"scale": lambda v: w * v, "bend": lambda v: wengert.tanh(v), "shift": lambda v: v + b}

    def value(x):
        for stage in stages:
            x = steps[stage](x)
        return x * w + b

    return value


fresh = {"head": Value(0.5)}


def made_anew(draw):
    fresh["head"] = Value(draw.uniform(0.2, 1.5))


@program(x=between(made_anew, real()))
def layer_that_is_initialised_anew(w):
    def value(x):
        return (w * x).tanh() * fresh["head"] + fresh["head"] ** 2

    return value


temperature = Value(1.0)


def cooled(draw):
    temperature.data = 0.5 + 0.5 * draw.random()


@program(xs=between(cooled, reals(3)))
def value_outside_that_is_set(w):
    def value(xs):
        return wengert.logsumexp([w * x / temperature for x in xs]) * temperature

    return value


ids = {"a": 0, "b": 1}


def another_word(draw):
    ids.setdefault(draw.choice("abcde"), len(ids) % 3)


@program(word=between(another_word, text("a", "b", "c", "d")))
def vocabulary_that_grows(unknown, embedding=weights(3)):
    def value(word):
        return embedding[ids[word]] * len(word) if word in ids else unknown * 2

    return value


class Penalty:
    def of(self, p):
        return p * p


penalty = Penalty()


def patched(draw):
    Penalty.of = draw.choice([lambda self, p: abs(p), lambda self, p: p * p])


@program(x=between(patched, real()))
def method_that_is_replaced(w, b):
    def value(x):
        return (w * x - b) ** 2 + penalty.of(w)

    return value


def dial():
    level = 1.0

    def turn(to):
        nonlocal level
        level = to

    return turn, lambda v: level * v


turn_dial, amplified = dial()


@program(x=between(lambda draw: turn_dial(draw.uniform(0.5, 2.0)), real()))
def cell_of_another_closure(w, b):
    def value(x):
        return amplified(w * x) + b

    return value


window = {"taps": np.ones(3) / 3}


def another_window(draw):
    n = draw.randint(2, 4)
    window["taps"] = np.hanning(n + 2)[1:-1] / n


@program(xs=between(another_window, reals(5)))
def array_that_is_replaced_by_a_longer_one(gain):
    def value(xs):
        taps = window["taps"]
        y = [sum(t * x for t, x in zip(taps, xs[i:])) for i in range(len(xs) - len(taps) + 1)]
        return sum((gain * v).tanh() for v in y)

    return value


class Environment:
    def __init__(self, wind, obstacles):
        self.wind, self.obstacles = wind, obstacles

    def push(self, x):
        return sum(self.wind / (1 + (x - o) ** 2) for o in self.obstacles)


world = Environment(0.5, [0.0, 1.0])


def another_world(draw):
    global world
    world = Environment(draw.uniform(0.1, 1.0), [draw.uniform(-1, 1) for _ in range(2)])


@program(x=between(another_world, real()))
def object_that_is_replaced(w, b):
    def value(x):
        return world.push(w * x) - world.push(b)

    return value


# ------------------------------------------------------------------------------------------------ effects


def keeps(what):
    return f"it {what} at each call"


@program(x=real(), effects=True, engine=keeps("counts"))
def counter_in_a_closure(w):
    count = 0

    def value(x):
        nonlocal count
        count += 1
        return w * x / count

    return value, lambda: count


@program(x=reals(3), effects=True, engine=keeps("updates its running mean"))
def running_mean_of_a_normalisation(gamma, beta):
    running = {"mean": 0.0, "seen": 0}

    def value(x):
        mean = sum(x) / len(x)
        running["mean"] = 0.9 * running["mean"] + 0.1 * mean
        running["seen"] += len(x)
        return sum(gamma * (v - running["mean"]) + beta for v in x)

    return value, lambda: running


@program(x=real(), effects=True, engine=keeps("remembers its last activation"))
def statistics_of_activations(w, b):
    layer = types.SimpleNamespace(last=0.0, history=deque(maxlen=3))

    def value(x):
        h = (w * x + b).tanh()
        layer.last = h.data
        layer.history.append(round(h.data, 6))
        return h * h

    return value, lambda: [layer.last, list(layer.history)]


@program(x=real(), effects=True, engine=keeps("prints"))
def progress_that_is_printed(w, b):
    def value(x):
        y = w * x + b
        if y.data > 1:
            print(f"large: {y.data:.3f}")
        return y.exp()

    return value, lambda: None


@program(x=real(), engine="it draws random numbers")
def noise_from_the_global_generator(w, b):
    def value(x):
        return w * x + b * random.gauss(0.0, 0.1)

    return value


@program(x=reals(4), engine="it draws random numbers, though rarely")
def rare_random_choice(w, b):
    def value(x):
        total = w * sum(x)
        if sum(x) > 1.2:
            total = total * (random.random() < 0.5)
        return total + b

    return value


@program(x=array(3), engine="it draws random numbers")
def dropout_from_numpy(w, b):
    def value(x):
        mask = np.random.rand(3) > 0.3
        return (w * x * mask).sum() + b

    return value


@program(x=real(), effects=True, engine=keeps("draws from its own generator"))
def generator_of_ones_own(w):
    rng = random.Random(3)

    def value(x):
        return w * x + rng.uniform(-1, 1)

    return value, lambda: rng.random()


@program(x=real(), effects=True, engine=keeps("takes the next of an iterator"))
def batches_from_an_iterator(w, b):
    stream = itertools.cycle([0.5, -1.0, 2.0, 0.25])

    def value(x):
        return w * next(stream) * x + b

    return value, lambda: next(stream)


@program(i=whole(0, 2), effects=True, engine=keeps("fills a cache with graphs"))
def cache_of_values_outside(w, b):
    cache = {}

    def value(i):
        if i not in cache:
            cache[i] = w.data * i + b.data
        return cache[i] * w + b

    return value, lambda: cache


@program(xs=reals(3), effects=True, engine=keeps("changes its argument"))
def argument_that_is_changed(w, b):
    def value(xs):
        xs.sort()
        xs.append(0.0)
        return w * xs[0] + b * xs[-2] * len(xs)

    return value, lambda: None


@program(x=real(), y=real(), effects=True, engine=keeps("trains its parameters"))
def training_step_inside(w, b):
    optimizer = optim.SGD([w, b], lr=0.1)

    def loss(x, y):
        error = (w * x + b - y) ** 2
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        return (w * x + b - y) ** 2

    return loss, lambda: [w.data, b.data]


@program(x=real(), engine="it asks for gradients inside")
def gradient_penalty_inside(w, b):
    def value(x):
        slope = wengert.grad(lambda v: (w.data * v + b.data).tanh())(Value(x))
        return (w * x + b).tanh() + 0.1 * float(getattr(slope, "data", slope)) * w

    return value


@program(x=real(), effects=True, engine=keeps("logs"))
def log_of_events(w, b):
    events = []

    def value(x):
        try:
            y = w * math.sqrt(x)
        except ValueError:
            events.append(("negative", x))
            return b * x
        events.append(("fine", len(events)))
        return y

    return value, lambda: events


@program(x=real(), effects=True, engine=keeps("anneals its own temperature"))
def temperature_that_cools_itself(w):
    class Annealer:
        temperature = 2.0

        def cool(self):
            type(self).temperature *= 0.99
            return self.temperature

    annealer = Annealer()

    def value(x):
        return (w * x / annealer.cool()).exp()

    return value, lambda: Annealer.temperature


@program(n=whole(1, 3), effects=True, engine=keeps("writes into an array of its own"))
def buffer_that_is_written(w):
    buffer = np.zeros(4)

    def value(n):
        buffer[n] += 1.0
        np.multiply(buffer, 0.5, out=buffer)
        return w * float(buffer[n]) + w * w

    return value, buffer.copy
