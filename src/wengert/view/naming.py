"""What the pictures and sentences call a node, and how they write a number.

A node goes by its label; a parameter without one by its name in the model, ``layers.0.b``; any other by its expression
where that is short, ``x1*w1``; else by its place in the computation, ``v7``, as the elements of a Wengert list are
usually numbered. Labels are a user's, or a stranger's: what comes from here is short, of one line, and can be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import copysign, inf, nextafter

from wengert.graph import Graph
from wengert.nn import registered_names
from wengert.ops import TABLE, by_hand

__all__ = ["TITLE", "clean", "derivative", "ending", "fill", "formula", "formulas", "is_compound", "names", "number"]
__all__ += ["owned", "parameters", "second", "spelled", "template", "written"]

LONGEST, NAME = 24, 36  # characters of a label that are shown, and of a name that comes from a model
TITLE = 10_000  # characters of a label that are kept in full, to be read under the pointer
SHORT = 16  # characters of an expression that still serves as a name
MANY = 7  # operands that are all written out
SMALLEST_LONG, LARGEST_LONG = 9999.5, 9999999.5  # between them a number is written with seven digits
LARGE = 20_000  # nodes from which on a node without a label goes by its place
INFIX = {row.name: row.infix for row in TABLE if row.infix and row.arity == 2}
SIGNS = {(row.infix, row.arity): row.name for row in TABLE if row.infix}  # what hand-made nodes call themselves
DERIVATIVES: dict[str, tuple[str, ...]] = {  # by each operand, as a calculus book has it, in the words of `template`
    "add": ("1", "1"),
    "sub": ("1", "-1"),
    "mul": ("@1", "@0"),
    "div": ("1/#1", "-#0/#1²"),
    "pow": ("@1 × #0**(@1 - 1)", "@2 × log(@0)"),
    "neg": ("-1",),
    "relu": ("1 if @0 > 0 else 0",),
    "exp": ("@1",),
    "log": ("1/#0",),
    "tanh": ("1 - #1²",),
    "abs": ("sign(@0)",),
    "square": ("2 × #0",),
    "sqrt": ("1/(2 × @1)",),
    "reciprocal": ("-1/#0²",),
    "exp2": ("@1 × log(2)",),
    "expm1": ("exp(@0)",),
    "log1p": ("1/(1 + #0)",),
    "sin": ("cos(@0)",),
    "cos": ("-sin(@0)",),
    "tan": ("1 + #1²",),
    "asin": ("1/sqrt(1 - #0²)",),
    "atan": ("1/(1 + #0²)",),
    "sinh": ("cosh(@0)",),
    "cosh": ("sinh(@0)",),
    "sigmoid": ("@1 × (1 - #1)",),
    "logsigmoid": ("sigmoid(-#0)",),
    "softplus": ("sigmoid(@0)",),
    "silu": ("sigmoid(@0) × (1 + @0 × sigmoid(-#0))",),
    "gelu": ("normal_cdf(@0) + @0 × normal_pdf(@0)",),
    "maximum": ("1 if @0 > @1, 0.5 on a tie, else 0", "1 if @1 > @0, 0.5 on a tie, else 0"),
    "minimum": ("1 if @0 < @1, 0.5 on a tie, else 0", "1 if @1 < @0, 0.5 on a tie, else 0"),
}
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


def ending(name: str) -> str:
    """A name as one short line: its end, if it is long, as in a path that says the most.

    >>> ending("transformer.blocks.11.attention.query.7.15")
    '…rmer.blocks.11.attention.query.7.15'
    """
    name = clean(name, TITLE)
    return name if len(name) <= NAME else "…" + name[1 - NAME :]


def number(x: float) -> str:
    """Four digits, and seven of what is above ten thousand; without zeros that say nothing. A half is rounded up, as
    JavaScript does it.

    >>> number(-2.0), number(1 / 3), number(2.0625), number(1e-7), number(123456.789), number(float("-inf"))
    ('-2', '0.3333', '2.063', '1e-07', '123456.8', '-inf')
    """
    if x == 0.0:
        return "0"  # of -0.0 too
    digits = 7 if SMALLEST_LONG <= abs(x) < LARGEST_LONG else 4
    longer = f"{x:.{digits}e}"
    if longer.partition("e")[0][-1] == "5" and Decimal(longer) == Decimal(x):  # a half, which Python rounds to even
        x = nextafter(x, copysign(inf, x))
    return f"{x:.{digits}g}"


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


def derivative(name: str, count: int, slot: int) -> str:
    """The rule for the derivative of an operation on `count` operands by one of them, as a `template`; the value of
    the operation itself stands behind the operands. '' where no textbook has it in a line.

    >>> derivative("mul", 2, 0), derivative("tanh", 1, 0), derivative("dot", 5, 3), derivative("**3", 1, 0)
    ('@1', '1 - #1²', '@1', '3 × #0**2')
    """
    if name in DERIVATIVES:
        return DERIVATIVES[name][slot] if count == len(DERIVATIVES[name]) else ""
    if name.startswith("**"):
        return f"{name[2:]} × #0**{number(float(name[2:]) - 1.0)}"
    half = count // 2
    rules = {
        "sum": "1",
        "mean": f"1/{count}",
        "dot": "1" if slot == 2 * half else f"@{(slot + half) % (2 * half)}" if half else "",
        "max": f"1 if @{slot} is the greatest, shared on a tie, else 0",
        "min": f"1 if @{slot} is the least, shared on a tie, else 0",
        "logsumexp": f"exp(@{slot} - #{count})",
    }
    return rules.get(name, "")


def fill(written: str, texts: Sequence[str] | Mapping[int, str], enclosed: Sequence[str] | None = None) -> str:
    """A template with its operands put in, those that stand in it; for a # the text in `enclosed`, if it is given.

    >>> fill("@0*#1", ["-2", "-3"]), fill("@0*#1", ["a", "b + c"], ["a", "(b + c)"])
    ('-2*(-3)', 'a*(b + c)')
    """

    def put(mark: re.Match[str]) -> str:
        place = int(mark[2])
        return texts[place] if mark[1] == "@" else enclosed[place] if enclosed else _enclosed(texts[place])

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


def owned(graph: Graph) -> dict[int, list[str]]:
    """The names of those leaves that are parameters of a model, by their places: as `registered_names` gives them."""
    found = registered_names([graph.values[place] for place in graph.leaves])
    return {place: found[graph.values[place]] for place in graph.leaves if graph.values[place] in found}


def parameters(graph: Graph) -> dict[int, str]:
    """What a leaf without a label is called in the model that it is a parameter of, by its place."""
    if all(graph.values[place].label for place in graph.leaves):
        return {}  # no model need be looked through
    found = owned(graph)
    several = len({names[0].partition(" ")[0] for names in found.values()}) > 1
    unlabelled = {place: names[0] for place, names in found.items() if not graph.values[place].label}
    return {place: ending(name if several else name.partition(" ")[2]) for place, name in unlabelled.items()}


def _plain(graph: Graph) -> list[str]:
    known = parameters(graph)
    return [clean(x.label) if x.label else known.get(place, f"v{place}") for place, x in enumerate(graph.values)]


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
