"""How machine code does as networks and programs grow: beside NumPy, and in what it takes to make it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks import preparation
from benchmarks.report import duration
from benchmarks.timing import agree, in_turns, table
from wengert import nn
from wengert.compiler import Compiled
from wengert.compiler.backends import BACKENDS

__all__ = ["prepared", "sweep"]

CLOSE = 1e-10  # as near as all results are, relative to the largest of each
WIDTHS, COUNTS = (8, 32, 128, 512, 1024), (1, 4, 16, 64, 256, 1024, 4096)  # hidden units, and examples in a batch
SIZES = (80, 1000, 10_000, 100_000, 1_700_000)  # of programs that are prepared: a fourth more than they have nodes,
SHAPES = (("network", SIZES[-1]), ("chain", SIZES[-1]), ("random, deep", 10_000))  # of these shapes, each up to so many


def sweep(path: Path, rounds: int) -> str:
    """Loss and gradient of networks with one hidden layer, by machine code and by NumPy: a table, and a picture."""
    draw, cells = np.random.default_rng(1), []
    for width in WIDTHS:
        model = nn.MLP(16, [width, 1], rng=Random(1))
        X, Y = draw.normal(size=(COUNTS[-1], 16)), draw.normal(size=COUNTS[-1])
        losses = {
            name: Compiled(lambda x, y, model=model: (model(x) - y) ** 2, backend=BACKENDS[name])
            for name in ("numpy", "native")
        }
        cells.append([])
        for count in COUNTS:
            runs: dict[str, Callable[[], Any]] = {}
            found = []
            for name, loss in losses.items():
                loss.mean(X[:count], Y[:count])
                made = loss._server.latest()
                space = made.acquire()
                space.load()
                arrays = [X[:count].copy(), Y[:count].copy()]
                runs[name] = lambda space=space, arrays=arrays, n=count: space.run(arrays, n, True, 1.0 / n)
                runs[name]()
                found.append((space.added(count) / count, np.array(space.grads)))
            agree(f"width {width}, batch {count}: machine code differs from NumPy", found[1], found[0], CLOSE)
            seconds = in_turns(runs, rounds)
            cells[-1].append(seconds["numpy"] / seconds["native"])
    _draw(path, cells)
    head = ["NumPy / native", *[f"batch {count:,}" for count in COUNTS]]
    return table(head, [[f"width {w:,}", *[f"{x:.2g}x" for x in row]] for w, row in zip(WIDTHS, cells, strict=True)])


def _draw(path: Path, cells: list[list[float]]) -> None:
    """The same as lines: how many times as fast, against the batch."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    for width, row in zip(WIDTHS, cells, strict=True):
        axes.loglog(COUNTS, row, marker="o", markersize=4, label=f"{width:,} hidden units")
    axes.axhline(1.0, color="gray", linewidth=0.8)
    axes.set(xlabel="examples in a batch", ylabel="NumPy's time / machine code's")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    matplotlib.rcParams["svg.hashsalt"] = "wengert"
    figure.savefig(path, metadata={"Date": None})


def prepared() -> str:
    """A table of nodes, steps, seconds until NumPy can run, until there is machine code, and until it is there from
    disk.
    """
    rows = [row for shape, most in SHAPES for row in _of_shape(shape, [size for size in SIZES if size <= most])]
    return table(["program", "nodes", "steps", "lifted in", "machine code in", "from disk in"], rows)


def _of_shape(shape: str, sizes: Sequence[int]) -> list[list[str]]:
    """Its rows of programs of one shape."""
    rows = []
    for size in (sizes[0], *sizes):  # the first time, what the process begins with is made too
        nodes, seconds, kernel, _ = preparation.prepare(preparation.SHAPES[shape](size))
        steps = kernel.program.size + kernel.backward.size
        times = []
        with tempfile.TemporaryDirectory() as folder:  # nothing is found there that was made before
            before, os.environ["WENGERT_CACHE"] = os.environ.get("WENGERT_CACHE"), folder
            for _ in range(2):
                began = time.process_time()
                made = BACKENDS["native"].kernel()(kernel.program, kernel.backward, kernel.wanted)
                times.append(time.process_time() - began)
            os.environ.pop("WENGERT_CACHE") if before is None else os.environ.update(WENGERT_CACHE=before)
        cells = [
            duration(sum(seconds.values())),
            *[duration(x) + " refused" * bool(made.fallback_reason) for x in times],
        ]
        rows.append([shape, f"{nodes:,}", f"{steps:,}", *cells])
    return rows[1:]
