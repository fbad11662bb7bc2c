"""Follows a call by the events of Python's profiler: which functions it calls, in order, and what C functions raise.

Like the engine, this file runs as plain Python or compiled by Cython, with `call_trace.pxd`: there are several events
for each operation of the function.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

from wengert._forks import Lock, in_child
from wengert.compiler.code import is_known, is_standard, profiler
from wengert.compiler.reach import attributes, frozen, places, proxies
from wengert.compiler.reach.proxies import View
from wengert.compiler.traced import arrays as traced_arrays
from wengert.compiler.traced import comparisons, recorder, standins, tracers
from wengert.derivatives import AGAIN
from wengert.engine import Value
from wengert.ops import coerce

__all__ = ["CallTrace", "is_aside"]

CALL, RETURN, C_CALL, C_EXCEPTION = 0, 3, 4, 5  # as Python's C interface numbers them
EVENTS = {"call": CALL, "return": RETURN, "c_call": C_CALL, "c_exception": C_EXCEPTION}
OF_STANDINS = vars(standins)  # the globals of wrappers around what the function calls
OF_PROXIES = vars(proxies)  # the globals of the code that derives classes
REPLACED = {id(f.__code__) for f in standins.OF_PYTHON}
OWN = (attributes, coerce, comparisons, frozen, places, proxies, recorder, traced_arrays, tracers)
TRACING = {id(vars(module)) for module in OWN}
ANNOTATE = "__annotate__"  # Python 3.14 evaluates a function's annotations when they are read for the first time
PLAIN = frozenset([type(None), bool, float, int, tracers.Number, Value])  # what such code returns, without items


class Code:
    """What is known of some code, run with some globals."""

    def __init__(self, frame: Any) -> None:
        self.code: Any = frame.f_code
        self.names: Any = frame.f_globals
        self.is_known: bool = is_known(self.names)  # it is not followed
        odd = self.code.co_name == "__init_subclass__" or is_standard(self.code) or _is_written(frame)
        self.is_followed: bool = not self.is_known and not odd  # else it depends on what calls it
        self.is_apart: bool = (
            self.code is AGAIN or self.code.co_name == ANNOTATE
        )  # what it calls is not followed either
        self.is_tracing: bool = id(self.names) in TRACING
        self.is_told: bool = False  # the watcher need not be told of it again


class CallTrace:
    """The functions that were called, in order, as far as they are followed, and the errors that C functions raised.

    Many fields: the profiler calls it for each event, and finds all that it needs in one C structure.

    Args:
        cached: the ids of the code of cached functions and of operations' rules. Calls in them do not count, as they
            happen once, or only for Values.
        proxies: those of the recorded run, which freeze code that runs itself instead of a clone; None in the watched
            run.

    Attributes:
        steps: the code that was called, and the names of C functions that raised an error.
        rests: True while the events do not count.
        has_switched: True if this thread has run another greenlet meanwhile.
    """

    def __init__(self, cached: set[int], proxies: Any = None) -> None:
        self.steps: list[Any] = []
        self.rests: bool = False
        self.has_switched: bool = False
        self.cached: set[int] = cached
        self.proxies: Any = proxies
        self.watcher: Any = None
        self._codes: dict[int, Code] = {}
        self._pure: set[Any] = set()  # functions of modules in C
        self._inside: Any = None  # the frame of a function in `cached`
        self._caller: Any = None  # what `returned` returns
        self._called: Any = None
        self._value: Any = None
        self._tracer: Any = None  # the user's, of greenlets

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        if event in EVENTS:
            handle(self, frame, EVENTS[event], arg)

    def returned(self) -> tuple[Any, Any, Any]:
        """Return the last return: the frame returned to, the code that returned, and the value."""
        return self._caller, self._called, self._value

    def start(self) -> None:
        """Go on, after the profiler was switched off."""
        profiler.start(self, handle)

    def switched(self, event: Any, greenlets: Any) -> None:
        """Leave the function alone once this thread runs another greenlet, whose code is not the function's."""
        self.rests = self.has_switched = True
        sys.setprofile(None)
        recorder.leave(None if self.proxies is None else self.proxies.recorder)
        if self._tracer is not None:  # the user's
            self._tracer(event, greenlets)

    def follow(self, call: Callable[[], Any], watcher: Any = None) -> Any:
        """Make a call, without collections of garbage, which would run finalizers of other code within it.

        Args:
            call: it takes nothing.
            watcher: a PurityCheck, which is told of code that runs for the first time, and of C functions.
        """
        self.watcher = watcher
        settrace = getattr(sys.modules.get("greenlet"), "settrace", None)  # whoever has greenlets has imported it
        try:
            _rest()
            self._tracer = None if settrace is None else settrace(self.switched)
            try:
                self.start()
                return call()
            finally:
                sys.setprofile(None)
                if settrace is not None:
                    settrace(self._tracer)
        finally:
            _go_on()
            self.watcher = self._caller = self._called = self._value = self._inside = None
            self._codes.clear()


def handle(trace: Any, frame: Any, what: Any, arg: Any) -> Any:
    """Handle an event of Python's profiler."""
    self = trace  # which is a C structure, if this is compiled
    if self.rests:
        return 0
    if what == RETURN:
        if frame is self._inside:
            self._inside = None
        if self.watcher is not None:
            return 0
    code = frame.f_code
    seen = self._codes.get(id(code))
    if seen is None or seen.names is not frame.f_globals:
        seen = self._codes[id(code)] = Code(frame)
    if what == RETURN:
        if not (seen.is_tracing and type(arg) in PLAIN):
            self._caller, self._called, self._value = frame.f_back, code, arg
        return 0
    if self.watcher is not None:
        if what == CALL and not seen.is_told:
            seen.is_told = self.watcher.enters(frame)
            self.rests = self.watcher.is_over()
        elif what == C_CALL and not seen.is_known and arg not in self._pure:
            if self.watcher.calls(frame, arg):
                self._pure.add(arg)
            self.rests = self.watcher.is_over()
    if what == C_CALL or self.rests or self._inside is not None:
        return 0
    if what == CALL and seen.is_apart:
        self._inside = frame
    elif seen.is_followed or not (seen.is_known or is_aside(frame)):
        if what == C_EXCEPTION:
            if id(arg) not in standins.STANDINS:
                self.steps.append(arg.__name__)
        elif id(code) in self.cached:
            self._inside = frame
        else:
            self.steps.append(code)
            if self.proxies is not None and type(seen.names) is not View:
                self.proxies.frozen.uncloned(frame)
    return 0


def is_aside(frame: Any) -> bool:
    """Return True for a frame that is not the function's doing: code of the standard library, or a generated method,
    that is called by code which is not followed, or in a function that `standins` replaces.
    """
    if frame.f_code.co_name == "__init_subclass__" and frame.f_back and frame.f_back.f_globals is OF_PROXIES:
        return True
    while frame is not None and (is_standard(frame.f_code) or _is_written(frame)):
        if id(frame.f_code) in REPLACED:
            return True
        frame = frame.f_back
        while frame is not None and frame.f_globals is OF_STANDINS:
            frame = frame.f_back
        if frame is None or is_known(frame.f_globals):
            return True
    return False


def _is_written(frame: Any) -> bool:
    """Return True for a generated method of a named tuple or a dataclass."""
    if frame.f_code.co_filename != "<string>":
        return False
    module = str(frame.f_globals.get("__name__"))
    return module.startswith("namedtuple_") or frame.f_code.co_qualname.startswith("__create_fn__.")


# The collector serves all threads: it rests while any of them makes such a call. `gc.disable()` stays the user's.
_resting: list[int] = []  # the threads for which it rests
_threshold = 0  # what it was before
_lock = Lock()


def _rest() -> None:
    global _threshold
    with _lock:
        if not _resting:
            _threshold = gc.get_threshold()[0]
        _resting.append(threading.get_ident())
        gc.set_threshold(0)


def _go_on() -> None:
    with _lock:
        if threading.get_ident() in _resting:
            _resting.remove(threading.get_ident())
        if not _resting and not gc.get_threshold()[0]:  # else the function has set another one
            gc.set_threshold(_threshold)


def _in_child() -> None:
    """Forget the threads that a forked child does not have."""
    others = [each for each in _resting if each != threading.get_ident()]
    for each in others:
        _resting.remove(each)
    if others and not _resting:
        gc.set_threshold(_threshold)


in_child(_in_child)
