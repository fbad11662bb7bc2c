"""What compiled functions of science and finance take, beside the engine, CasADi, JAX, PyTorch and plain C, in turns.

    python -m benchmarks.formulas [--only NAME ...] [--rounds 9] [--sweep FILE.svg] [--preparation] [--page FILE.md]

Each formula is one text, which runs on Wengert, CasADi, JAX and PyTorch alike. One call gives its value and the
derivatives with respect to all of its operands; a batch is the mean of 256 of them, or each, by NumPy without
derivatives. CasADi runs by its virtual machine and by the C that it generates, compiled with -O3. Plain C is what
`source("c")` gives, compiled with -O3 -march=native, with and without -ffast-math, and called from C: what is left
where a call costs nothing. Each peer has a process of its own, and all results are compared before anything is timed.
What it takes until the first result is a table of its own: the formula is recorded, differentiated and compiled then.

`--sweep` draws how machine code does beside NumPy on networks of growing width and batch; `--preparation` tells what it
takes to lift programs of growing size and to make machine code of them; `--page` puts all of it between the marks of a
page.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import wengert
from benchmarks.growing import prepared, sweep
from benchmarks.report import duration, into_page, machine
from benchmarks.timing import agree, in_turns, off, per_call, table
from wengert import Value
from wengert.compiler import Compiled
from wengert.compiler.backends import BACKENDS, source_of

__all__ = ["FORMULAS", "main"]

CLOSE = 1e-10  # as near as all results are to the engine's, relative to the largest of each
BATCH = 256
REPEATS = 1000  # of a call from C


# -- formulas: of a library that has exp, log, sqrt, tanh, sin, cos and erf, and of numbers ----------------------------


def short(m: Any, w: Any, b: Any, x: Any, y: Any) -> Any:
    """Eleven operations on four numbers."""
    return m.tanh(w * x + b * y) * x - (w * y - b) ** 2 * 0.5 + x


def cheap(m: Any, w: Any, b: Any, x: Any, y: Any) -> Any:
    """The square of an error."""
    return (w * x + b - y) ** 2


def black_scholes(m: Any, spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """The price of a European call: Black and Scholes 1973; its derivatives are the Greeks."""
    spread = volatility * m.sqrt(years)
    d = (m.log(spot / strike) + (rate + volatility * volatility * 0.5) * years) / spread
    below, above = 0.5 + 0.5 * m.erf(d * math.sqrt(0.5)), 0.5 + 0.5 * m.erf((d - spread) * math.sqrt(0.5))
    return spot * below - strike * m.exp(-rate * years) * above


def arm(m: Any, *angles: Any) -> Any:
    """How far the hand of an arm of seven joints is from a place, squared: Denavit and Hartenberg 1955."""
    x, y, z = 0.0, 0.0, 0.1
    for n, q in reversed(list(enumerate(angles))):
        twist, offset = (0.5 - n % 3) * math.pi / 2, 0.1 + 0.05 * n
        y, z = math.cos(twist) * y - math.sin(twist) * z, math.sin(twist) * y + math.cos(twist) * z + offset
        c, s = m.cos(q), m.sin(q)
        x, y = c * x - s * y + 0.05 * c, s * x + c * y + 0.05 * s
    return (x - 0.3) ** 2 + (y - 0.2) ** 2 + (z - 0.5) ** 2


def bodies(m: Any, *state: Any) -> Any:
    """The energy of four bodies in a plane after one step of the leapfrog: places, then velocities."""
    masses, step = (1.0, 0.5, 0.25, 0.125), 0.01
    x, v = list(state[:8]), list(state[8:])

    def forces() -> list[Any]:
        made: list[Any] = [0.0] * 8
        for i in range(4):
            for k in range(i):
                dx, dy = x[2 * i] - x[2 * k], x[2 * i + 1] - x[2 * k + 1]
                square = dx * dx + dy * dy + 0.01
                pull = 1.0 / (square * m.sqrt(square))
                for at, d in ((0, dx), (1, dy)):
                    made[2 * i + at] = made[2 * i + at] - masses[k] * pull * d
                    made[2 * k + at] = made[2 * k + at] + masses[i] * pull * d
        return made

    v = [a + f * (step / 2) for a, f in zip(v, forces(), strict=True)]
    x = [a + b * step for a, b in zip(x, v, strict=True)]
    v = [a + f * (step / 2) for a, f in zip(v, forces(), strict=True)]
    energy: Any = 0.0
    for n in range(8):
        energy = energy + v[n] * v[n] * (0.5 * masses[n // 2])
    for i in range(4):
        for k in range(i):
            dx, dy = x[2 * i] - x[2 * k], x[2 * i + 1] - x[2 * k + 1]
            energy = energy - masses[i] * masses[k] / m.sqrt(dx * dx + dy * dy + 0.01)
    return energy


def rosenbrock(m: Any, *x: Any) -> Any:
    """Rosenbrock's valley, 1960, in as many dimensions as there are numbers."""
    total: Any = 0.0
    for a, b in pairwise(x):
        total = total + 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    return total


draw = Random(1)
FORMULAS: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "11 operations": (short, [0.7, -0.3, 0.5, 0.25]),
    "square of an error": (cheap, [0.7, -0.3, 0.5, 0.25]),
    "Black-Scholes": (black_scholes, [100.0, 95.0, 0.03, 0.2, 0.75]),
    "arm of 7 joints": (arm, [draw.uniform(-1.0, 1.0) for _ in range(7)]),
    "4 bodies": (bodies, [draw.uniform(-1.0, 1.0) for _ in range(16)]),
    "Rosenbrock of 100": (rosenbrock, [draw.uniform(-1.0, 1.5) for _ in range(100)]),
}
"""A formula, and the numbers at which it is computed: all of them are differentiated by."""

# -- who computes them: a call, and what takes the value and the derivatives from what it gives ------------------------


class Way(NamedTuple):
    """A call, what takes the value and the derivatives from what it gives, and how often it computes them."""

    call: Callable[[], Any]
    read: Callable[[Any], tuple[float, list[float]]]
    times: int = 1


def written(formula: Any, numbers: list[float]) -> tuple[Callable[[], Any], list[Value]]:
    """A formula as a function of what it captures, as parameters are."""
    parameters = [Value(x) for x in numbers]

    def function() -> Any:
        return formula(wengert, *parameters)

    return function, parameters


def by_wengert(formula: Any, numbers: list[float], backend: str) -> Way:
    """The engine, or a compiled function."""
    function, parameters = written(formula, numbers)
    run = function if backend == "engine" else Compiled(function, backend=BACKENDS[backend])

    def call() -> Any:
        made = run()
        made.backward()
        return made

    def read(made: Any) -> tuple[float, list[float]]:
        for p in parameters:
            p.grad = 0.0
        made.backward()
        return made.data, [p.grad for p in parameters]

    return Way(call, read)


def library(text: str, options: Sequence[str], load: Callable[[str], Any]) -> Any:
    """C, compiled and loaded on the spot."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "f.c"), Path(folder, "f.so")
        source.write_text(text)
        subprocess.run(["cc", *options, "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
        return load(str(target))


def by_c(formula: Any, numbers: list[float], options: Sequence[str]) -> Way:
    """What `source("c")` gives of the program with its reverse sweep, in a loop of C that cannot see into it."""
    function, parameters = written(formula, numbers)
    compiled = Compiled(function, backend=BACKENDS["numpy"])
    compiled()
    made = compiled._server.latest()
    buffers = made.buffers()
    kernel, place = made.kernel, {id(p): n for n, p in enumerate(parameters)}
    names = [f"x{n}" for n in range(2 * len(kernel.params))]
    pointers = ", ".join([f"double *{name}" for name in names])
    repeat = f"""
double (*volatile f)({pointers.replace("double", "const double", len(kernel.params))}) = formula_and_gradients;
double repeat(int64_t times, {pointers}) {{
    double out = 0.0;
    for (int64_t k = 0; k < times; k++) out = f({", ".join(names)});
    return out;
}}
"""
    run = library(source_of(made, "formula", "c", True) + repeat, options, ctypes.CDLL).repeat
    run.restype, run.argtypes = ctypes.c_double, [ctypes.c_int64, *[ctypes.c_void_p] * len(names)]
    addresses = [x.ctypes.data for x in (*buffers.param_arrays, *buffers.grad_arrays)]
    slopes = np.empty(len(numbers))

    def read(out: float) -> tuple[float, list[float]]:
        slopes[[place[id(p)] for p in made.parameters]] = buffers.grads
        return out, slopes.tolist()

    return Way(lambda: run(REPEATS, *addresses), read, REPEATS)


def by_casadi(
    formula: Any, numbers: list[float], compiled: bool, arguments: Sequence[Any] = (), columns: bool = False
) -> Way:
    """CasADi's function of a vector, by its virtual machine or by the C that it generates; perhaps of an example's
    arguments too, or of many examples in columns, whose mean its `map` gives.
    """
    import casadi

    symbols = casadi.SX.sym("x", len(numbers))
    rows = [x[0] if columns else x for x in arguments]
    given = [casadi.SX.sym(f"given{n}", np.size(row)) for n, row in enumerate(rows)]
    row = [casadi.vertsplit(x) if np.ndim(one) else x for x, one in zip(given, rows, strict=True)]
    value = formula(casadi, *casadi.vertsplit(symbols), *row) / (len(arguments[0]) if columns else 1)
    function = casadi.Function("f", [symbols, *given], [value, casadi.gradient(value, symbols)])
    if columns:
        function = function.map("mean", "serial", len(arguments[0]), [0], [0, 1])
    if compiled:
        generator = casadi.CodeGenerator("f.c")
        generator.add(function)
        function = library(generator.dump(), ["-O3"], lambda path: casadi.external("f", path))
    held = [np.array(x, float) for x in (numbers, *arguments)]
    buffers, trigger = function.buffer()  # nothing is converted then
    out, slopes = np.zeros(1), np.zeros(len(numbers))
    for n, x in enumerate(held):
        buffers.set_arg(n, memoryview(x))
    buffers.set_res(0, memoryview(out))
    buffers.set_res(1, memoryview(slopes))

    def call(held: Any = (buffers, held)) -> None:  # CasADi holds their addresses alone
        trigger()

    return Way(call, lambda _: (float(out[0]), slopes.tolist()))


def by_jax(formula: Any, numbers: list[float], arguments: Sequence[Any] = (), columns: bool = False) -> Way:
    """jax.jit of the value and the gradient with respect to a vector, perhaps of an example's arguments too, or of the
    mean of many examples in columns. A formula may use its loop.
    """
    import jax

    m = types.SimpleNamespace(
        **{name: getattr(jax.numpy, name) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos")},
        erf=jax.scipy.special.erf,
        scan=jax.lax.scan,
    )
    jax.config.update("jax_enable_x64", True)

    def value(x: Any, *given: Any) -> Any:
        if columns:
            return jax.numpy.mean(jax.vmap(lambda *row: formula(m, *x, *row))(*given))
        return formula(m, *x, *given)

    function = jax.jit(jax.value_and_grad(value))
    given = [jax.numpy.array(x) for x in (numbers, *arguments)]

    def call() -> Any:
        value, slopes = function(*given)
        slopes.block_until_ready()
        return value, slopes

    return Way(call, lambda made: (float(made[0]), np.asarray(made[1]).tolist()))


def by_torch(formula: Any, numbers: list[float]) -> Way:
    """PyTorch as it stands, on tensors of one number each."""
    import torch

    torch.set_num_threads(1)
    given = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in numbers]

    def call() -> Any:
        value = formula(torch, *given)
        return value, torch.autograd.grad(value, given)

    return Way(call, lambda made: (made[0].item(), [slope.item() for slope in made[1]]))


PEERS: dict[str, Callable[[Any, list[float]], Way]] = {
    "engine": lambda f, x: by_wengert(f, x, "engine"),
    "NumPy": lambda f, x: by_wengert(f, x, "numpy"),
    "native": lambda f, x: by_wengert(f, x, "native"),
    "CasADi": lambda f, x: by_casadi(f, x, False),
    "CasADi's C": lambda f, x: by_casadi(f, x, True),
    "jax.jit": by_jax,
    "PyTorch": by_torch,
    "plain C": lambda f, x: by_c(f, x, ["-O3", "-march=native"]),
    "plain C, -ffast-math": lambda f, x: by_c(f, x, ["-O3", "-march=native", "-ffast-math"]),
}

# -- in the process of a peer ------------------------------------------------------------------------------------------

_way: Way | None = None  # what is timed


def begin() -> None:
    """Have machine code made anew in this process."""
    os.environ["WENGERT_CACHE"] = ""


def set_up(peer: str, name: str) -> tuple[float, list[float], float]:
    """Begin with a formula, in the process of a peer: its value, its derivatives, the seconds until the first of them.

    What is imported, and what else is done but once, is not in that time, nor is machine code that is on disk.
    """
    global _way
    if _way is None:
        warm = PEERS[peer](black_scholes, FORMULAS["Black-Scholes"][1])
        warm.read(warm.call())
    began = time.perf_counter()
    _way = PEERS[peer](*FORMULAS[name])
    _way.read(_way.call())
    seconds = time.perf_counter() - began
    return *[_way.read(_way.call()) for _ in range(70)][-1], seconds  # a compiled function is trusted by then


def turn() -> float:
    """Seconds a call of the formula that was begun with."""
    assert _way is not None
    return per_call(_way.call) / _way.times


def one_call(name: str, processes: dict[str, ProcessPoolExecutor], rounds: int) -> tuple[list[str], list[str]]:
    """Rows: the time of a call of each peer, value and gradient, and the time until its first result."""
    found, absent = {}, {}
    for peer, process in processes.items():
        try:
            found[peer] = process.submit(set_up, peer, name).result()
        except ImportError:
            absent[peer] = "not installed"
        except FileNotFoundError:  # of who needs cc
            absent[peer] = "no compiler"
    value, slopes, _ = found["engine"]
    for peer, (its, theirs, _) in found.items():
        agree(f"{name}: {peer} differs from the engine", (its, theirs), (value, slopes), CLOSE)
    times: dict[str, list[float]] = {peer: [] for peer in found}
    for _ in range(rounds):
        for peer, each in times.items():
            each.append(processes[peer].submit(turn).result())
    seconds = {peer: statistics.median(each) for peer, each in times.items()}
    cells = [absent.get(peer) or duration(seconds[peer]) for peer in processes]
    first = [absent.get(peer) or duration(found[peer][2]) for peer in processes]
    ratio = f"{seconds['engine'] / seconds['native']:.2g}x" if "native" in seconds else ""
    return [name, *cells, ratio], [name, *first]


def batches(rounds: int) -> list[list[str]]:
    """Rows: `mean` with its gradient, and `map`, of 256 examples of the cheap formula, beside NumPy by hand."""
    w, b = Value(0.7), Value(-0.3)
    draw = np.random.default_rng(1)
    X, Y = draw.normal(size=BATCH), draw.normal(size=BATCH)

    def by_hand() -> tuple[float, float, float]:
        error = w.data * X + b.data - Y
        return float(error @ error) / BATCH, 2 * float(error @ X) / BATCH, 2 * float(error.sum()) / BATCH

    rows = []
    for how, hand in (("mean", by_hand), ("map", lambda: (w.data * X + b.data - Y) ** 2)):
        calls: dict[str, Callable[[], Any]] = {"NumPy by hand": hand}
        for backend in ("numpy", "native"):
            made = Compiled(lambda x, y: cheap(wengert, w, b, x, y), backend=BACKENDS[backend])

            def call(made: Any = made, how: str = how) -> Any:
                if how == "map":
                    return made.map(X, Y)
                w.grad = b.grad = 0.0
                out = made.mean(X, Y)
                out.backward()
                return out.data, w.grad, b.grad

            for _ in range(70):
                got = call()
            wrong = off(np.asarray(got), np.asarray(hand()))
            if not wrong < CLOSE:
                raise SystemExit(f"{how} by {backend} differs from NumPy by hand by {wrong:.1e}")
            calls[backend] = call
        seconds = in_turns(calls, rounds)
        rows.append([f"`{how}` of {BATCH}", *[duration(seconds[who]) for who in ("NumPy by hand", "numpy", "native")]])
    return rows


def compiler() -> str:
    """The C compiler's own name for itself."""
    found = shutil.which("cc")
    if found is None:
        return "no C compiler"
    own = Path(found).resolve()  # for cc is another name of it
    return subprocess.run([own, "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formulas", description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", choices=list(FORMULAS), help="only this one; repeatable")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sweep", type=Path, help="draw machine code beside NumPy by width and batch")
    parser.add_argument("--preparation", action="store_true", help="time how programs of growing size are prepared")
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go too")
    options = parser.parse_args(argv)
    load = f"; load {os.getloadavg()[0]:.1f} before it began" if hasattr(os, "getloadavg") else ""
    head = f"Measured {machine('casadi', 'jax', 'torch', 'numpy', 'llvmlite')}; {compiler()}{load}."
    parts: list[str] = []

    def tell(text: str) -> None:
        parts.append(text)
        print(text, "\n", flush=True)

    tell(head)
    processes = {peer: ProcessPoolExecutor(1, get_context("spawn"), begin) for peer in PEERS}  # not all bear each other
    rows = [one_call(name, processes, options.rounds) for name in options.only or FORMULAS]
    for process in processes.values():
        process.shutdown()
    tell(table(["one call with its gradient", *PEERS, "engine / native"], [row for row, _ in rows]))
    tell(table(["until the first result", *PEERS], [row for _, row in rows]))
    tell(table(["a batch", "NumPy by hand", "NumPy", "native"], batches(options.rounds)))
    if options.sweep:
        tell(sweep(options.sweep, options.rounds))
    if options.preparation:
        tell(prepared())
    if options.page:
        into_page(options.page, "\n\n".join(parts) + "\n", "formulas")
    return 0


if __name__ == "__main__":
    sys.exit(main())
