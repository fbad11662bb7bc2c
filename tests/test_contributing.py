"""What CONTRIBUTING.md says is all that it takes: each of its diffs fits the package, and what it adds works everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def applied(tmp_path: Path, section: str) -> Path:
    """A folder with a copy of the package, to which the diffs of a section of CONTRIBUTING.md have been applied."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {re.escape(section)}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    copy = tmp_path / "wengert"
    shutil.copytree(ROOT / "src" / "wengert", copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    for diff in re.findall(r"```diff\n(.*?)```", found, re.DOTALL):
        for name, hunks in re.findall(r"^--- .*\n\+\+\+ b/src/wengert/(.*)\n((?:(?!--- ).*\n)*)", diff, re.MULTILINE):
            path = copy / name
            changed = path.read_text(encoding="utf-8") if path.exists() else ""
            for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE)[1:]:
                lines = hunk.splitlines(keepends=True)
                before = "".join([line[1:] for line in lines if line[0] != "+"])
                after = "".join([line[1:] for line in lines if line[0] != "-"])
                assert not before or changed.count(before) == 1, f"the context lines of the diff are not those of {name}"
                changed = changed.replace(before, after) if before else after
            path.write_text(changed, encoding="utf-8")
    return tmp_path


def run(folder: Path, program: str) -> str:
    """What a program prints that imports the package from a folder."""
    command = [sys.executable, "-W", "error", "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
assert repr(optimizer) == "RMSprop(1 parameters, lr=0.1, alpha=0.75, eps=1e-08)", optimizer
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
    from wengert.training.flat import FlatSteps
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
