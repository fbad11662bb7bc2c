"""The walk over a graph in which compiled functions have left nodes of many leaves: each is met once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest

from wengert import Value
from wengert.engine import Many, tape
from wengert.fused import fused as fused_of_array

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
