"""What the commands show in a terminal: colours where they are wanted, lines that fit, pictures of signs."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from wengert.apps import terminal
from wengert.view import text

pytestmark = pytest.mark.once  # nothing is computed
MARKS = {r"\bok\b": "right", r"\bwrong\b": "wrong", r"\bnot yet\b": "look"}
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


class Screen(io.StringIO):
    """A terminal, as far as it is asked."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    pytest.importorskip("rich", reason="needs rich")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    made = Screen()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdout=made))  # pytest puts its own back
    return made


def test_colours_are_where_they_are_wanted(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.paint("ok", "right") == "\x1b[32mok\x1b[0m"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "rich.console", None)
        assert terminal.paint("ok", "right") == "ok", "Rich is not installed"
    assert terminal.paint("ok", "right", io.StringIO()) == "ok", "a file is no terminal"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.paint("ok", "right") == "ok"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert terminal.paint("ok", "right") == "ok", "who wants none gets none"
    monkeypatch.delenv("NO_COLOR")
    assert terminal.paint("ok", "right", io.StringIO()) == "\x1b[32mok\x1b[0m"
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.paint("ok", "right") == "ok"


def test_verdicts_have_their_colours_and_no_line_is_too_wide(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = (
        "  a + b   ok      ok\n  tanh    ok      wrong     "
        + "the derivative is written 1 - t: the square is missing " * 2
    )
    shown = terminal.shown(f"{told}\n  exp     not yet", MARKS)
    assert shown.count("\x1b[32mok\x1b[0m") == 3
    assert "\x1b[31mwrong\x1b[0m" in shown
    assert "\x1b[33mnot yet\x1b[0m" in shown
    plain = ESCAPE.sub("", shown)
    assert max(map(len, plain.splitlines())) <= 60
    assert plain.split() == f"{told}\n  exp     not yet".split()
    assert all(line.startswith("  ") for line in plain.splitlines())
    assert ESCAPE.sub("", terminal.shown(told, MARKS, wrapped=True)) == told, "nothing is wrapped twice"
    assert "\x1b" not in terminal.shown("written to wrong/ok/:"), "a name is no verdict"


def test_what_goes_into_a_file_is_as_it_was(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdout=io.StringIO()))
    line = "word " * 60
    assert terminal.width() is None
    assert terminal.shown(line) == line
    assert not terminal.can_show()


def test_pictures(screen: Screen) -> None:
    assert terminal.curve([4.0, 2.0, 1.0, 0.0]) == "█▄▂▁"
    assert len(terminal.curve(list(range(1000)), most=30)) == 30
    ink = [1.0] * 32 + [0.0] * 32
    drawn = terminal.blocks([ink, ink], [1, 7], [1, 2]).splitlines()
    assert drawn[:2] == ["\x1b[32m" + "█" * 8 + "\x1b[0m  \x1b[31m" + "█" * 8 + "\x1b[0m"] * 2
    assert [ESCAPE.sub("", line).strip() for line in drawn[2:4]] == ["", ""]
    assert drawn[4] == "\x1b[32m1       \x1b[0m  \x1b[31m2, not 7\x1b[0m"
    letters = text.regions(lambda points: [int(x > 0) for x, _ in points], [[-1.0, 0.0], [1.0, 0.0]], [0, 1], width=8)
    plane = terminal.plane(letters)
    assert plane.count("●") == 2
    assert {*re.findall(r"48;5;(\d+)", plane)} == {"166", "25"}
    assert [len(ESCAPE.sub("", line)) for line in plane.splitlines()] == [8, 8, 8]


def _read(terminal: int) -> bytes:
    """What has come there; nothing if whoever wrote has gone."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of its own is POSIX's")
@pytest.mark.parametrize(("data", "sign"), [pytest.param("digits", "▀", marks=pytest.mark.nightly), ("xor", "●")])
def test_the_demo_in_a_terminal_of_80_columns(tmp_path: Path, data: str, sign: str) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    own, other = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    program = "import sys; sys.modules['matplotlib.figure'] = None; from wengert.apps import cli; sys.exit(cli.main())"
    program = program if data == "xor" else "from wengert.apps import cli; cli.main()"  # pictures take seconds
    command = [sys.executable, "-c", program, "demo", data, "--epochs", "2", "--quiet", "--out", "o/wrong"]
    written = b""
    with subprocess.Popen(command, stdout=other, stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path) as process:
        os.close(other)
        while part := _read(own):
            written += part
    os.close(own)
    assert process.returncode == 0
    shown = written.decode()
    assert sign in shown
    assert re.search("^loss  [▁▂▃▄▅▆▇█]+  ", shown, re.MULTILINE)
    lines = ESCAPE.sub("", shown).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert re.fullmatch(r"look at o/wrong/(digits|boundary)\.(png|txt) first", lines[-1])
    assert "\x1b[31mwrong" not in shown, "the name of a folder"
    assert re.search(r"accuracy \x1b\[1m[\d.]+ %\x1b\[0m", shown), "a number is right or wrong to no degree"
