"""What a compiled function needs of the engine: the numbers of many Values at once, and one node for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.engine import Many, Value, _many
from wengert.native import Array
from wengert.node import LEAVES
from wengert.ops import BY_NAME

__all__ = ["fused", "gather"]

COMPILED = BY_NAME["compiled"].code


def gather(values: tuple[Any, ...], numbers: Array) -> None:
    """Write the data of each Value into an array of as many floats."""
    value: Value
    place = 0
    for value in values:
        numbers[place] = value._data
        place += 1  # noqa: SIM113  (enumerate would make a tuple of each)


def fused(data: float, operands: Sequence[Any], partials: Array, leaves: bool = False) -> Any:
    """One node with this value, on these operands, with these partial derivatives by each; `leaves`: all are leaves."""
    node: Many = _many(COMPILED, operands)
    node._data = data
    node._db = LEAVES if leaves else 0.0
    for i in range(len(node._all)):
        node._partials[i] = float(partials[i])
    return node
