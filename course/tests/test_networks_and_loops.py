"""Steps 8 and 9 through the whole check: files, notebooks, sessions."""

from __future__ import annotations

import json
import math
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert_course as course
from tests.checked import ROOT, counted, report_on, tried
from tests.handmade import ENGINE, TANH, TRAIN, WENGERT, patched
from wengert import fit
from wengert.errors import WengertError
from wengert.nn import MLP
from wengert.optim import SGD
from wengert_course import check
from wengert_course.checks.steps import TRIALS

NETWORK_ROWS = [trial.row for trial in TRIALS.values() if trial.step == 8]
LOOP_ROW = "train(model, xs, ys, steps, rate)"
MOVE = "p.data -= rate * p.grad"


def test_the_step_is_found_by_what_is_there(tmp_path: Path) -> None:
    assert tried(tmp_path, ENGINE).step == 7
    assert tried(tmp_path, ENGINE + TANH).step == 8
    assert tried(tmp_path, ENGINE + TANH + TRAIN).step == 9
    assert tried(tmp_path, ENGINE + TRAIN).step == 7, "nothing is there to train"
    assert tried(tmp_path, "from wengert import Value\nfrom wengert.nn import MLP\n").step == 7, "another's network"


@pytest.mark.parametrize("engine", [ENGINE, WENGERT], ids=["by hand", "wengert"])
def test_right_ones(engine: str, tmp_path: Path) -> None:
    network, loop = tried(tmp_path, engine + TANH, 8), tried(tmp_path, engine + TANH + TRAIN, 9)
    for report, rows in ((network, NETWORK_ROWS), (loop, [*NETWORK_ROWS, LOOP_ROW])):
        assert report.right, str(report)
        assert counted(report) == []
        assert [row.name for row in report.rows[-len(rows) :]] == rows
        assert {row.state for row in report.rows[-len(rows) :]} == {"ok"}
    assert "a / b" not in {one.name for one in network.not_yet}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("old", "new", "row", "slip"),
    [
        (MOVE, "p.data += rate * p.grad", LOOP_ROW, "wrong value"),
        (MOVE, "p.step()", LOOP_ROW, "error"),
        ("range(steps)", "iter(int, 1)", LOOP_ROW, "endless"),
        ("return act.tanh()", "return act", "Neuron(3)", "wrong value"),
        (", self.b)\n", ", Value(self.b.data))\n", "Neuron(3)", "wrong gradient"),
        ("return self.w + [self.b]", "return self.w", "Neuron(3).parameters()", "wrong value"),
    ],
)
def test_what_is_wrong_is_told_once(old: str, new: str, row: str, slip: str, tmp_path: Path) -> None:
    report = tried(tmp_path, ENGINE + patched(TANH + TRAIN, (old, new)), timeout=30.0)
    assert counted(report) == [slip], str(report)
    assert report.findings[-1].rows == (row,)
    assert not report.right
    remarks = {one.name: one.remark for one in report.rows if one.state == "wrong"}
    assert remarks.pop(row) == slip
    assert set(remarks.values()) <= {"may follow from what is wrong above"}


def test_what_is_not_there_yet(tmp_path: Path) -> None:
    told = tried(tmp_path, ENGINE, 8)
    assert [row.state for row in told.rows if row.name in NETWORK_ROWS] == ["not yet"] * len(NETWORK_ROWS)
    assert told.not_yet[0].says.startswith("a class Neuron, made with its number of inputs")
    half = ENGINE.partition("    def backward")[0]
    assert "backward()" in " ".join(one.says for one in tried(tmp_path, half, 8).not_yet)
    assert [one.name for one in tried(tmp_path, ENGINE + TANH, 9).not_yet] == [LOOP_ROW]


def test_an_error_is_told_with_what_was_called_and_its_place(tmp_path: Path) -> None:
    text = ENGINE + TANH + patched(TRAIN, (MOVE, "p.step()"))
    line = text[: text.index("p.step()")].count("\n") + 1
    says = tried(tmp_path, text).findings[-1].says
    assert says == f"train() raises AttributeError: 'Value' object has no attribute 'step' (line {line}: p.step())"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
def test_a_function_of_this_session_is_called_in_a_copy() -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    exec(ENGINE + TANH + patched(TRAIN, (MOVE, "p.data += rate * p.grad")), names)
    assert counted(check(names, 9)) == ["wrong value"]


def test_functions_in_a_notebook(tmp_path: Path) -> None:
    cells = ["def slope(f, x):\n    return (f(x + 1e-5) - f(x)) / 1e-5", "%matplotlib inline\nslopes = 1 / 0"]
    path = tmp_path / "lesson.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    report = check(path, 0)
    assert [(row.name, row.state, row.values, row.gradients) for row in report.rows] == [
        ("slope(f, x)", "ok", "ok", ""),
        ("slopes(f, xs)", "not yet", "", ""),
    ]
    assert report.not_yet[0].says.startswith("the list of the slopes of f(*xs), ")


def test_notes_are_shown_to_who_asks_for_them() -> None:
    report = report_on(ENGINE + TANH)
    assert report.right
    assert str(report).count("notes") == 1
    assert f"({len(report.findings)} notes on what does not count: `wengert check --strict`" in str(report)
    assert "   write: " not in str(report)
    assert "\nOptional notes\n\n1. " in report.text(in_full=True)
    assert report.text(in_full=True).count("   write: ") == sum(bool(one.write) for one in report.findings)
    assert max(map(len, report.text(60).splitlines()[1:])) <= 60, "after the name of the file"


def test_what_is_right_of_the_steps_before_is_one_line() -> None:
    lines = str(report_on(ENGINE + TANH)).splitlines()
    assert lines[3].split() == ["Neuron(3).parameters()", "ok", "-"]
    assert [line for line in lines if "steps before" in line] == ["  and of the steps before, 32 that are right"]
    wrong = str(report_on(patched(ENGINE, ("(1 - t**2) * out.grad", "(1 - t) * out.grad")) + TANH)).splitlines()
    assert lines[3].split() != wrong[3].split() == ["a.tanh()", "ok", "wrong", "tanh", "rule"]


# ------------------------------------------------------------------------------------- the tutorials' four points

XS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
YS = [1.0, -1.0, -1.0, 1.0]
FORMS: dict[str, Callable[[], Any]] = {
    "tanh in every neuron": lambda: MLP(3, [4, 4, 1], "tanh", output="tanh", bias="uniform"),
    "ReLU, and a linear end": lambda: MLP(3, [4, 4, 1]),
    "ReLU in every neuron": lambda: MLP(3, [4, 4, 1], output="relu"),
}


def by_sum(model: Any, rate: float, count: int = 1) -> None:
    """The tutorials' loop, for 100 rounds."""
    for _ in range(100):
        loss = sum((model(x) - y) ** 2 for x, y in zip(XS, YS, strict=True)) / count
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad


def by_mean(model: Any, rate: float) -> None:
    """The loop of lesson 9 and of the page, for 100 rounds."""
    by_sum(model, rate, len(XS))


def by_fit(model: Any, rate: float) -> None:
    fit(model, lambda p, y: (p - y) ** 2, XS, YS, SGD(model, lr=rate), epochs=100, progress=False)


def ends(make: Callable[[], Any], train: Callable[[Any, float], None], rate: float, seeds: int) -> tuple[int, int]:
    """Of so many seeds, how many learn the four points, and how many are stuck."""
    losses = []
    for seed in range(seeds):
        random.seed(seed)
        model = make()
        try:
            train(model, rate)
            losses.append(sum((model(x).data - y) ** 2 for x, y in zip(XS, YS, strict=True)) / len(XS))
        except (WengertError, OverflowError):
            losses.append(math.inf)
    return sum(loss < 0.1 for loss in losses), sum(not loss < 0.97 for loss in losses)


def test_what_a_learner_meets_first_learns_and_relu_gets_stuck() -> None:
    lesson = course.mine(8, ours=True)
    for make in (FORMS["tanh in every neuron"], lambda: lesson.MLP(3, [4, 4, 1])):
        for rate in (0.05, 0.5):
            assert ends(make, by_mean, rate, 2) == (2, 0)
        learnt, stuck = ends(make, by_sum, 0.5, 4)
        assert learnt + stuck == 4
        assert stuck >= 1, "as lesson 9 says of the sum"
        assert ends(make, by_mean, 5.0, 2) == (0, 2), "and of a rate that is too large"
    for rate in (0.05, 0.5):
        assert ends(FORMS["tanh in every neuron"], by_fit, rate, 2) == (2, 0)
    assert ends(FORMS["ReLU, and a linear end"], by_mean, 0.5, 6)[1] >= 4
    assert ends(FORMS["ReLU in every neuron"], by_mean, 0.05, 6)[1] >= 2


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMS)
def test_as_many_seeds_learn_as_the_page_says(form: str) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {form} \| (\d.*) \|$", page, re.MULTILINE)
    for ways in ((by_mean, by_sum), (by_fit, by_sum)):
        columns = [(train, rate) for train in ways for rate in (0.05, 0.5)]
        for said, column in zip(row.split(" | "), columns, strict=True):
            assert ends(FORMS[form], *column, 100) == pytest.approx(tuple(map(int, said.split(", "))), abs=2)
