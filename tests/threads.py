"""Functions run in several threads at once, which take turns as often as Python lets them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

__all__ = ["together"]


def together(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own until all have ended; what one of them raises is raised here."""
    raised: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # a thread's own errors would only be printed
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if raised:
        raise raised[0]
