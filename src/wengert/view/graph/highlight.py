"""A drawing of a computation with some of its edges highlighted, and gradients of its own."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from wengert.graph import Graph
from wengert.view.graph.folding import Folding
from wengert.view.graph.formats import svg as images
from wengert.view.graph.scene import PATH, Edge, Picture, cell_of, value_box

__all__ = ["svg"]

MOST = 150  # nodes that are drawn


def svg(graph: Graph, names: list[str], gradients: array[float], highlighted: set[int], theme: str = "auto") -> str:
    """The whole graph if it is small, else the highlighted edges and what they join: the last edges, if many are.

    Args:
        graph: the computation.
        names: what its nodes are called.
        gradients: what is shown as each node's gradient.
        highlighted: places in `graph.operands`.
        theme: "light", "dark", or "auto" for the reader's.
    """
    whole = len(graph) <= MOST
    unfolded = len(graph) + len(graph.operands)  # boxes, at most
    picture = Folding(graph, unfolded, names=names).picture()[0] if whole else _part(graph, names, highlighted)
    for box in picture.boxes:
        if box.place >= 0:
            box.rows[1] = cell_of("grad", gradients[box.place])
            box.title = ""
        box.hot = False
    for edge in picture.edges:
        edge.hot = edge.at in highlighted
        if edge.hot:
            picture.boxes[edge.source].hot = picture.boxes[edge.target].hot = True
    stops = [note for note in picture.notes if note != PATH]
    picture.notes = stops if whole else [f"{len(picture.boxes)} of {len(graph):,} nodes: those on the paths"]
    return images.sheet(picture, theme)[0]


def _part(graph: Graph, names: list[str], highlighted: set[int]) -> Picture:
    """The highlighted edges that are nearest to the root, and what they join."""
    places = sorted(highlighted, reverse=True)[:MOST]
    ends = [(graph.operands[at], bisect_right(graph.starts, at) - 1) for at in places]
    shown = sorted({place for pair in ends for place in pair})
    box_of = {place: i for i, place in enumerate(shown)}
    edges = [Edge(box_of[source], box_of[target], at) for at, (source, target) in zip(places, ends, strict=True)]
    return Picture([value_box(graph, place, None, names[place]) for place in shown], edges)
