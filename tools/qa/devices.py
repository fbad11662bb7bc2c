"""How long a step of `fit` takes by each back end, and on how many devices.

    python -m tools.qa.devices [WORKLOAD ...]

The workloads are those of the benchmarks, and a network of a million parameters. A step's time is that of the fastest
epoch over its steps: gathered rows, gradient, Adam, and all. With several devices, as of
``XLA_FLAGS=--xla_force_host_platform_device_count=2``, the mesh of all of them is measured too.
"""

from __future__ import annotations

import random
import sys
import warnings
from time import perf_counter
from typing import Any

import jax
import numpy as np

from wengert import fit, losses, nn, optim
from wengert.compiler.backends import BACKENDS

WORKLOADS: dict[str, tuple[int, list[int], int, int]] = {  # inputs, layers, examples of a batch, batches of an epoch
    "moons": (2, [16, 16, 1], 100, 40),
    "digits": (64, [32, 10], 64, 28),
    "mnist-size": (784, [128, 10], 64, 15),
    "million": (784, [1024, 256, 10], 128, 4),
}
WAYS: dict[str, dict[str, Any]] = {
    "numpy": {"backend": "numpy"},
    "native": {"backend": "native"},
    "xla": {"backend": "xla"},
    "xla, float32": {"backend": "xla", "dtype": "float32"},
}
EPOCHS = 12


def step_time(name: str, **how: Any) -> float:
    """The seconds of a step of a workload."""
    inputs, layers, size, steps = WORKLOADS[name]
    model = nn.MLP(inputs, layers, rng=random.Random(0))
    draw = np.random.default_rng(0)
    X = draw.normal(size=(size * steps, inputs))
    Y = np.sign(X[:, 0]) if layers[-1] == 1 else draw.integers(0, layers[-1], len(X))
    ends: list[float] = []

    def note(history: Any) -> None:
        ends.append(perf_counter())

    loss = losses.hinge if layers[-1] == 1 else losses.cross_entropy
    how |= {"metric": None, "progress": False, "seed": 0, "callback": note}
    fit(model, loss, X, Y, optim.Adam(model, 1e-4), EPOCHS, size, **how)
    return float(np.diff(ends).min()) / steps


def main() -> None:
    """Measure what the command line names, or all."""
    warnings.simplefilter("ignore")
    devices = len(jax.devices())
    ways = {**WAYS, **({f"xla, mesh={devices}": {"backend": "xla", "mesh": devices}} if devices > 1 else {})}
    ways = {way: how for way, how in ways.items() if BACKENDS[how["backend"]].is_available()}
    print(f"| step of fit, µs | {' | '.join(ways)} |\n|---|{'---|' * len(ways)}")
    for name in sys.argv[1:] or WORKLOADS:
        times = [f"{1e6 * step_time(name, **how):,.0f}" for how in ways.values()]
        print(f"| {name} | {' | '.join(times)} |", flush=True)


if __name__ == "__main__":
    main()
