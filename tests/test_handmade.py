"""Nodes made by hand, in the forms in which tutorials make them: each row of what is promised of them."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value, checkpoint
from wengert.errors import ArgumentError, HandmadeNodeError, NonFiniteError, OperationError
from wengert.handmade import Handmade


def as_value(x: Any) -> Any:
    return x if isinstance(x, Value) else Value(x)


def add(a: Any, b: Any) -> Any:
    a, b = as_value(a), as_value(b)
    out = Value(a.data + b.data, (a, b), "+")

    def _backward() -> None:
        a.grad += 1.0 * out.grad
        b.grad += 1.0 * out.grad

    out._backward = _backward
    return out


def mul(a: Any, b: Any) -> Any:
    a, b = as_value(a), as_value(b)
    out = Value(a.data * b.data, (a, b), "*")

    def _backward() -> None:
        a.grad += b.data * out.grad
        b.grad += a.data * out.grad

    out._backward = _backward
    return out


def tanh(self: Any) -> Any:
    x = self.data
    t = (math.exp(2 * x) - 1) / (math.exp(2 * x) + 1)
    out = Value(t, (self,), "tanh")

    def _backward() -> None:
        self.grad += (1 - t**2) * out.grad

    out._backward = _backward
    return out


def silent(x: Any) -> Any:
    """A node to draw: no _backward yet."""
    return Value(2.0 * x.data, (x,), "double")


# ------------------------------------------------------------------------------------- the forms of construction


@pytest.mark.parametrize(
    ("make", "label"),
    [
        (lambda: Value(2.0), ""),
        (lambda: Value(2), ""),
        (lambda: Value(2.0, label="a"), "a"),
        (lambda: Value(2.0, "a"), "a"),
        (lambda: Value(2.0, (), "", "a"), "a"),
        (lambda: Value(2.0, (), label="a"), "a"),
        (lambda: Value(2.0, _children=(), _op="", label="a"), "a"),
        (lambda: Value(data=2.0, label="a"), "a"),
    ],
)
def test_the_forms_of_a_leaf(make: Callable[[], Value], label: str) -> None:
    x = make()
    assert (type(x), x.data, x.grad, x.label, x._op, x._prev, x.is_leaf) == (Value, 2.0, 0.0, label, "", (), True)


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: Value(a.data + b.data, (a, b), "+"),
        lambda a, b: Value(a.data + b.data, [a, b], "+"),
        lambda a, b: Value(a.data + b.data, {a, b}, "+"),
        lambda a, b: Value(a.data + b.data, (a, b), "+", "e"),
        lambda a, b: Value(a.data + b.data, (a, b), "+", label="e"),
        lambda a, b: Value(data=a.data + b.data, _children=(a, b), _op="+", label="e"),
    ],
)
def test_the_forms_of_a_node(make: Callable[[Value, Value], Any]) -> None:
    a, b = Value(2.0), Value(-3.0)
    e = make(a, b)
    assert isinstance(e, Value)
    assert (e.data, e.grad, e._op, e.is_leaf, e.label) == (-1.0, 0.0, "+", False, "e" if e.label else "")
    assert (len(e._prev), set(e._prev), list(e._prev)) == (2, {a, b}, [a, b])
    assert repr(e) == f"Value(data=-1.0, grad=0.0{', label=' + repr(e.label) if e.label else ''})"


def test_prev_is_compared_as_a_tuple_and_as_a_set() -> None:
    a, b = Value(2.0), Value(3.0)
    prev = add(a, b)._prev
    assert prev == (a, b)
    assert prev != (b, a)
    assert prev == {b, a}
    assert {a, b} == prev
    assert prev != {a}
    assert (prev != {a, b}) is False
    assert hash(prev) == hash((a, b))
    assert add(a, a)._prev == (a, a)


def test_children_that_are_numbers_become_leaves() -> None:
    a = Value(2.0)
    out = Value(a.data * 3, (a, 3), "*")
    three = out._prev[1]
    assert (type(three), three.data, three.is_leaf) == (Value, 3.0, True)
    assert out._prev[1] is three


def test_a_set_of_children_is_taken_in_the_order_in_which_they_were_made() -> None:
    xs = [Value(float(i)) for i in range(50)]
    assert list(Value(0.0, {*xs}, "sum")._prev) == xs


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: Value(1.0, (), "+"), r"the symbol '\+' but no operands .*label='x'.*Value\(number, \(a"),
        (lambda x: Value(1.0, 3), r"int 3 beside its number"),
        (lambda x: Value(1.0, x), r"Value\(data=2\.0.*beside its number.*in a tuple, list or set"),
        (lambda x: Value(1.0, (x, "y"), "+"), r"child of a Value has to be a Value or a number, not str 'y'"),
        (lambda x: Value(1.0, (x, None), "+"), r"child of a Value has to be a Value or a number, not None"),
        (lambda x: Value(1.0, "t", "tanh"), r"str 't' beside its number"),
        (lambda x: setattr(x, "_backward", lambda: None), r"is a leaf.*out = Value\(number, \(self, other\), '\+'\)"),
        (lambda x: setattr(x * 2, "_backward", lambda: None), r"mul made this Value.*wengert\.op\('double'"),
        (lambda x: setattr(add(x, x), "_backward", add(x, x)._backward()), r"None \(write out\._backward = _"),
        (lambda x: setattr(add(x, x), "_backward", 3.0), r"has to be a function without arguments, not float 3\.0"),
        (lambda x: add(x, x).__init__(1.0), r"a second time"),
    ],
)
def test_what_is_no_construction(make: Callable[[Value], Any], message: str) -> None:
    x = Value(2.0)
    with pytest.raises(HandmadeNodeError, match=message):
        make(x)
    assert (x.data, x.grad) == (2.0, 0.0)


@pytest.mark.parametrize("data", ["x", None, [1.0], 1j])
def test_the_number_of_a_node_is_one(data: Any) -> None:
    with pytest.raises(TypeError, match="expected one real number"):
        Value(data, (Value(1.0),), "?")


# ------------------------------------------------------------------------------------- functions assigned to the class


def test_functions_assigned_to_the_class() -> None:
    """In a process of its own: the class is everybody's."""
    program = """
import math
from wengert import Value
from wengert import engine

def tanh(self):
    t = math.tanh(self.data)
    out = Value(t, (self,), 'by me')
    def _backward():
        self.grad += (1 - t**2) * out.grad
    out._backward = _backward
    return out

def plus(self, other):
    other = other if isinstance(other, Value) else Value(other)
    out = Value(self.data + other.data, (self, other), '+')
    def _backward():
        self.grad += out.grad
        other.grad += out.grad
    out._backward = _backward
    return out

before = Value(0.5).tanh()._op
Value.tanh = tanh
Value.__add__ = Value.__radd__ = plus
Value.twice = lambda self: self * 2
n = Value(0.5)
o = (n.tanh() + 1.0).twice()
o.backward()
assert before == 'tanh' and o._prev[0]._op == '+' and o._prev[0]._prev[0]._op == 'by me', o._prev
assert n.grad == 2 * (1 - math.tanh(0.5) ** 2)
assert (1 + n)._op == '+' and type(1 + n) is type(o._prev[0])
del Value.tanh
try:
    Value(0.5).tanh()  # the table's, of the class below
except AttributeError:
    raise SystemExit('the method of the table is gone')
print('right', engine.compiled)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"right {wengert.engine.compiled}\n", done.stderr


# ------------------------------------------------------------------------------------- backward


def test_the_neuron_of_the_tutorials() -> None:
    x1, x2, w1, w2 = Value(2.0), Value(0.0), Value(-3.0), Value(1.0)
    b = Value(6.8813735870195432)
    n = add(add(mul(x1, w1), mul(x2, w2)), b)
    o = tanh(n)
    o.backward()
    found = {"n": n.grad, "x1": x1.grad, "w1": w1.grad, "x2": x2.grad, "w2": w2.grad, "b": b.grad, "o": o.grad}
    expected = {"n": 0.5, "x1": -1.5, "w1": 1.0, "x2": 0.5, "w2": 0.0, "b": 0.5, "o": 1.0}
    assert found == pytest.approx(expected, abs=1e-12)


def test_node_by_node_in_an_order_of_ones_own() -> None:
    a, b, c = Value(2.0), Value(-3.0), Value(10.0)
    e = mul(a, b)
    d = add(e, c)
    topo: list[Any] = []
    visited: set[Any] = set()

    def build(v: Any) -> None:
        if v not in visited:
            visited.add(v)
            for child in v._prev:
                build(child)
            topo.append(v)

    build(d)
    assert topo[-1] is d
    d.grad = 1.0
    for node in reversed(topo):
        node._backward()
    assert (a.grad, b.grad, c.grad, e.grad) == (-3.0, 2.0, 1.0, 1.0)


def test_a_closure_is_called_once_in_each_pass_after_all_that_use_it_and_before_its_children() -> None:
    calls: list[str] = []

    def noted(name: str, *children: Any) -> Any:
        out = Value(sum(x.data for x in children), children, "+")

        def _backward() -> None:
            calls.append(name)
            for x in children:
                x.grad += out.grad

        out._backward = _backward
        return out

    x = Value(1.0)
    a = noted("a", x)
    b = noted("b", a, x)
    c = noted("c", a, b)
    d = noted("d", c, a, b)
    d.backward()
    assert calls == ["d", "c", "b", "a"]
    assert x.grad == 6.0  # the paths from d to x
    d.backward()
    assert calls == ["d", "c", "b", "a"] * 2
    assert (x.grad, a.grad, b.grad, c.grad) == (12.0, 4.0, 2.0, 1.0)  # leaves accumulate, interior nodes do not


@pytest.mark.torch
@pytest.mark.parametrize("plus", [add, lambda a, b: a + b])
@pytest.mark.parametrize("times", [mul, lambda a, b: a * b])
@pytest.mark.parametrize("bend", [tanh, lambda x: x.tanh()])
def test_by_hand_inside_of_an_ordinary_graph_and_the_reverse(plus: Any, times: Any, bend: Any) -> None:
    torch = pytest.importorskip("torch")
    a, b = Value(0.3), Value(-0.7)
    s = times(a, b)
    t = bend(plus(s, a))
    y = plus(times(t, s), times(bend(times(t, t)), plus(a, b)))
    for passes in (1, 2):
        y.backward()
        p, q = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.3, -0.7))
        u = p * q
        v = torch.tanh(u + p)
        z = v * u + torch.tanh(v * v) * (p + q)
        (passes * z).backward()
        assert y.data == pytest.approx(z.item(), rel=1e-14)
        assert (a.grad, b.grad) == pytest.approx((p.grad.item(), q.grad.item()), rel=1e-13)


def test_two_results_that_share_a_part() -> None:
    x = Value(3.0)
    s = mul(x, 2.0)
    first, second = mul(s, s), add(mul(s, s), s)
    first.backward()
    x.grad = 0.0
    second.backward()
    assert x.grad == 26.0  # (4 x^2 + 2 x)' at 3


def test_data_changed_later_changes_what_the_closure_reads() -> None:
    x, y = Value(3.0), Value(2.0)
    z = x * y
    h = mul(x, y)
    y.data = 100.0
    z.backward()
    assert x.grad == 2.0  # an operation has its partials from when the node was made
    x.grad = 0.0
    h.backward()
    assert x.grad == 100.0  # a closure that reads .data reads what it is now


def test_a_gradient_from_outside() -> None:
    x = Value(3.0)
    mul(x, x).backward(0.5)
    assert x.grad == 3.0


def test_without_a_backward_the_gradient_stops() -> None:
    x = Value(3.0)
    y = silent(x)
    assert y._backward() is None  # as it stands in micrograd: a function that does nothing
    z = y * x
    z.backward()
    assert (y.grad, x.grad) == (3.0, 6.0)  # d(y x)/dx where y is constant


def test_a_chain_deeper_than_the_recursion_limit() -> None:
    x = y = Value(1.0)
    for _ in range(20_000):
        y = add(y, 0.0) * 1.0
    y.backward()
    assert x.grad == 1.0
    del y
    gc.collect()


def test_an_error_in_a_closure_comes_out_and_the_next_pass_is_right() -> None:
    x = Value(2.0)
    out = Value(4.0, (x,), "square")
    fail = True

    def _backward() -> None:
        if fail:
            raise ZeroDivisionError("mine")
        x.grad += 2 * x.data * out.grad

    out._backward = _backward
    with pytest.raises(ZeroDivisionError, match="mine"):
        (out * 3).backward()
    fail = False
    x.grad = 0.0
    (out * 3).backward()
    assert x.grad == 12.0


def test_backward_inside_of_a_closure_is_refused() -> None:
    x = Value(2.0)
    out = Value(4.0, (x,), "?")
    out._backward = lambda: (x * x).backward()
    with pytest.raises(OperationError, match=r"^backward\(\) was called inside a node's _backward"):
        out.backward()
    x.grad = 0.0
    (x * x).backward()
    assert x.grad == 4.0


def test_four_threads_into_one_leaf() -> None:
    x = Value(1.0)

    def work() -> None:
        for _ in range(500):
            add(mul(x, 2.0), x * 3.0).backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad == 4 * 500 * 5.0


# ------------------------------------------------------------------------------------- copies, files, modes


def test_a_copy_of_a_graph_refuses_where_a_closure_would_have_to_be_copied() -> None:
    x = Value(2.0)
    with pytest.raises(HandmadeNodeError, match=r"made by hand, tanh, whose closure .* cannot be copied"):
        copy.deepcopy(tanh(x) * 2)
    with pytest.raises(TypeError, match="only a leaf can be pickled"):
        pickle.dumps(tanh(x))
    twin = copy.deepcopy(silent(x) * 3)
    assert (twin.data, twin._prev[0]._op, twin._prev[0]._prev[0].data) == (12.0, "double", 2.0)
    assert twin._prev[0]._prev[0] is not x
    assert type(copy.copy(tanh(x))) is Value


def test_a_model_with_a_node_made_by_hand_in_it_saves_its_parameters(tmp_path: Any) -> None:
    from wengert.nn import Module

    class Model(Module):
        def __init__(self) -> None:
            self.w = Value(0.5)
            self.seen = tanh(self.w)

        def __call__(self, x: Any) -> Any:
            return mul(self.w, x)

    model = Model()
    assert [name for name, _ in model.named_parameters()] == ["w"]
    checkpoint.save(model, tmp_path / "m.safetensors")
    model.w.data = 0.0
    checkpoint.load(model, tmp_path / "m.safetensors")
    assert model.w.data == 0.5


def test_in_no_grad_it_is_a_leaf_and_keeps_nothing() -> None:
    x = Value(0.5)
    with wengert.no_grad():
        y = tanh(x)
    assert (y.data, y._prev, y.is_leaf) == (pytest.approx(math.tanh(0.5)), (), True)
    (y * 2).backward()
    (y * 2).backward()
    assert (y.grad, x.grad) == (4.0, 0.0)
    for twin in (copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
        assert (twin.data, twin.grad, twin._prev) == (y.data, 4.0, ())


def test_strict_and_detect_anomaly_see_them() -> None:
    x = Value(2.0, "x")

    def huge(g: float) -> Any:
        out = Value(1.0, (x,), "huge")

        def _backward() -> None:
            x.grad += g * out.grad

        out._backward = _backward
        return out

    with wengert.strict():
        mul(x, x).backward()
        with pytest.raises(NonFiniteError, match=r"is inf"):
            Value(math.inf, (x,), "?")
        with pytest.raises(NonFiniteError, match=r"in backward\(\) the gradient 1e\+20 of .* respect to x, 1e\+300"):
            (huge(1e300) * 1e20).backward()
    with wengert.detect_anomaly(), pytest.raises(NonFiniteError, match="partial derivative with respect to x is inf"):
        huge(math.inf).backward()


# ------------------------------------------------------------------------------------- derivatives, the compiler


@pytest.mark.parametrize(
    "use",
    [
        lambda: wengert.grad(tanh)(0.5),
        lambda: wengert.grad(tanh)(Value(0.5)),
        lambda: wengert.value_and_grad(tanh)(0.5),
        lambda: wengert.jacobian(lambda x: [tanh(x), x])(0.5),
        lambda: wengert.hessian(tanh)(0.5),
        lambda: wengert.hvp(tanh)(0.5, 1.0),
        lambda: wengert.jvp(tanh, (0.5,), (1.0,)),
        lambda: wengert.vjp(tanh, 0.5),
        lambda: wengert.check_gradients(tanh, 0.5),
    ],
)
def test_derivatives_of_functions_are_refused_and_name_op(use: Callable[[], Any]) -> None:
    with pytest.raises(HandmadeNodeError, match=r"by hand.*wengert\.op\('double'"):
        use()


def test_a_node_from_outside_is_a_constant_to_derivatives() -> None:
    y = tanh(Value(0.5))
    derivative = wengert.grad(lambda x: x * y)(3.0)
    assert float(derivative.data) == y.data  # a Value: it depends on one


def test_check_gradients_to_first_order_tries_the_closure() -> None:
    assert wengert.check_gradients(lambda x, y: mul(tanh(x), y), (0.5, 2.0), order=1).ok

    def wrong(x: Any) -> Any:
        out = Value(math.sin(x.data), (x,), "sin")

        def _backward() -> None:
            x.grad += math.sin(x.data) * out.grad

        out._backward = _backward
        return out

    with pytest.raises(wengert.errors.GradientError, match=r"the derivative of wrong is 0\.479"):
        wengert.check_gradients(wrong, 0.5, order=1)


def test_inside_compile_the_call_runs_uncompiled_with_the_reason() -> None:
    w = Value(2.0)

    @wengert.compile
    def f(x: Any) -> Any:
        return tanh(w * x)

    @wengert.compile
    def g(x: Any) -> Any:
        return Value(1.0, (w * x,), "?") * w

    for compiled in (f, g):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                w.grad = 0.0
                y = compiled(0.25)
                y.backward()
                expected = (math.tanh(0.5), 0.25 * (1 - math.tanh(0.5) ** 2)) if compiled is f else (2.0, 1.0)
                assert (y.data, w.grad) == pytest.approx(expected, rel=1e-12)
        assert len(caught) == 1
        assert "makes a node by hand" in str(caught[0].message)


# ------------------------------------------------------------------------------------- local derivatives


def test_local_derivatives_are_what_the_closure_was_seen_to_add() -> None:
    x, y = Value(0.5), Value(-2.0)
    x.grad, y.grad = 7.0, 8.0
    z = mul(x, y)
    z.grad = 9.0
    assert list(wengert.Graph(z).partials) == [-2.0, 0.5]
    assert (x.grad, y.grad, z.grad) == (7.0, 8.0, 9.0)  # nothing is left behind
    assert list(wengert.Graph(add(x, x)).partials) == [1.0, 1.0]  # half each of 2
    assert list(wengert.Graph(mul(x, x)).partials) == [0.5, 0.5]
    assert list(wengert.Graph(silent(x)).partials) == [0.0]


def test_what_is_not_linear_has_no_local_derivative() -> None:
    x = Value(0.5)
    forgotten = Value(1.0, (x,), "?")
    forgotten._backward = lambda: setattr(x, "grad", x.grad + 3.0)  # out.grad is left out
    broken = Value(1.0, (x,), "?")
    broken._backward = lambda: x.missing  # type: ignore[attr-defined]
    for node in (forgotten, broken):
        assert math.isnan(wengert.Graph(node).partials[0])
        assert (x.grad, node.grad) == (0.0, 0.0)


# ------------------------------------------------------------------------------------- memory


@pytest.fixture(scope="module", autouse=True)
def what_is_there_stays() -> None:
    """Modules that other tests have imported: the collector, which nodes by hand often call, need not visit them."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("count", [30_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_cycles_through_nodes_made_by_hand_are_collected(count: int) -> None:
    x = Value(0.5)
    tanh(x)
    gc.collect()
    before, objects = sys.getallocatedblocks(), len(gc.get_objects())
    for _ in range(count):
        tanh(x)  # a node, its closure, its cells: each a cycle
    with wengert.no_grad():
        for _ in range(count // 10):
            tanh(x)
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert sys.getallocatedblocks() - before < 1000


def test_a_graph_of_them_is_collected_whole() -> None:
    counts, x, half = [], Value(0.5), Value(0.5)
    for _ in range(3):
        y = x
        for _ in range(5_000):
            y = add(mul(y, half), x)
        y.backward()
        del y
        gc.collect()
        counts.append(sys.getallocatedblocks())
    assert counts[2] - counts[1] < 500


def test_the_collector_does_not_take_what_is_in_use() -> None:
    x = Value(1.0)
    y: Any = x
    for _ in range(2_000):
        y = add(y, x)
        if _ % 500 == 0:
            gc.collect()
    gc.collect()
    y.backward()
    assert (y.data, x.grad) == (2001.0, 2001.0)


def test_an_ordinary_node_is_what_it_was() -> None:
    x = Value(1.0)
    y = x * 2
    assert type(y) is Value
    assert sys.getsizeof(y) == sys.getsizeof(x)
    if wengert.engine.compiled:
        assert sys.getsizeof(y) == 80
        assert not gc.is_tracked(y)
        assert gc.is_tracked(add(x, y))


# ------------------------------------------------------------------------------------- subclasses


class Own(Value):
    """A Value whose arithmetic its user writes."""

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Own) else Own(other)
        out = Own(self.data + other.data, (self, other), "+")

        def _backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out


def test_a_subclass_makes_nodes_of_itself() -> None:
    a = Own(2.0, label="a")
    y = a + 3 + a
    assert isinstance(y, Own)
    assert (type(y).__name__, type(y).__qualname__, type(y).__module__) == ("Own", "Own", __name__)
    y.backward()
    assert (y.data, a.grad, y._op) == (7.0, 2.0, "+")
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(2000):
        a + 3
    gc.collect()
    assert sys.getallocatedblocks() - before < 500


class Scaled(Value):
    """Its second argument has a meaning of its own."""

    def __init__(self, data: float, factors: list[float]) -> None:
        super().__init__(data * math.prod(factors))


class Named(Value):
    """It was called with Values, and keeps them to itself."""

    def __init__(self, data: float, friends: list[Value]) -> None:
        super().__init__(data, "named")
        self.friends = friends


class Hidden(Value):
    """It hands the engine children that it was not called with."""

    def __init__(self, a: Value, b: Value) -> None:
        super().__init__(a.data + b.data, (a, b), "+")


def test_arguments_of_a_subclass_are_its_own() -> None:
    assert (type(Scaled(2.0, [3.0])), Scaled(2.0, [3.0]).data) == (Scaled, 6.0)
    x = Named(2.0, [Value(1.0)])
    assert (x.label, x.is_leaf, x._prev, x._op, len(x.friends)) == ("named", True, (), "", 1)
    (x * x).backward()
    (x * x).backward()
    assert x.grad == 8.0
    with pytest.raises(HandmadeNodeError, match=r"called with the operands: Sub\(number, \(a, b\), '\+'\)"):
        Hidden(Value(1.0), Value(2.0))


def test_the_class_is_one_that_the_errors_name() -> None:
    assert issubclass(Handmade, Value)
    assert issubclass(HandmadeNodeError, TypeError)
    assert not issubclass(HandmadeNodeError, ArgumentError)
