"""Long simulations: what a gradient takes where each call of a compiled stretch is a checkpoint.

    python -m benchmarks.long_runs [--rounds 9]

The Lorenz system by Euler's method, and its gradient with respect to three states and three parameters, for some
numbers of steps and lengths of a stretch; each row is measured in a process of its own, beside one program of as many
steps, but at most a million (3 GB while it is recorded), that keeps every state, as a ratio for each step. Both have
the same gradient there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import wengert
from benchmarks.timing import agree, in_turns, table
from wengert import Value

__all__ = ["main", "row"]

STEP = 1e-4
START = (1.0, 1.0, 1.0, 10.0, 28.0, 8.0 / 3.0)  # x, y, z, sigma, rho, beta
MOST, CLOSE = 1_000_000, 1e-9  # steps of the program that keeps everything, at most; how near the gradients are
ROWS = ((20_000, 1000), (100_000, 1000), (1_000_000, 1000), (1_000_000, 5000), (1_000_000, 10_000), (4_000_000, 10_000))


def stretch(steps: int, results: int = 3) -> Any:
    """Some steps, compiled: the states after them."""

    def lorenz(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        for _ in range(steps):
            dx, dy, dz = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
            x, y, z = x + STEP * dx, y + STEP * dy, z + STEP * dz
        return (x, y, z) if results > 1 else x

    compiled = wengert.compile(lorenz, checks="first")  # none while it is timed
    compiled.prepare(*map(Value, START))
    return compiled


def run(compiled: Any, calls: int) -> tuple[float, list[float]]:
    """The last x, and its gradient."""
    given = [Value(x) for x in START]
    states, parameters = given[:3], given[3:]
    for _ in range(calls):
        states = compiled(*states, *parameters)
    last = states if isinstance(states, Value) else states[0]
    last.backward()
    return last.data, [x.grad for x in given]


def memory(call: Callable[[], Any]) -> float:
    """The most memory that a call takes besides what there was, in MB."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def row(steps: int, length: int, rounds: int) -> list[str]:
    """The cells of a row."""
    part = stretch(length)
    run(part, 1)  # takes the memory to compute in
    most = memory(lambda: run(part, steps // length))
    kept = min(steps, MOST)
    whole = stretch(kept, 1)
    agree("the gradients differ", run(part, kept // length), run(whole, 1), CLOSE)
    calls: dict[str, Callable[[], Any]] = {"part": lambda: run(part, steps // length), "whole": lambda: run(whole, 1)}
    taken = in_turns(calls, rounds)
    ratio = taken["part"] / steps / (taken["whole"] / kept)
    return [f"{steps:,}", f"{length:,}", f"{1e3 * taken['part']:.2g} ms", f"{ratio:.2f}", f"{most:.1f} MB"]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_runs", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="the turns of each call, of which the median counts")
    options = parser.parse_args(argv)
    rows = []
    for steps, length in ROWS:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            rows.append(pool.submit(row, steps, length, options.rounds).result())
    print(table(["steps", "steps per call", "value and gradient", "ratio per step", "memory"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
