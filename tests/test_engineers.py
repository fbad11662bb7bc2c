"""The programs for engineers beside independent computations, and what the page about them says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("scipy", reason="needs SciPy")
pytest.importorskip("llvmlite", reason="what they say of machine code needs it")

import numpy as np
from scipy import integrate, linalg, optimize, special

from examples.engineers import fit_ode, garch, optimal_control, robot, volatilities

pytestmark = pytest.mark.once  # what runs is machine code
PAGE = (Path(__file__).resolve().parent.parent / "docs" / "engineers.md").read_text(encoding="utf-8")


def test_the_fit_is_that_of_another_integrator_and_of_differences() -> None:
    def residuals(p: Any) -> Any:
        def slope(_: float, z: Any) -> list[float]:
            return [z[0] * (p[0] - p[1] * z[1]), z[1] * (p[3] * z[0] - p[2])]

        solved = integrate.solve_ivp(slope, (0, 20), p[4:], "LSODA", range(21), rtol=1e-10, atol=1e-10)
        return np.log(solved.y / [fit_ode.HARES, fit_ode.LYNX]).T.ravel()

    found, errors, _ = fit_ode.fit(fit_ode.HARES, fit_ode.LYNX)
    other = optimize.least_squares(residuals, found * 1.02, "3-point", x_scale=found)
    assert found == pytest.approx(other.x, rel=1e-3)
    covariance = np.linalg.inv(other.jac.T @ other.jac) * 2.0 * other.cost / (42 - 6)
    assert errors == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-2)
    posterior = [0.55, 0.028, 0.80, 0.024, 34.0, 5.9]  # its means, with weak priors: Carpenter 2018
    assert (abs(found - posterior) < errors).all()


@pytest.fixture(scope="module", autouse=True)
def solved_once() -> Iterator[None]:
    """What takes seconds, and what the programs print too, is solved once."""

    def once(solve: Callable[[Any], Any]) -> Callable[[Any], Any]:
        found: dict[bytes, Any] = {}

        def solved(given: Any) -> Any:
            key = np.asarray(given).tobytes()
            found[key] = found[key] if key in found else solve(given)
            return found[key]

        return solved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimal_control, "by_scipy", once(optimal_control.by_scipy))
        patch.setattr(garch, "fit", once(garch.fit))
        yield


@pytest.fixture
def swing() -> Any:
    return optimal_control.by_scipy(30)


def test_the_control_is_a_minimum_by_differences(swing: Any) -> None:
    task, z, multipliers = optimal_control, swing.x, swing.v[0]

    def lagrangian(z: Any) -> Any:
        return task.lagrangian(z, 1.0, multipliers)

    assert max(map(abs, task.constraints(z))) < 1e-9
    slopes = [(lagrangian(z + h) - lagrangian(z - h)) / 2e-6 for h in 1e-6 * np.eye(len(z))]
    assert np.abs(slopes).max() < 1e-4
    jacobian = task.slopes(z).toarray()
    along = np.random.default_rng(0).normal(size=len(z))
    moved = np.subtract(task.constraints(z + 1e-6 * along), task.constraints(z - 1e-6 * along)) / 2e-6
    assert jacobian @ along == pytest.approx(moved, abs=1e-6)
    curvature = task.curvature(z, 1.0, multipliers).toarray()
    bent = (lagrangian(z + 1e-3 * along) - 2.0 * lagrangian(z) + lagrangian(z - 1e-3 * along)) / 1e-6
    assert along @ curvature @ along == pytest.approx(bent, rel=1e-4)
    free = linalg.null_space(jacobian)
    assert np.linalg.eigvalsh(free.T @ curvature @ free).min() > 1e-6


def test_a_simulation_with_the_force_swings_the_pole_up(swing: Any) -> None:
    state, h = [0.0] * 4, optimal_control.SECONDS / 30
    for force in swing.x[4::5]:
        moving = integrate.solve_ivp(lambda _, s, f=force: optimal_control.slope(s, f), (0.0, h), state, rtol=1e-10)
        state = moving.y[:, -1]
    assert state == pytest.approx(optimal_control.END, abs=0.2)  # the error of Runge and Kutta's steps, which grows


def test_ipopt_comes_to_the_same_point(swing: Any) -> None:
    pytest.importorskip("cyipopt", reason="needs cyipopt")
    point, told = optimal_control.by_ipopt(30)
    assert told["status"] == 0
    assert point == pytest.approx(swing.x, abs=1e-5)


def test_the_quotes_are_those_of_the_models_characteristic_function() -> None:
    """Lewis 2001: the price as an integral of it."""
    task = volatilities
    strike, years, paid = task.surface(3, 2)
    drift = task.JUMPS * (np.exp(task.MEAN + task.SPREAD**2 / 2) - 1.0)
    for k, t, found in zip(strike, years, paid, strict=True):

        def density(u: float, k: float = k, t: float = t) -> float:
            w = u - 0.5j
            jump = np.exp(1j * w * task.MEAN - 0.5 * (w * task.SPREAD) ** 2) - 1.0
            phi = np.exp(t * (1j * w * (task.RATE - drift - task.DIFFUSION**2 / 2) - 0.5 * (w * task.DIFFUSION) ** 2))
            phi = phi * np.exp(task.JUMPS * t * jump - 1j * w * task.RATE * t)
            moved = 1j * u * (np.log(task.SPOT / k) + task.RATE * t)
            return float((np.exp(moved) * phi).real / (u * u + 0.25))

        total = integrate.quad(density, 0.0, 200.0, limit=500)[0]
        price = task.SPOT - np.sqrt(task.SPOT * k) * np.exp(-task.RATE * t / 2) * total / np.pi
        assert found == pytest.approx(price, abs=1e-7)


def test_the_volatilities_are_brents_and_the_greeks_the_closed_ones() -> None:
    s, r = volatilities.SPOT, volatilities.RATE
    strike, years, paid = volatilities.surface(8, 5)
    found = volatilities.greeks.map(paid, strike, years)
    for k, t, price, row in zip(strike, years, paid, found, strict=True):

        def call(sigma: float, k: float = k, t: float = t) -> Any:
            d = (np.log(s / k) + (r + sigma**2 / 2) * t) / (sigma * np.sqrt(t))
            return s * special.ndtr(d) - k * np.exp(-r * t) * special.ndtr(d - sigma * np.sqrt(t)), d

        sigma = optimize.brentq(lambda v, p=price: call(v)[0] - p, 0.01, 3.0, xtol=1e-14)
        d = call(sigma)[1]
        e, bell = d - sigma * np.sqrt(t), np.exp(-0.5 * d * d) / np.sqrt(2.0 * np.pi)
        vega = s * bell * np.sqrt(t)
        gamma = bell / (s * sigma * np.sqrt(t))
        closed = [sigma, special.ndtr(d), gamma, vega, -bell * e / sigma, vega * d * e / sigma, 1.0 / vega]
        assert row == pytest.approx(closed, rel=1e-7, abs=1e-9)
    assert "machine code runs" in volatilities.greeks.report()


def test_the_robot_is_the_product_of_its_matrices() -> None:
    def place(q: Any) -> Any:
        at = np.eye(4)
        for (a, d, turn), angle in zip(robot.JOINTS, q, strict=True):
            c, s, (g, h) = np.cos(angle), np.sin(angle), (0.0 if turn else 1.0, float(turn))
            at = at @ [[c, -s, 0, a], [s * g, c * g, -h, -h * d], [s * h, c * h, g, g * d], [0, 0, 0, 1]]
        return np.concatenate([at[:3, 3], at[:3, 2]])

    assert robot.pose(robot.HOME) == pytest.approx([0.306891, 0.0, 0.590282, 0.0, 0.0, -1.0], abs=1e-6)
    for q in np.random.default_rng(0).uniform(-2.0, 2.0, (3, 7)):
        at, jacobian = robot.kinematics(q)
        assert at == pytest.approx(place(q), abs=1e-14)
        differences = [(place(q + h) - place(q - h)) / 2e-6 for h in 1e-6 * np.eye(7)]
        assert jacobian == pytest.approx(np.transpose(differences), abs=1e-8)


def test_the_robot_follows_and_is_compiled() -> None:
    errors, times = robot.follow(100, pause=False)
    assert len(times) == 100
    assert errors[10:].max() < 1e-3
    assert "machine code runs" in robot.kinematics.report()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_the_robots_c_is_its_jacobian(tmp_path: Path) -> None:
    robot.kinematics.prepare(robot.HOME)
    function = robot.in_c(tmp_path)
    for q in np.random.default_rng(1).uniform(-2.0, 2.0, (3, 7)):
        for ours, theirs in zip(robot.kinematics(q), function(q), strict=True):
            assert ours == pytest.approx(theirs, abs=1e-15)


def test_the_standard_errors_are_those_of_differences() -> None:
    returns = garch.draw_returns()

    def terms(p: Any) -> Any:
        squares = (returns - p[0]) ** 2
        last = variance = squares.mean()
        out = np.empty(len(squares))
        for k, square in enumerate(squares):
            variance = p[1] + p[2] * last + p[3] * variance
            out[k], last = variance, square
        return 0.5 * (np.log(2.0 * np.pi * out) + squares / out)

    p, plain, robust = garch.fit(returns)
    steps = np.diag(1e-4 * p)
    scores = np.transpose([(terms(p + h) - terms(p - h)) / (2.0 * h.sum()) for h in steps])
    assert scores.sum(0) * plain == pytest.approx(0.0, abs=1e-3)

    def total(h: Any) -> float:
        return float(terms(p + h).sum())

    hessian = [[total(a + b) - total(a - b) - total(b - a) + total(-a - b) for a in steps] for b in steps]
    hessian /= 4.0 * np.outer(steps.sum(0), steps.sum(0))
    inverse = np.linalg.inv(hessian)
    assert plain == pytest.approx(np.sqrt(np.diag(inverse)), rel=1e-3)
    assert robust == pytest.approx(np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse)), rel=1e-3)
    assert (abs(p - garch.TRUE) < 3.0 * robust).all()
    assert "machine code runs" in garch.curvature.report()


PROGRAMS = [fit_ode, optimal_control, volatilities, robot, garch]


@pytest.mark.plot
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.rpartition(".")[2])
def test_each_prints_what_the_page_shows_and_draws(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers to a hundredth; counts of iterations, and what is 0 but for rounding, may change, and so may times."""
    name = program.__name__.rpartition(".")[2]
    if program is robot and not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    program.main([str(tmp_path / "picture.svg")], **({"ticks": 300} if program is robot else {}))
    assert "<svg" in (tmp_path / "picture.svg").read_text(encoding="utf-8")
    shown = re.search(rf"^```text\n(\$ python examples/engineers/{name}\.py.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown is not None
    printed, expected = capsys.readouterr().out.splitlines(), shown[1].splitlines()[1:]
    if printed[-1] == "IPOPT   needs cyipopt":
        del printed[-1], expected[-1]
    assert len(printed) == len(expected)
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")
    for ours, theirs in zip(printed, expected, strict=True):
        assert number.sub("", ours).split() == number.sub("", theirs).split()
        if not re.search(r"microseconds|ms$|iterations|runs|differ|apart|NaN", theirs):
            assert [*map(float, number.findall(ours))] == pytest.approx([*map(float, number.findall(theirs))], rel=1e-2)


def test_the_lines_of_code_are_those_of_the_benchmark() -> None:
    from benchmarks.lines import lines
    from benchmarks.peers.derivatives import TASKS

    rows = re.findall(r"^\| ([\w ,]+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    names = ["fit", "control, Jacobian", "control, Hessian", "Greeks, one", "arm", "GARCH, Hessian"]
    assert [[*map(int, row[1:])] for row in rows] == [
        [lines(TASKS[name](), tool) for tool in ("wengert", "casadi", "jax")] for name in names
    ]
