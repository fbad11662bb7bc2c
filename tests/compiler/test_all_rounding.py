"""Results that are all rounding, as the terms of a derivative that is 0 cancel: a program that adds them in another
order differs from the function in every digit, and is right. A fault of that size in another function is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from wengert import (  # noqa: E402
    Value,
    atan,
    cos,
    cosh,
    exp,
    grad,
    hessian,
    hvp,
    jacobian,
    log,
    sigmoid,
    sin,
    sinh,
    softmax,
    sqrt,
    tanh,
    value_and_grad,
)
from wengert.node import CODE  # noqa: E402

pytestmark = pytest.mark.once  # what is compared does not depend on which engine runs
CALLS = 17
Function = Callable[..., Any]

scale = Value(1.3)
IDENTITIES: dict[str, Function] = {
    "circle": lambda x, y: sin(x) ** 2 + cos(x) ** 2,
    "hyperbola": lambda x, y: cosh(x) ** 2 - sinh(x) ** 2,
    "tanh": lambda x, y: tanh(x) ** 2 + 1.0 / cosh(x) ** 2,
    "inverse": lambda x, y: log(exp(x)) - x,
    "root": lambda x, y: sqrt(x) ** 2 - x,
    "thirds": lambda x, y: x / 3.0 * 3.0 - x,
    "binomial": lambda x, y: (x + y) ** 2 - x * x - 2.0 * x * y - y * y,
    "logarithms": lambda x, y: log(x * y) - log(x) - log(y),
    "sigmoids": lambda x, y: sigmoid(x) + sigmoid(-x),
    "angles": lambda x, y: atan(x) + atan(1.0 / x),
    "probabilities": lambda x, y: wengert.sum(softmax([x, y, x * y])),
    "parameter": lambda x, y: (scale * sin(x)) ** 2 + (scale * cos(x)) ** 2,
}
DERIVATIVES: dict[str, Callable[[Function], Function]] = {
    "grad": grad,
    "value_and_grad": value_and_grad,
    "jacobian": lambda f: jacobian(lambda xs: [f(xs), 2.0 * f(xs)]),
    "hessian": hessian,
    "grad of grad": lambda f: grad(lambda xs: wengert.sum(grad(f)(xs))),
    "hvp": hvp,
}


def total(f: Function) -> Function:
    """The sum of a function of two numbers over pairs."""
    return lambda xs: wengert.sum([f(x, y) for x, y in zip(xs[::2], xs[1::2], strict=True)])


def points() -> list[list[float]]:
    return [[0.1 + 0.13 * n, 1.7 - 0.05 * n, 0.3 + 0.07 * n, 2.1 + 0.11 * n] for n in range(CALLS)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("how", ["", "map"])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("of", DERIVATIVES)
@pytest.mark.parametrize("name", IDENTITIES)
def test_a_derivative_that_is_all_rounding_is_compiled(name: str, of: str, backend: str, how: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    compiled = wengert.compile(DERIVATIVES[of](total(IDENTITIES[name])), backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for xs in points():
            given = [xs, xs[::-1]] if of == "hvp" else [xs]
            if how:
                compiled.map(*[[x, x[::-1]] for x in given])
            else:
                compiled(*given)
    assert compiled._server.last.specializations


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", IDENTITIES)
def test_a_value_that_is_all_rounding_is_compiled(name: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    compiled = wengert.compile(total(IDENTITIES[name]), backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for xs in points():
            compiled([*map(Value, xs)])
    assert compiled._server.last.specializations


FAULTS: dict[str, tuple[Function, float]] = {  # and how much is added to a number of the derivative
    "a tiny function": (lambda x, y: 1e-16 * sin(x), 1e-18),
    "a tiny difference": (lambda x, y: 1e-16 * (x - 0.5 * y) ** 2, 1e-19),
    "beside rounding": (lambda x, y: sin(x) ** 2 + cos(x) ** 2 + 1e-3 * x, 1e-8),
    "above rounding": (lambda x, y: sin(x) ** 2 + cos(x) ** 2, 1e-8),
}


@pytest.mark.parametrize("how", ["", "map"])
@pytest.mark.parametrize("of", ["grad", "value_and_grad", "jacobian"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_that_size_is_noticed(fault: str, of: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.backends.numpy import NumPyKernel

    f, error = FAULTS[fault]
    run = NumPyKernel.forward

    def wrong(*args: Any) -> Any:
        outputs = run(*args)
        spoilt = np.array(outputs["out"])
        spoilt[..., -2] += error
        return {**outputs, "out": spoilt}

    monkeypatch.setattr(NumPyKernel, "forward", wrong)
    compiled = wengert.compile(DERIVATIVES[of](total(f)), backend="numpy")
    xs = points()[1]
    with pytest.warns(UserWarning, match="the result of the array program is"):
        compiled.map([xs, xs[::-1]]) if how else compiled(xs)


def nodes_of(call: Callable[[], Any]) -> int:
    """Count the nodes that a call makes."""
    before = Value(0.0)._made
    call()
    return int(Value(0.0)._made - before) // (CODE + 1)


@pytest.mark.parametrize("of", ["grad", "value_and_grad", "jacobian", "hessian"])
@pytest.mark.parametrize("name", [*IDENTITIES, "ordinary"])
def test_a_check_costs_at_most_three_times_the_derivative(name: str, of: str) -> None:
    """Counted in nodes: where digits cancel, what was added up is told by the same graph."""
    derivative = DERIVATIVES[of](total({**IDENTITIES, "ordinary": lambda x, y: tanh(x * y) / y}[name]))
    compiled = wengert.compile(derivative)
    *first, x = points()
    for each in first[:6]:
        compiled(each)
    plain = nodes_of(lambda: derivative(x))
    [specialization] = compiled._server.cache.compiled.last.specializations
    specialization.checked = 0
    assert 0 < nodes_of(lambda: compiled(x)) <= 3 * plain
    assert specialization.checked == 1
