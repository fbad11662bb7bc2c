"""What can be checked: a file, a notebook, a module, a class of this session, the names of a cell."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from wengert._files import opened
from wengert.errors import ArgumentError
from wengert.ops import is_number, named
from wengert_course import kept, notebooks
from wengert_course.checks import load, probe, steps
from wengert_course.checks.diagnosis import diagnose
from wengert_course.checks.kit import NAMES
from wengert_course.checks.report import Report, Verdict, printable
from wengert_course.checks.runner import Supervisor
from wengert_course.checks.steps import About

__all__ = ["check"]

Thing = str | os.PathLike[str] | ModuleType | type | Mapping[str, Any]


def check(
    thing: Thing,
    step: int | None = None,
    *,
    timeout: float = 20.0,
    memory: int = 2048,
    seed: int | None = None,
) -> Report:
    """Try anyone's Value-like class, operation by operation: what is right, what is wrong, and what is not there yet.

    Args:
        thing: a file, "engine.py" or "notebook.ipynb", with its class where there are several, as in
            "engine.py:Value"; a module, whose file is then read; a class; or the names of a notebook's cell,
            ``globals()``. A class or names of this session are tried in a copy of this process.
        step: the step of the course, from 0 to 12; without it, that of a notebook of the course, or the one that the
            class has come to.
        timeout: seconds for the whole; a single trial may take a quarter of them.
        memory: the most memory, in MiB, that the file may use, on systems that can hold it to that.
        seed: what decides the numbers that are tried; without it, others in each call.

    Raises:
        ArgumentError: the file cannot be read or run, or holds no such class; a limit is none. The message says why.
    """
    if step is not None and (type(step) is not int or step not in steps.TITLES):
        raise ArgumentError(f"step is {step!r}; expected a whole number from 0 to {steps.LAST}")
    if not (is_number(timeout) and 0.0 < timeout <= threading.TIMEOUT_MAX):
        raise ArgumentError(f"timeout is {timeout!r}; expected a number of seconds above 0")
    if type(memory) is not int or memory < 1:
        raise ArgumentError(f"memory is {memory!r}; expected a whole number of MiB from 1 up")
    if seed is not None and type(seed) is not int:
        raise ArgumentError(f"seed is {seed!r}; expected a whole number")
    seed = int.from_bytes(os.urandom(4)) if seed is None else seed
    file, path, wanted, find, begun = "", "", "", None, True
    if isinstance(thing, ModuleType) and str(getattr(thing, "__file__", "")).endswith(".py"):
        thing = str(thing.__file__)
    if isinstance(thing, (str, os.PathLike)):
        file, wanted = _split(os.fspath(thing))
        path = os.path.abspath(file)
        own, filled = notebooks.step_of(path)
        step = own if step is None else step
        begun = filled or step != own
    else:
        path, find = _live(thing, step)
    watch = Supervisor(path, wanted, find, step, timeout, memory, seed)
    watch.run()
    if watch.stopped or watch.about is None:
        raise ArgumentError(printable(f"{file or path}{watch.stopped}"))
    verdict = diagnose(watch.seen, watch.about)
    report = _report(file, watch.name, watch.about, verdict, watch.remarks(verdict.rows), watch.output())
    more = kept.lent(path) if find is None else kept.keep(step) if report.right and step is not None else ""
    return replace(report, remarks=(*report.remarks, *([more] if more else [])), begun=begun)


def _report(
    file: str, name: str, about: About, verdict: Verdict, remarks: Sequence[str] = (), output: str = ""
) -> Report:
    right = all(row.state == "ok" for row in verdict.rows if row.counts)
    if right and (about.given or about.step < 7) and about.step < steps.LAST:
        following = f"Next is step {about.step + 1}, {steps.TITLES[about.step + 1]}."
        remarks = (*remarks, f"Step {about.step} is done. {following}")
    elif about.given and not right:
        remarks = (
            *remarks,
            f"Stuck? `course.hint({about.step})` prints a hint, and `course.hint({about.step}, 2)` a larger one.",
        )
    told = tuple(verdict.rows), tuple(verdict.findings), tuple(verdict.later), tuple(remarks)
    return Report(file, name, about.step, steps.TITLES[about.step], *told, output, about.seed)


def _split(target: str) -> tuple[str, str]:
    """A file and the class in it; what is wrong with a path is said before a process is started for it."""
    path, _, wanted = target.rpartition(":")
    if not path or os.path.isfile(target) or not (wanted.isidentifier() or not wanted):
        path, wanted = target, ""
    if os.path.isdir(path):
        raise ArgumentError(
            f"{path} is a folder: name the file in it that holds the class (the command checks a folder)"
        )
    try:
        opened(path).close()
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return path, wanted


def _live(thing: Any, step: int | None) -> tuple[str, probe.Find]:
    """What stands for the file in messages, and what gives a class of this session."""
    if isinstance(thing, type):
        code = getattr(getattr(thing, "__init__", None), "__code__", None)
        found = thing.__name__, thing, {"__name__": thing.__module__}
        return getattr(code, "co_filename", thing.__name__), lambda: found
    space = vars(thing) if isinstance(thing, ModuleType) else thing
    if not isinstance(space, Mapping) or not all(isinstance(name, str) for name in space):
        expected = "the name of a file, such as 'engine.py', a module, a class, or the names of a cell, globals()"
        raise ArgumentError(f"thing is {named(thing)}; expected {expected}")
    name = str(space.get("__name__", "the names"))
    if step in probe.FUNCTIONS:
        return name, lambda: ("", object, space)  # it is about no class
    return name, lambda: (*load.choose(space, name, "", NAMES, name), space)
