"""What a function reads outside of itself, as its recordings look at it before each run: whether it is as it was found.

Like the engine, this file runs as it stands and is compiled by Cython, with `outside.pxd`.
"""

from __future__ import annotations

from typing import Any

from wengert.compiler import memory
from wengert.engine import Value
from wengert.ops.ieee import cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["MISSING", "Contents", "Outside", "bits_of"]

MISSING = object()  # what is found where nothing is


@cython.cclass
class Contents:
    """Reads a variable of an enclosing function, whatever its key."""

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def __call__(self, key: Any) -> Any:
        """What it holds."""
        return memory.contents(self.cell, MISSING)


@cython.cclass
class Place:
    """Where something was read, and what was found there: a thing, or a float, of which a Value holds the number."""

    get: Any
    key: Any
    leaf: Any
    name: str
    names: Any
    then: Any

    def __init__(self, get: Any, key: Any, then: Any, leaf: Any, name: str) -> None:
        self.get, self.key, self.then, self.leaf, self.name = get, key, then, leaf, name
        of = getattr(get, "__self__", None)  # of the `get` of a dict, such as a module's globals
        self.names = of if type(of) is dict and get == of.get else None

    def read(self) -> Any:
        """What is there now."""
        if self.names is not None:
            names: dict[Any, Any] = self.names
            return names.get(self.key)
        if type(self.get) is Contents:
            cell: Contents = self.get
            return memory.contents(cell.cell, MISSING)
        return self.get(self.key)


@cython.cclass
class Held:
    """A list, how long it was, what it held if that matters, and its name."""

    def __init__(self, items: list[Any], count: int, then: list[Any] | None, name: str) -> None:
        self.items: list[Any] = items
        self.count: int = count
        self.then: list[Any] | None = then
        self.name: str = name


@cython.cclass
class Outside:
    """What a recording reads outside of the function: it holds as long as the same is found there.

    Args:
        found: how each thing was read, its key, it, its name.
        held: lists, each with its length then, a copy, or None where the length alone matters, and its name.
        numbers: the same of floats, each with the Value that holds it.
        lists: of plain things, a copy, the Values for the floats in it, its name, and its `bits_of` then.
        by_value: the kinds of which equal ones are one.
    """

    def __init__(self, found: Any, held: Any, numbers: Any, lists: Any, by_value: tuple[Any, ...]) -> None:
        self.places: list[Any] = [Place(get, key, then, None, name) for get, key, then, name in found]
        self.places += [Place(get, key, then, leaf, name) for get, key, then, leaf, name in numbers]
        self.held: list[Any] = [Held(*each) for each in held]
        self.lists: list[Any] = list(lists)
        self.by_value = by_value

    def changed(self) -> str:
        """Read what is read anew; the name of what is not as it was found, else nothing."""
        place: Place
        held: Held
        leaf: Value
        for place in self.places:
            now = place.read()
            if place.leaf is not None:
                if type(now) is not type(place.then):
                    return place.name
                leaf = place.leaf
                leaf._data = float(now)
            elif now is not place.then and not self._are_equal(now, place.then):
                return place.name
        for held in self.held:
            if len(held.items) != held.count:
                return f"the length of {held.name}"
            if held.then is not None and not _are_same(held.items, held.then):
                for n, (now, then) in enumerate(zip(held.items, held.then, strict=True)):
                    if now is not then and not self._are_equal(now, then):
                        return f"{held.name}[{n}]"
        return self._changed_list() if self.lists else ""

    def _are_equal(self, now: Any, then: Any) -> bool:
        """Whether two things are one to a program, though they are two."""
        if type(now) is not type(then):
            return False
        return isinstance(now, self.by_value) and now == then

    def _changed_list(self) -> str:
        for n, (x, then, leaves, name, bits) in enumerate(self.lists):
            if type(x) is list and type(then) is list:
                if _are_same(x, then):
                    continue
                items = x
            else:
                if bits_of(x) == bits:
                    continue
                if type(then) is not list:
                    return str(name)
                items = x.ravel().tolist()
            if list(map(type, items)) != list(map(type, then)):
                return str(name)
            for a, b in zip(items, then, strict=True):
                if a != b and type(a) is not float:
                    return str(name)
            for leaf, number in zip(leaves, [a for a in items if type(a) is float] if leaves else (), strict=True):
                leaf.data = number
            self.lists[n] = x, list(items), leaves, name, bits_of(x)
        return ""


def bits_of(x: Any) -> Any:
    """An array as bytes, with what they mean; nothing of a list."""
    return None if type(x) is list else (x.shape, x.dtype, x.tobytes())


def _are_same(x: list[Any], y: list[Any]) -> bool:
    """Whether two lists hold the same things."""
    if len(x) != len(y):
        return False
    for i in range(len(x)):  # noqa: SIM110  (a generator takes longer than all the rest)
        if x[i] is not y[i]:
            return False
    return True
