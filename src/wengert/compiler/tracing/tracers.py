"""What stands for a number while a function is being recorded: no float and no int, so that nothing leaks unseen.

A `DataTracer` is what `.data` gives; a `IntegerTracer` is an integer argument. Arithmetic on either is recorded, a
comparison is noted as a guard, and what cannot be recorded is told to the recorder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from wengert.engine import Value
from wengert.ops import BY_NAME
from wengert.ops import coerce as operands

__all__ = ["HOLDS", "DataTracer", "IntegerTracer", "as_operand"]

HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
}


# fmt: off
class Tracer:
    """A number that is being traced: arithmetic and comparisons, by what a subclass makes of them."""

    __slots__ = ("number", "recorder")

    def __init__(self, recorder: Any, number: float) -> None:
        self.recorder: Any = recorder
        self.number: float = number

    def _do(self, name: str, *operands: Any) -> Any: raise NotImplementedError
    def _operand(self) -> Any: raise NotImplementedError
    def __add__(self, other: Any) -> Any: return self._do("add", self, other)
    def __radd__(self, other: Any) -> Any: return self._do("add", other, self)
    def __sub__(self, other: Any) -> Any: return self._do("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return self._do("sub", other, self)
    def __mul__(self, other: Any) -> Any: return self._do("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return self._do("mul", other, self)
    def __truediv__(self, other: Any) -> Any: return self._do("div", self, other)
    def __rtruediv__(self, other: Any) -> Any: return self._do("div", other, self)
    def __pow__(self, other: Any) -> Any: return self._do("pow", self, other)
    def __rpow__(self, other: Any) -> Any: return self._do("pow", other, self)
    def __neg__(self) -> Any: return self._do("neg", self)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return self._do("abs", self)
    def __lt__(self, other: Any) -> Any: return self._compare("lt", other)
    def __le__(self, other: Any) -> Any: return self._compare("le", other)
    def __gt__(self, other: Any) -> Any: return self._compare("gt", other)
    def __ge__(self, other: Any) -> Any: return self._compare("ge", other)
    def __eq__(self, other: Any) -> Any: return self._compare("eq", other)
    def __ne__(self, other: Any) -> Any: return self._compare("ne", other)
    def __bool__(self) -> bool: return bool(self._compare("ne", 0.0))
    def __hash__(self) -> int: return 0
    # fmt: on

    def _compare(self, how: str, other: Any) -> Any:
        """The outcome of a comparison, noted as a guard."""
        if isinstance(other, Value):
            number = self.recorder.unseen(other)
        elif isinstance(other, Tracer):
            number = other.number
        elif operands.is_number(other):
            number = operands.number(other)
        else:
            return NotImplemented
        outcome = HOLDS[how](self.number, number)
        self.recorder.guard(how, self._operand(), as_operand(other), outcome)
        return outcome


def as_operand(x: Any) -> Any:
    """What is recorded for an operand: a Value, or a number."""
    return x._operand() if isinstance(x, Tracer) else x


class DataTracer(Tracer):
    """The number of a Value, as `.data` gives it. No gradient flows through what is computed from it."""

    __slots__ = ("_detached", "_x")

    def __init__(self, recorder: Any, x: Any, number: float, detached: bool = False) -> None:
        super().__init__(recorder, number)
        self._x, self._detached = x, detached

    def _operand(self) -> Any:
        return self._x if self._detached else self.recorder.detached(self._x)

    def _do(self, name: str, *xs: Any) -> Any:
        if not all(isinstance(x, (Tracer, Value)) or operands.is_number(x) for x in xs):
            return NotImplemented
        made = BY_NAME[name](*map(as_operand, xs))
        return made if any(isinstance(x, Value) for x in xs) else self.computed(made)

    def computed(self, x: Any) -> DataTracer:
        """What was computed from traced numbers is one too."""
        return DataTracer(self.recorder, x, self.recorder.unseen(x), True)

    def _refuse(self, what: str) -> Any:
        self.recorder.refuse(f"{what}: compute with the Value itself (v.exp(), wengert.maximum(a, b), wengert.where)")

    # fmt: off
    def __hash__(self) -> int: return int(self._refuse("uses the data of a Value as a key"))
    def __float__(self) -> float: return float(self._refuse("turns the data of a Value into a plain float"))
    def __int__(self) -> int: return int(self._refuse("turns the data of a Value into an int"))
    def __index__(self) -> int: return int(self._refuse("uses the data of a Value as an index"))
    def __round__(self, digits: Any = None) -> Any: return self._refuse("rounds the data of a Value")
    def __str__(self) -> str: return str(self._refuse("turns the data of a Value into text"))
    def __format__(self, spec: str) -> str: return str(self._refuse("turns the data of a Value into text"))
    def __repr__(self) -> str: return str(self._refuse("turns the data of a Value into text"))
    # fmt: on


class IntegerTracer(Tracer):
    """An integer argument. As an index it chooses an item of a list at run time; in arithmetic it is an input."""

    __slots__ = ("_always_fixed", "_value", "used")

    def __init__(self, recorder: Any, number: int, always_fixed: bool = False) -> None:
        super().__init__(recorder, number)
        self._always_fixed = always_fixed
        self._value: Any = None
        self.used: bool = False  # as an index

    def _operand(self) -> Any:
        if self._value is None:
            self._value = Value(float(self.number))
        return self._value

    def _do(self, name: str, *xs: Any) -> Any:
        if not all(isinstance(x, (Tracer, Value)) or operands.is_number(x) for x in xs):
            return NotImplemented
        return BY_NAME[name](*map(as_operand, xs))

    def select(self, items: Any) -> Any:
        """The item of a list that this integer stands for, noted as chosen at run time."""
        if self._always_fixed:
            return items[self.fixed()]
        self.used = True
        self.recorder.choose(self, items)
        return items[int(self.number)]

    def __index__(self) -> int:
        items = None if self._always_fixed else self.recorder.indexed(sys._getframe(1), int(self.number))
        if items is None:
            return self.fixed()  # range(n), a slice: another number is another specialization
        self.used = True
        self.recorder.choose(self, items)
        return int(self.number)

    @property
    def whole(self) -> int:
        """The number as an int."""
        return int(self.number)

    def fixed(self) -> int:
        """The number itself; a guard says that the recording holds for no other."""
        self.recorder.guard("eq", self._operand(), float(self.number), True)
        return int(self.number)

    # fmt: off
    def __hash__(self) -> int: return hash(self.fixed())
    def __int__(self) -> int: return self.fixed()
    def __float__(self) -> float: return float(self.fixed())
    # fmt: on

    def __repr__(self) -> str:
        return f"IntegerTracer({self.number})"
