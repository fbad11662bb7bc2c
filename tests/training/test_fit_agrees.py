"""`fit` by an array program does what it does by the engine, also where the user's code looks at it while it runs."""

from __future__ import annotations

import gc
import random
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.hidden import Hidden
from wengert import Value
from wengert.errors import StaleRecordingError, WengertError
from wengert.losses import cross_entropy, mse
from wengert.nn import MLP, Module
from wengert.optim import SGD, Adam, Optimizer
from wengert.training import fit, loop
from wengert.training.history import History

pytest.importorskip("numpy")

X = [[i / 50] for i in range(50)]
Y = [3 * x for (x,) in X]
Run = Callable[[str], tuple[History, Any]]


def line(rate: Any = 0.1, make: Any = SGD) -> tuple[MLP, Optimizer]:
    """A neuron of one input, and its optimizer."""
    model = MLP(1, [1], rng=random.Random(0))
    return model, make(model, rate)


def numbers(model: Any) -> list[float]:
    return [p.data for p in model.parameters()]


def both(run: Callable[[str], tuple[History, Any]]) -> tuple[History, History]:
    """The histories of a run by each back end, what else they gave being the same."""
    (eager, seen), (program, seen_too) = run("eager"), run("numpy")
    assert (eager.backend, seen_too) == ("eager", pytest.approx(seen, rel=1e-9))
    assert program.loss == pytest.approx(eager.loss, rel=1e-9)
    assert program.accuracy == pytest.approx(eager.accuracy, rel=1e-9)
    return eager, program


class Recurrent(Module):
    """Reads a sequence of any length."""

    def __init__(self) -> None:
        self.a, self.b, self.c = Value(0.5), Value(0.3), Value(1.0)

    def __call__(self, xs: Any) -> Value:
        h: Any = 0.0
        for x in xs:
            h = (self.a * h + self.b * x).tanh()
        return self.c * h


@pytest.mark.parametrize(("length", "others", "count"), [(3, 6, 50), (6, 3, 50), (6, 3, 1100)])
def test_validation_on_rows_of_another_length(length: int, others: int, count: int) -> None:
    def run(backend: str) -> tuple[History, Any]:
        rng, model = random.Random(1), Recurrent()
        rows, held = (
            [[rng.uniform(-1, 1) for _ in range(n)] for _ in range(m)] for n, m in ((length, 60), (others, count))
        )
        targets, held_targets = ([0.5 * x[-1] + 0.2 * x[-2] for x in many] for many in (rows, held))
        history = fit(
            model, mse, rows, targets, SGD(model, 0.1), 3, 20,
            validation=(held, held_targets), progress=False, seed=0, backend=backend,
        )  # fmt: skip
        return history, [*numbers(model), *history.val_loss]

    assert both(run)[1].backend == "numpy"


@pytest.mark.parametrize("epoch", range(1, 7))
@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("seen", [True, False], ids=["in a list", "hidden"])
def test_a_loss_that_a_callback_changes(epoch: int, validated: bool, seen: bool) -> None:
    """A float that the loss reads is read anew at each step; where nobody sees into it the engine goes on."""

    def run(backend: str) -> tuple[History, Any]:
        model, optimizer = line(0.01)
        scale, hidden = [1.0], Hidden(1.0)

        def callback(history: History) -> None:
            scale[0] = hidden.value = 2.0 if len(history) >= epoch else 1.0

        def loss(p: Value, y: float) -> Value:
            return mse(p, y) * (scale[0] if seen else hidden.value)

        more = {"validation": (X, Y)} if validated else {}
        with warnings.catch_warnings():
            if not seen:
                warnings.simplefilter("ignore")  # it says so
            history = fit(
                model, loss, X, Y, optimizer, 8, 25,
                callback=callback, progress=False, seed=0, backend=backend, **more,
            )  # fmt: skip
        return history, numbers(model)

    program = both(run)[1]
    if seen or not validated:  # else a check of the validation comes first, and what it drops is recorded anew
        assert program.backend == ("numpy" if seen else "eager")


def test_the_rest_of_a_batch_after_a_piece_that_went_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wengert.training.program.PIECE", 5)
    model, _ = line()
    task = (model, mse, None, None, list(zip(X, Y, strict=True)), [])
    program, engine = loop.choose("numpy", *task), loop.choose("eager", *task)

    def stale(*_: Any) -> None:
        raise StaleRecordingError("it gives something else now")

    assert program.compiled is not None
    monkeypatch.setattr(program.compiled._losses, "sum", stale)
    with pytest.warns(RuntimeWarning, match="fit continues on the engine: it gives something else now"):
        loss = program.gradient(range(50))
    gradients = [p.grad for p in model.parameters()]
    model.zero_grad()
    assert loss == pytest.approx(engine.gradient(range(50)), rel=1e-12)
    assert gradients == pytest.approx([p.grad for p in model.parameters()], rel=1e-12)


step = Hidden(0.0)


@pytest.mark.parametrize("read", [lambda optimizer: optimizer.steps, lambda _: step.value], ids=["seen", "hidden"])
def test_what_a_loss_reads_is_looked_at_without_a_callback_too(read: Any) -> None:
    def run(backend: str) -> History:
        model, optimizer = line(0.01)
        optimizer.freeze(model.layers[0].neurons[0].b)
        step.value = 0

        def rate(number: int) -> float:
            step.value = number
            return 0.01

        optimizer.lr = rate
        loss = lambda p, y: mse(p, y) * (1.0 if read(optimizer) < 3 else 5.0)  # noqa: E731
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fit(model, loss, X, Y, optimizer, 5, progress=False, seed=0, backend=backend)

    assert run("numpy").loss == pytest.approx(run("eager").loss, rel=1e-12)


def test_predictions_that_are_parameters_are_those_before_the_step() -> None:
    class Constant(Module):
        def __init__(self) -> None:
            self.scores = [Value(0.01), Value(0.0)]

        def __call__(self, x: Any) -> list[Value]:
            return self.scores

    def run(backend: str) -> tuple[History, Any]:
        model = Constant()
        return fit(
            model, cross_entropy, [[0.0]] * 40, [1] * 40, SGD(model, 1.0), 1, progress=False, backend=backend
        ), numbers(model)

    assert both(run)[1].accuracy == [0.0]


def test_a_metric_of_ones_own_reads_the_parameters_before_the_step() -> None:
    def run(backend: str) -> tuple[History, Any]:
        model, optimizer = line()
        weight = model.layers[0].neurons[0].w[0]
        return fit(
            model, mse, X, Y, optimizer, 2, 10,
            metric=lambda p, y: weight.data, progress=False, seed=0, backend=backend,
        ), numbers(model)  # fmt: skip

    assert both(run)[1].backend == "numpy"


def test_a_learning_rate_that_reads_and_freezes() -> None:
    def run(backend: str) -> tuple[History, Any]:
        model, optimizer = line()
        bias, seen = model.layers[0].neurons[0].b, []

        def rate(step: int) -> float:
            seen.append(bias.data)
            if step == 2:
                optimizer.freeze(bias)
            return 0.1

        optimizer.lr = rate
        history = fit(model, mse, X, Y, optimizer, 1, 10, progress=False, seed=0, backend=backend)
        return history, [*numbers(model), *dict.fromkeys(seen)]  # the rate of a step may be asked for twice

    both(run)


def test_a_step_that_the_user_has_replaced_is_called() -> None:
    def run(backend: str) -> tuple[History, Any]:
        model, optimizer = line()
        calls, step = [], optimizer.step

        def counted() -> None:
            calls.append(1)
            step()

        optimizer.step = counted  # type: ignore[method-assign]
        return fit(model, mse, X, Y, optimizer, 2, 10, progress=False, seed=0, backend=backend), [len(calls)]

    both(run)


@pytest.mark.slow  # and so never under coverage: an interrupt that comes inside its tracer leaves its lock held
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer that interrupts")
def test_ctrl_c_comes_between_two_steps() -> None:
    """Adam's ages, its count of steps and its means are always of one step."""
    rng = random.Random(0)
    rows = [[rng.random() for _ in range(20)] for _ in range(50)]
    targets = [x[0] for x in rows]

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def start(trial: int) -> Callable[[History], None]:
        def once(history: History) -> None:  # an epoch may take less time than the timer
            if len(history) == 1:
                signal.setitimer(signal.ITIMER_REAL, 1e-3 + 2e-5 * trial)

        return once

    before = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()  # the callbacks of a collection, such as a profiler's, swallow what is raised in them
    try:
        for trial in range(25):
            model = MLP(20, [20, 1], rng=random.Random(0))
            optimizer = Adam(model, 0.01)
            history = fit(
                model, mse, rows, targets, optimizer, 5000, 2,
                progress=False, seed=0, backend="numpy", callback=start(trial) if trial else start(1),
            )  # fmt: skip
            assert history.interrupted
            state = optimizer.state_dict()
            assert set(state["age"]) == {optimizer.steps}
            assert all(map(any, (state["mean"], state["square"])))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


@pytest.mark.parametrize("backend", ["eager", "numpy"])
def test_a_target_that_is_no_class_is_refused_before_anything_moves(backend: str) -> None:
    model = MLP(2, [2], rng=random.Random(0))
    before = numbers(model)
    with pytest.raises(WengertError, match=r"row 2 of Y: .*1\.0"):
        fit(model, cross_entropy, [[0.1, 0.2]] * 3, [0, 1, 1.0], SGD(model, 0.1), 1, 1, shuffle=False, backend=backend)
    assert numbers(model) == before


@pytest.mark.parametrize("backend", ["eager", "numpy"])
def test_a_loss_need_not_be_hashable(backend: str) -> None:
    @dataclass
    class Scaled:
        scale: float

        def __call__(self, prediction: Value, target: float) -> Value:
            return mse(prediction, target) * self.scale

    model, optimizer = line()
    history = fit(model, Scaled(2.0), X, Y, optimizer, 30, progress=False, backend=backend)
    assert history.loss[-1] < history.loss[0]


@pytest.mark.parametrize("backend", ["eager", "numpy"])
def test_a_norm_that_is_not_finite_scales_nothing(backend: str) -> None:
    model, optimizer = line(0.0)
    history = fit(
        model, lambda p, y: p * 1.4e308, [[1.0]], [0.0], optimizer, 1, clip_norm=1.0, progress=False, backend=backend
    )
    assert history.backend == backend
    assert [p.grad for p in model.parameters()] == [1.4e308, 1.4e308]
