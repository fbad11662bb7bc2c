"""The demo: a network of scalar Values learns a data set, and leaves pictures and weights in a folder."""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

from wengert import _loader, checkpoint, data, losses
from wengert.compiler.backends import preferred
from wengert.errors import WengertError
from wengert.nn import MLP
from wengert.optim import Adam
from wengert.training.fit import History, Loss, fit, predict
from wengert.training.trainers import Engine, choose
from wengert.view import plots, text
from wengert.view.graph.draw import draw

__all__ = ["SETTINGS", "DemoError", "Setting", "run", "source"]

WEIGHTS, GRAPH = "weights.safetensors", "graph.svg"
SHOWN = 200  # examples of which gradients and activations are drawn


class DemoError(WengertError):
    """What the user of the demo can put right: a folder, a number."""


@dataclass(frozen=True)
class Setting:
    """How one data set is learnt."""

    about: str
    load: Callable[[], tuple[list[list[float]], list[int]]]
    layers: tuple[int, ...]
    activation: str
    loss: Loss
    epochs: int
    batch_size: int | None
    lr: float
    weights: str = "scaled"
    held_out: float = 0.0  # the share of the examples that is tested on


SETTINGS = {
    "digits": Setting(
        "1,797 real handwritten digits of 8 x 8 pixels", data.digits, (32, 10), "tanh",
        losses.cross_entropy, epochs=15, batch_size=16, lr=0.01, held_out=0.2,
    ),
    "moons": Setting(
        "two half circles that reach into each other", lambda: data.moons(100, noise=0.1, seed=0, labels=(-1, 1)),
        (16, 16, 1), "relu", losses.hinge, epochs=60, batch_size=20, lr=0.05, weights="uniform",
    ),
    "spiral": Setting(
        "three arms that wind out of the middle", lambda: data.spiral(100, classes=3, noise=0.1, seed=0),
        (16, 16, 3), "tanh", losses.cross_entropy, epochs=100, batch_size=30, lr=0.02,
    ),
    "xor": Setting(
        "the four corners of a square", data.xor, (4, 4, 1), "tanh",
        losses.binary_cross_entropy_with_logits, epochs=150, batch_size=None, lr=0.1,
    ),
}  # fmt: skip


@dataclass
class _Outcome:
    """What there is to show after training."""

    model: MLP
    history: History
    X: list[list[float]]  # what is shown: the examples held out, or all
    Y: list[int]
    classes: list[int]  # what the model says of them
    classify: Callable[[Sequence[Sequence[float]]], list[int]]


def run(
    name: str,
    folder: str,
    seed: int,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    quiet: bool = False,
) -> int:
    """Learn a data set and write what came of it; returns the exit status: 0, or 130 after Ctrl-C.

    Args:
        name: one of SETTINGS.
        folder: where to write; it is made if it is not there.
        seed: decides the first weights and the order of the examples, and so every number.
        epochs: how many times to go through the examples, if not as the setting has it.
        batch_size: how many examples make one step, if not as the setting has it.
        lr: the learning rate at the start, if not as the setting has it.
        quiet: show no progress.

    Raises:
        DemoError: the folder cannot be written to; this is found out before the training.
        CheckpointError: the weights cannot be written, though the folder can.
    """
    setting = SETTINGS[name]
    epochs = setting.epochs if epochs is None else epochs
    batch_size = setting.batch_size if batch_size is None else batch_size
    _make_writable(folder)
    X, X_test, Y, Y_test = _split(setting)
    aside = f", {len(X_test):,} held out" if setting.held_out else ""
    model = _network(setting, X, seed)
    print(f"{name}: {setting.about}; {len(X):,} to learn from{aside}")
    print(f"{model}, every one of them a Value")
    engine = choose("auto", model, setting.loss, None, None, list(zip(X, Y, strict=True)), [])
    seconds = min(epochs, 10**9) * _seconds_per_epoch(model, engine, batch_size or len(X))
    print(f"the engine runs {_loader.status()}")
    print(_what_it_became(name, engine))
    print(f"training takes about {max(round(seconds), 1):,} s; Ctrl-C ends it early", flush=True)  # now, in a pipe too
    steps = epochs * -(-len(X) // (batch_size or len(X)))
    rate = setting.lr if lr is None else lr
    optimizer = Adam(model, lr=lambda step: rate * (1.0 - 0.95 * min(step / steps, 1.0)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = fit(model, setting.loss, X, Y, optimizer, epochs, batch_size, seed=seed, progress=not quiet)
    for warning in caught:
        print(f"wengert demo: {warning.message}", file=sys.stderr)
    checkpoint.save(model, os.path.join(folder, WEIGHTS))  # at once: Ctrl-C during what follows costs pictures only
    model.zero_grad()
    engine.gradient(list(range(min(len(X), SHOWN))))  # which is drawn
    classify = _classifier(model, sorted(set(Y)))
    outcome = _Outcome(model, history, X_test, Y_test, classify(X_test), classify)
    _report(outcome, "test accuracy" if setting.held_out else "accuracy")
    _write(name, folder, outcome)
    return 130 if history.interrupted else 0


def source(name: str) -> str:
    """The array program that computes a batch of a data set's losses and their gradients, as runnable NumPy.

    Raises:
        MissingExtraError: NumPy is not installed.
    """
    setting = SETTINGS[name]
    X, _, Y, _ = _split(setting)
    examples = list(zip(X, Y, strict=True))
    return choose(preferred().name, _network(setting, X, 0), setting.loss, None, None, examples, []).source()


def _make_writable(folder: str) -> None:
    """Make sure that files can be written to the folder, before any work is put into them."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # under a name that nobody has
            pass
    except (OSError, ValueError) as error:  # a ValueError: no folder can have such a name
        raise DemoError(f"cannot write to the folder {folder}: {getattr(error, 'strerror', None) or error}") from error


def _split(setting: Setting) -> tuple[list[list[float]], list[list[float]], list[int], list[int]]:
    """Inputs to learn from and to test on, then their classes; without examples held out both are all."""
    X, Y = setting.load()
    if not setting.held_out:
        return X, X, Y, Y
    return data.train_test_split(X, Y, test=setting.held_out, seed=0)


def _network(setting: Setting, X: list[list[float]], seed: int) -> MLP:
    """The network before it has learnt."""
    first = random.Random(seed)
    return MLP(len(X[0]), setting.layers, activation=setting.activation, weights=setting.weights, rng=first)


def _what_it_became(name: str, engine: Engine) -> str:
    """A line on the array program that computes a batch, or on why there is none."""
    for numbers in re.findall(r"[\d,]+ scalar operations became [\d,]+ array operations", engine.report()):
        return f"{numbers}, which compute a whole batch: wengert demo {name} --program shows them"
    return f"each example is computed by the engine: {engine.fallback or 'so little needs no arrays'}"


def _seconds_per_epoch(model: MLP, engine: Engine, size: int) -> float:
    """How long forward and backward take, measured on a batch or two; changes nothing that the training sees."""
    few = list(range(min(size, len(engine.examples) if engine.name != "eager" else 10)))
    engine.gradient(few)  # what is done only once is done
    started = perf_counter()
    engine.gradient(few)
    taken = perf_counter() - started
    model.zero_grad()
    return taken * len(engine.examples) / len(few)


def _classifier(model: MLP, classes: list[int]) -> Callable[[Sequence[Sequence[float]]], list[int]]:
    """The class of each of a list of inputs: by the greatest logit, or by the sign of the one score."""

    def classify(X: Sequence[Sequence[float]]) -> list[int]:
        scores = predict(model, X)
        if model.nout == 1:
            return [classes[score > 0] for score in scores]
        return [classes[max(range(len(row)), key=row.__getitem__)] for row in scores]

    return classify


def _report(outcome: _Outcome, what: str) -> None:
    """Say how well the network does, and how long it took."""
    right = sum(y == c for y, c in zip(outcome.Y, outcome.classes, strict=True))
    if outcome.history.interrupted:
        print(f"interrupted after {len(outcome.history)} epochs: what follows is of the network as it was then")
    share = f"{100 * right / len(outcome.Y):.1f} % ({right} of {len(outcome.Y)})"
    print(f"{what} {share}, trained in {outcome.history.seconds:.1f} s")


def _write(name: str, folder: str, outcome: _Outcome) -> None:
    """Write the pictures, and say what was written, the weights included."""
    written = [WEIGHTS]
    pictures = _digit_pictures(outcome) if name == "digits" else _plane_pictures(outcome)
    pictures["loss"] = (
        lambda figure: plots.plot_history(outcome.history, figure.subplots()),
        lambda: text.curve(outcome.history.loss),
        (7.0, 4.2),
    )
    pictures |= _model_pictures(outcome)
    figure = _figure_maker()
    for picture, (plot, write, size) in pictures.items():
        if figure is None and write is None:
            continue
        file = f"{picture}.txt" if figure is None else f"{picture}.png"
        path = os.path.join(folder, file)
        try:
            if figure is None and write is not None:
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(write() + "\n")
            else:
                canvas = figure(figsize=size, layout="tight", facecolor="white")
                plot(canvas)
                canvas.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.15)
        except OSError as error:
            raise DemoError(f"cannot write {path}: {error.strerror or error}") from error
        written.append(file)
    written.append(_write_graph(name, folder, outcome))
    print(f"written to {os.path.join(folder, '')}: {', '.join(written)}")
    setting = SETTINGS[name]
    model = f"MLP({outcome.model.nin}, {list(setting.layers)}, activation={setting.activation!r})"
    print(f"the weights again: model = {model}; checkpoint.load(model, {os.path.join(folder, WEIGHTS)!r})")
    if figure is None:
        print('pictures are text without matplotlib; for plots: pip install "wengert[plot]"')


def _write_graph(name: str, folder: str, outcome: _Outcome) -> str:
    """Write the graph of the loss of one example, with its gradients; returns the name of the file."""
    outcome.model.zero_grad()
    loss = SETTINGS[name].loss(outcome.model(outcome.X[0]), outcome.Y[0])
    loss.backward()
    path = os.path.join(folder, GRAPH)
    try:
        draw(loss, theme="light").save(path)
    except OSError as error:
        raise DemoError(f"cannot write {path}: {error.strerror or error}") from error
    return GRAPH


_Picture = tuple[Callable[[Any], Any], Callable[[], str] | None, tuple[float, float]]  # as a plot, as text, inches


def _digit_pictures(outcome: _Outcome) -> dict[str, _Picture]:
    table = [[0] * 10 for _ in range(10)]
    for truth, prediction in zip(outcome.Y, outcome.classes, strict=True):
        table[truth][prediction] += 1
    page = (outcome.X, outcome.Y, outcome.classes)
    height = 0.62 * 1.3 * -(-len(outcome.X) // 20) + 0.3
    return {
        "digits": (
            lambda figure: plots.plot_digits(*page, figure.subplots()),
            lambda: text.digits(*page),
            (12.4, height),
        ),
        "confusion": (
            lambda figure: plots.plot_confusion(table, figure.subplots()),
            lambda: text.confusion(table),
            (5.6, 5.4),
        ),
    }


def _plane_pictures(outcome: _Outcome) -> dict[str, _Picture]:
    plane = (outcome.classify, outcome.X, outcome.Y)
    return {
        "boundary": (
            lambda figure: plots.plot_decision_boundary(*plane, figure.subplots()),
            lambda: text.regions(*plane),
            (6.4, 4.8),
        )
    }


def _model_pictures(outcome: _Outcome) -> dict[str, _Picture]:
    model = outcome.model

    def layers(figure: Any) -> None:
        left, middle, right = figure.subplots(1, 3)
        plots.plot_weights(model, left)
        plots.plot_activations(model, outcome.X[:SHOWN], middle)
        plots.plot_gradients(model, right)

    pictures: dict[str, _Picture] = {"layers": (layers, None, (14.0, 1.2 + 0.9 * len(model.layers)))}
    if all(isfinite(p.data) for p in model.parameters()):
        pictures["network"] = (lambda figure: plots.plot_network(model, axes=figure.subplots()), None, (7.0, 6.6))
    return pictures


def _figure_maker() -> Any:
    """matplotlib's Figure, which draws without a screen; None if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    return Figure
