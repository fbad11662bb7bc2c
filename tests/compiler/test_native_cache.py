"""Machine code on disk: found again, and never where it is damaged, another machine's, half written, or where somebody
else may have written it.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.apps import cli

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
    assert made._server.latest().kernel.code is not None
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


def test_code_under_the_name_of_another_program_is_not_run(made: list[str], tmp_path: Path) -> None:
    first = result()
    (file,) = files(tmp_path)
    other = wengert.compile(lambda x: w * x * x, backend="native")
    other.mean([1.0, 2.0, 3.0])
    (second,) = set(files(tmp_path)) - {file}
    file.write_bytes(second.read_bytes())
    assert result() == first
    assert len(made) == 3


def test_another_machine_or_version_compiles_its_own(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result()
    monkeypatch.setattr(native, "description", lambda: "another instruction set")
    result()
    assert len(made) == len(files(tmp_path)) == 2


def test_an_operation_of_the_users_may_change(made: list[str], tmp_path: Path) -> None:
    """What its rules compute is part of the program: another one by its name is another program."""
    for factor in (2.0, 3.0):
        scaled = wengert.op(
            "scaled_native", value=lambda x, k=factor: x * k, partials=lambda out, x, k=factor: k, arity=1
        )
        compiled = wengert.compile(lambda x: scaled(w * x), backend="native")  # noqa: B023  (called at once)
        assert compiled.mean([1.0, 3.0]).data == pytest.approx(factor)
        assert compiled._server.latest().kernel.code is not None
    assert len(made) == len(files(tmp_path)) == 2


def test_without_a_folder_nothing_is_kept(made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in ("", "off", "/dev/null/no/such/folder"):
        monkeypatch.setenv("WENGERT_CACHE", setting)
        result()
    assert len(made) == 3
    monkeypatch.delenv("WENGERT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "wengert"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # there is no home folder
    assert cache.cache_folder() is None


# -- who may have written it ------------------------------------------------------------------------------------------

on_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no owners, modes and pipes that a file could have")


def made_foreign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file or folder to somebody else; who may not do that is somebody else from now on."""
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    else:
        os.chown(path, 65534, 65534)


def made_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)


def made_link(path: Path) -> None:
    os.rename(path, path.with_name("elsewhere"))
    os.symlink(path.with_name("elsewhere"), path)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the user was told of, nothing so far."""
    monkeypatch.setattr(cache, "_warned", set())
    return cache._warned


@on_posix
@pytest.mark.parametrize(
    ("folder", "why", "what"),
    [
        ("a file", "is no folder", "name a folder of your own in WENGERT_CACHE"),
        ("a pipe", "is no folder", "name a folder of your own in WENGERT_CACHE"),
        ("a link", "is a link", "name a folder of your own in WENGERT_CACHE"),
        ("foreign", "belongs to somebody else", "name a folder of your own in WENGERT_CACHE"),
        ("of the group", "can be written by others", "chmod go-w .*?cache"),
        ("of all", "can be written by others", "chmod go-w .*?cache"),
    ],
)
def test_a_folder_that_others_may_write_to(
    made: list[str],
    told: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    why: str,
    what: str,
) -> None:
    """It is not used, neither read nor written; that is said once, and by the commands that show it."""
    where = tmp_path / "cache"
    first = result()
    content = [(file.name, file.read_bytes()) for file in files(tmp_path)]
    if folder == "a file":
        shutil.rmtree(where)
        where.write_text("")
    elif folder == "a pipe":
        shutil.rmtree(where)
        made_pipe(where)
    elif folder == "a link":
        made_link(where)
    elif folder == "foreign":
        made_foreign(where, monkeypatch)
    else:
        where.chmod(0o770 if folder == "of the group" else 0o707)
    with pytest.warns(UserWarning, match=f"not kept on disk: .*{why}.*{what}") as caught:
        assert result() == first
    assert len(caught) == 1
    assert result() == first  # a warning here would fail the test
    assert len(made) == 3
    if where.is_dir():
        assert [(file.name, file.read_bytes()) for file in files(tmp_path)] == content
    assert cli.main(["info"]) == cli.main(["cache"]) == cli.main(["cache", "clear"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert len(re.findall(rf"off: {where} {why}.*?{what}", printed)) == 3
    assert not where.is_dir() or len(files(tmp_path)) == 1


@on_posix
@pytest.mark.parametrize("file", ["a pipe", "a link", "a folder", "foreign", "of the group", "of all"])
def test_a_file_that_others_may_have_written(
    made: list[str], told: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """It is a miss, whatever its content; another one takes its place where that can be."""
    first = result()
    (path,) = files(tmp_path)
    mode, owner = path.stat().st_mode, path.stat().st_uid
    if file == "a pipe":
        made_pipe(path)
    elif file == "a link":
        made_link(path)
    elif file == "a folder":
        path.unlink()
        path.mkdir()
    elif file == "foreign" and not os.geteuid():
        made_foreign(path, monkeypatch)
    elif file == "foreign":  # only the file is: the folder is asked for first
        mine = os.geteuid()
        owners = iter([mine, mine + 1])
        monkeypatch.setattr(os, "geteuid", lambda: next(owners, mine))
    else:
        path.chmod(0o620 if file == "of the group" else 0o602)
    why = "no regular file" if file.startswith("a ") else "belongs to somebody else" if file == "foreign" else "others"
    with pytest.warns(UserWarning, match=f"not used: .*{why}.*wengert cache clear") as caught:
        assert result() == first
    assert len(caught) == 1
    assert len(made) == 2
    assert result() == first
    assert len(made) == (3 if file == "a folder" else 2)
    if file != "a folder":
        assert (path.lstat().st_mode, path.lstat().st_uid) == (mode, owner)


@on_posix
def test_a_file_that_is_exchanged_while_it_is_opened(
    made: list[str], told: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for by its name, a moment before, is not what is read."""
    first = result()
    (path,) = files(tmp_path)
    content, opened, exchanged = path.read_bytes(), os.open, []

    def exchange(name: Any, *rest: Any) -> int:
        if name == path:
            exchanged.pop()(path)
        return opened(name, *rest)

    def writable(path: Path) -> None:
        path.chmod(0o666)

    def pipe_of_others(path: Path) -> None:
        made_pipe(path)
        path.chmod(0o666)

    for way in (made_pipe, pipe_of_others, writable, made_link, Path.unlink):
        path.unlink()
        path.write_bytes(content)
        path.chmod(0o600)
        exchanged.append(way)
        told.clear()
        with monkeypatch.context() as during, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            during.setattr(os, "open", exchange)
            assert cache.load(path.stem) is None
        assert not exchanged
        assert len(caught) == (way not in (made_link, Path.unlink))  # these are not opened at all
    assert result() == first


def test_a_system_without_owners(made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows is: the folder is trusted, and used."""
    monkeypatch.delattr(os, "geteuid", raising=False)
    first = result()
    (tmp_path / "cache").chmod(0o777)
    assert result() == first
    assert len(made) == 1


# -- how much there is ------------------------------------------------------------------------------------------------


def name_of(number: int) -> str:
    return cache.digest(number.to_bytes(4, "little"))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of code, by a process that has written nothing yet."""
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_writes", itertools.count())
    return tmp_path / "cache"


def test_the_least_recently_used_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, size = 100_000, 10_000
    monkeypatch.setattr(cache, "LIMIT", limit)
    for number in range(cache.MEASURED):  # of which the first one was measured
        cache.save(name_of(number), bytes(size))
        os.utime(folder / f"{name_of(number)}.code", (number, number))
    foreign = [folder / "notes.txt", folder / name_of(0), folder / ".hidden.code", folder / f"{name_of(0)}.code.old"]
    for path in foreign:
        path.write_bytes(bytes(size))
        os.utime(path, (0, 0))
    abandoned = folder / f".{'0' * 32}.code"  # by a process that was killed
    abandoned.write_bytes(bytes(size))
    os.utime(abandoned, (0, 0))
    assert len([*folder.iterdir()]) == cache.MEASURED + 5
    for number in (3, 5):
        assert cache.load(name_of(number)) == bytes(size)
    cache.save(name_of(cache.MEASURED), b"the write after which it is measured")
    left = {path.name for path in folder.iterdir()} - {path.name for path in foreign}
    assert all(path.exists() for path in foreign)  # whoever put them there
    assert left == {f"{name_of(n)}.code" for n in (3, 5, *range(58, cache.MEASURED + 1))}
    assert sum([(folder / name).stat().st_size for name in left]) <= limit * 7 // 8
    for number in (3, 5, 63):
        assert cache.load(name_of(number)) == bytes(size)
    assert cache.load(name_of(57)) is None


def test_processes_that_write_once_measure_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins to count anywhere, so one of 64 measures; else many short ones would fill the folder."""
    monkeypatch.setattr(cache, "LIMIT", 5000)
    for number in range(2 * cache.MEASURED + 1):
        monkeypatch.setattr(cache, "_writes", itertools.count(37 * number % 256))
        cache.save(name_of(number), bytes(1000))
        os.utime(folder / f"{name_of(number)}.code", (number, number))
        assert len([*folder.iterdir()]) <= 5 + cache.MEASURED
    assert len([*folder.iterdir()]) <= 5
    assert cache.load(name_of(number)) == bytes(1000)


def test_a_file_that_goes_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may remove one at any moment: it is a miss, or gone already."""
    monkeypatch.setattr(cache, "LIMIT", 500)
    cache.save(name_of(0), bytes(1000))
    assert cache.load(name_of(0)) is None  # it alone was more than the limit
    scandir = os.scandir

    @contextmanager
    def late(where: Any) -> Any:
        with scandir(where) as entries:
            found = [*entries]
        for entry in found[::2]:
            os.unlink(entry.path)
        yield iter(found)

    for number in range(1, cache.MEASURED):
        cache.save(name_of(number), bytes(1000))
    monkeypatch.setattr(os, "scandir", late)
    cache.save(name_of(0), bytes(1000))
    monkeypatch.undo()
    assert [*folder.iterdir()] == []


MANY = """
import sys
from wengert.compiler.backends import cache

seed, count, cache.LIMIT = map(int, sys.argv[1:])
wrong = 0
for turn in range(count):
    name = cache.digest(bytes([turn * seed % 50]))
    found = cache.load(name)
    wrong += found not in (None, name.encode() * 40)
    cache.save(name, name.encode() * 40)
print(wrong)
"""


def test_processes_at_once(folder: Path) -> None:
    """They write, read and remove the same files: none finds half of one, none fails, and the folder stays small."""
    program = MANY.replace("seed, count", "cache.MEASURED = 4\nseed, count", 1)
    environment = {**os.environ, "WENGERT_CACHE": str(folder)}
    limit = 40_000
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(seed), "300", str(limit)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for seed in (1, 3, 7, 11)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.communicate(timeout=60) == ("0\n", "")
    finally:
        for process in processes:
            process.kill()
    sizes = [path.stat().st_size for path in folder.iterdir()]
    assert sum(sizes) <= limit + 4 * 4 * max(sizes)  # what each may write before it measures again


def test_the_commands_that_show_and_clear_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 0.0 MB in 0 files, from {folder}\n"
    for number in range(3):
        cache.save(name_of(number), bytes(1 << 20))
    (folder / "notes.txt").write_text("mine")
    for command in ("info", "cache"):
        assert cli.main([command]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert f"cache {folder}: 3.0 MB in 3 files, at most 512 MB" in printed
    assert cli.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 3.0 MB in 3 files, from {folder}\n"
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("setting", ["", "0", "off"])
def test_the_commands_where_it_is_off(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WENGERT_CACHE", setting)
    assert cli.main(["cache"]) == cli.main(["cache", "clear"]) == 0
    said = "off: WENGERT_CACHE says so\n"
    assert capsys.readouterr().out == f"cache    {said}nothing to remove: the cache is {said}"


# -- threads and processes --------------------------------------------------------------------------------------------


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
    assert [file.name for file in files(tmp_path)] == ["name.code"]


PROGRAM = """
import os, sys, threading, time
import wengert
from wengert import Value
from wengert._forks import no_fork
from wengert.compiler.backends.native import build

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
    with no_fork:
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
    assert loss._server.latest().forward_backward_code
    os._exit(0)
_, status = os.waitpid(pid, 0)
print("child", status)
thread.join()
print("parent", abs(max(results(loss)) - first) < 1e-12)
"""


WITH_THREADS = ("-W", "ignore:This process:DeprecationWarning")  # of a fork beside threads, which is what is tested


def run(program: str, tmp_path: Path) -> str:
    environment = {**os.environ, "WENGERT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *WITH_THREADS, "-c", PROGRAM + program],
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
