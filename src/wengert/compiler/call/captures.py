"""Checks before each run that the objects which a function read outside of its arguments have not changed.

A captured float or Value is not part of the program: each run reads its current number into its own parameters, so that
several threads may check at once.

Like the engine, this file runs as it stands and is compiled by Cython, with `captures.pxd`.
"""

from __future__ import annotations

from array import array
from contextvars import ContextVar
from itertools import chain
from math import copysign
from types import GetSetDescriptorType, MemberDescriptorType, MethodType
from typing import Any
from weakref import ref

from wengert.compiler.call import memory
from wengert.engine import Value
from wengert.ops import ieee
from wengert.ops.ieee import Int, cython

if False:  # Cython compiles with its own module
    import cython  # type: ignore[no-redef]

__all__ = [
    "KINDS",
    "MISSING",
    "BulkNumbers",
    "Captures",
    "Items",
    "Place",
    "PlaceGroup",
    "attributes_of",
    "dict_of",
    "look",
    "same",
]

MISSING = _missing = object()
NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL, BYTES, NAMES = range(8)  # see `look`
KINDS = tuple(range(8))  # for other modules: compiled, the names above are C integers
# See `memory.first_changed`.
ROW_OF_FUNCTION, ROW_OF_CLASS, ROW_OF_COUNTER, ROW_OF_FLOAT, ROW_OF_VARIABLE = 2, 3, 4, 5, 7
UNCHANGED, LENGTH = -1, -2  # results of `Items.changed` that are no index
PLAIN = (int, bool, str, bytes, complex, type(None))


def look(kind: Int, source: Any, key: Any) -> Any:
    """Return the object at a place; MISSING if there is none.

    Args:
        kind: NAME for a key of a dict, such as a module's globals; CELL for a variable of an enclosing function;
            ATTRIBUTE for an attribute of an object or its class, without any `__getattr__`; CLASS for an attribute that
            a class itself defines; FUNCTION for the code and the defaults of a function; CALL for the result of calling
            the source; BYTES for the contents of an array; NAMES for the names of all attributes of an object.
        source: the dict, cell, object, class, function or array.
        key: the key of the dict, or the name of the attribute.
    """
    if kind == NAME:
        names: dict[Any, Any] = source
        return names.get(key, _missing)
    if kind == CELL:
        return memory.contents(source, _missing)
    if kind == ATTRIBUTE:
        return memory.attribute(source, key, _missing)
    if kind == CLASS:
        return vars(source).get(key, _missing)
    if kind == FUNCTION:
        return source.__code__, source.__defaults__, source.__kwdefaults__
    if kind == BYTES:
        return source.copy()
    if kind == NAMES:
        return tuple(attributes_of(source))
    return source()


def attributes_of(x: Any) -> list[str]:
    """List the names of an object's attributes, in slots and in its `__dict__`. No code of its class runs."""
    held = [n for n in slots_of(type(x)) if memory.attribute(x, n, _missing) is not _missing]
    return [n for n in (*held, *dict_of(x)) if type(n) is str and not n.startswith("__")]


def dict_of(x: Any) -> Any:
    """Return the dict that holds an object's attributes; an empty one if it has none. Its class may define another
    `__dict__`, or a `__getattribute__` that answers anything: it is not asked.
    """
    for base in type(x).__mro__:
        descriptor: Any = vars(base).get("__dict__")
        if type(descriptor) in (GetSetDescriptorType, MemberDescriptorType):  # of C
            return descriptor.__get__(x)
    return {}


def slots_of(kind: Any) -> list[str]:
    slots = [n for base in kind.__mro__ for n, a in vars(base).items() if isinstance(a, MemberDescriptorType)]
    return [n for n in slots if not _is_overridden(kind, n)]


def _is_overridden(kind: Any, slot: str) -> bool:
    """Return True if the name of a slot means something else by now, such as a property of a derived class."""
    first = next(vars(base)[slot] for base in kind.__mro__ if slot in vars(base))
    return not isinstance(first, MemberDescriptorType)


def same(now: Any, then: Any) -> bool:
    """Return True if a program cannot tell two objects apart: they are identical, or equal numbers, strings or tuples
    of such.

    >>> same(0.0, -0.0), same(1, True), same((1, "a"), (1, "a")), same([1], [1])
    (False, False, True, False)
    """
    kind = type(then)
    if now is then:
        return True
    if type(now) is not kind:
        return False
    if kind is float:
        return (now == then and copysign(1.0, now) == copysign(1.0, then)) or (now != now and then != then)
    if kind is tuple:
        return len(now) == len(then) and all(map(same, now, then))
    if kind is frozenset:
        return bool(now == then) and {*map(type, now)} == {*map(type, then)} and {*map(type, now)} <= {*PLAIN}
    if kind is MethodType:  # each access makes a new one
        return now.__func__ is then.__func__ and now.__self__ is then.__self__
    if kind is complex:
        return same(now.real, then.real) and same(now.imag, then.imag)
    if kind.__module__ == "numpy":
        from numpy import generic  # NumPy is optional

        is_scalar = isinstance(then, generic) and not then.dtype.hasobject
        return bool(is_scalar and now.dtype == then.dtype and now.tobytes() == then.tobytes())
    return kind in PLAIN and bool(now == then)


def is_itself(now: Any, then: Any) -> bool:
    """Return True if two objects are one, as far as a program can ask: each access of a method makes a new one."""
    if now is then:
        return True
    return type(then) is MethodType and same(now, then)


def are_themselves(now: Any, then: Any) -> bool:
    """Return True if the code of a function and each of its defaults are the same objects."""
    (code, defaults, named), (code_then, defaults_then, named_then) = now, then
    if code is not code_then or bool(defaults) != bool(defaults_then) or bool(named) != bool(named_then):
        return False
    if defaults and not (len(defaults) == len(defaults_then) and all(map(is_itself, defaults, defaults_then))):
        return False
    return not named or (list(named) == list(named_then) and all(map(is_itself, named.values(), named_then.values())))


def are_alike(now: Any, then: Any) -> bool:
    """Compare two arrays of any kind and layout; `memory.are_bytes` compares most of them, and faster."""
    return bool((now.dtype, now.shape) == (then.dtype, then.shape) and now.tobytes() == then.tobytes())


def function_of(x: Any, source: Any) -> Any:
    """Return the function of a method of `source`, which does not keep `source` alive; other objects as they are."""
    return x.__func__ if type(x) is MethodType and x.__self__ is source else x


@cython.cclass
class Place:
    """A place that was read once, and the object or float found there; a Value stands for a float.

    Args:
        kind, source, key: see `look`.
        then: the object found.
        leaf: the Value that stands for a float.
        name: the name of the place in the user's terms.
        is_weak: True if the source is an argument, of which only a weak reference is kept: once it is gone, no call has
            this signature.
        tells: True if an equal object counts as a change, as the program may compare objects by identity.

    Attributes:
        number: the float's position among a program's parameters; -1 if the program does not use it.
    """

    # Fields that are set several at a time; C types are in the .pxd.
    kind: Any
    key: Any
    leaf: Any
    name: Any
    is_weak: Any
    tells: Any
    then: Any
    has_dict_alone: Any

    def __init__(
        self,
        kind: Int,
        source: Any,
        key: Any,
        then: Any,
        leaf: Any,
        name: str,
        is_weak: bool = False,
        tells: bool = False,
    ) -> None:
        self.kind, self.key, self.leaf, self.name, self.is_weak = kind, key, leaf, name, is_weak
        self.tells = tells and kind in (NAME, CELL, ATTRIBUTE, CLASS, FUNCTION)  # others make a new object each time
        self.source: Any = ref(source) if is_weak else source
        self.then = function_of(then, source) if is_weak else then
        self.has_dict_alone = kind == NAMES and not slots_of(type(source))
        self.number: Any = -1

    def row(self) -> tuple[int, ...] | None:
        """Return a row for `memory.first_changed`; None if it cannot tell whether the place has changed."""
        if self.is_weak or self.kind not in (NAME, CELL, FUNCTION):
            return None
        if self.leaf is not None:
            is_float = type(self.then) is float
            return (ROW_OF_FLOAT + self.kind, id(self.source), id(self.key), self.number) if is_float else None
        if self.kind == FUNCTION:
            code, defaults, named = self.then
            return (ROW_OF_FUNCTION, id(self.source), id(defaults), id(code)) if named is None else None
        return self.kind, id(self.source), id(self.key), id(self.then)

    def is_stale(self, target: Int) -> bool:
        """Return True if another object is there now; a float is written to the parameters at `target`."""
        source = self.source() if self.is_weak else self.source
        if self.kind == BYTES:
            return not (memory.are_bytes(source, self.then) or are_alike(source, self.then))
        if self.has_dict_alone and memory.are_names(source, self.then):
            return False
        now = look(self.kind, source, self.key)
        if self.is_weak:
            now = function_of(now, source)
        if self.leaf is not None:
            if type(now) is not type(self.then):
                return True
            if self.number >= 0:
                memory.put(target + 8 * self.number, float(now))
            return False
        if self.tells:
            return not (are_themselves if self.kind == FUNCTION else is_itself)(now, self.then)
        return now is not self.then and not same(now, self.then)


@cython.cclass
class Items:
    """The items of a list, deque or dict as they were found; a Value stands for each float.

    Args:
        source: the container.
        then: its items, or the values of a dict.
        leaves: a Value or None for each item; None if there are no floats.
        keys: the keys of a dict.
        name: the name of the container.
        tells: see `Place`.

    Attributes:
        numbers: the position of each float among a program's parameters; -1 if the program does not use it.
    """

    def __init__(
        self,
        source: Any,
        then: list[Any],
        leaves: list[Any] | None,
        keys: list[Any] | None,
        name: str,
        tells: bool = False,
    ) -> None:
        self.source: Any = source
        self.then: list[Any] = then
        self.leaves: list[Any] | None = leaves
        self.keys: list[Any] | None = keys
        self.name: str = name
        self.tells: bool = tells
        self.numbers: list[int] = []

    def changed(self, target: Int) -> Int:
        """Read the floats into the parameters at `target`; return the index of the first item that changed, or
        UNCHANGED, or LENGTH.
        """
        items: list[Any]
        if type(self.source) is list:
            items = self.source
            if self.leaves is None and memory.are_identical(items, self.then):
                return UNCHANGED
        elif self.keys is None:
            items = list(self.source)
        else:
            if (
                self.leaves is None
                and type(self.source) is dict
                and memory.are_items(self.source, self.keys, self.then)
            ):
                return UNCHANGED
            at = self._difference(list(self.source), self.keys)
            if at != UNCHANGED:
                return at
            items = list(self.source.values())
        if self.leaves is None:
            return self._difference(items, self.then)
        count = len(self.then)
        if len(items) != count:
            return LENGTH
        for i in range(count):
            if i >= len(items):  # another thread may shorten it
                return LENGTH
            now, then = items[i], self.then[i]
            if self.leaves[i] is not None:
                if type(now) is not type(then):
                    return i
                number: int = self.numbers[i]
                if number >= 0:
                    memory.put(target + 8 * number, float(now))
            elif not (is_itself(now, then) if self.tells else same(now, then)):
                return i
        return UNCHANGED

    def _difference(self, now: list[Any], then: list[Any]) -> Int:
        if len(now) != len(then):
            return LENGTH
        for i in range(len(then)):
            if i >= len(now):  # another thread may shorten it
                return LENGTH
            x, y = now[i], then[i]
            if not (is_itself(x, y) if self.tells else same(x, y)):
                return i
        return UNCHANGED

    def what(self, at: Int) -> str:
        """Name the item that changed."""
        if at == LENGTH:
            return f"the length of {self.name}"
        return self.name if self.keys is not None else f"{self.name}[{at}]"


@cython.cclass
class BulkNumbers:
    """An array or a list of floats that is read in one go.

    Args:
        source: the array or list.
        shape: the shape of the array.
        places: the position of each number among a program's parameters; -1 if the program does not use it.
        name: the name of the array.
    """

    def __init__(self, source: Any, shape: tuple[int, ...], places: Any, name: str) -> None:
        self.source: Any = source
        self.shape: tuple[int, ...] = shape
        self.places: Any = places
        self.places_at: int = places.ctypes.data
        self.count: int = len(places)
        self.first: int = -1  # the position of the first number, if all are used and in order
        if len(places) and places[0] >= 0 and (places[1:] - places[:-1] == 1).all():
            self.first = int(places[0])
        self.name: str = name

    def read_into(self, target: Int) -> bool:
        """Read the numbers into the parameters at `target`; False if the shape or the kind of numbers has changed."""
        source: Any = self.source
        if type(source) is list:
            return memory.scatter_list(source, target, self.places_at, self.count)
        at = memory.address(source, False, self.shape, 0)
        if not at:
            if source.shape != self.shape or source.dtype != "f8":
                return False
            source = source.copy(order="C")
            at = memory.address(source, False, self.shape, 0)
            if not at:
                return False
        if self.first >= 0:
            memory.copy(at, target + 8 * self.first, self.count)
        else:
            memory.scatter(at, target, self.places_at, self.count)
        return True


@cython.cclass
class PlaceGroup:
    """Places that one check shows to be unchanged: of the version number of a class, of the counter of a class that
    counts changes of its objects (as `wengert.nn.Module` does), or of the object that a context variable holds. There
    is no float among them: each run reads floats itself.

    Args:
        kind: the class whose own attributes are meant; None for attributes of objects.
        counter: a list of one object, or a `ContextVar` of one, which is replaced after each change; None for a class.
    """

    def __init__(self, kind: Any, counter: Any) -> None:
        self.kind: Any = kind
        self.counter: Any = counter
        self.places: list[Place] = []
        self.seen: Any = None  # the object of the counter when the places were last found unchanged,
        self.version: int = 0  # and its identity, or the version of the class

    def row(self) -> tuple[int, ...]:
        """Return a row for `memory.first_changed`. Without a version it matches nothing, and `id(self)` tells it from
        the row of another group of the same class.
        """
        kind, source = (ROW_OF_CLASS, self.kind) if self.counter is None else (ROW_OF_COUNTER, self.counter)
        if type(source) is ContextVar:
            kind = ROW_OF_VARIABLE
        return kind, id(source), 0 if self.version else id(self), self.version

    def stale(self) -> str:
        """Return the name of a place that has changed, or an empty string."""
        place: Place
        seen = None
        if self.counter is not None:
            seen = self.counter.get() if type(self.counter) is ContextVar else self.counter[0]
        if seen is not None and seen is self.seen:
            return ""
        version = id(seen) if self.kind is None else memory.version(self.kind)
        for place in self.places:
            if place.is_stale(0):
                return str(place.name)
        self.seen, self.version = seen, version
        return ""


@cython.cclass
class Captures:
    """All that a recording read outside of the function's arguments; it is valid while the same is found there.

    Many fields: what is read is sorted, once, by how each run looks at it.

    Args:
        places: single objects and floats.
        items: containers.
        groups: groups of places.
        numbers: arrays and lists that are read in one go.
        constants: the identities of the function's other objects, if it may compare objects by identity: then each
            captured float must be an object of its own. Else None.
    """

    def __init__(
        self, places: list[Any], items: list[Any], groups: list[Any], numbers: list[Any], constants: Any = None
    ) -> None:
        self.constants: Any = constants
        self.places: list[Any] = places
        self.items: list[Any] = items
        self.groups: list[Any] = groups
        self.numbers: list[Any] = numbers
        # Places for which comparing identities is nearly always enough have a row: see `memory.first_changed`. The rows
        # of floats come last.
        by_row = sorted([place for place in places if place.row()], key=lambda place: place.leaf is not None)
        self.by_row: list[Any] = [*groups, *by_row]
        self.fixed: int = len(groups) + sum([place.leaf is None for place in by_row])  # rows that read no float
        self.others: list[Any] = [place for place in places if not place.row()]
        self.counted: list[Any] = [None] * len(groups)  # keeps the objects whose identities are in rows
        self.rows: Any = array("q", chain.from_iterable([each.row() for each in self.by_row]))
        self.rows_at: int = self.rows.buffer_info()[0]
        self.values: tuple[Value, ...] = ()  # the parameters that are no captured floats,
        self.values_at: Any = array("q")  # and their positions among all

    def bind(self, parameters: tuple[Value, ...]) -> None:
        """Set the parameters of the program, whose numbers are read here, too."""
        floats = {*self.read()}
        places = [n for n in range(len(parameters)) if n not in floats]
        self.values, self.values_at = tuple([parameters[n] for n in places]), array("q", places)

    def read(self) -> list[int]:
        """List the positions of the captured floats among a program's parameters."""
        numbers = [place.number for place in self.places]
        for several in [*[items.numbers for items in self.items], *[bulk.places for bulk in self.numbers]]:
            numbers += map(int, several)
        return [number for number in numbers if number >= 0]

    def floats(self) -> list[Any]:
        """List the captured floats that are there now. (Those of arrays are new objects whenever one looks.)"""
        place: Place
        items: Items
        numbers: BulkNumbers
        floats: list[Any] = []
        for place in self.places:
            if place.leaf is not None:
                floats.append(look(place.kind, place.source() if place.is_weak else place.source, place.key))
        for items in self.items:
            if items.leaves is not None:
                several = list(items.source if items.keys is None else items.source.values())
                floats += [x for x, leaf in zip(several, items.leaves, strict=False) if leaf is not None]
        for numbers in self.numbers:
            if type(numbers.source) is list:
                floats += numbers.source
        return floats

    def _shared(self) -> str:
        """Describe the change if two captured floats are one object, or one is in `constants`; else an empty string."""
        identities = list(map(id, self.floats()))
        if len({*identities}) == len(identities) and self.constants.isdisjoint(identities):
            return ""
        return "which of its numbers are the same object"

    def reads(self, owner: Any, name: str) -> bool:
        """Return True if this attribute of an object was read."""
        places = [*self.places, *[place for group in self.groups for place in group.places]]
        return any(place.source is owner and place.key == name for place in places)

    def load(self, target: Int, with_values: bool, unchanged: Captures | None = None) -> str:
        """Read the numbers of captured floats, and of Values if asked, into the parameters at `target`; return the name
        of a capture that has changed, or an empty string. `unchanged` are the captures of another specialization, which
        were checked just before: if both have the same rows, apart from those of floats, these are not compared again.
        """
        place: Place
        items: Items
        group: PlaceGroup
        numbers: BulkNumbers
        row, count = 0, len(self.by_row)
        if with_values:  # first: also where a capture has changed, the parameters are what they are
            for n in range(len(self.values)):
                value = ieee.at(self.values, n, Value)
                if ieee.held(value):
                    memory.put(target + 8 * self.values_at[n], value._data)
        if unchanged is not None and unchanged.fixed == self.fixed:
            row = self.fixed if memory.are_same(self.rows_at, unchanged.rows_at, 4 * self.fixed) else 0
        while (row := memory.first_changed(self.rows_at, row, count, target, _missing)) < count:
            if row < len(self.groups):  # first, as reading an object would run a property that its class has since got
                group = self.by_row[row]
                name = group.stale()
                if name:
                    return str(name)
                self.counted[row] = group.seen
                for n, number in enumerate(group.row()):
                    memory.put_int(self.rows_at + 32 * row + 8 * n, number)
            else:
                place = self.by_row[row]
                if place.is_stale(target):
                    return str(place.name)
            row += 1
        for place in self.others:
            if place.is_stale(target):
                return str(place.name)
        for items in self.items:
            at = items.changed(target)
            if at != UNCHANGED:
                return str(items.what(at))
        for numbers in self.numbers:
            if not numbers.read_into(target):
                return str(numbers.name)
        return "" if self.constants is None else self._shared()
