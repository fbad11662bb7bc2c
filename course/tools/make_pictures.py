"""Write the pictures of every lesson, ready for slides: `python course/tools/make_pictures.py FOLDER [LESSON...]`.

The lessons are run, solved, in this process. Each drawing becomes `04-1.svg`, light, whatever the system is; each
stepper a page, `04-steps-1.html`; each plot `09-plot-1.png`. With `--png`, drawings are PNG, too (needs resvg).
"""

from __future__ import annotations

import argparse
import ast
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from wengert.view.graph.draw import Drawing
from wengert.view.steps import Steps
from wengert_course import Lesson, lessons


def shown(lesson: Lesson) -> list[Any]:
    """What the cells of a lesson show: the value of each last line, and the figures of plots."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found: list[Any] = []
    plt.close("all")  # those of others
    for number, cell in enumerate(lesson.cells()):
        if cell.kind != "code" or "course.check(" in cell.text:
            continue
        tree = ast.parse(cell.shown(solved=True))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        where = f"lesson {lesson.number}, cell {number}"
        with redirect_stdout(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # plt.show() has no window here
            exec(compile(tree, where, "exec"), names)
            if isinstance(last, ast.Expr):
                found.append(eval(compile(ast.Expression(last.value), where, "eval"), names))
        found += [plt.figure(number) for number in plt.get_fignums()]
        plt.close("all")
    return found


def write(lesson: Lesson, folder: Path, png: bool) -> list[Path]:
    """Write the pictures of one lesson; returns their files."""
    counts = {"": 0, "steps-": 0, "plot-": 0}
    written = []

    def path(kind: str, ending: str) -> Path:
        counts[kind] += 1
        written.append(folder / f"{lesson.number:02}-{kind}{counts[kind]}.{ending}")
        return written[-1]

    for thing in shown(lesson):
        if isinstance(thing, Drawing):
            thing.theme = "light"
            thing.save(path("", "svg"))
            if png:
                thing.save(written[-1].with_suffix(".png"))
        elif isinstance(thing, Steps):
            thing.save(path("steps-", "html"))
        elif isinstance(thing, plt.Figure):
            thing.savefig(path("plot-", "png"), dpi=200, bbox_inches="tight")
    return written


def main() -> None:
    """Read the arguments, and write."""
    parser = argparse.ArgumentParser(description="Write the pictures of the course, ready for slides.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("lessons", nargs="*", type=int, metavar="LESSON", help="their numbers (default: all)")
    parser.add_argument("--png", action="store_true", help="write drawings as PNG, too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for lesson in lessons():
        if not options.lessons or lesson.number in options.lessons:
            for path in write(lesson, options.folder, options.png):
                print(path)


if __name__ == "__main__":
    main()
