"""What one run of the user's function has shown: its guards, what integers chose, why it cannot be recorded.

While a thread records, the engine tells of what is read, compared or overwritten: `.data` yields a traced `Number`, a
comparison a traced `Bool`, which is noted as a guard where its truth is asked for: later runs must answer alike. What
cannot be recorded ends the recording.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import nan
from typing import Any

from wengert import node
from wengert._forks import in_child
from wengert.compiler.trace.tracers import (
    HOLDS,
    Integer,
    Number,
    as_operand,
    compared,
    is_traced,
    number_of,
    values_in,
)
from wengert.engine import Value
from wengert.errors import Line, running
from wengert.ops import BY_NAME, Op, tell_recording

__all__ = ["PATHS", "Guard", "Opaque", "Recorder", "Unrecordable", "is_watched", "recorder_of_thread", "tracing"]
__all__ += ["watching"]

STOP = BY_NAME["stop_gradient"]
PATHS = 8  # the most ways through the branches of a user's rule that are written out


class Unrecordable(Exception):  # noqa: N818  (no fault: a reason to stay with the engine)
    """Why a function cannot be recorded; the message names the line and what to write instead."""


class Opaque(Exception):  # noqa: N818  (a reason to leave an operation what it is)
    """A rule of an operation takes a number out."""


@dataclass(frozen=True)
class Guard:
    """A comparison that the recorded run made, and its outcome: other runs must come to the same."""

    how: str  # a name in HOLDS
    left: Any  # a Value, or a float
    right: Any
    outcome: bool
    line: Line | None
    words: str = field(default="", compare=False, repr=False)  # the comparison, as a message names it

    def without_values(self, words: str = "") -> Guard:
        """The same for keeping: a Value would keep the whole graph that it was computed from."""
        left, right = (nan if isinstance(side, Value) else float(side) for side in (self.left, self.right))
        return Guard(self.how, left, right, self.outcome, self.line, words)


@dataclass
class Recorder:
    """What one run of a function has shown."""

    guards: dict[tuple[Any, ...], Guard] = field(default_factory=dict)
    picked: list[tuple[Integer, list[Any]]] = field(default_factory=list)  # what an integer chose from at run time
    fallback_reason: str = ""
    arguments: dict[int, Value] = field(default_factory=dict)  # what stands for each Value that is one, by identity
    open: bool = True  # whether the run still goes on
    tells_bools: bool = False  # whether the function asks if something is True itself: then comparisons are guards
    doubts: bool = False  # whether there is a number of one kind or another
    reading: Any = None  # of a user's rule: how its branches are answered (None: they are guards), and those so far
    line: Line | None = None  # that a guard is of, where no code of the user's runs
    _numbers: dict[int, Any] = field(default_factory=dict)  # by node: its number without a gradient
    _busy: bool = False
    looking: bool = False

    def __post_init__(self) -> None:
        self.began: int = Value(0.0)._made  # every node of the run is younger
        self.proxies: Any = None
        self.rules: Any = None  # what records operations of the user's own
        self.path: Any = None  # which knows what a function has last returned: a list may be indexed there at once

    def refuse(self, why: str) -> None:
        """Leave the recording.

        Raises:
            Unrecordable: always, while it goes on.
        """
        if self.open:
            self.fallback_reason = self.fallback_reason or f"{running() or 'the function'} {why}"
            raise Unrecordable(self.fallback_reason)

    def detached(self, x: Any) -> Any:
        """The same number as a node through which no gradient flows back."""
        if self._busy:  # no_grad() asks for the detached node of the one that is being made here
            return x
        if id(x) not in self._numbers:
            self._busy = True
            try:
                self._numbers[id(x)] = (STOP(x), x)  # x too, so that its id stays its own
            finally:
                self._busy = False
        return self._numbers[id(x)][0]

    def answer(self, how: str, left: Any, right: Any) -> bool:
        """The outcome of a comparison on which a branch depends; in a rule that is tried another way, the other."""
        if self.reading is None or self.reading[0] is None:
            return self._note(how, left, right)
        path, asked = self.reading
        for comparison, outcome in asked:
            if all(map(_is_same, comparison, (how, left, right))):
                return outcome  # type: ignore[no-any-return]
        if len(asked) == PATHS:  # so that a loop comes to an end, which may not in a way that no number takes
            self._take_out()
        outcome = bool(HOLDS[how](number_of(left), number_of(right)))
        asked.append(((how, left, right), path[len(asked)] if len(asked) < len(path) else outcome))
        return asked[-1][1]  # type: ignore[no-any-return]

    def guard(self, how: str, left: Any, right: Any) -> bool:
        """Note a comparison; returns its outcome."""
        if self.reading is not None and how in ("is", "eq"):
            self._take_out()
        return self._note(how, left, right)

    def _take_out(self) -> None:
        """Leave the rule that is read, even if it catches this."""
        self.reading = None
        raise Opaque

    def _note(self, how: str, left: Any, right: Any) -> bool:
        outcome = bool(HOLDS[how](number_of(left), number_of(right)))
        if self.open and not self.looking:
            sides = as_operand(left), as_operand(right)
            key = (how, *(id(side) if isinstance(side, Value) else float(side) for side in sides))
            if key not in self.guards:
                self.guards[key] = Guard(how, *sides, outcome, self.line or running())
        return outcome

    def note_choice(self, index: Integer, items: Any) -> None:
        """Note that an integer chooses an item; each becomes an operand now, whichever is chosen."""
        values_in(items)
        self.picked.append((index, items))

    def indexed(self, frame: Any, number: int) -> Any:
        """The list in ``rows[index]``, if that is what the frame is doing."""
        if self.looking:  # for the list in front of another index
            return [None] * (number + 1)
        self.looking, count, returned = True, len(self.picked), self.path.returned
        try:
            with _hook.told_to(None):
                items = _subscripted(frame, *returned)
        finally:
            self.looking = False
            del self.picked[count:]
        known = isinstance(items, (list, tuple)) or type(items).__name__ in ("ndarray", "TracedArray")
        return list(items) if known and -len(items) <= number < len(items) else None


class _TracingHook(threading.local):
    """What the engine tells, for the thread that records; other threads go on as always."""

    recorder: Recorder | None = None
    is_watched: bool = False  # whether the function that runs is looked at, before it is recorded

    @contextmanager
    def told_to(self, recorder: Recorder | None) -> Iterator[None]:
        """Tell a recorder, or nobody, for a time."""
        before, self.recorder = self.recorder, recorder
        try:
            yield
        finally:
            self.recorder = before

    def read(self, x: Any, number: float) -> Any:
        """`x.data`."""
        return number if self.recorder is None else Number(self.recorder, number, x, attached=True)

    def copied(self, x: Any) -> Any:
        """What stands for a copy of `x`, which is another leaf; None where nothing records."""
        if type(x) is not Value:
            self.refuse("copies a Value")
        return None if self.recorder is None else STOP(x)

    def detached(self, x: Any, number: float) -> Any:
        """`x.detach()`."""
        return x._leaf(number) if self.recorder is None else self.recorder.detached(x)

    def comparison(self, how: str, x: Any, other: Any, outcome: bool) -> Any:
        """What stands for the outcome of a comparison of a Value."""
        return outcome if self.recorder is None else compared(self.recorder, how, x, other, outcome)

    def same(self, x: Any, other: Any) -> bool:
        """Whether two Values are one; it is asked for a key, too."""
        if self.recorder is not None:
            known = [any(v is value for v in self.recorder.arguments.values()) for value in (x, other)]
            if known != [False, False] and (
                known != [True, True] or x is other
            ):  # which are the same is part of a form
                self.recorder.refuse("asks which Value an argument is")
        return x is other

    def operands(self, xs: Any) -> Any:
        """What is recorded for operands."""
        return xs if self.recorder is None else [as_operand(x) for x in xs]

    def refuse(self, why: str) -> None:
        """What cannot be recorded."""
        if self.recorder is not None:
            self.recorder.refuse(why)

    def apply(self, op: Op, xs: Any) -> Any:
        """An operation of the user's own, by its rules; `NotImplemented` where nothing records."""
        return NotImplemented if self.recorder is None else self.recorder.rules(self.recorder, op, xs)


_hook = _TracingHook()
_lock, _recording = threading.Lock(), 0


def recorder_of_thread() -> Recorder | None:
    """What records in this thread, if anything does."""
    return _hook.recorder


def is_watched() -> bool:
    """Whether the function that runs in this thread is watched, and compiled functions that it calls are part of it."""
    return _hook.is_watched


@contextmanager
def watching() -> Iterator[None]:
    """The function that runs in this thread is watched."""
    _hook.is_watched = True
    try:
        yield
    finally:
        _hook.is_watched = False


@contextmanager
def tracing(recorder: Recorder) -> Iterator[None]:
    """Record what this thread does."""
    global _recording
    with _lock:
        _recording += 1
        node.set_tracing_hook(_hook)
        tell_recording(_hook.apply)
    try:
        with _hook.told_to(recorder):
            yield
    finally:
        with _lock:
            _recording -= 1
            if not _recording:
                node.set_tracing_hook(None)
                tell_recording(None)


def _is_same(x: Any, y: Any) -> bool:
    return x is y or (type(x) is type(y) and isinstance(x, (str, float)) and not is_traced(x) and x == y)


def _in_child() -> None:
    """In a forked child the recording of another thread never comes to its end."""
    global _lock, _recording
    _lock, _recording = threading.Lock(), int(_hook.recorder is not None)
    if not _recording:
        node.set_tracing_hook(None)
        tell_recording(None)


in_child(_in_child)


def _subscripted(frame: Any, caller: Any, called: Any, returned: Any) -> Any:
    """What stands before the brackets in ``rows[index]``; None if the frame is doing something else.

    A list does not show itself to the index. Its expression stands in the source, and if it is made of names,
    attributes, items and arithmetic alone, evaluating it once more has no effect. In ``function(x)[index]`` it is what
    that function was the last to return.
    """
    import ast

    code = frame.f_code
    first, last, begin, end = list(code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None or begin is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    harmless = (
        *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub, ast.Slice),
        *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod),
    )
    try:
        tree = ast.parse("(" + b"".join(lines).decode() + ")", mode="eval").body
        one = isinstance(tree, ast.Subscript) and not isinstance(tree.slice, (ast.Slice, ast.Tuple))
        asked: Any = tree.value if one else None  # type: ignore[attr-defined]
        by_call = isinstance(asked, ast.Call)
        asked = asked.func if by_call else asked
        if asked is None or not all(isinstance(x, harmless) for x in ast.walk(asked)):
            return None
        found = eval(compile(ast.Expression(asked), __file__, "eval"), frame.f_globals, frame.f_locals)
        if not by_call:
            return found
        code = getattr(found, "__code__", None) or getattr(type(found).__call__, "__code__", None)
        return returned if frame is caller and code is called else None
    except Exception:  # whatever it is, it is not a list that can be read again
        return None
