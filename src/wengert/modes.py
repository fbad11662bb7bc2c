"""Modes that are shown every node as it is made: `no_grad` today.

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

__all__ = ["no_grad", "on", "op_by_op", "quiet", "recorded", "suspended"]

Mode = Callable[[Any], Any]  # shown a new node, returns what stands for it


class _Watcher(threading.local):
    """The modes of the running thread, the innermost last."""

    modes: tuple[Mode, ...] = ()
    op_by_op: bool = False

    def made(self, node: Any) -> Any:
        for mode in self.modes:
            node = mode(node)
        return node


_watcher = _Watcher()
_lock, _active = threading.Lock(), 0


@contextmanager
def on(mode: Mode) -> Iterator[None]:
    """Show every node that this thread makes to `mode`, until the block ends."""
    global _active
    with _lock:
        _active += 1
        engine.watch(_watcher)
    before, _watcher.modes = _watcher.modes, (*_watcher.modes, mode)
    try:
        yield
    finally:
        _watcher.modes = before
        with _lock:
            _active -= 1
            if not _active:
                engine.watch(None)


def quiet() -> bool:
    """Whether this thread computes without recording."""
    return Value.detach in _watcher.modes


def op_by_op() -> bool:
    """Whether compiled functions are to run as they stand: a node that stands for all of one has no rule to follow."""
    return _watcher.op_by_op


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
    before, _watcher.modes = _watcher.modes, ()
    try:
        yield
    finally:
        _watcher.modes = before


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
