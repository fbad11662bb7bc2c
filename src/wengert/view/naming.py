"""What the pictures and sentences call a node, and how they write a number.

A node goes by its label; without one by its expression where that is short, ``x1*w1``; else by its place in the
computation, ``v7``, as the elements of a Wengert list are usually numbered. Labels are a user's, or a stranger's: what
comes from here is short, of one line, and can be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import copysign, inf, nextafter

from wengert.graph import Graph
from wengert.ops import TABLE, by_hand

__all__ = [
    "clean",
    "fill",
    "formula",
    "formulas",
    "is_compound",
    "names",
    "number",
    "second",
    "spelled",
    "template",
    "written",
]

LONGEST = 24  # characters of a label that are shown
SHORT = 16  # characters of an expression that still serves as a name
MANY = 7  # operands that are all written out
LARGE = 20_000  # nodes from which on a node without a label goes by its place
INFIX = {row.name: row.infix for row in TABLE if row.infix and row.arity == 2}
SIGNS = {(row.infix, row.arity): row.name for row in TABLE if row.infix}  # what hand-made nodes call themselves
POWER, FUNCTION = re.compile(r"\*\*-?\d[\d.e-]{0,9}"), re.compile(r"[^\W\d]\w{0,15}")

# What is no character to show: controls, what turns the direction of writing, halves of surrogate pairs.
UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(label: str, longest: int = LONGEST) -> str:
    r"""A label as one short line of characters that can be shown.

    >>> clean("a\nb"), clean("x" * 30, 8)
    ('a�b', 'xxxxxxx…')
    """
    shown = UNSHOWN.sub("\ufffd", label[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def number(x: float) -> str:
    """Four digits, without zeros that say nothing. A half is rounded up, as JavaScript does it.

    >>> number(-2.0), number(1 / 3), number(2.0625), number(1e-7), number(123456.0), number(float("-inf"))
    ('-2', '0.3333', '2.063', '1e-07', '1.235e+05', '-inf')
    """
    if x == 0.0:
        return "0"  # of -0.0 too
    five = f"{x:.4e}"
    if five.partition("e")[0][-1] == "5" and Decimal(five) == Decimal(x):  # a half, which Python rounds to even
        x = nextafter(x, copysign(inf, x))
    return f"{x:.4g}"


def second(x: float) -> str:
    """A number behind a sign: in parentheses if it has one of its own."""
    return _enclosed(number(x))


def _enclosed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def spelled(graph: Graph, place: int) -> str:
    """By what name an operation is written: its own; of a node made by hand, what its symbol means.

    >>> from wengert import Value
    >>> x = Value(2.0)
    >>> [spelled(Graph(Value(4.0, (x, x), symbol)), 1) for symbol in ("*", "softplus", "<b>")]
    ['mul', 'softplus', 'f']
    """
    if graph.codes[place] != by_hand.code:
        return TABLE[graph.codes[place]].name
    symbol, count = graph.values[place]._op, graph.starts[place + 1] - graph.starts[place]
    if (symbol, count) in SIGNS:
        return SIGNS[symbol, count]
    if FUNCTION.fullmatch(symbol) and symbol not in (*INFIX, "neg", "dot"):
        return symbol
    return symbol if count == 1 and POWER.fullmatch(symbol) else "f"


def template(name: str, count: int, times: str = "*") -> str:
    """How an operation on `count` operands is written: ``@0`` stands for the first of them, ``#1`` for the second,
    in parentheses if it is negative; `times` for the sign of multiplication.

    >>> template("add", 2), template("tanh", 1), template("dot", 5), template("**2", 1)
    ('@0 + #1', 'tanh(@0)', '@0*#2 + #1*#3 + #4', '#0**2')
    """
    if name in INFIX:
        sign = {"*": times, "+": " + ", "-": " - "}.get(INFIX[name], INFIX[name])
        return f"#0{sign}#1" if name == "pow" else f"@0{sign}#1"
    if name == "neg":
        return "-#0"
    if name.startswith("**"):
        return f"#0{name}"
    if name == "dot" and count <= MANY:
        half = count // 2
        products = [f"{'#' if i else '@'}{i}{times}#{half + i}" for i in range(half)]
        return " + ".join([*products, f"#{2 * half}"])
    places = [f"@{i}" for i in range(count)]
    if count > MANY:
        places[3:-1] = [f"… {count - 4} more …"]
    return f"{name}({', '.join(places)})"


def fill(written: str, texts: Sequence[str] | Mapping[int, str]) -> str:
    """A template with its operands put in, those that stand in it.

    >>> fill("@0*#1", ["-2", "-3"])
    '-2*(-3)'
    """

    def put(mark: re.Match[str]) -> str:
        text = texts[int(mark[2])]
        return _enclosed(text) if mark[1] == "#" else text

    return re.sub(r"([@#])(\d+)", put, written)


def names(graph: Graph) -> list[str]:
    """What each node of a graph is called. Expressions serve as names in graphs of up to 20,000 nodes.

    >>> from wengert import Value
    >>> x, w = Value(2.0, "x"), Value(3.0, "w")
    >>> names(Graph((x * w + 1.0).tanh()))
    ['x', 'w', 'x*w', 'x*w + 1', 'tanh(x*w + 1)']
    """
    return formulas(graph)[0] if len(graph) <= LARGE else _plain(graph)


def formulas(graph: Graph) -> tuple[list[str], list[str]]:
    """What each node is called, and the expression that made it, over the names of its operands ('' for a leaf)."""
    called = _plain(graph)
    made: list[str] = []
    for place, (op, operands, value) in enumerate(graph):
        made.append(formula(graph, called, place) if operands else "")
        if not value.label and 0 < len(made[-1]) <= SHORT and op.name not in ("compiled", "pick"):
            called[place] = made[-1]
    return called, made


def _plain(graph: Graph) -> list[str]:
    labels = [value.label for value in graph.values]
    return [clean(label) if label else f"v{place}" for place, label in enumerate(labels)]


def formula(graph: Graph, called: list[str], place: int) -> str:
    """The expression that made a node, over the names of its operands."""
    name = spelled(graph, place)
    tight = _is_expression(name) and name != "add"

    def text(x: int | float) -> str:
        if isinstance(x, float):
            return number(x)
        return f"({called[x]})" if tight and is_compound(graph, called, x) else called[x]

    return written(graph, place, text)


def written(graph: Graph, place: int, text: Callable[[int | float], str], times: str = "*") -> str:
    """An operation over the texts of its operands, which are places or constants."""
    operands = graph[place].operands
    count = len(operands)
    shown = range(count) if count <= MANY else (0, 1, 2, count - 1)
    return fill(template(spelled(graph, place), count, times), {i: text(operands[i]) for i in shown})


def is_compound(graph: Graph, called: list[str], place: int) -> bool:
    """Whether a node's name is an expression that needs parentheses inside of another."""
    named = called[place] == f"v{place}" or bool(graph.values[place].label)
    return not named and _is_expression(spelled(graph, place))


def _is_expression(name: str) -> bool:
    """Whether an operation is written with signs, and not as a function."""
    return name in (*INFIX, "neg", "dot") or name.startswith("**")
