"""Writes src/wengert/functions.pyi from the table of operations: python tools/make_stubs.py

The functions and methods of the table are made when `functions.py` is loaded, where editors and type checkers
cannot see them. The stub shows them. A test compares it with the table.
"""

from __future__ import annotations

from pathlib import Path

from wengert import functions as functions_module
from wengert import ops

STUB = Path(__file__).resolve().parent.parent / "src" / "wengert" / "functions.pyi"

HEAD = '''\
# Made by tools/make_stubs.py from the table in ops/table.py: run that, do not edit this.
# A function of floats returns a float; with a Value among its operands, a Value.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, overload

from wengert.engine import Value

class Functions:
    """The methods that the table gives a Value: `x.tanh()` for the row tanh, and so on."""

    __slots__ = ()
    __array_priority__: float
'''

TAIL = """
@overload
def softmax(values: Iterable[float]) -> list[float]: ...  # type: ignore[overload-overlap]  # a float fits both
@overload
def softmax(values: Iterable[Value | float]) -> list[Value]: ...
@overload
def log_softmax(values: Iterable[float]) -> list[float]: ...  # type: ignore[overload-overlap]  # a float fits both
@overload
def log_softmax(values: Iterable[Value | float]) -> list[Value]: ...
def matmul(a: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Any]: ...
def take(rows: Any, index: Any) -> Any: ...
def pick(values: Any, index: Any) -> Any: ...
def op(
    name: str,
    *,
    value: Callable[..., float],
    partials: Callable[..., Any] | Literal["differences"],
    arity: int | None = -1,
    symbol: str = "",
) -> Callable[..., Any]: ...
"""


def operand_names(row: ops.Op) -> list[str]:
    """Return the names of the operands in the row's rule."""
    code = row.partials.__code__
    return list(code.co_varnames[1 : code.co_argcount])


def parameters(row: ops.Op, kinds: list[str]) -> str:
    """Write the parameters of a function of the row for operands of these types."""
    defaults = [""] * (len(kinds) - len(row.defaults)) + [f" = {d}" for d in row.defaults]
    defaults = ["" if kind == "Value" else d for kind, d in zip(kinds, defaults, strict=True)]
    names = operand_names(row)
    return ", ".join(f"{name}: {kind}{d}" for name, kind, d in zip(names, kinds, defaults, strict=True)) + ", /"


def method(name: str, row: ops.Op) -> str:
    """The row as a method: the first operand is the Value itself."""
    if row.more:
        return f"    def {name}(self, /, *others: Value | float) -> Value: ...\n"
    others = ["Value | float"] * (row.arity - 1)
    rest = parameters(row, ["", *others]).split(", ", 1)[1]
    return f"    def {name}(self, {rest}) -> Value: ...\n"


def function(name: str, row: ops.Op) -> str:
    """The row as a function: an overload for floats, and one for each position of the first Value."""
    if row.arity is None:
        return (
            f"@overload\ndef {name}(  # type: ignore[overload-overlap]  # a float fits both\n"
            f"    values: Iterable[float], /\n) -> float: ...\n"
            f"@overload\ndef {name}(values: Iterable[Value | float], /) -> Value: ...\n"
            f"@overload\ndef {name}(  # type: ignore[overload-overlap]  # a float fits both\n"
            f"    first: float, second: float, /, *more: float\n) -> float: ...\n"
            f"@overload\ndef {name}("
            "first: Value | float, second: Value | float, /, *more: Value | float) -> Value: ...\n"
        )
    kinds = [["float"] * row.arity]
    for place in range(row.arity):
        kinds.append(["float"] * place + ["Value"] + ["Value | float"] * (row.arity - place - 1))
    if row.name == "where":
        kinds = [["bool", *k[1:]] if k[0] == "float" else k for k in kinds]
    signatures = [f"def {name}({parameters(row, k)}) -> {'Value' if 'Value' in k else 'float'}: ...\n" for k in kinds]
    if row.more:
        signatures = [
            f"def {name}(*xs: float) -> float: ...  # type: ignore[overload-overlap]  # a float fits both\n",
            f"def {name}(*xs: Value | float) -> Value: ...\n",
        ]
    return "".join(f"@overload\n{signature}" for signature in signatures)


def stub() -> str:
    """The whole text of the stub."""
    rows = [(name, row) for row in ops.TABLE[1 : ops.BUILT_IN] for name in (row.name, *row.aliases) if row.value]
    methods = "".join(method(name, row) for name, row in rows if row.arity is not None and not row.shapes)
    functions = "".join(function(name, row) for name, row in rows if name != "dot")
    dot = (
        "@overload\ndef dot(  # type: ignore[overload-overlap]  # an empty sequence fits both\n"
        "    ws: Sequence[float], xs: Sequence[float], bias: float = 0.0\n) -> float: ...\n"
        "@overload\ndef dot(ws: Sequence[Value | float], xs: Sequence[Value | float], bias: Value | float = 0.0)"
        " -> Value: ...\n"
    )
    listed = "".join(f'    "{name}",\n' for name in functions_module.__all__)
    return f"{HEAD}\n{methods}\n{functions}{dot}{TAIL}\n__all__ = [\n{listed}]\n"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
