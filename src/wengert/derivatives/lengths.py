"""Second derivatives of a length that is 0: `abs`, `hypot`, `norm`, the root of a sum of squares have a kink there.

The rules of the table give a length the derivative 0 at its kink. A rule over Values therefore loses what a smooth
function makes of the length: the second derivative of |x|**2, which has no kink, would be 0. Two things are known:

- an even power of a length is one of a sum of squares, with derivatives of any order;
- a derivative with respect to a length h that is 0 at h = 0 is D h, up to terms of second order. So the gradient with
  respect to an operand x of the length, that derivative times x / h, is D x; and with respect to the sum of squares
  under a root, that derivative divided by 2 h, it is D / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.engine import Value
from wengert.ops import BY_NAME, coerce

__all__ = [
    "even_power",
    "gradient_of",
    "is_at_kink",
    "is_zero_length",
    "is_zero_root",
    "joined",
    "operands_of",
    "partials_of",
]

LENGTHS = frozenset(BY_NAME[name].code for name in ("abs", "hypot", "norm"))


def is_zero_length(x: Any) -> bool:
    """Return True if a Value is a length, and 0."""
    return isinstance(x, Value) and x._data == 0.0 and (x._row.code in LENGTHS or is_zero_root(x))


def is_zero_root(x: Any) -> bool:
    """Return True if a Value is the root of a sum of squares that is 0: other roots of 0 have an infinite slope."""
    if not isinstance(x, Value) or x._data != 0.0 or x._da != 0.0:
        return False
    return x._row.name == "sqrt" or (x._row.name == "pow" and x._operands[1] == 0.5)


def joined(nodes: Sequence[Value]) -> dict[int, int]:
    """Return by the ids of lengths that are 0 the id of the first one that computes the same: together they may be
    smooth, as in ``(1 + abs(x)) * exp(-abs(x))``.

    Args:
        nodes: those of a run, in the order of creation.
    """
    lengths = [node for node in nodes if is_zero_length(node)]
    if len(lengths) < 2:
        return {}
    first: dict[Any, int] = {}
    same: dict[int, int] = {}
    for node in nodes:
        operands = [same.get(id(x), id(x)) if isinstance(x, Value) else coerce.number(x) for x in node._operands]
        if not operands:
            continue
        same[id(node)] = first.setdefault((node._row.code, *[(type(x), x) for x in operands]), id(node))
    return {id(x): same[id(x)] for x in lengths if same[id(x)] != id(x)}


def gradient_of(length: Value, slope: Any) -> dict[int, Any]:
    """Return by the id of each operand of a length that is 0 the derivative with respect to it, where `slope` is the
    second derivative of the result with respect to the length, and the first one is 0.
    """
    if is_zero_root(length):
        return {id(length._operands[0]): 0.5 * slope}
    return {id(x): 0.0 + slope * x for x in length._operands}


def is_at_kink(node: Value) -> bool:
    """Return True if a node has no derivative where it is: the slopes on both sides differ."""
    operands = [x if isinstance(x, Value) else coerce.number(x) for x in node._operands]
    if is_zero_root(node):
        return True
    numbers = [x._data if isinstance(x, Value) else x for x in operands]
    return node._row.has_kink_at([id(x) if isinstance(x, Value) else x for x in operands], numbers)


def even_power(node: Value) -> tuple[Value, float] | None:
    """Return the length and the exponent if a node is an even power of a length that is 0, in one of its forms."""
    name, operands = node._row.name, node._operands
    if name == "square" and is_zero_length(operands[0]):
        return operands[0], 2.0
    if name not in ("pow", "mul") or not is_zero_length(operands[0]):
        return None
    length, other = operands
    if name == "mul":
        return (length, 2.0) if other is length or _are_equal(length, other) else None
    is_even = type(other) is float and other >= 2.0 and other % 2.0 == 0.0
    return (length, other) if is_even else None


def _are_equal(length: Value, other: Any) -> bool:
    """Return True if two Values are the same length of the same numbers."""
    if not isinstance(other, Value) or other._row is not length._row:
        return False
    pairs = [*zip(length._operands, other._operands, strict=False)]
    return len(pairs) == len(length._operands) == len(other._operands) and all(
        x is y or (type(x) is type(y) is float and x == y) for x, y in pairs
    )


def operands_of(node: Value) -> tuple[Any, ...]:
    """Return what a node is differentiated with respect to: its operands, of an even power those of the length."""
    power = even_power(node)
    return node._operands if power is None else power[0]._operands


def partials_of(power: tuple[Value, float], operands: tuple[Any, ...]) -> list[Any]:
    """Return the derivatives of an even power of a length with respect to the operands of the length."""
    length, exponent = power
    if is_zero_root(length):
        return [0.5 * exponent * operands[0] ** (0.5 * exponent - 1.0), *[0.0] * (len(operands) - 1)]
    factor = exponent if exponent == 2.0 else exponent * length ** (exponent - 2.0)
    return [factor * x for x in operands]
