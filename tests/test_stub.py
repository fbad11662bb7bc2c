"""The stub of functions.py is the one that the table gives, and shows what is there at run time."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import wengert
from wengert import Value, functions, ops

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "src" / "wengert" / "functions.pyi"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "make_stubs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown() -> tuple[set[str], set[str]]:
    """The functions and the methods that the stub declares."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    (mixin,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Functions"]
    top = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return top, {node.name for node in mixin.body if isinstance(node, ast.FunctionDef)}


def built_in() -> list[ops.Op]:
    return [row for row in ops.TABLE[: ops.BUILT_IN] if row.value]


def test_the_stub_is_up_to_date(tool: ModuleType) -> None:
    assert tool.stub() == STUB.read_text(encoding="utf-8"), "run: python tools/make_stubs.py"


def test_every_function_is_shown() -> None:
    names = {name for row in built_in() for name in (row.name, *row.aliases)}
    top, _ = shown()
    assert top == names | {"softmax", "log_softmax", "matmul", "op", "pick", "take"}
    builtin = {"abs", "max", "min", "pow", "round", "sum"}  # which a star import leaves to Python
    assert top == set(vars(functions)["__all__"]) | builtin | {"dot"}
    assert all(callable(getattr(functions, name)) for name in top)


def test_every_method_is_shown() -> None:
    names = {
        name for row in built_in() if row.arity is not None and not row.shapes for name in (row.name, *row.aliases)
    }
    _, methods = shown()
    assert methods == names
    assert all(callable(getattr(Value, name)) for name in methods)


def test_every_public_function_of_the_table_is_the_one_of_the_module() -> None:
    top, _ = shown()
    for name in sorted(top - {"dot"}):
        if hasattr(wengert, name):
            assert getattr(wengert, name) is getattr(functions, name)
    assert {name for name in top if not hasattr(wengert, name)} == set()
    assert wengert.dot is wengert.engine.dot


def test_operands_are_named_alike_in_every_rule(tool: ModuleType) -> None:
    for row in built_in():
        if row.arity is not None:
            names = tool.operand_names(row)
            assert len(names) == row.arity, row.name
            code = getattr(row.value, "__code__", None)
            if code is not None and code.co_argcount == row.arity and row.name != "polygamma":
                assert list(code.co_varnames[: row.arity]) == [
                    "c" if name == "condition" else name for name in names
                ], row.name
