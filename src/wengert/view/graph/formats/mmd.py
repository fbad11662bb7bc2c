"""A drawing in the language of Mermaid, which GitHub draws in a code block of that name."""

from __future__ import annotations

import re

from wengert.view.graph.folding import FEWEST, Folding
from wengert.view.graph.formats import Drawn
from wengert.view.graph.formats.dot import HOT
from wengert.view.graph.scene import Picture

__all__ = ["write"]

EDGES, LENGTH = 500, 50_000  # the most that Mermaid draws: maxEdges and maxTextSize, whose defaults GitHub keeps


def write(drawing: Drawn) -> str:
    """A flowchart; a graph that Mermaid would not draw is folded further than elsewhere."""
    picture, limit = drawing.picture, len(drawing.picture.boxes)
    text = _flowchart(picture)
    while (len(text) > LENGTH or len(picture.edges) + len(picture.boxes) > EDGES) and limit > FEWEST:
        limit //= 2
        picture = Folding(drawing.folding.graph, limit, picture.rankdir).picture()[0]
        text = _flowchart(picture)
    return text


def _flowchart(picture: Picture) -> str:
    boxes = [f'  b{i}["{"<br/>".join(map(_coded, box.lines())) or " "}"]' for i, box in enumerate(picture.boxes)]
    made = [(i, box) for i, box in enumerate(picture.boxes) if box.symbol]
    arrows = [(f'  o{i}(("{_coded(box.symbol)}")) --> b{i}', box.hot) for i, box in made]
    arrows += [(f"  b{edge.source} --> {picture.end(edge)}", edge.hot) for edge in picture.edges]
    lines = [f"flowchart {picture.rankdir}", *boxes, *(text for text, _ in arrows)]
    stops = [f"o{i}" for i, box in made if box.stops]
    if stops:
        lines += ["  classDef stops stroke-dasharray:3 3", f"  class {','.join(stops)} stops"]
    hot = [f"b{i}" for i, box in enumerate(picture.boxes) if box.hot] + [f"o{i}" for i, box in made if box.hot]
    if hot:
        lines += [f"  classDef hot stroke:{HOT},stroke-width:2px", f"  class {','.join(hot)} hot"]
    along = [str(i) for i, (_, is_hot) in enumerate(arrows) if is_hot]
    if along:
        lines.append(f"  linkStyle {','.join(along)} stroke:{HOT},stroke-width:2px")
    return "\n".join(lines)


def _coded(text: str) -> str:
    """Text inside of a quoted label of Mermaid: what may be markup, of Mermaid, HTML or Markdown, by its number."""
    return re.sub(r"[^\w .\-]|^[\d.\-]+(?= |$)", lambda m: "".join(_code(c) for c in m[0]), text)


def _code(c: str) -> str:
    return f"#{ord(c)};" if c != " " else c
