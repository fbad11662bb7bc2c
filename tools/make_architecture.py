"""Draw who imports whom, for docs/architecture.md: `python tools/make_architecture.py`. A test holds it to the code.

A part is a package, each package of the compiler by itself, or a few modules that belong together. The arrows are the
imports at the top of the files, without those that other arrows lead to. The words in a part are the second column of
the page's table.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from wengert.view.graph.formats.svg import sheet
from wengert.view.graph.scene import Box, Cell, Edge, Picture

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "wengert"
PAGE = ROOT / "docs" / "architecture.md"
FILE = ROOT / "docs" / "images" / "architecture.svg"

TOGETHER = {  # modules that are one part
    **dict.fromkeys(("engine", "node", "graph", "handmade", "modes", "functions", "parameters"), "engine"),
    **dict.fromkeys(("interpolation", "linalg"), "linalg"),
    **dict.fromkeys(("nn", "losses", "optim", "data"), "nn"),
    "compiler.policy": "compiler.policy",  # below the others, as the path of a call asks it, too
}
EVERYWHERE = ("errors", "_loader", "_forks", "_files", "_reserve", "_signatures")  # below all parts, and in no picture


def part_of(module: str) -> str:
    """The part that a module of the package is in, such as compiler.ir; "" if it is in no picture."""
    if module in TOGETHER:
        return TOGETHER[module]
    first, _, rest = module.partition(".")
    if first in ("", "__main__", *EVERYWHERE):
        return ""
    inner = rest.partition(".")[0]
    return f"{first}.{inner}" if first == "compiler" and (PACKAGE / first / inner).is_dir() and inner else first


def modules() -> dict[str, Path]:
    """The modules of the package, by their names from there."""
    paths = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    named = {name.replace("/", ".").removesuffix("__init__").removesuffix("."): path for name, path in paths.items()}
    return {name: path for name, path in named.items() if part_of(name)}


@cache
def imported(path: Path) -> list[str]:
    """What a file imports from the package at its top: modules, and names in them."""
    found: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found += [name.removeprefix("wengert.") for name in names if name.startswith("wengert.")]
    return found


def stands_on() -> dict[str, set[str]]:
    """For each part those that its files import."""
    known = modules()
    found: dict[str, set[str]] = {part_of(name): set() for name in known}
    for name, path in known.items():
        for other in imported(path):
            module = other if other in known else other.rpartition(".")[0]
            found[part_of(name)].add(part_of(module) if module in known else "")
    return {part: others - {part, ""} for part, others in found.items()}


def arrows(parts: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Which of the imports are drawn: all but those that others lead to.

    Raises:
        CycleError: parts import each other.
    """
    below: dict[str, set[str]] = {}
    for part in TopologicalSorter(parts).static_order():
        below[part] = parts[part].union(*[below[other] for other in parts[part]])
    return [
        (part, other)
        for part in sorted(parts)
        for other in sorted(parts[part])
        if not any(other in below[between] for between in parts[part])
    ]


def captions() -> dict[str, str]:
    """What each part is called in short: the rows of the page's first table."""
    rows = re.findall(r"^\| `([\w/]+)/?` \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name.rstrip("/").replace("/", "."): words.strip() for name, words in rows}


def kind_of(part: str) -> str:
    """The kind of a part's box, which decides its colour."""
    return "leaf" if part.startswith("compiler") else "interior"


def picture() -> str:
    """The picture as SVG."""
    parts, words = stands_on(), captions()
    names = sorted(parts)
    boxes = [Box(kind_of(name), name.replace(".", "/"), "", [Cell(words[name], "", "")]) for name in names]
    edges = [Edge(names.index(part), names.index(other)) for part, other in arrows(parts)]
    text = sheet(Picture(boxes, edges, rankdir="TB"))[0]
    return re.sub(r'aria-label="[^"]*"', 'aria-label="Which part of the library imports which"', text, count=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
    print(FILE)
