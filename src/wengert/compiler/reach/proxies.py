"""Proxies of what a function reads outside of its arguments: globals, closures, attributes, items of containers.

All Python code that runs or is read is followed, wherever its file is, except for what `known.py` lists. A recorded
function is a clone that finds proxies: traced numbers for floats, which later calls read anew; copies of lists, dicts
and objects, so that the recorded run changes nobody else's; clones of functions whose code ran; and `standins.py` for
`math`, `max` and the like. Every read is noted with its place (`places.py`), and the recording is valid while the same
is found there. An object that has no proxy, such as one of a subclass of `list`, is used itself, and everything that
code could read of it is noted (`frozen.py`).
"""

from __future__ import annotations

import abc
import copy
import decimal
import functools
import importlib
import operator
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection
from operator import attrgetter
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Generic

import numpy as np

from wengert.compiler.call import KINDS, MISSING, CallPath, attributes_of, look
from wengert.compiler.code import LRU_CACHE, PLAIN, is_derivable, is_known, is_python
from wengert.compiler.reach.attributes import (
    closes_over,
    held_by,
    is_data,
    is_known_class,
    of_class,
    spelt,
    walks,
)
from wengert.compiler.reach.frozen import Frozen
from wengert.compiler.reach.places import Places
from wengert.compiler.traced import (
    FLOATS,
    STANDINS,
    ModuleView,
    Number,
    TracedArray,
    concrete,
    is_traced,
    presented,
)
from wengert.derivatives import OnValues, items_of
from wengert.engine import Value

__all__ = ["Proxies"]

NAME, CELL, ATTRIBUTE, CLASS, FUNCTION, CALL, BYTES, NAMES = KINDS
# What a function says of itself, and what it is made of.
FUNCTION_NAMES = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")
OF_FUNCTIONS = (*FUNCTION_NAMES, "__defaults__", "__kwdefaults__", "__code__", "__closure__")


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
            self.proxies.places.note(NAME, self.names, name, name)
            self.proxies.places.note(NAME, self.real, name, name)
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
        self.mentioned: set[str] = watch.before.mentioned
        self.reads_all: bool = watch.before.reads_all
        self.fixes_floats: bool = fixes_floats
        self.places: Places = Places(watch, passed, tells_objects, recorder)
        self.frozen: Frozen = Frozen(self.places, watch)
        self._proxies: dict[int, tuple[Any, Any]] = {}  # by the id of an original: (original, proxy)
        self._originals: dict[int, tuple[Any, Any, str]] = {}  # by the id of a proxy: (proxy, original, name)
        self._views: dict[int, View] = {}
        self._derived: dict[type, type] = {}  # classes, by those that are derived from them
        self._overridables: dict[type, list[str]] = {}  # class attributes that an object may override
        for base in Value.__mro__[:-1]:
            names = [n for n in vars(base) if n[:2] == "__" or n in self.mentioned]  # operators are not named
            self.places.note_of_class(base, names, "Value")
        if watch.asks.abstract:
            self.places.note(CALL, abc.get_cache_token, None, "the registered subclasses of an abstract class")

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, kind: int, source: Any, key: Any, name: str) -> Any:
        """Note a place, and return the proxy of the object there."""
        x = look(kind, source, key)
        if type(x) in FLOATS and not self.fixes_floats:
            return Number(self.recorder, x, self.places.note_float(kind, source, key, name))
        self.places.note(kind, source, key, name)
        return self.proxy(x, name)

    def proxy(self, x: Any, name: str) -> Any:
        """Return the proxy of an object that was read, or passed."""
        kind = type(x)
        if kind in PLAIN or kind is float or issubclass(kind, (Value, CallPath)):  # a compiled function follows itself
            return x
        if kind is decimal.Decimal or x is decimal.Decimal or x is decimal:
            self.places.note_decimals()
        if id(x) in STANDINS:
            return STANDINS[id(x)]
        if id(x) in self._proxies:
            return self._proxies[id(x)][1]
        make = MAKERS.get(kind)
        if make is not None:
            return make(self, x, name)
        if issubclass(kind, type):
            return self._class(x, name)
        if issubclass(kind, weakref.ref):
            return self.places.refuse(f"it reads {name}, a weak reference: let it read the object")
        if is_derivable(kind):
            return self._object(x, name)
        return self._keep(x, self.frozen.freeze(x, name))

    def _keep(self, x: Any, proxy: Any) -> Any:
        self._proxies[id(x)] = x, proxy
        return proxy

    def importing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return an `__import__` that returns proxies."""

        def load(name: str, *how: Any, **named: Any) -> Any:
            module = real(name, *how, **named)
            self.places.note(NAME, sys.modules, module.__name__, f"the module {name}")
            return self.proxy(module, name)

        return load

    def getting(self, proxy: Any, n: str, *default: Any) -> Any:
        """Look up an attribute like `getattr`. Its name may be computed, and so missing from the names in the code."""
        _, x, name = self._originals.get(id(proxy), (None, proxy, ""))
        if issubclass(type(proxy), type):
            for base in proxy.__mro__:
                if base not in self._derived and is_python(base):
                    self.places.note(CLASS, base, n, f"{base.__name__}.{n}")
        elif proxy in self.frozen:
            self.frozen.freeze(self.places.note(ATTRIBUTE, proxy, n, n), n)
        elif isinstance(proxy, FunctionType):
            f = self._copied(proxy)
            held = vars(f)
            if n in OF_FUNCTIONS:
                return self.proxy(self.places.note(ATTRIBUTE, f, n, f"{f.__name__}.{n}"), n)
            if n in held:
                return self.read(NAME, held, n, n)
            self.places.note(NAME, held, n, n)
        inherited = MISSING if x is proxy or n in self.mentioned else of_class(type(x), n)
        if inherited is not MISSING and not is_data(inherited) and self.places.note_own(x, n, f"{name}.{n}"):
            return self.read(ATTRIBUTE, x, n, f"{name}.{n}")
        return getattr(proxy, n, *default)

    def having(self, proxy: Any, n: str) -> bool:
        """Tell like `hasattr` whether there is an attribute."""
        if is_traced(proxy):  # which answers to more
            return bool(STANDINS[id(hasattr)](proxy, n))
        try:
            self.getting(proxy, n)
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
            attributes = [functools.reduce(self.getting, path, thing) for path in paths]
            return attributes[0] if len(attributes) == 1 else tuple(attributes)

        return self._keep(x, get)

    def _caller(self, x: Any, name: str) -> Any:
        """Replace an `operator.methodcaller` by a function."""
        maker, given = x.__reduce__()
        named = maker.keywords if isinstance(maker, functools.partial) else {}
        method, *args = (*maker.args, *given) if isinstance(maker, functools.partial) else given
        args, named = self.proxy(list(args), name), self.proxy(named, name)
        return self._keep(x, lambda thing: self.getting(thing, method)(*args, **named))

    # -- functions and modules ----------------------------------------------------------------------------------------

    def root(self, f: Any) -> Any:
        """Return the proxy of the recorded function, which may be that of a derivative."""
        if type(f) is OnValues:
            return f.of(self.root(f.function))
        if id(f) in STANDINS:
            return STANDINS[id(f)]
        if type(f) is functools.partial:  # the signature has these defaults, the clone has not
            self.places.note(CALL, lambda: tuple(f.keywords.items()), None, "the keywords of itself")
        if not isinstance(f, FunctionType):
            return self.proxy(f, "itself")
        if f.__kwdefaults__:
            what = f"how {f.__name__} is defined"
            self.places.note(CALL, lambda: tuple((f.__kwdefaults__ or {}).items()), None, what)
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
        clone = self._keep(f, FunctionType(f.__code__, view, f.__name__, None, cells or None))
        self.places.note(FUNCTION, f, None, f"how {f.__name__} is defined")
        for inner, (free, outer) in zip(cells, closes_over(f), strict=True):
            if free == "__class__":  # for super()
                inner.cell_contents = outer.cell_contents
            elif look(CELL, outer, None) is MISSING:
                self.places.note(CELL, outer, None, free)
            else:
                inner.cell_contents = self.read(CELL, outer, None, free)
        clone.__defaults__ = f.__defaults__ and tuple([self.proxy(x, f.__name__) for x in f.__defaults__])
        clone.__kwdefaults__ = f.__kwdefaults__ and self.proxy(f.__kwdefaults__, f.__name__)
        clone.__dict__.update(
            {n: self.read(NAME, vars(f), n, f"{f.__name__}.{n}") for n in vars(f) if n in self.mentioned}
        )
        clone.__module__, clone.__qualname__, clone.__doc__ = f.__module__, f.__qualname__, f.__doc__
        for n in self.mentioned.intersection(FUNCTION_NAMES):
            setattr(clone, n, self.read(ATTRIBUTE, f, n, f"{f.__name__}.{n}"))
        return clone

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
        """Wrap a function of `functools.lru_cache`: its results stay valid until new ones are added. A run that is
        differentiated finds no results of traced numbers, which are constants: it calls the function itself.
        """
        is_noted = False

        def cached(*args: Any, **named: Any) -> Any:  # called as in the watched run, to find the result
            nonlocal is_noted
            of_numbers = self.recorder.differentiates and any(map(_is_number, items_of([*args, *named.values()])))
            if of_numbers and type(x.__wrapped__) is FunctionType:
                if x.__wrapped__.__code__ in self.ran:
                    return self.proxy(x.__wrapped__, name)(*args, **named)
                originals = {n: self._original(arg) for n, arg in named.items()}
                self.recorder.unseen.append(functools.partial(x.__wrapped__, *map(self._original, args), **originals))
            if not is_noted:
                is_noted = True
                self.places.note_cache(x, name)
            result = x(*map(self._original, args), **{n: self._original(arg) for n, arg in named.items()})
            return self.proxy(result, f"a result of {name}")

        functools.update_wrapper(cached, x, updated=())
        cached.cache_info, cached.cache_clear = x.cache_info, x.cache_clear  # type: ignore[attr-defined]
        return self._keep(x, cached)

    def _original(self, x: Any) -> Any:
        """Return the object that a proxy or a traced number stands for."""
        if type(x) in (tuple, frozenset):
            return type(x)(map(self._original, x))
        if isinstance(x, type):
            return self._derived.get(x, x)
        if type(x) in (FunctionType, ModuleView):
            return self._copied(x)
        return self._originals[id(x)][1] if id(x) in self._originals else concrete(x)

    def _copied(self, copied: Any) -> Any:
        """Return the function or the module that stands behind a clone or a view; others as they are."""
        return next((x for x, proxy in self._proxies.values() if proxy is copied), copied)

    def _module(self, x: ModuleType, name: str) -> Any:
        names = vars(x)
        fixed = not str(names.get("__file__")).endswith((".py", ".pyc")) or x.__name__ in ("numpy", "wengert")

        def find(key: str) -> Any:
            if key not in names and "__getattr__" in names:
                self.places.note(NAME, names, key, f"{name}.{key}")
                return self.read(NAME, names, "__getattr__", f"{name}.__getattr__")(key)
            if self.places.note(NAME, names, key, f"{name}.{key}") is MISSING and not hasattr(ModuleType, key):
                self.places.note(NAME, names, "__getattr__", f"{name}.__getattr__")
                raise AttributeError(f"module {x.__name__!r} has no attribute {key!r}", name=key, obj=x)
            if fixed:  # math.pi stays a constant
                proxy = self.proxy(names.get(key, MISSING), f"{name}.{key}")
                vars(view)[key] = proxy  # where it is found at once
                return proxy
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
            self.places.note_items(x, list(then), keys, name)
            return then  # these are their own proxies
        spell = [spelt(key) for key in keys] if keys is not None else range(len(then))
        leaves = [Value(item) if type(item) in floats else None for item in then]
        self.places.note_items(x, list(then), keys, name, leaves if any(leaves) else None)
        return [
            self.proxy(item, f"{name}[{at}]") if leaf is None else Number(self.recorder, item, leaf)
            for item, leaf, at in zip(then, leaves, spell, strict=True)
        ]

    def _numbers(self, x: Any, shape: tuple[int, ...], then: list[float], name: str) -> list[Any]:
        """Note floats that are read in one go, and return traced numbers."""
        leaves = self.places.note_numbers(x, shape, then, name)
        return [Number(self.recorder, item, leaf) for item, leaf in zip(then, leaves, strict=True)]

    def _list(self, x: list[Any] | deque[Any], name: str) -> Any:
        copied = self._keep(x, deque(maxlen=x.maxlen) if isinstance(x, deque) else [])
        copied += self._contents(x, list(x), None, name)
        return copied

    def _tuple(self, x: tuple[Any, ...], name: str) -> Any:
        return self._keep(x, tuple([self.proxy(item, f"{name}[{n}]") for n, item in enumerate(x)]))

    def _dict(self, x: Any, name: str) -> Any:
        copied: Any = copy.copy(x) if isinstance(x, dict) else {}  # keeps the type and the order of keys
        self._keep(x, copied if isinstance(x, dict) else MappingProxyType(copied))
        keys = list(x)
        if isinstance(x, defaultdict):
            copied.default_factory = self.read(ATTRIBUTE, x, "default_factory", f"{name}.default_factory")
        if not all(type(key) in PLAIN for key in keys):
            copied.clear()
        for key, item in zip(keys, self._contents(x, list(x.values()), keys, name), strict=True):
            copied[self._key(key, name)] = item  # Counter.update would add
        return self._proxies[id(x)][1]

    def _weak_keys(self, x: Any, name: str) -> Any:
        """Copy a `WeakKeyDictionary`; the references that are its keys tell whether it has others."""
        copied = self._keep(x, weakref.WeakKeyDictionary())
        keys = list(x.data)
        items = self._contents(x.data, list(x.data.values()), keys, name)
        for key, item in [(key(), item) for key, item in zip(keys, items, strict=True)]:
            if key is not None:  # else it is gone by now
                copied[self._key(key, name)] = item
        return copied

    def _key(self, x: Any, name: str) -> Any:
        """Return the proxy of a key that is compared by identity, also in a tuple, and other keys themselves."""
        if type(x) is tuple:
            parts = [self._key(part, name) for part in x]
            return x if all(map(operator.is_, parts, x)) else tuple(parts)
        has_identity = vars(object)["__hash__"] is type(x).__hash__
        return self.proxy(x, name) if has_identity else x

    def _set(self, x: Any, name: str) -> Any:
        self.places.note_items(x, list(x), None, name)
        copied = {self._key(item, name) for item in x}
        return self._keep(x, copied if type(x) is set else frozenset(copied))

    def _array(self, x: Any, name: str) -> Any:
        if x.dtype != np.float64:
            self.places.note_array(x, name)
            return self._keep(x, presented(x.copy()))
        numbers = self._numbers(x, x.shape, [*x.ravel()], name)  # which keep the type of NumPy
        array: Any = np.fromiter(numbers, object, len(numbers))  # does not ask each whether it is a sequence
        return self._keep(x, presented(array.reshape(x.shape)))

    # -- objects and classes ------------------------------------------------------------------------------------------

    def _object(self, x: Any, name: str) -> Any:
        """Return the proxy of an object of a Python class, which reads attributes when they are asked for."""
        kind = type(x)
        derived: Any = self.proxy(kind, kind.__name__)
        if kind is not SimpleNamespace and derived is kind:
            return self._keep(x, self.frozen.freeze(x, name))
        proxy = self._keep(x, SimpleNamespace() if kind is SimpleNamespace else object.__new__(derived))
        self._originals[id(proxy)] = proxy, x, name
        self.places.note(ATTRIBUTE, x, "__class__", f"the class of {name}")
        if kind is SimpleNamespace or self.reads_all or walks(kind, self.mentioned):
            self.places.note(NAMES, x, None, f"the attributes of {name}")
            for n in attributes_of(x):
                object.__setattr__(proxy, n, self.read(ATTRIBUTE, x, n, f"{name}.{n}"))
        for n in self._overridable(kind):
            if self.places.note_own(x, n, f"{name}.{n}"):
                object.__setattr__(proxy, n, self.read(ATTRIBUTE, x, n, f"{name}.{n}"))
        return proxy

    def _overridable(self, kind: type) -> list[str]:
        """List those class attributes that an attribute of an object would override."""
        if not kind.__dictoffset__:  # one with slots alone holds nothing else
            return []
        if kind not in self._overridables:
            attributes = [(n, of_class(kind, n)) for n in self.mentioned if n[:2] != "__"]
            self._overridables[kind] = [n for n, thing in attributes if thing is not MISSING and not is_data(thing)]
        return self._overridables[kind]

    def _attribute(self, proxy: Any, n: str) -> Any:
        """Serve as `__getattr__` of proxies, and of objects that the recorded run made."""
        _, x, name = self._originals.get(id(proxy), (None, proxy, ""))
        if x is not proxy and not (n.startswith("__") and n.endswith("__")):
            if look(ATTRIBUTE, x, n) is not MISSING:
                object.__setattr__(proxy, n, self.read(ATTRIBUTE, x, n, f"{name}.{n}"))
                return object.__getattribute__(proxy, n)
            self.places.note(ATTRIBUTE, x, n, f"{name}.{n}")
        asked = of_class(type(x), "__getattr__") if x is not proxy else of_class(type(proxy).__mro__[1], "__getattr__")
        if asked is MISSING:
            raise AttributeError(f"{type(x).__name__!r} object has no attribute {n!r}", name=n, obj=proxy)
        return self.proxy(asked, "__getattr__")(proxy, n)

    def _class(self, x: type, name: str) -> Any:
        """Derive a class from a Python class, with clones of its methods."""
        if not is_derivable(x) or x in ROOTS or is_known_class(x) or issubclass(x, Value):
            return self._keep(x, self.frozen.freeze(x, name))
        bases = [self.proxy(base, base.__name__) for base in x.__bases__]
        derived_bases = [base for base, real in zip(bases, x.__bases__, strict=True) if base is not real]
        meta: Any = type(x)
        names = {"__slots__": (), "__module__": x.__module__, "__doc__": x.__doc__}
        derived = meta(x.__name__, (x, *derived_bases), names)
        self._keep(x, derived)
        self._derived[derived] = x
        derived.__qualname__ = x.__qualname__
        derived.__getattr__ = lambda proxy, n: self._attribute(proxy, n)
        noted = []
        for n, attribute, functions, followed, is_read in self.places.attributes_read(x):
            if followed:
                noted.append(n)
                clones = [self.proxy(f, n) for f in functions]
                if n != "__getattr__":
                    setattr(derived, n, clones[0] if isinstance(attribute, FunctionType) else type(attribute)(*clones))
            elif not functions and is_read and not isinstance(attribute, IMMUTABLE_ATTRIBUTES) and n[:2] != "__":
                setattr(derived, n, self.read(CLASS, x, n, f"{name}.{n}"))
            elif is_read or functions:
                noted.append(n)
        self.places.note_of_class(x, noted, name)
        self.places.note_absent(x, name)
        return derived

    # -- after the run ------------------------------------------------------------------------------------------------

    def restore(self, alone: bool) -> str:
        """Set back what this run has changed of objects that have no proxy. Return the name of such an object; empty if
        there is none.

        Unless it ran `alone`, another thread may have changed them too: then only what is of this run alone is taken
        out: proxies, traced numbers, and what holds such.
        """
        proxies = {id(proxy) for x, proxy in self._proxies.values() if proxy is not x}
        clean: set[int] = set()

        def is_foreign(x: Any) -> bool:
            """Return True if an object is of this run alone, or holds one that is."""
            waiting, reached = [x], set[int]()
            while waiting:
                x = waiting.pop()
                kind = type(x)
                if kind in PLAIN or kind is float or id(x) in clean or id(x) in reached:
                    continue
                if id(x) in proxies or kind in self._derived or is_traced(x) or kind is TracedArray:
                    return True
                if kind is FunctionType and type(x.__globals__) is View:
                    return True
                if issubclass(kind, HOLDERS):
                    reached.add(id(x))
                    waiting += dict.__iter__(x) if issubclass(kind, dict) else ()
                    waiting += [part for part, _ in held_by(x, "")]
                elif issubclass(kind, weakref.ref):
                    waiting.append(x())
            clean.update(reached)
            return False

        return self.frozen.restore(is_foreign, alone)

    def release(self) -> None:
        """Let go of everything but the places."""
        self._proxies, self._originals, self._views, self._derived, self.recorder = {}, {}, {}, {}, None
        self.frozen.release()
        self.places.recorder = None


ROOTS: tuple[Any, ...] = (object, Generic)  # from Python 3.12 on Generic has no function written in Python
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
HOLDERS = (list, tuple, dict, set, frozenset, deque, MappingProxyType, MethodType, functools.partial)


def _is_number(x: Any) -> bool:
    """Return True for a Value, or a traced float."""
    return isinstance(x, Value) or (type(x) is Number and isinstance(x.number, float))
