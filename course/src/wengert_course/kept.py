"""The reader's own engine, from lesson to lesson: what passes a check is kept in `mine.py`, where later lessons begin.

`mine.py` is a module that the reader may read, import and change. A lesson's class joins the one in it with
``@course.go_on(4)``, and `course.mine(8)` gives all of it. Where a lesson is not finished, ours is offered.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from symtable import symtable
from types import ModuleType
from typing import Any, NamedTuple

from wengert.errors import ArgumentError
from wengert_course.notebooks import lessons

__all__ = ["FOLDER", "go_on", "keep", "lent", "mine"]

FILE = "mine.py"
FOLDER = "WENGERT_COURSE_FOLDER"
"""A variable that names the folder of a file that is checked: nothing is kept, and ours is taken where it must be."""

KEPT: dict[int, tuple[str, ...]] = {**dict.fromkeys(range(1, 8), ("Value",)), 8: ("Neuron", "Layer", "MLP")}
KEPT |= {10: ("Value",)}
"""Lesson -> what its check keeps."""

HEAD = '"""Your engine. The check of a lesson keeps here what has passed it, and later lessons begin with it.'
DONE = re.compile(r"^Lessons: ([\d ]*)$", re.MULTILINE)
LEFT_OUT = ("# YOUR CODE HERE", "@course.go_on(")
JOINS = re.compile(r"course\.(?:go_on|mine)\((\d+)")

_begun = [""]  # the text that this session has begun with


def mine(step: int, ours: bool = False) -> ModuleType:
    """The reader's engine as `mine.py` has it, when the check of this lesson has kept it there.

    Args:
        step: the lesson that has to be done.
        ours: take the course's own engine instead, as it is after this lesson.

    Raises:
        ArgumentError: the lesson is not done; the message says what to do.
    """
    text = _ours(step) if ours else _text()
    if step not in _done(text):
        if FOLDER not in os.environ:
            what = f"has nothing of lesson {step} yet" if text else "is not here"
            raise ArgumentError(
                f"{FILE}, where the check of lesson {step} keeps your engine, {what}: finish that lesson; or, to go on "
                f"with ours, write ({step}, ours=True) instead of ({step})"
            )
        text = _ours(step)
    _begun[:] = [text]
    return _module(text)


def go_on(step: int, ours: bool = False, *, anew: str = "") -> Callable[[type], Any]:
    """Let what a class says join the reader's class of that name, after this lesson: ``@course.go_on(4)``.

    Methods that are there already are replaced; those that are named in `anew` are to be, and are not there until then.
    Other arguments and errors are those of `mine`.
    """
    module = mine(step, ours)

    def joined(part: type) -> Any:
        whole = getattr(module, part.__name__)
        for name in anew.split():
            if name in vars(whole):
                delattr(whole, name)
        for name, thing in vars(part).items():
            if callable(thing) or not name.startswith("__"):
                setattr(whole, name, thing)
        return whole

    return joined


def keep(step: int) -> str:
    """Keep what has passed the check of a lesson in this session of a notebook; returns what is to be said of it."""
    session = vars(sys.modules["__main__"]).get("In")
    if step not in KEPT or not isinstance(session, list) or FOLDER in os.environ:
        return ""
    before = _text()
    if step in _done(before):
        return f"{FILE} has lesson {step} already, and stays as it is."
    begun = _begun[0] or before
    text = _grown(begun, list(map(str, session)), step)
    try:
        _module(text)
    except Exception as error:  # whatever stands in a reader's cells
        return f"It is not kept: as a module of its own it raises {type(error).__name__}: {error}"
    if before not in ("", begun):
        Path("mine_before.py").write_text(before, encoding="utf-8")
    Path(FILE).write_text(text, encoding="utf-8")
    return f"It is kept in {FILE}: later lessons begin with it."


def lent(path: str) -> str:
    """What is to be said of a file that goes on from lessons that no `mine.py` beside it has."""
    try:
        text, own = Path(path).read_text(encoding="utf-8"), _text(os.path.dirname(path))
    except (OSError, UnicodeError):
        return ""
    missing = sorted({int(step) for step in JOINS.findall(text)} - _done(own))
    return f"It goes on with our engine of lesson {missing[-1]}: no {FILE} beside it has one." if missing else ""


def _text(folder: str | None = None) -> str:
    """What `mine.py` says; nothing, where there is none."""
    path = Path(os.environ.get(FOLDER, "") if folder is None else folder, FILE)
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _done(text: str) -> set[int]:
    """The lessons that a text of `mine.py` has."""
    return {int(step) for said in DONE.findall(text) for step in said.split()}


def _module(text: str) -> ModuleType:
    module = ModuleType("mine")
    module.__file__ = FILE
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)  # what tracebacks show
    exec(compile(text, FILE, "exec", dont_inherit=True), vars(module))
    sys.modules["mine"] = module
    return module


@cache
def _ours(step: int) -> str:
    """The text of `mine.py` of whoever has filled in every gap as we do."""
    text = ""
    for lesson in lessons()[: step + 1]:
        if lesson.number in KEPT:
            cells = [cell.shown(solved=True) for cell in lesson.cells() if cell.kind == "code"]
            text = _grown(text, cells, lesson.number)
    return text


# -- a module, of the cells of a session ------------------------------------------------------------------------------


class Statement(NamedTuple):
    """A statement: its text, the names that it makes, and its node."""

    text: str
    names: tuple[str, ...]
    node: ast.stmt

    def counts(self, known: Collection[str], wanted: Collection[str]) -> bool:
        """Whether it is more than another name for what is known: a class, where one is wanted."""
        if isinstance(self.node, ast.ClassDef) or not {*self.names} & {*known, *wanted}:
            return True
        defines = isinstance(self.node, (ast.FunctionDef, ast.Import, ast.ImportFrom))
        return defines and not {*self.names} & {*wanted}

    @property
    def joins(self) -> bool:
        """Whether it is a class that joins another one."""
        return any(JOINS.match(ast.unparse(one)) for one in getattr(self.node, "decorator_list", ()))

    def uses(self) -> set[str]:
        """The names of the module that it needs."""
        found, tables = set(), [symtable(self.text, FILE, "exec")]
        while tables:
            table = tables.pop()
            whole = table.get_type() == "module"
            found |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (whole or s.is_global())}
            tables += table.get_children()
        return found - set(dir(builtins))


def _statements(source: str, body: Sequence[ast.stmt] | None = None, first: int = 0) -> Iterator[Statement]:
    """The statements of a text, or of a class in it, each with the comments above it; but no marks of gaps."""
    try:
        body = ast.parse(source).body if body is None else body
    except SyntaxError:
        return
    lines = source.splitlines()
    for node in body:
        last = node.end_lineno or node.lineno
        text = [line for line in lines[first:last] if not line.lstrip().startswith(LEFT_OUT)]
        first = last
        while text and not text[0].strip():
            del text[0]
        names = [getattr(node, "name", "")]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        elif not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        yield Statement("\n".join(text), tuple(filter(None, names)), node)


def _grown(text: str, cells: Sequence[str], step: int) -> str:
    """The module of a text, with what a lesson's cells have made of the names that it keeps, and what that needs."""
    there = [one for one in _statements(text) if one.names]
    known = {name for one in there for name in one.names}
    made = [one for cell in cells for one in _statements(cell)]
    wanted, chosen = set(KEPT[step]), set[int]()
    last = {name: place for place, one in enumerate(made) for name in one.names if one.counts(known, wanted)}
    while wanted:
        name = wanted.pop()
        if last.get(name, -1) not in {-1} | chosen:
            chosen.add(last[name])
            wanted |= made[last[name]].uses()
    for one in map(made.__getitem__, sorted(chosen)):
        place = next((i for i, other in enumerate(there) if set(other.names) & set(one.names)), len(there))
        if one.joins and place < len(there):
            one = next(_statements(_joined(there[place].text, one.text)))
        there[place : place + 1] = [one]
    imports = [one.text for one in there if isinstance(one.node, (ast.Import, ast.ImportFrom))]
    others = [one.text for one in there if one.text not in imports]
    done = " ".join(map(str, sorted(_done(text) | {step})))
    return "\n".join([f'{HEAD}\n\nLessons: {done}\n"""\n', *imports, "", *[f"\n{one}\n" for one in others]])


def _joined(whole: str, part: str) -> str:
    """The text of a class, with what another one says."""
    head, old = _body(whole)
    for one in [one for one in _body(part)[1] if one.names]:
        place = next((i for i, other in enumerate(old) if set(other.names) & set(one.names)), len(old))
        old[place : place + 1] = [one]
    return head + "\n" + "\n\n".join(one.text for one in old)


def _body(text: str) -> tuple[str, list[Statement]]:
    """The head of a class, and the statements in it."""
    (cls,) = ast.parse(text).body
    assert isinstance(cls, ast.ClassDef)
    first = cls.body[0].lineno - 1
    return "\n".join(text.splitlines()[:first]), list(_statements(text, cls.body, first))
