"""Derivatives that engineers and scientists compute: orbits, cameras, reactions, trusses, heat, molecules, fluids.

A way of a task is made as `benchmarks.peers.tasks` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

import wengert
from benchmarks.peers.tasks import Task, Way, draw, jax_library, jitted, runge_kutta
from wengert import compile, hessian, jacobian, value_and_grad

__all__ = ["TASKS"]


class Orbit(Task):
    """How the last state of an orbit around the flattened Earth depends on the first: its transition matrix."""

    def __init__(self, steps: int = 200) -> None:
        self.title = f"orbit, RK4, {steps} steps: transition matrix 6 x 6"
        self.steps = steps
        self.state = np.array([1.1, 0.1, 0.2, -0.1, 0.9, 0.3])  # in radii of the Earth

    @staticmethod
    def slope(m: Any, s: Any) -> list[Any]:
        """Velocity, and gravity with the term of the flattening."""
        x, y, z = s[0], s[1], s[2]
        square = x * x + y * y + z * z
        pull = 1.0 / (square * m.sqrt(square))
        flat = 1.5 * 1.0826e-3 / square
        polar = 5.0 * z * z / square
        across = -pull * (1.0 + flat * (1.0 - polar))
        return [s[3], s[4], s[5], across * x, across * y, -pull * (1.0 + flat * (3.0 - polar)) * z]

    def last(self, m: Any, state: Any) -> Any:
        """A plain loop over the steps."""
        for _ in range(self.steps):
            state = runge_kutta(lambda s: self.slope(m, s), state, 0.02)
        return state

    def wengert(self) -> Way:
        return compile(jacobian(lambda s: self.last(wengert, s))), (self.state,)

    def casadi(self) -> Way:
        import casadi

        s = casadi.SX.sym("s", 6)
        last = casadi.vertcat(*self.last(casadi, casadi.vertsplit(s)))
        return casadi.Function("f", [s], [casadi.jacobian(last, s)]), (self.state,)

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def last(state: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                return jax.numpy.stack(runge_kutta(lambda s: self.slope(m, s), state, 0.02)), None

            return jax.lax.scan(step, state, None, self.steps)[0]

        return jitted(jax.jacfwd(last), self.state)


class Cameras(Task):
    """The calibration of a camera by views of a board of corners: six numbers of the lens, six of each view's pose."""

    def __init__(self, views: int = 5, corners: int = 40) -> None:
        rows, columns = 2 * views * corners, 6 + 6 * views
        self.title = f"camera calibration, {views} views: Jacobian {rows} x {columns}, sparse"
        self.views = views
        self.board = draw(41).uniform(-1.0, 1.0, (corners, 2))
        self.seen = draw(42).uniform(0.0, 640.0, (views, corners, 2))
        poses = np.concatenate([draw(43).uniform(-0.4, 0.4, (views, 5)), np.full((views, 1), 5.0)], 1)
        self.p = np.concatenate([[600.0, 610.0, 320.0, 240.0, -0.1, 0.02], poses.ravel()])

    @staticmethod
    def place(m: Any, lens: Any, pose: Any, corner: Any) -> list[Any]:
        """Where a corner is in the picture: the rotation is by Euler's angles, the lens Brown's of 1966."""
        (a, b, c), (x, y) = [(m.cos(pose[n]), m.sin(pose[n])) for n in range(3)], corner
        x, y, z = x, a[0] * y, a[1] * y
        x, z = b[0] * x + b[1] * z, b[0] * z - b[1] * x
        x, y = c[0] * x - c[1] * y, c[1] * x + c[0] * y
        u, v = (x + pose[3]) / (z + pose[5]), (y + pose[4]) / (z + pose[5])
        square = u * u + v * v
        bend = 1.0 + lens[4] * square + lens[5] * square * square
        return [lens[0] * bend * u + lens[2], lens[1] * bend * v + lens[3]]

    def residuals(self, m: Any, p: Any) -> list[Any]:
        """A plain loop over views and corners."""
        out = []
        for k in range(self.views):
            pose = p[6 * k + 6 : 6 * k + 12]
            for corner, seen in zip(self.board, self.seen[k], strict=True):
                u, v = self.place(m, p, pose, corner)
                out += [u - seen[0], v - seen[1]]
        return out

    def whole(self, p: Any) -> Any:
        """The same with JAX's arrays."""
        import jax

        def one(pose: Any, corner: Any, seen: Any) -> Any:
            return jax.numpy.stack(self.place(jax_library(), p, pose, corner)) - seen

        over = jax.vmap(jax.vmap(one, (None, 0, 0)), (0, None, 0))
        return over(p[6:].reshape(-1, 6), self.board, self.seen).ravel()

    def wengert(self) -> Way:
        return jacobian(lambda p: self.residuals(wengert, p), sparse=True), (self.p,)

    def casadi(self) -> Way:
        import casadi

        p = casadi.SX.sym("p", len(self.p))
        out = casadi.vertcat(*self.residuals(casadi, casadi.vertsplit(p)))
        return casadi.Function("f", [p], [casadi.jacobian(out, p)]), (self.p,)

    def jax(self) -> Way:
        import jax

        return jitted(jax.jacfwd(self.whole), self.p)

    def asdex(self) -> Way:
        import asdex

        return jitted(asdex.jacobian(self.whole, self.p), self.p)


class NeuralOde(Task):
    """A network learns a slope: the loss of a trajectory and its gradient (Chen et al. 2018)."""

    def __init__(self, steps: int = 40, width: int = 16) -> None:
        self.title = f"neural ODE 2-{width}-2, RK4, {steps} steps: loss and gradient"
        self.steps, self.width = steps, width
        self.weights = 0.4 * draw(44).normal(size=5 * width + 2)
        self.data = draw(45).normal(size=(steps, 2))

    def split(self, w: Any) -> tuple[Any, Any, Any, Any]:
        """The matrices and biases of both layers."""
        n = self.width
        return w[: 2 * n].reshape(n, 2), w[2 * n : 3 * n], w[3 * n : 5 * n].reshape(2, n), w[5 * n :]

    def wengert(self) -> Way:
        def loss(w: Any) -> Any:
            inner, bias, outer, last = self.split(w)

            def slope(s: Any) -> Any:
                return outer @ np.tanh(inner @ np.array(s) + bias) + last

            state: Any = [1.0, 0.0]
            total: Any = 0.0
            for x, y in self.data:
                state = runge_kutta(slope, state, 0.1)
                total = total + (state[0] - x) ** 2 + (state[1] - y) ** 2
            return total

        return compile(value_and_grad(loss)), (self.weights,)

    def casadi(self) -> Way:
        import casadi

        n = self.width
        w = casadi.SX.sym("w", 5 * n + 2)
        inner, bias = casadi.reshape(w[: 2 * n], 2, n).T, w[2 * n : 3 * n]
        outer, last = casadi.reshape(w[3 * n : 5 * n], n, 2).T, w[5 * n :]

        def slope(s: Any) -> Any:
            return casadi.vertsplit(outer @ casadi.tanh(inner @ casadi.vertcat(*s) + bias) + last)

        state: Any = [1.0, 0.0]
        loss: Any = 0.0
        for x, y in self.data:
            state = runge_kutta(slope, state, 0.1)
            loss = loss + (state[0] - x) ** 2 + (state[1] - y) ** 2
        return casadi.Function("f", [w], [loss, casadi.gradient(loss, w)]), (self.weights,)

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def loss(w: Any) -> Any:
            inner, bias, outer, last = self.split(w)

            def slope(s: Any) -> Any:
                return outer @ m.tanh(inner @ jax.numpy.stack(s) + bias) + last

            def step(state: Any, seen: Any) -> Any:
                state = jax.numpy.stack(runge_kutta(slope, state, 0.1))
                return state, ((state - seen) ** 2).sum()

            return jax.lax.scan(step, jax.numpy.array([1.0, 0.0]), self.data)[1].sum()

        return jitted(jax.value_and_grad(loss), self.weights)


class Hires(Task):
    """Eight kinds of phytochrome that react: the Jacobian that a stiff integrator asks for (Schaefer 1975)."""

    def __init__(self, count: int) -> None:
        self.title = "chemical kinetics HIRES: Jacobian 8 x 8" + (f", {count:,} reactors" if count > 1 else "")
        self.count, self.columns = count, count > 1
        states = draw(46).uniform(0.0, 1.0, (count, 8))
        self.states = states[0] if count == 1 else states

    @staticmethod
    def slope(y: Any) -> list[Any]:
        """What comes and goes of each kind in a second."""
        fast = 280.0 * y[5] * y[7]
        return [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -fast + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            fast - 1.81 * y[6],
            -fast + 1.81 * y[6],
        ]

    def wengert(self) -> Way:
        compiled = compile(jacobian(self.slope))
        return compiled if self.count == 1 else compiled.map, (self.states,)

    def casadi(self) -> Way:
        import casadi

        y = casadi.SX.sym("y", 8)
        out = casadi.jacobian(casadi.vertcat(*self.slope(casadi.vertsplit(y))), y)
        if self.count == 1:
            return casadi.Function("f", [y], [out]), (self.states,)
        return casadi.Function("f", [y], [casadi.vec(casadi.densify(out.T))]).map(self.count), (self.states.T,)

    def jax(self) -> Way:
        import jax

        one = jax.jacfwd(lambda y: jax.numpy.stack(self.slope(y)))
        return jitted(one if self.count == 1 else jax.vmap(one), self.states)


class Truss(Task):
    """The stiffness of a truss that is bent far: the Hessian of its bars' energy in the places of its nodes."""

    def __init__(self, side: int = 12) -> None:
        self.side = side
        node = np.arange(side * side).reshape(side, side)
        bars = [(node[:, :-1], node[:, 1:]), (node[:-1], node[1:]), (node[:-1, :-1], node[1:, 1:])]
        self.first, self.second = [np.concatenate([pair[end].ravel() for pair in bars]) for end in (0, 1)]
        rest = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)
        self.lengths = np.linalg.norm(rest[self.first] - rest[self.second], axis=1)
        self.x = (rest + draw(47).normal(0.0, 0.1, rest.shape)).ravel()
        self.title = f"truss of {len(self.first)} bars: Hessian of {len(self.x)} variables, sparse"

    def energy(self, m: Any, x: Any) -> Any:
        """A plain loop over the bars."""
        total: Any = 0.0
        for i, j, rest in zip(self.first.tolist(), self.second.tolist(), self.lengths.tolist(), strict=True):
            length = m.sqrt((x[2 * i] - x[2 * j]) ** 2 + (x[2 * i + 1] - x[2 * j + 1]) ** 2)
            total = total + 0.5 * (length - rest) ** 2 / rest
        return total

    def whole(self, x: Any) -> Any:
        """The same with JAX's arrays."""
        apart = x.reshape(-1, 2)[self.first] - x.reshape(-1, 2)[self.second]
        return (0.5 * (jax_library().sqrt((apart**2).sum(1)) - self.lengths) ** 2 / self.lengths).sum()

    def wengert(self) -> Way:
        return hessian(lambda x: self.energy(wengert, x), sparse=True), (self.x,)

    def casadi(self) -> Way:
        import casadi

        x = casadi.SX.sym("x", len(self.x))
        return casadi.Function("f", [x], [casadi.hessian(self.energy(casadi, casadi.vertsplit(x)), x)[0]]), (self.x,)

    def jax(self) -> Way:
        import jax

        return jitted(jax.hessian(self.whole), self.x)

    def asdex(self) -> Way:
        import asdex

        return jitted(asdex.hessian(self.whole, self.x), self.x)


class Heat(Task):
    """An implicit step of heat in a plate whose conductivity depends on temperature: its residual's Jacobian."""

    def __init__(self, side: int = 32) -> None:
        self.side = side
        self.title = f"heat in a plate, {side} x {side}: Jacobian of the residual, sparse"
        self.u, self.before = draw(48).uniform(0.0, 1.0, (2, side * side))

    def residual(self, u: Any) -> list[Any]:
        """A plain loop over the cells; no heat passes the edges."""
        n, out = self.side, []
        for i in range(n):
            for j in range(n):
                here = u[n * i + j]
                total = here - self.before[n * i + j]
                for row, column in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                    if 0 <= row < n and 0 <= column < n:
                        there = u[n * row + column]
                        total = total - 0.1 * (1.0 + 0.25 * (here + there) ** 2) * (there - here)
                out.append(total)
        return out

    def whole(self, u: Any) -> Any:
        """The same with JAX's arrays."""
        import jax

        u = u.reshape(self.side, self.side)
        out = u - self.before.reshape(u.shape)
        for axis in (0, 1):
            a, b = (u[:-1], u[1:]) if axis == 0 else (u[:, :-1], u[:, 1:])
            flow = 0.1 * (1.0 + 0.25 * (a + b) ** 2) * (b - a)
            ends = [((0, 1), (0, 0)), ((1, 0), (0, 0))] if axis == 0 else [((0, 0), (0, 1)), ((0, 0), (1, 0))]
            out = out - jax.numpy.pad(flow, ends[0]) + jax.numpy.pad(flow, ends[1])
        return out.ravel()

    def wengert(self) -> Way:
        return jacobian(self.residual, sparse=True), (self.u,)

    def casadi(self) -> Way:
        import casadi

        u = casadi.SX.sym("u", len(self.u))
        out = casadi.vertcat(*self.residual(casadi.vertsplit(u)))
        return casadi.Function("f", [u], [casadi.jacobian(out, u)]), (self.u,)

    def jax(self) -> Way:
        import jax

        return jitted(jax.jacfwd(self.whole), self.u)

    def asdex(self) -> Way:
        import asdex

        return jitted(asdex.jacobian(self.whole, self.u), self.u)


class Cluster(Task):
    """Atoms of a noble gas by the potential of Lennard-Jones: the Hessian has the frequencies of their vibrations."""

    def __init__(self, count: int = 13) -> None:
        self.title = f"Lennard-Jones cluster of {count} atoms: Hessian {3 * count} x {3 * count}"
        self.count = count
        grid = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)[:count]
        self.x = (1.1 * grid + draw(49).normal(0.0, 0.05, grid.shape)).ravel()

    def energy(self, x: Any) -> Any:
        """A plain loop over the pairs."""
        total: Any = 0.0
        for i, j in combinations(range(self.count), 2):
            square = sum((x[3 * i + n] - x[3 * j + n]) ** 2 for n in range(3))
            sixth = 1.0 / square**3
            total = total + 4.0 * (sixth * sixth - sixth)
        return total

    def wengert(self) -> Way:
        return compile(hessian(self.energy)), (self.x,)

    def casadi(self) -> Way:
        import casadi

        x = casadi.SX.sym("x", len(self.x))
        return casadi.Function("f", [x], [casadi.hessian(self.energy(casadi.vertsplit(x)), x)[0]]), (self.x,)

    def jax(self) -> Way:
        import jax

        first, second = np.triu_indices(self.count, 1)

        def energy(x: Any) -> Any:
            places = x.reshape(-1, 3)
            sixth = 1.0 / ((places[first] - places[second]) ** 2).sum(1) ** 3
            return (4.0 * (sixth * sixth - sixth)).sum()

        return jitted(jax.hessian(energy), self.x)


class Fluid(Task):
    """The Helmholtz energy of a fluid by the equation of Peng and Robinson, 1976: its Hessian has the heat capacity."""

    columns = True

    def __init__(self, count: int = 10_000) -> None:
        self.title = f"Peng-Robinson fluid, {count:,} states: Hessians 2 x 2"
        self.count = count
        self.states = draw(50).uniform([280.0, 2e-4], [400.0, 2e-2], (count, 2))  # kelvin, cubic metres a mole

    @staticmethod
    def energy(m: Any, x: Any) -> Any:
        """Of a mole of carbon dioxide, in joules."""
        temperature, volume = x[0], x[1]
        gas, critical, pressure, acentric = 8.314462618, 304.13, 7.3773e6, 0.22394
        b = 0.0777961 * gas * critical / pressure
        kappa = 0.37464 + 1.54226 * acentric - 0.26992 * acentric**2
        alpha = (1.0 + kappa * (1.0 - m.sqrt(temperature / critical))) ** 2
        a = 0.457236 * gas**2 * critical**2 / pressure * alpha
        root = math.sqrt(2.0)
        spread = m.log((volume + (1.0 + root) * b) / (volume + (1.0 - root) * b))
        return -gas * temperature * m.log(volume - b) - a / (2.0 * root * b) * spread

    def wengert(self) -> Way:
        return compile(hessian(lambda x: self.energy(wengert, x))).map, (self.states,)

    def casadi(self) -> Way:
        import casadi

        x = casadi.SX.sym("x", 2)
        out = casadi.vec(casadi.hessian(self.energy(casadi, casadi.vertsplit(x)), x)[0])
        return casadi.Function("f", [x], [out]).map(self.count), (self.states.T,)

    def jax(self) -> Way:
        import jax

        return jitted(jax.vmap(jax.hessian(lambda x: self.energy(jax_library(), x))), self.states)


TASKS: dict[str, Callable[[], Task]] = {
    "cameras": Cameras,
    "orbit": Orbit,
    "neural ODE": NeuralOde,
    "kinetics, one": lambda: Hires(1),
    "kinetics": lambda: Hires(10_000),
    "truss": Truss,
    "heat": Heat,
    "cluster": Cluster,
    "fluid": Fluid,
}
