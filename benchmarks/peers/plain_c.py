"""Plain C without a graph, compiled on the spot: the limit of what one core does with such a program."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from array import array
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks import problems

__all__ = ["PROGRAMS", "TITLE"]

TITLE = "plain C, no graph"
ACTIVATIONS = {"relu": 0, "tanh": 1, "linear": 2}
LOSSES = {"hinge": 0, "squared": 1, "crossentropy": 2}


@cache
def library(name: str = "plain_c") -> ctypes.CDLL:
    """A file of C that lies here, compiled.

    Raises:
        RuntimeError: there is no C compiler, or it failed.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise RuntimeError("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{name}.so"
        source = Path(__file__).with_name(f"{name}.c")
        command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", target, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the C compiler failed: {done.stderr.strip()[-80:]}")
        return ctypes.CDLL(str(target))


def expression() -> Callable[[], list[float]]:
    """The expression of micrograd's README."""
    function = library().expression
    out = (ctypes.c_double * 3)()
    a, b = ctypes.c_double(-4.0), ctypes.c_double(2.0)

    def step() -> list[float]:
        function(a, b, out)
        return list(out)

    return step


def doubles(numbers: Any) -> tuple[array[float], Any]:
    """An array of doubles, and the pointer to it."""
    held = array("d", numbers)
    return held, (ctypes.c_double * len(held)).from_buffer(held)


def network(problem: problems.Network) -> Callable[[], list[float]]:
    """A training step of the network."""
    function = library().network
    function.restype = ctypes.c_double
    flat = []
    for weights, biases in zip(problem.weights, problem.biases, strict=True):
        flat += [number for row in weights for number in row] + biases
    widest = max(problem.sizes)
    held = [
        doubles(numbers)
        for numbers in (
            [number for row in problem.X for number in row],
            problem.Y,
            flat,
            [0.0] * len(flat),
            [0.0] * (sum(problem.sizes) + 2 * widest),
        )
    ]
    sizes = (ctypes.c_int * len(problem.sizes))(*problem.sizes)
    arguments = [len(problem.sizes) - 1, sizes, len(problem.X), *(pointer for _, pointer in held)]
    arguments += [ACTIVATIONS[problem.hidden], ACTIVATIONS[problem.output], LOSSES[problem.loss]]
    arguments.append(ctypes.c_double(problem.lr))
    return lambda: [function(*arguments)]


def names() -> Callable[[], list[float]]:
    """A training step of the GPT."""
    problem = problems.names()
    function = library().gpt
    function.restype = ctypes.c_double
    flat = [number for rows in problem.matrices.values() for row in rows for number in row]
    held = [doubles(numbers) for numbers in (flat, *[[0.0] * len(flat)] * 3)]  # parameters, gradients, Adam's averages
    state = [pointer for _, pointer in held]
    documents = [(len(tokens) - 1, (ctypes.c_int * len(tokens))(*tokens)) for tokens in problem.documents]
    settings = [ctypes.c_double(number) for number in (problem.lr, problem.beta1, problem.beta2, problem.eps)]
    steps = 0

    def step() -> list[float]:
        nonlocal steps
        steps += 1
        return [function(*documents[(steps - 1) % len(documents)], *state, steps, *settings)]

    return step


PROGRAMS: dict[str, Any] = {
    "expression": expression,
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}
