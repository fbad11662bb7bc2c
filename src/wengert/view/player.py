"""Writes pages that play, with buttons, a slider and keys.

A page fetches nothing: its Content-Security-Policy allows only its script and its style, by their hashes. They come
from `wengert/assets` and are compressed, so that a page is small enough to be sent.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import Any

from wengert._files import to_write
from wengert.view.markup import asset, attribute, document

__all__ = ["Page", "packed"]


class Page(str):
    """An HTML page; a notebook shows it in an iframe."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Page({len(self) / 1000:.1f} kB of HTML; page.save(path) writes it to a file)"

    def save(self, path: Any) -> None:
        """Write it to a file.

        Raises:
            ArgumentError: the path is not a path.
        """
        with to_write(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(self)

    def _repr_html_(self) -> str:
        title = self.partition("<title>")[2].partition("</title>")[0]
        return (
            f'<iframe sandbox="allow-scripts" title="{title}" width="100%" height="720" '
            f'style="border:0" srcdoc={attribute(self)}></iframe>\n<script>{asset("framed.js")}</script>'
        )


def packed(title: str, data: str, program: str, name: str, panels: str = "", style: str = "") -> Page:
    """Make a page that plays: it contains the player, and the skeleton, style and program of that name.

    Args:
        title: any text.
        data: HTML that the program reads.
        program: what runs before the program of that name.
        name: of the assets.
        panels: the HTML that replaces `$panels`.
        style: CSS rules after those of the assets.
    """
    program = f'"use strict";\n{asset("player.js")}\n{program}\n{asset(f"{name}.js")}'
    start, paper = asset("unpack.js"), ":root{color-scheme:light dark}"
    style = "\n".join([*[asset(f"{part}.css") for part in dict.fromkeys(["stepper", name])], style])
    skeleton = asset(f"{name}.html").replace("$player", asset("player.html")).replace("$panels", panels)
    scripts, styles = f"'{_hash(start)}' '{_hash(program)}'", f"'{_hash(paper)}' '{_hash(style)}'"
    compressed = zlib.compress(json.dumps([style, program, skeleton], ensure_ascii=False).encode(), 9)
    body = (
        f'{data}<script type="text/plain" id="packed">{base64.b64encode(compressed).decode()}</script>\n'
        f"<script>{start}</script>\n"
        "<noscript>This page needs JavaScript, which is switched off here.</noscript>"
    )
    return Page(document(title, f"script-src {scripts}; style-src {styles}", paper, body) + "\n")


def _hash(text: str) -> str:
    """Return the hash of a script or a style for the policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
