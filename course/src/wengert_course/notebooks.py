"""The lessons as notebooks: with gaps, for whoever learns, and solved, for the pages and the tests.

A lesson is a text in the percent format, which editors and Jupytext know: `# %%` begins a cell of code, and
`# %% [markdown]` one of text. What stands between `### BEGIN SOLUTION` and `### END SOLUTION`, the marks that nbgrader
has for it, is left out of a learner's notebook. The files' names begin with an underscore: they are no modules.

>>> [lesson.title for lesson in lessons()[:2]]
['What a slope is', 'A number that remembers']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Lesson", "LessonCell", "lessons", "step_of", "write"]

FOLDER = Path(__file__).parent / "lessons"
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
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
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        lesson = lessons()[notebook["metadata"]["wengert"]["step"]]
        there = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
        gaps = [(f"{lesson.number}-{i}", cell.shown(False)) for i, cell in enumerate(lesson.cells()) if cell.is_gap]
        return lesson.number, any(there[name] != text for name, text in gaps)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None, True


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
        path.write_text(json.dumps(lesson.notebook(solved), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written, kept
