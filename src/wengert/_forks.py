"""Renews locks in forked children, which have only the thread that forked.

A lock that another thread held at that moment would stay locked in the child, and the child would wait for it for ever.
So a child replaces each lock of the package and resets the counts of the threads that are gone. Locks held by the
thread that forked stay, and it releases them as usual.

The locks of Python's imports and those of LLVM cannot be replaced: a thread that imports a library late, or has LLVM at
work, holds `no_fork`, and forks wait until it has released it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Lock", "in_child", "is_orphaned", "no_fork"]

no_fork = threading.RLock()
"""While a thread holds it no other one forks."""

if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(before=no_fork.acquire, after_in_parent=no_fork.release, after_in_child=no_fork.release)


class Lock:
    """A re-entrant lock for `with`, of a module; in a forked child it is free."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        in_child(self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def in_child(renew: Callable[[], object]) -> None:
    """Call a function in every forked child from now on, before anything else runs there."""
    if hasattr(os, "register_at_fork"):  # missing on Windows
        os.register_at_fork(after_in_child=renew)


def is_orphaned(lock: Any) -> bool:
    """Return True if a thread that does not exist in this child holds a reentrant lock.

    >>> import threading
    >>> lock = threading.RLock()
    >>> with lock:
    ...     is_orphaned(lock)
    False
    """
    free: bool = lock.acquire(blocking=False)
    if free:
        lock.release()
    return not free
