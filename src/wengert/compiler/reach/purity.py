"""Watches a run of the user's function for side effects.

Before code runs for the first time, everything that it can reach by the names in it is noted: containers, attributes,
arrays, parameters, random number generators. Afterwards it is compared. During the run Python's profiler names the C
functions that are called: those that are not known to be pure, such as `print`, `time.time` or a file's `write`, are an
effect.
"""

from __future__ import annotations

import abc
import builtins
import functools
import importlib
import operator
import random
import sys
import zlib
from array import array
from collections import ChainMap, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from operator import attrgetter, is_, methodcaller
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from wengert.compiler import policy
from wengert.compiler.call import MISSING, CallPath, attributes_of, dict_of, look
from wengert.compiler.code import (
    LRU_CACHE,
    PLAIN,
    FreeVariable,
    bytecode_of,
    effect_of_call,
    is_known,
    is_python,
    is_standard,
    names_of,
    observes_bools,
    tells_numbers,
    tells_objects,
)
from wengert.compiler.reach.call_trace import CallTrace, is_aside
from wengert.compiler.reach.proxies import CELL, READS_ALL, closes_over, has, inner, own, spelt, walks
from wengert.compiler.reach.randomness import SHARED, draws_for_all, is_alone, random_state
from wengert.compiler.reach.settings import numpy_errors
from wengert.compiler.traced import SWITCHES, watching
from wengert.engine import Value
from wengert.ops import TABLE

__all__ = ["DRAWS", "DrawsCheck", "PurityCheck"]

DRAWS = "it draws random numbers: draw them outside of the function, and pass them"

SAYING = frozenset(["print", "input", "open", "breakpoint", "now", "today", "utcnow"])
IMPURE = SAYING | frozenset(["exec", "eval", "compile", "__import__", "setattr", "delattr", "id", "globals", "locals"])
MODULES = frozenset(["builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_heapq",
                     "_bisect", "_statistics", "_struct", "_json", "_sre", "re", "copy", "copyreg", "_abc", "array",
                     "_random", "decimal", "fractions", "datetime", "collections", "types", "functools", "operator",
                     "_datetime", "_decimal", "_weakref", "random", "numpy", "wengert", "_string", "weakref",
                     "_contextvars", "_collections_abc", "enum", "string", "_pickle", "_codecs", "_csv",
                     "_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2", "zlib",
                     "binascii"])  # fmt: skip
_NOTHING: list[Any] = []
CONSUMED = tuple(map(type, [iter(_NOTHING), iter(()), iter({}), iter(range(0)), zip(), map(abs, _NOTHING),
                            enumerate(()), filter(None, _NOTHING), reversed(_NOTHING),
                            (x for x in _NOTHING)]))  # fmt: skip
COMPUTED = frozenset(["getattr", "attrgetter", "methodcaller", "__getattribute__"])  # they look up computed names
ABSTRACT = frozenset([abc.ABCMeta.__instancecheck__.__code__, abc.ABCMeta.__subclasscheck__.__code__])
STATES = frozenset(["bit_generator", "get_state", "getstate"])  # they return the state of a random number generator
SETTINGS = frozenset(["getbufsize", "geterr", "geterrcall", "setbufsize", "seterr", "seterrcall"])
GENERATORS = (random.Random, np.random.RandomState, np.random.MT19937)
OF_RANDOM = vars(random)
IDENTITY = (operator.is_, operator.is_not)
IMPORTS = ("_find_and_load_unlocked", "importlib._bootstrap")  # the code that imports a module for the first time


class PurityCheck:
    """Finds the effects of a call of a function with these arguments.

    Attributes:
        ran: the code that ran, in order.
        seen: the objects that existed before, as far as the code reaches them, by identity.
        mentioned: the names in the code.
        reads_all: True if the code may read all attributes of an object, not only those that it names.
        observes_bools: True if it asks whether something is True or False itself.
        tells_objects: True if it may ask which of several equal numbers, texts, Values or containers one is.
        tells_own: True if it may ask that of any two objects.
        effect: an effect that every run has, in words; empty if none was seen.
        change: a change that may happen only once, such as filling a cache; empty if none was seen.
        instead: what to write instead, if each run has that change.
        changed: the object that was changed; None for an import.
        numpy_errors: those that `np.seterr` lets NumPy raise, or call a function for.
        asks_abstract: True if it asks whether an object is of an abstract class, with which others may be registered.
        draws: True if it was seen to call a random number generator that all threads share.
        path: the calls that were made.
    """

    def __init__(self, function: Any, arguments: Sequence[tuple[str, Any]]) -> None:
        self.ran: dict[CodeType, None] = {}
        self.mentioned: set[str] = set()
        self.observes_bools: bool = False
        self.tells_objects: bool = False
        self.tells_own: bool = False
        self.effect: str = ""
        self.change: str = ""
        self.instead: str = "return it instead"
        self.changed: Any = None
        self.draws: bool = False
        self.asks_abstract: bool = False
        self.numpy_errors: tuple[str, ...] = numpy_errors()
        self.operations: int = 0  # the nodes that the run computed
        rules = [rule for row in TABLE for rule in (row.value, row.partials)]  # they run for Values only
        self.path: CallTrace = CallTrace({id(rule.__code__) for rule in rules if hasattr(rule, "__code__")})
        self._saved: list[tuple[Any, str, Callable[[Any], Any], Any]] = []
        self._values: list[Value] = []
        self._numbers: list[tuple[float, float]] = []
        self._objects: list[tuple[Any, str]] = []  # whose attributes are noted when the code names them
        self._noted: dict[int, set[str]] = {}  # the names of attributes that were noted, by the object's identity
        self.seen: dict[int, Any] = {}
        self._reached: int = 0  # of these, Values in lists aside
        self._classes: set[type] = set()
        self.reads_all: bool = False
        self.walks_all: bool = False  # names are computed, so all attributes are noted
        self._entered_code: set[tuple[int, int]] = set()  # code that ran, and its globals
        self._enter([(function, "itself"), *[(x, name) for name, x in arguments]])

    # -- before and after ---------------------------------------------------------------------------------------------

    def _enter(self, waiting: list[tuple[Any, str]]) -> None:
        """Note everything that can be reached from some objects by the names known so far."""
        while waiting:
            x, name = waiting.pop()
            kind = type(x)
            if not (kind is float or kind in PLAIN or x is MISSING or id(x) in self.seen):
                self.seen[id(x)] = x
                self._reached += 1
                if self._reached > policy.REACHED:
                    self.effect = self.effect or policy.too_much(name)
                    return
                waiting += self._entered(x, kind, name)

    def _entered(self, x: Any, kind: Any, name: str) -> Any:
        """Note one object, and return what can be reached from it. No code of its class runs."""
        if issubclass(kind, Value):
            self._note_value(x)
            return ()
        if kind is FunctionType:
            found = [(look(CELL, cell, None), free) for free, cell in closes_over(x)]
            for free, cell in closes_over(x):
                self._keep(cell, free, lambda cell: [look(CELL, cell, None)])
            wrapped = vars(x).get("__wrapped__")
            held = [(each, x.__name__) for each in (x.__defaults__, x.__kwdefaults__, wrapped) if each is not None]
            return [*found, *held, *self._object(x, name)]
        if kind is MethodType:
            return (x.__func__, name), (x.__self__, name)
        if kind is LRU_CACHE:
            if type(x.__wrapped__) is FunctionType:
                self.path.cached.add(id(x.__wrapped__.__code__))
            self._keep(x, f"the cache of {name}", lambda x: x.cache_info()[1::2])
            return ((x.__wrapped__, name),)
        if kind in (BuiltinFunctionType, MethodWrapperType):
            of = x.__self__
            return () if of is None or issubclass(type(of), (ModuleType, type)) else ((of, name),)
        if kind in (attrgetter, methodcaller):  # their names are not in any code
            self.walks_all = True
            return [pair for y, of in list(self._objects) for pair in self._attributes(y, of, set())]
        if issubclass(kind, functools.partial):
            return (x.func, name), (x.args, name), (x.keywords, name)
        if issubclass(kind, CallPath):  # its own cache is no effect
            return [(x.function, name)]
        if issubclass(kind, tuple):
            return [(item, f"{name}[{n}]") for n, item in enumerate(tuple.__iter__(x)) if type(item) is not float]
        if issubclass(kind, (list, deque)):
            items = list.__iter__ if issubclass(kind, list) else deque.__iter__
            self._keep(x, name, lambda x: [*items(x)])
            found = []
            for n, item in enumerate(items(x)):
                if type(item) is Value:  # there may be many, and none needs a name
                    if id(item) not in self.seen:
                        self.seen[id(item)] = item
                        self._note_value(item)
                elif type(item) is not float:
                    found.append((item, f"{name}[{n}]"))
            return found if kind in (list, deque) else [*found, *self._object(x, name)]
        if issubclass(kind, dict):
            self._keep(x, name, lambda x: [*dict.__iter__(x), *dict.values(x)])
            found = [(item, f"{name}[{spelt(key)}]") for key, item in dict.items(x) if type(item) is not float]
            if issubclass(kind, defaultdict):
                found.append((x.default_factory, name))
            return found if kind is dict else [*found, *self._object(x, name)]
        if issubclass(kind, (set, bytearray, array)):
            self._keep(x, name, frozenset if issubclass(kind, set) else bytes)
            return [(item, name) for item in set.__iter__(x)] if issubclass(kind, set) else ()
        if issubclass(kind, np.ndarray):
            if x.dtype != object:
                self._keep(x, name, lambda x: (x.shape, zlib.crc32(x.tobytes())))
                return ()
            self._keep(x, name, lambda x: x.ravel().tolist())
            return [(item, name) for item in x.ravel().tolist()]
        if issubclass(kind, random.SystemRandom):  # which has no state to compare
            self.effect = self.effect or DRAWS
        elif issubclass(kind, random.Random):
            self._keep(x, name, lambda x: x.getstate())
        elif issubclass(kind, np.random.Generator):
            self._keep(x, name, lambda x: str(x.bit_generator.state))
        elif issubclass(kind, np.random.RandomState):
            self._keep(x, name, lambda x: str(x.get_state()))
        elif issubclass(kind, CONSUMED) or (has(x, "__next__") and not is_python(kind)):
            self.effect = self.effect or f"it reads {name}, an iterator, which can be read once: make a list of it"
        elif issubclass(kind, type):
            return self._of_class(x, name)
        else:
            return [(kind, kind.__name__), *self._object(x, name)]
        return ()

    def _note_value(self, x: Value) -> None:
        self._values.append(x)
        self._numbers.append((x._data, x.grad))

    def _of_class(self, x: type, name: str) -> Iterator[tuple[Any, str]]:
        for base in x.__mro__:
            if is_python(base) and base not in self._classes:
                self._classes.add(base)
                self._keep(base, name, lambda x: [*vars(x).values()])
                for n, thing in list(vars(base).items()):
                    part = thing.fget if issubclass(type(thing), property) else inner(thing)
                    if has(part, "__call__") or not n.startswith("__"):
                        yield part, n

    def _object(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """Note an object's own attributes, as far as the code names them."""
        self._objects.append((x, name))
        return self._attributes(x, name, self.mentioned)

    def _attributes(self, x: Any, name: str, names: set[str]) -> list[tuple[Any, str]]:
        """Note some attributes of an object or a module, and return their values."""
        named = [n for n in names if n[:2] != "__"]
        if issubclass(type(x), ModuleType):
            there = dict_of(x)
            if is_known(there):
                return []
            self._keep(x, name, lambda x: [dict_of(x).get(n, MISSING) for n in named])
            return [(there[n], f"{name}.{n}") for n in named if n in there]
        if self.reads_all or self.walks_all or walks(type(x), self.mentioned):
            every, noted = attributes_of(x), self._noted.get(id(x), set())  # these may have changed meanwhile
            self._keep(x, name, lambda x: tuple(attributes_of(x)))
            self._keep(x, name, lambda x: [own(x, n) for n in every if n not in noted])
            return [(own(x, n), f"{name}.{n}") for n in every]
        then = [own(x, n) for n in named]
        if named:
            self._noted.setdefault(id(x), set()).update(named)
            self._saved.append((x, name, lambda x: [own(x, n) for n in named], then))
        return [(found, f"{name}.{n}") for n, found in zip(named, then, strict=True)]

    def _code_runs(self, frame: Any) -> None:
        """Note everything that code can reach before it runs for the first time."""
        code, names = frame.f_code, frame.f_globals
        self.ran[code] = None
        self._entered_code.add((id(code), id(names)))
        read, written, attributes = names_of(code)
        new = set(attributes) - self.mentioned
        self.mentioned |= attributes
        self.observes_bools |= observes_bools(code, names)
        if names.get("__name__") != "contextlib":  # which asks it of exceptions
            with_free: Any = names
            if code.co_freevars and bytecode_of(code).compares:
                free = {FreeVariable(n): x for n, x in frame.f_locals.items() if n in code.co_freevars}
                with_free = ChainMap(free, names)
            self.tells_objects |= tells_objects(code, with_free)
            self.tells_own |= tells_objects(code, with_free, own=True)
        if tells_numbers(code, names):
            self.effect = self.effect or "it asks by `is` whether a number is a constant: write =="
        if written:
            asked = sorted(written)
            self._keep(names, f"the global {asked[0]}", lambda names: [names.get(n, MISSING) for n in asked])
        waiting = [(names[n], n) for n in read if n in names]
        waiting += [(sys.modules[n], n) for n in bytecode_of(code).imported if n in sys.modules]
        self.walks_all |= not COMPUTED.isdisjoint(attributes)
        self.reads_all |= not READS_ALL.isdisjoint(new)
        if new:
            for x, name in list(self._objects):
                waiting += self._attributes(x, name, new)
        self._enter(waiting)

    def _keep(self, x: Any, name: str, state: Callable[[Any], Any]) -> None:
        self._saved.append((x, name, state, state(x)))

    def compare(self, alone: bool) -> None:
        """Look for changes. Values that have changed are the function's doing, unless another thread ran meanwhile."""
        if self.effect or self.change:
            return
        for x, name, state, then in self._saved:
            if not _same(state(x), then):
                self.change = f"it changes {name}" if alone else f"it changes {name} (or another thread does)"
                self.changed = x
                return
        now = [(v._data, v.grad) for v in self._values]
        if now != self._numbers and repr(now) != repr(self._numbers):  # as text nan equals nan
            if alone:
                self.effect = "it changes the data or the gradient of a Value: do it outside of the function"
            else:
                self.change = "it changes the data or the gradient of a Value (or another thread does)"
                self.instead = "do it outside of the function"

    # -- during the run -----------------------------------------------------------------------------------------------

    def is_cache_filled(self) -> bool:
        """Return True if all that the run changed is a cache or a module that it imported: nobody else sees it."""
        return bool(self.change) and (self.changed is None or isinstance(self.changed, LRU_CACHE))

    def run(self, call: Callable[[], Any]) -> Any:
        """Make the call and return its result; afterwards `effect` and `change` say what it did."""
        before, alone = random_state(), is_alone()
        with watching():
            result = self.path.follow(call, self)
        self.tells_objects |= any(id(f) in self.seen for f in IDENTITY)
        alone = alone and is_alone()
        if self.path.has_switched:
            self.effect = self.effect or SWITCHES
        if random_state() != before:
            if self.draws or alone:
                self.effect = self.effect or DRAWS
            elif self._may_draw() and not self.change:
                self.change = "it draws random numbers (or another thread does)"
                self.instead = "draw them outside of the function, and pass them"
        if (asked := STATES & self.mentioned) and self._may_draw():
            self.effect = self.effect or (
                f"it names {min(asked)}, and a random number generator has another state each time: read the state "
                "outside of the function"
            )
        self.compare(alone)
        return result

    def _may_draw(self) -> bool:
        """Return True if the function can reach a random number generator that all share, by any name in its code."""
        if self.walks_all or not self.mentioned.isdisjoint(("random", "modules", "import_module")):
            return True
        return any(type(x) in GENERATORS or x is random for x in list(self.seen.values()))

    def is_over(self) -> bool:
        """Return True if it has an effect, so that this run will not be recorded."""
        return bool(self.effect or self.change)

    def enters(self, frame: Any) -> bool:
        """Take note of a call. Return True for code whose later calls tell nothing new."""
        code = frame.f_code
        if frame.f_globals is OF_RANDOM:
            self.draws |= frame.f_locals.get("self") is SHARED
            return False
        if (setting := setting_asked(frame)) is not None:
            self.effect = self.effect or setting
            return False
        self.asks_abstract |= code in ABSTRACT
        if not is_known(frame.f_globals):
            if is_aside(frame):
                return False
            if (id(code), id(frame.f_globals)) not in self._entered_code:
                self._code_runs(frame)
            return True
        self.reads_all |= frame.f_globals.get("__name__") == "copy"
        imports = (code.co_name, frame.f_globals.get("__name__")) == IMPORTS
        if imports:
            self.change = f"it imports {frame.f_locals.get('name')}"
            self.instead = "import it outside of the function"
        elif code is importlib.import_module.__code__:
            self._enter([(sys.modules.get(frame.f_locals["name"], MISSING), "a module")])
            return False
        return not imports

    def calls(self, frame: Any, function: Any) -> bool:
        """Take note of a call of a C function by code that is followed. Return True if its later calls tell nothing
        new.
        """
        by_user = not is_standard(frame.f_code)
        of = getattr(function, "__self__", None)
        self.draws |= draws_for_all(of)
        if _is_pure(function, by_user):
            return by_user and isinstance(of, ModuleType)
        owner = "" if of is None or isinstance(of, ModuleType) else f"{type(of).__name__}."
        self.effect = effect_of_call(frame, f"{owner}{function.__name__}")
        return False


def setting_asked(frame: Any) -> str | None:
    """Explain which of NumPy's settings code asks for, or sets, if it is the user's; None if it does not.

    They are state inside C, and an array is printed by them.
    """
    module, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
    if module.endswith("._ufunc_config") and name in SETTINGS:
        what = f"it calls numpy.{name}"
    elif module.endswith(".arrayprint"):
        what = f"it calls numpy.{name}" if "printoptions" in name else "it prints an array"
    else:
        return None
    if frame.f_back is not None and is_known(frame.f_back.f_globals):  # which is not followed
        return None
    return (
        f"{what}, which depends on settings of NumPy that may change: do that outside, and pass what it takes from it"
    )


class DrawsCheck:
    """Finds out whether a call draws random numbers, while other threads may do so too.

    Attributes:
        asks_abstract: True if it asks whether an object is of an abstract class, with which others may be registered.
        draws: True if it was seen to call a random number generator that all threads share.
    """

    def __init__(self) -> None:
        self.draws: bool = False
        self.path: CallTrace = CallTrace(set())

    def run(self, call: Callable[[], Any]) -> Any:
        """Make the call and return its result."""
        return self.path.follow(call, self)

    def is_over(self) -> bool:
        return self.draws

    def enters(self, frame: Any) -> bool:
        """Take note of a call. Return True for code whose later calls tell nothing new."""
        if frame.f_globals is not OF_RANDOM:
            return True
        self.draws |= frame.f_locals.get("self") is SHARED
        return False

    def calls(self, frame: Any, function: Any) -> bool:
        """Take note of a call of a C function. Return True if its later calls tell nothing new."""
        of = getattr(function, "__self__", None)
        self.draws |= draws_for_all(of)
        return isinstance(of, ModuleType)


def _same(now: Any, then: Any) -> bool:
    """Compare two states. Objects in lists are compared by identity; the list keeps them alive, so no id is reused."""
    if isinstance(then, list):
        return len(now) == len(then) and all(map(is_, now, then))
    return bool(now == then)


def _is_pure(function: Any, by_user: bool) -> bool:
    """Return True if a C function does nothing but compute, or change the object that it is a method of. The standard
    library (`by_user` is False) may use `id` and the like.
    """
    of = getattr(function, "__self__", None)
    if function.__name__ in (IMPURE if by_user else SAYING) and (of is builtins or isinstance(of, type)):
        return False
    if by_user and isinstance(of, ContextVar):  # its value changes between calls
        return False
    module = getattr(function, "__module__", None) or (of if isinstance(of, type) else type(of)).__module__
    if function is sys.getrecursionlimit:  # `inspect.signature` asks for it
        return not by_user
    return module.partition(".")[0] in MODULES or (module == "_thread" and not by_user)
