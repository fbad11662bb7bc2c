"""The engine's lessons: a right answer in any style passes its check, no wrong one does, and advice mends."""

from __future__ import annotations

import ast
import contextlib
import re
import textwrap
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import pytest

from tests.answers import GAPS, Change
from tests.checked import counted
from tests.lessons import LESSONS, SLIPS
from wengert.errors import ArgumentError
from wengert_course import Report, check
from wengert_course.notebooks import SOLUTION

SEEDS = [pytest.param(range(1), id="1 seed"), pytest.param(range(50), id="50", marks=pytest.mark.nightly)]
SHOWS = re.compile(r"^(draw|steps|tree)\(.*$", re.MULTILINE)


def solutions(number: int) -> list[str]:
    """What we write into the gaps of a lesson."""
    return [found[1] for found in SOLUTION.finditer(LESSONS[number].text)]


def answered(number: int, gap: int, answer: Change | str) -> str:
    """What stands in a gap: an answer, or ours with a change."""
    if isinstance(answer, str):
        return answer + "\n"
    old, new = answer
    ours = solutions(number)[gap]
    assert old in ours, (number, gap, old)
    return ours.replace(old, new)


def judged(number: int, gap: int, text: str, seed: int = 0) -> Report | None:
    """What the check after a gap says of an answer in it, with ours in the others; None, where it cannot try that."""
    space: dict[str, Any] = {"__name__": "__main__"}
    begun = 0
    for cell in LESSONS[number].cells():
        if "course.check(" in cell.text and begun > gap and number != 3:  # whose last check is of both
            break
        if cell.kind == "code" and "unchecked" not in cell.tags:
            gaps = len(SOLUTION.findall(cell.text))
            parts = [text if begun + i == gap else ours for i, ours in enumerate(solutions(number)[begun:][:gaps])]
            begun += gaps
            code = "".join(
                piece + part for piece, part in zip_longest(SOLUTION.split(cell.text)[::2], parts, fillvalue="")
            )
            with contextlib.suppress(Exception):  # as in a notebook, whose later cells run all the same
                exec(SHOWS.sub("", code), space)
    try:
        return check(space, number, seed=seed, timeout=24.0)
    except ArgumentError:
        return None


def test_each_gap_has_five_right_answers_and_ten_wrong_ones() -> None:
    assert list(GAPS) == [(number, gap) for number in range(1, 8) for gap in range(len(solutions(number)))]
    for right, wrong in GAPS.values():
        assert len({*right}) == len(right) >= 5
        assert len({*wrong}) == len(wrong) >= 10


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("number", "gap"), GAPS)
def test_a_right_answer_is_right(number: int, gap: int, seeds: range) -> None:
    for seed in seeds:  # whose trials have been worked out for the first answer
        for answer in GAPS[number, gap][0][:: 3 if len(seeds) == 1 else 1]:
            report = judged(number, gap, answer + "\n", seed)
            assert report is not None, answer
            assert report.right, f"{answer}\n{report}"


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("number", "gap"), GAPS)
def test_a_wrong_answer_is_not(number: int, gap: int, seeds: range) -> None:
    for seed in seeds:
        for answer in GAPS[number, gap][1][:: 12 if len(seeds) == 1 else 1]:
            report = judged(number, gap, answered(number, gap, answer), seed)
            assert report is None or not report.right, f"seed {seed}: {answer}"


# ------------------------------------------------------------------------------------- advice


def put(lines: list[str], first: int, last: int, write: tuple[str, ...], indent: int) -> str:
    """Lines with others in the place of some."""
    return "\n".join([*lines[:first], textwrap.indent("\n".join(write), " " * indent), *lines[last:], ""])


def applied(right: str, wrong: str, write: tuple[str, ...]) -> str:
    """A wrong answer with the lines that the report says, for a method, a closure, a result, or what is wrong."""
    lines = wrong.splitlines()
    matcher = SequenceMatcher(None, right.splitlines(), lines, autojunk=False)
    (kind, was, _, first, last), *_ = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    near = next(filter(str.strip, lines[first:last] if kind != "delete" else right.splitlines()[was:]))
    indent = len(near) - len(near.lstrip())
    if "def " not in right:
        return put(lines, first, last, write, 0)
    methods = [node for node in ast.parse("class Value:\n" + wrong).body[0].body if isinstance(node, ast.FunctionDef)]  # type: ignore[attr-defined]
    around = next((node for node in methods if (node.end_lineno or 0) - 2 >= first), methods[-1])
    if write[0].startswith("def ") and len(write) > 1:
        return put(lines, around.lineno - 2, (around.end_lineno or 0) - 1, write, 4)
    if all(re.match(r"\w+\.grad \+?= .*out\.grad$", line) for line in write):
        around = next(node for node in ast.walk(around) if isinstance(node, ast.FunctionDef) and node is not around)
        return put(lines, around.body[0].lineno - 2, (around.end_lineno or 0) - 1, write, 12)
    body = [node for node in around.body if not ast.unparse(node).startswith("other = ")]
    if write == ("return out",):
        return put(lines, (around.end_lineno or 0) - 1, (around.end_lineno or 0) - 1, write, 8)
    if write[0].startswith(("return ", "out = ")):
        if len(write) == 1 and write[0].startswith("out = "):
            body = [node for node in body if ast.unparse(node).startswith("out = ")]
        return put(lines, body[0].lineno - 2, (body[-1].end_lineno or 0) - 1, write, 8)
    return put(lines, first, last, write, indent)


ADVISED = [(number, which) for number in range(1, 8) for which in range(len(SLIPS[number]))]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("number", "which"), ADVISED)
def test_a_slip_gets_its_name_and_the_advice_mends_it(number: int, which: int) -> None:
    """Applied to the program that it was given for; what follows from the slip has no other name."""
    name, (old, new) = SLIPS[number][which]
    (gap,) = [i for i, ours in enumerate(solutions(number)) if old in ours]
    right, wrong = solutions(number)[gap], answered(number, gap, (old, new))
    report = judged(number, gap, wrong)
    assert report is not None
    finding, *_ = [one for one in report.findings if not one.note]
    assert set(counted(report)) == {name}, str(report)
    assert not report.right
    if finding.write == ():
        assert finding.slip == "wrong gradient", "the sentence says it"
        return
    mended = applied(right, wrong, finding.write)
    again = judged(number, gap, mended)
    assert again is not None, mended
    assert again.right, f"{mended}\n{again}"
    assert counted(again) == []
