"""Writes a folded graph as one HTML page, in which a click unfolds a part.

Each part is a section, and a folded box is a link to it, so the page needs no script and its Content-Security-Policy
allows none.
"""

from __future__ import annotations

from wengert.errors import counted
from wengert.view.graph.folding import OUTSIDE, Cluster, folded
from wengert.view.graph.formats import Drawn
from wengert.view.graph.formats.svg import sheet, style, themed
from wengert.view.markup import attribute, document, escape
from wengert.view.naming import clean, ending

__all__ = ["write"]

ZOOM = "".join(
    f'<input type="radio" name="zoom" id="{name}"{" checked" * (name == "full")}><label for="{name}">{said}</label>\n'
    for name, said in {"fit": "Fit", "half": "50 %", "full": "100 %", "twice": "200 %"}.items()
)
BOXES = 6_000  # the largest number of boxes in all sections together


def write(drawing: Drawn) -> str:
    """Write the self-contained page."""
    folding, theme = drawing.folding, drawing.theme
    waiting: list[tuple[str, Cluster, list[tuple[str, str]]]] = [("everything", folding.everything, [])]
    sections: list[str] = []
    room = BOXES
    for name, part, above in waiting:  # the list grows while it is read
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
            notes.append(f"{len(inside) - opened} of them would make this page too large: draw a Value inside them")
        sections.append(_section(name, part, above, notes, sheet(picture, None)[0]))
    scheme = "light dark" if theme == "auto" else theme
    rules = f":root {{ color-scheme: {scheme} }}{themed('unfolding.css', theme)}{style(theme)}"
    title = f"A graph of {counted(len(folding.graph), 'value')}"
    body = "\n".join(reversed(sections))  # "everything" is last, so that a section before it can hide it
    return document(title, "style-src 'unsafe-inline'", rules, f"<main>\n<h1>{title}</h1>\n{ZOOM}{body}\n</main>")


def _section(name: str, part: Cluster, above: list[tuple[str, str]], notes: list[str], drawn: str) -> str:
    """Write one part: the links back, the notes and the picture."""
    path = "".join([f"<a href={attribute(f'#{link}')}>{escape(ending(title))}</a> › " for link, title in above])
    head = f"<nav>{path}<b>{escape(clean(part.name, 200))}</b></nav>" if above else ""
    said = "".join([f"<p>{note}</p>" for note in notes])
    return f'<section id={attribute(name)}>{head}{said}<div class="frame">{drawn}</div></section>'
