"""Formulas as MathML, which browsers set by themselves: a page needs no script and no network for them."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert

FUNCTION = re.compile(  # by its name, squared or not, and not before a bracket
    r"((?:<msup>)?<mi>(?:cos|exp|ln|log|max|min|sin|tanh?)</mi>(?:<mn>\d</mn></msup>)?)(?!<mo[^>]*>&#x00028;)"
)


def mathml(text, display="inline"):
    """The formula; between a function and what it is of stands a thin space, as TeX has it."""
    return FUNCTION.sub(r'\1<mspace width="0.17em"/>', convert(text, display=display))


def inline(translator, node):
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def displayed(translator, node):
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(displayed, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
