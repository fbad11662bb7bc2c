"""How often `diagnose` is right: the networks N1 to N4 of the tutorials, trained from 200 seeds each.

    python -m tools.qa.diagnosis_rates            # 200 seeds of each; N4 takes a few minutes
    python -m tools.qa.diagnosis_rates N2 N3 50   # some of them, 50 seeds of each

N1 and N4 learn, and the diagnosis should have nothing to say. N2 (a learning rate ten times too high: saturated tanh)
and N3 (ReLU at the output) fail on most seeds, and the diagnosis should say why. What is right is not asked of the code
under test: plain floats compute the network again from its parameters, and show which output stands where it cannot
move though it is wrong.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from wengert import Value, data
from wengert.diagnosis import Diagnosis, diagnose
from wengert.nn import MLP

Rows = list[list[float]]
FOUR: Rows = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
SIGNS = [1.0, -1.0, -1.0, 1.0]
XOR: Rows = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
PARITY = [0.0, 1.0, 1.0, 0.0]


class Run(NamedTuple):
    """What a learner has in hand when training is over."""

    model: MLP
    loss: Value
    losses: list[float]
    X: Rows
    Y: list[float]
    before: dict[str, float]
    """The parameters of the last loss: before the last update."""


def trained(seed: int, make: Callable[[], MLP], X: Rows, Y: list[float], lr: float, steps: int) -> Run:
    """The loop of the tutorials."""
    random.seed(seed)
    model, losses = make(), []
    for _ in range(steps):
        before = model.state_dict()
        loss: Any = sum((model(x) - y) ** 2 for x, y in zip(X, Y, strict=True))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data += -lr * p.grad
        losses.append(loss.data)
    return Run(model, loss, losses, X, Y, before)


def n1(seed: int) -> Run:
    return trained(seed, lambda: MLP(3, [4, 4, 1], activation="tanh", output="tanh"), FOUR, SIGNS, 0.05, 100)


def n2(seed: int) -> Run:
    return trained(seed, lambda: MLP(3, [4, 4, 1], activation="tanh", output="tanh"), FOUR, SIGNS, 0.5, 20)


def n3(seed: int) -> Run:
    return trained(seed, lambda: MLP(2, [4, 4, 1], output="relu"), XOR, PARITY, 0.05, 100)


def n4(seed: int) -> Run:
    X, Y = data.moons(100, noise=0.1, seed=seed, labels=(-1, 1))
    model, losses = MLP(2, [16, 16, 1], rng=random.Random(seed)), []
    for k in range(100):
        before = model.state_dict()
        hinges = [(1 + -y * model(x)).relu() for x, y in zip(X, Y, strict=True)]
        loss = sum(hinges) * (1.0 / len(hinges)) + 1e-4 * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= (1.0 - 0.9 * k / 100) * p.grad
        losses.append(loss.data)
    return Run(model, loss, losses, X, Y, before)


def output_before_activation(state: dict[str, float], x: list[float], activation: Callable[[float], float]) -> float:
    """The last weighted sum of a network, in plain floats."""
    layers: dict[int, dict[int, dict[str, float]]] = {}
    for name, number in state.items():
        _, layer, _, neuron, rest = name.split(".", 4)
        layers.setdefault(int(layer), {}).setdefault(int(neuron), {})[rest] = number
    numbers, sums = x, [0.0]
    for layer in range(len(layers)):
        sums = [
            sum(neuron[f"w.{i}"] * number for i, number in enumerate(numbers)) + neuron["b"]
            for neuron in layers[layer].values()
        ]
        numbers = [activation(z) for z in sums]
    return sums[0]


def tanh_is_stuck(run: Run) -> bool:
    """Whether the output is wrong by 1 or more for some example, and each such is beyond 0.95 on the wrong side."""
    sums = [output_before_activation(run.before, x, math.tanh) for x in run.X]
    wrong = [z for z, y in zip(sums, run.Y, strict=True) if abs(math.tanh(z) - y) >= 1.0]
    return bool(wrong) and all(abs(math.tanh(z)) > 0.95 for z in wrong)


def relu_is_stuck(run: Run) -> bool:
    """Whether the output's weighted sum is 0 or less for an example whose target is 1."""
    sums = [output_before_activation(run.before, x, lambda z: max(0.0, z)) for x in run.X]
    return any(z <= 0.0 and y > 0.0 for z, y in zip(sums, run.Y, strict=True))


WAYS: dict[str, Callable[[Run], Diagnosis]] = {
    "diagnose(model, loss)": lambda run: diagnose(run.model, run.loss),
    "diagnose(model, loss, losses)": lambda run: diagnose(run.model, run.loss, run.losses),
    "diagnose(model, losses, X=X, Y=Y)": lambda run: diagnose(run.model, run.losses, X=run.X, Y=run.Y),
}


class Case(NamedTuple):
    """A network, when a seed of it is counted, and what is to be found in those."""

    train: Callable[[int], Run]
    fails: float | None  # at a last loss of this or more; None for a case that is healthy
    kind: str = ""
    true: Callable[[Run], bool] = lambda run: True


CASES = {
    "N1": Case(n1, None),
    "N2": Case(n2, 3.9, "saturated tanh", tanh_is_stuck),
    "N3": Case(n3, 0.9, "dead output ReLU", relu_is_stuck),
    "N4": Case(n4, None),
}
OUTPUT = "layers.2.neurons.0"


class Rate(NamedTuple):
    """How many of the seeds that count were diagnosed rightly, and what else was found."""

    right: int
    seeds: int
    others: dict[str, list[int]]
    """What was wrong: a finding in a healthy run, or none of the right ones; and the seeds."""


def rates(name: str, seeds: int) -> dict[str, Rate]:
    """For each way of asking, how often the answer was right."""
    case = CASES[name]
    found = {way: Rate(0, 0, {}) for way in WAYS}
    for seed in range(seeds):
        run = case.train(seed)
        if case.fails is not None and run.losses[-1] < case.fails:
            continue
        for way, ask in WAYS.items():
            report = ask(run)
            if case.fails is None:
                right = not report
            else:
                says = (case.kind, OUTPUT) in [(finding.kind, finding.where) for finding in report]
                right = says and case.true(run)
            rate = found[way]
            if not right:
                rate.others.setdefault(", ".join(report.kinds) or "nothing", []).append(seed)
            found[way] = Rate(rate.right + right, rate.seeds + 1, rate.others)
    return found


def main(arguments: list[str]) -> None:
    """Print the rates."""
    names = [argument for argument in arguments if argument in CASES] or list(CASES)
    seeds = next((int(argument) for argument in arguments if argument.isdigit()), 200)
    for name in names:
        what = "no faults found" if CASES[name].fails is None else f"{CASES[name].kind}, at the output"
        print(f"{name}, {seeds} seeds: {what}")
        for way, rate in rates(name, seeds).items():
            print(f"  {way:34} {rate.right} of {rate.seeds} ({100 * rate.right / max(1, rate.seeds):.1f} %)")
            for kinds, which in rate.others.items():
                print(f"    otherwise: {kinds}: seeds {which[:12]}{' ...' if len(which) > 12 else ''}")


if __name__ == "__main__":
    main(sys.argv[1:])
