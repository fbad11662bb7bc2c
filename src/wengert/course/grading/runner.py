"""Run the trials in a process of their own, within limits of time and memory, whatever the file does.

The process is watched from outside: a trial that takes too long, or that ends the process, is noted, and a new
process goes on behind it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, Queue
from typing import IO, Any

from wengert.errors import ArgumentError
from wengert.course.grading.diagnosis import Seen, diagnose
from wengert.course.grading.report import Report, printable
from wengert.course.grading.trials import NAMES
from wengert.operands import is_number, named

__all__ = ["examine"]

PROBE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe.py")
KEPT = 2_000  # characters of what the file prints
PATIENCE = 4  # processes that may end before their time, each at another trial


def examine(target: str | os.PathLike[str], timeout: float = 20.0, memory: int = 2048) -> Report:
    """Try the Value-like class of a file, operation by operation, and say what is likely wrong with it.

    Args:
        target: the file, as in "engine.py"; with its class, where there are several, as in "engine.py:Value".
        timeout: seconds for the whole; a single trial may take a quarter of them.
        memory: the most memory, in MiB, that the file may use, on systems that can hold it to that.

    Raises:
        ArgumentError: the file cannot be read or run, or holds no such class; a limit is none. The message says why.
    """
    if not isinstance(target, (str, os.PathLike)):
        raise ArgumentError(f"target is {named(target)}; expected the name of a file, such as 'engine.py'")
    if not (is_number(timeout) and 0.0 < timeout <= threading.TIMEOUT_MAX):
        raise ArgumentError(f"timeout is {timeout!r}; expected a number of seconds above 0")
    if type(memory) is not int or memory < 1:
        raise ArgumentError(f"memory is {memory!r}; expected a whole number of MiB from 1 up")
    target = os.fspath(target)
    path, _, wanted = target.rpartition(":")
    if not path or os.path.isfile(target) or not (wanted.isidentifier() or not wanted):
        path, wanted = target, ""
    _can_be_read(path)
    watch = _Watch(os.path.abspath(path), wanted, timeout, memory)
    watch.run()
    if watch.stopped:
        raise ArgumentError(printable(f"{path}{watch.stopped}"))
    rows, findings = diagnose(watch.seen, watch.has)
    return Report(path, watch.name, tuple(rows), tuple(findings), tuple(watch.remarks(rows)), watch.output())


def _can_be_read(path: str) -> None:
    """Say what is wrong with a path, before a process is started for it."""
    if os.path.isdir(path):
        raise ArgumentError(f"{path} is a folder: name the file in it that holds the class")
    if path.endswith(".ipynb"):
        raise ArgumentError(f"{path} is a notebook: save its class in a file that ends in .py")
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


class _Watch:
    """What comes from the processes that try the class."""

    def __init__(self, path: str, wanted: str, timeout: float, memory: int) -> None:
        self.path, self.wanted, self.memory = path, wanted, memory
        self.timeout, self.end = timeout, time.monotonic() + timeout
        self.seen: dict[str, Seen] = {}
        self.name, self.names, self.has = wanted, dict[str, str](), set[str]()
        self.stopped = ""  # why the file could not be tried
        self.given_up = False
        self.printed: list[str] = []

    def run(self) -> None:
        """Start one process after the other, until every trial is done or the time is up."""
        for attempt in range(PATIENCE):
            running = self._one_process()
            if running is None:
                return
            if not self.name or attempt == PATIENCE - 1 or time.monotonic() >= self.end:
                self.given_up = True
                return

    def _one_process(self) -> str | None:
        """Run one process; None, if it came to its end, else what it was doing when it ended before it."""
        command = [sys.executable, PROBE, self.path, self.wanted, str(self.memory << 20), *self.seen]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ArgumentError(f"no process to try {self.path} in can be started here: {error}") from None
        lines: Queue[bytes | None] = Queue()
        assert process.stdout is not None
        assert process.stderr is not None
        for pipe, take in ((process.stdout, lines.put), (process.stderr, self._keep)):
            threading.Thread(target=_drain, args=(pipe, take), daemon=True).start()
        try:
            return self._listen(process, lines)
        finally:
            _kill(process)

    def _listen(self, process: subprocess.Popen[bytes], lines: Queue[bytes | None]) -> str | None:
        """Write down what a process tells."""
        doing, limit = "", self.end
        while True:
            try:
                line = lines.get(timeout=max(limit - time.monotonic(), 0.0))
            except Empty:
                return self._broken_off(doing, "timeout", f"after {self._share(doing):g} seconds it was stopped")
            if line is None:
                return self._broken_off(doing, "died", _status(process))
            said = json.loads(line)
            if "stop" in said:
                place = f", line {said['line']}" if said["line"] else ""
                place += f", column {said['column']}" if said["column"] else ""
                self.stopped = f"{place}: {said['stop']}"
                return None
            if "name" in said:
                self.name, self.names, self.has = said["name"], said["names"], set(said["has"])
            elif "start" in said:
                doing = said["start"]
                limit = min(self.end, time.monotonic() + self.timeout / 4)
            elif "done" in said:
                self._done(said)
                doing, limit = "", self.end
            else:
                return None

    def _share(self, doing: str) -> float:
        return self.timeout / 4 if doing else self.timeout

    def _done(self, said: dict[str, Any]) -> None:
        error = said.get("error", {"kind": "absent" if "absent" in said else "", "says": "", "line": 0})
        self.seen[said["done"]] = Seen(tuple(said["numbers"]), **error)

    def _broken_off(self, doing: str, kind: str, says: str) -> str:
        if doing:
            self.seen[doing] = Seen((), kind, says)
        elif not self.name or not self.names:
            self.stopped = f": while it was imported, {says}"
            if kind == "timeout":
                belongs = 'what trains or asks belongs under if __name__ == "__main__":'
                self.stopped = f": it was still being imported after {self.timeout:g} seconds: {belongs}"
        return doing or "import"

    def _keep(self, text: bytes | None) -> None:
        if text is not None and sum(map(len, self.printed)) < KEPT:
            self.printed.append(text.decode("utf-8", "replace"))

    def output(self) -> str:
        """The beginning of what the file printed."""
        return "".join(self.printed)[:KEPT]

    def remarks(self, rows: list[Any]) -> list[str]:
        """What is to be said beside the findings."""
        said = [
            f"It calls .{name} what is expected as .{part}, and was tried with that."
            for part, name in self.names.items()
            if name != NAMES[part][0]
        ]
        if self.given_up or any(row.state == "not tried" for row in rows):
            said.append("Not everything was tried: the time was up, or the process ended too often.")
        return said


def _drain(pipe: IO[bytes], take: Callable[[bytes | None], None]) -> None:
    """Read a pipe to its end, in lines, or in pieces where lines are long."""
    with pipe:
        while piece := pipe.readline(1 << 16):
            take(piece)
    take(None)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process, and whatever it has started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _status(process: subprocess.Popen[bytes]) -> str:
    """How a process ended, in words."""
    try:
        status = process.wait(1.0)
    except subprocess.TimeoutExpired:
        return "it closed its output"
    if status < 0:
        return f"a signal ended it ({signal.Signals(-status).name})"
    return f"it ended with status {status}"
