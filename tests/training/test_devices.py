"""`fit` on devices: many steps in one loop of XLA come to what single steps do, on one device and on several."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from wengert import Value, nn, optim
from wengert.data import spiral
from wengert.errors import ArgumentError
from wengert.losses import cross_entropy, hinge
from wengert.training import fit

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax", reason="needs jax")

from tests.training.one_host import branching  # noqa: E402
from wengert.compiler.backends import precision  # noqa: E402
from wengert.compiler.backends.xla import mesh as devices  # noqa: E402
from wengert.compiler.backends.xla.mesh import DeviceBatches  # noqa: E402
from wengert.training import steps  # noqa: E402

pytestmark = [pytest.mark.jax, pytest.mark.once]
nightly = pytest.mark.nightly  # XLA compiles for seconds
ROOT = Path(__file__).parents[2]
X, Y = (rows[:64] for rows in spiral(22, seed=4))
ONE = (3,)  # layer: XLA compiles half as much
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda m: optim.SGD(m, 0.1),
    "nesterov": lambda m: optim.SGD(m, 0.05, momentum=0.5, nesterov=True, weight_decay=0.01),
    "adam": lambda m: optim.Adam(m, 0.01, weight_decay=0.02, betas=(0.8, 0.99)),
    "adamw": lambda m: optim.AdamW(m, 0.01),
}


@pytest.fixture
def stretches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each loop made."""
    made: list[int] = []
    run = DeviceBatches.run

    def noted(self: Any, *given: Any) -> Any:
        outcome = run(self, *given)
        made.append(outcome[0])
        return outcome

    monkeypatch.setattr(DeviceBatches, "run", noted)
    return made


def trained(make: Any = OPTIMIZERS["adam"], loss: Any = cross_entropy, widths: Any = (5, 3), **more: Any) -> Any:
    """All that a run leaves behind."""
    model = nn.MLP(2, [*widths], rng=random.Random(7))
    optimizer = make(model)
    how = {"epochs": 5, "batch_size": 10, "seed": 1, "progress": False, "backend": "xla", **more}
    history = fit(model, loss, X, Y, optimizer, **how)
    state = [x for part in optimizer._state.values() for x in part]
    numbers = [x for p in optimizer.parameters for x in (p.data, p.grad)]
    return [*numbers, *state, optimizer.steps, *history.loss, *history.accuracy], history


def same(stretches: list[int], **how: Any) -> None:
    """A run on devices comes to what the array program does, step by step."""
    del stretches[:]
    got, history = trained(**how)
    want, _ = trained(**{**how, "backend": "numpy", "mesh": None})
    assert got == pytest.approx(want, rel=1e-12, abs=1e-12)
    assert (history.backend, history.fallback) == ("xla", "")
    assert sum(stretches) > len(stretches) > 0


@nightly  # the next test is of one, and those of single precision and of several hosts
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_steps_of_an_epoch_in_few_loops(name: str, stretches: list[int]) -> None:
    """The last batch has fewer rows; and each optimizer's rule is its own text."""
    same(stretches, make=OPTIMIZERS[name])
    assert sum(stretches) == 5 * 7


def test_clipping_regularization_and_pieces(stretches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "PIECE", 3)
    extra = Value(1.0)

    def penalized(**more: Any) -> Any:
        extra.data = 1.0
        make = lambda model: optim.SGD([extra, *model.parameters()], 0.1)  # noqa: E731
        return trained(make, regularization=lambda: 0.1 * extra * extra, clip_norm=0.5, widths=ONE, **more)[0]

    assert penalized() == pytest.approx(penalized(backend="numpy"), rel=1e-12, abs=1e-12)
    assert sum(stretches) == 5 * 7


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["adamw", *(pytest.param(n, marks=nightly) for n in OPTIMIZERS if n != "adamw")])
def test_large_arrays_of_parameters_move_as_they_are(
    name: str, stretches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here those of the weights; the biases move together."""
    cuts: list[list[int]] = []
    begin = DeviceBatches.begin

    def noted(self: Any, *given: Any) -> None:
        begin(self, *given)
        cuts.append(self.program.cuts)

    monkeypatch.setattr(DeviceBatches, "begin", noted)
    monkeypatch.setattr(devices, "ALONE", 6)
    same(stretches, make=OPTIMIZERS[name], clip_norm=0.5)
    assert [10, 25] in cuts
    monkeypatch.setattr(devices, "PIECE", 3)
    same(stretches, make=OPTIMIZERS[name])


@pytest.mark.parametrize("lost", [False, pytest.param(True, marks=nightly)])
def test_ctrl_c_while_a_loop_runs(lost: bool, stretches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the loop made is there; or, if that was lost, what was there when somebody last looked."""
    monkeypatch.setattr(steps, "DEVICE_PAUSE", 0.0)  # one step a loop
    waits, begins, pressed = DeviceBatches._read, DeviceBatches._arguments, []

    def noted(self: Any) -> Any:
        if len(stretches) == 4 and not lost and not pressed:
            pressed.append(self.since)
            raise KeyboardInterrupt
        return waits(self)

    def given(self: Any, *how: Any) -> Any:
        made = begins(self, *how)
        if len(stretches) == 4 and lost:
            pressed.append(self.since)
            with precision(False):
                self.loop(*made)
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(DeviceBatches, "_read", noted)
    monkeypatch.setattr(DeviceBatches, "_arguments", given)
    model = nn.MLP(2, [*ONE], rng=random.Random(7))
    optimizer = optim.Adam(model, 0.01)
    how: dict[str, Any] = {"epochs": 1, "batch_size": 10, "shuffle": False, "progress": False}
    assert fit(model, cross_entropy, X, Y, optimizer, backend="xla", **how).interrupted
    assert pressed[0] > 0
    assert optimizer.steps == (4 - pressed[0] if lost else 5)
    other = nn.MLP(2, [*ONE], rng=random.Random(7))
    rows = slice(10 * optimizer.steps)
    fit(other, cross_entropy, X[rows], Y[rows], optim.Adam(other, 0.01), backend="numpy", **how)
    want = [p.data for p in other.parameters()]
    assert [p.data for p in model.parameters()] == pytest.approx(want, rel=1e-12)


@nightly
def test_known_specializations_are_selected(stretches: list[int]) -> None:
    """Rows of several recordings in one batch; one that is new is made by a step on its own."""
    same(stretches, loss=branching, epochs=8)
    assert 6 * 7 < sum(stretches) < 8 * 7


@pytest.mark.nightly
def test_a_way_that_is_not_taken_spoils_nothing(stretches: list[int]) -> None:
    """The logarithm of a number below 0 is nan, and 0 times that would be too."""

    def logarithm(prediction: Any, target: int) -> Any:
        x = prediction[0]
        return (1.0 + 4.0 * x).log() if x > -0.1 else cross_entropy(prediction, target)

    same(stretches, loss=logarithm, epochs=8)
    assert sum(stretches) > 40


def test_integers_choose_from_the_end_too_and_bounds_are_looked_at(stretches: list[int]) -> None:
    table = [[Value(0.1 * i + 0.01 * j) for j in range(3)] for i in range(5)]
    numbers = [p for row in table for p in row]
    rows = [[i % 5, i % 3 - 3] for i in range(20)]

    def model(x: Any) -> Any:
        return [a + b for a, b in zip(table[x[0]], table[x[1]], strict=True)]

    def learnt(backend: str) -> list[float]:
        for n, p in enumerate(numbers):
            p.data = 0.1 * (n // 3) + 0.01 * (n % 3)
        how: dict[str, Any] = {"seed": 2, "progress": False, "backend": backend}
        history = fit(model, cross_entropy, rows, [i % 3 for i in range(20)], optim.SGD(numbers, 0.1), 6, 4, **how)
        return [*history.loss, *history.accuracy, *[p.data for p in numbers]]

    assert learnt("xla") == pytest.approx(learnt("numpy"), rel=1e-12)
    assert sum(stretches) == 6 * 5


def test_a_step_that_is_not_finite_is_not_made(stretches: list[int]) -> None:
    def growing(prediction: Any, target: int) -> Any:
        return prediction[0] ** 3 + prediction[1] ** 3

    how: dict[str, Any] = {"make": OPTIMIZERS["sgd"], "loss": growing, "metric": None, "batch_size": 4}
    how["make"] = lambda model: optim.SGD(model, 0.9)
    with pytest.warns(RuntimeWarning, match=r"epoch 0, batch \d+: the loss is -?(inf|nan)"):
        got, history = trained(**how)
    with pytest.warns(RuntimeWarning, match="the loss is"):
        want, _ = trained(**how, backend="numpy")
    assert history.diverged
    assert all(isfinite(number) for number in got[:1])
    assert got[-1] == want[-1] > 1  # steps, the last of which
    assert sum(stretches) in (got[-1] - 1, got[-1])  # is left to the optimizer if its gradient's squares are infinite
    assert got[::2] == pytest.approx(want[::2], rel=1e-9)


@nightly
def test_settings_may_change_between_epochs(stretches: list[int]) -> None:
    def run(backend: str) -> list[float]:
        model = nn.MLP(2, [5, 3], rng=random.Random(7))
        optimizer = optim.Adam(model, 0.01)

        def callback(history: Any) -> None:
            optimizer.lr, optimizer.eps = 0.01 / len(history), 1e-8 * len(history)

        how: dict[str, Any] = {"seed": 1, "progress": False, "backend": backend, "callback": callback}
        fit(model, cross_entropy, X, Y, optimizer, 4, 16, **how)
        return [p.data for p in model.parameters()]

    assert run("xla") == pytest.approx(run("numpy"), rel=1e-12)
    assert sum(stretches) == 16


@pytest.mark.nightly
def test_how_many_steps_are_made_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one bit: a busy machine makes fewer of them at once."""
    runs = []
    for pause in (0.0, 100.0):
        monkeypatch.setattr(steps, "DEVICE_PAUSE", pause)
        runs.append(trained(clip_norm=0.5)[0])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("what", ["a rule", pytest.param("a rate", marks=nightly)])
def test_what_may_look_at_each_step_is_left_alone(what: str, stretches: list[int]) -> None:
    class Signs(optim.SGD):
        def _rule(self, lr: float, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
            return tuple(super()._rule(lr, x, 2.0 * g, *state))

    makes = {"a rule": lambda m: Signs(m, 0.05), "a rate": lambda m: optim.SGD(m, lambda step: 0.1 / (1 + step))}
    make = makes[what]
    want = trained(make, epochs=2, widths=ONE, backend="numpy")[0]
    assert trained(make, epochs=2, widths=ONE)[0] == pytest.approx(want, rel=1e-12, abs=1e-12)
    assert stretches == []


def test_single_precision_on_request(stretches: list[int]) -> None:
    before = jax.config.jax_enable_x64, jax.numpy.ones(1).dtype
    got, history = trained(dtype="float32", widths=ONE)
    want, _ = trained(backend="numpy", widths=ONE)
    assert (jax.config.jax_enable_x64, jax.numpy.ones(1).dtype) == before
    assert (history.backend, history.fallback) == ("xla", "")
    assert sum(stretches) == 5 * 7
    assert got == pytest.approx(want, rel=1e-3, abs=1e-4)
    numbers = np.array(got[: 2 * 9 : 2])
    assert (numbers == numbers.astype(np.float32)).all()
    assert numbers.tolist() != want[: 2 * 9 : 2]


def test_what_is_asked_for_is_there() -> None:
    for more, message in [
        ({"backend": "numpy", "mesh": 1}, 'mesh needs backend="xla"'),
        ({"backend": "auto", "mesh": 1}, 'mesh needs backend="xla"'),
        ({"backend": "numpy", "dtype": "float32"}, 'dtype="float32" needs backend="xla"'),
        ({"backend": "eager", "dtype": "float32"}, "the engine computes in double precision"),
        ({"dtype": "float16"}, "expected 'float64' or 'float32'"),
        ({"mesh": 0}, "expected a number of devices from 1 to"),
        ({"mesh": 1000}, "expected a number of devices from 1 to"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            trained(**more)


def on_four_devices(count: int) -> None:
    """What runs where JAX has four: the numbers of so many runs on some of them, and without."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[::-1]).reshape(2, 2), ("a", "b"))
    runs: list[dict[str, Any]] = [
        {"mesh": mesh, "batch_size": 3, "clip_norm": 0.5}, {"mesh": 4}, {"mesh": 3, "batch_size": None},
        {"mesh": 4, "loss": branching},
    ]  # fmt: skip
    told = [(trained(**how)[0], trained(**{**how, "backend": "numpy", "mesh": None})[0]) for how in runs[:count]]
    print(json.dumps([len(jax.devices()), told]))


@pytest.mark.parametrize("runs", [1, pytest.param(4, marks=nightly)])
def test_a_batch_is_shared_by_the_devices_of_a_mesh(runs: int) -> None:
    """64 rows in batches of 10, 3 or all: none is dropped, whatever is left over."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    program = f"from tests.training import test_devices; test_devices.on_four_devices({runs})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert not done.returncode, done.stderr[-2000:]
    count, told = json.loads(done.stdout)
    assert count == 4
    assert len(told) == runs
    for got, want in told:
        assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


def test_hinge_and_its_metric(stretches: list[int]) -> None:
    def model(x: Any) -> Any:
        return w[0] * x[0] + w[1] * x[1]

    targets = [1 if y else -1 for y in Y]
    w = [Value(0.1), Value(-0.2)]

    def run(backend: str) -> list[float]:
        w[0].data, w[1].data = 0.1, -0.2
        how: dict[str, Any] = {"seed": 1, "progress": False, "backend": backend}
        history = fit(model, hinge, X, targets, optim.SGD(w, 0.1), 4, 16, **how)
        return [*history.loss, *history.accuracy, w[0].data, w[1].data]

    assert run("xla") == pytest.approx(run("numpy"), rel=1e-12)
    assert sum(stretches) == 16
