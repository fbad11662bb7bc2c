"""A computation and its backward pass, node by node: as data, in words, and as a page that plays them."""

from importlib import import_module
from types import ModuleType

from wengert.view.steps.steps import Contribution, Step, Steps, steps

__all__ = ["Contribution", "Step", "Steps", "steps"]


def __getattr__(name: str) -> ModuleType:
    """The module of that name, as in ``{__name__}.steps.NAME`` after ``import wengert``."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
