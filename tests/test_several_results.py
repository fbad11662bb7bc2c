"""The nodes of a call that gives several results: one sweep for the cotangents that came."""

from __future__ import annotations

import copy
import math
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from wengert import Value
from wengert.compiler.call.fused import SavedCall, are_near, partials_of, results_of
from wengert.errors import ArgumentError
from wengert.graph import Graph

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


class Linear:
    """What pulls cotangents back for a call: by a matrix, counting how often."""

    def __init__(self, rows: Sequence[Sequence[float]]) -> None:
        self.rows = rows
        self.sweeps = 0

    def pull_back(self, inputs: Any, params: Any, cotangents: Sequence[float | None]) -> Any:
        self.sweeps += 1
        return array(
            "d", [sum(map(lambda c, x: (c or 0.0) * x, cotangents, column)) for column in zip(*self.rows, strict=True)]
        )

    def call(self, numbers: Sequence[float], operands: Sequence[Any], chosen: bytes = b"", leaves: bool = False) -> Any:
        """The results of a call."""
        held = array("d", numbers)
        saved = SavedCall(self, [], None, len(numbers))
        chosen = chosen or b"\1" * len(numbers)
        return results_of(saved, held.buffer_info()[0], array("B", chosen), tuple(operands), leaves)


def called(leaves: bool = True) -> tuple[Linear, Value, Value, list[Any]]:
    made, a, b = Linear(ROWS), Value(2.0), Value(3.0)
    return made, a, b, made.call([1.0, 2.0, 3.0], [a, b], leaves=leaves)


@pytest.mark.parametrize("leaves", [True, False])
def test_an_expression_over_several_results_takes_one_sweep(leaves: bool) -> None:
    made, a, b, (p, q, r) = called(leaves)
    (p * q + r * r).backward()  # 2 * p's row, 1 * q's row, 6 * r's row
    assert (a.grad, b.grad, made.sweeps) == (2.0 + 3.0 + 30.0, 4.0 + 4.0 + 36.0, 1)
    assert (p.grad, q.grad, r.grad) == (2.0, 1.0, 6.0)


def test_results_in_turn_add_up_and_each_pass_takes_one_sweep() -> None:
    made, a, b, (p, q, r) = called()
    for n, result in enumerate((q, p, q, r), 1):
        result.backward()
        assert made.sweeps == n
    assert (a.grad, b.grad) == (3.0 + 1.0 + 3.0 + 5.0, 4.0 + 2.0 + 4.0 + 6.0)
    p.backward(-2.0)
    assert (a.grad, b.grad) == (10.0, 12.0)


def test_what_came_in_an_earlier_pass_is_forgotten() -> None:
    _, a, b, (p, q, r) = called()
    (p + q).backward()
    a.grad = b.grad = 0.0
    (r * 1.0).backward()
    assert (a.grad, b.grad) == (5.0, 6.0)
    assert q.grad == 1.0  # of the pass that reached it last


def test_operands_are_used_elsewhere_too() -> None:
    _, a, b, (p, _, r) = called()
    c = a * b
    (p * c + c * r).backward()  # dp = dr = 6, dc = 1 + 3
    assert (a.grad, b.grad) == (6.0 + 30.0 + 4.0 * 3.0, 12.0 + 36.0 + 4.0 * 2.0)


def test_calls_on_results_of_calls() -> None:
    a, b = Value(2.0), Value(3.0)
    first, second = Linear(ROWS), Linear([[1.0, -1.0, 2.0], [0.5, 0.0, 1.0]])
    s, t = second.call([0.0, 0.0], first.call([1.0, 2.0, 3.0], [a, b]))
    (s + 2.0 * t).backward()  # 2, -1, 4 by the rows of the first
    assert (a.grad, b.grad) == (2.0 - 3.0 + 20.0, 4.0 - 4.0 + 24.0)
    assert (first.sweeps, second.sweeps) == (1, 1)


def test_numbers_among_the_results_are_floats() -> None:
    made, a = Linear([[2.0], [0.0], [7.0]]), Value(1.0)
    x, y, z = made.call([4.0, 5.0, 6.0], [a], b"\1\0\1")
    assert (type(y), y) == (float, 5.0)
    (x * z).backward()
    assert a.grad == 6.0 * 2.0 + 4.0 * 7.0


def test_a_result_passes_on_its_gradient_by_hand() -> None:
    made, a, b, (_, q, r) = called()
    r.grad = 2.0
    r._backward()
    assert (a.grad, b.grad, made.sweeps) == (10.0, 12.0, 1)
    q.backward()  # and after a pass that it was part of
    q._backward()
    assert (a.grad, b.grad) == (16.0, 20.0)


def test_in_a_graph_a_result_is_an_operation_on_the_operands() -> None:
    made, a, b, (p, q, r) = called()
    graph = Graph(p * q + r)
    assert [instruction.op.name for instruction in graph] == ["leaf"] * 2 + ["compiled"] * 3 + ["mul", "add"]
    assert [graph[place].operands for place in (2, 3, 4)] == [(0, 1)] * 3
    assert list(graph.pull_back({6: 1.0})) == [2.0 + 3.0 + 5.0, 4.0 + 4.0 + 6.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    assert made.sweeps == 1
    assert list(graph.pull_back({6: 2.0}, 3)) == [0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]
    assert list(graph.pull_back({3: 1.0}, 1)) == [0.0, 4.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert list(graph.pull_back({6: 1.0}, 7)) == [0.0] * 6 + [1.0]
    with pytest.raises(ArgumentError, match="first is 8"):
        graph.pull_back({6: 1.0}, 8)
    assert list(graph.partials[:6]) == [x for row in ROWS for x in row]
    assert list(graph.push_forward({0: 1.0}))[2:5] == [1.0, 3.0, 5.0]
    assert partials_of(q) == [3.0, 4.0]
    assert (a.grad, b.grad) == (0.0, 0.0)


def test_a_copy_has_its_own_partials() -> None:
    made, a, b, (p, q, _) = called()
    twin = copy.deepcopy(p * q)
    made.rows = []
    twin.backward()
    left, right = twin._prev
    assert [x.grad for x in left._prev] == [2.0 * 1.0 + 1.0 * 3.0, 2.0 * 2.0 + 1.0 * 4.0]
    assert right._prev == left._prev
    left.grad = 1.0
    left._backward()
    assert [x.grad for x in left._prev] == [6.0, 10.0]
    assert (a.grad, b.grad) == (0.0, 0.0)


def test_a_long_chain_of_calls_ends_without_recursion() -> None:
    x, y = first = Value(1.0), Value(1.0)
    turn = Linear([[0.0, 1.0], [-1.0, 0.0]])
    for _ in range(20_000):
        x, y = turn.call([1.0, 1.0], [x, y])
    (x + 2.0 * y).backward()
    assert [v.grad for v in first] == [1.0, 2.0]  # 20,000 quarter turns
    assert turn.sweeps == 20_000


def test_derivatives_that_are_near() -> None:
    want = array("d", [1.0, -2.0, 0.0, 1e-20, math.nan])
    places = (1, 0)
    assert are_near([-2.0, 1.0], want, places, 1e-9, None, 0.0)
    assert are_near([-2.0 - 1e-9, 1.0], want, places, 1e-9, None, 0.0)
    assert not are_near([-2.0 - 3e-9, 1.0], want, places, 1e-9, None, 0.0)
    assert not are_near([0.0, 1e-20], want, (3, 2), 1e-9, None, 1e-11)
    sizes = array("d", [1.0, 2.0, 1.0, 1.0, 1.0])  # of what was added up: these digits have cancelled
    assert are_near([0.0, 1e-20], want, (3, 2), 1e-9, sizes, 1e-11)
    assert not are_near([0.0, 1e-10], want, (3, 2), 1e-9, sizes, 1e-11)
    assert not are_near([math.nan], want, (0,), 1e-9, sizes, 1e-11)
    assert not are_near([1.0], want, (4,), 1e-9, sizes, 1e-11)
    assert are_near([], want, (), 1e-9, None, 0.0)
    assert not are_near([1.0, 1.0], want, (0,), 1e-9, None, 0.0)
