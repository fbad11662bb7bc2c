"""Compares every value and gradient of an expression between Wengert and another library."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, isnan, ulp
from typing import Any, NamedTuple

from wengert import modes
from wengert.checking.peers import PEERS, places
from wengert.derivatives import Numbers, argument_names
from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.graph import Graph
from wengert.ops import BY_NAME, named

__all__ = ["ComparedLine", "Comparison", "compare"]


class ComparedLine(NamedTuple):
    """One instruction in Wengert and in the other library.

    Attributes:
        place: its number, by which other lines refer to it, as in #2.
        expression: its formula, in labels of inputs and numbers of earlier lines.
        op: the operation's symbol, as in `_op`; empty for a leaf.
        operands: the numbers of its operands' lines, as in `_prev`; a constant as a float.
        value: Wengert's value.
        grad: Wengert's derivative of the result with respect to it.
        peer_value: the other library's value; mpmath's 60 digits are rounded to a float.
        peer_grad: the other library's gradient.
        value_ulp: the difference of the values, in units in the last place of the larger; mpmath's before rounding.
        grad_ulp: the difference of the gradients, in the same units.
        counterpart: the other library's name for it: for PyTorch its `grad_fn` with the `next_functions` in
            parentheses.
    """

    place: int
    expression: str
    op: str
    operands: tuple[int | float, ...]
    value: float
    grad: float
    peer_value: float
    peer_grad: float
    value_ulp: float
    grad_ulp: float
    counterpart: str


class Comparison(NamedTuple):
    """An expression in two libraries; printed, it is a table.

    Attributes:
        against: the other library and its version.
        lines: one for each instruction, leaves too, in the order of creation.
    """

    against: str
    lines: tuple[ComparedLine, ...]

    @property
    def worst(self) -> ComparedLine:
        """The line with the largest difference in its value or its gradient."""
        return max(self.lines, key=lambda line: max(line.value_ulp, line.grad_ulp))

    @property
    def largest(self) -> float:
        """The largest difference, in units in the last place."""
        return max(self.worst.value_ulp, self.worst.grad_ulp)

    def __repr__(self) -> str:
        library, version = self.against.split()
        words = {"torch": "grad_fn(next_functions)", "jax": "primitives", "mpmath": "function"}[library]
        own, other = ["value", "gradient"], [f"{library}: value", "gradient"]
        rows = [["", "wengert", "_op", "_prev", *own, *other, "ulp", "ulp", words]]
        for line in self.lines:
            numbers = [f"{x:.10g}" for x in (line.value, line.grad, line.peer_value, line.peer_grad)]
            apart = [f"{x:.3g}" for x in (line.value_ulp, line.grad_ulp)]
            made_of = [line.expression, line.op, places(line.operands)]
            rows.append([f"#{line.place}", *made_of, *numbers, *apart, line.counterpart])
        right = {4, 5, 6, 7, 8, 9}
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                [f"{x:>{w}}" if i in right else f"{x:<{w}}" for i, (x, w) in enumerate(zip(row, widths, strict=True))]
            )
            for row in rows
        ]
        worst = self.worst
        if self.largest == 0.0:
            end = "all values and gradients are equal"
        else:
            part = "value" if worst.value_ulp >= worst.grad_ulp else "gradient"
            end = f"the largest difference: {self.largest:.3g} ulp, in the {part} of #{worst.place}, {worst.expression}"
        end += f" (wengert and {library} {version})"
        return "\n".join([*[line.rstrip() for line in lines], end])


def compare(f: Callable[..., Any], inputs: Any, against: str = "torch") -> Comparison:
    """Compute and differentiate a function with Wengert and with another library, and compare every step.

    The function runs once, on Values; the other library then computes the recorded operations one by one: torch and jax
    in double precision, each with its own backward pass, and mpmath in 60 digits, as the exact result. For an operation
    that the other library lacks, Wengert's own numbers are used, and its line says so. The gradients of other Values
    that the function uses, such as a model's parameters, are not changed.

    Args:
        f: a function of numbers that returns one Value.
        inputs: its arguments: a list or tuple of them, a dict by name, or a number if it is the only one. An argument
            may be a list, a tuple or a dict of numbers, or a NumPy array.
        against: "torch", "jax" or "mpmath".

    Raises:
        ArgumentError: `against` is another library, or the function does not return a Value.
        MissingExtraError: the library is not installed.
        OperandError: an input is not a number.

    >>> report = compare(lambda x: x * x, 3.0, against="mpmath")
    >>> [(line.expression, line.peer_value, line.peer_grad) for line in report.lines]
    [('x', 3.0, 6.0), ('x * x', 9.0, 1.0)]
    >>> report.largest
    0.0
    """
    if against not in tuple(PEERS):  # a tuple, since `against` may be unhashable
        raise ArgumentError(f"against is {against!r:.40}; expected {' or '.join(map(repr, PEERS))}")
    with modes.recorded():
        if isinstance(inputs, dict):
            result = f(**{str(name): _leaves(x, str(name)) for name, x in inputs.items()})
        else:
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            result = f(*map(_leaves, given, argument_names(f, len(given))))
    if not isinstance(result, Value):
        raise ArgumentError(f"f has to return one Value that depends on its inputs, not {named(result)}")
    graph = Graph(result)
    grads = graph.pull_back({graph.outputs[0]: 1.0})
    version, results = PEERS[against](graph)
    lines: list[ComparedLine] = []
    for (op, arguments, value), grad, other in zip(graph, grads, results, strict=True):
        place = len(lines)
        label = value.label or f"#{place}"
        if op.name == "pow" and value._op != "**":
            arguments = arguments[:1]  # a constant exponent is part of the operation
        expression = label if op.arity == 0 else _written(op.name, value._op, arguments, graph)
        own, peer = (value.data, grad), (float(other.value), float(other.grad))
        apart = _apart(value.data, other.value), _apart(grad, other.grad)
        lines.append(ComparedLine(place, expression, value._op, arguments, *own, *peer, *apart, other.counterpart))
    return Comparison(version, tuple(lines))


def _leaves(given: Any, name: str) -> Any:
    """Copy a PyTree with a labelled leaf for each number."""
    inputs = Numbers(given, name)
    numbers = [x.data if isinstance(x, Value) else x for x in inputs.leaves]
    return inputs.unflatten([Value(x, label=label) for x, label in zip(numbers, inputs.names(), strict=True)])


def _written(name: str, symbol: str, arguments: tuple[int | float, ...], graph: Graph) -> str:
    """Write an instruction with the labels of leaves and the numbers of earlier lines."""
    parts = []
    for x in arguments:
        label = "" if isinstance(x, float) or graph.codes[x] else graph.values[x].label
        parts.append(f"{x:g}" if isinstance(x, float) else label or f"#{x}")
    if name == "pow" and len(parts) == 1:
        return f"{parts[0]}{symbol}"
    if len(parts) == 2 and BY_NAME[name].infix:
        return f" {symbol} ".join(parts)
    return f"{name}({', '.join(parts)})"


def _apart(own: float, other: Any) -> float:
    """Return the difference of a float and a number, in units in the last place of the larger."""
    rounded = float(other)
    if own == other or (isnan(own) and isnan(rounded)):
        return 0.0
    if not (isfinite(own) and isfinite(rounded)):
        return 0.0 if own == rounded else inf
    return float(abs(own - other) / ulp(max(abs(own), abs(rounded))))
