"""The steps of the course: what each asks for, which one a class has come to, and so what is tried."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert.course.grading import kit, load, loop_trials, network_trials, notes, probe, trials
from wengert.course.grading.kit import NAMES, Trial, TrialPlan

__all__ = ["LAST", "MODULES", "NOT_TRIED", "TITLES", "TRIALS", "About", "Seen", "ask", "found"]

MODULES = dict(zip(probe.CHILD, (kit, load, trials, notes, network_trials, loop_trials), strict=True))
TRIALS: dict[str, Trial] = probe.gather(MODULES)

TITLES = {
    1: "a number that remembers",
    2: "where it came from",
    3: "backpropagation by hand",
    4: "the chain rule in a closure",
    5: "in which order",
    6: "used twice",
    7: "the rest of arithmetic",
    8: "Neuron, Layer, MLP",
    9: "learning",
}
LAST = max(TITLES)

ASKS: dict[str, tuple[str, ...]] = {
    "Value(2.0)": ("a class whose Value(2.0) keeps its number in .data",),
    "repr(a)": ("a __repr__ of its own, that shows the number",),
    "a + b": (
        "__add__ gives a new Value that holds the sum",
        "a closure, kept in out._backward, that hands out.grad on to both operands, by the derivatives of a sum",
    ),
    "a + 3": ("a plain number on the right of + is made a Value first",),
    "a * b": (
        "__mul__ gives a new Value that holds the product",
        "a closure, kept in out._backward, that hands out.grad on to both operands, by the product rule",
    ),
    "a * 3": ("a plain number on the right of * is made a Value first",),
    "c._prev": ("the result of an operation remembers its operands in _prev; a leaf has none",),
    "c._op": ("the result of an operation remembers its symbol in _op, such as '+'; a leaf has ''",),
    "Value(2.0, label='a')": ("the constructor takes a label, '' if none is given, and keeps it in .label",),
    "a.grad, at first": ("each Value has a .grad, which is 0 before anything is derived",),
    "a.tanh()": (
        "a method tanh that gives a Value",
        "a closure _backward for tanh, whose derivative can be said by its result",
    ),
    "gradients inside an expression": (
        "backward(): the nodes in topological order, the result's gradient at 1, and each _backward called once",
    ),
    "a value used twice": ("backward(), and then what a value receives from all its uses has to add up",),
    "3 + a": ("a number on the left of +: Python asks the right operand, by a method of its own",),
    "3 * a": ("a number on the left of *, likewise",),
    "-a": ("the minus sign in front of a Value",),
    "a - b": ("the difference of two Values: it can be said by what there is already",),
    "a - 3": ("a difference with a number on its right",),
    "a ** n": ("a power whose exponent is an int or a float, with the power rule",),
    "a / b": ("the quotient of two Values: it can be said by a product and a power",),
    "a / 4": ("a quotient with a number on its right",),
    "sum([a, b, c])": ("Python's sum(), which starts at 0: it works as soon as 0 + a does",),
    "a.exp()": ("a method exp that gives a Value: its derivative is its result",),
}
"""Row -> what it asks for: its value; and, where there are two, its closure."""

INSTEAD = {"a.tanh()": "relu", "a.exp()": "relu"}
"""Row -> the method that will do as well: an engine with relu alone has its nonlinearity."""

NETWORKS = {"Neuron", "Layer", "MLP"}
OPERATORS = {"__neg__", "__sub__", "__truediv__", "__pow__"}


class Seen(NamedTuple):
    """What a trial of the examined class gave: numbers, and the error that ended it, if one did."""

    numbers: tuple[Any, ...] = ()  # of steps 8 and 9, lists of numbers
    kind: str = ""  # of the error: the name of its class, "timeout", "died", "absent", "not tried"
    says: str = ""
    place: str = ""


NOT_TRIED = Seen(kind="not tried")


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
    def plan(self) -> TrialPlan:
        """How the trials are done: gradients are not seen, or closure by closure, or by backward()."""
        mode = "values"
        if self.step >= (5 if "_backward" in self.parts else 4) and {"grad", "backward"} <= self.parts:
            mode = "backward"
        elif self.step >= 4 and {"grad", "_backward"} <= self.parts:
            mode = "local"
        return TrialPlan(mode, self.seed, "__mul__" in self.has)

    def trials(self) -> list[Trial]:
        """The trials of the step, those too whose parts are missing."""
        return [trial for trial in TRIALS.values() if self._tries(trial)]

    def _tries(self, trial: Trial) -> bool:
        if trial.step == 8:  # a loop may train what is no network
            return self.step == 8 or (self.step == 9 and bool(NETWORKS & self.has))
        if trial.kind == "own":
            return trial.step == self.step
        if trial.op and not trial.id.startswith("twice"):
            return trial.kind != "note" or self.step >= 6
        return trial.step <= self.step

    def lacks(self, trial: Trial) -> bool:
        """Whether something is missing that a trial needs."""
        parts = {3: (), 8: ("data", "grad", "backward")}.get(trial.step if trial.kind != "kept" else 0, ("data",))
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
    if "loop" in has:
        return 9
    if NETWORKS & set(has):
        return 8
    if "backward" in parts:
        return 7 if OPERATORS & set(has) else 6
    if "_backward" in parts:
        return 4
    if "by hand" in has:
        return 3
    return 2 if "_prev" in parts else 1


def ask(row: str, of_gradient: bool) -> str:
    """What to do for a row that is not there yet, in a sentence, not the solution; empty where it comes by itself."""
    asks = ASKS.get(row, ())
    return asks[of_gradient] if of_gradient < len(asks) else ""
