"""Draws a graph with highlighted edges and with gradients that are passed in."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from wengert.graph import Graph
from wengert.view.graph.folding import Folding
from wengert.view.graph.formats import svg as images
from wengert.view.graph.scene import PATH, Edge, Picture, cell_of, value_box

__all__ = ["svg"]

MOST = 150  # the largest number of nodes that are drawn


def svg(graph: Graph, names: list[str], gradients: array[float], highlighted: set[int], theme: str = "auto") -> str:
    """Draw the whole graph if it is small, else only the highlighted edges that are nearest to the result.

    Args:
        graph: the computation.
        names: the names of its nodes.
        gradients: the gradients to show.
        highlighted: indices in `graph.operands`.
        theme: "light", "dark", or "auto" for the reader's.
    """
    whole = len(graph) <= MOST
    unfolded = len(graph) + len(graph.operands)  # an upper bound of the boxes
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
    """Make a picture of the highlighted edges that are nearest to the root, and their ends."""
    places = sorted(highlighted, reverse=True)[:MOST]
    ends = [(graph.operands[at], bisect_right(graph.starts, at) - 1) for at in places]
    shown = sorted({place for pair in ends for place in pair})
    box_of = {place: i for i, place in enumerate(shown)}
    edges = [Edge(box_of[source], box_of[target], at) for at, (source, target) in zip(places, ends, strict=True)]
    return Picture([value_box(graph, place, None, names[place]) for place in shown], edges)
