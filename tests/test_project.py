"""What is said twice about the project is said alike: its version, its Pythons, the parts of CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import wengert
from tools import set_address

pytestmark = pytest.mark.once  # files are read, and nothing is computed
ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = [".github/workflows/ci.yml", ".github/workflows/release.yml", ".github/workflows/nightly.yml"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def test_the_version_is_one() -> None:
    version = project()["project"]["version"]
    assert re.findall(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE) == [version]
    assert re.search(rf"^## {re.escape(version)}, ", text("CHANGELOG.md"), re.MULTILINE)
    assert wengert.__version__ == version


def test_the_pythons_are_those_that_are_tried_and_built() -> None:
    about = project()
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(about["project"]["classifiers"]))
    assert about["project"]["requires-python"] == f">={named[0]}"
    (tried,) = re.findall(r"python: \[(.*)\]", text(WORKFLOWS[0]))
    assert re.findall(r"[\d.]+", tried) == named
    assert about["tool"]["cibuildwheel"]["build"] == [f"cp{version.replace('.', '')}-*" for version in named]


def test_linters_are_named_in_exact_versions() -> None:
    assert [tool for tool in project()["project"]["optional-dependencies"]["lint"] if "==" not in tool] == []


def test_every_file_of_the_core_is_there_to_be_counted() -> None:
    listed = project()["tool"]["coverage"]["run"]["include"]
    assert [pattern for pattern in listed if not list(ROOT.glob(pattern))] == []


def test_the_hosted_workflow_asks_for_parts_that_there_are() -> None:
    calls = [line.split() for file in WORKFLOWS for line in re.findall(r"bash \.ci/run(.*)", text(file))]
    assert [] in calls, "one job runs everything"
    for part in {part for call in calls for part in call}:
        assert f"\n{part}() {{\n" in text(".ci/run")


def test_ci_runs_the_commands_of_the_readme() -> None:
    patterns = re.findall(r"^ *readme_command '(.*)'(?: [a-z_]+)?$", text(".ci/run"), re.MULTILINE)
    assert len(patterns) == 2
    for pattern in patterns:
        assert len(re.findall(f"^{pattern}$", text("README.md"), re.MULTILINE)) == 1


def test_actions_are_pinned_and_may_do_little() -> None:
    assert {*WORKFLOWS} == {path.relative_to(ROOT).as_posix() for path in ROOT.glob(".github/workflows/*")}
    for file in WORKFLOWS:
        written = text(file)
        used = re.findall(r"uses: ([^\s#]+)", written)
        assert [name for name in used if not re.search(r"^\./|@(release/)?v\d|@[0-9a-f]{40}$", name)] == []
        assert "\npermissions:\n  contents: read\n" in written
    release = text(WORKFLOWS[1])
    assert re.search(r'^on:\n  push:\n    tags: \["v\*"\]\n\n', release, re.MULTILINE), "nothing but a tag publishes"
    assert re.findall(r"\w[\w-]*: write", release) == ["id-token: write"]


def test_extras_ask_for_what_each_python_can_have() -> None:
    """Wheels of one exact version end at some Python, and no extra may ask for it beyond."""
    requirements = pytest.importorskip("packaging.requirements")
    extras = project()["project"]["optional-dependencies"]
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(project()["project"]["classifiers"]))
    assert len(pythons) >= 4
    for extra in ("all", "test", "peers", *sorted(extras.keys() - {"lint", "docs", "browser"})):
        for line in extras[extra]:
            asked = requirements.Requirement(line)
            for python in pythons:
                assert asked.marker is None or asked.marker.evaluate({"python_version": python}), (line, python)
            if "==" in str(asked.specifier) and asked.name != "micrograd":  # which is pure Python
                assert asked.marker is not None, f"{line}: on which Pythons?"
                assert not asked.marker.evaluate({"python_version": "3.99"}), line


@pytest.mark.parametrize("address", ["https://example.org/someone/wengert", "https://code.example.org/a/b/wengert.git/"])
def test_the_address_of_the_repository_is_set_everywhere_at_once(address: str, tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    for name in set_address.FILES:
        (tmp_path / name).write_text(text(name), encoding="utf-8")
    set_address.main([address], tmp_path)
    bare = address.removesuffix("/").removesuffix(".git")
    assert set_address.address_of(tmp_path) == bare
    for name in set_address.FILES:
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert bare in written
        assert set_address.with_address(name, written, set_address.address_of()) == text(name)  # and back
        if name.endswith(".toml"):
            urls = tomllib.loads(written)["project"]["urls"]
            assert all(url.startswith(bare) for url in urls.values())
            assert tomllib.loads(written)["project"]["name"] == tomllib.loads(text(name))["project"]["name"]


def test_every_file_has_the_address_that_pyproject_names() -> None:
    for name in set_address.FILES:
        assert set_address.with_address(name, text(name), set_address.address_of()) == text(name), name


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        set_address.main(["github.com/someone/wengert"], tmp_path)
