"""What computes a run of fit(): an array program, or the engine where that cannot; both do the same."""

from __future__ import annotations

import random
import sys
import time
import warnings
from typing import Any

import pytest

import wengert
from tests.hidden import Hidden
from tests.training.fitting import BITS, CLASSES, SIGNS, X, make, quiet
from wengert import losses
from wengert.compiler.backends import default_backend
from wengert.engine import Value
from wengert.errors import ArgumentError, MissingExtraError
from wengert.nn import Module
from wengert.optim import SGD, Adam
from wengert.training import History, fit

pytestmark = pytest.mark.once  # what trains is chosen in Python

SEEN: list[Any] = []


class Lookup(Module):
    """A table of Values that rows of integers choose from."""

    def __init__(self) -> None:
        self.rows = [[Value(0.1 * (i + j)) for j in range(2)] for i in range(3)]

    def __call__(self, x: Any) -> Any:
        return [a * b for a, b in zip(self.rows[x[0]], self.rows[x[1]], strict=True)]


def test_parameters_hold_floats_when_arrays_have_trained_them() -> None:
    pytest.importorskip("numpy")
    model = make(3)
    quiet(model, losses.cross_entropy, X, CLASSES, Adam(model, 0.01), 2, backend="numpy")
    assert {type(number) for p in model.parameters() for number in (p.data, p.grad)} == {float}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 5, None])
@pytest.mark.parametrize(
    ("loss", "outputs", "targets"),
    [
        (losses.cross_entropy, 3, CLASSES),
        (losses.hinge, 1, SIGNS),
        (losses.binary_cross_entropy_with_logits, 1, BITS),
        (losses.binary_cross_entropy_with_logits, 2, [[y, 1 - y] for y in BITS]),
        (losses.mse, 1, SIGNS),
        (losses.huber, 2, X),
    ],
)
def test_a_program_gives_what_the_engine_gives(loss: Any, outputs: int, targets: Any, size: int | None) -> None:
    pytest.importorskip("numpy")
    runs = []
    for backend in ("eager", "numpy"):
        model = make(outputs)
        more: dict[str, Any] = {"validation": (X[:7], targets[:7]), "clip_norm": 0.5, "seed": 3}
        more["regularization"] = lambda model=model: losses.l2(model.parameters(), 0.01)
        runs.append(quiet(model, loss, X, targets, SGD(model, 0.1, momentum=0.9), 12, size, backend=backend, **more))
    engine, program = runs
    assert (engine.backend, program.backend) == ("eager", "numpy")
    assert program.loss == pytest.approx(engine.loss, rel=1e-10)
    assert program.val_loss == pytest.approx(engine.val_loss, rel=1e-10)
    assert (program.accuracy, program.val_accuracy) == (engine.accuracy, engine.val_accuracy)


def test_a_program_of_rows_of_integers_and_a_metric_of_ones_own() -> None:
    pytest.importorskip("numpy")
    rows = [[i % 3, i * i % 3] for i in range(7)]
    targets = [i % 2 for i in range(7)]
    runs = []
    for backend in ("eager", "numpy"):
        model = Lookup()
        more: dict[str, Any] = {"metric": lambda p, y: p[0].data - y, "backend": backend, "seed": 0}
        runs.append(quiet(model, losses.cross_entropy, rows, targets, SGD(model, 0.1), 5, 3, **more))
    assert runs[1].loss == pytest.approx(runs[0].loss, rel=1e-10)
    assert runs[1].accuracy == pytest.approx(runs[0].accuracy, rel=1e-10)


def test_a_batch_larger_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr("wengert.training.program.PIECE", 5)
    model, twin = make(3), make(3)
    program = quiet(model, losses.cross_entropy, X, CLASSES, None, 3, validation=(X, CLASSES), backend="numpy")
    engine = quiet(twin, losses.cross_entropy, X, CLASSES, None, 3, validation=(X, CLASSES), backend="eager")
    assert program.loss == pytest.approx(engine.loss, rel=1e-12)
    assert program.val_loss == pytest.approx(engine.val_loss, rel=1e-12)
    assert program.val_accuracy == engine.val_accuracy


def test_a_compiled_loss_and_model_are_compiled_together() -> None:
    pytest.importorskip("numpy")
    model, twin = make(3), make(3)
    loss = wengert.compile(losses.cross_entropy)
    program = quiet(lambda x: model(x), loss, X, CLASSES, SGD(model, 0.1), 2, 5, seed=0, backend="numpy")
    engine = quiet(twin, losses.cross_entropy, X, CLASSES, None, 2, 5, seed=0, backend="eager")
    assert program.loss == pytest.approx(engine.loss, rel=1e-12)
    assert program.accuracy == engine.accuracy != []


def test_without_numpy_the_engine_computes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    model = make()
    history = fit(model, losses.hinge, X, SIGNS, SGD(model, 0.1), 2)
    assert (history.backend, history.fallback) == ("eager", 'this needs numpy: pip install numpy (the extra "array")')
    assert "s (eager)" in capsys.readouterr().err.splitlines()[0]
    with pytest.raises(MissingExtraError, match=r'pip install numpy \(the extra "array"\)'):
        quiet(model, losses.hinge, X, SIGNS, backend="numpy")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (lambda p, y: SEEN.append(y) or (p - y) ** 2, "it changes SEEN"),
        (lambda p, y: (p - y) ** 2 * random.random(), "random numbers"),
        (lambda p, y: (p - y) ** 2 * (1.0 + 0.0 * time.time()), "it calls time"),
    ],
)
def test_what_cannot_be_compiled_is_said_in_one_line(loss: Any, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numpy")
    runs = []
    for backend in ("eager", "auto"):
        random.seed(4)
        model = make()
        runs.append(fit(model, loss, X, SIGNS, SGD(model, 0.01), 3, 5, backend=backend))
    assert runs[0].loss == runs[1].loss
    assert runs[1].backend == "eager"
    assert why in runs[1].fallback
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7
    assert lines[3] == f"fit runs on the engine: {runs[1].fallback}"
    with pytest.raises(ArgumentError, match="backend is 'numpy', but the loss cannot be compiled: "):
        quiet(model, loss, X, SIGNS, backend="numpy")


def test_data_that_are_no_arrays_are_left_to_the_engine() -> None:
    pytest.importorskip("numpy")
    w = Value(0.5)
    history = quiet(lambda x: w * sum(x), losses.mse, [[1.0], [1.0, 2.0]], [1.0, 2.0], SGD([w], 0.1), 3)
    assert history.backend == "eager"
    assert "X: the examples of a batch have one shape; these differ" in history.fallback


def test_more_specializations_than_are_recorded_end_with_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr("wengert.training.program.CHUNK", 1)  # what is tried before the run

    def branching(p: Value, y: float) -> Value:
        for cut in range(40):
            if y < cut:
                return (p - cut) ** 2
        return p

    inputs, targets = [[i / 40, 1.0] for i in range(40)], [i - 0.5 for i in range(40)]

    def run(backend: str) -> History:
        model = make()
        return quiet(model, branching, inputs, targets, SGD(model, 1e-4), 3, 7, seed=1, backend=backend)

    with pytest.warns(UserWarning, match="branching runs uncompiled: it takes more than 32 specializations") as said:
        history = run("numpy")
    assert len(said) == 1
    assert history.backend == "eager"
    assert "more than 32 specializations" in history.fallback
    assert history.loss == pytest.approx(run("eager").loss, rel=1e-10)


@pytest.mark.parametrize("changed", [0.5, 3], ids=["float", "integer"])
def test_what_a_callback_changes_is_seen(changed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A float is read anew at each step; for another integer there is another recording."""
    pytest.importorskip("numpy")

    def run(backend: str) -> History:
        model, usual = make(), type(changed)(1)
        weight = [usual]

        def loss(p: Value, y: int) -> Value:
            return weight[0] * (p - y) ** 2

        def change(history: History) -> None:
            weight[0] = changed if len(history) == 2 else usual

        return quiet(model, loss, X, SIGNS, SGD(model, 0.1), 4, callback=change, backend=backend)

    history = run("auto")
    assert history.backend == default_backend().name
    assert history.loss == pytest.approx(run("eager").loss, rel=1e-10)


def test_a_loss_that_changes_unseen_is_left_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    calls = Hidden(0.0)

    def run(backend: str) -> History:
        model = make()

        def rate(step: int) -> float:
            calls.value = step / 8
            return 0.01

        return quiet(model, lambda p, y: (p - y + calls.value) ** 2, X, SIGNS, SGD(model, rate), 4, 3, backend=backend)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        history = run("auto")
    assert "fit continues on the engine" in str(said[-1].message) or "runs uncompiled" in str(said[-1].message)
    assert history.backend == "eager"
    assert "has changed" in history.fallback


def test_under_a_profiler_the_engine_trains() -> None:
    """Which a recording would disturb."""
    pytest.importorskip("numpy")
    model = make()
    sys.setprofile(lambda frame, event, arg: None)
    try:
        history = quiet(model, losses.mse, X, SIGNS, SGD(model, 0.01), 2)
    finally:
        sys.setprofile(None)
    assert history.backend == "eager"
    assert "profiler" in history.fallback
