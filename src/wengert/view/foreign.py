"""The graph of somebody else's class, as Values: the reader's own at every stage, micrograd's, and others of its kind.

A picture, the steps and an explanation are made from Values. A `ForeignGraph` has one for each object under a result: a
leaf, or a node made by hand whose closure runs the object's own `_backward`, on gradients that are put back. So what is
shown is what that class does, right or wrong. This module alone knows how such classes are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from wengert import modes
from wengert.engine import Value
from wengert.errors import OperandError
from wengert.ops import coerce, is_number, named

__all__ = ["PARTS", "ForeignGraph", "can_be_seen", "has_no_parts"]

PARTS = ("_prev", "_children", "prev", "parents", "_parents", "children", "inputs", "src")  # where its parts may be
SYMBOLS, LABELS = ("_op", "op"), ("label", "name")
LOCAL = "_local_grads"  # partials kept on the node instead of a closure, as microgpt does
NOTHING = len((lambda: None).__code__.co_code)  # what `_backward` holds before a closure is set, as in micrograd
EXPECTED = f"expected are objects with data and a way to what they were made from, such as {PARTS[0]}"


def can_be_seen(thing: Any) -> bool:
    """Whether it is a Value, or may be a number of somebody else's engine; arrays and tensors are not."""
    if issubclass(type(thing), Value):  # not isinstance, which a mock can pass
        return True
    return not isinstance(thing, type) and _read(thing, "data") is not None and _read(thing, "dtype") is None


def has_no_parts(thing: Any) -> bool:
    """Whether nothing tells what it was made from, as in a class that only has `data` so far."""
    return not issubclass(type(thing), Value) and all(_read(thing, name, thing) is thing for name in PARTS)


class ForeignGraph:
    """Values for everything under a result; of a Value, the Value itself.

    Attributes:
        root: that of the result.

    Raises:
        OperandError: something under the result is no number with parts, or is a part of itself.

    >>> class Number:
    ...     def __init__(self, data, parts=(), op=""):
    ...         self.data, self.grad, self._prev, self._op = data, 0.0, parts, op
    >>> a = Number(2.0)
    >>> foreign = ForeignGraph(Number(4.0, (a, a), "+"))
    >>> foreign.root._op, foreign.root._prev == (foreign.node_for(a), foreign.node_for(a))
    ('+', True)
    """

    def __init__(self, root: Any) -> None:
        self._nodes: dict[int, Value] = {}
        self._parts: dict[int, list[Any]] = {}  # of every object met; they are kept alive by this
        if issubclass(type(root), Value):
            self.root: Value = root
            return
        with modes.suspended():  # nothing is computed here, only written down
            self._walk(root)
        self.root = self._nodes[id(root)]

    def node_for(self, thing: Any) -> Value | None:
        """The Value of an object under the result; None if it is not there."""
        return self._nodes.get(id(thing), thing if issubclass(type(thing), Value) else None)

    def _walk(self, root: Any) -> None:
        """Make the Values: of the parts first, by a stack, as a sum of thousands is thousands deep."""
        waiting = [root]
        while waiting:
            thing = waiting[-1]
            if id(thing) in self._nodes:
                waiting.pop()
            elif id(thing) in self._parts:  # now all of its parts have theirs
                self._nodes[id(thing)] = self._make_node(thing)
            else:
                self._parts[id(thing)] = parts = _parts(thing)
                for part in reversed(parts):
                    if id(part) in self._parts and id(part) not in self._nodes:
                        raise OperandError(f"{_said(part)} is a part of itself: a computation has no cycles")
                    waiting.append(part)

    def _make_node(self, thing: Any) -> Value:
        parts = self._parts[id(thing)]
        nodes = [self._nodes[id(part)] for part in parts]
        number, label = _number(thing, "data"), _text(thing, LABELS)
        if not nodes:
            node = Value(number, label=label)
        else:
            node = Value(number, nodes, _text(thing, SYMBOLS), label)
            rule = _rule(thing, node, parts, nodes)
            if rule is not None:
                node._backward = rule
        if _read(thing, "grad") is not None and not callable(_read(thing, "grad")):
            node.grad = _number(thing, "grad")
        return node


# -- what is read off an object ---------------------------------------------------------------------------------------


def _read(thing: Any, name: str, default: Any = None) -> Any:
    try:
        return getattr(thing, name, default)
    except Exception as error:  # a property of the user's may raise anything
        raise OperandError(
            f"{name} of a {type(thing).__name__} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _number(thing: Any, name: str) -> float:
    """The number under a name: of any kind that is one, a 0-dimensional array too."""
    x = _read(thing, name)
    if type(x) is float:
        return x
    try:
        return float(x) if isinstance(x, Decimal) else coerce.data(x)
    except Exception as error:  # whatever comes of looking at it
        raise OperandError(f"{name} of {_said(thing, name)} is {_named(x)}: expected is one number") from error


def _text(thing: Any, names: Iterable[str]) -> str:
    """The first text under one of these names; of a function, a class or a member of an enum, its name."""
    for name in names:
        found = _read(thing, name)
        if found is None or getattr(found, "__self__", None) is thing:  # a method of that name says nothing
            continue
        if isinstance(found, str) or is_number(found):
            return str(found)
        known = _read(found, "__name__", _read(found, "name"))
        return known if isinstance(known, str) else type(found).__name__
    return ""


def _parts(thing: Any) -> list[Any]:
    """What an object was made from; numbers among them as leaves."""
    for name in PARTS:
        found = _read(thing, name)
        if found is None or callable(found):
            continue
        if isinstance(found, (str, bytes, dict)) or not isinstance(found, Iterable):
            expected = "expected are its parts, in a tuple or set"
            raise OperandError(f"{name} of {_said(thing)} is {_named(found)}: {expected}")
        kind = type(thing)
        parts = [Value(x) if type(x) is not kind and is_number(x) else x for x in found if x is not None]
        for part in parts:
            if type(part) is not kind and not can_be_seen(part):
                raise OperandError(f"{name} of {_said(thing)} holds {_named(part)}: {EXPECTED}, or numbers")
        return _ordered(thing, parts) if isinstance(found, (set, frozenset)) else parts
    return []


def _ordered(thing: Any, parts: list[Any]) -> list[Any]:
    """The parts of a set in an order that is the same in every run: what the closure calls `self` is the first operand,
    and a sum or product of one part is that of the part with itself.
    """
    first = dict(_held(_read(thing, "_backward"))).get("self")
    symbol = _text(thing, SYMBOLS)
    if len(parts) == 1 and symbol in ("+", "*"):
        x = _number(parts[0], "data")
        twice = x + x if symbol == "+" else x * x
        return parts * 2 if twice == _number(thing, "data") else parts
    return sorted(parts, key=lambda part: (part is not first, _text(part, LABELS), _number(part, "data")))


def _said(thing: Any, instead: str = "") -> str:
    """An object in a message: its class, its label and its number, unless that is what is wrong with it."""
    label = _text(thing, LABELS)
    said = f"the {type(thing).__name__}" + (f" {label:.40}" if label else "")
    number = _read(thing, "data")
    return said + (f" ({number!r:.40})" if instead != "data" and is_number(number) else "")


def _named(thing: Any) -> str:
    try:
        return named(thing)
    except Exception:  # whatever its repr raises
        return type(thing).__name__


# -- how it passes its gradient on ------------------------------------------------------------------------------------


def _rule(thing: Any, node: Value, parts: list[Any], nodes: list[Value]) -> Callable[[], None] | None:
    """What does to the gradients of the nodes what the object does to those of its parts; None if that is nothing."""
    backward, partials = _read(thing, "_backward"), _read(thing, LOCAL)
    if callable(backward) and len(getattr(getattr(backward, "__code__", None), "co_code", "")) != NOTHING:
        return lambda: _lent(thing, backward, node, {id(x): (x, y) for x, y in zip(parts, nodes, strict=True)})
    if not isinstance(partials, (tuple, list)) or len(partials) != len(nodes):
        return None

    def chain_rule() -> None:
        for part, partial in zip(nodes, partials, strict=True):
            part.grad += partial * node.grad

    return chain_rule


def _lent(thing: Any, backward: Callable[[], object], node: Value, pairs: dict[int, tuple[Any, Value]]) -> None:
    """Run an object's own `_backward` on the gradients of the nodes, and put back what it changed."""
    reached = {id(x): x for x in (thing, *(x for x, _ in pairs.values()), *(x for _, x in _held(backward)))}
    before = [(x, name, getattr(x, name)) for x in reached.values() for name in ("data", "grad") if hasattr(x, name)]
    bare = [x for x in reached.values() if "grad" not in getattr(x, "__dict__", ("grad",))]
    try:
        thing.grad = node.grad
        for part, other in pairs.values():
            part.grad = other.grad
        backward()
        after = [(other, _number(part, "grad")) for part, other in pairs.values()]
    finally:
        for x, name, value in before:
            if getattr(x, name) is not value:
                setattr(x, name, value)
        for x in bare:
            vars(x).pop("grad", None)
    for other, gradient in after:
        other.grad = gradient


def _held(function: Any) -> list[tuple[str, Any]]:
    """The variables of a closure that hold numbers of an engine."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    found = []
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            content = cell.cell_contents
        except ValueError:  # it is empty so far
            continue
        if _read(content, "data") is not None and _read(content, "grad", cell) is not cell:
            found.append((name, content))
    return found
