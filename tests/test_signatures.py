"""Functions whose annotations cannot be evaluated: names under TYPE_CHECKING. Python 3.14 leaves them until asked."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import wengert
from wengert import Value
from wengert._signatures import signature

PACKAGE = Path(wengert.__file__).parent
PROGRAM = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from nowhere import Number

def f(x: Number, y: Number = 2.0) -> Number:
    return x * x * y

class Model:
    def loss(self, x: Number) -> Number:
        return x * x

    def both(self, x: Number, y: Number) -> Number:
        return x * x * y

    def __call__(self, x: Number) -> Number:
        return x * x

def number(x: Number) -> Number:
    return x * x
"""
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "compile": lambda f, model: [wengert.compile(f)(3.0) for _ in range(4)],
    "map": lambda f, model: wengert.compile(f).map([3.0, 4.0]),
    "method": lambda f, model: [wengert.compile(model.loss)(3.0) for _ in range(4)],
    "object": lambda f, model: [wengert.compile(model)(3.0) for _ in range(4)],
    "grad": lambda f, model: wengert.grad(f)(x=3.0),
    "grad of compiled": lambda f, model: wengert.grad(wengert.compile(f))(3.0),
    "compiled grad": lambda f, model: [wengert.compile(wengert.grad(f))(3.0) for _ in range(4)],
    "compiled hvp": lambda f, model: [wengert.compile(wengert.hvp(f))(3.0, 1.0) for _ in range(4)],
    "value_and_grad": lambda f, model: wengert.value_and_grad(f)(3.0),
    "jacobian": lambda f, model: wengert.jacobian(f)(3.0),
    "hessian": lambda f, model: wengert.hessian(f)(3.0),
    "check_gradients": lambda f, model: wengert.check_gradients(model.both, {"x": 3.0, "y": 2.0}),
    "vjp": lambda f, model: wengert.vjp(f, 3.0),
}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the annotations are evaluated at the definition")
@pytest.mark.parametrize("way", WAYS)
def test_annotations_are_not_evaluated(way: str) -> None:
    program: dict[str, Any] = {"__name__": "program"}
    exec(compile(PROGRAM, "program", "exec", dont_inherit=True), program)
    assert WAYS[way](program["f"], program["Model"]()) is not None


@pytest.mark.skipif(sys.version_info < (3, 14), reason="the annotations are evaluated at the definition")
def test_annotations_of_an_operation_of_ones_own_are_not_evaluated() -> None:
    program: dict[str, Any] = {"__name__": "program"}
    exec(compile(PROGRAM, "program", "exec", dont_inherit=True), program)
    square = wengert.op("square_of_no_name", value=program["number"], partials=lambda y, x: 2.0 * x)
    assert square(Value(3.0)).data == 9.0


def test_what_has_no_signature_says_so() -> None:
    assert list(signature(lambda x, *, y=1.0: x).parameters) == ["x", "y"]
    with pytest.raises((TypeError, ValueError)):
        signature(3)  # type: ignore[arg-type]


def test_functions_of_operands_say_how_many() -> None:
    np = pytest.importorskip("numpy")
    assert [len(signature(f).parameters) for f in (wengert.tanh, wengert.where, np.sin, np.hypot)] == [1, 3, 1, 2]
    assert signature(wengert.leaky_relu).parameters["x1"].default == 0.01
    assert [*signature(wengert.sum).parameters] == ["operands"]
    table = wengert.Table([0.0, 1.0], [0.0, 2.0])
    assert [len(signature(wengert.grad(f)).parameters) for f in (table, wengert.tanh, np.sin, np.hypot)] == [1, 1, 1, 2]

    for inner in (np.sin, wengert.tanh, table):

        @functools.wraps(inner)
        def wrapped(*xs: float, k: float = 2.0) -> Any:
            return xs[0] * k

        assert len(signature(wrapped).parameters) == 1  # as `inspect.signature` says of the function inside
        wrapped.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
        assert not signature(wrapped).parameters
    assert [*signature(Mock()).parameters] == [*inspect.signature(Mock()).parameters]


def test_signatures_are_read_in_one_place() -> None:
    """`inspect.signature` by itself evaluates annotations."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.ImportFrom) else []
            reads = isinstance(node, ast.Attribute) and ast.unparse(node) == "inspect.signature"
            if reads or (isinstance(node, ast.ImportFrom) and node.module == "inspect" and "signature" in names):
                assert path.name == "_signatures.py", path
