"""Where each page is written: links to its source and to an editor, where the repository's address is known.

It is known from `[project.urls]` in pyproject.toml, or from the hosted workflow that builds the pages. Where it is not,
a page's source is the text that Sphinx puts beside it.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALLS = ("index", "getting-started", "course")
OF_THE_ROOT = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}  # which their pages include


def known(name):
    """An address from `[project.urls]` in pyproject.toml, without a slash at its end; "" where it is not there."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return about.get("urls", {}).get(name, "").rstrip("/")


def repository():
    """The address of the repository; "" where nothing says it."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return known("Repository") or (f"{server}/{name}" if server and name else "")


def site():
    """The address of these pages, where it is known: of the hosted workflow, that which GitHub gives them."""
    owner, _, name = os.environ.get("GITHUB_REPOSITORY", "").partition("/")
    return known("Documentation") or (f"https://{owner.lower()}.github.io/{name}" if name else "")


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


def clone(app, page, source):
    """Before the first command that a page has to be installed by: how the folder comes here that it is said in."""
    if (address := repository()) and page in INSTALLS:
        source[0] = source[0].replace("```sh\npip ", f"```sh\ngit clone {address} wengert && cd wengert\npip ", 1)


def icon(app, page, template, context, doctree):
    """At the foot of each page, the way to the repository."""
    if address := repository():
        drawn = f'<img class="source-icon" src="{context["pathto"]("_static/repository.svg", 1)}" alt="">'
        context["theme_footer_icons"] = [{"name": "The repository", "url": address, "html": drawn, "class": ""}]


def setup(app):
    app.connect("source-read", clone)
    app.connect("html-page-context", link)
    app.connect("html-page-context", icon)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
