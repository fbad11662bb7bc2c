"""`wengert draw`: formulas as text, and what the command prints and writes."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from wengert import Value, functions
from wengert.apps import cli
from wengert.errors import ArgumentError
from wengert.graph import Graph
from wengert.ops import TABLE, Op, table
from wengert.view.formula import OF_LISTS, evaluate
from wengert.view.graph import draw, tree
from wengert.view.steps import steps

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it

NEURON = ["x1=2", "x2=0", "w1=-3", "w2=1", "b=6.8813735870195432"]
TREE = """\
tanh  data 0.7071  grad 1
└─ +  data 0.8814  grad 0.5
   ├─ +  data -6  grad 0.5
   │  ├─ *  data -6  grad 0.5
   │  │  ├─ x1  data 2  grad -1.5
   │  │  └─ w1  data -3  grad 1
   │  └─ *  data 0  grad 0.5
   │     ├─ x2  data 0  grad 0.5
   │     └─ w2  data 1  grad 0
   └─ b  data 6.881  grad 0.5
"""


# -- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "formula",
    ["x + y*3 - -x", "(x - y)/(2*x) + +y", "2**x + x**2 + x**y", "x.tanh() + tanh(y)", "atan2(x, y)", "max(x, y, 1)",
     "-x**2", "2*3*x + 1e3", "sum(x, y, 2)*x", "clip(x, 0, 1) + hypot(x, y)", "relu(x) - abs(-y)", "x - y - x/y/2",
     "leaky_relu(x, 0.1)", "logsumexp(x, y)", "where(x, y, 3)"],
)  # fmt: skip
def test_a_formula_means_what_python_would_make_of_it(formula: str) -> None:
    """The oracle is Python's own evaluation of the same text, with the functions of the package."""
    import wengert

    numbers = {name: number for name, number in (("x", 0.75), ("y", 1.5)) if re.search(rf"\b{name}\b", formula)}
    leaves = {name: Value(number) for name, number in numbers.items()}
    expected = eval(formula, {name: getattr(wengert, name) for name in dir(wengert)}, leaves)
    result = evaluate(formula, numbers)
    assert (result.data, result._op) == (expected.data, expected._op)
    result.backward()
    expected.backward()
    made = {v.label: v.grad for v in Graph(result).values if v.label}
    assert made == {name: leaf.grad for name, leaf in leaves.items()}


def test_names_within_a_formula_become_labels() -> None:
    result = evaluate("n = x*w; o = n.tanh(); n", {"x": 2.0, "w": 3.0})
    assert (result.label, result.data) == ("n", 6.0)
    result = evaluate("a = 2*3; a*x", {"x": 2.0})
    assert result.data == 12.0


def test_every_function_of_the_table_can_be_written() -> None:
    for row in TABLE:
        if row.value is not None and row.name not in ("leaf", "polygamma") and " " not in row.name:  # is a function
            if row.name in OF_LISTS:
                continue
            arity = 2 if row.arity is None else row.arity
            operands = ["2.5"] * len(row.shapes) + ["x", "0.5", "0.75"]
            written = ", ".join(operands[:arity])
            assert isinstance(evaluate(f"{row.name}({written})", {"x": 0.25}), Value), row.name


CALLED = ["x", "y", "0.5", "2", "-1", "1e300"]  # operands


OF_THE_TABLE = {row.name for row in vars(table).values() if isinstance(row, Op)}  # and not what tests have added


@pytest.mark.parametrize("name", sorted({*OF_THE_TABLE, *functions.__all__}))
def test_with_any_operands_a_function_is_right_or_says_what_to_write(name: str) -> None:
    """Of no to five operands, of each kind in each place; drawn, and step by step. The oracle is the function."""
    told: list[str] = []
    for count in range(6):
        for first in range(len(CALLED)):
            operands = [CALLED[(first + n) % len(CALLED)] for n in range(count)]
            numbers = {x: number for x, number in (("x", 0.25), ("y", 1.5)) if x in operands}
            written = [f"{name}({', '.join(operands)})"]
            written += [f"({operands[0]}).{name}({', '.join(operands[1:])})"] if operands else []
            for text in written:
                try:
                    result = evaluate(text, numbers)
                except ArgumentError as error:
                    told.append(str(error))
                    continue
                result.backward()
                assert tree(result, limit=None)
                assert draw(result).svg
                assert len(steps(result)) > 0
                plain = getattr(functions, name)(*[numbers.get(x, 0.0) if x in "xy" else float(x) for x in operands])
                assert result.data == pytest.approx(plain, rel=1e-15, nan_ok=True), text
    for message in told:
        assert re.fullmatch(r"(column \d+: |the formula ).{10,250}", message)


@pytest.mark.parametrize("name", sorted(OF_LISTS))
def test_functions_of_lists_say_what_to_write(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} takes lists, which a formula does not have: write "):
        evaluate(f"{name}(x, y)", {"x": 1.0, "y": 2.0})


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("x*", "column 3: invalid syntax"),
        ("(x", "column 1: '\\(' was never closed"),
        ("x + y", "column 5: y has no number: write y=2 after the formula"),
        ("x + tanh", r"column 5: tanh is a function: write tanh\(x\)"),
        ("x^2 + 1", r"column 1: \^ is not an operator here: write a power as x\*\*2"),
        ("2x", r"column 1: invalid decimal literal; a product is written 2\*x"),
        ("open(x)", r"column 1: there is no function open\(\.\.\.\) here"),
        ("__import__('os')", r"column 1: there is no function __import__\(\.\.\.\) here"),
        ("x.__class__", "column 1: this is not allowed in a formula"),
        ("x.data", "column 1: this is not allowed in a formula"),
        ("x.backward()", r"column 1: there is no function backward\(\.\.\.\) here"),
        ("x._apply_op(x)", r"no function _apply_op\(\.\.\.\)"),
        ("leaf(x)", r"no function leaf\(\.\.\.\)"),
        ("(lambda: x)()", "column 2: this is not allowed|column 1: this is not allowed"),
        ("[x for x in x]", "column 1: this is not allowed"),
        ("x + 'a'", "column 5: this is not allowed"),
        ("x + True", "column 5: this is not allowed"),
        ("x + 2j", "column 5: this is not allowed"),
        ("x if x else x", "column 1: this is not allowed"),
        ("x @ x", "column 1: this is not allowed"),
        ("x < 1", "column 1: this is not allowed"),
        ("tanh(x, x)", "column 1: tanh takes 1 operand, got 2"),
        ("tanh(x=x)", "column 1: this is not allowed"),
        ("tanh(*x)", "column 6: this is not allowed"),
        ("import os", "column 1: this is not a formula"),
        ("x.y = 2", "column 1: expected a name before ="),
        ("x; while x: x", "invalid syntax|this is not a formula"),
        ("", "the formula is empty"),
        ("2 + 3", "the formula has no variable"),
        ("(" * 300 + "x" + ")" * 300, "too many nested parentheses"),
        ("-" * 9000 + "x", "too deep|nested|recursion|complex"),
        ("x\0", "null"),
        ("x + 1" * 5000, "the formula has 25,000 characters; expected at most"),
    ],
)
def test_what_is_no_formula_is_refused_at_its_column(formula: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        evaluate(formula, {} if formula == "2 + 3" else {"x": 2.0})


def test_a_number_that_the_formula_does_not_use() -> None:
    with pytest.raises(ArgumentError, match="x3=1 was passed, but x3 is not in the formula"):
        evaluate("x1 + x2", {"x1": 1.0, "x2": 2.0, "x3": 1.0})


def test_a_long_sum_is_computed_without_recursion() -> None:
    limit = sys.getrecursionlimit()
    formula = "+".join(["x"] * 2000)
    try:
        sys.setrecursionlimit(10**6)  # for Python's parser alone
        assert evaluate(formula, {"x": 0.5}).data == 1000.0
    finally:
        sys.setrecursionlimit(limit)


def test_noise_never_does_anything_but_raise_one_error() -> None:
    rng = random.Random(1)
    signs = "x tanh ( ) + - * ** / . , = ; 1 2.5 [ ] lambda : ' if else _ __class__ é \\ # 1e999 { } @ % := not"
    pieces = [*signs.split(), " ", "\n", "9" * 50]
    computed = 0
    for _ in range(3000):
        formula = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 9)))
        try:
            computed += isinstance(evaluate(formula, {"x": 2.0}), Value)
        except ArgumentError:
            continue
    assert computed > 10


# -- the command ------------------------------------------------------------------------------------------------------


def test_it_prints_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["draw", "tanh(x1*w1 + x2*w2 + b)", *NEURON]) == 0
    assert capsys.readouterr().out == TREE


def test_it_prints_the_whole_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["draw", " + ".join(["x"] * 100), "x=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("+  data" in line for line in lines) == 99
    assert "more value" not in lines[-1]


def test_in_a_terminal_that_has_few_signs() -> None:
    command = [sys.executable, "-m", "wengert", "draw", "x*x", "x=3"]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.stdout.decode("ascii").splitlines() == ["*  data 9  grad 1", "|- #1 x  data 3  grad 6", "`- see #1 x"]


def test_it_prints_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["draw", "x*w", "x=2", "w=-3", "--steps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("0 forward: ")
    assert any("grad of x = " in line and line.endswith("= -3") for line in lines)


def test_it_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, page, played = (str(tmp_path / name) for name in ("g.svg", "g.html", "steps.html"))
    assert cli.main(["draw", "x*w", "x=2", "w=-3", "-o", svg, "--html", page]) == 0
    assert cli.main(["draw", "x*w", "x=2", "w=-3", "--steps", "--html", played]) == 0
    assert capsys.readouterr().out.split() == [svg, page, played]
    ET.fromstring(Path(svg).read_text(encoding="utf-8"))
    assert "<script" not in Path(page).read_text(encoding="utf-8")
    assert "<script" in Path(played).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["draw"], "the following arguments are required: formula$"),
        (["draw", "-x*w", "x=2", "w=3"], r"^wengert draw: unrecognized arguments: -x\*w; a formula that begins with"),
        (["draw", "x", "x=2", "--setps"], "^wengert draw: unrecognized arguments: --setps$"),
        (["draw", "x", "x"], "'x' does not have the form x=2"),
        (["draw", "x", "x=two"], "'x=two' does not have the form x=2"),
        (["draw", "x +", "x=2"], "wengert draw: column 4: invalid syntax"),
        (["draw", "x", "x=2", "-o", "g.jpg"], r"g\.jpg' has no known suffix: expected \.svg"),
        (["draw", "x", "x=2", "-o", "nowhere/at/all/g.svg"], "cannot write nowhere/at/all/g.svg: No such file"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = cli.main(arguments)
    except SystemExit as stop:
        status = stop.code  # type: ignore[assignment]
    assert status == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(words, err)
    assert err.count("\n") == 1
