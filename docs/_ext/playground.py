"""A part of the Sphinx build: what Python reads in the playground and the lessons, put there once the pages are made.

`program.zip` holds the pure wheel, which runs wherever Python does, and the playground's own module; `course.zip` that
of the course, and the module of its pages. `library.zip` holds what these ask of Python's standard library. In all of
them each module is compiled, by the very Python that will run it: npm brings it, and it runs here in Node. That Python
lies in `pyodide` then, with the libraries that lessons import, so that a reader's browser asks nobody but this site.
Where there is no npm or no Node, or the registry is not reached, there is neither that nor `library.zip`, the programs
are as they were written, both start half as fast, and Python comes from a public network.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from sphinx.util import logging

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "docs" / "_static"
PAGE = STATIC / "playground" / "playground.html"
NEEDED = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src")
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LIBRARIES = ("numpy", "matplotlib")  # which npm has not
BUILD = """
import importlib, sys, tomllib
with open("pyproject.toml", "rb") as settings:
    name = tomllib.load(settings)["build-system"]["build-backend"]
print(importlib.import_module(name).build_wheel(sys.argv[1]))
"""


def wheel(source, folder):
    """Build the wheel without extensions of the sources in one folder, in another one.

    It is built from a copy, so that nothing of an earlier build gets in, and no build is left in the checkout.
    """
    copy = Path(tempfile.mkdtemp(dir=folder))
    for path in map(source.joinpath, NEEDED):
        ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.c", "*.egg-info", "_compiled.*.txt")
        if path.is_dir():
            shutil.copytree(path, copy / path.name, ignore=ignore)
        elif path.exists():  # the course has no setup.py
            shutil.copy(path, copy)
    command, known = [sys.executable, "-c", BUILD, folder], {**os.environ, "WENGERT_PURE": "1"}
    done = subprocess.run(command, cwd=copy, env=known, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the pure wheel could not be built:\n{done.stdout}{done.stderr}")
    return Path(folder, done.stdout.split()[-1])


def pack(built, wanted, page, target):
    """Write what a page imports of a wheel, the names that begin so, and its own module, as one archive."""
    with zipfile.ZipFile(built) as wheel, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as program:
        for name in wheel.namelist():
            if name.startswith(wanted) and not name.endswith((".pxd", ".pyi")):
                program.writestr(name, wheel.read(name))
        program.write(page, page.name)


def runtime(folder):
    """Python for browsers, in the version that the page names, from npm, in this folder; else why it is not there."""
    if not shutil.which("npm") or not shutil.which("node"):
        return "it needs npm and Node"
    version = re.search(r"/pyodide@([\d.]+)/", PAGE.read_text(encoding="utf-8"))[1]
    command = ["npm", "pack", "--silent", f"pyodide@{version}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, shell=os.name == "nt")
    if done.returncode:
        return f"npm says: {done.stderr.strip()[:200]}"
    with tarfile.open(Path(folder, done.stdout.split()[-1])) as archive:
        archive.extractall(folder, filter="data")
    return Path(folder, "package")


def beside(found, folder, network=""):
    """Copy the runtime from where it was found, and the libraries, from there or from their network.

    Of what cannot be had the address is written: a browser that needs it asks there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in RUNTIME:
        shutil.copy(found / name, folder)
    lock = json.loads((found / "pyodide-lock.json").read_text(encoding="utf-8"))
    version = json.loads((found / "package.json").read_text(encoding="utf-8"))["version"]
    network = network or f"https://cdn.jsdelivr.net/pyodide/v{version}/full/"
    packages, wanted, is_reached = lock["packages"], list(LIBRARIES), True
    for name in wanted:
        wanted += [needed for needed in packages[name]["depends"] if needed not in wanted]
    for name, package in packages.items():
        file, target = package["file_name"], folder / package["file_name"]
        if name in wanted and is_reached:
            try:
                have = next((path for path in (target, found / file) if path.exists()), None)
                content = have.read_bytes() if have else urllib.request.urlopen(network + file, timeout=20).read()
                if hashlib.sha256(content).hexdigest() != package["sha256"]:
                    raise OSError(f"{network}{file} is another file than {version} was made with")
                target.write_bytes(content)
                continue
            except OSError as why:
                is_reached = False
                logging.getLogger(__name__).info("Lessons will ask %s for NumPy and matplotlib: %s", network, why)
        package["file_name"] = network + file
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def add(app, error):
    """Make the three archives, or the two that can be made."""
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    program, library, course = (
        static / name for name in ("playground/program.zip", "playground/library.zip", "lessons/course.zip")
    )
    library.unlink(missing_ok=True)
    for archive in (program, course):
        archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pack(wheel(ROOT, folder), "wengert/", STATIC / "playground" / "playground.py", program)
        pack(wheel(ROOT / "course", folder), "wengert_course", STATIC / "lessons" / "cells.py", course)
        found = Path(app.config.playground_runtime) if app.config.playground_runtime else runtime(folder)
        if isinstance(found, str):
            logging.getLogger(__name__).info("The playground will start half as fast: to compile it, %s", found)
            return
        command = ["node", Path(__file__).with_name("compiled.mjs"), found, library, program, course]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the playground could not be compiled:\n{done.stderr[-2000:]}")
        beside(found, static / "pyodide")
    usual = re.search(r'data-runtime="(.*?)"', PAGE.read_text(encoding="utf-8"))[1]
    for path in [Path(app.outdir, "playground.html"), *Path(app.outdir, "course").glob("*.html")]:
        text, up = path.read_text(encoding="utf-8"), "../" * (path.parent.name == "course")
        text = text.replace(f'data-runtime="{usual}"', f'data-runtime="{up}_static/pyodide/"')
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Called by Sphinx."""
    app.add_config_value("playground_runtime", "", "html")  # the folder of npm's package, for who has it already
    app.connect("build-finished", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
