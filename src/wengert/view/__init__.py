"""Pictures: as text, which needs nothing, and as plots, which need matplotlib."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """The module of that name, as in ``wengert.view.plots`` after ``import wengert``."""
    try:
        return import_module(f"wengert.view.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module 'wengert.view' has no attribute {name!r}") from None
