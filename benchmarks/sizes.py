"""Draws what a banded Hessian takes by its size, and until there is one, by Wengert, CasADi, and JAX with asdex.

The function is the Lagrangian of Luksan and Vlcek, of 10 to 100,000 variables. Each point is measured in a fresh
process without caches; a tool does not go on to a size that would take more than a minute.
"""

from __future__ import annotations

import importlib
import multiprocessing
import runpy
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks.peers.derivatives import LuksanVlcek
from benchmarks.report import duration
from benchmarks.timing import table

__all__ = ["drawn"]

SIZES = (10, 100, 1000, 10_000, 100_000)
SECONDS = 1.0  # of calls that are timed, after the first few, which are checked
PATIENCE = 6.0  # seconds until the first result, after which ten times as many variables are not tried,
GROWS = 1000  # from so many on: before, most of it does not depend on the size
STYLE = {"Wengert": ("#0072b2", "o", 2.5), "CasADi": ("#d55e00", "s", 1.5), "JAX, asdex": ("#009e73", "^", 1.5)}
"""Each tool's colour, mark and width of line: colours that follow the page's, light or dark."""


def measured(who: str, count: int) -> tuple[float, float]:
    """Seconds until the first result, and of a later call, in a process of its own."""
    from benchmarks import derivatives

    module, make = derivatives.WAYS[who]
    task = LuksanVlcek("sparse Hessian", count)
    importlib.import_module("scipy.sparse")
    importlib.import_module(module)
    began = time.perf_counter()
    way = make(task)
    way.call()
    first = time.perf_counter() - began
    times: list[float] = []
    while len(times) < 8 or (sum(times) < SECONDS and len(times) < 300):
        began = time.perf_counter()
        way.call()
        times.append(time.perf_counter() - began)
    return first, statistics.median(times[4:])


def operations(count: int) -> int:
    """How many operations the Lagrangian has: as many for each variable."""
    from wengert import Graph, Value

    few = []
    for n in (10, 20):
        task = LuksanVlcek("sparse Hessian", n)
        few.append(len(Graph(task.lagrangian([Value(x) for x in task.x], list(task.multipliers)))) - n)
    return few[0] + (few[1] - few[0]) * (count - 10) // 10


def drawn(path: Path, most: int = SIZES[-1]) -> str:
    """Measure, draw, and return the figures as a table."""
    from benchmarks import derivatives

    found: dict[str, list[tuple[int, float, float]]] = {}
    for who in STYLE:
        for count in [size for size in SIZES if size <= most]:
            if who in found and found[who][-1][0] >= GROWS and found[who][-1][1] > PATIENCE:
                break
            try:
                importlib.import_module(derivatives.WAYS[who][0])
            except ImportError:
                break
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), derivatives.begin) as process:
                found.setdefault(who, []).append((count, *process.submit(measured, who, count).result()))
    path.write_text(_picture(found), encoding="utf-8")
    rows = [
        [who, f"{count:,}", f"{operations(count):,}", duration(first), duration(call)]
        for who, points in found.items()
        for count, first, call in points
    ]
    return table(["tool", "variables", "operations", "until the first result", "a call"], rows)


def _picture(found: dict[str, list[tuple[int, float, float]]]) -> str:
    """Both panels as SVG: each line has its name at its end."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.9), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    for who, points in found.items():
        colour, mark, width = STYLE[who]
        look: dict[str, Any] = {"color": colour, "marker": mark, "linewidth": width, "markersize": 5}
        counts, firsts, calls = zip(*points, strict=True)
        left.loglog(counts, calls, label=who, **look)
        right.loglog([operations(count) for count in counts], firsts, label=who, **look)
    left.set(title="A banded Hessian: time of a call", xlabel="variables", ylabel="seconds")
    right.set(title="Time until the first result", xlabel="operations in the function", ylabel="seconds")
    for axes in (left, right):
        axes.grid(color="#d9d9d9", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    text = StringIO()
    with rc_context({"svg.hashsalt": "derivatives"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    follows = runpy.run_path(str(Path(__file__).resolve().parent.parent / "docs" / "_ext" / "dark_plots.py"))["follows"]
    made: str = follows(text.getvalue())
    return made
