"""Pictures of the gallery, small, as links to the code that makes them.

The directive `thumbnails` shows the first picture of each section below it. In the reference, each class and function
shows the pictures of the gallery whose code uses it.
"""

from __future__ import annotations

import ast

from api_links import look_up
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

GALLERY = "gallery"
MOST = 4  # pictures that an entry shows


class thumbnails(nodes.General, nodes.Element):  # noqa: N801  (docutils' nodes are lower case)
    """Where they go, until the pictures are there."""


class Thumbnails(SphinxDirective):
    def run(self):
        return [thumbnails()]


class FillThumbnails(SphinxPostTransform):
    default_priority = 300  # after one of each output's forms has been chosen, and names have been linked

    def run(self, **kwargs):
        for place in list(self.document.findall(thumbnails)):
            place.replace_self(gathered(pictures(self.document), ""))
        if not self.env.docname.startswith("api/"):
            return
        used = uses(self.env)
        address = self.app.builder.get_relative_uri(self.env.docname, GALLERY)
        for entry in self.document.findall(addnodes.desc):
            shown = used.get(id(look_up(entry[0]["ids"][0]))) if entry[0]["ids"] else None
            if shown and entry["objtype"] in ("class", "function"):
                entry[-1] += nodes.rubric("", "Examples in the gallery", classes=["examples"])
                entry[-1] += gathered(shown[:MOST], address)


def pictures(document):
    """The sections that nothing is below, each with its first picture."""
    for section in document.findall(nodes.section):
        images = [node for node in section.findall(nodes.image) if node.parent is not None]
        if images and not any(section.findall(nodes.section, include_self=False)):
            yield section, images[0]


def gathered(shown, address):
    return nodes.bullet_list("", *[thumbnail(*pair, address) for pair in shown], classes=["thumbnails"])


def thumbnail(section, image, address):
    """A link with the picture and the title; the title says enough to who cannot see."""
    small = nodes.image(uri=image["uri"], candidates=image["candidates"], alt="", classes=image["classes"])
    place = section["ids"][0]
    target = {"refuri": f"{address}#{place}"} if address else {"refid": place}
    link = nodes.reference("", "", small, internal=True, **target)
    link += nodes.inline("", section.next_node(nodes.title).astext())
    return nodes.list_item("", nodes.paragraph("", "", link))


def uses(env):
    """For each class and function, by its identity, the pictures of the gallery whose code names it."""
    if not hasattr(env.app, "gallery_uses"):
        env.app.gallery_uses = found = {}
        document, names = env.get_doctree(GALLERY), {}
        of_section = {id(section): (section, image) for section, image in pictures(document)}
        for block in document.findall(nodes.literal_block):  # in their order: what one imports, the next may use
            section = next((of_section[id(up)] for up in above(block) if id(up) in of_section), None)
            if "cell_output" in block.parent["classes"] or block.get("language", "ipython3") == "none":
                continue
            for thing in named(block.astext(), names):
                pairs = found.setdefault(id(thing), [])
                if section and section not in pairs:
                    pairs.append(section)
    return env.app.gallery_uses


def above(node):
    while node.parent is not None:
        node = node.parent
        yield node


def named(code, names):
    """What a piece of code uses of the library; `names` holds what its imports and those before it mean."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # what is printed, no code
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wengert"):
            names.update({one.asname or one.name: f"{node.module}.{one.name}" for one in node.names})
        elif isinstance(node, ast.Import):
            names.update({one.name: one.name for one in node.names if one.name == "wengert"})
    for node in ast.walk(tree):
        dotted = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        first, _, rest = dotted.partition(".")
        thing = look_up(f"{names[first]}.{rest}".rstrip(".")) if first in names else None
        if thing is not None:
            yield thing


def setup(app):
    app.add_node(thumbnails)
    app.add_directive("thumbnails", Thumbnails)
    app.add_post_transform(FillThumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
