"""A million steps: a compiled call keeps its arguments alone, and runs again when a gradient comes back to it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wengert
from wengert import Value
from wengert.compiler.ir import Loop

STEP, STIFFNESS, DAMPING = 1e-4, 4.0, 0.1

PROGRAM = f"""
import wengert
from wengert import Value

def thousand(x, v, k):
    for _ in range(1000):
        v = v - {STEP} * (k * x + {DAMPING} * v)
        x = x + {STEP} * v
    return x, v

start = [Value(1.0), Value(0.5), Value({STIFFNESS})]
compiled = wengert.compile(thousand)
compiled.prepare(*start)
x, v = start[:2]
for _ in range(1000):
    x, v = compiled(x, v, start[2])
x.backward()
print(x.data, *[given.grad for given in start])
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux alone says how much memory a process took")
def test_a_million_steps_have_a_gradient_in_500_megabytes() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    numbers, kilobytes = done.stdout.splitlines()
    once = np.array(
        [[1.0 - STEP**2 * STIFFNESS, STEP * (1.0 - STEP * DAMPING)], [-STEP * STIFFNESS, 1.0 - STEP * DAMPING]]
    )
    moved = np.array([[-(STEP**2), 0.0], [-STEP, 0.0]])  # its derivative with respect to the stiffness
    both = np.linalg.matrix_power(np.block([[once, moved], [np.zeros((2, 2)), once]]), 1_000_000)
    start = np.array([1.0, 0.5])
    expected = [both[0, :2] @ start, both[0, 0], both[0, 1], both[0, 2:] @ start]
    assert [*map(float, numbers.split())] == pytest.approx(expected, rel=1e-7)
    assert int(kilobytes) < 500_000


def test_the_last_states_are_taken_from_the_outputs_of_the_loop() -> None:
    def spread(x: Any, y: Any) -> Any:
        u, v = x, y
        for _ in range(300):
            u, v = u + 0.01 * v, v - 0.01 * u
        return [u, v, u * v, x * 1.0]

    compiled = wengert.compile(spread, backend="native")
    compiled.prepare(Value(0.5), Value(0.7))
    steps = compiled._runtime.latest().kernel.program.steps
    assert any(isinstance(step, Loop) for step in steps)
    assert max(step.out.size for step in steps if not isinstance(step, Loop)) < 10
    x, y, a, b = Value(0.3), Value(-0.2), Value(0.3), Value(-0.2)
    got, want = compiled(x, y), spread(a, b)
    assert [u.data for u in got] == pytest.approx([u.data for u in want], rel=1e-12)
    (got[0] * got[1] + got[2] + got[3]).backward()
    (want[0] * want[1] + want[2] + want[3]).backward()
    assert [x.grad, y.grad] == pytest.approx([a.grad, b.grad], rel=1e-12)
