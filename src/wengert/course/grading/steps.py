"""The steps of the course: what each asks for, and which one a class has come to."""

from __future__ import annotations

from collections.abc import Collection

from wengert.course.grading.trials import Trial

__all__ = ["LAST", "TITLES", "ask", "counts", "found", "how", "tried"]

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


def how(step: int, parts: Collection[str]) -> str:
    """How gradients are seen at a step: not at all, closure by closure, or by backward()."""
    if step >= (5 if "_backward" in parts else 4) and {"grad", "backward"} <= set(parts):
        return "backward"
    return "local" if step >= 4 and {"grad", "_backward"} <= set(parts) else "values"


def tried(trial: Trial, step: int, has: Collection[str]) -> bool:
    """Whether a trial is done at a step, or at least named. A loop may train what is no network."""
    if trial.step == 8:
        return step == 8 or (step == 9 and bool(NETWORKS & set(has)))
    if trial.kind == "own":
        return trial.step == step
    if trial.op and not trial.id.startswith("twice"):
        return trial.kind != "note" or step >= 6
    return trial.step <= step


def counts(trial: Trial, step: int, given: bool, has: Collection[str]) -> bool:
    """Whether a step asks for what a trial tries: not there, it is told to be still to do."""
    if INSTEAD.get(trial.row) in has or (trial.op and trial.step == 7 < step):  # a network may do without a quotient
        return False
    if trial.kind == "kept":
        return trial.step == step and (given or step < 7)
    return trial.kind in ("core", "own") and trial.step <= step


def ask(row: str, of_gradient: bool) -> str:
    """What to do for a row that is not there yet, in a sentence, not the solution; empty where it comes by itself"""
    asks = ASKS.get(row, ())
    return asks[of_gradient] if of_gradient < len(asks) else ""
