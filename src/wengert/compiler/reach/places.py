"""The places that a recorded run reads outside of its arguments; kept, they are what is checked before later runs."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Collection, Container, Iterable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from wengert.compiler.call import KINDS, MISSING, BulkNumbers, Captures, Items, Place, PlaceGroup, look
from wengert.compiler.code import PLAIN
from wengert.compiler.reach.attributes import (
    CYTHON,
    METHODS,
    attributes_with_functions,
    definition_of,
    has,
    is_default,
    of_class,
    own,
)
from wengert.compiler.reach.settings import NUMPY_ERRORS, decimal_context, numpy_errors
from wengert.compiler.traced import STANDINS, Unrecordable
from wengert.engine import Value

__all__ = ["Places"]

NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL, BYTES, NAMES = KINDS
# The names of functions that may read an attribute which no code names, and what a class holds as data.
GETTERS, DATA = frozenset(["getattr", "attrgetter"]), (int, float, str, bytes, list, tuple, dict, Value)
CLASS_NAMES = ("__name__", "__qualname__")  # what a class says of itself


class Places:
    """The places that one recorded run has read.

    Args:
        watch: the watched run: its code, and the names in it. Only these names are noted of classes and frozen objects.
        passed: the identities of those objects among the arguments that allow weak references.
        tells_objects: True if the run may ask which of several equal objects one is: the very same have to be found.
        recorder: the recorder of the run.

    Attributes:
        single: places of one object or one float.
        items: containers whose items were read one by one.
        groups: places that one counter or version tells of, by the identity of the counter or the class.
        bulk: arrays and lists of floats, with their shapes, the Values that stand for the floats, and their names.
    """

    def __init__(self, watch: Any, passed: Collection[int], tells_objects: bool, recorder: Any) -> None:
        self.ran: dict[CodeType, Any] = watch.ran
        self.mentioned: set[str] = watch.before.mentioned
        self.computes_names: bool = not self.mentioned.isdisjoint(GETTERS)
        self.passed: Collection[int] = passed
        self.tells_objects: bool = tells_objects
        self.recorder: Any = recorder
        self.single: list[Place] = []
        self.items: list[Items] = []
        self.groups: dict[int, PlaceGroup] = {}
        self.bulk: list[tuple[Any, tuple[int, ...], list[Value], str]] = []
        self._noted: set[tuple[int, int, Any]] = set()
        self._defined: set[int] = set()  # classes whose definition is noted, by identity, which the groups keep alive

    def refuse(self, why: str) -> None:
        """Stop the recording.

        Raises:
            Unrecordable: always, during the run.
        """
        if self.recorder.open:
            self.recorder.fallback_reason = self.recorder.fallback_reason or why
            raise Unrecordable(why)

    # -- one object or one float --------------------------------------------------------------------------------------

    def note(self, kind: int, source: Any, key: Any, name: str) -> Any:
        """Note a place, where each run must find the same object, and return the object."""
        x = look(kind, source, key)
        at = kind, id(source), id(key) if kind == CALL else key
        if at not in self._noted:
            self._noted.add(at)
            is_weak = self._is_argument(kind, source)
            self._add(source, Place(kind, source, key, x, None, name, is_weak, self.tells_objects))
        return x

    def note_float(self, kind: int, source: Any, key: Any, name: str) -> Value:
        """Note the place of a float, which each run reads, and return the Value that stands for it."""
        x = look(kind, source, key)
        leaf = Value(x)
        self._add(source, Place(kind, source, key, x, leaf, name, self._is_argument(kind, source)))
        return leaf

    def _is_argument(self, kind: int, source: Any) -> bool:
        """Return True for a place of an argument, which need not be kept alive."""
        return kind in (ATTRIBUTE, FUNCTION, NAMES) and id(source) in self.passed

    def _add(self, source: Any, place: Place) -> None:
        """Add a place; to a group, if a counter or a version tells when it may have changed."""
        counter = None
        is_read = place.kind == ATTRIBUTE and (place.then is not MISSING or place.key in self.mentioned)
        by_object = is_read and not is_default(of_class(type(source), place.key))
        if by_object or place.kind == NAMES:
            counter = getattr(type(source).__setattr__, "counter", None)
            if counter is not getattr(type(source).__delattr__, "counter", None):
                counter = None
        if place.leaf is not None:  # each run reads a float
            self.single.append(place)
        elif counter is not None:
            self._group(None, counter, place)
        elif place.kind == CLASS:
            self._group(source, None, place)
        else:
            self.single.append(place)

    def _group(self, kind: Any, counter: Any, place: Place) -> None:
        key = id(kind if counter is None else counter)
        self.groups.setdefault(key, PlaceGroup(kind, counter)).places.append(place)

    # -- containers ---------------------------------------------------------------------------------------------------

    def note_items(
        self, x: Any, items: list[Any], keys: list[Any] | None, name: str, leaves: list[Any] | None = None
    ) -> None:
        """Note the items of a container; `leaves` has a Value or None for each, where some are floats."""
        self.items.append(Items(x, items, leaves, keys, name, self.tells_objects))

    def note_numbers(self, x: Any, shape: tuple[int, ...], numbers: list[float], name: str) -> list[Value]:
        """Note floats that are read in one go, and return the Values that stand for them."""
        leaves = list(map(Value, numbers))
        self.bulk.append((x, shape, leaves, name))
        return leaves

    def note_array(self, x: Any, name: str) -> None:
        """Note the contents of an array that does not hold float64."""
        if x.dtype.hasobject and not all(isinstance(item, (*PLAIN, float, Value)) for item in x.ravel().tolist()):
            self.refuse(f"it reads {name}, an array of objects, which may change without being seen: use a list")
        self.note(BYTES, x, None, name)

    # -- what decides how something is computed -----------------------------------------------------------------------

    def note_cache(self, x: Any, name: str) -> None:
        """Note how many results a function of `functools.lru_cache` has kept. A cache that is cleared counts its hits
        anew.
        """
        before, is_cleared = 0, False

        def state() -> Any:
            nonlocal before, is_cleared
            info = x.cache_info()
            before, is_cleared = info.hits, is_cleared or info.hits < before
            return info.misses, info.currsize, is_cleared

        self.note(CALL, state, None, f"the cache of {name}")

    def note_decimals(self) -> None:
        """Note the context of decimal numbers."""
        self.note(CALL, decimal_context, None, "the context of decimal numbers")

    def note_errors(self) -> None:
        """Note that NumPy raises no errors: an array program gives infinity and nan, which may not reach its result."""
        place = Place(CALL, numpy_errors, None, (), None, "the errors that NumPy raises")
        if NUMPY_ERRORS is None:
            self.single.append(place)
        else:
            self._group(None, NUMPY_ERRORS, place)

    # -- attributes of objects and classes ----------------------------------------------------------------------------

    def note_own(self, x: Any, n: str, name: str) -> bool:
        """Note whether an object overrides a class attribute. Return True if the attribute must be read from the
        object: it does override it, or the class has no function there.
        """
        inherited = of_class(type(x), n)
        if not has(inherited, "__get__"):
            return True
        if type(inherited) in METHODS:
            self.note(ATTRIBUTE, x, n, name)
        else:
            held = weakref.ref(x) if id(x) in self.passed else lambda: x
            self.note(CALL, lambda: own(held(), n), None, name)
        return own(x, n) is not MISSING

    def note_of_class(self, kind: type, names: Iterable[str], name: str) -> None:
        """Note that a class has these attributes itself, or lacks them."""
        own, group = vars(kind), self.groups.setdefault(id(kind), PlaceGroup(kind, None))
        for n in names:
            at = CLASS, id(kind), n
            if at not in self._noted:
                self._noted.add(at)
                then = own.get(n, MISSING)
                group.places.append(Place(CLASS, kind, n, then, None, f"{name}.{n}", False, self.tells_objects))

    def note_absent(self, kind: type, name: str) -> None:
        """Note what a class lacks of the names in the code, and what no name tells: its bases, its special methods."""
        self.note_of_class(kind, self.mentioned.difference(vars(kind)), name)
        if id(kind) not in self._defined:
            self._defined.add(id(kind))
            state = functools.partial(definition_of, kind)
            self._group(kind, None, Place(CALL, state, None, state(), None, f"how the class {name} is defined"))
            for n in CLASS_NAMES:  # they change without a new version
                if n in self.mentioned or self.computes_names:
                    self.note(ATTRIBUTE, kind, n, f"{name}.{n}")

    def attributes_read(self, kind: type) -> list[tuple[str, Any, tuple[Any, ...], list[Any], bool]]:
        """List a class's own attributes: the name, the attribute, the functions in it, those of them whose code ran,
        which wrap one or which are replaced, and whether code may read the attribute: by its name, or if it is data
        by a computed one.
        """
        listed = []
        for n, attribute, functions in attributes_with_functions(kind):
            followed = []
            for f in functions:
                if type(f) is FunctionType:
                    if f.__code__ in self.ran or "__wrapped__" in vars(f):
                        followed.append(f)
                elif id(f) in STANDINS or (type(f).__name__ == CYTHON and hasattr(f, "__wrapped__")):
                    followed.append(f)
            is_read = n in self.mentioned or (self.computes_names and isinstance(attribute, DATA))
            listed.append((n, attribute, functions, followed, is_read))
        return listed

    # -- after recording ----------------------------------------------------------------------------------------------

    @property
    def every(self) -> list[Place]:
        """The places of one object or float, also those in groups."""
        return self.single + [place for group in self.groups.values() for place in group.places]

    def values(self) -> set[int]:
        """Return the identities of the Values that stand for captured floats."""
        leaves = [place.leaf for place in self.single] + [leaf for items in self.items for leaf in items.leaves or ()]
        return {id(x) for x in [*leaves, *[x for _, _, xs, _ in self.bulk for x in xs]] if x is not None}

    def objects(self, arguments: Container[int]) -> list[Any]:
        """List the objects that were read, but those that are parts of arguments, whose identities are given."""
        objects = [place.then for place in self.every if id(place.source) not in arguments]
        for items in self.items:
            if id(items.source) not in arguments:
                objects += [items.source, *items.then, *(items.keys or ())]
        objects += [each for x, _, _, _ in self.bulk for each in (x, *(x if type(x) is list else ()))]
        for x in objects:
            if type(x) is tuple:
                objects += x
        return objects

    def floats(self) -> list[Any]:
        """List the captured floats, as the objects that were read."""
        floats = [place.then for place in self.single if place.leaf is not None]
        for items in self.items:
            floats += [x for x, leaf in zip(items.then, items.leaves or (), strict=False) if leaf is not None]
        return floats + [each for x, _, _, _ in self.bulk if type(x) is list for each in x]

    def name_of(self, leaf: Value) -> str:
        """Return the place of a captured float, given its Value; empty for other Values."""
        for place in self.single:
            if place.leaf is leaf:
                return str(place.name)
        several = [(items.leaves or (), items.name) for items in self.items] + [(xs, n) for _, _, xs, n in self.bulk]
        return next((f"{name}[{n}]" for leaves, name in several for n, x in enumerate(leaves) if x is leaf), "")

    def blocks(self, number: dict[int, int]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        """Return the positions of the numbers of each array that is read in one go, if the program uses all of them;
        consecutive lists of one length are stacked into one array. `number` has the position of each Value, by its
        identity.
        """
        whole = []
        for x, shape, leaves, _ in self.bulk:
            positions = np.array([number.get(id(leaf), -1) for leaf in leaves], np.int64).reshape(shape)
            if positions.size and positions.min() >= 0:
                whole.append((type(x) is list, positions))
        blocks: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        for (is_list, _), several in itertools.groupby(whole, lambda each: (each[0], each[1].shape)):
            arrays = [positions for _, positions in several]
            blocks += [np.stack(arrays)] if is_list else arrays
        return blocks

    def captures(self, parameters: tuple[Any, ...], constants: Container[int] | None = None) -> Captures:
        """Return the captures to check before each run of a program with these parameters; see `Captures`."""
        number = {id(p): n for n, p in enumerate(parameters)}
        for place in self.single:
            place.number = number.get(id(place.leaf), -1)
        for items in self.items:
            items.numbers = [number.get(id(leaf), -1) for leaf in items.leaves or ()]
        bulk = [
            BulkNumbers(x, shape, np.array([number.get(id(leaf), -1) for leaf in leaves], np.int64), name)
            for x, shape, leaves, name in self.bulk
        ]
        self.bulk = []
        return Captures(self.single, self.items, list(self.groups.values()), bulk, constants)
