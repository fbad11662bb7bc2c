"""Writes a page of frames: charts whose marks change from frame to frame, played, paused and dragged.

Everything that is shown is computed in Python; the page sets attributes, and fetches nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

from wengert.view.markup import attribute, escape
from wengert.view.player import Page, packed

__all__ = ["Chart", "film"]

Point = tuple[float, float]
SIDE, LEFT, RIGHT, TOP, BOTTOM = 400, 46, 8, 26, 22  # a chart's width, and what is outside of its axes


class Chart:
    """A drawing with axes, on which marks are put; those with an id can be changed by frames.

    Args:
        title: stands above.
        across: the range of x.
        up: the range of y.
        high: the height of the drawing; its width is 400.
        names: the number of names in a legend, for which there is room above `up`.
        ticks: what stands at places of the y axis instead of its ends.
        cells: the number of cells in each direction that frames colour; 0 for none.
    """

    def __init__(
        self,
        title: str,
        across: Point,
        up: Point,
        high: int,
        names: int = 0,
        ticks: dict[float, str] | None = None,
        cells: int = 0,
    ) -> None:
        room = 16 * -(-names // 3) + 6 * (names > 0)
        self.across: Point = across
        self.high: int = high
        self.up: Point = up[0], up[1] + room * (up[1] - up[0]) / (high - TOP - BOTTOM - room)
        wide, tall = SIDE - LEFT - RIGHT, high - TOP - BOTTOM
        box = f'x="{LEFT}" y="{TOP}" width="{wide}" height="{tall}"'
        canvas = f'<foreignObject {box}><canvas width="{cells}" height="{cells}"></canvas></foreignObject>'
        self.title: str = title
        self.marks: list[str] = [f'{canvas * (cells > 0)}<rect class="frame" {box}/>']
        self.text((LEFT, TOP - 9), title, "head")
        for value, text in ({y: f"{y:.3g}" for y in up} if ticks is None else ticks).items():
            self.text((LEFT - 5, self.at((across[0], value))[1] + 4), text, "tick end")
        for x, kind in zip(across, ("tick", "tick end"), strict=True):
            self.text((self.at((x, up[0]))[0], high - 6), f"{x:.3g}", kind)

    def at(self, point: Point) -> Point:
        """Return where a point of the axes is in the drawing."""
        (x, y), (left, right), (low, top) = point, self.across, self.up
        share = (x - left) / (right - left), (top - y) / (top - low)
        return round(LEFT + share[0] * (SIDE - LEFT - RIGHT), 1), round(TOP + share[1] * (self.high - TOP - BOTTOM), 1)

    def path(self, points: Iterable[Point]) -> str:
        """Return the line through points of the axes, with gaps where one is not finite, as an attribute `d`."""
        pen, steps = "M", []
        for point in points:
            if isfinite(point[0]) and isfinite(point[1]):
                steps.append("{}{:g},{:g}".format(pen, *self.at(point)))
            pen = "L" if isfinite(point[0]) and isfinite(point[1]) else "M"
        return "".join(steps) or "M0,0"

    def line(self, points: Iterable[Point], kind: str, name: str = "") -> None:
        """Put a line through points of the axes."""
        self.marks.append(f'<path class="line {kind}" id={attribute(name)} d="{self.path(points)}"/>')

    def point(self, point: Point, kind: str, name: str = "", size: float = 4.0) -> None:
        """Put a dot."""
        x, y = self.at(point)
        self.marks.append(f'<circle class="point {kind}" id={attribute(name)} cx="{x:g}" cy="{y:g}" r="{size:g}"/>')

    def text(self, place: Point, text: str, kind: str, name: str = "") -> None:
        """Put a text at a place of the drawing."""
        x, y = place
        self.marks.append(f'<text class="{kind}" id={attribute(name)} x="{x:g}" y="{y:g}">{escape(text)}</text>')

    def legend(self, names: Iterable[str], kinds: Iterable[str], called: str) -> None:
        """Put the names of lines above them, three in a row; their ids are `called` and a number."""
        for k, (name, kind) in enumerate(zip(names, kinds, strict=False)):
            self.text((LEFT + 8 + 116 * (k % 3), TOP + 16 + 16 * (k // 3)), name, f"of {kind}", f"{called}{k}")

    def svg(self) -> str:
        """Return the drawing as it is before the first frame."""
        drawn, told = "".join(self.marks).replace(' id=""', ""), attribute(self.title)
        return f'<svg class="panel" viewBox="0 0 {SIDE} {self.high}" role="img" aria-label={told}>{drawn}</svg>'


def film(
    title: str,
    about: str,
    panels: Sequence[str],
    frames: Sequence[dict[str, Any]],
    pace: int = 10,
    style: str = "",
    **more: Any,
) -> Page:
    """Make the page.

    Args:
        title: any text.
        about: stands beside it.
        panels: the drawings, as SVG.
        frames: of each its `count`, what is `said`, and `marks`: the attributes by id ("text" is the text); perhaps
            `cells`, a letter for each cell.
        pace: frames per 1.2 s at normal speed.
        style: CSS rules for marks of these panels.
        more: `shades`, red, green, blue and alpha for each letter from "A"; `cells`, for all frames.
    """
    data = json.dumps({"frames": frames, "about": about, "pace": pace, **more}, separators=(",", ":"))
    return packed(title, "", f"const film={data};", "frames", "\n".join(panels), style)
