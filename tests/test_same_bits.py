"""Compiled and interpreted, the same programs give the same bits.

The programs below are run in two processes, one for each engine, and every number that they print, as
`float.hex` writes it, must agree. As a script, `python -m tests.test_same_bits`, this file prints the numbers.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

import wengert
from tests.random_programs import random_program
from wengert import Value, losses, optim
from wengert.nn import MLP
from wengert.ops import TABLE

SHARE = 1
"""One of so many of the programs runs: see below."""


def every_row() -> Iterator[float]:
    """Each operation of the table on its domain and far outside: values and gradients, by floats and by Values."""
    rng = random.Random(1)
    extremes = [0.0, -0.0, 1.0, -1.0, 1e-300, -1e300, 745.0, math.inf, -math.inf, math.nan]
    for row in [row for row in TABLE if row.value]:
        for trial in range(0, 60, SHARE):
            domain = row.domain if row.arity is not None else (*row.domain, *row.domain)
            numbers = [rng.uniform(*bounds) for bounds in domain]
            if trial >= 20:
                numbers[rng.randrange(len(numbers))] = rng.choice(extremes)
            if row.name == "dot":
                numbers = [*numbers, 0.5] if len(numbers) % 2 == 0 else numbers
            yield row(*numbers)
            shapes, xs = numbers[: len(row.shapes)], [Value(number) for number in numbers[len(row.shapes) :]]
            y = row(*shapes, *xs)
            y.backward()
            yield from (y.data, *(x.grad for x in xs))


def random_programs() -> Iterator[float]:
    """Graphs that share nodes, with constants on either side, differentiated from two roots."""
    for seed in range(0, 200, SHARE):
        rng = random.Random(seed)
        nodes: list[Value] = [Value(rng.uniform(-2, 2)) for _ in range(4)]
        leaves = list(nodes)
        for _ in range(60):
            x, y, constant = rng.choice(nodes), rng.choice(nodes), rng.uniform(-2, 2)
            nodes.append(
                rng.choice(
                    [
                        lambda x, y, c: x + y,
                        lambda x, y, c: x * y,
                        lambda x, y, c: x - c * y,
                        lambda x, y, c: (c - x) / (1 + y * y),
                        lambda x, y, c: c / (2 + abs(y)),
                        lambda x, y, c: abs(x) ** c,
                        lambda x, y, c: 2 ** (x.tanh() * c),
                        lambda x, y, c: (x.tanh() + 2) ** y.tanh(),
                        lambda x, y, c: (-x).relu() + y.tanh().exp(),
                        lambda x, y, c: (1 + x * x).log(),
                        lambda x, y, c: wengert.dot([x, c, y], [y, x, 3.0], c),
                        lambda x, y, c: wengert.logsumexp(x, y, c),
                        lambda x, y, c: x.sigmoid() * y.gelu(),
                        lambda x, y, c: wengert.hypot(x, y) - wengert.atan2(x, y),
                    ]
                )(x, y, constant)
            )
            if not math.isfinite(nodes[-1].data) or abs(nodes[-1].data) > 1e6:
                nodes.pop()
        for root in (nodes[-1], nodes[len(nodes) // 2], sum(nodes)):
            root.backward(rng.uniform(-1, 1))
            yield root.data
            yield from (leaf.grad for leaf in leaves)


def drawn_programs() -> Iterator[float]:
    """Those of `tests/random_programs.py`, of every row in every combination."""
    for seed in range(0, 700, SHARE):
        value, gradient = random_program(seed).value_and_gradient()
        yield from (value, *gradient)


def second_derivatives() -> Iterator[float]:
    """Of the same programs: Hessians, and products with a vector."""
    for seed in range(0, 80, SHARE):
        drawn = random_program(seed)
        f, x = (lambda x, drawn=drawn: drawn(*x)), list(drawn.point)
        yield from wengert.hvp(f)(x, [1.0, -0.5, 2.0, 0.25][: len(x)])
        for row in wengert.hessian(f)(x):
            yield from row


def trained_networks() -> Iterator[float]:
    """The weights after some steps of each optimizer, on each kind of loss."""
    rng = random.Random(3)
    inputs = [[rng.uniform(-1, 1), rng.uniform(-1, 1)] for _ in range(12)]
    labels = [int(x * y > 0) for x, y in inputs]
    for make in (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda p: optim.Adam(p, lr=0.03),
        lambda p: optim.AdamW(p, lr=lambda step: 0.03 / (1 + step)),
    ):
        model = MLP(2, [6, 2], activation="tanh", rng=random.Random(2))
        optimizer = make(model.parameters())
        for _ in range(8):
            loss = wengert.mean(losses.cross_entropy(model(x), y) for x, y in zip(inputs, labels, strict=True))
            optimizer.zero_grad()
            loss.backward()
            yield optim.clip_grad_norm(model.parameters(), 0.5)
            optimizer.step()
            yield loss.data
        yield from (p.data for p in model.parameters())


@pytest.mark.once  # on both, in processes of their own
@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_two_engines_give_the_same_bits(share: int) -> None:
    """At each change of the programs that are drawn each third."""
    outputs = {}
    for wish in ("0", "1"):
        environment = {**os.environ, "WENGERT_INTERPRETED": wish}
        command = [sys.executable, "-m", "tests.test_same_bits", str(share)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        engine, *outputs[wish] = done.stdout.splitlines()
        if wish == "0" and engine != "compiled":
            pytest.skip("no extension was compiled here")
        assert engine == ("interpreted" if wish == "1" else "compiled")
    assert len(outputs["0"]) > 20_000 / share
    different = [i for i, (a, b) in enumerate(zip(outputs["0"], outputs["1"], strict=True)) if a != b]
    assert [(outputs["0"][i], outputs["1"][i]) for i in different[:10]] == []


if __name__ == "__main__":
    SHARE = int((*sys.argv, 1)[1])
    print("compiled" if wengert.engine.compiled else "interpreted")
    for program in (every_row, random_programs, drawn_programs, second_derivatives, trained_networks):
        for place, number in enumerate(program()):
            print(program.__name__, place, float(number).hex())
