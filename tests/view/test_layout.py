"""Where boxes and edges go: nothing overlaps, nothing runs under a box, few edges cross."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

import wengert
from tests.view.drawn import neuron, random_graph
from tests.view.geometry import crosses, faults, overlap
from wengert import draw, losses, nn
from wengert.errors import ArgumentError
from wengert.view.graph.layout import layout

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_nothing_overlaps(seed: int) -> None:
    rng = random.Random(seed)
    root = random_graph(rng, rng.randint(1, 110), backward=seed % 3 > 0)
    assert faults(draw(root).svg) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_nothing_overlaps_in_what_is_folded(seed: int) -> None:
    rng = random.Random(100 + seed)
    model = nn.MLP(2, [rng.randint(1, 9), rng.randint(1, 9), 1], activation="tanh", rng=rng)
    points = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(rng.randint(1, 30))]
    loss = wengert.sum([losses.mse(model(x), 1.0) for x in points]) + 1e-4 * sum(p * p for p in model.parameters())
    loss.backward()
    assert faults(draw(loss, limit=rng.choice([50, 100, 300])).svg) == []


@pytest.mark.sampled(6)
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
