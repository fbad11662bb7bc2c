"""Programs of people who write numerical methods: quadrature, linear algebra, series, interpolation, Markov chains."""

from __future__ import annotations

import contextlib
import functools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    choice,
    matrix,
    pair,
    program,
    real,
    reals,
    text,
    weights,
    whole,
)

GAUSS = {2: [(-0.5773502691896257, 1.0), (0.5773502691896257, 1.0)], 3: [(-0.7745966692414834, 5 / 9), (0.0, 8 / 9)]}
GAUSS[3].append((0.7745966692414834, 5 / 9))
BUTCHER = {
    "euler": ([[]], [1.0]),
    "midpoint": ([[], [0.5]], [0.0, 1.0]),
    "kutta": ([[], [0.5], [-1.0, 2.0]], [1 / 6, 4 / 6, 1 / 6]),
}


class Dual:
    """A number and its derivative, as in a course on forward mode."""

    __slots__ = ("a", "b")

    def __init__(self, a, b=0.0):
        self.a, self.b = a, b

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.a + other.a, self.b + other.b)

    __radd__ = __add__

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.a * other.a, self.a * other.b + self.b * other.a)

    __rmul__ = __mul__


def horner(coefficients, x):
    return functools.reduce(lambda total, c: total * x + c, coefficients)


def determinant(A):
    if len(A) == 1:
        return A[0][0]
    return sum((-1) ** j * A[0][j] * determinant([row[:j] + row[j + 1 :] for row in A[1:]]) for j in range(len(A)))


def solve(A, b):
    """Gaussian elimination with partial pivoting."""
    A = [[*row, x] for row, x in zip(A, b)]
    n = len(A)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(A[i][k]))
        A[k], A[pivot] = A[pivot], A[k]
        for i in range(k + 1, n):
            factor = A[i][k] / A[k][k]
            for j in range(k, n + 1):
                A[i][j] = A[i][j] - factor * A[k][j]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (A[i][n] - sum(A[i][j] * x[j] for j in range(i + 1, n))) / A[i][i]
    return x


@program(low=real(-1.0, 0.0), high=real(0.5, 2.0), n=whole(1, 4))
def simpson(a, b):
    def integral(low, high, n):
        def f(x):
            return (-a * x * x).exp() * (b * x + 1)

        h = (high - low) / (2 * n)
        total = f(low) + f(high)
        for k in range(1, 2 * n):
            total += (4 if k % 2 else 2) * f(low + k * h)
        return total * h / 3

    return integral


@program(order=choice(2, 3), span=pair(real(-1.0, 0.0), real(0.5, 1.0)))
def gauss_legendre(a, b):
    def integral(order, span):
        low, high = span
        middle, half = (low + high) / 2, (high - low) / 2
        return half * sum(w * (a * (middle + half * x)).sin() * b for x, w in GAUSS[order])

    return integral


@program(x=real(-2.0, 2.0))
def polynomial_and_its_slope(c=weights(5)):
    def newton_step(x):
        d = functools.reduce(lambda total, each: total * Dual(x, 1.0) + each, c, Dual(0.0))
        return (d.a - 1) ** 2 + d.b * x

    return newton_step


@program(A=matrix(3, 3))
def determinant_by_cofactors(shift, weight):
    def det(A):
        shifted = [[a + (shift if i == j else 0.0) for j, a in enumerate(row)] for i, row in enumerate(A)]
        return weight * determinant(shifted)

    return det


@program(A=matrix(3, 3), b=reals(3))
def gaussian_elimination(ridge, scale):
    def solution(A, b):
        M = [[a + (2 + ridge if i == j else 0.0) for j, a in enumerate(row)] for i, row in enumerate(A)]
        return sum(scale * x * x for x in solve(M, b))

    return solution


@program(A=array(3, 3, lo=0.1, hi=1.0), steps=whole(2, 4))
def power_iteration(bias, weight):
    def eigenvalue(A, steps):
        B = A + bias * np.eye(3)
        x = np.ones(3)
        for _ in range(steps):
            x = B @ x
            x = x / x.sum()
        return weight * (B @ x).sum() / x.sum()

    return eigenvalue


@program(xs=reals(5), x=real(-1.0, 1.0))
def lagrange_interpolation(y0, y1, y2, y3, y4):
    def at(xs, x):
        nodes = [k / 2 - 1 + 0.1 * d for k, d in enumerate(xs)]
        total = 0.0
        for i, y in enumerate((y0, y1, y2, y3, y4)):
            term = y
            for j, node in enumerate(nodes):
                if i != j:
                    term = term * (x - node) / (nodes[i] - node)
            total = total + term
        return total

    return at


@program(x=real(-1.0, 4.99))
def linear_interpolation_of_a_table(table=weights(5)):
    def value(x):
        if x < 0:
            return table[0] * 1
        if x >= len(table) - 1:
            return table[-1] * 1
        k = math.floor(x)
        return table[k] + (x - k) * (table[k + 1] - table[k])

    return value


@program(x=real(0.0, 3.0), terms=whole(1, 7))
def taylor_series(a, b):
    def series(x, terms):
        total, term = 0.0, 1.0
        for n in range(1, terms + 1):
            total += a * term
            term *= -b * x / n
        return total

    return series


@program(y=real(0.2, 1.5), method=text("euler", "midpoint", "kutta"), h=real(0.01, 0.2))
def butcher_tableaux(rate, source):
    def after(y, method, h):
        rows, final = BUTCHER[method]
        for _ in range(3):
            slopes = []
            for row in rows:
                at = y + h * sum(w * s for w, s in zip(row, slopes))
                slopes.append(source - rate * at * at)
            y = y + h * sum(w * s for w, s in zip(final, slopes))
        return y

    return after


@program(P=matrix(3, 3, 0.1, 1.0), start=whole(0, 2))
def markov_chain(r0, r1, r2):
    def reward(P, start):
        rows = [[p / sum(row) for p in row] for row in P]
        state = [1.0 if k == start else 0.0 for k in range(3)]
        total = 0.0
        for step in range(4):
            state = [sum(state[i] * rows[i][j] for i in range(3)) for j in range(3)]
            total += 0.9**step * sum(s * r for s, r in zip(state, (r0, r1, r2)))
        return total

    return reward


@program(x=real(0.1, 2.0), depth=whole(1, 6))
def continued_fraction(a, b):
    def fraction(x, depth):
        if depth == 0:
            return a + x
        return a + b * x / fraction(x, depth - 1)

    return fraction


@program(n=whole(0, 4), k=whole(0, 4))
def binomial_tail(p, scale):
    def probability(n, k):
        q = p / 2
        if k > n:
            return q * 0.0
        return scale * sum(math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(k, n + 1))

    return probability


@program(a=whole(1, 30), b=whole(1, 30), engine="its numbers take it along more than 32 paths")
def euclid(scale, offset):
    def cost(a, b):
        steps = 0
        x, y = a, b
        while y:
            x, y = y, x % y
            steps += 1
        return scale * x / (a + b) + offset * steps

    return cost


@program(x=real(0.5, 4.0))
def agm(a, b):
    def mean(x):
        p, q = a * x, b + x
        for _ in range(4):
            p, q = (p + q) / 2, (p * q) ** 0.5
        return p - q + p * q

    return mean


@program(values=reals(8, -1e3, 1e3))
def kahan_summation(w, offset):
    def total(values):
        s, c = 0.0, 0.0
        for v in values:
            y = w * v - c
            t = s + y
            c = (t - s) - y
            s = t
        return s + 1e8 * offset - 1e8 * offset

    return total


@program(x=real(0.001, 0.1), y=real(1e-12, 1e-9))
def tiny_numbers(a, b):
    def product(x, y):
        return a * y * x + b * y * y

    return product


@program(rows=matrix(4, 3))
def gram_schmidt(w, eps):
    def volume(rows):
        basis = []
        for row in rows[:3]:
            v = [x + (w if k == len(basis) else 0.0) for k, x in enumerate(row)]
            for u in basis:
                along = sum(p * q for p, q in zip(u, v))
                v = [p - along * q for p, q in zip(v, u)]
            norm = (sum(p * p for p in v) + 0.01 * eps).sqrt()
            basis.append([p / norm for p in v])
        return sum(wengert.dot(u, rows[3]) ** 2 for u in basis)

    return volume


@program(x=reals(6), how=choice(max, min, math.fsum), engine="a function of C that takes floats is an argument")
def builtins_as_arguments(a, b):
    def score(x, how):
        return a * how(x) + b * sum(x) / len(x)

    return score


@program(x=real(0.0, 10.0), digits=whole(0, 2), engine="a number is rounded to digits, which takes it out")
def rounded_prices(rate, fee):
    def price(x, digits):
        cents = round(x, digits)
        return rate * cents + fee * int(x) + (x - cents) ** 2 * rate

    return price


@program(x=real(0.0, 10.0), y=real(0.5, 3.0))
def remainders(a, b):
    def sawtooth(x, y):
        q, r = divmod(x, y)
        return a * r + b * math.fmod(x, 1.0) + a * (x // 1) * 0.1 + b * q * 0.01

    return sawtooth


@program(n=whole(1, 12), x=real(0.5, 1.5))
def digits_of_an_integer(a, b):
    def reward(n, x):
        ones = bin(n).count("1")
        shifted = (n << 2) ^ 5
        return a * ones * x + b * (shifted & 7) + a * (n in (2, 3, 5, 7, 11)) + b / (n | 1)

    return reward


@program(u=reals(7))
def thomas_algorithm(diffusion, reaction):
    def energy(u):
        n = len(u)
        lower = -diffusion
        diagonal = 1 + 2 * diffusion + reaction
        c, d = [0.0] * n, [0.0] * n
        for k in range(n):
            m = diagonal - (lower * c[k - 1] if k else 0.0)
            c[k] = lower / m
            d[k] = (u[k] - (lower * d[k - 1] if k else 0.0)) / m
        x = [0.0] * n
        for k in reversed(range(n)):
            x[k] = d[k] - (c[k] * x[k + 1] if k < n - 1 else 0.0)
        return sum(v * v for v in x)

    return energy


@program(x=array(5), scale=array(lo=0.5, hi=2.0))
def softmax_by_numpy(temperature, weight):
    def entropy(x, scale):
        e = np.exp(x * float(scale))
        p = e / e.sum()
        return weight * -(p * np.log(p)).sum() + temperature * x.std()

    return entropy


@program(x=array(4, 3), w=array(3))
def least_squares_by_numpy(ridge, offset):
    def loss(x, w):
        gram = x.T @ x
        error = x @ w - offset
        return (error**2).mean() + ridge * np.trace(gram) + 0.1 * ridge * np.linalg.norm(w) ** 2

    return loss


@program(x=real(-1.0, 1.0), n=whole(0, 5))
def chebyshev_recursion_with_a_memory(a, b):
    def value(x, n):
        @functools.lru_cache(None)
        def t(k):
            return 1.0 if k == 0 else x if k == 1 else 2 * x * t(k - 1) - t(k - 2)

        return a * t(n) + b * t(n) ** 2

    return value


@program(x=real(0.1, 2.0), y=real(0.1, 2.0))
def exact_and_decimal_constants(a, b):
    third, tenth = Fraction(1, 3), Decimal("0.1")

    def mixed(x, y):
        return a * x * float(third) + b * y * float(tenth) + Fraction(1, 4) * x * a

    return mixed


@program(x=reals(2, -1.0, 1.0))
def errors_that_are_caught(a, b):
    def robust(x):
        total = 0.0
        for v in x:
            try:
                total += a * math.sqrt(v)
            except ValueError:
                total += b * v
            with contextlib.suppress(ZeroDivisionError):
                total += 0.1 * a * (1 / round(v))
        return total

    return robust


@program(x=real(-0.5, 2.0))
def errors_that_are_not_caught(a, b):
    def strict(x):
        if x < 0:
            raise ValueError(f"x must not be negative, not {x}")
        return a * x / (b + x)

    return strict


@program(x=matrix(3, 4), modes="call values map")
def results_in_a_list(w, b):
    def rows(x):
        return [w * sum(row) + b for row in x]

    return rows


@program(x=reals(3), n=whole(0, 2), modes="map call values")
def results_in_nested_lists(w, b):
    def outer(x, n):
        return [[w * p * q + b * n for q in x] for p in x]

    return outer
