"""From the numbers that came out to what is likely wrong.

What the model of a right engine gives is expected. Where something else was seen, slips are switched on in the model,
one after the other, until it gives what was seen. A slip that was found stays on: what follows from it is no news.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from wengert.course.grading import (
    by_hand,
    loop_trials,
    network_trials,
    networks,
    notes,
    rules,
    slips,
    steps,
    training_loop,
    trials,
)
from wengert.course.grading.kit import NAMES, Draw, Outcome
from wengert.course.grading.model import Engine, Plan, TooLongError, kit
from wengert.course.grading.report import Finding, NotYet, Row, close
from wengert.course.grading.slips import Slip
from wengert.course.grading.trials import Trial

__all__ = ["TRIALS", "About", "Seen", "diagnose", "expected", "how_many"]

TRIALS: list[Trial] = [*trials.TRIALS, *map(Trial._make, notes.TRIALS)]
TRIALS += map(Trial._make, [*network_trials.TRIALS, *loop_trials.TRIALS])
RIGHT = Engine()
AT_MOST = 16  # as many engines are kept in mind


@dataclass(frozen=True)
class Seen:
    """What a trial of the examined class gave: numbers, and the error that ended it, if one did."""

    numbers: tuple[float, ...] = ()
    kind: str = ""  # of the error: the name of its class, "timeout", "died", "absent", "not tried"
    says: str = ""
    place: str = ""


@dataclass(frozen=True)
class About:
    """What is there, and what is asked.

    Attributes:
        step: the step of the course.
        given: whether the step was given, not found by what is there.
        parts: the parts that the class has, by the names of kit.NAMES.
        has: the methods that it has; and "Neuron", "Layer", "MLP", "loop" or "by hand", where the file has these.
        seed: what decides the numbers.
    """

    step: int
    given: bool
    parts: frozenset[str]
    has: frozenset[str]
    seed: int = 0

    @property
    def plan(self) -> Plan:
        """How the trials are done."""
        names = tuple([name for name in NAMES if name in self.parts])
        return Plan(names, steps.how(self.step, self.parts), self.seed, "__mul__" in self.has)

    def trials(self) -> list[Trial]:
        """The trials of the step, those too whose parts are missing."""
        return [trial for trial in TRIALS if steps.tried(trial, self.step, self.has)]

    def lacks(self, trial: Trial) -> bool:
        """Whether something is missing that a trial needs."""
        missing = [need for need in trial.needs.split() if need not in (self.parts if need in NAMES else self.has)]
        parts = {3: (), 8: ("data", "grad", "backward")}.get(trial.step if trial.kind != "kept" else 0, ("data",))
        return bool(missing) or not self.parts.issuperset(parts)

    def asks(self, trial: Trial) -> bool:
        """Whether the step asks for what a trial tries."""
        return steps.counts(trial, self.step, self.given, self.has)


class _Found(NamedTuple):
    """A slip, and where it showed."""

    slip: Slip
    trial: Trial
    at: Outcome | None = None  # what was expected there
    got: float | None = None
    place: str = ""


@dataclass
class _Examination:
    """What is known so far."""

    seen: dict[str, Seen]
    about: About
    known: list[Engine] = field(default_factory=lambda: [RIGHT])  # engines with the slips found so far
    found: list[_Found] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)  # operations that are wrong, "" for the engine as a whole
    errors: dict[tuple[str, str, str], str] = field(default_factory=dict)  # errors told already -> their row
    missing: set[str] = field(default_factory=set)  # operations that are not there yet
    expected: dict[str, list[Outcome]] = field(default_factory=dict)  # what a right engine gives


BY_CHANCE = {"walk order", "visited again", "equality by value"}
"""Slips whose numbers may depend on the order of a set, so that not all that follows can be foretold."""

LEANS = {"sub": {"add", "neg", "mul"}, "neg": {"mul"}, "div": {"mul", "pow"}, "sum": {"add", "radd"}}
LEANS |= {"rsub": {"sub", *LEANS["sub"]}, "rdiv": {"div", *LEANS["div"]}, "radd": {"add"}, "rmul": {"mul"}}
LEANS |= {"rpow": {"pow", "powv", "mul"}}


def diagnose(seen: dict[str, Seen], about: About, text: str = "") -> tuple[list[Row], list[Finding], list[NotYet]]:
    """The table, what is likely wrong, and what the step asks for and is not there yet.

    Args:
        seen: what each trial gave, by its id.
        about: what is there, and what is asked.
        text: the program, for the lines of a training loop.
    """
    state = _Examination(seen, about)
    asked = about.trials()
    every = [trial for trial in asked if not _elsewhere(trial)]
    verdicts = {}
    for trial in sorted(every, key=_rank):
        verdicts[trial.id] = _judge(trial, state)
        unknown = [one for one in state.found if one.trial.id == "parts" and one.slip.name == "unknown"]
        if trial.id == "add" and unknown:  # it may follow from a wrong operation
            state.found.remove(unknown[0])
            state.wrong.discard("")
            verdicts["parts"] = _judge(next(trial for trial in every if trial.id == "parts"), state)
    rows, later = [], []
    for name in dict.fromkeys(trial.row for trial in every):
        row = _row([(t, *verdicts[t.id]) for t in every if t.row == name], state)
        if row.state == "not there" and not any(t.op and t.step <= about.step for t in every if t.row == name):
            continue  # of another step, or of another way to make an engine
        rows.append(row)
        sentence = steps.ask(name, row.values == "ok")
        if row.state == "not yet" and sentence:
            later.append(NotYet(name, sentence))
    findings = _findings(state)
    judged = [
        by_hand.judge(t.row, seen.get(t.id, Seen()).numbers, t.id in seen) for t in asked if t.id[:7] == "by hand"
    ]
    if any(trial.step == 8 for trial in asked):
        missing = {
            t.id: Seen((), "unfit absent", t.id.split()[0].split(".")[0])
            for t in asked
            if t.step == 8 and about.lacks(t)
        }
        judged.append(networks.judge(seen | missing, partial(Draw, about.seed)))
    if any(trial.step == 9 for trial in asked):
        judged.append(training_loop.judge(seen, text))
    for more in judged:
        rows, findings, later = rows + more[0], findings + more[1], later + more[2]
    return rows, findings, later


def _elsewhere(trial: Trial) -> bool:
    """Whether the numbers of a trial are a stream that is judged by its own rules."""
    return trial.step >= 8 or trial.id.startswith("by hand")


FIRST = ("leaf", "parts", "mul", "mul a * 3", "add", "add a + 3")
THEN = ("inside", "calls", "sum", "twice mul", "twice add")


def _rank(trial: Trial) -> int:
    """What others are made of is judged first: they follow from it."""
    if trial.id in FIRST:
        return FIRST.index(trial.id)
    if trial.id in THEN:
        return 20 + THEN.index(trial.id)
    return 30 if trial.id.startswith("twice") else 10 if trial.op and trial.kind != "note" else 40


def how_many(trial: Trial, plan: Plan) -> int | None:
    """How many numbers a trial gives; None, where that depends on the file."""
    return None if trial.step >= 8 else len(expected(trial, plan))


def expected(trial: Trial, plan: Plan) -> list[Outcome]:
    """What a right engine gives."""
    return list(trial.outcomes(kit(RIGHT, plan)))


# -- one trial --------------------------------------------------------------------------------------------------------


def _judge(trial: Trial, state: _Examination) -> tuple[str, str]:
    """The state of a trial and a remark; what is wrong is written down in `state`."""
    seen = state.seen.get(trial.id, Seen(kind="not tried"))
    if state.about.lacks(trial) or seen.kind == "unfit absent":
        return _absent(trial, state)
    if seen.kind == "not tried":
        return "not tried", ""
    expected = _expected(trial, state)
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
    if state.about.step >= 4 and trial.op and state.about.plan.mode == "values" and state.about.asks(trial):
        return "not yet", ""  # its value is right
    return "ok", ""


def _absent(trial: Trial, state: _Examination) -> tuple[str, str]:
    """The state of what is not there."""
    if trial.op:
        state.missing.add(trial.op)
    own_row = trial.id.startswith("twice") and "backward" in state.about.parts  # that of its operation says so
    return ("not yet" if state.about.asks(trial) and not own_row else "not there"), ""


def _expected(trial: Trial, state: _Examination) -> list[Outcome]:
    if trial.id not in state.expected:
        state.expected[trial.id] = expected(trial, state.about.plan)
    return state.expected[trial.id]


def _is_larger(outcome: Outcome) -> bool:
    """Whether it is of the larger expression around an operation: what another one spoils there is not its fault."""
    return ") * c" in outcome[1]


def _explain(trial: Trial, expected: list[Outcome], first: tuple[Outcome, float], state: _Examination) -> str:
    """Find the slip behind wrong numbers; returns what to remark in the row, where nothing new was found."""
    if _gives(state.known, trial, state):
        if trial.kind == "note":  # which has no line in the table: its finding says that it shows here too
            state.found += [
                _Found(slip, trial)
                for slip in dict.fromkeys(slip for slip, one, *_ in state.found if one.kind == "note")
                if _gives([change(RIGHT) for change in slip.changes], trial, state)
            ]
        return "follows from what is wrong above"
    names = {slip.name for slip, *_ in state.found}
    by_chance = BY_CHANCE | {"overwritten gradients"} if not trial.op else BY_CHANCE
    if by_chance & names and (not trial.op or trial.id.startswith("twice")):
        return "may follow from what is wrong above"
    choice = slips.candidates(trial.op, trial.kind, trial.id) if trial.id != "lookup" else []
    fitting: list[tuple[Slip, ...]] = [(slip,) for slip in choice if _gives(_with((slip,), state), trial, state)]
    if not fitting and _leans_on_wrong(trial, state):
        return "may follow from what is wrong above"
    if not fitting:
        local = [slip for slip in choice if "{op}" in slip.says]
        pairs: list[tuple[Slip, ...]] = [(one, two) for one in local for two in choice if one.name != two.name]
        fitting = [pair for pair in pairs if _gives(_with(pair, state), trial, state)][:4]
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
        return Slip("relu at 0", says, rules.closure("relu"), ())
    if trial.id == "lookup":
        says = "backward() looks for each node in a list, from its beginning on: in a set it is found at once"
        return Slip("visited in a list", says, ("visited = set()", "visited.add(node)"), ())
    if trial.id == "repr":
        return Slip("repr", "repr(a) does not show the number", ("return f'Value({self.data})'",), ())
    if trial.id == "label":
        return Slip("label", "Value(2.0, label='a') does not keep its label", ("self.label = label",), ())
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
    ids = {id for id, seen in state.seen.items() if not seen.kind} - {"chain"}
    tried = [t for t in TRIALS if t.id in ids and not _elsewhere(t)]
    return sum([_gives(engines, trial, state) for trial in tried])


def _gives(engines: Sequence[Engine], trial: Trial, state: _Examination) -> bool:
    """Whether every expression of a trial comes out as it was seen on one of the engines."""
    numbers = state.seen[trial.id].numbers
    for spelled, turned in ((False, False), (True, True), (True, False), (False, True)):
        unexplained = set(range(len(numbers)))
        for engine in engines:
            for mirrored in (False, True):  # a set has an order that may differ from one expression to the next
                one = replace(engine, spelled=spelled, turned=turned, mirrored=mirrored)
                unexplained &= _missed(one, trial, numbers, state.about.plan)
                if not unexplained:
                    return True
    return False


def _missed(engine: Engine, trial: Trial, numbers: Sequence[float], plan: Plan) -> set[int]:
    """The expressions of a trial, counted from 0, that come out otherwise than seen."""
    missed: set[int] = set()
    group = -1
    outcomes = trial.outcomes(kit(engine, plan))
    for number in numbers:
        try:
            _, what, predicted = next(outcomes)
        except (ArithmeticError, ValueError, TypeError, TooLongError, StopIteration):
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
    if {trial.op, *LEANS.get(trial.op, ())} & state.missing:
        return _absent(trial, state)
    if state.about.step == 1 and trial.row in ("a + 3", "a * 3") and _not_wrapped(seen):
        return _absent(trial, state)
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
    if slip.name == "closure not assigned":  # what its numbers show is no news
        local = slips.candidates(trial.op, trial.kind)
        state.known = _with([one for one in local if one.name == slip.name], state)
    state.found.append(_Found(slip, trial, at, place=seen.place))
    if trial.kind != "note":
        state.wrong.add(trial.op)
    return "wrong", ""


def _slip_of_error(trial: Trial, seen: Seen, state: _Examination) -> Slip:
    """The slip that an error shows."""
    if trial.id == "ladder" and seen.kind in ("timeout", "MemoryError", "RecursionError"):
        for slip, *_ in state.found:
            if slip.name in ("visited again", "seeded everywhere"):
                return slip
        again = next(slip for slip in slips.WHOLE if slip.name == "visited again")
        says = "backward() goes through a shared node once for every path to it: here there are 2**40"
        return again._replace(says=says)
    if seen.kind == "RecursionError" and trial.op:
        says = f"{trial.row}: calls itself without end"
        return Slip("endless recursion", says, slips.DERIVED.get(trial.row, ()), ())
    if _not_wrapped(seen):
        says = f"{trial.row}: a number is not made a Value before its .data is read ({seen.says})"
        wrap = "other = other if isinstance(other, Value) else Value(other)"
        return Slip("number not wrapped", says, (wrap,), ())
    if seen.kind == "TypeError" and "unsupported operand" in seen.says and "'float'" in seen.says:
        says = f"{trial.row}: a number is reckoned with a Value: its .data is meant ({seen.says})"
        return Slip("number and Value mixed", says, (f"out = Value({rules.shown_value(trial.op)}, ...)",), ())
    if seen.kind == "OverflowError" and trial.op in ("tanh", "sigmoid"):
        better = "t = math.tanh(self.data)" if trial.op == "tanh" else "s = 0.5 * (1 + math.tanh(0.5 * self.data))"
        return Slip("overflow", f"{trial.op}: {slips.ERRORS['OverflowError'][1]}", (better,), ())
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


def _not_wrapped(seen: Seen) -> bool:
    """Whether a plain number was taken for a Value."""
    return seen.kind == "AttributeError" and any(f"'{number}'" in seen.says for number in ("int", "float"))


# -- the table --------------------------------------------------------------------------------------------------------


def _row(verdicts: list[tuple[Trial, str, str]], state: _Examination) -> Row:
    """One row, of all its trials."""
    trial = verdicts[0][0]
    states = [verdict for _, verdict, _ in verdicts]
    total = next((s for s in ("wrong", "not yet", "not tried") if s in states), "")
    if not total:
        total = "ok" if "ok" in states else "not there"
    if trial.kind == "note":
        total = "note"
    values = gradients = ""
    for one, verdict, _ in verdicts:
        if verdict in ("ok", "wrong") or (verdict == "not yet" and one.id in state.seen):
            value, gradient = _columns(one, state, verdict)
            values = "wrong" if "wrong" in (values, value) else value or values
            gradients = "wrong" if "wrong" in (gradients, gradient) else gradient or gradients
    own = "; ".join(dict.fromkeys(slip.name for slip, t, *_ in state.found if t.row == trial.row))
    remark = next((remark for _, verdict, remark in verdicts if verdict == total and remark), "")
    if total == "wrong":
        remark = own or remark
    counts = trial.kind != "note" and total != "not there"
    return Row(trial.row, counts, values, gradients, total, remark)


def _columns(trial: Trial, state: _Examination, verdict: str) -> tuple[str, str]:
    """Whether the values and the gradients of a trial are right."""
    columns = {False: "", True: ""}
    seen = state.seen.get(trial.id, Seen())
    expected = _expected(trial, state)
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
    return what.startswith("d(") or "gradient" in what or "_backward" in what


def _findings(state: _Examination) -> list[Finding]:
    """One finding for each slip, however many operations show it."""
    merged: dict[Any, list[_Found]] = {}
    for found in state.found:
        merged.setdefault((found.slip.name, found.slip.says, found.trial.kind == "note"), []).append(found)
    findings = []
    for (name, says, note), alike in merged.items():
        slip, trial, at, got, place = alike[0]
        told = says.replace("{op}", ", ".join(dict.fromkeys(slips.written(found.trial.op) for found in alike)))
        told += f" ({place})" if place and got is None else ""
        write = slip.write or (rules.closure(slips.unreflected(trial.op)) if "{op}" in says else ())
        where, what, right = at or ("", "", 0.0)
        if trial.id in ("symbols", "label", "lookup"):  # whose numbers stand for something else
            where, what, got = "", "", None
        rows = tuple(dict.fromkeys(found.trial.row for found in alike))
        number = None if got is None else right
        findings.append(Finding(name, told, rows, where, what, number, got, tuple(write), note))
    return findings
