"""`np.errstate` and `np.seterr`: what raises plain raises compiled, also where infinity or nan does not reach a result.

The oracle is the function as it stands.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert
from wengert import Value

W = Value(1.5)
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
@pytest.mark.parametrize("what", HIDDEN)
def test_errors_that_raise_from_the_first_call_on(what: str) -> None:
    of, right, wrong = HIDDEN[what]
    plain, compiled = program(of), wengert.compile(program(of))
    with np.errstate(all="raise"):
        for call in range(1, 12):
            x = wrong if call in (4, 9) else right * (1.0 + 0.001 * call)
            wanted, found = seen(plain, x), seen(compiled, x)
            assert same(wanted, found), (call, wanted, found)
    assert "runs uncompiled: np.seterr" in compiled.report()
    for call in range(12, 40):  # it is watched again
        assert same(seen(plain, right), seen(compiled, right)), call
    assert compiled._server.last.specializations


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
