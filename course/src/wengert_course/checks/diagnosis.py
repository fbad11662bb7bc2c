"""From the numbers that came out to what is likely wrong.

What the model of a right engine gives is expected. Where something else was seen, slips are switched on in the model,
one after the other, until it gives what was seen. A slip that was found stays on: what follows from it is no news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from wengert_course.checks import by_hand, rules, slips, steps
from wengert_course.checks.by_hand import close
from wengert_course.checks.kit import Outcome, Trial
from wengert_course.checks.model import ModelEngine, TooLongError, model_kit
from wengert_course.checks.report import FOLLOWS, MAY_FOLLOW, LikelySlip, NotYet, Row, Verdict
from wengert_course.checks.slips import Slip
from wengert_course.checks.steps import NOT_TRIED, TRIALS, About, Seen

__all__ = ["diagnose", "expected"]

RIGHT = ModelEngine()
AT_MOST = 16  # as many engines are kept in mind


def diagnose(seen: Mapping[str, Seen], about: About) -> Verdict:
    """The table, what is likely wrong, and what the step asks for and is not there yet."""
    asked = about.trials()
    verdict = _Examination(seen, about).verdict([trial for trial in asked if _is_of_engine(trial)])
    for trial in asked:
        one = Seen(kind="unfit absent") if about.lacks(trial) else seen.get(trial.id, NOT_TRIED)
        if trial.id.startswith("by hand") and one.kind != "unfit gradient":
            verdict.add(by_hand.judge(trial.row, one.numbers))
        elif not _is_of_engine(trial):
            verdict.add(_judge_test(trial, one, follows=trial.step in (8, 9) and verdict.spoilt))
    return verdict


def _is_of_engine(trial: Trial) -> bool:
    """Whether a trial is of the engine, and so told by the model of one."""
    return 0 < trial.step < 8 and not trial.id.startswith("by hand")


ENDS = {"timeout": "endless", "died": "died", "MemoryError": "memory", "RecursionError": "endless recursion"}


def _judge_test(trial: Trial, seen: Seen, follows: bool) -> Verdict:
    """What a test says that stands in `asked`: right, wrong in a sentence, or not there yet."""
    verdict, part = Verdict(trial.step), seen.kind.removeprefix("unfit ")
    if not seen.kind:
        verdict.row(trial.row, "ok", "ok" if any(seen.numbers) else "")
    elif part == "absent":
        verdict.not_yet(trial.row, steps.ask(trial.row, False))
    elif part == "not tried":
        verdict.row(trial.row, "", state="not tried")
    else:
        slip = f"wrong {part}" if part in ("value", "gradient") else ENDS.get(part, "error")
        columns = ("ok", "wrong") if part == "gradient" else ("wrong", "")
        verdict.row(trial.row, *columns, MAY_FOLLOW if follows else slip)
        place = f" ({seen.place})" if seen.place else ""
        told = f"{trial.row}: {seen.says}" if part in ENDS else seen.says
        verdict.findings += [] if follows else [LikelySlip(slip, told + place, (trial.row,))]
    return verdict


def expected(trial: Trial, about: About) -> list[Outcome]:
    """What a right engine gives. The chain is long, and the same for all seeds, unless gradients are drawn."""
    same = trial.id == "chain" and about.plan.mode != "local"
    return _expected(trial, replace(about, seed=0) if same else about)


@lru_cache(256)
def _expected(trial: Trial, about: About) -> list[Outcome]:
    return list(trial.outcomes(model_kit(RIGHT, about.plan, about.parts)))


FIRST = ("leaf", "parts", "mul", "mul a * 3", "add", "add a + 3")
THEN = ("inside", "calls", "sum", "twice mul", "twice add")


def _rank(trial: Trial) -> int:
    """What others are made of is judged first: they follow from it."""
    if trial.id in FIRST:
        return FIRST.index(trial.id)
    if trial.id in THEN:
        return 20 + THEN.index(trial.id)
    return 30 if trial.id.startswith("twice") else 10 if trial.op and trial.kind != "note" else 40


BY_CHANCE = {"walk order", "visited again", "equality by value"}
"""Slips whose numbers may depend on the order of a set, so that not all that follows can be foretold."""

LEANS = {"sub": {"add", "neg", "mul"}, "neg": {"mul"}, "div": {"mul", "pow"}, "sum": {"add", "radd"}}
LEANS |= {"rsub": {"sub", *LEANS["sub"]}, "rdiv": {"div", *LEANS["div"]}, "radd": {"add"}, "rmul": {"mul"}}
LEANS |= {"rpow": {"pow", "powv", "mul"}}


SPELLINGS = ((False, False), (True, True), (True, False), (False, True))
DERIVED = {"neg", "sub", "div", "rsub", "rdiv", "radd", "rmul"}
"""Whether operations that can be said by others are, and reflected ones; and which operations those are."""


class _Found(NamedTuple):
    slip: Slip
    trial: Trial
    at: Outcome = ("", "", 0.0)  # what was expected there
    got: float | None = None
    place: str = ""


class _Examination:
    """What is known so far of a class, as one trial after the other is judged."""

    def __init__(self, seen: Mapping[str, Seen], about: About) -> None:
        self.seen, self.about = seen, about
        self.known = [RIGHT]  # engines with the slips found so far
        self.found: list[_Found] = []
        self.wrong: set[str] = set()  # operations that are wrong, "" for the engine as a whole
        self.errors: dict[tuple[str, str, str], Slip] = {}  # errors told already -> their slip
        self.missing: set[str] = set()  # operations that are not there yet

    def verdict(self, every: list[Trial]) -> Verdict:
        judged = {}
        fails = self.seen.get("parts", NOT_TRIED).kind not in ("", "unfit parts")
        for trial in sorted(every, key=lambda trial: 9 if fails and trial.id == "parts" else _rank(trial)):
            judged[trial.id] = self.judge(trial)
            unknown = [one for one in self.found if one.trial.id == "parts" and one.slip.name == "unknown"]
            if trial.id == "add" and unknown:  # it may follow from a wrong operation
                self.found.remove(unknown[0])
                self.wrong.discard("")
                judged["parts"] = self.judge(unknown[0].trial)
        verdict = Verdict()
        for name in dict.fromkeys(trial.row for trial in every):
            alike = [trial for trial in every if trial.row == name]
            row = self.row([(trial, *judged[trial.id]) for trial in alike])
            if row.state == "not there" and not any(trial.op and trial.step <= self.about.step for trial in alike):
                continue  # of another step, or of another way to make an engine
            verdict.rows.append(row)
            sentence = steps.ask(name, row.values == "ok")
            if row.state == "not yet" and sentence:
                verdict.later.append(NotYet(name, sentence))
        verdict.findings = self.findings()
        return verdict

    def judge(self, trial: Trial) -> tuple[str, str]:
        """The state of a trial and a remark; what is wrong is written down."""
        seen = self.seen.get(trial.id, NOT_TRIED)
        if self.about.lacks(trial) or seen.kind == "unfit absent":
            return self.absent(trial)
        if seen.kind == "not tried":
            return "not tried", ""
        right = expected(trial, self.about)
        off = [(one, got) for one, got in zip(right, seen.numbers, strict=False) if not close(one[2], got)]
        if off:
            remark = self.explain(trial, *off[0])
            if remark and all(_is_larger(one) for one, _ in off):
                return "ok", ""
            if trial.kind != "note":
                self.wrong.add(trial.op)
            return "wrong", remark
        if seen.kind:
            at = right[min(len(seen.numbers), len(right) - 1)]
            state, remark = self.error(trial, seen, at)
            return ("ok", "") if remark and _is_larger(at) and state == "wrong" else (state, remark)
        if self.about.step >= 4 and trial.op and self.about.plan.mode == "values" and self.about.asks(trial):
            return "not yet", ""  # its value is right
        return "ok", ""

    def absent(self, trial: Trial) -> tuple[str, str]:
        if trial.op:
            self.missing.add(trial.op)
        own_row = trial.id.startswith("twice") and "backward" in self.about.parts  # that of its operation says so
        return ("not yet" if self.about.asks(trial) and not own_row else "not there"), ""

    def explain(self, trial: Trial, at: Outcome, got: float) -> str:
        """Find the slip behind wrong numbers; returns what to remark in the row, where nothing new was found."""
        if self.gives(self.known, trial):
            if trial.kind == "note":  # which has no line in the table: its finding says that it shows here too
                noted = {found.slip.says: found.slip for found in self.found if found.trial.kind == "note"}
                showing = [
                    slip for slip in noted.values() if self.gives([RIGHT.changed(c) for c in slip.changes], trial)
                ]
                self.found += [_Found(slip, trial) for slip in showing]
            return FOLLOWS
        by_chance = BY_CHANCE | {"overwritten gradients"} if not trial.op else BY_CHANCE
        of_several = not trial.op or trial.id.startswith("twice")
        if of_several and any(found.slip.name in by_chance for found in self.found):
            return MAY_FOLLOW
        choice = slips.candidates(trial.op, trial.kind, trial.id)
        fitting: list[tuple[Slip, ...]] = [(slip,) for slip in choice if self.gives(self.having(slip), trial)]
        if not fitting and self.leans_on_wrong(trial):
            return MAY_FOLLOW
        if not fitting and trial.op not in DERIVED:
            local = [slip for slip in choice if "{op}" in slip.says]
            common = [slip for slip in choice if slip.name in ("overwritten gradients", "chain rule")]
            pairs = ((one, two) for one in local for two in (*common, *slips.WHOLE) if one.name != two.name)
            fitting += [pair for pair in pairs if self.gives(self.having(*pair), trial)][:4]
        if fitting:
            best = max(fitting, key=self.reach) if len(fitting) > 1 else fitting[0]
            self.known = self.having(*best)
        else:
            unknown = Slip("unknown", f"{trial.row}: wrong, by none of the known mistakes")
            best = (slips.OTHERS.get(trial.id, unknown),)
        self.found += [_Found(slip, trial, at, got) for slip in best]
        return ""

    def leans_on_wrong(self, trial: Trial) -> bool:
        """Whether something is wrong already that the trial is made of."""
        return bool(({trial.op, "mul", "add", ""} | LEANS.get(trial.op, set())) & self.wrong)

    def having(self, *chosen: Slip) -> list[ModelEngine]:
        engines = self.known
        for slip in chosen:
            engines = [engine.changed(change) for engine in engines for change in slip.changes][:AT_MOST]
        return engines

    def reach(self, chosen: Sequence[Slip]) -> int:
        """How many of all trials come out as they were seen, with these slips."""
        engines = self.having(*chosen)
        tried = [TRIALS[id] for id, seen in self.seen.items() if not seen.kind and id != "chain"]
        return sum([self.gives(engines, trial) for trial in tried if _is_of_engine(trial)])

    def gives(self, engines: Sequence[ModelEngine], trial: Trial) -> bool:
        """Whether every expression of a trial comes out as it was seen on one of the engines."""
        numbers = self.seen[trial.id].numbers
        for spelled, turned in SPELLINGS if trial.op in DERIVED else SPELLINGS[:1]:
            unexplained = set(range(len(numbers)))
            for engine in engines:  # a set has an order that may differ from one expression to the next
                for mirrored in (False, True) if engine.depends_on_order else (False,):
                    one = replace(engine, spelled=spelled, turned=turned, mirrored=mirrored)
                    every = len(engines) > 1 or engine.depends_on_order
                    unexplained &= self.missed(one, trial, numbers, every)
                    if not unexplained:
                        return True
        return False

    def missed(self, engine: ModelEngine, trial: Trial, numbers: Sequence[float], every: bool) -> set[int]:
        """The expressions of a trial, counted from 0, that come out otherwise than seen: all, or the first of them."""
        missed: set[int] = set()
        group = -1
        outcomes = trial.outcomes(model_kit(engine, self.about.plan, self.about.parts))
        for number in numbers:
            try:
                _, what, predicted = next(outcomes)
            except (ArithmeticError, ValueError, TypeError, TooLongError, StopIteration):
                return missed | set(range(max(group, 0), len(numbers)))
            group += not what.startswith("d(")
            if not close(predicted, number):
                missed.add(group)
                if not every:
                    break
        return missed

    def error(self, trial: Trial, seen: Seen, at: Outcome) -> tuple[str, str]:
        """The state of a trial that ended in an error, all numbers until then being right."""
        refused = {"NotImplementedError"} if trial.kind == "optional" else set()
        if trial.op == "powv":
            refused |= {"TypeError", "AssertionError", "AttributeError"}
        if seen.kind in refused:
            return "not there", ""
        key = (seen.kind, seen.says, trial.op if trial.kind == "note" else "")
        told = self.errors.get(key)
        not_wrapped = slips.of_error(trial.op, *seen[1:3]).name == "number not wrapped"
        if {trial.op, *LEANS.get(trial.op, ())} & self.missing:
            return self.absent(trial)
        if self.about.step == 1 and trial.id in ("add a + 3", "mul a * 3") and not_wrapped:
            return self.absent(trial)
        if told is not None and trial.id.startswith("twice") and not seen.numbers:
            return "not there", ""  # its own row says so
        if told is not None:
            if not trial.op or _is_larger(at) or LEANS.get(trial.op, set()) & self.wrong:
                return "wrong", FOLLOWS
            self.found.append(_Found(told, trial, at, place=seen.place))
            return "wrong", ""
        if self.leans_on_wrong(trial) and seen.kind not in ("timeout", "MemoryError", "RecursionError", "died"):
            return "wrong", MAY_FOLLOW
        complex_number = trial.id == "negative base" and seen.kind == "unfit complex"
        if trial.kind == "note" and not (trial.id.endswith(" 1000") or trial.id == "chain" or complex_number):
            return "wrong", ""  # a note about several calls, of an engine that cannot do one
        slip = self.errors[key] = self.slip_of_error(trial, seen)
        if slip.name == "closure not assigned":  # what its numbers show is no news
            local = slips.candidates(trial.op, trial.kind)
            self.known = self.having(*[one for one in local if one.name == slip.name])
        self.found.append(_Found(slip, trial, at, place=seen.place))
        if trial.kind != "note":
            self.wrong.add(trial.op)
        return "wrong", ""

    def slip_of_error(self, trial: Trial, seen: Seen) -> Slip:
        """The slip that an error shows."""
        if trial.id == "ladder" and seen.kind in ("timeout", "MemoryError", "RecursionError"):
            known = [found.slip for found in self.found]
            shown = [slip for slip in known if slip.name in ("visited again", "seeded everywhere")]
            again = next(slip for slip in slips.WHOLE if slip.name == "visited again")
            says = "backward() goes through a shared node once for every path to it: here there are 2**40"
            return [*shown, again._replace(says=says)][0]
        return slips.OTHERS["wrapped"] if trial.id == "wrapped" else slips.of_error(trial.op, seen.kind, seen.says)

    def row(self, judged: list[tuple[Trial, str, str]]) -> Row:
        """One row, of all its trials."""
        trial = judged[0][0]
        states = [state for _, state, _ in judged]
        total = next((state for state in ("wrong", "not yet", "not tried", "ok") if state in states), "not there")
        total = "note" if trial.kind == "note" else total
        columns = [set[str](), set[str]()]
        for one, state, _ in judged:
            if state in ("ok", "wrong") or (state == "not yet" and one.id in self.seen):
                for column, more in zip(columns, self.columns(one, state), strict=True):
                    column |= more
        values, gradients = ("wrong" if "wrong" in column else "ok" if column else "" for column in columns)
        own = "; ".join(dict.fromkeys(found.slip.name for found in self.found if found.trial.row == trial.row))
        remark = next((remark for _, state, remark in judged if state == total and remark), "")
        remark = own if own and total == "wrong" else remark
        return Row(trial.row, total not in ("note", "not there"), values, gradients, total, remark, trial.step)

    def columns(self, trial: Trial, state: str) -> tuple[set[str], set[str]]:
        """Whether the values and the gradients of a trial are right: "ok", "wrong", both or nothing of each."""
        columns = set[str](), set[str]()
        numbers, right = self.seen.get(trial.id, NOT_TRIED).numbers, expected(trial, self.about)
        for at, got in zip(right, numbers, strict=False):
            if not (state == "ok" and _is_larger(at)):
                columns[_is_gradient(at)].add("ok" if close(at[2], got) else "wrong")
        if state == "wrong" and "wrong" not in columns[0] | columns[1]:  # it ended in an error
            columns[_is_gradient(right[min(len(numbers), len(right) - 1)])].add("wrong")
        return columns

    def advice(self, found: _Found) -> tuple[str, ...]:
        """The lines to write, in the words of the lesson."""
        op = found.trial.op or ("mul" if "a * b" in found.at[1] else "add" if "a + b" in found.at[1] else "")
        sign = "=" if self.about.given and self.about.step in (4, 5) else "+="
        return rules.advice(found.slip.write, op, self.about.parts, sign)

    def findings(self) -> list[LikelySlip]:
        """One finding for each slip, however many operations show it."""
        merged: dict[tuple[Any, ...], list[_Found]] = {}
        for found in self.found:
            name, says, *_ = found.slip
            write = () if "{op}" in says else self.advice(found)
            merged.setdefault((name, says, found.trial.kind == "note", write), []).append(found)
        findings = []
        for (name, says, note, _), alike in merged.items():
            _, trial, (where, what, right), got, _ = alike[0]
            rows = tuple(dict.fromkeys(found.trial.row for found in alike))
            told = says.replace("{op}", ", ".join(dict.fromkeys(rules.written(one.trial.op) for one in alike)))
            places = "; ".join(dict.fromkeys(one.place for one in alike if one.place)) if got is None else ""
            if self.seen[trial.id].kind and got is None:
                told = f"{', '.join(rows)}: {told}" + (f" ({places})" if places else "")
            write = self.advice(alike[0])
            if trial.id in ("symbols", "label", "lookup", "operands"):  # whose numbers stand for something else
                where, what, got = "", "", None
            findings.append(LikelySlip(name, told, rows, where, what, None if got is None else right, got, write, note))
        return findings


def _is_larger(at: Outcome) -> bool:
    """Whether it is of the larger expression around an operation: what another one spoils there is not its fault."""
    return ") * c" in at[1]


def _is_gradient(at: Outcome) -> bool:
    return at[1].startswith("d(") or "gradient" in at[1] or "_backward" in at[1]
