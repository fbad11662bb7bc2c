"""Other programs than networks, compiled and eager: geometry, finance, an orbit, normalization, sums."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import wengert
from benchmarks import problems
from tests.compiler.checks import Numbers, gradients
from tests.compiler.models import compare, flat, lifted, move, normal, same, values
from wengert import Value, nn

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs


def test_a_one_dimensional_convolution() -> None:
    generator = random.Random(17)
    kernels, bias, out = values(generator, 4, 5), values(generator, 4), values(generator, 4)

    def loss(x: Numbers) -> Any:
        total: Any = 0.0
        for kernel, b, o in zip(kernels, bias, out, strict=True):
            for k in range(len(x) - 4):
                total = total + o * (sum(w * x[k + n] for n, w in enumerate(kernel)) + b).relu()
        return total * total

    compiled = compare(loss, flat([kernels, bias, out]), [normal(1, 4, 20)], 10)
    assert compiled._server.latest().nodes > 500


@pytest.mark.slow
def test_a_data_set_in_a_function_without_arguments() -> None:
    problem = problems.moons()
    X, Y = problem.X[:40], problem.Y[:40]
    model = nn.MLP(2, [8, 1], rng=random.Random(18))
    parameters = model.parameters()

    @wengert.compile
    def loss() -> Any:
        scores = [model(x) for x in X]
        margins = [(1 - y * s).relu() for s, y in zip(scores, Y, strict=True)]
        return sum(margins) * (1.0 / len(margins)) + 1e-4 * sum(p * p for p in parameters)

    for turn in range(3):
        same(loss(), loss.function(), parameters)
        move(parameters, turn)
    lifted(loss, 24)
    assert loss._server.latest().nodes > 900


def test_shuffled_parameters_and_terms() -> None:
    generator = random.Random(19)
    pool = values(generator, 12 * 8 + 8)
    generator.shuffle(pool)
    hidden, out = [pool[8 * n : 8 * n + 8] for n in range(12)], pool[96:]
    orders = [generator.sample(range(8), 8) for _ in hidden]

    def loss(x: Numbers) -> Any:
        h = [sum(row[k] * x[k] for k in order).tanh() for row, order in zip(hidden, orders, strict=True)]
        return sum(w * v for w, v in zip(out, h[:8], strict=True)) + sum(v * v for v in h)

    compare(loss, pool, [normal(1, 5, 8)], 16)


@pytest.mark.parametrize("density", [0.8, 0.5, 0.15])
def test_pruned_networks(density: float) -> None:
    generator = random.Random(20)
    hidden, out = values(generator, 16, 10), values(generator, 16)
    kept = [[k for k in range(10) if generator.random() < density] or [0] for _ in hidden]

    def loss(x: Numbers) -> Any:
        h = [sum(row[k] * x[k] for k in ks).relu() for row, ks in zip(hidden, kept, strict=True)]
        return sum(w * v for w, v in zip(out, h, strict=True)) ** 2

    compare(loss, flat([hidden, out]), [normal(1, 6, 10)], 30)


def test_the_kinematics_of_an_arm() -> None:
    joints = values(random.Random(21), 6)
    lengths = [1.0, 0.8, 0.6, 0.5, 0.4, 0.2]

    def loss(target: Numbers) -> Any:
        x, y, angle = 0.0, 0.0, 0.0
        for q, length in zip(joints, lengths, strict=True):
            angle = angle + q
            x = x + length * angle.cos()
            y = y + length * angle.sin()
        return (x - target[0]) ** 2 + (y - target[1]) ** 2

    compiled = compare(loss, joints, [normal(1, 5, 2)], 40)
    # Closed form: by the last joint, x moves by -l sin and y by l cos of the sum of all angles.
    target = [0.3, -0.2]
    sums = np.cumsum([q.data for q in joints])
    dx, dy = np.dot(lengths, np.cos(sums)) - target[0], np.dot(lengths, np.sin(sums)) - target[1]
    slopes = gradients(compiled(target), joints)
    assert slopes[-1] == pytest.approx(2 * 0.2 * (-dx * math.sin(sums[-1]) + dy * math.cos(sums[-1])), rel=1e-12)


def test_the_price_of_an_option_by_simulation() -> None:
    draws = normal(22, 400).tolist()
    spot, volatility, rate = parameters = [Value(100.0), Value(0.2), Value(0.03)]

    @wengert.compile
    def price(strike: float, years: float) -> Any:
        drift = (rate - 0.5 * volatility * volatility) * years
        spread = volatility * years**0.5
        payoffs = [(spot * (drift + spread * z).exp() - strike).relu() for z in draws]
        return sum(payoffs) / len(payoffs) * (-rate * years).exp()

    for strike, years in [(100.0, 1.0), (90.0, 0.5), (120.0, 2.0)]:
        got = price(strike, years)
        same(got, price.function(strike, years), parameters)
        growth = np.exp((0.03 - 0.02) * years + 0.2 * math.sqrt(years) * np.array(draws))
        ends = 100.0 * growth
        assert got.data == pytest.approx(math.exp(-0.03 * years) * np.maximum(ends - strike, 0).mean(), rel=1e-12)
        delta = gradients(got, parameters)[0]
        assert delta == pytest.approx(math.exp(-0.03 * years) * np.where(ends > strike, growth, 0).mean(), rel=1e-12)
    lifted(price, 20)


def test_an_orbit_by_leapfrog() -> None:
    start = [Value(1.0), Value(0.1), Value(0.05), Value(0.95)]

    def loss(step: float, mass: float) -> Any:
        x, y, vx, vy = start
        for _ in range(12):
            vx, vy = pushed(x, y, vx, vy, 0.5 * step, mass)
            x, y = x + step * vx, y + step * vy
            vx, vy = pushed(x, y, vx, vy, 0.5 * step, mass)
        return x * x + y * y + vx * vy

    def pushed(x: Any, y: Any, vx: Any, vy: Any, step: Any, mass: Any) -> tuple[Any, Any]:
        pull = -mass * (x * x + y * y) ** -1.5
        return vx + step * pull * x, vy + step * pull * y

    compiled = compare(loss, start, [np.array([0.05, 0.1, 0.01]), np.array([1.0, 0.9, 1.2])], 200)
    # A difference of the function itself, by the first coordinate.
    slope = gradients(compiled(0.05, 1.0), start)[0]
    x, h = start[0].data, 1e-5
    ends = []
    for shift in (h, -h):
        start[0].data = x + shift
        ends.append(loss(0.05, 1.0).data)
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-8)


def test_layer_normalization() -> None:
    generator = random.Random(23)
    weights, gain, shift = values(generator, 6, 4), values(generator, 6), values(generator, 6)

    def loss(x: Numbers) -> Any:
        h = [wengert.dot(row, x) for row in weights]
        mean = sum(h) / len(h)
        variance = sum((v - mean) ** 2 for v in h) / len(h)
        out = [g * (v - mean) / (variance + 1e-5) ** 0.5 + s for v, g, s in zip(h, gain, shift, strict=True)]
        return sum(v**3 for v in out)

    compare(loss, flat([weights, gain, shift]), [normal(1, 5, 4)], 20)


def test_normalization_by_the_root_mean_square() -> None:
    generator = random.Random(24)
    weights = values(generator, 5, 4)

    def loss(x: Numbers) -> Any:
        h = [wengert.dot(row, x) for row in weights]
        scale = (wengert.mean([v * v for v in h]) + 1e-5) ** -0.5
        return sum((v * scale).tanh() * (n + 1) for n, v in enumerate(h))

    compare(loss, flat(weights), [normal(1, 5, 4)], 16)


def test_prefix_sums_and_products() -> None:
    steps = values(random.Random(25), 8)

    def loss(x: Numbers) -> Any:
        level: Any = 0.0
        worth: Any = 1.0
        total: Any = 0.0
        for s, xi in zip(steps, x, strict=True):
            level = level + s * xi
            worth = worth * (1 + 0.1 * s)
            total = total + level * worth
        return total

    compare(loss, steps, [normal(1, 5, 8)], 60)


def test_the_helpers_can_fail() -> None:
    compiled = wengert.compile(lambda x: Value(1.0) * x)
    compiled(2.0)
    with pytest.raises(AssertionError):
        lifted(compiled, 0)
    with pytest.raises(AssertionError):
        same(Value(1.0), Value(1.0 + 1e-9), [])
