"""The C functions that derivatives print: they compile without a warning, and give what formulas and differences do."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import cos, erf, exp, grad, hessian, hvp, jacobian, lgamma, sin, value_and_grad
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

from tests.compiler.test_sources_c import SANITIZED, built, needs_gcc, workspace  # noqa: E402  (it needs NumPy)

pytestmark = pytest.mark.once  # what is printed is the array program

STRICT = ("-Wextra", "-pedantic", "-O2")
LENGTHS = [0.4, 0.3, 0.2]


def arm(q: Any) -> Any:
    """The position of the hand of an arm with three joints."""
    x = y = angle = 0.0
    for length, turn in zip(LENGTHS, q, strict=True):
        angle = angle + turn
        x, y = x + length * cos(angle), y + length * sin(angle)
    return [x, y]


def rosenbrock(x: Any) -> Any:
    total = 0.0
    for k in range(len(x) - 1):
        total = total + 100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2
    return total


def pendulum(state: Any, torque: Any) -> Any:
    """Where a pendulum is after five steps of Runge and Kutta's method, and the steps before."""

    def slope(angle: Any, speed: Any) -> Any:
        return speed, torque - 9.81 * sin(angle) - 0.1 * speed

    def moved(at: Any, by: Any, h: float) -> Any:
        return [a + h * b for a, b in zip(at, by, strict=True)]

    h, at, path = 0.05, [state[0], state[1]], []
    for _ in range(5):
        k1 = slope(*at)
        k2 = slope(*moved(at, k1, h / 2))
        k3 = slope(*moved(at, k2, h / 2))
        k4 = slope(*moved(at, k3, h))
        at = [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(at, k1, k2, k3, k4, strict=True)]
        path += at
    return path


def special(x: Any) -> Any:
    return [erf(x[0]) * x[1], lgamma(x[1] + 2.0), exp(-x[0]) + lgamma(x[0] * x[1])]


def reduced(x: Any) -> Any:
    """A mean, a variance, and the logarithm of a sum of exponentials."""
    n = len(x)
    mean = sum(x) / n
    return [mean, sum([(each - mean) ** 2 for each in x]) / n, wengert.log(sum([exp(each) for each in x]))]


def lagrangian(x: Any, multipliers: Any) -> Any:
    constraints = [x[0] * x[3] - x[1], x[1] ** 2 + x[2] ** 2 - 4.0]
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + sum([m * c for m, c in zip(multipliers, constraints, strict=True)])


def chain(x: Any) -> Any:
    """A row for each two neighbours."""
    return [x[k] * x[k + 1] + sin(x[k]) for k in range(len(x) - 1)]


def signature(text: str) -> str:
    found = re.search(r"^(?:int|double) \w+\(.*\)(?= \{)", text, re.MULTILINE)
    assert found is not None, text
    return found[0]


def called(text: str, tmp_path: Path, size: int, *arguments: Any, count: int | None = None) -> tuple[int, Any, Any]:
    """The status of the C function, the numbers it fills in, and its library."""
    library = ctypes.CDLL(str(built(text, tmp_path, *STRICT)))
    title = signature(text)
    function = library[title.split()[1].partition("(")[0]]
    arrays = [np.ascontiguousarray(x, float) for x in arguments]
    out = np.full(size + 1, 1234.5)
    arrays += [out, np.empty(workspace(text))] if workspace(text) else [out]
    assert title.count("*") == len(arrays)
    counts = [] if count is None else [ctypes.c_int64(count)]
    status = function(*counts, *[ctypes.c_void_p(x.ctypes.data) for x in arrays])
    assert out[-1] == 1234.5  # it writes no further
    return status, out[:-1], library


def differences(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """The Jacobian by central differences, extrapolated."""
    columns = []
    for k in range(len(x)):
        made = []
        for h in (1e-3, 5e-4):
            points = np.array([x, x], float)
            points[:, k] += [h, -h]
            ahead, behind = (np.ravel(np.array(function(each.tolist(), *others), float)) for each in points)
            made.append((ahead - behind) / (2 * h))
        columns.append((4.0 * made[1] - made[0]) / 3.0)
    return np.stack(columns, 1)


def formula_of_rosenbrock(x: Any) -> Any:
    """The gradient, in NumPy."""
    made = np.zeros(len(x))
    ahead = x[1:] - x[:-1] ** 2
    made[:-1] = -400.0 * x[:-1] * ahead - 2.0 * (1.0 - x[:-1])
    made[1:] += 200.0 * ahead
    return made


def second_of_rosenbrock(x: Any) -> Any:
    made = np.zeros((len(x), len(x)))
    k = np.arange(len(x) - 1)
    made[k, k] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    made[k + 1, k + 1] += 200.0
    made[k, k + 1] = made[k + 1, k] = -400.0 * x[:-1]
    return made


CASES: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "jacobian_of_arm": (arm, ([0.3, -0.7, 1.1],), "(2, 3)"),
    "jacobian_of_pendulum": (pendulum, ([0.5, -0.2], 0.3), "(10, 2)"),
    "jacobian_of_special": (special, ([0.8, 1.7],), "(3, 2)"),
    "jacobian_of_reduced": (reduced, ([0.3, -1.2, 2.0, 0.7],), "(3, 4)"),
    "jacobian_of_chain": (chain, ([0.3, -1.2, 2.0, 0.7],), "(3, 4)"),
}


@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_a_jacobian_in_c(name: str, tmp_path: Path) -> None:
    function, arguments, shape = CASES[name]
    compiled = wengert.compile(jacobian(function))
    compiled(*arguments)
    text = compiled.source("c")
    want = differences(function, *arguments)
    assert f"int {name}(" in text
    assert f"out: {shape}\n" in text
    assert "malloc" not in text
    for moved in (0.0, 0.1):
        here = [x + moved for x in arguments[0]], *arguments[1:]
        want = differences(function, *here)
        status, got, _ = called(text, tmp_path, want.size, *here)
        assert status == 0
        assert got.reshape(want.shape) == pytest.approx(want, rel=1e-8, abs=1e-9)


@needs_gcc
@pytest.mark.parametrize("count", [5, 90])
def test_derivatives_of_a_loop_in_c(count: int, tmp_path: Path) -> None:
    """Rosenbrock's function of many variables; for 90 the Hessian needs more memory than the stack gives."""
    x, along = np.linspace(-1.0, 1.5, count), np.linspace(1.0, 2.0, count)
    slope, curvature = formula_of_rosenbrock(x), second_of_rosenbrock(x)
    value = np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    wanted = {
        grad: slope,
        value_and_grad: np.append(value, slope),
        hvp: curvature @ along,
        hessian: curvature.reshape(-1),
    }
    for derivative, want in wanted.items():
        compiled = wengert.compile(derivative(rosenbrock))
        arguments = (x, along) if derivative is hvp else (x,)
        compiled(*arguments)
        text = compiled.source("c")
        assert f"int {derivative.__name__}_of_rosenbrock(" in text
        assert (derivative is hessian and count == 90) <= ("double *work" in text)
        status, got, _ = called(text, tmp_path, want.size, *arguments)
        assert status == 0
        assert got == pytest.approx(want, rel=1e-12, abs=1e-9)


cube = wengert.op("cube_of_c", value=lambda x: x**3, partials=lambda out, x: 3.0 * x * x)


def cubes(x: Any) -> Any:
    """Its Hessian is recorded itself: the rules of such operations are recorded for first derivatives."""
    return x[0] * x[1] + wengert.sum([cube(v) for v in x])


@needs_gcc
@pytest.mark.parametrize(("function", "arguments"), [
    (rosenbrock, (np.linspace(-1.0, 1.5, 40),)),
    (lagrangian, ([1.0, 2.0, 0.5, -1.0], [0.7, -0.3])),
    (chain, (np.linspace(-1.0, 1.5, 40),)),
    (cubes, ([0.5, -1.0, 2.0],)),
])  # fmt: skip
def test_a_sparse_derivative_in_c(function: Any, arguments: Any, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    kind = jacobian if function is chain else hessian
    sparse = kind(function, sparse=True)
    sparse(*arguments)  # one that is recorded itself is so at the second call
    known = sparse(*arguments)
    text = sparse.source()
    assert text == sparse.compiled.source("c")
    name = f"{kind.__name__}_of_{function.__name__}"
    assert f"{name}_NROWS = {known.shape[0]}, {name}_NCOLS = {known.shape[1]}, {name}_NNZ = {known.nnz} }}" in text
    here = np.asarray(arguments[0]) * 1.1 + 0.2, *arguments[1:]
    status, got, library = called(text, tmp_path, known.nnz, *here)
    indptr = np.array((ctypes.c_int * len(known.indptr)).in_dll(library, f"{name}_indptr"))
    indices = np.array((ctypes.c_int * known.nnz).in_dll(library, f"{name}_indices"))
    assert status == 0
    assert (indptr == known.indptr).all()
    assert (indices == known.indices).all()
    matrix = type(known)((got, indices, indptr), shape=known.shape).toarray()
    slopes = differences(grad(function) if kind is hessian else function, *here)
    assert matrix == pytest.approx(slopes, rel=1e-8, abs=1e-7)
    assert matrix == pytest.approx(sparse(*here).toarray(), rel=1e-12, abs=1e-12)


@needs_gcc
def test_another_branch_is_a_status(tmp_path: Path) -> None:
    def friction(x: Any) -> Any:
        return [x[0] ** 2 if x[1] > 0.5 else sin(x[0]), x[1] if not x[0] <= -1.0 else x[0] * x[1]]

    compiled = wengert.compile(jacobian(friction))
    compiled([2.0, 1.0])
    text = compiled.source("c")
    assert "Returns 0; 1 if a comparison has another outcome" in text
    assert "x[1] > 0.5 was True" in text
    status, got, _ = called(text, tmp_path, 4, [3.0, 0.7])
    assert status == 0
    assert got.tolist() == [6.0, 0.0, 0.0, 1.0]
    for elsewhere in ([3.0, 0.5], [-1.0, 0.7], [3.0, float("nan")]):
        assert called(text, tmp_path, 4, elsewhere)[0] == 1
    compiled([2.0, 0.1])
    status, got, _ = called(compiled.source("c"), tmp_path, 4, [3.0, 0.5])
    assert status == 0
    assert got == pytest.approx([np.cos(3.0), 0.0, 0.0, 1.0], rel=1e-15)


@needs_gcc
def test_a_value_of_another_branch_is_nan(tmp_path: Path) -> None:
    compiled = wengert.compile(grad(lambda x: x * x if x > 0.0 else -x))
    compiled(2.0)
    function = ctypes.CDLL(str(built(compiled.source("c"), tmp_path, *STRICT))).grad_of_lambda
    function.restype = ctypes.c_double
    assert function(ctypes.byref(ctypes.c_double(3.0))) == 6.0
    assert np.isnan(function(ctypes.byref(ctypes.c_double(-3.0))))


@needs_gcc
def test_an_integer_out_of_range_is_a_status(tmp_path: Path) -> None:
    table = [1.0, 2.0, 5.0]
    compiled = wengert.compile(jacobian(lambda x, k: [x[0] * table[k], x[1] ** 2]))
    compiled([2.0, 3.0], 1)
    text = compiled.source("c")
    assert "integers from 0 to 2" in text
    function = ctypes.CDLL(str(built(text, tmp_path, *STRICT)))[signature(text).split()[1].partition("(")[0]]
    x, out = (ctypes.c_double * 2)(2.0, 3.0), (ctypes.c_double * 4)()
    for k, want in ((2, [5.0, 0.0, 0.0, 6.0]), (0, [1.0, 0.0, 0.0, 6.0])):
        assert function(x, ctypes.byref(ctypes.c_int64(k)), out) == 0
        assert list(out) == want
    for k in (3, -1, 2**40):
        assert function(x, ctypes.byref(ctypes.c_int64(k)), out) == 1


@needs_gcc
def test_a_batch_of_jacobians_in_c(tmp_path: Path) -> None:
    compiled = wengert.compile(jacobian(arm))
    rows = np.random.default_rng(0).normal(size=(6, 3))
    want = compiled.map(rows)
    status, got, _ = called(compiled.source("c"), tmp_path, want.size, rows, count=6)
    assert "out: (n, 2, 3)" in compiled.source("c")
    assert status == 0
    assert got.reshape(want.shape) == pytest.approx(want, rel=1e-13)


@needs_gcc
@pytest.mark.parametrize("name", ["i", "j", "out", "work", "valid", "mean", "double", "sin"])
def test_an_argument_of_any_name(name: str, tmp_path: Path) -> None:
    space: dict[str, Any] = {"root": wengert.sqrt}
    exec(f"def f({name}): return [{name}[k] * {name}[k + 1] for k in range(3)] + [root({name}[0])]", space)
    compiled = wengert.compile(jacobian(space["f"]))
    compiled([1.0, 2.0, 3.0, 4.0])
    status, got, _ = called(compiled.source("c"), tmp_path, 16, [4.0, 5.0, 6.0, 7.0])
    want = [[5.0, 4.0, 0.0, 0.0], [0.0, 6.0, 5.0, 0.0], [0.0, 0.0, 7.0, 6.0], [0.25, 0.0, 0.0, 0.0]]
    assert status == 0
    assert got.reshape(4, 4).tolist() == want


def test_what_cannot_be_printed() -> None:
    compiled = wengert.compile(jacobian(arm))
    with pytest.raises(ArgumentError, match="call the function first"):
        compiled.source("c")
    pytest.importorskip("scipy")
    with pytest.raises(ArgumentError, match="call the function first"):
        jacobian(arm, sparse=True).source()
    nothing = jacobian(lambda x: [0.0 * x[0] if x[0] == x[0] + 1.0 else 1.0, 2.0], sparse=True)
    nothing([1.0, 2.0])
    for _ in range(2):  # before it is compiled, and after
        with pytest.raises(ArgumentError, match="all of it is 0: leave sparse=True out"):
            nothing.source()
        nothing([1.0, 2.0])


def test_a_rule_in_python_is_refused() -> None:
    row = wengert.op("gamma_of_c", value=lambda x: math.gamma(x), partials=lambda out, x: out * wengert.digamma(x))
    compiled = wengert.compile(jacobian(lambda x: [row(x[0]) * x[1], x[1]]))
    compiled([1.5, 2.0])
    with pytest.raises(ArgumentError, match="gamma_of_c is computed in Python, which C cannot"):
        compiled.source("c")


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
def test_a_derivative_without_a_program_says_why() -> None:
    lines: list[float] = []

    def noisy(x: Any) -> Any:
        lines.append(1.0)
        print(len(lines))
        return [x[0] ** 2]

    compiled = wengert.compile(jacobian(noisy))
    compiled([1.0])
    with pytest.raises(ArgumentError, match=r"nothing has been compiled yet: .*\w+"):
        compiled.source("c")


@pytest.mark.nightly
@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_a_jacobian_in_c_under_the_sanitizers(name: str, tmp_path: Path) -> None:
    function, arguments, _ = CASES[name]
    compiled = wengert.compile(jacobian(function))
    want = np.ravel(compiled(*arguments))
    text = compiled.source("c")
    lines = [f"double x{n}[] = {{{', '.join(map(repr, np.ravel(x).tolist()))}}};" for n, x in enumerate(arguments)]
    lines += [f"double *out = malloc({want.size} * sizeof(double));"]
    passed = ", ".join([*[f"x{n}" for n in range(len(arguments))], "out"])
    lines += [f"int status = {name}({passed});", f'for (int i = 0; i < {want.size}; i++) printf("%.17g\\n", out[i]);']
    body = "\n".join([*lines, "free(out);", "return status;"])
    source = tmp_path / "whole.c"
    source.write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{text}\nint main(void) {{\n{body}\n}}\n")
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", *SANITIZED, str(source), "-lm"]
    done = subprocess.run([*command, "-o", str(tmp_path / "whole")], capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr:
        pytest.skip("the sanitizers of gcc are not installed")
    assert not done.returncode, done.stderr
    ran = subprocess.run([str(tmp_path / "whole")], capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr
    assert list(map(float, ran.stdout.split())) == pytest.approx(want, rel=1e-13, abs=1e-15)
