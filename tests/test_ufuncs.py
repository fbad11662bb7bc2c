"""NumPy's ufuncs and their methods, of Values: the numbers of a plain loop over floats, or an error, and no crash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.errors import OperandError
from wengert.ops import ieee

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers outside a function's domain

A = (0.5, 0.25, 0.125)
UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and not f.signature}
BINARY = [name for name, f in UFUNCS.items() if (f.nin, f.nout) == (2, 1)]
KINDS: dict[str, Callable[..., Any]] = {
    "list": lambda *xs: [Value(x) for x in xs],
    "objects": lambda *xs: np.array([Value(x) for x in xs], object),
    "mixed": lambda *xs: [Value(xs[0]), *xs[1:]],
}
TARGETS: dict[str, Callable[[], Any]] = {
    "float64": lambda: np.full(3, 0.75),
    "float32": lambda: np.full(3, 0.75, np.float32),
    "int": lambda: np.full(3, 2),
    "objects": lambda: np.full(3, 0.75, object),
}
ORDER = {"equal", "not_equal", "logical_and", "logical_or", "logical_xor"}  # of objects: see test_numpy.py


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    if isinstance(x, np.ndarray):
        return plain(x.tolist())
    return x.data if isinstance(x, Value) else x


def tried(function: Callable[[], Any], expected: Callable[[], Any]) -> None:
    """Assert that a call gives the numbers of another, or raises an error that says why not."""
    try:
        found = plain(function())
    except (TypeError, ValueError, AttributeError) as error:  # OperandError is a TypeError
        told = str(error)
    except SystemError as error:  # `at` goes on after an error of a cast, and Python refuses a function's next result
        told = "" if ieee.COMPILED else str(error.__cause__)
    else:
        assert np.allclose(np.array(found, float), np.array(plain(expected()), float), rtol=1e-6, equal_nan=True)
        return
    assert len(told) > 10


def fold(f: Any, xs: Any, *start: float) -> Any:
    """The oracle of `reduce`: NumPy's own, of floats, takes another operand for some that do not associate."""
    result, *others = [*start, *xs]
    for x in others:
        result = float(f(result, x))
    return result


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in BINARY if name not in ORDER])
def test_at_of_a_target(name: str, kind: str, target: str) -> None:
    f = UFUNCS[name]

    def at(values: Any) -> Any:
        array = TARGETS[target]()
        f.at(array, [0, 1, 1], values)
        return array

    tried(lambda: at(KINDS[kind](*A)), lambda: at(list(A)))


MODES = {"none": nullcontext, "no_grad": wengert.no_grad, "anomaly": wengert.detect_anomaly}
NUMBERS = {  # which the results, Values, do not fit in: several, so that NumPy goes on after the first
    "values": lambda far: [Value(far + x) for x in A],
    "mixed": lambda far: [Value(far + A[0]), far + A[1], Value(far + A[2])],
    "the last": lambda far: [*(far + x for x in A[:2]), Value(far + A[2])],
    "of rounding": lambda far: [Value(far + 1e-310), Value(far + 1e-320), Value(-far)],
}
MAKE_VALUES = ["minimum", "maximum", "fmin", "fmax", "add", "subtract", "multiply", "divide", "power", "logical_and"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("values", NUMBERS)
@pytest.mark.parametrize("target", ["float64", "float32", "int"])
@pytest.mark.parametrize("name", MAKE_VALUES)
def test_at_of_an_array_of_numbers_says_what_to_write(name: str, target: str, values: str, mode: str) -> None:
    array = TARGETS[target]()
    with MODES[mode](), pytest.raises((OperandError, SystemError)) as raised:
        UFUNCS[name].at(array, [0, 1, 2], NUMBERS[values](3.0 if "max" in name else 0.0))
    error: Any = raised.value
    if isinstance(error, SystemError):  # a function of Python's own that NumPy called is refused its result
        assert not ieee.COMPILED
        error = error.__cause__
    assert type(error) is OperandError
    assert "make it one of objects, np.zeros(n, dtype=object)" in str(error)


@pytest.mark.parametrize("name", MAKE_VALUES)
def test_at_of_an_array_of_objects(name: str) -> None:
    array = np.full(3, 0.75, object)
    UFUNCS[name].at(array, [0, 1, 1], [Value(x) for x in A])
    expected = np.full(3, 0.75)
    UFUNCS[name].at(expected, [0, 1, 1], A)
    if name != "logical_and":  # of objects it is one of the two
        assert plain(array) == pytest.approx(expected.tolist(), rel=1e-15)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", UFUNCS)
def test_calls_with_out_and_where(name: str, kind: str, target: str) -> None:
    f = UFUNCS[name]
    for more in ({}, {"where": [True, False, True]}):

        def called(values: Any, more: Any = more) -> Any:
            return f(*[values] * f.nin, out=tuple(TARGETS[target]() for _ in range(f.nout)), **more)

        if name not in ORDER:
            tried(lambda called=called: called(KINDS[kind](*A)), lambda called=called: called(list(A)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", UFUNCS)
def test_calls_with_a_dtype(name: str, kind: str) -> None:
    f = UFUNCS[name]
    for dtype in (None, float, int, object, np.float32):
        if name not in ORDER:
            tried(lambda d=dtype: f(*[KINDS[kind](*A)] * f.nin, dtype=d), lambda d=dtype: f(*[list(A)] * f.nin))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in BINARY if name not in ORDER])
def test_methods(name: str, kind: str) -> None:
    f, x, a = UFUNCS[name], KINDS[kind](*A), list(A)
    tried(lambda: f.reduce(x), lambda: fold(f, a))
    tried(lambda: f.reduce(x, initial=0.5), lambda: fold(f, a, 0.5))
    tried(lambda: f.reduce(x, initial=0.5, where=[True, False, True]), lambda: fold(f, [a[0], a[2]], 0.5))
    tried(lambda: f.reduce(np.array([x, x], object), axis=1), lambda: [fold(f, a)] * 2)
    tried(lambda: f.reduce(x, out=np.zeros(())), lambda: fold(f, a))
    tried(lambda: f.reduce(x, dtype=float), lambda: fold(f, a))
    tried(lambda: f.accumulate(x), lambda: [fold(f, a[: n + 1]) for n in range(3)])
    tried(lambda: f.reduceat(x, [0, 2]), lambda: [fold(f, a[:2]), a[2]])
    tried(lambda: f.outer(x, x), lambda: [[float(f(p, q)) for q in a] for p in a])
    tried(lambda: f.outer(a, x), lambda: [[float(f(p, q)) for q in a] for p in a])
