"""A graph as boxes and edges: what every kind of drawing is made from.

A `Picture` says what is to be seen, and nothing of where or how; `folding` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from wengert.graph import Graph
from wengert.view.graph.read import NOT_COMPUTED, constants
from wengert.view.naming import TITLE, clean, ending, number

__all__ = ["PATH", "Box", "Cell", "Edge", "Picture", "cell_of", "value_box", "with_constants"]

SYMBOL = 12  # characters of an operation's symbol
LISTED = 100  # constants that are named under the pointer

PATH = "the path of the largest gradient"


@dataclass(slots=True)
class Cell:
    """A line of a box: a name and what it has to say. `kind` is "data", "grad", "absent", "broken" or "count"."""

    name: str
    text: str
    kind: str


@dataclass(slots=True)
class Box:
    """A box.

    Attributes:
        kind: "leaf", "interior", "constant", "fold" (many values) or "outside" (what a part is joined to).
        label: the line on top; '' for none.
        symbol: the operation that made the value, a small node of its own at the box's left; '' for none.
        rows: the lines below the label.
        title: everything in full, to be read under the pointer.
        place: the value's place in the graph; -1 if the box does not stand for one value.
        hot: whether it lies on the path of the largest gradient.
        stops: whether its gradient goes no further, as it has no `_backward`.
        link: where a click leads; '' for nowhere.
    """

    kind: str
    label: str = ""
    symbol: str = ""
    rows: list[Cell] = field(default_factory=list)
    title: str = ""
    place: int = -1
    hot: bool = False
    stops: bool = False
    link: str = ""

    def lines(self) -> list[str]:
        """What stands in it, for formats that know only text."""
        return [line for line in [self.label, *(f"{row.name} {row.text}" for row in self.rows)] if line]


@dataclass(slots=True)
class Edge:
    """An arrow from one box to another, by their places in the picture.

    Attributes:
        source: the box of the operand.
        target: the box of the result.
        at: the operand's place in `Graph.operands`; -1 if the edge stands for several.
        hot: whether it lies on the path of the largest gradient.
    """

    source: int
    target: int
    at: int = -1
    hot: bool = False


@dataclass(slots=True)
class Picture:
    """Boxes, the edges between them, and the lines to be written below them.

    Attributes:
        rankdir: where the edges run to, in Graphviz's words: "LR", to the right, or "TB", downwards.
    """

    boxes: list[Box]
    edges: list[Edge]
    notes: list[str] = field(default_factory=list)
    rankdir: str = "LR"

    def end(self, edge: Edge) -> str:
        """What an edge ends at: its box, b3, or the small node o3 of the operation at the box's left, if it has one."""
        return f"{'o' if self.boxes[edge.target].symbol else 'b'}{edge.target}"


def with_constants(graph: Graph, place: int, target: int, boxes: list[Box]) -> list[Edge]:
    """Add the boxes of the constants that a value is computed with; the edges from them to the value's own box."""
    drawn = []
    for at, text, numbers in constants(graph, place):
        drawn.append(Edge(len(boxes), target, at))
        title = ", ".join(map(repr, numbers[:LISTED])) + (", …" if len(numbers) > LISTED else "")
        boxes.append(Box("constant", text, title=f"the constant {title}" if len(numbers) == 1 else title))
    return drawn


def value_box(graph: Graph, place: int, grad: float | None, label: str) -> Box:
    """The box of one value; its gradient is None where none was computed."""
    value, op = graph.values[place], graph.values[place]._op
    kind = "interior" if graph.codes[place] else "leaf"
    lines = [clean(label, TITLE)] if label else []
    lines += ["a leaf" if kind == "leaf" else f"made by {clean(op, TITLE) or 'hand'}", f"data {value.data!r}"]
    lines += ["grad not computed: no backward pass has come here" if grad is None else f"grad {grad!r}"]
    shown = clean(label) if label == value.label else ending(label)
    return Box(
        kind,
        shown,
        clean(op, SYMBOL),
        [cell_of("data", value.data), cell_of("grad", grad)],
        "\n".join(lines),
        place,
    )


def cell_of(name: str, x: float | None) -> Cell:
    """A number's line; None stands for a gradient that was not computed."""
    if x is None:
        return Cell(name, NOT_COMPUTED, "absent")
    return Cell(name, number(x), name if isfinite(x) else "broken")
