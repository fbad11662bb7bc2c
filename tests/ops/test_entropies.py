"""xlogy, xlog1py, entr and sinc: beside SciPy, NumPy, PyTorch and mpmath, to second order, uncompiled and compiled."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

import pytest

import wengert
from tools.qa.oracles import torch_rows
from tools.qa.special_values import same
from wengert import Value, ops
from wengert.view import javascript

np = pytest.importorskip("numpy")

NAMES = ("xlogy", "xlog1py", "entr", "sinc")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.0, 1e-300, 5e-324, -5e-324, 1e160, 1e308, inf, -inf, nan)
ORDINARY = (0.05, 0.3, 0.36787944117144233, 0.5, 0.55, 0.85, 1.43, 2.5, 7.25)
over_names = pytest.mark.parametrize("name", NAMES)


def arity(name: str) -> int:
    return 2 if name.startswith("xlog") else 1


def operands(name: str, numbers: tuple[float, ...]) -> list[tuple[float, ...]]:
    return [(x,) for x in numbers] if arity(name) == 1 else [(x, y) for x in numbers for y in numbers]


def scipys(name: str) -> Callable[..., float]:
    special = pytest.importorskip("scipy.special")
    return np.sinc if name == "sinc" else getattr(special, name)  # type: ignore[no-any-return]


@over_names
def test_values_are_scipys(name: str) -> None:
    """Also where a term is 0 although its logarithm has no value; but sinc is 0 at whole numbers and infinities."""
    ours, theirs = getattr(wengert, name), scipys(name)
    for xs in operands(name, SPECIAL + ORDINARY):
        with np.errstate(all="ignore"):
            expected = float(theirs(*xs))
        if name == "sinc" and xs[0] == xs[0] and (abs(xs[0]) == inf or xs[0] == round(xs[0])):
            expected = 0.0 if xs[0] else 1.0
        leaves = [Value(x) for x in xs]
        for result in (ours(*xs), ours(*leaves).data, getattr(leaves[0], name)(*leaves[1:]).data):
            assert math.isclose(result, expected, rel_tol=2e-15) or (result != result and expected != expected), xs


@pytest.mark.mpmath
@over_names
def test_derivatives_up_to_the_third_are_mpmaths(name: str) -> None:
    import mpmath

    with mpmath.workdps(40):
        exact: dict[str, Callable[..., Any]] = {
            "xlogy": lambda x, y: x * mpmath.log(y),
            "xlog1py": lambda x, y: x * mpmath.log(1 + y),
            "entr": lambda x: -x * mpmath.log(x),
            "sinc": mpmath.sincpi,
        }
        row = getattr(wengert, name)
        for x in (*ORDINARY, 0.0, 1.0, 1e-9) if name == "sinc" else ORDINARY:
            point = (x,) if arity(name) == 1 else (x - 1.0, x)
            for place in range(arity(name)):
                for order in (1, 2, 3):
                    result: Any = lambda t, at=place, xs=point: row(*xs[:at], t, *xs[at + 1 :])  # noqa: E731
                    for _ in range(order):
                        result = wengert.grad(result)
                    along = lambda t, at=place, xs=point: exact[name](*xs[:at], t, *xs[at + 1 :])  # noqa: E731
                    expected = float(mpmath.diff(along, mpmath.mpf(point[place]), order))
                    assert result(point[place]) == pytest.approx(expected, rel=1e-13, abs=2e-14), (point, place, order)


def test_sinc_beside_zero() -> None:
    """Its derivative is 0 there, and does not cancel beside it; its second derivative is -pi^2 / 3."""
    slope, curvature = wengert.grad(wengert.sinc), wengert.grad(wengert.grad(wengert.sinc))
    for x in (0.0, -0.0, 5e-324, 1e-300, 1e-160, -1e-20, 1e-9, 1e-4):
        assert wengert.sinc(x) == pytest.approx(1.0 - (pi * x) ** 2 / 6.0, rel=1e-15)
        assert slope(x) == pytest.approx(-pi * pi * x / 3.0, rel=1e-7, abs=1e-323)
        assert curvature(x) == pytest.approx(-pi * pi / 3.0, rel=1e-7)
    assert [wengert.sinc(float(n)) for n in (-3, 1, 2, 2**53)] == [0.0] * 4
    assert [slope(x) for x in (1.0, 2.0, -3.0)] == pytest.approx([-1.0, 0.5, 1.0 / 3.0])


def test_the_slope_of_entr_keeps_its_digits_beside_its_zero() -> None:
    slope = wengert.grad(wengert.entr)
    for k in range(1, 50):
        x = (1.0 + 2.0**-k) / math.e
        assert slope(x) == pytest.approx(-math.log1p(x * math.e - 1.0), rel=1e-6 if k < 28 else 1.0), x
    assert slope(math.exp(-1.0)) == pytest.approx(-3.3784855259134224e-17, rel=1e-13)  # of the float beside 1 / e


def test_a_term_of_probability_zero() -> None:
    """The relative entropy of distributions that share a zero has a gradient towards the second one."""
    p, q = [0.0, 0.25, 0.75], [Value(x) for x in (0.0, 0.5, 0.5)]
    divergence = sum(wengert.xlogy(a, a) - wengert.xlogy(a, b) for a, b in zip(p, q, strict=True))
    divergence.backward()
    assert divergence.data == pytest.approx(math.log(2.0) + 0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert [x.grad for x in q] == [0.0, -0.5, -1.5]


@pytest.mark.torch
@over_names
def test_second_derivatives_are_pytorchs(name: str) -> None:
    import torch

    function, row = torch_rows()[name], getattr(wengert, name)
    for xs in operands(name, ORDINARY[:-1]):
        theirs = torch.autograd.functional.hessian(
            lambda at: function(*at), torch.tensor(xs, dtype=torch.float64), create_graph=False
        )
        ours = wengert.hessian(lambda at: row(*at))(list(xs))
        assert np.allclose(np.array(ours), theirs.numpy(), rtol=1e-9, atol=1e-9), xs


@pytest.mark.once  # arrays and machine code
@pytest.mark.parametrize("backend", ["numpy", "native"])
@over_names
def test_compiled_they_are_the_same(name: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    row = getattr(wengert, name)
    program: Any = lambda xs: [row(*at) for at in xs]  # noqa: E731
    slopes: Any = wengert.grad(lambda xs: sum(row(*at) for at in xs))
    curvature: Any = wengert.hessian(lambda xs: sum(row(*at) for at in xs))
    points = [list(xs) for xs in operands(name, SPECIAL)]
    compiled = wengert.compile(program, backend=backend)
    for _ in range(2):
        result = compiled(points)
    assert all(same(a, b) or math.isclose(a, b, rel_tol=1e-14) for a, b in zip(result, program(points), strict=True))
    assert compiled.report().count("left to the engine") == 0
    ordinary = [list(xs) for xs in operands(name, ORDINARY[:4])]
    for function in (slopes, curvature):
        own = wengert.compile(function, backend=backend)
        for _ in range(2):
            result = own(ordinary)
        assert np.allclose(np.array(result), np.array(function(ordinary)), rtol=1e-12, atol=1e-12)


@pytest.mark.once  # a page's own script
def test_javascript_computes_the_same() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    rows = [(name, [list(xs) for xs in operands(name, SPECIAL[:-1] + ORDINARY)]) for name in NAMES]
    rows.append(("norm", [[3.0, 4.0, 12.0], [0.0, -0.0, 0.0], [3e300, 4e300, 0.0], [inf, 1.0, nan], [1.0, 2.0, 2.0]]))
    script, lines, calls = javascript.Script(), [], []
    for name, at in rows:
        lines.append(f"const {name}_rules={script.rules(ops.BY_NAME[name], len(at[0]))};")
        calls += [f"answer({name}_rules,[{','.join(map(javascript.literal, xs))}])" for xs in at]
    lines.append("const answer=([value,partials],xs)=>[value(...xs),...partials(value(...xs),...xs)].map(String);")
    text = "\n".join([script.definitions(), *lines, f"console.log(JSON.stringify([{','.join(calls)}]))"])
    done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, check=True)
    answers = [[float(x.replace("Infinity", "inf")) for x in result] for result in json.loads(done.stdout)]
    for (name, xs), result in zip([(name, xs) for name, at in rows for xs in at], answers, strict=True):
        row = ops.BY_NAME[name]
        value = row.value(*xs)
        want = [value, *row.partials_at(value, xs)]
        assert result == pytest.approx(want, rel=1e-13, abs=1e-323, nan_ok=True), (name, xs)
