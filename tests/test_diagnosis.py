"""diagnose(): each thing that can be wrong, made wrong on purpose and then right; how often it is right, and silent."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import diagnosis_rates
import pytest

import wengert
from wengert import Value, data, diagnose
from wengert.diagnosis import Diagnosis
from wengert.errors import ArgumentError, LengthError
from wengert.history import History
from wengert.losses import cross_entropy, hinge, l2, mae, mse
from wengert.nn import MLP, Module
from wengert.optim import SGD, Adam, Optimizer, clip_grad_norm
from wengert.training import fit

X = [[0.5, -1.0], [1.0, 0.25], [-0.75, 1.0], [0.25, 0.5]]
Y = [0.5, -0.5, 0.25, 0.75]
POSITIVE = [0.5, 0.0, 0.25, 0.75]


def made(*nouts: int, **options: Any) -> MLP:
    return MLP(2, list(nouts), rng=random.Random(0), **options)


def squared(model: Any, Y: list[float] = Y) -> Value:
    return sum((model(x) - y) ** 2 for x, y in zip(X, Y, strict=True))


def passed(model: Any, Y: list[float] = Y) -> Value:
    """A loss whose gradient has been taken, of zeroed gradients."""
    for p in model.parameters():
        p.grad = 0.0
    loss = squared(model, Y)
    loss.backward()
    return loss


# -- gradients never zeroed -------------------------------------------------------------------------------------------


def loop(model: MLP, steps: int, zero: bool, rate: float = 0.01) -> list[Value]:
    losses = []
    for _ in range(steps):
        losses.append(squared(model))
        if zero:
            model.zero_grad()
        losses[-1].backward()
        for p in model.parameters():
            p.data -= rate * p.grad
    return losses


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_passes_are_counted(steps: int) -> None:
    model = made(3, 1, activation="tanh")
    (finding,) = diagnose(model, loop(model, steps, zero=False))
    assert finding.kind == "gradients never zeroed"
    assert finding.seen == f"p.grad holds {steps} passes since the last zero_grad"
    assert "zero_grad()" in finding.advice


def test_passes_since_the_last_zero_grad_are_counted() -> None:
    model = made(3, 1, activation="tanh")
    losses = loop(model, 4, zero=True)
    model.zero_grad()
    losses += loop(model, 3, zero=False)
    assert diagnose(model, losses)[0].seen == "p.grad holds 3 passes since the last zero_grad"


def test_backward_three_times_on_one_loss() -> None:
    model = made(3, 1, activation="tanh")
    loss = squared(model)
    for _ in range(3):
        loss.backward()
    assert diagnose(model, loss)[0].seen == "p.grad holds 3 passes since the last zero_grad"


def test_of_one_loss_it_is_seen_that_there_is_more() -> None:
    model = made(3, 1, activation="tanh")
    (finding,) = diagnose(model, loop(model, 3, zero=False)[-1])
    assert finding.kind == "gradients never zeroed"
    assert "holds more than the last pass: of layers." in finding.seen


@pytest.mark.parametrize(
    "afterwards",
    [
        lambda model: None,
        lambda model: model.zero_grad(),
        lambda model: clip_grad_norm(model, 1e-3),
        lambda model: SGD(model, 0.1).step(),
    ],
    ids=["as it is", "zeroed", "clipped", "stepped"],
)
def test_one_pass_is_no_finding(afterwards: Callable[[MLP], object]) -> None:
    model = made(3, 1, activation="tanh")
    loss = passed(model)
    afterwards(model)
    assert diagnose(model, loss).kinds == ()


def test_a_pass_of_another_size() -> None:
    model = made(3, 1, activation="tanh")
    loss = squared(model)
    loss.backward(0.25)
    assert not diagnose(model, loss)


# -- parameters out of reach ------------------------------------------------------------------------------------------


class Broken(Module):
    """Two layers, the first with a fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.first, self.second, self.spare = made(3, activation="tanh"), MLP(3, [1]), Value(1.0)

    def __call__(self, x: list[float]) -> Value:
        hidden: Any = self.first(x)
        if self.fault == "data":
            hidden = [h.data for h in hidden]
        return self.second(hidden) * (1.0 if self.fault == "spare" else self.spare)


@pytest.mark.parametrize(
    ("fault", "where"),
    [("spare", ["spare"]), ("data", ["first.layers.0.neurons"]), ("", [])],
)
def test_a_parameter_that_the_loss_does_not_reach(fault: str, where: list[str]) -> None:
    model = Broken(fault)
    report = diagnose(model, passed(model))
    assert [(finding.kind, finding.where) for finding in report] == [("unreached parameter", w) for w in where]
    assert diagnose(model, X=X, Y=Y).kinds == report.kinds


def test_weights_that_zip_leaves_out() -> None:
    """The neuron of tutorials, given two inputs for its three weights."""

    class Cut(Module):
        def __init__(self) -> None:
            self.w, self.b = [Value(0.1), Value(0.2), Value(0.3)], Value(0.0)

        def __call__(self, x: list[float]) -> Value:
            return (sum((w * x for w, x in zip(self.w, x, strict=False)), self.b)).tanh()

    model = Cut()
    (finding,) = diagnose(model, passed(model))
    assert (finding.kind, finding.where) == ("unreached parameter", "w.2")
    assert "1 of 4 parameters" in finding.seen


def test_rows_of_a_table_that_this_pass_did_not_look_up() -> None:
    class Table(Module):
        def __init__(self) -> None:
            self.rows = [[Value(0.1), Value(0.2)] for _ in range(9)]

        def __call__(self, place: int) -> Value:
            return self.rows[place][0] * 0.5 + self.rows[place][1]

    model = Table()
    loss = sum((model(place) - 1.0) ** 2 for place in (0, 3, 4))
    loss.backward()
    assert not diagnose(model, loss)


# -- targets, inputs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("output", "span"), [("tanh", "-1 to 1"), ("sigmoid", "0 to 1"), ("relu", "0 up")])
@pytest.mark.parametrize(
    "loss",
    [
        lambda out, y: (out - y) ** 2,
        lambda out, y: (y - out) ** 2,
        lambda out, y: (out + -y) ** 2.0,
        lambda out, y: abs(out - y),
        mse,
        mae,
    ],
)
def test_targets_that_the_output_cannot_give(output: str, span: str, loss: Any) -> None:
    model = made(3, 1, activation="tanh", output=output)
    targets = [0.5, -3.0, 0.0, 1.0]
    total: Any = sum(loss(model(x), y) for x, y in zip(X, targets, strict=True))
    total.backward()
    for report in (diagnose(model, total), diagnose(model, X=X, Y=targets)):
        (finding,) = [f for f in report if f.kind == "target out of range"]
        assert finding.where == "layers.1.neurons.0"
        assert "1 of 4 targets, from -3 to -3" in finding.seen
        assert span in finding.seen


def test_targets_at_the_ends_of_the_range_are_in_it() -> None:
    model = made(3, 1, activation="tanh", output="tanh")
    targets = [1.0, -1.0, 1.0, 0.0]
    assert not diagnose(model, passed(model, targets), X=X, Y=targets)


def test_targets_of_several_outputs() -> None:
    model = made(3, 2, activation="tanh", output="sigmoid")
    report = diagnose(model, X=X, Y=[[0.0, 1.0], [1.0, 7.0], [0.5, 0.5], [0.5, 6.0]])
    assert [f.where for f in report if f.kind == "target out of range"] == ["layers.1.neurons.1"]


@pytest.mark.parametrize("way", ["graph", "rows"])
def test_inputs_of_very_different_scale(way: str) -> None:
    rows = [[x, 1000.0 * y] for x, y in X]
    model = made(1, output="linear")
    loss = sum((model(x) - y) ** 2 for x, y in zip(rows, Y, strict=True))
    loss.backward()
    report = diagnose(model, loss) if way == "graph" else diagnose(model, X=rows)
    (finding,) = report
    assert finding.kind == "inputs of different scale"
    assert "input 1 goes up to 1e+03, input 0 only to 1:" in finding.seen
    assert finding.where == ("layers.0" if way == "graph" else "")


def test_inputs_of_somewhat_different_scale_are_fine() -> None:
    rows = [[x, 20.0 * y] for x, y in X]
    assert not diagnose(made(3, 1), X=rows)
    assert not diagnose(MLP(3, [1]), X=[[0.0, x, y] for x, y in X])  # a column of zeros has no scale


# -- the sign, and the rate -------------------------------------------------------------------------------------------


def by_hand(model: Any) -> Value:
    loss = squared(model)
    loss.backward()
    return loss


@pytest.mark.parametrize("step", [0.02, 1e-6])
def test_the_wrong_sign_is_seen_in_one_update(step: float) -> None:
    model = made(3, 1, activation="tanh")
    loss = passed(model)
    for p in model.parameters():
        p.data += step * p.grad
    (finding,) = diagnose(model, loss)
    assert finding.kind == "wrong sign of the update"
    assert f"by +{step:.3g} times their gradient, uphill" in finding.seen
    assert "p.data -= lr * p.grad" in finding.advice


@pytest.mark.parametrize("seed", range(20))
def test_parameters_that_have_not_moved_tell_nothing_of_the_sign(seed: int) -> None:
    """Computed again in another order, a weighted sum may differ in its last digit."""
    rng = random.Random(seed)
    rows = [[rng.uniform(-9, 9) for _ in range(7)] for _ in range(1 + seed % 4)]
    model = MLP(7, [2, 1], activation="tanh", rng=rng)
    for loss in (sum(model(x) ** 2 for x in rows), model.layers[0](rows[0])[0] + 1.0):
        model.zero_grad()
        loss.backward()
        assert "wrong sign of the update" not in diagnose(model, loss).kinds


def test_the_right_sign_is_no_finding() -> None:
    model = made(3, 1, activation="tanh")
    assert not diagnose(model, loop(model, 10, zero=True))


@pytest.mark.parametrize("optimizer", [lambda m: Adam(m, 0.01), lambda m: SGD(m, 0.01, momentum=0.9)])
def test_an_update_by_another_rule_is_not_judged(optimizer: Callable[[MLP], Optimizer]) -> None:
    model = made(3, 1, activation="tanh")
    tuned = optimizer(model)
    losses = []
    for _ in range(30):
        losses.append(passed(model))
        tuned.step()
    assert not diagnose(model, losses[-1])
    assert not diagnose(model, losses)


def test_the_wrong_sign_is_seen_in_the_curve() -> None:
    model = made(3, 1, activation="tanh")
    losses = [loss.data for loss in loop(model, 30, zero=True, rate=-0.002)]
    (finding,) = diagnose(model, losses)
    assert finding.kind == "wrong sign of the update"
    assert "at 29 of 29 steps" in finding.seen
    assert diagnose(model, passed(model), losses).kinds == ("wrong sign of the update",)


def test_both_say_it_once() -> None:
    model = made(3, 1, activation="tanh")
    assert diagnose(model, loop(model, 30, zero=True, rate=-0.002)).kinds == ("wrong sign of the update",)


def test_a_step_beyond_the_valley() -> None:
    model = made(1, output="linear")
    loss = passed(model)
    for p in model.parameters():
        p.data -= 5.0 * p.grad
    today = squared(model).data
    (finding,) = diagnose(model, loss)
    assert finding.kind == "learning rate too high"
    assert f"a step of 5 times the gradient, made the loss of the same examples {today:.4g}" in finding.seen
    assert finding.advice == "try a rate of 0.5"


RISING = [2.0, 1.0, 8.0, 8.1, 8.0, 7.9, 8.0, 8.0, 8.0, 8.0]
NOISY = [3.0, 1.0, 5.0, 2.0, 6.0, 1.5, 4.0, 2.5, 5.0, 2.0, 4.5, 1.5, 3.0, 5.0, 2.0]


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ([1.0, 10.0, 1e300, float("inf")], "the loss of step 3 is not finite, after 1e+300"),
        ([float("nan")] * 3, "the loss of step 0 is not finite"),
        (RISING, "ends above where it began: 2 at first, 8.1 at most, 8 in the end"),
        (NOISY, "jumps up and down and hardly falls"),
    ],
)
def test_a_rate_that_is_too_high(curve: list[float], words: str) -> None:
    (finding,) = diagnose(made(1), curve)
    assert finding.kind == "learning rate too high"
    assert words in finding.seen


def test_a_run_of_fit_that_diverged() -> None:
    model = made(1, output="linear")
    with pytest.warns(RuntimeWarning, match="the loss is"):
        history = fit(model, mse, X, Y, SGD(model, 1e3), epochs=500, progress=False, backend="eager")
    assert "learning rate too high" in diagnose(model, history).kinds
    model.parameters()[0].data = float("inf")
    assert diagnose(model, [1.0])[0].where == "layers.0.neurons.0.w.0"


def test_a_rate_that_is_too_low() -> None:
    model = made(3, 1, activation="tanh")
    losses = [loss.data for loss in loop(model, 40, zero=True, rate=1e-6)]
    (finding,) = diagnose(model, losses)
    assert finding.kind == "learning rate too low"
    assert "falls evenly and slowly" in finding.seen


def test_a_run_that_has_arrived_is_not_slow() -> None:
    """A line through four points that lie on none: the loss levels off where it can fall no further."""
    model = made(1, output="linear")
    losses = [loss.data for loss in loop(model, 400, zero=True, rate=0.1)]
    assert losses[-1] > 0.1 * losses[0]
    assert not diagnose(model, losses)


def test_a_few_losses_are_no_curve() -> None:
    assert not diagnose(made(1), [1.0, 2.0, 3.0])


# -- neurons ----------------------------------------------------------------------------------------------------------


def test_an_output_that_is_dead() -> None:
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    (finding,) = diagnose(model, passed(model, POSITIVE))
    assert (finding.kind, finding.where) == ("dead output ReLU", "layers.1.neurons.0")
    assert "0 for all 4 examples, and for 3 of them the loss would have it larger" in finding.seen
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
    assert "3 of 3 ReLUs are 0 for all 4 examples, and nothing passes the layer" in finding.seen


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
    assert diagnose([*w, b, v], loss, [1.0] * 20).kinds == ()


# -- what is looked at, and that nothing is changed -------------------------------------------------------------------


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
    assert repr(report) == "nothing found in the loss curve (10 steps), the model, tried on 90 examples"
    for neuron in model.layers[0].neurons:
        neuron.b.data = 40.0
    assert [(f.kind, f.where) for f in diagnose(model, history, X=rows, Y=classes)] == [("saturated tanh", "layers.0")]


def test_arrays_are_data_too() -> None:
    np = pytest.importorskip("numpy", reason="the data are arrays of NumPy")
    model = made(3, 1, output="tanh")
    assert diagnose(model, X=np.array(X), Y=np.array([5.0] * 4)).kinds == ("target out of range",)


def test_the_report() -> None:
    model = made(4, 1, activation="tanh", output="relu")
    model.layers[1].neurons[0].b.data = -20.0
    report = diagnose(model, passed(model, POSITIVE))
    assert isinstance(report, Diagnosis)
    assert isinstance(report, tuple)
    assert report.looked_at == ("the graph of the loss (5 neurons with an activation, 4 examples)",)
    assert repr(report).splitlines()[0] == "dead output ReLU: layers.1.neurons.0"
    assert repr(report).splitlines()[1].startswith("    seen: it is 0 for all 4 examples")
    assert repr(report).splitlines()[2].startswith("    do:   leave the last layer linear")


@pytest.mark.parametrize(
    ("seen", "options", "words"),
    [
        ((), {}, "there is nothing to look at"),
        ((3.0,), {}, r"3\.0 is no loss"),
        (("loss",), {}, "'loss' is no loss"),
        ((["a", "b"],), {}, "holds numbers, not 'a'"),
        ((), {"X": [], "Y": []}, "X is empty"),
        ((), {"X": X, "Y": [1.0]}, "X has 4 rows, Y has 1"),
        ((), {"X": X, "Y": [[1.0, 2.0]] * 4}, "the prediction is one number, the target a list of 2"),
    ],
)
def test_what_cannot_be_looked_at(seen: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, LengthError), match=words):
        diagnose(made(1), *seen, **options)


def test_a_model_without_parameters() -> None:
    with pytest.raises(ArgumentError, match="no parameters are found in"):
        diagnose(lambda x: x, Value(1.0) * 2)


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
        assert diagnose(model, *seen)[0].seen == "p.grad holds 3 passes since the last zero_grad"


# -- rates: a part of what `python tests/diagnosis_rates.py` counts ----------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), [("N1", 20), ("N2", 60), ("N3", 40), ("N4", 1)])
def test_it_is_right_of_the_networks_of_tutorials(name: str, seeds: int) -> None:
    for way, rate in diagnosis_rates.rates(name, seeds).items():
        assert rate.seeds >= min(seeds, 20), way
        assert rate.right >= 0.95 * rate.seeds, (way, rate.others)


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


def test_a_history_of_nothing() -> None:
    assert not diagnose(made(1), History([1.0]))


def test_a_sign_is_seen_beneath_a_compiled_function() -> None:
    """The first layer was computed by the engine, the rest by a program: the sign is known all the same."""
    pytest.importorskip("numpy", reason="compiled functions run on NumPy")
    model = made(4, 1, activation="tanh")
    rest = wengert.compile(lambda h, y: (model.layers[1](h) - y) ** 2)
    model.zero_grad()
    loss: Any = sum(rest(model.layers[0](x), y) for x, y in zip(X, Y, strict=True))
    loss.backward()
    for p in model.parameters():
        p.data += 0.01 * p.grad
    (finding,) = diagnose(model, loss)
    assert finding.kind == "wrong sign of the update"
    assert finding.seen.startswith("the last update moved the parameters by +0.01 times their gradient, uphill")
