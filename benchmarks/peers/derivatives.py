"""Derivatives that engineers and scientists compute: each task as Wengert, CasADi, JAX and SciPy or NumPy have it.

A way of a task is made by a method of the tool's name, written as the tool's documentation has it. Wengert's, JAX's and
what is by hand give a function and its arguments, CasADi's a `casadi.Function` and its arguments. What the tools share
is a formula: a text that takes the library `m` whose functions it calls.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import wengert
from benchmarks.peers import estimation, physics
from benchmarks.peers.tasks import Task, Way, draw, jax_library, jitted, runge_kutta
from wengert import compile, grad, hessian, hvp, jacobian, value_and_grad

__all__ = ["TASKS"]

# -- a fit of a differential equation ----------------------------------------------------------------------------------


class Fit(Task):
    """Predators and prey: the residuals of 50 observations of both by the four rates."""

    bar, prepared = 150e-6, 0.5

    def __init__(self, steps: int = 500) -> None:
        self.title = f"fit of an ODE, RK4, {steps} steps: Jacobian {steps // 5} x 4"
        self.steps = steps
        self.rates = np.array([1.1, 0.4, 0.4, 0.1])
        self.seen = draw(1).uniform(1.0, 10.0, (steps // 10, 2))

    @staticmethod
    def step(rates: Any, state: Any) -> list[Any]:
        """The numbers of both a step later."""
        a, b, c, d = rates
        return runge_kutta(lambda s: [a * s[0] - b * s[0] * s[1], d * s[0] * s[1] - c * s[1]], state, 0.02)

    def residuals(self, rates: Any) -> list[Any]:
        """What differs from what was seen, at each tenth step."""
        state: list[Any] = [10.0, 5.0]
        out = []
        for k in range(self.steps):
            state = self.step(rates, state)
            if k % 10 == 9:
                x, y = self.seen[k // 10]
                out += [state[0] - x, state[1] - y]
        return out

    def wengert(self) -> Way:
        return compile(jacobian(self.residuals)), (self.rates,)

    def casadi(self) -> Way:
        import casadi

        rates = casadi.SX.sym("rates", 4)
        out = casadi.vertcat(*self.residuals(casadi.vertsplit(rates)))
        return casadi.Function("f", [rates], [casadi.jacobian(out, rates)]), (self.rates,)

    def jax(self) -> Way:
        import jax

        def residuals(rates: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                state = jax.numpy.array(self.step(rates, state))
                return state, state

            _, states = jax.lax.scan(step, jax.numpy.array([10.0, 5.0]), None, self.steps)
            return (states[9::10] - self.seen).ravel()

        return jitted(jax.jacfwd(residuals), self.rates)


# -- optimal control ---------------------------------------------------------------------------------------------------


def cart_pole(m: Any, state: Any, force: Any) -> list[Any]:
    """Where a cart and its pole are a twentieth of a second later: place, angle, and their velocities."""

    def slope(s: Any) -> list[Any]:
        _, angle, speed, spin = s
        sine, cosine = m.sin(angle), m.cos(angle)
        mass = 1.0 + 0.1 * sine * sine
        return [
            speed,
            spin,
            (force + 0.1 * sine * (0.5 * spin * spin + 9.81 * cosine)) / mass,
            (-force * cosine - 0.05 * spin * spin * cosine * sine - 1.1 * 9.81 * sine) / (0.5 * mass),
        ]

    return runge_kutta(slope, state, 0.05)


class Control(Task):
    """A cart balances its pole, by multiple shooting; the variables of a stage are its state and its force."""

    patience = 90.0

    def __init__(self, what: str, stages: int = 50) -> None:
        self.what, self.stages = what, stages
        count = 5 * stages + 4
        shape = f"{count - stages} x {count}" if what == "Jacobian" else f"{count} x {count}"
        self.title = f"optimal control, {stages} stages: {what} {shape}, sparse"
        self.bar, self.prepared = (10e-6, 0.5) if what == "Jacobian" else (25e-6, 0.7)
        self.z = draw(2).uniform(-1.0, 1.0, count)
        self.multipliers = draw(3).uniform(-1.0, 1.0, count - stages)

    def cost(self, z: Any) -> Any:
        """Places and forces squared."""
        total: Any = 0.0
        for k in range(0, 5 * self.stages, 5):
            total = total + 0.5 * (z[k] * z[k] + 0.1 * z[k + 4] * z[k + 4])
        return total

    def constraints(self, m: Any, z: Any) -> list[Any]:
        """Each state is what the last one comes to, and the first is given."""
        out = [z[0], z[1] - 0.3, z[2], z[3]]
        for k in range(0, 5 * self.stages, 5):
            moved = cart_pole(m, z[k : k + 4], z[k + 4])
            out += [z[k + 5 + n] - moved[n] for n in range(4)]
        return out

    def lagrangian(self, m: Any, z: Any, multipliers: Any) -> Any:
        """The cost, and the constraints times their multipliers."""
        total = self.cost(z)
        for n, c in enumerate(self.constraints(m, z)):
            total = total + multipliers[n] * c
        return total

    def whole(self, z: Any) -> Any:
        """The constraints with JAX's arrays."""
        import jax

        m, one, stages = jax_library(), jax.numpy.array, z[:-4].reshape(-1, 5)
        moved = jax.vmap(lambda row: one(cart_pole(m, row[:4], row[4])))(stages)
        later = jax.numpy.concatenate([stages[1:, :4], z[None, -4:]])
        return jax.numpy.concatenate([z[:4] - one([0.0, 0.3, 0.0, 0.0]), (later - moved).ravel()])

    def whole_lagrangian(self, z: Any, multipliers: Any) -> Any:
        """The Lagrangian with JAX's arrays."""
        stages = z[:-4].reshape(-1, 5)
        return 0.5 * ((stages[:, 0] ** 2).sum() + 0.1 * (stages[:, 4] ** 2).sum()) + multipliers @ self.whole(z)

    def wengert(self) -> Way:
        if self.what == "Jacobian":
            return jacobian(lambda z: self.constraints(wengert, z), sparse=True), (self.z,)
        return hessian(lambda z, m: self.lagrangian(wengert, z, m), sparse=True), (self.z, self.multipliers)

    def casadi(self) -> Way:
        import casadi

        z, multipliers = casadi.SX.sym("z", len(self.z)), casadi.SX.sym("m", len(self.multipliers))
        parts = casadi.vertsplit(z)
        if self.what == "Jacobian":
            out = casadi.jacobian(casadi.vertcat(*self.constraints(casadi, parts)), z)
            return casadi.Function("f", [z], [out]), (self.z,)
        out, _ = casadi.hessian(self.lagrangian(casadi, parts, casadi.vertsplit(multipliers)), z)
        return casadi.Function("f", [z, multipliers], [out]), (self.z, self.multipliers)

    def jax(self) -> Way:
        import jax

        if self.what == "Jacobian":
            return jitted(jax.jacrev(self.whole), self.z)
        return jitted(jax.hessian(self.whole_lagrangian), self.z, self.multipliers)

    def asdex(self) -> Way:
        import asdex

        if self.what == "Jacobian":
            return jitted(asdex.jacobian(self.whole, self.z), self.z)
        return jitted(asdex.hessian(self.whole_lagrangian, self.z, self.multipliers), self.z, self.multipliers)


# -- unconstrained problems of many variables --------------------------------------------------------------------------


class Rosenbrock(Task):
    """Rosenbrock's valley, 1960, in many dimensions."""

    def __init__(self, what: str, count: int = 1000) -> None:
        self.title = f"Rosenbrock, {count:,} variables: {what}"
        self.what, self.count = what, count
        self.bar = {"gradient": 10e-6, "hvp": 15e-6, "sparse Hessian": 30e-6}.get(what, math.inf)
        self.prepared = 0.2 if what == "hvp" else math.inf
        self.x, self.v = draw(4).uniform(-1.0, 1.5, (2, count))

    @staticmethod
    def value(x: Any) -> Any:
        """A plain loop over the pairs of neighbours."""
        return wengert.sum([100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 for a, b in pairwise(x)])

    @staticmethod
    def whole(m: Any, x: Any) -> Any:
        """The same with arrays."""
        a, b = x[:-1], x[1:]
        return m.sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2)

    def wengert(self) -> Way:
        if self.what == "gradient":
            return compile(grad(self.value)), (self.x,)
        if self.what == "hvp":
            return compile(hvp(self.value)), (self.x, self.v)
        if self.what == "sparse Hessian":
            return hessian(self.value, sparse=True), (self.x,)
        return compile(hessian(self.value)), (self.x,)

    def casadi(self) -> Way:
        import casadi

        x, v = casadi.SX.sym("x", self.count), casadi.SX.sym("v", self.count)
        value = self.whole(types.SimpleNamespace(sum=casadi.sum1), x)
        slope = casadi.gradient(value, x)
        if self.what == "gradient":
            return casadi.Function("f", [x], [slope]), (self.x,)
        if self.what == "hvp":
            return casadi.Function("f", [x, v], [casadi.jtimes(slope, x, v, True)]), (self.x, self.v)
        return casadi.Function("f", [x], [casadi.hessian(value, x)[0]]), (self.x,)

    def jax(self) -> Way:
        import jax

        slope = jax.grad(lambda x: self.whole(jax.numpy, x))
        if self.what == "gradient":
            return jitted(slope, self.x)
        if self.what == "hvp":
            return jitted(lambda x, v: jax.jvp(slope, (x,), (v,))[1], self.x, self.v)
        return jitted(jax.jacfwd(slope), self.x)

    def asdex(self) -> Way:
        import asdex
        import jax

        if self.what != "sparse Hessian":
            raise NotImplementedError
        return jitted(asdex.hessian(lambda x: self.whole(jax.numpy, x), self.x), self.x)

    def hand(self) -> Way:
        from scipy.optimize import rosen_der, rosen_hess, rosen_hess_prod

        if self.what == "hvp":
            return rosen_hess_prod, (self.x, self.v)
        return rosen_der if self.what == "gradient" else rosen_hess, (self.x,)


class LuksanVlcek(Task):
    """The Lagrangian of problem 5.1 of Luksan and Vlcek, 1999: the valley, constrained."""

    def __init__(self, what: str, count: int) -> None:
        self.title = f"Luksan-Vlcek, {count:,} variables: {what} of the Lagrangian"
        self.what, self.count = what, count
        self.x, self.v = draw(5).uniform(-1.0, 1.0, (2, count))
        self.multipliers = draw(6).uniform(-1.0, 1.0, count - 2)

    @staticmethod
    def constraint(m: Any, a: Any, b: Any, c: Any) -> Any:
        """Of three neighbours."""
        return 3 * b**3 + 2 * c - 5 + m.sin(b - c) * m.sin(b + c) + 4 * b - a * m.exp(a - b) - 3

    def lagrangian(self, x: Any, multipliers: Any) -> Any:
        """A plain loop over neighbours."""
        value = wengert.sum([100.0 * (a**2 - b) ** 2 + (a - 1.0) ** 2 for a, b in pairwise(x)])
        triples = zip(x, x[1:], x[2:], multipliers, strict=False)
        return value + wengert.sum([w * self.constraint(wengert, a, b, c) for a, b, c, w in triples])

    def whole(self, m: Any, total: Any, x: Any, multipliers: Any) -> Any:
        """The same with arrays."""
        a, b = x[:-1], x[1:]
        value = total(100.0 * (a**2 - b) ** 2 + (a - 1.0) ** 2)
        return value + total(multipliers * self.constraint(m, x[:-2], x[1:-1], x[2:]))

    def wengert(self) -> Way:
        if self.what == "gradient":
            return compile(grad(self.lagrangian)), (self.x, self.multipliers)
        if self.what == "hvp":
            return compile(hvp(self.lagrangian)), (self.x, self.v, self.multipliers)
        return hessian(self.lagrangian, sparse=True), (self.x, self.multipliers)

    def casadi(self) -> Way:
        import casadi

        x, v = casadi.SX.sym("x", self.count), casadi.SX.sym("v", self.count)
        multipliers = casadi.SX.sym("m", self.count - 2)
        value = self.whole(casadi, casadi.sum1, x, multipliers)
        if self.what == "sparse Hessian":
            return casadi.Function("f", [x, multipliers], [casadi.hessian(value, x)[0]]), (self.x, self.multipliers)
        slope = casadi.gradient(value, x)
        if self.what == "gradient":
            return casadi.Function("f", [x, multipliers], [slope]), (self.x, self.multipliers)
        product = casadi.jtimes(slope, x, v, True)
        return casadi.Function("f", [x, multipliers, v], [product]), (self.x, self.multipliers, self.v)

    def jax(self) -> Way:
        import jax

        slope = jax.grad(lambda x, w: self.whole(jax_library(), jax.numpy.sum, x, w))
        if self.what == "gradient":
            return jitted(slope, self.x, self.multipliers)
        if self.what == "sparse Hessian" and self.count > 1000:
            raise NotImplementedError  # a dense matrix would take gigabytes
        if self.what == "sparse Hessian":
            return jitted(jax.jacfwd(slope), self.x, self.multipliers)

        def product(x: Any, multipliers: Any, v: Any) -> Any:
            return jax.jvp(lambda x: slope(x, multipliers), (x,), (v,))[1]

        return jitted(product, self.x, self.multipliers, self.v)

    def asdex(self) -> Way:
        import asdex
        import jax

        if self.what != "sparse Hessian":
            raise NotImplementedError

        def value(x: Any, w: Any) -> Any:
            return self.whole(jax_library(), jax.numpy.sum, x, w)

        return jitted(asdex.hessian(value, self.x, self.multipliers), self.x, self.multipliers)


# -- finance and statistics --------------------------------------------------------------------------------------------


def price(m: Any, spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """The price of a European call: Black and Scholes 1973."""
    spread = volatility * m.sqrt(years)
    d = (m.log(spot / strike) + (rate + volatility * volatility * 0.5) * years) / spread
    below, above = 0.5 + 0.5 * m.erf(d * math.sqrt(0.5)), 0.5 + 0.5 * m.erf((d - spread) * math.sqrt(0.5))
    return spot * below - strike * m.exp(-rate * years) * above


def greeks(grad: Any, f: Any, *option: Any) -> list[Any]:
    """Delta, vega, theta, rho, gamma, vanna, volga, and speed, which is of third order."""
    delta, vega = grad(f, 0), grad(f, 3)
    gamma = grad(delta, 0)
    of = [delta, vega, grad(f, 4), grad(f, 2), gamma, grad(delta, 3), grad(vega, 3), grad(gamma, 0)]
    return [derivative(*option) for derivative in of]


class Greeks(Task):
    """Eight derivatives of the price of an option, up to third order."""

    def __init__(self, count: int) -> None:
        self.title = (
            "Black-Scholes, 8 Greeks: one option" if count == 1 else f"Black-Scholes, 8 Greeks: {count:,} options"
        )
        self.count, self.columns = count, count > 1
        self.bar = 2e-6 if count == 1 else 9e-3 * count / 100_000
        low, high = np.transpose([(80, 120), (80, 120), (0.01, 0.05), (0.1, 0.4), (0.2, 2.0)])
        options = draw(7).uniform(low, high, (count, 5))
        self.options = tuple(options[0].tolist()) if count == 1 else tuple(np.ascontiguousarray(options.T))

    def wengert(self) -> Way:
        def call(s: Any, k: Any, r: Any, v: Any, t: Any) -> Any:
            return price(wengert, s, k, r, v, t)

        @compile
        def all_greeks(s: Any, k: Any, r: Any, v: Any, t: Any) -> Any:
            return greeks(grad, call, s, k, r, v, t)

        return all_greeks if self.count == 1 else all_greeks.map, self.options

    def casadi(self) -> Way:
        import casadi

        s, _, r, v, t = given = [casadi.SX.sym(name) for name in ("s", "k", "r", "v", "t")]
        value, by = price(casadi, *given), casadi.gradient
        delta, vega = by(value, s), by(value, v)
        gamma = by(delta, s)
        out = [delta, vega, by(value, t), by(value, r), gamma, by(delta, v), by(vega, v), by(gamma, s)]
        function = casadi.Function("f", given, [casadi.vertcat(*out)])
        return function if self.count == 1 else function.map(self.count), self.options

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def all_greeks(*option: Any) -> Any:
            return jax.numpy.stack(greeks(jax.grad, lambda *option: price(m, *option), *option))

        return jitted(all_greeks if self.count == 1 else jax.vmap(all_greeks), *self.options)

    def hand(self) -> Way:
        from scipy.special import ndtr

        def closed(s: Any, k: Any, r: Any, v: Any, t: Any) -> Any:
            root = np.sqrt(t)
            spread, paid = v * root, k * np.exp(-r * t)
            d = (np.log(s / k) + (r + v * v * 0.5) * t) / spread
            e = d - spread
            bell, delta, below = np.exp(-0.5 * d * d) / math.sqrt(2 * math.pi), ndtr(d), ndtr(e)
            vega, gamma = s * bell * root, bell / (s * spread)
            theta = s * bell * v / (2 * root) + r * paid * below
            more = [-bell * e / v, vega * d * e / v, -gamma / s * (d / spread + 1)]
            return np.stack([delta, vega, theta, t * paid * below, gamma, *more], -1)

        return closed, self.options


class Posterior(Task):
    """The log posterior of logistic regression, and its gradient."""

    bar = 45e-6

    def __init__(self, count: int = 1000, width: int = 10) -> None:
        self.title = f"log posterior, {count:,} x {width} data: value and gradient"
        self.X, self.weights = draw(8).normal(size=(count, width)), draw(9).normal(size=width)
        self.Y = np.where(draw(10).uniform(size=count) < 0.5, -1.0, 1.0)

    def wengert(self) -> Way:
        def density(w: Any) -> Any:
            total = -0.5 * wengert.dot(w, w)
            for x, y in zip(self.X, self.Y, strict=True):
                total = total - wengert.log(1.0 + wengert.exp(-y * wengert.dot(w, x)))
            return total

        return compile(value_and_grad(density)), (self.weights,)

    def casadi(self) -> Way:
        import casadi

        w = casadi.SX.sym("w", len(self.weights))
        margins = casadi.DM(self.Y) * casadi.mtimes(casadi.DM(self.X), w)
        value = -0.5 * casadi.dot(w, w) - casadi.sum1(casadi.log(1.0 + casadi.exp(-margins)))
        return casadi.Function("f", [w], [value, casadi.gradient(value, w)]), (self.weights,)

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def density(w: Any) -> Any:
            return -0.5 * w @ w - m.log(1.0 + m.exp(-self.Y * (self.X @ w))).sum()

        return jitted(jax.value_and_grad(density), self.weights)

    def hand(self) -> Way:
        def density(w: Any) -> Any:
            odds = np.exp(-self.Y * (self.X @ w))
            return -0.5 * w @ w - np.log(1.0 + odds).sum(), (self.Y * odds / (1.0 + odds)) @ self.X - w

        return density, (self.weights,)


class Garch(Task):
    """The negative log likelihood of GARCH(1,1): Bollerslev 1986."""

    def __init__(self, what: str, count: int = 2000) -> None:
        self.title = f"GARCH(1,1), {count:,} returns: {what}"
        self.what = what
        self.bar = 60e-6 if what == "value and gradient" else 90e-6
        self.returns = draw(11).normal(0.0, 1.2, count)
        self.p = np.array([0.1, 0.08, 0.85])

    def likelihood(self, m: Any, p: Any) -> Any:
        """A plain loop over the returns."""
        omega, alpha, beta = p
        variance: Any = 1.0
        total: Any = 0.0
        for r in self.returns:
            total = total + 0.5 * (m.log(variance) + r * r / variance)
            variance = omega + alpha * r * r + beta * variance
        return total

    def wengert(self) -> Way:
        derivative = value_and_grad if self.what == "value and gradient" else hessian
        return compile(derivative(lambda p: self.likelihood(wengert, p))), (self.p,)

    def casadi(self) -> Way:
        import casadi

        p = casadi.SX.sym("p", 3)
        value = self.likelihood(casadi, casadi.vertsplit(p))
        if self.what == "value and gradient":
            return casadi.Function("f", [p], [value, casadi.gradient(value, p)]), (self.p,)
        return casadi.Function("f", [p], [casadi.hessian(value, p)[0]]), (self.p,)

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def likelihood(p: Any) -> Any:
            def step(variance: Any, r: Any) -> Any:
                return p[0] + p[1] * r * r + p[2] * variance, 0.5 * (m.log(variance) + r * r / variance)

            return jax.lax.scan(step, jax.numpy.array(1.0), self.returns)[1].sum()

        return jitted((jax.value_and_grad if self.what == "value and gradient" else jax.hessian)(likelihood), self.p)


# -- mechanics and vision ----------------------------------------------------------------------------------------------


class Arm(Task):
    """The place and the orientation of the hand of an arm of seven joints: Denavit and Hartenberg 1955; or, for
    Newton's method, the Hessian of how far it is from a place, squared.
    """

    def __init__(self, what: str, count: int = 1) -> None:
        of = {"Jacobian": "Jacobian 12 x 7", "inverse": "Hessian 7 x 7 of the distance"}[what]
        self.title = f"arm of seven joints: {of}" + (f", {count:,} postures" if count > 1 else "")
        self.what, self.count, self.columns = what, count, count > 1
        self.bar = 2e-6 if (what, count) == ("Jacobian", 1) else math.inf
        self.angles = draw(12).uniform(-1.0, 1.0, (count, 7))
        if count == 1:
            self.angles = self.angles[0]

    @staticmethod
    def pose(m: Any, angles: Any) -> list[Any]:
        """The axes of the hand, and where it is."""
        x, y, z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
        at: list[Any] = [0.0, 0.0, 0.0]
        for n in range(7):
            c, s = m.cos(angles[n]), m.sin(angles[n])
            x, y = (
                [c * a + s * b for a, b in zip(x, y, strict=True)],
                [c * b - s * a for a, b in zip(x, y, strict=True)],
            )
            at = [p + 0.05 * a + (0.1 + 0.05 * n) * b for p, a, b in zip(at, x, z, strict=True)]
            y, z = (z, [-b for b in y]) if n % 2 else ([-b for b in z], y)  # a twist by a right angle
        return [*x, *y, *z, *at]

    def distance(self, m: Any, angles: Any) -> Any:
        """From a place, squared."""
        x, y, z = self.pose(m, angles)[-3:]
        return (x - 0.3) ** 2 + (y - 0.2) ** 2 + (z - 0.5) ** 2

    def wengert(self) -> Way:
        if self.what == "inverse":
            return compile(hessian(lambda q: self.distance(wengert, q))), (self.angles,)
        one = compile(jacobian(lambda q: self.pose(wengert, q)))
        return one if self.count == 1 else one.map, (self.angles,)

    def casadi(self) -> Way:
        import casadi

        q = casadi.SX.sym("q", 7)
        if self.what == "inverse":
            return casadi.Function("f", [q], [casadi.hessian(self.distance(casadi, q), q)[0]]), (self.angles,)
        out = casadi.jacobian(casadi.vertcat(*self.pose(casadi, q)), q)
        if self.count == 1:
            return casadi.Function("f", [q], [out]), (self.angles,)
        return casadi.Function("f", [q], [casadi.vec(casadi.densify(out.T))]).map(self.count), (self.angles.T,)

    def jax(self) -> Way:
        import jax

        m = jax_library()
        if self.what == "inverse":
            return jitted(jax.hessian(lambda q: self.distance(m, q)), self.angles)
        one = jax.jacfwd(lambda q: jax.numpy.stack(self.pose(m, q)))
        return jitted(one if self.count == 1 else jax.vmap(one), self.angles)


class Lorenz(Task):
    """How the square of the last state depends on the first one and on the coefficients: Lorenz 1963."""

    bar, prepared = 0.9e-3, 1.3

    def __init__(self, steps: int = 10_000) -> None:
        self.title = f"Lorenz, {steps:,} steps of RK4: gradient"
        self.steps = steps
        self.p = np.array([1.0, 2.0, 20.0, 10.0, 28.0, 8.0 / 3.0])

    @staticmethod
    def step(state: Any, sigma: Any, rho: Any, beta: Any) -> list[Any]:
        """The state a step later."""

        def slope(s: Any) -> list[Any]:
            x, y, z = s
            return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

        return runge_kutta(slope, state, 5e-4)

    def last(self, p: Any) -> Any:
        """A plain loop over the steps."""
        x, y, z, sigma, rho, beta = p
        state = [x, y, z]
        for _ in range(self.steps):
            state = self.step(state, sigma, rho, beta)
        return state[0] ** 2 + state[1] ** 2 + state[2] ** 2

    def wengert(self) -> Way:
        return compile(grad(self.last)), (self.p,)

    def casadi(self) -> Way:
        import casadi

        state, q, p = casadi.SX.sym("state", 3), casadi.SX.sym("q", 3), casadi.MX.sym("p", 6)
        moved = casadi.vertcat(*self.step(casadi.vertsplit(state), *casadi.vertsplit(q)))
        steps = casadi.Function("step", [state, q], [moved]).fold(self.steps)
        last = steps(p[:3], casadi.repmat(p[3:], 1, self.steps))
        return casadi.Function("f", [p], [casadi.gradient(casadi.sumsqr(last), p)]), (self.p,)

    def jax(self) -> Way:
        import jax

        def last(p: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                return jax.numpy.stack(self.step(state, *p[3:])), None

            return (jax.lax.scan(step, p[:3], None, self.steps)[0] ** 2).sum()

        return jitted(jax.grad(last), self.p)


class Bundle(Task):
    """Where cameras see points, less where they were seen, by six numbers of pose, three of lens and three of place."""

    columns = True

    def __init__(self, count: int = 10_000) -> None:
        self.title = f"bundle adjustment: {count:,} Jacobians 2 x 12"
        self.count, self.bar = count, 1.3e-3 * count / 10_000
        low, high = np.transpose(
            [(-0.3, 0.3)] * 3 + [(-1, 1)] * 3 + [(400, 600), (-0.1, 0.1), (-0.01, 0.01)] + [(-2, 2)] * 3
        )
        self.p, self.seen = draw(13).uniform(low, high, (count, 12)), draw(14).uniform(-300, 300, (count, 2))
        self.p[:, 5] -= 10.0

    @staticmethod
    def residual(m: Any, p: Any, seen: Any) -> list[Any]:
        """Rodrigues' rotation, then the lens."""
        axis, move, focal, k1, k2, place = p[:3], p[3:6], p[6], p[7], p[8], p[9:]
        angle = m.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
        c, s = m.cos(angle), m.sin(angle)
        u = [axis[n] / angle for n in range(3)]
        along = (u[0] * place[0] + u[1] * place[1] + u[2] * place[2]) * (1.0 - c)
        crossed = [
            u[1] * place[2] - u[2] * place[1],
            u[2] * place[0] - u[0] * place[2],
            u[0] * place[1] - u[1] * place[0],
        ]
        x, y, z = [place[n] * c + crossed[n] * s + u[n] * along + move[n] for n in range(3)]
        x, y = -x / z, -y / z
        square = x * x + y * y
        lens = focal * (1.0 + k1 * square + k2 * square * square)
        return [lens * x - seen[0], lens * y - seen[1]]

    def wengert(self) -> Way:
        return compile(jacobian(lambda p, seen: self.residual(wengert, p, seen))).map, (self.p, self.seen)

    def casadi(self) -> Way:
        import casadi

        p, seen = casadi.SX.sym("p", 12), casadi.SX.sym("seen", 2)
        out = casadi.jacobian(casadi.vertcat(*self.residual(casadi, p, seen)), p)
        function = casadi.Function("f", [p, seen], [casadi.vec(out.T)]).map(self.count)
        return function, (self.p.T, self.seen.T)

    def jax(self) -> Way:
        import jax

        one = jax.jacrev(lambda p, seen: jax.numpy.stack(self.residual(jax_library(), p, seen)))
        return jitted(jax.vmap(one), self.p, self.seen)


TASKS: dict[str, Callable[[], Task]] = {
    "fit": Fit,
    "control, Jacobian": lambda: Control("Jacobian"),
    "control, Hessian": lambda: Control("Hessian"),
    "Rosenbrock, gradient": lambda: Rosenbrock("gradient"),
    "Rosenbrock, hvp": lambda: Rosenbrock("hvp"),
    "Rosenbrock, Hessian": lambda: Rosenbrock("Hessian", 100),
    "Rosenbrock, sparse Hessian": lambda: Rosenbrock("sparse Hessian"),
    "Greeks, one": lambda: Greeks(1),
    "Greeks": lambda: Greeks(100_000),
    "posterior": Posterior,
    "arm": lambda: Arm("Jacobian"),
    "arm, batch": lambda: Arm("Jacobian", 10_000),
    "Lorenz": Lorenz,
    "GARCH, gradient": lambda: Garch("value and gradient"),
    "GARCH, Hessian": lambda: Garch("Hessian"),
    "bundle": Bundle,
    "Luksan-Vlcek, gradient": lambda: LuksanVlcek("gradient", 1000),
    "Luksan-Vlcek, hvp": lambda: LuksanVlcek("hvp", 1000),
    **{f"Luksan-Vlcek, {n}": lambda n=n: LuksanVlcek("sparse Hessian", n) for n in (100, 1000, 10_000)},
    "inverse kinematics": lambda: Arm("inverse"),
    **physics.TASKS,
    **estimation.TASKS,
}
"""What is raced."""
