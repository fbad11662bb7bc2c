"""The thread that makes machine code while another back end serves."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet, ref

from wengert._forks import in_child

__all__ = ["WORKER"]


class Waiting(Protocol):
    """A kernel that has asked for machine code."""

    asked: bool
    refusal: str

    def compile(self) -> None:
        """Make it."""


class _Worker:
    """One thread that compiles what waits, as long as something does."""

    def __init__(self) -> None:
        self.pending: WeakSet[Any] = WeakSet()
        self.renew()
        in_child(self.renew)

    def renew(self) -> None:
        """Begin with nothing to do; in a forked child, which has no such thread, what was waiting asks again."""
        self.lock: Any = threading.Lock()
        self.waiting: deque[ref[Any]] = deque()
        self.thread: threading.Thread | None = None
        for kernel in list(self.pending):
            kernel.asked = False

    def submit(self, kernel: Waiting) -> None:
        """Have a kernel's code made."""
        with self.lock:
            self.pending.add(kernel)
            self.waiting.append(ref(kernel))
            if self.thread is None:
                self.thread = threading.Thread(target=self.run, name="wengert-native")
                with suppress(RuntimeError):  # the interpreter is about to end
                    self.thread.start()

    def run(self) -> None:
        """Compile, until nothing waits or the interpreter ends."""
        while True:
            with self.lock:
                if not self.waiting or not threading.main_thread().is_alive():
                    self.thread = None
                    return
                kernel = self.waiting.popleft()()
            if kernel is not None:
                try:
                    kernel.compile()
                except Exception as error:  # the other back end goes on
                    kernel.refusal = f"{type(error).__name__}: {error}"
                self.pending.discard(kernel)


WORKER = _Worker()
