"""The command `wengert` (`cli.py`) and its demo (`demo.py`)."""

from wengert.apps.cli import main

__all__ = ["main"]
