"""Captures what a function reads outside of its arguments: globals, closures, attributes, items of containers.

All Python code that runs or is read is followed, wherever its file is, except for what `known.py` lists. A recorded
function is a clone that finds proxies: traced numbers for floats, which later calls read anew; copies of lists, dicts
and objects, so that the recorded run changes nobody else's; clones of functions whose code ran; and `standins.py` for
`math`, `max` and the like. Every read is noted with its place, and the recording is valid while the same is found
there. An object that has no proxy, such as one of a subclass of `list`, is used itself, and everything that code could
read of it is noted (frozen).
"""

from __future__ import annotations

import abc
import copy
import decimal
import enum
import functools
import importlib
import itertools
import operator
import sys
import weakref
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Container, Iterator
from operator import attrgetter
from types import (
    BuiltinFunctionType,
    CellType,
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
from wengert.compiler.call import (
    KINDS,
    MISSING,
    BulkNumbers,
    CallPath,
    Captures,
    Items,
    Place,
    PlaceGroup,
    attributes_of,
    dict_of,
    look,
)
from wengert.compiler.code import (
    BY_NAME,
    IMMUTABLE,
    LRU_CACHE,
    PLAIN,
    is_derivable,
    is_known,
    is_python,
    names_of,
    place_of,
)
from wengert.compiler.reach.settings import NUMPY_ERRORS, decimal_context, numpy_errors
from wengert.compiler.traced import (
    FLOATS,
    STANDINS,
    Deferred,
    ModuleView,
    Number,
    TracedArray,
    Unrecordable,
    concrete,
    is_traced,
    presented,
)
from wengert.engine import Value

__all__ = ["Proxies", "closes_over", "of_class", "own", "spelt"]

NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL, BYTES, NAMES = KINDS
# The names of functions that may read an attribute which no code names, and what a class holds as data.
GETTERS, DATA = frozenset(["getattr", "attrgetter"]), (int, float, str, bytes, list, tuple, dict, Value)
# The names of functions that read all attributes of an object.
READS_ALL = frozenset(["__dict__", "__getstate__", "__reduce_ex__", "dir", "dumps", "vars"])
# Compiled methods that read all attributes of their own object: those of `wengert.nn.Module`.
WALKS = frozenset(["named_parameters", "parameters", "state_dict"])


# What a class or a function says of itself, and of a function what it is made of.
CLASS_NAMES = ("__name__", "__qualname__")
FUNCTION_NAMES = (*CLASS_NAMES, "__module__", "__doc__", "__annotations__")
OF_FUNCTIONS = (*FUNCTION_NAMES, "__defaults__", "__kwdefaults__", "__code__", "__closure__")
VOLATILE = frozenset(["__annotations_cache__", "__annotate__", "__annotate_func__", "__dict__", "__weakref__"])


def definition_of(kind: type) -> tuple[Any, ...]:
    """Return the bases of a class, and its special methods and attributes, which Python finds though none is named."""
    own = vars(kind)
    return (
        type.__dict__["__bases__"].__get__(kind),
        *[(n, own[n]) for n in own if n[:2] == "__" and n not in VOLATILE],
    )


def walks(kind: type, mentioned: Collection[str]) -> bool:
    """Return True if code that mentions some names may call a method that reads all attributes of such an object."""
    return any(n in mentioned and of_class(kind, n) is not MISSING for n in WALKS)


def spelt(key: Any) -> str:
    """Spell a key in a name; of a user's object only the type, as its `repr` may do anything."""
    return repr(key) if type(key) in PLAIN else type(key).__name__


METHODS = (FunctionType, staticmethod, classmethod)


def of_class(kind: type, name: str) -> Any:
    """Look up a name in a class and its bases; MISSING if it is not defined."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return MISSING


def has(x: Any, name: str) -> bool:
    """Return True if the class of an object defines a name. The object may be one that answers to every name, and so
    may its class: neither is asked.
    """
    return of_class(type(x), name) is not MISSING


def is_data(found: Any) -> bool:
    """Return True for a descriptor that takes precedence over an object's own attributes: a property, a slot."""
    return has(found, "__set__") or has(found, "__delete__")


def is_default(found: Any) -> bool:
    """Return True for a class attribute that serves objects which have none of their own."""
    return found is not MISSING and not has(found, "__get__")


def own(x: Any, name: str) -> Any:
    """Return an object's own attribute; MISSING if it has none, or only its class has one.

    The object's `__dict__` is avoided where possible: accessing it makes all its attributes slower for good.
    """
    found = of_class(type(x), name)
    if found is MISSING or isinstance(found, MemberDescriptorType):
        return look(ATTRIBUTE, x, name)
    if is_data(found):  # a property runs code
        return MISSING
    if type(found) not in METHODS and has(found, "__get__"):
        return dict_of(x).get(name, MISSING)
    now = look(ATTRIBUTE, x, name)
    return MISSING if inner(now) is inner(found) else now


def inner(x: Any) -> Any:
    """Return the function of a method; other objects as they are."""
    return x.__func__ if type(x) in (MethodType, staticmethod, classmethod) else x


def closes_over(x: Any) -> Iterator[tuple[str, Any]]:
    """Yield the free variables of a function, and their cells."""
    return zip(x.__code__.co_freevars, x.__closure__ or (), strict=True)


class View(dict[str, Any]):
    """A module's globals as a recorded function finds them."""

    def __init__(self, proxies: Proxies, names: dict[str, Any]) -> None:
        builtins = names.get("__builtins__", __builtins__)
        self.real: dict[str, Any] = vars(builtins) if isinstance(builtins, ModuleType) else builtins
        self.builtins: dict[str, Any] = {**self.real}
        self.builtins["__import__"] = proxies.importing(self.builtins["__import__"])
        self.builtins["getattr"], self.builtins["hasattr"] = proxies.getting, proxies.having
        self.builtins["super"] = proxies.superior
        super().__init__(__builtins__=self.builtins, __name__=names.get("__name__"))
        self.proxies: Proxies = proxies
        self.names: dict[str, Any] = names

    def __missing__(self, name: str) -> Any:
        if name in self.names:
            self[name] = self.proxies.read(NAME, self.names, name, name)
        else:
            self.proxies.note(NAME, self.names, name, name)
            self.proxies.note(NAME, self.real, name, name)
            builtin = self.builtins[name]  # or a KeyError
            self[name] = STANDINS.get(id(builtin), builtin)
        return self[name]


class Proxies:
    """The proxies of all that one recorded run reads, and the places where it was read.

    Args:
        recorder: the recorder of the traced numbers.
        watch: the watched run: its code, and the names in it. Only these names are noted of classes and frozen objects.
        passed: the identities of those objects among the arguments that allow weak references.
        tells_objects: True if the run may ask which of several equal objects one is: the very same have to be found.
        fixes_floats: True if floats are constants, as some of them are the same object: of traced numbers none is.
    """

    def __init__(
        self,
        recorder: Any,
        watch: Any,
        passed: Collection[int] = (),
        tells_objects: bool = False,
        fixes_floats: bool = False,
    ) -> None:
        self.recorder: Any = recorder
        self.ran: dict[CodeType, Any] = watch.ran
        self.mentioned: set[str] = watch.mentioned
        self.reads_all: bool = watch.reads_all
        self.passed: Collection[int] = passed
        self.tells_objects: bool = tells_objects
        self.fixes_floats: bool = fixes_floats
        self.seen: dict[int, Any] = watch.seen
        self.places: list[Place] = []
        self.items: list[Items] = []
        self.groups: dict[int, PlaceGroup] = {}  # by the identity of the counter or class
        self.bulk: list[tuple[Any, tuple[int, ...], list[Value], str]] = []  # arrays, shapes, Values, names
        self._made: dict[int, tuple[Any, Any]] = {}  # by the id of an original: (original, proxy)
        self._originals: dict[int, tuple[Any, Any, str]] = {}  # by the id of a proxy: (proxy, original, name)
        self._views: dict[int, View] = {}
        self._frozen: dict[int, Any] = {}  # objects without a proxy, by identity
        self._derived: dict[type, type] = {}  # classes, by those that are derived from them
        self._closures: set[CodeType] = set()  # the code of functions whose closures are frozen
        self._uncloned: set[tuple[int, int]] = set()  # code that ran itself instead of a clone, and its globals
        self._inner: set[CodeType] = set()  # the code of functions and generators within that
        self._noted: set[tuple[int, int, Any]] = set()
        self._defined: set[int] = set()  # classes whose definition is noted, by identity, which the groups keep alive
        self._overridables: dict[type, list[str]] = {}  # class attributes that an object may override
        for base in Value.__mro__[:-1]:
            for n in [n for n in vars(base) if n[:2] == "__" or n in self.mentioned]:  # operators are not named
                self.note(CLASS, base, n, f"Value.{n}")
        if watch.asks_abstract:
            self.note(CALL, abc.get_cache_token, None, "the registered subclasses of an abstract class")

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, kind: int, source: Any, key: Any, name: str) -> Any:
        """Note a place, and return the proxy of the object there."""
        x = look(kind, source, key)
        if type(x) in FLOATS and not self.fixes_floats:
            leaf = Value(x)
            self._place(source, Place(kind, source, key, x, leaf, name, self._is_argument(kind, source)))
            return Number(self.recorder, x, leaf)
        self.note(kind, source, key, name)
        return self.proxy(x, name)

    def note(self, kind: int, source: Any, key: Any, name: str) -> Any:
        """Note a place, where each run must find the same object, and return the object."""
        found = look(kind, source, key)
        at = kind, id(source), id(key) if kind == CALL else key
        if at not in self._noted:
            self._noted.add(at)
            is_weak = self._is_argument(kind, source)
            self._place(source, Place(kind, source, key, found, None, name, is_weak, self.tells_objects))
        return found

    def _is_argument(self, kind: int, source: Any) -> bool:
        """Return True for a place of an argument, which need not be kept alive."""
        return kind in (ATTRIBUTE, FUNCTION, NAMES) and id(source) in self.passed

    def _place(self, source: Any, place: Place) -> None:
        """Add a place; to a group, if a counter or a version tells when it may have changed."""
        counter = None
        known = place.kind == ATTRIBUTE and (place.then is not MISSING or place.key in self.mentioned)
        by_object = known and not is_default(of_class(type(source), place.key))
        if by_object or place.kind == NAMES:
            counter = getattr(type(source).__setattr__, "counter", None)
            if counter is not getattr(type(source).__delattr__, "counter", None):
                counter = None
        if place.leaf is not None:  # each run reads a float
            self.places.append(place)
        elif counter is not None:
            self.groups.setdefault(id(counter), PlaceGroup(None, counter)).places.append(place)
        elif place.kind == CLASS:
            self.groups.setdefault(id(source), PlaceGroup(source, None)).places.append(place)
        else:
            self.places.append(place)

    def proxy(self, x: Any, name: str) -> Any:
        """Return the proxy of an object that was read, or passed."""
        kind = type(x)
        if kind in PLAIN or kind is float or issubclass(kind, (Value, CallPath)):  # a compiled function follows itself
            return x
        if kind is decimal.Decimal or x is decimal.Decimal or x is decimal:
            self.note(CALL, decimal_context, None, "the context of decimal numbers")
        if id(x) in STANDINS:
            return STANDINS[id(x)]
        if id(x) in self._made:
            return self._made[id(x)][1]
        make = MAKERS.get(kind)
        if make is not None:
            return make(self, x, name)
        if issubclass(kind, type):
            return self._class(x, name)
        if issubclass(kind, weakref.ref):
            return self._refuse(f"it reads {name}, a weak reference: let it read the object")
        if is_derivable(kind):
            return self._object(x, name)
        return self._keep(x, self.freeze(x, name))

    def _keep(self, x: Any, made: Any) -> Any:
        self._made[id(x)] = x, made
        return made

    def importing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return an `__import__` that returns proxies."""

        def load(name: str, *how: Any, **named: Any) -> Any:
            found = real(name, *how, **named)
            self.note(NAME, sys.modules, found.__name__, f"the module {name}")
            return self.proxy(found, name)

        return load

    def getting(self, made: Any, n: str, *default: Any) -> Any:
        """Look up an attribute like `getattr`. Its name may be computed, and so missing from the names in the code."""
        _, x, name = self._originals.get(id(made), (None, made, ""))
        if issubclass(type(made), type):
            for base in made.__mro__:
                if base not in self._derived and is_python(base):
                    self.note(CLASS, base, n, f"{base.__name__}.{n}")
        elif id(made) in self._frozen:
            self.freeze(self.note(ATTRIBUTE, made, n, n), n)
        elif isinstance(made, FunctionType):
            f = next((f for f, clone in self._made.values() if clone is made), made)
            held = vars(f)
            if n in OF_FUNCTIONS:
                return self.proxy(self.note(ATTRIBUTE, f, n, f"{f.__name__}.{n}"), n)
            if n in held:
                return self.read(NAME, held, n, n)
            self.note(NAME, held, n, n)
        found = MISSING if x is made or n in self.mentioned else of_class(type(x), n)
        if found is not MISSING and not is_data(found) and self._note_own(x, n, f"{name}.{n}"):
            return self.read(ATTRIBUTE, x, n, f"{name}.{n}")
        return getattr(made, n, *default)

    def having(self, made: Any, n: str) -> bool:
        """Tell like `hasattr` whether there is an attribute."""
        if is_traced(made):  # which answers to more
            return hasattr(made.number, n)
        try:
            self.getting(made, n)
        except AttributeError:
            return False
        return True

    def superior(self, *args: Any) -> Any:
        """Return `super`, with the class itself where the function names a class that is derived here."""
        if not args:
            frame = sys._getframe(1)
            return super(frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]])
        return super(*[self._derived.get(x, x) if isinstance(x, type) else x for x in args])

    def _getter(self, x: Any, name: str) -> Any:
        """Replace an `operator.attrgetter` by a function."""
        paths = [path.split(".") for path in x.__reduce__()[1]]

        def get(thing: Any) -> Any:
            found = [functools.reduce(self.getting, path, thing) for path in paths]
            return found[0] if len(found) == 1 else tuple(found)

        return self._keep(x, get)

    def _caller(self, x: Any, name: str) -> Any:
        """Replace an `operator.methodcaller` by a function."""
        made, given = x.__reduce__()
        named = made.keywords if isinstance(made, functools.partial) else {}
        method, *args = (*made.args, *given) if isinstance(made, functools.partial) else given
        args, named = self.proxy(list(args), name), self.proxy(named, name)
        return self._keep(x, lambda thing: self.getting(thing, method)(*args, **named))

    # -- functions and modules ----------------------------------------------------------------------------------------

    def root(self, f: Any) -> Any:
        """Return the proxy of the recorded function."""
        if type(f) is functools.partial:  # the signature has these defaults, the clone has not
            self.note(CALL, lambda: tuple(f.keywords.items()), None, "the keywords of itself")
        if not isinstance(f, FunctionType):
            return self.proxy(f, "itself")
        if f.__kwdefaults__:
            self.note(CALL, lambda: tuple((f.__kwdefaults__ or {}).items()), None, f"how {f.__name__} is defined")
        return self._clone(f)

    def _function(self, f: FunctionType, name: str) -> Any:
        """Clone a function whose code ran, or a wrapper that a library has put around one."""
        if f is importlib.import_module:
            return self.importing(f)
        followed = f.__code__ in self.ran or hasattr(f, "__wrapped__") or not self.mentioned.isdisjoint(vars(f))
        followed = followed or not (self.mentioned.isdisjoint(OF_FUNCTIONS) or is_known(f.__globals__))
        return self._clone(f) if followed else f

    def _clone(self, f: FunctionType) -> Any:
        """Clone a function with globals, closure and defaults that are proxies."""
        view = self._views.get(id(f.__globals__))
        if view is None:
            view = self._views[id(f.__globals__)] = View(self, f.__globals__)
        cells = tuple([CellType() for _ in f.__closure__ or ()])
        # Kept before its closure is filled, as it may refer to itself.
        made = self._keep(f, FunctionType(f.__code__, view, f.__name__, None, cells or None))
        self.note(FUNCTION, f, None, f"how {f.__name__} is defined")
        for inner, (free, outer) in zip(cells, closes_over(f), strict=True):
            if free == "__class__":  # for super()
                inner.cell_contents = outer.cell_contents
            elif look(CELL, outer, None) is MISSING:
                self.note(CELL, outer, None, free)
            else:
                inner.cell_contents = self.read(CELL, outer, None, free)
        made.__defaults__ = f.__defaults__ and tuple([self.proxy(x, f.__name__) for x in f.__defaults__])
        made.__kwdefaults__ = f.__kwdefaults__ and self.proxy(f.__kwdefaults__, f.__name__)
        made.__dict__.update(
            {n: self.read(NAME, vars(f), n, f"{f.__name__}.{n}") for n in vars(f) if n in self.mentioned}
        )
        made.__module__, made.__qualname__, made.__doc__ = f.__module__, f.__qualname__, f.__doc__
        for n in self.mentioned.intersection(FUNCTION_NAMES):
            setattr(made, n, self.read(ATTRIBUTE, f, n, f"{f.__name__}.{n}"))
        return made

    def _method(self, x: MethodType, name: str) -> Any:
        return MethodType(self.proxy(x.__func__, name), self.proxy(x.__self__, name))

    def _builtin(self, x: BuiltinFunctionType, name: str) -> Any:
        """Bind a method of an object written in C to the object's proxy; return other C functions as they are."""
        of = x.__self__
        if of is None or isinstance(of, (ModuleType, type)):
            return x
        return getattr(self.proxy(of, name), x.__name__)

    def _partial(self, x: Any, name: str) -> Any:
        args = [self.proxy(arg, name) for arg in x.args]
        return functools.partial(self.proxy(x.func, name), *args, **self.proxy(x.keywords, name))

    def _cached(self, x: Any, name: str) -> Any:
        """Wrap a function of `functools.lru_cache`: its cached results stay valid until new ones are added."""
        self._note_cache(x, name)

        def cached(*args: Any, **named: Any) -> Any:  # called as in the watched run, to find the result
            found = x(*map(self._original, args), **{n: self._original(arg) for n, arg in named.items()})
            return self.proxy(found, f"a result of {name}")

        functools.update_wrapper(cached, x, updated=())
        cached.cache_info, cached.cache_clear = x.cache_info, x.cache_clear  # type: ignore[attr-defined]
        return self._keep(x, cached)

    def _note_cache(self, x: Any, name: str) -> None:
        """Note how many results are cached. A cache that is cleared counts its hits anew."""
        before, is_cleared = 0, False

        def state() -> Any:
            nonlocal before, is_cleared
            info = x.cache_info()
            before, is_cleared = info.hits, is_cleared or info.hits < before
            return info.misses, info.currsize, is_cleared

        self.note(CALL, state, None, f"the cache of {name}")

    def _original(self, x: Any) -> Any:
        """Return the object that a proxy or a traced number stands for."""
        if type(x) is tuple:
            return tuple(map(self._original, x))
        return self._originals[id(x)][1] if id(x) in self._originals else concrete(x)

    def _module(self, x: ModuleType, name: str) -> Any:
        names = vars(x)
        fixed = not str(names.get("__file__")).endswith((".py", ".pyc")) or x.__name__ in ("numpy", "wengert")

        def find(key: str) -> Any:
            if key not in names and "__getattr__" in names:
                self.note(NAME, names, key, f"{name}.{key}")
                return self.read(NAME, names, "__getattr__", f"{name}.__getattr__")(key)
            if self.note(NAME, names, key, f"{name}.{key}") is MISSING and not hasattr(ModuleType, key):
                self.note(NAME, names, "__getattr__", f"{name}.__getattr__")
                raise AttributeError(f"module {x.__name__!r} has no attribute {key!r}", name=key, obj=x)
            if fixed:  # math.pi stays a constant
                vars(view)[key] = found = self.proxy(names.get(key, MISSING), f"{name}.{key}")  # and is found at once
                return found
            return self.read(NAME, names, key, f"{name}.{key}")

        view = ModuleView(x, find)
        return self._keep(x, view)

    # -- containers ---------------------------------------------------------------------------------------------------

    def _contents(self, x: Any, then: list[Any], keys: list[Any] | None, name: str) -> list[Any]:
        """Note the items of a container, and return their proxies."""
        kinds = {*map(type, then)}
        if kinds == {float} and type(x) is list and not self.fixes_floats:
            return self._numbers(x, (len(then),), then, name)
        plain, floats = ((*PLAIN, float), ()) if self.fixes_floats else (PLAIN, FLOATS)
        if all(kind in plain or issubclass(kind, Value) for kind in kinds) and kinds.isdisjoint(floats):
            self.items.append(Items(x, list(then), None, keys, name, self.tells_objects))
            return then  # these are their own proxies
        spell = [spelt(key) for key in keys] if keys is not None else range(len(then))
        leaves = [Value(item) if type(item) in floats else None for item in then]
        self.items.append(Items(x, list(then), leaves if any(leaves) else None, keys, name, self.tells_objects))
        return [
            self.proxy(item, f"{name}[{at}]") if leaf is None else Number(self.recorder, item, leaf)
            for item, leaf, at in zip(then, leaves, spell, strict=True)
        ]

    def _numbers(self, x: Any, shape: tuple[int, ...], then: list[float], name: str) -> list[Any]:
        """Note floats that are read in one go, and return traced numbers."""
        leaves = list(map(Value, then))
        self.bulk.append((x, shape, leaves, name))
        return [Number(self.recorder, item, leaf) for item, leaf in zip(then, leaves, strict=True)]

    def _list(self, x: list[Any] | deque[Any], name: str) -> Any:
        made = self._keep(x, deque(maxlen=x.maxlen) if isinstance(x, deque) else [])
        made += self._contents(x, list(x), None, name)
        return made

    def _tuple(self, x: tuple[Any, ...], name: str) -> Any:
        return self._keep(x, tuple([self.proxy(item, f"{name}[{n}]") for n, item in enumerate(x)]))

    def _dict(self, x: Any, name: str) -> Any:
        made: Any = copy.copy(x) if isinstance(x, dict) else {}  # keeps the type and the order of keys
        self._keep(x, made if isinstance(x, dict) else MappingProxyType(made))
        keys = list(x)
        if isinstance(x, defaultdict):
            made.default_factory = self.read(ATTRIBUTE, x, "default_factory", f"{name}.default_factory")
        if not all(type(key) in PLAIN for key in keys):
            made.clear()
        for key, item in zip(keys, self._contents(x, list(x.values()), keys, name), strict=True):
            made[self._key(key, name)] = item  # Counter.update would add
        return self._made[id(x)][1]

    def _weak_keys(self, x: Any, name: str) -> Any:
        """Copy a `WeakKeyDictionary`; the references that are its keys tell whether it has others."""
        made = self._keep(x, weakref.WeakKeyDictionary())
        keys = list(x.data)
        items = self._contents(x.data, list(x.data.values()), keys, name)
        for key, item in [(key(), item) for key, item in zip(keys, items, strict=True)]:
            if key is not None:  # else it is gone by now
                made[self._key(key, name)] = item
        return made

    def _key(self, x: Any, name: str) -> Any:
        """Return the proxy of a key that is compared by identity, also in a tuple, and other keys themselves."""
        if type(x) is tuple:
            made = [self._key(part, name) for part in x]
            return x if all(map(operator.is_, made, x)) else tuple(made)
        has_identity = vars(object)["__hash__"] is type(x).__hash__
        return self.proxy(x, name) if has_identity else x

    def _set(self, x: Any, name: str) -> Any:
        self.items.append(Items(x, list(x), None, None, name, self.tells_objects))
        made = {self._key(item, name) for item in x}
        return self._keep(x, made if type(x) is set else frozenset(made))

    def _array(self, x: Any, name: str) -> Any:
        if x.dtype != np.float64:
            self._note_array(x, name)
            return self._keep(x, presented(x.copy()))
        numbers = self._numbers(x, x.shape, [*x.ravel()], name)  # which keep the type of NumPy
        made: Any = np.fromiter(numbers, object, len(numbers))  # does not ask each whether it is a sequence
        return self._keep(x, presented(made.reshape(x.shape)))

    def _note_array(self, x: Any, name: str) -> None:
        """Note the contents of an array that does not hold float64."""
        if x.dtype.hasobject and not all(isinstance(item, (*PLAIN, float, Value)) for item in x.ravel().tolist()):
            self._refuse(f"it reads {name}, an array of objects, which may change without being seen: use a list")
        self.note(BYTES, x, None, name)

    # -- objects and classes ------------------------------------------------------------------------------------------

    def _object(self, x: Any, name: str) -> Any:
        """Return the proxy of an object of a Python class, which reads attributes when they are asked for."""
        kind = type(x)
        derived: Any = self.proxy(kind, kind.__name__)
        if kind is not SimpleNamespace and derived is kind:
            return self._keep(x, self.freeze(x, name))
        made = self._keep(x, SimpleNamespace() if kind is SimpleNamespace else object.__new__(derived))
        self._originals[id(made)] = made, x, name
        self.note(ATTRIBUTE, x, "__class__", f"the class of {name}")
        if kind is SimpleNamespace or self.reads_all or walks(kind, self.mentioned):
            self.note(NAMES, x, None, f"the attributes of {name}")
            for n in attributes_of(x):
                object.__setattr__(made, n, self.read(ATTRIBUTE, x, n, f"{name}.{n}"))
        for n in self._overridable(kind):
            if self._note_own(x, n, f"{name}.{n}"):
                object.__setattr__(made, n, self.read(ATTRIBUTE, x, n, f"{name}.{n}"))
        return made

    def _overridable(self, kind: type) -> list[str]:
        """List those class attributes that an attribute of an object would override."""
        if kind not in self._overridables:
            found = [(n, of_class(kind, n)) for n in self.mentioned if n[:2] != "__"]
            self._overridables[kind] = [n for n, thing in found if thing is not MISSING and not is_data(thing)]
        return self._overridables[kind]

    def _note_own(self, x: Any, n: str, name: str) -> bool:
        """Note whether an object overrides a class attribute. Return True if the attribute must be read from the
        object: it does override it, or the class has no function there.
        """
        found = of_class(type(x), n)
        if not has(found, "__get__"):
            return True
        if type(found) in METHODS:
            self.note(ATTRIBUTE, x, n, name)
        else:
            held = weakref.ref(x) if id(x) in self.passed else lambda: x
            self.note(CALL, lambda: own(held(), n), None, name)
        return own(x, n) is not MISSING

    def _attribute(self, made: Any, n: str) -> Any:
        """Serve as `__getattr__` of proxies, and of objects that the recorded run made."""
        _, x, name = self._originals.get(id(made), (None, made, ""))
        if x is not made and not (n.startswith("__") and n.endswith("__")):
            if look(ATTRIBUTE, x, n) is not MISSING:
                object.__setattr__(made, n, self.read(ATTRIBUTE, x, n, f"{name}.{n}"))
                return object.__getattribute__(made, n)
            self.note(ATTRIBUTE, x, n, f"{name}.{n}")
        asked = of_class(type(x), "__getattr__") if x is not made else of_class(type(made).__mro__[1], "__getattr__")
        if asked is MISSING:
            raise AttributeError(f"{type(x).__name__!r} object has no attribute {n!r}", name=n, obj=made)
        return self.proxy(asked, "__getattr__")(made, n)

    def _class(self, x: type, name: str) -> Any:
        """Derive a class from a Python class, with clones of its methods."""
        if not is_derivable(x) or x is OBJECT or is_known_class(x) or issubclass(x, Value):
            return self._keep(x, self.freeze(x, name))
        bases = [self.proxy(base, base.__name__) for base in x.__bases__]
        derived = [base for base, real in zip(bases, x.__bases__, strict=True) if base is not real]
        meta: Any = type(x)
        made = meta(x.__name__, (x, *derived), {"__slots__": (), "__module__": x.__module__, "__doc__": x.__doc__})
        self._keep(x, made)
        self._derived[made] = x
        made.__qualname__ = x.__qualname__
        made.__getattr__ = lambda proxy, n: self._attribute(proxy, n)
        for n, thing in list(vars(x).items()):
            parts, may_read = parts_of(thing), self._may_read(n, thing)
            if parts and (any(self._is_followed(part) for part in parts)):
                self.note(CLASS, x, n, f"{name}.{n}")
                clones = [self.proxy(part, n) for part in parts]
                if n != "__getattr__":
                    setattr(made, n, clones[0] if isinstance(thing, FunctionType) else type(thing)(*clones))
            elif not parts and may_read and not isinstance(thing, IMMUTABLE_ATTRIBUTES) and n[:2] != "__":
                setattr(made, n, self.read(CLASS, x, n, f"{name}.{n}"))
            elif may_read or parts:
                self.note(CLASS, x, n, f"{name}.{n}")
        self._note_absent(x, name)
        return made

    def _may_read(self, n: str, thing: Any) -> bool:
        """Return True if the code may read an attribute of a class: by its name, or if it is data by a computed one."""
        return n in self.mentioned or (isinstance(thing, DATA) and not self.mentioned.isdisjoint(GETTERS))

    def _note_absent(self, kind: type, name: str) -> None:
        """Note what a class lacks of the names in the code, and what no name tells: its bases, its special methods."""
        for n in self.mentioned.difference(vars(kind)):
            self.note(CLASS, kind, n, f"{name}.{n}")
        if id(kind) not in self._defined:
            self._defined.add(id(kind))
            state = functools.partial(definition_of, kind)
            place = Place(CALL, state, None, state(), None, f"how the class {name} is defined")
            self.groups.setdefault(id(kind), PlaceGroup(kind, None)).places.append(place)
            for n in CLASS_NAMES:  # they change without a new version
                if n in self.mentioned or not self.mentioned.isdisjoint(GETTERS):
                    self.note(ATTRIBUTE, kind, n, f"{name}.{n}")

    def _is_followed(self, f: Any) -> bool:
        if type(f) is FunctionType:
            return f.__code__ in self.ran or "__wrapped__" in vars(f)
        return type(f).__name__ == CYTHON and hasattr(f, "__wrapped__")

    def _refuse(self, why: str) -> None:
        if self.recorder.open:
            self.recorder.fallback_reason = self.recorder.fallback_reason or why
            raise Unrecordable(why)

    # -- objects without a proxy --------------------------------------------------------------------------------------

    def freeze(self, x: Any, name: str) -> Any:
        """Note everything that code could read of an object that has no proxy, and return the object.

        Raises:
            Unrecordable: its type is written in C, and it may change unnoticed.
        """
        kind = type(x)
        if kind is decimal.Decimal or x is decimal.Decimal:
            self.note(CALL, decimal_context, None, "the context of decimal numbers")
        if issubclass(kind, np.void):
            self._refuse(
                f"it reads {name}, a record of an array, which may change without being seen: let it read the fields "
                "of the array, as in rows['x'][k], or pass their numbers"
            )
        if kind in (BuiltinFunctionType, MethodWrapperType):
            if x.__self__ is not None and not issubclass(type(x.__self__), (ModuleType, type)):
                self.freeze(x.__self__, name)
            return x
        if issubclass(kind, (CallPath, weakref.ref)) or (issubclass(kind, CONSTANT) and not is_python(kind)):
            return x
        if x is MISSING or kind is Value or id(x) in self._frozen or id(x) in STANDINS:
            return x
        self._frozen[id(x)] = x
        if len(self._frozen) > policy.REACHED:
            self._refuse(policy.too_much(name))
        if kind is FunctionType:
            self._freeze_function(x)
        elif kind in PARTS:
            for part in PARTS[kind](x):
                self.freeze(part, name)
        elif issubclass(kind, type):
            self._freeze_class(x, name)
        elif kind is LRU_CACHE:
            self._note_cache(x, name)
        elif kind is np.ndarray:
            self._note_array(x, name)
        elif issubclass(kind, array):
            self.note(CALL, x.tobytes, None, name)
        elif issubclass(kind, np.ndarray):
            self._refuse(
                f"it reads {name}, a {kind.__name__}, which is more than its numbers: let it read a plain array, as "
                "np.array(x) is, or pass the numbers"
            )
        else:
            self._freeze_object(x, name)
        return x

    def _freeze_function(self, f: FunctionType) -> None:
        self._closures.add(f.__code__)
        self.note(FUNCTION, f, None, f"how {f.__name__} is defined")
        for free, cell in closes_over(f):
            self.freeze(self.note(CELL, cell, None, free), free)
        for x in (f.__defaults__, f.__kwdefaults__, getattr(f, "__wrapped__", None)):
            self.freeze(x, f.__name__)

    def _freeze_class(self, kind: type, name: str) -> None:
        for base in kind.__mro__:
            if not is_python(base) or is_known_class(base):
                continue
            self._note_absent(base, name)
            for n, thing in list(vars(base).items()):
                parts = parts_of(thing)
                if any(map(self._is_followed, parts)) or (not parts and self._may_read(n, thing)):
                    self.freeze(self.note(CLASS, base, n, f"{name}.{n}"), f"{name}.{n}")
                for part in parts:
                    if isinstance(part, FunctionType) and self._is_followed(part):
                        self._freeze_function(part)
        for member in getattr(kind, "_member_map_", {}).values() if issubclass(kind, enum.Enum) else ():
            self.freeze(member, f"{name}.{member.name}")
        if is_python(type(kind)) and not is_known_class(type(kind)):
            self.freeze(type(kind), type(kind).__name__)

    def _freeze_object(self, x: Any, name: str) -> None:
        kind = type(x)
        if issubclass(kind, (weakref.WeakSet, weakref.WeakValueDictionary)):
            self._refuse(
                f"it reads {name}, a {kind.__name__}, which may change without being seen: let it read a list or a dict"
            )
        if issubclass(kind, enum.Enum):
            self.freeze(self.note(ATTRIBUTE, x, "_value_", f"{name}.value"), f"{name}.value")
        state = next((base for base in kind.__mro__ if base.__basicsize__ > 16 and not is_python(base)), object)
        if issubclass(kind, (list, dict, deque, MappingProxyType)):
            keys = None if issubclass(kind, (list, deque)) else list(x)
            values = list(x) if keys is None else list(x.values())
            self.items.append(Items(x, values, None, keys, name, self.tells_objects))
            for item in values:
                self.freeze(item, name)
        elif issubclass(kind, (set, frozenset)):
            self.items.append(Items(x, list(x), None, None, name, self.tells_objects))
        elif issubclass(kind, tuple):
            for item in tuple.__iter__(x):
                self.freeze(item, name)
        elif state is not object and not (issubclass(state, SEEN) or has(x, "__get__")):  # no descriptor
            what = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
            self._refuse(
                f"it reads {name}, a {what}, which is written in C and may change without being seen: take its numbers "
                "out before the call, and pass them"
            )
        self._freeze_class(kind, kind.__name__)
        self.note(ATTRIBUTE, x, "__class__", f"the class of {name}")
        every = self.reads_all or walks(kind, self.mentioned) or any(map(is_opaque, kind.__mro__))
        for n in attributes_of(x) if every else [n for n in self.mentioned if n[:2] != "__"]:
            found = of_class(kind, n)
            if every and is_data(found) and n in dict_of(x):  # what a property keeps under its own name
                self.freeze(self.note(NAME, dict_of(x), n, f"{name}.{n}"), f"{name}.{n}")
            at_object = found is MISSING or type(found) in (MemberDescriptorType, GetSetDescriptorType)
            if at_object or (not is_data(found) and self._note_own(x, n, f"{name}.{n}")):
                self.freeze(self.note(ATTRIBUTE, x, n, f"{name}.{n}"), f"{name}.{n}")

    def uncloned(self, frame: Any) -> None:
        """Freeze everything that some code reads which runs itself instead of a clone: called from C, or by an object
        without a proxy.

        Raises:
            Unrecordable: it has free variables that cannot be found.
        """
        code = frame.f_code
        for n in code.co_varnames[: code.co_argcount]:
            x = frame.f_locals.get(n)
            if self.seen.get(id(x), MISSING) is x:  # it existed before the run, and is not a proxy
                self.freeze(x, n)
        at = id(code), id(frame.f_globals)
        if at in self._uncloned or code not in self.ran:  # other code: `_Trace` reports that control flow differed
            return
        if code not in self._closures and code.co_freevars:
            self._freeze_method(frame)
        if not (code in self._closures or code in self._inner) and set(code.co_freevars) - {"__class__"}:
            self._refuse(f"it has {place_of(code)} called by an object that cannot be followed: {BY_NAME}")
        self._uncloned.add(at)
        self._inner.update([x for x in code.co_consts if isinstance(x, CodeType)])  # closes over what this code has
        for name in names_of(code)[0]:
            self.freeze(self.note(NAME, frame.f_globals, name, name), name)

    def _freeze_method(self, frame: Any) -> None:
        """Freeze the method that a frame runs, if it is found by the frame's first argument."""
        code = frame.f_code
        x = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        for base in (x if isinstance(x, type) else type(x)).__mro__:
            for part in [part for thing in list(vars(base).values()) for part in parts_of(thing)]:
                if type(part) is FunctionType and part.__code__ is code:
                    self._freeze_function(part)

    # -- after recording ----------------------------------------------------------------------------------------------

    def note_errors(self, errors: Collection[str]) -> None:
        """Note that NumPy raises no errors: an array program gives infinity and nan, which may not reach its result.

        Args:
            errors: those that it does raise now.

        Raises:
            Deferred: there are any.
        """
        if errors:
            raise Deferred(f"np.seterr says to do more than warn of {' and '.join(errors)}: say 'warn' or 'ignore'")
        place = Place(CALL, numpy_errors, None, (), None, "the errors that NumPy raises")
        if NUMPY_ERRORS is None:
            self.places.append(place)
        else:
            self.groups.setdefault(id(NUMPY_ERRORS), PlaceGroup(None, NUMPY_ERRORS)).places.append(place)

    def take_back(self) -> str:
        """Take out of objects that have no proxy what this run alone has put there, such as the proxy of a class among
        the keys of a dict. Return where that was; empty if there was nothing.
        """
        proxies = {id(made) for x, made in self._made.values() if made is not x}
        found = ""
        for items in [each for each in self.items if id(each.source) in self._frozen]:
            if self._restore_items(items, proxies):
                found = items.name
        for x in self._frozen.values():
            if isinstance(x, type) or is_python(type(x)):
                held = vars(x) if isinstance(x, type) else {n: look(ATTRIBUTE, x, n) for n in attributes_of(x)}
                for n in [n for n, thing in list(held.items()) if self._is_ours(thing, proxies)]:
                    found = self._restore_attribute(x, n)
        return found

    def _is_ours(self, x: Any, proxies: Container[int]) -> bool:
        """Return True if an object stands for another one, or holds one that does: it is of this run alone."""
        kind = type(x)
        if kind in PLAIN or kind is float:
            return False
        if id(x) in proxies or kind in self._derived or is_traced(x) or type(x) is TracedArray:
            return True
        if issubclass(kind, Value):
            return bool(x._made >= self.recorder.began)
        parts: Any = ()
        if kind in (list, tuple, set, frozenset):
            parts = x
        elif kind is dict:
            parts = (*x.keys(), *x.values())
        elif kind in (MethodType, functools.partial):
            parts = PARTS[kind](x)
        elif issubclass(kind, weakref.ref):
            parts = (x(),)
        return any(self._is_ours(part, proxies) for part in parts)

    def _restore_items(self, items: Items, proxies: Container[int]) -> bool:
        """Take out of a container what stands for something else. Return True if there was any.

        The methods of the class in C that it derives from are used, not its own, which may do anything.
        """
        x = items.source
        base: Any = next(kind for kind in type(x).__mro__ if not is_python(kind))
        if issubclass(base, dict):
            then = {id(key): item for key, item in zip(items.keys or (), items.then, strict=True)}
            keys = list(base.__iter__(x))
            ours = [k for k in keys if self._is_ours(k, proxies) or self._is_ours(base.get(x, k), proxies)]
            for key in ours:
                if id(key) in then:
                    base.__setitem__(x, key, then[id(key)])
                else:
                    base.__delitem__(x, key)
            return bool(ours)
        ours = [item for item in base.__iter__(x) if self._is_ours(item, proxies)]
        if ours and issubclass(base, set):
            base.difference_update(x, ours)
        elif ours and issubclass(base, (list, deque)):
            base.clear(x)
            base.extend(x, items.then)
        return bool(ours)

    def _restore_attribute(self, x: Any, n: str) -> str:
        """Set an attribute back to what it was, and return its place."""
        places = [*self.places, *[place for group in self.groups.values() for place in group.places]]
        then = next((p.then for p in places if p.source is x and p.key == n and p.kind in (ATTRIBUTE, CLASS)), MISSING)
        change: Any = type if isinstance(x, type) else object
        if then is MISSING:
            change.__delattr__(x, n)
        else:
            change.__setattr__(x, n, then)
        return f"{x.__name__ if isinstance(x, type) else type(x).__name__}.{n}"

    def release(self) -> None:
        self._made, self._originals, self._views, self._frozen, self.seen, self.recorder = {}, {}, {}, {}, {}, None
        self._derived = {}

    def values(self) -> set[int]:
        """Return the identities of the Values that stand for captured floats."""
        leaves = [place.leaf for place in self.places] + [leaf for items in self.items for leaf in items.leaves or ()]
        return {id(x) for x in [*leaves, *[x for _, _, xs, _ in self.bulk for x in xs]] if x is not None}

    def objects(self, arguments: Container[int]) -> list[Any]:
        """List the objects that were read, but those that are parts of arguments, whose identities are given."""
        every = self.places + [p for group in self.groups.values() for p in group.places]
        found = [place.then for place in every if id(place.source) not in arguments]
        for items in self.items:
            if id(items.source) not in arguments:
                found += [items.source, *items.then, *(items.keys or ())]
        found += [each for x, _, _, _ in self.bulk for each in (x, *(x if type(x) is list else ()))]
        for x in found:
            if type(x) is tuple:
                found += x
        return found

    def floats(self) -> list[Any]:
        """List the captured floats, as the objects that were found."""
        found = [place.then for place in self.places if place.leaf is not None]
        for items in self.items:
            found += [x for x, leaf in zip(items.then, items.leaves or (), strict=False) if leaf is not None]
        return found + [each for x, _, _, _ in self.bulk if type(x) is list for each in x]

    def name_of(self, leaf: Value) -> str:
        """Return the place of a captured float, given its Value; empty for other Values."""
        held = [(items.leaves or (), items.name) for items in self.items] + [(xs, name) for _, _, xs, name in self.bulk]
        found = [place.name for place in self.places if place.leaf is leaf]
        found += [f"{name}[{n}]" for leaves, name in held for n, each in enumerate(leaves) if each is leaf]
        return found[0] if found else ""

    def blocks(self, number: dict[int, int]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        """Return the positions of the numbers of each array that is read in one go, if the program uses all of them;
        consecutive lists of one length are stacked into one array. `number` has the position of each Value, by its
        identity.
        """
        whole = []
        for x, shape, leaves, _ in self.bulk:
            places = np.array([number.get(id(leaf), -1) for leaf in leaves], np.int64).reshape(shape)
            if places.size and places.min() >= 0:
                whole.append((type(x) is list, places))
        found: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        for (is_list, _), several in itertools.groupby(whole, lambda each: (each[0], each[1].shape)):
            arrays = [places for _, places in several]
            found += [np.stack(arrays)] if is_list else arrays
        return found

    def captures(self, parameters: tuple[Any, ...], constants: Container[int] | None = None) -> Captures:
        """Return the captures to check before each run of a program with these parameters; see `Captures`."""
        number = {id(p): n for n, p in enumerate(parameters)}
        for place in self.places:
            place.number = number.get(id(place.leaf), -1)
        for items in self.items:
            items.numbers = [number.get(id(leaf), -1) for leaf in items.leaves or ()]
        bulk = [
            BulkNumbers(x, shape, np.array([number.get(id(leaf), -1) for leaf in leaves], np.int64), name)
            for x, shape, leaves, name in self.bulk
        ]
        self.bulk = []
        return Captures(self.places, self.items, list(self.groups.values()), bulk, constants)


def is_known_class(kind: type) -> bool:
    functions = [part for thing in list(vars(kind).values()) for part in parts_of(thing) if part is not None]
    known = [is_known(f.__globals__) for f in functions if isinstance(f, FunctionType)]
    return bool(known) and all(known)


def is_opaque(kind: type) -> bool:
    """Return True if a class has methods written in C or not followed, whose names are unknown."""
    if is_known_class(kind):
        return True
    return any(type(part).__name__ == CYTHON for x in vars(kind).values() for part in parts_of(x))


def parts_of(thing: Any) -> tuple[Any, ...]:
    """Return the functions in a class attribute."""
    if type(thing) is property:
        return thing.fget, thing.fset, thing.fdel
    if type(thing) in (staticmethod, classmethod):
        return (thing.__func__,)
    return (thing,) if isinstance(thing, FunctionType) or type(thing).__name__ == CYTHON else ()


OBJECT: Any = object
CONSTANT: tuple[type, ...] = (*IMMUTABLE, ModuleType, Value, CallPath)
SEEN: tuple[type, ...] = (*CONSTANT, BaseException, SimpleNamespace)  # their attributes may change, and are noted
CYTHON = "cython_function_or_method"
IMMUTABLE_ATTRIBUTES: tuple[type, ...] = (MemberDescriptorType, type(type.__dict__["__dict__"]))
MAKERS: dict[Any, Callable[[Proxies, Any, str], Any]] = {
    FunctionType: Proxies._function, MethodType: Proxies._method, functools.partial: Proxies._partial,
    BuiltinFunctionType: Proxies._builtin, MethodWrapperType: Proxies._builtin,
    operator.methodcaller: Proxies._caller, LRU_CACHE: Proxies._cached,
    ModuleType: Proxies._module, list: Proxies._list, tuple: Proxies._tuple, set: Proxies._set,
    attrgetter: Proxies._getter, weakref.WeakKeyDictionary: Proxies._weak_keys,
    frozenset: Proxies._set, np.ndarray: Proxies._array, deque: Proxies._list, SimpleNamespace: Proxies._object,
    **dict.fromkeys((dict, defaultdict, OrderedDict, Counter, MappingProxyType), Proxies._dict),
}  # fmt: skip
PARTS: dict[Any, Callable[[Any], Any]] = {
    MethodType: lambda x: (x.__func__, x.__self__),
    functools.partial: lambda x: (x.func, x.args, x.keywords),
    property: lambda x: (x.fget, x.fset, x.fdel),
    staticmethod: lambda x: (x.__func__,),
    classmethod: lambda x: (x.__func__,),
}
