"""The course, walked from 0 to 12 as learners walk it; and that its sources are what they seem."""

from __future__ import annotations

import ast
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import wengert
import wengert_course as course
from tests.checked import ROOT, counted
from tests.lessons import LESSONS, SLIPS, graded, handed_in, verdict
from wengert.apps.cli import main
from wengert.errors import ArgumentError
from wengert_course.checks import steps

TESTED = (0, 8, 9, 10, 11, 12)  # where a slip is told by what it breaks, as it has no name
# ------------------------------------------------------------------------------------- as a learner walks it


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", LESSONS)
def test_a_gap_that_is_empty_is_not_yet_and_nothing_is_wrong(number: int, tmp_path: Path) -> None:
    report = graded(handed_in(tmp_path, number, solved=False))
    assert report.not_yet
    assert counted(report) == [], str(report)
    assert (report.step, report.begun, report.right) == (number, False, False)
    assert str(report).splitlines()[0].endswith(f"step {number} ({report.title}), not begun")
    assert "; not yet: " in verdict(report)
    assert "wrong" not in verdict(report)
    assert f"`course.hint({number})`" in str(report)


@pytest.mark.parametrize("number", LESSONS)
def test_the_solution_passes_its_step(number: int, tmp_path: Path) -> None:
    report = graded(handed_in(tmp_path, number))
    assert report.right, str(report)
    assert counted(report) == []
    assert (report.step, report.begun, report.not_yet) == (number, True, ())
    assert f"Step {number} is done." in str(report) or number == 12


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("number", "which"), [(number, i) for number in TESTED for i in range(len(SLIPS[number]))])
def test_a_slip_is_told_at_its_line_of_the_table(number: int, which: int, tmp_path: Path) -> None:
    name, slip = SLIPS[number][which]
    report = graded(handed_in(tmp_path, number, slip))
    assert name in {row.name for row in report.rows if row.state == "wrong"}, str(report)
    assert not report.right


def test_each_lesson_has_four_slips_that_are_told_apart() -> None:
    assert list(SLIPS) == list(LESSONS) == list(steps.TITLES) == list(range(13))
    for number, slips in SLIPS.items():
        assert len({slip for _, slip in slips}) == len(slips) >= 4
        assert number in TESTED or len({name for name, _ in slips}) >= 4, number


# ------------------------------------------------------------------------------------- the sources


def code(number: int, solved: bool = True) -> str:
    """All cells of code of a lesson."""
    return "\n".join(cell.shown(solved) for cell in LESSONS[number].cells() if cell.kind == "code")


def prose(number: int) -> str:
    return "\n\n".join(cell.shown(False) for cell in LESSONS[number].cells() if cell.kind == "markdown")


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_has_all_its_parts(number: int) -> None:
    text, program = prose(number), code(number)
    assert "?**" in text or "?" in text.split("\n\n")[1], "its question"
    for title in ("The mistake that everybody makes", "Exercises", "A way on"):
        assert f"\n## {title}\n" in text
    assert len(re.findall(r"^\d\. ", text.rpartition("\n## Exercises\n")[2], re.MULTILINE)) >= 2
    assert LESSONS[number].text.count("YOUR CODE HERE") == LESSONS[number].text.count("### BEGIN SOLUTION") + (
        number == 0
    )
    assert f"step={number})" in program, "its check"
    words = len(text.split())
    assert words < 1_400, f"{words} words: more than fifteen minutes"


@pytest.mark.parametrize("number", [number for number in LESSONS if number >= 2])
def test_what_is_drawn_and_stepped_through_is_the_readers_own(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[Any]] = {"draw": [], "steps": []}
    for name, roots in seen.items():
        monkeypatch.setattr(wengert, name, lambda root, _roots=roots, **options: _roots.append(root))
    monkeypatch.setattr(sys, "setrecursionlimit", lambda depth: None)  # which would be that of all tests
    space: dict[str, Any] = {"__name__": f"lesson {number}"}
    for cell in LESSONS[number].cells():
        looks = "draw(" in cell.text or "steps(" in cell.text
        if cell.kind == "code" and ("unchecked" not in cell.tags or looks):
            exec(cell.shown(solved=True), space)
    for name, roots in seen.items():
        assert roots, name
        assert {type(root).__module__ for root in roots} <= {space["__name__"], "mine"}, name


@pytest.mark.parametrize("number", LESSONS)
def test_no_solution_is_in_a_learners_notebook(number: int) -> None:
    empty, solved = (json.dumps(LESSONS[number].notebook(solved)) for solved in (False, True))
    assert "SOLUTION" not in empty + solved
    for _, (old, _) in SLIPS[number]:
        gap = [cell for cell in LESSONS[number].cells() if cell.is_gap and old in cell.shown(True)]
        assert gap
        assert all(old not in cell.shown(False) or old == "h = 0.0001" for cell in gap)
    ast.parse(code(number, solved=False))  # it can be run as it is


def test_jupytext_reads_the_same_cells() -> None:
    jupytext = pytest.importorskip("jupytext", reason="needs jupytext")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    for lesson in LESSONS.values():
        theirs = jupytext.reads(lesson.text, fmt="py:percent").cells
        ours = list(lesson.cells())
        assert [(cell.cell_type, cell.source) for cell in theirs] == [(cell.kind, cell.text) for cell in ours]
        assert [tuple(cell.metadata.get("tags", ())) for cell in theirs] == [cell.tags for cell in ours]
        for solved in (False, True):
            nbformat.validate(nbformat.from_dict(lesson.notebook(solved)))


def test_each_lesson_goes_on_from_the_one_before() -> None:
    """None repeats what another has, and what a lesson takes up an earlier one has kept."""
    defined: set[str] = set()
    for number in LESSONS:
        text = LESSONS[number].text
        taken = {int(step) for step in re.findall(r"course\.(?:go_on|mine)\((\d+)", text)}
        assert taken == {
            2: {1},
            3: {2},
            4: {3},
            5: {4},
            6: {5},
            7: {6},
            8: {7},
            9: {8},
            10: {7},
            11: {7},
            12: {10},
        }.get(number, set())
        own = {node.name for node in ast.parse(code(number)).body if isinstance(node, ast.ClassDef)} - {"Value"}
        assert not own & defined, "it is taken up"
        defined |= own
    assert {"Neuron", "Layer", "MLP"} < defined


# ------------------------------------------------------------------------------------- the command


def written(folder: Path, *options: str) -> list[str]:
    assert main(["course", str(folder), *options]) == 0
    return sorted(path.name for path in folder.iterdir())


def test_the_command_writes_every_lesson_and_says_what_to_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written(tmp_path / "here") == [f"{lesson.name}.ipynb" for lesson in LESSONS.values()]
    told = capsys.readouterr().out
    assert told.startswith(f"13 lessons written to {tmp_path / 'here'}\n")
    first = tmp_path / "here" / "00_what_a_slope_is.ipynb"
    assert told.endswith(f"to check your progress: wengert check {first}\n")
    assert json.loads(first.read_text(encoding="utf-8")) == LESSONS[0].notebook()
    written(tmp_path / "solved", "--solutions")
    solved = json.loads((tmp_path / "solved" / first.name).read_text(encoding="utf-8"))
    below = "".join(solved["cells"].pop()["source"])
    assert solved == LESSONS[0].notebook(True)
    assert below == f"## Answers to the exercises\n\n{course.answers(0)}", "for teachers"


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ((), "Jupyter is not here: pip install jupyterlab matplotlib numpy, then: jupyter lab "),
        (("notebook",), "begin with: jupyter notebook "),
        (("notebook", "jupyterlab"), "begin with: jupyter lab "),
    ],
)
def test_what_to_open_depends_on_what_is_there(
    there: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("wengert_course.commands.find_spec", lambda name: name in there or None)
    written(tmp_path)
    assert words in capsys.readouterr().out


def test_a_learners_file_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    mine = tmp_path / f"{LESSONS[4].name}.ipynb"
    mine.write_text("mine")
    (tmp_path / f"{LESSONS[5].name}.ipynb").unlink()
    capsys.readouterr()
    written(tmp_path)
    assert mine.read_text() == "mine"
    told = capsys.readouterr().out
    assert told.startswith(f"1 lesson written to {tmp_path}\n12 were there already and stay as they are: ")
    assert "for a lesson anew: rename yours, or name another folder\n" in told


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["course", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith(f"wengert course: cannot write {tmp_path / 'file'}: ")


def test_the_names_are_as_they_were_found() -> None:
    names = (Path(course.__file__).parent / "lessons" / "names.txt").read_text(encoding="utf-8").split()
    assert len(names) == len(set(names)) == 2_000
    assert {letter for name in names for letter in name} <= set("abcdefghijklmnopqrstuvwxyz")


def test_the_template_of_a_lesson_is_one(tmp_path: Path) -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```py\n(# %% \[markdown\]\n# # 13\..*?)```", contributing, re.DOTALL)
    lesson = course.Lesson(13, "13_template", "A title", text)
    cells = list(lesson.cells())
    assert [cell.kind for cell in cells].count("markdown") == 4
    assert [cell.is_gap for cell in cells].count(True) == 1
    assert sum("unchecked" in cell.tags for cell in cells) == 2
    for title in ("Your turn", "The mistake that everybody makes", "Exercises", "A way on"):
        assert f"## {title}\n" in "\n".join(cell.shown(False) for cell in cells) + "\n"
    assert "return x + x" in json.dumps(lesson.notebook(True))
    assert "return x + x" not in json.dumps(lesson.notebook())


def test_a_folder_of_submissions_as_a_table_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/teaching.md has it: one right, one wrong, one not begun, one that cannot be read."""
    files = []
    for name, slip, solved in (("ada", None, True), ("ben", SLIPS[4][2][1], True), ("cleo", None, False)):
        (tmp_path / name).mkdir()
        files.append(str(handed_in(tmp_path / name, 4, *([slip] if slip else []), solved=solved)))
    files.append(str(tmp_path / "dan.ipynb"))
    assert main(["check", *files, "--table", "--seed", "1"]) == 2
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[3] for line in told[1:4]] == ["8/8", "7/8", "-"]
    assert (told[2][4], told[3][4:]) == ("precedence:", ["not", "begun"])
    assert main(["check", *files, "--step", "4", "--json"]) == 2
    read = json.loads(capsys.readouterr().out)
    program = re.findall(r"```py\n(import json\n.*?)```", (ROOT / "docs" / "teaching.md").read_text(), re.DOTALL)[0]
    (tmp_path / "lesson4.json").write_text(json.dumps(read), encoding="utf-8")
    exec(program.replace("lesson4.json", str(tmp_path / "lesson4.json")), {})
    printed = capsys.readouterr().out
    assert f"{files[1]} 7 of 8\n" in printed
    assert printed.endswith("[('precedence', 1)]\n")
    assert "dan.ipynb cannot be read" in printed


def test_a_class_at_a_glance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/teaching.md shows it: one right, one wrong, one not begun; others' do not count."""
    monkeypatch.chdir(tmp_path)
    folder, slips = Path("submissions"), dict(SLIPS[4])
    folder.mkdir()
    assert main(["check", "submissions"]) == 2
    assert "without a notebook of the course: expected some that `wengert course`" in capsys.readouterr().err
    for name, number, slip, solved in (
        ("ada", 1, None, True),
        ("ada", 4, None, True),
        ("ben", 4, slips["precedence"], True),
        ("cleo", 4, None, False),
    ):
        (folder / name).mkdir(exist_ok=True)
        handed_in(folder / name, number, *([slip] if slip else []), solved=solved)
    (folder / "ben" / "notes.ipynb").write_text('{"cells": [], "metadata": {}}', encoding="utf-8")
    assert main(["check", "submissions", "--seed", "1"]) == 1
    shown = capsys.readouterr().out
    assert f"```text\n{shown}```" in (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    (folder / "ben" / "04_broken.ipynb").write_text("{", encoding="utf-8")
    assert main(["check", "submissions/ben", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert "04_broken.ipynb, line 1: it is no notebook: expected JSON with a list of cells" in told[0]["error"]
    assert (told[1]["right"], told[1]["of"]) == (7, 8)
    handed_in(folder / "ben", 4).rename(folder / "ben" / "04_once_more.ipynb")
    handed_in(folder / "ben", 4, slips["precedence"])
    assert main(["check", "submissions/ben", "--table"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["8/8", "7/8", "1"], "a lesson twice: a row for each file"
    assert "04_broken.ipynb, line 1: it is no notebook" in lines[-1]


def test_each_gap_has_two_hints(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for lesson in course.lessons():
        code = [cell for cell in lesson.cells() if cell.kind == "code"]
        gaps = [cell for cell in code if cell.is_gap]
        checks = [after for gap, after in pairwise(code) if gap.is_gap and "course.check(" in after.text]
        assert len(checks) == len(gaps), "each has a check after it, too"
        assert [len(two) for two in course.hints()[lesson.number]] == [2] * len(gaps)
        for gap, stage in ((gap, stage) for gap in range(len(gaps)) for stage in (1, 2)):
            course.hint(lesson.number, stage, gap + 1)
            printed.append(capsys.readouterr().out.strip())
    assert len(printed) == len(set(printed)) == 34
    for wrong, says in (
        ((13,), "step is 13"),
        ((4, 3), "stage is 3"),
        ((4, 1, 2), "gap is 2"),
        ((True,), "step is True"),
    ):
        with pytest.raises(ArgumentError, match=f"{says}; expected a whole number from"):
            course.hint(*wrong)


def test_each_lesson_has_its_time_and_level() -> None:
    page = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| \[(.+?)\].* \| (\d+) \| (easy|medium|hard) \|$", page, re.MULTILINE)
    assert [(int(n), title) for n, title, *_ in rows] == [(one.number, one.title) for one in course.lessons()]
    assert all(5 <= int(minutes) <= 45 for *_, minutes, _ in rows)


def test_a_cell_that_fails_leaves_what_the_others_make(tmp_path: Path) -> None:
    path = handed_in(tmp_path, 1)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    broken = {"cell_type": "code", "metadata": {}, "source": "nobody_wrote_this()"}
    path.write_text(json.dumps({"cells": [broken, *notebook["cells"], broken]}), encoding="utf-8")
    report = graded(path)
    assert report.right
    assert "cell 1, line 1: NameError: name 'nobody_wrote_this' is not defined" in report.output
    wrong = {**broken, "source": "def f(:"}
    path.write_text(json.dumps({"cells": [*notebook["cells"], wrong]}), encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"cell \d+, line 1.*SyntaxError"):
        graded(path)
