"""The grade comes from numbers, decided where the file is not: what a file reaches in its process knows no answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests import engines
from tests.checked import tried
from tests.handmade import ENGINE, TANH
from wengert.errors import ArgumentError
from wengert_course import check
from wengert_course.checks import channel, probe
from wengert_course.checks.runner import Supervisor

WRONG = engines.wrong("swapped_factors")
FOREIGN = "the file wrote to the check's own channel"

FORGERIES = {
    "the program's own names": """
        import __main__
        class Kit:
            def __getattr__(self, name): return lambda *a, **k: iter(())
        for name in ("_kit", "attempt", "beside", "serve", "Kit", "trials", "load", "main"):
            setattr(__main__, name, lambda *a, **k: Kit())
        """,
    "every module with trials": """
        import sys
        for module in list(sys.modules.values()):
            if hasattr(module, "TRIALS"):
                module.TRIALS.clear()
        """,
    "numbers that are equal to all": """
        class Number(float):
            __eq__ = lambda self, other: True
            __hash__ = float.__hash__
            __sub__ = __rsub__ = __abs__ = lambda *a: 0.0
        old = Value.__init__
        def __init__(self, *a):
            old(self, *a)
            self.data = Number(self.data)
        Value.__init__ = __init__
        """,
    "comparisons of one's own": """
        import math, builtins
        math.isclose = lambda *a, **k: True
        builtins.zip = lambda *a, **k: iter(())
        """,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_does_not_make_a_wrong_engine_right(name: str, tmp_path: Path) -> None:
    try:
        report = tried(tmp_path, WRONG + textwrap.dedent(FORGERIES[name]))
    except ArgumentError:
        return  # it broke the process that it runs in
    assert not report.right
    assert "swapped factors" in {finding.slip for finding in report.findings} or name.startswith("comparisons")


def frames(action: str, program: str = WRONG) -> str:
    """A file that walks up from its own frame into those of the check, and does something to what it finds there."""
    return program + textwrap.dedent(f"""
        import sys
        def forge():
            frame = sys._getframe()
            while frame is not None:
                for found in list(frame.f_locals.values()):
                    modules = found if isinstance(found, dict) and "trials" in found and "kit" in found else None
                    if modules and hasattr(modules["kit"], "Kit"):
                        kit, Kit = modules["kit"], modules["kit"].Kit
                        {action}
                frame = frame.f_back
        forge()
        """)


def test_a_kit_that_gives_no_numbers_is_seen(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=rf"{FOREIGN}: 0 numbers where \d+ were asked for"):
        tried(tmp_path, frames("kit.Trial.outcomes = lambda self, kit: iter(())"))


def test_a_kit_that_gives_constants_is_wrong(tmp_path: Path) -> None:
    for constant in ("1.0", "0.0", "float('nan')"):
        try:
            report = tried(tmp_path, frames(f"Kit.grad = lambda self, x: {constant}"))
        except ArgumentError:
            continue
        assert not report.right


def test_a_network_whose_numbers_are_made_up(tmp_path: Path) -> None:
    values = "[[1, 2, float('nan'), 1]] * 12"
    for made_up in ("[1.0, 12.0]", "[0.0] * 500", "[[0, []]] * 40", f"[[0, {values}], [0, [1.0], [[0.5] * 12]]]"):
        forged = "old = kit.Trial.outcomes; kit.Trial.outcomes = lambda self, kit: "
        forged += f"(('', '', x) for x in {made_up}) if self.step == 8 else old(self, kit)"
        try:
            report = tried(tmp_path, frames(forged, ENGINE + TANH.replace("act.tanh()", "act")), 8)
        except ArgumentError as error:
            told = str(error)
            continue
        assert not report.right
    assert "is not what was asked of it" in told


def transcript(folder: Path, seed: int) -> str:
    """What the process of a right engine says, for the numbers of a seed."""
    (folder / "right.py").write_text(engines.PLAIN)
    spoken: list[bytes] = []
    read = channel.read

    def listening(line: bytes) -> dict[str, object]:
        spoken.append(line)
        return read(line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel, "read", listening)
        assert check(folder / "right.py", seed=seed).right
    return b"".join(spoken).decode()


def test_what_was_right_for_other_numbers_is_wrong(tmp_path: Path) -> None:
    text = f"import os\nos.write(3, {transcript(tmp_path, 1)!r}.encode())\nos._exit(0)\n"
    assert tried(tmp_path, text, seed=1).right, "whoever knows the seed can say what is right: it is drawn in each run"
    assert not tried(tmp_path, text, seed=2).right
    assert not check(tmp_path / "engine.py").right


FOREIGN_LINES = {
    b"hello\n": "a line that is no JSON",
    b"\xff\xfe\n": "a line that is no JSON",
    b"[" * 60_000 + b"\n": "a line that is no JSON",
    b"9" * 5_000 + b"\n": "a (line that is no JSON|message of another shape)",
    b"[]\n": "a message of another shape",
    b'{"right": 37, "of": 37}\n': "a message of another shape",
    b'{"start": "mul"}\n': "a message of another shape",
    b'{"done": "mul", "numbers": []}\n': "a message out of its turn",
    b'{"name": 3, "names": {}, "has": []}\n': "another thing where a text belongs",
    b'{"name": "V", "names": {"data": "__dict__"}, "has": []}\n': "where the parts of a class belong",
    b'{"name": "V", "names": {}, "has": ["quit"]}\n': "where the methods of a class belong",
    b'{"stop": ["x"], "place": ""}\n': "another thing where a text belongs",
    b"x" * 10_000_000: "a line of more than 65536 bytes",
}


@pytest.mark.parametrize("line", FOREIGN_LINES, ids=lambda line: repr(line[:30]))
def test_a_foreign_message_is_told_in_a_sentence(line: bytes, tmp_path: Path) -> None:
    text = f"import os\nline = {line[:70_000]!r}\n"
    text += "for _ in range(3):\n    os.write(3, line)\n"
    with pytest.raises(ArgumentError, match=f"{FOREIGN}: .*{FOREIGN_LINES[line]}"):
        tried(tmp_path, WRONG + "\n\n" + text)


@pytest.mark.parametrize(
    ("numbers", "ended", "words"),
    [
        ("three", False, "where numbers belong"),
        ([True], False, "where numbers belong"),
        (["1.0"], False, "where numbers belong"),
        ([1.0, 2.0, 3.0], False, "3 numbers where 2 were asked for"),
        ([1.0], False, "1 numbers where 2 were asked for"),
        ([1.0, 10**400], False, "too large"),
    ],
)
def test_numbers_of_another_kind(numbers: object, ended: bool, words: str) -> None:
    with pytest.raises(channel.ForeignError, match=words):
        channel.numbers(numbers, 2, ended)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"kind": "TypeError", "says": ""}, "where an error belongs"),
        ("TypeError", "where an error belongs"),
        ({"kind": 3, "says": "", "place": ""}, "where a text belongs"),
        ({"kind": "TypeError", "says": "x" * 401, "place": ""}, "where a text belongs"),
    ],
)
def test_errors_of_another_kind(said: object, words: str) -> None:
    with pytest.raises(channel.ForeignError, match=words):
        channel.error(said)


def test_what_was_not_asked_for_is_not_heard() -> None:
    """Of the trials, only the one whose turn it is."""
    name = b'{"name": "Value", "names": {"data": "data"}, "has": ["__mul__"]}\n'
    for line in (b'{"done": "mul", "numbers": []}\n', name):
        watch = Supervisor("engine.py", "", None, 1, 20.0, 2048, 1)
        watch.hear(name)
        with pytest.raises(channel.ForeignError, match="out of its turn"):
            watch.hear(line)


def test_numbers_that_are_numbers() -> None:
    assert len(channel.numbers([1.0] * 2_000, None, False)) == 2_000
    with pytest.raises(channel.ForeignError, match="2001 numbers where 2000 were asked for"):
        channel.numbers([1.0] * 2_001, None, False)
    assert channel.numbers([1, 2.5], 2, False) == (1.0, 2.5)
    assert channel.numbers([1], 2, True) == (1.0,)
    assert channel.numbers([[1, [2.5]], 3], None, False) == ([1, [2.5]], 3)
    for count, foreign in ((2, [[1.0], 2.0]), (None, [[1.0, ["2"]]]), (None, [{"a": 1.0}])):
        with pytest.raises(channel.ForeignError, match="where numbers belong"):
            channel.numbers(foreign, count, False)


def test_the_program_that_runs_the_file_has_no_name_in_it(tmp_path: Path) -> None:
    text = "\n\nimport __main__, sys\nassert vars(__main__).keys() <= set(vars(type(sys)('x')))\n"
    assert tried(tmp_path, engines.PLAIN + text + "assert 'wengert' not in sys.modules\n").right


def test_what_the_child_loads_imports_nothing_of_ours() -> None:
    folder = Path(probe.__file__).parent
    run = [
        sys.executable,
        "-I",
        "-c",
        "import sys, runpy; sys.argv = ['probe.py']; runpy.run_path(sys.argv[0]); "
        "print([name for name in sys.modules if name.startswith('wengert')])",
    ]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------------------------- nothing is left running

posix = pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no groups of processes")
CHILD = """
import subprocess, sys, pathlib
command = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
pathlib.Path({path!r}).write_text(str(child.pid))
"""


def gone(path: Path) -> bool:
    """Whether the process whose number stands in a file has ended."""
    for _ in range(100):
        try:
            pid = int(path.read_text())
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except ProcessLookupError:
            return True
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    return False


@posix
def test_what_the_file_started_ends_with_the_check(tmp_path: Path) -> None:
    number = tmp_path / "pid"
    assert tried(tmp_path, engines.PLAIN + CHILD.format(path=str(number))).right
    assert gone(number)


@posix
def test_what_the_file_started_ends_with_the_time(tmp_path: Path) -> None:
    number = tmp_path / "pid"
    with pytest.raises(ArgumentError, match="still being imported"):
        tried(tmp_path, CHILD.format(path=str(number)) + "while True: pass\n", timeout=2.0)
    assert gone(number)


@posix
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_what_the_file_started_ends_with_the_parent(how: str, tmp_path: Path) -> None:
    number, own = tmp_path / "pid", tmp_path / "own"
    text = CHILD.format(path=str(number)) + f"import os\npathlib.Path({str(own)!r}).write_text(str(os.getpid()))\n"
    (tmp_path / "engine.py").write_text(text + "while True: pass\n")
    command = [sys.executable, "-m", "wengert", "check", "engine.py", "--timeout", "60"]
    parent = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(400):
            if own.exists() and own.read_text():
                break
            time.sleep(0.05)
        parent.send_signal(getattr(signal, how))
        parent.wait(20)
        assert gone(own)
        assert gone(number)
    finally:
        parent.kill()


@posix
def test_a_copy_of_the_process_does_not_answer_too(tmp_path: Path) -> None:
    assert tried(tmp_path, engines.PLAIN + "\n\nimport os\nos.fork()\n").score == (33, 33)
