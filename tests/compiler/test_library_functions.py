"""Functions of the standard library and of NumPy are recorded, and give what they give in plain functions."""

from __future__ import annotations

import contextlib
import fractions
import functools
import hashlib
import math
import random
import statistics
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, difference, lifted, same, specializations, warned
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed is decided in Python

W, PARAMETERS = Value(0.7), [Value(0.1), Value(0.5), Value(-0.4)]
ROWS = [[0.3, -1.2, 2.5], [0.2, -0.7, 1.5], [0.1, -0.8, 0.9], [0.25, -0.75, 4.0]]  # of one order
Function = Callable[[Any], Any]


class Settings:
    scale = 1.0


SETTINGS = Settings()
SETTINGS.scale = 1.5


@contextlib.contextmanager
def scaled(by: float) -> Iterator[None]:
    before = SETTINGS.scale
    SETTINGS.scale = by
    try:
        yield
    finally:
        SETTINGS.scale = before


def in_a_context(xs: Any) -> Any:
    with scaled(3.0):
        return W * xs[0] * SETTINGS.scale


@functools.singledispatch
def size(x: Any) -> Any:
    return W * x


@size.register
def _(x: list) -> Any:  # type: ignore[type-arg]
    return W * sum(x)


class Base:
    def __init__(self, k: Any) -> None:
        self.k = k

    def value(self, x: Any) -> Any:
        return self.k * x


class Explicit(Base):
    """It names its class, as `fractions.Fraction` does."""

    def __init__(self, k: Any) -> None:
        super(Explicit, self).__init__(k * 2.0)  # noqa: UP008

    def value(self, x: Any) -> Any:
        return super(Explicit, self).value(x) + super().value(1.0)  # noqa: UP008


OBJECT = Explicit(3.0)


class Terms(list):  # type: ignore[type-arg]
    """A subclass of list, which is not cloned: its generators close over what is an argument."""

    def times(self, x: Any) -> Any:
        return sum(x * term for term in self)


TERMS = Terms([2.0, 0.5])


def md5(text: str) -> str:
    made = hashlib.md5(usedforsecurity=False)
    made.update(text.encode())
    return made.hexdigest()


def into(xs: Any) -> Any:
    y = np.empty(3)
    np.multiply(xs, 2.0, out=y)
    return W * y.sum()


def in_place(xs: Any) -> Any:
    y = np.zeros(3)
    y += xs
    y *= 2.0
    np.exp(y, out=y)
    return W * y.sum()


def into_itself(xs: Any) -> Any:
    y = np.zeros(3)
    z = np.add(xs, 1.0, out=y)
    return W * z.sum() * (1.0 if z is y else 2.0)


@functools.lru_cache
def is_math(library: Any) -> bool:
    return bool(library.__name__ == "math")


class Scale:
    of = staticmethod(math.exp)


OF_LISTS: dict[str, Function] = {
    "a cached function of a module": lambda xs: W * math.exp(xs[0]) if is_math(math) else xs[0],
    "a static method written in C": lambda xs: W * Scale.of(xs[0]) + Scale().of(xs[1]),
    "remainder": lambda xs: W * math.remainder(7.0 * xs[0], 0.9) + math.remainder(2.1, xs[2]),
    "max of a generator with a key": lambda xs: W * max((x for x in xs), key=lambda x: -x * x),
    "min of a generator with a key": lambda xs: W * min((x for x in xs), key=abs),
    "max of a generator of Values": lambda xs: max(
        (p * x for p, x in zip(PARAMETERS, xs, strict=True)), key=lambda t: t.data
    ),
    "max with a default": lambda xs: W * max((x for x in xs), default=0.0, key=abs),
    "max of a generator": lambda xs: W * max(x * x for x in xs),
    "sorted generator": lambda xs: W * sorted((x for x in xs), key=lambda x: -x)[1],
    "sum of a generator": lambda xs: W * sum(x * x for x in xs),
    "any": lambda xs: W if any(x > 20 for x in xs) else W * xs[0],
    "all": lambda xs: W if all(x > -20 for x in xs) else W * xs[0],
    "mean": lambda xs: W * statistics.mean(xs),
    "mean with an integer": lambda xs: W * statistics.mean([*xs, 2]),
    "fmean": lambda xs: W * statistics.fmean(xs),
    "fmean of a generator": lambda xs: W * statistics.fmean(2.0 * x for x in xs),
    "stdev": lambda xs: W * statistics.stdev(xs),
    "variance": lambda xs: W * statistics.variance(xs),
    "pstdev": lambda xs: W * statistics.pstdev(xs),
    "pvariance": lambda xs: W * statistics.pvariance(xs),
    "median": lambda xs: W * statistics.median(xs),
    "variance about a number": lambda xs: W * statistics.variance(xs, xs[0]) + statistics.pstdev(xs, 1.0),
    "fmean with weights": lambda xs: W * statistics.fmean(xs, [1, 2.5, abs(xs[0])]) + statistics.fmean(xs, xs),
    "harmonic_mean": lambda xs: W * statistics.harmonic_mean([math.exp(x) for x in xs]),
    "harmonic_mean with weights": lambda xs: W * statistics.harmonic_mean([math.exp(x) for x in xs], [1, 2.5, 0.5]),
    "NormalDist.from_samples": lambda xs: W * statistics.NormalDist.from_samples(xs).cdf(xs[0]),
    "NormalDist.inv_cdf": lambda xs: W * statistics.NormalDist(xs[0], 2.0).inv_cdf(1.0 / (1.0 + math.exp(xs[1]))),
    "NormalDist.quantiles": lambda xs: W * sum(statistics.NormalDist(xs[0], math.exp(xs[1])).quantiles(n=5)),
    "statistics without a parameter": lambda xs: [statistics.mean(xs), statistics.stdev(xs), statistics.fmean(xs)],
    "fsum": lambda xs: W * math.fsum(xs),
    "singledispatch": size,
    "Fraction": lambda xs: W * xs[0] * fractions.Fraction(1, 3) + float(fractions.Fraction(2, 7) + 1),
    "a class that super names": lambda xs: W * Explicit(xs[0]).value(xs[1]) + OBJECT.value(xs[2]),
    "a setting that is restored": in_a_context,
    "hashes": lambda xs: W * xs[0] * (hashlib.sha256(b"a").digest()[0] + zlib.crc32(b"b") % 7 + int(md5("c")[0], 16)),
    "a generator in an object that has no proxy": lambda xs: W * TERMS.times(xs[1]),
}
OF_ARRAYS: dict[str, Function] = {
    "out": into,
    "in place": in_place,
    "out returned": into_itself,
    "out and where": lambda xs: W * np.log(xs, out=np.zeros_like(xs), where=xs > 0).sum(),
    "out of a reduction": lambda xs: W * np.cumsum(xs, out=np.empty(3)).sum(),
    "out of a method": lambda xs: W * xs.clip(0.0, 1.0, out=np.empty(3)).sum(),
    "divmod": lambda xs: W * (np.divmod(xs, 0.5)[0] + np.divmod(xs, 0.5)[1]).sum(),
    "item": lambda xs: W * xs.sum().item() + xs[0].item() + xs.item(1),
    "item of a mean": lambda xs: W * np.exp(xs).mean().item(),
    "item of a number": lambda xs: W * np.exp(float(xs[0])).item(),
    "item of an array without axes": lambda xs: W * np.array(float(xs[0])).item(),
    "item of a list's": lambda xs: W * np.array(xs.tolist()).max().item() + np.array([float(xs[0]), 2])[1].item(),
    "argmax": lambda xs: W * xs[np.argmax(xs)] + xs[xs.argmin()],
    "argmax of an axis": lambda xs: W * xs[np.argmax(xs.reshape(3, 1), axis=0)][0],
    "argsort": lambda xs: W * xs[np.argsort(xs)][0] + xs[xs.argsort()[1] - 1],
    "percentile": lambda xs: W * np.percentile(xs, 30),
    "quantile": lambda xs: W * np.quantile(xs, 0.8) + np.quantile(xs, [0.1, 0.5]).sum(),
    "median": lambda xs: W * np.median(xs),
    "histogram": lambda xs: W * xs[0] * np.histogram(np.arange(3.0), bins=3)[0][0],
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_functions_of_lists(name: str) -> None:
    check(OF_LISTS[name], ROWS)


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_functions_of_arrays(name: str) -> None:
    check(OF_ARRAYS[name], [np.array(row) for row in ROWS])


def check(function: Function, rows: list[Any]) -> None:
    """Value, type and gradient are the function's, in calls and in a batch, and one recording serves all rows."""
    compiled = wengert.compile(function)
    said = warned(*[lambda row=row: beside(compiled(row), function(row)) for row in rows * 3])  # type: ignore[misc]
    assert said == []
    lifted(compiled)
    assert specializations(compiled) == [1]
    assert difference(compiled.map(rows), [numbers(function(row)) for row in rows]) < CLOSE
    lifted(compiled)


def numbers(x: Any) -> Any:
    return x.data if isinstance(x, Value) else x


def beside(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert list(map(type, got)) == list(map(type, want))
        assert got == pytest.approx(want, rel=1e-13)
    else:
        assert isinstance(got, Value)
        same(got, want, [W, *PARAMETERS])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_sums_that_round_once_have_the_same_bits(count: int) -> None:
    """Also where terms cancel to the last digit; where rounding is not certain the function itself runs."""
    rng = random.Random(count)
    rows = [[rng.gauss(0.0, 1.0) * 10.0 ** rng.randint(-12, 12) for _ in range(count)] for _ in range(30)]
    rows += [[0.1] * count, [1e16 * (-1.0) ** k if k % 3 else 1.0 for k in range(count)]]
    rows += [[*row[: count // 2], *[-x for x in row[: count // 2]], 2.0**-60][:count] for row in rows[:8]]
    rows += [[1.0, 2.0**-53, 2.0**-106, *[0.0] * count][:count], [1e100, 1e50, 1.0, -1e50, -1e100, *[0.0] * 40][:count]]
    for function in (math.fsum, statistics.fmean):
        compiled, mapped = wengert.compile(lambda xs, f=function: f(xs)), wengert.compile(lambda xs, f=function: f(xs))
        want = [function(row) for row in rows]
        assert [compiled(row) for row in rows * 2] == want * 2
        lifted(compiled)
        assert mapped.map(rows).tolist() == want


@pytest.mark.parametrize("name", ["variance", "stdev", "pvariance", "pstdev", "mean"])
def test_statistics_of_numbers_that_are_nearly_equal(name: str) -> None:
    """Their digits cancel; those that are equal vary by 0.0 exactly."""
    function = getattr(statistics, name)
    rows = [[0.1] * 5, [1e8 + 0.1 * k for k in range(5)], [1.0 + 2.0**-50 * k for k in range(5)], [7.0] * 5]
    rows += [[1e200, -1e200, 3.0, 1.0, 2.0], [1e-200, 2e-200, 3e-200, 0.0, 1e-200], [1.0, 2.0, 3.0, 4.0, 6.0]]
    compiled = wengert.compile(lambda xs: function(xs))
    for row in rows * 3:
        with contextlib.suppress(OverflowError):
            want = function(row)
            assert compiled(row) == pytest.approx(want, rel=1e-12)
            assert type(compiled(row)) is type(want)


@pytest.mark.parametrize("name", ["variance", "stdev", "pvariance", "pstdev", "mean", "fmean", "harmonic_mean"])
def test_statistics_of_ints_and_floats(name: str) -> None:
    """They ask each number for its type: which are ints is not part of a signature."""
    function = getattr(statistics, name)
    compiled = wengert.compile(lambda xs: function(xs))
    several = [[1.5, 2, 4], [1, 2.5, 4], [1.5, 2, 4.0]] * 2
    with pytest.warns(UserWarning, match="depends on which numbers in a list are ints and which floats: pass floats"):
        got = [compiled(numbers) for numbers in several]
    want = [function(numbers) for numbers in several]
    assert [(x, type(x)) for x in got] == [(x, type(x)) for x in want]


@pytest.mark.parametrize("numbers", [np.array(ROWS[0]), [np.float64(x) for x in ROWS[0]], [1, 2, 4], []])
@pytest.mark.parametrize("name", ["variance", "stdev", "pvariance", "pstdev", "mean", "fmean", "harmonic_mean"])
def test_statistics_have_the_type_of_the_plain_function(name: str, numbers: Any) -> None:
    function = getattr(statistics, name)
    compiled = wengert.compile(lambda xs: [function(xs), xs[0] * 1.0])
    for _ in range(4):
        try:
            want = [function(numbers), numbers[0] * 1.0]
        except statistics.StatisticsError as error:
            with pytest.raises(type(error), match=str(error)):
                compiled(numbers)
            continue
        got = compiled(numbers)
        assert list(map(type, got)) == list(map(type, want))
        assert got == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("q", [0, 1, 5, 30, 49.9, 50, 75, 99, 100])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_quantiles_have_the_same_bits(count: int, q: float) -> None:
    rng = np.random.default_rng(count)
    order = np.sort(rng.normal(size=count))
    rows = [order * (k + 1.0) + k for k in range(6)]
    for function in (lambda xs: np.percentile(xs, q), lambda xs: np.quantile(xs, q / 100)):
        compiled = wengert.compile(function)
        assert [compiled(row) for row in rows] == [function(row) for row in rows]
        lifted(compiled)
    broken = [*order[1:], math.nan]
    assert math.isnan(compiled(np.array(broken))) is math.isnan(function(np.array(broken)))


def test_a_function_where_a_mask_is_true_has_the_gradients_of_values() -> None:
    def plain(xs: Any) -> Any:
        a = np.array([p * x for p, x in zip(PARAMETERS, xs, strict=True)])
        return np.log(a, out=np.array([W * 0.0] * 3), where=a > 0).sum()

    compiled = wengert.compile(plain)
    for row in ([1.0, 2.0, -3.0], [1.0, -2.0, -3.0]) * 5:
        same(compiled(row), plain(row), [W, *PARAMETERS])
    lifted(compiled)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    "kind", [int, np.int64, lambda n: np.array([n, 2 * n + 1]), float], ids=["int", "int64", "array", "float"]
)
@pytest.mark.parametrize(
    "name", sorted(n for n, f in vars(np).items() if isinstance(f, np.ufunc) and (f.nin, f.nout) == (1, 1))
)
def test_a_function_of_integers_gives_what_numpy_gives(name: str, kind: Any, backend: str) -> None:
    """Recorded where floats and integers give the same, as 1 and -1 do for most, and called for others."""
    w, ufunc = Value(0.75), getattr(np, name)
    compiled = wengert.compile(lambda x: w * np.ravel(ufunc(x))[0], backend=backend)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n in [1, 1, -1, -1, 1, 2, -3, 5, 4, 3]:
            try:
                wanted = 0.75 * float(np.ravel(ufunc(kind(n)))[0])
            except TypeError:
                return  # not of these numbers
            assert compiled(kind(n)).data == pytest.approx(wanted, rel=1e-12, nan_ok=True), n


@pytest.mark.sampled(4)
@pytest.mark.parametrize("other", [2, 2.5, -3, 0, True, np.int64(2), np.array([2, 3])], ids=repr)
@pytest.mark.parametrize("kind", [int, np.int64, lambda n: [n, 3], float], ids=["int", "int64", "list", "float"])
@pytest.mark.parametrize("name", ["power", "float_power", "divide", "floor_divide", "remainder", "fmod", "left_shift"])
def test_a_function_of_two_integers_gives_what_numpy_gives(name: str, kind: Any, other: Any) -> None:
    """NumPy's integers have 64 bits and may be divided by 0; Python's power of 2 to one of them would not end."""
    w, ufunc = Value(0.75), getattr(np, name)

    def function(x: Any) -> Any:
        result = np.ravel(ufunc(other, x))
        return [w * item for item in np.concatenate([result, np.ravel(ufunc(x, other))])]

    def outcome(f: Any, x: Any) -> Any:
        try:
            return [getattr(item, "data", item) for item in f(x)]
        except (TypeError, ValueError) as error:  # of these numbers
            return str(error)

    compiled = wengert.compile(function, backend="numpy")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # some of it runs uncompiled
        for n in [1, 1, 2, 2, 3, 0, -1, -2, 5, 2**31, 2**53 + 1, 10**17]:
            got, want = outcome(compiled, kind(n)), outcome(function, kind(n))
            assert got == (want if isinstance(want, str) else pytest.approx(want, rel=1e-12, abs=0, nan_ok=True)), n
