"""The types of what a compiled function returns: those of the function's own results, exactly."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import specializations
from wengert import Value

np = pytest.importorskip("numpy")
pytest.importorskip("wengert.compiler.backends")

W, B = Value(0.5, label="w"), Value(-0.25, label="b")
A, X = 0.75, [0.5, -1.5, 2.0]


def types(x: Any) -> Any:
    """Return the types of a result and of everything in it; of an array its dtype too."""
    if isinstance(x, (tuple, list)):
        return type(x), [types(part) for part in x]
    if isinstance(x, dict):
        return type(x), {key: types(part) for key, part in x.items()}
    if isinstance(x, np.ndarray):
        return type(x), x.dtype, x.shape, [types(part) for part in x.ravel().tolist()]
    return type(x), type(x).__name__, type(x).__qualname__, type(x).__module__


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a sum": (lambda x: W * x + B, (A,)),
    "a row of the table": (lambda x: (W * x).tanh(), (A,)),
    "dot": (lambda xs: wengert.dot([W, B, 1.0], xs), (X,)),
    "the sum of a list": (lambda xs: wengert.sum([W * x for x in xs]), (X,)),
    "a loop": (lambda xs: sum(W * x for x in xs), (X,)),
    "a parameter alone": (lambda x: W if x > 0.0 else B, (A,)),
    "a constant": (lambda x: 3.0 * x, (A,)),
    "Values": (lambda x, y: x * y, (Value(0.5), Value(2.0))),
    "an argument": (lambda x, y: x if y > 0.0 else y, (Value(0.5), Value(2.0))),
    "a list": (lambda xs: [W * x for x in xs], (X,)),
    "a tuple with a float": (lambda x: (W * x, 2.0 * x, B), (A,)),
    "a dict": (lambda x: {"loss": (W * x).exp(), "parts": [W * x, x]}, (A,)),
    "an array of objects": (lambda x: np.array([W * x, B * x], object), (A,)),
    "a mean of losses": (lambda xs: wengert.mean([(W * x - B) ** 2 for x in xs]), (X,)),
}
DERIVATIVES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "grad": (wengert.grad(lambda x: (W * x).tanh()), (A,)),
    "value_and_grad": (wengert.value_and_grad(lambda x: (W * x).tanh()), (A,)),
    "jacobian": (wengert.jacobian(lambda xs: [W * xs[0] * xs[1], xs[2] ** 2]), (X,)),
    "hessian": (wengert.hessian(lambda xs: W * xs[0] * xs[1] * xs[2]), (X,)),
    "hvp": (wengert.hvp(lambda x: (W * x).tanh()), (A, 1.0)),
}
ALL = {**FUNCTIONS, **DERIVATIVES}


@pytest.mark.parametrize("name", ALL)
def test_a_result_has_the_types_of_the_function(name: str) -> None:
    function, args = ALL[name]
    compiled = wengert.compile(function)
    want = types(function(*args))
    for _ in range(4):
        assert types(compiled(*args)) == want
    assert specializations(compiled)


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_a_batch_has_them_too(how: str) -> None:
    compiled = wengert.compile(lambda x: (W * x).tanh())
    for _ in range(3):
        assert type(getattr(compiled, how)(X)) is Value


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_what_follows_a_result_has_them_too(several: bool) -> None:
    x, y = Value(0.5), Value(2.0)
    compiled = wengert.compile((lambda x, y: (x * y * W, x / y)) if several else lambda x, y: x * y * W)
    for _ in range(4):
        got = compiled(x, y)
    node = got[0] if several else got
    copied = copy.deepcopy(node)
    assert type(copied) is type(copied + 1.0) is type(copy.copy(node)) is type(node.detach()) is Value
    assert node._operands == node._prev  # Values all
    copied.backward()
    assert {v.label or v.data: v.grad for v in copied._prev} == {"w": 1.0, 0.5: 1.0, 2.0: 0.25}
    node.backward()
    assert (x.grad, y.grad) == (1.0, 0.25)
    for made in (node, copied):
        x.grad = y.grad = W.grad = 0.0
        made.grad = 2.0
        made._backward()
        assert (x.grad, y.grad, W.grad) == ((2.0, 0.5, 2.0) if made is node else (0.0, 0.0, 0.0))
    assert type(pickle.loads(pickle.dumps(node.detach()))) is Value
    with pytest.raises(TypeError, match="only a leaf can be pickled"):
        pickle.dumps(node)
    x.grad = y.grad = W.grad = 0.0


def test_operations_of_many_operands_give_plain_values() -> None:
    w, x = Value(2.0), Value(3.0)
    for y in (wengert.dot([w], [x]), wengert.sum([w, x, 1.0]), wengert.mean([w, x]), wengert.maximum(w, x)):
        assert type(y) is type(copy.deepcopy(y)) is Value
    assert type(Value(1.0, (w, x), "+")) is not Value  # a node made by hand has a closure


def test_a_copy_whose_memo_has_no_operand() -> None:
    x = Value(2.0)
    for y in (x + 1.0, x * x):
        with pytest.raises(TypeError, match="None"):
            copy.deepcopy(y, {id(x): None})
    copied = copy.deepcopy(wengert.dot([x], [x]), {id(x): None})
    copied.backward()
    assert copied._operands == (None, None, 0.0)


@pytest.mark.parametrize(
    "point", [0.75, Value(0.75), W, [0.5, 2.0], [Value(0.5), Value(2.0)], np.array([0.5, 2.0])], ids=repr
)
def test_point_and_direction_are_one_object(point: Any) -> None:
    def cubes(x: Any) -> Any:
        return sum(W * part**3 for part in (x if isinstance(x, (list, np.ndarray)) else [x]))

    product = wengert.hvp(cubes)
    for compiled in (wengert.compile(product), wengert.hvp(wengert.compile(cubes))):
        for _ in range(3):
            got, want = compiled(point, point), product(point, point)
            assert types(got) == types(want)
            assert [float(f"{x:.9g}") for x in _numbers(got)] == [float(f"{x:.9g}") for x in _numbers(want)]


def _numbers(x: Any) -> list[float]:
    return [
        part.data if isinstance(part, Value) else part for part in (x if isinstance(x, (list, np.ndarray)) else [x])
    ]
