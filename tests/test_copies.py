"""Copies of a graph stand by themselves; a leaf can be pickled, a result cannot."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import wengert
from wengert import Value


def test_deepcopy_of_a_graph() -> None:
    x = Value(3.0, label="x")
    y = wengert.clip(x * x - 2, 0.0, 10.0) + 2 ** (-x) + wengert.dot([x, 2.0], [x, x], 1) + x**2
    y.label = "y"
    twin = copy.deepcopy(y)
    y.backward()
    assert twin.grad == 0.0
    twin.backward()
    (twin_x,) = {v for v in wengert.graph.Graph(twin).values if v.label == "x"}
    assert twin_x is not x
    assert (twin.data, twin.label, twin_x.grad, twin_x.data) == (y.data, "y", x.grad, 3.0)
    again = copy.deepcopy(twin)
    assert again.grad == 1.0
    twin_x.data = 50.0
    assert x.data == 3.0


def test_deepcopy_keeps_what_is_shared_shared() -> None:
    x = Value(2.0)
    y, z = x * 3, x * 4
    twins: Any = copy.deepcopy({"leaf": x, "all": [y, z, y]})
    assert twins["all"][0] is twins["all"][2]
    (twins["all"][0] + twins["all"][1]).backward()
    assert (twins["leaf"].grad, x.grad) == (7.0, 0.0)
    assert copy.deepcopy(x) is not x


def test_a_copy_is_made_after_what_it_is_made_from() -> None:
    """New nodes on the copies, mixed with old ones, are still walked in the right order."""
    x = Value(2.0)
    y = x * x
    twin = copy.deepcopy(y)
    z = twin * y
    z.backward()
    assert x.grad == 16.0


def test_pickle_of_a_leaf() -> None:
    x = Value(1 / 3, label="x")
    x.grad = 0.1
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(x, protocol))
        assert (type(twin), twin.data, twin.grad, twin.label) == (Value, 1 / 3, 0.1, "x")
        assert twin is not x
        (twin * 2).backward()
    twin = copy.copy(x)
    assert (twin.data, twin.grad, twin.label, twin is x) == (1 / 3, 0.1, "x", False)


@pytest.mark.parametrize("make", [lambda x: x + 1, lambda x: -x, lambda x: wengert.mean(x, x), lambda x: x**2])
def test_pickle_of_a_result_is_refused(make: Any) -> None:
    y = make(Value(1.0))
    with pytest.raises(TypeError, match=r"only a leaf can be pickled.*copy\.deepcopy.*checkpoint\.save"):
        pickle.dumps(y)
