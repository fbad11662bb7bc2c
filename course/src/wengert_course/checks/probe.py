"""The process that tries the class of a file: ``python probe.py PATH CLASS MEMORY STEP``.

It runs as a program of its own and imports nothing of Wengert's, so that whatever the file that is examined does,
breaks or replaces harms nothing. It writes one line of JSON for each thing that happens, to what was its standard
output: what is there; then, when it has read from its standard input what is to be tried and on which numbers, the
numbers that came out. What the file prints goes where the errors go.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from queue import Queue
from threading import Thread
from types import ModuleType
from typing import Any

__all__ = ["Find", "attempt", "converse", "limit", "serve"]

Find = Callable[[], tuple[str, type, Mapping[str, Any]]]
"""What gives the class to try: its name, itself, and the names of the file."""

FUNCTIONS = (0, 10, 11, 12)
"""The steps that ask for functions, and no class."""


def serve(find: Find, path: str, words: Any, plans: Any, modules: Mapping[str, Any]) -> None:
    """Try a class, and end the process: lines are written to `words`, and the plan is read from `plans`."""
    me, lines = os.getpid(), Queue[str]()

    def tell(line: str) -> None:
        if os.getpid() != me:  # a copy that the examined file made with os.fork() has nothing to say
            os._exit(0)
        words.write(line)
        words.flush()

    Thread(target=_follow, args=(plans, lines), daemon=True).start()
    converse(find, path, tell, lines.get, modules)
    os._exit(0)  # whatever threads and exit handlers the file left behind


def _follow(plans: Any, lines: Queue[str]) -> None:
    """Take what the parent writes; when it is gone, end this process and all that it has started."""
    for line in plans:
        lines.put(line)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def converse(
    find: Find,
    path: str,
    write: Callable[[str], None],
    read: Callable[[], str],
    modules: Mapping[str, Any],
) -> None:
    """Find the class, tell what is there, read what to try, and tell what came out."""
    kits, load = modules["kit"], modules["load"]
    trials = {name: kits.Trial(*row) for name, (row, _) in modules["trials"].gather(modules).items()}

    def tell(**what: Any) -> None:
        write(json.dumps(what) + "\n")

    try:
        name, kind, space = find()
        names = load.parts_of(kind, kits.NAMES, path)
    except load.CannotTryError as stop:
        return tell(stop=str(stop), place=stop.place)
    has = _there(kits.Kit(kind, names, space), trials.values(), kits.NAMES)
    tell(name=name, names=names, has=has)
    plan = json.loads(read())
    for wanted in plan["trials"]:
        kit = kits.Kit(kind, names, space, kits.TrialPlan(*plan["plan"]))
        tell(**attempt(trials[wanted], kit, path, load))
    return None


def _there(kit: Any, trials: Iterable[Any], parts: Mapping[str, Any]) -> list[str]:
    """What a class and the file around it have: methods, networks of their own, gradients that were written by hand."""
    methods = {need for trial in trials for need in trial.needs.split() if need not in parts}
    has = sorted(method for method in methods if hasattr(kit.make, method))
    classes = [name for name in ("Neuron", "Layer", "MLP") if isinstance(kit.space.get(name), type)]
    own = [name for name in classes if kit.space[name].__module__ == kit.space.get("__name__")]
    return has + own + ["train"] * callable(kit.space.get("train")) + ["by hand"] * kit.by_hand()


def attempt(trial: Any, kit: Any, path: str, load: Any) -> dict[str, Any]:
    """One trial: the numbers that came out, and the error that ended it, if one did."""
    done: dict[str, Any] = {"done": trial.id, "numbers": []}
    try:
        for _, _, number in trial.outcomes(kit):
            done["numbers"].append(number)
    except BaseException as error:  # the examined file may raise anything: an error is an outcome
        own = getattr(error, "kind", "") if type(error).__name__ == "UnfitError" else ""
        kind = f"unfit {own}" if own else type(error).__name__ or "error"
        says = load.said(error).removeprefix("UnfitError: ")
        says = f"{kit.doing} raises {says}" if kit.doing and not own else says
        done["error"] = {"kind": kind[:100], "says": says[:400], "place": load.place(path, error.__traceback__, True)}
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


def beside(name: str) -> Any:
    """The module that stands beside this file, without a place among the modules that the examined file may import."""
    spec = spec_from_file_location(name, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Try the class of a file: ``python probe.py PATH CLASS MEMORY STEP``; STEP may be empty."""
    path, wanted, memory, step = sys.argv[1:]
    words, plans = os.fdopen(os.dup(1), "w", encoding="ascii"), os.fdopen(os.dup(0), encoding="ascii")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    modules = {name: beside(name) for name in ("kit", "load", "own", "trials")}
    modules |= {name: beside(name) for name in modules["trials"].ASKED.values()}
    load = modules["load"]
    limit(int(memory))
    sys.modules["__main__"] = ModuleType("__main__")  # the file finds nothing of this program in it

    def find() -> tuple[str, type, Mapping[str, Any]]:
        failed: list[Exception] = []
        module = load.load(path, failed)
        space = vars(module)
        if step in map(str, FUNCTIONS):
            return "", object, space  # it is about no class
        try:
            return *load.choose(space, module.__name__, wanted, modules["kit"].NAMES, os.path.basename(path)), space
        except load.CannotTryError as error:
            raise failed[0] if failed else error from None

    serve(find, path, words, plans, modules)


if __name__ == "__main__":
    main()
