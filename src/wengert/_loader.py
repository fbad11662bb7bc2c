"""Which engine runs: the compiled one or the interpreted one.

`node.py`, `engine.py`, `graph.py`, `optim.py`, `parameters.py`, `compiler/fused.py`: one text runs in two ways, as
extensions that `setup.py` compiled from them, or as the Python files they are. Python's own rule, "an extension beside
a `.py` wins", is right except twice:

- **`WENGERT_INTERPRETED=1`** in the environment asks for the Python files: to step through them in a debugger, to
  measure, to test.
- **The source was edited after it was compiled.** The extension would run what the file no longer says, without a
  word. So `setup.py` leaves a small text file beside the extensions (`_compiled.<kind of Python>.txt`) with a hash of
  every source, and if one differs the Python files run, and a `RuntimeWarning` names the command that compiles again.
  (Where nothing could be compiled it holds the reason, which `wengert info` repeats.)

`wengert/__init__.py` calls `install()` before it imports anything else. The decision is taken once, for all of them
together, since they share C structures. When Python's own rule is right, nothing is installed at all;
otherwise a finder at the head of `sys.meta_path` answers for these names only.

The hash is `importlib.util.source_hash`, by which Python itself tells whether a cached `.pyc` is older than its source
(PEP 552). It takes 2 microseconds for a file of 10 kB where SHA-256 takes 40, and this runs at each start.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import source_hash, spec_from_file_location
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

__all__ = ["COMPILED", "KIND", "REBUILD", "Status", "install", "show_source", "status"]

COMPILED = (
    "node",
    "engine",
    "graph",
    "optim",
    "parameters",
    "compiler.fused",
    "compiler.captures",
    "compiler.executable",
    "compiler.argument_reader",
    "compiler.callpath",
    "training.batches",
)
"""The modules that `setup.py` compiles when they have a `.pxd` beside them."""

REBUILD = "pip install -e ."
"""The command that compiles a source tree again."""

KIND = EXTENSION_SUFFIXES[0].removeprefix(".").rpartition(".")[0]
"""This kind of Python, as the names of extensions have it."""


class Status(NamedTuple):
    """What runs and why: `compiled`, and `reason`, a phrase for people.

    >>> print(Status(False, "WENGERT_INTERPRETED is set"))
    interpreted (WENGERT_INTERPRETED is set)
    """

    compiled: bool
    reason: str

    def __str__(self) -> str:
        return f"{'compiled' if self.compiled else 'interpreted'} ({self.reason})"


class PythonFileFinder:
    """Finds these modules as `.py` files, though an extension stands beside each."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own `.py`, or None: then the next finder is asked."""
        package, _, name = fullname.partition(".")
        if package != "wengert" or name not in COMPILED:
            return None
        file = f"{_stem(os.path.dirname(__file__), name)}.py"
        return spec_from_file_location(fullname, file, loader=SourceFileLoader(fullname, file))


_status = Status(False, "not decided yet")


def status() -> Status:
    """Which engine runs, as `wengert info` says it."""
    return _status


def install() -> None:
    """Decides, once, which engine this process runs. Takes under half a millisecond; a second call does nothing."""
    global _status
    if _status.reason != "not decided yet":
        return
    folder = os.path.dirname(__file__)
    built = [name for name in COMPILED if _extension(folder, name)]
    _status, stale = _decide(folder, built)
    if built and not _status.compiled:
        sys.meta_path.insert(0, PythonFileFinder)
    if stale:
        import warnings  # on this rare path only

        warnings.warn(
            f"wengert runs interpreted: {_status.reason}. To compile again: {REBUILD}",
            RuntimeWarning,
            stacklevel=3,  # the line that imports wengert, as far as it can be told
        )


def show_source(method: Any) -> None:
    """Have `inspect.getsource`, and the ?? of notebooks, find the text of a compiled method in its `.py` file."""
    if _status.compiled:
        file = os.path.join(os.path.dirname(__file__), os.path.basename(method.__code__.co_filename))
        text = method.__code__.replace(co_filename=file)
        method.__wrapped__ = FunctionType(text, {}, method.__name__, method.__defaults__)


def _decide(folder: str, built: list[str]) -> tuple[Status, bool]:
    """What runs, and whether the user should hear that extensions are there but stale."""
    if os.environ.get("WENGERT_INTERPRETED", "0") not in ("", "0"):
        return Status(False, "WENGERT_INTERPRETED is set"), False
    if not built:
        return Status(False, _missing(folder)), False
    changed = _changed(folder, built)
    if changed is None:
        return Status(True, "the extensions match their sources"), False
    return Status(False, changed), True


def _missing(folder: str) -> str:
    """Why there are no extensions, in words: the reason that `setup.py` left, or what can be told from the files."""
    record = _record(folder)
    if record:
        reason = record[0].removeprefix("not compiled: ")
        return reason if reason != record[0] else "the extensions are gone since they were compiled"
    names = os.listdir(folder) if os.path.isdir(folder) else []  # an archive on sys.path holds no extensions
    kinds = [name.split(".")[1] for name in names if name.startswith("_compiled.")]
    if kinds:
        return f"compiled for {', '.join(sorted(kinds))} alone, and this Python is {KIND}; to compile: {REBUILD}"
    return "installed without extensions: as a wheel for every platform, or from sources that were never built"


def _changed(folder: str, built: list[str]) -> str | None:
    """How the extensions differ from the sources beside them, in words; None if they do not."""
    recorded = _record(folder)
    if not recorded:
        return "nothing tells what source the extensions were compiled from"
    for expected, name in map(str.split, recorded):
        if name.endswith(".py") and name.removesuffix(".py").replace("/", ".") not in built:
            return f"{name} has no extension, though others have"
        try:
            with open(os.path.join(folder, name), "rb") as source:
                actual = source_hash(source.read()).hex()
        except OSError:
            return f"{name} is gone since the extensions were compiled"
        if actual != expected:
            return f"{name} has changed since it was compiled"
    return None


def _record(folder: str) -> list[str]:
    """The lines of what `setup.py` left for this kind of Python; none if it left nothing."""
    try:
        with open(os.path.join(folder, f"_compiled.{KIND}.txt"), encoding="utf-8", errors="replace") as record:
            return record.read().splitlines()
    except OSError:
        return []


def _extension(folder: str, name: str) -> bool:
    return any(os.path.exists(_stem(folder, name) + suffix) for suffix in EXTENSION_SUFFIXES)


def _stem(folder: str, name: str) -> str:
    """The path of a module without its suffix."""
    return os.path.join(folder, *name.split("."))
