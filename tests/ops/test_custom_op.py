"""`wengert.op`: an operation of one's own behaves like a built-in one, and a wrong registration says what is wrong."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value, ops
from wengert.errors import OperationError
from wengert.graph import Graph
from wengert.ops import op as table


def slopes(y: Value, *leaves: Value) -> list[float]:
    for leaf in leaves:
        leaf.grad = 0.0
    y.backward()
    return [leaf.grad for leaf in leaves]


# ------------------------------------------------------------------------------------- it works like a built-in one


def test_of_one_operand() -> None:
    cube = wengert.op("cube", value=lambda x: x**3, partials=lambda out, x: 3 * x**2, symbol="x³")
    x = Value(2.0)
    for y in (cube(x), x.cube()):  # type: ignore[attr-defined]
        assert (y.data, y._op, y._prev, slopes(y, x)) == (8.0, "x³", (x,), [12.0])
    assert (cube(3), type(cube(3)), cube(3.0)) == (27.0, float, 27.0)
    assert cube.__name__ == "cube"
    listed = wengert.op("listed", value=lambda x: 2 * x, partials=lambda out, x: [2])
    assert slopes(listed(x), x) == [2.0]


def test_of_two_operands() -> None:
    area = wengert.op("area", value=lambda x, y: x * y, partials=lambda out, x, y: (y, x))
    x, y = Value(2.0), Value(3.0)
    by_method = x.area(y)  # type: ignore[attr-defined]
    for z, expected in (
        (area(x, y), [3.0, 2.0]),
        (by_method, [3.0, 2.0]),
        (area(x, 5), [5.0, 0.0]),
        (area(5, y), [0.0, 5.0]),
    ):
        assert slopes(z, x, y) == expected
    assert (area(x, x)._prev, area(5, x)._operands, area(x, 5)._operands) == ((x, x), (5.0, x), (x, 5.0))


def test_of_three_and_of_any_number() -> None:
    mix = wengert.op("mix", value=lambda t, a, b: a + t * (b - a), partials=lambda out, t, a, b: (b - a, 1 - t, t))
    t, a, b = Value(0.25), Value(1.0), Value(5.0)
    assert (mix(t, a, b).data, slopes(t.mix(a, b), t, a, b)) == (2.0, [4.0, 0.75, 0.25])  # type: ignore[attr-defined]
    assert slopes(mix(0.5, a, 2), t, a, b) == [0.0, 0.5, 0.0]
    squares = wengert.op(
        "squares", value=lambda *xs: sum(x * x for x in xs), partials=lambda out, *xs: [2 * x for x in xs]
    )
    for y in (squares([t, a, b]), squares(t, a, b), squares(x for x in (t, a, b))):
        assert (y.data, slopes(y, t, a, b)) == (26.0625, [0.5, 2.0, 10.0])
    assert squares(1, 2.0) == 5.0
    assert not hasattr(a, "squares")
    with pytest.raises(ValueError, match="squares got no values"):
        squares([])


def test_higher_derivatives_follow() -> None:
    row = ops.BY_NAME
    wengert.op("cube", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    wengert.op("wave", value=lambda x: math.sin(x), partials=lambda out, x: wengert.cos(x))
    wengert.op("own_exp", value=math.exp, partials=lambda out, x: out, arity=1)
    for name, second in (("cube", lambda x: 6 * x), ("wave", lambda x: -math.sin(x)), ("own_exp", math.exp)):
        x = Value(0.7)
        partial = row[name].graph_partials(row[name](x), x)
        assert slopes(partial, x) == [pytest.approx(second(0.7), rel=1e-15)]


def test_in_graphs_and_copies() -> None:
    cube = wengert.op("cube", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    area = wengert.op("area", value=lambda x, y: x * y, partials=lambda out, x, y: (y, x))
    x = Value(2.0, label="x")
    y = area(3, cube(x)) + x
    graph = Graph(y)
    assert [(op.name, operands) for op, operands, _ in graph] == [
        ("leaf", ()),
        ("cube", (0,)),
        ("area", (3.0, 1)),
        ("add", (2, 0)),
    ]
    twin = copy.deepcopy(y)
    (leaf,) = [v for v in Graph(twin).values if v.label == "x"]
    assert (twin.data, slopes(twin, leaf), x.grad) == (26.0, [37.0], 0.0)
    with wengert.no_grad():
        assert cube(x)._prev == ()


def test_numbers_of_any_kind_from_a_rule() -> None:
    np = pytest.importorskip("numpy")
    whole = wengert.op("whole", value=lambda x: int(x), partials=lambda out, x: 1)
    x = Value(2.5)
    y = whole(x) * x
    assert (type(y.data), slopes(y, x), type(x.grad), type(whole(2.5))) == (float, [4.5], float, float)
    scalar = wengert.op("scalar", value=lambda x: np.float32(2) * x, partials=lambda out, x: np.float64(2.0))
    y = scalar(x)
    assert (type(y.data), slopes(y, x), type(x.grad)) == (float, [2.0], float)


def test_the_number_of_operands_is_read_or_given() -> None:
    hypot = wengert.op("my_hypot", value=math.hypot, partials=lambda out, x, y: (x / out, y / out), arity=2)
    x = Value(3.0)
    assert slopes(hypot(x, 4.0), x) == [0.6]
    power = wengert.op("my_pow", value=math.pow, partials=lambda out, x, y: (y * x ** (y - 1), 0.0))
    assert slopes(power(x, 2), x) == [6.0]
    some = wengert.op("some", value=lambda xs, *rest: xs, partials=lambda out, *xs: [1.0] + [0.0] * (len(xs) - 1))
    assert slopes(some([x, 2.0, 3.0]), x) == [1.0]
    named = wengert.op("named", value=lambda x, *, k=2.0: k * x, partials=lambda out, x: 2.0)
    assert named(x).data == 6.0


def test_a_number_of_operands_that_cannot_be_read() -> None:
    class Unreadable:
        __signature__ = "nonsense"

        def __call__(self, x: float) -> float:
            return 2 * x

    with pytest.raises(OperationError, match="twice: the number of operands cannot be read from value"):
        wengert.op("twice", value=Unreadable(), partials=lambda out, x: 2.0)
    assert wengert.op("twice", value=Unreadable(), partials=lambda out, x: 2.0, arity=1)(3) == 6.0


def test_registering_again_replaces_it_for_new_nodes() -> None:
    first = wengert.op("mine", value=lambda x: 2 * x, partials=lambda out, x: 2.0, symbol="first")
    x = Value(3.0)
    old = first(x)
    second = wengert.op("mine", value=lambda x, y: x * y, partials=lambda out, x, y: (y, x), symbol="second")
    new = x.mine(4)  # type: ignore[attr-defined]
    assert (old.data, old._op, old._prev, slopes(old, x)) == (6.0, "first", (x,), [2.0])
    assert (new.data, new._op, slopes(new, x)) == (12.0, "second", [4.0])
    assert (first(x).data, second(x, 1).data) == (6.0, 3.0)
    assert [op.symbol for op, _, _ in Graph(old, new)] == ["", "first", "second"]
    wengert.op("mine", value=lambda *xs: sum(xs), partials=lambda out, *xs: [1.0] * len(xs))
    assert not hasattr(x, "mine")


# ------------------------------------------------------------------------------------- without partials

SMOOTH: list[tuple[Callable[[float], float], Callable[[float], float]]] = [
    (math.exp, math.exp),
    (math.sin, math.cos),
    (math.log, lambda x: 1 / x),
    (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    (lambda x: x**10, lambda x: 10 * x**9),
    (lambda x: math.sin(30 * x), lambda x: 30 * math.cos(30 * x)),
    (lambda x: math.tanh(20 * x), lambda x: 20 / math.cosh(20 * x) ** 2),
    (lambda x: 1.0, lambda x: 0.0),
]


@pytest.mark.parametrize("place", range(len(SMOOTH)))
def test_differences_are_as_good_as_the_documentation_says(place: int) -> None:
    value, slope = SMOOTH[place]
    calls = []

    def counted(x: float) -> float:
        calls.append(x)
        return value(x)

    by_values = wengert.op("by_values", value=counted, partials="differences")
    rng = random.Random(place)
    for _ in range(50):
        x = Value(rng.uniform(0.05, 5.0))
        calls.clear()
        assert slopes(by_values(x), x) == [pytest.approx(slope(x.data), rel=1e-9, abs=1e-9 * abs(value(x.data)))]
        assert len(calls) <= 46  # one of them for the value


def test_differences_of_several_operands() -> None:
    by_values = wengert.op("by_values", value=lambda x, y: math.pow(x, y) + x, partials="differences")
    x, y = Value(2.0), Value(3.0)
    for z, expected in ((by_values(x, y), [13.0, 8.0 * math.log(2.0)]), (by_values(x, 3), [13.0, 0.0])):
        assert slopes(z, x, y) == pytest.approx(expected, rel=1e-11)
    of_many = wengert.op("of_many", value=lambda *xs: sum(x * x for x in xs), partials="differences")
    assert slopes(of_many([x, y, 5.0]), x, y) == pytest.approx([4.0, 6.0], rel=1e-12)
    assert of_many(1.0, 2.0) == 5.0
    assert wengert.jacobian(lambda v: [by_values(v[0], v[1]), of_many(v)])([2.0, 3.0]) == [
        pytest.approx([13.0, 8.0 * math.log(2.0)]),
        pytest.approx([4.0, 6.0]),
    ]


def test_differences_at_an_edge() -> None:
    root = wengert.op("by_values", value=lambda x: math.sqrt(x), partials="differences")
    x = Value(0.01)  # the first steps leave the domain
    assert slopes(root(x), x) == [pytest.approx(5.0, rel=1e-9)]
    size = wengert.op("by_values", value=abs, partials="differences", arity=1)
    x = Value(0.0)
    assert slopes(size(x), x) == [0.0]
    for number in (math.inf, math.nan):
        x = Value(number)
        assert math.isnan(slopes(size(x), x)[0])


def test_differences_have_no_further_derivatives() -> None:
    by_values = wengert.op("by_values", value=lambda x: math.sin(x), partials="differences")
    assert wengert.grad(by_values)(0.5) == pytest.approx(math.cos(0.5), rel=1e-11)
    with pytest.raises(OperationError, match=r"by_values has no further derivative: .* \(they are differences"):
        wengert.hessian(by_values)(0.5)


@pytest.mark.once
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_differences_in_a_compiled_function(backend: str) -> None:
    """Also of a function that takes nothing but a float: a table of another package, say."""
    pytest.importorskip("numpy")

    def value(x: float, y: float) -> float:
        return float(format(x * y, ".17g")) * math.exp(y)

    by_values = wengert.op("by_values", value=value, partials="differences")
    w = Value(1.5)
    compiled = wengert.compile(lambda y: by_values(w, y) * w, backend=backend)
    for y in (0.5, 0.75, -1.0):
        assert slopes(compiled(y), w) == [pytest.approx(2.0 * w.data * y * math.exp(y), rel=1e-10)]
    slope = wengert.compile(wengert.grad(lambda x: by_values(x, 0.5) * x), backend=backend)
    for x in (0.5, 2.0):
        assert slope(x) == pytest.approx(x * math.exp(0.5), rel=1e-10)
    assert "error in the compiler" not in compiled.report() + slope.report()


# ------------------------------------------------------------------------------------- what is wrong is said


def double(x: float) -> float:
    return 2 * x


def two(out: Any, x: Any) -> float:
    return 2.0


@pytest.mark.parametrize("name", ["tanh", "arcsin", "leaf", "add", "pow", "where", "sum"])
def test_built_in_names(name: str) -> None:
    with pytest.raises(OperationError, match=f"{name} is a built-in operation: choose another name"):
        wengert.op(name, value=double, partials=two)


@pytest.mark.parametrize("name", ["", "a b", "3d", "class", "lambda", "_hidden", None, 3, "x.y"])
def test_what_is_no_name(name: Any) -> None:
    with pytest.raises(OperationError, match="is not allowed: use an identifier without a leading underscore"):
        wengert.op(name, value=double, partials=two)


@pytest.mark.parametrize("name", ["data", "grad", "label", "backward", "detach", "item", "is_leaf", "mro"])
def test_names_that_a_value_has(name: str) -> None:
    with pytest.raises(OperationError, match=f"{name} is an attribute of every Value: choose another name"):
        wengert.op(name, value=double, partials=two)


@pytest.mark.parametrize("arity", [0, -2, 1.0, "2", True])
def test_impossible_numbers_of_operands(arity: Any) -> None:
    with pytest.raises(OperationError, match=r"twofold has arity .*; expected an int >= 1, or None for any number"):
        wengert.op("twofold", value=double, partials=two, arity=arity)


def test_an_operation_of_no_operands() -> None:
    with pytest.raises(OperationError, match="expected an int >= 1"):
        wengert.op("constant", value=lambda: 1.0, partials=lambda out: ())


@pytest.mark.parametrize(
    ("value", "partials", "role"),
    [
        (3.0, two, "value"),
        (double, 2.0, "partials"),
        (None, two, "value"),
        (double, "difference", "partials"),
        ("differences", two, "value"),
    ],
)
def test_rules_that_cannot_be_called(value: Any, partials: Any, role: str) -> None:
    with pytest.raises(OperationError, match=f"the {role} of twofold must be a function, not "):
        wengert.op("twofold", value=value, partials=partials, arity=1)


def test_a_symbol_is_a_string() -> None:
    with pytest.raises(OperationError, match="the symbol of twofold is 3; expected a string, for drawings"):
        wengert.op("twofold", value=double, partials=two, symbol=3)  # type: ignore[arg-type]


def test_nothing_is_registered_by_a_mistake() -> None:
    rows, names = list(ops.TABLE), dict(ops.BY_NAME)
    wrong: list[dict[str, Any]] = [{"name": "tanh"}, {"name": "9"}, {"name": "data"}]
    wrong += [{"arity": 0}, {"value": 3.0}, {"partials": None}]
    for arguments in wrong:
        with pytest.raises(OperationError):
            wengert.op(**{"name": "twofold", "value": double, "partials": two, **arguments})
    assert rows == ops.TABLE
    assert names == ops.BY_NAME
    assert not hasattr(Value, "twofold")


def test_a_full_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "LEFT", len(ops.TABLE))
    with pytest.raises(OperationError, match="the table is full"):
        wengert.op("twofold", value=double, partials=two)


BAD_PARTIALS: list[tuple[int, Callable[..., Any]]] = [
    (1, lambda out, x: (1.0, 2.0)),
    (1, lambda out, x: []),
    (2, lambda out, x, y: (1.0,)),
    (2, lambda out, x, y: 1.0),
    (2, lambda out, x, y: [1.0] * 3),
    (2, lambda out, x, y: None),
    (3, lambda out, x, y, z: (1.0, 2.0)),
]


@pytest.mark.parametrize(("arity", "partials"), BAD_PARTIALS)
def test_partials_of_a_wrong_number(arity: int, partials: Callable[..., Any]) -> None:
    bad = wengert.op("bad", value=lambda *xs: 1.0, partials=partials, arity=arity)
    with pytest.raises(OperationError, match="bad: expected a partial derivative for each operand, not"):
        bad(*[Value(1.0)] * arity)


@pytest.mark.parametrize("wrong", [None, "x", 1j, [1.0]])
def test_rules_that_return_no_number(wrong: Any) -> None:
    x = Value(1.0)
    for arity in (1, 2, 3):
        op = wengert.op("bad", value=lambda *xs: wrong, partials=lambda out, *xs: [1.0] * len(xs), arity=arity)
        with pytest.raises((TypeError, ValueError)):
            op(*[x] * arity)
        op = wengert.op("bad", value=lambda *xs: 1.0, partials=lambda out, *xs: [wrong] * len(xs), arity=arity)
        with pytest.raises((TypeError, ValueError)):
            op(*[x] * arity)


def test_operands_are_counted() -> None:
    f = wengert.op("twofold", value=double, partials=two)
    with pytest.raises(ValueError, match="twofold takes 1 operand, got 2"):
        f(Value(1.0), 2.0)
    with pytest.raises(ValueError, match="twofold takes 1 operand, got 0"):
        f()
    with pytest.raises(TypeError, match="str 'x'"):
        f("x")
