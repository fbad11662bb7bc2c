"""Build the engine with every C compiler that is here: `python -m tools.qa.compilers [COMMAND...]`.

Each compiler builds the package as `pip` does, with all warnings as errors and none switched off (but for two about
Python's own flags, which were chosen for the compiler that built Python, and one about unused functions of Cython's),
and the smoke test runs on what it made. One of them also builds it as C23, which GCC 15 and newer take C to be.

A COMMAND is a compiler that has to be here, such as `gcc-14` or `"zig cc"`. Without one, all that are
found are tried, that of the variable CC and those named below; which are not here is said. The exit status is 1 if
something failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

__all__ = ["compilers", "main"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")  # what a wheel is built from
NAMED = ["cc", "gcc", *(f"gcc-{n}" for n in range(11, 17)), "clang", *(f"clang-{n}" for n in range(14, 24))]
FLAGS = (
    "-Wall -Wextra -Werror "
    "-Wno-ignored-optimization-argument "  # clang's, of flags like -ffat-lto-objects, where GCC built Python
    "-Wno-unused-command-line-argument "  # likewise; GCC takes a -Wno- that it does not know
    "-Wno-unused-function"  # Cython's: what the module that the others share has in their place
)

C23 = "-std=gnu2x"  # by the name under which compilers of before and after its publication have it


def cflags() -> str:
    """Python's own flags of C, and all warnings as errors."""
    return f"{sysconfig.get_config_var('CFLAGS') or ''} {FLAGS}"


def compilers() -> tuple[list[str], list[str]]:
    """The commands of the compilers that are here, each compiler once, and the names of those that are not."""
    found: dict[str, str] = {}
    missing = []
    if own := shlex.split(os.environ.get("CC", "")):
        program = shutil.which(own[own[0] == "ccache"])  # who keeps its objects is no compiler
        found[os.path.realpath(program or own[0])] = shlex.join(own)
    for name in NAMED:
        path = shutil.which(name)
        if path is None:
            missing.append(name)
        else:
            found.setdefault(os.path.realpath(path), name)
    commands = list(found.values())
    zig = importlib.util.find_spec("ziglang")
    if zig is None or zig.origin is None:
        missing.append("ziglang")
    else:
        commands.append(f"{shlex.quote(str(Path(zig.origin).with_name('zig')))} cc")
    return commands, missing


def version(command: str) -> str:
    """What a compiler says it is."""
    done = subprocess.run([*shlex.split(command), "--version"], capture_output=True, text=True)
    return (done.stdout.splitlines() or [f"it gives no version: {done.stderr.strip()[:100]}"])[0]


def build(command: str, folder: Path) -> tuple[Path, str]:
    """The folder that the package is in as this compiler makes it; and where it fails, pip's last words."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name in SOURCES:
        source, copy = ROOT / name, tree / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "_compiled.*", "*.egg-info"))
        else:
            shutil.copy(source, copy)
    environment = surroundings() | {
        "CC": command,
        "CFLAGS": cflags(),
        "WENGERT_REQUIRE_COMPILED": "1",
        "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"),
    }
    done = printed([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(tree)], env=environment)
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder / "built")
        return folder / "built", ""
    return folder, done.stdout[-6000:]


def run(built: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with that package."""
    return printed([sys.executable, *arguments], cwd=built, env=surroundings() | {"PYTHONPATH": str(built)})


def printed(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """A command, and all that it prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def surroundings() -> dict[str, str]:
    """The environment, without what changes a build."""
    return {name: text for name, text in os.environ.items() if not name.startswith("WENGERT_") and name != "LDSHARED"}


def tried(command: str, folder: Path) -> bool:
    """Whether a compiler's engine is built, and works."""
    start = time.monotonic()
    built, why = build(command, folder)
    if not why:
        smoke = run(built, str(ROOT / "tests" / "test_smoke.py"), "compiled")
        why = smoke.stdout if smoke.returncode else ""
    print(
        f"{'FAILED' if why else 'built '} {time.monotonic() - start:4.0f} s  {command}: {version(command)}", flush=True
    )
    if why:
        print(why)
    return not why


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", nargs="*", help="a compiler that has to be here (all that are found)")
    wanted = parser.parse_args().command
    commands, missing = compilers()
    print(
        f"flags: {FLAGS}\nhere: {', '.join(commands) or 'none'}\nnot here: {', '.join(missing) or 'none'}", flush=True
    )
    asked = wanted or [*commands, *(f"{command} {C23}" for command in commands[:1])]
    with tempfile.TemporaryDirectory() as place:
        results = [tried(command, Path(place, str(n))) for n, command in enumerate(asked)]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
