"""`wengert.compare`: the same expression beside PyTorch, JAX and mpmath, and what its table says of each part."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import wengert
from tools.qa.oracles import ROWS
from wengert import Value, ops
from wengert.checking import peers
from wengert.checking.compare import Comparison
from wengert.errors import ArgumentError, MissingExtraError, OperandError

pytestmark = pytest.mark.once  # what is compared are other libraries' numbers

PEERS = [
    pytest.param("torch", marks=pytest.mark.torch),
    pytest.param("mpmath", marks=pytest.mark.mpmath),
    pytest.param("jax", marks=pytest.mark.slow),
]
over_peers = pytest.mark.parametrize("peer", PEERS)


@pytest.fixture(autouse=True)
def the_peer_is_there(request: pytest.FixtureRequest) -> None:
    if "peer" in request.fixturenames and request.getfixturevalue("peer") == "jax":
        pytest.importorskip("jax", reason="needs jax")


def operands(row: ops.Op) -> list[float]:
    """Operands from the row's own domain."""
    rng = random.Random(row.name)
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    return [rng.uniform(low, high) for low, high in domain]


@over_peers
def test_every_row_has_a_counterpart_by_its_name_an_exception_or_its_own_rule(peer: str) -> None:
    library = pytest.importorskip(peer)
    table = getattr(peers, f"_{peer}_table")(library.mp if peer == "mpmath" else library)
    assert set(table) == {row.name for row in ROWS}


class Point(NamedTuple):
    x: Any
    y: Any


CONSTANT = {"polygamma": (0,), "where": (0,), **{row.name: range(len(row.shapes)) for row in ROWS if row.shapes}}
"""Operands by which there is no derivative to compare: the order of a derivative, a condition."""

LOOSE = {
    "torch": {"digamma": 1e6},
    "mpmath": {},
    "jax": {"lgamma": 1e6, "digamma": 1e6, "polygamma": 1e6, "cbrt": 1e3, "tanh": 1e3},
}
"""Where a peer is off by more than 64 units in the last place."""

IN_JAX = "add pow tanh relu where clip stop_gradient logsigmoid gelu gaussian lgamma polygamma asinh atan2 sum dot"
"""JAX takes half a second to compile each operation: mostly those whose counterpart is not the function of its name."""


@over_peers
def test_every_operation_agrees_with_its_counterpart(peer: str) -> None:
    """One expression of all of them: the sum of each, times 3, of operands of its own."""

    rows = [row for row in ROWS if peer != "jax" or row.name in IN_JAX.split()]

    def f(**inputs: list[Any]) -> Any:
        terms = []
        for row in rows:
            given = list(inputs[row.name])
            for place in CONSTANT.get(row.name, ()):
                given[place] = given[place].data
            terms.append(row(*given) * 3.0)
        return wengert.sum(terms)

    report = wengert.compare(f, {row.name: operands(row) for row in rows}, against=peer)
    told = {}
    for line in report.lines:
        under = [report.lines[x] for x in line.operands if isinstance(x, int)]
        (name, bracket, _) = (under[0] if line.op else line).expression.partition("[")
        bracket = bracket and not (line.op and under[0].op)
        if bracket and name in ops.BY_NAME:  # an input, or the operation on inputs
            assert max(line.value_ulp, line.grad_ulp) <= LOOSE[peer].get(name, 64.0), line
            if line.op:
                assert "no counterpart" not in line.counterpart
                told[name] = line
    assert set(told) >= {row.name for row in rows}
    for row in rows:
        assert told[row.name].value == pytest.approx(row.value(*operands(row)), rel=1e-14)
        assert told[row.name].peer_grad == pytest.approx(3.0, rel=1e-14)


def readme(a: Any, b: Any) -> Any:
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    return g + 10.0 / f


@over_peers
def test_the_expression_of_the_tutorials(peer: str) -> None:
    report = wengert.compare(readme, {"a": -4.0, "b": 2.0}, against=peer)
    a, b = report.lines[:2]
    assert (a.expression, b.expression) == ("a", "b")
    assert (a.peer_grad, b.peer_grad) == (pytest.approx(138.8338, abs=1e-4), pytest.approx(645.5773, abs=1e-4))
    assert report.lines[-1].peer_value == pytest.approx(24.7041, abs=1e-4)
    assert report.largest < 4.0
    assert report.against.split()[0] == peer


@pytest.mark.torch
def test_each_part_is_shown_with_its_counterpart_in_pytorch() -> None:
    report = wengert.compare(lambda a, b: (a * b + b**2).tanh() - 10 / a, [0.5, 0.25])
    shown = [(line.expression, line.op, line.operands, line.counterpart) for line in report.lines]
    assert shown == [
        ("a", "", (), "leaf (AccumulateGrad)"),
        ("b", "", (), "leaf (AccumulateGrad)"),
        ("a * b", "*", (0, 1), "MulBackward0(#0, #1)"),
        ("b**2", "**2", (1,), "PowBackward0(#1)"),
        ("#2 + #3", "+", (2, 3), "AddBackward0(#2, #3)"),
        ("tanh(#4)", "tanh", (4,), "TanhBackward0(#4)"),
        ("10 / a", "/", (10.0, 0), "MulBackward0(ReciprocalBackward0(#0), constant)"),
        ("#5 - #6", "-", (5, 6), "SubBackward0(#5, #6)"),
    ]
    text = str(report)
    for word in ("_op", "_prev", "grad_fn(next_functions)", "torch: value", "TanhBackward0(#4)"):
        assert word in text
    assert len(text.splitlines()) == 1 + len(report.lines) + 1


@pytest.mark.torch
def test_the_gradients_are_those_of_pytorchs_own_backward() -> None:
    import torch

    a, b = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.7, -1.3))
    c = a * b
    d = torch.tanh(c) + c * c
    for x in (c, d):
        x.retain_grad()
    d.backward()
    report = wengert.compare(lambda a, b: (c := a * b).tanh() + c * c, (0.7, -1.3))
    by_place = {line.expression: line for line in report.lines}
    assert by_place["a"].peer_grad == a.grad.item()
    assert by_place["b"].peer_grad == b.grad.item()
    assert by_place["a * b"].peer_grad == c.grad.item()
    assert by_place["a * b"].peer_value == c.item()


@pytest.mark.mpmath
def test_mpmath_is_told_in_more_digits_than_a_float_has() -> None:
    report = wengert.compare(lambda x: x / 3.0, 1.0, against="mpmath")
    assert report.lines[-1].peer_value == 1 / 3
    third = 0.3333333333333333148296162562473909929394721984863281250  # the float that 1/3 rounds to
    assert report.lines[-1].value_ulp == pytest.approx(
        (1 / 3 - third + 1.8503717077085942e-17) / math.ulp(third), rel=1e-6
    )


@pytest.mark.mpmath
def test_cancellation_is_found_and_named() -> None:
    report = wengert.compare(lambda x: ((1.0 + x) - 1.0) / x, 1e-10, against="mpmath")
    assert report.largest > 1e8
    assert report.worst.expression in ("#1 - 1", "#2 / x", "x")
    assert f"the largest difference: {report.largest:.3g} ulp, in the " in str(report)


@over_peers
def test_gradients_that_the_user_holds_are_left_alone(peer: str) -> None:
    w = Value(2.0)
    (w * 3.0).backward()
    inner = w * w
    inner.backward()
    before = (w.grad, inner.grad)
    x = Value(5.0, label="x")
    report = wengert.compare(lambda x: inner * x + w, [x], against=peer)
    assert (w.grad, inner.grad, x.grad) == (*before, 0.0)
    leaf = next(line for line in report.lines if line.value == 2.0 and not line.op)
    assert (leaf.grad, leaf.peer_grad) == (2 * 2.0 * 5.0 + 1.0,) * 2


@pytest.mark.mpmath
def test_under_no_grad() -> None:
    with wengert.no_grad():
        report = wengert.compare(lambda x: x * x, 3.0, against="mpmath")
    assert [(line.expression, line.grad, line.peer_grad) for line in report.lines] == [
        ("x", 6.0, 6.0),
        ("x * x", 1.0, 1.0),
    ]


@over_peers
def test_what_the_peer_does_not_have_is_said_and_stood_in_for(peer: str) -> None:
    cube = wengert.op("cube_for_compare", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    report = wengert.compare(lambda x: cube(x) * x + x.tanh(), 0.5, against=peer)
    (line,) = [line for line in report.lines if line.op == "cube_for_compare"]
    assert line.counterpart.startswith("no counterpart: ")
    assert report.largest < 4.0
    assert report.lines[0].peer_grad == pytest.approx(4 * 0.5**3 + 1 - math.tanh(0.5) ** 2, rel=1e-12)


@over_peers
def test_a_compiled_function_is_stood_in_for(peer: str) -> None:
    f = wengert.compile(lambda x, y: (x * y).tanh() + x)
    f(Value(0.5), Value(0.25))
    report = wengert.compare(lambda x, y: f(x, y) * y, (0.5, 0.25), against=peer)
    assert report.largest < 8.0


@pytest.mark.mpmath
def test_inputs_of_any_shape_are_labelled() -> None:
    array = pytest.importorskip("numpy").array([[4.0, 5.0]])

    def f(w: list[Any], x: dict[str, Any]) -> Any:
        return w[0] * x["left"] + w[1] * x["right"]

    report = wengert.compare(f, {"w": [1, 2.0], "x": {"left": 3.0, "right": True}}, against="mpmath")
    labels = [line.expression for line in report.lines if not line.op]
    assert labels == ["w[0]", "w[1]", "x['left']", "x['right']"]
    by_field = wengert.compare(lambda p, a: p.x * p.y + a[0, 1], (Point(2.0, 3.0), array), against="mpmath")
    assert [line.expression for line in by_field.lines if not line.op] == ["p.x", "p.y", "a[0, 1]"]
    by_position = wengert.compare(lambda *xs: xs[0] * xs[1], (1.0, 2.0), against="mpmath")
    assert [line.expression for line in by_position.lines] == ["x0", "x1", "x0 * x1"]
    assert by_position.largest == 0.0
    assert str(by_position).splitlines()[-1].startswith("all values and gradients are equal")


@pytest.mark.mpmath
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x.relu(), 0.0),
        (lambda x: abs(x), 0.0),
        (lambda x: wengert.maximum(x, x * 1.0), 2.0),
        (lambda x: x.tanh(), 400.0),
        (lambda x: x.exp(), 1000.0),
        (lambda x: wengert.sqrt(x), 1e-300),
        (lambda x: wengert.polygamma(0.5, x), 1.0),
        (lambda x: wengert.polygamma(math.nan, x), 1.0),
    ],
)
def test_at_the_edges_it_follows_the_conventions_and_breaks_nothing(f: Callable[[Any], Any], x: float) -> None:
    report = wengert.compare(f, x, against="mpmath")
    assert isinstance(report, Comparison)
    if x != 1000.0:  # in 60 digits e**1000 is no infinity
        assert report.largest <= 1.0


@pytest.mark.mpmath
def test_a_comparison_shows_itself_where_it_is_the_last_line_of_a_cell() -> None:
    comparison = wengert.compare(lambda x: x * x, 3.0, against="mpmath")
    head, *_, end = repr(comparison).splitlines()
    assert head.startswith("    wengert  _op  _prev   value  gradient  mpmath: value  gradient  ulp")
    assert end.startswith("all values and gradients are equal (wengert and mpmath ")
    assert str(comparison) == repr(comparison)


def test_what_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match=r"against is 'tensorflow'; expected 'torch' or 'jax' or 'mpmath'"):
        wengert.compare(lambda x: x, 1.0, against="tensorflow")
    with pytest.raises(ArgumentError, match=r"f has to return one Value that depends on its inputs, not float 2.0"):
        wengert.compare(lambda x: 2.0, 1.0)
    with pytest.raises(ArgumentError, match=r"not list \["):
        wengert.compare(lambda x: [x], 1.0)
    with pytest.raises(ArgumentError, match=r"against is \['torch'\]; expected"):
        wengert.compare(lambda x: x, 1.0, against=["torch"])  # type: ignore[arg-type]
    with pytest.raises(OperandError, match=r"x is str '1\.0'; expected a number, a Value, an array, or a list"):
        wengert.compare(lambda x: x, "1.0")
    monkeypatch.setitem(sys.modules, "mpmath", None)
    with pytest.raises(MissingExtraError, match=r'this needs mpmath: pip install mpmath \(the extra "compare"\)'):
        wengert.compare(lambda x: x * x, 1.0, against="mpmath")
