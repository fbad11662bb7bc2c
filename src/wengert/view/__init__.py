"""Drawings of graphs, explanations, step-by-step pages, and plots with matplotlib."""

from wengert.errors import submodules

__getattr__ = submodules(__name__)
