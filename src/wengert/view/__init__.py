"""Drawings of graphs, explanations, step-by-step pages, and plots with matplotlib."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Import a module of this package at its first use, as in ``wengert.view.plots``."""
    try:
        return import_module(f"wengert.view.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module 'wengert.view' has no attribute {name!r}") from None
