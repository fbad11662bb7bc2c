"""Whether what lessons ask for that is no class is right: functions, and gradients that are written by hand.

A function stands in `texts` as it should be, a formula of plain floats, and as it is with each of its slips;
its gradients are told by differences. A gradient by hand is told by the rule that gives it. Where something else came
out than should, the first slip that gives it has been found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from wengert_course.checks import steps
from wengert_course.checks.exercise_trials import ARGUMENTS, LETTERS, PROBES, arguments, flat
from wengert_course.checks.kit import Draw
from wengert_course.checks.report import FOLLOWS, MAY_FOLLOW, LikelySlip, Verdict
from wengert_course.checks.rules import formula
from wengert_course.checks.steps import NOT_TRIED, TRIALS, Seen
from wengert_course.texts import slips, texts

__all__ = ["EXERCISES", "EXPRESSIONS", "alike", "close", "judge", "judge_by_hand", "slopes"]

Function = Callable[..., Any]
Row = Sequence[float]
Rows = Sequence[Row]

TEXTS = texts("exercises")
NUDGES = [10.0**-k for k in range(1, 11)]


def close(x: float, y: float, within: float = 1e-6, floor: float = 1e-7) -> bool:
    """Whether two numbers agree, to what single precision would allow, or to a part of their size and a floor."""
    return x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=within, abs_tol=floor)


def alike(xs: Sequence[float], ys: Sequence[float], within: float = 1e-6, floor: float = 1e-6) -> bool:
    """Whether numbers agree, one by one."""
    return len(xs) == len(ys) and all(close(x, y, within, floor) for x, y in zip(xs, ys, strict=True))


def slopes(f: Function, xs: Row, h: float = 1e-6) -> list[float]:
    """The slope of a function by each of its arguments, by central differences."""
    moved = [[x + d * (i == k) for i, x in enumerate(xs)] for k in range(len(xs)) for d in (h, -h)]
    return [(f(*up) - f(*down)) / (2 * h) for up, down in zip(moved[::2], moved[1::2], strict=True)]


def _softmax(zs: Row) -> list[float]:
    return [math.exp(z) / math.fsum(map(math.exp, zs)) for z in zs]


def _product(a: Rows, b: Rows) -> list[list[float]]:
    return [[math.fsum([x * y for x, y in zip(row, column, strict=True)]) for column in _turned(b)] for row in a]


def _turned(a: Rows) -> list[list[float]]:
    return [list(column) for column in zip(*a, strict=True)]


def _copies(gradient: Rows, shape: Row) -> Rows:
    """Of each number of an operand with that shape, the gradients of all the copies that broadcasting made of it."""
    return _turned(gradient) if len(shape) == 1 else gradient


def _errors(w: Row, b: float, xs: Rows, ys: Row) -> list[float]:
    return [math.fsum([wi * xi for wi, xi in zip(w, x, strict=True)]) + b - y for x, y in zip(xs, ys, strict=True)]


def _mean(numbers: Row) -> float:
    return math.fsum(numbers) / len(numbers)


def _pairs(names: Sequence[str]) -> list[list[float]]:
    table = [[0.0] * len(LETTERS) for _ in LETTERS]
    for name in names:
        for one, two in pairwise(name):
            table[LETTERS.index(one)][LETTERS.index(two)] += 1
    return table


def _weighted(of: Function, logits: Rows, counts: Rows) -> float:
    """The sum of a function of each probability, as often as its pair was counted."""
    pairs = zip(logits, counts, strict=True)
    return math.fsum([n * of(p) for row, ns in pairs for n, p in zip(ns, _softmax(row), strict=True)])


PARTS = (slopes, _softmax, _product, _turned, _copies, _errors, _mean, _pairs, _weighted, flat, math.exp, math.log)
SCOPE: dict[str, Any] = {part.__name__.removeprefix("_"): part for part in PARTS} | {"sum": math.fsum}


def _read(name: str) -> tuple[Function, list[tuple[str, Function]]]:
    """How a function is right, and how it is with each slip, of which the first that fits is told."""

    def made(text: str) -> Function:
        return eval(f"lambda {of}, h=0.0: {text}", SCOPE)  # type: ignore[no-any-return]  # the texts stand in the file

    of, right, *rows = TEXTS[name].values()
    wrong: list[tuple[str, Function]] = []
    for slip, (_, _, *formulas) in zip([*TEXTS[name]][2:], rows, strict=True):
        for text in formulas:
            nudges = NUDGES if re.search(r"\bh\b", text) else [0.0]
            wrong += [(slip, partial(made(text), h=h)) for h in nudges]
    return made(right), wrong


EXERCISES = {name: _read(name) for name in TEXTS["asked"]}
"""The step and the function: how it is right, and with each slip."""


class _Function(Verdict):
    """What is known of one function."""

    words = slips(TEXTS)

    def judge(self, row: str, name: str, kinds: tuple[str, ...], told: Seen, numbers: Draw) -> None:
        """Judge it by all of its calls."""
        right, _ = EXERCISES[name]
        calls = [arguments(kinds, numbers, float) for _ in range(PROBES)]
        if told.kind == "unfit absent":
            return self.not_yet(row, TEXTS["asked"][name])
        if told.kind:
            none = "'NoneType'" in told.says and told.kind in ("TypeError", "AttributeError") and not told.place
            slip = self.find("nothing returned" if none else "error", row, told={"error": told.says}, where=told.place)
            return self.row(row, "wrong", remark=slip)
        if slip := self.slip(row, name, calls, [outputs for outputs, _ in told.numbers]):
            return self.row(row, "wrong", remark=slip)
        if not any("value" in kind for kind in kinds):
            return self.row(row)
        given = [gradient for _, gradients in told.numbers for gradient in gradients]
        wanted = [gradient for call in calls for gradient in _gradients(right, call, kinds)]
        if len(given) == len(wanted) and all(alike(a, b) for a, b in zip(wanted, given, strict=True)):
            return self.row(row, "ok", "ok")
        return self.row(row, "ok", "wrong", self.find("gradients" if any(map(any, given)) else "graph cut", row))

    def slip(self, row: str, name: str, calls: list[list[Any]], seen: list[list[float]]) -> str:
        """The slip of numbers that are not right; empty where they are."""
        right, wrong = EXERCISES[name]
        wanted = [flat(right(*call)) for call in calls]
        within = 1e-3 if name.startswith("0 ") else 1e-6  # a slope by nudging is never exact
        if all(alike(a, b, within, within) for a, b in zip(wanted, seen, strict=True)):
            return ""
        both = list(zip(calls, seen, strict=True))
        within *= 10
        fitting = [slip for slip, gives in wrong if all(alike(flat(gives(*x)), y, within, 1e-12) for x, y in both)]
        if not fitting:
            told = {"got": len(seen[0]), "of": len(wanted[0])}
            return self.find("unknown" if told["got"] == told["of"] else "number of outputs", row, told=told)
        pairs = [pair for numbers in zip(wanted, seen, strict=True) for pair in zip(*numbers, strict=False)]
        off = next(((x, y) for x, y in pairs if not close(x, y, within, within)), None)
        says, write, *_ = TEXTS[name][fitting[0]]
        finding = LikelySlip(fitting[0], f"{row}: {says}", (row,), write=(write,))
        if off is not None:
            finding = replace(finding, what="a number that it gives", expected=off[0], got=off[1])
        self.findings.append(finding)
        return fitting[0]


def _gradients(f: Function, call: Sequence[Any], kinds: Sequence[str]) -> Iterator[list[float]]:
    """Of each output of a call, the gradient by every number that goes in as a Value."""
    inputs = [flat(part) if "value" in kind else [] for part, kind in zip(call, kinds, strict=True)]

    def at(*xs: float) -> list[float]:
        left = iter(xs)
        return flat(f(*[_refilled(part, left) if one else part for part, one in zip(call, inputs, strict=True)]))

    xs = [x for one in inputs for x in one]
    for i in range(len(at(*xs))):
        yield slopes(lambda *xs, i=i: at(*xs)[i], xs, 1e-5)


def _refilled(part: Any, numbers: Iterator[float]) -> Any:
    """Numbers in the lists in which others were."""
    return [_refilled(one, numbers) for one in part] if isinstance(part, list) else next(numbers)


def judge(seen: Mapping[str, Seen], step: int, seed: int) -> Verdict:
    """The table of a step that asks for functions, what is wrong, and what is not written yet."""
    verdict = Verdict()
    for name, kinds in ARGUMENTS[step].items():
        trial, one = TRIALS[f"exercise {step} {name}"], _Function()
        one.judge(trial.row, f"{step} {name}", kinds, seen.get(trial.id, NOT_TRIED), Draw(seed, trial.id))
        one.rows = [replace(row, step=step) for row in one.rows]
        if name == "cross_entropy" and verdict.spoilt and one.spoilt:  # it is made of the softmax
            one.rows, one.findings = [replace(row, remark=MAY_FOLLOW) for row in one.rows], []
        verdict.add(one)
    return verdict


class Expression(NamedTuple):
    """An expression whose gradients are written by hand."""

    leaves: dict[str, float]  # their numbers in the lesson
    results: dict[str, str]
    slopes: dict[str, tuple[str, str]]  # of each name the result it goes into, and the local derivative of that by it


EXPRESSIONS = {row: Expression(**parts) for row, parts in steps.TEXTS["by_hand"].items()}


def _at(text: str, numbers: Mapping[str, float]) -> float:
    return float(formula(text, ", ".join(numbers))(*numbers.values()))


def judge_by_hand(row: str, seen: tuple[float, ...]) -> Verdict:
    """The rows of an expression, what is wrong in it, and what is not written yet.

    What was seen is of each of its names the number and the gradient, leaves first; fewer where an error ended it.
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
    for numbers in (own, own | {"b": leaves["b"]}, dict(leaves)):  # the name b may be used again, in another expression
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
        return "no seed", f"the gradient of {name} by itself is 1"
    kind = "product" if local in data else "sum" if local == "1" else "tanh"
    known, numbers = steps.TEXTS["slips_by_hand"], {**data, "up": right[above]}
    for slip, says, text in [*known["any"], *known[kind]]:
        if close(got, _at(text.format(name=name, local=local), numbers)):
            return slip, says.format(name=name, above=above)
    return "unknown", "wrong, and no slip that is known makes this number"
