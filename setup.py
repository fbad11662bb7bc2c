"""Compiles the engine when a C compiler is there. Everything else about the package stands in pyproject.toml.

The modules below are ordinary Python files that Cython can also translate to C ("pure Python mode"): the `.pxd` file
beside each says which names are C numbers. The files that are read are the files that run, either way.

- With a C compiler, `pip install` compiles them, and the extensions stand beside the `.py` files.
- Without one the install succeeds all the same, says so once, and the `.py` files run as they are; so does each import.
- `WENGERT_PURE=1` in the environment of the build asks for no extensions at all: a wheel for every platform.
- `WENGERT_CHECKED=1` compiles extensions that check each index of an array and each view before they use it, which is
  slower: for `tools.qa.sanitize`.
- `WENGERT_REQUIRE_COMPILED=1` has the install fail where one was to be compiled and was not: for CI, and for who builds
  wheels.

Beside the extensions goes a small text file with a hash of each source that they were compiled from; without them, with
the reason. `src/wengert/_loader.py` reads it, so that an extension that is older than its source is never used, and
`wengert info` can say why the engine is interpreted.
"""

import hashlib
import os
import shutil
import subprocess
from importlib.util import source_hash
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, CompileError
from setuptools.logging import logging

PACKAGE = Path("src", "wengert")
# As COMPILED in _loader.py (a test compares them).
MODULES = ("node", "engine", "graph", "optim", "parameters", "compiler.call.fused", "compiler.call.captures",
           "compiler.call.executable", "compiler.call.argument_reader", "compiler.call.callpath",
           "compiler.lift.in_order", "compiler.reach.call_trace", "compiler.traced.tracers", "training.batches",
           "training.correct", "training.orders")
SHARED = "_shared"  # as in _loader.py: what Cython itself adds for views of arrays, compiled once, not in each module
# What does not run at each call: compiled in half the time, and at most a tenth slower. Others have -O3.
LEVELS = {
    **dict.fromkeys(("graph", "parameters", "compiler.lift.in_order", "compiler.reach.call_trace",
                     "compiler.traced.tracers", "training.orders"), "-O1"),
    SHARED: "-Og",
}

DIRECTIVES = {
    "language_level": 3,
    "infer_types": True,  # without it `n = len(xs)` becomes a Python int, and a loop over range(n) a slow one
    "wraparound": True,  # the code says todo[-1]
    "cdivision": True,  # C's division: 1/0 is inf, as the interpreted code has it from native.py
    "nonecheck": False,
    "binding": False,  # methods check their `self`: Value.relu(3.0) is a TypeError, not a crash
    "embedsignature": True,  # and tell their signature to help() and editors all the same
    "embedsignature.format": "clinic",
    "auto_pickle": False,  # node.py says itself what can be pickled
}

# -ffp-contract=off: a*b + c must not become one fused operation, or the two modes would differ in the last bit.
# -fno-math-errno: nobody reads errno after a square root, and without it several roots are one instruction.
UNIX_FLAGS = ["-ffp-contract=off", "-fno-math-errno", "-g0"]
# To inline whatever Cython marks as inline saves the engine 3 % of its instructions; elsewhere it makes code longer.
ENGINE_MACROS = [("CYTHON_INLINE", "__inline__ __attribute__((always_inline, unused))")]
MSVC_FLAGS = ["/O2", "/fp:precise"]


def wished(variable: str) -> bool:
    """Whether a variable of the environment says yes."""
    return os.environ.get(variable, "0") not in ("", "0")


def directives() -> dict[str, object]:
    """What Cython is told; where it is wished, that each index is checked."""
    return DIRECTIVES | dict.fromkeys(("boundscheck", "initializedcheck"), wished("WENGERT_CHECKED"))


def sources() -> list[Path]:
    """Every file that the compiled code depends on."""
    paths = [PACKAGE.joinpath(*name.split(".")).with_suffix(".py") for name in MODULES]
    modules = [path for path in paths if path.with_suffix(".pxd").exists()]
    return [*modules, *sorted(PACKAGE.rglob("*.pxd"))] if modules else []


def extensions() -> list[Extension]:
    """One for each module of MODULES that has a `.pxd` beside it."""
    if wished("WENGERT_PURE"):
        return []
    modules = {
        ".".join(path.relative_to("src").with_suffix("").parts): [path.as_posix()]
        for path in sources()
        if path.suffix == ".py"
    }
    modules |= {f"wengert.{SHARED}": [f"wengert.{SHARED}.c"]} if modules else {}  # Cython writes it, and names it so
    depends = [path.as_posix() for path in sources()]
    return [Extension(name, files, depends=depends, optional=True) for name, files in modules.items()]


def explained(error: BaseException) -> str:
    """What a compiler's failure is about, in one line: the first in which it says what is wrong."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, (OSError, subprocess.CalledProcessError)):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, subprocess.CalledProcessError) and os.name != "nt":  # MSVC starts in an environment of its own
        again = subprocess.run(cause.cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        said = [line.strip() for line in again.stdout.splitlines() if line.strip()]
        said.append(f"{cause.cmd[0]} gives exit status {cause.returncode}")
        return f"the C compiler failed: {next((line for line in said if 'error' in line.lower()), said[0])[:300]}"
    if isinstance(cause, OSError):
        return f"a C compiler is missing: {cause}"
    return f"a C compiler is missing or failed: {' '.join(str(error).split())[:300]}"


class BuildEngine(build_ext):
    """build_ext that translates with Cython, forgives a missing compiler, and records what was compiled, or why not."""

    failure = ""

    def build_extensions(self) -> None:
        """All of the extensions or none: they share C structures, so one alone would be of no use."""
        for path in self._built():
            path.unlink(missing_ok=True)
        if self._translate():
            self.parallel = self.parallel or os.cpu_count()
            super().build_extensions()
        if not self.failure:
            hashes = {path.relative_to(PACKAGE).as_posix(): source_hash(path.read_bytes()).hex() for path in sources()}
            lines = [f"{known}  {name}\n" for name, known in hashes.items()]
        else:
            for path in self._built():
                path.unlink(missing_ok=True)
            if wished("WENGERT_REQUIRE_COMPILED"):
                raise CompileError(f"wengert: the engine was not compiled, and was to be: {self.failure}")
            logging.getLogger("wengert").warning(
                "wengert: the engine was not compiled: %s (pip install -v shows more). The install goes on, and the "
                "engine runs interpreted: the same results, only slower.",
                self.failure,
            )
            lines = [f"not compiled: {self.failure}\n"]
        self._record().parent.mkdir(parents=True, exist_ok=True)
        self._record().write_text("".join(lines), encoding="utf-8")

    def build_extension(self, ext: Extension) -> None:
        """Compiles one extension; a compiler that is missing or fails is remembered, not raised."""
        unix = self.compiler.compiler_type != "msvc"
        level = LEVELS.get(ext.name.removeprefix("wengert."), "-O3")
        ext.extra_compile_args = [level, *UNIX_FLAGS] if unix else MSVC_FLAGS
        ext.define_macros = ENGINE_MACROS if unix and ext.name == "wengert.engine" else []
        try:
            super().build_extension(ext)
        except (BaseError, CCompilerError) as error:
            self.failure = self.failure or explained(error)

    def copy_extensions_to_source(self) -> None:
        """For an editable install: what an earlier one left goes, what was built now comes."""
        for path in self._built():
            Path("src", path.relative_to(self.build_lib)).unlink(missing_ok=True)
        super().copy_extensions_to_source()
        if self._record().exists():
            self.copy_file(str(self._record()), str(PACKAGE / self._record().name))

    def get_outputs(self) -> list[str]:
        """What the build makes, the record included."""
        return [*super().get_outputs(), str(self._record())]

    def _translate(self) -> bool:
        """Python to C; False where this Cython cannot."""
        from Cython import __version__  # only a build needs Cython; an sdist does not
        from Cython.Build import cythonize
        from Cython.Compiler import Options
        from Cython.Compiler.Errors import CompileError as Untranslatable

        Options.emit_code_comments = False  # the lines of Python beside their C, for a reader
        kept = os.environ.get("CYTHON_CACHE_DIR")  # what is translated of the same files is translated once
        if kept:  # Cython's own cache looks at no .pxd beside a .py
            read = [repr(directives()).encode(), *(path.read_bytes() for path in sources())]
            kept = os.path.join(kept, hashlib.sha256(b"".join(read)).hexdigest())
            shutil.rmtree("build/cython", ignore_errors=True)
        try:
            translated = cythonize(
                [Extension(ext.name, ext.sources) for ext in self.extensions],
                compiler_directives=directives(),
                include_path=["src"],
                build_dir="build/cython",
                shared_utility_qualified_name=f"wengert.{SHARED}",
                cache=kept or None,
                force=not kept,  # a change of the directives above would go unnoticed
                nthreads=0 if os.name == "nt" else os.cpu_count() or 0,  # processes, which Windows is slow to start
            )
        except Untranslatable as error:
            self.failure = f"Cython {__version__} could not translate {error}"
            return False
        for ext, made in zip(self.extensions, translated, strict=True):
            ext.sources = made.sources
        self.extensions.sort(key=lambda ext: -os.path.getsize(ext.sources[0]))  # what takes longest begins first
        return True

    def _record(self) -> Path:
        """The file of hashes, or of the reason: one for each kind of Python, as the extensions themselves are."""
        suffix = self.get_ext_filename("").removeprefix(".").rpartition(".")[0]
        return Path(self.build_lib, "wengert", f"_compiled.{suffix}.txt")

    def _built(self) -> list[Path]:
        return [*(Path(self.build_lib, self.get_ext_filename(ext.name)) for ext in self.extensions), self._record()]


if __name__ == "__main__":  # and not where a process that translates imports this file
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildEngine})
