"""The command `wengert`, as a user runs it: what it prints, what it writes, its exit status."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import wengert
from wengert import checkpoint
from wengert.apps import cli, demo
from wengert.errors import ArgumentError
from wengert.nn import MLP

COMMAND = [sys.executable, "-m", "wengert"]
PLAIN = "import sys; sys.modules['matplotlib.figure'] = None; from wengert.apps import cli; sys.exit(cli.main())"
WITHOUT_MATPLOTLIB = [sys.executable, "-c", PLAIN]  # as where it is not installed, which draws within no time
WRITTEN = {"boundary", "graph", "loss", "weights"} | ({"layers", "network"} if find_spec("matplotlib") else set())
PLAINLY = WRITTEN - {"layers", "network"}
"""The files of a demo with points of the plane, without their endings; and those that have a form as text."""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=500, check=False)


# -- what it does -----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who tests something else than pictures: drawing them takes most of a demo's time."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


@pytest.mark.once
@pytest.mark.parametrize("command", [[], ["demo"], ["draw"], ["info"], ["cache"]])
def test_help_fits_a_terminal_of_80_columns(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main([*command, "--help"])
    out = capsys.readouterr().out
    assert out.startswith("usage: wengert")
    assert [line for line in out.splitlines() if len(line) > 80] == []


@pytest.mark.once  # what trains is the array program
@pytest.mark.slow
@pytest.mark.plot
def test_the_main_job(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    done = run("demo", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (accuracy,) = re.findall(r"test accuracy ([\d.]+) %", done.stdout)
    assert float(accuracy) >= 97.0
    engine = "compiled" if wengert.engine.compiled else "interpreted"
    assert f"the engine runs {engine}" in done.stdout
    assert re.search(r"^training takes about \d+ s", done.stdout, re.MULTILINE)
    assert str(tmp_path) in done.stdout
    pictures = {f"{name}.png" for name in ("confusion", "digits", "layers", "loss", "network")}
    assert {*os.listdir(tmp_path)} == pictures | {"graph.svg", "weights.safetensors"}
    assert "loss" in done.stderr
    assert "accuracy" in done.stderr
    (recipe,) = re.findall(r"^to load the weights:\n((?:    .*\n)+)", done.stdout, re.MULTILINE)
    recipe = dedent(recipe)
    names = {"MLP": MLP, "checkpoint": checkpoint}
    exec(recipe, names)  # as a user would paste it
    model: Any = names["model"]
    X, Y = wengert.data.digits()
    assert wengert.training.accuracy(model, X, Y) > 0.97


@pytest.mark.slow
@pytest.mark.once  # what trains is the array program
@pytest.mark.parametrize(("name", "least"), [("xor", 100.0), pytest.param("moons", 98.0, marks=pytest.mark.nightly)])
def test_the_small_data_sets_are_learnt(name: str, least: float, tmp_path: Path) -> None:
    done = run("demo", name, "--out", tmp_path, "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (accuracy,) = re.findall(r"^accuracy ([\d.]+) %", done.stdout, re.MULTILINE)
    assert float(accuracy) >= least
    (drawn,) = re.findall(r"^    graph\.svg +(.*)$", done.stdout, re.MULTILINE)
    none = re.fullmatch(r"one of \d+ examples; all losses and gradients are 0", drawn)
    assert none or float(re.findall(r"^the example with the largest loss, (\S+), of \d+$", drawn)[0]) > 0.0
    assert {Path(f).stem for f in os.listdir(tmp_path)} == WRITTEN


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.once  # what trains is the array program
def test_the_spiral_is_learnt(tmp_path: Path) -> None:
    done = run("demo", "spiral", "--out", tmp_path, "--quiet")
    (accuracy,) = re.findall(r"^accuracy ([\d.]+) %", done.stdout, re.MULTILINE)
    assert float(accuracy) >= 99.0


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.once  # what trains is the array program
def test_a_seed_decides_every_bit_of_the_weights(tmp_path: Path) -> None:
    for folder, seed in (("a", 5), ("b", 5), ("c", 6)):
        environment = {**os.environ, "PYTHONHASHSEED": str(len(folder) + seed)}
        command = [*COMMAND, "demo", "spiral", "--out", str(tmp_path / folder), "--epochs", "2", "--seed", str(seed)]
        subprocess.run(command, env=environment, capture_output=True, check=True)
    weights = {folder: (tmp_path / folder / "weights.safetensors").read_bytes() for folder in "abc"}
    assert weights["a"] == weights["b"] != weights["c"]


@pytest.mark.once  # what trains is the array program
@pytest.mark.slow
@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_the_pictures_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--epochs", "1", "--batch-size", "400", "--out", str(tmp_path), "--quiet"]) == 0
    assert "pip install matplotlib" in capsys.readouterr().out
    assert sorted(os.listdir(tmp_path)) == [
        "confusion.txt",
        "digits.txt",
        "graph.svg",
        "loss.txt",
        "weights.safetensors",
    ]
    assert (tmp_path / "confusion.txt").read_text().startswith("truth    read as")
    assert (tmp_path / "digits.txt").read_text().count("\n\n") == 59
    assert cli.main(["demo", "xor", "--epochs", "3", "--out", str(tmp_path), "--quiet"]) == 0
    assert set((tmp_path / "boundary.txt").read_text()) <= set("abAB\n")


def test_a_demo_of_no_epochs_is_refused(tmp_path: Path) -> None:
    for none in ({"epochs": 0}, {"batch_size": 0}):
        with pytest.raises(ArgumentError, match="is 0; expected an int >= 1"):
            demo.run("xor", str(tmp_path), seed=0, quiet=True, **none)


@pytest.mark.slow
@pytest.mark.once  # what trains is the array program
@pytest.mark.usefixtures("no_matplotlib")
def test_the_program_is_said_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numpy = pytest.importorskip("numpy")
    assert cli.main(["demo", "spiral", "--epochs", "1", "--quiet", "--out", str(tmp_path)]) == 0
    line = r"[\d,]+ scalar operations became \d+ array operations.*?: wengert demo spiral --program shows them"
    assert re.search(line, " ".join(capsys.readouterr().out.split()))
    assert cli.main(["demo", "spiral", "--program", "--out", str(tmp_path / "none")]) == 0
    assert not (tmp_path / "none").exists()
    space: dict[str, Any] = {}
    exec(capsys.readouterr().out, space)
    model = MLP(2, [16, 16, 3], activation="tanh", rng=random.Random(1))
    X, Y = demo.SETTINGS["spiral"].load()
    parameters = dict(zip(("W1", "W2", "W3", "b1", "b2", "b3"), _layers(numpy, model), strict=True))
    value, slopes = space["cross_entropy_and_gradients"](numpy.array(X), numpy.array(Y), **parameters)
    loss = wengert.mean([wengert.losses.cross_entropy(model(x), y) for x, y in zip(X, Y, strict=True)])
    loss.backward()
    assert value == pytest.approx(loss.data, rel=1e-12)
    assert sum(map(numpy.sum, slopes)) == pytest.approx(sum(p.grad for p in model.parameters()), rel=1e-9)


def _layers(numpy: Any, model: MLP) -> list[Any]:
    """The matrices of a network, then its vectors."""
    layers = [layer.neurons for layer in model.layers]
    matrices = [numpy.array([[w.data for w in neuron.w] for neuron in neurons]) for neurons in layers]
    return matrices + [numpy.array([neuron.b.data for neuron in neurons]) for neurons in layers]


def test_without_numpy_the_engine_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # it needs NumPy
    assert cli.main(["demo", "xor", "--epochs", "3", "--quiet", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    why = 'each example is computed by the engine: this needs numpy: pip install numpy (the extra "array")'
    assert why in " ".join(out.split())
    assert err == ""
    assert cli.main(["demo", "--program"]) == 2
    assert capsys.readouterr().err == 'wengert demo: this needs numpy: pip install numpy (the extra "array")\n'


@pytest.mark.slow
@pytest.mark.once  # what trains is the array program
@pytest.mark.usefixtures("no_matplotlib")
def test_what_is_asked_for_is_what_is_used(tmp_path: Path) -> None:
    def weights(*more: object) -> bytes:
        assert cli.main([*map(str, ("demo", "xor", "--out", tmp_path, "--epochs", 3, "--quiet", *more))]) == 0
        return (tmp_path / "weights.safetensors").read_bytes()

    outcomes = {weights(), weights("--epochs", 4), weights("--lr", 0.3), weights("--batch-size", 2)}
    assert len(outcomes) == 4


def test_info_says_which_engine_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert f"wengert {wengert.__version__}" in out
    assert ("compiled (" if wengert.engine.compiled else "interpreted (") in out
    missing = r'not installed: pip install numpy \(the extra "array"\)'
    try:
        expected = re.escape(version("numpy"))
    except PackageNotFoundError:
        expected = missing
    assert re.search(rf"^numpy +{expected}$", out, re.MULTILINE)


def test_without_a_command_it_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^    (\w+) ", out, re.MULTILINE) == ["demo", "draw", "info", "cache", "check", "course"]
    assert "examples:\n  wengert demo " in out


# -- what other distributions add ------------------------------------------------------------------------------------

INSTALL = 'this needs the course: in a clone of the repository, pip install "./course[all]"'


@pytest.mark.parametrize(
    "arguments", [["course"], ["course", "here", "--solutions"], ["check", "engine.py", "--step", "4"], ["check", "-h"]]
)
def test_what_is_in_the_course_says_what_to_install(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: [])
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr() == ("", f"wengert {arguments[0]}: {INSTALL}\n")
    assert cli.main([]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(INSTALL) == 2


FOREIGN = """
from wengert.errors import ArgumentError

def add(commands):
    parser = commands.add_parser("greet", help="greet somebody")
    parser.add_argument("whom")
    parser.set_defaults(run=greet)

def greet(given):
    if given.whom == "nobody":
        raise ArgumentError("nobody is there")
    print("hello,", given.whom)
    return 3
"""


def test_another_distribution_adds_a_command_and_a_module(tmp_path: Path) -> None:
    """As pip installs it: a module, and beside it its entry points."""
    (tmp_path / "foreign.py").write_text(FOREIGN)
    about = tmp_path / "foreign-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[wengert.commands]\ngreet = foreign:add\n[wengert.packages]\nparlour = foreign\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run_there(*line: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, *line], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    assert run_there("-m", "wengert", "greet", "Ada") == (3, "hello, Ada\n", "")
    assert run_there("-m", "wengert", "greet", "nobody") == (2, "", "wengert greet: nobody is there\n")
    assert "greet somebody" in run_there("-m", "wengert", "--help")[1]
    program = "from wengert import parlour; import foreign, wengert; print(foreign is parlour is wengert.parlour)"
    assert run_there("-c", program) == (0, "True\n", "")


def test_without_the_course_its_module_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wengert, "_packages", lambda name: [])
    monkeypatch.delitem(vars(wengert), "course", raising=False)
    with pytest.raises(ImportError, match=re.escape(INSTALL)):
        exec("from wengert import course")
    with pytest.raises(AttributeError, match=re.escape(f"module 'wengert' has no attribute 'course': {INSTALL}")):
        _ = wengert.course


def test_version() -> None:
    assert run("--version").stdout == f"wengert {wengert.__version__}\n"


# -- where it prints --------------------------------------------------------------------------------------------------


def buffered(**more: str) -> dict[str, str]:
    """The environment, with what is printed into a pipe held back, as it is on most machines."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"} | more


@pytest.mark.skipif(os.name == "nt", reason="Windows tells of a closed pipe in another way")
@pytest.mark.parametrize("arguments", [["info"], ["demo", "xor", "--epochs", "1", "--quiet"]], ids=["info", "demo"])
def test_nobody_reads_on(arguments: list[str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*WITHOUT_MATPLOTLIB, *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, text=True, env=buffered(), check=False
    )
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", [["info"], ["demo", "xor", "--epochs", "1", "--quiet"]], ids=["info", "demo"])
def test_what_it_says_cannot_be_written(arguments: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*WITHOUT_MATPLOTLIB, *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert re.fullmatch(r"wengert \w+: cannot write the output: No space left on device\n", done.stderr)


@pytest.mark.once  # what trains is the array program
@pytest.mark.slow
@pytest.mark.usefixtures("no_matplotlib")
def test_without_an_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it when started with `>&-`, or without a console
    assert cli.main(["demo", "xor", "--epochs", "1", "--quiet", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "weights.safetensors").is_file()


@pytest.mark.once  # what trains is the array program
def test_a_folder_whose_name_cannot_be_printed(tmp_path: Path) -> None:
    command = [*WITHOUT_MATPLOTLIB, "demo", "xor", "--epochs", "1", "--quiet", "--out", str(tmp_path / "\u03c0")]
    done = subprocess.run(command, capture_output=True, env=buffered(PYTHONIOENCODING="ascii"), check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\u03c0" in done.stdout
    assert (tmp_path / "\u03c0" / "weights.safetensors").is_file()


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.mark.once  # what trains is the array program
@pytest.mark.slow
@pytest.mark.usefixtures("sigint")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT that can be sent to one process")
def test_ctrl_c_leaves_a_usable_result(tmp_path: Path) -> None:
    command = [*WITHOUT_MATPLOTLIB, "demo", "spiral", "--epochs", "100000", "--out", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=buffered()) as process:
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        assert process.stdout is not None
        assert any(line.startswith("training takes about") for line in process.stdout), "not said before the training"
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        watchdog.cancel()
    assert process.returncode == 130
    assert "interrupted after" in out
    assert "Traceback" not in err
    checkpoint.load(MLP(2, [16, 16, 3]), tmp_path / "weights.safetensors")
    assert {Path(f).stem for f in os.listdir(tmp_path)} == PLAINLY


def test_ctrl_c_after_the_training_costs_pictures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> list[object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "predict", interrupted)
    assert cli.main(["demo", "xor", "--epochs", "1", "--quiet", "--out", str(tmp_path)]) == 130
    checkpoint.load(MLP(2, [4, 4, 1]), tmp_path / "weights.safetensors")


def test_more_epochs_than_a_float_can_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **more: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "fit", interrupted)
    assert cli.main(["demo", "xor", "--epochs", "9" * 400, "--quiet", "--out", str(tmp_path)]) == 130


def test_ctrl_c_before_the_training(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", interrupted)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "wengert demo: interrupted\n"


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "letters"], "invalid choice: 'letters' .*digits.*moons.*spiral.*xor"),
        (["demo", "--epochs", "0"], "argument --epochs: '0' is not an int >= 1"),
        (["demo", "--epochs", "many"], "'many' is not an int"),
        (["demo", "--epochs", "9" * 5000], "9' is not an int"),  # more digits than Python reads
        (["demo", "--epochs", "2.5"], r"'2\.5' is not an int"),
        (["demo", "--batch-size", "-1"], "'-1'|expected one argument"),
        (["demo", "--lr", "nan"], "argument --lr: 'nan' is not a positive number"),
        (["demo", "--lr", "fast"], "'fast' is not a positive number"),
        (["demo", "--lr", "0"], "'0' is not a positive number"),
        (["demo", "--seed", "x"], "argument --seed: 'x' is not an int"),
        (["demo", "--out"], "expected one argument"),
        (["demo", "--out", ""], "argument --out: '' is not the name of a file or folder"),
        (["demo", "--colour=red"], "^wengert demo: unrecognized arguments: --colour=red$"),
        (["train"], "^wengert: argument COMMAND: invalid choice: 'train' .*demo.*draw.*info.*check"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(words, err)
    assert err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_found_out_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"wengert demo: cannot write to the folder .*file: \w.*\n", err)


def test_a_folder_that_no_file_system_can_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--out", "nul\0"]) == 2
    assert "embedded null" in capsys.readouterr().err


@pytest.mark.once  # what trains is the array program
@pytest.mark.slow
@pytest.mark.usefixtures("no_matplotlib")
def test_what_else_lies_in_the_folder_stays(tmp_path: Path) -> None:
    for name in (".writable", "notes.txt"):
        (tmp_path / name).write_text("mine")
    assert cli.main(["demo", "xor", "--epochs", "1", "--quiet", "--out", str(tmp_path)]) == 0
    stems = {Path(name).stem for name in os.listdir(tmp_path)}
    assert stems == {".writable", "notes"} | PLAINLY
    assert {(tmp_path / name).read_text() for name in (".writable", "notes.txt")} == {"mine"}


@pytest.mark.once  # what trains is the array program
@pytest.mark.usefixtures("no_matplotlib")
def test_weights_that_cannot_be_written_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "weights.safetensors").mkdir()
    assert cli.main(["demo", "xor", "--epochs", "1", "--quiet", "--out", str(tmp_path)]) == 2
    assert re.search(r"^wengert demo: cannot write .*weights\.safetensors", capsys.readouterr().err)


@pytest.mark.once  # what trains is the array program
@pytest.mark.usefixtures("no_matplotlib")
def test_a_picture_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("loss.png", "loss.txt"):
        (tmp_path / name).mkdir()
    assert cli.main(["demo", "xor", "--epochs", "1", "--quiet", "--out", str(tmp_path)]) == 2
    assert re.search(r"wengert demo: cannot write .*loss\.(png|txt)", capsys.readouterr().err)


@pytest.mark.once  # what trains is the array program
@pytest.mark.slow
@pytest.mark.usefixtures("no_matplotlib")
def test_a_rate_that_diverges_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(["demo", "moons", "--lr", "1e200", "--epochs", "5", "--quiet", "--out", str(tmp_path)])
    assert status == 0
    assert "Try a learning rate below" in capsys.readouterr().err
