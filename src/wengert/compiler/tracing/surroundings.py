"""What a function reads outside of itself: globals, variables of enclosing functions, attributes, items of containers.

A function is recorded as a clone that finds stand-ins for them: floats as traced numbers, which later calls read anew;
lists, dicts and objects as copies, so that what the recorded run does to them is done to no one else; functions as
clones again; `math`, `max` and the like as `standins.py` has them. All else is itself. What was read is noted, with
where it was read: a recording holds as long as the same is found there.
"""

from __future__ import annotations

import copy
import dis
import functools
import os
import sys
import sysconfig
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from wengert.compiler.outside import MISSING, Contents, Outside, bits_of
from wengert.compiler.tracing.standins import STANDINS, ModuleView
from wengert.compiler.tracing.tracers import Number, presented
from wengert.engine import Value

__all__ = ["Surroundings", "attributes_of", "codes_of", "globals_of", "is_users", "is_users_class", "is_users_module"]
__all__ += ["spelt"]

FLOATS = (float, np.float64)
PLAIN = (int, bool, str, bytes, complex, type(None))
HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
LIBRARIES = tuple(
    {os.path.join(p, "") for name, p in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))}
)
PACKAGES = tuple([f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist")])  # a user's own, those on a path


def spelt(key: Any) -> str:
    """A key in a name; of an object of the user's, whose `repr` may do anything, its kind."""
    return repr(key) if type(key) in PLAIN else type(key).__name__


def is_users(path: str) -> bool:
    """Whether code stands neither in this package nor in a library, wherever libraries are kept."""
    return not path.startswith((HERE, "<frozen", *LIBRARIES)) and not any(kept in path for kept in PACKAGES)


def is_users_module(name: str) -> bool:
    """The same of a module, by its name."""
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return name.partition(".")[0] not in sys.stdlib_module_names and is_users(path)


def is_users_class(kind: Any) -> bool:
    """Whether a class is a user's, of plain objects, so that another can be derived from it without a trace."""
    if type(kind) is not type or not is_users_module(kind.__module__):
        return False
    return all(base is object or _is_plain(base) for base in kind.__mro__)


def _is_plain(base: Any) -> bool:
    ours = base.__module__.startswith("wengert.") and not issubclass(base, Value)  # as `nn.Module`
    return (ours or is_users_module(base.__module__)) and "__init_subclass__" not in vars(base)


def attributes_of(x: Any) -> list[str]:
    """The names of what an object holds."""
    slots = [n for base in type(x).__mro__ for n, a in vars(base).items() if isinstance(a, MemberDescriptorType)]
    return [n for n in (*slots, *getattr(x, "__dict__", ())) if not n.startswith("__") and hasattr(x, n)]


def _names_of(kind: type) -> set[str]:
    """The names of what a user's class holds, but for those that Python itself looks for."""
    bases = [vars(base) for base in kind.__mro__ if is_users_module(base.__module__)]
    return {n for names in bases for n in names if not n.startswith("__")}


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of the functions and comprehensions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


def globals_of(code: CodeType, operations: tuple[str, ...] = ("LOAD_GLOBAL", "LOAD_NAME")) -> Iterator[str]:
    """The names of the globals that code reads."""
    for each in codes_of(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in operations:
                yield instruction.argval


class View(dict[str, Any]):
    """A module's globals, as a recorded function finds them."""

    def __init__(self, surroundings: Surroundings, names: dict[str, Any]) -> None:
        super().__init__(__builtins__=names.get("__builtins__", __builtins__), __name__=names.get("__name__"))
        self.surroundings: Surroundings = surroundings
        self.names: dict[str, Any] = names

    def __missing__(self, name: str) -> Any:
        if name in self.names:
            self[name] = found = self.surroundings.read(self.names.get, name, name)
            return found
        builtins = self["__builtins__"]
        builtin = (vars(builtins) if isinstance(builtins, ModuleType) else builtins)[name]  # or a KeyError
        return STANDINS.get(id(builtin), builtin)


class Surroundings:
    """The stand-ins for what one recorded run reads, and where it was read.

    Args:
        recorder: what the traced numbers among them tell.
        mentioned: the names of attributes in the code that runs; others are not looked at.
    """

    def __init__(self, recorder: Any, mentioned: set[str]) -> None:
        self.recorder: Any = recorder
        self.mentioned: set[str] = mentioned
        self.found: list[tuple[Callable[[Any], Any], Any, Any, str]] = []  # how it was read, its key, it, its name
        self.held: list[tuple[list[Any], int, list[Any] | None, str]] = []  # lists as `Outside` has them
        self.numbers: list[tuple[Callable[[Any], Any], Any, float, Value, str]] = []  # floats, each with a Value for it
        self.lists: list[tuple[Any, Any, tuple[Value, ...], str, Any]] = []  # of plain things
        self._made: dict[int, tuple[Any, Any]] = {}  # by identity of an original: it, held by that, and its stand-in
        self._views: dict[int, View] = {}

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, get: Callable[[Any], Any], key: Any, name: str) -> Any:
        """What stands for the thing at a place, which is noted."""
        x = get(key)
        if type(x) in FLOATS:
            leaf = Value(x)
            self.numbers.append((get, key, x, leaf, name))
            return Number(self.recorder, x, leaf, attached=True)
        self.found.append((get, key, x, name))
        return self.stand_in(x, name)

    def stand_in(self, x: Any, name: str) -> Any:
        """What stands for a thing that was read, or passed."""
        kind = type(x)
        if kind in PLAIN or kind is float or isinstance(x, Value):
            return x
        if id(x) in STANDINS:
            return STANDINS[id(x)]
        if id(x) in self._made:
            return self._made[id(x)][1]
        make = MAKERS.get(kind)
        if make is None:
            users = is_users_class(kind), is_users_class(x)
            make = Surroundings._object if users[0] else Surroundings._class if users[1] else Surroundings._itself
        return make(self, x, name)

    def _keep(self, x: Any, made: Any) -> Any:
        self._made[id(x)] = x, made
        return made

    def _note(self, get: Callable[[Any], Any], name: str) -> None:
        """Note what is always found where the thing itself is."""
        self.found.append((get, None, get(None), name))

    # -- stand-ins ----------------------------------------------------------------------------------------------------

    def root(self, f: Any) -> Any:
        """What stands for the function that is recorded."""
        return self.clone(f) if isinstance(f, FunctionType) else self.stand_in(f, "itself")

    def clone(self, f: FunctionType) -> Any:
        """A function that finds stand-ins."""
        view = self._views.get(id(f.__globals__))
        if view is None:
            view = self._views[id(f.__globals__)] = View(self, f.__globals__)
        cells = tuple([CellType() for _ in f.__closure__ or ()])
        made = self._keep(f, FunctionType(f.__code__, view, f.__name__, None, cells or None))  # before it finds itself
        for inner, outer, free in zip(cells, f.__closure__ or (), f.__code__.co_freevars, strict=True):
            get = Contents(outer)
            if free == "__class__":  # which super() asks for
                inner.cell_contents = outer.cell_contents
            elif get(None) is not MISSING:
                inner.cell_contents = self.read(get, None, free)
        made.__defaults__ = f.__defaults__ and tuple([self.stand_in(x, f.__name__) for x in f.__defaults__])
        made.__kwdefaults__ = f.__kwdefaults__ and self.stand_in(f.__kwdefaults__, f.__name__)
        made.__dict__.update(
            {n: self.read(vars(f).get, n, f"{f.__name__}.{n}") for n in vars(f) if n in self.mentioned}
        )
        made.__module__, made.__qualname__ = f.__module__, f.__qualname__
        return made

    def _function(self, f: FunctionType, name: str) -> Any:
        """A user's function, or what a library has wrapped around one, as a clone."""
        return self.clone(f) if is_users(f.__code__.co_filename) or hasattr(f, "__wrapped__") else f

    def _method(self, x: MethodType, name: str) -> Any:
        return MethodType(self.stand_in(x.__func__, name), self.stand_in(x.__self__, name))

    def _partial(self, x: Any, name: str) -> Any:
        args = [self.stand_in(arg, name) for arg in x.args]
        return functools.partial(self.stand_in(x.func, name), *args, **self.stand_in(x.keywords, name))

    def _module(self, x: ModuleType, name: str) -> Any:
        if x.__name__ in ("math", "numpy", "wengert"):
            return self._keep(x, ModuleView(x, lambda key, found: self.stand_in(found, key)))
        if not is_users_module(x.__name__):
            return x
        return self._keep(x, ModuleView(x, lambda key, found: self.read(vars(x).get, key, f"{name}.{key}")))

    def _deque(self, x: deque[Any], name: str) -> Any:
        self._note(lambda _: len(x), f"the length of {name}")
        return self._keep(x, deque([self.read(_item(x), n, f"{name}[{n}]") for n in range(len(x))], x.maxlen))

    def _list(self, x: list[Any], name: str) -> Any:
        kinds = set(map(type, x))
        if kinds.issubset((*PLAIN, float)):
            return self._keep(x, self._plain(x, x, name))
        made: list[Any] = self._keep(x, [])
        values = all(issubclass(kind, Value) for kind in kinds)
        self.held.append((x, len(x), list(x) if not values and kinds.isdisjoint(FLOATS) else None, name))
        if values:
            made += x
        elif kinds.isdisjoint(FLOATS):
            made += [self.stand_in(item, f"{name}[{n}]") for n, item in enumerate(x)]
        else:
            made += [self.read(_item(x), n, f"{name}[{n}]") for n in range(len(x))]
        return made

    def _plain(self, x: Any, items: list[Any], name: str) -> list[Any]:
        """Numbers and words; the floats among them are traced, and read anew."""
        leaves = tuple([Value(item) for item in items if type(item) is float])
        self.lists.append((x, list(items), leaves, name, bits_of(x)))
        traced = iter(leaves)
        return [
            Number(self.recorder, item, next(traced), attached=True) if type(item) is float else item for item in items
        ]

    def _tuple(self, x: tuple[Any, ...], name: str) -> Any:
        return self._keep(x, tuple([self.stand_in(item, f"{name}[{n}]") for n, item in enumerate(x)]))

    def _dict(self, x: dict[Any, Any], name: str) -> Any:
        made: dict[Any, Any] = self._keep(x, copy.copy(x))  # of its kind: one with a default, in an order
        self._note(lambda _: tuple(x), f"the keys of {name}")
        for key in x:  # `update` of a Counter would add
            made[key] = self.read(x.get, key, f"{name}[{spelt(key)}]")
        return made

    def _set(self, x: Any, name: str) -> Any:
        self._note(lambda _: frozenset(x), name)
        return self._keep(x, set(x))

    def _array(self, x: Any, name: str) -> Any:
        if x.dtype != np.float64:
            self.lists.append((x, x.copy(), (), name, bits_of(x)))
            return self._keep(x, presented(x.copy()))
        self._note(lambda _: x.shape, f"the shape of {name}")
        made = np.empty(x.shape, object)
        made.reshape(-1)[:] = self._plain(x, x.ravel().tolist(), name)
        return self._keep(x, presented(made))

    def _object(self, x: Any, name: str) -> Any:
        kind = type(x)
        made = SimpleNamespace() if kind is SimpleNamespace else object.__new__(self.stand_in(kind, kind.__name__))
        self._keep(x, made)
        for n in attributes_of(x):
            seen = n in self.mentioned or not DYNAMIC.isdisjoint(self.mentioned)
            object.__setattr__(made, n, self.read(_attribute(x), n, f"{name}.{n}") if seen else getattr(x, n))
        if (own := getattr(x, "__dict__", None)) is not None:
            for n in self.mentioned.difference(own).intersection(_names_of(kind)):  # its class's, until it has its own
                self.found.append((own.get, n, None, f"{name}.{n}"))
        return made

    def _itself(self, x: Any, name: str) -> Any:
        """What has no stand-in; what it holds is looked at, and what its methods read."""
        self._keep(x, x)
        if isinstance(x, np.ndarray):
            self.recorder.refuse(f"reads {name}, a {type(x).__name__}, which is more than its numbers")
        if isinstance(x, (list, dict, deque, array)):
            self._note(lambda _: tuple(x.items() if isinstance(x, dict) else x), name)
        if is_users_module(type(x).__module__) or type(x) is SimpleNamespace:
            for n in self.mentioned.intersection(attributes_of(x)):
                self.found.append((_attribute(x), n, getattr(x, n), f"{name}.{n}"))
        for base in (x if isinstance(x, type) else type(x)).__mro__:
            for own, f in list(vars(base).items()) if is_users_module(base.__module__) else ():
                if isinstance(f, FunctionType):
                    self.found.append((vars(base).get, own, f, f"{name}.{own}"))
                    for n in globals_of(f.__code__):
                        if n in f.__globals__:
                            self.found.append((f.__globals__.get, n, f.__globals__[n], n))
        return x

    def _class(self, x: Any, name: str) -> Any:
        made: Any = self._keep(x, type(x.__name__, (x,), {"__slots__": (), "__module__": x.__module__}))
        for base in reversed([base for base in x.__mro__ if is_users_module(base.__module__)]):
            for n, thing in vars(base).items():
                if callable(thing) or isinstance(thing, (staticmethod, classmethod, property)):
                    self.found.append((vars(base).get, n, thing, f"{name}.{n}"))
                if isinstance(thing, FunctionType):
                    setattr(made, n, self._function(thing, n))
                elif isinstance(thing, (staticmethod, classmethod)):
                    setattr(made, n, type(thing)(self.stand_in(thing.__func__, n)))
                elif isinstance(thing, property):
                    parts = (thing.fget, thing.fset, thing.fdel)
                    setattr(made, n, property(*[self.stand_in(part, n) for part in parts]))
                elif n in self.mentioned and not isinstance(thing, MemberDescriptorType):
                    setattr(made, n, self.read(_attribute(base), n, f"{name}.{n}"))
        return made

    # -- once it is recorded ------------------------------------------------------------------------------------------

    def values(self) -> set[int]:
        """The identities of the Values that hold floats."""
        return {id(leaf) for *_, leaf, _ in self.numbers} | {id(x) for _, _, xs, *_ in self.lists for x in xs}

    def keep(self, used: set[int]) -> set[int]:
        """Of the floats only these Values are used: of the others the kind alone matters. Returns which are."""
        own = self.values() & used
        self.lists = [
            (x, then, leaves if used & set(map(id, leaves)) else (), *more) for x, then, leaves, *more in self.lists
        ]
        self._made = {key: (x, None) for key, (x, _) in self._made.items()}  # the originals stay, with their identities
        self._views.clear()
        self.recorder = None
        return own

    def outside(self) -> Outside:
        """What was read, to be looked at before each run."""
        return Outside(self.found, self.held, self.numbers, self.lists, BY_VALUE)


MAKERS: dict[Any, Callable[[Surroundings, Any, str], Any]] = {
    FunctionType: Surroundings._function, MethodType: Surroundings._method, functools.partial: Surroundings._partial,
    ModuleType: Surroundings._module, list: Surroundings._list, tuple: Surroundings._tuple, dict: Surroundings._dict,
    set: Surroundings._set, np.ndarray: Surroundings._array, deque: Surroundings._deque,
    SimpleNamespace: Surroundings._object, **dict.fromkeys((defaultdict, OrderedDict, Counter), Surroundings._dict),
}  # fmt: skip
BY_VALUE = (*PLAIN, float, tuple, frozenset, np.generic)
DYNAMIC = frozenset(
    ["__dict__", "asdict", "astuple", "getattr", "named_parameters", "parameters", "state_dict", "vars"]
)


def _attribute(x: Any) -> Callable[[Any], Any]:
    return lambda name: getattr(x, name, MISSING)


def _item(x: Any) -> Callable[[Any], Any]:
    return lambda n: x[n] if n < len(x) else MISSING
