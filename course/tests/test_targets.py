"""What can be checked, and what cannot: files, notebooks, modules, classes and names of a session; and the command."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests import engines, half_done
from tests.checked import counted, page, tried
from tests.handmade import ENGINE, TANH, TRAIN
from wengert.apps import cli
from wengert.errors import ArgumentError
from wengert_course import Report, check
from wengert_course.checks import runner
from wengert_course.checks.by_hand import NEURON

# ------------------------------------------------------------------------------------- files that cannot be tried

CANNOT = {
    "def f(:\n": r"line 1, column 7: SyntaxError: invalid syntax$",
    "x = (1,\n": r"line 1, column 5: SyntaxError: .*never closed",
    "if True:\nx = 1\n": r"line 2, column 1: IndentationError",
    "x = 1\0": r"null bytes",
    "import sys\nsys.exit(3)\n": r"line 2: the file ends the program \(sys.exit\) while it is imported",
    "import os\nos._exit(0)\n": r"while it was imported, it ended with status 0$",
    "\n1 / 0\n": r"line 2: ZeroDivisionError: division by zero, while the file was imported",
    "import no_such_module\n": r"line 1: ModuleNotFoundError: No module named 'no_such_module'",
    "input()\n": r"line 1: EOFError",
    "def f(): f()\nf()\n": r"line 1: RecursionError",
    "while True: pass\n": r"still being imported after 1 seconds: what trains or asks belongs under if __name__",
    "x = 1\n": r"no class in it is like a Value: expected a class with x = Value\(2.0\) and x.data$",
    "class Neuron: pass\n": r"no class in it is like a Value: .*; the classes in it: Neuron$",
    "class Value:\n def __init__(self, x): 1 / 0\n": r"line 2: Value\(2.0\) raises Zero",
    "class Value:\n def __init__(self): pass\n": r"Value\(2.0\) raises TypeError: .*takes 1 positional argument",
    "class A:\n def __init__(self, x): self.data = self.grad = x\n def backward(self): pass\nclass B(A): pass\n": (
        r"several classes are like a Value: A, B; name one, as engine.py:A$"
    ),
    "raise ValueError('\\x1b[2J' + 'x' * 9999)\n": r"line 1: ValueError: \\x1b\[2Jx{296}, while",
    "class E(Exception):\n def __str__(self): 1 / 0\nraise E\n": r"line 3: E: \(its text cannot be made\)",
}


@pytest.mark.parametrize("text", CANNOT)
def test_a_file_that_cannot_be_tried(text: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=CANNOT[text]) as caught:
        tried(tmp_path, text, timeout=1.0 if "while True" in text else 20.0)
    assert str(caught.value).startswith(str(tmp_path / "engine.py"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its memory")
def test_a_file_that_wants_more_memory_than_it_may_have(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"line 2: MemoryError, .*more memory than --memory allows$"):
        tried(tmp_path, "x = 1\ny = bytearray(10**10)\n", memory=512)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"gone.py cannot be read: No such file"):
        check(tmp_path / "gone.py")
    with pytest.raises(ArgumentError, match="is a folder"):
        check(tmp_path)
    (tmp_path / "right.py").write_text(engines.PLAIN)
    with pytest.raises(ArgumentError, match=r"there is no class Nope in it; the classes in it: Value$"):
        check(f"{tmp_path / 'right.py'}:Nope")
    assert check(f"{tmp_path / 'right.py'}:Value").right


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"thing": None}, "thing is None; expected the name of a file, such as 'engine.py', a module, a class, or"),
        ({"thing": 3}, "thing is int 3; expected the name of a file"),
        ({"timeout": 0.0}, r"timeout is 0\.0; expected a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout is nan; expected"),
        ({"timeout": "20"}, "timeout is '20'; expected"),
        ({"memory": 0}, "memory is 0; expected a whole number of MiB from 1 up"),
        ({"memory": 100.5}, r"memory is 100\.5; expected"),
        ({"seed": 1.5}, r"seed is 1\.5; expected a whole number"),
    ],
)
def test_arguments_that_are_none(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        check(**{"thing": wengert.Value, **arguments})


def test_more_memory_than_there_is(tmp_path: Path) -> None:
    assert tried(tmp_path, engines.PLAIN, memory=10**15).right


# ------------------------------------------------------------------------------------- files that do more than that


def beside(folder: Path, text: str, **limits: Any) -> Report:
    """The report on a right engine with something more in its file."""
    return tried(folder, engines.PLAIN + "\n\n" + text, **limits)


def test_what_stands_under_main_does_not_run(tmp_path: Path) -> None:
    assert beside(tmp_path, "if __name__ == '__main__':\n    1 / 0\n").findings == ()


def test_what_the_file_prints_is_kept_apart(tmp_path: Path) -> None:
    text = "import os\nfor fd in (1, 2):\n    os.write(fd, b'{\"end\": true}\\n' * 100_000)\nprint('\\x1b[31mred')\n"
    report = beside(tmp_path, text)
    assert report.findings == ()
    assert len(report.output) == 2_000
    assert report.output.startswith('{"end": true}\n')


def test_modules_of_ours_do_not_stand_in_the_way_of_theirs(tmp_path: Path) -> None:
    for name in ("trials", "model", "kit", "load"):
        (tmp_path / f"{name}.py").write_text("here = 1\n")
    report = beside(
        tmp_path, "import kit, load, model, trials\nassert model.here == trials.here == kit.here == load.here == 1\n"
    )
    assert report.findings == ()


def test_an_operation_that_does_not_end_is_the_only_one_that_fails(tmp_path: Path) -> None:
    text = "def forever(self):\n    while True: pass\nValue.exp = forever\n"
    report = beside(tmp_path, text, timeout=6.0)
    assert [row.name for row in report.rows if row.state != "ok" and row.counts] == ["a.exp()"]
    assert [finding.slip for finding in report.findings] == ["endless"]
    assert report.remarks == ()


def test_a_backward_that_never_ends_is_given_up_in_time(tmp_path: Path) -> None:
    text = "def forever(self):\n    while True: pass\nValue.backward = forever\n"
    report = beside(tmp_path, text, timeout=2.0)
    assert not report.right
    assert "not tried" in {row.state for row in report.rows}
    assert "the time was up" in report.remarks[-1]
    assert [finding.slip for finding in report.findings] == ["endless"]


@pytest.mark.parametrize(
    ("body", "slip", "says"),
    [
        ("sys.exit()", "error", "SystemExit"),
        ("os._exit(7)", "died", "it ended with status 7"),
        ("os.kill(os.getpid(), 9)", "died", "SIGKILL"),
        ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("return self.relu()", "endless recursion", "calls itself without end"),
        ("return self.data", "no Value returned", "a plain number comes back"),
        ("return None", "nothing returned", "gives None"),
        ("raise MemoryError", "memory", "--memory"),
        ("return Value('two')", "no number", ".data is str 'two', expected a number"),
    ],
)
def test_an_operation_that_goes_astray(body: str, slip: str, says: str, tmp_path: Path) -> None:
    if "kill" in body and os.name == "nt":
        pytest.skip("Windows has no such signal")
    report = beside(tmp_path, f"import os, sys\ndef relu(self):\n    {body}\nValue.relu = relu\n")
    assert [row.name for row in report.rows if row.counts and row.state != "ok"] == ["a.relu()"]
    assert set(counted(report)) == {slip}
    assert says in next(finding for finding in report.findings if not finding.note).says


# ------------------------------------------------------------------------------------- packages, notebooks


def test_a_module_of_a_package_is_imported_by_its_name(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "numbers.py").write_text("ONE = 1.0\n")
    (package / "engine.py").write_text(
        "from .numbers import ONE\n" + engines.PLAIN.replace("self.grad = 1.0", "self.grad = ONE")
    )
    assert check(package / "engine.py").right
    (package / "numbers.py").write_text("ONE = (\n")
    with pytest.raises(ArgumentError, match=r"engine.py, line 1: SyntaxError: .*while the file was imported"):
        check(package / "engine.py")


def test_the_librarys_own_engine(tmp_path: Path) -> None:
    assert check(Path(wengert.__file__).parent / "engine.py").right
    assert check(wengert.Value).right
    assert check(wengert.engine).right


def notebook(folder: Path, *cells: str, kind: str = "code") -> Path:
    """A notebook of those cells, with a text before each."""
    path = folder / "lesson.ipynb"
    listed: list[dict[str, Any]] = []
    for number, cell in enumerate(cells):
        lines = cell.splitlines(keepends=True)
        source = lines if number % 2 else cell  # both are allowed
        listed += [{"cell_type": "markdown", "source": ["A text"]}, {"cell_type": kind, "source": source}]
    path.write_text(json.dumps({"cells": listed, "nbformat": 4, "metadata": {}}), encoding="utf-8")
    return path


def test_a_notebook(tmp_path: Path) -> None:
    path = notebook(
        tmp_path,
        "%matplotlib inline\nimport math\n!pip install nothing\nmath.sin?\n??math\nif math:\n    %timeit 1 + 1\n",
        "%%html\n<b>no Python</b>\n",
        half_done.LOCAL,
        'text = """\n% no magic: a text\n"""\nassert "magic" in text\n',
        "%%time\nx = Value(2.0) * Value(3.0)\n",
        "x",
    )
    report = check(path)
    assert (report.step, report.right) == (4, True)
    assert report.file == str(path)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (("x = 1", "y = 2\n1 / 0\n"), r"lesson.ipynb, cell 2, line 2: ZeroDivisionError: division by zero, while"),
        (("x = 1", "y = 2\ndef f(:\n"), r"lesson.ipynb, cell 2, line 2, column 7: SyntaxError"),
        (("def f():\n    return 1 / 0\n", "f()"), r"lesson.ipynb, cell 1, line 2: ZeroDivisionError"),
        (("x = 1",), "lesson.ipynb: no class in it is like a Value"),
    ],
)
def test_an_error_in_a_notebook_names_cell_and_line(cells: tuple[str, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=words):
        check(notebook(tmp_path, *cells))


def test_an_error_of_an_operation_in_a_notebook_names_its_cell(tmp_path: Path) -> None:
    text = engines.PLAIN + "\n    def relu(self):\n        return 1 / 0\n"
    text = text.replace("def wrapped(x):\n    return x if isinstance(x, Value) else Value(x)\n", "")
    report = check(notebook(tmp_path, "def wrapped(x):\n    return x if isinstance(x, Value) else Value(x)\n", text))
    assert re.search(r"\(cell 2, line \d+: return 1 / 0\)$", report.findings[0].says)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 3}', '{"cells": [{}]}', '{"cells": [{"cell_type": "code"}]}', "[" * 9999]
)
def test_a_file_that_is_no_notebook(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=r"a.ipynb.*: it is no notebook: expected JSON with a list of cells"):
        check(path)


# ------------------------------------------------------------------------------------- what a session holds


def defined(text: str) -> dict[str, Any]:
    """The names of a cell."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(text, names)
    return names


def test_a_class_of_this_session() -> None:
    report = check(defined(engines.wrong("tanh_of_input"))["Value"])
    assert counted(report) == ["tanh rule"]
    assert (report.file, report.name) == ("", "Value")
    assert str(report).startswith("class Value, step 7 (the rest of arithmetic), 31 of 32 right\n")
    assert repr(report) == str(report)


def test_a_class_as_it_was_changed_in_this_session() -> None:
    names = defined(engines.PLAIN)
    names["Value"].exp = lambda self: None
    assert counted(check(names["Value"])) == ["nothing returned"]


def test_the_names_of_a_cell() -> None:
    report = check(defined(half_done.BY_HAND))
    assert report.step == 3
    assert [one.name for one in report.not_yet] == [NEURON]
    with pytest.raises(ArgumentError, match="__main__: no class in it is like a Value"):
        check({"__name__": "__main__", "x": 1})


def test_a_module(tmp_path: Path) -> None:
    path = tmp_path / "own_engine.py"
    path.write_text(half_done.LOCAL)
    spec = importlib.util.spec_from_file_location("own_engine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    report = check(module)
    assert (report.file, report.step, report.right) == (str(path), 4, True)
    path.write_text(engines.wrong("tanh_of_input", half_done.LOCAL))
    assert counted(check(module)) == ["tanh rule"], "it is read again: the file as it is saved"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
def test_a_class_of_this_session_leaves_the_session_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    names = defined(engines.PLAIN + "\n\ncount = [0]\n")
    names["Value"].exp = lambda self: names["count"].append(1) or print("loud") or os._exit(3)
    names["Value"].log = lambda self: [None for _ in iter(int, 1)]
    report = check(names["Value"], timeout=4.0)
    assert counted(report) == ["died", "endless"]
    assert "it ended with status 3" in report.findings[0].says
    assert names["count"] == [0]
    assert report.output.startswith("loud")
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system has no os.fork")
def test_a_library_that_warns_of_copies_is_not_heard() -> None:
    program = """
import os, warnings, wengert
os.register_at_fork(before=lambda: warnings.warn("threads", RuntimeWarning))
print(wengert.course.check(wengert.Value).right)
"""
    line = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_class_of_this_session_where_processes_cannot_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    before = dict(os.environ)
    assert check(defined(ENGINE + TANH + TRAIN), 9).right
    assert dict(os.environ) == before
    report = check(defined(half_done.LOCAL)["Value"], 4)
    assert report.right
    free = "limits of time and memory" if sys.version_info < (3, 12) else "a limit of memory"
    assert report.remarks[0] == f"This system has no os.fork: it ran in this process, without {free}."
    assert counted(check(defined(engines.wrong("no_seed"))["Value"])) == ["no seed"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 a process cannot watch itself")
def test_a_watch_that_has_ended_ends_nothing() -> None:
    """Python 3.12 and 3.13 leave what is watched on where its number is given back."""
    late: list[bool] = []

    def is_late() -> bool:
        return bool(late) and late.pop()  # it is said once, as by `runner.Supervisor`

    with runner._watched(is_late):
        assert sum(range(3)) == 3
    late.append(True)
    assert [counted_up(n) for n in range(3)] == [0, 1, 2]
    with pytest.raises(runner._TooLongError), runner._watched(is_late):
        counted_up(3)
    assert not late
    assert counted_up(3) == 3


def counted_up(n: int) -> int:
    k = 0
    while k < n:
        k += 1
    return k


# ------------------------------------------------------------------------------------- the command


def status(*arguments: object) -> int:
    """The exit status of the command, run here."""
    return cli.main(["check", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few engines, which the command runs in."""
    monkeypatch.chdir(tmp_path)
    for name, text in half_done.SHOWN.items():
        Path(name).write_text(text)
    Path("lowered.py").write_text(engines.wrong("power_not_lowered"))
    Path("seed_added.py").write_text(engines.wrong("seed_added"))
    Path("broken.py").write_text("def f(:\n")
    return tmp_path


def test_the_command_prints_a_table_a_score_and_what_to_write(files: Path) -> None:
    line = [sys.executable, "-m", "wengert", "check", "lowered.py", "--seed", "1"]
    done = subprocess.run(line, cwd=files, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "lowered.py: class Value, step 7 (the rest of arithmetic), 28 of 32 right"
    assert "  a * b                                          ok      ok" in lines
    assert "  a ** n                                         ok      wrong     power rule" in lines
    assert "1. a ** n: the power rule is written n * a**n: the exponent has to fall by one" in lines
    assert "   write: self.grad += n * self.data**(n - 1) * out.grad" in lines
    assert max(map(len, lines[1:])) <= 110


@pytest.mark.usefixtures("files")
def test_a_narrow_terminal_breaks_no_row_and_no_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert status("lowered.py", "--seed", "1") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  a ** n                                         ok      wrong     power rule" in lines
    assert "   write: self.grad += n * self.data**(n - 1) * out.grad" in lines
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert status("lowered.py", "gone.py", "--seed", "1") == 2
    told = capsys.readouterr().out
    plain = re.sub(r"\x1b\[\d*m", "", told).splitlines()
    assert plain[: len(lines)] == lines
    assert plain[len(lines) :] == ["", "", "gone.py cannot be read: No such file or directory"]
    assert "\x1b[32mok\x1b[0m" in told
    assert "\x1b[31mwrong\x1b[0m" in told


@pytest.mark.usefixtures("files")
def test_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("right.py") == 0
    assert status("seed_added.py") == 0
    assert status("--strict", "seed_added.py") == 1
    assert status("half_done.py", "--step", "4") == 1
    capsys.readouterr()
    assert status("gone.py") == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "wengert check: gone.py cannot be read: No such file or directory\n")
    for option, value in (("step", "13"), ("timeout", "0"), ("timeout", "nan"), ("memory", "0")):
        assert status("right.py", f"--{option}", value) == 2
        assert re.match(f"wengert check: {option} is {value}.*; expected a ", capsys.readouterr().err)
    with pytest.raises(SystemExit) as caught:
        status("right.py", "--seed", "x")
    assert caught.value.code == 2


@pytest.mark.usefixtures("files")
def test_the_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("--json", "swapped_factors.py") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["class"], told["step"], told["of"]) == ("swapped_factors.py", "Value", 7, 32)
    assert told["findings"][0]["slip"] == "swapped factors"
    assert {row["state"] for row in told["rows"]} == {"ok", "wrong", "not there", "note"}
    text = engines.PLAIN.replace("return Value(e, (self,), (e,))", "return Value(e * 1e999)")
    Path("infinite.py").write_text(text)
    assert status("--json", "infinite.py") == 1
    assert [finding["got"] for finding in json.loads(capsys.readouterr().out)["findings"]] == ["inf"]
    assert status("--json", "gone.py") == 2
    assert json.loads(capsys.readouterr().out) == {
        "file": "gone.py",
        "error": "gone.py cannot be read: No such file or directory",
    }
    assert status("--json", "--step", "4", "half_done.py", "broken.py", "right.py") == 2
    half, broken, right = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in half["not_yet"]] == ["a * b", "a * 3"]
    assert broken == {"file": "broken.py", "error": "broken.py, line 1, column 7: SyntaxError: invalid syntax"}
    assert right["right"] == right["of"]


@pytest.mark.usefixtures("files")
def test_several_files_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("--table", "right.py", "swapped_factors.py", "half_done.py", "broken.py", "--seed", "1") == 2
    *lines, last = capsys.readouterr().out.splitlines()
    assert "\n".join(["```text", *lines, "```"]) in page()
    assert last.split(maxsplit=4) == ["broken.py", "-", "-", "-", "line 1, column 7: SyntaxError: invalid syntax"]
    assert status("right.py", "preorder.py") == 1
    assert "\n\n\npreorder.py: class Value, step 7" in capsys.readouterr().out
