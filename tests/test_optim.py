"""Optimizers: PyTorch as the oracle for every formula and every argument; freezing, state, clipping, misuse."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

from wengert.engine import Value
from wengert.errors import ArgumentError, OperandError
from wengert.nn import MLP
from wengert.optim import SGD, Adam, AdamW, Optimizer, clip_grad_norm

SETTINGS: list[tuple[type[Optimizer], dict[str, Any]]] = [
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": 0.1, "weight_decay": 0.3}),
    (SGD, {"lr": 0.1, "momentum": 0.9}),
    (SGD, {"lr": 0.05, "momentum": 0.7, "nesterov": True}),
    (SGD, {"lr": 0.05, "momentum": 0.7, "nesterov": True, "weight_decay": 0.2}),
    (Adam, {}),
    (Adam, {"lr": 0.05}),
    (Adam, {"lr": 0.05, "betas": (0.5, 0.6), "eps": 1e-3}),
    (Adam, {"lr": 0.05, "betas": (0.0, 0.0)}),
    (Adam, {"lr": 0.05, "weight_decay": 0.3}),
    (AdamW, {"lr": 0.05}),
    (AdamW, {"lr": 0.05, "weight_decay": 0.4, "betas": (0.8, 0.9)}),
]
STEPS, START = 60, [1.5, -2.0, 0.3, 0.0]


def gradients(seed: int = 0) -> list[list[float]]:
    """The gradients of a run: of very different sizes, now and then exactly 0."""
    rng = random.Random(seed)
    return [[rng.choice([0.0, 1e-6, 1.0, 1e3]) * rng.gauss(0.0, 1.0) for _ in START] for _ in range(STEPS)]


def run(optimizer: Optimizer, steps: list[list[float]]) -> list[list[float]]:
    """The parameters after each step."""
    history = []
    for gradient in steps:
        for p, g in zip(optimizer.parameters, gradient, strict=True):
            p.grad = g
        optimizer.step()
        history.append([p.data for p in optimizer.parameters])
    return history


def values() -> list[Value]:
    return [Value(number) for number in START]


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_every_step_as_in_pytorch(kind: type[Optimizer], settings: dict[str, Any]) -> None:
    import torch

    oracle = [torch.tensor(number, dtype=torch.float64, requires_grad=True) for number in START]
    theirs = getattr(torch.optim, kind.__name__)(oracle, **settings)
    for ours, gradient in zip(run(kind(values(), **settings), gradients()), gradients(), strict=True):
        for p, g in zip(oracle, gradient, strict=True):
            p.grad = torch.tensor(g, dtype=torch.float64)
        theirs.step()
        assert ours == pytest.approx([p.item() for p in oracle], rel=1e-12, abs=1e-13)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_network_is_trained_as_in_pytorch(name: str) -> None:
    """The loss of every step, with a learning rate that changes and a gradient that is clipped."""
    import torch

    kinds: dict[str, Callable[..., Optimizer]] = {"SGD": SGD, "Adam": Adam, "AdamW": AdamW}
    model = MLP(2, [4, 1], activation="tanh", rng=random.Random(1))
    oracle = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    with torch.no_grad():
        for layer, linear in zip(model.layers, (oracle[0], oracle[2]), strict=True):
            weight, bias = [[w.data for w in neuron.w] for neuron in layer.neurons], [n.b.data for n in layer.neurons]
            linear.weight.copy_(torch.tensor(weight, dtype=torch.float64))
            linear.bias.copy_(torch.tensor(bias, dtype=torch.float64))
    settings = {"weight_decay": 0.01, **({"momentum": 0.9} if name == "SGD" else {})}
    ours = kinds[name](model, lr=lambda step: 0.1 / (1 + step), **settings)
    theirs = getattr(torch.optim, name)(oracle.parameters(), lr=0.1, **settings)
    schedule = torch.optim.lr_scheduler.LambdaLR(theirs, lambda step: 1.0 / (1 + step))
    inputs, targets = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 0.0]
    for _ in range(20):
        loss = sum((model(x) - y) ** 2 for x, y in zip(inputs, targets, strict=True))
        ours.zero_grad()
        loss.backward()
        norm = clip_grad_norm(model.parameters(), 0.5)
        ours.step()
        expected = ((oracle(torch.tensor(inputs).double())[:, 0] - torch.tensor(targets).double()) ** 2).sum()
        theirs.zero_grad()
        expected.backward()
        expected_norm = torch.nn.utils.clip_grad_norm_(oracle.parameters(), 0.5)
        theirs.step()
        schedule.step()
        assert loss.data == pytest.approx(expected.item(), rel=1e-11)
        assert norm == pytest.approx(expected_norm.item(), rel=1e-11)


def test_a_learning_rate_that_is_missing_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"lr, the learning rate, is missing: write SGD\(model.parameters\(\), lr="):
        SGD(MLP(2, [1]).parameters())


def test_by_hand() -> None:
    x = Value(1.0)
    optimizer = SGD([x], 0.5, momentum=0.5)
    assert run(optimizer, [[1.0], [1.0], [1.0]]) == [[0.5], [-0.25], [-1.125]]
    x = Value(1.0)
    assert run(SGD([x], 0.5, momentum=0.5, nesterov=True), [[1.0]]) == [[0.25]]
    x = Value(2.0)
    assert run(SGD([x], 0.5, weight_decay=0.25), [[0.0]]) == [[1.75]]


def test_the_learning_rate_may_be_a_function_of_the_step() -> None:
    asked = []

    def rate(step: int) -> float:
        asked.append(step)
        return 1.0 / 2**step

    x = Value(0.0)
    optimizer = SGD([x], rate)
    assert run(optimizer, [[-1.0]] * 4) == [[1.0], [1.5], [1.75], [1.875]]
    assert asked == [0, 1, 2, 3]
    assert (optimizer.steps, optimizer.lr) == (4, 0.0625)


def test_the_learning_rate_may_be_set() -> None:
    optimizer = SGD([Value(0.0)], lr=1.0)
    optimizer.lr = 0.5
    assert optimizer.lr == 0.5
    optimizer.lr = lambda step: 0.1 * (1 + step)
    assert optimizer.lr == 0.1
    with pytest.raises(ArgumentError, match="lr is -1"):
        optimizer.lr = -1
    assert optimizer.lr == 0.1


def test_a_learning_rate_that_turns_bad_moves_nothing() -> None:
    x = Value(1.0)
    optimizer = SGD([x], lambda step: 0.5 if step == 0 else math.nan)
    x.grad = 1.0
    optimizer.step()
    with pytest.raises(ArgumentError, match="the learning rate of step 1 is nan"):
        optimizer.step()
    assert (x.data, optimizer.steps) == (0.5, 1)


def test_zero_grad_clears_frozen_parameters_too() -> None:
    xs = values()
    optimizer = SGD(xs, 0.1)
    optimizer.freeze(xs[0])
    run(optimizer, gradients()[:1])
    optimizer.zero_grad()
    assert [x.grad for x in xs] == [0.0] * len(xs)


def test_parameters_from_anywhere_each_once() -> None:
    model = MLP(2, [2, 1])
    assert SGD(model, 0.1).parameters == model.parameters()
    assert SGD(iter(model.parameters()), 0.1).parameters == model.parameters()
    assert SGD(model.parameters() + model.parameters(), 0.1).parameters == model.parameters()


# -- freezing -------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_freezing_is_pytorchs_missing_gradient(kind: type[Optimizer], settings: dict[str, Any]) -> None:
    """A frozen parameter keeps its data, momentum and age, and goes on from there."""
    import torch

    xs = values()
    ours = kind(xs, **settings)
    oracle = [torch.tensor(number, dtype=torch.float64, requires_grad=True) for number in START]
    theirs = getattr(torch.optim, kind.__name__)(oracle, **settings)
    for step, gradient in enumerate(gradients(1)):
        if step == 0:
            ours.freeze(xs[3])
        if step == 10:
            ours.freeze([xs[0], xs[2]])
        if step == 20:
            ours.unfreeze(xs[0], [xs[3]])
        frozen = {3} if step < 10 else {0, 2, 3} if step < 20 else {2}
        assert ours.trainable == [x for i, x in enumerate(xs) if i not in frozen]
        for i, (p, g) in enumerate(zip(oracle, gradient, strict=True)):
            xs[i].grad = g
            p.grad = None if i in frozen else torch.tensor(g, dtype=torch.float64)
        ours.step()
        theirs.step()
        assert [x.data for x in xs] == pytest.approx([p.item() for p in oracle], rel=1e-12, abs=1e-13)


def test_a_frozen_layer_stays() -> None:
    model = MLP(2, [3, 1], rng=random.Random(0))
    before = model.state_dict()
    optimizer = Adam(model, 0.1)
    optimizer.freeze(model.layers[0])
    model([1.0, 2.0]).backward()
    optimizer.step()
    moved = {name.split(".")[1] for name, number in model.state_dict().items() if number != before[name]}
    assert moved == {"1"}


def test_a_stranger_cannot_be_frozen() -> None:
    xs = values()
    optimizer = SGD(xs, 0.1)
    with pytest.raises(ArgumentError, match="not a parameter of this optimizer"):
        optimizer.freeze(xs[0], Value(1.0))
    assert optimizer.trainable == xs


# -- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_training_resumes_to_the_last_bit(kind: type[Optimizer], settings: dict[str, Any]) -> None:
    steps = gradients(2)
    whole = run(kind(values(), **settings), steps)
    first = kind(values(), **settings)
    run(first, steps[:25])
    state = json.loads(json.dumps(first.state_dict()))
    second = kind([Value(p.data) for p in first.parameters], **settings)
    second.load_state_dict(state)
    assert run(second, steps[25:]) == whole[25:]
    assert second.steps == STEPS


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_go_on_alike(twin_of: Callable[[Optimizer], Optimizer]) -> None:
    optimizer = Adam(values(), 0.1)
    run(optimizer, gradients()[:5])
    twin = twin_of(optimizer)
    assert run(twin, gradients()[5:]) == run(optimizer, gradients()[5:])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (SGD(values(), 0.1).state_dict(), "not a state of Adam"),
        (AdamW(values(), 0.1).state_dict(), "not a state of Adam"),
        ({}, "not a state of Adam: expected .*'age'.*, got \\[\\]"),
        (Adam([Value(1.0)], 0.1).state_dict(), "age is for 1 parameter, not 4"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(state: dict[str, Any], message: str) -> None:
    optimizer = Adam(values(), 0.1)
    run(optimizer, gradients()[:3])
    before = optimizer.state_dict()
    with pytest.raises(ArgumentError, match=message):
        optimizer.load_state_dict(state)
    assert optimizer.state_dict() == before


def test_optimizers_read_well() -> None:
    assert repr(SGD(values(), 0.1)) == "SGD(4 parameters, lr=0.1, momentum=0.0, nesterov=False, weight_decay=0.0)"
    assert repr(AdamW(values())) == "AdamW(4 parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01)"


def test_an_optimizer_of_ones_own() -> None:
    class SignDescent(Optimizer):
        def _update(self, lr: float) -> None:
            for p in self.trainable:
                p.data -= math.copysign(lr, p.grad)

    optimizer = SignDescent([Value(1.0)], 0.25)
    assert run(optimizer, [[7.0], [-7.0]]) == [[0.75], [1.0]]
    assert repr(optimizer) == "SignDescent(1 parameter, lr=0.25, steps=2)"
    with pytest.raises(NotImplementedError, match="Optimizer defines neither _rule nor _update"):
        Optimizer([Value(1.0)], 0.1).step()


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW])
def test_a_rule_above_another(kind: Any) -> None:
    class Clamped(kind):  # type: ignore[misc]
        def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
            moved, *new = super()._rule(lr, x, g, *state)
            return max(moved, 0.875), *new

    class Named(Clamped):
        """Without a rule of its own."""

    for made in (Clamped, Named):
        x = Value(1.0)
        assert run(made([x], 0.25), [[1.0], [-1.0]])[0] == [0.875]


# -- clipping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gradient", "max_norm", "norm", "after"),
    [
        ([3.0, 4.0], 10.0, 5.0, [3.0, 4.0]),
        ([3.0, 4.0], 1.0, 5.0, [0.6, 0.8]),
        ([0.0, 0.0], 1.0, 0.0, [0.0, 0.0]),
        ([3e300, 4e300], 1.0, 5e300, [0.6, 0.8]),
        ([3e-300, 4e-300], 1.0, 5e-300, [3e-300, 4e-300]),
        ([math.inf, 1.0], 1.0, math.inf, [math.inf, 1.0]),
    ],
)
def test_clipping(gradient: list[float], max_norm: float, norm: float, after: list[float]) -> None:
    xs = [Value(0.0), Value(0.0)]
    for x, g in zip(xs, gradient, strict=True):
        x.grad = g
    assert clip_grad_norm(xs, max_norm) == pytest.approx(norm, rel=1e-15)
    assert [x.grad for x in xs] == pytest.approx(after, rel=1e-6)


# -- misuse ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD([], 0.1), "no parameters to optimize"),
        (lambda: SGD(values(), -0.1), "lr is -0.1; expected a number >= 0.0"),
        (lambda: SGD(values(), math.nan), "lr is nan"),
        (lambda: SGD(values(), math.inf), "lr is inf"),
        (lambda: SGD(values(), "0.1"), "lr is '0.1'"),  # type: ignore[arg-type]
        (lambda: SGD(values(), Value(0.1)), "lr is Value"),  # type: ignore[arg-type]
        (lambda: SGD(values(), 0.1, momentum=1.0), "momentum is 1.0; expected a number >= 0.0 and < 1.0"),
        (lambda: SGD(values(), 0.1, momentum=-0.1), "momentum is -0.1"),
        (lambda: SGD(values(), 0.1, nesterov=True), "nesterov needs a momentum"),
        (lambda: SGD(values(), 0.1, weight_decay=-1.0), "weight_decay is -1.0"),
        (lambda: Adam(values(), betas=(0.9, 1.0)), r"betas\[1\] is 1.0"),
        (lambda: Adam(values(), betas=(-0.1, 0.9)), r"betas\[0\] is -0.1"),
        (lambda: Adam(values(), betas=(0.9,)), r"betas is \(0.9,\); expected two numbers"),  # type: ignore[arg-type]
        (lambda: Adam(values(), eps=0.0), "eps is 0.0; expected a positive number"),
        (lambda: AdamW(values(), weight_decay=math.nan), "weight_decay is nan"),
        (lambda: clip_grad_norm(values(), 0.0), "max_norm is 0.0"),
    ],
)
def test_arguments_out_of_range(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_what_is_no_parameter() -> None:
    with pytest.raises(OperandError, match=r"a parameter has to be a leaf Value, and 1\.0 is not a Value"):
        SGD([1.0], 0.1)  # type: ignore[list-item]
    with pytest.raises(OperandError, match="was computed"):
        SGD([Value(1.0) + 1.0], 0.1)
