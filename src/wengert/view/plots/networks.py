"""Plots a network as circles and lines: the weights and biases of its neurons with their signs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

from wengert.errors import ArgumentError, DataError, require
from wengert.view.plots.base import BLUE, INK, PALE, VERMILION, axes_for, stages

__all__ = ["plot_network"]

RADIUS = 0.3  # the radius of a circle; neighbours in a column have a distance of 1
WIDEST = (4.0, 2.5)  # the width of the largest weight's line in points: usually, and with many lines


def plot_network(model: Any, most: int = 12, axes: Any = None) -> Any:
    """Plot a network of neurons as circles, one column per layer, with the inputs on the left.

    A line is a weight: its width is the size, blue is positive and vermilion negative. The fill of a circle shows the
    bias of its neuron in the same colours. Of a large layer only the first and the last neurons are drawn, with the
    number of the others between them.

    Args:
        model: an MLP, a Layer or a Neuron, or a model with a list `layers` of such layers.
        most: the largest number of circles in a column, at least 2.
        axes: the axes to draw on; None makes new ones.

    Raises:
        ArgumentError: the model does not consist of layers of neurons, or most is below 2.
        DataError: a weight or a bias is not finite; the message names it.
        MissingExtraError: matplotlib is not installed.
    """
    if most < 2:
        raise ArgumentError(f"most is {most!r}; expected an int >= 2, the number of circles in a column")
    weights, biases, kinds = _numbers(model)
    sizes = [len(weights[0][0]), *map(len, weights)]
    columns = [_column(size, most) for size in sizes]
    tallest = max(max(map(abs, column.values())) for column in columns)
    step = 2.0 + 0.35 * tallest  # the distance of columns, larger for high ones, so that lines are not too steep
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
    """Return the weights [layer][neuron][input], the biases [layer][neuron] and the activations of the layers."""
    weights: list[list[list[float]]] = []
    biases: list[list[float]] = []
    kinds = []
    for stage in stages(model):
        if not stage.neurons or not all(hasattr(neuron, "w") and hasattr(neuron, "b") for neuron in stage.neurons):
            raise ArgumentError(f"{stage.name} is not a layer of neurons, each with weights `w` and a bias `b`")
        for i, neuron in enumerate(stage.neurons):
            for what, p in [*((f"w.{j}", p) for j, p in enumerate(neuron.w)), ("b", neuron.b)]:
                if not isfinite(p.data):
                    raise DataError(f"{stage.name}.neurons.{i}.{what} is {p.data}; expected finite weights and biases")
        weights.append([[p.data for p in neuron.w] for neuron in stage.neurons])
        biases.append([neuron.b.data for neuron in stage.neurons])
        kinds.append(str(getattr(stage.neurons[0], "activation", "")))
        before = len(weights[-2]) if len(weights) > 1 else len(weights[0][0])
        if any(len(row) != before for row in weights[-1]):
            lengths = sorted({len(row) for row in weights[-1]})
            raise ArgumentError(f"{stage.name} has {lengths} inputs, but the layer before it has {before} outputs")
    return weights, biases, kinds


def _column(size: int, most: int) -> dict[int, float]:
    """Return the neurons of a layer to draw and their y: around 0, with a gap if some are left out."""
    if size <= most:
        return {i: (size - 1) / 2 - i for i in range(size)}
    half = most // 2
    return {i: half - i + 0.2 for i in range(half)} | {size - 1 - i: i - half - 0.2 for i in range(half)}


def _draw_lines(
    axes: Any, weights: list[list[list[float]]], columns: Sequence[dict[int, float]], step: float, scale: float
) -> None:
    """Draw the weights between the drawn neurons, the largest on top."""
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
