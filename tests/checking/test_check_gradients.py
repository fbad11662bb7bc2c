"""`check_gradients` passes what is right, at kinks too, and fails for every kind of wrong rule."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

import wengert
from tests.ops.test_table import ROWS, disturbances, listed, points
from tools.qa.oracles import leaves_of
from wengert import Value, check_gradients, nn
from wengert.checking.replay import Replay
from wengert.errors import ArgumentError, GradientError, OperationError, WengertError
from wengert.graph import Graph
from wengert.ops.finite_differences import slopes

# ------------------------------------------------------------------------------------- differences by themselves

KNOWN: list[tuple[Callable[[float], float], float, float]] = [
    (math.exp, 1.0, math.e),
    (math.sin, 0.0, 1.0),
    (lambda x: x**3, 1e8, 3e16),
    (lambda x: x**3, 0.0, 0.0),
    (lambda x: 1.0 / (1.0 + x * x), 5.0, -10.0 / 676.0),
    (lambda x: math.sin(1000.0 * x), 0.3, 1000.0 * math.cos(300.0)),
    (lambda x: 1e6 + x, 1.0, 1.0),
    (math.log, 1e-6, 1e6),  # most steps leave the domain
    (math.sqrt, 1e-12, 0.5e6),
    (lambda x: math.exp(-1e4 * x * x), 1e-3, -20.0 * math.exp(-0.01)),
]


@pytest.mark.parametrize("case", range(len(KNOWN)))
def test_differences_are_as_good_as_they_say(case: int) -> None:
    function, x, expected = KNOWN[case]
    (found,) = slopes(lambda t: [function(t)], x, 0.1 * max(1.0, abs(x)))
    assert found.slope == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert abs(found.slope - expected) <= 10.0 * found.error
    assert abs(found.jump) <= found.jump_error + 1e-6 * abs(expected)


def test_differences_at_a_kink_and_at_an_end() -> None:
    (found,) = slopes(lambda x: [max(x, 0.0) + x], 0.0, 0.1)
    assert (found.slope, found.jump) == pytest.approx((1.5, 1.0), rel=1e-12)
    (end,) = slopes(lambda x: [x * math.sqrt(1.0 - x) if x <= 1.0 else math.nan], 0.75, 1e-3)
    assert end.slope == pytest.approx(0.5 - 0.75, rel=1e-9)
    (side,) = slopes(lambda x: [math.cos(math.sqrt(x))], 0.0, 0.1)  # no point on the left: a ValueError
    assert side.slope == pytest.approx(-0.5, rel=1e-6)
    (nothing,) = slopes(lambda x: [math.nan], 0.0, 0.1)
    assert math.isnan(nothing.slope)


# ------------------------------------------------------------------------------------- what is right passes


over_rows = pytest.mark.parametrize(
    "row", [row for row in ROWS if row.name != "stop_gradient"], ids=lambda row: row.name
)


def checked(row: Any, numbers: list[float], **options: Any) -> Any:
    fixed = len(row.shapes) or int(row.name in ("where", "polygamma"))  # a condition and an order have no derivative
    if fixed:
        return check_gradients(lambda *xs: row(*numbers[:fixed], *xs), tuple(numbers[fixed:]), **options)
    return check_gradients(row, tuple(numbers), **options)


@over_rows
def test_every_operation_passes(row: Any) -> None:
    for numbers in points(row, 2, seed=9):
        report = checked(row, numbers)
        assert report
        assert report.ok
        assert all(c.source == "differences" for c in report.comparisons)


def varies(partial: Any, leaves: list[Value]) -> bool:
    """Whether a partial derivative has itself one that is not 0."""
    leaves = [leaf for leaf in leaves if isinstance(leaf, Value)]
    for leaf in leaves:
        leaf.grad = 0.0
    if isinstance(partial, Value):
        partial.backward()
    return any(leaf.grad for leaf in leaves)


@pytest.mark.once  # rules of the table run in Python on both
@pytest.mark.sampled(3)  # what is tried is the check
@over_rows
def test_every_operation_fails_with_a_rule_that_is_slightly_wrong(row: Any) -> None:
    """A thousandth off, or of the other sign; read over floats, and over Values where a second derivative shows it."""
    leaves = leaves_of(row, next(points(row, 1, seed=9)))
    varying = [varies(p, leaves) for p in listed(row.graph_partials(row(*leaves), *leaves))]
    noticed = 0
    for kind, disturbed in disturbances(row):
        rule, place, *_ = kind.split()
        if row.arity is None and place in "123":
            continue  # the others are as these
        shows = any(varying) if place == "swapped" else place.isdigit() and varying[int(place)]
        if rule == "partials" or (rule == "graph_partials" and shows):
            wengert.ops.TABLE[row.code] = disturbed
            passes = (checked(disturbed, numbers, raise_exception=False) for numbers in points(row, 3, seed=9))
            assert not all(passes), f"{row.name}: {kind} went unnoticed"
            noticed += 1
    assert noticed


KINKS: list[tuple[Callable[..., Any], tuple[float, ...]]] = [
    (wengert.relu, (0.0,)),
    (wengert.relu, (-0.0,)),
    (wengert.abs, (0.0,)),
    (wengert.sign, (0.0,)),
    (wengert.floor, (2.0,)),
    (wengert.round, (2.5,)),
    (wengert.remainder, (6.0, 2.0)),
    (wengert.leaky_relu, (0.0, 0.1)),
    (wengert.maximum, (1.5, 1.5)),
    (wengert.minimum, (1.5, 1.5)),
    (lambda x, y: wengert.max([x, y, 0.0]), (2.0, 2.0)),
    (lambda x, y: wengert.min([x, y, 5.0]), (2.0, 2.0)),
    (lambda x: wengert.clip(x, -1.0, 1.0), (1.0,)),
    (lambda x: wengert.clip(x, -1.0, 1.0), (-1.0,)),
    (lambda x: wengert.relu(x) - wengert.relu(-x), (0.0,)),  # x itself, whose slope by convention is 0
    (lambda x: wengert.sin(x) * (wengert.relu(x) + wengert.abs(x)) + wengert.exp(x), (0.0,)),
    (lambda x, y: wengert.relu(x * y) * y + wengert.maximum(x, 0.0), (0.0, 2.0)),
    (lambda x: x * x if x > 0.0 else 3.0 * x, (0.0,)),  # the branch that is taken counts
]


@pytest.mark.parametrize("case", range(len(KINKS)))
def test_kinks_are_held_to_the_convention(case: int) -> None:
    function, numbers = KINKS[case]
    report = check_gradients(function, numbers)
    assert any(c.source == "convention" for c in report.comparisons)


def test_a_wrong_slope_at_a_kink_fails() -> None:
    """Between the slopes of both sides, and still not the convention's."""
    for name, numbers, wrong in (("relu", (0.0,), 1.0), ("abs", (0.0,), 0.5), ("maximum", (1.0, 1.0), (1.0, 0.0))):
        row = wengert.ops.BY_NAME[name]
        report = check_gradients(
            row._replace(partials=lambda out, *xs, wrong=wrong: wrong), numbers, order=1, raise_exception=False
        )
        assert report.worst.source == "convention"
        assert not report
        assert "the convention at this kink gives" in str(report)


@pytest.mark.parametrize(("slope", "right"), [(0.0, True), (0.5, True), (1.0, True), (2.0, False), (-1.0, False)])
def test_the_kink_of_a_node_made_by_hand_takes_either_side(slope: float, right: bool) -> None:
    """Its rule is a closure: it says nothing of what it is elsewhere, and names no convention."""

    def relu(x: Value) -> Value:
        out = Value(max(x.data, 0.0), (x,), "relu")

        def push() -> None:
            x.grad += (1.0 if x.data > 0.0 else slope) * out.grad

        out._backward = push
        return out

    for function in (relu, lambda x: 2.0 * relu(3.0 * x) - 1.0):
        report = check_gradients(function, 0.0, order=1, raise_exception=False)
        assert report.ok is right
        assert report.worst.source == "differences"


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, -1e-3, -1e-9, -1e-15])
def test_next_to_a_kink_nothing_is_flagged(distance: float) -> None:
    assert check_gradients(wengert.relu, distance)
    assert check_gradients(lambda x: 1.0 + wengert.relu(x) * 3.0, distance)
    assert check_gradients(wengert.abs, distance)
    assert check_gradients(wengert.maximum, (1.0, 1.0 + distance))
    assert check_gradients(lambda x: wengert.clip(x, -1.0, 1.0).exp(), 1.0 + distance)


def test_hard_numbers_pass() -> None:
    assert check_gradients(lambda x: wengert.log(x), 1e-6)
    assert check_gradients(lambda x: wengert.sqrt(x), 1e-8)
    assert check_gradients(lambda x: wengert.sin(100.0 * x), 0.3)
    assert check_gradients(lambda x: x**3, 1e8)
    assert check_gradients(lambda x: 1e5 + x * x, 2.0)
    assert check_gradients(wengert.exp, 300.0)
    assert check_gradients(lambda x: x**1.5, 0.0, order=1)
    assert check_gradients(wengert.sin, 0.5, order=4)
    assert check_gradients(lambda x: (x * 1.0).sin(), Value(0.5), step=1e-2)


@pytest.mark.parametrize(
    ("function", "inputs", "names"),
    [
        (lambda a, b: a * b, [2.0, 3.0], ("a", "b")),
        (lambda a, b: a * b, (2.0, 3.0), ("a", "b")),
        (lambda a, b: a * b, {"b": 3.0, "a": 2.0}, ("a", "b")),
        (lambda a, b: a * b[0], [2.0, [3.0, 4.0]], ("a", "b[0]", "b[1]")),
        (lambda x: x[0] * x[1], [2.0, 3.0], ("x[0]", "x[1]")),
        (lambda x, scale=1.0: x[0] * x[1] * scale, [2.0, 3.0], ("x[0]", "x[1]")),
        (lambda *xs: xs[0][0] * xs[0][1], [2.0, 3.0], ("x[0]", "x[1]")),
        (lambda d: d["a"] * d["b"], {"a": 2.0, "b": 3.0}, ("d['a']", "d['b']")),
        (wengert.sum, [2.0, 3.0], ("x[0]", "x[1]")),
    ],
)
def test_a_list_holds_the_arguments_if_there_are_several(function: Any, inputs: Any, names: tuple[str, ...]) -> None:
    """As `compare` takes them; a function that takes one argument gets the list as it is."""
    report = check_gradients(function, inputs)
    assert report.inputs == names
    first_order = {c.input: c.gradient for c in report.comparisons if c.order == 1}
    if len(names) == 2 and function is not wengert.sum:
        assert first_order == {names[0]: 3.0, names[1]: 2.0}


def test_a_list_of_too_many_arguments_and_a_dict_of_too_few() -> None:
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        check_gradients(lambda a, b: a * b, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        check_gradients(lambda a, b: a * b, {"a": 1.0})


def test_a_report_shows_itself_where_it_is_the_last_line_of_a_cell() -> None:
    report = check_gradients(lambda x, y: x * y, (0.5, 2.0))
    assert repr(report) == str(report) == "the gradients are right: 6 derivatives with respect to x, y, up to order 2"


def test_models_losses_and_structures_pass() -> None:
    np = pytest.importorskip("numpy")
    model = nn.MLP(2, [4, 2], rng=random.Random(0))
    before = model.state_dict()
    report = check_gradients(model, [0.5, -1.0])
    assert model.state_dict() == before
    assert [p.grad for p in model.parameters()] == [0.0] * 22
    assert report.inputs[:3] == ("x[0]", "x[1]", "layers.0.neurons.0.w.0")
    assert len(report.comparisons) == 24 * 2 + 24 * 24
    check_gradients(wengert.losses.cross_entropy, ([0.1, 0.2, 0.3], 1))  # the class, an int, stays what it is
    check_gradients(wengert.losses.huber, ([0.1, 3.0], [0.5, -0.5]))
    check_gradients(lambda a, d: (a * a).sum() * d["k"][0], (np.array([1.0, 2.0]), {"k": (0.5, "text", 3)}))
    check_gradients(lambda x: {"all": wengert.softmax(x), "first": x[0]}, [0.1, 0.5])
    check_gradients(lambda x: 3.0, 1.0)
    compiled = wengert.compile(lambda x, y: wengert.sin(x * y) + model([x, y])[0])
    check_gradients(compiled, (0.3, 0.4))


@pytest.mark.slow
def test_many_inputs() -> None:
    report = check_gradients(lambda x: wengert.sum([a * a for a in x]), [0.01 * k for k in range(120)])
    assert report.left_out == 20
    assert "(orders from 2 on leave out 20 of the inputs)" in str(report)
    assert len(report.comparisons) == 120 + 100 * 120


# ------------------------------------------------------------------------------------- what is wrong fails

WRONG: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[float, ...], int]] = {
    "a factor": (lambda x: x * x, lambda out, x: 2.001 * x, (1.5,), 1),
    "a sign": (math.cos, lambda out, x: wengert.sin(x), (0.7,), 1),
    "swapped": (lambda x, y: x * x * y, lambda out, x, y: (x * x, 2 * x * y), (2.0, 3.0), 1),
    "a term": (lambda x: x * math.sin(x), lambda out, x: x * wengert.cos(x), (0.7,), 1),
    "one operand": (lambda x, y: x * y, lambda out, x, y: (y, 0.0), (2.0, 3.0), 1),
    "one of many": (
        lambda *xs: sum(x * x for x in xs),
        lambda out, *xs: [*[2 * x for x in xs[:-1]], 0.0],
        (1.0, 2.0, 3.0),
        1,
    ),
    "small": (lambda x: 1e3 + x, lambda out, x: 1.00001, (1.0,), 1),
    "by out": (math.tanh, lambda out, x: 1.0 + out * out, (0.5,), 1),
    "a constant": (lambda x: x**3, lambda out, x: 3.0 * x * wengert.stop_gradient(x), (2.0,), 2),
    "a second factor": (math.exp, lambda out, x: out + (x - wengert.stop_gradient(x)), (0.5,), 2),
    "a kink's value": (lambda x: max(x, 0.0), lambda out, x: 2.0 if x > 0.0 else 0.0, (1e-9,), 1),
    "outside a kink": (lambda x: abs(x), lambda out, x: 1.5 if x >= 0.0 else -1.0, (0.0,), 1),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_rules_fail(what: str) -> None:
    value, partials, numbers, order = WRONG[what]
    wrong = wengert.op("wrong", value=value, partials=partials, arity=len(numbers))
    report = check_gradients(wrong, numbers, raise_exception=False)
    assert not report
    assert not report.ok
    assert report.worst.order == order
    assert not report.worst.ok
    assert report.worst.error > report.worst.allowed
    with pytest.raises(GradientError, match="the gradients of wrong are wrong, worst with respect to x") as caught:
        check_gradients(wrong, numbers)
    assert isinstance(caught.value, (WengertError, AssertionError))
    assert str(caught.value) == str(caught.value.report) == str(report)
    if order == 2:
        assert check_gradients(wrong, numbers, order=1)


def test_the_worst_input_is_named() -> None:
    fault = wengert.op("fault", value=lambda x: x * x, partials=lambda out, x: 2.1 * x)
    report = check_gradients(lambda x: wengert.sum([x[0], fault(x[1]), x[2]]), [1.0, 2.0, 3.0], raise_exception=False)
    assert (report.worst.input, report.worst.order) == ("x[1]", 1)
    assert (report.worst.gradient, report.worst.expected) == pytest.approx((4.2, 4.0))
    text = str(report)
    assert text.splitlines()[0] == (
        "the gradients of the function are wrong, worst with respect to x[1]: "
        "the derivative of the function is 4.2, but differences give 4"
    )
    assert text.splitlines()[2].split()[:5] == ["order", "output", "input", "gradient", "expected"]
    assert text.splitlines()[3].split()[:6] == ["1", "the", "function", "x[1]", "4.2", "4"]

    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.Neuron(1, activation="tanh"), {"odd": Value(0.5)}]

        def __call__(self, x: Any) -> Any:
            return self.layers[0]([x]) * fault(self.layers[1]["odd"])  # type: ignore[operator, index]

    random.seed(1)
    report = check_gradients(Net(), 0.3, raise_exception=False)
    assert report.worst.input == "layers.1.odd"
    many = check_gradients(lambda x: wengert.sum([fault(a) for a in x]), [1.0] * 30, raise_exception=False)
    assert "and 20 more" in str(many)
    assert "... (30 in all)" in str(many)


def test_a_graph_that_was_cut_fails() -> None:
    report = check_gradients(lambda x: x.data * x, 2.0, raise_exception=False)
    assert (report.worst.gradient, report.worst.expected) == pytest.approx((2.0, 4.0))
    assert not check_gradients(lambda x: wengert.stop_gradient(x) * x, 2.0, raise_exception=False)


@pytest.mark.parametrize(
    ("function", "x", "told"),
    [
        (wengert.sqrt, 0.0, "inf"),
        (wengert.log, -1.0, "nan"),
        (lambda x: 1.0 / x, 0.0, "-inf"),
        (wengert.exp, 1e3, "inf"),
    ],
)
def test_what_is_not_finite_is_named(function: Any, x: float, told: str) -> None:
    report = check_gradients(lambda p: function(p["rate"][0]) + 0.0 * p["b"], {"rate": [x], "b": 1.0}, order=1,
                             raise_exception=False)  # fmt: skip
    assert report.worst.input == "p['rate'][0]"
    assert report.worst.error == inf
    assert f"worst with respect to p['rate'][0]: the derivative of the function is {told}" in str(report)


def test_the_point_is_restored_whatever_is_raised() -> None:
    model = nn.MLP(1, [1], rng=random.Random(0))
    state = model.state_dict()
    calls = []

    def fails(x: Any) -> Any:
        calls.append(x)
        if len(calls) > 5:
            raise KeyError("halfway")
        return model([x])

    fails.named_parameters = model.named_parameters  # type: ignore[attr-defined]
    with pytest.raises(KeyError):
        check_gradients(fails, 0.5)
    assert model.state_dict() == state


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"order is 0; expected an int >= 1"):
        check_gradients(wengert.exp, 1.0, order=0)
    for step in (-1.0, 0.0, math.nan, inf, "small"):
        with pytest.raises(ArgumentError, match=r"step is .*; expected a number above 0"):
            check_gradients(wengert.exp, 1.0, step=step)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"step is 1e-20, too small to change x = 1\.0"):
        check_gradients(wengert.exp, 1.0, step=1e-20)
    wrong: tuple[Any, ...] = (-1e-6, math.nan, "1", None)
    for tolerance in wrong:
        with pytest.raises(ArgumentError, match=r"rtol is .*; expected a number >= 0"):
            check_gradients(wengert.exp, 1.0, rtol=tolerance)
        with pytest.raises(ArgumentError, match=r"atol is .*; expected a number >= 0"):
            check_gradients(wengert.exp, 1.0, atol=tolerance)
    with pytest.raises(ArgumentError, match=r"there is no float among the inputs of exp to vary: write 1\.0 for 1"):
        check_gradients(wengert.exp, 1)
    with pytest.raises(ArgumentError, match="returned no number: did it forget to return its result"):
        check_gradients(lambda x: None, 1.0)
    with pytest.raises(ArgumentError, match="returns different results for the same inputs"):
        check_gradients(lambda x: x * random.random(), 1.0)
    wave = wengert.op("wave", value=math.sin, partials=lambda out, x: math.cos(x), arity=1)
    assert check_gradients(wave, 0.5, order=1)
    with pytest.raises(OperationError, match="wave has no further derivative"):
        check_gradients(wave, 0.5)
    with wengert.no_grad():
        assert check_gradients(wengert.exp, 1.0)


# ------------------------------------------------------------------------------------- the tape, replayed


def test_a_replay_is_the_function_where_nothing_bends() -> None:
    x, y = Value(0.5), Value(2.0)

    def f(x: Any, y: Any) -> list[Any]:
        return [wengert.dot([x, 2.0], [y, x], 1) * x.tanh() - 3 / y, y**2, 7.0]

    outputs = f(x, y)
    replay = Replay(Graph(*outputs[:2]), outputs)
    for to in (0.5, -1.25, 3.0):
        assert replay.moved(x)(to) == pytest.approx([v if isinstance(v, float) else v.data for v in f(Value(to), y)])
    assert replay.moved(Value(1.0))(9.0) == pytest.approx([v if isinstance(v, float) else v.data for v in outputs])
    assert not replay.has_kink(x)


def test_a_replay_makes_kinks_straight() -> None:
    x = Value(0.0)
    y = wengert.relu(x) + wengert.maximum(x, 0.0) * 4.0 + wengert.abs(x - 1.0)
    replay = Replay(Graph(y), [y])
    assert replay.has_kink(x)
    assert replay.moved(x)(3.0) == [0.0 * 3.0 + 0.5 * 3.0 * 4.0 + (1.0 - 3.0)]
