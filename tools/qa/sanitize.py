"""The tests under sanitizers: `python -m tools.qa.sanitize [--all] [--only KIND] [--page docs/sanitizers.md]`.

Two runs, each of extensions that are built for it in a folder of its own under `build/sanitize`:

- **sanitizers**: compiled with AddressSanitizer and UndefinedBehaviorSanitizer (GCC or Clang), and so that each index
  of an array is checked (`WENGERT_CHECKED=1`): one that is out of range is an IndexError, also where it stays inside of
  memory that is allocated. Every read or write outside of what was allocated, every use of memory after it was freed
  and every undefined operation of C ends the process. Python takes each object from `malloc`, so that objects are
  watched too.
- **debug**: a debug build of Python, which counts all references and checks its objects, its memory and the exceptions
  of extensions. It is the one given by `--python`, or `python3.N-dbg` of the PATH, or Debian's package, unpacked into
  the folder and not installed. Where there is none, this Python runs in its development mode (`-X dev`), which checks
  memory alone.

By default a part of the tests runs: those of the modules that are compiled, and of what is done to them in bad faith.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Run", "row"]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "sanitize"
REPORT = FOLDER / "report"  # where sanitizers report, for pytest catches what they print; each process adds its number
PART = (
    "test_values", "test_gradients", "test_graph", "test_walks", "test_copies", "test_handmade", "test_robust",
    "test_hostile", "test_modes", "test_optim", "test_parameters", "ops/test_custom_op", "compiler/test_batches",
    "compiler/test_callpath", "compiler/test_foreign_arrays", "compiler/test_results", "compiler/test_strips",
    "compiler/test_threads", "test_several_results", "training/test_flat", "compiler/test_arguments",
    "compiler/test_value_arguments", "compiler/test_signatures", "compiler/test_calls", "compiler/test_captures",
    "compiler/test_in_order", "compiler/test_derivatives", "compiler/test_nested_derivatives", "derivatives/test_grad",
    "derivatives/test_second_order",
)  # fmt: skip
CHOSEN = "not slow and not torch and not jax and not mpmath and not plot and not png and not browser"
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
BEGIN, END = "<!-- sanitize: begin -->", "<!-- sanitize: end -->"


@dataclass
class Run:
    """One way to run the tests: what builds the extensions, what runs them, and what came of it."""

    name: str
    python: list[str]
    about: str  # the compiler, and which Python
    build: dict[str, str] = field(default_factory=dict)  # more of the environment
    run: dict[str, str] = field(default_factory=dict)
    result: str = ""
    passed: bool = False


def sanitizers() -> Run:
    """This Python, and extensions that watch their memory."""
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    libraries = ("libasan.so", "libubsan.so", "libstdc++.so.6")  # loaded first, or they see too little
    found = [_output(*compiler, f"-print-file-name={name}") for name in libraries]
    run = {
        "LD_PRELOAD": " ".join(path for path in found if os.path.isabs(path)),
        "ASAN_OPTIONS": f"detect_leaks=0:log_path={REPORT}",  # Python keeps memory to its end
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={REPORT}",
        "PYTHONMALLOC": "malloc",
    }
    about = f"{_output(*compiler, '--version').splitlines()[0]}; Python {platform.python_version()}"
    return Run(
        "sanitizers",
        [sys.executable],
        about,
        {"CC": shlex.join(compiler), "CFLAGS": FLAGS, "LDFLAGS": FLAGS, "WENGERT_CHECKED": "1"},
        run,
    )


def debug(given: str | None) -> Run:
    """A debug build of Python, with what is installed for this one."""
    python = given or next(filter(None, map(shutil.which, (f"python{VERSION}-dbg", f"python{VERSION}d"))), None)
    run = {"PYTHONPATH": sysconfig.get_path("purelib")}
    if python is None and (unpacked := _debian()) is not None:
        python, run["PYTHONHOME"] = str(unpacked / "bin" / f"python{VERSION}-dbg"), str(unpacked)
        run["CPATH"] = str(unpacked / "include")  # where its headers look for more of them
    if python is None:
        return Run("debug", [sys.executable, "-X", "dev"], f"Python {platform.python_version()}, -X dev")
    version = _output(python, "-c", "import sys; print(sys.version.split()[0], *sys.abiflags)", **run)
    return Run("debug", [python], f"Python {version.replace(' d', ', a debug build')}", dict(run), run)


def _debian() -> Path | None:
    """Debian's debug build, unpacked; None where its packages cannot be had."""
    root = FOLDER / "python-dbg"
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    if not root.exists():
        libraries = [f"libpython{VERSION}-{part}" for part in ("dbg", "dev", "stdlib", "minimal")]
        packages = FOLDER / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run(
            ["apt-get", "download", f"python{VERSION}-dbg", *libraries], cwd=packages, capture_output=True
        )
        if fetched.returncode:
            return None
        for package in packages.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
    return root / "usr"


def _output(*command: str, **environment: str) -> str:
    """What a program says; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def built(run: Run) -> Path:
    """A copy of the package with the extensions of this run; returns where it can be imported from.

    Raises:
        SystemExit: it cannot be compiled.
    """
    folder = FOLDER / run.name
    shutil.rmtree(folder, ignore_errors=True)
    left_out = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "_compiled.*.txt", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=left_out)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    command = [*run.python, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, env=os.environ | run.build, capture_output=True, text=True)
    if done.returncode or not list((folder / "src").rglob("_compiled.*.txt")):
        raise SystemExit(f"{run.name}: the extensions were not built\n{done.stdout}{done.stderr}")
    return folder / "src"


def tried(run: Run, arguments: list[str]) -> None:
    """Build, run the tests, and write down what came of it."""
    source = built(run)
    paths = [str(source), *filter(None, [run.run.get("PYTHONPATH")])]
    environment = os.environ | run.run | {"PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("WENGERT_INTERPRETED", None)
    for old in FOLDER.glob(f"{REPORT.name}.*"):
        old.unlink()
    start = time.monotonic()
    # What UndefinedBehaviorSanitizer says before it ends the process goes to the standard error itself.
    command = [*run.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--capture=sys", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(done.stdout[-20_000:], done.stderr[-20_000:])
    for report in FOLDER.glob(f"{REPORT.name}.*"):
        print(report.read_text(errors="replace")[:20_000])
    minutes = (time.monotonic() - start) / 60.0
    counted = re.findall(r"^(\d+ (?:passed|failed).*?)(?: in .*)?$", done.stdout, re.MULTILINE)
    outcome = counted[-1] if counted else f"ended with {done.returncode} and no count"
    run.passed = done.returncode == 0
    run.result = f"{outcome}, no report, {minutes:.0f} min" if run.passed else f"**{outcome}**"


def row(run: Run, when: str, commit: str, tests: str) -> str:
    """A line of the page's table."""
    return f"| {run.name} | {when} | `{commit}` | {run.about} | {tests} | {run.result} |\n"


def main(argv: list[str] | None = None) -> int:
    """Run what is asked for; 1 if a test fails or a sanitizer reports."""
    parser = argparse.ArgumentParser(description="The tests under sanitizers and under a debug Python.")
    parser.add_argument("--all", action="store_true", help="all tests, not the part that the compiled modules need")
    parser.add_argument("--only", choices=("sanitizers", "debug"), help="one of the two runs")
    parser.add_argument("--python", help="a debug build of Python")
    parser.add_argument("--page", type=Path, help="a page between whose marks the outcome goes")
    parser.add_argument("paths", nargs="*", help="tests to run instead")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    arguments = options.paths or (["tests"] if options.all else [f"tests/{name}.py" for name in PART])
    if not options.all:
        arguments = ["-m", CHOSEN, *arguments]
    commit = _output("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10")
    runs = [sanitizers()] if options.only != "debug" else []
    if options.only != "sanitizers":
        runs.append(debug(options.python))
    for run in runs:
        tried(run, arguments)
    tests = "all" if options.all else "the part" if not options.paths else "some"
    text = "| run | when | commit | with | tests | result |\n|---|---|---|---|---|---|\n"
    text += "".join([row(run, time.strftime("%Y-%m-%d"), commit, tests) for run in runs])
    print(text)
    if options.page:
        sys.path.insert(0, str(ROOT / "src"))
        from tools.qa.accuracy import into_page

        into_page(options.page, BEGIN, END, text)
    return int(not all(run.passed for run in runs))


if __name__ == "__main__":
    sys.exit(main())
