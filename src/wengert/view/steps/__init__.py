"""A computation and its backward pass, node by node: as data, in sentences, and as an interactive page."""

from wengert.view.player import Page
from wengert.view.steps.steps import Contribution, Step, Steps, steps

__all__ = ["Contribution", "Page", "Step", "Steps", "steps"]
