"""Modes that are shown every node as it is made: `no_grad` here, `strict` and `detect_anomaly` in anomalies.py.

The engine has room for one watcher, and costs nothing while there is none. This module keeps the modes of each
thread, so that one thread's `no_grad()` leaves the others alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wengert import engine
from wengert.engine import Value

__all__ = ["looking", "no_grad", "on", "quiet", "suspended"]

Mode = Callable[[Any], Any]  # shown a new node, returns what stands for it
Check = Callable[[Any, float], None]  # shown a root and its gradient before each pass; raises to prevent it


class _Watcher(threading.local):
    """The modes of the running thread, the innermost last."""

    modes: tuple[Mode, ...] = ()
    checks: tuple[Check, ...] = ()

    def made(self, node: Any) -> Any:
        for mode in self.modes:
            node = mode(node)
        return node

    def lets_pass(self, root: Any, gradient: float) -> bool:
        for check in self.checks:
            check(root, gradient)
        return True


_watcher = _Watcher()
_lock, _active = threading.Lock(), 0


@contextmanager
def on(mode: Mode, check: Check | None = None) -> Iterator[None]:
    """Show every node that this thread makes to `mode`, until the block ends.

    With a `check` the mode only looks: it is shown the node as the operation made it, before a mode that puts another
    in its place, and `check` is called before each backward pass.
    """
    global _active
    with _lock:
        _active += 1
        engine.watch(_watcher)
    if check is not None:
        _pin(1)
    before = _watcher.modes, _watcher.checks
    if check is None:
        _watcher.modes = (*_watcher.modes, mode)
    else:
        _watcher.modes, _watcher.checks = (mode, *_watcher.modes), (*_watcher.checks, check)
    try:
        yield
    finally:
        _watcher.modes, _watcher.checks = before
        if check is not None:
            _pin(-1)
        with _lock:
            _active -= 1
            if not _active:
                engine.watch(None)


def _pin(change: int) -> None:
    """Have the compiled engine ask before a pass, or no more."""
    with engine.walking:
        engine.pin(change)


def looking() -> bool:
    """Whether this thread has a mode that is to see each operation by itself, and each pass."""
    return bool(_watcher.checks)


def quiet() -> bool:
    """Whether this thread computes without recording."""
    return Value.detach in _watcher.modes


@contextmanager
def suspended() -> Iterator[None]:
    """Compute as if this thread had no mode."""
    before = _watcher.modes, _watcher.checks
    _watcher.modes = _watcher.checks = ()
    try:
        yield
    finally:
        _watcher.modes, _watcher.checks = before


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording: results are leaves, and the graph that led to them is not kept.

    As in PyTorch; the modes are per thread. It also serves as a decorator: ``@no_grad()``.

    >>> x = Value(2.0)
    >>> with no_grad():
    ...     y = x * 3
    >>> y.data, y._prev
    (6.0, ())
    """
    with on(Value.detach):
        yield
