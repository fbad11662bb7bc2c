"""Random recurrences, compiled and by the engine, side by side: some become loops again, some do not.

Run it at length as a command: ``python -m tools.qa.recurrences 0 5000`` (the seeds, from and to), with ``--backend
numpy`` for one of the back ends alone. With ``--derivatives`` it compares derivatives of recurrences, of each kind and
in both spellings, and the gradients that the backward pass of their results gives parameters and arguments. The test
suite runs a few seeds of both. Some recurrences are chaotic: an error counts where it is larger than what a unit in the
last place of the parameters makes of the engine's own gradient.
"""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import wengert
from tools.qa.lifting_fuzz import Numbers, Program, columns_of, compare, difference, gradients
from wengert import Value
from wengert.compiler.ir import Loop

__all__ = ["FAR", "KINDS", "SPELLINGS", "data_of", "derivatives_of", "flat", "program", "pull_back", "run"]

# Of the states so far, the latest last, an input, the turn, and an integer of it.
Rule = Callable[[list[Numbers], Numbers, int, int], Any]


def program(seed: int, is_short: bool = False) -> Program:
    """A random recurrence: what a turn does is drawn once, and done in each.

    A short one has fewer turns, for higher derivatives. It may also run through its turns from the last to the first,
    have a recurrence in each turn, a branch that is never taken, sums over the last states, and states that are linear
    in earlier ones, and can be asked for all its states in a list.
    """
    draw = random.Random(seed)
    turns, states, back = draw.randint(8, 40), draw.randint(1, 5), draw.choice([1, 1, 1, 2, 3])
    turns = 8 + turns % 6 if is_short else turns
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
    is_reversed, leaves_early, reads_a_window, is_damped, inner = False, False, False, False, 0
    if is_short:
        is_damped, is_reversed, leaves_early, reads_a_window = [draw.random() < share for share in (0.5, 0.4, 0.3, 0.5)]
        inner = draw.choice([0, 0, 0, 3, 9])
    later = draw.choice(["last", "all"])

    def function(x: Numbers, which: Sequence[int] = (0,) * turns, as_list: bool = False) -> Any:
        total: Any = 0.0
        every: Numbers = []
        state = [x[n % width] if start is None else start for n, start in enumerate(starts)]
        for _ in range(parts):
            past = [state] * back
            order = list(enumerate(which))
            for t, i in reversed(order) if is_reversed else order:
                state = list(past[-1])
                if is_cell:
                    state = [
                        wengert.tanh(sum(row[n] * past[-1][n] for n in links) + rule(past, x, t, i))
                        for row, links, rule in zip(weights, linked, rules, strict=True)
                    ]
                else:
                    for n, rule in enumerate(rules):
                        seen = past if at_once else [*past[1:], state]
                        term = rule(seen, x, t, i) + (0.0 if is_damped else parameters[0] * 0.5)
                        state[n] = past[-1][n] * 0.4 + term * 0.1 if is_damped else wengert.tanh(term)
                if reads_a_window:
                    state[0] = state[0] + 0.1 * sum(p * q[-1] for p, q in zip(parameters, past, strict=False))
                if other and t % other == 0:
                    state[0] = wengert.sin(state[0] * parameters[-1])
                for _ in range(inner):
                    state[0] = wengert.tanh(state[0] * parameters[1] + 0.3 * state[-1])
                past = [*past[1:], state]
                every += state
                if sums:
                    total = total + (state[-1] * state[0] if sums == "last" else sum(state))
                if leaves_early and state[0] > 100.0:
                    break
            state = past[-1]
        if as_list:
            return [*(every if later == "all" else state), total]
        return total + sum(state) * parameters[0] + wengert.tanh(x[0] * parameters[-1])

    return Program(function, [p for row in known for p in row], width, (turns, min(states, 3)) if chooses else (0, 0))


def run(seed: int, backend: str) -> tuple[float, str, int]:
    """The error of one recurrence, why it was left to the engine, if it was, and how many loops were found."""
    error, refusal, compiled = compare(program(seed), seed, False, backend)
    made = [made for entry in compiled._server.entries.values() for made in entry.specializations]
    loops = [step for each in made for step in each.lifted.program.steps if isinstance(step, Loop)]
    return error, refusal, len(loops)


Derivative = Callable[[Callable[..., Any], Numbers, list[int], Numbers], Any]
# Of a function of numbers and integers: at these, and along a direction.
KINDS: dict[str, Derivative] = {
    "grad": lambda f, x, which, v: wengert.grad(f)(x, which),
    "value_and_grad": lambda f, x, which, v: wengert.value_and_grad(f)(x, which),
    "jacobian": lambda f, x, which, v: wengert.jacobian(f)(x, which),
    "hessian": lambda f, x, which, v: wengert.hessian(f)(x, which),
    "hvp": lambda f, x, which, v: wengert.hvp(f)(x, v, which),
    "jvp": lambda f, x, which, v: wengert.jvp(f, (x,), (v,)),
    "vjp": lambda f, x, which, v: _pulled_back(*wengert.vjp(f, x)),
}
FAR = 1e-9  # an error: derivatives of a third order cancel more than values do
SPELLINGS = ("compile(grad(f))", "grad(compile(f))")


def _pulled_back(value: Any, pullback: Callable[[Any], Any]) -> Any:
    return pullback([0.7] * len(value))


def _compiled(kind: str, spelling: str, f: Callable[..., Any], backend: str) -> tuple[Callable[..., Any], Any]:
    """A function of (x, which, v) for a derivative, and what was compiled for it."""
    if spelling == SPELLINGS[1]:
        compiled = wengert.compile(f, backend=backend)
        return lambda x, which, v: KINDS[kind](compiled, x, which, v), compiled
    by_name = {"grad": wengert.grad, "value_and_grad": wengert.value_and_grad, "jacobian": wengert.jacobian}
    made: Any = {**by_name, "hessian": wengert.hessian, "hvp": wengert.hvp}.get(kind)
    if made is None:
        compiled = wengert.compile(lambda x, which, v: KINDS[kind](f, x, which, v), backend=backend)
        return compiled, compiled
    compiled = wengert.compile(made(f), backend=backend)
    return (lambda x, which, v: compiled(x, v, which) if kind == "hvp" else compiled(x, which)), compiled


def flat(result: Any) -> Numbers:
    """The numbers in nested lists and tuples."""
    return [leaf for part in result for leaf in flat(part)] if isinstance(result, (list, tuple)) else [result]


def data_of(numbers: Numbers) -> list[float]:
    """Numbers, or what Values hold."""
    return [number.data if isinstance(number, Value) else number for number in numbers]


def pull_back(numbers: Numbers, values: list[Value]) -> Numbers:
    """What the backward pass of numbers, each with another weight, gives to Values."""
    for value in values:
        value.grad = 0.0
    total = sum((0.5 + n * 0.618 % 1.0) * number for n, number in enumerate(numbers))
    if isinstance(total, Value):
        total.backward()
    return [value.grad for value in values]


def derivatives_of(seed: int, kind: str, spelling: str, backend: str) -> tuple[float, float, str]:
    """The errors of a derivative of a short recurrence and of its backward pass, and why it was left to the engine.

    It is taken at Values for every fourth seed, else at numbers, several times; the parameters change meanwhile.
    """
    made, generator = program(seed, is_short=True), random.Random(seed + 2)
    columns = columns_of(made, generator)
    as_list, function = kind in ("jacobian", "jvp", "vjp"), made.function
    given = columns[1] if len(columns) > 1 else [None] * 4

    def f(x: Numbers, which: Any = given[0]) -> Any:
        return function(x, as_list=as_list) if which is None else function(x, which, as_list)

    def of_numbers(x: Numbers) -> Any:
        return f(x)

    own: Any = of_numbers if kind in ("jvp", "vjp") else f
    call, compiled = _compiled(kind, spelling, own, backend)
    worst, worst_back = 0.0, 0.0
    for turn, (x, which) in enumerate([*zip(columns[0], given, strict=True)][:3]):
        v = [generator.gauss(0.0, 1.0) for _ in x]
        point: Numbers = [Value(number) for number in x] if seed % 4 == 0 else x
        values = made.parameters + [number for number in point if isinstance(number, Value)]
        plain = flat(KINDS[kind](own, point, which, v))
        want, wanted = data_of(plain), pull_back(plain, values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = flat(call(point, which, v))
        got = data_of(result)
        worst = max(worst, difference(got, want) if len(got) == len(want) else math.inf)
        worst_back = max(worst_back, difference(pull_back(result, values), wanted))
        if turn:
            for p in made.parameters:
                p.data = generator.gauss(0.0, 0.6)
    servers = [one._server for one in (compiled, *compiled._derivatives.values())]
    reasons = [entry.fallback_reason for server in servers for entry in server.entries.values()]
    return worst, worst_back, "; ".join(reason for reason in reasons if reason)


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


def compare_derivatives(seeds: Sequence[int], backends: Sequence[str]) -> int:
    """Compare all derivatives of some recurrences; print what went wrong; the exit status."""
    cases = list(product(seeds, KINDS, SPELLINGS, backends))
    worst, bad, refused = [0.0, 0.0], 0, 0
    for case in cases:
        *errors, why = derivatives_of(*case)
        worst = [max(pair) for pair in zip(worst, errors, strict=True)]
        is_close = max(errors) < FAR
        if not is_close or why:
            bad, refused = bad + (not is_close), refused + bool(why)
            print(*case, f"errors {errors[0]:.3g}, {errors[1]:.3g} {why}", flush=True)
    print(f"{len(cases)} runs: worst errors {worst[0]:.3g}, {worst[1]:.3g}, {bad} wrong, {refused} left to the engine")
    return int(bad > 0 or refused > 0)


def main() -> int:
    """Run the seeds of the command line, and say what went wrong; the exit status is 1 if anything did."""
    first, last = int(sys.argv[1]), int(sys.argv[2])
    backends = [sys.argv[sys.argv.index("--backend") + 1]] if "--backend" in sys.argv else ["numpy", "native"]
    if "--derivatives" in sys.argv:
        return compare_derivatives(range(first, last), backends)
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
