"""How Sphinx builds the documentation: `sphinx-build -W docs docs/_build`."""

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

os.environ["WENGERT_INTERPRETED"] = "1"  # Python files show their signatures; extensions do not

from docutils import nodes
from docutils.parsers.rst import directives
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


def looks(app, page, template, context, doctree):
    """Messages that are longer than a page is wide are wrapped in examples, not cut off; frames follow the site."""
    style = ".highlight-pycon pre, .doctest pre { white-space: pre-wrap }"
    # Frames and drawings are light and dark as the site's own switch says.
    style += "iframe { width: 100%; border: 1px solid var(--color-background-border); border-radius: 10px }"
    for theme, scheme in {"auto": "light dark", "light": "light", "dark": "dark"}.items():
        style += f'body[data-theme="{theme}"] :is(iframe, img[src$=".svg"]) {{ color-scheme: {scheme} }}'
    context["metatags"] = context.get("metatags", "") + f"<style>{style}</style>"


class Played(SphinxDirective):
    """A page of steps, played in a frame: of an expression over the names of the Python blocks before it."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"at": directives.nonnegative_int, "height": directives.nonnegative_int}  # noqa: RUF012  (docutils)

    def run(self):
        names = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where blocks save their files
            for block in self.state.document.findall(nodes.literal_block):
                if block.get("language") == "python":
                    exec(block.astext(), names)
        page = wengert.steps(eval(self.arguments[0], names)).page()
        file = f"steps-{self.env.docname}-{self.lineno}.html"
        folder = Path(self.env.app.outdir, "_static")
        folder.mkdir(parents=True, exist_ok=True)
        page.save(folder / file)
        source = f"_static/{file}#{self.options.get('at', 0)}"
        shown = f'src="{source}" height="{self.options.get("height", 800)}" title="The computation, step by step"'
        return [nodes.raw("", f"<p><iframe {shown}></iframe></p>", format="html")]


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
    app.connect("html-page-context", looks)
    app.add_directive("operations", Operations)
    app.add_directive("played", Played)
