"""Graphs too large to be drawn value by value: by what they are folded, and that nothing is lost."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import wengert
from tests.view.drawn import boxes, moons
from tests.view.geometry import faults
from wengert import Value, draw, nn, tree
from wengert.graph import Graph
from wengert.view.graph.folding import Folding


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
