"""How Sphinx builds the documentation: `sphinx-build -W docs docs/_build`."""

import contextlib
import inspect
import json
import os
import re
import sys
import tempfile
from doctest import DocTestParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))  # the extensions of this documentation alone
os.environ["WENGERT_INTERPRETED"] = "1"  # Python files show their signatures; extensions do not

from docutils import nodes
from docutils.parsers.rst import directives
from scenes import SCENES
from sources import site
from sphinx.util.docutils import SphinxDirective

import wengert
from wengert import nn
from wengert.ops import TABLE
from wengert_course import asked, hints, lessons

os.environ["WENGERT_COURSE_FOLDER"] = "docs"  # where no engine of a reader's is: the pages go on with ours
del os.environ["WENGERT_INTERPRETED"]  # the lessons run as they do for learners, compiled where it is

# Of a class with a `__new__`, autodoc shows the arguments of that; Python itself knows better.
for shown in (nn.Neuron, nn.Layer, nn.MLP):
    shown.__signature__ = inspect.signature(shown).replace(return_annotation=inspect.Signature.empty)
nn.Module.__signature__ = nn.RandomSource.__signature__ = inspect.Signature()
wengert.Value.__signature__ = inspect.signature(lambda data, label="": None)

project = "Wengert"
author = copyright = "The Wengert developers"
release = version = wengert.__version__


def seen(code):
    """What the picture of a cell shows, in words: of a drawing whose graph it is, of a plot what stands on it."""
    drawn = re.search(r"^draw\((\w+)", code, re.MULTILINE)
    if drawn:
        return f"The graph of {drawn[1]}, each box with its number and its gradient"
    return ", ".join(["A plot", *re.findall(r'label(?:=|\()"([^"]+)"', code)])


STATIC = Path(__file__).parent / "_static"
RUNTIME = re.search(r'data-runtime="(.*?)"', (STATIC / "playground" / "playground.html").read_text(encoding="utf-8"))[1]
LIVE = f"""```{{raw}} html
{(STATIC / "lessons" / "lesson.html").read_text(encoding="utf-8").replace("$runtime", RUNTIME)}
<link rel="stylesheet" href="../_static/lessons/lesson.css">
<script type="module" src="../_static/lessons/lesson.js"></script>
```"""
"""What makes a lesson's page one that runs."""

SVG = """import matplotlib
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=["#0072b2", "#d55e00", "#009e73"])
"""
"""How plots of lessons are drawn: in the colours of the package's own, of which dark pages have others."""


def page(lesson):
    """A lesson as a page: the gap as it is, and what fills it folded in under it."""
    notebook = lesson.notebook(solved=True)
    cells = [
        {
            "cell_type": "code",
            "id": "svg",
            "metadata": {"tags": ["remove-cell"]},
            "source": SVG,
            "outputs": [],
            "execution_count": None,
        }
    ]
    pairs = list(zip(lesson.cells(), notebook["cells"], strict=True))
    (last, *_) = [made["id"] for cell, made in reversed(pairs) if "\ncourse.check(" in f"\n{cell.text}"]
    helps = iter(hints()[lesson.number])
    for cell, made in pairs:
        if cell.is_gap:
            folded = [
                f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
                for title, text in zip(("A hint", "A larger hint"), next(helps), strict=True)
            ]
            text = "\n\n".join(folded)
            cells.append({"cell_type": "markdown", "id": f"{made['id']}-hints", "metadata": {}, "source": text})
            gap = f"```python\n{cell.shown(solved=False)}\n```"
            cells.append({"cell_type": "markdown", "id": f"{made['id']}-gap", "metadata": {}, "source": gap})
            made["metadata"] = {"tags": ["hide-input"], "mystnb": {"code_prompt_show": "One way to write it"}}
        drawn = re.search(r"^draw\(", cell.text, re.MULTILINE)
        made["metadata"].setdefault("mystnb", {})["image"] = {"alt": seen(cell.text)} | (
            {} if drawn else {"classes": "plot"}
        )
        cells.append(made)
        if made["id"] == last:
            tries = f"```python\n{asked(lesson.number)}\n```"
            text = f"<details><summary>What the check tries</summary>\n\n{tries}\n\n</details>"
            cells.append({"cell_type": "markdown", "id": "asked", "metadata": {}, "source": text})
        if len(cells) == 2:  # after the title
            link = f"{{download}}`Download this lesson <notebooks/{lesson.name}.ipynb>` as a notebook.\n\n{LIVE}"
            cells.append({"cell_type": "markdown", "id": "download", "metadata": {}, "source": link})
        if cell.text.startswith("slope(f, 3.0)"):
            cells.append(
                {"cell_type": "markdown", "id": "secant", "metadata": {}, "source": "```{played} secant\n:at: 6\n```"}
            )
    return notebook | {"cells": cells}


folder = Path(__file__).parent / "course"
(folder / "notebooks").mkdir(parents=True, exist_ok=True)
for lesson in lessons():  # Sphinx reads only what lies in its folder
    for path, notebook in (
        (folder / f"{lesson.name}.ipynb", page(lesson)),
        (folder / "notebooks" / f"{lesson.name}.ipynb", lesson.notebook(solved=False)),
    ):
        text = json.dumps(notebook, indent=1) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # what is as it was need not be built again
            path.write_text(text, encoding="utf-8")


extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",  # docstrings in Google's style
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    *(
        "accessible",
        "api_links",
        "dark_plots",
        "described",
        "llms",
        "mathml",
        "playground",
        "sources",
        "thumbnails",
    ),  # in _ext
]
exclude_patterns = ["_build", "_ext", "course/notebooks", "jupyter_execute"]
nb_execution_mode = "force"  # the lessons are kept without outputs; the examples of pages are no cells
nb_execution_timeout = 120
nb_merge_streams = True  # what a cell prints is one text
nb_code_prompt_hide = "Hide it"
nb_execution_raise_on_error = True
myst_enable_extensions = ["attrs_block", "attrs_inline", "dollarmath", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"Wengert {version}"
html_logo = "_static/icon.svg"
html_baseurl = site()
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
copybutton_selector = ".highlight:not(.cell_output *) > pre"  # what is to be run, not what it prints
copybutton_prompt_text = r">>> |\.\.\. ?|\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

autodoc_default_options = {"show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autoclass_content = "both"
default_role = "code"  # `x` in a docstring is code
nitpicky = True  # what a docstring refers to within the library is there
nitpick_ignore_regex = [
    ("py:.*", r"(?!wengert(_course)?\.).*"),  # Python's own types, those of other libraries, and words before a colon
    ("py:class", r"wengert\.(data\.(Item|Target)|ops\.op\.Op|view\.explain\._Finder)"),
    ("py:class", r"wengert\.(training\.(history\.Progress|orders\.Orders)|compiler\.call\.callpath\.CallPath)"),
]


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are written to be read in the source: only backquotes and tables mean something."""
    mark = re.compile(r"`[^`]*`|([*|])")
    table = listed = False
    for i, line in enumerate(lines):
        listed = line == "Args:" or (listed and line[:1] in ("", " "))
        if listed:  # the strings that an argument may be
            line = lines[i] = re.sub(r'`[^`]*`|"[\w.-]+"', lambda m: f"`{m[0].strip('`')}`", line)
        if line.startswith("Create new instance of "):  # which Python says of every NamedTuple
            lines[i] = ""
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            row = "    * - " + "\n      - ".join(cells)
            head = "" if table else ".. list-table::\n    :header-rows: 1\n\n"
            lines[i] = "" if cells[0].startswith("--") else head + row
        elif not line.startswith("    ") and not line.lstrip().startswith((">>>", "...")):
            lines[i] = ("\n" if table else "") + mark.sub(lambda m: "\\" + m[1] if m[1] else m[0], line)
        table = line.startswith("|")
    if what in ("attribute", "property"):
        lines.insert(0, "\\ ")  # nothing; else what stands before a colon in the first line is taken for a type
    lines[:] = "\n".join(lines).split("\n")


def without_empty_ends(app, name, content):
    """An example ends with an empty line, so that doctest sees where; readers need not."""
    content[0] = content[0].replace("\n\n```\n", "\n```\n")


class Played(SphinxDirective):
    """A page that plays, in a frame: a scene, an animation, or the steps of a Value; the latter two over the names of
    the blocks before it.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"at": directives.nonnegative_int}  # noqa: RUF012  (docutils)

    def run(self):
        scene = SCENES.get(self.arguments[0])
        page = scene() if scene else self.played()
        title = re.search("<title>(.*?)</title>", page)[1]
        file = f"steps-{self.env.docname.replace('/', '-')}-{self.lineno}.html"
        folder = Path(self.env.app.outdir, "_static")
        folder.mkdir(parents=True, exist_ok=True)
        page.save(folder / file)
        source = f"{'../' * self.env.docname.count('/')}_static/{file}#{self.options.get('at', 0)}"
        shown = f'src="{source}" height="800" title="{title}"'
        return [nodes.raw("", f"<p><iframe {shown}></iframe></p>", format="html")]

    def played(self):
        names = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where blocks save their files
            for block in self.state.document.findall(nodes.literal_block):
                if block.get("language") == "python":
                    exec(block.astext(), names)
                elif block.get("language") == "pycon":
                    with contextlib.redirect_stdout(None):
                        for example in DocTestParser().get_examples(block.astext()):
                            exec(example.source, names)
            shown = eval(self.arguments[0], names)
        return (wengert.steps(shown) if isinstance(shown, wengert.Value) else shown).page()


class Operations(SphinxDirective):
    """The table of operations as it stands in ops.py; each of its names leads to its row."""

    def run(self):
        rows = []
        for row in TABLE[1:]:
            names = ", ".join(f"``{name}``" for name in (row.name, *row.aliases))
            operands = "any number" if row.arity is None else str(row.arity)
            rows.append([names, operands, row.about.replace("*", r"\*").replace("|", r"\|")])
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 30 10 60", ""]
        for row in [["name", "operands", "value"], *rows]:
            lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
        made = self.parse_text_to_nodes("\n".join(lines))
        _, *shown = made[0].findall(nodes.row)
        for operation, row in zip(TABLE[1:], shown, strict=True):
            for name in (operation.name, *operation.aliases):
                if hasattr(wengert, name) and name not in ("dot", "pick"):  # which have entries of their own
                    row["ids"] = [f"wengert.{operation.name}"]
                    self.env.domains["py"].note_object(f"wengert.{name}", "function", row["ids"][0], location=row)
        return made


def setup(app):
    app.connect("autodoc-process-docstring", plain_text, priority=400)  # before napoleon
    app.connect("source-read", without_empty_ends)
    app.add_directive("operations", Operations)
    app.add_directive("played", Played)
