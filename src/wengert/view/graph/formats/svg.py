"""Writes a picture as SVG, by pure functions to text.

Text fits its box without measuring fonts: the font is monospaced, so that its advance width is known well enough, and
characters of unknown width get an explicit text length. There are no scripts, no ids and only plain CSS colours, so
that other programs can read the files too.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from string import Template

from wengert.errors import counted
from wengert.view.graph.formats import Drawn
from wengert.view.graph.layout import Point, layout
from wengert.view.graph.scene import Box, Edge, Picture
from wengert.view.markup import asset, attribute, cells, escape, is_plain
from wengert.view.naming import clean

__all__ = ["DARK", "LIGHT", "sheet", "style", "themed", "write"]

SIZE, ADVANCE, LINE = 11.0, 6.82, 14.0  # the font size, the width of a character (0.62 em), the height of a line
MARGIN, PAD, PILL, REACH = 14.0, 9.0, 24.0, 11.0  # picture's margin, box's padding, operation's height, its arrow
TIP = 6.0  # the length of an arrow's head
NOTE = 200  # the longest note, in characters
THIN, THICK = 0.8, 3.2  # the widths of the edges of the smallest and of the largest weight, in pixels
NEAR, APART = 34.0, 76.0  # between two columns; and where the edges between them are weights, to be told apart

COLOURS = {  # light, dark; gradients are purple, since of numbers blue is positive and orange negative
    "paper": ("#ffffff", "#12161b"),
    "ink": ("#1b2530", "#e7ebf0"),
    "muted": ("#5a6673", "#93a0ad"),
    "card": ("#ffffff", "#1b2128"),
    "line": ("#c3ccd5", "#434e5a"),
    "leaf": ("#edf4fd", "#16273c"),
    "leafline": ("#8fb2dd", "#3f6796"),
    "pill": ("#eef1f4", "#2a323c"),
    "edge": ("#94a1ae", "#66737f"),
    "hot": ("#a43ab8", "#dd8af0"),
    "grad": ("#8c2f9e", "#e39af2"),
    "fold": ("#f4f1fb", "#241f36"),
    "foldline": ("#9c8cc8", "#7767a8"),
    "broken": ("#b8122e", "#ff7088"),
    "plus": ("#0072b2", "#56b4e9"),
    "minus": ("#d55e00", "#ff9a57"),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}
FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


def write(drawing: Drawn) -> str:
    """Write the drawing as an SVG document, which can be embedded in HTML too."""
    return sheet(drawing.picture, drawing.theme)[0]


def sheet(picture: Picture, theme: str | None = "auto") -> tuple[str, float, float]:
    """Write a picture as SVG; return it with its width and height in pixels. Without a theme, `style` is left out."""
    flow = Direction(picture.rankdir == "TB")
    cards = _cards(picture.boxes)
    sizes = [_size(box, card, flow) for box, card in zip(picture.boxes, cards, strict=True)]
    weights = [abs(edge.weight) for edge in picture.edges if edge.weight is not None]
    ends = [(edge.source, edge.target) for edge in picture.edges]
    laid = layout(sizes, ends, across=APART if weights else NEAR)
    wide, deep = flow.turned((laid.width, laid.height))
    notes = [clean(note, NOTE) for note in picture.notes]
    width = max([wide, *(_advance(note) + 30 for note in notes)]) + 2 * MARGIN
    height = deep + 2 * MARGIN + (LINE * len(notes) + 6 if notes else 0)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wengert-graph" role="img"'
        f' aria-label={attribute(_described(picture))} width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}">',
        *([f"<style>{style(theme)}</style>"] if theme else []),
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
    ]
    order = sorted(range(len(picture.edges)), key=lambda i: picture.edges[i].hot)  # the path is last, on top
    largest = max([x for x in weights if isfinite(x)], default=0.0) or 1.0
    trunks: dict[int, Sequence[Point]] = {}  # the longest route from each box so far
    for i in order:
        edge, route = picture.edges[i], laid.routes[i]
        trunk = trunks.get(edge.source, ())
        own = edge.hot or edge.weight is not None  # its route does not branch off another
        out.append(_edge(edge, route if own else _branch(route, trunk), flow, largest))
        trunks[edge.source] = max(trunk, route, key=len)
    for box, corner, card, size in zip(picture.boxes, laid.corners, cards, sizes, strict=True):
        out.append(_box(box, corner, flow.turned(card), size, flow))
    for i, note in enumerate(notes):
        out.append(_note(note, deep + LINE * (i + 1) + 4, i == 0 and any(edge.hot for edge in picture.edges)))
    return "\n".join([*out, "</g>", "</svg>"]), width, height


@cache
def style(theme: str = "auto") -> str:
    """Return the CSS rules of the pictures, under one class."""
    shapes = Template(asset("shapes.css")).substitute(size=f"{SIZE:g}", font=FONT)
    return f"\n{shapes}\n{themed('paint.css', theme)}"


@cache
def themed(name: str, theme: str) -> str:
    """Return the CSS rules of an asset in a theme's colours; "auto" follows the reader's `prefers-color-scheme`."""
    light, dark = (f"\n{Template(asset(name)).substitute(colours)}\n" for colours in (LIGHT, DARK))
    if theme != "auto":
        return dark if theme == "dark" else light
    return f"{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"


# -- sizes ------------------------------------------------------------------------------------------------------------


def _advance(text: str) -> float:
    """Return a width that the text fits into, in pixels."""
    return cells(text) * ADVANCE


def _cards(boxes: Sequence[Box]) -> list[Point]:
    """Return the width and height of each box without its operation; parts have equal widths, else values have."""
    kinds = ["values" if box.place >= 0 else f"{box.kind} {bool(box.symbol)}" for box in boxes]
    widest: dict[str, float] = {}
    for kind, box in zip(kinds, boxes, strict=True):
        widest[kind] = max(widest.get(kind, 0.0), _breadth(box))
    equal = {kind for kind in kinds if kind.startswith("fold")} or {"values"}
    lines = [len(box.rows) + bool(box.label) for box in boxes]
    heights = [LINE * count + (10.0 if count > 1 else 8.0) for count in lines]
    widths = [widest[kind] if kind in equal else _breadth(box) for kind, box in zip(kinds, boxes, strict=True)]
    return list(zip(widths, heights, strict=True))


def _breadth(box: Box) -> float:
    rows = [_advance(row.name) + _advance(row.text) + (ADVANCE if row.name else 0) for row in box.rows]
    return max([_advance(box.label), *rows]) + 2 * PAD


def _pill(symbol: str) -> float:
    return max(_advance(symbol) + 12, PILL)


def _size(box: Box, card: Point, flow: Direction) -> Point:
    """Return the size of a box with its operation and arrow, for the layout."""
    if not box.symbol:
        return flow.turned((card[0], max(card[1], PILL)))
    (along, across), (before, wide) = flow.turned(card), flow.turned((_pill(box.symbol), PILL))
    return before + REACH + TIP + along, max(across, wide)


@dataclass(frozen=True)
class Direction:
    """The direction of the edges: to the right, as in the layout, or downwards, which swaps x and y."""

    down: bool

    def turned(self, point: Point) -> Point:
        """Convert a point of the layout to one of the picture, or the other way round."""
        return (point[1], point[0]) if self.down else point

    def at(self, point: Point) -> str:
        """Write a point of the layout in a path."""
        x, y = self.turned(point)
        return f"{x:.1f} {y:.1f}"

    def along(self, end: float) -> str:
        """Write a straight line in the direction of the edges in a path."""
        return f"{'V' if self.down else 'H'}{end:.1f}"

    def head(self, point: Point) -> str:
        """Write an arrow's head."""
        wings = f"l-3.4 {-TIP - 1:g}h6.8z" if self.down else f"l{-TIP - 1:g} -3.4v6.8z"
        return f'<path class="head" d="M{self.at(point)}{wings}"/>'


# -- text -------------------------------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, kind: str) -> str:
    """Write a line of text, with an explicit length if its width depends on the font."""
    fit = "" if all(map(is_plain, text)) else f' textLength="{_advance(text):.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{fit}>{escape(text)}</text>'


def _described(picture: Picture) -> str:
    values = sum(box.place >= 0 for box in picture.boxes)
    folds = len([box for box in picture.boxes if box.kind == "fold"])
    return f"a computation graph: {counted(values, 'value')}" + (f", {counted(folds, 'folded part')}" if folds else "")


def _note(note: str, y: float, sample: bool) -> str:
    """Write a note below the picture, perhaps with a sample of the highlighted line."""
    line = f'<g class="hot"><path class="line" d="M0 {y - 4:.1f}H22"/></g>' if sample else ""
    return line + _text(30 if sample else 0, y, note, "muted")


# -- boxes ------------------------------------------------------------------------------------------------------------


def _box(box: Box, corner: Point, card: Point, size: Point, flow: Direction) -> str:
    """Write a box and, before it, the operation that made it."""
    start = (corner[0] + size[0] - card[0], corner[1] + (size[1] - card[1]) / 2)
    (left, top), (width, height) = flow.turned(start), flow.turned(card)
    hot = (" stops" if box.stops else "") + (" hot" if box.hot else "")
    out = [f'<g class="{box.kind}{hot}">']
    if box.title:
        out.append(f"<title>{escape(box.title)}</title>")
    if box.symbol:
        out.append(_operation(box.symbol, corner[0], (start[0], start[1] + card[1] / 2), flow))
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


def _operation(symbol: str, start: float, port: Point, flow: Direction) -> str:
    width = _pill(symbol)
    length = PILL if flow.down else width
    x, y = flow.turned((start + length / 2, port[1]))
    line = flow.at((start + length, port[1])) + flow.along(port[0] - TIP)
    return (
        f'<path class="line" d="M{line}"/>{flow.head(port)}'
        f'<rect class="pill" x="{x - width / 2:.1f}" y="{y - PILL / 2:.1f}" width="{width:.1f}" height="{PILL:g}"'
        f' rx="{PILL / 2:g}"/>' + _text(x, y + 4, symbol, "mid")
    )


# -- edges ------------------------------------------------------------------------------------------------------------


def _edge(edge: Edge, route: Sequence[Point], flow: Direction, largest: float) -> str:
    kind, curve, head = "edge hot" if edge.hot else "edge", _curve(route, flow), flow.head(route[-1])
    if edge.weight is None:
        grey = ' opacity="0.4"' * edge.grey
        return f'<g class="{kind}"{grey}><path class="line" d="{curve}"/>{head}</g>'
    sign = "minus" if edge.weight < 0.0 else "plus"
    wide = THIN + (THICK - THIN) * min(abs(edge.weight) / largest, 1.0)
    under = f'<path class="halo" d="{curve}"/>' * edge.hot
    return (
        f'<g class="{kind}"><title>weight {edge.weight!r}</title>{under}'
        f'<path class="line {sign}" stroke-width="{wide:.2g}" d="{curve}"/>{head}</g>'
    )


def _branch(route: Sequence[Point], trunk: Sequence[Point]) -> Sequence[Point]:
    """Return the part of a route that a route from the same box has not drawn already."""
    points = range(min(len(route), len(trunk)))
    same = bisect(points, False, key=lambda i: route[i] != trunk[i])  # once separated, they do not meet again
    return route[max(same - 1, 0) // 2 * 2 :]


def _curve(route: Sequence[Point], flow: Direction) -> str:
    """Write the path along a route, up to the head of the arrow."""
    points = list(route)
    (x, y), (end, _) = points[-2:]
    points[-1] = (end - TIP, y)
    if x > end - TIP:  # the curve itself ends where the head begins
        points[-2] = points[-1]
    drawn = [f"M{flow.at(points[0])}"]
    for i in range(1, len(points), 2):
        (x0, y0), (x1, y1), (x2, _) = points[i - 1], points[i], points[i + 1]
        bend = [((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)]
        drawn.append("C" + " ".join(map(flow.at, bend)) if y0 != y1 else flow.along(x1))
        drawn.append(flow.along(x2) if x2 != x1 else "")
    return "".join(drawn)
