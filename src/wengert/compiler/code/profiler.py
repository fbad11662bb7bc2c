"""Starts Python's profiler. Compiled modules find C here, by `profiler.pxd`: without a dict of each frame's variables,
which Python's own handlers are given at each event.
"""

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["start"]


def start(trace: Any, handler: Callable[..., Any]) -> None:
    """Have `handler` called with a trace at each event; `trace` alone, which can be called, if this is not compiled."""
    sys.setprofile(trace)
