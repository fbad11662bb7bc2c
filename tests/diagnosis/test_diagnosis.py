"""diagnose(): each thing that can be wrong with a training loop, made wrong on purpose and then right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value, diagnose
from wengert.losses import mae, mse
from wengert.nn import MLP, Module
from wengert.optim import SGD, Adam, Optimizer, clip_grad_norm
from wengert.training import fit

pytestmark = pytest.mark.once  # what is diagnosed are numbers, whichever engine computed them

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
    assert finding.seen == f"p.grad is the sum of {steps} passes since the last zero_grad"
    assert "zero_grad()" in finding.advice


def test_passes_since_the_last_zero_grad_are_counted() -> None:
    model = made(3, 1, activation="tanh")
    losses = loop(model, 4, zero=True)
    model.zero_grad()
    losses += loop(model, 3, zero=False)
    assert diagnose(model, losses)[0].seen == "p.grad is the sum of 3 passes since the last zero_grad"


def test_backward_three_times_on_one_loss() -> None:
    model = made(3, 1, activation="tanh")
    loss = squared(model)
    for _ in range(3):
        loss.backward()
    assert diagnose(model, loss)[0].seen == "p.grad is the sum of 3 passes since the last zero_grad"


def test_of_one_loss_it_is_seen_that_there_is_more() -> None:
    model = made(3, 1, activation="tanh")
    (finding,) = diagnose(model, loop(model, 3, zero=False)[-1])
    assert finding.kind == "gradients never zeroed"
    assert "has more than the last pass: for layers." in finding.seen


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


# -- parameters never updated -----------------------------------------------------------------------------------------


def rebound(model: MLP, steps: int = 20, batches: int = 1, zeroed_after: bool = False) -> list[Value]:
    """The losses of a loop that gives the name p to new Values, and leaves the parameters as they are."""
    losses = []
    for k in range(steps):
        rows = list(zip(X, Y, strict=True))[k % batches :: batches]
        losses.append(sum((model(x) - y) ** 2 for x, y in rows))
        model.zero_grad()
        losses[-1].backward()
        for p in model.parameters():
            p -= 0.05 * p.grad
        if zeroed_after:
            model.zero_grad()
    return losses


@pytest.mark.parametrize("zeroed_after", [False, True])
@pytest.mark.parametrize(
    "seen",
    [lambda losses: [losses[-1]], lambda losses: [losses], lambda losses: [losses[-1], [x.data for x in losses]]],
    ids=["the loss", "the losses", "the loss and the curve"],
)
def test_an_update_of_the_name_p_is_none_of_the_parameter(seen: Any, zeroed_after: bool) -> None:
    model = made(4, 1, activation="tanh")
    before = model.state_dict()
    losses = rebound(model, zeroed_after=zeroed_after)
    assert model.state_dict() == before
    finding = diagnose(model, *seen(losses))[0]
    assert finding.kind == "parameters never updated"
    assert finding.advice.startswith("write p.data -= lr * p.grad: p -= lr * p.grad makes a new Value named p")
    assert [p.grad for p in model.parameters()].count(0.0) == (17 if zeroed_after else 0)


def test_it_is_seen_in_the_curve_alone_and_in_batches() -> None:
    model = made(4, 1, activation="tanh")
    curve = [loss.data for loss in rebound(model)]
    assert diagnose(model, curve)[0].seen == (
        f"the loss is {curve[0]:.4g} at each of 20 steps, although the parameters have gradients"
    )
    losses = rebound(model, batches=2)
    assert len({loss.data for loss in losses}) == 2
    assert diagnose(model, losses[-1], [loss.data for loss in losses])[0].seen == (
        "the parameters have not changed since the loss, although 17 Values were made since, one for each parameter"
    )


@pytest.mark.parametrize("update", [lambda p: p - 0.05 * p.grad, lambda p: p + -0.05 * p.grad])
def test_other_ways_to_write_it(update: Callable[[Value], Value]) -> None:
    model = made(4, 1, activation="tanh")
    loss = passed(model)
    moved = [update(p) for p in model.parameters()]
    assert diagnose(model, loss).kinds == ("parameters never updated",)
    assert len(moved) == 17


def test_where_parameters_move_or_have_no_gradient_nothing_is_said_of_it() -> None:
    model = made(4, 1, activation="tanh")
    losses = loop(model, 20, zero=True)
    for seen in ([losses], [losses[-1]], [[x.data for x in losses]], [losses[-1], [round(x.data) for x in losses]]):
        assert "parameters never updated" not in diagnose(model, *seen).kinds
    loss = passed(model)  # before the update, and after some other computing
    assert not diagnose(model, loss)
    assert [model(x) for x in X]
    assert not diagnose(model, loss)
    dead = made(4, 1, output="relu")
    dead.layers[1].neurons[0].b.data = -30.0
    curve = [loss.data for loss in loop(dead, 20, zero=True)]
    assert len(set(curve)) == 1
    assert diagnose(dead, curve).kinds == ()


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


@pytest.mark.parametrize(("output", "span"), [("tanh", "-1 to 1"), ("sigmoid", "0 to 1"), ("relu", ">= 0")])
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
    assert re.search(f"a step of 5 times the gradient, raised the loss .* to {today:.4g}", finding.seen)
    assert finding.advice == "try a rate of 0.5"


RISING = [2.0, 1.0, 8.0, 8.1, 8.0, 7.9, 8.0, 8.0, 8.0, 8.0]
NOISY = [3.0, 1.0, 5.0, 2.0, 6.0, 1.5, 4.0, 2.5, 5.0, 2.0, 4.5, 1.5, 3.0, 5.0, 2.0]


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ([1.0, 10.0, 1e300, float("inf")], "the loss of step 3 is not finite, after 1e+300"),
        (RISING, "ends above where it began: first 2, largest 8.1, last 8"),
        (NOISY, "jumps up and down and hardly falls"),
    ],
)
def test_a_rate_that_is_too_high(curve: list[float], words: str) -> None:
    (finding,) = diagnose(made(1), curve)
    assert finding.kind == "learning rate too high"
    assert words in finding.seen


def test_a_loss_that_was_not_finite_before_the_first_step() -> None:
    (finding,) = diagnose(made(1), [float("nan")] * 9)
    assert finding.kind == "loss not finite"
    assert "the first loss is nan, before the first step" in finding.seen
    assert "detect_anomaly(loss)" in finding.advice


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
