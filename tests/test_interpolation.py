"""`interp` and `Table`, beside NumPy, SciPy and differences."""

from __future__ import annotations

import math
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from wengert import Table, Value, grad, hessian, interp, jacobian  # noqa: E402
from wengert.errors import ArgumentError, LengthError, OperandError  # noqa: E402

DRAW = np.random.default_rng(0)
XS = np.sort(DRAW.uniform(-2.0, 2.0, size=9))
YS = DRAW.normal(size=9)
AT = np.concatenate([np.linspace(-2.5, 2.5, 41), XS])  # inside, at the points, and outside
ROWS = DRAW.normal(size=(9, 5))
ZS = np.array([0.0, 0.5, 1.5, 2.0, 4.0])


def slope(x: float) -> float:
    """Of the straight line in the interval to the right of x, to the left of the last point, 0 outside."""
    if not XS[0] <= x <= XS[-1]:
        return 0.0
    i = min(int(np.searchsorted(XS, x, "right")) - 1, len(XS) - 2)
    return float((YS[i + 1] - YS[i]) / (XS[i + 1] - XS[i]))


@pytest.mark.parametrize("sides", [{}, {"left": -3.0}, {"right": 5.0}, {"left": 1.0, "right": 2.0}, {"period": 1.7}])
def test_interp_is_numpys(sides: Any) -> None:
    want = np.interp(AT, XS, YS, **sides)
    assert np.array_equal(interp(AT, XS, YS, **sides), want)
    assert [interp(Value(x), XS, YS, **sides).data for x in AT] == pytest.approx(want, rel=1e-13, abs=1e-14)
    assert [np.interp(Value(x), XS, YS, **sides).data for x in AT] == pytest.approx(want, rel=1e-13, abs=1e-14)
    if "period" not in sides:
        got = [grad(lambda x: interp(x, XS, YS, **sides))(x) for x in AT]
        assert got == pytest.approx([slope(x) for x in AT], rel=1e-13)


def test_interp_takes_values_in_any_argument() -> None:
    x, xs, ys = 0.4, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]
    assert grad(interp, argnums=2)(x, xs, ys) == pytest.approx([0.6, 0.4, 0.0])
    assert grad(interp, argnums=1)(x, xs, ys) == pytest.approx([-1.2, -0.8, 0.0])
    assert grad(interp, argnums=3)(-1.0, xs, ys, 7.0) == 1.0
    assert grad(interp, argnums=(0, 3))(0.5, xs, ys, 7.0) == (2.0, 0.0)
    points = np.array([[0.5, 1.5], [0.0, 2.5]])
    assert grad(lambda x: interp(x, xs, ys).sum())(points).tolist() == [[2.0, -1.0], [2.0, 0.0]]
    first, second = interp([Value(0.5), 1.5], xs, ys)
    assert (first.data, second) == (2.0, 2.5)
    assert np.array_equal(
        jacobian(lambda y: interp([0.5, 2.0], xs, y))(np.array(ys)), [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    )


def test_outside_the_result_still_has_a_graph() -> None:
    x = Value(9.0)
    y = interp(x, XS, YS, right=2.0)
    y.backward()
    assert (y.data, x.grad) == (2.0, 0.0)
    assert math.isnan(interp(Value(math.nan), XS, YS).data)


@pytest.mark.parametrize("kind", ["linear", "cubic", "pchip"])
def test_a_table_is_scipys(kind: str) -> None:
    interpolate = pytest.importorskip("scipy.interpolate")
    inside = AT[(XS[0] <= AT) & (XS[-1] >= AT)]
    if kind == "linear":
        other: Any = lambda x: np.interp(x, XS, YS)  # noqa: E731
    elif kind == "cubic":
        other = interpolate.CubicHermiteSpline(XS, YS, np.gradient(YS, XS, edge_order=2))
    else:
        other = interpolate.PchipInterpolator(XS, YS)
    table = Table(XS, YS, kind)
    assert table(inside) == pytest.approx(other(inside), rel=1e-12, abs=1e-13)
    assert [table(x) for x in inside] == pytest.approx(other(inside), rel=1e-12, abs=1e-13)
    assert [table(Value(x)).data for x in inside] == pytest.approx(other(inside), rel=1e-12, abs=1e-13)
    assert table(XS).tolist() == YS.tolist()
    if kind != "linear":
        between = XS[:-1] + 0.4 * np.diff(XS)
        derivative: Any = table
        for order in (1, 2, 3):
            derivative = grad(derivative)
            points = inside if order == 1 else between
            assert [derivative(x) for x in points] == pytest.approx(other.derivative(order)(points), rel=1e-9, abs=1e-9)


def test_catmull_and_rom_for_equal_distances() -> None:
    ys = [0.0, 1.0, 5.0, 2.0]
    t = 0.3
    p0, p1, p2, p3 = ys
    want = 0.5 * (2 * p1 + (p2 - p0) * t + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t**2 + (3 * p1 - p0 - 3 * p2 + p3) * t**3)
    assert Table([0.0, 1.0, 2.0, 3.0], ys, "cubic")(1.3) == pytest.approx(want, rel=1e-14)


def test_pchip_does_not_overshoot() -> None:
    steps = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    table = Table(range(6), steps, "pchip")
    found = table(np.linspace(0.0, 5.0, 501))
    assert found.min() == 0.0
    assert found.max() == pytest.approx(1.0, rel=1e-15)
    assert (np.diff(found) >= -1e-15).all()


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_two_arguments(kind: str) -> None:
    """Along one argument, at a point of the other, it is the table of one argument; between, bilinear or bicubic."""
    table = Table((XS, ZS), ROWS, kind)
    grid = Table((XS, ZS), ROWS, kind)(*np.meshgrid(XS, ZS, indexing="ij"))
    assert np.array_equal(grid, ROWS)
    for j, z in enumerate(ZS):
        assert [table(x, z) for x in AT] == pytest.approx(Table(XS, ROWS[:, j], kind)(AT), rel=1e-12, abs=1e-13)
    for i, x in enumerate(XS):
        assert [table(x, z) for z in ZS + 0.3] == pytest.approx(
            Table(ZS, ROWS[i], kind)(ZS + 0.3), rel=1e-12, abs=1e-13
        )
    x, z = 0.31, 1.1
    rows = [Table(ZS, row, kind)(z) for row in ROWS]  # the rules of both kinds are linear in the values
    assert table(x, z) == pytest.approx(Table(XS, rows, kind)(x), rel=1e-13)
    h = 1e-4
    slopes = grad(table, argnums=(0, 1))(x, z)
    assert slopes[0] == pytest.approx((table(x + h, z) - table(x - h, z)) / (2 * h), rel=1e-6)
    assert slopes[1] == pytest.approx((table(x, z + h) - table(x, z - h)) / (2 * h), rel=1e-6)
    mixed = hessian(table, argnums=(0, 1))(x, z)[0][1]
    corners = table(x + h, z + h) - table(x + h, z - h) - table(x - h, z + h) + table(x - h, z - h)
    assert mixed == pytest.approx(corners / (4 * h * h), rel=1e-5)


def test_bilinear_is_scipys() -> None:
    interpolate = pytest.importorskip("scipy.interpolate")
    x, z = DRAW.uniform(XS[0], XS[-1], size=50), DRAW.uniform(0.0, 4.0, size=50)
    want = interpolate.RegularGridInterpolator((XS, ZS), ROWS)(np.stack([x, z], axis=1))
    assert Table((XS, ZS), ROWS)(x, z) == pytest.approx(want, rel=1e-12, abs=1e-13)


def test_bicubic_slopes_are_continuous() -> None:
    slopes = grad(Table((XS, ZS), ROWS, "cubic"), argnums=(0, 1))
    for x in XS[1:-1]:
        for z in (0.2, *ZS[1:-1]):
            here = slopes(x, z)
            for dx, dz in ((1e-9, 0.0), (-1e-9, 0.0), (0.0, 1e-9), (0.0, -1e-9)):
                assert slopes(x + dx, z + dz) == pytest.approx(here, rel=1e-6, abs=1e-6)


def test_outside_of_a_table() -> None:
    for kind in ("linear", "cubic", "pchip"):
        table = Table(XS, YS, kind, "linear")
        for end, value, away in ((XS[0], YS[0], -1.5), (XS[-1], YS[-1], 1.5)):
            at_end = grad(table)(end)
            assert table(end + away) == pytest.approx(value + away * at_end, rel=1e-12)
            assert grad(table)(end + away) == pytest.approx(at_end, rel=1e-12)
            assert grad(grad(table))(end + away) == pytest.approx(0.0, abs=1e-9)
            assert table(np.array([end + away])).tolist() == [table(end + away)]
            constant = Table(XS, YS, kind)
            assert (constant(end + away), grad(constant)(end + away)) == (value, 0.0)
            assert grad(constant)(end) == pytest.approx(at_end, rel=1e-12)
    plane = Table(([0.0, 1.0, 3.0], [0.0, 2.0]), [[0.0, 4.0], [1.0, 5.0], [3.0, 7.0]], "cubic", "linear")  # x + 2 y
    assert plane(-2.0, 5.0) == pytest.approx(8.0)
    assert grad(plane, argnums=(0, 1))(7.0, -1.0) == pytest.approx((1.0, 2.0))
    strict = Table((XS, ZS), ROWS, extrapolation="error")
    for x in (Value(9.0), 9.0, np.array([0.0, 9.0])):
        with pytest.raises(ArgumentError, match="outside of the table, which has the points from "):
            strict(x, 1.0)


def test_the_values_of_a_table_may_be_values() -> None:
    ys = [Value(y) for y in YS]
    for kind in ("linear", "cubic"):
        for v in ys:
            v.grad = 0.0
        Table(XS, ys, kind)(0.3).backward()
        unit = [Table(XS, np.eye(9)[i], kind)(0.3) for i in range(9)]
        assert [v.grad for v in ys] == pytest.approx(unit, abs=1e-14)


def test_tables_take_arrays_and_lists() -> None:
    table = Table((XS, ZS), ROWS, "cubic")
    got = table(np.array([[0.1], [0.2]]), ZS)
    assert got.shape == (2, 5)
    assert got[1, 3] == pytest.approx(table(0.2, 2.0))
    assert table([0.1, 0.2], 1.0)[1] == table(0.2, 1.0)
    assert jacobian(lambda x: table(x, x))(np.array([0.1, 0.9])).shape == (2, 2)
    assert repr(table) == "<table of 9 x 5 points, cubic, extrapolation: constant>"
    assert Table([0.0, 2.0], [1.0, 5.0], "cubic")(0.5) == Table([0.0, 2.0], [1.0, 5.0], "pchip")(0.5) == 2.0


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Table([0.0, 2.0, 1.0], [0.0] * 3), ArgumentError, r"points\[2\] is 1.0; expected more than 2.0: sort"),
        (lambda: Table([0.0, 0.0], [0.0] * 2), ArgumentError, r"points\[1\] is 0.0; expected more than 0.0"),
        (lambda: Table([0.0, math.nan], [0.0] * 2), ArgumentError, r"points\[1\] is nan; expected finite numbers"),
        (lambda: Table([0.0, 1.0], [0.0, math.inf]), ArgumentError, "value 1 is inf; expected finite numbers"),
        (lambda: Table([0.0], [0.0]), LengthError, "points has 1 points; expected a list of at least two numbers"),
        (lambda: Table([0.0, 1.0], [0.0] * 3), LengthError, r"the shape \(3,\); expected \(2,\)"),
        (lambda: Table((XS, ZS), ROWS.T), LengthError, r"the shape \(5, 9\); expected \(9, 5\)"),
        (lambda: Table(XS, YS, "spline"), ArgumentError, "kind is 'spline'; expected one of 'linear', 'cubic'"),
        (lambda: Table(XS, YS, extrapolation="nan"), ArgumentError, "extrapolation is 'nan'; expected one"),
        (lambda: Table((XS, ZS), ROWS, "pchip"), ArgumentError, 'takes one argument and no Values: use kind="cubic"'),
        (lambda: Table(XS, YS)(1.0, 2.0), ArgumentError, "the table has 1 arguments, and got 2"),
        (lambda: Table(XS, YS)("1"), OperandError, "expected one real number, not str '1'"),
        (lambda: interp(Value(1.0), [1.0, 0.0], [0.0, 1.0]), ArgumentError, r"xp\[1\] is 0.0; expected more than 1.0"),
        (lambda: interp(Value(1.0), [0.0, 1.0], [0.0]), LengthError, "xp has 2 points, and fp is list"),
        (lambda: interp(Value(1.0), [0.0], [0.0]), LengthError, "xp has 1 points"),
        (lambda: interp(1.0, [Value(0.0), 1.0], [0.0, 1.0], period=2.0), OperandError, "the points and the period"),
    ],
)  # fmt: skip
def test_bad_inputs_are_named(make: Any, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_numpys_other_functions_take_values_as_before() -> None:
    v, w = Value(2.0), Value(3.0)
    assert np.where(np.array([True, False]), v, w).tolist() == [v, w]
    assert np.stack([v, w]).tolist() == [v, w]
    assert np.linalg.norm([v, w]).data == pytest.approx(math.sqrt(13.0))
    assert wengert.grad(lambda x: np.sum(np.where(x > 0.0, x, 0.0)))(2.0) == 1.0
