"""Derivatives that a compiled function calls: programs of their own where they are only returned."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from tests.compiler.test_derivatives import are_close, garch, rosenbrock, specializations  # noqa: E402
from tests.random_programs import random_program  # noqa: E402
from wengert import Value, exp, grad, hessian, hvp, jacobian, log, sin, value_and_grad  # noqa: E402
from wengert.compiler.ir import (  # noqa: E402
    Access,
    Array,
    Assemble,
    Compute,
    Program,
    merge_equal_steps,
    verify,
    whole,
)

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs


def f(x: Any) -> Any:
    return sin(x[0]) * x[1] ** 2 + exp(x[2]) * x[0]


def by_name(x: Any, k: float = 2.0) -> Any:
    return f(x) * k


slope = grad(f)
compiled_f = wengert.compile(f)
weight = Value(1.5)
data = [0.1, 0.2, 0.7]
table = np.array([[0.1, 0.2], [0.7, -0.3], [0.4, 0.6]])
cube = wengert.op("cube_of_nested", value=lambda x: x * x * x, partials=lambda out, x: 3.0 * x * x)


def fitted(y: Any) -> Any:
    return sum(((y[0] - d) ** 2 * y[1] for d in data), 0.0 * y[2])


def linear(y: Any) -> Any:
    return [sum(w * v for w, v in zip(row, y, strict=False)) ** 2 for row in table]


X = [[0.3, 0.7, 0.1], [1.3, -0.7, 0.4]]
# A function, and whether its derivatives become programs of their own.
CASES: dict[str, tuple[Callable[..., Any], bool]] = {
    "value, gradient, Hessian": (lambda x: (f(x), grad(f)(x), hessian(f)(x)), True),
    "a derivative made before": (lambda x: [f(x), slope(x)], True),
    "a dict": (lambda x: {"of": value_and_grad(f)(x), "at": x[0]}, True),
    "third order": (lambda x: jacobian(hessian(f))(x), True),
    "an array": (lambda x: np.array([grad(f)(x), x]), True),
    "an array after a number": (lambda x: np.array([x, grad(f)(x)]), True),
    "of a compiled function": (lambda x: (compiled_f(x), grad(compiled_f)(x)), True),
    "captured numbers": (lambda x: (fitted(x), grad(fitted)(x), hessian(fitted)(x)), True),
    "a captured array": (lambda x: (linear(x), jacobian(linear)(x)), True),
    "at computed numbers": (lambda x: (x[0], grad(f)([x[0] * x[1], x[2], 1.0])), True),
    "of a function that reads the arguments": (lambda x: (x[0], grad(lambda y: f([y * x[0], y, x[1]]))(x[2])), True),
    "a parameter beside it": (lambda x: (f(x) * weight, grad(f)(x)), True),
    "a parameter's number": (lambda x: (weight * x[0], grad(lambda y: y[0] * y[1] * weight.data)(x)), True),
    "of a parameter": (lambda x: (f(x), grad(lambda y: f(y) * weight)(x)), False),
    "computed with": (lambda x: [2.0 * v for v in grad(f)(x)], False),
    "compared": (lambda x: grad(f)(x) if slope(x)[0] > 0.0 else [0.0], False),
    "Newton's step": (lambda x: x[0] - f(x) / grad(f)(x)[0], False),
    "one inside another": (lambda x: (x[0], grad(lambda y: y[0] * grad(lambda z: z * z * y[1])(y[0]))(x)), True),
    "a product with a vector": (lambda x: (x[0], hvp(f)(x, [1.0, 0.0, 2.0])), False),
    "an argument by name": (lambda x: (x[0], grad(by_name)(x, k=3.0)), False),
    "a rule of one's own": (lambda x: (x[0], grad(lambda y: cube(y[0]) * y[1])(x)), True),
    "a rule of one's own, twice": (lambda x: (x[0], hessian(lambda y: cube(y[0]) * y[1])(x)), False),
}


def joined(compiled: Any) -> bool:
    """Whether the last program has derivatives that were taken of programs."""
    return bool(compiled._server.last.specializations[-1].kernel.program.is_derivative)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_what_is_returned_is_a_program_of_its_own(case: str) -> None:
    function, is_joined = CASES[case]
    compiled = wengert.compile(function)
    for x in X:
        for _ in range(3):
            got, want = compiled(x), function(x)
            assert type(got) is type(want)
            assert are_close(got, want), (got, want)
    assert specializations(compiled) == 1
    assert joined(compiled) == is_joined


@pytest.mark.parametrize("case", ["value, gradient, Hessian", "captured numbers", "a captured array", "third order"])
def test_in_a_batch(case: str) -> None:
    function, _ = CASES[case]
    compiled, batch = wengert.compile(function), np.random.default_rng(2).normal(size=(7, 3))
    for _ in range(6):
        got = compiled.map(batch)
    for n, x in enumerate(batch):
        part = [each[n] for each in got] if isinstance(got, tuple) else got[n]
        want = function(x)
        assert are_close(part, list(want) if isinstance(want, tuple) else want)
    assert joined(compiled)


def test_branches_are_those_of_the_function() -> None:
    compiled = wengert.compile(lambda x: (x[0], grad(lambda y: y[0] ** 2 if y[0] > 0.5 else y[1] * y[0])(x)))
    for x in (*X, *X):
        assert are_close(compiled(x), compiled.function(x))
    assert specializations(compiled) == 2
    assert [len(made.guards.guards) for made in compiled._server.last.specializations] == [1, 1]


def test_eight_derivatives_of_a_price_share_their_steps() -> None:
    def price(s: Any, k: Any, r: Any, t: Any, v: Any) -> Any:
        d = (log(s / k) + (r + v * v / 2.0) * t) / (v * wengert.sqrt(t))
        return s * wengert.normal_cdf(d) - k * exp(-r * t) * wengert.normal_cdf(d - v * wengert.sqrt(t))

    def greeks(s: Any, k: Any, r: Any, t: Any, v: Any) -> list[Any]:
        delta, vega = grad(price, 0), grad(price, 4)
        gamma = grad(delta, 0)
        of = [delta, vega, grad(price, 3), grad(price, 2), gamma, grad(delta, 4), grad(vega, 4), grad(gamma, 0)]
        return [each(s, k, r, t, v) for each in of]

    one = wengert.compile(grad(grad(grad(price))))
    compiled, option = wengert.compile(greeks), (101.0, 97.0, 0.03, 0.7, 0.2)
    for _ in range(3):
        assert are_close(compiled(*option), greeks(*option))
        one(*option)
    steps = [made._server.last.specializations[0].kernel.program.size for made in (compiled, one)]
    assert steps[0] < 4 * steps[1], steps
    assert len(compiled._server.last.specializations[0].guards.guards) == 1, "that k is not 0"


def test_a_loop_stays_a_loop() -> None:
    shocks = [0.1 * math.sin(1.7 * n) for n in range(200)]

    def likelihood(p: Any) -> Any:
        variance: Any = 0.01
        total: Any = 0.0
        for shock in shocks:
            variance = p[0] + p[1] * shock * shock + p[2] * variance
            total = total + log(variance) + shock * shock / variance
        return total

    compiled = wengert.compile(lambda p: (likelihood(p), grad(likelihood)(p), hessian(likelihood)(p)))
    compiled.prepare([0.01, 0.1, 0.8])
    for p in ([0.01, 0.1, 0.8], [0.02, 0.15, 0.7]):
        assert are_close(compiled(p), compiled.function(p), 1e-8)
    assert joined(compiled)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sampled(8)
def test_random_programs(seed: int) -> None:
    program, draw = random_program(seed), random.Random(seed)
    space: dict[str, Any] = {"wengert": wengert}
    exec(str(program), space)
    exec(f"def f(x): return program({', '.join(f'x[{n}]' for n in range(len(program.point)))})", space)
    g = space["f"]
    compiled = wengert.compile(lambda x: [g(x), hessian(g)(x), x[0], jacobian(lambda y: [g(y), y[0]])(x), grad(g)(x)])
    for turn in range(3):
        x = [v * (1.0 + draw.uniform(-0.01, 0.01) * turn) for v in program.point]
        assert are_close(compiled(x), compiled.function(x), 1e-7)
    assert joined(compiled)
    assert specializations(compiled) == 1


def test_effects_happen_once_and_errors_are_the_functions() -> None:
    seen: list[int] = []

    def noting(x: Any) -> Any:
        seen.append(1)
        return x[0] * x[1]

    compiled = wengert.compile(lambda x: (x[0], grad(noting)(x)))
    assert [compiled([2.0, 3.0]) for _ in range(3)] == [(2.0, [3.0, 2.0])] * 3
    assert len(seen) == 3
    several = wengert.compile(lambda x: (x[0], grad(lambda y: [y[0], y[1]])(x)))
    for _ in range(3):
        with pytest.raises(wengert.errors.ArgumentError, match="a gradient needs a function that returns one number"):
            several([2.0, 3.0])


def test_of_a_value_among_the_arguments() -> None:
    compiled = wengert.compile(lambda x: (x * x, grad(lambda y: y * y * y)(x.data), grad(lambda y: y * x)(x.data)))
    for number in (2.0, 3.0):
        x = Value(number)
        for _ in range(3):
            square, numbers, value = compiled(x)
            assert (numbers, value.data) == (3.0 * number**2, number)
        (square * value).backward()
        assert x.grad == 3.0 * number**2


def test_the_gradient_of_what_is_returned_beside_it() -> None:
    compiled = wengert.compile(lambda x: (weight * x[0] ** 2, grad(rosenbrock)(x)))
    for _ in range(3):
        value, slopes = compiled([0.5, 2.0, 1.0])
        weight.grad = 0.0
        value.backward()
        assert weight.grad == 0.25
        assert are_close(slopes, grad(rosenbrock)([0.5, 2.0, 1.0]))
    assert joined(compiled)
    assert are_close(wengert.compile(grad(garch))([0.01, 0.1, 0.8]), grad(garch)([0.01, 0.1, 0.8]))


def test_equal_steps_are_merged_and_zeros_of_two_signs_are_not_equal() -> None:
    x, out = Array("x", (), "input"), Array("out", (3,), "value")
    made = [Array(f"y{n}", (), "value") for n in range(3)]
    steps = [
        Compute(y, (), [whole(x)], ("mul", ("in", 0), ("const", zero)))
        for y, zero in zip(made, (0.0, -0.0, 0.0), strict=True)
    ]
    end_to_end = Assemble(out, [(Access(out, n, ()), y) for n, y in enumerate(made)])
    program = Program([x, *made, out], [*steps, end_to_end], {"out": out})
    merge_equal_steps(program)
    verify(program)
    assert program.steps == [*steps[:2], end_to_end]
    assert [part for _, part in end_to_end.parts] == [made[0], made[1], made[0]]


ANNOTATED = """
def kind(x):
    return x

def f(x: kind(float), k: kind(float) = 2.0) -> kind(float):
    return x * x * k

def derivative(x):
    return x, grad(f)(x, k=3.0)

def asked(x):
    return w * x * len(f.__annotations__)

def defined_within(x):
    def inner(x: float, k: "kind" = 2.0) -> float:
        return x * x * k

    return x, grad(inner)(x, k=3.0), len(inner.__annotations__)
"""


@pytest.mark.parametrize("name", ["derivative", "asked", "defined_within"])
@pytest.mark.parametrize("before", [False, True])
def test_annotations_are_evaluated_when_they_are_asked_for(name: str, before: bool) -> None:
    """Python 3.14 does that once: one of two runs calls what the other one does not."""
    plain: dict[str, Any] = {"grad": grad, "w": weight}
    namespace = dict(plain)
    code = compile(ANNOTATED, "annotated.py", "exec", dont_inherit=True)  # not as text, as in this file
    exec(code, plain)
    exec(code, namespace)
    if before:
        assert namespace["f"].__annotations__["x"] is float
    compiled = wengert.compile(namespace[name])
    for x in (1.0, 2.0, 3.0, -1.5):
        assert are_close(compiled(x), plain[name](x))
    assert "uncompiled" not in compiled.report()
