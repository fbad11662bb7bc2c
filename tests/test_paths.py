"""Paths of every kind, to what opens a user's file: it is read or written, or one line says why not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from wengert import Value, checkpoint, draw, steps
from wengert._files import opened, to_write
from wengert.errors import CheckpointError
from wengert.nn import Neuron

pytestmark = pytest.mark.once  # what is opened are files, not an engine

if os.name != "posix":
    pytest.skip("pipes and devices are tried where systems have them as files", allow_module_level=True)

TO_READ = [
    "pipe",
    "socket",
    "/dev/zero",
    "/dev/tty",
    "folder",
    "huge",
    "forbidden",
    "broken",
    "loop",
    "empty",
    "binary",
]
TO_READ += ["latin1", "missing", "under\nline", "é€"]
TO_WRITE = ["pipe", "socket", "folder", "broken_folder/x", "loop", "forbidden_folder/x", "/dev/full"]
SECONDS = 20  # of a process on a busy machine: what hangs takes longer, and what reads 3 GB has no memory for it


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """A folder with a thing of each kind."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(3 << 30)
    (tmp_path / "forbidden").write_text("x = 1\n")
    (tmp_path / "forbidden").chmod(0)
    (tmp_path / "forbidden_folder").mkdir(mode=0o500)
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 8)
    (tmp_path / "latin1").write_bytes("x = 'é'\n".encode("latin1"))
    (tmp_path / "under\nline").write_text("x = (\n")
    (tmp_path / "é€").write_text("x = (\n")
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(tmp_path)  # a socket's path is short
        listening.bind("socket")
        os.chdir(before)
        yield tmp_path


def run(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); "
    program = f"{limited}import sys; from wengert.apps import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, cwd=here, capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        errors="replace",
    )  # fmt: skip


def is_told(done: subprocess.CompletedProcess[str]) -> None:
    said = done.stdout + done.stderr
    assert done.returncode in (1, 2), said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) <= 2, said


@pytest.mark.parametrize("name", TO_READ)
def test_check_of_any_path(name: str, here: Path) -> None:
    if find_spec("wengert_course") is None:
        pytest.skip("the command check is of the course")
    is_told(run(here, "check", name))


@pytest.mark.parametrize("way", [["-o"], ["--html"], ["--steps", "--html"]], ids=" ".join)
@pytest.mark.parametrize("name", TO_WRITE)
def test_draw_to_any_path(name: str, way: list[str], here: Path) -> None:
    suffix = ".svg" if way == ["-o"] else ".html"
    if (here / name).exists() and not name.startswith("/dev"):
        (here / f"{name}{suffix}").symlink_to(here / name)
    elif name == "/dev/full":
        (here / "full.svg").symlink_to(name)
        (here / "full.html").symlink_to(name)
        name = "full"
    if name == "forbidden_folder/x" and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    target = name if name == "loop" and suffix == ".html" and way == ["--steps", "--html"] else f"{name}{suffix}"
    if name == "loop":
        (here / f"loop{suffix}").symlink_to(here / "loop")
    is_told(run(here, "draw", "x*2", "x=3", *way, target))


@pytest.mark.parametrize("name", ["pipe", "socket", "empty", "loop", "/dev/null"])
@pytest.mark.parametrize("command", ["demo", "course"])
def test_a_folder_that_is_none(name: str, command: str, here: Path) -> None:
    if command == "course" and find_spec("wengert_course") is None:
        pytest.skip("the command course is of the course")
    arguments = ["course", name] if command == "course" else ["demo", "moons", "--epochs", "1", "--out", name]
    is_told(run(here, *arguments))


@pytest.mark.parametrize("name", [*TO_READ, "nul\0byte", ""])
def test_checkpoints_of_any_path(name: str, here: Path) -> None:
    model = Neuron(2)
    before = [p.data for p in model.parameters()]
    with pytest.raises(CheckpointError):
        checkpoint.load(model, here / name if name else name)
    assert [p.data for p in model.parameters()] == before


@pytest.mark.parametrize("name", TO_WRITE[:3])
def test_saving_to_any_path(name: str, here: Path) -> None:
    with pytest.raises(CheckpointError):
        checkpoint.save(Neuron(2), here / name)
    y = Value(2.0) * 3.0
    for picture in (draw(y), steps(y)):
        (here / f"{name}.html").unlink(missing_ok=True)
        (here / f"{name}.html").symlink_to(here / name)
        with pytest.raises(OSError, match=r"\S"):
            picture.save(here / f"{name}.html")


def test_a_pipe_with_a_reader_and_devices_are_written_to(here: Path) -> None:
    """As by ``-o /dev/stdout``, or to another process."""
    reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with to_write(here / "pipe") as file:
        file.write(b"a picture")
    assert os.read(reader, 100) == b"a picture"
    os.close(reader)
    with to_write("/dev/null") as file:
        file.write(b"gone")


def test_what_is_read_as_a_whole_has_a_size(here: Path) -> None:
    with pytest.raises(ValueError, match="it has 3,072 MiB; expected at most 16"):
        opened(str(here / "huge"))
    with opened(str(here / "huge"), largest=None) as file:
        assert file.read(4) == bytes(4)


def test_check_of_a_folder_with_everything() -> None:
    if find_spec("wengert_course") is None:
        pytest.skip("the command check is of the course")
    done = run(Path("/"), "check", "/")
    is_told(done)
