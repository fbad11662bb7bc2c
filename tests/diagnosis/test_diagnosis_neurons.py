"""diagnose() of neurons, saturated and dead ones; how often it is right, and silent, of whole networks."""

from __future__ import annotations

import random
from typing import Any

import pytest

import wengert
from tests.diagnosis.test_diagnosis import POSITIVE, X, Y, made, passed
from tools.qa import diagnosis_rates
from wengert import Value, data, diagnose
from wengert.losses import hinge, l2, mse
from wengert.nn import MLP
from wengert.optim import SGD, Adam
from wengert.training import fit

pytestmark = pytest.mark.once  # what is diagnosed are numbers, whichever engine computed them

# -- neurons ----------------------------------------------------------------------------------------------------------


def test_an_output_that_is_dead() -> None:
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    (finding,) = diagnose(model, passed(model, POSITIVE))
    assert (finding.kind, finding.where) == ("dead output ReLU", "layers.1.neurons.0")
    assert "0 for all 4 examples, though the loss asks for more for 3 of them" in finding.seen
    assert 'output="linear"' in finding.advice


def test_an_output_of_0_where_0_is_wanted() -> None:
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    assert not diagnose(model, passed(model, [0.0] * 4))


@pytest.mark.parametrize(("activation", "low"), [("tanh", -1.0), ("sigmoid", 0.0)])
@pytest.mark.parametrize("bias", [-20.0, 20.0])
def test_an_output_at_the_wrong_end(activation: str, low: float, bias: float) -> None:
    model = made(4, 1, activation="tanh", output=activation)
    model.layers[1].neurons[0].b.data = bias
    end, other = (1.0, low) if bias > 0.0 else (low, 1.0)
    assert not diagnose(model, passed(model, [end] * 4))
    (finding,) = diagnose(model, passed(model, [end, other, other, other]))
    assert (finding.kind, finding.where) == (f"saturated {activation}", "layers.1.neurons.0")
    assert "for 3 of 4 examples, at the wrong end" in finding.seen


def test_a_layer_that_is_saturated() -> None:
    model = made(3, 3, 1, activation="tanh")
    for neuron in model.layers[1].neurons:
        neuron.b.data = 30.0
    (finding,) = diagnose(model, passed(model))
    assert (finding.kind, finding.where) == ("saturated tanh", "layers.1")


def test_a_layer_that_is_dead() -> None:
    model = made(3, 3, 1)
    for neuron in model.layers[0].neurons:
        neuron.b.data = -30.0
    for neuron in model.layers[1].neurons:
        neuron.b.data = 1.0
    (finding,) = diagnose(model, passed(model))
    assert (finding.kind, finding.where) == ("dead ReLU", "layers.0")
    assert "3 of 3 ReLUs are 0 for all 4 examples, so nothing passes the layer" in finding.seen


def test_of_few_examples_neurons_are_not_judged() -> None:
    """A ReLU that is 0 for two examples may well be alive, and an input that is small in two may be great in others."""
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    loss = sum((model([0.001, x]) - 1.0) ** 2 for x in (1.0, 2.0))
    loss.backward()
    report = diagnose(model, loss)
    assert repr(report).endswith("2 examples, too few to judge neurons by)")
    assert not diagnose(model, X=[[0.001, 1.0], [0.001, 2.0]])


def test_one_dead_neuron_counts_in_a_run_that_is_stuck() -> None:
    model = made(4, 1)
    for neuron in model.layers[0].neurons:
        neuron.b.data = 3.0
    model.layers[0].neurons[2].b.data = -30.0
    loss = passed(model)
    assert not diagnose(model, loss)
    assert not diagnose(model, loss, [5.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05])
    (finding,) = diagnose(model, loss, [5.0, 4.0, 3.9, 3.8, 3.79, 3.785, 3.784, 3.784, 3.784, 3.784])
    assert (finding.kind, finding.where) == ("dead ReLU", "layers.0.neurons.2")


def test_the_relu_of_a_hinge_loss_is_no_neuron() -> None:
    """It is 0 for every example that is right by a margin: as it should be."""
    model = made(4, 1, activation="tanh")
    model.layers[1].neurons[0].b.data = 30.0
    for one in (hinge, lambda score, y: (1 + -y * score).relu(), lambda score, y: (1 - y * score).relu()):
        loss = sum(one(model(x), 1.0) for x in X) * 0.25 + l2(model.parameters(), 1e-4)
        model.zero_grad()
        loss.backward()
        assert not diagnose(model, loss)


class Tutorial:
    """The classes that tutorials write, which know nothing of wengert.nn."""

    class Neuron:
        def __init__(self, nin: int) -> None:
            self.w = [Value(random.Random(i).uniform(-1, 1)) for i in range(nin)]
            self.b = Value(0.0)

        def __call__(self, x: list[Any]) -> Value:
            return (sum(wi * xi for wi, xi in zip(self.w, x, strict=True)) + self.b).tanh()

    def __init__(self) -> None:
        self.hidden = [self.Neuron(2) for _ in range(3)]
        self.out = self.Neuron(3)

    def __call__(self, x: list[float]) -> Value:
        return self.out([neuron(x) for neuron in self.hidden])

    def parameters(self) -> list[Value]:
        return [p for neuron in (*self.hidden, self.out) for p in (*neuron.w, neuron.b)]


def test_neurons_that_are_written_by_hand() -> None:
    model = Tutorial()
    model.out.b.data = 20.0
    (finding,) = diagnose(model, passed(model))
    assert (finding.kind, finding.where) == ("saturated tanh", "out")
    model.out.b.data = 0.0
    assert not diagnose(model, passed(model))
    model.hidden[1].b.data = model.hidden[0].b.data = model.hidden[2].b.data = 20.0
    (finding,) = diagnose(model, passed(model))
    assert (finding.kind, finding.where) == ("saturated tanh", "hidden")
    model.hidden[1].b.data = model.hidden[0].b.data = model.hidden[2].b.data = 0.0
    loss = passed(model)
    for p in model.parameters():
        p.data += 0.5 * p.grad
    assert "wrong sign of the update" in diagnose(model, loss).kinds


def test_a_network_of_matrices() -> None:
    rng = random.Random(0)
    w = [[Value(rng.uniform(-1, 1)) for _ in range(2)] for _ in range(3)]
    b = [Value(0.0) for _ in range(3)]
    v = [Value(rng.uniform(-1, 1)) for _ in range(3)]
    parameters = {"w": w, "b": b, "v": v}
    b[2].data = 30.0
    hidden = [[wengert.dot(row, x, c).tanh() for row, c in zip(w, b, strict=True)] for x in X]
    loss = sum((wengert.dot(v, h).tanh() - y) ** 2 for h, y in zip(hidden, Y, strict=True))
    loss.backward()
    assert not diagnose(parameters, loss)
    assert diagnose([*w, b, v], loss, [1.0, 1.001] * 10).kinds == ()


# -- rates: a part of what `python -m tools.qa.diagnosis_rates` counts -----------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("N1", 8),
        ("N2", 16),
        ("N3", 16),
        ("N4", 1),
        *(pytest.param(name, 40, marks=pytest.mark.nightly) for name in ("N1", "N2", "N3")),
    ],
)
def test_it_is_right_of_the_networks_of_tutorials(name: str, seeds: int) -> None:
    for way, rate in diagnosis_rates.rates(name, seeds).items():
        assert rate.seeds >= min(seeds / 2, 20), way
        assert rate.right >= 0.95 * rate.seeds, (way, rate.others)


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_runs_of_fit_that_go_well(seed: int) -> None:
    rows, signs = data.moons(100, noise=0.1, seed=seed, labels=(-1, 1))
    model = MLP(2, [8, 8, 1], rng=random.Random(seed))
    history = fit(model, hinge, rows, signs, Adam(model, 0.05), epochs=30, batch_size=20, seed=seed, progress=False)
    assert not diagnose(model, history, X=rows, Y=signs)
    model = MLP(2, [8, 8, 1], rng=random.Random(seed), activation="tanh")
    history = fit(model, mse, rows, signs, SGD(model, 0.05), epochs=30, batch_size=10, seed=seed, progress=False)
    assert not diagnose(model, history, X=rows, Y=signs)
