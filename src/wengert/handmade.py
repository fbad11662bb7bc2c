"""Nodes made by hand, as tutorials make them: ``Value(data, (children), op)``, and a closure in ``_backward``.

An operation of the table brings its partial derivatives. A node made by hand brings a closure instead, which reads
the node's `grad` and adds to that of its children. The engine calls it once in each pass, in the node's turn.

>>> import math
>>> def tanh(x):
...     t = math.tanh(x.data)
...     out = Value(t, (x,), "tanh")
...
...     def _backward():
...         x.grad += (1 - t**2) * out.grad
...
...     out._backward = _backward
...     return out
>>> n = Value(0.5, label="n")
>>> o = tanh(n) * 2
>>> o.backward()
>>> round(n.grad, 6)
1.572895

A closure refers to its node, and the node to the closure: a cycle. Values are outside of the sight of Python's
collector of cycles, so these nodes are of a Python subclass, which it sees.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from math import isclose, nan
from operator import attrgetter
from typing import Any

from wengert import engine, modes, node
from wengert._forks import in_child, is_orphaned
from wengert.engine import Many, Value
from wengert.errors import HandmadeNodeError, OperandError
from wengert.ops import BY_NAME, coerce

__all__ = ["Children", "Handmade", "lock_passes", "no_rule"]

CODE = BY_NAME["by hand"].code
_age = attrgetter("_made")
_locked = False  # whether passes take a lock already: a closure is Python, and other threads run beside it


class Children(tuple[Value, ...]):
    """What a node was made from, in the order in which it was written; equal to a set of the same Values too."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return set(self) == other if isinstance(other, (set, frozenset)) else tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class Handmade(Many):
    """A Value that its user put together: its symbol and its closure, and the children that every node of many has."""

    __slots__ = ("_closure", "_symbol")

    def __init__(self, data: Any, _children: Any = (), _op: str = "", label: str = "") -> None:
        node.refuse("makes a node by hand, whose derivative only its _backward knows")
        number, children, symbol = coerce.data(data), _checked(_children), str(_op)
        if hasattr(self, "_symbol"):  # asked now: what was converted may have run any code
            raise HandmadeNodeError("__init__ of a Value was called a second time: make a new one")
        if not children or modes.grad_disabled():
            self._symbol, self._closure = "", None
            self.data = number
            self.label = label if children else coerce.label(_children, _op, label)
            return
        lock_passes()
        self._symbol, self._closure = symbol, None
        engine._many(CODE, children, self)
        self.data, self.label = number, label
        modes.shown(self)

    @property
    def _operands(self) -> tuple[Any, ...]:
        return () if self.is_leaf else super()._operands

    @property
    def _op(self) -> str:
        return getattr(self, "_symbol", "")  # none before __init__

    @property
    def _prev(self) -> Children:
        return Children(self._operands)

    @property
    def _backward(self) -> Callable[[], object]:
        """What was set; before that, nothing happens: the gradient stops here."""
        return getattr(self, "_closure", None) or _nothing

    @_backward.setter
    def _backward(self, function: Any) -> None:
        if not callable(function):
            called = " (write out._backward = _backward, without calling it)" if function is None else ""
            what = f"{coerce.named(function)}{called}"
            raise HandmadeNodeError(f"_backward is a function without arguments, not {what}")
        self._closure = None if self.is_leaf else function

    def _push(self) -> None:
        """The node's turn in a pass."""
        if self._closure is not None:
            engine.pin(0, 1)
            try:
                self._closure()
            finally:
                engine.pin(0, -1)

    def _find_partials(self) -> list[float]:
        """The partial by each child: what the closure adds to it for a gradient of 1.

        nan where what it adds is not proportional to the gradient, or an exception; 0 without a closure. Of a child
        that is there twice each half.
        """
        children = self._operands
        receiving = [*dict.fromkeys(children)]
        before = [(x, x.grad) for x in (self, *receiving)]
        with engine.walking:
            try:
                once, twice = self._added(receiving, 1.0), self._added(receiving, -2.0)
            except Exception:  # whatever a closure of the user's raises: backward() shows it
                once = twice = dict.fromkeys(receiving, nan)
            finally:
                for x, grad in before:
                    x.grad = grad
        linear = {x: once[x] if isclose(twice[x], -2.0 * once[x], abs_tol=1e-12) else nan for x in receiving}
        times = Counter(children)
        return [linear[x] / times[x] for x in children]

    def _added(self, receiving: list[Any], gradient: float) -> dict[Any, float]:
        """What each child receives for a gradient of this node."""
        self.grad = gradient
        for x in receiving:
            x.grad = 0.0
        self._push()
        return {x: x.grad for x in receiving}

    def _copy_to(self, copied: Any) -> None:
        """What a copy of the graph needs beside children, which it has."""
        if self._closure is not None:
            raise HandmadeNodeError(
                f"the graph holds a node made by hand, {self._op or 'without a symbol'}, whose closure belongs to its "
                "own children and cannot be copied: build the expression again"
            )
        copied._symbol, copied._closure = self._symbol, None

    def __reduce__(self) -> Any:
        restore, (_, *rest), state = super().__reduce__()  # of a leaf; the graph under a result is refused
        base = type(self).__bases__[0]
        return restore, (Value if base is Many else base, *rest), state


def _checked(children: Any) -> list[Value]:
    """The children as Values: a set in the order in which they were made, so that every run adds in the same order."""
    if not isinstance(children, (tuple, list, set, frozenset)):
        return []
    given = [x if isinstance(x, Value) else _leaf(x) for x in children]
    return sorted(given, key=_age) if isinstance(children, (set, frozenset)) else given


def _leaf(x: Any) -> Value:
    try:
        return Value(x)
    except OperandError as error:
        raise HandmadeNodeError(f"the children of a Value are Values and numbers, not {coerce.named(x)}") from error


def no_rule() -> HandmadeNodeError:
    """What to say where a node made by hand would have to be differentiated as an operation is."""
    return HandmadeNodeError(
        "the function makes nodes by hand, and closures serve backward() alone (and check_gradients, order=1). "
        "Register the operation, and it has all derivatives: double = wengert.op('double', value=lambda x: 2 * x, "
        "partials=lambda out, x: 2.0)"
    )


def lock_passes() -> None:
    """From now on passes take the lock: a closure is Python, and another thread may come in between."""
    global _locked
    if not _locked:
        with engine.walking:
            engine.pin(1)
            _locked = True


def _in_child() -> None:
    """In a forked child a pass, a closure, a Graph of another thread never comes to its end."""
    if is_orphaned(engine.walking):
        engine.walking = threading.RLock()
        engine.pin(int(_locked), 0, 0)


def _nothing() -> None:
    """The `_backward` of a node that has none."""


def _class_of(cls: type, children: Any) -> type:
    """The class of a Value with children. A subclass may have another meaning for its second argument."""
    return _class(cls) if (children if cls is Value else any(isinstance(x, Value) for x in children)) else cls


@cache
def _class(cls: type) -> type:
    """The class of nodes made by hand: of ``Value(...)``, or of a subclass of the user's."""
    names = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return Handmade if cls is Value else type(cls.__name__, (cls, Handmade), names)


node.supply(kind=_class_of)
in_child(_in_child)
