"""Derivatives that engineers and scientists compute, as the documentation writes them, beside CasADi, JAX and SciPy.

    python -m benchmarks.derivatives [--only NAME ...] [--rounds 9] [--report] [--profile] [--page FILE.md]

Each task is written as the documentation of each tool has it; `benchmarks/peers/derivatives.py` has the texts. CasADi
runs by its virtual machine and by the C that it generates, compiled with gcc -O2 -march=native where that takes less
than a minute; by its own call, which converts, and by buffers, which do not. JAX is jitted, and its calls end when the
result is there. What is by hand is SciPy's own function, or NumPy. All results are compared before anything is timed;
calls take turns in one process. The time until the first result is that of a fresh process without caches, imports left
out; compilation is in it.

`--report` tells what runs of Wengert's; `--profile` where the time goes, until the first result and in later calls.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import importlib
import math
import multiprocessing
import os
import pstats
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import timing
from benchmarks.formulas import compiler
from benchmarks.peers.derivatives import TASKS, Task
from benchmarks.race import ONE_THREAD
from benchmarks.report import duration, into_page, machine, ratio
from benchmarks.timing import off, table

__all__ = ["WAYS", "main"]

CLOSE = 1e-10  # as near as all results are to the first one's, relative to the largest
PATIENCE = 60.0  # seconds that gcc may take
CALLS = 300  # before those that are timed, of a few seconds, or
FEW = 40  # if they are slow
SETTLED, LIMIT = 3.0, 90.0  # seconds of them; few of them, if they are slow


class AbsentError(Exception):
    """Why a tool has no such way."""


class Way(NamedTuple):
    """A call, and what makes an array of its result: for a batch, one row for each example."""

    call: Callable[[], Any]
    read: Callable[[Any], np.ndarray]


def numbers(result: Any) -> np.ndarray:
    """All numbers of a result, in order."""
    if hasattr(result, "toarray"):
        result = result.toarray()
    if isinstance(result, (tuple, list)):
        return np.concatenate([numbers(part) for part in result])
    return np.ravel(np.asarray(result, float))


def by_wengert(task: Task) -> Way:
    """The call of the documentation."""
    function, args = task.wengert()
    return Way(functools.partial(function, *args), numbers)


def by_jax(task: Task) -> Way:
    """jax.jit."""
    function, args = task.jax()
    return Way(functools.partial(function, *args), numbers)


def by_hand(task: Task) -> Way:
    """SciPy's own function, or NumPy."""
    try:
        function, args = task.hand()
    except NotImplementedError:
        raise AbsentError("") from None
    return Way(functools.partial(function, *args), numbers)


def by_casadi(task: Task, *, compiled: bool = False, buffers: bool = False) -> Way:
    """CasADi's function, by its virtual machine or by the C that it generates; called, or through its buffers."""
    import casadi

    function, args = task.casadi()
    if compiled:
        function = by_gcc(task, function)

    def read(result: Any) -> np.ndarray:
        parts = [part.full() for part in (result if isinstance(result, tuple) else (result,))]
        return np.concatenate([np.ravel(part.T if task.columns else part) for part in parts])

    if not buffers:
        return Way(functools.partial(function, *args), read)
    buffer, trigger = function.buffer()
    held = [np.ravel(np.asarray(x, float), "F") for x in args]
    outs = [np.zeros(function.nnz_out(n)) for n in range(function.n_out())]
    for n, x in enumerate(held):
        buffer.set_arg(n, memoryview(x))
    for n, x in enumerate(outs):
        buffer.set_res(n, memoryview(x))

    def call(held: Any = (buffer, held)) -> None:  # CasADi holds their addresses alone
        trigger()

    def found(_: Any) -> np.ndarray:
        made = [casadi.DM(function.sparsity_out(n), x) for n, x in enumerate(outs)]
        return read(made[0] if len(made) == 1 else tuple(made))

    return Way(call, found)


def by_gcc(task: Task, function: Any, known: dict[str, Any] = {}) -> Any:  # noqa: B006  (what is made already)
    """A function of CasADi's by the C that it generates."""
    import casadi

    if task.title in known:
        return known[task.title]
    cc = shutil.which("gcc")
    if cc is None:
        raise AbsentError("no gcc")
    name = function.name()
    generator = casadi.CodeGenerator(f"{name}.c")
    generator.add(function)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, f"{name}.c"), Path(folder, f"{name}.so")
        source.write_text(generator.dump())
        options = ["-O2", "-march=native", "-shared", "-fPIC"]
        process = subprocess.Popen([cc, *options, "-o", target, source, "-lm"], start_new_session=True)
        try:
            if process.wait(PATIENCE):
                raise AbsentError("gcc fails")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the compiler that gcc started, too
            process.wait()
            raise AbsentError(f"gcc takes more than {PATIENCE:.0f} s") from None
        return known.setdefault(task.title, casadi.external(name, str(target)))


WAYS: dict[str, tuple[str, Callable[[Task], Way]]] = {
    "CasADi": ("casadi", by_casadi),
    "CasADi, buffers": ("casadi", functools.partial(by_casadi, buffers=True)),
    "CasADi's C": ("casadi", functools.partial(by_casadi, compiled=True)),
    "CasADi's C, buffers": ("casadi", functools.partial(by_casadi, compiled=True, buffers=True)),
    "JAX": ("jax", by_jax),
    "by hand": ("scipy.optimize", by_hand),
    "Wengert": ("wengert", by_wengert),
}
"""The module that a way imports, and what makes it. The first that there is says what is right."""
NATURAL = ("CasADi", "CasADi's C", "JAX")  # what a natural call is compared with
COLD = ("Wengert", *NATURAL)

# -- until the first result, in a fresh process ------------------------------------------------------------------------


def begin() -> None:
    """Have nothing that was made before."""
    os.environ |= ONE_THREAD | {"WENGERT_CACHE": "", "JAX_ENABLE_COMPILATION_CACHE": "0"}


def first(name: str, way: str) -> float:
    """The seconds until the first result of a task."""
    task, (module, make) = TASKS[name](), WAYS[way]
    importlib.import_module(module)
    began = time.perf_counter()
    make(task).call()
    return time.perf_counter() - began


def cold(name: str, way: str) -> float:
    """The same, in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin) as process:
        return process.submit(first, name, way).result()


# -- in one process ----------------------------------------------------------------------------------------------------


def settle(call: Callable[[], Any]) -> tuple[int, float]:
    """Call until what runs is settled; return how many calls that took, and how many seconds."""
    times: list[float] = []
    while len(times) < CALLS and (sum(times) < SETTLED or (len(times) < FEW and sum(times) < LIMIT)):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    usual = statistics.median(times[-3:])
    slow = [n for n in range(len(times)) if statistics.median(times[n : n + 3]) <= 3.0 * usual]
    return slow[0], sum(times[: slow[0]])


def in_turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median seconds of each call, timed one by one: now and then one is checked, and takes as long as many."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            ends = time.perf_counter() + timing.SECONDS
            while True:
                began = time.perf_counter()
                call()
                now = time.perf_counter()
                times[name].append(now - began)
                if now > ends:
                    break
    return {name: statistics.median(each) for name, each in times.items()}


class Found(NamedTuple):
    """What a task came to: seconds a call and seconds until the first result by way, and why a way has none."""

    title: str
    bar: float
    prepared: float
    seconds: dict[str, float]
    first: dict[str, float]
    failed: dict[str, str]
    told: list[str]
    settled: tuple[int, float]  # calls and seconds until Wengert's are as fast as that


def race(name: str, rounds: int, *, report: bool = False, profile: bool = False) -> Found:
    """Compare all ways of a task, and time them."""
    task = TASKS[name]()
    failed: dict[str, str] = {}
    ways: dict[str, Way] = {}
    told: list[str] = []
    settled = 0, 0.0
    want: np.ndarray | None = None
    profiles = [cProfile.Profile(), cProfile.Profile()]
    for who, (module, make) in WAYS.items():
        if who.startswith("CasADi's C,") and "CasADi's C" in failed:
            failed[who] = ""
            continue
        try:
            importlib.import_module(module)
            if profile and who == "Wengert":
                profiles[0].runcall(lambda task=task, make=make: make(task).call())
            way = make(task)
            settled = settle(way.call)  # at last Wengert's
            got = way.read(way.call())
        except AbsentError as reason:
            failed[who] = str(reason)
            continue
        except ImportError:
            failed[who] = "not installed"
            continue
        except Exception as error:  # a tool that has no such thing is a cell
            failed[who] = f"{type(error).__name__}: {error}".partition("\n")[0].replace("|", "/")[:80]
            continue
        want = got if want is None else want
        wrong = off(got, want) if got.shape == want.shape else math.inf
        if not wrong < CLOSE:
            failed[who] = f"**wrong by {wrong:.1e}**"
            continue
        ways[who] = way
    seconds = in_turns({who: way.call for who, way in ways.items()}, rounds)
    if profile and "Wengert" in ways:
        profiles[1].runcall(lambda: [ways["Wengert"].call() for _ in range(100)])
        for title, each in zip(("until the first result", "100 calls"), profiles, strict=True):
            print(f"{name}, {title}:", flush=True)
            pstats.Stats(each).sort_stats("tottime").print_stats(12)
    if report and "Wengert" in ways:
        function: Any = ways["Wengert"].call.func  # type: ignore[attr-defined]
        told.append(getattr(function, "__self__", function).report())
    prepared = {who: cold(name, who) for who in COLD if who in ways}
    return Found(task.title, task.bar, task.prepared, seconds, prepared, failed, told, settled)


def against(mine: float, bar: float) -> str:
    """A time beside its bar."""
    if bar == math.inf:
        return ""
    return f"{duration(bar)} ✓" if mine <= bar else f"**{duration(bar)} ✗**"


def beside(found: Found, times: dict[str, float], worst: bool = False) -> float:
    """Wengert's time over that of the best peer, or the slowest; not a number if one is missing."""
    peers = [times[who] for who in NATURAL if who in times]
    if "Wengert" not in times or not peers:
        return math.nan
    return times["Wengert"] / (max if worst else min)(peers)


def tables(all_found: list[Found]) -> str:
    """Calls beside their bars and the peers, then the times until the first result."""
    calls, firsts = [], []
    for found in all_found:
        cells = {who: duration(found.seconds[who]) if who in found.seconds else found.failed[who] for who in WAYS}
        mine = cells.pop("Wengert")
        share = beside(found, found.seconds)
        shown = "" if math.isnan(share) else ratio(share)
        calls.append(
            [found.title, mine, against(found.seconds.get("Wengert", math.inf), found.bar), shown, *cells.values()]
        )
        share = beside(found, found.first, worst=True)
        shown = "" if math.isnan(share) else ratio(share)
        bar = against(found.first.get("Wengert", math.inf), found.prepared)
        each = [duration(found.first[who]) if who in found.first else "" for who in COLD]
        count, taken = found.settled
        settled = f"{duration(taken)}, {count} calls" if "Wengert" in found.seconds else ""
        firsts.append([found.title, each[0], bar, shown, settled, *each[1:]])
    shares = [x for x in [beside(found, found.seconds) for found in all_found] if not math.isnan(x)]
    said = ""
    if shares:
        usual, most = ratio(statistics.median(shares)), ratio(max(shares))
        said = f"\n\nOf the best peer's natural call: {usual} in the median, {most} at most."
    head = ["a call", "Wengert", "bar", "of the best peer's", *[who for who in WAYS if who != "Wengert"]]
    return (
        table(head, calls)
        + said
        + "\n\n"
        + table(
            ["until the first result", "Wengert", "bar", "of the slowest peer's", "settled after", *NATURAL], firsts
        )
    )


def main(argv: list[str] | None = None) -> int:
    """Print the tables; 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derivatives", description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", choices=list(TASKS), help="only this one; repeatable")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--report", action="store_true", help="tell what runs of Wengert's")
    parser.add_argument("--profile", action="store_true", help="tell where Wengert's time goes")
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go too")
    options = parser.parse_args(argv)
    begin()
    head = f"Measured {machine('casadi', 'jax', 'scipy', 'numpy', 'llvmlite')}; {compiler()}."
    print(head, "\n", flush=True)
    found = []
    for name in options.only or TASKS:
        found.append(race(name, options.rounds, report=options.report, profile=options.profile))
        print(tables(found[-1:]).replace("\n\n", "\n"), *found[-1].told, sep="\n", end="\n\n", flush=True)
    text = f"{head}\n\n{tables(found)}\n"
    print(text)
    if options.page:
        into_page(options.page, text, "derivatives")
    return int(any("wrong" in why for each in found for why in each.failed.values()))


if __name__ == "__main__":
    sys.exit(main())
