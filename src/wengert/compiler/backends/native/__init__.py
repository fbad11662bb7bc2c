"""Machine code for programs: one lowering to loops, printed for LLVM and as C."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert.compiler.backends.native.c import source

if TYPE_CHECKING:
    from wengert.compiler.backends.native.background import BackgroundKernel as BackgroundKernel
    from wengert.compiler.backends.native.kernel import NativeKernel as NativeKernel

__all__ = ["source"]

_NEED_LLVM = {"NativeKernel": "kernel", "BackgroundKernel": "background"}  # so they are imported when asked for


def __getattr__(name: str) -> Any:
    """What is named in `_NEED_LLVM`."""
    if name not in _NEED_LLVM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NEED_LLVM[name]}"), name)
