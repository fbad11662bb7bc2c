"""Nodes made by hand, as in tutorials on micrograd: ``Value(data, (children), op)`` with a closure in ``_backward``.

An operation of the table computes its partial derivatives. A node made by hand has a closure instead, which reads
the node's `grad` and adds to those of its children. Each `backward()` calls it once, at the node.

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

The closure refers to its node and the node to the closure, which is a cycle. Python's garbage collector does not track
Values, so these nodes are instances of a Python subclass, which it does track.
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
_locked = False  # True once backward() takes a lock: closures are Python code, which other threads can interrupt


class Children(tuple[Value, ...]):
    """The children of a node in the order in which they were written; equal to a set of the same Values too."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return set(self) == other if isinstance(other, (set, frozenset)) else tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class Handmade(Many):
    """A Value that the user constructed, with its symbol, its closure and its children."""

    __slots__ = ("_closure", "_symbol")

    def __init__(self, data: Any, _children: Any = (), _op: str = "", label: str = "") -> None:
        node.refuse("makes a node by hand, whose derivative only its _backward knows: register it by wengert.op")
        number, children, symbol = coerce.data(data), _checked(_children), str(_op)
        if hasattr(self, "_symbol"):  # checked only now, since the conversions may run any code
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
    def _op(self) -> str:
        return getattr(self, "_symbol", "")  # absent before __init__

    @property
    def _prev(self) -> Children:
        return Children(self._operands)

    @property
    def _backward(self) -> Callable[[], object]:
        """The closure that was set; without one the gradient stops here."""
        return getattr(self, "_closure", None) or _nothing

    @_backward.setter
    def _backward(self, function: Any) -> None:
        if not callable(function):
            called = " (write out._backward = _backward, without calling it)" if function is None else ""
            what = f"{coerce.named(function)}{called}"
            raise HandmadeNodeError(f"_backward has to be a function without arguments, not {what}")
        self._closure = None if self.is_leaf else function

    def _push(self) -> None:
        """Call the closure, and tell the engine that one is running."""
        if self._closure is not None:
            engine.pin(0, 1)
            try:
                self._closure()
            finally:
                engine.pin(0, -1)

    def _find_partials(self) -> list[float]:
        """Find the partial derivative with respect to each child: what the closure adds to it for a gradient of 1.

        It is nan where the closure raises, or adds something that is not proportional to the gradient, and 0 without a
        closure. A child that occurs twice gets half of its share at each occurrence.
        """
        children = self._operands
        receiving = [*dict.fromkeys(children)]
        before = [(x, x.grad) for x in (self, *receiving)]
        with engine.walking:
            try:
                once, twice = self._added(receiving, 1.0), self._added(receiving, -2.0)
            except Exception:  # raised by the user's closure; backward() will show it
                once = twice = dict.fromkeys(receiving, nan)
            finally:
                for x, grad in before:
                    x.grad = grad
        linear = {x: once[x] if isclose(twice[x], -2.0 * once[x], abs_tol=1e-12) else nan for x in receiving}
        times = Counter(children)
        return [linear[x] / times[x] for x in children]

    def _added(self, receiving: list[Any], gradient: float) -> dict[Any, float]:
        """Run the closure with this gradient of the node, and return what each child receives."""
        self.grad = gradient
        for x in receiving:
            x.grad = 0.0
        self._push()
        return {x: x.grad for x in receiving}

    def _copy_to(self, copied: Any) -> None:
        """Copy what the node has beside its children, for a copy of the graph."""
        if self._closure is not None:
            raise HandmadeNodeError(
                f"the graph holds a node made by hand, {self._op or 'without a symbol'}, whose closure belongs to its "
                "own children and cannot be copied: build the expression again"
            )
        copied._symbol, copied._closure = self._symbol, None

    def __reduce__(self) -> Any:
        restore, (_, *rest), state = super().__reduce__()  # for a leaf; other nodes raise
        base = type(self).__bases__[0]
        return restore, (Value if base is Many else base, *rest), state


def _checked(children: Any) -> list[Value]:
    """Return the children as Values, a set sorted by creation, so that every run adds gradients in the same order."""
    if not isinstance(children, (tuple, list, set, frozenset)):
        return []
    given = [x if isinstance(x, Value) else _leaf(x) for x in children]
    return sorted(given, key=_age) if isinstance(children, (set, frozenset)) else given


def _leaf(x: Any) -> Value:
    try:
        return Value(x)
    except OperandError as error:
        raise HandmadeNodeError(f"a child of a Value has to be a Value or a number, not {coerce.named(x)}") from error


def no_rule() -> HandmadeNodeError:
    """The error for a node made by hand where only the rule of an operation can be differentiated."""
    return HandmadeNodeError(
        "the function makes nodes by hand, and their closures work with backward() only (and check_gradients, order=1)."
        " Register the operation, and it has all derivatives: double = wengert.op('double', value=lambda x: 2 * x, "
        "partials=lambda out, x: 2.0)"
    )


def lock_passes() -> None:
    """Make every backward() take the lock from now on: other threads can run while a closure does."""
    global _locked
    if not _locked:
        with engine.walking:
            engine.pin(1)
            _locked = True


def _in_child() -> None:
    """Renew the lock and its counts in a forked child, where the other threads no longer exist."""
    if is_orphaned(engine.walking):
        engine.walking = threading.RLock()
        engine.pin(int(_locked), 0, 0)


def _nothing() -> None:
    """Stand for a missing `_backward`."""


def _class_of(cls: type, children: Any) -> type:
    """Return the class of a Value with children. In a subclass the second argument may mean something else."""
    return _class(cls) if (children if cls is Value else any(isinstance(x, Value) for x in children)) else cls


@cache
def _class(cls: type) -> type:
    """Return the class of nodes made by hand: Handmade, or for a user's subclass of Value one derived from both."""
    names = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return Handmade if cls is Value else type(cls.__name__, (cls, Handmade), names)


node.supply(kind=_class_of)
in_child(_in_child)
