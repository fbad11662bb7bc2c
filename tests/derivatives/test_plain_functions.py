"""Functions that take plain numbers only: of `math`, `statistics`, NumPy and SciPy, and code of other people.

Their derivatives are compared with difference quotients of the functions themselves.
"""

from __future__ import annotations

import colorsys
import functools
import math
import statistics
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.derivatives.quotients import differences, near, number
from wengert import Value

np = pytest.importorskip("numpy")
scipy_integrate = pytest.importorskip("scipy.integrate")
scipy_optimize = pytest.importorskip("scipy.optimize")
scipy_special = pytest.importorskip("scipy.special")

Numbers = list[float]


def filled(p: Numbers) -> float:
    table = np.zeros(3)
    table[0], table[1] = p[0] * p[1], p[2] ** 2
    table[2] = math.log(p[0] + 2.0)
    return float(table.sum())


def option(p: Numbers) -> float:
    spot, volatility, years = 100.0 * p[0], p[1], p[2]
    d = (math.log(spot / 95.0) + (0.02 + volatility**2 / 2) * years) / (volatility * math.sqrt(years))
    normal = statistics.NormalDist()
    return spot * normal.cdf(d) - 95.0 * math.exp(-0.02 * years) * normal.cdf(d - volatility * math.sqrt(years))


def haversine(p: Numbers) -> float:
    lat1, lon1, lat2 = map(math.radians, (10.0 * x for x in p))
    a = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(lon1 / 2) ** 2
    return 6371.0 * 2.0 * math.asin(math.sqrt(a))


def pendulum(p: Numbers) -> float:
    angle, speed = p[0], p[1]
    for _ in range(40):
        speed -= 0.05 * math.sin(angle) * p[2]
        angle += 0.05 * speed
    return angle


def kepler(p: Numbers) -> float:
    anomaly = p[0]
    for _ in range(8):
        anomaly -= (anomaly - 0.3 * math.sin(anomaly) - p[1]) / (1.0 - 0.3 * math.cos(anomaly))
    return anomaly * p[2]


def loan(p: Numbers) -> float:
    owed, rate = 100.0 * p[0], 0.01 * p[1]
    for _ in range(24):
        owed = owed * (1.0 + rate) - p[2] * 5.0 if owed > 0.0 else 0.0
    return owed


def only_floats(p: Numbers) -> float:
    if not all(isinstance(x, float) for x in p):
        raise TypeError("expected floats")
    return p[0] * p[1] ** p[2]


def by_type(p: Numbers) -> float:
    return math.fsum(x * x if type(x) is float else 0.0 for x in p) + math.exp(p[0])


def formatted(p: Numbers) -> float:
    text = f"{len(p)} numbers"
    return math.cos(p[0]) * len(text) + p[1] * p[2]


FUNCTIONS: dict[str, Callable[[Numbers], Any]] = {
    # math
    "exp": lambda p: math.exp(p[0]) * p[1],
    "log": lambda p: math.log(p[0]) + math.log(p[1], 3.0) + math.log2(p[2]) + math.log10(p[0]),
    "log1p expm1": lambda p: math.log1p(p[0]) * math.expm1(p[1]),
    "sin cos tan": lambda p: math.sin(p[0]) * math.cos(p[1]) + math.tan(p[2]),
    "asin acos atan": lambda p: math.asin(p[0] / 3) + math.acos(p[1] / 3) + math.atan(p[2]),
    "sinh cosh tanh": lambda p: math.sinh(p[0]) + math.cosh(p[1]) * math.tanh(p[2]),
    "asinh acosh atanh": lambda p: math.asinh(p[0]) + math.acosh(p[1] + 1) + math.atanh(p[2] / 4),
    "atan2": lambda p: math.atan2(p[0], p[1]) * p[2],
    "sqrt cbrt": lambda p: math.sqrt(p[0]) * p[1] ** (1 / 3) + math.pow(p[2], 1.5),
    "hypot": lambda p: math.hypot(p[0], p[1]) + math.dist([p[0], p[1]], [0.1, p[2]]),
    "fsum prod": lambda p: math.fsum(p) * math.prod(p) + math.exp(0.0),
    "erf erfc": lambda p: math.erf(p[0]) + math.erfc(p[1]) * p[2],
    "lgamma": lambda p: math.lgamma(p[0] + 1) * p[1],
    "fabs copysign": lambda p: math.fabs(p[0] - 2.0) + math.copysign(p[1], -1.0) * math.exp(p[2]),
    "fmod": lambda p: math.fmod(p[0] + 3.3, 1.7) * math.exp(p[1]),
    "remainder": lambda p: math.remainder(p[0] + 3.35, p[1]) * math.exp(p[1]),
    "degrees radians": lambda p: math.degrees(p[0]) + math.radians(p[1]) * math.exp(p[2]),
    "floor ceil": lambda p: math.floor(p[0]) * p[1] + math.ceil(p[2]) * math.exp(p[0]),
    "float": lambda p: float(p[0]) ** 2 + float(p[1]) * math.exp(p[2]),
    "max min": lambda p: max(math.exp(p[0]) - p[1], 0.0) + min(p[2], math.sin(p[0])),
    "sorted": lambda p: sum(math.exp(x) * n for n, x in enumerate(sorted(p))),
    "abs round": lambda p: abs(math.sin(p[0]) - p[1]) + round(p[2]) * math.exp(p[0]),
    # statistics
    "mean": lambda p: statistics.mean(p) * math.exp(p[0]),
    "fmean": lambda p: statistics.fmean(p) ** 2,
    "stdev": lambda p: statistics.stdev(p),
    "pvariance": lambda p: statistics.pvariance(p) * math.exp(p[1]),
    "median": lambda p: statistics.median(p) * math.exp(p[0]),
    "geometric_mean": lambda p: math.exp(statistics.fmean([math.log(x) for x in p])),
    "harmonic_mean": lambda p: statistics.harmonic_mean(p) + statistics.harmonic_mean(p, [1, 2, 3]),
    "fmean with weights": lambda p: statistics.fmean(p, [1.0, p[0], 2.0]),
    "variance about a number": lambda p: statistics.variance(p, 1.0) * statistics.pstdev(p, p[0]),
    "NormalDist.inv_cdf": lambda p: statistics.NormalDist(p[0], p[1]).inv_cdf(p[2] / 3),
    "NormalDist.from_samples": lambda p: statistics.NormalDist.from_samples(p).pdf(1.0),
    "NormalDist.pdf": lambda p: statistics.NormalDist(0.5, 2.0).pdf(p[0]) * p[1],
    "NormalDist.cdf": lambda p: statistics.NormalDist(0.5, 2.0).cdf(p[0]) * p[1],
    # NumPy
    "np.exp": lambda p: float(np.exp(np.array(p)).sum()),
    "np.std": lambda p: float(np.std(np.array(p))),
    "np.var mean": lambda p: float(np.var(p) * np.mean(p)),
    "np.dot": lambda p: float(np.dot(np.array(p), np.arange(3.0)) * math.exp(p[0])),
    "np.where": lambda p: float(np.where(np.array(p) > 1.0, np.sqrt(p), np.sin(p)).sum()),
    "np.maximum": lambda p: float(np.maximum(np.array(p), 1.0).prod()),
    "np.clip": lambda p: float(np.clip(np.array(p), 0.6, 1.4).sum() * math.exp(p[0])),
    "np.cumsum": lambda p: float(np.cumsum(np.array(p))[1] * np.tanh(p[2])),
    "np.diff": lambda p: float((np.diff(np.array(p)) ** 2).sum()),
    "np.linspace": lambda p: float(np.sin(np.linspace(0.0, 1.0, 5) * p[0]).sum()) * math.exp(p[1]),
    "np.polyval": lambda p: float(np.polyval(np.array(p), 1.5)) * math.exp(p[0]),
    "np.trapezoid": lambda p: float(np.trapezoid(np.exp(np.array(p)))),
    "np.interp": lambda p: float(np.interp(1.2, [0.0, 1.0, 2.0], np.array(p))) * math.exp(p[0]),
    "np.outer": lambda p: float(np.outer(p, np.exp(p)).sum()),
    "np.reshape": lambda p: float((np.array([*p, *p]).reshape(2, 3).T @ np.ones(2) * math.exp(p[0])).sum()),
    "np.zeros": filled,
    "np.asarray": lambda p: float((np.asarray(p, dtype=float) ** 2).sum() * math.exp(p[0])),
    "np.asanyarray": lambda p: float((np.asanyarray(p, dtype=float) ** 2).sum() * math.exp(p[0])),
    "np.atleast_2d": lambda p: float((np.atleast_2d(p).astype(np.float64) ** 2).sum() * math.exp(p[0])),
    "np.result_type": lambda p: float(np.asarray(p, dtype=np.result_type(p[0], 1)).prod() * math.exp(p[0])),
    "np.array, dtype": lambda p: float(np.array(p, float).sum() * np.asarray([p[0], 1], float)[0] * math.exp(p[1])),
    "np.array": lambda p: float(np.array([*p, 1], dtype=np.float64).prod() * math.exp(p[0])),
    "np.zeros_like": lambda p: float((np.zeros_like(np.array(p)) + np.array(p)).sum() * math.exp(p[0])),
    "np.log1p": lambda p: float(np.log1p(np.exp(-np.array(p))).sum()),
    "np.hypot": lambda p: float(np.hypot(p[0], p[1]) * np.arctan2(p[1], p[2])),
    "np.sort": lambda p: float((np.sort(np.array(p)) * np.array([1.0, -2.0, 3.0])).sum() * math.exp(p[0])),
    "np.max": lambda p: float(np.max(np.exp(p)) - np.min(np.array(p))),
    # SciPy
    "erf of SciPy": lambda p: float(scipy_special.erf(p[0]) * p[1]),
    "expit": lambda p: float(scipy_special.expit(np.array(p)).sum()),
    "gammaln": lambda p: float(scipy_special.gammaln(p[0] + 1.0)) * p[1],
    "rosen": lambda p: float(scipy_optimize.rosen(np.array(p))),
    # of other people
    "rgb_to_hsv": lambda p: sum(colorsys.rgb_to_hsv(p[0] / 3, p[1] / 3, p[2] / 4)),
    "rgb_to_hls": lambda p: sum(colorsys.rgb_to_hls(p[0] / 3, p[1] / 3, p[2] / 4)),
    "rgb_to_yiq": lambda p: sum(colorsys.rgb_to_yiq(math.sin(p[0]), p[1], p[2])),
    "yiq_to_rgb": lambda p: sum(colorsys.yiq_to_rgb(0.3 * math.sin(p[0]), 0.1 * p[1], 0.1 * p[2])),
    "option": option,
    "haversine": haversine,
    "pendulum": pendulum,
    "kepler": kepler,
    "loan": loan,
    "only floats": only_floats,
    "by type": by_type,
    "formatted": formatted,
}
POINTS = [[0.7, 1.3, 1.9], [0.8, 1.1, 1.7], [0.75, 1.41, 2.2], [0.9, 1.2, 1.65], [0.65, 1.35, 2.1], [0.7, 1.3, 1.9]]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_plain_functions(name: str) -> None:
    function = FUNCTIONS[name]
    gradient, both = wengert.grad(function), wengert.value_and_grad(function)
    for point in POINTS:  # the first call records, later ones are served by a program
        want = differences(function, point)
        assert gradient(list(point)) == near(want)
        value, slopes = both(list(point))
        assert value == pytest.approx(number(function(list(point))), rel=1e-14)
        assert slopes == near(want)
        assert wengert.jacobian(lambda p: [function(p)])(list(point))[0] == near(want)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_compiled_as_the_function_is(name: str) -> None:
    function = FUNCTIONS[name]
    compiled, gradient = wengert.compile(function), wengert.compile(wengert.grad(function))
    for point in [*POINTS, *POINTS]:
        compiled(list(point))
        assert gradient(list(point)) == near(differences(function, point))
    specializations = [len(next(iter(f._server.entries.values())).specializations) for f in (compiled, gradient)]
    assert 0 < specializations[1] <= specializations[0]


def test_higher_derivatives_and_products() -> None:
    function = FUNCTIONS["option"]
    gradient = wengert.grad(function)
    for point in POINTS[:4]:
        rows = [differences(lambda p, n=n: gradient(list(p))[n], point) for n in range(3)]
        for second in (wengert.hessian(function), wengert.jacobian(gradient)):
            for row, want in zip(second(list(point)), rows, strict=True):
                assert row == pytest.approx(want, rel=1e-5, abs=1e-5)
        want = [row[0] - 2.0 * row[2] for row in rows]
        assert wengert.hvp(function)(list(point), [1.0, 0.0, -2.0]) == pytest.approx(want, rel=1e-5, abs=1e-5)
        value, slope = wengert.jvp(function, (list(point),), ([1.0, 0.0, -2.0],))
        want_slope = differences(function, point)[0] - 2.0 * differences(function, point)[2]
        assert (value, slope) == (function(point), near(want_slope))
        value, pullback = wengert.vjp(function, list(point))
        assert pullback(2.0)[0] == near([2.0 * x for x in differences(function, point)])


def test_third_derivatives() -> None:
    third = wengert.grad(wengert.grad(wengert.grad(lambda x: math.exp(2.0 * x) * math.sin(x))))
    want = 11.0 * math.cos(0.4) * math.exp(0.8) + 2.0 * math.sin(0.4) * math.exp(0.8)
    for _ in range(4):
        assert third(0.4) == pytest.approx(want, rel=1e-13)


def test_values_go_in_and_parameters_come_out() -> None:
    w = Value(1.5)
    gradient = wengert.grad(lambda x: math.exp(x) * w)
    for _ in range(3):
        w.grad = 0.0
        x = Value(0.5)
        slope = gradient(x)
        assert isinstance(slope, Value)
        slope.backward()
        assert (slope.data, x.grad, w.grad) == near((1.5 * math.exp(0.5), 1.5 * math.exp(0.5), math.exp(0.5)))
        w.grad = 0.0
        slope = gradient(0.5)
        slope.backward()
        assert w.grad == near(math.exp(0.5))


def test_a_text_of_a_number_beside_values() -> None:
    x = Value(0.3)
    slope = wengert.grad(lambda x: math.exp(x) * len(f"{x:.0f}"))(x)
    slope.backward()
    assert (slope.data, x.grad) == near((math.exp(0.3), math.exp(0.3)))


def test_a_derivative_of_a_derivative_that_was_called_before() -> None:
    function = FUNCTIONS["exp"]
    gradient = wengert.grad(function)
    for _ in range(3):
        gradient([1.0, 2.0, 3.0])
    e = math.exp(1.0)
    for second in (wengert.jacobian(gradient), wengert.hessian(function)):
        for _ in range(3):
            assert [list(row) for row in second([1.0, 2.0, 3.0])] == [
                near([2 * e, e, 0.0]),
                near([e, 0.0, 0.0]),
                [0.0] * 3,
            ]


def test_the_function_may_take_values_another_time() -> None:
    """The code is the same, and what it calls is not."""

    def around(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: 2.0 * inner(x) + 1.0

    for _ in range(3):
        assert wengert.grad(around(math.exp))(1.0) == near(2.0 * math.e)
        assert wengert.grad(around(lambda x: x.tanh()))(1.0) == near(2.0 - 2.0 * math.tanh(1.0) ** 2)
    takes_both = wengert.grad(lambda x, inner: inner(x) * x)
    for compiled in (takes_both, wengert.compile(takes_both)):
        for _ in range(3):
            assert compiled(1.0, math.exp) == near(2.0 * math.e)
            assert compiled(1.0, wengert.tanh) == near(math.tanh(1.0) + 1.0 - math.tanh(1.0) ** 2)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (lambda x: math.gamma(math.exp(x)), "OperationError", "into a function written in C"),
        (lambda x: float(str(math.exp(x))), "OperationError", "leaves what is recorded at"),
        (lambda x: math.sqrt(x - 2.0), "ValueError", "domain error|nonnegative input"),
        (lambda x: math.exp(x) / (x - x), "ZeroDivisionError", "division by zero"),
        (lambda x: x.sigmod(), "AttributeError", "sigmod"),
        (lambda x: math.exp(x) + len(x), "TypeError", "has no len"),
    ],
)
def test_what_has_no_derivative_says_so(function: Any, error: str, said: str) -> None:
    for derivative in (wengert.grad(function), wengert.compile(wengert.grad(function)), wengert.hessian(function)):
        for _ in range(3):
            with pytest.raises(Exception, match=said) as raised:
                derivative(0.5)
            assert error in [kind.__name__ for kind in type(raised.value).__mro__]


def test_effects_are_named_and_not_repeated_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(x: Any) -> Any:
        value = math.exp(x)
        print("here")
        return value

    with pytest.raises(TypeError) as raised:
        wengert.grad(prints)(0.5)
    assert "print" in raised.value.__notes__[0]
    assert capsys.readouterr().out == "here\n"  # on the numbers; with Values it did not come so far


def test_a_users_profiler_goes_on() -> None:
    import sys

    seen: list[str] = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    try:
        slope = wengert.grad(lambda x: math.exp(x) * x)(1.0)
        seen.clear()
        FUNCTIONS["exp"]([1.0, 2.0, 3.0])
    finally:
        sys.setprofile(None)
    assert slope == near(2.0 * math.e)
    assert "<lambda>" in seen


def clipped(p: Numbers) -> float:
    for n, x in enumerate(p):
        p[n] = max(x, 0.0) if n else x * x
    p.sort()
    return math.exp(p[0]) * 2.0 + p[1] ** 2 * p[2]


def test_a_function_may_change_its_argument() -> None:
    """It gets its own: the caller's list stays as it is, and the derivative is taken where the call was."""
    for derivative in (wengert.grad(clipped), wengert.compile(wengert.grad(clipped)), wengert.jacobian(clipped)):
        for point in [*POINTS, [1.5, -0.5, 0.7], [-0.7, 0.1, 1.9], *POINTS]:
            given = list(point)
            assert derivative(given) == near(differences(lambda p: clipped(list(p)), point))
            assert given == point
        array = np.array(POINTS[0])
        assert derivative(array).tolist() == near(differences(lambda p: clipped(list(p)), POINTS[0]))
        assert array.tolist() == POINTS[0]


@pytest.mark.parametrize(
    ("function", "point"),
    [
        (lambda p: 1e4 * math.exp(p[0]) + math.gamma(p[1]), [1.0, 2.5]),  # small beside the others
        (lambda p: sum(3.0 * math.exp(v) for v in p[:10]) + math.gamma(p[10]), [0.1 * n + 1.2 for n in range(11)]),
        (lambda p: 1e8 * math.exp(0.0 * p[0]) + math.gamma(p[0]), [2.5]),  # rounding hides it
        (lambda p: math.exp(p[0] / 1e5) * 1e5 + math.gamma(p[1]), [1e5, 2.5]),
        (lambda p: math.fabs(p[0] - 2.5) * 0.01 + math.gamma(p[0]), [2.5]),  # at a kink
        (lambda p: math.log(p[0]) + math.gamma(p[0] + 2.0), [1e-7]),  # near the edge
    ],
)
def test_no_number_leaves_unseen(function: Any, point: Numbers) -> None:
    for derivative in (wengert.grad(function), wengert.compile(wengert.grad(function)), wengert.jacobian(function)):
        for _ in range(3):
            with pytest.raises(wengert.errors.OperationError, match=r"leaves what is recorded at test_plain_func"):
                derivative(list(point))


@pytest.mark.parametrize(
    ("function", "derivative", "at"),
    [
        (lambda r: math.fabs(2.3e-28 / r), lambda r: -2.3e-28 / r**2, 1e-10),
        (lambda c: 1.0 / math.sqrt(1e-3 * abs(c)), lambda c: -0.5e-3 * (1e-3 * c) ** -1.5, 1e-12),
        (lambda x: round(math.exp(x), 2), lambda x: 0.0, 0.5),
        (lambda x: math.tanh(1e9 * (x - 1.0)), lambda x: 1e9, 1.0),
        (lambda t: math.sin(2 * math.pi * 50 * t), lambda t: 100 * math.pi * math.cos(100 * math.pi * t), 1.7e9),
        (lambda x: (math.exp(x) + 1e12) - 1e12, math.exp, 0.5),
        (lambda x: math.exp(-((x / 1e-9) ** 2)), lambda x: -2e18 * x * math.exp(-((x / 1e-9) ** 2)), 2e-9),
        (lambda x: math.exp(x) * len(f"{x:.0f}"), math.exp, 0.3),  # a text that is the same beside it
        (lambda x: math.fmod(x, 2.0) * math.exp(x), lambda x: 1.0, 0.0),
        (lambda x: math.remainder(x, 2.0) * math.exp(x), lambda x: 1.0, -0.0),
        (lambda x: (np.where(np.array([x]) > 0.2, math.exp(x), 0.0) * len(f"{x:.0f}"))[0], math.exp, 0.3),
        (lambda x: wengert.pick([1.0, math.exp(x)], int(x + 0.9)) * len(f"{x:.0f}"), math.exp, 0.3),
    ],
)  # fmt: skip
def test_right_derivatives_at_any_scale_are_given(function: Any, derivative: Any, at: float) -> None:
    slope, compiled = wengert.grad(function), wengert.compile(wengert.grad(function))
    for _ in range(3):
        assert slope(at) == compiled(at) == pytest.approx(derivative(at), rel=1e-9)


def test_the_function_does_not_run_beside_its_arguments() -> None:
    seen: list[float] = []

    def inside(p: float) -> float:
        assert 0.0 <= p <= 1.0
        seen.append(p) if p not in (0.0, 1.0) else None
        return math.exp(p)

    for at in (0.0, 1.0):
        assert wengert.grad(inside)(at) == math.exp(at)
    assert not seen

    def counted(n: float) -> float:
        total = math.exp(n * 0.1)
        while n != 0:
            total, n = total + 1.0, n - 1
        return total

    assert wengert.grad(counted)(4.0) == pytest.approx(0.1 * math.exp(0.4))


def test_functions_of_libraries_themselves() -> None:
    for function in (math.exp, math.tanh, math.lgamma, math.degrees):
        assert wengert.grad(function)(0.7) == near(differences(lambda p, f=function: f(p[0]), [0.7])[0])
    for function in (statistics.stdev, statistics.fmean, statistics.pvariance, statistics.mean):
        for derivative in (wengert.grad(function), wengert.compile(wengert.grad(function))):
            for point in POINTS:
                assert derivative(list(point)) == near(differences(function, point))


# -- programs are kept by the code of the function ---------------------------------------------------------------------


class Model:
    """Has a rate, and a loss of plain numbers."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def loss(self, x: float) -> float:
        return math.exp(self.rate * x)


def times(k: Any) -> Callable[[float], float]:
    return lambda x: math.exp(x) * k


def nested(k: float) -> Callable[[float], float]:
    def inner(x: float) -> float:
        return math.sin(k * x)

    return lambda x: inner(x) * math.cos(x)


def of_list(held: list[float]) -> Callable[[float], float]:
    return lambda x: math.exp(x) * sum(held)


def counted_compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from wengert.compiler import function
    from wengert.derivatives import programs

    monkeypatch.setattr(programs, "_kept", OrderedDict())
    compile_it, compiled = function.compiled_quietly, list[Any]()
    monkeypatch.setattr(function, "compiled_quietly", lambda f: compiled.append(f) or compile_it(f))
    return compiled


INLINE: dict[str, tuple[Callable[[float], Any], Callable[[float], float]]] = {
    "grad": (lambda x: wengert.grad(times(2.0))(x), lambda x: 2 * math.exp(x)),
    "value_and_grad": (lambda x: wengert.value_and_grad(times(2.0))(x)[1], lambda x: 2 * math.exp(x)),
    "of a lambda": (lambda x: wengert.grad(lambda y: math.exp(y) * y)(x), lambda x: math.exp(x) * (1 + x)),
    "of functions in functions": (
        lambda x: wengert.grad(nested(3.0))(x),
        lambda x: 3 * math.cos(3 * x) * math.cos(x) - math.sin(3 * x) * math.sin(x),
    ),
    "of a method": (lambda x: wengert.grad(MODEL.loss)(x), lambda x: 0.5 * math.exp(0.5 * x)),
    "of a partial": (
        lambda x: wengert.grad(functools.partial(lambda k, y: math.exp(k * y), 2.0))(x),
        lambda x: 2 * math.exp(2 * x),
    ),
    "hessian": (lambda x: wengert.hessian(times(2.0))(x), lambda x: 2 * math.exp(x)),
    "grad of grad": (lambda x: wengert.grad(wengert.grad(times(2.0)))(x), lambda x: 2 * math.exp(x)),
    "hvp": (lambda x: wengert.hvp(times(2.0))(x, 3.0), lambda x: 6 * math.exp(x)),
    "jvp": (lambda x: wengert.jvp(times(2.0), (x,), (3.0,))[1], lambda x: 6 * math.exp(x)),
    "vjp": (lambda x: wengert.vjp(times(2.0), x)[1](3.0)[0], lambda x: 6 * math.exp(x)),
}
MODEL = Model(0.5)


@pytest.mark.parametrize("name", INLINE)
def test_a_derivative_that_is_made_anew_at_each_call_is_compiled_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = counted_compilations(monkeypatch)
    derivative, want = INLINE[name]
    for n in range(8):
        x = 0.3 + 0.1 * n
        assert derivative(x) == pytest.approx(want(x), rel=1e-12)
    assert len(compiled) == 1


def test_other_numbers_around_the_function_are_another_function(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = counted_compilations(monkeypatch)
    for n in range(6):
        assert wengert.grad(times(float(n)))(0.5) == pytest.approx(n * math.exp(0.5))
        assert wengert.grad(nested(float(n)))(0.0) == n
        assert wengert.jvp(times(n + 0.5), (0.5,), (1.0,))[1] == pytest.approx((n + 0.5) * math.exp(0.5))
    assert not compiled  # each came once: to compile it would cost more
    for k in (0.0, -0.0, 1, True, 1.0):
        for _ in range(3):
            value, _ = wengert.jvp(times(k), (0.5,), (1.0,))
            assert (value, math.copysign(1.0, value)) == (k * math.exp(0.5), math.copysign(1.0, k))


def test_what_changes_around_the_function_is_seen() -> None:
    held = [1.0, 2.0]
    model = Model(1.0)
    for n in range(6):
        held[0], model.rate = float(n), float(n)
        assert wengert.grad(of_list(held))(0.0) == pytest.approx(n + 2.0)
        assert wengert.grad(model.loss)(0.0) == n
        assert wengert.grad(Model(0.5 * n).loss)(0.0) == 0.5 * n
        assert wengert.vjp(of_list(list(held)), 0.0)[1](1.0) == (n + 2.0,)
    names: dict[str, Any] = {"math": math}
    for k in range(4):
        exec(f"def f(x):\n    return math.exp(x) * {k}.0", names)
        for _ in range(3):
            assert wengert.grad(names["f"])(0.0) == k


def test_few_programs_are_kept() -> None:
    import gc
    import weakref

    gone = []
    for n in range(40):
        names: dict[str, Any] = {"math": math}
        exec(f"def f(x):\n    return math.exp(x) * {n}.0", names)
        for _ in range(3):
            assert wengert.grad(names["f"])(0.0) == n
        gone.append(weakref.ref(names.pop("f")))
    gc.collect()
    assert sum([each() is not None for each in gone]) <= 20


def test_a_kept_program_takes_values_too() -> None:
    function = times(2.0)
    for _ in range(4):
        wengert.grad(function)(0.5)
        wengert.jvp(function, (0.5,), (1.0,))
    x = Value(0.5)
    for derivative in (
        lambda: wengert.grad(function)(x),
        lambda: wengert.jvp(function, (x,), (1.0,))[1],
        lambda: wengert.vjp(function, x)[1](1.0)[0],
    ):
        x.grad = 0.0
        slope = derivative()
        slope.backward()
        assert (slope.data, x.grad) == near((2.0 * math.exp(0.5), 2.0 * math.exp(0.5)))
