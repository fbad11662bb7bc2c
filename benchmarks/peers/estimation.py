"""Derivatives that statisticians and economists compute: likelihoods, their gradients and Hessians, and a yield curve.

A way of a task is made as `benchmarks.peers.tasks` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert
from benchmarks.peers.tasks import Task, Way, draw, jax_library, jitted
from wengert import compile, hessian, jacobian, value_and_grad

__all__ = ["TASKS"]


class Logistic(Task):
    """The Hessian of logistic regression: its inverse has the squared standard errors."""

    def __init__(self, count: int = 1000, width: int = 10) -> None:
        self.title = f"logistic regression, {count:,} x {width} data: Hessian"
        self.X, self.w = draw(21).normal(size=(count, width)), draw(22).normal(size=width)
        self.Y = np.where(draw(23).uniform(size=count) < 0.5, -1.0, 1.0)

    def wengert(self) -> Way:
        def loss(w: Any) -> Any:
            margins = [y * wengert.dot(w, x) for x, y in zip(self.X, self.Y, strict=True)]
            return wengert.sum([wengert.log(1.0 + wengert.exp(-m)) for m in margins])

        return compile(hessian(loss)), (self.w,)

    def casadi(self) -> Way:
        import casadi

        w = casadi.SX.sym("w", len(self.w))
        loss = casadi.sum1(casadi.log(1.0 + casadi.exp(-casadi.DM(self.Y) * casadi.mtimes(casadi.DM(self.X), w))))
        return casadi.Function("f", [w], [casadi.hessian(loss, w)[0]]), (self.w,)

    def jax(self) -> Way:
        import jax

        m = jax_library()
        return jitted(jax.hessian(lambda w: m.log(1.0 + m.exp(-self.Y * (self.X @ w))).sum()), self.w)

    def hand(self) -> Way:
        def curvature(w: Any) -> Any:
            p = 1.0 / (1.0 + np.exp(-self.X @ w))
            return (self.X.T * (p * (1.0 - p))) @ self.X

        return curvature, (self.w,)


class Kalman(Task):
    """The likelihood of a level with a trend that both wander: Kalman 1960, Harvey 1989."""

    def __init__(self, count: int = 500) -> None:
        self.title = f"Kalman filter, {count} observations: log likelihood and gradient"
        self.series = np.cumsum(draw(24).normal(0.1, 0.5, count)) + draw(25).normal(0.0, 1.0, count)
        self.logs = np.array([-1.0, -4.0, 0.2])  # of the variances of level, trend and observation

    @staticmethod
    def step(m: Any, state: Any, variances: Any, y: Any) -> tuple[list[Any], Any]:
        """Predict, compare with what is observed, correct: the state with its covariance, and the log density."""
        level, trend, a, b, c = state
        q, s, r = variances
        level, a, b, c = level + trend, a + 2.0 * b + c + q, b + c, c + s
        error, spread = y - level, a + r
        k, g = a / spread, b / spread
        after = [level + k * error, trend + g * error, a - k * a, b - k * b, c - g * b]
        return after, -0.5 * (m.log(spread) + error * error / spread)

    def likelihood(self, m: Any, logs: Any) -> Any:
        """A plain loop over the observations."""
        variances = [m.exp(x) for x in logs]
        state: Any = [self.series[0], 0.0, 1.0, 0.0, 1.0]
        total: Any = 0.0
        for y in self.series:
            state, density = self.step(m, state, variances, y)
            total = total + density
        return total

    def wengert(self) -> Way:
        return compile(value_and_grad(lambda p: self.likelihood(wengert, p))), (self.logs,)

    def casadi(self) -> Way:
        import casadi

        p = casadi.SX.sym("p", 3)
        value = self.likelihood(casadi, casadi.vertsplit(p))
        return casadi.Function("f", [p], [value, casadi.gradient(value, p)]), (self.logs,)

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def likelihood(logs: Any) -> Any:
            def step(state: Any, y: Any) -> Any:
                after, density = self.step(m, state, m.exp(logs), y)
                return jax.numpy.stack(after), density

            return jax.lax.scan(step, jax.numpy.array([self.series[0], 0.0, 1.0, 0.0, 1.0]), self.series)[1].sum()

        return jitted(jax.value_and_grad(likelihood), self.logs)


class Markov(Task):
    """The likelihood of a hidden Markov model with normal emissions, by the forward algorithm in logarithms."""

    def __init__(self, count: int = 200, states: int = 4) -> None:
        self.title = f"hidden Markov model, {states} states, {count} observations: log likelihood and gradient"
        self.states = states
        self.series = draw(26).normal(draw(27).integers(0, states, count), 0.4)
        self.p = np.concatenate([np.arange(states) + 0.1, draw(28).normal(size=states * states)])

    def wengert(self) -> Way:
        n = self.states

        def likelihood(p: Any) -> Any:
            means, moves = p[:n], [p[n * (k + 1) : n * (k + 2)] for k in range(n)]
            moves = [[x - wengert.logsumexp(row) for x in row] for row in moves]
            scores = [-((self.series[0] - mean) ** 2) for mean in means]
            for y in self.series[1:]:
                scores = [
                    wengert.logsumexp([scores[k] + moves[k][to] for k in range(n)]) - (y - means[to]) ** 2
                    for to in range(n)
                ]
            return wengert.logsumexp(scores)

        return compile(value_and_grad(likelihood)), (self.p,)

    def casadi(self) -> Way:
        import casadi

        n = self.states
        p = casadi.SX.sym("p", n + n * n)
        means, moves = p[:n], casadi.reshape(p[n:], n, n)  # a column for each row, as CasADi's matrices go
        total = casadi.vertcat(*[casadi.logsumexp(moves[:, k]) for k in range(n)])
        moves = moves.T - casadi.repmat(total, 1, n)
        scores = -((self.series[0] - means) ** 2)
        for y in self.series[1:]:
            scores = casadi.vertcat(*[casadi.logsumexp(scores + moves[:, to]) for to in range(n)]) - (y - means) ** 2
        value = casadi.logsumexp(scores)
        return casadi.Function("f", [p], [value, casadi.gradient(value, p)]), (self.p,)

    def jax(self) -> Way:
        import jax

        n = self.states

        def likelihood(p: Any) -> Any:
            means = p[:n]
            moves = jax.nn.log_softmax(p[n:].reshape(n, n), axis=1)

            def step(scores: Any, y: Any) -> Any:
                return jax.nn.logsumexp(scores[:, None] + moves, axis=0) - (y - means) ** 2, None

            scores, _ = jax.lax.scan(step, -((self.series[0] - means) ** 2), self.series[1:])
            return jax.nn.logsumexp(scores)

        return jitted(jax.value_and_grad(likelihood), self.p)


class Process(Task):
    """The likelihood of a Gaussian process in one dimension, by Cholesky's decomposition: Rasmussen, Williams 2006."""

    def __init__(self, count: int = 25) -> None:
        self.title = f"Gaussian process, {count} points: log likelihood and gradient"
        self.x = np.sort(draw(29).uniform(0.0, 5.0, count))
        self.y = np.sin(2.0 * self.x) + draw(30).normal(0.0, 0.2, count)
        self.logs = np.array([-0.3, 0.1, -1.2])  # of the length, the height and the noise

    def wengert(self) -> Way:
        def likelihood(logs: Any) -> Any:
            length, height, noise = [wengert.exp(x) for x in logs]
            rows: list[list[Any]] = []
            total: Any = 0.0
            solved: list[Any] = []
            for i, a in enumerate(self.x):
                row: list[Any] = []
                for j, b in enumerate(self.x[: i + 1]):
                    k = height**2 * wengert.exp(-0.5 * ((a - b) / length) ** 2)
                    if i > j:
                        row.append((k - wengert.dot(row, rows[j][:j])) / rows[j][j])
                    else:
                        row.append(wengert.sqrt(k + noise**2 - wengert.dot(row, row)))
                rows.append(row)
                solved.append((self.y[i] - wengert.dot(row[:i], solved)) / row[i])
                total = total - 0.5 * solved[i] ** 2 - wengert.log(row[i])
            return total

        return compile(value_and_grad(likelihood)), (self.logs,)

    def casadi(self) -> Way:
        import casadi

        logs = casadi.SX.sym("logs", 3)
        length, height, noise = casadi.vertsplit(casadi.exp(logs))
        square = casadi.DM((self.x[:, None] - self.x) ** 2)
        kernel = height**2 * casadi.exp(-0.5 * square / length**2) + noise**2 * casadi.SX.eye(len(self.x))
        factor = casadi.chol(kernel)
        solved = casadi.solve(factor.T, casadi.SX(self.y))
        value = -0.5 * casadi.sumsqr(solved) - casadi.sum1(casadi.log(casadi.diag(factor)))
        return casadi.Function("f", [logs], [value, casadi.gradient(value, logs)]), (self.logs,)

    def jax(self) -> Way:
        import jax
        from jax.scipy.linalg import solve_triangular

        m = jax_library()

        def likelihood(logs: Any) -> Any:
            length, height, noise = m.exp(logs)
            square = (self.x[:, None] - self.x) ** 2
            kernel = height**2 * m.exp(-0.5 * square / length**2) + noise**2 * jax.numpy.eye(len(self.x))
            L = jax.numpy.linalg.cholesky(kernel)
            return -0.5 * (solve_triangular(L, self.y, lower=True) ** 2).sum() - m.log(jax.numpy.diag(L)).sum()

        return jitted(jax.value_and_grad(likelihood), self.logs)

    def hand(self) -> Way:
        from scipy.linalg import cho_factor, cho_solve

        def likelihood(logs: Any) -> Any:
            length, height, noise = np.exp(logs)
            square = (self.x[:, None] - self.x) ** 2
            smooth = height**2 * np.exp(-0.5 * square / length**2)
            factor = cho_factor(smooth + noise**2 * np.eye(len(self.x)), lower=True)
            inverse = cho_solve(factor, np.eye(len(self.x)))
            alpha = inverse @ self.y
            value = -0.5 * self.y @ alpha - np.log(np.diag(factor[0])).sum()
            inner = np.outer(alpha, alpha) - inverse
            slopes = [
                (inner * smooth * square).sum() / (2 * length**2),
                (inner * smooth).sum(),
                noise**2 * inner.trace(),
            ]
            return value, np.array(slopes)

        return likelihood, (self.logs,)


class Gamma(Task):
    """The Hessian of a gamma regression: times until failure by a log-linear mean, for standard errors."""

    def __init__(self, count: int = 500) -> None:
        self.title = f"gamma regression, {count} times: Hessian 5 x 5"
        self.X, self.p = draw(31).normal(size=(count, 4)), np.array([0.2, -0.1, 0.3, 0.1, 0.4])
        self.times = draw(32).gamma(1.5, 1.0, count)

    def wengert(self) -> Way:
        def loss(p: Any) -> Any:
            shape = wengert.exp(p[4])
            rates = [shape * wengert.exp(-wengert.dot(p[:4], x)) for x in self.X]
            each = [r * t - shape * wengert.log(r * t) for r, t in zip(rates, self.times, strict=True)]
            return wengert.sum(each) + len(each) * wengert.lgamma(shape)

        return compile(hessian(loss)), (self.p,)

    def casadi(self) -> Way:
        raise NotImplementedError("no lgamma")

    def jax(self) -> Way:
        import jax

        m = jax_library()

        def loss(p: Any) -> Any:
            shape = m.exp(p[4])
            scaled = shape * m.exp(-self.X @ p[:4]) * self.times
            return (scaled - shape * m.log(scaled)).sum() + len(self.times) * m.lgamma(shape)

        return jitted(jax.hessian(loss), self.p)

    def hand(self) -> Way:
        from scipy.special import digamma, polygamma

        def curvature(p: Any) -> Any:
            shape, count = np.exp(p[4]), len(self.times)
            scaled = np.exp(-self.X @ p[:4]) * self.times
            cross = shape * (1.0 - scaled) @ self.X
            slope = scaled.sum() - np.log(shape * scaled).sum() - count + count * digamma(shape)
            corner = shape * slope + shape**2 * (count * polygamma(1, shape) - count / shape)
            return np.block([[(self.X.T * (shape * scaled)) @ self.X, cross[:, None]], [cross, corner]])

        return curvature, (self.p,)


class Yields(Task):
    """The prices of bonds by the curve of Nelson, Siegel and Svensson, 1994, less those of the market."""

    def __init__(self, count: int = 20) -> None:
        self.title = f"yield curve, {count} bonds: Jacobian {count} x 6"
        self.p = np.array([0.04, -0.02, 0.01, 0.015, 1.5, 6.0])
        self.coupons, self.market = draw(33).uniform(0.01, 0.05, count), draw(34).uniform(0.9, 1.1, count)

    @staticmethod
    def discount(m: Any, p: Any, t: Any) -> Any:
        """What a payment after t years is worth."""
        a, b = t / p[4], t / p[5]
        near, far = (1.0 - m.exp(-a)) / a, (1.0 - m.exp(-b)) / b
        return m.exp(-t * (p[0] + p[1] * near + p[2] * (near - m.exp(-a)) + p[3] * (far - m.exp(-b))))

    def residuals(self, m: Any, p: Any) -> list[Any]:
        """Each bond pays its coupon twice a year; they are due after 1, 2, 3, ... years."""
        out = []
        for years, (coupon, price) in enumerate(zip(self.coupons, self.market, strict=True), 1):
            value = self.discount(m, p, years)
            for half in range(1, 2 * years + 1):
                value = value + 0.5 * coupon * self.discount(m, p, 0.5 * half)
            out.append(value - price)
        return out

    def wengert(self) -> Way:
        return compile(jacobian(lambda p: self.residuals(wengert, p))), (self.p,)

    def casadi(self) -> Way:
        import casadi

        p = casadi.SX.sym("p", 6)
        out = casadi.vertcat(*self.residuals(casadi, casadi.vertsplit(p)))
        return casadi.Function("f", [p], [casadi.jacobian(out, p)]), (self.p,)

    def jax(self) -> Way:
        import jax

        count = len(self.coupons)
        times = 0.5 * np.arange(1, 2 * count + 1)
        due = np.arange(1, count + 1)[:, None]
        flows = np.where(times <= due, 0.5 * self.coupons[:, None], 0.0) + (times == due)

        def residuals(p: Any) -> Any:
            return flows @ self.discount(jax_library(), p, times) - self.market

        return jitted(jax.jacfwd(residuals), self.p)


TASKS: dict[str, Callable[[], Task]] = {
    "logistic": Logistic,
    "Kalman": Kalman,
    "Markov": Markov,
    "Gaussian process": Process,
    "gamma": Gamma,
    "yields": Yields,
}
