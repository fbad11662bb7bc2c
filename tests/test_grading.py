"""`wengert check`: engines with a slip each are told by name, right ones are left in peace, wild files do no harm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wengert import cli
from wengert.errors import ArgumentError
from wengert.course.grading import Report, diagnosis, examine, model, rules, slips, trials

ENGINES = Path(__file__).parent / "engines"

# ------------------------------------------------------------------------------------- engines with a slip

SLIPS = {
    "overwrites": "overwritten gradients",
    "overwrites_in_add": "overwritten gradients",
    "swapped_factors": "swapped factors",
    "no_radd": "missing reflected operator",
    "no_rmul": "missing reflected operator",
    "rsub_exchanged": "reflected operands exchanged",
    "preorder": "walk order",
    "breadth_first": "walk order",
    "not_reversed": "walk order",
    "revisits": "visited again",
    "every_path": "visited again",
    "no_seed": "no seed",
    "power_without_factor": "power rule",
    "power_not_lowered": "power rule",
    "tanh_of_input": "tanh rule",
    "relu_passes_all": "relu rule",
    "chain_rule_forgotten": "chain rule",
    "exponential_by_power_rule": "exp rule",
    "quotient_own_rule": "quotient rule",
    "numbers_not_wrapped": "number not wrapped",
    "returns_nothing": "nothing returned",
    "operands_in_a_set": "same operand counted once",
    "zeroes_leaves": "gradients zeroed",
    "visited_kept": "visited kept",
    "equal_by_value": "equality by value",
}
"""File in tests/engines -> the only slip that is to be named."""


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_told_by_name(name: str) -> None:
    report = examine(str(ENGINES / f"{name}.py"), timeout=6.0 if SLIPS[name] == "visited again" else 60.0)
    assert [finding.slip for finding in report.findings if not finding.note] == [SLIPS[name]]
    assert not report.right
    assert SLIPS[name] in {row.remark for row in report.rows} or name.startswith("no_r")


def test_two_slips_at_once_are_told_apart() -> None:
    report = examine(str(ENGINES / "two_slips.py"))
    told = {finding.slip: finding.says for finding in report.findings if not finding.note}
    assert told == {
        "swapped factors": "a * b: the product rule's factors are swapped",
        "overwritten gradients": "a + b: gradients are overwritten (=) where they should be added (+=)",
    }


def test_a_finding_says_where_what_and_which_line_to_write() -> None:
    report = examine(str(ENGINES / "swapped_factors.py"))
    finding = report.findings[0]
    assert (finding.where, finding.what) == ("a = 2, b = -3", "d(a * b)/da")
    assert (finding.expected, finding.got) == (-3.0, 2.0)
    assert finding.write == ("self.grad += other.data * out.grad", "other.grad += self.data * out.grad")
    states = {row.name: row.state for row in report.rows}
    assert states["a * b"] == "wrong"
    assert states["a + b"] == "ok", "what a wrong product spoils around a sum is not the sum's fault"
    assert states["a.log()"] == "not there"


def test_what_no_slip_explains_is_said_to_be_so_once() -> None:
    report = examine(str(ENGINES / "unheard_of.py"))
    wrong = [
        finding for finding in report.findings if finding.slip not in ("missing operator", "missing reflected operator")
    ]
    assert [finding.slip for finding in wrong] == ["unknown"]
    assert wrong[0].got == pytest.approx(0.1234 * -3.0)
    states = {row.name: row.state for row in report.rows}
    assert states["a - b"] == states["a - 3"] == states["4 / a"] == "missing"


NOTES = {
    "naive_tanh": "overflow",
    "seed_added": "second backward",
}


@pytest.mark.parametrize("name", NOTES)
def test_what_is_only_noted(name: str) -> None:
    report = examine(str(ENGINES / f"{name}.py"))
    assert report.right
    assert all(finding.note for finding in report.findings)
    assert NOTES[name] in {finding.slip for finding in report.findings}


# ------------------------------------------------------------------------------------- engines without a slip


def test_a_right_engine_has_a_full_score_and_not_even_a_note() -> None:
    report = examine(str(ENGINES / "right.py"))
    assert report.findings == ()
    assert report.score == (31, 31)


def test_wengert_has_a_full_score_and_not_even_a_note(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from wengert import Value\n")
    report = examine(str(tmp_path / "own.py"))
    assert report.findings == ()
    right, of = report.score
    assert right == of == len({trial.row for trial in trials.TRIALS if trial.kind != "note"})


def test_micrograd_has_a_full_score_and_its_limits_noted(tmp_path: Path) -> None:
    pytest.importorskip("micrograd", reason="needs micrograd")
    (tmp_path / "theirs.py").write_text("from micrograd.engine import Value\n")
    report = examine(str(tmp_path / "theirs.py"))
    assert report.score == (27, 27)
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


@pytest.mark.torch
def test_the_truth_is_what_pytorch_gives() -> None:
    """Every number that a class is held to, beside an engine that shares nothing with the one that gives it."""
    import torch

    class Tensors(trials.Kit):
        def backward(self, x: Any) -> None:
            x.backward(retain_graph=True)

        def zero(self, *xs: Any) -> None:
            for x in xs:
                x.grad = None

        def grad(self, x: Any) -> float:
            return super().grad(x) if x.is_leaf else float("nan")  # PyTorch keeps the gradients of leaves alone

    names = {"data": "data", "grad": "grad", "backward": "backward"}
    kit = Tensors(lambda x: torch.tensor(float(x), dtype=torch.float64, requires_grad=True), names)
    compared = 0
    for trial in trials.TRIALS:
        if trial.id == "changed":  # where a change of .data gives PyTorch, too, the gradient of another function
            continue
        right = trial.run(model.kit(model.Engine()))
        for (where, what, expected), (_, _, got) in zip(right, trial.run(kit), strict=True):
            if got == got:
                assert expected == pytest.approx(got, rel=1e-12, abs=1e-300), (trial.id, where, what)
                compared += 1
    assert compared > 800


def test_the_two_numbers_that_pytorch_does_not_know() -> None:
    outcomes = {
        (trial.id, what): number for trial in trials.TRIALS for _, what, number in trial.run(model.kit(model.Engine()))
    }
    assert outcomes["changed", "the gradient of a"] == 2.0
    assert [outcomes["inside", f"d(L)/d{name}"] for name in "edL"] == [-2.0, -2.0, 1.0]
    assert outcomes["losses", "the gradient of a"] == 39.0
    assert outcomes["leaf zeroed", "the gradient of a"] == 36.0


# ------------------------------------------------------------------------------------- the diagnosis by itself


def seen_on(engine: model.Engine) -> dict[str, diagnosis.Seen]:
    """What the trials would see of the model with a slip."""
    seen = {}
    for trial in trials.TRIALS:
        numbers: list[float] = []
        if trial.kind == "note":
            continue
        try:
            for _, _, number in trial.run(model.kit(engine)):
                numbers.append(number)
            seen[trial.id] = diagnosis.Seen(tuple(numbers))
        except (ArithmeticError, ValueError) as error:
            seen[trial.id] = diagnosis.Seen(tuple(numbers), type(error).__name__, str(error))
    return seen


HAS = {f"__{op}__" for r in ("", "r") for op in (f"{r}add", f"{r}sub", f"{r}mul", f"{r}truediv", f"{r}pow")}
HAS |= {"__neg__", "__abs__"}


WRONG = rules.WRONG_VALUES


@pytest.mark.slow
@pytest.mark.parametrize("op", rules.RIGHT)
def test_each_slip_of_each_rule_is_told_from_all_the_others(op: str) -> None:
    own = {slip[:2] for slip in rules.PARTIALS.get(op, [])} | {("wrong value", says) for says, _ in WRONG.get(op, [])}
    local = [s for s in slips.candidates(op, "core") if op == "mul" or (s.name, s.says.removeprefix("{op}: ")) in own]
    local = [s for s in local if s not in slips.WHOLE]
    assert local or op == "add"
    for slip in local:
        _, findings = diagnosis.diagnose(seen_on(slip.changes[0](model.Engine())), HAS)
        assert {finding.slip for finding in findings if not finding.note} == {slip.name}, slip


# ------------------------------------------------------------------------------------- files that cannot be tried

CANNOT = {
    "def f(:\n": r"line 1, column 7: SyntaxError: invalid syntax$",
    "x = (1,\n": r"line 1, column 5: SyntaxError: .*never closed",
    "if True:\nx = 1\n": r"line 2, column 1: IndentationError",
    "x = 1\0": r"null bytes",
    "import sys\nsys.exit(3)\n": r"line 2: the file ends the program \(sys.exit\) while it is imported",
    "import os\nos._exit(0)\n": r"while it was imported, it ended with status 0$",
    "\n1 / 0\n": r"line 2: ZeroDivisionError: division by zero, while the file was imported",
    "import no_such_module\n": r"line 1: ModuleNotFoundError: No module named 'no_such_module'",
    "input()\n": r"line 1: EOFError",
    "def f(): f()\nf()\n": r"line 1: RecursionError",
    "while True: pass\n": r"still being imported after 1 seconds: what trains or asks belongs under if __name__",
    "x = 1\n": r"no class in it is like a Value: expected data, grad and a method backward\(\)$",
    "class Neuron: pass\n": r"no class in it is like a Value: .*; the classes in it: Neuron$",
    "class Value:\n def backward(self): pass\n": r"Value\(2.0\) raises TypeError: .*takes no arguments",
    "class Value:\n def __init__(self, x): 1 / 0\n def backward(self): 0\n": r"line 2: Value\(2.0\) raises Zero",
    "class Value:\n def __init__(self, x): self.y = x\n def backward(self): 0\n": r"Value has no .data and no .grad",
    "class A:\n def __init__(self, x): self.data = self.grad = x\n def backward(self): pass\nclass B(A): pass\n": (
        r"several classes are like a Value: A, B; name one, as engine.py:A$"
    ),
    "raise ValueError('\\x1b[2J' + 'x' * 9999)\n": r"line 1: ValueError: \\x1b\[2Jx{296}, while",
    "class E(Exception):\n def __str__(self): 1 / 0\nraise E\n": r"line 3: E: \(its text cannot be made\)",
}


@pytest.mark.parametrize("text", CANNOT)
def test_a_file_that_cannot_be_tried(text: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.py"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=CANNOT[text]) as caught:
        examine(str(path), timeout=1.0 if "while True" in text else 20.0)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its memory")
def test_a_file_that_wants_more_memory_than_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "engine.py"
    path.write_text("x = 1\ny = bytearray(10**10)\n")
    with pytest.raises(ArgumentError, match=r"line 2: MemoryError, .*more memory than --memory allows$"):
        examine(str(path), memory=512)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"gone.py cannot be read: No such file"):
        examine(str(tmp_path / "gone.py"))
    with pytest.raises(ArgumentError, match="is a folder"):
        examine(str(tmp_path))
    with pytest.raises(ArgumentError, match="is a notebook: save its class in a file"):
        examine(str(tmp_path / "a.ipynb"))
    with pytest.raises(ArgumentError, match=r"there is no class Nope in it; the classes in it: Value$"):
        examine(str(ENGINES / "right.py") + ":Nope")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target": None}, "target is None; expected the name of a file"),
        ({"target": 3}, "target is int 3; expected the name of a file"),
        ({"timeout": 0.0}, r"timeout is 0\.0; expected a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout is nan; expected"),
        ({"timeout": float("inf")}, "timeout is inf; expected"),
        ({"timeout": "20"}, "timeout is '20'; expected"),
        ({"memory": 0}, "memory is 0; expected a whole number of MiB from 1 up"),
        ({"memory": 100.5}, r"memory is 100\.5; expected"),
    ],
)
def test_arguments_that_are_none(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        examine(**{"target": ENGINES / "right.py", **arguments})


def test_more_memory_than_there_is() -> None:
    assert examine(ENGINES / "right.py", memory=10**15).right


# ------------------------------------------------------------------------------------- files that do more than that


def tried(tmp_path: Path, text: str, **limits: Any) -> Report:
    """The report on the right engine with something more in its file."""
    path = tmp_path / "engine.py"
    path.write_text((ENGINES / "right.py").read_text() + "\n\n" + text)
    return examine(str(path), **limits)


def test_what_stands_under_main_does_not_run(tmp_path: Path) -> None:
    assert tried(tmp_path, "if __name__ == '__main__':\n    1 / 0\n").findings == ()


def test_what_the_file_prints_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    text = "import os\nfor fd in (1, 2):\n    os.write(fd, b'{\"end\": true}\\n' * 100_000)\nprint('\\x1b[31mred')\n"
    report = tried(tmp_path, text)
    assert report.findings == ()
    assert len(report.output) == 2_000
    assert report.output.startswith('{"end": true}\n')


def test_a_copy_of_the_process_does_not_answer_too(tmp_path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system has no os.fork")
    assert tried(tmp_path, "import os\nos.fork()\n").score == (31, 31)


def test_modules_of_ours_do_not_stand_in_the_way_of_theirs(tmp_path: Path) -> None:
    (tmp_path / "trials.py").write_text("here = 1\n")
    (tmp_path / "model.py").write_text("here = 1\n")
    report = tried(tmp_path, "import model, trials\nassert model.here == trials.here == 1\n")
    assert report.findings == ()


def test_an_operation_that_does_not_end_is_the_only_one_that_fails(tmp_path: Path) -> None:
    text = "def forever(self):\n    while True: pass\nValue.exp = forever\n"
    report = tried(tmp_path, text, timeout=4.0)
    assert [row.name for row in report.rows if row.state != "ok" and row.counts] == ["a.exp()"]
    assert [finding.slip for finding in report.findings] == ["endless"]
    assert report.remarks == ()


def test_a_backward_that_never_ends_is_given_up_in_time(tmp_path: Path) -> None:
    text = "def forever(self):\n    while True: pass\nValue.backward = forever\n"
    report = tried(tmp_path, text, timeout=2.0)
    assert not report.right
    assert "not tried" in {row.state for row in report.rows}
    assert "the time was up" in report.remarks[-1]
    assert [finding.slip for finding in report.findings] == ["endless"]


@pytest.mark.parametrize(
    ("body", "slip", "says"),
    [
        ("sys.exit()", "error", "SystemExit"),
        ("os._exit(7)", "died", "it ended with status 7"),
        ("os.kill(os.getpid(), 9)", "died", "SIGKILL"),
        ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("return self.relu()", "endless recursion", "calls itself without end"),
        ("return self.data", "no Value returned", "a plain number comes back"),
        ("return None", "nothing returned", "gives None"),
        ("raise MemoryError", "memory", "--memory"),
        ("return Value('two')", "no number", ".data is str 'two', expected a number"),
    ],
)
def test_an_operation_that_goes_astray(body: str, slip: str, says: str, tmp_path: Path) -> None:
    if "kill" in body and os.name == "nt":
        pytest.skip("Windows has no such signal")
    report = tried(tmp_path, f"import os, sys\ndef relu(self):\n    {body}\nValue.relu = relu\n")
    counted = [finding for finding in report.findings if not finding.note]
    assert [row.name for row in report.rows if row.counts and row.state != "ok"] == ["a.relu()"]
    assert {finding.slip for finding in counted} == {slip}
    assert says in counted[0].says


def test_numbers_of_other_kinds_are_numbers(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    single = (
        "import numpy\nold = Value.__init__\ndef __init__(self, x, *rest):\n    old(self, numpy.float32(x), *rest)\n"
    )
    report = tried(tmp_path, single + "Value.__init__ = __init__\n")
    assert report.right, str(report)


def test_a_gradient_may_be_none_before_backward(tmp_path: Path) -> None:
    text = (
        (ENGINES / "right.py")
        .read_text()
        .replace("self.grad = 0.0\n        self.operands", "self.grad = None\n        self.operands")
    )
    text = text.replace("operand.grad += partial", "operand.grad = (operand.grad or 0.0) + partial")
    assert text.count("None") == 1
    path = tmp_path / "engine.py"
    path.write_text(text)
    assert examine(str(path)).findings == ()


def test_other_names_of_the_parts_are_understood_and_told(tmp_path: Path) -> None:
    path = tmp_path / "engine.py"
    text = (ENGINES / "right.py").read_text()
    path.write_text(text.replace("data", "value").replace(".grad", ".gradient").replace("backward", "backprop"))
    report = examine(str(path))
    assert report.right
    assert report.remarks[0] == "It calls .value what is expected as .data, and was tried with that."
    assert len(report.remarks) == 3


# ------------------------------------------------------------------------------------- the command


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "wengert", "check", *map(str, arguments)]
    return subprocess.run(
        line, capture_output=True, text=True, env={**os.environ, **environment}, timeout=100, check=False
    )


def test_the_command_prints_a_table_a_score_and_what_to_write() -> None:
    done = command(ENGINES / "power_not_lowered.py")
    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].endswith("power_not_lowered.py: class Value, 25 of 29 right")
    assert "  a * b                                          ok      ok" in lines
    assert "  a ** n                                         ok      wrong     power rule" in lines
    assert "1. a ** n: the power rule is written n * a**n: the exponent has to fall by one" in lines
    assert "   at a = 2: d(a ** 3)/da should be 12, and is 24" in lines
    assert "   write: self.grad += n * self.data**(n - 1) * out.grad" in lines
    assert max(map(len, lines[1:])) <= 110


def status(*arguments: object) -> int:
    """The exit status of the command, run here."""
    return cli.main(["check", *map(str, arguments)])


def test_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(ENGINES / "right.py") == 0
    assert status(ENGINES / "seed_added.py") == 0
    assert status("--strict", ENGINES / "seed_added.py") == 1
    capsys.readouterr()
    assert status("gone.py") == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "wengert check: gone.py cannot be read: No such file or directory\n")
    for option in ("--timeout", "--memory"):
        with pytest.raises(SystemExit) as caught:
            status(option, "0", "gone.py")
        assert caught.value.code == 2


def test_the_report_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("--json", ENGINES / "swapped_factors.py") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["class"], told["right"], told["of"]) == ("Value", 10, 29)
    assert told["findings"][0]["slip"] == "swapped factors"
    assert {row["state"] for row in told["rows"]} == {"ok", "wrong", "not there", "note"}
    path = tmp_path / "infinite.py"
    path.write_text(
        (ENGINES / "right.py").read_text().replace("return Value(e, (self,), (e,))", "return Value(e * 1e999)")
    )
    assert status("--json", path) == 1
    assert [finding["got"] for finding in json.loads(capsys.readouterr().out)["findings"]] == ["inf"]
    assert status("--json", "gone.py") == 2
    assert json.loads(capsys.readouterr().out) == {"error": "gone.py cannot be read: No such file or directory"}


# ------------------------------------------------------------------------------------- the documentation


def blocks() -> list[str]:
    """What the page shows as printed."""
    page = Path(__file__).parent.parent / "docs" / "checking.md"
    return re.findall(r"^```text\n(.*?)\n```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_page_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ENGINES)
    reports = [block for block in blocks() if ": class " in block]
    assert len(reports) == 3
    for block in reports:
        name, _, _ = block.partition(":")
        assert str(examine(name)) == block


def test_the_page_names_every_slip() -> None:
    page = (Path(__file__).parent.parent / "docs" / "checking.md").read_text(encoding="utf-8")
    every = [slip for op in rules.RIGHT for slip in slips.candidates(op, "note")]
    names = {slip.name for slip in every} | {name for name, *_ in slips.ERRORS.values()} | set(SLIPS.values())
    assert [name for name in sorted(names) if name not in page and not name.endswith(" rule")] == []
