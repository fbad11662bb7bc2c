"""The Python of a lesson's page: it runs a cell as a notebook does, and tells the page what comes of it.

In the browser a worker calls `Cells`. What it tells, as JSON, has a `kind`: "text" that is printed (or an error's), the
"value" of the last line, an "svg", a "page" that plays, a "verdict", or "mine", the text of the reader's engine.
"""

import ast
import builtins
import json
import linecache
import os
import sys
import traceback
import warnings
from io import StringIO
from pathlib import Path
from types import ModuleType

from wengert import course

MINE = "mine.py"
MOST = 50_000  # characters that a cell may print: more could not be read, and would be slow to show

os.environ.setdefault("MPLBACKEND", "svg")
COLOURS = "axes.prop_cycle: cycler('color', ['0072b2', 'd55e00', '009e73'])\n"  # those of the package's own plots
warnings.filterwarnings("ignore", message=".* is non-interactive")  # plt.show(): the page shows what is drawn


class Printed:
    """What Python prints into; it is told line by line."""

    encoding = "utf-8"

    def __init__(self, cells, is_error):
        self.cells, self.is_error, self.line = cells, is_error, ""

    def write(self, text):
        """Add a text, as `print` does."""
        self.line += text
        if "\n" in self.line or len(self.line) > 1000:
            self.flush()
        return len(text)

    def flush(self):
        """Tell what there is."""
        line, self.line = self.line, ""
        if line:
            self.cells.printed(line, self.is_error)

    def isatty(self):
        """It is no terminal: nothing is coloured."""
        return False


class Cells:
    """The cells of a page, and the names that they share.

    Args:
        tell: called with the JSON of each thing that comes of a cell.
    """

    def __init__(self, tell):
        self.told = tell
        self.files = {MINE}  # whose lines an error shows
        self.room = 0
        self.main = ModuleType("__main__")
        self.main.display = self.show
        self.main.In = [""]  # what has run, as notebooks have it: the check takes from there what it keeps
        sys.modules["__main__"] = self.main
        sys.stdout, sys.stderr = Printed(self, False), Printed(self, True)
        builtins.input = no_input
        Path("matplotlibrc").write_text(COLOURS, encoding="utf-8")  # which matplotlib reads when it is imported

    def tell(self, kind, **what):
        """Tell the page of something."""
        self.told(json.dumps({"kind": kind, **what}))

    def printed(self, text, is_error):
        """Tell what is printed, as far as it can be read."""
        if self.room > 0:
            more = "\n(and more, which is not shown)\n" if len(text) >= self.room else ""
            self.tell("text", text=text[: self.room] + more, error=is_error)
        self.room -= len(text)

    def run(self, number, source, columns, mine):
        """Run a cell.

        Args:
            number: of the cell.
            source: its text.
            columns: for which texts that are wrapped have room.
            mine: what the page keeps as `mine.py`, the reader's own engine; when the check has written it, it is told.

        Returns:
            The name of the module that it lacks, if that is why it failed; "failed", if it failed; else "".
        """
        self.room, self.columns = MOST, columns
        if mine:
            Path(MINE).write_text(mine, encoding="utf-8")
        else:
            Path(MINE).unlink(missing_ok=True)
        name = f"cell {number}"
        self.files.add(name)
        self.main.In.append(source)
        lines = source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)  # tracebacks and `inspect` read it there
        try:
            tree = ast.parse(source, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec", dont_inherit=True), vars(self.main))
            if last is not None:
                code = compile(ast.Expression(last.value), name, "eval", dont_inherit=True)
                self.show(eval(code, vars(self.main)))
        except BaseException as error:  # a cell may raise anything, SystemExit and KeyboardInterrupt too
            self.flush()
            self.room = MOST
            self.printed(self.traced(error), True)
            return lacking(error) or "failed"
        finally:
            self.flush()
            self.show_figures()
            written = Path(MINE).read_text(encoding="utf-8") if Path(MINE).exists() else ""
            if written != mine:
                self.tell("mine", text=written)
        return ""

    def flush(self):
        """Tell what is printed and not told yet."""
        sys.stdout.flush(), sys.stderr.flush()

    def show(self, thing):
        """Show a value, as the last line of a cell does."""
        if thing is None:
            return None
        self.flush()
        self.main._ = thing
        if isinstance(thing, course.Report):
            right, of = thing.score
            wrong = any(row.state == "wrong" for row in thing.rows)
            text = thing.text(self.columns)
            return self.tell("verdict", text=text, step=thing.step, right=right, of=of, wrong=wrong)
        page = thing if isinstance(thing, str) else getattr(thing, "page", None)
        if page is not None and not isinstance(thing, type):
            try:
                made = page() if callable(page) else page
            except Exception:  # as too many nodes for a page: it has a text all the same
                made = ""
            if type(made).__name__ == "Page":
                return self.tell("page", html=str(made))
        bundle = getattr(thing, "_repr_mimebundle_", None)
        found = bundle() if bundle and not isinstance(thing, type) else {}
        if "image/svg+xml" in found:
            return self.tell("svg", svg=found["image/svg+xml"], alt=found.get("text/plain", "A drawing"))
        return self.tell("value", text=repr(thing)[:MOST])

    def show_figures(self):
        """Show what matplotlib has drawn, and close it, as a notebook does."""
        plots = sys.modules.get("matplotlib.pyplot")
        for number in plots.get_fignums() if plots else ():
            figure, file = plots.figure(number), StringIO()
            figure.savefig(file, format="svg", bbox_inches="tight")
            labels = [text for axes in figure.axes for text in axes.get_legend_handles_labels()[1]]
            self.tell("svg", svg=file.getvalue(), alt=", ".join(["A plot", *labels]), paper=True)
            plots.close(number)

    def traced(self, error):
        """The text of an error, with those lines of the way to it that are in cells."""
        told = traceback.TracebackException.from_exception(error)
        part = told
        while part is not None:
            part.stack[:] = [frame for frame in part.stack if frame.filename in self.files]
            part = part.__cause__ or part.__context__
        return "".join(told.format())


def lacking(error):
    """The module that an error says is not there; a library that wants an optional one names it in its cause."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return (error.name or "").partition(".")[0]
        error = error.__cause__ or error.__context__
    return ""


def no_input(prompt=""):
    """In the place of `input`: a page has no line to type into."""
    raise EOFError("input() has nobody to ask on this page: write the answer into the cell")
