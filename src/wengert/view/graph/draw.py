"""`draw`: the graph of a Value as a picture, for notebooks, files and other programs."""

from __future__ import annotations

from collections.abc import Container
from os import PathLike
from pathlib import Path
from typing import Any

from wengert.errors import ArgumentError, file_name
from wengert.graph import Graph
from wengert.view.graph.folding import FEWEST, MOST, Folding, folded
from wengert.view.graph.formats import FORMATS, written
from wengert.view.graph.read import alone, graph_of
from wengert.view.graph.scene import Picture

__all__ = ["Drawing", "bundle", "draw", "draw_dot"]

THEMES = ("auto", "light", "dark")
DIRECTIONS = ("LR", "TB")


class Drawing:
    """The picture of a graph as it was when `draw` was called. In a notebook it shows itself.

    Attributes:
        theme: "light", "dark", or "auto" for that of whoever looks at it.
        format: what `render` writes.
        picture: the boxes, the edges and the notes below them.
        folding: the graph with its parts, for formats that show more of them than the picture does.
    """

    def __init__(self, graph: Graph, limit: int, theme: str, rankdir: str, notes: list[str]) -> None:
        self.theme: str = theme
        self.format: str = "svg"
        self.folding: Folding = Folding(graph, limit, rankdir)
        picture, parts = self.folding.picture()
        self._parts = len(parts)
        self._svg: str | None = None
        more = [f"{folded(parts)}; .save('graph.html') can unfold them"] if parts else []
        picture.notes += [*notes, *more]
        self.picture: Picture = picture

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        if self._svg is None:
            self._svg = str(written(self, "svg"))
        return self._svg

    def to_dot(self) -> str:
        r"""The picture in the language of Graphviz; nothing here needs Graphviz.

        >>> x = Value(3.0, "x")
        >>> print(draw(x + x).to_dot())
        digraph {
          rankdir=LR; node [shape=box, fontname="monospace", fontsize=10]; edge [arrowsize=0.7]
          b0 [label="x\ndata 3\ngrad not computed", style="rounded,filled", fillcolor="#edf4fd"]
          b1 [label="x + x\ndata 6\ngrad not computed", style=rounded]
          o1 [label="+", shape=circle, margin=0]; o1 -> b1
          b0 -> o1
          b0 -> o1
        }
        """
        return str(written(self, "dot"))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, as what its name ends in: svg, png, html or dot.

        The page (html) needs nothing beside itself and fetches nothing; in it a click on a folded part unfolds it. A
        PNG is drawn by resvg (extra `png`), light unless the theme is "dark".

        Raises:
            ArgumentError: the name ends in something else, or the path is none.
            MissingExtraError: a PNG is asked for, and resvg_py is not installed.
            OSError: the file cannot be written.
        """
        name = file_name(path)
        kind = name.rpartition(".")[2].lower() if "." in name else ""
        if kind not in FORMATS:
            raise ArgumentError(f"cannot tell from {name!r:.80} what to write: it should end in .{', .'.join(FORMATS)}")
        content = written(self, kind)
        with open(name, "wb") as file:
            file.write(content if isinstance(content, bytes) else f"{content}\n".encode())

    def render(
        self,
        filename: str | PathLike[str] = "graph",
        directory: str | PathLike[str] | None = None,
        view: bool = False,
        cleanup: bool = True,
        format: str | None = None,
    ) -> str:
        """Write the picture as tutorials do, who have Graphviz render theirs: `.format` is added to the name.

        Args:
            filename: the name without its ending.
            directory: where, if not here; it is made if it is not there.
            view: whether the file is opened.
            cleanup: False leaves the text for Graphviz beside it, under the name without an ending.
            format: instead of `.format`.

        Returns:
            The path of what was written.

        Raises:
            ArgumentError: the format is not one that can be written, or a path is none.
        """
        kind = _one_of("format", format or self.format, FORMATS)
        path = Path("" if directory is None else file_name(directory), file_name(filename))
        if directory is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        picture = path.with_name(f"{path.name}.{kind}")
        self.save(picture)
        if not cleanup:
            path.write_text(self.to_dot() + "\n", encoding="utf-8")
        if view:
            import webbrowser

            webbrowser.open(picture.absolute().as_uri())
        return str(picture)

    def view(self) -> str:
        """Write the picture and open it, as Graphviz's `view` does."""
        return self.render(view=True)

    def _repr_mimebundle_(self, include: Container[str] | None = None, exclude: Container[str] | None = None) -> Any:
        bundle = {"image/svg+xml": self.svg, "text/plain": repr(self)}
        return {
            kind: text
            for kind, text in bundle.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }

    def __repr__(self) -> str:
        values, boxes, parts = len(self.folding.graph), len(self.picture.boxes), self._parts
        of_them = f", {parts} of them folded" if parts else ""
        return f"Drawing({values:,} value{'s' * (values > 1)} in {boxes} box{'es' * (boxes > 1)}{of_them})"


def draw(root: Any, *, limit: int = 60, theme: str = "auto", rankdir: str = "LR") -> Drawing:
    """The graph of a Value: boxes with label, data and gradient, left to right, each operation a small node of its own.

    Of all paths from the root to a leaf, that along which the largest gradient flows is marked. What no backward pass
    has reached is "not computed". What has no label goes by the name that `steps` and `explain` give it: a parameter by
    that in its model, any other value by its expression or its place. A leaf that a `dot` multiplies says by what. A
    graph of more boxes than the limit is folded: by layer, neuron and example if Modules made it, else in runs of
    values.

    Args:
        root: the result.
        limit: how many boxes the picture may have, from 50 to 5,000.
        theme: "light", "dark", or "auto" for that of whoever looks at it.
        rankdir: where the results lie: "LR", at the right, or "TB", below.

    Returns:
        A Drawing: it shows itself in a notebook; `.svg` is its text, `.save("graph.svg")` writes it to a file.

    Raises:
        OperandError: `root` is not a Value.
        ArgumentError: `limit`, `theme` or `rankdir` is not one of these.

    >>> x, w = Value(2.0, "x"), Value(-3.0, "w")
    >>> y = (x * w).tanh()
    >>> draw(y)
    Drawing(4 values in 4 boxes)
    """
    graph = graph_of(root)
    if type(limit) is not int or not FEWEST <= limit <= MOST:
        raise ArgumentError(f"limit is {limit!r:.40}; expected a whole number of boxes from {FEWEST} to {MOST:,}")
    theme, rankdir = _one_of("theme", theme, THEMES), _one_of("rankdir", rankdir, DIRECTIONS)
    return Drawing(graph, limit, theme, rankdir, alone(root))


def draw_dot(root: Any, format: str = "svg", rankdir: str = "LR") -> Drawing:
    """`draw` by the name and with the arguments that it has in tutorials: `draw_dot(o).render("graph")` writes
    graph.svg. Nothing here needs Graphviz.

    Raises:
        OperandError: `root` is not a Value.
        ArgumentError: `format` or `rankdir` is not one that there is.

    >>> draw_dot(Value(2.0), rankdir="TB")
    Drawing(1 value in 1 box)
    """
    drawing = draw(root, rankdir=rankdir)
    drawing.format = _one_of("format", format, FORMATS)
    return drawing


def _one_of(name: str, given: str, known: tuple[str, ...]) -> str:
    """An argument, if it is one of those that there are."""
    if given not in known:
        raise ArgumentError(f"{name} is {given!r:.40}; expected one of {', '.join(known)}")
    return given


def bundle(root: Any, include: Container[str] | None, exclude: Container[str] | None) -> Any:
    """What a notebook shows of a Value: its graph, and beside it the line that a console shows."""
    shown = draw(root)._repr_mimebundle_(include, exclude)
    if "text/plain" in shown:
        shown["text/plain"] = repr(root)
    return shown
