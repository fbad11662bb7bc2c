"""The process of one peer: reads a request a line, answers a line, both JSON. See `benchmarks.race`."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["chain", "lift", "main"]


def resident() -> int:
    """How many bytes of memory this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def chain(Value: Any, length: int) -> dict[str, float]:
    """Build a chain of `length` operations, differentiate and free it.

    Returns:
        Nanoseconds an operation for each, bytes an operation, and the gradient at the chain's start.
    """
    start = Value(1.0)
    gc.collect()
    before = resident()
    times = [time.perf_counter()]
    y = start
    for _ in range(length // 2):
        y = y * 1.000001 + 0.5
    times.append(time.perf_counter())
    size = resident() - before
    times.append(time.perf_counter())
    y.backward()
    times.append(time.perf_counter())
    gradient = float(start.grad)
    times.append(time.perf_counter())
    del y
    times.append(time.perf_counter())
    forward, backward, free = ((times[i + 1] - times[i]) / length * 1e9 for i in (0, 2, 4))
    return {"forward": forward, "backward": backward, "free": free, "bytes": size / length, "gradient": gradient}


def lift(compiled: Any, arguments: tuple[Any, ...]) -> dict[str, float]:
    """Call a compiled function for the first time.

    Returns:
        The seconds that the first call and lifting take, those of the first call, which records, and how many scalar
        nodes were recorded.
    """
    gc.collect()
    begin = time.perf_counter()
    compiled(*arguments)
    first = time.perf_counter() - begin
    candidate = compiled._server.last.candidate
    begin = time.perf_counter()
    candidate.lift()
    candidate.backward()
    return {"seconds": first + time.perf_counter() - begin, "first": first, "nodes": candidate.nodes}


def main(module: str) -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer
    peer: Any = None
    timed: Callable[[], Any] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            peer = peer or importlib.import_module(f"benchmarks.peers.{module}")
            if "set up" in request:
                programs = peer.KERNELS if request.get("kernel") else peer.PROGRAMS
                if request["set up"] not in programs:
                    answer["absent"] = True
                else:
                    made = programs[request["set up"]]()
                    step, timed = made if request.get("kernel") else (made, made)
                    answer["results"] = [step() for _ in range(3)]
            elif "chain" in request:
                answer.update(chain(peer.CHAIN(), request["chain"]) if hasattr(peer, "CHAIN") else {"absent": True})
            elif "lift" in request:
                answer.update(lift(*peer.LIFTS[request["lift"]]()))
            elif timed is not None:
                start = time.perf_counter()
                for _ in range(request["steps"]):
                    timed()
                answer["seconds"] = time.perf_counter() - start
        except Exception as error:  # whatever it is, it becomes a row of the table
            answer["failed"] = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
