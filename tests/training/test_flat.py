"""`fit` on arrays: the same bits as with an optimizer that moves Values, and whoever may look sees current numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from wengert.data import spiral
from wengert.engine import Value
from wengert.losses import cross_entropy
from wengert.nn import MLP
from wengert.optim import SGD, Adam, AdamW, Optimizer
from wengert.training import fit

pytest.importorskip("numpy")

from wengert.training import compiled  # which needs NumPy
from wengert.training.flat import FlatSteps

X, Y = (rows[:64] for rows in spiral(22, seed=4))  # 64 and 16: the mean of as many loses nothing to rounding
Make = Callable[[MLP], Optimizer]

OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda m: SGD(m, 0.1),
    "momentum": lambda m: SGD(m, 0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda m: SGD(m, 0.05, momentum=0.5, nesterov=True),
    "adam": lambda m: Adam(m, 0.01),
    "adam with decay": lambda m: Adam(m, 0.01, weight_decay=0.02, betas=(0.8, 0.99)),
    "adamw": lambda m: AdamW(m, 0.01),
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many examples each step on arrays had."""
    seen: list[int] = []
    step = FlatSteps.step

    def counted(self: Any, start: int, count: int, clip_norm: float | None) -> Any:
        made = step(self, start, count, clip_norm)
        if made is not None:
            seen.append(count)
        return made

    monkeypatch.setattr(FlatSteps, "step", counted)
    return seen


def run(make: Make, values: bool = False, model: MLP | None = None, **more: Any) -> tuple[Any, ...]:
    """All that a run leaves behind; with `values` the optimizer moves Values at each step."""
    if model is None:
        random.seed(7)
        model = MLP(2, [5, 3])
    optimizer = make(model)
    options = {"epochs": 4, "batch_size": 16, "seed": 1, "progress": False, "backend": "numpy", **more}
    with pytest.MonkeyPatch.context() as patch:
        if values:
            patch.setattr(FlatSteps, "serve", lambda *_: False)
        history = fit(model, options.pop("loss", cross_entropy), X, Y, optimizer, **options)
    parameters = model.parameters()
    return (
        [p.data for p in parameters],
        [p.grad for p in parameters],
        history.loss,
        history.accuracy,
        optimizer.state_dict(),
        history.backend,
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("size", [16, None])
def test_the_same_bits_as_with_values(name: str, size: int | None, steps: list[int]) -> None:
    made = run(OPTIMIZERS[name], batch_size=size)
    assert made == run(OPTIMIZERS[name], True, batch_size=size)
    assert sum(steps) == 4 * len(X)


def test_a_batch_in_pieces_and_without_a_metric(steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(OPTIMIZERS["adam"], batch_size=50)
    monkeypatch.setattr(compiled, "PIECE", 7)
    made = run(OPTIMIZERS["adam"], batch_size=50)
    assert made[0] == pytest.approx(whole[0], rel=1e-12)
    assert made[3] == whole[3]
    assert run(OPTIMIZERS["adam"], batch_size=50, metric=None)[:3] == made[:3]
    assert steps == [50, 14] * 4 * 3


def test_regularization_is_a_program_too(steps: list[int]) -> None:
    def penalized(values: bool) -> Any:
        random.seed(7)
        model = MLP(2, [5, 3])
        return run(
            OPTIMIZERS["sgd"], values, model, regularization=lambda: 0.01 * sum(p * p for p in model.parameters())
        )

    assert penalized(False) == penalized(True)
    assert len(steps) == 4 * 4
    assert penalized(False)[2] != run(OPTIMIZERS["sgd"])[2]


def test_regularization_that_changes_unseen() -> None:
    def decaying(backend: str, values: bool = False) -> Any:
        random.seed(7)
        model, strength = MLP(2, [5, 3]), [0.1]

        def callback(history: Any) -> None:
            strength[0] *= 0.5

        def regularization() -> Value:
            return strength[0] * sum((p * p for p in model.parameters()), Value(0.0))

        return run(OPTIMIZERS["sgd"], values, model, regularization=regularization, callback=callback, backend=backend)

    assert decaying("numpy")[0] == pytest.approx(decaying("eager")[0], rel=1e-9)


def test_clipping() -> None:
    for norm in (0.05, 0.5, 1e9):
        made, want = (run(OPTIMIZERS["sgd"], values, clip_norm=norm) for values in (False, True))
        assert made[0] == pytest.approx(want[0], rel=1e-12)
        assert made[1] == pytest.approx(want[1], rel=1e-12)


def test_a_frozen_parameter_and_one_that_the_loss_does_not_reach(steps: list[int]) -> None:
    def frozen(model: MLP) -> Optimizer:
        optimizer = SGD(model, 0.1)
        optimizer.freeze(model.layers[0])
        return optimizer

    def more(model: MLP) -> Optimizer:
        return AdamW([*model.parameters(), Value(1.0)], 0.1)

    for make in (frozen, more):
        assert run(make) == run(make, True)
    assert steps == []  # these are for the optimizer itself


def test_a_learning_rate_that_is_a_function_may_look_at_everything(steps: list[int]) -> None:
    def make(model: MLP) -> Optimizer:
        optimizer = Adam(model, lambda step: 0.01 / (1 + step + optimizer.state_dict()["mean"][0] ** 2))
        return optimizer

    assert run(make) == run(make, True)
    assert steps == []


def test_an_optimizer_of_ones_own_is_asked_itself(steps: list[int]) -> None:
    class Signs(SGD):
        def _update(self, lr: float) -> None:
            for p in self.parameters:
                p.data -= lr * (1.0 if p.grad > 0.0 else -1.0)

    def make(model: MLP) -> Optimizer:
        return Signs(model, 0.01)

    assert run(make) == run(make, True)
    assert steps == []


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_a_rule_above_another_is_the_one_that_moves(kind: Any, steps: list[int]) -> None:
    class Doubled(kind):  # type: ignore[misc]
        def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
            return tuple(super()._rule(lr, x, 2.0 * g, *state))

    made = run(lambda model: Doubled(model, 0.1))
    assert made == run(lambda model: Doubled(model, 0.1), True)
    assert made[0] != run(lambda model: kind(model, 0.1))[0]
    assert steps == [16] * 16  # of the last of these runs


def test_a_callback_and_a_metric_see_the_numbers_as_they_are() -> None:
    def watched(values: bool) -> Any:
        random.seed(7)
        model = MLP(2, [5, 3])
        seen = []

        def callback(history: Any) -> None:
            seen.append([(p.data, p.grad) for p in model.parameters()])

        def metric(prediction: Any, target: int) -> float:
            seen.append([[p.data for p in prediction], [p.data for p in model.parameters()], [target]])
            return float(target == 1)

        return run(OPTIMIZERS["adam"], values, model, callback=callback, metric=metric), seen

    made, want = watched(False), watched(True)
    assert made[0] == want[0]
    assert [len(x) for x in made[1]] == [len(x) for x in want[1]]
    for x, y in zip(made[1], want[1], strict=True):
        if len(x) != 3:
            assert x == y


def test_other_specializations_are_left_to_values_batch_by_batch() -> None:
    def branching(prediction: Any, target: int) -> Value:
        best = max(prediction, key=lambda p: p.data) if target else prediction[0]
        return (best - prediction[target]) ** 2 + cross_entropy(prediction, target)

    made, want = (run(OPTIMIZERS["sgd"], values, loss=branching, metric=None) for values in (False, True))
    assert made[:3] == want[:3]


def test_a_run_that_ends_early_leaves_what_was_learnt() -> None:
    def rate(step: int) -> float:
        if step == 6:
            raise KeyboardInterrupt
        return 0.1

    made, want = (run(lambda m: SGD(m, rate), values) for values in (False, True))
    assert made == want
    assert made[4]["steps"] == 6
