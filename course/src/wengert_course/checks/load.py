"""Run the file that is examined: a program, a module of a package, or a notebook's cells, and choose its class.

The process that tries a class loads this file alone: it imports nothing of Wengert's.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import sys
from collections.abc import Mapping
from types import ModuleType, TracebackType
from typing import Any

__all__ = ["CannotTryError", "choose", "load", "parts_of", "pieces", "place"]


class CannotTryError(Exception):
    """The file or its class cannot be tried at all; `place` says where, as "line 3"."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place: str = place


def said(error: BaseException) -> str:
    """One line of what an error says, however long, strange or broken its text is."""
    try:
        text = str(error)
    except Exception:  # the examined file wrote the error's class, and its __str__ may raise anything
        text = "(its text cannot be made)"
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def place(path: str, trace: TracebackType | None, quoted: bool = False) -> str:
    """The last line of the examined file under an error, and what it says; empty if there is none."""
    found = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == path or name.startswith(f"{path}, cell "):
            found = f"{name[len(path) + 2 :]}, line {trace.tb_lineno}".removeprefix(", ")
            text = linecache.getline(name, trace.tb_lineno).strip() if quoted else ""
            found += f": {text:.60}" if text else ""
        trace = trace.tb_next
    return found


def pieces(path: str) -> list[tuple[str, bytes]]:
    """The file, or the cells of a notebook, each with its name."""
    with open(path, "rb") as file:
        text = file.read()
    if not path.endswith(".ipynb"):
        return [(path, text)]
    return [(f"{path}, cell {number}", cell.encode("utf-8", "replace")) for number, cell in _cells(text)]


def _cells(text: bytes) -> list[tuple[int, str]]:
    """The code cells of a notebook, with their numbers from 1 as pages show them, without what is no Python.

    A cell with the tag "unchecked", as one that shows a mistake, is left out.
    """
    try:
        found = []
        code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(code, 1):
            if "unchecked" not in cell.get("metadata", {}).get("tags", ()):
                found.append((number, _python("".join(cell["source"]))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = "it is no notebook: expected JSON with a list of cells, each with cell_type and source"
        line = getattr(error, "lineno", 0)
        raise CannotTryError(message, f"line {line}" if line else "") from None
    return found


KEPT = ("%%time", "%%timeit", "%%capture", "%%prun")


def _python(source: str) -> str:
    """A cell without what is no Python: a line that begins with % or !, or asks with ?, becomes an empty line."""
    try:
        ast.parse(source)
        return source  # a line of a text in quotes may begin with anything
    except (SyntaxError, ValueError):
        lines = source.split("\n")
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and not first.startswith(KEPT):
        return ""  # a cell of another language
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith(("%", "!", "?")) or bare.endswith("?"):
            indent = line[: len(line) - len(line.lstrip())]
            lines[number] = f"{indent}pass" if indent else ""
    return "\n".join(lines)


def load(path: str, failed: list[CannotTryError]) -> ModuleType:
    """Run the file as the module that it is, so that what stands under ``if __name__ == "__main__":`` does not run.

    Where a cell of a notebook fails, because another is not filled in yet, what the others make is not lost: what
    failed is noted in `failed`.
    """
    folder, file = os.path.split(path)
    name = os.path.splitext(file)[0]
    sys.argv = [path]
    os.environ.setdefault("MPLBACKEND", "Agg")  # a picture that the file shows opens no window, and waits for nobody
    if os.path.isfile(os.path.join(folder, "__init__.py")) and path.endswith(".py"):
        return _imported(folder, "" if name == "__init__" else name, path)
    name = f"examined_{name}" if name in sys.modules or not name.isidentifier() else name
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    sys.path[0] = folder
    parts = pieces(path)
    for name, text in parts:
        try:
            _run(path, name, text, vars(module))
        except CannotTryError as error:
            if len(parts) == 1 or isinstance(error.__context__, SyntaxError):
                raise
            print(f"{error.place}: {error}", file=sys.stderr)
            failed.append(error)
    return module


def _imported(folder: str, name: str, path: str) -> ModuleType:
    """A module of a package, by its full name: so its relative imports work, and a compiled one is the compiled one."""
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        name = f"{package}.{name}".rstrip(".")
    sys.path[0] = folder
    _run(path, "", f"__import__({name!r})", {})
    return sys.modules[name]


def _run(path: str, name: str, text: str | bytes, space: dict[str, Any]) -> None:
    """Run a piece of the file; CannotTryError says what it raises, and where."""
    if isinstance(text, bytes) and name != path:
        source = text.decode("utf-8", "replace")
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(compile(text, name, "exec", dont_inherit=True), space)
    except SyntaxError as error:
        at = str(error.filename)
        if at != path and not at.startswith(f"{path}, cell "):
            says = f"{said(error)}, while the file was imported"
            raise CannotTryError(says, place(path, error.__traceback__)) from None
        cell = f"{at[len(path) + 2 :]}, " if at != path else ""
        where = f"{cell}line {error.lineno}" + (f", column {error.offset}" if error.offset else "")
        magic = ": it is a command of notebooks" if str(error.text).lstrip().startswith(("%", "!")) else ""
        raise CannotTryError(f"{type(error).__name__}: {error.msg}{magic}", where if error.lineno else "") from None
    except SystemExit as error:
        at = place(path, error.__traceback__)
        raise CannotTryError("the file ends the program (sys.exit) while it is imported", at) from None
    except BaseException as error:  # whatever the file raises is told, a KeyboardInterrupt of its own too
        advice = ": more memory than --memory allows" if isinstance(error, MemoryError) else ""
        advice = ': what asks belongs under if __name__ == "__main__":' if isinstance(error, EOFError) else advice
        says = f"{said(error)}, while the file was imported{advice}"
        raise CannotTryError(says, place(path, error.__traceback__)) from None


def choose(space: Mapping[str, Any], module: str, wanted: str, names: Mapping[str, Any], file: str) -> tuple[str, type]:
    """The class to try: the one named, else Value, else the one that is like a Value."""
    classes = {name: thing for name, thing in list(space.items()) if isinstance(thing, type)}
    if wanted:
        if wanted not in classes:
            there = ", ".join(sorted(classes)) or "none"
            raise CannotTryError(f"there is no class {wanted} in it; the classes in it: {there}")
        return wanted, classes[wanted]
    if "Value" in classes:
        return "Value", classes["Value"]
    own = {name: kind for name, kind in classes.items() if kind.__module__ == module}
    for those in (own, classes):
        for part, like in (("backward", hasattr), ("data", _makes)):
            chosen = {name: kind for name, kind in those.items() if any(like(kind, called) for called in names[part])}
            if len({id(kind) for kind in chosen.values()}) > 1:
                told = ", ".join(chosen)
                example = f"{file}:{next(iter(chosen))}"
                raise CannotTryError(f"several classes are like a Value: {told}; name one, as {example}")
            if chosen:
                return next(iter(chosen.items()))
    there = f"; the classes in it: {', '.join(sorted(classes))}" if classes else ""
    raise CannotTryError(f"no class in it is like a Value: expected a class with x = Value(2.0) and x.data{there}")


def _makes(kind: type, name: str) -> bool:
    """Whether what a class makes of a number has a number under a name; a class that takes none has not."""
    try:
        return isinstance(getattr(kind(2.0), name, None), (int, float))
    except BaseException:  # the examined file wrote the class, and it may raise anything
        return False


def parts_of(kind: type, names: Mapping[str, Any], path: str) -> dict[str, str]:
    """What a class calls its parts; a part that it has not is not in it."""
    try:
        one = kind(2.0)
    except BaseException as error:  # as above
        if isinstance(error, TypeError) and not any("__init__" in vars(one) for one in kind.__mro__[:-1]):
            return {}  # nothing is written yet
        raise CannotTryError(f"{kind.__name__}(2.0) raises {said(error)}", place(path, error.__traceback__)) from None
    found = {part: next((name for name in those if hasattr(one, name)), "") for part, those in names.items()}
    return {part: name for part, name in found.items() if name}
