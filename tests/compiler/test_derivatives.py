"""Compiled derivatives, which are taken of the lifted program: beside the same derivatives uncompiled."""

from __future__ import annotations

import functools
import gc
import itertools
import math
import random
import sys
import warnings
from typing import Any, NamedTuple

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from tests.random_programs import random_program  # noqa: E402
from wengert import Value, exp, grad, hessian, hvp, jacobian, jvp, log, nn, tanh, value_and_grad, vjp  # noqa: E402
from wengert.compiler.backends import BACKENDS  # noqa: E402
from wengert.derivatives import Numbers  # noqa: E402
from wengert.derivatives.derivation import Run, Start  # noqa: E402
from wengert.errors import ArgumentError  # noqa: E402
from wengert.ops import BUILT_IN, TABLE, Op  # noqa: E402

lifting_fuzz = pytest.importorskip("tools.qa.lifting_fuzz")  # needs NumPy

pytestmark = pytest.mark.once  # what is derived is the array program

ROWS = [row for row in TABLE[:BUILT_IN] if row.value is not None]
EDGES = (0.0, 1.0, -1.0, 0.5, 2.0)
ORDERS: dict[int, Any] = {1: grad, 2: hessian, 3: lambda f: jacobian(hessian(f))}


def numbers(x: Any) -> list[float]:
    return [float(v.data if isinstance(v, Value) else v) for v in Numbers(x).leaves]


def are_close(got: Any, want: Any, room: float = 1e-9) -> bool:
    """Equal up to rounding, on the scale of the largest number; nan and infinities in the same places."""
    got, want = np.array(numbers(got), float), np.array(numbers(want), float)
    finite = np.isfinite(want)
    scale = np.abs(want[finite]).max(initial=1e-300)
    same = np.array_equal(got[~finite], want[~finite], equal_nan=True)
    return bool(same and got.shape == want.shape and (np.abs(got[finite] - want[finite]) <= room * scale).all())


def specializations(compiled: Any) -> int:
    entries = list(compiled._server.entries.values())
    assert not any(entry.fallback_reason for entry in entries), compiled.report()
    return sum(len(entry.specializations) for entry in entries)


def same(derivative: Any, points: Any, room: float = 1e-9, several: bool = False) -> Any:
    """Compile a derivative, and compare each of some calls with it; returns the compiled one."""
    compiled = wengert.compile(derivative)
    for point in points:
        want = derivative(*point)
        for _ in range(2):
            got = compiled(*point)
            assert type(got) is type(want)
            assert are_close(got, want, room), (point, got, want)
    assert several or specializations(compiled) == 1
    server = compiled._server
    assert server.specializer.derived(server.last.signature) is not None, "it was not taken of the program"
    return compiled


def rosenbrock(x: Any) -> Any:
    return sum(100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in itertools.pairwise(x))


# -- right ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.sampled(60)
def test_every_row_of_the_table(row: Op, order: int) -> None:
    draw = random.Random(row.name)
    points = [[draw.uniform(*ends) for ends in row.domain] for _ in range(3)]
    points += [[edge] * len(row.domain) for edge in EDGES]

    def function(x: Any) -> Any:
        fixed = [2.5] * len(row.shapes)
        return row(*fixed, *x[len(fixed) :])

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no recording is dropped
        same(ORDERS[order](function), [(point,) for point in points], several=True)


@pytest.mark.parametrize("backend", [name for name in ("numpy", "native") if BACKENDS[name].is_available()])
@pytest.mark.parametrize("exponent", [2.0, 4.0, 2.5])
def test_powers_of_a_constant(backend: str, exponent: float) -> None:
    """Where a derivative is taken at a number, its slopes are powers of it."""

    def function(x: float) -> Any:
        rows = wengert.jacobian(powers)([x, 3.0])
        return half * (rows[0][0] + rows[1][1])

    half, powers = Value(0.5), eval(f"lambda p: [p[0] * p[1], p[1] ** {exponent}]")  # a number that is written there
    compiled = wengert.compile(function, backend=backend)
    for _ in range(3):
        assert are_close(list(compiled.map([0.5, -2.0])), [function(0.5), function(-2.0)], 1e-14)
    assert specializations(compiled) == 1


def test_a_function_that_is_smooth_where_its_rule_is_not() -> None:
    assert wengert.compile(grad(grad(lambda x: wengert.silu(x))))(0.0) == 0.5
    tiny = wengert.compile(grad(grad(lambda x: wengert.asin(x))))
    assert [tiny(1e-20) for _ in range(3)] == [1e-20] * 3, "what (1 + x) - (1 - x) leaves of it is 0"


LONG = (23,)  # 15 seconds: the second derivatives of the normal quantile, and of what is made of it, are long


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.nightly] * (n in LONG)) for n in range(40)])
@pytest.mark.sampled(20)
def test_random_programs(seed: int) -> None:
    program, draw = random_program(seed), random.Random(seed)
    space: dict[str, Any] = {"wengert": wengert}
    exec(str(program), space)
    exec(f"def f(x): return program({', '.join(f'x[{n}]' for n in range(len(program.point)))})", space)
    points = [[x * (1.0 + draw.uniform(-0.01, 0.01) * turn) for x in program.point] for turn in range(2)]
    for derivative in (make(space["f"]) for make in ORDERS.values()):
        same(derivative, [(point,) for point in points], room=1e-7)
    direction = [draw.choice([0.0, 1.0, draw.uniform(-1.0, 1.0)]) for _ in program.point]
    same(hvp(space["f"]), [(point, direction) for point in points], room=1e-7)


def weighted(x: Any) -> Any:
    return sum((n * v for n, v in enumerate(Numbers(x).leaves, 1)), Value(0.0))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(12)
def test_programs_of_layers_with_parameters(seed: int) -> None:
    """The derivatives are Values, which reach the parameters; `map` gives their numbers for a batch."""
    made = lifting_fuzz.program(seed, 4)
    (batch,) = lifting_fuzz.columns_of(made, random.Random(seed))
    for derivative in (grad(made.function), jacobian(lambda x: [made.function(x), tanh(x[0])]), hessian(made.function)):
        compiled = wengert.compile(derivative)
        for x in batch:
            got, want = compiled(x), derivative(x)
            assert are_close(got, want)
            slopes = [
                lifting_fuzz.gradients(
                    sum((n * v for n, v in enumerate(Numbers(each).leaves, 1)), Value(0.0)), made.parameters
                )
                for each in (got, want)
            ]
            assert lifting_fuzz.difference(*slopes) < 1e-9
        assert are_close(np.ravel(compiled.map(batch)).tolist(), [v for x in batch for v in numbers(derivative(x))])
        assert specializations(compiled) >= 2


def lorenz(p: Any) -> list[Any]:
    x, y, z = 1.0, 1.0, 1.0
    for _ in range(20):
        dx, dy, dz = p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z
        x, y, z = x + 0.01 * dx, y + 0.01 * dy, z + 0.01 * dz
    return [x, y, z, x * y]


def garch(theta: Any) -> Any:
    variance: Any = 0.01
    total: Any = 0.0
    for n in range(30):
        shock = 0.1 * math.sin(1.7 * n)
        variance = theta[0] + theta[1] * shock * shock + theta[2] * variance
        total = total + log(variance) + shock * shock / variance
    return total


def test_loops_stay_loops() -> None:
    for derivative in (jacobian(lorenz), hessian(lambda p: lorenz(p)[0]), jacobian(hessian(lambda p: lorenz(p)[3]))):
        compiled = same(derivative, [([10.0, 28.0, 8 / 3],), ([9.0, 27.0, 2.5],)])
        program = compiled._server.latest().kernel.program
        assert any(hasattr(step, "count") for step in program.steps)
    for make in (grad, hessian):
        same(make(garch), [([0.01, 0.1, 0.8],), ([0.02, 0.15, 0.7],)])


def test_long_sums_and_matrices() -> None:
    matrix = np.random.default_rng(0).normal(size=(6, 4))

    def residuals(x: Any) -> Any:
        return [tanh(sum(a * b for a, b in zip(row, x, strict=True))) for row in matrix.tolist()]

    x = [0.3, -0.2, 0.5, 0.1]
    same(jacobian(residuals), [(x,)])
    same(jacobian(lambda x: residuals(x)[:3]), [(x,)])  # fewer outputs than inputs: reverse mode
    same(hessian(lambda x: sum(r * r for r in residuals(x))), [(x,)])
    same(jacobian(lambda x: [wengert.maximum(*x[:2]), max(x), min(x), wengert.logsumexp(x), 7.0]), [(x,), (x[::-1],)],
         several=True)  # fmt: skip


# -- structures -------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    x: Any
    y: Any


def test_structures_of_arguments_and_results() -> None:
    def f(a: float, b: dict[str, Any]) -> Any:
        return {"p": a * b["x"], "q": np.array([a, b["x"] ** 2]), "r": Pair(b["y"][0] * a, 2.0)}

    b = {"x": 3.0, "y": np.array([1.5, 2.5])}
    for argnums in (0, 1, (0, 1), (1, 0)):
        compiled = same(jacobian(f, argnums=argnums), [(2.0, b)])
        assert repr(compiled(2.0, b)) == repr(jacobian(f, argnums=argnums)(2.0, b))

    def g(x: Any, y: float) -> Any:
        return x[0] * y**2 * x[1]

    assert same(grad(g, argnums=(0, 1)), [(Pair(2.0, 3.0), 4.0)])(Pair(2.0, 3.0), 4.0) == (Pair(48.0, 32.0), 48.0)
    assert wengert.compile(value_and_grad(g))([2.0, 3.0], y=4.0) == (96.0, [48.0, 32.0])
    x = np.array([0.3, 2.0, 4.0])
    value, slopes = same(value_and_grad(rosenbrock), [(x,)])(x)
    assert type(value) is float
    assert slopes.dtype == float
    assert same(hessian(rosenbrock), [(x,)])(x).shape == (3, 3)


def test_of_values_and_of_floats() -> None:
    x = [Value(0.3), Value(2.0)]
    compiled = wengert.compile(grad(rosenbrock))
    for _ in range(3):
        got, want = compiled(x), grad(rosenbrock)(x)
        assert are_close(got, want)
        found = []
        for slopes in (got, want):
            for v in x:
                v.grad = 0.0
            (slopes[0] * 2.0 + slopes[1]).backward()
            found.append([v.grad for v in x])
        assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert compiled([0.3, 2.0]) == grad(rosenbrock)([0.3, 2.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("inactive_first", [True, False])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("make", [hessian, lambda f: jacobian(grad(f))])
def test_parameters_that_drop_out_on_one_side_of_a_choice(make: Any, power: int, inactive_first: bool) -> None:
    w = Value(0.7)

    def f(x: Any) -> Any:
        return sum([wengert.relu(w * each - 5.0) ** power for each in x])

    inactive, active = [0.1, 0.2], [100.0, 90.0]  # floats, and Values
    first, then = (inactive, active) if inactive_first else (active, inactive)
    compiled, seen = wengert.compile(make(f)), []
    for x in [first] * 6 + [then] * 6 + [first] * 6:
        found = []
        for rows in (compiled(x), make(f)(x)):
            w.grad, leaves = 0.0, Numbers(rows).leaves
            if isinstance(leaves[0], Value):
                sum(n * leaf for n, leaf in enumerate(leaves, 1)).backward()
            numbers = [getattr(leaf, "data", leaf) for leaf in leaves]
            found.append(([isinstance(leaf, Value) for leaf in leaves], numbers, w.grad))
        (kinds, numbers, slope), (others, expected, wanted) = found
        assert numbers == pytest.approx(expected, rel=1e-12)
        assert slope == pytest.approx(wanted, rel=1e-12)
        seen.append(kinds == others)
    until_checked = slice(6, 6 if inactive_first and power > 1 else 7)  # a zero, a float or a Value without a gradient
    del seen[until_checked]
    assert all(seen)
    assert "uncompiled" not in compiled.report()


@pytest.mark.filterwarnings("error")
def test_parameters_that_drop_out_in_a_batch_and_without_gradients() -> None:
    w = Value(0.7)
    f = grad(grad(lambda x: wengert.relu(w * x - 5.0) ** 2))
    summed, single = wengert.compile(f), wengert.compile(f)
    for xs in ([100.0, 90.0], [0.1, 0.2], [0.1, 100.0]) * 2:
        got, want = summed.sum(xs), sum(map(f, xs))
        assert getattr(got, "data", got) == pytest.approx(getattr(want, "data", want), rel=1e-12)
        for x in xs:
            single(x)
            with wengert.no_grad():
                assert type(single(x)) is type(f(x)) is float
    assert "uncompiled" not in summed.report() + single.report()


@pytest.mark.parametrize("f", [lambda x: x[:], lambda x: [x[0], x[1], x[2]]])
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_of_the_argument_itself(f: Any, backend: str) -> None:
    compiled = wengert.compile(jacobian(f), backend=backend)
    for x in ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        assert compiled(x) == jacobian(f)(x) == np.eye(3).tolist()
    assert "uncompiled" not in compiled.report()


def test_of_a_model_with_and_without_gradients() -> None:
    model = nn.MLP(2, [3, 1], activation="tanh", rng=random.Random(1))
    compiled = wengert.compile(grad(lambda x: model(x)))
    with wengert.no_grad():
        assert all(type(x) is float for x in compiled([0.5, -1.0])), "as uncompiled"
    for _ in range(3):
        assert all(isinstance(x, Value) for x in compiled([0.5, -1.0]))
    assert are_close(compiled([0.5, -1.0]), grad(model)([0.5, -1.0]))


def test_derivatives_of_compiled_functions_are_compiled() -> None:
    f = wengert.compile(rosenbrock)
    x, v = [0.3, 2.0, 4.0], [1.0, 0.0, -2.0]
    for derivative, plain in ((grad(f), grad), (hessian(f), hessian), (grad(grad(lambda y: f([y, y, y]))), None)):
        if plain is None:
            assert derivative(0.5) == pytest.approx(grad(grad(lambda y: rosenbrock([y, y, y])))(0.5))
            continue
        assert isinstance(derivative, wengert.compiler.Compiled)
        for _ in range(3):
            assert are_close(derivative(x), plain(rosenbrock)(x))
        assert specializations(derivative) == 1
    assert grad(f) is grad(f), "so that a call does not record anew"
    assert are_close(hvp(f)(x, v), hvp(rosenbrock)(x, v))


def structured(x: Any, y: Any, scale: float = 2.0) -> Any:
    return [x[0] * y["a"] * scale, {"b": exp(x[1]) + y["b"], "c": np.array([x[0] * x[1], y["b"][0] ** 2])}]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(6)
def test_both_modes_of_a_compiled_function(seed: int) -> None:
    """`jvp` and `vjp` of a compiled function run its program, and give what they give for the function itself."""
    program, draw = random_program(seed), random.Random(seed)
    space: dict[str, Any] = {"wengert": wengert}
    exec(str(program), space)
    exec(f"def f(x): return program({', '.join(f'x[{n}]' for n in range(len(program.point)))})", space)
    f = space["f"]
    for function in (f, grad(f), lambda x: {"a": [f(x), x[0]], "b": (x[-1] * x[-1],)}):
        compiled = wengert.compile(function)
        for turn in range(3):
            x = [v * (1.0 + draw.uniform(-0.01, 0.01) * turn) for v in program.point]
            v = [draw.choice([0.0, 1.0, draw.uniform(-1.0, 1.0)]) for _ in x]
            assert are_close(jvp(compiled, (x,), (v,)), jvp(function, (x,), (v,)), 1e-7)
            (value, pullback), (want, plain) = vjp(compiled, x), vjp(function, x)
            assert are_close(value, want)
            w = Numbers(want).unflatten([draw.uniform(-1.0, 1.0) for _ in numbers(want)])
            for _ in range(2):
                assert are_close(pullback(w), plain(w), 1e-7)
        counts = [specializations(made) for made in compiled._derivatives.values()]
        assert counts == [1, 1, 1], "for the direction, the value and the cotangent"


def test_both_modes_in_any_structure_and_what_they_refuse() -> None:
    compiled = wengert.compile(structured)
    x, y = [0.3, 0.7], {"a": 1.5, "b": np.array([2.0])}
    for _ in range(3):
        directions = ([1.0, 2.0], {"a": 0.5, "b": np.array([-1.0])})
        assert are_close(jvp(compiled, (x, y), directions), jvp(structured, (x, y), directions))
        (value, pullback), (want, plain) = vjp(compiled, x, y), vjp(structured, x, y)
        assert are_close(value, want)
        w = [2.0, {"b": np.array([1.0]), "c": np.array([0.5, 3.0])}]
        assert are_close(pullback(w), plain(w))
        y["b"][0] = 5.0  # the pullback is at the point where it was made
        assert are_close(pullback(w), plain(w))
        y["b"][0] = 2.0
    for call in (
        lambda f: jvp(f, (x, y), ([1.0], y)),
        lambda f: vjp(f, x, y)[1]([1.0, 2.0]),
        lambda f: vjp(f, x, y)[1]([1.0, {"b": np.array([1.0]), "c": np.array([1.0])}]),
        lambda f: jvp(f, (x, "y"), (x, "y")),
    ):
        messages = []
        for function in (compiled, structured):
            with pytest.raises(wengert.errors.WengertError) as caught:
                call(function)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_both_modes_run_the_function_once() -> None:
    seen: list[float] = []

    def noting(x: Any) -> Any:
        seen.append(1.0)
        return [x * x, x]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = wengert.compile(noting)
        for count in range(1, 4):
            value, pullback = vjp(compiled, 2.0)
            assert (value, pullback([1.0, 1.0]), pullback([1.0, 0.0])) == ([4.0, 2.0], (5.0,), (4.0,))
            assert jvp(compiled, (2.0,), (1.0,)) == ([4.0, 2.0], [4.0, 1.0])
            assert len(seen) == 2 * count


def test_the_backward_pass_of_a_pullback_at_values() -> None:
    """From the first call on: what is recorded then runs on copies of the arguments."""
    compiled = wengert.compile(lambda x: [x[0] * x[1], x[0] * x[0]])
    for _ in range(3):
        x = [Value(2.0), Value(3.0)]
        ((first, second),) = vjp(compiled, x)[1]([0.5, 2.0])  # x[1] / 2 + 4 * x[0] and x[0] / 2
        (first + 3.0 * second).backward()
        assert (first.data, second.data, [v.grad for v in x]) == (9.5, 1.0, [5.5, 0.5])


def test_both_modes_of_a_function_with_parameters() -> None:
    w = Value(3.0)
    compiled = wengert.compile(lambda x: w * x * x)
    for turn in range(3):
        value, slope = jvp(compiled, (2.0,), (1.0,))
        slope.backward()
        assert (value.data, slope.data, w.grad) == (12.0, 12.0, 4.0)
        value, pullback = vjp(compiled, Value(2.0) if turn else 2.0)
        (cotangent,) = pullback(0.5)
        cotangent.backward()
        assert (value.data, cotangent.data, w.grad) == (12.0, 6.0, 6.0)
        w.grad = 0.0
    outer = wengert.compile(lambda x: sum(jvp(compiled, (x,), (1.0,))) + vjp(compiled, x)[1](2.0)[0])
    assert [outer(1.5).data for _ in range(3)] == [33.75] * 3
    assert specializations(outer) == 1


def of_another(name: str) -> Any:
    """A function that takes a derivative of a compiled one, 12 whatever x is, at each call."""
    cube: Any = wengert.compile(lambda y: y**3)
    slope: Any = wengert.compile(grad(lambda y: y**3))
    curve: Any = hvp(wengert.compile(lambda y: y**3))
    ways: dict[str, Any] = {
        "grad": lambda: slope(2.0),
        "jvp": lambda: jvp(cube, (2.0,), (1.0,))[1],
        "vjp": lambda: vjp(cube, 2.0)[1](1.0)[0],
        "hvp": lambda: curve(2.0, 1.0),
        "vjp twice": lambda: vjp(cube, vjp(cube, 1.0)[1](2.0 / 3.0)[0])[1](1.0)[0],
    }
    return lambda x: x * x * ways[name]()


@pytest.mark.parametrize("inner", ["grad", "jvp", "vjp", "hvp", "vjp twice"])
@pytest.mark.parametrize("outer", ["grad", "value_and_grad", "jacobian", "hessian", "hvp", "jvp", "vjp"])
def test_a_function_that_takes_another_derivative(outer: str, inner: str) -> None:
    """Each derivative continues its own run: also where the inner one is recorded while the outer one is checked."""
    f, points = of_another(inner), [0.5 * n for n in range(1, 7)]
    compiled: Any = wengert.compile(f)
    ways: dict[str, Any] = {
        "grad": (grad(compiled), lambda x: 24.0 * x),
        "value_and_grad": (value_and_grad(compiled), lambda x: (12.0 * x * x, 24.0 * x)),
        "jacobian": (jacobian(compiled), lambda x: 24.0 * x),
        "hessian": (hessian(compiled), lambda x: 24.0),
        "hvp": (lambda x: hvp(compiled)(x, 2.0), lambda x: 48.0),
        "jvp": (lambda x: jvp(compiled, (x,), (2.0,)), lambda x: (12.0 * x * x, 48.0 * x)),
        "vjp": (lambda x: (lambda y, pull: (y, *pull(2.0)))(*vjp(compiled, x)), lambda x: (12.0 * x * x, 48.0 * x)),
    }
    derivative, want = ways[outer]
    for x in points:
        assert derivative(x) == pytest.approx(want(x), rel=1e-14)


def test_nothing_of_a_run_is_kept() -> None:
    """What a derivative can continue goes with the result."""
    compiled = wengert.compile(lambda x: [x[0] * x[1], x[1] ** 2])
    for _ in range(2):
        _, pullback = vjp(compiled, [2.0, 3.0])
        assert pullback([1.0, 1.0]) == ([3.0, 8.0],)
    wengert.compile(grad(lambda x: x[0] * x[1]))([2.0, 3.0])
    del pullback
    gc.collect()
    assert not [x for x in gc.get_objects() if type(x) in (Run, Start)]


def test_the_last_argument() -> None:
    same(grad(lambda x, y: x * y**3, -1), [(2.0, 3.0), (1.0, 2.0)])
    same(hessian(lambda x, y: x[0] * y**3, (-1, 0)), [([2.0], 3.0)])


def test_objects_with_a_derivative_of_their_own_are_functions_like_others() -> None:
    class Polynomial:
        def __call__(self, x: Any) -> Any:
            return 3.0 * x**2

        def derivative(self, *args: Any) -> Any:
            raise AssertionError("nobody asks for it")

    assert grad(Polynomial())(2.0) == 12.0
    assert jacobian(grad(Polynomial()))(2.0) == 6.0


def test_a_batch() -> None:
    xs = np.random.default_rng(1).normal(size=(20, 3))
    for derivative in (grad(rosenbrock), hessian(rosenbrock), jacobian(lambda x: [x[0] * x[1], x[2] ** 3])):
        compiled = wengert.compile(derivative)
        for _ in range(2):
            assert compiled.map(xs) == pytest.approx(np.array([derivative(x) for x in xs.tolist()]), rel=1e-10)
        assert specializations(compiled) == 1


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(name, marks=[pytest.mark.nightly] * (name == "xla"))  # for seconds; see test_local_directions.py
        for name in ("numpy", "native", "xla")
        if BACKENDS[name].is_available()
    ],
)
def test_what_is_the_same_for_all_examples_is_computed_once(backend: str) -> None:
    def reactions(x: Any) -> Any:  # whose products with a direction are constant, but for one
        fast = 280.0 * x[2] * x[0]
        return [-1.71 * x[0] + 0.43 * x[1], 1.71 * x[0] - 8.75 * x[1], -fast + 0.69 * x[1], fast, 3.0 * x[1], 2.0]

    def filtered(x: Any) -> Any:
        state = [x[0], x[1]]
        for k in range(30):
            state = [0.9 * state[0] + 0.1 * state[1] + x[2] * 0.01 * k, 0.8 * state[1] + x[2] * x[0]]
        return state

    xs = np.random.default_rng(2).normal(size=(40, 3))
    derivatives: list[Any] = [
        jacobian(reactions),
        jacobian(filtered),
        grad(lambda x: sum(reactions(x)[:2])),
        hessian(lambda x: sum(filtered(x)) + x[0] ** 2),
        grad(lambda x: 3.0 * x[0] - x[1] / 7.0),
        grad(lambda x: 3.0 * x[0] - x[1] * x[2]),
        jacobian(lambda x: [*[2.0 * a - b for a, b in itertools.permutations([*x] * 2, 2)], x[0] * x[1] * x[2]]),
    ]
    for derivative in derivatives[:: 3 if backend == "xla" else 1]:  # which XLA compiles for a second each
        compiled = wengert.compile(derivative, backend=backend)
        for _ in range(2):
            assert are_close(compiled.map(xs), [derivative(x) for x in xs.tolist()], 1e-12)
        assert specializations(compiled) == 1
    compiled = wengert.compile(jacobian(reactions), backend=backend)
    compiled.map(xs)
    steps = compiled._server.last.latest.kernel.program.each_step()
    assert all(any(array.batched for array in step.reads) for step in steps if step.out.batched), "no copies"
    chosen = wengert.compile(grad(lambda x, i: x[i] * 3.0), backend=backend)
    assert chosen.map(xs[:4], [0, 1, 2, 1]).tolist() == (3.0 * np.eye(3)[[0, 1, 2, 1]]).tolist()
    picked = wengert.compile(grad(lambda x, i: wengert.pick(x, i) * 3.0 + x[0]), backend=backend)  # each its own place
    assert picked.map(xs[:4], [0, 1, 2, 1]).tolist() == (3.0 * np.eye(3)[[0, 1, 2, 1]] + [1.0, 0.0, 0.0]).tolist()
    constant = jacobian(lambda x: [2.0 * x[0], x[0] - x[1], 5.0 * x[2]])
    compiled = wengert.compile(constant, backend=backend)
    assert compiled.map(xs).tolist() == [constant(x) for x in xs.tolist()]
    program = compiled._server.last.latest.kernel.program
    assert [step.out for step in program.each_step() if step.out.batched] == [program.outputs["out"]]


def swung(x: Any) -> Any:
    angle, speed = x[0], x[1]
    for _ in range(10):
        mass = 1.0 + 0.1 * wengert.sin(angle) ** 2
        speed = speed - 0.05 * (wengert.sin(angle) * x[2] + 0.1 * speed * abs(speed)) / mass
        angle = angle + 0.05 * speed
    return angle


def shot(x: Any) -> Any:
    """Rows of a window, products by pairs, and a maximum."""
    pairs = list(itertools.pairwise(x))
    return [log(a * a + 1.0) * exp(-b) + wengert.maximum(a, b) for a, b in pairs] + [sum(a * b for a, b in pairs)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", [name for name in ("numpy", "native") if BACKENDS[name].is_available()])
@pytest.mark.parametrize(
    "derivative",
    [grad(swung), hessian(swung), jacobian(shot), hessian(lambda x: sum(shot(x)))],
    ids=["slope", "Hessian", "Jacobian", "Hessian of a sum"],
)
def test_steps_are_written_into_one_without_a_change_in_a_bit(
    derivative: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    xs = np.random.default_rng(3).normal(size=(4, 7))
    counts, results = [], []
    for inlined in (True, False):
        with monkeypatch.context() as patch:
            if not inlined:
                patch.setattr("wengert.compiler.record.derived.inline", lambda program: None)
            compiled = wengert.compile(derivative, backend=backend)
            results.append([*[compiled(x) for x in xs], compiled.map(xs)])
            counts.append(compiled._server.last.latest.kernel.program.size)
    assert counts[0] < counts[1]
    assert all(np.array_equal(one, other) for one, other in zip(*results, strict=True))


# -- what runs --------------------------------------------------------------------------------------------------------


def test_the_first_call_records_and_returns_what_the_program_gives() -> None:
    compiled = wengert.compile(hessian(lambda x: x[0] ** 2 * exp(x[1])))
    compiled([0.3, 2.0])
    entry = compiled._server.last
    assert (entry.calls, len(entry.specializations), entry.checks) == (1, 1, 1)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("make", [grad, jacobian, hessian])
@pytest.mark.parametrize("f", [lambda x: abs(x - 1.5), lambda x: x**3, lambda x: exp(2.0 * x)])
def test_of_one_number_with_respect_to_one(backend: str, make: Any, f: Any) -> None:
    compiled = wengert.compile(make(f), backend=backend)
    for x in (0.3, 0.4, 0.5):
        assert compiled(x) == pytest.approx(make(f)(x), rel=1e-12)


@pytest.mark.parametrize("make", [grad, value_and_grad, jacobian, hessian, hvp])
def test_the_first_call_is_compared_with_the_run_that_it_recorded(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.derivatives import grad as module

    def again(*_: Any, **__: Any) -> Any:
        raise AssertionError("the function ran a third time")

    def f(x: Any) -> Any:
        return x[0] ** 2 * exp(x[1])

    point = ([0.3, 2.0],) if make is not hvp else ([0.3, 2.0], [1.0, 0.5])
    compiled = wengert.compile(make(f))
    with monkeypatch.context() as patched:
        patched.setattr(module, "_Call", again)
        found = compiled(*point)
        wengert.compile(make(f)).prepare(*point)
    assert are_close(found, make(f)(*point))
    assert (compiled._server.last.checks, compiled.report().count("runs uncompiled")) == (1, 0)


def cumulated(x: Any) -> Any:
    for n in range(1, len(x)):
        x[n] = x[n] + x[n - 1] * x[n]
    return x[-1]


def appended(x: Any) -> Any:
    x.append(x[0] * x[1])
    x[0] *= 2.0
    return x.pop() * exp(x[0]) * x[-1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f", [cumulated, appended])
@pytest.mark.parametrize("make", [grad, value_and_grad, jacobian, hessian, hvp])
def test_a_function_may_change_its_own_containers(make: Any, f: Any) -> None:
    compiled = wengert.compile(make(f))
    for x in ([1.5, 2.0, 0.5], [0.5, 1.0, 0.25]) * 2:
        point = (x,) if make is not hvp else (x, [1.0, 0.5, 2.0])
        assert are_close(compiled(*point), make(f)(*point))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [2.0, Value(2.0)])
@pytest.mark.parametrize("make", [grad, value_and_grad, jacobian, hessian, hvp])
def test_the_first_call_may_be_inside_no_grad(make: Any, factor: Any) -> None:
    def f(x: Any) -> Any:
        return factor * x[0] ** 2 * exp(x[1])

    point = ([0.3, 2.0],) if make is not hvp else ([0.3, 2.0], [1.0, 0.5])
    compiled, other = wengert.compile(make(f)), wengert.compile(make(f))
    with wengert.no_grad():
        assert are_close(compiled(*point), make(f)(*point))
        rows = [np.array([x, x]) for x in point]
        made = other.map(*rows)
        for row in zip(*made, strict=True) if make is value_and_grad else made:
            assert are_close(row, make(f)(*point))


def test_an_argument_by_name_after_a_default() -> None:
    def f(x: Any, y: float = 2.0, z: float = 3.0) -> Any:
        return x * y * z * z

    for make in (grad, value_and_grad, jacobian):
        compiled = wengert.compile(make(f))
        assert [compiled(1.0, z=5.0) for _ in range(3)] == [make(f)(1.0, z=5.0)] * 3
    compiled = wengert.compile(grad(f, argnums=1))
    for _ in range(3):
        with pytest.raises(ArgumentError, match="argnums is 1, and f was called with 1 positional argument"):
            compiled(1.0)


def test_a_compiled_function_inside_while_a_profiler_runs() -> None:
    inner = wengert.compile(lambda x: x[0] ** 2 * exp(x[1]))
    inner([Value(0.3), Value(2.0)])
    inner([Value(0.3), Value(2.0)])
    outer = wengert.compile(hessian(lambda x: inner(x) * x[0]))
    sys.setprofile(lambda *_: None)
    try:
        found = outer([0.3, 2.0])
    finally:
        sys.setprofile(None)
    assert are_close(found, hessian(lambda x: x[0] ** 3 * exp(x[1]))([0.3, 2.0]))


def test_a_long_function_does_not_wait() -> None:
    x = [0.001 * n for n in range(1_500)]
    compiled = wengert.compile(grad(rosenbrock))
    assert are_close(compiled(x), grad(rosenbrock)(x))
    assert (compiled._server.last.calls, specializations(compiled)) == (1, 1)


def test_an_object_that_is_passed_twice() -> None:
    x = [3.0, 4.0]
    compiled = wengert.compile(grad(lambda a, b: a[0] * b[0] * b[1]))
    for point in ((x, x), ([3.0, 4.0], x), (x, x)):
        assert compiled(*point) == [12.0, 0.0]
    outer = wengert.compile(grad(lambda a: a[0] * x[0]))
    assert [outer(x) for _ in range(3)] == [[3.0, 0.0]] * 3


def test_an_argument_that_the_function_also_reads_from_outside() -> None:
    x = Value(3.0)
    compiled = wengert.compile(grad(lambda y: x * y))
    assert [compiled(point).data for point in (x, x, x, 2.0, 2.0, x)] == [3.0] * 6


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("make", [grad, value_and_grad, hessian, hvp, lambda f: jacobian(lambda x: [f(x), x[0]])])
def test_effects_are_those_of_the_derivative(make: Any) -> None:
    seen: list[float] = []

    def noting(x: Any) -> Any:
        seen.append(1.0)
        return x[0] ** 2 * exp(x[1])

    derivative = make(noting)
    compiled = wengert.compile(derivative)
    point = ([0.3, 2.0],) if make is not hvp else ([0.3, 2.0], [1.0, 0.0])
    for count in range(1, 6):
        assert are_close(compiled(*point), derivative(*point))
        assert len(seen) == 2 * count, "once for each of the two"
    assert "runs uncompiled" in compiled.report()


def test_a_wrong_program_is_found_by_a_product_with_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.record import differentiate

    def wrong(program: Any, names: Any, again: bool) -> None:
        taken(program, names, again)
        step = program.steps[-1]
        step.expr = ("mul", ("const", 1.0 + 1e-6), step.expr)

    taken = differentiate.jacobian
    monkeypatch.setattr(differentiate, "jacobian", wrong)
    compiled = wengert.compile(jacobian(lambda x: [x[0] * x[1], x[1] ** 2]))
    with pytest.warns(UserWarning, match="is dropped"):
        assert compiled([2.0, 3.0]) == [[3.0, 2.0], [0.0, 6.0]], "the function's own derivative"


def test_zeros_in_a_direction_are_no_other_program() -> None:
    compiled = wengert.compile(hvp(rosenbrock))
    x = [0.3, 2.0, 4.0, 1.0]
    columns = [compiled(x, [float(n == k) for n in range(4)]) for k in range(4)]
    assert are_close(columns, hessian(rosenbrock)(x))
    assert specializations(compiled) == 1


def test_a_direction_of_integers_or_of_another_kind_of_list() -> None:
    compiled, x = wengert.compile(hvp(rosenbrock)), [0.3, 2.0, 4.0]
    for v in ([1, 0, 2], (1.0, 0.0, 2.0), np.array([1.0, 0.0, 2.0]), [1.0, 0.0, 2.0]):
        for _ in range(3):
            assert are_close(compiled(x, v), hvp(rosenbrock)(x, v))
    assert specializations(compiled) == 4


def test_branches_are_those_of_the_function() -> None:
    def f(x: Any) -> Any:
        return x[0] ** 2 * x[1] if x[0] > x[1] else tanh(x[0] * x[1])

    compiled = same(hessian(f), [([2.0, 1.0],), ([1.0, 2.0],), ([0.5, 3.0],)], several=True)
    assert specializations(compiled) == 2
    assert len(compiled._server.latest().guards.guards) == 1


def test_expressions_do_not_explode() -> None:
    def layer(x: Any) -> Any:
        return tanh(1.1 * (x + exp(-x)))

    def nested(x: Any) -> Any:
        return layer(layer(layer(x)))

    sizes = []
    function: Any = nested
    for _ in range(4):
        compiled = wengert.compile(function)
        [compiled(0.3) for _ in range(3)]
        sizes.append(compiled._server.latest().kernel.program.size)
        function = grad(function)
    assert sizes[3] <= 40 * sizes[0]


def test_a_rule_that_would_explode_is_followed_operation_by_operation() -> None:
    """The slope of the normal quantile has polynomials for the tails: their third derivatives would take minutes."""
    third = ORDERS[3](lambda x: wengert.normal_ppf(x[0]))
    compiled = wengert.compile(third)
    for point in ([0.55], [0.6], [0.55]):
        assert are_close(compiled(point), third(point))
    assert "runs uncompiled" not in compiled.report()


def test_attributes_that_are_copied_make_no_derivative() -> None:
    slope = grad(lambda x: x**3)

    @functools.wraps(slope)
    def doubled(x: Any) -> Any:
        return 2.0 * slope(x)

    compiled = wengert.compile(doubled)
    assert [compiled(2.0) for _ in range(3)] == [24.0] * 3


def test_what_cannot_be_taken_of_the_program_is_recorded_itself() -> None:
    cube = wengert.op("cube_of_ones_own", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)

    def chosen(x: Any, table: Any, index: int) -> Any:
        return x * table[index] ** 2

    for derivative, point in (
        (grad(grad(lambda x: cube(x) * x)), (0.7,)),
        (grad(lambda x, scale=2.0: x**2 * scale, argnums=0), (3.0,)),
        (grad(chosen), (2.0, [1.0, 2.0, 3.0], 1)),
        (grad(lambda x: (x**2, x), has_aux=True), (3.0,)),
        (jacobian(lambda x, n: [x[0] * n, x[1] ** 2], argnums=-2), ([2.0, 3.0], 2)),
    ):
        compiled = wengert.compile(derivative)
        for _ in range(4):
            assert are_close(compiled(*point), derivative(*point))
        assert specializations(compiled) == 1


def test_errors_are_those_of_the_derivative() -> None:
    with pytest.raises(wengert.errors.ArgumentError, match=r"wengert\.jacobian differentiates several results"):
        wengert.compile(grad(lambda x: [x[0], x[1]]))([1.0, 2.0])
    with pytest.raises(wengert.errors.OperandError, match="is str 'two'"):
        wengert.compile(grad(lambda x: x["a"] ** 2))({"a": 2.0, "b": "two"})
    with pytest.raises(wengert.errors.LengthError):
        wengert.compile(hvp(rosenbrock))([1.0, 2.0], [1.0])
