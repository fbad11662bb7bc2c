"""Every example runs, in whichever engine is tested: in docstrings, in the documentation, in the README."""

from __future__ import annotations

import doctest
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import wengert

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [m.name for m in pkgutil.walk_packages(wengert.__path__, "wengert.") if not m.name.endswith("__main__")]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NEED = {  # the libraries that examples are of
    "checking.md": ("wengert_course",),
    "devices.md": ("jax",),
    "getting-started.md": ("matplotlib",),
    "interop.md": ("jax", "scipy", "sklearn", "torch"),
    "wengert.checking.compare": ("mpmath",),
    "wengert.compiler.backends.xla": ("jax",),
    "wengert.compiler.backends.xla.kernel": ("jax",),
    "wengert.compiler.backends.xla.mesh": ("jax",),
    "wengert.compiler.export.jax": ("jax",),
    "wengert.compiler.export.torch": ("torch",),
    "wengert.estimator": ("sklearn",),
}
FENCED = re.compile(r"^```(pycon|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["wengert", *MODULES])
def test_examples_of(name: str) -> None:
    for library in NEED.get(name, ()):
        pytest.importorskip(library, reason=f"needs {library}")
    # What a compiled module took over by cimport is not among its names, though its text says so.
    failed, _ = doctest.testmod(import_module(name), optionflags=OPTIONS, extraglobs={"Value": wengert.Value})
    assert not failed, "see the captured output"


def test_the_first_program_of_the_readme_prints_what_it_says_and_becomes_the_numpy_below_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    program, shown = [block[2] for block in FENCED.finditer(PAGES[0].read_text(encoding="utf-8"))][:2]
    names: dict[str, Any] = {}
    exec(program, names)
    assert [f"# {line}" for line in capsys.readouterr().out.splitlines()] == re.findall("^# .*", program, re.MULTILINE)
    comment, _, text = shown.partition("\n")
    assert comment == "# print(batch.source(gradient=False))"
    made = names["batch"].source(gradient=False)
    assert text.split() == re.sub(r"(\S) +# \(.*\)$", r"\1", made, flags=re.MULTILINE).split()
    assert max(map(len, (program + shown).splitlines())) <= 40, "all of it is seen on a telephone"


def test_what_the_readme_prints_is_what_its_program_prints(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    blocks = [block[2] for block in FENCED.finditer(PAGES[0].read_text(encoding="utf-8"))]
    (program,) = [block for block in blocks if "# its last lines:\n" in block]
    file = tmp_path / "program.py"
    file.write_text(f"from wengert import Value\n{program}", encoding="utf-8")
    printed = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout
    shown = [line.removeprefix("# ") for line in program.partition("# its last lines:\n")[2].splitlines()]
    assert max(map(len, program.splitlines())) <= 98, "all of it is seen at a desk"
    last = printed.strip().splitlines()[-len(shown) :]
    assert [line.split() for line in last] == [line.split() for line in shown]


ON_ONE_ENGINE = pytest.mark.once  # what these examples show is of other libraries, which take their seconds
OTHERS = ("devices.md", "interop.md")
AT_NIGHT = pytest.mark.nightly  # XLA compiles for ten seconds what training/test_devices.py tries at each change
MARKED = [
    pytest.param(
        page, marks=[ON_ONE_ENGINE] * (page.name in OTHERS) + [AT_NIGHT] * (page.name == "devices.md"), id=page.name
    )
    for page in PAGES
]


@pytest.mark.slow
@pytest.mark.parametrize("page", MARKED)
def test_examples_on(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other in one namespace: sessions are compared, programs only run."""
    for library in NEED.get(page.name, ()):
        pytest.importorskip(library, reason=f"needs {library}")
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    names: dict[str, object] = {}
    text = page.read_text(encoding="utf-8")
    for block in FENCED.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        if block[1] == "python":
            exec(compile("\n" * line + block[2], str(page), "exec"), names)
        else:
            session = doctest.DocTestParser().get_doctest(block[2], names, page.name, str(page), line)
            runner.run(session, clear_globs=False)
            names.update(session.globs)
    assert not runner.failures, "see the captured output"
