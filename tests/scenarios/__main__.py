"""Run the scenarios, compiled and as they stand, each in processes of its own: `python -m tests.scenarios`."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from multiprocessing.connection import wait
from typing import Any

import wengert
from tests.scenarios import kit

LIMIT = 60.0  # seconds for a process
VERDICTS = ("right", "uncompiled", "documented", "idle", "raised", "wrong", "hung", "died", "unfit", "absent")
FINE = ("right", "uncompiled", "documented", "absent")


def child(name: str, side: str, answer: Any) -> None:
    """Run one side of a scenario and send what it saw."""
    compile = functools.partial(wengert.compile, backend=side) if side in kit.BACKENDS else kit.plainly
    answer.send(kit.drive(kit.collection()[name].run, compile))


def traces(tasks: Iterable[tuple[str, str]], jobs: int) -> Iterator[tuple[str, str, kit.Trace]]:
    """What the process of each task sees, as they come; at most so many run at a time."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    left, running = list(tasks)[::-1], {}
    while left or running:
        while left and len(running) < jobs:
            name, side = left.pop()
            answer, theirs = context.Pipe(duplex=False)
            process = context.Process(target=child, args=(name, side, theirs), daemon=True)
            process.start()
            theirs.close()
            running[answer] = name, side, process, time.monotonic()
        for answer in wait(list(running), timeout=1.0):
            name, side, process, _ = running.pop(answer)
            try:
                yield name, side, answer.recv()
            except EOFError:
                process.join()
                yield name, side, kit.Trace(ended=f"died: exit status {process.exitcode}")
            process.join(1.0)
        for answer, (name, side, process, began) in list(running.items()):
            if time.monotonic() - began > LIMIT:
                process.kill()
                del running[answer]
                yield name, side, kit.Trace(ended=f"hung: after {LIMIT:.0f} s")


def outcomes(chosen: list[kit.Scenario], backends: list[str], jobs: int) -> Iterator[kit.Outcome]:
    """The outcome of each scenario with each back end."""
    tasks = [(found.name, side) for found in chosen if found.is_here for side in ("plain", *backends)]
    by_name = {found.name: found for found in chosen}
    plain, waiting = {}, []
    for found in chosen:
        if not found.is_here:
            yield kit.Outcome(found.name, "", "absent", f"{found.needs} is not installed")
    for name, side, trace in traces(tasks, jobs):
        if side == "plain":
            plain[name] = trace
        else:
            waiting.append((name, side, trace))
        for ready in [task for task in waiting if task[0] in plain]:
            waiting.remove(ready)
            yield kit.compared(by_name[ready[0]], ready[1], plain[ready[0]], ready[2])


def told(found: list[kit.Outcome]) -> bool:
    """Print how many came out how, by file and back end; return True if none is wrong."""
    print(f"\n{'':24}" + "".join(f"{verdict:>11}" for verdict in VERDICTS))
    for kind in (lambda o: o.name.partition(".")[0], lambda o: f"all, {o.backend or 'none'}"):
        counts: dict[str, Counter[str]] = {}
        for outcome in found:
            counts.setdefault(kind(outcome), Counter())[outcome.verdict] += 1
        for name, count in counts.items():
            print(f"{name:24}" + "".join(f"{count[verdict]:11}" for verdict in VERDICTS))
    return all(outcome.verdict in FINE for outcome in found)


def main() -> int:
    """Run what the command line names; the exit status is 1 if a scenario is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description=__doc__)
    parser.add_argument("--only", default="", help="those whose name contains this; several with commas")
    parser.add_argument("--backend", default=",".join(kit.BACKENDS), help="with commas; default: %(default)s")
    parser.add_argument("--sample", type=int, default=0, help="so many, always the same ones")
    parser.add_argument("--plain", action="store_true", help="compile nothing: are they fit to be compared?")
    parser.add_argument("-v", action="store_true", help="also tell why scenarios run uncompiled, or are dropped")
    parser.add_argument("-j", type=int, default=1, help="processes at a time")
    asked = parser.parse_args()

    backends = ["plain again"] if asked.plain else asked.backend.split(",")
    if "xla" in backends:
        if find_spec("jax") is None:
            backends.remove("xla")
        else:
            import jax  # noqa: F401  -- once, for all that are forked
    names = asked.only.split(",")
    chosen = [found for name, found in kit.collection().items() if any(part in name for part in names)]
    if asked.sample:
        chosen = random.Random(33).sample(chosen, min(asked.sample, len(chosen)))
    found = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("WENGERT_CACHE", cache)
        for outcome in outcomes(chosen, backends, asked.j):
            found.append(outcome)
            if outcome.verdict not in FINE or (asked.v and (outcome.reason or outcome.dropped)):
                dropped = f" (dropped {outcome.dropped})" if outcome.dropped else ""
                print(f"{outcome.verdict:10} {outcome.name}, {outcome.backend}{dropped}: {outcome.reason}", flush=True)
    return 0 if told(found) else 1


if __name__ == "__main__":
    sys.exit(main())
