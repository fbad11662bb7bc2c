"""`TrainingAnimation` plays a training run: its decision boundary, its loss, and the gradients of each layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from math import inf, isfinite, log10, nan, sqrt
from os import PathLike
from typing import TYPE_CHECKING, Any

from wengert.compiler import compile
from wengert.errors import ArgumentError, counted
from wengert.graph import Graph
from wengert.view.frames import Chart, film
from wengert.view.naming import number
from wengert.view.player import Page
from wengert.view.plots.base import CLASSES
from wengert.view.plots.histograms import by_layer
from wengert.view.plots.training import MARGIN, Point, class_of, paired
from wengert.view.text import bounds

if TYPE_CHECKING:
    from wengert.view.plots.training import Curves

__all__ = ["TrainingAnimation"]

MOST = 120  # the largest number of epochs that are kept
CELLS = 96  # the cells of the plane in each direction
WASH = 80  # the opacity of a region, of 255
KINDS = tuple(f"c{k}" for k in (1, 0, *range(2, len(CLASSES))))  # the colours of lines
LEAST = 1e-12  # smaller gradients are drawn as large as this
CURVES = {"loss": "loss", "val_loss": "validation loss", "accuracy": "accuracy", "val_accuracy": "validation accuracy"}


class TrainingAnimation:
    """Records a training run in the plane, and plays it as one HTML page.

    Pass it to `fit` as its callback. The page shows how the decision boundary forms, and beside it the curves of the
    `History` and the gradients of each layer; it can be played, paused and dragged, opens from disk, and makes no
    request. It keeps the parameters before training and after each epoch, of long runs after every second, fourth, ...
    one; boundary and gradients are computed from them when the page is made, and the model is left as it is. The
    gradients are those of the mean loss over all points, without `regularization`.

    Args:
        model: a Module that is called with one point [x, y].
        loss: loss(prediction, target), as for `fit`.
        X: the points.
        Y: their classes; how they are predicted, see `plot_decision_boundary`.
        cut: a threshold for a single output, above which the class is the higher one: 0.0 for logits with 0 and 1.

    Raises:
        ArgumentError: the model has no named parameters.
        DataError: there are no points.
        LengthError: X and Y differ in length.

    >>> import random
    >>> from wengert import data, fit, losses, nn, optim
    >>> X, Y = data.moons(40, seed=1, labels=(-1, 1))
    >>> model = nn.MLP(2, [4, 1], rng=random.Random(1))
    >>> animation = TrainingAnimation(model, losses.hinge, X, Y)
    >>> optimizer = optim.Adam(model, lr=0.05)
    >>> history = fit(model, losses.hinge, X, Y, optimizer, epochs=5, callback=animation, progress=False)
    >>> sorted(animation.parameters)
    [0, 1, 2, 3, 4, 5]
    """

    def __init__(
        self, model: Any, loss: Callable[..., Any], X: Sequence[Point], Y: Sequence[int], *, cut: float | None = None
    ) -> None:
        paired(X, Y)
        self._layers = by_layer(model)
        self._model, self._loss, self._cut = model, loss, cut
        self._X, self._Y, self._order = [[float(x) for x in row] for row in X], list(Y), sorted(set(Y))
        self._history: Curves | None = None
        self._first, self._last, self._stride = 0, 0, 1
        self.parameters: dict[int, list[float]] = {0: self._now()}
        """The data of the parameters after each epoch that is kept."""

    def _now(self) -> list[float]:
        return [p.data for p in self._model.parameters()]

    def __call__(self, history: Any) -> None:
        """Keep the parameters after an epoch, as the callback of `fit`.

        Raises:
            ArgumentError: it has recorded another run.
        """
        if self._history is None:
            self._first = self._last = len(history) - 1  # more than 0 if the run continues an earlier one
            self.parameters = {self._first: self.parameters[0]}
        elif len(history) < self._last or (len(history) == self._last and history is not self._history):
            raise ArgumentError("this animation has recorded another run: make a new one")
        if (self._last - self._first) % self._stride:
            self.parameters.pop(self._last)  # it was kept as the last
        self._history, self._last = history, len(history)
        self.parameters[self._last] = self._now()
        if len(self.parameters) > MOST:
            self._stride *= 2
            kept = self.parameters.items()
            first, last = self._first, self._last
            self.parameters = {k: p for k, p in kept if (k - first) % self._stride == 0 or k == last}

    def page(self) -> Page:
        """Make one HTML file that plays the run, as a string that a notebook displays.

        Raises:
            ArgumentError: nothing has been recorded: it was not passed to `fit`.
            MissingExtraError: NumPy is not installed.
        """
        history = self._history
        if history is None:
            raise ArgumentError("there is no run to play yet: pass it to fit, callback=animation")
        epochs = sorted(self.parameters)
        regions, sizes = self._computed(epochs)
        end = epochs[-1]
        plane, losses, slopes = self._plane(), _losses(history, end), _slopes(sizes, epochs)
        curves = {curve: name for curve, name in CURVES.items() if getattr(history, curve)}
        frames = []
        for i, epoch in enumerate(epochs):
            told = [f"{name} {history.written(curve, epoch - 1)}" for curve, name in curves.items() if i]
            frames.append(
                {
                    "count": f"epoch {epoch} of {end}",
                    "cells": regions[i],
                    "said": ", ".join(told) or ("Before this run" if epoch else "Before training"),
                    "marks": {
                        "now": {"d": losses.path((epoch, y) for y in losses.up if epoch)},
                        "here": {"d": slopes.path((epoch, y) for y in slopes.up)},
                    }
                    | {f"size{k}": {"text": f"{name} {row[i]:.2g}"} for k, (name, row) in enumerate(sizes.items())},
                }
            )
        shades = [[*bytes.fromhex(colour[1:]), WASH] for colour in CLASSES] + [[128, 128, 128, WASH]]
        parameters = sum(map(len, self._layers.values()))
        about = f"{counted(len(self._X), 'point')}, {counted(parameters, 'parameter')}"
        panels = [chart.svg() for chart in (plane, losses, slopes)]
        return film("A training run", about, panels, frames, shades=shades)

    def _computed(self, epochs: list[int]) -> tuple[list[str], dict[str, list[float]]]:
        """Return the classes of the cells, and the root mean square of each layer's gradients, at these epochs."""
        model, loss = self._model, self._loss
        outputs, losses = compile(lambda x: model(x)), compile(lambda x, y: loss(model(x), y))
        left, right, low, high = bounds(self._X, MARGIN)
        steps = [(i + 0.5) / CELLS for i in range(CELLS)]
        cells = [[left + (right - left) * x, high - (high - low) * y] for y in steps for x in steps]
        parameters, before = model.parameters(), self._now()
        regions, sizes = [], {name: list[float]() for name in self._layers}
        try:
            for epoch in epochs:
                for p, x in zip(parameters, self.parameters[epoch], strict=True):
                    p.data = x
                classes = [class_of(row, self._order, self._cut) for row in outputs.map(cells).tolist()]
                regions.append("".join(chr(65 + _index(self._order, c)) for c in classes))
                graph = Graph(losses.mean(self._X, self._Y))
                pulled = graph.pull_back({graph.outputs[0]: 1.0})
                gradients = {id(value): x for value, x in zip(graph.values, pulled, strict=True)}
                for name, members in self._layers.items():
                    squares = [gradients.get(id(p), 0.0) ** 2 for p in members]
                    sizes[name].append(sqrt(sum(squares) / len(squares)))
        finally:
            for p, x in zip(parameters, before, strict=True):
                p.data = x
        return regions, sizes

    def _plane(self) -> Chart:
        left, right, low, high = bounds(self._X, MARGIN)
        chart = Chart("Predicted class, and the points", (left, right), (low, high), 394, cells=CELLS)
        for point, c in zip(self._X, self._Y, strict=True):
            chart.point((point[0], point[1]), f"c{_index(self._order, c)}")
        return chart

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
            ArgumentError: nothing has been recorded, or the path is not a path.
            MissingExtraError: NumPy is not installed.
        """
        self.page().save(path)

    def _repr_html_(self) -> str | None:
        return self.page()._repr_html_() if self._history is not None else None


def _index(order: list[int], label: int) -> int:
    """Return the index of a class's colour; that of no class is the last one."""
    return order.index(label) % len(CLASSES) if label in order else len(CLASSES)


def _losses(history: Curves, end: int) -> Chart:
    curves = {"training": history.loss, "validation": history.val_loss}
    names = [name for name, curve in curves.items() if curve]
    finite = [x for name in names for x in curves[name] if isfinite(x)]
    low, top = min([0.0, *finite]), max([0.0, *finite])
    chart = Chart("Loss in each epoch", (1, max(end, 2)), (low, top if top > low else low + 1), 192, len(names))
    for k, name in enumerate(names):
        chart.line(enumerate(curves[name], 1), KINDS[k])
    chart.legend(names, KINDS, "loss")
    chart.line([], "cursor ink", "now")
    return chart


def _slopes(sizes: dict[str, list[float]], epochs: list[int]) -> Chart:
    drawn = [log10(max(x, LEAST)) for row in sizes.values() for x in row if x < inf] or [0.0]
    low, high = min(drawn), max(drawn)
    low, high = (low, high) if high - low > 0.1 else (low - 1, high + 1)
    ticks = {y: number(float(f"{10**y:.1g}")) for y in (low, high)}
    across = 0, max(epochs[-1], 1)
    chart = Chart("Gradients of each layer, root mean square", across, (low, high), 192, len(sizes), ticks)
    for row, kind in zip(sizes.values(), cycle(KINDS), strict=False):
        logs = [log10(max(x, LEAST)) if x < inf else nan for x in row]
        chart.line(zip(epochs, logs, strict=True), kind)
    chart.legend(sizes, cycle(KINDS), "size")
    chart.line([], "cursor ink", "here")
    return chart
