"""Watches a run of the user's function for side effects.

Before code runs for the first time, everything that it can reach by the names in it is noted: containers, attributes,
arrays, parameters, random number generators. Afterwards it is compared. During the run Python's profiler names the C
functions that are called: those that are not known to be pure, such as `print`, `time.time` or a file's `write`, are an
effect.
"""

from __future__ import annotations

import abc
import builtins
import importlib
import operator
import random
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from wengert.compiler.call import MISSING
from wengert.compiler.code import (
    LRU_CACHE,
    FreeVariable,
    bytecode_of,
    effect_of_call,
    is_known,
    is_standard,
    names_of,
    observes_bools,
    tells_numbers,
    tells_objects,
)
from wengert.compiler.reach.call_trace import CallTrace, is_aside
from wengert.compiler.reach.randomness import DRAWS, SHARED, draws_for_all, is_alone, random_state
from wengert.compiler.reach.settings import numpy_errors
from wengert.compiler.reach.snapshot import Snapshot
from wengert.compiler.traced import SWITCHES, watching
from wengert.ops import TABLE

__all__ = ["DRAWS", "DrawsCheck", "PurityCheck"]

SAYING = frozenset(["print", "input", "open", "breakpoint", "now", "today", "utcnow"])
IMPURE = SAYING | frozenset(["exec", "eval", "compile", "__import__", "setattr", "delattr", "id", "globals", "locals"])
MODULES = frozenset(["builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_heapq",
                     "_bisect", "_statistics", "_struct", "_json", "_sre", "re", "copy", "copyreg", "_abc", "array",
                     "_random", "decimal", "fractions", "datetime", "collections", "types", "functools", "operator",
                     "_datetime", "_decimal", "_weakref", "random", "numpy", "wengert", "_string", "weakref",
                     "_contextvars", "_collections_abc", "enum", "string", "_pickle", "_codecs", "_csv",
                     "_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2", "zlib",
                     "binascii"])  # fmt: skip
ABSTRACT = frozenset([abc.ABCMeta.__instancecheck__.__code__, abc.ABCMeta.__subclasscheck__.__code__])
OF_STATES = frozenset(["bit_generator", "get_state", "getstate"])  # they return the state of a random number generator
SETTINGS = frozenset(["getbufsize", "geterr", "geterrcall", "setbufsize", "seterr", "seterrcall"])
GENERATORS = (random.Random, np.random.RandomState, np.random.MT19937)
OF_RANDOM = vars(random)
IDENTITY = (operator.is_, operator.is_not)
IMPORTS = ("_find_and_load_unlocked", "importlib._bootstrap")  # the code that imports a module for the first time


@dataclass
class Asks:
    """What the code of a function may ask, beside the values of its numbers.

    Attributes:
        observes_bools: whether something is True or False itself.
        tells_objects: which of several equal numbers, texts, Values or containers one is.
        tells_own: that of any two objects.
        abstract: whether an object is of an abstract class, with which others may be registered.
    """

    observes_bools: bool = False
    tells_objects: bool = False
    tells_own: bool = False
    abstract: bool = False


class PurityCheck:
    """Finds the effects of a call of a function with these arguments.

    Attributes:
        ran: the code that ran, in order.
        before: what the code reaches, as it was before the run.
        asks: what the code may ask.
        change: a change that may happen only once, such as filling a cache; empty if none was seen.
        instead: what to write instead, if each run has that change.
        changed: the object that was changed; None for an import.
        draws: True if it was seen to call a random number generator that all threads share.
        numpy_errors: those of which NumPy does more than to warn, before the run.
        operations: the nodes that the run computed.
        path: the calls that were made.
    """

    def __init__(self, function: Any, arguments: Sequence[tuple[str, Any]]) -> None:
        self.ran: dict[CodeType, None] = {}
        self.asks: Asks = Asks()
        self.change: str = ""
        self.instead: str = "return it instead"
        self.changed: Any = None
        self.draws: bool = False
        self.numpy_errors: frozenset[str] = frozenset(numpy_errors())
        self.operations: int = 0
        rules = [rule for row in TABLE for rule in (row.value, row.partials)]  # they run for Values only
        self.path: CallTrace = CallTrace({id(rule.__code__) for rule in rules if hasattr(rule, "__code__")})
        self._entered_code: set[tuple[int, int]] = set()  # code that ran, and its globals
        self._effect: str = ""
        self.before: Snapshot = Snapshot(self.path.cached)
        self.before.enter([(function, "itself"), *[(x, name) for name, x in arguments]])

    @property
    def effect(self) -> str:
        """An effect that every run has, in words; empty if none was seen."""
        return self._effect or self.before.effect

    def add_effect(self, effect: str) -> None:
        """Note an effect; the first one counts."""
        self._effect = self._effect or effect

    # -- before code runs ---------------------------------------------------------------------------------------------

    def _code_runs(self, frame: Any) -> None:
        """Note everything that code can reach before it runs for the first time."""
        code, names = frame.f_code, frame.f_globals
        self.ran[code] = None
        self._entered_code.add((id(code), id(names)))
        read, written, attributes = names_of(code)
        asks = self.asks
        asks.observes_bools |= observes_bools(code, names)
        if names.get("__name__") != "contextlib":  # which asks it of exceptions
            with_free: Any = names
            if code.co_freevars and bytecode_of(code).compares:
                free = {FreeVariable(n): x for n, x in frame.f_locals.items() if n in code.co_freevars}
                with_free = ChainMap(free, names)
            asks.tells_objects |= tells_objects(code, with_free)
            asks.tells_own |= tells_objects(code, with_free, own=True)
        if tells_numbers(code, names):
            self.add_effect("it asks by `is` whether a number is a constant: write ==")
        if written:
            asked = sorted(written)
            self.before.keep(names, f"the global {asked[0]}", lambda names: [names.get(n, MISSING) for n in asked])
        waiting = [(names[n], n) for n in read if n in names]
        waiting += [(sys.modules[n], n) for n in bytecode_of(code).imported if n in sys.modules]
        self.before.mention(attributes, waiting)

    def _compare(self, alone: bool) -> None:
        """Look for changes. Values that have changed are the function's doing, unless another thread ran meanwhile."""
        if self.effect or self.change:
            return
        if (changed := self.before.changed()) is not None:
            self.changed, name = changed
            self.change = f"it changes {name}" if alone else f"it changes {name} (or another thread does)"
        elif self.before.has_changed_values():
            if alone:
                self.add_effect("it changes the data or the gradient of a Value: do it outside of the function")
            else:
                self.change = "it changes the data or the gradient of a Value (or another thread does)"
                self.instead = "do it outside of the function"

    # -- during the run -----------------------------------------------------------------------------------------------

    def is_cache_filled(self) -> bool:
        """Return True if all that the run changed is a cache or a module that it imported: nobody else sees it."""
        return bool(self.change) and (self.changed is None or isinstance(self.changed, LRU_CACHE))

    def leave_out_caches(self) -> None:
        """Count no filled cache as a change: a derivative is recorded without them."""
        if isinstance(self.changed, LRU_CACHE) and self.before.changed(LRU_CACHE) is None:
            self.change, self.changed = "", None

    def run(self, call: Callable[[], Any]) -> Any:
        """Make the call and return its result; afterwards `effect` and `change` say what it did."""
        before, alone = random_state(), is_alone()
        with watching():
            result = self.path.follow(call, self)
        self.asks.tells_objects |= any(id(f) in self.before.objects for f in IDENTITY)
        alone = alone and is_alone()
        if self.path.has_switched:
            self.add_effect(SWITCHES)
        if random_state() != before:
            if self.draws or alone:
                self.add_effect(DRAWS)
            elif self._may_draw() and not self.change:
                self.change = "it draws random numbers (or another thread does)"
                self.instead = "draw them outside of the function, and pass them"
        if (asked := OF_STATES & self.before.mentioned) and self._may_draw():
            self.add_effect(
                f"it names {min(asked)}, and a random number generator has another state each time: read the state "
                "outside of the function"
            )
        self._compare(alone)
        return result

    def _may_draw(self) -> bool:
        """Return True if the function can reach a random number generator that all share, by any name in its code."""
        if self.before.walks_all or not self.before.mentioned.isdisjoint(("random", "modules", "import_module")):
            return True
        return any(type(x) in GENERATORS or x is random for x in list(self.before.objects.values()))

    def is_over(self) -> bool:
        """Return True if it has an effect, so that this run will not be recorded."""
        return bool(self.effect or self.change)

    def enters(self, frame: Any) -> bool:
        """Take note of a call. Return True for code whose later calls tell nothing new."""
        code = frame.f_code
        if frame.f_globals is OF_RANDOM:
            self.draws |= frame.f_locals.get("self") is SHARED
            return False
        if (setting := setting_asked(frame, self.numpy_errors)) is not None:
            self.add_effect(setting)
            return False
        self.asks.abstract |= code in ABSTRACT
        if not is_known(frame.f_globals):
            if is_aside(frame):
                return False
            if (id(code), id(frame.f_globals)) not in self._entered_code:
                self._code_runs(frame)
            return True
        self.before.reads_all |= frame.f_globals.get("__name__") == "copy"
        imports = (code.co_name, frame.f_globals.get("__name__")) == IMPORTS
        if imports:
            self.change = f"it imports {frame.f_locals.get('name')}"
            self.instead = "import it outside of the function"
        elif code is importlib.import_module.__code__:
            self.before.enter([(sys.modules.get(frame.f_locals["name"], MISSING), "a module")])
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
        self.add_effect(effect_of_call(frame, f"{owner}{function.__name__}"))
        return False


def setting_asked(frame: Any, errors: frozenset[str]) -> str | None:
    """Explain which of NumPy's settings code asks for, or sets, if it is the user's; None if it does not.

    They are state inside C, and an array is printed by them. `np.errstate` may only ignore errors, and warn of them: it
    is looked at when it ends. `errors` are those of which NumPy does more than that outside.
    """
    module, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
    if module.endswith("._ufunc_config") and name in SETTINGS:
        what = f"it calls numpy.{name}"
    elif module.endswith("._ufunc_config") and name == "__exit__" and not errors.issuperset(numpy_errors()):
        what = "it lets numpy.errstate do more than warn"
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
