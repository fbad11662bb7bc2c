"""fit(): that it does what a loop by hand does, what it reports, how a run can end."""

from __future__ import annotations

import io
import math
import random
import signal
import sys
from typing import Any

import pytest

from tests.training.fitting import BITS, CLASSES, SIGNS, X, make, quiet
from wengert import losses
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError
from wengert.functions import mean
from wengert.nn import MLP
from wengert.optim import SGD, Adam, clip_grad_norm
from wengert.training import History, accuracy, fit, predict
from wengert.training.task import CHUNK

# -- the loop ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "auto"])
def test_the_same_as_by_hand_to_the_last_bit(backend: str) -> None:
    """Batches in a shuffled order, regularization, clipping: as a user would write it."""
    model, twin = make(3), make(3)
    history = quiet(
        model,
        losses.cross_entropy,
        X,
        CLASSES,
        Adam(model, 0.05),
        4,
        5,
        regularization=lambda: losses.l2(model.parameters(), 0.01),
        clip_norm=0.3,
        seed=7,
        backend=backend,
    )
    optimizer, rng = Adam(twin, 0.05), random.Random(7)
    for epoch in range(4):
        examples, state = list(zip(X, CLASSES, strict=True)), rng.getrandbits(64)
        for last in reversed(range(1, len(examples))):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            number = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
            other = ((number ^ number >> 31) >> 32) * (last + 1) >> 32
            examples[last], examples[other] = examples[other], examples[last]
        total = 0.0
        for start in (0, 5, 10):
            batch = examples[start : start + 5]
            loss = mean([losses.cross_entropy(twin(x), y) for x, y in batch]) + losses.l2(twin.parameters(), 0.01)
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm(twin, 0.3)
            optimizer.step()
            total += loss.data * len(batch)
        assert history.loss[epoch] == pytest.approx(total / len(X), rel=1e-14)
    assert model.state_dict() == pytest.approx(twin.state_dict(), rel=1e-13)


def test_a_batch_larger_than_a_chunk() -> None:
    """The gradient of 300 examples at once is that of their mean loss."""
    rng = random.Random(0)
    inputs = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(2 * CHUNK + 44)]
    targets = [a * b for a, b in inputs]
    model, twin = make(), make()
    quiet(model, losses.mse, inputs, targets, SGD(model, 0.1), 1)
    mean([losses.mse(twin(x), y) for x, y in zip(inputs, targets, strict=True)]).backward()
    SGD(twin, 0.1).step()
    assert [p.data for p in model.parameters()] == pytest.approx([p.data for p in twin.parameters()], rel=1e-13)


def test_seeds_decide_everything() -> None:
    def run(seed: int | None) -> list[float]:
        model = make(3)
        return quiet(model, losses.cross_entropy, X, CLASSES, Adam(model), 3, 2, seed=seed).loss

    assert run(1) == run(1) != run(2)
    random.seed(5)
    first = run(None)
    random.seed(5)
    assert run(None) == first


def test_without_shuffling_the_order_is_that_of_the_data() -> None:
    seen: list[Any] = []
    model = make()

    def watched(x: Any) -> Value:
        seen.append(x)
        return model(x)  # type: ignore[no-any-return]

    quiet(watched, losses.hinge, X, SIGNS, SGD(model, 0.1), 2, 5, shuffle=False, backend="eager")
    assert seen == [X[0], *X, *X]  # once to check the targets, then each epoch


def test_data_may_be_arrays_and_generators() -> None:
    numpy = pytest.importorskip("numpy")
    runs = []
    for inputs, targets in [(X, CLASSES), (numpy.array(X), numpy.array(CLASSES)), (iter(X), iter(CLASSES))]:
        model = make(3)
        runs.append(quiet(model, losses.cross_entropy, inputs, targets, Adam(model, 0.05), 3, 5, seed=1).loss)
    assert runs[0] == runs[1] == runs[2]


def test_any_function_of_the_parameters_is_a_model() -> None:
    slope, offset = Value(0.0), Value(0.0)
    xs = [0.0, 1.0, 2.0, 3.0]
    quiet(lambda x: slope * x + offset, losses.mse, xs, [1.0, 3.0, 5.0, 7.0], SGD([slope, offset], 0.1), 300)
    assert (slope.data, offset.data) == (pytest.approx(2.0, abs=1e-4), pytest.approx(1.0, abs=1e-4))


def test_rows_may_be_what_the_model_reads() -> None:
    """Words, of different lengths: no row of numbers."""
    weights = {letter: Value(0.0) for letter in "abc"}
    words, targets = ["a", "ab", "abc"], [1.0, 3.0, 6.0]
    quiet(lambda word: sum(weights[c] for c in word), losses.mse, words, targets, SGD(weights.values(), 0.1), 500)
    assert [w.data for w in weights.values()] == pytest.approx([1.0, 2.0, 3.0], abs=1e-3)


def test_several_outputs_and_targets() -> None:
    model = make(2)
    history = quiet(model, losses.mse, X, X, Adam(model, 0.05), 100)
    assert history.loss[-1] < 0.02 < history.loss[0]
    assert history.accuracy == []


def test_frozen_parameters_neither_move_nor_count_when_clipping() -> None:
    model = make()
    optimizer = SGD(model, 0.1)
    optimizer.freeze(model.layers[0])
    before = model.state_dict()
    quiet(model, losses.mse, X, SIGNS, optimizer, 3, clip_norm=0.1)
    moved = {name.split(".")[1] for name, number in model.state_dict().items() if number != before[name]}
    assert moved == {"1"}
    assert math.hypot(*[p.grad for p in optimizer.trainable]) == pytest.approx(0.1, rel=1e-4)


def test_a_run_that_is_resumed_gives_the_same_bits() -> None:
    states = []
    for parts in ([4], [1, 3]):
        model = make(3)
        optimizer = Adam(model, 0.05)
        for epochs in parts:
            quiet(model, losses.cross_entropy, X, CLASSES, optimizer, epochs, 5, shuffle=False)
        states.append(model.state_dict())
    assert states[0] == states[1]


# -- what is reported -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "outputs", "targets", "right"),
    [
        (losses.cross_entropy, 3, CLASSES, lambda p, y: max(range(3), key=lambda k: p[k]) == y),
        (losses.hinge, 1, SIGNS, lambda p, y: (p > 0) == (y > 0)),
        (losses.binary_cross_entropy_with_logits, 1, BITS, lambda p, y: (p > 0) == (y > 0.5)),
    ],
)
def test_accuracy_of_each_kind_of_loss(loss: Any, outputs: int, targets: list[int], right: Any) -> None:
    model = make(outputs)
    expected = [sum(right(p, y) for p, y in zip(predict(model, X), targets, strict=True)) / len(X)]
    history = quiet(model, loss, X, targets, SGD(model, 0.1), 2, validation=(X, targets))
    assert history.accuracy[:1] == expected
    assert accuracy(model, X, targets, loss) == history.val_accuracy[1]


def test_accuracy_of_probabilities() -> None:
    model = MLP(2, [4, 2], output="sigmoid", rng=random.Random(1))
    both = [[y, 1 - y] for y in BITS]
    history = quiet(model, losses.binary_cross_entropy, X, both, Adam(model, 0.1), 60)
    assert history.accuracy[-1] == accuracy(model, X, both, losses.binary_cross_entropy) == 1.0


def test_accuracy_tells_from_the_data_where_it_can() -> None:
    assert accuracy(make(3), X, CLASSES) == accuracy(make(3), X, CLASSES, losses.cross_entropy)
    assert accuracy(make(), X, SIGNS) == accuracy(make(), X, SIGNS, losses.hinge)
    with pytest.raises(ArgumentError, match="pass loss=: with one output"):
        accuracy(make(), X, BITS)
    with pytest.raises(ArgumentError, match="mse has no metric"):
        accuracy(make(), X, BITS, losses.mse)
    with pytest.raises(DataError, match="X is empty"):
        accuracy(make(), [], [])


def test_a_metric_of_ones_own_and_none() -> None:
    model = make()
    history = quiet(model, losses.mse, X, SIGNS, None, 1, metric=lambda p, y: abs(p.data - y))
    assert len(history.accuracy) == 1
    assert quiet(model, losses.hinge, X, SIGNS, None, 1, metric=None).accuracy == []


def test_validation_learns_nothing_and_holds_no_regularization() -> None:
    model = make(3)
    optimizer = SGD(model, lr=0.0)
    history = quiet(
        model,
        losses.cross_entropy,
        X,
        CLASSES,
        optimizer,
        3,
        validation=(X, CLASSES),
        regularization=lambda: losses.l2(model.parameters(), 1.0),
    )
    penalty = losses.l2(model.parameters(), 1.0).data
    assert history.loss == pytest.approx([number + penalty for number in history.val_loss], rel=1e-14)
    assert len(set(history.val_loss)) == 1


def test_predictions_are_plain_numbers_and_record_nothing() -> None:
    model = make(3)
    rows = predict(model, X)
    assert all(type(number) is float for row in rows for number in row)
    assert rows == [[o.data for o in model(x)] for x in X]
    assert predict(make(), []) == []
    assert predict(lambda x: "as it is", [1.0]) == ["as it is"]


def test_a_history_reads_well() -> None:
    history = History(loss=[2.0, 0.5], val_loss=[1.0, 1.5], accuracy=[0.5, 0.75], seconds=1.25, stopped_early=True)
    assert repr(History(loss=[2.0], backend="numpy")) == "History(1 epoch in 0.0 s (numpy), loss 2)"
    assert repr(history) == "History(2 epochs in 1.2 s, loss 0.5, accuracy 75.0 %, val_loss 1.5, stopped_early)"
    assert history.last(brief=True) == "loss 0.5, val_loss 1.5"
    assert History(loss=[2.0]).last(brief=True) == "loss 2"
    assert History([2.0], accuracy=[3.25]).last() == "loss 2, accuracy 3.25", "a metric that is no fraction"
    assert (len(history), history.best_epoch) == (2, 0)
    assert History(loss=[2.0, 0.5]).best_epoch == 1
    assert (len(History()), History().best_epoch, repr(History())) == (0, None, "History(0 epochs in 0.0 s)")
    assert History(loss=[1.0, 1.0, 1.0], val_loss=[math.nan, 2.0, math.nan]).best_epoch == 1


@pytest.mark.plot
def test_a_history_plots_itself() -> None:
    import matplotlib

    matplotlib.use("Agg")
    assert History(loss=[2.0, 0.5], val_loss=[1.0, 1.5], accuracy=[0.5, 0.75]).plot() is not None


# -- how a run ends ---------------------------------------------------------------------------------------------------


def noise(count: int, seed: int) -> tuple[list[list[float]], list[int]]:
    """Targets that have nothing to do with the inputs: learning them can only overfit."""
    rng = random.Random(seed)
    return [[rng.uniform(-1, 1) for _ in range(2)] for _ in range(count)], [rng.choice((-1, 1)) for _ in range(count)]


def test_patience_stops_and_brings_back_the_best_parameters() -> None:
    model = MLP(2, [8, 1], activation="tanh", rng=random.Random(0))
    states = []
    history = quiet(
        model,
        losses.mse,
        *noise(10, 1),
        Adam(model, 0.05),
        200,
        validation=noise(10, 2),
        patience=5,
        callback=lambda _: states.append(model.state_dict()),
    )
    assert history.stopped_early
    assert history.best_epoch is not None
    assert len(history) == history.best_epoch + 1 + 5
    assert history.val_loss[history.best_epoch] == min(history.val_loss)
    assert model.state_dict() == states[history.best_epoch] != states[-1]


def test_patience_brings_back_the_best_parameters_of_a_whole_run() -> None:
    model = make()
    states = []
    history = quiet(
        model,
        losses.mse,
        *noise(10, 1),
        SGD(model, 0.5, momentum=0.9),
        30,
        validation=noise(10, 2),
        patience=1000,
        callback=lambda _: states.append(model.state_dict()),
    )
    assert (len(history), history.stopped_early) == (30, False)
    assert history.best_epoch is not None
    assert model.state_dict() == states[history.best_epoch]


def test_the_callback_can_end_the_run() -> None:
    history = quiet(make(), losses.hinge, X, SIGNS, None, 50, callback=lambda h: len(h) == 3)
    assert (len(history), history.stopped_early) == (3, True)


@pytest.mark.usefixtures("sigint")
def test_ctrl_c_ends_a_run_in_order() -> None:
    model, calls = make(), 0

    def interrupted(x: Any) -> Value:
        nonlocal calls
        calls += 1
        if calls == 40:
            signal.raise_signal(signal.SIGINT)
        return model(x)  # type: ignore[no-any-return]

    history = quiet(interrupted, losses.hinge, X, SIGNS, SGD(model, 0.1), 100, 4, backend="eager")
    assert history.interrupted
    assert len(history) == 3  # 1 call to check the targets, 3 epochs of 12, and 3 calls into the fourth
    assert calls == 40
    assert all(math.isfinite(number) for row in [predict(model, X)] for number in row)
    assert len(quiet(model, losses.hinge, X, SIGNS, SGD(model, 0.1), 2)) == 2


def test_a_loss_that_is_not_finite_ends_the_run_before_it_spoils_the_parameters() -> None:
    model = MLP(2, [1], rng=random.Random(0))
    with pytest.warns(RuntimeWarning, match=r"epoch \d+, batch 0: the loss is inf.*learning rate below 1e\+60"):
        history = quiet(model, losses.mse, X, SIGNS, SGD(model, 1e60), 50)
    assert history.diverged
    assert 0 < len(history) < 50
    assert all(math.isfinite(number) for number in history.loss)
    assert all(math.isfinite(number) for number in model.state_dict().values())


# -- progress ---------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, epochs: int) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    model = make(3)
    fit(model, losses.cross_entropy, X, CLASSES, SGD(model, 0.1), epochs, 4)
    return stream.getvalue()


def test_progress_with_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    text = shown(monkeypatch, Terminal(), 3)
    assert "100%" in text
    assert "epoch 3/3: loss " in text


def test_progress_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    lines = shown(monkeypatch, io.StringIO(), 40).splitlines()
    assert [line.split(":")[0] for line in lines] == [f"epoch {n}/40" for n in range(4, 41, 4)], lines
    assert "loss " in lines[0]
    assert "accuracy " in lines[0]
    text = shown(monkeypatch, Terminal(), 3)
    assert text.count("\r") == 3
    assert text.endswith("\n")


@pytest.mark.parametrize("progress", [True, False])
def test_a_run_that_is_stuck_says_so(progress: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """A last ReLU never says -1: of four points with 1 and -1 it learns nothing; tanh does, or has too few epochs."""
    points = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]

    def told(activation: str, lr: float, epochs: int) -> bool:
        model = MLP(3, [4, 4, 1], activation=activation, output=activation, rng=random.Random(1))
        fit(model, losses.mse, points, [1.0, -1.0, -1.0, 1.0], SGD(model, lr), epochs, progress=progress)
        return "the loss hardly falls: wengert.diagnose(model, history, X=X, Y=Y) says why" in capsys.readouterr().err

    assert told("relu", 0.5, 40) is progress
    assert not told("relu", 0.5, 10)
    assert not told("tanh", 0.5, 40)


def test_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    quiet(make(), losses.hinge, X, SIGNS, None, 2)
    assert capsys.readouterr() == ("", "")
