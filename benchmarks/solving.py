"""Solves the control problem of the benchmark of derivatives with IPOPT and with SciPy's trust-constr.

Both solvers take the gradient of the cost, the sparse Jacobian of the constraints and the sparse Hessian of the
Lagrangian, from Wengert or from CasADi, and have to come to the same point in the same number of iterations.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wengert
from benchmarks.peers.derivatives import Control
from benchmarks.report import duration
from benchmarks.timing import table
from wengert import compile, hessian, jacobian, value_and_grad

__all__ = ["solved"]

SAME = 1e-8  # as near as the points are to each other, relative to the largest


class Problem(NamedTuple):
    """A problem with constraints that are 0: functions of its variables, the Hessian also of factor and multipliers."""

    cost: Callable[[Any], Any]  # with its gradient
    constraints: Callable[[Any], Any]
    jacobian: Callable[[Any], Any]
    hessian: Callable[[Any, float, Any], Any]


def lagrangian(task: Control, m: Any, z: Any, factor: Any, multipliers: Any) -> Any:
    """The cost times a factor, and the constraints times their multipliers."""
    total = factor * task.cost(z)
    for n, c in enumerate(task.constraints(m, z)):
        total = total + multipliers[n] * c
    return total


def by_wengert(task: Control) -> Problem:
    """The problem with the derivatives of Wengert."""
    constraints = compile(lambda z: task.constraints(wengert, z))
    return Problem(
        compile(value_and_grad(task.cost)),
        lambda z: np.array(constraints(z), float),
        jacobian(lambda z: task.constraints(wengert, z), sparse=True),
        hessian(lambda z, factor, multipliers: lagrangian(task, wengert, z, factor, multipliers), sparse=True),
    )


def by_casadi(task: Control) -> Problem:
    """The problem with the derivatives of CasADi."""
    import casadi

    z, factor, multipliers = [casadi.SX.sym(*of) for of in (("z", len(task.z)), ("f",), ("m", len(task.multipliers)))]
    parts = casadi.vertsplit(z)
    cost, constraints = task.cost(parts), casadi.vertcat(*task.constraints(casadi, parts))
    whole = lagrangian(task, casadi, parts, factor, casadi.vertsplit(multipliers))
    of = casadi.Function("cost", [z], [cost, casadi.gradient(cost, z)])
    values = casadi.Function("constraints", [z], [constraints])
    slopes = casadi.Function("jacobian", [z], [casadi.jacobian(constraints, z)])
    curves = casadi.Function("hessian", [z, factor, multipliers], [casadi.hessian(whole, z)[0]])

    def both(z: Any) -> tuple[float, np.ndarray]:
        value, slope = of(z)
        return float(value), slope.full().ravel()

    return Problem(
        both,
        lambda z: values(z).full().ravel(),
        lambda z: slopes(z).sparse().tocsr(),
        lambda z, factor, multipliers: curves(z, factor, multipliers).sparse().tocsr(),
    )


def by_scipy(problem: Problem, start: np.ndarray) -> tuple[np.ndarray, int]:
    """The solution by trust-constr, and its iterations."""
    from scipy.optimize import NonlinearConstraint, minimize
    from scipy.sparse import csr_array

    nothing = csr_array((len(start), len(start)))  # the constraints' Hessian has the cost's in it
    constraint = NonlinearConstraint(
        problem.constraints, 0.0, 0.0, jac=problem.jacobian, hess=lambda z, m: problem.hessian(z, 1.0, m)
    )
    settings: Any = {"options": {"gtol": 1e-10, "xtol": 1e-12, "maxiter": 200}, "constraints": [constraint]}
    found = minimize(problem.cost, start, jac=True, hess=lambda z: nothing, method="trust-constr", **settings)
    return found.x, int(found.nit)


def by_ipopt(problem: Problem, start: np.ndarray) -> tuple[np.ndarray, int]:
    """The solution by IPOPT, and its iterations."""
    import cyipopt
    from scipy.sparse import tril

    count, rows = len(start), len(problem.constraints(start))
    slopes = problem.jacobian(start).tocoo()
    curves = tril(problem.hessian(start, 1.0, np.ones(rows))).tocoo()

    class Callbacks:
        iterations = 0
        objective = staticmethod(lambda z: problem.cost(z)[0])
        gradient = staticmethod(lambda z: problem.cost(z)[1])
        constraints = staticmethod(problem.constraints)
        jacobian = staticmethod(lambda z: problem.jacobian(z).data)
        jacobianstructure = staticmethod(lambda: (slopes.row, slopes.col))
        hessian = staticmethod(lambda z, multipliers, factor: tril(problem.hessian(z, factor, multipliers)).data)
        hessianstructure = staticmethod(lambda: (curves.row, curves.col))

        def intermediate(self, mode: int, iteration: int, *_: Any) -> bool:
            self.iterations = iteration
            return True

    callbacks, zero = Callbacks(), np.zeros(rows)
    solver = cyipopt.Problem(count, rows, callbacks, np.full(count, -1e20), np.full(count, 1e20), zero, zero)
    for option, value in (("print_level", 0), ("sb", "yes"), ("tol", 1e-10)):
        solver.add_option(option, value)
    point, _ = solver.solve(start)
    return point, callbacks.iterations


SOLVERS: dict[str, tuple[str, Callable[[Problem, np.ndarray], tuple[np.ndarray, int]]]] = {
    "IPOPT": ("cyipopt", by_ipopt),
    "SciPy, trust-constr": ("scipy.optimize", by_scipy),
}
"""The module that a solver needs, and what calls it."""


def solved(stages: int = 50) -> tuple[str, bool]:
    """A table of solvers with the derivatives of both tools, and whether one came to another point, or later."""
    task = Control("Hessian", stages)
    start = np.zeros(len(task.z))
    makers = {"CasADi": ("casadi", by_casadi), "Wengert": ("wengert", by_wengert)}
    rows, first, differ = [], {}, False
    for solver, (module, solve) in SOLVERS.items():
        for tool, (needed, make) in makers.items():
            try:
                importlib.import_module(module)
                importlib.import_module(needed)
            except ImportError as error:
                rows.append([solver, tool, f"{error.name} is not installed", "", "", "", ""])
                continue
            problem = make(task)
            began = time.perf_counter()
            solve(problem, start)
            cold = time.perf_counter() - began
            began = time.perf_counter()
            point, iterations = solve(problem, start)
            taken = time.perf_counter() - began
            want, count = first.setdefault(solver, (point, iterations))
            apart = float(abs(point - want).max() / abs(want).max())
            differ |= not apart < SAME or iterations != count
            off = abs(problem.constraints(point)).max()
            rows.append([solver, tool, str(iterations), f"{apart:.0e}", f"{off:.0e}", duration(cold), duration(taken)])
    head = ["solver", "derivatives", "iterations", "apart", "constraints", "the first time", "the second"]
    return table(head, rows), differ
