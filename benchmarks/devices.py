"""How long a step of `fit` takes by each back end, and on how many devices, beside JAX and PyTorch by hand.

    python -m benchmarks.devices [WORKLOAD ...]

The workloads are those of the benchmarks, and a network of a million parameters. A step's time is that of the median
epoch over its steps, and of five runs in turns the middle one: shuffled rows, gradient, Adam, and all. By hand an epoch
is one `jax.jit` over a `lax.scan`, and a loop of PyTorch's modules and its Adam; all are held to the same losses before
they are timed. With several devices, as of ``XLA_FLAGS=--xla_force_host_platform_device_count=2``, the mesh of all of
them is measured too.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import problems
from benchmarks.fitting import Clock, Task
from benchmarks.peers import arrays
from wengert import losses, nn, optim, training
from wengert.compiler.backends import BACKENDS

__all__ = ["main"]

WORKLOADS: dict[str, tuple[int, list[int], int, int]] = {  # inputs, layers, examples of a batch, batches of an epoch
    "moons": (2, [16, 16, 1], 100, 40),
    "digits": (64, [32, 10], 64, 28),
    "mnist-size": (784, [128, 10], 64, 15),
    "million": (784, [1024, 256, 10], 128, 4),
    "names": (0, [], 1, 64),  # the GPT, on one name a step
}
WAYS: dict[str, dict[str, Any]] = {
    "numpy": {"backend": "numpy"},
    "native": {"backend": "native"},
    "xla": {"backend": "xla"},
    "xla, float32": {"backend": "xla", "dtype": "float32"},
}
EPOCHS = 100
TURNS = 5  # of all ways, for where the threads of XLA come to lie differs from run to run
CHECKED = 3  # epochs whose losses are compared
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}
RATE, DECAY, EPSILON = 1e-4, (0.9, 0.999), 1e-8
Epoch = Callable[[Any], Any]  # the losses of the batches of rows


class Case:
    """A workload: a model with its data, and its numbers for those who write it by hand."""

    def __init__(self, name: str) -> None:
        inputs, layers, self.size, self.steps = WORKLOADS[name]
        self.heads = 0  # of the GPT
        if name == "names":
            task = Task(name)
            self.model, self.loss, self.parameters = task.model, task.loss, task.optimizer.parameters
            rows = [n % len(task.X) for n in range(self.steps)]
            self.X, self.Y = np.array(task.X)[rows], np.array(task.Y)[rows]
            self.heads, self.numbers = problems.names().heads, dict(problems.names().matrices)
            return
        self.model = model = nn.MLP(inputs, layers, rng=random.Random(0))
        self.parameters = model.parameters()
        draw = np.random.default_rng(0)
        self.X = draw.normal(size=(self.size * self.steps, inputs))
        self.Y = np.sign(self.X[:, 0]) if layers[-1] == 1 else draw.integers(0, layers[-1], len(self.X))
        self.loss = losses.hinge if layers[-1] == 1 else losses.cross_entropy
        self.numbers = {}
        for n, layer in enumerate(model.layers):
            self.numbers[f"W{n}"] = [[w.data for w in neuron.w] for neuron in layer.neurons]
            self.numbers[f"b{n}"] = [neuron.b.data for neuron in layer.neurons]

    def fit(self, epochs: int, shuffle: bool, **how: Any) -> tuple[float, list[float]]:
        """The seconds of a step, and the loss of each epoch."""
        history = training.History()
        history.loss = clock = Clock(perf_counter)
        optimizer = optim.Adam(self.parameters, RATE, betas=DECAY, eps=EPSILON)
        how |= {"metric": None, "progress": False, "seed": 0, "history": history, "shuffle": shuffle}
        training.fit(self.model, self.loss, self.X, self.Y, optimizer, epochs, self.size, **how)
        return float(np.median(np.diff(clock.times))) / self.steps, list(clock)


def batch_loss(case: Case, numbers: Any, x: Any, y: Any) -> Any:
    """The mean loss of a batch in JAX's words."""
    if case.heads:
        tokens, count = x[0], len(x[0]) - 1
        mask = np.triu(np.full((count, count), -1e30), 1)
        return arrays.gpt(jnp, jax.nn.softmax, numbers, tokens[:-1], jnp.eye(27)[tokens[1:]], mask, case.heads)
    last = len(numbers) // 2 - 1
    for n in range(last + 1):
        x = x @ numbers[f"W{n}"].T + numbers[f"b{n}"]
        x = jnp.maximum(x, 0.0) if n < last else x
    if x.shape[1] == 1:
        return jnp.maximum(1.0 - y * x[:, 0], 0.0).mean()
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()


def by_jax(case: Case) -> Epoch:
    """An epoch as one who knows JAX writes it: all of its steps are one program, and what it changes is its own."""
    X, Y, tree = jnp.asarray(case.X), jnp.asarray(case.Y), jax.tree_util.tree_map
    numbers = {name: jnp.asarray(x) for name, x in case.numbers.items()}
    zeros = tree(jnp.zeros_like, numbers)
    state = (numbers, zeros, tree(jnp.copy, zeros), jnp.asarray(0.0))

    def step(state: Any, rows: Any) -> tuple[Any, Any]:
        numbers, mean, square, age = state
        value, slopes = jax.value_and_grad(partial(batch_loss, case))(numbers, X[rows], Y[rows])
        (keep, hold), age = DECAY, age + 1.0
        mean = tree(lambda m, g: keep * m + (1 - keep) * g, mean, slopes)
        square = tree(lambda s, g: hold * s + (1 - hold) * g * g, square, slopes)
        rate, scale = RATE / (1 - keep**age), (1 - hold**age) ** -0.5
        numbers = tree(lambda p, m, s: p - rate * m / (jnp.sqrt(s) * scale + EPSILON), numbers, mean, square)
        return (numbers, mean, square, age), value

    run = jax.jit(lambda state, rows: jax.lax.scan(step, state, rows), donate_argnums=0)

    def epoch(rows: Any) -> Any:
        nonlocal state
        state, made = run(state, rows)
        return jax.block_until_ready(made)

    return epoch


def by_torch(case: Case) -> Epoch:
    """An epoch in PyTorch: modules, its loss, its Adam, step by step."""
    import torch

    if case.heads:
        raise LookupError("the GPT by hand is JAX's alone")
    sizes = [np.shape(x) for name, x in case.numbers.items() if name[0] == "W"]
    made: list[Any] = [torch.nn.Linear(n, m, dtype=torch.float64) for m, n in sizes]
    for n, linear in enumerate(made):
        given = {"weight": case.numbers[f"W{n}"], "bias": case.numbers[f"b{n}"]}
        linear.load_state_dict({key: torch.tensor(x, dtype=torch.float64) for key, x in given.items()})
    model = torch.nn.Sequential(*[part for linear in made for part in (linear, torch.nn.ReLU())][:-1])
    optimizer = torch.optim.Adam(model.parameters(), RATE, DECAY, EPSILON)
    X, Y = torch.tensor(case.X), torch.tensor(case.Y)

    def loss(scores: Any, y: Any) -> Any:
        if scores.shape[1] == 1:
            return torch.relu(1.0 - y * scores[:, 0]).mean()
        return torch.nn.functional.cross_entropy(scores, y)

    def epoch(rows: Any) -> list[float]:
        found = []
        for chosen in torch.as_tensor(rows):
            optimizer.zero_grad()
            value = loss(model(X[chosen]), Y[chosen])
            value.backward()
            optimizer.step()
            found.append(value.detach())
        return [float(x) for x in found]

    return epoch


def by_hand(case: Case, make: Callable[[Case], Epoch]) -> tuple[float, list[float]]:
    """The seconds of a step of who writes it by hand, and the losses of the first epochs, whose rows are in order."""
    epoch, draw = make(case), np.random.default_rng(0)
    rows = np.arange(len(case.X))
    first = [float(np.mean(epoch(rows.reshape(case.steps, case.size)))) for _ in range(CHECKED)]
    times = []
    for _ in range(EPOCHS):
        began = perf_counter()
        epoch(draw.permutation(len(rows)).reshape(case.steps, case.size))
        times.append(perf_counter() - began)
    return float(np.median(times)) / case.steps, first


def measured(name: str, want: list[float], how: Any) -> float | str:
    """The microseconds of a step, or in what its losses are others; empty where nobody wrote it, or can run it.

    Args:
        name: of the workload.
        want: the losses of its first epochs.
        how: options of `fit`, or who writes it by hand.
    """
    if callable(how):
        try:
            with jax.enable_x64(True):
                seconds, first = by_hand(Case(name), how)
        except (ImportError, LookupError):
            return ""
    else:
        _, first = Case(name).fit(CHECKED, False, **how)
        seconds, _ = Case(name).fit(EPOCHS, True, **how)
    near = TOLERANCE[how.get("dtype", "float64") if isinstance(how, dict) else "float64"]
    return 1e6 * seconds if np.allclose(first, want, near, near) else f"other losses: {first} for {want}"


def figure(times: list[float | str]) -> str:
    """The middle one of the times, or what there is to say instead."""
    said = [time for time in times if isinstance(time, str)]
    return said[0] if said else f"{np.median(np.array(times, float)):,.0f}"


def main(argv: list[str] | None = None) -> int:
    """Measure what the command line names, or all."""
    warnings.simplefilter("ignore")
    devices = len(jax.devices())
    ways: dict[str, Any] = {way: how for way, how in WAYS.items() if BACKENDS[how["backend"]].is_available()}
    if devices > 1:
        ways[f"xla, mesh={devices}"] = {"backend": "xla", "mesh": devices}
    ways |= {"jax.jit by hand": by_jax, "PyTorch by hand": by_torch}
    print(f"| step of fit, µs | {' | '.join(ways)} |\n|---|{'---|' * len(ways)}")
    good = True
    for name in (sys.argv[1:] if argv is None else argv) or WORKLOADS:
        _, want = Case(name).fit(CHECKED, False, backend="numpy")
        turns = [[measured(name, want, how) for how in ways.values()] for _ in range(TURNS)]
        row = [figure([*times]) for times in zip(*turns, strict=True)]
        good &= not any("other" in cell for cell in row)
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
