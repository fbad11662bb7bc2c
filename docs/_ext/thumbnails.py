"""The directive `thumbnails`: the first picture of each section below it, small, as a link to that section."""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective


class thumbnails(nodes.General, nodes.Element):  # noqa: N801  (docutils' nodes are lower case)
    """Where they go, until the pictures are there."""


class Thumbnails(SphinxDirective):
    def run(self):
        return [thumbnails()]


class FillThumbnails(SphinxPostTransform):
    default_priority = 300  # after one of each output's forms has been chosen, and names have been linked

    def run(self, **kwargs):
        for place in list(self.document.findall(thumbnails)):
            shown = nodes.bullet_list(classes=["thumbnails"])
            for section in self.document.findall(nodes.section):
                images = [node for node in section.findall(nodes.image) if node.parent is not None]
                if images and not any(section.findall(nodes.section, include_self=False)):
                    shown += thumbnail(section, images[0])
            place.replace_self(shown)


def thumbnail(section, image):
    """A link with the picture and the title; the title says enough to who cannot see."""
    small = nodes.image(uri=image["uri"], candidates=image["candidates"], alt="", classes=image["classes"])
    link = nodes.reference("", "", small, internal=True, refid=section["ids"][0])
    link += nodes.inline("", section.next_node(nodes.title).astext())
    return nodes.list_item("", nodes.paragraph("", "", link))


def setup(app):
    app.add_node(thumbnails)
    app.add_directive("thumbnails", Thumbnails)
    app.add_post_transform(FillThumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
