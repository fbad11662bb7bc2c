"""Writes the steps of a computation as one interactive HTML file.

The file contains the numbers, the positions of the boxes and the rules in JavaScript. Text from users gets into the
page only as JSON, and is drawn as text.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from wengert.errors import ArgumentError, counted
from wengert.graph import Graph
from wengert.ops import TABLE
from wengert.view import naming
from wengert.view.backward import Pass
from wengert.view.graph import Folding, edges, is_by_hand, layout, ranked
from wengert.view.javascript import Script
from wengert.view.markup import cells
from wengert.view.naming import number
from wengert.view.player import Page, packed

__all__ = ["page"]

MOST_NODES, MOST_WAYPOINTS = 3000, 60_000  # the limits of a page
Kind = tuple[str, int, int, bool]  # an operation's name, number of operands, index in the table; if its rule is shown
HEIGHT, NARROWEST = 56.0, 132.0  # the height and the smallest width of a box
NAME, SYMBOL = 7.6, 7.2  # the largest width of a character of a name and of an operation, as in stepper.css
AROUND_NAME, AROUND_SYMBOL, OVERLAP = 18.0, 16.0, 8.0  # padding in a box and in an operation, which overlaps the box
EXACT = 1e15  # integers below it are exact as a float (IEEE 754: up to 2**53)
ACROSS, DOWN = 78.0, 18.0  # gaps between boxes, for the numbers on an edge
TITLE = "Backpropagation, step by step: "


def page(backward: Pass) -> Page:
    """Make the page of a computation and its backward pass.

    Raises:
        ArgumentError: the computation has too many nodes for a page, or edges that span too many columns.
    """
    nodes = len(backward.graph)
    if nodes > MOST_NODES:
        raise ArgumentError(
            f"a page can show at most {MOST_NODES:,} nodes, this computation has {nodes:,}: step through a part of it, "
            "such as the loss of one example, or read the steps in Python: for step in steps(root)"
        )
    script = Script()
    data, rules = _data(backward, script)
    written = ",\n".join(rule or "null" for rule in rules)
    program = f"{script.definitions()}\nconst rules=[{written}];"
    recorded = f'<script type="application/json" id="data">{data}</script>\n'
    return packed(TITLE + backward.names[-1], recorded, program, "stepper")


def _data(backward: Pass, script: Script) -> tuple[str, list[str | None]]:
    """Return the data of the page as JSON, and the rules of each kind of operation in JavaScript."""
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
    for place in backward.beside:
        partials[place] = [None] * len(slots[place])
    own: dict[int, dict[int, Any]] = {}  # closures that do not add: "=", or the gradient afterwards and a sentence
    by_hand = [place for place in range(len(graph)) if is_by_hand(graph, place)]
    for place in by_hand:
        partials[place] = [None] * len(slots[place])  # None: nothing is passed on
        for move in backward.moves(place):
            slot = move.at - slots[place].start
            partials[place][slot] = _json(move.partial)
            if move.how != "added":
                said = [_json(move.after), move.sentence]
                own.setdefault(place, {})[slot] = "=" if move.how == "replaced" else said
    boxes, routes, size = _picture(
        names, signs, [(x, place) for place in range(len(graph)) for _, x in edges(graph, place)]
    )
    about = f"{counted(len(graph), 'node')}, {counted(2 * len(backward.made) + 1, 'step')}"
    for name in backward.stale[:1]:
        about += f". Data was changed after {name} was computed: these are the recorded numbers"
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
        "idle": {place: backward.idle(place) for place in (*by_hand, *backward.beside) if not backward.moves(place)},
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
    """Return for each node the number of its layer in the model or, without a model, of its column in the picture."""
    scopes = Folding(graph).scopes
    numbers: dict[Any, int] = {}
    outer = ("example ", "step ", "parameters")
    layers: list[Any] = [scope[: 2 if scope[0].startswith(outer) else 1] if scope else () for scope in scopes]
    keys = layers or [corner for corner, *_ in boxes]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _off(unknown: set[str], by_hand: bool) -> str:
    """Explain why the leaves cannot be changed; '' if they can."""
    listed = ", ".join(sorted(unknown)[:5])
    if by_hand:
        return f"The sliders are off: {listed} in this computation were made by hand, and only Python can compute them."
    return f"The sliders are off: the page cannot compute {listed}." if unknown else ""


def _sign(symbol: str, name: str, operands: tuple[int | float, ...]) -> str:
    """Return the text of an operation's small node, with its constant if it has one."""
    if len(operands) == 2 and name in naming.INFIX and symbol == naming.INFIX[name]:
        left, right = operands
        if isinstance(left, float) or isinstance(right, float):
            return f"{number(left)} {symbol}" if isinstance(left, float) else f"{symbol} {number(right)}"
    return naming.clean(symbol, 14)


def _picture(names: list[str], signs: list[str], joined: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """Return the corner and width of each box with the width of its operation, the routes of the edges, and the size.

    Raises:
        ArgumentError: the edges span too many columns.
    """
    pills = [max(26.0, SYMBOL * cells(sign) + AROUND_SYMBOL) if sign else 0.0 for sign in signs]
    widths = [
        max(NARROWEST, NAME * cells(name) + AROUND_NAME) + pill - OVERLAP * bool(pill)
        for name, pill in zip(names, pills, strict=True)
    ]
    ranks, farthest = ranked(len(names), joined), dict[int, int]()
    for source, target in joined:
        farthest[source] = max(farthest.get(source, 0), ranks[target])
    waypoints = sum(last - ranks[source] - 1 for source, last in farthest.items())  # edges from one box share them
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
    """Return the points of a route between its ends, without those on a straight line, and the y of its end."""
    whole = [(round(x), round(y)) for x, y in points]
    bends = [
        point
        for before, point, after in zip(whole, whole[1:], whole[2:], strict=False)
        if not before[1] == point[1] == after[1] and point != after
    ]
    return [*(coordinate for point in bends for coordinate in point), whole[-1][1]]
