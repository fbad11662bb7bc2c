"""Random scalar programs, compiled and eager, side by side.

Run it at length as a command: ``python -m tools.qa.lifting_fuzz 0 20000`` (the seeds, from and to). The test suite
runs a few hundred seeds.

With ``--backend xla`` nearly all of the time goes into XLA's compiler, and it grows with the program: ``--layers 3``
makes smaller programs, and ``--once`` fewer of them, for it leaves out a second turn, one example by itself and `map`.
In the environment ``XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"`` leaves
out most of what LLVM does at the end, which is half of the time.
"""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert
from wengert import Value
from wengert.ops import TABLE, Op

UNARY = [row for row in TABLE if row.arity == 1 and row.value]
STEEP = ("sign", "floor", "round", "digamma", "lgamma")
SMOOTH = [row for row in UNARY if row.domain == ((-3.0, 3.0),) and row.name not in STEEP]
BINARY = [row for row in TABLE if row.arity == 2 and row.name in ("add", "sub", "mul", "maximum", "minimum", "hypot")]
Numbers = list[Any]


@dataclass
class Program:
    """A random function of one example, and what it captures."""

    function: Callable[..., Any]
    parameters: list[Value]
    width: int
    integers: tuple[int, int] = (0, 0)  # how many it is given besides, and below what


def program(seed: int, most: int = 13) -> Program:
    """Up to so many layers of random shapes on random earlier ones; drawn anew, from the seed, at each call."""
    generator = random.Random(seed)
    parameters = [Value(generator.gauss(0.0, 0.6)) for _ in range(generator.randint(3, 30))]
    width = generator.randint(1, 10)
    layers = generator.randint(min(3, most), most)

    def function(x: Numbers) -> Any:
        draw = random.Random(seed + 1)
        known = [parameters, list(x)]
        for _ in range(layers):
            known.append(layer(draw, known, parameters))
        everything = [v for values in known[2:] for v in values if draw.random() < 0.7]
        total: Any = 0.001 * sum(p * p for p in parameters)
        for v in everything:
            total = total + draw.gauss(0.0, 1.0) * tame(v)
        return total + 0.1 * draw.choice(known[-1])

    return Program(function, parameters, width)


def tame(v: Any) -> Any:
    """A value of moderate size."""
    return wengert.tanh(v)


def layer(draw: random.Random, known: list[Numbers], parameters: Numbers) -> Numbers:
    """A new layer, of one of the patterns that programs are made of."""
    some, more = draw.choice(known), draw.choice(known)
    everything = [v for values in known for v in values]
    many = draw.randint(1, 8)
    kind = draw.randrange(17)
    if kind == 0:
        row: Op = draw.choice(BINARY)
        return [row(a, b) for a, b in zip(some, more, strict=False)]
    if kind == 1:
        return [a + b for a, b in zip(some, more, strict=False)]
    if kind == 2:
        row = draw.choice(SMOOTH)
        return [row(tame(a)) for a in some]
    if kind == 3:  # sums of products of anything
        return [
            tame(
                sum(
                    (draw.choice(everything) * v * (draw.gauss(0, 1) if draw.random() < 0.3 else 1.0) for v in some),
                    0.0,
                )
            )
            for _ in range(many)
        ]
    if kind == 4:
        return [wengert.log(1.0 + wengert.exp(tame(a))) for a in some]
    if kind == 5:
        return list(wengert.softmax([tame(a) for a in some]))
    if kind == 6:  # sums of all lengths
        return [0.3 * sum(some[: k + 1]) for k in range(len(some))]
    if kind == 7:  # neurons
        weights = [[draw.choice(parameters) for _ in some] for _ in range(many)]
        return [wengert.relu(sum((w * v for w, v in zip(row, some, strict=True)), -0.5)) for row in weights]
    if kind == 8:  # neurons by the library's own product
        weights = [[draw.choice(parameters) for _ in some] for _ in range(many)]
        return [tame(wengert.dot(row, some, draw.choice(everything))) for row in weights]
    if kind == 9:  # causal attention over short vectors
        size = draw.randint(2, 6)
        vectors = [[draw.choice(some) * draw.choice(parameters) for _ in range(2)] for _ in range(size)]
        out: Numbers = []
        for t in range(size):
            scores = [tame(sum(a * b for a, b in zip(vectors[t], vectors[s], strict=True))) for s in range(t + 1)]
            weights_ = wengert.softmax(scores)
            out += [sum(w * vectors[s][c] for s, w in enumerate(weights_)) for c in range(2)]
        return out
    if kind == 10:  # a normalization
        scale = (sum(a * a for a in map(tame, some)) / len(some) + 0.1) ** draw.choice([-0.5, 0.5, -1, 2, 1.5])
        return [tame(a) * scale for a in some]
    if kind == 11:  # a convolution
        kernel = [draw.choice(parameters) for _ in range(min(3, len(some)))]
        return [
            tame(sum(w * some[k + n] for n, w in enumerate(kernel))) for k in range(max(1, len(some) - len(kernel) + 1))
        ]
    if kind == 12:  # a recurrence
        state: Any = draw.choice(parameters)
        states = []
        for a in some:
            state = tame(state * draw.choice(parameters) + a)
            states.append(state)
        return states
    if kind == 13:  # the extremes, and what is left out of gradients
        best = wengert.max(some) if draw.random() < 0.5 else wengert.min(some)
        return [tame(a - wengert.stop_gradient(best)) + 0.1 * best for a in some]
    if kind == 14:
        return [
            wengert.mean(some),
            wengert.logsumexp([tame(a) for a in more]),
            wengert.prod([tame(a) for a in some[:3]]),
        ]
    if kind == 15:  # where the cut of atan2 is not: rounding decides there
        return [wengert.atan2(a, 1.5 + tame(b)) for a, b in zip(some, more, strict=False)]
    return [-a if draw.random() < 0.5 else a / (1.5 + tame(b)) for a, b in zip(some, more, strict=False)]


def gradients(result: Any, parameters: list[Value]) -> np.ndarray[Any, Any]:
    """The parameters' gradients of a result."""
    for p in parameters:
        p.grad = 0.0
    result.backward()
    return np.array([p.grad for p in parameters])


def difference(got: Any, want: Any) -> float:
    """The largest error, relative to the largest number; infinite where one is finite and the other is not."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    finite = np.isfinite(want)
    if (
        not (np.isnan(got) == np.isnan(want)).all()
        or not (got[~finite & ~np.isnan(want)] == want[~finite & ~np.isnan(want)]).all()
    ):
        return math.inf
    if not finite.any():
        return 0.0
    return float(np.abs(got - want)[finite].max() / max(1.0, np.abs(want[finite]).max()))


def run(
    seed: int, poison: bool = False, backend: str = "auto", layers: int = 13, once: bool = False
) -> tuple[float, str]:
    """The error of one program, batch and single, and why it was left to the engine, if it was; `once` is one turn of
    the batch alone.
    """
    return compare(program(seed, layers), seed, poison, backend, once)[:2]


def columns_of(made: Program, generator: random.Random) -> list[Any]:
    """Four examples: their numbers and, where it takes any, their integers."""
    batch = [[generator.gauss(0.0, 0.6) for _ in range(made.width)] for _ in range(4)]
    count, below = made.integers
    return [batch, [[generator.randrange(below) for _ in range(count)] for _ in batch]][: 1 + (count > 0)]


def compare(made: Program, seed: int, poison: bool, backend: str, once: bool = False) -> tuple[float, str, Any]:
    """The same of a program that is given, and the compiled function."""
    generator = random.Random(seed + 2)
    columns = columns_of(made, generator)
    batch = columns[0]
    compiled = wengert.compile(made.function, backend=backend)
    worst = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(1 if once else 2):
            if poison and turn:
                where = generator.randrange(made.width)
                batch[generator.randrange(4)][where] = generator.choice([math.inf, -math.inf, math.nan, 0.0])
            each = [made.function(*row) for row in zip(*columns, strict=True)]
            if not once:
                single = compiled(*[column[0] for column in columns])
                worst = max(worst, difference(single.data, each[0].data))
                worst = max(worst, difference(gradients(single, made.parameters), gradients(each[0], made.parameters)))
            mean = compiled.mean(*columns)
            if not once:
                worst = max(worst, difference(compiled.map(*columns), [v.data for v in each]))
            want = wengert.mean(each)
            worst = max(worst, difference(mean.data, want.data))
            worst = max(worst, difference(gradients(mean, made.parameters), gradients(want, made.parameters)))
            for p in made.parameters:  # the second turn has other numbers
                p.data = generator.gauss(0.0, 0.6)
    refused = [entry.fallback_reason for entry in compiled._server.entries.values() if entry.fallback_reason]
    return worst, "; ".join(refused), compiled


def main() -> int:
    """Run the seeds of the command line, and say what went wrong; the exit status is 1 if anything did."""
    first, last = int(sys.argv[1]), int(sys.argv[2])
    poison = "--poison" in sys.argv
    backend = sys.argv[sys.argv.index("--backend") + 1] if "--backend" in sys.argv else "auto"
    layers = int(sys.argv[sys.argv.index("--layers") + 1]) if "--layers" in sys.argv else 13
    worst, bad, refused = 0.0, 0, 0
    for seed in range(first, last):
        try:
            error, why = run(seed, poison, backend, layers, "--once" in sys.argv)
        except Exception as problem:
            print(f"seed {seed}: {type(problem).__name__}: {problem}")
            bad += 1
            if "--raise" in sys.argv:
                raise
            continue
        worst = max(worst, error)
        if not error < 1e-12:
            print(f"seed {seed}: error {error:.3g}")
            bad += 1
        if why:
            refused += 1
            if refused <= 20:
                print(f"seed {seed} stays with the engine: {why}")
    print(f"{last - first} programs: worst error {worst:.3g}, {bad} wrong, {refused} left to the engine")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
