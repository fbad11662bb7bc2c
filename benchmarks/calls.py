"""What a call of a compiled function takes beside the function itself: programs as users write them, and six by name.

    python -m benchmarks.calls [distributions] [table] [outside] [--against DIR] [--all] [--sample N] [--page FILE.md]

`distributions`: the programs of `tests/programs` that have 20 operations or more (`--all`: every one), each in a
process of its own: one call with `backward()`, and the mean of a batch of 64, by default and pinned to machine code.
The first four calls are compared with the function, and a program that differs is not timed. A figure is the median of
calls 5 to 100 whose number is no power of two (those that are, are compared again), over the function's; beside it the
mean of calls 5 to 100 with all that happens in them: comparisons, recordings of another way through the program, and
what is compiled then. Calls take five sets of arguments in turn. Machine code is kept on disk for the run, so that each
is compiled about once. `--against` names another checkout: its package takes turns with this one, program by program.

`table`: six programs, alone and 64 at a time, on every back end, JAX and CasADi, each in a process of its own that
finds nothing on disk. Values and derivatives are compared before anything is timed: the first 400 calls, and one when
they are over.

`outside`: a value and its gradient where a function reads numbers, lists, arrays and objects outside of itself, which
each call looks at, beside the same where they are passed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import wengert
from benchmarks import collected
from benchmarks.__main__ import say
from benchmarks.formulas import CLOSE, Way, black_scholes, by_casadi, by_jax
from benchmarks.report import duration, into_page, machine
from benchmarks.timing import agree, per_call, table
from tests.programs.trial import collection
from tools.qa.programs import at_once
from wengert import Graph, Value

__all__ = ["PEERS", "TASKS", "main"]

COLD = 400  # calls from a fresh process on,
SECONDS, LIMIT = 10.0, 240.0  # as far as they take no longer; and what a peer may take in all
ROUNDS = 9

# -- programs: texts for a library m, parameters, and the arguments of an example --------------------------------------


def turns(m: Any, step: Callable[[Any, Any], Any], state: Any, given: Any) -> Any:
    """A loop: for JAX its own, for it is not done with 300 turns that are written out after five minutes."""
    if "scan" in vars(m):
        return m.scan(lambda state, x: (step(state, x), None), state, given)[0]
    for x in given:
        state = step(state, x)
    return state


def shifted(m: Any, *numbers: Any) -> Any:
    """A European call, each of whose inputs is shifted by a parameter: the derivatives are the Greeks of a book."""
    return black_scholes(m, *[x + shift for shift, x in zip(numbers[:5], numbers[5:], strict=True)])


def network(m: Any, *numbers: Any) -> Any:
    """The squared error of a layer of eight."""
    *w, x, y = numbers
    out = w[32]
    for n in range(0, 32, 4):
        out = out + w[n] * m.tanh(w[n + 1] * x[0] + w[n + 2] * x[1] + w[n + 3])
    return (out - y) ** 2


KINDS: list[tuple[int, Callable[..., Any]]] = [  # of how many operations they are
    (2, lambda m, x, p, c: m.sin(x + p)),
    (1, lambda m, x, p, c: x * p),
    (2, lambda m, x, p, c: m.tanh(p - x)),
    (2, lambda m, x, p, c: (x - p) * c),
    (2, lambda m, x, p, c: m.cos(x) * p),
    (3, lambda m, x, p, c: p / (x * x + 1.5)),
    (3, lambda m, x, p, c: m.exp(x * p) * c),
]


def irregular(size: int, count: int) -> Callable[..., Any]:
    """Operations at random, each on the result of another and on one of so many leaves: the result depends on all."""
    draw, plan, made = Random(size), [], 2 * count
    while made < size:
        operations, kind = draw.choice(KINDS)
        plan.append((draw.randrange(count), draw.randrange(count), draw.uniform(0.3, 0.9), kind))
        made += operations

    def formula(m: Any, *numbers: Any) -> Any:
        ends = list(numbers)
        for place, leaf, c, kind in plan:
            ends[place] = kind(m, ends[place], numbers[leaf], c)
        return sum(x * x for x in ends)

    return formula


def duffing(m: Any, damping: Any, stiffness: Any, cubic: Any, size: Any, x: Any, v: Any, pushes: Any) -> Any:
    """The energy of Duffing's oscillator after 300 steps of Euler's method; what pushes it is given for each."""

    def step(state: Any, push: Any) -> Any:
        x, v = state
        return [x + 0.05 * v, v + 0.05 * (size * push - damping * v - stiffness * x - cubic * x * x * x)]

    x, v = turns(m, step, [x, v], pushes)
    return 0.5 * (v * v + stiffness * x * x) + 0.25 * cubic * x * x * x * x


def recurrent(m: Any, *numbers: Any) -> Any:
    """A recurrent network of eight units, after as many steps as it is given numbers."""
    *w, xs = numbers

    def step(h: Any, x: Any) -> Any:
        return [m.tanh(sum((w[8 * j + i] * h[i] for i in range(8)), w[64 + j] * x + w[72 + j])) for j in range(8)]

    h = turns(m, step, w[80:88], xs)
    return sum(w[88 + j] * h[j] for j in range(8))


def numbers(count: int, spread: float) -> list[float]:
    """As many numbers around 0, the same each time."""
    draw = Random(count)
    return [draw.gauss(0.0, spread) for _ in range(count)]


def option(draw: Random) -> list[Any]:
    """An option: spot, strike, rate, volatility and years."""
    return [draw.uniform(*ends) for ends in ((80, 120), (80, 120), (0.01, 0.05), (0.1, 0.4), (0.2, 2.0))]


def oscillator(draw: Random) -> list[Any]:
    """Where it begins, and its pushes."""
    phase = draw.uniform(0.0, 6.0)
    return [draw.uniform(-1.0, 1.0), draw.uniform(-1.0, 1.0), [math.cos(0.06 * t + phase) for t in range(300)]]


def pair(draw: Random) -> list[Any]:
    """Two numbers."""
    return [draw.uniform(-1.0, 1.0), draw.uniform(-1.0, 1.0)]


TASKS: dict[str, tuple[Callable[..., Any], list[float], Callable[[Random], list[Any]]]] = {
    "Black-Scholes, five inputs": (shifted, [0.0] * 5, option),
    "MLP 2-8-1": (network, numbers(33, 0.7), lambda draw: [pair(draw), draw.uniform(-1.0, 1.0)]),
    "150 irregular operations": (irregular(150, 7), numbers(5, 0.7), pair),
    "Duffing, 300 steps": (duffing, [0.1, -1.0, 1.0, 0.3], oscillator),
    "recurrent, 30 x 8": (recurrent, numbers(96, 0.4), lambda draw: [[draw.gauss(0.0, 1.0) for _ in range(30)]]),
    "2,000 irregular operations": (irregular(2000, 8), numbers(6, 0.7), pair),
}


def examples(name: str, count: int) -> list[list[Any]]:
    """The arguments of so many examples."""
    draw = Random(name)
    return [TASKS[name][2](draw) for _ in range(count)]


# -- who runs them, each in a process of its own -----------------------------------------------------------------------


def written(name: str) -> tuple[Callable[..., Any], list[Value]]:
    """A program as a user's function, whose arguments have names, of parameters."""
    formula, start, draw = TASKS[name]
    parameters = [Value(x) for x in start]
    f = partial(formula, wengert, *parameters)
    by_count: dict[int, Callable[..., Any]] = {
        1: lambda a: f(a),
        2: lambda a, b: f(a, b),
        3: lambda a, b, c: f(a, b, c),
        5: lambda a, b, c, d, e: f(a, b, c, d, e),
    }
    return by_count[len(draw(Random(0)))], parameters


def by_wengert(name: str, count: int, backend: str) -> Way:
    """The function as it stands, or compiled."""
    function, parameters = written(name)
    compiled: Any = function if backend == "plain" else wengert.compile(function, backend=backend)
    rows = examples(name, count)
    columns = [np.array(column) for column in zip(*rows, strict=True)]

    def call() -> Any:
        if count == 1:
            made = compiled(*rows[0])
        elif backend == "plain":
            made = wengert.mean([function(*row) for row in rows])
        else:
            made = compiled.mean(*columns)
        made.backward()
        return made

    def read(made: Any) -> tuple[float, list[float]]:
        for p in parameters:
            p.grad = 0.0
        made.backward()
        return made.data, [p.grad for p in parameters]

    return Way(call, read)


def by_peer(name: str, count: int, peer: str) -> Way:
    """JAX or CasADi: of one example, or of columns."""
    rows = examples(name, count)
    arguments = rows[0] if count == 1 else [np.array(column) for column in zip(*rows, strict=True)]
    formula, start, _ = TASKS[name]
    if peer == "JAX":
        return by_jax(formula, start, arguments, count > 1)
    return by_casadi(formula, start, False, arguments, count > 1)


WENGERT = ("plain", "auto", "native", "numpy")
PEERS = (*WENGERT, "JAX", "CasADi")


def raced(peer: str, name: str, count: int) -> dict[str, Any] | str:
    """What each of the first calls takes, with all that is prepared in the first, and a call when they are over."""
    os.environ["WENGERT_CACHE"] = "off"
    plain = by_wengert(name, count, "plain")
    want = plain.read(plain.call())
    try:
        began = time.perf_counter()
        way = by_wengert(name, count, peer) if peer in WENGERT else by_peer(name, count, peer)
    except ImportError:
        return "not installed"
    made = way.call()
    times = [time.perf_counter() - began]
    agree(f"{name}: {peer} differs", way.read(made), want, CLOSE)
    while len(times) < COLD and sum(times) < SECONDS:
        start = time.perf_counter()
        way.call()
        times.append(time.perf_counter() - start)
    agree(f"{name}: {peer} differs after {len(times)} calls", way.read(way.call()), want, CLOSE)
    return {"times": times, "call": statistics.median(per_call(way.call) for _ in range(ROUNDS))}


# -- what is read outside ----------------------------------------------------------------------------------------------


def posterior(X: Any, y: Any, w: list[Value], s: Value) -> Value:
    """The logarithm of a density of coefficients and a width, given rows of measurements."""
    total = Value(0.0)
    for row, target in zip(X, y, strict=True):
        r = (target - sum([a * b for a, b in zip(w, row, strict=True)], Value(0.0))) / s
        total = total - 0.5 * r * r - s.log()
    return total - 0.5 * sum([c * c for c in w], Value(0.0))


def of_arrays(X: Any, y: Any, w: list[Value], s: Value) -> Any:
    """The same as NumPy's arrays have it."""
    coefficients = np.array(w, dtype=object)
    r = (y - X @ coefficients) / s
    return -0.5 * (r * r).sum() - len(y) * s.log() - 0.5 * (coefficients * coefficients).sum()


def outside() -> str:
    """A table: what is read outside, and passed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 10)), rng.normal(size=1000)
    w, s = [Value(0.1 * n) for n in range(10)], Value(1.3)
    a, b, c, d = (float(x) for x in rng.normal(size=4))
    several: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]] = {
        "four numbers": (
            lambda a, b, c, d, w, s: (w[0] * a + s * b) * c + d, (a, b, c, d), lambda w, s: (w[0] * a + s * b) * c + d
        ),
        "1,000 x 10 numbers, arrays": (posterior, (X, y), lambda w, s: posterior(X, y, w, s)),
        "the same at once": (of_arrays, (X, y), lambda w, s: of_arrays(X, y, w, s)),
    }  # fmt: skip
    rows, targets = X.tolist(), y.tolist()
    several["the same, lists"] = posterior, (rows, targets), lambda w, s: posterior(rows, targets, w, s)
    lines = []
    for name, (function, given, reading) in several.items():
        ways, found = {}, []
        for way, f, args in (("passed", function, (*given, w, s)), ("read outside", reading, (w, s))):
            compiled = wengert.compile(f, backend="native")
            ways[way] = partial(lambda f, args: f(*args).backward(), compiled, args)
            for _ in range(8):
                ways[way]()
            for p in (*w, s):
                p.grad = 0.0
            made = compiled(*args)
            made.backward()
            found.append((made.data, [p.grad for p in (*w, s)]))
        agree(f"{name}: they differ", found[0], found[1], CLOSE)
        seconds = {way: statistics.median(per_call(call) for _ in range(ROUNDS)) for way, call in ways.items()}
        ratio = seconds["read outside"] / seconds["passed"]
        lines.append([name, *map(duration, seconds.values()), f"{ratio:.2f}"])
    return table(["value and gradient of", "passed", "read outside", "ratio"], lines)


# -- what it comes to --------------------------------------------------------------------------------------------------


def in_all(found: dict[str, Any]) -> float:
    """The seconds of the first calls: of those that were not made any more, by the last ones."""
    times = found["times"]
    return float(sum(times) + (COLD - len(times)) * statistics.median(times[-9:]))


def fast_from(times: list[float], pinned: float) -> str:
    """The number of the first call that takes less than twice as long as a pinned one, and with it most of five."""
    fast = [max(times[n], statistics.median(times[n : n + 5])) < 2.0 * pinned for n in range(len(times) - 4)]
    return f"{fast.index(True) + 1}" if True in fast else f"not in {len(times)}"


def named(names: list[str]) -> str:
    """Two tables: a call, and the first ones."""
    calls, firsts = [], []
    for name in names:
        function, _ = written(name)
        nodes = len(Graph(function(*examples(name, 1)[0])))
        for count in (1, collected.BATCH):
            say(f"{name}, {count}")
            found: dict[str, Any] = dict(at_once(partial(raced, name=name, count=count), list(PEERS), 1, LIMIT))
            title = [name, f"{nodes:,}", f"{count}"]
            settled = [duration(each["call"]) if isinstance(each, dict) else each for each in found.values()]
            if any(isinstance(found[peer], str) for peer in WENGERT[:3]):
                calls.append([*title, *settled, "", "", ""])
                continue
            plain, auto, native = (found[peer] for peer in WENGERT[:3])
            jax = found.get("JAX")
            ratios = [f"{auto['call'] / x['call']:.3g}" for x in (plain, native)]
            calls.append([*title, *settled, *ratios, duration(jax["times"][0]) if isinstance(jax, dict) else ""])
            seconds = {peer: in_all(found[peer]) for peer in WENGERT[:3]}
            better = min(seconds["plain"], seconds["native"])
            cells = [duration(x) for x in seconds.values()]
            pinned = statistics.median(native["times"][4:])
            early = f"{statistics.median(auto['times'][4:7]) / pinned:.3g}"
            cells += [f"{seconds['auto'] / better:.3g}", early, fast_from(auto["times"], pinned)]
            firsts.append([*title, *cells])
    head = ["program", "nodes", "examples"]
    first = table([*head, *PEERS, "auto / plain", "auto / native", "JAX compiled in"], calls)
    more = ["auto / the better", "calls 5 to 7 / pinned", "fast from call"]
    return f"{first}\n\n{table([*head, *[f'{COLD} calls: plain', 'auto', 'native'], *more], firsts)}"


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", help="distributions, table, outside; all of it if none is named")
    parser.add_argument("--against", type=Path, help="a checkout whose package takes turns with this one")
    parser.add_argument("--all", action="store_true", help=f"programs of fewer than {collected.FEW} operations as well")
    parser.add_argument("--sample", type=int, help="only so many programs of the collection, by chance")
    parser.add_argument("--only", action="append", choices=list(TASKS), help="only this one by name; repeatable")
    parser.add_argument("--record", type=Path, help="a file for the figures of each program of the collection")
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go too")
    options = parser.parse_args(argv)
    load = f"; load {os.getloadavg()[0]:.1f} before it began" if hasattr(os, "getloadavg") else ""
    parts = [f"Measured {machine('casadi', 'jax', 'numpy', 'llvmlite')}{load}."]
    if not options.parts or "distributions" in options.parts:
        names = collection()
        if options.sample:
            names = sorted(Random(0).sample(names, options.sample))
        sources = {"this": Path(wengert.__file__).resolve().parent.parent}
        sources |= {options.against.name: options.against.resolve() / "src"} if options.against else {}
        found = collected.run(names, sources, 0 if options.all else collected.FEW, say)
        parts.append(collected.distributions(found))
        print(collected.worst(found), "\n")
        if options.record:
            options.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if not options.parts or "table" in options.parts:
        parts.append(named(options.only or list(TASKS)))
    if not options.parts or "outside" in options.parts:
        parts.append(outside())
    text = "\n\n".join(parts) + "\n"
    print(text)
    if options.page:
        into_page(options.page, text, "calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
