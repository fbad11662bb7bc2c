"""Programs that people start: the command `wengert` (`cli.py`), and the demo that it trains (`demo.py`)."""

from wengert.apps.cli import main

__all__ = ["main"]
