"""Writes a drawing as a PNG with resvg (extra `png`), for programs that cannot show SVG."""

from __future__ import annotations

from wengert.errors import require
from wengert.view.graph.formats import Drawn
from wengert.view.graph.formats.svg import sheet

__all__ = ["write"]

PIXELS = 16_000_000  # the largest size; smaller pictures have two pixels per unit, for high-resolution screens


def write(drawing: Drawn) -> bytes:
    """Write the PNG, with light colours unless the theme is "dark".

    Raises:
        MissingExtraError: resvg_py is not installed.
    """
    resvg = require("resvg_py", "png")
    drawn, width, height = sheet(drawing.picture, "dark" if drawing.theme == "dark" else "light")
    zoom = min(2.0, (PIXELS / (width * height)) ** 0.5)
    return bytes(resvg.svg_to_bytes(svg_string=drawn, width=max(round(width * zoom), 1)))
