"""Machine code that is made while NumPy serves, and used where it takes less time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import Any
from weakref import WeakSet, ref

from wengert._forks import in_child
from wengert.compiler.backends.base import MachineCode
from wengert.compiler.backends.native.kernel import NativeKernel
from wengert.compiler.backends.native.machine import is_usable

__all__ = ["BackgroundKernel"]

TRIALS = 3  # how often each of the two is timed


class BackgroundKernel(NativeKernel):
    """A program that NumPy runs until there is machine code for it; from then on what was the faster of both."""

    def prepare(self) -> None:
        """Have the code made by the worker."""
        self._ready = threading.Event()
        self._seconds = {False: inf, True: inf}  # by whether it was machine code: at best
        self._trials = 0
        self._decided = False
        WORKER.submit(self)

    def make(self) -> None:
        """Make the code, and say when that is done."""
        try:
            super().make()
        finally:
            self._ready.set()

    def wait(self) -> None:
        """Until it is compiled."""
        if is_usable():
            self._ready.wait()

    @property
    def code(self) -> MachineCode | None:
        """The addresses of the two functions; None as long as NumPy runs."""
        return super().code if self._decided else None

    def both(self, arrays: Sequence[Any], seed: float) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives by the wanted inputs."""
        if self._decided:
            return super().both(arrays, seed)
        if self._loaded is None:
            return self.by_numpy(arrays, seed)
        native = self._trials % 2 == 0
        began = perf_counter()
        made = super().both(arrays, seed) if native else self.by_numpy(arrays, seed)
        self._seconds[native] = min(self._seconds[native], perf_counter() - began)
        self._trials += 1
        if self._trials == 2 * TRIALS:
            self._decided = True
            if self._seconds[False] < self._seconds[True]:
                self.refusal = "NumPy takes less time"
                self._loaded = None
        return made


class _Worker:
    """One thread that compiles what waits, as long as something does."""

    def __init__(self) -> None:
        self.renew()
        self.pending: WeakSet[BackgroundKernel] = WeakSet()
        in_child(self.restart)

    def renew(self) -> None:
        """Begin with nothing to do."""
        self.lock: Any = threading.Lock()
        self.waiting: deque[ref[BackgroundKernel]] = deque()
        self.thread: threading.Thread | None = None

    def restart(self) -> None:
        """In a forked child, which has no such thread: what was waiting there waits here."""
        pending = [kernel for kernel in self.pending if not kernel._ready.is_set()]
        self.renew()
        for kernel in pending:
            kernel._ready = threading.Event()
            if is_usable():
                self.submit(kernel)
            else:
                kernel._ready.set()

    def submit(self, kernel: BackgroundKernel) -> None:
        """Have a kernel's code made."""
        self.pending.add(kernel)
        with self.lock:
            self.waiting.append(ref(kernel))
            if self.thread is None:
                self.thread = threading.Thread(target=self.run, name="wengert-native")
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
                    kernel.make()
                except Exception as error:  # NumPy goes on
                    kernel.refusal = f"{type(error).__name__}: {error}"
                self.pending.discard(kernel)


WORKER = _Worker()
