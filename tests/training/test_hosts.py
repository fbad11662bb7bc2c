"""`fit` by two processes that talk by the loopback: the same losses as by one, checkpoints, and a process that dies."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("jax", reason="needs jax")

from tests.training.one_host import HEARTBEAT, train
from wengert.errors import ArgumentError
from wengert.training.hosts import Hosts, is_first

pytestmark = [pytest.mark.jax, pytest.mark.once]
nightly = pytest.mark.nightly  # each starts JAX in two processes
ROOT = Path(__file__).parents[2]


def start(what: str, folder: Path, count: int = 2) -> list[subprocess.Popen[bytes]]:
    """So many processes, which find one another, of `one_host` or a program in a folder; what they say is in files."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=1"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    address, processes = f"127.0.0.1:{port}", []
    for number in range(count):
        with open(folder / f"out{number}", "w") as out, open(folder / f"errors{number}", "w") as errors:
            given = [address, str(count), str(number)]
            if what == "train.py":
                command, at = [what, *given], folder
            else:
                command, at = ["-m", "tests.training.one_host", *given, what, str(folder)], ROOT
            processes.append(
                subprocess.Popen([sys.executable, *command], cwd=at, env=environment, stdout=out, stderr=errors)
            )
    return processes


def end(processes: list[subprocess.Popen[bytes]], folder: Path) -> list[str]:
    """Wait for all of them; what each said of errors."""
    try:
        for process in processes:
            process.wait(timeout=300)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [(folder / f"errors{number}").read_text() for number in range(len(processes))]


def together(what: str, folder: Path, count: int = 2) -> list[dict[str, Any]]:
    """What they came to."""
    processes = start(what, folder, count)
    errors = end(processes, folder)
    assert [process.returncode for process in processes] == [0] * count, errors
    return [json.loads((folder / f"out{number}").read_text().splitlines()[-1]) for number in range(count)]


def close(got: Any, want: Any) -> None:
    assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "what",
    ["batches", *(pytest.param(how, marks=nightly) for how in ("after a refusal", "all at once", "measured"))],
)
def test_two_processes_come_to_what_one_does(what: str, tmp_path: Path) -> None:
    want = train(what, slice(None), tmp_path, 0)
    one, other = together(what, tmp_path)
    assert one == other
    assert len(one["loss"]) == (8 if what in ("batches", "after a refusal") else 20)
    for name in ("loss", "accuracy", "val_loss", "numbers"):
        close(one[name], want[name])
    assert one["state"]["steps"] == want["state"]["steps"]
    if what == "after a refusal":
        assert "processes begin with different numbers" in one["refused"]


@nightly
def test_where_they_take_different_ways_they_step_one_at_a_time(tmp_path: Path) -> None:
    want = train("two ways", slice(None), tmp_path, 0)
    one, other = together("two ways", tmp_path)
    assert one == other
    close(one["loss"], want["loss"])
    close(one["numbers"], want["numbers"])


@nightly
def test_one_writes_and_another_number_of_processes_goes_on(tmp_path: Path) -> None:
    want = train("all at once", slice(None), tmp_path, 0)
    first = together("first half", tmp_path)
    assert [each["saved"] for each in first] == [True, False]
    assert [len(each["loss"]) for each in first] == [8, 8]
    one = together("second half", tmp_path, 1)[0]
    two = together("second half", tmp_path)[1]
    close(one["loss"], want["loss"])
    close(two["loss"], want["loss"])
    close(one["numbers"], want["numbers"])
    close(two["state"]["mean"], want["state"]["mean"])


@pytest.mark.nightly
def test_a_process_that_dies_ends_the_other(tmp_path: Path) -> None:
    one, other = start("killed", tmp_path)
    try:
        other.wait(timeout=300)
        died = monotonic()
    finally:
        errors = end([one, other], tmp_path)
    assert monotonic() - died < HEARTBEAT + 10
    assert one.returncode
    assert errors[0]


@nightly
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("other numbers", "processes begin with different numbers"),
        ("one callback", "processes begin with different numbers"),
        ("small", "batch_size is 1"),
    ],
)
def test_what_cannot_go_together_is_refused_by_both(what: str, message: str, tmp_path: Path) -> None:
    processes = start(what, tmp_path)
    for process, errors in zip(processes, end(processes, tmp_path), strict=True):
        assert process.returncode
        assert re.search(f"ArgumentError: (the )?{message}", errors)


def test_processes_that_begin_with_different_numbers_are_refused() -> None:
    import numpy as np

    told: list[Sequence[float]] = []

    def exchange(numbers: Sequence[float]) -> Any:
        """The first process to come tells the others."""
        told.append(numbers)
        return np.array([told[0], numbers])

    hosts = Hosts([3, 3], 1, exchange)
    hosts.agree([1.0, 2.0])
    hosts.agree([1.0, 2.0])
    for other in ([1.0, 2.5], [2.0, 1.0], [1.0], [1.0, 2.0, 0.0]):
        with pytest.raises(ArgumentError, match="processes begin with different numbers"):
            hosts.agree(other)


def test_the_shares_of_batches() -> None:
    """Each example is in one batch, and all batches are whole, whatever share of the data a process has."""
    alone = Hosts([10])
    assert alone.batches(4) == ([[0, 4, 8, 10]], [0.4, 0.4, 0.2])
    hosts = Hosts([30, 7], 1, lambda numbers: [numbers])
    cuts, shares = hosts.batches(8)
    assert [at[-1] for at in cuts] == [30, 7]
    assert all(at == sorted(at) for at in cuts)
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) > 0.0
    with pytest.raises(ArgumentError, match="batch_size is 1; expected at least one example for each"):
        hosts.batches(1)
    assert is_first()


@nightly
def test_the_page_is_followed_word_for_word(tmp_path: Path) -> None:
    """Its program, by two processes as if they were two machines; then one goes on from the checkpoint."""
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```{code-block} python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert "python train.py 192.168.0.1:9000 2 1" in page
    for text, count, epochs in [(program, 2, 50), (program.replace("epochs=50", "epochs=55"), 1, 55)]:
        (tmp_path / "train.py").write_text(text)
        processes = start("train.py", tmp_path, count)
        errors = end(processes, tmp_path)
        assert [process.returncode for process in processes] == [0] * count, errors
        assert re.search(rf"History\({epochs} epochs in .* \(xla\), loss 0\.\d+", (tmp_path / "out0").read_text())
        assert f"epoch {epochs}/{epochs}: loss" in errors[0]
        assert count == 1 or "epoch" not in errors[1]
