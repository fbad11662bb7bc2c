"""Shared by all plots: the axes, the colours, and the layers of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert.errors import ArgumentError, require

__all__ = ["BLUE", "CLASSES", "INK", "PALE", "VERMILION", "Stage", "axes_for", "quiet", "stages"]

BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, YELLOW = "#cc79a7", "#56b4e9", "#f0e442"
CLASSES = (VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY, YELLOW)  # of two, the higher is blue, as a positive weight is
INK, PALE = "#333333", "#d9d9d9"


class Stage(NamedTuple):
    """One layer of a model: the function that computes it, its neurons (none for other kinds of layers), its name."""

    call: Callable[[list[float]], Any]
    neurons: Sequence[Any]
    name: str


def axes_for(axes: Any, size: tuple[float, float]) -> Any:
    """Return the axes to draw on; new ones belong to pyplot, so that a notebook shows them."""
    return axes if axes is not None else require("matplotlib.pyplot", "plot").subplots(figsize=size, layout="tight")[1]


def quiet(axes: Any) -> None:
    """Make the frame thin and grey, so that the data stand out."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(PALE)
    axes.tick_params(color=PALE, labelcolor=INK)


def stages(model: Any) -> list[Stage]:
    """List the layers of a model in the order of computation; a Layer or a Neuron is its own only layer.

    Raises:
        ArgumentError: the model has no layers.
    """
    layers = getattr(model, "layers", None)
    if isinstance(layers, (list, tuple)) and layers and all(map(callable, layers)):
        return [Stage(layer, getattr(layer, "neurons", ()), f"layers.{i}") for i, layer in enumerate(layers)]
    if hasattr(model, "neurons"):
        return [Stage(model, model.neurons, "layer")]
    if hasattr(model, "w") and hasattr(model, "b"):
        return [Stage(model, [model], "neuron")]
    raise ArgumentError(f"{model!r:.80} has no layers; expected an MLP, or a model with a list `layers`")
