"""Sums of which terms cancel are added as they are written; and numbers that floats do not hold are left to Python."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import wengert
from tests.compiler.checks import entries, lifted, warned
from wengert import Value

np = pytest.importorskip("numpy")

from wengert.compiler.backends import BACKENDS as EVERY  # noqa: E402

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

BACKENDS = [
    pytest.param(name, marks=[pytest.mark.jax] * (name == "xla")) for name in EVERY if EVERY[name].is_available()
]
KINDS = ["floats", "Values"]
BY_NIGHT = [  # XLA, which compiles for a second or two: at each change it is tried by `test_any_sum_that_cancels`
    pytest.param(*each.values, marks=[*each.marks, *[pytest.mark.nightly] * (each.values == ("xla",))])
    for each in BACKENDS
]
LONG = ("neumaier", "cascaded", "exact dot")  # XLA compiles these for seconds
EPSILON = sys.float_info.epsilon
w = Value(1.0)
Sum = Callable[[list[Any]], Any]


# -- sums that keep what rounding takes away --------------------------------------------------------------------------


def kahan(xs: list[Any]) -> Any:
    total, lost = 0.0, 0.0
    for x in xs:
        y = x - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


def neumaier(xs: list[Any]) -> Any:
    total, lost = 0.0, 0.0
    for x in xs:
        t = total + x
        lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
        total = t
    return total + lost


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Knuth's."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fast_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Dekker's."""
    total = a + b
    return total, b - (total - a)


def cascaded(xs: list[Any]) -> Any:
    total, lost = xs[0], []
    for x in xs[1:]:
        total, rest = two_sum(total, x)
        lost.append(rest)
    return total + sum(lost)


def split(a: Any) -> tuple[Any, Any]:
    c = 134217729.0 * a
    high = c - (c - a)
    return high, a - high


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def exact_dot(xs: list[Any]) -> Any:
    """Dot2 of Ogita, Rump and Oishi 2005."""
    half = len(xs) // 2
    total, lost = two_product(xs[0], xs[half])
    for a, b in zip(xs[1:half], xs[half + 1 :], strict=True):
        product, rest = two_product(a, b)
        total, carried = two_sum(total, product)
        lost += carried + rest
    return total + lost


def extracted(xs: list[Any]) -> Any:
    """The digits that all numbers have in common with a large one, and the rest."""
    large = 1e18
    high = [(large + x) - large for x in xs]
    return sum(high) + sum(x - h for x, h in zip(xs, high, strict=True))


ADDED: dict[str, Sum] = {"kahan": kahan, "neumaier": neumaier, "cascaded": cascaded, "extracted": extracted}
OTHERS: dict[str, Sum] = {
    "exact dot": exact_dot,
    "two-sum": lambda xs: two_sum(xs[0], xs[1])[1] * 3.0,
    "fast two-sum": lambda xs: fast_two_sum(xs[0], xs[1])[1],
    "two-product": lambda xs: two_product(xs[0], xs[1])[1],
    "what is left": lambda xs: ((xs[0] + xs[1]) - xs[0]) - xs[1],
    "multiples": lambda xs: (3.0 * xs[0] + xs[1]) - 2.0 * xs[0] - xs[0],
    "three": lambda xs: (lambda t: t + (((t - xs[0]) - xs[1]) - xs[2]))(xs[0] + xs[1] + xs[2]),
    "telescope": lambda xs: sum(b - a for a, b in pairwise(xs)),
    "one node": lambda xs: wengert.sum([xs[0], xs[1] * w, -xs[0], xs[2], -xs[1]]) * w,
    "a dot": lambda xs: wengert.dot([w, 1.0, w], [xs[2], xs[0], xs[3]], xs[1]) - xs[0] - xs[1],
}


def draws(seed: int, count: int, width: int = 6) -> list[list[float]]:
    rng = random.Random(seed)
    sizes = [1e16, 1.0, -1e16, 2.85, 1e8, -1e8, 0.1]
    return [[rng.choice(sizes) * rng.choice((1.0, rng.gauss(0, 1))) for _ in range(width)] for _ in range(count)]


def made_of(add: Sum, kind: str) -> Callable[[list[float]], Any]:
    """A function that adds floats, or Values."""
    return (lambda xs: w * add(xs)) if kind == "floats" else (lambda xs: w * add([w * x for x in xs]))


def combinations(names: Iterable[str]) -> Any:
    """Each sum, of each kind of numbers, by each back end; those that take long at night alone."""
    found = []
    for name, kind, backend in itertools.product(names, KINDS, BACKENDS):
        is_long = backend.values == ("xla",) and name in LONG
        found.append(
            pytest.param(name, kind, *backend.values, marks=[*backend.marks, *[pytest.mark.nightly] * is_long])
        )
    return pytest.mark.parametrize(("name", "kind", "backend"), found)


@pytest.mark.sampled(8)
@combinations([*ADDED, *OTHERS])
def test_the_bits_are_those_of_the_function(name: str, kind: str, backend: Any) -> None:
    plain = made_of((ADDED | OTHERS)[name], kind)
    compiled = wengert.compile(plain, backend=backend)
    rows = draws(1, 12 if backend == "xla" else 30)
    want = [plain(row).data for row in rows]
    assert [compiled(row).data for row in rows[:8]] == want[:8]
    for _ in range(2):
        assert compiled.map(rows).tolist() == want
    scale = math.fsum(map(abs, want)) / len(rows)
    assert compiled.mean(rows).data == pytest.approx(math.fsum(want) / len(rows), rel=0.0, abs=8.0 * EPSILON * scale)
    lifted(compiled)


@pytest.mark.sampled(3)
@combinations(["neumaier", "cascaded"])
def test_a_compensated_sum_is_exact(name: str, kind: str, backend: Any) -> None:
    """To the bound of Ogita, Rump and Oishi, which no plain sum comes near to here: some of these are 0 without."""
    compiled = wengert.compile(made_of(ADDED[name], kind), backend=backend)
    rows = [[1e16, 1.0, 1.0, -1e16, 0.85, 2.0**-60], [1.0, 1e100, 1.0, -1e100, 3.0, 0.5], *draws(2, 10)]
    for _ in range(2):
        for got, row in zip(compiled.map(rows).tolist(), rows, strict=True):
            exact = sum(map(Fraction, row))
            size = sum(map(Fraction, map(abs, row)))
            assert abs(Fraction(got) - exact) <= abs(exact) * Fraction(EPSILON) + size * Fraction((6 * EPSILON) ** 2)


@pytest.mark.parametrize("backend", BY_NIGHT)
def test_derivatives_are_those_of_the_function(backend: Any) -> None:
    a, b = Value(1.5), Value(0.25)

    def plain(xs: list[float]) -> Any:
        return kahan([a * x for x in xs]) * b + cascaded([b * x * x for x in xs])

    compiled = wengert.compile(plain, backend=backend)
    for row in draws(3, 3):
        for _ in range(2):
            slopes = []
            for f in (compiled, plain):
                a.grad = b.grad = 0.0
                f(row).backward()
                slopes.append((a.grad, b.grad))
            size = sum(abs(x) + x * x for x in row)
            assert slopes[0] == pytest.approx(slopes[1], rel=0.0, abs=64.0 * EPSILON * size)
    lifted(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pairwise_sum_is_as_good_as_the_function(backend: Any) -> None:
    def in_halves(xs: list[Any]) -> Any:
        half = len(xs) // 2
        return in_halves(xs[:half]) + in_halves(xs[half:]) if half else xs[0]

    rng = random.Random(4)
    rows = [[rng.random() for _ in range(256)] for _ in range(4)]
    compiled = wengert.compile(lambda xs: w * in_halves(xs), backend=backend)
    for _ in range(2):
        assert compiled.map(rows).tolist() == pytest.approx(list(map(math.fsum, rows)), rel=16.0 * EPSILON)
    lifted(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_products_among_them_stay_products(backend: Any) -> None:
    """Of a compensated sum of dot products only the compensated part is added as it is written."""
    weights = [[Value(0.1 * n + k) for n in range(16)] for k in range(8)]

    def plain(xs: list[float]) -> Any:
        return kahan([sum(v * x for v, x in zip(row, xs, strict=True)) for row in weights])

    compiled = wengert.compile(plain, backend=backend)
    row = [1e8, 0.5] * 8
    assert compiled(row).data == pytest.approx(plain(row).data, rel=16.0 * EPSILON)
    compiled(row)
    lifted(compiled)
    assert compiled.source(gradient=False).count("@") == 1


def expression(rng: random.Random) -> str:
    """A sum in which every number but one or two stands with both signs, with brackets anywhere."""
    names = rng.sample([f"x[{n}]" for n in range(6)], rng.randint(2, 4))
    terms = [sign + name for name in names for sign in "+-"]
    terms += ["+" + name for name in rng.sample(["y", "z"], rng.randint(0, 2))]
    rng.shuffle(terms)
    while len(terms) > 1:
        at = rng.randrange(len(terms) - 1)
        first, second = terms[at : at + 2]
        sign = rng.choice("+-")
        turned = {"+": "-", "-": "+"} if sign == "-" else {"+": "+", "-": "-"}
        left, right = turned[first[0]] + first[1:], turned[second[0]] + second[1:]
        terms[at : at + 2] = [f"{sign}({left.removeprefix('+')} {right[0]} {right[1:]})"]
    return terms[0].removeprefix("+")


@pytest.mark.parametrize(
    ("backend", "count"),
    [pytest.param(*each.values, 1 if each.values == ("xla",) else 20, marks=each.marks) for each in BACKENDS]
    + [pytest.param(*each.values, 4, marks=each.marks) for each in BY_NIGHT if each.values == ("xla",)],
)
def test_any_sum_that_cancels(backend: Any, count: int) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        scope: dict[str, Any] = {}
        first, last = expression(rng), expression(rng).replace("x[0]", "t")
        exec(f"def add(x):\n    y, z = x[6], x[7]\n    t = {first}\n    return {last} + t", scope)
        rows = draws(seed, 10, 8)
        plain = made_of(scope["add"], KINDS[seed % 2])
        compiled = wengert.compile(plain, backend=backend)
        want = [plain(row).data for row in rows]
        for _ in range(2):
            assert compiled.map(rows).tolist() == want, f"{first}; {last}"
        lifted(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_comparison_finds_a_compensated_sum_that_is_not(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    flatten = sys.modules["wengert.compiler.lift.flatten"]
    merge = flatten._merge_sums
    monkeypatch.setattr(flatten, "_merge_sums", lambda *args: merge(*args[:-1], np.zeros_like(args[-1])))
    plain = made_of(kahan, "floats")
    row = [1e16, 1.0, 1.0, -1e16, 2.85]
    compiled = wengert.compile(plain, backend=backend)
    messages = warned(lambda: [compiled(row) for _ in range(6)])
    assert compiled(row).data == plain(row).data
    assert "the array program is" in messages[0]


# -- math.fsum, and what is made with it ------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "add", [math.fsum, lambda xs: math.fsum([*xs, 1.0]), lambda xs: math.fsum(x * 2.0 for x in xs)]
)
def test_fsum_is_itself(add: Sum, backend: Any) -> None:
    def plain(xs: list[float]) -> Any:
        return w * add(xs)

    rows = draws(5, 12)
    want = [plain(row).data for row in rows]
    compiled, batch = wengert.compile(plain, backend=backend), wengert.compile(plain, backend=backend)
    for call in (lambda: [compiled(row).data for row in rows * 2][12:], lambda: batch.map(rows).tolist()):
        got: list[Any] = []
        assert warned(lambda: got.append(call())) == []  # noqa: B023
        assert got == [want]
    lifted(compiled)
    lifted(batch)
    assert batch.mean(rows).data == pytest.approx(math.fsum(want) / 12, rel=1e-15)


def test_fsum_of_what_is_no_argument_is_a_number() -> None:
    numbers = (0.1, 0.2, 1e16, -1e16)
    compiled = wengert.compile(lambda x: w * x * math.fsum(numbers), backend="numpy")
    for _ in range(6):
        assert compiled(2.0).data == 2.0 * math.fsum(numbers)
    lifted(compiled)


def test_fmean_is_itself() -> None:
    compiled = wengert.compile(lambda xs: w * statistics.fmean(xs), backend="numpy")
    rows = draws(6, 8)
    assert [compiled(row).data for row in rows * 2] == [statistics.fmean(row) for row in rows * 2]
    lifted(compiled)


# -- integers that floats do not hold ---------------------------------------------------------------------------------

BASE = 2**53
LATE = [BASE + 1, -BASE - 1, BASE, 2**63, 2**70, -(2**63)]
INTEGERS: dict[str, tuple[Callable[[Any], Any], Callable[[int], Any]]] = {
    "number": (lambda n: w * (n - BASE), lambda n: n),
    "NumPy's": (lambda n: w * (n - BASE), lambda n: np.int64(n) if abs(n) < 2**62 else n),
    "list": (lambda ns: w * (ns[0] - BASE) + ns[1], lambda n: [n, 2]),
    "among floats": (lambda ns: w * (ns[0] - BASE) + ns[1], lambda n: [n, 2.5]),
    "tuple": (lambda ns: w * (ns[0] - BASE) + ns[1], lambda n: (n, 2.5)),
    "dict": (lambda ns: w * (ns["a"] - BASE) + ns["b"], lambda n: {"a": n, "b": 2.5}),
    "array": (lambda ns: w * int(ns[0] - BASE) + int(ns[1]), lambda n: np.array([n if abs(n) < 2**62 else 5, 2])),
    "unsigned": (lambda ns: w * float(ns[0] - np.uint64(7)), lambda n: np.array([abs(n) % 2**64 + 7], np.uint64)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BY_NIGHT)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_that_come_late(name: str, backend: Any) -> None:
    function, argument = INTEGERS[name]
    calls = [*map(argument, range(1, 7)), *map(argument, LATE), *map(argument, range(1, 4))]
    compiled = wengert.compile(function, backend=backend)
    assert [compiled(x).data for x in calls] == [function(x).data for x in calls]
    assert entries(compiled) == 2
    assert "the function itself runs: an integer among the arguments is beyond 2**53" in compiled.report()


@pytest.mark.parametrize("backend", BY_NIGHT)
@pytest.mark.parametrize("is_array", [False, True])
def test_integers_that_come_late_in_a_batch(is_array: bool, backend: Any) -> None:
    def plain(n: int) -> Any:
        return w * (n - BASE)

    batches: list[list[int]] = [[1, 2, 3]] * 4 + [[1, 2, n] for n in LATE if not is_array or abs(n) < 2**62] + [[4, 5]]
    compiled = wengert.compile(plain, backend=backend)
    for batch in batches:
        assert compiled.map(np.array(batch) if is_array else batch).tolist() == [plain(n).data for n in batch]
    assert entries(compiled) == 2


def test_integers_at_the_edge() -> None:
    """What is made of integers is as exact as they are; the last that is told from its neighbours is 2**53 - 1."""
    compiled = wengert.compile(lambda n, m: w * ((n + m) - n), backend="numpy")
    modulus = wengert.compile(lambda n: w * ((n % (BASE + 1)) - BASE), backend="numpy")
    for n in (1, 2, BASE - 1, BASE - 2, 3):
        assert compiled(n, 2).data == 2.0
    for n in (-5, -1, 3, -7, 4, -2):
        assert modulus(n).data == float(n % (BASE + 1) - BASE)
