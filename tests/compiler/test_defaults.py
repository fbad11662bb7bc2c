"""Defaults that change between calls: the function reads its own, and so does its recorded run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("numpy")

import wengert
from wengert import grad, value_and_grad

pytestmark = pytest.mark.once  # what is recorded does not depend on which engine runs


def cubed(x: Any, *, k: float) -> Any:
    return k * x * x * x


def a_function() -> tuple[Any, Any]:
    def f(x: Any, *, k: float = 2.0) -> Any:
        return cubed(x, k=k)

    return f, f.__kwdefaults__


def a_method() -> tuple[Any, Any]:
    class Model:
        def f(self, x: Any, *, k: float = 2.0) -> Any:
            return cubed(x, k=k)

    return Model().f, Model.f.__kwdefaults__


def an_inherited_call() -> tuple[Any, Any]:
    class Model:
        def __call__(self, x: Any, *, k: float = 2.0) -> Any:
            return cubed(x, k=k)

    class Derived(Model):
        pass

    return Derived(), Model.__call__.__kwdefaults__


def a_class_method() -> tuple[Any, Any]:
    class Model:
        @classmethod
        def f(cls, x: Any, *, k: float = 2.0) -> Any:
            return cubed(x, k=k)

    return Model.f, Model.f.__func__.__kwdefaults__


def a_wrapped_function() -> tuple[Any, Any]:
    f, defaults = a_function()

    @functools.wraps(f)
    def wrapper(*args: Any, **named: Any) -> Any:
        return f(*args, **named)

    return wrapper, defaults


def a_partial() -> tuple[Any, Any]:
    of = functools.partial(a_function()[0], k=2.0)
    return of, of.keywords


def a_partial_of_a_function_with_defaults() -> tuple[Any, Any]:
    f, defaults = a_function()
    return functools.partial(f), defaults


def with_a_second_result(f: Any) -> Any:
    @functools.wraps(f)
    def pair(x: Any, **named: Any) -> Any:
        return f(x, **named), 1.0

    return grad(pair, has_aux=True)


FUNCTIONS: list[Callable[[], tuple[Any, Any]]] = [
    a_function, a_method, an_inherited_call, a_class_method, a_wrapped_function, a_partial,
    a_partial_of_a_function_with_defaults,
]  # fmt: skip
USES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda f: f,
    "grad": grad,
    "grad of the last": lambda f: grad(f, -1),
    "value_and_grad": value_and_grad,
    "has_aux": with_a_second_result,
}


@pytest.mark.parametrize("make", FUNCTIONS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("use", USES)
def test_a_keyword_only_default_that_changes_in_place(make: Any, use: str) -> None:
    f, defaults = make()
    plain = USES[use](f)
    compiled = wengert.compile(USES[use](f), backend="numpy")
    for k in (2.0, 3.0, -1.0):
        defaults["k"] = k
        for _ in range(20 if k == 2.0 else 3):  # no call with the next one is the 32nd, which is compared
            assert compiled(1.5) == plain(1.5)
    assert "runs uncompiled" not in compiled.report()
