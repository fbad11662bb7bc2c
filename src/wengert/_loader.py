"""Chooses which engine runs: the compiled one or the interpreted one.

The modules in `COMPILED` run either as extensions that `setup.py` compiled, or as the Python files they were compiled
from. Python's own rule, "an extension beside a `.py` wins", is right except in two cases:

- **`WENGERT_INTERPRETED=1`** in the environment asks for the Python files: to step through them in a debugger, to
  measure, to test.
- **The source was edited after it was compiled.** The extension would silently run the old code. So `setup.py` leaves
  a small text file beside the extensions (`_compiled.<kind of Python>.txt`) with a hash of every source. If one
  differs, the Python files run, and a `RuntimeWarning` names the command that compiles again.

Where nothing could be compiled, the file holds the reason. Then, too, a `RuntimeWarning` says so, once in each process:
the compiler's first error, what to do, and that `WENGERT_INTERPRETED=1` ends the warning. Of a wheel for every
platform, which has no such file, nothing is said: it was asked for (`WENGERT_PURE=1`), and in a browser or an archive
there is nothing to compile with.

`wengert/__init__.py` calls `install()` before it imports anything else. The decision is made once, for all of them
together, since they share C structures. When Python's own rule is right, nothing is installed; otherwise a finder at
the head of `sys.meta_path` finds these modules only.

The hash is `importlib.util.source_hash`, with which Python itself checks whether a cached `.pyc` is older than its
source (PEP 552). It takes 2 microseconds for a file of 10 kB where SHA-256 takes 40, and this runs at each start.
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
    "compiler.call.fused",
    "compiler.call.captures",
    "compiler.call.executable",
    "compiler.call.argument_reader",
    "compiler.call.callpath",
    "compiler.lift.in_order",
    "compiler.reach.call_trace",
    "compiler.traced.tracers",
    "training.batches",
    "training.correct",
    "training.orders",
)
"""The modules that `setup.py` compiles when they have a `.pxd` beside them."""

SHARED = "_shared"
"""What Cython itself adds to them: an extension without a source here."""

REBUILD = "pip install -e ."
"""The command that recompiles a source tree."""

COMPILE = (
    "install a C compiler and Python's headers (Debian: apt-get install gcc python3-dev), then this package again, "
    "with pip's options --force-reinstall --no-cache-dir"
)
"""What to do where nothing could be compiled; pip would take the package that it has built without."""

KIND = EXTENSION_SUFFIXES[0].removeprefix(".").rpartition(".")[0]
"""This kind of Python, as it is written in the file names of extensions."""


class Status(NamedTuple):
    """Which engine runs and why: `compiled`, and `reason`, a phrase for people; where the engine is interpreted, and
    nobody asked for it, also `remedy`: what to do.

    >>> print(Status(False, "WENGERT_INTERPRETED is set"))
    interpreted (WENGERT_INTERPRETED is set)
    """

    compiled: bool
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{'compiled' if self.compiled else 'interpreted'} ({self.reason})"


class PythonFileFinder:
    """Finds the modules in `COMPILED` as `.py` files although there are extensions beside them."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module's `.py` file, or None for other modules."""
        package, _, name = fullname.partition(".")
        if package != "wengert" or name not in COMPILED:
            return None
        file = f"{_stem(os.path.dirname(__file__), name)}.py"
        return spec_from_file_location(fullname, file, loader=SourceFileLoader(fullname, file))


_status = Status(False, "not decided yet")


def status() -> Status:
    """Return which engine runs and why, as `wengert info` prints it."""
    return _status


def install() -> None:
    """Decide, once, which engine this process runs, in under half a millisecond; a second call does nothing."""
    global _status
    if _status.reason != "not decided yet":
        return
    folder = os.path.dirname(__file__)
    built = [name for name in COMPILED if _extension(folder, name)]
    _status = _decide(folder, built)
    if built and not _status.compiled:
        sys.meta_path.insert(0, PythonFileFinder)
    if _status.remedy:
        import warnings  # on this rare path only

        warnings.warn(
            f"wengert runs interpreted, with the same results and many times slower: {_status.reason}. To compile it: "
            f"{_status.remedy} (or set WENGERT_INTERPRETED=1, which asks for this engine, without a warning)",
            RuntimeWarning,
            stacklevel=3,  # at best the line that imports wengert
        )


def show_source(method: Any) -> None:
    """Let `inspect.getsource`, and ?? in notebooks, find the source of a compiled method in its `.py` file."""
    if _status.compiled:
        file = os.path.join(os.path.dirname(__file__), os.path.basename(method.__code__.co_filename))
        text = method.__code__.replace(co_filename=file)
        method.__wrapped__ = FunctionType(text, {}, method.__name__, method.__defaults__)


def _decide(folder: str, built: list[str]) -> Status:
    """Return which engine runs."""
    if os.environ.get("WENGERT_INTERPRETED", "0") not in ("", "0"):
        return Status(False, "WENGERT_INTERPRETED is set")
    if not built:
        return _missing(folder)
    changed = _changed(folder, built)
    if changed is None:
        return Status(True, "the extensions match their sources")
    return Status(False, changed, REBUILD)


def _missing(folder: str) -> Status:
    """Explain why there are no extensions: by the reason that `setup.py` left, or by the files that are there."""
    record = _record(folder)
    if record:
        reason = record[0].removeprefix("not compiled: ")
        if reason != record[0]:
            return Status(False, reason, COMPILE)
        return Status(False, "the extensions were deleted after they were compiled")
    names = os.listdir(folder) if os.path.isdir(folder) else []  # an archive on sys.path holds no extensions
    kinds = [name.split(".")[1] for name in names if name.startswith("_compiled.")]
    if kinds:
        return Status(False, f"compiled for {', '.join(sorted(kinds))} only, and this Python is {KIND}", REBUILD)
    return Status(False, "installed without extensions: as a wheel for every platform, or from sources not built yet")


def _changed(folder: str, built: list[str]) -> str | None:
    """Explain how the extensions differ from the sources beside them; None if they match."""
    recorded = _record(folder)
    if not recorded:
        return "the record of the sources that the extensions were compiled from is missing"
    if not _extension(folder, SHARED):
        return f"{SHARED} has no extension, but other modules have"
    for expected, name in map(str.split, recorded):
        if name.endswith(".py") and name.removesuffix(".py").replace("/", ".") not in built:
            return f"{name} has no extension, but other modules have"
        try:
            with open(os.path.join(folder, name), "rb") as source:
                actual = source_hash(source.read()).hex()
        except OSError:
            return f"{name} was deleted after the extensions were compiled"
        if actual != expected:
            return f"{name} has changed since it was compiled"
    return None


def _record(folder: str) -> list[str]:
    """Read the lines that `setup.py` left for this kind of Python; none if it left nothing."""
    try:
        with open(os.path.join(folder, f"_compiled.{KIND}.txt"), encoding="utf-8", errors="replace") as record:
            return record.read().splitlines()
    except OSError:
        return []


def _extension(folder: str, name: str) -> bool:
    return any(os.path.exists(_stem(folder, name) + suffix) for suffix in EXTENSION_SUFFIXES)


def _stem(folder: str, name: str) -> str:
    return os.path.join(folder, *name.split("."))
