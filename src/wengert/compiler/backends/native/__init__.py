"""Machine code for programs: one lowering to loops, printed for LLVM and as C."""

from wengert.compiler.backends.native.background import BackgroundKernel
from wengert.compiler.backends.native.kernel import NativeKernel

__all__ = ["BackgroundKernel", "NativeKernel"]
