"""The architecture: who imports whom, what is public, how long a file may be, what an import costs."""

from __future__ import annotations

import ast
import functools
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import _loader

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "wengert"
FILES = sorted(PACKAGE.rglob("*.py"))

# ------------------------------------------------------------------------------------- imports run one way

STANDS_ON = {
    "_forks": [],
    "_reserve": [],
    "_signatures": [],
    "_loader": [],
    "errors": [],
    "_files": ["errors"],
    "ops": ["errors", "_forks"],
    "functions": ["ops", "_signatures"],
    "node": ["ops"],
    "engine": ["functions", "node", "_forks"],
    "modes": ["engine"],
    "handmade": ["modes"],
    "graph": ["engine"],
    "derivatives": ["graph", "handmade"],
    "linalg": ["engine"],
    "interpolation": ["linalg"],
    "compiler": ["derivatives", "interpolation", "_loader", "_reserve"],
    "checking": ["compiler"],
    "parameters": ["engine"],
    "nn": ["derivatives", "parameters"],
    "losses": ["engine"],
    "optim": ["parameters"],
    "data": ["engine"],
    "view": ["checking", "nn", "_files"],
    "training": ["compiler", "losses", "optim"],
    "checkpoint": ["training", "_files"],
    "diagnosis": ["training"],
    "estimator": ["training", "nn"],
    "apps": ["checkpoint", "data", "nn", "view", "_loader", "_files"],
    "__main__": ["apps"],
}
"""What each module stands on. It may import that, whatever that stands on, and no sibling."""

INSIDE_A_METHOD = {("training", "view")}
"""The written exception: a History draws itself."""


def below(module: str) -> set[str]:
    """Everything that a module may import."""
    direct = STANDS_ON[module]
    return set(direct).union(*map(below, direct))


def module_of(path: Path) -> str:
    """The name in STANDS_ON of a file: a folder counts as one module."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def parsed(path: Path) -> list[tuple[ast.stmt, bool]]:
    """The imports and the classes of a file, and whether each is inside a function."""
    found: list[tuple[ast.stmt, bool]] = []

    def read(block: ast.AST, late: bool) -> None:
        for node in ast.iter_child_nodes(block):
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef)):
                found.append((node, late))
            if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):  # in what an import or a class can be
                read(node, late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))

    read(ast.parse(path.read_text(encoding="utf-8")), late=False)
    return found


@functools.cache
def imports(path: Path) -> set[tuple[str, bool]]:
    """Which modules of the package a file imports, and whether inside a function."""
    found = set()
    for node, late in parsed(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are written in full, from wengert..."
            names = [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "__version__"]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "wengert":
                assert name != "wengert", f"{path.name}: import the module that is meant, not the package"
                found.add((name.split(".")[1], late))
    return found


def test_nothing_here_names_the_course_as_a_module() -> None:
    """It is a distribution of its own, which is found by its entry points."""
    files = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyi", ".pxd")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert [name for name, text in texts.items() if re.search(r"wengert_course|import wengert\.course", text)] == []


def test_the_list_names_every_module() -> None:
    assert set(STANDS_ON) == {module_of(path) for path in FILES} - {"__init__"}


@pytest.mark.once  # files are read
def test_imports_run_one_way() -> None:
    """But for `__init__`, which gathers the public names from everywhere."""
    for path in FILES:
        module = module_of(path)
        for imported, inside_a_function in imports(path) if module != "__init__" else ():
            if imported == module or (inside_a_function and (module, imported) in INSIDE_A_METHOD):
                continue
            assert imported in below(module), f"{path}: {module} may not import {imported}"


@pytest.mark.once  # files are read
def test_a_folder_is_used_through_its_face() -> None:
    """A file names no file of another folder, only what the folder's `__init__` has. (But for the package's own face,
    and `ieee`, whose types C has to find where they are declared.)
    """
    for path in FILES:
        for node, _ in parsed(path) if path != PACKAGE / "__init__.py" else ():
            if isinstance(node, ast.ImportFrom) and node.module != "wengert.ops.ieee":
                file = PACKAGE.parent.joinpath(*str(node.module).split(".")).with_suffix(".py")
                inside = file.parent == PACKAGE or file.parent in path.parents
                face = str(node.module).rpartition(".")[0]
                assert inside or not file.exists(), f"{path}: import from {face}, not from {node.module}"


# ------------------------------------------------------------------------------------- the page that shows it

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def drawn() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "make_architecture.py"))


@pytest.mark.once  # files are read
def test_the_picture_is_what_the_files_import(drawn: dict[str, Any]) -> None:
    kept = (ROOT / "docs" / "images" / "architecture.svg").read_text(encoding="utf-8")
    assert drawn["picture"]() == kept, "run python tools/make_architecture.py"


@pytest.mark.once  # files are read
def test_an_arrow_leads_to_everything_that_a_part_imports(drawn: dict[str, Any]) -> None:
    """Found by the other reader of imports, above."""
    parts, led = drawn["stands_on"](), {}
    for part in TopologicalSorter(parts).static_order():
        led[part] = {part}.union(*[led[target] for source, target in drawn["arrows"](parts) if source == part])
    for name, path in drawn["modules"]().items():
        for module, inside_a_function in imports(path):
            target = drawn["part_of"](module)
            if target and not inside_a_function and module != module_of(path):
                assert target in led[drawn["part_of"](name)], f"{name} imports {module}"


@pytest.mark.once  # files are read
def test_each_part_has_its_sentence_and_each_file_of_the_page_is_there(drawn: dict[str, Any]) -> None:
    assert drawn["captions"]().keys() == drawn["stands_on"]().keys()
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?|\w+\.py|\w+\.toml)`", PAGE)
    assert len(named) > 20
    places = [ROOT, PACKAGE, *(path for path in PACKAGE.iterdir() if path.is_dir())]
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


# ------------------------------------------------------------------------------------- the public surface

PUBLIC = """
    Graph History Table Value __version__ absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    asin asinh atan atan2 atanh beta_pdf betainc cbrt check_gradients checkpoint clamp clip compare cos cosh data det
    detect_anomaly diagnose digamma div dot draw draw_dot elu entr erf erfc errors exp exp2 explain expm1 fit
    fixed_point floor gamma_pdf gammainc gammaincc gammaln gaussian gelu grad hessian hvp hypot interp inv j0 j1
    jacobian jvp leaky_relu lgamma log log10 log1p log2 log_softmax logistic_pdf logsigmoid logsumexp losses matmul
    maximum mean minimum mod mul neg nn no_grad norm norm_cdf norm_ppf normal_cdf normal_pdf normal_ppf op optim pick
    polygamma prod reciprocal relu remainder root sigmoid sign silu sin sinc sinh softmax softplus solve sparsity sqrt
    square steps stop_gradient strict sub swish take tan tanh tree value_and_grad vjp where xlog1py xlogy
"""


def test_the_public_names_are_these() -> None:
    assert sorted(wengert.__all__) == sorted(PUBLIC.split())


def test_the_stub_of_the_functions_is_what_the_table_gives() -> None:
    program = runpy.run_path(str(ROOT / "tools" / "make_stubs.py"))
    made = program["stub"]()
    assert (PACKAGE / "functions.pyi").read_text(encoding="utf-8") == made, "run python tools/make_stubs.py"


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in wengert.__all__:
        thing = getattr(wengert, name)
        assert isinstance(thing, str) or thing.__doc__, name


OF_A_LIBRARY = {"estimator": "sklearn", "jax": "jax", "torch": "torch", "xla": "jax"}


@pytest.mark.once  # files are read
def test_every_name_in_all_exists() -> None:
    for path in FILES:
        library = OF_A_LIBRARY.get("xla" if path.parent.name == "xla" else path.stem, "sys")
        if path.stem == "__main__" or not find_spec(library):
            continue
        name = ".".join(["wengert", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        module = import_module(name)
        assert [n for n in getattr(module, "__all__", []) if not hasattr(module, n)] == [], name


# ------------------------------------------------------------------------------------- size

BUDGET = {"engine.py": 350, "table.py": 400}


@pytest.mark.parametrize("name", BUDGET)
def test_what_is_shown_can_be_read_in_one_sitting(name: str) -> None:
    (path,) = [path for path in FILES if path.name == name]
    assert len(path.read_text(encoding="utf-8").splitlines()) <= BUDGET[name]


FIELDS = 12


def fields_of(node: ast.ClassDef) -> set[str]:
    """The fields of a class: those of a dataclass, and those that `__init__` sets."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    is_record = any(name.startswith("dataclass") for name in decorators)
    if any("frozen=True" in name for name in decorators):
        return set()
    annotated = [x.target for x in node.body if isinstance(x, ast.AnnAssign)] if is_record else []
    found = {x.id for x in annotated if isinstance(x, ast.Name)}
    makers = [x for x in node.body if isinstance(x, ast.FunctionDef) and x.name in ("__init__", "__post_init__")]
    for target in [x for maker in makers for x in ast.walk(maker) if isinstance(getattr(x, "ctx", None), ast.Store)]:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            found.add(target.attr)
    return found


@pytest.mark.once  # files are read
def test_a_class_of_many_fields_says_why() -> None:
    classes = [(path, node) for path in FILES for node, _ in parsed(path) if isinstance(node, ast.ClassDef)]
    large = [(path, node) for path, node in classes if len(fields_of(node)) > FIELDS]
    assert [node.name for _, node in large if "Many fields" not in (ast.get_docstring(node) or "")] == []
    named = {node.name for _, node in classes if "Many fields" in (ast.get_docstring(node) or "")}
    assert named == {node.name for _, node in large}


@pytest.mark.once  # files are read
def test_no_two_classes_have_one_name() -> None:
    names = [node.name for path in FILES for node, _ in parsed(path) if isinstance(node, ast.ClassDef)]
    assert [name for name in sorted(set(names)) if names.count(name) > 1] == []


# ------------------------------------------------------------------------------------- what an import costs


def test_importing_loads_nothing_from_outside_python() -> None:
    program = (
        "import sys; before = set(sys.modules); import wengert; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    foreign = [name for name in loaded if name not in sys.stdlib_module_names and name != "wengert"]
    assert [name for name in foreign if "cython" not in name] == []  # Cython's run-time support is in the extension
    assert len(loaded) < 80


def test_importing_leaves_what_is_not_asked_for() -> None:
    program = "import sys, wengert; print(*sys.modules); wengert.compile, wengert.fit; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    before, after = (set(line.split()) for line in printed.splitlines())
    optional = ("apps", "checking", "checkpoint", "compiler", "diagnosis", "training", "view")
    later = {f"wengert.{name}" for name in optional}
    assert before & later == set()
    assert after & later == {"wengert.compiler", "wengert.training"}


@pytest.mark.once  # files are read
def test_it_runs_from_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "wengert.zip"
    with zipfile.ZipFile(archive, "w") as package:
        for path in [*FILES, *(PACKAGE / "assets").glob("*.*")]:
            package.write(path, path.relative_to(PACKAGE.parent))
    program = (
        "import wengert; x = wengert.Value(2.0); y = (x * x).tanh(); y.backward(); "
        "print(wengert.__file__); print(wengert._loader.status()); print(len(wengert.data.digits()[0])); "
        "print(wengert.steps(y).page().count('<script') > 0, len(str(wengert.explain(x, y))) > 99)"
    )
    surroundings = {**os.environ, "PYTHONPATH": str(archive), "WENGERT_INTERPRETED": "0"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=surroundings)
    assert done.returncode == 0, done.stderr
    file, status, digits, told = done.stdout.splitlines()
    assert file.startswith(str(archive))
    assert status.startswith("interpreted (installed without extensions")
    assert (digits, told) == ("1797", "True True")


# ------------------------------------------------------------------------------------- which engine runs


def test_setup_and_loader_name_the_same_modules() -> None:
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    (modules,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES"
    )
    assert modules == _loader.COMPILED


def test_the_engine_is_the_one_that_the_status_names() -> None:
    assert wengert.engine.compiled == _loader.status().compiled
    suffix = os.path.splitext(str(wengert.engine.__file__))[1]
    assert suffix == (".py" if not wengert.engine.compiled else {"nt": ".pyd"}.get(os.name, ".so"))


class TestLoader:
    """The decision between extension and source, in a folder made for it."""

    suffix = _loader.EXTENSION_SUFFIXES[0]

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A package of which everything was compiled from what stands there."""
        record = ""
        for name in ("engine.py", "engine.pxd", "optim.py", "optim.pxd"):
            (tmp_path / name).write_text(name)
            record += f"{_loader.source_hash(name.encode()).hex()}  {name}\n"
            (tmp_path / (name.partition(".")[0] + self.suffix)).touch()
        self.record(tmp_path).write_text(record)
        (tmp_path / (_loader.SHARED + self.suffix)).touch()
        return tmp_path

    def record(self, folder: Path) -> Path:
        return folder / f"_compiled{os.path.splitext(self.suffix)[0]}.txt"

    def decide(self, folder: Path) -> tuple[bool, str, bool]:
        built = [name for name in _loader.COMPILED if _loader._extension(str(folder), name)]
        decision = _loader._decide(str(folder), built)
        return decision.compiled, decision.reason, bool(decision.remedy)

    @pytest.fixture(autouse=True)
    def no_wish(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("WENGERT_INTERPRETED", raising=False)

    def test_what_matches_is_used(self, folder: Path) -> None:
        assert self.decide(folder) == (True, "the extensions match their sources", False)

    def test_no_extension(self, tmp_path: Path) -> None:
        reason = "installed without extensions: as a wheel for every platform, or from sources not built yet"
        assert self.decide(tmp_path) == (False, reason, False)

    def test_the_reason_that_the_build_left(self, tmp_path: Path) -> None:
        self.record(tmp_path).write_text("not compiled: the C compiler failed: ‘x’ undeclared\n", encoding="utf-8")
        assert self.decide(tmp_path) == (False, "the C compiler failed: ‘x’ undeclared", True)

    def test_extensions_that_are_gone(self, folder: Path) -> None:
        for name in ("engine", "optim"):
            (folder / f"{name}{self.suffix}").unlink()
        assert self.decide(folder) == (False, "the extensions were deleted after they were compiled", False)

    def test_extensions_for_another_python(self, tmp_path: Path) -> None:
        (tmp_path / "_compiled.cpython-39-z80.txt").touch()
        reason = f"compiled for cpython-39-z80 only, and this Python is {_loader.KIND}"
        assert self.decide(tmp_path) == (False, reason, True)

    @pytest.mark.parametrize("name", ["engine.py", "engine.pxd", "optim.py", "optim.pxd"])
    def test_an_edit_is_noticed(self, folder: Path, name: str) -> None:
        (folder / name).write_text("edited")
        assert self.decide(folder) == (False, f"{name} has changed since it was compiled", True)

    def test_a_source_that_is_gone(self, folder: Path) -> None:
        (folder / "engine.pxd").unlink()
        assert self.decide(folder) == (False, "engine.pxd was deleted after the extensions were compiled", True)

    @pytest.mark.parametrize(("name", "said"), [("optim", "optim.py"), (_loader.SHARED, _loader.SHARED)])
    def test_all_or_none(self, folder: Path, name: str, said: str) -> None:
        (folder / f"{name}{self.suffix}").unlink()
        assert self.decide(folder) == (False, f"{said} has no extension, but other modules have", True)

    def test_extensions_of_unknown_origin(self, folder: Path) -> None:
        self.record(folder).unlink()
        reason = "the record of the sources that the extensions were compiled from is missing"
        assert self.decide(folder) == (False, reason, True)

    @pytest.mark.parametrize(("wish", "compiled"), [("1", False), ("yes", False), ("0", True), ("", True)])
    def test_a_wish(self, folder: Path, monkeypatch: pytest.MonkeyPatch, wish: str, compiled: bool) -> None:
        monkeypatch.setenv("WENGERT_INTERPRETED", wish)
        assert self.decide(folder)[::2] == (compiled, False)

    def test_a_stale_extension_is_not_used_and_a_warning_says_so_once(self, tmp_path: Path) -> None:
        copy = tmp_path / "wengert"
        copy.mkdir()
        (copy / "__init__.py").write_text("from wengert import _loader\n_loader.install()\n_loader.install()\n")
        (copy / "_loader.py").write_bytes((PACKAGE / "_loader.py").read_bytes())
        (copy / "engine.py").write_text("here = 'the source'\n")
        (copy / f"engine{self.suffix}").write_bytes(b"no extension at all")
        program = "import wengert.engine; print(wengert.engine.here)"
        run = [sys.executable, "-c", program]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == "the source\n"
        assert done.stderr.count("RuntimeWarning: wengert runs interpreted, ") == 1
        assert "To compile it: pip install -e ." in done.stderr

    @pytest.mark.parametrize("wish", ["", "1"])
    def test_a_build_that_failed_is_told_once_at_the_import(self, tmp_path: Path, wish: str) -> None:
        copy = tmp_path / "wengert"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "_compiled.*", "__pycache__"))
        self.record(copy).write_text("not compiled: a C compiler is missing: gcc\n", encoding="utf-8")
        program = (
            "import wengert; from wengert import compile\n"
            "f = compile(lambda x: x * x); f(2.0)\n"
            "print(f.report()); wengert.apps.cli.main(['info'])"
        )
        program = "import wengert.apps.cli, wengert.compiler; " + program
        surroundings = {**os.environ, "PYTHONPATH": str(tmp_path), "WENGERT_INTERPRETED": wish}
        run = [sys.executable, "-W", "default", "-c", program]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=surroundings)
        assert done.returncode == 0, done.stderr
        told = done.stderr.count("RuntimeWarning: wengert runs interpreted")
        out = " ".join(done.stdout.split())  # as wide as the terminal
        failure = "interpreted (a C compiler is missing: gcc)"
        if wish:
            assert (told, _loader.COMPILE in out, out.count(failure)) == (0, False, 0)
        else:
            assert (told, _loader.COMPILE in out, out.count(failure)) == (1, True, 2)  # by report() and info
            assert _loader.COMPILE in done.stderr
            assert "a C compiler is missing: gcc. " in done.stderr


# ------------------------------------------------------------------------------------- the tree


def tracked() -> list[Path]:
    """The files under version control; of a tree without it, nothing."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    private = re.compile(rb"(?<![\w.])/(?:home|Users|root|work|workspace|mnt|private)/\w|[A-Z]:\\Users\\", re.ASCII)
    here = [str(place).encode() for place in (ROOT, Path.home()) if len(place.parts) > 1]
    found = []
    for path in tracked():
        text = path.read_bytes()
        if b"\0" not in text and (private.search(text) or any(place in text for place in here)):
            found.append(path.relative_to(ROOT).as_posix())
    assert found == []
