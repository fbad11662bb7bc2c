"""What the theme forgets of those who do not see, or do not point: what axe finds."""

from __future__ import annotations

from wengert.view.markup import asset


def levels(app, page, template, context, doctree):
    """The captions of the navigation are headings, and a heading has a level; an empty cell heads no column."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    if "body" in context:
        context["body"] = context["body"].replace('<th class="head"><p></p></th>', '<td class="head"></td>')


def setup(app):
    app.connect("html-page-context", levels, priority=900)  # after the theme has made the navigation
    app.add_js_file("scrolled.js", loading_method="defer")
    app.add_js_file(None, body=asset("framed.js"))  # frames as high as the pages of steps in them
    return {"parallel_read_safe": True, "parallel_write_safe": True}
