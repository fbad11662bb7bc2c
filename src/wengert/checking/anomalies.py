"""Finds where a nan or an infinity comes from: `strict` raises at once, `detect_anomaly` examines a finished graph.

Both record the source line of each operation, in a table beside the nodes. That takes longer than the operation
itself, so it happens only inside their blocks.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import isfinite, nan
from typing import Any, NamedTuple, overload

from wengert import modes
from wengert.compiler import partials_of
from wengert.engine import Value
from wengert.errors import Line, NonFiniteError, running
from wengert.graph import Graph, is_untaken, reached
from wengert.ops import coerce

__all__ = ["Anomaly", "Operand", "detect_anomaly", "line_of", "strict"]

KEPT = 1 << 22  # the lines of at least this many newest operations are kept, of at most twice as many: 12 bytes each
SHOWN = 4  # the number of operands in a message


class Operand(NamedTuple):
    """An operand of the operation that an `Anomaly` names."""

    label: str
    data: float
    partial: float | None
    """The partial derivative with respect to it; None for a constant."""


class Anomaly(NamedTuple):
    """A nan or an infinity and where it comes from; `str` explains it.

    Attributes:
        what: "leaf" (its data), "value" (of an operation), "partial" (a partial derivative of an operation), "product"
            (a partial times a gradient, in the backward pass), "sum" (of the gradients that reach one operand) or
            "kink" (of an operation whose second derivative is asked for).
        operation: the operation's name in the table.
        label: the label of its result, or of the leaf; empty if it has none.
        value: the nan or the infinity itself; nan at a kink.
        operands: the operation's operands.
        place: for a partial, a product or a sum, the operand's index.
        gradient: for a product, the gradient of the result.
        line: the user's line that made the node, if it is known.
        node: the node itself.
    """

    what: str
    operation: str
    label: str
    value: float
    operands: tuple[Operand, ...]
    place: int | None
    gradient: float | None
    line: Line | None
    node: Value

    def __str__(self) -> str:
        advice = _advice(self)
        where = f", at {self.line}" if self.line else ""
        return f"{_sentence(self)}{where}{f': {advice}' if advice else ''}"


# -- messages ---------------------------------------------------------------------------------------------------------


def _sentence(found: Anomaly) -> str:
    leaf = f"the leaf {found.label}".rstrip()
    if found.what == "leaf":
        return f"{leaf} is {found.value}"
    if not found.operands:
        return f"in backward() the gradient of {leaf}, added to that of earlier calls, becomes {found.value}"
    written = [f"{x.label} = {x.data!r}" if x.label else repr(x.data) for x in found.operands]
    if len(written) > SHOWN:
        written[SHOWN:] = [f"and {len(written) - SHOWN} more"]
    call = f"{f'{found.label} = ' if found.label else ''}{found.operation}({', '.join(written)})"
    if found.what == "kink":
        return f"{call} is at a kink, where it has no second derivative"
    if found.place is None:
        return f"{call} is {found.value}"
    operand = found.operands[found.place]
    named = operand.label or f"operand {found.place + 1}"
    if found.what == "partial":
        return f"{call} is {found.node.data}, and its partial derivative with respect to {named} is {found.value}"
    if found.what == "product":
        return (
            f"in backward() the gradient {found.gradient!r} of {call} times its partial derivative with respect to "
            f"{named}, {operand.partial!r}, is {found.value}"
        )
    return f"in backward() the sum of the gradients that reach {named}, an operand of {call}, is {found.value}"


OVERFLOW = "the largest float is 1.8e308: scale the numbers down"
ADVICE = {
    "log log2 log10": "the argument has to be positive: clip it, or use log_softmax, logsigmoid or softplus, which "
    "stay finite",
    "log1p": "the argument has to be greater than -1",
    "sqrt": "the argument has to be positive, as the derivative at 0 is infinite: add a small number under the root",
    "cbrt": "the derivative at 0 is infinite: add a small number to the argument",
    "div reciprocal": "the divisor is 0 or too close to it: add a small number to it, or choose another one with where "
    "before dividing",
    "exp exp2 expm1 sinh cosh": "above about 700 it overflows: subtract the greatest first, as softmax and logsumexp "
    "do, or clip the argument",
    "pow": "a base of 0 or below needs an integer exponent, written as a plain number; with a positive base, the "
    "numbers are too large",
    "asin acos atanh": "the argument has to be between -1 and 1, where the derivative is infinite",
    "acosh": "the argument has to be greater than 1, where the derivative is infinite",
    "add sub mul square sum mean prod dot": OVERFLOW,
}


AT_KINKS = {
    "abs hypot norm sqrt pow": "write an even power of it, which has none, or smooth it, as in sqrt(x * x + 1e-12)",
    "relu leaky_relu elu": "softplus, silu and gelu are smooth there",
    "maximum minimum max min clip": "two operands are equal; logsumexp is smooth there",
}


def _advice(found: Anomaly) -> str:
    """Return what to do about it, or an empty string."""
    if found.what == "leaf":
        return "it was not computed: check where its data comes from"
    if found.what in ("product", "sum"):
        return OVERFLOW
    if found.what == "kink":
        return next((text for names, text in AT_KINKS.items() if found.operation in names.split()), "")
    if not all(isfinite(x.data) for x in found.operands):
        return "an operand is not finite already"
    return next((text for names, text in ADVICE.items() if found.operation in names.split()), "")


# -- lines of operations ----------------------------------------------------------------------------------------------


class _LineTable:
    """The source line of each node of a thread, found by the node's tick."""

    def __init__(self) -> None:
        self.ticks = array("q")
        self.places = array("I")
        self.lines: dict[Line | None, int] = {}

    def add(self, node: Any) -> None:
        """Record the user's line that is running as that of this node."""
        line = running()
        self.ticks.append(node._made)
        self.places.append(self.lines.setdefault(line, len(self.lines)))
        if len(self.ticks) == 2 * KEPT:
            del self.ticks[:KEPT], self.places[:KEPT]

    def find(self, node: Any) -> Line | None:
        """Return the line that made a node, or None."""
        at = bisect_left(self.ticks, node._made)  # ticks are recorded in rising order
        if at == len(self.ticks) or self.ticks[at] != node._made:
            return None
        return [*self.lines][self.places[at]]


class _OpenTables(threading.local):
    """The tables of the blocks that the running thread is in."""

    open: tuple[_LineTable, ...] = ()


_tables = _OpenTables()


def line_of(node: Value) -> Line | None:
    """Return the user's line that made a node, while its `strict` or `detect_anomaly` block is open; else None.

    >>> with detect_anomaly():
    ...     y = Value(2.0).exp()
    ...     print(line_of(y).source)
    y = Value(2.0).exp()
    >>> line_of(y) is None
    True
    """
    for table in reversed(_tables.open):
        line = table.find(node)
        if line is not None:
            return line
    return None


# -- the search -------------------------------------------------------------------------------------------------------


def _partials(node: Any) -> tuple[float, ...]:
    """Return the partial derivative with respect to each operand that is a Value."""
    if node._a is None:
        return tuple(
            [slope for slope, x in zip(partials_of(node), node._operands, strict=True) if isinstance(x, Value)]
        )
    return (node._da,) if node._b is None else (node._da, node._db)


def _real(x: Any) -> float:
    return x.data if isinstance(x, Value) else coerce.data(x)


def _found(
    what: str,
    node: Any,
    value: float,
    slopes: tuple[float, ...] = (),
    place: int | None = None,
    gradient: float | None = None,
) -> Anomaly:
    """Make an `Anomaly` of this node; `slopes` and `place` count only the operands that are Values."""
    partials = iter(slopes)
    operands = tuple(
        [
            Operand(x.label, x.data, next(partials)) if isinstance(x, Value) else Operand("", coerce.data(x), None)
            for x in node._operands
        ]
    )
    if place is not None:
        place = [i for i, x in enumerate(operands) if x.partial is not None][place]
    return Anomaly(what, node._row.name, node.label, value, operands, place, gradient, line_of(node), node)


def _of_node(node: Any, slopes: tuple[float, ...], inherited: bool) -> Anomaly | None:
    """Return what is not finite in a node; without `inherited`, only if its operands are finite."""
    wrong = [place for place, slope in enumerate(slopes) if not isfinite(slope)]
    if isfinite(node.data) and not wrong:
        return None
    if not inherited and (node.is_leaf or not all(isfinite(_real(x)) for x in node._operands)):
        return None
    if not isfinite(node.data):
        return _found("leaf" if node.is_leaf else "value", node, node.data, slopes)
    return _found("partial", node, slopes[wrong[0]], slopes, wrong[0])


def _first(root: Value, gradient: float, inherited: bool) -> Anomaly | None:
    """Find the first number below a root that is not finite: in its nodes, and then in its backward pass.

    The backward pass is computed on separate numbers, in the engine's order, and changes no gradient.
    """
    graph = Graph(root)
    recorded, starts, operands, is_reached = graph.partials, graph.starts, graph.operands, reached(graph)
    slopes = [
        tuple([recorded[at] for at in range(starts[place], starts[place + 1]) if operands[at] >= 0])
        for place in range(len(graph))
    ]
    for place, (node, partials) in enumerate(zip(graph.values, slopes, strict=True)):
        found = _of_node(node, partials, inherited)
        if found is not None and is_reached[place]:
            return found
    gradients = [0.0] * len(graph)
    gradients[-1] = gradient  # the root is the youngest
    for place in range(len(graph) - 1, -1, -1):
        node, g, count = graph.values[place], gradients[place], 0
        if node.is_leaf and isfinite(g) and isfinite(node.grad) and not isfinite(g + node.grad):
            return _found("sum", node, g + node.grad)
        for at in range(starts[place], starts[place + 1] if is_reached[place] else starts[place]):
            operand = operands[at]
            if operand < 0 or is_untaken(graph.codes[place], recorded[at]):
                count += operand >= 0
                continue
            slope, before = recorded[at], gradients[operand]
            product, total = slope * g, before + slope * g
            if isfinite(slope) and isfinite(g) and not isfinite(product):
                return _found("product", node, product, slopes[place], count, g)
            if isfinite(before) and isfinite(product) and not isfinite(total):
                return _found("sum", node, total, slopes[place], count)
            gradients[operand] = total
            count += 1
    return None


# -- the two modes ----------------------------------------------------------------------------------------------------


@contextmanager
def strict() -> Iterator[None]:
    """Raise an error at the first operation that computes a nan or an infinity from finite operands, or that has no
    second derivative where one is asked for.

    The block checks each operation when it is computed: its value and its partial derivatives. Before each `backward()`
    it also checks the products and sums that the backward pass will compute; an error there leaves all gradients
    unchanged. A derivative that can be differentiated again, as the inner one of ``grad(grad(f))``, raises at a kink,
    such as that of `abs` at 0: only in an even power, or where the result is smooth in it, a second one is known. It
    applies to the thread that enters the block. Compiled functions and `fit` run operation by operation
    in it. It works as a decorator too: ``@strict()``.

    Raises:
        NonFiniteError: in the block; it names the operation, the labels, the line, and what to do about it.

    >>> x = Value(1000.0, label="x")
    >>> with strict():
    ...     y = x.exp()
    Traceback (most recent call last):
        ...
    wengert.errors.NonFiniteError: exp(x = 1000.0) is inf, at <doctest ...>, line 2 (y = x.exp()): above about 700 ...
    """
    with _raising(lambda node: _of_node(node, _partials(node), False), inherited=False, at_kinks=True):
        yield


@overload
def detect_anomaly() -> AbstractContextManager[None]: ...


@overload
def detect_anomaly(root: Value, gradient: float | Value = 1.0) -> Anomaly | None: ...


def detect_anomaly(root: Value | None = None, gradient: float | Value = 1.0) -> Any:
    """Find the first nan or infinity of a finished graph.

    ``with detect_anomaly():`` computes as usual and records the line of each operation. A `backward()` in the block
    first checks the graph below its root: all values and partial derivatives in the order in which they were computed,
    then the products and sums of the backward pass. Unlike `strict`, it ignores numbers that the root does not depend
    on, and it reports leaves that are not finite.

    ``detect_anomaly(root)`` checks an existing graph in the same way and raises nothing.

    Args:
        root: the result whose graph is checked.
        gradient: the argument that `root.backward(gradient)` would get.

    Returns:
        With a root the `Anomaly`, or None if all numbers are finite; without one the context manager.

    Raises:
        NonFiniteError: from `backward()` in the block, which then leaves all gradients unchanged.

    >>> x = Value(0.0, label="x")
    >>> y = x.sqrt() + 1
    >>> print(detect_anomaly(y))
    sqrt(x = 0.0) is 0.0, and its partial derivative with respect to x is inf: the argument has to be positive, as ...
    >>> with detect_anomaly():
    ...     y = x.sqrt() + 1
    ...     y.backward()
    Traceback (most recent call last):
        ...
    wengert.errors.NonFiniteError: sqrt(x = 0.0) is 0.0, and ... is inf, at <doctest ...>, line 2 (y = x.sqrt() + 1)...
    """
    return _raising(lambda node: None, inherited=True) if root is None else _first(root, _real(gradient), True)


@contextmanager
def _raising(of_node: Callable[[Any], Anomaly | None], inherited: bool, at_kinks: bool = False) -> Iterator[None]:
    """Record the line of each node, and raise an error for what is found in a node or before a backward(), and for a
    second derivative `at_kinks`.
    """
    table = _LineTable()

    def stop(found: Anomaly | None) -> None:
        if found is not None:
            raise NonFiniteError(found)

    def inspect(node: Any) -> None:
        table.add(node)
        stop(of_node(node))

    def check(root: Any, gradient: Any) -> None:
        stop(_first(root, _real(gradient), inherited))

    def check_kink(node: Any) -> None:
        found = _found("kink", node, nan, _partials(node))
        stop(found if found.line else found._replace(line=running()))  # of code of floats that of the derivative

    before, _tables.open = _tables.open, (*_tables.open, table)
    try:
        with modes.hooked(inspect, check, check_kink if at_kinks else None):
            yield
    finally:
        _tables.open = before
