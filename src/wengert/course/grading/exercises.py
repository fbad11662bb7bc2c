"""Whether the functions of the lessons that are about no class are right, from the numbers that came out of them.

Each stands here as it should be, in plain floats, and as it is with each of its slips; its gradients are told by
differences. Where something else came out than should, the first slip that gives it has been found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from wengert.course.grading.exercise_trials import ARGUMENTS, LETTERS, PROBES, arguments, flat
from wengert.course.grading.kit import Draw
from wengert.course.grading.report import LikelySlip, Verdict
from wengert.course.grading.steps import NOT_TRIED, TRIALS, Seen

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


class Exercise(NamedTuple):
    """A function that a lesson asks for: what to write, how it is right, and how it can be wrong."""

    asks: str
    right: Function
    slips: Sequence[tuple[str, str, str, Function]]  # name, what is wrong, what to write, and what it then gives
    within: float = 1e-6  # how near is right


H = [10.0**-k for k in range(1, 11)]
SLOPE = "(f(x + h) - f(x)) / h"
MOVE = "moved = list(xs); moved[i] += h  # a new list for each input"
DOT = "sum(a * b for a, b in zip(row, column))"
LOSS = "sum((predicted - y) ** 2 for ...) / len(ys)"
PAIRS = 'letters = "." + name + "."; zip(letters, letters[1:])'
LIKELIHOOD = "-sum(n * log(p) for ...) / total"

# fmt: off
EXERCISES: dict[str, Exercise] = {
    "0 slope": Exercise("a function slope(f, x): how fast f(x) grows as x does, by a small nudge of x",
        lambda f, x: _slopes(f, [x])[0], [
        ("sign", "the difference is taken the wrong way round", SLOPE, lambda f, x: -_slopes(f, [x])[0]),
        *[("not divided", "the change of f(x) is not divided by the nudge", SLOPE,
           lambda f, x, h=h: _changes(f, [x], h)[0]) for h in H],
        ("twice the nudge", "f(x + h) - f(x - h) is the change over 2 h", "(f(x + h) - f(x - h)) / (2 * h)",
         lambda f, x: 2 * _slopes(f, [x])[0]),
        *[("nudge too large", "the nudge is so large that f bends on the way", "h = 1e-4",
           lambda f, x, h=h: (f(x + h) - f(x)) / h) for h in (1.0, 0.5, 0.1, 0.05, 0.01)],
        ("nudge too small", "the nudge is lost in rounding: x + h is x, or nearly", "h = 1e-4", lambda f, x: 0.0),
        *[("no difference", "f(x) is not subtracted", SLOPE, lambda f, x, h=h: f(x + h) / h) for h in H],
        ("no slope", "this is f(x) itself", SLOPE, lambda f, x: f(x))], 1e-3),
    "0 slopes": Exercise("a function slopes(f, xs): the list of the slopes of f(*xs), by one input after the other",
        _slopes, [
        ("sign", "the difference is taken the wrong way round", "(f(*moved) - f(*xs)) / h",
         lambda f, xs: [-s for s in _slopes(f, xs)]),
        *[("not divided", "the change is not divided by the nudge", "(f(*moved) - f(*xs)) / h",
           lambda f, xs, h=h: _changes(f, xs, h)) for h in H],
        ("nudges kept", "an input that was moved stays moved while the next ones are", MOVE,
         lambda f, xs: [math.fsum(_slopes(f, xs)[:i + 1]) for i in range(len(xs))]),
        ("all inputs moved", "all inputs are moved at once: each slope is by one of them", MOVE,
         lambda f, xs: [math.fsum(_slopes(f, xs))] * len(xs)),
        ("one input only", "it is one input that is moved, again and again", MOVE,
         lambda f, xs: [_slopes(f, xs)[0]] * len(xs))], 1e-3),
    "10 softmax": Exercise("a function softmax(zs): of a list of Values, a list of Values above 0 with the sum 1",
        _softmax, [
        ("not normalized", "the exponentials are not divided by their sum", "[e / total for e in exps]",
         lambda zs: [math.exp(z) for z in zs]),
        ("no exponential", "the numbers themselves are divided by their sum", "exps = [z.exp() for z in zs]",
         lambda zs: [z / math.fsum(zs) for z in zs]),
        ("largest for sum", "the exponentials are divided by the largest", "total = sum(exps)",
         lambda zs: [math.exp(z - max(zs)) for z in zs]),
        ("logarithm taken", "this is the logarithm of the softmax", "[e / total for e in exps]",
         lambda zs: [math.log(p) for p in _softmax(zs)])]),
    "10 cross_entropy": Exercise("a function cross_entropy(zs, k): minus the logarithm of the softmax, at the class k",
        lambda zs, k: -math.log(_softmax(zs)[k]), [
        ("sign", "the minus sign is missing: a probability's logarithm is below 0", "-softmax(zs)[k].log()",
         lambda zs, k: math.log(_softmax(zs)[k])),
        ("no logarithm", "it is the probability, or 1 minus it, without its logarithm", "-softmax(zs)[k].log()",
         lambda zs, k: 1 - _softmax(zs)[k]),
        ("no logarithm", "it is the probability, without its logarithm", "-softmax(zs)[k].log()",
         lambda zs, k: -_softmax(zs)[k]),
        ("no logarithm", "it is the probability, without its logarithm", "-softmax(zs)[k].log()",
         lambda zs, k: _softmax(zs)[k]),
        ("all classes", "all classes are in the sum: only the right one, k, counts", "-softmax(zs)[k].log()",
         lambda zs, k: -math.fsum(map(math.log, _softmax(zs)))),
        ("logit for probability", "it is the number before the softmax", "-softmax(zs)[k].log()",
         lambda zs, k: -zs[k])]),
    "10 matmul": Exercise("a function matmul(A, B): the product of two matrices of Values, lists of rows", _product, [
        ("elementwise", "entries are multiplied one by one: a product is of rows and columns", DOT,
         lambda a, b: [[x * y for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]),
        ("rows with rows", "rows of A meet rows of B: they have to meet its columns", "column in zip(*B)",
         lambda a, b: _product(a, _turned(b))),
        ("factors exchanged", "this is B times A", DOT, lambda a, b: _product(b, a)),
        ("transposed", "rows and columns of the product are exchanged", "[[... for column in zip(*B)] for row in A]",
         lambda a, b: _turned(_product(a, b)))]),
    "10 summed": Exercise("a function summed(gradient, shape): a gradient, summed over what was broadcast to its shape",
        _summed, [
        ("mean for sum", "the mean is taken: each copy hands its whole gradient back", "gradient.sum(axis=...)",
         lambda g, shape: _summed(g, shape, lambda part: _mean(part))),
        ("first copy only", "the first copy alone is taken", "gradient.sum(axis=...)",
         lambda g, shape: _summed(g, shape, lambda part: part[0])),
        ("not summed", "the gradient comes back as it was", "gradient.sum(axis=...)", lambda g, shape: flat(g)),
        ("other axis", "it is summed over the other axis", "gradient.sum(axis=0) for a row, axis=1 for a column",
         lambda g, shape: _summed(g, (3,) if len(shape) == 2 else (2, 1))),
        ("all summed", "everything is summed: only what was broadcast is", "gradient.sum(axis=...)",
         lambda g, shape: math.fsum(flat(g)))]),
    "11 loss": Exercise("a function loss(w, b, xs, ys): the mean of the squared errors of w[0]*x[0] + ... + b",
        lambda *of: _mean([e * e for e in _errors(*of)]), [
        ("sum for mean", "the sum is not divided by the number of examples", LOSS,
         lambda *of: math.fsum([e * e for e in _errors(*of)])),
        ("not squared", "errors of both signs cancel: they are not squared", LOSS, lambda *of: _mean(_errors(*of))),
        ("size for square", "the sizes of the errors are taken, not their squares", LOSS,
         lambda *of: _mean([abs(e) for e in _errors(*of)])),
        ("bias left out", "the bias is left out", "sum(...) + b",
         lambda w, b, xs, ys: _mean([e * e for e in _errors(w, 0.0, xs, ys)])),
        ("one example only", "one example alone is in the loss", LOSS, lambda *of: _errors(*of)[-1] ** 2),
        ("one example only", "one example alone is in the loss", LOSS, lambda *of: _errors(*of)[0] ** 2)]),
    "12 counts": Exercise("a function counts(names): a table of how often each letter follows each, with '.' at both "
        "ends of a name", lambda names: _counts([f".{name}." for name in names]), [
        ("ends left out", "no '.' is set before and behind a name", PAIRS, _counts),
        ("start left out", "no '.' is set before a name", PAIRS, lambda names: _counts([f"{n}." for n in names])),
        ("end left out", "no '.' is set behind a name", PAIRS, lambda names: _counts([f".{n}" for n in names])),
        ("row for column", "the row is the letter that follows: it has to be the one before", "table[i][j] += 1",
         lambda names: _turned(_counts([f".{name}." for name in names]))),
        ("one for each pair", "a pair is counted once, however often it is there", "table[i][j] += 1",
         lambda names: [[float(n > 0) for n in row] for row in _counts([f".{name}." for name in names])])]),
    "12 loss": Exercise("a function loss(logits, counts): the mean surprise, minus the logarithm of the softmax of a "
        "row, over all pairs counted", lambda logits, counts: _surprise(logits, counts) / _total(counts), [
        ("sum for mean", "the sum is not divided by the number of pairs", LIKELIHOOD, _surprise),
        ("sign", "the minus sign is missing", LIKELIHOOD, lambda z, n: -_surprise(z, n) / _total(n)),
        ("counts left out", "each pair counts once, not as often as it is there", LIKELIHOOD,
         lambda z, n: _surprise(z, [[1.0] * 3] * 3) / 9),
        ("counts left out", "each pair counts once, not as often as it is there", LIKELIHOOD,
         lambda z, n: _surprise(z, [[1.0] * 3] * 3) / _total(n)),
        ("no logarithm", "probabilities are added, without their logarithm", LIKELIHOOD,
         lambda z, n: _surprise(z, n, float) / _total(n)),
        ("softmax of columns", "the softmax is taken of columns: of each row it is", "log_softmax(row)",
         lambda z, n: _surprise(_turned(z), _turned(n)) / _total(n))]),
}
# fmt: on

OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "graph cut": ("{row} gives the right numbers, and no gradient: Values all the way, no .data and no float", ()),
    "gradients": ("{row} gives the right numbers, and wrong gradients", ()),
    "nothing returned": ("{row} gives None", ("return ...",)),
    "number of outputs": ("{row} gives {got} numbers, where {of} are expected", ()),
    "unknown": ("{row}: wrong, and no slip that is known makes these numbers", ()),
    "error": ("{row} raises {error}", ()),
}


class _Functions(Verdict):
    """The table of a step that asks for functions."""

    words = OTHERS

    def judge(self, row: str, one: Exercise, kinds: tuple[str, ...], told: Seen, numbers: Draw) -> None:
        """Judge one function by all of its calls."""
        calls = [arguments(kinds, numbers, float) for _ in range(PROBES)]
        if told.kind == "unfit absent":
            return self.not_yet(row, one.asks)
        if told.kind:
            none = "'NoneType'" in told.says and told.kind in ("TypeError", "AttributeError") and not told.place
            slip = self.find("nothing returned" if none else "error", row, told={"error": told.says}, where=told.place)
            return self.row(row, "wrong", remark=slip)
        seen = [outputs for outputs, _ in told.numbers]
        slip = self.slip(row, one, calls, seen)
        if slip:
            return self.row(row, "wrong", remark=slip)
        if not any("value" in kind for kind in kinds):
            return self.row(row)
        given = [gradient for _, gradients in told.numbers for gradient in gradients]
        right = [gradient for call in calls for gradient in _gradients(one.right, call, kinds)]
        if len(given) == len(right) and all(_near(a, b, 1e-6, 1e-6) for a, b in zip(right, given, strict=True)):
            return self.row(row, "ok", "ok")
        slip = self.find("gradients" if any(map(any, given)) else "graph cut", row)
        return self.row(row, "ok", "wrong", slip)

    def slip(self, row: str, one: Exercise, calls: list[list[Any]], seen: list[list[float]]) -> str:
        """The slip of numbers that are not right; empty where they are."""
        right = [flat(one.right(*call)) for call in calls]
        if all(_near(a, b, one.within, one.within) for a, b in zip(right, seen, strict=True)):
            return ""
        gives = [
            (name, says, write)
            for name, says, write, wrong in one.slips
            if all(_near(flat(wrong(*call)), b, 10 * one.within) for call, b in zip(calls, seen, strict=True))
        ]
        if not gives:
            told = {"got": len(seen[0]), "of": len(right[0])}
            return self.find("unknown" if told["got"] == told["of"] else "number of outputs", row, told=told)
        name, says, write = gives[0]
        pairs = [pair for both in zip(right, seen, strict=True) for pair in zip(*both, strict=False)]
        off = next(((x, y) for x, y in pairs if not _near([x], [y], one.within, one.within)), None)
        finding = LikelySlip(name, f"{row}: {says}", (row,), write=(write,))
        if off is not None:
            finding = replace(finding, what="a number that it gives", expected=off[0], got=off[1])
        self.findings.append(finding)
        return name


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
        trial, one = TRIALS[f"exercise {step} {name}"], _Functions()
        one.judge(trial.row, EXERCISES[f"{step} {name}"], kinds, seen.get(trial.id, NOT_TRIED), Draw(seed, trial.id))
        one.rows = [replace(row, step=step) for row in one.rows]
        verdict.add(one)
    return verdict
