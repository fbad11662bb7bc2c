"""The check knows the step: half-done engines, each held to what its step asks for, and to nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import engines, half_done
from tests.checked import counted, tried
from wengert.errors import ArgumentError
from wengert_course import check
from wengert_course.checks import steps


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", half_done.HALF)
def test_a_half_done_engine(name: str, tmp_path: Path) -> None:
    step, text, slips, missing = half_done.HALF[name]
    report = tried(tmp_path, text, step)
    assert counted(report) == slips, str(report)
    assert [one.name for one in report.not_yet] == missing, str(report)
    assert report.right is (not slips and not missing)
    assert step in (None, report.step)
    later = {row.name for row in report.rows} & {"3 + a", "a ** n", "a - b"}
    assert report.step == 7 or not later, "nothing of later steps is held against anyone"


def test_there_are_thirty_half_done_engines() -> None:
    assert len(half_done.HALF) >= 30


FOUND = {
    1: half_done.BARE + half_done.SUM,
    2: half_done.GRAPH.replace("        self.grad = 0.0\n", ""),
    3: half_done.BY_HAND,
    4: half_done.LOCAL,
    6: half_done.FIRST_PASS,
    7: half_done.MOST,
}


@pytest.mark.parametrize("step", FOUND)
def test_the_step_is_found_by_what_is_there(step: int, tmp_path: Path) -> None:
    assert tried(tmp_path, FOUND[step]).step == step


@pytest.mark.parametrize("step", range(1, 8))
def test_a_finished_engine_is_right_at_each_step(step: int, tmp_path: Path) -> None:
    """It has every part but the gradients that are written by hand, and a label."""
    text = engines.patched(
        ('_op=""', '_op="", label=""'), ("self._op = _op", "self._op = _op\n        self.label = label")
    )
    text = text.replace(
        "    def __add__", "    def __repr__(self):\n        return f'Value({self.data})'\n\n    def __add__"
    )
    report = tried(tmp_path, text, step)
    assert counted(report) == []
    assert [one.name[0] for one in report.not_yet] == (["L", "o"] if step == 3 else [])


def test_what_is_to_be_done_is_said_in_order_without_a_solution(tmp_path: Path) -> None:
    for _, text, _, missing in half_done.HALF.values():
        for step in range(1, 8):
            report = tried(tmp_path, text, step)
            order = [row.name for row in report.rows]
            places = [order.index(one.name) for one in report.not_yet]
            assert places == sorted(places)
            for one in report.not_yet:
                assert one.says
                assert "out.grad *" not in one.says
                assert "def " not in one.says
        if len(missing) > 5:
            break


def test_a_finished_step_names_the_next(tmp_path: Path) -> None:
    assert tried(tmp_path, half_done.LOCAL, 4).remarks == ("Step 4 is done. Next is step 5, in which order.",)
    (stuck,) = tried(tmp_path, half_done.LOCAL, 5).remarks
    assert stuck == "Stuck? `course.hint(5)` prints a hint, and `course.hint(5, 2)` a larger one."


def test_other_names_of_the_parts_are_understood_and_told(tmp_path: Path) -> None:
    text = engines.PLAIN.replace("data", "value").replace(".grad", ".gradient").replace("backward", "backprop")
    report = tried(tmp_path, text)
    assert report.right
    assert report.remarks[0] == "It calls .value what is expected as .data, and was tried with that."
    assert len(report.remarks) == 3


def test_a_gradient_may_be_none_before_backward(tmp_path: Path) -> None:
    text = engines.PLAIN.replace("self.grad = 0.0\n        self.operands", "self.grad = None\n        self.operands")
    text = text.replace("operand.grad += partial", "operand.grad = (operand.grad or 0.0) + partial")
    assert text.count("None") == 1
    assert tried(tmp_path, text).findings == ()


def test_gradients_by_hand_of_the_neuron_beside_the_expression(tmp_path: Path) -> None:
    """What has no name of its own, as a product, is not asked for."""
    neuron = """
x1, x2, w1, w2, bias = Value(2.0), Value(0.0), Value(-3.0), Value(1.0), Value(6.8813735870195432)
n = x1 * w1 + x2 * w2 + bias
o = Value(math.tanh(n.data))
o.grad, n.grad, bias.grad, x1.grad, w1.grad, x2.grad, w2.grad = 1.0, 0.5, 0.5, -1.5, 1.0, 0.5, 0.0
"""
    report = tried(tmp_path, "import math\n" + half_done.BY_HAND + neuron, 3)
    assert report.right, str(report)
    assert {row.name for row in report.rows} >= {"dL/da", "dL/db", "do/dbias", "do/dw2"}
    squared = neuron + "n.grad = 1 - n.data**2\n"
    findings = tried(tmp_path, "import math\n" + half_done.BY_HAND + squared, 3).findings
    assert [finding.slip for finding in findings] == ["tanh rule"]


def test_a_node_that_cannot_be_read_ends_no_check(tmp_path: Path) -> None:
    odd = "class Odd(Value):\n    grad = property(lambda self: 1 / 0, lambda self, grad: None)\n\n\ne = Odd(-6.0)\n"
    report = tried(tmp_path, half_done.BY_HAND + odd, 3)
    states = {row.name: row.state for row in report.rows if row.name.startswith("dL/")}
    assert states == {"dL/dL": "not yet"} | {f"dL/d{name}": "ok" for name in "fcab"}


@pytest.mark.parametrize("step", [-1, 13, 2.0, "4", True])
def test_a_step_that_is_none(step: object) -> None:
    with pytest.raises(ArgumentError, match="expected a whole number from 0 to 12"):
        check({"L": 1.0}, step)  # type: ignore[arg-type]


def test_each_row_that_a_step_asks_for_has_its_sentence() -> None:
    from wengert_course.checks.steps import TRIALS

    asked = {trial.row for trial in TRIALS.values() if trial.kind in ("core", "own", "kept") and 1 <= trial.step <= 5}
    assert [row for row in asked if not steps.ask(row, False)] == []
