"""A million steps: a compiled call keeps its arguments alone, and runs again when a gradient comes back to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

import wengert
from wengert import Value
from wengert.compiler.ir import Loop
from wengert.compiler.record import uncompiled
from wengert.graph import Graph

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
    steps = compiled._server.latest().kernel.program.steps
    assert any(isinstance(step, Loop) for step in steps)
    assert max(step.out.size for step in steps if not isinstance(step, Loop)) < 10
    x, y, a, b = Value(0.3), Value(-0.2), Value(0.3), Value(-0.2)
    got, want = compiled(x, y), spread(a, b)
    assert [u.data for u in got] == pytest.approx([u.data for u in want], rel=1e-12)
    (got[0] * got[1] + got[2] + got[3]).backward()
    (want[0] * want[1] + want[2] + want[3]).backward()
    assert [x.grad, y.grad] == pytest.approx([a.grad, b.grad], rel=1e-12)


# -- the sweep comes with the gradient, and where it is not finite the engine's derivatives count ----------------------


def grown(x: Any, y: Any) -> Any:
    """Where y is 2, 2**1200 is infinite, and a small number times it is not: derivatives overflow on the way."""
    u = x
    for _ in range(1200):
        u = u * y + x
    return u * 1e-150, x * y, u * 1.0


STEEP = 1e-150 * 2.0**600 * 2.0**601  # the first derivative there, but for rounding


def saturated(x: Any, y: Any) -> Any:
    """A number that is infinite inside, behind a derivative of 0."""
    u = x
    for _ in range(1000):
        u = u * 4.0 + y
    return u.tanh(), x * y


def spread(x: Any, y: Any) -> Any:
    u, v = x, y
    for _ in range(300):
        u, v = u + 0.01 * v, v - 0.01 * u
    return [u, v, u * v, x * 1.0]


@cache
def prepared(function: Callable[..., Any], *numbers: float) -> Any:
    compiled = wengert.compile(function, backend="native")
    compiled.prepare(*map(Value, numbers))
    return compiled


def gradients(function: Any, numbers: Sequence[float], weights: Sequence[float | None]) -> list[Any]:
    """The results, and the derivatives of their sum with weights; None leaves one out."""
    given = [Value(x) for x in numbers]
    results = function(*given)
    for result, weight in zip(results, weights, strict=False):
        if weight is not None:
            result.backward(weight)
    both = [Value(x) for x in numbers]
    wanted = [result * weight for result, weight in zip(function(*both), weights, strict=False) if weight is not None]
    sum(wanted).backward()
    return [*[x.data for x in results], *[x.grad for x in (*given, *both)]]


def alike(xs: Sequence[float], ys: Sequence[float]) -> bool:
    return all((isnan(x) and isnan(y)) or x == pytest.approx(y, rel=1e-12) for x, y in zip(xs, ys, strict=True))


WEIGHTS = [
    (1.0, None, None),
    (None, 1.0, None),
    (0.0, -2.0, None),
    (1e-200, 3.0, 1.0),
    (1e300, 1.0, None),
    (inf, 1.0, None),
    (1.0, nan, 2.0),
]


@pytest.mark.parametrize("function", [grown, saturated, spread])
@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
def test_derivatives_that_are_not_finite_are_the_functions(function: Any, weights: Any) -> None:
    compiled = prepared(function, 0.5, 0.7)
    for numbers in ((1e-305, 2.0), (1e-305, 0.0), (0.0, 0.0), (0.0, 2.0), (1e-270, 1e-200), (1.0, 1.5)):
        assert alike(gradients(compiled, numbers, weights), gradients(function, numbers, weights))


def test_a_result_that_no_gradient_reaches_adds_nothing() -> None:
    compiled = prepared(grown, 0.5, 0.7)
    x, y = Value(1e-305), Value(2.0)
    far, near, _ = compiled(x, y)
    assert len(Graph(far)) == 3  # the two arguments and the call, whose sweep has not run
    near.backward()
    assert (x.grad, y.grad) == (2.0, 1e-305)
    x.grad = y.grad = 0.0
    far.backward()
    assert x.grad == pytest.approx(STEEP, rel=1e-12)
    assert list(Graph(far).partials) == [x.grad, y.grad]
    assert wengert.grad(lambda v: compiled(v, y)[0])(1e-305) == x.grad


def test_what_the_function_reads_may_change_before_the_gradient() -> None:
    w, rate = Value(2.0), 2.0

    def function(x: Any, y: Any) -> Any:
        u = x
        for _ in range(1200):
            u = u * rate + y
        return u * w * 1e-150, w * y, x * 1.0

    def changed(f: Any) -> list[Any]:
        nonlocal rate
        w.data, w.grad, rate = 2.0, 0.0, 2.0
        x, y = Value(1e-305), Value(1e-305)
        results = f(x, y)
        w.data, rate, x.data = 7.0, 1.0, 3.0
        results[0].backward()
        results[1].backward(-1.5)
        return [x.grad, y.grad, w.grad]

    rate = 0.9
    compiled = prepared(function, 0.5, 0.7)
    rate = 2.0
    assert len(Graph(*compiled(Value(1e-305), Value(1e-305)))) == 6
    assert alike(changed(compiled), changed(function))


def test_no_code_of_the_users_runs_in_backward() -> None:
    """A function that is recorded has no effects, and where the sweep is not finite its operations are computed."""
    compiled = prepared(grown, 0.5, 0.7)
    x, seen = Value(1e-305), []
    far, _, _ = compiled(x, Value(2.0))
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
    try:
        far.backward(1e300)
    finally:
        sys.setprofile(None)
    assert uncompiled.Uncompiled.pull_back.__code__ in seen
    assert grown.__code__ not in seen
    assert x.grad == inf


def test_operations_whose_partials_may_overflow_show_them_in_the_call() -> None:
    def rooted(x: Any, y: Any) -> Any:
        u = x.sqrt()
        for _ in range(1000):
            u = u + y
        return u, x * 1.0

    compiled = prepared(rooted, 2.0, 0.5)
    assert len(Graph(compiled(Value(1.0), Value(1.0))[0])) == 3
    x = Value(0.0)
    result, other = compiled(x, Value(1.0))
    assert len(Graph(result)) == 1003  # the function's own graph
    other.backward()
    assert x.grad == 1.0


def test_a_large_derivative_is_that_of_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient of a chaotic system grows beyond 1e154, whose square is infinite, in every long enough run."""
    compiled = prepared(grown, 0.5, 0.7)
    monkeypatch.setattr(uncompiled.Uncompiled, "pull_back", None)
    x = Value(1e-305)
    compiled(x, Value(2.0))[0].backward(-1e80)
    assert x.grad == pytest.approx(-1e80 * STEEP, rel=1e-12)


def test_operators_may_be_replaced_before_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = prepared(saturated, 0.5, 0.7)
    x, y = Value(1e-300), Value(2.0)
    behind, _ = compiled(x, y)
    for name in ("__add__", "__mul__", "__rmul__", "tanh"):
        monkeypatch.setattr(Value, name, lambda *_: Value(7.0))
    behind.backward(inf)
    monkeypatch.undo()
    a, b = Value(1e-300), Value(2.0)
    saturated(a, b)[0].backward(inf)
    assert alike([x.grad, y.grad], [a.grad, b.grad])
    assert isnan(a.grad)


def test_numbers_remain_numbers_where_the_sweep_is_not_finite() -> None:
    """Every kind of argument, constants, and operations on numbers alone."""

    def function(scale: float, xs: Any, row: Any, unused: Any, count: int = 3) -> Any:
        u, w, half = xs[0], Value(1.5), wengert.tanh(scale) ** 3 / 4.0
        for n in range(400):
            u = 2.0 * u - half * xs[n % 2]
        return {"far": wengert.dot([u, 1e-150], [row[1], w], scale) * 1e-150, "own": [w, half * count, xs[1]]}

    compiled = wengert.compile(function, backend="native")
    compiled.prepare(0.5, [Value(0.5), Value(0.7)], np.array([0.25, 0.5]), Value(1.0))
    got = []
    for call in (compiled, function):
        xs = [Value(1e-305), Value(-1e-305)]
        result = call(0.75, xs, np.array([0.5, 1e150]), Value(3.0))
        assert len(Graph(result["far"])) == 4 or call is function
        result["far"].backward(1e200)
        result["own"][2].backward(inf)
        got.append([result["far"].data, result["own"][1], *[x.grad for x in xs]])
    assert alike(*got)
    assert isnan(got[0][2])


def test_threads_whose_derivatives_are_not_finite() -> None:
    compiled = prepared(grown, 0.5, 0.7)
    numbers = [(10.0**-n, 1.75 + 0.001 * n) for n in range(298, 308)] * 4
    want = [gradients(grown, pair, (1e83, 2.0, None)) for pair in numbers[:10]]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda pair: gradients(compiled, pair, (1e83, 2.0, None)), numbers))
    assert all(map(alike, got, want * 4))
