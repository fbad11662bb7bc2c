"""Checks: gradients against differences, results against other libraries, and the source lines of nan and inf."""

from wengert.checking.anomalies import line_of
from wengert.errors import Submodules, submodules

__all__ = ["line_of"]

__getattr__: Submodules = submodules(__name__)
