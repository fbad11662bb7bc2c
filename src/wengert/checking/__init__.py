"""Is it right? Gradients against differences, expressions against other libraries, nan and infinity to their line."""

from importlib import import_module
from types import ModuleType

from wengert.checking.anomalies import line_of

__all__ = ["line_of"]


def __getattr__(name: str) -> ModuleType:
    """The module of that name, as in ``wengert.checking.NAME`` after ``import wengert``."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
