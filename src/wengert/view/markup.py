"""Text in XML and HTML, its width, and the skeleton of a page with a Content-Security-Policy."""

from __future__ import annotations

import re
from importlib import resources
from unicodedata import combining, east_asian_width

__all__ = ["asset", "attribute", "cells", "document", "escape", "is_plain"]

ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # in XML 1.0


def escape(text: str) -> str:
    """Escape text for XML and HTML, and replace characters that XML 1.0 does not allow.

    >>> escape('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    text = ILLEGAL.sub("\ufffd", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def attribute(text: str) -> str:
    """Write the value of an attribute, in quotes."""
    return f'"{escape(text)}"'


def document(title: str, allowed: str, style: str, body: str) -> str:
    """Write an HTML page that fetches nothing.

    Args:
        title: any text.
        allowed: the directives of its Content-Security-Policy that allow scripts and styles; all else is forbidden.
        style: the CSS rules.
        body: the HTML of the body.
    """
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n<body>\n{body}\n</body></html>"
    )


def asset(name: str) -> str:
    """Read a script or a style of a page, without indentation and lines of comments."""
    text = resources.files("wengert").joinpath("assets", name).read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))


def cells(text: str) -> float:
    """Return an upper bound of the width of a text in a monospaced font, in characters.

    >>> cells("data"), cells("数")
    (4.0, 2.0)
    """
    return sum([_cells(c) for c in text])


def _cells(c: str) -> float:
    if c < "\u0300":
        return 1.0
    return 2.0 if east_asian_width(c) in "WF" else 0.0 if combining(c) else 1.0 if is_plain(c) else 1.5


def is_plain(c: str) -> bool:
    """Return True if every monospaced font has the character at the usual width."""
    return c < "\u0250" or "\u0370" <= c < "\u0483" or c in "…−×·≤≥→"
