"""Optimizers, learning rates and schedulers that a compiled function reads, and that change between its calls."""

from __future__ import annotations

import math

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, losses, nn, optim

X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [0.1, 0.2], [-1.0, -1.5], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-0.3, 0.6]]
MANY = [[0.03 * i - 1.0, 0.9 - 0.02 * i] for i in range(64)]
SIGNS = [1.0 if i % 3 else -1.0 for i in range(64)]


@scenario(each={"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW})
def learning_rate_is_read_inside(compile, kind):
    w = Value(2.0)
    optimizer = kind([w], lr=0.1)
    f = compile(lambda x: w * x * optimizer.lr)
    for k in range(24):
        if k in (5, 11, 21):
            optimizer.lr *= 0.5
        yield f(0.3 * k), w


@scenario
def learning_rate_is_a_function_of_the_step(compile):
    w = Value(2.0)
    sgd = optim.SGD([w], lr=lambda step: 1.0 / (1.0 + step))
    f = compile(lambda x: (w * x - 1.0) ** 2 * sgd.lr)
    for k in range(20):
        value = f(0.5)
        value.backward()
        if k >= 5:
            sgd.step()
        sgd.zero_grad()
        yield [value.data, w.data, sgd.lr]


@scenario
def steps_are_counted_and_read(compile):
    w = Value(1.0)
    adam = optim.Adam([w], lr=0.01)
    f = compile(lambda x: w * x / (1.0 + adam.steps))
    for k in range(22):
        if k in (5, 6, 12, 18):
            adam.step()
        yield f(0.7), w


@scenario
def momentum_is_warmed_up(compile):
    w = Value(1.0)
    sgd = optim.SGD([w], lr=0.1, momentum=0.5)
    look_ahead = compile(lambda x: (w - sgd.lr * sgd.momentum) * x)
    for k in range(20):
        if k == 5:
            sgd.momentum = 0.9
        if k == 13:
            sgd.lr = 0.01
        yield look_ahead(0.5), w


@scenario
def betas_are_replaced(compile):
    w = Value(1.0)
    adam = optim.Adam([w])
    f = compile(lambda x: w * x * (1.0 - adam.betas[0]) + adam.weight_decay)
    for k in range(20):
        if k == 5:
            adam.betas = (0.5, 0.99)
        if k == 13:
            adam.weight_decay = 0.1
        yield f(0.5), w


@scenario
def parameters_of_the_optimizer_are_regularised(compile):
    w, late = [Value(1.0), Value(-2.0)], Value(3.0)
    sgd = optim.SGD(w, lr=0.1)
    f = compile(lambda x: x * sum(p * p for p in sgd.parameters))
    for k in range(20):
        if k == 5:
            sgd = optim.SGD([*w, late], lr=0.1)
        if k == 12:
            sgd = optim.SGD(w[:1], lr=0.1)
        yield f(0.5), w, late


@scenario
def frozen_parameters_are_left_out(compile):
    w = [Value(1.0), Value(-2.0), Value(0.5)]
    sgd = optim.SGD(w, lr=0.1)
    decay = compile(lambda x: x + 0.01 * sum(p * p for p in sgd.trainable))
    for k in range(20):
        if k == 5:
            sgd.freeze(w[0])
        if k == 12:
            sgd.unfreeze(w[0])
            sgd.freeze(w[1:])
        yield decay(0.1 * k), w


@scenario
def optimizer_is_exchanged_for_another(compile):
    model = nn.MLP(2, [2, 1], "tanh", rng=1)
    state = {"optimizer": optim.SGD(model, lr=0.1)}
    loss = compile(lambda x, y: losses.mse(model(x), y) * state["optimizer"].lr)
    for k in range(18):
        if k == 5:
            state["optimizer"] = optim.Adam(model, lr=0.05)
        value = loss.mean(MANY, SIGNS)
        state["optimizer"].zero_grad()
        value.backward()
        state["optimizer"].step()
        yield [value.data, model]


@scenario(each={"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW})
def training_with_an_edited_model(compile, kind):
    model = nn.MLP(2, [3, 1], "tanh", rng=2)
    optimizer = kind(model, lr=0.05)
    loss = compile(lambda x, y: losses.hinge(model(x), y))
    for k in range(18):
        if k == 6:
            model.layers[1] = nn.Layer(3, 1, "linear", rng=3)
            optimizer = kind(model, lr=0.05)
        if k == 12:
            model.layers[0].neurons[0].b = Value(0.3)  # which the optimizer does not know
        value = loss.mean(MANY, SIGNS)
        model.zero_grad()
        value.backward()
        optimizer.step()
        yield [value.data, model, optimizer.parameters]


class Cosine:
    """A scheduler as libraries have them: an object with a step."""

    def __init__(self, optimizer, top, period):
        self.optimizer, self.top, self.period, self.epoch = optimizer, top, period, 0

    def step(self):
        self.epoch += 1
        self.optimizer.lr = 0.5 * self.top * (1.0 + math.cos(math.pi * self.epoch / self.period))

    @property
    def progress(self):
        return self.epoch / self.period


@scenario
def scheduler_moves_the_learning_rate(compile):
    w = Value(1.0)
    sgd = optim.SGD([w], lr=1.0)
    schedule = Cosine(sgd, 1.0, 30)
    f = compile(lambda x: w * x * sgd.lr)
    for k in range(24):
        if k >= 5:
            schedule.step()
        yield f(0.5), w


@scenario
def progress_of_a_scheduler_blends_two_losses(compile):
    w = Value(0.5)
    schedule = Cosine(optim.SGD([w], lr=1.0), 1.0, 20)

    @compile
    def loss(x, y):
        share = schedule.progress
        return (1.0 - share) * (w * x - y) ** 2 + share * abs(w * x - y)

    for k in range(22):
        if k in (5, 10, 16):
            schedule.step()
        yield loss.mean([0.1 * i for i in range(64)], SIGNS), w


def warmup(step, width=5):
    return min(1.0, (step + 1) / width)


@scenario
def schedule_is_a_function_of_a_counter(compile):
    w, step = Value(1.0), 0
    f = compile(lambda x: w * x * warmup(step))
    for k in range(20):
        step = max(0, k - 5)
        if k == 13:
            warmup.__defaults__ = (40,)
        yield f(0.5), w


@scenario
def rates_by_group(compile):
    body, head = nn.Neuron(2, "tanh", rng=4), Value(1.0)
    groups = [{"params": body.parameters(), "decay": 0.1}, {"params": [head], "decay": 0.0}]

    @compile
    def loss(x):
        penalty = sum(group["decay"] * p * p for group in groups for p in group["params"])
        return head * body(x) + penalty

    for k in range(22):
        if k == 5:
            groups[1]["decay"] = 0.5
        if k == 11:
            groups.pop(0)
        if k == 17:
            groups.append({"params": [body.b], "decay": 1.0})
        yield loss(X[k % 9]), body, head


class Lion(optim.Optimizer):
    """An optimizer of the user's own, with a setting that the loss reads."""

    def __init__(self, parameters, lr=0.01, strength=0.1):
        super().__init__(parameters, lr)
        self.strength = strength

    def _rule(self, lr, x, g, *state):
        return (x - lr * (1.0 if g > 0 else -1.0),)


@scenario
def setting_of_the_users_own_optimizer(compile):
    w = Value(1.0)
    lion = Lion([w])
    f = compile(lambda x: (w * x - 1.0) ** 2 + lion.strength * abs(w))
    for k in range(20):
        if k == 5:
            lion.strength = 0.4
        if k == 12:
            lion = Lion([w], strength=0.0)
        yield f(0.5), w


@scenario
def plateau_halves_the_rate(compile):
    w, rate = Value(3.0), {"value": 0.4, "best": math.inf, "bad": 0}
    loss = compile(lambda x: (w * x - 1.0) ** 2 + 0.5)
    for k in range(24):
        value = loss.mean([0.5 + 0.01 * i for i in range(64)])
        value.backward()
        w.data -= rate["value"] * w.grad
        w.grad = 0.0
        rate["bad"] = 0 if value.data < rate["best"] - 1e-2 else rate["bad"] + 1
        rate["best"] = min(rate["best"], value.data)
        if rate["bad"] > 3:
            rate.update(value=rate["value"] / 2, bad=0)
        yield [value.data, w.data, rate]


@scenario
def trust_region_grows_and_shrinks(compile):
    w, radius = [Value(0.5), Value(-0.5)], [1.0]

    @compile
    def step(x):
        length = wengert.sqrt(sum(p * p for p in w))
        return wengert.dot(w, x) if length.data <= radius[0] else wengert.dot(w, x) * radius[0] / length

    for k in range(20):
        if k in (5, 12):
            radius[0] *= 0.5
        yield step(X[k % 9]), w


@scenario
def gradients_are_clipped_between_the_steps(compile):
    model = nn.MLP(2, [3, 1], "tanh", rng=5)
    sgd, norms = optim.SGD(model, lr=0.5, momentum=0.9), []
    limit = 10.0
    loss = compile(lambda x, y: losses.mse(model(x), y) / limit)
    for k in range(18):
        if k == 6:
            limit = 0.1
        value = loss.mean(MANY, SIGNS)
        sgd.zero_grad()
        value.backward()
        norms.append(optim.clip_grad_norm(model.parameters(), limit))
        sgd.step()
        yield [value.data, norms[-1], model]


@scenario
def step_inside_the_function_stays_an_effect(compile):
    w = Value(2.0)
    sgd = optim.SGD([w], lr=0.1)

    @compile
    def train(x):
        loss = (w * x - 1.0) ** 2
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss.data

    for k in range(14):
        if k == 6:
            sgd.lr = 0.5
        yield [attempt(train, 0.5 + 0.01 * k), w.data, sgd.steps]


@scenario
def temperature_is_annealed_by_a_generator(compile):
    temperatures = iter([1.0 / (1 + n) for n in range(30)])
    temperature = next(temperatures)
    logits = [Value(0.1), Value(0.9), Value(-0.4)]
    f = compile(lambda x: wengert.softmax([z / temperature for z in logits])[1] * x)
    for k in range(22):
        if k in (5, 10, 16):
            temperature = next(temperatures)
        yield f(0.5), logits
