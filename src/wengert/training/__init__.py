"""Training with one call: `fit`, and what it returns."""

from importlib import import_module
from types import ModuleType

from wengert.training.fit import History, Loss, Metric, Model, accuracy, fit, predict
from wengert.training.fit import native as native
from wengert.training.hosts import is_first
from wengert.training.loop import Trainer, choose
from wengert.training.task import same_random_numbers as same_random_numbers

__all__ = ["History", "Loss", "Metric", "Model", "Trainer", "accuracy", "choose", "fit", "is_first", "predict"]


def __getattr__(name: str) -> ModuleType:
    """Import a module of this package at its first use, as in ``wengert.training.NAME``."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
