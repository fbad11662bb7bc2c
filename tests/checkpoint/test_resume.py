"""A run that is resumed from a checkpoint gives the bits of one long run; what a checkpoint of a run refuses."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wengert import Value, checkpoint, data
from wengert.checkpoint import states
from wengert.compiler.backends import default_backend
from wengert.errors import ArgumentError, CheckpointError
from wengert.losses import hinge, l2, mse
from wengert.nn import MLP
from wengert.optim import SGD, Adam, AdamW, Optimizer
from wengert.training import fit
from wengert.training.history import History

pytestmark = pytest.mark.once  # files and random numbers are Python's

X, Y = data.moons(60, noise=0.2, seed=1, labels=(-1, 1))
HELD_OUT = data.moons(30, noise=0.2, seed=2, labels=(-1, 1))
KINDS: dict[str, Callable[[MLP], Optimizer]] = {
    "momentum": lambda model: SGD(model, 0.1, momentum=0.9),
    "nesterov": lambda model: SGD(model, lambda k: 0.1 / (1 + k), momentum=0.5, nesterov=True, weight_decay=0.01),
    "adam": lambda model: Adam(model, 0.01),
    "adamw": lambda model: AdamW(model, 0.01, weight_decay=0.1),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


def bits(numbers: Any) -> list[bytes]:
    return [struct.pack("<d", number) for number in numbers]


def everything(model: MLP, optimizer: Optimizer, history: History) -> dict[str, Any]:
    """All that two runs can be told apart by, but for the time they took."""
    state, told = optimizer.state_dict(), history.state_dict()
    told.pop("seconds")
    parts = {**{f"optimizer.{k}": v for k, v in state.items()}, **told, "model": [*model.state_dict().values()]}
    return {name: bits(part) if isinstance(part, list) else part for name, part in parts.items()}


def resumed_after(path: Path, epochs: int, kind: str, first: int, options: dict[str, Any]) -> None:
    """Train `epochs` epochs at one go; then `first` of them, the rest in other objects from the file; compare."""

    def begin(seed: int) -> tuple[MLP, Optimizer]:
        model = MLP(2, [8, 1], rng=random.Random(seed))
        return model, KINDS[kind](model)

    def run(model: MLP, optimizer: Optimizer, **more: Any) -> History:
        return fit(
            model,
            hinge,
            X,
            Y,
            optimizer,
            epochs,
            16,
            regularization=lambda: l2(model.parameters(), 1e-3),
            progress=False,
            **{**options, **more},
        )

    random.seed(5)
    model, optimizer = begin(0)
    want = everything(model, optimizer, run(model, optimizer))

    def save(history: History) -> bool:
        checkpoint.save(part, path, optimizer=part_optimizer, history=history, rng=random)
        return len(history) == first

    random.seed(5)
    part, part_optimizer = begin(0)
    assert len(run(part, part_optimizer, callback=save)) == first
    random.seed(6)
    model, optimizer = begin(1)
    history = History()
    checkpoint.load(model, path, optimizer=optimizer, history=history, rng=random)
    assert run(model, optimizer, history=history) is history
    assert everything(model, optimizer, history) == want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["eager", "numpy"])
def test_a_resumed_run_gives_the_same_bits(kind: str, backend: str, path: Path) -> None:
    if backend == "numpy":
        pytest.importorskip("numpy", reason="the back end is NumPy")
    resumed_after(path, 5, kind, 2, {"backend": backend})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options",
    [
        {"seed": 3},
        {"shuffle": False},
        {"validation": HELD_OUT, "seed": 3},
        {"validation": HELD_OUT, "patience": 2},
        {"clip_norm": 0.5, "metric": None},
    ],
    ids=lambda options: "-".join(options),
)
@pytest.mark.parametrize("first", [1, 4])
def test_whatever_the_run(options: dict[str, Any], first: int, path: Path) -> None:
    resumed_after(path, 6, "adam", first, options)


def test_patience_goes_back_to_the_best_epoch_of_the_earlier_run(path: Path) -> None:
    """A learning rate that spoils what was learnt: the best epoch is the first."""

    def run(first: int | None, seed: int, history: History | None) -> tuple[list[bytes], History]:
        model = MLP(2, [4, 1], rng=random.Random(seed))
        optimizer = SGD(model, lambda k: 0.05 if k < 2 else 30.0)
        if history is not None:
            checkpoint.load(model, path, optimizer=optimizer, history=history)

        def save(history: History) -> bool:
            checkpoint.save(model, path, optimizer=optimizer, history=history)
            return len(history) == first

        done = fit(
            model, mse, X, Y, optimizer, 9, validation=HELD_OUT, patience=4, seed=0, progress=False, callback=save,
            history=history, backend="eager", shuffle=False, clip_norm=1.0,
        )  # fmt: skip
        return bits(model.state_dict().values()), done

    want, whole = run(None, 0, None)
    assert whole.stopped_early
    assert whole.best_epoch is not None
    run(whole.best_epoch + 2, 0, None)
    got, resumed = run(None, 1, History())
    assert got == want
    assert bits(resumed.val_loss) == bits(whole.val_loss)
    assert resumed.stopped_early


def test_a_model_that_draws_random_numbers(path: Path) -> None:
    """Dropout draws from the module random: its state belongs to the checkpoint."""

    class Dropout(MLP):
        def __call__(self, x: Any) -> Any:
            hidden = self.layers[0](x)
            return self.layers[1]([h * (random.random() < 0.5) for h in hidden])

    def run(seed: int, epochs: int, history: History | None) -> dict[str, Any]:
        model = Dropout(2, [6, 1], rng=random.Random(seed))
        optimizer = Adam(model, 0.01)
        if history is not None:
            checkpoint.load(model, path, optimizer=optimizer, history=history, rng=random)
        history = fit(
            model, hinge, X, Y, optimizer, epochs, 20, progress=False, backend="eager", history=history, seed=1
        )
        checkpoint.save(model, path, optimizer=optimizer, history=history, rng=random)
        return everything(model, optimizer, history)

    random.seed(2)
    want = run(0, 4, None)
    random.seed(2)
    run(0, 1, None)
    random.seed(77)
    assert run(1, 4, History()) == want


def test_a_loop_of_ones_own(path: Path) -> None:
    def run(model: MLP, optimizer: Optimizer, rng: random.Random, steps: int) -> None:
        for _ in range(steps):
            i = rng.randrange(len(X))
            noise = rng.gauss(0.0, 0.1)
            optimizer.zero_grad()
            hinge(model([x + noise for x in X[i]]), Y[i]).backward()
            optimizer.step()

    model, rng = MLP(2, [4, 1], rng=random.Random(0)), random.Random(1)
    optimizer = Adam(model, 0.05)
    run(model, optimizer, rng, 7)
    checkpoint.save(model, path, optimizer=optimizer, rng=rng)
    run(model, optimizer, rng, 8)
    twin, again = MLP(2, [4, 1]), random.Random()
    other = Adam(twin, 0.05)
    checkpoint.load(twin, path, optimizer=other, rng=again)
    run(twin, other, again, 8)
    assert bits(twin.state_dict().values()) == bits(model.state_dict().values())
    assert again.getstate() == rng.getstate()


def test_a_run_that_was_interrupted_goes_on(path: Path) -> None:
    model = MLP(2, [4, 1], rng=random.Random(0))
    optimizer = SGD(model, 0.1)

    def interrupt(history: History) -> None:
        if len(history) == 2:
            raise KeyboardInterrupt

    history = fit(model, hinge, X, Y, optimizer, 4, seed=0, progress=False, callback=interrupt)
    assert history.interrupted
    fit(model, hinge, X, Y, optimizer, 4, seed=0, progress=False, history=history)
    assert (len(history), history.interrupted) == (4, False)
    fit(model, hinge, X, Y, optimizer, 4, seed=0, progress=False, history=history)
    assert len(history) == 4


def test_auto_keeps_to_the_back_end_of_the_earlier_run() -> None:
    """Whatever it takes by itself."""
    pytest.importorskip("numpy", reason="the back end is NumPy")
    model = MLP(1, [1])
    few: Any = [[0.0], [1.0]], [0.0, 1.0]
    optimizer = SGD(model, 0.1)
    assert fit(model, mse, *few, optimizer, 1, progress=False).backend == default_backend().name
    for backend in ("eager", "numpy"):
        history = fit(model, mse, *few, optimizer, 1, progress=False, backend=backend)
        assert fit(model, mse, *few, optimizer, 2, progress=False, history=history).backend == backend


def test_the_safetensors_library_reads_a_run(path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors and NumPy")
    model = MLP(2, [1], rng=random.Random(0))
    rng = random.Random(1)
    checkpoint.save(model, path, optimizer=Adam(model), history=History([0.5, 0.25]), rng=rng)
    tensors = safetensors.load_file(path)
    assert tensors["history.loss"].tolist() == [0.5, 0.25]
    assert tensors["optimizer.mean"].tolist() == [0.0, 0.0, 0.0]
    assert tensors["rng.words"].tolist() == [*rng.getstate()[1]]
    assert tensors["optimizer.steps"] == 0.0


def test_parts_may_be_left_out(path: Path) -> None:
    model = MLP(2, [1], rng=random.Random(0))
    checkpoint.save(model, path, optimizer=Adam(model), history=History([0.5]), rng=random)
    twin = MLP(2, [1])
    history = History([9.0, 8.0])
    checkpoint.load(twin, path, history=history)
    assert history.loss == [0.5]
    assert twin.state_dict() == model.state_dict()


# -- what is refused, and then nothing is changed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"optimizer": 0}, "no state of an optimizer: it was saved without optimizer="),
        ({"history": History()}, "no history: it was saved without history="),
        ({"rng": random.Random(0)}, "no state of random numbers: it was saved without rng="),
    ],
    ids=["optimizer", "history", "rng"],
)
def test_what_was_not_saved(part: dict[str, Any], words: str, path: Path) -> None:
    saved, model = MLP(2, [1]), MLP(2, [1])
    checkpoint.save(saved, path)
    before = model.state_dict()
    if "optimizer" in part:
        part = {"optimizer": SGD(model, 0.1)}
    with pytest.raises(CheckpointError, match=words):
        checkpoint.load(model, path, **part)
    assert model.state_dict() == before


def test_another_optimizer(path: Path) -> None:
    model = MLP(2, [1])
    checkpoint.save(model, path, optimizer=Adam(model))
    with pytest.raises(CheckpointError, match="the state of the optimizer 'Adam', not of 'SGD'"):
        checkpoint.load(model, path, optimizer=SGD(model, 0.1))
    with pytest.raises(CheckpointError, match=r"another optimizer: .*optimizer.age \[3\], expected \[2\]"):
        checkpoint.load(model, path, optimizer=Adam(model.parameters()[:2]))
    with pytest.raises(CheckpointError, match="or in another order"):
        checkpoint.load(model, path, optimizer=Adam(model.parameters()[::-1]))


class Foreign(random.Random):
    """Its state is of another kind."""

    def getstate(self) -> Any:
        return (1, 2)


@pytest.mark.parametrize("rng", [5, "random", random.SystemRandom(), Foreign()])
def test_what_has_no_state(rng: Any, path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"expected the module random or a random\.Random"):
        checkpoint.save(MLP(2, [1]), path, rng=rng)
    assert not path.exists()
    checkpoint.save(MLP(2, [1]), path, rng=random)
    with pytest.raises(ArgumentError, match=r"expected the module random or a random\.Random"):
        checkpoint.load(MLP(2, [1]), path, rng=rng)


def test_all_or_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Good parameters, a good optimizer, a good history, and random numbers that are none: nothing is loaded."""
    saved = MLP(2, [1], rng=random.Random(0))
    bad = random.Random(0)
    words = (3, (2**33,) * 625, None)
    monkeypatch.setattr(bad, "getstate", lambda: words)
    checkpoint.save(saved, path, optimizer=Adam(saved), history=History([1.0]), rng=bad)
    model, rng, history = MLP(2, [1], rng=random.Random(1)), random.Random(2), History([7.0], seconds=1.0)
    optimizer = Adam(model)
    model([1.0, 2.0]).backward()
    optimizer.step()
    before, state = everything(model, optimizer, history), rng.getstate()
    with pytest.raises(CheckpointError, match="damaged: the state of random numbers is invalid"):
        checkpoint.load(model, path, optimizer=optimizer, history=history, rng=rng)
    assert everything(model, optimizer, history) == before
    assert rng.getstate() == state
    assert history.seconds == 1.0


def test_a_state_that_no_file_can_hold(path: Path) -> None:
    class Odd(SGD):
        def state_dict(self) -> dict[str, Any]:
            return {**super().state_dict(), "odd": object()}

    model = MLP(2, [1])
    with pytest.raises(ArgumentError, match=r"the optimizer's odd is <object"):
        checkpoint.save(model, path, optimizer=Odd(model, 0.1))


def test_a_history_of_too_many_epochs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MLP(2, [1])
    checkpoint.save(model, path, history=History([1.0] * 11))
    monkeypatch.setattr(states, "LONGEST", 10)
    with pytest.raises(CheckpointError, match="11 epochs; at most 10"):
        checkpoint.save(model, path, history=History([1.0] * 11))
    with pytest.raises(CheckpointError, match=r"history.loss has the shape \[11\]"):
        checkpoint.load(model, path, history=History())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": [1.0]}, "val_loss has the length 2, loss 1"),
        ({"diverged": 0.5}, "expected True or False for interrupted"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"seconds": "long"}, "seconds is 'long'"),
        ({"loss": None}, "loss is None; expected a list of numbers"),
        ({"best_parameters": 3.0}, r"best_parameters is 3\.0; expected a list of numbers"),
        ({"val_loss": ["a", "b"]}, r"val_loss is \['a', 'b'\]; expected a list of numbers"),
        ({"fallback": 3}, "fallback is 3; expected a string"),
        ({"backend": "quantum"}, "backend is 'quantum'"),
        ({"more": 1.0}, "not a state of History"),
    ],
)
def test_states_that_no_history_has(change: dict[str, Any], words: str) -> None:
    history = History([1.0, 2.0], [3.0, 4.0])
    before = history.state_dict()
    with pytest.raises(ArgumentError, match=words):
        history.load_state_dict({**before, **change})
    assert history.state_dict() == before


@pytest.mark.parametrize(
    ("history", "options", "words"),
    [
        ([1.0], {}, "expected the History of an earlier run"),
        (History([1.0], accuracy=[0.5], val_loss=[1.0]), {}, "has val_loss, but this one would not"),
        (History([1.0]), {}, "has no accuracy, but this one would"),
        (
            History([1.0], accuracy=[0.5], val_loss=[1.0]),
            {"validation": HELD_OUT, "patience": 1},
            "the earlier run kept no parameters of it",
        ),
    ],
)
def test_a_run_cannot_go_on_as_another(history: Any, options: dict[str, Any], words: str) -> None:
    model = MLP(2, [4, 1])
    before = model.state_dict()
    with pytest.raises(ArgumentError, match=words):
        fit(model, hinge, X, Y, SGD(model, 0.1), 5, progress=False, history=history, **options)
    assert model.state_dict() == before


def test_steps_are_whole() -> None:
    optimizer = SGD([Value(1.0)], 0.1)
    with pytest.raises(ArgumentError, match=r"steps is 1\.5"):
        optimizer.load_state_dict({**optimizer.state_dict(), "steps": 1.5})


# -- killed savers, mutated files: a small part of what the commands run ----------------------------------------------


def command(*arguments: str) -> str:
    program = [sys.executable, "-m", "tools.qa.checkpoint_fuzz", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork to kill a saver by")
def test_a_saver_that_is_killed_loses_nothing() -> None:
    assert "0 lost" in command("kill", "10")


@pytest.mark.slow
def test_mutated_files_are_refused_or_read_right() -> None:
    assert "0 silent loads, 0 crashes, 0 code run" in command("mutate", "60")
