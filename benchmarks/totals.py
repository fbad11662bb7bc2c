"""What the first calls of a compiled function take in total, preparation and checks included.

    python -m benchmarks.totals [NAME ...] [--sample N] [--against DIR] [--derivatives] [--processes N]

Each program of `tests/programs` runs in a process of its own that finds nothing on disk: its first 1, 3, 10, 100 and
1,000 calls, each with `backward()` and with arguments of its own, by the compiled function and by the function itself.
With `--derivatives` it is `compile(grad(f))` beside `grad(f)`, where `f` has a derivative with respect
to its first argument.

The budget is 1.5 times the function's own total, 0.1 s for the function and 0.15 s for the process (which imports
llvmlite). Times are of the processor, which other programs disturb least. The table has the distribution, and the
programs that come nearest to the budget or go beyond it, by name.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import wengert
from benchmarks.report import duration
from benchmarks.timing import table
from tests.programs.trial import Side, collection, numbers_in, reasons, root_of
from tools.qa.programs import at_once
from wengert import Value

__all__ = ["COUNTS", "beyond", "main", "totals"]

ROOT = Path(__file__).resolve().parent.parent
COUNTS = (1, 3, 10, 100, 1_000)
FACTOR, OF_FUNCTION, OF_PROCESS = 1.5, 0.1, 0.15  # the budget: times plain, and seconds
SECONDS = 20.0  # of the function's own calls; what takes longer ends sooner
LIMIT = 300.0  # seconds that a program may take
WORST = 10
CLOSE = 1e-6

Totals = dict[str, dict[int, float]]


def run(call: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], pulls: bool, most: float) -> dict[int, float]:
    """Seconds of the processor after so many calls; `pulls` calls `backward()` of each result."""
    spent, after = 0.0, {}
    for number, given in enumerate(arguments, 1):
        began = time.process_time()
        with contextlib.suppress(Exception):  # the program's own, for these arguments
            result = call(*given)
            if pulls:
                root = result if isinstance(result, Value) else root_of(result)
                if root is not None:
                    root.backward()
        spent += time.process_time() - began
        if number in COUNTS:
            after[number] = spent
        if spent > most:
            break
    return after


def sides(name: str, derivative: bool) -> tuple[Side, Side] | None:
    """The function, and the compiled one; None if it has no such derivative."""
    plain, compiled = Side(name), Side(name, "auto")
    if derivative:
        numbers = [list(side.arguments("0 call 0")[0].values()) for side in (plain, compiled)]
        if not numbers[0] or not all(type(x) is float for x in numbers_in([numbers[0][0]])):
            return None
        plain.function = wengert.grad(plain.plain)
        compiled.function = wengert.compile(wengert.grad(compiled.plain))
        try:
            plain.function(*numbers[0])
        except Exception:
            return None
    return plain, compiled


def totals(name: str, derivative: bool = False) -> dict[str, Any]:
    """Seconds after each of COUNTS calls, of both; empty for a program that has no such calls."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as cache, contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        os.environ["WENGERT_CACHE"] = cache
        both = sides(name, derivative) if "call" in Side(name).program.modes else None
        if both is None:
            return {}
        seconds: Totals = {}
        report = ""
        most = SECONDS
        for title, side in zip(("plain", "compiled"), both, strict=True):
            calls = [tuple(side.arguments(f"0 call {n}")[0].values()) for n in range(max(COUNTS))]
            random.seed(name)
            gc.collect()
            seconds[title] = run(side.function, calls, not derivative, most)
            most = LIMIT
            if side.compiled:
                report = side.function.report()
        why = reasons(report)
        ways = report.count("\n  specialization ")
        return {**seconds, "why": why, "ways": ways, "signatures": report.count(", one example: ")}


def serve(derivative: bool) -> None:
    """Answer until standard input ends, a line of JSON for each name: for a package of another checkout."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what a program prints is not an answer
        gc.freeze()
        for line in sys.stdin:
            work = functools.partial(totals, derivative=derivative)
            ((_, found),) = at_once(work, [line.strip()], 1, LIMIT)
            print(json.dumps(found if isinstance(found, dict) else {"failed": found}), file=answers, flush=True)


def asked(names: Sequence[str], source: Path, derivative: bool, processes: int) -> dict[str, Any]:
    """What each program takes by the package in a folder, several at a time."""
    path = os.pathsep.join([str(source), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.totals", "--serve", *["--derivatives"] * derivative]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT)
        for _ in range(processes)
    ]
    results: dict[str, Any] = {}
    for worker, own in zip(workers, [names[k::processes] for k in range(processes)], strict=True):
        assert worker.stdin is not None
        worker.stdin.write("".join(f"{name}\n" for name in own))
        worker.stdin.close()
    for worker, own in zip(workers, [names[k::processes] for k in range(processes)], strict=True):
        assert worker.stdout is not None
        for name in own:
            results[name] = json.loads(worker.stdout.readline())
        worker.wait()
    return results


def share(each: dict[str, Any], count: int) -> float:
    """The compiled total over the budget, which 1 is."""
    plain = each["plain"][str(count)]
    return float(each["compiled"][str(count)] / (FACTOR * plain + OF_FUNCTION + OF_PROCESS))


def timed(results: dict[str, Any], count: int) -> list[str]:
    """The programs of which both sides made so many calls."""
    key = str(count)
    return [name for name, each in results.items() if key in each.get("plain", ()) and key in each.get("compiled", ())]


def beyond(results: dict[str, Any]) -> list[str]:
    """The programs that go beyond the budget at any count."""
    return sorted({name for count in COUNTS for name in timed(results, count) if share(results[name], count) > 1.0})


def distribution(results: dict[str, Any]) -> str:
    """The shares of the budget that are used up, by the number of calls."""
    head = ["calls", "programs", "share of the budget: median", "90 %", "99 %", "most", "beyond it"]
    rows = []
    for count in COUNTS:
        shares = [share(results[name], count) for name in timed(results, count)]
        if shares:
            figures = [f"{np.quantile(shares, q):.2f}" for q in (0.5, 0.9, 0.99, 1.0)]
            rows.append([f"{count:,}", f"{len(shares)}", *figures, f"{sum(x > 1.0 for x in shares)}"])
    return table(head, rows)


def worst(results: dict[str, Any]) -> str:
    """The programs with the largest shares, by name."""
    most = {}
    for count in COUNTS:
        for name in timed(results, count):
            most[name] = max(most.get(name, (0.0, 0)), (share(results[name], count), count))
    lines = []
    for name in sorted(most, key=lambda name: -most[name][0])[:WORST]:
        part, count = most[name]
        each = results[name]
        times = f"{duration(each['compiled'][str(count)])} for {duration(each['plain'][str(count)])} plainly"
        ways = f"{each['signatures']} signatures, {each['ways']} specializations"
        lines.append(f"  {part:5.2f} {name}: {count:,} calls take {times}; {'; '.join([ways, *each['why']])}")
    failed = [f"  {name}: {each['failed']}" for name, each in results.items() if "failed" in each]
    return "\n".join(lines + failed)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs, such as finance.loan; all by default")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="each N-th program")
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout, measured first")
    parser.add_argument("--derivatives", action="store_true", help="compile(grad(f)) beside grad(f)")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="programs at a time")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures there")
    options = parser.parse_args(argv)
    if options.serve:
        serve(options.derivatives)
        return 0
    names = options.names or collection()[:: options.sample]
    checkouts = {"": ROOT} if options.against is None else {str(options.against): options.against, "this one": ROOT}
    kept = {}
    for title, checkout in checkouts.items():
        results = asked(names, checkout / "src", options.derivatives, options.processes)
        kept[title] = results
        print(
            f"\n{title}\n\n{distribution(results)}\n\nNearest to the budget, or beyond it:\n{worst(results)}",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(kept))
    return 1 if beyond(results) else 0


if __name__ == "__main__":
    sys.exit(main())
