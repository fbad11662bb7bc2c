"""Programs for what they are called with: every kind of argument, and what users do with it."""

from __future__ import annotations

import enum
import math
import operator
from array import array as buffer
from collections import Counter, namedtuple
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

import wengert
from tests.programs.kit import (
    alias,
    array,
    built,
    choice,
    flag,
    indices,
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
from wengert import Value

# ------------------------------------------------------------------------------------------------ numbers


@program(x=real(-3.0, 3.0))
def float_in_a_branch(left, right):
    def piecewise(x):
        if x < -1:
            return left * (x + 1) ** 2
        if -1 <= x <= 1:
            return left * right * x
        return right * math.sqrt(x - 1)

    return piecewise


@program(x=real(-3.0, 3.0), y=real(-3.0, 3.0))
def float_methods(a, b):
    def value(x, y):
        turns, rest = divmod(x, 0.5)
        whole_part = x.is_integer() or y.is_integer()
        p, q = (0.5 * round(y)).as_integer_ratio()
        return a * rest + b * turns + a * p / q + (a if whole_part else 0.1 * b) + x.real * b + y.imag

    return value


@program(x=real(-3.0, 3.0))
def type_of_a_number(a, b):
    def value(x):
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            raise TypeError(f"a real number is needed, not {type(x).__name__}")
        y = a * x if isinstance(x, float) else b * x
        return y + (a if isinstance(x, Real) and not isinstance(x, Integral) else b)

    return value


@program(x=real(-3.0, 3.0), engine="it makes text of each number")
def rounded_and_formatted(a, b):
    table = {"-1": 0.5, "0": 1.5, "1": -0.5}

    def value(x):
        nearest = round(x)
        shown = f"{x:.1f}"
        tag = str(math.trunc(x))
        return a * float(shown) + b * nearest + table.get(tag, 0.25) * a * b + len(shown) * 0.01

    return value


@program(x=real(-700.0, 800.0))
def number_that_may_overflow(a, b):
    def guarded(x):
        try:
            factor = math.exp(x)
        except OverflowError:
            return b * 1.0
        return a * math.log1p(min(factor, 1e6))

    return guarded


@program(p=wholes(2, 0, 60))
def division_by_an_argument(a):
    def harmonic(p):
        return a * 2 / (1 / p[0] + 1 / p[1])

    return harmonic


@program(n=whole(0, 12))
def integer_as_an_exponent(x, y):
    def value(n):
        sign = -1 if n % 2 else 1
        return sign * x**n / math.factorial(n) + y ** (n // 2)

    return value


@program(n=whole(1, 7))
def integer_as_a_count(x, scale):
    def series(n):
        total, term = 0.0, 1.0
        for k in range(1, n + 1):
            term = term * x / k
            total = total + term
        return scale * total / n

    return series


@program(i=whole(-5, 4))
def integer_as_an_index(w=weights(5)):
    def neighbours(i):
        return w[i] * 2 - w[i - 1 if i > -5 else 4] + sum(w[i:])

    return neighbours


@program(i=whole(0, 3), j=whole(0, 2))
def two_integers_in_one_table(shift, table=weights(4, 3)):
    def entry(i, j):
        return (table[i][j] + shift) * table[j][i % 3]

    return entry


@program(code=whole(0, 15))
def integer_as_bits(w=weights(4)):
    def value(code):
        total = 0.0 * w[0]
        for bit in range(4):
            if code >> bit & 1:
                total += w[bit]
        return total + 0.1 * w[0] * code.bit_length() + 0.01 * (code & -code) * w[1]

    return value


@program(n=whole(10**15, 10**16), k=whole(1, 9), engine="it takes integers apart that no float holds")
def integers_beyond_floats(a, b):
    def residue(n, k):
        big = n * n * k + 1
        return a * (big % 97) + b * (len(str(big)) - 30) + 0.01 * a * (math.gcd(n, 360) + math.isqrt(k))

    return residue


@program(q=flag(), r=flag())
def flags(a, b, c):
    def value(q, r):
        y = a if q else b
        if q is True and not r:
            y = y * c
        return y + (q + r) * c + (q ^ r) * a + b * (q and r)

    return value


@program(number=choice(Fraction(1, 3), Fraction(-7, 2), Fraction(5)))
def fraction(a, b):
    def value(number):
        whole_part, rest = divmod(number, 1)
        return a * float(number) + b * int(whole_part) + rest.numerator * a / rest.denominator

    return value


@program(price=choice(Decimal("19.99"), Decimal("0.50"), Decimal("120")))
def decimal(margin, tax):
    def gross(price):
        rounded = price.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)
        return float(rounded) * (1 + 0.1 * margin) + float(price - rounded) * tax

    return gross


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 4


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 2


@program(color=choice(*Color), level=choice(*Level))
def enumerations(red, green, other):
    def brightness(color, level):
        w = {Color.RED: red, Color.GREEN: green}.get(color, other)
        return w * color.value + other * level + (red if level > Level.LOW else 0.5 * green) * len(color.name)

    return brightness


@program(z=choice(1 + 2j, -0.5j, complex(3)))
def complex_impedance(resistance, inductance):
    def magnitude(z):
        re = resistance * z.real - inductance * z.imag
        im = resistance * z.imag + inductance * z.real
        return wengert.hypot(re, im) / abs(z)

    return magnitude


# ------------------------------------------------------------------------------------------------ text, None, flags


@program(activation=text("relu", "tanh", "sin", "identity"), x=real(-2.0, 2.0))
def name_of_a_method(w, b):
    def output(activation, x):
        h = w * x + b
        return getattr(h, activation)() if hasattr(h, activation) else h

    return output


@program(formula=text("a*x + b", "(a - x) * b", "a / (1 + b*b*x*x)"), x=real(-2.0, 2.0))
def formula_as_text(a, b):
    def value(formula, x):
        return eval(formula, {"__builtins__": {}}, {"a": a, "b": b, "x": x})

    return value


@program(bias=choice(None, 0.5, -1.0), x=real(-2.0, 2.0))
def none_or_number(w, default):
    def output(bias, x):
        if bias is None:
            bias = default
        return (w * x + bias).tanh()

    return output


@program(x=reals(3))
def defaults_that_are_not_passed(w, b):
    def output(x, scale=2.0, clip=None, names=("u", "v", "w"), verbose=False):
        total = sum(w * v for v in x) * scale + b * len(names)
        if clip is not None:
            total = total.clip(-clip, clip)
        if verbose:
            print(total)
        return total

    return output


@program(x=real(-1.0, 1.0), y=real(-1.0, 1.0))
def some_defaults_are_passed(w):
    def output(x, y=3.0, power=2, *, offset=0.5):
        return w * (x + y) ** power + offset * w

    return output


@program(order=choice(operator.lt, operator.gt), pick=choice(min, max), xs=reals(2))
def functions_as_arguments(a, b):
    def value(order, pick, xs):
        kept = [x for x in xs if order(x, 0.1)] or [0.0]
        return a * pick(kept) + b * len(kept)

    return value


@program(loss=choice(abs, math.cosh, lambda e: e * e), x=real(-1.0, 1.0), y=real(-1.0, 1.0))
def loss_as_argument(w):
    def value(loss, x, y):
        error = x - y
        return w * loss(error) + w * w * error

    return value


# ------------------------------------------------------------------------------------------------ sequences


@program(xs=reals(5, -2.0, 2.0))
def list_with_its_methods(a, b):
    def value(xs):
        ys = xs.copy()
        ys.append(ys[0])
        ys.insert(1, 0.5)
        last = ys.pop()
        ys.reverse()
        place = ys.index(max(ys))
        return a * sum(ys[::2]) + b * ys[-1] + a * b * place + last * a

    return value


@program(xs=reals(6, -2.0, 2.0))
def negative_indices_and_slices(a, b):
    def value(xs):
        first, *middle, last = xs
        return a * xs[-2] * first + b * sum(xs[-3:]) - a * sum(middle[:-1]) / len(middle) + b * last

    return value


@program(xs=reals(3, -2.0, 2.0), limit=real(-1.0, 1.0))
def extremes_and_sums_of_numbers(a, b):
    def value(xs, limit):
        low, high = min(xs), max(xs, default=0.0)
        above = sum(1 for x in xs if x > limit)
        norm = math.sqrt(sum(x * x for x in xs))
        arg = max(range(len(xs)), key=xs.__getitem__)
        return a * (high - low) / norm + b * above + (a + b) * arg / len(xs)

    return value


@program(xs=wholes(2, 0, 1), ys=wholes(2, 0, 1))
def equality_and_membership(a, b):
    def value(xs, ys):
        same = sum(x == y for x, y in zip(xs, ys))
        return a * same + b * (1 in xs) + a * b * (xs == ys) + b * len(set(xs)) - a * Counter(xs).most_common(1)[0][1]

    return value


@program(words=choice(["a", "b"], ["b", "b", "c"], []), n=whole(1, 3))
def list_of_text(a, b):
    def value(words, n):
        total = 0.0 * a
        for word in words * n:
            total += a if word == "a" else b / n
        return total - a * len("".join(words))

    return value


@program(p=pair(real(-1.0, 1.0), pair(whole(0, 2), reals(2))))
def nested_tuple(w=weights(3)):
    def value(p):
        x, (i, (u, v)) = p
        return w[i] * x + w[0] * u - w[1] * v * w[2]

    return value


Setup = namedtuple("Setup", "gain taps steps")


@program(
    setup=built(lambda draw: Setup(draw.uniform(0.1, 1.0), [draw.uniform(-1, 1) for _ in range(3)], draw.randint(1, 4)))
)
def named_tuple(a, b):
    def value(setup):
        y = a
        for k in range(setup.steps):
            y = setup.gain * y.tanh() + b * setup.taps[k % len(setup.taps)]
        return y

    return value


@program(span=choice(range(4), range(1, 9, 3), range(5, 0, -2)))
def range_argument(a, b):
    def value(span):
        return sum(a * k for k in span) + b * len(span) + a * b * (3 in span) + b * span.step

    return value


@program(kept=choice({0, 2}, {1}, frozenset({0, 1, 2})), xs=reals(3))
def set_argument(a, b):
    def value(kept, xs):
        total = sum(a * xs[i] for i in sorted(kept))
        return total + b * len(kept | {5}) - a * kept.issubset({0, 1})

    return value


@program(numbers=built(lambda draw: buffer("d", [draw.uniform(-1, 1) for _ in range(4)])))
def buffer_of_doubles(a, b):
    def value(numbers):
        return a * sum(numbers) + b * numbers[-1] + a * b * len(numbers) * numbers.itemsize / 8

    return value


@program(points=built(lambda draw: (x for x in [draw.uniform(-1, 1) for _ in range(4)])), more=real(-1.0, 1.0))
def generator_argument(a, b):
    def value(points, more):
        total = a * more
        for x in points:
            total = total + b * x * more
        return total

    return value


@program(matrix_=matrix(2, 2, -1.0, 1.0))
def list_of_lists(a, b):
    def value(matrix_):
        transposed = [list(column) for column in zip(*matrix_)]
        trace = sum(matrix_[i][i] for i in range(len(matrix_)))
        asymmetry = sum((u - v) ** 2 for r, s in zip(matrix_, transposed) for u, v in zip(r, s))
        return a * trace + b * asymmetry + a * max(map(max, matrix_))

    return value


@program(x=reals(2), y=alias("x", reals(2)))
def the_same_list_twice(a, b):
    def value(x, y):
        total = sum(u * v for u, v in zip(x, y)) * a
        return total + b if x is y else total - b * (x == y)

    return value


@program(v=built(lambda draw: Value(draw.uniform(-1, 1))), x=real(-1.0, 1.0))
def value_as_argument(w, b):
    def output(v, x):
        assert isinstance(v, Value)
        y = (w * v + b * x).tanh()
        return y * v if v.data > 0 else y - v

    return output


@program(vs=built(lambda draw: [Value(draw.uniform(-1, 1)) for _ in range(3)]), scale=real(0.5, 1.5))
def list_of_values(w=weights(3)):
    def output(vs, scale):
        hottest = max(vs)
        return sum(a * b for a, b in zip(w, vs)) * scale + hottest * w[vs.index(hottest)]

    return output


@program(mixed=built(lambda draw: {"state": [Value(draw.uniform(0, 1)), draw.uniform(0, 1)], "n": draw.randint(1, 3)}))
def values_in_a_nest(w, b):
    def output(mixed):
        total = w
        for item in mixed["state"] * mixed["n"]:
            total = total * b + (item.exp() if isinstance(item, Value) else math.exp(item))
        return total

    return output


# ------------------------------------------------------------------------------------------------ arrays


@program(x=array(3, lo=-2.0, hi=2.0))
def vector(w, b):
    def value(x):
        centered = x - x.mean()
        total = w * np.abs(x).max() + b * np.linalg.norm(centered) + w * float(x @ x)
        return total + b * np.argmax(x) + w * (x > 0).sum() + 0.1 * w * len(x) * x.ndim

    return value


@program(x=array(3, 2, lo=-2.0, hi=2.0))
def array_changed_in_place(w, b):
    def value(x):
        x = x.copy()
        x -= x.mean(axis=0)
        x /= x.std(axis=0) + 1e-9
        np.minimum(x, 1.0, out=x)
        return sum(w * a + b * c**2 for a, c in x)

    return value


@program(x=array(2, 3), m=array(3, 3))
def products_of_arrays(w=weights(3)):
    def value(x, m):
        projected = (x @ m.T).clip(-1, 1)
        return (np.array(w, dtype=object) * projected.sum(axis=0)).sum() + w[0] * np.trace(m)

    return value


@program(i=indices(2, lo=0, hi=2))
def integer_array(w=weights(3)):
    def value(i):
        counts = np.bincount(i, minlength=3)
        picked = [w[k] for k in i]
        return sum(picked) + sum(c * v**2 for c, v in zip(counts.tolist(), w)) + w[int(i.max())]

    return value


@program(mask=built(lambda draw: np.array([draw.random() < 0.5 for _ in range(4)])), x=array(4))
def array_of_flags(a, b):
    def value(mask, x):
        kept = x[mask]
        rest = np.where(mask, 0.0, x)
        return a * kept.sum() + b * (rest**2).sum() + a * mask.any() + b * int(np.count_nonzero(mask))

    return value


@program(x=built(lambda draw: np.float64(draw.uniform(-2, 2))), k=built(lambda draw: np.int64(draw.randint(0, 2))))
def numpy_scalars(w=weights(3)):
    def value(x, k):
        assert np.isscalar(x)
        assert x.dtype == float
        return w[k] * x + w[0] * np.sign(x) * k.item() + w[1] * (2**k)

    return value


@program(
    table=built(lambda draw: np.array([[draw.uniform(-1, 1) for _ in range(2)] for _ in range(draw.randint(1, 4))]))
)
def array_of_varying_length(w, b):
    def value(table):
        n, d = table.shape
        if n == 1:
            return w * table[0, 0] + b * d
        return sum(w * row[0] - b * row[1] for row in table) / (n - 1)

    return value


@program(x=array(lo=-1.0, hi=1.0), grid=array(2, 2, 2), modes="call values")
def array_without_axes_and_with_three(a, b):
    def value(x, grid):
        level = float(x)
        return a * level + b * grid.transpose(2, 0, 1)[1].sum() + a * np.einsum("ijj->", grid) + b * x.ndim * grid.size

    return value


# ------------------------------------------------------------------------------------------------ many at once


@program(args=record(mode=text("sum", "max"), n=whole(1, 3), x=reals(3), flip=flag()), modes="call values")
def everything_in_a_dict(w, b):
    def value(args):
        mode, n, xs, flip = (args[k] for k in ("mode", "n", "x", "flip"))
        xs = xs[:n] if not flip else [-x for x in xs[-n:]]
        terms = [w * x + b for x in xs]
        return sum(terms) if mode == "sum" else wengert.max(terms)

    return value


@program(a=real(), b=whole(), c=flag(), d=text("x", "y"), e=reals(2), f=array(2))
def six_kinds_at_once(w, v):
    def value(a, b, c, d, e, f):
        y = w * a + v * b
        y = y * e[0] if c else y + e[1]
        return y + float(f[b % 2]) * w if d == "x" else y - float(f.sum()) * v

    return value


def flattened(thing: Mapping | Sequence | float) -> Iterable[float]:
    """Yield the numbers of a nest, depth first."""
    if isinstance(thing, Mapping):
        for key in sorted(thing):
            yield from flattened(thing[key])
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            yield from flattened(item)
    else:
        yield float(thing)


@program(nest=record(b=reals(2), a=pair(real(), record(z=real(), y=whole(0, 3)))))
def a_nest_walked_by_type(w=weights(5)):
    def value(nest):
        numbers = list(flattened(nest))
        assert len(numbers) == 5
        return sum(a * x for a, x in zip(w, numbers))

    return value


@program(count=whole(1, 4), xs=reals(4), power=whole(1, 3), modes="call values map")
def a_list_of_results(w, b):
    def values(count, xs, power):
        return [w * x**power + b * i for i, x in enumerate(xs[:4])] + [w * count]

    return values


@program(x=real(-1.0, 1.0), twice=flag(), modes="call values map")
def two_results(w, b):
    def values(x, twice):
        y = w * x + b
        return [y, y * y] if twice else [y, y.tanh()]

    return values


@program(x=real(0.0, 1.0), zone=real(0.0, 1.0))
def numbers_compared_with_values(w, v):
    def value(x, zone):
        hits = 0
        for bound in (w, v):
            if x > bound or bound == zone or bound != x:
                hits += 1
        nearest = min((w, v), key=lambda p: abs(p.data - x))
        return hits * w + nearest * x + (zone if zone < w else v)

    return value
