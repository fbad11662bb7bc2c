"""Names of nodes, and the format of numbers, in pictures and sentences.

A node is named by its label; a parameter without one by its name in the model, ``layers.0.b``; the output of a neuron
by the name of the neuron, ``layers.0.neurons.3``; any other node by its expression if that is short, ``x1*w1``, or by
what it belongs to and its operation, ``example 2 (-)``; and else by its index in the graph, ``v7``, as the elements of
a Wengert list are usually numbered, or as ``result``. Labels can be any text: the names made here are short, have one
line, and can be encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import copysign, inf, nextafter

from wengert.graph import Graph
from wengert.nn import registered_names
from wengert.ops import TABLE, by_hand
from wengert.view.scopes import Scope, assigned, levels

__all__ = ["TITLE", "clean", "derivative", "ending", "fill", "formula", "formulas", "is_compound", "names", "number"]
__all__ += ["placed", "scopes", "second", "spelled", "template", "written"]

LONGEST, NAME = 24, 36  # the longest label and the longest name from a model that are shown, in characters
TITLE = 10_000  # the longest label in a tooltip
SHORT = 16  # the longest expression that is used as a name, where a name from a model counts as two characters
MANY = 7  # the largest number of operands that are all written
SMALLEST_LONG, LARGEST_LONG = 9999.5, 9999999.5  # numbers between them are written with seven digits
LARGE = 20_000  # in graphs of this many nodes, nodes without a label are named by their index
INFIX = {row.name: row.infix for row in TABLE if row.infix and row.arity == 2}
SIGNS = {(row.infix, row.arity): row.name for row in TABLE if row.infix}  # by the symbols of nodes made by hand
DERIVATIVES: dict[str, tuple[str, ...]] = {  # with respect to each operand, as in a calculus book; see `template`
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
    "xlogy": ("log(@1)", "@0/#1"),
    "xlog1py": ("log1p(@1)", "@0/(1 + #1)"),
    "entr": ("-1 - log(@0)",),
    "maximum": ("1 if @0 > @1, 0.5 on a tie, else 0", "1 if @1 > @0, 0.5 on a tie, else 0"),
    "minimum": ("1 if @0 < @1, 0.5 on a tie, else 0", "1 if @1 < @0, 0.5 on a tie, else 0"),
}
SIGN = re.compile(r"[-+*/]")  # the signs that expressions contain, and names from a model do not
POWER, FUNCTION = re.compile(r"\*\*-?\d[\d.e-]{0,9}"), re.compile(r"[^\W\d]\w{0,15}")

# Characters that are not shown: control characters, changes of the writing direction, halves of surrogate pairs.
UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(label: str, longest: int = LONGEST) -> str:
    r"""Shorten a label to one line of characters that can be shown.

    >>> clean("a\nb"), clean("x" * 30, 8)
    ('a�b', 'xxxxxxx…')
    """
    shown = UNSHOWN.sub("\ufffd", label[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def ending(name: str) -> str:
    """Shorten a name to one line, by its beginning, since the end of a path says the most.

    >>> ending("transformer.blocks.11.attention.query.7.15")
    '…rmer.blocks.11.attention.query.7.15'
    """
    name = clean(name, TITLE)
    return name if len(name) <= NAME else "…" + name[1 - NAME :]


def number(x: float) -> str:
    """Write a number with four digits, from ten thousand on with seven, without trailing zeros. Halves are rounded up,
    as in JavaScript.

    >>> number(-2.0), number(1 / 3), number(2.0625), number(1e-7), number(123456.789), number(float("-inf"))
    ('-2', '0.3333', '2.063', '1e-07', '123456.8', '-inf')
    """
    if x == 0.0:
        return "0"  # for -0.0 too
    digits = 7 if SMALLEST_LONG <= abs(x) < LARGEST_LONG else 4
    longer = f"{x:.{digits}e}"
    if longer.partition("e")[0][-1] == "5" and Decimal(longer) == Decimal(x):  # Python rounds a half to even
        x = nextafter(x, copysign(inf, x))
    return f"{x:.{digits}g}"


def second(x: float) -> str:
    """Write a number after an operator: in parentheses if it is negative."""
    return _enclosed(number(x))


def _enclosed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def spelled(graph: Graph, place: int) -> str:
    """Return the name of an operation; for a node made by hand, the operation that its symbol stands for.

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
    """Return the template of an operation with `count` operands: ``@0`` stands for operand 0, ``#1`` for operand 1 in
    parentheses if it is negative; `times` is the multiplication sign.

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
    """Return the derivative of an operation with `count` operands with respect to one of them, as a `template` in which
    the operation's value follows the operands; '' where no textbook has it in one line.

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
    """Fill the operands into a template; for a # the text in `enclosed`, if there is one.

    >>> fill("@0*#1", ["-2", "-3"]), fill("@0*#1", ["a", "b + c"], ["a", "(b + c)"])
    ('-2*(-3)', 'a*(b + c)')
    """

    def put(mark: re.Match[str]) -> str:
        place = int(mark[2])
        return texts[place] if mark[1] == "@" else enclosed[place] if enclosed else _enclosed(texts[place])

    return re.sub(r"([@#])(\d+)", put, written)


def names(graph: Graph) -> list[str]:
    """Return the names of the nodes of a graph. Expressions are names only in graphs of up to 20,000 nodes.

    >>> from wengert import Value
    >>> x, w = Value(2.0, "x"), Value(3.0, "w")
    >>> names(Graph((x * w + 1.0).tanh()))
    ['x', 'w', 'x*w', 'x*w + 1', 'tanh(x*w + 1)']
    """
    return formulas(graph)[0] if len(graph) <= LARGE else _plain(graph)[0]


def formulas(graph: Graph) -> tuple[list[str], list[str]]:
    """Return the name of each node, and its expression in the names of its operands ('' for a leaf)."""
    called, given = _plain(graph)
    sizes: list[int] = []
    made: list[str] = []
    for place, (op, operands, value) in enumerate(graph):
        made.append(formula(graph, called, place) if operands else "")
        sizes.append(2 if place in given else len(called[place]))
        if value.label or given.get(place) or not operands or op.name in ("compiled", "pick"):
            continue
        under = [x for x in operands if isinstance(x, int)]
        size = len(made[-1]) + sum([sizes[x] - len(called[x]) for x in under])
        is_clear = len(operands) <= MANY and not any(x in given and " " in called[x] for x in under)
        if is_clear and size <= SHORT and len(made[-1]) <= NAME:
            called[place], sizes[place] = made[-1], size
    if called[-1] == f"v{len(called) - 1}" and "result" not in called:
        called[-1] = "result"
    return called, made


def scopes(graph: Graph) -> tuple[list[Scope], bytearray]:
    """Return what `assigned` returns: the layer, neuron and example of each node, and 1 if it is computed there; empty
    if no live model owns a leaf.
    """
    found, several = _owned(graph)
    known = {}
    for place, names in found.items():
        kind, _, name = names[0].partition(" ")
        known[place] = levels(name, [inner.partition(" ")[2] for inner in names[1:]], f"{kind} " if several else "")
    return assigned(graph, known) if known else ([], bytearray())


def _owned(graph: Graph) -> tuple[dict[int, list[str]], bool]:
    """Return the leaves that are parameters of a model, by index, with their names from `registered_names`; and True if
    they belong to several models.
    """
    found = registered_names([graph.values[place] for place in graph.leaves])
    found |= getattr(graph, "owned", {})  # a SeenGraph knows the models of other classes
    owned = {place: found[graph.values[place]] for place in graph.leaves if graph.values[place] in found}
    return owned, len({names[0].partition(" ")[0] for names in owned.values()}) > 1


def placed(graph: Graph) -> tuple[dict[int, str], dict[int, bool]]:
    """Return the names of the nodes without a label that are named after their place in a model, and for each of them
    False if a short expression may replace the name. Graphs of more than 20,000 nodes have names of parameters only.
    """
    if all(graph.values[place].label for place in graph.leaves):
        return {}, {}  # saves the search through the models
    found, several = _owned(graph)
    unlabelled = {place: names[0] for place, names in found.items() if not graph.values[place].label}
    known = {place: ending(name if several else name.partition(" ")[2]) for place, name in unlabelled.items()}
    given = dict.fromkeys(known, True)
    if known and len(graph) <= LARGE:
        for place, (name, is_last) in _placed(graph, *scopes(graph)).items():
            if not graph.values[place].label:
                known[place], given[place] = name, is_last
    return known, given


def _plain(graph: Graph) -> tuple[list[str], dict[int, bool]]:
    """Return the name of each node without expressions, and what `placed` returns second."""
    known, given = placed(graph)
    return [clean(x.label) if x.label else known.get(place, f"v{place}") for place, x in enumerate(graph.values)], given


def _placed(graph: Graph, found: list[Scope], made: bytearray) -> dict[int, tuple[str, bool]]:
    """Name the nodes computed in a neuron, a layer or an example: its last node by its name, those before it by that
    name and their operation. Each with True if it is the last. A penalty, computed from parameters alone, is in none.
    """
    groups: dict[str, list[int]] = {}
    for place, scope in enumerate(found):
        if scope and made[place]:
            groups.setdefault(scope[-1], []).append(place)
    names: dict[int, tuple[str, bool]] = {}
    for group, places in groups.items():
        if SIGN.search(group):
            continue  # it would be mistaken for an expression
        names[places[-1]] = (ending(group), True)
        uses: dict[str, int] = {}
        for place in places[:-1]:
            is_sum = spelled(graph, place) in ("add", "dot", "sum")
            symbol = "sum" if is_sum else clean(graph.values[place]._op, SHORT)
            uses[symbol] = uses.get(symbol, 0) + 1
            names[place] = (ending(f"{group} ({symbol}{f' {uses[symbol]}' * (uses[symbol] > 1)})"), False)
    return names


def formula(graph: Graph, called: list[str], place: int) -> str:
    """Return the expression of a node in the names of its operands."""
    name = spelled(graph, place)
    tight = _is_expression(name) and name != "add"

    def text(x: int | float) -> str:
        if isinstance(x, float):
            return number(x)
        return f"({called[x]})" if tight and is_compound(graph, called, x) else called[x]

    return written(graph, place, text)


def written(graph: Graph, place: int, text: Callable[[int | float], str], times: str = "*") -> str:
    """Write an operation with `text` applied to each operand, an index or a constant."""
    operands = graph[place].operands
    count = len(operands)
    shown = range(count) if count <= MANY else (0, 1, 2, count - 1)
    return fill(template(spelled(graph, place), count, times), {i: text(operands[i]) for i in shown})


def is_compound(graph: Graph, called: list[str], place: int) -> bool:
    """Return True if a node's name is an expression that needs parentheses inside another."""
    named = bool(graph.values[place].label) or not SIGN.search(called[place].partition(" (")[0])
    return not named and _is_expression(spelled(graph, place))


def _is_expression(name: str) -> bool:
    """Return True if an operation is written with operators and not as a function."""
    return name in (*INFIX, "neg", "dot") or name.startswith("**")
