"""`strict` and `detect_anomaly`: the first nan or infinity, of what, made from what, on which line of whose code."""

from __future__ import annotations

import inspect
import pickle
import random
from collections.abc import Callable
from math import inf, isfinite, nan
from typing import Any

import pytest

import wengert
from tests.random_programs import random_program
from tools.qa.oracles import ROWS, leaves_of
from wengert import Value, detect_anomaly, strict
from wengert.errors import NonFiniteError, OperandError, WengertError

# What is wrong, what it is reported as, and what the message says.
AT_ONCE: list[tuple[Callable[[Value, Value], Any], str, str, float, str]] = [
    (lambda x, z: x.exp(), "value", "exp", inf, r"exp\(x = 1000\.0\) is inf.*subtract the greatest first"),
    (lambda x, z: z.log(), "value", "log", -inf, r"log\(z = 0\.0\) is -inf.*has to be positive"),
    (lambda x, z: (-x).log(), "value", "log", nan, r"log\(-1000\.0\) is nan.*has to be positive"),
    (lambda x, z: 1 / z, "value", "div", inf, r"div\(1\.0, z = 0\.0\) is inf.*the divisor is 0"),
    (lambda x, z: x / z, "value", "div", inf, r"div\(x = 1000\.0, z = 0\.0\) is inf"),
    (lambda x, z: z / z, "value", "div", nan, r"div\(z = 0\.0, z = 0\.0\) is nan"),
    (lambda x, z: x * 1e306, "value", "mul", inf, r"mul\(x = 1000\.0, 1e\+306\) is inf.*the largest float is 1\.8e308"),
    (lambda x, z: (-x) ** 0.5, "value", "pow", nan, r"pow\(-1000\.0, 0\.5\) is nan.*integer exponent"),
    (lambda x, z: x**x, "value", "pow", inf, r"pow\(x = 1000\.0, x = 1000\.0\) is inf"),
    (lambda x, z: 10**x, "value", "pow", inf, r"pow\(10\.0, x = 1000\.0\) is inf"),
    (lambda x, z: z**-1, "value", "pow", inf, r"pow\(z = 0\.0, -1\.0\) is inf"),
    (lambda x, z: x + (x * 1e305 + 1.7976931348623157e308), "value", "add", inf, r"add\(1e\+308, .* is inf"),
    (lambda x, z: -(x * 1e305) - 1.7976931348623157e308, "value", "sub", -inf, r"sub\(-1e\+308, .* is -inf"),
    (lambda x, z: x.square().square() ** 26.0, "value", "pow", inf, r"pow\(1000000000000\.0, 26\.0\) is inf"),
    (lambda x, z: x.expm1(), "value", "expm1", inf, r"expm1\(x = 1000\.0\) is inf"),
    (lambda x, z: x.acos(), "value", "acos", nan, r"acos\(x = 1000\.0\) is nan.*between -1 and 1"),
    (lambda x, z: wengert.dot([x], [1e306], z), "value", "dot", inf, r"dot\(x = 1000\.0, 1e\+306, z = 0\.0\) is inf"),
    (lambda x, z: wengert.prod(x, x, 1e303, z + 1), "value", "prod", inf, r"prod\(x = 1000\.0, x = .* is inf"),
    (lambda x, z: wengert.sum([x * 1e305] * 5), "value", "sum", inf, r"sum\(1e\+308, .*, and 1 more\) is inf"),
    (lambda x, z: z.sqrt(), "partial", "sqrt", inf, r"sqrt\(z = 0\.0\) is 0\.0, and .* to z is inf.*under the root"),
    (lambda x, z: z.cbrt(), "partial", "cbrt", inf, r"cbrt\(z = 0\.0\) is 0\.0, and .* to z is inf"),
    (lambda x, z: z**0.5, "partial", "pow", inf, r"pow\(z = 0\.0, 0\.5\) is 0\.0, and .* to z is inf"),
    (lambda x, z: (-x) ** (z + 3), "partial", "pow", nan, r"pow\(.*\) is -1000000000\.0, and .* to operand 2 is nan"),
    (lambda x, z: 1e10 / (x * 1e-203), "partial", "div", -inf, r"div\(10000000000\.0, .* is .*e\+210, .* is -inf"),
    (lambda x, z: (z + 1).asin(), "partial", "asin", inf, r"asin\(1\.0\) is 1\.57.*, and .* to operand 1 is inf"),
    (lambda x, z: wengert.prod(z, x * 1e300, x, x), "partial", "prod", inf, r"prod\(.* is 0\.0, and .* to z is inf"),
]


def operands() -> tuple[Value, Value]:
    return Value(1000.0, label="x"), Value(0.0, label="z")


def same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case[4][:24])
def test_strict_raises_at_the_operation(case: tuple[Callable[[Value, Value], Any], str, str, float, str]) -> None:
    function, what, operation, value, words = case
    x, z = operands()
    with pytest.raises(NonFiniteError, match=words) as caught, strict():
        function(x, z)
    found = caught.value.anomaly
    assert (found.what, found.operation) == (what, operation)
    assert same(found.value, value)
    assert all(isfinite(operand.data) for operand in found.operands)
    assert isinstance(caught.value, (WengertError, ArithmeticError))
    assert found.line.file == __file__
    assert "test_anomalies.py, line" in str(found)
    assert not isfinite(function(x, z).data) or what == "partial"  # outside, arithmetic is that of IEEE 754


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case[4][:24])
def test_detect_anomaly_finds_the_same_in_the_finished_graph(case: Any) -> None:
    function, what, operation, value, _ = case
    result = function(*operands()) * 0.5 + 1.0
    found = detect_anomaly(result)
    assert found is not None
    assert (found.what, found.operation, found.line) == (what, operation, None)
    assert same(found.value, value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, z: x + inf,
        lambda x, z: wengert.maximum(x, -inf),
        lambda x, z: Value(nan) * x,
        lambda x, z: wengert.logsumexp(x, -inf),
        lambda x, z: wengert.sum([x, nan]),
        lambda x, z: (-x).exp() * 1e300,
        lambda x, z: z.relu() + abs(z) + x.tanh() + z**0 + z**2 + z**1.0 + x.sigmoid() + x.softplus(),
        lambda x, z: wengert.hypot(z, z * 2) + wengert.atan2(z, z * 2),
        lambda x, z: wengert.polygamma(1, x),
    ],
)
def test_what_was_not_finite_before_is_not_raised(function: Callable[[Value, Value], Any]) -> None:
    expected = function(*operands())
    with strict():
        made = function(*operands())
    assert same(made.data, expected.data)


def test_strict_raises_exactly_where_something_is_not_finite() -> None:
    """Every row, on its domain and far outside: the plain engine, a leaf by each operand, says where that is."""
    rng = random.Random(2)
    extremes = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 745.0, -745.0, 1e-9, inf, -inf, nan]
    raised = {"value": 0, "partial": 0}
    for row in ROWS:
        for _ in range(40):
            numbers = [rng.uniform(*bounds) for bounds in row.domain]
            numbers[rng.randrange(len(numbers))] = rng.choice(extremes)
            xs = leaves_of(row, numbers)
            y = row(*xs)
            y.backward()
            wrong = not all(map(isfinite, [y.data, *[x.grad for x in xs if isinstance(x, Value)]]))
            try:
                with strict():
                    row(*leaves_of(row, numbers))
                found = None
            except NonFiniteError as error:
                found = error.anomaly
                raised[found.what] += 1
            assert (found is not None) == (wrong and all(map(isfinite, numbers))), (row.name, numbers)
    assert min(raised.values()) > 40


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_strict_changes_no_number(first: int) -> None:
    for seed in range(first, first + 50):
        program = random_program(seed)
        expected = program.value_and_gradient()
        with strict(), detect_anomaly():
            assert program.value_and_gradient() == expected
        assert program.value_and_gradient() == expected


def test_the_words_of_an_error_leave_its_process() -> None:
    with pytest.raises(NonFiniteError) as caught, strict():
        Value(1000.0, label="x").exp()
    there = pickle.loads(pickle.dumps(caught.value))
    assert (type(there), str(there), there.anomaly) == (NonFiniteError, str(caught.value), str(caught.value))


# ------------------------------------------------------------------------------------- backward


def test_a_product_names_the_line_that_made_its_node_and_leaves_all_as_it_was() -> None:
    w = Value(1.0, label="w")
    with strict():
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        d = w / 1e-200
        d.label = "d"
        y = d * 2.0**-600
        w.grad, d.grad, y.grad = 7.0, 5.0, 3.0
        with pytest.raises(NonFiniteError, match=rf"line {line} \(d = w / 1e-200\)") as caught:
            y.backward(2.0**1000)
    found = caught.value.anomaly
    assert (found.what, found.operation, found.label, found.gradient) == ("product", "div", "d", 2.0**400)
    assert str(found).startswith(
        f"in backward() the gradient {2.0**400!r} of d = div(w = 1.0, 1e-200) times its partial"
    )
    assert (w.grad, d.grad, y.grad) == (7.0, 5.0, 3.0)


def test_products_by_hand() -> None:
    x = Value(2.0, label="x")
    y = x * 1e200
    with (
        pytest.raises(
            NonFiniteError, match=r"the gradient 1e\+200 of mul\(x = 2.0, 1e\+200\) times .* 1e\+200, is inf"
        ),
        strict(),
    ):
        y.backward(1e200)
    assert x.grad == 0.0
    y.backward(1e200)
    assert x.grad == inf
    x.grad = 0.0
    with strict():
        y.backward(1e100)
        y.backward(inf)  # what was infinite before
    assert x.grad == inf


def test_sums_that_overflow() -> None:
    x = Value(1.0, label="x")
    y = x * 1e308 * 1e-5 + x * 1e308 * 1e-5
    with strict(), pytest.raises(NonFiniteError, match=r"the sum of the gradients that reach x, .* is inf"):
        y.backward(1e5)
    z = x * 1e308
    z.backward()
    with strict():
        with pytest.raises(NonFiniteError, match=r"of the leaf x, added to that of earlier calls, becomes inf"):
            z.backward()
        assert x.grad == 1e308
        x.grad = 0.0
        z.backward()
        assert x.grad == 1e308


def test_a_graph_that_was_made_before() -> None:
    x = Value(0.0, label="x")
    y = x.sqrt() * 2
    with (
        strict(),
        pytest.raises(NonFiniteError, match=r"^sqrt\(x = 0.0\) is 0.0, and .* with respect to x is inf: "),
    ):
        y.backward()
    assert x.grad == 0.0
    y.backward()
    assert x.grad == inf
    lost = Value(nan) * x
    with strict():
        lost.backward()  # was nan before


def test_a_gradient_that_is_none() -> None:
    x = Value(1.0)
    for wrong in ("x", None, object()):
        with strict(), pytest.raises(OperandError):
            (x * 2).backward(wrong)
    with pytest.raises(OperandError):
        detect_anomaly(x * 2, "x")  # type: ignore[call-overload]
    with pytest.raises(OperandError):
        detect_anomaly(2.0)  # type: ignore[call-overload]


# ------------------------------------------------------------------------------------- detect_anomaly


def test_the_first_in_the_order_of_creation() -> None:
    x, z = operands()
    late = x.exp()  # made first, though it is used last
    early = 1 / z
    found = detect_anomaly(early + late)
    assert found is not None
    assert (found.operation, found.value) == ("exp", inf)
    assert [(o.label, o.data) for o in found.operands] == [("x", 1000.0)]


def test_inside_it_only_what_is_differentiated_counts() -> None:
    x, z = operands()
    with detect_anomaly():
        unused = z.log()
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        y = x.exp()
        y.label = "y"
        w = y * 2
        (x * 3).backward()
        assert (unused.data, w.data, x.grad) == (-inf, inf, 3.0)
        with pytest.raises(NonFiniteError, match=rf"^y = exp\(x = 1000.0\) is inf, at test_anomalies.py, line {line} "):
            w.backward()
    assert x.grad == 3.0
    w.backward()
    assert x.grad == inf


def test_leaves_and_constants_count() -> None:
    assert str(detect_anomaly(Value(nan, label="w") * 2)) == (
        "the leaf w is nan: it was not computed: check where its data comes from"
    )
    assert str(detect_anomaly(Value(2.0) + inf)) == "add(2.0, inf) is inf: an operand is not finite already"
    x = Value(-inf)
    assert detect_anomaly(x).node is x  # type: ignore[union-attr]


def test_what_backward_would_meet() -> None:
    x = Value(2.0, label="x")
    y = x * 1e200
    assert detect_anomaly(y) is None
    found = detect_anomaly(y, 1e200)
    assert found is not None
    assert found == detect_anomaly(y, Value(1e200))  # as backward() takes one
    assert (found.what, found.value, found.gradient, x.grad) == ("product", inf, 1e200, 0.0)
    assert found.operands == (("x", 2.0, 1e200), ("", 1e200, None))
    assert found.operands[found.place or 0].label == "x"


def test_a_compiled_node_of_a_finished_graph() -> None:
    np = pytest.importorskip("numpy")
    w, b = Value(1e150, label="w"), Value(1.0, label="b")

    @wengert.compile(backend="numpy")
    def loss(x: float) -> Value:
        return w * x + b

    y = loss.mean(np.array([1e150, 2e150]))
    y.label = "loss"
    found = detect_anomaly(y, 1e200)
    assert found is not None
    assert (found.what, found.operation, found.value) == ("product", "compiled", inf)
    assert "loss = compiled(" in str(found)
    assert detect_anomaly(y) is None
    with strict(), pytest.raises(NonFiniteError, match="compiled"):
        y.backward(1e200)
    assert (w.grad, b.grad) == (0.0, 0.0)


def test_a_deep_graph() -> None:
    y = x = Value(1.0, label="x")
    for _ in range(20_000):
        y = y * 1.0
    assert detect_anomaly(y) is None
    assert detect_anomaly((y * 0.0).sqrt()).operation == "sqrt"  # type: ignore[union-attr]
    with strict():
        y.backward()
    assert x.grad == 1.0
