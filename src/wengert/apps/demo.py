"""The demo trains a network of scalar Values on a data set, and writes pictures and weights to a folder."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

from wengert import _loader, checkpoint, data, losses
from wengert._files import to_write
from wengert.apps.terminal import blocks, can_show, curve, plane, say
from wengert.compiler.backends import default_backend
from wengert.errors import MissingExtraError, WengertError, counted, require
from wengert.modes import no_grad
from wengert.nn import MLP
from wengert.optim import Adam
from wengert.training import History, Loss, Trainer, choose, fit, predict
from wengert.view import plots, text
from wengert.view.graph import draw

__all__ = ["SETTINGS", "DemoError", "Setting", "run", "source"]

WEIGHTS, GRAPH = "weights.safetensors", "graph.svg"
WIDE = 60  # the number of columns of the plane in a terminal
SHOWN = 200  # the number of examples whose gradients and activations are drawn


class DemoError(WengertError):
    """A mistake in the user's arguments, such as a folder that cannot be written to."""


@dataclass(frozen=True)
class Setting:
    """A data set with its network and hyperparameters."""

    about: str
    load: Callable[[], tuple[list[list[float]], list[int]]]
    layers: tuple[int, ...]
    activation: str
    loss: Loss
    epochs: int
    batch_size: int | None
    lr: float
    weights: str = "scaled"
    held_out: float = 0.0  # the fraction of examples for testing

    def split(self) -> tuple[list[list[float]], list[list[float]], list[int], list[int]]:
        """Return inputs for training and testing, then their classes; both are all examples if none are held out."""
        X, Y = self.load()
        return data.train_test_split(X, Y, test=self.held_out, seed=0) if self.held_out else (X, X, Y, Y)

    def network(self, X: list[list[float]], seed: int) -> MLP:
        """Make the untrained network."""
        first = random.Random(seed)
        return MLP(len(X[0]), self.layers, activation=self.activation, weights=self.weights, rng=first)


SETTINGS = {
    "digits": Setting(
        "1,797 real handwritten digits of 8 x 8 pixels", data.digits, (32, 10), "tanh",
        losses.cross_entropy, epochs=15, batch_size=16, lr=0.01, held_out=0.2,
    ),
    "moons": Setting(
        "two interleaved half circles", lambda: data.moons(100, noise=0.1, seed=0, labels=(-1, 1)),
        (16, 16, 1), "relu", losses.hinge, epochs=60, batch_size=20, lr=0.05, weights="uniform",
    ),
    "spiral": Setting(
        "three spiral arms", lambda: data.spiral(100, classes=3, noise=0.1, seed=0),
        (16, 16, 3), "tanh", losses.cross_entropy, epochs=100, batch_size=30, lr=0.02,
    ),
    "xor": Setting(
        "the four corners of a square", data.xor, (4, 4, 1), "tanh",
        losses.binary_cross_entropy_with_logits, epochs=150, batch_size=None, lr=0.1,
    ),
}  # fmt: skip


def run(
    name: str,
    folder: str,
    seed: int,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    quiet: bool = False,
) -> int:
    """Train on a data set and write the results; return the exit status: 0, or 130 after Ctrl-C.

    Args:
        name: one of SETTINGS.
        folder: the folder to write to, which is created if it is missing.
        seed: decides the initial weights and the orders of the examples.
        epochs: the number of passes through the examples; by default the setting's.
        batch_size: the number of examples in a step; by default the setting's.
        lr: the initial learning rate; by default the setting's.
        quiet: True shows no progress.

    Raises:
        DemoError: the folder cannot be written to, which is checked before the training.
        CheckpointError: the weights cannot be written, although the folder can.
    """
    setting = SETTINGS[name]
    epochs = setting.epochs if epochs is None else epochs
    batch_size = setting.batch_size if batch_size is None else batch_size
    with _writing(f"to the folder {folder}"):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # checks that files can be written
            pass
    X, X_test, Y, Y_test = setting.split()
    aside = f", {len(X_test):,} for testing" if setting.held_out else ""
    model = setting.network(X, seed)
    say(f"{name}: {setting.about}; {len(X):,} for training{aside}")
    say(f"{model}, each of them a Value")
    examples = list(zip(X, Y, strict=True))
    trainer = choose("auto", model, setting.loss, None, None, examples, [], epochs=epochs, size=batch_size)
    seconds = min(epochs, 10**9) * _seconds_per_epoch(model, trainer, batch_size or len(X))
    say(f"the engine runs {_loader.status()}")
    if trainer.compiled is not None:
        say(f"{trainer.compiled.became}, which compute a whole batch: wengert demo {name} --program shows them")
    else:
        say(f"each example is computed by the engine: {trainer.fallback or 'the data set is too small to compile'}")
    say(f"training takes about {max(round(seconds), 1):,} s; Ctrl-C ends it early")
    steps = epochs * -(-len(X) // (batch_size or len(X)))
    rate = setting.lr if lr is None else lr
    optimizer = Adam(model, lr=lambda step: rate * (1.0 - 0.95 * min(step / steps, 1.0)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = fit(
            model,
            setting.loss,
            X,
            Y,
            optimizer,
            epochs,
            batch_size,
            validation=(X_test, Y_test) if setting.held_out else None,
            seed=seed,
            progress=not quiet,
        )
    for warning in caught:
        print(f"wengert demo: {warning.message}", file=sys.stderr)
    weights = os.path.join(folder, WEIGHTS)
    checkpoint.save(model, weights)  # before the pictures, in case of Ctrl-C
    classes = sorted(set(Y))

    def classify(X: Sequence[Sequence[float]]) -> list[int]:
        """Return the class of each input: by the greatest logit, or by the sign of a single score."""
        if model.nout == 1:
            return [classes[score > 0] for score in predict(model, X)]
        return [classes[max(range(len(row)), key=row.__getitem__)] for row in predict(model, X)]

    told = classify(X_test)
    right = sum(y == c for y, c in zip(Y_test, told, strict=True))
    if history.interrupted:
        say(f"interrupted after {counted(len(history), 'epoch')}: the results are those of the network at that time")
    share = f"{100 * right / len(Y_test):.1f} % ({right} of {len(Y_test)})"
    kind = "test accuracy" if setting.held_out else "accuracy"
    say(f"{kind} {share}, trained in {history.seconds:.1f} s", {r"[\d.]+ %": "title"})
    if can_show() and len(history):
        print(f"\nloss  {curve(history.loss)}  {history.loss[0]:.3g} to {history.loss[-1]:.3g}\n")
        seen = blocks(X_test, Y_test, told) if name == "digits" else plane(text.regions(classify, X, Y, WIDE))
        print(f"{seen}\n", flush=True)
    try:  # a figure without pyplot needs no screen
        figure: Any = require("matplotlib.figure", "plot").Figure
    except MissingExtraError:
        figure = None
    written = [WEIGHTS]
    model.zero_grad()
    trainer.gradient(range(min(len(X), SHOWN)))  # for the picture of gradients
    for picture in _pictures(name, model, history, X_test, Y_test, told, classify):
        written += _write(picture, folder, figure)
    with no_grad():
        lost = [setting.loss(model(x), y).data for x, y in zip(X_test[:SHOWN], Y_test, strict=False)]
    model.zero_grad()
    hardest = max(range(len(lost)), key=lost.__getitem__)
    loss = setting.loss(model(X_test[hardest]), Y_test[hardest])
    loss.backward()
    path = os.path.join(folder, GRAPH)
    with _writing(path):
        draw(loss, theme="light").save(path)
    about = {"layers": "weights, activations and gradients of each layer", "network": "the weights as lines"}
    about |= {"boundary": "the predictions for each point of the plane", "digits": "the predictions for test digits"}
    about |= {"confusion": "how often each digit is taken for another", "loss": "the loss by epoch"}
    about |= {"weights": "the trained parameters"}
    say(f"written to {os.path.join(folder, '')}:")
    for file in sorted(written, key=lambda file: file == WEIGHTS):
        say(f"    {file:<20} {about[file.partition('.')[0]]}")
    drawn = f"the example with the largest loss, {loss.data:.4g}, of {len(lost)}"
    if not any(lost):
        drawn = f"one of {len(lost)} examples; all losses and gradients are 0"
    say(f"    {GRAPH:<20} {drawn}")
    say("to load the weights:")
    print(f"    model = MLP({model.nin}, {list(setting.layers)}, activation={setting.activation!r})")
    print(f"    checkpoint.load(model, {weights!r})")
    if figure is None:
        say("pictures are text without matplotlib; for plots: pip install matplotlib")
    say(f"look at {os.path.join(folder, written[1])} first", {r"^look at \S+": "title"})
    return 130 if history.interrupted else 0


def source(name: str) -> str:
    """Return the array program that computes a batch of a data set's losses and their gradients, as NumPy source.

    Raises:
        MissingExtraError: NumPy is not installed.
    """
    setting = SETTINGS[name]
    X, _, Y, _ = setting.split()
    trainer = choose(
        default_backend().name, setting.network(X, 0), setting.loss, None, None, list(zip(X, Y, strict=True)), []
    )
    assert trainer.compiled is not None  # else `choose` raises
    return trainer.compiled.source()


def _seconds_per_epoch(model: MLP, trainer: Trainer, size: int) -> float:
    """Measure the time of forward and backward on a batch or two, without changing the model."""
    count = len(trainer.task.examples)
    few = range(min(size, count if trainer.compiled is not None else 10))
    trainer.gradient(few)  # warm up
    started = perf_counter()
    trainer.gradient(few)
    taken = perf_counter() - started
    model.zero_grad()
    return taken * count / len(few)


@contextmanager
def _writing(what: str) -> Iterator[None]:
    """Convert errors in the block to a DemoError that says what cannot be written."""
    try:
        yield
    except (OSError, ValueError) as error:  # a ValueError: an invalid file name
        raise DemoError(f"cannot write {what}: {getattr(error, 'strerror', None) or error}") from error


class _Picture(NamedTuple):
    """A picture, with functions that plot it and, for some, write it as text."""

    name: str
    plot: Callable[..., Any]  # called with `of` and the axes
    text: Callable[..., str] | None  # called with `of`
    of: tuple[Any, ...]
    size: tuple[float, float]  # of the figure, in inches
    panels: int = 1  # side by side


def _pictures(
    name: str,
    model: MLP,
    history: History,
    X: list[list[float]],
    Y: list[int],
    told: list[int],
    classify: Callable[[Sequence[Sequence[float]]], list[int]],
) -> Iterator[_Picture]:
    """Yield the pictures of a trained network: its predictions, its losses and the network itself."""
    if name == "digits":
        table = [[0] * 10 for _ in range(10)]
        for truth, prediction in zip(Y, told, strict=True):
            table[truth][prediction] += 1
        height = 0.62 * 1.3 * -(-len(X) // 20) + 0.3
        yield _Picture("digits", plots.plot_digits, text.digits, (X, Y, told), (12.4, height))
        yield _Picture("confusion", plots.plot_confusion, text.confusion, (table,), (5.6, 5.4))
    else:
        yield _Picture("boundary", plots.plot_decision_boundary, text.regions, (classify, X, Y), plots.plane_size(X))
    yield _Picture("loss", plots.plot_history, lambda history: text.curve(history.loss), (history,), (7.0, 4.2))

    def layers(model: MLP, axes: Sequence[Any]) -> None:
        plots.plot_weights(model, axes[0])
        plots.plot_activations(model, X[:SHOWN], axes[1])
        plots.plot_gradients(model, axes[2])

    yield _Picture("layers", layers, None, (model,), (14.0, 1.2 + 0.9 * len(model.layers)), 3)
    if all(isfinite(p.data) for p in model.parameters()):
        yield _Picture("network", lambda model, axes: plots.plot_network(model, axes=axes), None, (model,), (7.0, 6.6))


def _write(picture: _Picture, folder: str, figure: Any) -> list[str]:
    """Plot a picture, or write it as text without a `figure`; return a list with the file, or an empty one."""
    path = os.path.join(folder, f"{picture.name}.txt" if figure is None else f"{picture.name}.png")
    if figure is not None:
        canvas = figure(figsize=picture.size, layout="tight", facecolor="white")
        picture.plot(*picture.of, canvas.subplots(1, picture.panels))
        with _writing(path):
            canvas.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.15)
    elif picture.text is not None:
        with _writing(path), to_write(path, "w", encoding="utf-8") as stream:
            stream.write(picture.text(*picture.of) + "\n")
    else:
        return []
    return [os.path.basename(path)]
