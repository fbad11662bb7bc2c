"""Programs as users write them, compiled and as they stand, side by side: how many are right, and by which way.

``python -m tools.qa.programs`` runs the whole collection of `tests/programs`, each program in a process of its own with
a time limit, prints the distribution and every failure with its mode and its numbers, and exits with 1 on a failure.

- ``--only NAME``, ``--field FIELD``: some of it; ``--sample 60 --seed 1``: so many of it, by chance.
- ``--backend native``: compiled for one back end; else for what `compile` chooses.
- ``--plain``: the programs themselves: do they give the same again, and finite numbers? Nothing is compiled.
- ``--cost``: how long a compiled call takes beside an uncompiled one, on one example and on batches of 64.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import multiprocessing
import os
import random
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from tests.programs import trial as trials
from tests.programs.trial import LIFTED, Outcome, Side, collection, trial
from wengert import Value
from wengert.compiler.backends import BACKENDS

LIMIT = 60.0  # seconds that a program may take: the slowest takes a tenth of it
PROMISED = 0.9  # the share of the programs that are to be lifted, of those that do not say that the engine is for them
WARMING = 20
SETTLING = 5.0  # seconds
BATCH = 64
ALLOWED_RATIO, ALLOWED_TIME = 1.2, 1e-6


# ------------------------------------------------------------------------------------------------ in processes


def _answer(sender: Any, work: Callable[[str], Any], name: str) -> None:
    sender.send(work(name))
    sender.close()


def at_once(work: Callable[[str], Any], names: list[str], processes: int, limit: float) -> Iterator[tuple[str, Any]]:
    """What `work` gives for each name, each in a process of its own: an exception's text where it raised, "hung" where
    it was ended after so many seconds, "died" where the process ended without an answer.
    """
    # A fork of this process has everything imported; where there is none, each imports it again.
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    waiting = iter(names)
    running: dict[Any, tuple[str, Any, float]] = {}
    while True:
        for name in itertools.islice(waiting, processes - len(running)):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_answer, args=(sender, work, name), daemon=True)
            process.start()
            sender.close()
            running[receiver] = name, process, time.monotonic() + limit
        if not running:
            return
        ready = wait(list(running), max(0.0, min(end for _, _, end in running.values()) - time.monotonic()))
        for receiver, (name, process, end) in list(running.items()):
            if receiver in ready:
                try:
                    found: Any = receiver.recv()
                except EOFError:
                    found = "died"
            elif time.monotonic() >= end:
                found = "hung"
                process.kill()
            else:
                continue
            process.join()
            receiver.close()
            del running[receiver]
            yield name, found


# ------------------------------------------------------------------------------------------------ right or wrong


def tried(name: str, backend: str = "auto") -> Outcome:
    """The outcome of a program; of one that breaks the comparison itself, that."""
    try:
        return trial(name, backend)
    except Exception as problem:
        return Outcome(name, "wrong", failures=[f"the comparison broke: {type(problem).__name__}: {problem}"])


def compare(names: list[str], processes: int, limit: float, backend: str = "auto") -> list[Outcome]:
    """The outcomes of all of them; failures are printed as they are found."""
    outcomes = []
    for name, found in at_once(functools.partial(tried, backend=backend), names, processes, limit):
        outcome = found if isinstance(found, Outcome) else Outcome(name, found, failures=[found])
        outcomes.append(outcome)
        if outcome.failures:
            print(f"{name}: {outcome.verdict}", *outcome.failures, sep="\n    ", flush=True)
    return sorted(outcomes, key=lambda outcome: outcome.name)


def told(outcomes: list[Outcome], whole: bool) -> bool:
    """Print the distribution; whether everything is right, and of the whole collection enough of it lifted."""
    print()
    left = [o for o in outcomes if o.verdict == "engine"]
    for outcome in left:
        why = f"accepted: {outcome.accepted}; " if outcome.accepted else ""
        print(f"{outcome.name} stays with the engine: {why}{' | '.join(outcome.reasons)}")
    for outcome in outcomes:
        if outcome.others:
            print(f"{outcome.name}: {' | '.join(outcome.others)}")
    verdicts = (LIFTED, "engine", "wrong", "raised", "hung", "died")
    fields = sorted({o.name.partition(".")[0] for o in outcomes})
    print("\n" + " " * 28 + "".join(f"{verdict:>9}" for verdict in verdicts))
    for field in [*fields, ""]:
        counts = Counter(o.verdict for o in outcomes if o.name.startswith(field + "." * bool(field)))
        print(f"{field or 'all':28}" + "".join(f"{counts[verdict]:9}" for verdict in verdicts))
    ours = [o for o in outcomes if not o.accepted]
    share = sum(o.verdict == LIFTED for o in ours) / max(1, len(ours))
    failed = [o for o in outcomes if o.verdict not in (LIFTED, "engine")]
    print(
        f"\n{len(outcomes)} programs, {sum(o.compared for o in outcomes):,} calls compared: {len(failed)} failed; "
        f"{share:.1%} of those that do not ask for the engine were lifted, and right"
    )
    return not failed and (share >= PROMISED or not whole)


# ------------------------------------------------------------------------------------------------ the programs alone


def examined(name: str) -> str:
    """What is wrong with a program itself; empty if nothing is."""
    one, two = Side(name), Side(name)
    finite = raised = calls = 0
    for number in range(trials.SETS):
        for side in (one, two):
            side.move(number)
        for mode in one.program.modes:
            for count in (1, 7):
                seed = f"{number} {mode} {count}"
                first, again = one.call(mode, seed, count, False), two.call(mode, seed, count, False)
                if type(first.exception) is not type(again.exception) or repr(first.numbers) != repr(again.numbers):
                    return f"{mode}: not the same again: {first.numbers[:3]}, {again.numbers[:3]}, {again.exception}"
                if not trials.alike(first.effects, again.effects):
                    return f"{mode}: not the same effects again"
                if mode == "values" and first.exception is not None:
                    continue  # math.log of a Value: the same error compiled
                calls += 1
                raised += first.exception is not None
                finite += first.exception is None and all(map(math.isfinite, first.numbers + first.parameters))
                if first.exception is not None and number == 0 and mode in ("call", "map"):
                    print(f"{name}: {mode}: {type(first.exception).__name__}: {first.exception}")
    still = one.parameters and not any(any(one.call("call", f"{n} call", 0, False).parameters) for n in range(6))
    if still:
        return "no parameter ever has a gradient"
    return "" if finite > 0.5 * calls else f"{finite} of {calls} calls are finite, {raised} raise"


# ------------------------------------------------------------------------------------------------ cost


def seconds(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """The median times of two calls, which take turns; both together for about 0.1 seconds."""
    began = time.perf_counter()
    first(), second()
    turns = min(200, max(7, int(0.1 / (time.perf_counter() - began))))
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns):
        for which, call in ((0, first), (1, second))[:: 1 if turn % 2 else -1]:
            start = time.perf_counter()
            call()
            times[which].append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _batch(results: list[Any], mode: str) -> Any:
    """What a batch comes to without a compiler: of `map` the numbers, as it gives them."""
    if mode != "map":
        return trials.combined(results, mode)
    return np.array([x.data if type(x) is Value else _numbers(x) for x in results])


def _numbers(x: Any) -> Any:
    if isinstance(x, (list, tuple, np.ndarray)) and np.ndim(x):
        return [v.data if type(v) is Value else _numbers(v) for v in x]
    return x.data if isinstance(x, Value) else x


def cost(name: str, backend: str = "auto") -> dict[str, tuple[float, float]] | str:
    """For one example, and for `map` and `mean` of 64: the times of the compiled and of the uncompiled call."""
    warnings.simplefilter("ignore")
    plain, compiled = Side(name), Side(name, backend)
    if plain.program.effects:
        return "has effects"  # of which a hundred calls pile up
    found = {}
    for mode in (mode for mode in ("call", "map", "mean") if mode in plain.program.modes):
        examples = [side.arguments("cost", BATCH * (mode != "call")) for side in (plain, compiled)]
        if mode == "call":
            calls = [lambda side=side, x=x: side.function(**x[0]) for side, x in zip((plain, compiled), examples)]  # type: ignore[misc] # noqa: B905
        else:
            columns = compiled.columns(examples[1])
            calls = [
                lambda x=examples[0], mode=mode: _batch([plain.function(**each) for each in x], mode),
                lambda columns=columns, mode=mode: getattr(compiled.function, mode)(**columns),
            ]
        try:
            for _ in range(WARMING):
                calls[1]()
            until = time.monotonic() + SETTLING  # machine code that is being made takes time from both
            while time.monotonic() < until and "is being made" in compiled.function.report():
                calls[1]()
            by_engine, by_program = seconds(calls[0], calls[1])
        except Exception as problem:
            return f"raised {type(problem).__name__}: {problem}"
        found[mode] = by_program, by_engine
    return found


def costs(names: list[str], processes: int, limit: float, backend: str = "auto") -> bool:
    """Print how the ratios are distributed, and who is beyond the bar; whether nobody is."""
    ratios: dict[str, list[float]] = {}
    beyond = []
    for name, found in at_once(functools.partial(cost, backend=backend), names, processes, limit):
        if isinstance(found, str):
            print(f"{name}: not measured: {found}", flush=True)
            continue
        for mode, (compiled, plain) in found.items():
            ratios.setdefault(mode, []).append(compiled / plain)
            if compiled > ALLOWED_RATIO * plain + ALLOWED_TIME:
                beyond.append((compiled / plain, mode, name, compiled, plain))
    for ratio, mode, name, compiled, plain in sorted(beyond, reverse=True):
        print(f"{ratio:7.2f} times  {mode:5} {name}: {compiled * 1e6:,.1f} µs compiled, {plain * 1e6:,.1f} µs as it is")
    edges = [0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 5.0, math.inf]
    print("\ncompiled / uncompiled  " + "".join(f"{mode:>9}" for mode in ratios))
    for low, high in itertools.pairwise(edges):
        print(f"{low:6} to {high:6}        " + "".join(f"{sum(low <= r < high for r in ratios[m]):9}" for m in ratios))
    print("median                 " + "".join(f"{np.median(ratios[mode]):9.3f}" for mode in ratios))
    for mode, found in ratios.items():
        slow = sum(1 for each in beyond if each[1] == mode)
        print(f"{mode}: {slow} of {len(found)} take more than {ALLOWED_RATIO} times the uncompiled call plus 1 µs")
    return not beyond


# ------------------------------------------------------------------------------------------------ the command


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only programs with this text in their name")
    parser.add_argument("--field", default="", help="only programs of this file")
    parser.add_argument("--sample", type=int, help="only so many, by chance")
    parser.add_argument("--seed", type=int, default=0, help="of the chance")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds for a program; after that it counts as hung"
    )
    parser.add_argument("--backend", default="auto", choices=("auto", *BACKENDS), help="what runs the programs")
    parser.add_argument("--plain", action="store_true", help="look at the programs themselves; compile nothing")
    parser.add_argument("--cost", action="store_true", help="measure compiled calls beside uncompiled ones")
    wanted = parser.parse_args()
    names = [n for n in collection() if wanted.only in n and n.startswith(wanted.field + "." * bool(wanted.field))]
    if not names:
        parser.error("no program has such a name")
    if wanted.sample is not None:
        names = sorted(random.Random(wanted.seed).sample(names, min(wanted.sample, len(names))))
    if wanted.plain:
        faults = [(name, found) for name, found in at_once(examined, names, wanted.processes, wanted.limit) if found]
        print(*(f"{name}: {found}" for name, found in faults), f"{len(names)} programs, {len(faults)} faulty", sep="\n")
        sys.exit(bool(faults))
    if wanted.cost:
        sys.exit(not costs(names, wanted.processes, wanted.limit, wanted.backend))
    whole = not (wanted.only or wanted.field or wanted.sample)
    sys.exit(not told(compare(names, wanted.processes, wanted.limit, wanted.backend), whole))


if __name__ == "__main__":
    main()
