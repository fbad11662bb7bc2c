"""Drawings of graphs, explanations, step-by-step pages, and plots with matplotlib."""

from wengert.errors import Submodules, submodules

__getattr__: Submodules = submodules(__name__)
