"""What a function sees outside of itself: the globals and the variables of enclosing functions that its code reads."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from operator import is_
from typing import Any

from wengert.compiler.tracing.trees import key_of

__all__ = ["Surroundings"]

LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS",
         "LOAD_FROM_DICT_OR_DEREF")  # fmt: skip


class Surroundings:
    """The states that a function has found its surroundings in: numbers and strings by value, all else by identity.

    A list that has changed is the same list. A list, a model or a helper that has been made anew, as by a cell of a
    notebook that is run again, is another one.

    Attributes:
        most: how many states are told apart.
        changed: what was another thing when there were more than that.

    >>> scale = 2.0
    >>> around = Surroundings(lambda x: scale * x, 32)
    >>> states = [around.state()]
    >>> scale = 3.0
    >>> states += [around.state()]
    >>> scale = 2.0
    >>> [*states, around.state()]
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
