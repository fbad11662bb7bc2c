"""Recurrences, which recording unrolls: what is found again, and what a run with its gradient takes.

    python -m benchmarks.recurrences [--only NAME ...] [--rounds 9] [--no-xla]

For each program: the operations that were recorded; the steps and the printed lines of the program and its reverse
sweep, with each turn written out and with its loops; what recording and lifting take, and to make what runs of it;
then what a run of each back end takes, beside the engine, Python and C by hand; and what a call of the compiled
function takes beside the function itself, with `backward()` both. All results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import wengert
from benchmarks.peers import plain_c
from benchmarks.peers.recurrences import BY_HAND
from benchmarks.report import duration
from benchmarks.timing import agree, in_turns, table
from tests.compiler.recurrences import FOUND, Made, biquad, euler, logistic
from wengert.compiler import Compiled
from wengert.compiler.backends import BACKENDS
from wengert.compiler.backends.numpy import Writer
from wengert.compiler.ir import Loop, unrolled

__all__ = ["main"]

CLOSE = 1e-12  # as near as all results are to the engine's, relative to the largest of each
LONG = {"numpy": 10_000, "native": 5000, "xla": 300}  # steps: to compile more of them takes minutes
TURNS = {"euler": 1000, "logistic": 1000, "biquad": 1000, "oscillator_of_fourth_order": 100}
PROGRAMS: dict[str, Callable[[], Made]] = {made.__name__: made for made in FOUND}
PROGRAMS |= {made.__name__: partial(made, TURNS[made.__name__]) for made in (euler, logistic, biquad)}
WRITTEN = ("unrolled", "with loops")
MADE = [f"{backend} {how}" for backend in ("numpy", "native", "xla") for how in WRITTEN]
RUN = ["engine", "by hand", *MADE[:4], "C", *MADE[4:]]
HEADS = (
    ("program", "nodes", "loops", "steps unrolled", "with loops", "lines unrolled", "with loops", "prepared in"),
    ("what runs is made in", *MADE),
    ("a run with its gradient", *RUN, "native / C"),
    ("a call with `backward()`", "plain", "compiled", "compiled / plain", "which is"),
)

Numbers = tuple[float, list[float]]


def by_engine(made: Made) -> Numbers:
    """The value and the derivatives with respect to the parameters."""
    function, args, parameters = made
    for p in parameters:
        p.grad = 0.0
    out = function(*args)
    out.backward()
    return out.data, [p.grad for p in parameters]


def by_hand(name: str, made: Made) -> dict[str, tuple[Callable[[], Any], Callable[[], Numbers]]]:
    """What runs, and what it comes to, of those that are written by hand; without a compiler not in C."""
    if name not in BY_HAND:
        return {}
    _, args, parameters = made
    numbers, given = [p.data for p in parameters], np.ravel(args[0] if isinstance(args[0], list) else args).tolist()
    turns = TURNS.get(name) or (len(given) // 4 if name == "lstm" else len(numbers) - 1)
    python = partial(BY_HAND[name], turns, given, numbers)
    try:
        function = getattr(plain_c.library("recurrences"), name)
    except RuntimeError:
        return {"by hand": (python, python)}
    held, (room, at) = [plain_c.doubles(x) for x in (given, numbers)], plain_c.doubles([0.0] * (len(numbers) + 1))
    compiled = partial(function, ctypes.c_long(turns), *[pointer for _, pointer in held], at)

    def read() -> Numbers:
        compiled()
        return room[0], room[1:].tolist()

    return {"by hand": (python, python), "C": (compiled, read)}


def by_code(kernel: Any, buffers: Any, given: list[Any]) -> tuple[Callable[[], Any], list[Any]]:
    """A call of a kernel's machine code, as of a C function, and the results that it leaves."""
    outputs = [np.zeros(array.cell_shape) for array in (*kernel.program.outputs.values(), *kernel.wanted)]
    held = [np.ascontiguousarray(x, float) for x in given]
    scratch = np.zeros(kernel.work(1) + 8)
    aligned = scratch.ctypes.data + -scratch.ctypes.data % 64
    tables = [(ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays]) for arrays in (held, outputs)]
    addresses = [tables[0], buffers.params.ctypes.data, buffers.grads.ctypes.data, tables[1], aligned]
    pointers = [x if isinstance(x, ctypes.Array) else ctypes.c_void_p(x) for x in addresses]
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, *[ctypes.c_void_p] * 5)(
        kernel.code.forward_backward
    )
    run = partial(function, ctypes.c_int64(1), ctypes.c_double(1.0), *pointers)
    setattr(run, "held", [*held, *outputs, scratch, kernel, buffers])  # noqa: B010  (they are known by their addresses alone)
    return run, outputs


def kernels(
    name: str, made: Made, want: Numbers, *, xla: bool
) -> tuple[Any, float, list[Any], dict[str, Any], dict[str, float]]:
    """The recording, the seconds of the first call and lifting, its programs with each turn written out and with loops,
    what runs of each way, by hand too, all of it compared; and what it takes to make each.
    """
    function, args, parameters = made
    compiled = Compiled(function, backend=BACKENDS["numpy"])
    began = time.perf_counter()
    compiled(*args)
    recording = compiled._server.latest()
    lifted = time.perf_counter() - began
    given = [np.array(x) if isinstance(x, list) else x for x in args]
    place = {id(p): n for n, p in enumerate(recording.parameters)}
    loops = recording.kernel.program, recording.kernel.backward
    programs = [[unrolled(program) for program in loops], loops]
    ways, taken = by_hand(name, made), {}
    for backend in ("numpy", "native", *["xla"] * xla):
        for how, pair in zip(WRITTEN, programs, strict=True):
            if sum(program.size for program in pair) > LONG[backend]:
                continue
            began = time.perf_counter()
            kernel = BACKENDS[backend].kernel()(*pair, recording.kernel.wanted)
            buffers = recording.buffers()
            if kernel.code is None:
                kernel.forward_backward(given, 1.0, buffers)  # XLA compiles now
            taken[f"{backend} {how}"] = time.perf_counter() - began

            run, outputs = partial(kernel.forward_backward, given, 1.0, buffers), None
            if kernel.code is not None:
                run, outputs = by_code(kernel, buffers, given)

            def read(buffers: Any = buffers, run: Any = run, outputs: Any = outputs) -> Numbers:
                made = run()
                value = made[0]["out"] if outputs is None else outputs[0]
                return float(value), [float(buffers.grads[place[id(p)]]) for p in parameters]

            ways[f"{backend} {how}"] = run, read
    for way, (_, read) in ways.items():
        agree(f"{name}: {way} differs from the engine", read(), want, CLOSE)
    return recording, lifted, programs, {way: run for way, (run, _) in ways.items()}, taken


def served(name: str, made: Made, want: Numbers) -> tuple[Callable[[], Any], str]:
    """A call of the compiled function with `backward()`, when what serves it is settled; and what does."""
    function, args, parameters = made
    compiled = wengert.compile(function)
    for _ in range(10):
        got = by_engine((compiled, args, parameters))
    which = "machine code" if "machine code runs" in compiled.report() else "the function itself"
    agree(f"{name}: the compiled function differs from the engine", got, want, CLOSE)
    return lambda: compiled(*args).backward(), which


def row(name: str, rounds: int, *, xla: bool) -> list[list[str]]:
    """A program's row of each table."""
    made = PROGRAMS[name]()
    want = by_engine(made)
    recording, lifted, programs, ways, taken = kernels(name, made, want, xla=xla)
    seconds = in_turns({"engine": partial(by_engine, made), **ways}, rounds)
    call, which = served(name, made, want)
    plain = partial(lambda function, args, _: function(*args).backward(), *made)
    calls = in_turns({"plain": plain, "compiled": call}, rounds)
    count = sum(isinstance(step, Loop) for step in programs[1][0].steps)
    sizes = [sum(program.size for program in pair) for pair in programs]
    lines = [len(Writer(*pair).lines) for pair in programs]
    times = {way: duration(each) for way, each in seconds.items()}
    limit = f"{seconds['native with loops'] / seconds['C']:.2g}x" if "C" in seconds else ""
    title = name.replace("_", " ")
    return [
        [title, *[f"{n:,}" for n in (recording.nodes, count, *sizes, *lines)], duration(lifted)],
        [title, *[duration(taken[way]) if way in taken else "" for way in MADE]],
        [title, *[times.get(way, "") for way in RUN], limit],
        [title, *map(duration, calls.values()), f"{calls['compiled'] / calls['plain']:.2g}x", which],
    ]


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recurrences", description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", choices=list(PROGRAMS), help="only this one; repeatable")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-xla", action="store_true", help="without XLA, whose compiler takes most of the time")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        os.environ["WENGERT_CACHE"] = folder  # nothing is found that was made before
        rows = [row(name, options.rounds, xla=not options.no_xla) for name in options.only or PROGRAMS]
    for head, cells in zip(HEADS, zip(*rows, strict=True), strict=True):
        print(table(head, cells) + "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
