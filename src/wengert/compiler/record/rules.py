"""Records a user-defined operation by its rules, so that every back end has it.

Its two functions run once more on traced numbers: the value, and the partial derivatives. If their code does nothing
but compute, both sides of a branch are tried, and it becomes a choice; otherwise it is a guard, and so is a branch
whose other side raises for the number of the recorded run. The result consists of rows of the table, and one step with
the value and the derivative with respect to each operand. If a rule needs a plain number, or calls a function of floats
only, the operation is called back instead.
"""

from __future__ import annotations

import builtins
import math
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.call import MISSING
from wengert.compiler.code import PLAIN, computing
from wengert.compiler.reach import held_by
from wengert.compiler.traced import (
    PATHS,
    STANDINS,
    Bool,
    Number,
    Opaque,
    Recorder,
    Unrecordable,
    as_operand,
    converted,
    is_traced,
    number_of,
    recorded,
)
from wengert.engine import Value
from wengert.ops import BUILT_IN, TABLE, Op, by_rule, coerce

__all__ = ["follow_rules", "record_rules"]

COMPUTING = frozenset(["abs", "all", "any", "divmod", "isinstance", "len", "pow", "round", "sorted", "sum"])


class RulePath(NamedTuple):
    """A path through the branches of a rule."""

    asked: list[tuple[tuple[Any, ...], bool]]  # the comparisons and their outcomes
    results: list[Any] | None  # None if it raised


def record_rules(recorder: Recorder, op: Op, xs: tuple[Any, ...]) -> Any:
    """Return the result of an operation on operands of which one is a Value or a traced number; `NotImplemented` if its
    rules cannot be recorded.
    """
    if op.arity is None or op.written_out or not recorder.open:
        return NotImplemented
    numbers = [_number(recorder, x) for x in xs]
    derives = any(isinstance(x, Value) for x in xs)

    def results() -> list[Any]:
        value, partials = [recorder.proxies.proxy(rule, op.name) for rule in (op.value, op.partials)]
        out = _float(value(*numbers))
        grads = partials(out, *numbers) if derives else ()
        listed = list(grads) if isinstance(grads, (tuple, list)) else [grads]
        return [out, *map(_float, listed)]

    guards, reason, picks = dict(recorder.guards), recorder.fallback_reason, len(recorder.picked)
    try:
        out, *grads = _chosen(recorder, _paths(recorder, results, functions_of(op) is not None), 0)
        if not derives:
            return out if is_traced(out) else Number(recorder, out, Value(out))
        pairs: list[Any] = [as_operand(out)]
        for x, grad in zip(xs, grads, strict=True):
            pairs += as_operand(x), as_operand(grad if isinstance(x, Value) else 0.0)
        row = by_rule(op)
    except Exception:  # a rule may raise anything if it gets no float
        recorder.guards, recorder.fallback_reason = guards, reason
        del recorder.picked[picks:]
        return NotImplemented
    return next(x for x in pairs if isinstance(x, Value))._apply_op(row, pairs)


def _number(recorder: Recorder, x: Any) -> Any:
    """Return an operand as a rule gets it: a float, or a traced one, through which no gradient flows."""
    if isinstance(x, Value):
        return Number(recorder, x._data, x, attached=True)
    return converted(x, float) if is_traced(x) else coerce.data(x)


def _float(x: Any) -> Any:
    return converted(x, float) if is_traced(x) else float(x)


def _paths(recorder: Recorder, results: Any, tries: bool) -> list[RulePath]:
    """List the paths through the branches that may be tried, that of the recorded run first."""
    paths: list[RulePath] = []
    waiting: list[Any] = [[] if tries else None]
    outer, recorder.reading = recorder.reading, None
    try:
        while waiting:
            path, guards = waiting.pop(), dict(recorder.guards)
            asked: list[tuple[tuple[Any, ...], bool]] = []
            recorder.reading = (path, asked)
            path_results: list[Any] | None = None
            try:
                path_results = results()
            except (Unrecordable, Opaque):
                raise
            except Exception:  # on a branch that was not taken: it has no result
                if not paths:
                    raise
                recorder.guards = guards
            if recorder.reading is None:
                raise Opaque
            paths.append(RulePath(asked, path_results))
            answers = [answer for _, answer in asked]
            waiting += [[*answers[:n], not answers[n]] for n in range(len(path or []), len(asked))]
            if len(paths) + len(waiting) > PATHS:
                raise Opaque
    finally:
        recorder.reading = outer
    return paths


def _chosen(recorder: Recorder, paths: list[RulePath], depth: int) -> list[Any]:
    """Combine the results of the paths by the comparisons from `depth` on; the recorded run took the first path."""
    first = paths[0]
    if len(first.asked) == depth:
        assert first.results is not None
        return first.results
    comparison, answer = first.asked[depth]
    same, others = ([path for path in paths if (path.asked[depth][1] == answer) is side] for side in (True, False))
    mine = _chosen(recorder, same, depth + 1)
    if others[0].results is None:
        recorder.guard(*comparison)
        return mine
    theirs = _chosen(recorder, others, depth + 1)
    condition = Bool(recorder, answer, None, comparison)
    sides = zip(*((mine, theirs) if answer else (theirs, mine)), strict=True)
    return [recorded("where", number_of(x if answer else y), condition, x, y) for x, y in sides]


# -- what the code of a rule may do -----------------------------------------------------------------------------------


def follow_rules(ran: dict[CodeType, None]) -> None:
    """Count code as run that rules call in branches that were not taken, so that it is followed there, too."""
    for op in TABLE[BUILT_IN:]:
        if getattr(op.value, "__code__", None) in ran:
            ran.update(dict.fromkeys([f.__code__ for f in functions_of(op) or ()]))


def functions_of(op: Op) -> list[FunctionType] | None:
    """Return the Python functions of an operation's rules, and those that they call; None if they may do more than
    compute.

    A branch that was not taken is known by its code only, so each name in it must be a number, a table of numbers, a
    module, or a function that only computes.
    """
    seen: dict[int, Any] = {}
    functions: list[FunctionType] = []
    waiting: list[Any] = [op]
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        if isinstance(x, Op):
            waiting += [x.value, x.partials] if x.code >= BUILT_IN else []
        elif type(x) in (list, tuple, dict):
            waiting += x.values() if type(x) is dict else x
        elif type(x) is FunctionType:
            named = _named(x)
            if named is None:
                return None
            functions.append(x)
            waiting += named
        elif not _only_computes(x):
            return None
    return functions


def _named(f: FunctionType) -> list[Any] | None:
    """Return the objects that a function's code names; None if it stores anything but its own variables."""
    codes, attributes = [f.__code__], set()
    named = [part for part, _ in held_by(f, f.__name__)]
    for code in codes:
        codes += [x for x in code.co_consts if isinstance(x, CodeType)]
        steps = computing(code)
        if steps is None:
            return None
        for step in steps:
            if step.opname == "STORE_DEREF" and step.argval not in f.__code__.co_cellvars:
                return None
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                named.append(f.__globals__.get(step.argval, getattr(builtins, step.argval, MISSING)))
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(step.argval)
    modules = [x for x in named if isinstance(x, ModuleType)]
    for name in attributes:
        of_modules = [vars(x)[name] for x in modules if name in vars(x)]
        if not of_modules:  # an attribute of another object may run any code
            return None
        named += of_modules
    return named


def _only_computes(x: Any) -> bool:
    if type(x) in PLAIN or isinstance(x, (float, np.generic, np.ufunc, ModuleType)) or id(x) in STANDINS:
        return True
    if isinstance(x, type):
        return x.__module__ == "builtins"
    return isinstance(x, BuiltinFunctionType) and (
        x.__self__ is math or (x.__self__ is builtins and x.__name__ in COMPUTING)
    )
