"""The kinds of file that a drawing is written as: each is a module of this folder, called as such files end.

Its `write` takes the `Drawing` and returns what the file holds. A module that is put here is all that a kind takes:
files are saved by it, and messages name it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wengert.view.graph.draw import Drawing

__all__ = ["FORMATS", "written"]

PICTURES = ("svg", "png", "html")  # named first, as they are asked for most; the texts for other programs follow
_OTHERS = sorted(module.name for module in iter_modules(__path__) if module.name not in PICTURES)
FORMATS: tuple[str, ...] = (*PICTURES, *_OTHERS)


def written(drawing: Drawing, format: str) -> str | bytes:
    """What a file of that format holds."""
    content: str | bytes = import_module(f"{__name__}.{format}").write(drawing)
    return content
