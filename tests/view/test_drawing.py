"""Pictures of graphs: what is on them, as SVG, in files, as text; what is no graph is refused."""

from __future__ import annotations

import colorsys
import math
import random
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import wengert
from tests.view.drawn import boxes, moons, neuron, random_graph, rows, texts
from tests.view.geometry import faults, read
from wengert import Value, draw, draw_dot, nn, tree
from wengert.errors import ArgumentError, MissingExtraError, OperandError
from wengert.graph import Graph
from wengert.view.graph.folding import Folding
from wengert.view.graph.formats.svg import DARK, LIGHT
from wengert.view.graph.layout import layout
from wengert.view.graph.read import steepest

pytestmark = pytest.mark.once  # a picture does not depend on which engine made the graph

# -- what is on the picture -------------------------------------------------------------------------------------------


def test_the_neuron_of_the_tutorials() -> None:
    o, _ = neuron()
    o.backward()
    said = rows(draw_dot(o).svg)
    assert said == {
        "x1": {"data": "2", "grad": "-1.5"},
        "w1": {"data": "-3", "grad": "1"},
        "x2": {"data": "0", "grad": "0.5"},
        "w2": {"data": "1", "grad": "0"},
        "b": {"data": "6.881", "grad": "0.5"},
        "x1*w1": {"data": "-6", "grad": "0.5"},
        "x2*w2": {"data": "0", "grad": "0.5"},
        "x1*w1 + x2*w2": {"data": "-6", "grad": "0.5"},
        "n": {"data": "0.8814", "grad": "0.5"},
        "o": {"data": "0.7071", "grad": "1"},
    }
    assert sorted(t for t in texts(draw(o).svg) if t in "+*" or t == "tanh") == ["*", "*", "+", "+", "tanh"]


def test_operands_are_left_of_results() -> None:
    drawn = Folding(Graph(neuron()[0])).picture()[0]
    laid = layout([(80.0, 40.0)] * len(drawn.boxes), [(edge.source, edge.target) for edge in drawn.edges])
    assert all(laid.corners[edge.source][0] + 80 < laid.corners[edge.target][0] for edge in drawn.edges)
    assert [drawn.boxes[i].label for i, corner in enumerate(laid.corners) if corner[0] == max(laid.corners)[0]] == ["o"]


def test_before_a_backward_pass_nothing_is_computed() -> None:
    o, _ = neuron()
    assert {row["grad"] for row in rows(draw(o).svg).values()} == {"not computed"}
    assert "hot" not in draw(o).svg.split("</style>")[1]


def test_by_hand_only_what_has_received_its_gradient_is_computed() -> None:
    o, _ = neuron()
    o.grad = 1.0
    said = rows(draw(o).svg)
    assert said["o"]["grad"] == "1"
    assert said["n"]["grad"] == said["w2"]["grad"] == "not computed"
    o._backward()
    said = rows(draw(o).svg)
    assert said["n"]["grad"] == "0.5"
    assert said["b"]["grad"] == said["x1"]["grad"] == "not computed"


def test_a_gradient_of_0_that_was_computed_is_0() -> None:
    x = Value(3.0, "x")
    y = x - x
    y.backward()
    assert rows(draw(y).svg)["x"]["grad"] == "0"
    x, dead = Value(-2.0, "x"), Value(1.0, "w")
    y = (x * dead).relu()
    y.backward()
    gradients = {name: row["grad"] for name, row in rows(draw(y).svg).items()}
    assert gradients == {"x": "0", "w": "0", "x*w": "0", "relu(x*w)": "1"}


def test_a_leaf_keeps_what_earlier_passes_left_and_the_new_result_has_none() -> None:
    x = Value(3.0, "x")
    (x * 2).backward()
    y = x * 5
    y.label = "y"
    assert {name: row["grad"] for name, row in rows(draw(y).svg).items()} == {"x": "2", "y": "not computed"}


def test_x_plus_x_has_two_edges() -> None:
    x = Value(3.0, "x")
    shown = read(draw(x + x).svg)
    assert len(shown.boxes) == 2
    first, second = shown.edges
    assert first != second
    assert first[0] == second[0]
    assert first[-1][1] != second[-1][1]


def test_constants_are_small_leaves_of_their_own_and_an_exponent_is_not() -> None:
    x = Value(3.0, "x")
    svg = draw(2 * x + 2 + x**2).svg
    assert texts(svg).count("2") == 2
    assert "**2" in texts(svg)
    assert "64 constants" in texts(draw(nn.Neuron(64)([1.0] * 64)).svg)


def test_the_path_with_the_largest_product_of_derivatives() -> None:
    o, _ = neuron()
    o.backward()
    graph = Graph(o)
    path = steepest(graph, [value.grad for value in graph.values])
    assert [graph.values[graph.operands[at]].label for at in path] == ["n", "", "", "x1"]
    assert draw(o).svg.count('class="edge hot"') == 4
    assert "the path with the largest product of derivatives" in draw(o).svg
    x, w, b = (Value(number, name) for name, number in (("x", 1.0), ("w", 0.5), ("b", 0.0)))
    sum_of_two = (x * w).tanh() + b
    sum_of_two.backward()
    assert abs(b.grad) > max(abs(x.grad), abs(w.grad)), "the largest gradient, but not at the beginning"
    graph = Graph(sum_of_two)
    assert graph.operands[steepest(graph, [value.grad for value in graph.values])[-1]] == graph.values.index(w)


def test_the_path_is_the_largest_of_all_paths_to_where_the_computation_begins() -> None:
    """The oracle goes through every path of small graphs and multiplies the partials along each."""
    rng = random.Random(9)
    for _ in range(30):
        root = random_graph(rng, 7)
        graph = Graph(root)
        partials = graph.partials
        first = set()  # what operations of leaves alone are of
        for place in range(len(graph)):
            operands = [x for x in graph.operands[graph.starts[place] : graph.starts[place + 1]] if x >= 0]
            first |= {*operands} if all(graph.values[x].is_leaf for x in operands) else set()
        products = []
        waiting = [(len(graph) - 1, 1.0, ())]
        while waiting:
            place, product, way = waiting.pop()
            ats = [at for at in range(graph.starts[place], graph.starts[place + 1]) if graph.operands[at] >= 0]
            if not ats:
                products.append((place in first, abs(product), way))
            waiting += [(graph.operands[at], product * partials[at], (*way, at)) for at in ats]
        path = tuple(steepest(graph, [value.grad for value in graph.values]))
        among = [(size, way) for is_first, size, way in products if is_first and size]
        among = among or [(size, way) for _, size, way in products]
        assert {way: size for size, way in among}[path] == pytest.approx(max(among)[0], rel=1e-12)


def test_where_no_gradient_flows_there_is_no_path() -> None:
    dead = (Value(-1.0) * 2).relu()
    dead.backward()
    assert "hot" not in draw(dead).svg.split("</style>")[1]


def test_nan_and_infinity_are_shown() -> None:
    x = Value(math.inf, "x")
    y = x - x
    y.backward()
    z = (Value(-1.0, "z").log() * x).exp()
    assert "nan" in texts(draw(y).svg)
    assert "inf" in texts(draw(y).svg)
    z.backward()
    for root in (y, z, Value(math.nan), Value(-math.inf)):
        assert faults(draw(root).svg) == []
        assert tree(root)


def test_parameters_go_by_their_names_in_their_model() -> None:
    model = nn.MLP(2, [2, 1])
    labels = rows(draw(model([1.0, 2.0])).svg)
    assert "layers.0.neurons.1.w.0" in labels
    assert "layers.1.neurons.0.b" in labels
    model.layers[0].neurons[1].w[0].label = "mine"
    assert "mine" in rows(draw(model([1.0, 2.0])).svg)


def test_a_model_that_is_gone_leaves_no_name() -> None:
    from wengert.nn import registered_names

    model = nn.MLP(1, [1])
    bias = model.layers[0].neurons[0].b
    assert registered_names([bias])[bias][0] == "MLP layers.0.neurons.0.b"
    del model
    assert bias not in registered_names([bias])


def test_a_model_of_ones_own_that_compares_as_it_likes() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            self.table = {"a": [Value(1.0), Value(2.0)]}

        def __eq__(self, other: object) -> bool:
            return True

    first, second = Odd(), Odd()
    for model in (first, second):
        assert "table.a.1" in rows(draw(model.table["a"][0] * model.table["a"][1]).svg)


# -- the same picture everywhere --------------------------------------------------------------------------------------


def test_what_a_notebook_shows() -> None:
    o, _ = neuron()
    assert o._repr_mimebundle_() == {"image/svg+xml": draw(o).svg, "text/plain": repr(o)}
    assert o._repr_mimebundle_(include={"text/plain"}) == {"text/plain": repr(o)}
    assert set(draw(o)._repr_mimebundle_(exclude={"text/plain"})) == {"image/svg+xml"}
    assert repr(draw(o)) == "Drawing(10 values in 10 boxes)"


def test_two_runs_draw_the_same_bits(tmp_path: Path) -> None:
    program = (
        "import random, wengert; from tests.view.drawn import random_graph; "
        "from wengert import draw, tree; r = random_graph(random.Random(7), 500); d = draw(r); "
        "print(d.svg, d.to_dot(), tree(r))"
    )
    outputs = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program]
        env = {**__import__("os").environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
        outputs.add(
            subprocess.run(command, capture_output=True, check=True, env=env, cwd=Path(__file__).parents[2]).stdout
        )
    assert len(outputs) == 1


def test_drawing_changes_nothing() -> None:
    o, v = neuron()
    o.backward()
    before = [(value.data, value.grad, value.label) for value in Graph(o).values]
    draw(o).svg, tree(o), draw(o).to_dot()
    assert [(value.data, value.grad, value.label) for value in Graph(o).values] == before
    o.backward()
    assert v["x1"].grad == pytest.approx(-3.0)


def test_a_picture_is_of_the_time_when_it_was_drawn() -> None:
    o, _ = neuron()
    drawn = draw(o)
    o.backward()
    assert "not computed" in drawn.svg


def test_themes() -> None:
    o, _ = neuron()
    auto, light, dark = (draw(o, theme=theme).svg for theme in ("auto", "light", "dark"))
    assert "prefers-color-scheme: dark" in auto
    assert "prefers-color-scheme" not in light + dark
    assert "#12161b" in dark
    assert "#12161b" not in light


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", ["LIGHT", "DARK"])
def test_every_text_can_be_read(name: str) -> None:
    """A contrast of 4.5 or more, as WCAG 2.2 asks for at level AA."""
    from wengert.view.graph.formats import svg

    colours = getattr(svg, name)
    for ink in ("ink", "muted", "grad", "broken"):
        for paper in ("paper", "card", "leaf", "fold", "pill"):
            if paper == "pill" and ink != "ink":
                continue
            light, dark = sorted([luminance(colours[ink]), luminance(colours[paper])], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)


# -- files ------------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    o, _ = neuron()
    drawn = draw(o)
    for name in ("g.svg", "g.html", "g.dot", "G.SVG"):
        drawn.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8")
    assert (tmp_path / "g.svg").read_text(encoding="utf-8") == drawn.svg + "\n"
    ET.fromstring((tmp_path / "g.svg").read_text(encoding="utf-8"))
    for name in ("g.jpg", "g", ".", "svg"):
        with pytest.raises(ArgumentError, match=r"has no known suffix: expected \.svg, \.png, \.html, \.dot"):
            drawn.save(tmp_path / name)
        assert not (tmp_path / name).is_file()
    with pytest.raises(FileNotFoundError):
        drawn.save(tmp_path / "nowhere" / "g.svg")


@pytest.mark.png
def test_png(tmp_path: Path) -> None:
    o, _ = neuron()
    o.backward()
    draw(o).save(tmp_path / "g.png")
    data = (tmp_path / "g.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    shown = read(draw(o).svg)
    assert (width, height) == (pytest.approx(2 * shown.width, abs=1), pytest.approx(2 * shown.height, abs=1))


@pytest.mark.nightly  # it takes seconds to fill so many pixels
@pytest.mark.png
def test_a_large_png_has_as_many_pixels_as_memory_allows(tmp_path: Path) -> None:
    draw(wengert.sum([Value(1.0) for _ in range(200)]), limit=300, theme="dark").save(tmp_path / "large.png")
    data = (tmp_path / "large.png").read_bytes()
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert height > 10_000
    assert width * height < 16_100_000


def test_png_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=r'pip install resvg_py \(the extra "png"\)'):
        draw(Value(1.0)).save(tmp_path / "g.png")
    assert not (tmp_path / "g.png").exists()


def test_the_page_runs_nothing_and_fetches_nothing(tmp_path: Path) -> None:
    draw(moons(12)).save(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "<script" not in page
    assert not re.findall(r"\son\w+=", page)
    assert set(re.findall(r'(?:href|src)="([^"]{0,3})', page)) <= {"#pa", "#ev"}
    links, sections = re.findall(r'href="#([^"]*)"', page), re.findall(r'<section id="([^"]*)"', page)
    assert set(links) == set(sections)
    assert len(sections) > 30
    assert sections[-1] == "everything"
    assert len(page) < 12_000_000


def test_dot() -> None:
    o, _ = neuron()
    o.backward()
    dot = draw(o).to_dot()
    assert dot.count(" -> ") == 9 + 5  # operands, and from each operation to its result
    assert r'b9 [label="o\ndata 0.7071\ngrad 1"' in dot


# -- text -------------------------------------------------------------------------------------------------------------


def test_a_graph_16_deep_that_shares_every_node_is_17_nodes() -> None:
    x = Value(1.0)
    for _ in range(16):
        x = x + x
    lines = tree(x).splitlines()
    assert len([line for line in lines if "data" in line]) == 17
    assert len([line for line in lines if "see #" in line]) == 16
    assert len(lines) == 33
    assert boxes(draw(x).svg) == 17
    assert len(read(draw(x).svg).edges) == 32


def test_the_tree_of_the_neuron() -> None:
    o, _ = neuron()
    o.backward()
    assert tree(o).splitlines()[:3] == [
        "o = tanh  data 0.7071  grad 1",
        "└─ n = +  data 0.8814  grad 0.5",
        "   ├─ +  data -6  grad 0.5",
    ]


def test_a_tree_calls_values_by_their_place_in_the_model() -> None:
    model = nn.MLP(2, [2, 1], rng=random.Random(0))
    lines = tree(sum((model(x) - y) ** 2 for x, y in (([1.0, 2.0], 1.0), ([3.0, 4.0], 2.0)))).splitlines()
    written = [line.strip("│├└─ ").partition("  data")[0] for line in lines]
    assert "example 1: layers.1.neurons.0 = dot" in written
    assert "example 1: layers.0.neurons.0 = ReLU" in written
    assert "example 1: layers.0.neurons.0 (sum) = dot" in written
    assert "example 1 (-)" in written, "its operation is part of its name"
    assert any(line.endswith("layers.0.neurons.1.w.0") for line in written)


def test_the_path_and_the_weights_have_different_colours() -> None:
    for colours in (LIGHT, DARK):
        assert len({colours["hot"], colours["plus"], colours["minus"]}) == 3
        hot, minus = (colorsys.rgb_to_hls(*bytes.fromhex(colours[name][1:]))[0] for name in ("hot", "minus"))
        apart = abs(hot - minus)
        assert min(apart, 1 - apart) > 1 / 6, "another hue, not another orange"


def test_a_deep_tree_goes_on_at_the_margin() -> None:
    x = Value(0.5, "x")
    y = x
    for _ in range(100):
        y = (y + 1).tanh()
    lines = tree(y, limit=1000).splitlines()
    assert max(map(len, lines)) < 120
    assert len([line for line in lines if "data" in line]) == 201
    referred = {line.split("below: ")[1].split()[0] for line in lines if "below: " in line}
    assert referred == {line.split()[0] for line in lines if line.startswith("#")}
    assert len(referred) == 9


def test_a_tree_that_is_too_long_says_so() -> None:
    values = [Value(float(i)) for i in range(5000)]
    lines = tree(wengert.sum(values), limit=10).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 4,991 more values: tree(…, limit=None) shows all, draw(…) folds them"
    assert len(tree(wengert.sum(values)).splitlines()) == 41
    assert len(tree(wengert.sum(values), limit=None).splitlines()) == 5_001


# -- what is no graph --------------------------------------------------------------------------------------------------


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "root",
    [CYCLE, None, 1.0, "x", [Value(1.0)], MagicMock(), Value],
    ids=["cycle", "None", "float", "str", "list", "mock", "class"],
)
@pytest.mark.parametrize("function", [draw, draw_dot, tree])
def test_what_is_no_value_is_refused(function: Any, root: Any) -> None:
    with pytest.raises(OperandError, match="only the graph of a Value can be drawn, not that of a "):
        function(root)


@pytest.mark.parametrize("function", [draw, tree])
def test_what_to_draw_instead_is_said(function: Any) -> None:
    with pytest.raises(OperandError, match="not that of a list: draw one of them, or their sum"):
        function([Value(1.0)])
    with pytest.raises(
        OperandError, match=r"not that of a MLP: draw what it computes, model\(x\), or the model itself by"
    ):
        function(nn.MLP(2, [1]))


@pytest.mark.parametrize(
    "options", [{"limit": 0}, {"limit": 10**9}, {"limit": "many"}, {"limit": True}, {"theme": "pink"}, {"theme": None}]
)
def test_options_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="expected"):
        draw(Value(1.0), **options)


# -- names of the module ----------------------------------------------------------------------------------------------


def test_no_module_bears_the_name_of_a_public_function() -> None:
    import wengert.view

    files = {path.stem for path in Path(str(wengert.view.__file__)).parent.glob("*.py")}
    assert not files & {"draw", "draw_dot", "tree"}
    assert callable(wengert.draw)


def test_the_chart_of_the_readme_is_drawn_from_the_page_of_benchmarks() -> None:
    root = Path(__file__).resolve().parents[2]
    maker = runpy.run_path(str(root / "tools" / "make_readme_picture.py"))
    page = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        kept = (root / "docs" / "images" / f"speed-{theme}.svg").read_text(encoding="utf-8")
        assert maker["chart"](page, theme) == kept, "run python tools/make_readme_picture.py speed"


@pytest.mark.plot
def test_the_names_in_the_chart_have_room_in_the_widest_of_the_usual_fonts() -> None:
    text_path = pytest.importorskip("matplotlib.textpath", reason="needs matplotlib").TextPath
    font = import_module("matplotlib.font_manager").FontProperties(family="DejaVu Sans", weight="bold", size=20)
    chart = (Path(__file__).resolve().parents[2] / "docs" / "images" / "speed-light.svg").read_text(encoding="utf-8")
    names = re.findall(r'<text x="(\d+)" text-anchor="end"[^>]*>(.*?)</text>', chart)
    assert len(names) >= 8
    assert [name for room, name in names if text_path((0, 0), name, prop=font).get_extents().width > int(room)] == []


def test_the_pictures_of_the_documentation_are_what_is_drawn_today() -> None:
    root = Path(__file__).resolve().parents[2]
    for name, text in runpy.run_path(str(root / "tools" / "make_pictures.py"))["pictures"]().items():
        kept = (root / "docs" / "images" / name).read_text(encoding="utf-8")
        assert kept == text, "run python tools/make_pictures.py"
        assert faults(text) == []
