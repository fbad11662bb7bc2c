"""Asks for memory before a library needs it that ends the process where there is none, as LLVM does."""

from __future__ import annotations

import mmap

__all__ = ["MIB", "reserve"]

MIB = 1 << 20


def reserve(size: int, purpose: str) -> None:
    """Check that so many bytes can be had, by mapping and freeing them, without writing to them.

    Another thread may take them before they are used, so callers ask for several times what is needed.

    Raises:
        MemoryError: they cannot be had; the message has the purpose.
    """
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        mmap.mmap(-1, size, **private).close()
    except (OSError, ValueError, OverflowError):
        raise MemoryError(f"there is no room for {purpose}, which may need {-(-size // MIB):,} MiB") from None
