"""The check of anyone's engine: engines with a slip each are told by name, right ones are left in peace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests import engines, half_done
from tests.checked import counted, page, report_on, tried
from wengert_course import check
from wengert_course.checks import diagnosis, rules, slips, steps
from wengert_course.checks.kit import NAMES, Kit, TrialPlan
from wengert_course.checks.model import ModelEngine, model_kit
from wengert_course.checks.steps import TRIALS, About, Seen

METHODS = frozenset(need for trial in TRIALS.values() for need in trial.needs.split() if need not in NAMES)


# ------------------------------------------------------------------------------------- engines with a slip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", engines.WRONG)
def test_a_slip_is_told_by_name(name: str, seed: int) -> None:
    slip, *patches = engines.WRONG[name]
    report = report_on(engines.patched(*patches), seed=seed, timeout=8.0 if name in engines.EXPONENTIAL else 60.0)
    assert counted(report) == [slip]
    assert not report.right
    assert report.not_yet == ()
    assert slip in {row.remark for row in report.rows}


def test_two_slips_at_once_are_told_apart(tmp_path: Path) -> None:
    both = [*engines.WRONG["swapped_factors"][1:], *engines.WRONG["overwrites_in_add"][1:]]
    report = tried(tmp_path, engines.patched(*both))
    told = {finding.slip: finding.says for finding in report.findings if not finding.note}
    assert told == {
        "swapped factors": "a * b: the product rule's factors are swapped",
        "overwritten gradients": "a + b: gradients are overwritten (=) where they should be added (+=)",
    }


def test_a_finding_says_where_what_and_which_line_to_write(tmp_path: Path) -> None:
    report = tried(tmp_path, engines.wrong("swapped_factors"))
    finding = report.findings[0]
    a, b = map(float, re.findall(r"-?[0-9.]+", finding.where))
    assert (finding.what, finding.expected, finding.got) == ("d(a * b)/da", b, a)
    assert finding.write == ("self.grad += other.data * out.grad", "other.grad += self.data * out.grad")
    states = {row.name: row.state for row in report.rows}
    assert states["a * b"] == "wrong"
    assert states["a + b"] == "ok", "what a wrong product spoils around a sum is not the sum's fault"
    assert states["a.log()"] == "not there"


def test_the_numbers_are_others_in_each_run_and_the_same_for_a_seed(tmp_path: Path) -> None:
    wrong = engines.wrong("swapped_factors")
    first, again, other = [tried(tmp_path, wrong, seed=seed).findings[0].where for seed in (1, 1, 2)]
    assert first == again != other
    assert len({check(tmp_path / "engine.py", 1).seed for _ in range(3)}) == 3


def test_what_no_slip_explains_is_said_to_be_so_once(tmp_path: Path) -> None:
    text = engines.PLAIN.replace("(other.data, self.data)", "(0.1234 * other.data, 0.4321 + self.data)")
    report = tried(tmp_path, text)
    assert counted(report) == ["unknown"]
    finding = report.findings[0]
    assert finding.got == pytest.approx(0.1234 * finding.expected)


@pytest.mark.parametrize("name", engines.NOTED)
def test_what_is_only_noted(name: str, tmp_path: Path) -> None:
    slip, *patches = engines.NOTED[name]
    report = tried(tmp_path, engines.patched(*patches))
    assert report.right
    assert all(finding.note for finding in report.findings)
    assert slip in {finding.slip for finding in report.findings}


# ------------------------------------------------------------------------------------- engines without a slip

LACKING = {
    "tanh from exp": ["3 - a", "4 / a"],
    "every operator but 1 / v": ["4 / a"],
    "relu alone": ["3 - a", "4 / a"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", [None, 7])
@pytest.mark.parametrize("name", engines.FINISHED)
def test_a_finished_engine_has_full_marks(name: str, step: int | None, tmp_path: Path) -> None:
    """Lesson 7 asks for each of its methods; of an engine without a lesson, those count that are there."""
    report = tried(tmp_path, engines.FINISHED[name], step)
    missing = [one.name for one in report.not_yet]
    assert missing == ([] if step is None else LACKING.get(name, [])), str(report)
    assert report.right is (not missing)
    assert report.step == 7
    assert counted(report) == []
    if missing:
        return
    there = {row.name for row in report.rows if row.state == "ok"}
    lacks = {row.name for row in report.rows if row.state == "not there"}
    assert not there & lacks
    assert ("4 / a" in lacks) is (name not in ("all of it", "another make"))


def test_an_engine_without_a_limit_has_not_even_a_note(tmp_path: Path) -> None:
    report = tried(tmp_path, engines.PLAIN)
    assert report.findings == ()
    assert report.score == (33, 33)


def test_wengert_has_a_full_score_and_not_even_a_note(tmp_path: Path) -> None:
    report = tried(tmp_path, "from wengert import Value\n")
    assert report.findings == ()
    assert report.score == (39, 39)


def test_micrograd_has_a_full_score_and_its_limits_noted(tmp_path: Path) -> None:
    pytest.importorskip("micrograd", reason="needs micrograd")
    report = tried(tmp_path, "from micrograd.engine import Value\n")
    assert report.right
    assert report.score == (30, 30)
    noted = {finding.slip: (finding.note, finding.expected, finding.got) for finding in report.findings}
    assert noted == {
        "second backward": (True, 48.0, 72.0),
        "late partials": (True, 2.0, 100.0),
        "recursion": (True, None, None),
        "complex number": (True, None, None),
    }
    assert report.findings[0].rows == (
        "backward() twice on one expression",
        "two results that share a part",
        "a leaf set to zero, backward() again",
    )


@pytest.mark.sampled(3)
@pytest.mark.torch
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_truth_is_what_pytorch_gives(seed: int) -> None:
    """Every number that a class is held to, beside an engine that shares nothing with the one that gives it."""
    import torch

    class Tensors(Kit):
        def backward(self, x: Any) -> None:
            x.backward(retain_graph=True)

        def zero(self, *xs: Any) -> None:
            for x in xs:
                x.grad = None

        def grad(self, x: Any) -> float:
            return super().grad(x) if x.is_leaf else float("nan")  # PyTorch keeps the gradients of leaves alone

    names = {"data": "data", "grad": "grad", "backward": "backward"}
    kit = Tensors(
        lambda x: torch.tensor(float(x), dtype=torch.float64, requires_grad=True), names, {}, TrialPlan(seed=seed)
    )
    about = About(7, True, frozenset(names), METHODS, seed)
    compared = 0
    for trial in TRIALS.values():
        if trial.kind == "own" or not 0 < trial.step < 8 or {"_prev", "_backward"} & set(trial.needs.split()):
            continue  # what PyTorch has no word for
        if trial.id == "changed":  # where a change of .data gives PyTorch, too, the gradient of another function
            continue
        right = diagnosis.expected(trial, about)
        for (where, what, expected), (_, _, got) in zip(right, trial.outcomes(kit), strict=True):
            if got == got:
                assert expected == pytest.approx(got, rel=1e-12, abs=1e-300), (trial.id, where, what)
                compared += 1
    assert compared > 700


def test_the_gradients_that_are_drawn_for_the_chain_are_those_of_each_seed() -> None:
    """Closure by closure: the number that is drawn for the last node is handed on to the first."""
    parts = frozenset(NAMES) - {"backward"}
    for seed in (1, 2):
        (_, _, data), (where, _, grad) = diagnosis.expected(TRIALS["chain"], About(6, True, parts, METHODS, seed))
        assert data == 10_001.0
        assert grad == pytest.approx(float(where.rpartition("= ")[2]), rel=1e-5)
    above = [diagnosis.expected(TRIALS["chain"], About(6, True, parts, METHODS, seed))[1][2] for seed in (1, 2)]
    assert above[0] != above[1]


def test_the_numbers_that_pytorch_does_not_know() -> None:
    about = About(7, True, frozenset(NAMES), METHODS)
    outcomes = {
        (trial.id, what): number
        for trial in TRIALS.values()
        if 0 < trial.step < 8
        for _, what, number in diagnosis.expected(trial, about)
    }
    assert outcomes["changed", "the gradient of a"] == 2.0
    assert outcomes["two losses", "the gradient of a"] == 39.0
    assert outcomes["leaf zeroed", "the gradient of a"] == 36.0
    numbers = {name: outcomes["inside", f"d(L)/d{name}"] for name in "abcfedL"}
    assert numbers["L"] == 1.0
    assert numbers["d"] == numbers["e"] == numbers["c"]
    symbols = [number for (trial, _), number in outcomes.items() if trial == "symbols"]
    assert symbols == [1, 2, 0]
    assert all(outcomes["calls", f"how often {name}._backward() is called"] == 1.0 for name in "stuvL")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(5))
def test_numbers_in_single_precision_are_right(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    text = engines.PLAIN.replace("self.data = data", "self.data = numpy.float32(data)")
    report = tried(tmp_path, "import numpy\n" + text, seed=seed)
    assert report.right, str(report)


# ------------------------------------------------------------------------------------- the diagnosis by itself


def seen_on(engine: ModelEngine, about: About) -> dict[str, Seen]:
    """What the trials would see of the model with a slip."""
    seen = {}
    for trial in about.trials():
        numbers: list[float] = []
        if trial.kind == "note" or trial.id.startswith("by hand"):
            continue
        try:
            for _, _, number in trial.outcomes(model_kit(engine, about.plan)):
                numbers.append(number)
            seen[trial.id] = Seen(tuple(numbers))
        except (ArithmeticError, ValueError) as error:
            seen[trial.id] = Seen(tuple(numbers), type(error).__name__, str(error))
    return seen


@pytest.mark.sampled(10)
@pytest.mark.slow
@pytest.mark.parametrize("step", [4, 7])
@pytest.mark.parametrize("op", sorted({*rules.SLOPES, *rules.VALUES}))  # those of lessons 1 to 7, and relu
def test_each_slip_of_each_rule_is_told_from_all_the_others(op: str, step: int) -> None:
    own = {slip[:2] for slip in rules.SLOPES.get(op, [])}
    own |= {("wrong value", slip[0]) for slip in rules.VALUES.get(op, [])}
    local = [s for s in slips.candidates(op, "core") if op == "mul" or (s.name, s.says.removeprefix("{op}: ")) in own]
    local = [s for s in local if s not in slips.WHOLE]
    if step == 4:  # a closure by itself: its value is not used twice
        local = [s for s in local if s.name not in ("same operand counted once", "overwritten gradients")]
    assert local
    about = About(step, True, frozenset(NAMES), METHODS, seed=step)
    for slip in local:
        verdict = diagnosis.diagnose(seen_on(ModelEngine().changed(slip.changes[0]), about), about)
        assert {finding.slip for finding in verdict.findings if not finding.note} == {slip.name}, slip


def test_what_is_told_is_of_operations_and_trials_that_there_are() -> None:
    assert rules.SLOPES.keys() | rules.VALUES.keys() <= rules.RULES.keys()
    assert slips.OF_TRIALS.keys() | slips.OTHERS.keys() <= TRIALS.keys()
    assert steps.ASKS.keys() <= {trial.row for trial in TRIALS.values()}
    assert rules.DERIVED.keys() <= {trial.op for trial in TRIALS.values()}


# ------------------------------------------------------------------------------------- the documentation


def test_the_page_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    reports = [
        block for block in re.findall(r"^```text\n(.*?)\n```", page(), re.DOTALL | re.MULTILINE) if ": class " in block
    ]
    assert len(reports) == 4
    for block in reports:
        name, _, _ = block.partition(":")
        Path(name).write_text(half_done.SHOWN[name], encoding="utf-8")
        assert str(check(name, seed=1)) == block


def test_the_page_names_every_slip() -> None:
    every = [slip for op in rules.RULES for slip in slips.candidates(op, "note")]
    every += [slip for those in slips.OF_TRIALS.values() for slip in those]
    names = {slip.name for slip in every} | {slip.name for *_, slip in slips.ERRORS}
    names |= {slip.name for slip in slips.OTHERS.values()}
    names |= {slip for slip, *_ in [*engines.WRONG.values(), *engines.NOTED.values()]}
    names |= {slip for _, _, named, _ in half_done.HALF.values() for slip in named}
    assert [name for name in sorted(names) if name not in page() and not name.endswith(" rule")] == []


def test_the_page_names_every_step() -> None:
    assert [title for title in steps.TITLES.values() if title not in page()] == []
