"""The C function that a compiled function prints: it stands alone, compiles without a warning, and gives the same."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler.checks import difference
from wengert import Value
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

from tests.compiler.recurrences import CARRIED, euler  # noqa: E402  (they need NumPy)
from tests.compiler.test_sources import FUNCTIONS, MODELS  # noqa: E402
from tests.compiler.test_sources import called as recorded  # noqa: E402

pytestmark = pytest.mark.once  # what is printed is the array program

GCC = shutil.which("gcc") or ""
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover"]
needs_gcc = pytest.mark.skipif(not GCC, reason="the C compiler gcc is not installed")
counter = itertools.count()


def built(text: str, tmp_path: Path, *options: str) -> Path:
    """The library that a text is compiled to, with all warnings taken for errors."""
    source = tmp_path / f"program{next(counter)}.c"
    source.write_text(text)
    library = source.with_suffix(".so")
    command = [GCC, "-std=c99", "-Wall", "-Werror", "-O1", *options, str(source), "-lm"]
    subprocess.run([*command, "-shared", "-fPIC", "-o", str(library)], check=True, capture_output=True, text=True)
    return library


def title(text: str) -> str:
    return text.partition("\ndouble ")[2].partition("(")[0]


def passed(recording: Any) -> list[int]:
    """Which parameters are arguments of the C function: those with Values; other numbers become constants."""
    ends = np.cumsum([a.size for a in recording.kernel.params])
    own = np.arange(ends[-1] if len(ends) else 0) if recording.own is None else recording.own
    return sorted({*np.searchsorted(ends, own, "right").tolist()})


def workspace(text: str) -> int:
    """How many numbers a C function wants as memory, in its last argument; 0 if it has no such argument."""
    found = re.search(r"   work: \((\d+)\)", text)
    return int(found[1]) if found else 0


def called(text: str, tmp_path: Path, recording: Any, arrays: Any, gradient: bool) -> tuple[float, list[Any]]:
    """What the C function gives: its value, and the derivatives that it leaves."""
    function = ctypes.CDLL(str(built(text, tmp_path)))[title(text)]
    function.restype = ctypes.c_double
    kernel = recording.kernel
    params = [recording.buffers().param_arrays[n] for n in passed(recording)]
    count = next((len(x) for x, a in zip(arrays, kernel.inputs, strict=True) if a.batched), None)
    kinds = [np.int64 if a.role == "index" else np.float64 for a in kernel.inputs]
    given = [np.ascontiguousarray(x, kind) for x, kind in zip(arrays, kinds, strict=True)]
    slopes = [np.full(np.shape(x), 1234.5) for x in params] if gradient else []
    pointers = [*given, *map(np.ascontiguousarray, params), *slopes]
    pointers += [np.empty(workspace(text))] if workspace(text) else []
    counts = [] if count is None else [ctypes.c_int64(count)]
    value = function(*counts, *[ctypes.c_void_p(x.ctypes.data) for x in pointers])
    return value, slopes


def arguments(kernel: Any, count: int) -> list[Any]:
    draw = np.random.default_rng(count)
    shapes = [[count if n < 0 else n for n in a.shape] for a in kernel.inputs]
    return [
        draw.integers(0, 4, shape) if a.role == "index" else draw.normal(size=shape)
        for a, shape in zip(kernel.inputs, shapes, strict=True)
    ]


@pytest.mark.sampled(8)
@needs_gcc
@pytest.mark.parametrize("model", [*MODELS, euler, *CARRIED], ids=lambda model: model.__name__)
def test_a_c_function_gives_the_same(model: Any, tmp_path: Path) -> None:
    compiled = model() if model in MODELS else recorded(model())
    recording = compiled._server.latest()
    kernel, buffers = recording.kernel, recording.buffers()
    text = {gradient: compiled.source("c", gradient=gradient) for gradient in (False, True)}
    assert "wengert" not in "".join(text.values())
    for count in (1, 7):
        arrays = arguments(kernel, count)
        batched = any(a.batched for a in kernel.inputs)
        with np.errstate(all="ignore"):
            outputs, _ = kernel.forward_backward(arrays, 1.0 / count if batched else 1.0, buffers)
        for gradient in (False, True):
            value, slopes = called(text[gradient], tmp_path, recording, arrays, gradient)
            assert value == pytest.approx(np.mean(outputs["out"]), rel=1e-12)
            assert len(slopes) == gradient * len(passed(recording))
            for got, n in zip(slopes, passed(recording), strict=False):
                assert difference(got, buffers.grad_arrays[n]) < 1e-12


@pytest.mark.sampled(6)
@needs_gcc
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_c_function_reads_and_writes_what_is_its_own(model: Any, tmp_path: Path) -> None:
    """The same in a program of its own, under the sanitizers of addresses and of undefined behaviour."""
    compiled = model()
    recording = compiled._server.latest()
    kernel, params = recording.kernel, [recording.kernel.params[n] for n in passed(recording)]
    text = compiled.source("c")
    batched, count = any(a.batched for a in kernel.inputs), 3
    lines, given = [], ["3"] * batched
    for a in kernel.inputs:
        kind = "int64_t" if a.role == "index" else "double"
        lines.append(f"{kind} *x{len(lines)} = calloc({a.size * (count if a.batched else 1)}, 8);")
    for a in (*params, *params):
        lines.append(f"double *x{len(lines)} = calloc({a.size}, 8);")
    lines += [f"double *x{len(lines)} = malloc({workspace(text)} * sizeof(double));"] * bool(workspace(text))
    given += [f"x{k}" for k in range(len(lines))]
    ends = [f"free(x{k});" for k in range(len(lines))]
    body = "\n".join([*lines, f"double made = {title(text)}({', '.join(given)});", *ends, "return made == 0.125;"])
    source = tmp_path / "whole.c"
    source.write_text(f"#include <stdlib.h>\n{text}\nint main(void) {{\n{body}\n}}\n")
    command = [GCC, "-std=c99", "-Wall", "-Werror", "-g", *SANITIZED, str(source), "-lm", "-o", str(tmp_path / "whole")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr:
        pytest.skip("the sanitizers of gcc are not installed")
    assert not done.returncode, done.stderr
    ran = subprocess.run([str(tmp_path / "whole")], capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr


@needs_gcc
@pytest.mark.parametrize("name", FUNCTIONS)
def test_whatever_things_are_called_the_c_function_compiles(name: str, tmp_path: Path) -> None:
    function, count = FUNCTIONS[name]
    compiled = wengert.compile(function)
    numbers = [0.1 * n - 0.3 for n in range(count)]
    want = compiled(*numbers).data
    for gradient in (False, True):
        made = compiled._server.latest()
        value, _ = called(compiled.source("c", gradient=gradient), tmp_path, made, numbers, gradient)
        assert value == pytest.approx(want, rel=1e-12)


@needs_gcc
@pytest.mark.parametrize("name", ["div", "main", "for", "tanh", "t1", "été"])
def test_a_function_that_is_called_as_one_of_cs(name: str, tmp_path: Path) -> None:
    w = Value(0.7)

    def function(x: Any) -> Any:
        return (w * x).tanh() if x > -5.0 else w * math.inf

    function.__name__ = name
    compiled = wengert.compile(function)
    want = compiled(0.5).data
    value, _ = called(compiled.source("c", gradient=False), tmp_path, compiled._server.latest(), [0.5], False)
    assert value == pytest.approx(want, rel=1e-12)


def test_a_row_of_the_users_is_refused() -> None:
    row = wengert.op("gamma_in_c", value=lambda x: math.gamma(x), partials=lambda out, x: out * wengert.digamma(x))
    w = Value(0.7)
    compiled = wengert.compile(lambda x: row(w * x))
    compiled(0.5)
    with pytest.raises(ArgumentError, match="gamma_in_c is computed in Python, which C cannot"):
        compiled.source("c")
