"""Programs of people who optimise: test functions, constraints, schedules, penalties, inner solvers."""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import operator
from dataclasses import dataclass
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np

import wengert
from tests.programs.kit import (
    array,
    choice,
    flag,
    matrix,
    pair,
    program,
    real,
    reals,
    record,
    text,
    weights,
    whole,
    wholes,
)

PENALTY = 10.0
OPTIONS = SimpleNamespace(tolerance=1e-6, barrier=0.1, iterations=6)
COSTS = np.array([[4.0, 2.0, 3.0], [1.0, 5.0, 2.5], [3.5, 1.5, 2.0]])


@dataclass
class Item:
    value: float
    weight: float
    name: str = "thing"


class Quadratic:
    """A form with a matrix, called like a function."""

    def __init__(self, A, b):
        self.A, self.b = A, b

    def __call__(self, x):
        return 0.5 * wengert.dot(x, [wengert.dot(row, x) for row in self.A]) - wengert.dot(self.b, x)

    def gradient(self, x):
        return [wengert.dot(row, x) - b for row, b in zip(self.A, self.b)]


def violation(x, low, high):
    if x < low:
        return low - x
    return x - high if x > high else 0.0


def golden_section(f, low, high, steps):
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(steps):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if f(a) < f(b):
            high = b
        else:
            low = a
    return (low + high) / 2


@program(x=reals(4, -2.0, 2.0))
def rosenbrock(a, b):
    def valley(x):
        return sum(100 * b * (y - x * x) ** 2 + (a - x) ** 2 for x, y in zip(x, x[1:]))

    return valley


@program(x=reals(5, -3.0, 3.0))
def rastrigin(amplitude, frequency):
    def bumps(x):
        return sum(v * v + amplitude * (1 - math.cos(2 * math.pi * v) * frequency) for v in x)

    return bumps


@program(offset=pair(real(), real()))
def himmelblau_from_values(x, y):
    def height(offset):
        a, b = x + offset[0], y + offset[1]
        return (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2

    return height


@program(shift=array(3), stretch=whole(1, 3))
def ackley(x0, x1, x2):
    def surface(shift, stretch):
        x = np.array([x0, x1, x2]) * stretch - shift
        square = (x**2).mean()
        ripple = sum((2 * math.pi * v).cos() for v in x) / len(x)
        return -20 * (-0.2 * (square + 1e-9).sqrt()).exp() - ripple.exp() + 20 + math.e

    return surface


@program(values=reals(5, 0.5, 2.0), capacity=real(1.0, 3.0))
def relaxed_knapsack(p=weights(5)):
    def loss(values, capacity):
        items = [Item(v, 0.4 + 0.1 * k) for k, v in enumerate(values)]
        taken = [wengert.sigmoid(w) for w in p]
        worth = sum(t * item.value for t, item in zip(taken, items))
        weight = sum(t * item.weight for t, item in zip(taken, items))
        return PENALTY * wengert.relu(weight - capacity) ** 2 - worth

    return loss


@program(point=pair(real(-2.0, 2.0), real(-2.0, 2.0)))
def box_constraints(weight, centre):
    def penalised(point):
        x, y = point
        objective = (x - centre) ** 2 + weight * (y + centre) ** 2
        return objective + PENALTY * (violation(x, -1, 1) ** 2 + violation(y, -1, 1) ** 2)

    return penalised


@program(x=reals(3, 0.1, 1.0))
def log_barrier(c0, c1, c2):
    def objective(x):
        cost = sum(map(operator.mul, (c0, c1, c2), x))
        slack = 4.0 - sum(x)
        barrier = -OPTIONS.barrier * (sum(math.log(v) for v in x) + math.log(slack))
        return cost + barrier * c0

    return objective


@program(b=reals(3), x=reals(3))
def quadratic_by_gradient_descent(d0, d1, d2):
    def after_some_steps(b, x):
        A = [[d0 + 1, 0.2, 0.0], [0.2, d1 + 1, 0.1], [0.0, 0.1, d2 + 1]]
        f = Quadratic(A, b)
        for _ in range(OPTIONS.iterations):
            x = [xi - 0.2 * gi for xi, gi in zip(x, f.gradient(x))]
        return f(x)

    return after_some_steps


@program(start=real(0.5, 2.0), target=real(0.5, 2.0))
def newton_for_a_root(power, shift):
    def residual(start, target):
        x = start + shift
        for _ in range(5):
            fx = x**3 + power * x - target
            x = x - fx / (3 * x**2 + power)
        return (x - start) ** 2

    return residual


@program(low=real(0.0, 0.4), high=real(1.0, 2.0), target=real(0.2, 1.0))
def bisection_with_floats(scale, tilt):
    def root(low, high, target):
        for _ in range(3):
            middle = (low + high) / 2
            if middle**3 < target:
                low = middle
            else:
                high = middle
        return scale * low + tilt * high**2

    return root


@program(centre=real(0.2, 0.8))
def golden_section_search(depth, width):
    def best(centre):
        x = golden_section(lambda t: (t - centre) ** 2, 0.0, 1.0, 3)
        return depth * (x - width) ** 2 + x

    return best


@program(samples=reals(6, 0.0, 1.0), temperature=real(0.1, 2.0))
def simulated_annealing_energy(a, b):
    def expected(samples, temperature):
        energies = [a * s**2 - b * s for s in samples]
        acceptance = wengert.softmax([-e / temperature for e in energies])
        return sum(p * e for p, e in zip(acceptance, energies))

    return expected


@program(costs=matrix(3, 3, 0.5, 2.0))
def assignment_by_enumeration(w, v):
    def soft_minimum(costs):
        totals = []
        for order in itertools.permutations(range(3)):
            totals.append(sum(w * costs[i][j] for i, j in enumerate(order)) + v * COSTS[0][order[0]])
        return -wengert.logsumexp([-t for t in totals])

    return soft_minimum


@program(supply=reals(3, 0.5, 1.5), demand=reals(3, 0.5, 1.5))
def sinkhorn(epsilon, scale):
    def transport_cost(supply, demand):
        K = [[(-scale * float(c) / (0.5 + epsilon)).exp() for c in row] for row in COSTS]
        u = [1.0] * 3
        v = [1.0] * 3
        for _ in range(4):
            u = [s / wengert.dot(row, v) for s, row in zip(supply, K)]
            v = [d / sum(K[i][j] * u[i] for i in range(3)) for j, d in enumerate(demand)]
        return sum(u[i] * K[i][j] * v[j] * float(COSTS[i][j]) for i in range(3) for j in range(3))

    return transport_cost


@program(x=real(-2.0, 2.0), method=choice("huber", "tukey", "l2"))
def robust_losses(scale, weight):
    def rho(residual, k):
        return {
            "huber": lambda: residual**2 / 2 if abs(residual) < k else k * (abs(residual) - k / 2),
            "tukey": lambda: (1 - (1 - (residual / k) ** 2) ** 3) / 6 if abs(residual) < k else 1 / 6,
            "l2": lambda: residual**2 / 2,
        }

    def loss(x, method):
        return weight * rho(x - scale, 1.0)[method]()

    return loss


@program(jobs=reals(5, 0.2, 2.0), machines=whole(2, 3))
def list_schedule(speed, overhead):
    def soft_makespan(jobs, machines):
        loads = [0.0] * machines
        for k, job in enumerate(jobs):
            loads[k % machines] = loads[k % machines] + job / speed + 0.1 * overhead
        return wengert.logsumexp([3 * load for load in loads if isinstance(load, wengert.Value)]) / 3

    return soft_makespan


@program(
    jobs=reals(5, 0.2, 2.0),
    engine="the order of the jobs is found by sorting: a path for each order",
)
def longest_job_first(speed, overhead):
    def makespan(jobs):
        heap = [(0.0, k) for k in range(2)]
        ends = [overhead * 0.1, overhead * 0.2]
        for job in sorted(jobs, reverse=True):
            busy, machine = heapq.heappop(heap)
            ends[machine] = ends[machine] + job / speed
            heapq.heappush(heap, (busy + job, machine))
        return ends[0] ** 2 + ends[1] ** 2

    return makespan


@program(x=real(0.0, 4.0))
def tariff_by_bisect(base, step):
    limits = [0.5, 1.0, 2.0, 3.0]

    def price(x):
        band = bisect.bisect_right(limits, x)
        return base + step * band + 0.1 * step * (x - ([0.0, *limits])[band])

    return price


@program(x=reals(4), rate=real(0.05, 0.3), momentum=flag())
def inner_training(a, b):
    def outer_loss(x, rate, momentum):
        w, v = a, 0.0
        for xi in x:
            gradient = 2 * (w * xi - b) * xi
            v = 0.9 * v - rate * gradient if momentum else -rate * gradient
            w = w + v
        return (w - b) ** 2

    return outer_loss


@program(terms=wholes(4, 0, 3), x=real(0.2, 1.5))
def polynomial_of_any_powers(c0, c1, c2, c3):
    def value(terms, x):
        return reduce(lambda total, pair: total + pair[0] * x ** pair[1], zip((c0, c1, c2, c3), terms), 0.0)

    return value


@program(goal=record(x=real(), y=real(), weight=real(0.5, 2.0)), norm=text("l1", "l2", "max"))
def facility_location(x, y):
    norms = {
        "l1": lambda dx, dy: abs(dx) + abs(dy),
        "l2": lambda dx, dy: (dx * dx + dy * dy + 1e-6) ** 0.5,
        "max": lambda dx, dy: max(abs(dx), abs(dy)),
    }

    def travel(goal, norm):
        distance = norms[norm]
        return goal["weight"] * distance(x - goal["x"], y - goal["y"]) + 0.1 * distance(x, y)

    return travel


@program(x=reals(6))
def elastic_net(alpha, ratio, W=weights(6)):
    def loss(x):
        prediction = sum(map(operator.mul, W, x))
        l1 = sum(abs(w) for w in W)
        l2 = sum(w**2 for w in W)
        return (prediction - 0.5) ** 2 + alpha * (ratio * l1 + (1 - ratio) * l2 / 2)

    return loss


@program(
    kind=choice(partial(pow, 2.0), math.sqrt, abs),
    x=real(0.2, 1.5),
    engine="a function of C that takes floats is an argument",
)
def a_function_as_argument(a, b):
    def cost(kind, x):
        return a * kind(x) + b * kind(x + 1) ** 2

    return cost
