"""Gradients that were written by hand, number by number: which are right, and what the wrong ones are instead."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from wengert.course.grading.report import FOLLOWS, LikelySlip, Verdict, close
from wengert.course.grading.rules import formula
from wengert.course.grading.steps import TEXTS

__all__ = ["EXPRESSIONS", "judge"]


class Expression(NamedTuple):
    """An expression whose gradients are written by hand."""

    leaves: dict[str, float]  # their numbers in the lesson
    results: dict[str, str]
    slopes: dict[str, tuple[str, str]]  # of each name the result it goes into, and the local derivative of that by it


EXPRESSIONS = {row: Expression(**parts) for row, parts in TEXTS["by_hand"].items()}


def _at(text: str, numbers: Mapping[str, float]) -> float:
    return float(formula(text, ", ".join(numbers))(*numbers.values()))


def judge(row: str, seen: tuple[float, ...]) -> Verdict:
    """The rows of an expression, what is wrong in it, and what is not written yet.

    Args:
        row: the expression.
        seen: of each of its names the number and the gradient, nan where there is none, leaves first;
            fewer where an error ended it.
    """
    leaves, results, locals_ = EXPRESSIONS[row]
    names = [*leaves, *results]
    numbers = (*seen, *[math.nan] * (2 * len(names) - len(seen)))
    given, grads = dict(zip(names, numbers[::2], strict=True)), dict(zip(names, numbers[1::2], strict=True))
    root, verdict = names[-1], Verdict()
    if all(grad != grad or grad == 0.0 for name, grad in grads.items() if name != "b"):  # both expressions have a b
        verdict.not_yet(row, f"write the gradients of {row} into its nodes, each as a number, from {root}.grad on")
        return verdict
    data = _numbers(leaves, results, given)
    right: dict[str, float] = {}
    for name, (above, local) in locals_.items():
        right[name] = (right[above] if above else 1.0) * _at(local, data)
        got, title = grads[name], f"d{root}/d{name}"
        if got != got and name in results and name != root:
            continue  # a result without a name of its own
        if close(right[name], got):
            verdict.row(title, "", "ok")
        elif got != got or got == 0.0:
            verdict.not_yet(title, f"write {name}.grad")
        elif name == "b" and given["b"] == given["b"] and not close(data["b"], given["b"]):
            continue  # another b, of another expression
        elif above and close(grads[above] * _at(local, data), got):
            verdict.row(title, "", "wrong", FOLLOWS)
        else:
            slip, says = _slip(name, above, local, data, right, got)
            verdict.row(title, "", "wrong", slip)
            factor = {"1": "", "1 - o**2": "(1 - o.data**2) * "}.get(local, f"{local}.data * ")
            write = f"{name}.grad = {factor}{above}.grad" if above else f"{name}.grad = 1.0"
            where = ", ".join([f"{leaf} = {data[leaf]:g}" for leaf in leaves])
            finding = LikelySlip(slip, f"{title}: {says}", (title,), where, title, right[name], got, (write,))
            verdict.findings.append(finding)
    return verdict


def _numbers(leaves: Mapping[str, float], results: Mapping[str, str], given: dict[str, float]) -> dict[str, float]:
    """The numbers of the expression: those of the file, where they belong together, else those of the lesson."""
    last = list(results)[-1]
    own = {name: given.get(name, math.nan) for name in leaves}
    for numbers in (own, own | {"b": leaves["b"]}, dict(leaves)):  # the name b may be used again, in another expression
        for name, text in results.items():
            numbers[name] = _at(text, numbers)
        if numbers[last] == numbers[last] and close(numbers[last], given.get(last, math.nan)):
            break
    return numbers


def _slip(
    name: str, above: str, local: str, data: Mapping[str, float], right: Mapping[str, float], got: float
) -> tuple[str, str]:
    """What a wrong gradient is: the first of the wrong rules that gives it."""
    if not above:
        return "no seed", f"the gradient of {name} by itself is 1"
    alone = f"it is the local derivative alone: the gradient of {above} is left out of the chain rule"
    rules = [("chain rule", alone, local), ("lost sign", "its sign is wrong", f"-({local}) * up")]
    if local in data:
        says = f"the derivative of a product by {name} is the other factor"
        rules += [("swapped factors", says, f"{name} * up"), ("product rule", f"{says}, and not 1", "up")]
    elif local == "1":
        says = "the derivative of a sum by each of its parts is 1, and not its number"
        rules.append(("sum rule", says, f"{name} * up"))
    else:
        for text, says in (("1 - n**2", "it is 1 - n**2"), ("1 - o", "the square is missing"), ("o**2", "it is o**2")):
            says += ": the derivative of tanh is 1 - o**2, by its result"
            rules.append(("tanh rule", says, f"({text}) * up"))
    numbers = {**data, "up": right[above]}
    fitting = [(slip, says) for slip, says, text in rules if close(got, _at(text, numbers))]
    return [*fitting, ("unknown", "wrong, and no slip that is known makes this number")][0]
