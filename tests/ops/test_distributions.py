"""The normal quantile, incomplete gamma and beta functions, Bessel functions: what the tests of all rows leave out."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import warnings
from math import inf, nan
from typing import Any

import pytest

import wengert
from tools.qa.accuracy import points
from tools.qa.oracles import DIGITS, mp, mpmath, truths
from wengert import Value, ops
from wengert.view.markup import asset

NAMES = ("normal_ppf", "j0", "j1", "gammainc", "gammaincc", "gamma_pdf", "betainc", "beta_pdf")


def test_scipys_names() -> None:
    assert wengert.norm_cdf is wengert.normal_cdf
    assert wengert.norm_ppf is wengert.normal_ppf
    assert wengert.gammaln is wengert.lgamma
    assert Value(0.975).norm_ppf().data == pytest.approx(1.959963984540054, rel=1e-15)


def test_the_quantile_inverts_the_distribution() -> None:
    rng = random.Random(1)
    for x in [rng.uniform(-37.0, 5.0) for _ in range(300)]:
        p = wengert.normal_cdf(x)
        size = 4e-16 * (1.0 + p / wengert.normal_pdf(x) / max(abs(x), 1e-9))  # of what the rounding of p makes
        assert wengert.normal_ppf(p) == pytest.approx(x, rel=4 * size, abs=1e-15)
    assert [wengert.normal_ppf(p) for p in (0.0, 0.5, 1.0)] == [-inf, 0.0, inf]
    assert all(math.isnan(wengert.normal_ppf(p)) for p in (-0.1, 1.1, nan, inf))


def test_limits_of_the_shapes_are_scipys() -> None:
    special = pytest.importorskip("scipy.special")
    for name in ("gammainc", "gammaincc"):
        for a in (-1.0, 0.0, 0.3, 1.0, 200.0, inf, nan):
            for x in (-1.0, 0.0, 0.7, 150.0, inf, nan):
                ours, theirs = getattr(wengert, name)(a, x), float(getattr(special, name)(a, x))
                assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-300, nan_ok=True), (name, a, x)
    for a in (-1.0, 0.0, 0.3, 1.0, 300.0, inf, nan):
        for b in (-1.0, 0.0, 0.3, 1.0, 300.0, inf, nan):
            for x in (-0.1, 0.0, 0.4, 1.0, 1.1, nan):
                ours, theirs = wengert.betainc(a, b, x), float(special.betainc(a, b, x))
                assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-300, nan_ok=True), (a, b, x)


def test_shapes_of_a_compiled_function_may_change() -> None:
    w = Value(1.1)
    made = wengert.compile(lambda a, x: wengert.gammainc(a, w * x) + wengert.betainc(a, 2.5, 0.3 * w))
    for a in (2.0, 2.0, 2.0000001, 2.0, 70.5, 2.0000001):  # near shapes have functions of their own
        for x in (0.4, 3.0):
            got, want = made(a, x), made.function(a, x)
            assert got.data == pytest.approx(want.data, rel=1e-15)


def test_shapes_from_data_are_computed_one_by_one() -> None:
    w = Value(0.9)
    made = wengert.compile(lambda xs: sum(wengert.gammainc(a, w * x) for a, x in xs))
    data = [(0.5, 0.3), (2.0, 1.5), (80.0, 77.0)]
    for _ in range(3):
        w.grad = 0.0
        made(data).backward()
        slope, w.grad = w.grad, 0.0
        made.function(data).backward()
        assert slope == pytest.approx(w.grad, rel=1e-14)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.once)])  # what it computes
def test_shapes_of_too_many_terms_to_write_out(backend: str) -> None:
    made = wengert.compile(lambda x: wengert.betainc(1e9, 1e9, x), backend=backend)
    xs = [0.49999 + k * 4e-6 for k in range(5)]
    for _ in range(2):
        assert made.map(xs).tolist() == pytest.approx([made.function(x) for x in xs], rel=1e-13)


@pytest.mark.mpmath
def test_tiny_shapes_and_tiny_numbers() -> None:
    with mp.workdps(400):
        for a, b, x in (
            (1e-12, 0.1, 0.3),
            (1e-15, 0.1, 0.3),
            (1e-300, 0.1, 0.3),
            (0.034, 1.2e-8, 0.5004),
            (166.6, 2e-8, 0.999),
        ):
            exact = mpmath.betainc(mpmath.mpf(a), mpmath.mpf(b), 0, mpmath.mpf(x), regularized=True)
            assert wengert.betainc(a, b, x) == pytest.approx(float(exact), rel=0.0, abs=1e-15)
    assert [wengert.gamma_pdf(a, x) for a, x in ((64.0, 5e-324), (1e6, 1e-303), (1e300, 1e-100))] == [0.0, 0.0, 0.0]
    assert all(map(math.isnan, (wengert.betainc(1e-310, 0.5, 0.3), wengert.beta_pdf(2.0, 1e-310, 0.3))))
    steep = wengert.grad(lambda x: wengert.gamma_pdf(0.5, x))
    for backend in ("numpy", "native"):
        compiled = wengert.compile(steep, backend=backend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert all(
                compiled(x) == pytest.approx(steep(x), rel=1e-13, nan_ok=True) for x in (-1.0, 0.0, 0.5, 2.0, 0.0, -1.0)
            )


@pytest.mark.mpmath
def test_third_derivatives_at_the_edges() -> None:
    def thrice(function: Any, x: float) -> float:
        return float(wengert.grad(wengert.grad(wengert.grad(function)))(x))

    with mp.workdps(40):
        for order, function in ((0, wengert.j0), (1, wengert.j1)):
            for x in (0.0, 0.3, 0.999, 1.001, 4.0, 30.0):
                exact = mpmath.besselj(order, x, 3)
                assert thrice(function, x) == pytest.approx(float(exact), rel=1e-12, abs=1e-14)
    assert thrice(lambda x: wengert.gammainc(1.0, x), 0.0) == 1.0
    assert thrice(lambda x: wengert.gammainc(3.0, x), 0.0) == 1.0
    assert thrice(lambda x: wengert.betainc(3.0, 1.0, x), 0.0) == 6.0
    assert thrice(lambda x: wengert.betainc(1.0, 3.0, x), 1.0) == pytest.approx(6.0, rel=1e-15)


@pytest.mark.mpmath
@pytest.mark.nightly
def test_shapes_between_those_of_the_page() -> None:
    """At random shapes, with the bound of the page."""
    rng = random.Random(7)
    with mp.workdps(DIGITS):
        for name in ("gammainc", "gammaincc", "betainc", "gamma_pdf", "beta_pdf"):
            row, truth = ops.BY_NAME[name], truths()[name]
            for _ in range(1500):
                shapes = [10.0 ** rng.uniform(-1.0, 3.5) for _ in row.shapes]
                mean, deviation = shapes[0], math.sqrt(shapes[0])
                if name.startswith("beta"):
                    a, b = shapes
                    mean, deviation = a / (a + b), math.sqrt(a * b / (a + b + 1.0)) / (a + b)
                x = abs(rng.gauss(mean, 3.0 * deviation))
                exact = truth.value(*map(mpmath.mpf, (*shapes, x)))
                if exact == exact and exact > 1e-290:
                    unit = math.ulp(float(truth.value_terms(*map(mpmath.mpf, (*shapes, x)))[0]))  # type: ignore[misc]
                    assert abs(row.value(*shapes, x) - exact) <= 4.0 * unit, (name, shapes, x)


def test_javascript_computes_the_same() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    cases = [(name, xs) for name in NAMES for xs in points(ops.BY_NAME[name], 60, seed=5) if max(map(abs, xs)) < 1e4]
    cases += [(name, (*(2.5,) * len(ops.BY_NAME[name].shapes), x)) for name in NAMES for x in (0.0, 1.0, -1.5, 0.3)]
    calls = ",".join(f"String({name}_({','.join(map(repr, xs))}))" for name, xs in cases)
    done = subprocess.run([node, "-e", f"{asset('special.js')}\nconsole.log(JSON.stringify([{calls}]))"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    for (name, xs), text in zip(cases, json.loads(done.stdout), strict=True):
        want = ops.BY_NAME[name].value(*xs)
        size = 1.0 if name in ("j0", "j1") else 0.0
        digits = 1e-9 if max(xs) > 100.0 else 2e-12  # by logarithms of the gamma function
        assert float(text.replace("Infinity", "inf")) == pytest.approx(
            want, rel=digits, abs=1e-290 + 1e-15 * size, nan_ok=True
        ), (name, xs)
