"""A drawing of a computation with some of its edges marked, and gradients of its own."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from math import isfinite

from wengert.graph import Graph
from wengert.view.graph import svg as drawing
from wengert.view.graph.scene import PATH, Box, Edge, Picture, Row, flat, value_box
from wengert.view.naming import number

__all__ = ["svg"]

MOST = 150  # nodes that are drawn


def svg(graph: Graph, names: list[str], gradients: array[float], marked: set[int], theme: str = "auto") -> str:
    """The whole graph if it is small, else the marked edges and what they join; the last edges, if even they are many.

    Args:
        graph: the computation.
        names: what its nodes are called.
        gradients: what is shown as each node's gradient.
        marked: places in `graph.operands`.
        theme: "light", "dark", or "auto" for the reader's.
    """
    whole = len(graph) <= MOST
    picture = flat(graph, names) if whole else _part(graph, names, marked)
    for box in picture.boxes:
        if box.place >= 0:
            gradient = gradients[box.place]
            row = Row("grad", number(gradient), "grad" if isfinite(gradient) else "broken")
            box.rows = [row if old.name == "grad" else old for old in box.rows]
            box.title = ""
        box.hot = False
    for edge in picture.edges:
        edge.hot = edge.at in marked
        if edge.hot:
            picture.boxes[edge.source].hot = picture.boxes[edge.target].hot = True
    stops = [note for note in picture.notes if note != PATH]
    picture.notes = stops if whole else [f"{len(picture.boxes)} of {len(graph):,} nodes: those on the paths"]
    return drawing.svg(picture, theme=theme)


def _part(graph: Graph, names: list[str], marked: set[int]) -> Picture:
    """The marked edges that are nearest to the root, and what they join."""
    boxes: list[Box] = []
    edges: list[Edge] = []
    box_of: dict[int, int] = {}
    places = sorted(marked, reverse=True)[:MOST]
    targets = [bisect_right(graph.starts, at) - 1 for at in places]  # the nodes whose operands they are
    for place in sorted({graph.operands[at] for at in places} | set(targets)):
        box_of[place] = len(boxes)
        boxes.append(value_box(graph, place, True, names[place]))
    for at, target in zip(places, targets, strict=True):
        edges.append(Edge(box_of[graph.operands[at]], box_of[target], at))
    return Picture(boxes, edges)
