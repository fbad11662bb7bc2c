"""The build: what becomes of it without a C compiler, or with one that fails, and what is left for `wengert info`.

Nothing is compiled: a stand-in for Cython writes files of C, and a stand-in for the compiler says that it cannot, or
makes empty extensions. `python -m tools.qa.compilers` builds in earnest.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tools.qa import compilers
from wengert import _loader

pytest.importorskip("setuptools", reason="it builds the package, and is not installed")
pytestmark = [
    pytest.mark.once,  # a build does not depend on which engine runs
    pytest.mark.skipif(os.name == "nt", reason="CC does not say which compiler there"),
]
ROOT = Path(__file__).resolve().parent.parent

CYTHON = """
__version__ = "9.9"
"""
BUILD = """
import os
from Cython.Compiler.Errors import CompileError
def cythonize(extensions, build_dir, **directives):
    for extension in extensions:
        (source,) = extension.sources
        if os.environ.get("UNTRANSLATABLE", "-") in source:
            raise CompileError(source)
        extension.sources = [os.path.join(build_dir, source.replace(".py", ".c"))]
        os.makedirs(os.path.dirname(extension.sources[0]), exist_ok=True)
        open(extension.sources[0], "w").close()
    return extensions
"""
COMPILER = """
case "$*" in *"{failing}"*)
    echo "In file included from nowhere:"
    echo "graph.c:7:1: fatal error: nothing.h: No such file"
    echo "graph.c:9:1: error: another"
    exit 1
esac
while [ "$1" != -o ]; do shift; done
: > "$2"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources, and beside them a Cython that writes empty files."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "*.pyd", "_compiled.*"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name, text in (("__init__", CYTHON), ("Build", BUILD), ("Compiler/__init__", "")):
        path = tmp_path / "stand-ins" / "Cython" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "stand-ins/Cython/Compiler/Errors.py").write_text("class CompileError(Exception): pass\n")
    (tmp_path / "stand-ins/Cython/Compiler/Options.py").touch()
    return tmp_path


def compiler(tree: Path, failing: str) -> str:
    """The command of a compiler that fails where it reads `failing`."""
    path = tree / "compiler.sh"
    path.write_text(COMPILER.replace("{failing}", failing))
    return shlex.join(["sh", str(path)])


def build(tree: Path, command: str, **variables: str) -> tuple[str, int]:
    """What a build says, and its exit status; the package is then in the folder `built`."""
    own = {name: text for name, text in os.environ.items() if not name.startswith(("WENGERT_", "CFLAGS", "LD"))}
    done = subprocess.run(
        [sys.executable, "setup.py", "build", "--build-lib", "built"],
        cwd=tree,
        env=own | {"CC": command, "PYTHONPATH": str(tree / "stand-ins"), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout, done.returncode


def reason(tree: Path) -> str:
    """Why an engine from there is interpreted."""
    folder = str(tree / "built" / "wengert")
    built = [name for name in _loader.COMPILED if _loader._extension(folder, name)]
    status = _loader._decide(folder, built)
    assert status.remedy in ("", _loader.COMPILE)
    assert bool(status.remedy) is (not status.compiled and "without extensions" not in status.reason)
    return str(status)


@pytest.fixture(autouse=True)
def no_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WENGERT_INTERPRETED", raising=False)


FAILED = "the C compiler failed: graph.c:7:1: fatal error: nothing.h: No such file"


def test_a_compiler_that_works(tree: Path) -> None:
    said, status = build(tree, compiler(tree, "no such word"), WENGERT_REQUIRE_COMPILED="1")
    assert (status, reason(tree)) == (0, "compiled (the extensions match their sources)"), said


def test_a_compiler_that_fails_is_survived_and_named(tree: Path) -> None:
    said, status = build(tree, compiler(tree, "graph.c"))
    assert status == 0
    assert f"wengert: the engine was not compiled: {FAILED}" in said
    assert reason(tree) == f"interpreted ({FAILED})"
    assert not list(tree.glob("built/**/*.so")), "all of the extensions or none"


def test_a_compiler_that_fails_without_a_word(tree: Path) -> None:
    _, status = build(tree, "false")
    assert (status, reason(tree)) == (0, "interpreted (the C compiler failed: false gives exit status 1)")


def test_no_compiler(tree: Path) -> None:
    _, status = build(tree, "no-such-compiler")
    assert status == 0
    assert reason(tree).startswith("interpreted (a C compiler is missing: ")
    assert "no-such-compiler" in reason(tree)


def test_a_cython_that_fails(tree: Path) -> None:
    _, status = build(tree, compiler(tree, "no such word"), UNTRANSLATABLE="optim")
    said = "interpreted (Cython 9.9 could not translate src/wengert/optim.py)"
    assert (status, reason(tree)) == (0, said)


def test_a_failure_is_one_where_it_was_to_be_compiled(tree: Path) -> None:
    said, status = build(tree, compiler(tree, "graph.c"), WENGERT_REQUIRE_COMPILED="1")
    assert status == 1
    assert said.rstrip().endswith(f"error: wengert: the engine was not compiled, and was to be: {FAILED}")


def test_a_later_build_takes_the_reason_back(tree: Path) -> None:
    build(tree, compiler(tree, "graph.c"))
    said, _ = build(tree, compiler(tree, "no such word"))
    assert reason(tree) == "compiled (the extensions match their sources)", said


def test_no_extensions_are_asked_for(tree: Path) -> None:
    said, status = build(tree, "false", WENGERT_PURE="1", WENGERT_REQUIRE_COMPILED="1")
    assert (status, "not compiled" in said) == (0, False)
    assert reason(tree).startswith("interpreted (installed without extensions: ")


CYTHONS = """
#include <Python.h>
#define CYTHON_UNUSED [[maybe_unused]]
#define CYTHON_INLINE inline
#define CYTHON_SMALL_CODE
#define CYTHON_RESTRICT restrict
#define likely(x) (x)
#define unlikely(x) (x)
"""  # as Cython defines it where C23 is spoken


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("*.pxd")), ids=lambda path: path.stem)
def test_the_c_of_the_declarations_is_c23_too(path: Path, tmp_path: Path) -> None:
    """GCC 15 and newer take all C to be."""
    blocks = re.findall(r'cdef extern from \*[^:]*:\n\s*"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL)
    if not blocks:
        return
    command = [*shlex.split(os.environ.get("CC", "cc")), compilers.C23, "-fsyntax-only", "-xc", "-"]
    command += [f"-I{sysconfig.get_path('include')}"]
    if shutil.which(command[0]) is None:
        pytest.skip("there is no compiler")
    if subprocess.run(command, input="#include <Python.h>", text=True, capture_output=True).returncode:
        pytest.skip("the compiler does not take this Python's own header for C23")  # such as GCC 12 that of Python 3.13
    done = subprocess.run(command, input=CYTHONS + "\n".join(blocks), text=True, capture_output=True)
    assert "error:" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


def test_every_compiler_is_found_or_said_not_to_be_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gcc-12", "clang-22"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "cc").symlink_to("gcc-12")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    here, missing = compilers.compilers()
    assert here == ["cc", "clang-22"]  # gcc-12 is cc
    assert sorted([*here, "gcc-12", *missing]) == sorted([*compilers.NAMED, "ziglang"])
    monkeypatch.setenv("CC", "ccache gcc-12 -pthread")
    assert compilers.compilers()[0] == ["ccache gcc-12 -pthread", "clang-22"]
