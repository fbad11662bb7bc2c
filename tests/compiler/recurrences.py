"""Recurrences as users write them, for the tests of loops: each with arguments, and its parameters."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import wengert
from wengert import Value

__all__ = ["FOUND", "Made", "autoregression", "biquad", "euler", "extremes", "kalman", "lstm", "numbers"]
__all__ += ["oscillator_of_fourth_order", "values"]

Numbers = list[Any]
STEP = 0.01
rng = random.Random(5)


def values(*shape: int) -> Any:
    """Nested lists of Values."""
    return [values(*shape[1:]) for _ in range(shape[0])] if shape else Value(rng.gauss(0.0, 0.5))


def numbers(*shape: int) -> Any:
    """Nested lists of numbers."""
    return [numbers(*shape[1:]) for _ in range(shape[0])] if shape else rng.gauss(0.0, 1.0)


def every(x: Any) -> list[Value]:
    """The Values in nested lists."""
    return [value for part in x for value in every(part)] if isinstance(x, list) else [x]


Made = tuple[Callable[..., Any], list[Any], list[Value]]


def euler(turns: int = 200) -> Made:
    """An oscillator, by the shortest of steps."""
    k = Value(1.3)

    def oscillator(x: Any, v: Any) -> Any:
        for _ in range(turns):
            x, v = x + STEP * v, v - STEP * k * x
        return x * x + v * v

    return oscillator, [1.0, 0.2], [k]


def runge_kutta(slope: Callable[[Numbers], Numbers], state: Numbers, step: float) -> Numbers:
    """One step of the fourth order."""
    a = slope(state)
    b = slope([p + 0.5 * step * q for p, q in zip(state, a, strict=True)])
    c = slope([p + 0.5 * step * q for p, q in zip(state, b, strict=True)])
    d = slope([p + step * q for p, q in zip(state, c, strict=True)])
    return [p + step / 6 * (q + 2 * r + 2 * s + t) for p, q, r, s, t in zip(state, a, b, c, d, strict=True)]


def oscillator_of_fourth_order() -> Made:
    """The same by four slopes a step."""
    k = Value(1.3)

    def oscillator(x: Any, v: Any) -> Any:
        state = [x, v]
        for _ in range(100):
            state = runge_kutta(lambda s: [s[1], -k * s[0]], state, STEP)
        return state[0] * state[0] + state[1] * state[1]

    return oscillator, [1.0, 0.2], [k]


def predators() -> Made:
    """Lotka-Volterra."""
    rates = [Value(rate) for rate in (1.1, 0.4, 0.4, 0.1)]

    def lotka_volterra(x: Any, y: Any) -> Any:
        a, b, c, d = rates
        state = [x, y]
        for _ in range(60):
            state = runge_kutta(lambda s: [a * s[0] - b * s[0] * s[1], d * s[0] * s[1] - c * s[1]], state, 0.02)
        return state[0] + state[1]

    return lotka_volterra, [10.0, 5.0], rates


def forced() -> Made:
    """An oscillator that is driven by a number of its own at each step."""
    k = Value(1.3)

    def oscillator(x: Any, v: Any) -> Any:
        for t in range(120):
            x, v = x + STEP * v, v + STEP * (math.cos(0.3 * t) * k - k * x)
        return x * x + v * v

    return oscillator, [1.0, 0.2], [k]


def biquad(turns: int = 200) -> Made:
    """A filter of the second order."""
    weights = [Value(w) for w in (0.2, 0.3, 0.2, -0.5, 0.2)]

    def filtered(xs: Numbers) -> Any:
        b0, b1, b2, a1, a2 = weights
        x1 = x2 = y1 = y2 = loss = 0.0
        for x in xs:
            y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
            x2, x1, y2, y1 = x1, x, y1, y
            loss = loss + y * y
        return loss

    return filtered, [numbers(turns)], weights


def prefix_sum() -> Made:
    """Every partial sum is used."""
    scale = Value(0.5)

    def summed(xs: Numbers) -> Any:
        total, squares = 0.0, 0.0
        for x in xs:
            total = total + scale * x
            squares = squares + total * total
        return squares

    return summed, [numbers(100)], [scale]


def affine(weights: Any, bias: Numbers, x: Numbers) -> Numbers:
    """A layer without an activation."""
    return [sum((w * v for w, v in zip(row, x, strict=True)), b) for row, b in zip(weights, bias, strict=True)]


def lstm() -> Made:
    """Eight cells with gates."""
    weights, bias = values(32, 12), values(32)

    def network(xs: Any) -> Any:
        h = c = [0.0] * 8
        for x in xs:
            z = affine(weights, bias, [*x, *h])
            i, f, o = ([wengert.sigmoid(a) for a in z[n : n + 8]] for n in (0, 8, 24))
            g = [wengert.tanh(a) for a in z[16:24]]
            c = [a * b + d * e for a, b, d, e in zip(f, c, i, g, strict=True)]
            h = [a * wengert.tanh(b) for a, b in zip(o, c, strict=True)]
        return sum(a * a for a in h)

    return network, [numbers(20, 4)], [*every(weights), *bias]


def gru() -> Made:
    """Six cells with gates."""
    of_x, of_h, bias = values(18, 3), values(18, 6), values(18)

    def network(xs: Any) -> Any:
        h = [0.0] * 6
        for x in xs:
            a, b = affine(of_x, bias, x), affine(of_h, [0.0] * 18, h)
            z = [wengert.sigmoid(p + q) for p, q in zip(a[:6], b[:6], strict=True)]
            r = [wengert.sigmoid(p + q) for p, q in zip(a[6:12], b[6:12], strict=True)]
            n = [wengert.tanh(p + s * q) for p, s, q in zip(a[12:], r, b[12:], strict=True)]
            h = [(1 - p) * q + p * s for p, q, s in zip(z, n, h, strict=True)]
        return sum(a * a for a in h)

    return network, [numbers(20, 3)], [*every(of_x), *every(of_h), *bias]


def hidden_markov() -> Made:
    """The forward sums of a hidden Markov model, in logarithms."""
    moves, emits, first = values(5, 5), values(5, 4), values(5)
    seen = [rng.randrange(4) for _ in range(30)]

    def likelihood(scale: Any) -> Any:
        a = [first[s] * scale + emits[s][seen[0]] for s in range(5)]
        for o in seen[1:]:
            a = [wengert.logsumexp([a[r] + moves[r][s] for r in range(5)]) + emits[s][o] for s in range(5)]
        return wengert.logsumexp(a)

    return likelihood, [0.7], [*every(moves), *every(emits), *first]


def kalman() -> Made:
    """A filter of place and speed."""
    q, r = Value(0.1), Value(0.5)

    def likelihood(zs: Numbers) -> Any:
        x, v, p00, p01, p11, total = 0.0, 0.0, 1.0, 0.0, 1.0, 0.0
        for z in zs:
            x = x + v
            p00, p01, p11 = p00 + 2 * p01 + p11 + q, p01 + p11, p11 + q
            s, y = p00 + r, z - x
            g0, g1 = p00 / s, p01 / s
            x, v = x + g0 * y, v + g1 * y
            p00, p01, p11 = (1 - g0) * p00, (1 - g0) * p01, p11 - g1 * p01
            total = total + wengert.log(s) + y * y / s
        return total

    return likelihood, [numbers(40)], [q, r]


def horner() -> Made:
    """A polynomial."""
    weights = values(61)

    def polynomial(x: Any) -> Any:
        total = weights[-1]
        for weight in weights[-2::-1]:
            total = total * x + weight
        return total

    return polynomial, [0.7], weights


def logistic(turns: int = 200) -> Made:
    """The logistic map, where it comes to two numbers in turns."""
    rate = Value(3.2)

    def population(x: Any) -> Any:
        for _ in range(turns):
            x = rate * x * (1.0 - x)
        return x

    return population, [0.4], [rate]


def newton() -> Made:
    """A root, as the limit of an iteration."""
    a = Value(7.0)

    def root(x: Any) -> Any:
        for _ in range(30):
            x = x - (x * x * x - a) / (3 * x * x + 1.0)
        return x * x

    return root, [3.0], [a]


def heat() -> Made:
    """Diffusion along a rod with fixed ends."""
    rate = Value(0.1)

    def diffused(u: Numbers) -> Any:
        u = list(u)
        for _ in range(40):
            u = [u[0], *[u[i] + rate * (u[i + 1] - 2 * u[i] + u[i - 1]) for i in range(1, 15)], u[15]]
        return sum(q * q for q in u)

    return diffused, [numbers(16)], [rate]


def descent() -> Made:
    """Steps of gradient descent in a loss, to be differentiated by their size."""
    rate = Value(0.05)
    xs, ys = numbers(8, 3), numbers(8)

    def trained(w: Numbers) -> Any:
        w = list(w)
        for _ in range(20):
            e = [sum(p * q for p, q in zip(w, x, strict=True)) - y for x, y in zip(xs, ys, strict=True)]
            w = [p - rate * (sum(e[n] * xs[n][k] for n in range(8)) * 0.25) for k, p in enumerate(w)]
        return sum((sum(p * q for p, q in zip(w, x, strict=True)) - y) ** 2 for x, y in zip(xs, ys, strict=True))

    return trained, [[0.1, -0.2, 0.3]], [rate]


def adam() -> Made:
    """The same by Adam, whose corrections are others in each step."""
    rate = Value(0.05)

    def trained(w: Numbers) -> Any:
        w, m, s = list(w), [0.0] * 3, [0.0] * 3
        for t in range(30):
            g = [2 * (p - c) for p, c in zip(w, (1.0, 2.0, 3.0), strict=True)]
            m = [0.9 * a + 0.1 * b for a, b in zip(m, g, strict=True)]
            s = [0.99 * a + 0.01 * b * b for a, b in zip(s, g, strict=True)]
            first, second = 1 - 0.9 ** (t + 1), 1 - 0.99 ** (t + 1)
            w = [p - rate * (a / first) / (wengert.sqrt(b / second) + 1e-8) for p, a, b in zip(w, m, s, strict=True)]
        return sum(p * p for p in w)

    return trained, [[0.1, -0.2, 0.3]], [rate]


def sequences() -> Made:
    """A batch that is written as a loop around a recurrence."""
    of_x, of_h, bias = values(4, 3), values(4, 4), values(4)

    def network(batch: Any) -> Any:
        total = 0.0
        for xs in batch:
            h = [0.0] * 4
            for x in xs:
                h = [wengert.tanh(a + b) for a, b in zip(affine(of_x, bias, x), affine(of_h, bias, h), strict=True)]
            total = total + sum(a * a for a in h)
        return total

    return network, [numbers(5, 20, 3)], [*every(of_x), *every(of_h), *bias]


def autoregression() -> Made:
    """Four of the last numbers make the next one."""
    weights = values(4)

    def series(xs: Numbers) -> Any:
        ys: Numbers = [x * 1.0 for x in xs[:4]]
        for x in xs[4:]:
            ys.append(wengert.tanh(sum(w * ys[-1 - k] for k, w in enumerate(weights)) + x))
        return ys[-1] * ys[-2]

    return series, [numbers(50)], weights


def layers() -> Made:
    """A deep network of equal layers: weights of its own in each turn."""
    weights, biases = values(12, 4, 4), values(12, 4)

    def network(x: Numbers) -> Any:
        for weight, bias in zip(weights, biases, strict=True):
            x = [
                wengert.tanh(a) * wengert.sigmoid(b) + c for a, b, c in zip(affine(weight, bias, x), x, x, strict=True)
            ]
        return sum(a * a for a in x)

    return network, [numbers(4)], [*every(weights), *every(biases)]


def extremes() -> Made:
    """The best path through a trellis."""
    moves, emits = values(3, 3), values(3)

    def best(xs: Numbers) -> Any:
        a = list(emits)
        for x in xs:
            a = [
                wengert.maximum(wengert.maximum(a[0] + moves[0][j], a[1] + moves[1][j]), a[2] + moves[2][j])
                + x * emits[j]
                for j in range(3)
            ]
        return a[0] + 0.5 * a[1]

    return best, [numbers(30)], [*every(moves), *emits]


def swapped() -> Made:
    """Two numbers that change places in each turn."""
    k = Value(0.7)

    def exchange(x: Any, y: Any) -> Any:
        for _ in range(40):
            x, y = y, k * x - 0.2 * y
        return x * x + y

    return exchange, [0.4, 0.9], [k]


def delayed() -> Made:
    """A number that depends on the one three turns ago; of the last ones several are asked for."""
    k = Value(0.6)

    def echo(xs: Numbers) -> Any:
        y = [k * 0.1, k * 0.2, k * 0.3]
        for x in xs:
            y.append(k * y[-1] - 0.3 * y[-3] + x)
        return y[-1] * y[-2] + y[-3]

    return echo, [numbers(40)], [k]


def recalled() -> Made:
    """All that there was, the first of it last."""
    k, weights = Value(0.9), values(41)

    def memory(x: Any) -> Any:
        states = [x * k]
        for _ in range(40):
            states.append(wengert.sin(states[-1] * k + 0.1))
        return sum(w * state for w, state in zip(weights, states[::-1], strict=True))

    return memory, [0.4], [k, *weights]


CARRIED = (swapped, delayed, recalled)  # what is carried from turn to turn, and read behind the loop, in odd ways
FOUND = {  # the turns of their longest loop, at least
    euler: 190, oscillator_of_fourth_order: 90, predators: 50, biquad: 190, prefix_sum: 90, lstm: 18, gru: 18,
    hidden_markov: 28, kalman: 36, horner: 59, newton: 28, heat: 38, descent: 19, adam: 28, sequences: 18,
    autoregression: 40, layers: 10, extremes: 28, forced: 58, logistic: 190,
}  # fmt: skip
