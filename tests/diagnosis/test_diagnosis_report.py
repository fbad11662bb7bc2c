"""What diagnose() takes and gives: graphs, curves, data; a report; that nothing is changed; what it refuses."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest

import wengert
from tests.diagnosis.test_diagnosis import POSITIVE, X, Y, loop, made, passed
from wengert import Value, data, diagnose
from wengert.diagnosis import Diagnosis
from wengert.errors import ArgumentError, DataError, LengthError
from wengert.losses import cross_entropy
from wengert.nn import MLP, Module
from wengert.optim import Adam
from wengert.training import fit
from wengert.training.history import History

pytestmark = pytest.mark.once  # what is diagnosed are numbers, whichever engine computed them


def test_nothing_is_changed() -> None:
    model = made(4, 3, 1, activation="tanh", output="tanh")
    losses = loop(model, 5, zero=False)
    values = wengert.Graph(*losses).values
    before = [(v.data, v.grad) for v in values]
    state = random.getstate()
    diagnose(model, losses, X=X, Y=Y)
    assert [(v.data, v.grad) for v in values] == before
    assert random.getstate() == state


def test_a_compiled_loss_holds_no_neurons_and_the_data_show_them() -> None:
    pytest.importorskip("numpy", reason="compiled functions run on NumPy")
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    compiled = wengert.compile(lambda x, y: (model(x) - y) ** 2)
    loss = compiled.mean(X, POSITIVE)
    loss.backward()
    assert "dead output ReLU" not in diagnose(model, loss).kinds
    assert diagnose(model, loss, X=X, Y=POSITIVE).kinds == ("dead output ReLU",)


def test_after_fit() -> None:
    rows, classes = data.spiral(30, classes=3, seed=0)
    model = MLP(2, [8, 3], activation="tanh", rng=random.Random(0))
    history = fit(model, cross_entropy, rows, classes, Adam(model, 0.05), epochs=10, progress=False, seed=0)
    report = diagnose(model, history, X=rows, Y=classes)
    assert not report
    assert repr(report) == "no faults found in the loss curve (10 steps), the model, tried on 90 examples"
    for neuron in model.layers[0].neurons:
        neuron.b.data = 40.0
    assert [(f.kind, f.where) for f in diagnose(model, history, X=rows, Y=classes)] == [("saturated tanh", "layers.0")]


def test_arrays_are_data_too() -> None:
    np = pytest.importorskip("numpy", reason="the data are arrays of NumPy")
    model = made(3, 1, output="tanh")
    assert diagnose(model, X=np.array(X), Y=np.array([5.0] * 4)).kinds == ("target out of range",)


def test_the_data_show_the_neurons_under_no_grad_too() -> None:
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    with wengert.no_grad():
        assert diagnose(model, X=X, Y=POSITIVE).kinds == ("dead output ReLU",)


def test_the_report() -> None:
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    report = diagnose(model, passed(model, POSITIVE))
    assert isinstance(report, Diagnosis)
    assert isinstance(report, tuple)
    for twin in (copy.copy(report), copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert (twin, twin.looked_at, repr(twin)) == (report, report.looked_at, repr(report))
    assert report.looked_at == ("the graph of the loss (5 neurons with an activation, 4 examples)",)
    assert repr(report).splitlines()[0] == "dead output ReLU: layers.1.neurons.0"
    assert repr(report).splitlines()[1].startswith("    seen: it is 0 for all 4 examples")
    assert repr(report).splitlines()[2].startswith("    do:   leave the last layer linear")


@pytest.mark.parametrize(
    ("seen", "options", "words"),
    [
        ((), {}, "there is nothing to examine"),
        ((3.0,), {}, r"3\.0 is not a loss"),
        (("loss",), {}, "'loss' is not a loss"),
        ((["a", "b"],), {}, "numbers or Values, found str 'a'"),
        (([1.0, None],), {}, "numbers or Values, found None"),
        (([1.0],), {"Y": Y}, "Y was passed without X"),
        ((), {"X": 3}, "X is int 3; expected a list of examples"),
        ((), {"X": X, "Y": 3}, "Y is int 3; expected a list of examples"),
        ((), {"X": [[1.0, float("nan")]]}, r"X\[0\] has nan; expected finite numbers"),
        ((), {"X": X, "Y": [1.0, 2.0, float("inf"), 3.0]}, r"Y\[2\] has inf; expected finite numbers"),
        ((), {"X": [], "Y": []}, "X is empty"),
        ((), {"X": X, "Y": [1.0]}, "X has 4 rows but Y has 1"),
        ((), {"X": X, "Y": [[1.0, 2.0]] * 4}, "the prediction is one number, the target a list of 2"),
    ],
)
def test_what_cannot_be_looked_at(seen: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, DataError, LengthError), match=words):
        diagnose(made(1), *seen, **options)


def test_a_model_without_parameters() -> None:
    for nothing in (lambda x: x, MLP, "model", None):
        with pytest.raises(ArgumentError, match="has no parameters: pass a Module"):
            diagnose(nothing, Value(1.0) * 2)


def test_a_list_of_parameters_cannot_be_tried() -> None:
    with pytest.raises(ArgumentError, match=r"X needs a model that can be called, and list .* cannot be"):
        diagnose(made(1).parameters(), X=X)


def test_classes() -> None:
    model = made(3, 3)
    assert diagnose(model, X=X, Y=[0.0, 1.0, 2.0, 0.0]).looked_at  # as NumPy's arrays of floats hold them
    for wrong, words in (
        (1.5, "a class, an int, got 1.5"),
        ("a", "a class, an int, got 'a'"),
        (3, "there is no class 3: "),
    ):
        with pytest.raises(DataError, match=words):
            diagnose(model, X=X, Y=[0, 1, 2, wrong])


def test_a_function_that_knows_its_parameters() -> None:
    w = Value(3.0)

    class Hidden:
        __slots__ = ()

        def parameters(self) -> list[Value]:
            return [w]

    assert diagnose(Hidden(), Value(1.0) * 2)[0].where == "parameters.0"


def test_a_model_that_gives_floats() -> None:
    inner = made(3, 1)

    class Floats(Module):
        def __init__(self) -> None:
            self.inner = inner

        def __call__(self, x: list[float]) -> float:
            return self.inner(x).data

    (finding,) = diagnose(Floats(), X=X, Y=Y)
    assert (finding.kind, finding.where) == ("unreached parameter", "inner.layers")
    assert "13 of 13 parameters" in finding.seen


def test_a_model_that_draws_random_numbers() -> None:
    inner = made(3, 1)

    class Noisy(Module):
        def __init__(self) -> None:
            self.inner = inner

        def __call__(self, x: list[float]) -> Value:
            return self.inner([random.random(), *x[1:]])

    state = random.getstate()
    diagnose(Noisy(), X=X, Y=Y)
    assert random.getstate() == state


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_upset_nothing(number: float) -> None:
    model = made(3, 1, activation="tanh", output="tanh")
    model.parameters()[0].data = number
    loss = passed(model)
    assert diagnose(model, loss, [1.0] * 9 + [loss.data]).kinds[0] == "learning rate too high"


def test_a_loss_below_0_that_falls() -> None:
    """As that of a log-likelihood, or of a reward with its sign changed."""
    assert not diagnose(made(1), [-10.0 - 0.1 * k + 0.05 * (k % 2) for k in range(20)])
    assert diagnose(made(1), [-10.0 + 0.2 * k for k in range(20)]).kinds == ("wrong sign of the update",)


def test_a_loss_that_is_passed_twice_counts_once() -> None:
    model = made(3, 1, activation="tanh")
    losses = loop(model, 3, zero=False)
    for seen in ((losses, losses[-1]), (losses[-1], losses)):
        assert diagnose(model, *seen)[0].seen == "p.grad is the sum of 3 passes since the last zero_grad"


def test_a_history_of_nothing() -> None:
    assert not diagnose(made(1), History([1.0]))
