"""A Value among numbers: what it is made from, what it computes with, how it compares, prints and is kept."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import weakref
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from operator import add, ge, gt, le, lt, mod, mul, pow, sub, truediv
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.errors import MissingExtraError, OperandError, WengertError, require
from wengert.ops import BY_NAME

OPERATORS = [add, sub, mul, truediv, pow]
NUMBERS = [2, True, 2.5, Fraction(1, 4)]
FOREIGN: list[tuple[Any, str]] = [
    ("x", r"str 'x': convert it with float"),
    (b"x", r"bytes b'x': convert it with float"),
    (None, r"None: did a function forget to return its result\?"),
    (1j, r"complex 1j: a Value is real: use its \.real and \.imag"),
    (Decimal("1.5"), r"Decimal .*: convert it with float\(\.\.\.\), which rounds"),
    ([1.0], r"list \[1\.0\]: use its items one by one, or wengert\.dot and wengert\.sum"),
    ((1.0,), r"tuple .*: use its items one by one \(is a parenthesis or a comma misplaced\?\)"),
    ({"a": 1.0}, r"dict .*: use its values one by one"),
    ({1.0}, r"set .*: use its items one by one"),
]
PARTNERS = [x for x, _ in FOREIGN]

# ------------------------------------------------------------------------------------- data


def shown(x: object) -> str:
    """The name of a case: without an address, so that it is the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(x))


@pytest.mark.parametrize("number", NUMBERS, ids=shown)
def test_data_is_a_float(number: Any) -> None:
    x = Value(number)
    assert type(x.data) is float
    assert x.data == float(number)
    x.data = x.grad = number
    assert (type(x.data), type(x.grad)) == (float, float)
    assert x.data == x.grad == float(number)


@pytest.mark.parametrize(("number", "expected"), [(10**400, math.inf), (-(10**400), -math.inf)])
def test_numbers_beyond_the_largest_float(number: int, expected: float) -> None:
    for large in (number, Fraction(number)):
        assert Value(large).data == (Value(1.0) + large).data == (large + Value(1.0)).data == expected
        assert wengert.dot([Value(1.0)], [large]).data == expected
        assert (Value(0.0) < large) == (expected > 0)


OBJECTS = [(object(), "convert it with float"), (float, "float")]


@pytest.mark.parametrize(("bad", "advice"), [*FOREIGN, *OBJECTS], ids=shown)
def test_what_cannot_be_data(bad: Any, advice: str) -> None:
    x = Value(1.5)
    advice = r"make a list of Values, .*wengert\.compile" if isinstance(bad, list) else advice
    with pytest.raises(OperandError, match=rf"(?s)expected one real number, not .*{advice}"):
        Value(bad)
    for name in ("data", "grad"):
        if (name, bad) != ("grad", None):
            with pytest.raises(OperandError, match=rf"(?s)expected one real number, not .*{advice}"):
                setattr(x, name, bad)
    assert (x.data, x.grad) == (1.5, 0.0)


def test_a_gradient_set_to_none_is_zero() -> None:
    x = Value(2.0)
    (x * x).backward()
    x.grad = None  # type: ignore[assignment]  # as PyTorch's zero_grad() does
    assert x.grad == 0.0
    (x * x).backward()
    assert x.grad == 4.0


def test_data_from_arrays_and_tensors_without_dimension() -> None:
    import numpy as np

    x = Value(np.array(1.5))
    assert (type(x.data), x.data) == (float, 1.5)
    x.data = np.array(2)  # type: ignore[assignment]
    assert x.data == 2.0
    for bad in (np.array([1.0, 2.0]), np.array([1.0])):
        with pytest.raises(OperandError, match=r"make a list of Values, \[Value\(e\) for e in x\].*wengert\.compile"):
            Value(bad)


@pytest.mark.torch
def test_data_from_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    assert Value(torch.tensor(2.5)).data == 2.5
    assert Value(torch.tensor(2.5, requires_grad=True)).data == 2.5


@pytest.mark.parametrize(
    ("written", "use", "instead"),
    [
        ("int(v)", int, r"int\(v\.data\)"),
        ("round(v)", round, r"round\(v\.data, digits\)"),
        ("round(v, 2)", lambda v: round(v, 2), r"round\(v\.data, digits\)"),
        ("v // 2", lambda v: v // 2, r"v\.data // w"),
        ("7 // v", lambda v: 7 // v, r"w // v\.data"),
        ("v % 2", lambda v: v % 2, r"v\.data % w"),
        ("7 % v", lambda v: 7 % v, r"w % v\.data"),
        ("v @ v", lambda v: v @ v, r"wengert\.dot"),
        ("'%.2f' % v", lambda v: mod("%.2f", v), "Value" if sys.version_info >= (3, 15) else r"v\.data"),
        ("float(v)", float, r"v\.data"),
    ],
)
def test_what_takes_the_number_out_says_what_to_write(written: str, use: Any, instead: str) -> None:
    with pytest.raises(TypeError, match=instead):
        use(Value(2.5))


def test_the_square_of_an_object_array_at_0_gives_no_warning() -> None:
    import numpy as np

    x = Value(0.0)
    (y,) = np.array([x]) ** 2
    y.backward()
    assert (y.data, x.grad) == (0.0, 0.0)


@pytest.mark.parametrize("exponent", [3.0, 2, 1.5, 1, 0.5, 0, -0.5, -1, -2, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("base", [0.0, -0.0])
def test_the_power_of_0_is_that_of_its_row(base: float, exponent: float) -> None:
    x = Value(base)
    y = x**exponent
    y.backward()
    row = BY_NAME["pow"]
    expected = row.value(base, exponent)
    assert repr((y.data, x.grad)) == repr((expected, 0.0 + row.partials(expected, base, exponent)[0]))


def test_the_source_of_backward_is_found_though_it_is_compiled() -> None:
    import inspect

    text = inspect.getsource(Value.backward)
    assert "def backward(self, gradient" in text
    assert "_backward_pass(self" in text
    assert list(inspect.signature(Value.backward).parameters) == ["self", "gradient", "retain_graph", "create_graph"]
    with pytest.raises(TypeError if wengert.engine.compiled else AttributeError):
        Value.backward(3.0)  # type: ignore[arg-type]
    with pytest.raises(OperandError):
        Value.backward(None)  # type: ignore[arg-type]


def test_backward_takes_pytorchs_retain_graph() -> None:
    x = Value(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad == 12.0


def test_a_copy_of_a_result_is_a_leaf() -> None:
    import copy

    x = Value(3.0, "x")
    for y in (x * 2, wengert.sum(x, x, x, 1.0)):
        twin = copy.copy(y)
        assert (type(twin), twin.data, twin.grad, twin._prev, twin.is_leaf) == (Value, y.data, 0.0, (), True)
    x.grad = 5.0
    twin = copy.copy(x)
    assert (twin.data, twin.grad, twin.label, twin is x) == (3.0, 5.0, "x", False)


def test_a_value_cannot_be_data() -> None:
    with pytest.raises(OperandError, match=r"a Value already: use it directly, or read its \.data"):
        Value(Value(1.0))


def test_errors_are_of_the_tree_and_of_the_built_in_kind() -> None:
    with pytest.raises(TypeError) as caught:
        Value("2")
    assert isinstance(caught.value, WengertError)


def test_a_library_that_is_not_installed() -> None:
    assert require("json", "plot").__name__ == "json"
    with pytest.raises(MissingExtraError, match=r"pip install no_such_library \(the extra") as caught:
        require("no_such_library", "plot")
    assert isinstance(caught.value, ImportError)


def test_a_long_operand_is_cut_in_the_message() -> None:
    with pytest.raises(OperandError, match=r"not str 'a{36}\.\.\.: "):
        Value("a" * 1000)


# ------------------------------------------------------------------------------------- operands


@pytest.mark.parametrize("number", NUMBERS, ids=shown)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_with_a_number_on_either_side(operator: Callable[..., Any], number: Any) -> None:
    x = Value(1.5)
    for left, right, a, b in ((x, number, 1.5, float(number)), (number, x, float(number), 1.5)):
        y = operator(left, right)
        assert type(y) is Value
        assert y.data == operator(a, b)
        assert [type(o) for o in y._operands] == [Value if o is x else float for o in y._operands]


@pytest.mark.parametrize(("bad", "advice"), FOREIGN, ids=shown)
def test_what_no_operator_takes(bad: Any, advice: str) -> None:
    x = Value(2.0)
    for operator in (*OPERATORS, lt, le, gt, ge):
        for left, right in ((x, bad), (bad, x)):
            with pytest.raises(OperandError, match=rf"(?s)computes with numbers and Values, not with .*{advice}"):
                operator(left, right)
    for function in (wengert.hypot, lambda a, b: wengert.sum([a, b]), lambda a, b: wengert.dot([a], [b])):
        with pytest.raises(OperandError, match=advice):
            function(x, bad)


@pytest.mark.parametrize("bad", [object(), float, frozenset(), range(3), print], ids=shown)
def test_any_other_operand_gets_its_turn(bad: Any) -> None:
    x = Value(2.0)
    for operator in (*OPERATORS, lt, le, gt, ge):
        for left, right in ((x, bad), (bad, x)):
            with pytest.raises(TypeError, match=r"not supported|unsupported"):
                operator(left, right)
    assert (x == bad, x != bad, bad == x) == (False, True, False)
    with pytest.raises(OperandError, match="expected one real number, not"):
        wengert.atan2(x, bad)


def test_a_type_that_knows_values() -> None:
    class Shift:
        def __radd__(self, x: Any) -> str:
            return f"{x.data} shifted"

        def __gt__(self, x: Any) -> str:
            return "compared"

        def __eq__(self, x: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert Value(2.0) + Shift() == "2.0 shifted"
    assert str(Value(2.0) < Shift()) == "compared"
    assert Value(2.0) == Shift()


def test_nan_is_a_number() -> None:
    x = Value(2.0)
    for operator in OPERATORS:
        assert math.isnan(operator(x, math.nan).data)
        assert math.isnan(operator(math.nan, x).data)
    y = Value(math.nan)
    y.backward(math.nan)
    y.backward(Value(math.nan))
    assert math.isnan(y.grad)


def test_sums() -> None:
    values = [Value(i) for i in range(5)]
    total: Any = sum(values)
    assert (total.data, sum([])) == (10.0, 0)
    assert (wengert.sum(values).data, wengert.sum([])) == (10.0, 0.0)
    assert wengert.sum(v for v in values).data == 10.0


def test_max_min_and_sorted_of_python() -> None:
    a, b = Value(1.0), Value(2.0)
    assert (max(a, b), min(a, b), sorted([b, a]), max([a, b])) == (b, a, [a, b], b)
    assert min(a, 0.5, b) == 0.5


@pytest.mark.parametrize(("base", "exponent"), [(-8.0, 1 / 3), (-2.0, 0.5), (-0.5, -1.5)])
def test_a_negative_base_with_a_fractional_exponent_is_nan(base: float, exponent: float) -> None:
    for y in (Value(base) ** exponent, base ** Value(exponent), Value(base) ** Value(exponent)):
        assert math.isnan(y.data)
    assert math.isnan(wengert.pow(base, exponent))


def test_what_has_no_meaning_for_a_value() -> None:
    x = Value(2.0)
    assert +x is x
    for function in (lambda: x // 2, lambda: x % 2, lambda: divmod(x, 2), lambda: x[0], lambda: x @ x, lambda: [1][x]):  # type: ignore[operator,index,call-overload]
        with pytest.raises(TypeError):
            function()
    with pytest.raises(TypeError):
        pow(x, 2, 5)  # type: ignore[call-arg]


FLOAT_ONLY: list[Callable[[Any], Any]] = [float, math.exp, math.sqrt, math.floor, complex]
FLOAT_ONLY += [lambda v: math.fsum([v])]


@pytest.mark.parametrize("function", FLOAT_ONLY)
def test_a_gradient_is_never_lost_silently(function: Callable[[Any], Any]) -> None:
    with pytest.raises(OperandError, match=r"a Value is not a float: read v\.data, or call v\.exp\(\)"):
        function(Value(0.5))


def test_a_value_is_not_formatted_as_a_float() -> None:
    with pytest.raises(TypeError, match="Value" if sys.version_info >= (3, 15) else r"read v\.data"):
        "%f".__mod__(Value(0.5))  # since 3.15 the error is Python's own


# ------------------------------------------------------------------------------------- comparisons and hashing


@pytest.mark.parametrize("other", [1, 2.0, 3, Fraction(5, 2), Value(2.0), Value(3.0), math.nan])
def test_order_is_that_of_data(other: Any) -> None:
    x, number = Value(2.0), other.data if isinstance(other, Value) else other
    for operator in (lt, le, gt, ge):
        assert operator(x, other) is bool(operator(2.0, number))
        assert bool(operator(other, x)) is bool(operator(number, 2.0))


def test_equality_with_a_number_and_with_a_value() -> None:
    x, twin = Value(2.0), Value(2.0)
    assert x == 2
    assert x == 2.0 == x
    assert x == Fraction(2)
    assert x != 3
    assert Value(1.0) == True  # noqa: E712  (a bool is a number)
    assert not x != 2.0  # noqa: SIM202
    assert x == x
    assert x != twin
    assert Value(math.nan) != math.nan
    for other in PARTNERS:
        assert (x == other) is False
        assert x != other


def test_values_live_in_sets_and_dicts() -> None:
    a, b = Value(1.0), Value(1.0)
    assert len({a, b, a}) == 2
    names = {a: "a", b: "b"}
    a.data = b.data = 7.0
    assert (names[a], names[b]) == ("a", "b")
    assert a in [b, a]
    assert len({hash(Value(1.0)) for _ in range(1)} | {hash(a), hash(b)}) >= 2


def test_truth_is_that_of_data() -> None:
    assert [bool(Value(x)) for x in (0.0, -0.0, 1e-320, -1.0, math.nan)] == [False, False, True, True, True]


# ------------------------------------------------------------------------------------- how it is written


def test_format_and_repr() -> None:
    x = Value(2 / 3)
    assert (f"{x:.4f}", f"{x:>10.2f}", f"{x:e}", format(x, "g")) == ("0.6667", "      0.67", "6.666667e-01", "0.666667")
    assert repr(x) == str(x) == f"{x}" == "Value(data=0.6666666666666666, grad=0.0)"
    x.backward(0.5)
    assert repr(x) == "Value(data=0.6666666666666666, grad=0.5)"
    with pytest.raises(ValueError, match="format"):
        f"{x:nonsense}"


def test_labels() -> None:
    x = Value(1.0, label="x")
    assert (x.label, Value(1.0, "y").label, Value(1.0).label, (x + 1).label) == ("x", "y", "", "")
    x.label = "something else"
    (x * 2).backward()
    assert x.label == "something else"
    x.label = 3
    assert x.label == "3"
    x.label = ""
    assert x.label == ""
    y = x + 1
    y.label = "<script>alert('ünïcode \N{SNOWMAN}')</script>" * 50
    assert y.label.count("\N{SNOWMAN}") == 50
    assert (y.data, y._op) == (2.0, "+")


def test_labels_outlive_what_they_were_given_as() -> None:
    values = [Value(i, label=f"value {i}") for i in range(1000)]
    assert [v.label for v in values] == [f"value {i}" for i in range(1000)]


# ------------------------------------------------------------------------------------- what tutorials read


def numbers(values: tuple[Value, ...]) -> tuple[float, ...]:
    return tuple(v.data for v in values)


def test_prev_and_op() -> None:
    x, y = Value(3.0), Value(4.0)
    cases: list[tuple[Any, str, tuple[float, ...]]] = [
        (x, "", ()),
        (x + y, "+", (3.0, 4.0)),
        (x - y, "-", (3.0, 4.0)),
        (2 - x, "-", (2.0, 3.0)),
        (x - 2, "-", (3.0, 2.0)),
        (2 * x, "*", (2.0, 3.0)),
        (x / y, "/", (3.0, 4.0)),
        (1 / x, "/", (1.0, 3.0)),
        (x**y, "**", (3.0, 4.0)),
        (x**2, "**2", (3.0,)),
        (x**-1, "**-1", (3.0,)),
        (x**0.5, "**0.5", (3.0,)),
        (2**x, "**", (2.0, 3.0)),
        (-x, "neg", (3.0,)),
        (abs(x), "abs", (3.0,)),
        (x.relu(), "ReLU", (3.0,)),
        (x.tanh(), "tanh", (3.0,)),
        (x.exp(), "exp", (3.0,)),
        (x.log(), "log", (3.0,)),
        (wengert.dot([x], [2.0], 1), "dot", (3.0, 2.0, 1.0)),
        (wengert.sum([x, y, 5]), "sum", (3.0, 4.0, 5.0)),
        (x.clip(0, 1), "clip", (3.0, 0.0, 1.0)),
    ]
    for node, operation, operands in cases:
        assert (node._op, numbers(node._prev)) == (operation, operands)
        assert type(node._prev) is tuple
        assert all(o is x or o is y or o._prev == () for o in node._prev)
    assert (x + x)._prev == (x, x)
    assert (x * y)._prev == (x, y)
    assert (x**y).is_leaf is False
    assert x.is_leaf is True


def test_a_picture_of_ones_own() -> None:
    """The walk that every tutorial draws from."""

    def trace(root: Value) -> tuple[set[Value], set[tuple[Value, Value]]]:
        nodes, edges = set(), set()

        def build(v: Value) -> None:
            if v not in nodes:
                nodes.add(v)
                for operand in v._prev:
                    edges.add((operand, v))
                    build(operand)

        build(root)
        return nodes, edges

    a, b = Value(2.0), Value(-3.0)
    nodes, edges = trace(a * b + a + 10)
    assert (len(nodes), len(edges)) == (6, 6)


def test_item_and_detach() -> None:
    x = Value(3.0, label="x")
    y = x * x
    assert (x.item(), y.item(), type(y.item())) == (3.0, 9.0, float)
    cut = y.detach()
    assert (cut.data, cut.grad, cut._prev, cut is y) == (9.0, 0.0, (), False)
    (y * cut).backward()
    assert (x.grad, cut.grad) == (54.0, 9.0)


# ------------------------------------------------------------------------------------- subclasses, attributes, memory


class Noted(Value):
    """A Value with a note."""

    def __init__(self, data: float, note: list[str]) -> None:
        super().__init__(data, label="noted")
        self.note = note


def test_subclasses() -> None:
    import copy
    import pickle

    x = Noted(2.0, ["a"])
    y = x * x + wengert.tanh(x)
    assert type(y) is Value
    y.backward()
    assert x.grad == pytest.approx(4 + 1 / math.cosh(2.0) ** 2, rel=1e-15)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert (type(twin), twin.data, twin.grad, twin.label, twin.note) == (Noted, 2.0, x.grad, "noted", ["a"])
    assert copy.deepcopy(x).note is not x.note
    copied = copy.deepcopy(y)
    assert type(copied._prev[0]._prev[0]) is Noted
    x.me = x  # type: ignore[attr-defined]
    x.double = x * 2  # type: ignore[attr-defined]
    twin = copy.deepcopy(x)
    assert twin.me is twin  # type: ignore[attr-defined]
    assert twin.double._prev[0] is twin


def test_weak_references_to_subclasses_only() -> None:
    x = Noted(2.0, [])
    reference = weakref.ref(x)
    assert reference() is x
    del x
    assert reference() is None
    with pytest.raises(TypeError, match="weak reference"):
        weakref.ref(Value(1.0))


def test_attributes_cannot_be_added() -> None:
    x = Value(1.0)
    with pytest.raises(AttributeError):
        x.note = "a"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        x._prev = ()  # type: ignore[misc]


def test_a_graph_dies_with_its_last_reference() -> None:
    """No cycle, nothing for the collector: the leaf is the subclass, which can be watched."""
    import gc

    gc.disable()
    try:
        x = Noted(2.0, [])
        reference = weakref.ref(x)
        y = wengert.mean([x * x, x]).tanh() + wengert.dot([x], [x])
        y.backward()
        graph = wengert.graph.Graph(y)
        del x, y
        assert reference() is not None
        del graph
        assert reference() is None
    finally:
        gc.enable()


def test_operands_of_every_kind_die_with_what_was_made_of_them() -> None:
    deaths: list[float] = []

    class Bare(Value):
        __slots__ = ()

    class Watched(Value):
        __slots__ = ("__weakref__",)

    class Mourned(Value):
        def __del__(self) -> None:
            (self * 2.0).backward()  # nodes are made and freed while others are being freed
            deaths.append(self.data)

    class Risen(Value):
        def __del__(self) -> None:
            risen.append(self)

    risen: list[Value] = []
    watched = Watched(3.0)
    reference = weakref.ref(watched)
    y = wengert.sum((Bare(1.0), Mourned(2.0), watched * Bare(1.0), 4.0, Risen(5.0))) * Mourned(6.0)
    del watched
    held = y._prev[0]._operands
    del y
    assert (deaths, held[1].data, reference() is None) == ([6.0], 2.0, False)
    del held
    assert (deaths, reference()) == ([6.0, 2.0], None)
    assert [x.data for x in risen] == [5.0]


def test_a_method_of_the_class_refuses_what_is_no_value() -> None:
    """In a process of its own: a compiled method that took a float for a Value would read foreign memory."""
    program = (
        "from wengert import Value\n"
        "for name in ('relu', 'exp', 'log', 'tanh', 'backward', 'item', 'detach', '_push', '__neg__'):\n"
        "    for bad in (3.0, 'x', None, 5):\n"
        "        try: print(name, bad, getattr(Value, name)(bad))\n"
        "        except (TypeError, AttributeError): pass\n"
        "print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("refused\n", 0)
