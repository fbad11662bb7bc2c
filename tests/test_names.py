"""Where names are, what is asked of `wengert` and stands elsewhere, that the documentation names what is there, and
which words are no names any more.
"""

from __future__ import annotations

import ast
import itertools
import json
import pkgutil
import random
import re
import subprocess
import sys
import tokenize
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import wengert
from wengert import data, losses, nn, optim

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
API = {path.stem: path.read_text(encoding="utf-8") for path in PAGES if path.stem != "course"}  # not of this package
WRITTEN = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*.*")),
    *sorted((ROOT / "examples").glob("*/*.py")),
]

ELSEWHERE = {  # what users ask `wengert` for, and the module that has it
    "MLP": "nn",
    "Neuron": "nn",
    "Module": "nn",
    "mse": "losses",
    "cross_entropy": "losses",
    "SGD": "optim",
    "clip_grad_norm": "optim",
    "moons": "data",
    "train_test_split": "data",
    "accuracy": "training",
    "predict": "training",
    "save": "checkpoint",
    "Diagnosis": "diagnosis",
    "Anomaly": "checking.anomalies",
    "GradientReport": "checking.gradients",
    "Instruction": "graph",
    "ArgumentError": "errors",
    "plot_decision_boundary": "view.plots",
    "plot_network": "view.plots",
    "Drawing": "view.graph.draw",
    "Explanation": "view.explain",
}


@pytest.mark.parametrize(("name", "module"), ELSEWHERE.items())
def test_a_name_of_a_submodule_is_answered_by_where_it_is(name: str, module: str) -> None:
    here = rf"{name} is in wengert\.{module}: write from wengert\.{module} import {name}"
    with pytest.raises(ImportError, match=here):
        exec(f"from wengert import Value, {name}")
    assert not hasattr(wengert, name)
    with pytest.raises(AttributeError, match=rf"module 'wengert' has no attribute '{name}': {here}"):
        getattr(wengert, name)
    exec(f"from wengert.{module} import {name}")  # as it says


def test_every_public_name_of_the_modules_of_the_reference_is_answered_so() -> None:
    no_names = ("apps.cli", "compiler", "estimator", "checkpoint.safetensors")
    no_names += ("view.graph.layout", "view.graph.tree")
    named = re.findall(r"automodule:: wengert\.([\w.]+)\n", "".join(API.values()))
    modules = {module for module in named if not module.startswith(no_names)}
    assert {"nn", "view.plots", "checking.gradients"} < modules
    names = {name for module in modules for name in import_module(f"wengert.{module}").__all__}
    for name in sorted(names - {*wengert.__all__}):
        with pytest.raises(ImportError, match=rf"{name} is in wengert\.[\w.]+: write from wengert"):
            exec(f"from wengert import {name}")


WITHIN = {  # modules that no reader imports: what is public of them, other modules and `wengert` itself offer
    *("engine", "functions", "handmade", "modes", "node", "ops", "parameters"),
}


def test_each_public_module_has_a_page_of_the_reference() -> None:
    top = {module.name for module in pkgutil.iter_modules(wengert.__path__) if not module.name.startswith("_")}
    packages = {"apps", "checking", "derivatives", "view"}  # whose modules have pages
    pages = {page for page in API if page.partition(".")[0] not in packages | {"training"}}
    assert pages - {"wengert"} | {"training"} == top - WITHIN - packages
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for page, text in API.items():
        assert f"](api/{page}.md)" in listed
        assert f"\napi/{page}\n" in listed
        assert text.startswith("# wengert")
        assert page == "wengert" or f"automodule:: wengert.{page}" in text
    for home in wengert._HOMES:  # where a name is looked for
        assert any(f"automodule:: wengert.{home}" in text for text in API.values()), home


def test_a_name_that_is_nearly_one_is_answered_by_that() -> None:
    with pytest.raises(AttributeError, match="there is no sotfmax in wengert; did you mean softmax"):
        wengert.sotfmax  # noqa: B018
    with pytest.raises(ImportError, match="did you mean check_gradients"):
        exec("from wengert import check_gradient")
    for module, name, meant in ((losses, "MSE", "mse"), (optim, "sgd", "SGD"), (nn, "Nueron", "Neuron")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; did you mean {meant}"):
            getattr(module, name)


LAZY = """
lazy from wengert import Value, checkpoint, compile, draw, fit, grad, nn, training
assert compile(lambda x: x * x)(3.0) == 9.0 and Value(2.0).data == 2.0 and grad(lambda x: x * x)(3.0) == 6.0
print(callable(draw), callable(fit), checkpoint.__name__, nn.__name__, training.__name__)
"""


def test_names_that_are_there_are_no_modules_that_are_missing() -> None:
    """A lazy import asks for a module of that name first: of 3.15."""
    for name in dir(wengert):
        wengert._Signpost.find_spec(f"wengert.{name}")
    if sys.version_info >= (3, 15):
        done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True)
        assert done.stdout == "True True wengert.checkpoint wengert.nn wengert.training\n", done.stderr


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("x.softmax()", "wengert.softmax([x, x])"),
        ("x.sum()", "sum([x, x])"),
        ("x.numpy()", "x.data"),
        ("x.add_(1.0)", "x.data -= 0.1 * x.grad"),
        ("x.T", "list(zip(*[[x], [x]]))"),
        ("x.size", "len([x, x])"),
        ("x.max()", "wengert.max([x, x])"),
        ("x.norm()", "wengert.norm([x])"),
        ("x.requires_grad", "wengert.no_grad()"),
        ("wengert.tensor(2.0)", "wengert.Value(2.0)"),
        ("wengert.jit(f)", "wengert.compile(f)"),
        ("wengert.vmap(f)", "wengert.compile(f).map([1.0, 2.0])"),
        ("wengert.manual_seed(1)", "random.seed(1337)"),
        ("nn.Linear(3, 4)", 'nn.Layer(3, 4, "linear")'),
        ("nn.ReLU()", 'nn.MLP(3, [4, 4], activation="relu")'),
        ("nn.CrossEntropyLoss()", "losses.cross_entropy([x, x], 0)"),
        ("losses.MSELoss()", "losses.mse(x, 1.0)"),
        ("losses.nll_loss", "losses.cross_entropy([x, x], 0)"),
        ("optimizer.param_groups", "optimizer.lr"),
        ("optimizer.minimize()", "optimizer.step()"),
        ("optim.lr_scheduler", "optim.SGD(model, lambda k: 0.99**k)"),
        ("data.make_moons()", "data.moons(100)"),
        ("model.forward([1.0, 2.0])", "model([1.0, 2.0])"),
        ("model.predict([[1.0, 2.0]])", "wengert.training.predict(model, [[1.0, 2.0]])"),
        ("model.save('x')", "wengert.checkpoint.save(model, tmp_path / 'x')"),
        ("model.backward()", "losses.mse(model([1.0, 2.0]), 1.0).backward()"),
    ],
)
def test_what_other_libraries_have_is_answered_by_what_is_written_here(
    written: str, answer: str, tmp_path: Path
) -> None:
    model, x = nn.MLP(2, [1]), wengert.Value(2.0)
    known = {
        "wengert": wengert,
        "nn": nn,
        "losses": losses,
        "data": data,
        "optim": optim,
        "optimizer": optim.SGD(model, 0.1),
        "random": random,
        "model": model,
        "tmp_path": tmp_path,
        "x": x,
        "f": lambda x: x * x,
    }
    with pytest.raises(AttributeError) as caught:
        exec(written, known)
    words = re.escape(re.sub(r"[\[(].*", "", answer).removeprefix("nn.").removeprefix("optim.").removeprefix("data."))
    assert re.search(rf"has no attribute '\w+': .*{words}", str(caught.value))
    exec(answer, known)  # as it says


def test_a_model_may_have_a_name_that_other_libraries_have() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.train = 3.0

        def forward(self, x: float) -> float:
            return self.train * x

    assert wengert.compile(Net().forward)(2.0) == Net().forward(2.0) == 6.0
    assert {"forward", "train"} <= {*dir(Net())}


@pytest.mark.parametrize("name", ["Foo", "mlp", "_private"])
def test_a_name_that_is_nowhere(name: str) -> None:
    assert not hasattr(wengert, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'wengert'"):
        exec(f"from wengert import {name}")
    with pytest.raises(AttributeError, match=f"module 'wengert' has no attribute '{name}'"):
        getattr(wengert, name)
    assert not hasattr(wengert.view, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'wengert.view'"):
        exec(f"from wengert.view import {name}")


GONE = {  # words that were names here, and what the field calls it
    "Mirror": "ForeignGraph", "mirror": "foreign", "twin": "node_for",
    "Trail": "CallTrace", "trail": "call_trace", "Surroundings": "Captures", "surroundings": "captures",
    "PlainRun": "PurityCheck", "watched": "is_watched", "outside": "captures",
    "stand_in": "proxy", "STANDINS": "PROXIES",
    "seat": "workspace", "is_taken": "acquire", "take": "acquire", "leave": "release",
    "Served": "CacheEntry", "Recording": "Specialization", "Plan": "Executable",
    "Form": "Signature", "Leaf": "ArraySpec", "Fixed": "StaticSpec", "Slot": "ArgumentReader",
    "slopes": "grads", "both": "forward_backward", "both_code": "forward_backward_code", "back": "backward",
    "refusal": "fallback_reason", "is_due": "is_milestone", "compared": "checked_calls", "PROBATION": "CHECKED_CALLS",
    "trusted": "", "trusts": "", "settle": "", "direct": "", "short": "", "look": "", "look_of": "", "alike": "",
    "ways": "", "time_ways": "", "choose": "", "consider": "", "adopt": "", "want": "",
    "hold": "guards_pass", "holds": "guards_pass", "holding": "matching_rows",
    "plainly": "eager", "eagerly": "eager", "by_engine": "eager",
    "agrees": "matches", "differs": "mismatch", "waiting": "unmatched",
    "turn": "iteration", "turns": "iterations", "in_turn": "loop_body", "kept": "carry", "Kept": "Carry",
    "window": "slice", "Window": "Slice", "spent": "donated", "early": "must_materialize",
    "whole": "int", "wholes": "ints", "one": "call_single",
    "weigh": "set_cotangents", "steady": "reused", "fitting": "validated", "handed": "lifted_values",
    "tells_bools": "observes_bools",
    "taker": "iter_rows", "by_rows": "iter_rows", "by_place": "iter_rows",
    "main_of": "primal", "beside": "aux", "Auxiliary": "Aux",
    "together": "reduce_results", "combined": "reduce_results",
    "slip": "mistake", "slips": "mistakes", "Slip": "Mistake", "trial": "probe", "trials": "probes", "told": "reported",
    "About": "Subject", "doors": "interop", "house": "architecture", "rooms": "packages", "beyond": "optional",
}  # fmt: skip


def names_of(path: Path) -> set[str]:
    """A module and its classes, their methods and attributes, without the underscores that they begin with."""
    found = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            fields = [x.target for x in node.body if isinstance(x, ast.AnnAssign)]
            fields += [target for x in node.body if isinstance(x, ast.Assign) for target in x.targets]
            found |= {node.name, *(x.name for x in node.body if isinstance(x, ast.FunctionDef))}
            found |= {x.id for x in fields if isinstance(x, ast.Name)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return {name.lstrip("_") for name in found}


def test_words_that_nobody_knows_do_not_come_back() -> None:
    package = Path(wengert.__path__[0])
    found = {path.relative_to(package).as_posix(): names_of(path) & GONE.keys() for path in package.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}, "see what is written instead in GONE"


EMPTY = {"made", "found", "known"}  # say nothing of a thing: a step, an array, a result, a place


def test_names_in_the_compiler_say_what_a_thing_is() -> None:
    package = Path(wengert.__path__[0]) / "compiler"
    used = {}
    for path in package.rglob("*.py"):
        with path.open("rb") as file:
            words = [word.string for word in tokenize.tokenize(file.readline) if word.type == tokenize.NAME]
        at = {f"{before} {word}" for before, word in itertools.pairwise(words) if word in EMPTY}
        used[path.relative_to(package).as_posix()] = at - {"code known"}  # a module
    assert {path: words for path, words in used.items() if words} == {}
    for path in package.rglob("*.pxd"):
        assert not EMPTY.intersection(re.findall(r"\w+", path.read_text(encoding="utf-8"))), path


def test_the_words_are_found_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "mirror.py"
    path.write_text("class Slip:\n    twin = 1\n    seat: int\n    def _hold(self): self.kept = turn = 2\n")
    assert names_of(path) == {"mirror", "Slip", "twin", "seat", "hold", "kept"}


def named_in_the_documentation() -> list[str]:
    """Every `wengert.x.y` of the pages and the examples, each but once; no file names, nothing that a page makes."""
    found = set()
    for page in WRITTEN:
        for name in re.findall(r"(?<![\w./-])wengert((?:\.[A-Za-z_]\w*)+)", page.read_text(encoding="utf-8")):
            found.add(name.removeprefix("."))
    found = {name for name in found if name.partition(".")[0] != "course"}  # of another distribution
    return sorted(found - {"name", "softsign"})  # any name; the operation that a page registers


EACH_BY_ITSELF = """
import json, os, subprocess, sys
import wengert
for module, program in json.loads(sys.argv[1]).items():
    if not hasattr(os, "fork"):
        failed = subprocess.run([sys.executable, "-c", "import wengert; " + program]).returncode
    elif child := os.fork():
        failed = os.waitpid(child, 0)[1]
    else:
        exec(program)
        os._exit(0)
    if failed:
        print(module, program)
"""


def test_what_the_documentation_names_is_there_after_import_wengert() -> None:
    """In a process for each module that is imported only then: another may have loaded it. (Where there is fork, in a
    copy of one process, which imports the package once.)
    """
    modules: dict[str, list[str]] = {}
    for name in named_in_the_documentation():
        first = name.partition(".")[0]
        modules.setdefault("" if first in wengert.__all__ else name if first == "view" else first, []).append(name)
    assert {"", "training", "view.plots"} < set(modules)
    if not find_spec("sklearn"):
        modules.pop("estimator", None)  # which is one of its estimators
    programs = {module: "; ".join(f"wengert.{name}" for name in names) for module, names in modules.items()}
    done = subprocess.run([sys.executable, "-c", EACH_BY_ITSELF, json.dumps(programs)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
