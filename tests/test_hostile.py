"""Objects that are not what they seem: no crash, and no wrong result, whatever runs inside of the engine."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from numbers import Real
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Graph, Value, dot, engine, node, ops
from wengert.compiler.call import fused
from wengert.engine import Many
from wengert.errors import ArgumentError, HandmadeNodeError, LengthError, OperandError, OperationError
from wengert.handmade import Handmade
from wengert.optim import SGD, Adam, Optimizer

SIZES = (1, 33, 64, 65, 5000)  # there are three ways of sorting, and the smallest of them could not go wrong


class Silent(Value):
    """A subclass that does not call `super().__init__()`."""

    def __init__(self, number: float) -> None:
        self.number = number


class Acting:
    """The number 3, for as long as it is asked once; what it does meanwhile is the test's to say."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act, self.asked = act, 0

    def __float__(self) -> float:
        self.asked += 1
        self.act()
        return 3.0 if self.asked == 1 else 0.0


Real.register(Acting)


# -- nodes that nobody initialized ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [lambda: Silent(2.0), lambda: Value.__new__(Value), lambda: Many.__new__(Many)])
def test_leaves_whose_init_never_ran(make: Callable[[], Any], size: int) -> None:
    leaves = [make() for _ in range(size)]
    total = wengert.sum(leaves)
    total.backward()
    assert {(x.data, x.grad, x.is_leaf, x.label, x._prev) for x in leaves} == {(0.0, 1.0, True, "", ())}
    assert Graph(total).values == (*leaves, total)
    product = leaves[0] + 2.0
    for x in leaves[1:]:
        product = product * (x + 2.0)
    product.backward()
    assert leaves[-1].grad == 1.0 + (2.0 ** (size - 1) if size < 1000 else float("inf"))


def test_a_node_by_hand_that_nobody_initialized() -> None:
    bare = Handmade.__new__(Handmade)
    (bare * 2.0).backward()
    assert (bare.grad, bare._op, bare._prev, bare._backward()) == (2.0, "", (), None)
    copy.deepcopy(bare * 2.0).backward()
    assert str(bare) == "Value(data=0.0, grad=2.0)"


def test_copies_and_pickles_of_uninitialized_leaves() -> None:
    leaf = Silent(2.0)
    for twin in (copy.copy(leaf), copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf))):
        assert (type(twin), twin.number, twin.data) == (Silent, 2.0, 0.0)


def test_a_copy_that_another_class_makes() -> None:
    other = Value(1.0)

    class Elsewhere(Value):
        made: Any = None

        def __new__(cls, *_: Any) -> Any:
            return cls.made or Value.__new__(cls)

    x = Elsewhere(2.0)
    for made in (other, 3.0):
        Elsewhere.made = made
        for act in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"Elsewhere\.__new__, which returned"):
                act(x)
    assert (other.is_leaf, other.data) == (True, 1.0)


def test_init_again() -> None:
    x = Value(2.0, "x")
    y = x * 3.0
    total = dot([x], [4.0], y)
    total.backward()
    for again, number in ((x, 5.0), (y, 50.0), (total, 500.0)):
        again.__init__(number)  # type: ignore[misc]
        assert (again.data, again.grad) == (number, 0.0)
    assert [value.label for value in Graph(total).values] == ["x", "", ""]
    total.backward()
    assert (x.grad, y._op, total._op) == (7.0, "*", "dot")
    by_hand = Value(1.0, (x,), "h")
    with pytest.raises(HandmadeNodeError, match="a second time"):
        by_hand.__init__(2.0, (y,), "again")  # type: ignore[misc]


def test_init_of_a_node_by_hand_inside_of_its_own() -> None:
    x, bare = Value(2.0), Handmade.__new__(Handmade)

    def again() -> None:
        if number.asked == 1:
            bare.__init__(1.0, (x, x), "inner")  # type: ignore[misc]

    number = Acting(again)
    with pytest.raises(HandmadeNodeError, match="a second time"):
        bare.__init__(number, (x,), "outer")  # type: ignore[misc]
    assert (bare._op, bare._prev) == ("inner", (x, x))


def test_the_class_of_a_value_is_one() -> None:
    if not engine.compiled:
        pytest.skip("interpreted, Python itself looks at what `object.__new__` is given")
    known = node.kind
    code = (
        "from wengert import Value, node; import wengert.handmade\n"
        "node.supply(kind=lambda cls, children: int)\n"
        "try: Value(1.0, (Value(2.0),))\nexcept TypeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "the class of a Value has to be Value or a subclass, not <class 'int'>\n"
    assert node.kind is known


# -- numbers that act -------------------------------------------------------------------------------------------------


def everything(x: Value, y: Value) -> Iterator[Callable[[], object]]:
    """What a number may do while it is asked what it comes to."""
    yield lambda: None
    yield y.backward
    yield lambda: Graph(y)
    yield lambda: (x * x + y).backward()
    yield lambda: [Value(1.0) * 2.0 for _ in range(100)]
    yield lambda: copy.deepcopy(y)


OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], float, float]] = {  # with 3: the value and the slope at x = 2
    "x + n": (lambda x, n: x + n, 5.0, 1.0),
    "n + x": (lambda x, n: n + x, 5.0, 1.0),
    "x - n": (lambda x, n: x - n, -1.0, 1.0),
    "n - x": (lambda x, n: n - x, 1.0, -1.0),
    "x * n": (lambda x, n: x * n, 6.0, 3.0),
    "n * x": (lambda x, n: n * x, 6.0, 3.0),
    "x / n": (lambda x, n: x / n, 2.0 / 3.0, 1.0 / 3.0),
    "n / x": (lambda x, n: n / x, 1.5, -0.75),
    "x ** n": (lambda x, n: x**n, 8.0, 12.0),
    "maximum": (lambda x, n: wengert.maximum(x * 2.0, n), 4.0, 2.0),
    "sum": (lambda x, n: wengert.sum([x, n, x, 1.0]), 8.0, 2.0),
    "prod": (lambda x, n: wengert.prod([x, n, x]), 12.0, 12.0),
    "dot, a weight": (lambda x, n: dot([n, x], [x, 1.0]), 8.0, 4.0),
    "dot, an input": (lambda x, n: dot([x, 2.0], [n, x], x), 12.0, 6.0),
    "dot, the bias": (lambda x, n: dot([x, 2.0], [x, x], n), 11.0, 6.0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_number_is_asked_once_whatever_it_does(name: str) -> None:
    function, value, slope = OPERATIONS[name]
    x, other = Value(2.0), Value(7.0)
    for act in everything(other, other * other + dot([other], [1.5], 2.0)):
        number = Acting(act)
        y = function(x, number)
        x.grad = 0.0
        y.backward()
        graph = Graph(y)
        assert number.asked == 1
        assert (y.data, x.grad) == (value, slope)
        assert graph.pull_back({len(graph) - 1: 1.0})[graph.values.index(x)] == slope
        assert graph.push_forward({graph.values.index(x): 1.0})[-1] == slope
        op, operands, _ = graph[-1]  # the constants that were kept are those that it was computed with
        assert op.value(*[graph.values[o].data if isinstance(o, int) else o for o in operands]) == value


def test_a_seed_and_a_gradient_that_act() -> None:
    x = Value(2.0)
    y = x * x
    for act in everything(x, y):
        x.grad = 0.0
        y.backward(Acting(act))  # what it adds by a pass of its own comes before
        assert (y.grad, x.grad % 4.0) == (3.0, 0.0)
        x.grad = Acting(act)
        assert x.grad == 3.0


def test_a_label_that_is_no_plain_text() -> None:
    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            return self

        def __hash__(self) -> int:
            Value(1.0).label = "meanwhile"
            return 7

        def __eq__(self, other: object) -> bool:
            return False

    x = Value(1.0)
    x.label = Text("odd")
    assert (x.label, type(x.label)) == ("odd", str)


def test_more_labels_than_a_process_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "LABELS", 0)
    x = Value(1.0, label="")
    with pytest.raises(ArgumentError, match=r"a process can have 0 different labels, and 'one more of th"):
        x.label = "one more of them"
    assert x.label == ""


def test_labels_up_to_the_last_bit() -> None:
    """The place of a label and the number of a walk share a field of 63 bits."""
    assert node.LABELS << 40 == 1 << 63


def test_more_operations_than_the_table_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops.op, "LEFT", len(ops.TABLE))
    with pytest.raises(OperationError, match=rf"the table is full: it has {len(ops.TABLE)} operations"):
        wengert.op("one_more", value=lambda x: x, partials=lambda out, x: 1.0)


def test_operations_that_are_no_row_of_the_table() -> None:
    x, tanh = Value(0.5), ops.BY_NAME["tanh"]
    assert tanh._replace(value=lambda x: 2.0)(x).data == 2.0  # a row of other rules is one
    own = ops.Op("own", 1, "own", "", lambda x: x, lambda out, x: 1.0)
    dot_of_one, beyond = tanh._replace(code=ops.BY_NAME["dot"].code), tanh._replace(code=len(ops.TABLE))
    for wrong in (own, tanh._replace(code=0), beyond, tanh._replace(code=10**6), dot_of_one):
        with pytest.raises(OperationError, match=r"is not in the table: register it, wengert\.op\("):
            x._apply_op(wrong, (x,))
    with pytest.raises(OperationError, match="leaf takes 0 operands"):
        x._apply_op(ops.BY_NAME["leaf"], (x,))


# -- graphs that are written to ---------------------------------------------------------------------------------------


ARRAYS = ("values", "codes", "starts", "operands", "constants", "partials")


@pytest.mark.parametrize("name", ARRAYS)
def test_the_arrays_of_a_graph_cannot_be_written_to(name: str) -> None:
    x = Value(3.0)
    graph = Graph(dot([x, x], [2.0, x], 1.0) - 2.0)
    before = list(getattr(graph, name))
    for write in (lambda a: a.__setitem__(0, 10**9), lambda a: a.append(1), lambda a: a.__delitem__(0)):
        with pytest.raises((TypeError, AttributeError)):
            write(getattr(graph, name))
    if engine.compiled:  # interpreted, an attribute of another length is an IndexError
        with pytest.raises(AttributeError):
            setattr(graph, name, array("q", [10**9]))
    assert list(getattr(graph, name)) == before
    assert graph.pull_back({2: 1.0})[0] == 8.0 == graph.push_forward({0: 1.0})[-1]
    assert [value.data for _, _, value in graph] == [3.0, 16.0, 14.0]


def test_a_graph_is_written_once() -> None:
    x = Value(3.0)
    graph = Graph(x * x)
    with pytest.raises(OperandError, match="a second time"):
        graph.__init__(x)  # type: ignore[misc]
    twin = copy.deepcopy(graph)
    assert twin.values[0] is not x
    assert list(twin.partials) == list(graph.partials) == [3.0, 3.0]
    assert copy.copy(graph).values == graph.values


@pytest.mark.parametrize("first", [-1, -(10**9), 3, 10**9])
def test_a_first_instruction_that_there_is_not(first: int) -> None:
    x = Value(3.0)
    graph = Graph(x * x)
    with pytest.raises(ArgumentError, match=rf"first is {first}; expected the index of an instruction, from 0 to 2"):
        graph.pull_back({1: 1.0}, first=first)
    assert list(graph.pull_back({1: 1.0}, first=2)) == [0.0, 1.0]


def test_places_that_there_are_not() -> None:
    graph = Graph(Value(3.0) * 2.0)
    for place in (2, 10**9, -3, 10**30):
        for act in (graph.pull_back, graph.push_forward):
            with pytest.raises(IndexError):
                act({place: 1.0})
    for wrong in ("0", None, 0.0):
        for act in (graph.pull_back, graph.push_forward):
            with pytest.raises(TypeError):
                act({wrong: 1.0})  # type: ignore[dict-item]


def test_a_copy_on_other_operands() -> None:
    """What `memo` says was copied before is taken for the copy; what is no Value cannot be an operand."""
    x, other = Value(2.0), Value(5.0)
    y = x * 3.0
    twin = copy.deepcopy(y, {id(x): other})
    twin.backward()
    assert (other.grad, x.grad) == (3.0, 0.0)
    if engine.compiled:
        with pytest.raises(TypeError):
            copy.deepcopy(y, {id(x): "no Value"})


def test_a_copy_of_a_node_over_leaves_on_results() -> None:
    w, z = Value(2.0), Value(5.0)
    y = fused.fused(4.0, (w,), array("d", [3.0]), True)
    result = z * 2.0
    copy.deepcopy(y, {id(w): result}).backward()
    assert (result.grad, z.grad) == (3.0, 6.0)


# -- what the compiler and the optimizers ask of it -------------------------------------------------------------------


def test_arrays_of_another_length() -> None:
    x, one = (Value(2.0),), array("d", [1.0])
    none: Any = array("d")
    for act in (
        lambda: fused.gather(x, none),
        lambda: fused.scatter(x, one, none),
        lambda: fused.scatter(x, none, one),
        lambda: fused.fused(1.0, x, none),
    ):
        with pytest.raises(LengthError):
            act()
    numbers = array("d", [7.0, 8.0])
    mixed: Any = (x[0], None)
    fused.gather(mixed, numbers)
    fused.scatter(mixed, array("d", [4.0, 5.0]), array("d", [6.0, 7.0]))
    assert (numbers.tolist(), x[0].data, x[0].grad) == ([2.0, 8.0], 4.0, 6.0)
    assert fused.partials_of(Many.__new__(Many)) == []


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_a_rate_and_settings_that_act(kind: type[Optimizer]) -> None:
    def grow() -> None:
        optimizer._active += [Value(1.0) for _ in range(10_000)]

    def rate(step: int) -> float:
        grow()
        return 0.1

    optimizer = kind([Value(1.0)], rate)
    with pytest.raises(ArgumentError, match="is for 1 parameter, not 10001"):
        optimizer.step()
    del optimizer._active[1:]
    optimizer.lr = 0.1
    if engine.compiled:  # interpreted, it is a factor that cannot be multiplied
        optimizer.weight_decay = Acting(grow)  # type: ignore[attr-defined]
        optimizer.step()
        assert optimizer.parameters[0].data < 1.0


# -- everything at once -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_random_calls_with_objects_that_act() -> None:
    """Calls of public functions with such objects, from a program of its own: it may raise anything, and must end."""
    program = Path(__file__).resolve().parent.parent / "tools" / "qa" / "hostile.py"
    done = subprocess.run([sys.executable, str(program), "1", "2000"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "seed 1: 2000 calls\n"), done.stderr
