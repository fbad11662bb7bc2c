"""Histograms of a network's weights, gradients and activations, one per layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any

from wengert.errors import ArgumentError, DataError, LengthError, counted
from wengert.view.plots.base import BLUE, INK, PALE, VERMILION, axes_for, quiet, stages

__all__ = ["plot_activations", "plot_gradients", "plot_weights"]

ALIKE = 1e-9  # numbers that differ by less than this fraction of the largest are drawn as equal
BINS = range(12, 61)  # the allowed numbers of bars
LAYER = re.compile(r"((^|\.)neurons(\.\d+)?)?((^|\.)[wb])?(\.\d+)*$")  # what follows the layer in a name


def plot_weights(model: Any, axes: Any = None) -> Any:
    """Plot the weights and biases of each layer: histograms below each other with a common axis.

    Zeros are counted on the left and not drawn, because many of them would dwarf the rest; so are numbers that are not
    finite. Layers are found by the names of the parameters, so that any Module works.

    Raises:
        ArgumentError: the model has no parameters.
        MissingExtraError: matplotlib is not installed.
    """
    return _histograms(_numbers(model, "data"), "weights and biases", axes)


def plot_gradients(model: Any, axes: Any = None) -> Any:
    """Plot the gradients of each layer's parameters after the last `backward()`, in the style of `plot_weights`.

    Layers with far smaller gradients than the others learn more slowly: their gradients vanish. Gradients of exactly 0
    usually belong to neurons that no example activates, such as dead ReLUs.

    Raises:
        ArgumentError: the model has no parameters.
        MissingExtraError: matplotlib is not installed.
    """
    layers = _numbers(model, "grad")
    none = not any(number for numbers in layers.values() for number in numbers)
    note = ": all 0" if none else ""
    return _histograms(layers, f"gradients{note}", axes)


def plot_activations(model: Any, X: Sequence[Any], axes: Any = None) -> Any:
    """Plot the outputs of the neurons of each layer for the inputs X, in the style of `plot_weights`.

    Args:
        model: a model of layers, each applied to the outputs of the one before, such as an MLP.
        X: the inputs of each example.
        axes: the axes to draw on; None makes new ones.

    Raises:
        ArgumentError: the model has no layers.
        DataError: X is empty.
        LengthError: an example and the first layer differ in the number of inputs.
        MissingExtraError: matplotlib is not installed.
    """
    if not len(X):
        raise DataError("X is empty: expected at least one example")
    layers: dict[str, list[float]] = {}
    rows = [[float(x) for x in row] for row in X]
    for stage in stages(model):
        for i, row in enumerate(rows):
            try:
                outputs = stage.call(row)
            except LengthError as error:
                raise LengthError(f"{stage.name}, example {i}: {error}") from None
            rows[i] = [float(y.data) for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        kind = getattr(stage.neurons[0], "activation", "") if stage.neurons else ""
        layers[f"{stage.name} {kind}"] = [number for row in rows for number in row]
    return _histograms(layers, f"activations, {counted(len(rows), 'example')}", axes)


def _numbers(model: Any, what: str) -> dict[str, list[float]]:
    """Return the data or the gradients of the parameters of each layer."""
    return {layer: [getattr(p, what) for p in members] for layer, members in by_layer(model).items()}


def by_layer(model: Any) -> dict[str, list[Any]]:
    """Group the parameters of a model by layer.

    Raises:
        ArgumentError: the model has no named parameters.
    """
    layers: dict[str, list[Any]] = {}
    for name, p in model.named_parameters() if hasattr(model, "named_parameters") else ():
        layers.setdefault(LAYER.sub("", name) or type(model).__name__.lower(), []).append(p)
    if not layers:
        raise ArgumentError(f"{model!r:.80} has no parameters: there is nothing to draw")
    return layers


def _histograms(layers: dict[str, list[float]], title: str, axes: Any) -> Any:
    """Draw a histogram for each layer, the first on top, scaled to the same height."""
    axes = axes_for(axes, (6.4, 0.8 + 0.75 * len(layers)))
    shown = {name: [y for y in numbers if isfinite(y) and y] for name, numbers in layers.items()}
    drawn = [number for numbers in shown.values() for number in numbers]
    low, high = (min(drawn), max(drawn)) if drawn else (-1.0, 1.0)
    if not high - low > ALIKE * max(abs(low), abs(high)):  # all are equal
        low, high = low - abs(low) / 2, high + abs(high) / 2
    room = high / 40 - low / 40
    for row, numbers in enumerate(shown.values()):
        edges, counts = _counted(numbers, room)
        tallest = max(counts) or 1
        floor = -float(row)
        heights = [floor + 0.8 * count / tallest for count in counts]
        axes.axhline(floor, color=PALE, linewidth=0.8, zorder=0)
        axes.stairs(heights, edges, baseline=floor, fill=True, color=BLUE, alpha=0.55, linewidth=0)
        axes.stairs(heights, edges, baseline=floor, color=BLUE, linewidth=1.0)
    axes.axvline(0.0, color=PALE, linewidth=0.8, zorder=0)
    axes.set(ylim=(0.85 - len(layers), 1.0), xlim=(low - room, high + room))
    labels = [_label(*layer) for layer in layers.items()]
    axes.set_yticks([0.35 - row for row in range(len(layers))], labels, fontsize=8)
    for label, numbers in zip(axes.get_yticklabels(), layers.values(), strict=True):
        label.set_color(INK if all(map(isfinite, numbers)) else VERMILION)
    axes.locator_params(axis="x", nbins=5)
    quiet(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return axes


def _counted(numbers: list[float], least: float) -> tuple[list[float], list[int]]:
    """Return the edges of a histogram's bars and their counts; equal numbers have one bar."""
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    bins = min(max(round(2 * len(numbers) ** (1 / 3)), BINS[0]), BINS[-1])  # by Rice's rule
    width = high / bins - low / bins
    if not width > ALIKE * max(abs(low), abs(high)):
        return [low - least / 2, low + least / 2], [len(numbers)]
    counts = [0] * bins
    for number in numbers:
        counts[min(int((number - low) / width), bins - 1)] += 1
    return [low + width * i for i in range(bins + 1)], counts


def _label(name: str, numbers: list[float]) -> str:
    """Describe a layer: its name, mean and standard deviation, and the numbers that are not drawn."""
    finite = [number for number in numbers if isfinite(number)]
    lines = [name.strip()]
    if finite:
        size = max(map(abs, finite)) or 1.0  # the squares of scaled numbers neither overflow nor underflow
        mean = sum(number / size for number in finite) / len(finite)
        deviation = sqrt(sum((number / size - mean) ** 2 for number in finite) / len(finite))
        lines.append(f"mean {mean * size:.2g}, sd {deviation * size:.2g}")
    zeros = finite.count(0.0)
    if zeros:
        lines.append(f"{100 * zeros / len(numbers):.3g} % are 0")
    if len(finite) < len(numbers):
        lines.append(f"{len(numbers) - len(finite):,} not finite")
    return "\n".join(lines)
