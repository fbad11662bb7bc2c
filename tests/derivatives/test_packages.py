"""Derivatives of code that others have written, called as it is: geodesy, colours, finance, statistics, and what is
written in Python of NumPy and SciPy.

The packages compute with plain numbers; they are compared with difference quotients of the functions themselves.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import specializations
from tests.derivatives.quotients import differences, near, number

np = pytest.importorskip("numpy")
scipy = pytest.importorskip("scipy")
scipy_integrate = pytest.importorskip("scipy.integrate")
scipy_interpolate = pytest.importorskip("scipy.interpolate")
scipy_signal = pytest.importorskip("scipy.signal")
geodesic = pytest.importorskip("geographiclib.geodesic", reason="geographiclib is not installed")
hsluv = pytest.importorskip("hsluv", reason="hsluv is not installed")
npf = pytest.importorskip("numpy_financial", reason="numpy-financial is not installed")
sympy = pytest.importorskip("sympy", reason="SymPy is not installed")

Numbers = list[float]
WGS84 = geodesic.Geodesic.WGS84
STEPS = (1e-3, 3e-4, 1e-4)  # of difference quotients, relative
X, Y, Z = sympy.symbols("x y z")
SMOOTH = sympy.lambdify((X, Y, Z), sympy.exp(X * Y) * sympy.sin(Z) + sympy.sqrt(X**2 + Y**2) + sympy.erf(Z), "math")
PIECES = sympy.lambdify((X, Y, Z), sympy.Piecewise((X**2, X < 1), (Y * Z, True)) + sympy.Max(X, Y), "math")


def area(p: Numbers) -> float:
    polygon = WGS84.Polygon()
    for latitude, longitude in zip(p[::2], p[1::2], strict=True):
        polygon.AddPoint(latitude, longitude)
    return float(polygon.Compute()[2])


def distance_on(p: Numbers) -> float:
    return float(geodesic.Geodesic(6378137.0 + p[0], 1 / 298.0).Inverse(p[1], 2.0, p[2], 9.0)["s12"])


def annuity(p: Numbers) -> float:
    return float(npf.pmt(p[0] / 12, 12 * p[1], p[2], p[3]))


def integral(p: Numbers) -> float:
    return float(scipy_integrate.fixed_quad(lambda x: np.exp(-p[0] * x) * p[1], 0.0, p[2])[0])


PLACES = [[40.6, -73.8, 51.6, -0.5], [48.9, 2.3, 40.0, -70.0], [-33.9, 18.4, 1.3, 103.9], [10.0, 20.0, 30.0, 40.0]]
COURSES = [[40.6, -73.8, 50.0, 5e6], [-33.9, 18.4, 100.0, 2e6], [10.0, 20.0, 30.0, 1e5]]
TRIANGLES = [[10.0, 20.0, 11.0, 25.0, 14.0, 22.0], [-10.5, 20.0, -11.0, 25.5, -7.0, 22.0]]
COLOURS = [[0.2, 0.5, 0.7], [0.9, 0.3, 0.2], [0.1, 0.2, 0.4]]
SHADES = [[30.0, 60.0, 50.0], [200.0, 40.0, 60.0], [120.0, 80.0, 30.0], [300.0, 70.0, 70.0]]
LOANS = [[0.05, 10.0, 1000.0, -10.0], [0.06, 12.0, 1100.0, 0.0], [0.021, 30.0, 9e5, 100.0]]
POINTS = [[0.7, 1.3, 1.9], [0.8, 1.1, 1.7], [0.75, 1.41, 2.2], [0.9, 1.2, 1.65]]
QS = [1.0, 2.0, 5.0]

FUNCTIONS: dict[str, tuple[Callable[[Numbers], Any], list[Numbers]]] = {
    # geographiclib: geodesics on an ellipsoid, by Karney
    "distance": (lambda p: WGS84.Inverse(*p)["s12"], PLACES),
    "azimuth": (lambda p: WGS84.Inverse(*p)["azi1"], PLACES),
    "latitude there": (lambda p: WGS84.Direct(*p)["lat2"], COURSES),
    "longitude there": (lambda p: WGS84.Direct(*p)["lon2"], COURSES),
    "area": (area, TRIANGLES),
    "ellipsoid": (distance_on, POINTS),
    # hsluv: colours as humans see them
    "hsluv_to_lch": (lambda p: sum(hsluv.hsluv_to_lch(p)), SHADES),
    "lch_to_rgb": (lambda p: hsluv.lch_to_rgb(hsluv.hsluv_to_lch(p))[1], SHADES),
    "rgb_to_lch": (lambda p: sum(hsluv.rgb_to_lch(p)), COLOURS),
    "rgb_to_hsluv": (lambda p: sum(hsluv.rgb_to_hsluv(p)), COLOURS),
    "rgb_to_hpluv": (lambda p: sum(hsluv.rgb_to_hpluv(p)), COLOURS),
    # numpy-financial
    "fv": (lambda p: float(npf.fv(p[0], p[1], -p[2] / 10, p[3])), LOANS),
    "pmt": (annuity, LOANS),
    "ipmt": (lambda p: float(npf.ipmt(p[0] / 12, 3, 12 * p[1], p[2])), LOANS),
    "ppmt": (lambda p: float(npf.ppmt(p[0] / 12, 3, 12 * p[1], p[2])), LOANS),
    "pv": (lambda p: float(npf.pv(p[0], p[1], -p[2], p[3])), LOANS),
    "rate": (lambda p: float(npf.rate(10.0, -p[1] * 15, p[2], 0.0)), LOANS[:2]),
    # statistics
    "linear_regression": (lambda p: statistics.linear_regression(QS, p).slope * p[0], POINTS),
    "covariance": (lambda p: statistics.covariance(QS, p) * p[0], POINTS),
    "correlation": (lambda p: statistics.correlation(QS, p), POINTS),
    "quantiles": (lambda p: statistics.quantiles(p)[0], POINTS),
    "overlap": (
        lambda p: statistics.NormalDist(p[0], p[1]).overlap(statistics.NormalDist(p[1], p[2])),
        POINTS,
    ),
    # SciPy
    "simpson": (lambda p: float(scipy_integrate.simpson(np.exp(np.array(p)))), POINTS),
    "trapezoid": (lambda p: float(scipy_integrate.trapezoid(p, QS)) ** 2, POINTS),
    "fixed_quad": (integral, POINTS),
    "krogh_interpolate": (lambda p: float(scipy_interpolate.krogh_interpolate([0.0, 1.0, 2.0], p, 0.5)), POINTS),
    "interp1d": (lambda p: float(scipy_interpolate.interp1d([0.0, 1.0, 2.0], p)(0.5)), POINTS),
    "gausspulse": (lambda p: float(scipy_signal.gausspulse(p[0] / 10, fc=2.0)), POINTS),
    "chirp": (lambda p: float(scipy_signal.chirp(p[0], p[1], 2.0, p[2])), POINTS),
    "convert_temperature": (lambda p: float(scipy.constants.convert_temperature(p[0], "C", "F")) * p[1], POINTS),
    # NumPy
    "chebval": (lambda p: float(np.polynomial.chebyshev.chebval(0.3 * p[0], p)), POINTS),
    "legval": (lambda p: float(np.polynomial.legendre.legval(0.3 * p[0], p)), POINTS),
    "Polynomial": (lambda p: float(np.polynomial.Polynomial(p)(0.7 * p[0])), POINTS),
    "polyder": (lambda p: float(np.polyval(np.polyder(np.poly1d(p)), p[0])), POINTS),
    "cross": (lambda p: float(np.cross(p, QS)[0]) ** 2, POINTS),
    "average": (lambda p: float(np.average(p, weights=QS)) ** 2, POINTS),
    "convolve": (lambda p: float(np.convolve(p, p)[1]), POINTS),
    "unwrap": (lambda p: float(np.unwrap(4 * np.array(p)).prod()), POINTS),
    "piecewise": (
        lambda p: float(np.piecewise(np.array(p), [np.array(p) < 1.0], [lambda x: x**2, lambda x: x]).sum()) * p[0],
        POINTS,
    ),
    # what SymPy writes, and a heap
    "lambdify": (lambda p: SMOOTH(*p), POINTS),
    "lambdify, pieces": (lambda p: PIECES(*p), POINTS),
    "nlargest": (lambda p: sum(heapq.nlargest(2, p)) * math.exp(p[0]), POINTS),
}


def close(want: Numbers) -> Any:
    """Near difference quotients, which have few digits beside much larger ones."""
    return pytest.approx(want, rel=1e-6, abs=1e-7 * (1.0 + max(map(abs, want))))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_packages(name: str) -> None:
    function, points = FUNCTIONS[name]
    gradient, both = wengert.grad(function), wengert.value_and_grad(function)
    product, rows = wengert.hvp(function), wengert.jacobian(lambda p: [function(p), 2.0 * function(p)])
    for point in points:
        want = differences(function, point, STEPS)
        assert gradient(list(point)) == close(want)
        value, slopes = both(list(point))
        assert value == pytest.approx(number(function(list(point))), rel=1e-14)
        assert slopes == gradient(list(point))
    start, slopes = points[0], gradient(list(points[0]))
    assert rows(list(start)) == [close(slopes), close([2.0 * x for x in slopes])]
    direction = [0.01 * (abs(x) or 1.0) * (1.0 + 0.3 * n) for n, x in enumerate(start)]

    def slope_along(n: int, step: float) -> float:
        return gradient([x + step * y for x, y in zip(start, direction, strict=True)])[n]

    wanted = [differences(lambda t, n=n: slope_along(n, t[0]), [0.0])[0] for n in range(len(start))]
    assert product(list(start), direction) == close(wanted)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_compiled_as_the_functions_are(name: str) -> None:
    """With as many specializations; long ones run themselves until compiling them is worth while."""
    function, points = FUNCTIONS[name]
    compiled, gradient = wengert.compile(function), wengert.compile(wengert.grad(function))
    for point in [*points, *points, *points]:
        assert compiled(list(point)) == pytest.approx(number(function(list(point))), rel=1e-13)
        assert gradient(list(point)) == close(differences(function, point, STEPS))
    [of_function], [of_gradient] = map(specializations, (compiled, gradient))
    if not of_gradient:
        assert "recorded: the function itself runs until" in gradient.report()
    assert of_gradient <= of_function or not of_function


def test_the_derivative_of_a_long_function_is_soon_compiled() -> None:
    """Uncompiled it is recorded at each call, which takes as long as many runs of the function itself."""
    gradient = wengert.compile(wengert.grad(FUNCTIONS["distance"][0]))
    for n in range(40):
        gradient([40.6, -73.8 + 0.1 * n, 51.6, -0.5])
    assert specializations(gradient) == [1]


def test_a_geodesic_has_the_slopes_that_its_azimuths_say() -> None:
    """Of a distance on an ellipsoid the derivatives are known: a step to the north is longer by its cosine."""
    for point in PLACES:
        line = WGS84.Inverse(*point)
        slopes = wengert.grad(FUNCTIONS["distance"][0])(list(point))
        for n, azimuth, sign in ((0, line["azi1"], -1.0), (2, line["azi2"], 1.0)):
            latitude = math.radians(point[n])
            north, east = radii(latitude)
            sine, cosine = math.sin(math.radians(azimuth)), math.cos(math.radians(azimuth))
            want = [sign * north * cosine * math.radians(1.0), sign * east * sine * math.radians(1.0)]
            assert slopes[n : n + 2] == pytest.approx(want, rel=1e-11)


def radii(latitude: float) -> tuple[float, float]:
    """How long a radian is to the north, and to the east."""
    flattening = WGS84.f * (2.0 - WGS84.f)
    root = math.sqrt(1.0 - flattening * math.sin(latitude) ** 2)
    return WGS84.a * (1.0 - flattening) / root**3, WGS84.a * math.cos(latitude) / root


def test_the_derivatives_of_a_loan_are_those_of_its_formula() -> None:
    slope, rate = wengert.grad(lambda rate: float(npf.pv(rate, 10.0, -100.0))), 0.05
    discount = (1.0 + rate) ** -10
    want = 100.0 * (10.0 * discount / (1.0 + rate) / rate - (1.0 - discount) / rate**2)
    assert slope(rate) == near(want)
