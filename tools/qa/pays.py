"""After how many calls it pays to compile a program that does not lift, which is what `compiler.policy` goes by.

    python -m tools.qa.pays [OPERATIONS ...]

Prints a row of the table in docs/calls.md for each number of operations. Nothing comes from the cache of machine code.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import wengert
from wengert import Value

__all__ = ["irregular", "main"]

SIZES = (60, 150, 300, 600, 1200, 2500, 5000)
ROUNDS = 15


def irregular(count: int) -> Callable[[Any, Any], Any]:
    """A function of so many operations on operands drawn at random, all of which its result depends on."""
    draw = random.Random(count)
    weights = [Value(draw.uniform(0.2, 1.5)) for _ in range(8)]
    drawn = [(draw.randrange(4), draw.random(), draw.random()) for _ in range(count)]

    def function(x: Any, y: Any) -> Any:
        known = [*weights, weights[0] * x, weights[1] * y]
        for kind, p, q in drawn:
            a, b = known[int(p * len(known))], known[int(q * len(known))]
            known.append(a * b if kind == 0 else a - b if kind == 1 else a.sin() if kind == 2 else (a + b).tanh())
        return wengert.sum(known[10:])

    return function


def seconds(call: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    os.environ["WENGERT_CACHE"] = "off"
    warm = wengert.compile(irregular(20))  # LLVM is loaded
    warm.prepare(0.3, 0.4)
    for count in map(int, sys.argv[1:] or SIZES):
        function = irregular(count)
        compiled = wengert.compile(function, backend="native")
        recorded, made = [seconds(lambda f=compiled: f(0.3, 0.4)) for _ in range(2)]
        plain = statistics.median([seconds(lambda f=function: f(0.3, 0.4).backward()) for _ in range(ROUNDS)])
        recording = compiled._server.latest()
        steps, calls = recording.lifted.program.size + recording.kernel.backward.size, (recorded + made) / plain
        cells = [f"{recording.nodes:,}", f"{steps:,}", f"{1e3 * recorded:.0f} ms", f"{1e3 * made:.0f} ms"]
        cells += [f"{1e6 * plain:.0f} µs", f"{calls:,.0f} calls", f"{calls * recording.nodes / steps:,.0f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
