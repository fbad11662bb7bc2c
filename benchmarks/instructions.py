"""The instructions that the engine executes, counted for two commits in one run.

    python -m benchmarks.instructions [--base COMMIT] [--head COMMIT]

Times on a shared machine vary by a tenth and more; counts of instructions by less than a thousandth. So this
is what CI holds: it fails when a workload takes 5 % more instructions than before. Both commits are compiled
in temporary folders and run the same program, this checkout's, under Valgrind's callgrind. What a step costs
is the difference between a run of few steps and one of more, so that starting Python does not count.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import problems, scalar

__all__ = ["base_commit", "compare", "count", "main"]

ROOT = Path(__file__).resolve().parent.parent
STEPS = {"expression": (2000, 6000), "moons": (1, 4)}  # of the short run and of the long one
LIMIT = 0.05  # by how much the count may grow


def run(workload: str, steps: int) -> None:
    """The program that is counted."""
    from wengert import Value

    step = scalar.expression(Value) if workload == "expression" else scalar.network(Value, problems.moons())
    for _ in range(steps):
        step()


def git(*arguments: str) -> str:
    """What git answers; empty if it refuses."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def base_commit(head: str) -> str:
    """The last release, or else where this branch left main, or else the commit before this one."""
    here = git("rev-parse", f"{head}^{{commit}}")
    for candidate in (git("describe", "--tags", "--abbrev=0", head), git("merge-base", head, "origin/main")):
        commit = git("rev-parse", f"{candidate}^{{commit}}") if candidate else ""
        if commit and commit != here:
            return commit
    return git("rev-parse", f"{head}~1^{{commit}}")


def build(commit: str, folder: Path) -> Path:
    """Compile the package as it was at a commit; returns where it can be imported from."""
    source, target = folder / "source", folder / "package"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, source]
    subprocess.run(pip, check=True)
    return target


def count(package: Path, workload: str) -> int:
    """Instructions a step, of the package in a folder.

    Raises:
        RuntimeError: the program failed, or the package is not compiled.
    """
    totals = []
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("WENGERT", "PYTHON"))}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": f"{package}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    for steps in STEPS[workload]:
        program = (
            "from benchmarks import instructions; from wengert import engine; "
            f"assert engine.compiled; instructions.run({workload!r}, {steps})"
        )
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, cwd=package, capture_output=True, text=True)
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or not found:
            raise RuntimeError(f"{workload} failed under callgrind:\n{done.stderr[-2000:]}")
        totals.append(int(found[1]))
    few, many = STEPS[workload]
    return (totals[1] - totals[0]) // (many - few)


def compare(base: str, head: str) -> bool:
    """Print a table of both commits' counts; whether none grew past the limit."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        packages = [build(base, Path(folder, "base")), build(head, Path(folder, "head"))]
        print(f"instructions a step     {base[:10]:>14} {head[:10]:>14}   change")
        for workload in STEPS:
            before, after = (count(package, workload) for package in packages)
            change = after / before - 1
            verdict = "" if change <= LIMIT else f"   more than +{LIMIT:.0%}"
            good &= change <= LIMIT
            print(f"{workload:<22} {before:>15,} {after:>14,}   {change:+.2%}{verdict}", flush=True)
    return good


def main(argv: list[str] | None = None) -> int:
    """Compare two commits; 1 if a count grew past the limit, 2 if there is nothing to compare with."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__.split("\n\n")[0])
    parser.add_argument("--head", default="HEAD", help="the commit that is judged (default: HEAD)")
    parser.add_argument("--base", help="what it is compared with (default: the last release tag or the merge base)")
    options = parser.parse_args(argv)
    if not shutil.which("valgrind"):
        print("this counts with Valgrind, which is not installed: apt-get install valgrind", file=sys.stderr)
        return 2
    head = git("rev-parse", f"{options.head}^{{commit}}")
    base = git("rev-parse", f"{options.base}^{{commit}}") if options.base else base_commit(head)
    if not head or not base:
        print(f"no such commit: {options.head if not head else options.base or 'a base'}", file=sys.stderr)
        return 2
    return 0 if compare(base, head) else 1


if __name__ == "__main__":
    sys.exit(main())
