"""What a forked child starts with: it has the thread that forked, and no other.

A lock that another thread held at that moment would be held in the child for ever, and the child wait for it without
end. So each lock of the package is made anew in a child, and with it goes what such a thread was counted for. What the
thread that forked holds itself it keeps, and gives back as it goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["in_child", "is_orphaned"]


def in_child(renew: Callable[[], object]) -> None:
    """Call a function in every child from now on, before anything else runs there."""
    if hasattr(os, "register_at_fork"):  # where there are forks
        os.register_at_fork(after_in_child=renew)


def is_orphaned(lock: Any) -> bool:
    """Whether a reentrant lock is held by a thread that is not in this child: by another than the only one there is.

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
