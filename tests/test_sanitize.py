"""The page says when the tests last ran under sanitizers, and that nothing was found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.qa.sanitize import BEGIN, END, PART, ROOT, Run, row

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

PAGE = ROOT / "docs" / "sanitizers.md"


def rows() -> dict[str, list[str]]:
    """The cells of each run's line."""
    lines = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]
    return {name: rest for name, *rest in cells}


@pytest.mark.parametrize("name", ["sanitizers", "debug"])
def test_the_last_run_found_nothing(name: str) -> None:
    when, commit, about, tests, result = rows()[name]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", when)
    assert re.fullmatch(r"`[0-9a-f]{7,40}`", commit)  # and no change that is not committed
    assert re.search(r"Python 3\.\d+", about)
    assert tests in ("the part", "all")
    assert re.fullmatch(r"\d{3,} passed.*, no report, \d+ min", result)


def test_the_part_is_there() -> None:
    assert all(Path(ROOT, "tests", f"{name}.py").is_file() for name in PART)


def test_a_failure_is_shown() -> None:
    run = Run("debug", ["python"], "Python 3", result="**1 failed**")
    assert row(run, "2000-01-01", "abc", "all") == "| debug | 2000-01-01 | `abc` | Python 3 | all | **1 failed** |\n"
