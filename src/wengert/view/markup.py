"""Texts of others inside of XML and HTML, and the frame of a page that may do nothing but what is said of it."""

from __future__ import annotations

import re

__all__ = ["attribute", "document", "escape"]

ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # in XML 1.0


def escape(text: str) -> str:
    """Text for XML and HTML: no character of it is markup, and none is outside XML 1.0.

    >>> escape('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    text = ILLEGAL.sub("\ufffd", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def attribute(text: str) -> str:
    """The value of an attribute, in quotes."""
    return f'"{escape(text)}"'


def document(title: str, allowed: str, style: str, body: str) -> str:
    """An HTML page that fetches nothing.

    Args:
        title: any text.
        allowed: the directives of its Content-Security-Policy that let something run or apply; nothing else may.
        style: the rules.
        body: what it shows.
    """
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n<body>\n{body}\n</body></html>"
    )
