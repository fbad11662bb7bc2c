"""A picture as SVG: pure functions to text.

The text stays within its box without any knowledge of fonts: it is set in a monospaced font, whose advance is known
well enough, and characters that may be of any width are told how wide they have to be. There are no scripts, no ids,
and no colour that needs more than plain CSS, so that other programs read the files too.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wengert.view.graph.layout import Point, layout
from wengert.view.graph.scene import Box, Edge, Picture
from wengert.view.markup import attribute, cells, escape, is_plain
from wengert.view.naming import clean

if TYPE_CHECKING:
    from wengert.view.graph.draw import Drawing

__all__ = ["DARK", "LIGHT", "sheet", "style", "themed", "write"]

SIZE, ADVANCE, LINE = 11.0, 6.82, 14.0  # of the text: font size, width of a character (0.62 em), height of a line
MARGIN, PAD, PILL, REACH = 14.0, 9.0, 24.0, 11.0  # around the picture; in a box; an operation, and its arrow
TIP = 6.0  # length of an arrow's head
NOTE = 200  # characters of a note that are shown

COLOURS = {  # on light paper, on dark
    "paper": ("#ffffff", "#12161b"),
    "ink": ("#1b2530", "#e7ebf0"),
    "muted": ("#5a6673", "#93a0ad"),
    "card": ("#ffffff", "#1b2128"),
    "line": ("#c3ccd5", "#434e5a"),
    "leaf": ("#edf4fd", "#16273c"),
    "leafline": ("#8fb2dd", "#3f6796"),
    "pill": ("#eef1f4", "#2a323c"),
    "edge": ("#94a1ae", "#66737f"),
    "hot": ("#d4570a", "#ff8a3d"),
    "grad": ("#b04708", "#ffab73"),
    "fold": ("#f4f1fb", "#241f36"),
    "foldline": ("#9c8cc8", "#7767a8"),
    "broken": ("#b8122e", "#ff7088"),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}
FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"

PAINT = """
.wengert-graph .paper {{ fill: {paper} }}
.wengert-graph text {{ fill: {ink} }}
.wengert-graph .muted, .wengert-graph .absent {{ fill: {muted} }}
.wengert-graph .grad {{ fill: {grad} }}
.wengert-graph .broken {{ fill: {broken} }}
.wengert-graph .card {{ fill: {card}; stroke: {line} }}
.wengert-graph .leaf .card {{ fill: {leaf}; stroke: {leafline} }}
.wengert-graph .constant .card, .wengert-graph .outside .card {{ fill: {paper}; stroke: {line} }}
.wengert-graph .fold .card {{ fill: {fold}; stroke: {foldline} }}
.wengert-graph .pill {{ fill: {pill}; stroke: {edge} }}
.wengert-graph .line {{ stroke: {edge} }}
.wengert-graph .head {{ fill: {edge} }}
.wengert-graph .hot .line, .wengert-graph .hot > .card, .wengert-graph .hot > .pill {{ stroke: {hot} }}
.wengert-graph .hot .head {{ fill: {hot} }}
"""
SHAPES = f"""
.wengert-graph text {{ font: {SIZE:g}px {FONT}; white-space: pre }}
.wengert-graph .name {{ font-weight: 600 }}
.wengert-graph .absent {{ font-style: italic }}
.wengert-graph .end {{ text-anchor: end }}
.wengert-graph .mid {{ text-anchor: middle }}
.wengert-graph .line {{ fill: none; stroke-width: 1.3 }}
.wengert-graph .hot .line, .wengert-graph .hot > .card, .wengert-graph .hot > .pill {{ stroke-width: 2.2 }}
.wengert-graph .outside .card, .wengert-graph .stops .pill, .wengert-graph .stops .line {{ stroke-dasharray: 3 3 }}
"""


def write(drawing: Drawing) -> str:
    """The drawing as an SVG document, which also stands inside HTML."""
    return sheet(drawing.picture, drawing.theme)[0]


def sheet(picture: Picture, theme: str | None = "auto") -> tuple[str, float, float]:
    """A picture as an SVG document, and its width and height in pixels; no theme leaves out the rules of `style`."""
    down = picture.rankdir == "TB"
    cards = _cards(picture.boxes)
    sizes = [_size(box, *card, down) for box, card in zip(picture.boxes, cards, strict=True)]
    laid = layout([_turned(size, down) for size in sizes], [(edge.source, edge.target) for edge in picture.edges])
    wide, deep = _turned((laid.width, laid.height), down)
    notes = [clean(note, NOTE) for note in picture.notes]
    width = max([wide, *(_advance(note) + 30 for note in notes)]) + 2 * MARGIN
    height = deep + 2 * MARGIN + (LINE * len(notes) + 6 if notes else 0)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wengert-graph" role="img"'
        f' aria-label={attribute(_told(picture))} width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}">',
        *([f"<style>{style(theme)}</style>"] if theme else []),
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
    ]
    order = sorted(range(len(picture.edges)), key=lambda i: picture.edges[i].hot)  # the path last, above the others
    trunks: dict[int, Sequence[Point]] = {}  # the longest route from each box so far
    for i in order:
        edge, route = picture.edges[i], laid.routes[i]
        trunk = trunks.get(edge.source, ())
        out.append(_edge(edge, route if edge.hot else _branch(route, trunk), down))
        trunks[edge.source] = max(trunk, route, key=len)
    for box, corner, card, size in zip(picture.boxes, laid.corners, cards, sizes, strict=True):
        out.append(_box(box, _turned(corner, down), card, size, down))
    for i, note in enumerate(notes):
        out.append(_note(note, deep + LINE * (i + 1) + 4, i == 0 and any(edge.hot for edge in picture.edges)))
    return "\n".join([*out, "</g>", "</svg>"]), width, height


def style(theme: str = "auto") -> str:
    """The rules of the pictures, under one class."""
    return SHAPES + themed(PAINT, theme)


def themed(rules: str, theme: str) -> str:
    """Rules in the colours of a theme; "auto" is light, and dark where a dark page is wished for."""
    if theme != "auto":
        return rules.format(**(DARK if theme == "dark" else LIGHT))
    return f"{rules.format(**LIGHT)}@media (prefers-color-scheme: dark) {{{rules.format(**DARK)}}}\n"


# -- sizes ------------------------------------------------------------------------------------------------------------


def _advance(text: str) -> float:
    """A width that holds the text, in pixels."""
    return cells(text) * ADVANCE


def _cards(boxes: Sequence[Box]) -> list[Point]:
    """The width and height of each box without its operation; values are equally wide, and so are parts."""
    kinds = ["values" if box.place >= 0 else box.kind for box in boxes]
    widest: dict[str, float] = {}
    for kind, box in zip(kinds, boxes, strict=True):
        widest[kind] = max(widest.get(kind, 0.0), _breadth(box))
    equal = ("values", "fold")
    return [(widest[k] if k in equal else _breadth(box), _height(box)) for k, box in zip(kinds, boxes, strict=True)]


def _breadth(box: Box) -> float:
    rows = [_advance(row.name) + _advance(row.text) + (ADVANCE if row.name else 0) for row in box.rows]
    return max([_advance(box.label), *rows]) + 2 * PAD


def _height(box: Box) -> float:
    lines = len(box.rows) + bool(box.label)
    return LINE * lines + (10.0 if lines > 1 else 8.0)


def _pill(symbol: str) -> float:
    return max(_advance(symbol) + 12, PILL)


def _size(box: Box, width: float, height: float, down: bool) -> Point:
    """The width and height of a box with the operation before it and its arrow."""
    if not box.symbol:
        return width, max(height, PILL)
    if down:
        return max(width, _pill(box.symbol)), PILL + REACH + TIP + height
    return _pill(box.symbol) + REACH + TIP + width, max(height, PILL)


def _turned(point: Point, down: bool) -> Point:
    """A point of the layout, which knows only pictures from left to right; or a size for it."""
    return (point[1], point[0]) if down else point


# -- text -------------------------------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, kind: str) -> str:
    """A line of text. Where a font may give it another width, it is fitted into the one that was counted."""
    fit = "" if all(map(is_plain, text)) else f' textLength="{_advance(text):.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{fit}>{escape(text)}</text>'


def _told(picture: Picture) -> str:
    values = sum(box.place >= 0 for box in picture.boxes)
    folds = len([box for box in picture.boxes if box.kind == "fold"])
    return f"a computation graph: {values} values" + (f", {folds} folded parts" if folds else "")


def _note(note: str, y: float, sample: bool) -> str:
    """A line below the picture; with a sample of the path that it speaks of."""
    line = f'<g class="hot"><path class="line" d="M0 {y - 4:.1f}H22"/></g>' if sample else ""
    return line + _text(30 if sample else 0, y, note, "muted")


# -- boxes ------------------------------------------------------------------------------------------------------------


def _box(box: Box, corner: Point, card: Point, size: Point, down: bool) -> str:
    """A box and, at its left or above it, the operation that made it."""
    (x, y), (width, height) = corner, card
    left = x + (size[0] - width) / (2 if down else 1)
    top = y + (size[1] - height) / (1 if down else 2)
    hot = (" stops" if box.stops else "") + (" hot" if box.hot else "")
    out = [f'<g class="{box.kind}{hot}">']
    if box.title:
        out.append(f"<title>{escape(box.title)}</title>")
    if box.symbol:
        port = (left + width / 2, top) if down else (left, top + height / 2)
        out.append(_operation(box, corner, port, down))
    if box.kind == "fold":
        out.append(_rect(left + 3, top + 3, width - 3, height - 3))
        width, height = width - 3, height - 3
    out.append(_rect(left, top, width, height))
    line = top + (height - LINE * (len(box.rows) + bool(box.label))) / 2 + 10.5
    if box.label:
        centred = not box.rows
        where = left + width / 2 if centred else left + PAD
        out.append(_text(where, line, box.label, "name mid" if centred else "name"))
        line += LINE
    for row in box.rows:
        if row.name:
            out.append(_text(left + PAD, line, row.name, "muted"))
        out.append(_text(left + width - PAD, line, row.text, f"{row.kind} end"))
        line += LINE
    out.append("</g>")
    text = "".join(out)
    return f"<a href={attribute(box.link)}>{text}</a>" if box.link else text


def _rect(x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="card" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'


def _operation(box: Box, corner: Point, port: Point, down: bool) -> str:
    """The operation, and its arrow to the port of its box."""
    width = _pill(box.symbol)
    middle = (port[0], corner[1] + PILL / 2) if down else (corner[0] + width / 2, port[1])
    x, y = middle[0] - width / 2, middle[1] - PILL / 2
    line = f"M{x + width:.1f} {port[1]:.1f}H{port[0] - TIP:.1f}"
    if down:
        line = f"M{port[0]:.1f} {y + PILL:.1f}V{port[1] - TIP:.1f}"
    return (
        f'<path class="line" d="{line}"/>{_head(*port, down)}'
        f'<rect class="pill" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{PILL:g}"'
        f' rx="{PILL / 2:g}"/>' + _text(middle[0], middle[1] + 4, box.symbol, "mid")
    )


# -- edges ------------------------------------------------------------------------------------------------------------


def _edge(edge: Edge, route: Sequence[Point], down: bool) -> str:
    kind = "edge hot" if edge.hot else "edge"
    head = _head(*_turned(route[-1], down), down)
    return f'<g class="{kind}"><path class="line" d="{curve(route, down)}"/>{head}</g>'


def _branch(route: Sequence[Point], trunk: Sequence[Point]) -> Sequence[Point]:
    """A route from where it leaves another from the same box, which is drawn already."""
    points = range(min(len(route), len(trunk)))
    same = bisect(points, False, key=lambda i: route[i] != trunk[i])  # once parted, they stay so
    return route[max(same - 1, 0) // 2 * 2 :]


def curve(route: Sequence[Point], down: bool = False) -> str:
    """The path along a route, up to where the head of the arrow begins."""
    points, straight = list(route), "V" if down else "H"
    (x, y), (end, _) = points[-2:]
    points[-1] = (end - TIP, y)
    if x > end - TIP:  # the curve itself ends where the head begins
        points[-2] = points[-1]
    drawn = [f"M{_at(points[0], down)}"]
    for i in range(1, len(points), 2):
        (x0, y0), (x1, y1), (x2, _) = points[i - 1], points[i], points[i + 1]
        bend = [((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)]
        drawn.append("C" + " ".join([_at(p, down) for p in bend]) if y0 != y1 else f"{straight}{x1:.1f}")
        drawn.append(f"{straight}{x2:.1f}" if x2 != x1 else "")
    return "".join(drawn)


def _at(point: Point, down: bool) -> str:
    x, y = _turned(point, down)
    return f"{x:.1f} {y:.1f}"


def _head(x: float, y: float, down: bool) -> str:
    wings = f"l-3.4 {-TIP - 1:g}h6.8z" if down else f"l{-TIP - 1:g} -3.4v6.8z"
    return f'<path class="head" d="M{x:.1f} {y:.1f}{wings}"/>'
