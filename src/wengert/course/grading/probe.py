"""The process that tries the class of a file: ``python probe.py PATH CLASS MEMORY DONE...``.

It runs as a program of its own and imports nothing of Wengert's, so that whatever the file that is examined does,
breaks or replaces harms nothing. It writes one line of JSON for each thing that happens, to what was its standard
output; what the file prints goes where the errors go.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType, TracebackType
from typing import Any


def _beside(name: str) -> Any:
    """The module that stands beside this file, without a place among the modules that the examined file may import."""
    spec = spec_from_file_location(name, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trials: Any = _beside("trials")

OPERATORS: list[str] = ["add", "radd", "mul", "rmul", "sub", "rsub", "truediv", "rtruediv", "pow", "rpow", "neg", "abs"]


class CannotTryError(Exception):
    """The file or its class cannot be tried at all."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line: int = line
        self.column: int = column


def _said(error: BaseException) -> str:
    """One line of what an error says, however long, strange or broken its text is."""
    try:
        text = str(error)
    except Exception:  # the examined file wrote the error's class, and its __str__ may raise anything
        text = "(its text cannot be made)"
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _line_in(path: str, trace: TracebackType | None) -> int:
    """The last line of the examined file under an error; 0 if there is none."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _load(path: str) -> ModuleType:
    """Run the file as the module that it is, so that what stands under ``if __name__ == "__main__":`` does not run."""
    name = os.path.splitext(os.path.basename(path))[0]
    name = f"examined_{name}" if name in sys.modules or not name.isidentifier() else name
    module = ModuleType(name)
    module.__file__ = path
    with open(path, "rb") as file:
        text = file.read()
    sys.modules[name] = module
    sys.path[0] = os.path.dirname(path)
    sys.argv = [path]
    try:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        if error.filename != path:
            raise CannotTryError(
                f"{_said(error)}, while the file was imported", _line_in(path, error.__traceback__)
            ) from None
        raise CannotTryError(f"{type(error).__name__}: {error.msg}", error.lineno or 0, error.offset or 0) from None
    except SystemExit as error:
        at = _line_in(path, error.__traceback__)
        raise CannotTryError("the file ends the program (sys.exit) while it is imported", at) from None
    except BaseException as error:  # whatever the file raises is told, a KeyboardInterrupt of its own too
        advice = ""
        if isinstance(error, MemoryError):
            advice = ": more memory than --memory allows"
        raise CannotTryError(
            f"{_said(error)}, while the file was imported{advice}", _line_in(path, error.__traceback__)
        ) from None
    return module


def _part(thing: Any, part: str) -> str:
    """What a thing calls one of its parts; empty if it has none."""
    return next((name for name in trials.NAMES[part] if hasattr(thing, name)), "")


def _kit(kind: type, path: str) -> Any:
    """How to try a class; CannotTryError, if it is not like a Value."""
    try:
        one = kind(2.0)
    except BaseException as error:  # as above
        raise CannotTryError(
            f"{kind.__name__}(2.0) raises {_said(error)}", _line_in(path, error.__traceback__)
        ) from None
    names = {part: _part(one, part) for part in trials.NAMES}
    missing = [f".{part}" for part, name in names.items() if not name]
    if missing:
        raise CannotTryError(
            f"{kind.__name__} has no {' and no '.join(missing)}: expected x = {kind.__name__}(2.0) with x.data, "
            f"x.grad and x.backward()"
        )
    return trials.Kit(kind, names)


def _choose(module: ModuleType, wanted: str, path: str) -> tuple[str, Any]:
    """The class to try: the one named, else the one that is like a Value."""
    classes = {name: thing for name, thing in list(vars(module).items()) if isinstance(thing, type)}
    if wanted:
        if wanted not in classes:
            there = ", ".join(sorted(classes)) or "none"
            raise CannotTryError(f"there is no class {wanted} in it; the classes in it: {there}")
        return wanted, _kit(classes[wanted], path)
    like = {name: kind for name, kind in classes.items() if _part(kind, "backward")}
    own = {name: kind for name, kind in like.items() if kind.__module__ == module.__name__}
    like = own or like
    if "Value" in like:
        like = {"Value": like["Value"]}
    if not like:
        there = f"; the classes in it: {', '.join(sorted(classes))}" if classes else ""
        raise CannotTryError(f"no class in it is like a Value: expected data, grad and a method backward(){there}")
    if len({id(kind) for kind in like.values()}) > 1:
        file = os.path.basename(path)
        raise CannotTryError(
            f"several classes are like a Value: {', '.join(like)}; name one, as {file}:{next(iter(like))}"
        )
    name, kind = next(iter(like.items()))
    return name, _kit(kind, path)


def _try(trial: Any, kit: Any, path: str) -> dict[str, Any]:
    """One trial: the numbers that came out, and the error that ended it, if one did."""
    done: dict[str, Any] = {"done": trial.id, "numbers": []}
    if trial.needs and not hasattr(kit.make, trial.needs):
        return {**done, "absent": True}
    try:
        for _, _, number in trial.run(kit):
            done["numbers"].append(number)
    except BaseException as error:  # as above: an error is an outcome
        kind = f"unfit {error.kind}" if isinstance(error, trials.UnfitError) else type(error).__name__
        done["error"] = {
            "kind": kind,
            "says": _said(error).removeprefix("UnfitError: "),
            "line": _line_in(path, error.__traceback__),
        }
    return done


def _limit(memory: int) -> None:
    """No more memory than this, where the system can hold a process to it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    what = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    try:
        resource.setrlimit(what, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ValueError, OSError, OverflowError):  # a lower limit is set already, or the system has none so high
        return


def main() -> None:
    """Try the class of a file: ``probe.py PATH CLASS MEMORY DONE...``, DONE the trials that need no trying."""
    path, wanted, memory, *skip = sys.argv[1:]
    words = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)
    me = os.getpid()

    def tell(**what: Any) -> None:
        if os.getpid() == me:  # and not a copy that the examined file made with os.fork()
            words.write(json.dumps(what) + "\n")

    _limit(int(memory))
    try:
        name, kit = _choose(_load(path), wanted, path)
    except CannotTryError as stop:
        tell(stop=str(stop), line=stop.line, column=stop.column)
    else:
        tell(name=name, names=kit.names, has=[f"__{op}__" for op in OPERATORS if hasattr(kit.make, f"__{op}__")])
        for trial in trials.TRIALS:
            if trial.id not in skip:
                tell(start=trial.id)
                tell(**_try(trial, kit, path))
        tell(end=True)
    words.close()
    os._exit(0)  # whatever threads and exit handlers the file left behind


if __name__ == "__main__":
    main()
