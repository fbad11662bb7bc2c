"""`fit` on arrays: the same bits as with an optimizer that moves Values, and whoever may look sees current numbers."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any

import pytest

from wengert import compile
from wengert.compiler.backends import BACKENDS, default_backend
from wengert.data import spiral
from wengert.engine import Value
from wengert.losses import cross_entropy, l2
from wengert.nn import MLP
from wengert.optim import SGD, Adam, AdamW, Optimizer
from wengert.training import fit

pytest.importorskip("numpy")

from wengert.compiler.checks import Checks
from wengert.compiler.serve import Server  # which needs NumPy, as these do
from wengert.training import loop, program
from wengert.training import steps as flat
from wengert.training.orders import Orders
from wengert.training.steps import FlatSteps

X, Y = (rows[:64] for rows in spiral(22, seed=4))  # 64 and 16: the mean of as many loses nothing to rounding
Make = Callable[[MLP], Optimizer]
AVAILABLE = [name for name in ("numpy", "native") if BACKENDS[name].is_available()]
SCHEDULES: dict[str, Callable[[int], float]] = {
    "falling": lambda steps: 0.1 * 0.9**steps,
    "rising": lambda steps: min(1.0, steps / 10),
    "at first": lambda steps: 0.5 if steps < 6 else 0.0,
    "at last": lambda steps: 0.5 if steps > 15 else 0.0,
    "in turns": lambda steps: 0.3 if steps % 7 == 3 else 0.1,
}

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

    def counted(self: Any, number: int, start: int, loss: float) -> Any:
        made = step(self, number, start, loss)
        ends = range(start, start + made[0] * self.size, self.size)
        seen.extend([min(self.size, len(self.order) - at) for at in ends])
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
    monkeypatch.setattr(program, "PIECE", 7)
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

    made, want = penalized(False), penalized(True)
    assert made[:2] == want[:2]
    assert made[2] == pytest.approx(want[2], rel=1e-15)  # with Values the engine adds up the squares
    assert made[3:] == want[3:]
    assert len(steps) == 4 * 4
    assert made[2] != run(OPTIMIZERS["sgd"])[2]


REGULARIZATIONS: dict[str, tuple[bool, Callable[[list[Value]], Value]]] = {  # True: in any order of what it reads
    "squares": (True, lambda ps: l2(ps, 0.01)),
    "a loop of squares": (True, lambda ps: 0.01 * sum(p * p for p in ps)),
    "elastic": (True, lambda ps: 0.01 * sum([abs(p) + 0.5 * p**2 for p in ps], Value(0.0))),
    "a root": (True, lambda ps: 0.1 * (sum(p * p for p in ps) + 1.0).sqrt()),
    "some": (True, lambda ps: 0.01 * sum(p * p for p in ps[::2])),
    "by place": (False, lambda ps: sum(0.001 * n * p * p for n, p in enumerate(ps))),
    "neighbours": (False, lambda ps: 0.01 * sum((p - q) ** 2 for p, q in itertools.pairwise(ps))),
    "the first": (False, lambda ps: 0.01 * sum(p * ps[0] for p in ps)),
}


@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("name", REGULARIZATIONS)
def test_a_regularization_in_the_order_of_the_loss(
    name: str, backend: str, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is a sum over all parameters, its machine code reads them where the loss has them."""
    is_symmetric, penalty = REGULARIZATIONS[name]
    found, in_place, begin = [], [], FlatSteps.begin

    def noted(self: Any, *given: Any) -> None:
        in_place.append(self.kernel.is_penalty_in_place)
        begin(self, *given)

    monkeypatch.setattr(FlatSteps, "begin", noted)
    for values in (False, True):
        random.seed(7)
        model = MLP(2, [5, 3])
        parameters = model.parameters()
        compiled = compile(lambda parameters=parameters: penalty(parameters), backend=backend)
        compiled.prepare()
        assert compiled._server.latest().kernel.program.is_symmetric() is is_symmetric
        found.append(
            run(
                OPTIMIZERS["momentum"], values, model, backend=backend,
                regularization=lambda parameters=parameters: penalty(parameters),
            )
        )  # fmt: skip
    made, want = found
    assert made[0] == pytest.approx(want[0], rel=1e-12)
    assert made[1] == pytest.approx(want[1], rel=1e-11, abs=1e-15)
    assert made[2] == pytest.approx(want[2], rel=1e-13)
    assert len(steps) == 4 * 4
    assert in_place == [is_symmetric and name != "some" and backend == "native"] * 4


def scheduled(backend: str, schedule: Callable[[int], float], where: str = "loss") -> tuple[float, ...]:
    """The losses and the parameter of a run with a penalty that follows the optimizer's steps."""
    w = Value(1.0)
    optimizer = SGD([w], 0.01)

    def loss(prediction: Any, target: float) -> Value:
        made: Value = (prediction - target) ** 2
        return made if where == "regularization" else made + penalty()

    def penalty() -> Value:
        return schedule(optimizer.steps) * w * w

    more: Any = {"regularization": penalty} if where == "regularization" else {}
    rows, targets = [[float(i % 5 - 2)] for i in range(12)], [2.0 * (i % 5 - 2) for i in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it runs uncompiled after some changes
        history = fit(
            lambda x: w * x[0], loss, rows, targets, optimizer, 8, 4, seed=1, progress=False, backend=backend, **more
        )
    return (*history.loss, w.data)


@pytest.mark.parametrize("where", ["loss", "regularization"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_by_the_steps_of_the_optimizer(name: str, where: str) -> None:
    """Steps on arrays go on from one to the next, and each counts."""
    want = scheduled("eager", SCHEDULES[name], where)
    for backend in (*AVAILABLE, "auto"):
        assert scheduled(backend, SCHEDULES[name], where) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("name", ["at first", "at last", "in turns"])
def test_no_step_by_specializations_that_are_all_out_of_date(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "CHANGED", ())  # as if something else had changed
    want = scheduled("eager", SCHEDULES[name])
    for backend in AVAILABLE:
        assert scheduled(backend, SCHEDULES[name]) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("values", [False, True])
def test_a_batch_in_pieces_has_its_regularization_once(values: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def penalized(backend: str) -> Any:
        random.seed(7)
        model = MLP(2, [5, 3])
        regularization = partial(l2, model.parameters(), 0.3)
        return run(OPTIMIZERS["adam"], values, model, batch_size=50, backend=backend, regularization=regularization)

    want = penalized("eager")
    monkeypatch.setattr(program, "PIECE", 7)
    for backend in AVAILABLE:
        made = penalized(backend)
        assert made[5] == backend
        assert made[0] == pytest.approx(want[0], rel=1e-9)
        assert made[2] == pytest.approx(want[2], rel=1e-12)


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


def test_a_frozen_parameter_is_left_to_the_optimizer(steps: list[int]) -> None:
    def frozen(model: MLP) -> Optimizer:
        optimizer = SGD(model, 0.1)
        optimizer.freeze(model.layers[0])
        return optimizer

    assert run(frozen) == run(frozen, True)
    assert steps == []


def test_a_parameter_that_the_loss_does_not_reach_moves_as_it_would(steps: list[int]) -> None:
    def more(model: MLP) -> Optimizer:
        extra.append(Value(1.0))
        return AdamW([extra[-1], *model.parameters()], 0.1)

    extra: list[Value] = []
    assert run(more) == run(more, True)
    assert extra[0].data == extra[1].data != 1.0
    assert sum(steps) == 4 * len(X)


@pytest.mark.parametrize("backend", AVAILABLE)
def test_the_regularization_may_reach_what_the_loss_does_not(backend: str, steps: list[int]) -> None:
    """Its gradient there is that of each step, and not of all steps together."""

    def trained(values: bool) -> Any:
        extra = Value(1.0)
        made = run(
            lambda model: SGD([*model.parameters(), extra], 0.1), values, backend=backend,
            regularization=lambda: extra * extra, clip_norm=0.5,
        )  # fmt: skip
        return [extra.data, *made[0]]

    assert trained(False) == pytest.approx(trained(True), rel=1e-12)
    assert sum(steps) == 4 * len(X)


@pytest.mark.parametrize("backend", AVAILABLE)
def test_a_specialization_that_reaches_fewer_parameters(backend: str, steps: list[int]) -> None:
    """One example a step: what another one left in the gradient is gone."""

    def trained(values: bool) -> Any:
        a, b = Value(0.5), Value(-0.25)

        def model(x: Any) -> Value:
            return a * x[0] if x[0] > 0.0 else a * x[0] + b * x[1]

        with pytest.MonkeyPatch.context() as patch:
            if values:
                patch.setattr(FlatSteps, "serve", lambda *_: False)
            rows = [[(-1.0) ** (i // 3) * 0.1 * (i + 1), 0.3 * i] for i in range(12)]
            fit(
                model, lambda p, y: (p - y) ** 2, rows, [1.0] * 12, SGD([a, b], 0.05, momentum=0.5), 4, 1, seed=3,
                progress=False, backend=backend,
            )  # fmt: skip
        return a.data, b.data

    assert trained(False) == pytest.approx(trained(True), rel=1e-12)
    assert steps


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


@pytest.mark.parametrize("shown", [0.0, math.inf])
@pytest.mark.parametrize("ends", ["interrupted", "diverged", ""])
def test_parameters_have_their_numbers_when_a_run_ends(
    shown: float, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where epochs follow each other with nothing of the user's in between, they may have to wait until then."""
    given: list[float] = []
    store, following = FlatSteps.store, Orders.next

    def counted(self: Any) -> None:
        store(self)
        given.append(self.optimizer.parameters[0].data)

    def stopped(self: Any, arrays: bool) -> Any:
        if len(epochs) == 6:
            raise KeyboardInterrupt if ends == "interrupted" else loop.DivergedError("a loss is nan")
        epochs.append(1)
        return following(self, arrays)

    epochs: list[int] = []
    want = run(OPTIMIZERS["adam"], epochs=6)
    monkeypatch.setattr(flat, "SHOWN", shown)
    monkeypatch.setattr(FlatSteps, "store", counted)
    if ends:
        monkeypatch.setattr(Orders, "next", stopped)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        made = run(OPTIMIZERS["adam"], epochs=9 if ends else 6)
    assert made == want
    assert given[-1] == made[0][0]
    # After each epoch; else where something is compared, after 1, 2, 4 ... steps and epochs, and in the end.
    assert len(given) == (6 if shown else 12)


def branching(prediction: Any, target: int) -> Value:
    """A loss of several specializations: by the target, and by which logit is the greatest."""
    best = max(prediction, key=lambda p: p.data) if target else prediction[0]
    return (best - prediction[target]) ** 2 + cross_entropy(prediction, target)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("piece", [1024, 7])
def test_known_specializations_are_selected(
    backend: str, piece: int, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of several recordings in one batch; a recording that is new is made by a step on its own."""
    monkeypatch.setattr(program, "PIECE", piece)
    for more in ({}, {"metric": None, "batch_size": 50}):
        del steps[:]
        made, want = (
            run(OPTIMIZERS["adam"], values, loss=branching, backend=backend, epochs=8, **more)
            for values in (False, True)
        )
        for got, expected in zip(made[:4], want[:4], strict=True):
            assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert made[4]["steps"] == want[4]["steps"]
        assert 4 * len(X) < sum(steps) < 8 * len(X)


@pytest.mark.parametrize("backend", AVAILABLE)
def test_a_step_that_is_not_finite_is_not_made(backend: str, steps: list[int]) -> None:
    """The steps before it stand, in the Values and in the optimizer's state, and it is tried again by itself."""

    def growing(prediction: Any, target: int) -> Value:
        return prediction[0] ** 3 + prediction[1] ** 3

    with pytest.warns(RuntimeWarning, match=r"epoch 0, batch \d+: the loss is -?(inf|nan)"):
        made = run(lambda m: SGD(m, 0.9), loss=growing, metric=None, backend=backend, batch_size=4)
    with pytest.warns(RuntimeWarning, match="the loss is"):
        want = run(lambda m: SGD(m, 0.9), True, loss=growing, metric=None, backend=backend, batch_size=4)
    assert all(isfinite(number) for number in made[0])
    assert made[0] == pytest.approx(want[0], rel=1e-9)
    count = made[4]["steps"]
    assert count == want[4]["steps"] > 1
    assert len(steps) in (count - 1, count)  # the last is left to the optimizer if its gradient's squares are infinite


def test_what_the_data_choose_is_in_bounds(steps: list[int]) -> None:
    """Integers are looked at before anything runs: negative ones count from the end, and none is out of bounds."""
    rows = [[i % 5, i % 3 - 3] for i in range(20)]

    def trained(values: bool) -> Any:
        table = [[Value(0.1 * i + 0.01 * j) for j in range(3)] for i in range(5)]

        def model(x: Any) -> Any:
            return [a + b for a, b in zip(table[x[0]], table[x[1]], strict=True)]

        numbers = [p for row in table for p in row]
        with pytest.MonkeyPatch.context() as patch:
            if values:
                patch.setattr(FlatSteps, "serve", lambda *_: False)
            history = fit(
                model, cross_entropy, rows, [i % 3 for i in range(20)], SGD(numbers, 0.1), 6, 4, seed=2, progress=False,
                backend="numpy",
            )  # fmt: skip
        return [p.data for p in numbers], history.loss, history.accuracy

    assert trained(False) == trained(True)
    assert sum(steps) == 6 * 20


def test_ctrl_c_comes_between_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some milliseconds at most; what was learnt stays, in the Values and in the optimizer's state."""
    monkeypatch.setattr(flat, "PAUSE", 1e-9)
    random.seed(7)
    model = MLP(2, [5, 3])
    optimizer, calls_until_check, asked = Adam(model, 0.01), Server.calls_until_check, []

    def interrupted(*given: Any) -> int:
        asked.append(1)
        if len(asked) == 30:
            raise KeyboardInterrupt
        return calls_until_check(*given)

    monkeypatch.setattr(Server, "calls_until_check", interrupted)
    history = fit(model, cross_entropy, X, Y, optimizer, 20, 4, seed=1, progress=False, backend="numpy")
    assert history.interrupted
    assert optimizer.steps == 29
    assert set(optimizer._state["age"]) == {29.0}


@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_how_many_steps_are_made_at_once_changes_nothing(
    backend: str, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = run(OPTIMIZERS["adam"], backend=backend, clip_norm=0.5, epochs=6)
    monkeypatch.setattr(flat, "PAUSE", pause)
    assert run(OPTIMIZERS["adam"], backend=backend, clip_norm=0.5, epochs=6) == want


def test_one_way_serves_a_run_from_its_first_step_on(steps: list[int]) -> None:
    """No machine code takes over from NumPy when it is ready, which no two runs would see at the same step."""
    want = run(OPTIMIZERS["adam"], backend=default_backend().name, epochs=40, batch_size=4)
    assert [run(OPTIMIZERS["adam"], backend="auto", epochs=40, batch_size=4) for _ in range(2)] == [want, want]
    assert sum(steps) == 3 * 40 * len(X)


def test_steps_are_compared_as_often_as_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts as one, however many are made at once: those whose number is a power of two are compared."""
    compared, check = [], Checks.example

    def noted(self: Any, entry: Any, *given: Any) -> bool:
        compared.append(entry.calls)
        return check(self, entry, *given)

    monkeypatch.setattr(Checks, "example", noted)
    run(OPTIMIZERS["sgd"], epochs=40)
    assert [calls for calls in compared if calls > 8] == [16, 32, 64, 128]


def test_a_run_that_ends_early_leaves_what_was_learnt() -> None:
    def rate(step: int) -> float:
        if step == 6:
            raise KeyboardInterrupt
        return 0.1

    made, want = (run(lambda m: SGD(m, rate), values) for values in (False, True))
    assert made == want
    assert made[4]["steps"] == 6
