"""Graphs too large to be drawn value by value: by what they are folded, and that nothing is lost."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import wengert
from tests.view.drawn import boxes, moons
from tests.view.geometry import faults
from wengert import Value, draw, losses, nn, tree
from wengert.graph import Graph
from wengert.view.graph.folding import Folding
from wengert.view.naming import names

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it


@pytest.mark.parametrize("size", [50, 61, 2_000, 20_000])
def test_a_chain_of_any_length(size: int) -> None:
    x = y = Value(1.0, "x")
    for _ in range(size):
        y = y.tanh() if size % 2 else y + x
    y.backward()
    drawn = draw(y)
    assert boxes(drawn.svg) <= 60
    assert len(drawn.svg) < 400_000
    assert ("values are folded into" in drawn.svg) == (size > 60)
    assert faults(drawn.svg) == []
    assert len(tree(y)) < 100_000


def test_one_example_folds_into_its_neurons() -> None:
    named = [part.name for part in Folding(Graph(moons(1)), limit=120).picture()[1].values()]
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
    waiting: list[Any] = [folding.everything]
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


def test_a_batch_of_four_folds_to_what_can_be_read() -> None:
    rng = random.Random(7)
    model = nn.MLP(2, [4, 4, 1], activation="tanh", rng=rng)
    loss = wengert.mean([(model([rng.gauss(0, 1), rng.gauss(0, 1)]) - 1) ** 2 for _ in range(4)])
    loss.backward()
    folding = Folding(Graph(loss))
    picture, parts = folding.picture()
    assert 12 <= len(picture.boxes) <= 60
    named = {part.name: part for part in parts.values()}
    assert {f"example {k}: layers.{i}" for k in (1, 2, 3, 4) for i in (0, 1)} < set(named)
    assert len(folding.picture(named["example 1: layers.1"])[0].boxes) <= 60 + 16


def test_a_wide_layer_unfolds_by_neuron() -> None:
    folding = Folding(Graph(moons(4)))
    _, parts = folding.picture()
    (wide,) = [part for part in parts.values() if part.name == "parameters of layers.1"]
    inner = {part.name for part in folding.picture(wide)[1].values()}
    assert {f"parameters of layers.1.neurons.{k}.w" for k in range(16)} == inner


def test_runs_without_a_model_are_called_by_what_is_in_them() -> None:
    x = Value(0.5, "x")
    for i in range(100):
        x = (x * 1.01).tanh() + 0.1
        x.label = "middle" if i == 50 else ""
    x.label = "result"
    names = [part.name for part in Folding(Graph(x)).picture()[1].values()]
    assert names[0] == "values 1 to 32: x"
    assert re.fullmatch(r"values 33 to 64: (1[01] \S+(, )?){3}", names[1])
    assert names[4] == "values 129 to 160: middle"
    assert names[-1].endswith(": result")


def test_a_weight_says_what_it_is_multiplied_by() -> None:
    model = nn.MLP(2, [2, 1], activation="tanh", rng=random.Random(1))
    x = Value(2.0, "x")
    out = model([x, -3.0])
    picture, _ = Folding(Graph(out)).picture()
    met = {box.label: box.rows[2].text for box in picture.boxes if len(box.rows) > 2}
    assert all(box.rows[2].name == "times" for box in picture.boxes if len(box.rows) > 2)
    first = {f"layers.0.neurons.{k}.w.{i}": ("x", "-3")[i] for k in (0, 1) for i in (0, 1)}
    assert {name: factor for name, factor in met.items() if "layers.0" in name} == first
    second = {name: factor for name, factor in met.items() if "layers.1" in name}
    assert second == {f"layers.1.neurons.0.w.{k}": f"layers.0.neurons.{k}" for k in (0, 1)}
    again = Folding(Graph(out + model([1.0, 1.0]))).picture()[0]  # each weight meets two inputs now
    assert [box.label for box in again.boxes if len(box.rows) > 2] == []


def test_a_network_of_a_tutorial_is_seen_at_once() -> None:
    """A box for each neuron, each input once, each weight an edge of its sign and size; no layer is drawn otherwise."""
    model = nn.MLP(3, [4, 4, 1], activation="tanh", rng=random.Random(1))
    out = model([2.0, 3.0, -1.0])
    out.backward()
    drawn = draw(out)
    picture = drawn.picture
    assert float(ET.fromstring(drawn.svg).attrib["width"]) <= 900
    assert float(ET.fromstring(drawn.svg).attrib["height"]) <= 450
    assert faults(drawn.svg) == []
    named = [box.label for box in picture.boxes]
    neurons = [f"layers.{i}.neurons.{k}" for i, size in enumerate([4, 4, 1]) for k in range(size)]
    assert sorted(named) == sorted([*neurons, "2", "3", "-1"])
    weights = sorted(edge.weight for edge in picture.edges)
    assert weights == sorted(w.data for layer in model.layers for neuron in layer.neurons for w in neuron.w)
    for edge in picture.edges:
        layer, neuron = map(int, re.findall(r"\d+", named[edge.target]))
        source = [2.0, 3.0, -1.0].index(float(named[edge.source])) if layer == 0 else int(named[edge.source][-1])
        assert edge.weight == model.layers[layer].neurons[neuron].w[source].data
    hot = [named[edge.target].partition(".neurons")[0] for edge in picture.edges if edge.hot]
    assert sorted(hot) == ["layers.1", "layers.2"], "from the result to a weight of the first layer"
    assert drawn.svg.count("line minus") == sum(w < 0 for w in weights)
    assert "weights, blue if positive" in drawn.svg


def test_a_batch_of_eight_is_seen_at_once() -> None:
    rng = random.Random(1)
    model = nn.MLP(3, [4, 4, 1], activation="tanh", rng=rng)
    of_each = [(model([rng.gauss(0, 1) for _ in range(3)]) - 1) ** 2 for _ in range(8)]
    for loss in (wengert.mean(of_each), sum(of_each)):
        loss.backward()
        drawn = draw(loss).svg
        assert float(ET.fromstring(drawn).attrib["width"]) <= 1366
        assert float(ET.fromstring(drawn).attrib["height"]) <= 900
        assert faults(drawn) == []


def test_values_are_called_by_their_place_in_the_model() -> None:
    model = nn.MLP(2, [2, 1], activation="tanh", rng=random.Random(1))
    one = names(Graph((model([1.0, 2.0]) - 1) ** 2))
    assert one[9:] == [
        *("layers.0.neurons.0 (sum)", "layers.0.neurons.0", "layers.0.neurons.1 (sum)", "layers.0.neurons.1"),
        *("layers.1.neurons.0", "layers.1.neurons.0 - 1", "(layers.1.neurons.0 - 1)**2"),
    ]
    several = names(Graph(wengert.mean([losses.hinge(model([1.0, k]), 1) for k in (0.5, 1.5)])))
    assert several[-1] == "result"
    assert several[-4:-1] == ["example 2 (*)", "example 2 (-)", "example 2"]
    assert "example 1: layers.0.neurons.1 (sum)" in several
    assert len({*several}) == len(several)
