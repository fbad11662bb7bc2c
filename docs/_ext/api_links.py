"""Names of the library in prose become links to their entries: `wengert.draw`, `fit(...)`, `MLP`.

A dotted name is looked up as Python would, so that any way to a thing leads to its one entry. A bare name counts if it
can mean nothing else: a class that is there once, a name with an underscore, or one that `wengert` itself offers and
neither Python nor a Value has. Each is linked where a section first names it.

The way back from the library's source, which sphinx.ext.viewcode shows, leads to the same entries.
"""

from __future__ import annotations

import builtins
import re
from functools import cache
from importlib import import_module

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

import wengert

NAME = re.compile(r"([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)
THINGS = ("class", "exception", "function", "module")
BACK = re.compile(r'(<div class="viewcode-block" id="([\w.]+)">\n)<a class="viewcode-back" [^>]*>.*?</a>')
NOT_IN = (nodes.reference, nodes.title, nodes.term)
WITH_NAMES_OF_THEIR_OWN = ("course/", "coming-from")  # the lessons' Value is the reader's, and others' MLP theirs


class Entries:
    """The entries of the reference, by what they are entries of, and by the names that can mean nothing else."""

    def __init__(self, objects):
        self.of_thing, self.of_name, twice = {}, {}, set()
        for name, entry in objects.items():
            thing = look_up(name) if entry.objtype in THINGS and not entry.aliased else None
            if thing is not None:
                self.of_thing[id(thing)] = (name, entry)
                last = name.rpartition(".")[2]
                if self.of_name.setdefault(last, thing) is not thing:
                    twice.add(last)
        self.of_name = {name: thing for name, thing in self.of_name.items() if name not in twice and is_telling(name)}

    def get(self, name, bare=False):
        """The full name and the entry of what a name means; None if there is none."""
        thing = look_up(name) if "." in name else self.of_name.get(name) if bare else None
        return self.of_thing.get(id(thing)) if thing is not None else None


@cache
def entries_of(app):
    """The entries, found once: when pages are written all are known."""
    return Entries(app.env.domains["py"].objects)


def look_up(name):
    """What `wengert.x.y` is, or `wengert_course.x`; None if it is nothing, or of another library."""
    first, *rest = name.split(".")
    if first not in ("wengert", "wengert_course"):
        return None
    thing, path = import_module(first), first
    for part in rest:
        path = f"{path}.{part}"
        thing = getattr(thing, part, None)
        if thing is None:
            try:
                thing = import_module(path)
            except ImportError:
                return None
    return thing


def is_telling(name):
    if name[0].isupper() or "_" in name:
        return True
    return name in wengert.__all__ and not hasattr(builtins, name) and not hasattr(wengert.Value, name)


class LinkNames(SphinxPostTransform):
    default_priority = 200

    def run(self, **kwargs):
        app, entries = self.env.app, entries_of(self.env.app)
        bare, linked = not self.env.docname.startswith(WITH_NAMES_OF_THEIR_OWN), set()
        for literal in list(self.document.findall(nodes.literal)):
            match = NAME.fullmatch(literal.astext())
            found = entries.get(match[1], bare) if match else None
            above = list(ancestors(literal))
            if not found or any(isinstance(node, NOT_IN) or is_entry(node, found[1].node_id) for node in above):
                continue
            name, entry = found
            section = next((id(node) for node in above if isinstance(node, nodes.section)), None)
            if (section, name) not in linked:
                linked.add((section, name))
                text = literal.deepcopy()
                link = make_refnode(app.builder, self.env.docname, entry.docname, entry.node_id, text, name)
                literal.replace_self(link)


def ancestors(node):
    while node.parent is not None:
        node = node.parent
        yield node


def is_entry(node, node_id):
    """Whether it is what the name would lead to: nothing links to where the reader is."""
    place = node[0] if isinstance(node, addnodes.desc) else node
    return isinstance(place, (addnodes.desc_signature, nodes.row)) and node_id in place["ids"]


def mend(app, page, template, context, doctree):
    """From a source back to its entry. That may have another module's name, `wengert.draw`; viewcode knows but one."""
    if not page.startswith("_modules/wengert/"):
        return
    module = page.removeprefix("_modules/").replace("/", ".")

    def back(found):
        thing, _, rest = found[2].partition(".")
        name, entry = entries_of(app).get(f"{module}.{thing}") or ("", None)
        if entry is None:
            return found[1]
        address = f"{app.builder.get_relative_uri(page, entry.docname)}#{name}{rest and '.' + rest}"
        return f'{found[1]}<a class="viewcode-back" href="{address}">[docs]</a>'

    context["body"] = BACK.sub(back, context["body"])


def setup(app):
    app.connect("html-page-context", mend)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
