"""What it costs to prepare an array program, against the size of what was recorded, for graphs of every shape.

    python -m benchmarks.preparation [--shape NAME ...] [--nodes N] [--doublings K] [--profile]

Preparation is everything between a recorded graph and a kernel that runs: lifting, the reverse sweep, both checks of
the program, its text, and Python's own compiler. The table has microseconds a node at N, 2N, 4N and 8N nodes, of
processor time. The last column is what a node costs at the largest size over what it costs at the smallest: 1 is
linear. Results are compared with the engine's before anything is timed.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import math
import pstats
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert
from wengert import Value
from wengert.compiler.backends import default_backend
from wengert.compiler.derive import reverse
from wengert.compiler.ir import verify
from wengert.compiler.lift import CONST, INPUT, PARAM, VALUE, lift
from wengert.graph import Graph

__all__ = ["SHAPES", "Case", "main", "prepare"]

STAGES = ("lift", "reverse", "verify", "kernel")
TOLERANCE = 1e-9  # by which a kernel may differ from the engine


class Case(NamedTuple):
    """A recorded computation."""

    result: Value
    parameters: list[Value]
    inputs: list[Value]


def numbers(count: int, seed: int = 7) -> list[float]:
    """As many numbers around 0, the same each time."""
    draw = random.Random(seed)
    return [draw.gauss(0.0, 0.5) for _ in range(count)]


def values(count: int, seed: int = 7) -> list[Value]:
    """As many leaves."""
    return [Value(x) for x in numbers(count, seed)]


# -- the shapes, each of about n nodes --------------------------------------------------------------------------------


def any_of(draw: random.Random, a: Value, b: Value) -> Value:
    """An operation, drawn at random, on one or two Values."""
    which = draw.randrange(4)
    return a + b if which == 0 else a * b if which == 1 else a.tanh() if which == 2 else (a - b).sin()


def chain(n: int) -> Case:
    """Operations one after another, each on the last one's result."""
    w, x = values(3), Value(0.3)
    y = x
    for i in range(n // 4):
        y = (w[0] * y + w[1]).tanh() if i % 2 else (y * w[2]).sin() + x
    return Case(y, w, [x])


def mixed_chain(n: int) -> Case:
    """A chain of many kinds of operations, in no order."""
    draw, w, x = random.Random(3), values(5), Value(0.3)
    steps: list[Callable[[Value], Value]] = [
        lambda y: y * w[0], lambda y: y + w[1], lambda y: w[2] - y, lambda y: y.tanh(), lambda y: y.sin(),
        lambda y: y / (1.5 + y * y), lambda y: y.exp().log(), lambda y: y.relu() + 0.25,
        lambda y: wengert.maximum(y, w[3]),
    ]  # fmt: skip
    y = x
    for _ in range(n * 3 // 4):
        y = draw.choice(steps)(y)
    return Case(y, w, [x])


def biquad(n: int) -> Case:
    """A filter with two delays: its output is fed back, and the squares of all outputs are summed."""
    b0, b1, b2, a1, a2 = w = [Value(c) for c in (0.2, 0.3, 0.2, -0.5, 0.2)]
    xs = values(n // 13)
    x1: Any = 0.0
    x2 = y1 = y2 = loss = x1
    for x in xs:
        y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        x2, x1, y2, y1 = x1, x, y1, y
        loss = loss + y * y
    return Case(loss, w, xs)


def tree(n: int) -> Case:
    """Pairs, and pairs of pairs, up to one."""
    xs = values(n // 4)
    level = list(xs)
    while len(level) > 1:
        pairs = [(a * b + b).tanh() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) // 2 * 2 :]
    return Case(level[0], [], xs)


def layer(n: int) -> Case:
    """One layer of a network, as wide as it has inputs."""
    width = round((n / 2) ** 0.5)
    xs, weights = values(width), [values(width, seed) for seed in range(width)]
    outs = [sum((w * x for w, x in zip(row, xs, strict=True)), Value(0.0)).tanh() for row in weights]
    return Case(wengert.sum(outs), [w for row in weights for w in row], xs)


def network(n: int) -> Case:
    """The same small network on every example of a batch that is written as a loop."""
    first, last = [values(3, seed) for seed in range(16)], values(17, 99)
    xs = values(2 * max(1, n // 165))
    total = Value(0.0)
    for a, b in zip(xs[::2], xs[1::2], strict=True):
        hidden = [(w[0] * a + w[1] * b + w[2]).tanh() for w in first]
        score = sum((w * h for w, h in zip(last, hidden, strict=False)), last[16])
        total = total + (1.0 - score).relu()
    return Case(total, [w for row in (*first, last) for w in row], xs)


def prefix(n: int) -> Case:
    """Sums of the first 1, 2, 3 and more numbers, each of them used."""
    xs = values(n // 3)
    total, squares = Value(0.0), []
    for x in xs:
        total = total + x
        squares.append(total * total)
    return Case(wengert.sum(squares), [], xs)


def rk4(n: int) -> Case:
    """An oscillator, integrated by the classical method of Runge and Kutta."""
    k, h = Value(1.3), 0.01
    start = [Value(1.0), Value(0.2)]
    state: list[Any] = list(start)

    def slope(s: Sequence[Any]) -> list[Any]:
        return [s[1], -k * s[0]]

    for _ in range(n // 54):
        a = slope(state)
        b = slope([p + 0.5 * h * q for p, q in zip(state, a, strict=True)])
        c = slope([p + 0.5 * h * q for p, q in zip(state, b, strict=True)])
        d = slope([p + h * q for p, q in zip(state, c, strict=True)])
        state = [p + h / 6 * (q + 2 * r + 2 * t + u) for p, q, r, t, u in zip(state, a, b, c, d, strict=True)]
    return Case(state[0] * state[0] + state[1] * state[1], [k], start)


def graph_at_random(n: int) -> Case:
    """Each node made from two of all that were made before."""
    draw, xs = random.Random(11), values(n // 20 + 2)
    made = list(xs)
    for _ in range(n * 3 // 4):
        made.append(any_of(draw, draw.choice(made), draw.choice(made)))
    return Case(wengert.sum(made[-200:]), xs[::2], xs[1::2])


def window(n: int) -> Case:
    """Each node made from two of the last fifty: at random, and deep."""
    draw, xs = random.Random(12), values(50)
    made = list(xs)
    for _ in range(n * 3 // 4):
        made.append(any_of(draw, draw.choice(made[-50:]), draw.choice(made[-50:])))
    return Case(wengert.sum(made[-50:]), xs[::2], xs[1::2])


def ragged(n: int) -> Case:
    """Sums of products, of all lengths."""
    width = round(n**0.5)
    ws, xs = values(width), values(width, 8)
    outs = [wengert.sum([w * x for w, x in zip(ws[:k], xs[:k], strict=True)]).tanh() for k in range(1, width)]
    return Case(wengert.sum(outs), ws, xs)


def constants(n: int) -> Case:
    """A different constant in each operation."""
    x, w = values(20), Value(0.7)
    outs = [((w * x[i % 20] + c).tanh() * (c * c) - 1.0 / (2.0 + c)) for i, c in enumerate(numbers(n // 6, 5))]
    return Case(wengert.sum(outs), [w], x)


def parameters(n: int) -> Case:
    """A parameter of its own in each operation."""
    ws, xs = values(n // 4), values(10)
    outs = [(w * xs[i % 10]).tanh() for i, w in enumerate(ws)]
    return Case(wengert.sum(outs), ws, xs)


def table(n: int) -> Case:
    """The table of dynamic time warping, each cell made from three others."""
    side = round((n / 6) ** 0.5)
    xs, ys = values(side), values(side, 8)
    far = Value(1e3)
    above: list[Value] = [Value(0.0), *[far] * side]
    for x in xs:
        row: list[Value] = [far]
        for j, y in enumerate(ys):
            cost = (x - y) * (x - y)
            row.append(cost + wengert.minimum(wengert.minimum(above[j], above[j + 1]), row[j]))
        above = row
    return Case(above[-1], ys, xs)


def smooth_table(n: int) -> Case:
    """The same with a smooth minimum."""
    side = round((n / 12) ** 0.5)
    xs, ys, w = values(side), values(side, 8), Value(-1.0)
    above: list[Any] = [0.0, *[30.0] * side]
    for x in xs:
        row: list[Any] = [30.0]
        for j, y in enumerate(ys):
            row.append((x - y) ** 2 - wengert.logsumexp([w * above[j], w * above[j + 1], w * row[j]]))
        above = row
    return Case(above[-1], [*ys, w], xs)


def newton(n: int) -> Case:
    """Roots by Newton's method, one after another, each begun at the last."""
    w, x = values(2), Value(1.4)
    y: Any = x
    for _ in range(n // 9):
        y = y - (y * y * y - w[0] - 2.0) / (3.0 * y * y + 0.1 + w[1] ** 2)
    return Case(y, w, [x])


SHAPES: dict[str, Callable[[int], Case]] = {
    "chain": chain,
    "mixed chain": mixed_chain,
    "biquad": biquad,
    "tree": tree,
    "layer": layer,
    "network": network,
    "prefix sums": prefix,
    "rk4": rk4,
    "newton": newton,
    "random": graph_at_random,
    "random, deep": window,
    "ragged sums": ragged,
    "constants": constants,
    "parameters": parameters,
    "dtw": table,
    "soft dtw": smooth_table,
}


# -- what is measured -------------------------------------------------------------------------------------------------


def prepare(case: Case) -> tuple[int, dict[str, float], Any, list[Any]]:
    """The nodes of a case, the seconds of each stage of preparing it, the kernel, and the leaves that it takes."""
    graph, place = graph_of(case)
    source = np.where(np.frombuffer(graph.codes, np.uint16) == 0, CONST, VALUE)
    source[[place[id(x)] for x in case.parameters]] = PARAM
    inputs = np.array([place[id(x)] for x in case.inputs], np.int64)
    source[inputs] = INPUT
    seconds = dict.fromkeys(STAGES, 0.0)

    def timed(stage: str, work: Callable[..., Any], *operands: Any) -> Any:
        began = time.process_time()
        made = work(*operands)
        seconds[stage] += time.process_time() - began
        return made

    out = np.array(place[id(case.result)], np.int64)
    lifted = timed("lift", lambda: lift(graph, source, {"x": inputs}, {"out": out}, batched=False))
    timed("verify", verify, lifted.program)
    wanted = [array for array in lifted.program.of_role("input") if array.name == "x"]
    back = timed("reverse", reverse, lifted.program, ("x",))
    timed("verify", verify, back, lifted.program.arrays)
    kernel = timed("kernel", default_backend().kernel(), lifted.program, back, wanted)
    return len(graph), seconds, kernel, [graph.values[number] for number in lifted.parameters]


def graph_of(case: Case) -> tuple[Graph, dict[int, int]]:
    """The graph of a case, and where the result, the parameters and the inputs stand in it, by their ids."""
    roots = {id(x): x for x in (case.result, *case.parameters, *case.inputs)}
    graph = Graph(*roots.values())
    return graph, dict(zip(roots, graph.outputs, strict=True))


def error(case: Case) -> float:
    """By how much a kernel's result and derivatives are off, relative to the largest of each."""
    *_, kernel, leaves = prepare(case)
    graph, place = graph_of(case)
    slopes = graph.pull_back({place[id(case.result)]: 1.0})
    buffers = kernel.buffers()
    buffers.params[:] = [leaf.data for leaf in leaves]
    with np.errstate(all="ignore"):
        outputs, by_inputs = kernel.forward_backward([np.array([x.data for x in case.inputs])], 1.0, buffers)
    got = np.concatenate([buffers.grads, by_inputs[0]])
    want = np.array([slopes[place[id(x)]] for x in (*leaves, *case.inputs)])
    off: float = float(np.abs(got - want).max()) / max(np.abs(want).max(), 1e-300)
    result, wanted = float(outputs["out"]), float(case.result.data)
    return max(off, abs(result - wanted) / max(abs(wanted), 1e-300))


def main(argv: list[str] | None = None) -> int:
    """Print the table; 1 if a kernel is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preparation", description=__doc__.split("\n\n")[0])
    parser.add_argument("--shape", action="append", choices=list(SHAPES), help="only this one; repeatable")
    parser.add_argument("--nodes", type=int, default=10_000, help="the smallest size (default: 10,000)")
    parser.add_argument("--doublings", type=int, default=3, help="how often it doubles (default: 3)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts (default: 3)")
    parser.add_argument("--profile", action="store_true", help="the largest size once, under cProfile")
    options = parser.parse_args(argv)
    sizes = [options.nodes * 2**k for k in range(options.doublings + 1)]
    print(f"{'us a node':<13}" + "".join([f"{size:>9,}" for size in sizes]) + f"{'last/first':>12}   largest: "
          + ", ".join(STAGES))  # fmt: skip
    worst = 0.0
    for name in options.shape or SHAPES:
        off = error(SHAPES[name](sizes[0]))
        if not off < TOLERANCE:
            print(f"{name}: wrong by {off:.1e}")
            return 1
        if options.profile:
            case = SHAPES[name](sizes[-1])
            profile = cProfile.Profile()
            profile.runcall(prepare, case)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            continue
        costs: list[float] = []
        for size in sizes:
            case, best, stages = SHAPES[name](size), math.inf, {}
            for _ in range(options.rounds):
                gc.collect()
                nodes, seconds, *_ = prepare(case)
                if sum(seconds.values()) < best:
                    best, stages = sum(seconds.values()), seconds
            costs.append(best / nodes * 1e6)
            del case
        growth = costs[-1] / costs[0]
        worst = max(worst, growth)
        shares = ", ".join([f"{stages[stage] / best:.0%}" for stage in STAGES])
        print(f"{name:<13}" + "".join([f"{cost:>9.2f}" for cost in costs]) + f"{growth:>12.2f}   {shares}", flush=True)
    if not options.profile:
        print(f"the worst growth: {worst:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
