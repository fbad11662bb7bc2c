"""What a search engine and a shared link show of a page: its first sentence, its title, and a picture.

A picture needs a full address: that of the site, where `[project.urls]` in pyproject.toml or the builder names it.
"""

from __future__ import annotations

from html import escape

from llms import first_sentence

PICTURE = "_static/preview.png"


def describe(app, page, template, context, doctree):
    if doctree is None:
        return
    title = app.env.titles[page].astext() if page in app.env.titles else app.config.project
    named = title if page == app.config.root_doc else f"{title} - {app.config.project}"
    sentence = first_sentence(doctree)
    told = {"og:title": named, "og:type": "website", "og:site_name": app.config.project, "og:description": sentence}
    if base := app.config.html_baseurl.rstrip("/"):
        told |= {"og:url": f"{base}/{app.builder.get_target_uri(page)}", "og:image": f"{base}/{PICTURE}"}
        told["twitter:card"] = "summary_large_image"
    tags = [f'<meta name="description" content="{escape(sentence)}">'] if sentence else []
    tags += [f'<meta property="{name}" content="{escape(text)}">' for name, text in told.items() if text]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def setup(app):
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
