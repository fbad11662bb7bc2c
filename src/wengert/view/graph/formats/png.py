"""A drawing as a PNG, for programs that show no SVG. It is drawn by resvg (extra `png`)."""

from __future__ import annotations

from wengert.errors import require
from wengert.view.graph.formats import Drawn
from wengert.view.graph.formats.svg import sheet

__all__ = ["write"]

PIXELS = 16_000_000  # at most; below that there are two for each of the picture's, as screens of high resolution have


def write(drawing: Drawn) -> bytes:
    """The PNG, light unless the theme is "dark".

    Raises:
        MissingExtraError: resvg_py is not installed.
    """
    resvg = require("resvg_py", "png")
    drawn, width, height = sheet(drawing.picture, "dark" if drawing.theme == "dark" else "light")
    zoom = min(2.0, (PIXELS / (width * height)) ** 0.5)
    return bytes(resvg.svg_to_bytes(svg_string=drawn, width=max(round(width * zoom), 1)))
