"""The kinds of file that a drawing is written as: each is a module of this folder, called as such files end.

Its `write` takes what is drawn and returns what the file holds. A module that is put here is all that a kind takes:
files are saved by it, and messages name it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from wengert.view.graph.folding import Folding
from wengert.view.graph.scene import Picture

__all__ = ["FORMATS", "Drawn", "written"]

PICTURES = ("svg", "png", "html")  # named first, as they are asked for most; the texts for other programs follow
_OTHERS = sorted(module.name for module in iter_modules(__path__) if module.name not in PICTURES)
FORMATS: tuple[str, ...] = (*PICTURES, *_OTHERS)


class Drawn(Protocol):
    """What a file is written from: all that a format knows of a `Drawing`.

    Attributes:
        picture: the boxes, the edges and the notes below them.
        folding: the graph with its parts, for formats that show more of them than the picture does.
        theme: "light", "dark", or "auto" for that of whoever looks at it.
    """

    picture: Picture
    folding: Folding
    theme: str


def written(drawing: Drawn, format: str) -> str | bytes:
    """What a file of that format holds."""
    content: str | bytes = import_module(f"{__name__}.{format}").write(drawing)
    return content
