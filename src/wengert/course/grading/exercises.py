"""Whether the functions of the lessons that are about no class are right, from the numbers that came out of them.

Each stands here as it should be, in plain floats, and as it is with each of its slips; its gradients are told by
differences. Where something else came out than should, the first slip that gives it has been found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from wengert.course.grading.exercise_trials import ARGUMENTS, LETTERS, PROBES, arguments, flat
from wengert.course.grading.kit import Draw
from wengert.course.grading.report import LikelySlip, Verdict
from wengert.course.grading.steps import NOT_TRIED, TRIALS, Seen
from wengert.course.grading.texts import slips, texts

__all__ = ["judge"]

Function = Callable[..., Any]
Row = Sequence[float]
Rows = Sequence[Row]


# -- step 0: slopes ---------------------------------------------------------------------------------------------------


def _slopes(f: Function, xs: Row, h: float = 1e-6) -> list[float]:
    moved = [[x + d * (i == k) for i, x in enumerate(xs)] for k in range(len(xs)) for d in (h, -h)]
    return [(f(*up) - f(*down)) / (2 * h) for up, down in zip(moved[::2], moved[1::2], strict=True)]


def _changes(f: Function, xs: Row, h: float) -> list[float]:
    return [h * slope for slope in _slopes(f, xs)]


# -- step 10: exercises -----------------------------------------------------------------------------------------------


def _softmax(zs: Row) -> list[float]:
    return [math.exp(z) / math.fsum(map(math.exp, zs)) for z in zs]


def _product(a: Rows, b: Rows) -> list[list[float]]:
    return [[math.fsum([x * y for x, y in zip(row, column, strict=True)]) for column in _turned(b)] for row in a]


def _turned(a: Rows) -> list[list[float]]:
    return [list(column) for column in zip(*a, strict=True)]


def _summed(gradient: Rows, shape: Row, of: Callable[[list[float]], float] = math.fsum) -> list[float]:
    return [of(list(part)) for part in (_turned(gradient) if len(shape) == 1 else gradient)]


# -- step 11: a loss --------------------------------------------------------------------------------------------------


def _errors(w: Row, b: float, xs: Rows, ys: Row) -> list[float]:
    return [math.fsum([wi * xi for wi, xi in zip(w, x, strict=True)]) + b - y for x, y in zip(xs, ys, strict=True)]


def _mean(numbers: Row) -> float:
    return math.fsum(numbers) / len(numbers)


# -- step 12: letters -------------------------------------------------------------------------------------------------


def _counts(names: Sequence[str]) -> list[list[float]]:
    table = [[0.0] * len(LETTERS) for _ in LETTERS]
    for name in names:
        for one, two in pairwise(name):
            table[LETTERS.index(one)][LETTERS.index(two)] += 1
    return table


def _surprise(logits: Rows, counts: Rows, p: Callable[[float], float] = math.log) -> float:
    pairs = zip(logits, counts, strict=True)
    return -math.fsum([n * p(q) for row, ns in pairs for n, q in zip(ns, _softmax(row), strict=True)])


def _total(counts: Rows) -> float:
    return math.fsum(map(math.fsum, counts))


H = [10.0**-k for k in range(1, 11)]
Slip = tuple[str, Function]

# fmt: off
EXERCISES: dict[str, tuple[Function, list[Slip]]] = {
    "0 slope": (lambda f, x: _slopes(f, [x])[0], [
        ("sign", lambda f, x: -_slopes(f, [x])[0]),
        *[("not divided", lambda f, x, h=h: _changes(f, [x], h)[0]) for h in H],
        ("twice the nudge", lambda f, x: 2 * _slopes(f, [x])[0]),
        *[("nudge too large", lambda f, x, h=h: (f(x + h) - f(x)) / h) for h in (1.0, 0.5, 0.1, 0.05, 0.01)],
        ("nudge too small", lambda f, x: 0.0),
        *[("no difference", lambda f, x, h=h: f(x + h) / h) for h in H],
        ("no slope", lambda f, x: f(x))]),
    "0 slopes": (_slopes, [
        ("sign", lambda f, xs: [-slope for slope in _slopes(f, xs)]),
        *[("not divided", lambda f, xs, h=h: _changes(f, xs, h)) for h in H],
        ("nudge too small", lambda f, xs: [0.0] * len(xs)),
        ("nudges kept", lambda f, xs: [math.fsum(_slopes(f, xs)[:i + 1]) for i in range(len(xs))]),
        ("all inputs moved", lambda f, xs: [math.fsum(_slopes(f, xs))] * len(xs)),
        ("one input only", lambda f, xs: [_slopes(f, xs)[0]] * len(xs))]),
    "10 softmax": (_softmax, [
        ("not normalized", lambda zs: [math.exp(z) for z in zs]),
        ("no exponential", lambda zs: [z / math.fsum(zs) for z in zs]),
        ("largest for sum", lambda zs: [math.exp(z - max(zs)) for z in zs]),
        ("logarithm taken", lambda zs: [math.log(p) for p in _softmax(zs)])]),
    "10 cross_entropy": (lambda zs, k: -math.log(_softmax(zs)[k]), [
        ("sign", lambda zs, k: math.log(_softmax(zs)[k])),
        ("no logarithm", lambda zs, k: _softmax(zs)[k]),
        ("no logarithm", lambda zs, k: -_softmax(zs)[k]),
        ("no logarithm", lambda zs, k: 1 - _softmax(zs)[k]),
        ("all classes", lambda zs, k: -math.fsum(map(math.log, _softmax(zs)))),
        ("logit for probability", lambda zs, k: -zs[k])]),
    "10 matmul": (_product, [
        ("elementwise", lambda a, b: [[x * y for x, y in zip(*both, strict=True)] for both in zip(a, b, strict=True)]),
        ("rows with rows", lambda a, b: _product(a, _turned(b))),
        ("factors exchanged", lambda a, b: _product(b, a)),
        ("transposed", lambda a, b: _turned(_product(a, b)))]),
    "10 summed": (_summed, [
        ("mean for sum", lambda g, shape: _summed(g, shape, _mean)),
        ("first copy only", lambda g, shape: _summed(g, shape, lambda part: part[0])),
        ("not summed", lambda g, shape: flat(g)),
        ("other axis", lambda g, shape: _summed(g, (3,) if len(shape) == 2 else (2, 1))),
        ("all summed", lambda g, shape: math.fsum(flat(g)))]),
    "11 loss": (lambda *of: _mean([e * e for e in _errors(*of)]), [
        ("sum for mean", lambda *of: math.fsum([e * e for e in _errors(*of)])),
        ("not squared", lambda *of: _mean(_errors(*of))),
        ("size for square", lambda *of: _mean([abs(e) for e in _errors(*of)])),
        ("bias left out", lambda w, b, xs, ys: _mean([e * e for e in _errors(w, 0.0, xs, ys)])),
        ("one example only", lambda *of: _errors(*of)[-1] ** 2),
        ("one example only", lambda *of: _errors(*of)[0] ** 2)]),
    "12 counts": (lambda names: _counts([f".{name}." for name in names]), [
        ("ends left out", _counts),
        ("start left out", lambda names: _counts([f"{name}." for name in names])),
        ("end left out", lambda names: _counts([f".{name}" for name in names])),
        ("row for column", lambda names: _turned(_counts([f".{name}." for name in names]))),
        ("one for each pair", lambda names: [[float(n > 0) for n in row] for row in
                                             _counts([f".{name}." for name in names])])]),
    "12 loss": (lambda logits, counts: _surprise(logits, counts) / _total(counts), [
        ("sum for mean", _surprise),
        ("sign", lambda logits, counts: -_surprise(logits, counts) / _total(counts)),
        ("counts left out", lambda logits, counts: _surprise(logits, [[1.0] * 3] * 3) / 9),
        ("counts left out", lambda logits, counts: _surprise(logits, [[1.0] * 3] * 3) / _total(counts)),
        ("no logarithm", lambda logits, counts: _surprise(logits, counts, float) / _total(counts)),
        ("softmax of columns", lambda logits, counts: _surprise(_turned(logits), _turned(counts)) / _total(counts))]),
}
# fmt: on
"""The step and the function: how it is right, and with each slip, of which the first that fits is told."""

TEXTS = texts("exercises")


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
        if len(given) == len(wanted) and all(_near(a, b, 1e-6, 1e-6) for a, b in zip(wanted, given, strict=True)):
            return self.row(row, "ok", "ok")
        return self.row(row, "ok", "wrong", self.find("gradients" if any(map(any, given)) else "graph cut", row))

    def slip(self, row: str, name: str, calls: list[list[Any]], seen: list[list[float]]) -> str:
        """The slip of numbers that are not right; empty where they are."""
        right, wrong = EXERCISES[name]
        wanted = [flat(right(*call)) for call in calls]
        within = 1e-3 if name.startswith("0 ") else 1e-6  # a slope by nudging is never exact
        if all(_near(a, b, within, within) for a, b in zip(wanted, seen, strict=True)):
            return ""
        both = list(zip(calls, seen, strict=True))
        fitting = [slip for slip, gives in wrong if all(_near(flat(gives(*call)), b, 10 * within) for call, b in both)]
        if not fitting:
            told = {"got": len(seen[0]), "of": len(wanted[0])}
            return self.find("unknown" if told["got"] == told["of"] else "number of outputs", row, told=told)
        pairs = [pair for numbers in zip(wanted, seen, strict=True) for pair in zip(*numbers, strict=False)]
        off = next(((x, y) for x, y in pairs if not _near([x], [y], within, within)), None)
        says, *write = TEXTS[name][fitting[0]]
        finding = LikelySlip(fitting[0], f"{row}: {says}", (row,), write=tuple(write))
        if off is not None:
            finding = replace(finding, what="a number that it gives", expected=off[0], got=off[1])
        self.findings.append(finding)
        return fitting[0]


def _near(xs: Row, ys: Row, within: float, floor: float = 1e-12) -> bool:
    """Whether numbers agree, one by one: to a part of their size, or to `floor`, where they are small."""
    pairs = zip(xs, ys, strict=False)
    return len(xs) == len(ys) and all(x == y or math.isclose(x, y, rel_tol=within, abs_tol=floor) for x, y in pairs)


def _gradients(f: Function, call: Sequence[Any], kinds: Sequence[str]) -> Iterator[list[float]]:
    """Of each output of a call, the gradient by every number that goes in as a Value."""
    inputs = [flat(part) if "value" in kind else [] for part, kind in zip(call, kinds, strict=True)]

    def at(*xs: float) -> list[float]:
        left = iter(xs)
        return flat(f(*[_refilled(part, left) if one else part for part, one in zip(call, inputs, strict=True)]))

    xs = [x for one in inputs for x in one]
    for i in range(len(at(*xs))):
        yield _slopes(lambda *xs, i=i: at(*xs)[i], xs, 1e-5)


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
        verdict.add(one)
    return verdict
