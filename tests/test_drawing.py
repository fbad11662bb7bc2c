"""Pictures of graphs: what is on them, that nothing overlaps, and that hostile input stays text and stays small."""

from __future__ import annotations

import math
import random
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import wengert
from tests.geometry import crosses, faults, overlap, read
from wengert import Value, draw, draw_dot, losses, nn, tree
from wengert.errors import ArgumentError, MissingExtraError, OperandError
from wengert.graph import Graph
from wengert.view.folding import Folding
from wengert.view.layout import layout
from wengert.view.reading import steepest

NEURON = {"x1": 2.0, "x2": 0.0, "w1": -3.0, "w2": 1.0, "b": 6.8813735870195432}


def neuron() -> tuple[Value, dict[str, Value]]:
    """The neuron of the tutorials: E5 of the list of cases."""
    v = {name: Value(number, name) for name, number in NEURON.items()}
    n = v["x1"] * v["w1"] + v["x2"] * v["w2"] + v["b"]
    n.label = "n"
    o = n.tanh()
    o.label = "o"
    return o, v


def texts(svg: str) -> list[str]:
    return [text for text, _, _ in read(svg).texts]


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]


def rows(svg: str) -> dict[str, dict[str, str]]:
    """What each labelled box says: {"n": {"data": "0.8814", "grad": "0.5"}}."""
    found = {}
    for group in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        words = [element.text or "" for element in group.findall("{http://www.w3.org/2000/svg}text")]
        named = [e.text for e in group.findall("{http://www.w3.org/2000/svg}text") if e.get("class") == "name"]
        if named and "data" in words:
            at = words.index("data")
            found[named[0] or ""] = {"data": words[at + 1], "grad": words[at + 3]}
    return found


def random_graph(rng: random.Random, size: int, backward: bool = True) -> Value:
    """A result of `size` operations at most, on values that are near or far."""
    values = [Value(rng.uniform(-1, 1), rng.choice(["", "x", "weight", "a long label " * 3])) for _ in range(3)]
    for _ in range(size):
        x, y = rng.choice(values[-8:]), rng.choice(values)
        values.append(rng.choice([x + y, x * y, x - 2, 3 / (y + 5), x.tanh(), x**2]))
        if rng.random() < 0.05:
            values.append(wengert.sum([*values[-6:], 1.0]))
    root = wengert.sum(values[-9:])
    if backward:
        root.backward()
    return root


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
    assert {row["grad"] for row in rows(draw(y).svg).values()} == {"0"}


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


def test_the_path_of_the_largest_gradient() -> None:
    o, _ = neuron()
    o.backward()
    graph = Graph(o)
    path = steepest(graph, graph.partials, [value.grad for value in graph.values])
    assert [graph.values[graph.operands[at]].label for at in path] == ["n", "", "", "x1"]
    assert draw(o).svg.count('class="edge hot"') == 4
    assert "the path of the largest gradient" in draw(o).svg


def test_the_path_is_the_largest_of_all_paths() -> None:
    """The oracle goes through every path of small graphs and multiplies the partials along each."""
    rng = random.Random(9)
    for _ in range(30):
        root = random_graph(rng, 7)
        graph = Graph(root)
        partials = graph.partials
        products = []
        waiting = [(len(graph) - 1, 1.0, ())]
        while waiting:
            place, product, way = waiting.pop()
            ats = [at for at in range(graph.starts[place], graph.starts[place + 1]) if graph.operands[at] >= 0]
            products += [(abs(product), way)] * (not ats)
            waiting += [(graph.operands[at], product * partials[at], (*way, at)) for at in ats]
        path = tuple(steepest(graph, partials, [value.grad for value in graph.values]))
        assert {way: size for size, way in products}[path] == pytest.approx(max(products)[0], rel=1e-12)


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
    from wengert import owners

    model = nn.MLP(1, [1])
    bias = model.layers[0].neurons[0].b
    assert owners.parameters([bias])[bias][0] == "MLP layers.0.neurons.0.b"
    del model
    assert bias not in owners.parameters([bias])


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
        "import random, wengert; from tests.test_drawing import random_graph; "
        "from wengert import draw, tree; r = random_graph(random.Random(7), 500); d = draw(r); "
        "print(d.svg, d.to_dot(), d.to_mermaid(), tree(r))"
    )
    outputs = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program]
        env = {**__import__("os").environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
        outputs.add(
            subprocess.run(command, capture_output=True, check=True, env=env, cwd=Path(__file__).parent.parent).stdout
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
    from wengert.view import svg

    colours = getattr(svg, name)
    for ink in ("ink", "muted", "grad", "broken"):
        for paper in ("paper", "card", "leaf", "fold", "pill"):
            if paper == "pill" and ink != "ink":
                continue
            light, dark = sorted([luminance(colours[ink]), luminance(colours[paper])], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)


# -- geometry ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_nothing_overlaps(seed: int) -> None:
    rng = random.Random(seed)
    root = random_graph(rng, rng.randint(1, 110), backward=seed % 3 > 0)
    assert faults(draw(root).svg) == []


@pytest.mark.parametrize("seed", range(12))
def test_nothing_overlaps_in_what_is_folded(seed: int) -> None:
    rng = random.Random(100 + seed)
    model = nn.MLP(2, [rng.randint(1, 9), rng.randint(1, 9), 1], activation="tanh", rng=rng)
    points = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(rng.randint(1, 30))]
    loss = wengert.sum([losses.mse(model(x), 1.0) for x in points]) + 1e-4 * sum(p * p for p in model.parameters())
    loss.backward()
    assert faults(draw(loss, limit=rng.choice([50, 100, 300])).svg) == []


@pytest.mark.parametrize("seed", range(60))
def test_boxes_of_any_size_and_edges_of_any_kind(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(1, 80)
    sizes = [(rng.uniform(5, 200), rng.uniform(5, 90)) for _ in range(n)]
    edges = [(rng.randrange(i), i) for i in range(1, n) for _ in range(rng.choice([0, 1, 1, 2, 5]))]
    laid = layout(sizes, edges)
    rects = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(laid.corners, sizes, strict=True)]
    assert not [(a, b) for i, a in enumerate(rects) for b in rects[:i] if overlap(a, b)]
    assert all(x >= -1e-6 and y >= -1e-6 and r <= laid.width + 1e-6 and b <= laid.height + 1e-6 for x, y, r, b in rects)
    for (source, target), route in zip(edges, laid.routes, strict=True):
        assert route[0] == (pytest.approx(rects[source][2]), pytest.approx((rects[source][1] + rects[source][3]) / 2))
        assert route[-1][0] == pytest.approx(rects[target][0])
        assert rects[target][1] - 6 < route[-1][1] < rects[target][3] + 6
        for i in range(1, len(route), 2):  # a curve stays between the heights of its ends, and in the gap
            assert route[i - 1][0] < route[i][0]
            assert route[i][1] == route[i + 1][1]
            for box in rects:
                assert not crosses(route[i], route[i + 1], box)
                assert box[2] <= route[i - 1][0] + 1e-6 or box[0] >= route[i][0] - 1e-6


def test_the_checker_finds_what_it_is_to_find() -> None:
    good = draw(neuron()[0]).svg
    card = re.findall(r'<rect class="card" x="([\d.]+)" y="([\d.]+)"', good)
    assert faults(good) == []
    moved = good.replace(f'x="{card[0][0]}" y="{card[0][1]}"', f'x="{card[1][0]}" y="{card[1][1]}"', 1)
    assert any("overlap" in fault for fault in faults(moved))
    assert any("leaves its box" in fault for fault in faults(good.replace(">x1<", f">{'x' * 40}<")))
    line = re.sub(r'(class="edge"[^>]*><path class="line" d=")M[^"]*', r"\1M0 0L700 200", good)
    assert any("runs under" in fault for fault in faults(line))


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ArgumentError, match="2 of the boxes form a cycle"):
        layout([(1.0, 1.0)] * 3, [(0, 1), (1, 2), (2, 1)])


def test_few_edges_cross() -> None:
    """A tree, a chain and a ladder have drawings without a crossing, and the sweeps find them."""
    for edges in ([(2 * i + 1 + k, i) for i in range(15) for k in (0, 1)], [(i, i + 1) for i in range(30)]):
        n = 1 + max(max(edge) for edge in edges)
        laid = layout([(30.0, 20.0)] * n, edges)
        ends = {}
        for route in laid.routes:
            ends.setdefault(route[0][0], []).append((route[0][1], route[1][1]))
        for column in ends.values():
            column.sort()
            assert all(a[1] <= b[1] for a, b in pairwise(column))


# -- large graphs -----------------------------------------------------------------------------------------------------


def boxes(svg: str) -> int:
    return len(read(svg).boxes)


@pytest.mark.parametrize("size", [250, 301, 2_000, 20_000])
def test_a_chain_of_any_length(size: int) -> None:
    x = y = Value(1.0, "x")
    for _ in range(size):
        y = y.tanh() if size % 2 else y + x
    y.backward()
    drawn = draw(y)
    assert boxes(drawn.svg) <= 300
    assert len(drawn.svg) < 400_000
    assert ("values are folded into" in drawn.svg) == (size > 300)
    assert faults(drawn.svg) == []
    assert len(tree(y)) < 100_000


def moons(examples: int) -> Value:
    rng = random.Random(1)
    model = nn.MLP(2, [16, 16, 1], rng=rng)
    values = [losses.hinge(model([rng.gauss(0, 1), rng.gauss(0, 1)]), 1) for _ in range(examples)]
    moons.model = model  # type: ignore[attr-defined]  # its parameters go by its names as long as it lives
    loss = wengert.mean(values) + 1e-4 * wengert.sum([p * p for p in model.parameters()])
    loss.backward()
    return loss


def test_one_example_folds_into_its_neurons() -> None:
    named = [part.name for part in Folding(Graph(moons(1))).picture()[1].values()]
    assert {"layers.0.neurons.3", "layers.1.neurons.15"} <= set(named)


def test_many_examples_fold_into_examples_and_parameters() -> None:
    folding = Folding(Graph(moons(40)))
    parts = {part.name: part for part in folding.picture()[1].values()}
    assert set(parts) == {"parameters", *[f"example {k}" for k in range(1, 41)]}
    inner = {part.name for part in parts["parameters"].items if not isinstance(part, int)}
    assert inner == {"parameters of layers.0", "parameters of layers.1", "parameters of layers.2"} or inner == {
        "parameters of layers.0",
        "parameters of layers.1",
        "parameters of layers.2.neurons.0",
    }


def test_very_many_examples_fold_into_runs_of_examples() -> None:
    folding = Folding(Graph(moons(400)), limit=100)
    picture, parts = folding.picture()
    assert len(picture.boxes) <= 100
    assert any(re.fullmatch(r"examples \d+ to \d+", part.name) for part in parts.values())
    assert min(len(part.places) for part in parts.values()) > 3  # so few values are drawn one by one


def test_a_recurrent_cell_folds_into_steps() -> None:
    rng = random.Random(2)
    cell = nn.Layer(4, 3, activation="tanh", rng=rng)
    state: Any = [0.0, 0.0, 0.0]
    for _ in range(40):
        state = cell([rng.gauss(0, 1), *state])
    loss = wengert.sum(state)
    loss.backward()
    drawn, parts = Folding(Graph(loss)).picture()
    assert {part.name for part in parts.values()} >= {"step 1", "step 40"}
    assert len(drawn.boxes) <= 300
    assert faults(draw(loss).svg) == []


def test_every_value_is_in_one_place_of_the_folding() -> None:
    folding = Folding(Graph(moons(30)))
    seen: list[int] = []
    waiting: list[Any] = [folding.whole]
    while waiting:
        item = waiting.pop()
        if isinstance(item, int):
            seen.append(item)
        else:
            assert list(item.places) == sorted(p for i in item.items for p in ([i] if isinstance(i, int) else i.places))
            waiting += item.items
    assert sorted(seen) == list(range(len(folding.graph)))


def test_parts_that_stand_on_one_another_in_a_circle_become_one() -> None:
    """Two layers that are used by turns, with something between: no order of the two would do."""
    first, second = nn.Layer(2, 2, activation="tanh"), nn.Layer(2, 2, activation="tanh")
    x: Any = [1.0, 2.0]
    for _ in range(30):
        x = second([v * 1.5 for v in first([v + 0.5 for v in x])])
    for limit in (50, 80, 300):
        drawn = draw(wengert.sum(x), limit=limit)
        assert boxes(drawn.svg) <= limit
        assert faults(drawn.svg) == []


# -- files ------------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    o, _ = neuron()
    drawn = draw(o)
    for name in ("g.svg", "g.html", "g.dot", "g.mmd", "G.SVG"):
        drawn.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8")
    assert (tmp_path / "g.svg").read_text(encoding="utf-8") == drawn.svg + "\n"
    ET.fromstring((tmp_path / "g.svg").read_text(encoding="utf-8"))
    for name in ("g.jpg", "g", ".", "svg"):
        with pytest.raises(ArgumentError, match=r"should end in \.svg, \.png, \.html, \.dot, \.mmd"):
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
    draw(wengert.sum([Value(1.0) for _ in range(200)]), theme="dark").save(tmp_path / "large.png")
    data = (tmp_path / "large.png").read_bytes()
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert height > 10_000
    assert width * height < 16_100_000


def test_png_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=r'pip install "wengert\[png\]"'):
        draw(Value(1.0)).save(tmp_path / "g.png")
    assert not (tmp_path / "g.png").exists()


def test_the_page_runs_nothing_and_fetches_nothing(tmp_path: Path) -> None:
    draw(moons(30)).save(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert "default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;" in page
    assert "<script" not in page
    assert not re.findall(r"\son\w+=", page)
    assert set(re.findall(r'(?:href|src)="([^"]{0,3})', page)) <= {"#pa", "#ev"}
    links, sections = re.findall(r'href="#([^"]*)"', page), re.findall(r'<section id="([^"]*)"', page)
    assert set(links) == set(sections)
    assert len(sections) > 30
    assert sections[-1] == "everything"
    assert len(page) < 12_000_000


def test_dot_and_mermaid() -> None:
    o, _ = neuron()
    o.backward()
    dot, mermaid = draw(o).to_dot(), draw(o).to_mermaid()
    assert dot.count(" -> ") == 9 + 5  # operands, and from each operation to its result
    assert mermaid.count(" --> ") == 9 + 5
    assert r'b9 [label="o\ndata 0.7071\ngrad 1"' in dot
    assert 'b9["o<br/>data 0.7071<br/>grad 1"]' in mermaid
    large = draw(moons(200)).to_mermaid()
    assert len(large) <= 50_000
    assert large.count(" --> ") <= 500


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
    assert lines[-1] == "… and 4,991 more values: limit= shows more of them, draw() folds them"


# -- hostile input ----------------------------------------------------------------------------------------------------


class Stranger:
    """An object as another engine has them, in a cycle with itself."""

    def __init__(self) -> None:
        self.data, self.grad, self._op, self.label = 1.0, 0.0, "+", ""
        self._prev = (self,)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "root",
    [Stranger(), CYCLE, None, 1.0, "x", [Value(1.0)], MagicMock(spec=Value), Value],
    ids=["stranger", "cycle", "None", "float", "str", "list", "mock", "class"],
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


def test_a_label_of_any_length() -> None:
    x = Value(1.0, "a" * 10_000)
    svg = draw(x * 2).svg
    assert "a" * 10_000 in titles(svg)[0] + titles(svg)[1]
    assert max(map(len, texts(svg))) <= 24
    endless = Value(1.0, "b" * 3_000_000)
    drawn = draw(endless * 2)
    assert len(drawn.svg) < 30_000
    assert len(drawn.to_dot()) + len(drawn.to_mermaid()) + len(tree(endless)) < 5_000
    assert faults(svg) == []


HOSTILE = [
    "<script>alert(1)</script>",
    "</text></svg><img src=x onerror=alert(1)>",
    "]]>",
    "<!--",
    "&lt;b&gt;",
    "&#x41;&amp;",
    '"',
    "'",
    '" onload="alert(1)',
    "' onmouseover='alert(1)",
    "`x`",
    "javascript:alert(1)",
    "https://example.org/?a=1&b=2",
    "url(https://example.org/x.png)",
    "}</style><style>*{display:none}",
    "*{fill:red}",
    "\\",
    "\\N\\G\\l",
    "{a|b}",
    "|",
    "a\nb\r\nc\td",
    "\x00\x01\x07\x1b[31mred",
    "\x7f\x80\x9f",
    "\ud800\udfff",
    "\ufffe\uffff",
    "\u202eevil\u202c",
    "\u2066\u2067\u2068\u2069",
    "\u200f\u200e\u061c",
    "שלום",
    "مرحبا ﷽",
    "数学 グラフ 그래프",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "Z̷̢̛͔͙̮͎a̶l̸g̵o̴" + "\u0301" * 50,
    "\u3000\u2003\u00a0",
    "\u2028\u2029\u0085",
    "\U000e0001\U0010ffff",
    "ａｂｃ",
    "%s %d {0} {x}",
    "$x^2$ \\frac{1}{2}",
    "-->",
    "1. a list",
    "# a heading",
    "end",
    "click b0 href",
    "a;b",
    "//",
    "%%{init: {}}%%",
    "  ",
    "i" * 24,
    "W" * 24,
]


def hostile(count: int) -> list[str]:
    """Labels made of the above, alone, in pairs, and with characters of every plane."""
    rng = random.Random(5)
    labels = list(HOSTILE)
    while len(labels) < count:
        noise = "".join(
            chr(rng.choice([rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x110000)])) for _ in range(8)
        )
        labels.append(rng.choice([rng.choice(HOSTILE) + rng.choice(HOSTILE), noise, noise + rng.choice(HOSTILE)]))
    return labels


def test_a_thousand_hostile_labels_stay_text() -> None:
    labels = hostile(1000)
    plain = draw(wengert.sum([Value(1.0, "plain")] * 20)).svg
    tags = {element.tag for element in ET.fromstring(plain).iter()}
    for start in range(0, 1000, 20):
        values = [Value(1.0, label) for label in labels[start : start + 20]]
        root = wengert.sum(values)
        root.label = labels[start]
        drawn = draw(root)
        tree_of_svg = ET.fromstring(drawn.svg)
        assert {element.tag for element in tree_of_svg.iter()} <= tags
        for element in tree_of_svg.iter():
            assert set(element.attrib) <= {
                *("class", "x", "y", "width", "height", "rx", "d", "textLength", "lengthAdjust", "transform"),
                *("role", "aria-label", "viewBox"),
            }
        assert len(read(drawn.svg).boxes) == 21
        assert faults(drawn.svg) == []
        drawn.svg.encode("utf-8")
        for text in (drawn.to_dot(), drawn.to_mermaid(), tree(root)):
            text.encode("utf-8")
            assert not set(text) & set("\x00\x07\x1b\x7f\u202e\u2028\x85")
        assert len(tree(root).splitlines()) == 21
        assert len(drawn.to_dot().splitlines()) == 21 + 1 + 20 + 3
        assert len(drawn.to_mermaid().splitlines()) == 21 + 1 + 20 + 1
        strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", drawn.to_dot())
        assert re.fullmatch(r"[\w\s\[\]{}=;,.>-]*", strings)
        strings = re.sub(r'"[\w .#;<>/\-]*"', "", drawn.to_mermaid())
        assert re.fullmatch(r"[\w\s\[\]()>-]*", strings)


def test_names_in_a_model_are_text_too(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            self.table = {label: [Value(float(i)) for i in range(9)] for label in [*HOSTILE, "z" * 5000]}

        def __call__(self, x: float) -> Value:
            return wengert.sum([wengert.dot(row, [x] * 9).tanh() for row in self.table.values()])

    model = Odd()
    result = model(0.5)
    for drawn in (draw(result, limit=50), draw(result), draw(result, limit=2000)):
        assert faults(drawn.svg) == []
        assert max(map(len, texts(drawn.svg))) < 100
        assert len(drawn.svg) < 2_500_000
    draw(result).save(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert set(re.findall(r"<(\w+)", page)) <= {
        *("html", "head", "meta", "title", "style", "body", "section", "nav", "a", "b", "p", "div"),
        *("svg", "g", "rect", "path", "text"),
    }


def test_a_symbol_of_a_users_operation_is_text_too() -> None:
    odd = wengert.op("oddly_drawn", value=lambda x: x, partials=lambda out, x: 1.0, symbol='<b onclick="x">' * 9)
    svg = draw(odd(Value(1.0))).svg
    assert faults(svg) == []
    assert "<b" not in svg


# -- names of the module ----------------------------------------------------------------------------------------------


def test_no_module_bears_the_name_of_a_public_function() -> None:
    import wengert.view

    files = {path.stem for path in Path(str(wengert.view.__file__)).parent.glob("*.py")}
    assert not files & {"draw", "draw_dot", "tree"}
    assert callable(wengert.draw)


def test_the_pictures_of_the_documentation_are_what_is_drawn_today() -> None:
    root = Path(__file__).resolve().parent.parent
    for name, text in runpy.run_path(str(root / "tools" / "make_pictures.py"))["pictures"]().items():
        kept = (root / "docs" / "images" / name).read_text(encoding="utf-8")
        assert kept == text, "run python tools/make_pictures.py"
        assert faults(text) == []
