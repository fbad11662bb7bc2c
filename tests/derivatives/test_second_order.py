"""Second derivatives in floats, which come from the graph of the function alone: hvp, hessian, jacobian(grad(f)).

They are held to mpmath, to differences of the exact gradient, to closed forms, and to gradients nested by hand, which
the rules of the table make of Values.
"""

from __future__ import annotations

import functools
import math
import random
from itertools import combinations_with_replacement
from math import inf, nan
from typing import Any

import pytest

import wengert
from tests.derivatives.test_grad import Point, data, program, rosenbrock
from tests.ops.test_table import mp_derivative, points
from tests.random_programs import RandomProgram, random_program
from tools.qa.oracles import CONSTANT, ROWS, mp_oracle
from wengert import Value, grad, hessian, hvp, jacobian, jvp, nn
from wengert.derivatives.linearize import linearize, linearize_gradient
from wengert.errors import ArgumentError, HandmadeNodeError, OperationError


def by_values(function: Any) -> Any:
    """The gradient as a function that nobody recognizes as one: its derivative is taken Value by Value."""
    gradient = grad(function)
    return lambda *args: gradient(*args)


# ------------------------------------------------------------------------------------- the numbers


def second_derivatives(row: Any, numbers: list[float]) -> dict[tuple[int, int], float]:
    """Those of a row by hvp along each axis; the operands that are always constants stay constants."""
    by = [i for i in range(len(numbers)) if (row.name, i) not in CONSTANT]

    def f(xs: list[Any]) -> Any:
        moved = dict(zip(by, xs, strict=True))
        return row(*[moved.get(i, x) for i, x in enumerate(numbers)])

    at = [numbers[i] for i in by]
    columns = [hvp(f)(at, [float(i == j) for i in by]) for j in by]
    assert hessian(f)(at) == [list(line) for line in zip(*columns, strict=True)]
    return {(i, j): columns[q][p] for p, i in enumerate(by) for q, j in enumerate(by)}


@pytest.mark.mpmath
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row(row: Any) -> None:
    import mpmath

    oracle = mp_oracle(row)
    for numbers in points(row, 3, seed=11):
        found = second_derivatives(row, numbers)
        if oracle is None:  # differences of the gradient
            for (i, j), actual in found.items():
                above, below = ([x + by * (j == k) for k, x in enumerate(numbers)] for by in (1e-5, -1e-5))
                slopes = [grad(row, i)(*xs) for xs in (above, below)]
                assert actual == pytest.approx((slopes[0] - slopes[1]) / 2e-5, rel=1e-6, abs=1e-6)
            continue
        with mpmath.mp.workdps(90):
            for i, j in combinations_with_replacement({i for i, _ in found}, 2):
                expected = mp_derivative(oracle, numbers, tuple((i, j).count(k) for k in range(len(numbers))))
                for actual in (found[i, j], found[j, i]):
                    assert abs(actual - expected) <= 1e-11 * max(abs(expected), 0.05), (numbers, i, j, expected)


@pytest.mark.mpmath
def test_powers_with_a_constant_exponent() -> None:
    import mpmath

    for x in (0.7, -1.3, 2.5, 1e-150, 1e-200, 3e150, 0.0):
        for exponent in (2.0, 3.0, 1.0, 0.0, -1.0, 5.0, -2.0, 0.5, 1.5, 2.5, 1e-30):
            if (x <= 0.0 and (exponent % 1.0 or exponent < 0.0)) or (abs(x) < 1e-100 and exponent == 1e-30):
                continue
            with mpmath.mp.workdps(60):
                factor = mpmath.mpf(exponent) * (mpmath.mpf(exponent) - 1)
                expected = float(factor * mpmath.power(x, mpmath.mpf(exponent) - 2)) if factor else 0.0
            actual = hvp(lambda x, exponent=exponent: x**exponent)(x, 1.0)
            assert actual == pytest.approx(expected, rel=1e-13, abs=0.0), (x, exponent)


@pytest.mark.mpmath
def test_quotients_and_logarithms_of_any_size() -> None:
    """Where numbers nearly underflow, the rule of the table takes over."""
    import mpmath

    for x, y in ((3.0, 2.0), (1e-200, 1e100), (1e-292, 3.0), (2.0, 1e295), (1e-100, -1e-100), (0.0, 2.0)):
        along_x, along_y = (hvp(lambda p: p[0] / p[1])([x, y], v) for v in ([1.0, 0.0], [0.0, 1.0]))
        mixed, twice = float(-1 / mpmath.mpf(y) ** 2), float(2 * mpmath.mpf(x) / mpmath.mpf(y) ** 3)
        assert along_x == pytest.approx([0.0, mixed], rel=1e-14, abs=0.0)
        assert along_y == pytest.approx([mixed, twice], rel=1e-13, abs=0.0)
    for x in (0.5, 1e-100, 1e150, 1e295):
        assert hvp(wengert.log)(x, 1.0) == pytest.approx(-1.0 / x / x, rel=1e-14, abs=0.0)
    assert hvp(lambda x: 3.0 / x)(2.0, 1.0) == 0.75
    assert hvp(lambda x: x / 3.0)(2.0, 1.0) == 0.0
    for x in (-20.0, -1.0, 0.0, 3.0, 19.0):
        slope = 1.0 / math.cosh(x) ** 2
        assert hvp(lambda x: x.tanh())(x, 1.0) == pytest.approx(-2.0 * slope * math.tanh(x), rel=1e-12)


def agree(function: Any, numbers: list[float], rng: random.Random) -> None:
    """Compare with nested gradients, by forward mode along a direction, and a Hessian by reverse mode."""
    v = [rng.choice([0.0, rng.gauss(0.0, 1.0)]) for _ in numbers]
    matrix = jacobian(by_values(function))(numbers)
    size = max([1.0, *[abs(x) for row in matrix for x in row]])
    for actual, expected in zip(hessian(function)(numbers), matrix, strict=True):
        assert actual == pytest.approx(expected, rel=1e-9, abs=1e-10 * size)
    expected = jvp(by_values(function), (numbers,), (v,))[1]
    assert hvp(function)(numbers, v) == pytest.approx(expected, rel=1e-9, abs=1e-10 * size)
    assert jacobian(grad(function))(numbers) == hessian(function)(numbers)
    assert jvp(grad(function), (numbers,), (v,)) == (grad(function)(numbers), hvp(function)(numbers, v))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 100):
        drawn = random_program(seed)
        agree(functools.partial(spread, drawn), list(drawn.point), random.Random(seed))


def spread(drawn: RandomProgram, x: list[Any]) -> Any:
    """The program as a function of one list."""
    return drawn(*x)


def test_tangles() -> None:
    for seed in range(8):
        rng = random.Random(seed)
        numbers = [rng.gauss(0.0, 1.0) for _ in range(4)]
        agree(lambda x, seed=seed: program(random.Random(seed), x), numbers, rng)


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, inf, -inf, nan, 1e-300, 1e300, -745.0]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_edges_of_every_row(row: Any) -> None:
    """Kinks, ties, constants, infinities and 0 times infinity: what forward mode over a nested gradient gives."""
    rng = random.Random(row.name)
    for _ in range(25):
        count = row.arity or (3 if row.name == "dot" else rng.randint(1, 3))
        numbers = [rng.choice(EDGES) for _ in range(count)]
        fixed = [rng.random() < 0.3 for _ in numbers]
        tied, outer, v = rng.random() < 0.2, rng.randrange(4), [rng.choice([0.0, 1.0, -2.5]) for _ in numbers]

        def f(x: list[Any], numbers: Any = numbers, fixed: Any = fixed, tied: Any = tied, outer: Any = outer) -> Any:
            xs = [c if is_fixed else a for a, c, is_fixed in zip(x, numbers, fixed, strict=True)]
            shapes = numbers[: len(row.shapes)]  # those of a distribution: numbers
            y = row(*shapes, *([x[-1]] * len(x) if tied else xs)[len(shapes) :])
            return [y, y * y, 0.0 * y + x[0], y * x[-1] - x[0] / 3.0][outer]

        if row.name == "pow" and 1e300 in map(abs, numbers):
            continue  # the second derivative of x**1e300 is infinite or nan: that hangs on the order of its factors
        actual, expected = hvp(f)(numbers, v), jvp(by_values(f), (numbers,), (v,))[1]
        assert actual == pytest.approx(expected, rel=1e-9, abs=1e-300, nan_ok=True), (numbers, fixed, tied, outer, v)


# ------------------------------------------------------------------------------------- who calls what


def test_the_function_runs_once() -> None:
    """A Hessian takes one run for all columns, and only of the function's own operations."""
    runs: list[int] = []

    def f(x: Any) -> Any:
        runs.append(1)
        return wengert.sum([a.sin() * b for a in x for b in x])

    weight = Value(2.0)
    for derivative in (lambda: hvp(f)([1.0, 2.0], [1.0, 0.5]), lambda: hessian(f)([1.0] * 5)):
        runs.clear()
        derivative()
        assert len(runs) == 1
    runs.clear()
    assert isinstance(hessian(lambda x: f(x) * weight)([1.0, 2.0])[0][0], Value)
    assert len(runs) == 1


def made_by(compute: Any) -> int:
    """How many Values a computation makes: each takes a tick."""
    before = Value(0.0)._made
    compute()
    return int((Value(0.0)._made - before) >> 16)


def test_no_values_are_made_but_the_functions_own() -> None:
    """So for operations that are written out; for others the partials of each, once for all columns of a Hessian."""
    x = [0.1 * k for k in range(1, 9)]
    for f, more in ((rosenbrock, 0), (lambda x: wengert.prod([a.tanh() / a.exp() for a in x]).log(), 40)):
        own = made_by(lambda f=f: grad(f)(x))
        for second in (lambda f=f: hvp(f)(x, x), lambda f=f: hessian(f)(x)):
            assert own <= made_by(second) <= own + 2 + more


def test_arguments_of_any_structure() -> None:
    np = pytest.importorskip("numpy")

    def f(p: Any, scale: Any = 1.0, *, shift: Any = 0.0) -> Any:
        return scale * p["a"][0] ** 2 * p["b"].y * p["b"].x + (p["m"] * p["m"]).sum() * p["a"][0] + shift * p["a"][1]

    x = {"a": [2.0, 3], "b": Point(5.0, 7.0), "m": np.array([[1.0, 2.0]]), "none": None}
    v = {"a": [1.0, 0.0], "b": Point(0.0, 0.0), "m": np.zeros((1, 2)), "none": None}
    made = hvp(f)(x, v, 3.0, shift=1.0)
    assert (made["a"], made["b"]) == ([210.0, 0.0], Point(84.0, 60.0))
    assert made["m"].tolist() == [[2.0, 4.0]]
    h = hessian(f)(x, 3.0)
    assert (h["a"][0]["a"], h["a"][0]["b"], h["b"].x["b"]) == ([210.0, 0.0], Point(84.0, 60.0), Point(0.0, 12.0))
    assert h["m"]["a"][0].tolist() == [[2.0, 4.0]]
    assert h["m"]["m"].reshape(2, 2).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    flat = hessian(rosenbrock)(np.array([1.0, 2.0]))
    assert (flat.dtype, flat.tolist()) == (float, [[402.0, -400.0], [-400.0, 200.0]])


def test_argnums_and_something_beside() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * x * y, [x, "note"]

    assert hessian(f, 1, has_aux=True)(3.0, 2.0) == (0.0, [3.0, "note"])
    matrix, (x, note) = hessian(f, (1, 0), has_aux=True)(3.0, y=2.0)
    assert matrix == ((0.0, 6.0), (6.0, 4.0))
    assert (type(x), x, note) == (float, 3.0, "note")
    bare = lambda x, y: f(x, y)[0]  # noqa: E731
    assert jvp(grad(bare, (0, 1)), (3.0, 2.0), (1.0, 0.0)) == ((12.0, 9.0), (4.0, 6.0))
    assert jacobian(grad(bare, 0), 1)(3.0, 2.0) == 6.0  # of other arguments than the gradient
    assert jvp(grad(bare), (3.0, 2.0), (0.0, 1.0)) == (12.0, 6.0)
    with pytest.raises(ArgumentError, match=r"argnums is 2, and bare.*|argnums is 2, and the function"):
        hessian(bare, 2)(3.0, 2.0)
    with pytest.raises(ArgumentError, match=r"returned a list of 1; wengert\.jacobian"):
        hessian(lambda x: [x])(1.0)


def test_a_wrapper_of_a_gradient_is_not_the_gradient() -> None:
    gradient = grad(lambda x: x**3)

    @functools.wraps(gradient)
    def doubled(x: Any) -> Any:
        return 2.0 * gradient(x)

    assert (jacobian(gradient)(2.0), jacobian(doubled)(2.0), jvp(doubled, (2.0,), (1.0,))) == (12.0, 24.0, (24.0, 24.0))


def test_directions_of_zeros_and_of_values() -> None:
    assert hvp(lambda x: x[0].sqrt() * x[1])([0.0, 1.0], [0.0, 0.0]) == [0.0, 0.0]
    assert hvp(lambda x: 7.0)([1.0], [1.0]) == [0.0]
    assert hvp(lambda x: x[1] * 1.0)([1.0, 2.0], [1.0, 1.0]) == [0.0, 0.0]
    v = Value(2.0)
    along = hvp(lambda x: x[0] ** 2 * x[1])([3.0, 2.0], [v, 0.0])
    assert data(along) == [8.0, 12.0]
    along[1].backward()
    assert v.grad == 6.0


def test_values_from_outside() -> None:
    w = Value(3.0)
    second = hvp(lambda x: w * x**3)(2.0, 1.0)
    assert (type(second), second.data) == (Value, 36.0)
    second.backward()
    assert w.grad == 12.0
    with wengert.no_grad():
        assert hvp(lambda x: w * x**3 + w.sin())(2.0, 1.0) == 36.0
        assert hessian(lambda x: w * x[0] * x[1] + x[0] / w)([2.0, 1.0]) == [[0.0, 3.0], [3.0, 0.0]]
    model = nn.MLP(2, [3, 1], activation="tanh", rng=random.Random(1))
    curved = hessian(model)([0.5, -1.0])
    with wengert.no_grad():
        assert hessian(model)([0.5, -1.0]) == [pytest.approx(row, rel=1e-13) for row in data(curved)]
    model.zero_grad()
    curved[0][1].backward()
    assert any(p.grad for p in model.parameters())


def test_third_order() -> None:
    assert grad(lambda x: hvp(lambda y: y**4)(x, 1.0))(2.0) == 48.0
    assert jacobian(hessian(lambda x: x[0] ** 3 * x[1]))([2.0, 5.0])[0] == [[30.0, 12.0], [12.0, 0.0]]
    assert hessian(grad(lambda x: x**5))(2.0) == pytest.approx(5 * 4 * 3 * 4.0, rel=1e-14)
    assert hvp(lambda x: x * hvp(lambda y: y**3)(2.0, 1.0) * x)(1.0, 1.0) == 24.0
    assert hessian(lambda x: x * grad(lambda y: x * y * y)(3.0))(2.0) == 12.0


# ------------------------------------------------------------------------------------- rules of one's own


def test_rules_of_ones_own() -> None:
    w = Value(3.0)
    sine = wengert.op("sine2", value=math.sin, partials=lambda out, x: wengert.cos(x), arity=1)
    assert hvp(lambda x: sine(x) * x)(0.5, 1.0) == pytest.approx(2.0 * math.cos(0.5) - 0.5 * math.sin(0.5), rel=1e-14)

    def slope(out: Any, x: Any) -> Any:
        return 2.0 * (w if isinstance(x, Value) else w.data) * x

    scaled = wengert.op("scaled2", value=lambda x: 3.0 * x * x, partials=slope)
    first = grad(scaled)
    second = hvp(scaled)(2.0, 1.0)
    assert (type(second), data(second), data(jacobian(lambda x: first(x))(2.0))) == (Value, 6.0, 6.0)
    with wengert.no_grad():
        assert hvp(scaled)(2.0, 1.0) == 6.0
    wave = wengert.op("wave2", value=math.sin, partials=lambda out, x: math.cos(x), arity=1)
    for derivative in (lambda f: hvp(f)(0.5, 1.0), lambda f: hessian(f)(0.5)):
        with pytest.raises(OperationError, match=r"wave2 has no further derivative: .*wengert\.cos for math\.cos"):
            derivative(wave)
    assert hvp(lambda x: x * x + wave(0.5) + wave(Value(0.5)) * 2.0)(1.0, 1.0) == 2.0  # where nothing passes through


def test_nodes_made_by_hand() -> None:
    def double(x: Any) -> Any:
        if not isinstance(x, Value):
            return 2.0 * x
        out = Value(2.0 * x.data, (x,), "double")

        def _backward() -> None:
            x.grad += 2.0 * out.grad

        out._backward = _backward
        return out

    by_hand = wengert.op("by_hand2", value=lambda x: x * x, partials=lambda out, x: double(x))
    for f in (lambda x: double(x) * x, by_hand):
        with pytest.raises(HandmadeNodeError, match="makes nodes by hand"):
            hvp(f)(3.0, 1.0)


def test_inside_compiled_functions() -> None:
    pytest.importorskip("numpy")

    @wengert.compile(backend="numpy")
    def inner(x: Any) -> Any:
        return wengert.sin(x) * x

    @wengert.compile
    def outer(x: Any) -> Any:
        return hvp(lambda y: y**3)(x, 1.0) + x * hessian(lambda y: y[0] ** 2 * y[1])([2.0, 5.0])[0][0]

    for x in (0.3, 0.7, 1.1, 2.0):
        assert hvp(lambda y: inner(y) * y)(x, 1.0) == pytest.approx(
            hvp(lambda y: wengert.sin(y) * y * y)(x, 1.0), rel=1e-13
        )
        assert data(outer(x)) == pytest.approx(16.0 * x, rel=1e-13)


def test_they_are_compiled() -> None:
    """The run that is watched takes the same calls as the one that is recorded."""
    np = pytest.importorskip("numpy")

    def f(x: Any) -> Any:
        return (x[0] ** 2 * x[1]).sin() + x[1].exp() * x[0]

    for second, args in ((hvp(f), ([0.3, 0.2], [1.0, 0.5])), (hessian(f), ([0.3, 0.2],))):
        compiled = wengert.compile(second)
        for k in range(5):
            given = [np.array(x) + 0.01 * k for x in args]
            found = np.array([x.data if isinstance(x, Value) else x for x in np.ravel(compiled(*given))], dtype=float)
            assert found == pytest.approx(np.ravel(second(*given)), rel=1e-13)
        assert "uncompiled" not in compiled.report()


def test_modes_that_see_each_operation() -> None:
    """An infinity of the second derivative is found as one of the first is."""
    f = lambda x: x**1.5  # noqa: E731
    with wengert.strict():
        assert grad(f)(0.0) == 0.0
        for second in (lambda: hvp(f)(0.0, 1.0), lambda: jacobian(by_values(f))(0.0)):
            with pytest.raises(OperationError, match=r"partial derivative with respect to operand 1 is inf"):
                second()
    assert hvp(f)(0.0, 1.0) == inf


def test_the_pullback_of_a_gradient() -> None:
    run = linearize(lambda x: [x[0] ** 2 * x[1]], [3.0, 2.0], 2)
    assert linearize_gradient(run).vjp({0: 1.0, 1: 2.0}) == [4.0 + 2.0 * 6.0, 6.0]
    assert linearize_gradient(run).values() == [12.0, 9.0]
