"""Draws the graph of a Value as a picture, a page or a text."""

from wengert.view.graph.draw import draw, draw_dot
from wengert.view.graph.folding import Folding
from wengert.view.graph.layout import layout, ranked
from wengert.view.graph.read import ROUNDING, edges, is_by_hand, silent
from wengert.view.graph.tree import tree

__all__ = ["ROUNDING", "Folding", "draw", "draw_dot", "edges", "is_by_hand", "layout", "ranked", "silent", "tree"]
