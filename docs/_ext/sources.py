"""Where each page is written: links to its source and to an editor, where the repository's address is known.

It is known from `[project.urls]` in pyproject.toml, or from the hosted workflow that builds the pages. Where it is not,
a page's source is the text that Sphinx puts beside it.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OF_THE_ROOT = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}  # which their pages include


def repository():
    """The address of the repository, without a slash at its end; "" where nothing says it."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    hosted = f"{server}/{name}" if server and name else ""
    return about.get("urls", {}).get("Repository", hosted).rstrip("/")


def written_in(page):
    """The file of the repository that a page is made of: of a lesson, the text that its notebook is made of."""
    if page.startswith("course/"):
        return f"course/src/wengert_course/lessons/_{page.removeprefix('course/')}.py"
    return OF_THE_ROOT.get(page, f"docs/{page}.md")


def link(app, page, template, context, doctree):
    address = repository()
    if address and doctree is not None:
        context["theme_source_view_link"] = f"{address}/blob/main/{written_in(page)}"
        context["theme_source_edit_link"] = f"{address}/edit/main/{written_in(page)}"


def setup(app):
    app.connect("html-page-context", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
