"""Runs the user's function once, on Values that stand for its inputs, and keeps its graph and its guards.

While it runs, `.data` yields a `Tracked` number. What is computed from it is recorded, without a gradient; a comparison
is noted as a guard, which later runs must answer alike; a conversion to a plain float leaves the recording, and the
function stays with the engine.
"""

from __future__ import annotations

import builtins
import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wengert import node, operands
from wengert.engine import Value
from wengert.ops import BY_NAME

__all__ = ["Guard", "Picked", "Recorder", "TracedInteger", "Tracked", "Unrecordable", "recording"]

STOP, GREATEST, LEAST = BY_NAME["stop_gradient"], BY_NAME["max"], BY_NAME["min"]
MIRROR = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
HOLDS: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
}
HERE = str(Path(__file__).resolve().parents[1])


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


@dataclass(frozen=True)
class Picked:
    """An item of a list that an integer argument chose at run time."""

    index: TracedInteger
    items: list[Any]


@dataclass
class Recorder:
    """What one run of a function has shown."""

    guards: dict[tuple[Any, ...], Guard] = field(default_factory=dict)
    picked: list[Picked] = field(default_factory=list)
    refusal: str = ""
    numbers: dict[int, Any] = field(default_factory=dict)  # by node: its number without a gradient
    busy: bool = False

    def __post_init__(self) -> None:
        self.began = Value(0.0)._made  # every node of the run is younger

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
        if isinstance(left, TracedInteger):
            left = left.value()
        if isinstance(right, TracedInteger):
            right = right.value()
        key = (how, _key(left), _key(right))
        if key not in self.guards:
            self.guards[key] = Guard(how, left, right, bool(outcome), where())


def _key(side: Any) -> Any:
    return id(side) if isinstance(side, Value) else side


class _Observer(threading.local):
    """What the engine tells, for the thread that records; other threads go on as always."""

    recorder: Recorder | None = None

    def read(self, x: Any, number: float) -> Any:
        """`x.data`."""
        return number if self.recorder is None else Tracked(self.recorder, x, number)

    def detached(self, x: Any, number: float) -> Any:
        """`x.detach()`."""
        return x._leaf(number) if self.recorder is None else self.recorder.detached(x)

    def compared(self, how: str, x: Any, other: Any, outcome: bool) -> None:
        """A comparison of a Value."""
        if self.recorder is not None:
            self.recorder.guard(how, x, other if isinstance(other, Value) else operands.number(other), outcome)

    def refuse(self, why: str) -> None:
        """What cannot be recorded."""
        if self.recorder is not None:
            self.recorder.refuse(why)


_observer = _Observer()
_lock, _recording = threading.Lock(), 0


def recording() -> bool:
    """Whether this thread is recording."""
    return _observer.recorder is not None


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """Record what this thread does."""
    global _recording
    with _lock:
        _recording += 1
        node.observe(_observer)
        if _recording == 1:
            builtins.max, builtins.min = _extreme(GREATEST, _max), _extreme(LEAST, _min)  # type: ignore[assignment]
    before, _observer.recorder = _observer.recorder, recorder
    try:
        yield
    finally:
        _observer.recorder = before
        with _lock:
            _recording -= 1
            if not _recording:
                node.observe(None)
                builtins.max, builtins.min = _max, _min


_max, _min = builtins.max, builtins.min


def _extreme(row: Any, builtin: Any) -> Any:
    """Python's max or min, for a time: of tracked numbers it is an operation, not a chain of comparisons."""

    def extreme(*xs: Any, **options: Any) -> Any:
        if not recording() or options:
            return builtin(*xs, **options)
        if len(xs) == 1:
            xs = (list(xs[0]),)  # a generator is read once
        found = xs[0] if len(xs) == 1 else xs
        if not any(isinstance(x, Tracked) for x in found) or any(isinstance(x, Value) for x in found):
            return builtin(*xs)
        first = next(x for x in found if isinstance(x, Tracked))
        if any(x.number != x.number if isinstance(x, Tracked) else x != x for x in found):
            return builtin(*xs)  # with a nan among them Python's answer depends on the order
        return first._with(row([_node(x) for x in found]))

    return extreme


class Tracked:
    """The number of a Value, read while a function is being recorded. It is no float, so that nothing leaks."""

    __slots__ = ("_computed", "number", "recorder", "x")

    def __init__(self, recorder: Recorder, x: Any, number: float, computed: bool = False) -> None:
        self.recorder, self.x, self.number, self._computed = recorder, x, number, computed

    @property
    def node(self) -> Any:
        """The number as a node without a gradient."""
        return self.x if self._computed else self.recorder.detached(self.x)

    def _with(self, x: Any) -> Any:
        recorder = self.recorder
        recorder_free, _observer.recorder = _observer.recorder, None
        try:
            return Tracked(recorder, x, x.data, True)
        finally:
            _observer.recorder = recorder_free

    def _do(self, name: str, left: Any, right: Any) -> Any:
        if isinstance(left, Value) or isinstance(right, Value):
            return BY_NAME[name](_node(left), _node(right))
        if not all(isinstance(x, Tracked) or operands.is_number(x) for x in (left, right)):
            return NotImplemented
        return self._with(BY_NAME[name](_node(left), _node(right)))

    def __add__(self, other: Any) -> Any: return self._do("add", self, other)
    def __radd__(self, other: Any) -> Any: return self._do("add", other, self)
    def __sub__(self, other: Any) -> Any: return self._do("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return self._do("sub", other, self)
    def __mul__(self, other: Any) -> Any: return self._do("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return self._do("mul", other, self)
    def __truediv__(self, other: Any) -> Any: return self._do("div", self, other)
    def __rtruediv__(self, other: Any) -> Any: return self._do("div", other, self)
    def __pow__(self, other: Any) -> Any: return self._do("pow", self, other)
    def __rpow__(self, other: Any) -> Any: return self._do("pow", other, self)
    def __neg__(self) -> Any: return self._with(-self.node)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return self._with(abs(self.node))
    def __lt__(self, other: Any) -> Any: return self._compare("lt", other)
    def __le__(self, other: Any) -> Any: return self._compare("le", other)
    def __gt__(self, other: Any) -> Any: return self._compare("gt", other)
    def __ge__(self, other: Any) -> Any: return self._compare("ge", other)
    def __eq__(self, other: Any) -> Any: return self._compare("eq", other)
    def __ne__(self, other: Any) -> Any: return self._compare("ne", other)
    def __bool__(self) -> bool: return bool(self._compare("ne", 0.0))
    def __hash__(self) -> int: return int(self._escape("uses the data of a Value as a key"))
    def __float__(self) -> float: return float(self._escape("turns the data of a Value into a plain float"))
    def __int__(self) -> int: return int(self._escape("turns the data of a Value into an int"))
    def __index__(self) -> int: return int(self._escape("uses the data of a Value as an index"))
    def __round__(self, digits: Any = None) -> Any: return self._escape("rounds the data of a Value")
    def __str__(self) -> str: return str(self._escape("turns the data of a Value into text"))
    def __repr__(self) -> str: return f"Tracked({self.number})"
    def __format__(self, spec: str) -> str: return str(self._escape("turns the data of a Value into text"))

    def _compare(self, how: str, other: Any) -> Any:
        if isinstance(other, (Tracked, Value, TracedInteger)):
            number = other._data if isinstance(other, Value) and hasattr(other, "_data") else _plain(other)
        elif operands.is_number(other):
            number = float(other)
        else:
            return NotImplemented
        outcome = HOLDS[how](self.number, number)
        self.recorder.guard(how, self.node, _node(other) if isinstance(other, Tracked) else other, outcome)
        return outcome

    def _escape(self, what: str) -> Any:
        self.recorder.refuse(f"{what}: compute with the Value itself (v.exp(), wengert.maximum(a, b), wengert.where)")


def _plain(x: Any) -> float:
    """The number behind an operand, unseen by the recording."""
    if isinstance(x, (Tracked, TracedInteger)):
        return float(x.number)
    before, _observer.recorder = _observer.recorder, None
    try:
        return float(x.data)
    finally:
        _observer.recorder = before


def _node(x: Any) -> Any:
    return x.node if isinstance(x, Tracked) else x.value() if isinstance(x, TracedInteger) else x


class TracedInteger:
    """An integer argument. As an index it chooses an item of a list at run time; in arithmetic it is an input."""

    __slots__ = ("_value", "number", "recorder", "used")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self.recorder, self.number = recorder, int(number)
        self._value: Any = None
        self.used = False  # as an index

    def value(self) -> Any:
        """The number as an input of the function."""
        if self._value is None:
            self._value = Value(float(self.number))
        return self._value

    def select(self, items: Any) -> Any:
        """The item of a list that this integer stands for, noted as chosen at run time."""
        self.used = True
        chosen = items[self.number]
        self.recorder.picked.append(Picked(self, items))
        return chosen

    def __index__(self) -> int:
        if not recording():
            return self.number  # its list is being looked for
        items = _indexed(sys._getframe(1), self)
        if items is None:
            return self.fixed()  # range(n), a slice: another number is another path
        self.used = True
        self.recorder.picked.append(Picked(self, items))
        return self.number

    def fixed(self) -> int:
        """The number itself; a guard says that the recording holds for no other."""
        self.recorder.guard("eq", self.value(), float(self.number), True)
        return self.number

    def __hash__(self) -> int: return hash(self.fixed())
    def __int__(self) -> int: return self.fixed()

    def __repr__(self) -> str:
        return f"TracedInteger({self.number})"

    def __add__(self, other: Any) -> Any: return self.value() + _node(other)
    def __radd__(self, other: Any) -> Any: return _node(other) + self.value()
    def __sub__(self, other: Any) -> Any: return self.value() - _node(other)
    def __rsub__(self, other: Any) -> Any: return _node(other) - self.value()
    def __mul__(self, other: Any) -> Any: return self.value() * _node(other)
    def __rmul__(self, other: Any) -> Any: return _node(other) * self.value()
    def __truediv__(self, other: Any) -> Any: return self.value() / _node(other)
    def __rtruediv__(self, other: Any) -> Any: return _node(other) / self.value()
    def __pow__(self, other: Any) -> Any: return self.value() ** _node(other)
    def __rpow__(self, other: Any) -> Any: return _node(other) ** self.value()
    def __neg__(self) -> Any: return -self.value()
    def __abs__(self) -> Any: return abs(self.value())
    def __float__(self) -> float: return float(self.fixed())
    def __lt__(self, other: Any) -> Any: return self._compare("lt", other)
    def __le__(self, other: Any) -> Any: return self._compare("le", other)
    def __gt__(self, other: Any) -> Any: return self._compare("gt", other)
    def __ge__(self, other: Any) -> Any: return self._compare("ge", other)
    def __eq__(self, other: Any) -> Any: return self._compare("eq", other)
    def __ne__(self, other: Any) -> Any: return self._compare("ne", other)
    def __bool__(self) -> bool: return bool(self._compare("ne", 0))

    def _compare(self, how: str, other: Any) -> Any:
        if not (isinstance(other, (TracedInteger, Tracked, Value)) or operands.is_number(other)):
            return NotImplemented
        number = float(other) if operands.is_number(other) else _plain(other)
        outcome = HOLDS[how](self.number, number)
        self.recorder.guard(how, self.value(), _node(other), outcome)
        return outcome


# -- the user's source ------------------------------------------------------------------------------------------------


def where() -> str:
    """The line of the user's code that is running."""
    frame: Any = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename == "<lifted>"):
        frame = frame.f_back
    if frame is None:
        return "the function"
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).strip()
    return f"{Path(name).name}, line {line}{f' ({text})' if text else ''}"


def _indexed(frame: Any, index: TracedInteger) -> Any:
    """The list in ``rows[index]``, when that is what the frame is doing; found by reading the expression again.

    A list does not show itself to the index; its expression stands in the source, and if it is made of names,
    attributes and items alone, evaluating it once more has no effect.
    """
    import ast

    code = frame.f_code
    positions = list(code.co_positions())[frame.f_lasti // 2]
    first, last, begin, end = positions
    if first is None or last is None or begin is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        tree = ast.parse("(" + b"".join(lines).decode() + ")", mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Subscript):
        return None
    harmless = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub, ast.Slice)
    if not all(isinstance(part, harmless) for part in ast.walk(tree.value)):
        return None
    before, _observer.recorder = _observer.recorder, None
    count = len(index.recorder.picked)
    try:
        items = eval(compile(ast.Expression(tree.value), "<lifted>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:
        return None
    finally:
        _observer.recorder = before
        del index.recorder.picked[count:]
    known = isinstance(items, (list, tuple)) or type(items).__name__ == "ndarray"
    return list(items) if known and -len(items) <= index.number < len(items) else None
