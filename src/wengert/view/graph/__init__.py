"""The graph of a Value as a picture, a page or a text."""

from wengert.view.graph import draw, layout, tree

__all__ = ["draw", "layout", "tree"]
