"""The commands `wengert course` and `wengert check`, which this distribution adds to `wengert`.

`wengert` finds them as entry points of the group "wengert.commands": each is a function that adds a parser of its own,
and says in its default `run` what is called with the arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wengert.apps.terminal import say, width
from wengert.errors import WengertError, counted

if TYPE_CHECKING:
    from wengert_course.checks import Report

__all__ = ["add_check", "add_course"]

VERDICTS = {r"\bok\b": "right", r"\bwrong\b": "wrong", r"\bnot (?:yet|tried)\b": "look"}


def add_check(commands: Any) -> None:
    """Add the command `check` to what `argparse` calls the subparsers of `wengert`."""
    check = commands.add_parser(
        "check", help="try a Value-like class, operation by operation: what is right, what is wrong, what is to do"
    )
    check.add_argument(
        "targets",
        nargs="+",
        metavar="FILE[:Class]",
        help=".py or .ipynb, and its class where there are several; or a folder with lessons, as a class hands them in",
    )
    check.add_argument("--step", type=int, help="the step of the course, 0 to 12 (default: found by what is there)")
    check.add_argument("--json", action="store_true", help="print the report as JSON, of several files a list")
    check.add_argument("--table", action="store_true", help="print a row for each file (of a folder: for each learner)")
    check.add_argument("--strict", action="store_true", help="exit with status 1 for what is only noted, too")
    check.add_argument(
        "--timeout", type=float, default=20.0, metavar="SECONDS", help="for the check of a file (default: 20)"
    )
    check.add_argument(
        "--memory", type=int, default=2048, metavar="MIB", help="the most memory the file may use (default: 2048)"
    )
    check.add_argument("--seed", type=int, help="decides the numbers that are tried (default: others in each run)")
    check.set_defaults(run=_check)


def add_course(commands: Any) -> None:
    """Add the command `course`, likewise."""
    course = commands.add_parser("course", help="write the lessons of the course, as notebooks, into a folder")
    course.add_argument(
        "folder", nargs="?", type=_folder, help="where to (default: wengert-course, or wengert-course-solutions)"
    )
    course.add_argument("--solutions", action="store_true", help="with every gap filled in, for teachers")
    course.set_defaults(run=_course)


def _folder(written: str) -> str:
    if not written:
        raise argparse.ArgumentTypeError("'' names no folder")
    return written


def _check(given: argparse.Namespace) -> int:
    """Check each file; the status is the worst: 0 right, 1 wrong or not there yet, 2 not to be tried."""
    from wengert_course.checks import Report, check, overview, table
    from wengert_course.notebooks import handed_in

    folders = [target for target in given.targets if os.path.isdir(target)]
    targets = [file for target in given.targets for file in (handed_in(target) if target in folders else [target])]
    told: list[tuple[str, Report | WengertError]] = []
    for target in targets:
        try:
            options = {"timeout": given.timeout, "memory": given.memory, "seed": given.seed}
            told.append((target, check(target, given.step, **options)))
        except WengertError as error:
            if not given.json and not given.table and not folders and len(targets) == 1:
                raise
            told.append((target, error))
    if given.json:
        several = [one.as_dict() if isinstance(one, Report) else {"error": str(one)} for _, one in told]
        named = [{"file": target} | one for (target, _), one in zip(told, several, strict=True)]
        print(json.dumps(named if folders or len(named) > 1 else named[0], indent=2, allow_nan=False))
    elif folders:
        print(overview(told))
    elif given.table:
        print(table(told))
    else:
        for number, (_, one) in enumerate(told):
            text = one.text(width(), given.strict) if isinstance(one, Report) else str(one)
            say("\n\n" * (number > 0) + text, VERDICTS, wrapped=isinstance(one, Report))
    failed = [2 if isinstance(one, WengertError) else int(not one.passes(given.strict)) for _, one in told]
    return max(failed)


def _course(given: argparse.Namespace) -> int:
    """Write the notebooks, and say what to open; what is there already stays as it is."""
    from wengert_course.notebooks import write

    folder = given.folder or ("wengert-course-solutions" if given.solutions else "wengert-course")
    try:
        written, kept = write(Path(folder), given.solutions)
    except OSError as error:
        print(f"wengert course: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    if written:
        print(f"{counted(len(written), 'lesson')} written to {folder}")
    if kept:
        was = "was there already and stays as it is" if len(kept) == 1 else "were there already and stay as they are"
        print(f"{len(kept)} {was}: {', '.join(path.name for path in kept)}")
        print("for a lesson anew: rename yours, or name another folder")
    first = (written or kept)[0]
    program = next((name for name, of in (("lab", "jupyterlab"), ("notebook", "notebook")) if find_spec(of)), "")
    if program:
        print(f"begin with: jupyter {program} {first}")
    elif find_spec("ipykernel"):
        print(
            f"begin with {first}, in an editor that has notebooks (or: pip install jupyterlab, and jupyter lab {first})"
        )
    else:
        print(f"Jupyter is not here: pip install jupyterlab matplotlib numpy, then: jupyter lab {first}")
        print("(the documentation has the same lessons, which run in the browser)")
    print(f"to check your progress: wengert check {first}")
    return 0
