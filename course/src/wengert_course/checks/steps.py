"""The steps of the course: what each asks for, which one a class has come to, and so what is tried."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from wengert_course.checks import kit, load, own, probe, trials
from wengert_course.checks.kit import NAMES, Trial, TrialPlan
from wengert_course.texts import texts

__all__ = ["LAST", "MODULES", "NOT_TRIED", "TEXTS", "TITLES", "TRIALS", "About", "Seen", "ask", "asked", "found"]

MODULES = {"kit": kit, "load": load, "own": own, "trials": trials}
MODULES |= {name: probe.beside(name) for name in trials.ASKED.values()}
EVERY = trials.gather(MODULES)
TRIALS = {name: Trial(*row) for name, (row, _) in EVERY.items()}

TEXTS = texts("steps")
TITLES: dict[int, str] = {int(step): title for step, title in TEXTS["titles"].items()}
LAST = max(TITLES)
ASKS: dict[str, list[str]] = {}
"""Row -> what it asks for, as its test says: its value; and, where there are two, its closure."""

for _trial, _asks in EVERY.values():
    ASKS.setdefault(_trial[0], [_asks])
for _name, _asks in vars(MODULES[trials.ASKED[4]])["CLOSURES"].items():
    ASKS[_name].append(_asks)

INSTEAD = {"a.tanh()": "relu", "a.exp()": "relu"}
"""Row -> the method that will do as well: an engine with relu alone has its nonlinearity."""

NETWORKS = {"Neuron", "Layer", "MLP"}
OPERATORS = {"__neg__", "__sub__", "__truediv__", "__pow__"}


class Seen(NamedTuple):
    """What a trial of the examined class gave: numbers, and the error that ended it, if one did."""

    numbers: tuple[float, ...] = ()  # of steps 0 and 8 to 12, how many gradients were compared
    kind: str = ""  # of the error: the name of its class, "timeout", "died", "absent", "not tried"
    says: str = ""
    place: str = ""


NOT_TRIED = Seen(kind="not tried")


@dataclass(frozen=True)
class About:
    step: int  # of the course
    given: bool  # whether the step was given, not found by what is there
    parts: frozenset[str]  # that the class has, by the names of kit.NAMES
    has: frozenset[str]  # its methods; and "Neuron", "Layer", "MLP", "train" or "by hand", where the file has these
    seed: int = 0  # what decides the numbers

    @property
    def plan(self) -> TrialPlan:
        """How the trials are done: gradients are not seen, or closure by closure, or by backward()."""
        mode = "values"
        if self.step >= (5 if "_backward" in self.parts else 4) and {"grad", "backward"} <= self.parts:
            mode = "backward"
        elif self.step >= 4 and {"grad", "_backward"} <= self.parts:
            mode = "local"
        return TrialPlan(mode, self.seed, "__mul__" in self.has, self.given and self.step < 8)

    def trials(self) -> list[Trial]:
        """The trials of the step, those too whose parts are missing."""
        return [trial for trial in TRIALS.values() if self._tries(trial)]

    def _tries(self, trial: Trial) -> bool:
        if {self.step, trial.step} & {*probe.FUNCTIONS}:
            return trial.step == self.step
        if trial.kind == "own":
            return trial.step == self.step
        if trial.op and not trial.id.startswith("twice"):
            return trial.kind != "note" or self.step >= 6
        return trial.step <= self.step

    def lacks(self, trial: Trial) -> bool:
        """Whether something is missing that a trial needs."""
        whole = ("data", "grad", "backward")
        parts = {3: (), 8: whole, 9: whole}.get(trial.step if trial.kind != "kept" else 1, ("data",))
        parts = () if trial.step in probe.FUNCTIONS else parts
        needs = {*trial.needs.split(), *parts}
        return any(need not in (self.parts if need in NAMES else self.has) for need in needs)

    def asks(self, trial: Trial) -> bool:
        """Whether the step asks for what a trial tries: not there, it is told to be still to do."""
        if INSTEAD.get(trial.row) in self.has or (trial.op and trial.step == 7 < self.step):
            return False  # a network may do without a quotient
        if trial.kind == "kept":
            return trial.step == self.step and (self.given or self.step < 7)
        return trial.kind in ("core", "own") and trial.step <= self.step


def found(parts: Collection[str], has: Collection[str]) -> int:
    """The step that a class has come to, by what is there."""
    if NETWORKS & set(has):
        return 9 if "train" in has else 8
    if "backward" in parts:
        return 7 if OPERATORS & set(has) else 6
    if "_backward" in parts:
        return 4
    if "by hand" in has:
        return 3
    return 2 if "_prev" in parts else 1


def asked(step: int) -> str:
    """What the check of a step tries: its small tests, as they are written.

    >>> asked(0).splitlines()[3]
    'def slope(own, draw):'
    """
    return Path(str(MODULES[trials.ASKED[step]].__file__)).read_text(encoding="utf-8")


def ask(row: str, of_gradient: bool) -> str:
    """What to do for a row that is not there yet, in a sentence, not the solution; empty where it comes by itself."""
    asks = ASKS.get(row, [])
    return asks[of_gradient] if of_gradient < len(asks) else ""
