"""Machine code for programs: one lowering to loops, printed for LLVM and as C."""

from wengert.compiler.backends.native.c import source

__all__ = ["source"]
