"""The process that tries a file: it holds nothing of ours, and nothing that it has started is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import engines
from tests.checked import tried
from wengert.errors import ArgumentError
from wengert_course.checks import probe


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
