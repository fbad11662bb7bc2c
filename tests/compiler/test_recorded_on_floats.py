"""A function that is differentiated runs with Values, and is recorded as `compile` records the function itself: with
floats. What tells one from the other is recorded with Values.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")

POINTS = (0.7, -0.4, 1.3, 2.0, 0.0, -1.6, 0.7, 5.0)


def specializations(compiled: Any) -> int:
    """How many there are, with the one that the next call compiles."""
    entries = compiled._server.entries.values()
    return sum([len(entry.specializations) + (entry.candidate is not None) for entry in entries])


# -- one program for what is one program of the function ---------------------------------------------------------------


def payoff(x: Any) -> Any:
    return max(x - 0.5, 0.0) * 2.0 + min(x * x, 1.0, 3.0)


def steps(x: Any) -> Any:
    y = 0.0
    for n in range(6):
        y = max(0.9 * y + x - 0.2 * n, 0.0)
    return min(y, 4.0)


def of_arrays(x: Any) -> Any:
    row = np.array([x, 2.0 * x, x * x])
    return np.where(row > 0.3, row**2, -row).sum() + np.clip(row, -1.0, 1.0).sum() + np.maximum(row, 0.4).sum()


@pytest.mark.parametrize("function", [payoff, steps, of_arrays])
def test_derivatives_have_the_specializations_of_the_function(function: Callable[..., Any]) -> None:
    compiled = wengert.compile(function, backend="numpy")
    several = [
        wengert.compile(each, backend="numpy")
        for each in (wengert.grad(function), wengert.value_and_grad(function), wengert.grad(wengert.grad(function)))
    ]
    for x in POINTS:
        compiled(x)
        for derivative in several:
            want = derivative.function(x)
            assert derivative(x) == pytest.approx(want, rel=1e-12, abs=1e-12)
    assert specializations(compiled) == 1
    assert [specializations(each) for each in several] == [1, 1, 1]


# -- what tells floats from Values -------------------------------------------------------------------------------------


class Plain:
    """Holds a number."""

    def __init__(self, x: Any) -> None:
        self.x = x


def caught(function: Callable[[], Any], other: Any, *errors: type[Exception]) -> Any:
    try:
        return function()
    except errors:
        return other


TELLING: dict[str, Callable[[Any], Any]] = {
    "isinstance": lambda x: x * 2.0 if isinstance(x, float) else x * 3.0,
    "not isinstance": lambda x: x * 2.0 if not isinstance(x, Value) else x * 3.0,
    "isinstance of several": lambda x: x * 2.0 if isinstance(x, (int, float)) else x * x,
    "of what is computed": lambda x: x * 2.0 if isinstance(x * x + 1.0, float) else x * 3.0,
    "type": lambda x: x * 2.0 if type(x) is float else x * 3.0,
    "name of the type": lambda x: x * float(len(type(x).__name__)),
    "__class__": lambda x: x * 2.0 if x.__class__ is float else x * 3.0,
    "issubclass": lambda x: x * 2.0 if issubclass(type(x), float) else x * 3.0,
    "match": lambda x: matched(x),
    "hasattr": lambda x: x * 2.0 if not hasattr(x, "backward") else x * 3.0,
    "hasattr of a float": lambda x: x * 2.0 if hasattr(x, "is_integer") else x * 3.0,
    "getattr": lambda x: getattr(x, "data", 2.0 * x) * x,
    "method of a Value": lambda x: x.tanh() + x.exp(),
    "data": lambda x: x.data * x,
    "detach": lambda x: x.detach() * x,
    "caught, no method": lambda x: caught(lambda: x.tanh(), 5.0 * x, AttributeError),
    "caught, no data": lambda x: x * caught(lambda: x.data, 5.0, AttributeError),
    "caught, no float": lambda x: caught(lambda: math.exp(x), x * x, TypeError),
    "caught, float()": lambda x: caught(lambda: float(x) * x, x * x * x, TypeError),
    "caught, an array of floats": lambda x: caught(lambda: np.array([x], float)[0] * x, x * x * x, TypeError),
    "copy": lambda x: copy.copy(x) * x,
    "deepcopy": lambda x: copy.deepcopy(x) * x,
    "deepcopy of a list": lambda x: copy.deepcopy([x])[0] * x,
    "deepcopy of an object": lambda x: copy.deepcopy(Plain(x)).x * x,
    "isscalar": lambda x: x * 2.0 if np.isscalar(x) else x * 3.0,
    "dtype": lambda x: x * 2.0 if np.array([x, x]).dtype == float else x * 3.0,
    "kind of dtype": lambda x: x * 2.0 if np.asarray(x).dtype.kind == "f" else x * 3.0,
    "issubdtype": lambda x: x * 2.0 if np.issubdtype(np.array([x]).dtype, np.floating) else x * 3.0,
    "no gradient": lambda x: without_gradient(x) * x,
    "stopped": lambda x: wengert.stop_gradient(x) * x,
    "text with digits": lambda x: x * float(f"{x:.3f}"),
    "a key": lambda x: x * float({x: 2.0, 1.0: 3.0}.get(1.3, 4.0)),
    "callable": lambda x: x * 2.0 if callable(getattr(x, "relu", None)) else x * 3.0,
    "dir": lambda x: x * float("relu" in dir(x)),
    "equal and not the same": lambda x: x * 2.0 if x == 0.7 else x * 3.0,
    "in": lambda x: x * 2.0 if x in (0.7, 1.3) else x * 3.0,
    "hash": lambda x: x * 2.0 if hash(x) == hash(0.7) else x * 3.0,
    "sorted": lambda x: sorted([x, 1.0, 0.5 * x])[1] * x,
    "round": lambda x: caught(lambda: round(x, 1) * x, x * x, TypeError, AttributeError),
    "__float__": lambda x: x * 2.0 if hasattr(x, "__float__") else x * 3.0,
    "try every type": lambda x: x * (2.0 if type(x) in {float, int} else 3.0),
    "by a dict of types": lambda x: {float: 2.0, Value: 3.0}[type(x)] * x,
    "a root of a negative number": lambda x: (x - 3.0) ** 2 * (x + 2.0) ** 0.5,
}


def matched(x: Any) -> Any:
    match x:
        case float():
            return x * 2.0
        case Value():
            return x * 3.0
    return x


def without_gradient(x: Any) -> Any:
    with wengert.no_grad():
        return x * x


@pytest.mark.parametrize("name", TELLING)
def test_compiled_derivatives_are_those_of_the_run_with_values(name: str) -> None:
    function = TELLING[name]
    rows = wengert.jacobian(lambda x: [function(x)])
    for derivative in (wengert.grad(function), wengert.value_and_grad(function), rows):
        compiled = wengert.compile(derivative)
        for x in POINTS:
            try:
                want = derivative(x)
            except Exception as error:
                with pytest.raises(type(error)):
                    compiled(x)
            else:
                assert compiled(x) == pytest.approx(want, rel=1e-9, abs=1e-12, nan_ok=True), x


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (lambda x: 1.0 / x, 0.0),
        (lambda x: x**-2.0, 0.0),
        (lambda x: (x - 2.0) ** 0.5, 0.5),
        (lambda x: x**3.0, 1e200),
        (lambda x: (x / x) + 1.0, 0.0),
        (lambda x: wengert.exp(x) * 2.0, 1000.0),
        (lambda x: wengert.log(x), -1.0),
    ],
)
def test_arithmetic_of_values_raises_no_errors(function: Callable[..., Any], at: float) -> None:
    """So that of the program raises none, nor has it guards for that."""
    gradient = wengert.grad(function)
    compiled = wengert.compile(gradient, backend="numpy")
    for x in (1.5, 2.5, at, 2.0, at):
        assert compiled(x) == pytest.approx(gradient(x), nan_ok=True)
    assert "guard" not in compiled.report()


def test_numbers_that_are_not_differentiated_raise_the_errors_of_python() -> None:
    gradient = wengert.grad(lambda x, k: x / (1.0 / k) + x * k**-1.0)
    compiled = wengert.compile(gradient)
    for _ in range(3):
        assert compiled(2.0, 4.0) == pytest.approx(4.25)
    for derivative in (gradient, compiled):
        with pytest.raises(ZeroDivisionError):
            derivative(2.0, 0.0)


TIES: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda x, y: max(x, y),
    "max of three": lambda x, y: max(0.5 * y, x, y),
    "max of a number": lambda x, y: max(x, 0.0) * y,
    "max after a number": lambda x, y: max(0.0, x) * y,
    "max with an int": lambda x, y: max(x, 0) * y,
    "min": lambda x, y: min(y, x) * y,
    "min of a list": lambda x, y: min([y, x, y]),
    "of many": lambda x, y: max([0.1 * n * x for n in range(9)] + [0.8 * y]),
    "np.maximum": lambda x, y: np.maximum(np.array([x, y]), np.array([y, x]))[0],
    "np.minimum": lambda x, y: np.minimum(np.array([x, y]), np.array([y, 0.0]))[1],
    "np.maximum of numbers": lambda x, y: np.maximum(x, y),
    "np.fmax": lambda x, y: np.fmax(np.array([x, y]), 0.0).sum(),
    "np.max": lambda x, y: np.max(np.array([x, y, 0.5 * y])) * y,
    "np.max of rows": lambda x, y: np.array([[x, y], [y, x]]).max(axis=0)[1],
    "np.min of many": lambda x, y: np.array([x, *[y * (1.0 + n) for n in range(9)]]).min(),
    "np.max of many rows": lambda x, y: np.array([[x, y] * 5, [y, x] * 5]).max(axis=1)[1],
    "np.clip": lambda x, y: np.clip(np.array([x, y]), 0.0, 1.0).sum(),
    "np.clip by numbers": lambda x, y: np.clip(np.array([x]), y, 2.0)[0],
    "wengert.maximum": lambda x, y: wengert.maximum(x, y) + wengert.max([x, y]) + wengert.clip(x, 0.0, y),
    "abs": lambda x, y: abs(x - y) * y,
    "sorted": lambda x, y: sorted([x, y, 0.0])[1] * y,
    "relu": lambda x, y: wengert.relu(x) + wengert.relu(x - y),
}


@pytest.mark.parametrize("name", TIES)
def test_at_a_tie_the_derivative_is_that_of_the_number_that_python_chooses(name: str) -> None:
    gradient = wengert.grad(TIES[name], (0, 1))
    for compiled in (wengert.compile(gradient), wengert.compile(gradient, backend="numpy")):
        pairs = [(0.5, 0.7), (0.7, 0.5), (0.8, 0.3), (0.6, 0.6), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (-0.4, 1.0)]
        for x, y in pairs * 3:
            assert compiled(x, y) == pytest.approx(gradient(x, y)), (x, y)


# -- functions that catch errors which Values do not raise -------------------------------------------------------------


def sinc(x: Any) -> Any:
    try:
        return wengert.sin(x) / x
    except ZeroDivisionError:
        return 1.0


def capped(x: Any) -> Any:
    try:
        r = 1.0 / x
    except ArithmeticError:
        return x * 3.0
    return wengert.exp(-r)


def share(x: Any, of: Any) -> Any:
    try:
        return x / of
    except ZeroDivisionError:
        return 5.0


def by_another(x: Any) -> Any:
    return share(1.0, x) * x + x


def in_a_loop(x: Any) -> Any:
    total = x * 0.5
    for n in range(3):
        try:
            total = total + 1.0 / (x - n)
        except ZeroDivisionError:
            continue
    return total


def at_last(x: Any) -> Any:
    try:
        y = x * x
    finally:
        z = x + 1.0
    return y * z


CATCHING = {
    sinc: (0.0, 1.0, 0.0),
    capped: (0.0, 0.0, 3.0),
    by_another: (0.0, 0.0, 6.0),
    in_a_loop: (1.0, 0.5 + 1.0 - 1.0, 0.5 - 1.0 - 1.0),
    at_last: (0.0, 0.0, 0.0),
}


@pytest.mark.parametrize("function", CATCHING)
def test_the_value_is_that_of_the_function_on_numbers(function: Callable[..., Any]) -> None:
    at, value, slope = CATCHING[function]
    assert function(at) == value
    for both in (wengert.value_and_grad(function), wengert.compile(wengert.value_and_grad(function))):
        for x in (2.5, at, 0.7, at, at, 3.1, at):
            got = both(x)
            assert got[0] == pytest.approx(function(x), rel=1e-14)
            near = (function(x + 1e-6) - function(x - 1e-6)) / 2e-6
            assert got[1] == pytest.approx(slope if x == at else near, rel=1e-6)
    pattern = [wengert.compile(wengert.grad(function)), wengert.grad(function)]
    for _ in range(4):
        assert [each(at) for each in pattern] == pytest.approx([slope, slope])


def test_an_error_that_is_not_caught_gives_what_values_give() -> None:
    def looks_up(x: Any) -> Any:
        try:
            k = {}["a"]
        except KeyError:
            k = 2.0
        return k / x

    for gradient in (wengert.grad(looks_up), wengert.compile(wengert.grad(looks_up))):
        for _ in range(3):
            assert gradient(0.0) == -math.inf
            assert gradient(2.0) == -0.5


# -- by chance ---------------------------------------------------------------------------------------------------------

PARTS = [
    "{a} = max({b}, {k})", "{a} = min({b}, {a} * {k})", "{a} = {b} if {b} > {k} else {a}",
    "{a} = {b} / ({a} * {a} + 1.0)", "{a} = abs({b} - {k})", "{a} = {b} * {k} + {a}", "{a} = max([{a}, {b}, {k}])",
    "{a} = sorted([{a}, {b}])[0]", "{a} = wengert.tanh({b})",
    "{a} = {b}.tanh() if isinstance({b}, Value) else math.tanh({b})",
    "{a} = {b} * (2.0 if isinstance({b}, float) else 3.0)", "{a} = float(np.clip({k}, -1.0, 1.0)) * {b}",
    "{a} = np.where({b} > {k}, {a}, {b}).sum()", "{a} = wengert.where({b} > {k}, {a} * {b}, {a} - {b})",
    "{a} = {b} - {b}.data if hasattr({b}, 'data') else {b} * 7.0", "{a} = {a} + ({b} > {k})",
]  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(160))
def test_programs_by_chance(seed: int) -> None:
    rng = random.Random(seed)
    lines = ["def program(x, y):"]
    for _ in range(rng.randrange(2, 9)):
        a, b = rng.choice("xy"), rng.choice("xy")
        lines.append("    " + rng.choice(PARTS).format(a=a, b=b, k=rng.choice(["0.3", "-0.5", "1.1", "0.0"])))
    lines.append("    return x * y + x - 0.5 * y")
    names: dict[str, Any] = {"wengert": wengert, "Value": Value, "math": math, "np": np}
    exec("\n".join(lines), names)
    gradient = wengert.value_and_grad(names["program"], (0, 1))
    compiled = wengert.compile(gradient)
    for _ in range(14):
        x, y = rng.choice([rng.uniform(-2, 2), 0.3, 0.0]), rng.uniform(-2, 2)
        value, slopes = gradient(x, y)
        got, got_slopes = compiled(x, y)
        assert got == pytest.approx(value, rel=1e-12, abs=1e-12), "\n".join(lines)
        assert got_slopes == pytest.approx(slopes, rel=1e-12, abs=1e-12), "\n".join(lines)
