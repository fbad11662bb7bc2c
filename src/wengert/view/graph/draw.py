"""`draw` makes a picture of the graph of a Value, for notebooks, files and other programs."""

from __future__ import annotations

from collections.abc import Container
from os import PathLike
from pathlib import Path
from typing import Any

from wengert._files import to_write
from wengert.errors import ArgumentError, counted, file_name, refer
from wengert.graph import Graph
from wengert.view.graph.folding import FEWEST, MOST, Folding, folded
from wengert.view.graph.formats import FORMATS, written
from wengert.view.graph.read import alone, graph_of
from wengert.view.graph.scene import Picture

__all__ = ["Drawing", "bundle", "draw", "draw_dot"]

THEMES = ("auto", "light", "dark")
DIRECTIONS = ("LR", "TB")


class Drawing:
    """The picture of a graph at the time when `draw` was called. A notebook displays it.

    Attributes:
        theme: "light", "dark", or "auto" for the reader's.
        format: the format that `render` writes.
        picture: the boxes, the edges and the notes below.
        folding: the graph with its parts, for formats that can unfold them.
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
        r"""Write the picture in the DOT language; Graphviz is not needed.

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
        """Write the picture to a file, in the format of its suffix: svg, png, html or dot.

        The page (html) is self-contained, and in it a click unfolds a folded part. A PNG is drawn by resvg (extra
        `png`), with light colours unless the theme is "dark".

        Raises:
            ArgumentError: the name has another suffix, or the path is not a path.
            MissingExtraError: the format is png, and resvg_py is not installed.
            OSError: the file cannot be written.
        """
        name = file_name(path)
        kind = name.rpartition(".")[2].lower() if "." in name else ""
        if kind not in FORMATS:
            raise ArgumentError(f"the name {name!r:.80} has no known suffix: expected .{', .'.join(FORMATS)}")
        content = written(self, kind)
        with to_write(name) as file:
            file.write(content if isinstance(content, bytes) else f"{content}\n".encode())

    def render(
        self,
        filename: str | PathLike[str] = "graph",
        directory: str | PathLike[str] | None = None,
        view: bool = False,
        cleanup: bool = True,
        format: str | None = None,
    ) -> str:
        """Write the picture with the arguments of Graphviz's `render`, as tutorials do; the format becomes the suffix.

        Args:
            filename: the name without a suffix.
            directory: the folder, which is created if it is missing; by default the current one.
            view: True opens the file.
            cleanup: False leaves the DOT text beside it, in a file without a suffix.
            format: overrides the attribute `format`.

        Returns:
            The path of the file.

        Raises:
            ArgumentError: the format is unknown, or a path is not a path.
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
        """Write the picture and open it, like Graphviz's `view`."""
        return self.render(view=True)

    def _repr_mimebundle_(self, include: Container[str] | None = None, exclude: Container[str] | None = None) -> Any:
        bundle = {"image/svg+xml": self.svg, "text/plain": repr(self)}
        return {
            kind: text
            for kind, text in bundle.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }

    def __str__(self) -> str:
        return f"{self!r}: .save('graph.svg') writes it to a file"

    def __repr__(self) -> str:
        boxes, parts = len(self.picture.boxes), self._parts
        of_them = f", {parts} of them folded" if parts else ""
        return f"Drawing({counted(len(self.folding.graph), 'value')} in {boxes} box{'es' * (boxes > 1)}{of_them})"


refer(
    Drawing,
    {
        "source": "write drawing.to_dot(), the text in the DOT language",
        "pipe": "write drawing.svg, or drawing.to_dot(), for the text; drawing.save('graph.png') for other formats",
        **dict.fromkeys(("body", "nodes", "edges"), "write drawing.to_dot(), or wengert.Graph(y) for its values"),
        **dict.fromkeys(
            ("node", "edge", "attr", "graph_attr", "node_attr", "edge_attr", "subgraph"),
            "add to its text, drawing.to_dot(), what Graphviz is to draw",
        ),
        **dict.fromkeys(("show", "plot", "display"), "write drawing.view(); a notebook displays it by itself"),
        **dict.fromkeys(("to_svg", "_repr_svg_"), "write drawing.svg"),
        **dict.fromkeys(("write", "savefig", "to_file", "to_png"), "write drawing.save('graph.svg')"),
    },
)


def draw(root: Any, *, limit: int = 60, theme: str = "auto", rankdir: str = "LR") -> Drawing:
    """Draw the graph of a Value: a box for each value with its data and gradient, and a small node for each operation.

    Of the paths from the root to the first operations, the one with the largest product of derivatives is highlighted.
    Gradients that no backward pass has reached are "not computed". Values without a label have the names that `steps`
    and `explain` use: a parameter its name in the model, any other value its expression or index. A leaf that is
    multiplied in a `dot` shows its factor. A graph with more boxes than the limit is folded: by layer, neuron and
    example if Modules made it, else by runs of values.

    Args:
        root: the result.
        limit: the largest number of boxes, from 50 to 5,000.
        theme: "light", "dark", or "auto" for the reader's.
        rankdir: "LR" draws from left to right, "TB" from top to bottom.

    Returns:
        A Drawing, which a notebook displays; `.svg` is its text, and `.save("graph.svg")` writes it to a file.

    Raises:
        OperandError: `root` is not a Value.
        ArgumentError: `limit`, `theme` or `rankdir` has another value.

    >>> x, w = Value(2.0, "x"), Value(-3.0, "w")
    >>> y = (x * w).tanh()
    >>> draw(y)
    Drawing(4 values in 4 boxes)
    """
    graph = graph_of(root)
    if type(limit) is not int or not FEWEST <= limit <= MOST:
        raise ArgumentError(f"limit is {limit!r:.40}; expected an int from {FEWEST} to {MOST:,}, the number of boxes")
    theme, rankdir = _one_of("theme", theme, THEMES), _one_of("rankdir", rankdir, DIRECTIONS)
    return Drawing(graph, limit, theme, rankdir, alone(root))


def draw_dot(root: Any, format: str = "svg", rankdir: str = "LR") -> Drawing:
    """Call `draw` under the name, and with the arguments, of tutorials: `draw_dot(o).render("graph")` writes graph.svg.
    Graphviz is not needed.

    Raises:
        OperandError: `root` is not a Value.
        ArgumentError: `format` or `rankdir` is unknown.

    >>> draw_dot(Value(2.0), rankdir="TB")
    Drawing(1 value in 1 box)
    """
    drawing = draw(root, rankdir=rankdir)
    drawing.format = _one_of("format", format, FORMATS)
    return drawing


def _one_of(name: str, given: str, known: tuple[str, ...]) -> str:
    """Return an argument if it is a known one, else raise an ArgumentError."""
    if given not in known:
        raise ArgumentError(f"{name} is {given!r:.40}; expected one of {', '.join(known)}")
    return given


def bundle(root: Any, include: Container[str] | None, exclude: Container[str] | None) -> Any:
    """Return what a notebook shows for a Value: its graph, and as plain text its repr."""
    shown = draw(root)._repr_mimebundle_(include, exclude)
    if "text/plain" in shown:
        shown["text/plain"] = repr(root)
    return shown
