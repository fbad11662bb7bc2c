"""What a function sees outside of itself: the globals and the variables of enclosing functions that its code reads.

And what stands for any object where recordings are told apart: its key.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from dataclasses import fields
from operator import is_
from types import MethodType
from typing import Any

import numpy as np

__all__ = ["CapturedEnvironment", "key_of"]

LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS",
         "LOAD_FROM_DICT_OR_DEREF")  # fmt: skip


class CapturedEnvironment:
    """The states of what a function captures: numbers and strings by value, all else by identity.

    A list that has changed is the same list. A list, a model or a helper that has been made anew, as by a cell of a
    notebook that is run again, is another one.

    Attributes:
        most: how many states are told apart.
        changed: what was another thing when there were more than that.

    >>> scale = 2.0
    >>> environment = CapturedEnvironment(lambda x: scale * x, 32)
    >>> states = [environment.state()]
    >>> scale = 3.0
    >>> states += [environment.state()]
    >>> scale = 2.0
    >>> [*states, environment.state()]
    [0, 1, 0]
    """

    def __init__(self, function: Any, most: int) -> None:
        function = inspect.unwrap(function)
        code = getattr(function, "__code__", None)
        read = tuple(dict.fromkeys(_read(code))) if code else ()
        cells = dict(zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False)) if code else {}
        self.names: tuple[str, ...] = tuple([name for name in read if name not in cells])
        self.cells: dict[str, Any] = {name: cell for name, cell in cells.items() if name in read}
        self.get: Any = getattr(function, "__globals__", {}).get
        self.most: int = most
        self.changed: str = ""
        self._known: dict[tuple[Any, ...], int] = {}
        self._seen: list[Any] = []
        self._state: int = -1

    def state(self) -> int:
        """The number of the present state; `most` if so many others have been seen."""
        seen = [*map(self.get, self.names)]
        for cell in self.cells.values():
            try:
                seen.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                seen.append(None)
        if self._state < 0 or not all(map(is_, seen, self._seen)):  # the same objects are the same state
            number = self._known.setdefault(tuple([key_of(x) for x in seen]), len(self._known))
            if number == self.most:
                self._known.popitem()
                pairs = zip((*self.names, *self.cells), seen, self._seen, strict=True)
                self.changed = self.changed or ", ".join([name for name, now, then in pairs if now is not then])
            self._seen, self._state = seen, number
        return self._state


def _read(code: Any) -> Iterator[str]:
    """The names of variables that code, and the functions and comprehensions within it, reads."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in LOADS:
            yield instruction.argval
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _read(constant)


class Itself:
    """An object as a key: equal to that object alone, which it keeps alive, so that no other gets its identity."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing: Any = thing

    def __eq__(self, other: object) -> bool:
        return type(other) is Itself and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def key_of(x: Any) -> Any:
    """What stands for an object where recordings are told apart: for numbers, strings and None type and value; for
    tuples, frozen dataclasses and bound methods, which are often made anew, their parts; else the object itself.

    >>> key_of(1) == key_of(True), key_of(0.0) == key_of(-0.0), key_of((1, "a")) == key_of((1, "a"))
    (False, False, True)
    """
    kind = type(x)
    if x is None or kind in (str, bytes, bool, int):
        return kind, x
    if kind is float or isinstance(x, np.generic):
        return kind, repr(x)  # in which nan is equal to itself, and -0.0 not to 0.0
    parts: Any
    if isinstance(x, tuple):
        parts = x
    elif kind is MethodType:
        parts = x.__func__, x.__self__
    elif "__dataclass_params__" in vars(kind) and kind.__dataclass_params__.frozen:
        parts = [getattr(x, field.name) for field in fields(x)]
    else:
        return Itself(x)
    return kind, tuple([key_of(part) for part in parts])
