"""The lessons of the course run from top to bottom, solved, as notebooks; their cells show what calculus says."""

from __future__ import annotations

import json
import re
import runpy
from ast import literal_eval
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from wengert_course import answers, lessons

COURSE = Path(__file__).resolve().parent.parent
LESSONS = {lesson.number: lesson for lesson in lessons()}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.plot,
    pytest.mark.filterwarnings("default"),  # a client of Jupyter has its own to warn of
]


def approx(expected: Any, digits: int = 6) -> Any:
    return pytest.approx(expected, abs=10.0**-digits)


SHOWN: dict[tuple[int, str], Callable[[Any], bool]] = {
    (0, "slope(f, 3.0)"): lambda out: out == approx(14.0, 3),
    (0, "d(2.0, -3.0, 10.0), [round"): lambda out: out == (4.0, [-3.0, 2.0, 1.0]),
    (3, "for leaf in (a, b, c, f):"): lambda out: out == approx(-7.286496),
    (3, "o = Value(math.tanh(n.data)"): lambda out: out == approx(0.5),
    (5, 'len(calls), "calls for 5 nodes"'): lambda out: out[0] == 31,
    (6, "(a.grad, b.grad), f.data"): lambda out: out == ((-3.0, -8.0), -6.0),
    (6, "seen  # the slope is 2 both times"): lambda out: out == [2.0, 4.0],
    (7, "y.data, x.grad"): lambda out: out == (20.0, 14.0),
    (8, "len(n.parameters())"): lambda out: out == 41,
    (8, 'sum(p.grad != 0 for p in n.parameters()), "of 41'): lambda out: out[0] == 41,
    (8, "class Repeated(Layer):"): lambda out: len(set(out[0])) == 1 and out[1] == 4,
    (9, "def forgetful("): lambda out: min(out) < 0.1 and out[-1] > 1.9,
    (9, "losses = train(n, xs, ys, 60, 0.2)"): lambda out: out[0][-1] < 0.1 and out[1] == approx([1, -1, -1, 1], 1),
    (9, "corners, either = "): lambda out: out == (0.5, [0.0] * 4, 0.0),
    (10, "[round(z.grad, 6) for z in zs]"): lambda out: [p - g for g, p in zip(*out, strict=True)] == approx([1, 0, 0]),
    (10, 'sum(chosen(x) == k for x, k in zip(X, y)), "of"'): lambda out: out == (60, "of", 60),
    (10, "history.accuracy[-1]"): lambda out: out >= 0.97,
    (10, "len(worst), max("): lambda out: out[0] > 50 and out[1][1] < 1e-8,
    (11, "broken.data, small.data"): lambda out: out[0] == out[1] and out[2] == [0.0, 0.0],
    (12, "best, math.log(27)"): lambda out: out == approx((2.273887, 3.295837)),
    (12, "sum(flat[0]), surprise"): lambda out: out[0] == 0 and out[1] < 2.2,
}
"""What the last expression of the cell with this text has to be, of a lesson."""

PRINTED: dict[tuple[int, str], str] = {
    (0, "for k in (1, 2, 4"): r"h = 1e-4 +slope 14\.0003.*\n(.*\n)+h = 1e-16 +slope 0\.0000000000\n",
    (1, "class Trusting"): r"AttributeError: 'int' object has no attribute 'data'",
    (3, 'for i, name in enumerate("abcf"):'): r"dL/da = 6.0000\ndL/db = -4.0000\ndL/dc = -2.0000\ndL/df = 4.0000\n",
    (5, "from_the_leaves(y)"): r"x.grad is 0\.0",
    (4, "class Hasty"): r"TypeError: 'NoneType' object is not callable",
    (4, "for above in"): r"out.grad = 0.0: 1.0000, and should be 0.0000",
    (7, "big = (2 * Value(400.0)).exp()"): r"OverflowError: .* and math.tanh\(400.0\) is 1.0",
    (10, 'print("here   "'): r"\[-1.5, 0.5, 1.0, 0.0, 0.5\]",
    (11, "for _ in range(5_000):"): r"RecursionError: maximum recursion depth exceeded",
    (11, "theirs.tanh().backward()"): r"at 20.0: own 0\.0+e\+00   wengert 1\.699341702116636e-17",
    (11, "@wengert.compile"): r"z1 = x @ W1\.T",
    (11, "by_scalars"): r"^(-?\d\.\d{12}) \1   (-?\d\.\d{12}) \2\n",
    (12, "- 40 * p.grad"): r"at first 3\.2958, learnt 2\.2[789]\d\d, counted 2\.2739",
}
"""What a cell prints, as a pattern."""

PLOTS = {9: 1, 10: 2, 12: 2}
DASHED = {2: 1, 4: 1}  # pictures in which an operation has no closure yet


ANSWERED = """
import doctest

answered = doctest.DocTestParser().get_doctest({text!r}.replace("```", ""), globals(), "answers", None, 0)
tuple(doctest.DocTestRunner().run(answered))
"""
"""A last cell, which runs what the answers to the exercises show below the cells of the lesson."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_runs_and_shows_what_calculus_says(number: int) -> None:
    """One test of all that a lesson is to do, which takes seconds to run."""
    for lesson, text in SHOWN:
        if lesson == number:
            a_cell_shows(number, text)
    for lesson, text in PRINTED:
        if lesson == number:
            a_cell_prints(number, text)
    it_runs_without_a_warning_and_its_check_is_passed(number)
    the_answers_to_the_exercises_are_so(number)
    the_readers_own_graph_is_seen_and_stepped_through(number)
    the_mistakes_are_seen(number)


@cache
def run(number: int) -> list[Any]:
    """The code cells of a lesson, run in a kernel of their own."""
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel, which runs notebooks")
    pytest.importorskip("numpy", reason="needs numpy")
    notebook = nbformat.reads(json.dumps(LESSONS[number].notebook(solved=True)), as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(ANSWERED.format(text=answers(number))))
    nbformat.validate(notebook)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)  # the notebook shows its plots itself
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell_with(number: int, text: str) -> Any:
    (found,) = [cell for cell in run(number)[:-1] if text in cell.source]
    return found


def outputs(number: int, kind: str) -> list[str]:
    """What the cells of a lesson show, of a kind."""
    return [o.data[kind] for cell in run(number) for o in cell.outputs if "data" in o and kind in o.data]


def a_cell_shows(number: int, text: str) -> None:
    (shown,) = [o for o in cell_with(number, text).outputs if o.output_type == "execute_result"]
    out = shown.data["text/plain"]
    assert SHOWN[number, text](literal_eval(out)), out


def a_cell_prints(number: int, text: str) -> None:
    printed = "".join([o.text for o in cell_with(number, text).outputs if o.output_type == "stream"])
    assert re.search(PRINTED[number, text], printed), printed


def it_runs_without_a_warning_and_its_check_is_passed(number: int) -> None:
    streams = [o for cell in run(number) for o in cell.outputs if o.output_type == "stream"]
    assert [o.text for o in streams if o.name == "stderr"] == []
    checks = [cell for cell in run(number) if "course.check(" in cell.source]
    (last,) = [o.data["text/plain"] for o in checks[-1].outputs]
    assert f"step {number} (" in last
    assert "wrong" not in last.partition("\n\nNotes")[0], last
    assert "not yet" not in last


def the_answers_to_the_exercises_are_so(number: int) -> None:
    asked = re.search(r"## Exercises\n(.*?)\n#+ ", "\n".join(cell.text for cell in LESSONS[number].cells()), re.DOTALL)
    assert asked is not None
    numbered = [re.findall(r"^(\d)\. ", text, re.MULTILINE) for text in (asked[1], answers(number))]
    assert numbered == [["1", "2", "3"]] * 2
    last = run(number)[-1]
    printed = "".join([o.text for o in last.outputs if o.output_type == "stream"])
    (failed, tried) = literal_eval(next(o.data["text/plain"] for o in last.outputs if "data" in o))
    assert failed == 0, printed
    assert tried >= 3


def the_readers_own_graph_is_seen_and_stepped_through(number: int) -> None:
    drawings = outputs(number, "image/svg+xml")
    pages = [html for html in outputs(number, "text/html") if "<iframe" in html]
    assert len(drawings) >= (number >= 2)
    assert len(pages) >= (number >= 2)
    assert all("<svg" in svg for svg in drawings)
    assert len(outputs(number, "image/png")) == PLOTS.get(number, 0)


def the_mistakes_are_seen(number: int) -> None:
    """In the pictures: a sum that became a leaf, a closure that is not there, zeros, what came last alone."""

    def said(which: int) -> list[str]:
        return re.findall(r">([^<>\n]+)<", outputs(number, "image/svg+xml")[which])

    if number == 2:
        assert "a" in said(0)
        assert {"L", "f"} <= set(said(-1))
        assert not {"a", "b", "c"} & set(said(-1))
    elif number == 4:
        assert any("_backward" in text for text in said(-1))
    elif number == 5:
        assert said(-1).count("not computed") >= 1, "walked from the leaves"
    elif number == 6:
        assert {"3", "-6"} & set(said(-1)), "the gradient of a is one of its two parts"
        assert "-3" not in said(-1)


def test_the_pictures_for_slides(tmp_path: Path) -> None:
    tool = runpy.run_path(str(COURSE / "tools" / "make_pictures.py"))
    names = [path.name for number in (4, 12) for path in tool["write"](LESSONS[number], tmp_path, False)]
    assert names == [
        "04-1.svg",
        "04-steps-1.html",
        "04-2.svg",
        "12-plot-1.png",
        "12-plot-2.png",
        "12-1.svg",
        "12-steps-1.html",
    ]
    for name in names:
        assert (tmp_path / name).stat().st_size > 1_000
    assert "prefers-color-scheme" not in (tmp_path / "04-1.svg").read_text(encoding="utf-8"), (
        "light, whatever the system is"
    )
