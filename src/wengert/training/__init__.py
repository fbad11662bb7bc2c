"""Training with one call: `fit`, and what it returns."""

from wengert.errors import Submodules, submodules
from wengert.training.fit import History, Loss, Metric, Model, accuracy, fit, predict
from wengert.training.fit import native as native
from wengert.training.hosts import is_first
from wengert.training.loop import Trainer, choose
from wengert.training.task import same_random_numbers as same_random_numbers

__all__ = ["History", "Loss", "Metric", "Model", "Trainer", "accuracy", "choose", "fit", "is_first", "predict"]

__getattr__: Submodules = submodules(__name__)
