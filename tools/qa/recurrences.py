"""Random recurrences, compiled and by the engine, side by side: some become loops again, some do not.

Run it at length as a command: ``python -m tools.qa.recurrences 0 5000`` (the seeds, from and to), with ``--backend
numpy`` for one of the back ends alone. The test suite runs a few seeds. Some recurrences are chaotic: an error counts
where it is larger than what a unit in the last place of the parameters makes of the engine's own gradient.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import wengert
from tools.qa.lifting_fuzz import Numbers, Program, columns_of, compare, difference, gradients
from wengert import Value
from wengert.compiler.ir import Loop

__all__ = ["program", "run"]

# Of the states so far, the latest last, an input, the turn, and an integer of it.
Rule = Callable[[list[Numbers], Numbers, int, int], Any]


def program(seed: int) -> Program:
    """A random recurrence: what a turn does is drawn once, and done in each."""
    draw = random.Random(seed)
    turns, states, back = draw.randint(8, 40), draw.randint(1, 5), draw.choice([1, 1, 1, 2, 3])
    parameters = [Value(draw.gauss(0.0, 0.6)) for _ in range(draw.randint(3, 8))]
    of_turns = [[Value(draw.gauss(0.0, 0.6)) for _ in range(turns)] for _ in range(draw.choice([0, 0, 1, 2]))]
    constants = [[draw.choice([0.0, 1.0, -1.0, draw.gauss(0.0, 1.0)]) for _ in range(turns)] for _ in range(2)]
    read = draw.choice(["a turn", "all", "none"])
    width = turns if read == "a turn" else draw.randint(1, 3)
    known = [parameters, *of_turns]
    chooses = draw.random() < 0.25

    def leaf() -> Rule:
        kind, n = draw.randrange(8 if chooses else 7), draw.randrange(states)
        lag = draw.randint(1, back)
        if kind < 3:
            return lambda past, x, t, i: past[-lag][n]
        if kind == 7:
            row = draw.choice([None, parameters])
            return lambda past, x, t, i: (past[-lag] if row is None else row)[i]
        if kind == 3:
            p = draw.choice(parameters)
            return lambda past, x, t, i: p
        if kind == 4 and read != "none":
            return lambda past, x, t, i: x[t if read == "a turn" else n % width]
        if kind == 5 and of_turns:
            row = draw.choice(of_turns)
            return lambda past, x, t, i: row[t]
        numbers = draw.choice(constants) if draw.random() < 0.5 else [draw.choice([0.5, 2.0, -1.0])] * turns
        return lambda past, x, t, i: numbers[t]

    def expression(depth: int) -> Rule:
        if not depth or draw.random() < 0.15:
            return leaf()
        a, b = expression(depth - 1), expression(depth - 1)
        kind = draw.randrange(12)
        if kind < 3:
            return lambda past, x, t, i: a(past, x, t, i) + b(past, x, t, i)
        if kind < 6:
            return lambda past, x, t, i: a(past, x, t, i) * b(past, x, t, i)
        if kind == 6:
            return lambda past, x, t, i: a(past, x, t, i) - b(past, x, t, i)
        if kind == 7:
            return lambda past, x, t, i: a(past, x, t, i) / (1.5 + wengert.tanh(b(past, x, t, i) + parameters[0]))
        if kind == 8:
            return lambda past, x, t, i: wengert.maximum(a(past, x, t, i) + parameters[0], b(past, x, t, i))
        if kind == 9:
            return lambda past, x, t, i: wengert.logsumexp([a(past, x, t, i), b(past, x, t, i), parameters[-1]])
        function = draw.choice([wengert.sin, wengert.tanh, wengert.sigmoid, wengert.stop_gradient])
        return lambda past, x, t, i: function(a(past, x, t, i) + parameters[0])

    weights = [[draw.choice(parameters) for _ in range(states)] for _ in range(states)]
    is_ragged = draw.random() < 0.3
    linked = [draw.sample(range(states), draw.randint(1, states)) if is_ragged else range(states) for _ in weights]
    rules = [expression(draw.randint(1, 3)) for _ in range(states)]
    is_cell, at_once, sums = draw.random() < 0.3, draw.random() < 0.5, draw.choice(["", "last", "all"])
    other = draw.choice([0, 0, 0, 2, 3])  # every other turn, or third, does more
    starts = [draw.choice([0.0, 0.3, draw.choice(parameters), None]) for _ in range(states)]
    parts = draw.choice([1, 1, 1, 2])

    def function(x: Numbers, which: Sequence[int] = (0,) * turns) -> Any:
        total: Any = 0.0
        state = [x[n % width] if start is None else start for n, start in enumerate(starts)]
        for _ in range(parts):
            past = [state] * back
            for t, i in enumerate(which):
                state = list(past[-1])
                if is_cell:
                    state = [
                        wengert.tanh(sum(row[n] * past[-1][n] for n in links) + rule(past, x, t, i))
                        for row, links, rule in zip(weights, linked, rules, strict=True)
                    ]
                else:
                    for n, rule in enumerate(rules):
                        seen = past if at_once else [*past[1:], state]
                        state[n] = wengert.tanh(rule(seen, x, t, i) + parameters[0] * 0.5)
                if other and t % other == 0:
                    state[0] = wengert.sin(state[0] * parameters[-1])
                past = [*past[1:], state]
                if sums:
                    total = total + (state[-1] * state[0] if sums == "last" else sum(state))
            state = past[-1]
        return total + sum(state) * parameters[0] + wengert.tanh(x[0] * parameters[-1])

    return Program(function, [p for row in known for p in row], width, (turns, min(states, 3)) if chooses else (0, 0))


def run(seed: int, backend: str) -> tuple[float, str, int]:
    """The error of one recurrence, why it was left to the engine, if it was, and how many loops were found."""
    error, refusal, compiled = compare(program(seed), seed, False, backend)
    made = [made for entry in compiled._runtime.entries.values() for made in entry.specializations]
    loops = [step for each in made for step in each.lifted.program.steps if isinstance(step, Loop)]
    return error, refusal, len(loops)


def by_a_unit(seed: int) -> float:
    """How far the engine's own gradient moves where each parameter moves by a unit in its last place, at worst of a few
    times, on what `compare` runs.
    """
    made, generator, draw = program(seed), random.Random(seed + 2), random.Random(seed)
    columns, worst = columns_of(made, generator), 0.0
    for _ in range(2):
        numbers, found = [p.data for p in made.parameters], []
        for nudged in range(6):
            for p, x in zip(made.parameters, numbers, strict=True):
                p.data = math.nextafter(x, draw.choice([-math.inf, math.inf])) if nudged else x
            each = [made.function(*row) for row in zip(*columns, strict=True)]
            found.append(gradients(wengert.mean(each), made.parameters))
        worst = max(worst, *[difference(one, found[0]) for one in found])
        for p in made.parameters:
            p.data = generator.gauss(0.0, 0.6)
    return worst


def main() -> int:
    """Run the seeds of the command line, and say what went wrong; the exit status is 1 if anything did."""
    first, last = int(sys.argv[1]), int(sys.argv[2])
    backends = [sys.argv[sys.argv.index("--backend") + 1]] if "--backend" in sys.argv else ["numpy", "native"]
    worst, bad, refused, with_loops = 0.0, 0, 0, 0
    for seed in range(first, last):
        for backend in backends:
            error, why, loops = run(seed, backend)
            worst, with_loops = max(worst, error), with_loops + (loops > 0)
            close = error < 1e-12 or error < by_a_unit(seed)
            if not close or why:
                bad, refused = bad + (not close), refused + bool(why)
                print(f"seed {seed} by {backend}: error {error:.3g} {why}", flush=True)
    count = (last - first) * len(backends)
    print(f"{count} runs: worst error {worst:.3g}, {bad} wrong, {refused} left to the engine, {with_loops} with loops")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
