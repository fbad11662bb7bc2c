"""A part of the Sphinx build: the wheel that runs wherever Python does, for the playground to run in the browser."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src")
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def build(target):
    """Build the wheel without extensions, and put it there.

    It is built from a copy, so that nothing of an earlier build gets in, and no build is left in the checkout.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        copy.mkdir()
        for name in NEEDED:
            source = ROOT / name
            ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.c", "*.egg-info", "_compiled.*.txt")
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=ignore)
            else:
                shutil.copy(source, copy / name)
        command, known = [sys.executable, "-c", BUILD, folder], {**os.environ, "WENGERT_PURE": "1"}
        done = subprocess.run(command, cwd=copy, env=known, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the pure wheel could not be built:\n{done.stdout}{done.stderr}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(folder, done.stdout.split()[-1]), target)


def add(app, error):
    """Put it beside the playground, once the pages are made."""
    if error is None and app.builder.format == "html":
        build(Path(app.outdir, "_static", "playground", "wengert.whl"))


def setup(app):
    """Called by Sphinx."""
    app.connect("build-finished", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
