"""Machine code for programs: one lowering to loops, printed as LLVM IR and as C."""

from wengert.compiler.backends.native.c import source

__all__ = ["source"]
