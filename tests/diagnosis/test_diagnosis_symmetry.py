"""diagnose() of neurons that stay equal, of inputs that saturate all examples, and of healthy networks."""

from __future__ import annotations

import random
from typing import Any

import pytest

from wengert import Value, diagnose
from wengert.losses import mse
from wengert.nn import MLP
from wengert.optim import SGD
from wengert.training import fit

pytestmark = pytest.mark.once  # what is diagnosed are numbers, whichever engine computed them

X = [[0.5, -1.0], [0.1, 0.7], [-0.4, 0.3], [0.9, 0.2], [0.3, -0.6]]
Y = [0.3, -0.2, 0.5, 0.1, 0.9]
NEW = ("equal neurons", "inputs saturate tanh", "inputs saturate sigmoid", "saturated tanh", "saturated sigmoid")


def passed(model: Any, scale: float = 1.0) -> Value:
    loss: Value = sum([(model([scale * a for a in x]) - y) ** 2 for x, y in zip(X, Y, strict=True)])
    loss.backward()
    return loss


def network(activation: str, seed: int = 0, width: int = 4) -> MLP:
    return MLP(2, [width, width, 1], activation=activation, rng=random.Random(seed))


@pytest.mark.parametrize("number", [0.0, 0.5, -0.25])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_weights_that_are_all_one_number(activation: str, number: float) -> None:
    model = network(activation)
    for p in model.parameters():
        p.data = number
    report = diagnose(model, passed(model))
    assert [(f.kind, f.where) for f in report] == [("equal neurons", "layers.0"), ("equal neurons", "layers.1")]
    assert "4 of 4 neurons give the same numbers (" in report[0].seen
    assert "for all 5 examples, so they stay equal: layers.0.neurons.0, " in report[0].seen
    assert "random.uniform(-1, 1)" in report[0].advice


def test_they_stay_equal_while_they_are_trained() -> None:
    """The oracle is the training: the weights of both are the same numbers after every step."""
    model = network("relu")
    for p in model.parameters():
        p.data = 0.5
    fit(model, mse, X, Y, SGD(model, lr=0.01), epochs=20, progress=False)
    first, *others = [[p.data for p in neuron.parameters()] for neuron in model.layers[0].neurons]
    assert all(other == first for other in others)
    assert "equal neurons" in diagnose(model, X=X, Y=Y).kinds


def test_two_equal_neurons_of_four() -> None:
    model = network("tanh")
    hidden = model.layers[0].neurons
    for p, q in zip(hidden[1].parameters(), hidden[3].parameters(), strict=True):
        q.data = p.data
    assert "equal neurons" not in diagnose(model, passed(model)).kinds, "what reads them differs, and so they part"
    for neuron in model.layers[1].neurons:
        neuron.w[3].data = neuron.w[1].data
    model.zero_grad()
    (finding,) = diagnose(model, passed(model))
    assert (finding.kind, finding.where) == ("equal neurons", "layers.0")
    assert "2 of 4 neurons" in finding.seen
    assert finding.seen.endswith("layers.0.neurons.1, layers.0.neurons.3")


def test_dead_relus_are_dead_not_equal() -> None:
    model = network("relu")
    for p in model.parameters():
        p.data = 0.0
    assert set(diagnose(model, passed(model)).kinds) == {"dead ReLU"}


def test_neurons_that_are_written_by_hand() -> None:
    weights = [[Value(0.5), Value(0.5)] for _ in range(3)]
    heads = [Value(1.0) for _ in range(3)]

    def model(x: Any) -> Value:
        hidden = [(w[0] * x[0] + w[1] * x[1]).tanh() for w in weights]
        return sum([v * h for v, h in zip(heads, hidden, strict=True)])

    (finding,) = diagnose({"hidden": weights, "heads": heads}, passed(model))
    assert finding.kind == "equal neurons"
    assert "3 of 3 neurons" in finding.seen


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("seed", range(5))
def test_inputs_that_are_not_scaled(activation: str, seed: int) -> None:
    model = network(activation, seed)
    report = diagnose(model, passed(model, 1000.0))
    assert report[0].kind == f"inputs saturate {activation}"
    assert report[0].where == "layers.0"
    assert "4 of 4 neurons are at the ends of" in report[0].seen
    assert "for all 5 examples" in report[0].seen
    assert report[0].seen.endswith("the inputs go up to 1e+03")
    assert "scale the inputs" in report[0].advice
    rows = [[1000.0 * a for a in x] for x in X]
    assert f"inputs saturate {activation}" in diagnose(model, X=rows, Y=Y).kinds
    assert not {*NEW} & {*diagnose(model, X=X, Y=Y).kinds}, "scaled, they do not"


def test_large_weights_are_not_the_inputs() -> None:
    model = network("tanh")
    for neuron in model.layers[0].neurons:
        neuron.b.data = 30.0
    (finding,) = [f for f in diagnose(model, passed(model)) if f.where == "layers.0"]
    assert finding.kind == "saturated tanh"
    assert "smaller initial weights" in finding.advice


def test_a_layer_at_the_ends_that_nothing_pulls() -> None:
    model = network("tanh")
    for neuron in model.layers[0].neurons:
        neuron.b.data = 30.0
    for neuron in model.layers[1].neurons:
        for w in neuron.w:
            w.data = 0.0
    assert ("saturated tanh", "layers.0") in [(f.kind, f.where) for f in diagnose(model, passed(model))]


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_healthy_networks_raise_no_alarm(activation: str) -> None:
    """Of 300 networks, new or trained a little, with inputs of ordinary size."""
    alarms = []
    for seed in range(100):
        model = network(activation, seed, width=6)
        optimizer = SGD(model, lr=0.05)
        for _ in range(1 + 2 * (seed % 4)):
            loss = passed(model)
            optimizer.step()
            optimizer.zero_grad()
        loss = passed(model)
        alarms += [kind for kind in diagnose(model, loss).kinds if kind in NEW]
    assert alarms == []
