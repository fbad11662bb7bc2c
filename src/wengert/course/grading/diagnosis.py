"""From the numbers that came out to what is likely wrong.

What the model of a right engine gives is expected. Where something else was seen, slips are switched on in the model,
one after the other, until it gives what was seen. A slip that was found stays on: what follows from it is no news.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from wengert.course.grading import rules, slips
from wengert.course.grading.model import Engine, TooLongError, kit
from wengert.course.grading.report import Finding, Row
from wengert.course.grading.slips import Slip
from wengert.course.grading.trials import TRIALS, Outcome, Trial

__all__ = ["Seen", "diagnose"]

RIGHT = Engine()
AT_MOST = 16  # as many engines are kept in mind


@dataclass(frozen=True)
class Seen:
    """What a trial of the examined class gave: numbers, and the error that ended it, if one did."""

    numbers: tuple[float, ...] = ()
    kind: str = ""  # of the error: the name of its class, "timeout", "died", "absent", "not tried"
    says: str = ""
    line: int = 0


class _Found(NamedTuple):
    """A slip, and where it showed."""

    slip: Slip
    trial: Trial
    at: Outcome | None = None  # what was expected there
    got: float | None = None
    line: int = 0


@dataclass
class _Examination:
    """What is known so far."""

    seen: dict[str, Seen]
    has: set[str]
    known: list[Engine] = field(default_factory=lambda: [RIGHT])  # engines with the slips found so far
    found: list[_Found] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)  # operations that are wrong, "" for the engine as a whole
    errors: dict[tuple[str, str, str], str] = field(default_factory=dict)  # errors told already -> their row
    missing: set[str] = field(default_factory=set)  # operators told to be missing


BY_CHANCE = {"walk order", "visited again", "equality by value"}
"""Slips whose numbers may depend on the order of a set, so that not all that follows can be foretold."""

LEANS = {"sub": {"add", "neg", "mul"}, "neg": {"mul"}, "div": {"mul", "pow"}, "sum": {"add", "radd"}}
LEANS |= {"rsub": {"sub", *LEANS["sub"]}, "rdiv": {"div", *LEANS["div"]}, "radd": {"add"}, "rmul": {"mul"}}
LEANS |= {"rpow": {"pow", "powv", "mul"}}


def diagnose(seen: dict[str, Seen], has: set[str]) -> tuple[list[Row], list[Finding]]:
    """The table, and what is likely wrong.

    Args:
        seen: what each trial gave, by its id.
        has: the names of the operators that the class has.
    """
    state = _Examination(seen, has)
    verdicts = {trial.id: _judge(trial, state) for trial in TRIALS}
    names = dict.fromkeys(trial.row for trial in TRIALS)
    rows = [_row([(t, *verdicts[t.id]) for t in TRIALS if t.row == name], state) for name in names]
    return rows, _findings(state)


# -- one trial --------------------------------------------------------------------------------------------------------


def _judge(trial: Trial, state: _Examination) -> tuple[str, str]:
    """The state of a trial and a remark; what is wrong is written down in `state`."""
    seen = state.seen.get(trial.id, Seen(kind="not tried"))
    if seen.kind in ("absent", "not tried"):
        return ("not there" if seen.kind == "absent" else "not tried"), ""
    expected = _expected(trial)
    compared = list(zip(expected, seen.numbers, strict=False))
    off = [(right, got) for right, got in compared if not close(right[2], got)]
    if off:
        remark = _explain(trial, expected, off[0], state)
        if remark and all(_is_larger(right) for right, _ in off):
            return "ok", ""
        if trial.kind != "note":
            state.wrong.add(trial.op)
        return "wrong", remark
    if seen.kind:
        verdict, remark = _error(trial, seen, expected, state)
        larger = _is_larger(expected[min(len(seen.numbers), len(expected) - 1)])
        return ("ok", "") if remark and larger and verdict == "wrong" else (verdict, remark)
    return "ok", ""


def _is_larger(outcome: Outcome) -> bool:
    """Whether it is of the larger expression around an operation: what another one spoils there is not its fault."""
    return ") * c" in outcome[1]


@cache
def _expected(trial: Trial) -> list[Outcome]:
    """What a right engine gives."""
    return list(trial.run(kit(RIGHT)))


def close(x: float, y: float) -> bool:
    """Whether two numbers agree, to what single precision would allow."""
    return x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-7)


def _explain(trial: Trial, expected: list[Outcome], first: tuple[Outcome, float], state: _Examination) -> str:
    """Find the slip behind wrong numbers; returns what to remark in the row, where nothing new was found."""
    numbers = state.seen[trial.id].numbers
    if _gives(state.known, trial, numbers):
        if trial.kind == "note":  # which has no line in the table: its finding says that it shows here too
            state.found += [
                _Found(slip, trial)
                for slip in dict.fromkeys(slip for slip, one, *_ in state.found if one.kind == "note")
                if _gives([change(RIGHT) for change in slip.changes], trial, numbers)
            ]
        return "follows from what is wrong above"
    names = {slip.name for slip, *_ in state.found}
    by_chance = BY_CHANCE | {"overwritten gradients"} if not trial.op else BY_CHANCE
    if by_chance & names and (not trial.op or trial.id.startswith("twice")):
        return "may follow from what is wrong above"
    choice = slips.candidates(trial.op, trial.kind)
    fitting: list[tuple[Slip, ...]] = [(slip,) for slip in choice if _gives(_with((slip,), state), trial, numbers)]
    if not fitting and _leans_on_wrong(trial, state):
        return "may follow from what is wrong above"
    if not fitting:
        local = [slip for slip in choice if "{op}" in slip.says]
        pairs: list[tuple[Slip, ...]] = [(one, two) for one in local for two in choice if one.name != two.name]
        fitting = [pair for pair in pairs if _gives(_with(pair, state), trial, numbers)][:4]
    if fitting:
        best = max(fitting, key=lambda chosen: _reach(chosen, state)) if len(fitting) > 1 else fitting[0]
        state.known = _with(best, state)
        for slip in best:
            state.found.append(_Found(slip, trial, *first))
        return ""
    state.found.append(_Found(_unknown(trial), trial, *first))
    return ""


def _leans_on_wrong(trial: Trial, state: _Examination) -> bool:
    """Whether something is wrong already that the trial is made of."""
    return bool(({trial.op, "mul", "add", ""} | LEANS.get(trial.op, set())) & state.wrong)


def _unknown(trial: Trial) -> Slip:
    """What to say of numbers that no slip makes."""
    if trial.id == "relu 0":
        says = "the gradient of relu at 0 is taken from the other side: PyTorch gives 0 there"
        return Slip("relu at 0", says, rules.RIGHT["relu"], ())
    if trial.id.endswith(" 1000"):
        return Slip("overflow", f"{trial.op} is wrong for large numbers: its formula overflows", (), ())
    return Slip("unknown", f"{trial.row}: wrong, and no slip that is known makes these numbers", (), ())


def _with(chosen: Sequence[Slip], state: _Examination) -> list[Engine]:
    """The engines with further slips."""
    engines = state.known
    for slip in chosen:
        engines = [change(engine) for engine in engines for change in slip.changes][:AT_MOST]
    return engines


def _reach(chosen: Sequence[Slip], state: _Examination) -> int:
    """How many of all trials come out as they were seen, with these slips."""
    engines = _with(chosen, state)
    tried = [t for t in TRIALS if t.id in state.seen and not state.seen[t.id].kind and t.id != "chain"]
    return sum([_gives(engines, trial, state.seen[trial.id].numbers) for trial in tried])


def _gives(engines: Sequence[Engine], trial: Trial, numbers: Sequence[float]) -> bool:
    """Whether every expression of a trial comes out as it was seen on one of the engines."""
    for spelled in (False, True):
        unexplained = set(range(len(numbers)))
        for engine in engines:
            for mirrored in (False, True):  # a set has an order that may differ from one expression to the next
                unexplained &= _missed(replace(engine, spelled=spelled, mirrored=mirrored), trial, numbers)
                if not unexplained:
                    return True
    return False


def _missed(engine: Engine, trial: Trial, numbers: Sequence[float]) -> set[int]:
    """The expressions of a trial, counted from 0, that come out otherwise than seen."""
    missed: set[int] = set()
    group = -1
    outcomes = trial.run(kit(engine))
    for number in numbers:
        try:
            _, what, predicted = next(outcomes)
        except (ArithmeticError, ValueError, TooLongError, StopIteration):
            return missed | set(range(max(group, 0), len(numbers)))
        group += not what.startswith("d(")
        if not close(predicted, number):
            missed.add(group)
    return missed


# -- errors -----------------------------------------------------------------------------------------------------------


def _error(trial: Trial, seen: Seen, expected: list[Outcome], state: _Examination) -> tuple[str, str]:
    """The verdict on a trial that ended in an error, all numbers until then being right."""
    if trial.id in ("powv", "twice powv") and seen.kind in (
        "TypeError",
        "AssertionError",
        "NotImplementedError",
        "AttributeError",
    ):
        return "not there", ""
    if seen.kind == "NotImplementedError" and trial.kind == "optional":
        return "not there", ""
    key = (seen.kind, seen.says, trial.op if trial.kind == "note" else "")
    told = state.errors.get(key)
    at = expected[min(len(seen.numbers), len(expected) - 1)]
    missing = slips.operators(trial.row)
    if missing and missing["name"] not in state.has and seen.kind in ("TypeError", "AttributeError"):
        if missing["name"] not in state.missing:
            state.missing.add(missing["name"])
            reflected = missing["name"].startswith("__r")
            says = f"{trial.row}: {missing['name']} is missing"
            says += ", which Python calls where a number stands on the left" if reflected else ""
            slip = Slip("missing reflected operator" if reflected else "missing operator", says, missing["write"], ())
            state.found.append(_Found(slip, trial))
        state.errors.setdefault(key, trial.row)
        return "missing", f"no {missing['name']}"
    if told is not None and trial.id.startswith("twice") and not seen.numbers:
        return "not there", ""  # its own row says so
    if told is not None:
        return "wrong", "" if told == trial.row else f"as in {told}"
    if _leans_on_wrong(trial, state) and seen.kind not in ("timeout", "MemoryError", "RecursionError", "died"):
        return "wrong", "may follow from what is wrong above"
    state.errors[key] = trial.row
    if trial.id.endswith(" 1000") or trial.id == "chain" or trial.kind != "note":
        slip = _slip_of_error(trial, seen, state)
    elif trial.id == "negative base" and seen.kind == "unfit complex":
        slip = Slip(*slips.ERRORS[seen.kind], ())
    else:
        return "wrong", ""  # a note about several calls, of an engine that cannot do one
    state.found.append(_Found(slip, trial, at, line=seen.line))
    if trial.kind != "note":
        state.wrong.add(trial.op)
    return "wrong", ""


def _slip_of_error(trial: Trial, seen: Seen, state: _Examination) -> Slip:
    """The slip that an error shows."""
    if trial.id == "ladder" and seen.kind in ("timeout", "MemoryError", "RecursionError"):
        for slip, *_ in state.found:
            if slip.name == "visited again":
                return slip
        again = next(slip for slip in slips.WHOLE if slip.name == "visited again")
        says = "backward() goes through a shared node once for every path to it: here there are 2**40"
        return again._replace(says=says)
    if seen.kind == "RecursionError" and trial.op:
        says = f"{trial.row}: calls itself without end"
        write = slips.operators(trial.row).get("write", ())
        return Slip("endless recursion", says, write, ())
    if seen.kind == "AttributeError" and any(f"'{number}'" in seen.says for number in ("int", "float")):
        says = f"{trial.row}: a number is not made a Value before its .data is read ({seen.says})"
        write = ("other = other if isinstance(other, Value) else Value(other)",)
        return Slip("number not wrapped", says, write, ())
    if seen.kind == "OverflowError" and trial.op in ("tanh", "sigmoid"):
        write = ("t = math.tanh(self.data)",) if trial.op == "tanh" else ("s = 0.5 * (1 + math.tanh(0.5 * self.data))",)
        return Slip("overflow", f"{trial.op}: {slips.ERRORS['OverflowError'][1]}", write, ())
    if seen.kind == "TypeError" and "unhashable" in seen.says:
        says = f"{trial.row}: a class with __eq__ and without __hash__ cannot be in a set ({seen.says})"
        return Slip("not hashable", says, ("__hash__ = object.__hash__",), ())
    if seen.kind in slips.ERRORS:
        name, says, write = slips.ERRORS[seen.kind]
        return Slip(name, f"{trial.row}: {says}", write, ())
    if seen.kind == "timeout":
        return Slip("endless", f"{trial.row}: does not end, {seen.says}", (), ())
    if seen.kind == "died":
        return Slip("died", f"{trial.row}: the process ends, {seen.says}", (), ())
    if seen.kind == "unfit other":
        return Slip("no number", f"{trial.row}: {seen.says}", (), ())
    return Slip("error", f"{trial.row}: raises {seen.says}", (), ())


# -- the table --------------------------------------------------------------------------------------------------------


def _row(verdicts: list[tuple[Trial, str, str]], state: _Examination) -> Row:
    """One row, of all its trials."""
    trial = verdicts[0][0]
    states = [verdict for _, verdict, _ in verdicts]
    total = next((s for s in ("missing", "wrong", "not tried") if s in states), "")
    if not total:
        total = "ok" if "ok" in states else "not there"
    if trial.kind == "note":
        total = "note"
    values = gradients = ""
    for one, verdict, _ in verdicts:
        if verdict in ("ok", "wrong"):
            value, gradient = _columns(one, state.seen[one.id], verdict)
            values = "wrong" if "wrong" in (values, value) else value or values
            gradients = "wrong" if "wrong" in (gradients, gradient) else gradient or gradients
    own = "; ".join(dict.fromkeys(slip.name for slip, t, *_ in state.found if t.row == trial.row))
    remark = next((remark for _, verdict, remark in verdicts if verdict == total and remark), "")
    if total == "wrong":
        remark = own or remark
    counts = trial.kind == "core" or (trial.kind == "optional" and total != "not there")
    return Row(trial.row, counts, values, gradients, total, remark)


def _columns(trial: Trial, seen: Seen, verdict: str) -> tuple[str, str]:
    """Whether the values and the gradients of a trial are right."""
    columns = {False: "", True: ""}
    expected = _expected(trial)
    for (where, what, right), got in zip(expected, seen.numbers, strict=False):
        if verdict == "ok" and _is_larger((where, what, right)):
            continue
        gradient = _of_gradient(what)
        good = close(right, got) and columns[gradient] != "wrong"
        columns[gradient] = "ok" if good else "wrong"
    if verdict == "wrong" and "wrong" not in columns.values():  # it ended in an error
        _, what, _ = expected[min(len(seen.numbers), len(expected) - 1)]
        columns[_of_gradient(what)] = "wrong"
    return columns[False], columns[True]


def _of_gradient(what: str) -> bool:
    return what.startswith("d(") or "gradient" in what


def _findings(state: _Examination) -> list[Finding]:
    """One finding for each slip, however many operations show it."""
    merged: dict[Any, list[_Found]] = {}
    for found in state.found:
        merged.setdefault((found.slip.name, found.slip.says, found.trial.kind == "note"), []).append(found)
    findings = []
    for (name, says, note), alike in merged.items():
        slip, trial, at, got, line = alike[0]
        told = says.replace("{op}", ", ".join(dict.fromkeys(slips.written(found.trial.op) for found in alike)))
        told += f" (line {line})" if line and got is None else ""
        write = slip.write or (rules.RIGHT.get(slips.unreflected(trial.op), ()) if "{op}" in says else ())
        where, what, right = at or ("", "", 0.0)
        rows = tuple(dict.fromkeys(found.trial.row for found in alike))
        number = None if got is None else right
        findings.append(Finding(name, told, rows, where, what, number, got, tuple(write), note))
    return findings
