"""The process that tries the class of a file: ``python probe.py PATH CLASS MEMORY``.

It runs as a program of its own and imports nothing of Wengert's, so that whatever the file that is examined does,
breaks or replaces harms nothing; and it knows no answers. It writes one line of JSON for each thing that happens, to
what was its standard output: what is there; then, when it has read from its standard input what is to be tried and on
which numbers, the numbers that came out. What the file prints goes where the errors go.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from queue import Queue
from threading import Thread
from types import ModuleType
from typing import Any

__all__ = ["Find", "attempt", "beside", "limit", "serve"]

Find = Callable[[], tuple[str, type, Mapping[str, Any]]]
"""What gives the class to try: its name, itself, and the names of the file."""


def beside(name: str) -> Any:
    """The module that stands beside this file, without a place among the modules that the examined file may import."""
    spec = spec_from_file_location(name, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(find: Find, path: str, words: Any, plans: Any, modules: Mapping[str, Any]) -> None:
    """Find the class, tell what is there, read what to try, and tell what came out; then end the process."""
    kits, load = modules["kit"], modules["load"]
    trials = {trial[1]: modules["trials"].Trial(*trial) for trial in modules["trials"].TRIALS + modules["notes"].TRIALS}
    me, lines = os.getpid(), Queue[str]()

    def tell(**what: Any) -> None:
        if os.getpid() != me:  # a copy that the examined file made with os.fork() has nothing to say
            os._exit(0)
        words.write(json.dumps(what) + "\n")
        words.flush()

    Thread(target=_follow, args=(plans, lines), daemon=True).start()
    try:
        name, kind, space = find()
        names = load.parts_of(kind, kits.NAMES, path)
    except load.CannotTryError as stop:
        tell(stop=str(stop), place=stop.place)
    else:
        methods = {need for trial in trials.values() for need in trial.needs.split() if need not in kits.NAMES}
        has = sorted(method for method in methods if hasattr(kind, method))
        tell(name=name, names=names, has=has, by_hand=kits.by_hand(space, names))
        plan = json.loads(lines.get())
        for wanted in plan["trials"]:
            kit = kits.Kit(kind, names, space, plan["mode"], plan["seed"], plan["product"])
            tell(start=wanted)
            tell(**attempt(trials[wanted], kit, path, load))
        tell(end=True)
    os._exit(0)  # whatever threads and exit handlers the file left behind


def _follow(plans: Any, lines: Queue[str]) -> None:
    """Take what the parent writes; when it is gone, end this process and all that it has started."""
    for line in plans:
        lines.put(line)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def attempt(trial: Any, kit: Any, path: str, load: Any) -> dict[str, Any]:
    """One trial: the numbers that came out, and the error that ended it, if one did."""
    done: dict[str, Any] = {"done": trial.id, "numbers": []}
    try:
        for _, _, number in trial.outcomes(kit):
            done["numbers"].append(number)
    except BaseException as error:  # the examined file may raise anything: an error is an outcome
        kind = f"unfit {error.kind}" if type(error).__name__ == "UnfitError" else type(error).__name__
        says = load.said(error).removeprefix("UnfitError: ")
        done["error"] = {"kind": kind[:100], "says": says[:400], "place": load.place(path, error.__traceback__)}
    return done


def limit(memory: int) -> None:
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
    """Try the class of a file: ``probe.py PATH CLASS MEMORY``."""
    path, wanted, memory = sys.argv[1:]
    words, plans = os.fdopen(os.dup(1), "w", encoding="ascii"), os.fdopen(os.dup(0), encoding="ascii")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    modules = {name: beside(name) for name in ("kit", "trials", "notes", "load")}
    load = modules["load"]
    limit(int(memory))
    sys.modules["__main__"] = ModuleType("__main__")  # the file finds nothing of this program in it

    def find() -> tuple[str, type, Mapping[str, Any]]:
        module = load.load(path)
        space = vars(module)
        return *load.choose(space, module.__name__, wanted, modules["kit"].NAMES, os.path.basename(path)), space

    serve(find, path, words, plans, modules)


if __name__ == "__main__":
    main()
