"""What the code of a function can reach, as it was before a run: a change of it is an effect of the run."""

from __future__ import annotations

import functools
import random
import zlib
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from operator import attrgetter, is_, methodcaller
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from wengert.compiler import policy
from wengert.compiler.call import MISSING, CallPath, attributes_of, dict_of, look
from wengert.compiler.code import LRU_CACHE, PLAIN, SIGNATURES, is_known, is_python
from wengert.compiler.reach.attributes import (
    ARGS,
    CELL,
    READS_ALL,
    closes_over,
    has,
    held_by,
    inner,
    is_known_class,
    own,
    walks,
)
from wengert.compiler.reach.randomness import DRAWS
from wengert.engine import Value

__all__ = ["Snapshot"]

_NOTHING: list[Any] = []
CONSUMED = tuple(map(type, [iter(_NOTHING), iter(()), iter({}), iter(range(0)), zip(), map(abs, _NOTHING),
                            enumerate(()), filter(None, _NOTHING), reversed(_NOTHING),
                            (x for x in _NOTHING)]))  # fmt: skip
OF_NUMPY: tuple[type, ...] = (np.generic, np.ufunc, type(np.mean))
CHANGING = frozenset(["weakref", "_weakrefset", "numpy"])  # packages of classes whose code is not followed
COMPUTED = frozenset(["getattr", "attrgetter", "methodcaller", "__getattribute__"])  # they look up computed names
BINDING = (MethodType, BuiltinFunctionType, MethodWrapperType, functools.partial, CallPath)  # they are what they hold
STATES: dict[Any, Callable[[Any], Any]] = {  # what may change of an object of a type written in C
    list: lambda x: [*list.__iter__(x)],
    deque: lambda x: [*deque.__iter__(x)],
    OrderedDict: lambda x: [*OrderedDict.__iter__(x), *OrderedDict.values(x)],
    dict: lambda x: [*dict.__iter__(x), *dict.values(x)],
    MappingProxyType: lambda x: [*x.keys(), *x.values()],
    BaseException: lambda x: [*ARGS(x)],
    set: frozenset,
    bytearray: bytes,
    array: bytes,
    random.Random: lambda x: x.getstate(),
    np.random.Generator: lambda x: str(x.bit_generator.state),
    np.random.RandomState: lambda x: str(x.get_state()),
}


class Snapshot:
    """The objects that code reaches by the names in it, and what may change of them.

    Many fields: what is reached grows with each name in the code, so what is known of it so far is kept together.

    Args:
        cached: takes the ids of the code of functions whose results are kept.

    Attributes:
        effect: what each run will do whatever it does, in words; empty if nothing was seen.
        objects: the objects, by identity.
        mentioned: the names in the code.
        reads_all: True if the code may read all attributes of an object, not only those that it names.
        walks_all: True if it computes names of attributes: like `reads_all` it lets all be noted.
        uses_numpy: True if it reaches NumPy, or arrays: what they compute may raise as `np.seterr` says.
    """

    def __init__(self, cached: set[int]) -> None:
        self.effect: str = ""
        self.objects: dict[int, Any] = {}
        self.mentioned: set[str] = set()
        self.reads_all: bool = False
        self.walks_all: bool = False
        self.uses_numpy: bool = False
        self._cached: set[int] = cached
        self._states: list[tuple[Any, str, Callable[[Any], Any], Any]] = []
        self._values: list[tuple[Value, float, float]] = []
        self._with_attributes: list[tuple[Any, str]] = []  # objects whose attributes are noted when code names them
        self._noted: dict[int, set[str]] = {}  # the names of attributes that were noted, by the object's identity
        self._reached: int = 0  # objects, Values in lists aside
        self._classes: set[type] = set()
        self._kinds: dict[type, bool] = {}  # those of objects; see `_changes_unseen`

    # -- before the run, and before code runs for the first time ------------------------------------------------------

    def enter(self, waiting: list[tuple[Any, str]]) -> None:
        """Note everything that can be reached from some objects by the names known so far."""
        while waiting:
            x, name = waiting.pop()
            kind = type(x)
            if not (kind is float or kind in PLAIN or x is MISSING or id(x) in self.objects or kind in SIGNATURES):
                self.objects[id(x)] = x
                self._reached += 1
                if self._reached > policy.REACHED:
                    self.effect = self.effect or policy.too_much(name)
                    return
                waiting += self._entered(x, kind, name)

    def mention(self, attributes: Collection[str], waiting: list[tuple[Any, str]]) -> None:
        """Note what these names lead to from the objects so far, and everything that can be reached from others."""
        new = set(attributes) - self.mentioned
        self.mentioned |= new
        self.walks_all |= not COMPUTED.isdisjoint(attributes)
        self.reads_all |= not READS_ALL.isdisjoint(new)
        if new:
            for x, name in list(self._with_attributes):
                waiting += self._attributes(x, name, new)
        self.enter(waiting)

    def keep(self, x: Any, name: str, state: Callable[[Any], Any]) -> None:
        """Keep a state of an object, to compare it after the run."""
        self._states.append((x, name, state, state(x)))

    def _entered(self, x: Any, kind: Any, name: str) -> Any:
        """Note one object, and return what can be reached from it. No code of its class runs."""
        if issubclass(kind, Value):
            self._note_value(x)
            return self._of_subclass(x, kind, name) if is_python(kind) else ()
        if kind is FunctionType:
            for free, cell in closes_over(x):
                self.keep(cell, free, lambda cell: [look(CELL, cell, None)])
            return [*held_by(x, name), *self._object(x, name)]
        if kind is LRU_CACHE:
            if type(x.__wrapped__) is FunctionType:
                self._cached.add(id(x.__wrapped__.__code__))
            self.keep(x, f"the cache of {name}", lambda x: x.cache_info()[1::2])
            return held_by(x, name)
        if issubclass(kind, BINDING):
            return held_by(x, name)
        if issubclass(kind, (tuple, frozenset)):
            return [*held_by(x, name), *self._of_subclass(x, kind, name)]
        if kind in (attrgetter, methodcaller):  # their names are not in any code
            self.walks_all = True
            return [pair for y, of in list(self._with_attributes) for pair in self._attributes(y, of, set())]
        if issubclass(kind, type):
            return self._class(x, name)
        base = next((base for base in kind.__mro__ if base in STATES), None)
        if issubclass(kind, random.SystemRandom):  # which has no state to compare
            self.effect = self.effect or DRAWS
        elif issubclass(kind, np.ndarray):
            self.uses_numpy |= x.dtype not in (np.float64, object)  # of these, the recording tells what is computed
            self.keep(x, name, _items_of if x.dtype == object else _bytes_of)
            return held_by(x, name)
        elif base is not None:
            self.keep(x, name, STATES[base])
            if base in (list, deque):
                self._note_values(x)
            return [*held_by(x, name), *self._of_subclass(x, kind, name)]
        elif issubclass(kind, CONSUMED) or (has(x, "__next__") and not is_python(kind)):
            self.effect = self.effect or f"it reads {name}, an iterator, which can be read once: make a list of it"
        else:
            self.uses_numpy |= issubclass(kind, OF_NUMPY)
            return [(kind, kind.__name__), *self._object(x, name)]
        return ()

    def _of_subclass(self, x: Any, kind: Any, name: str) -> list[tuple[Any, str]]:
        """Note of an object of a subclass that is written in Python its attributes, and return these and its class."""
        return [(kind, kind.__name__), *self._object(x, name)] if is_python(kind) else []

    def _note_value(self, x: Value) -> None:
        self._values.append((x, x._data, x.grad))

    def _note_values(self, items: Any) -> None:
        """Note the Values of a list: there may be many, and none needs a name."""
        for item in [*(list if isinstance(items, list) else deque).__iter__(items)]:
            if type(item) is Value and id(item) not in self.objects:
                self.objects[id(item)] = item
                self._note_value(item)

    def _class(self, x: type, name: str) -> Iterator[tuple[Any, str]]:
        if is_python(type(x)) and not is_known_class(type(x)):
            yield type(x), name
        for base in x.__mro__:
            if is_python(base) and base not in self._classes:
                self._classes.add(base)
                self.keep(base, name, lambda x: [*vars(x).values()])
                for n, attribute in list(vars(base).items()):
                    part = attribute.fget if issubclass(type(attribute), property) else inner(attribute)
                    if has(part, "__call__") or not n.startswith("__"):
                        yield part, n

    def _changes_unseen(self, kind: type) -> bool:
        """Return True if methods whose code is not followed may change objects of a class, as no name tells."""
        if kind not in self._kinds:
            packages = [base.__module__.partition(".")[0] for base in kind.__mro__ if is_python(base)]
            self._kinds[kind] = not CHANGING.isdisjoint(packages)
        return self._kinds[kind]

    def _object(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """Note an object's own attributes, as far as the code names them."""
        self._with_attributes.append((x, name))
        return self._attributes(x, name, self.mentioned)

    def _attributes(self, x: Any, name: str, names: set[str]) -> list[tuple[Any, str]]:
        """Note some attributes of an object or a module, and return their values."""
        named = [n for n in names if n[:2] != "__"]
        if issubclass(type(x), ModuleType):
            there = dict_of(x)
            if is_known(there):
                if str(there.get("__name__")).partition(".")[0] == "numpy":  # a constant of it computes nothing
                    self.uses_numpy |= any(callable(there.get(n)) for n in named)
                return []
            self.keep(x, name, lambda x: [dict_of(x).get(n, MISSING) for n in named])
            return [(there[n], f"{name}.{n}") for n in named if n in there]
        if self.reads_all or self.walks_all or walks(type(x), self.mentioned) or self._changes_unseen(type(x)):
            every, noted = attributes_of(x), self._noted.get(id(x), set())  # these may have changed meanwhile
            self.keep(x, name, lambda x: tuple(attributes_of(x)))
            self.keep(x, name, lambda x: [own(x, n) for n in every if n not in noted])
            return [(own(x, n), f"{name}.{n}") for n in every]
        then = [own(x, n) for n in named]
        if named:
            self._noted.setdefault(id(x), set()).update(named)
            self._states.append((x, name, lambda x: [own(x, n) for n in named], then))
        return [(attribute, f"{name}.{n}") for n, attribute in zip(named, then, strict=True)]

    # -- after the run ------------------------------------------------------------------------------------------------

    def changed(self, others: Any = ()) -> tuple[Any, str] | None:
        """Return an object that has changed, but for those of some types, and its name; None if none has."""
        states = [each for each in self._states if not isinstance(each[0], others)]
        return next(((x, name) for x, name, state, then in states if not _same(state(x), then)), None)

    def has_changed_values(self) -> bool:
        """Return True if the number or the gradient of a Value is another one."""
        now = [(x._data, x.grad) for x, _, _ in self._values]
        then = [(number, gradient) for _, number, gradient in self._values]
        return now != then and repr(now) != repr(then)  # as text nan equals nan


def _bytes_of(x: Any) -> Any:
    return x.shape, zlib.crc32(x.tobytes())


def _items_of(x: Any) -> Any:
    return x.ravel().tolist()


def _same(now: Any, then: Any) -> bool:
    """Compare two states. Objects in lists are compared by identity; the list keeps them alive, so no id is reused."""
    if isinstance(then, list):
        return len(now) == len(then) and all(map(is_, now, then))
    return bool(now == then)
