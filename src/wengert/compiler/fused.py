"""What a compiled function needs of the engine: the numbers of many Values at once, and one node for all of them.

And what is kept of such a node, for those who look at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.engine import Many, Value, _many
from wengert.errors import LengthError
from wengert.node import CODE
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Array

__all__ = ["fused", "gather", "partials_of", "scatter"]

COMPILED, HAND = BY_NAME["compiled"].code, BY_NAME["by hand"].code


def gather(values: tuple[Any, ...], numbers: Array) -> None:
    """Write the data of each Value into an array of as many floats."""
    if len(numbers) != len(values):
        raise LengthError(f"{len(values)} Values and an array of {len(numbers)} numbers")
    for i in range(len(values)):
        value = ieee.at(values, i, Value)
        if ieee.held(value):
            numbers[i] = value._data


def scatter(values: tuple[Any, ...], numbers: Array, gradients: Array) -> None:
    """Give each Value its data and its gradient from arrays of as many floats."""
    if len(numbers) != len(values) or len(gradients) != len(values):
        raise LengthError(f"{len(values)} Values and arrays of {len(numbers)} numbers and {len(gradients)} gradients")
    for i in range(len(values)):
        value = ieee.at(values, i, Value)
        if ieee.held(value):
            value._data = float(numbers[i])
            value._grad = float(gradients[i])


def fused(data: float, operands: Sequence[Any], partials: Array, leaves: bool = False) -> Any:
    """One node with this value, on these operands, with these partial derivatives by each; `leaves`: all are leaves."""
    if len(partials) != len(operands):
        raise LengthError(f"{len(operands)} operands and {len(partials)} partials")
    node: Many = _many(COMPILED, operands, None, leaves)
    node._data = data
    for i in range(len(node._all)):
        node._partials[i] = float(partials[i])
    return node


def partials_of(many: Many) -> list[float]:
    """The recorded partial derivative by each operand of a node of any number of operands, constants among them."""
    if many._made & CODE == HAND:
        return many._partials_of_closure()  # type: ignore[attr-defined, no-any-return]
    return [many._partials[i] for i in range(len(many._all))]
