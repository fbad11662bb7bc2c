"""Modes of a thread: `no_grad` here, `strict` and `detect_anomaly` in checking/anomalies.py.

The engine has room for one pair of hooks, and costs nothing while there is none. This module keeps what each thread
asks for, so that one thread's `no_grad()` leaves the others alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from wengert import engine
from wengert._forks import in_child

__all__ = ["eager_only", "grad_disabled", "hooked", "in_force", "no_grad", "recorded", "shown", "suspended", "unusual"]

NodeHook = Callable[[Any], object]  # shown each new node
PreBackwardHook = Callable[[Any, Any], object]  # shown a root and its gradient before each pass; raises to prevent it


class _Modes(threading.local):
    """What the running thread asks for, and the hooks of the engine."""

    grad_disabled: bool = False
    eager_only: bool = False
    blocks: int = 0  # how many of this thread's need the engine's hooks,
    asked: int = 0  # and how many there are
    hooks: tuple[tuple[NodeHook, PreBackwardHook], ...] = ()  # the innermost first

    def node_hook(self, node: Any) -> Any:
        """Show a new node; returns what stands for it."""
        for look, _ in self.hooks:
            look(node)
        return node.detach() if self.grad_disabled else node

    def pre_backward_hook(self, root: Any, gradient: Any) -> None:
        """Ask whether a pass may begin."""
        for _, check in self.hooks:
            check(root, gradient)


_modes = _Modes()
in_force: list[None] = []  # one for each block of any thread: empty while nobody asks for anything
_lock, _hooked = threading.Lock(), 0  # how many blocks there are, of all threads, that need the engine's hooks


@contextmanager
def _changed(**changes: Any) -> Iterator[None]:
    """Have this thread ask for something else until the block ends."""
    before = {name: getattr(_modes, name) for name in (*changes, "asked")}
    needed = bool(changes.get("hooks") or changes.get("grad_disabled"))
    asked = vars(_modes)
    if needed:
        _count(1)
    try:  # an interrupt is raised behind a call: behind the first one of each part all is as it should be
        in_force.append(None)
        asked.update(changes, asked=before["asked"] + 1)
        yield
    finally:
        asked.update(before)
        in_force.pop()
        if needed:
            _count(-1)


def _count(change: int) -> None:
    """Give the engine its hooks with the first block that needs them, and take them back with the last."""
    global _hooked
    with _lock:
        _hooked += change
        _modes.blocks += change
        engine.set_hooks(_modes if _hooked else None)


def _in_child() -> None:
    """In a forked child the blocks of other threads never come to their ends."""
    global _lock, _hooked
    _lock, _hooked = threading.Lock(), _modes.blocks
    in_force[:] = [None] * _modes.asked
    engine.set_hooks(_modes if _hooked else None)


in_child(_in_child)


@contextmanager
def hooked(node_hook: NodeHook, pre_backward_hook: PreBackwardHook) -> Iterator[None]:
    """Show every node that this thread makes to one hook, and each root before a pass to the other.

    The node is as the operation made it, also under `no_grad()`. Compiled functions run operation by operation.
    """
    with _changed(hooks=((node_hook, pre_backward_hook), *_modes.hooks)):
        yield


def shown(node: Any) -> Any:
    """Show the hooks of this thread a node that no operation made."""
    return _modes.node_hook(node)


def grad_disabled() -> bool:
    """Whether this thread computes without recording."""
    return _modes.grad_disabled


def eager_only() -> bool:
    """Whether compiled functions are to run as they stand: for a derivative of a derivative, as a node that stands for
    all of one has no rule to follow, or for a hook that looks at each operation.
    """
    return _modes.eager_only or bool(_modes.hooks)


@contextmanager
def recorded(eager_only: bool = False) -> Iterator[None]:
    """Record what this thread computes, whatever `no_grad()` says; with `eager_only`, in compiled functions too."""
    with _changed(grad_disabled=False, eager_only=_modes.eager_only or eager_only):
        yield


@contextmanager
def suspended() -> Iterator[None]:
    """Compute as if this thread had no mode and no hook."""
    with _changed(grad_disabled=False, hooks=()):
        yield


def unusual() -> AbstractContextManager[None]:
    """Have compiled functions that are called meanwhile ask what is the case, as they do where there is a mode."""
    return _changed()


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording: results are leaves, and the graph that led to them is not kept.

    As in PyTorch; the modes are per thread. It also serves as a decorator: ``@no_grad()``.

    >>> from wengert.engine import Value
    >>> x = Value(2.0)
    >>> with no_grad():
    ...     y = x * 3
    >>> y.data, y._prev
    (6.0, ())
    """
    with _changed(grad_disabled=True):
        yield
