"""A picture in the languages of other programs that draw graphs: Graphviz and Mermaid. Pure functions to text."""

from __future__ import annotations

import re

from wengert.view.graph.scene import Box, Picture

__all__ = ["EDGES", "LENGTH", "to_dot", "to_mermaid"]

EDGES, LENGTH = 500, 50_000  # the most that Mermaid draws as it is set on GitHub: edges, characters
HOT = "#d4570a"
FILL = {"leaf": "#edf4fd", "fold": "#f4f1fb"}


def to_dot(picture: Picture) -> str:
    """A digraph in the language of Graphviz."""
    look = 'node [shape=box, fontname="monospace", fontsize=10]; edge [arrowsize=0.7]'
    lines = ["digraph {", f"  rankdir={picture.rankdir}; {look}"]
    for i, box in enumerate(picture.boxes):
        look = f'style="rounded,filled", fillcolor="{FILL[box.kind]}"' if box.kind in FILL else "style=rounded"
        hot = f', color="{HOT}", penwidth=2' if box.hot else ""
        label = "\\n".join(map(_quoted, _lines(box)))
        lines.append(f'  b{i} [label="{label}", {look}{hot}]')
        if box.symbol:
            shape = "shape=circle, margin=0" if len(box.symbol) < 3 else 'style=rounded, margin="0.08,0.04", height=0.3'
            shape += ', style="rounded,dashed"' if box.stops else ""
            join = f' [color="{HOT}", penwidth=2]' if box.hot else ""
            lines.append(f'  o{i} [label="{_quoted(box.symbol)}", {shape}]; o{i} -> b{i}{join}')
    for edge in picture.edges:
        look = f' [color="{HOT}", penwidth=2]' if edge.hot else ""
        lines.append(f"  b{edge.source} -> {_end(picture, edge.target)}{look}")
    return "\n".join([*lines, "}"])


def to_mermaid(picture: Picture) -> str:
    """A flowchart in the language of Mermaid."""
    lines = [f"flowchart {picture.rankdir}"]
    hot: list[str] = []
    arrows: list[bool] = []  # which of the arrows are hot, in the order in which they stand
    for i, box in enumerate(picture.boxes):
        lines.append(f'  b{i}["{"<br/>".join(map(_coded, _lines(box))) or " "}"]')
        hot += [f"b{i}"] * box.hot
    for i, box in enumerate(picture.boxes):
        if box.symbol:
            lines.append(f'  o{i}(("{_coded(box.symbol)}")) --> b{i}')
            arrows.append(box.hot)
            hot += [f"o{i}"] * box.hot
    for edge in picture.edges:
        lines.append(f"  b{edge.source} --> {_end(picture, edge.target)}")
        arrows.append(edge.hot)
    stops = [f"o{i}" for i, box in enumerate(picture.boxes) if box.symbol and box.stops]
    lines += ["  classDef stops stroke-dasharray:3 3", f"  class {','.join(stops)} stops"] if stops else []
    if hot:
        lines += [f"  classDef hot stroke:{HOT},stroke-width:2px", f"  class {','.join(hot)} hot"]
        marked = [str(i) for i, is_hot in enumerate(arrows) if is_hot]
        lines += [f"  linkStyle {','.join(marked)} stroke:{HOT},stroke-width:2px"] if marked else []
    return "\n".join(lines)


def _lines(box: Box) -> list[str]:
    return [line for line in [box.label, *(f"{row.name} {row.text}" for row in box.rows)] if line]


def _end(picture: Picture, target: int) -> str:
    """Where an edge to a box ends: at its operation, if it has one."""
    return f"o{target}" if picture.boxes[target].symbol else f"b{target}"


def _quoted(text: str) -> str:
    r"""Text inside of a quoted string of Graphviz, which reads \n and the like, and &lt; and the like."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _coded(text: str) -> str:
    """Text inside of a quoted label of Mermaid: what may be markup, of Mermaid, HTML or Markdown, by its number."""
    return re.sub(r"[^\w .\-]|^[\d.\-]+(?= |$)", lambda m: "".join(_code(c) for c in m[0]), text)


def _code(c: str) -> str:
    return f"#{ord(c)};" if c != " " else c
