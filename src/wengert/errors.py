"""Every error that Wengert raises, as one tree.

::

    WengertError
    ├── OperandError        (TypeError)    data or an operand is not a number
    ├── HandmadeNodeError   (TypeError)    a node made by hand is invalid, or cannot be used here
    ├── OperationError      (ValueError)   an operation's registration or rule is invalid
    ├── LengthError         (ValueError)   two lengths differ that must agree
    ├── DataError           (ValueError)   the user's data cannot be computed with
    ├── ArgumentError       (ValueError)   an argument has an invalid value
    │   └── KeywordError    (TypeError)    a function has no parameter of this name
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
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from math import nan
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["ArgumentError", "CheckpointError", "DataError", "GradientError", "HandmadeNodeError", "KeywordError"]
__all__ += ["LengthError", "MissingExtraError", "NonFiniteError", "OperandError", "OperationError", "RootError"]
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


class KeywordError(ArgumentError, TypeError):
    """A function has no parameter of this name, or not with this value; the message says what to write instead."""


class NonFiniteError(WengertError, ArithmeticError):
    """A nan or an infinity came up under `wengert.strict` or `wengert.detect_anomaly`; or under `strict` a second
    derivative at a kink, which is none.

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


def unknown_keyword(function: str, name: str, known: Iterable[str], hints: Mapping[str, str]) -> KeywordError:
    """The error for a keyword argument that a function does not take.

    Args:
        function: what was called, as its name is written.
        name: the keyword.
        known: the names of its parameters.
        hints: what to write for the names of other libraries.

    >>> print(unknown_keyword("Value", "lable", ["data", "label"], {}))
    Value has no parameter lable: its parameters are data, label; did you mean label?
    """
    known = list(known)
    hint = f"; {hints[name]}" if name in hints else did_you_mean(name, known)
    return KeywordError(f"{function} has no parameter {name}: its parameters are {', '.join(known)}{hint}")


def no_none() -> KeywordError:
    """The error for `zero_grad(set_to_none=True)`."""
    return KeywordError(
        "zero_grad(set_to_none=True): a gradient is always a number, and becomes 0.0: write zero_grad()"
    )


def no_graph() -> KeywordError:
    """The error for `backward(create_graph=True)`."""
    return KeywordError(
        "backward(create_graph=True): gradients are numbers, not Values. For a derivative that has derivatives write "
        "wengert.grad(f): wengert.grad(wengert.grad(f))(x), or wengert.hessian(f)(xs)"
    )


class Elsewhere:
    """An attribute of other libraries' objects: reading it raises an AttributeError that says what to write here.

    So `hasattr` is False, and a subclass, an object or another base of its class may have an attribute of that name.
    """

    def __init__(self, name: str, hint: str) -> None:
        self.name: str = name
        self.hint: str = hint

    def __get__(self, instance: object, owner: type) -> Any:
        other = self._other(owner)
        if other is None:
            raise self._error(instance, owner)
        bind = getattr(type(other), "__get__", None)
        return bind(other, instance, owner) if bind else other

    def _other(self, owner: type) -> Any:
        """Return the attribute of this name that another base has, or None."""
        there = [vars(base)[self.name] for base in owner.__mro__ if self.name in vars(base)]
        return next((attribute for attribute in there if not isinstance(attribute, Elsewhere)), None)

    def _error(self, instance: object, owner: type) -> AttributeError:
        message = f"{owner.__name__!r} object has no attribute {self.name!r}{self.hint}"
        return AttributeError(message, name=self.name, obj=instance)


class ElsewhereToo(Elsewhere):
    """One that is not set either, since an object has no attributes of its own.

    Python alone would say "read-only". An object of a subclass keeps it in its `__dict__`, as any other attribute.
    """

    def __get__(self, instance: object, owner: type) -> Any:
        own = getattr(instance, "__dict__", {})
        return own[self.name] if self.name in own else super().__get__(instance, owner)

    def __set__(self, instance: object, value: object) -> None:
        other, own = self._other(type(instance)), getattr(instance, "__dict__", None)
        if hasattr(type(other), "__set__"):
            type(other).__set__(other, instance, value)
        elif own is None:
            raise self._error(instance, type(instance))
        else:
            own[self.name] = value

    def __delete__(self, instance: object) -> None:
        other, own = self._other(type(instance)), getattr(instance, "__dict__", {})
        if hasattr(type(other), "__delete__"):
            type(other).__delete__(other, instance)
        elif own.pop(self.name, self) is self:
            raise self._error(instance, type(instance))


def refer(owner: type, hints: Mapping[str, str], misspelled: Iterable[str] = ()) -> None:
    """Answer each name, as an attribute of a class, by its hint; `dir` of an object does not list it.

    Args:
        owner: the class.
        hints: what to write for names of other libraries.
        misspelled: its own names that are answered if a letter is missing or two are swapped, too. A `__getattr__`
            could answer any name, but Python then looks up each attribute in a slower way: `x.tanh()` took 80 % more.
    """
    answers = {name: f": {hint}" for name, hint in hints.items()}
    for name in misspelled:
        answers |= {slip: f"; did you mean {name}?" for slip in slips(name) if not hasattr(owner, slip)}
    kind = Elsewhere if owner.__dictoffset__ else ElsewhereToo
    for name, answer in answers.items():
        setattr(owner, name, kind(name, answer))
    owner.__dir__ = _listed  # type: ignore[assignment,method-assign]


def slips(name: str) -> list[str]:
    """List a name as it is often misspelled: without one letter, with two neighbours swapped, in the plural.

    >>> slips("relu")
    ['elu', 'rlu', 'reu', 'rel', 'erlu', 'rleu', 'reul', 'relus']
    """
    missing = [name[:i] + name[i + 1 :] for i in range(len(name))]
    swapped = [name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)]
    return [*missing, *swapped, f"{name}s"]


def answer(module: str, hints: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which says what to write for a name that it lacks.

    Args:
        module: the module's name.
        hints: what to write for names of other libraries, which stand here in lower case, without underscores and
            without a number of dimensions at the end, as in Conv2d.
    """

    def answered(name: str) -> Any:
        home = sys.modules[module]
        plain = name.replace("_", "").lower()
        hint = hints.get(plain) or (hints.get(plain[:-2]) if plain.endswith(("1d", "2d", "3d")) else None)
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
    names: dict[str, bool] = dict.fromkeys(getattr(self, "__dict__", ()), True)
    for base in type(self).__mro__:
        for name, attribute in vars(base).items():
            names[name] = names.get(name, False) or not isinstance(attribute, Elsewhere)
    return [name for name in object.__dir__(self) if names.get(name, True)]


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
