"""The walk over a graph in which compiled functions have left nodes of many leaves: each is met once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest

from wengert import Value, engine, handmade
from wengert.compiler.call.fused import fused as fused_of_array
from wengert.engine import Many, dot, tape
from wengert.errors import LengthError, OperandError, OperationError
from wengert.ops import BY_NAME, ieee

SLOPES = [2.0, -3.0, 0.5]


def fused(data: float, operands: Sequence[object], slopes: Sequence[float], only_leaves: bool = False) -> Value:
    """One node on these operands; the compiled engine takes the partials as an array of C numbers."""
    node: Value = fused_of_array(data, tuple(operands), array("d", slopes), only_leaves)
    return node


def leaves() -> list[Value]:
    return [Value(1.0), Value(2.0), Value(4.0)]


def grads(xs: list[Value]) -> list[float]:
    return [x.grad for x in xs]


def test_one_node_of_many_leaves() -> None:
    xs = leaves()
    y = fused(7.0, xs, SLOPES, True)
    y.backward()
    assert grads(xs) == SLOPES
    y.backward(2.0)
    assert grads(xs) == [6.0, -9.0, 1.5]
    assert (y.data, y.grad) == (7.0, 2.0)


def test_below_other_nodes() -> None:
    xs = leaves()
    y = fused(7.0, xs, SLOPES, True)
    z = 2 * y + xs[0] * xs[1]
    for calls in (1, 2):
        z.backward()
        assert grads(xs) == [calls * 6.0, calls * -5.0, calls * 1.0]
        assert (y.grad, z.grad) == (2.0, 1.0)


def test_two_of_them_share_leaves() -> None:
    xs = leaves()
    first, second, third = (fused(1.0, xs, [k * s for s in SLOPES], True) for k in (1.0, 10.0, 100.0))
    total = first * 2.0 + second + third
    for calls in (1, 2, 3):
        total.backward()
        assert grads(xs) == [calls * s * 112.0 for s in SLOPES]
        assert (first.grad, second.grad, third.grad) == (2.0, 1.0, 1.0)


def test_leaves_of_their_own() -> None:
    xs, others = leaves(), leaves()
    total = fused(1.0, xs, SLOPES, True) * fused(5.0, others, [1.0, 1.0, 1.0], True)
    for calls in (1, 2):
        total.backward()
        assert grads(xs) == [calls * 5.0 * s for s in SLOPES]
        assert grads(others) == [calls * 1.0] * 3


@pytest.mark.parametrize("leaves_only", [True, False])
def test_a_tape_holds_every_leaf_once(leaves_only: bool) -> None:
    xs = leaves()
    y = fused(7.0, xs, SLOPES, leaves_only)
    z = y * xs[2]
    assert [id(node) for node in tape([z])] == [id(node) for node in (*xs, y, z)]
    assert [id(node) for node in tape([z, y])] == [id(node) for node in (*xs, y, z)]


def test_constants_among_the_operands() -> None:
    x = Value(3.0)
    y = fused(1.0, (2.0, x, 5.0), [7.0, 11.0, 13.0])
    y.backward()
    assert x.grad == 11.0


def test_a_leaf_has_nothing_to_pass_on() -> None:
    x = Value(3.0)
    x.grad = 5.0
    x._push()
    assert (x.data, x.grad) == (3.0, 5.0)


def test_a_node_of_many_is_not_made_by_hand() -> None:
    with pytest.raises(TypeError):
        Many((Value(1.0), 2.0), [1.0, 1.0])


def test_the_root_of_a_graph_is_no_none() -> None:
    with pytest.raises(OperandError, match=r"^the root of a graph is a Value, not None$"):
        tape([None])


def test_a_wrong_number_of_operands_makes_no_node() -> None:
    x = Value(1.0)
    with pytest.raises(OperationError, match=r"^sin takes 1 operand, got 2$"):
        x._apply_op(BY_NAME["sin"], [x, x])


class Liar(list[float]):
    """A sequence that gives more items than its len() says."""

    def __len__(self) -> int:
        return 1


def test_the_lengths_of_a_dot() -> None:
    with pytest.raises(
        LengthError, match=r"^dot: len\(ws\) is 2 and len\(xs\) is 1; expected two sequences of one length$"
    ):
        dot([1.0, 2.0], [3.0])
    with pytest.raises(LengthError, match=r"^dot: iterating a sequence of len\(\) 1 gave another number of items"):
        dot(Liar([1.0, 2.0]), [Value(3.0)])


@pytest.mark.parametrize("place", range(7))
def test_one_value_anywhere_in_a_dot_is_recorded(place: int) -> None:
    numbers: list[float | Value] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]
    x = Value(numbers[place])
    numbers[place] = x
    y = dot(numbers[:3], numbers[3:6], numbers[6])
    y.backward()
    assert (y.data, x.grad) == (129.0, (7.0, 11.0, 13.0, 2.0, 3.0, 5.0, 1.0)[place])


def test_the_leaves_of_one_node_alone_need_no_place_on_a_backward_pass() -> None:
    """There may be 100,000 of them, and their one contribution each is added at once. Those of a second node do: they
    may be the same.
    """
    xs, others = leaves(), leaves()
    y = fused(7.0, xs, SLOPES, True)
    assert [id(node) for node in tape([y], True)] == [id(y)]
    z = fused(5.0, others, SLOPES, True)
    assert {id(node) for node in tape([y, z], True)} == {id(node) for node in (*others, y, z)}


def test_leaves_that_two_such_nodes_share_and_not() -> None:
    shared, own, third = Value(1.0), Value(2.0), Value(3.0)
    shared.grad, own.grad, third.grad = 100.0, 200.0, 300.0
    y = fused(7.0, (shared, own), [5.0, 0.5], True)
    z = fused(5.0, (third, shared), [0.25, 3.0], True)
    (10.0 * y + z * shared).backward()
    assert [x.grad for x in (shared, own, third)] == [100.0 + 50.0 + 3.0 + 5.0, 205.0, 300.25]


class Lock:
    """Counts how often it is taken."""

    taken = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        pass


def test_a_pass_of_the_compiled_engine_waits_only_while_a_graph_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes between while it runs; but a Graph that is being written needs the marks of its walk for longer."""
    engine.pin(-1 if handmade._locked else 0)  # once a node was made by hand, every pass takes the lock
    lock = Lock()
    monkeypatch.setattr(engine, "walking", lock)
    if not engine.compiled:
        monkeypatch.setattr(ieee, "COMPILED", True)
    x = Value(1.0)
    x.backward()
    assert lock.taken == 0
    engine.pin(1)
    x.backward()
    assert lock.taken == 1
    engine.pin(1)
    engine.pin(-1)
    x.backward()
    assert lock.taken == 2
    engine.pin(-1)
    x.backward()
    assert (lock.taken, x.grad) == (2, 4.0)
    engine.pin(1 if handmade._locked else 0)
