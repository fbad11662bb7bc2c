"""What each comparison of a guard means. (`tracers.py` asks for guards, `recorder.py` keeps them.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["HOLDS"]

# Of numbers, and of arrays of a library `xp`, which may trace them: a module that is never compiled.
HOLDS: dict[str, Callable[..., Any]] = {
    "lt": lambda x, y, xp=np: x < y,
    "le": lambda x, y, xp=np: x <= y,
    "gt": lambda x, y, xp=np: x > y,
    "ge": lambda x, y, xp=np: x >= y,
    "eq": lambda x, y, xp=np: x == y,
    "ne": lambda x, y, xp=np: x != y,
    "is": lambda x, y, xp=np: (x == y) & (xp.signbit(x) == xp.signbit(y)) | (x != x) & (y != y),
    "within": lambda x, y, xp=np: xp.abs(x) <= y,
}
