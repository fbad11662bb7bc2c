"""What threads gain, and what a batch takes however large it is.

    python -m benchmarks.threads [throughput] [strips] [--page FILE.md]

`throughput`: calls a second of one compiled function by one thread, by four, and by four processes, which share
nothing: on a machine with other work that is what threads can come to. Results are compared with those of one thread.

`strips`: a book of options and their Greeks, of 1,000 to 1,000,000 options: seconds of the processor an option for the
whole batch, and for strips of 256 that a loop of Python cuts; the memory at its peak beside inputs and results.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import wengert
from benchmarks.report import duration, into_page, machine
from benchmarks.timing import in_turns, table
from wengert import Value, erf, exp, grad, log, sqrt

__all__ = ["main"]

WORKERS = 4
CALLS = 40  # of each worker
ROUNDS = 5
OPTIONS = (1_000, 10_000, 100_000, 1_000_000)
STRIP = 256  # options, by hand
SHIFTS = [Value(0.0) for _ in range(5)]
RATE = Value(10.0)


def price(spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """A European call by Black and Scholes."""
    spread = volatility * sqrt(years)
    d = (log(spot / strike) + (rate + volatility * volatility * 0.5) * years) / spread
    below, above = 0.5 + 0.5 * erf(d * math.sqrt(0.5)), 0.5 + 0.5 * erf((d - spread) * math.sqrt(0.5))
    return spot * below - strike * exp(-rate * years) * above


def greeks(spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """The five first derivatives of a price, and three second ones: gamma, vanna, volga."""
    first = grad(price, (0, 1, 2, 3, 4))(spot, strike, rate, volatility, years)
    gamma = grad(lambda x: grad(price)(x, strike, rate, volatility, years))(spot)
    vega = grad(price, 3)
    second = grad(lambda x, v: vega(x, strike, rate, v, years), (0, 1))(spot, volatility)
    return [*first, gamma, *second]


def book(spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """A price of which each input is shifted by a parameter."""
    option = spot, strike, rate, volatility, years
    return price(*[x + shift for x, shift in zip(option, SHIFTS, strict=True)])


def lorenz(x: float, y: float, z: float) -> Any:
    """The end of 200,000 Euler steps of Lorenz's system."""
    for _ in range(200_000):
        x, y, z = x + 1e-4 * RATE * (y - x), y + 1e-4 * (x * (28.0 - z) - y), z + 1e-4 * (x * y - 8.0 / 3.0 * z)
    return x + y + z


def options(count: int) -> list[Any]:
    """Options on the market, drawn."""
    draw = np.random.default_rng(1)
    ranges = ((80.0, 120.0), (80.0, 120.0), (0.01, 0.05), (0.1, 0.4), (0.2, 2.0))
    return [draw.uniform(low, high, count) for low, high in ranges]


def works() -> dict[str, Callable[[], Any]]:
    """Calls that take a millisecond or more, each of which gives what is compared."""
    many, sums, loop = wengert.compile(greeks), wengert.compile(book), wengert.compile(lorenz, backend="native")
    columns = options(50_000)
    for _ in range(5):  # the first ones are compared with the function
        many.map(*columns), sums.sum(*columns), loop(1.0, 1.0, 1.0)

    def gradient(made: Any) -> Any:
        return np.array([made.data, *wengert.compiler.partials_of(made)])

    return {
        "Greeks of 50,000 options, `map`": lambda: many.map(*columns),
        "50,000 options, `sum`, with gradient": lambda: gradient(sums.sum(*columns)),
        "Lorenz, 200,000 steps, one call, with gradient": lambda: gradient(loop(1.0, 1.0, 1.0)),
    }


def repeat(work: Callable[[], Any], calls: int, want: Any) -> None:
    """So many calls, each of which comes to what is expected.

    Raises:
        SystemExit: one does not.
    """
    for _ in range(calls):
        if not np.array_equal(work(), want):
            raise SystemExit("a thread comes to other bits")


def by(kind: Any, work: Callable[[], Any], want: Any) -> float:
    """Calls a second by several threads or processes."""
    workers = [kind(target=repeat, args=(work, CALLS, want)) for _ in range(WORKERS)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return WORKERS * CALLS / (time.perf_counter() - began)


def throughput() -> str:
    """The table of threads."""
    rows = []
    for name, work in works().items():
        want = work()
        best = [0.0, 0.0, 0.0]
        for _ in range(ROUNDS):
            began = time.perf_counter()
            repeat(work, CALLS, want)
            one = CALLS / (time.perf_counter() - began)
            fork = multiprocessing.get_context("fork").Process
            best = [*map(max, best, (one, by(threading.Thread, work, want), by(fork, work, want)))]
        one, threads, processes = best
        cells = [f"{x:,.0f}" for x in best]
        rows.append([name, duration(1.0 / one), *cells, f"{threads / one:.2f}", f"{threads / processes:.2f}"])
    head = [
        "",
        "a call",
        "calls/s, one thread",
        "four threads",
        "four processes",
        "threads / one",
        "threads / processes",
    ]
    return table(head, rows)


def by_hand(made: Any, columns: list[Any]) -> Any:
    """The same, cut by a loop of Python."""
    return np.concatenate([made(*[x[n : n + STRIP] for x in columns]) for n in range(0, len(columns[0]), STRIP)])


def strips() -> str:
    """The table of batches.

    Raises:
        SystemExit: strips by hand come to other bits.
    """
    made, rows = wengert.compile(greeks), []
    made.map(*options(STRIP))
    for count in OPTIONS:
        columns = options(count)
        tracemalloc.start()
        found = made.map(*columns)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        if not np.array_equal(found, by_hand(made.map, columns)):
            raise SystemExit("strips by hand come to other bits")
        runs = {"whole": partial(made.map, *columns), "by hand": partial(by_hand, made.map, columns)}
        seconds = in_turns(runs, ROUNDS)
        whole, cut = seconds["whole"] / count, seconds["by hand"] / count
        more = f"{(peak - found.nbytes) / 2**20:.1f} MB"
        rows.append([f"{count:,}", duration(whole), duration(cut), f"{whole / cut:.2f}", more])
    return table(["options", "an option", "in strips by hand", "whole / strips", "memory beside the results"], rows)


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments name, or both."""
    parts = {"throughput": throughput, "strips": strips}
    parser = argparse.ArgumentParser(description="Threads that call one function, and batches of any size.")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="by default both")
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go")
    options = parser.parse_args(argv)
    about = machine("numpy", "llvmlite").replace(", one used", "")
    text = "\n\n".join([about, *[parts[name]() for name in options.parts or parts]])
    print(text)
    if options.page:
        into_page(options.page, text + "\n", "threads")


if __name__ == "__main__":
    main()
