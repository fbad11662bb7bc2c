"""The rules that hold for the course as a distribution of its own."""

from __future__ import annotations

import doctest
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import wengert
import wengert_course
from tests.checked import ROOT

HERE = Path(__file__).resolve().parent.parent
MODULES = [m.name for m in pkgutil.walk_packages(wengert_course.__path__, "wengert_course.") if "lessons" not in m.name]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", HERE / "README.md"]


def project(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return about


def test_it_is_released_with_the_core() -> None:
    core, course = project(ROOT), project(HERE)
    assert course["version"] == core["version"] == wengert.__version__ == version("wengert-course")
    assert course["requires-python"] == core["requires-python"]
    assert {line for line in core["classifiers"] if "Python :: 3" in line} <= {*course["classifiers"]}
    assert (HERE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_what_both_test_with_is_named_alike() -> None:
    core, course = (dict.fromkeys(project(folder)["optional-dependencies"]["test"]) for folder in (ROOT, HERE))
    names = [{re.match(r"[\w-]+", line)[0]: line for line in lines} for lines in (core, course)]  # type: ignore[index]
    assert [line for name, line in names[1].items() if names[0].get(name, line) != line] == []


@pytest.mark.parametrize("name", ["wengert_course", *MODULES])
def test_examples_of(name: str) -> None:
    module = import_module(name)
    assert [n for n in getattr(module, "__all__", []) if not hasattr(module, n)] == []
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not failed, "see the captured output"


def test_what_the_documentation_names_is_there() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = set(re.findall(r"\b(?:wengert[._])?course\.(check|lessons|write|[A-Z]\w+)", text))
    assert "check" in names
    assert [name for name in sorted(names) if not hasattr(wengert.course, name)] == []
    assert wengert.course is wengert_course


def test_a_lesson_s_first_cell_loads_neither_the_compiler_nor_pictures() -> None:
    """It is the first that a learner waits for."""
    code = "import sys; from wengert import course; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "wengert_course" in told
    assert {"wengert.compiler", "wengert.training", "wengert.view", "wengert.diagnosis"} & {*told} == set()


def test_a_folder_is_used_through_its_face() -> None:
    """What the rest of the course takes of the checks and the texts, their `__init__` has."""
    for path in HERE.joinpath("src", "wengert_course").glob("*.py"):
        used = re.findall(r"from wengert_course\.(?:checks|texts)\.\w+ import", path.read_text(encoding="utf-8"))
        assert used == [], path.name
