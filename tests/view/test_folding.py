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
from wengert.view.naming import names, number

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
    folding = Folding(Graph(moons(200)), limit=100)
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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sizes", [[8, 8, 1], [3, 1]])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("penalty", [lambda p: 0.01 * sum(x * x for x in p), lambda p: losses.l2(p, 0.01)])
def test_a_penalty_takes_no_name_from_a_neuron(sizes: list[int], count: int, penalty: Any) -> None:
    """The names of the outputs are those that they have without a penalty; nothing made of parameters alone has one."""
    model = nn.MLP(2, sizes, activation="tanh", rng=random.Random(1))
    data = wengert.mean([(model([1.0, k + 0.5]) - 1) ** 2 for k in range(count)])
    plain = dict(zip(Graph(data).values, names(Graph(data)), strict=True))
    loss = data + penalty(model.parameters())
    graph = Graph(loss)
    called = dict(zip(graph.values, names(graph), strict=True))
    assert {plain[value] for value in plain} > {"example 1: " * (count > 1) + "layers.1.neurons.0"}
    assert {value: called[value] for value in plain if value is not data} == {
        value: name for value, name in plain.items() if value is not data
    }
    for value in set(called) - set(plain) - {loss}:
        assert not re.match(r"(…|parameters|layers|example)", called[value]) or value.is_leaf, called[value]
    lines = tree(loss, limit=None)
    assert f"layers.{len(sizes) - 1}.neurons.0 = dot  data" in lines


@pytest.mark.parametrize("squared", [lambda w: sum(p * p for p in w), lambda w: wengert.dot(w, w)])
def test_a_neuron_with_a_penalty_is_a_box_with_its_output(squared: Any) -> None:
    model = nn.MLP(2, [8, 8, 1], activation="tanh", rng=random.Random(1))
    out = model([1.0, 2.0])
    loss = (out - 1) ** 2 + 0.01 * sum(squared(n.w) for layer in model.layers for n in layer.neurons)
    drawn = {box.label: [row.text for row in box.rows if row.name in ("data", "b")] for box in draw(loss).picture.boxes}
    inputs: Any = [1.0, 2.0]
    for i, layer in enumerate(model.layers):
        inputs = [neuron(inputs) for neuron in layer.neurons]
        for k, neuron in enumerate(layer.neurons):
            assert drawn[f"layers.{i}.neurons.{k}"] == [number(inputs[k].data), number(neuron.b.data)]


def test_a_sum_over_the_weights_of_a_layer_is_one_box() -> None:
    model = nn.MLP(2, [8, 8, 1], activation="tanh", rng=random.Random(1))
    loss = (model([1.0, 2.0]) - 1) ** 2 + 0.01 * sum(p * p for p in model.parameters())
    drawn = draw(loss)
    assert [box.label for box in drawn.picture.boxes].count("sum") == 2, "within the first layer, and beyond it"
    assert float(ET.fromstring(drawn.svg).attrib["width"]) <= 1_900
    assert faults(drawn.svg) == []


def test_two_models_of_one_class_are_two_parts() -> None:
    a, b = (nn.MLP(3, [30, 1], rng=random.Random(seed)) for seed in (1, 2))
    x = [1.0, 2.0, 3.0]
    result = a(x) + b(x)
    folding = Folding(Graph(result))
    parts = {part.name: part for part in folding.picture()[1].values()}
    for which, model in ((1, a), (2, b)):
        inside = {folding.graph.values[place] for place in parts[f"MLP#{which} layers.0"].places}
        assert {value for value in inside if value.is_leaf} == set(model.layers[0].parameters())
        output = parts[f"MLP#{which} layers.1.neurons.0"].output
        assert folding.graph.values[output].data == model(x).data
    called = dict(zip(folding.graph.values, names(folding.graph), strict=True))
    assert called[a.layers[0].neurons[2].w[1]] == "MLP#1 layers.0.neurons.2.w.1"
    assert called[b.layers[0].neurons[2].w[1]] == "MLP#2 layers.0.neurons.2.w.1"
    alone = dict(zip(Graph(b(x)).values, names(Graph(b(x))), strict=True))
    assert alone[b.layers[0].neurons[2].w[1]] == "layers.0.neurons.2.w.1", "the other takes no part"


def test_a_model_that_reads_what_another_of_its_class_computes() -> None:
    second = nn.MLP(2, [20, 1], rng=random.Random(2))  # the older and the smaller
    first = nn.MLP(3, [30, 2], rng=random.Random(1))
    parts = {part.name for part in Folding(Graph(second(first([1.0, 2.0, 3.0])))).picture()[1].values()}
    assert {"MLP#2 layers.0.neurons.29", "MLP#1 layers.0.neurons.19", "MLP#1 layers.1.neurons.0"} <= parts
