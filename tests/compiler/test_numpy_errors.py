"""`np.errstate` and `np.seterr`: what raises plain raises compiled, also where infinity or nan does not reach a result.

The oracle is the function as it stands.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert
from wengert import Value

W = Value(1.5)
FACTOR, ARRAY, SCALAR = 1.0, np.array([1.0, 0.5]), np.float64(1.0)
HIDDEN: dict[str, tuple[Callable[[Any], Any], float, float]] = {  # what is computed, where it is right, where it raises
    "a quotient that is compared": (lambda x: 1.0 * (np.array([1.0, 2.0]) / x > 3.0), 2.0, 0.0),
    "a quotient of a scalar": (lambda x: 1.0 / (np.float64(2.0) / x), 2.0, 0.0),
    "an exponential below": (lambda x: 1.0 / (1.0 + np.exp(np.array([1.0, 0.5]) * x)), 2.0, 2000.0),
    "an exponential that is 0": (lambda x: np.exp(-np.array([1.0, 0.5]) * x), 2.0, 2000.0),
    "a product that is cut": (lambda x: np.minimum(np.array([1e200, 1.0]) * x, 7.0), 1e-190, 1e200),
    "a root that is not chosen": (
        lambda x: np.where(np.array([1.0, 2.0]) < 3.0, 2.0, np.sqrt(np.ones(2) * x)),
        2.0,
        -1.0,
    ),
    "a logarithm that is compared": (lambda x: 1.0 * (np.log(np.array([1.0, 2.0]) * x) > -9.0), 2.0, 0.0),
    "a sum that is cut": (lambda x: np.minimum(np.array([1e308, 1.0]) + x, 7.0), 2.0, 1.7e308),
    "a power of arrays": (lambda x: 1.0 / (np.array([10.0, 2.0]) ** x), 2.0, 500.0),
}
CALLED: dict[str, tuple[Callable[[float], Any], float, float]] = {  # the function, where it is right, where it raises
    "of a float, in math": (lambda x: W * math.atan(float(np.exp(FACTOR * x))), 2.0, 2000.0),
    "of a float, in NumPy": (lambda x: W * float(np.tanh(np.exp(FACTOR * x))), 2.0, 2000.0),
    "underflow of a float": (lambda x: W * (1.0 + float(np.exp(-FACTOR * x))), 2.0, 2000.0),
    "the sign": (lambda x: W * float(np.sign(np.exp(x))), 2.0, 2000.0),
    "the smaller one": (lambda x: W * min(3.0, float(np.exp(x))), 2.0, 2000.0),
    "a branch": (lambda x: W * (2.0 if np.exp(x) > 3.0 else 1.0), 2.0, 2000.0),
    "is it nan": (lambda x: W * float(np.isnan(np.log(x))), 2.0, -1.0),
    "a sum of a list": (lambda x: W / (1.0 + float(np.sum([1e307 * x, 1e307 * x, 1e308]))), 2.0, 9.0),
    "an inner product": (lambda x: W / (1.0 + float(np.inner([x * 1e200], [1e100]))), 2.0, 1e10),
    "of what is held": (lambda x: W * x / float(1.0 + (ARRAY * x)[0] ** 200), 2.0, 200.0),
    "of a scalar that is held": (lambda x: W / float(1.0 + SCALAR * x * 1e308), 1.0, 9.0),
    "in narrow floats": (lambda x: W / (1.0 + float(np.float32(x) * np.float32(1e38))), 2.0, 9.0),
}
SETTINGS = [{"all": "raise"}, {"divide": "raise"}, {"over": "raise", "under": "ignore"}, {"invalid": "raise"}]


def seen(f: Callable[[float], Any], x: float) -> Any:
    try:
        return getattr(found := f(x), "data", found)
    except FloatingPointError as error:
        return str(error)


def same(one: Any, other: Any) -> bool:
    return one == other if isinstance(one, str) or isinstance(other, str) else one == pytest.approx(other, rel=1e-12)


def program(of: Callable[[Any], Any]) -> Callable[[float], Any]:
    scale = np.array([1.0])
    return lambda x: W * 0.25 * x * float(np.sum(of(scale[0] * x)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", HIDDEN)
@pytest.mark.parametrize("setting", SETTINGS, ids=[next(iter(each)) for each in SETTINGS])
def test_an_error_that_is_hidden_is_raised(what: str, setting: dict[str, Any]) -> None:
    of, right, wrong = HIDDEN[what]
    plain, compiled = program(of), wengert.compile(program(of))
    for call in range(1, 24):
        x = wrong if call in (7, 8, 12, 16, 20) else right * (1.0 + 0.001 * call)
        with np.errstate(**setting) if call in (6, 7, 11, 12, 13, 20) else np.errstate(under="warn"):
            wanted, found = seen(plain, x), seen(compiled, x)
        assert same(wanted, found), (call, wanted, found)
    assert any(each.checked for each in compiled._server.last.specializations)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", CALLED)
def test_an_error_of_a_function_of_numpy_is_raised(what: str) -> None:
    plain, right, wrong = CALLED[what]
    compiled = wengert.compile(plain)
    for call in range(1, 20):
        x = wrong if call in (7, 8, 12) else right * (1.0 + 0.001 * call)
        with np.errstate(all="raise") if call in (6, 7, 11, 12, 13) else np.errstate(under="warn"):
            wanted, found = seen(plain, x), seen(compiled, x)
        assert same(wanted, found), (call, wanted, found)


@pytest.mark.filterwarnings("ignore")
def test_what_is_computed_while_it_is_recorded_is_computed_at_each_call() -> None:
    plain = lambda x: W * x / (1.0 + float(np.exp(1000.0)))  # noqa: E731
    compiled = wengert.compile(plain)
    for call in range(1, 16):
        with np.errstate(over="raise" if call in (6, 9) else "ignore"):
            assert same(seen(plain, 2.0), seen(compiled, 2.0)), call
    assert compiled._server.last.specializations


def test_errors_that_the_function_itself_lets_raise() -> None:
    def careful(x: float) -> Any:
        try:
            with np.errstate(divide="raise"):
                quotient = 1.0 / (ARRAY * x)
        except FloatingPointError:
            return W * -1.0
        return W * float(1.0 / (1.0 + quotient[0]))

    compiled = wengert.compile(careful)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for x in [1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 2.0, 0.0]:
            result, wanted = compiled(x), careful(x)
            grads = []
            for each in (result, wanted):
                W.grad = 0.0
                each.backward()
                grads.append(W.grad)
            assert result.data == pytest.approx(wanted.data)
            assert grads[0] == pytest.approx(grads[1])
    assert "careful runs uncompiled: it lets numpy.errstate do more than warn" in str(said[0].message)


def test_errors_that_the_function_ignores_are_compiled() -> None:
    @wengert.compile
    def quotient(x: float) -> Any:
        with np.errstate(divide="ignore", invalid="warn"):
            return W * float(np.minimum(ARRAY / x, 7.0)[0])

    for k in range(1, 9):
        assert quotient(0.5 * k).data == pytest.approx(1.5 * min(2.0 / k, 7.0))
    assert quotient(0.0).data == pytest.approx(10.5)
    assert quotient._server.last.specializations


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", HIDDEN)
def test_errors_that_raise_from_the_first_call_on(what: str) -> None:
    of, right, wrong = HIDDEN[what]
    plain, compiled = program(of), wengert.compile(program(of))
    with np.errstate(all="raise"):
        for call in range(1, 12):
            x = wrong if call in (4, 9) else right * (1.0 + 0.001 * call)
            wanted, found = seen(plain, x), seen(compiled, x)
            assert same(wanted, found), (call, wanted, found)
    assert "the function itself served 11 calls while np.seterr or np.errstate lets NumPy do more" in compiled.report()
    for call in range(12, 16):  # it is recorded as soon as NumPy warns again
        assert same(seen(plain, right), seen(compiled, right)), call
    assert compiled._server.last.specializations
    assert "uncompiled" not in compiled.report()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["map", "mean", "sum"])
def test_an_error_in_a_batch(how: str) -> None:
    of, right, wrong = HIDDEN["an exponential below"]
    compiled = wengert.compile(program(of))
    batch = [right * (1.0 + 0.01 * n) for n in range(9)]
    for _ in range(6):
        getattr(compiled, how)(batch)
    getattr(compiled, how)([*batch, wrong])
    for k in range(6):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow"):
            getattr(compiled, how)([*batch[:k], wrong])


@pytest.mark.filterwarnings("ignore")
def test_a_call_for_each_error_is_made() -> None:
    made: list[str] = []
    of, right, wrong = HIDDEN["an exponential below"]
    compiled = wengert.compile(program(of))
    for _ in range(6):
        compiled(right)
    with np.errstate(over="call", call=lambda kind, flag: made.append(kind)):
        for _ in range(3):
            compiled(wrong)
    assert made == ["overflow"] * 3


def test_functions_of_plain_numbers_do_not_ask() -> None:
    """Python's own arithmetic, and that of Values, takes no notice of NumPy."""
    by_python, by_values = wengert.compile(lambda x: W * (x / 3.0)), wengert.compile(lambda xs: W * xs[0] * xs[1])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for _, x in itertools.product(range(6), [0.5]):
            assert by_python(x).data == pytest.approx(0.25)
            assert by_values(np.array([2.0, 0.5])).data == pytest.approx(1.5)
    assert by_python._server.last.specializations
    assert by_values._server.last.specializations
