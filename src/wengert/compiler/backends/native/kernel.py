"""Programs as machine code: made before the first run, or while NumPy serves.

What needs LLVM is imported when code is made, and always by the thread that asks for it: a child that is forked while
another thread is in the midst of an import can never import that again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert.compiler.backends import BACKENDS
from wengert.compiler.backends.base import MachineCode
from wengert.compiler.backends.native.background import WORKER
from wengert.compiler.backends.native.rows import Unsupported
from wengert.compiler.backends.numpy import NumPyKernel

if TYPE_CHECKING:
    from wengert.compiler.backends.native.build import Built

__all__ = ["BackgroundKernel", "NativeKernel"]

# What it takes to make code on one core, in seconds: to load LLVM and to begin, and for each step that is written.
BEGINNING, EACH_STEP = 0.05, 0.0006
BUILD = "wengert.compiler.backends.native.build"


class NativeKernel(NumPyKernel):
    """A program that runs as machine code. One with an operation that only Python can do runs as NumPy; `refusal` says
    which.
    """

    name = "native"

    def __init__(self, *given: Any) -> None:
        self._built: Built | None = None
        self.refusal: str = ""
        super().__init__(*given)

    def make(self) -> None:
        """Make the code, or what runs instead."""
        self.compile()
        if self._built is None:
            super().make()

    def compile(self) -> None:
        """Make the code, if there can be any."""
        try:
            self._built = import_module(BUILD).build(self.program, self.back, self.wanted)
        except Unsupported as why:
            self.refusal = str(why)

    @property
    def code(self) -> MachineCode | None:
        """The addresses of the two functions; None where NumPy runs."""
        return None if self._built is None else self._built.loaded.code

    def work(self, count: int) -> int:
        """How many doubles of scratch the code takes for so many examples."""
        return 0 if self._built is None else self._built.lowered.work(count)


class BackgroundKernel(NativeKernel):
    """A program that NumPy runs until another thread has made machine code of it, when it is worth that."""

    refusal: str

    def make(self) -> None:
        """Make what NumPy runs."""
        self.asked: bool = False
        NumPyKernel.make(self)

    def want(self, spent: float) -> bool:
        """Have the code made once its runs have taken as long as that takes: then, at worst, all takes twice as long
        as it had to, however few runs are to come. Returns whether it is on its way.
        """
        steps = self.program.size + self.back.size
        if not self.asked and spent >= BEGINNING + EACH_STEP * steps:
            try:
                BACKENDS["native"].require()
                import_module(BUILD)
                WORKER.submit(self)
            except Exception as error:  # nothing is installed, or it cannot be loaded
                self.refusal = str(error)
            self.asked = True
        return self.asked and self._built is None and not self.refusal
