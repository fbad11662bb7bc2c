"""Steps 8 and 9 through the whole check: files, notebooks, sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import wengert
from tests.checked import counted, report_on, tried
from tests.handmade import ENGINE, TANH, WENGERT
from tests.test_training_loops import LOOP, MOVE, TRAIN, UPDATE, ZERO, patched
from wengert_course import check
from wengert_course.checks import load, probe
from wengert_course.checks.steps import MODULES

NETWORK_ROWS, LOOP_ROWS = 9, 6


def test_the_step_is_found_by_what_is_there(tmp_path: Path) -> None:
    assert tried(tmp_path, ENGINE).step == 7
    assert tried(tmp_path, ENGINE + TANH).step == 8
    assert tried(tmp_path, ENGINE + TANH + LOOP).step == 9
    once = "\nx = Value(2.0)\nfor k in range(3):\n    (x * x).backward()\n"
    assert tried(tmp_path, ENGINE + TANH + once).step == 8, "a loop that trains reads gradients"
    assert tried(tmp_path, "from wengert import Value\nfrom wengert.nn import MLP\n").step == 7, "another's network"


def test_no_two_trials_have_one_name() -> None:
    names = [row[1] for name in probe.CHILD[2:] for row in MODULES[name].TRIALS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("engine", [ENGINE, WENGERT], ids=["by hand", "wengert"])
def test_right_ones(engine: str, tmp_path: Path) -> None:
    network, loop = tried(tmp_path, engine + TANH, 8), tried(tmp_path, engine + TANH + LOOP, 9)
    for report, rows in ((network, NETWORK_ROWS), (loop, NETWORK_ROWS + LOOP_ROWS)):
        assert report.right, str(report)
        assert counted(report) == []
        assert report.score[1] >= 30 + rows - 10
        assert {row.state for row in report.rows[-rows:]} == {"ok"}
    assert "a / b" not in {one.name for one in network.not_yet}


@pytest.mark.parametrize(
    ("old", "new", "slip"),
    [
        (ZERO, "", "zero forgotten"),
        ("+= -0.05", "+= 0.05", "update's sign"),
        (MOVE, "p -= 0.05 * p.grad", ".data forgotten"),
        (MOVE, "p.data = p - 0.05 * p.grad", "data made a Value"),
        ("    loss.backward()\n" + UPDATE, UPDATE + "    loss.backward()\n", "zeroed before the update"),
        ("return act.tanh()", "return act", "no activation"),
        (", self.b)\n", ", Value(0.0))\n", "bias left out"),
    ],
)
def test_slips(old: str, new: str, slip: str, tmp_path: Path) -> None:
    report = tried(tmp_path, ENGINE + patched(TANH + LOOP, (old, new)))
    assert slip in counted(report), str(report)
    assert not report.right


def test_what_is_not_there_yet(tmp_path: Path) -> None:
    told = tried(tmp_path, ENGINE, 8)
    assert [row.state for row in told.rows if row.name.startswith("Neuron")] == ["not yet"] * 2
    assert told.not_yet[0].says.startswith("a class Neuron, made with its number of inputs")
    half = ENGINE.partition("    def backward")[0]
    assert "backward()" in " ".join(one.says for one in tried(tmp_path, half, 8).not_yet)
    assert tried(tmp_path, half, 8).not_yet[-1].says.startswith("a class MLP")
    learning = tried(tmp_path, ENGINE + TANH, 9)
    assert [one.name for one in learning.not_yet] == ["backward() in a loop", "data moved against the gradient"]
    assert learning.remarks == ()


def test_a_loop_of_plain_values_needs_no_network(tmp_path: Path) -> None:
    text = """
w, b = Value(0.5), Value(0.0)
for k in range(20):
    loss = sum(((w * x + b - y) ** 2 for x, y in [(1.0, 2.0), (2.0, 3.0)]), Value(0.0))
    for p in (w, b):
        p.grad = 0.0
    loss.backward()
    for p in (w, b):
        p.data -= 0.05 * p.grad
"""
    report = tried(tmp_path, ENGINE + text)
    assert (report.step, report.right) == (9, True), str(report)
    assert not any(row.name.startswith("Neuron") for row in report.rows)


def test_a_function_that_trains_is_called(tmp_path: Path) -> None:
    report = tried(tmp_path, ENGINE + TANH + TRAIN)
    assert (report.step, report.right) == (9, True), str(report)


def test_a_loop_that_ends_in_an_error_is_told_by_what_it_did(tmp_path: Path) -> None:
    text = patched(LOOP, ("+= -0.05", "+= 0.05"), ("    print(k, loss.data)\n", "    assert k < 5, 'enough'\n"))
    report = tried(tmp_path, ENGINE + TANH + text)
    assert counted(report) == ["update's sign"]
    assert "AssertionError: enough" in report.output


def test_a_loop_that_goes_on_for_long_is_told_by_what_it_did(tmp_path: Path) -> None:
    text = patched(LOOP, ("for k in range(20):", "k = 0\nwhile True:"))
    report = tried(tmp_path, ENGINE + TANH + text, timeout=10.0)
    assert report.right, str(report)
    assert "stopped" in {finding.slip for finding in report.findings if finding.note}


def test_a_loop_in_a_notebook_is_shown_by_cell_and_line(tmp_path: Path) -> None:
    path = tmp_path / "lesson.ipynb"
    parts = [
        "# a text",
        "%matplotlib inline\n" + ENGINE,
        TANH,
        "import math\n\n" + patched(LOOP, ("+= -0.05", "+= 0.05")),
    ]
    kinds = ["markdown", "code", "code", "code"]
    cells = [{"cell_type": kind, "source": part} for kind, part in zip(kinds, parts, strict=True)]
    path.write_text(json.dumps({"cells": cells}))
    report = check(path)
    finding = next(finding for finding in report.findings if finding.slip == "update's sign")
    line = parts[3][: parts[3].index("p.data += 0.05")].count("\n") + 1
    assert (finding.where, finding.what) == (f"cell 4, line {line}", "p.data += 0.05 * p.grad")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
def test_a_function_of_this_session_is_called_in_a_copy() -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    exec(ENGINE + TANH + patched(TRAIN, ("p.data -=", "p.data +=")), names)
    report = check(names, 9)
    assert counted(report) == ["update's sign"]


def test_only_programs_that_train_are_watched(tmp_path: Path) -> None:
    """What is watched runs interpreted: Wengert's own engine is checked as it is."""
    path = tmp_path / "program.py"
    for text, trains in ((LOOP, True), (TRAIN, True), (ENGINE + TANH, False), ("def f(:\n", False)):
        path.write_text(text)
        assert load.trains(str(path)) is trains
    assert not load.trains(str(Path(wengert.__file__).with_name("engine.py")))


def test_what_is_right_of_the_steps_before_is_one_line() -> None:
    lines = str(report_on(ENGINE + TANH)).splitlines()
    assert lines[3].split() == ["Neuron(3)", "ok", "ok"]
    assert [line for line in lines if "steps before" in line] == ["  and of the steps before, 32 that are right"]
    wrong = str(report_on(patched(ENGINE, ("(1 - t**2) * out.grad", "(1 - t) * out.grad")) + TANH)).splitlines()
    assert lines[3] != wrong[3] == "  a.tanh()                        ok      wrong     tanh rule"
