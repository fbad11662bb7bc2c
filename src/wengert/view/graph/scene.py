"""A graph as boxes and edges, from which every kind of drawing is made.

A `Picture` has the content of a drawing but neither positions nor styles; `folding` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from wengert.graph import Graph
from wengert.ops import BY_NAME
from wengert.view.graph.read import NOT_COMPUTED, constants, has_gradients
from wengert.view.naming import TITLE, clean, ending, number

__all__ = ["PATH", "SIGNED", "Box", "Cell", "Edge", "Picture", "cell_of", "value_box", "with_constants"]

SYMBOL = 12  # the longest symbol of an operation, in characters
LISTED = 100  # the largest number of constants in a tooltip

PATH = "the path with the largest product of derivatives"
SIGNED = "edges of neurons: weights, blue if positive, orange if negative, the wider the larger"


@dataclass(slots=True)
class Cell:
    """A line of a box: a name and its text. `kind` is "data", "grad", "absent", "broken" or "count"."""

    name: str
    text: str
    kind: str


@dataclass(slots=True)
class Box:
    """A box.

    Attributes:
        kind: "leaf", "interior", "constant", "fold" (many values) or "outside" (connected values outside a part).
        label: the top line; '' for none.
        symbol: the operation, drawn as a small node to the left of the box; '' for none.
        rows: the lines below the label.
        title: the full text, shown as a tooltip.
        place: the value's index in the graph; -1 if the box is not a single value.
        hot: True on the path that is highlighted.
        stops: True if its gradient is not passed on because it has no `_backward`.
        link: the target of a click; '' for none.
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
        """Return its text, for formats that know only text."""
        return [line for line in [self.label, *(f"{row.name} {row.text}" for row in self.rows)] if line]


@dataclass(slots=True)
class Edge:
    """An arrow from one box to another, by their indices in the picture.

    Attributes:
        source: the box of the operand.
        target: the box of the result.
        at: the operand's index in `Graph.operands`; -1 if the edge stands for several.
        hot: True on the path that is highlighted.
        weight: the weight that a neuron multiplies the operand by; None outside neurons, or if there are several.
        grey: True from a side that a choice does not take: no gradient flows there.
    """

    source: int
    target: int
    at: int = -1
    hot: bool = False
    weight: float | None = None
    grey: bool = False


@dataclass(slots=True)
class Picture:
    """Boxes, the edges between them, and the notes below.

    Attributes:
        rankdir: the direction of the edges, as in Graphviz: "LR", left to right, or "TB", top to bottom.
    """

    boxes: list[Box]
    edges: list[Edge]
    notes: list[str] = field(default_factory=list)
    rankdir: str = "LR"

    def end(self, edge: Edge) -> str:
        """Return the end of an edge: its box, b3, or the small node of the box's operation, o3, if it has one."""
        return f"{'o' if self.boxes[edge.target].symbol else 'b'}{edge.target}"


def with_constants(
    graph: Graph, place: int, target: int, boxes: list[Box], inputs: dict[tuple[float, ...], list[int]]
) -> list[Edge]:
    """Add boxes for the constants of an operation, and return the edges from them to its box.

    Inputs that several neurons read are drawn once: `inputs` has the boxes of the constants of each `dot` so far.
    """
    found = constants(graph, place)
    is_dot = graph.codes[place] == BY_NAME["dot"].code
    known = inputs.setdefault(tuple([x for _, _, numbers in found for x in numbers]), []) if is_dot else []
    drawn = []
    for i, (at, text, numbers) in enumerate(found):
        if i == len(known):
            known.append(len(boxes))
            title = ", ".join(map(repr, numbers[:LISTED])) + (", …" if len(numbers) > LISTED else "")
            boxes.append(Box("constant", text, title=f"the constant {title}" if len(numbers) == 1 else title))
        drawn.append(Edge(known[i], target, at))
    return drawn


def value_box(graph: Graph, place: int, grad: float | None, label: str) -> Box:
    """Make the box of one value; `grad` is None if it was not computed."""
    value, op = graph.values[place], graph.values[place]._op
    kind = "interior" if graph.codes[place] else "leaf"
    lines = [clean(label, TITLE)] if label else []
    lines += ["a leaf" if kind == "leaf" else f"made by {clean(op, TITLE) or 'hand'}", f"data {value.data!r}"]
    rows = [cell_of("data", value.data)]
    if has_gradients(graph):
        lines += ["grad not computed: no backward pass has reached it" if grad is None else f"grad {grad!r}"]
        rows.append(cell_of("grad", grad))
    shown = clean(label) if label == value.label else ending(label)
    return Box(kind, shown, clean(op, SYMBOL), rows, "\n".join(lines), place)


def cell_of(name: str, x: float | None) -> Cell:
    """Make the line of a number; None stands for a gradient that was not computed."""
    if x is None:
        return Cell(name, NOT_COMPUTED, "absent")
    return Cell(name, number(x), name if isfinite(x) else "broken")
