"""A graph as boxes and edges: what every kind of drawing is made from.

A `Picture` says what is to be seen, and nothing of where or how. Here a graph becomes one box a value; `folding`
makes pictures of graphs that are too large for that.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import inf, isfinite

from wengert.graph import Graph
from wengert.view.naming import clean, number

__all__ = ["Box", "Edge", "Picture", "Row", "computed", "flat", "steepest"]

TITLE = 10_000  # characters of a label that are kept in full, to be read under the pointer
SYMBOL = 12  # characters of an operation's symbol
FEW = 3  # constants of one operation that are drawn one by one

NOT_COMPUTED = "not computed"


@dataclass(slots=True)
class Row:
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
        link: where a click leads; '' for nowhere.
    """

    kind: str
    label: str = ""
    symbol: str = ""
    rows: list[Row] = field(default_factory=list)
    title: str = ""
    place: int = -1
    hot: bool = False
    link: str = ""


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
    """Boxes, the edges between them, and the lines to be written below them."""

    boxes: list[Box]
    edges: list[Edge]
    notes: list[str] = field(default_factory=list)


def flat(graph: Graph, names: list[str] | None = None) -> Picture:
    """One box a value, one for each constant, and one edge for each operand of each operation.

    Args:
        graph: the computation.
        names: what to write on top of each value; the labels if not given.
    """
    partials = graph.partials()
    known, hot = computed(graph, partials), steepest(graph, partials)
    boxes: list[Box] = []
    edges: list[Edge] = []
    box_of = []
    on_path = set(hot)
    for place in range(len(graph)):
        sources = operands(graph, place, boxes, box_of)
        box = value_box(graph, place, known[place], names[place] if names else graph.values[place].label)
        box.hot = bool(hot) and (place == len(graph) - 1 or any(graph.operands[at] == place for at in hot))
        box_of.append(len(boxes))
        boxes.append(box)
        edges += [Edge(source, box_of[place], at, at in on_path) for source, at in sources]
    return Picture(boxes, edges, [PATH] if hot else [])


PATH = "the path of the largest gradient"


def operands(graph: Graph, place: int, boxes: list[Box], box_of: list[int]) -> list[tuple[int, int]]:
    """The boxes that a value is computed from, and where they stand among its operands. Adds those of constants."""
    sources = []
    first, end = graph.starts[place], graph.starts[place + 1]
    constants = [at for at in range(first, end) if graph.operands[at] < 0]
    if graph.values[place]._is_constant_power():
        constants = []  # its exponent belongs to the symbol
    elif len(constants) > FEW:
        numbers = [graph.constants[-1 - graph.operands[at]] for at in constants]
        title = ", ".join(map(repr, numbers[:100])) + (", …" if len(numbers) > 100 else "")
        sources.append((len(boxes), constants[0]))
        boxes.append(Box("constant", f"{len(numbers)} constants", title=title))
        constants = []
    lone = set(constants)
    for at in range(first, end):
        operand = graph.operands[at]
        if operand >= 0:
            sources.append((box_of[operand], at))
        elif at in lone:
            constant = graph.constants[-1 - operand]
            sources.append((len(boxes), at))
            boxes.append(Box("constant", number(constant), title=f"the constant {constant!r}"))
    return sources


def value_box(graph: Graph, place: int, known: bool, label: str) -> Box:
    """The box of one value."""
    value, op = graph.values[place], graph.values[place]._op
    data, grad = value.data, value.grad
    rows = [_row("data", data), _row("grad", grad) if known else Row("grad", NOT_COMPUTED, "absent")]
    lines = [clean(label, TITLE)] if label else []
    lines += [f"made by {clean(op, TITLE)}" if op else "a leaf", f"data {data!r}"]
    lines += [f"grad {grad!r}" if known else "grad not computed: no backward pass has come here"]
    kind = "interior" if op else "leaf"
    return Box(kind, clean(label), clean(op, SYMBOL), rows, "\n".join(lines), place)


def _row(name: str, x: float) -> Row:
    return Row(name, number(x), name if isfinite(x) else "broken")


# -- gradients --------------------------------------------------------------------------------------------------------


def computed(graph: Graph, partials: array[float]) -> bytearray:
    """For each value whether its gradient was computed, though it may be 0.

    A gradient that is not 0 was. A gradient of 0 was if some result that uses the value has one, and if what these
    results pass on adds up to 0: before that, as when `_backward()` is called by hand, it is still to come.
    """
    starts, places = graph.starts, graph.operands
    known = bytearray(len(graph))
    received: dict[int, tuple[float, float]] = {}  # of values whose gradient is 0: the sum, and the largest term
    gradients = [value.grad for value in graph.values]
    for place in range(len(graph) - 1, -1, -1):
        gradient = gradients[place]
        if gradient == 0.0:
            total, largest = received.pop(place, (0.0, -1.0))
            known[place] = abs(total) <= 1e-9 * largest
        else:
            known[place] = True
        if known[place]:
            for at in range(starts[place], starts[place + 1]):
                operand = places[at]
                if operand >= 0 and gradients[operand] == 0.0:
                    total, largest = received.get(operand, (0.0, 0.0))
                    passed = partials[at] * gradient
                    received[operand] = total + passed, max(largest, abs(passed))
    return known


def steepest(graph: Graph, partials: array[float]) -> list[int]:
    """The path of the largest gradient, as places in `Graph.operands`: from the root on to the operand that receives
    the most, and so on to a leaf. Empty before a backward pass.
    """
    path: list[int] = []
    place = len(graph) - 1
    while True:
        gradient = graph.values[place].grad
        most, best = 0.0, -1
        for at in range(graph.starts[place], graph.starts[place + 1]):
            passed = partials[at] * gradient
            size = inf if passed != passed else abs(passed)
            if graph.operands[at] >= 0 and size > most:
                most, best = size, at
        if best < 0:
            return path
        path.append(best)
        place = graph.operands[best]
