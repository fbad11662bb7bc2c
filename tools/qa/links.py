"""Dead links of a built site: `python -m tools.qa.links SITE`. Nothing is asked of the network.

Every address in every page is looked at. One within the site has to lead to a file, and to a place in it that there is.
Nothing is loaded from elsewhere: a page works without a network. A link to elsewhere has to be a well-formed https
address; whether something answers there only a network can tell: `sphinx-build -b linkcheck docs docs/_build/links`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("img", "src"), ("script", "src"), ("iframe", "src"), ("link", "href"), ("source", "src"), ("video", "src")}
IN_A_STYLE = re.compile(r"(?:url\(\s*|@import\s+)['\"]?([^'\")\s]+)")
HOST = re.compile(r"([a-z0-9-]+\.)+[a-z]{2,}(:\d+)?", re.IGNORECASE)


class Page(HTMLParser):
    """What a page points to, and the places in it that can be pointed to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}
        self.links: list[tuple[str, bool]] = []  # an address, and whether what is there becomes a part of the page
        self.whole = False  # a file may also hold a piece of a page, whose links are looked at in the page that has it
        self.feed(text)

    def handle_decl(self, decl: str) -> None:
        """A page says of itself that it is one."""
        self.whole = self.whole or decl.lower().startswith("doctype")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note its addresses, and its name."""
        for name, text in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(text or "")
            elif name == "srcset":
                self.links += [(part.split()[0], True) for part in (text or "").split(",")]
            elif name in ("href", "src"):
                canonical = tag == "link" and dict(attrs).get("rel") in ("canonical", "author", "license")
                self.links.append((text or "", (tag, name) in LOADED and not canonical))


@cache
def read(path: Path) -> Page:
    """A page, read once."""
    return Page(path.read_text(encoding="utf-8"))


def fault(site: Path, page: Path, address: str, loaded: bool) -> str:
    """What is wrong with an address that stands in a page of the site; "" if nothing is."""
    parts = urlsplit(address)
    if parts.scheme == "data" or (parts.scheme == "mailto" and "@" in parts.path):
        return ""
    if parts.scheme or parts.netloc:
        if loaded:
            return "is loaded from elsewhere"
        good = parts.scheme == "https" and HOST.fullmatch(parts.netloc) and not re.search(r"\s", address)
        return "" if good else "is no well-formed https address"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "leads to no file"
    if not target.is_relative_to(site):
        return "leads out of the site"
    if loaded or target.suffix != ".html":
        return ""  # a frame reads of its address what it likes
    return "" if unquote(parts.fragment) in read(target).places else f"has no place {parts.fragment!r}"


def faults(site: Path) -> Iterator[str]:
    """A line for each dead link."""
    site = site.resolve()
    for path in sorted(path for path in site.rglob("*.html") if read(path).whole):
        for address, loaded in dict.fromkeys(read(path).links):
            if found := fault(site, path, address, loaded):
                yield f"{path.relative_to(site)}: {address} {found}"
    for path in sorted(site.rglob("*.css")):
        for address in IN_A_STYLE.findall(path.read_text(encoding="utf-8")):
            if not address.startswith("#") and (found := fault(site, path, address, loaded=True)):
                yield f"{path.relative_to(site)}: {address} {found}"


def main(argv: list[str] | None = None) -> int:
    """Print what is dead; the exit status is 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path, help="the folder that sphinx-build wrote")
    site = parser.parse_args(argv).site
    if not (site / "index.html").is_file():
        parser.error(f"{site} holds no built site: sphinx-build docs {site}")
    found = list(faults(site))
    print(*found, sep="\n") if found else print(f"no dead link in {len(list(site.rglob('*.html')))} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
