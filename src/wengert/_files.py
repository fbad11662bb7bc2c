"""Opens files that a user names: one that would block, or never ends, is an error."""

from __future__ import annotations

import os
import stat
from typing import IO, Any, BinaryIO

from wengert.errors import file_name

__all__ = ["check_regular", "opened", "to_write"]

LARGEST = 16 << 20  # bytes of a file that is read as a whole


def check_regular(about: os.stat_result) -> None:
    """Raise a ValueError unless it is a regular file: a pipe would block, a device may be endless, and a save would
    replace it.
    """
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"it is {kinds.get(stat.S_IFMT(about.st_mode), 'a device')}, not a regular file")


def opened(path: str, largest: int | None = LARGEST) -> BinaryIO:
    """Open a regular file to read its bytes.

    Args:
        path: the file.
        largest: the most bytes that it may have; None if it is not read as a whole.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or larger, or the path is not possible.
    """
    check_regular(os.stat(path))  # before it is opened, since opening some devices triggers an action
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115  (the caller closes it)
    about = os.fstat(file.fileno())
    if largest is not None and about.st_size > largest:
        file.close()
        raise ValueError(f"it has {about.st_size >> 20:,} MiB; expected at most {largest >> 20}")
    return file


def to_write(path: Any, mode: str = "wb", **options: Any) -> IO[Any]:
    """Open a file to write to it: a regular one, a device, or a pipe that somebody reads.

    Raises:
        ArgumentError: the path is not a path.
        OSError: it cannot be written; nobody reads the pipe.
    """
    file = open(file_name(path), mode, opener=_at_once, **options)  # noqa: SIM115  (the caller closes it)
    if os.name == "posix":
        os.set_blocking(file.fileno(), True)
    return file


def _at_once(name: str, flags: int) -> int:
    """Open a file without blocking, as of a pipe."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
