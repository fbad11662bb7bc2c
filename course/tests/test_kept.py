"""The reader's own engine, from lesson to lesson: what the checks keep, and what begins with it."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wengert_course as course
from tests.lessons import LESSONS, handed_in
from wengert.errors import ArgumentError
from wengert_course import kept

MARK = "# as I have it"

Session = Callable[..., dict[str, Any]]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Run cells as those of one notebook, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(kept.FOLDER, raising=False)

    def run(*cells: str) -> dict[str, Any]:
        main = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        monkeypatch.setattr(kept, "_begun", [""])
        space = vars(main)
        space["In"] = [""]
        for cell in cells:
            space["In"].append(cell)
            with contextlib.suppress(SyntaxError):  # as a cell of another language
                exec(compile(cell, "cell", "exec", dont_inherit=True), space)
        return space

    return run


def solved(number: int, *also: str) -> list[str]:
    """The cells of a lesson as a reader fills them in, who signs each method, and its checks; and some others."""
    cells = [cell for cell in LESSONS[number].cells() if cell.kind == "code"]
    wanted = [
        c for c in cells if "unchecked" not in c.tags or "course.check(" in c.text or any(a in c.text for a in also)
    ]
    return [c.shown(True).replace("):\n", f"):  {MARK} in lesson {number}\n") for c in wanted]


def text() -> str:
    return Path("mine.py").read_text(encoding="utf-8")


def lessons_of(module: str) -> dict[str, int]:
    """Which lesson each method of Value is of, by its signature."""
    body = module.partition("class Value:")[2].partition("\nclass ")[0]
    heads = [line.partition(MARK) for line in body.splitlines() if line.startswith("    def ")]
    return {head.split("(")[0].split()[1]: int(number.split()[-1]) for head, _, number in heads if number}


@pytest.mark.slow
def test_the_model_of_lesson_12_is_trained_by_the_class_that_was_begun_in_lesson_1(session: Session) -> None:
    for number in range(11):
        session(*solved(number))
    assert "Lessons: 1 2 3 4 5 6 7 8 10\n" in text()
    assert lessons_of(text()) == {
        "__init__": 4,
        "__repr__": 1,
        "__add__": 6,
        "__mul__": 6,
        "tanh": 6,
        "backward": 5,
        **dict.fromkeys(("__pow__", "exp", "__neg__", "__sub__", "__truediv__"), 7),
        **dict.fromkeys(("__radd__", "__rmul__", "__rsub__", "__rtruediv__"), 7),
        "log": 10,
        "sigmoid": 10,
    }
    assert len(Path("mine.py").read_text().split("class Value:")) == 2
    session(*solved(11))
    before = text()
    space = session(*solved(12, "velocity"))
    assert text() == before
    assert {type(z) for row in space["logits"] for z in row} == {sys.modules["mine"].Value}
    assert space["curve"][0] == pytest.approx(3.2958, abs=1e-4)
    assert space["best"] < space["curve"][-1] < space["best"] + 0.03


def test_ours_is_what_our_solutions_make() -> None:
    space = vars(kept._module(kept._ours(10)))
    assert course.check(space["Value"], 7).right
    assert {"Neuron", "Layer", "MLP"} < set(space)
    assert "GIVEN" not in kept._ours(10)


def test_who_has_not_finished_a_lesson_is_told_and_offered_ours(session: Session) -> None:
    with pytest.raises(
        ArgumentError, match=r"^mine.py, where the check of lesson 4 keeps your engine, is not here: finish"
    ):
        session(*solved(5))
    session(*solved(1))
    own = text()
    with pytest.raises(ArgumentError, match=r"has nothing of lesson 4 yet: .* write \(4, ours=True\) instead of \(4\)"):
        session(*solved(5))
    assert text() == own, "nothing is changed"
    space = session(*[cell.replace("go_on(4)", "go_on(4, ours=True)") for cell in solved(5)])
    assert lessons_of(text()) == {"backward": 5}
    assert "Lessons: 1 2 3 4 5\n" in text()
    assert Path("mine_before.py").read_text(encoding="utf-8") == own, "what was there is not lost"
    assert space["o"].data == pytest.approx(0.70710678)


def test_what_passes_again_does_not_take_the_place_of_what_later_lessons_have_made(session: Session) -> None:
    for number in (1, 2, 3):
        session(*solved(number))
    before = text()
    space = session(*solved(2), "said = course.check(Value, step=2)")
    assert text() == before
    assert "mine.py has lesson 2 already, and stays as it is." in str(space["said"])


def test_what_is_wrong_is_not_kept(session: Session) -> None:
    session(*[cell.replace("self.data * other.data", "self.data + other.data") for cell in solved(1)])
    assert not Path("mine.py").exists()


HELPED = """
import math as m
from wengert import course
LIMIT, other = 3.0, 1
def number(x):  # of anything
    return x if isinstance(x, Value) else Value(x * LIMIT / LIMIT)
def never(x):
    return x
x = never(5)
# This is mine.
class Value:
    '''A number.'''
    def __init__(self, data):
        self.data = data * m.cos(0)
    # shown
    def __repr__(self):
        x = self.data
        return f"Value({x})"
    def __add__(self, other):
        return Value(self.data + number(other).data)
    def __mul__(self, other):
        return Value(self.data * number(other).data)
"""


def test_what_it_uses_is_kept_with_it_and_nothing_else(session: Session) -> None:
    session(HELPED, "%%no python", "class Value2(Value): pass\nrenamed = Value", "report = course.check(Value, step=1)")
    assert "It is kept in mine.py" in str(sys.modules["__main__"].report)  # type: ignore[attr-defined]
    for there in ("import math as m\n", "LIMIT, other = 3.0, 1\n", "# of anything", "# This is mine.\n", "# shown\n"):
        assert there in text()
    for absent in ("never", "course", "Value2", "renamed"):
        assert absent not in text().partition('"""\n')[2]
    assert repr(course.mine(1).Value(2.0) + 1) == "Value(3.0)"


def test_what_cannot_stand_alone_is_not_kept_and_why_is_said(session: Session) -> None:
    based = HELPED.replace("class Value:", "class Value(BASES.pop()):")
    space = session("BASES = []\nBASES.append(object)", based, "report = course.check(Value, step=1)")
    assert space["report"].right
    assert not Path("mine.py").exists()
    assert "It is not kept: as a module of its own it raises IndexError: pop from empty list" in str(space["report"])


def test_a_file_that_is_checked_goes_on_from_the_engine_beside_it_or_says_whose_it_is(tmp_path: Path) -> None:
    path = handed_in(tmp_path, 5)
    report = course.check(path, 5)
    assert report.right
    assert report.remarks[-1] == "It goes on with our engine of lesson 4: no mine.py beside it has one."
    own = kept._ours(4).replace("self.grad = other.data * out.grad", "self.grad = self.data * out.grad")
    (tmp_path / "mine.py").write_text(own, encoding="utf-8")
    report = course.check(path, 5)
    assert not report.right
    assert "our engine" not in str(report)
    assert (tmp_path / "mine.py").read_text(encoding="utf-8") == own, "a check of a file writes nothing"


@pytest.mark.slow
def test_in_jupyter_it_lies_beside_the_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kept.FOLDER)
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    for number in (1, 2):
        notebook = nbformat.reads(json.dumps(LESSONS[number].notebook(solved=True)), as_version=4)
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    told = (tmp_path / "mine.py").read_text(encoding="utf-8")
    assert "Lessons: 1 2\n" in told
    assert json.dumps(told).count("def __init__") == 1
