"""Runs the user's function once, on Values that stand for its inputs, and keeps its graph and its guards.

While it runs, `.data` yields a `DataTracer`. What is computed from it is recorded, without a gradient; a comparison is
noted as a guard, which later runs must answer alike; a conversion to a plain float leaves the recording, and the
function stays with the engine.
"""

from __future__ import annotations

import builtins
import linecache
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import nan
from typing import Any

from wengert import node
from wengert._forks import in_child
from wengert.compiler.tracing.tracers import DataTracer, IntegerTracer, as_operand
from wengert.engine import Value
from wengert.errors import running
from wengert.ops import BY_NAME, coerce

__all__ = ["Guard", "Picked", "Recorder", "Unrecordable", "recording", "tracing"]

STOP, GREATEST, LEAST = BY_NAME["stop_gradient"], BY_NAME["max"], BY_NAME["min"]


class Unrecordable(Exception):  # noqa: N818  (no fault: a reason to stay with the engine)
    """Why a function cannot be recorded; the message names the line and what to write instead."""


@dataclass(frozen=True)
class Guard:
    """A comparison that the recorded run made, and its outcome: other runs must come to the same."""

    how: str  # lt | le | gt | ge | eq | ne
    left: Any  # a Value, or a float
    right: Any
    outcome: bool
    line: str

    def without_values(self) -> Guard:
        """The same for keeping: a Value would keep the whole graph that it was computed from."""
        left, right = (nan if isinstance(side, Value) else side for side in (self.left, self.right))
        return Guard(self.how, left, right, self.outcome, self.line)


@dataclass(frozen=True)
class Picked:
    """An item of a list that an integer argument chose at run time."""

    index: IntegerTracer
    items: list[Any]


@dataclass
class Recorder:
    """What one run of a function has shown."""

    guards: dict[tuple[Any, ...], Guard] = field(default_factory=dict)
    picked: list[Picked] = field(default_factory=list)
    refusal: str = ""
    numbers: dict[int, Any] = field(default_factory=dict)  # by node: its number without a gradient
    busy: bool = False
    looking: bool = False

    def __post_init__(self) -> None:
        self.began: int = Value(0.0)._made  # every node of the run is younger

    def refuse(self, why: str) -> None:
        """Leave the recording.

        Raises:
            Unrecordable: always.
        """
        self.refusal = self.refusal or f"{where()} {why}"
        raise Unrecordable(self.refusal)

    def detached(self, x: Any) -> Any:
        """The same number as a node through which no gradient flows back."""
        if self.busy:  # no_grad() asks for the detached node of the one that is being made here
            return x
        if id(x) not in self.numbers:
            self.busy = True
            try:
                self.numbers[id(x)] = (STOP(x), x)  # x too, so that its id stays its own
            finally:
                self.busy = False
        return self.numbers[id(x)][0]

    def guard(self, how: str, left: Any, right: Any, outcome: bool) -> None:
        """Note a comparison."""
        if not self.looking:
            key = (how, *(id(side) if isinstance(side, Value) else side for side in (left, right)))
            self.guards.setdefault(key, Guard(how, left, right, bool(outcome), where()))

    def choose(self, index: IntegerTracer, items: Any) -> None:
        """Note that an integer chooses an item."""
        self.picked.append(Picked(index, items))

    def unseen(self, x: Any) -> float:
        """The number of a Value, without the recording's notice."""
        with _hook.told_to(None):
            return float(x.data)

    def indexed(self, frame: Any, number: int) -> Any:
        """The list in ``rows[index]``, if that is what the frame is doing."""
        if self.looking:  # for the list in front of another index
            return [None] * (number + 1)
        self.looking, count = True, len(self.picked)
        try:
            with _hook.told_to(None):
                items = _subscripted(frame)
        finally:
            self.looking = False
            del self.picked[count:]
        known = isinstance(items, (list, tuple)) or type(items).__name__ == "ndarray"
        return list(items) if known and -len(items) <= number < len(items) else None


class _TracingHook(threading.local):
    """What the engine tells, for the thread that records; other threads go on as always."""

    recorder: Recorder | None = None

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
        return number if self.recorder is None else DataTracer(self.recorder, x, number)

    def detached(self, x: Any, number: float) -> Any:
        """`x.detach()`."""
        return x._leaf(number) if self.recorder is None else self.recorder.detached(x)

    def compared(self, how: str, x: Any, other: Any, outcome: bool) -> None:
        """A comparison of a Value."""
        if self.recorder is not None:
            self.recorder.guard(how, x, other if isinstance(other, Value) else coerce.number(other), outcome)

    def refuse(self, why: str) -> None:
        """What cannot be recorded."""
        if self.recorder is not None:
            self.recorder.refuse(why)


_hook = _TracingHook()
_lock, _recording = threading.Lock(), 0
_max, _min = builtins.max, builtins.min  # what stands there when no thread records


def recording() -> bool:
    """Whether this thread is recording."""
    return _hook.recorder is not None


@contextmanager
def tracing(recorder: Recorder) -> Iterator[None]:
    """Record what this thread does."""
    global _recording, _max, _min
    with _lock:
        _recording += 1
        node.set_tracing_hook(_hook)
        if _recording == 1:
            _max, _min = builtins.max, builtins.min
            builtins.max, builtins.min = _extreme(GREATEST, _max), _extreme(LEAST, _min)
    try:
        with _hook.told_to(recorder):
            yield
    finally:
        with _lock:
            _recording -= 1
            if not _recording:
                _ended()


def _ended() -> None:
    """What is so where no thread records."""
    node.set_tracing_hook(None)
    builtins.max, builtins.min = _max, _min


def _in_child() -> None:
    """In a forked child the recording of another thread never comes to its end."""
    global _lock, _recording
    _lock = threading.Lock()
    if _recording and not recording():
        _recording = 0
        _ended()
    elif _recording:
        _recording = 1  # this thread's own


in_child(_in_child)


def _extreme(row: Any, builtin: Any) -> Any:
    """Python's max or min, for a time: of traced numbers it is an operation, not a chain of comparisons."""

    def extreme(*xs: Any, **options: Any) -> Any:
        if not recording() or options:
            return builtin(*xs, **options)
        if len(xs) == 1:
            xs = (list(xs[0]),)  # a generator is read once
        found = xs[0] if len(xs) == 1 else xs
        if not any(isinstance(x, DataTracer) for x in found) or any(isinstance(x, Value) for x in found):
            return builtin(*xs)
        first = next(x for x in found if isinstance(x, DataTracer))
        if any(x.number != x.number if isinstance(x, DataTracer) else x != x for x in found):
            return builtin(*xs)  # with a nan among them Python's answer depends on the order
        return first.computed(row([as_operand(x) for x in found]))

    return extreme


# -- the user's source ------------------------------------------------------------------------------------------------


def where() -> str:
    """The line of the user's code that is running."""
    line = running()
    return "the function" if line is None else str(line)


def _subscripted(frame: Any) -> Any:
    """What stands before the brackets in ``rows[index]``; None if the frame is doing something else.

    A list does not show itself to the index. Its expression stands in the source, and if it is made of names,
    attributes and items alone, evaluating it once more has no effect.
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
    harmless = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub, ast.Slice)
    try:
        tree = ast.parse("(" + b"".join(lines).decode() + ")", mode="eval").body
        if not isinstance(tree, ast.Subscript) or not all(isinstance(x, harmless) for x in ast.walk(tree.value)):
            return None
        return eval(compile(ast.Expression(tree.value), "<lifted>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:  # whatever it is, it is not a list that can be read again
        return None
