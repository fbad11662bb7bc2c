"""What a report says to a learner: in the words of the lesson, of what stands in the file, and nothing false."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import wengert
import wengert_course as course
from tests import engines, half_done
from tests.answers import INIT
from tests.checked import counted, tried
from tests.lessons import LESSONS, SLIPS, handed_in
from tests.test_answers import answered, judged, solutions
from wengert.apps import cli
from wengert_course import check, kept
from wengert_course.checks import steps

# ------------------------------------------------------------------------------------- the course's own notebooks


def test_a_table_says_who_has_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = handed_in(tmp_path, 4, solved=False)
    assert cli.main(["check", str(path), "--table"]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[1:] == ["Value", "4", "-", "not", "begun"]
    assert cli.main(["check", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["begun"] is False
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("# YOUR CODE HERE: tanh", "# mine: tanh")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert check(path).begun
    path.write_text(json.dumps(notebook | {"metadata": {"wengert": {"step": "4"}}}), encoding="utf-8")
    assert check(path, 4).begun, "what is no step of ours says nothing"


def test_what_each_check_tries_can_be_read() -> None:
    for number in LESSONS:
        text = course.asked(number)
        rows = {
            trial.row
            for trial in steps.TRIALS.values()
            if trial.step == number and trial.kind in ("core", "own", "kept") and not trial.id.startswith("twice")
        }
        assert rows
        assert [row for row in rows if row not in text] == []
        functions = re.findall(r"^def \w+\(own, draw(?:, written)?\):\n    \"\"\"(.+?)(?:\"|\n)", text, re.MULTILINE)
        operations = re.findall(r'^    "(.+)": \[', text, re.MULTILINE)
        assert rows <= {*functions, *operations}, "each is one small function, or an operation that one is given"


# ------------------------------------------------------------------------------------- what it says


def finding(number: int, gap: int, *change: tuple[str, str]) -> Any:
    text = solutions(number)[gap]
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    report = judged(number, gap, text)
    assert report is not None
    return next(one for one in report.findings if not one.note), report


SAYS = [
    (3, 0, ("d.grad = f.data * L.grad", "d.grad = f * L.grad"), "d.grad is a Value, where a number is asked for"),
    (4, 1, ('(self,), "tanh"', '(self), "tanh"'), "(self) is self, and (self,) with its comma is a tuple"),
    (5, 0, ("node._backward()", "node._backward"), "and does not call it: the brackets are missing"),
    (5, 0, ("node._backward()", "self._backward()"), "calls the _backward of the result once for each node"),
    (5, 0, ("reversed(order)", "order.reverse()"), "order.reverse() turns the list itself"),
    (6, 0, SLIPS[6][-1][1], "or both gradients are read before either is written"),
    (7, 0, ("self.data**n, (self,)", "self.data**n.data, (self,)"), "n is a number, and has no .data"),
    (1, 1, ("return Value(self.data + other.data)", "return self.data + other.data"), "where a new Value is asked for"),
    (1, 0, ("return f", "f"), "__repr__ gives a text back, and prints nothing"),
    (1, 0, ("(self)", "()"), "the first argument of a method is the object itself, self"),
]


@pytest.mark.parametrize(("number", "gap", "change", "says"), SAYS)
def test_a_mistake_is_told_as_what_it_is(number: int, gap: int, change: tuple[str, str], says: str) -> None:
    told, _ = finding(number, gap, change)
    assert says in told.says


def test_advice_is_in_the_words_of_the_lesson() -> None:
    """``=`` before lesson 6; what is said by others in lesson 7; nothing that a class of another make does not have."""
    told, _ = finding(4, 1, ("(1 - t**2) * out.grad", "1 - t**2"))
    assert told.write == ("self.grad = (1 - out.data**2) * out.grad",)
    told, _ = finding(6, 0, ("(1 - t**2) * out.grad", "1 - t**2"))
    assert told.write == ("self.grad += (1 - out.data**2) * out.grad",)
    told, _ = finding(7, 1, ("return self + (-other)", "return self + other"))
    assert told.write == ("def __sub__(self, other):", "    return self + (-other)")
    wrong = engines.PLAIN.replace("(other.data, self.data)", "(self.data, other.data)")
    (told,) = judged_text(wrong).findings
    assert (told.slip, told.write) == ("swapped factors", ())


def judged_text(text: str) -> Any:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(text, space)
    return check(space, 7, seed=1, timeout=60.0)


def test_lesson_7_asks_for_what_its_text_asks_for() -> None:
    for name, row in (("__rsub__", "3 - a"), ("__rtruediv__", "4 / a")):
        report = judged(7, 2, solutions(7)[2].replace(f"def {name}(", f"def without{name}("))
        assert report is not None
        assert [one.name for one in report.not_yet] == [row]


def test_an_error_of_two_rows_is_one_finding_with_both_places(tmp_path: Path) -> None:
    """And no row refers to one below it."""
    text = half_done.GRAPH.replace(engines.WRAP, "")
    report = tried(tmp_path, text, 2)
    (told,) = [one for one in report.findings if one.slip == "number not wrapped"]
    assert told.rows == ("a * 3", "a + 3")
    lines = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if "self.data * other" in line or "self.data + other" in line
    ]
    assert told.says.startswith("a * 3, a + 3: a number is not made a Value before its .data is read (")
    for number in lines:
        assert f"line {number}: return Value(self.data " in told.says
    remarks = {row.name: row.remark for row in report.rows if row.state == "wrong"}
    assert remarks["a + 3"] == remarks["a * 3"] == "number not wrapped"


def test_what_gives_nothing_is_told_of_the_operation_and_not_of_its_operands(tmp_path: Path) -> None:
    report = tried(tmp_path, engines.wrong("returns_nothing"), 6)
    assert [one.rows[0] for one in report.findings if not one.note] == ["a * b"]


def test_where_it_happened_is_quoted_and_cells_are_counted_as_pages_count_them(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "A text"}]
    for source in ("import math", half_done.BARE + half_done.SUM.replace("isinstance(other, Value)", "other.is_value")):
        cells.append({"cell_type": "code", "metadata": {}, "source": source})
    path = tmp_path / "own.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    told = check(path, 1).findings[0]
    assert re.search(r"\(cell 2, line 9: other = other if other\.is_value else Value\(other\)\)$", told.says)


def test_other_names_than_those_of_the_lesson_are_told() -> None:
    own = (
        "    "
        + INIT
        + "".join(
            f"        self.{at} = {of}\n"
            for at, of in (("data", "data"), ("prev", "tuple(_children)"), ("_op", "_op"), ("label", "label"))
        )
    )
    report = judged(2, 0, own)
    assert report is not None
    assert (
        "It calls .prev what is expected as ._prev, and was tried with that. The cells of the lesson ask for that."
        in report.remarks
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "x = input()\n",
            'EOFError: EOF when reading a line, while the file was imported: what asks belongs under if __name__ == "',
        ),
        ("%matplotlib inline\n", "SyntaxError: invalid syntax: it is a command of notebooks"),
    ],
)
def test_a_file_that_cannot_be_run_says_what_to_do(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(wengert.errors.ArgumentError, match=re.escape(words)):
        tried(tmp_path, text + half_done.BARE)


# ------------------------------------------------------------------------------------- what the lessons claim

CLAIMS = """
def train(model, xs, ys, steps, rate, zero=True):
    losses = []
    for _ in range(steps):
        loss = sum(((model(x) - y) ** 2 for x, y in zip(xs, ys)), Value(0.0)) / len(xs)
        for p in model.parameters() if zero else ():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        losses.append(loss.data)
    return losses
"""


def space_of_claims() -> dict[str, Any]:
    """The networks of lesson 8, on Wengert's Value, which gives the same numbers sooner."""
    space: dict[str, Any] = {"Value": wengert.Value, "random": random}
    text = LESSONS[9].text
    exec(re.search(r"^xs = .*\nys = .*$", text, re.MULTILINE)[0], space)  # type: ignore[index]
    exec(re.search(r"^corners, either = .*$", text, re.MULTILINE)[0], space)  # type: ignore[index]
    classes = "\n".join(cell.shown(True) for cell in LESSONS[8].cells() if "class Neuron" in cell.text)
    exec(classes + CLAIMS, space)
    return space


def test_about_half_of_the_networks_of_relus_die_and_few_with_a_linear_end() -> None:
    space, seeds = space_of_claims(), 30

    def dead(linear: bool) -> int:
        count = 0
        for seed in range(seeds):
            random.seed(seed)
            model = space["MLP"](2, [4, 4, 1])
            for layer in model.layers:
                ends = linear and layer is model.layers[-1]
                for neuron in layer.neurons:
                    neuron.act = (lambda z: z) if ends else wengert.relu
            space["train"](model, space["corners"], space["either"], 100, 0.2)
            count += all(p.grad == 0.0 for p in model.parameters())
        return count

    space["Neuron"].__call__ = lambda self, x: self.act(sum((w * xi for w, xi in zip(self.w, x, strict=True)), self.b))
    assert 10 < dead(False) < 20
    assert dead(True) < 4


def test_with_most_seeds_the_forgotten_zero_does_not_show() -> None:
    space, lost = space_of_claims(), 0
    for seed in range(12):
        random.seed(seed)
        lost += space["train"](space["MLP"](3, [4, 4, 1]), space["xs"], space["ys"], 60, 0.2, zero=False)[-1] > 0.25
    assert 0 < lost < 6


def test_numbers_in_the_texts() -> None:
    (entries,) = re.findall(r"^# ([\d,]+) entries to fill", LESSONS[12].text, re.MULTILINE)
    assert int(entries.replace(",", "")) == 27**3
    assert "two million calls" in LESSONS[5].text
    assert 2_000_000 < 2**21 - 1 < 2_200_000, "as the lesson's cell counts 2**5 - 1 calls for four sums"
    assert "$4 (3 + 1) + 4 (4 + 1) + 1 (4 + 1)$ parameters" in LESSONS[8].text
    assert 4 * (3 + 1) + 4 * (4 + 1) + 1 * (4 + 1) == 41
    assert len(re.findall(r"\w+(?=\.grad)", re.sub(r"= .*", "", solutions(3)[0]))) == 7
    for gap, count in ((0, 7), (1, 10)):
        space = steps.TEXTS["by_hand"][[*steps.TEXTS["by_hand"]][gap]]["slopes"]
        assert len(space) == count, "seventeen gradients, as the page of the course says"


def test_ours_is_made_once() -> None:
    assert kept._ours(7) is kept._ours(7)


def test_a_gap_is_followed_by_its_check() -> None:
    """Before anything runs that needs what stands in it: the first cell of code behind a gap is a check."""
    for number, lesson in LESSONS.items():
        code = [cell for cell in lesson.cells() if cell.kind == "code"]
        for cell, following in pairwise(code):
            if cell.is_gap:
                assert f"step={number})" in following.text, (number, cell.text[:60])


def test_a_slip_that_depends_on_the_order_of_operands_is_told(tmp_path: Path) -> None:
    report = tried(tmp_path, half_done.FIRST_PASS.replace("v._backward()", "self._backward()"), 6)
    assert "root only" in counted(report)
    assert answered(5, 0, ("node._backward()", "self._backward()")) != solutions(5)[0]
