"""The graph of a Value as a picture, a page or a text."""

from wengert.view.graph.draw import Drawing, draw, draw_dot
from wengert.view.graph.tree import tree

__all__ = ["Drawing", "draw", "draw_dot", "tree"]
