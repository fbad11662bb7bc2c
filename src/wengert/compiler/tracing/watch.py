"""A run of the user's function is watched: whether it does anything but compute.

Before and after it what the function can reach is compared: containers, attributes, arrays, parameters, generators of
random numbers. While it runs Python names the C functions that its code calls: those that are not known to be pure,
such as `print`, `time.time` or a file's `write`, are an effect.
"""

from __future__ import annotations

import builtins
import ctypes
import dis
import functools
import gc
import random
import sys
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import pairwise
from operator import is_
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.compiler.callpath import CallPath
from wengert.compiler.outside import Contents
from wengert.compiler.tracing.recorder import watching
from wengert.compiler.tracing.standins import STANDINS
from wengert.compiler.tracing.surroundings import (
    PLAIN,
    attributes_of,
    codes_of,
    globals_of,
    is_users,
    is_users_module,
    spelt,
)
from wengert.engine import Value
from wengert.ops import TABLE

__all__ = ["DRAWS", "PlainRun", "Trail", "random_state"]

DRAWS = "it draws random numbers"

SAYING = frozenset(["print", "input", "open", "breakpoint", "now", "today", "utcnow"])
IMPURE = SAYING | frozenset(["exec", "eval", "compile", "__import__", "setattr", "delattr", "id", "globals", "locals"])
MODULES = frozenset(["builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_heapq",
                     "_bisect", "_statistics", "_struct", "_json", "_sre", "re", "copy", "copyreg", "_abc", "array",
                     "_random", "decimal", "fractions", "datetime", "collections", "types", "functools", "operator",
                     "_datetime", "_decimal", "_weakref", "random", "numpy", "wengert", "_string", "weakref",
                     "_contextvars", "_collections_abc", "enum", "string", "_pickle", "_codecs", "_csv"])  # fmt: skip
MERSENNE = 4 * (624 + 1)  # bytes of NumPy's generator: its numbers, and the place of the next one
_NOTHING: list[Any] = []
CONSUMED = tuple(map(type, [iter(_NOTHING), iter(()), iter({}), iter(range(0)), zip(), map(abs, _NOTHING),
                            enumerate(()), filter(None, _NOTHING), reversed(_NOTHING),
                            (x for x in _NOTHING)]))  # fmt: skip
CACHED = type(functools.lru_cache(len))


class PlainRun:
    """What a call of a function with these arguments does besides giving its result.

    Attributes:
        mentioned: the names in the code that it can reach.
        tells_bools: whether it asks if something is True, or is False, itself.
        effect: what it did, in words; empty while nothing was seen.
        path: what it called.
    """

    def __init__(self, function: Any, arguments: Sequence[tuple[str, Any]]) -> None:
        self.mentioned: set[str] = set()
        self.tells_bools: bool = False
        self.effect: str = ""
        rules = [rule for row in TABLE for rule in (row.value, row.partials)]  # called for a Value, not for a number
        self.path: Trail = Trail({getattr(rule, "__code__", None) for rule in rules} - {None})
        self._kept: list[tuple[Any, str, Callable[[Any], Any], Any]] = []
        self._values: list[Value] = []
        self._walk([(function, "itself"), *[(x, name) for name, x in arguments]])
        self._numbers: list[tuple[float, float]] = [(v._data, v.grad) for v in self._values]

    # -- before and after ---------------------------------------------------------------------------------------------

    def _walk(self, waiting: list[tuple[Any, str]]) -> None:
        seen: dict[int, Any] = {}
        modules: list[tuple[ModuleType, str]] = []
        looked_at: set[tuple[str, str]] = set()  # names in them
        while waiting:
            x, name = waiting.pop()
            kind = type(x)
            if not (kind is float or kind in PLAIN or id(x) in seen):
                seen[id(x)] = x
                if not isinstance(x, ModuleType):
                    waiting += self._entered(x, kind, name)
                elif is_users_module(x.__name__):
                    modules.append((x, name))
            if not waiting:  # by now all code has been seen that may name something in a module
                for module, name in modules:
                    for n in self.mentioned & vars(module).keys():
                        if (module.__name__, n) not in looked_at:
                            looked_at.add((module.__name__, n))
                            waiting.append((vars(module)[n], f"{name}.{n}"))

    def _entered(self, x: Any, kind: Any, name: str) -> Any:
        """Take in one thing; what can be reached from it."""
        if isinstance(x, Value):
            self._values.append(x)
            return ()
        if kind is FunctionType:
            return self._names(x) if is_users(x.__code__.co_filename) or name == "itself" else ()
        if kind is MethodType:
            return (x.__func__, name), (x.__self__, name)
        if isinstance(x, CACHED):
            self.path.cached.add(getattr(x.__wrapped__, "__code__", None))
        if isinstance(x, functools.partial):
            return (x.func, name), (x.args, name), (x.keywords, name)
        if isinstance(x, CallPath):  # what a compiled function remembers of its calls is no effect
            return [(x.function, name)]
        if kind is tuple:
            return [(item, f"{name}[{n}]") for n, item in enumerate(x)]
        if isinstance(x, (list, deque)):
            self._keep(x, name, list)
            return [(item, f"{name}[{n}]") for n, item in enumerate(x)]
        if isinstance(x, dict):
            self._keep(x, name, lambda x: [*x, *x.values()])
            return [(item, f"{name}[{spelt(key)}]") for key, item in x.items()]
        if isinstance(x, (set, bytearray, array)):
            self._keep(x, name, frozenset if isinstance(x, set) else bytes)
            return ()
        if isinstance(x, np.ndarray):
            self._keep(
                x, name, lambda x: x.ravel().tolist() if x.dtype == object else (x.shape, zlib.crc32(x.tobytes()))
            )
            return [(item, name) for item in x.ravel().tolist()] if x.dtype == object else ()
        if isinstance(x, random.Random):
            self._keep(x, name, lambda x: x.getstate())
        elif isinstance(x, np.random.Generator):
            self._keep(x, name, lambda x: str(x.bit_generator.state))
        elif isinstance(x, np.random.RandomState):
            self._keep(x, name, lambda x: str(x.get_state()))
        elif isinstance(x, CONSUMED) or (hasattr(kind, "__next__") and not is_users_module(kind.__module__)):
            self.effect = self.effect or f"it reads {name}, an iterator, which can be read once"
        elif isinstance(x, type):
            return self._of_class(x, name) if is_users_module(x.__module__) else ()
        elif is_users_module(kind.__module__) or hasattr(x, "__dict__"):
            own = is_users_module(kind.__module__)
            names = [n for n in attributes_of(x) if own or not n.startswith("_")]  # else what a library keeps to itself
            self._keep(
                x, name, lambda x: [getattr(x, n, None) for n in attributes_of(x) if own or not n.startswith("_")]
            )
            return [(kind, kind.__name__), *[(getattr(x, n), f"{name}.{n}") for n in names]]
        return ()

    def _of_class(self, x: Any, name: str) -> Any:
        self._keep(x, name, lambda x: [*vars(x).values()])
        things = [
            (thing, n) for base in x.__mro__ if is_users_module(base.__module__) for n, thing in vars(base).items()
        ]
        inner = [getattr(thing, "__func__", getattr(thing, "fget", thing)) for thing, _ in things]
        return [
            (thing, n) for thing, (_, n) in zip(inner, things, strict=True) if not n.startswith("__") or callable(thing)
        ]

    def _names(self, f: FunctionType) -> Any:
        found: list[tuple[Any, str]] = []
        for code in codes_of(f.__code__):
            self.mentioned.update(code.co_names)
            steps = pairwise(dis.get_instructions(code))  # is there an ``x is True``?
            self.tells_bools |= any(b.opname == "IS_OP" and a.argval in (True, False) for a, b in steps)
        for name in dict.fromkeys(globals_of(f.__code__)):
            if name in f.__globals__:
                found.append((f.__globals__[name], name))
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self._keep(cell, name, lambda cell: [Contents(cell)(None)])
            found.append((Contents(cell)(None), name))
        written = sorted(globals_of(f.__code__, ("STORE_GLOBAL", "DELETE_GLOBAL")))
        if written:
            self.effect = self.effect or f"it sets the global {written[0]}"
        return [*found, *[(x, f.__name__) for x in (f.__defaults__, f.__kwdefaults__, vars(f)) if x]]

    def _keep(self, x: Any, name: str, state: Callable[[Any], Any]) -> None:
        self._kept.append((x, name, state, state(x)))

    def compare(self) -> None:
        """What is another now than it was."""
        if self.effect:
            return
        for x, name, state, then in self._kept:
            if not _same(state(x), then):
                self.effect = f"it changes {name}"
                return
        now = [(v._data, v.grad) for v in self._values]
        if now != self._numbers and repr(now) != repr(self._numbers):  # in which a nan is equal to itself
            self.effect = "it changes the data or the gradient of a Value"

    # -- while it runs ------------------------------------------------------------------------------------------------

    def run(self, call: Callable[[], Any]) -> Any:
        """What the call gives; afterwards `effect` says what it did."""
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
        self.path.note(frame, event, arg)
        if event == "c_call":
            pure = self.effect or code.co_filename.startswith(PACKAGE) or _is_pure(arg, is_users_code(code))
            if not pure and not _is_collecting(frame):
                of = getattr(arg, "__self__", None)
                owner = "" if of is None or isinstance(of, ModuleType) else f"{type(of).__name__}."
                self.effect = f"it calls {owner}{arg.__name__}, whose effects or results are not the same each time"


def random_state() -> Any:
    """The state of the random numbers that everybody draws from."""
    shared: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(shared) is np.random.MT19937:  # it is read as it lies there: to ask for it takes 20 µs
        return random.getstate(), ctypes.string_at(shared.ctypes.state_address, MERSENNE)
    return random.getstate(), str(shared.state)


class Trail:
    """The functions of the user's that were called, in order, and the errors that C functions raised.

    Args:
        cached: the code of functions whose results are kept, and of operations' rules: what happens there is no part of
            it, as it happens once, or only of Values.

    Attributes:
        returned: the frame that something was last returned to, by what code, and that.
    """

    def __init__(self, cached: set[Any]) -> None:
        self.steps: list[Any] = []
        self.returned: tuple[Any, Any, Any] = None, None, None
        self.cached: set[Any] = cached
        self._inside: Any = None  # the frame of a cached function

    def note(self, frame: Any, event: str, arg: Any) -> None:
        """An event of Python's profiler."""
        if event == "return":
            self.returned = frame.f_back, frame.f_code, arg
            if frame is self._inside:
                self._inside = None
        elif event == "call":
            if self._inside is None and _is_step(frame):
                if frame.f_code in self.cached:
                    self._inside = frame
                else:
                    self.steps.append(frame.f_code)
        elif event == "c_exception" and self._inside is None and _is_step(frame) and id(arg) not in STANDINS:
            self.steps.append(arg.__name__)

    def follow(self, call: Callable[[], Any]) -> Any:
        """What a call gives."""
        sys.setprofile(self.note)
        try:
            return call()
        finally:
            sys.setprofile(None)
            self.returned = None, None, None


PACKAGE = __file__.rpartition("compiler")[0]


@functools.lru_cache(4096)
def is_users_code(code: CodeType) -> bool:
    """Whether code is the user's."""
    return is_users(code.co_filename)


def _is_step(frame: Any) -> bool:
    """Whether a frame is the user's: no method that Python wrote, as for a named tuple, and that others call; nothing
    that Python calls when it collects garbage.
    """
    code, caller = frame.f_code, frame.f_back
    if not is_users_code(code):
        return False
    written = code.co_filename == "<string>" and caller and not is_users_code(caller.f_code)
    return not written and code not in _collecting()


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
        by_user: whether the user's own code calls it; a library knows what it does with an `id`.
    """
    of = getattr(function, "__self__", None)
    if function.__name__ in (IMPURE if by_user else SAYING) and (of is builtins or isinstance(of, type)):
        return False
    if by_user and isinstance(of, ContextVar):  # whose number of now it would read
        return False
    module = getattr(function, "__module__", None) or (of if isinstance(of, type) else type(of)).__module__
    return module.partition(".")[0] in MODULES or (module == "_thread" and not by_user)
