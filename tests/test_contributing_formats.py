"""The diff of CONTRIBUTING.md that adds a format of drawings, applied to a copy of the package."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.test_contributing import applied, run

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "wengert"
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A folder with a copy of the package, to which the diff is applied: it adds one file and changes none."""
    folder = applied(tmp_path, "A drawing format in one module")
    ours = {path.relative_to(PACKAGE): path.read_bytes() for path in PACKAGE.rglob("*.py")}
    copy = folder / "wengert"
    theirs = {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*.py")}
    assert theirs.keys() - ours.keys() == {Path("view/graph/formats/graphml.py")}
    assert {path: theirs[path] for path in ours} == ours
    return folder


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
    assert run(changed, program) == "b.graphml\n"
    assert (changed / "a.graphml").read_bytes() == (changed / "b.graphml").read_bytes()
    labels, edges = read(changed / "a.graphml")
    assert labels == {"b0": "x<1 data 3 grad 2", "b1": "x<1*2 data 6 grad 1", "b2": "2", "o1": "*"}
    assert sorted(edges) == [("b0", "o1"), ("b2", "o1"), ("o1", "b1")]


def test_the_command_line_and_the_messages_name_it(changed: Path) -> None:
    program = (
        "from wengert import Value, draw_dot\n"
        "from wengert.apps import cli\n"
        "cli.main(['draw', 'tanh(x*w)', 'x=2', 'w=3', '-o', 'c.graphml'])\n"
        "for write in (lambda: draw_dot(Value(1.0), format='gif'), lambda: draw_dot(Value(1.0)).save('y.gif')):\n"
        "    try: write()\n"
        "    except ValueError as error: print(error)\n"
        "cli.main(['draw', '--help'])\n"
    )
    said = run(changed, program)
    assert len(read(changed / "c.graphml")[1]) == 5
    assert "format is 'gif'; expected one of svg, png, html, dot, graphml\n" in said
    assert "has no known suffix: expected .svg, .png, .html, .dot, .graphml\n" in said
    assert "write a picture: .svg, .png, .html, .dot, .graphml" in " ".join(said.split())
