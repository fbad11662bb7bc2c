"""The lessons as notebooks: with gaps, for whoever learns, and solved, for the pages and the tests.

A lesson is a text in the percent format, which editors and Jupytext know: `# %%` begins a cell of code, and
`# %% [markdown]` one of text. What stands between `### BEGIN SOLUTION` and `### END SOLUTION`, the marks that nbgrader
has for it, is left out of a learner's notebook. The files' names begin with an underscore: they are no modules.

>>> [lesson.title for lesson in lessons()[:2]]
['What a slope is', 'A number that remembers']
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wengert._files import opened
from wengert.errors import ArgumentError
from wengert_course.texts import texts

__all__ = ["Lesson", "LessonCell", "answers", "handed_in", "hint", "hints", "lessons", "step_of", "write"]

FOLDER, TEXTS = (Path(__file__).parent / name for name in ("lessons", "texts"))
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
MOST = 20_000  # files of a folder that is looked through for notebooks
CELL = re.compile(r"^# %%(?: \[(\w+)\])?(.*)\n", re.MULTILINE)
SOLUTION = re.compile(rf"^[ \t]*{BEGIN}\n(.*?)^[ \t]*{END}(?:\n|\Z)", re.MULTILINE | re.DOTALL)


class LessonCell(NamedTuple):
    """A cell of a lesson: "code" or "markdown", its text, its tags, and what stands in its gap."""

    kind: str
    text: str
    tags: tuple[str, ...] = ()

    @property
    def is_gap(self) -> bool:
        """Whether something in it is left to the learner."""
        return BEGIN in self.text

    def shown(self, solved: bool) -> str:
        """The text, solved or with its gaps."""
        return SOLUTION.sub(r"\1" if solved else "", self.text).strip("\n")


class Lesson(NamedTuple):
    """One lesson: its number, the name of its file, its title, and its text in the percent format."""

    number: int
    name: str
    title: str
    text: str

    def cells(self) -> Iterator[LessonCell]:
        """Its cells, in their order."""
        _, *parts = CELL.split(self.text)
        for kind, options, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if kind == "markdown":
                text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
            yield LessonCell(kind or "code", text.strip("\n"), tuple(re.findall(r'"([\w-]+)"', options)))

    def notebook(self, solved: bool = False) -> dict[str, Any]:
        """The notebook, as Jupyter keeps it, without outputs."""
        cells = []
        for number, cell in enumerate(self.cells()):
            made: dict[str, Any] = {"cell_type": cell.kind, "id": f"{self.number}-{number}", "metadata": {}}
            if cell.tags:
                made["metadata"]["tags"] = list(cell.tags)
            made["source"] = cell.shown(solved).splitlines(keepends=True)
            cells.append(made | ({"execution_count": None, "outputs": []} if cell.kind == "code" else {}))
        python = {"display_name": "Python 3", "language": "python", "name": "python3"}
        metadata = {"kernelspec": python, "language_info": {"name": "python"}, "wengert": {"step": self.number}}
        return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def lessons() -> list[Lesson]:
    """Every lesson, in their order."""
    found: list[Lesson] = []
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# # (\d+)\. (.*)$", text, re.MULTILINE)
        assert title is not None, f"{path.name}: expected a title, as '# # 4. The chain rule'"
        found.append(Lesson(int(title[1]), path.stem.removeprefix("_"), title[2], text))
    return found


def step_of(path: str) -> tuple[int | None, bool]:
    """The step that a notebook of the course is of, None of other files; and whether anything stands in its gaps."""
    try:
        notebook = json.loads(_read(path))
        lesson = lessons()[notebook["metadata"]["wengert"]["step"]]
        there = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
        gaps = [(f"{lesson.number}-{i}", cell.shown(False)) for i, cell in enumerate(lesson.cells()) if cell.is_gap]
        return lesson.number, any(there[name] != text for name, text in gaps)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None, True


def answers(step: int) -> str:
    """The answers to the exercises of a lesson, as markdown; what stands behind ``>>>`` runs below its cells."""
    parts = re.split(r"^## (\d+)\n", TEXTS.joinpath("answers.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.sub(r"^>>> (?:.+\n)+", r"```pycon\n\g<0>```\n", parts[2 * step + 2], flags=re.MULTILINE).strip()


def hint(step: int, stage: int = 1, gap: int = 1) -> None:
    """Print a hint for a gap of a lesson: `stage` 1 is a thought, 2 says nearly all; the solution stands in neither.

    Args:
        step: the lesson, from 0 to 12.
        stage: 1 or 2.
        gap: which of its gaps, counted from 1, where a lesson has several cells to fill in.

    Raises:
        ArgumentError: there is no such lesson, gap or stage.

    >>> hint(6)
    What is used twice gets two gradients. Which of the two does `=` leave in `.grad`?
    """
    every = hints()
    _within("step", step, 0, len(every) - 1)
    _within("stage", stage, 1, 2)
    _within("gap", gap, 1, len(every[step]))
    print(every[step][gap - 1][stage - 1])


def _within(name: str, given: object, first: int, last: int) -> None:
    if type(given) is not int or not first <= given <= last:
        raise ArgumentError(f"{name} is {given!r}; expected a whole number from {first} to {last}")


def hints() -> list[list[list[str]]]:
    """Of each lesson, of each of its gaps, the two hints."""
    return [texts("hints")["hints"][str(lesson.number)] for lesson in lessons()]


def handed_in(folder: str) -> list[str]:
    """The notebooks of the course in a folder and those in it, and notebooks that cannot be read; no others.

    Raises:
        ArgumentError: there are none, or the folder has more files than a class hands in.
    """
    found = []
    for path in _notebooks(folder):
        try:
            of_others = isinstance(json.loads(_read(path)), dict) and step_of(path)[0] is None
        except (OSError, ValueError, RecursionError):
            of_others = False
        if not of_others:
            found.append(path)
    if not found:
        raise ArgumentError(
            f"{folder} is a folder without a notebook of the course: expected some that `wengert course` has written, "
            "in it or in its folders; or name the files to check"
        )
    return found


def _notebooks(folder: str) -> list[str]:
    """The paths of all notebooks in a folder and those in it, without the copies that Jupyter keeps, in their order."""
    found, count = [], 0
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".ipynb_checkpoints"]
        found += [os.path.join(where, name) for name in files if name.endswith(".ipynb")]
        count += len(folders) + len(files)
        if count > MOST:
            raise ArgumentError(f"{folder} has more than {MOST:,} files: name the folder that holds the lessons")
    return sorted(found, key=Path)


def _read(path: str) -> str:
    with opened(path) as file:
        return file.read().decode("utf-8")


def write(folder: Path, solved: bool = False) -> tuple[list[Path], list[Path]]:
    """Write the notebooks into a folder; returns what was written, and what was there already.

    A file that is there stays as it is: a learner's work may be in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written, kept = [], []
    for lesson in lessons():
        path = folder / f"{lesson.name}.ipynb"
        if path.exists():
            kept.append(path)
            continue
        notebook = lesson.notebook(solved)
        if solved:
            below = f"## Answers to the exercises\n\n{answers(lesson.number)}".splitlines(keepends=True)
            cell = {"cell_type": "markdown", "id": f"{lesson.number}-answers", "metadata": {}, "source": below}
            notebook["cells"].append(cell)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written, kept
