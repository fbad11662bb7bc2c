"""Checks: gradients against differences, results against other libraries, and the source lines of nan and inf."""

from importlib import import_module
from types import ModuleType

from wengert.checking.anomalies import line_of

__all__ = ["line_of"]


def __getattr__(name: str) -> ModuleType:
    """Import a module of this package at its first use, as in ``wengert.checking.NAME``."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
