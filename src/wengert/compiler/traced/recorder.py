"""Records one run of the user's function: its guards, what integers chose, why it cannot be recorded.

While a thread records, the engine calls a hook when a Value is read, compared or overwritten: `.data` returns a traced
`Number`; a comparison returns a traced `Bool`, which becomes a guard when its truth value is needed. Anything that
cannot be recorded stops the recording.
"""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from wengert import node
from wengert._forks import Lock, in_child
from wengert.compiler.traced.comparisons import HOLDS
from wengert.compiler.traced.tracers import (
    FINITE,
    Integer,
    Nesting,
    Number,
    TooLarge,
    as_operand,
    compared,
    is_traced,
    number_of,
    values_in,
)
from wengert.engine import Value
from wengert.errors import Line, RootError, running
from wengert.ops import BY_NAME, Op, tell_recording

__all__ = ["PATHS", "Guard", "Mixed", "Opaque", "Recorder", "Undecided", "Unrecordable", "is_watched"]
__all__ += ["SWITCHES", "leave", "operations_since", "recorder_of_thread", "tracing", "unwatched", "watching"]

SWITCHES = "it switches to another greenlet: call it where nothing waits, and pass it what it waits for"
STOP = BY_NAME["stop_gradient"]
PATHS = 8  # paths through the branches of a user's rule that are recorded


class Unrecordable(Exception):  # noqa: N818  (not an error: a reason to stay with the engine)
    """The reason why a function cannot be recorded; the message names the line and what to write instead."""


class Undecided(Unrecordable):
    """The function asks whether two objects are identical, which the signature of the call does not tell."""


class Opaque(Exception):  # noqa: N818  (a reason to call an operation back)
    """A rule of an operation needs a plain number, so the operation cannot be recorded by its rules."""


@dataclass(frozen=True)
class Guard:
    """A comparison of the recorded run and its outcome, which must be the same in other runs."""

    how: str  # a name in HOLDS
    left: Any  # a Value, or a float
    right: Any
    outcome: bool
    line: Line | None
    words: str = field(default="", compare=False, repr=False)  # the comparison in words

    def without_values(self, words: str = "") -> Guard:
        """Return a copy for keeping: a Value would keep alive the graph that it was computed from."""
        left, right = (nan if isinstance(side, Value) else float(side) for side in (self.left, self.right))
        return Guard(self.how, left, right, self.outcome, self.line, words)


def operations_since(tick: int) -> int:
    """Return how many nodes were computed since a tick, in any thread."""
    return int(Value(0.0)._made - tick) // (node.CODE + 1) - 1


class Mixed:
    """Says that the type of a number is not told: it is one of `count` in lists of floats and whole numbers."""

    def __init__(self, recorder: Recorder, count: int) -> None:
        self.recorder: Recorder = recorder
        self.count: int = count

    def __call__(self) -> None:
        """Stop the recording.

        Raises:
            Unrecordable: always, during the run.
        """
        self.recorder.refuse(
            "depends on which numbers in a list are ints and which floats: pass floats, as float(x) is"
        )


@dataclass
class Recorder:
    """Records what is computed from traced numbers, the guards of comparisons, and why it was stopped.

    Many fields: what one thread's recording has come to, to which every tracer adds, each part by one method.
    """

    guards: dict[tuple[Any, ...], Guard] = field(default_factory=dict)
    picked: list[tuple[Integer, list[Any]]] = field(default_factory=list)  # indices and their items
    fallback_reason: str = ""
    unknowns: list[tuple[Value, int]] = field(default_factory=list)  # for roots that are sought; the guards before
    lifted_values: list[Value] = field(default_factory=list)  # for traced numbers, to take derivatives
    numbers: dict[int, Value] = field(default_factory=dict)  # by id nodes that depend on no Value
    differentiates: bool = False  # for a derivative with respect to numbers that the function gets as floats
    unseen: list[Any] = field(default_factory=list)  # calls of cached functions that the watched run did not see
    arguments: dict[int, Value] = field(default_factory=dict)  # proxies of Values, by their identity
    listed: set[int] = field(default_factory=set)  # the identities of those that the signature does not tell apart
    is_undecided: bool = False  # the function asks whether they are the same
    open: bool = True  # the run has not ended
    observes_bools: bool = False  # the function may ask if a result is True itself: each comparison is a guard
    type_uncertain: bool = False  # a number may be an int or a float
    uses_numpy: bool = False  # NumPy computes a float, and may raise as `np.errstate` says
    # While a user's rule is read: the answers to its branches (None: they are guards), and its comparisons so far.
    reading: Any = None
    line: Line | None = None  # the line of a guard, if no code of the user runs
    _numbers: dict[int, Any] = field(default_factory=dict)  # by the id of a node: its detached copy
    _busy: bool = False
    nests: bool = False  # derivatives that the function calls may become programs of their own: see `nested`
    plain: set[int] = field(default_factory=set)  # the identities of the nodes of numbers that the function gets
    room: int | None = None  # the operations after which the recording is broken off; None for any number
    for_values: bool = False  # the function has run with Values where it gets floats now, and may not ask which
    catches_errors: bool = True  # the function may go on after an error, which Values do not raise

    def __post_init__(self) -> None:
        self.began: int = Value(0.0)._made  # every node of the run is younger
        room = sys.maxsize if self.room is None else self.began + self.room * (node.CODE + 1)
        self.last: int = room  # an operation that is younger breaks the recording off
        self.is_broken_off: bool = False
        self.proxies: Any = None
        self.rules: Any = None  # records operations by a user's rules
        self.nested: Any = None  # calls a derivative
        self.path: Any = None  # a CallTrace, which knows the last return: its result may be indexed at once

    @property
    def evaluating(self) -> bool:
        """True while the expression of an index is evaluated again, which is not the function's doing."""
        return bool(self.path.rests)

    def refuse(self, why: str) -> None:
        """Stop the recording.

        Raises:
            Unrecordable: always, during the run.
        """
        if self.open:
            self.fallback_reason = self.fallback_reason or f"{running() or 'the function'} {why}"
            raise Unrecordable(self.fallback_reason)

    def tell_type(self, number: Any) -> None:
        """Stop the recording if the function asks what kind of number it has, and that is a float in place of a Value.

        Raises:
            Unrecordable: it is one, during the run.
        """
        if self.for_values and type(number) in (float, np.float64):
            self.refuse("asks whether a number is a float or a Value")

    def refuse_to_tell(self) -> None:
        """Stop the recording: the function asks whether two objects are identical, which the signature does not tell.

        Raises:
            Undecided: always, during the run.
        """
        if self.open:
            self.is_undecided = True
            self.fallback_reason = self.fallback_reason or "it asks whether two arguments are the same object"
            raise Undecided(self.fallback_reason)

    def stop_nesting(self) -> None:
        """Begin anew, without programs for derivatives.

        Raises:
            Nesting: always.
        """
        self.nests = False
        raise Nesting

    def break_off(self) -> None:
        """Stop the recording, as it has more operations than there is room for.

        Raises:
            TooLarge: always.
        """
        self.is_broken_off = True
        raise TooLarge

    def detached(self, x: Any) -> Any:
        """Return a node with the same number through which no gradient flows."""
        if self._busy:  # no_grad() detaches the node that is made here
            return x
        if id(x) not in self._numbers:
            self._busy = True
            try:
                self._numbers[id(x)] = (STOP(x), x)  # keeps x alive, so that its id is not reused
            finally:
                self._busy = False
        return self._numbers[id(x)][0]

    def answer(self, how: str, left: Any, right: Any) -> bool:
        """Return the outcome of a comparison that decides a branch, or the one to try in a rule that is read."""
        if self.reading is None or self.reading[0] is None:
            return self._note(how, left, right)
        path, asked = self.reading
        for comparison, outcome in asked:
            if all(map(_is_same, comparison, (how, left, right))):
                return outcome  # type: ignore[no-any-return]
        if len(asked) == PATHS:  # a loop may not end on a path that no number takes
            self._leave_rule()
        outcome = bool(HOLDS[how](number_of(left), number_of(right)))
        asked.append(((how, left, right), path[len(asked)] if len(asked) < len(path) else outcome))
        return asked[-1][1]  # type: ignore[no-any-return]

    def guard(self, how: str, left: Any, right: Any) -> bool:
        """Note a comparison and return its outcome."""
        if self.reading is not None and how in ("is", "eq"):
            self._leave_rule()
        return self._note(how, left, right)

    def _leave_rule(self) -> None:
        """Stop reading a rule, even if it catches the exception."""
        self.reading = None
        raise Opaque

    def _note(self, how: str, left: Any, right: Any) -> bool:
        outcome = bool(HOLDS[how](number_of(left), number_of(right)))
        if self.open and not self.evaluating:
            sides = as_operand(left), as_operand(right)
            key = (how, *(id(side) if isinstance(side, Value) else float(side) for side in sides))
            if key not in self.guards:
                self.guards[key] = Guard(how, *sides, outcome, self.line or running())
                if how in ("eq", "ne") and outcome == (how == "ne") and left is not right:
                    self._note_not_nan(left, right)
        return outcome

    def _note_not_nan(self, x: Any, y: Any) -> None:
        """Guard that not both of two numbers that differ are nan: Python's lists, and so `in`, `index` and `count`,
        take nan for equal to itself where it is the same object, which no program knows.
        """
        if any(type(side) in (int, bool) or (type(side) is float and side == side) for side in map(_constant, (x, y))):
            return
        x, y = (x, y) if number_of(x) == number_of(x) else (y, x)
        if not self._note("eq", x, x) and not self._note("eq", y, y):
            self.refuse("asks whether two nan are the same object: write math.isnan(x)")

    def note_choice(self, index: Integer, items: Any) -> None:
        """Note that an integer chooses one of some items; all of them become operands now."""
        values_in(items)
        self.picked.append((index, items))

    def root(self, row: Op, operands: list[Any], unknown: Value, raises: bool) -> Any:
        """Record the root of a function that was recorded with `unknown` in its place.

        Returns:
            A Value, or a traced float where the function itself gets a float.
        """
        while self.unknowns[-1][0] is not unknown:  # of a search that raised
            self.unknowns.pop()
        guards = list(self.guards.values())[self.unknowns.pop()[1] :]
        sides = [side for guard in guards for side in (guard.left, guard.right)]
        if any(x is unknown for x in _below(sides, lambda x: x._made >= unknown._made)):
            self.refuse("branches on the root that it looks for: write wengert.where(condition, a, b)")
        root = row(*operands)
        others = {id(x) for x, _ in self.unknowns}
        began = min([x._made for x, _ in self.unknowns], default=0)
        is_inner = others and any(id(x) in others for x in _below(operands, lambda x: x._made >= began))
        if raises and not is_inner and isinstance(root, Value) and not self.guard("within", root, FINITE):
            raise RootError("no root was found while the function was recorded")
        if self.depends_on_values(operands, others):
            return root
        return self.number(root) if isinstance(root, Value) else root

    def number(self, node: Value) -> Number:
        """Return a traced float for a node, through which gradients flow."""
        return Number(self, node._data, node)

    def depends_on_values(self, nodes: Any, others: Iterable[int] = (), own: Iterable[int] = ()) -> bool:
        """Return True if some of these depend on Values, and not only on numbers that the function gets as floats.

        Args:
            nodes: Values, and anything else.
            others: the identities of nodes that count as Values.
            own: those of nodes that stand for numbers of a derivative, which does not consist of Values by them.
        """
        given = {*map(id, self.arguments.values()), *map(id, self.lifted_values)}
        given, plain, below = given.difference(own).union(others), self.plain, {}
        for x in _below(nodes, lambda x: x._row is not STOP and id(x) not in self.numbers and id(x) not in plain):
            if id(x) in given or x._made < self.began:
                return True
            below[id(x)] = x
        self.numbers.update(below)
        return False

    def indexed(self, frame: Any, number: int) -> Any:
        """Return the list in ``rows[index]``, if the frame evaluates that."""
        if self.evaluating:  # evaluating the expression of another index
            return [None] * (number + 1)
        self.path.rests = True
        count, returned = len(self.picked), self.path.returned()
        try:
            with _hook.recording_with(None):
                items = _subscripted(frame, *returned)
        finally:
            self.path.rests = False
            del self.picked[count:]
        is_sequence = isinstance(items, (list, tuple)) or type(items).__name__ in ("ndarray", "TracedArray")
        return list(items) if is_sequence and -len(items) <= number < len(items) else None


class _TracingHook(threading.local):
    """The engine's hook, which acts in the thread that records."""

    recorder: Recorder | None = None
    is_watched: bool = False  # a function is watched, before it is recorded

    @contextmanager
    def recording_with(self, recorder: Recorder | None) -> Iterator[None]:
        """Set the recorder for a time; None for no recorder."""
        before, self.recorder = self.recorder, recorder
        try:
            yield
        finally:
            self.recorder = before

    def read(self, x: Any, number: float) -> Any:
        """Return `x.data`."""
        return number if self.recorder is None else Number(self.recorder, number, x, attached=True)

    def copied(self, x: Any) -> Any:
        """Return a copy of `x`, which is another leaf; None if nothing records."""
        if type(x) is not Value:
            self.refuse("copies an object of a subclass of Value: write x * 1.0")
        return None if self.recorder is None else STOP(x)

    def detached(self, x: Any, number: float) -> Any:
        """Return `x.detach()`."""
        return x._leaf(number) if self.recorder is None else self.recorder.detached(x)

    def comparison(self, how: str, x: Any, other: Any, outcome: bool) -> Any:
        """Return the outcome of a comparison of a Value."""
        return outcome if self.recorder is None else compared(self.recorder, how, x, other, outcome)

    def same(self, x: Any, other: Any) -> bool:
        """Return True if two Values are the same object; dicts compare keys like this, too."""
        if self.recorder is not None:
            are_arguments = [id(value) in self.recorder.arguments for value in (x, other)]
            if are_arguments == [True, True] and x is not other and {id(x), id(other)} & self.recorder.listed:
                self.recorder.refuse_to_tell()
            # The signature says which of the other arguments are the same.
            if are_arguments != [False, False] and (are_arguments != [True, True] or x is other):
                self.recorder.refuse("asks which Value an argument is: pass a number or a flag that tells")
        return x is other

    def operands(self, xs: Any) -> Any:
        return xs if self.recorder is None else [as_operand(x) for x in xs]

    def refuse(self, why: str) -> None:
        if self.recorder is not None:
            self.recorder.refuse(why)

    def differentiated(self, kind: str, function: Any, argnums: Any, args: Any) -> Any:
        """Return a derivative at some arguments; `NotImplemented` if it has to be computed operation by operation."""
        recorder = self.recorder
        if recorder is None or not recorder.nests or not recorder.open:
            return NotImplemented
        return recorder.nested(recorder, kind, function, argnums, args)

    def apply(self, op: Op, xs: Any) -> Any:
        """Apply a user-defined operation by its rules; `NotImplemented` if nothing records."""
        return NotImplemented if self.recorder is None else self.recorder.rules(self.recorder, op, xs)


_hook = _TracingHook()
_lock, _recording = Lock(), 0


def recorder_of_thread() -> Recorder | None:
    return _hook.recorder


def is_watched() -> bool:
    """Return True while this thread watches a function, which includes the compiled functions that it calls."""
    return _hook.is_watched


def leave(recorder: Recorder | None) -> None:
    """Stop recording and watching in this thread, as it runs another greenlet than the function's. What the function
    does when it goes on is computed with plain numbers.
    """
    if recorder is not None:
        recorder.fallback_reason, recorder.open = recorder.fallback_reason or SWITCHES, False
    _hook.recorder, _hook.is_watched = None, False


@contextmanager
def watching() -> Iterator[None]:
    _hook.is_watched = True
    try:
        yield
    finally:
        _hook.is_watched = False


@contextmanager
def unwatched() -> Iterator[None]:
    """Run what is no part of the function that this thread watches."""
    _hook.is_watched = False
    try:
        yield
    finally:
        _hook.is_watched = True


@contextmanager
def tracing(recorder: Recorder) -> Iterator[None]:
    global _recording
    with _lock:
        _recording += 1
        node.set_tracing_hook(_hook)
        tell_recording(_hook.apply)
    try:
        with _hook.recording_with(recorder):
            yield
    finally:
        with _lock:
            _recording -= 1
            if not _recording:
                node.set_tracing_hook(None)
                tell_recording(None)


def _below(nodes: Any, follows: Callable[[Value], bool]) -> Iterator[Value]:
    """Iterate over nodes and what they were computed from, as far as it follows them."""
    waiting, seen = [x for x in nodes if isinstance(x, Value)], set[int]()
    while waiting:
        x = waiting.pop()
        if id(x) not in seen and follows(x):
            seen.add(id(x))
            yield x
            waiting += [y for y in x._operands if isinstance(y, Value)]


def _constant(x: Any) -> Any:
    """Return 0 for a number of a type that has no nan, any other plain number itself, and None for a traced float."""
    kind = type(number_of(x)) if is_traced(x) else type(x)
    return 0 if kind in (int, bool) or issubclass(kind, (np.integer, np.bool_)) else None if is_traced(x) else x


def _is_same(x: Any, y: Any) -> bool:
    return x is y or (type(x) is type(y) and isinstance(x, (str, float)) and not is_traced(x) and x == y)


def _in_child() -> None:
    """Forget the recordings of other threads, which do not exist in a forked child."""
    global _recording
    _recording = int(_hook.recorder is not None)
    if not _recording:
        node.set_tracing_hook(None)
        tell_recording(None)


in_child(_in_child)


def _subscripted(frame: Any, caller: Any, called: Any, returned: Any) -> Any:
    """Return the list in ``rows[index]``; None if the frame evaluates something else.

    An index does not see the list. But the expression is in the source, and if it consists of names, attributes, items
    and arithmetic, it can be evaluated again without effects. In ``function(x)[index]`` the list is what that function
    returned last.
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
        evaluated = eval(compile(ast.Expression(asked), __file__, "eval"), frame.f_globals, frame.f_locals)
        if not by_call:
            return evaluated
        code = getattr(evaluated, "__code__", None) or getattr(type(evaluated).__call__, "__code__", None)
        return returned if frame is caller and code is called else None
    except Exception:  # then it is no list that can be read again
        return None
