"""The derivative of `where` flows into the operand that is taken, and only there, as with Python's `if`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.choices import SHAPES, function, lists, point, taken
from wengert import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from wengert.ops import BUILT_IN, TABLE
from wengert.view.backward import Pass

ALONG = [1.0, 0.5, -2.0, 0.25]
FAR = 1e308  # no operand of these tests is above


def flat(x: Any) -> list[float]:
    """All numbers of a result, in order."""
    if isinstance(x, (list, tuple)):
        return [number for part in x for number in flat(part)]
    return [float(x.data if isinstance(x, Value) else x)]


def backward(f: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(xs: list[float]) -> list[float]:
        values = [Value(x) for x in xs]
        result = f(values)
        if isinstance(result, Value):
            result.backward()
        return [x.grad for x in values]

    return gradient


def again(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a sum of the gradient's numbers."""
    return grad(lambda xs: sum([d * c for d, c in zip(grad(f)(xs), ALONG, strict=False)]))


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda xs: hvp(f)(xs, ALONG[: len(xs)])


MODES: dict[str, Callable[..., Any]] = {
    "backward": backward,
    "grad": grad,
    "value_and_grad": value_and_grad,
    "jvp": lambda f: lambda xs: jvp(f, (xs,), (ALONG[: len(xs)],)),
    "hvp": along,
    "hessian": hessian,
    "second": again,
    "third": lambda f: again(lambda xs: sum([d * c for d, c in zip(grad(f)(xs), ALONG, strict=False)])),
}


def agree(got: Any, want: Any) -> bool:
    """True if numbers agree where those wanted are finite; an infinity or nan may be another one."""
    pairs = zip(flat(got), flat(want), strict=True)
    return all(abs(x - y) <= 1e-9 * (1.0 + abs(y)) if math.isfinite(y) else not math.isfinite(x) for x, y in pairs)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(300))
def test_random_functions_have_the_derivatives_of_their_ifs(seed: int) -> None:
    f = function(seed)
    for at in range(3):
        xs = point(3 * seed + at)
        for name, mode in MODES.items():
            assert agree(mode(f)(xs), mode(lambda xs: f(xs, taken))(xs)), (name, xs)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.__name__))
def test_choices_over_sums_and_loops(shape: Callable[..., Any]) -> None:
    for at in range(6):
        xs = point(at, 4)
        for name, mode in MODES.items():
            got, want = [mode(lambda xs, w=where: shape(xs, w))(xs) for where in (wengert.where, taken)]
            assert agree(got, want), (name, xs)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(16))
def test_jacobians_dense_and_sparse(seed: int) -> None:
    pytest.importorskip("scipy", reason="needs scipy")
    f = lists(seed)
    for at in range(3):
        xs = point(seed + at)
        want = jacobian(lambda xs: f(xs, taken))(xs)
        assert agree(jacobian(f)(xs), want)
        assert agree(jacobian(f, sparse=True)(xs).toarray().tolist(), want)
        assert agree(hessian(lambda xs: f(xs)[0], sparse=True)(xs).toarray().tolist(), hessian(lambda xs: f(xs)[0])(xs))
        weights = [1.0, 2.0, -1.0]
        assert agree(vjp(f, xs)[1](weights), vjp(lambda xs: f(xs, taken), xs)[1](weights))


ROWS = [row for row in TABLE[:BUILT_IN] if row.value and row.arity in (1, 2)]
OPERANDS = (-math.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e300, math.inf, math.nan)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.name))
def test_no_operation_passes_on_a_gradient_where_it_is_not_taken(row: Any) -> None:
    for x in OPERANDS:
        for y in OPERANDS if row.arity == 2 else (None,):
            operands = [Value(x), *([] if y is None else [Value(y)])]
            other, rest = Value(2.0), operands if not row.shapes else operands[-1:]
            given = operands if not row.shapes else [2.5, *rest]
            wengert.where(other > FAR, row(*given), 3.0 * other).backward()
            assert other.grad == 3.0
            assert [operand.grad for operand in operands] == [0.0] * len(operands), (x, y)


def test_what_only_untaken_sides_read_has_no_gradient_afterwards() -> None:
    x, y = Value(-1.0), Value(2.0)
    root, side = x.sqrt(), y * 3.0
    chosen = wengert.where(x > 0.0, root, side)
    root.backward()
    assert math.isnan(x.grad)
    x.grad, root.grad, side.grad = 5.0, 7.0, 7.0
    for count in (1.0, 2.0):
        chosen.backward()
        assert (root.grad, side.grad, x.grad, y.grad) == (0.0, 1.0, 5.0, 3.0 * count)


def test_a_number_that_another_operation_reads_has_its_gradient() -> None:
    x = Value(4.0)
    root = x.sqrt()
    (wengert.where(x > 100.0, root * x.log(), 1.0) + root).backward()
    assert (root.grad, x.grad) == (1.0, 0.25)


def test_a_condition_passes_on_nothing() -> None:
    x, y = Value(0.0), Value(0.0)
    wengert.where(x.sqrt(), 1.0, 2.0 * y).backward()
    assert x.grad == 0.0


def test_zero_times_infinity_is_still_nan_elsewhere() -> None:
    x = Value(0.0)
    (x.sqrt() ** 2).backward()
    assert math.isnan(x.grad)
    assert math.isnan(grad(lambda x: wengert.where(x >= 0.0, wengert.sqrt(x) ** 2, 0.0))(0.0))


def test_choices_in_choices_that_are_deep() -> None:
    x, side = Value(2.0), Value(0.0).sqrt()
    for _ in range(20_000):
        side = wengert.where(x > 100.0, x, side * x)
    total = wengert.where(x > 1.0, x * x, side)
    total.backward()
    assert (x.grad, side.grad) == (4.0, 0.0)
    total = x
    for _ in range(20_000):
        total = wengert.where(x > 1.0, total + 1.0, side)
    x.grad = 0.0
    total.backward()
    assert x.grad == 1.0


def test_a_gradient_of_infinity_passes_a_choice() -> None:
    x, y = Value(0.0), Value(1.0)
    wengert.where(y > 0.0, x * y, x.log()).sqrt().backward()
    assert (x.grad, math.isnan(y.grad)) == (math.inf, True)


def test_pictures_and_explanations() -> None:
    x = Value(0.0, label="x")
    y = wengert.where(x > 0.0, wengert.sqrt(x) * 3.0, x * 2.0)
    steps = Pass(y)
    assert steps.gradients[0] == 2.0
    assert [steps.moves(place) for place in steps.unreached] == [[], []]
    assert all("no gradient reaches" in steps.idle(place) for place in steps.unreached)
    dot = wengert.draw_dot(y).to_dot().splitlines()
    assert sum(["->" in line and "color=" in line for line in dot]) == 1
    assert "opacity" in wengert.draw_dot(y).svg
    assert wengert.detect_anomaly(y) is None
    unused = wengert.where(x > 0.0, wengert.sqrt(x), 1.0)
    explained = wengert.explain(x, unused)
    assert (explained.gradient, explained.verdict, explained.paths[0].product) == (0.0, "zero", 0.0)
    assert "where did not select it" in str(explained)
