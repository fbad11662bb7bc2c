"""Tables, linear systems and filled arrays in compiled functions: one program for all intervals and all pivots."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from tests.compiler.checks import specializations  # noqa: E402
from wengert import Table, Value, det, grad, hessian, interp, inv, jacobian, solve  # noqa: E402

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

BACKENDS = ["numpy", "native"]
DRAW = np.random.default_rng(5)
XS, YS = np.sort(DRAW.uniform(-2.0, 2.0, size=12)), DRAW.normal(size=12)
ZS, ROWS = np.array([0.0, 0.5, 1.5, 2.0]), DRAW.normal(size=(12, 4))
POINTS = np.stack([np.concatenate([DRAW.uniform(-3.0, 3.0, size=20), XS]), DRAW.uniform(-0.5, 2.5, size=32)], axis=1)

TABLES: dict[str, Any] = {
    "np.interp": lambda x: np.interp(x[0], XS, YS) * x[1] ** 2,
    "left and right": lambda x: interp(x[0], XS, YS, left=x[1] * x[0], right=-1.0),
    "period": lambda x: interp(x[0], XS, YS, period=1.3) * x[1],
    "array": lambda x: (interp(x, XS, YS) ** 2).sum(),
    "values": lambda x: interp(0.3, XS, x[0] * YS + x[1] ** 2),
    **{
        f"{kind}, {outside}": (lambda table: lambda x: table(x[0] * 1.1) * x[1])(Table(XS, YS, kind, outside))
        for kind in ("linear", "cubic", "pchip")
        for outside in ("constant", "linear")
    },
    "bilinear": (lambda table: lambda x: table(x[0], x[1]))(Table((XS, ZS), ROWS)),
    "bicubic": (lambda table: lambda x: table(x[0], x[1]))(Table((XS, ZS), ROWS, "cubic", "linear")),
}


def agree(function: Any, points: Any, backend: str, rel: float = 1e-9) -> Any:
    """Single calls and a batch give what the function gives, by one specialization; the compiled function."""
    compiled = wengert.compile(function, backend=backend)
    want = np.array([function(x) for x in points], float)
    scale = rel * max(np.abs(want).max(), 1.0)
    assert np.array([compiled(x) for x in points], float) == pytest.approx(want, rel=rel, abs=scale)
    for _ in range(2):
        assert compiled.map(points) == pytest.approx(want, rel=rel, abs=scale)
    assert "uncompiled" not in compiled.report()
    assert specializations(compiled) == [1, 1], compiled.report()  # for single calls, and for batches
    return compiled


@pytest.mark.sampled(10)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", TABLES)
def test_tables_have_one_program_and_no_guard(name: str, backend: str) -> None:
    function = TABLES[name]
    for derivative in (function, grad(function), hessian(function)):
        assert ("guard" in agree(derivative, POINTS, backend).report()) is (
            name == "period"
        )  # that the points are sorted


def test_points_and_values_may_be_arguments() -> None:
    def function(x: Any, xs: Any, ys: Any) -> Any:
        return np.interp(x, xs, ys)

    compiled = wengert.compile(function)
    slopes = grad(lambda x, xs, ys: interp(x, xs, ys), argnums=(0, 1, 2))
    derived = wengert.compile(slopes)
    for _ in range(6):
        call = DRAW.normal(), np.sort(DRAW.normal(size=4)), DRAW.normal(size=4)
        assert compiled(*call) == pytest.approx(function(*call), rel=1e-12)
        for got, want in zip(derived(*call), slopes(*call), strict=True):
            assert got == pytest.approx(want, rel=1e-11, abs=1e-13)
    assert specializations(compiled) == specializations(derived) == [1]


def test_outside_of_a_table_the_error_is_raised() -> None:
    table = Table(XS, YS, "cubic", extrapolation="error")
    compiled = wengert.compile(lambda x: table(x) ** 2)
    for _ in range(2):
        for x in (-1.0, 0.1, 1.0):
            assert compiled(x) == pytest.approx(table(x) ** 2, rel=1e-12)
        with pytest.raises(wengert.errors.ArgumentError, match=r"5\.0 is outside of the table"):
            compiled(5.0)


def test_the_values_of_a_table_are_trained() -> None:
    """Values in a table are parameters of the program, as any others."""
    ys = [Value(0.0) for _ in XS]

    def loss(x: Any) -> Any:
        return (Table(XS, ys, "cubic")(x) - x * x) ** 2

    compiled = wengert.compile(loss)
    for x in (-1.0, 0.5, 1.2):
        for v in ys:
            v.grad = 0.0
        compiled(x).backward()
        got = [v.grad for v in ys]
        for v in ys:
            v.grad = 0.0
        loss(x).backward()
        assert got == pytest.approx([v.grad for v in ys], rel=1e-12, abs=1e-14)
    assert specializations(compiled) == [1]


# -- linear systems ---------------------------------------------------------------------------------------------------


def matrices(n: int) -> Any:
    """Some that need other pivots, one after another."""
    made = [DRAW.normal(size=(n, n)) for _ in range(6)]
    made += [np.eye(n)[DRAW.permutation(n)] * (1.0 + k) for k in range(3)]
    return np.array([*made, np.triu(made[0])[::-1]])


SYSTEMS: dict[str, Any] = {
    "solve": lambda a: solve(a, np.arange(1.0, len(a) + 1.0)) @ (a[0] * a[-1]),
    "its own right side": lambda a: solve(a @ a, a[:, 0]) @ (a[0] * a[-1]),
    "inv": lambda a: (inv(a) * inv(a)).sum(),
    "det": lambda a: det(a) * det(a),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_have_one_program_for_all_pivots(name: str, backend: str) -> None:
    function = SYSTEMS[name]
    for n in (1, 2, 4):
        points = matrices(n)
        agree(function, points, backend)
        agree(grad(function), points, backend)
    agree(hessian(function), matrices(2), backend)


def test_third_derivatives() -> None:
    third = grad(grad(grad(lambda x: solve([[x, 1.0], [1.0, x]], [1.0, 0.0])[0])))
    compiled = wengert.compile(third)
    for x in (1.5, 2.0, -3.0):
        assert compiled(x) == pytest.approx(-3.0 * ((x - 1.0) ** -4 + (x + 1.0) ** -4), rel=1e-10)
    assert "uncompiled" not in compiled.report()


def test_of_numbers_numpys_functions_are_compiled() -> None:
    functions = [lambda a: np.linalg.solve(a, a[0]), lambda a: np.linalg.inv(a), lambda a: np.linalg.det(a)]
    for function in functions:
        agree(function, matrices(3)[:6], "numpy")


def test_entries_may_be_parameters() -> None:
    k = Value(2.0)

    def function(b: Any) -> Any:
        return solve([[k, 1.0], [1.0, k * k]], b)[0]

    compiled = wengert.compile(function)
    for number in (2.0, 3.0, 0.5):
        k.data = number
        slopes = []
        for f in (function, compiled):
            k.grad = 0.0
            f(np.array([1.0, 3.0])).backward()
            slopes.append(k.grad)
        assert slopes[1] == pytest.approx(slopes[0], rel=1e-12)
    assert specializations(compiled) == [1]


@pytest.mark.mpmath
@pytest.mark.parametrize("backend", BACKENDS)
def test_ill_conditioned_systems_are_solved_as_well_as_by_lapack(backend: str) -> None:
    import mpmath

    n = 6
    compiled = wengert.compile(lambda a, b: solve(a, b), backend=backend)
    matrix = 1.0 / (1.0 + np.add.outer(np.arange(n), np.arange(n)))
    cases = [matrix, matrix[::-1] * 10.0 ** np.arange(-6, 6, 2), np.where(np.eye(n), 1e-18, matrix)]
    for a in cases * 2:
        b = DRAW.normal(size=n)
        with mpmath.workdps(50):
            want = np.array(mpmath.lu_solve(mpmath.matrix(a.tolist()), mpmath.matrix(b.tolist())), float).reshape(-1)
        bound = 10.0 * n * np.finfo(float).eps * np.linalg.cond(a / np.abs(a).max(axis=1)[:, None], 2)
        assert np.abs(compiled(a, b) - want).max() <= bound * np.abs(want).max()
    assert specializations(compiled) == [1]


def test_a_singular_system_is_numpys_error() -> None:
    compiled = wengert.compile(lambda a: solve(a, [1.0, 1.0]))
    good, singular = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 2.0], [2.0, 4.0]])
    for a in (good, good, good):
        assert compiled(a) == pytest.approx(np.linalg.solve(a, [1.0, 1.0]))
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            compiled(singular)
    derived = wengert.compile(grad(lambda a: det(a)))
    for a in (good, singular, np.zeros((2, 2)), good):
        assert derived(a) == pytest.approx(np.array([[a[1, 1], -a[1, 0]], [-a[0, 1], a[0, 0]]]), abs=1e-14)


def test_large_systems_run_uncompiled_and_say_so() -> None:
    a, b = DRAW.normal(size=(13, 13)), DRAW.normal(size=13)
    compiled = wengert.compile(lambda a, b: solve(a, b))
    with pytest.warns(UserWarning, match="solves a system of 13 unknowns, where a compiled function takes at most 12"):
        assert compiled(a, b) == pytest.approx(np.linalg.solve(a, b))
    assert jacobian(lambda b: solve(a, b))(b) == pytest.approx(np.linalg.inv(a), rel=1e-9)


# -- arrays that are filled -------------------------------------------------------------------------------------------


def parts(x: Any) -> Any:
    z = np.zeros(3)
    z[0], z[1:] = x[0], x * x[1]
    z[2] += x[0]
    return z


def matrix(x: Any) -> Any:
    z = np.empty((2, 2))
    z[0, 0], z[0, 1], z[1] = x[0], 1, x
    return np.linalg.det(z) + np.exp(z).sum() + (z @ x)[0]


def filtered(x: Any) -> Any:
    z = np.zeros_like(x)
    for i in range(1, len(x)):
        z[i] = z[i - 1] * 0.5 + x[i]
    return z / np.linalg.norm(z)


def derived(x: Any) -> Any:
    z = np.zeros(4)
    ones, twos = z + 1.0, np.ones(3) * 2
    ones[0], twos[1] = x
    return ones.sum() + twos.max() + np.exp(twos)[0] + np.sqrt(z).sum()


def through_a_view(x: Any) -> Any:
    z = np.zeros(2)
    w = z[:]
    w[0] = x[0]
    w *= 2.0
    w += x
    z[x > 0.5] = 3.0
    return z


def of_its_type(x: Any) -> Any:
    """An array of floats divides like one, and makes floats of what is assigned."""
    z = np.zeros(2)
    z[0], z[1] = 1, x[1] > 0.0
    with np.errstate(divide="ignore"):
        return x[0] / (z - 1.0) * z


def read_meanwhile(x: Any) -> Any:
    z = np.zeros(4)
    z[0], total = x[0], 0.0
    for n, item in enumerate(z):
        z[(n + 1) % 4] = item * x[1]
        total += item
    return total


@pytest.mark.parametrize("function", [parts, matrix, filtered, derived, through_a_view, of_its_type, read_meanwhile])
def test_arrays_are_filled_in_place(function: Any) -> None:
    points = DRAW.uniform(0.1, 1.0, size=(6, 2))
    compiled = wengert.compile(function)
    for x in points:
        assert np.array_equal(compiled(x), function(x)) or compiled(x) == pytest.approx(function(x), rel=1e-12)
        assert type(compiled(x)) is type(function(x))
    assert compiled.map(points) == pytest.approx(np.array([function(x) for x in points]), rel=1e-12)
    assert "uncompiled" not in compiled.report()
    assert " was 0" not in compiled.report()  # no guard of a number


def test_items_of_an_array_of_a_numpy_type_are_of_that_type() -> None:
    """A loop over ``x.astype(bool)`` reads `np.bool_`: ``~np.True_`` is 0, and ``~True`` would be -2."""

    def function(x: Any) -> Any:
        inverted = sum([x[0] * float(~k) for k in x[1:].astype(bool)])
        return inverted + sum([x[i.item()] for i in np.argsort(x)])

    compiled = wengert.compile(function)
    for x in ([0.0, 2.0], [1.0, 2.0], [3.0, 4.0], [3.0, 0.0]) * 3:
        assert compiled(np.array(x)) == function(np.array(x))
    assert "uncompiled" not in compiled.report()


def test_a_filled_array_is_one_of_floats() -> None:
    def function(x: Any) -> Any:
        z = np.zeros((2, 2))
        z[0, 1] = x[0]
        return {"z": z, "sum": float(z.sum()), "list": z.tolist(), "dtype": z.dtype.name, "T": z.T.copy()}

    compiled = wengert.compile(function)
    for _ in range(4):
        x = DRAW.normal(size=2)
        got, want = compiled(x), function(x)
        assert [type(y) for y in got.values()] == [type(y) for y in want.values()]
        assert all(np.array_equal(got[key], want[key]) for key in want)
    assert "uncompiled" not in compiled.report()


def test_arrays_of_objects_are_filled_in_place() -> None:
    def filled(x: Any) -> Any:
        z = np.zeros(3, dtype=object)
        z[0], z[1:] = x[0] * x[1], x
        for i in range(2):
            z[i] += x[i] ** 2
        return (z * z).sum() + z @ np.arange(3.0)

    for backend in ("numpy", "auto"):
        for derivative in (filled, grad(filled), hessian(filled)):
            agree(derivative, DRAW.normal(size=(5, 2)), backend)
