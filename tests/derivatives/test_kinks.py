"""Second derivatives at and near kinks: what is smooth in a length has one where the length is 0.

The oracle is mpmath, or a closed form: a smooth even function F of the length of A x has the Hessian F''(0) times A's
transpose times A at the origin, and its gradient is 0 there.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value, grad, hessian, hvp, jacobian
from wengert.errors import NonFiniteError
from wengert.ops import BY_NAME

np = pytest.importorskip("numpy")
R5, R7 = math.sqrt(5.0), math.sqrt(7.0)

# Each length of a vector of two numbers, and the matrix A: it is the length of A x.
LENGTHS: dict[str, tuple[Callable[[Any], Any], list[list[float]]]] = {
    "abs": (lambda x: abs(x[0]), [[1, 0]]),
    "abs of a sum": (lambda x: abs(2.0 * x[0] - x[1]), [[2, -1]]),
    "abs of abs": (lambda x: abs(abs(x[1])), [[0, 1]]),
    "hypot": (lambda x: wengert.hypot(x[0], x[1]), [[1, 0], [0, 1]]),
    "hypot with 0": (lambda x: wengert.hypot(0.0, x[1]), [[0, 1]]),
    "hypot of one": (lambda x: wengert.hypot(x[0], x[0]), [[1, 0], [1, 0]]),
    "hypot of three": (lambda x: wengert.hypot(x[0], x[1], x[0] + x[1]), [[1, 0], [0, 1], [1, 1]]),
    "norm": (wengert.norm, [[1, 0], [0, 1]]),
    "norm of combinations": (lambda x: wengert.norm([x[0], 3.0 * x[1], x[0] - x[1]]), [[1, 0], [0, 3], [1, -1]]),
    "norm of a copy": (lambda x: 0.5 * wengert.norm(2.0 * x[0], x[1] * 2.0), [[1, 0], [0, 1]]),
    "sqrt of squares": (lambda x: wengert.sqrt(x[0] * x[0] + x[1] ** 2), [[1, 0], [0, 1]]),
    "power of squares": (lambda x: (wengert.square(x[0]) + x[1] * x[1]) ** 0.5, [[1, 0], [0, 1]]),
    "sqrt of a mean": (lambda x: wengert.sqrt(wengert.mean([x[0] * x[0] * 2.0, 2.0 * x[1] * x[1]])), [[1, 0], [0, 1]]),
    "sqrt of a dot product": (lambda x: wengert.sqrt(wengert.dot(x, x)), [[1, 0], [0, 1]]),
    "NumPy's norm": (np.linalg.norm, [[1, 0], [0, 1]]),
}
PLAIN: dict[str, tuple[Callable[[Any], Any], list[list[float]]]] = {  # code of floats
    "math.fabs": (lambda x: math.fabs(x[0]), [[1, 0]]),
    "math.hypot": (lambda x: math.hypot(x[0], x[1], x[1]), [[1, 0], [0, 1], [0, 1]]),
    "math.dist": (lambda x: math.dist(x, [0.0, 0.0]), [[1, 0], [0, 1]]),
    "math.sqrt": (lambda x: math.sqrt(x[0] ** 2 + x[1] ** 2), [[1, 0], [0, 1]]),
    "float of a norm": (lambda x: float(np.linalg.norm(np.array(x))), [[1, 0], [0, 1]]),
    "np.sqrt of a sum": (lambda x: float(np.sqrt(np.sum(np.array(x) ** 2))), [[1, 0], [0, 1]]),
}
# Each function of a length, smooth if the length may be negative, with its second derivative at 0; for mpmath as well.
SMOOTH: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "r**2": (lambda r, m: r**2, 2.0),
    "r*r": (lambda r, m: r * r, 2.0),
    "square": (lambda r, m: m.square(r) if m is wengert else r * r, 2.0),
    "r**4": (lambda r, m: 5.0 * r**4, 0.0),
    "r**3": (lambda r, m: r**3, 0.0),
    "r**2.5": (lambda r, m: r**2.5, 0.0),
    "cos": (lambda r, m: m.cos(3.0 * r), -9.0),
    "cosh": (lambda r, m: m.cosh(r), 1.0),
    "exp(-r**2)": (lambda r, m: m.exp(-(r**2)), -2.0),
    "exp(-r*r/2)": (lambda r, m: m.exp(-0.5 * r * r), -1.0),
    "Matern 3/2": (lambda r, m: (1.0 + r) * m.exp(-r), -1.0),
    "Matern 5/2": (lambda r, m: (1.0 + R5 * r + 5.0 / 3.0 * r**2) * m.exp(-R5 * r), -5.0 / 3.0),
    "Matern 7/2": (
        lambda r, m: (1.0 + R7 * r + 14.0 / 5.0 * r * r + 7.0 * R7 / 15.0 * r**3) * m.exp(-R7 * r),
        -7.0 / 5.0,
    ),
    "r sin r": (lambda r, m: r * m.sin(r), 2.0),
    "r tanh r": (lambda r, m: m.tanh(r) * r, 2.0),
    "log1p": (lambda r, m: m.log1p(r * r), 2.0),
    "1/(1+r*r)": (lambda r, m: 1.0 / (1.0 + r * r), -2.0),
    "sqrt(1+r**2)": (lambda r, m: m.sqrt(1.0 + r**2), 1.0),
    "r**2 cos": (lambda r, m: r**2 * m.cos(r) + 7.0, 2.0),
}
NOT_SMOOTH: dict[str, Callable[[Any], Any]] = {
    "r": lambda r: r,
    "sin": lambda r: wengert.sin(r),
    "r + r**2": lambda r: r + r**2,
    "exp": lambda r: wengert.exp(-r),
}
ORIGIN = [0.0, 0.0]
SAMPLE = list(itertools.product(LENGTHS, SMOOTH))


def composed(length: str, smooth: str) -> tuple[Callable[[Any], Any], Any]:
    """Return a smooth function of two numbers, and its Hessian at the origin."""
    (of_x, a), (of_r, second) = {**LENGTHS, **PLAIN}[length], SMOOTH[smooth]
    return lambda x: of_r(of_x(x), wengert), second * np.array(a, float).T @ np.array(a, float)


def ways(function: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the ways to a Hessian."""
    by_product = hvp(function)
    gradient = grad(function)
    rows = [lambda x, i=i: gradient(x)[i] for i in range(2)]
    return {
        "hessian": hessian(function),
        "jacobian of a gradient": jacobian(lambda x: gradient(x)),
        "gradients of a gradient": lambda x: [grad(row)(x) for row in rows],
        "products": lambda x: [by_product(x, [1.0, 0.0]), by_product(x, [0.0, 1.0])],
    }


@pytest.mark.parametrize(("length", "smooth"), [*SAMPLE, *itertools.product(PLAIN, ["r**2", "r*r"])])
def test_the_hessian_at_a_kink(length: str, smooth: str) -> None:
    function, expected = composed(length, smooth)
    assert grad(function)(ORIGIN) == [0.0, 0.0]
    for way, at in ways(function).items():
        assert np.allclose(at(ORIGIN), expected, rtol=1e-14, atol=1e-14), way
    if smooth != "r**2.5":  # whose third derivative is infinite
        with wengert.strict():
            assert np.allclose(hessian(function)(ORIGIN), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.mpmath
@pytest.mark.parametrize(("length", "smooth"), SAMPLE[::4])
def test_beside_a_kink(length: str, smooth: str) -> None:
    import mpmath

    function, _ = composed(length, smooth)
    a, of_r = np.array(LENGTHS[length][1], float), SMOOTH[smooth][0]

    def exact(*x: Any) -> Any:
        return of_r(mpmath.sqrt(mpmath.fsum(mpmath.fdot(row, x) ** 2 for row in a.tolist())), mpmath)

    for at in ([1e-4, -3e-5], [0.3, 0.4], [0.0, 0.7]):
        if not (a @ at).any():
            continue
        with mpmath.workdps(60):
            orders = [[(2, 0), (1, 1)], [(1, 1), (0, 2)]]
            expected = [[float(mpmath.diff(exact, at, order)) for order in row] for row in orders]
        assert np.allclose(hessian(function)(at), expected, rtol=1e-9, atol=1e-9), at


@pytest.mark.parametrize("backend", ["native", "numpy", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("length", LENGTHS)
def test_compiled_at_a_kink(length: str, backend: str) -> None:
    if backend == "xla":
        pytest.importorskip("jax")
    for smooth in list(SMOOTH)[len(length) % 6 :: 6]:
        function, expected = composed(length, smooth)
        row = lambda f: grad(lambda x: grad(f)(x)[1])  # noqa: E731  (recorded operation by operation)
        for taken, at_origin in ((grad, [0.0, 0.0]), (hessian, expected), (row, expected[1])):
            compiled = wengert.compile(taken(function), backend=backend)
            for k in range(1, 5):
                compiled([0.1 * k, 0.2])
            assert np.allclose(compiled(ORIGIN), at_origin, rtol=1e-13, atol=1e-13), smooth
            assert np.allclose(compiled([0.3, -0.4]), taken(function)([0.3, -0.4]), rtol=1e-12, atol=1e-14), smooth
            assert np.allclose(compiled(ORIGIN), at_origin, rtol=1e-13, atol=1e-13), smooth


def test_an_even_power_stays_compiled_at_its_kink() -> None:
    for function in (
        lambda x: abs(x[0]) ** 2 + abs(x[1]) * abs(x[1]) + wengert.square(abs(x[0])),
        lambda x: wengert.hypot(x[0], x[1]) ** 4 + wengert.norm(x) ** 2,
        lambda x: wengert.exp(-(wengert.norm(x) ** 2)),
        lambda x: wengert.hypot(x[0], x[1]) * wengert.hypot(x[0], x[1]),
    ):
        at = [[0.1, 0.2], [0.3, 0.4], [0.0, 0.0], [0.0, 0.1], [0.0, 0.0]]
        compiled = wengert.compile(hessian(function))
        results = [compiled(x) for x in at]
        assert np.allclose(results, [hessian(function)(x) for x in at], rtol=1e-13)
        assert "uncompiled" not in compiled.report()
        assert "abs" not in compiled.source()


def test_even_powers_of_any_order() -> None:
    """The derivatives of |x|**6, of hypot(x, 0)**6 and of the root of x**2 to the sixth: 6! x**(6 - n) / (6 - n)!."""
    for length in (abs, lambda x: wengert.hypot(x, 0.0), lambda x: wengert.sqrt(x * x), lambda x: wengert.norm([x])):
        for at in (0.0, 1.5):
            derivative: Any = lambda x, length=length: length(x) ** 6  # noqa: E731
            for n in range(1, 8):
                derivative = grad(derivative)
                expected = math.perm(6, n) * at ** (6 - n) if n <= 6 else 0.0
                assert derivative(at) == pytest.approx(expected, rel=1e-12, abs=1e-12), (n, at)


def test_lengths_that_are_computed_twice() -> None:
    """Each alone has a kink: together they are smooth."""
    for length in (
        lambda x: abs(x[0]),
        lambda x: wengert.hypot(x[0], x[1]),
        wengert.norm,
        lambda x: wengert.sqrt(x[0] * x[0] + x[1] ** 2),
        lambda x: wengert.norm([x[0] - x[1], x[1]]),
    ):
        for function in (
            lambda x, h=length: (1.0 + h(x)) * wengert.exp(-h(x)),
            lambda x, h=length: h(x) * wengert.sin(h(x)) + h(x) * h(x),
            lambda x, h=length: wengert.exp(h(x)) - h(x),
        ):
            step = 1e-4
            for way, taken in ways(function).items():
                gradient = grad(function)
                columns = []
                for along in ([step, 0.0], [0.0, step]):
                    back = [-v for v in along]
                    columns.append((np.array(gradient(along)) - np.array(gradient(back))) / (2.0 * step))
                assert np.allclose(taken(ORIGIN), np.array(columns).T, atol=3e-4), way
            compiled = wengert.compile(hessian(function))
            for at in ([0.1, 0.2], [0.3, 0.4], ORIGIN, ORIGIN):
                assert np.allclose(compiled(at), hessian(function)(at), rtol=1e-12, atol=1e-14)
            with wengert.strict():
                hessian(function)(ORIGIN)


def test_kinks_of_a_constant_slope_stay_in_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """A penalty of |w| with weights that are 0 needs no graph of its gradient; nor do different leaves count as one."""
    from wengert.derivatives import linearize

    lasso = lambda w: abs(w[0]) - abs(w[1]) + w[0] ** 2 * w[1] + w[1] ** 2  # noqa: E731
    assert hessian(lasso)(ORIGIN) == [[0.0, 0.0], [0.0, 2.0]]
    monkeypatch.setattr(linearize.LinearMap, "of_gradient", None)
    assert hessian(lasso)(ORIGIN) == [[0.0, 0.0], [0.0, 2.0]]
    with pytest.raises(TypeError):
        hessian(lambda w: wengert.cos(abs(w[0])))(ORIGIN)


def test_batches() -> None:
    rows = np.array([[0.0, 0.0], [0.3, 0.4], [0.0, 0.0], [1.0, -2.0]])
    for length, smooth in (("hypot", "r**2"), ("norm", "Matern 5/2"), ("abs", "cos"), ("NumPy's norm", "r*r")):
        function, expected = composed(length, smooth)
        compiled = wengert.compile(hessian(function))
        results = [compiled(x.tolist()) for x in rows]
        assert np.allclose(results, [hessian(function)(x.tolist()) for x in rows], rtol=1e-12)
        assert np.allclose(results[2], expected, rtol=1e-13)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", NOT_SMOOTH)
def test_strict_stops_at_a_kink(length: str, name: str) -> None:
    def function(x: Any) -> Any:
        return NOT_SMOOTH[name](LENGTHS[length][0](x))

    assert np.isfinite(hessian(function)(ORIGIN)).all()
    with wengert.strict():
        assert grad(function)(ORIGIN) == [0.0, 0.0]
        for taken in (hessian(function), wengert.compile(hessian(function)), lambda x: hvp(function)(x, x)):
            with pytest.raises(NonFiniteError, match="is at a kink, where it has no second derivative") as raised:
                taken(ORIGIN)
            assert raised.value.anomaly.what == "kink"
            hessian(function)([0.3, 0.4])


def test_strict_names_the_line_and_the_operation() -> None:
    cases: dict[str, tuple[Callable[[Any], Any], str]] = {
        "relu(0.0)": (lambda x: x.relu() ** 2, "softplus"),
        "maximum(0.0, 0.0)": (lambda x: wengert.maximum(x, 0.0) ** 2, "logsumexp"),
        "max(0.0, 0.0)": (lambda x: wengert.max([x, 2.0 * x]) ** 2, "logsumexp"),
        "abs(0.0)": (lambda x: x * abs(x), "even power"),
        "elu(0.0, 1.0)": (lambda x: wengert.elu(x), "smooth"),
        "leaky_relu(0.0, 0.01)": (lambda x: x.leaky_relu(), "smooth"),
        "clip(0.0, 0.0, 1.0)": (lambda x: x.clip(0.0, 1.0), "equal"),
        "sqrt(0.0)": (lambda x: wengert.sqrt(x * x), "even power"),
    }
    for call, (function, advice) in cases.items():
        with wengert.strict(), pytest.raises(NonFiniteError, match=advice) as raised:
            grad(grad(function))(0.0)
        assert str(raised.value).startswith(f"{call} is at a kink, where it has no second derivative, at ")
        assert "test_kinks.py" in str(raised.value)
        with wengert.strict():
            grad(grad(function))(0.5)
            grad(function)(0.0)
    with wengert.strict(), pytest.raises(NonFiniteError, match=r"abs\(0.0\) is at a kink.* at .*test_kinks.py"):
        hessian(lambda x: math.sin(math.fabs(x)))(0.0)  # of code of floats the line of the derivative is named
    with wengert.strict(), pytest.raises(NonFiniteError, match="abs"):  # 2 |x| |y| is not smooth
        hessian(lambda x: (abs(x[0]) + abs(x[1])) ** 2)(ORIGIN)
    with wengert.strict(), pytest.raises(NonFiniteError, match="abs"):  # the length's own slope depends on x[0]
        hessian(lambda x: x[0] * abs(x[1]))(ORIGIN)


def test_strict_lets_pass_what_is_no_kink() -> None:
    with wengert.strict():
        for function, expected in (
            (lambda x: x**2, 2.0),  # whose rule divides 0 by 0 for the exponent
            (lambda x: x**3, 0.0),
            (lambda x: wengert.maximum(x, x) ** 2, 2.0),
            (lambda x: wengert.floor(x) * x, 0.0),
            (lambda x: wengert.hypot(1.0, x), 1.0),
        ):
            assert hessian(function)(0.0) == grad(grad(function))(0.0) == expected


def test_a_tie_of_sides_with_equal_derivatives() -> None:
    for tie in (wengert.maximum, wengert.minimum, lambda x, y: wengert.max([x, y]), lambda x, y: wengert.min([x, y])):
        for function, order in ((lambda x, tie=tie: tie(x, x), 0.0), (lambda x, tie=tie: tie(x * x, x**2), 2.0)):
            for at in (0.0, 0.7):
                assert hessian(function)(at) == order
                assert wengert.compile(hessian(function))(at) == order


def test_a_constant_is_no_node() -> None:
    """maximum(x, 0.0) of the first node, which has the number 0, has a kink at 0."""
    row = BY_NAME["maximum"]
    assert row.kink_distance((0, 0.0), (0.0, 0.0)) == 0.0
    assert row.kink_distance((0, 0), (0.0, 0.0)) == math.inf
    assert row.has_kink_at((0, 0.0), (0.0, 0.0))
    assert not BY_NAME["floor"].has_kink_at((0,), (1.0,))  # its value jumps
    wengert.check_gradients(lambda x: wengert.maximum(x, 0.0) * 3.0, 0.0)


def test_explain_says_what_is_at_a_kink() -> None:
    x = Value(0.0, "x")
    for y, slope in ((abs(x) * 2.0, "0"), (x.relu(), "0"), (wengert.maximum(x, 0.0), "0.5")):
        assert f"is at a kink: its derivative there, {slope}, is a convention, and a second one is not known." in str(
            wengert.explain(x, y)
        )
    for smooth in (abs(x) ** 2, wengert.cos(abs(x)), wengert.maximum(x, 1.0), wengert.floor(x) * 1.0, x * 2.0):
        assert "kink" not in str(wengert.explain(x, smooth))


# ------------------------------------------------------------------------------ norms and spreads at 0

EQUAL = [0.7, 0.7, 0.7, 0.7]
SPREADS: dict[str, Callable[[Any], Any]] = {
    "np.std": np.std,
    "of an array": lambda x: float(np.std(np.array(x))),
    "ddof": lambda x: float(np.std(np.array(x), ddof=1)),
    "axis": lambda x: np.std(np.array([x, x]), axis=1)[1],
    "method": lambda x: float(np.array(x).std()),
    "stdev": statistics.stdev,
    "pstdev": lambda x: statistics.pstdev(x),
    "by hand": lambda x: wengert.sqrt(wengert.mean([(v - wengert.mean(x)) ** 2 for v in x])),
}


@pytest.mark.parametrize("name", SPREADS)
def test_the_spread_of_equal_numbers(name: str) -> None:
    function = SPREADS[name]
    compiled = wengert.compile(grad(lambda x: function(x)))
    for at in (EQUAL, [0.1] * 4, [3.0, 1.0, 2.0, 5.0], EQUAL, [-0.0, 0.0, 0.0, 0.0]):
        step = 1e-6
        moved = [[v + step * (i == j) for j, v in enumerate(at)] for i in range(4)]
        back = [[v - step * (i == j) for j, v in enumerate(at)] for i in range(4)]
        plain = name != "by hand"
        numbers = np.array([[function(x) for x in side] for side in (moved, back)], float) if plain else None
        for gradient in (grad(function)(at), compiled(at)):
            assert np.isfinite(gradient).all()
            if len({*at}) == 1 and function(at) == 0.0:
                assert list(gradient) == [0.0] * 4
            if numbers is not None:  # of an even function both are 0
                assert np.allclose(gradient, (numbers[0] - numbers[1]) / (2.0 * step), atol=1e-6)


def test_norms_of_rows() -> None:
    """Along an axis, of rows that are 0 and others, given arrays and lists, as code of floats, too."""
    rows = [[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]]
    expected = np.array([[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]])
    for function in (
        lambda x: np.linalg.norm(np.array(x), axis=1).sum(),
        lambda x: float(np.linalg.norm(np.array(x), axis=1).sum()),
        lambda x: float(np.linalg.norm(np.array(x), 2, -1, True).sum()),
        lambda x: float(np.linalg.norm(np.array(x).T, axis=0).sum()),
        lambda x: float(sum(np.linalg.norm(row) for row in np.array(x))),
        lambda x: float(np.sqrt((np.array(x) ** 2).sum(axis=1)).sum()),
        lambda x: sum(math.dist(row, [0.0, 0.0]) for row in x),
    ):
        compiled = wengert.compile(grad(function))
        moved = [[a + 0.5 for a in row] for row in rows]
        assert np.allclose(compiled(moved), grad(function)(moved), rtol=1e-14)
        for gradient in (grad(function)(rows), compiled(rows), compiled(rows)):
            assert np.allclose(gradient, expected, rtol=1e-15)
    assert np.allclose(grad(lambda x: np.linalg.norm(x, axis=1).sum())(np.array(rows)), expected)


def test_variances_of_equal_numbers_have_second_derivatives() -> None:
    for function, count in ((statistics.variance, 3.0), (statistics.pvariance, 4.0), (np.var, 4.0)):
        expected = 2.0 / count * (np.eye(4) - 0.25)
        for at in (EQUAL, [3.0, 1.0, 2.0, 5.0]):
            assert np.allclose(hessian(lambda x, function=function: function(x))(at), expected, atol=1e-12)
