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


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_in_a_function_that_is_compiled(copied: Any) -> None:
    """A copy of a leaf is another leaf, on which the parameters have no say: compiled as it stands."""
    pytest.importorskip("numpy")
    w = Value(3.0)

    def f(x: float) -> Any:
        return w * x + copied(w) * x

    compiled = wengert.compile(f, backend="numpy")
    for x in (1.0, 2.0, -1.0, 0.5, 4.0, 3.0):
        w.grad = 0.0
        got = compiled(x)
        got.backward()
        assert (got.data, w.grad) == (6.0 * x, x)


def test_a_value_is_hashed_in_a_function_that_is_compiled() -> None:
    pytest.importorskip("numpy")
    w, v = Value(3.0), Value(4.0)
    compiled = wengert.compile(lambda x: sum({w: 1.0, v: x}[p] * p for p in (w, v)), backend="numpy")
    assert [compiled(x).data for x in (1.0, 2.0, 5.0)] == [7.0, 11.0, 23.0]


def test_a_notebook_is_given_a_picture_and_text() -> None:
    o = Value(2.0) * 3.0
    bundle = o._repr_mimebundle_()
    assert bundle["text/plain"] == repr(o)
    assert bundle["image/svg+xml"].startswith("<svg")


@pytest.mark.parametrize("of", [lambda x: x + 1.0, lambda x: wengert.sum([x, x * 2.0, x])])
def test_a_memo_that_has_nothing_for_an_operand(of: Any) -> None:
    """As a `__deepcopy__` of the user's may leave: an error, and no node without its operands."""
    x = Value(2.0)
    with pytest.raises(TypeError, match=r"None for a Value|NoneType"):
        of(x).__deepcopy__({id(x): None})
