"""What all plots share: the axes, the colours, what a layer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert.errors import ArgumentError, require

__all__ = ["BLUE", "CLASSES", "INK", "PALE", "VERMILION", "Stage", "axes_for", "quiet", "stages"]

BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, YELLOW = "#cc79a7", "#56b4e9", "#f0e442"
CLASSES = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, VERMILION)
INK, PALE = "#333333", "#d9d9d9"


class Stage(NamedTuple):
    """One layer of a model: how it is called, the neurons that it has (none, if it is of another kind), its name."""

    call: Callable[[list[float]], Any]
    neurons: Sequence[Any]
    name: str


def axes_for(axes: Any, size: tuple[float, float]) -> Any:
    """The axes to draw on; new ones belong to pyplot, so that a notebook shows them."""
    return axes if axes is not None else require("matplotlib.pyplot", "plot").subplots(figsize=size, layout="tight")[1]


def quiet(axes: Any) -> None:
    """Thin, grey edges: the data come first."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(PALE)
    axes.tick_params(color=PALE, labelcolor=INK)


def stages(model: Any) -> list[Stage]:
    """The layers of a model, in the order in which they compute; a Layer is its only layer, and so is a Neuron.

    Raises:
        ArgumentError: it is not made of layers.
    """
    layers = getattr(model, "layers", None)
    if isinstance(layers, (list, tuple)) and layers and all(map(callable, layers)):
        return [Stage(layer, getattr(layer, "neurons", ()), f"layers.{i}") for i, layer in enumerate(layers)]
    if hasattr(model, "neurons"):
        return [Stage(model, model.neurons, "layer")]
    if hasattr(model, "w") and hasattr(model, "b"):
        return [Stage(model, [model], "neuron")]
    raise ArgumentError(f"{model!r:.80} is not made of layers; expected an MLP, or a model with a list `layers`")
