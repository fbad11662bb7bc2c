"""The diff of CONTRIBUTING.md that adds a format of drawings, applied to a copy of the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "wengert"
FOLDER = "src/wengert/view/graph/formats/"
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A folder with a copy of the package, to which the diff is applied: it adds one file and changes none."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    pattern = rf"```diff\n--- /dev/null\n\+\+\+ b/{FOLDER}(\w+\.py)\n@@ -0,0 \+1,(\d+) @@\n(.*?)```"
    ((name, count, added),) = re.findall(pattern, text, re.DOTALL)
    lines = added.splitlines()
    assert len(lines) == int(count)
    assert all(line.startswith("+") for line in lines)
    shutil.copytree(PACKAGE, tmp_path / "wengert", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    target = tmp_path / "wengert" / FOLDER.removeprefix("src/wengert/") / name
    assert not target.exists()
    target.write_text("".join(f"{line[1:]}\n" for line in lines), encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> str:
    """What a Python that imports the copy prints."""
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def read(path: Path) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The labels of the nodes, and the edges, of a file of GraphML."""
    root = ElementTree.parse(path).getroot()
    labels = {node.attrib["id"]: "".join(node.itertext()) for node in root.iter(f"{GRAPHML}node")}
    return labels, [(edge.attrib["source"], edge.attrib["target"]) for edge in root.iter(f"{GRAPHML}edge")]


def test_one_module_is_all_that_a_format_needs(changed: Path) -> None:
    program = (
        "from wengert import Value, draw, draw_dot; x = Value(3.0, 'x<1'); y = x * 2.0; y.backward(); "
        "draw(y).save('a.graphml'); print(draw_dot(y, format='graphml').render('b')); "
    )
    assert run(changed, "-c", program) == "b.graphml\n"
    assert (changed / "a.graphml").read_bytes() == (changed / "b.graphml").read_bytes()
    labels, edges = read(changed / "a.graphml")
    assert labels == {"b0": "x<1 data 3 grad 2", "b1": "data 6 grad 1", "b2": "2", "o1": "*"}
    assert sorted(edges) == [("b0", "o1"), ("b2", "o1"), ("o1", "b1")]


def test_the_command_line_and_the_messages_name_it(changed: Path) -> None:
    run(changed, "-m", "wengert", "draw", "tanh(x*w)", "x=2", "w=3", "-o", "c.graphml")
    assert len(read(changed / "c.graphml")[1]) == 5
    assert ".graphml" in run(changed, "-m", "wengert", "draw", "--help")
    program = (
        "from wengert import Value, draw_dot\n"
        "for write in (lambda: draw_dot(Value(1.0), format='gif'), lambda: draw_dot(Value(1.0)).save('y.gif')):\n"
        "    try: write()\n"
        "    except ValueError as error: print(error)\n"
    )
    assert run(changed, "-c", program) == (
        "format is 'gif'; expected one of svg, png, html, dot, graphml, mmd\n"
        "cannot tell from 'y.gif' what to write: it should end in .svg, .png, .html, .dot, .graphml, .mmd\n"
    )


def test_without_it_the_package_does_not_know_it(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "wengert", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    program = "from wengert.view.graph.formats import FORMATS; print(*FORMATS)"
    assert run(tmp_path, "-c", program) == "svg png html dot mmd\n"
