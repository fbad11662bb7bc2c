"""The logger "wengert": what the compiler does with each function, and why."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from typing import Any

import pytest

import wengert
from wengert import Value

pytest.importorskip("numpy")
W = Value(0.7)


def logged(caplog: pytest.LogCaptureFixture, level: int, call: Any) -> list[str]:
    """What is said while something is called."""
    caplog.clear()
    with caplog.at_level(level, "wengert"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    return [record.getMessage() for record in caplog.records if record.name == "wengert"]


def test_what_is_recorded_compiled_and_compared(caplog: pytest.LogCaptureFixture) -> None:
    def line(x: float, rows: Any) -> Any:
        return W * x + rows[1]

    compiled = wengert.compile(line, backend="numpy")
    said = logged(caplog, logging.DEBUG, lambda: [compiled(0.5, [1.0, 2.0]) for _ in range(3)])
    assert said[:2] == [
        "line: no specialization serves call 1 of (x: float, rows: float[2])",
        "line is recorded for (x: float, rows: float[2]): 6 nodes",
    ]
    assert said.count("line is compiled for (x: float, rows: float[2]): numpy is named as the back end") == 1
    assert any(each.startswith("line agrees with the function at call 2 of") for each in said)
    said = logged(caplog, logging.INFO, lambda: compiled.map([0.5, 1.5], [[1.0, 2.0], [3.0, 4.0]]))
    assert said[0].startswith("line is recorded for a batch of (x: float, rows: float[2])")


def test_why_the_function_itself_runs(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[float] = []

    def draws(x: float) -> Any:
        seen.append(x)
        return W * x

    compiled = wengert.compile(draws)
    (said,) = logged(caplog, logging.INFO, lambda: [compiled(0.5) for _ in range(6)])
    assert said.startswith("draws rests for (x: float): it changes seen at each call")
    compiled = wengert.compile(lambda x: W * x)
    with wengert.detect_anomaly():
        (said,) = logged(caplog, logging.DEBUG, lambda: compiled(0.5))
    assert said.startswith("<lambda>: a call is served by the function itself, in a mode that looks at each operation")


def test_what_differs_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """The reason of the log is that of the warning."""
    slow = {"rate": 1.0}

    class Hidden:
        def __getattribute__(self, name: str) -> Any:
            return slow["rate"]

    hidden = Hidden()
    compiled = wengert.compile(lambda x: W * x * hidden.rate)

    def call() -> None:
        for _ in range(40):
            slow["rate"] += 1.0
            compiled(0.5)

    said = logged(caplog, logging.INFO, call)
    assert any(" drops a recording for " in each or " falls back for " in each for each in said)


def test_nothing_is_written_out_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.arguments.arguments import Signature

    def refuses(self: Any) -> str:
        raise AssertionError("a signature is written out")

    monkeypatch.setattr(Signature, "__str__", refuses)
    compiled = wengert.compile(lambda x: W * x)
    assert [compiled(0.5).data for _ in range(5)] == [0.35] * 5


SCRIPT = "import wengert; f = wengert.compile(lambda x: wengert.Value(1.0) * x, backend='numpy'); f(1.0); f(1.0)"


@pytest.mark.parametrize(("level", "lines"), [("info", 2), ("DEBUG", 3), ("", 0)])
def test_the_environment_asks_for_it(level: str, lines: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "WENGERT_LOG": level},
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("wengert: <lambda>")]
    assert len(said) >= lines
    assert bool(said) is bool(lines)


def test_a_level_that_there_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "WENGERT_LOG": "loud"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ArgumentError: WENGERT_LOG is 'loud'; expected debug or info" in done.stderr
