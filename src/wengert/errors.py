"""Every error that Wengert raises, as one tree.

::

    WengertError
    ├── OperandError        (TypeError)    data or an operand that is not a number
    ├── HandmadeNodeError   (TypeError)    a node made by hand, in a way or a place that cannot be
    ├── OperationError      (ValueError)   a registration of an operation that cannot work
    ├── LengthError         (ValueError)   two lengths that must agree and do not
    ├── DataError           (ValueError)   data of the user's that cannot be computed with
    ├── ArgumentError       (ValueError)   an argument outside what it may be
    ├── NonFiniteError      (ArithmeticError)  a nan or an infinity that `strict` or `detect_anomaly` found
    ├── StaleRecordingError                a compiled function that is not what was recorded any more
    ├── GradientError       (AssertionError) a gradient that is not that of its function
    ├── CheckpointError                    a checkpoint that cannot be written, read or believed
    └── MissingExtraError   (ImportError)  an optional library that is not installed

Each is also an error of the built-in kind in parentheses, so ``except ValueError`` catches what one
would expect, and ``except WengertError`` catches all of them.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["ArgumentError", "CheckpointError", "DataError", "GradientError", "HandmadeNodeError", "LengthError"]
__all__ += ["MissingExtraError", "NonFiniteError", "OperandError", "OperationError", "StaleRecordingError"]
__all__ += ["WengertError"]

HERE = os.path.join(os.path.dirname(__file__), "")
NEEDS_COURSE = (  # said in place of what another distribution adds
    "this needs the course: pip install wengert-course (in a clone of the repository: pip install ./course)"
)


class WengertError(Exception):
    """The root of the tree: whatever the library itself raises."""


class OperandError(WengertError, TypeError):
    """Data or an operand that is not one real number."""


class HandmadeNodeError(WengertError, TypeError):
    """A node made by hand (see `wengert.handmade`) in a way that makes none, or where an operation has to be."""


class OperationError(WengertError, ValueError):
    """A registration of an operation that cannot work, or a rule that does not fit its operation."""


class LengthError(WengertError, ValueError):
    """Two lengths that must agree and do not; the message names both."""


class DataError(WengertError, ValueError):
    """Data that cannot be computed with: empty, not finite, of a class that does not exist."""


class ArgumentError(WengertError, ValueError):
    """An argument outside what it may be; the message names the value and what was expected."""


class NonFiniteError(WengertError, ArithmeticError):
    """A nan or an infinity came up under `wengert.strict` or `wengert.detect_anomaly`.

    Attributes:
        anomaly: what was found: the operation, its operands, the line; see `wengert.checking.anomalies.Anomaly`. Of an
            error from another process, as of a pool, its words: a node cannot leave the process of its graph.
    """

    def __init__(self, anomaly: Any) -> None:
        super().__init__(anomaly)
        self.anomaly: Any = anomaly

    def __reduce__(self) -> tuple[type, tuple[str]]:
        """The words alone, for a pickle."""
        return type(self), (str(self.anomaly),)


class StaleRecordingError(WengertError):
    """A compiled function gave another result than its Python code: something changed that was recorded as fixed."""


class GradientError(WengertError, AssertionError):
    """A gradient that is not that of its function; the message names the worst input, `report` holds all of them."""

    def __init__(self, report: object = None) -> None:
        super().__init__(str(report))
        self.report: Any = report


class CheckpointError(WengertError):
    """A checkpoint that cannot be written, read or believed; the message names the cause."""


class MissingExtraError(WengertError, ImportError):
    """An optional library that is not installed; the message holds the command that brings it."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library, or say which command brings it.

    Raises:
        MissingExtraError: the library is not installed.

    >>> require("json", "plot").dumps([1])
    '[1]'
    >>> require("no_such_library", "plot")
    Traceback (most recent call last):
        ...
    wengert.errors.MissingExtraError: this needs no_such_library: pip install "wengert[plot]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f'this needs {module}: pip install "wengert[{extra}]"') from error


def file_name(path: Any) -> str:
    """A path as a string. A number is none, though `open` would take it for a file that is open already.

    Raises:
        ArgumentError: the path is none.

    >>> file_name(1)
    Traceback (most recent call last):
        ...
    wengert.errors.ArgumentError: the path is 1; expected a string, or a pathlib.Path
    """
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise ArgumentError(f"the path is {path!r:.60}; expected a string, or a pathlib.Path")
    return name


# -- lines: what messages and warnings name ---------------------------------------------------------------------------


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
    '<doctest wengert.errors.running[0]>, line 1 (str(running()))'
    """
    frame: Any = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename == "<lifted>"):
        frame = frame.f_back
    return None if frame is None else Line(frame.f_code.co_filename, frame.f_lineno)


def warn_once(said: set[str], message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, once for each message, and as of the user's line."""
    if message not in said:
        said.add(message)
        warn(message, category)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as of the user's line."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
