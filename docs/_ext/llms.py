"""llms.txt, by which language models find their way: each page's title, address and first sentence (llmstxt.org)."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|$)", re.DOTALL)
PROSE = (nodes.section, nodes.document)


def first_sentence(tree):
    """The first sentence of a page's own prose; nothing of lists, tables or signatures."""
    for paragraph in tree.findall(nodes.paragraph):
        text = "".join(paragraph.findall(nodes.Text)).strip()  # none of pictures alone
        if isinstance(paragraph.parent, PROSE) and (found := SENTENCE.match(text)):
            return " ".join(found[0].split())
    return ""


def lines(env, page, depth=0):
    """A line for the page, and for those below it."""
    sentence = first_sentence(env.get_doctree(page))
    yield f"{'  ' * depth}- [{env.titles[page].astext()}]({page}.html)" + (f": {sentence}" if sentence else "")
    for below in env.toctree_includes.get(page, ()):
        yield from lines(env, below, depth + 1)


def write(app, exception):
    if exception or app.builder.format != "html":
        return
    root = app.env.get_doctree(app.config.root_doc)
    text = [f"# {app.config.project}", "", f"> {first_sentence(root)}"]
    for tree in root.findall(addnodes.toctree):
        text += ["", f"## {tree['caption']}", ""]
        for _, page in tree["entries"]:
            text += lines(app.env, page)
    Path(app.outdir, "llms.txt").write_text("\n".join(text) + "\n", encoding="utf-8")


def setup(app):
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
