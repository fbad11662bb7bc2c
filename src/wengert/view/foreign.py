"""Converts the graph of another engine's class, such as micrograd's or the reader's own, to Values.

Pictures, steps and explanations are made from Values. A `ForeignGraph` makes one for each object below a result: a
leaf, or a node made by hand whose closure runs the object's own `_backward`, after which the gradients are restored. So
what is shown is what that class does, right or wrong. Only this module knows how such classes are written.

In a class that has labels, a leaf without one goes by its name in a model that `__main__` holds; else it is a constant,
and goes by its number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from typing import Any

from wengert import modes
from wengert.engine import Value
from wengert.errors import OperandError
from wengert.graph import Graph
from wengert.ops import coerce, is_number, named
from wengert.view.naming import number

__all__ = ["PARTS", "ForeignGraph", "SeenGraph", "can_be_seen", "has_no_parts"]

PARTS = ("_prev", "_children", "prev", "parents", "_parents", "children", "inputs", "src")  # names for the operands
SYMBOLS, LABELS = ("_op", "op"), ("label", "name")
LOCAL = "_local_grads"  # partials stored on the node instead of a closure, as in microgpt
NOTHING = len((lambda: None).__code__.co_code)  # the length of micrograd's `_backward` before a closure is set
EXPECTED = f"expected objects with an attribute data and an attribute for their operands, such as {PARTS[0]}"


def can_be_seen(thing: Any) -> bool:
    """Return True for a Value, and for what may be a number of another engine; arrays and tensors are not."""
    if issubclass(type(thing), Value):  # not isinstance, which a mock would pass
        return True
    return not isinstance(thing, type) and _read(thing, "data") is not None and _read(thing, "dtype") is None


def has_no_parts(thing: Any) -> bool:
    """Return True if an object has no attribute for operands, like a class that only has `data` so far."""
    return not issubclass(type(thing), Value) and all(_read(thing, name, thing) is thing for name in PARTS)


class SeenGraph(Graph):
    """The graph of another engine's result.

    Attributes:
        has_gradients: False if the class has no attribute `grad` yet.
        owned: the names of the parameters of models, as `registered_names` has them.
    """

    def __init__(self, root: Any) -> None:
        foreign = ForeignGraph(root)
        super().__init__(foreign.root)
        self.has_gradients: bool = _read(root, "grad", root) is not root
        self.owned: dict[Value, list[str]] = foreign.owned


class ForeignGraph:
    """Values for all objects below a result; Values stay themselves.

    Attributes:
        root: the Value of the result.
        owned: the names of leaves that are parameters of models in `__main__`, as `registered_names` has them.

    Raises:
        OperandError: something below the result is not a number with operands, or depends on itself.

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
        self._parts: dict[int, list[Any]] = {}  # the operands of each object, by its id; keeps all of them alive
        self.owned: dict[Value, list[str]] = {}
        self._bare: dict[int, Value] = {}  # the leaves without a label, by their object's id
        if issubclass(type(root), Value):
            self.root: Value = root
            return
        with modes.suspended():  # no hooks and modes, as nothing is computed here
            self._walk(root)
        self.root = self._nodes[id(root)]
        self._name_leaves()

    def node_for(self, thing: Any) -> Value | None:
        """Return the Value of an object below the result; None if it is not there."""
        return self._nodes.get(id(thing), thing if issubclass(type(thing), Value) else None)

    def _walk(self, root: Any) -> None:
        """Make the Values, operands first, with a stack, since graphs can be thousands of nodes deep."""
        waiting = [root]
        while waiting:
            thing = waiting[-1]
            if id(thing) in self._nodes:
                waiting.pop()
            elif id(thing) in self._parts:  # all of its operands have their Values now
                self._nodes[id(thing)] = self._make_node(thing)
            else:
                self._parts[id(thing)] = parts = _parts(thing)
                for part in reversed(parts):
                    if id(part) in self._parts and id(part) not in self._nodes:
                        raise OperandError(f"{_said(part)} depends on itself: a computation has no cycles")
                    waiting.append(part)

    def _name_leaves(self) -> None:
        """Label those leaves by their names in models, and the others by their numbers."""
        for key, found in (_owned(self._bare) if self._bare else {}).items():
            self.owned[self._bare[key]] = found
            self._bare.pop(key).label = found[0].partition(" ")[2]
        for node in self._bare.values():
            node.label = number(node.data)

    def _make_node(self, thing: Any) -> Value:
        parts = self._parts[id(thing)]
        nodes = [self._nodes[id(part)] for part in parts]
        data, label = _number(thing, "data"), _text(thing, LABELS)
        if not nodes:
            node = Value(data, label=label)
            if not label and any(not callable(_read(thing, name, callable)) for name in LABELS):
                self._bare[id(thing)] = node
        else:
            node = Value(data, nodes, _text(thing, SYMBOLS), label)
            rule = _rule(thing, node, parts, nodes)
            if rule is not None:
                node._backward = rule
        if _read(thing, "grad") is not None and not callable(_read(thing, "grad")):
            node.grad = _number(thing, "grad")
        return node


def _owned(wanted: Collection[int]) -> dict[int, list[str]]:
    """Return what models in `__main__` call their parameters, by the parameters' ids; a model has `parameters()`."""
    found: dict[int, list[str]] = {}
    met: set[int] = set()
    waiting: list[tuple[Any, list[str]]] = [(thing, []) for thing in vars(sys.modules["__main__"]).values()]
    waiting = [(thing, outer) for thing, outer in waiting if _is_model(thing)]
    while waiting:
        thing, outer = waiting.pop()
        if id(thing) in met:
            continue
        met.add(id(thing))
        names = [*outer, f"{type(thing).__name__} "] if _is_model(thing) else outer
        for key, part in _content(thing):
            called = [name + ("" if name.endswith(" ") else ".") + str(key) for name in names]
            if id(part) in wanted:
                found.setdefault(id(part), called)
            elif isinstance(part, (list, tuple, dict)) or _is_model(part):
                waiting.append((part, called))
    return found


def _is_model(thing: Any) -> bool:
    return callable(getattr(type(thing), "parameters", None)) and not isinstance(thing, type)


def _content(thing: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(thing, (list, tuple)):
        return enumerate(thing)
    return (thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})).items()


# -- reading an object ------------------------------------------------------------------------------------------------


def _read(thing: Any, name: str, default: Any = None) -> Any:
    try:
        return getattr(thing, name, default)
    except Exception as error:  # a user's property may raise anything
        raise OperandError(
            f"{name} of a {type(thing).__name__} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _number(thing: Any, name: str) -> float:
    """Return the number of an attribute as a float; it may be of any numeric type, or a 0-dimensional array."""
    x = _read(thing, name)
    if type(x) is float:
        return x
    try:
        return float(x) if isinstance(x, Decimal) else coerce.data(x)
    except Exception as error:  # its conversion may raise anything
        raise OperandError(f"{name} of {_said(thing, name)} is {_named(x)}: expected one number") from error


def _text(thing: Any, names: Iterable[str]) -> str:
    """Return the text of the first of these attributes; for a function, a class or an enum member, its name."""
    for name in names:
        found = _read(thing, name)
        if found is None or getattr(found, "__self__", None) is thing:  # skip methods
            continue
        if isinstance(found, str) or is_number(found):
            return str(found)
        known = _read(found, "__name__", _read(found, "name"))
        return known if isinstance(known, str) else type(found).__name__
    return ""


def _parts(thing: Any) -> list[Any]:
    """Return the operands of an object; plain numbers become leaves."""
    for name in PARTS:
        found = _read(thing, name)
        if found is None or callable(found):
            continue
        if isinstance(found, (str, bytes, dict)) or not isinstance(found, Iterable):
            expected = "expected its operands, in a tuple or set"
            raise OperandError(f"{name} of {_said(thing)} is {_named(found)}: {expected}")
        kind = type(thing)
        parts = [Value(x) if type(x) is not kind and is_number(x) else x for x in found if x is not None]
        for part in parts:
            if type(part) is not kind and not can_be_seen(part):
                raise OperandError(f"{name} of {_said(thing)} holds {_named(part)}: {EXPECTED}, or numbers")
        return _ordered(thing, parts) if isinstance(found, (set, frozenset)) else parts
    return []


def _ordered(thing: Any, parts: list[Any]) -> list[Any]:
    """Sort the operands in a set, so that all runs agree: the closure's `self` comes first. A sum or product of one
    operand has it twice.
    """
    first = dict(_held(_read(thing, "_backward"))).get("self")
    symbol = _text(thing, SYMBOLS)
    if len(parts) == 1 and symbol in ("+", "*"):
        x = _number(parts[0], "data")
        twice = x + x if symbol == "+" else x * x
        return parts * 2 if twice == _number(thing, "data") else parts
    return sorted(parts, key=lambda part: (part is not first, _text(part, LABELS), _number(part, "data")))


def _said(thing: Any, instead: str = "") -> str:
    """Describe an object in a message by its class, its label and its number, unless the number is wrong."""
    label = _text(thing, LABELS)
    said = f"the {type(thing).__name__}" + (f" {label:.40}" if label else "")
    number = _read(thing, "data")
    return said + (f" ({number!r:.40})" if instead != "data" and is_number(number) else "")


def _named(thing: Any) -> str:
    try:
        return named(thing)
    except Exception:  # its repr may raise anything
        return type(thing).__name__


# -- its backward step ------------------------------------------------------------------------------------------------


def _rule(thing: Any, node: Value, parts: list[Any], nodes: list[Value]) -> Callable[[], None] | None:
    """Return a closure that does to the Values' gradients what the object does to its operands'; None if nothing."""
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
    """Run an object's own `_backward` with the gradients of the Values, and restore what it changed."""
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
    """List the variables of a closure that are numbers of an engine."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    found = []
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            content = cell.cell_contents
        except ValueError:  # the cell is still empty
            continue
        if _read(content, "data") is not None and _read(content, "grad", cell) is not cell:
            found.append((name, content))
    return found
