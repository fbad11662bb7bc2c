"""The steps of a computation as one HTML file that plays them.

The file holds the numbers, the places of the boxes and one script that draws, and fetches nothing: its
Content-Security-Policy names that script and that style by their hashes and allows nothing else. What users wrote
reaches the page as JSON alone and is drawn as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from math import isfinite
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from wengert.errors import ArgumentError
from wengert.view import naming
from wengert.view.graph.layout import layout
from wengert.view.graph.read import is_by_hand
from wengert.view.markup import attribute, document
from wengert.view.steps.javascript import Script, asset

if TYPE_CHECKING:
    from wengert.view.steps.steps import Steps

__all__ = ["Page", "page"]

MOST_NODES, MOST_WAYPOINTS = 3000, 60_000  # what a page can hold, and a reader follow
Kind = tuple[str, int, int]  # of an operation: how it is written, the number of its operands, its place in the table
HEIGHT = 56.0  # of a box
NARROWEST = 132.0
ACROSS, DOWN = 66.0, 16.0  # room for what runs along an edge
TITLE = "Backpropagation, step by step: "


class Page(str):
    """An HTML page; in a notebook it is shown in a frame of its own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Page({len(self) / 1000:.1f} kB of HTML; page.save(path) writes it to a file)"

    def save(self, path: Any) -> None:
        """Write it to a file."""
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(self)

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts" title={attribute(TITLE)} width="100%" height="720" '
            f'style="border:0" srcdoc={attribute(self)}></iframe>'
        )


def page(steps: Steps) -> Page:
    """The page of some steps; see `Steps.page`."""
    nodes = len(steps.graph)
    if nodes > MOST_NODES:
        raise ArgumentError(
            f"a page shows up to {MOST_NODES:,} nodes, and this computation has {nodes:,}: step through a part of it, "
            "such as the loss of one example, or read the steps in Python: for step in steps(root)"
        )
    script = Script()
    data, kinds = _data(steps, script)
    rules = ",\n".join(rule or "null" for rule in kinds.values())
    program = f'"use strict";\n{script.definitions()}\nconst rules=[{rules}];\n{asset("stepper.js")}'
    style = asset("stepper.css")
    allowed = f"script-src '{_hash(program)}'; style-src '{_hash(style)}'"
    body = (
        f'{asset("stepper.html")}\n<script type="application/json" id="data">{data}</script>\n'
        f"<script>{program}</script>"
    )
    return Page(document(TITLE + steps.names[-1], allowed, style, body) + "\n")


def _hash(text: str) -> str:
    """How a policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(steps: Steps, script: Script) -> tuple[str, dict[Kind, str | None]]:
    """What the page draws, as JSON; and each kind of operation in it, with its rules in JavaScript."""
    graph = steps.graph
    names, formulas = naming.formulas(graph)
    kinds: dict[Kind, str | None] = {}
    unknown: set[str] = set()
    by_hand = False
    own: dict[int, dict[int, Any]] = {}  # what closures do that is no sum: "=", or the gradient after it and a sentence
    idle: dict[int, str] = {}  # why nodes pass nothing on
    of_node, signs, operands, edges = [], [], [], []
    partials: list[list[float | str | None]] = []
    for place, (op, given, value) in enumerate(graph):
        spelled = naming.spelled(graph, place)
        kind = (spelled, len(given), op.code)
        if op.code and kind not in kinds:
            kinds[kind] = script.rules(op, len(given))
        if op.code and kinds[kind] is None:
            unknown.add(naming.clean(value._op) or op.name)
        of_node.append(list(kinds).index(kind) if op.code else -1)
        signs.append(_sign(value._op, spelled, given) if op.code else "")
        at = range(graph.starts[place], graph.starts[place + 1])
        operands.append([graph.operands[k] for k in at])
        partials.append([_json(steps.partials[k]) for k in at])
        if is_by_hand(graph, place):
            by_hand, partials[-1] = True, [None] * len(at)  # no number: nothing is passed on
            moves = steps.turns.moves(place)
            for move in moves:
                slot = move.at - at.start
                partials[-1][slot] = _json(move.partial)
                if move.how != "added":
                    said = [_json(move.after), steps.contribution(place, move).sentence]
                    own.setdefault(place, {})[slot] = "=" if move.how == "replaced" else said
            if not moves:
                idle[place] = steps.idle(place)
        edges += [(x, place) for x in given if isinstance(x, int)]
    boxes, routes, size = _picture(names, signs, edges)
    words = {
        "names": names,
        "formulas": [0 if made in ("", name) else made for name, made in zip(names, formulas, strict=True)],
        "signs": signs,
        "templates": [naming.template(name, count, " × ") for name, count, _ in kinds],
        "about": _about(steps),
        "off": _off(unknown, by_hand),
        "idle": idle,
    }
    data = {
        "words": words,
        "kinds": of_node,
        "operands": operands,
        "constants": [_json(c) for c in graph.constants],
        "values": [_json(x) for x in steps.data],
        "partials": partials,
        "own": own,
        "boxes": boxes,
        "high": round(HEIGHT),
        "routes": routes,
        "size": size,
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"), kinds


def _json(x: float) -> float | int | str:
    """A number as JSON can hold it."""
    if not isfinite(x):
        return str(x)
    return int(x) if x == int(x) and abs(x) < 1e15 and (x or str(x) == "0.0") else x


def _off(unknown: set[str], by_hand: bool) -> str:
    """Why the leaves cannot be changed; '' if they can."""
    listed = ", ".join(sorted(unknown)[:5])
    if by_hand:
        return f"The sliders are off: {listed} of this computation were made by hand, and only Python can compute them."
    return f"The sliders are off: the page cannot compute {listed}." if unknown else ""


def _about(steps: Steps) -> str:
    said = f"{len(steps.graph):,} nodes, {len(steps):,} steps"
    stale = steps.stale
    if stale:
        said += f". Data was changed after {stale[0]} was computed: these are the numbers as they were recorded"
    return said


def _sign(symbol: str, name: str, operands: tuple[int | float, ...]) -> str:
    """What stands in the small shape of an operation, with its constant if it has one."""
    constants = [x for x in operands if isinstance(x, float)]
    if len(operands) == 2 and len(constants) == 1 and name in naming.INFIX and symbol == naming.INFIX[name]:
        c = naming.number(constants[0])
        return f"{c} {symbol}" if isinstance(operands[0], float) else f"{symbol} {c}"
    return naming.clean(symbol, 14)


def _width(text: str) -> float:
    """About how wide a text is, in widths of a figure."""
    return sum(1.75 if east_asian_width(c) in "WF" else 1.0 for c in text)


def _picture(names: list[str], signs: list[str], edges: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """For each node the corner and the width of its box and the width of its operation; the edges' routes; the size.

    Raises:
        ArgumentError: the edges span too much.
    """
    pills = [max(26.0, 7.2 * _width(sign) + 16.0) if sign else 0.0 for sign in signs]
    widths = [
        max(NARROWEST, 7.6 * _width(name) + 18.0) + pill - 8.0 * bool(pill)
        for name, pill in zip(names, pills, strict=True)
    ]
    waypoints = _waypoints(len(names), edges)
    if waypoints > MOST_WAYPOINTS:
        raise ArgumentError(
            f"the edges of this computation pass {waypoints:,} columns in all, and a page can draw {MOST_WAYPOINTS:,}: "
            "step through a part of it, or read the steps in Python: for step in steps(root)"
        )
    drawn = layout([(width, HEIGHT) for width in widths], edges, across=ACROSS, down=DOWN)
    boxes = [
        [round(x), round(y), round(width), round(pill)]
        for (x, y), width, pill in zip(drawn.corners, widths, pills, strict=True)
    ]
    return boxes, [_route(points) for points in drawn.routes], [round(drawn.width), round(drawn.height)]


def _route(points: list[tuple[float, float]]) -> list[int]:
    """The points of a route between its ends, without those on a straight line; and the height at which it arrives."""
    whole = [(round(x), round(y)) for x, y in points]
    bends = [
        point
        for before, point, after in zip(whole, whole[1:], whole[2:], strict=False)
        if not before[1] == point[1] == after[1] and point != after
    ]
    return [*(coordinate for point in bends for coordinate in point), whole[-1][1]]


def _waypoints(count: int, edges: list[tuple[int, int]]) -> int:
    """How many columns the edges pass on their way, those from one box together."""
    ranks, nearest, farthest = [0] * count, [count] * count, [0] * count
    for source, target in edges:  # in the order of their targets
        ranks[target] = max(ranks[target], ranks[source] + 1)
    for source, target in edges:
        nearest[source] = min(nearest[source], ranks[target])
        farthest[source] = max(farthest[source], ranks[target])
    return sum(
        last - (rank or first - 1) - 1 for rank, first, last in zip(ranks, nearest, farthest, strict=True) if last
    )
