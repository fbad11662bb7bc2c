"""What becomes of recurrences, as a table: ``python -m tools.qa.loops``.

For each: the operations that were recorded; the steps and the lines of the program and its reverse sweep, with each
turn written out and as a loop; how long recording, lifting and printing take; and how long one run with its gradient
takes by the engine, by NumPy with each turn written out, by NumPy, and by machine code. All are compared
before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import wengert
from tests.compiler.recurrences import FOUND, Made
from tools.qa.lifting_fuzz import difference, gradients
from wengert.compiler.backends.numpy import NumPyKernel, Writer
from wengert.compiler.ir import unrolled

CLOSE = 1e-12
HEADER = ("", "nodes", "steps", "", "lines", "", "prepared ms", "engine us", "unrolled", "NumPy", "native")


def microseconds(run: Callable[[], Any]) -> float:
    """The least time of some runs."""
    run()
    times = []
    for _ in range(5):
        began = perf_counter()
        run()
        times.append(perf_counter() - began)
    return 1e6 * min(times)


def row(made: Callable[[], Made]) -> list[str]:
    """What becomes of one."""
    function, args, parameters = made()
    want = function(*args)
    slopes = gradients(want, parameters)
    recordings = {}
    for backend in ("numpy", "native"):
        compiled = wengert.compile(function, backend=backend)
        compiled(*args)
        got = compiled(*args)
        if max(difference(got.data, want.data), difference(gradients(got, parameters), slopes)) > CLOSE:
            raise AssertionError(f"{made.__name__} by {backend} is not what the engine says")
        recordings[backend] = compiled._runtime.latest()
        recordings[backend].load()
    by_numpy, native = recordings["numpy"], recordings["native"]
    program, back = by_numpy.kernel.program, by_numpy.kernel.back
    straight = NumPyKernel(unrolled(program), unrolled(back), by_numpy.kernel.wanted)
    straight.numbers[...] = by_numpy.kernel.numbers
    given = [np.array(x) if isinstance(x, list) else x for x in args]
    counts = [part.size + other.size for part, other in ((straight.program, straight.back), (program, back))]
    lines = [len(Writer(*parts).lines) for parts in ((straight.program, straight.back), (program, back))]
    times = [
        microseconds(lambda: function(*args).backward()),
        microseconds(lambda: straight.both(given, 1.0)),
        microseconds(lambda: by_numpy.kernel.both(given, 1.0)),
        microseconds(lambda: native.compute([*given], 1, True, 1.0)),
    ]
    numbers = [by_numpy.nodes, *counts, *lines]
    name = made.__name__.replace("_", " ")
    return [name, *map(str, numbers), f"{1e3 * by_numpy.seconds:.0f}", *[f"{time:.0f}" for time in times]]


def main() -> None:
    """Print the table."""
    rows = [HEADER, *[row(made) for made in FOUND]]
    widths = [max(len(cells[n]) for cells in rows) for n in range(len(HEADER))]
    for cells in rows:
        print("  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]))


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main()
