"""How Sphinx builds the documentation: `sphinx-build -W docs docs/_build`."""

import os
import re
import shutil
from pathlib import Path

os.environ["WENGERT_INTERPRETED"] = "1"  # Python files show their signatures; extensions do not

from sphinx.util.docutils import SphinxDirective

import wengert
from wengert.ops import TABLE

project = "Wengert"
author = copyright = "The Wengert developers"
release = version = wengert.__version__

here = Path(__file__).parent
shutil.copy(here.parent / "examples" / "first-steps.ipynb", here)  # Sphinx reads only what lies in its folder

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # docstrings in Google's style
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "jupyter_execute"]
nb_execution_mode = "force"  # the notebook is kept without outputs; the examples of pages are no cells
nb_execution_raise_on_error = True
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Wengert"

autodoc_default_options = {"show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autoclass_content = "both"
default_role = "code"  # `x` in a docstring is code
nitpicky = False


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are written to be read in the source: only backquotes mean something, and a table is as typed."""
    mark = re.compile(r"`[^`]*`|([*|])")
    table = False
    for i, line in enumerate(lines):
        if line.startswith("Create new instance of "):  # which Python says of every NamedTuple
            lines[i] = ""
        elif line.startswith("|"):
            lines[i] = ("" if table else "::\n\n") + "    " + line
        elif not line.startswith("    ") and not line.lstrip().startswith((">>>", "...")):
            lines[i] = ("\n" if table else "") + mark.sub(lambda m: "\\" + m[1] if m[1] else m[0], line)
        table = line.startswith("|")
    lines[:] = "\n".join(lines).split("\n")


def without_empty_ends(app, name, content):
    """An example ends with an empty line, so that doctest sees where; readers need not."""
    content[0] = content[0].replace("\n\n```\n", "\n```\n")


def wrapped_sessions(app, page, template, context, doctree):
    """Messages that are longer than a page is wide are wrapped in examples, not cut off."""
    style = "<style>.highlight-pycon pre, .doctest pre { white-space: pre-wrap }</style>"
    context["metatags"] = context.get("metatags", "") + style


class Operations(SphinxDirective):
    """The table of operations as it stands in ops.py."""

    def run(self):
        rows = []
        for row in TABLE[1:]:
            names = ", ".join(f"``{name}``" for name in (row.name, *row.aliases))
            operands = "any number" if row.arity is None else str(row.arity)
            rows.append([names, operands, row.about.replace("*", r"\*").replace("|", r"\|")])
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 30 10 60", ""]
        for row in [["name", "operands", "value"], *rows]:
            lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app):
    app.connect("autodoc-process-docstring", plain_text, priority=400)  # before napoleon
    app.connect("source-read", without_empty_ends)
    app.connect("html-page-context", wrapped_sessions)
    app.add_directive("operations", Operations)
