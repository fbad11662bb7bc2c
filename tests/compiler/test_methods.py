"""Methods and other callables of one function, compiled, and their derivatives, in both orders of the two."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from wengert import Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp  # noqa: E402

weight = Value(0.7, "weight")


def loss(x: Any, y: Any = 2.0) -> Any:
    return (weight * x - y) ** 2 * x


def with_owner(owner: Any, x: Any, y: Any = 2.0) -> Any:
    return (owner.w * x - y) ** 2 * x


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return wrapper


class Model(wengert.nn.Module):
    """Has the loss as a method of each kind, decorated in each order, and as its call."""

    w = weight

    def __init__(self) -> None:
        self.scale = 1.0

    def __call__(self, x: Any, y: Any = 2.0) -> Any:
        return with_owner(self, x, y)

    def plain(self, x: Any, y: Any = 2.0) -> Any:
        return with_owner(self, x, y)

    method = wengert.compile(plain)
    of_class = classmethod(wengert.compile(with_owner))
    class_first = wengert.compile(classmethod(with_owner))
    static = staticmethod(wengert.compile(loss))
    static_first = wengert.compile(staticmethod(loss))

    @wengert.compile(static=["power"])
    def powered(self, x: Any, power: int = 2) -> Any:
        return self.w * x**power


model = Model()
COMPILED: dict[str, Callable[[], Any]] = {
    "method": lambda: model.method,
    "method of the class": lambda: Model.of_class,
    "method of the class, through an object": lambda: model.of_class,
    "a classmethod, compiled": lambda: Model.class_first,
    "static method": lambda: model.static,
    "a staticmethod, compiled": lambda: model.static_first,
    "a bound method, compiled": lambda: wengert.compile(model.plain),
    "an object, compiled": lambda: wengert.compile(model),
    "a partial, compiled": lambda: wengert.compile(functools.partial(with_owner, model)),
    "a decorated function, compiled": lambda: wengert.compile(decorated(loss)),
    "a decorated method, compiled": lambda: wengert.compile(decorated(model.plain)),
}
AROUND: dict[str, Callable[[], Any]] = {  # around something compiled, and so not compiled themselves
    "a partial of a compiled function": lambda: functools.partial(wengert.compile(with_owner), model),
    "a partial of a compiled method": lambda: functools.partial(Model.method, model),
    "a partial of a bound method": lambda: functools.partial(model.method),
    "a decorated compiled method": lambda: decorated(model.method),
    "a decorated compiled function": lambda: decorated(wengert.compile(loss)),
}
DERIVATIVES: dict[str, tuple[Callable[[Any], Any], tuple[float, ...]]] = {
    "grad": (grad, (3.0, 2.5)),
    "both": (lambda f: grad(f, argnums=(0, 1)), (3.0, 2.5)),
    "from the end": (lambda f: grad(f, argnums=-1), (3.0, 2.5)),
    "default": (grad, (3.0,)),
    "value_and_grad": (value_and_grad, (3.0, 2.5)),
    "jacobian": (jacobian, (3.0, 2.5)),
    "hessian": (hessian, (3.0, 2.5)),
    "grad of grad": (lambda f: grad(grad(f)), (3.0, 2.5)),
    "hvp": (hvp, (3.0, 0.5, 2.5)),
}


def alike(compiled: Any, plain: Callable[..., Any], args: tuple[float, ...]) -> None:
    """Assert that five calls give the numbers and the gradients of the plain function."""
    expected = plain(*args)
    for _ in range(5):
        found = compiled(*args)
        assert numbers(found) == numbers(expected)
        assert weighted(found) == weighted(expected)


def weighted(result: Any) -> float:
    """The gradient of the weight in a weighted sum of the Values of a result."""
    weight.grad = 0.0
    total: Any = Value(0.0)
    for n, leaf in enumerate(leaves(result)):
        total = total + (n + 1.5) * leaf
    total.backward()
    return weight.grad


def numbers(result: Any) -> list[tuple[bool, float]]:
    return [(isinstance(leaf, Value), leaf.data if isinstance(leaf, Value) else leaf) for leaf in leaves(result)]


def leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


def is_lifted(compiled: Any) -> bool:
    report: str = compiled.report()
    return "array operation" in report and "fell back" not in report


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("kind", {**COMPILED, **AROUND})
def test_a_derivative_of_what_is_compiled(kind: str, derivative: str) -> None:
    made, args = DERIVATIVES[derivative]
    found = made({**COMPILED, **AROUND}[kind]())
    alike(found, made(loss), args)
    assert kind in AROUND or is_lifted(found)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("kind", {**COMPILED, **AROUND})
def test_a_derivative_that_is_compiled(kind: str, derivative: str) -> None:
    made, args = DERIVATIVES[derivative]
    found = wengert.compile(made({**COMPILED, **AROUND}[kind]()))
    alike(found, made(loss), args)
    assert is_lifted(found)


@pytest.mark.parametrize("kind", {**COMPILED, **AROUND})
def test_products_with_vectors(kind: str) -> None:
    function = {**COMPILED, **AROUND}[kind]()
    for _ in range(5):
        assert repr(jvp(function, (3.0, 2.5), (1.0, 0.5))) == repr(jvp(loss, (3.0, 2.5), (1.0, 0.5)))
        (value, pullback), (expected, pulled) = vjp(function, 3.0, 2.5), vjp(loss, 3.0, 2.5)
        assert repr((value, pullback(2.0))) == repr((expected, pulled(2.0)))


@pytest.mark.parametrize("kind", COMPILED)
def test_batches_of_derivatives(kind: str) -> None:
    xs = [3.0, -1.0, 0.5]
    found = grad(COMPILED[kind]())
    for _ in range(3):
        assert found.map(xs).tolist() == [grad(loss)(x).data for x in xs]


def test_a_derivative_is_compiled_once_for_each_object() -> None:
    one, other = Model(), Model()
    assert grad(one.method) is grad(one.method)
    assert grad(one.method) is not grad(other.method)
    assert grad(one.method) is not value_and_grad(one.method)


def test_few_objects_are_kept_by_their_derivatives() -> None:
    references = []
    for _ in range(40):
        one = Model()
        grad(one.method)(3.0)
        references.append(weakref.ref(one))
    del one
    gc.collect()
    assert sum(reference() is not None for reference in references) <= 8
    assert references[-1]() is not None, "a loop over calls of grad compiles once"


def test_a_static_argument_of_a_method() -> None:
    for power in (2, 3, 2, 3, 3):
        assert grad(model.powered)(1.5, power).data == grad(lambda x, n=power: weight * x**n)(1.5).data


def test_a_compiled_method_is_a_method() -> None:
    assert inspect.signature(model.method) == inspect.signature(model.plain)
    assert model.method.__name__ == "plain"
    assert model.method.__self__ is model
    assert model.method.__func__ is Model.__dict__["method"]
    assert model.method == model.method != Model().method
    assert len({model.method, model.method, model.static}) == 2
    for twin in (copy.copy(model.method), copy.deepcopy(model.method), pickle.loads(pickle.dumps(model.method))):
        assert twin(3.0).data == loss(3.0).data


def test_a_compiled_method_as_an_argument_is_one_signature() -> None:
    caller = wengert.compile(lambda function, x: function(x) * 2.0)
    for _ in range(5):
        assert caller(model.method, 3.0).data == loss(3.0).data * 2.0
    assert "5 calls" in caller.report()


def test_batches_of_class_methods() -> None:
    """`compile` around `classmethod` binds on every Python; from 3.13 on `classmethod` around it is only called."""
    xs = [3.0, -1.0, 0.5]
    for kind in (Model, model):
        for _ in range(3):
            assert kind.class_first.map(xs).tolist() == [loss(x).data for x in xs]
            assert kind.of_class(xs[0]).data == loss(xs[0]).data
