"""Losses of one example: PyTorch as the oracle for values and gradients, and the ends of their ranges."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from wengert import losses
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, LengthError, OperandError

RNG = random.Random(11)
NUMBERS = [RNG.uniform(-3.0, 3.0) for _ in range(7)] + [0.0, 1e-9, 40.0, -40.0, 700.0, -700.0]
TARGETS = [RNG.uniform(-3.0, 3.0) for _ in NUMBERS]
SHARES = [0.0, 1.0, 1.0, 0.0, 0.3, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x > -700 else 0.0


def torch_functions() -> dict[str, Callable[[Any, Any], Any]]:
    from torch.nn import functional

    return {
        "mse": functional.mse_loss,
        "mae": functional.l1_loss,
        "huber": functional.huber_loss,
        "huber 2": lambda p, t: functional.huber_loss(p, t, delta=2.0),
        "bce": functional.binary_cross_entropy,
        "bce logits": functional.binary_cross_entropy_with_logits,
    }


OURS: dict[str, Callable[[Any, Any], Value]] = {
    "mse": losses.mse,
    "mae": losses.mae,
    "huber": losses.huber,
    "huber 2": lambda p, t: losses.huber(p, t, delta=2.0),
    "bce": losses.binary_cross_entropy,
    "bce logits": losses.binary_cross_entropy_with_logits,
}


def cases(name: str) -> tuple[list[float], list[float]]:
    if name == "bce":
        return [sigmoid(x) for x in NUMBERS], SHARES
    return NUMBERS, SHARES if name == "bce logits" else TARGETS


@pytest.mark.torch
@pytest.mark.parametrize("name", OURS)
def test_one_number_as_in_pytorch(name: str) -> None:
    import torch

    for number, target in zip(*cases(name), strict=True):
        p = Value(number)
        loss = OURS[name](p, target)
        loss.backward()
        oracle = torch.tensor(number, dtype=torch.float64, requires_grad=True)
        expected = torch_functions()[name](oracle, torch.tensor(target, dtype=torch.float64))
        expected.backward()
        assert oracle.grad is not None
        assert loss.data == pytest.approx(expected.item(), rel=1e-14, abs=1e-15)
        if name != "bce" or 1e-12 < number < 1.0 - 1e-12:  # nearer to 0 and 1 PyTorch bounds p (1 - p) itself
            assert p.grad == pytest.approx(oracle.grad.item(), rel=1e-13, abs=1e-15)


@pytest.mark.torch
@pytest.mark.parametrize("name", OURS)
def test_a_list_gives_the_mean_as_in_pytorch(name: str) -> None:
    import torch

    numbers, targets = (column[:7] for column in cases(name))
    ps = [Value(number) for number in numbers]
    loss = OURS[name](ps, targets)
    loss.backward()
    oracle = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    expected = torch_functions()[name](oracle, torch.tensor(targets, dtype=torch.float64))
    expected.backward()
    assert oracle.grad is not None
    assert loss.data == pytest.approx(expected.item(), rel=1e-14)
    assert [p.grad for p in ps] == pytest.approx(oracle.grad.tolist(), rel=1e-13, abs=1e-16)


@pytest.mark.torch
@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1000.0])
def test_cross_entropy_as_in_pytorch(offset: float, spread: float) -> None:
    import torch

    rng = random.Random(3)
    numbers = [offset + spread * rng.uniform(-1.0, 1.0) for _ in range(5)]
    for target in range(5):
        logits = [Value(number) for number in numbers]
        loss = losses.cross_entropy(logits, target)
        loss.backward()
        oracle = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
        expected = torch.nn.functional.cross_entropy(oracle, torch.tensor(target))
        expected.backward()
        assert oracle.grad is not None
        assert loss.data == pytest.approx(expected.item(), rel=1e-14, abs=1e-15)
        assert [z.grad for z in logits] == pytest.approx(oracle.grad.tolist(), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("score", "target", "loss", "slope"),
    [(0.3, 1, 0.7, -1.0), (0.3, -1, 1.3, 1.0), (2.0, 1, 0.0, 0.0), (-3.0, -1, 0.0, 0.0), (1.0, 1, 0.0, 0.0)],
)
def test_hinge(score: float, target: int, loss: float, slope: float) -> None:
    p = Value(score)
    result = losses.hinge(p, target)
    result.backward()
    assert (result.data, p.grad) == (pytest.approx(loss), slope)


def test_l2() -> None:
    values = [Value(1.0), Value(-2.0), Value(3.0)]
    loss = losses.l2(iter(values), 0.5)
    loss.backward()
    assert loss.data == 7.0
    assert [p.grad for p in values] == [1.0, -2.0, 3.0]
    assert losses.l2(values, 0.0).data == 0.0


def test_huber_where_its_pieces_meet() -> None:
    for number, expected, slope in [(2.0, 2.0, 2.0), (-2.0, 2.0, -2.0), (0.0, 0.0, 0.0)]:
        p = Value(number)
        loss = losses.huber(p, 0.0, delta=2.0)
        loss.backward()
        assert (loss.data, p.grad) == (expected, slope)


def test_nothing_overflows() -> None:
    big = 1e6
    for loss in (
        losses.binary_cross_entropy_with_logits(Value(big), 0),
        losses.binary_cross_entropy_with_logits(Value(-big), 1),
        losses.cross_entropy([Value(0.0), Value(big)], 0),
        losses.huber(Value(big), 0.0),
        losses.mae(Value(-big), 0.0),
    ):
        assert loss.data == pytest.approx(big, rel=1e-6)


def test_digits_that_a_naive_form_would_lose() -> None:
    assert losses.binary_cross_entropy_with_logits(Value(40.0), 1).data == pytest.approx(math.exp(-40.0), rel=1e-15)
    assert losses.binary_cross_entropy(Value(1e-20), 0).data == 1e-20
    assert losses.cross_entropy([Value(1e15 + 1.0), Value(1e15)], 1).data == pytest.approx(1.3132616875182228)


@pytest.mark.parametrize("probability", [0.0, 1.0])
@pytest.mark.parametrize("target", [0, 1, 0.5])
def test_certainty_costs_at_most_100(probability: float, target: float) -> None:
    p = Value(probability)
    loss = losses.binary_cross_entropy(p, target)
    loss.backward()
    assert loss.data == pytest.approx(100.0 * abs(probability - target), rel=1e-14, abs=1e-40)
    assert math.isfinite(p.grad)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: losses.mse([Value(1.0)] * 3, [1.0] * 2),
            LengthError,
            "prediction is a list of 3, the target a list of 2",
        ),
        (lambda: losses.mae([Value(1.0)], 1.0), LengthError, "prediction is a list of 1, the target one number"),
        (lambda: losses.huber(Value(1.0), [1.0, 2.0]), LengthError, "prediction is one number, the target a list of 2"),
        (lambda: losses.mse([], []), LengthError, "a list of 0"),
        (lambda: losses.mse(Value(1.0), "1"), OperandError, "'1'"),
        (lambda: losses.huber(Value(1.0), 1.0, delta=0.0), ArgumentError, "delta is 0.0"),
        (lambda: losses.hinge(Value(1.0), 0), DataError, "-1 or 1, got 0"),
        (lambda: losses.hinge([Value(1.0)] * 2, 1), LengthError, "hinge takes one score, got a list of 2"),
        (lambda: losses.binary_cross_entropy(Value(1.5), 1), DataError, "from 0 to 1, got .*1.5"),
        (lambda: losses.binary_cross_entropy(Value(0.5), -1), DataError, "from 0 to 1, got -1"),
        (lambda: losses.binary_cross_entropy_with_logits(Value(0.5), 2), DataError, "from 0 to 1, got 2"),
        (lambda: losses.binary_cross_entropy_with_logits(Value(0.5), math.nan), DataError, "got nan"),
        (
            lambda: losses.cross_entropy([Value(1.0)] * 10, 10),
            DataError,
            "there is no class 10: the classes are 0 to 9",
        ),
        (lambda: losses.cross_entropy([Value(1.0)] * 10, -1), DataError, "there is no class -1"),
        (lambda: losses.cross_entropy([Value(1.0)] * 10, 1.0), DataError, "a class, an int, got 1.0"),
        (lambda: losses.cross_entropy([Value(1.0)], 0), LengthError, "one per class, got a list of 1"),
        (lambda: losses.cross_entropy(Value(1.0), 0), LengthError, "one per class, got one number"),
        (lambda: losses.l2([], 0.1), ArgumentError, "l2 got no parameters"),
        (lambda: losses.l2([Value(1.0)], -0.1), ArgumentError, "strength is -0.1"),
    ],
)
def test_misuse(call: Callable[[], Value], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
