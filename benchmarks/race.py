"""Peers in turns: each in a process of its own with one thread, one of them running at a time."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.roster import IMPORTS, Peer

__all__ = ["Racer", "Result", "grow", "lift", "race", "start"]

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
) | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu"}
TOLERANCE = 1e-9  # by which the results of two peers may differ, relative

Say = Callable[[str], None]


class Racer:
    """A peer's process, and how to ask it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        command = [sys.executable, "-m", "benchmarks.worker", peer.module]
        environment = os.environ | ONE_THREAD | peer.environment
        self._process = subprocess.Popen(
            command,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, limit: float, **request: Any) -> dict[str, Any]:
        """The answer; {"failed": why} when there is none within `limit` seconds or the process dies."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=limit)
        except queue.Empty:
            self.close()
            return {"failed": f"longer than {limit:.0f} s"}
        except OSError:
            line = ""
        if not line:
            return {"failed": f"the process died (exit status {self._process.wait()})"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()


@dataclass
class Result:
    """What one peer made of one workload: seconds a step of each round, or why there are none."""

    peer: Peer
    rounds: list[float] = field(default_factory=list)
    failed: str = ""
    absent: bool = False  # the peer has no such program

    @property
    def median(self) -> float:
        """Seconds a step."""
        return statistics.median(self.rounds) if self.rounds else math.nan

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.rounds) < 3 or not self.median:  # what is so short that nothing is left of it
            return 0.0
        low, _, high = statistics.quantiles(self.rounds, n=4)
        return (high - low) / 2 / self.median


def race(workload: str, peers: Iterable[Peer], rounds: int, seconds: float, limit: float, say: Say) -> list[Result]:
    """Run one workload on all peers in turns.

    Args:
        workload: its name.
        peers: who takes part.
        rounds: how many times each has its turn.
        seconds: how long a turn lasts, at least one step.
        limit: after how many seconds of set-up and three steps, or of a turn, a peer is given up.
        say: is told of each step of the race.
    """
    racers: list[tuple[Racer, Result]] = []
    reference: list[list[float]] | None = None
    results = []
    try:
        for peer in peers:
            say(f"{workload}: {peer.key} is set up")
            racer, result = Racer(peer), Result(peer)
            results.append(result)
            answer = racer.ask(limit, **{"set up": workload, "kernel": peer.kernel})
            result.absent = bool(answer.get("absent"))
            result.failed = answer.get("failed", "")
            if "results" in answer:
                reference = reference or answer["results"]
                result.failed = difference(answer["results"], reference)
            if result.failed or result.absent:
                racer.close()
            else:
                racers.append((racer, result))
        steps: dict[str, int] = {}
        for turn in range(rounds):
            say(f"{workload}: round {turn + 1} of {rounds}")
            for racer, result in [pair for pair in racers if not pair[1].failed]:
                key = racer.peer.key
                if key not in steps:  # one step, or as many as fill a turn
                    steps[key] = 1
                    singles = [racer.ask(limit, steps=1).get("seconds", 0.0)]
                    if singles[0] < seconds:  # one step of many may do more, as where a recording is checked
                        singles += [racer.ask(limit, steps=1).get("seconds", 0.0) for _ in range(2)]
                    steps[key] = max(1, min(100_000, int(seconds / max(min(singles), 1e-6))))
                answer = racer.ask(limit, steps=steps[key])
                result.failed = answer.get("failed", "")
                if "seconds" in answer:
                    result.rounds.append(answer["seconds"] / steps[key])
    finally:
        for racer, _ in racers:
            racer.close()
    return results


def start(peers: Iterable[Peer], rounds: int, say: Say) -> list[Result]:
    """How long each takes to import, in fresh processes, less what an empty Python takes.

    As on a user's machine, Python finds the bytecode of an earlier import: one that is not measured goes before.
    """
    results = [Result(peer) for peer in peers if peer.key in IMPORTS]
    for result in results:
        say(f"import: {result.peer.key}, not measured")
        _seconds(IMPORTS[result.peer.key], result.peer.environment)
    for turn in range(rounds):
        say(f"import: round {turn + 1} of {rounds}")
        empty = _seconds("pass", {})[0]
        for result in results:
            seconds, result.failed = _seconds(IMPORTS[result.peer.key], result.peer.environment)
            if not result.failed:
                result.rounds.append(max(0.0, seconds - empty))
    return results


def _seconds(statement: str, environment: dict[str, str]) -> tuple[float, str]:
    """The time of one Python process that runs a statement and may cache bytecode, and why it failed."""
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", statement]
    begin = time.perf_counter()
    done = subprocess.run(command, env=inherited | ONE_THREAD | environment, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    return seconds, done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def difference(results: list[list[float]], reference: list[list[float]]) -> str:
    """What to say when results differ from the reference; nothing when they agree."""
    for step, (ours, theirs) in enumerate(zip(results, reference, strict=True)):
        for x, y in zip(ours, theirs, strict=True):
            if not math.isclose(x, y, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                return f"wrong result at step {step}: {x!r}, not {y!r}"
    return ""


def grow(peer: Peer, sizes: Iterable[int], limit: float, say: Say) -> list[dict[str, Any]]:
    """Chains of growing length on one peer, each in a fresh process; it ends with the first that fails."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        say(f"chain of {size:,}: {peer.key}")
        racer = Racer(peer)
        racer.ask(limit, chain=100)  # warm
        attempts = [racer.ask(limit, chain=size) for _ in range(max(1, min(9, 100_000 // size)))]
        racer.close()
        answer = attempts[0]
        if "forward" in answer:
            memory = max(attempt.get("bytes", 0.0) for attempt in attempts)
            answer = min(attempts, key=lambda attempt: attempt.get("forward", math.inf)) | {"bytes": memory}
            expected = 1.000001 ** (size // 2)
            if not math.isclose(answer["gradient"], expected, rel_tol=TOLERANCE * max(1.0, size / 1e4)):
                answer = {"failed": f"wrong gradient: {answer['gradient']!r}, not {expected!r}"}
        rows.append({"size": size, **answer})
        if "forward" not in answer:
            break
    return rows


def lift(peer: Peer, programs: Iterable[str], limit: float, say: Say) -> list[dict[str, Any]]:
    """Seconds of recording and lifting, and of the whole first call, for programs of growing size.

    Each is recorded and lifted anew three times in one process, which has compiled something small before.
    """
    rows: list[dict[str, Any]] = []
    racer = Racer(peer)
    try:
        for number, name in enumerate(programs):
            say(f"lift: {name}")
            if not number:
                racer.ask(limit, lift=name)  # warm
            answers = [racer.ask(limit, lift=name) for _ in range(3)]
            failed = next((answer for answer in answers if "seconds" not in answer), None)
            rows.append({"program": name, **(failed or sorted(answers, key=lambda answer: answer["seconds"])[1])})
    finally:
        racer.close()
    return rows
