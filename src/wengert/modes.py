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

__all__ = ["no_grad", "on", "op_by_op", "quiet", "recorded", "shown", "suspended"]

Mode = Callable[[Any], Any]  # shown a new node, returns what stands for it
Check = Callable[[Any, Any], None]  # shown a root and its gradient before each pass; raises to prevent it


class _Watcher(threading.local):
    """The modes of the running thread, the innermost last."""

    modes: tuple[Mode, ...] = ()
    op_by_op: bool = False
    checks: tuple[Check, ...] = ()

    def made(self, node: Any) -> Any:
        for mode in self.modes:
            node = mode(node)
        return node

    def lets_pass(self, root: Any, gradient: Any) -> bool:
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


def shown(node: Any) -> Any:
    """Show the modes of this thread a node that no operation made."""
    return _watcher.made(node)


def quiet() -> bool:
    """Whether this thread computes without recording."""
    return Value.detach in _watcher.modes


def op_by_op() -> bool:
    """Whether compiled functions are to run as they stand: for a derivative of a derivative, as a node that stands for
    all of one has no rule to follow, or for a mode that looks at each operation.
    """
    return _watcher.op_by_op or bool(_watcher.checks)


@contextmanager
def recorded(op_by_op: bool = False) -> Iterator[None]:
    """Record what this thread computes, whatever `no_grad()` says; with `op_by_op`, in compiled functions too."""
    before = _watcher.modes, _watcher.op_by_op
    _watcher.modes = tuple([mode for mode in _watcher.modes if mode != Value.detach])
    _watcher.op_by_op |= op_by_op
    try:
        yield
    finally:
        _watcher.modes, _watcher.op_by_op = before


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
