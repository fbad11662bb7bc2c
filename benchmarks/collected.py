"""The programs of `tests/programs`, call by call: what compiled functions take beside the functions themselves.

See `benchmarks.calls`. As a command it measures for another process, so that another checkout's package may stand on
its path: a line of standard input names a program, and a line of JSON tells what its calls take. Each program is
measured in a fork of it, with a limit.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import duration
from benchmarks.timing import table
from tests.programs.trial import Comparison, Side, combined, reasons, root_of
from tools.qa.programs import at_once
from wengert import Graph, Value

__all__ = ["BATCH", "distributions", "measured", "run", "worst"]

ROOT = Path(__file__).resolve().parent.parent
BACKENDS, BATCH = ("auto", "native"), 64
MODES = {"call": "one call", "mean": f"a batch of {BATCH}"}
SETS = 5  # of arguments, that calls take in turn
FIRST, LAST = 5, 100  # calls that are timed: the four before them are compared with the function, and not timed
SECONDS = 4.0  # of calls: the first may record and compile
LIMIT = 30.0  # seconds that a program may take
FEW = 20  # operations: with fewer there is little to gain
SLOWER, MUCH, SLACK = 1.1, 1.2, 1e-6  # times the function's time; and its mean, with a microsecond
WORST = 10
WAY = "\n  specialization "  # begins what a report says of a way through the program
GROUPS = (f"{FEW} operations or more", "fewer operations", "with effects", "uncompiled", "failed")

Found = dict[str, dict[str, Any]]  # of each program, what `measured` gives

# -- in a process of a version -----------------------------------------------------------------------------------------


def timed(call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], most: float) -> dict[str, Any]:
    """Calls with `backward()`, the first of which is call number FIRST: what they take.

    Returns:
        `settled`, the median seconds of the calls whose number is no power of two, which are not compared with the
        function; `mean`, seconds of the processor a call over all of them; `calls`, how many.
    """
    times: list[float] = []
    gc.disable()  # as timeit does
    began, until = time.process_time(), time.perf_counter() + most
    for given in arguments:
        start = time.perf_counter()
        try:
            root = call(*given)
            if not isinstance(root, Value):
                root = root_of(root)
            if root is not None:
                root.backward()
        except Exception:  # of the program's own, for these arguments
            pass
        end = time.perf_counter()
        times.append(end - start)
        if end > until and len(times) > SETS:
            break
    total = time.process_time() - began
    gc.enable()
    settled = [each for number, each in enumerate(times, FIRST) if number & (number - 1)]
    return {"settled": statistics.median(settled), "mean": total / len(times), "calls": len(times)}


def calls_of(compared: Comparison, mode: str) -> list[tuple[Callable[..., Any], list[tuple[Any, ...]]]]:
    """What is called, and with what in turn: the compiled function, and the function itself."""
    sides, numbers = (compared.compiled, compared.plain), range(FIRST - 1, LAST)
    if mode == "call":  # drawn anew for each call, which may change what it is given
        drawn = [[side.arguments(f"0 {mode} {n % SETS}")[0] for n in numbers] for side in sides]
        return [(side.function, [tuple(x.values()) for x in some]) for side, some in zip(sides, drawn, strict=True)]
    rows = [compared.plain.arguments(f"0 {mode} {n}", BATCH) for n in range(SETS)]
    columns = [tuple(compared.compiled.columns(each).values()) for each in rows]
    function = compared.plain.function

    def by_one(*examples: dict[str, Any]) -> Any:
        return combined([function(*each.values()) for each in examples], "mean")

    given = [columns[n % SETS] for n in numbers], [tuple(rows[n % SETS]) for n in numbers]
    return [(compared.compiled.function.mean, given[0]), (by_one, given[1])]


def in_mode(name: str, mode: str) -> dict[str, Any]:
    """The function as it stands, and compiled for each back end, which has to be right before it is timed."""
    found: dict[str, Any] = {}
    for backend in BACKENDS:
        compared = Comparison(name, backend)
        (ours, its), (plain, theirs) = calls_of(compared, mode)
        gc.collect()  # before the first calls, so that those that are timed find what these left in the caches
        for number in range(FIRST - 1):
            compared.call(mode, f"0 {mode} {number % SETS}", BATCH * (mode != "call"))
        if compared.outcome.failures:
            return {"failed": compared.outcome.failures[0]}
        known = compared.compiled.function.report().count(WAY)
        found[backend] = timed(ours, its, SECONDS)
        if "plain" not in found:
            timed(plain, theirs[:1], SECONDS)
            found["plain"] = timed(plain, theirs[1:], SECONDS / 4)
        report = compared.compiled.function.report()
        others = sorted({line.strip() for line in report.splitlines() if "not run as" in line})
        ways = report.count(WAY)
        found[backend] |= {"ways": ways, "recorded": ways != known, "why": reasons(report) + others}
        found["uncompiled"] = bool(reasons(report))  # by its own nature, when machine code is asked for
    return found


def operations(name: str) -> int:
    """The nodes of a call's graph, in the median of the sets of arguments."""
    plain, found = Side(name), []
    for number in range(SETS):
        with contextlib.suppress(Exception):
            root = root_of(plain.function(*plain.arguments(f"0 call {number}")[0].values()))
            found.append(0 if root is None else len(Graph(root)))
    return round(statistics.median(found or [0]))


def measured(name: str, least: int) -> dict[str, Any]:
    """All of a program, in each mode that it has; of one that has fewer operations, how many."""
    warnings.simplefilter("ignore")
    program = Side(name).program
    found: dict[str, Any] = {"effects": program.effects, "engine": program.engine}
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        found["operations"] = operations(name)
        for mode in [mode for mode in MODES if mode in program.modes and found["operations"] >= least]:
            try:
                found[mode] = in_mode(name, mode)
            except Exception as problem:
                found[mode] = {"failed": f"{type(problem).__name__}: {problem}"}
    return found


def serve(least: int) -> None:
    """Answer until standard input ends, for programs of so many operations or more."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what a program prints is not an answer
        gc.freeze()  # no collection in a fork looks at what was there before
        for line in sys.stdin:
            ((_, found),) = at_once(functools.partial(measured, least=least), [line.strip()], 1, LIMIT)
            print(json.dumps(found if isinstance(found, dict) else {"failed": found}), file=answers, flush=True)


# -- who asks it -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def version(source: Path, cache: str, least: int) -> Iterator[Callable[[str], dict[str, Any]]]:
    """What measures a program by the package in a folder."""
    path = os.pathsep.join([str(source), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "WENGERT_CACHE": cache, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.collected", str(least)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT) as process:
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None

        def ask(name: str) -> dict[str, Any]:
            print(name, file=asked, flush=True)
            found: dict[str, Any] = json.loads(answers.readline())
            return found

        yield ask
        asked.close()


def run(names: Sequence[str], sources: dict[str, Path], least: int, say: Callable[[str], None]) -> dict[str, Found]:
    """What each version of the package, by title and source, takes for each program of so many operations or more:
    they take turns.
    """
    found: dict[str, Found] = {title: {} for title in sources}
    with tempfile.TemporaryDirectory() as cache, contextlib.ExitStack() as stack:
        asks = {title: stack.enter_context(version(source, cache, least)) for title, source in sources.items()}
        for number, name in enumerate(names):
            if number % 50 == 0:
                say(f"{number} of {len(names)} programs")
            for title, ask in asks.items():
                found[title][name] = ask(name)
    return found


# -- what it comes to --------------------------------------------------------------------------------------------------


def group(found: dict[str, Any], mode: str) -> str:
    """Which programs one is counted among."""
    made = found.get(mode, found)
    if "failed" in made:
        return GROUPS[4]
    if found["effects"]:
        return GROUPS[2]
    return GROUPS[3] if found["engine"] or made.get("uncompiled") else GROUPS[found["operations"] < FEW]


def ratio(made: dict[str, Any], backend: str, what: str = "settled") -> float:
    """The time of a compiled call over that of the function."""
    return float(made[backend][what] / made["plain"][what])


def row(some: Sequence[dict[str, Any]], backend: str) -> list[str]:
    """How the ratios of programs are distributed."""
    ratios = [ratio(made, backend) for made in some]
    means = [ratio(made, backend, "mean") for made in some]
    beyond = [made for made in some if made[backend]["mean"] > MUCH * made["plain"]["mean"] + SLACK]
    settled = sum(not made[backend]["recorded"] for made in beyond)
    figures = [f"{np.quantile(each, q):.3g}" for each, q in ((ratios, 0.5), (ratios, 0.9), (means, 0.5), (means, 0.9))]
    slower = f"{sum(x > SLOWER for x in ratios)}"
    return [f"{len(some)}", *figures[:2], slower, *figures[2:], f"{len(beyond)}", f"{settled}"]


def distributions(found: dict[str, Found]) -> str:
    """A table of each mode: the ratios of all programs, by version, back end and group."""
    tables = []
    for mode, title in MODES.items():
        head = [title, "of", "programs", "median", "90 %", f"> {SLOWER}", "mean: median", "90 %"]
        head += [f"> {MUCH} and 1 µs", "nothing recorded"]
        rows = []
        for which in GROUPS:
            for who, programs in found.items():
                of = f", {who}" * (len(found) > 1)
                some = [each.get(mode, each) for each in programs.values() if group(each, mode) == which]
                times = [made for made in some if "plain" in made]
                if len(times) < len(some):
                    rows.append([f"any{of}", f"{which}, not timed", f"{len(some) - len(times)}", *[""] * 7])
                if times:
                    rows += [[f"{backend}{of}", which, *row(times, backend)] for backend in BACKENDS]
        tables.append(table(head, rows))
    return "\n\n".join(tables)


def worst(found: dict[str, Found]) -> str:
    """The programs with the largest ratios by name, with what there is to know of them; and those that failed."""
    lines = []
    for mode, title in MODES.items():
        for who, programs in found.items():
            timed = [name for name, each in programs.items() if "plain" in each.get(mode, each)]
            for backend in BACKENDS:
                lines += ["", f"The slowest of {title} by {backend}, {who}:"]
                for name in sorted(timed, key=lambda name: -ratio(programs[name][mode], backend))[:WORST]:
                    made = programs[name][mode]
                    own, kind = made[backend], group(programs[name], mode)
                    notes = [f"{programs[name]['operations']} operations", kind, f"{own['ways']} ways", *own["why"]]
                    times = f"{duration(own['settled'])} for {duration(made['plain']['settled'])}"
                    lines.append(f"  {ratio(made, backend):6.3f} {name}: {times}; {'; '.join(notes)}")
            for name, each in programs.items():
                failed = each.get("failed") or each.get(mode, {}).get("failed")
                lines += [f"  failed, {who}: {name}: {failed}"] if failed else []
    return "\n".join(lines)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
