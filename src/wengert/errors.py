"""Every error that Wengert raises, as one tree.

::

    WengertError
    ├── OperandError        (TypeError)    data or an operand is not a number
    ├── HandmadeNodeError   (TypeError)    a node made by hand is invalid, or cannot be used here
    ├── OperationError      (ValueError)   an operation's registration or rule is invalid
    ├── LengthError         (ValueError)   two lengths differ that must agree
    ├── DataError           (ValueError)   the user's data cannot be computed with
    ├── ArgumentError       (ValueError)   an argument has an invalid value
    ├── NonFiniteError      (ArithmeticError)  `strict` or `detect_anomaly` found a nan or an infinity
    ├── RootError           (ArithmeticError)  `root` or `fixed_point` did not find one
    ├── StaleRecordingError                a compiled function no longer does what was recorded
    ├── GradientError       (AssertionError) a gradient is wrong
    ├── CheckpointError                    a checkpoint cannot be written or read, or is damaged
    └── MissingExtraError   (ImportError)  an optional library is not installed

Each class also derives from the built-in exception in parentheses, so ``except ValueError`` works as expected, and
``except WengertError`` catches all of them.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from math import nan
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["ArgumentError", "CheckpointError", "DataError", "GradientError", "HandmadeNodeError", "LengthError"]
__all__ += ["MissingExtraError", "NonFiniteError", "OperandError", "OperationError", "RootError"]
__all__ += ["StaleRecordingError", "WengertError"]

HERE = os.path.join(os.path.dirname(__file__), "")
STANDARD = os.path.dirname(os.__file__) + os.sep
NUMPY = f"-packages{os.sep}numpy{os.sep}"
NEEDS_COURSE = (  # the message for modules of another distribution
    'this needs the course: in a clone of the repository, pip install "./course[all]"'
)


class WengertError(Exception):
    """The base class of all errors that the library raises."""


class OperandError(WengertError, TypeError):
    """Data or an operand is not one real number."""


class HandmadeNodeError(WengertError, TypeError):
    """A node made by hand (see `wengert.handmade`) is invalid, or is used where only a registered operation works."""


class OperationError(WengertError, ValueError):
    """The registration of an operation is invalid, or its rule does not fit its operands."""


class LengthError(WengertError, ValueError):
    """Two lengths differ that must agree; the message names both."""


class DataError(WengertError, ValueError):
    """Data cannot be computed with: it is empty or not finite, or names a class that does not exist."""


class ArgumentError(WengertError, ValueError):
    """An argument has an invalid value; the message names it and what was expected."""


class NonFiniteError(WengertError, ArithmeticError):
    """A nan or an infinity came up under `wengert.strict` or `wengert.detect_anomaly`.

    Attributes:
        anomaly: the operation, its operands and the line; see `wengert.checking.anomalies.Anomaly`. After an error in
            another process, as in a pool, only its text, since a node cannot leave the process of its graph.
    """

    def __init__(self, anomaly: Any) -> None:
        super().__init__(anomaly)
        self.anomaly: Any = anomaly

    def __reduce__(self) -> tuple[type, tuple[str]]:
        """Pickle the text alone."""
        return type(self), (str(self.anomaly),)


class RootError(WengertError, ArithmeticError):
    """`wengert.root` or `wengert.fixed_point` did not find what they look for.

    Attributes:
        x: the best point that was found.
        residual: the function there.
        steps: how often the function was evaluated.
    """

    def __init__(self, message: str, x: float = nan, residual: float = nan, steps: int = 0) -> None:
        super().__init__(message)
        self.x: float = x
        self.residual: float = residual
        self.steps: int = steps


class StaleRecordingError(WengertError):
    """A compiled function and its Python code gave different results: something that was recorded as fixed changed."""


class GradientError(WengertError, AssertionError):
    """A gradient differs from that of its function; the message names the worst input, and `report` has all inputs."""

    def __init__(self, report: object = None) -> None:
        super().__init__(str(report))
        self.report: Any = report


class CheckpointError(WengertError):
    """A checkpoint cannot be written or read, or is damaged; the message names the cause."""


class MissingExtraError(WengertError, ImportError):
    """An optional library is not installed; the message has the command that installs it."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library, or say which command installs it.

    Raises:
        MissingExtraError: the library is not installed.

    >>> require("json", "plot").dumps([1])
    '[1]'
    >>> require("no_such_library", "plot")
    Traceback (most recent call last):
        ...
    wengert.errors.MissingExtraError: this needs no_such_library: pip install no_such_library (the extra "plot")
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingExtraError(f'this needs {library}: {to_install(library)} (the extra "{extra}")') from error


def to_install(library: str) -> str:
    """The command that brings a library, which need not know where Wengert was installed from.

    >>> to_install("sklearn"), to_install("numpy")
    ('pip install scikit-learn', 'pip install numpy')
    """
    return f"pip install {'scikit-learn' if library == 'sklearn' else library}"


def counted(count: int, noun: str) -> str:
    """Write a number of things, with the plural of the noun.

    >>> counted(1, "call"), counted(2_000, "call"), counted(0, "specialization")
    ('1 call', '2,000 calls', '0 specializations')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Write the end of a message about an unknown name, with the closest of the known ones; '' if none is close.

    >>> did_you_mean("sotfmax", ["softmax", "SGD"]), did_you_mean("sgd", ["softmax", "SGD"]), did_you_mean("x", ["SGD"])
    ('; did you mean softmax?', '; did you mean SGD?', '')
    """
    from difflib import get_close_matches  # rarely needed

    known = list(known)
    close = [other for other in known if other.lower() == name.lower()] or get_close_matches(name, known, 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


class Elsewhere:
    """An attribute of other libraries' objects: reading it raises an AttributeError that says what to write here.

    So `hasattr` is False, and a subclass or an object may have an attribute of that name.
    """

    def __init__(self, name: str, hint: str) -> None:
        self.name: str = name
        self.hint: str = hint

    def __get__(self, instance: object, owner: type) -> Any:
        message = f"{owner.__name__!r} object has no attribute {self.name!r}: {self.hint}"
        raise AttributeError(message, name=self.name, obj=instance)


def refer(owner: type, hints: dict[str, str]) -> None:
    """Answer each name, as an attribute of a class, by its hint; `dir` does not list it."""
    for name, hint in hints.items():
        setattr(owner, name, Elsewhere(name, hint))
    owner.__dir__ = _listed  # type: ignore[assignment,method-assign]


def answer(module: str, hints: dict[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which says what to write for a name that it lacks.

    Args:
        module: the module's name.
        hints: what to write for names of other libraries, which stand here in lower case and without underscores.
    """

    def answered(name: str) -> Any:
        home = sys.modules[module]
        hint = hints.get(name.replace("_", "").lower())
        hint = f": write {hint}" if hint else did_you_mean(name, home.__all__)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=home)

    return answered


Submodules = Callable[[str], ModuleType]  # the `__getattr__` of a package


def submodules(package: str) -> Submodules:
    """Return the `__getattr__` of a package, with which its modules are imported when they are used."""

    def imported(name: str) -> ModuleType:
        try:
            return import_module(f"{package}.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return imported


def _listed(self: object) -> list[str]:
    from inspect import getattr_static  # rarely needed

    return [name for name in object.__dir__(self) if not isinstance(getattr_static(self, name, None), Elsewhere)]


def file_name(path: Any) -> str:
    """Return a path as a string. Numbers are refused, though `open` would take one for an open file's descriptor.

    Raises:
        ArgumentError: it is neither a string nor an `os.PathLike`.

    >>> file_name(1)
    Traceback (most recent call last):
        ...
    wengert.errors.ArgumentError: the path is 1; expected a string or a pathlib.Path
    """
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise ArgumentError(f"the path is {path!r:.60}; expected a string or a pathlib.Path")
    return name


# -- source lines, for messages and warnings --------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a file; for a cell or an interactive session, `file` is the name that Python gives it."""

    file: str
    number: int

    @property
    def source(self) -> str:
        """Its text; empty if Python no longer finds it."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        text = self.source
        return f"{os.path.basename(self.file)}, line {self.number}{f' ({text[:60]})' if text else ''}"


def running() -> Line | None:
    """Return the user's line: that of the innermost frame outside this package, the code it generates, the standard
    library and NumPy; without one, that of the innermost frame outside this package, or None.

    >>> str(running())
    '<doctest wengert.errors.running[0]>, line 1 (str(running()))'
    """
    inner: Any = None
    frame: Any = sys._getframe(1)
    while frame is not None and _is_aside(frame.f_code.co_filename):
        if inner is None and not _is_ours(frame.f_code.co_filename):
            inner = frame
        frame = frame.f_back
    frame = frame or inner
    return None if frame is None else Line(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(file: str) -> bool:
    return file.startswith(HERE) or file == "<lifted>"


def _is_aside(file: str) -> bool:
    """Return True for a file of this package, the standard library or NumPy."""
    return _is_ours(file) or NUMPY in file or (file.startswith(STANDARD) and "-packages" not in file)


def warn_once(said: set[str], message: str) -> None:
    """Warn at the user's line, once for each message."""
    if message not in said:
        said.add(message)
        warn(message)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
