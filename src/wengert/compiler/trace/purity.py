"""A run of the user's function is watched: whether it does anything but compute.

Before code runs for the first time, all that it can reach by the names in it is noted: containers, attributes, arrays,
parameters, generators of random numbers. Afterwards it is compared. While it runs Python names the C functions that
are called: those that are not known to be pure, such as `print`, `time.time` or a file's `write`, are an effect.
"""

from __future__ import annotations

import builtins
import dis
import functools
import gc
import importlib
import random
import sys
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from itertools import pairwise
from operator import attrgetter, is_, methodcaller
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from wengert.compiler.call import MISSING, CallPath, look
from wengert.compiler.trace import proxies, standins
from wengert.compiler.trace.known import LRU_CACHE, PLAIN, is_known, is_known_module, is_python, is_standard
from wengert.compiler.trace.proxies import CELL, READS_ALL, View, attributes_of, closes_over, names_of, own, spelt
from wengert.compiler.trace.randomness import random_state
from wengert.compiler.trace.recorder import watching
from wengert.engine import Value
from wengert.ops import TABLE

__all__ = ["DRAWS", "CallTrace", "PurityCheck"]

DRAWS = "it draws random numbers"

SAYING = frozenset(["print", "input", "open", "breakpoint", "now", "today", "utcnow"])
IMPURE = SAYING | frozenset(["exec", "eval", "compile", "__import__", "setattr", "delattr", "id", "globals", "locals"])
MODULES = frozenset(["builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_heapq",
                     "_bisect", "_statistics", "_struct", "_json", "_sre", "re", "copy", "copyreg", "_abc", "array",
                     "_random", "decimal", "fractions", "datetime", "collections", "types", "functools", "operator",
                     "_datetime", "_decimal", "_weakref", "random", "numpy", "wengert", "_string", "weakref",
                     "_contextvars", "_collections_abc", "enum", "string", "_pickle", "_codecs", "_csv"])  # fmt: skip
_NOTHING: list[Any] = []
CONSUMED = tuple(map(type, [iter(_NOTHING), iter(()), iter({}), iter(range(0)), zip(), map(abs, _NOTHING),
                            enumerate(()), filter(None, _NOTHING), reversed(_NOTHING),
                            (x for x in _NOTHING)]))  # fmt: skip
TELLING = frozenset(["COMPARE_OP", "CONTAINS_OP", "LOAD_DEREF", "LOAD_FAST", "UNARY_NOT"])  # in front of an `is`
COMPUTED = frozenset(["getattr", "attrgetter", "methodcaller", "__getattribute__"])  # by which names are computed
OF_STANDINS = vars(standins)  # which stand between the function and what it calls
OF_PROXIES = vars(proxies)  # which derive classes
IMPORTS = ("_find_and_load_unlocked", "importlib._bootstrap")  # what runs where a module is imported for the first time


class PurityCheck:
    """What a call of a function with these arguments does besides giving its result.

    Attributes:
        ran: the code that ran, in its order.
        seen: what was there before, as far as the code reaches it, by identity.
        mentioned: the names in it.
        reads_all: whether all attributes of all objects count, not only those that are mentioned.
        tells_bools: whether it asks if something is True, or is False, itself.
        effect: what it did that it does each time, in words; empty while nothing was seen.
        change: what it changed, perhaps for once, as a cache; empty if nothing.
        path: what it called.
    """

    def __init__(self, function: Any, arguments: Sequence[tuple[str, Any]]) -> None:
        self.ran: dict[CodeType, None] = {}
        self.mentioned: set[str] = set()
        self.tells_bools: bool = False
        self.effect: str = ""
        self.change: str = ""
        rules = [rule for row in TABLE for rule in (row.value, row.partials)]  # called for a Value, not for a number
        self.path: CallTrace = CallTrace({getattr(rule, "__code__", None) for rule in rules} - {None})
        self._saved: list[tuple[Any, str, Callable[[Any], Any], Any]] = []
        self._values: list[Value] = []
        self._numbers: list[tuple[float, float]] = []
        self._objects: list[tuple[Any, str]] = []  # whose attributes are looked at where they are named
        self.seen: dict[int, Any] = {}
        self._classes: set[type] = set()
        self.reads_all: bool = False
        self.walks_all: bool = False  # whether names are computed, so that all attributes are looked at for effects
        self._entered_code: set[tuple[int, int]] = set()  # code that ran, and the globals with which
        self._enter([(function, "itself"), *[(x, name) for name, x in arguments]])

    # -- before and after ---------------------------------------------------------------------------------------------

    def _enter(self, waiting: list[tuple[Any, str]]) -> None:
        """Note all that can be reached from some things by the names that are known by now."""
        while waiting:
            x, name = waiting.pop()
            kind = type(x)
            if not (kind is float or kind in PLAIN or x is MISSING or id(x) in self.seen):
                self.seen[id(x)] = x
                waiting += self._entered(x, kind, name)

    def _entered(self, x: Any, kind: Any, name: str) -> Any:
        """Take in one thing; what can be reached from it, but for the attributes of an object."""
        if isinstance(x, Value):
            self._values.append(x)
            self._numbers.append((x._data, x.grad))
            return ()
        if kind is FunctionType:
            found = [(look(CELL, cell, None), free) for free, cell in closes_over(x)]
            for free, cell in closes_over(x):
                self._keep(cell, free, lambda cell: [look(CELL, cell, None)])
            wrapped = getattr(x, "__wrapped__", None)
            held = [(each, x.__name__) for each in (x.__defaults__, x.__kwdefaults__, wrapped) if each]
            return [*found, *held, *self._object(x, name)]
        if kind is MethodType:
            return (x.__func__, name), (x.__self__, name)
        if isinstance(x, LRU_CACHE):
            self.path.cached.add(getattr(x.__wrapped__, "__code__", None))
            self._keep(x, f"the cache of {name}", lambda x: x.cache_info()[1::2])
            return ((x.__wrapped__, name),)
        if isinstance(x, (BuiltinFunctionType, MethodWrapperType)):
            of = x.__self__
            return () if of is None or isinstance(of, (ModuleType, type)) else ((of, name),)
        if isinstance(x, (attrgetter, methodcaller)):  # which name what no code names
            self.walks_all = True
            return [pair for y, of in list(self._objects) for pair in self._attributes(y, of, set())]
        if isinstance(x, functools.partial):
            return (x.func, name), (x.args, name), (x.keywords, name)
        if isinstance(x, CallPath):  # what a compiled function remembers of its calls is no effect
            return [(x.function, name)]
        if isinstance(x, tuple):
            return [(item, f"{name}[{n}]") for n, item in enumerate(x) if type(item) is not float]
        if isinstance(x, (list, deque)):
            self._keep(x, name, list)
            found = [(item, f"{name}[{n}]") for n, item in enumerate(x) if type(item) is not float]
            return found if kind in (list, deque) else [*found, *self._object(x, name)]
        if isinstance(x, dict):
            self._keep(x, name, lambda x: [*x, *x.values()])
            found = [(item, f"{name}[{spelt(key)}]") for key, item in x.items() if type(item) is not float]
            return found if kind is dict else [*found, *self._object(x, name)]
        if isinstance(x, (set, bytearray, array)):
            self._keep(x, name, frozenset if isinstance(x, set) else bytes)
            return [(item, name) for item in x] if isinstance(x, set) else ()
        if isinstance(x, np.ndarray):
            if x.dtype != object:
                self._keep(x, name, lambda x: (x.shape, zlib.crc32(x.tobytes())))
                return ()
            self._keep(x, name, lambda x: x.ravel().tolist())
            return [(item, name) for item in x.ravel().tolist()]
        if isinstance(x, random.Random):
            self._keep(x, name, lambda x: x.getstate())
        elif isinstance(x, np.random.Generator):
            self._keep(x, name, lambda x: str(x.bit_generator.state))
        elif isinstance(x, np.random.RandomState):
            self._keep(x, name, lambda x: str(x.get_state()))
        elif isinstance(x, CONSUMED) or (hasattr(kind, "__next__") and not is_python(kind)):
            self.effect = self.effect or f"it reads {name}, an iterator, which can be read once"
        elif isinstance(x, type):
            return self._of_class(x, name)
        else:
            return [(kind, kind.__name__), *self._object(x, name)]
        return ()

    def _of_class(self, x: type, name: str) -> Iterator[tuple[Any, str]]:
        for base in x.__mro__:
            if is_python(base) and base not in self._classes:
                self._classes.add(base)
                self._keep(base, name, lambda x: [*vars(x).values()])
                for n, thing in list(vars(base).items()):
                    inner = getattr(thing, "__func__", getattr(thing, "fget", thing))
                    if callable(inner) or not n.startswith("__"):
                        yield inner, n

    def _object(self, x: Any, name: str) -> list[tuple[Any, str]]:
        """Look at what an object has by itself, as far as it is named."""
        self._objects.append((x, name))
        return self._attributes(x, name, self.mentioned)

    def _attributes(self, x: Any, name: str, names: set[str]) -> list[tuple[Any, str]]:
        """Note what an object has under some names, and what these are; of a module what is in it."""
        if isinstance(x, ModuleType):
            there = vars(x)
            if is_known_module(there):
                return []
            named = [n for n in names if n[:2] != "__"]
            self._keep(x, name, lambda x: [vars(x).get(n, MISSING) for n in named])
            return [(there[n], f"{name}.{n}") for n in named if n in there]
        if self.reads_all or self.walks_all:
            self._keep(x, name, lambda x: [getattr(x, n, None) for n in attributes_of(x)])
            return [(getattr(x, n), f"{name}.{n}") for n in attributes_of(x)]
        named = [n for n in names if n[:2] != "__"]
        then = [own(x, n) for n in named]
        if named:
            self._saved.append((x, name, lambda x: [own(x, n) for n in named], then))
        return [(found, f"{name}.{n}") for n, found in zip(named, then, strict=True)]

    def _code_runs(self, frame: Any) -> None:
        """Code is about to run for the first time: note what it can reach."""
        code, names = frame.f_code, frame.f_globals
        self.ran[code] = None
        self._entered_code.add((id(code), id(names)))
        read, written, attributes = names_of(code)
        new = set(attributes) - self.mentioned
        self.mentioned |= attributes
        self.tells_bools |= tells_bools(code)
        if written:
            asked = sorted(written)
            self._keep(names, f"the global {asked[0]}", lambda names: [names.get(n, MISSING) for n in asked])
        waiting = [(names[n], n) for n in read if n in names]
        waiting += [(sys.modules[n], n) for n in imported_by(code) if n in sys.modules]
        self.walks_all |= not COMPUTED.isdisjoint(attributes)
        if not self.reads_all and not READS_ALL.isdisjoint(new):
            self.reads_all = True
        if new:
            for x, name in list(self._objects):
                waiting += self._attributes(x, name, new)
        self._enter(waiting)

    def _keep(self, x: Any, name: str, state: Callable[[Any], Any]) -> None:
        self._saved.append((x, name, state, state(x)))

    def compare(self) -> None:
        """What is another now than it was."""
        if self.effect or self.change:
            return
        for x, name, state, then in self._saved:
            if not _same(state(x), then):
                self.change = f"it changes {name}"
                return
        now = [(v._data, v.grad) for v in self._values]
        if now != self._numbers and repr(now) != repr(self._numbers):  # in which a nan is equal to itself
            self.effect = "it changes the data or the gradient of a Value"

    # -- while it runs ------------------------------------------------------------------------------------------------

    def run(self, call: Callable[[], Any]) -> Any:
        """What the call gives; afterwards `effect` and `change` say what it did."""
        before = random_state()
        sys.setprofile(self._event)
        try:
            with watching():
                result = call()
        finally:
            sys.setprofile(None)
        if random_state() != before:
            self.effect = self.effect or DRAWS
        self.compare()
        return result

    def _event(self, frame: Any, event: str, arg: Any) -> None:
        code = frame.f_code
        if self.effect or self.change:  # no recording is made of this run
            return
        if event == "call" and is_known(code, frame.f_globals):
            self.reads_all |= frame.f_globals.get("__name__") == "copy"
            if code is importlib.import_module.__code__:
                self._enter([(sys.modules.get(frame.f_locals["name"], MISSING), "a module")])
        elif event == "call" and (id(code), id(frame.f_globals)) not in self._entered_code and not is_aside(frame):
            self._code_runs(frame)
        if event == "call" and (code.co_name, frame.f_globals.get("__name__")) == IMPORTS:
            self.change = f"it imports {frame.f_locals.get('name')}"
        self.path.note(frame, event, arg)
        if event != "c_call" or is_known(code, frame.f_globals) or _is_pure(arg, not is_standard(code)):
            return
        if not _is_collecting(frame):
            of = getattr(arg, "__self__", None)
            owner = "" if of is None or isinstance(of, ModuleType) else f"{type(of).__name__}."
            self.effect = f"it calls {owner}{arg.__name__}, whose effects or results are not the same each time"


class CallTrace:
    """The functions that were called, in order, as far as they are followed, and the errors that C functions raised.

    Args:
        cached: the code of functions whose results are kept, and of operations' rules: what happens there is no part of
            it, as it happens once, or only of Values.
        proxies: of the recorded run, which are told of code that does not run as a clone; None in the watched run.

    Attributes:
        returned: the frame that something was last returned to, by what code, and that.
    """

    def __init__(self, cached: set[Any], proxies: Any = None) -> None:
        self.steps: list[Any] = []
        self.returned: tuple[Any, Any, Any] = None, None, None
        self.cached: set[Any] = cached
        self.proxies: Any = proxies
        self._inside: Any = None  # the frame of a cached function

    def note(self, frame: Any, event: str, arg: Any) -> None:
        """An event of Python's profiler."""
        if self.proxies is not None and self.proxies.recorder.looking:  # an expression is evaluated once more
            return
        if event == "return":
            self.returned = frame.f_back, frame.f_code, arg
            if frame is self._inside:
                self._inside = None
        elif event == "call":
            if self._inside is None and is_step(frame):
                if frame.f_code in self.cached:
                    self._inside = frame
                    return
                self.steps.append(frame.f_code)
                if self.proxies is not None and type(frame.f_globals) is not View:
                    self.proxies.unviewed(frame)
        elif event == "c_exception" and self._inside is None and id(arg) not in standins.STANDINS and is_step(frame):
            self.steps.append(arg.__name__)

    def follow(self, call: Callable[[], Any]) -> Any:
        """What a call gives."""
        sys.setprofile(self.note)
        try:
            return call()
        finally:
            sys.setprofile(None)
            self.returned = None, None, None


@functools.lru_cache(4096)
def imported_by(code: CodeType) -> tuple[str, ...]:
    """The modules that code imports, by their names."""
    return tuple([step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"])


@functools.lru_cache(4096)
def tells_bools(code: CodeType) -> bool:
    """Return True for code that may ask whether a bool is another one: ``x is True``, ``(a > 0) is b``."""
    pairs = pairwise(dis.get_instructions(code))
    asked = [a for a, b in pairs if b.opname == "IS_OP"]
    return any(a.opname in TELLING or a.argval in (True, False, "True_", "False_") for a in asked)


def is_step(frame: Any) -> bool:
    """Return True for a frame of code that is followed, and the function's own."""
    return not is_known(frame.f_code, frame.f_globals) and not is_aside(frame)


def is_aside(frame: Any) -> bool:
    """Whether a frame is none of the function's own: code of Python's library, or a method that this wrote, that code
    which is not followed calls; what Python calls when it collects garbage.
    """
    if frame.f_code in _collecting():
        return True
    if frame.f_code.co_name == "__init_subclass__" and frame.f_back and frame.f_back.f_globals is OF_PROXIES:
        return True
    while frame is not None and (is_standard(frame.f_code) or _is_written(frame)):
        frame = frame.f_back
        while frame is not None and frame.f_globals is OF_STANDINS:
            frame = frame.f_back
        if frame is None or is_known(frame.f_code, frame.f_globals):
            return True
    return False


def _is_written(frame: Any) -> bool:
    """Whether a frame is of a method that Python's library wrote, for a named tuple or a dataclass."""
    if frame.f_code.co_filename != "<string>":
        return False
    module = str(frame.f_globals.get("__name__"))
    return module.startswith("namedtuple_") or frame.f_code.co_qualname.startswith("__create_fn__.")


def _is_collecting(frame: Any) -> bool:
    """Whether a frame belongs to what somebody has Python call whenever it collects garbage."""
    called = _collecting()
    while frame is not None and frame.f_code not in called:
        frame = frame.f_back
    return frame is not None


def _collecting() -> list[Any]:
    """The code of what Python calls when it collects garbage."""
    return [getattr(callback, "__code__", None) for callback in gc.callbacks]


def _same(now: Any, then: Any) -> bool:
    """Whether two states are one. Things in lists are told by identity; held there, they leave theirs to no other."""
    if isinstance(then, list):
        return len(now) == len(then) and all(map(is_, now, then))
    return bool(now == then)


def _is_pure(function: Any, by_user: bool) -> bool:
    """Whether a C function, or a method of a type of C, does nothing but compute, or change what it belongs to.

    Args:
        function: what is called.
        by_user: whether code calls it that is not Python's own library, which knows what it does with an `id`.
    """
    of = getattr(function, "__self__", None)
    if function.__name__ in (IMPURE if by_user else SAYING) and (of is builtins or isinstance(of, type)):
        return False
    if by_user and isinstance(of, ContextVar):  # whose number of now it would read
        return False
    module = getattr(function, "__module__", None) or (of if isinstance(of, type) else type(of)).__module__
    return module.partition(".")[0] in MODULES or (module == "_thread" and not by_user)
