"""A folded graph as one HTML page, in which a click unfolds a part.

Each part is a section of its own, and a folded box a link to it: the page needs no script, so it may run none, and it
may fetch nothing.
"""

from __future__ import annotations

from wengert.view.graph.folding import OUTSIDE, Folding, Part, folded
from wengert.view.graph.scene import ending
from wengert.view.graph.svg import DARK, LIGHT, attribute, escape, style, svg
from wengert.view.naming import clean

__all__ = ["document"]

BOXES = 6_000  # in all sections together
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PAGE = """
:root {{ color-scheme: {scheme} }}
body {{ margin: 0; padding: 16px 20px; font: 15px/1.5 system-ui, sans-serif; background: {paper}; color: {ink} }}
nav {{ margin-bottom: 8px }}
nav a, nav b {{ margin-right: 6px }}
nav a {{ color: {hot} }}
p {{ margin: 8px 0; color: {muted} }}
section {{ display: none; scroll-margin-top: 16px }}
section:target, #everything {{ display: block }}
section:target ~ #everything {{ display: none }}
.frame {{ overflow: auto }}
.wengert-graph a {{ cursor: pointer }}
.wengert-graph a:hover .card, .wengert-graph a:focus .card {{ stroke-width: 2.5 }}
"""


def document(folding: Folding, theme: str = "auto") -> str:
    """The page of a graph.

    Args:
        folding: the graph with its parts.
        theme: "light", "dark", or "auto" for that of whoever looks at it.
    """
    waiting: list[tuple[str, Part, list[tuple[str, str]]]] = [("everything", folding.whole, [])]
    sections: list[str] = []
    room = BOXES
    for name, part, above in waiting:  # which grows as it is read
        picture, inside = folding.picture(part)
        opened = 0
        for i, inner in inside.items():
            needed = min(2 * len(inner.places), folding.limit) + OUTSIDE
            if needed <= room:
                room -= needed
                opened += 1
                link = f"part-{len(waiting)}"
                picture.boxes[i].link = f"#{link}"
                picture.boxes[i].title += "\nclick to unfold"
                waiting.append((link, inner, [*above, (name, part.name)]))
        notes = [f"{folded(inside)}: click on one to unfold it"] if opened else []
        if opened < len(inside):
            notes.append(f"{len(inside) - opened} of them would make this page too large: draw a Value in them")
        sections.append(_section(name, part, above, notes, svg(picture, theme=theme, styled=False)))
    rules = PAGE.format(scheme="light dark" if theme == "auto" else theme, **(DARK if theme == "dark" else LIGHT))
    if theme == "auto":
        rules += "@media (prefers-color-scheme: dark) {" + PAGE.format(scheme="light dark", **DARK) + "}"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content={attribute(POLICY)}>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>A graph of {len(folding.graph):,} values</title><style>{rules}{style(theme)}</style></head><body>",
            *reversed(sections),  # everything last, so that a section before it can hide it
            "</body></html>",
        ]
    )


def _section(name: str, part: Part, above: list[tuple[str, str]], notes: list[str], drawn: str) -> str:
    """One part: the way back, what there is to say, and its picture."""
    path = "".join([f"<a href={attribute(f'#{link}')}>{escape(ending(title))}</a> › " for link, title in above])
    head = f"<nav>{path}<b>{escape(clean(part.name, 200))}</b></nav>" if above else ""
    said = "".join([f"<p>{note}</p>" for note in notes])
    return f'<section id={attribute(name)}>{head}{said}<div class="frame">{drawn}</div></section>'
