"""Whether gradients that are written by hand are right; each is told by the rule that gives it.

Where something else came out than should, the first slip that gives it has been found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from wengert_course.checks import steps
from wengert_course.checks.report import FOLLOWS, LikelySlip, Verdict
from wengert_course.checks.rules import formula

__all__ = ["NEURON", "close", "judge"]


def close(x: float, y: float) -> bool:
    """Whether two numbers agree, to what single precision would allow, or to a part of their size and a floor."""
    return x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-7)


EXPRESSIONS = steps.TEXTS["by_hand"]
NEURON = [*EXPRESSIONS][1]


def _at(text: str, numbers: Mapping[str, float]) -> float:
    return float(formula(text, ", ".join(numbers))(*numbers.values()))


def judge(row: str, seen: tuple[float, ...]) -> Verdict:
    """The rows of an expression, what is wrong in it, and what is not written yet.

    What was seen is of each of its names the number and the gradient, leaves first; fewer where an error ended it.
    """
    leaves, results, locals_ = (EXPRESSIONS[row][part] for part in ("leaves", "results", "slopes"))
    names = [*leaves, *results]
    numbers = (*seen, *[math.nan] * (2 * len(names) - len(seen)))
    given, grads = dict(zip(names, numbers[::2], strict=True)), dict(zip(names, numbers[1::2], strict=True))
    root, verdict = names[-1], Verdict()
    if all(grad != grad or grad == 0.0 for grad in grads.values()):
        verdict.not_yet(row, steps.ask(row, False))
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
        elif above and close(grads[above] * _at(local, data), got):
            verdict.row(title, "", "wrong", FOLLOWS)
        else:
            slip, says = _slip_by_hand(name, above, local, data, right, got)
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
    for numbers in (own, dict(leaves)):
        for name, text in results.items():
            numbers[name] = _at(text, numbers)
        if numbers[last] == numbers[last] and close(numbers[last], given.get(last, math.nan)):
            break
    return numbers


def _slip_by_hand(
    name: str, above: str, local: str, data: Mapping[str, float], right: Mapping[str, float], got: float
) -> tuple[str, str]:
    """What a wrong gradient is: the first of the wrong rules that gives it."""
    if not above:
        return "no seed", f"the derivative of {name} with respect to itself is 1"
    kind = "product" if local in data else "sum" if local == "1" else "tanh"
    known, numbers = steps.TEXTS["slips_by_hand"], {**data, "up": right[above]}
    for slip, says, text in [*known["any"], *known[kind]]:
        if close(got, _at(text.format(name=name, local=local), numbers)):
            return slip, says.format(name=name, above=above)
    return "unknown", "wrong, by none of the known mistakes"
