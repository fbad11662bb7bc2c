"""Scenarios of sums as they are written, large integers, conditions as masks, and results that are no floats."""

from __future__ import annotations

import fractions
import itertools
import math
import statistics

import numpy as np

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value

CANCELLING = [(1e16, 1.0, -1e16), (0.1, 0.2, 0.3), (1.0, 1e100, -1e100), (3e15, 0.7, -3e15), (0.1, -0.1, 1e-20)]


def kahan(xs):
    total = lost = 0.0
    for x in xs:
        y = x - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


def neumaier(xs):
    total = lost = 0.0
    for x in xs:
        t = total + x
        lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
        total = t
    return total + lost


def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


# ------------------------------------------------------------------------------------------------ compensated sums


@scenario
def fsum_of_what_cancels(compile):
    w = Value(1.0)
    f = compile(lambda a, b, c: w * math.fsum([a, b, c]))
    for call in range(1, 22):
        yield f(*CANCELLING[0 if call < 6 else call % 5]), w


@scenario
def fsum_in_a_map(compile):
    w = Value(2.0)
    f = compile(lambda xs: w * math.fsum(xs))
    for call in range(1, 14):
        yield f.map([[1e16, 0.5 * k + call, -1e16, 1.0] for k in range(9)])
        yield f.mean([[1e15, 0.25 * k, 3.0, -1e15] for k in range(64)]), w


@scenario
def fsum_over_what_is_captured(compile):
    terms, w = [1e16, 1.0, -1e16], Value(1.0)
    f = compile(lambda x: w * x * math.fsum(terms))
    for call in range(1, 18):
        if call == 6:
            terms[1] = 3.0
        if call == 12:
            terms.extend([0.1] * 10)
        yield f(0.5), w
        yield f(0.1 * call), w


@scenario
def kahan_sum_of_floats(compile):
    w = Value(1.0)
    f = compile(lambda xs: w * kahan(xs))
    for call in range(1, 20):
        small = 1.0 if call < 6 else 0.1 * call
        yield f([1e16, small, small, -1e16]), w


@scenario
def kahan_sum_of_values(compile):
    a, b = Value(1e16), Value(1.0)
    f = compile(lambda x: kahan([a, b * x, b * x, -a]))
    for call in range(1, 18):
        if call == 6:
            b.data = 3.0
        yield f(1.0 + 0.5 * call), a, b


@scenario
def neumaier_sum_in_a_map(compile):
    w = Value(1.0)
    f = compile(lambda xs: w * neumaier(xs))
    for call in range(1, 14):
        yield f.map([[1.0, 1e100, 1.0 + k, -1e100] for k in range(9)])
        yield f([1.0, 1e100 if call > 5 else 1e3, 1.0 * call, -1e100 if call > 5 else -1e3]), w


@scenario
def two_sum_of_numbers_and_its_error(compile):
    w = Value(1.0)

    def value(a, b):
        s, e = two_sum(a, b)
        return w * s + w * e * 1e16

    f = compile(value)
    for call in range(1, 20):
        yield f(0.1 * call, 0.2 if call < 6 else 1e8 * call), w


@scenario
def two_sum_of_values_in_a_mean(compile):
    a = Value(0.1)
    f = compile(lambda x: two_sum(a * 3.0, x)[1] * 1e17)
    for call in range(1, 15):
        if call == 6:
            a.data = 1e5
        yield f.mean([0.3 * k + 0.1 * call for k in range(64)]), a
        yield f.map([0.7 * k for k in range(9)])


@scenario
def two_product_by_splitting(compile):
    w = Value(1.0)

    def split(a):
        c = 134217729.0 * a
        high = c - (c - a)
        return high, a - high

    def value(a, b):
        p = a * b
        (ah, al), (bh, bl) = split(a), split(b)
        return w * (((ah * bh - p) + ah * bl + al * bh) + al * bl) * 1e17

    f = compile(value)
    for call in range(1, 20):
        yield f(0.1 * call, 1 / 3 if call < 6 else math.pi * call), w


@scenario
def error_of_a_rounding_trick(compile):
    magic, w = [6755399441055744.0], Value(1.0)
    f = compile(lambda x: w * ((x + magic[0]) - magic[0]))
    for call in range(1, 20):
        if call == 12:
            magic[0] = 2.0**52
        yield f(0.3 * call), w
    yield f.map([0.37 * k for k in range(9)])


@scenario
def running_variance_by_welford(compile):
    w = Value(1.0)

    def variance(xs):
        mean = m2 = 0.0
        for n, x in enumerate(xs, 1):
            delta = w * x - mean
            mean = mean + delta / n
            m2 = m2 + delta * (w * x - mean)
        return m2 / len(xs)

    f = compile(variance)
    for call in range(1, 18):
        offset = 0.0 if call < 6 else 1e6
        yield f([offset + 4.0, offset + 7.0, offset + 13.0, offset + 0.5 * call]), w


@scenario(documented="Sums are added in another order")
def pairwise_sum_of_mixed_magnitudes(compile):
    w = Value(1.0)

    def pairwise(xs):
        if len(xs) == 1:
            return xs[0]
        half = len(xs) // 2
        return pairwise(xs[:half]) + pairwise(xs[half:])

    f = compile(lambda xs: w * pairwise(xs))
    for call in range(1, 18):
        big = 2.0 if call < 6 else 2.0**54
        yield f([big, 1.0, -big, 3.0, big, 0.5 * call, -big, 1.0]), w


@scenario
def step_that_a_float_can_hold(compile):
    h, w = [1e-3], Value(2.0)
    f = compile(lambda x: w * (((x + h[0]) - x) / h[0]))
    for call in range(1, 20):
        if call == 6:
            h[0] = 1e-8
        if call == 12:
            h[0] = 1e-12
        yield f(0.7 * call), w
        yield f.map([0.7 * call + 0.3 * k for k in range(9)])


@scenario
def exact_fractions_and_statistics_of_the_arguments(compile):
    w = Value(1.0)
    exact = compile(lambda xs: w * float(sum(map(fractions.Fraction, xs))))
    mean = compile(lambda xs: w * statistics.fmean(xs))
    for call in range(1, 40):  # each is a program of its own, until these cost more than they save, or are too many
        xs = [1e16, 1.0 * call, -1e16, 0.5]
        yield attempt(exact, xs), w
        yield attempt(mean, xs), w


@scenario
def sum_product_and_distance_of_math(compile):
    origin, w = [0.0, 1.0], Value(1.0)
    f = compile(lambda p: w * math.dist(p, origin) + math.prod(p) + math.hypot(*p))
    for call in range(1, 18):
        if call == 6:
            origin[0] = 3.0
        yield f([0.1 * call, -0.4]), w
        yield f.map([[0.1 * k, 1e200 if k == 5 and call == 9 else 1.0] for k in range(9)])


@scenario
def accumulated_differences_in_a_loop_of_values(compile):
    drift, w = [0.0], Value(1.0)

    def value(x):
        total, previous = w * 0.0, w * x
        for k in range(12):
            following = previous + 0.1 * k
            total = total + (following - previous)
            previous = following
        return total + drift[0]

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            drift[0] = 1.0
        yield f(1e8 * call), w


# ------------------------------------------------------------------------------------------------ large integers


@scenario
def identifiers_beyond_two_to_the_53_minus_a_base(compile):
    w = Value(1.0)
    f = compile(lambda n: w * (n - 2**53))
    for call in range(1, 20):
        yield f(call if call < 6 else 2**53 + call), w


@scenario
def nanoseconds_since_a_start(compile):
    start, w = [0], Value(1.0)
    f = compile(lambda t: w * ((t - start[0]) / 1e9))
    for call in range(1, 20):
        if call == 6:
            start[0] = 1_700_000_000_000_000_000
        yield f(start[0] + 7 * call), w


@scenario
def hash_bits_and_remainders_of_large_integers(compile):
    mask, w = [0xFFFF], Value(1.0)
    f = compile(lambda n: w * ((n & mask[0]) % 1000) + (n >> 4) % 7)
    for call in range(1, 20):
        if call == 12:
            mask[0] = (1 << 60) - 1
        yield f(1000 + call if call < 6 else 0x9E3779B97F4A7C15 + call), w


@scenario
def large_integers_in_a_batch(compile):
    w = Value(0.5)
    f = compile(lambda n: w * (n % 10) + n // 10**16)
    for call in range(1, 15):
        base = 0 if call < 6 else 2**60
        yield f.map([base + 3 * k for k in range(9)])
        yield f.mean([base + k for k in range(64)]), w


@scenario
def exact_comparison_of_neighbouring_integers(compile):
    limit, w = [2**53], Value(1.0)
    f = compile(lambda n: w if n > limit[0] else -w)
    for call in range(1, 20):
        if call == 12:
            limit[0] = 2**60
        yield f(call if call < 6 else limit[0] + (call % 3 - 1)), w


@scenario
def factorials_and_powers_outgrow_a_float(compile):
    w = Value(1.0)
    f = compile(lambda n: w * (math.factorial(n) % 1009) + 3**n % 11)
    for call in range(1, 24):
        yield f(3 if call < 6 else call), w


@scenario
def integer_square_roots_and_gcd(compile):
    modulus, w = [12], Value(1.0)
    f = compile(lambda n: w * math.isqrt(n) + math.gcd(n, modulus[0]))
    for call in range(1, 20):
        if call == 12:
            modulus[0] = 35
        yield f(10 + call if call < 6 else 2**62 - 1 + 7 * call), w


@scenario
def time_stamps_as_numpy_integers(compile):
    w = Value(1.0)
    f = compile(lambda t: w * float(t - np.int64(2**53)))
    for call in range(1, 20):
        yield f(np.int64(call if call < 6 else 2**53 + 2 * call + 1)), w


# ------------------------------------------------------------------------------------------------ conditions


@scenario
def where_of_ten_numbers_in_a_loop(compile):
    bound, w = [0.0], Value(1.5)

    def value(xs):
        total = w * 0.0
        for x in xs:
            total = total + wengert.where(x > bound[0], w * x, -0.1 * x)
        return total

    f = compile(value)
    signs = itertools.cycle(itertools.product([-1, 1], repeat=5))
    for call in range(1, 30):
        if call == 6:
            bound[0] = 0.3
        pattern = next(signs) + next(signs)
        yield f([s * 0.1 * (k + call) for k, s in enumerate(pattern)]), w


@scenario
def where_of_values_in_a_mean(compile):
    a, b = Value(0.5), Value(-0.5)
    f = compile(lambda x: wengert.where(a * x > b, a * x, b) + wengert.where(x <= 0, 1.0, a))
    for call in range(1, 15):
        if call == 6:
            b.data = 2.0
        yield f.mean([0.05 * k - 0.1 * call for k in range(64)]), a, b
        yield f.map([0.3 * k - 1.0 for k in range(9)])


@scenario
def count_of_hits_as_a_sum_of_bools(compile):
    target, w = [0.5], Value(1.0)

    def value(xs):
        hits = sum(x > target[0] for x in xs)
        return w * hits / len(xs)

    f = compile(value)
    for call in range(1, 24):
        if call == 6:
            target[0] = 0.9
        yield f([0.05 * call, 0.6, 1.0 - 0.04 * call, 0.89]), w


@scenario
def mask_times_a_number(compile):
    w, cut = Value(2.0), {"low": -1.0, "high": 1.0}
    f = compile(lambda x: (x > cut["low"]) * (x < cut["high"]) * w * x + (not x > 0) * w)
    for call in range(1, 22):
        if call == 6:
            cut["high"] = 0.5
        if call == 12:
            cut.update(low=0.2, high=9.0)
        yield f(0.15 * call - 1.0), w
        yield f.map([0.4 * k - 1.5 for k in range(9)])


@scenario
def mask_of_an_array_used_four_ways(compile):
    w, level = Value(1.0), [0.0]

    def value(x):
        mask = x > level[0]
        return w * np.where(mask, x, 0.0).sum() + mask.sum() + (~mask * x).sum() + float(mask.mean())

    f = compile(value)
    for call in range(1, 20):
        if call == 6:
            level[0] = 0.5
        yield f(np.array([0.1 * call, -0.3, 0.5, 0.05 * call - 0.6])), w


@scenario
def condition_kept_as_is_true(compile):
    w = Value(1.0)

    def value(x):
        positive = x > 0.5
        if positive is True:
            return w * x
        return w - x if positive is False else w * 100.0

    f = compile(value)
    for call in range(1, 20):
        yield f(0.05 * call if call < 6 else 0.1 * call), w


@scenario
def bool_int_and_float_results(compile):
    level = [1.0]
    kinds = compile(lambda x, k: x > level[0] if k == "b" else int(x) if k == "i" else x + level[0])
    for call in range(1, 26):
        if call == 12:
            level[0] = 0.2
        yield kinds(0.3 * call, "bif"[call % 3] if call > 5 else "b")


@scenario
def integers_in_integers_out(compile):
    step = [1]
    f = compile(lambda n: n + step[0])
    g = compile(lambda n: -n if n % 2 else n * n)
    for call in range(1, 20):
        if call == 6:
            step[0] = 3
        if call == 12:
            step[0] = 2.5
        yield f(call)
        yield g(call)
        yield (divmod(g(call), 3),)


@scenario
def sign_of_zero_and_not_a_number(compile):
    w = Value(1.0)
    f = compile(lambda x: w * math.copysign(1.0, x) + (x != x) * 2.0)
    points = [1.0, -1.0, 0.5, -0.5, 2.0, -0.0, 0.0, math.nan, math.inf, -math.inf, -0.0, 3.0, math.nan, -0.0]
    for x in points:
        yield f(x)
    yield f.map(points[:9])


@scenario
def clipping_by_bounds_that_cross(compile):
    bounds, w = [0.0, 1.0], Value(1.0)
    f = compile(lambda x: min(max(w.data * x, bounds[0]), bounds[1]) * w + wengert.clip(w * x, *bounds))
    for call in range(1, 20):
        if call == 6:
            bounds[1] = 0.4
        if call == 12:
            bounds[0] = 0.3
        yield f(0.12 * call - 0.5), w


@scenario
def median_and_quantile_by_sorting(compile):
    q, w = [0.5], Value(1.0)
    f = compile(lambda xs: w * sorted(xs)[int(q[0] * (len(xs) - 1))])
    for call in range(1, 20):
        if call == 6:
            q[0] = 1.0
        if call == 12:
            q[0] = 0.0
        yield f([math.sin(call), 0.3, math.cos(2 * call)]), w
