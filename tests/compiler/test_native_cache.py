"""Machine code on disk: found again, and never where it is damaged, another machine's, or half written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")
pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")

from wengert.compiler.backends import cache  # noqa: E402
from wengert.compiler.backends.native import build  # noqa: E402
from wengert.compiler.backends.native import build as native  # noqa: E402

pytestmark = pytest.mark.once  # what is kept is machine code

w = Value(0.5)


def loss(x: Any) -> Any:
    return (w * x).tanh() + x * x


def result() -> float:
    """What machine code gives, made or found."""
    made = wengert.compile(loss, backend="native")
    got = made.mean([1.0, 2.0, 3.0]).data
    assert made._runtime.latest().kernel.code is not None
    return float(got)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The texts that were compiled, with a cache of the test's own."""
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "cache"))
    texts: list[str] = []
    compiled = build.compiled
    monkeypatch.setattr(build, "compiled", lambda text: (texts.append(text), compiled(text))[1])
    return texts


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").iterdir())


def test_a_program_is_compiled_once(made: list[str], tmp_path: Path) -> None:
    first = result()
    assert result() == first
    assert len(made) == len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_what_is_damaged_is_compiled_again(made: list[str], tmp_path: Path, damage: bytes | None) -> None:
    first = result()
    (file,) = files(tmp_path)
    content = file.read_bytes()
    changed = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
    file.write_bytes(changed if damage is None else content[: len(content) // 2] if damage else damage)
    assert result() == first
    assert len(made) == 2
    assert file.read_bytes() == content  # and is whole again
    assert result() == first
    assert len(made) == 2


def test_another_machine_or_version_compiles_its_own(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result()
    monkeypatch.setattr(native, "description", lambda: "another instruction set")
    result()
    assert len(made) == len(files(tmp_path)) == 2


def test_an_operation_of_the_users_may_change(made: list[str], tmp_path: Path) -> None:
    """Its rule is no part of the program, and the next process may have another one by its name."""
    for factor in (2.0, 3.0):
        scaled = wengert.op(
            "scaled_native", value=lambda x, k=factor: x * k, partials=lambda out, x, k=factor: k, arity=1
        )
        compiled = wengert.compile(lambda x: scaled(w * x), backend="native")  # noqa: B023  (called at once)
        assert compiled.mean([1.0, 3.0]).data == pytest.approx(factor)
        assert compiled._runtime.latest().kernel.code is not None
    assert len(made) == 2
    assert not (tmp_path / "cache").exists()


def test_without_a_folder_nothing_is_kept(made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in ("", "off", "/dev/null/no/such/folder"):
        monkeypatch.setenv("WENGERT_CACHE", setting)
        result()
    assert len(made) == 3
    monkeypatch.delenv("WENGERT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "wengert"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert cache.cache_folder() is None


def test_a_folder_that_cannot_be_written(made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "file"))
    result()
    assert len(made) == 1


def test_writers_at_once_leave_one_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "cache"))
    contents = [bytes([k]) * 100_000 for k in range(6)]
    seen: list[bytes | None] = []

    def write(data: bytes) -> None:
        for _ in range(20):
            cache.save("name", data)
            seen.append(cache.load("name"))

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) <= set(contents)
    assert [file.name for file in files(tmp_path)] == ["name"]


PROGRAM = """
import os, sys, threading, time
import wengert
from wengert import Value
from wengert.compiler.backends.native import build, machine

w = Value(0.5)
inside, gate = threading.Event(), threading.Event()

@wengert.compile(backend="native")
def loss(x):
    return (w * x).tanh() + x * x

def results(f):
    return [f.mean([1.0, 2.0, 3.0]).data for _ in range(12)]
"""

FORKS = """
compiled = build.compiled

def slow(text):
    with machine._alone:
        inside.set()
        gate.wait(20)
        return compiled(text)

build.compiled = slow
first = loss.function(1.0).data / 3 + loss.function(2.0).data / 3 + loss.function(3.0).data / 3
thread = threading.Thread(target=lambda: loss.mean([1.0, 2.0, 3.0]))
thread.start()
inside.wait()
threading.Timer(0.5, gate.set).start()
pid = os.fork()
if not pid:
    build.compiled = compiled
    assert gate.is_set()
    assert abs(max(results(loss)) - first) < 1e-12
    assert loss._runtime.latest().both_code
    os._exit(0)
_, status = os.waitpid(pid, 0)
print("child", status)
thread.join()
print("parent", abs(max(results(loss)) - first) < 1e-12)
"""


def run(program: str, tmp_path: Path) -> str:
    environment = {**os.environ, "WENGERT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PROGRAM + program],
        capture_output=True, text=True, timeout=120, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_code_is_made(tmp_path: Path) -> None:
    """The fork waits until LLVM is at rest; then the child makes its own code."""
    assert run(FORKS, tmp_path) == "child 0\nparent True\n"


def test_the_interpreter_ends_while_code_is_made(tmp_path: Path) -> None:
    assert run("loss.mean([1.0, 2.0, 3.0])\nprint('end')\n", tmp_path) == "end\n"


def test_processes_share_the_folder(tmp_path: Path) -> None:
    program = "print(wengert.compile(loss.function, backend='native').mean([1.0, 2.0, 3.0]).data)\n"
    first = run(program, tmp_path)
    assert run(program, tmp_path) == first
    assert len(files(tmp_path)) == 1
