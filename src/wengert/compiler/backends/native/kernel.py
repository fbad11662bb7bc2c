"""Programs as machine code. LLVM is imported when the first program is compiled."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert._forks import no_fork
from wengert._reserve import MIB, reserve
from wengert.compiler.backends.native.rows import Unsupported
from wengert.compiler.backends.numpy import NumPyKernel

if TYPE_CHECKING:
    from wengert.compiler.backends.base import MachineCode
    from wengert.compiler.backends.native.layout import Lowered
    from wengert.compiler.backends.native.machine import Loaded

__all__ = ["NativeKernel"]

LIBRARY = 256 * MIB  # of LLVM, once it is loaded
PRODUCTS = 64 * MIB  # what NumPy's own library takes at the first product of matrices; without it, it ends the process


class NativeKernel(NumPyKernel):
    """Runs a program as machine code, or as NumPy if it has an operation in Python, or if there is no memory for LLVM:
    see `fallback_reason`.
    """

    name = "native"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._built: tuple[Lowered, Loaded] | None = None  # without the second one the code would be freed
        try:
            if "llvmlite" not in sys.modules:
                reserve(LIBRARY, "LLVM's library")
            with no_fork:
                module = import_module("wengert.compiler.backends.native.build")
            self._built = module.build(*given)
            self.code: MachineCode | None = self._built[1].code
        except Unsupported as why:
            self.fallback_reason: str = str(why)
        except MemoryError as why:
            reserve(PRODUCTS, "NumPy's matrix products")
            self.fallback_reason = str(why) or "there is no memory for machine code"

    def work(self, count: int) -> int:
        return 0 if self._built is None else self._built[0].work(count)
