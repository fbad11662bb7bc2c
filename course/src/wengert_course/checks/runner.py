"""Run the trials in a process of their own, within limits of time and memory, whatever the file does.

The process is watched from outside: a trial that takes too long, or that ends the process, is noted, and a new
process goes on behind it. With it ends whatever it has started in its group of processes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import IO, Any

from wengert.errors import ArgumentError
from wengert_course import kept
from wengert_course.checks import probe, steps
from wengert_course.checks.kit import NAMES
from wengert_course.checks.steps import MODULES, About, Seen

__all__ = ["Supervisor"]

KEPT = 2_000  # characters of what the file prints
PATIENCE = 4  # processes that may end before their time, each at another trial


@dataclass
class Supervisor:
    """What comes from the processes that try a class."""

    path: str  # the file, or what stands for it in messages
    name: str  # the class in it, "" to choose it
    find: probe.Find | None  # what gives a class of this session; None to run the file
    step: int | None  # of the course; None to find it
    timeout: float  # seconds for the whole
    memory: int  # the most, in MiB
    seed: int  # what decides the numbers
    names: dict[str, str] = field(default_factory=dict)
    about: About | None = None
    seen: dict[str, Seen] = field(default_factory=dict)
    todo: list[str] | None = None  # what the process tries and is to try; None until it has said its name
    printed: list[str] = field(default_factory=list)
    stopped: str = ""  # why the file could not be tried
    given_up: bool = False
    lates: int = 0  # trials in this process that took too long

    def __post_init__(self) -> None:
        can_copy = hasattr(os, "fork") and sys.platform != "emscripten"  # a browser has the function, and no processes
        self.here: bool = self.find is not None and not can_copy
        self.end: float = time.monotonic() + self.timeout
        self.limit: float = self.end  # when the process has to say something
        step = "" if self.step is None else str(self.step)
        self.options: tuple[str, ...] = (self.name, str(self.memory << 20), step)

    def run(self) -> None:
        """Start one process after the other, until every trial is done or the time is up."""
        for attempt in range(PATIENCE):
            if self.here:
                self._in_this_one()
                return
            self._one_process()
            if self.over:
                return
            if self.about is None or attempt == PATIENCE - 1 or time.monotonic() >= self.end:
                self.given_up = True
                return

    def _in_this_one(self) -> None:
        """Try the class in this process, where there can be no copy of it."""
        assert self.find is not None
        try:
            with _watched(self._late):
                probe.converse(self.find, self.path, self.hear, self.plan, MODULES)
        except _TooLongError:
            self.given_up = True
            self.stopped = "" if self.about else f": after {self.timeout:g} seconds it was stopped"

    def _late(self) -> bool:
        """Whether what is tried in this process takes too long; it is said once."""
        if time.monotonic() < self.limit:
            return False
        self.limit, self.lates = math.inf, self.lates + 1
        return True

    @property
    def over(self) -> bool:
        return self.todo == [] or bool(self.stopped)

    def _one_process(self) -> None:
        """Run one process, until all is tried or it is broken off."""
        self.todo, self.limit = None, self.end
        try:
            process = _Process(self.path, self.options, self.find)
        except OSError as error:
            raise ArgumentError(f"no process to try {self.path} in can be started here: {error}") from None
        lines: Queue[bytes] = Queue()
        for pipe, take, longest in ((process.words, lines.put, -1), (process.errors, self._keep, KEPT)):
            threading.Thread(target=_drain, args=(pipe, take, longest), daemon=True).start()
        try:
            while not self.over:
                line = lines.get(timeout=max(self.limit - time.monotonic(), 0.0))
                if not line.endswith(b"\n"):
                    return self._broken_off("died", process.status())
                begins = self.todo is None
                self.hear(line)
                if begins and not self.over:
                    process.tell(self.plan())
        except Empty:
            seconds = self.timeout / 4 if self.todo else self.timeout
            self._broken_off("timeout", f"after {seconds:g} seconds it was stopped")
        finally:
            process.kill()

    def hear(self, line: str | bytes) -> None:
        """Write down what the process says."""
        said = json.loads(line)
        if "stop" in said:
            at = f", {said['place']}" if said["place"] else ""
            self.stopped = f"{at}: {said['stop']}"
        elif self.todo is None:
            self.name, self.names = said["name"], said["names"]
            parts, has = frozenset(self.names), frozenset(said["has"])
            step = steps.found(parts, has) if self.step is None else self.step
            self.about = About(step, self.step is not None, parts, has, self.seed)
            asked = [trial for trial in self.about.trials() if not self.about.lacks(trial)]
            self.todo = [trial.id for trial in asked if trial.id not in self.seen]
        else:
            tried, error = self.todo.pop(0), said.get("error", {})
            if self.limit == math.inf:
                error = {"kind": "timeout", "says": f"after {self.timeout / 4:g} seconds it was stopped"}
            self.seen[tried] = Seen(tuple(said["numbers"]), **error)
            if self.todo and self.here and (self.lates == PATIENCE // 2 or time.monotonic() >= self.end):
                raise _TooLongError
        self.limit = min(self.end, time.monotonic() + self.timeout / 4)

    def plan(self) -> str:
        assert self.about is not None
        return json.dumps({"trials": self.todo, "plan": self.about.plan}) + "\n"

    def _broken_off(self, kind: str, says: str) -> None:
        if self.todo:
            self.seen[self.todo[0]] = Seen((), kind, says)
        elif self.about is None:
            self.stopped = f": while it was imported, {says}"
            if kind == "timeout":
                belongs = 'what trains or asks belongs under if __name__ == "__main__":'
                self.stopped = f": it was still being imported after {self.timeout:g} seconds: {belongs}"

    def _keep(self, text: bytes) -> None:
        if sum(map(len, self.printed)) < KEPT:
            self.printed.append(text.decode("utf-8", "replace"))

    def output(self) -> str:
        return "".join(self.printed)[:KEPT]

    def remarks(self, rows: list[Any]) -> list[str]:
        """What is to be said beside the findings."""
        lesson = self.step is not None and 0 < self.step < 8
        asked = " The cells of the lesson ask for that." if lesson else ""
        said = [
            f"It calls .{name} what is expected as .{part}, and was tried with that.{asked}"
            for part, name in self.names.items()
            if name != NAMES[part][0] and (lesson or part in ("data", "grad", "backward"))
        ]
        if self.given_up or any(row.state == "not tried" for row in rows):
            said.append("Not everything was tried: the time was up, or the process ended too often.")
        if self.here and sys.platform != "emscripten":
            free = "limits of time and memory" if sys.version_info < (3, 12) else "a limit of memory"
            said.append(f"This system has no os.fork: it ran in this process, without {free}.")
        return said


class _TooLongError(BaseException):
    """Ends what takes too long in this process."""


@contextlib.contextmanager
def _watched(late: Callable[[], bool]) -> Iterator[None]:
    """End what is late here: from Python 3.12 on it can be asked at each call and at each jump, as that of a loop."""
    if sys.version_info < (3, 12):
        yield
        return
    watch, tool = sys.monitoring, 4  # which no debugger, profiler or coverage takes

    def look(*_: object) -> None:
        if late():
            raise _TooLongError

    watch.use_tool_id(tool, "wengert")
    events = watch.events.PY_START, watch.events.JUMP
    for event in events:
        watch.register_callback(tool, event, look)
    watch.set_events(tool, sum(events))
    try:
        yield
    finally:
        watch.set_events(tool, 0)  # before Python 3.14 the next line leaves them on
        for event in events:
            watch.register_callback(tool, event, None)
        watch.free_tool_id(tool)


class _Process:
    """A process that tries a class: a program of its own, or a copy of this one, which has the class already."""

    def __init__(self, path: str, options: tuple[str, ...], find: probe.Find | None) -> None:
        self.popen: subprocess.Popen[bytes] | None = None
        self.ended: int | None = None
        if find is not None:
            self._fork(path, int(options[1]), find)
            return
        command, pipe = [sys.executable, probe.__file__, path, *options], subprocess.PIPE
        known = {**os.environ, kept.FOLDER: os.path.dirname(path)}
        self.popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=known)
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self.pid: int = self.popen.pid
        self.plans: IO[bytes] = self.popen.stdin
        self.words: IO[bytes] = self.popen.stdout
        self.errors: IO[bytes] = self.popen.stderr

    def _fork(self, path: str, memory: int, find: probe.Find) -> None:
        (plans, to_plans), (from_words, words), (from_errors, errors) = os.pipe(), os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python and JAX warn of threads: the copy uses none of theirs
            self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                null = os.open(os.devnull, os.O_RDONLY)
                for own, standard in ((null, 0), (errors, 1), (errors, 2)):
                    os.dup2(own, standard)
                for theirs in (to_plans, from_words, from_errors):
                    os.close(theirs)
                sys.stdout = sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", buffering=1)
                probe.limit(memory + _held())
                probe.serve(find, path, os.fdopen(words, "w"), os.fdopen(plans), MODULES)
            finally:
                os._exit(1)  # never back into the program that this is a copy of
        for theirs in (plans, words, errors):
            os.close(theirs)
        self.plans, self.words = os.fdopen(to_plans, "wb"), os.fdopen(from_words, "rb")
        self.errors = os.fdopen(from_errors, "rb")

    def tell(self, plan: str) -> None:
        with contextlib.suppress(OSError):  # it has ended: its silence will tell
            self.plans.write(plan.encode())
            self.plans.flush()

    def status(self) -> str:
        """How it ended, in words."""
        end = time.monotonic() + 1.0
        while (code := self._code()) is None:
            if time.monotonic() > end:
                return "it closed its output"
            time.sleep(0.01)
        if code < 0:
            return f"a signal ended it ({signal.Signals(-code).name})"
        return f"it ended with status {code}"

    def _code(self) -> int | None:
        if self.popen is not None:
            return self.popen.poll()
        if self.ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.ended = os.waitstatus_to_exitcode(status) if pid else None
        return self.ended

    def kill(self) -> None:
        """End the process, and whatever it has started in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL)
            elif self.popen is not None:
                self.popen.kill()
        with contextlib.suppress(OSError):
            self.plans.close()
        while self._code() is None:
            time.sleep(0.002)


def _held() -> int:
    """The bytes that this process holds already, where the system tells."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return sum([int(line.split()[1]) << 10 for line in status if line.startswith(("VmData", "VmStk"))])
    except OSError:
        return 1 << 40


def _drain(pipe: IO[bytes], take: Callable[[bytes], None], longest: int) -> None:
    """Read a pipe to its end, line by line, or in pieces of the longest size; the last is empty."""
    with pipe:
        while piece := pipe.readline(longest):
            take(piece)
    take(b"")
