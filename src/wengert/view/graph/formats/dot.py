"""Writes a drawing in Graphviz's DOT language."""

from __future__ import annotations

from wengert.view.graph.formats import Drawn
from wengert.view.graph.formats.svg import LIGHT

__all__ = ["write"]

HOT, GREY = LIGHT["hot"], LIGHT["line"]
FILL = {kind: LIGHT[kind] for kind in ("leaf", "fold")}


def write(drawing: Drawn) -> str:
    """Write a digraph."""
    picture = drawing.picture
    look = 'node [shape=box, fontname="monospace", fontsize=10]; edge [arrowsize=0.7]'
    lines = ["digraph {", f"  rankdir={picture.rankdir}; {look}"]
    for i, box in enumerate(picture.boxes):
        look = f'style="rounded,filled", fillcolor="{FILL[box.kind]}"' if box.kind in FILL else "style=rounded"
        hot = f', color="{HOT}", penwidth=2' if box.hot else ""
        label = "\\n".join(map(_quoted, box.lines()))
        lines.append(f'  b{i} [label="{label}", {look}{hot}]')
        if box.symbol:
            shape = "shape=circle, margin=0" if len(box.symbol) < 3 else 'style=rounded, margin="0.08,0.04", height=0.3'
            shape += ', style="rounded,dashed"' if box.stops else ""
            lines.append(f'  o{i} [label="{_quoted(box.symbol)}", {shape}]; o{i} -> b{i}{_look(box.hot)}')
    lines += [f"  b{edge.source} -> {picture.end(edge)}{_look(edge.hot, edge.grey)}" for edge in picture.edges]
    return "\n".join([*lines, "}"])


def _look(hot: bool, grey: bool = False) -> str:
    return f' [color="{HOT}", penwidth=2]' if hot else f' [color="{GREY}"]' if grey else ""


def _quoted(text: str) -> str:
    r"""Escape text for a quoted string of Graphviz, which interprets \n and &lt; and the like."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
