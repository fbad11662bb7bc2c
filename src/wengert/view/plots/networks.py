"""What a network is made of: as circles and lines, what each neuron reads, how strongly, with which sign; and how its
weights, its gradients and its activations are spread, a histogram a layer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite, sqrt
from typing import Any

from wengert.errors import ArgumentError, DataError, LengthError, require
from wengert.view.plots.base import BLUE, INK, PALE, VERMILION, axes_for, quiet, stages

__all__ = ["plot_activations", "plot_gradients", "plot_network", "plot_weights"]

RADIUS = 0.3  # of a circle; two that stand one above the other are 1 apart
WIDEST = (4.0, 2.5)  # points, of the line of the greatest weight; where there are many lines
ALIKE = 1e-9  # of the largest: numbers that differ by less are drawn as one
BINS = range(12, 61)  # how many bars a histogram may have
LAYER = re.compile(r"((^|\.)neurons(\.\d+)?)?((^|\.)[wb])?(\.\d+)*$")  # what stands behind the layer in a name


def plot_network(model: Any, most: int = 12, axes: Any = None) -> Any:
    """A network of neurons as circles, one column a layer, the inputs at the left.

    A line is a weight: as wide as it is large, blue if it is positive, vermilion if it is negative. A circle is filled
    likewise with the bias of its neuron. Of a large layer only the first and the last neurons are drawn; between them
    stands how many more there are.

    Args:
        model: an MLP, a Layer or a Neuron; or a model whose list `layers` holds such layers.
        most: how many circles a column has at most, 2 or more.
        axes: where to draw; None makes new ones.

    Raises:
        ArgumentError: the model is not made of layers of neurons, or most is below 2.
        DataError: a weight or a bias is not finite; the message names it.
        MissingExtraError: matplotlib is not installed.
    """
    if most < 2:
        raise ArgumentError(f"most is {most!r}; expected 2 or more circles in a column")
    weights, biases, kinds = _numbers(model)
    sizes = [len(weights[0][0]), *map(len, weights)]
    columns = [_column(size, most) for size in sizes]
    tallest = max(max(map(abs, column.values())) for column in columns)
    step = 2.0 + 0.35 * tallest  # from one column to the next: the higher, the steeper its lines would be
    widest = WIDEST[tallest > 4]
    axes = axes_for(axes, (max(0.42 * step * (len(sizes) - 1) + 1.4, 5.0), 0.42 * (2 * tallest + 1) + 1.6))
    largest = max(abs(w) for layer in weights for row in layer for w in row) or 1.0
    deepest = max(abs(b) for layer in biases for b in layer) or 1.0
    _draw_lines(axes, weights, columns, step, widest / largest)
    patches = require("matplotlib.patches", "plot")
    colours = require("matplotlib.colors", "plot")
    for place, column in enumerate(columns):
        for i, y in column.items():
            bias = biases[place - 1][i] if place else 0.0
            paint = colours.to_rgb(BLUE if bias > 0.0 else VERMILION)
            strength = 0.9 * abs(bias) / deepest
            face = [1.0 - strength * (1.0 - part) for part in paint] if place else PALE
            axes.add_patch(patches.Circle((step * place, y), RADIUS, facecolor=face, edgecolor=INK, lw=1.0, zorder=3))
        hidden = sizes[place] - len(column)
        if hidden:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
            text = f"… {hidden:,} more"
            axes.text(step * place, 0.0, text, ha="center", va="center", fontsize=8, color=INK, bbox=box, zorder=4)
        kind = kinds[place - 1] if place else "input" if sizes[0] == 1 else "inputs"
        caption = f"{sizes[place]:,}\n{kind}"
        above = {"xytext": (0, 10), "textcoords": "offset points", "annotation_clip": False}
        top = (step * place, tallest + RADIUS)
        axes.annotate(caption, top, **above, ha="center", va="bottom", fontsize=9, color=INK)
    lines = require("matplotlib.lines", "plot")
    key = [
        lines.Line2D([], [], color=BLUE, linewidth=widest, label="positive"),
        lines.Line2D([], [], color=VERMILION, linewidth=widest, label="negative"),
        lines.Line2D([], [], linestyle="none", label=f"widest: |weight| {largest:.2g}; deepest: |bias| {deepest:.2g}"),
    ]
    if not any(b for layer in biases for b in layer):
        key[2].set_label(f"widest: |weight| {largest:.2g}; every bias is 0")
    style = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "frameon": False, "fontsize": 8}
    axes.legend(handles=key, ncols=3, handlelength=1.4, columnspacing=1.0, borderaxespad=0.0, **style)
    axes.set(xlim=(-1.0, step * (len(sizes) - 1) + 1.0), ylim=(-tallest - 0.6, tallest + 0.4), aspect="equal")
    axes.axis("off")
    return axes


def _numbers(model: Any) -> tuple[list[list[list[float]]], list[list[float]], list[str]]:
    """The weights (layer, neuron, input), the biases (layer, neuron) and the activations of a model's layers."""
    weights: list[list[list[float]]] = []
    biases: list[list[float]] = []
    kinds = []
    for stage in stages(model):
        if not stage.neurons or not all(hasattr(neuron, "w") and hasattr(neuron, "b") for neuron in stage.neurons):
            raise ArgumentError(f"{stage.name} is not a layer of neurons, each with weights `w` and a bias `b`")
        for i, neuron in enumerate(stage.neurons):
            for what, p in [*((f"w.{j}", p) for j, p in enumerate(neuron.w)), ("b", neuron.b)]:
                if not isfinite(p.data):
                    raise DataError(f"{stage.name}.neurons.{i}.{what} is {p.data}: it has no width to be drawn with")
        weights.append([[p.data for p in neuron.w] for neuron in stage.neurons])
        biases.append([neuron.b.data for neuron in stage.neurons])
        kinds.append(str(getattr(stage.neurons[0], "activation", "")))
        before = len(weights[-2]) if len(weights) > 1 else len(weights[0][0])
        if any(len(row) != before for row in weights[-1]):
            lengths = sorted({len(row) for row in weights[-1]})
            raise ArgumentError(f"{stage.name} reads {lengths} numbers, and the layer before it gives {before}")
    return weights, biases, kinds


def _column(size: int, most: int) -> dict[int, float]:
    """Which neurons of a layer are drawn, and how high: around 0, with a gap if some are left out."""
    if size <= most:
        return {i: (size - 1) / 2 - i for i in range(size)}
    half = most // 2
    return {i: half - i + 0.2 for i in range(half)} | {size - 1 - i: i - half - 0.2 for i in range(half)}


def _draw_lines(
    axes: Any, weights: list[list[list[float]]], columns: Sequence[dict[int, float]], step: float, scale: float
) -> None:
    """The weights between neurons that are drawn, the strongest on top."""
    edges = []
    for place, (left, right) in enumerate(pairwise(columns)):
        for i, high in right.items():
            for j, low in left.items():
                edges.append((weights[place][i][j], ((step * place, low), (step * (place + 1), high))))
    edges.sort(key=lambda edge: abs(edge[0]))
    lines = require("matplotlib.collections", "plot").LineCollection(
        [line for _, line in edges],
        linewidths=[scale * abs(w) for w, _ in edges],
        colors=[BLUE if w > 0.0 else VERMILION for w, _ in edges],
        alpha=0.75,
        capstyle="butt",
    )
    axes.add_collection(lines)


def plot_weights(model: Any, axes: Any = None) -> Any:
    """The weights and biases of each layer: one histogram below the other, all over the same axis.

    Numbers that are exactly 0 are counted at the left and not drawn, as a pile of them would dwarf the rest; so are
    those that are not finite. Layers are told apart by the names of the parameters, so any Module will do.

    Raises:
        ArgumentError: the model has no parameters.
        MissingExtraError: matplotlib is not installed.
    """
    return _histograms(_by_layer(model, "data"), "weights and biases", axes)


def plot_gradients(model: Any, axes: Any = None) -> Any:
    """The gradients of each layer's parameters, as the last `backward()` left them, drawn as in `plot_weights`.

    Layers whose gradients are far smaller than those of the others learn more slowly than the others do: their
    gradients vanish. Many that are exactly 0 belong to neurons that no example reaches, such as dead ReLUs.

    Raises:
        ArgumentError: the model has no parameters.
        MissingExtraError: matplotlib is not installed.
    """
    layers = _by_layer(model, "grad")
    none = not any(number for numbers in layers.values() for number in numbers)
    note = ": all 0" if none else ""
    return _histograms(layers, f"gradients{note}", axes)


def plot_activations(model: Any, X: Sequence[Any], axes: Any = None) -> Any:
    """What the neurons of each layer give for the inputs X, drawn as in `plot_weights`; no gradient changes.

    Args:
        model: made of layers, one reading what the one before it gives, such as an MLP.
        X: the inputs of each example.
        axes: where to draw; None makes new ones.

    Raises:
        ArgumentError: the model is not made of layers.
        DataError: X is empty.
        LengthError: an example has another number of inputs than the first layer.
        MissingExtraError: matplotlib is not installed.
    """
    if not len(X):
        raise DataError("X is empty: activations are those for some examples")
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
    return _histograms(layers, f"activations, {len(rows):,} example{'' if len(rows) == 1 else 's'}", axes)


def _by_layer(model: Any, what: str) -> dict[str, list[float]]:
    """The data or the gradients of the parameters, under the name of what they belong to."""
    layers: dict[str, list[float]] = {}
    for name, p in model.named_parameters() if hasattr(model, "named_parameters") else ():
        layers.setdefault(LAYER.sub("", name) or type(model).__name__.lower(), []).append(getattr(p, what))
    if not layers:
        raise ArgumentError(f"{model!r:.80} has no parameters: there is nothing to draw")
    return layers


def _histograms(layers: dict[str, list[float]], title: str, axes: Any) -> Any:
    """A histogram for each layer, the first on top; the highest bar of each is as high as that of any other."""
    axes = axes_for(axes, (6.4, 0.8 + 0.75 * len(layers)))
    shown = {name: [y for y in numbers if isfinite(y) and y] for name, numbers in layers.items()}
    drawn = [number for numbers in shown.values() for number in numbers]
    low, high = (min(drawn), max(drawn)) if drawn else (-1.0, 1.0)
    if not high - low > ALIKE * max(abs(low), abs(high)):  # all alike
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
    axes.set_yticks([0.35 - row for row in range(len(layers))], [_told(*layer) for layer in layers.items()], fontsize=8)
    for label, numbers in zip(axes.get_yticklabels(), layers.values(), strict=True):
        label.set_color(INK if all(map(isfinite, numbers)) else VERMILION)
    axes.locator_params(axis="x", nbins=5)
    quiet(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return axes


def _counted(numbers: list[float], least: float) -> tuple[list[float], list[int]]:
    """The edges of a histogram's bars, and how many numbers there are in each; numbers all alike have one bar."""
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    bins = min(max(round(2 * len(numbers) ** (1 / 3)), BINS[0]), BINS[-1])  # as many bars as Rice's rule has
    width = high / bins - low / bins
    if not width > ALIKE * max(abs(low), abs(high)):
        return [low - least / 2, low + least / 2], [len(numbers)]
    counts = [0] * bins
    for number in numbers:
        counts[min(int((number - low) / width), bins - 1)] += 1
    return [low + width * i for i in range(bins + 1)], counts


def _told(name: str, numbers: list[float]) -> str:
    """A layer in a few words: its name, mean and standard deviation, what is not drawn."""
    finite = [number for number in numbers if isfinite(number)]
    lines = [name.strip()]
    if finite:
        size = max(map(abs, finite)) or 1.0  # squares of what is divided by it neither overflow nor vanish
        mean = sum(number / size for number in finite) / len(finite)
        deviation = sqrt(sum((number / size - mean) ** 2 for number in finite) / len(finite))
        lines.append(f"mean {mean * size:.2g}, sd {deviation * size:.2g}")
    zeros = finite.count(0.0)
    if zeros:
        lines.append(f"{100 * zeros / len(numbers):.3g} % are 0")
    if len(finite) < len(numbers):
        lines.append(f"{len(numbers) - len(finite):,} not finite")
    return "\n".join(lines)
