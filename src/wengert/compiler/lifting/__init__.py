"""From a recorded graph of scalars to a program of arrays."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """The module of that name, as in ``wengert.compiler.lifting.NAME`` after ``import wengert``."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
