"""Derivatives that engineers and scientists compute, as the documentation writes them, beside CasADi, JAX and SciPy.

    python -m benchmarks.derivatives [--only NAME ...] [--rounds 9] [--report] [--profile]
        [--solve] [--plot FILE.svg] [--page FILE.md]

Each task is written as the documentation of each tool has it; `benchmarks/peers/derivatives.py` has the texts. CasADi
runs by its virtual machine and by the C that it generates, compiled with gcc -O2 -march=native where that takes less
than eight seconds (for optimal control, ninety); by its own call, which converts, and by buffers, which do not. JAX is
jitted, and its calls end when the result is there; asdex finds patterns and colourings for it. What is by hand is
SciPy's own function, or NumPy. All results are compared before anything is timed; calls take turns in one process. The
time until the first result is that of a fresh process without caches, imports left out; compilation is in it.

`--solve` solves the control problem by IPOPT and SciPy with the derivatives of Wengert and of CasADi; `--plot` draws
what a banded Hessian takes by its size; `--report` tells what runs of Wengert's; `--profile` where the time goes, until
the first result and in later calls. All of it, into the documentation:

    python -m benchmarks.derivatives --solve --plot docs/images/derivatives.svg --page docs/benchmarks-derivatives.md
"""

from __future__ import annotations

import argparse
import compileall
import cProfile
import functools
import importlib
import math
import multiprocessing
import os
import pstats
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import wengert
from benchmarks import sizes, solving, timing
from benchmarks.formulas import compiler
from benchmarks.lines import lines
from benchmarks.peers.derivatives import TASKS
from benchmarks.peers.tasks import Task, jax_library
from benchmarks.race import ONE_THREAD
from benchmarks.report import duration, folded, into_page, machine, ratio
from benchmarks.timing import table

__all__ = ["WAYS", "main"]

CLOSE = 1e-10  # as near as all results are to the first one's, relative to the largest
SLOW = 1.5  # of the best peer's time: slower tasks are counted, and so many named
MOST = 4
CALLS = 300  # before those that are timed, of a few seconds, or
FEW = 40  # if they are slow
SETTLED, LIMIT = 2.0, 60.0  # seconds of them; few of them, if they are slow
FOLDER = "WENGERT_BENCHMARK_FOLDER"  # the variable that names the folder of compiled C, for all processes


class AbsentError(Exception):
    """Why a tool has no such way."""


class Way(NamedTuple):
    """A call, and what makes numbers of its result: a sparse matrix, or an array with a row for each example."""

    call: Callable[[], Any]
    read: Callable[[Any], Any]


def numbers(result: Any) -> Any:
    """All numbers of a result, in order; a sparse matrix as SciPy has it."""
    if hasattr(result, "indices") and hasattr(result, "todense") and not hasattr(result, "tocsr"):  # JAX's
        from scipy.sparse import coo_array

        return coo_array((np.asarray(result.data), np.asarray(result.indices).T), result.shape).tocsr()
    if hasattr(result, "tocsr"):
        return result.tocsr()
    if isinstance(result, (tuple, list)):
        return np.concatenate([numbers(part) for part in result])
    return np.ravel(np.asarray(result, float))


def apart(got: Any, want: Any) -> float:
    """By how much two results differ, relative to the largest number; infinite if they do not fit each other."""
    if hasattr(want, "tocsr") or hasattr(got, "tocsr"):
        shape = want.shape if hasattr(want, "tocsr") else got.shape
        got, want = [x if hasattr(x, "tocsr") or x.size != math.prod(shape) else x.reshape(shape) for x in (got, want)]
    if got.shape != want.shape:
        return math.inf
    return float(abs(got - want).max() / max(abs(want).max(), 1e-300))


def by_wengert(task: Task) -> Way:
    """The call of the documentation."""
    function, args = task.wengert()
    return Way(functools.partial(function, *args), numbers)


def by_jax(task: Task) -> Way:
    """jax.jit."""
    function, args = task.jax()
    return Way(functools.partial(function, *args), numbers)


def by_asdex(task: Task) -> Way:
    """The same, of a sparse matrix."""
    jax_library()  # 64 bits, also of what asdex looks at
    function, args = task.asdex()
    return Way(functools.partial(function, *args), numbers)


def by_hand(task: Task) -> Way:
    """SciPy's own function, or NumPy."""
    function, args = task.hand()
    return Way(functools.partial(function, *args), numbers)


def by_casadi(task: Task, *, compiled: bool = False, buffers: bool = False) -> Way:
    """CasADi's function, by its virtual machine or by the C that it generates; called, or through its buffers."""
    import casadi

    function, args = task.casadi()
    if compiled:
        function = by_gcc(task, function)

    def read(result: Any) -> Any:
        if isinstance(result, casadi.DM) and not result.is_dense():
            return result.sparse().tocsr()
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

    def found(_: Any) -> Any:
        made = [casadi.DM(function.sparsity_out(n), x) for n, x in enumerate(outs)]
        return read(made[0] if len(made) == 1 else tuple(made))

    return Way(call, found)


def by_gcc(task: Task, function: Any) -> Any:
    """A function of CasADi's by the C that it generates, or why there is none; as another process has it already."""
    import casadi

    cc = shutil.which("gcc")
    if cc is None:
        raise AbsentError("no gcc")
    name, folder = function.name(), Path(os.environ.get(FOLDER) or tempfile.mkdtemp())
    target = folder / (re.sub(r"\W+", "-", task.title) + ".so")
    if target.with_suffix(".failed").exists():
        raise AbsentError(target.with_suffix(".failed").read_text())
    if target.exists():
        return casadi.external(name, str(target))
    generator = casadi.CodeGenerator(f"{name}.c")
    generator.add(function)
    source = target.with_suffix(".c")
    source.write_text(generator.dump())
    options = ["-O2", "-march=native", "-shared", "-fPIC"]
    process = subprocess.Popen([cc, *options, "-o", target, source, "-lm"], start_new_session=True)
    why = ""
    try:
        if process.wait(task.patience):
            why = "gcc fails"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the compiler that gcc started, too
        process.wait()
        why = f"gcc takes more than {task.patience:.0f} s"
    if why:
        target.with_suffix(".failed").write_text(why)
        raise AbsentError(why)
    return casadi.external(name, str(target))


WAYS: dict[str, tuple[str, Callable[[Task], Way]]] = {
    "CasADi": ("casadi", by_casadi),
    "CasADi, buffers": ("casadi", functools.partial(by_casadi, buffers=True)),
    "CasADi's C": ("casadi", functools.partial(by_casadi, compiled=True)),
    "CasADi's C, buffers": ("casadi", functools.partial(by_casadi, compiled=True, buffers=True)),
    "JAX": ("jax", by_jax),
    "JAX, asdex": ("asdex", by_asdex),
    "by hand": ("scipy.optimize", by_hand),
    "Wengert": ("wengert.compiler.sparse", by_wengert),
}
"""The module that a way imports, and what makes it. The first that there is says what is right."""
NATURAL = ("CasADi", "CasADi's C", "JAX", "JAX, asdex")  # what a natural call is compared with
AT_BEST = (*NATURAL, "CasADi, buffers", "CasADi's C, buffers")
COLD = ("Wengert", *NATURAL)
LINES = {"Wengert": "wengert", "CasADi": "casadi", "JAX": "jax", "JAX, asdex": "asdex", "by hand": "hand"}

# -- until the first result, in a fresh process ------------------------------------------------------------------------


def begin() -> None:
    """Have nothing that was made before, but byte code, which a package has once it is installed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ |= ONE_THREAD | {"WENGERT_CACHE": "", "JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_PLATFORMS": "cpu"}


def first(name: str, way: str) -> float:
    """The seconds until the first result of a task."""
    task, (module, make) = TASKS[name](), WAYS[way]
    for library in ("scipy.sparse", "llvmlite.binding"):  # Wengert imports them when it first needs them
        importlib.import_module(library)
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
    """What a task came to: seconds a call, seconds until the first result and lines by way, and why a way has none."""

    title: str
    bar: float
    prepared: float
    seconds: dict[str, float]
    first: dict[str, float]
    lines: dict[str, int]
    failed: dict[str, str]
    told: list[str]
    settled: tuple[int, float]  # calls and seconds until Wengert's are as fast as that


def race(name: str, rounds: int, *, report: bool = False, profile: bool = False) -> Found:
    """Compare all ways of a task, and time them."""
    task = TASKS[name]()
    failed: dict[str, str] = {}
    ways: dict[str, Way] = {}
    prepared: dict[str, float] = {}
    told: list[str] = []
    settled = 0, 0.0
    want: Any = None
    profiles = [cProfile.Profile(), cProfile.Profile()]
    for who, (module, make) in WAYS.items():
        if who.startswith("CasADi's C,") and "CasADi's C" in failed:
            failed[who] = ""
            continue
        try:
            importlib.import_module(module)
            if who in COLD:
                prepared[who] = cold(name, who)
            if profile and who == "Wengert":
                profiles[0].runcall(lambda task=task, make=make: make(task).call())
            way = make(task)
            way.call()
            if who == "Wengert":
                settled = settle(way.call)
            got = way.read(way.call())
        except (AbsentError, NotImplementedError) as reason:  # not said if there is no text for the tool
            failed[who] = str(reason)
            continue
        except ImportError:
            failed[who] = "not installed"
            continue
        except Exception as error:  # a tool that has no such thing is a cell
            failed[who] = f"{type(error).__name__}: {error}".partition("\n")[0].replace("|", "/")[:80]
            continue
        want = got if want is None else want
        wrong = apart(got, want)
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
    count = {who: lines(task, tool) for who, tool in LINES.items() if who in ways}
    return Found(task.title, task.bar, task.prepared, seconds, prepared, count, failed, told, settled)


# -- tables ------------------------------------------------------------------------------------------------------------


def against(mine: float, bar: float) -> str:
    """A time beside its bar."""
    if bar == math.inf:
        return ""
    return f"{duration(bar)} ✓" if mine <= bar else f"**{duration(bar)} ✗**"


def beside(times: Mapping[str, float], peers: Sequence[str]) -> float:
    """Wengert's time over that of the fastest of some peers; not a number if one is missing."""
    others = [times[who] for who in peers if who in times]
    return times["Wengert"] / min(others) if "Wengert" in times and others else math.nan


def shown(share: float) -> str:
    """A ratio as a cell."""
    return "" if math.isnan(share) else ratio(share)


def summary(all_found: Sequence[Found]) -> str:
    """How Wengert does beside the best peer of each task, and where it is slower."""
    said = []
    for what, peers, of in (
        ("A call", NATURAL, "seconds"),
        ("Beside CasADi's buffers too, a call", AT_BEST, "seconds"),
        ("The first result", NATURAL, "first"),
    ):
        shares = {found.title: beside(getattr(found, of), peers) for found in all_found}
        shares = {title: share for title, share in shares.items() if not math.isnan(share)}
        if not shares:
            continue
        usual = ratio(statistics.geometric_mean(shares.values())), ratio(statistics.median(shares.values()))
        slow = [title for title in sorted(shares, key=shares.__getitem__, reverse=True) if shares[title] > SLOW]
        listed = ": " if len(slow) <= MOST else ", among them "
        listed += "; ".join(f"{title} ({ratio(shares[title])})" for title in slow[:MOST])
        said.append(
            f"- {what} takes {usual[0]} of the time of the best peer's in the geometric mean of {len(shares)} tasks, "
            f"{usual[1]} in the median. It is the fastest in {sum(share <= 1.0 for share in shares.values())}"
            + (f", and above {SLOW}x in {len(slow)}{listed}." if slow else ".")
        )
    raced = [(found.title, found.first) for found in all_found if len(found.first) > 1]
    last = [title for title, first in raced if max(first, key=first.__getitem__) == "Wengert"]
    if raced:
        named = f": {'; '.join(last)}." if last else "."
        said.append(f"- It comes after those of CasADi, CasADi's C and JAX in {len(last)} of {len(raced)}{named}")
    return "\n".join(said)


def tables(all_found: Sequence[Found]) -> list[tuple[str, str]]:
    """Tables with their titles: calls beside their bars and the peers, the times until the first result, and lines."""
    calls, firsts, counts = [], [], []
    for found in all_found:
        cells = {who: duration(found.seconds[who]) if who in found.seconds else found.failed[who] for who in WAYS}
        mine = cells.pop("Wengert")
        shares = [shown(beside(found.seconds, peers)) for peers in (NATURAL, AT_BEST)]
        bar = against(found.seconds.get("Wengert", math.inf), found.bar)
        calls.append([found.title, mine, bar, *shares, *cells.values()])
        bar = against(found.first.get("Wengert", math.inf), found.prepared)
        each = [duration(found.first[who]) if who in found.first else "" for who in COLD]
        after, taken = found.settled
        settled = f"{duration(taken)}, {after} calls" if "Wengert" in found.seconds else ""
        firsts.append([found.title, each[0], bar, shown(beside(found.first, NATURAL)), settled, *each[1:]])
        counts.append([found.title, *[str(found.lines.get(who, "")) for who in LINES]])
    head = ["a call", "Wengert", "bar", "of the best peer's", "and of buffers'"]
    return [
        ("The time of a call", table([*head, *[who for who in WAYS if who != "Wengert"]], calls)),
        (
            "The time until the first result",
            table(
                ["until the first result", "Wengert", "bar", "of the fastest peer's", "settled after", *NATURAL], firsts
            ),
        ),
        ("Lines of code", table(["lines of code", *LINES], counts)),
    ]


def main(argv: list[str] | None = None) -> int:
    """Print the tables; 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derivatives", description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", choices=list(TASKS), help="only this one; repeatable")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--report", action="store_true", help="tell what runs of Wengert's")
    parser.add_argument("--profile", action="store_true", help="tell where Wengert's time goes")
    parser.add_argument("--solve", action="store_true", help="solve the control problem by IPOPT and SciPy")
    parser.add_argument("--plot", type=Path, help="draw what a banded Hessian takes by its size, as SVG")
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go too")
    options = parser.parse_args(argv)
    begin()
    compileall.compile_dir(Path(wengert.__file__).parent, quiet=2)
    load = f"; load {os.getloadavg()[0]:.1f} before it began" if hasattr(os, "getloadavg") else ""
    head = f"Measured {machine('casadi', 'jax', 'asdex', 'scipy', 'numpy', 'llvmlite')}; {compiler()}{load}."
    print(head, "\n", flush=True)
    found, wrong = [], False
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        try:
            for name in options.only or TASKS:
                found.append(race(name, options.rounds, report=options.report, profile=options.profile))
                wrong |= any("wrong" in why for why in found[-1].failed.values())
                print(*[text for _, text in tables(found[-1:])], *found[-1].told, sep="\n", end="\n\n", flush=True)
        finally:
            del os.environ[FOLDER]
    parts = [head, summary(found)]
    if options.solve:
        text, differs = solving.solved()
        wrong |= differs
        parts.append("\n".join(folded("The control problem, solved", text.splitlines())))
    if options.plot:
        parts.append("\n".join(folded("A banded Hessian by its size", sizes.drawn(options.plot).splitlines())))
    parts += ["\n".join(folded(title, text.splitlines())) for title, text in tables(found)]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if options.page:
        into_page(options.page, text, "derivatives")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
