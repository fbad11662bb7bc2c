"""The modes of each thread: `no_grad` here, `strict` and `detect_anomaly` in checking/anomalies.py.

The engine takes one pair of hooks, and pays nothing while there is none. This module keeps the modes of each thread, so
that `no_grad()` in one thread does not affect the others.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum
from typing import Any

from wengert import engine, node
from wengert._forks import in_child

__all__ = ["Caught", "at_kink", "called", "eager_only", "grad_disabled", "hooked", "in_force", "no_grad", "recorded"]
__all__ += ["shown", "suspended", "watched", "watches_kinks"]

NodeHook = Callable[[Any], object]  # called with each new node
PreBackwardHook = Callable[[Any, Any], object]  # called with a root and its gradient before backward(); may raise
KinkHook = Callable[[Any], object]  # called with a node at a kink of which a second derivative is asked; may raise

PACKAGES = ("wengert", "numpy")  # which catch errors of operands and go on in another way, with the same result


class Caught(IntEnum):
    """What a function may catch, so that it goes another way with Values than with plain numbers: see `called`."""

    NOTHING = 0
    ERROR_OF_NUMBERS = 1
    ERROR_OF_VALUES = 2


class _Modes(threading.local):
    """The modes of the running thread; the engine's hooks call its methods."""

    grad_disabled: bool = False
    eager_only: bool = False
    blocks: int = 0  # the number of this thread's blocks that need the engine's hooks
    asked: int = 0  # the number of all its blocks
    hooks: tuple[tuple[NodeHook, PreBackwardHook, KinkHook | None], ...] = ()  # the innermost block's first
    caught: list[Caught] | None = None  # what the code that `called` runs may catch, or may not get to catch

    def node_hook(self, node: Any) -> Any:
        """Call the hooks with a new node; return the node that replaces it, under `no_grad()` a leaf."""
        for look, _, _ in self.hooks:
            look(node)
        return node.detach() if self.grad_disabled else node

    def pre_backward_hook(self, root: Any, gradient: Any) -> None:
        """Call the hooks before a backward(), which they prevent by raising."""
        for _, check, _ in self.hooks:
            check(root, gradient)


_modes = _Modes()
in_force: list[None] = []  # one item for each block of any thread: empty while no mode is in force
_lock, _hooked = threading.Lock(), 0  # the number of blocks of all threads that need the engine's hooks


@contextmanager
def _changed(**changes: Any) -> Iterator[None]:
    """Change this thread's modes until the block ends."""
    before = {name: getattr(_modes, name) for name in (*changes, "asked")}
    needed = bool(changes.get("hooks") or changes.get("grad_disabled"))
    asked = vars(_modes)
    if needed:
        _count(1)
    try:  # an interrupt is raised after a call: after the first call of each part the state is consistent
        in_force.append(None)
        asked.update(changes, asked=before["asked"] + 1)
        yield
    finally:
        asked.update(before)
        in_force.pop()
        if needed:
            _count(-1)


def _count(change: int) -> None:
    """Set the engine's hooks with the first block that needs them, and remove them with the last."""
    global _hooked
    with _lock:
        _hooked += change
        _modes.blocks += change
        engine.set_hooks(_modes if _hooked else None)


def _in_child() -> None:
    """Forget in a forked child the blocks of other threads, which no longer exist."""
    global _lock, _hooked
    _lock, _hooked = threading.Lock(), _modes.blocks
    in_force[:] = [None] * _modes.asked
    engine.set_hooks(_modes if _hooked else None)


in_child(_in_child)


def hooked(
    node_hook: NodeHook, pre_backward_hook: PreBackwardHook, kink_hook: KinkHook | None = None
) -> AbstractContextManager[None]:
    """Call one hook with every node that this thread makes, another with each root before its `backward()`, and a third
    with each node at a kink when a derivative is made that can be differentiated.

    The node still has its operands, also under `no_grad()`. Compiled functions run operation by operation.
    """
    return _changed(hooks=((node_hook, pre_backward_hook, kink_hook), *_modes.hooks))


def shown(node: Any) -> Any:
    """Call the hooks of this thread with a node that was made by hand."""
    return _modes.node_hook(node)


def watches_kinks() -> bool:
    """Return True if this thread calls a hook with nodes at kinks."""
    return any(hook is not None for _, _, hook in _modes.hooks)


def at_kink(node: Any) -> None:
    """Call the hooks of this thread with a node at a kink."""
    for _, _, hook in _modes.hooks:
        if hook is not None:
            hook(node)


def grad_disabled() -> bool:
    """Return True if this thread computes without recording."""
    return _modes.grad_disabled


def eager_only() -> bool:
    """Return True if compiled functions have to run uncompiled: for a derivative of a derivative, since the one node of
    a compiled call has no rule that could be differentiated, in a watched run, or for a hook that sees each operation.
    """
    return _modes.eager_only or bool(_modes.hooks)


@contextmanager
def recorded(eager_only: bool = False) -> Iterator[None]:
    """Record what this thread computes, even inside `no_grad()`; with `eager_only`, inside compiled functions too."""
    with _changed(grad_disabled=False, eager_only=_modes.eager_only or eager_only):
        yield


@contextmanager
def suspended() -> Iterator[None]:
    """Compute as if this thread had no modes and no hooks."""
    with _changed(grad_disabled=False, hooks=(), caught=None):
        yield


def called(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, Caught]:
    """Call a function with Values. Return its result, and whether it may have gone another way than with plain numbers,
    since code of it may catch errors: those of numbers, where Values give infinity or nan, as divided by zero, or that
    of a Value which was asked for as a plain number.
    """
    before, _modes.caught = _modes.caught, []
    try:
        return function(*args, **named), max(_modes.caught, default=Caught.NOTHING)
    finally:
        _modes.caught = before


def _note(caught: Caught) -> None:
    if _modes.caught is not None:
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code is not called.__code__:
            package = str(frame.f_globals.get("__name__")).partition(".")[0]
            if frame.f_code.co_exceptiontable and package not in PACKAGES:
                _modes.caught.append(caught)
                break
            frame = frame.f_back


def _unraised(number: float) -> float:
    """Return infinity or nan, which Values give where plain numbers raise an error, and note that for `called`."""
    _note(Caught.ERROR_OF_NUMBERS)
    return number


def _refused() -> None:
    """Note for `called` that a Value was asked for as a plain number, which raises an error."""
    _note(Caught.ERROR_OF_VALUES)


engine.unraised = _unraised
node.refused = _refused


def watched() -> AbstractContextManager[None]:
    """Run each operation as it will be recorded: compiled functions uncompiled, derivatives over Values."""
    return _changed(eager_only=True)


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording: results are leaves, and no graph is kept.

    As in PyTorch, the mode is that of a thread, and ``@no_grad()`` works as a decorator.

    >>> from wengert.engine import Value
    >>> x = Value(2.0)
    >>> with no_grad():
    ...     y = x * 3
    >>> y.data, y._prev
    (6.0, ())
    """
    with _changed(grad_disabled=True):
        yield
