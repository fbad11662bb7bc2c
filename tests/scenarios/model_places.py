"""Where models are kept: globals, closures, attributes, registries, ensembles; another one stands there later."""

from __future__ import annotations

import functools
import types
import weakref

import wengert
from tests.scenarios.kit import scenario
from wengert import Value, losses, nn

X = [[0.5, -1.0], [1.5, 0.25], [-0.75, 2.0], [0.1, 0.2], [-1.0, -1.5], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-0.3, 0.6]]
MANY = [[0.03 * i - 1.0, 0.9 - 0.02 * i] for i in range(64)]


def network(rng, *sizes, activation="tanh"):
    return nn.MLP(2, [*(sizes or (3,)), 1], activation, rng=rng)


MODEL = network(1)


@scenario
def global_model_is_trained_anew(compile):
    global MODEL
    f = compile(lambda x: MODEL(x))
    for k in range(20):
        if k in (5, 12):
            MODEL = network(k, 2)
        yield f(X[k % 9]), MODEL


def predict(x):
    return MODEL(x) + 1.0


@scenario
def global_model_read_by_a_helper(compile):
    f = compile(lambda x: predict(x) ** 2)
    for k in range(18):
        if k in (5, 11):
            globals()["MODEL"] = network(k)
        yield f(X[k % 9]), MODEL
        yield f.map(X)


@scenario
def model_of_an_enclosing_function(compile):
    model = network(2)

    def use(other):
        nonlocal model
        model = other

    f = compile(lambda x: model(x))
    for k in range(20):
        if k in (6, 13):
            use(network(k, 2, 2))
        yield f(X[k % 9]), model


class Trainer:
    def __init__(self, model):
        self.model, self.margin = model, 1.0

    def loss(self, x, y):
        return wengert.relu(self.margin - y * self.model(x))


@scenario
def model_of_a_trainer_is_swapped(compile):
    trainer = Trainer(network(3))
    loss = compile(trainer.loss)
    signs = [1.0 if i % 2 else -1.0 for i in range(64)]
    for k in range(18):
        if k == 5:
            trainer.model = network(4)
        if k == 11:
            trainer.margin = 2.0
        yield loss.mean(MANY, signs), trainer.model
        yield loss.map(X, signs[:9])


@scenario
def members_of_an_ensemble_come_and_go(compile):
    ensemble = [network(k) for k in range(3)]
    f = compile(lambda x: wengert.mean([model(x) for model in ensemble]))
    for k in range(22):
        if k == 5:
            ensemble.pop(0)
        if k == 11:
            ensemble.append(network(7))
        if k == 17:
            ensemble[0] = ensemble[1]
        yield f(X[k % 9]), ensemble


@scenario
def member_of_an_ensemble_is_edited(compile):
    ensemble, weights = [network(k, 2) for k in range(2)], [0.5, 0.5]
    f = compile(lambda x: sum(w * model(x) for w, model in zip(weights, ensemble, strict=True)))
    for k in range(20):
        if k == 6:
            ensemble[1].layers[0].neurons[0].w = [Value(1.0), Value(-1.0)]
        if k == 12:
            weights[:] = [0.1, 0.9]
        yield f.mean(MANY), ensemble


@scenario
def boosting_adds_one_weak_learner_after_another(compile):
    learners = []

    @compile
    def residual(x, y):
        return (y - sum(0.5 * learner(x) for learner in learners)) ** 2

    for k in range(22):
        if k in (5, 10, 16):
            learners.append(nn.Neuron(2, "tanh", rng=k))
        yield residual(X[k % 9], 0.1 * k), Value(0.0), learners


@scenario
def registry_of_models_by_name(compile):
    registry, active = {"small": network(1, 2), "large": network(2, 4)}, "small"
    f = compile(lambda x: registry[active](x))
    for k in range(22):
        if k == 5:
            active = "large"
        if k == 11:
            registry["large"] = network(3)
        if k == 17:
            active = "small"
        yield f(X[k % 9]), registry


@scenario
def model_of_a_namespace_within_a_namespace(compile):
    app = types.SimpleNamespace(serving=types.SimpleNamespace(model=network(5), scale=1.0))
    f = compile(lambda x: app.serving.model(x) * app.serving.scale)
    for k in range(22):
        if k == 5:
            app.serving.model = network(6)
        if k == 11:
            app.serving = types.SimpleNamespace(model=network(7), scale=2.0)
        if k == 17:
            app.serving.scale = 3.0
        yield f(X[k % 9]), app.serving.model


@scenario
def model_as_a_default_of_an_argument(compile):
    def forward(x, model=network(8)):
        return model(x)

    f = compile(lambda x: forward(x))
    for k in range(20):
        if k in (5, 12):
            forward.__defaults__ = (network(k),)
        yield f(X[k % 9]), forward.__defaults__[0]


@scenario
def model_of_a_partial_that_is_made_anew(compile):
    def forward(model, x):
        return model(x)

    step = functools.partial(forward, network(9))
    f = compile(lambda x: step(x))
    for k in range(20):
        if k == 5:
            step = functools.partial(forward, network(10))
        if k == 12:
            step.args[0].layers[0].neurons.reverse()
        yield f(X[k % 9]), step.args[0]


@scenario
def model_behind_a_weak_reference(compile):
    kept = [network(11), network(12)]
    current = weakref.ref(kept[0])
    f = compile(lambda x: current()(x))
    for k in range(20):
        if k == 5:
            current = weakref.ref(kept[1])
        if k == 12:
            kept[1].layers[1].neurons[0].b = Value(1.0)
        yield f(X[k % 9]), kept


@scenario
def generator_and_discriminator_take_turns(compile):
    generator, judge = nn.MLP(1, [2, 2], "tanh", rng=13), network(14)
    real = compile(lambda x: wengert.softplus(-judge(x)))
    fake = compile(lambda z: wengert.softplus(judge(generator([z]))))
    for k in range(18):
        if k == 5:
            judge.layers[0] = nn.Layer(2, 3, "tanh", rng=15)
        if k == 12:
            generator = nn.MLP(1, [3, 2], "tanh", rng=16)
        yield real(X[k % 9]), judge
        yield fake(0.1 * k), judge, generator


@scenario
def models_are_passed_as_arguments(compile):
    models = [network(17), network(18)]
    loss = compile(lambda model, x: losses.mse(model(x), 0.5), static=("model",))
    for k in range(22):
        if k == 10:
            models[0].layers[0].neurons[1].w[1] = Value(2.0)
        if k == 16:
            models[1].layers.insert(1, nn.Layer(3, 3, "tanh", rng=19))
        yield loss(models[k % 2], X[k % 9]), models


class Fallback:
    """Asks the model that is there, and is a constant until then."""

    model = None

    def __call__(self, x):
        return Value(0.0) * x[0] if self.model is None else self.model(x)


@scenario
def model_is_loaded_late(compile):
    service = Fallback()
    f = compile(lambda x: service(x))
    unused = Value(0.0)
    for k in range(20):
        if k == 5:
            service.model = network(20)
        if k == 12:
            del service.model
        yield f(X[k % 9]), service.model or unused
