"""The drawing's other ways: from above to below, and written by the calls that tutorials make of Graphviz."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.view.drawn import boxes, moons, neuron, random_graph, rows, texts
from tests.view.geometry import faults, read
from wengert import Value, draw, draw_dot, steps, tree
from wengert.errors import ArgumentError
from wengert.graph import Graph
from wengert.view.graph.folding import Folding
from wengert.view.graph.formats.svg import sheet

pytestmark = pytest.mark.once  # a layout does not depend on which engine made the graph


def test_downwards_operands_are_above_results() -> None:
    o, _ = neuron()
    shown = read(draw(o, rankdir="TB").svg)
    for edge in shown.edges:
        assert edge[0][1] < edge[-1][1]
    for card, *pills in shown.boxes:
        for pill in pills:
            assert pill[3] < card[1]
            assert (pill[0] + pill[2]) / 2 == pytest.approx((card[0] + card[2]) / 2, abs=0.11)
    across = read(draw(o).svg)
    assert across.width > shown.width
    assert across.height < shown.height
    assert rows(draw(o, rankdir="TB").svg) == rows(draw(o).svg)
    assert sorted(texts(draw(o, rankdir="TB").svg)) == sorted(texts(draw(o).svg))


def test_downwards_nothing_overlaps() -> None:
    rng = random.Random(5)
    for size in (1, 2, 5, 12, 25, 60, 90):
        assert faults(draw(random_graph(rng, size), rankdir="TB").svg) == []
    folded = draw(moons(5), limit=60, rankdir="TB").svg
    assert faults(folded) == []
    assert boxes(folded) <= 60


def test_every_edge_ends_at_its_box_or_operation() -> None:
    o, _ = neuron()
    shown = read(draw(o, rankdir="TB").svg)
    tops = [((part[0], part[2]), part[1]) for box in shown.boxes for part in box[-1:]]
    for edge in shown.edges:
        x, y = edge[-1]
        assert any(left < x < right and top - 7 <= y <= top for (left, right), top in tops)


def test_the_direction_is_that_of_every_kind_of_file(tmp_path: Path) -> None:
    o, _ = neuron()
    down = draw(o, rankdir="TB")
    assert "rankdir=TB;" in down.to_dot()
    assert "rankdir=LR;" in draw(o).to_dot()
    draw(moons(20), rankdir="TB").save(tmp_path / "g.html")
    folding = Folding(Graph(o), rankdir="TB")
    assert read(sheet(folding.picture()[0])[0]).height > read(sheet(Folding(Graph(o)).picture()[0])[0]).height


@pytest.mark.parametrize("rankdir", ["RL", "", None, 1])
def test_a_direction_that_there_is_not(rankdir: Any) -> None:
    with pytest.raises(ArgumentError, match=r"rankdir is .*; expected one of LR, TB"):
        draw_dot(Value(1.0), rankdir=rankdir)


def test_render_writes_what_the_tutorials_expect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    o, _ = neuron()
    assert draw_dot(o, format="svg", rankdir="TB").render("g") == "g.svg"
    assert Path("g.svg").read_text(encoding="utf-8") == draw(o, rankdir="TB").svg + "\n"
    assert draw_dot(o).render() == "graph.svg"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["g.svg", "graph.svg"]
    drawn = draw(o)
    drawn.format = "dot"
    assert drawn.render("g.v2") == "g.v2.dot"
    assert drawn.render("new", directory="made/here", format="html") == str(Path("made/here/new.html"))
    assert Path("made/here/new.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    drawn.render("both", cleanup=False, format="svg")
    assert Path("both").read_text(encoding="utf-8") == drawn.to_dot() + "\n"


def test_render_can_open_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    opened: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    draw_dot(Value(1.0)).render("g")
    assert opened == []
    draw_dot(Value(1.0)).render("g", view=True)
    draw_dot(Value(1.0)).view()
    assert opened == [(tmp_path / "g.svg").as_uri(), (tmp_path / "graph.svg").as_uri()]


@pytest.mark.parametrize("name", ["pdf", "SVG", "", None, 3])
def test_a_format_that_cannot_be_written(name: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"format is .*; expected one of svg, png, html, dot"):
        draw_dot(Value(1.0), format=name)
    drawn = draw(Value(1.0))
    drawn.format = name
    with pytest.raises(ArgumentError, match=r"expected one of svg, png"):
        drawn.render(tmp_path / "g")
    assert not list(tmp_path.iterdir())


@pytest.mark.png
def test_render_a_png(tmp_path: Path) -> None:
    written = draw_dot(Value(1.0), format="png").render(tmp_path / "g")
    assert Path(written).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


# -- a tree as the last line of a cell --------------------------------------------------------------------------------


def test_a_tree_shows_itself_as_it_is_printed() -> None:
    shown = tree(neuron()[0])
    assert repr(shown) == str(shown) == f"{shown}" == "\n".join(shown.splitlines())
    assert "\n" in shown
    assert shown == str(shown)
    assert shown.startswith("o = tanh")
    assert isinstance(shown, str)
    assert type(str(shown)) is str


def test_a_tree_in_a_session_of_python() -> None:
    program = "from wengert import Value, tree\nx = Value(2.0, 'x')\ntree(x * x)\n"
    run = [sys.executable, "-i", "-q"]
    session = subprocess.run(run, input=program, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert session.splitlines()[-3:] == [
        "*  data 4  grad not computed",
        "├─ #1 x  data 2  grad not computed",
        "└─ see #1 x",
    ]


def test_a_tree_in_a_notebook() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty", reason="needs IPython, which notebooks run on").pretty
    shown = tree(wengert.sum([Value(float(i)) for i in range(9)]))
    assert pretty(shown) == str(shown)


WRITERS: dict[str, Callable[[Value, Any], object]] = {
    "draw(y).save": lambda y, path: draw(y).save(path),
    "draw(y).render": lambda y, path: draw(y).render(path),
    "draw(y).render in": lambda y, path: draw(y).render("g", directory=path),
    "steps(y).save": lambda y, path: steps(y).save(path),
    "steps(y).page().save": lambda y, path: steps(y).page().save(path),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("path", [1, True, 2.5, b"g.svg", ["g.svg"]])
def test_a_picture_is_not_written_to_a_descriptor(
    write: Callable[[Value, Any], object], path: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ArgumentError, match=r"^the path is .*; expected a string or a pathlib\.Path$"):
        write(Value(1.0) * 2.0, path)
    assert capfd.readouterr() == ("", "")  # and no descriptor has been closed
    os.fstat(1)
