"""The steps of a computation as one HTML file that plays them.

The file holds the numbers, the places of the boxes and one script that draws, and fetches nothing: its
Content-Security-Policy names that script and that style by their hashes and allows nothing else. They are those of
`wengert/assets`, packed, so that a page is small enough to be sent. What users wrote reaches it as JSON alone and is
drawn as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from math import isfinite
from typing import Any

from wengert.errors import ArgumentError, file_name
from wengert.graph import Graph
from wengert.ops import TABLE
from wengert.view import naming
from wengert.view.backward import Pass
from wengert.view.graph import Folding, edges, is_by_hand, layout, ranked
from wengert.view.javascript import Script
from wengert.view.markup import asset, attribute, cells, document
from wengert.view.naming import number

__all__ = ["Page", "page"]

MOST_NODES, MOST_WAYPOINTS = 3000, 60_000  # what a page can hold, and a reader follow
# Of an operation: how it is written, the number of its operands, its place in the table, whether its rule can be told
Kind = tuple[str, int, int, bool]
HEIGHT, NARROWEST = 56.0, 132.0  # of a box
NAME, SYMBOL = 7.6, 7.2  # width of a character of a name and of an operation, at most, as stepper.css sets them
AROUND_NAME, AROUND_SYMBOL, OVERLAP = 18.0, 16.0, 8.0  # in a box; in an operation's shape, which lies over the box
EXACT = 1e15  # integers below it are the same number in JSON as in a float (IEEE 754: up to 2**53)
ACROSS, DOWN = 78.0, 18.0  # room for what runs along an edge
TITLE = "Backpropagation, step by step: "


class Page(str):
    """An HTML page; in a notebook it is shown in a frame of its own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Page({len(self) / 1000:.1f} kB of HTML; page.save(path) writes it to a file)"

    def save(self, path: Any) -> None:
        """Write it to a file.

        Raises:
            ArgumentError: the path is none.
        """
        with open(file_name(path), "w", encoding="utf-8", newline="\n") as file:
            file.write(self)

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts" title={attribute(TITLE)} width="100%" height="720" '
            f'style="border:0" srcdoc={attribute(self)}></iframe>'
        )


def page(backward: Pass) -> Page:
    """The page of a backward pass and of the computation before it.

    Raises:
        ArgumentError: the computation has more nodes than a page can show, or edges that span too much.
    """
    nodes = len(backward.graph)
    if nodes > MOST_NODES:
        raise ArgumentError(
            f"a page shows up to {MOST_NODES:,} nodes, and this computation has {nodes:,}: step through a part of it, "
            "such as the loss of one example, or read the steps in Python: for step in steps(root)"
        )
    script = Script()
    data, rules = _data(backward, script)
    written = ",\n".join(rule or "null" for rule in rules)
    program = f'"use strict";\n{script.definitions()}\nconst rules=[{written}];\n{asset("stepper.js")}'
    style, start, paper = asset("stepper.css"), asset("unpack.js"), ":root{color-scheme:light dark}"
    scripts, styles = f"'{_hash(start)}' '{_hash(program)}'", f"'{_hash(paper)}' '{_hash(style)}'"
    packed = zlib.compress(json.dumps([style, program, asset("stepper.html")], ensure_ascii=False).encode(), 9)
    body = (
        f'<script type="application/json" id="data">{data}</script>\n'
        f'<script type="text/plain" id="packed">{base64.b64encode(packed).decode()}</script>\n'
        f"<script>{start}</script>\n"
        "<noscript>This page plays a computation step by step, with JavaScript, which is switched off here.</noscript>"
    )
    return Page(document(TITLE + backward.names[-1], f"script-src {scripts}; style-src {styles}", paper, body) + "\n")


def _hash(text: str) -> str:
    """How a policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(backward: Pass, script: Script) -> tuple[str, list[str | None]]:
    """What the page draws, as JSON; and for each kind of operation in it, its rules in JavaScript."""
    graph = backward.graph
    names, formulas = naming.formulas(graph)
    kinds: dict[Kind, int] = {}
    of_node, signs = [], []
    for place, (op, given, value) in enumerate(graph):
        spelled = naming.spelled(graph, place)
        told = not is_by_hand(graph, place) or all(move.rule for move in backward.moves(place))
        of_node.append(kinds.setdefault((spelled, len(given), op.code, told), len(kinds)) if op.code else -1)
        signs.append(_sign(value._op, spelled, given) if op.code else "")
    rules = [script.rules(TABLE[code], count) for _, count, code, _ in kinds]
    unknown = {
        naming.clean(value._op) or TABLE[code].name
        for value, code, kind in zip(graph.values, graph.codes, of_node, strict=True)
        if code and rules[kind] is None
    }
    slots = [range(graph.starts[place], graph.starts[place + 1]) for place in range(len(graph))]
    partials: list[list[Any]] = [[_json(backward.partials[at]) for at in ats] for ats in slots]
    own: dict[int, dict[int, Any]] = {}  # what closures do that is no sum: "=", or the gradient after it and a sentence
    by_hand = [place for place in range(len(graph)) if is_by_hand(graph, place)]
    for place in by_hand:
        partials[place] = [None] * len(slots[place])  # no number: nothing is passed on
        for move in backward.moves(place):
            slot = move.at - slots[place].start
            partials[place][slot] = _json(move.partial)
            if move.how != "added":
                said = [_json(move.after), move.sentence]
                own.setdefault(place, {})[slot] = "=" if move.how == "replaced" else said
    boxes, routes, size = _picture(
        names, signs, [(x, place) for place in range(len(graph)) for _, x in edges(graph, place)]
    )
    about = f"{len(graph):,} nodes, {2 * len(backward.made) + 1:,} steps"
    for name in backward.stale[:1]:
        about += f". Data was changed after {name} was computed: these are the numbers as they were recorded"
    words = {
        "names": names,
        "formulas": [0 if made in ("", name) else made for name, made in zip(names, formulas, strict=True)],
        "signs": signs,
        "templates": [naming.template(name, count, " × ") for name, count, *_ in kinds],
        "rules": [
            [naming.derivative(name, count, slot) if told else "" for slot in range(count)]
            for name, count, _, told in kinds
        ],
        "about": about,
        "off": _off(unknown, bool(by_hand)),
        "idle": {place: backward.idle(place) for place in by_hand if not backward.moves(place)},
    }
    data = {
        "words": words,
        "kinds": of_node,
        "operands": [[graph.operands[at] for at in ats] for ats in slots],
        "constants": [_json(c) for c in graph.constants],
        "values": [_json(x) for x in backward.data],
        "partials": partials,
        "own": own,
        "layers": _layers(graph, boxes),
        "boxes": boxes,
        "high": round(HEIGHT),
        "routes": routes,
        "size": size,
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"), rules


def _json(x: float) -> float | int | str:
    if not isfinite(x):
        return str(x)
    return int(x) if x == int(x) and abs(x) < EXACT and (x or str(x) == "0.0") else x


def _layers(graph: Graph, boxes: list[list[int]]) -> list[int]:
    """Which layer each node belongs to: of the model that it is made with; without one, its column of the picture."""
    scopes = Folding(graph).scopes
    numbers: dict[Any, int] = {}
    outer = ("example ", "step ", "parameters")
    layers: list[Any] = [scope[: 2 if scope[0].startswith(outer) else 1] if scope else () for scope in scopes]
    keys = layers or [corner for corner, *_ in boxes]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _off(unknown: set[str], by_hand: bool) -> str:
    """Why the leaves cannot be changed; '' if they can."""
    listed = ", ".join(sorted(unknown)[:5])
    if by_hand:
        return f"The sliders are off: {listed} of this computation were made by hand, and only Python can compute them."
    return f"The sliders are off: the page cannot compute {listed}." if unknown else ""


def _sign(symbol: str, name: str, operands: tuple[int | float, ...]) -> str:
    """What stands in the small shape of an operation, with its constant if it has one."""
    if len(operands) == 2 and name in naming.INFIX and symbol == naming.INFIX[name]:
        left, right = operands
        if isinstance(left, float) or isinstance(right, float):
            return f"{number(left)} {symbol}" if isinstance(left, float) else f"{symbol} {number(right)}"
    return naming.clean(symbol, 14)


def _picture(names: list[str], signs: list[str], joined: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """For each node the corner and the width of its box and the width of its operation; the edges' routes; the size.

    Raises:
        ArgumentError: the edges span too much.
    """
    pills = [max(26.0, SYMBOL * cells(sign) + AROUND_SYMBOL) if sign else 0.0 for sign in signs]
    widths = [
        max(NARROWEST, NAME * cells(name) + AROUND_NAME) + pill - OVERLAP * bool(pill)
        for name, pill in zip(names, pills, strict=True)
    ]
    ranks, farthest = ranked(len(names), joined), dict[int, int]()
    for source, target in joined:
        farthest[source] = max(farthest.get(source, 0), ranks[target])
    waypoints = sum(last - ranks[source] - 1 for source, last in farthest.items())  # those from one box together
    if waypoints > MOST_WAYPOINTS:
        raise ArgumentError(
            f"the edges of this computation pass {waypoints:,} columns in all, and a page can draw {MOST_WAYPOINTS:,}: "
            "step through a part of it, or read the steps in Python: for step in steps(root)"
        )
    drawn = layout([(width, HEIGHT) for width in widths], joined, across=ACROSS, down=DOWN)
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
