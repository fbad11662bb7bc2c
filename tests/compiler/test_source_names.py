"""Names in the programs that `source` prints: whatever functions and arguments are called, the programs run."""

from __future__ import annotations

import builtins
import ctypes
import keyword
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from wengert import Value  # noqa: E402
from wengert.compiler.backends.indexing import Names  # noqa: E402
from wengert.compiler.backends.native import reserved  # noqa: E402
from wengert.compiler.backends.native import source as c_source  # noqa: E402
from wengert.compiler.backends.spellings import LIBRARIES  # noqa: E402

pytestmark = pytest.mark.once  # what is printed is the array program

HEADERS = "".join(f"#include <{name}.h>\n" for name in ("math", "stdint", "stdlib", "string"))
DIALECTS = {  # the languages in which a program has to compile, with all warnings taken for errors
    "c99": ("gcc", "-std=c99"),
    "c17 of GNU": ("gcc", "-std=gnu17"),
    "c23 of GNU": ("gcc", "-std=gnu2x"),
    "all that GNU declares": ("gcc", "-std=gnu17", "-D_GNU_SOURCE"),
    "c++": ("g++", "-x", "c++"),
    "c++20": ("g++", "-x", "c++", "-std=c++20"),
}
_OTHERS = """été naïve 变量 α __init__ __x x_ x__ x_1 _ _x _Complex _Bool __func__ t1 s2 c3 t i j jj ii example n mean
work out dx seed valid np jax jnp torch numpy double_t M M_ I J NAN my_t print self this lambda_ default 名前"""
OTHERS = _OTHERS.split()


def known() -> list[str]:
    """Names that some language knows: keywords, what the headers declare here, macros, Python's own."""
    declared: set[str] = set()
    if shutil.which("gcc"):
        for options in (["-D_GNU_SOURCE", "-std=gnu2x"], ["-std=gnu17"]):
            for more in (["-P"], ["-dM"]):
                command = ["gcc", "-x", "c", *options, "-E", *more, "-"]
                text = subprocess.run(command, input=HEADERS, capture_output=True, text=True, check=True).stdout
                declared |= set(re.findall(r"#define (\w+)" if more == ["-dM"] else r"\b(\w+)\s*[(;]", text))
    everywhere = [*keyword.kwlist, *dir(builtins), *reserved.KEYWORDS.split(), *reserved.LIBRARY.split(), *OTHERS]
    return sorted({*everywhere, *[name for name in declared if not name.startswith("_") and not name.isdigit()]})


NAMES = known()
w = Value(0.7)


def function(x: Any) -> Any:
    return (w * x).tanh() + x * 2.0


def sources(name: str, language: str) -> str:
    """The program of a function of a name, whose argument has the name too."""
    space: dict[str, Any] = {"w": w}
    given = name if name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__" else "x"
    exec(f"def f({given}):\n    return (w * {given}).tanh() + {given} * 2.0", space)
    space["f"].__name__ = name
    compiled = wengert.compile(space["f"])
    compiled(0.5)
    text: str = compiled.source(language, gradient=True)
    return text


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    """The program of a function of each name, whose argument has the name too, from one recording."""
    compiled = wengert.compile(function)
    compiled(0.5)
    recording = compiled._server.latest()
    made = {}
    for name in NAMES:
        recording.kernel.inputs[0].name = name
        made[name] = c_source(recording, name, gradient=False)
    return made


def titles(programs: dict[str, str]) -> list[str]:
    return [re.search(r"^double (\w+)\(", text, re.M)[1] for text in programs.values()]  # type: ignore[index]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_c_compilers_take_every_name(dialect: str, programs: dict[str, str], tmp_path: Path) -> None:
    """All programs as one text; functions that would have one name in it get another by a macro around each."""
    compiler, *options = DIALECTS[dialect]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    seen: set[str] = set()
    parts = ["#include <string.h>", "#include <stdlib.h>"]
    if compiler == "g++":
        parts.append('extern "C" {')
    for text, title in zip(programs.values(), titles(programs), strict=True):
        if title not in seen:  # such as é and è, each alone in its file
            seen.add(title)
            parts.append(text)
    parts += ["}"] * (compiler == "g++")
    headers = [line for line in "\n".join(parts).splitlines() if line.startswith("#include")]
    body = [line for line in "\n".join(parts).splitlines() if not line.startswith("#include")]
    source, library = tmp_path / "all.c", tmp_path / "all.so"
    source.write_text("\n".join([*dict.fromkeys(headers), *body]), encoding="utf-8")
    command = [
        compiler,
        *options,
        "-Wall",
        "-Werror",
        "-O0",
        "-shared",
        "-fPIC",
        str(source),
        "-o",
        str(library),
        "-lm",
    ]
    done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    shared = ctypes.CDLL(str(library))
    want, given = function(0.5).data, [np.array([number]) for number in (0.5, 0.7)]
    for title in seen:
        run = shared[title]
        run.restype = ctypes.c_double
        value = run(*[ctypes.c_void_p(x.ctypes.data) for x in given])
        assert value == pytest.approx(want, rel=1e-15), title
    assert len(seen) > 0.9 * len(programs)


def test_a_function_takes_the_place_of_none_of_the_c_library(programs: dict[str, str]) -> None:
    library = ctypes.CDLL("libm.so.6") if shutil.which("gcc") else None
    for title in titles(programs):
        assert library is None or not hasattr(library, title), f"a program that links {title} would lose C's own"
        assert not reserved.is_reserved(title, external=True)


@pytest.mark.parametrize("language", LIBRARIES)
def test_python_programs_hide_no_name_that_python_or_a_library_has(language: str) -> None:
    names = Names(LIBRARIES[language])
    for name in NAMES:
        free = names.free(name)
        assert free.isidentifier()
        assert not keyword.iskeyword(free)
        assert free not in dir(builtins)
        assert free not in ("np", "jnp", "jax", "torch", "numpy")


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", [*keyword.kwlist, *dir(builtins), *OTHERS])
def test_a_numpy_program_with_any_name_runs(name: str) -> None:
    text = sources(name, "numpy")
    space: dict[str, Any] = {}
    exec(text, space)
    title = re.search(r"^def (\w+)\(", text, re.M)[1]  # type: ignore[index]
    value, _ = space[title](np.array(0.5), np.array(0.7))
    assert value == pytest.approx(function(0.5).data, rel=1e-15)


def test_names_that_collide_after_they_were_changed() -> None:
    """Of arguments that differ in what C does not allow, each keeps one of its own."""

    def loss(x: Any, x_: Any, é: Any, è: Any, new: Any, new_1: Any, t1: Any, dx: Any) -> Any:
        return (w * x - x_) * 3.0 + é * 5.0 - è * 7.0 + new * 11.0 - new_1 * 13.0 + t1 * 17.0 - dx * 19.0

    compiled = wengert.compile(loss)
    numbers = [0.5, 0.25, 1.5, -0.75, 2.0, 3.0, -1.25, 0.125]
    want = compiled(*numbers).data
    space: dict[str, Any] = {}
    exec(compiled.source("numpy", gradient=False), space)
    assert space["loss"](*map(np.array, numbers), np.array(0.7)) == pytest.approx(want, rel=1e-15)
    given = re.search(r"double loss\((.*)\)", compiled.source("c", gradient=False))[1]  # type: ignore[index]
    assert len({part.split("*")[-1] for part in given.split(", ")}) == 9
