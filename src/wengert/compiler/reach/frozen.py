"""Objects of which a recorded run gets no proxy: everything that code could read of them is noted."""

from __future__ import annotations

import contextlib
import decimal
import enum
import functools
import weakref
from array import array
from collections import deque
from collections.abc import Callable
from operator import is_
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from wengert.compiler import policy
from wengert.compiler.call import KINDS, MISSING, CallPath, attributes_of, dict_of, look, same
from wengert.compiler.code import BY_NAME, IMMUTABLE, LRU_CACHE, SIGNATURES, is_python, names_of, place_of
from wengert.compiler.reach.attributes import (
    attributes_with_functions,
    closes_over,
    has,
    held_by,
    is_data,
    is_known_class,
    is_opaque,
    of_class,
    walks,
)
from wengert.compiler.reach.places import Places
from wengert.compiler.traced import STANDINS
from wengert.engine import Value

__all__ = ["Frozen"]

NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL = KINDS[:6]
CONSTANT: tuple[type, ...] = (*IMMUTABLE, ModuleType, Value, CallPath)
SEEN: tuple[type, ...] = (*CONSTANT, BaseException, SimpleNamespace)  # their attributes may change, and are noted


class Contents:
    """What a list, deque, dict or set holds, to set it back.

    The methods of the class in C that it derives from are used, not its own, which may do anything.
    """

    def __init__(self, x: Any, name: str) -> None:
        self.x: Any = x
        self.name: str = name
        self.base: Any = next(kind for kind in type(x).__mro__ if not is_python(kind))
        self.keys: list[Any]
        self.values: list[Any]
        self.keys, self.values = self._contents()

    def _contents(self) -> tuple[list[Any], list[Any]]:
        """List the keys of a dict, else the items, and its values."""
        keys = [*self.base.__iter__(self.x)]
        return keys, [*self.base.values(self.x)] if issubclass(self.base, dict) else keys

    def restore(self, is_foreign: Callable[[Any], bool], alone: bool) -> bool:
        """Set it back, or where other threads run take out what is foreign. Return True if it had changed."""
        keys, values = self._contents()
        if len(keys) == len(self.keys) and all(map(is_, [*keys, *values], [*self.keys, *self.values])):
            return False
        if alone:
            self._refill()
            return True
        foreign = [n for n, pair in enumerate(zip(keys, values, strict=False)) if any(map(is_foreign, pair))]
        if foreign:
            self._take_out(keys, foreign)
        return bool(foreign)

    def _refill(self) -> None:
        self.base.clear(self.x)
        if issubclass(self.base, dict):
            for key, value in zip(self.keys, self.values, strict=True):
                self.base.__setitem__(self.x, key, value)
        elif issubclass(self.base, set):
            self.base.update(self.x, self.keys)
        else:
            self.base.extend(self.x, self.keys)

    def _take_out(self, keys: list[Any], foreign: list[int]) -> None:
        """Take out what is foreign, and put back what it stands in place of."""
        if issubclass(self.base, dict):
            before = {id(key): value for key, value in zip(self.keys, self.values, strict=True)}
            for key in [keys[n] for n in foreign]:
                if id(key) in before:
                    self.base.__setitem__(self.x, key, before[id(key)])
                else:
                    self.base.__delitem__(self.x, key)
        elif issubclass(self.base, set):
            self.base.difference_update(self.x, [keys[n] for n in foreign])
        else:
            for n in reversed(foreign):
                self.base.__delitem__(self.x, n)
            there = {*map(id, self.base.__iter__(self.x))}
            for n, item in enumerate(self.keys):
                if id(item) not in there:
                    self.base.insert(self.x, n, item)


class Frozen:
    """The objects without a proxy that one recorded run reads.

    Args:
        places: takes the notes.
        watch: the watched run.

    Attributes:
        objects: by identity.
    """

    def __init__(self, places: Places, watch: Any) -> None:
        self.places: Places = places
        self.objects: dict[int, Any] = {}
        self._reads_all: bool = watch.before.reads_all
        self._before: dict[int, Any] = watch.before.objects  # objects that existed before the run, by identity
        self._contents: list[Contents] = []
        self._closures: set[CodeType] = set()  # the code of functions whose closures are frozen
        self._uncloned: set[tuple[int, int]] = set()  # code that ran itself instead of a clone, and its globals
        self._inner: set[CodeType] = set()  # the code of functions and generators within that

    def __contains__(self, x: Any) -> bool:
        return id(x) in self.objects

    def freeze(self, x: Any, name: str) -> Any:
        """Note everything that code could read of an object, and return the object.

        Raises:
            Unrecordable: its type is written in C, and it may change unnoticed.
        """
        waiting = [(x, name)]
        while waiting:
            waiting += self._enter(*waiting.pop())
        return x

    def _enter(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """Note what may change of one object, and return what it leads to."""
        kind, refuse = type(x), self.places.refuse
        if kind is decimal.Decimal or x is decimal.Decimal:
            self.places.note_decimals()
        if issubclass(kind, np.void):
            refuse(
                f"it reads {name}, a record of an array, which may change without being seen: let it read the fields "
                "of the array, as in rows['x'][k], or pass their numbers"
            )
        if kind in (BuiltinFunctionType, MethodWrapperType):
            return [*held_by(x, name)]
        if x is MISSING or kind is Value or id(x) in self.objects or id(x) in STANDINS or kind in SIGNATURES:
            return []
        if issubclass(kind, (CallPath, weakref.ref)) or (issubclass(kind, CONSTANT) and not is_python(kind)):
            return []
        self.objects[id(x)] = x
        if len(self.objects) > policy.REACHED:
            refuse(policy.too_much(name))
        if issubclass(kind, type):
            return self._enter_class(x, name)
        if kind is FunctionType:
            self._note_function(x)
        elif kind is LRU_CACHE:
            self.places.note_cache(x, name)
            return []
        elif kind is np.ndarray:
            self.places.note_array(x, name)
            return []
        elif issubclass(kind, array):
            self.places.note(CALL, x.tobytes, None, name)
            return []
        elif issubclass(kind, np.ndarray):
            refuse(
                f"it reads {name}, a {kind.__name__}, which is more than its numbers: let it read a plain array, as "
                "np.array(x) is, or pass the numbers"
            )
        elif kind not in TRANSPARENT:
            return [*held_by(x, name), *self._enter_object(x, name)]
        return [*held_by(x, name)]

    def _note_function(self, f: FunctionType) -> None:
        self._closures.add(f.__code__)
        self.places.note(FUNCTION, f, None, f"how {f.__name__} is defined")
        for free, cell in closes_over(f):
            self.places.note(CELL, cell, None, free)

    def _enter_class(self, kind: type, name: str) -> list[tuple[Any, str]]:
        """Note of a class and its bases what code may read, or calls."""
        waiting: list[tuple[Any, str]] = []
        for base in kind.__mro__:
            if not is_python(base) or is_known_class(base):
                continue
            self.places.note_absent(base, name)
            for n, _, functions, followed, is_read in self.places.attributes_read(base):
                if followed or (is_read and not functions):
                    waiting.append((self.places.note(CLASS, base, n, f"{name}.{n}"), f"{name}.{n}"))
                for f in followed:
                    if isinstance(f, FunctionType):
                        self._note_function(f)
                        waiting += held_by(f, n)
        for member in getattr(kind, "_member_map_", {}).values() if issubclass(kind, enum.Enum) else ():
            waiting.append((member, f"{name}.{member.name}"))
        if is_python(type(kind)) and not is_known_class(type(kind)):
            waiting.append((type(kind), type(kind).__name__))
        return waiting

    def _enter_object(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """Note of any other object its items, its class, and the attributes that code may read."""
        kind, places = type(x), self.places
        waiting: list[tuple[Any, str]] = []
        if issubclass(kind, (weakref.WeakSet, weakref.WeakValueDictionary)):
            places.refuse(
                f"it reads {name}, a {kind.__name__}, which may change without being seen: let it read a list or a dict"
            )
        if issubclass(kind, enum.Enum):
            waiting.append((places.note(ATTRIBUTE, x, "_value_", f"{name}.value"), f"{name}.value"))
        state = next((base for base in kind.__mro__ if base.__basicsize__ > 16 and not is_python(base)), object)
        if issubclass(kind, (list, deque, dict, set)):
            self._contents.append(Contents(x, name))
        if issubclass(kind, (list, deque, set, frozenset)):
            places.note_items(x, list(x), None, name)
        elif issubclass(kind, (dict, MappingProxyType)):
            places.note_items(x, list(x.values()), list(x), name)
        elif not issubclass(kind, tuple) and state is not object and not (issubclass(state, SEEN) or has(x, "__get__")):
            what = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"  # and no descriptor
            places.refuse(
                f"it reads {name}, a {what}, which is written in C and may change without being seen: take its numbers "
                "out before the call, and pass them"
            )
        waiting.append((kind, kind.__name__))
        places.note(ATTRIBUTE, x, "__class__", f"the class of {name}")
        every = self._reads_all or walks(kind, places.mentioned) or any(map(is_opaque, kind.__mro__))
        for n in attributes_of(x) if every else [n for n in places.mentioned if n[:2] != "__"]:
            at = f"{name}.{n}"
            inherited = of_class(kind, n)
            if every and is_data(inherited) and n in dict_of(x):  # what a property keeps under its own name
                waiting.append((places.note(NAME, dict_of(x), n, at), at))
            at_object = inherited is MISSING or type(inherited) in (MemberDescriptorType, GetSetDescriptorType)
            if at_object or (not is_data(inherited) and places.note_own(x, n, at)):
                waiting.append((places.note(ATTRIBUTE, x, n, at), at))
        return waiting

    # -- code that runs itself instead of a clone ---------------------------------------------------------------------

    def uncloned(self, frame: Any) -> None:
        """Freeze everything that some code reads which runs itself instead of a clone: called from C, or by an object
        without a proxy.

        Raises:
            Unrecordable: it has free variables that cannot be found.
        """
        code = frame.f_code
        for n in code.co_varnames[: code.co_argcount]:
            x = frame.f_locals.get(n)
            if self._before.get(id(x), MISSING) is x:  # it existed before the run, and is not a proxy
                self.freeze(x, n)
        at = id(code), id(frame.f_globals)
        if at in self._uncloned or code not in self.places.ran:  # else the run reports that control flow differed
            return
        if code not in self._closures and code.co_freevars:
            self._freeze_method(frame)
        if not (code in self._closures or code in self._inner) and set(code.co_freevars) - {"__class__"}:
            self.places.refuse(f"it has {place_of(code)} called by an object that cannot be followed: {BY_NAME}")
        self._uncloned.add(at)
        self._inner.update([x for x in code.co_consts if isinstance(x, CodeType)])  # closes over what this code has
        for name in names_of(code)[0]:
            self.freeze(self.places.note(NAME, frame.f_globals, name, name), name)

    def _freeze_method(self, frame: Any) -> None:
        """Freeze the method that a frame runs, if it is found by the frame's first argument."""
        code = frame.f_code
        x = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        for base in (x if isinstance(x, type) else type(x)).__mro__:
            for f in [f for _, _, functions in attributes_with_functions(base) for f in functions]:
                if type(f) is FunctionType and f.__code__ is code:
                    self._note_function(f)
                    for part, name in held_by(f, f.__name__):
                        self.freeze(part, name)

    # -- after the run ------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Let go of everything but the places."""
        self.objects, self._before, self._contents = {}, {}, []

    def restore(self, is_foreign: Callable[[Any], bool], alone: bool) -> str:
        """Set back what the run has changed of frozen objects, such as a cache that it has filled once more.

        Args:
            is_foreign: tells what is of this run alone: that goes in any case.
            alone: True if every change is this run's; else another thread may have made it.

        Returns:
            The name of such an object; empty if there is none.
        """
        restored = ""
        for each in self._contents:
            if each.restore(is_foreign, alone):
                restored = each.name
        for x in self.objects.values():
            if isinstance(x, type) or is_python(type(x)):
                held = vars(x) if isinstance(x, type) else {n: look(ATTRIBUTE, x, n) for n in attributes_of(x)}
                for n in [n for n, attribute in list(held.items()) if is_foreign(attribute)]:
                    _restore_attribute(x, n, self._noted(x, n))
                    restored = f"{_name(x)}.{n}"
        for place in self.places.every if alone else ():
            if place.kind in (ATTRIBUTE, CLASS) and id(place.source) in self.objects:
                now = look(place.kind, place.source, place.key)
                if now is not place.then and not same(now, place.then):
                    _restore_attribute(place.source, place.key, place.then)
                    restored = place.name
        return restored

    def _noted(self, x: Any, n: str) -> Any:
        places = [place for place in self.places.every if place.source is x and place.key == n]
        return next((place.then for place in places if place.kind in (ATTRIBUTE, CLASS)), MISSING)


def _name(x: Any) -> str:
    return str((x if isinstance(x, type) else type(x)).__name__)


def _restore_attribute(x: Any, n: str, then: Any) -> None:
    change: Any = type if isinstance(x, type) else object
    with contextlib.suppress(AttributeError):
        change.__delattr__(x, n)
    if then is not MISSING and look(CLASS if isinstance(x, type) else ATTRIBUTE, x, n) is not then:
        change.__setattr__(x, n, then)


TRANSPARENT = (MethodType, functools.partial, property, staticmethod, classmethod)  # they are what they hold
