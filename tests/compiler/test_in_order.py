"""What lifting computes number by number, beside Python's integers: products in a finite field, and levels."""

from __future__ import annotations

import random

import pytest

np = pytest.importorskip("numpy")

from wengert.compiler.lift.cancelling import _of_float  # noqa: E402  (they need NumPy)
from wengert.compiler.lift.in_order import PRIME, evaluate, multiply, set_levels  # noqa: E402
from wengert.ops import BY_NAME  # noqa: E402

rng = random.Random(61)
EDGES = [0, 1, 2, PRIME - 1, PRIME - 2, (1 << 31) - 1, 1 << 31, 1 << 60]


def test_products_in_the_field() -> None:
    pairs = [(x, y) for x in EDGES for y in EDGES]
    pairs += [(rng.randrange(PRIME), rng.randrange(PRIME)) for _ in range(2000)]
    xs, ys = np.array(pairs).T.copy()
    multiply(xs, ys)
    assert xs.tolist() == [x * y % PRIME for x, y in pairs]


def test_floats_in_the_field() -> None:
    floats = [rng.uniform(-1, 1) * 10 ** rng.uniform(-300, 300) for _ in range(2000)]
    floats += [1.0, -1.0, 0.5, -3.0, 0.1, 5e-324, 2.2e-308, 1.7e308, float(PRIME - 1)]
    fractions = [x.as_integer_ratio() for x in floats]
    assert _of_float(np.array(floats)).tolist() == [top * pow(bottom, -1, PRIME) % PRIME for top, bottom in fractions]


def test_sums_and_products_in_the_field() -> None:
    """Each operation as integers have it; a quotient by 0, another power and other operations keep their values."""
    a, b, c = 1 << 60, PRIME - 5, 3
    constants = np.array([2.0, 3.0, 4.0, 5.0])
    leaves, powers = [a, b, c, 0], [10, 11, 12, 13]  # constants are numbered after 4 leaves and the operations
    operations = [
        ("add", [0, 1], (a + b) % PRIME), ("sub", [2, 1], (c - b) % PRIME), ("neg", [0], -a % PRIME),
        ("neg", [3], 0), ("mul", [0, 1], a * b % PRIME), ("div", [0, 1], a * pow(b, -1, PRIME) % PRIME),
        ("div", [0, 3], None), ("sum", [0, 1, 2], (a + b + c) % PRIME),
        ("dot", [0, 1, 2, 1, 0, 2], (2 * a * b + c * c) % PRIME), ("dot", [0, 1, 2], (a * b + c) % PRIME),
        *[("pow", [0, n], a ** (n + 2) % PRIME if n < 3 else None) for n in range(4)],
    ]  # fmt: skip
    count = len(leaves) + len(operations)
    codes = np.array([0] * len(leaves) + [BY_NAME[name].code for name, _, _ in operations])
    spelt = [[x[0], count + x[1]] if name == "pow" else x for name, x, _ in operations]
    starts = np.cumsum([0] * (len(leaves) + 1) + [len(x) for x in spelt])
    operands = np.array([x for each in spelt for x in each])
    values = np.array([*leaves, *[77] * len(operations), *powers])
    evaluate(np.arange(len(leaves), count), codes, starts, operands, constants, values)
    want = [77 if result is None else result for _, _, result in operations]
    assert values.tolist() == [*leaves, *want, *powers]


def test_levels() -> None:
    """Each number reads some earlier ones: a level is the length of the longest path to it."""
    count = 400
    reads = [sorted(rng.sample(range(n), min(n, rng.randrange(4)))) for n in range(count)]
    varies = [rng.random() < 0.02 for _ in range(count)]
    want, depends = [0] * count, list(varies)
    for n, xs in enumerate(reads):
        want[n] = max([want[x] + 1 for x in xs], default=0)
        depends[n] |= any(depends[x] for x in xs)
    users = np.repeat(np.arange(count), [len(xs) for xs in reads])
    levels, marks = np.zeros(count, np.int64), np.array(varies)
    set_levels(users, np.array([x for xs in reads for x in xs]), levels, marks.view(np.uint8))
    assert levels.tolist() == want
    assert marks.tolist() == depends
    assert set(want) > {0, 5}
