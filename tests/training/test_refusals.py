"""What fit() refuses, before anything is changed: data, targets, arguments, losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.training.fitting import CLASSES, SIGNS, X, make, quiet
from wengert import losses
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, LengthError, OperandError, WengertError
from wengert.nn import Module
from wengert.optim import SGD, Optimizer
from wengert.training import fit

pytestmark = pytest.mark.once  # what is refused is decided in Python


def changed(rows: Any, i: int, row: Any) -> list[Any]:
    return [*rows[:i], row, *rows[i + 1 :]]


@pytest.mark.parametrize(
    ("inputs", "targets", "error", "message"),
    [
        ([], [], DataError, "X is empty"),
        (X, CLASSES[:-1], LengthError, "X has 12 rows but Y has 11"),
        (changed(X, 5, [1.0]), CLASSES, LengthError, "row 5 of X has 1 number, but the model has 2 inputs"),
        (changed(X, 5, 1.0), CLASSES, DataError, "row 5 of X is 1.0; expected a list of 2 numbers"),
        (changed(X, 5, [1.0, math.nan]), CLASSES, DataError, "row 5 of X, column 1 is nan; expected a finite number"),
        (changed(X, 5, [-math.inf, 1.0]), CLASSES, DataError, "row 5 of X, column 0 is -inf"),
        (changed(X, 5, [Value(math.nan), 1.0]), CLASSES, DataError, "row 5 of X, column 0 is nan"),
        (changed(X, 5, ["1.5", 1.0]), CLASSES, DataError, "row 5 of X, column 0 is '1.5'; expected a number"),
        (changed(X, 5, [None, 1.0]), CLASSES, DataError, "row 5 of X, column 0 is None; expected a number"),
        (X, changed(CLASSES, 7, 3), DataError, "row 7 of Y: there is no class 3: the classes are 0 to 2"),
        (X, changed(CLASSES, 7, -1), DataError, "row 7 of Y: there is no class -1: the classes are 0 to 2"),
        (X, changed(CLASSES, 7, 1.5), DataError, "row 7 of Y: .* an int, got 1.5"),
        (X, changed(CLASSES, 7, math.nan), DataError, "row 7 of Y is nan"),
        (X, changed(CLASSES, 7, "2"), DataError, "row 7 of Y: .* an int, got '2'"),
    ],
)
def test_data_that_are_refused(inputs: Any, targets: Any, error: type[WengertError], message: str) -> None:
    model = make(3)
    before = model.state_dict()
    with pytest.raises(error, match=message):
        quiet(model, losses.cross_entropy, inputs, targets)
    with pytest.raises(error, match=message.replace("X", "validation X").replace("Y", "validation Y")):
        quiet(model, losses.cross_entropy, X, CLASSES, validation=(inputs, targets))
    assert model.state_dict() == before


def test_targets_of_other_losses() -> None:
    with pytest.raises(DataError, match="row 1 of Y: the target of hinge has to be -1 or 1, got 0"):
        quiet(make(), losses.hinge, X[:2], [1, 0])
    with pytest.raises(LengthError, match="row 0 of Y: the prediction is one number, the target a list of 1"):
        quiet(make(), losses.mse, X[:1], [[1.0]])
    with pytest.raises(DataError, match="row 1 of Y, column 0 is inf"):
        quiet(make(2), losses.mse, X[:2], [[1.0, 2.0], [math.inf, 2.0]])


def test_infinity_in_rows_of_any_depth() -> None:
    x = Value(1.0)
    with pytest.raises(DataError, match="row 0 of X, column 1, column 0 is inf"):
        quiet(lambda row: x * row[0][0], losses.mse, [[[1.0], [math.inf]]], [1.0], SGD([x], 0.1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs is 0; expected an int >= 1"),
        ({"epochs": 1.5}, "epochs is 1.5"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"patience": 0, "validation": (X, SIGNS)}, "patience is 0"),
        ({"patience": 3}, "patience needs validation data"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0; expected a positive number"),
        ({"clip_norm": math.nan}, "clip_norm is nan"),
        ({"backend": "torch"}, "backend is 'torch'; expected one of 'auto', 'eager', 'numpy'"),
        ({"metric": "best"}, "metric is 'best'; expected 'auto', None or a function"),
        ({"loss": "mse"}, "loss is 'mse'; expected a function"),
        ({"model": 3}, "model is 3; expected a function"),
        ({"optimizer": SGD}, "optimizer is <class .*SGD'>; expected one of wengert.optim"),
        ({"optimizer": SGD(make(), 0.1)}, "the optimizer has no parameter of this model"),
    ],
)
def test_arguments_that_are_refused(change: dict[str, Any], message: str) -> None:
    model = make()
    arguments: dict[str, Any] = {"model": model, "loss": losses.hinge, "X": X, "Y": SIGNS, "optimizer": SGD(model, 0.1)}
    before = model.state_dict()
    with pytest.raises(ArgumentError, match=message):
        fit(**{**arguments, "progress": False, **change})
    assert model.state_dict() == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"loss": lambda p, y: p.data - y}, r"row 0 of Y: the loss is .*, not a Value"),
        ({"loss": losses.hinge, "regularization": lambda: 0.5}, r"the regularization is 0\.5, not a Value"),
    ],
)
def test_losses_that_are_no_values(more: dict[str, Callable[..., Any]], message: str) -> None:
    model = make()
    optimizer: Optimizer = SGD(model, 0.1)
    with pytest.raises(OperandError, match=message):
        quiet(model, more.pop("loss"), X, SIGNS, optimizer, **more)


def test_a_module_of_ones_own_is_checked_by_its_first_prediction() -> None:
    class Wrapped(Module):
        def __init__(self) -> None:
            self.body = make()

        def __call__(self, x: Any) -> Any:
            return self.body(x)

    with pytest.raises(LengthError, match="expected 2 inputs, got 3"):
        quiet(Wrapped(), losses.hinge, [[1.0, 2.0, 3.0]], [1])


def test_the_name_of_a_loss_is_told_where_the_loss_is() -> None:
    with pytest.raises(ArgumentError, match=r"loss is 'hinge'; expected a function, such as wengert\.losses\.hinge"):
        fit(make(), "hinge", X, SIGNS, SGD(make(), 0.1))
