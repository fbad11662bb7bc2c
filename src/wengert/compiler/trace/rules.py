"""An operation of the user's own is recorded by its rules, so that every back end has it.

Its two functions run once more on traced numbers: the value, and the partial derivatives from it. A branch of theirs is
tried both ways, and becomes a choice; where one side raises for the number of the recorded run, it is a guard. What is
left is rows of the table, and one step that has the value and, beside each operand, the derivative by it. Where a rule
takes a number out, or calls what computes floats alone, the operation stays what it is, and is called back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wengert.compiler.trace.recorder import Opaque, Recorder, Unrecordable
from wengert.compiler.trace.tracers import Bool, Number, as_operand, converted, is_traced, number_of, recorded
from wengert.engine import Value
from wengert.ops import Op, by_rule, coerce

__all__ = ["record_rules"]

PATHS = 8  # so many ways through its branches are written out


class Way(NamedTuple):
    """One way through the branches of a rule."""

    asked: list[tuple[tuple[Any, ...], bool]]  # the comparisons, and how they were answered
    results: list[Any] | None  # None if it raised


def record_rules(recorder: Recorder, op: Op, xs: tuple[Any, ...]) -> Any:
    """What an operation comes to, of operands of which one is a Value or a traced number; `NotImplemented` where its
    rules cannot be recorded.
    """
    if op.arity is None or not recorder.open:
        return NotImplemented
    numbers = [_number(recorder, x) for x in xs]
    derives = any(isinstance(x, Value) for x in xs)

    def results() -> list[Any]:
        value, partials = [recorder.proxies.proxy(rule, op.name) for rule in (op.value, op.partials)]
        out = _float(value(*numbers))
        slopes = partials(out, *numbers) if derives else ()
        listed = list(slopes) if isinstance(slopes, (tuple, list)) else [slopes]
        return [out, *map(_float, listed)]

    known = dict(recorder.guards)
    try:
        out, *slopes = _chosen(recorder, _ways(recorder, results), 0)
    except Exception:  # whatever a rule raises that is given no float
        recorder.guards, recorder.refusal = known, ""
        return NotImplemented
    if not derives:
        return out if is_traced(out) else Number(recorder, out, Value(out))
    pairs = [
        y for x, slope in zip(xs, slopes, strict=True) for y in (as_operand(x), slope if isinstance(x, Value) else 0.0)
    ]
    operands = [as_operand(out), *map(as_operand, pairs)]
    return next(x for x in operands if isinstance(x, Value))._apply_op(by_rule(op), operands)


def _number(recorder: Recorder, x: Any) -> Any:
    """An operand as a rule gets it: a float, or a traced one, through which no gradient flows back."""
    if isinstance(x, Value):
        return Number(recorder, x._data, x, attached=True)
    return converted(x, float) if is_traced(x) else coerce.data(x)


def _float(x: Any) -> Any:
    return converted(x, float) if is_traced(x) else float(x)


def _ways(recorder: Recorder, results: Any) -> list[Way]:
    """Each way through the branches, that of the recorded run first."""
    found: list[Way] = []
    waiting: list[list[bool]] = [[]]
    outer, recorder.reading = recorder.reading, None
    try:
        while waiting:
            path, known = waiting.pop(), dict(recorder.guards)
            asked: list[tuple[tuple[Any, ...], bool]] = []
            recorder.reading = (path, asked)
            made: list[Any] | None = None
            try:
                made = results()
            except (Unrecordable, Opaque):
                raise
            except Exception:
                if not found:
                    raise
                recorder.guards = known
            if recorder.reading is None:
                raise Opaque
            found.append(Way(asked, made))
            answers = [answer for _, answer in asked]
            waiting += [[*answers[:n], not answers[n]] for n in range(len(path), len(asked))]
            if len(found) + len(waiting) > PATHS:
                raise Opaque
    finally:
        recorder.reading = outer
    return found


def _chosen(recorder: Recorder, ways: list[Way], depth: int) -> list[Any]:
    """The results, chosen by the comparisons from one on; that of the recorded run is the first of these ways."""
    first = ways[0]
    if len(first.asked) == depth:
        assert first.results is not None
        return first.results
    comparison, answer = first.asked[depth]
    taken, others = ([way for way in ways if (way.asked[depth][1] == answer) is same] for same in (True, False))
    mine = _chosen(recorder, taken, depth + 1)
    if others[0].results is None:
        recorder.guard(*comparison)
        return mine
    theirs = _chosen(recorder, others, depth + 1)
    condition = Bool(recorder, answer, None, comparison)
    sides = zip(*((mine, theirs) if answer else (theirs, mine)), strict=True)
    return [recorded("where", number_of(x if answer else y), condition, x, y) for x, y in sides]
