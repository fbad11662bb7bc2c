"""What CONTRIBUTING.md says is all that it takes: its diffs fit the package, and what they add works everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

ROOT = Path(__file__).resolve().parent.parent


def applied(tmp_path: Path, section: str) -> Path:
    """A folder with a copy of the package, to which `git apply` has applied the diffs of a section of CONTRIBUTING.md.

    It is no repository, so no path has a prefix but `a/src` and `b/src`.
    """
    if shutil.which("git") is None:
        pytest.skip("needs git")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {re.escape(section)}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    ignored = shutil.ignore_patterns("*.so", "*.pyd")
    shutil.copytree(ROOT / "src" / "wengert", tmp_path / "wengert", ignore=ignored)
    for diff in re.findall(r"```diff\n(.*?)```", found, re.DOTALL):
        command = ["git", "apply", "-p2", "--verbose", "-"]
        outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
        done = subprocess.run(
            command, cwd=tmp_path, input=diff, capture_output=True, text=True, env=outside, check=False
        )
        assert done.returncode == 0, f"a diff of {section!r} does not apply:\n{done.stderr}"
    return tmp_path


def run(folder: Path, program: str) -> str:
    """What a program prints that imports the package from a folder."""
    command = [sys.executable, "-W", "error", "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- an operation ------------------------------------------------------------------------------------------------------


OPERATION = """
import wengert
from wengert import Value, functions
from wengert.ops import BUILT_IN, BY_NAME

def near(some, others, error=1e-14):
    assert all(abs(a - b) <= error for a, b in zip(some, others, strict=True)), (some, others)

def f(v):
    return wengert.softsign(v)

x = Value(0.5, "x")
y = x.softsign()
y.backward()
near([y.data, x.grad, f(0.5)], [1 / 3, 1 / 1.5**2, 1 / 3])
row = BY_NAME["softsign"]
"""

COMPILED = """
import numpy as np
from wengert.compiler.backends import BACKENDS

w, points = Value(0.75, "w"), [0.5, -2.0]

@wengert.compile
def compiled(v):
    return f(v * w) * v

near(compiled.map(points).tolist(), [f(0.75 * v) * v for v in points])
compiled.mean(points).backward()
assert "fell back" not in compiled.report() and "array operations" in compiled.report(), compiled.report()
expected = sum([v * v / (1.0 + abs(0.75 * v)) ** 2 for v in points]) / 2.0
near([w.grad], [expected])

def printed(language):
    there = {}
    text = compiled.source(language)
    assert "np.vectorize" not in text, text  # it is written out, not called element by element
    exec(text, there)
    return next(thing for name, thing in there.items() if name.startswith("compiled"))
"""

WHERE = {
    "the engine": """
assert row.code < BUILT_IN
assert functions.softsign(-3.0) == wengert.softsign(-3.0) == -0.75
assert "softsign" in wengert.__all__
assert wengert.nn.Neuron(2, activation="softsign").activation == "softsign"
""",
    "the derivatives": """
first, second = wengert.grad(f), wengert.grad(wengert.grad(f))
near([first(0.5), second(0.5), second(-0.5)], [1 / 1.5**2, -2 / 1.5**3, 2 / 1.5**3])
""",
    "check_gradients": """
assert {c.order for c in wengert.check_gradients(f, 0.5).comparisons} == {1, 2}
wrong = row._replace(partials=lambda out, x: 1.001 * row.partials(out, x))
assert not wengert.check_gradients(wrong, 0.5, order=1, raise_exception=False)
""",
    "the drawings": """
assert "softsign" in wengert.draw(y).svg
assert "softsign" in wengert.draw(y).to_dot()
assert "softsign" in str(wengert.tree(y))
""",
    "explain": """
assert "softsign(x)" in str(wengert.explain(x, y))
""",
    "a formula": """
from wengert.view.formula import evaluate
assert evaluate("softsign(x)", {"x": 0.5}).data == y.data
""",
}

PRINTED = {
    "numpy": """
value, slopes = printed("numpy")(np.array(points), np.array(0.75))
near([value, *slopes], [compiled.mean(points).data, expected])
""",
    "torch": """
import torch
weight = torch.tensor(0.75, dtype=torch.float64, requires_grad=True)
value = printed("torch")(torch.tensor(points, dtype=torch.float64), weight)
value.backward()
near([value.item(), weight.grad.item()], [compiled.mean(points).data, expected])
""",
    "jax": """
import jax
program = printed("jax")
value, slope = jax.value_and_grad(program, argnums=1)(np.array(points), 0.75)
near([float(value), float(slope)], [compiled.mean(points).data, expected])
""",
}

JAVASCRIPT = """
from wengert.view.javascript import Script
script = Script()
rules = script.rules(row, 1)
assert wengert.steps(y).page().count("softsign") > 0
print(script.definitions())
print(f"const [value,partials]={rules};console.log(value(-3),partials(value(-3),-3)[0])")
"""


@pytest.fixture(scope="module")
def with_softsign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return applied(tmp_path_factory.mktemp("operation"), "An operation in one row")


@pytest.mark.parametrize("program", WHERE.values(), ids=WHERE)
def test_one_row_is_found_by(program: str, with_softsign: Path) -> None:
    run(with_softsign, OPERATION + program)


def test_one_row_is_shown_by_the_stub(with_softsign: Path) -> None:
    program = f"import runpy; print(runpy.run_path({str(ROOT / 'tools' / 'make_stubs.py')!r})['stub']())"
    stub = run(with_softsign, program)
    assert "    def softsign(self, /) -> Value: ...\n" in stub
    assert "@overload\ndef softsign(x: float, /) -> float: ...\n" in stub


@pytest.mark.sampled(4)
@pytest.mark.parametrize("library", ["mpmath", *PRINTED])
def test_one_row_is_compared_with_a_library_and_printed_for_it(library: str, with_softsign: Path) -> None:
    """NumPy has no gradients to compare with, and mpmath no arrays; the others are imported once for both."""
    pytest.importorskip("numpy")
    pytest.importorskip(library)
    compared = f"""
report = wengert.compare(f, 0.5, against={library!r})
assert report.largest <= 2.0, report
assert "no counterpart" not in str(report)
"""
    printed = COMPILED + PRINTED[library] if library in PRINTED else ""
    run(with_softsign, OPERATION + (compared if library != "numpy" else "") + printed)


def test_one_row_is_computed_by_the_page_of_steps(with_softsign: Path) -> None:
    program = run(with_softsign, OPERATION + JAVASCRIPT)
    assert "=>" in program
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, to run JavaScript")
    done = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True)
    assert [float(number) for number in done.stdout.split()] == [-0.75, 1 / 16]


# -- an optimizer and a loss -------------------------------------------------------------------------------------------


TASK = """
import random, wengert
from wengert import checkpoint, losses, optim
from wengert.nn import MLP
from wengert.training import fit

X = [[i / 8, (i * i % 7) / 7] for i in range(24)]
Y = [2.0 * a + b for a, b in X]

def trained(backend, make, loss=losses.mse, epochs=6, model=None, optimizer=None):
    if model is None:
        model = MLP(2, [8, 1], rng=random.Random(0))
    optimizer = optimizer or make(model)
    fit(model, loss, X, Y, optimizer, epochs, 8, seed=0, progress=False, backend=backend)
    return model, optimizer

def near(some, others):
    assert all(abs(a - b) <= 1e-9 * (1.0 + abs(b)) for a, b in zip(some, others, strict=True)), (some, others)

BACKENDS = ["eager", "numpy"] if {numpy} else ["eager"]
"""


OPTIMIZER = """
from wengert.optim import RMSprop
assert "RMSprop" in optim.__all__

x = wengert.Value(1.0)
optimizer = RMSprop([x], lr=0.1, alpha=0.75)
(x * x).backward()
optimizer.step()
assert abs(x.data - (1.0 - 0.1 * 2.0 / (1.0 + 1e-8))) < 1e-15, x
assert repr(optimizer) == "RMSprop(1 parameter, lr=0.1, alpha=0.75, eps=1e-08)", optimizer
assert optimizer.state_dict() == {"algorithm": "RMSprop", "steps": 1, "square": [1.0]}
optimizer.freeze(x)
optimizer.step()
assert optimizer.state_dict()["square"] == [1.0]
try:
    RMSprop([x], alpha=1.0)
except wengert.errors.ArgumentError as error:
    assert "alpha is 1.0" in str(error)

flat = []
if "numpy" in BACKENDS:
    from wengert.training.steps import FlatSteps
    step = FlatSteps.step
    FlatSteps.step = lambda *given: flat.append(1) or step(*given)
runs = [trained(backend, RMSprop) for backend in BACKENDS]
for model, optimizer in runs:
    near([p.data for p in model.parameters()], [p.data for p in runs[0][0].parameters()])
    near(optimizer.state_dict()["square"], runs[0][1].state_dict()["square"])
assert len(flat) == 18 * (len(BACKENDS) - 1), "the array program makes its steps on arrays"

model, optimizer = trained("eager", RMSprop, epochs=3)
checkpoint.save(model, "half.safetensors", optimizer=optimizer)
twin = MLP(2, [8, 1])
again = RMSprop(twin)
checkpoint.load(twin, "half.safetensors", optimizer=again)
assert again.state_dict() == optimizer.state_dict()
for one, its in ((model, optimizer), (twin, again)):
    trained("eager", None, model=one, optimizer=its)
assert [p.data for p in model.parameters()] == [p.data for p in twin.parameters()]
print("done")
"""


LOSS = """
assert "poisson" in losses.__all__
z = wengert.Value(0.5)
loss = losses.poisson(z, 3.0)
loss.backward()
near([loss.data, z.grad], [2.718281828459045**0.5 - 1.5, 2.718281828459045**0.5 - 3.0])
wengert.check_gradients(lambda a, b: losses.poisson([a, b], [1.0, 2.0]), (0.3, -0.7))

if "numpy" in BACKENDS:
    w = wengert.Value(0.7)
    plain = lambda a, t: losses.poisson([w * a, w], [t, 2.0])
    compiled = wengert.compile(plain)
    near(compiled.map([0.1, 0.2], [1.0, 3.0]).tolist(), [plain(0.1, 1.0).data, plain(0.2, 3.0).data])
    assert "exp" in compiled.source()

runs = [trained(backend, lambda m: optim.SGD(m, 0.01), losses.poisson)[0] for backend in BACKENDS]
for model in runs:
    near([p.data for p in model.parameters()], [p.data for p in runs[0].parameters()])

model = MLP(2, [8, 1], rng=random.Random(0))
loss = wengert.mean([losses.poisson(model(x), y) for x, y in zip(X, Y)])
loss.backward()
for p in model.parameters():
    p.data += 0.05 * p.grad
assert "wrong sign of the update" in wengert.diagnose(model, loss).kinds
print("done")
"""


@pytest.mark.parametrize(
    ("section", "program"),
    [("An optimizer in one class", OPTIMIZER), ("A loss in one function", LOSS)],
)
def test_what_a_section_adds_works_everywhere(section: str, program: str, tmp_path: Path) -> None:
    task = TASK.replace("{numpy}", str(find_spec("numpy") is not None))
    assert run(applied(tmp_path, section), task + program) == "done\n"
