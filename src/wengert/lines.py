"""Which line of the user's code is running: what messages and warnings name."""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from typing import Any, NamedTuple

__all__ = ["Line", "running", "warn_once"]

HERE = os.path.join(os.path.dirname(__file__), "")


class Line(NamedTuple):
    """A line of a file; of a notebook's cell or of a session, what Python calls its file."""

    file: str
    number: int

    @property
    def source(self) -> str:
        """Its text, as far as Python can still find it."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        text = self.source
        return f"{os.path.basename(self.file)}, line {self.number}{f' ({text[:60]})' if text else ''}"


def running() -> Line | None:
    """The line of the innermost frame that is neither of this package nor of code that it wrote; None if there is none.

    >>> str(running())
    '<doctest wengert.lines.running[0]>, line 1 (str(running()))'
    """
    frame: Any = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename == "<lifted>"):
        frame = frame.f_back
    return None if frame is None else Line(frame.f_code.co_filename, frame.f_lineno)


def warn_once(said: set[str], message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, once for each message, and as of the user's line."""
    if message not in said:
        said.add(message)
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
            level, frame = level + 1, frame.f_back
        warnings.warn(message, category, stacklevel=level)
