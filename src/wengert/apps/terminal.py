"""The output of the commands in a terminal: colours, lines that fit its width, and small pictures.

Green is right, red is wrong, and yellow needs attention. Colours are Rich's, if it is installed: it knows what a
terminal can do, and reads NO_COLOR (no-color.org) and FORCE_COLOR. Output to a file or another program has none, and is
wrapped only if COLUMNS is set.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

__all__ = ["blocks", "can_show", "can_write", "curve", "is_coloured", "paint", "plane", "say", "shown", "width"]

STYLES = {"right": "green", "wrong": "red", "look": "yellow", "quiet": "dim", "title": "bold"}
HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}  # by the upper, lower pixel
BARS = "▁▂▃▄▅▆▇█"
FIELDS = (166, 25, 29, 172, 133, 74, 185)  # the colours of the classes in plots, among the 256 of terminals
DIGIT, INK = 8, 0.4  # the width and height of a digit in pixels; darker pixels are drawn
HANGING = 4  # the indentation of continued lines


def is_coloured(stream: Any = None) -> bool:
    """Return True if output to a stream, by default stdout, is coloured."""
    try:
        from rich.console import Console
    except ImportError:
        return False
    console = Console(file=sys.stdout if stream is None else stream)
    return console.color_system is not None and not console.no_color


def can_show() -> bool:
    """Return True if stdout can show pictures: it is a terminal that has their characters."""
    return can_write("▀▁●") and (_is_terminal() or bool(os.environ.get("FORCE_COLOR")))


def can_write(text: str) -> bool:
    """Return True if stdout has these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def width() -> int | None:
    """Return the width of lines in columns; None if it is not limited."""
    return shutil.get_terminal_size().columns if _is_terminal() or os.environ.get("COLUMNS") else None


def paint(text: str, style: str, stream: Any = None) -> str:
    """Return the text in the colour of a style, if output to the stream is coloured."""
    return _styled(text, STYLES[style]) if text and is_coloured(stream) else text


def shown(text: str, marks: Mapping[str, str] | None = None, wrapped: bool = False) -> str:
    """Wrap a text to the terminal unless it is wrapped, and colour what matches a pattern in the pattern's style."""
    room, lines = None if wrapped else width(), []
    for line in text.splitlines():
        start = line[: len(line) - len(line.lstrip())]
        if room is None or len(line) <= room:
            lines.append(line)
        else:
            lines += wrap(
                line.strip(),
                max(room, len(start) + HANGING + 20),
                initial_indent=start,
                subsequent_indent=start + " " * HANGING,
                break_on_hyphens=False,
                break_long_words=False,
            )
    text = "\n".join(lines)
    if is_coloured():
        for pattern, style in (marks or {}).items():
            text = re.sub(pattern, lambda found, style=style: paint(found[0], style), text)  # type: ignore[misc]
    return text


def say(text: str, marks: Mapping[str, str] | None = None, wrapped: bool = False) -> None:
    """Print a text as `shown` returns it, and flush it, for pipes."""
    print(shown(text, marks, wrapped), flush=True)


# -- pictures ---------------------------------------------------------------------------------------------------------


def curve(numbers: Sequence[float], most: int = 40) -> str:
    """Draw a curve from 0 up, in one line.

    >>> curve([8.0, 4.0, 2.0, 1.0])
    '█▄▂▁'
    """
    count = min(len(numbers), most)
    chosen = [numbers[i * len(numbers) // count] for i in range(count)]
    top = max(chosen, default=0.0) or 1.0
    return "".join([BARS[min(max(round(len(BARS) * x / top) - 1, 0), len(BARS) - 1)] for x in chosen])


def blocks(images: Sequence[Sequence[float]], labels: Sequence[int], predictions: Sequence[int]) -> str:
    """Draw as many digits of 8 x 8 pixels as fit side by side, with their predictions, and labels that differ."""
    fits = max((width() or 80) // (DIGIT + 2), 1)
    columns = []
    for image, label, prediction in zip(images[:fits], labels, predictions, strict=False):
        told = f"{prediction}" if label == prediction else f"{prediction}, not {label}"
        lit = [pixel > INK for pixel in image]
        rows = [
            zip(lit[y : y + DIGIT], lit[y + DIGIT : y + 2 * DIGIT], strict=True) for y in range(0, len(lit), 2 * DIGIT)
        ]
        lines = [*("".join(HALVES[pair] for pair in row) for row in rows), f"{told:<{DIGIT}}"]
        columns.append([paint(line, "right" if label == prediction else "wrong") for line in lines])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def plane(letters: str) -> str:
    """Return the result of `wengert.view.text.regions` in the colours of the classes, if stdout is coloured."""
    if not is_coloured():
        return letters

    def cell(letter: str) -> str:
        field = FIELDS[(ord(letter.lower()) - ord("a")) % len(FIELDS)]
        return _styled("●" if letter.isupper() else " ", f"color(231) on color({field})")

    return "\n".join("".join(map(cell, line)) for line in letters.splitlines())


def _styled(text: str, style: str) -> str:
    from rich.style import Style

    return Style.parse(style).render(text)


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
