"""The file formats of drawings: each is a module of this folder, named by the suffix of its files.

Its function `write` takes a drawing and returns the content of the file. To add a format, add a module: `save` and the
messages find it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from wengert.view.graph.folding import Folding
from wengert.view.graph.scene import Picture

__all__ = ["FORMATS", "Drawn", "written"]

PICTURES = ("svg", "png", "html")  # the most used ones are named first
_OTHERS = sorted(module.name for module in iter_modules(__path__) if module.name not in PICTURES)
FORMATS: tuple[str, ...] = (*PICTURES, *_OTHERS)


class Drawn(Protocol):
    """The attributes of a `Drawing` that formats use.

    Attributes:
        picture: the boxes, the edges and the notes below.
        folding: the graph with its parts, for formats that can unfold them.
        theme: "light", "dark", or "auto" for the reader's.
    """

    picture: Picture
    folding: Folding
    theme: str


def written(drawing: Drawn, format: str) -> str | bytes:
    """Return the content of a file of that format."""
    content: str | bytes = import_module(f"{__name__}.{format}").write(drawing)
    return content
